// SPDX-License-Identifier: Apache-2.0
/*
 * A walk over mounts and processes that opens each namespace once, for the length of a visit, and a
 * way into one and back. counters.c and holders.c visit all; nothing here remembers a namespace,
 * since a path may be another one's a moment later.
 */
#include "nodeagent/host/namespaces.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/netns_life.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

/* More than pods fit on any node. */
#define NAMESPACES_MAX 4096

static const char *const folders[] = {"run/netns/", "run/docker/netns/"};

/* ---- finding --------------------------------------------------------------------------------- */

struct identity {
	dev_t device;
	ino_t inode;
};

struct walk {
	const struct host *host;
	bool (*visit)(void *arg, const struct host_namespace *namespace);
	void *arg;
	bool is_over;
	struct identity *seen; /* the first is ours */
	size_t n;
	struct err failed; /* the first that could not be visited */
};

static void note_failure(struct walk *walk, const char *path)
{
	if (!walk->failed.class)
		(void)err_sys(&walk->failed, "HostUnreadable", "network namespace /%s", path);
}

/* Was it not met before? */
static bool is_new(struct walk *walk, const struct stat *st)
{
	for (size_t i = 0; i < walk->n; i++)
		if (walk->seen[i].inode == st->st_ino && walk->seen[i].device == st->st_dev)
			return false;
	if (walk->n == NAMESPACES_MAX) {
		errno = E2BIG;
		note_failure(walk, "");
		return false;
	}
	walk->seen = mem_realloc(walk->seen, (walk->n + 1) * sizeof(*walk->seen));
	walk->seen[walk->n++] = (struct identity){st->st_dev, st->st_ino};
	return true;
}

static void visit_once(struct walk *walk, const char *path, int fd)
{
	struct stat st;

	/* It was there a moment ago: it, or its process, has ended. */
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ESRCH))
		return;
	if (fd < 0 || fstat(fd, &st) < 0) {
		note_failure(walk, path);
		return;
	}
	assert(!walk->is_over);
	if (!is_new(walk, &st))
		return;
	walk->is_over = !walk->visit(
		walk->arg, &(struct host_namespace){.path = path, .inode = st.st_ino, .fd = fd});
}

bool host_is_process(const char *name)
{
	return name[0] != '\0' && strlen(name) < 12 && strspn(name, "0123456789") == strlen(name);
}

/* New; NULL: there is no such folder, or it cannot be read, which counts as a failure. */
static json_t *list_folder(struct walk *walk, const char *folder)
{
	json_t *names = sysfs_list(walk->host, folder);

	if (!names && errno != ENOENT && errno != ENOTDIR)
		note_failure(walk, folder);
	return names;
}

static void meet_mounted(struct walk *walk, const char *folder)
{
	json_auto_t *names = list_folder(walk, folder);
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		auto_free char *path = str_printf("%s%s", folder, json_string_value(name));
		auto_close int fd = netns_path_open(walk->host->root, path);

		visit_once(walk, path, fd);
		if (walk->is_over)
			return;
	}
}

/* ---- mounts ---------------------------------------------------------------------------------- */

/*
 * Mounts of namespaces below the host's root, as this process sees them ("… net:[4026532621]
 * /host/run/x … - nsfs …", proc_pid_mountinfo(5)): other runtimes keep theirs where they like.
 */
struct mounts {
	FILE *file;
	char *line, *root; /* the host's, as we see it; "" for our own */
	size_t size;
};

static void mounts_done(struct mounts *mounts)
{
	own_fclose_p(&mounts->file);
	free(mounts->line);
	free(mounts->root);
}

static int mounts_open(const struct host *host, struct mounts *ret)
{
	auto_free char *own = str_printf("/proc/self/fd/%d", host->root);
	char root[PATH_MAX];
	ssize_t n = readlink(own, root, sizeof(root) - 1);

	if (n <= 0)
		return -1;
	root[n] = '\0';
	ret->root = str_dup(str_eq(root, "/") ? "" : root);
	ret->file = fopen("/proc/self/mountinfo", "re");
	return ret->file ? 0 : -1;
}

/* "\040" and such. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		unsigned int code;

		if (sscanf(from, "\\%3o", &code) == 1 && strspn(from + 1, "01234567") >= 3) {
			*to = (char)code;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* The next one's path below the host's root, borrowed; NULL: there are no more. */
static const char *mounts_next(struct mounts *mounts)
{
	while (getline(&mounts->line, &mounts->size, mounts->file) >= 0) {
		size_t len = strlen(mounts->root);
		int at = 0, end = 0;
		char *path;

		(void)sscanf(mounts->line, "%*d %*d %*s net:[%*d] %n%*s%n", &at, &end);
		if (at == 0 || end == 0 || !strstr(mounts->line + end, " - nsfs "))
			continue;
		mounts->line[end] = '\0';
		path = mounts->line + at;
		unescape(path);
		if (strncmp(path, mounts->root, len) == 0 && path[len] == '/')
			return path + len + 1;
	}
	return NULL;
}

static void meet_mounted_elsewhere(struct walk *walk)
{
	auto_call(mounts_done) struct mounts mounts = {0};
	const char *path;

	if (mounts_open(walk->host, &mounts) < 0) {
		note_failure(walk, "");
		return;
	}
	while (!walk->is_over && (path = mounts_next(&mounts))) {
		auto_close int fd = netns_path_open(walk->host->root, path);

		visit_once(walk, path, fd);
	}
}

static bool is_mounted(const struct host *host, const char *path)
{
	auto_call(mounts_done) struct mounts mounts = {0};
	const char *other;

	if (mounts_open(host, &mounts) < 0)
		return false;
	while ((other = mounts_next(&mounts)))
		if (str_eq(other, path))
			return true;
	return false;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void meet_of_processes(struct walk *walk)
{
	json_auto_t *names = list_folder(walk, "proc");
	json_t *name;
	size_t i;

	/* Without the host's /proc nothing is known of its processes. */
	if (!json_list_has(names, "1")) {
		errno = ENOENT;
		note_failure(walk, "proc");
	}
	json_array_foreach (names, i, name) {
		auto_free char *path = str_printf("proc/%s/ns/net", json_string_value(name));
		auto_close int fd = -1;

		/* The first process is in the node's namespace, ours, and may be closed to us. */
		if (!host_is_process(json_string_value(name)) ||
		    str_eq(json_string_value(name), "1"))
			continue;
		fd = netns_path_open(walk->host->root, path);
		visit_once(walk, path, fd);
		if (walk->is_over)
			return;
	}
}

int host_namespaces(const struct host *host,
		    bool (*visit)(void *arg, const struct host_namespace *namespace), void *arg,
		    struct err *err)
{
	struct walk walk = {.host = host, .visit = visit, .arg = arg};
	struct stat own;

	assert(visit);
	if (stat("/proc/self/ns/net", &own) < 0)
		return err_sys(err, "HostUnreadable", "our own network namespace");
	(void)is_new(&walk, &own);
	for (size_t i = 0; i < ARRAY_LEN(folders) && !walk.is_over; i++)
		meet_mounted(&walk, folders[i]);
	if (!walk.is_over)
		meet_mounted_elsewhere(&walk);
	if (!walk.is_over)
		meet_of_processes(&walk);
	mem_free(walk.seen);
	if (!walk.failed.class)
		return 0;
	if (err)
		*err = walk.failed;
	return -1;
}

/* ---- inside ---------------------------------------------------------------------------------- */

int host_within(struct host *host, int fd,
		int (*work)(struct host *host, void *arg, struct err *err), void *arg,
		struct err *err)
{
	auto_close int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int rc;

	assert(fd >= 0 && work);
	if (own < 0)
		return err_sys(err, "NamespaceRefused", "open our own network namespace");
	if (host->doors->enter(host->doors_ctx, fd, err) < 0)
		return -1;
	rc = work(host, arg, err);
	if (host->doors->enter(host->doors_ctx, own, NULL) < 0)
		_exit(1);
	return rc;
}

static int open_path(const struct host *host, const char *path)
{
	const char *name = strrchr(path, '/');
	char pid[16];
	int end = 0;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (str_starts(path, folders[i]) && strlen(path) > strlen(folders[i]) &&
		    name == path + strlen(folders[i]) - 1 && !str_eq(name, "/.."))
			return netns_path_open(host->root, path);
	if (sscanf(path, "proc/%11[0-9]/ns/net%n", pid, &end) == 1 && end > 0 && path[end] == '\0')
		return netns_path_open(host->root, path);
	if (is_mounted(host, path))
		return netns_path_open(host->root, path);
	errno = EINVAL;
	return -1;
}

int host_within_path(struct host *host, const char *path, uint64_t inode,
		     int (*work)(struct host *host, void *arg, struct err *err), void *arg,
		     struct err *err)
{
	auto_close int fd = open_path(host, path);
	struct stat st;

	if (fd < 0 && errno == EINVAL)
		return err_set(err, ERR_BUG, "BadRequest", "no network namespace: %.64s", path);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != inode)
		return err_set(err, ERR_TRANSIENT, "NamespaceGone",
			       "network namespace %.64s is gone", path);
	return host_within(host, fd, work, arg, err);
}
