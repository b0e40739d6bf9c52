// SPDX-License-Identifier: Apache-2.0
/*
 * A client on loopback for tests of the server: it shares the server's loop and turns it while it
 * waits.
 */
#pragma once

#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/loop/loop.h"

/* Not every test needs all of it. */
#define SUPPORT static __attribute__((unused))

struct client {
	struct loop *loop;
	int fd;
	SSL *ssl; /* NULL for plain */
	struct strbuf in;
	bool ended; /* the server has closed */
	int status; /* of the last response */
	struct strbuf headers, body;
};

/*
 * A test that waits longer for anything has failed. Tests have a clock of their own; this one is
 * the machine's.
 */
#define PATIENCE_MS 60000

static int64_t machine_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void turn(struct client *c)
{
	struct pollfd fd = {.fd = c->fd, .events = POLLIN};

	for (int i = 0; i < 4; i++)
		loop_turn(c->loop, false);
	poll(&fd, 1, 1);
}

/*
 * Let the server do all that it can do now: on loopback, what was sent or closed has arrived, and
 * each event takes a turn or two.
 */
SUPPORT void settle(struct loop *loop)
{
	for (int i = 0; i < 50; i++)
		loop_turn(loop, false);
}

static void shake_hands(struct client *c, SSL_CTX *tls)
{
	int64_t end = machine_ms() + PATIENCE_MS;
	int n;

	c->ssl = SSL_new(tls);
	SSL_set_fd(c->ssl, c->fd);
	while ((n = SSL_connect(c->ssl)) != 1) {
		int why = SSL_get_error(c->ssl, n);

		assert_true(why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE);
		assert_true(machine_ms() < end);
		turn(c);
	}
}

/*
 * Connect from an address of 127.0.0.0/8; with tls also shake hands. Fails the test when that is
 * not possible.
 */
SUPPORT struct client *client_from(const char *address, struct loop *loop, unsigned int port,
				   SSL_CTX *tls)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct client *c = mem_new(struct client);

	c->loop = loop;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(c->fd >= 0);
	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	assert_int_equal(bind(c->fd, (struct sockaddr *)&from, sizeof(from)), 0);
	/* The kernel completes the connection by itself, as long as the backlog has room. */
	assert_true(connect(c->fd, (struct sockaddr *)&to, sizeof(to)) == 0 ||
		    errno == EINPROGRESS);
	if (tls)
		shake_hands(c, tls);
	return c;
}

SUPPORT struct client *client_new(struct loop *loop, unsigned int port, SSL_CTX *tls)
{
	return client_from("127.0.0.1", loop, port, tls);
}

SUPPORT void client_free(struct client *c)
{
	SSL_free(c->ssl);
	close(c->fd);
	strbuf_done(&c->in);
	strbuf_done(&c->headers);
	strbuf_done(&c->body);
	mem_free(c);
}

static ssize_t write_some(struct client *c, const void *data, size_t len)
{
	int n;

	if (!c->ssl)
		return send(c->fd, data, len, MSG_NOSIGNAL);
	n = SSL_write(c->ssl, data, (int)len);
	if (n > 0)
		return n;
	errno = SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_WRITE ||
				SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_READ
			? EAGAIN
			: EPIPE;
	return -1;
}

/* Send all of it, as fast as the server takes it; false when the connection has ended before. */
SUPPORT bool client_send(struct client *c, const void *data, size_t len)
{
	int64_t end = machine_ms() + PATIENCE_MS;
	const char *p = data;

	while (len > 0) {
		ssize_t n = write_some(c, p, len);

		if (n < 0 && errno != EAGAIN && errno != ENOTCONN)
			return false;
		if (n < 0) {
			assert_true(machine_ms() < end);
			turn(c);
			continue;
		}
		p += n;
		len -= (size_t)n;
	}
	return true;
}

SUPPORT bool client_sends(struct client *c, const char *text)
{
	return client_send(c, text, strlen(text));
}

static void read_some(struct client *c)
{
	char buf[16384];
	ssize_t n;

	turn(c);
	if (c->ssl) {
		n = SSL_read(c->ssl, buf, sizeof(buf));
		if (n <= 0) {
			int why = SSL_get_error(c->ssl, (int)n);

			c->ended = why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
			return;
		}
	} else {
		n = recv(c->fd, buf, sizeof(buf), 0);
		if (n <= 0) {
			c->ended = n == 0 || (errno != EAGAIN && errno != ENOTCONN);
			return;
		}
	}
	strbuf_add(&c->in, buf, (size_t)n);
}

/* What is in `in` is at least one response: take it. */
static bool take_response(struct client *c, bool no_body)
{
	const char *text = strbuf_str(&c->in), *end = strstr(text, "\r\n\r\n"), *length;
	size_t head, body = 0;

	if (!end)
		return false;
	head = (size_t)(end - text) + 4;
	length = strcasestr(text, "\r\nContent-Length: ");
	if (length && length < end && !no_body)
		body = strtoul(length + strlen("\r\nContent-Length: "), NULL, 10);
	if (c->in.len < head + body)
		return false;
	strbuf_reset(&c->headers);
	strbuf_add(&c->headers, text, head);
	strbuf_reset(&c->body);
	strbuf_add(&c->body, text + head, body);
	assert_int_equal(sscanf(text, "HTTP/1.1 %d ", &c->status), 1);
	strbuf_consume(&c->in, head + body);
	return true;
}

/*
 * Wait for one response with Content-Length (no_body: to a HEAD) into status, headers, body; false
 * at the end.
 */
SUPPORT bool client_receive(struct client *c, bool no_body)
{
	int64_t end = machine_ms() + PATIENCE_MS;

	while (!take_response(c, no_body)) {
		if (c->ended)
			return false;
		assert_true(machine_ms() < end);
		read_some(c);
	}
	return true;
}

/* Send text, receive one response: its status, 0 when the connection ended instead. */
SUPPORT int client_ask(struct client *c, const char *text)
{
	if (!client_sends(c, text) || !client_receive(c, str_starts(text, "HEAD ")))
		return 0;
	return c->status;
}

/* Wait until the server has closed. */
SUPPORT bool client_sees_end(struct client *c)
{
	int64_t end = machine_ms() + PATIENCE_MS;

	while (!c->ended && machine_ms() < end)
		read_some(c);
	return c->ended;
}

/* The server has closed by now; what it had to say before is in `in`. */
SUPPORT bool client_has_ended(struct client *c)
{
	settle(c->loop);
	for (int i = 0; i < 4 && !c->ended; i++)
		read_some(c);
	return c->ended;
}

/* End our side; the server has nothing more to wait for, and has to end its own. */
SUPPORT void client_hangs_up(struct client *c)
{
	shutdown(c->fd, SHUT_WR);
	assert_true(client_sees_end(c));
}

static char *pem_text(BIO *bio)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);
	char *text = str_ndup(data, (size_t)len);

	BIO_free(bio);
	return text;
}

/* A new key and a certificate for 127.0.0.1 that it signs, as PEM; free both with free(). */
SUPPORT void make_certificate(const char *name, char **ret_certificate, char **ret_key)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	BIO *bio;

	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
				   (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(bio, cert);
	*ret_certificate = pem_text(bio);
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
	*ret_key = pem_text(bio);
	X509_free(cert);
	EVP_PKEY_free(key);
}
