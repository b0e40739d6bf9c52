// SPDX-License-Identifier: Apache-2.0
/* Streams: their life, and what they have to say: response headers, messages, trailers. */
#include "lib/grpc/stream.h"

#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/grpc/grpc_internal.h"

#define FIELD(name_, value_)                                                                       \
	((nghttp2_nv){(uint8_t *)(name_), (uint8_t *)(value_), strlen(name_), strlen(value_),      \
		      NGHTTP2_NV_FLAG_NONE})

/* ---- what stands below streams and session --------------------------------------------------- */

void grpc_h2_must(int result)
{
	if (result == 0)
		return;
	log_error("nghttp2 refused a call", F_STR("error", nghttp2_strerror(result)));
	abort();
}

void grpc_wants_send(struct grpc_session *session)
{
	if (!session->is_mute && session->config.ops->wants_send)
		session->config.ops->wants_send(session->config.arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

void grpc_headers_done(struct grpc_headers *h)
{
	mem_free(h->method);
	mem_free(h->path);
	mem_free(h->http_status);
	mem_free(h->content_type);
	mem_free(h->encoding);
	mem_free(h->timeout);
	mem_free(h->status);
	mem_free(h->text);
	*h = (struct grpc_headers){0};
}

struct grpc_stream *grpc_stream_new(struct grpc_session *session)
{
	struct grpc_stream *stream = mem_new(struct grpc_stream);

	assert(session);
	stream->session = session;
	stream->out_end = &stream->out;
	grpc_frames_init(&stream->in, session->config.message_max);
	stream->next = session->first;
	if (session->first)
		session->first->prev = stream;
	session->first = stream;
	session->n_streams++;
	return stream;
}

static void drop_queue(struct grpc_stream *stream)
{
	while (stream->out) {
		struct outgoing *message = stream->out;

		stream->out = message->next;
		mem_free(message);
	}
	stream->out_end = &stream->out;
	stream->queued = 0;
}

void grpc_stream_stop_input(struct grpc_stream *stream)
{
	stream->input_is_over = true;
	if (stream->is_feeding)
		return;
	stream->session->receiving -= stream->in.body.len;
	grpc_frames_done(&stream->in);
}

void grpc_stream_free(struct grpc_stream *stream)
{
	struct grpc_session *session = stream->session;

	assert(stream && stream->session);
	if (stream->prev)
		stream->prev->next = stream->next;
	else
		session->first = stream->next;
	if (stream->next)
		stream->next->prev = stream->prev;
	session->n_streams--;
	grpc_stream_stop_input(stream);
	drop_queue(stream);
	grpc_headers_done(&stream->headers);
	mem_free(stream);
}

void grpc_stream_attach(struct grpc_stream *stream, const struct grpc_stream_ops *ops, void *arg)
{
	assert(stream && ops);
	stream->ops = ops;
	stream->arg = arg;
}

void grpc_stream_detach(struct grpc_stream *stream)
{
	assert(stream);
	stream->ops = NULL;
	stream->arg = NULL;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void submit_trailers(struct grpc_stream *stream)
{
	auto_strbuf struct strbuf text = {0};
	char code[12];
	nghttp2_nv fields[2];
	size_t n = 0;

	snprintf(code, sizeof(code), "%d", (int)stream->status.code);
	fields[n++] = FIELD("grpc-status", code);
	grpc_text_encode(stream->status.text, &text);
	if (text.len)
		fields[n++] = FIELD("grpc-message", strbuf_str(&text));
	grpc_h2_must(nghttp2_submit_trailer(stream->session->h2, stream->id, fields, n));
}

static size_t take_queued(struct grpc_stream *stream, uint8_t *buf, size_t len)
{
	size_t copied = 0;

	while (stream->out && copied < len) {
		struct outgoing *message = stream->out;
		size_t n = message->len - message->sent;

		if (n > len - copied)
			n = len - copied;
		memcpy(buf + copied, message->data + message->sent, n);
		copied += n;
		message->sent += n;
		if (message->sent < message->len)
			break;
		stream->out = message->next;
		if (!stream->out)
			stream->out_end = &stream->out;
		mem_free(message);
	}
	stream->queued -= copied;
	return copied;
}

static ssize_t on_want_data(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t len,
			    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct grpc_stream *stream = source->ptr;
	size_t copied = take_queued(stream, buf, len);

	if (stream->out)
		return (ssize_t)copied;
	if (stream->is_ending) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (stream->session->config.is_server) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			submit_trailers(stream);
		}
		return (ssize_t)copied;
	}
	if (copied == 0) {
		stream->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)copied;
}

static void resume(struct grpc_stream *stream)
{
	if (stream->is_deferred)
		grpc_h2_must(nghttp2_session_resume_data(stream->session->h2, stream->id));
	stream->is_deferred = false;
	grpc_wants_send(stream->session);
}

void grpc_stream_begin(struct grpc_stream *stream)
{
	const nghttp2_nv fields[] = {FIELD(":status", "200"),
				     FIELD("content-type", "application/grpc")};
	const nghttp2_data_provider provider = {.source.ptr = stream,
						.read_callback = on_want_data};

	assert(stream->session->config.is_server);
	if (stream->has_begun)
		return;
	stream->has_begun = true;
	grpc_h2_must(nghttp2_submit_response(stream->session->h2, stream->id, fields,
					     ARRAY_LEN(fields), &provider));
	grpc_wants_send(stream->session);
}

void grpc_stream_send(struct grpc_stream *stream, const void *frame, size_t len)
{
	struct outgoing *message = mem_alloc(sizeof(*message) + len);

	assert(!stream->is_ending);
	message->next = NULL;
	message->len = len;
	message->sent = 0;
	memcpy(message->data, frame, len);
	*stream->out_end = message;
	stream->out_end = &message->next;
	stream->queued += len;
	if (!stream->has_begun)
		grpc_stream_begin(stream);
	resume(stream);
}

void grpc_stream_unsend(struct grpc_stream *stream)
{
	struct outgoing *begun = stream->out && stream->out->sent > 0 ? stream->out : NULL;

	assert(stream);
	if (begun)
		stream->out = begun->next;
	drop_queue(stream);
	if (!begun)
		return;
	begun->next = NULL;
	stream->out = begun;
	stream->out_end = &begun->next;
	stream->queued = begun->len - begun->sent;
}

static void trailers_only(struct grpc_stream *stream, const char *http_status)
{
	auto_strbuf struct strbuf text = {0};
	char code[12];
	nghttp2_nv fields[4];
	size_t n = 0;

	snprintf(code, sizeof(code), "%d", (int)stream->status.code);
	fields[n++] = FIELD(":status", http_status);
	fields[n++] = FIELD("content-type", "application/grpc");
	fields[n++] = FIELD("grpc-status", code);
	grpc_text_encode(stream->status.text, &text);
	if (text.len)
		fields[n++] = FIELD("grpc-message", strbuf_str(&text));
	stream->has_begun = true;
	grpc_h2_must(nghttp2_submit_response(stream->session->h2, stream->id, fields, n, NULL));
	grpc_wants_send(stream->session);
}

void grpc_stream_finish(struct grpc_stream *stream, const char *http_status,
			const struct grpc_status *status)
{
	assert(stream->session->config.is_server && !stream->is_ending);
	stream->is_ending = true;
	stream->status = *status;
	if (!stream->input_is_over)
		grpc_stream_stop_input(stream);
	if (stream->has_begun)
		resume(stream);
	else
		trailers_only(stream, http_status);
}

void grpc_stream_end(struct grpc_stream *stream)
{
	assert(!stream->session->config.is_server);
	stream->is_ending = true;
	resume(stream);
}

void grpc_stream_reset(struct grpc_stream *stream, uint32_t h2_error)
{
	assert(stream);
	grpc_stream_stop_input(stream);
	grpc_stream_unsend(stream);
	grpc_h2_must(nghttp2_submit_rst_stream(stream->session->h2, NGHTTP2_FLAG_NONE, stream->id,
					       h2_error));
	grpc_wants_send(stream->session);
}

size_t grpc_stream_queued(const struct grpc_stream *stream)
{
	assert(stream);
	return stream->queued;
}

struct grpc_stream *grpc_stream_open(struct grpc_session *session, const char *authority,
				     const char *path, const char *timeout,
				     const struct grpc_stream_ops *ops, void *arg)
{
	nghttp2_nv fields[8];
	nghttp2_data_provider provider = {.read_callback = on_want_data};
	struct grpc_stream *stream;
	size_t n = 0;

	assert(session && !session->config.is_server && authority && path && ops);
	if (session->is_abandoned || session->is_mute ||
	    !nghttp2_session_check_request_allowed(session->h2))
		return NULL;
	fields[n++] = FIELD(":method", "POST");
	fields[n++] = FIELD(":scheme", "http");
	fields[n++] = FIELD(":path", path);
	fields[n++] = FIELD(":authority", authority);
	fields[n++] = FIELD("content-type", "application/grpc");
	fields[n++] = FIELD("user-agent", "orbweaver/" ORBWEAVER_VERSION);
	fields[n++] = FIELD("te", "trailers");
	if (timeout)
		fields[n++] = FIELD("grpc-timeout", timeout);
	stream = grpc_stream_new(session);
	stream->has_begun = true;
	grpc_stream_attach(stream, ops, arg);
	provider.source.ptr = stream;
	stream->id = nghttp2_submit_request(session->h2, NULL, fields, n, &provider, stream);
	if (stream->id < 0) { /* 2^30 streams are used up: a new connection has new ones */
		grpc_stream_free(stream);
		return NULL;
	}
	grpc_wants_send(session);
	return stream;
}
