// SPDX-License-Identifier: Apache-2.0
/*
 * The pool decides, else the policies do, one after the other; node_state.c writes the result into
 * the NodeState.
 */
#include "reconcilers/sriov/node_rails.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/sriov/pool_config.h"

/* ---- the pool -------------------------------------------------------------------------------- */

/* ---- policies -------------------------------------------------------------------------------- */

/* Runs of digits compare as numbers. */
static int compare_naturally(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			size_t na, nb;
			int order;

			a += strspn(a, "0");
			b += strspn(b, "0");
			na = strspn(a, "0123456789");
			nb = strspn(b, "0123456789");
			order = na == nb ? strncmp(a, b, na) : na < nb ? -1 : 1;
			if (order)
				return order;
			a += na;
			b += nb;
			continue;
		}
		if (*a != *b)
			break;
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

/* For qsort: names that differ in leading zeros only follow their text. */
static int compare_policies(const void *a, const void *b)
{
	const struct sriov_policy *p = &(*(const struct share *const *)a)->policy,
				  *q = &(*(const struct share *const *)b)->policy;
	int order = p->priority - q->priority;

	if (!order)
		order = compare_naturally(p->name, q->name);
	return order ? order : strcmp(p->key, q->key);
}

static bool is_there(const struct decision *d, const char *name)
{
	for (size_t i = 0; i < d->pfs_len; i++)
		if (str_eq(json_str_at(d->pfs[i].seen, "name"), name) ||
		    json_list_has(json_at(d->pfs[i].seen, "altNames"), name))
			return true;
	return false;
}

/* A NIC that had a place, in the order or as the agent counted. */
static bool was_there(const struct decision *d, const char *name)
{
	return json_list_has(json_at(d->spec, "rails", "order"), name) ||
	       json_find(json_at(d->state, "status", "rails", "list"), "name", name);
}

/*
 * True when the policy adds one. NICs that are there count only for a policy that picks one; NICs
 * that have vanished keep their place, also when the policy picks nothing without them.
 */
static bool add_names(const struct decision *d, const struct share *share, json_t *order)
{
	const struct sriov_policy *policy = &share->policy;
	size_t before = json_array_size(order), i;
	const json_t *text;

	json_array_foreach ((json_t *)policy->pf_names, i, text) {
		struct pf_name parsed;
		auto_free char *name = NULL;

		if (pf_name_parse(json_str_or(text, ""), &parsed, NULL) < 0)
			continue;
		name = str_ndup(parsed.name, parsed.name_len);
		if (parsed.name_len <= POOL_RAIL_NAME_MAX &&
		    (is_there(d, name) ? share->picks : was_there(d, name)) &&
		    !json_list_has(order, name) && json_array_size(order) < POOL_RAILS_MAX)
			json_array_append_new(order, json_string(name));
	}
	return json_array_size(order) > before;
}

static json_t *rails_of_policies(const struct decision *d)
{
	auto_free const struct share **sorted = mem_calloc(d->shares_len + 1, sizeof(*sorted));
	json_auto_t *order = json_array();
	const struct share *first = NULL;
	size_t n = 0, more = 0;
	json_t *ret;

	for (size_t i = 0; i < d->shares_len; i++)
		if (d->shares[i].policy.is_rdma)
			sorted[n++] = &d->shares[i];
	qsort(sorted, n, sizeof(*sorted), compare_policies);
	for (size_t i = 0; i < n; i++) {
		if (!add_names(d, sorted[i], order))
			continue;
		if (first)
			more++;
		else
			first = sorted[i];
	}
	/* One NIC is not an order. */
	if (json_array_size(order) < 2)
		return NULL;
	ret = json_object();
	if (more)
		json_put(ret, "from",
			 json_fmt("SriovNetworkNodePolicy %s and %zu more", first->policy.key,
				  more));
	else
		json_put(ret, "from", json_fmt("SriovNetworkNodePolicy %s", first->policy.key));
	json_object_set(ret, "order", order);
	return ret;
}

json_t *node_rails(const struct decision *d, const json_t *world, const json_t *labels)
{
	const json_t *current = json_at(d->spec, "rails"), *pool, *list;

	if (!pool_config_rails(world, labels, &pool, &list))
		return json_is_object(current) ? json_incref((json_t *)current) : NULL;
	if (list) {
		auto_free char *key = json_key(pool);
		json_t *ret = json_object();

		json_put(ret, "from", json_fmt("SriovNetworkPoolConfig %s", key));
		json_put_bool(ret, "exact", true);
		json_object_set(ret, "order", (json_t *)list);
		return ret;
	}
	if (d->pfs_len == 0 && d->shares_len > 0)
		return json_is_object(current) ? json_incref((json_t *)current) : NULL;
	return rails_of_policies(d);
}
