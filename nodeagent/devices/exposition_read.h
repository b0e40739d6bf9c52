// SPDX-License-Identifier: Apache-2.0
/*
 * What exposition.h has written, read again by people's tools. Pure.
 */
#ifndef ORBWEAVER_NODEAGENT_DEVICES_EXPOSITION_READ_H
#define ORBWEAVER_NODEAGENT_DEVICES_EXPOSITION_READ_H

#include <jansson.h>
#include <stddef.h>

/*
 * Sums of counters of one agent's metrics, by the interface of the port; foreign bytes:
 *
 *	{"seconds": 1767226600.5, "ports": {"ens1f0np0": SUMS}, "pods": {"namespace/pod":
 *	{"ens1f0np0": SUMS}}}, new
 *
 * seconds: when the agent has read them, in Unix time; absent: it does not say so.
 * SUMS: "received", "sent" (bytes), "errors", "retransmits", "pause", as reals; what no device
 * counts is absent. Lines that are none of these are passed over. A name that is not UTF-8 has no
 * entry.
 */
json_t *exposition_read(const char *text, size_t len);

#endif
