// SPDX-License-Identifier: Apache-2.0
/*
 * A look says which addresses and gateways a NIC has, its configuration which of them are asked for
 * (netns_detect.h). The worker calls it before the first coordinator of a pod, coordinator_run.c
 * for a NIC of which that has found nothing.
 */
#include "nodeagent/cni/execute/coordinator_detect.h"

#include <net/if.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_detect.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/look.h"

/* The lists of a request are new. */
static struct detect_request request_of(const char *ifname, const struct coordinator_config *config,
					const json_t *look)
{
	json_t *own = json_array(), *gateways = json_array(), *route;
	size_t i;

	look_addresses(look, ifname, LOOK_V4 | LOOK_V6, own);
	if (config->detect_gateway)
		json_array_foreach (json_at(look, "routes"), i, route)
			if (str_eq(json_str_at(route, "dev"), ifname) && json_at(route, "gw") &&
			    str_ends(json_str_at(route, "dst"), "/0"))
				json_array_append(gateways, json_at(route, "gw"));
	return (struct detect_request){
		.ifname = ifname,
		.addresses = config->detect_conflict ? json_incref(own) : NULL,
		.own = own,
		.gateways = gateways,
		.conflicts = json_array(),
	};
}

static json_t *finding_new(const struct detect_request *request)
{
	json_t *finding = json_object();

	if (json_array_size(request->conflicts) > 0)
		json_put(finding, "conflicts", json_incref(request->conflicts));
	if (request->err.class != ERR_NONE)
		json_put(finding, "error", ask_error_new(&request->err));
	return finding;
}

static void request_done(struct detect_request *request)
{
	json_decref((json_t *)request->addresses);
	json_decref((json_t *)request->own);
	json_decref((json_t *)request->gateways);
	json_decref(request->conflicts);
}

json_t *coordinator_detect_one(struct netns *pod, const char *ifname,
			       const struct coordinator_config *config, const json_t *look)
{
	struct detect_request request = request_of(ifname, config, look);
	json_t *finding;

	netns_detect(pod, &request, 1);
	finding = finding_new(&request);
	request_done(&request);
	return finding;
}

static bool can_be_asked(const json_t *look, const char *ifname)
{
	json_auto_t *addresses = json_array();

	look_addresses(look, ifname, LOOK_V4 | LOOK_V6, addresses);
	return look_number(look_link(look, ifname), "flags") & IFF_UP &&
	       json_array_size(addresses) > 0;
}

/* *ret is due for coordinator_config_done() in any case. */
static bool is_wanted(const json_t *nic, const json_t *settings, struct coordinator_config *ret)
{
	return coordinator_config_read(json_at(nic, "config"), settings, ret, NULL) == 0 &&
	       ret->mode != COORDINATOR_DISABLED && (ret->detect_conflict || ret->detect_gateway);
}

json_t *coordinator_detect(struct netns **namespaces, int netns, const json_t *nics,
			   const json_t *settings)
{
	auto_free struct detect_request *requests =
		mem_calloc(json_array_size(nics), sizeof(*requests));
	struct netns *pod = NULL;
	json_auto_t *look = NULL;
	json_t *findings = json_object();
	const json_t *nic;
	size_t i, n = 0;

	json_array_foreach (nics, i, nic) {
		auto_coordinator_config struct coordinator_config config = {0};
		const char *ifname = json_str_at(nic, "ifname");

		if (!is_wanted(nic, settings, &config))
			continue;
		if (!look &&
		    (!(pod = netns_keep(namespaces, netns, NULL)) ||
		     netns_observe(pod, NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES, &look, NULL)))
			break;
		if (can_be_asked(look, ifname))
			requests[n++] = request_of(ifname, &config, look);
	}
	if (n > 0)
		netns_detect(pod, requests, n);
	for (i = 0; i < n; i++) {
		json_put(findings, requests[i].ifname, finding_new(&requests[i]));
		request_done(&requests[i]);
	}
	return findings;
}
