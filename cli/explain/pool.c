// SPDX-License-Identifier: Apache-2.0
/* The chain of a pool: of addresses, or of nodes. */
#include <string.h>

#include "cli/explain/chain.h"
#include "cli/explain/explain.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/ipam/ledger.h"
#include "reconcilers/sriov/pool_config.h"

/* ---- SpiderIPPool ---------------------------------------------------------------------------- */

/* Networks whose configuration names the pool. */
static void add_networks(json_t *chain, const json_t *world, const char *name)
{
	auto_free char *quoted = str_printf("\"%s\"", name);
	auto_strbuf struct strbuf text = {0};
	size_t more = 0;
	const char *key;
	json_t *nad;

	json_each (world_kind(world, KIND_NAD), key, nad) {
		if (!strstr(json_str_or(json_at(nad, "spec", "config"), ""), quoted))
			continue;
		if (text.len < 200)
			strbuf_addf(&text, "%s%s", text.len > 0 ? ", " : "", key);
		else
			more++;
	}
	if (more > 0)
		strbuf_addf(&text, " and %zu more", more);
	if (text.len > 0)
		chain_add(chain, "networks", LINK_HOLDS, NULL, "named by %s", strbuf_str(&text));
	else
		chain_add(
			chain, "networks", LINK_UNKNOWN, NULL,
			"no network names it, so it serves pods and namespaces that name it in an "
			"annotation%s",
			"");
}

static void add_ledger(json_t *chain, const json_t *world, const json_t *pool)
{
	auto_ledger struct ledger ledger = {0};
	struct err err = {0};
	long long usable, free_now, used;

	if (ledger_open(pool, world_kind(world, KIND_RESERVED_IP), world_env(world, "now"), &ledger,
			&err) < 0) {
		chain_add(chain, "ledger", LINK_BROKEN, err.reason, "%s", err.text);
		return;
	}
	usable = ip_set_count(&ledger.addresses.usable);
	free_now = ip_set_count(&ledger.free);
	used = (long long)json_object_size(ledger.records);
	if (usable == 0)
		chain_add(chain, "addresses", LINK_BROKEN, "NoAddresses",
			  "spec.ips without spec.excludeIPs leaves none: add some");
	else if (free_now == 0 && json_array_size(ledger.conflicts.entries))
		chain_add(chain, "addresses", LINK_BROKEN, "PoolExhausted",
			  "%lld addresses, %lld in use, %zu of others on the network "
			  "(status.conflictIPs), none free: add some to spec.ips, or stop who has "
			  "them",
			  usable, used, json_array_size(ledger.conflicts.entries));
	else if (free_now == 0)
		chain_add(
			chain, "addresses", LINK_BROKEN, used > 0 ? "PoolExhausted" : "AllReserved",
			used > 0 ? "%lld addresses, %lld in use, none free: add some to spec.ips, "
				   "or see ipam check"
				 : "%lld addresses, %lld in use, all kept back by "
				   "SpiderReservedIPs: change one of them",
			usable, used);
	else
		chain_add(chain, "addresses", LINK_HOLDS, NULL,
			  "%lld addresses, %lld in use, %lld free", usable, used, free_now);
}

static json_t *explain_ip_pool(const json_t *world, const json_t *pool)
{
	json_t *chain = chain_new("pool", json_name(pool));
	const json_t *ready = json_find(json_at(pool, "status", "conditions"), "type", "Ready");

	if (json_at(pool, "metadata", "deletionTimestamp"))
		chain_add(chain, "pool", LINK_BROKEN, "Terminating",
			  "is being deleted; it goes when the addresses in use are released");
	else if (json_is_true(json_at(pool, "spec", "disable")))
		chain_add(chain, "pool", LINK_BROKEN, "Disabled",
			  "spec.disable is set: no pod gets an address from here");
	else if (!ready)
		chain_add(chain, "pool", LINK_UNKNOWN, NULL,
			  "the operator has said nothing about it: look whether the operator runs");
	else
		chain_add_condition(chain, "pool", pool, "Ready");
	add_ledger(chain, world, pool);
	/* Whom the pool serves: each field that narrows it. */
	static const char *const fields[] = {
		"nodeName",          "nodeAffinity", "namespaceName",
		"namespaceAffinity", "podAffinity",  "multusName",
	};
	auto_strbuf struct strbuf text = {0};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *value = json_at(json_at(pool, "spec"), fields[i]);
		auto_free char *shown = value ? json_text(value) : NULL;

		if (value && (json_array_size(value) > 0 || json_object_size(value) > 0))
			strbuf_addf(&text, "%s%s %s", text.len > 0 ? "; " : "", fields[i], shown);
	}
	chain_add(chain, "serves", LINK_HOLDS, NULL, "%s",
		  text.len > 0 ? strbuf_str(&text) : "all pods whose network names it");
	add_networks(chain, world, json_name(pool));
	return chain;
}

/* ---- SriovNetworkPoolConfig ------------------------------------------------------------------ */

static void add_member(json_t *chain, const json_t *world, const json_t *pool, const char *node)
{
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), node);
	const json_t *state = world_get(world, KIND_NODE_STATE, key);
	const char *wanted = json_str_at(pool, "spec", "rdmaMode");
	const char *mode = json_str_at(state, "status", "system", "rdmaMode");
	const json_t *reboot =
		json_find(json_at(state, "status", "conditions"), "type", "RebootRequired");

	if (!state)
		chain_add(chain, "node", LINK_UNKNOWN, NULL,
			  "%s: no policy selects it, so it has no NodeState", node);
	else if (!str_empty(wanted) && str_eq(json_str_at(reboot, "status"), "True"))
		chain_add(chain, "node", LINK_WAITS, json_str_at(reboot, "reason"), "%s: %s", node,
			  json_str_or(json_at(reboot, "message"), ""));
	else if (!str_empty(wanted) && mode && !str_eq(wanted, mode))
		chain_add(chain, "node", LINK_BROKEN, NULL, "%s: RDMA mode is %s, wanted %s", node,
			  mode, wanted);
	else
		chain_add(chain, "node", LINK_HOLDS, NULL, "%s: RDMA mode %s", node,
			  mode ? mode : "not reported");
}

static json_t *explain_node_pool(const json_t *world, const char *key, const json_t *pool)
{
	json_t *chain = chain_new("pool", key), *node;
	auto_problems struct problems problems = {0};
	const char *name;
	size_t members = 0;

	trust_check(world, pool, &problems);
	pool_config_check(pool, &problems);
	if (problems.total > 0) {
		auto_free char *text = problems_text(&problems);

		chain_add(chain, "pool", LINK_BROKEN, problems_reason(&problems), "%s", text);
	} else {
		chain_add(chain, "pool", LINK_HOLDS, NULL, "can be read, and counts");
	}
	json_each (world_kind(world, KIND_NODE), name, node) {
		if (!pool_config_selects(pool, json_at(node, "metadata", "labels")))
			continue;
		members++;
		add_member(chain, world, pool, name);
	}
	if (members == 0)
		chain_add(chain, "node", LINK_BROKEN, "NoNode",
			  "spec.nodeSelector selects no node: correct it, or label one");
	chain_add_condition(chain, "status", pool, "Ready");
	return chain;
}

json_t *explain_pool_chain(const json_t *world, const char *name, struct err *err)
{
	const json_t *pool = world_get(world, KIND_IP_POOL, name);
	const json_t *nodes = world_get(world, KIND_POOL_CONFIG, name);

	if (pool)
		return explain_ip_pool(world, pool);
	if (nodes)
		return explain_node_pool(world, name, nodes);
	(void)err_set(err, ERR_INVALID, "PoolNotFound",
		      "there is no SpiderIPPool %.128s, and no SriovNetworkPoolConfig of that "
		      "NAMESPACE/NAME",
		      name);
	return NULL;
}
