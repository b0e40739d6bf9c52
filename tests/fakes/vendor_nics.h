/*
 * NICs of several vendors as PFs of a host tree: files in tests/fakes/nics, made from public facts
 * and not recorded from machines. Each names its sources: pci.ids, files of the kernel below
 * drivers/ and Documentation/, manuals of vendors.
 */
#ifndef ORBWEAVER_TESTS_FAKES_VENDOR_NICS_H
#define ORBWEAVER_TESTS_FAKES_VENDOR_NICS_H

#include "lib/json/json.h"
#include "tests/fakes/host_tree.h"

struct vendor_nic {
	json_t *file;               /* owned; the strings below are its */
	const char *title, *kernel; /* "ConnectX-5", "5.15" */
	struct tree_pf pf;
	struct tree_firmware firmware; /* what its driver offers of it */
};

/* Names of the files, without folder and ".json". NULL at the end. */
extern const char *const vendor_nic_names[];

/* Fails the test where the file cannot be read. `ret` is for vendor_nic_done(). */
void vendor_nic_read(const char *name, struct vendor_nic *ret);
void vendor_nic_done(struct vendor_nic *nic);

/*
 * A host with this NIC at TREE_MLX, its drivers and the modules of RDMA loaded, and no pod.
 *
 * master:   NULL, or the name of a bond that its interface is a port of
 * has_vfs:  false: its firmware has SR-IOV off
 */
struct host_tree *vendor_nic_tree(const struct vendor_nic *nic, const char *master, bool has_vfs);

#endif
