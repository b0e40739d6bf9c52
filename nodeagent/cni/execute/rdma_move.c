// SPDX-License-Identifier: Apache-2.0
/*
 * Find a device by number or name, send one message inside its namespace, and mend the name where
 * the old one is taken. rdma_run.c and ib_sriov_run.c move it into the pod after the device is
 * theirs, and out before the VF goes back.
 */
#include "nodeagent/cni/execute/rdma_move.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>

#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/netlink/message.h"

#define NLDEV_TYPE(command) (RDMA_NL_NLDEV << 10 | (command))

int rdma_is_exclusive(struct netns *ns, bool *ret, struct err *err)
{
	enum rdma_mode mode;

	if (netns_open_socket(ns, NETLINK_RDMA, NULL) ||
	    rdma_get_mode(netns_netlink(ns), &mode, NULL))
		return err_set(err, ERR_HOST, "RdmaUnavailable",
			       "the node's kernel has no RDMA subsystem; load ib_core");
	*ret = mode == RDMA_MODE_EXCLUSIVE;
	return 0;
}

/* The device called so; NULL as name: of that number. True when it is there. */
static bool pick_device(const struct rdma_devices *devices, const char *name,
			struct rdma_place *place)
{
	for (size_t i = 0; i < devices->n; i++) {
		const struct rdma_device *device = &devices->items[i];

		if (name ? !str_eq(device->name, name) : device->index != place->index)
			continue;
		place->index = device->index;
		(void)snprintf(place->name, sizeof(place->name), "%s", device->name);
		return true;
	}
	return false;
}

int rdma_find(struct netns *ns, const char *name, struct rdma_place *place, struct err *err)
{
	auto_rdma_devices struct rdma_devices devices = {0};

	if (netns_open_socket(ns, NETLINK_RDMA, err) ||
	    rdma_list_names(netns_netlink(ns), &devices, err))
		return -1;
	if (!pick_device(&devices, name, place))
		place->index = -1;
	return 0;
}

/* One device, and one message about it. */
struct change {
	struct netns *ns;
	struct nl_msg *msg;
	int code;
};

static int send_change(void *context, struct err *err)
{
	struct change *change = context;
	struct netlink_answer answer;

	if (netlink_send(netns_netlink(change->ns), NETLINK_RDMA, &change->msg, 1, &answer, err))
		return -1;
	change->code = answer.code;
	return 0;
}

/*
 * The kernel wants the sender, not the socket alone, to be in the device's namespace
 * (rdma_dev_change_netns(), drivers/infiniband/core/device.c); ENODEV otherwise.
 */
static int set_device(struct netns *ns, int64_t index, const char *name, const struct netns *to,
		      int *ret_code, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_SET), 0, NULL, 0);
	struct change change = {.ns = ns, .msg = msg};

	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, (uint32_t)index);
	if (name)
		netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	if (to)
		netlink_put_u32(msg, RDMA_NLDEV_NET_NS_FD, (uint32_t)netns_fd(to));
	if (netns_within(ns, send_change, &change, err))
		return -1;
	*ret_code = change.code;
	return 0;
}

int rdma_move(struct netns *from, struct netns *to, const struct rdma_place *place,
	      const char *name, struct err *err)
{
	char spare[RDMA_NAME_SIZE];
	int code = 0;

	/* One message for both moves it on new kernels, and renames it only on older ones. */
	if (!str_eq(place->name, name) && set_device(from, place->index, name, NULL, &code, err))
		return -1;
	if (!code && set_device(from, place->index, NULL, to, &code, err))
		return -1;
	if (code == EEXIST) {
		/* As the kernel calls one that comes back to a name that is taken. */
		(void)snprintf(spare, sizeof(spare), "ibdev%d", (int)place->index);
		if (set_device(from, place->index, spare, NULL, &code, err) ||
		    (!code && set_device(from, place->index, NULL, to, &code, err)))
			return -1;
	}
	if (!code)
		return 0;
	errno = code;
	return err_sys(err, "StepRefused", "move the RDMA device %s to another namespace", name);
}

/*
 * It came back by itself: under the name that it had in the pod. Its number may be another device's
 * since a boot.
 */
static void name_again(struct netns *ns, const struct host *host, const json_t *saved,
		       struct rdma_place *place)
{
	const char *name = json_str_at(saved, "rdma"), *device = json_str_at(saved, "device");
	json_auto_t *names = host && device ? device_rdma(host, device) : NULL;
	int code;

	if (rdma_find(ns, NULL, place, NULL) || place->index < 0 || str_eq(place->name, name) ||
	    !json_list_has(names, place->name))
		return;
	(void)set_device(ns, place->index, name, NULL, &code, NULL);
}

int rdma_bring_back(struct netns *from, struct netns *to, const struct host *host,
		    const json_t *saved, struct err *err)
{
	const char *name = json_str_at(saved, "rdma");
	const json_t *index = json_at(saved, "rdmaIndex");
	struct rdma_place place = {.index = index ? json_integer_value(index) : -1};
	struct err why = {0};

	if (!name)
		return 0;
	/* The pod may have renamed it; its number is the same everywhere. */
	if (from && rdma_find(from, index ? NULL : name, &place, &why) == 0 && place.index >= 0)
		return rdma_move(from, to, &place, name, err);
	/* Without ib_core there is no device; any other failure says nothing. */
	if (why.class && why.sys != EPROTONOSUPPORT) {
		if (err)
			*err = why;
		return -1;
	}
	place.index = index ? json_integer_value(index) : -1;
	if (index)
		name_again(to, host, saved, &place);
	return 0;
}
