// SPDX-License-Identifier: Apache-2.0
/* recv(2) and send(2), or SSL_read(3) and SSL_write(3), with one way to say "later". */
#include "lib/http/wire.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/loop/loop.h"

void wire_init(struct wire *wire, int fd, SSL_CTX *tls)
{
	*wire = (struct wire){.fd = fd, .tls = tls};
	if (tls)
		SSL_CTX_up_ref(tls);
}

void wire_done(struct wire *wire)
{
	SSL_free(wire->ssl);
	SSL_CTX_free(wire->tls);
	(void)close(wire->fd);
	*wire = (struct wire){.fd = -1};
}

static int later(struct wire *wire, int waits_for)
{
	wire->waits_for = waits_for;
	return WIRE_LATER;
}

static int ended(struct wire *wire)
{
	wire->waits_for = 0;
	wire->has_failed = true;
	return WIRE_END;
}

/* The result of a call of OpenSSL's that transferred nothing. */
static int ssl_result(struct wire *wire, int result)
{
	int why = SSL_get_error(wire->ssl, result);

	ERR_clear_error();
	switch (why) {
	case SSL_ERROR_WANT_READ:
		return later(wire, POLL_READ);
	case SSL_ERROR_WANT_WRITE:
		return later(wire, POLL_WRITE);
	case SSL_ERROR_ZERO_RETURN: /* the peer said goodbye; we may go on */
		wire->waits_for = 0;
		return WIRE_END;
	default:
		return ended(wire);
	}
}

/* The same for recv(2) and send(2). */
static int socket_result(struct wire *wire, int waits_for)
{
	if (errno == EAGAIN || errno == EINTR)
		return later(wire, waits_for);
	return ended(wire);
}

ssize_t wire_recv(struct wire *wire, void *buf, size_t size)
{
	ssize_t n;

	assert(size > 0 && size <= INT_MAX);
	wire->waits_for = 0;
	if (!wire->tls) {
		n = recv(wire->fd, buf, size, 0);
		if (n == 0)
			return WIRE_END;
		return n > 0 ? n : socket_result(wire, POLL_READ);
	}
	if (!wire->ssl) {
		wire->ssl = SSL_new(wire->tls);
		if (!wire->ssl || SSL_set_fd(wire->ssl, wire->fd) != 1)
			mem_exhausted();
		/*
		 * What is not sent yet may move: it is in a buffer that grows. Idle connections
		 * keep no buffers.
		 */
		SSL_set_mode(wire->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
						SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						SSL_MODE_RELEASE_BUFFERS);
		SSL_set_accept_state(wire->ssl);
	}
	ERR_clear_error();
	n = SSL_read(wire->ssl, buf, (int)size);
	return n > 0 ? n : ssl_result(wire, (int)n);
}

bool wire_has_more(const struct wire *wire)
{
	return wire->ssl && SSL_pending(wire->ssl) > 0;
}

ssize_t wire_send(struct wire *wire, const void *data, size_t len)
{
	ssize_t n;

	assert(len > 0);
	wire->waits_for = 0;
	if (!wire->tls) {
		n = send(wire->fd, data, len, MSG_NOSIGNAL);
		return n > 0 ? n : socket_result(wire, POLL_WRITE);
	}
	assert(wire->ssl); /* a client that gets a response has sent a request */
	ERR_clear_error();
	n = SSL_write(wire->ssl, data, len < INT_MAX ? (int)len : INT_MAX);
	return n > 0 ? n : ssl_result(wire, (int)n);
}

void wire_say_goodbye(struct wire *wire)
{
	if (!wire->ssl || wire->has_failed || !SSL_is_init_finished(wire->ssl))
		return;
	ERR_clear_error();
	(void)SSL_shutdown(wire->ssl);
	ERR_clear_error();
}

void wire_end_sending(struct wire *wire)
{
	wire_say_goodbye(wire);
	(void)shutdown(wire->fd, SHUT_WR);
}
