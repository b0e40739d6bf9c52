// SPDX-License-Identifier: Apache-2.0
/*
 * nghttp2 underneath: its callbacks for a connection and its streams.
 *
 * Facts about nghttp2 that shape this folder: it owns the order of frames, windows and HPACK; it
 * asks for a stream's data by a callback whenever it could send some; submitting frames is allowed
 * in all its callbacks; and it reports a stream's end exactly once, except when the session itself
 * is deleted.
 */
#include "lib/grpc/session.h"

#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/grpc/grpc_internal.h"
#include "lib/grpc/limits.h"

static void input_failed(struct grpc_stream *stream, const struct grpc_status *why)
{
	if (stream->input_is_over)
		return;
	grpc_stream_stop_input(stream);
	TELL(stream, failed, why);
}

/* ---- callbacks of nghttp2 -------------------------------------------------------------------- */

/* Nothing of a session that is mute may go on: the owner is gone. */
static int go_on(const struct grpc_session *session)
{
	return session->is_mute ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct grpc_session *session = arg;
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	if (session->is_mute || session->is_abandoned)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (stream) {
		grpc_headers_done(&stream->headers);
		return 0;
	}
	if (!session->config.is_server || frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	stream = grpc_stream_new(session);
	stream->id = frame->hd.stream_id;
	grpc_h2_must(nghttp2_session_set_stream_user_data(h2, stream->id, stream));
	session->config.ops->opened(session->config.arg, stream);
	return go_on(session);
}

/*
 * Where a field is kept; NULL for those that we do not look at, ":authority" and "te" among them.
 */
static char **field_of(struct grpc_headers *h, const char *name)
{
	const struct {
		const char *name;
		char **field;
	} known[] = {
		{":method", &h->method},       {":path", &h->path},
		{":status", &h->http_status},  {"content-type", &h->content_type},
		{"grpc-timeout", &h->timeout}, {"grpc-encoding", &h->encoding},
		{"grpc-status", &h->status},   {"grpc-message", &h->text},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].field;
	return NULL;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *arg)
{
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	struct grpc_headers *h;
	char **field;

	if (!stream)
		return 0;
	h = &stream->headers;
	h->size += name_len + value_len + 32;
	if (h->size > GRPC_HEADERS_MAX)
		return 0;
	/*
	 * nghttp2 terminates both with NUL, but without its validation there may be others within.
	 */
	field = strlen((const char *)name) == name_len ? field_of(h, (const char *)name) : NULL;
	if (!field)
		return 0;
	if (*field || memchr(value, '\0', value_len))
		h->is_malformed = true;
	str_replace(field, str_ndup((const char *)value, value_len));
	return 0;
}

static void got_end(struct grpc_stream *stream)
{
	struct grpc_status why;

	stream->peer_has_ended = true;
	if (stream->input_is_over)
		return;
	if (grpc_frames_is_partial(&stream->in)) {
		(void)grpc_status_set(&why, GRPC_INTERNAL, "the stream ends within a message");
		input_failed(stream, &why);
		return;
	}
	grpc_stream_stop_input(stream);
	TELL(stream, ended);
}

static void got_headers(struct grpc_stream *stream, bool is_last)
{
	bool is_first = !stream->has_headers;
	struct grpc_status why;

	stream->has_headers = true;
	if (stream->input_is_over)
		return;
	if (stream->headers.size > GRPC_HEADERS_MAX) {
		(void)grpc_status_set(&why, GRPC_RESOURCE_EXHAUSTED,
				      "header fields of %zu bytes; at most %d are taken",
				      stream->headers.size, GRPC_HEADERS_MAX);
		input_failed(stream, &why);
		return;
	}
	if (!stream->session->config.is_server || is_first)
		TELL(stream, headers, &stream->headers);
	else if (!is_last)
		grpc_stream_reset(stream, NGHTTP2_PROTOCOL_ERROR);
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct grpc_session *session = arg;
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	bool is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK) &&
	    !session->is_ready) {
		session->is_ready = true;
		if (!session->is_mute && session->config.ops->ready)
			session->config.ops->ready(session->config.arg);
	}
	if (frame->hd.type == NGHTTP2_GOAWAY)
		session->peer_goes_away = true;
	if (stream && frame->hd.type == NGHTTP2_HEADERS)
		got_headers(stream, is_last);
	if (stream && is_last &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
		got_end(stream);
	return go_on(session);
}

static bool on_message(void *arg, const void *data, size_t len)
{
	struct grpc_stream *stream = arg;

	TELL(stream, message, data, len);
	return !stream->session->is_mute && stream->ops && !stream->input_is_over;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
		   void *arg)
{
	struct grpc_session *session = arg;
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(h2, id);
	struct grpc_status why;
	int result;

	if (!stream || stream->input_is_over)
		return 0;
	session->receiving -= stream->in.body.len;
	stream->is_feeding = true;
	result = grpc_frames_feed(&stream->in, data, len, on_message, stream, &why);
	stream->is_feeding = false;
	session->receiving += stream->in.body.len;
	if (stream->input_is_over) {
		grpc_stream_stop_input(stream);
	} else if (result < 0) {
		input_failed(stream, &why);
	} else if (session->receiving > GRPC_RECEIVE_MAX) {
		(void)grpc_status_set(&why, GRPC_RESOURCE_EXHAUSTED,
				      "the incomplete messages of one connection exceed %d bytes",
				      GRPC_RECEIVE_MAX);
		input_failed(stream, &why);
	}
	return go_on(session);
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error, void *arg)
{
	struct grpc_session *session = arg;
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(h2, id);

	if (!stream)
		return 0;
	(void)nghttp2_session_set_stream_user_data(h2, id, NULL);
	TELL(stream, closed, error);
	grpc_stream_free(stream);
	if (session->n_streams == 0 && !session->is_mute && session->config.ops->idle)
		session->config.ops->idle(session->config.arg);
	return go_on(session);
}

/*
 * A server that has said all while the client has not: RST_STREAM(NO_ERROR) asks it to stop (RFC
 * 9113 section 8.1). It has to come after the trailers, hence here.
 */
static int on_frame_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct grpc_session *session = arg;
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	if (!stream || !session->config.is_server || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	if (!stream->peer_has_ended)
		grpc_h2_must(nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, stream->id,
						       NGHTTP2_NO_ERROR));
	return 0;
}

/* Also when a Go client closes: from 1.65 on it says goodbye with a stream id that is not ours. */
static int on_invalid_frame(nghttp2_session *h2, const nghttp2_frame *frame, int code, void *arg)
{
	log_debug("a frame is against the rules of HTTP/2", F_INT("type", frame->hd.type),
		  F_INT("stream", frame->hd.stream_id), F_STR("error", nghttp2_strerror(code)));
	return 0;
}

/* ---- the session ----------------------------------------------------------------------------- */

static void *h2_malloc(size_t size, void *arg)
{
	return mem_alloc(size);
}

static void h2_free(void *ptr, void *arg)
{
	mem_free(ptr);
}

static void *h2_calloc(size_t n, size_t size, void *arg)
{
	return mem_calloc(n, size);
}

static void *h2_realloc(void *ptr, size_t size, void *arg)
{
	return mem_realloc(ptr, size);
}

static nghttp2_session_callbacks *callbacks_new(void)
{
	nghttp2_session_callbacks *callbacks;

	grpc_h2_must(nghttp2_session_callbacks_new(&callbacks));
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
	return callbacks;
}

static void make_h2(struct grpc_session *session)
{
	static nghttp2_mem mem = {NULL, h2_malloc, h2_free, h2_calloc, h2_realloc};
	const nghttp2_settings_entry server_settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS_MAX},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX},
	};
	const nghttp2_settings_entry client_settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX},
	};
	nghttp2_session_callbacks *callbacks = callbacks_new();
	nghttp2_option *option;

	grpc_h2_must(nghttp2_option_new(&option));
	if (session->config.is_server) {
		/*
		 * Kubelets up to 1.25 (up to 1.28 in their plugin watcher) send the path of the
		 * socket as ":authority", which is not a valid one; nghttp2 would answer
		 * PROTOCOL_ERROR before anyone sees the request (kubernetes/kubernetes#107093). So
		 * its validation of fields is off, and call.c checks those that it uses.
		 */
		nghttp2_option_set_no_http_messaging(option, 1);
		/* Streams that are closed are kept for priorities, which are not used here. */
		nghttp2_option_set_no_closed_streams(option, 1);
		grpc_h2_must(nghttp2_session_server_new3(&session->h2, callbacks, session, option,
							 &mem));
		grpc_h2_must(nghttp2_submit_settings(session->h2, NGHTTP2_FLAG_NONE,
						     server_settings, ARRAY_LEN(server_settings)));
	} else {
		grpc_h2_must(nghttp2_session_client_new3(&session->h2, callbacks, session, option,
							 &mem));
		grpc_h2_must(nghttp2_submit_settings(session->h2, NGHTTP2_FLAG_NONE,
						     client_settings, ARRAY_LEN(client_settings)));
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
}

struct grpc_session *grpc_session_new(const struct grpc_session_config *config)
{
	struct grpc_session *session = mem_new(struct grpc_session);

	assert(config && config->ops && config->message_max > 0);
	session->config = *config;
	make_h2(session);
	return session;
}

void grpc_session_free(struct grpc_session *session)
{
	if (!session)
		return;
	session->is_mute = true;
	nghttp2_session_del(session->h2);
	while (session->first)
		grpc_stream_free(session->first);
	mem_free(session);
}

void grpc_session_mute(struct grpc_session *session)
{
	assert(session);
	session->is_mute = true;
}

void grpc_session_abandon(struct grpc_session *session, uint32_t h2_error)
{
	assert(session);
	session->is_abandoned = true;
	/*
	 * Streams are freed by nghttp2's callback or with the session, so none leaves the list
	 * here.
	 */
	for (struct grpc_stream *stream = session->first; stream; stream = stream->next) {
		TELL(stream, closed, h2_error);
		grpc_stream_detach(stream);
	}
}

int grpc_session_receive(struct grpc_session *session, const void *data, size_t len,
			 struct err *err)
{
	ssize_t used = nghttp2_session_mem_recv(session->h2, data, len);

	assert(session && (data || len == 0));
	if (used < 0)
		return err_set(err, ERR_TRANSIENT, "BadHttp2", "%s", nghttp2_strerror((int)used));
	if (nghttp2_session_get_outbound_queue_size(session->h2) > GRPC_OUTBOUND_FRAMES_MAX)
		return err_set(err, ERR_TRANSIENT, "PeerDoesNotRead",
			       "the peer leaves more than %d frames unread",
			       GRPC_OUTBOUND_FRAMES_MAX);
	return 0;
}

ssize_t grpc_session_send(struct grpc_session *session, const uint8_t **ret_data, struct err *err)
{
	ssize_t len = nghttp2_session_mem_send(session->h2, ret_data);

	assert(session && ret_data);
	if (len < 0)
		return err_set(err, ERR_TRANSIENT, "BadHttp2", "%s", nghttp2_strerror((int)len));
	return len;
}

bool grpc_session_is_over(struct grpc_session *session)
{
	return !nghttp2_session_want_read(session->h2) && !nghttp2_session_want_write(session->h2);
}

size_t grpc_session_n_streams(const struct grpc_session *session)
{
	return session->n_streams;
}

bool grpc_session_is_going_away(struct grpc_session *session)
{
	return session->peer_goes_away;
}

void grpc_session_announce_end(struct grpc_session *session)
{
	assert(session->config.is_server);
	grpc_h2_must(nghttp2_submit_shutdown_notice(session->h2));
	grpc_wants_send(session);
}

void grpc_session_end(struct grpc_session *session)
{
	assert(session);
	grpc_h2_must(nghttp2_session_terminate_session(session->h2, NGHTTP2_NO_ERROR));
	grpc_wants_send(session);
}
