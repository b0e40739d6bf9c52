/*
 * Asks before they are asked. See the header.
 */
#include "reconcilers/ipam/foresight.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/reconcile.h"

#define OUR_IPAM "spiderpool"

/*
 * The first plugin's ipam block that is ours, in a network configuration or a list of them; NULL
 * when there is none.
 */
static const json_t *find_ipam(const json_t *config)
{
	const json_t *ipam = json_at(config, "ipam");
	json_t *plugin;
	size_t i;

	if (str_eq(json_str_at(ipam, "type"), OUR_IPAM))
		return ipam;
	json_array_foreach (json_at(config, "plugins"), i, plugin) {
		ipam = json_at(plugin, "ipam");
		if (str_eq(json_str_at(ipam, "type"), OUR_IPAM))
			return ipam;
	}
	return NULL;
}

static json_t *ask_new(const char *nic, const char *network, const json_t *ipam)
{
	json_t *ask = json_object();

	json_put_str(ask, "nic", nic);
	json_put_str(ask, "network", network);
	json_put(ask, "ipv4", json_incref((json_t *)json_at(ipam, "default_ipv4_ippool")));
	json_put(ask, "ipv6", json_incref((json_t *)json_at(ipam, "default_ipv6_ippool")));
	json_put_bool(ask, "cleanGateway", json_is_true(json_at(ipam, "clean_gateway")));
	return ask;
}

static void look_at(const json_t *world, const json_t *network, const char *nic, json_t *asks,
		    json_t *unknown)
{
	auto_free char *key = network_key(network);
	const json_t *nad = world_get(world, KIND_NAD, key);
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	json_auto_t *config = nad ? json_parse(text, strlen(text), NULL) : NULL;
	const json_t *ipam = find_ipam(config);

	if (!nad || !config)
		json_array_append_new(
			unknown,
			json_fmt("NIC %s: NetworkAttachmentDefinition %s %s", nic, key,
				 nad ? "has no spec.config that can be read" : "does not exist"));
	else if (ipam && json_is_true(json_at(ipam, "match_master_subnet")))
		json_array_append_new(
			unknown,
			json_fmt("NIC %s: network %s wants pools of its PF's own subnet, which "
				 "only the node knows",
				 nic, key));
	else if (ipam)
		json_array_append_new(asks, ask_new(nic, key, ipam));
}

json_t *foresee(const json_t *world, const json_t *pod, const struct ipam_settings *settings,
		json_t **ret_unknown, struct err *err)
{
	const json_t *annotations = json_at(pod, "metadata", "annotations");
	const char *first = json_str_at(annotations, DEFAULT_NETWORK_ANNOTATION);
	const char *more = json_str_or(json_at(annotations, NETWORKS_ANNOTATION), "");
	json_auto_t *asks = json_array(), *unknown = json_array(), *list = NULL, *defaults = NULL;
	json_t *network;
	size_t i;

	if (!first)
		first = settings->cluster_network;
	if (first) {
		defaults = networks_parse(first, settings->ns, err);
		if (!defaults) {
			err_in(err, "annotation " DEFAULT_NETWORK_ANNOTATION);
			return NULL;
		}
		if (json_array_size(defaults))
			look_at(world, json_array_get(defaults, 0), "eth0", asks, unknown);
	}
	list = networks_parse(more, json_namespace(pod), err);
	if (!list) {
		err_in(err, "annotation " NETWORKS_ANNOTATION);
		return NULL;
	}
	json_array_foreach (list, i, network)
		look_at(world, network, json_str_at(network, "interface"), asks, unknown);
	*ret_unknown = json_incref(unknown);
	return json_incref(asks);
}
