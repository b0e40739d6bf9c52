// SPDX-License-Identifier: Apache-2.0
/*
 * Between the IPAM plugin, which attach_services runs or answers, and interface.c, which plans. An
 * address that was given and could not be set goes back at once, so that the plugins' own failures
 * need not think of it.
 */
#include "nodeagent/cni/execute/ipam_run.h"

#include <assert.h>
#include <linux/if.h>
#include <time.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/interface.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/result.h"

#define CARRIER_MS 200
#define LOOK_MS    10

bool ipam_is_wanted(const struct plugin_call *call)
{
	return !str_empty(json_str_at(call->call->config, "ipam", "type"));
}

void ipam_announce(const struct plugin_call *call, const json_t *addresses)
{
	if (call->call->worker)
		json_array_append_new(call->call->worker->announcements,
				      json_pack("{s:s, s:O, s:b}", "ifname", call->call->ifname,
						"addresses", addresses, "hasLateLink",
						call->has_late_link));
}

int ipam_configure(const struct plugin_call *call, const json_t *result, json_t *done,
		   struct err *err)
{
	json_auto_t *steps = json_array(), *addresses = json_array();
	size_t i;
	json_t *ip;

	interface_plan(call->call->ifname, result, steps);
	if (netns_execute(&call->pair, steps, done, err))
		return -1;
	json_array_foreach (json_at(result, "ips"), i, ip)
		json_array_append(addresses, json_at(ip, "address"));
	ipam_announce(call, addresses);
	return 0;
}

/* A VF has no carrier for some 100 ms after it was set up, and a DHCP client sends at once. */
static void wait_for_carrier(const struct plugin_call *call)
{
	for (int waited = 0; waited < CARRIER_MS; waited += LOOK_MS) {
		const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
		json_auto_t *look = netns_look_new();
		const json_t *link = NULL;

		if (netns_observe_link(call->pair.pod, call->call->ifname, 0, look, &link, NULL) ||
		    look_number(link, "flags") & IFF_RUNNING)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

/* May the IPAM plugin use the interface? Ours do not: announcements wait for all links at once. */
static bool is_on_network(const char *type)
{
	static const char *const own[] = {"spiderpool", "static", "host-local"};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (str_eq(type, own[i]))
			return false;
	return true;
}

int ipam_add(const struct plugin_call *call, bool configure, json_t *result, json_t *done,
	     struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *printed = NULL, *read = NULL;

	assert(!configure || call->pair.pod);
	if (configure && call->has_late_link &&
	    is_on_network(json_str_at(call->call->config, "ipam", "type")))
		wait_for_carrier(call);
	if (services->ipam(services->context, "ADD", call->call->config, &printed, err))
		return err_in(err, "addresses for %s", call->call->ifname);
	if (result_read(printed, json_str_at(call->call->config, "cniVersion"), &read, err) == 0 &&
	    interface_adopt(result, read, err) == 0 &&
	    (!configure || ipam_configure(call, result, done, err) == 0))
		return 0;
	(void)ipam_del(call, NULL);
	return -1;
}

int ipam_inherit(const struct plugin_call *call, const json_t *from, json_t *result, json_t *done,
		 struct err *err)
{
	assert(from && call->pair.pod);
	return interface_adopt(result, from, err) || ipam_configure(call, result, done, err) ? -1
											     : 0;
}

int ipam_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *none = NULL;

	return services->ipam(services->context, "DEL", call->call->config, &none, err);
}

int ipam_del_unrecorded(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *rest = NULL;
	struct err why = {0};

	if (!ipam_is_wanted(call) || ipam_del(call, &why) == 0 || why.class != ERR_TRANSIENT)
		return 0;
	rest = json_pack("{s:b}", "ipam", 1);
	return services->save(services->context, rest, err);
}

bool ipam_is_owed(const struct plugin_call *call)
{
	const json_t *saved = call->call->saved;

	return saved ? json_is_true(json_at(saved, "ipam")) : ipam_is_wanted(call);
}

int ipam_finish_del(const struct plugin_call *call, bool gone, const char *key, const char *value,
		    struct err *err)
{
	const struct attach_services *services = call->call->services;
	bool is_owed = ipam_is_owed(call);
	json_auto_t *rest = NULL;

	if (gone && is_owed && ipam_del(call, NULL) == 0)
		is_owed = false;
	if (!gone || is_owed) {
		rest = json_object();
		json_put_str(rest, key, value);
		json_put_bool(rest, "ipam", is_owed);
	}
	return services->save(services->context, rest, rest ? err : NULL);
}
