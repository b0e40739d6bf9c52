// SPDX-License-Identifier: Apache-2.0
/*
 * One network namespace: the thread enters it to make a socket or to read a sysctl, and comes back.
 */
#include "nodeagent/netlink/netns.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"

struct netns {
	int fd, home;
	bool is_inside;      /* the thread; always, where the namespace is simulated */
	const char *sysctls; /* folder */
	struct netlink *netlink;
	dev_t device;
	ino_t inode;
	struct netns *next; /* of a list */
};

/* ---- inside ---------------------------------------------------------------------------------- */

int netns_within(struct netns *ns, int (*work)(void *context, struct err *err), void *context,
		 struct err *err)
{
	int code;

	if (ns->is_inside)
		return work(context, err);
	if (setns(ns->fd, CLONE_NEWNET) < 0)
		return err_sys(err, "BadNetns", "enter the network namespace");
	ns->is_inside = true;
	code = work(context, err);
	ns->is_inside = false;
	if (setns(ns->home, CLONE_NEWNET) < 0)
		abort();
	return code;
}

/* ---- netlink --------------------------------------------------------------------------------- */

struct opening {
	struct netlink *netlink;
	int protocol;
};

static int open_socket(void *context, struct err *err)
{
	const struct opening *opening = context;

	return netlink_open(opening->netlink, opening->protocol, err);
}

int netns_open_socket(struct netns *ns, int protocol, struct err *err)
{
	if (netlink_is_open(ns->netlink, protocol))
		return 0;
	return netns_within(ns, open_socket, &(struct opening){ns->netlink, protocol}, err);
}

struct netlink *netns_netlink(const struct netns *ns)
{
	return ns->netlink;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static struct netns *new_netns(const char *sysctls)
{
	struct netns *ns = mem_new(struct netns);

	*ns = (struct netns){.fd = -1, .home = -1, .netlink = netlink_new(), .sysctls = sysctls};
	return ns;
}

static void set_namespace(struct netns *ns, int fd)
{
	struct stat st = {0};

	ns->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (ns->fd >= 0)
		(void)fstat(ns->fd, &st);
	ns->device = st.st_dev;
	ns->inode = st.st_ino;
}

struct netns *netns_open_door(int fd, netlink_exchange_fn *exchange, void *ctx, const char *sysctls)
{
	struct netns *ns = new_netns(sysctls);

	set_namespace(ns, fd);
	ns->is_inside = true;
	netlink_set_door(ns->netlink, exchange, ctx);
	return ns;
}

struct netns *netns_open(int fd, struct err *err)
{
	auto_netns struct netns *ns = new_netns("/proc/sys");

	ns->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ns->home < 0) {
		(void)err_sys(err, "BadNetns", "open /proc/self/ns/net");
		return NULL;
	}
	set_namespace(ns, fd < 0 ? ns->home : fd);
	if (ns->fd < 0) {
		(void)err_sys(err, "BadNetns", "keep the network namespace open");
		return NULL;
	}
	if (ioctl(ns->fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
		(void)err_set(err, ERR_INVALID, "BadNetns", "CNI_NETNS is no network namespace");
		return NULL;
	}
	return netns_open_socket(ns, NETLINK_ROUTE, err) < 0 ? NULL : take_ptr(ns);
}

void netns_close(struct netns *ns)
{
	while (ns) {
		struct netns *next = ns->next;

		own_close_p(&ns->fd);
		own_close_p(&ns->home);
		netlink_free(ns->netlink);
		free(ns);
		ns = next;
	}
}

int netns_fd(const struct netns *ns)
{
	return ns->fd;
}

static bool is_of(const struct netns *ns, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == ns->device && st.st_ino == ns->inode;
}

bool netns_is_same(const struct netns *a, const struct netns *b)
{
	return a == b || is_of(a, b->fd);
}

struct netns *netns_keep(struct netns **list, int fd, struct err *err)
{
	struct netns *ns;

	assert(list);
	for (ns = *list; ns && !is_of(ns, fd < 0 ? ns->home : fd);)
		ns = ns->next;
	if (ns || !(ns = netns_open(fd, err)))
		return ns;
	ns->next = *list;
	*list = ns;
	return ns;
}

/* ---- sysctl ---------------------------------------------------------------------------------- */

struct sysctl {
	const char *folder, *path;
	char *read;
	size_t size;
	const char *write;
};

static int do_sysctl(void *context, struct err *err)
{
	struct sysctl *sysctl = context;
	auto_free char *path = str_below(sysctl->folder, sysctl->path);
	auto_close int fd = open(path, (sysctl->write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "StepRefused", "open %s", path);
	if (sysctl->write) {
		if (write(fd, sysctl->write, strlen(sysctl->write)) < 0)
			return err_sys(err, "StepRefused", "write %s to %s", sysctl->write, path);
		return 0;
	}
	n = read(fd, sysctl->read, sysctl->size - 1);
	if (n < 0)
		return err_sys(err, "StepRefused", "read %s", path);
	sysctl->read[n] = '\0';
	sysctl->read[strcspn(sysctl->read, "\n")] = '\0';
	return 0;
}

int netns_read_sysctl(struct netns *ns, const char *path, char *ret, size_t size, struct err *err)
{
	assert(size > 1);
	return netns_within(ns, do_sysctl,
			    &(struct sysctl){ns->sysctls, path, .read = ret, .size = size}, err);
}

int netns_write_sysctl(struct netns *ns, const char *path, const char *value, struct err *err)
{
	return netns_within(ns, do_sysctl, &(struct sysctl){ns->sysctls, path, .write = value},
			    err);
}
