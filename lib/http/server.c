/*
 * The listening socket, the connections, and the end of both.
 *
 * We listen and accept ourselves and hand libwebsockets connected sockets: so a bad address is an error with a text,
 * port 0 can be asked for, and the number of connections is ours to bound. libwebsockets carries bytes, over TLS or not
 * (its role "raw-skt"); what they mean is exchange.c's and request.c's business, for the reason that README.md gives.
 */
#include "lib/http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/http/address.h"
#include "lib/http/internal.h"
#include "lib/http/tls.h"
#include "lib/loop/loop.h"

/* Connections taken in one turn of the loop. */
#define ACCEPTS_PER_TURN 16
/* When all connections are in use, one that has been idle for so long makes room. */
#define EVICT_AFTER_MS 1000
/* Or one whose request or response takes so long: API servers need milliseconds. */
#define EVICT_SLOW_MS 3000
/* When there is no room, or no descriptor, we look again after this time. */
#define ACCEPT_AGAIN_MS 100
/* libwebsockets' own descriptors, and connections that are about to end. */
#define SPARE_FDS 8
/*
 * libwebsockets reads into a buffer of this size. With TLS it has to hold a whole record (RFC 8446 section 5.1): what
 * OpenSSL has decrypted and nobody has read makes no descriptor readable, and on a foreign loop libwebsockets 4.1 looks
 * for such leftovers only once.
 */
#define READ_SIZE_PLAIN 4096
#define READ_SIZE_TLS   (16384 + LWS_PRE)
/* libwebsockets' complaints that we log in one minute; clients can provoke them. */
#define LWS_LOGS_PER_MINUTE 10

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		    size_t len);

static const struct lws_protocols protocols[] = {
	{.name = "bytes", .callback = on_event, .tx_packet_size = HTTP_CHUNK_SIZE},
	{.name = NULL},
};

/* ---- libwebsockets' log ---- */

static void log_lws(int level, const char *line)
{
	static int64_t minute;
	static int count;
	char text[256];
	size_t len = strcspn(line, "\n");

	if (clock_ms() / 60000 != minute) {
		minute = clock_ms() / 60000;
		count = 0;
	}
	if (count++ >= LWS_LOGS_PER_MINUTE)
		return;
	snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : sizeof(text) - 1),
		 line);
	if (level == LLL_ERR)
		log_warn("libwebsockets reports a problem", F_STR("text", text));
	else
		log_debug("libwebsockets warns", F_STR("text", text));
}

/* ---- connections ---- */

static void conn_link(struct conn *conn)
{
	struct http_server *server = conn->server;

	conn->prev = server->last;
	conn->next = NULL;
	if (server->last)
		server->last->next = conn;
	else
		server->first = conn;
	server->last = conn;
}

static void conn_unlink(struct conn *conn)
{
	struct http_server *server = conn->server;

	if (conn->prev)
		conn->prev->next = conn->next;
	else
		server->first = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	else
		server->last = conn->prev;
}

void conn_is_idle(struct conn *conn)
{
	conn->phase = CONN_IDLE;
	conn->idle_since_ms = clock_ms();
	conn_unlink(conn);
	conn_link(conn);
}

static struct conn *conn_new(struct http_server *server)
{
	struct conn *conn = mem_new(struct conn);

	conn->server = server;
	conn->idle_since_ms = clock_ms();
	conn_link(conn);
	server->n_conns++;
	return conn;
}

static void conn_free(struct conn *conn)
{
	struct http_server *server = conn->server;

	conn_unlink(conn);
	server->n_conns--;
	exchange_done(conn);
	mem_free(conn);
	if (server->is_paused && server->poller)
		timer_start(server->accept_again, 0);
}

/* The connection that has been idle for longest, if that is long enough. */
static struct conn *find_idle(const struct http_server *server)
{
	for (struct conn *conn = server->first; conn; conn = conn->next)
		if (conn->phase == CONN_IDLE)
			return clock_ms() - conn->idle_since_ms < EVICT_AFTER_MS ? NULL : conn;
	return NULL;
}

/* Some connection that has been at one exchange for too long. */
static struct conn *find_slow(const struct http_server *server)
{
	int64_t before_us = clock_us() - EVICT_SLOW_MS * 1000;

	for (struct conn *conn = server->first; conn; conn = conn->next)
		if ((conn->phase == CONN_HEAD || conn->phase == CONN_BODY ||
		     conn->phase == CONN_SENDING) &&
		    conn->started_us < before_us)
			return conn;
	return NULL;
}

/* Make room for one more. */
static bool evict_one(struct http_server *server)
{
	struct conn *conn = find_idle(server);

	if (!conn)
		conn = find_slow(server);
	if (!conn)
		return false;
	conn->phase = CONN_ENDING;
	lws_set_timeout(conn->wsi, PENDING_TIMEOUT_KILLED_BY_PARENT, LWS_TO_KILL_SYNC);
	return true;
}

static void adopt(struct http_server *server, int fd)
{
	static const int on = 1;
	struct conn *conn = conn_new(server);
	lws_adopt_desc_t info = {
		.vh = server->vhost,
		.type = LWS_ADOPT_SOCKET | LWS_ADOPT_ALLOW_SSL,
		.fd.sockfd = fd,
		.opaque = conn,
	};

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	server->adopting = conn;
	/* Closes fd when it fails; then the end of the connection is still reported, if it ever got a wsi. */
	if (!lws_adopt_descriptor_vhost_via_info(&info) && server->adopting)
		conn_free(conn);
	server->adopting = NULL;
}

/* ---- accepting ---- */

static void pause_accepting(struct http_server *server)
{
	server->is_paused = true;
	poller_want(server->poller, 0);
	timer_start(server->accept_again, ACCEPT_AGAIN_MS);
}

static void resume_accepting(void *arg)
{
	struct http_server *server = arg;

	server->is_paused = false;
	poller_want(server->poller, POLL_READ);
}

static void accept_failed(struct http_server *server, int sys)
{
	if (!server->accept_complained)
		log_error("cannot accept connections", F_STR("server", server->name),
			  F_STR("error", strerror(sys)));
	server->accept_complained = true;
	pause_accepting(server);
}

static void on_listener(void *arg, int events)
{
	struct http_server *server = arg;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd;

		if (server->n_conns >= server->connections_max && !evict_one(server)) {
			pause_accepting(server);
			return;
		}
		fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			server->accept_complained = false;
			adopt(server, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			accept_failed(server, errno);
			return;
		} /* else it was this one connection: accept(2) reports its network errors too */
	}
}

/* ---- what libwebsockets tells ---- */

static void note_created(struct lws *wsi)
{
	struct http_server *server = lws_context_user(lws_get_context(wsi));

	if (server->adopting)
		server->adopting->wsi = wsi;
	server->adopting = NULL;
}

static int on_connection_event(struct conn *conn, int reason, const void *in, size_t len)
{
	switch (reason) {
	case LWS_CALLBACK_RAW_ADOPT:
		return exchange_start(conn);
	case LWS_CALLBACK_RAW_RX:
		return exchange_received(conn, in, len);
	case LWS_CALLBACK_RAW_WRITEABLE:
		return exchange_writable(conn);
	case LWS_CALLBACK_TIMER:
		return exchange_timeout(conn);
	case LWS_CALLBACK_WSI_DESTROY:
		conn_free(conn);
		return 0;
	default:
		return 0;
	}
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		    size_t len)
{
	struct conn *conn;

	if (reason == LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS) {
		struct http_server *server = lws_context_user(lws_get_context(wsi));

		server->tls = user;
		return 0;
	}
	if (reason == LWS_CALLBACK_WSI_CREATE) {
		note_created(wsi);
		return 0;
	}
	conn = lws_get_opaque_user_data(wsi);
	return conn ? on_connection_event(conn, reason, in, len) : 0;
}

/* ---- the beginning ---- */

static int start_lws(struct http_server *server, bool has_tls, struct err *err)
{
	void *loops[] = {loop_uv(server->loop)};
	struct lws_context_creation_info info = {
		.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
			   LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS,
		.port = CONTEXT_PORT_NO_LISTEN_SERVER,
		.protocols = protocols,
		.user = server,
		.uid = -1,
		.gid = -1,
		.foreign_loops = loops,
		.pcontext = &server->context,
		.pt_serv_buf_size = has_tls ? READ_SIZE_TLS : READ_SIZE_PLAIN,
		/* Without a limit of its own it takes memory for each descriptor that ulimit allows. */
		.fd_limit_per_thread = server->connections_max + SPARE_FDS,
		.timeout_secs = server->timeout_s, /* for the TLS handshake */
		.vhost_name = server->name,
	};

	if (has_tls)
		info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT |
				LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
	lws_set_log_level(LLL_ERR | LLL_WARN, log_lws);
	server->context = lws_create_context(&info);
	if (!server->context)
		return err_set(err, ERR_HOST, "HttpUnavailable",
			       "libwebsockets did not start; is its libuv plugin installed? "
			       "(Debian: libwebsockets-evlib-uv)");
	server->vhost = lws_create_vhost(server->context, &info);
	if (!server->vhost || (has_tls && !server->tls))
		return err_set(err, ERR_HOST, "HttpUnavailable", "libwebsockets did not start");
	if (has_tls)
		tls_configure(server->tls);
	return 0;
}

/* Parse the pair and try it on, before there is a context whose end would need the loop. */
static int load_pair(const struct http_server_config *config, struct tls_pair *ret, struct err *err)
{
	struct tls_pair pair = {0};
	SSL_CTX *trial;
	int result;

	if (!config->certificate_pem || !config->key_pem)
		return err_set(err, ERR_INVALID, "BadCertificate",
			       "a certificate needs its key, and a key its certificate");
	if (tls_pair_parse(config->certificate_pem, config->key_pem, &pair, err) < 0)
		return -1;
	trial = SSL_CTX_new(TLS_server_method());
	result = tls_use_pair(trial, &pair, err);
	SSL_CTX_free(trial);
	if (result < 0)
		tls_pair_done(&pair);
	else
		*ret = pair;
	return result;
}

static void add_metrics(struct http_server *server, struct metrics *metrics)
{
	server->requests = metric_counter(metrics, "http_requests_total", "HTTP requests answered.",
					  "server,path,method,code");
	server->duration =
		metric_histogram(metrics, "http_request_duration_seconds",
				 "Time from the complete headers of a request to its response.",
				 "server,path", METRIC_SECONDS);
}

static void server_free(struct http_server *server)
{
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	mem_free(server->name);
	mem_free(server);
}

static int server_start(struct http_server *server, const struct tls_pair *pair, struct err *err)
{
	if (start_lws(server, pair->leaf != NULL, err) < 0)
		return -1;
	if (server->tls && tls_use_pair(server->tls, pair, err) < 0)
		return -1;
	server->accept_again = timer_new(server->loop, resume_accepting, server);
	server->poller = poller_new(server->loop, server->listen_fd, on_listener, server);
	poller_want(server->poller, POLL_READ);
	return 0;
}

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
				    struct err *err)
{
	struct address address;
	struct tls_pair pair = {0};
	struct http_server *server;
	int fd, result;

	if (address_parse(config->listen, &address, err) < 0)
		return NULL;
	if ((config->certificate_pem || config->key_pem) && load_pair(config, &pair, err) < 0)
		return NULL;
	fd = address_listen(&address, config->listen, err);
	if (fd < 0) {
		tls_pair_done(&pair);
		return NULL;
	}
	server = mem_new(struct http_server);
	server->loop = loop;
	server->name = str_dup(config->name);
	server->routes = config->routes;
	server->n_routes = config->n_routes;
	server->timeout_s = config->timeout_s ? config->timeout_s : HTTP_TIMEOUT_S;
	server->connections_max =
		config->connections_max ? config->connections_max : HTTP_CONNECTIONS_MAX;
	server->listen_fd = fd;
	add_metrics(server, config->metrics);
	result = server_start(server, &pair, err);
	tls_pair_done(&pair);
	if (result == 0)
		return server;
	if (server->context)
		http_server_close(server, NULL, NULL);
	else
		server_free(server);
	return NULL;
}

unsigned int http_server_port(const struct http_server *server)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name = {0};
	socklen_t len = sizeof(name);

	if (getsockname(server->listen_fd, &name.sa, &len) < 0)
		return 0;
	return ntohs(name.sa.sa_family == AF_INET6 ? name.in6.sin6_port : name.in.sin_port);
}

int http_server_set_certificate(struct http_server *server, const char *certificate_pem,
				const char *key_pem, struct err *err)
{
	struct tls_pair pair;
	int result;

	if (!server->tls)
		return err_set(err, ERR_INVALID, "BadCertificate", "server %s does not speak TLS",
			       server->name);
	if (tls_pair_parse(certificate_pem, key_pem, &pair, err) < 0)
		return -1;
	result = tls_use_pair(server->tls, &pair, err);
	tls_pair_done(&pair);
	return result;
}

/* ---- the end ---- */

struct search {
	const void *context;
	bool found;
};

static void search_handle(uv_handle_t *handle, void *arg)
{
	struct search *search = arg;

	if (handle->data == search->context)
		search->found = true;
}

/*
 * lws_context_destroy on a foreign loop only begins the end: connections close with their uv handles, the last of them
 * lets libwebsockets close its idle and timer handle, and then, telling nobody, it waits for a second
 * lws_context_destroy, which must not come before. These two handles lie inside the context and carry its address as
 * their data (libuv.c of libwebsockets 4.1, LWS_UV_REFCOUNT_STATIC_HANDLE_NEW): when none with it is left in the loop,
 * the time has come.
 */
static bool lws_handles_are_closed(const struct http_server *server)
{
	struct search search = {.context = server->context};

	uv_walk(loop_uv(server->loop), search_handle, &search);
	return !search.found;
}

static void close_step(void *arg)
{
	struct http_server *server = arg;
	void (*done)(void *arg) = server->done;
	void *done_arg = server->done_arg;

	if (!server->destroy_called) {
		server->destroy_called = true;
		lws_context_destroy(server->context);
	} else if (server->context && lws_handles_are_closed(server)) {
		lws_context_destroy(server->context);
	}
	if (server->context) {
		deferred_run(server->closing);
		return;
	}
	deferred_free(server->closing);
	server_free(server);
	if (done)
		done(done_arg);
}

void http_server_close(struct http_server *server, void (*done)(void *arg), void *arg)
{
	if (!server)
		return;
	if (server->poller)
		poller_free(server->poller);
	if (server->accept_again)
		timer_free(server->accept_again);
	server->poller = NULL;
	server->accept_again = NULL;
	close(server->listen_fd);
	server->listen_fd = -1;
	server->done = done;
	server->done_arg = arg;
	/* Not now: this may be a handler, which libwebsockets has called. */
	server->closing = deferred_new(server->loop, close_step, server);
	deferred_run(server->closing);
}
