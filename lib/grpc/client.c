// SPDX-License-Identifier: Apache-2.0
/*
 * The other end: calls as a client makes them.
 *
 * connect(2) on a UNIX socket succeeds or fails at once, so a socket that is missing is an error
 * of grpc_client_new. A server behind it shows with the first SETTINGS; calls may be
 * made before, they wait in the session.
 */
#include "lib/grpc/client.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/grpc/conn.h"
#include "lib/grpc/message.h"

struct grpc_client {
	struct loop *loop;
	char *path;
	char *authority;
	size_t message_max;
	void (*closed)(void *arg, const struct err *why);
	void *arg;
	struct grpc_conn *conn;
	struct grpc_client_call *calls;
};

struct grpc_client_call {
	struct grpc_client *client;
	struct grpc_client_call *prev, *next;
	struct grpc_stream *stream;
	struct timer *timer;
	struct grpc_request request;       /* path and message are not kept */
	struct ProtobufCMessage *response; /* of a unary call, until its status is known */
	bool has_response_headers;
	bool has_status;
	struct grpc_status status;
	bool is_calling; /* a callback of the user's is running */
	bool is_gone;    /* it has ended this call; free it on the way back */
};

/* ---- calls: life ----------------------------------------------------------------------------- */

static void call_release(struct grpc_client_call *call)
{
	grpc_message_free(take_ptr(call->response));
	if (call->is_calling)
		call->is_gone = true;
	else
		mem_free(call);
}

/* Take it off the stream, the clock and the client. */
static void call_unhook(struct grpc_client_call *call)
{
	grpc_stream_detach(call->stream);
	timer_free(take_ptr(call->timer));
	if (call->prev)
		call->prev->next = call->next;
	else
		call->client->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
}

/* False when the user has ended the call meanwhile; it is freed then. */
static bool call_deliver(struct grpc_client_call *call, const struct ProtobufCMessage *message)
{
	if (!call->request.message_fn)
		return true;
	call->is_calling = true;
	call->request.message_fn(call->request.arg, message);
	call->is_calling = false;
	if (!call->is_gone)
		return true;
	mem_free(call);
	return false;
}

/* The call ends; status is copied, it may be the call's own. */
static void call_finish(struct grpc_client_call *call, const struct grpc_status *status)
{
	void (*done)(void *arg, const struct grpc_status *status) = call->request.done;
	void *arg = call->request.arg;
	struct grpc_status copy = *status;

	call_unhook(call);
	call_release(call);
	if (done)
		done(arg, &copy);
}

static void call_break(struct grpc_client_call *call, uint32_t h2_error,
		       const struct grpc_status *status)
{
	grpc_stream_reset(call->stream, h2_error);
	call_finish(call, status);
}

/* ---- events of the stream -------------------------------------------------------------------- */

static void on_headers(void *arg, const struct grpc_headers *h)
{
	struct grpc_client_call *call = arg;
	struct grpc_status why;

	if (!call->has_response_headers) {
		if (h->http_status && h->http_status[0] == '1')
			return; /* 1xx: the real ones follow */
		call->has_response_headers = true;
		if (!h->status && (!h->http_status || strcmp(h->http_status, "200") != 0)) {
			(void)grpc_status_set(&why, grpc_code_from_http(h->http_status),
					      "the server answered HTTP %.8s",
					      h->http_status ? h->http_status : "without a status");
			call_break(call, NGHTTP2_CANCEL, &why);
			return;
		}
		if (!h->status && !str_starts(h->content_type, "application/grpc")) {
			(void)grpc_status_set(&why, GRPC_UNKNOWN,
					      "the server answered with content type \"%.64s\"",
					      h->content_type ? h->content_type : "");
			call_break(call, NGHTTP2_CANCEL, &why);
			return;
		}
	}
	if (!h->status)
		return;
	call->has_status = true;
	grpc_status_parse(h->status, h->text, &call->status);
}

static void on_message(void *arg, const void *data, size_t len)
{
	struct grpc_client_call *call = arg;
	struct ProtobufCMessage *message;
	struct grpc_status why;

	if (call->response) {
		(void)grpc_status_set(&why, GRPC_INTERNAL,
				      "more than one message in the answer to a unary call");
		call_break(call, NGHTTP2_CANCEL, &why);
		return;
	}
	message = grpc_message_decode(call->request.response, data, len, call->client->message_max,
				      &why);
	if (!message) {
		call_break(call, NGHTTP2_CANCEL, &why);
		return;
	}
	if (call->request.is_streaming) {
		(void)call_deliver(call, message);
		grpc_message_free(message);
	} else {
		call->response = message;
	}
}

static void on_failed(void *arg, const struct grpc_status *why)
{
	call_break(arg, NGHTTP2_CANCEL, why);
}

static void on_ended(void *arg)
{
	struct grpc_client_call *call = arg;
	bool wants_one = !call->request.is_streaming;
	struct ProtobufCMessage *response;

	if (!call->has_status)
		(void)grpc_status_set(&call->status, GRPC_INTERNAL,
				      "the answer ends without a grpc-status");
	else if (call->status.code == GRPC_OK && wants_one && !call->response)
		(void)grpc_status_set(&call->status, GRPC_INTERNAL,
				      "the answer to a unary call has no message");
	response = take_ptr(call->response);
	if (call->status.code != GRPC_OK || !response || call_deliver(call, response))
		call_finish(call, &call->status);
	grpc_message_free(response);
}

static void on_stream_closed(void *arg, uint32_t h2_error)
{
	struct grpc_client_call *call = arg;
	const struct err *lost = grpc_conn_error(call->client->conn);
	struct grpc_status why;

	if (lost)
		(void)grpc_status_set(&why, GRPC_UNAVAILABLE, "%s: %s", call->client->path,
				      lost->text);
	else
		(void)grpc_status_set(&why, grpc_code_from_h2(h2_error),
				      "the server has ended the call: %s",
				      nghttp2_http2_strerror(h2_error));
	call_finish(call, &why);
}

static const struct grpc_stream_ops stream_ops = {
	.headers = on_headers,
	.message = on_message,
	.failed = on_failed,
	.ended = on_ended,
	.closed = on_stream_closed,
};

static void on_deadline(void *arg)
{
	struct grpc_client_call *call = arg;
	struct grpc_status why;

	(void)grpc_status_set(&why, GRPC_DEADLINE_EXCEEDED, "no answer within %lld ms",
			      (long long)call->request.timeout_ms);
	call_break(call, NGHTTP2_CANCEL, &why);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct grpc_stream *open_stream(struct grpc_client *client,
				       const struct grpc_request *request,
				       struct grpc_client_call *call)
{
	struct grpc_session *session = grpc_conn_session(client->conn);
	char timeout[GRPC_TIMEOUT_SIZE];

	if (grpc_conn_error(client->conn) || grpc_session_is_going_away(session))
		return NULL;
	if (request->timeout_ms > 0)
		grpc_timeout_format(request->timeout_ms, timeout);
	return grpc_stream_open(session, client->authority, request->path,
				request->timeout_ms > 0 ? timeout : NULL, &stream_ops, call);
}

struct grpc_client_call *grpc_client_call(struct grpc_client *client,
					  const struct grpc_request *request, struct err *err)
{
	auto_strbuf struct strbuf frame = {0};
	struct grpc_status status;
	struct grpc_client_call *call;
	struct grpc_stream *stream;

	assert(client && request && request->path);
	if (grpc_message_encode(request->message, client->message_max, &frame, &status) < 0) {
		err_set(err, ERR_INVALID, "MessageTooLarge", "%s: %s", request->path, status.text);
		return NULL;
	}
	call = mem_new(struct grpc_client_call);
	stream = open_stream(client, request, call);
	if (!stream) {
		mem_free(call);
		err_set(err, ERR_TRANSIENT, grpc_code_name(GRPC_UNAVAILABLE),
			"%s: the connection takes no more calls", client->path);
		return NULL;
	}
	call->client = client;
	call->stream = stream;
	call->request = *request;
	call->request.path = NULL;
	call->request.message = NULL;
	call->next = client->calls;
	if (client->calls)
		client->calls->prev = call;
	client->calls = call;
	if (request->timeout_ms > 0) {
		call->timer = timer_new(client->loop, on_deadline, call);
		timer_start(call->timer, request->timeout_ms);
	}
	grpc_stream_send(stream, frame.data, frame.len);
	grpc_stream_end(stream);
	return call;
}

/* ---- the connection -------------------------------------------------------------------------- */

static void on_conn_closed(void *arg, const struct err *why)
{
	struct grpc_client *client = arg;

	if (client->closed)
		client->closed(client->arg, why);
}

static const struct grpc_conn_ops conn_ops = {
	.closed = on_conn_closed,
};

static int connect_to(const struct grpc_client_config *config, struct err *err)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const char *path = config->path;
	auto_close int fd = -1;
	size_t len = strlen(path);

	if (config->connect) {
		fd = config->connect(config->connect_arg);
		if (fd < 0)
			return err_sys(err, "SocketUnavailable", "connect to %s", path);
		return take_fd(&fd);
	}

	if (len == 0 || len > GRPC_CLIENT_PATH_MAX)
		return err_set(err, ERR_INVALID, "BadSocketPath",
			       "socket path \"%s\": it has 1 to %d bytes", path,
			       GRPC_CLIENT_PATH_MAX);
	memcpy(name.sun_path, path, len + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, "SocketUnavailable", "make a socket for %s", path);
	if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0)
		return err_sys(err, "SocketUnavailable", "connect to %s", path);
	return take_fd(&fd);
}

struct grpc_client *grpc_client_new(struct loop *loop, const struct grpc_client_config *config,
				    struct err *err)
{
	int fd = connect_to(config, err);
	struct grpc_client *client;
	struct grpc_conn_config conn_config;

	assert(loop && config && config->path);
	if (fd < 0)
		return NULL;
	client = mem_new(struct grpc_client);
	client->loop = loop;
	client->path = str_dup(config->path);
	client->authority = str_dup(config->authority ? config->authority : "localhost");
	client->message_max = config->message_max ? config->message_max : GRPC_MESSAGE_MAX;
	client->closed = config->closed;
	client->arg = config->arg;
	conn_config = (struct grpc_conn_config){
		.message_max = client->message_max,
		.ready_ms = config->connect_ms ? config->connect_ms : GRPC_CONNECT_MS,
		.ops = &conn_ops,
		.arg = client,
	};
	client->conn = grpc_conn_new(loop, fd, &conn_config);
	return client;
}

void grpc_client_free(struct grpc_client *client)
{
	if (!client)
		return;
	while (client->calls) {
		struct grpc_client_call *call = client->calls;

		call_unhook(call);
		call_release(call);
	}
	grpc_conn_free(client->conn);
	mem_free(client->path);
	mem_free(client->authority);
	mem_free(client);
}
