// SPDX-License-Identifier: Apache-2.0
/*
 * One connected socket: bytes in, bytes out, over TLS or not, without waiting. Internal to
 * lib/http.
 *
 * With TLS the first bytes that come begin the handshake, which goes on inside wire_recv; until
 * then a connection costs nothing of OpenSSL. OpenSSL reads and writes the socket itself, with
 * write(2): the process must ignore SIGPIPE.
 */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <sys/types.h>

/* What wire_recv returns in one call at most: a whole TLS record (RFC 8446 section 5.1). */
#define WIRE_READ_SIZE 16384

struct wire {
	int fd;
	SSL_CTX *tls; /* NULL: plain */
	SSL *ssl;     /* NULL until the first bytes come */
	/* POLL_READ or POLL_WRITE: what the last call could not go on without, else 0 */
	int waits_for;
	bool has_failed; /* nothing more may be said */
};

enum {
	WIRE_LATER = -1, /* nothing now: when the socket is ready for waits_for */
	WIRE_END = -2,   /* the peer has ended its side, or the connection is broken */
};

/* Takes fd, a non-blocking socket. tls NULL: plain; else a new reference to it is kept. */
void wire_init(struct wire *wire, int fd, SSL_CTX *tls);
/* Closes. */
void wire_done(struct wire *wire);

/* Bytes read into buf, at least one; or WIRE_LATER, WIRE_END. */
ssize_t wire_recv(struct wire *wire, void *buf, size_t size);
/*
 * There are bytes that no readiness of the socket will announce: OpenSSL has decrypted them
 * already.
 */
bool wire_has_more(const struct wire *wire);
/* Bytes taken, at least one; or WIRE_LATER, WIRE_END. len is not 0. */
ssize_t wire_send(struct wire *wire, const void *data, size_t len);
/* Nothing more will be sent: say so. The peer may go on. */
void wire_end_sending(struct wire *wire);
/* Send a TLS client's close_notify before the end; it needs no response. */
void wire_say_goodbye(struct wire *wire);
