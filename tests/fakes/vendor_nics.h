/*
 * NICs of several vendors as PFs of a host tree. Made from public facts, not recorded from
 * machines: device IDs of pci.ids, drivers and numbers of VFs of the vendors' documentation and the
 * kernel's sources.
 */
#ifndef ORBWEAVER_TESTS_FAKES_VENDOR_NICS_H
#define ORBWEAVER_TESTS_FAKES_VENDOR_NICS_H

#include "tests/fakes/host_tree.h"

struct vendor_nic {
	const char *name;
	struct tree_pf pf;
};

#define VENDOR_NIC(name_, driver_, netdev_, rdma_, vendor_, device_, vf_device_, vf_driver_,       \
		   total_)                                                                         \
	{                                                                                          \
		.name = (name_),                                                                   \
		.pf = {                                                                            \
			.address = TREE_MLX,                                                       \
			.driver = (driver_),                                                       \
			.netdev = (netdev_),                                                       \
			.rdma = (rdma_),                                                           \
			.vendor = (vendor_),                                                       \
			.device = (device_),                                                       \
			.vf_device = (vf_device_),                                                 \
			.vf_driver = (vf_driver_),                                                 \
			.vf_bus = 0x3c,                                                            \
			.total = (total_),                                                         \
			.has_devlink = true,                                                       \
		},                                                                                 \
	}

static const struct vendor_nic vendor_nics[] = {
	VENDOR_NIC("ConnectX-5", "mlx5_core", "ens1f0np0", "mlx5_0", "15b3", "1017", "1018",
		   "mlx5_core", 8),
	VENDOR_NIC("ConnectX-6", "mlx5_core", "ens1f0np0", "mlx5_0", "15b3", "101b", "101c",
		   "mlx5_core", 16),
	VENDOR_NIC("ConnectX-7", "mlx5_core", "ens1f0np0", "mlx5_0", "15b3", "1021", "101e",
		   "mlx5_core", 16),
	VENDOR_NIC("BlueField-2", "mlx5_core", "p0", "mlx5_0", "15b3", "a2d6", "101e", "mlx5_core",
		   16),
	VENDOR_NIC("E810", "ice", "ens2f0", "irdma0", "8086", "1592", "1889", "iavf", 64),
	VENDOR_NIC("BCM57508", "bnxt_en", "ens3f0np0", "bnxt_re0", "14e4", "1750", "1806",
		   "bnxt_en", 16),
};

#endif
