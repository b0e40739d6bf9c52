// SPDX-License-Identifier: Apache-2.0
/* Numbers about addresses, under the names that dashboards ask for. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "operator/cache/address_metrics.h"
#include "operator/cache/kinds.h"
#include "reconcilers/ipam/allocate/assign.h"

static void expect_line(struct metrics *metrics, const char *line)
{
	auto_strbuf struct strbuf text = {0};

	metrics_render(metrics, &text);
	if (!strstr(strbuf_str(&text), line))
		fail_msg("no line %sin:\n%s", line, strbuf_str(&text));
}

static void allocate(struct address_metrics *m, const char *key, int64_t took_ms)
{
	json_auto_t *pod = json_object();

	address_metrics_changed(m, KIND_BOUND_POD, key, NULL, pod, 1000);
	address_metrics_allocated(m, key, 1000 + took_ms);
}

TEST(durations_are_gauges_too)
{
	struct metrics *metrics = metrics_new();
	struct address_metrics *m = address_metrics_new(metrics);

	allocate(m, "ml/a", 500);
	allocate(m, "ml/b", 2000);
	allocate(m, "ml/c", 1250);
	expect_line(metrics, "spiderpool_ipam_allocation_counts_total 3\n");
	expect_line(metrics, "spiderpool_ipam_allocation_average_duration_seconds 1.25\n");
	expect_line(metrics, "spiderpool_ipam_allocation_max_duration_seconds 2\n");
	expect_line(metrics, "spiderpool_ipam_allocation_min_duration_seconds 0.5\n");
	expect_line(metrics, "spiderpool_ipam_allocation_latest_duration_seconds 1.25\n");
	address_metrics_free(m);
	metrics_free(metrics);
}

TEST(refusals_are_told_apart)
{
	struct metrics *metrics = metrics_new();
	struct address_metrics *m = address_metrics_new(metrics);

	address_metrics_refused(m, "PoolExhausted");
	address_metrics_refused(m, "NoPool");
	address_metrics_refused(m, "WrongAnnotation");
	expect_line(metrics, "spiderpool_ipam_allocation_failure_counts_total 3\n");
	expect_line(metrics, "spiderpool_ipam_allocation_err_ip_used_out_counts_total 1\n");
	expect_line(metrics, "spiderpool_ipam_allocation_err_no_available_pool_counts_total 1\n");
	expect_line(metrics, "spiderpool_ipam_allocation_err_internal_counts_total 1\n");
	address_metrics_free(m);
	metrics_free(metrics);
}

TEST(a_pool_says_how_many_addresses_others_have)
{
	struct metrics *metrics = metrics_new();
	struct address_metrics *m = address_metrics_new(metrics);
	json_auto_t *pool = json_pack("{s:{s:i, s:i, s:i}}", "status", "totalIPCount", 9,
				      "allocatedIPCount", 4, "conflictIPCount", 2);
	json_auto_t *mended =
		json_pack("{s:{s:i, s:i}}", "status", "totalIPCount", 9, "allocatedIPCount", 4);

	address_metrics_changed(m, KIND_IP_POOL, "p", NULL, pool, 1000);
	expect_line(metrics, "orbweaver_ippool_conflicts{SpiderIPPool=\"p\"} 2\n");
	/* One that could never be read is deleted: it was not counted. */
	address_metrics_changed(m, KIND_IP_POOL, "q", NULL, NULL, 1500);
	expect_line(metrics, "spiderpool_total_ippool_counts 1\n");
	address_metrics_changed(m, KIND_IP_POOL, "p", pool, mended, 2000);
	expect_line(metrics, "orbweaver_ippool_conflicts{SpiderIPPool=\"p\"} 0\n");
	address_metrics_changed(m, KIND_IP_POOL, "p", mended, NULL, 2500);
	expect_line(metrics, "spiderpool_total_ippool_counts 0\n");
	address_metrics_free(m);
	metrics_free(metrics);
}
