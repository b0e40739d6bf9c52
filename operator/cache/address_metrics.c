// SPDX-License-Identifier: Apache-2.0
/*
 * The controllers of addresses call this as pods, pools and records change: counters, gauges, and
 * one map of pods that wait for how long. Names:
 * https://spidernet-io.github.io/spiderpool/latest/reference/metrics/.
 */
#include "operator/cache/address_metrics.h"

#include <assert.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/kinds.h"
#include "reconcilers/ipam/allocate/assign.h"

/* The bounds of Spiderpool's histogram, in seconds, and two below, where ours are. */
static const double bounds[] = {0.01, 0.05, 0.1, 0.3, 0.5, 1, 3, 5, 7, 10, 15};

struct address_metrics {
	struct map since; /* pods without addresses yet: int64_t, when they came */
	size_t pools;
	struct metric *allocated, *failed, *no_pool, *used_out, *internal, *conflicts, *seconds;
	struct durations {
		struct metric *average, *max, *min, *latest;
		double sum_s, max_s, min_s;
		size_t n;
	} durations; /* of seconds, as gauges */
	struct metric *released, *repaired, *pool_count, *total, *available, *in_conflict,
		*unwritten;
};

static void durations_add(struct metrics *metrics, struct durations *d)
{
	static const char name[] = "spiderpool_ipam_allocation_%s_duration_seconds";
	const struct {
		struct metric **metric;
		const char *which;
	} gauges[] = {{&d->average, "average"},
		      {&d->max, "max"},
		      {&d->min, "min"},
		      {&d->latest, "latest"}};

	for (size_t i = 0; i < ARRAY_LEN(gauges); i++) {
		auto_free char *full = str_printf(name, gauges[i].which);

		*gauges[i].metric =
			metric_gauge(metrics, full,
				     "As spiderpool_ipam_allocation_duration_seconds, since this "
				     "replica started.",
				     "");
	}
}

struct address_metrics *address_metrics_new(struct metrics *metrics)
{
	struct address_metrics *m = mem_new(struct address_metrics);

	m->since.free_value = mem_free;
	m->allocated = metric_counter(metrics, "spiderpool_ipam_allocation_counts_total",
				      "Pods that got their addresses.", "");
	m->failed = metric_counter(metrics, "spiderpool_ipam_allocation_failure_counts_total",
				   "Pods that could not have addresses, each reason once.", "");
	m->no_pool = metric_counter(metrics,
				    "spiderpool_ipam_allocation_err_no_available_pool_counts_total",
				    "Of these: no pool may serve the pod.", "");
	m->used_out =
		metric_counter(metrics, "spiderpool_ipam_allocation_err_ip_used_out_counts_total",
			       "Of these: all addresses are in use.", "");
	m->internal =
		metric_counter(metrics, "spiderpool_ipam_allocation_err_internal_counts_total",
			       "Of these: anything else.", "");
	m->conflicts = metric_counter(
		metrics, "spiderpool_ipam_allocation_update_ippool_conflict_counts_total",
		"Writes of pools that somebody else was ahead of.", "");
	m->seconds = metric_histogram(metrics, "spiderpool_ipam_allocation_duration_seconds",
				      "From seeing a pod that is bound to having its addresses in "
				      "the pools.",
				      "", bounds, ARRAY_LEN(bounds));
	durations_add(metrics, &m->durations);
	m->released = metric_counter(metrics, "spiderpool_ipam_release_counts_total",
				     "Pods whose addresses were given back.", "");
	m->repaired = metric_counter(metrics, "spiderpool_ip_gc_counts_total",
				     "Pods whose records no SpiderEndpoint named and that were "
				     "gone: given back.",
				     "");
	m->pool_count =
		metric_gauge(metrics, "spiderpool_total_ippool_counts", "SpiderIPPools.", "");
	m->total = metric_gauge(metrics, "spiderpool_debug_ippool_total_ip_counts",
				"Addresses of a pool.", "SpiderIPPool");
	m->available = metric_gauge(metrics, "spiderpool_debug_ippool_available_ip_counts",
				    "Addresses of a pool that no pod has.", "SpiderIPPool");
	m->unwritten = metric_gauge(metrics, "orbweaver_ippools_unwritten",
				    "SpiderIPPools whose status the API server refuses: their pods "
				    "wait.",
				    "");
	metric_set(m->unwritten, 0);
	m->in_conflict = metric_gauge(metrics, "orbweaver_ippool_conflicts",
				      "Addresses of a pool that somebody else on the network has: "
				      "no pod gets them for a while.",
				      "SpiderIPPool");
	return m;
}

void address_metrics_free(struct address_metrics *m)
{
	if (!m)
		return;
	map_done(&m->since);
	mem_free(m);
}

static void pool_changed(struct address_metrics *m, const char *name, const json_t *old,
			 const json_t *now)
{
	double total = json_number_value(json_at(now, "status", "totalIPCount"));
	double used = json_number_value(json_at(now, "status", "allocatedIPCount"));

	assert(!old || m->pools > 0);
	m->pools -= old != NULL;
	m->pools += now != NULL;
	metric_set(m->pool_count, (double)m->pools);
	if (!now) {
		metric_remove(m->total, name);
		metric_remove(m->available, name);
		metric_remove(m->in_conflict, name);
		return;
	}
	metric_set(m->total, total, name);
	metric_set(m->available, total - used, name);
	metric_set(m->in_conflict, json_number_value(json_at(now, "status", "conflictIPCount")),
		   name);
}

void address_metrics_changed(struct address_metrics *m, const char *kind, const char *key,
			     const json_t *old, const json_t *now, int64_t now_ms)
{
	assert(kind && key);
	if (str_eq(kind, KIND_IP_POOL)) {
		pool_changed(m, key, old, now);
	} else if (str_eq(kind, KIND_BOUND_POD) && !now) {
		(void)map_del(&m->since, key);
	} else if (str_eq(kind, KIND_BOUND_POD) && !old) {
		int64_t *since = mem_new(int64_t);

		*since = now_ms;
		map_set(&m->since, key, since);
	}
}

void address_metrics_allocated(struct address_metrics *m, const char *key, int64_t now_ms)
{
	const int64_t *since = map_get(&m->since, key);
	struct durations *d = &m->durations;
	double took_s;

	metric_add(m->allocated, 1);
	if (!since)
		return;
	took_s = (double)(now_ms - *since) / 1e3;
	metric_observe(m->seconds, took_s);
	d->min_s = d->n == 0 || took_s < d->min_s ? took_s : d->min_s;
	d->max_s = took_s > d->max_s ? took_s : d->max_s;
	d->sum_s += took_s;
	d->n++;
	metric_set(d->average, d->sum_s / (double)d->n);
	metric_set(d->max, d->max_s);
	metric_set(d->min, d->min_s);
	metric_set(d->latest, took_s);
	(void)map_del(&m->since, key);
}

void address_metrics_settled(struct address_metrics *m, const char *key)
{
	(void)map_del(&m->since, key);
}

void address_metrics_released(struct address_metrics *m)
{
	metric_add(m->released, 1);
}

void address_metrics_repaired(struct address_metrics *m)
{
	metric_add(m->repaired, 1);
}

void address_metrics_refused(struct address_metrics *m, const char *reason)
{
	assert(reason);
	metric_add(m->failed, 1);
	if (str_eq(reason, "PoolExhausted"))
		metric_add(m->used_out, 1);
	else if (str_eq(reason, "NoPool") || str_eq(reason, "PoolNotFound") ||
		 str_eq(reason, "NoAddressForNic"))
		metric_add(m->no_pool, 1);
	else
		metric_add(m->internal, 1);
}

void address_metrics_unwritten(struct address_metrics *m, size_t pools)
{
	metric_set(m->unwritten, (double)pools);
}

void address_metrics_conflict(struct address_metrics *m)
{
	metric_add(m->conflicts, 1);
}
