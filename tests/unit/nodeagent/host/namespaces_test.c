// SPDX-License-Identifier: Apache-2.0
/* Visits to network namespaces of the kernel that runs this: as root. */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host/ethtool.h"
#include "nodeagent/host/evidence.h"
#include "nodeagent/host/holders.h"
#include "nodeagent/host/namespaces.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/netlink/rtnl_link.h"

/* A process in a namespace of its own. */
struct pod {
	struct host *host;
	pid_t pid;
	char path[64];
	ino_t inode;
};

static int set_up(void **state)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	int ready[2];
	struct stat st;
	char byte, full[80];

	assert_non_null(pod);
	*state = pod;
	pod->host = host_open("/", NULL);
	assert_non_null(pod->host);
	assert_int_equal(pipe(ready), 0);
	pod->pid = fork();
	if (pod->pid == 0) {
		bool is_apart = unshare(CLONE_NEWNET) == 0;

		(void)!write(ready[1], is_apart ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	if (byte == 'n')
		return 0;
	(void)snprintf(pod->path, sizeof(pod->path), "proc/%d/ns/net", (int)pod->pid);
	(void)snprintf(full, sizeof(full), "/%s", pod->path);
	assert_int_equal(stat(full, &st), 0);
	pod->inode = st.st_ino;
	return 0;
}

static int tear_down(void **state)
{
	struct pod *pod = *state;

	if (pod->pid > 0) {
		(void)kill(pod->pid, SIGKILL);
		(void)waitpid(pod->pid, NULL, 0);
	}
	host_close(pod->host);
	free(pod);
	return 0;
}

/* Descriptors of ours that would keep the namespace: itself, or a socket made in it. */
static int count_descriptors(void)
{
	auto_closedir DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	return n;
}

static int count_interfaces(struct host *host, void *arg, struct err *err)
{
	auto_interfaces struct rtnl_interfaces list = {0};
	char bus[ETHTOOL_BUS_SIZE];

	if (rtnl_list(host->netlink, &list, err) < 0)
		return -1;
	/* A socket that is made there, and closed. */
	assert_false(ethtool_bus(host, "lo", bus));
	*(size_t *)arg = list.n;
	return 0;
}

TEST_WITH(sees_what_is_there_keeps_nothing_open_and_comes_back, set_up, tear_down)
{
	struct pod *pod = *state;
	struct stat before, after;
	size_t inside = 0, outside = 0;
	struct err err = {0};
	int open_before;

	if (!pod->inode)
		skip();
	assert_int_equal(stat("/proc/self/ns/net", &before), 0);
	assert_int_equal(count_interfaces(pod->host, &outside, &err), 0);
	open_before = count_descriptors();
	assert_int_equal(
		host_within_path(pod->host, pod->path, pod->inode, count_interfaces, &inside, &err),
		0);
	assert_int_equal(inside, 1);
	assert_int_equal(stat("/proc/self/ns/net", &after), 0);
	assert_true(before.st_ino == after.st_ino);
	/* The host's socket is made when it is needed again. */
	assert_true(count_descriptors() <= open_before);
	assert_int_equal(count_interfaces(pod->host, &inside, &err), 0);
	assert_int_equal(inside, outside);
}

struct search {
	ino_t inode;
	int n;
};

static bool meet(void *arg, const struct host_namespace *namespace)
{
	struct search *search = arg;

	search->n += namespace->inode == search->inode;
	return true;
}

TEST_WITH(finds_each_namespace_once, set_up, tear_down)
{
	struct pod *pod = *state;
	struct search theirs = {pod->inode, 0}, ours = {0};
	int open_before = count_descriptors();
	struct stat own;

	if (!pod->inode)
		skip();
	assert_int_equal(stat("/proc/self/ns/net", &own), 0);
	ours.inode = own.st_ino;
	assert_int_equal(host_namespaces(pod->host, meet, &theirs, NULL), 0);
	assert_int_equal(host_namespaces(pod->host, meet, &ours, NULL), 0);
	assert_int_equal(theirs.n, 1);
	assert_int_equal(ours.n, 0);
	assert_int_equal(count_descriptors(), open_before);
}

/* Some runtime's way: no process is in it any more, and no folder that we know has its name. */
TEST_WITH(finds_a_namespace_that_is_mounted_anywhere, set_up, tear_down)
{
	struct pod *pod = *state;
	char file[] = "/tmp/name space-XXXXXX";
	auto_free char *path = str_below("/", pod->path);
	struct search theirs = {pod->inode, 0};
	size_t inside = 0;
	auto_host struct host *host = NULL;
	struct err err = {0};

	if (!pod->inode || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	host = host_open("/", NULL);
	assert_true(close(mkstemp(file)) == 0);
	assert_int_equal(mount(path, file, NULL, MS_BIND, NULL), 0);
	(void)kill(pod->pid, SIGKILL);
	(void)waitpid(pod->pid, NULL, 0);
	pod->pid = 0;
	if (host_namespaces(host, meet, &theirs, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(
		host_within_path(host, file + 1, pod->inode, count_interfaces, &inside, &err), 0);
	assert_int_equal(umount(file), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(theirs.n, 1);
	assert_int_equal(inside, 1);
	assert_int_equal(
		host_within_path(host, file + 1, pod->inode, count_interfaces, &inside, &err), -1);
	assert_string_equal(err.reason, "BadRequest");
}

/* docs/host.md: whatever cannot be known counts as use. */
TEST_WITH(what_cannot_be_looked_at_for_want_of_descriptors_is_an_error, set_up, tear_down)
{
	struct pod *pod = *state;
	struct rlimit limit, few;
	json_auto_t *uppers = NULL, *functions = NULL, *files = NULL;
	struct err err = {0}, all = {0};
	int used = 0;

	if (!pod->inode)
		skip();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	functions = holders_namespaces(pod->host, &uppers, &err);
	assert_non_null(functions);
	files = holders_files(pod->host, &err);
	assert_non_null(files);
	json_decref(take_ptr(files));
	/* With one more each time, until it has enough: never half an answer. */
	for (rlim_t n = 3; n < 64; n++) {
		json_auto_t *few_uppers = NULL, *few_functions = NULL;

		few = (struct rlimit){n, limit.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		few_functions = holders_namespaces(pod->host, &few_uppers, &all);
		if (used == 0 && !few_functions)
			assert_string_equal(all.reason, "HostUnreadable");
		used += few_functions ? 1 : 0;
		if (few_functions)
			assert_true(json_equal(few_uppers, uppers));
	}
	assert_true(used > 0 && used < 61);
	few = (struct rlimit){3, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	files = holders_files(pod->host, &all);
	assert_null(files);
	assert_int_equal(evidence_check_vf(pod->host, "0000:3b:00.2", &all), -1);
	assert_string_equal(all.reason, "HostUnreadable");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_WITH(a_path_that_is_another_namespaces_by_now_is_refused, set_up, tear_down)
{
	struct pod *pod = *state;
	struct err err = {0};
	size_t n = 7;

	if (!pod->inode)
		skip();
	assert_int_equal(
		host_within_path(pod->host, pod->path, pod->inode + 1, count_interfaces, &n, &err),
		-1);
	assert_string_equal(err.reason, "NamespaceGone");
	assert_int_equal(n, 7);
}

TEST_WITH(what_is_no_namespace_is_not_entered, set_up, tear_down)
{
	struct pod *pod = *state;
	auto_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct err err = {0};
	size_t n = 7;

	assert_int_equal(host_within(pod->host, fd, count_interfaces, &n, &err), -1);
	assert_string_equal(err.reason, "NamespaceRefused");
	assert_int_equal(n, 7);
}
