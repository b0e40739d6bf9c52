// SPDX-License-Identifier: Apache-2.0
/*
 * What ADD does ends with the namespace, so DEL has nothing to do: CNI_NETNS may lead to another
 * one by then, as the number of a process does. Below plugin.c.
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

/* IPv6 may be off. */
static bool has_v6(void)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ret = bind(fd, (const struct sockaddr *)&v6, sizeof(v6)) == 0;

	if (fd >= 0)
		(void)close(fd);
	return ret;
}

void loopback_print(const struct wire_buffer *call, const char *netns_path)
{
	static const char key[] = "\"cniVersion\"";
	const char *end = (const char *)call->data + call->len, *version, *rest;

	version = memmem(call->data, call->len, key, sizeof(key) - 1);
	version = version ? version + sizeof(key) - 1 : end;
	while (version < end && strchr(" \t\r\n:\"", *version))
		version++;
	rest = version;
	while (rest < end && strchr(".0123456789", *rest) && *rest)
		rest++;
	(void)dprintf(STDOUT_FILENO,
		      "{\"cniVersion\":\"%.*s\",\"interfaces\":[{\"name\":\"lo\","
		      "\"mac\":\"00:00:00:00:00:00\",\"sandbox\":\"%s\"}],"
		      "\"ips\":[{\"interface\":0,\"address\":\"127.0.0.1/8\"}%s],\"dns\":{}}\n",
		      rest > version ? (int)(rest - version) : 5,
		      rest > version ? version : "0.1.0",
		      strpbrk(netns_path, "\"\\") ? "" : netns_path,
		      has_v6() ? ",{\"interface\":0,\"address\":\"::1/128\"}" : "");
}
