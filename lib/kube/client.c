/*
 * libcurl's multi interface as a guest of the loop: one poller per socket, one timer. A call is an easy handle for
 * one attempt after another; handles are kept for the next call, connections belong to the multi handle.
 *
 * Curl may not be entered from its own callbacks, so calls only start and finish from the loop: starting goes through a
 * deferred, finishing through collect() after each curl_multi_socket_action. Both stop after TURN_US and go on in the next turn.
 */
#include "lib/kube/client.h"

#include <assert.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/credentials.h"
#include "lib/kube/fence.h"
#include "lib/kube/secret.h"
#include "lib/kube/status.h"

enum {
	SPARE_HANDLES = 16,
	RETRY_FIRST_MS = 200,
	RETRY_MAX_MS = 10000,
	/* Of an answer that is an error only this much is worth reading. */
	ERROR_BODY_MAX = 64 * 1024,
	/* A peer that vanished while nothing is sent is noticed by the kernel's probes. */
	KEEPALIVE_IDLE_S = 15,
	KEEPALIVE_INTERVAL_S = 5,
	/* A call that waited so long, in which no call heard anything, puts the connection under suspicion. */
	SUSPECT_MS = 2000,
	/* The API server's own limit (http2-max-streams-per-connection); what it announces goes first. */
	MAX_STREAMS = 250,
	/* The default of 64 KiB would be kept for each call in flight; our bodies are a few KiB. */
	UPLOAD_BUFFER = 16 * 1024,
	/* Of a crowd of calls that start or end, those of so much time in one turn: others wait for the loop, too. */
	TURN_US = 100,
};

TAILQ_HEAD(call_list, kube_call);

struct kube_client {
	struct loop *loop;
	const struct kube_config *config;
	struct kube_credentials *credentials;
	CURLM *multi;
	struct timer *timer;
	struct deferred *soon; /* curl's timer of 0 ms */
	struct deferred *starter, *collector;
	struct fence *fence;
	/* tls-server-name: talk to the real address under that name */
	struct curl_slist *connect_to;
	char *base_url;
	char *host_header; /* NULL: as in the URL */
	bool (*may_write)(void *arg);
	void *may_write_arg;
	struct call_list calls;   /* all that are not fenced */
	struct call_list writes;  /* the fenced ones */
	struct call_list waiting; /* to be started, in the order of kube_call */
	size_t n_waiting;
	size_t n_writes;
	size_t n_sent_writes; /* those of them that curl has */
	int64_t heard_ms;     /* when the server last said anything, to whichever call */
	bool in_callback;     /* curl called on_bytes or on_open, and may not be entered */
	CURL *spare[SPARE_HANDLES];
	size_t n_spare;
	struct metric *requests, *duration;
};

struct kube_call {
	struct kube_client *client;
	TAILQ_ENTRY(kube_call) link;    /* in calls or writes */
	TAILQ_ENTRY(kube_call) waiting; /* while queued */
	struct kube_request request;    /* with copies: path, body */
	char *path;
	CURL *easy; /* while an attempt runs */
	struct curl_slist *headers;
	struct kube_credentials_wait wait;
	uint64_t secret_generation;
	struct timer *
		timer; /* pausing: the next attempt; else the end of patience: deadline or silence */
	struct strbuf body;
	int status;
	int64_t retry_after_ms;
	int64_t deadline_ms; /* clock_ms, or INT64_MAX */
	int64_t started_us;
	int64_t heard_ms; /* when this attempt began, or last received something */
	unsigned int attempts;
	bool queued;
	bool pausing;
	bool opened;           /* on_open was called */
	bool rejected;         /* one 401 was answered with fresh credentials */
	bool delivered;        /* on_bytes saw something: no silent retry any more */
	struct err stream_err; /* from on_bytes, or BodyTooLarge */
	char curl_text[CURL_ERROR_SIZE];
};

static void finish(struct kube_call *call, const struct err *err);
static void collect(void *arg);
static void on_call_timer(void *arg);

/* ---- the fence ---------------------------------------------------------------------------------------------------- */

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

/* Before curl gets a chance to move bytes: abandon writes that we may not make any more. */
static void enforce_fence(struct kube_client *client)
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

/* ---- curl on the loop --------------------------------------------------------------------------------------------- */

struct socket_watch {
	struct kube_client *client;
	struct poller *poller;
	curl_socket_t fd;
};

static void on_socket_ready(void *arg, int events)
{
	const struct socket_watch *watch = arg;
	struct kube_client *client = watch->client;
	curl_socket_t fd = watch->fd; /* the watch may go while curl works */
	int mask = 0;
	int running = 0;

	if (events & POLL_READ)
		mask |= CURL_CSELECT_IN;
	if (events & POLL_WRITE)
		mask |= CURL_CSELECT_OUT;
	if (events & POLL_ERROR)
		mask |= CURL_CSELECT_ERR;
	enforce_fence(client);
	curl_multi_socket_action(client->multi, fd, mask, &running);
	collect(client);
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct kube_client *client = arg;
	struct socket_watch *watch = socket_arg;

	if (what == CURL_POLL_REMOVE) {
		if (watch) {
			poller_free(watch->poller);
			mem_free(watch);
			curl_multi_assign(client->multi, fd, NULL);
		}
		return 0;
	}
	if (!watch) {
		watch = mem_new(struct socket_watch);
		watch->client = client;
		watch->fd = fd;
		watch->poller = poller_new(client->loop, fd, on_socket_ready, watch);
		curl_multi_assign(client->multi, fd, watch);
	}
	poller_want(watch->poller, (what & CURL_POLL_IN ? POLL_READ : 0) |
					   (what & CURL_POLL_OUT ? POLL_WRITE : 0));
	return 0;
}

static void on_timer(void *arg)
{
	struct kube_client *client = arg;
	int running = 0;

	enforce_fence(client);
	curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(client);
}

/* Curl asks for 0 ms again and again while it makes progress; a timer of 0 ms would keep the loop from its sockets. */
static int on_curl_timer(CURLM *multi, long after_ms, void *arg)
{
	struct kube_client *client = arg;

	timer_stop(client->timer);
	if (after_ms == 0)
		deferred_run(client->soon);
	else if (after_ms > 0)
		timer_start(client->timer, after_ms);
	return 0;
}

/* ---- one attempt -------------------------------------------------------------------------------------------------- */

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
	call->heard_ms = clock_ms();
	call->client->heard_ms = call->heard_ms;
	if (call->request.silence_ms > 0)
		start_patience(call);
}

static void open_stream(struct kube_call *call)
{
	if (!call->request.on_bytes || call->status / 100 != 2 || call->opened)
		return;
	call->opened = true;
	call->client->in_callback = true;
	if (call->request.on_open)
		call->request.on_open(call->request.arg);
	call->client->in_callback = false;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
	struct kube_call *call = arg;
	size_t len = size * n;
	long status = 0;
	int64_t seconds = 0;

	heard(call);
	if (len == 2)
		open_stream(call);
	/* A new header block starts (after an interim answer, too). */
	if (len > 5 && memcmp(bytes, "HTTP/", 5) == 0) {
		curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
		call->status = (int)status;
	} else if (len > 12 && strncasecmp(bytes, "retry-after:", 12) == 0) {
		auto_free char *value = str_ndup(bytes + 12, len - 12);
		char *start = value + strspn(value, " \t");

		start[strcspn(start, " \t\r\n")] = '\0';
		if (str_to_int(start, 0, 3600,
			       &seconds)) /* the date form is not used by API servers */
			call->retry_after_ms = seconds * 1000;
	}
	return len;
}

static size_t on_stream(struct kube_call *call, const char *bytes, size_t len)
{
	int result = 0;

	call->delivered = true;
	call->client->in_callback = true;
	result = call->request.on_bytes(call->request.arg, bytes, len, &call->stream_err);
	call->client->in_callback = false;
	return result < 0 ? CURL_WRITEFUNC_ERROR : len;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct kube_call *call = arg;
	size_t len = size * n;

	heard(call);
	if (call->status / 100 != 2) {
		size_t room = ERROR_BODY_MAX - call->body.len;

		/* The rest of a long error page helps nobody. */
		strbuf_add(&call->body, bytes, len < room ? len : room);
		return len;
	}
	if (call->request.on_bytes)
		return on_stream(call, bytes, len);
	if (len > KUBE_MAX_BODY - call->body.len) {
		err_set(&call->stream_err, ERR_TRANSIENT, "BodyTooLarge",
			"%s %s: the answer has more than %d bytes", call->request.method,
			call->path, KUBE_MAX_BODY);
		return CURL_WRITEFUNC_ERROR;
	}
	strbuf_add(&call->body, bytes, len);
	return len;
}

/*
 * The kernel gives up a connection on which nothing is acknowledged for KUBE_DELIVERY_MS, and with it what it still holds
 * (tcp(7), TCP_USER_TIMEOUT): a write that we gave out of our hands arrives soon or never, which lease.h builds on.
 */
static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	unsigned int timeout_ms = KUBE_DELIVERY_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	return CURL_SOCKOPT_OK;
}

static curl_socket_t on_socket_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct kube_client *client = arg;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

	if (fd < 0)
		return CURL_SOCKET_BAD;
	fence_add(client->fence, fd);
	return fd;
}

static int on_socket_close(void *arg, curl_socket_t fd)
{
	struct kube_client *client = arg;

	fence_remove(client->fence, fd);
	return close(fd);
}

static struct curl_blob blob_of(const char *pem)
{
	return (struct curl_blob){.data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
}

static void set_tls(const struct kube_config *config, CURL *easy)
{
	if (config->insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (config->ca_pem) {
		struct curl_blob ca = blob_of(config->ca_pem);

		ca.flags = CURL_BLOB_NOCOPY; /* config outlives us */
		/* These and no others: without this the system's folder would be trusted as well. */
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
	}
}

static void set_client_certificate(CURL *easy, const struct kube_secret *secret)
{
	struct curl_blob cert, key;

	if (!secret->client_cert_pem)
		return;
	cert = blob_of(secret->client_cert_pem);
	key = blob_of(secret->client_key_pem);
	curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
	curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &cert);
	curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
	curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
}

/* What all calls of this client share. Sticky across attempts only as long as the handle is not reset. */
static void set_common(struct kube_client *client, CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); /* share the connection that is being made */
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)KUBE_CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, client);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_socket_close);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, client);
	curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "orbweaver/" ORBWEAVER_VERSION);
	if (client->config->proxy)
		curl_easy_setopt(easy, CURLOPT_PROXY, client->config->proxy);
	if (client->connect_to)
		curl_easy_setopt(easy, CURLOPT_CONNECT_TO, client->connect_to);
	set_tls(client->config, easy);
}

static void add_header(struct kube_call *call, const char *name, const char *value)
{
	auto_secret char *line = str_printf("%s: %s", name, value); /* it may be the token */

	call->headers = curl_slist_append(call->headers, line);
}

static void set_request(struct kube_call *call, const struct kube_secret *secret)
{
	const struct kube_request *request = &call->request;
	CURL *easy = call->easy;
	auto_free char *url = str_printf("%s%s", call->client->base_url, call->path);

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	if (request->body) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
		add_header(call, "Content-Type", request->content_type);
	}
	add_header(call, "Accept", "application/json");
	add_header(call, "Expect", "");
	if (call->client->host_header)
		add_header(call, "Host", call->client->host_header);
	if (secret->authorization)
		add_header(call, "Authorization", secret->authorization);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	set_client_certificate(easy, secret);
}

static void drop_attempt(struct kube_call *call)
{
	struct kube_client *client = call->client;

	if (call->easy) {
		guard_connections(client);
		client->n_sent_writes -= call->request.fenced;
		curl_multi_remove_handle(client->multi, call->easy);
		if (client->n_spare < SPARE_HANDLES) {
			curl_easy_reset(call->easy);
			client->spare[client->n_spare++] = call->easy;
		} else {
			curl_easy_cleanup(call->easy);
		}
		call->easy = NULL;
	}
	for (struct curl_slist *h = call->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(call->headers);
	call->headers = NULL;
}

static void on_secret(void *arg, const struct kube_secret *secret, const struct err *err)
{
	struct kube_call *call = arg;
	struct kube_client *client = call->client;

	if (err) {
		finish(call, err);
		return;
	}
	call->secret_generation = secret->generation;
	call->easy = client->n_spare ? client->spare[--client->n_spare] : curl_easy_init();
	if (!call->easy)
		abort(); /* out of memory */
	set_common(client, call->easy);
	set_request(call, secret);
	curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
	curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->curl_text);
	curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
	client->n_sent_writes += call->request.fenced;
	curl_multi_add_handle(client->multi, call->easy);
}

static void start_attempt(struct kube_call *call)
{
	struct err err = {0};

	if (!may_send(call)) {
		not_leader(&err);
		finish(call, &err);
		return;
	}
	call->attempts++;
	call->opened = false;
	call->heard_ms = clock_ms();
	call->status = 0;
	call->retry_after_ms = -1;
	call->curl_text[0] = '\0';
	call->stream_err = (struct err){0};
	strbuf_reset(&call->body);
	start_patience(call);
	kube_credentials_get(call->client->credentials, &call->wait, on_secret, call);
}

/* ---- the end of an attempt, and of a call ------------------------------------------------------------------------- */

static struct call_list *list_of(struct kube_call *call)
{
	return call->request.fenced ? &call->client->writes : &call->client->calls;
}

static void unlink_call(struct kube_call *call)
{
	TAILQ_REMOVE(list_of(call), call, link);
	if (call->queued) {
		TAILQ_REMOVE(&call->client->waiting, call, waiting);
		call->client->n_waiting--;
	}
	if (call->request.fenced)
		call->client->n_writes--;
}

static void free_call(struct kube_call *call)
{
	kube_credentials_cancel(call->client->credentials, &call->wait);
	drop_attempt(call);
	timer_free(call->timer);
	strbuf_done(&call->body);
	if (call->request.free_arg)
		call->request.free_arg(call->request.arg);
	mem_free(call->request.body);
	mem_free(call->path);
	mem_free(call);
}

static void count(const struct kube_call *call)
{
	char code[12];

	snprintf(code, sizeof(code), "%d", call->status);
	metric_add(call->client->requests, 1, call->request.verb, call->status ? code : "none");
	metric_observe(call->client->duration, (double)(clock_us() - call->started_us) / 1e6,
		       call->request.verb);
}

/* Tell and forget. */
static void finish(struct kube_call *call, const struct err *err)
{
	struct kube_response response = {
		.status = call->status,
		.body = strbuf_str(&call->body),
		.body_len = call->body.len,
		.retry_after_ms = call->retry_after_ms,
	};

	unlink_call(call);
	count(call);
	call->request.done(call->request.arg, &response, err);
	free_call(call);
}

static int64_t retry_pause_ms(const struct kube_call *call)
{
	int64_t pause = RETRY_FIRST_MS;

	if (call->retry_after_ms >= 0)
		return call->retry_after_ms + (int64_t)clock_jitter(RETRY_FIRST_MS);
	for (unsigned int i = 1; i < call->attempts && pause < RETRY_MAX_MS; i++)
		pause *= 2;
	if (pause > RETRY_MAX_MS)
		pause = RETRY_MAX_MS;
	return pause / 2 + (int64_t)clock_jitter((uint64_t)pause);
}

/*
 * Time is up. When the server told nobody anything all the while, the connection may lead nowhere (a server that hangs
 * keeps acknowledging), and HTTP/2 would go on using it: everything on it starts again on a new one.
 */
static void out_of_patience(struct kube_call *call)
{
	const struct kube_request *request = &call->request;
	struct kube_client *client = call->client;
	int64_t now = clock_ms();
	struct err err = {0};

	if (call->easy && now - call->heard_ms >= SUSPECT_MS && client->heard_ms <= call->heard_ms)
		fence_cut(client->fence);
	if (request->silence_ms > 0 && now < call->deadline_ms)
		err_set(&err, ERR_TRANSIENT, "Stalled", "%s %s: nothing came for %lld ms",
			request->method, call->path, (long long)request->silence_ms);
	else
		err_set(&err, ERR_TRANSIENT, "DeadlineExceeded", "%s %s: no answer from %s in time",
			request->method, call->path, client->config->server);
	finish(call, &err);
}

static void on_call_timer(void *arg)
{
	struct kube_call *call = arg;

	if (call->pausing)
		start_attempt(call);
	else
		out_of_patience(call);
}

static bool worth_retrying(const struct kube_call *call, CURLcode code, const struct err *err)
{
	if (call->request.once || call->delivered || call->stream_err.class != ERR_NONE)
		return false;
	if (code == CURLE_OK)
		return call->status == 429 || (call->status >= 500 && call->status != 501);
	return kube_err_is(err, "ConnectionLost") || kube_err_is(err, "ServerUnreachable");
}

/* False when there is no time left for another attempt. */
static bool retry_later(struct kube_call *call)
{
	int64_t pause = retry_pause_ms(call);

	if (call->deadline_ms != INT64_MAX && clock_ms() + pause >= call->deadline_ms)
		return false;
	drop_attempt(call);
	call->pausing = true;
	timer_start(call->timer, pause);
	return true;
}

/*
 * curl's words without " after 12 ms": the same trouble has the same text each time, so that those who tell it once per
 * different text do so.
 */
static char *stable_text(const struct kube_call *call, CURLcode code)
{
	static const char *const units[] = {" ms", " milliseconds"};
	const char *text = call->curl_text[0] ? call->curl_text : curl_easy_strerror(code);
	const char *duration = strstr(text, " after ");
	const char *unit = duration ? duration + strlen(" after ") : "";

	unit += strspn(unit, "0123456789");
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (str_starts(unit, units[i]))
			return str_printf("%.*s%s", (int)(duration - text), text,
					  unit + strlen(units[i]));
	return str_dup(text);
}

static int transfer_err(const struct kube_call *call, CURLcode code, struct err *err)
{
	const struct kube_config *config = call->client->config;
	auto_free char *text = stable_text(call, code);

	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_PROXY:
	case CURLE_OPERATION_TIMEDOUT: /* of connecting: the call's own time is not curl's business */
		return err_set(err, ERR_TRANSIENT, "ServerUnreachable",
			       "cannot reach the API server %s (%s): %s", config->server,
			       config->origin, text);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
		return err_set(
			err, ERR_TRANSIENT, "ServerUntrusted",
			"the API server %s is not who %s says: %s; check certificate-authority "
			"and tls-server-name",
			config->server, config->origin, text);
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CONNECT_ERROR:
		return err_set(err, ERR_TRANSIENT, "TlsFailed",
			       "TLS with the API server %s (%s): %s", config->server,
			       config->origin, text);
	default:
		return err_set(err, ERR_TRANSIENT, "ConnectionLost", "%s %s: %s",
			       call->request.method, call->path, text);
	}
}

static int attempt_err(const struct kube_call *call, CURLcode code, struct err *err)
{
	if (call->stream_err.class != ERR_NONE) {
		*err = call->stream_err;
		return -1;
	}
	if (code != CURLE_OK)
		return transfer_err(call, code, err);
	if (call->status / 100 == 2)
		return 0;
	return kube_status_err(call->status, strbuf_str(&call->body), call->body.len, err);
}

static void attempt_ended(struct kube_call *call, CURLcode code)
{
	struct err err = {0};

	if (attempt_err(call, code, &err) == 0) {
		finish(call, NULL);
		return;
	}
	/* Fresh credentials, once: the token was rotated under us. */
	if (call->status == 401 && !call->rejected &&
	    kube_credentials_reject(call->client->credentials, call->secret_generation)) {
		call->rejected = true;
		drop_attempt(call);
		start_attempt(call);
		return;
	}
	if (!worth_retrying(call, code, &err) || !retry_later(call))
		finish(call, &err);
}

static void collect(void *arg)
{
	struct kube_client *client = arg;
	int64_t until_us = clock_us() + TURN_US;
	CURLMsg *message;
	int left = 0;

	while ((message = curl_multi_info_read(client->multi, &left))) {
		CURLcode code = message->data.result;
		struct kube_call *call = NULL;

		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
		attempt_ended(call, code);
		if (clock_us() >= until_us) {
			deferred_run(client->collector);
			return;
		}
	}
}

/* ---- the client --------------------------------------------------------------------------------------------------- */

static void start_queued(void *arg)
{
	struct kube_client *client = arg;
	struct kube_call *call = NULL;
	int64_t until_us = clock_us() + TURN_US;

	/* No further than the last one of now: a callback that tries again at once gets the next turn. */
	for (size_t n = client->n_waiting; n > 0 && (call = TAILQ_FIRST(&client->waiting)); n--) {
		TAILQ_REMOVE(&client->waiting, call, waiting);
		call->queued = false;
		client->n_waiting--;
		start_attempt(call);
		if (clock_us() >= until_us)
			break;
	}
	if (client->n_waiting > 0)
		deferred_run(client->starter);
}

/* With a tls-server-name the URL carries that name, and connections for it go to the real address. */
static void set_addresses(struct kube_client *client)
{
	const struct kube_config *config = client->config;
	const char *format = strchr(config->host, ':') ? "[%s]" : "%s";
	auto_free char *line = NULL;
	char host[300];

	if (!config->tls_server_name) {
		client->base_url = str_dup(config->server);
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(host, sizeof(host), format, config->host);
#pragma GCC diagnostic pop
	line = str_printf("%s:%u:%s:%u", config->tls_server_name, config->port, host, config->port);
	client->connect_to = curl_slist_append(NULL, line);
	client->host_header = str_printf("%s:%u", host, config->port);
	client->base_url =
		str_printf("https://%s:%u%s", config->tls_server_name, config->port, config->path);
}

static void init_curl_once(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	curl_global_init_mem(CURL_GLOBAL_DEFAULT, mem_alloc, mem_free, mem_realloc, str_dup,
			     mem_calloc);
	/* Writing to a connection that the other side closed is an error like others, not a reason to die. */
	(void)signal(SIGPIPE, SIG_IGN);
}

struct kube_client *kube_client_new(struct loop *loop, const struct kube_config *config,
				    struct metrics *metrics)
{
	struct kube_client *client = mem_new(struct kube_client);

	init_curl_once();
	TAILQ_INIT(&client->calls);
	TAILQ_INIT(&client->writes);
	TAILQ_INIT(&client->waiting);
	client->loop = loop;
	client->config = config;
	client->credentials = kube_credentials_new(loop, config, NULL);
	client->multi = curl_multi_init();
	client->timer = timer_new(loop, on_timer, client);
	client->soon = deferred_new(loop, on_timer, client);
	client->fence = fence_new();
	client->starter = deferred_new(loop, start_queued, client);
	client->collector = deferred_new(loop, collect, client);
	set_addresses(client);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	curl_multi_setopt(client->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)MAX_STREAMS);
	client->requests = metric_counter(metrics, "orbweaver_kube_requests_total",
					  "Requests to the API server.", "verb,code");
	client->duration = metric_histogram(metrics, "orbweaver_kube_request_duration_seconds",
					    "From the call to its end, retries included.", "verb",
					    METRIC_SECONDS);
	return client;
}

void kube_client_free(struct kube_client *client)
{
	if (!client)
		return;
	assert(!client->in_callback);
	while (!TAILQ_EMPTY(&client->calls))
		kube_call_cancel(TAILQ_FIRST(&client->calls));
	while (!TAILQ_EMPTY(&client->writes))
		kube_call_cancel(TAILQ_FIRST(&client->writes));
	while (client->n_spare)
		curl_easy_cleanup(client->spare[--client->n_spare]);
	curl_multi_cleanup(client->multi);
	fence_free(client->fence);
	timer_free(client->timer);
	deferred_free(client->soon);
	deferred_free(client->starter);
	deferred_free(client->collector);
	kube_credentials_free(client->credentials);
	curl_slist_free_all(client->connect_to);
	mem_free(client->base_url);
	mem_free(client->host_header);
	mem_free(client);
}

void kube_client_set_fence(struct kube_client *client, bool (*may_write)(void *arg), void *arg)
{
	client->may_write = may_write;
	client->may_write_arg = arg;
}

void kube_client_writes_end_at(struct kube_client *client, int64_t at_ms)
{
	fence_set(client->fence, at_ms);
}

size_t kube_client_writes_in_flight(const struct kube_client *client)
{
	return client->n_writes;
}

struct kube_call *kube_call(struct kube_client *client, const struct kube_request *request)
{
	struct kube_call *call = mem_new(struct kube_call);

	assert(request->done && request->verb && request->method && request->path);
	call->client = client;
	call->request = *request;
	call->path = str_dup(request->path);
	call->request.path = call->path;
	call->started_us = clock_us();
	call->timer = timer_new(client->loop, on_call_timer, call);
	call->retry_after_ms = -1;
	call->deadline_ms = INT64_MAX;
	if (request->timeout_ms >= 0)
		call->deadline_ms = clock_ms() + (request->timeout_ms ? request->timeout_ms
								      : KUBE_CALL_TIMEOUT_MS);
	call->queued = true;
	client->n_waiting++;
	TAILQ_INSERT_TAIL(&client->waiting, call, waiting);
	TAILQ_INSERT_TAIL(list_of(call), call, link);
	if (request->fenced)
		client->n_writes++;
	deferred_run(client->starter);
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
