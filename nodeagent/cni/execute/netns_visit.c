// SPDX-License-Identifier: Apache-2.0
/*
 * Open, one question or one list of steps, close: for meta_call.c and allocated.c, which look at a
 * pod's namespace between plugins. Plugins keep theirs open for the whole call (attach_run.c).
 */
#include "nodeagent/cni/execute/netns_visit.h"

#include <unistd.h>

#include "nodeagent/cni/execute/netns_detect.h"
#include "nodeagent/cni/execute/netns_execute.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/netlink/netns.h"

int netns_visit(int fd, json_t **ret, struct err *err)
{
	auto_netns struct netns *ns = netns_open(fd, err);

	return ns ? netns_observe(ns, NETNS_LINKS | NETNS_ROUTES, ret, err) : -1;
}

int netns_visit_links(int fd, json_t **ret, struct err *err)
{
	auto_netns struct netns *ns = netns_open(fd, err);

	return ns ? netns_observe(ns, NETNS_LINKS, ret, err) : -1;
}

int netns_visit_execute(int fd, const json_t *steps, struct err *err)
{
	auto_netns struct netns *ns = netns_open(fd, err);

	return ns ? netns_execute(&(struct netns_pair){.pod = ns}, steps, NULL, err) : -1;
}

void netns_visit_announce(int fd, const json_t *announcements)
{
	auto_netns struct netns *ns = json_array_size(announcements) ? netns_open(fd, NULL) : NULL;

	if (!ns)
		return;
	(void)alarm(NETNS_ANNOUNCE_S);
	netns_announce(ns, announcements);
}
