// SPDX-License-Identifier: Apache-2.0
/*
 * A child with two pipes. It is over when it has ended and both pipes are at their end, or when the
 * deadline passes.
 *
 * The child leads a session of its own, so that killing its process group takes along what it has
 * started.
 */
#include "lib/kube/auth/exec_plugin.h"

#include <assert.h>
#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <uv.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/kube/auth/secret.h"

enum {
	HANDLES = 3, /* process, stdout, stderr */
	STDERR_KEPT = 8 * EXEC_PLUGIN_MAX_STDERR,
};

struct exec_plugin {
	uv_process_t process;
	uv_pipe_t out_pipe, err_pipe;
	struct timer *deadline;
	struct strbuf out, errors;
	char *command;
	int64_t timeout_ms;
	int64_t status; /* exit status, when it ended */
	int signal;     /* what it died of, or 0 */
	bool exited;
	unsigned int open_pipes;
	unsigned int open_handles;
	exec_plugin_fn *done; /* NULL: stopped */
	void *arg;
	char chunk[4096];
};

static void on_closed(uv_handle_t *handle)
{
	struct exec_plugin *p = handle->data;

	if (--p->open_handles > 0)
		return;
	secret_buf_done(&p->out);
	strbuf_done(&p->errors);
	explicit_bzero(p->chunk, sizeof(p->chunk));
	mem_free(p->command);
	mem_free(p);
}

/* Nothing calls back from here on; memory goes with the last handle. */
static void close_all(struct exec_plugin *p)
{
	p->done = NULL;
	timer_free(take_ptr(p->deadline));
	uv_close((uv_handle_t *)&p->process, on_closed);
	uv_close((uv_handle_t *)&p->out_pipe, on_closed);
	uv_close((uv_handle_t *)&p->err_pipe, on_closed);
}

static void kill_group(struct exec_plugin *p)
{
	/* Once libuv has waited for it, the number may be another process's. */
	if (p->exited)
		return;
	(void)kill(-p->process.pid, SIGKILL);
	/*
	 * A closed handle is not waited for any more; the group is dying, so this rarely has to
	 * leave a zombie. Up to 20 ms of the loop, and only for a plugin that is cut off (deadline,
	 * output without end, shutdown). A handle that stays open until the child has ended would
	 * cost none, but outlive the caller that stops the plugin: loop_free would meet it.
	 */
	for (int tries = 0; tries < 20 && waitpid(p->process.pid, NULL, WNOHANG) == 0; tries++)
		(void)usleep(1000);
	p->exited = true;
}

static void finish(struct exec_plugin *p, const struct err *err)
{
	exec_plugin_fn *done = p->done;
	auto_secret_buf struct strbuf out = p->out;

	p->out = (struct strbuf){0};
	kill_group(p);
	close_all(p);
	if (err)
		done(p->arg, NULL, 0, err);
	else
		done(p->arg, strbuf_str(&out), out.len, NULL);
}

/*
 * `: text` of the last that the plugin said on stderr, "" when it said nothing; err_set makes one
 * line of it. Returns new.
 */
static char *last_words(const struct strbuf *errors)
{
	size_t start =
		errors->len > EXEC_PLUGIN_MAX_STDERR ? errors->len - EXEC_PLUGIN_MAX_STDERR : 0;
	size_t end = errors->len;

	while (end > start && isspace((unsigned char)errors->data[end - 1]))
		end--;
	if (start == end)
		return str_dup("");
	return str_printf(": %.*s", (int)(end - start), errors->data + start);
}

static void judge_if_over(struct exec_plugin *p)
{
	if (p->exited && !p->open_pipes) {
		auto_free char *words = last_words(&p->errors);
		struct err err = {0};

		if (p->signal)
			err_set(&err, ERR_TRANSIENT, "ExecPluginFailed",
				"exec plugin %s was killed by signal %d%s", p->command, p->signal,
				words);
		else if (p->status)
			err_set(&err, ERR_TRANSIENT, "ExecPluginFailed",
				"exec plugin %s ended with status %lld%s", p->command,
				(long long)p->status, words);
		finish(p, p->signal || p->status ? &err : NULL);
	}
}

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
	struct exec_plugin *p = process->data;

	p->exited = true;
	p->status = status;
	p->signal = signal;
	judge_if_over(p);
}

static void on_deadline(void *arg)
{
	struct exec_plugin *p = arg;
	auto_free char *words = last_words(&p->errors);
	struct err err = {0};

	err_set(&err, ERR_TRANSIENT, "ExecPluginTimeout",
		"exec plugin %s has not %s after %lld ms%s", p->command,
		p->exited ? "closed its output" : "ended", (long long)p->timeout_ms, words);
	finish(p, &err);
}

/* Both pipes read into one buffer: nothing is left in it between two calls. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct exec_plugin *p = handle->data;

	*buf = uv_buf_init(p->chunk, sizeof(p->chunk));
}

static void on_pipe_end(struct exec_plugin *p, uv_stream_t *stream)
{
	uv_read_stop(stream);
	p->open_pipes--;
	judge_if_over(p);
}

static void on_out(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct exec_plugin *p = stream->data;
	struct err err = {0};

	if (n < 0) {
		on_pipe_end(p, stream);
		return;
	}
	strbuf_add(&p->out, buf->base, (size_t)n);
	if (p->out.len <= EXEC_PLUGIN_MAX_OUTPUT)
		return;
	err_set(&err, ERR_TRANSIENT, "ExecPluginFailed",
		"exec plugin %s printed more than %d bytes", p->command, EXEC_PLUGIN_MAX_OUTPUT);
	finish(p, &err);
}

static void on_err(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct exec_plugin *p = stream->data;

	if (n < 0) {
		on_pipe_end(p, stream);
		return;
	}
	strbuf_add(&p->errors, buf->base, (size_t)n);
	if (p->errors.len > STDERR_KEPT)
		strbuf_consume(&p->errors, p->errors.len - EXEC_PLUGIN_MAX_STDERR);
}

static int spawn(struct exec_plugin *p, struct loop *loop, const struct kube_exec *exec)
{
	size_t n = 0;
	auto_free char **argv = NULL;
	uv_stdio_container_t stdio[] = {
		{.flags = UV_IGNORE},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		 .data.stream = (uv_stream_t *)&p->out_pipe},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		 .data.stream = (uv_stream_t *)&p->err_pipe},
	};
	uv_process_options_t options = {
		.exit_cb = on_ended,
		.file = exec->command,
		.env = exec->env,
		.flags = UV_PROCESS_DETACHED,
		.stdio = stdio,
		.stdio_count = (int)ARRAY_LEN(stdio),
	};

	while (exec->args[n])
		n++;
	argv = mem_calloc(n + 2, sizeof(*argv));
	argv[0] = exec->command;
	memcpy(argv + 1, exec->args, n * sizeof(*argv));
	options.args = argv;
	return uv_spawn(loop_uv(loop), &p->process, &options);
}

static void set_spawn_err(struct err *err, const struct kube_exec *exec, int result)
{
	if (result != UV_ENOENT) {
		err_set(err, ERR_TRANSIENT, "ExecPluginFailed",
			"exec plugin %s cannot be started: %s", exec->command, uv_strerror(result));
		return;
	}
	err_set(err, ERR_INVALID, "ExecPluginMissing", "exec plugin %s does not exist%s%s%s",
		exec->command, strchr(exec->command, '/') ? "" : " in any folder of $PATH",
		exec->install_hint ? ": " : "", exec->install_hint ? exec->install_hint : "");
}

struct exec_plugin *exec_plugin_start(struct loop *loop, const struct kube_exec *exec,
				      int64_t timeout_ms, exec_plugin_fn *done, void *arg,
				      struct err *err)
{
	struct exec_plugin *p = mem_new(struct exec_plugin);
	int result;

	assert(exec->command && timeout_ms > 0 && done);
	p->process.data = p->out_pipe.data = p->err_pipe.data = p;
	p->done = done;
	p->arg = arg;
	p->command = str_dup(exec->command);
	p->timeout_ms = timeout_ms;
	p->open_handles = HANDLES;
	p->open_pipes = 2;
	(void)uv_pipe_init(loop_uv(loop), &p->out_pipe, 0);
	(void)uv_pipe_init(loop_uv(loop), &p->err_pipe, 0);
	result = spawn(p, loop, exec);
	if (result < 0) {
		/* Nothing runs, but after uv_spawn all three handles have to be closed. */
		p->exited = true;
		close_all(p);
		set_spawn_err(err, exec, result);
		return NULL;
	}
	p->deadline = timer_new(loop, on_deadline, p);
	timer_start(p->deadline, timeout_ms);
	(void)uv_read_start((uv_stream_t *)&p->out_pipe, on_alloc, on_out);
	(void)uv_read_start((uv_stream_t *)&p->err_pipe, on_alloc, on_err);
	return p;
}

void exec_plugin_stop(struct exec_plugin *plugin)
{
	if (!plugin)
		return;
	kill_group(plugin);
	close_all(plugin);
}
