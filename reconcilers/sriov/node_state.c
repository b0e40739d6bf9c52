// SPDX-License-Identifier: Apache-2.0
/*
 * The operator calls node_state_reconcile() for each node: is it gone, what is decided
 * (node_decision.c), what is there, does its agent live (node_agent.c), and the reports
 * (node_report.c), in this order.
 */
#include "reconcilers/sriov/node_state.h"

#include <assert.h>

#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/edit.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/node_agent.h"
#include "reconcilers/sriov/node_health.h"
#include "reconcilers/sriov/node_labels.h"
#include "reconcilers/sriov/node_rails.h"
#include "reconcilers/sriov/node_report.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/roce_settings.h"
#include "reconcilers/sriov/sriov_guid.h"

/* Reason of conditions while the Node is gone. */
static const char NODE_GONE[] = "NodeGone";

/* ---- the spec -------------------------------------------------------------------------------- */

/* As upstream encodes: a field without content is left out. */
static void put_text(json_t *obj, const char *key, const char *value)
{
	if (!str_empty(value))
		json_put_str(obj, key, value);
}

static void put_number(json_t *obj, const char *key, int64_t value)
{
	if (value)
		json_put_int(obj, key, value);
}

static void put_flag(json_t *obj, const char *key, bool value)
{
	if (value)
		json_put_bool(obj, key, true);
}

static json_t *group_json(const struct pf *pf, const struct group *group)
{
	const struct sriov_policy *p = &group->share->policy;
	json_t *json = json_object();

	json_put_str(json, "resourceName", p->resource_name);
	json_put_str(json, "deviceType", p->device_type);
	json_put(json, "vfRange", json_fmt("%d-%d", group->range.first, group->range.last));
	json_put_str(json, "policyName", p->name);
	/* Ours: upstream knows one namespace of policies. */
	json_put_str(json, "policyNamespace", p->namespace);
	put_number(json, "mtu", p->mtu);
	put_flag(json, "isRdma", p->is_rdma);
	put_text(json, "vdpaType", p->vdpa_type);
	/*
	 * Ours: upstream keeps the first two in the device plugin's configuration only, the third
	 * in a file on the host.
	 */
	put_flag(json, "needVhostNet", p->need_vhost_net);
	put_flag(json, "excludeTopology", p->exclude_topology);

	if (pf->has_guids && group->range.last < GUID_VFS_MAX) {
		char text[GUID_TEXT_SIZE];

		guid_text(pf->guid + (uint64_t)group->range.first, text);
		json_put_str(json, "guidStart", text);
	}
	return json;
}

static json_t *pf_json(const struct pf *pf)
{
	json_t *json = json_object(), *groups = json_array();
	bool allows_lag_loss = false, allows_primary_nic = false, allows_firmware = false;

	for (size_t i = 0; i < pf->groups.len; i++) {
		const struct sriov_policy *policy = &pf->groups.items[i].share->policy;

		allows_lag_loss |= policy->allows_lag_loss;
		allows_primary_nic |= policy->allows_primary_nic;
		allows_firmware |= policy->allows_firmware;
		json_array_append_new(groups, group_json(pf, &pf->groups.items[i]));
	}

	json_put_str(json, "pciAddress", json_str_at(pf->seen, "pciAddress"));
	put_text(json, "name", json_str_at(pf->seen, "name"));
	put_number(json, "numVfs", pf->num_vfs.value);
	put_number(json, "mtu", pf->mtu.value);
	put_text(json, "linkType", pf->link_type.value);
	put_text(json, "eSwitchMode", pf->eswitch_mode.value);
	put_flag(json, "externallyManaged",
		 pf->external && pf->external->policy.externally_managed);
	put_flag(json, "allowLagLoss", allows_lag_loss);
	put_flag(json, "allowPrimaryNic", allows_primary_nic);
	put_flag(json, "allowFirmware", allows_firmware);
	json_put(json, "vfGroups", groups);
	return json;
}

static json_t *interfaces_json(const struct decision *d)
{
	json_t *list = json_array(), *entry;
	size_t i;

	/* Without knowing the NICs nothing can be resolved: what was decided stays. */
	if (d->pfs_len == 0 && d->shares_len > 0) {
		json_array_extend(list, json_at(d->spec, "interfaces"));
		return list;
	}
	for (i = 0; i < d->touched_len; i++)
		json_array_append_new(list, pf_json(d->touched[i]));
	json_array_foreach (json_at(d->spec, "interfaces"), i, entry) {
		if (decision_holds(d, entry))
			json_array_append(list, entry);
	}
	return list;
}

static json_t *spec_json(const struct decision *d, const char *rdma_mode)
{
	json_auto_t *interfaces = interfaces_json(d);
	json_t *spec = json_object(), *bridges = json_at(d->spec, "bridges");

	if (json_array_size(interfaces) > 0)
		json_object_set(spec, "interfaces", interfaces);
	/* Bridges are not managed here, so those that a user entered stay. */
	if (json_is_object(bridges))
		json_object_set(spec, "bridges", bridges);
	else
		json_put(spec, "bridges", json_object());
	if (!str_empty(rdma_mode))
		json_put_str(json_need_object(spec, "system"), "rdmaMode", rdma_mode);
	return spec;
}

static bool is_blank(const json_t *value)
{
	const char *key;
	json_t *field;

	if (!value)
		return true;
	switch (json_typeof(value)) {
	case JSON_NULL:
	case JSON_FALSE:
		return true;
	case JSON_INTEGER:
		return json_integer_value(value) == 0;
	case JSON_STRING:
		return json_string_length(value) == 0;
	case JSON_ARRAY:
		return json_array_size(value) == 0;
	case JSON_OBJECT:
		json_each (value, key, field) {
			if (!is_blank(field))
				return false;
		}
		return true;
	case JSON_TRUE:
	case JSON_REAL:
		return false;
	}
	return false;
}

/*
 * Do the decided spec a and the present one b mean the same? A field without content and an absent
 * one do: releases of the upstream operator differ in which of them they write.
 */
static bool means_same(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *field;

	if (is_blank(a) || is_blank(b))
		return is_blank(a) && is_blank(b);
	if (json_is_array(a) && json_is_array(b)) {
		if (json_array_size(a) != json_array_size(b))
			return false;
		for (size_t i = 0; i < json_array_size(a); i++)
			if (!means_same(json_array_get(a, i), json_array_get(b, i)))
				return false;
		return true;
	}
	if (!json_is_object(a) || !json_is_object(b))
		return json_same(a, b);
	json_each (a, key, field) {
		/*
		 * Groups that upstream's operator wrote have none, and name the policy well enough.
		 */
		if (str_eq(key, "policyNamespace") && !json_object_get(b, key))
			continue;
		if (!means_same(field, json_object_get(b, key)))
			return false;
	}
	json_each (b, key, field) {
		if (!json_object_get(a, key) && !is_blank(field))
			return false;
	}
	return true;
}

/* ---- the node is gone ------------------------------------------------------------------------ */

/* Of the agent; they are unknown while it is away. Ready is apart. */
static const char *const agent_conditions[] = {"Progressing", "Blocked", "RebootRequired",
					       "PodNetworks"};

/* Returns new. */
static json_t *copy_of_conditions(const json_t *state)
{
	const json_t *list = json_at(state, "status", "conditions");

	return json_is_array(list) ? json_copy((json_t *)list) : json_array();
}

/* What the agent said of conditions that are listed holds no longer. */
static void put_unknown(json_t *list, const json_t *world, const json_t *state, const char *reason,
			const char *message)
{
	const json_t *previous = json_at(state, "status", "conditions");

	for (size_t i = 0; i < ARRAY_LEN(agent_conditions); i++)
		if (condition_find(previous, agent_conditions[i]))
			condition_set(list, previous, agent_conditions[i], CONDITION_UNKNOWN,
				      reason, message, json_generation(state),
				      world_env(world, "now"));
}

/*
 * Say that the Node is gone, and until when this is kept. Unknown and not False: a Node that was
 * deleted on purpose needs no administrator (operator/cache/object_counts.h).
 */
static void plan_node_gone(struct plan *plan, const json_t *world, const char *key,
			   const json_t *state, const char *until)
{
	const json_t *previous = json_at(state, "status", "conditions");
	json_t *list = copy_of_conditions(state);
	auto_free char *message =
		str_printf("Node %s is gone: this is kept until %s, in case the Node comes back, "
			   "and deleted then",
			   json_name(state), until);

	condition_set(list, previous, "Ready", CONDITION_UNKNOWN, NODE_GONE, message,
		      json_generation(state), world_env(world, "now"));
	if (condition_find(previous, "Degraded"))
		condition_set(list, previous, "Degraded", CONDITION_UNKNOWN, NODE_GONE,
			      "the Node is gone: see Ready", json_generation(state),
			      world_env(world, "now"));
	put_unknown(list, world, state, NODE_GONE, "the Node is gone: see Ready");
	plan_status_part(plan, KIND_NODE_STATE, key, json_pack("{s:o}", "conditions", list));
}

static int plan_stale(struct plan *plan, const json_t *world, const char *key, const json_t *state,
		      struct err *err)
{
	const char *annotation =
		json_str_or(json_at(state, "metadata", "annotations", NODE_STATE_KEEP_UNTIL), "");
	char text[RFC3339_SIZE];
	int64_t now, until;

	if (!rfc3339_read(world_env(world, "now"), &now))
		return err_set(err, ERR_BUG, "NoClock", "env.now \"%s\" is not a time",
			       world_env(world, "now"));
	if (!rfc3339_read(annotation, &until)) {
		json_t *metadata = json_object();

		until = now + NODE_STATE_KEEP_MINUTES * INT64_C(60000000);
		rfc3339_write(until, text);
		json_put_str(json_need_object(metadata, "annotations"), NODE_STATE_KEEP_UNTIL,
			     text);
		plan_meta(plan, KIND_NODE_STATE, key, metadata);
	}
	if (until <= now) {
		plan_delete(plan, KIND_NODE_STATE, key, json_uid(state));
		return 0;
	}
	rfc3339_write(until, text);
	plan_node_gone(plan, world, key, state, text);
	plan_requeue(plan, (until - now) / 1000 + 1000);
	return 0;
}

static void plan_node_state(struct plan *plan, const char *namespace, const char *node,
			    const json_t *state, const json_t *spec, const json_t *pool)
{
	static const char *const drain[] = {DRAIN_DESIRED_STATE, DRAIN_CURRENT_STATE};
	static const char *const of_pool[] = {POOL_POD_EVENTS, POOL_DEVICE_TAINTS};
	json_t *object = json_object(), *metadata = json_need_object(object, "metadata");

	json_put_str(metadata, "name", node);
	json_put_str(metadata, "namespace", namespace);
	/* Set by another decision of ours: what is not named here would be taken off. */
	for (size_t i = 0; i < ARRAY_LEN(drain); i++)
		if (json_list_has(json_at(state, "metadata", "orbweaver", "annotations"), drain[i]))
			json_put_str(json_need_object(metadata, "annotations"), drain[i],
				     json_str_at(state, "metadata", "annotations", drain[i]));
	for (size_t i = 0; i < ARRAY_LEN(of_pool); i++)
		if (str_eq(json_str_at(pool, "metadata", "annotations", of_pool[i]), "true"))
			json_put_str(json_need_object(metadata, "annotations"), of_pool[i], "true");
	json_object_set(object, "spec", (json_t *)spec);
	plan_apply(plan, KIND_NODE_STATE, object);
}

static void plan_agent(struct plan *plan, const json_t *world, const char *node, const char *key,
		       const json_t *state, const struct node_agent *agent)
{
	const json_t *remembered = json_at(world, BOX_NO_AGENT_POD, node);
	json_auto_t *remember = NULL;
	char since[RFC3339_SIZE];

	rfc3339_write(agent->since_us, since);
	if (agent->remember)
		remember = json_pack("{s:s}", "since", since);
	if (agent->cut_off)
		json_put_bool(remember, "cutOff", true);
	/* First said, then remembered as said: a write that fails is made again. */
	if (agent->is_gone) {
		const json_t *previous = json_at(state, "status", "conditions");
		json_t *part = json_object(), *list = copy_of_conditions(state);
		auto_free char *message = str_printf(NODE_AGENT_SAID "%s", agent->message);

		/*
		 * Say that there is no agent; what it said before may be so no longer. Its next
		 * status says.
		 */
		conditions_judge(list, previous,
				 &(struct judgement){.ready = CONDITION_FALSE,
						     .reason = "NoAgent",
						     .message = message},
				 json_generation(state), world_env(world, "now"));
		put_unknown(list, world, state, "NoAgent", "the agent is away: see Ready");
		json_put(part, "conditions", list);
		json_put_str(part, "agentSilentSince", since);
		plan_status_part(plan, KIND_NODE_STATE, key, part);
	}
	if (!json_same(remembered, remember))
		plan_post(plan, BOX_NO_AGENT_POD, node, json_incref(remember));
	if (agent->look_again_ms)
		plan_requeue(plan, agent->look_again_ms);
}

/* The node came back while its NodeState was kept. Only its agent reports the rest. */
static void plan_unmark(struct plan *plan, const char *key, const json_t *state, bool is_agent_gone)
{
	json_t *metadata;

	if (node_state_is_kept(state)) {
		metadata = json_object();
		json_put(json_need_object(metadata, "annotations"), NODE_STATE_KEEP_UNTIL,
			 json_null());
		plan_meta(plan, KIND_NODE_STATE, key, metadata);
	}
	if (!is_agent_gone) {
		const json_t *previous = json_at(state, "status", "conditions");
		json_t *list = json_array(), *condition;
		size_t i;

		/* Conditions that still say that the Node is gone. */
		json_array_foreach ((json_t *)previous, i, condition)
			if (!str_eq(json_str_at(condition, "reason"), NODE_GONE))
				json_array_append(list, condition);
		if (json_array_size(list) < json_array_size(previous))
			plan_status_part(plan, KIND_NODE_STATE, key,
					 json_pack("{s:o}", "conditions", list));
		else
			json_decref(list);
	}
}

enum {
	POLICIES_TOLD = 3, /* of an edit that is undone */
};

/* Policies of the groups of one PF, those that are not in the list yet. */
static void add_policies(json_t *list, const json_t *interface)
{
	json_t *group;
	size_t i;

	json_array_foreach (json_at(interface, "vfGroups"), i, group) {
		auto_free char *policy =
			str_printf("%s/%s", json_str_or(json_at(group, "policyNamespace"), ""),
				   json_str_or(json_at(group, "policyName"), ""));

		if (!json_list_has(list, policy))
			json_array_append_new(list, json_string(policy));
	}
}

/* Policies that decide what differs: of PFs that are other ones than wanted. Returns new. */
static json_t *deciding_policies(const json_t *was, const json_t *wanted)
{
	json_t *list = json_array(), *interface;
	size_t i;

	json_array_foreach (json_at(wanted, "interfaces"), i, interface) {
		const char *address = json_str_or(json_at(interface, "pciAddress"), "");

		if (!json_same(json_find(json_at(was, "interfaces"), "pciAddress", address),
			       interface))
			add_policies(list, interface);
	}
	return list;
}

/* Another client wrote what is about to be written over. */
static void tell_of_edit(struct plan *plan, const char *key, const json_t *state,
			 const json_t *wanted)
{
	const json_t *was = json_at(state, "spec");
	json_auto_t *policies = deciding_policies(was, wanted);
	size_t n = json_array_size(policies);
	auto_strbuf struct strbuf instead = {0};

	for (size_t i = 0; i < n && i < POLICIES_TOLD; i++)
		strbuf_addf(&instead, "%s%s", i > 0 ? ", " : "SriovNetworkNodePolicy ",
			    json_string_value(json_array_get(policies, i)));
	if (n > POLICIES_TOLD)
		strbuf_adds(&instead, ", …");
	if (n == 0)
		strbuf_adds(&instead,
			    json_same(json_at(was, "system"), json_at(wanted, "system")) &&
					    json_same(json_at(was, "nicSettings"),
						      json_at(wanted, "nicSettings"))
				    ? "the SriovNetworkNodePolicies of the node"
				    : "the SriovNetworkPoolConfig of the node");
	edit_tell(plan, KIND_NODE_STATE, key, state, was, wanted, strbuf_str(&instead));
}

/* RoCE settings; those that are there while no single good answer exists. New, or NULL. */
static json_t *decide_nics(const struct decision *d, const json_t *world, const json_t *labels)
{
	const json_t *current = json_at(d->spec, "nicSettings"), *roce;

	if (!pool_config_roce(world, labels, &roce) || (roce && d->pfs_len == 0))
		return json_incref((json_t *)current);
	return roce ? roce_settings_nics(d, roce) : NULL;
}

/*
 * The NodeState's spec as decided; the one that is there when it means the same (*ret_is_written),
 * with the rails of now: VFs do not depend on them. Returns new.
 */
static json_t *decide_spec(struct decision *d, const json_t *world, const char *key,
			   bool *ret_is_written)
{
	const json_t *labels = json_at(world_get(world, KIND_NODE, key), "metadata", "labels");
	const char *current = json_str_at(d->spec, "system", "rdmaMode");
	json_t *spec = spec_json(d, pool_config_rdma_mode(world, labels, current));
	json_t *there = json_is_object(d->spec) ? json_copy((json_t *)d->spec) : json_object();
	json_t *rails = node_rails(d, world, labels), *nics = decide_nics(d, world, labels);
	bool are_nics_same = json_same(json_at(there, "nicSettings"), nics);

	(void)json_object_del(there, "rails");
	(void)json_object_del(there, "nicSettings");
	*ret_is_written = json_object_size(d->spec) > 0 && means_same(spec, there);
	if (*ret_is_written) {
		json_replace(&spec, json_incref(there));
	}
	*ret_is_written &= are_nics_same;
	json_decref(there);
	json_put(spec, "rails", rails);
	json_put(spec, "nicSettings", nics);
	return spec;
}

static const json_t *find_state(const json_t *world, const char *node)
{
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), node);

	return world_get(world, KIND_NODE_STATE, key);
}

json_t *node_state_reports(const json_t *world, const char *key, size_t why_lines_max,
			   struct decision *ret)
{
	auto_node_agent struct node_agent agent = {0};
	bool is_written;

	assert(ret->shares_len == 0 && why_lines_max > 0);
	node_decide(ret, world, key, find_state(world, key), why_lines_max);
	json_decref(decide_spec(ret, world, key, &is_written));
	/* Without a clock it is as it was said to be. */
	(void)node_agent_judge(world, key, ret->state, &agent, NULL);
	return node_reports(ret, is_written, agent.message);
}

bool node_state_is_kept(const json_t *state)
{
	return json_at(state, "metadata", "annotations", NODE_STATE_KEEP_UNTIL);
}

bool node_state_resource_is_given(const json_t *resource)
{
	return json_integer_value(json_at(resource, "wanted")) == 0 &&
	       json_integer_value(json_at(resource, "offered")) > 0;
}

bool node_state_resource_is_withheld(const json_t *state, const json_t *resource)
{
	return str_eq(json_str_at(resource, "kind"), "shared") &&
	       str_eq(json_str_at(state, "status", "system", "rdmaMode"), "exclusive") &&
	       json_integer_value(json_at(resource, "wanted")) == 0 &&
	       json_integer_value(json_at(resource, "healthy")) == 0;
}

/*
 * Labels of the Node, and what is said of its links. Labels are removed when the DaemonSet has no
 * pod on the node any more: after NODE_LABELS_KEPT_S, or at once if the NodeState is deleted. While
 * an agent fails or is out of reach they stay: an update that fails everywhere must not take them
 * from all nodes.
 */
static void plan_labels(struct plan *plan, const json_t *world, const json_t *node,
			const json_t *state, const struct node_agent *agent)
{
	int64_t now, left_us = 0;

	node_health_plan(plan, node, state, agent->is_gone, world_env(world, "now"));
	if (state && !agent->is_gone) {
		node_labels_plan(plan, node, state);
		return;
	}
	if (!agent->has_no_pod)
		return;
	if (state && rfc3339_read(world_env(world, "now"), &now))
		left_us = agent->since_us + NODE_LABELS_KEPT_S * INT64_C(1000000) - now;
	if (left_us <= 0)
		node_labels_plan(plan, node, NULL);
	else if (json_at(node, "metadata", "labels", NODE_LABEL_CAPABLE))
		plan_requeue(plan, left_us / 1000 + 1000);
}

int node_state_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const char *namespace = world_env(world, "namespace");
	auto_free char *state_key = str_printf("%s/%s", namespace, key);
	const json_t *node = world_get(world, KIND_NODE, key), *state = find_state(world, key);
	auto_decision struct decision d = {0};
	auto_node_agent struct node_agent agent = {0};
	json_auto_t *spec = NULL;
	json_t *reports;
	bool is_written;

	assert(plan);
	if (str_empty(namespace) || str_empty(key))
		return err_set(err, ERR_BUG, "BadKey", "node \"%s\" in namespace \"%s\"", key,
			       namespace);
	if (!node && state && plan_stale(plan, world, state_key, state, err) < 0)
		return -1;
	if (!node) {
		plan_report(plan, key, json_object());
		return 0;
	}

	node_decide(&d, world, key, state, POLICY_WHY_LINES);
	if (node_agent_judge(world, key, state, &agent, err) < 0)
		return -1;
	if (!state && d.shares_len == 0 && json_object_size(d.refused) == 0) {
		plan_report(plan, key, json_object());
		plan_labels(plan, world, node, NULL, &agent);
		return 0;
	}
	spec = decide_spec(&d, world, key, &is_written);
	plan_node_state(plan, namespace, key, state, spec,
			pool_config_of(world, json_at(node, "metadata", "labels")));
	if (!is_written)
		tell_of_edit(plan, state_key, state, spec);
	plan_unmark(plan, state_key, state, agent.is_gone);
	if (state)
		plan_agent(plan, world, key, state_key, state, &agent);
	reports = node_reports(&d, is_written, agent.message);
	pool_config_put_report(world, json_at(node, "metadata", "labels"), state, reports);
	plan_report(plan, key, reports);
	plan_labels(plan, world, node, state, &agent);
	return 0;
}
