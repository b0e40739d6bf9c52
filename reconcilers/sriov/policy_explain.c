// SPDX-License-Identifier: Apache-2.0
/*
 * The command line calls this: each node is decided again (node_decision.c), and every PF and field
 * of the decision is written out with the policy that it came from. Reports go through
 * policy_status.c as usual.
 */
#include "reconcilers/sriov/policy_explain.h"

#include <strings.h>

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/sriov/node_decision.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_status.h"

/* ---- fields of a PF -------------------------------------------------------------------------- */

static json_t *text_json(const char *value)
{
	return str_empty(value) ? NULL : json_string(value);
}

static json_t *number_json(int64_t value)
{
	return value ? json_integer(value) : NULL;
}

/* What a policy asks for; NULL when it does not say. */
static json_t *wanted_value(const struct sriov_policy *p, const char *field)
{
	if (str_eq(field, "numVfs"))
		return number_json(p->num_vfs);
	if (str_eq(field, "mtu"))
		return number_json(p->mtu);
	if (str_eq(field, "linkType"))
		return text_json(p->link_type);
	if (str_eq(field, "eSwitchMode"))
		return text_json(p->eswitch_mode);
	return p->says_externally_managed ? json_boolean(p->externally_managed) : NULL;
}

/* As merging compares: "eth" and "ETH" are the same link. */
static bool values_agree(const json_t *a, const json_t *b)
{
	if (json_is_string(a) && json_is_string(b))
		return strcasecmp(json_string_value(a), json_string_value(b)) == 0;
	return json_same(a, b);
}

static json_t *overruled_json(const struct decision *d, const struct pf *pf, const char *field,
			      const json_t *value)
{
	json_t *list = json_array();

	for (size_t i = d->shares_len; i-- > 0;) {
		const struct sriov_policy *p = &d->shares[i].policy;
		struct vf_range range;
		size_t iter = 0;

		if (!sriov_policy_picks(p, pf->seen, NULL) ||
		    !sriov_policy_range(p, pf->seen, &iter, &range))
			continue;
		json_auto_t *wanted = wanted_value(p, field);
		if (wanted && !values_agree(wanted, value))
			json_array_append_new(
				list, json_pack("{s:s, s:O}", "policy", p->key, "value", wanted));
	}
	return list;
}

static void put_field(json_t *fields, const struct decision *d, const struct pf *pf,
		      const char *field, const struct share *by)
{
	json_auto_t *value = by ? wanted_value(&by->policy, field) : NULL;
	json_t *entry, *overruled;

	if (!value)
		return;
	entry = json_pack("{s:O, s:s}", "value", value, "policy", by->policy.key);
	overruled = overruled_json(d, pf, field, value);
	if (json_array_size(overruled) > 0)
		json_object_set(entry, "overruled", overruled);
	json_decref(overruled);
	json_put(fields, field, entry);
}

/* ---- a PF, a node ---------------------------------------------------------------------------- */

static json_t *groups_json(const struct groups *groups)
{
	json_t *list = json_array();

	for (size_t i = 0; i < groups->len; i++) {
		const struct group *group = &groups->items[i];
		json_t *entry = json_object();

		json_put(entry, "vfRange",
			 json_fmt("%d-%d", group->range.first, group->range.last));
		json_put_str(entry, "policy", group->share->policy.key);
		if (group->winner)
			json_put_str(entry, "to", group->winner->policy.key);
		json_array_append_new(list, entry);
	}
	return list;
}

static json_t *pf_json(const struct decision *d, const struct pf *pf,
		       const struct sriov_policy *policy)
{
	json_t *json = json_object();
	auto_strbuf struct strbuf why = {0};
	bool picked = sriov_policy_picks(policy, pf->seen, &why);
	json_t *fields;

	json_put_str(json, "name", json_str_at(pf->seen, "name"));
	json_put_str(json, "pciAddress", json_str_at(pf->seen, "pciAddress"));
	json_put_bool(json, "picked", picked);
	if (!picked)
		json_put_str(json, "why", strbuf_str(&why));
	if (pf->groups.len == 0)
		return json;
	json_put(json, "vfGroups", groups_json(&pf->groups));
	if (pf->lost.len > 0)
		json_put(json, "lost", groups_json(&pf->lost));

	fields = json_object();
	put_field(fields, d, pf, "numVfs", pf->num_vfs.by);
	put_field(fields, d, pf, "mtu", pf->mtu.by);
	put_field(fields, d, pf, "linkType", pf->link_type.by);
	put_field(fields, d, pf, "eSwitchMode", pf->eswitch_mode.by);
	put_field(fields, d, pf, "externallyManaged", pf->external);
	json_put(json, "fields", fields);
	return json;
}

static const struct share *find_share(const struct decision *d, const char *key)
{
	for (size_t i = 0; i < d->shares_len; i++)
		if (str_eq(d->shares[i].policy.key, key))
			return &d->shares[i];
	return NULL;
}

static json_t *not_selected_json(const json_t *world, const json_t *policy, const json_t *labels)
{
	auto_strbuf struct strbuf why = {0};

	if (!node_runs_agent(labels))
		strbuf_addf(&why, "label kubernetes.io/os %s, wanted linux",
			    json_str_at(labels, "kubernetes.io/os"));
	else if (!object_is_trusted(world, policy))
		strbuf_addf(&why, "policies of namespace %s do not count", json_namespace(policy));
	else if (sriov_policy_selects(policy, labels))
		strbuf_adds(&why, "the policy cannot be applied");
	else
		sriov_policy_why_not_selected(policy, labels, &why);
	return json_pack("{s:b, s:s}", "selected", 0, "why", strbuf_str(&why));
}

/* Explain the policy on one node, and add the node's report if it is selected. */
static json_t *node_json(const json_t *world, const char *node, const char *key, json_t *reports)
{
	const json_t *labels = json_at(world_get(world, KIND_NODE, node), "metadata", "labels");
	auto_decision struct decision d = {0};
	json_auto_t *all = node_state_reports(world, node, SIZE_MAX, &d);
	json_t *report = json_object_get(all, key), *json, *pfs;
	const struct share *share = find_share(&d, key);

	if (!share)
		return not_selected_json(world, world_get(world, KIND_POLICY, key), labels);
	json_object_set(reports, node, report);
	json = json_pack("{s:b}", "selected", 1);
	json_put_str(json, "why", json_str_at(report, "why"));
	pfs = json_array();
	for (size_t i = 0; i < d.pfs_len; i++)
		json_array_append_new(pfs, pf_json(&d, &d.pfs[i], &share->policy));
	json_put(json, "pfs", pfs);
	return json;
}

json_t *policy_explain(const json_t *world, const char *key, struct err *err)
{
	const json_t *policy = world_get(world, KIND_POLICY, key);
	json_auto_t *reports = json_object();
	json_t *answer, *nodes, *node;
	const char *name;

	if (!policy) {
		err_set(err, ERR_INVALID, "NoSuchPolicy", "policy %s: there is none of that name",
			key);
		return NULL;
	}
	nodes = json_object();
	json_each (world_kind(world, KIND_NODE), name, node)
		json_put(nodes, name, node_json(world, name, key, reports));
	answer = json_object();
	json_put(answer, "status", policy_status_json(world, key, reports, SIZE_MAX));
	json_put(answer, "nodes", nodes);
	return answer;
}
