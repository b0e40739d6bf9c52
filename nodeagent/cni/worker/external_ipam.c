// SPDX-License-Identifier: Apache-2.0
/*
 * A program is admitted, then run: by the plugin that waits, asked by way of the server, or in a
 * child of this worker in the host's root. Between attachment.c and allowed_types.c.
 */
#include "nodeagent/cni/worker/external_ipam.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plugin/deadlines.h"
#include "nodeagent/cni/plugin/delegates.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/cni/worker/allowed_types.h"
#include "nodeagent/cni/worker/exec_wire.h"

/*
 * Bytes of configuration and environment: a message to the plugin takes them, and a frame to the
 * server, in which a byte may need two (json_frame_write()), is never silently too large.
 */
#define CALL_MAX (WIRE_MAX - 65536)

bool external_ipam_has_run(const json_t *end)
{
	static const char *const beginnings[] = {DELEGATES_NOT_FOUND, DELEGATES_NOT_RUN,
						 DELEGATES_NOT_ALLOWED, DELEGATES_NO_PIPE,
						 DELEGATES_NO_FORK};
	const char *errors = json_str_or(json_at(end, "stderr"), "");

	if (json_is_true(json_at(end, "unstarted")))
		return false;
	if (json_integer_value(json_at(end, "status")) != DELEGATES_NOT_STARTED ||
	    !str_empty(json_str_at(end, "stdout")))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (str_starts(errors, beginnings[i]))
			return false;
	return true;
}

int external_ipam_read(const char *type, const json_t *end, json_t **ret_result, struct err *err)
{
	const char *out = json_str_or(json_at(end, "stdout"), "");
	json_auto_t *said = json_parse(out, strlen(out), NULL);

	if (json_integer_value(json_at(end, "status")) != 0) {
		const char *msg = json_str_at(said, "msg"), *details = json_str_at(said, "details");

		if (!msg)
			msg = *out ? out : json_str_or(json_at(end, "stderr"), "");
		return err_set(err, ERR_HOST, "IpamFailed", "the IPAM plugin %s failed: %s%s%s",
			       type, msg, str_empty(details) ? "" : "; ",
			       str_empty(details) ? "" : details);
	}
	if (!ret_result)
		return 0;
	if (!json_is_object(said))
		return err_set(err, ERR_INVALID, "BadResult",
			       "the IPAM plugin %s printed no CNI result", type);
	*ret_result = take_ptr(said);
	return 0;
}

void external_ipam_too_large(const char *type, struct err *err)
{
	(void)err_set(err, ERR_INVALID, "TooLarge",
		      "the call of CNI plugin %.64s, with configuration and environment, has more "
		      "than %u bytes: make the network's configuration smaller",
		      type, CALL_MAX);
}

static size_t size_of_call(const json_t *env, const char *text)
{
	size_t size = strlen(text), i;
	const json_t *entry;

	json_array_foreach ((json_t *)env, i, entry)
		size += json_string_length(entry);
	return size;
}

/* ---- by ourselves ---------------------------------------------------------------------------- */

/* Exit status of the child: an errno of entering the root, or that something else failed. */
enum { UNTOLD = 255 };

enum {
	FOREIGN_MAX = 4, /* programs at a time */
	TURN_LOOK_MS = 20,
	LOOK_MS = 100, /* has the child ended? */
};

char *external_ipam_path(const struct attachment *a, const char *type)
{
	auto_free char *note = str_printf(WIRE_PROGRAMS "/%s", type);
	auto_strbuf struct strbuf noted = {0};
	const char *folder;

	if (fs_read(a->state->dir, note, PATH_MAX, &noted, NULL) < 0)
		strbuf_reset(&noted);
	folder = strbuf_str(&noted);
	if (folder[0] != '/' || strlen(folder) != noted.len || strchr(folder, ':'))
		return str_dup(a->bin_dir ? a->bin_dir : "");
	return a->bin_dir ? str_printf("%s:%s", folder, a->bin_dir) : str_dup(folder);
}

/* Does the path that a program would open lead to this namespace? */
static bool leads_to(const char *path, int netns)
{
	struct stat there, known;

	return netns >= 0 && stat(path, &there) == 0 && fstat(netns, &known) == 0 &&
	       there.st_dev == known.st_dev && there.st_ino == known.st_ino;
}

/* In a child: become one that is on the host, run the program, say how it ended. */
static _Noreturn void run_in_root(const struct attachment *a, const char *path,
				  const struct wire_buffer *order, int to)
{
	struct delegates *delegates = delegates_new(NULL);
	struct wire_buffer out = {0};
	struct wire_message message;
	const char *name;
	const json_t *value;

	/* A program that ends before it has read its stdin, or never began, must not end this. */
	(void)signal(SIGPIPE, SIG_IGN);
	if (fchdir(a->root) < 0 || chroot(".") < 0)
		_exit(errno);
	if (clearenv() != 0)
		_exit(UNTOLD);
	json_each (a->env, name, value)
		(void)setenv(name, json_str_or(value, ""), 1);
	(void)setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	/* delegates.c lets the order change neither of them. */
	(void)setenv("CNI_PATH", path, 1);
	if (!leads_to(json_str_or(json_at(a->env, "CNI_NETNS"), ""), a->netns))
		(void)setenv("CNI_NETNS", "", 1);
	if (wire_read(order->data, order->len, &message) != 1 ||
	    delegates_start(delegates, &message) < 0)
		_exit(UNTOLD);
	while (delegates_running(delegates) > 0) {
		struct pollfd fds[DELEGATES_POLL_MAX];
		size_t n = delegates_poll(delegates, fds);

		(void)poll(fds, n, n > 0 ? -1 : 0);
		delegates_turn(delegates, &out);
	}
	for (size_t at = 0; at < out.len;) {
		ssize_t n = write(to, out.data + at, out.len - at);

		if (n <= 0)
			_exit(UNTOLD);
		at += (size_t)n;
	}
	_exit(0);
}

/* Why the child said nothing. */
static void tell_lost(int root, int status, struct err *err)
{
	auto_free char *link = str_printf("/proc/self/fd/%d", root);
	char path[PATH_MAX] = {0};
	bool is_known;

	if (!WIFEXITED(status) || WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == UNTOLD) {
		(void)err_set(err, ERR_HOST, "PluginFailed",
			      "the process that was to run the plugin ended without a word; it is "
			      "tried again, see the agent's log and the kernel's");
		return;
	}
	is_known = readlink(link, path, sizeof(path) - 1) > 0;
	errno = WEXITSTATUS(status);
	(void)err_sys(
		err, "PluginFailed",
		"enter the host's root %.80s (mount the node's / there, see --host-root, and "
		"give the agent the capability SYS_CHROOT, as manifests/base/agent.yaml does)",
		is_known ? path : "?");
}

/*
 * One of FOREIGN_MAX turns, over all workers: a program in Go takes up to 14 MB, and notes of a
 * night without an agent would start hundreds within the agent's limit of memory, which ends all.
 * The lock goes with the descriptor, also when the worker is killed. A program that calls a plugin
 * of ours waits for no turn of its own: that plugin runs what the call needs. -1 with errno set:
 * none came until then (ETIMEDOUT), or none can be locked; whoever asked asks again, a note as well
 * as the runtime.
 */
static int take_turn(const struct attachment *a, int64_t until)
{
	do {
		for (int i = 0; i < FOREIGN_MAX; i++) {
			auto_free char *name = str_printf("foreign-%d.lock", i);
			auto_close int fd = openat(a->state->dir, name,
						   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

			if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
				return take_fd(&fd);
			if (fd < 0 || (errno != EWOULDBLOCK && errno != EINTR))
				return -1;
		}
		(void)poll(NULL, 0, TURN_LOOK_MS);
	} while (clock_ms() < until);
	errno = ETIMEDOUT;
	return -1;
}

/* ---- programs under way ---------------------------------------------------------------------- */

static void limits_begin(struct program_limits *limits)
{
	if (!limits->begun)
		limits->begun = clock_ms();
}

struct external_program {
	struct worker_channel *line;
	struct program_limits *limits;
	int64_t id; /* of the request to the plugin that waits; 0: a child of ours runs it */
	int root;
	pid_t pid;
	int from, status;
	struct strbuf in; /* a byte: 0, it has its turn, or an errno; then the program's end */
	bool has_ended;   /* the child; its status is known */
	bool is_over;     /* all is read */
	char *type;
	bool is_del, is_ipam;
	int64_t until, may_take_ms; /* of DEL, once it has its turn; 0: it waits */
	bool is_late;
};

/* One read of what the child says. */
static void read_child(struct external_program *run)
{
	ssize_t n;

	strbuf_reserve(&run->in, 16384);
	n = read(run->from, run->in.data + run->in.len, 16384);
	run->in.len += n > 0 ? (size_t)n : 0;
	run->is_over = n == 0 || (n < 0 && errno != EINTR) || run->in.len > 1 + WIRE_MAX;
}

/*
 * It says nothing now. Programs that a plugin leaves behind may have the other end of the pipe for
 * ever, so the child's end counts; what it said before is read in the next turn.
 */
static void look_at_child(struct external_program *run)
{
	if (run->has_ended)
		run->is_over = true;
	else
		run->has_ended = waitpid(run->pid, &run->status, WNOHANG) == run->pid;
}

static bool is_over(const struct external_program *run)
{
	return run->is_late || (run->id ? worker_channel_has(run->line, run->id) : run->is_over);
}

static int64_t del_sum_ms(const struct program_limits *limits)
{
	return limits->sum_ms ? limits->sum_ms : WORKER_DEL_SUM_MS;
}

/*
 * Have programs taken all of the time for DELs, and what each of them has at least a tenth more? A
 * worker that goes on with them is stopped before it has taken down the rest.
 */
static bool is_del_over(const struct program_limits *limits)
{
	int64_t sum = del_sum_ms(limits);

	return limits->del_begun && clock_ms() >= limits->del_begun + sum + sum / 10;
}

/* What the DEL of one more program may take. */
static int64_t del_ms(const struct program_limits *limits, bool is_ipam)
{
	int64_t sum = del_sum_ms(limits);
	int64_t ms = limits->del_begun + sum - clock_ms();
	int64_t max = limits->del_ms ? limits->del_ms
		      : is_ipam      ? sum * WORKER_DEL_IPAM_MS / WORKER_DEL_SUM_MS
				     : sum;

	if (limits->has_hung)
		ms /= 2;
	if (ms < WORKER_DEL_MIN_MS)
		ms = WORKER_DEL_MIN_MS;
	return ms < max ? ms : max;
}

/* The time of a DEL runs from its turn on, which a child waits for by itself. */
static void look_at_clock(struct external_program *run)
{
	if (!run->is_del || is_over(run))
		return;
	if (!run->until && (run->id || run->in.len > 0)) {
		run->may_take_ms = del_ms(run->limits, run->is_ipam);
		run->until = clock_ms() + run->may_take_ms;
	}
	run->is_late = run->until && clock_ms() >= run->until;
	run->limits->has_hung |= run->is_late;
}

/* Wait for something to be there; not for long where a child or a clock has to be looked at. */
static void turn(struct external_program *const *runs, size_t n)
{
	auto_free struct pollfd *fds = mem_calloc(n, sizeof(*fds));
	bool is_brief = false;

	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){.fd = runs[i]->id ? runs[i]->line->fd : runs[i]->from,
					 .events = POLLIN};
		is_brief |= !runs[i]->id || runs[i]->is_del;
	}
	if (poll(fds, n, is_brief ? LOOK_MS : -1) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (runs[i]->id && fds[i].revents)
			worker_channel_read(runs[i]->line);
		else if (!runs[i]->id && fds[i].revents)
			read_child(runs[i]);
		else if (!runs[i]->id)
			look_at_child(runs[i]);
		look_at_clock(runs[i]);
	}
}

size_t external_program_wait(struct external_program *const *runs, size_t n)
{
	assert(n > 0);
	for (;;) {
		for (size_t i = 0; i < n; i++)
			if (is_over(runs[i]))
				return i;
		turn(runs, n);
	}
}

/* What the child said instead of running the program. */
static void tell_no_turn(struct program_limits *limits, int why, struct err *err)
{
	if (why != ETIMEDOUT) {
		errno = why;
		(void)err_sys(err, "PluginFailed", "lock " WIRE_STATE "/foreign-*.lock");
		return;
	}
	limits->has_no_turn = true;
	(void)err_set(err, ERR_TRANSIENT, "PluginFailed",
		      "%d programs of other plugins run already and do not end; this one is tried "
		      "again later, see what they wait for",
		      FOREIGN_MAX);
}

static void free_program(struct external_program *run)
{
	if (!run->id) {
		(void)close(run->from);
		run->limits->n_running--;
	}
	strbuf_done(&run->in);
	free(run->type);
	mem_free(run);
}

static int tell_late(const struct external_program *run, struct err *err)
{
	return err_set(err, ERR_TRANSIENT, run->is_ipam ? "IpamFailed" : "PluginFailed",
		       "the DEL of the %s %s does not end, it was stopped after %lld s; it is "
		       "tried again later, see what it waits for",
		       run->is_ipam ? "IPAM plugin" : "plugin", run->type,
		       (long long)(run->may_take_ms / 1000));
}

/*
 * The child and what it runs are a group. What the plugin on the host runs goes with that plugin
 * (plugin/delegates.c).
 */
static void stop_program(struct external_program *run)
{
	if (run->id) {
		worker_channel_drop(run->line, run->id);
		return;
	}
	if (run->has_ended)
		return;
	(void)kill(-run->pid, SIGKILL);
	(void)kill(run->pid, SIGKILL);
	(void)waitpid(run->pid, NULL, 0);
}

json_t *external_program_end(struct external_program *run, struct err *err)
{
	struct external_program *const runs[] = {run};
	struct wire_message message;
	json_t *end = NULL;
	uint32_t id;

	(void)external_program_wait(runs, 1);
	if (run->is_late) {
		(void)tell_late(run, err);
		stop_program(run);
	} else if (run->id) {
		end = worker_channel_end(run->line, run->id, err);
	} else {
		if (!run->has_ended)
			(void)waitpid(run->pid, &run->status, 0);
		if (run->in.len > 0 && run->in.data[0] != 0)
			tell_no_turn(run->limits, (unsigned char)run->in.data[0], err);
		else if (run->in.len > 0 &&
			 wire_read(run->in.data + 1, run->in.len - 1, &message) == 1)
			end = exec_wire_read(&message, &id);
		else
			tell_lost(run->root, run->status, err);
	}
	free_program(run);
	return end;
}

/* In a child that waits for its turn, and gives it back with its end. */
static int start_child(const struct attachment *a, const char *type,
		       const struct wire_buffer *order, struct external_program *run,
		       struct err *err)
{
	auto_free char *path = external_ipam_path(a, type);
	int64_t until;
	int fds[2];

	limits_begin(a->limits);
	until = a->limits->begun + (a->limits->turn_ms ? a->limits->turn_ms : WORKER_TURN_MS);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, "PluginFailed", "make a pipe");
	run->root = a->root;
	run->pid = child_fork(&(struct child_config){.dies_by = SIGKILL, .skips_handlers = true});
	if (run->pid == 0) {
		unsigned char why;

		(void)setpgid(0, 0);
		why = take_turn(a, until) < 0 ? (unsigned char)errno : 0;
		if (write(fds[1], &why, 1) < 1 || why != 0)
			_exit(UNTOLD);
		run_in_root(a, path, order, fds[1]);
	}
	(void)close(fds[1]);
	run->from = fds[0];
	if (run->pid < 0) {
		(void)err_sys(err, "PluginFailed", "start a process");
		(void)close(fds[0]);
		return -1;
	}
	a->limits->n_running++;
	return 0;
}

bool external_program_may_begin(const struct attachment *a)
{
	return a->has_plugin || a->limits->n_running < FOREIGN_MAX;
}

struct external_program *external_program_begin(struct attachment *a, const char *type,
						const char *command, const json_t *config,
						struct err *err)
{
	auto_free char *change = str_printf("CNI_COMMAND=%s", command), *text = json_text(config);
	json_auto_t *env = json_array(), *exec = NULL;
	struct wire_buffer order = {0};
	struct external_program *run;
	const char *name;
	json_t *value;
	int rc = 0;

	if (allowed_types_admit(a, type, command, err) < 0)
		return NULL;
	if (a->limits->has_no_turn) {
		tell_no_turn(a->limits, ETIMEDOUT, err);
		return NULL;
	}
	if (str_eq(command, "DEL") && is_del_over(a->limits)) {
		(void)err_set(
			err, ERR_TRANSIENT, "PluginFailed",
			"the DEL of plugin %s is not begun: other programs took all of the "
			"time that this call has; it is tried again later, see what they wait "
			"for",
			type);
		return NULL;
	}
	/* The plugin that runs it was called for one interface, this may be for another one. */
	json_each (a->env, name, value)
		if (!str_eq(name, "CNI_COMMAND"))
			json_array_append_new(env, json_fmt("%s=%s", name, json_str_or(value, "")));
	json_array_append_new(env, json_string(change));
	if (size_of_call(env, text) > CALL_MAX) {
		external_ipam_too_large(type, err);
		return NULL;
	}
	exec = json_pack("{s:s, s:s, s:O, s:s}", "kind", "exec", "path", type, "env", env, "stdin",
			 text);
	run = mem_new(struct external_program);
	run->line = a->line;
	run->limits = a->limits;
	run->type = str_dup(type);
	run->is_del = str_eq(command, "DEL");
	if (run->is_del && !run->limits->del_begun)
		run->limits->del_begun = clock_ms();
	if (a->has_plugin)
		run->id = worker_channel_begin(a->line, take_ptr(exec));
	else if ((rc = exec_wire_write(&order, 1, exec)) == 0)
		rc = start_child(a, type, &order, run, err);
	else
		external_ipam_too_large(type, err);
	free(order.data);
	if (rc < 0) {
		free(run->type);
		mem_free(take_ptr(run));
	}
	return run;
}

json_t *external_ipam_program(struct attachment *a, const char *type, const char *command,
			      const json_t *config, struct err *err)
{
	struct external_program *run = external_program_begin(a, type, command, config, err);

	return run ? external_program_end(run, err) : NULL;
}

int external_ipam_run(struct attachment *a, const char *type, const char *command,
		      const json_t *config, json_t **ret_result, struct err *err)
{
	struct external_program *run;
	json_auto_t *end = NULL;

	/* A name to look for in CNI_PATH, as the specification has it; never a path. */
	if (strchr(type, '/'))
		return err_set(err, ERR_INVALID, "BadNetworkConfig",
			       "ipam.type \"%s\" is a path; give the plugin's name", type);
	run = external_program_begin(a, type, command, config, err);
	if (run)
		run->is_ipam = true;
	end = run ? external_program_end(run, err) : NULL;
	a->has_no_ipam = end && !external_ipam_has_run(end);
	return end ? external_ipam_read(type, end, str_eq(command, "ADD") ? ret_result : NULL, err)
		   : -1;
}
