// SPDX-License-Identifier: Apache-2.0
/*
 * The topology file of NCCL (NCCL_TOPO_FILE) for the NICs of one pod: which are below which PCIe
 * switch, and with which GPUs. Pure.
 *
 * Source of the format: src/graph/xml.cc and topo.cc of github.com/NVIDIA/nccl. NCCL finds a <net>
 * by its name and a GPU by its bus, fills in what it sees itself, and needs "arch" of a CPU,
 * "class", "link_speed" and "link_width" of a PCI function to be there. Attributes that it does not
 * know are passed over.
 */
#pragma once

#include <jansson.h>

/*
 * The PCI functions above a function as NCCL walks up, the nearest last: one for each switch, its
 * upstream port, and the root port if the rest is odd. path: as topology_between() has it. New.
 */
json_t *nccl_topology_switches(const char *path);

/*
 * New text.
 *	cpu        {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": 143}, all
 *	           but the first only of x86_64
 *	functions  [{"busid", "class": "0x030200", "numaNode", "path", "net": {"name": "mlx5_0",
 *	           "speed": Mbit/s, "rail"}}]; "net" is absent for GPUs, its members but the name
 *	           where they are not known
 *	links      {PCI address: {"speed": "32.0 GT/s PCIe", "width": 16}} of functions and
 *	           switches, absent where that is not known
 */
char *nccl_topology_text(const json_t *cpu, const json_t *functions, const json_t *links);
