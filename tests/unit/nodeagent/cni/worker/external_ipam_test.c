// SPDX-License-Identifier: Apache-2.0
/* Programs of others that workers run by themselves, when no plugin waits on the host: as root. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/cni/worker/attachment.h"
#include "nodeagent/cni/worker/external_ipam.h"
#include "nodeagent/cni/worker/plugin_calls.h"
#include "tests/support/scratch.h"

struct stand {
	char *folder;
	int root;
	struct sandboxes *state;
	json_t *env;
	struct program_limits limits;
	struct attachment attachment;
};

/* A program with this text, in the runtime's folder of plugins. */
static void put_program(const struct stand *s, const char *name, const char *text)
{
	assert_int_equal(fs_write_atomic(s->state->dir, name, text, strlen(text), 0755, NULL), 0);
}

static char *get(const struct stand *s, const char *name)
{
	struct strbuf text = {0};

	return fs_read(s->state->dir, name, 65536, &text, NULL) == 0 ? strbuf_take(&text) : NULL;
}

static int set_up(void **state)
{
	struct stand *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->folder = scratch_new();
	s->state = mem_new(struct sandboxes);
	s->state->dir = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->env = json_pack("{s:s, s:s}", "CNI_PATH", s->folder, "FOLDER", s->folder);
	s->attachment = (struct attachment){
		.state = s->state,
		.root = s->root,
		.env = s->env,
		.netns = -1,
		.bin_dir = s->folder,
		.plugin_types = "*",
		.limits = &s->limits,
	};
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	sandboxes_done(s->state);
	mem_free(s->state);
	(void)close(s->root);
	json_decref(s->env);
	scratch_free(s->folder);
	free(s);
	return 0;
}

static int64_t run(struct stand *s, const char *name)
{
	json_auto_t *config = json_object(), *end = NULL;
	struct err err = {0};

	end = external_ipam_program(&s->attachment, name, "DEL", config, &err);
	if (!end)
		fail_msg("%s: %s", err.reason, err.text);
	return json_integer_value(json_at(end, "status"));
}

/* An IPAM plugin with a daemon, whose first call starts it. */
TEST_WITH(a_program_that_leaves_a_process_behind_has_ended_all_the_same, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *pid = NULL;
	int64_t left = 0;

	if (geteuid() != 0)
		skip();
	put_program(s, "dhcp",
		    "#!/bin/sh\nsleep 60 <&- >&- 2>&- &\necho $! >$FOLDER/pid\nexit 0\n");
	assert_int_equal(run(s, "dhcp"), 0);
	pid = get(s, "pid");
	assert_non_null(pid);
	pid[strcspn(pid, "\n")] = '\0';
	assert_true(str_to_int(pid, 2, INT32_MAX, &left));
	/* It is there: nobody has waited for it. */
	assert_int_equal(kill((pid_t)left, SIGKILL), 0);
}

/* Notes of a night, each with a program in Go that takes 14 MB. */
TEST_WITH(no_more_than_four_run_at_a_time, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *seen = NULL;
	pid_t workers[8];
	int status, n = 0;

	if (geteuid() != 0)
		skip();
	put_program(s, "macvlan",
		    "#!/bin/sh\n: >$FOLDER/running.$$\nsleep 0.1\nls $FOLDER | grep -c running. "
		    ">>$FOLDER/seen\nrm $FOLDER/running.$$\n");
	for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
		workers[i] = fork();
		if (workers[i] == 0)
			_exit(run(s, "macvlan") == 0 ? 0 : 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
		assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
		assert_int_equal(status, 0);
	}
	seen = get(s, "seen");
	for (const char *at = seen; at && *at; at++) {
		if (*at < '0' || *at > '9')
			continue;
		assert_in_range(*at - '0', 1, 4);
		assert_true(at[1] == '\n');
		n++;
	}
	assert_int_equal(n, ARRAY_LEN(workers));
}

/* Plugins that wait for an API server which is away: a fifth one would be too much memory. */
TEST_WITH(a_fifth_waits_and_is_tried_again, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *config = json_object(), *end = NULL;
	auto_free char *seen = NULL;
	struct err err = {0};
	int turns[4];

	if (geteuid() != 0)
		skip();
	put_program(s, "macvlan", "#!/bin/sh\n: >$FOLDER/seen\n");
	for (int i = 0; i < 4; i++) {
		auto_free char *name = str_printf("foreign-%d.lock", i);

		turns[i] = openat(s->state->dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(flock(turns[i], LOCK_EX), 0);
	}
	s->limits.turn_ms = 1;
	end = external_ipam_program(&s->attachment, "macvlan", "DEL", config, &err);
	assert_null(end);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "PluginFailed");
	assert_non_null(strstr(err.text, "do not end"));
	(void)close(turns[2]);
	/* The worker has other things to do, and is tried again with what is left. */
	assert_null(external_ipam_program(&s->attachment, "macvlan", "DEL", config, &err));
	assert_int_equal(err.class, ERR_TRANSIENT);
	seen = get(s, "seen");
	assert_null(seen);
	s->limits = (struct program_limits){0};
	assert_int_equal(run(s, "macvlan"), 0);
	for (int i = 0; i < 4; i++)
		if (i != 2)
			(void)close(turns[i]);
}

TEST_WITH(a_lock_that_cannot_be_opened_is_told_as_such, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *config = json_object();
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	put_program(s, "macvlan", "#!/bin/sh\n");
	assert_int_equal(symlinkat("elsewhere", s->state->dir, "foreign-0.lock"), 0);
	assert_null(external_ipam_program(&s->attachment, "macvlan", "DEL", config, &err));
	assert_string_equal(err.reason, "PluginFailed");
	assert_null(strstr(err.text, "do not end"));
	assert_non_null(strstr(err.text, "/foreign-*.lock"));
	assert_false(s->limits.has_no_turn);
}

static bool is_program(const struct attachment *attachment)
{
	return false;
}

/* Its own programs are not what a worker waits for in vain. */
TEST_WITH(a_worker_with_eight_programs_begins_four, set_up, tear_down)
{
	static const struct own_plugins own = {.is_ours = is_program};
	struct stand *s = *state;
	json_auto_t *delegates = json_array();
	struct meta_run *run_of_all;
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	put_program(s, "macvlan", "#!/bin/sh\ncat >/dev/null\nsleep 0.2\n");
	for (int i = 0; i < 8; i++)
		json_array_append_new(delegates,
				      json_pack("{s:s, s:o, s:{s:s, s:s, s:[{s:s}]}}", "name", "n",
						"interface", json_fmt("net%d", i), "config",
						"cniVersion", "1.0.0", "name", "n", "plugins",
						"type", "macvlan"));
	s->limits.turn_ms = 1;
	run_of_all = meta_run_new("DEL", delegates, NULL);
	plugin_calls_run(&s->attachment, delegates, run_of_all, &own);
	if (meta_run_outcome(run_of_all, NULL, &err) < 0)
		fail_msg("%s", err.text);
	meta_run_free(run_of_all);
	assert_int_equal(s->limits.n_running, 0);
}

/* ---- programs that hang ---------------------------------------------------------------------- */

/* What it starts is what hangs, as with a script that calls a client. */
static const char hangs[] = "#!/bin/sh\nsleep 60 &\necho $$ $! >$FOLDER/new && "
			    "mv $FOLDER/new $FOLDER/pids\nwait\n";

static void pause_briefly(void)
{
	(void)usleep(10000);
}

/* A zombie has no command line. */
static void expect_ended(const char *pid)
{
	auto_free char *path = str_printf("/proc/%s/cmdline", pid);

	for (int i = 0; i < 1000; i++) {
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		char byte;

		if (fd < 0 || read(fd, &byte, 1) <= 0)
			return;
		pause_briefly();
	}
	fail_msg("%s is there still", path);
}

/* Wait until all processes of the program have ended, which has noted their pids. */
static void expect_killed(const struct stand *s)
{
	auto_free char *pids = get(s, "pids");
	char *rest = pids, *pid;

	assert_non_null(pids);
	pids[strcspn(pids, "\n")] = '\0';
	while ((pid = strsep(&rest, " ")))
		expect_ended(pid);
}

/* What comes after it in the same call, as other rails, is not kept from its turn. */
TEST_WITH(an_ipam_program_that_hangs_in_del_is_killed, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *config = json_object();
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	put_program(s, "whereabouts", hangs);
	s->limits.del_ms = 2000;
	assert_int_equal(
		external_ipam_run(&s->attachment, "whereabouts", "DEL", config, NULL, &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "IpamFailed");
	assert_non_null(strstr(err.text, "IPAM plugin whereabouts does not end, it was stopped "
					 "after 2 s"));
	assert_false(s->attachment.has_no_ipam);
	expect_killed(s);
	put_program(s, "dhcp", "#!/bin/sh\n");
	assert_int_equal(external_ipam_run(&s->attachment, "dhcp", "DEL", config, NULL, &err), 0);
}

/* Eight rails or sixty: the worker takes down what is ours within the time that it has. */
TEST_WITH(no_program_begins_once_others_have_taken_the_time_of_the_call, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *config = json_object();
	auto_free char *called = NULL;
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	put_program(s, "whereabouts", "#!/bin/sh\necho $CNI_COMMAND >>$FOLDER/called\n");
	s->limits.sum_ms = 1000;
	s->limits.del_begun = clock_ms() - 1100;
	assert_int_equal(
		external_ipam_run(&s->attachment, "whereabouts", "DEL", config, NULL, &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_false(s->attachment.has_no_ipam);
	called = get(s, "called");
	assert_null(called);
}

static json_t *delegate_new(const char *ifname, const char *type)
{
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:[{s:s}]}}", "name", "lab/rail", "interface",
			 ifname, "config", "cniVersion", "1.0.0", "name", "rail", "plugins", "type",
			 type);
}

/* The networks before it in the list, the cluster's too, get their DEL all the same. */
TEST_WITH(a_plugin_that_hangs_in_del_keeps_no_other_network, set_up, tear_down)
{
	static const struct own_plugins own = {.is_ours = is_program};
	struct stand *s = *state;
	json_auto_t *delegates = json_array();
	auto_free char *called = NULL;
	struct meta_run *run_of_all;
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	put_program(s, "hangs", hangs);
	put_program(s, "macvlan", "#!/bin/sh\necho $CNI_COMMAND $CNI_IFNAME >>$FOLDER/called\n");
	json_array_append_new(delegates, delegate_new("eth0", "macvlan"));
	json_array_append_new(delegates, delegate_new("net1", "macvlan"));
	json_array_append_new(delegates, delegate_new("net2", "hangs"));
	s->limits.del_ms = 2000;
	run_of_all = meta_run_new("DEL", delegates, NULL);
	plugin_calls_run(&s->attachment, delegates, run_of_all, &own);
	assert_int_equal(meta_run_outcome(run_of_all, NULL, &err), -1);
	meta_run_free(run_of_all);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "PluginFailed");
	assert_non_null(strstr(err.text, "network lab/rail (net2): hangs: the DEL of the plugin "
					 "hangs does not end, it was stopped after 2 s"));
	called = get(s, "called");
	assert_string_equal(called, "DEL net1\nDEL eth0\n");
	assert_int_equal(s->limits.n_running, 0);
	expect_killed(s);
}

TEST_WITH(no_worker_waits_for_ever_for_the_plugin_on_the_host, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *config = json_object();
	struct worker_channel line;
	struct err err = {0};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	line = (struct worker_channel){.fd = pair[0]};
	s->attachment.line = &line;
	s->attachment.has_plugin = true;
	s->limits.del_ms = 1;
	assert_int_equal(
		external_ipam_run(&s->attachment, "whereabouts", "DEL", config, NULL, &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "IpamFailed");
	/* Its reply is passed over when it comes. */
	assert_int_equal(json_object_size(line.replies), 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
	json_decref(line.replies);
	strbuf_done(&line.in);
}

/* Its retry would start the same program beside it. */
TEST_WITH(a_program_dies_with_its_worker, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *pids = NULL;
	pid_t worker;

	if (geteuid() != 0)
		skip();
	put_program(s, "macvlan",
		    "#!/bin/sh\necho $$ >$FOLDER/new && mv $FOLDER/new $FOLDER/pids\n"
		    "exec sleep 60\n");
	worker = fork();
	if (worker == 0)
		_exit(run(s, "macvlan") == 0 ? 0 : 1);
	while (!(pids = get(s, "pids")) && waitpid(worker, NULL, WNOHANG) == 0)
		pause_briefly();
	assert_int_equal(kill(worker, SIGKILL), 0);
	assert_int_equal(waitpid(worker, NULL, 0), worker);
	expect_killed(s);
}

/* Run by ourselves or by the plugin on the host: no message takes it, and nobody has hung up. */
TEST_WITH(a_call_that_no_message_takes_is_told_as_such, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *config = json_object(), *end = NULL;
	auto_strbuf struct strbuf text = {0};
	int pair[2];
	struct worker_channel line;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	line = (struct worker_channel){.fd = pair[0]};
	/* A quote takes two bytes in a frame, and the frame has its own limit. */
	while (text.len < (4U << 20))
		strbuf_adds(&text, "\"\"\"\"");
	json_put_str(config, "x", strbuf_str(&text));
	(void)close(pair[1]);
	s->attachment.line = &line;
	for (int i = 0; i < 2; i++) {
		struct err err = {0};

		s->attachment.has_plugin = i > 0;
		end = external_ipam_program(&s->attachment, "whereabouts", "ADD", config, &err);
		assert_null(end);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "TooLarge");
		assert_non_null(strstr(err.text, "CNI plugin whereabouts"));
	}
	(void)close(pair[0]);
}

/* By the words of nodeagent/cni/plugin/delegates.c; a script may end with that status, too. */
TEST_WITH(knows_what_could_not_be_started, set_up, tear_down)
{
	static const struct {
		int status;
		const char *out, *errors;
		bool has_run;
	} cases[] = {
		{127, "", "failed to find plugin \"dhcp\" in path [/opt/cni/bin]: install it there",
		 false},
		{127, "", "cannot run /opt/cni/bin/dhcp: Permission denied", false},
		{127, "", "/opt/cni/bin/x: line 3: ip: not found", true},
		{127, "{\"code\":7}", "cannot run it", true},
		{1, "", "failed to find plugin \"host-local\" in path []", true},
		{0, "{}", "", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *end = json_pack("{s:i, s:s, s:s}", "status", cases[i].status, "stdout",
					     cases[i].out, "stderr", cases[i].errors);

		if (external_ipam_has_run(end) != cases[i].has_run)
			fail_msg("case %zu", i);
	}
}

TEST_WITH(says_that_a_program_is_not_there, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *config = json_object(), *result = NULL;
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	assert_int_equal(external_ipam_run(&s->attachment, "nope", "ADD", config, &result, &err),
			 -1);
	if (!s->attachment.has_no_ipam)
		fail_msg("%s", err.text);
	put_program(s, "there", "#!/bin/sh\nexit 127\n");
	assert_int_equal(external_ipam_run(&s->attachment, "there", "ADD", config, &result, &err),
			 -1);
	assert_false(s->attachment.has_no_ipam);
}

/* The server says what CNI_PATH is, and a tenant's files are folders of the host, too. */
TEST_WITH(looks_in_no_folder_that_the_call_names, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *bin = str_below(s->folder, "bin"), *seen = NULL, *path = NULL;
	auto_free char *noted = str_below(s->folder, "noted");

	if (geteuid() != 0)
		skip();
	assert_int_equal(fs_make_dirs(bin, 0755) | fs_make_dirs(noted, 0755), 0);
	put_program(s, "dhcp", "#!/bin/sh\ntouch $FOLDER/ran\n");
	put_program(s, "noted/dhcp", "#!/bin/sh\necho \"$CNI_PATH\" >$FOLDER/seen\n");
	s->attachment.bin_dir = bin;
	assert_int_equal(run(s, "dhcp"), 127);
	assert_null(get(s, "ran"));
	/* The plugin on the host has found it there. */
	assert_int_equal(fs_write_atomic(s->state->dir, WIRE_PROGRAMS "/dhcp", noted, strlen(noted),
					 0600, NULL),
			 0);
	assert_int_equal(run(s, "dhcp"), 0);
	assert_null(get(s, "ran"));
	path = str_printf("%s:%s\n", noted, bin);
	seen = get(s, "seen");
	assert_string_equal(seen, path);
}

/* By the name that the server sends a program would open the node's own. */
TEST_WITH(names_no_namespace_but_the_attachment_s, set_up, tear_down)
{
	static const char *const paths[] = {"/proc/self/ns/net", "/proc/self/ns/uts", ""};
	struct stand *s = *state;
	auto_close int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (geteuid() != 0)
		skip();
	put_program(s, "dhcp", "#!/bin/sh\necho \"$CNI_NETNS\" >$FOLDER/seen\n");
	for (size_t i = 0; i < 2 * ARRAY_LEN(paths); i++) {
		const char *path = paths[i % ARRAY_LEN(paths)];
		auto_free char *seen = NULL;

		s->attachment.netns = i < ARRAY_LEN(paths) ? netns : -1;
		json_put_str(s->env, "CNI_NETNS", path);
		assert_int_equal(run(s, "dhcp"), 0);
		seen = get(s, "seen");
		assert_string_equal(seen, i == 0 ? "/proc/self/ns/net\n" : "\n");
	}
}
