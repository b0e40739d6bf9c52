// SPDX-License-Identifier: Apache-2.0
/*
 * Three sources that know nothing of each other: a child that enters all network namespaces and
 * prints a line per interface, open files in /proc, and notes of CNI plugins and claims on the
 * disk. evidence.c and the observed document put them together; a source that fails says so.
 */
#include "nodeagent/host/holders.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/netns_life.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/namespaces.h"
#include "nodeagent/host/nextboot.h"
#include "nodeagent/model/dra_state.h"
#include "nodeagent/netlink/message.h"
#include "nodeagent/netlink/rtnl_link.h"

/* Before the index of an interface, and before words of a failure, where else is a PCI address. */
#define UPPER  '@'
#define FAILED '!'

/* ---- network namespaces ---------------------------------------------------------------------- */

struct namespace
{
	int fd;
	char *name;
};

struct namespaces {
	struct namespace *items;
	size_t n;
};

static void namespaces_done(struct namespaces *list)
{
	for (size_t i = 0; i < list->n; i++) {
		(void)close(list->items[i].fd);
		free(list->items[i].name);
	}
	free(list->items);
}

static char *process_name(const struct host *host, const char *pid)
{
	struct sysfs_text text;
	char path[64];

	(void)snprintf(path, sizeof(path), "proc/%.20s/comm", pid);
	return str_printf("%s (pid %s)", sysfs_read(host, path, &text) ? text.text : "process",
			  pid);
}

/* "proc/42/ns/net" is shown as the process that has it. */
static char *namespace_name(const struct host *host, const char *path)
{
	auto_free char *pid = NULL;

	if (!str_starts(path, "proc/"))
		return str_printf("/%s", path);
	path += strlen("proc/");
	pid = str_ndup(path, strcspn(path, "/"));
	return process_name(host, pid);
}

struct found {
	const struct host *host;
	struct namespaces *list;
	struct err failed;
};

static bool add_namespace(void *arg, const struct host_namespace *namespace)
{
	struct found *found = arg;
	struct namespaces *list = found->list;
	struct statfs fs;
	int fd;

	/* A file that a runtime left without its mount: processes in the namespace are found. */
	if (fstatfs(namespace->fd, &fs) == 0 && fs.f_type != NSFS_MAGIC)
		return true;
	fd = fcntl(namespace->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		(void)err_sys(&found->failed, "HostUnreadable", "network namespace /%s",
			      namespace->path);
		return false;
	}
	list->items = mem_realloc(list->items, (list->n + 1) * sizeof(*list->items));
	list->items[list->n++] =
		(struct namespace){fd, namespace_name(found->host, namespace->path)};
	return true;
}

/* The number that our namespace has in the one where the socket is; negative: none. */
static int own_nsid(struct netlink *netlink, int own, int *ret, struct err *err)
{
	struct rtgenmsg header = {.rtgen_family = AF_UNSPEC};
	auto_nl_msg struct nl_msg *msg = netlink_request(RTM_GETNSID, 0, &header, sizeof(header));
	struct nlattr *attrs[NETNSA_MAX + 1];
	auto_strbuf struct strbuf answer = {0};
	const struct nlmsghdr *message;
	uint32_t number;
	size_t at = 0;

	netlink_put_u32(msg, NETNSA_FD, (uint32_t)own);
	if (netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return -1;
	message = netlink_next(answer.data, answer.len, &at);
	if (!message || message->nlmsg_type != RTM_NEWNSID ||
	    !netlink_parse(message, sizeof(header), attrs, NETNSA_MAX) ||
	    !netlink_u32(attrs[NETNSA_NSID], &number))
		return err_set(err, ERR_HOST, "HostUnreadable", "the kernel tells no nsid");
	*ret = (int)number;
	return 0;
}

/* Kinds of which the kernel makes pairs: the number below one is that of its other end. */
static bool is_end_of_pair(const struct rtnl_interface *interface)
{
	return str_eq(interface->kind, "veth") || str_eq(interface->kind, "netkit");
}

/* In the child, in the namespace. */
static int visit_namespace(int to, size_t number, const struct namespace *namespace, int own,
			   struct err *err)
{
	auto_interfaces struct rtnl_interfaces list = {0};
	auto_netlink struct netlink *netlink = netlink_new();
	bool is_asked = false;
	int nsid;

	if (setns(namespace->fd, CLONE_NEWNET) < 0)
		return err_sys(err, "NamespaceRefused", "enter it");
	if (rtnl_list(netlink, &list, err) < 0)
		return -1;
	/* One line per function that is here. */
	for (size_t i = 0; i < list.n; i++)
		if (list.items[i].parent[0])
			(void)dprintf(to, "%zu %s\n", number, list.items[i].parent);
	/* In the child, too: interfaces here that lie on one of ours. */
	nsid = -1;
	for (size_t i = 0; i < list.n; i++) {
		const struct rtnl_interface *interface = &list.items[i];

		if (interface->outer <= 0 || is_end_of_pair(interface))
			continue;
		if (!is_asked && own_nsid(netlink, own, &nsid, err) < 0)
			return -1;
		is_asked = true;
		if (nsid >= 0 && interface->outer_nsid == nsid)
			(void)dprintf(to, "%zu %c%d %s %s\n", number, UPPER, interface->outer,
				      interface->kind, interface->name);
	}
	return 0;
}

/* The child: its last line is FAILED where something could not be seen, and says what. */
static int visit_all(int to, const struct namespaces *namespaces, int own)
{
	for (size_t i = 0; i < namespaces->n; i++) {
		struct err err = {0};

		if (visit_namespace(to, i, &namespaces->items[i], own, &err) == 0)
			continue;
		(void)dprintf(to, "%zu %c%.80s\n", i, FAILED, err.text);
		return 1;
	}
	return 0;
}

/* "12 macvlan net1". In its own namespace a pod may call an interface anything. */
static void take_upper(const char *namespace, char *text, json_t *ret)
{
	char *blank = strchr(text, ' ');
	int64_t index;

	if (!blank)
		return;
	*blank++ = '\0';
	if (str_to_int(text, 1, INT32_MAX, &index) && !json_object_get(ret, text))
		json_put(ret, text, json_fmt("%s in %s", blank, namespace));
}

static void take_child_line(const struct namespaces *namespaces, char *line, json_t *ret,
			    json_t *uppers, struct err *failed)
{
	char *blank = strchr(line, ' ');
	int64_t number;

	if (!blank)
		return;
	*blank++ = '\0';
	blank[strcspn(blank, "\n")] = '\0';
	if (!str_to_int(line, 0, (int64_t)namespaces->n - 1, &number))
		return;
	if (*blank == FAILED)
		(void)err_set(failed, ERR_HOST, "HostUnreadable", "network namespace %.64s: %s",
			      namespaces->items[number].name, blank + 1);
	else if (*blank == UPPER)
		take_upper(namespaces->items[number].name, blank + 1, uppers);
	else if (pci_address_is_valid(blank))
		json_put_str(ret, blank, namespaces->items[number].name);
}

/* Entering a namespace moves the whole process, so a child does it. */
static int ask_child(const struct namespaces *namespaces, int own, json_t *ret, json_t *uppers,
		     struct err *err)
{
	auto_fclose FILE *in = NULL;
	struct err failed = {0};
	int pipe_fds[2], status = -1;
	char line[256];
	pid_t child;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_sys(err, "HostUnreadable", "make a pipe");
	in = fdopen(pipe_fds[0], "r");
	child = in ? child_fork(&(struct child_config){.dies_by = SIGKILL}) : -1;
	if (child == 0)
		_exit(visit_all(pipe_fds[1], namespaces, own));
	(void)close(pipe_fds[1]);
	if (!in)
		(void)close(pipe_fds[0]);
	if (child < 0)
		return err_sys(err, "HostUnreadable", "start a process");
	while (fgets(line, sizeof(line), in))
		take_child_line(namespaces, line, ret, uppers, &failed);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (status == 0 && !failed.class)
		return 0;
	if (!failed.class)
		(void)err_set(&failed, ERR_HOST, "HostUnreadable", "the look was cut off");
	*err = failed;
	return -1;
}

json_t *holders_namespaces(const struct host *host, json_t **ret_uppers, struct err *err)
{
	auto_call(namespaces_done) struct namespaces namespaces = {0};
	auto_close int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	json_auto_t *ret = json_object(), *uppers = json_object();
	struct found found = {.host = host, .list = &namespaces};
	struct err why = {0};

	assert(ret_uppers);
	if (own < 0)
		(void)err_sys(&why, "HostUnreadable", "our own network namespace");
	else if (host_namespaces(host, add_namespace, &found, &why) == 0 && found.failed.class)
		why = found.failed;
	if (!why.class &&
	    (namespaces.n == 0 || ask_child(&namespaces, own, ret, uppers, &why) == 0)) {
		*ret_uppers = take_ptr(uppers);
		return take_ptr(ret);
	}
	if (err)
		*err = why;
	(void)err_in(err, "look at network namespaces");
	return NULL;
}

/* ---- open files ------------------------------------------------------------------------------ */

/* In its own mounts a process may call a file anything; a key is UTF-8. */
static void add_open_file(const struct host *host, const char *pid, const char *path, json_t *ret)
{
	json_auto_t *key = json_fmt("%s", path);
	auto_free char *name = NULL;

	if (json_object_get(ret, json_string_value(key)))
		return;
	name = process_name(host, pid);
	json_put_str(ret, json_string_value(key), name);
}

/* A process may end meanwhile. */
static int add_files_of(const struct host *host, const char *pid, json_t *ret, struct err *err)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *file;
	char folder[48];
	int fd;

	(void)snprintf(folder, sizeof(folder), "proc/%s/fd", pid);
	fd = root_open(host->root, folder, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ESRCH))
		return 0;
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return err_sys(err, "HostUnreadable", "open files of process %.20s", pid);
	while ((file = readdir(dir))) {
		char target[128];
		ssize_t n = readlinkat(dirfd(dir), file->d_name, target, sizeof(target) - 1);

		if (n < 0)
			fs_proc_link_errno(dirfd(dir), file->d_name);
		/* The dots are not links; a file may be closed meanwhile. */
		if (n < 0 && errno != EINVAL && errno != ENOENT && errno != ESRCH)
			return err_sys(err, "HostUnreadable", "open files of process %.20s", pid);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (!str_starts(target, "/dev/vfio/") && !str_starts(target, "/dev/uio") &&
		    !str_starts(target, "/dev/infiniband/") && !str_starts(target, "/dev/ptp"))
			continue;
		add_open_file(host, pid, target, ret);
	}
	return 0;
}

json_t *holders_files(const struct host *host, struct err *err)
{
	json_auto_t *processes = sysfs_list(host, "proc"), *ret = json_object();
	json_t *name;
	char own[16];
	size_t i;

	/* Without the host's /proc nothing is known of its processes. */
	if (!processes || !json_list_has(processes, "1")) {
		errno = processes ? ENOENT : errno;
		(void)err_sys(err, "HostUnreadable", "list processes");
		return NULL;
	}
	(void)snprintf(own, sizeof(own), "%d", (int)getpid());
	json_array_foreach (processes, i, name) {
		const char *pid = json_string_value(name);

		/* The first process may be closed to us; it supervises and holds no device. */
		if (host_is_process(pid) && !str_eq(pid, own) && !str_eq(pid, "1") &&
		    add_files_of(host, pid, ret, err) < 0)
			return NULL;
	}
	return take_ptr(ret);
}

/* ---- notes of CNI plugins -------------------------------------------------------------------- */

/*
 * Ours (nodeagent/cni/state/devices.h): written before the VF is changed, and there until it is put
 * back; the server of CNI plugins itself finds sandboxes that are gone.
 */
static bool is_owned(const struct host *host, const char *vf, struct sysfs_text *ret)
{
	json_auto_t *owner = NULL;
	struct sysfs_text text, now;
	const char *boot;
	struct stat st;
	char path[96];

	(void)snprintf(path, sizeof(path), "var/lib/orbweaver/cni/devices/%s.json", vf);
	if (root_stat(host->root, path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return false;
	if (sysfs_read(host, path, &text))
		owner = json_parse(text.text, strlen(text.text), NULL);
	/* No pod's namespace outlives a boot, and a VF is recreated. */
	boot = json_str_at(owner, "boot");
	next_boot_id(host, &now);
	if (boot && now.text[0] && !str_eq(boot, now.text))
		return false;
	(void)snprintf(ret->text, sizeof(ret->text), "interface %.15s of sandbox %.64s",
		       json_str_or(json_at(owner, "ifname"), "?"),
		       json_str_or(json_at(owner, "container"), "?"));
	return true;
}

bool holders_claim(const struct host *host, const char *vf, struct sysfs_text *ret)
{
	struct netns_known known = {0};
	struct stat st;
	char path[96];

	if (is_owned(host, vf, ret))
		return true;
	(void)snprintf(path, sizeof(path), "var/lib/cni/sriov/pci/%s", vf);
	if (root_stat(host->root, path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return false;
	/* It may be on its way: the file is there before its text. */
	if (!sysfs_read(host, path, ret)) {
		(void)snprintf(ret->text, sizeof(ret->text), "somebody (/%s cannot be read)", path);
		return true;
	}
	known.path = ret->text;
	return ret->text[0] != '/' || netns_life(host->root, &known, NULL) != NETNS_GONE;
}

json_t *holders_claims(const struct host *host, struct err *err)
{
	auto_close int folder = root_open(host->root, DRA_STATE_FOLDER, O_PATH | O_DIRECTORY, 0);
	json_auto_t *state = NULL, *prepared = NULL;
	auto_strbuf struct strbuf text = {0};
	struct err why = {.sys = errno};
	json_t *ret = json_object(), *devices;
	const char *resource;

	if (folder >= 0 && fs_read(folder, DRA_STATE_FILE, DRA_STATE_MAX, &text, &why) == 0)
		state = json_parse(strbuf_str(&text), text.len, NULL);
	else if (why.sys == ENOENT || why.sys == ENOTDIR)
		return ret;
	if (!state || dra_state_check(state, NULL) < 0) {
		json_decref(ret);
		(void)err_set(err, ERR_HOST, "HostUnreadable",
			      "/" DRA_STATE_FOLDER "/" DRA_STATE_FILE " cannot be read");
		return NULL;
	}
	prepared = dra_prepared(state);
	json_each (prepared, resource, devices)
		json_object_update_missing(ret, devices);
	return ret;
}

bool holders_prepared(const struct host *host, const char *vf, struct sysfs_text *ret)
{
	struct err why = {0};
	json_auto_t *claims = holders_claims(host, &why);
	const char *holder = json_str_at(claims, vf);

	if (!claims) {
		(void)snprintf(ret->text, sizeof(ret->text), "nobody knows whom (%.200s)",
			       why.text);
		return true;
	}
	(void)snprintf(ret->text, sizeof(ret->text), "%s", holder ? holder : "");
	return holder != NULL;
}
