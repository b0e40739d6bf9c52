// SPDX-License-Identifier: Apache-2.0
/* The host of a simulated node: NICs of the catalogue in the places that guides name. */
#pragma once

#include <jansson.h>

#include "cli/simulate/host/vendor_nics.h"

struct sim_nic {
	struct vendor_nic nic;
	char address[24], netdev[16], rdma[24], path[96];
};

struct sim_host {
	struct host_tree *tree;
	struct sim_nic *nics;
	size_t n_nics;
};

/*
 * nics: names of the catalogue, all of them known. The first NIC is ens6f0np0 at 0000:af:00.0, the
 * others are enp11s0f0np0 at 0000:0b:00.0, enp12s0f0np0 and so on (spelled as the drivers do); all
 * interfaces are up. NICs whose number of VFs is a setting have 16. The node itself uses eno1, with
 * this IPv4 address.
 *
 * gpus: names of simulated_gpu(), may be empty. With GPUs the host has PCIe switches: the last
 * NICs, at most one for each GPU, have a switch each, and GPUs lie below these in order, as many
 * below each as it takes. Switches of the first half are of NUMA node 0, the others of 1; other
 * NICs are below root ports of node 0. GPUs are 0000:d0:00.0, 0000:d1:00.0 and so on.
 */
void sim_host_init(struct sim_host *host, const char *parent, struct tree_texts *texts,
		   const json_t *nics, const json_t *gpus, const char *ipv4);
void sim_host_done(struct sim_host *host);

/* By the name of its interface or its PCI address. NULL: there is none. */
const struct sim_nic *sim_host_find(const struct sim_host *host, const char *nic);
