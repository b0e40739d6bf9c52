// SPDX-License-Identifier: Apache-2.0
/*
 * The WebSockets of the live report: each gets the whole document first, then what changes.
 *
 * Messages are texts of JSON, { "whole": document } or { "change": merge patch (RFC 7386) }. A
 * browser that is slow is not sent what it missed, but the whole document again, so that a socket
 * holds one message at most.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/loop/loop.h"

enum { SOCKETS_MAX = 32 };

#define SOCKETS_PROTOCOL "orbweaver-report"

struct sockets;

struct sockets *sockets_new(struct loop *loop);
/* All are closed at once. Accepts NULL. */
void sockets_free(struct sockets *sockets);

/*
 * Take a connection, and borrow the head of its request for an upgrade. It is closed when there are
 * SOCKETS_MAX already: the page tries again.
 */
void sockets_adopt(struct sockets *sockets, int fd, const char *head, size_t len);

/*
 * The document is now `whole`; `change`, which may be NULL, made it from the one before. Both are
 * JSON, borrowed.
 */
void sockets_publish(struct sockets *sockets, const char *whole, const char *change);
