// SPDX-License-Identifier: Apache-2.0
/*
 * A host made of files: sysfs, procfs and /etc in a temporary folder, and a kernel that answers
 * netlink and reacts to writes as the kernel does (drivers/pci/iov.c, net/core/rtnetlink.c,
 * drivers/infiniband/core/nldev.c).
 *
 * Stands at the doors of nodeagent/host/host.h. Unknown requests get EOPNOTSUPP.
 *
 * Devices of mlx5_core have counted: the n-th counter (from 0) of an RDMA device with index i is
 * 1000 i + n, that of the interface with index i too; what a PF has counted for VF v is 100 v + the
 * number of the attribute (linux/if_link.h, IFLA_VF_STATS_*). Those of other drivers count nothing.
 * The speed of InfiniBand is unknown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/host/host.h"
#include "nodeagent/netlink/netns.h"

/* When the driver of a PF takes a mode for its switch; see tree_pf.eswitch. */
enum tree_eswitch {
	TREE_ESWITCH_ANY,         /* whenever */
	TREE_ESWITCH_WITHOUT_VFS, /* ice: EOPNOTSUPP while there are VFs */
	TREE_ESWITCH_WITH_VFS,    /* mlx5 before Linux 6.0: EOPNOTSUPP while there are none */
	TREE_ESWITCH_ELSEWHERE,   /* a BlueField's cores manage it, and the VFs' addresses: EPERM */
	TREE_ESWITCH_NONE,        /* it has none: EOPNOTSUPP */
};

/* What its driver does when VFs are to be made while its interface is down. */
enum tree_down {
	TREE_DOWN_MAKES,   /* makes them */
	TREE_DOWN_IGNORES, /* bnxt_en: none, and no error */
	TREE_DOWN_REFUSES, /* bnx2x: EINVAL */
};

struct tree_pf {
	/* What it is; set by the test. Strings are borrowed for the life of the tree. */
	const char *address, *driver, *netdev,
		*rdma; /* driver, netdev, rdma: NULL when there is none */
	const char *vendor, *device, *vf_device, *vf_driver;
	/*
	 * Bridges above it and its VFs, "pci0000:15/0000:15:01.0"; NULL: its folder is where sysfs
	 * has a link, which does not show it.
	 */
	const char *path;
	int numa;            /* NUMA node, of its VFs too */
	unsigned int vf_bus; /* VFs are on this bus, from device 0 function 0 on */
	int total;           /* VFs at most; 0: no SR-IOV */
	int makes;           /* VFs that its driver makes at most; 0: as many as asked for */
	int max_mtu;         /* of its interface and its VFs'; 0: 9978 */
	bool is_ib;
	bool has_devlink;
	bool is_up;         /* its interface is, from the start */
	int speed_mbps;     /* of its link, while it has a carrier; 0: not said */
	bool vfs_lack_rdma; /* it has an RDMA device, its VFs have none */
	enum tree_eswitch eswitch;
	enum tree_down down;
	const char *master;    /* interface that its own is a port of */
	int classes;           /* traffic classes of its driver; 0: 8 */
	bool has_vendor_files; /* its driver is NVIDIA's own: ECN, traffic class */
};

/*
 * What most tests are about: an mlx5 PF with RDMA, devlink and room for 128 VFs, which are on bus
 * 3c.
 */
#define TREE_MLX "0000:3b:00.0"
extern const struct tree_pf tree_mlx;
/* An InfiniBand PF of the same kind: 16 VFs, on bus b0. */
#define TREE_IB "0000:af:00.0"
extern const struct tree_pf tree_ib;

struct host_tree;

/* In a folder of its own below /tmp. */
struct host_tree *host_tree_new(void);

/*
 * A thousand hosts in little memory: files of trees that were made with the same texts are links to
 * one file for each text, in `folder`. The trees have to be on the same filesystem, and go first.
 */
struct tree_texts;
struct tree_texts *tree_texts_new(const char *folder);
void tree_texts_free(struct tree_texts *texts);
/* In a folder of its own below `parent`. texts: borrowed; NULL: each file is its own. */
struct host_tree *host_tree_new_in(const char *parent, struct tree_texts *texts);
void host_tree_free(struct host_tree *tree);
/* Its root folder. The tree's. */
const char *host_tree_folder(const struct host_tree *tree);
/*
 * In a child that has closed all descriptors. Its changes to interfaces and VFs are its own, but
 * see tests/fakes/shared_kernel.h.
 */
void host_tree_reopen(struct host_tree *tree);
/*
 * It was restarted, with the RDMA subsystem in that mode; all files stay. How often its first
 * process was asked for that; whether it says no.
 */
void host_tree_boot(struct host_tree *tree, const char *boot_id, bool is_exclusive);
int host_tree_reboots(const struct host_tree *tree);
void host_tree_refuse_reboots(struct host_tree *tree, bool refuses);

/* The host in front of it, with the tree's doors. The tree's. */
struct host *host_tree_host(struct host_tree *tree);

/*
 * A network namespace, for code of nodeagent/cni/execute: run/netns/`name`, made when it is not
 * there; NULL: the node's own. To be closed before the tree. Interfaces of the kinds macvlan,
 * ipvlan and vlan can be made and removed in both, and any can move and be named; addresses and
 * rules cannot be set yet.
 */
struct netns *host_tree_netns(struct host_tree *tree, const char *name);

void host_tree_add_pf(struct host_tree *tree, const struct tree_pf *pf);
/*
 * A GPU of NUMA node `numa` below bridges, as tree_pf.path has them; may be NULL. It is card0,
 * card1 and so on in the order of the calls; one of NVIDIA has a UUID with its address in it.
 */
#define TREE_GPU_UUID "GPU-5eed-%s"
struct tree_gpu {
	const char *vendor, *device, *class; /* hex digits, without 0x */
};
void host_tree_add_gpu(struct host_tree *tree, const struct tree_gpu *gpu, const char *address,
		       const char *path, int numa);
/* An interface without function below it (bridge, bond), kind may be NULL. */
void host_tree_add_interface(struct host_tree *tree, const char *name, const char *kind);
/* A default route out of it; an address on it. */
void host_tree_add_default_route(struct host_tree *tree, const char *interface);
void host_tree_add_address(struct host_tree *tree, const char *interface, const char *ipv4);

/* Another program of the node sets the interface down as soon as it is up. */
void host_tree_keep_down(struct host_tree *tree, const char *interface);

/* The doors, whose context is the tree: what a write by hand goes through. */
const struct host_doors *host_tree_doors(void);

/* A pod takes the interface of a VF, and gives it back. */
void host_tree_move_away(struct host_tree *tree, const char *vf);
void host_tree_bring_back(struct host_tree *tree, const char *vf);
/*
 * The same to a namespace that is mounted as run/netns/`netns`, where the interface is called
 * `name`; in exclusive mode with its RDMA device. It does not come back.
 */
void host_tree_move_to(struct host_tree *tree, const char *vf, const char *netns, const char *name);

/*
 * What stands in place of a counter's value from now on: `counter` is its name, of a VF that its PF
 * counts for it has "vf_" before it; `index` tells devices apart. NULL: values as above.
 */
typedef uint64_t host_tree_counted(const char *counter, unsigned int index, uint64_t value);
void host_tree_set_counted(struct host_tree *tree, host_tree_counted *counted);
/*
 * What a PF may suffer from. Each is there or not, beside the others; VFs that go with a fault do
 * not come back with its end.
 */
enum tree_fault {
	TREE_FAULT_LINK,   /* its port has no carrier */
	TREE_FAULT_VFS,    /* its firmware makes no VFs: EIO */
	TREE_FAULT_DRIVER, /* its driver is not bound: no interface, no RDMA device, no VFs */
	TREE_FAULT_GONE,   /* it is not on the bus */
	TREE_FAULTS,
};
/* False: that changes nothing. The PF must have been added. */
bool host_tree_set_fault(struct host_tree *tree, const char *pf, enum tree_fault fault,
			 bool is_broken);
/* Other network namespaces: SYS_SET says EBUSY while there are any. */
void host_tree_set_namespaces(struct host_tree *tree, int n);
/* A devlink health reporter of the PF is in error; NULL: all are well. Borrowed. */
void host_tree_break(struct host_tree *tree, const char *pf, const char *reporter);
/*
 * The PF's driver offers settings of the firmware: SR-IOV as such, how many VFs, a reset that makes
 * them count. Copied. Without this it offers none.
 */
struct tree_firmware {
	bool has_switch, is_on, has_count, can_reset;
	bool needs_scan; /* a reset changes nothing that the kernel sees */
	uint32_t count;  /* VFs */
};
void host_tree_offer_firmware(struct host_tree *tree, const char *pf,
			      const struct tree_firmware *firmware);
/* How often a card was reset. */
int host_tree_resets(const struct host_tree *tree);
/* Processes have an RDMA device open, so many times. */
void host_tree_open_verbs(struct host_tree *tree, const char *device, int contexts);
/*
 * A module of the kernel has a queue pair on the RDMA device with this index: 1000 × PF + 1, 1000 ×
 * PF + 2 + VF. One of a tree. Borrowed; NULL: none.
 */
void host_tree_use_in_kernel(struct host_tree *tree, uint32_t index, const char *module);
/* Soft-RoCE "rxe0" on an interface, with the files uverbs9 of its own: one of a tree. Borrowed. */
void host_tree_add_rxe(struct host_tree *tree, const char *interface);
/*
 * RDMA devices that come from now on have uverbs and umad files in /dev/infiniband, with the lowest
 * number that is free, as the kernel gives them.
 */
void host_tree_serve_verbs(struct host_tree *tree);
/* RDMA subsystem not loaded at all. */
void host_tree_unload_rdma(struct host_tree *tree);
/*
 * The kernel lets the n-th (from 1) write or changing netlink request fail with EIO; 0: none.
 * Restarts the count.
 */
void host_tree_fail_at(struct host_tree *tree, int n);
/* How often the VFs of some PF were listed. */
int host_tree_vf_lists(const struct host_tree *tree);
/* Writes and changing requests so far. */
int host_tree_changes(const struct host_tree *tree);

/* Files by hand; folders above come by themselves. */
void host_tree_file(struct host_tree *tree, const char *path, const char *text);
void host_tree_bytes(struct host_tree *tree, const char *path, const void *bytes, size_t len);
void host_tree_link(struct host_tree *tree, const char *path, const char *target);
void host_tree_remove(struct host_tree *tree, const char *path);
/* Text of a file, new; "" when there is none. */
char *host_tree_read(struct host_tree *tree, const char *path);
