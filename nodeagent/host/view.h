// SPDX-License-Identifier: Apache-2.0
/*
 * One look at a host, while the observed document is being made. For view.c and the observe*.c
 * files only: observe.c reads the parts and writes PFs, the others know a part each.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host/evidence.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/rtnl_link.h"
#include "nodeagent/netlink/rtnl_vf.h"

struct view {
	struct host *host;
	unsigned int flags;
	struct rtnl_interfaces interfaces;
	struct rdma_devices rdma;
	enum rdma_mode rdma_mode;
	json_t *addresses;         /* of all network functions, sorted */
	json_t *gpus;              /* addresses of GPUs, sorted */
	char *gpus_unknown;        /* why there may be more of them; NULL: there are not */
	json_t *functions;         /* { interface name: PCI address } */
	json_t *devlink;           /* PCI addresses with a devlink instance */
	json_t *health;            /* devlink_list_errors() */
	json_t *namespaces;        /* holders_namespaces, with HOST_OBSERVE_HOLDERS */
	struct evidence *evidence; /* without HOST_OBSERVE_HOLDERS for the node's own use only */
	json_t *protected;         /* node.protected */
	json_t *carriers;          /* the same for what interfaces of pods lie on */
	json_t *char_devices;      /* { RDMA device: [entries of charDevices] } */
	json_t *problems;
};

/* Fill what all need; `host` and `flags` are set. */
int view_read_interfaces(struct view *view, struct err *err);
void view_done(struct view *view);
/* Add to "problems"; address may be NULL. */
void view_problem(struct view *view, const char *address, const struct err *err);

/* observe_rdma.c */
void view_read_rdma(struct view *view);
json_t *view_rdma_entry(const struct view *view);
/* Of an RDMA device; borrowed, NULL when there are none. */
json_t *view_char_devices(const struct view *view, const char *device);
const struct rdma_device *view_rdma_device(const struct view *view, const char *name);
void view_put_guid(json_t *object, const char *key, uint64_t guid);

/* observe_node.c */
void view_read_protected(struct view *view);
/* Why this function is protected; NULL when it is not. */
const char *view_protected(const struct view *view, const char *address);
/* uppers: of holders_namespaces. */
void view_read_carriers(struct view *view, const json_t *uppers);
/*
 * The interface of another namespace that lies on this function, or on one that it is part of;
 * NULL: none that we know.
 */
const char *view_carried(const struct view *view, const char *address);
json_t *view_node_entry(const struct view *view);

/* observe_gpu.c */
json_t *view_gpus(const struct view *view);

/* observe_vf.c */
json_t *view_vf_entry(const struct view *view, const char *pf, int number, const char *address,
		      const struct rtnl_vfs *reported);
/* Names of RDMA devices of a function; an array, new. */
json_t *view_rdma_names(const struct view *view, const char *address);
/* The interface that stands for a function, as rtnetlink has it; NULL when we see none. */
const struct rtnl_interface *view_interface(const struct view *view, const char *address);
/* vendor and deviceID. */
void view_put_ids(const struct view *view, const char *address, json_t *ret);
void view_put_location(const struct view *view, const char *address, json_t *ret);
