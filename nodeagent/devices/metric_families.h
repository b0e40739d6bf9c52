// SPDX-License-Identifier: Apache-2.0
/*
 * Names of metrics of devices, their help and labels: "rdma_" as Spiderpool documents them
 * (docs/usage/rdma-metrics of its repository), "sriov_" as the SR-IOV network metrics exporter has
 * them, "orbweaver_" of our own. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum family_labels {
	FAMILY_OF_DEVICE,   /* an RDMA device, its pod, who owns that */
	FAMILY_OF_PRIORITY, /* and a priority of it */
	FAMILY_OF_CLASS,    /* an RDMA device alone */
	FAMILY_OF_VF,
	FAMILY_OF_HOLDER, /* a device and the container that has it */
	FAMILY_OF_INFO,
	FAMILY_OF_FAILURE,
};

struct family {
	const char *name, *type, *help;
	enum family_labels labels;
};

/* Those that are always shown, with or without series, in this order. */
extern const struct family families[];
extern const size_t n_families;

/* Their labels, joined by commas. */
const char *family_label_names(enum family_labels labels);

/* Longer names are not in use. */
#define FAMILY_NAME_SIZE 96

/*
 * What a driver calls a counter → the metric: "out_of_sequence" → "rdma_out_of_sequence_total",
 * "ip4InOctets" → "rdma_ip4_in_octets_total" (Spiderpool's rule for capitals); for VFs
 * "sriov_vf_rx_bytes". False when no name of a metric can be made of it.
 */
bool family_name_of_rdma(const char *counter, char ret[FAMILY_NAME_SIZE]);
bool family_name_of_vf(const char *counter, char ret[FAMILY_NAME_SIZE]);
/*
 * "rx_prio3_pause" → "rdma_rx_pause_total" and '3'; false when it is not a counter of a priority.
 */
bool family_name_of_priority(const char *counter, char ret[FAMILY_NAME_SIZE], char *ret_priority);
