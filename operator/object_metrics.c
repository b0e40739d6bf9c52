// SPDX-License-Identifier: Apache-2.0
/*
 * The counts, findings and drains, as a scrape wants them: all series are set again each time, so
 * that one of which there is nothing any more goes.
 */
#include "operator/object_metrics.h"

#include "lib/base/clock.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "operator/cache/kinds.h"
#include "operator/cache/object_counts.h"

void object_metrics_init(struct object_metrics *m, struct metrics *metrics)
{
	m->counts = object_counts_new();
	m->found = metric_gauge(metrics, "orbweaver_findings",
				"Objects that need somebody: Degraded, not Ready without "
				"progress, or pods with a finding.",
				"kind,reason");
	m->conditions = metric_gauge(metrics, "orbweaver_conditions",
				     "Objects with this condition.", "kind,type,status,reason");
	m->policy_vfs =
		metric_gauge(metrics, "orbweaver_policy_vfs",
			     "VFs that a policy asks for, and that are there.", "policy,state");
	m->resource_nodes =
		metric_gauge(metrics, "orbweaver_resource_nodes",
			     "Nodes that want devices of a resource, those of them that have no "
			     "healthy one (empty), and those of these where a shared entry "
			     "selects no NIC (unselected).",
			     "resource,state");
	m->drains = metric_gauge(metrics, "orbweaver_drain_nodes",
				 "Nodes with pods in the way of a change, or that have to "
				 "boot, by how far their drain is; NotAllowed: nobody "
				 "allows one.",
				 "state");
	m->oldest_drain = metric_gauge(metrics, "orbweaver_drain_oldest_seconds",
				       "How long the node that is in this state of its drain "
				       "for longest has been in it.",
				       "state");
}

void object_metrics_done(struct object_metrics *m)
{
	object_counts_free(m->counts);
}

static void set_found(void *arg, const char *kind, const char *reason, size_t count)
{
	const struct object_metrics *m = arg;

	metric_set(m->found, (double)count, kind, reason);
}

static void set_condition(void *arg, const char *kind, const char *type, const char *status,
			  const char *reason, size_t count)
{
	const struct object_metrics *m = arg;

	metric_set(m->conditions, (double)count, kind, type, status, reason);
}

static void set_policy(void *arg, const char *policy, int64_t wanted, int64_t present)
{
	const struct object_metrics *m = arg;

	metric_set(m->policy_vfs, (double)wanted, policy, "wanted");
	metric_set(m->policy_vfs, (double)present, policy, "present");
}

static void set_resource(void *arg, const char *resource, size_t nodes, size_t empty,
			 size_t unselected)
{
	const struct object_metrics *m = arg;

	metric_set(m->resource_nodes, (double)nodes, resource, "wanted");
	metric_set(m->resource_nodes, (double)empty, resource, "empty");
	metric_set(m->resource_nodes, (double)unselected, resource, "unselected");
}

struct drain_count {
	const struct object_metrics *m;
	const struct cache *states;
	json_t *oldest; /* {state: microseconds} */
};

static void count_drain(void *arg, const char *key)
{
	const struct drain_count *count = arg;
	json_auto_t *state = cache_get(count->states, key);
	const json_t *maintenance = json_at(state, "status", "maintenance");
	const char *phase = json_str_at(maintenance, "state");
	int64_t since, age;

	metric_add(count->m->drains, 1, phase ? phase : "NotAllowed");
	if (!phase || !rfc3339_read(json_str_or(json_at(maintenance, "since"), ""), &since))
		return;
	age = clock_wall_us() - since;
	if (age < json_integer_value(json_at(count->oldest, phase)))
		return;
	json_put_int(count->oldest, phase, age);
	metric_set(count->m->oldest_drain, (double)age / 1000000, phase);
}

void object_metrics_collect(struct object_metrics *m, const struct controller_sources *from)
{
	struct metric *const all[] = {m->found,          m->conditions, m->policy_vfs,
				      m->resource_nodes, m->drains,     m->oldest_drain};
	json_auto_t *oldest = json_object();
	struct drain_count drains = {.m = m, .oldest = oldest};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		metric_clear(all[i]);
	if (!from)
		return;
	drains.states = mirror_cache(from->mirror, KIND_NODE_STATE);
	cache_find(drains.states, NODE_STATE_DRAINS, MIRROR_DRAINS, count_drain, &drains);
	findings_count(from->findings, set_found, m);
	object_counts_findings(m->counts, set_found, m);
	object_counts_conditions(m->counts, set_condition, m);
	object_counts_policies(m->counts, set_policy, m);
	object_counts_resources(m->counts, set_resource, m);
}
