// SPDX-License-Identifier: Apache-2.0
/*
 * Sockets of three groups of the kernel, and one decoder for each, which sees bytes only. They are
 * opened while there is the right to a large buffer, and given to agent/host_events.c, which polls
 * them and looks at the host when something came.
 */
#include "nodeagent/host/watch.h"

#include <assert.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/netlink/message.h"

/* A burst: 128 VFs make about a thousand messages. */
#define BUFFER_BYTES (1 << 20)
/* uevents have 2 KiB at most; links of a PF with its VFs more, the rest of which we do not read. */
#define DATAGRAM_MAX 32768
/* RDMA_NL_GROUP_NOTIFY, Linux 6.12. */
#define RDMA_GROUP_NOTIFY 4

struct watch {
	int fds[WATCH_SOURCES];
	int refusals[WATCH_SOURCES]; /* errno of the last try of each */
};

/* ---- messages -------------------------------------------------------------------------------- */

/* The value of "KEY=value" among strings that NUL ends; all of them end within len. */
static const char *property(const char *text, size_t len, const char *key)
{
	size_t key_len = strlen(key);

	for (const char *p = text; p < text + len; p += strlen(p) + 1)
		if (strncmp(p, key, key_len) == 0 && p[key_len] == '=')
			return p + key_len + 1;
	return NULL;
}

/* "/devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/eth0": the last part that is an address. */
static bool function_in_path(const char *path, char ret[PCI_ADDRESS_SIZE])
{
	bool found = false;

	while (*path) {
		size_t len = strcspn(path, "/");
		char part[PCI_ADDRESS_SIZE];

		if (len < sizeof(part)) {
			memcpy(part, path, len);
			part[len] = '\0';
			if (pci_address_is_valid(part)) {
				memcpy(ret, part, len + 1);
				found = true;
			}
		}
		path += len + (path[len] == '/');
	}
	return found;
}

/* "ACTION@DEVPATH", then properties (Documentation/core-api/kobject.rst, lib/kobject_uevent.c). */
static void decode_uevent(const char *bytes, size_t len, watch_event_fn fn, void *arg)
{
	static const char *const subsystems[] = {"pci", "net", "infiniband", "infiniband_verbs"};
	const char *action, *path, *subsystem, *slash;
	struct watch_event event = {.source = WATCH_UEVENT};
	char address[PCI_ADDRESS_SIZE];
	bool ours = false;

	if (len == 0 || bytes[len - 1] != '\0')
		return;
	action = property(bytes, len, "ACTION");
	path = property(bytes, len, "DEVPATH");
	subsystem = property(bytes, len, "SUBSYSTEM");
	if (!action || !path || !subsystem)
		return;
	for (size_t i = 0; i < ARRAY_LEN(subsystems); i++)
		ours |= str_eq(subsystem, subsystems[i]);
	if (!ours)
		return;
	event.action = action;
	event.address = function_in_path(path, address) ? address : NULL;
	slash = strrchr(path, '/');
	if (!str_eq(subsystem, "pci"))
		event.name = slash ? slash + 1 : path;
	fn(arg, &event);
}

static void decode_rdma(const void *bytes, size_t len, watch_event_fn fn, void *arg)
{
	struct watch_event event = {.source = WATCH_RDMA, .action = "change"};
	char name[RDMA_NAME_SIZE];

	if (!rdma_decode_event(bytes, len, name))
		return;
	event.name = name[0] ? name : NULL;
	fn(arg, &event);
}

void watch_decode(enum watch_source source, const void *bytes, size_t len, watch_event_fn fn,
		  void *arg)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	switch (source) {
	case WATCH_UEVENT:
		decode_uevent(bytes, len, fn, arg);
		break;
	case WATCH_LINK:
		while ((message = netlink_next(bytes, len, &at))) {
			struct nlattr *attrs[IFLA_PARENT_DEV_NAME + 1];
			struct watch_event event = {.source = WATCH_LINK, .carrier_changes = -1};
			const struct ifinfomsg *info = NLMSG_DATA(message);
			char name[IFNAMSIZ], address[PCI_ADDRESS_SIZE];
			uint32_t changes;
			uint8_t carrier;

			if ((message->nlmsg_type != RTM_NEWLINK &&
			     message->nlmsg_type != RTM_DELLINK) ||
			    !netlink_parse(message, sizeof(struct ifinfomsg), attrs,
					   IFLA_PARENT_DEV_NAME) ||
			    !netlink_str(attrs[IFLA_IFNAME], name, sizeof(name)))
				continue;
			event.action = message->nlmsg_type == RTM_DELLINK ? "remove" : "change";
			event.name = name;
			if (netlink_str(attrs[IFLA_PARENT_DEV_NAME], address, sizeof(address)) &&
			    pci_address_is_valid(address))
				event.address = address;
			event.ifindex = info->ifi_index;
			/* One that goes to a namespace, or loses its driver, is set down first. */
			event.has_link = message->nlmsg_type == RTM_NEWLINK &&
					 (info->ifi_flags & IFF_UP) &&
					 netlink_u8(attrs[IFLA_CARRIER], &carrier);
			event.is_up = event.has_link && carrier;
			if (netlink_u32(attrs[IFLA_CARRIER_CHANGES], &changes))
				event.carrier_changes = changes;
			fn(arg, &event);
		}
		break;
	case WATCH_RDMA:
		decode_rdma(bytes, len, fn, arg);
		break;
	case WATCH_SOURCES:
		break;
	}
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* Bound before it joins: NETLINK_RDMA sends nothing otherwise (drivers/infiniband/core/nldev.c). */
static int open_group(int protocol, int group)
{
	auto_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	int size = BUFFER_BYTES;

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return take_fd(&fd);
}

void watch_retry(struct watch *watch)
{
	static const struct {
		int protocol, group;
	} sources[WATCH_SOURCES] = {
		[WATCH_UEVENT] = {NETLINK_KOBJECT_UEVENT, 1},
		[WATCH_LINK] = {NETLINK_ROUTE, RTNLGRP_LINK},
		[WATCH_RDMA] = {NETLINK_RDMA, RDMA_GROUP_NOTIFY},
	};

	for (size_t i = 0; i < WATCH_SOURCES; i++) {
		if (watch->fds[i] >= 0)
			continue;
		watch->fds[i] = open_group(sources[i].protocol, sources[i].group);
		watch->refusals[i] = watch->fds[i] < 0 ? errno : 0;
	}
}

struct watch *watch_open(struct err *err)
{
	auto_watch struct watch *watch = mem_new(struct watch);

	for (size_t i = 0; i < WATCH_SOURCES; i++)
		watch->fds[i] = -1;
	watch_retry(watch);
	if (watch->fds[WATCH_UEVENT] < 0 || watch->fds[WATCH_LINK] < 0) {
		errno = watch->refusals[watch->fds[WATCH_UEVENT] < 0 ? WATCH_UEVENT : WATCH_LINK];
		(void)err_sys(err, "WatchUnavailable", "listen to the kernel's events");
		return NULL;
	}
	return take_ptr(watch);
}

void watch_close(struct watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < WATCH_SOURCES; i++)
		if (watch->fds[i] >= 0)
			(void)close(watch->fds[i]);
	free(watch);
}

int watch_fd(const struct watch *watch, enum watch_source source)
{
	assert(source < WATCH_SOURCES);
	return watch->fds[source];
}

int watch_read(struct watch *watch, enum watch_source source, watch_event_fn fn, void *arg,
	       struct err *err)
{
	auto_free char *bytes = mem_alloc(DATAGRAM_MAX);

	assert(source < WATCH_SOURCES && watch->fds[source] >= 0);
	for (;;) {
		struct sockaddr_nl from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(watch->fds[source], bytes, DATAGRAM_MAX, MSG_TRUNC,
				     (struct sockaddr *)&from, &from_len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < 0 && errno != ENOBUFS)
			return err_sys(err, "WatchBroken", "read the kernel's events");
		/* Overrun, or longer than we read: something is there that we do not know. */
		if (n < 0 || n > DATAGRAM_MAX)
			fn(arg, &(struct watch_event){.source = source, .lost = true});
		else if (from.nl_pid == 0)
			watch_decode(source, bytes, (size_t)n, fn, arg);
	}
}
