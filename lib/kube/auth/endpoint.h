// SPDX-License-Identifier: Apache-2.0
/*
 * URLs of API servers and proxies, taken apart and checked (RFC 3986, the part of it that makes
 * sense here).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

struct endpoint {
	char *scheme; /* lower case */
	char *host;   /* a name, an IPv4 address, or an IPv6 address without its brackets */
	uint16_t port;
	char *path; /* "" or "/prefix", no slash at the end */
};

/*
 * A server's URL: https://HOST[:PORT][/PATH] or http://…; ports 443 and 80 when not said. Errors
 * are ERR_INVALID "BadUrl" with a text that continues after the name of the field, and quotes the
 * URL unless it carries a password.
 */
int endpoint_parse_server(const char *url, struct endpoint *ret, struct err *err);

/*
 * A proxy's: http://, https://, socks5:// or socks5h://, with an optional USER:PASSWORD@, without a
 * path.
 */
int endpoint_parse_proxy(const char *url, struct endpoint *ret, struct err *err);

/* "scheme://host:port/path", brackets where they belong. Returns new; free(). */
char *endpoint_url(const struct endpoint *e);

/* Does traffic to it stay on this machine: localhost, 127.0.0.0/8, ::1? */
bool endpoint_is_loopback(const struct endpoint *e);

void endpoint_done(struct endpoint *e);

#define auto_endpoint auto_call(endpoint_done)
