// SPDX-License-Identifier: Apache-2.0
/*
 * admit: asks a webhook as an API server does, over connections that stay, and measures each
 * exchange from the first byte of the request to the last of the answer, TLS included. Prints one
 * line of JSON.
 */
#include <fcntl.h>
#include <getopt.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define HOST            "127.0.0.1"
#define CONNECTIONS_MAX 64
#define BODIES_MAX      8
#define REQUESTS_MAX    10000000
#define READ_SIZE       16384
/* Nobody who is alive takes so long. */
#define PATIENCE_S 10
/* Exchanges before those that count: the first ones of a connection find everything cold. */
#define WARM_UP 50

static const char help[] =
	"usage: bench-admit --port N --ca FILE --body FILE [OPTION...]\n"
	"\n"
	"  --port N          of the webhook on " HOST "\n"
	"  --ca FILE         the authorities that its certificate is checked against, PEM\n"
	"  --body FILE       what is posted; several, in turn\n"
	"  --path PATH       where (/inject)\n"
	"  --status N        what the answers have to be (200)\n"
	"  --contains TEXT   what has to be in each of them\n"
	"  --requests N      to measure (1000)\n"
	"  --connections N   each with one request under way (1)\n"
	"  --rate N          requests in a second, all together: an exchange then counts from the "
	"moment when it was\n"
	"                    due, so that who is late once is late for all that wait (as fast as "
	"answers come)\n"
	"  --fresh           a connection for each request; what it takes to be there is told "
	"apart\n"
	"\n"
	"Prints {\"requests\", \"per_second\", \"p50_us\", \"p99_us\", \"max_us\", \"within_1ms\", "
	"\"connect_p50_us\", "
	"\"connect_p99_us\"}.\n";

struct peer {
	int fd;
	SSL *ssl;
	struct strbuf in;
	int64_t since_us; /* of the request under way, 0: none is */
};

struct admit {
	SSL_CTX *tls;
	int64_t port, n_requests, n_peers, rate, status;
	const char *ca, *path, *contains;
	char *bodies[BODIES_MAX]; /* whole requests */
	size_t n_bodies;
	bool fresh;

	struct peer peers[CONNECTIONS_MAX];
	int64_t begun, answered;
	int64_t started_us, ended_us;
	int64_t *took_us, *connect_us;
	size_t n_took, n_connects;
};

/* ---- connections ----------------------------------------------------------------------------- */

static int bad_peer(struct err *err, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	return err_set(err, ERR_TRANSIENT, "BadPeer", "%s %s: %s", HOST, what,
		       why ? why : "connection ended or too slow");
}

static int socket_new(const struct admit *a, struct err *err)
{
	static const int on = 1;
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)a->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		if (fd >= 0)
			close(fd);
		return bad_peer(err, "connect");
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static void peer_close(struct peer *peer)
{
	if (peer->ssl) {
		SSL_shutdown(peer->ssl);
		SSL_free(peer->ssl);
		close(peer->fd);
	}
	strbuf_done(&peer->in);
	*peer = (struct peer){0};
}

static int peer_open(struct admit *a, struct peer *peer, struct err *err)
{
	int64_t began_us = clock_us();
	int fd = socket_new(a, err);

	if (fd < 0)
		return -1;
	*peer = (struct peer){.fd = fd, .ssl = SSL_new(a->tls)};
	X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(peer->ssl), HOST);
	SSL_set_fd(peer->ssl, fd);
	if (SSL_connect(peer->ssl) != 1)
		return bad_peer(err, "TLS");
	if (a->answered >= WARM_UP || !a->fresh)
		a->connect_us[a->n_connects++] = clock_us() - began_us;
	return 0;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* When the next request may go out. */
static int64_t due_us(const struct admit *a)
{
	return a->rate ? a->started_us + a->begun * 1000000 / a->rate : clock_us();
}

static int send_one(struct admit *a, struct peer *peer, int64_t since_us, struct err *err)
{
	const char *request = a->bodies[(size_t)a->begun % a->n_bodies];

	if (a->fresh && peer_open(a, peer, err) < 0)
		return -1;
	peer->since_us = a->fresh ? clock_us() : since_us;
	a->begun++;
	return SSL_write(peer->ssl, request, (int)strlen(request)) > 0 ? 0 : bad_peer(err, "write");
}

/* The length of the answer in `text`, 0 when it is not whole yet, -1 when it is none. */
static int64_t answer_len(const char *text, size_t len)
{
	static const char name[] = "\r\nContent-Length: ";
	const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, name);
	size_t need = 0;

	if (!end)
		return len > READ_SIZE ? -1 : 0;
	if (!length || length > end)
		return -1;
	need = (size_t)(end - text) + 4 + strtoul(length + strlen(name), NULL, 10);
	return len < need ? 0 : (int64_t)need;
}

static int check_answer(const struct admit *a, const char *text, struct err *err)
{
	int status = 0;

	if (sscanf(text, "HTTP/1.1 %d ", &status) != 1 || status != a->status ||
	    (a->contains && !strstr(text, a->contains)))
		return err_set(err, ERR_INVALID, "BadAnswer", "answer is not as expected: %.600s",
			       text);
	return 0;
}

static int receive(struct admit *a, struct peer *peer, struct err *err)
{
	char buf[READ_SIZE];
	int64_t len;
	int n = SSL_read(peer->ssl, buf, sizeof(buf));

	if (n <= 0)
		return bad_peer(err, "read");
	strbuf_add(&peer->in, buf, (size_t)n);
	len = answer_len(strbuf_str(&peer->in), peer->in.len);
	if (len == 0)
		return 0;
	if (len < 0 || check_answer(a, strbuf_str(&peer->in), err) < 0)
		return len < 0 ? bad_peer(err, "answers without length") : -1;
	if (a->answered++ >= WARM_UP)
		a->took_us[a->n_took++] = clock_us() - peer->since_us;
	peer->since_us = 0;
	strbuf_consume(&peer->in, (size_t)len);
	if (a->fresh)
		peer_close(peer);
	return 0;
}

static int send_due(struct admit *a, int64_t total, struct err *err)
{
	for (int64_t i = 0; i < a->n_peers && a->begun < total; i++) {
		int64_t due = due_us(a);

		if (a->peers[i].since_us || due > clock_us())
			continue;
		if (send_one(a, &a->peers[i], due, err) < 0)
			return -1;
	}
	return 0;
}

static int receive_some(struct admit *a, int64_t total, struct err *err)
{
	struct pollfd fds[CONNECTIONS_MAX];
	int64_t which[CONNECTIONS_MAX];
	int64_t wait_us =
		a->rate && a->begun < total ? due_us(a) - clock_us() : PATIENCE_S * 1000000;
	struct timespec wait = {0};
	nfds_t n = 0;

	for (int64_t i = 0; i < a->n_peers; i++)
		if (a->peers[i].since_us) {
			which[n] = i;
			fds[n++] = (struct pollfd){.fd = a->peers[i].fd, .events = POLLIN};
		}
	if (wait_us > 0)
		wait = (struct timespec){wait_us / 1000000, wait_us % 1000000 * 1000};
	if (ppoll(fds, n, n == (nfds_t)a->n_peers ? NULL : &wait, NULL) < 0)
		return bad_peer(err, "poll");
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents && receive(a, &a->peers[which[i]], err) < 0)
			return -1;
	return 0;
}

static int exchange_all(struct admit *a, struct err *err)
{
	int64_t total = a->n_requests + WARM_UP;

	for (int64_t i = 0; i < a->n_peers && !a->fresh; i++)
		if (peer_open(a, &a->peers[i], err) < 0)
			return -1;
	a->started_us = clock_us();
	while (a->answered < total)
		if (send_due(a, total, err) < 0 || receive_some(a, total, err) < 0)
			return -1;
	a->ended_us = clock_us();
	return 0;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t percentile(const int64_t *sorted, size_t n, size_t percent)
{
	return n ? sorted[(n * percent + 99) / 100 - 1] : 0;
}

static void print(struct admit *a)
{
	double seconds = (double)(a->ended_us - a->started_us) / 1e6;
	size_t within = 0;

	qsort(a->took_us, a->n_took, sizeof(*a->took_us), compare);
	qsort(a->connect_us, a->n_connects, sizeof(*a->connect_us), compare);
	while (within < a->n_took && a->took_us[within] <= 1000)
		within++;
	printf("{\"requests\": %zu, \"per_second\": %.0f, \"p50_us\": %lld, \"p99_us\": %lld, "
	       "\"max_us\": %lld, "
	       "\"within_1ms\": %zu, \"connect_p50_us\": %lld, \"connect_p99_us\": %lld}\n",
	       a->n_took, (double)a->answered / seconds,
	       (long long)percentile(a->took_us, a->n_took, 50),
	       (long long)percentile(a->took_us, a->n_took, 99),
	       (long long)percentile(a->took_us, a->n_took, 100), within,
	       (long long)percentile(a->connect_us, a->n_connects, 50),
	       (long long)percentile(a->connect_us, a->n_connects, 99));
}

/* ---- arguments ------------------------------------------------------------------------------- */

enum {
	OPT_PORT = 1,
	OPT_CA,
	OPT_BODY,
	OPT_PATH,
	OPT_STATUS,
	OPT_CONTAINS,
	OPT_REQUESTS,
	OPT_CONNECTIONS,
	OPT_RATE,
	OPT_FRESH,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"port", required_argument, NULL, OPT_PORT},
	{"ca", required_argument, NULL, OPT_CA},
	{"body", required_argument, NULL, OPT_BODY},
	{"path", required_argument, NULL, OPT_PATH},
	{"status", required_argument, NULL, OPT_STATUS},
	{"contains", required_argument, NULL, OPT_CONTAINS},
	{"requests", required_argument, NULL, OPT_REQUESTS},
	{"connections", required_argument, NULL, OPT_CONNECTIONS},
	{"rate", required_argument, NULL, OPT_RATE},
	{"fresh", no_argument, NULL, OPT_FRESH},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static int set_number(const char *option, int64_t max, int64_t *ret, struct err *err)
{
	if (str_to_int(optarg, 1, max, ret))
		return 0;
	return err_set(err, ERR_INVALID, "BadOption", "%s \"%s\": must be a number up to %lld",
		       option, optarg, (long long)max);
}

/* The file for now; it becomes a request when the path is known. */
static int add_body(struct admit *a, struct err *err)
{
	auto_strbuf struct strbuf text = {0};

	if (a->n_bodies == BODIES_MAX)
		return err_set(err, ERR_INVALID, "BadOption", "--body: at most %d", BODIES_MAX);
	if (fs_read(AT_FDCWD, optarg, 1024 * 1024, &text, err) < 0)
		return -1;
	a->bodies[a->n_bodies++] = strbuf_take(&text);
	return 0;
}

static int set_option(struct admit *a, int option, struct err *err)
{
	switch (option) {
	case OPT_PORT:
		return set_number("--port", 65535, &a->port, err);
	case OPT_CA:
		a->ca = optarg;
		return 0;
	case OPT_BODY:
		return add_body(a, err);
	case OPT_PATH:
		a->path = optarg;
		return 0;
	case OPT_STATUS:
		return set_number("--status", 599, &a->status, err);
	case OPT_CONTAINS:
		a->contains = optarg;
		return 0;
	case OPT_REQUESTS:
		return set_number("--requests", REQUESTS_MAX, &a->n_requests, err);
	case OPT_CONNECTIONS:
		return set_number("--connections", CONNECTIONS_MAX, &a->n_peers, err);
	case OPT_RATE:
		return set_number("--rate", 1000000, &a->rate, err);
	case OPT_FRESH:
		a->fresh = true;
		return 0;
	case OPT_HELP:
		fputs(help, stdout);
		exit(0);
	default: /* getopt has said what is wrong */
		return err_set(err, ERR_INVALID, "BadOption", "see bench-admit --help");
	}
}

static void make_requests(struct admit *a)
{
	for (size_t i = 0; i < a->n_bodies; i++) {
		auto_free char *body = a->bodies[i];

		a->bodies[i] = str_printf("POST %s?timeout=2s HTTP/1.1\r\n"
					  "Host: " HOST ":%lld\r\n"
					  "User-Agent: kube-apiserver-admission\r\n"
					  "Content-Length: %zu\r\n"
					  "Accept: application/json, */*\r\n"
					  "Content-Type: application/json\r\n"
					  "Accept-Encoding: gzip\r\n"
					  "\r\n"
					  "%s",
					  a->path, (long long)a->port, strlen(body), body);
	}
}

static int init(struct admit *a, int argc, char **argv, struct err *err)
{
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (set_option(a, option, err) < 0)
			return -1;
	if (!a->port || !a->ca || !a->n_bodies)
		return err_set(err, ERR_INVALID, "BadOption", "--port, --ca and --body are needed");
	a->tls = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_verify(a->tls, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_load_verify_file(a->tls, a->ca) != 1)
		return err_set(err, ERR_INVALID, "BadOption", "--ca %s: no certificates", a->ca);
	make_requests(a);
	a->took_us = mem_calloc((size_t)a->n_requests, sizeof(*a->took_us));
	a->connect_us =
		mem_calloc((size_t)(a->n_requests + CONNECTIONS_MAX), sizeof(*a->connect_us));
	return 0;
}

static void done(struct admit *a)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		peer_close(&a->peers[i]);
	for (size_t i = 0; i < a->n_bodies; i++)
		mem_free(a->bodies[i]);
	SSL_CTX_free(a->tls);
	mem_free(a->took_us);
	mem_free(a->connect_us);
}

int main(int argc, char **argv)
{
	struct admit a = {.n_requests = 1000, .n_peers = 1, .path = "/inject", .status = 200};
	struct err err = {0};
	int result = init(&a, argc, argv, &err);

	if (result == 0)
		result = exchange_all(&a, &err);
	if (result == 0)
		print(&a);
	else
		fprintf(stderr, "bench-admit: %s\n", err.text);
	done(&a);
	return result == 0 ? 0 : 1;
}
