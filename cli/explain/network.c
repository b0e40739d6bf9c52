// SPDX-License-Identifier: Apache-2.0
/*
 * The chain of a network: who makes it, the NetworkAttachmentDefinition, its plugins, its resource,
 * its pools, who uses it.
 */
#include <string.h>

#include "cli/explain/chain.h"
#include "cli/explain/explain.h"
#include "cli/explain/network.h"
#include "cli/explain/resource.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/spider/multus_config_check.h"
#include "reconcilers/spider/multus_config_names.h"
#include "reconcilers/sriov/sriov_network.h"

/* ---- parts that several chains have ---------------------------------------------------------- */

void chain_add_definition(json_t *chain, const json_t *nad, const char *key)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	auto_strbuf struct strbuf types = {0};
	json_auto_t *config = NULL;
	struct err err = {0};
	json_t *plugin;
	size_t i;

	if (!nad) {
		chain_add(chain, "definition", LINK_BROKEN, "NoNetworkFound",
			  "there is no NetworkAttachmentDefinition %s", key);
		return;
	}
	config = *text ? json_parse(text, strlen(text), &err) : json_object();
	if (!config) {
		chain_add(chain, "definition", LINK_BROKEN, "BadNetworkConfig",
			  "NetworkAttachmentDefinition %s: spec.config: %s", key, err.text);
		return;
	}
	json_array_foreach (json_at(config, "plugins"), i, plugin)
		strbuf_addf(&types, "%s%s", i > 0 ? ", " : "",
			    json_str_or(json_at(plugin, "type"), "?"));
	if (types.len == 0)
		strbuf_adds(&types, json_str_or(json_at(config, "type"),
						*text ? "?" : "a file on the node"));
	if (str_eq(strbuf_str(&types), "?"))
		chain_add(chain, "definition", LINK_BROKEN, "BadNetworkConfig",
			  "NetworkAttachmentDefinition %s: spec.config has neither `type` nor "
			  "`plugins`",
			  key);
	else
		chain_add(chain, "definition", LINK_HOLDS, NULL,
			  "NetworkAttachmentDefinition %s is there: %s", key, strbuf_str(&types));
}

void chain_add_resource(json_t *chain, const json_t *world, const char *resource)
{
	json_auto_t *rows = NULL;
	int64_t total = 0, nodes = 0;
	const json_t *first = NULL, *withheld = NULL;
	json_t *row;
	size_t i;

	if (str_empty(resource))
		return;
	rows = resource_rows(world, resource);
	json_array_foreach (rows, i, row) {
		int64_t there = json_integer_value(json_at(row, "allocatable"));

		total += there;
		nodes += there > 0;
		if (!first && json_at(row, "broken") && !json_at(row, "excluded"))
			first = row;
		if (!withheld && str_eq(json_str_at(row, "reason"), "RdmaModeExclusive"))
			withheld = row;
	}
	if (!first)
		first = withheld;
	if (nodes > 0)
		chain_add(chain, "resource", LINK_HOLDS, NULL, "%s: %lld on %lld nodes", resource,
			  (long long)total, (long long)nodes);
	else if (first)
		chain_add(chain, "resource", LINK_BROKEN, json_str_at(first, "reason"),
			  "no node offers %s: node %s: %s: %s", resource,
			  json_str_at(first, "node"), json_str_at(first, "link"),
			  json_str_at(first, "broken"));
	else if (json_array_size(rows) > 0)
		chain_add(chain, "resource", LINK_BROKEN, "ResourceMissing",
			  "no node offers %s: no policy of it selects a node", resource);
	else
		chain_add(chain, "resource", LINK_BROKEN, "ResourceMissing",
			  "no node offers %s and no SriovNetworkNodePolicy makes it: correct the "
			  "name, or apply a policy",
			  resource);
}

/* Pods whose annotation names the network. */
static void add_users(json_t *chain, const json_t *world, const char *key)
{
	size_t running = 0, waiting = 0, i;
	const char *pod_key;
	json_t *pod, *network;

	json_each (world_kind(world, KIND_POD), pod_key, pod) {
		const char *text = json_str_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION);
		json_auto_t *networks =
			text ? networks_parse(text, json_namespace(pod), NULL) : NULL;

		json_array_foreach (networks, i, network) {
			auto_free char *named = network_key(network);

			if (!str_eq(named, key))
				continue;
			running += str_eq(json_str_at(pod, "status", "phase"), "Running");
			waiting += str_eq(json_str_at(pod, "status", "phase"), "Pending");
		}
	}
	if (running + waiting > 0)
		chain_add(chain, "pods", waiting > 0 ? LINK_WAITS : LINK_HOLDS, NULL,
			  "%zu attachments run, %zu of Pending pods%s", running, waiting,
			  waiting > 0 ? "; see explain pod" : "");
}

static void add_ready(json_t *chain, const json_t *object, const char *link)
{
	const json_t *conditions = json_at(object, "status", "conditions");
	const json_t *degraded = json_find(conditions, "type", "Degraded");
	const json_t *ready = json_find(conditions, "type", "Ready");

	if (!ready) {
		chain_add(chain, link, LINK_BROKEN, NULL,
			  "the operator has said nothing about it: look whether the operator runs");
		return;
	}
	chain_add_condition(chain, link, object, "Ready");
	/* What is not ready mostly is Degraded for the same reason. */
	if (str_eq(json_str_at(degraded, "status"), "True") &&
	    !str_eq(json_str_at(degraded, "message"), json_str_at(ready, "message")))
		chain_add(chain, link, LINK_BROKEN, json_str_at(degraded, "reason"), "%s",
			  json_str_or(json_at(degraded, "message"), ""));
}

/* ---- networks -------------------------------------------------------------------------------- */

static const json_t *find_network(const json_t *world, const char *key, const char **ret_kind)
{
	static const char *const kinds[] = {KIND_SRIOV_NETWORK, KIND_SRIOV_IB_NETWORK,
					    KIND_OVS_NETWORK};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (world_get(world, kinds[i], key)) {
			*ret_kind = kinds[i];
			return world_get(world, kinds[i], key);
		}
	return NULL;
}

/* Say what is wrong with the object as it is written. */
static bool add_problems(json_t *chain, const char *link, const struct problems *problems)
{
	auto_free char *text = NULL;

	if (problems->total == 0)
		return false;
	text = problems_text(problems);
	chain_add(chain, link, LINK_BROKEN, problems_reason(problems), "%s", text);
	return true;
}

/* "spidernet.io/rail" of "rail", as the NetworkAttachmentDefinition has it. */
static char *full_resource(const json_t *world, const json_t *nad, const char *name)
{
	const char *annotated = json_str_at(nad, "metadata", "annotations", NAD_RESOURCE_NAME);

	if (annotated)
		return str_dup(annotated);
	if (str_empty(name) || strchr(name, '/'))
		return str_dup(name);
	return str_printf("%s/%s", world_env(world, "resourcePrefix"), name);
}

json_t *explain_network_chain(const json_t *world, const char *key, struct err *err)
{
	const char *kind = NULL, *ns;
	const json_t *network = find_network(world, key, &kind), *nad;
	auto_free char *nad_key = NULL, *resource = NULL;
	json_t *chain;

	if (!network && !world_get(world, KIND_NAD, key)) {
		(void)err_set(err, ERR_INVALID, "NetworkNotFound",
			      "there is no SriovNetwork, SriovIBNetwork, OVSNetwork or "
			      "NetworkAttachmentDefinition %.128s; name it as NAMESPACE/NAME",
			      key);
		return NULL;
	}
	chain = chain_new("network", key);
	ns = json_str_at(network, "spec", "networkNamespace");
	nad_key = str_empty(ns) ? str_dup(key) : str_printf("%s/%s", ns, json_name(network));
	nad = world_get(world, KIND_NAD, nad_key);
	if (network) {
		auto_problems struct problems problems = {0};

		sriov_network_check(world, kind, network, &problems);
		if (!add_problems(chain, "network", &problems))
			add_ready(chain, network, "network");
	}
	chain_add_definition(chain, nad, nad_key);
	resource = full_resource(world, nad, json_str_at(network, "spec", "resourceName"));
	chain_add_resource(chain, world, resource);
	add_users(chain, world, nad_key);
	return chain;
}

/* ---- configs --------------------------------------------------------------------------------- */

struct pools_of_config {
	json_t *chain;
	const json_t *world;
};

static void add_pool(void *arg, const char *name)
{
	struct pools_of_config *arg_ = arg;
	const json_t *pool = world_get(arg_->world, KIND_IP_POOL, name);
	const json_t *ready = json_find(json_at(pool, "status", "conditions"), "type", "Ready");

	if (!pool)
		chain_add(arg_->chain, "pool", LINK_BROKEN, "PoolMissing",
			  "there is no SpiderIPPool %s: create it, or correct the name", name);
	else if (ready && !str_eq(json_str_at(ready, "status"), "True"))
		chain_add(arg_->chain, "pool", LINK_BROKEN, json_str_at(ready, "reason"),
			  "SpiderIPPool %s: %s", name, json_str_or(json_at(ready, "message"), ""));
	else
		chain_add(arg_->chain, "pool", LINK_HOLDS, NULL, "SpiderIPPool %s is there", name);
}

json_t *explain_config_chain(const json_t *world, const char *key, struct err *err)
{
	const json_t *config = world_get(world, KIND_MULTUS_CONFIG, key);
	auto_problems struct problems problems = {0};
	auto_free char *resource = NULL, *nad_key = NULL;
	const char *renamed;
	json_t *chain;

	if (!config) {
		(void)err_set(err, ERR_INVALID, "ConfigNotFound",
			      "there is no SpiderMultusConfig %.128s; name it as NAMESPACE/NAME",
			      key);
		return NULL;
	}
	chain = chain_new("config", key);
	multus_config_check(world, config, &problems);
	if (!add_problems(chain, "config", &problems))
		add_ready(chain, config, "config");
	renamed = json_str_at(config, "metadata", "annotations", "multus.spidernet.io/cr-name");
	nad_key =
		str_printf("%s/%s", json_namespace(config), renamed ? renamed : json_name(config));
	chain_add_definition(chain, world_get(world, KIND_NAD, nad_key), nad_key);
	resource = multus_config_resource(config);
	chain_add_resource(chain, world, resource);
	multus_config_pools(config, add_pool,
			    &(struct pools_of_config){.chain = chain, .world = world});
	chain_add_condition(chain, "injection", config, "Injected");
	add_users(chain, world, nad_key);
	return chain;
}
