// SPDX-License-Identifier: Apache-2.0
/*
 * What ADD does ends with the namespace, so DEL has nothing to do: CNI_NETNS may lead to another
 * one by then, as the number of a process does. The configuration is read without a JSON parser:
 * two of its members are wanted. Below plugin.c.
 */
#include "nodeagent/cni/plugin/loopback.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int loopback_run(int netns, bool is_add)
{
	struct ifreq lo = {.ifr_name = "lo"};
	int fd = setns(netns, CLONE_NEWNET) == 0 ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
						 : -1;
	int rc = ioctl(fd, SIOCGIFFLAGS, &lo);

	if (rc == 0 && !(lo.ifr_flags & IFF_UP)) {
		lo.ifr_flags |= IFF_UP;
		rc = is_add ? ioctl(fd, SIOCSIFFLAGS, &lo) : -1;
	}
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

bool loopback_has_v6(void)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ret = bind(fd, (const struct sockaddr *)&v6, sizeof(v6)) == 0;

	if (fd >= 0)
		(void)close(fd);
	return ret;
}

/* ---- the result ------------------------------------------------------------------------------ */

struct text {
	const char *at, *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Of the object in `json` the text of a member, without blanks around it; empty: none. */
static struct text find_member(struct text json, const char *key)
{
	const char *at = json.at, *end = json.end, *value = NULL, *begin;
	size_t depth = 0;

	for (; at < end; at++) {
		if (*at == '"') {
			for (begin = ++at; at < end && *at != '"'; at++)
				at += *at == '\\';
			if (at >= end || value || depth != 1 ||
			    (size_t)(at - begin) != strlen(key) ||
			    memcmp(begin, key, strlen(key)) != 0)
				continue;
			while (at + 1 < end && is_blank(at[1]))
				at++;
			if (at + 1 < end && at[1] == ':')
				value = ++at + 1;
		} else if (value && depth == 1 && strchr(",}]", *at) && *at) {
			while (value < at && is_blank(*value))
				value++;
			while (at > value && is_blank(at[-1]))
				at--;
			return (struct text){value, at};
		} else if (*at == '{' || *at == '[') {
			depth++;
		} else if ((*at == '}' || *at == ']') && depth-- == 0) {
			break;
		}
	}
	return (struct text){0};
}

/* What the runtime wrote on the standard input. */
static struct text config_of(const struct wire_buffer *call)
{
	struct wire_message message;
	struct wire_field field;
	size_t at = 0;

	if (wire_read(call->data, call->len, &message) == 1)
		while (wire_next(&message, &at, &field))
			if (field.tag == WIRE_STDIN)
				return (struct text){(const char *)field.data,
						     (const char *)field.data + field.len};
	return (struct text){0};
}

void loopback_result(const struct wire_buffer *call, const char *netns_path, bool has_v6,
		     struct wire_buffer *ret)
{
	struct text config = config_of(call), previous = find_member(config, "prevResult");
	struct text named = find_member(config, "cniVersion");
	char version[16] = "0.1.0", text[512];
	size_t len = (size_t)(named.end - named.at);
	bool is_old, has_versions;

	if (previous.at < previous.end && *previous.at == '{') {
		wire_append(ret, previous.at, (size_t)(previous.end - previous.at));
		wire_append(ret, "\n", 1);
		return;
	}
	if (len > 2 && len < sizeof(version) + 2) {
		memcpy(version, named.at + 1, len - 2);
		version[len - 2] = '\0';
		if (version[strspn(version, "0123456789.")])
			memcpy(version, "0.1.0", sizeof("0.1.0"));
	}
	is_old = strncmp(version, "0.1.", 4) == 0 || strncmp(version, "0.2.", 4) == 0;
	has_versions = !is_old && version[0] == '0';
	if (is_old)
		len = (size_t)snprintf(text, sizeof(text),
				       "{\"cniVersion\":\"%s\",\"ip4\":{\"ip\":\"127.0.0.1/8\"}%s,"
				       "\"dns\":{}}\n",
				       version, has_v6 ? ",\"ip6\":{\"ip\":\"::1/128\"}" : "");
	else
		len = (size_t)snprintf(
			text, sizeof(text),
			"{\"cniVersion\":\"%s\",\"interfaces\":[{\"name\":\"lo\","
			"\"mac\":\"00:00:00:00:00:00\",\"sandbox\":\"%.256s\"}],\"ips\":[{%s"
			"\"interface\":0,\"address\":\"127.0.0.1/8\"}%s%s%s],\"dns\":{}}\n",
			version, strpbrk(netns_path, "\"\\") ? "" : netns_path,
			has_versions ? "\"version\":\"4\"," : "", has_v6 ? ",{" : "",
			has_v6 && has_versions ? "\"version\":\"6\"," : "",
			has_v6 ? "\"interface\":0,\"address\":\"::1/128\"}" : "");
	wire_append(ret, text, len);
}
