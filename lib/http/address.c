// SPDX-License-Identifier: Apache-2.0
/* HOST:PORT, numeric hosts only, so that starting does not depend on DNS. */
#include "lib/http/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"

/* The kernel cuts it to net.core.somaxconn: 4096 since Linux 5.4. */
#define BACKLOG 4096

static int bad_address(const char *text, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "BadAddress",
		       "listen address \"%s\": %s; write IPV4:PORT, [IPV6]:PORT or :PORT, for "
		       "example 127.0.0.1:8080",
		       text, why);
}

static void set_v6(struct address *a, struct in6_addr ip, int64_t port)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&a->sa;

	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = ip;
	sin6->sin6_port = htons((uint16_t)port);
	a->len = sizeof(*sin6);
}

static void set_v4(struct address *a, struct in_addr ip, int64_t port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&a->sa;

	sin->sin_family = AF_INET;
	sin->sin_addr = ip;
	sin->sin_port = htons((uint16_t)port);
	a->len = sizeof(*sin);
}

int address_parse(const char *text, struct address *ret, struct err *err)
{
	const char *colon = strrchr(text, ':');
	struct address a = {0};
	char host[INET6_ADDRSTRLEN + 2]; /* and two brackets */
	struct in6_addr v6;
	struct in_addr v4;
	size_t len;
	int64_t port;

	assert(text && ret);
	if (!colon)
		return bad_address(text, "there is no port", err);
	if (!str_to_int(colon + 1, 0, 65535, &port))
		return bad_address(text, "the port is not a number from 0 to 65535", err);
	len = (size_t)(colon - text);
	if (len >= sizeof(host))
		return bad_address(text, "the host is not an IP address", err);
	memcpy(host, text, len);
	host[len] = '\0';

	if (len == 0) {
		a.is_any = true;
		set_v6(&a, in6addr_any, port);
	} else if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &v6) != 1)
			return bad_address(text, "what is in brackets is not an IPv6 address", err);
		set_v6(&a, v6, port);
	} else if (inet_pton(AF_INET, host, &v4) == 1) {
		set_v4(&a, v4, port);
	} else {
		return bad_address(text, "the host is not an IP address", err);
	}
	*ret = a;
	return 0;
}

static int listen_failed(const char *text, struct err *err)
{
	return err_sys(err, "ListenFailed", "cannot listen on %s", text);
}

int address_listen(const struct address *address, const char *text, struct err *err)
{
	static const int on = 1, off = 0;
	struct address v4_any = {0};
	auto_close int fd =
		socket(address->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 && address->is_any && address->sa.ss_family == AF_INET6) {
		/* A kernel without IPv6: all addresses are those of IPv4. */
		set_v4(&v4_any, (struct in_addr){INADDR_ANY},
		       ntohs(((const struct sockaddr_in6 *)&address->sa)->sin6_port));
		return address_listen(&v4_any, text, err);
	}
	if (fd < 0)
		return listen_failed(text, err);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return listen_failed(text, err);
	if (address->is_any && address->sa.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return listen_failed(text, err);
	if (bind(fd, (const struct sockaddr *)&address->sa, address->len) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return listen_failed(text, err);
	return take_fd(&fd);
}
