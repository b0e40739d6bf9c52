// SPDX-License-Identifier: Apache-2.0
/*
 * The chain of a pod: its networks, the devices that they need, a node that has them, what the
 * kubelet gave, addresses, what came of it.
 */
#include <string.h>

#include "cli/doctor/links.h"
#include "cli/explain/addresses.h"
#include "cli/explain/attaching.h"
#include "cli/explain/chain.h"
#include "cli/explain/explain.h"
#include "cli/explain/network.h"
#include "cli/explain/pod_rails.h"
#include "cli/explain/pod_rdma.h"
#include "cli/explain/resource.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/pod_networks.h"
#include "reconcilers/sriov/sriov_network.h"

/* ---- networks -------------------------------------------------------------------------------- */

/* The definition behind a network; *ret_key: new. Borrowed, or NULL. */
static const json_t *definition_of(const json_t *world, json_t *network, char **ret_key)
{
	auto_free char *key = network_key(network), *other = pod_network_other_key(network);
	const json_t *nad = world_get(world, KIND_NAD, key);

	if (!nad && other && world_get(world, KIND_NAD, other)) {
		json_put_str(network, "namespace", json_str_at(network, "elsewhere"));
		*ret_key = take_ptr(other);
		return world_get(world, KIND_NAD, *ret_key);
	}
	*ret_key = take_ptr(key);
	return nad;
}

/*
 * Links for networks that cannot be used. What they need, { resource: count }, new; served: those
 * of the resources that nodes have, or should have.
 */
static json_t *add_networks(json_t *chain, const json_t *world, const char *config_ns,
			    const json_t *pod, json_t *served)
{
	json_t *needs = json_object(), *network;
	struct ipam_settings settings = {.ns = config_ns};
	json_auto_t *networks = NULL;
	struct err err = {0};
	size_t i;

	/* What is wrong with the settings says the link about addresses. */
	(void)explain_settings(world, config_ns, &settings, NULL);
	networks = pod_networks(pod, &settings, &err);
	if (!networks) {
		chain_add(chain, "networks", LINK_BROKEN, err.reason, "%s", err.text);
		return needs;
	}
	if (json_array_size(networks) == 1 && json_is_null(json_array_get(networks, 0)))
		chain_add(chain, "networks", LINK_HOLDS, NULL,
			  "asks for none besides the cluster's (annotation " NETWORKS_ANNOTATION
			  ")");
	json_array_foreach (networks, i, network) {
		auto_free char *key = NULL;
		const json_t *nad =
			json_is_object(network) ? definition_of(world, network, &key) : NULL;
		const char *resource =
			json_str_at(nad, "metadata", "annotations", NAD_RESOURCE_NAME);
		json_auto_t *rows = NULL;

		if (key)
			chain_add_definition(chain, nad, key);
		if (str_empty(resource))
			continue;
		/* Does a node of the world have the resource, or should one? */
		rows = resource_rows(world, resource);
		if (json_array_size(rows) && !json_list_has(served, resource))
			json_array_append_new(served, json_string(resource));
		json_put_int(needs, resource, json_integer_value(json_at(needs, resource)) + 1);
	}
	if (!chain_is_broken(chain))
		chain_add_attaching(chain, world, pod, networks, served, &settings);
	return needs;
}

/* What the scheduler looks for: networks that do without ask for nothing. New. */
static json_t *asks_of(const json_t *pod, const json_t *needs)
{
	json_t *asks = json_object(), *needed;
	const char *resource;

	json_each (needs, resource, needed)
		if (pod_requests(pod, resource) > 0)
			json_object_set(asks, resource, needed);
	return asks;
}

static void add_devices(json_t *chain, const json_t *pod, const json_t *needs, const json_t *served)
{
	const char *resource;
	json_t *needed;

	json_each (needs, resource, needed) {
		int64_t count = json_integer_value(needed), has = pod_requests(pod, resource);

		/* The meta plugin has looked whether the networks' plugins do without. */
		if (has < count && str_eq(json_str_at(chain, "reason"), "TooFewDevices"))
			continue;
		if (has == 0 && !json_list_has(served, resource))
			chain_add(chain, "devices", LINK_HOLDS, NULL,
				  "requests no %s, which no node offers: its networks are set up "
				  "without a device",
				  resource);
		else if (has < count)
			chain_add(chain, "devices", LINK_BROKEN, "TooFewDevices",
				  "its networks need %lld %s and its containers request %lld: set "
				  "resources.limits",
				  (long long)count, resource, (long long)has);
		else
			chain_add(chain, "devices", LINK_HOLDS, NULL, "requests %lld %s",
				  (long long)has, resource);
	}
}

/* ---- a node ---------------------------------------------------------------------------------- */

/* What pods of the node have asked for already. */
static int64_t in_use(const json_t *world, const char *node, const char *resource)
{
	int64_t total = 0;
	const char *key;
	json_t *pod;

	json_each (world_kind(world, KIND_POD), key, pod)
		if (str_eq(json_str_at(pod, "spec", "nodeName"), node) && !pod_has_terminated(pod))
			total += pod_requests(pod, resource);
	return total;
}

/* Which nodes could give the pod what it asks of one resource. */
static void add_offer(json_t *chain, const json_t *world, const char *resource, int64_t count)
{
	int64_t nodes = 0, fit = 0, free_most = 0;
	const char *name;
	json_t *node;

	json_each (world_kind(world, KIND_NODE), name, node) {
		int64_t there = resource_allocatable(node, resource), left;

		if (there <= 0)
			continue;
		nodes++;
		left = there - in_use(world, name, resource);
		fit += left >= count;
		free_most = left > free_most ? left : free_most;
	}
	if (nodes == 0)
		chain_add_resource(chain, world, resource);
	else if (fit == 0)
		chain_add(chain, "node", LINK_BROKEN, "TooFewDevices",
			  "none of the %lld nodes with %s has %lld free, the most is %lld: end a "
			  "pod, or raise numVfs",
			  (long long)nodes, resource, (long long)count, (long long)free_most);
	else
		chain_add(chain, "node", LINK_HOLDS, NULL,
			  "%lld of %lld nodes with %s have %lld free", (long long)fit,
			  (long long)nodes, resource, (long long)count);
}

/* ---- on its node ----------------------------------------------------------------------------- */

static void add_given(json_t *chain, const json_t *world, const json_t *pod, const json_t *asks)
{
	const char *node = json_str_or(json_at(pod, "spec", "nodeName"), "");
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), node);
	auto_free char *prefix = str_printf("%s/%s/", json_namespace(pod), json_name(pod));
	const json_t *state = world_get(world, KIND_NODE_STATE, key);
	const char *resource;
	json_t *count, *entry;
	size_t i;

	json_each (asks, resource, count) {
		const json_t *offer = resource_offer(state, resource);
		auto_strbuf struct strbuf given = {0};

		json_array_foreach (json_at(offer, "pods"), i, entry) {
			const char *distance = json_str_at(entry, "gpuDistance");

			if (!str_starts(json_str_or(json_at(entry, "pod"), ""), prefix))
				continue;
			strbuf_addf(&given, "%s%s", given.len > 0 ? ", " : "",
				    json_str_or(json_at(entry, "device"), "?"));
			if (distance)
				strbuf_addf(&given, " (GPU: %s)", distance);
		}
		if (given.len > 0)
			chain_add(chain, "kubelet", LINK_HOLDS, NULL, "gave it %s of %s",
				  strbuf_str(&given), resource);
		else if (offer)
			chain_add(chain, "kubelet", LINK_WAITS, NULL,
				  "the NodeState of %s does not name a %s of this pod yet", node,
				  resource);
	}
}

static void add_addresses(json_t *chain, const json_t *world, const char *config_ns,
			  const char *key)
{
	struct err err = {0};
	json_auto_t *said = explain_addresses(world, config_ns, key, &err);
	auto_strbuf struct strbuf has = {0};
	json_t *nic;
	size_t i;

	if (!said) {
		chain_add(chain, "addresses", LINK_BROKEN, err.reason, "%s", err.text);
		return;
	}
	json_array_foreach (json_at(said, "nics"), i, nic) {
		static const char *const families[] = {"ipv4", "ipv6"};

		for (size_t f = 0; f < ARRAY_LEN(families); f++)
			if (json_str_at(nic, families[f]))
				strbuf_addf(&has, "%s%s %s", has.len > 0 ? ", " : ": ",
					    json_str_or(json_at(nic, "nic"), "?"),
					    json_str_at(nic, families[f]));
	}
	chain_add(chain, "addresses", json_at(said, "reason") ? LINK_BROKEN : LINK_HOLDS,
		  json_str_at(said, "reason"), "%s%s", json_str_at(said, "verdict"),
		  strbuf_str(&has));
	if (json_at(said, "warning"))
		chain_add(chain, "addresses", LINK_BROKEN, "RouteUnreachable", "%s",
			  json_str_at(said, "warning"));
}

/* What its network-status says, beside what it asked for. */
static void add_attached(json_t *chain, const json_t *pod)
{
	const char *text = json_str_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION);
	const char *told = json_str_at(pod, "metadata", "annotations", NETWORK_STATUS_ANNOTATION);
	json_auto_t *networks = text ? networks_parse(text, json_namespace(pod), NULL) : NULL;
	json_auto_t *status = told ? json_parse(told, strlen(told), NULL) : NULL;
	json_t *network;
	size_t i;

	json_array_foreach (networks, i, network) {
		const char *interface = json_str_or(json_at(network, "interface"), "?");

		if (json_find(status, "interface", interface))
			chain_add(chain, "attached", LINK_HOLDS, NULL, "%s is %s", interface,
				  json_str_or(json_at(network, "name"), "?"));
		else
			chain_add(chain, "attached", LINK_WAITS, NULL,
				  "%s (%s) is not in its network-status: see the pod's events, "
				  "kubectl describe pod",
				  interface, json_str_or(json_at(network, "name"), "?"));
	}
}

/* What its networks lie over on its node, where that is down. */
static void add_links(json_t *chain, const json_t *world, const json_t *pod)
{
	const char *text = json_str_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION);
	const char *node = json_str_or(json_at(pod, "spec", "nodeName"), "");
	auto_free char *place = str_printf("%s/%s", world_env(world, "namespace"), node);
	const json_t *state = world_get(world, KIND_NODE_STATE, place);
	json_auto_t *networks = text ? networks_parse(text, json_namespace(pod), NULL) : NULL;
	json_t *network, *master;
	size_t i, k;

	json_array_foreach (networks, i, network) {
		auto_free char *key = network_key(network);
		json_auto_t *masters = network_masters(world_get(world, KIND_NAD, key));

		json_array_foreach (masters, k, master) {
			const char *why = links_why_down(state, json_string_value(master));

			if (why)
				chain_add(chain, "link", LINK_BROKEN, "RdmaLinkDown",
					  "network %s lies over %s of %s, and %s: check cable and "
					  "switch, or ip link set up",
					  key, json_string_value(master), node, why);
		}
	}
}

json_t *explain_pod_chain(const json_t *world, const char *config_ns, const char *key,
			  struct err *err)
{
	const json_t *pod = world_get(world, KIND_POD, key);
	json_auto_t *needs = NULL, *asks = NULL, *served = json_array();
	json_t *chain;
	json_t *container, *quantity;
	const char *name;
	size_t i;

	if (!pod) {
		(void)err_set(err, ERR_INVALID, "PodNotFound", "there is no pod %.128s", key);
		return NULL;
	}
	chain = chain_new("pod", key);
	needs = add_networks(chain, world, config_ns, pod, served);
	add_devices(chain, pod, needs, served);
	asks = asks_of(pod, needs);
	/* Devices that the pod itself asks for, whatever its networks need. */
	json_array_foreach (json_at(pod, "spec", "containers"), i, container)
		json_each (json_at(container, "resources", "limits"), name, quantity)
			if (strchr(name, '/') && !strstr(name, "kubernetes.io/"))
				json_put_int(asks, name, pod_requests(pod, name));
	if (!json_str_at(pod, "spec", "nodeName")) {
		const json_t *scheduled =
			json_find(json_at(pod, "status", "conditions"), "type", "PodScheduled");
		const char *resource;
		json_t *count;

		/* Not scheduled: by our resources, or by what the scheduler says. */
		json_each (asks, resource, count)
			add_offer(chain, world, resource, json_integer_value(count));
		if (!chain_is_broken(chain))
			chain_add(chain, "scheduler",
				  str_eq(json_str_at(scheduled, "status"), "False") ? LINK_BROKEN
										    : LINK_WAITS,
				  json_str_at(scheduled, "reason"), "%s",
				  json_str_or(json_at(scheduled, "message"),
					      "the scheduler has not looked at it yet"));
		add_addresses(chain, world, config_ns, key);
		return chain;
	}
	chain_add(chain, "node", LINK_HOLDS, NULL, "is on %s",
		  json_str_at(pod, "spec", "nodeName"));
	add_links(chain, world, pod);
	add_given(chain, world, pod, asks);
	add_addresses(chain, world, config_ns, key);
	add_attached(chain, pod);
	explain_pod_rails(chain, world, pod);
	explain_pod_rdma(chain, world, pod);
	return chain;
}
