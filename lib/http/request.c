// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over the request line, one over each header line. Everything is checked before it is
 * believed; the buffer is never longer than HTTP_HEADERS_MAX, so nothing here needs to be clever.
 */
#include "lib/http/request.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	enum http_method method;
	bool is_head;
} methods[] = {
	{"GET", HTTP_GET, false}, {"HEAD", HTTP_GET, true},     {"POST", HTTP_POST, false},
	{"PUT", HTTP_PUT, false}, {"PATCH", HTTP_PATCH, false}, {"DELETE", HTTP_DELETE, false},
};

const char *http_method_name(enum http_method method)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (methods[i].method == method)
			return methods[i].name;
	return "";
}

const char *request_method_name(const struct request *req)
{
	if (req->is_head)
		return "HEAD";
	return req->method ? http_method_name(req->method) : "other";
}

size_t request_skip_blank(const char *data, size_t len)
{
	size_t n = 0;

	while (n + 2 <= len && data[n] == '\r' && data[n + 1] == '\n')
		n += 2;
	return n;
}

size_t request_head_len(const char *data, size_t len)
{
	const char *end = len > 0 ? memmem(data, len, "\r\n\r\n", 4) : NULL;

	assert(data || len == 0);
	return end ? (size_t)(end - data) + 4 : 0;
}

/* tchar of RFC 9110 section 5.6.2 */
static bool is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	return true;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* %XX to bytes, in place; false for a broken one, and for a NUL. */
static bool decode_path(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (*s != '%') {
			*out++ = *s;
			continue;
		}
		if (hex(s[1]) < 0 || hex(s[2]) < 0 || (s[1] == '0' && s[2] == '0'))
			return false;
		*out++ = (char)(hex(s[1]) << 4 | hex(s[2]));
		s += 2;
	}
	*out = '\0';
	return true;
}

static void plus_to_blank(char *s)
{
	for (; *s; s++)
		if (*s == '+')
			*s = ' ';
}

static bool parse_query(char *query, struct request *ret)
{
	while (query) {
		char *param = strsep(&query, "&");

		if (!*param)
			continue;
		plus_to_blank(param);
		if (ret->n_query == HTTP_QUERY_MAX || !decode_path(param))
			return false;
		ret->query[ret->n_query++] = param;
	}
	return true;
}

/*
 * origin-form, or absolute-form, which every server has to accept; only the path of it matters to
 * us.
 */
static bool parse_target(char *target, struct request *ret)
{
	char *path = target;

	for (const char *s = target; *s; s++)
		if (*s <= ' ' || *s == 0x7f || (unsigned char)*s >= 0x80)
			return false;
	if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0)
		path = strchr(strstr(target, "//") + 2, '/');
	if (!path || *path != '/')
		return false;
	target = strchr(path, '?');
	if (target)
		*target++ = '\0';
	if (!decode_path(path))
		return false;
	ret->path = path;
	return parse_query(target, ret);
}

static int parse_request_line(char *line, struct request *ret)
{
	const char *method = strsep(&line, " ");
	char *target = line ? strsep(&line, " ") : NULL;
	const char *version = line;

	if (!is_token(method) || !target || !version)
		return 400;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].name, method) == 0) {
			ret->method = methods[i].method;
			ret->is_head = methods[i].is_head;
		}
	if (strncmp(version, "HTTP/", 5) != 0 || !isdigit((unsigned char)version[5]) ||
	    version[6] != '.' || !isdigit((unsigned char)version[7]) || version[8] != '\0')
		return 400;
	if (version[5] != '1')
		return 505;
	/* HTTP/1.0 has no keep-alive of its own, and its clients rarely care. */
	ret->is_old = version[7] == '0';
	ret->wants_close = ret->is_old;
	return parse_target(target, ret) ? 0 : 400;
}

/* A comma-separated list has the word in it, in any case. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (*list) {
		size_t item;

		list += strspn(list, ", \t");
		item = strcspn(list, ", \t");
		if (item == len && strncasecmp(list, word, len) == 0)
			return true;
		list += item;
	}
	return false;
}

struct seen {
	bool host, length, coding, authorization;
};

static int parse_length(const char *value, struct seen *seen, struct request *ret)
{
	int64_t len;

	/* Several, even equal ones, are how requests are smuggled past a proxy. */
	if (seen->length || !str_to_int(value, 0, INT64_MAX, &len))
		return 400;
	seen->length = true;
	ret->body_len = (uint64_t)len;
	return 0;
}

static int parse_header(const char *name, const char *value, struct seen *seen, struct request *ret)
{
	if (strcasecmp(name, "Host") == 0) {
		if (seen->host)
			return 400;
		seen->host = true;
		ret->host = value;
	} else if (strcasecmp(name, "Content-Length") == 0) {
		return parse_length(value, seen, ret);
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		if (seen->coding)
			return 400;
		seen->coding = true;
		ret->is_chunked = strcasecmp(value, "chunked") == 0;
	} else if (strcasecmp(name, "Content-Type") == 0) {
		ret->content_type = value;
	} else if (strcasecmp(name, "Accept") == 0) {
		ret->accept = value;
	} else if (strcasecmp(name, "User-Agent") == 0) {
		ret->user_agent = value;
	} else if (strcasecmp(name, "Authorization") == 0) {
		/* Of two, another server in between may have looked at the other one. */
		if (seen->authorization)
			return 400;
		seen->authorization = true;
		ret->authorization = value;
	} else if (strcasecmp(name, "Origin") == 0) {
		if (*ret->origin)
			return 400;
		ret->origin = value;
	} else if (strcasecmp(name, "Upgrade") == 0) {
		ret->upgrade = value;
	} else if (strcasecmp(name, "Connection") == 0) {
		ret->wants_close = ret->wants_close || list_has(value, "close");
	} else if (strcasecmp(name, "Expect") == 0) {
		if (strcasecmp(value, "100-continue") != 0)
			return 417;
		ret->has_expect = true;
	}
	return 0;
}

/* The value without blanks around it; NULL when there is something in it that must not be. */
static const char *clean_value(char *value)
{
	char *end;

	for (const char *s = value; *s; s++)
		if ((*s > 0 && *s < ' ' && *s != '\t') || *s == 0x7f)
			return NULL;
	value += strspn(value, " \t");
	end = value + strlen(value);
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	return value;
}

static int parse_header_line(char *line, struct seen *seen, struct request *ret)
{
	const char *name = strsep(&line, ":");
	const char *value = line ? clean_value(line) : NULL;

	if (!is_token(name) || !value)
		return 400;
	return parse_header(name, value, seen, ret);
}

int request_parse(char *head, size_t len, struct request *ret)
{
	struct seen seen = {0};
	char *line = head, *end = head + len - 2; /* the empty line */
	int status = 0;

	assert(head && ret);
	*ret = (struct request){
		.path = "",
		.content_type = "",
		.authorization = "",
		.host = "",
		.origin = "",
		.upgrade = "",
		.accept = "",
		.user_agent = "",
	};
	if (memchr(head, '\0', len))
		return 400;
	for (bool first = true; line < end && (status == 0 || status == 417); first = false) {
		char *stop = strstr(line, "\r\n");
		int result;

		*stop = '\0';
		result =
			first ? parse_request_line(line, ret) : parse_header_line(line, &seen, ret);
		if (result == 400 || status == 0)
			status = result;
		line = stop + 2;
	}
	if (status != 0 && status != 417)
		return status;
	/* With both, a proxy in front of us may have used the other one. */
	if (seen.coding && (seen.length || ret->is_old))
		return 400;
	if (seen.coding && !ret->is_chunked)
		return 411;
	if (!seen.host && !ret->wants_close)
		return 400;
	return status;
}
