// SPDX-License-Identifier: Apache-2.0
/*
 * For meta_call.c and allocated.c, which look at namespaces between plugins, by the sockets that
 * attach_run.c has opened for these.
 */
#include "nodeagent/cni/execute/netns_visit.h"

#include <unistd.h>

#include "nodeagent/cni/execute/netns_detect.h"
#include "nodeagent/cni/execute/netns_execute.h"
#include "nodeagent/netlink/netns.h"

int netns_visit(struct netns **namespaces, int fd, unsigned int parts, json_t **ret,
		struct err *err)
{
	struct netns *ns = netns_keep(namespaces, fd, err);

	return ns ? netns_observe(ns, parts, ret, err) : -1;
}

int netns_visit_links(json_t **ret, struct err *err)
{
	auto_netns struct netns *ns = netns_open(-1, err);

	return ns ? netns_observe(ns, NETNS_LINKS, ret, err) : -1;
}

int netns_visit_execute(struct netns **namespaces, int fd, const json_t *steps, struct err *err)
{
	struct netns *ns = netns_keep(namespaces, fd, err);

	return ns ? netns_execute(&(struct netns_pair){.pod = ns}, steps, NULL, err) : -1;
}

void netns_visit_announce(struct netns **namespaces, int fd, const json_t *announcements)
{
	struct netns *ns = json_array_size(announcements) ? netns_keep(namespaces, fd, NULL) : NULL;

	if (!ns)
		return;
	(void)alarm(NETNS_ANNOUNCE_S);
	netns_announce(ns, announcements);
}

void netns_visit_end(struct netns **namespaces)
{
	netns_close(*namespaces);
	*namespaces = NULL;
}
