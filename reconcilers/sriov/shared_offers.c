// SPDX-License-Identifier: Apache-2.0
/*
 * A list of resources is narrowed node by node to what all of them lack; the first one that has
 * reported nothing ends the search. The operator gathers the few NodeStates that this needs.
 */
#include "reconcilers/sriov/shared_offers.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/sriov/node_state.h"

enum {
	NAMES_TOLD = 8, /* of resources, in a message */
};

static bool is_shared(const json_t *resource)
{
	return str_eq(json_str_at(resource, "kind"), "shared");
}

bool shared_offers_selects_nothing(const json_t *resource)
{
	return is_shared(resource) && json_integer_value(json_at(resource, "wanted")) > 0 &&
	       json_integer_value(json_at(resource, "offered")) == 0;
}

json_t *shared_offers_of(const json_t *state)
{
	const json_t *status = json_at(state, "status");
	const json_t *ready = condition_find(json_at(status, "conditions"), "Ready"), *resource;
	json_t *offers;
	size_t i;

	if (!state || node_state_is_kept(state))
		return NULL;
	/* It may be the one that has it: a boot takes longer than an agent may be away. */
	if (str_eq(json_str_at(ready, "reason"), "NoAgent"))
		return json_null();
	/* One of ours knows its resources soon; upstream's never says any, and may have it. */
	if (str_empty(json_str_at(status, "syncStatus")) || !json_at(status, "resources"))
		return json_null();
	offers = json_object();
	json_array_foreach (json_at(status, "resources"), i, resource) {
		/* Claims may have it. */
		bool has = json_integer_value(json_at(resource, "offered")) > 0;

		if (is_shared(resource) && (has || shared_offers_selects_nothing(resource) ||
					    node_state_resource_is_withheld(state, resource)))
			json_put_bool(offers, json_str_or(json_at(resource, "name"), ""), has);
	}
	return offers;
}

/* {resource: true when some node has something for it}; NULL: not all have reported. New. */
static json_t *all_offers(const json_t *world)
{
	json_t *all = json_object(), *state, *selects;
	const char *key, *resource;

	json_each (world_kind(world, KIND_NODE_STATE), key, state) {
		json_auto_t *offers = shared_offers_of(state);

		if (json_is_null(offers)) {
			json_decref(all);
			return NULL;
		}
		json_each (offers, resource, selects)
			if (json_is_true(selects) || !json_object_get(all, resource))
				json_put(all, resource, json_incref(selects));
	}
	return all;
}

/* Why the first node by name has nothing for it; true when that is the node's RDMA mode. */
static bool add_cause(struct strbuf *message, const json_t *world, const char *resource)
{
	const char *key, *first = NULL, *cause = NULL;
	bool is_withheld = false;
	json_t *state;

	json_each (world_kind(world, KIND_NODE_STATE), key, state) {
		json_auto_t *offers = shared_offers_of(state);
		const char *name = json_name(state);
		const json_t *offer;

		if (!json_is_false(json_object_get(offers, resource)) ||
		    (first && strcmp(first, name) <= 0))
			continue;
		first = name;
		offer = json_find(json_at(state, "status", "resources"), "name", resource);
		cause = json_str_at(offer, "cause");
		is_withheld = node_state_resource_is_withheld(state, offer);
	}
	strbuf_addf(message, " (node %.63s: %.400s)", first ? first : "?",
		    cause ? cause : "no cause is said");
	return is_withheld;
}

int shared_offers_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err)
{
	json_auto_t *offers = NULL;
	auto_strbuf struct strbuf message = {0};
	const char *resource;
	bool is_withheld = false;
	json_t *selects;
	size_t n = 0;

	if (!world_get(world, LEFTOVER_SHARED_CONFIG, key)) {
		plan_finding(plan, LEFTOVER_SHARED_CONFIG, key, NULL, NULL);
		return 0;
	}
	offers = all_offers(world);
	if (!offers)
		return 0;
	json_each (offers, resource, selects) {
		if (json_is_true(selects))
			continue;
		if (n < NAMES_TOLD)
			strbuf_addf(&message, "%s%.128s", n ? ", " : "no node offers ", resource);
		if (n == 0)
			is_withheld = add_cause(&message, world, resource);
		n++;
	}
	if (n > NAMES_TOLD)
		strbuf_addf(&message, " and %zu more", n - NAMES_TOLD);
	strbuf_addf(&message, ": %s, or remove the entry",
		    is_withheld ? "set rdmaMode: shared for nodes that are to offer it"
				: "correct the selectors");
	plan_finding(plan, LEFTOVER_SHARED_CONFIG, key, n ? "OfferedNowhere" : NULL,
		     n ? strbuf_str(&message) : NULL);
	return 0;
}
