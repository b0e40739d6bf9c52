// SPDX-License-Identifier: Apache-2.0
/*
 * How far two PCI functions are from each other, and which GPUs are near a NIC. Pure: the paths
 * that sysfs shows go in. docs/rails.md, "Distances".
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

enum {
	/* Of each sort, as the schemas in crds/ have it. */
	TOPOLOGY_GPUS_MAX = 32,
	TOPOLOGY_NICS_MAX = 32,
};

/* Nearest first. The words of `nvidia-smi topo -m` and of NCCL. */
enum topology_distance {
	TOPOLOGY_PIX,     /* below one PCIe switch, or one device */
	TOPOLOGY_PXB,     /* below one root port, through several switches */
	TOPOLOGY_PHB,     /* below one host bridge, through the CPU */
	TOPOLOGY_NODE,    /* of one NUMA node, below different host bridges */
	TOPOLOGY_SYS,     /* of different NUMA nodes */
	TOPOLOGY_UNKNOWN, /* a path or a NUMA node is not known */
	TOPOLOGY_DISTANCES,
};

/* "PIX", …; "?" for TOPOLOGY_UNKNOWN. */
const char *topology_distance_name(enum topology_distance distance);

/*
 * a, b: objects with "path", the bridges above a function from its host bridge down, joined by
 * slashes ("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0"), and "numaNode". Both may be
 * absent.
 */
enum topology_distance topology_between(const json_t *a, const json_t *b);

/*
 * NodeState.status.topology from the observed document with rails:
 *
 *	"gpus": [{"pciAddress", "vendor", "deviceID", "numaNode", "path"}]	by PCI address
 *	"nics": [{"pciAddress", "name", "rail", "numaNode", "path",
 *		  "gpus": {"PIX": "0", "NODE": "1-3", …}}]	by rail, those without one last
 *	"gpusUnknown": why the list of GPUs is not complete; absent when it is
 *
 * "gpus" of a NIC: indices in the list of GPUs, by distance. New; NULL: the host shows nothing of
 * it.
 */
json_t *topology_compose(const json_t *observed);
