// SPDX-License-Identifier: Apache-2.0
/* When pods are watched. */
#include "tests/unit/operator/mirrored.h"

#include "operator/cache/pod_demand.h"

#define GROUPED                                                                                    \
	"{metadata: {name: a, namespace: net, annotations: "                                       \
	"{cni.spidernet.io/rdma-resource-inject: "                                                 \
	"g}}, spec: {}}"
#define ALONE   "{metadata: {name: a, namespace: net}, spec: {}}"
#define ENABLED "{data: {conf.yml: 'podResourceInject: {enabled: true}'}}"
#define PODS    "GET /api/v1/pods?"

static void change(struct pod_demand *demand, const char *kind, const char *old, const char *now)
{
	json_auto_t *before = old ? mirrored_yaml(old) : NULL;
	json_auto_t *after = now ? mirrored_yaml(now) : NULL;

	pod_demand_changed(demand, kind, before, after);
}

TEST(a_config_in_a_group_calls_for_pods)
{
	struct pod_demand demand = {0};

	assert_false(pod_demand_is_there(&demand));
	change(&demand, KIND_MULTUS_CONFIG, NULL, ALONE);
	assert_false(pod_demand_is_there(&demand));
	change(&demand, KIND_MULTUS_CONFIG, ALONE, GROUPED);
	change(&demand, KIND_MULTUS_CONFIG, NULL, GROUPED);
	assert_true(pod_demand_is_there(&demand));
	change(&demand, KIND_MULTUS_CONFIG, GROUPED, NULL);
	assert_true(pod_demand_is_there(&demand));
	change(&demand, KIND_MULTUS_CONFIG, GROUPED, ALONE);
	assert_false(pod_demand_is_there(&demand));
}

TEST(injection_calls_for_pods_where_webhooks_are_served)
{
	struct pod_demand demand = {.listening = true}, without = {0};

	change(&demand, MIRROR_SPIDERPOOL_CONF, NULL, ENABLED);
	change(&without, MIRROR_SPIDERPOOL_CONF, NULL, ENABLED);
	assert_true(pod_demand_is_there(&demand));
	assert_false(pod_demand_is_there(&without));
	change(&demand, MIRROR_SPIDERPOOL_CONF, ENABLED, "{data: {conf.yml: '{'}}");
	assert_true(pod_demand_is_there(&demand));
	change(&demand, MIRROR_SPIDERPOOL_CONF, ENABLED, NULL);
	assert_false(pod_demand_is_there(&demand));
}

/* It never counted: it could not be read. */
TEST(a_pool_that_could_not_be_read_takes_nothing_with_it)
{
	static const char pool[] = "{metadata: {name: q}}";
	struct pod_demand demand = {0};

	change(&demand, KIND_IP_POOL, NULL, NULL);
	assert_int_equal(demand.pools, 0);
	change(&demand, KIND_IP_POOL, NULL, pool);
	change(&demand, KIND_IP_POOL, NULL, NULL);
	assert_int_equal(demand.pools, 1);
	change(&demand, KIND_IP_POOL, pool, NULL);
	assert_int_equal(demand.pools, 0);
}

TEST(pods_are_listed_while_they_are_wanted)
{
	struct mirrored_test t;

	mirrored_open(&t);
	mirrored_sync(&t);
	assert_int_equal(http_script_count(t.server.http, PODS), 0);
	assert_true(mirror_is_synced(t.mirror, KIND_POD));
	mirror_want(t.mirror, KIND_POD, true);
	assert_false(mirror_is_synced(t.mirror, KIND_POD));
	while (!mirror_is_synced(t.mirror, KIND_POD))
		scripted_for(&t.server, 10);
	assert_true(http_script_count(t.server.http, PODS) > 0);
	mirrored_put(&t, KIND_POD,
		     "{metadata: {name: p, namespace: ml, annotations: "
		     "{cni.spidernet.io/rdma-resource-inject: g}}, spec: {containers: [{}]}, "
		     "status: {phase: Running}}");
	free(mirrored_woken(&t));
	mirror_want(t.mirror, KIND_POD, false);
	scripted_for(&t.server, 10);
	assert_int_equal(cache_len(mirror_cache(t.mirror, KIND_POD)), 0);
	/* What was found on it is forgotten. */
	assert_non_null(json_object_get(t.woken, "inject-pod ml/p"));
	mirror_want(t.mirror, KIND_POD, true);
	while (!mirror_is_synced(t.mirror, KIND_POD))
		scripted_for(&t.server, 10);
	mirrored_close(&t);
}
