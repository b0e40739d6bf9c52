// SPDX-License-Identifier: Apache-2.0
/*
 * One child for each order, and three pipes; poll(2) tells which of them have something. The plugin
 * is root and its server is not, so an order is checked here. Below plugin.c.
 */
#include "nodeagent/cni/plugin/delegates.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	/* With names and lengths a result still fits into a message. */
	STDOUT_MAX = WIRE_MAX - WIRE_STDERR_MAX - 4096,
	ENVIRONMENT_MAX = 4096,
	/* Somebody writes the file of the program at this moment. */
	BUSY_TRIES = 50,
	BUSY_MS = 100,
};

struct delegate {
	uint32_t id;
	pid_t pid; /* 0: this place is free */
	int in, out, err;
	struct wire_buffer stdin_bytes, stdout_bytes, stderr_bytes;
};

struct delegates {
	const char *state; /* NULL: all may run */
	struct delegate list[DELEGATES_MAX];
};

/* What a WIRE_EXEC says; strings are copies. */
struct order {
	uint32_t id;
	bool has_id;
	char *path;
	char *changes[ENVIRONMENT_MAX];
	size_t n_changes;
};

static void *need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

struct delegates *delegates_new(const char *state)
{
	struct delegates *delegates = need(calloc(1, sizeof(struct delegates)));

	delegates->state = state;
	return delegates;
}

/* NULL: a NUL within. */
static char *text_of(const struct wire_field *field)
{
	char *text;

	if (memchr(field->data, '\0', field->len))
		return NULL;
	text = need(malloc(field->len + 1));
	memcpy(text, field->data, field->len);
	text[field->len] = '\0';
	return text;
}

static bool is_of(const char *change, const char *name)
{
	size_t len = strcspn(change, "=");

	return len == strlen(name) && strncmp(change, name, len) == 0;
}

/*
 * What decides which program is found, what is loaded into it, or whose namespace it changes, is
 * the runtime's. A namespace that has gone has no name.
 */
static bool may_change(const char *change)
{
	static const char netns[] = "CNI_NETNS";
	const char *own = getenv(netns);

	if (is_of(change, netns))
		return strcmp(change, "CNI_NETNS=") == 0 ||
		       (own && strncmp(change, "CNI_NETNS=", sizeof(netns)) == 0 &&
			strcmp(change + sizeof(netns), own) == 0);
	return strncmp(change, "CNI_", 4) == 0 && !is_of(change, "CNI_PATH");
}

static int read_order(const struct wire_message *message, struct order *order,
		      struct wire_buffer *stdin_bytes)
{
	struct wire_field field;
	size_t at = 0;

	while (wire_next(message, &at, &field)) {
		if (field.tag == WIRE_ID) {
			order->id = wire_number(&field, 0);
			order->has_id = field.len == 4;
		} else if (field.tag == WIRE_PATH && !order->path) {
			order->path = text_of(&field);
		} else if (field.tag == WIRE_STDIN) {
			wire_append(stdin_bytes, field.data, field.len);
		} else if (field.tag == WIRE_ENV && order->n_changes < ENVIRONMENT_MAX) {
			char *change = text_of(&field);

			if (change && may_change(change))
				order->changes[order->n_changes++] = change;
			else
				free(change);
		}
	}
	return order->has_id && order->path && *order->path ? 0 : -1;
}

static void order_done(struct order *order)
{
	for (size_t i = 0; i < order->n_changes; i++)
		free(order->changes[i]);
	free(order->path);
}

/* ---- in the child ---------------------------------------------------------------------------- */

static void change_environment(const struct order *order)
{
	for (size_t i = 0; i < order->n_changes; i++) {
		if (strchr(order->changes[i], '='))
			(void)putenv(order->changes[i]);
		else
			(void)unsetenv(order->changes[i]);
	}
}

/* The first regular file of that name in CNI_PATH, as libcni looks for it. */
static bool find_program(const char *type, char *ret, size_t size)
{
	const char *dir = getenv("CNI_PATH");
	struct stat st;

	while (dir && *dir) {
		size_t len = strcspn(dir, ":");

		if (len > 0 && snprintf(ret, size, "%.*s/%s", (int)len, dir, type) < (int)size &&
		    stat(ret, &st) == 0 && S_ISREG(st.st_mode))
			return true;
		dir += len + (dir[len] == ':');
	}
	return false;
}

/*
 * Where it was found, in the file that allows it: a worker that runs it later, without a plugin,
 * has no other folder of the runtime's than that (WIRE_PROGRAMS).
 */
static void note_folder(const char *state, const char *name, const char *found)
{
	size_t len = strlen(found) - strlen(name) - 1;
	char path[PATH_MAX], known[PATH_MAX];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/" WIRE_PROGRAMS "/%s", state, name) >=
	    (int)sizeof(path))
		return;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	n = read(fd, known, sizeof(known));
	if ((n < 0 || (size_t)n != len || memcmp(known, found, len) != 0) && ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, found, len, 0);
	(void)close(fd);
}

/*
 * dprintf of what cannot be started goes where the server shows it. The program dies with `parent`,
 * whose call it is part of: the retry of the call starts it again.
 */
static _Noreturn void become(const char *state, const struct order *order, pid_t parent)
{
	static const struct timespec pause = {.tv_nsec = BUSY_MS * 1000000L};
	extern char **environ;
	char found[PATH_MAX];
	const char *path = order->path;

	/* The parent may have ended before this took effect. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(DELEGATES_NOT_STARTED);
	/* With what it starts, so that all can be stopped; else it is part of a caller's group. */
	if (state)
		(void)setpgid(0, 0);
	change_environment(order);
	if (!find_program(path, found, sizeof(found))) {
		(void)dprintf(STDERR_FILENO,
			      DELEGATES_NOT_FOUND "\"%s\" in path [%s]: install it there", path,
			      getenv("CNI_PATH") ? getenv("CNI_PATH") : "");
		_exit(DELEGATES_NOT_STARTED);
	}
	if (state)
		note_folder(state, path, found);
	path = found;
	for (int i = 0; i < BUSY_TRIES; i++) {
		(void)execve(path, (char *const[]){(char *)path, NULL}, environ);
		if (errno != ETXTBSY)
			break;
		(void)nanosleep(&pause, NULL);
	}
	(void)dprintf(STDERR_FILENO, DELEGATES_NOT_RUN "%s: %s", path, strerror(errno));
	_exit(DELEGATES_NOT_STARTED);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

/* Ours are fds[1], fds[2], fds[4]; the rest is the child's. -1 with errno set. */
static int make_pipes(int fds[6])
{
	for (size_t i = 0; i < 6; i++)
		fds[i] = -1;
	if (pipe2(fds, O_CLOEXEC) < 0 || pipe2(fds + 2, O_CLOEXEC) < 0 ||
	    pipe2(fds + 4, O_CLOEXEC) < 0) {
		close_all(fds, 6);
		return -1;
	}
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	(void)fcntl(fds[2], F_SETFL, O_NONBLOCK);
	(void)fcntl(fds[4], F_SETFL, O_NONBLOCK);
	return 0;
}

/* A place that is taken and has nothing open ends in the next turn, with these words. */
static void fail(struct delegate *delegate, const char *what)
{
	delegate->pid = -1;
	wire_append(&delegate->stderr_bytes, what, strlen(what));
	wire_append(&delegate->stderr_bytes, ": ", 2);
	wire_append(&delegate->stderr_bytes, strerror(errno), strlen(strerror(errno)));
}

/* A name, not a path, and a worker has said that it may run (WIRE_PROGRAMS). */
static bool is_allowed(const struct delegates *delegates, const char *name)
{
	char path[PATH_MAX];

	if (strchr(name, '/') || name[0] == '.')
		return false;
	if (!delegates->state)
		return true;
	if (snprintf(path, sizeof(path), "%s/" WIRE_PROGRAMS, delegates->state) >=
	    (int)sizeof(path))
		return false;
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return true;
	return snprintf(path, sizeof(path), "%s/" WIRE_PROGRAMS "/%s", delegates->state, name) <
		       (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static void start(const struct delegates *delegates, struct delegate *delegate,
		  const struct order *order)
{
	pid_t parent = getpid();
	int fds[6];

	delegate->in = delegate->out = delegate->err = -1;
	if (!is_allowed(delegates, order->path)) {
		errno = EPERM;
		fail(delegate, DELEGATES_NOT_ALLOWED "this program");
		return;
	}
	if (make_pipes(fds) < 0) {
		fail(delegate, DELEGATES_NO_PIPE);
		return;
	}
	/*
	 * Not fork(): in a worker of the agent a handler of libuv would close two descriptors of
	 * the child, by the numbers that a pipe had in the server: of the pipes made above.
	 */
	delegate->pid = _Fork();
	if (delegate->pid == 0) {
		if (dup2(fds[0], STDIN_FILENO) < 0 || dup2(fds[3], STDOUT_FILENO) < 0 ||
		    dup2(fds[5], STDERR_FILENO) < 0)
			_exit(DELEGATES_NOT_STARTED);
		/* Its caller's, not what we need against a reader that has gone. */
		(void)signal(SIGPIPE, SIG_DFL);
		become(delegates->state, order, parent);
	}
	if (delegate->pid < 0) {
		close_all(fds, 6);
		fail(delegate, DELEGATES_NO_FORK);
		return;
	}
	(void)close(fds[0]);
	(void)close(fds[3]);
	(void)close(fds[5]);
	delegate->in = fds[1];
	delegate->out = fds[2];
	delegate->err = fds[4];
}

int delegates_start(struct delegates *delegates, const struct wire_message *message)
{
	struct order *order = need(calloc(1, sizeof(*order)));
	struct delegate *place = NULL;
	struct wire_buffer stdin_bytes = {0};
	int rc = -1;

	for (size_t i = 0; i < DELEGATES_MAX && !place; i++)
		if (delegates->list[i].pid == 0)
			place = &delegates->list[i];
	if (read_order(message, order, &stdin_bytes) == 0 && place) {
		*place = (struct delegate){.id = order->id, .stdin_bytes = stdin_bytes};
		stdin_bytes = (struct wire_buffer){0};
		start(delegates, place, order);
		rc = 0;
	}
	free(stdin_bytes.data);
	order_done(order);
	free(order);
	return rc;
}

/* ---- while they run -------------------------------------------------------------------------- */

size_t delegates_poll(const struct delegates *delegates, struct pollfd fds[DELEGATES_POLL_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < DELEGATES_MAX; i++) {
		const struct delegate *d = &delegates->list[i];

		if (d->pid <= 0)
			continue;
		if (d->in >= 0)
			fds[n++] = (struct pollfd){.fd = d->in, .events = POLLOUT};
		if (d->out >= 0)
			fds[n++] = (struct pollfd){.fd = d->out, .events = POLLIN};
		if (d->err >= 0)
			fds[n++] = (struct pollfd){.fd = d->err, .events = POLLIN};
	}
	return n;
}

static void drop(int *fd)
{
	(void)close(*fd);
	*fd = -1;
}

static void feed(struct delegate *delegate)
{
	while (delegate->in >= 0) {
		ssize_t n = 0;

		if (delegate->stdin_bytes.len > 0)
			n = write(delegate->in, delegate->stdin_bytes.data,
				  delegate->stdin_bytes.len);
		if (n > 0) {
			wire_consume(&delegate->stdin_bytes, (size_t)n);
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			/* All is written, or it does not want to read it. */
			drop(&delegate->in);
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

/* What is too much is read all the same, so that the program can end. */
static void drain(int *fd, struct wire_buffer *into, size_t max)
{
	unsigned char chunk[16384];

	while (*fd >= 0) {
		ssize_t n = read(*fd, chunk, sizeof(chunk));

		if (n > 0) {
			size_t room = max - into->len;

			wire_append(into, chunk, (size_t)n < room ? (size_t)n : room);
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			drop(fd);
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

static uint32_t status_of(pid_t pid)
{
	int status = 0;

	if (pid < 0)
		return DELEGATES_NOT_STARTED;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return DELEGATES_NOT_STARTED;
	return (uint32_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void free_place(struct delegate *delegate)
{
	free(delegate->stdin_bytes.data);
	free(delegate->stdout_bytes.data);
	free(delegate->stderr_bytes.data);
	*delegate = (struct delegate){0};
}

static void report(struct delegate *delegate, struct wire_buffer *out)
{
	size_t begun = wire_begin(out, WIRE_RESULT);

	wire_add_number(out, WIRE_ID, delegate->id);
	wire_add_number(out, WIRE_STATUS, status_of(delegate->pid));
	wire_add(out, WIRE_STDOUT, delegate->stdout_bytes.data, delegate->stdout_bytes.len);
	wire_add(out, WIRE_STDERR, delegate->stderr_bytes.data, delegate->stderr_bytes.len);
	/* STDOUT_MAX makes it fit. */
	if (wire_end(out, begun) < 0)
		abort();
	free_place(delegate);
}

void delegates_turn(struct delegates *delegates, struct wire_buffer *out)
{
	for (size_t i = 0; i < DELEGATES_MAX; i++) {
		struct delegate *d = &delegates->list[i];

		if (d->pid == 0)
			continue;
		feed(d);
		drain(&d->out, &d->stdout_bytes, STDOUT_MAX);
		drain(&d->err, &d->stderr_bytes, WIRE_STDERR_MAX);
		if (d->out >= 0 || d->err >= 0)
			continue;
		if (d->in >= 0)
			drop(&d->in);
		report(d, out);
	}
}

void delegates_free(struct delegates *delegates)
{
	for (size_t i = 0; delegates && i < DELEGATES_MAX; i++) {
		struct delegate *d = &delegates->list[i];

		if (d->pid > 0) {
			(void)kill(-d->pid, SIGKILL);
			/* It may not lead its group yet. */
			(void)kill(d->pid, SIGKILL);
		}
		if (d->pid)
			free_place(d);
	}
	free(delegates);
}

size_t delegates_running(const struct delegates *delegates)
{
	size_t n = 0;

	for (size_t i = 0; i < DELEGATES_MAX; i++)
		n += delegates->list[i].pid != 0;
	return n;
}
