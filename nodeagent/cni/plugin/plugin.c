// SPDX-License-Identifier: Apache-2.0
/*
 * A call is built from the environment and stdin, sent, and its answer printed; meanwhile programs
 * run (delegates.c). Without a server each command has an answer of its own, and a DEL a note
 * (note.c).
 */
#include "nodeagent/cni/plugin/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "nodeagent/cni/plugin/deadlines.h"
#include "nodeagent/cni/plugin/delegates.h"
#include "nodeagent/cni/plugin/loopback.h"
#include "nodeagent/cni/plugin/note.h"
#include "nodeagent/cni/plugin/wire.h"

/* Codes of the CNI specification. */
enum { CODE_ENVIRONMENT = 4, CODE_IO = 5, CODE_CONFIG = 7, CODE_LATER = 11 };

enum {
	STDIN_MAX = WIRE_MAX - 262144, /* the environment goes along */
	LOOK_MS = 50,                  /* at a server that is away */
};

static const char versions[] = "{\"cniVersion\":\"1.1.0\","
			       "\"supportedVersions\":[\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\",\"0."
			       "4.0\",\"1.0.0\",\"1.1.0\"]}\n";

enum command {
	COMMAND_ADD,
	COMMAND_DEL,
	COMMAND_CHECK,
	COMMAND_GC,
	COMMAND_STATUS,
	COMMAND_VERSION,
	COMMAND_OTHER, /* the server refuses it, in words */
};

struct plugin {
	const char *name, *socket, *state;
	enum command command;
	int netns;               /* -1: none */
	struct wire_buffer call; /* as a message */
	int server;              /* -1: not connected */
	struct wire_buffer in, out;
	struct delegates *delegates;
	bool is_done; /* `answer` and `status` are what the server said */
	struct wire_buffer answer;
	int status;
};

/* ---- answers of our own ---------------------------------------------------------------------- */

static void print(const void *data, size_t len)
{
	const char *bytes = data;

	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		bytes += n;
		len -= (size_t)n;
	}
}

/* `text` is ours and needs no escaping. Returns the exit status. */
static int fail(int code, const char *text)
{
	char object[512];
	int len = snprintf(object, sizeof(object), "{\"code\":%d,\"msg\":\"%s\"}\n", code, text);

	print(object, (size_t)len < sizeof(object) ? (size_t)len : sizeof(object) - 1);
	return 1;
}

static enum command command_of(const char *text)
{
	static const char *const words[] = {"ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0)
			return (enum command)i;
	return COMMAND_OTHER;
}

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* ---- the call -------------------------------------------------------------------------------- */

static int read_stdin(struct wire_buffer *into)
{
	unsigned char chunk[16384];

	for (;;) {
		ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		if (into->len + (size_t)n > STDIN_MAX) {
			errno = EFBIG;
			return -1;
		}
		wire_append(into, chunk, (size_t)n);
	}
}

/* A pipe or a device of that name is not waited for. */
static void open_netns(struct plugin *p)
{
	const char *path = environment("CNI_NETNS", NULL);

	if (!path)
		return;
	p->netns = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (p->netns < 0)
		wire_add_number(&p->call, WIRE_NETNS_ERROR, (uint32_t)errno);
}

/* 0, or the exit status of a failure that was printed. */
static int make_call(struct plugin *p)
{
	extern char **environ;
	struct wire_buffer config = {0};
	size_t begun;

	if (read_stdin(&config) < 0) {
		bool is_too_large = errno == EFBIG;

		free(config.data);
		return is_too_large
			       ? fail(CODE_CONFIG, "the network configuration on stdin is too "
						   "large: at most 3.75 MiB are read")
			       : fail(CODE_IO, "cannot read the network configuration from stdin");
	}
	begun = wire_begin(&p->call, WIRE_CALL);
	wire_add_text(&p->call, WIRE_NAME, p->name);
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "CNI_", 4) == 0)
			wire_add_text(&p->call, WIRE_ENV, *e);
	wire_add(&p->call, WIRE_STDIN, config.data, config.len);
	free(config.data);
	open_netns(p);
	if (wire_end(&p->call, begun) < 0)
		return fail(CODE_ENVIRONMENT,
			    "the environment is too large: shorten the variables CNI_*");
	return 0;
}

/* ---- the server ------------------------------------------------------------------------------ */

static int connect_once(const struct plugin *p)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(p->socket) >= sizeof(name.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name.sun_path, p->socket, strlen(p->socket) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The namespace goes with the first byte. -1: the server has gone. */
static int send_call(const struct plugin *p)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {.iov_base = p->call.data, .iov_len = p->call.len};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (p->netns >= 0) {
		struct cmsghdr *head;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &p->netns, sizeof(int));
	}
	while (part.iov_len > 0) {
		ssize_t n = sendmsg(p->server, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		part.iov_base = (char *)part.iov_base + n;
		part.iov_len -= (size_t)n;
		message.msg_control = NULL;
		message.msg_controllen = 0;
	}
	return 0;
}

static void hang_up(struct plugin *p)
{
	if (p->server >= 0)
		(void)close(p->server);
	p->server = -1;
}

static void take_answer(struct plugin *p, const struct wire_message *message)
{
	struct wire_field field;
	size_t at = 0;

	p->status = 1;
	while (wire_next(message, &at, &field)) {
		if (field.tag == WIRE_STDOUT)
			wire_append(&p->answer, field.data, field.len);
		else if (field.tag == WIRE_STATUS)
			p->status = (int)(wire_number(&field, 1) & 0xff);
	}
	p->is_done = true;
}

/* -1: nothing more is to be had from this server. */
static int hear(struct plugin *p)
{
	struct wire_message message;
	unsigned char chunk[16384];
	ssize_t n = recv(p->server, chunk, sizeof(chunk), MSG_DONTWAIT);
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	wire_append(&p->in, chunk, (size_t)n);
	while ((rc = wire_read(p->in.data, p->in.len, &message)) > 0 && !p->is_done) {
		if (message.kind == WIRE_DONE)
			take_answer(p, &message);
		else if (message.kind != WIRE_EXEC || delegates_start(p->delegates, &message) < 0)
			return -1;
		wire_consume(&p->in, message.bytes);
	}
	return rc;
}

static int speak(struct plugin *p)
{
	ssize_t n = send(p->server, p->out.data, p->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		wire_consume(&p->out, (size_t)n);
	return n < 0 && errno != EAGAIN && errno != EINTR ? -1 : 0;
}

/*
 * Until the answer is there, or the server gone. Programs that run then are waited for: what they
 * leave half done nobody would know of.
 */
static void converse(struct plugin *p)
{
	struct pollfd fds[1 + DELEGATES_POLL_MAX];

	while (p->server >= 0 ? !p->is_done : delegates_running(p->delegates) > 0) {
		size_t n = delegates_poll(p->delegates, fds + 1);

		fds[0] = (struct pollfd){.fd = p->server,
					 .events = (short)(POLLIN | (p->out.len ? POLLOUT : 0))};
		if (poll(fds, n + 1, -1) < 0 && errno != EINTR)
			return;
		if (p->server >= 0 && fds[0].revents && hear(p) < 0)
			hang_up(p);
		delegates_turn(p->delegates, &p->out);
		if (p->server >= 0 && p->out.len > 0 && speak(p) < 0)
			hang_up(p);
	}
}

/* True: the answer is there. */
static bool ask_server(struct plugin *p, int64_t wait_ms)
{
	static const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t until = now_ms() + wait_ms;

	while ((p->server = connect_once(p)) < 0) {
		if (now_ms() >= until)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	if (send_call(p) == 0)
		converse(p);
	hang_up(p);
	p->in.len = p->out.len = 0;
	return p->is_done;
}

/*
 * A server that starts listens first and looks for notes then: either it finds ours, or it can be
 * asked now.
 */
static int leave_note(struct plugin *p)
{
	char name[NOTE_NAME_MAX];

	if (note_write(p->state, p->call.data, p->call.len, name) < 0)
		return fail(CODE_LATER, "the agent of this node does not answer, and what is to be "
					"deleted cannot be noted on the disk: see whether it is "
					"full, and whether the pod orbweaver-agent runs");
	if (!ask_server(p, 0))
		return 0;
	note_remove(p->state, name);
	print(p->answer.data, p->answer.len);
	return p->status;
}

static int go_without(struct plugin *p)
{
	if (p->command == COMMAND_DEL)
		return leave_note(p);
	/*
	 * The runtime asks while our configuration is there. For an error its node becomes
	 * NotReady, and after five minutes its running pods are evicted; new ones wait in ADD.
	 */
	if (p->command == COMMAND_STATUS)
		return 0;
	return fail(CODE_LATER, "the agent of this node does not answer: see whether the pod "
				"orbweaver-agent runs on it; the runtime tries again");
}

static int64_t wait_of(const struct plugin *p)
{
	const char *wait = environment("ORBWEAVER_CNI_WAIT_MS", NULL);

	if (p->command == COMMAND_DEL || p->command == COMMAND_STATUS)
		return 0;
	return wait ? strtol(wait, NULL, 10) : PLUGIN_WAIT_MS;
}

static int call_loopback(struct plugin *p)
{
	bool is_add = p->command == COMMAND_ADD;

	if (p->command == COMMAND_OTHER)
		return fail(CODE_ENVIRONMENT, "loopback: unknown CNI_COMMAND");
	if (!is_add && p->command != COMMAND_CHECK)
		return 0;
	if (loopback_run(p->netns, is_add) < 0)
		return fail(CODE_IO, "loopback: lo is down in CNI_NETNS, or that is no network "
				     "namespace which can be entered");
	if (is_add) {
		loopback_result(&p->call, environment("CNI_NETNS", ""), loopback_has_v6(), &p->out);
		print(p->out.data, p->out.len);
	}
	return 0;
}

int plugin_run(const char *name)
{
	const char *command = environment("CNI_COMMAND", "");
	struct plugin p = {
		.name = name,
		.socket = environment("ORBWEAVER_CNI_SOCKET", WIRE_SOCKET),
		.state = environment("ORBWEAVER_CNI_STATE", WIRE_STATE),
		.command = command_of(command),
		.netns = -1,
		.server = -1,
	};
	int rc;

	if (*command == '\0') {
		(void)dprintf(STDERR_FILENO, "%s\nIt is called by a container runtime as %s.\n",
			      PLUGIN_MARK, name);
		return 0;
	}
	if (p.command == COMMAND_VERSION) {
		print(versions, sizeof(versions) - 1);
		return 0;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	rc = make_call(&p);
	if (rc == 0 && strcmp(name, "loopback") == 0) {
		rc = call_loopback(&p);
	} else if (rc == 0) {
		p.delegates = delegates_new(p.state);
		if (ask_server(&p, wait_of(&p))) {
			print(p.answer.data, p.answer.len);
			rc = p.status;
		} else {
			rc = go_without(&p);
		}
	}
	/* Little by little, so that a leak shows. What runs still, the server has given up. */
	delegates_free(p.delegates);
	free(p.call.data);
	free(p.in.data);
	free(p.out.data);
	free(p.answer.data);
	if (p.netns >= 0)
		(void)close(p.netns);
	return rc;
}
