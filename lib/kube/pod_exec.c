// SPDX-License-Identifier: Apache-2.0
/*
 * libcurl makes the connection (CURLOPT_CONNECT_ONLY: proxy and TLS, no request) and carries bytes;
 * what they mean is in websocket.h and exec_stream.h.
 *
 * Two attempts at most: a server that does not know us (401) is asked once more with fresh
 * credentials. A connection that was lost later is not tried again: the command may have run.
 */
#include "lib/kube/pod_exec.h"

#include <assert.h>
#include <curl/curl.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/random.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"
#include "lib/kube/auth/secret.h"
#include "lib/kube/client_internal.h"
#include "lib/kube/connection.h"
#include "lib/kube/exec_stream.h"
#include "lib/kube/status.h"
#include "lib/kube/transfer.h"
#include "lib/kube/websocket.h"

enum {
	READ_SIZE = 16 * 1024,
	/* Others wait for the loop, too. */
	READS_PER_TURN = 16,
};

struct pod_exec {
	struct client_parts client;
	struct pod_exec_request request;
	char *path;
	struct kube_credentials_wait wait;
	uint64_t secret_generation;
	bool rejected; /* one 401 was answered with fresh credentials */
	struct connection_owner owner;
	struct connection *connection;
	struct connection_stream stream;
	struct handle handle;
	CURLcode code; /* how connecting ended */
	char curl_text[CURL_ERROR_SIZE];
	struct poller *poller;  /* once it is connected */
	struct deferred *again; /* begin, or go on, outside of curl's callbacks */
	struct timer *timer;
	struct websocket websocket;
	struct exec_stream output;
	struct strbuf out; /* to be sent; the token is in it at first */
};

/* ---- one attempt ----------------------------------------------------------------------------- */

static void drop_attempt(struct pod_exec *exec)
{
	poller_free(exec->poller);
	exec->poller = NULL;
	connection_leave(&exec->stream);
	connection_free(exec->connection);
	exec->connection = NULL;
	handle_give_back(exec->client.handles, &exec->handle);
	websocket_done(&exec->websocket);
	secret_buf_done(&exec->out);
}

static void free_exec(struct pod_exec *exec)
{
	kube_credentials_cancel(exec->client.credentials, &exec->wait);
	drop_attempt(exec);
	exec_stream_done(&exec->output);
	deferred_free(exec->again);
	timer_free(exec->timer);
	mem_free(exec->path);
	mem_free(exec);
}

static void finish(struct pod_exec *exec, const struct err *err)
{
	int exit_code = 0;
	struct err none = {0};

	if (!err && exec_stream_end(&exec->output, &exit_code, &none) < 0)
		err = &none;
	exec->request.done(exec->request.arg, exit_code, strbuf_str(&exec->output.out),
			   strbuf_str(&exec->output.errors), err);
	free_exec(exec);
}

/* The server refused, or something broke. */
static void fail(struct pod_exec *exec, const struct err *err)
{
	if (exec->websocket.status == 401 && !exec->rejected &&
	    kube_credentials_reject(exec->client.credentials, exec->secret_generation)) {
		exec->rejected = true;
		drop_attempt(exec);
		deferred_run(exec->again);
		return;
	}
	finish(exec, err);
}

static void fail_transfer(struct pod_exec *exec, CURLcode code)
{
	const struct kube_request request = {.method = "GET", .path = "exec"};
	struct err err = {0};

	(void)transfer_err(exec->client.config, &request, code, exec->curl_text, &err);
	fail(exec, &err);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* False: it has failed, and exec may be gone. */
static bool send_some(struct pod_exec *exec)
{
	CURLcode code = CURLE_OK;
	size_t n = 0;

	while (exec->out.len > 0 && code == CURLE_OK) {
		code = curl_easy_send(exec->handle.easy, exec->out.data, exec->out.len, &n);
		if (code == CURLE_OK)
			strbuf_consume(&exec->out, n);
	}
	if (code != CURLE_OK && code != CURLE_AGAIN) {
		fail_transfer(exec, code);
		return false;
	}
	poller_want(exec->poller, POLL_READ | (exec->out.len > 0 ? POLL_WRITE : 0));
	return true;
}

static void take_end(struct pod_exec *exec)
{
	struct err err = {0};

	if (websocket_end(&exec->websocket, &err) == 0)
		finish(exec, NULL);
	else
		fail(exec, &err);
}

/* What TLS holds already makes the socket readable no more, so all of it is read. */
static void read_on(struct pod_exec *exec)
{
	struct err err = {0};
	char bytes[READ_SIZE];
	size_t n = 0;

	for (int i = 0; i < READS_PER_TURN; i++) {
		CURLcode code = curl_easy_recv(exec->handle.easy, bytes, sizeof(bytes), &n);

		if (code == CURLE_AGAIN) {
			(void)send_some(exec);
			return;
		}
		if (code != CURLE_OK) {
			fail_transfer(exec, code);
			return;
		}
		if (n == 0) {
			take_end(exec);
			return;
		}
		if (websocket_feed(&exec->websocket, bytes, n, &exec->out, exec_stream_message,
				   &exec->output, &err) < 0) {
			fail(exec, &err);
			return;
		}
		/* It need not close the connection as well; some proxies keep it. */
		if (exec->websocket.state == WEBSOCKET_CLOSED) {
			finish(exec, NULL);
			return;
		}
	}
	if (send_some(exec))
		deferred_run(exec->again);
}

static void on_ready(void *arg, int events)
{
	read_on(arg);
}

/* ---- the connection -------------------------------------------------------------------------- */

static void on_entering(void *arg)
{
}

static void on_changed(void *arg)
{
}

static void on_silent(void *arg, struct connection *connection)
{
}

/* The connection looks for others that have ended, so it may not be freed yet. */
static void on_ended(void *arg, CURL *easy, CURLcode code)
{
	struct pod_exec *exec = arg;

	exec->code = code;
	deferred_run(exec->again);
}

static void ask(struct pod_exec *exec, const struct kube_secret *secret)
{
	const struct kube_config *config = exec->client.config;
	bool is_v6 = strchr(config->host, ':');
	auto_free char *host = str_printf("%s%s%s:%u", is_v6 ? "[" : "", config->host,
					  is_v6 ? "]" : "", config->port);
	auto_free char *target = str_printf("%s%s", config->path, exec->path);

	exec->websocket =
		(struct websocket){.random = random_bytes, .protocols = EXEC_STREAM_PROTOCOLS};
	websocket_ask(&exec->websocket,
		      &(struct websocket_request){
			      .target = target,
			      .host = host,
			      .agent = "orbweaver/" ORBWEAVER_VERSION,
			      .authorization = secret->authorization,
		      },
		      &exec->out);
}

static void on_secret(void *arg, const struct kube_secret *secret, const struct err *err)
{
	struct pod_exec *exec = arg;
	const struct kube_request request = {.method = "GET", .path = exec->path};

	if (err) {
		finish(exec, err);
		return;
	}
	exec->secret_generation = secret->generation;
	ask(exec, secret);
	exec->connection = connection_new(&exec->owner);
	connection_reserve(exec->connection, &exec->stream);
	handle_take(exec->client.handles, &request, secret, &exec->handle);
	exec->curl_text[0] = '\0';
	curl_easy_setopt(exec->handle.easy, CURLOPT_ERRORBUFFER, exec->curl_text);
	curl_easy_setopt(exec->handle.easy, CURLOPT_CONNECT_ONLY, 1L);
	curl_easy_setopt(exec->handle.easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	connection_send(&exec->stream, exec->handle.easy);
}

static void connected(struct pod_exec *exec)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	if (exec->code == CURLE_OK)
		curl_easy_getinfo(exec->handle.easy, CURLINFO_ACTIVESOCKET, &fd);
	if (fd == CURL_SOCKET_BAD) {
		fail_transfer(exec, exec->code == CURLE_OK ? CURLE_COULDNT_CONNECT : exec->code);
		return;
	}
	exec->poller = poller_new(exec->client.loop, fd, on_ready, exec);
	(void)send_some(exec);
}

static void on_again(void *arg)
{
	struct pod_exec *exec = arg;

	if (exec->poller)
		read_on(exec);
	else if (exec->connection)
		connected(exec);
	else
		kube_credentials_get(exec->client.credentials, &exec->wait, on_secret, exec);
}

/* ---- an exec --------------------------------------------------------------------------------- */

static void on_late(void *arg)
{
	struct pod_exec *exec = arg;
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "DeadlineExceeded",
		      "the command did not end within %lld s",
		      (long long)(exec->request.timeout_ms / 1000));
	finish(exec, &err);
}

static char *exec_path(const struct pod_exec_request *request)
{
	static const struct kube_resource pods = {
		.version = "v1", .group = "", .plural = "pods", .kind = "Pod", .namespaced = true};
	auto_strbuf struct strbuf query = {0};

	strbuf_adds(&query, "stdout=true&stderr=true&container=");
	kube_path_encode(&query, request->container);
	for (const char *const *word = request->argv; *word; word++) {
		strbuf_adds(&query, "&command=");
		kube_path_encode(&query, *word);
	}
	return kube_path(&pods, request->ns, request->pod, "exec", strbuf_str(&query));
}

struct pod_exec *pod_exec_start(struct kube_client *client, const struct pod_exec_request *request)
{
	struct pod_exec *exec = mem_new(struct pod_exec);

	assert(request->done && request->timeout_ms > 0);
	exec->client = client_parts(client);
	exec->request = *request;
	exec->path = exec_path(request);
	exec->owner = (struct connection_owner){
		.loop = exec->client.loop,
		.streams_max = 1,
		.entering = on_entering,
		.ended = on_ended,
		.changed = on_changed,
		.silent = on_silent,
		.arg = exec,
	};
	exec->again = deferred_new(exec->client.loop, on_again, exec);
	exec->timer = timer_new(exec->client.loop, on_late, exec);
	timer_start(exec->timer, request->timeout_ms);
	deferred_run(exec->again);
	return exec;
}

void pod_exec_cancel(struct pod_exec *exec)
{
	if (exec)
		free_exec(exec);
}
