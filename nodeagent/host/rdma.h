// SPDX-License-Identifier: Apache-2.0
/*
 * NETLINK_RDMA: devices, ports, and the mode in which the subsystem treats network namespaces
 * (drivers/infiniband/core/nldev.c).
 */
#pragma once

#include <linux/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/host/host.h"

#define RDMA_NAME_SIZE 64

struct rdma_port {
	uint32_t number;
	int state, phys_state; /* as of the kernel; -1 when unknown */
	uint32_t ndev_index;   /* 0 when there is none in our namespace */
	char ndev_name[IFNAMSIZ];
};

struct rdma_device {
	uint32_t index;
	char name[RDMA_NAME_SIZE];
	char protocol[16];
	char firmware[64];
	bool has_node_guid, has_sys_image_guid;
	uint64_t node_guid, sys_image_guid;
	struct rdma_port *ports;
	size_t n_ports;
};

struct rdma_devices {
	struct rdma_device *items;
	size_t n;
};

void rdma_devices_done(struct rdma_devices *devices);
#define auto_rdma_devices auto_call(rdma_devices_done)

/*
 * Devices that we see, with their ports. A kernel without the subsystem: none, and err->sys
 * EPROTONOSUPPORT.
 */
int rdma_list(struct host *host, struct rdma_devices *ret, struct err *err);
/* The same without ports, and the ports of one of them. */
int rdma_list_names(struct netlink *netlink, struct rdma_devices *ret, struct err *err);
int rdma_list_ports(struct netlink *netlink, struct rdma_device *device, struct err *err);
void rdma_decode_devices(const void *bytes, size_t len, struct rdma_devices *ret);
void rdma_decode_ports(const void *bytes, size_t len, struct rdma_device *device);

/*
 * How many contexts of processes each device has, whatever their namespace: { "mlx5_0": 2 }, new. A
 * context is what ibv_open_device() gets; the kernel counts them by itself (RES_GET, the entry
 * "ctx", drivers/infiniband/core/nldev.c). A device that the kernel does not count for is left out.
 * NULL with err when the kernel cannot be asked.
 */
json_t *rdma_contexts(struct host *host, struct err *err);
void rdma_decode_contexts(const void *bytes, size_t len, json_t *ret);

/*
 * The module of the kernel that uses this device: NVMe-oF, NFS, Lustre, SMC-R, iSER have no
 * contexts, but connections (RES_CM_ID_GET) and queue pairs (RES_QP_GET) that belong to the kernel.
 * "nvme_rdma", new; NULL: there is none, or, with err, the kernel cannot be asked. Linux before
 * 4.17 does not say.
 *
 * What every device has does not count: QPs 0 and 1, those of the device's own driver and of IPoIB,
 * whose interface shows whether it is used, and connections that only listen: a server that listens
 * everywhere has one on each device.
 */
char *rdma_kernel_user(struct host *host, uint32_t device, struct err *err);
/* ret_name, 64 bytes: of the first such user in an answer to either request; false: none. */
bool rdma_decode_kernel_user(const void *bytes, size_t len, char ret_name[RDMA_NAME_SIZE]);

/*
 * Add what a port has counted to `counters` (counted.h); the hardware's own counters, as `rdma
 * statistic` shows them. Of a driver that has none: none, and of Linux before 5.3.
 */
int rdma_counters(struct host *host, uint32_t device, uint32_t port, json_t *counters,
		  struct err *err);
void rdma_decode_counters(const void *bytes, size_t len, json_t *counters);

enum rdma_mode {
	RDMA_MODE_UNKNOWN = -1, /* Linux before 5.2 does not say */
	RDMA_MODE_EXCLUSIVE,    /* numbers of the kernel */
	RDMA_MODE_SHARED,
};

/* "exclusive", "shared"; NULL for unknown. And back. */
const char *rdma_mode_name(enum rdma_mode mode);
enum rdma_mode rdma_mode_of(const char *name);

int rdma_get_mode(struct netlink *netlink, enum rdma_mode *ret, struct err *err);
enum rdma_mode rdma_decode_mode(const void *bytes, size_t len);
/* EBUSY: there is another network namespace. */
int rdma_set_mode(struct host *host, enum rdma_mode mode, struct err *err);

/* "ACTIVE", "LinkUp"; NULL for numbers that have no name. */
const char *rdma_port_state_name(int state);
const char *rdma_phys_state_name(int state);

/*
 * A notification (group RDMA_NL_GROUP_NOTIFY, Linux 6.12): name of the device; false when the
 * message is none.
 */
bool rdma_decode_event(const void *bytes, size_t len, char ret_name[RDMA_NAME_SIZE]);
