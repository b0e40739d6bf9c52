// SPDX-License-Identifier: Apache-2.0
/*
 * One call: one attempt after another, each with a handle (handle.h) on a connection of the call's
 * lane (lane.h) when there is room, until an answer (answer.h) or an error (transfer.h) ends it.
 *
 * Curl may not be entered from its own callbacks, so calls only start and finish from the loop:
 * starting goes through the client's deferred, finishing through the connection's collector.
 */
#include "lib/kube/call.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/status.h"
#include "lib/kube/transfer.h"

enum {
	RETRY_FIRST_MS = 200,
	RETRY_MAX_MS = 10000,
	/*
	 * A call that waited this long, in which its connection received nothing, puts the
	 * connection under suspicion.
	 */
	SUSPECT_MS = 2000,
};

static void finish(struct kube_call *call, const struct err *err);
static void on_call_timer(void *arg);

/* ---- the fence ------------------------------------------------------------------------------- */

static bool may_send(const struct kube_call *call)
{
	const struct kube_client *client = call->client;

	return !call->request.fenced || !client->may_write ||
	       client->may_write(client->may_write_arg);
}

static int not_leader(struct err *err)
{
	return err_set(err, ERR_TRANSIENT, "NotLeader",
		       "this replica does not hold the lease, so it does not write");
}

static bool fence_is_closed(const struct kube_client *client)
{
	return client->may_write && !client->may_write(client->may_write_arg);
}

/* Curl is about to be entered and may send whatever it still holds, also of other calls. */
static void guard_connections(struct kube_client *client)
{
	if (client->n_sent_writes > 0 && fence_is_closed(client))
		fence_cut(client->fence);
}

/* ---- one attempt ----------------------------------------------------------------------------- */

/* Until the deadline, or until silence counts as an error. */
static void start_patience(struct kube_call *call)
{
	int64_t left = INT64_MAX;

	if (call->deadline_ms != INT64_MAX)
		left = call->deadline_ms - clock_ms();
	if (call->request.silence_ms > 0 && call->request.silence_ms < left)
		left = call->request.silence_ms;
	call->pausing = false;
	if (left == INT64_MAX)
		timer_stop(call->timer);
	else
		timer_start(call->timer, left);
}

static void heard(struct kube_call *call)
{
	long version = 0;

	if (call->stream.connection->opening)
		curl_easy_getinfo(call->handle.easy, CURLINFO_HTTP_VERSION, &version);
	connection_heard(call->stream.connection, version);
	call->heard_ms = clock_ms();
	if (call->request.silence_ms > 0)
		start_patience(call);
}

static void count_attempt(struct kube_call *call)
{
	bool is_stream = call->answer.opened;

	if (call->counted || call->stream.no_room)
		return;
	call->counted = true;
	attempts_count(&call->client->attempts, call->request.method, call->answer.status,
		       call->attempts > 1, is_stream ? -1 : clock_us() - call->sent_us);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
	struct kube_call *call = arg;
	bool begins = false;
	long status = 0;

	curl_easy_getinfo(call->handle.easy, CURLINFO_RESPONSE_CODE, &status);
	call->client->in_callback = true;
	begins = answer_header(&call->answer, bytes, size * n, (int)status);
	call->client->in_callback = false;
	if (begins)
		heard(call);
	if (call->answer.opened)
		count_attempt(call);
	return size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct kube_call *call = arg;
	bool more = false;

	heard(call);
	call->client->in_callback = true;
	more = answer_body(&call->answer, bytes, size * n);
	call->client->in_callback = false;
	return more ? size * n : CURL_WRITEFUNC_ERROR;
}

static void drop_attempt(struct kube_call *call)
{
	struct kube_client *client = call->client;

	if (call->handle.easy) {
		guard_connections(client);
		count_attempt(call);
		client->n_sent_writes -= call->request.fenced;
	}
	connection_leave(&call->stream);
	handle_give_back(&client->handles, &call->handle);
}

static void on_secret(void *arg, const struct kube_secret *secret, const struct err *err)
{
	struct kube_call *call = arg;
	struct kube_client *client = call->client;
	CURL *easy = NULL;

	if (err) {
		finish(call, err);
		return;
	}
	call->secret_generation = secret->generation;
	if (!lane_fits(call->stream.connection, secret)) {
		struct connection *other = lane_connection_for(&call->lane->lane, secret);

		connection_leave(&call->stream);
		connection_reserve(other, &call->stream);
	}
	handle_take(&client->handles, &call->request, secret, &call->handle);
	easy = call->handle.easy;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_text);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	client->n_sent_writes += call->request.fenced;
	connection_send(&call->stream, easy);
}

/* The place on the connection is free. */
static void start_attempt(struct kube_call *call, struct connection *connection)
{
	connection_reserve(connection, &call->stream);
	call->attempts++;
	call->counted = false;
	call->sent_us = clock_us();
	call->heard_ms = clock_ms();
	attempts_begin(&call->client->attempts, call->request.method,
		       call->sent_us - call->queued_us);
	call->curl_text[0] = '\0';
	answer_begin(&call->answer, &call->request);
	start_patience(call);
	kube_credentials_get(call->client->credentials, &call->wait, on_secret, call);
}

/* ---- the end of an attempt, and of a call ---------------------------------------------------- */

static void enter_queue(struct kube_call *call)
{
	call->queued = true;
	call->queued_us = clock_us();
	call->lane->n_waiting++;
	TAILQ_INSERT_TAIL(&call->lane->waiting, call, waiting);
	deferred_run(call->client->starter);
}

static void leave_queue(struct kube_call *call)
{
	call->queued = false;
	call->lane->n_waiting--;
	TAILQ_REMOVE(&call->lane->waiting, call, waiting);
}

static struct call_list *list_of(struct kube_call *call)
{
	return call->request.fenced ? &call->client->writes : &call->client->calls;
}

static void unlink_call(struct kube_call *call)
{
	TAILQ_REMOVE(list_of(call), call, link);
	if (call->queued)
		leave_queue(call);
	if (call->request.fenced)
		call->client->n_writes--;
}

static void free_call(struct kube_call *call)
{
	kube_credentials_cancel(call->client->credentials, &call->wait);
	drop_attempt(call);
	timer_free(call->timer);
	answer_done(&call->answer);
	if (call->request.free_arg)
		call->request.free_arg(call->request.arg);
	mem_free(call->request.body);
	mem_free(call->path);
	mem_free(call);
}

/* Report and forget. */
static void finish(struct kube_call *call, const struct err *err)
{
	struct kube_response response = {
		.status = call->answer.status,
		.body = strbuf_str(&call->answer.body),
		.body_len = call->answer.body.len,
		.retry_after_ms = call->answer.retry_after_ms,
	};
	char code[12];

	unlink_call(call);
	snprintf(code, sizeof(code), "%d", call->answer.status);
	metric_add(call->client->requests, 1, call->request.verb,
		   call->answer.status ? code : "none");
	metric_observe(call->client->duration, (double)(clock_us() - call->started_us) / 1e6,
		       call->request.verb);
	if (call->client->warned && call->answer.warnings.len > 0)
		call->client->warned(call->client->warned_arg, strbuf_str(&call->answer.warnings));
	call->request.done(call->request.arg, &response, err);
	free_call(call);
}

static int64_t retry_pause_ms(const struct kube_call *call, const struct err *err)
{
	int64_t pause = RETRY_FIRST_MS;

	if (call->answer.retry_after_ms >= 0 || err->retry_after_ms > 0)
		return err->retry_after_ms + (int64_t)clock_jitter(RETRY_FIRST_MS);
	for (unsigned int i = 1; i < call->attempts && pause < RETRY_MAX_MS; i++)
		pause *= 2;
	if (pause > RETRY_MAX_MS)
		pause = RETRY_MAX_MS;
	return pause / 2 + (int64_t)clock_jitter((uint64_t)pause);
}

static void cut_silent(struct kube_call *call)
{
	struct connection *connection = call->stream.connection;

	log_warn("connection is silent, opening another one",
		 F_STR("carries",
		       call->lane == &call->client->lanes[KUBE_LANE_WATCHES] ? "watches" : "calls"),
		 F_INT("calls", (int64_t)connection->n_streams),
		 F_INT("silent_ms", clock_ms() - connection->spoke_ms),
		 F_INT("age_ms", clock_ms() - connection->made_ms));
	connection_cut(connection);
}

/*
 * Time is up. When its connection received nothing all the while, it may lead nowhere (a server
 * that hangs, or a balancer in between, keeps acknowledging), and HTTP/2 would go on using it:
 * everything on it starts again on another one.
 */
static void out_of_patience(struct kube_call *call)
{
	const struct kube_request *request = &call->request;
	struct connection *connection = call->stream.connection;
	int64_t now = clock_ms();
	struct err err = {0};

	if (call->handle.easy && now - call->heard_ms >= SUSPECT_MS &&
	    connection->spoke_ms <= call->heard_ms)
		cut_silent(call);
	if (request->silence_ms > 0 && now < call->deadline_ms)
		err_set(&err, ERR_TRANSIENT, "Stalled", "%s %s: nothing came for %lld ms",
			request->method, call->path, (long long)request->silence_ms);
	else
		err_set(&err, ERR_TRANSIENT, "DeadlineExceeded", "%s %s: no answer from %s in time",
			request->method, call->path, call->client->config->server);
	finish(call, &err);
}

/* In the queue, too, a call has its deadline. */
static void try_again(struct kube_call *call)
{
	drop_attempt(call);
	start_patience(call);
	enter_queue(call);
}

static void on_call_timer(void *arg)
{
	struct kube_call *call = arg;

	if (call->pausing)
		try_again(call);
	else
		out_of_patience(call);
}

static bool worth_retrying(const struct kube_call *call, CURLcode code, const struct err *err)
{
	if (call->request.once || call->answer.delivered || call->answer.err.class != ERR_NONE)
		return false;
	if (code == CURLE_OK && err->class == ERR_INVALID)
		return false;
	if (code == CURLE_OK && call->request.faults_once && call->answer.status == 500)
		return false;
	if (code == CURLE_OK)
		return call->answer.status == 429 ||
		       (call->answer.status >= 500 && call->answer.status != 501);
	return kube_err_is(err, "ConnectionLost") || kube_err_is(err, "ServerUnreachable");
}

/* False when there is no time left for another attempt. */
static bool retry_later(struct kube_call *call, const struct err *err)
{
	int64_t pause = retry_pause_ms(call, err);

	if (call->deadline_ms != INT64_MAX && clock_ms() + pause >= call->deadline_ms)
		return false;
	drop_attempt(call);
	call->pausing = true;
	timer_start(call->timer, pause);
	return true;
}

static int attempt_err(const struct kube_call *call, CURLcode code, struct err *err)
{
	if (call->answer.err.class != ERR_NONE) {
		*err = call->answer.err;
		return -1;
	}
	if (code != CURLE_OK)
		return transfer_err(call->client->config, &call->request, code, call->curl_text,
				    err);
	if (call->answer.status / 100 == 2)
		return 0;
	kube_status_err(call->answer.status, strbuf_str(&call->answer.body), call->answer.body.len,
			err);
	if (call->answer.retry_after_ms > err->retry_after_ms)
		err->retry_after_ms = call->answer.retry_after_ms;
	return -1;
}

/*
 * Watches do not end, so a connection that is full of them has no stream for the question whether
 * it lives. One that has not begun yet goes elsewhere.
 */
static void make_room(struct connection *connection)
{
	struct kube_call *call = NULL;

	if (connection->has_spare)
		return;
	TAILQ_FOREACH(call, &((struct client_lane *)connection->owner->arg)->client->calls, link)
	{
		if (call->stream.connection != connection || call->stream.no_room ||
		    call->answer.delivered || call->pinned || !call->handle.easy)
			continue;
		connection->has_spare = true;
		try_again(call);
		return;
	}
}

/* False: it was sent. */
static bool found_no_room(struct kube_call *call)
{
	struct connection *connection = call->stream.connection;

	if (!call->stream.no_room)
		return false;
	if (call->pinned) {
		/* It cannot be asked. When even bookmarks do not come, that is an answer. */
		if (clock_ms() - connection->spoke_ms >= KUBE_WATCH_SILENCE_MS)
			cut_silent(call);
		return false;
	}
	if (call->lane == &call->client->lanes[KUBE_LANE_WATCHES])
		make_room(connection);
	call->attempts--;
	try_again(call);
	return true;
}

static struct kube_call *call_new(struct kube_client *client, const struct kube_request *request)
{
	struct kube_call *call = mem_new(struct kube_call);
	bool is_watch = request->on_bytes && request->timeout_ms < 0;

	assert(request->done && request->verb && request->method && request->path);
	call->client = client;
	call->lane = &client->lanes[is_watch ? KUBE_LANE_WATCHES : KUBE_LANE_CALLS];
	call->request = *request;
	call->path = str_dup(request->path);
	call->request.path = call->path;
	call->started_us = call->queued_us = clock_us();
	call->timer = timer_new(client->loop, on_call_timer, call);
	call->answer.retry_after_ms = -1;
	call->deadline_ms = INT64_MAX;
	if (request->timeout_ms >= 0)
		call->deadline_ms = clock_ms() + (request->timeout_ms ? request->timeout_ms
								      : KUBE_CALL_TIMEOUT_MS);
	TAILQ_INSERT_TAIL(list_of(call), call, link);
	if (request->fenced)
		client->n_writes++;
	return call;
}

/* ---- what connections say -------------------------------------------------------------------- */

void call_end_fenced(struct kube_client *client)
{
	struct err err = {0};

	if (client->n_writes == 0 || !fence_is_closed(client))
		return;
	not_leader(&err);
	guard_connections(client);
	/* Counted first: what a callback adds now meets the fence when it starts. */
	for (size_t n = client->n_writes; n > 0 && !TAILQ_EMPTY(&client->writes); n--)
		finish(TAILQ_FIRST(&client->writes), &err);
}

void call_attempt_ended(CURL *easy, CURLcode code)
{
	struct kube_call *call = NULL;
	struct err err = {0};

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
	if (found_no_room(call))
		return;
	/* One connection, one fate: after an error no request goes there any more. */
	if (code != CURLE_OK && call->answer.err.class == ERR_NONE)
		connection_retire(call->stream.connection);

	if (attempt_err(call, code, &err) == 0) {
		finish(call, NULL);
		return;
	}
	/* Fresh credentials, once: the token was rotated under us. */
	if (call->answer.status == 401 && !call->rejected &&
	    kube_credentials_reject(call->client->credentials, call->secret_generation)) {
		call->rejected = true;
		try_again(call);
		return;
	}
	if (!worth_retrying(call, code, &err) || !retry_later(call, &err))
		finish(call, &err);
}

static void on_probed(void *arg, const struct kube_response *response, const struct err *err)
{
	/*
	 * Any response shows that a server is there. When none came in time, the connection was
	 * cut: out_of_patience.
	 */
}

void call_probe(struct client_lane *lane, struct connection *connection)
{
	struct kube_call *call = NULL;

	if (connection->streams_max == 1)
		return; /* no room for a second question; the call's own time ends it */
	call = call_new(lane->client, &(struct kube_request){
					      .verb = "probe",
					      .method = "GET",
					      .path = "/livez",
					      .timeout_ms = KUBE_PROBE_MS,
					      .once = true,
					      .done = on_probed,
				      });
	call->lane = lane;
	call->pinned = true;
	start_attempt(call, connection);
}

/* ---- how calls begin ------------------------------------------------------------------------- */

bool call_start_queued(struct kube_call *call)
{
	struct connection *connection = NULL;
	struct err err = {0};

	if (!may_send(call)) {
		not_leader(&err);
		finish(call, &err);
		return true;
	}
	connection = lane_find_room(&call->lane->lane);
	if (!connection)
		return false;
	leave_queue(call);
	start_attempt(call, connection);
	return true;
}

struct kube_call *kube_call(struct kube_client *client, const struct kube_request *request)
{
	struct kube_call *call = call_new(client, request);

	start_patience(call);
	enter_queue(call);
	return call;
}

void kube_call_cancel(struct kube_call *call)
{
	if (!call)
		return;
	assert(!call->client->in_callback);
	unlink_call(call);
	free_call(call);
}
