// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side with real workers on a folder. A state file that is a FIFO keeps a worker
 * waiting for as long as a test wants.
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/model/step.h"
#include "nodeagent/process/client.h"
#include "nodeagent/process/exchange.h"
#include "nodeagent/process/workers.h"
#include "nodeagent/worker/state.h"
#include "tests/support/workers_stand.h"

#define ANSWERS_MAX 16
#define STANDS_MAX  16

/* Forked before the first loop there is (client.h), one for each test. */
static struct prepared {
	char root[64];
	int socket;
	pid_t pid;
} stands[STANDS_MAX];
static size_t n_used;
/* A whole agent, with a worker that waits. */
static pid_t agent;

struct fixture {
	const char *root;
	pid_t stand;
	struct loop *loop;
	struct metrics *metrics;
	struct hostd *hostd;
	struct timer *tick;
	int lost;
	/* In the order in which they came. */
	struct answer {
		int number;
		json_t *result;
		struct err err;
	} answers[ANSWERS_MAX];
	size_t n_answers;
};

static void on_lost(void *arg)
{
	((struct fixture *)arg)->lost++;
}

/* So that a test can look at the world every few milliseconds. */
static void on_tick(void *arg)
{
	timer_start(((struct fixture *)arg)->tick, 5);
}

static int set_up_for(void **state, size_t parallel)
{
	struct fixture *f = mem_new(struct fixture);
	struct prepared *mine = &stands[n_used++];
	struct hostd_config config = {
		.orders = mine->socket, .parallel = parallel, .lost = on_lost, .arg = f};

	assert_true(n_used <= STANDS_MAX);
	f->root = mine->root;
	f->stand = mine->pid;
	f->loop = loop_new();
	f->metrics = config.metrics = metrics_new();
	f->hostd = hostd_new(f->loop, &config);
	f->tick = timer_new(f->loop, on_tick, f);
	on_tick(f);
	*state = f;
	return 0;
}

static int set_up(void **state)
{
	return set_up_for(state, 0);
}

static int set_up_two(void **state)
{
	return set_up_for(state, 2);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	hostd_free(f->hostd);
	timer_free(f->tick);
	loop_free(f->loop);
	metrics_free(f->metrics);
	/* It ends by itself, if it has not already. */
	while (waitpid(f->stand, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < f->n_answers; i++)
		json_decref(f->answers[i].result);
	mem_free(f);
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct call {
	struct fixture *f;
	int number;
};

static void on_done(void *arg, const json_t *result, const struct err *err)
{
	struct call *call = arg;
	struct answer *answer = &call->f->answers[call->f->n_answers++];

	assert_true(call->f->n_answers <= ANSWERS_MAX);
	assert_true(!result == !!err);
	answer->number = call->number;
	answer->result = json_incref((json_t *)result);
	if (err)
		answer->err = *err;
	mem_free(call);
}

static struct call *call_new(struct fixture *f, int number)
{
	struct call *call = mem_new(struct call);

	call->f = f;
	call->number = number;
	return call;
}

static void load(struct fixture *f, int number)
{
	hostd_load(f->hostd, on_done, call_new(f, number));
}

static void save(struct fixture *f, int number, json_t *value)
{
	hostd_save(f->hostd, value, on_done, call_new(f, number));
	json_decref(value);
}

static void wait_answers(struct fixture *f, size_t n)
{
	while (f->n_answers < n)
		loop_turn(f->loop, true);
}

static void expect(const struct fixture *f, size_t i, const char *reason)
{
	assert_true(i < f->n_answers);
	if (!str_eq(f->answers[i].err.reason, reason))
		fail_msg("answer %zu: %s: %s", i, f->answers[i].err.reason, f->answers[i].err.text);
	assert_true(!f->answers[i].result == (*reason != '\0'));
}

static char *state_path(const char *root)
{
	return str_printf("%s/" STATE_FOLDER "/" STATE_FILE, root);
}

static void make_fifo(const char *root)
{
	static const char *const parts[] = {"var", "var/lib", STATE_FOLDER};
	auto_free char *fifo = state_path(root);

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		auto_free char *path = str_printf("%s/%s", root, parts[i]);

		(void)mkdir(path, 0700);
	}
	(void)unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
}

static void remove_fifo(const struct fixture *f)
{
	auto_free char *fifo = state_path(f->root);

	assert_int_equal(unlink(fifo), 0);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The youngest child of a process, by /proc; 0: none. */
static pid_t child_of(pid_t parent)
{
	auto_free char *path = str_printf("/proc/%d/task/%d/children", (int)parent, (int)parent);
	auto_strbuf struct strbuf text = {0};
	const char *last;
	int64_t pid;

	if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || text.len < 2)
		return 0;
	strbuf_cut(&text, text.len - 1);
	last = strrchr(text.data, ' ');
	return str_to_int(last ? last + 1 : text.data, 1, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

static bool text_is(pid_t pid, const char *file, const char *want)
{
	auto_free char *path = str_printf("/proc/%d/%s", (int)pid, file);
	auto_strbuf struct strbuf text = {0};

	return fs_read(AT_FDCWD, path, 4096, &text, NULL) == 0 &&
	       str_starts(strbuf_str(&text), want);
}

/* Without what a process looks at in /proc: after an answer a worker reads its own maps there. */
static size_t count_fds(pid_t pid)
{
	auto_free char *path = str_printf("/proc/%d/fd", (int)pid);
	auto_closedir DIR *dir = opendir(path);
	struct dirent *entry;
	char target[6];
	size_t n = 0;

	/*
	 * None: it has just ended. One that closes meanwhile has no target, nor have "." and "..".
	 */
	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));

		n += len > 0 &&
		     !(len == sizeof(target) && memcmp(target, "/proc/", sizeof(target)) == 0);
	}
	return n;
}

/*
 * In the middle of a request: idle it has three standard descriptors, its socket and the host's
 * root.
 */
static bool is_busy(pid_t worker)
{
	return worker && text_is(worker, "comm", WORKER_NAME "\n") && count_fds(worker) > 5;
}

/*
 * What closes what it has passed on may do so after the answer; a leak stays, and the time limit
 * ends the wait.
 */
static void wait_fds(struct fixture *f, pid_t pid, size_t n)
{
	while (count_fds(pid) != n)
		loop_turn(f->loop, true);
}

static pid_t wait_busy_worker(struct fixture *f)
{
	while (!is_busy(child_of(f->stand)))
		loop_turn(f->loop, true);
	return child_of(f->stand);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST_WITH(saves_and_loads_a_state_in_order, set_up, tear_down)
{
	struct fixture *f = *state;

	load(f, 1);
	save(f, 2, json_pack("{s:i}", "n", 2));
	load(f, 3);
	save(f, 4, json_pack("{s:i}", "n", 4));
	load(f, 5);
	assert_int_equal(f->n_answers, 0);
	wait_answers(f, 5);
	for (int i = 0; i < 5; i++) {
		expect(f, (size_t)i, "");
		assert_int_equal(f->answers[i].number, i + 1);
	}
	assert_int_equal(json_object_size(f->answers[0].result), 0);
	assert_int_equal(json_integer_value(json_at(f->answers[2].result, "n")), 2);
	assert_int_equal(json_integer_value(json_at(f->answers[4].result, "n")), 4);
	assert_int_equal(
		(int)metric_get(metric_counter(f->metrics, "orbweaver_hostd_requests_total", "",
					       "request,outcome"),
				"load", "OK"),
		3);
}

TEST_WITH(a_request_is_what_it_was_when_it_was_made, set_up, tear_down)
{
	struct fixture *f = *state;
	json_t *value = json_pack("{s:i}", "n", 1);

	hostd_save(f->hostd, value, on_done, call_new(f, 1));
	json_put_int(value, "n", 2);
	json_decref(value);
	load(f, 2);
	wait_answers(f, 2);
	expect(f, 0, "");
	expect(f, 1, "");
	assert_int_equal(json_integer_value(json_at(f->answers[1].result, "n")), 1);
}

TEST_WITH(tells_errors_of_the_operation, set_up, tear_down)
{
	struct fixture *f = *state;
	json_auto_t *step = json_pack("{s:s, s:s}", "step", "unbind-driver", "vf", "0000:3c:00.0");
	json_auto_t *none = json_pack("{s:s}", "step", "reboot");

	hostd_observe(f->hostd, 0, on_done, call_new(f, 1));
	hostd_step(f->hostd, step, 30000, on_done, call_new(f, 2));
	hostd_step(f->hostd, none, 30000, on_done, call_new(f, 3));
	assert_int_equal(f->n_answers, 0);
	wait_answers(f, 3);
	expect(f, 0, "HostUnreadable");
	expect(f, 1, "DeviceGone");
	assert_int_equal(f->answers[1].err.class, ERR_HOST);
	expect(f, 2, "BadStep");
}

TEST_WITH(a_worker_killed_in_the_middle_is_told_and_replaced, set_up, tear_down)
{
	struct fixture *f = *state;

	make_fifo(f->root);
	load(f, 1);
	load(f, 2);
	assert_int_equal(kill(wait_busy_worker(f), SIGKILL), 0);
	wait_answers(f, 1);
	expect(f, 0, "HostdDied");
	assert_non_null(strstr(f->answers[0].err.text, "load: the worker was ended by signal 9"));
	assert_int_equal(kill(wait_busy_worker(f), SIGTERM), 0);
	wait_answers(f, 2);
	assert_non_null(strstr(f->answers[1].err.text, "signal 15"));

	remove_fifo(f);
	load(f, 3);
	wait_answers(f, 3);
	expect(f, 2, "");
	assert_int_equal(f->lost, 0);
	assert_int_equal((int)metric_get(metric_counter(f->metrics,
							"orbweaver_hostd_restarts_total", "", "")),
			 2);
	assert_int_equal(hostd_stuck(f->hostd, NULL), 0);
}

/* Its children that are in the middle of a request. */
static size_t busy_workers(pid_t stand)
{
	auto_free char *path = str_printf("/proc/%d/task/%d/children", (int)stand, (int)stand);
	auto_strbuf struct strbuf text = {0};
	char *rest, *word;
	size_t n = 0;

	if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return 0;
	rest = text.data;
	while ((word = strsep(&rest, " "))) {
		int64_t pid;

		n += str_to_int(word, 1, INT32_MAX, &pid) && is_busy((pid_t)pid);
	}
	return n;
}

TEST_WITH(two_requests_run_side_by_side_and_the_third_waits, set_up_two, tear_down)
{
	struct fixture *f = *state;

	make_fifo(f->root);
	for (int i = 1; i <= 3; i++)
		load(f, i);
	while (busy_workers(f->stand) != 2)
		loop_turn(f->loop, true);
	assert_int_equal(f->n_answers, 0);
	/* One of them dies; the other one goes on, and the third begins. */
	assert_int_equal(kill(child_of(f->stand), SIGKILL), 0);
	wait_answers(f, 1);
	expect(f, 0, "HostdDied");
	while (busy_workers(f->stand) != 2)
		loop_turn(f->loop, true);
	assert_int_equal(f->n_answers, 1);
	/* All that are left fail with the supervisor, and the next one too. */
	assert_int_equal(kill(f->stand, SIGKILL), 0);
	load(f, 4);
	wait_answers(f, 4);
	for (size_t i = 1; i < 4; i++)
		expect(f, i, "HostdDied");
	assert_int_equal(f->answers[3].number, 4);
	assert_int_equal(f->lost, 1);
}

TEST_WITH(a_worker_killed_while_idle_is_not_noticed, set_up, tear_down)
{
	struct fixture *f = *state;
	pid_t stand, worker;

	load(f, 1);
	wait_answers(f, 1);
	stand = f->stand;
	worker = child_of(stand);
	assert_int_equal(kill(worker, SIGKILL), 0);
	while (child_of(stand) == worker)
		loop_turn(f->loop, true);
	load(f, 2);
	wait_answers(f, 2);
	/* It may have been asked before its end was known. */
	if (f->answers[1].err.class) {
		expect(f, 1, "HostdDied");
		load(f, 3);
		wait_answers(f, 3);
		expect(f, 2, "");
	}
}

TEST_WITH(tells_once_that_the_supervisor_is_lost, set_up, tear_down)
{
	struct fixture *f = *state;
	pid_t stand = f->stand, worker;

	make_fifo(f->root);
	load(f, 1);
	load(f, 2);
	worker = wait_busy_worker(f);
	assert_int_equal(kill(stand, SIGKILL), 0);
	wait_answers(f, 2);
	load(f, 3);
	wait_answers(f, 3);
	for (size_t i = 0; i < 3; i++)
		expect(f, i, "HostdDied");
	assert_int_equal(f->lost, 1);
	/*
	 * The kernel has ended the worker, and it comes to us (set_up_group) when the stand's end
	 * is complete.
	 */
	assert_int_equal(waitpid(stand, NULL, 0), stand);
	while (waitpid(worker, NULL, 0) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(f->lost, 1);
}

/* The agent was forked at the start; its stand and worker become ours when it is gone. */
TEST_WITH(nothing_is_left_when_the_agent_is_killed, set_up, tear_down)
{
	struct fixture *f = *state;
	pid_t stand = 0, worker = 0;

	while (!is_busy(worker)) {
		loop_turn(f->loop, true);
		stand = child_of(agent);
		worker = stand ? child_of(stand) : 0;
	}
	assert_int_equal(kill(agent, SIGKILL), 0);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	assert_int_equal(waitpid(stand, NULL, 0), stand);
	/* The stand has waited for its worker, or left it to us. */
	(void)waitpid(worker, NULL, 0);
	assert_int_equal(kill(worker, 0), -1);
}

static void free_all(void *arg, const json_t *result, const struct err *err)
{
	struct fixture *f = arg;

	hostd_free(take_ptr(f->hostd));
	f->n_answers++;
}

TEST_WITH(a_request_may_end_everything, set_up, tear_down)
{
	struct fixture *f = *state;
	json_auto_t *none = json_pack("{s:s}", "step", "reboot");

	hostd_load(f->hostd, free_all, f);
	hostd_step(f->hostd, none, 30000, on_done, NULL);
	wait_answers(f, 1);
	for (int i = 0; i < 10; i++)
		loop_turn(f->loop, true);
	assert_int_equal(f->n_answers, 1);
}

TEST_WITH(processes_show_what_they_are_and_hold_no_more_than_they_need, set_up, tear_down)
{
	struct fixture *f = *state;
	pid_t stand, worker;

	load(f, 1);
	wait_answers(f, 1);
	stand = f->stand;
	worker = child_of(stand);
	assert_true(text_is(stand, "comm", WORKERS_STAND_NAME "\n"));
	assert_true(text_is(worker, "comm", WORKER_NAME "\n"));
	/* As is_busy() counts them; the stand has a signalfd in place of the host's root. */
	wait_fds(f, stand, 5);
	wait_fds(f, worker, 5);
}

TEST_WITH(a_thousand_restarts_leak_nothing, set_up, tear_down)
{
	struct fixture *f = *state;
	pid_t stand = f->stand;
	size_t own;

	load(f, 0);
	wait_answers(f, 1);
	wait_fds(f, stand, 5);
	own = count_fds(getpid());
	for (int i = 0; i < 1000; i++) {
		pid_t worker = child_of(stand);

		json_decref(f->answers[0].result);
		f->answers[0].result = NULL;
		f->answers[0].err = (struct err){0};
		f->n_answers = 0;
		if (worker)
			(void)kill(worker, SIGKILL);
		load(f, i);
		wait_answers(f, 1);
	}
	/* The last answer may be the death of the worker before. */
	json_decref(f->answers[0].result);
	f->answers[0].result = NULL;
	f->n_answers = 0;
	load(f, 0);
	wait_answers(f, 1);
	wait_fds(f, getpid(), own);
	wait_fds(f, stand, 5);
	assert_true(metric_get(metric_counter(f->metrics, "orbweaver_hostd_restarts_total", "",
					      "")) >= 500);
}

/* ---- deadlines: the exchange by itself, which takes any -------------------------------------- */

static void on_exchange_done(void *arg, const json_t *result, const struct err *err)
{
	on_done(call_new(arg, 1), result, err);
}

TEST_WITH(a_worker_that_hangs_is_killed_and_replaced, set_up, tear_down)
{
	struct fixture *f = *state;
	struct prepared *mine = &stands[n_used++];
	const struct exchange_hooks hooks = {.done = on_exchange_done, .arg = f};
	struct orders *orders = orders_new(f->loop, mine->socket, on_lost, f);
	struct exchange *exchange = exchange_new(f->loop, orders, &hooks, NULL);
	json_auto_t *message = json_pack("{s:i, s:s}", "id", 1, "kind", "load");
	auto_free char *fifo = state_path(mine->root);

	make_fifo(mine->root);
	exchange_begin(exchange, message, 1, 50);
	wait_answers(f, 1);
	expect(f, 0, "HostHung");
	assert_int_equal(f->answers[0].err.class, ERR_HOST);
	assert_non_null(strstr(f->answers[0].err.text, "load: no answer for 50 ms"));
	assert_int_equal(exchange_stuck(exchange, NULL), 0);
	assert_int_equal(unlink(fifo), 0);
	exchange_begin(exchange, message, 1, 60000);
	wait_answers(f, 2);
	expect(f, 1, "");
	exchange_free(exchange);
	orders_free(orders);
}

/* ---- before the first loop ------------------------------------------------------------------- */

static void no_one_lost(void *arg)
{
}

static _Noreturn void be_agent(const char *root)
{
	struct hostd_config config = {.lost = no_one_lost};
	struct loop *loop;

	for (size_t i = 0; i < STANDS_MAX; i++)
		(void)close(stands[i].socket);
	config.orders = workers_stand_fork(root, &(pid_t){0});
	loop = loop_new();
	hostd_load(hostd_new(loop, &config), NULL, NULL);
	loop_run(loop);
	_exit(1);
}

static int fork_all(void **state)
{
	json_init();
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	for (size_t i = 0; i < STANDS_MAX; i++) {
		struct prepared *one = &stands[i];

		(void)snprintf(one->root, sizeof(one->root), "%s", "/tmp/hostd-test-XXXXXX");
		assert_non_null(mkdtemp(one->root));
		one->socket = workers_stand_fork(one->root, &one->pid);
		assert_true(one->socket >= 0);
	}
	/* The last one's root is the agent's. */
	make_fifo(stands[STANDS_MAX - 1].root);
	agent = fork();
	if (agent == 0)
		be_agent(stands[STANDS_MAX - 1].root);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static int end_all(void **state)
{
	for (size_t i = 0; i < STANDS_MAX; i++) {
		if (i >= n_used)
			(void)close(stands[i].socket);
		(void)nftw(stands[i].root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
	/* Whatever a test did, all of ours end by themselves. */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	return 0;
}

TEST_GROUP(fork_all, end_all)
