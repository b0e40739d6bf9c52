// SPDX-License-Identifier: Apache-2.0
/*
 * A server with methods for all that a test wants to see, and a client, on a socket in a temporary
 * folder, in one loop. Messages are RegistrationStatus, used as a text.
 */
#pragma once

#include "tests/support/test.h"

#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/client.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/message.h"
#include "lib/grpc/proto/plugin_registration.pb-c.h"
#include "lib/grpc/server.h"

#define TEXT_TYPE &plugin_registration__registration_status__descriptor

struct stand {
	struct loop *loop;
	struct metrics *metrics;
	char dir[64];
	char *path;
	struct grpc_server *server;
	struct grpc_client *client;
	bool server_closed;
	int client_closed;
	struct err client_why;

	/* what handlers saw */
	struct grpc_call *held; /* of /t/Hold and /t/Watch */
	int handled;
	int ended;
	enum grpc_code ended_why;
};

/* What became of a call. */
struct outcome {
	int messages;
	struct strbuf text; /* of all messages */
	bool done;
	struct grpc_status status;
	/* to do within the callbacks */
	struct stand *free_client_on_message;
};

static inline PluginRegistration__RegistrationStatus text_message(const char *text)
{
	PluginRegistration__RegistrationStatus message =
		PLUGIN_REGISTRATION__REGISTRATION_STATUS__INIT;

	message.error = (char *)text;
	return message;
}

static inline const char *text_of(const struct ProtobufCMessage *message)
{
	return ((const PluginRegistration__RegistrationStatus *)message)->error;
}

/* ---- methods --------------------------------------------------------------------------------- */

static void reply_text(struct grpc_call *call, const char *text)
{
	PluginRegistration__RegistrationStatus message = text_message(text);

	grpc_call_reply(call, &message.base);
}

static void handle_echo(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	struct stand *s = arg;

	s->handled++;
	reply_text(call, text_of(request));
}

/* "CODE TEXT" */
static void handle_fail(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	char *text;
	long code = strtol(text_of(request), &text, 10);

	grpc_call_fail(call, (enum grpc_code)code, "%s", text + 1);
}

static void on_held_end(void *arg, enum grpc_code why)
{
	struct stand *s = arg;

	s->held = NULL;
	s->ended++;
	s->ended_why = why;
}

/* No answer until the test gives one, and no message of a stream. */
static void handle_hold(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	struct stand *s = arg;

	s->handled++;
	s->held = call;
	grpc_call_on_end(call, on_held_end, s);
}

/* A text of so many bytes. */
static void handle_big(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	size_t len = (size_t)strtol(text_of(request), NULL, 10);
	auto_free char *text = mem_alloc(len + 1);

	memset(text, 'x', len);
	text[len] = '\0';
	reply_text(call, text);
}

static void on_server_closed(void *arg)
{
	struct stand *s = arg;

	s->server_closed = true;
}

/* The server closes itself from within a call. */
static void handle_close(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	struct stand *s = arg;

	grpc_server_close(take_ptr(s->server), 0, on_server_closed, s);
	reply_text(call, "closing");
}

static const struct grpc_method stand_methods[] = {
	{"/t/Echo", TEXT_TYPE, handle_echo}, {"/t/Fail", TEXT_TYPE, handle_fail},
	{"/t/Hold", TEXT_TYPE, handle_hold}, {"/t/Watch", TEXT_TYPE, handle_hold},
	{"/t/Big", TEXT_TYPE, handle_big},   {"/t/Close", TEXT_TYPE, handle_close},
};

/* ---- calls ----------------------------------------------------------------------------------- */

static void on_outcome_message(void *arg, const struct ProtobufCMessage *message)
{
	struct outcome *o = arg;

	o->messages++;
	strbuf_adds(&o->text, text_of(message));
	if (o->free_client_on_message)
		grpc_client_free(take_ptr(o->free_client_on_message->client));
}

static void on_outcome_done(void *arg, const struct grpc_status *status)
{
	struct outcome *o = arg;

	assert_false(o->done);
	o->done = true;
	o->status = *status;
}

static inline struct grpc_client_call *stand_begin(struct stand *s, const char *path,
						   const char *text, bool is_streaming,
						   int64_t timeout_ms, struct outcome *o)
{
	PluginRegistration__RegistrationStatus message = text_message(text);
	struct err err = {0};
	const struct grpc_request request = {
		.path = path,
		.message = &message.base,
		.response = TEXT_TYPE,
		.is_streaming = is_streaming,
		.timeout_ms = timeout_ms,
		.message_fn = on_outcome_message,
		.done = on_outcome_done,
		.arg = o,
	};
	struct grpc_client_call *call = grpc_client_call(s->client, &request, &err);

	if (!call)
		fail_msg("%s", err.text);
	return call;
}

/* Turn the loop until the condition holds; five seconds are an eternity. */
#define stand_until(s_, condition_)                                                                \
	do {                                                                                       \
		int64_t end_ = clock_ms() + 5000;                                                  \
		while (!(condition_) && clock_ms() < end_) {                                       \
			loop_turn((s_)->loop, false);                                              \
			if (!(condition_))                                                         \
				usleep(200);                                                       \
		}                                                                                  \
		if (!(condition_))                                                                 \
			fail_msg("never: " #condition_);                                           \
	} while (0)

static inline void stand_turn(struct stand *s, int ms)
{
	int64_t end = clock_ms() + ms;

	do {
		loop_turn(s->loop, false);
		usleep(200);
	} while (clock_ms() < end);
}

/* A call and its end; free o->text. */
static inline void stand_call(struct stand *s, const char *path, const char *text,
			      bool is_streaming, struct outcome *o)
{
	(void)stand_begin(s, path, text, is_streaming, 0, o);
	stand_until(s, o->done);
}

#define auto_outcome __attribute__((cleanup(outcome_done)))
static inline void outcome_done(struct outcome *o)
{
	strbuf_done(&o->text);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_client_closed(void *arg, const struct err *why)
{
	struct stand *s = arg;

	s->client_closed++;
	s->client_why = *why;
}

static inline void stand_serve(struct stand *s, const struct grpc_server_config *more)
{
	struct grpc_server_config config = more ? *more : (struct grpc_server_config){0};
	struct err err = {0};

	config.path = s->path;
	config.methods = stand_methods;
	config.n_methods = ARRAY_LEN(stand_methods);
	config.arg = s;
	config.metrics = s->metrics;
	s->server = grpc_server_new(s->loop, &config, &err);
	if (!s->server)
		fail_msg("%s", err.text);
}

static inline void stand_connect(struct stand *s, const struct grpc_client_config *more)
{
	struct grpc_client_config config = more ? *more : (struct grpc_client_config){0};
	struct err err = {0};

	config.path = s->path;
	config.closed = on_client_closed;
	config.arg = s;
	s->client = grpc_client_new(s->loop, &config, &err);
	if (!s->client)
		fail_msg("%s", err.text);
}

static inline void stand_close_server(struct stand *s, int64_t drain_ms)
{
	s->server_closed = false;
	grpc_server_close(take_ptr(s->server), drain_ms, on_server_closed, s);
	assert_false(s->server_closed);
}

static inline int stand_setup_empty(void **state)
{
	struct stand *s = mem_new(struct stand);

	s->loop = loop_new();
	s->metrics = metrics_new();
	snprintf(s->dir, sizeof(s->dir), "/tmp/orbweaver-grpc-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->path = str_printf("%s/s.sock", s->dir);
	*state = s;
	return 0;
}

static inline int stand_setup(void **state)
{
	struct stand *s;

	stand_setup_empty(state);
	s = *state;
	stand_serve(s, NULL);
	stand_connect(s, NULL);
	return 0;
}

static inline int stand_teardown(void **state)
{
	struct stand *s = *state;

	grpc_client_free(s->client);
	if (s->server) {
		stand_close_server(s, 0);
		stand_until(s, s->server_closed);
	}
	metrics_free(s->metrics);
	loop_free(s->loop);
	/* Nothing is left behind: rmdir says so. */
	(void)unlink(s->path);
	assert_int_equal(rmdir(s->dir), 0);
	mem_free(s->path);
	mem_free(s);
	return 0;
}
