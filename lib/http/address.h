// SPDX-License-Identifier: Apache-2.0
/*
 * Where to listen: HOST:PORT to a socket address, and a listening socket on it. For lib/http and
 * the live report.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/base/err.h"

struct address {
	struct sockaddr_storage sa;
	socklen_t len;
	bool is_any; /* no host was given: both families */
};

/*
 * "127.0.0.1:8080", "[::1]:8080", ":8080". Errors: ERR_INVALID "BadAddress", naming the text and
 * what would be right.
 */
int address_parse(const char *text, struct address *ret, struct err *err);

/*
 * A listening TCP socket, non-blocking, close-on-exec; the caller closes it. -1 with ERR_HOST
 * "ListenFailed". text is for the message.
 */
int address_listen(const struct address *address, const char *text, struct err *err);
