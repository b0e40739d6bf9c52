// SPDX-License-Identifier: Apache-2.0
/* A PCI function as the node sees it now: names change, its address does not. */
#pragma once

#include <jansson.h>
#include <linux/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "nodeagent/host/host.h"

struct netns;

struct device {
	char pf[IFNAMSIZ]; /* name of the PF's interface, "" when it is away */
	int pf_index;      /* number of that; 0: unknown, also of netdev */
	int64_t vf;        /* number; -1: no VF, or the PF is away */
	char netdev
		[IFNAMSIZ]; /* its own interface in the node's namespace, "" when there is none */
	int netdev_index;
	char driver[32]; /* "" when none is bound */
};

/* Does its driver give it to user space (vfio-pci and such), so that it has no interface? */
bool device_is_for_user_space(const struct device *device);

/* The host below the root folder of a call; NULL with err. */
struct host *device_host(int root, struct err *err);

/* ERR_HOST "DeviceGone" when the node has no such function. */
int device_look(const struct host *host, const char *address, struct device *ret, struct err *err);

/*
 * The link that an interface of a device is: by its number, for it may have another name by now;
 * where that is unknown, by name. Otherwise as netns_observe_link().
 */
int device_link(struct netns *ns, const char *name, int index, json_t *look, const json_t **ret,
		struct err *err);

/* RDMA devices of a PCI function or of an auxiliary device, as the node sees them: names, new. */
json_t *device_rdma(const struct host *host, const char *id);
