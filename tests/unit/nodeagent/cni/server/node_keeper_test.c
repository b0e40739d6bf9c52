// SPDX-License-Identifier: Apache-2.0
/*
 * When workers look at the runtime's folders: after each change, and not while nothing changes.
 * Loop, supervisor of workers and workers are real; the folders are a test's.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/plan/meta_conf.h"
#include "nodeagent/cni/plugin/plugin.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/cni/server/node_keeper.h"
#include "nodeagent/cni/worker/cni_worker.h"
#include "nodeagent/process/orders.h"
#include "tests/support/scratch.h"
#include "tests/support/until.h"
#include "tests/support/workers_stand.h"

#define CONF    "etc/cni/net.d"
#define OURS    CONF "/" META_CONF_FILE
#define BIN     "opt/cni/bin"
#define CLUSTER "{\"cniVersion\":\"0.4.0\",\"name\":\"%s\",\"plugins\":[{\"type\":\"ptp\"}]}"

enum {
	/* Longer than from look to look, whatever changes. */
	QUIET_MS = 700,
	/* The same where something else than a change is waited for. */
	LONG_MS = 4000,
	/* Less than is left until the look of the minute after a node is quiet. */
	SOON_MS = 20000,
};

#define until_soon(condition)                                                                      \
	do {                                                                                       \
		int64_t began_ms_ = clock_ms();                                                    \
		until(loop, condition);                                                            \
		assert_in_range(clock_ms() - began_ms_, 0, SOON_MS);                               \
	} while (0)

/* Seen by all processes. The supervisor is forked once, before the first loop (workers_stand.h). */
static struct {
	atomic_int workers; /* that have begun */
	char folder[256];   /* the host's root */
} * shared;

static struct loop *loop;
static struct orders *orders;
static pid_t supervisor;

struct stand {
	char *folder;
	int root;
	struct node_keeper *keeper;
	bool is_used;
	json_t *networks; /* as reported last */
};

static void work(int fd, void *arg)
{
	auto_free char *program = str_below(shared->folder, "program");

	atomic_fetch_add(&shared->workers, 1);
	cni_worker_run(fd, &(struct cni_worker_config){.host_root = shared->folder,
						       .plugin_types = "*",
						       .bin_dir = "/" BIN,
						       .program = program,
						       .conf_dir = "/" CONF});
}

static json_t *on_usage(void *arg)
{
	const struct stand *s = arg;

	return json_pack("{s:b, s:b, s:s}", "isUsed", s->is_used, "isMetaUsed", s->is_used, "user",
			 "lab/a");
}

static void on_said(void *arg, const json_t *networks)
{
	struct stand *s = arg;

	json_decref(s->networks);
	s->networks = json_incref((json_t *)networks);
}

static void on_supervisor_lost(void *arg)
{
}

static void put(const struct stand *s, const char *path, const char *text)
{
	assert_int_equal(root_write_atomic(s->root, path, text, strlen(text), 0755, NULL), 0);
}

static void put_cluster(const struct stand *s, const char *name)
{
	auto_free char *text = str_printf(CLUSTER, name);

	put(s, CONF "/10-cluster.conflist", text);
}

/* Does our file carry this network? */
static bool carries(const struct stand *s, const char *name)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *conf = NULL;

	if (fs_read(s->root, OURS, 65536, &text, NULL) < 0)
		return false;
	conf = json_parse(strbuf_str(&text), text.len, NULL);
	return str_eq(json_str_at(conf, "name"), name);
}

static bool is_there(const struct stand *s, const char *path)
{
	struct stat st;

	return fstatat(s->root, path, &st, 0) == 0;
}

static int set_up_all(void **state)
{
	int fd;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	fd = workers_stand_fork_as(WORKERS_CNI, work, NULL, &supervisor);
	if (fd < 0)
		return -1;
	loop = loop_new();
	orders = orders_new(loop, fd, on_supervisor_lost, NULL);
	return 0;
}

static int tear_down_all(void **state)
{
	orders_free(orders);
	loop_free(loop);
	(void)waitpid(supervisor, NULL, 0);
	return munmap(shared, sizeof(*shared));
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	s->folder = scratch_new();
	(void)snprintf(shared->folder, sizeof(shared->folder), "%s", s->folder);
	s->root = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(s, "program", PLUGIN_MARK);
	assert_int_equal(root_make_dirs(s->root, WIRE_STATE, 0700), 0);
	assert_int_equal(root_make_dirs(s->root, BIN, 0755), 0);
	put(s, BIN "/ptp", "ptp");
	atomic_store(&shared->workers, 0);
	s->keeper = node_keeper_new(&(struct node_keeper_config){
		.loop = loop, .orders = orders, .usage = on_usage, .said = on_said, .arg = s});
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	node_keeper_free(s->keeper);
	(void)close(s->root);
	json_decref(s->networks);
	scratch_free(s->folder);
	mem_free(s);
	return 0;
}

/* Nothing looks any more; how many have. */
static int until_it_is_quiet(int64_t for_ms)
{
	int workers, before = -1;

	while ((workers = atomic_load(&shared->workers)) != before) {
		before = workers;
		pass(loop, for_ms);
	}
	return workers;
}

static void begin(struct stand *s, const char *name)
{
	assert_int_equal(root_make_dirs(s->root, CONF, 0755), 0);
	put_cluster(s, name);
	node_keeper_set(s->keeper, PROFILE_AUTO);
	until(loop, carries(s, name));
}

TEST_WITH(a_change_is_seen, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s, "first");
	(void)until_it_is_quiet(QUIET_MS);
	put_cluster(s, "second");
	until_soon(carries(s, "second"));
	assert_int_equal(unlinkat(s->root, OURS, 0), 0);
	until_soon(carries(s, "second"));
	assert_int_equal(unlinkat(s->root, BIN "/sriov", 0), 0);
	until_soon(is_there(s, BIN "/sriov"));
}

TEST_WITH(no_worker_is_started_while_nothing_changes, set_up, tear_down)
{
	struct stand *s = *state;
	int workers;

	begin(s, "n");
	workers = until_it_is_quiet(2 * QUIET_MS);
	/* One for the profile, others for what that wrote, one for RDMA devices. */
	assert_in_range(workers, 2, 6);
	pass(loop, LONG_MS);
	assert_int_equal(atomic_load(&shared->workers), workers);
}

TEST_WITH(a_program_that_writes_all_the_time_does_not_have_a_worker_for_each, set_up, tear_down)
{
	struct stand *s = *state;
	int64_t began_ms;
	int workers, writes = 0;

	begin(s, "n");
	workers = until_it_is_quiet(QUIET_MS);
	began_ms = clock_ms();
	for (; writes < 100; writes++) {
		put(s, CONF "/note", "x");
		pass(loop, 10);
	}
	workers = atomic_load(&shared->workers) - workers;
	assert_in_range(workers, 1, (clock_ms() - began_ms) / 500 + 1);
}

/* What was begun and taken back is a change, too. */
TEST_WITH(a_write_that_fails_does_not_wake_itself, set_up, tear_down)
{
	struct stand *s = *state;
	int workers;

	/* A file next to it is made first. */
	assert_int_equal(root_make_dirs(s->root, OURS "/full", 0755), 0);
	put_cluster(s, "n");
	node_keeper_set(s->keeper, PROFILE_AUTO);
	until_soon(json_is_true(json_at(s->networks, "fault")));
	workers = atomic_load(&shared->workers);
	pass(loop, 2 * LONG_MS);
	workers = atomic_load(&shared->workers) - workers;
	assert_in_range(workers, 2, 4);
	assert_int_equal(unlinkat(s->root, OURS "/full", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(s->root, OURS, AT_REMOVEDIR), 0);
	until_soon(carries(s, "n"));
}

TEST_WITH(a_folder_that_does_not_exist_yet_is_waited_for, set_up, tear_down)
{
	struct stand *s = *state;

	node_keeper_set(s->keeper, PROFILE_AUTO);
	until_soon(s->networks != NULL);
	(void)until_it_is_quiet(QUIET_MS);
	assert_int_equal(mkdirat(s->root, "etc", 0755), 0);
	(void)until_it_is_quiet(QUIET_MS);
	assert_int_equal(root_make_dirs(s->root, CONF, 0755), 0);
	put_cluster(s, "late");
	until_soon(carries(s, "late"));
}

TEST_WITH(a_folder_that_is_replaced_is_followed, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s, "first");
	(void)until_it_is_quiet(QUIET_MS);
	/* The folder itself. */
	assert_int_equal(renameat(s->root, CONF, s->root, "etc/cni/away"), 0);
	assert_int_equal(mkdirat(s->root, CONF, 0755), 0);
	put_cluster(s, "second");
	until_soon(carries(s, "second"));
	(void)until_it_is_quiet(QUIET_MS);
	put_cluster(s, "third");
	until_soon(carries(s, "third"));
	(void)until_it_is_quiet(QUIET_MS);
	/* One above it. */
	assert_int_equal(renameat(s->root, "etc/cni", s->root, "etc/away"), 0);
	assert_int_equal(root_make_dirs(s->root, CONF, 0755), 0);
	put_cluster(s, "fourth");
	until_soon(carries(s, "fourth"));
	(void)until_it_is_quiet(QUIET_MS);
	put_cluster(s, "fifth");
	until_soon(carries(s, "fifth"));
}

/* That is not a change in the folders. */
TEST_WITH(what_waits_for_a_pod_goes_when_the_pod_has_gone, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s, "n");
	s->is_used = true;
	node_keeper_set(s->keeper, PROFILE_DEVICES);
	until_soon(str_eq(json_str_at(s->networks, "reason"), "PluginsInUse"));
	s->is_used = false;
	until_soon(!is_there(s, BIN "/sriov"));
}

TEST_GROUP(set_up_all, tear_down_all)
