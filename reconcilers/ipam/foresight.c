// SPDX-License-Identifier: Apache-2.0
/*
 * assign.c, the agent and the command line ask this for a pod's NICs. Networks are listed by
 * pod_networks.c; of each, the NetworkAttachmentDefinition says whether the NIC will ask, and with
 * which pools.
 */
#include "reconcilers/ipam/foresight.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/cni_rules.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/pod_networks.h"

#define OUR_IPAM "spiderpool"

/* The member of an object whose key may be in any case, as plugins read it; the last of several. */
static const json_t *member(const json_t *object, const char *name)
{
	const json_t *found = NULL;
	const char *key;
	json_t *value;

	json_each (object, key, value)
		if (strcasecmp(key, name) == 0 && !json_is_null(value))
			found = value;
	return found;
}

/*
 * The first plugin's ipam block that is ours, in a network configuration or a list of them; NULL
 * when there is none.
 */
static const json_t *find_ipam(const json_t *config)
{
	const json_t *ipam = member(config, "ipam");
	json_t *plugin;
	size_t i;

	if (str_eq(json_string_value(member(ipam, "type")), OUR_IPAM))
		return ipam;
	json_array_foreach (json_at(config, "plugins"), i, plugin) {
		ipam = member(plugin, "ipam");
		if (str_eq(json_string_value(member(ipam, "type")), OUR_IPAM))
			return ipam;
	}
	return NULL;
}

static bool detects_conflicts(const json_t *plugin)
{
	return str_eq(json_string_value(member(plugin, "type")), "coordinator") &&
	       json_is_true(member(plugin, "detectIPConflict"));
}

/* In a network configuration, or in a list of them. */
static bool has_detection(const json_t *config)
{
	json_t *plugin;
	size_t i;

	json_array_foreach (json_at(config, "plugins"), i, plugin)
		if (detects_conflicts(plugin))
			return true;
	return detects_conflicts(config);
}

/*
 * What the definition says of our IPAM: {"ipam": block, if there is one, "detects": true, if its
 * coordinator looks for conflicts}, or {"fault", "why"} when it cannot be read. Returns new.
 */
static json_t *read_definition(const json_t *nad)
{
	const json_t *config = json_at(nad, "spec", "config");
	const char *text = json_str_or(config, "");
	json_t *said = json_object();
	json_auto_t *parsed = NULL;
	const json_t *ipam;
	struct err err = {0};

	if (limits_check_reduced(config, &err) == 0)
		parsed = limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, &err);
	ipam = find_ipam(parsed);
	if (ipam)
		json_put(said, "ipam", cni_rules_spiderpool(ipam));
	if (has_detection(parsed))
		json_put_bool(said, "detects", true);
	if (!parsed) {
		json_put_str(said, "fault", err.reason);
		json_put_str(said, "why", err.text);
	}
	return said;
}

void foresight_project(json_t *nad)
{
	json_t *metadata = json_at(nad, "metadata");

	if (metadata)
		json_put(json_need_object(metadata, "orbweaver"), "addresses",
			 read_definition(nad));
}

/* What was found at the door, or is found now. Returns a reference. */
static json_t *definition_of(const json_t *nad)
{
	json_t *known = json_at(nad, "metadata", "orbweaver", "addresses");

	return known ? json_incref(known) : read_definition(nad);
}

/* NULL: it is not there. *ret_key: of the one that counts; new, free(). Borrowed. */
static const json_t *nad_of(const json_t *world, const json_t *network, char **ret_key)
{
	auto_free char *other = pod_network_other_key(network);
	const json_t *nad;

	*ret_key = network_key(network);
	nad = world_get(world, KIND_NAD, *ret_key);
	if (nad || !other || !world_get(world, KIND_NAD, other))
		return nad;
	free(*ret_key);
	*ret_key = take_ptr(other);
	return world_get(world, KIND_NAD, *ret_key);
}

static int look_at(const json_t *world, const json_t *network, const char *nic, json_t *asks,
		   json_t *unknown, struct err *err)
{
	auto_free char *key = NULL;
	const json_t *nad = nad_of(world, network, &key);
	json_auto_t *said = NULL;
	const json_t *ipam;

	said = nad ? definition_of(nad) : NULL;
	ipam = json_at(said, "ipam");
	if (str_eq(json_str_at(said, "fault"), "TooLarge"))
		return err_set(err, ERR_INVALID, "TooLarge",
			       "NetworkAttachmentDefinition %.128s, spec.config: %s", key,
			       json_str_at(said, "why"));
	if (!nad || json_at(said, "fault")) {
		json_array_append_new(
			unknown,
			json_fmt("NIC %s: NetworkAttachmentDefinition %s %s", nic, key,
				 nad ? "has no spec.config that can be read" : "does not exist"));
	} else if (ipam && json_is_true(json_at(ipam, "match_master_subnet"))) {
		json_array_append_new(
			unknown,
			json_fmt("NIC %s: network %s wants pools of its PF's own subnet, which "
				 "only the node knows",
				 nic, key));
	} else if (ipam) {
		json_t *ask = json_object();

		json_put_str(ask, "nic", nic);
		json_put_str(ask, "network", key);
		json_put(ask, "ipv4", json_incref((json_t *)json_at(ipam, "default_ipv4_ippool")));
		json_put(ask, "ipv6", json_incref((json_t *)json_at(ipam, "default_ipv6_ippool")));
		json_put_bool(ask, "cleanGateway", json_is_true(json_at(ipam, "clean_gateway")));
		json_array_append_new(asks, ask);
	}
	return 0;
}

/* The node refuses such a pod before it calls the first plugin. */
static int check_interfaces(const json_t *networks, struct err *err)
{
	json_auto_t *seen = json_pack("{s:s}", "eth0", "of the cluster");

	for (size_t i = 1; i < json_array_size(networks); i++) {
		const json_t *network = json_array_get(networks, i);
		const char *nic = json_str_at(network, "interface");
		const char *other = json_str_at(seen, nic);
		auto_free char *key = network_key(network);

		if (other)
			return err_set(err, ERR_INVALID, "InterfaceTwice",
				       "networks %.128s and %.128s want the same interface %s: "
				       "name another one in annotation " NETWORKS_ANNOTATION,
				       other, key, nic);
		json_put_str(seen, nic, key);
	}
	return 0;
}

json_t *foresee(const json_t *world, const json_t *pod, const struct ipam_settings *settings,
		json_t **ret_unknown, struct err *err)
{
	json_auto_t *asks = json_array(), *unknown = json_array(), *list = NULL;
	json_t *network;
	size_t i;

	assert(pod && settings && ret_unknown);
	if (limits_check_pod(pod, err) < 0)
		return NULL;
	list = pod_networks(pod, settings, err);
	if (!list || check_interfaces(list, err) < 0)
		return NULL;
	json_array_foreach (list, i, network)
		if (json_is_object(network) &&
		    look_at(world, network, json_str_at(network, "interface"), asks, unknown, err) <
			    0)
			return NULL;
	*ret_unknown = json_incref(unknown);
	return json_incref(asks);
}

bool foresee_detection(const json_t *world, const json_t *pod, const struct ipam_settings *settings)
{
	json_auto_t *list = pod_networks(pod, settings, NULL);
	json_t *network;
	size_t i;

	assert(pod && settings);
	json_array_foreach (list, i, network) {
		auto_free char *key = NULL;
		const json_t *nad = json_is_object(network) ? nad_of(world, network, &key) : NULL;
		json_auto_t *said = nad ? definition_of(nad) : NULL;

		if (json_at(said, "detects"))
			return true;
	}
	return false;
}
