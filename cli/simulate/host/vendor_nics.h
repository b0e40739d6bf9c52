// SPDX-License-Identifier: Apache-2.0
/*
 * NICs of several vendors as PFs of a host tree: files in cli/simulate/host/nics, made from
 * public facts and not recorded from machines. Each names its sources: pci.ids, files of the kernel
 * below drivers/ and Documentation/, manuals of vendors. They are built into the program.
 */
#pragma once

#include <jansson.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/err.h"

struct vendor_nic {
	json_t *file;                  /* owned; the strings below are its */
	const char *title, *kernel;    /* "ConnectX-5", "5.15" */
	struct tree_pf pf;             /* at TREE_MLX, its VFs on bus 3c */
	struct tree_firmware firmware; /* what its driver offers of it */
};

/* Names of the files, without folder and ".json". NULL at the end. */
extern const char *const vendor_nic_names[];

/*
 * `ret` is for vendor_nic_done(). -1 with err: ERR_INVALID "UnknownNic" without a file of this
 * name, listing the names; ERR_BUG "BadNicFile".
 */
int vendor_nic_read(const char *name, struct vendor_nic *ret, struct err *err);
void vendor_nic_done(struct vendor_nic *nic);
