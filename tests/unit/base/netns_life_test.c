// SPDX-License-Identifier: Apache-2.0
/* Which network namespaces count as gone: as root. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/netns_life.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "tests/support/scratch.h"

/* A host's root with the processes of this machine, and a pod's process. */
struct stand {
	char *folder, *proc, *path;
	int root;
	pid_t pod;
	struct stat st;
};

static char *below(const struct stand *s, const char *path)
{
	return str_below(s->folder, path);
}

static int set_up(void **state)
{
	struct stand *s = calloc(1, sizeof(*s));
	auto_free char *run = NULL;

	assert_non_null(s);
	*state = s;
	s->folder = scratch_new();
	s->proc = below(s, "proc");
	run = below(s, "run");
	assert_int_equal(mkdir(s->proc, 0755), 0);
	assert_int_equal(mkdir(run, 0755), 0);
	s->pod = fork();
	if (s->pod == 0) {
		(void)pause();
		_exit(0);
	}
	s->path = str_printf("/proc/%d/ns/net", (int)s->pod);
	assert_int_equal(stat("/proc/self/ns/net", &s->st), 0);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("/proc", s->proc, NULL, MS_BIND, NULL) < 0)
		s->proc[0] = '\0';
	/* In the mount namespace that this is by now. */
	s->root = open(s->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static void end_pod(struct stand *s)
{
	if (s->pod <= 0)
		return;
	(void)kill(s->pod, SIGKILL);
	(void)waitpid(s->pod, NULL, 0);
	s->pod = 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	end_pod(s);
	if (s->proc[0])
		(void)umount2(s->proc, MNT_DETACH);
	(void)close(s->root);
	scratch_free(s->folder);
	free(s->proc);
	free(s->path);
	free(s);
	return 0;
}

static struct netns_known known_of(const struct stand *s, const char *path)
{
	return (struct netns_known){.path = path,
				    .device = s->st.st_dev,
				    .inode = s->st.st_ino,
				    .boot = "this",
				    .boot_now = "this"};
}

/* cri-dockerd, and CRI-O without manage_ns_lifecycle, name a pod's namespace by its process. */
TEST_WITH(a_process_s_namespace_exists_as_long_as_the_process, set_up, tear_down)
{
	struct stand *s = *state;
	const struct netns_known known = known_of(s, s->path);
	auto_close int fd = -1;
	struct stat st;

	if (!s->proc[0])
		skip();
	assert_int_equal(netns_life(s->root, &known, &fd), NETNS_EXISTS);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, s->st.st_ino);
	end_pod(s);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_GONE);
}

TEST_WITH(a_link_that_leads_to_a_process_is_followed, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *link = below(s, "run/c1"), *second = below(s, "run/c2");
	const struct netns_known known = known_of(s, "/run/c2");

	if (!s->proc[0])
		skip();
	assert_int_equal(symlink(s->path, link), 0);
	assert_int_equal(symlink("c1", second), 0);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_EXISTS);
	end_pod(s);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_GONE);
}

/* procfs says EACCES, too, when the process ends between look-up and use. */
TEST_WITH(a_process_that_ends_while_its_namespace_is_opened_is_gone, set_up, tear_down)
{
	const struct stand *s = *state;
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);

	if (!s->proc[0])
		skip();
	for (int i = 0; i < 1000; i++) {
		pid_t child = fork();
		auto_free char *path = str_printf("/proc/%d/ns/net", (int)child);
		const struct netns_known known = known_of(s, path);
		enum netns_life life;

		if (child == 0)
			_exit(0);
		do
			life = netns_life(s->root, &known, NULL);
		while (life == NETNS_EXISTS);
		assert_int_equal(life, NETNS_GONE);
	}
	(void)signal(SIGCHLD, before);
}

TEST_WITH(another_namespace_in_its_place_means_that_it_is_gone, set_up, tear_down)
{
	const struct stand *s = *state;
	struct netns_known known = known_of(s, s->path);

	if (!s->proc[0])
		skip();
	known.inode++;
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_GONE);
}

TEST_WITH(none_outlives_its_boot, set_up, tear_down)
{
	const struct stand *s = *state;
	struct netns_known known = known_of(s, s->path);

	if (!s->proc[0])
		skip();
	known.boot = "an earlier one";
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_GONE);
	/* The kernel's word for this boot cannot be read: the path decides. */
	known.boot_now = "";
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_EXISTS);
	known.boot_now = NULL;
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_EXISTS);
}

TEST_WITH(a_path_that_leads_nowhere_is_gone, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *file = below(s, "run/file");
	struct netns_known known = known_of(s, "/run/netns/c1");

	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_GONE);
	assert_int_equal(fs_write_atomic(AT_FDCWD, file, "", 0, 0600, NULL), 0);
	known.path = "/run/file/c1";
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_GONE);
}

/* A mount that was not propagated to the container: what it hides is seen. */
TEST_WITH(a_plain_file_is_unknown, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *file = below(s, "run/c1");
	const struct netns_known known = known_of(s, "/run/c1");

	assert_int_equal(fs_write_atomic(AT_FDCWD, file, "", 0, 0600, NULL), 0);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
}

TEST_WITH(a_root_without_processes_says_nothing_of_them, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *link = below(s, "run/c1");
	struct netns_known known = known_of(s, s->path);

	if (s->proc[0])
		assert_int_equal(umount2(s->proc, MNT_DETACH), 0);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
	assert_int_equal(symlink(s->path, link), 0);
	known.path = "/run/c1";
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
}

TEST_WITH(every_other_error_is_unknown, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *loop = below(s, "run/loop"), *escape = below(s, "run/escape");
	struct netns_known known = known_of(s, "/run/loop");
	struct rlimit limit, none;

	assert_int_equal(symlink("loop", loop), 0);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
	known.path = NULL;
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
	known.path = "";
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
	/* Even of a path that leads nowhere, when descriptors are out. */
	known.path = "/run/netns/c1";
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_GONE);
	if (!s->proc[0])
		return;
	/* A magic link that is not in procfs is followed to nothing but paths below the root. */
	known.path = "/run/escape";
	assert_int_equal(symlink("/proc/self/root/etc", escape), 0);
	assert_int_equal(netns_life(s->root, &known, NULL), NETNS_UNKNOWN);
}
