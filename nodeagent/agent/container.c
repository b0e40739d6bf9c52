// SPDX-License-Identifier: Apache-2.0
/*
 * Facts from /proc and the host's root, as the supervisor sees them before it forks anything; words
 * from the facts. The agent's process composes the findings, since memory depends on the profile.
 */
#include "nodeagent/agent/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* Thousands of mounts. */
#define MOUNTINFO_MAX (16U << 20)

/* ---- mounts ---------------------------------------------------------------------------------- */

/* As the kernel writes a path there: blanks and backslashes in octal. New. */
static char *escape(const char *path)
{
	auto_strbuf struct strbuf out = {0};
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (size_t i = 0; i < len; i++) {
		if (strchr(" \t\n\\", path[i]))
			strbuf_addf(&out, "\\%03o", (unsigned char)path[i]);
		else
			strbuf_addc(&out, path[i]);
	}
	return strbuf_take(&out);
}

/* Is `point` (of len bytes) the path or a folder above it? */
static bool holds(const char *point, size_t len, const char *path)
{
	if (len == 1 && *point == '/')
		return true;
	return strncmp(point, path, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/*
 * One line: "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw". *ret_point is field
 * 5; the optional fields are those up to the hyphen.
 */
static bool read_line(const char *line, const char **ret_point, size_t *ret_len, bool *ret_private)
{
	const char *end = strchr(line, '\n'), *fields = line, *hyphen;

	for (int i = 0; i < 4 && fields; i++) {
		fields = strchr(fields, ' ');
		fields += fields != NULL;
	}
	if (!fields || (end && fields > end))
		return false;
	*ret_point = fields;
	*ret_len = strcspn(fields, " \n");
	hyphen = strstr(fields, " - ");
	if (!hyphen || (end && hyphen > end))
		return false;
	*ret_private = true;
	for (const char *at = fields + *ret_len; at < hyphen; at++)
		if (str_starts(at, " shared:") || str_starts(at, " master:"))
			*ret_private = false;
	return true;
}

/* The length of the mount point that holds the path, 0: none. */
static size_t find_mount(const char *mountinfo, const char *path, bool *ret_private)
{
	size_t longest = 0;

	for (const char *line = mountinfo; line && *line;
	     line = strchr(line, '\n'), line += line != NULL) {
		const char *point;
		size_t len;
		bool is_private;

		/* A later one covers an earlier one at the same place. */
		if (!read_line(line, &point, &len, &is_private) || len < longest ||
		    !holds(point, len, path))
			continue;
		longest = len;
		*ret_private = is_private;
	}
	return longest;
}

bool container_is_private(const char *mountinfo, const char *path)
{
	auto_free char *escaped = escape(path);
	bool is_private = true;

	(void)find_mount(mountinfo, escaped, &is_private);
	return is_private;
}

bool container_is_mount(const char *mountinfo, const char *path)
{
	auto_free char *escaped = escape(path);
	bool is_private;

	return find_mount(mountinfo, escaped, &is_private) == strlen(escaped);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* The whole file as text, new; "" where there is none. */
static char *read_text(const char *path, size_t max)
{
	auto_strbuf struct strbuf text = {0};

	(void)fs_read(AT_FDCWD, path, max, &text, NULL);
	return str_dup(strbuf_str(&text));
}

static bool lacks_openat2(int root)
{
	auto_close int fd = root_open(root, ".", O_PATH | O_DIRECTORY, 0);

	return fd < 0 && errno == ENOSYS;
}

/* By the host's own /proc: there our name is the number that the host has for us. */
static bool has_own_pids(int root)
{
	auto_free char *self = root_read_link(root, "proc/self");
	int64_t pid;

	return self && str_to_int(self, 1, INT32_MAX, &pid) && pid != getpid();
}

/* Of the host's first process, found by the host's own /proc. */
static bool has_own_network(int root)
{
	struct stat host, own;

	return stat("/proc/self/ns/net", &own) == 0 &&
	       fstatat(root, "proc/1/ns/net", &host, 0) == 0 && host.st_ino != own.st_ino;
}

static bool is_filtered(void)
{
	auto_free char *status = read_text("/proc/self/status", 65536);
	const char *line = strstr(status, "\nSeccomp:");

	/* "Seccomp:\t2" */
	return line && line[strcspn(line + 1, "0123456789") + 1] > '0';
}

static int64_t descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max > INT64_MAX)
		return 0;
	return (int64_t)limit.rlim_max;
}

/* As a container with a cgroup namespace sees its own, version 2 and version 1. */
static int64_t memory(void)
{
	static const char *const files[] = {"/sys/fs/cgroup/memory.max",
					    "/sys/fs/cgroup/memory/memory.limit_in_bytes"};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *text = read_text(files[i], 64);
		int64_t bytes;

		/* "max", or a number that no machine has: no limit. */
		if (str_to_int(str_trim(text), 1, INT64_MAX, &bytes))
			return bytes;
	}
	return 0;
}

struct container_facts container_look(const char *host_root, const char *kubelet_dir)
{
	auto_free char *mountinfo = read_text("/proc/self/mountinfo", MOUNTINFO_MAX);
	auto_close int root = open(host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct container_facts facts = {0};

	if (root < 0 || str_eq(host_root, "/") || !container_is_mount(mountinfo, host_root))
		return facts;
	facts.is_root_private = container_is_private(mountinfo, host_root);
	facts.is_kubelet_private = kubelet_dir && container_is_private(mountinfo, kubelet_dir);
	facts.lacks_openat2 = lacks_openat2(root);
	facts.has_own_pids = has_own_pids(root);
	facts.has_own_network = !facts.has_own_pids && has_own_network(root);
	facts.is_filtered = is_filtered();
	facts.descriptors = descriptors();
	facts.memory = memory();
	return facts;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Takes the message. */
static void add(json_t *list, bool is_missing, const char *reason, json_t *message)
{
	json_auto_t *text = message;

	if (is_missing)
		json_array_append_new(list,
				      json_pack("{s:s, s:O}", "reason", reason, "message", text));
}

static void add_private(json_t *list, bool is_private, const char *path)
{
	add(list, is_private, "MountPrivate",
	    json_fmt("volumeMount %.90s has no mountPropagation: HostToContainer; write it in the "
		     "agent's DaemonSet. Without it a mount that the node ends stays in the "
		     "agent's container and keeps its device busy, and new mounts are not seen",
		     path));
}

json_t *container_findings(const struct container_facts *facts, const char *host_root,
			   const char *kubelet_dir, enum profile profile)
{
	static const char unfit[] = "ContainerUnfit";
	json_t *list = json_array();

	add_private(list, facts->is_root_private, host_root);
	add_private(list, facts->is_kubelet_private, kubelet_dir ? kubelet_dir : "");
	add(list, facts->lacks_openat2, unfit,
	    json_fmt("no path below --host-root %.128s can be opened: openat2(2) is missing; use "
		     "Linux 5.6 or later, and seccompProfile Unconfined",
		     host_root));
	add(list, facts->has_own_pids, unfit,
	    json_fmt("the agent does not see the node's processes, so that devices that they use "
		     "are not known; write hostPID: true in the agent's DaemonSet"));
	add(list, facts->has_own_network, unfit,
	    json_fmt("the agent is not in the node's network namespace, so that it does not see "
		     "the NICs; write hostNetwork: true in the agent's DaemonSet"));
	add(list, facts->is_filtered, unfit,
	    json_fmt("a seccomp profile filters the agent's system calls, so that mount(2) and "
		     "setns(2) may fail; write seccompProfile: { type: Unconfined } in the "
		     "agent's DaemonSet"));
	add(list, facts->descriptors && facts->descriptors < CONTAINER_DESCRIPTORS, unfit,
	    json_fmt("the agent may have %lld files open, so that CNI calls of many pods wait for "
		     "each other; set LimitNOFILE of the container runtime's unit to %d or more",
		     (long long)facts->descriptors, CONTAINER_DESCRIPTORS));
	add(list, profile != PROFILE_DEVICES && facts->memory && facts->memory < CONTAINER_MEMORY,
	    unfit,
	    json_fmt("profile %s, and a memory limit of %lld bytes: plugins of other programs run "
		     "in the agent's container, and the kernel ends all of it beyond the limit; "
		     "set limits.memory of the agent's DaemonSet to %dMi",
		     profile_name(profile), (long long)facts->memory, CONTAINER_MEMORY >> 20));
	return list;
}
