// SPDX-License-Identifier: Apache-2.0
/*
 * SR-IOV pools from the upstream plugin's own configuration: resources in order, selectors in
 * order, and a function goes to the first that selects it (sriov-network-device-plugin,
 * pkg/resources).
 */
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"
#include "nodeagent/devices/pools_list.h"

static const char SOURCE[] = POOLS_SOURCE_LIST;

/* An absent or empty list is not a restriction. */
static bool is_listed(const json_t *list, const char *value)
{
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)list, i, item)
		if (value && strcasecmp(json_str_or(item, ""), value) == 0)
			return true;
	return json_array_size(list) == 0;
}

/*
 * "ens1#0,4-7" against the PF's name or address and the VF's number. Only the first item with this
 * PF counts, as upstream has it: changing that would give devices to other resources.
 */
static bool is_child(const json_t *list, const char *parent, int64_t number)
{
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)list, i, item) {
		const char *text = json_str_or(item, "");
		size_t len = pools_list_name_len(text);
		bool hit = false;

		if (!parent || strncasecmp(text, parent, len) != 0 || parent[len] != '\0')
			continue;
		return pools_list_indexes(text + len, number, &hit) == 0 && hit;
	}
	return json_array_size(list) == 0;
}

/* misses: NULL, or where to add each selector that does not match, with both values. */
static bool selects(const struct pools *pools, const struct pool *pool, const json_t *selector,
		    const struct pools_function *function, struct strbuf *misses)
{
	const json_t *seen = function->seen, *pf = function->pf;
	const char *type = json_str_at(pf ? pf : seen, "linkType");
	const struct {
		const char *key, *words, *value;
		bool is_of_pf;
	} rows[] = {
		{"vendors", "vendor", json_str_at(seen, "vendor"), false},
		{"devices", "device", json_str_at(seen, "deviceID"), false},
		{"drivers", "driver", json_str_at(seen, "driver"), false},
		{"pciAddresses", "PCI address", function->address, false},
		{"pfNames", "PF", json_str_at(pf, "name"), true},
		{"rootDevices", "PF at", json_str_at(pf, "pciAddress"), true},
		{"linkTypes", "link type",
		 str_eq(type, "ETH")  ? "ether"
		 : str_eq(type, "IB") ? "infiniband"
				      : NULL,
		 false},
	};
	bool all = true;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const json_t *list = json_at(selector, rows[i].key);

		if (rows[i].is_of_pf ? is_child(list, rows[i].value, function->number)
				     : is_listed(list, rows[i].value))
			continue;
		all = false;
		if (!misses)
			return false;
		pools_add_miss(misses, rows[i].words, rows[i].value, list);
	}
	if (!json_is_true(json_at(selector, "isRdma")) || pools_has_rdma(pools, pool, function))
		return all;
	if (misses)
		strbuf_addf(misses, "%sno RDMA device, isRdma is true", misses->len ? "; " : "");
	return false;
}

static void offer_function(struct pools *pools, struct pool *pool,
			   const struct pools_function *function, const struct pools_wants *wants)
{
	const struct pool *other = map_get(&pools->claimed, function->address);
	const char *protected = pools_protected(pools, function);

	if (other == pool)
		return;
	if (other) {
		pool_cause(pool, "%s: it is offered as %s already", function->address,
			   json_str_at(other->resource, "name"));
		return;
	}
	if (protected) {
		pools_problem(pools, json_str_at(pool->resource, "name"), "ProtectedNic",
			      "%s: %s (%s) is selected, but not offered: it %s", SOURCE,
			      function->address,
			      json_str_or(json_at(function->seen, "name"), "no interface"),
			      protected);
		return;
	}
	pool->wanted++;
	pools_add_function(pools, pool, function, wants);
}

/* Returns how many functions the selector matches, those that cannot be offered included. */
static size_t add_selector(struct pools *pools, struct pool *pool, const json_t *entry,
			   const json_t *selector)
{
	struct pools_wants wants = {
		.rdma = json_is_true(json_at(selector, "isRdma")),
		.vhost_net = json_is_true(json_at(selector, "needVhostNet")),
		.exclude_topology = json_is_true(json_at(entry, "excludeTopology")),
		.extra = json_at(entry, "additionalInfo"),
	};
	size_t matches = 0;

	for (size_t i = 0; i < pools->n_functions; i++) {
		const json_t *seen = pools->functions[i].seen;

		/* A PF that has VFs is not offered itself; without a driver it is nothing yet. */
		if (json_at(seen, "driver") && json_integer_value(json_at(seen, "numVfs")) == 0 &&
		    selects(pools, pool, selector, &pools->functions[i], NULL)) {
			offer_function(pools, pool, &pools->functions[i], &wants);
			matches++;
		}
	}
	return matches;
}

/* Each NIC and its first VF (others differ in little), with all selectors that do not match. */
static void explain_misses(struct pools *pools, struct pool *pool, const json_t *entry)
{
	pool_cause(pool, "no free device of this node matches the selectors");
	for (size_t i = 0; i < pools->n_functions; i++) {
		const struct pools_function *f = &pools->functions[i];
		auto_strbuf struct strbuf misses = {0};
		json_t *selector;
		size_t k;

		if (f->pf && i > 0 && f[-1].pf == f->pf)
			continue;
		json_array_foreach (json_at(entry, "selectors"), k, selector) {
			auto_strbuf struct strbuf one = {0};

			if (!selects(pools, pool, selector, f, &one))
				strbuf_addf(&misses, "%s%s", misses.len ? "; or " : "",
					    strbuf_str(&one));
		}
		if (!json_at(f->seen, "driver"))
			strbuf_addf(&misses, "%sno driver", misses.len ? "; " : "");
		if (json_integer_value(json_at(f->seen, "numVfs")))
			strbuf_addf(&misses, "%sa PF with VFs is not offered itself",
				    misses.len ? "; " : "");
		if (misses.len)
			pool_cause(pool, "%s: %s", f->address, strbuf_str(&misses));
	}
}

static void add_entry(struct pools *pools, const json_t *entry)
{
	const char *prefix = json_str_at(entry, "resourcePrefix");
	const char *name = json_str_or(json_at(entry, "resourceName"), "");
	struct pool *pool = pools_need(pools, str_empty(prefix) ? pools->input->prefix : prefix,
				       name, "sriov", SOURCE, false);
	json_t *selector;
	size_t i, matches = 0;

	if (!pool)
		return;
	pool_add_env(pool);
	json_array_foreach (json_at(entry, "selectors"), i, selector)
		matches += add_selector(pools, pool, entry, selector);
	if (matches > 0 && pool->wanted == 0)
		pool_cause(pool, "no device that the selectors match can be offered");
	if (matches > 0)
		return;
	explain_misses(pools, pool, entry);
	pools_nothing_selected(pools, pool, POOLS_SOURCE_LIST);
}

void pools_from_list(struct pools *pools)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(pools->input->resource_list, "resourceList"), i, entry)
		add_entry(pools, entry);
}
