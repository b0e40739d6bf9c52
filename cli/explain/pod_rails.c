// SPDX-License-Identifier: Apache-2.0
/*
 * Rails are those of the pod's interfaces, whichever way it got them: by the choice of a VF, or by
 * networks of one rail each.
 */
#include "cli/explain/pod_rails.h"

#include <stdint.h>

#include "cli/explain/chain.h"
#include "cli/explain/pod_rdma.h"
#include "lib/base/own.h"
#include "lib/base/rail_list.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/rails.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

static uint32_t rails_of(const json_t *world, const json_t *pod)
{
	json_auto_t *rows = explain_pod_interfaces(world, pod);
	const json_t *row;
	uint32_t rails = 0;
	size_t i;

	json_array_foreach (rows, i, row)
		rails |= rails_bit(row);
	return rails;
}

/* The first pod of the same label that has other rails; *ret_same: how many have these. */
static const json_t *find_other(const json_t *world, const json_t *pod, const char *label,
				uint32_t mine, uint32_t *ret_rails, size_t *ret_same)
{
	const char *key;
	json_t *other;

	json_each (world_kind(world, KIND_POD), key, other) {
		if (!str_eq(json_str_at(other, "metadata", "labels", RAILS_LABEL), label) ||
		    !str_eq(json_namespace(other), json_namespace(pod)) ||
		    str_eq(json_name(other), json_name(pod)))
			continue;
		*ret_rails = rails_of(world, other);
		if (*ret_rails && *ret_rails != mine)
			return other;
		*ret_same += *ret_rails != 0;
	}
	return NULL;
}

void explain_pod_rails(json_t *chain, const json_t *world, const json_t *pod)
{
	const char *label = json_str_at(pod, "metadata", "labels", RAILS_LABEL);
	uint32_t mine = label ? rails_of(world, pod) : 0, theirs = 0;
	uint32_t named = rail_list_is(label) ? rail_list_parse(label) : UINT32_MAX;
	auto_free char *text = rail_list_text(mine), *other_text = NULL;
	const json_t *other;
	size_t same = 0;

	if (!label)
		return;
	if (!mine) {
		chain_add(chain, "rails", LINK_WAITS, NULL,
			  "label %.64s: no rail of this pod is known yet", label);
		return;
	}
	if (mine & ~named) {
		chain_add(chain, "rails", LINK_BROKEN, "OtherRails",
			  "has rails %s, and the label names %.64s: see its events; to try again, "
			  "delete the pod",
			  text, label);
		return;
	}
	other = find_other(world, pod, label, mine, &theirs, &same);
	if (!other) {
		chain_add(chain, "rails", LINK_HOLDS, NULL,
			  "has rails %s, as the %zu other pods with the label %.64s", text, same,
			  label);
		return;
	}
	other_text = rail_list_text(theirs);
	chain_add(chain, "rails", LINK_BROKEN, "OtherRails",
		  "has rails %s, and pod %s on %s with the same label %.64s has %s: see the events "
		  "of both; to try again, delete one",
		  text, json_name(other), json_str_or(json_at(other, "spec", "nodeName"), "?"),
		  label, other_text);
}
