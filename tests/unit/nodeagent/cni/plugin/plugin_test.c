// SPDX-License-Identifier: Apache-2.0
/* The plugin as a process, against a server that the test plays. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "nodeagent/cni/plugin/plugin.h"
#include "nodeagent/cni/plugin/wire.h"
#include "tests/support/scratch.h"

struct stand {
	char *folder;
	int listener;
	int connection;
	pid_t pid;
	int out, err; /* what the plugin prints */
	struct wire_buffer in;
	size_t heard; /* bytes of it that were read as messages */
};

static void listen_there(struct stand *s)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", s->folder);
	(void)unlink(name.sun_path);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(s->listener, 8), 0);
}

static int set_up(void **state)
{
	struct stand *s = calloc(1, sizeof(*s));

	s->folder = scratch_new();
	s->listener = s->connection = -1;
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	if (s->listener >= 0)
		(void)close(s->listener);
	if (s->connection >= 0)
		(void)close(s->connection);
	(void)close(s->out);
	(void)close(s->err);
	free(s->in.data);
	scratch_free(s->folder);
	free(s);
	return 0;
}

/* Start it as `name` with this CNI_COMMAND and stdin. */
static void call(struct stand *s, const char *name, const char *command, const char *config)
{
	int in[2], out[2], err[2];

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
	s->pid = fork();
	if (s->pid == 0) {
		auto_free char *socket = str_below(s->folder, "socket");
		auto_free char *state = str_below(s->folder, "state/cni");

		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(out[1], STDOUT_FILENO);
		(void)dup2(err[1], STDERR_FILENO);
		(void)close(in[1]);
		(void)setenv("CNI_COMMAND", command, 1);
		(void)setenv("CNI_CONTAINERID", "abc", 1);
		(void)setenv("CNI_IFNAME", "net1", 1);
		(void)setenv("CNI_NETNS", "/proc/self/ns/net", 1);
		(void)setenv("CNI_PATH", s->folder, 1);
		(void)setenv("ORBWEAVER_CNI_SOCKET", socket, 1);
		(void)setenv("ORBWEAVER_CNI_STATE", state, 1);
		(void)setenv("ORBWEAVER_CNI_WAIT_MS", "200", 1);
		_exit(plugin_run(name));
	}
	(void)close(in[0]);
	(void)close(out[1]);
	(void)close(err[1]);
	assert_int_equal(write(in[1], config, strlen(config)), (ssize_t)strlen(config));
	(void)close(in[1]);
	s->out = out[0];
	s->err = err[0];
}

/* Its exit status; *ret_out is what it printed, new. */
static int finish(struct stand *s, char **ret_out)
{
	struct strbuf out = {0};
	char chunk[4096];
	ssize_t n;
	int status;

	while ((n = read(s->out, chunk, sizeof(chunk))) > 0)
		strbuf_add(&out, chunk, (size_t)n);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	*ret_out = strbuf_take(&out);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The next message, whose bytes stay in `in` until the next one; *ret_fd: what came along. */
static struct wire_message hear(struct stand *s, int *ret_fd)
{
	struct wire_message message;
	char chunk[4096], control[CMSG_SPACE(sizeof(int))];

	if (ret_fd)
		*ret_fd = -1;
	wire_consume(&s->in, s->heard);
	s->heard = 0;
	while (wire_read(s->in.data, s->in.len, &message) == 0) {
		struct iovec part = {chunk, sizeof(chunk)};
		struct msghdr head = {.msg_iov = &part,
				      .msg_iovlen = 1,
				      .msg_control = control,
				      .msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(s->connection, &head, MSG_CMSG_CLOEXEC);

		assert_true(n > 0);
		if (CMSG_FIRSTHDR(&head) && ret_fd)
			memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&head)), sizeof(int));
		wire_append(&s->in, chunk, (size_t)n);
	}
	s->heard = message.bytes;
	return message;
}

static void answer(struct stand *s, struct wire_buffer *out)
{
	assert_int_equal(send(s->connection, out->data, out->len, MSG_NOSIGNAL), (ssize_t)out->len);
	free(out->data);
}

static void say_done(struct stand *s, const char *text, uint32_t status)
{
	struct wire_buffer out = {0};
	size_t begun = wire_begin(&out, WIRE_DONE);

	wire_add_number(&out, WIRE_STATUS, status);
	wire_add_text(&out, WIRE_STDOUT, text);
	assert_int_equal(wire_end(&out, begun), 0);
	answer(s, &out);
}

static void add_exec(struct wire_buffer *out, uint32_t id, const char *path, const char *env,
		     const char *in)
{
	size_t begun = wire_begin(out, WIRE_EXEC);

	wire_add_number(out, WIRE_ID, id);
	wire_add_text(out, WIRE_PATH, path);
	wire_add_text(out, WIRE_ENV, env);
	wire_add_text(out, WIRE_STDIN, in);
	assert_int_equal(wire_end(out, begun), 0);
}

static char *text_of(const struct wire_message *message, unsigned int tag)
{
	struct wire_field field;

	for (size_t at = 0; wire_next(message, &at, &field);)
		if (field.tag == tag)
			return str_ndup((const char *)field.data, field.len);
	return NULL;
}

static int64_t number_of(const struct wire_message *message, unsigned int tag)
{
	struct wire_field field;

	for (size_t at = 0; wire_next(message, &at, &field);)
		if (field.tag == tag)
			return wire_number(&field, 0);
	return -1;
}

static void take_connection(struct stand *s)
{
	s->connection = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(s->connection >= 0);
}

static void put_program(const struct stand *s, const char *name, const char *text)
{
	auto_free char *path = str_below(s->folder, name);

	assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0755, NULL), 0);
}

/* The notes in the state's folder. */
static size_t count_notes(const struct stand *s, struct strbuf *ret_last)
{
	auto_free char *command =
		str_printf("find '%s/state/cni/notes' -type f 2>/dev/null", s->folder);
	FILE *list = popen(command, "r");
	char path[4096];
	size_t n = 0;

	while (fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = '\0';
		strbuf_reset(ret_last);
		assert_int_equal(fs_read(AT_FDCWD, path, WIRE_MAX, ret_last, NULL), 0);
		n++;
	}
	(void)pclose(list);
	return n;
}

/* ---- the tests ------------------------------------------------------------------------------- */

TEST_WITH(hands_over_name_environment_stdin_and_namespace, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *name = NULL, *in = NULL, *out = NULL;
	struct wire_message message;
	struct stat theirs, ours;
	int netns;

	listen_there(s);
	call(s, "sriov", "ADD", "{\"a\": 1}");
	take_connection(s);
	message = hear(s, &netns);
	assert_int_equal(message.kind, WIRE_CALL);
	name = text_of(&message, WIRE_NAME);
	in = text_of(&message, WIRE_STDIN);
	assert_string_equal(name, "sriov");
	assert_string_equal(in, "{\"a\": 1}");
	assert_int_equal(number_of(&message, WIRE_NETNS_ERROR), -1);
	assert_int_equal(fstat(netns, &theirs), 0);
	assert_int_equal(stat("/proc/self/ns/net", &ours), 0);
	assert_int_equal(theirs.st_ino, ours.st_ino);
	(void)close(netns);
	say_done(s, "{\"code\": 5}", 1);
	assert_int_equal(finish(s, &out), 1);
	assert_string_equal(out, "{\"code\": 5}");
}

/* The words are those of another fault otherwise: stdin can be read. */
TEST_WITH(names_the_size_of_a_configuration_that_is_too_large, set_up, tear_down)
{
	struct stand *s = *state;
	auto_strbuf struct strbuf config = {0};
	auto_free char *out = NULL;

	listen_there(s);
	strbuf_reserve(&config, WIRE_MAX);
	while (config.len <= WIRE_MAX - 262144)
		strbuf_adds(&config, " ");
	call(s, "sriov", "ADD", strbuf_str(&config));
	assert_int_equal(finish(s, &out), 1);
	assert_non_null(strstr(out, "\"code\":7"));
	assert_non_null(strstr(out, "too large: at most 3.75 MiB"));
}

TEST_WITH(runs_programs_side_by_side_and_sends_back_what_they_say, set_up, tear_down)
{
	struct stand *s = *state;
	struct wire_buffer out = {0};
	auto_free char *printed = NULL;
	bool seen[4] = {false};

	listen_there(s);
	/* The first ends only after the second has. */
	put_program(s, "first",
		    "#!/bin/sh\ncat\nuntil [ -e \"${CNI_PATH}/go\" ]; do sleep 0.01; done\n"
		    "echo \" $CNI_COMMAND $CNI_IFNAME\" && echo warned >&2 && exit 3\n");
	put_program(s, "second", "#!/bin/sh\ntouch \"${CNI_PATH}/go\"\n");
	call(s, "macvlan", "ADD", "{}");
	take_connection(s);
	(void)hear(s, NULL);
	add_exec(&out, 1, "first", "CNI_COMMAND=DEL", "given");
	add_exec(&out, 2, "second", "CNI_IFNAME", "");
	add_exec(&out, 3, "no-such-plugin", "CNI_IFNAME", "");
	answer(s, &out);
	while (!seen[1] || !seen[2] || !seen[3]) {
		struct wire_message message = hear(s, NULL);
		int64_t id = number_of(&message, WIRE_ID);
		auto_free char *text = text_of(&message, WIRE_STDOUT);
		auto_free char *words = text_of(&message, WIRE_STDERR);

		assert_int_equal(message.kind, WIRE_RESULT);
		assert_in_range(id, 1, 3);
		seen[id] = true;
		if (id == 1) {
			assert_string_equal(text, "given DEL net1\n");
			assert_string_equal(words, "warned\n");
			assert_int_equal(number_of(&message, WIRE_STATUS), 3);
		}
		if (id == 2)
			assert_int_equal(number_of(&message, WIRE_STATUS), 0);
		if (id == 3) {
			assert_int_equal(number_of(&message, WIRE_STATUS), 127);
			assert_non_null(strstr(words, "failed to find plugin \"no-such-plugin\""));
		}
	}
	say_done(s, "", 0);
	assert_int_equal(finish(s, &printed), 0);
}

/* The process of this id has ended; a zombie has no command line. */
static bool has_ended(const char *pid)
{
	auto_free char *path = str_printf("/proc/%s/cmdline", pid);
	FILE *file = fopen(path, "r");
	int c = file ? fgetc(file) : EOF;

	if (file)
		(void)fclose(file);
	return c == EOF;
}

/* The server does not wait for it any longer. */
TEST_WITH(a_program_that_hangs_ends_with_the_call_and_what_it_started, set_up, tear_down)
{
	struct stand *s = *state;
	struct wire_buffer out = {0};
	auto_free char *printed = NULL, *path = str_below(s->folder, "pids");
	auto_strbuf struct strbuf text = {0};
	char *rest, *pid;

	listen_there(s);
	put_program(s, "hangs",
		    "#!/bin/sh\nsleep 600 &\necho $! $$ >$CNI_PATH/new && "
		    "mv $CNI_PATH/new $CNI_PATH/pids\nwait\n");
	call(s, "macvlan", "DEL", "{}");
	take_connection(s);
	(void)hear(s, NULL);
	add_exec(&out, 1, "hangs", "CNI_COMMAND=DEL", "");
	answer(s, &out);
	while (fs_read(AT_FDCWD, path, 64, &text, NULL) < 0)
		(void)usleep(10000);
	say_done(s, "", 0);
	assert_int_equal(finish(s, &printed), 0);
	text.data[strcspn(text.data, "\n")] = '\0';
	for (rest = text.data; (pid = strsep(&rest, " "));)
		for (int i = 0; !has_ended(pid); i++) {
			if (i == 1000)
				fail_msg("process %s is there still", pid);
			(void)usleep(10000);
		}
}

/* Its server has no rights, and may have been taken over. */
TEST_WITH(runs_what_a_worker_has_allowed_in_the_runtime_s_environment, set_up, tear_down)
{
	static const char *const orders[][2] = {
		{"/bin/true", "CNI_COMMAND=ADD"},
		{"../bin/true", "CNI_COMMAND=ADD"},
		{"other", "CNI_COMMAND=ADD"},
		{"allowed", "CNI_PATH=/nonexistent"},
		{"allowed", "LD_PRELOAD=/nonexistent"},
		{"allowed", "CNI_NETNS=/proc/1/ns/net"},
		{"allowed", "CNI_NETNS"},
		{"allowed", "CNI_NETNS=/proc/self/ns/net"},
		{"allowed", "CNI_NETNS="},
	};
	struct stand *s = *state;
	auto_free char *folder = str_below(s->folder, "state/cni/" WIRE_PROGRAMS);
	auto_free char *printed = NULL, *note = str_below(folder, "allowed");
	auto_strbuf struct strbuf noted = {0};
	struct wire_buffer out = {0};

	listen_there(s);
	assert_int_equal(fs_make_dirs(folder, 0700), 0);
	assert_int_equal(fs_write_atomic(AT_FDCWD, note, "", 0, 0600, NULL), 0);
	put_program(s, "other", "#!/bin/sh\n");
	put_program(s, "allowed", "#!/bin/sh\necho \"$LD_PRELOAD$CNI_PATH $CNI_NETNS\"\n");
	call(s, "macvlan", "ADD", "{}");
	take_connection(s);
	(void)hear(s, NULL);
	for (uint32_t i = 0; i < ARRAY_LEN(orders); i++)
		add_exec(&out, i, orders[i][0], orders[i][1], "");
	answer(s, &out);
	for (size_t n = 0; n < ARRAY_LEN(orders); n++) {
		struct wire_message message = hear(s, NULL);
		int64_t id = number_of(&message, WIRE_ID);
		auto_free char *text = text_of(&message, WIRE_STDOUT);
		auto_free char *words = text_of(&message, WIRE_STDERR);

		if (id < 3) {
			assert_int_equal(number_of(&message, WIRE_STATUS), 127);
			assert_non_null(strstr(words, "may not run"));
		} else {
			assert_int_equal(number_of(&message, WIRE_STATUS), 0);
			assert_int_equal(strncmp(text, s->folder, strlen(s->folder)), 0);
			assert_string_equal(text + strlen(s->folder),
					    id == 8 ? " \n" : " /proc/self/ns/net\n");
		}
	}
	/* For a worker that runs it when no plugin waits. */
	assert_int_equal(fs_read(AT_FDCWD, note, 4096, &noted, NULL), 0);
	assert_string_equal(strbuf_str(&noted), s->folder);
	say_done(s, "", 0);
	assert_int_equal(finish(s, &printed), 0);
}

TEST_WITH(add_without_a_server_says_to_try_again, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *out = NULL;

	call(s, "sriov", "ADD", "{}");
	assert_int_equal(finish(s, &out), 1);
	assert_non_null(strstr(out, "\"code\":11"));
	assert_non_null(strstr(out, "orbweaver-agent"));
}

TEST_WITH(add_is_not_lost_when_the_server_dies, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *out = NULL;

	listen_there(s);
	call(s, "sriov", "ADD", "{}");
	take_connection(s);
	(void)hear(s, NULL);
	(void)close(s->listener);
	(void)close(s->connection);
	s->listener = s->connection = -1;
	assert_int_equal(finish(s, &out), 1);
	assert_non_null(strstr(out, "\"code\":11"));
}

/* Else the node is NotReady while the agent is updated, and its running pods are evicted. */
TEST_WITH(status_without_a_server_is_well, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *out = NULL;

	call(s, "orbweaver", "STATUS", "{}");
	assert_int_equal(finish(s, &out), 0);
	assert_string_equal(out, "");
}

TEST_WITH(del_without_a_server_is_noted_on_the_disk, set_up, tear_down)
{
	struct stand *s = *state;
	auto_strbuf struct strbuf note = {0};
	auto_free char *out = NULL, *name = NULL;
	struct wire_message message;

	call(s, "rdma", "DEL", "{\"b\": 2}");
	assert_int_equal(finish(s, &out), 0);
	assert_string_equal(out, "");
	assert_int_equal(count_notes(s, &note), 1);
	assert_int_equal(wire_read(note.data, note.len, &message), 1);
	assert_int_equal(message.kind, WIRE_CALL);
	name = text_of(&message, WIRE_NAME);
	assert_string_equal(name, "rdma");
}

TEST_WITH(a_note_goes_when_the_server_takes_the_call_after_all, set_up, tear_down)
{
	struct stand *s = *state;
	auto_strbuf struct strbuf note = {0};
	auto_free char *out = NULL;

	listen_there(s);
	call(s, "rdma", "DEL", "{}");
	take_connection(s);
	(void)hear(s, NULL);
	/* This one dies with the call, the next one takes it. */
	(void)close(s->connection);
	take_connection(s);
	assert_int_equal(hear(s, NULL).kind, WIRE_CALL);
	assert_int_equal(count_notes(s, &note), 1);
	say_done(s, "", 0);
	assert_int_equal(finish(s, &out), 0);
	assert_int_equal(count_notes(s, &note), 0);
}

TEST_WITH(del_fails_when_it_cannot_be_noted, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *out = NULL;

	put_program(s, "state", "a file where a folder should be");
	call(s, "rdma", "DEL", "{}");
	assert_int_equal(finish(s, &out), 1);
	assert_non_null(strstr(out, "cannot be noted"));
}

TEST_WITH(version_needs_nobody, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *out = NULL;

	call(s, "coordinator", "VERSION", "");
	assert_int_equal(finish(s, &out), 0);
	assert_string_equal(
		out, "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":"
		     "[\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n");
}

TEST_WITH(called_by_hand_it_says_what_it_is, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *out = NULL;
	char words[512] = "";

	call(s, "orbweaver-cni", "", "");
	assert_int_equal(finish(s, &out), 0);
	assert_string_equal(out, "");
	assert_true(read(s->err, words, sizeof(words) - 1) > 0);
	assert_non_null(strstr(words, PLUGIN_MARK));
}
