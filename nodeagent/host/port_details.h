// SPDX-License-Identifier: Apache-2.0
/*
 * What is behind a link, for whoever has to repair it: transceiver, PCI Express, and the errors
 * that the function's reporters have seen.
 */
#pragma once

#include "nodeagent/host/ethtool.h"

/*
 * Of port {"pciAddress"}, its card; new:
 *
 *	pcie         {"width", "speed" (GT/s), and what both ends can: "widthMax", "speedMax"}
 *	pcieErrors   {"correctable", "nonfatal", "fatal"}, of AER
 *	reporters    {NAME: errors}, of devlink
 *
 * Of port {"netdev"}, its module, which may hang by itself:
 *
 *	transceiver  of transceiver_decode()
 *
 * Members of these that are not there or cannot be read are absent. Up to five readings of the
 * transceiver's memory (ethtool_read_eeprom()): not for the paths that others wait for. NULL with
 * err ERR_BUG "BadRequest" for what is not a port.
 */
json_t *port_details_read(struct host *host, const json_t *port, struct err *err);

enum {
	/* The lower half of a transceiver's memory, and up to four upper ones. */
	TRANSCEIVER_IMAGE_MAX = 5 * ETHTOOL_EEPROM_SIZE,
};

/*
 * By its memory map: SFF-8472 (SFP), SFF-8636 (QSFP) or CMIS (QSFP-DD, OSFP), as SFF-8024 numbers
 * them; the lower half, then those halves that port_details_read() could read, in its order. New:
 *
 *	vendor, part, serial  printable ASCII
 *	temperature           °C; temperatureMax: above which the module itself warns
 *	voltage               V
 *	rxPower[], txPower[]  W, by lane
 *
 * What it does not measure is absent. NULL: another kind. Pure.
 */
json_t *transceiver_decode(const unsigned char *image, size_t len);
