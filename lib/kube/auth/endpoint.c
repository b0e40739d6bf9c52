// SPDX-License-Identifier: Apache-2.0
/* Scheme, authority, path: each step takes its piece off the front. */
#include "lib/kube/auth/endpoint.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

struct scheme {
	const char *name;
	uint16_t port;
};

static const struct scheme server_schemes[] = {{"https", 443}, {"http", 80}, {0}};
static const struct scheme proxy_schemes[] = {
	{"http", 80}, {"https", 443}, {"socks5", 1080}, {"socks5h", 1080}, {0}};

void endpoint_done(struct endpoint *e)
{
	mem_free(e->scheme);
	mem_free(e->host);
	mem_free(e->path);
	*e = (struct endpoint){0};
}

char *endpoint_url(const struct endpoint *e)
{
	const char *open = strchr(e->host, ':') ? "[" : "", *close = *open ? "]" : "";

	return str_printf("%s://%s%s%s:%u%s", e->scheme, open, e->host, close, e->port, e->path);
}

bool endpoint_is_loopback(const struct endpoint *e)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, e->host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, e->host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return strcasecmp(e->host, "localhost") == 0;
}

/* The scheme's row, with *rest behind "://"; NULL when there is none or it is not in the table. */
static const struct scheme *take_scheme(const char *url, const struct scheme *known,
					const char **rest)
{
	const char *colon = strstr(url, "://");

	if (!colon)
		return NULL;
	*rest = colon + strlen("://");
	for (; known->name; known++)
		if (strlen(known->name) == (size_t)(colon - url) &&
		    strncasecmp(known->name, url, strlen(known->name)) == 0)
			return known;
	return NULL;
}

/* RFC 1123 names and, as resolvers do, underscores; addresses pass as names. */
static bool is_host_name(const char *s)
{
	if (!*s || strlen(s) > 253)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-._", *s))
			return false;
	return true;
}

static bool is_path(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f || strchr("?#\"<>\\^`{|}", *s))
			return false;
	return true;
}

/* HOST, HOST:PORT, [V6], [V6]:PORT. */
static bool take_authority(const char *text, size_t len, uint16_t default_port, struct endpoint *e)
{
	auto_free char *authority = str_ndup(text, len);
	struct in6_addr v6;
	char *host = authority, *port = NULL;
	int64_t number = default_port;

	if (*host == '[') {
		char *close = strchr(++host, ']');

		if (!close || (close[1] && close[1] != ':'))
			return false;
		port = close[1] ? close + 2 : NULL;
		*close = '\0';
		if (inet_pton(AF_INET6, host, &v6) != 1)
			return false;
	} else {
		char *colon = strchr(host, ':');

		if (colon) {
			*colon = '\0';
			port = colon + 1;
		}
		if (!is_host_name(host))
			return false;
	}
	if (port && !str_to_int(port, 1, UINT16_MAX, &number))
		return false;
	e->host = str_dup(host);
	e->port = (uint16_t)number;
	return true;
}

static void trim_slashes(char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		path[--len] = '\0';
}

/* What follows the scheme, without user information. */
static bool take_rest(const char *rest, const struct scheme *scheme, struct endpoint *e)
{
	size_t len = strcspn(rest, "/?#");

	if (!take_authority(rest, len, scheme->port, e) || !is_path(rest + len))
		return false;
	e->scheme = str_dup(scheme->name);
	e->path = str_dup(rest + len);
	trim_slashes(e->path);
	return true;
}

int endpoint_parse_server(const char *url, struct endpoint *ret, struct err *err)
{
	auto_endpoint struct endpoint e = {0};
	const char *rest = NULL;
	const struct scheme *scheme = take_scheme(url, server_schemes, &rest);

	assert(url && ret);
	if (strchr(rest ? rest : url, '@'))
		return err_set(err, ERR_INVALID, "BadUrl",
			       "carries a user name or an \"@\"; credentials belong to the user, "
			       "not the URL");
	if (!rest)
		return err_set(err, ERR_INVALID, "BadUrl",
			       "\"%s\" has no scheme, must be like https://%s", url,
			       *url ? url : "HOST:PORT");
	if (!scheme)
		return err_set(err, ERR_INVALID, "BadUrl",
			       "\"%s\" is neither https:// nor http://, must be https://HOST:PORT",
			       url);
	if (!take_rest(rest, scheme, &e))
		return err_set(err, ERR_INVALID, "BadUrl",
			       "\"%s\" is no URL of a server, must be https://HOST[:PORT][/PATH] "
			       "with a port "
			       "from 1 to 65535",
			       url);
	*ret = e;
	e = (struct endpoint){0};
	return 0;
}

int endpoint_parse_proxy(const char *url, struct endpoint *ret, struct err *err)
{
	auto_endpoint struct endpoint e = {0};
	const char *rest = NULL;
	const struct scheme *scheme = take_scheme(url, proxy_schemes, &rest);
	const char *at = strrchr(url, '@');
	/* A password may stand before the @; then the message has to do without the URL. */
	const char *quote = at ? "" : "\"", *shown = at ? "the URL" : url;

	assert(url && ret);
	if (!scheme)
		return err_set(err, ERR_INVALID, "BadUrl",
			       "%s%s%s has no scheme that we can use, must be http://, https:// or "
			       "socks5://",
			       quote, shown, quote);
	if (at && at > rest)
		rest = at + 1;
	if (!take_rest(rest, scheme, &e) || *e.path)
		return err_set(err, ERR_INVALID, "BadUrl",
			       "%s%s%s is no URL of a proxy, must be like http://HOST:PORT", quote,
			       shown, quote);
	*ret = e;
	e = (struct endpoint){0};
	return 0;
}
