// SPDX-License-Identifier: Apache-2.0
/*
 * One call: its header fields are checked, its message decoded, its handler called, its answer
 * sent.
 *
 * A call lives as long as its stream. For the handler it ends with the answer: what happens on the
 * wire after that is ours alone.
 */
#include "lib/grpc/call.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>

#include "lib/base/mem.h"
#include "lib/grpc/message.h"

struct grpc_call {
	struct grpc_dispatch *dispatch;
	struct grpc_call *prev, *next;
	struct grpc_stream *stream;
	const struct grpc_method *method; /* NULL until the header fields were good */
	struct ProtobufCMessage *request; /* until the handler has seen it */
	struct timer *timer;              /* NULL: no deadline */
	bool is_handled;                  /* the handler knows of it */
	bool is_streaming;                /* the response has begun, more may come */
	bool is_over;                     /* answered, or cut off */
	void (*ended)(void *arg, enum grpc_code why);
	void *ended_arg;
};

/* ---- the end of a call ----------------------------------------------------------------------- */

/* End the handler's call: it does not use it after this. */
static void settle_call(struct grpc_call *call, enum grpc_code code)
{
	assert(!call->is_over);
	call->is_over = true;
	timer_free(take_ptr(call->timer));
	grpc_message_free(take_ptr(call->request));
	/* Names of methods that do not exist come from the client; they make no series. */
	metric_add(call->dispatch->counter, 1, call->method ? call->method->path : "unknown",
		   grpc_code_name(code));
}

static void tell_handler(struct grpc_call *call, enum grpc_code why)
{
	void (*ended)(void *arg, enum grpc_code why) = call->ended;

	call->ended = NULL;
	if (call->is_handled && ended)
		ended(call->ended_arg, why);
}

static void answer_call(struct grpc_call *call, const char *http_status,
			const struct grpc_status *status)
{
	settle_call(call, status->code);
	grpc_stream_finish(call->stream, http_status, status);
}

static void refuse_call(struct grpc_call *call, const char *http_status, enum grpc_code code,
			const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void refuse_call(struct grpc_call *call, const char *http_status, enum grpc_code code,
			const char *fmt, ...)
{
	struct grpc_status status;
	va_list ap;

	va_start(ap, fmt);
	(void)grpc_status_vset(&status, code, fmt, ap);
	va_end(ap);
	answer_call(call, http_status, &status);
}

/* The handler's call ends although it has not answered. */
static void cut_off(struct grpc_call *call, enum grpc_code code, const char *text)
{
	grpc_stream_unsend(
		call->stream); /* what a slow client has not read yet is not worth waiting for */
	refuse_call(call, "200", code, "%s", text);
	tell_handler(call, code);
}

static void call_free(struct grpc_call *call)
{
	struct grpc_dispatch *dispatch = call->dispatch;

	if (call->prev)
		call->prev->next = call->next;
	else
		dispatch->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
	mem_free(call);
}

/* ---- events of the stream -------------------------------------------------------------------- */

static void on_deadline(void *arg)
{
	cut_off(arg, GRPC_DEADLINE_EXCEEDED, "the deadline of the call has passed");
}

static const struct grpc_method *find_method(const struct grpc_dispatch *dispatch, const char *path)
{
	for (size_t i = 0; i < dispatch->n_methods; i++)
		if (strcmp(dispatch->methods[i].path, path) == 0)
			return &dispatch->methods[i];
	return NULL;
}

/* "application/grpc", alone or followed by '+' or ';' and whatever. */
static bool is_grpc(const char *content_type)
{
	static const char type[] = "application/grpc";

	return str_starts(content_type, type) && strchr("+;", content_type[sizeof(type) - 1]);
}

static void on_headers(void *arg, const struct grpc_headers *h)
{
	struct grpc_call *call = arg;
	const struct grpc_method *method;
	int64_t timeout_ms = 0;

	/*
	 * HTTP codes beside the gRPC code: for clients that speak no gRPC (doc/PROTOCOL-HTTP2.md,
	 * "Requests").
	 */
	if (h->is_malformed || !h->method || !h->path) {
		refuse_call(call, "400", GRPC_INTERNAL,
			    "malformed request: a header field is missing or there twice");
		return;
	}
	if (strcmp(h->method, "POST") != 0) {
		refuse_call(call, "405", GRPC_INTERNAL, "the HTTP method is POST, not \"%.16s\"",
			    h->method);
		return;
	}
	if (!h->content_type || !is_grpc(h->content_type)) {
		refuse_call(call, "415", GRPC_INTERNAL,
			    "the content type is application/grpc, not \"%.64s\"",
			    h->content_type ? h->content_type : "");
		return;
	}
	if (h->timeout && !grpc_timeout_parse(h->timeout, &timeout_ms)) {
		refuse_call(call, "200", GRPC_INTERNAL, "malformed grpc-timeout \"%.16s\"",
			    h->timeout);
		return;
	}
	if (h->encoding && strcmp(h->encoding, "identity") != 0) {
		refuse_call(call, "200", GRPC_UNIMPLEMENTED,
			    "compression \"%.16s\" is not supported", h->encoding);
		return;
	}
	if (call->dispatch->is_closing) {
		refuse_call(call, "200", GRPC_UNAVAILABLE, "the server is closing");
		return;
	}
	method = find_method(call->dispatch, h->path);
	if (!method) {
		refuse_call(call, "200", GRPC_UNIMPLEMENTED, "unknown method \"%.128s\"", h->path);
		return;
	}
	call->method = method;
	if (h->timeout) {
		call->timer = timer_new(call->dispatch->loop, on_deadline, call);
		timer_start(call->timer, timeout_ms);
	}
}

static void on_message(void *arg, const void *data, size_t len)
{
	struct grpc_call *call = arg;
	struct grpc_status why;

	if (call->is_over)
		return;
	if (call->request) {
		refuse_call(call, "200", GRPC_UNIMPLEMENTED,
			    "more than one message; the method takes one");
		return;
	}
	call->request = grpc_message_decode(call->method->request, data, len,
					    call->dispatch->message_max, &why);
	if (!call->request)
		answer_call(call, "200", &why);
}

static void on_failed(void *arg, const struct grpc_status *why)
{
	struct grpc_call *call = arg;

	if (!call->is_over)
		answer_call(call, "200", why);
}

static void on_ended(void *arg)
{
	struct grpc_call *call = arg;
	struct ProtobufCMessage *request;

	if (call->is_over)
		return;
	if (!call->request) {
		refuse_call(call, "200", GRPC_UNIMPLEMENTED, "no message; the method takes one");
		return;
	}
	request = take_ptr(call->request);
	call->is_handled = true;
	call->method->handle(call, request, call->dispatch->arg);
	grpc_message_free(request);
	assert(call->is_over || call->ended);
}

static void on_closed(void *arg, uint32_t h2_error)
{
	struct grpc_call *call = arg;

	if (!call->is_over) {
		settle_call(call, GRPC_CANCELLED);
		tell_handler(call, GRPC_CANCELLED);
	}
	call_free(call);
}

static const struct grpc_stream_ops stream_ops = {
	.headers = on_headers,
	.message = on_message,
	.failed = on_failed,
	.ended = on_ended,
	.closed = on_closed,
};

void grpc_dispatch_opened(struct grpc_dispatch *dispatch, struct grpc_stream *stream)
{
	struct grpc_call *call = mem_new(struct grpc_call);

	assert(dispatch && stream);
	call->dispatch = dispatch;
	call->stream = stream;
	call->next = dispatch->calls;
	if (dispatch->calls)
		dispatch->calls->prev = call;
	dispatch->calls = call;
	grpc_stream_attach(stream, &stream_ops, call);
}

/* A handler may answer other calls from `ended`; their streams free them, not this loop. */
void grpc_dispatch_close(struct grpc_dispatch *dispatch)
{
	assert(dispatch);
	dispatch->is_closing = true;
	for (struct grpc_call *call = dispatch->calls; call; call = call->next)
		if (call->is_streaming && !call->is_over)
			cut_off(call, GRPC_UNAVAILABLE, "the server is closing");
}

void grpc_dispatch_cut_off(struct grpc_dispatch *dispatch)
{
	assert(dispatch);
	for (struct grpc_call *call = dispatch->calls; call; call = call->next)
		if (!call->is_over)
			cut_off(call, GRPC_UNAVAILABLE, "the server is closing");
}

void grpc_dispatch_done(struct grpc_dispatch *dispatch)
{
	while (dispatch->calls) {
		/* One whose header fields were just arriving: no handler knows of it. */
		if (!dispatch->calls->is_over)
			settle_call(dispatch->calls, GRPC_UNAVAILABLE);
		call_free(dispatch->calls);
	}
}

/* ---- for handlers ---------------------------------------------------------------------------- */

void grpc_call_on_end(struct grpc_call *call, void (*ended)(void *arg, enum grpc_code why),
		      void *arg)
{
	assert(call && ended);
	call->ended = ended;
	call->ended_arg = arg;
}

size_t grpc_call_queued_bytes(const struct grpc_call *call)
{
	assert(call);
	return grpc_stream_queued(call->stream);
}

void grpc_call_reply(struct grpc_call *call, const struct ProtobufCMessage *response)
{
	auto_strbuf struct strbuf frame = {0};
	struct grpc_status status = {.code = GRPC_OK};

	assert(call && response);
	if (grpc_message_encode(response, call->dispatch->message_max, &frame, &status) == 0)
		grpc_stream_send(call->stream, frame.data, frame.len);
	answer_call(call, "200", &status);
}

int grpc_call_send_latest(struct grpc_call *call, const struct ProtobufCMessage *message,
			  struct err *err)
{
	auto_strbuf struct strbuf frame = {0};
	struct grpc_status status;

	assert(call && message && !call->is_over);
	if (grpc_message_encode(message, call->dispatch->message_max, &frame, &status) < 0)
		return err_set(err, ERR_INVALID, "MessageTooLarge", "%s: %s", call->method->path,
			       status.text);
	call->is_streaming = true;
	grpc_stream_unsend(call->stream);
	grpc_stream_send(call->stream, frame.data, frame.len);
	return 0;
}

void grpc_call_finish(struct grpc_call *call)
{
	const struct grpc_status status = {.code = GRPC_OK};

	assert(call);
	answer_call(call, "200", &status);
}

void grpc_call_fail(struct grpc_call *call, enum grpc_code code, const char *fmt, ...)
{
	struct grpc_status status;
	va_list ap;

	assert(code != GRPC_OK);
	va_start(ap, fmt);
	(void)grpc_status_vset(&status, code, fmt, ap);
	va_end(ap);
	answer_call(call, "200", &status);
}
