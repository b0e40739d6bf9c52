// SPDX-License-Identifier: Apache-2.0
/*
 * A host in use: its root as a descriptor, a netlink transport, and the doors of the kernel, which
 * tests replace. Workers open one for each process, the CLI for `doctor`; what steps may do to it
 * beyond the usual is set here once, before the first step.
 */
#include "nodeagent/host/host.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/reboot.h"
#include "nodeagent/host/sysfs.h"

#define STATE_FOLDER_ABOVE "var/lib"
#define STATE_FOLDER_NAME  "orbweaver"

/*
 * No O_CREAT, no buffering: the driver's answer is that of write
 * (Documentation/filesystems/sysfs.rst).
 */
static int kernel_write_at(void *ctx, int root_fd, const char *path, size_t at, const void *data,
			   size_t len, struct err *err)
{
	auto_close int fd = root_open(root_fd, path, O_WRONLY, 0);
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "WriteRefused", "open %s", path);
	/* Attributes that cannot be sought take writes at their begin. */
	n = at ? pwrite(fd, data, len, (off_t)at) : write(fd, data, len);
	if (n < 0)
		return err_sys(err, "WriteRefused", "write to %s", path);
	if ((size_t)n != len)
		return err_set(err, ERR_HOST, "WriteRefused", "%s took %zd of %zu bytes", path, n,
			       len);
	return 0;
}

static int kernel_write(void *ctx, int root_fd, const char *path, const char *data, size_t len,
			struct err *err)
{
	return kernel_write_at(ctx, root_fd, path, 0, data, len, err);
}

static int kernel_mkdir(void *ctx, int root_fd, const char *path, struct err *err)
{
	if (root_make_dirs(root_fd, path, 0755) < 0)
		return err_sys(err, "WriteRefused", "make %s", path);
	return 0;
}

static void kernel_rmdir(void *ctx, int root_fd, const char *path)
{
	auto_free char *above = str_ndup(path, (size_t)(strrchr(path, '/') - path));
	auto_close int fd = root_open(root_fd, above, O_RDONLY | O_DIRECTORY, 0);

	if (fd >= 0)
		(void)unlinkat(fd, strrchr(path, '/') + 1, AT_REMOVEDIR);
}

static void kernel_sleep_ms(void *ctx, int ms)
{
	struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* The socket is closed at once: it would keep the namespace that it was made in. */
static int kernel_ethtool(void *ctx, const char *interface, void *command, struct err *err)
{
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_data = command};

	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &request) < 0)
		return err_sys(err, "EthtoolRefused", "ask network interface %.15s", interface);
	return 0;
}

/* The sockets there are belong to the namespace that they were made in, and keep it. */
static int kernel_enter(void *ctx, int fd, struct err *err)
{
	struct host *host = ctx;

	if (setns(fd, CLONE_NEWNET) < 0)
		return err_sys(err, "NamespaceRefused", "enter a network namespace");
	netlink_reset(host->netlink);
	return 0;
}

static int kernel_reboot(void *ctx, enum init_system init, struct err *err)
{
	const struct host *host = ctx;

	return reboot_ask(host, init, err);
}

static const struct host_doors kernel_doors = {
	.write = kernel_write,
	.write_at = kernel_write_at,
	.mkdir = kernel_mkdir,
	.rmdir = kernel_rmdir,
	.exchange = NULL, /* sockets */
	.sleep_ms = kernel_sleep_ms,
	.ethtool = kernel_ethtool,
	.enter = kernel_enter,
	.reboot = kernel_reboot,
};

struct host *host_open(const char *root, struct err *err)
{
	auto_close int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct host *host;

	if (fd < 0) {
		(void)err_sys(err, "HostUnreadable", "open the host's root %s", root);
		return NULL;
	}
	host = mem_new(struct host);
	host->root = take_fd(&fd);
	host->netlink = netlink_new();
	host->node_addresses = json_array();
	host_set_doors(host, &kernel_doors, host);
	return host;
}

void host_close(struct host *host)
{
	if (!host)
		return;
	(void)close(host->root);
	if (!host->shares_netlink)
		netlink_free(host->netlink);
	json_decref(host->node_addresses);
	json_decref(host->held);
	free(host);
}

void host_set_doors(struct host *host, const struct host_doors *doors, void *ctx)
{
	assert(doors->write && doors->sleep_ms && doors->ethtool && doors->enter);
	host->doors = doors;
	host->doors_ctx = ctx;
	netlink_set_door(host->netlink, doors->exchange, ctx);
}

void host_share_netlink(struct host *host, struct netlink *netlink)
{
	assert(netlink && !host->shares_netlink);
	netlink_free(host->netlink);
	host->netlink = netlink;
	host->shares_netlink = true;
}

void host_allow_primary_nic(struct host *host)
{
	host->may_force = true;
}

void host_allow_firmware(struct host *host)
{
	host->may_set_firmware = true;
}

int host_state_folder(const struct host *host)
{
	auto_close int above = -1;

	if (root_make_dirs(host->root, STATE_FOLDER_ABOVE, 0755) < 0)
		return -1;
	above = root_open(host->root, STATE_FOLDER_ABOVE, O_RDONLY | O_DIRECTORY, 0);
	if (above < 0 || (mkdirat(above, STATE_FOLDER_NAME, 0700) < 0 && errno != EEXIST) ||
	    fsync(above) < 0)
		return -1;
	return root_open(host->root, HOST_STATE_FOLDER, O_RDONLY | O_DIRECTORY, 0);
}

void host_set_node_addresses(struct host *host, const json_t *addresses)
{
	json_replace(&host->node_addresses, json_deep_copy(addresses));
}

void host_set_held(struct host *host, const json_t *held)
{
	json_replace(&host->held, json_deep_copy(held));
}

void host_set_given(struct host *host, host_given_fn *fn, void *arg)
{
	host->given = fn;
	host->given_arg = arg;
}
