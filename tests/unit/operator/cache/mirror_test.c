// SPDX-License-Identifier: Apache-2.0
/* Kinds of others that move from one version of their group to another; what is kept of a Node. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "operator/cache/mirror.h"
#include "reconcilers/sriov/node_health.h"
#include "tests/fakes/scripted.h"
#include "tests/support/until.h"
#include "tests/support/yaml.h"

#define POOLS(VERSION) "GET /apis/cilium.io/" VERSION "/ciliumpodippools?limit="
#define GROUP(VERSIONS)                                                                            \
	"{\"kind\": \"APIGroup\", \"name\": \"cilium.io\", \"versions\": [" VERSIONS "]}"
#define VERSION(NAME) "{\"groupVersion\": \"cilium.io/" NAME "\", \"version\": \"" NAME "\"}"

static struct {
	struct scripted s;
	struct mirror *mirror;
	int seen, troubles;
} f;

static void on_changed(void *arg, const char *kind, const char *key, const json_t *old,
		       const json_t *now)
{
	f.seen += str_eq(kind, MIRROR_CILIUM_POOL) && now;
}

static void on_synced(void *arg, const char *kind)
{
}

static void on_trouble(void *arg, const char *kind, const struct err *err)
{
	f.troubles += str_eq(kind, MIRROR_CILIUM_POOL) && err;
}

static int set_up(void **state)
{
	memset(&f, 0, sizeof(f));
	scripted_open(&f.s);
	return 0;
}

static int tear_down(void **state)
{
	mirror_free(f.mirror);
	scripted_close(&f.s);
	return 0;
}

static void start_with(struct loop *loop, struct kube_client *client)
{
	f.mirror = mirror_new(loop, client,
			      &(struct mirror_config){
				      .ns = "orbweaver-system",
				      .config_ns = "spiderpool",
				      .changed = on_changed,
				      .synced = on_synced,
				      .trouble = on_trouble,
			      });
}

static void start(void)
{
	start_with(f.s.loop, f.s.client);
}

static void reply(const char *begin, int status, const char *body)
{
	http_script_add(f.s.http, begin, &(struct http_reply){.status = status, .body = body});
}

TEST_WITH(a_kind_that_moved_is_found_where_it_is_now, set_up, tear_down)
{
	reply(POOLS("v2alpha1"), 404, NULL);
	reply("GET /apis/cilium.io ", 200, GROUP(VERSION("v2alpha1") ", " VERSION("v2")));
	reply(POOLS("v2"), 200,
	      "{\"kind\": \"CiliumPodIPPoolList\", \"metadata\": {\"resourceVersion\": \"9\"}, "
	      "\"items\": [{\"metadata\": {\"name\": \"default\", \"resourceVersion\": \"7\"}, "
	      "\"spec\": {\"ipv4\": {\"cidrs\": [\"10.0.0.0/8\"]}}}]}");
	start();
	scripted_until(&f.s, &f.seen, 1);
	assert_true(cache_has(mirror_cache(f.mirror, MIRROR_CILIUM_POOL), "default"));
	assert_string_equal(mirror_resource(f.mirror, MIRROR_CILIUM_POOL)->version, "v2");
	assert_int_equal(f.troubles, 0);
}

/* Neither version has it: that is all for now, and no trouble. */
TEST_WITH(a_group_without_the_kind_is_asked_once, set_up, tear_down)
{
	reply(POOLS("v2alpha1"), 404, NULL);
	reply("GET /apis/cilium.io ", 200, GROUP(VERSION("v2") ", " VERSION("v2alpha1")));
	reply(POOLS("v2"), 404, NULL);
	start();
	until(f.s.loop, http_script_count(f.s.http, POOLS("v2")) > 0 &&
				mirror_is_synced(f.mirror, MIRROR_CILIUM_POOL));
	assert_int_equal(http_script_count(f.s.http, "GET /apis/cilium.io "), 1);
	assert_int_equal(http_script_count(f.s.http, POOLS("v2alpha1")), 1);
	assert_int_equal(http_script_count(f.s.http, POOLS("v2")), 1);
	assert_int_equal(f.troubles, 0);
}

TEST_WITH(a_version_that_cannot_be_one_is_not_asked_for, set_up, tear_down)
{
	reply(POOLS("v2alpha1"), 404, NULL);
	reply("GET /apis/cilium.io ", 200, GROUP(VERSION("v2alpha1") ", " VERSION("../../x")));
	start();
	until(f.s.loop, http_script_count(f.s.http, "GET /apis/cilium.io ") > 0);
	pass(f.s.loop, 100);
	assert_string_equal(mirror_resource(f.mirror, MIRROR_CILIUM_POOL)->version, "v2alpha1");
	assert_int_equal(http_script_count(f.s.http, "GET /apis/cilium.io/"), 1);
}

/* Else the operator writes at each look what the Node says already. */
TEST_WITH(a_node_that_says_what_its_links_are_is_left_alone, set_up, tear_down)
{
	json_auto_t *has = yaml("{status: {linkHealth: {ports: [{verdict: healthy}]}}}");
	json_auto_t *node = yaml("{metadata: {name: w1, uid: u1, resourceVersion: '1'}}");
	json_auto_t *mirrored = NULL;
	struct plan plan = {0};

	node_health_plan(&plan, node, has, false, "2026-01-31T10:00:00Z");
	assert_int_equal(json_array_size(plan.ops), 1);
	plan_put_condition(node, json_array_get(plan.ops, 0));
	plan_done(&plan);
	start_with(NULL, NULL);
	mirror_show(f.mirror, mirror_resource(f.mirror, "nodes"), node);
	mirrored = cache_get(mirror_cache(f.mirror, "nodes"), "w1");
	node_health_plan(&plan, mirrored, has, false, "2026-01-31T11:00:00Z");
	assert_int_equal(json_array_size(plan.ops), 0);
	plan_done(&plan);
}
