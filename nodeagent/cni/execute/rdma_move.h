// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA devices of a network namespace (NETLINK_RDMA, drivers/infiniband/core/nldev.c), and moving
 * one to another. Devices move where the RDMA subsystem is in exclusive mode.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/netlink/netns.h"

struct host; /* nodeagent/host/host.h */

/* True in exclusive mode. ERR_HOST "RdmaUnavailable" when there is no RDMA subsystem. */
int rdma_is_exclusive(struct netns *ns, bool *ret, struct err *err);

enum { RDMA_NAME_SIZE = 64 }; /* IB_DEVICE_NAME_MAX, rdma/ib_user_verbs.h */

/* A device as a namespace sees it. Its number is the same in all, and not used again in a boot. */
struct rdma_place {
	int64_t index; /* -1: there is none; 0 is a number */
	char name[RDMA_NAME_SIZE];
};

/* The device of that name, or with name NULL the one whose number `place` has. */
int rdma_find(struct netns *ns, const char *name, struct rdma_place *place, struct err *err);

/*
 * Move a device of `from`, to be called `name` there; where that is taken "ibdev" and its number.
 * ERR_HOST "StepRefused" with errno.
 */
int rdma_move(struct netns *from, struct netns *to, const struct rdma_place *place,
	      const char *name, struct err *err);

/*
 * What ADD has saved, {"rdma": name, "rdmaIndex", "device": its function}, comes back from the pod.
 * 0 also when it is not there, or `from` is NULL: a namespace that ends gives it back by itself
 * (rdma_dev_exit_net()), with the name that the pod may have given it. Then it is given its own
 * name again, if it is the device's: after a boot another one has its number. host: to see that;
 * NULL: it keeps its name.
 */
int rdma_bring_back(struct netns *from, struct netns *to, const struct host *host,
		    const json_t *saved, struct err *err);
