// SPDX-License-Identifier: Apache-2.0
/*
 * The meta plugin's own function decides (nodeagent/cni/plan/delegates.h), on what the cluster
 * says. What only the node knows (the cluster's network, configurations in its folder) stands there
 * by its name.
 */
#include "cli/explain/attaching.h"

#include "cli/explain/chain.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/delegates.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/reconcile.h"

/* In place of what the node has: a name of a network, and of a plugin. */
#define ON_THE_NODE "on-the-node"

int64_t pod_requests(const json_t *pod, const char *resource)
{
	int64_t total = 0;
	json_t *container;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container) {
		const char *limit = json_str_at(container, "resources", "limits", resource);
		int64_t count;

		if (!limit)
			limit = json_str_at(container, "resources", "requests", resource);
		if (str_to_int(limit, 0, INT32_MAX, &count))
			total += count;
	}
	return total;
}

static json_t *on_the_node(const char *name)
{
	return json_pack("{s:s, s:s, s:s}", "cniVersion", "0.4.0", "name", name, "type",
			 ON_THE_NODE);
}

/* The configuration as the node's would be; lists of the settings are text with commas. */
static json_t *config_of(const json_t *networks, const struct ipam_settings *settings,
			 size_t defaults)
{
	json_t *config = json_pack("{s:s, s:[o]}", "cniVersion", "0.4.0", "delegates",
				   on_the_node(ON_THE_NODE));
	const json_t *first = json_array_get(networks, 0);
	json_t *names = json_array();

	json_put_str(config, "multusNamespace",
		     json_is_object(first) ? json_str_at(first, "namespace") : settings->multus_ns);
	for (size_t i = 1; i <= defaults; i++)
		json_array_append(names, json_at(json_array_get(networks, i), "name"));
	json_put(config, "defaultNetworks", names);
	/* Those of a system namespace are left out of the networks already. */
	json_put(config, "systemNamespaces", json_array());
	return config;
}

/* Devices as the kubelet would give them: names count here, not which ones. */
static json_t *devices_of(const json_t *pod, const json_t *nads)
{
	json_t *devices = json_array(), *nad;
	const char *key;

	json_each (nads, key, nad) {
		const char *resource =
			json_str_at(nad, "metadata", "annotations", META_RESOURCE_ANNOTATION);
		int64_t n = str_empty(resource) ? 0 : pod_requests(pod, resource);
		const json_t *first = json_array_get(json_at(pod, "spec", "containers"), 0);
		json_t *ids = json_array();

		for (int64_t i = 0; i < n && i <= LIMIT_NETWORKS; i++)
			json_array_append_new(ids, json_fmt("%s-%lld", resource, (long long)i));
		if (json_array_size(ids))
			json_array_append_new(devices, json_pack("{s:O?, s:s, s:O}", "container",
								 json_object_get(first, "name"),
								 "resource", resource, "ids", ids));
		json_decref(ids);
	}
	return devices;
}

/* Put what the node knows in the place of what the cluster does not say. */
static void add_unknown(const char *name, const json_t *nad, json_t *files)
{
	if (str_empty(json_str_at(nad, "spec", "config")) && !json_find(files, "name", name))
		json_array_append_new(files, on_the_node(name));
}

void chain_add_attaching(json_t *chain, const json_t *world, const json_t *pod,
			 const json_t *networks, const json_t *served,
			 const struct ipam_settings *settings)
{
	const char *text =
		json_str_or(json_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION), "");
	json_auto_t *asked = networks_parse(text, json_namespace(pod), NULL);
	size_t defaults = json_array_size(networks) - 1 - json_array_size(asked), i;
	json_auto_t *config = config_of(networks, settings, defaults), *delegates = NULL;
	json_auto_t *nads = json_object(), *files = json_array(), *devices = NULL;
	struct meta_input in = {.container_id = "explained",
				.ifname = "eth0",
				.args = "",
				.config = config,
				.pod = pod,
				.nads = nads,
				.served = served,
				.files = files};
	struct err err = {0};
	json_t *network;

	json_array_foreach (networks, i, network) {
		auto_free char *key = json_is_object(network) ? network_key(network) : NULL;
		const json_t *nad = key ? world_get(world, KIND_NAD, key) : NULL;

		if (nad)
			json_object_set(nads, key, (json_t *)nad);
		if (key)
			add_unknown(json_str_at(network, "name"), nad, files);
	}
	in.devices = devices = devices_of(pod, nads);
	delegates = meta_delegates(&in, &err);
	if (!delegates)
		chain_add(chain, str_eq(err.reason, "TooFewDevices") ? "devices" : "networks",
			  LINK_BROKEN, err.reason, "%s", err.text);
}
