// SPDX-License-Identifier: Apache-2.0
/*
 * A state machine over bytes. Each function leaves `state` and `out` as the caller has to act on
 * them.
 */
#include "lib/http/exchange.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

static const struct {
	int status;
	const char *text;
} reasons[] = {
	{200, "OK"},
	{201, "Created"},
	{202, "Accepted"},
	{400, "Bad Request"},
	{401, "Unauthorized"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{406, "Not Acceptable"},
	{408, "Request Timeout"},
	{409, "Conflict"},
	{410, "Gone"},
	{411, "Length Required"},
	{413, "Content Too Large"},
	{415, "Unsupported Media Type"},
	{417, "Expectation Failed"},
	{422, "Unprocessable Content"},
	{429, "Too Many Requests"},
	{431, "Request Header Fields Too Large"},
	{500, "Internal Server Error"},
	{501, "Not Implemented"},
	{503, "Service Unavailable"},
	{505, "HTTP Version Not Supported"},
};

struct http_asked {
	struct exchange *exchange; /* NULL: it is gone */
	bool is_late;
};

struct http_later {
	struct exchange *exchange; /* NULL: it is gone */
};

static const char *reason_text(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "";
}

const char *http_query_get(const struct http_request *req, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < req->n_query; i++) {
		const char *param = req->query[i];

		if (strncmp(param, name, len) != 0)
			continue;
		if (param[len] == '=')
			return param + len + 1;
		if (param[len] == '\0')
			return param + len;
	}
	return NULL;
}

/* ---- room for large bodies ------------------------------------------------------------------- */

static size_t large_total(const struct exchange_site *site, const struct in6_addr *peer,
			  bool *ret_has_one)
{
	size_t total = 0;

	*ret_has_one = false;
	for (const struct exchange *x = site->large; x; x = x->next_large) {
		total += x->large;
		*ret_has_one = *ret_has_one || memcmp(&x->peer, peer, sizeof(*peer)) == 0;
	}
	return total;
}

/*
 * Room for a body that is announced: large ones share what there is, and a peer has one at a time.
 */
static bool take_room(struct exchange *x, uint64_t len)
{
	struct exchange_site *site = x->site;
	bool has_one = false;

	assert(x->large == 0);
	if (len <= HTTP_LARGE_BODY)
		return true;
	if (len > HTTP_LARGE_BODIES_MAX - large_total(site, &x->peer, &has_one) || has_one)
		return false;
	x->large = len;
	x->prev_large = NULL;
	x->next_large = site->large;
	if (site->large)
		site->large->prev_large = x;
	site->large = x;
	return true;
}

static void give_room(struct exchange *x)
{
	if (x->large == 0)
		return;
	x->large = 0;
	if (x->prev_large)
		x->prev_large->next_large = x->next_large;
	else
		x->site->large = x->next_large;
	if (x->next_large)
		x->next_large->prev_large = x->prev_large;
}

static void end_stream(struct exchange *x)
{
	const struct http_source *source = take_ptr(x->stream.source);

	if (source)
		source->ended(x->stream.arg);
}

void exchange_init(struct exchange *x, struct exchange_site *site, const struct in6_addr *peer)
{
	assert(site && peer);
	*x = (struct exchange){.site = site, .peer = *peer};
}

void exchange_done(struct exchange *x)
{
	if (x->asked)
		x->asked->exchange = NULL;
	if (x->later)
		x->later->exchange = NULL;
	end_stream(x);
	give_room(x);
	strbuf_done(&x->in);
	strbuf_done(&x->out);
	strbuf_done(&x->body);
	mem_free(take_ptr(x->head));
}

/* ---- answering ------------------------------------------------------------------------------- */

static void add_allow(struct strbuf *out, unsigned int allowed)
{
	const char *before = "Allow: ";

	for (unsigned int method = HTTP_GET; method <= HTTP_DELETE; method <<= 1)
		if (allowed & method) {
			strbuf_addf(out, "%s%s%s", before, http_method_name(method),
				    method == HTTP_GET ? ", HEAD" : "");
			before = ", ";
		}
	strbuf_adds(out, "\r\n");
}

/* Append the next chunk, if there is one, and the last one where the body is complete. */
static void fill_stream(struct exchange *x)
{
	assert(x->stream.source && !x->stream.is_filling);
	/* Leading zeros are part of the grammar: the size is filled in when it is known. */
	static const char unknown[] = "00000000\r\n";
	struct http_stream *stream = &x->stream;
	struct strbuf *out = &x->out;
	size_t begin = out->len, body;
	char size[sizeof(unknown)];
	bool goes_on;

	x->started_us = clock_us();
	if (!x->req.is_old)
		strbuf_adds(out, unknown);
	body = out->len;
	stream->is_filling = true;
	goes_on = stream->source->fill(out, stream->arg);
	stream->is_filling = false;
	assert(out->len - body <= UINT32_MAX);
	if (out->len == body) {
		strbuf_cut(out, begin);
	} else if (!x->req.is_old) {
		snprintf(size, sizeof(size), "%08zx\r\n", out->len - body);
		memcpy(out->data + begin, size, sizeof(size) - 1);
		strbuf_adds(out, "\r\n");
	}
	if (goes_on)
		return;
	if (!x->req.is_old)
		strbuf_adds(out, "0\r\n\r\n");
	end_stream(x);
	x->state = EXCHANGE_SENDING;
}

static void count_request(const struct exchange *x, int status)
{
	const struct exchange_site *site = x->site;
	const char *path = x->route ? x->route->path : "other";
	char code[16];

	snprintf(code, sizeof(code), "%d", status);
	metric_add(site->requests, 1, site->name, path, request_method_name(&x->req), code);
	metric_observe(site->duration, (double)(clock_us() - x->started_us) / 1e6, site->name,
		       path);
}

static struct http_request without_body(const struct exchange *x)
{
	return (struct http_request){
		.method = x->req.method,
		.path = x->req.path,
		.query = x->req.query,
		.n_query = x->req.n_query,
		.content_type = x->req.content_type,
		.authorization = x->req.authorization,
		.accept = x->req.accept,
		.user_agent = x->req.user_agent,
		.body = "",
	};
}

/* The body is the start of `in`; it ends with a NUL for the time of the call. */
static void call_handler(struct exchange *x, struct http_response *resp)
{
	struct http_request req = without_body(x);
	char *end = x->in.data ? x->in.data + x->req.body_len : NULL;
	char next = '\0';

	/* Without one the request was refused. */
	assert(x->route);
	if (x->req.is_chunked) {
		req.body = strbuf_str(&x->body);
		req.body_len = x->body.len;
		x->route->handle(&req, resp, x->route->arg);
		return;
	}
	if (end) {
		next = *end;
		*end = '\0';
	}
	req.body = strbuf_str(&x->in);
	req.body_len = x->req.body_len;
	x->route->handle(&req, resp, x->route->arg);
	if (end)
		*end = next;
}

static void write_response(struct exchange *x, const struct http_response *resp)
{
	struct strbuf *out;
	time_t now;
	char text[64];
	struct tm tm;

	assert(resp->status >= 200 && resp->status <= 599 && resp->content_type);
	give_room(x);
	count_request(x, resp->status);
	out = &x->out;
	strbuf_addf(out, "HTTP/1.1 %d %s\r\n", resp->status, reason_text(resp->status));
	now = (time_t)(clock_wall_us() / 1000000);
	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	strbuf_addf(out, "Date: %s\r\n", text);
	strbuf_addf(out, "Content-Type: %s\r\nX-Content-Type-Options: nosniff\r\n",
		    resp->content_type);
	if (!x->stream.source)
		strbuf_addf(out, "Content-Length: %zu\r\n", resp->body.len);
	else if (x->req.is_old)
		x->close_after = true; /* the end of the connection is the end of the body */
	else
		strbuf_adds(out, "Transfer-Encoding: chunked\r\n");
	if (resp->status == 401)
		strbuf_adds(out, "WWW-Authenticate: Bearer\r\n");
	if (resp->status == 405)
		add_allow(out, x->allowed);
	if (x->close_after)
		strbuf_adds(out, "Connection: close\r\n");
	strbuf_adds(out, "\r\n");
	x->state = EXCHANGE_SENDING;
	if (x->req.is_head) {
		end_stream(x);
	} else if (x->stream.source) {
		x->state = EXCHANGE_STREAMING;
		fill_stream(x);
	} else {
		strbuf_add(out, strbuf_str(&resp->body), resp->body.len);
	}
}

static void answer_request(struct exchange *x)
{
	struct http_response resp = {.status = 200, .content_type = HTTP_TEXT, .exchange = x};

	if (x->refusal) {
		resp.status = x->refusal;
		strbuf_addf(&resp.body, "%d %s\n", x->refusal, reason_text(x->refusal));
	} else {
		call_handler(x, &resp);
		assert(resp.status >= 200 && resp.status <= 599);
	}
	strbuf_done(&x->body);
	/* Behind a body that is not read comes nothing that we would read. */
	if (x->is_body_left)
		strbuf_done(&x->in);
	else
		strbuf_consume(&x->in, x->req.body_len);
	if (x->later)
		x->state = EXCHANGE_GATED;
	else
		write_response(x, &resp);
	strbuf_done(&resp.body);
}

struct http_later *http_response_later(struct http_response *resp)
{
	struct exchange *x = resp->exchange;

	assert(!x->later && !x->stream.source);
	x->later = mem_new(struct http_later);
	x->later->exchange = x;
	return x->later;
}

void http_later_answer(struct http_later *later, struct http_response *resp)
{
	struct exchange *x = later->exchange;

	assert(!x || x->state == EXCHANGE_GATED);
	mem_free(later);
	if (x) {
		x->later = NULL;
		write_response(x, resp);
		strbuf_done(&resp->body);
		x->site->answered(x);
	} else {
		strbuf_done(&resp->body);
	}
}

struct http_stream *http_response_stream(struct http_response *resp,
					 const struct http_source *source, void *arg)
{
	struct exchange *x = resp->exchange;

	assert(!x->later && !x->stream.source);
	assert(source->fill && source->ended);
	x->stream = (struct http_stream){.source = source, .arg = arg};
	return &x->stream;
}

void http_stream_wake(struct http_stream *stream)
{
	struct exchange *x = container_of(stream, struct exchange, stream);

	assert(!stream->is_filling);
	if (x->state != EXCHANGE_STREAMING || x->out.len > 0)
		return;
	fill_stream(x);
	if (x->out.len > 0)
		x->site->answered(x);
}

static void ask_gate(struct exchange *x)
{
	const struct http_gate *gate = x->route->gate;
	const struct http_request req = without_body(x);

	assert(!x->asked && x->route && x->route->gate);
	x->state = EXCHANGE_GATED;
	x->asked = mem_new(struct http_asked);
	x->asked->exchange = x;
	gate->ask(&req, x->asked, gate->arg);
	if (x->asked)
		x->asked->is_late = true;
}

void http_asked_answer(struct http_asked *asked, int status)
{
	struct exchange *x = asked->exchange;
	bool is_late = asked->is_late;

	assert(status >= 200 && status <= 599);
	mem_free(asked);
	if (!x)
		return;
	x->asked = NULL;
	x->refusal = status == 200 ? 0 : status;
	answer_request(x);
	if (is_late)
		x->site->answered(x);
}

/* Answer now, whatever is still to come of this request, and then end the connection. */
static void refuse_and_close(struct exchange *x, int status)
{
	x->refusal = status;
	x->route = NULL;
	x->close_after = true;
	x->is_body_left = true;
	answer_request(x);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void find_route(struct exchange *x)
{
	const struct exchange_site *site = x->site;

	for (size_t i = 0; i < site->n_routes && !x->route; i++) {
		const struct http_route *route = &site->routes[i];

		if (route->is_prefix ? !str_starts(x->req.path, route->path)
				     : strcmp(route->path, x->req.path) != 0)
			continue;
		x->allowed |= route->methods;
		if (route->methods & x->req.method)
			x->route = route;
	}
	if (!x->route)
		x->refusal = x->allowed ? 405 : 404;
}

static void request_begin(struct exchange *x)
{
	assert(!x->head && !x->asked && !x->later);
	x->state = EXCHANGE_HEAD;
	x->req = (struct request){.path = "", .content_type = "", .accept = "", .user_agent = ""};
	x->route = NULL;
	x->refusal = 0;
	x->allowed = 0;
	x->close_after = false;
	x->is_body_left = false;
	x->chunks = (struct chunks){0};
	x->started_us = clock_us();
}

static void receive_head(struct exchange *x, size_t len)
{
	size_t body_max = HTTP_BODY_MAX;
	int status;

	x->started_us = clock_us();
	/* With a NUL behind it, so that it can be read as text. */
	x->head = str_ndup(x->in.data, len);
	strbuf_consume(&x->in, len);
	status = request_parse(x->head, len, &x->req);
	if (status != 0) {
		refuse_and_close(x, status);
		return;
	}
	x->has_asked = true;
	find_route(x);
	if (x->route && x->route->body_max > 0)
		body_max = x->route->body_max;
	if (x->req.body_len > body_max) {
		refuse_and_close(x, x->refusal ? x->refusal : 413);
		return;
	}
	if (x->req.is_chunked && !x->refusal && !x->route->takes_chunks) {
		refuse_and_close(x, 411);
		return;
	}
	if (!take_room(x, x->req.is_chunked ? body_max : x->req.body_len)) {
		refuse_and_close(x, 503);
		return;
	}
	/*
	 * The client waits for 100 Continue before it sends the body; it got its response if the
	 * request was rejected.
	 */
	if (x->req.has_expect && x->refusal) {
		refuse_and_close(x, x->refusal);
		return;
	}
	x->close_after = x->req.wants_close;
	x->state = EXCHANGE_BODY;
	if (x->req.has_expect && (x->req.is_chunked || x->in.len < x->req.body_len))
		strbuf_adds(&x->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* The body is whole; false: more has to come, or the answer is given. */
static bool receive_body(struct exchange *x)
{
	size_t max = x->route && x->route->body_max ? x->route->body_max : HTTP_BODY_MAX;
	int status;

	if (!x->req.is_chunked)
		return x->in.len >= x->req.body_len;
	status = chunks_take(&x->chunks, &x->in, &x->body, max);
	if (status != 0)
		refuse_and_close(x, status);
	return status == 0 && x->chunks.state == CHUNKS_DONE;
}

/* Do with `in` what can be done now. */
static void process_input(struct exchange *x)
{
	while (x->state <= EXCHANGE_BODY) {
		size_t len;

		if (x->state == EXCHANGE_IDLE) {
			strbuf_consume(&x->in, request_skip_blank(strbuf_str(&x->in), x->in.len));
			/* Half of an empty line is not the begin of a request. */
			if (x->in.len == 1 && x->in.data[0] == '\r')
				return;
			if (x->in.len == 0) {
				strbuf_done(&x->in);
				return;
			}
			request_begin(x);
		} else if (x->state == EXCHANGE_HEAD) {
			len = request_head_len(x->in.data, x->in.len);
			if (len > HTTP_HEADERS_MAX || (len == 0 && x->in.len > HTTP_HEADERS_MAX))
				refuse_and_close(x, 431);
			else if (len == 0)
				return;
			else
				receive_head(x, len);
		} else {
			if (!receive_body(x))
				return;
			/* A "100 Continue" that has not gone yet goes in front. */
			if (x->route && x->route->gate)
				ask_gate(x);
			else
				answer_request(x);
		}
	}
}

void exchange_received(struct exchange *x, const void *data, size_t len)
{
	if (x->state >= EXCHANGE_DRAINING)
		return;
	strbuf_add(&x->in, data, len);
	if (x->state == EXCHANGE_STREAMING && x->in.len > HTTP_HEADERS_MAX) {
		end_stream(x);
		x->state = EXCHANGE_OVER;
	} else if (x->state < EXCHANGE_GATED) {
		process_input(x);
	}
}

void exchange_sent(struct exchange *x)
{
	strbuf_done(&x->out);
	if (x->state == EXCHANGE_STREAMING)
		fill_stream(x);
	if (x->state != EXCHANGE_SENDING || x->out.len > 0)
		return;
	mem_free(take_ptr(x->head));
	if (x->close_after) {
		/*
		 * Closing while the client sends would make the kernel send a reset, and the client
		 * may lose our answer to it.
		 */
		x->state = x->is_body_left ? EXCHANGE_DRAINING : EXCHANGE_OVER;
		return;
	}
	x->state = EXCHANGE_IDLE;
	process_input(x);
}

void exchange_timeout(struct exchange *x)
{
	assert(x->state == EXCHANGE_HEAD || x->state == EXCHANGE_BODY);
	refuse_and_close(x, 408);
}
