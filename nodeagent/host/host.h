// SPDX-License-Identifier: Apache-2.0
/*
 * One host: where its files are, and the doors through which everything goes that is not a plain
 * read.
 *
 * Blocking code without a loop, for one thread. What it reads and writes is relative to a root
 * directory (the host's, as the container sees it, or a test's tree); netlink speaks to the kernel
 * of the network namespace we are in, which must be the host's (namespaces.h has visits to others).
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "nodeagent/netlink/netlink.h"

struct host;

/* What the first process understands. */
enum init_system {
	INIT_UNKNOWN,
	INIT_SYSTEMD,
	INIT_BUSYBOX,
};

/*
 * The doors. Those of the kernel are the default; tests put others in front of a tree of files, or
 * make the n-th call fail.
 *
 * write     one open, one write, one close of an existing file
 *           (Documentation/filesystems/sysfs.rst: the driver's answer is that of write).
 * write_at  the same at a place in a file of bytes: the configuration space of a PCI function.
 * mkdir     a folder of configfs, whose files the kernel makes
 *           (Documentation/filesystems/configfs.rst). ERR_HOST "WriteRefused" with errno.
 * rmdir     remove it again; what cannot be removed stays.
 * exchange  that of netlink (netlink/netlink.h), with NETLINK_ROUTE, NETLINK_RDMA and
 *           NETLINK_GENERIC.
 * sleep_ms  between two looks at something that is to happen.
 * ethtool   one SIOCETHTOOL for an interface (linux/ethtool.h), of which only those that read are
 *           used. ERR_HOST "EthtoolRefused" with errno.
 * enter     from now on netlink and ethtool are those of the network namespace behind the
 *           descriptor, which stays the caller's. ERR_HOST "NamespaceRefused".
 * reboot    ask the host's first process for an orderly reboot, in words that `init` understands.
 *           ERR_HOST "RebootRefused".
 *
 * `ctx` is what was given with them.
 */
struct host_doors {
	int (*write)(void *ctx, int root_fd, const char *path, const char *data, size_t len,
		     struct err *err);
	int (*write_at)(void *ctx, int root_fd, const char *path, size_t at, const void *data,
			size_t len, struct err *err);
	int (*mkdir)(void *ctx, int root_fd, const char *path, struct err *err);
	void (*rmdir)(void *ctx, int root_fd, const char *path);
	netlink_exchange_fn *exchange;
	void (*sleep_ms)(void *ctx, int ms);
	int (*ethtool)(void *ctx, const char *interface, void *command, struct err *err);
	int (*enter)(void *ctx, int fd, struct err *err);
	int (*reboot)(void *ctx, enum init_system init, struct err *err);
};

/*
 * Open the host below `root` ("/" or, in a container, where the host's root is mounted). NULL with
 * err set.
 */
struct host *host_open(const char *root, struct err *err);
void host_close(struct host *host);
OWN_DEFINE(struct host, host_close)
#define auto_host auto_call(host_close_p)

/* Other doors; all members set. `doors` and `ctx` stay the caller's and outlive the host. */
void host_set_doors(struct host *host, const struct host_doors *doors, void *ctx);

/* From now on ask the kernel by these sockets, which stay the caller's and outlive the host. */
void host_share_netlink(struct host *host, struct netlink *netlink);

/*
 * The node's own addresses as the API server knows them (Node.status.addresses), a JSON array of
 * strings; others than IP addresses are passed over. The NIC that has one is protected, besides
 * that of the default route.
 */
void host_set_node_addresses(struct host *host, const json_t *addresses);

/*
 * May a step force VFs onto a protected PF? Not unless this was called: the administrator has to
 * allow it for the process, besides the policy on whose behalf the step asks.
 */
void host_allow_primary_nic(struct host *host);

/* The same for steps that set a card's firmware. */
void host_allow_firmware(struct host *host);

/* Below the root: what is kept across boots. */
#define HOST_STATE_FOLDER "var/lib/orbweaver"

/*
 * That folder, made when it is not there, by a name that survives a power cut: a descriptor, or -1
 * with errno.
 */
int host_state_folder(const struct host *host);

/*
 * What the kubelet has given to pods, { PCI address: "namespace/pod" }. Steps leave these functions
 * alone. NULL, as at the start: not known, and steps leave all VFs alone.
 */
void host_set_held(struct host *host, const json_t *held);

/*
 * Whom to ask for what `held` does not name, right before a step takes a VF: *ret_pod is the pod
 * that has it, "namespace/pod", borrowed until the next question, or NULL. -1 with err: it is
 * unknown, and the step leaves the VF alone. NULL, as at the start: what `held` says is all there
 * is.
 */
typedef int host_given_fn(void *arg, const char *vf, const char **ret_pod, struct err *err);
void host_set_given(struct host *host, host_given_fn *fn, void *arg);
