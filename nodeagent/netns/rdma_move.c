// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA devices and namespaces. See the header.
 */
#include "nodeagent/netns/rdma_move.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/json/json.h"
#include "nodeagent/host/netlink.h"
#include "nodeagent/host/rdma.h"

#define NLDEV_TYPE(command) (RDMA_NL_NLDEV << 10 | (command))

static struct netns *rdma_socket(struct netns *ns, struct err *err)
{
	struct netns *rdma = netns_open_protocol(netns_fd(ns), NETLINK_RDMA, err);

	if (!rdma)
		(void)err_in(err, "RDMA");
	return rdma;
}

int rdma_is_exclusive(struct netns *ns, bool *ret, struct err *err)
{
	auto_netns struct netns *rdma = rdma_socket(ns, err);
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_SYS_GET), 0, NULL, 0);
	auto_strbuf struct strbuf answer = {0};

	if (!rdma || netns_ask(rdma, msg, &answer, err))
		return err_set(err, ERR_HOST, "RdmaUnavailable",
			       "the node's kernel has no RDMA subsystem; load ib_core");
	*ret = rdma_decode_mode(answer.data, answer.len) == RDMA_MODE_EXCLUSIVE;
	return 0;
}

/* The device called so; NULL as name: of that number. True when it is there. */
static bool pick(const struct rdma_devices *devices, const char *name, struct rdma_place *place)
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

static int find(struct netns *rdma, const char *name, struct rdma_place *place, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_GET), NLM_F_DUMP, NULL, 0);
	auto_strbuf struct strbuf answer = {0};
	auto_rdma_devices struct rdma_devices devices = {0};

	if (netns_ask(rdma, msg, &answer, err))
		return err_in(err, "list RDMA devices");
	rdma_decode_devices(answer.data, answer.len, &devices);
	if (!pick(&devices, name, place))
		place->index = -1;
	return 0;
}

int rdma_find(struct netns *ns, const char *name, struct rdma_place *place, struct err *err)
{
	auto_netns struct netns *rdma = rdma_socket(ns, err);

	return rdma ? find(rdma, name, place, err) : -1;
}

/* One device, and one message about it. */
struct change {
	struct netns *rdma;
	struct nl_msg *msg;
	int code;
};

static int send_change(void *context, struct err *err)
{
	struct change *change = context;
	struct netns_answer answer;

	if (netns_send(change->rdma, &change->msg, 1, &answer, err))
		return -1;
	change->code = answer.code;
	return 0;
}

/*
 * The kernel wants the sender, not the socket alone, to be in the device's namespace
 * (rdma_dev_change_netns(), drivers/infiniband/core/device.c); ENODEV otherwise.
 */
static int set(struct netns *rdma, int64_t index, const char *name, const struct netns *to,
	       int *ret_code, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_SET), 0, NULL, 0);
	struct change change = {.rdma = rdma, .msg = msg};

	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, (uint32_t)index);
	if (name)
		netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	if (to)
		netlink_put_u32(msg, RDMA_NLDEV_NET_NS_FD, (uint32_t)netns_fd(to));
	if (netns_within(rdma, send_change, &change, err))
		return -1;
	*ret_code = change.code;
	return 0;
}

int rdma_move(struct netns *from, struct netns *to, const struct rdma_place *place,
	      const char *name, struct err *err)
{
	auto_netns struct netns *rdma = rdma_socket(from, err);
	char spare[RDMA_NAME_SIZE];
	int code = 0;

	if (!rdma)
		return -1;
	/* One message for both moves it on new kernels, and renames it only on older ones. */
	if (!str_eq(place->name, name) && set(rdma, place->index, name, NULL, &code, err))
		return -1;
	if (!code && set(rdma, place->index, NULL, to, &code, err))
		return -1;
	if (code == EEXIST) {
		/* As the kernel calls one that comes back to a name that is taken. */
		(void)snprintf(spare, sizeof(spare), "ibdev%d", (int)place->index);
		if (set(rdma, place->index, spare, NULL, &code, err) ||
		    (!code && set(rdma, place->index, NULL, to, &code, err)))
			return -1;
	}
	if (!code)
		return 0;
	errno = code;
	return err_sys(err, "StepRefused", "move the RDMA device %s to another namespace", name);
}

/* It came back by itself: under the name that it had in the pod. */
static void name_again(struct netns *ns, const char *name, struct rdma_place *place)
{
	auto_netns struct netns *rdma = rdma_socket(ns, NULL);
	int code;

	if (!rdma || find(rdma, NULL, place, NULL) || place->index < 0 || str_eq(place->name, name))
		return;
	(void)set(rdma, place->index, name, NULL, &code, NULL);
}

int rdma_bring_back(struct netns *from, struct netns *to, const json_t *saved, struct err *err)
{
	const char *name = json_str_at(saved, "rdma");
	const json_t *index = json_at(saved, "rdmaIndex");
	struct rdma_place place = {.index = index ? json_integer_value(index) : -1};

	if (!name)
		return 0;
	/* The pod may have renamed it; its number is the same everywhere. */
	if (from && rdma_find(from, index ? NULL : name, &place, NULL) == 0 && place.index >= 0)
		return rdma_move(from, to, &place, name, err);
	place.index = index ? json_integer_value(index) : -1;
	if (index)
		name_again(to, name, &place);
	return 0;
}
