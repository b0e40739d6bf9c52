// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs for simulated hosts: what their PCI functions show in sysfs. Sources: pci.ids, and the class
 * that lspci of such machines prints.
 */
#pragma once

#include "cli/simulate/host/host_tree.h"

/* "h100", …; NULL at the end. */
extern const char *const simulated_gpu_names[];

/* What stands in vendor, device and class of such a GPU; NULL: there is none of this name. */
const struct tree_gpu *simulated_gpu(const char *name);
