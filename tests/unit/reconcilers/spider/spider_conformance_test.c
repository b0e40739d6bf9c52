// SPDX-License-Identifier: Apache-2.0
/*
 * The recorded behaviour of Spiderpool (conformance/spider.json), replayed through our reconcilers:
 * one world in which the recorded objects are created one after the other.
 */
#include "tests/support/test.h"

#include <string.h>

#include "reconcilers/core/problems.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/spider/multus_config.h"
#include "reconcilers/spider/multus_config_check.h"
#include "tests/fakes/cluster.h"
#include "tests/unit/reconcilers/recordings.h"

/*
 * Where we differ on purpose: the verdict is the opposite of the recorded one. { id: reason }, of
 * the whole run.
 */
#define DIFFERENCES "spider-differences.txt"

static json_t *differences;

static const char *difference(const char *id)
{
	return json_str_at(differences, id);
}

static json_t *world_new(void)
{
	return json_pack("{s:{s:s}}", "env", "now", "2026-07-08T10:00:00Z");
}

static int complain(const char *id, const char *what, const json_t *got, const json_t *want)
{
	auto_free char *got_text = got ? json_text(got) : str_dup("nothing");
	auto_free char *want_text = want ? json_text(want) : str_dup("nothing");

	print_error("%s: %s\n   got %s\n  want %s\n", id, what, got_text, want_text);
	return 1;
}

/*
 * Create the object as the n-th of the world, and let its reconciler come to rest. Returns its key;
 * free().
 */
static char *create(json_t *world, const json_t *object, const json_t *spec, size_t n)
{
	bool is_pool = str_eq(json_str_at(object, "kind"), "SpiderIPPool");
	json_t *copy = json_deep_copy(object);
	json_t *metadata = json_need_object(copy, "metadata");
	char *key = json_key(copy);

	json_put(metadata, "uid", json_fmt("uid-%zu", n));
	json_put_int(metadata, "generation", 1);
	json_put(metadata, "creationTimestamp",
		 json_fmt("2026-07-08T%02zu:%02zu:%02zuZ", n / 3600, n / 60 % 60, n % 60));
	if (spec)
		json_put(copy, "spec", json_deep_copy(spec));
	json_put(json_need_object(world, is_pool ? KIND_IP_POOL : KIND_MULTUS_CONFIG), key, copy);
	assert_true(
		cluster_settle(world, key, is_pool ? ip_pool_reconcile : multus_config_reconcile));
	return key;
}

static int compare_pool(const char *id, const json_t *pool, const json_t *recorded)
{
	int failed = 0;

	if (!json_same(json_at(pool, "metadata", "labels"), json_at(recorded, "labels")))
		failed += complain(id, "labels", json_at(pool, "metadata", "labels"),
				   json_at(recorded, "labels"));
	if (!json_same(json_at(pool, "status", "totalIPCount"),
		       json_at(recorded, "status", "totalIPCount")))
		failed += complain(id, "totalIPCount", json_at(pool, "status"),
				   json_at(recorded, "status"));
	if (!json_same(json_at(pool, "status", "allocatedIPCount"),
		       json_at(recorded, "status", "allocatedIPCount")))
		failed += complain(id, "allocatedIPCount", json_at(pool, "status"),
				   json_at(recorded, "status"));
	return failed;
}

/* An empty map and none are the same here. */
static bool same_map(const json_t *a, const json_t *b)
{
	return (json_object_size(a) == 0 && json_object_size(b) == 0) || json_same(a, b);
}

static int compare_nad(const char *id, const json_t *world, const char *namespace,
		       const json_t *recorded)
{
	auto_free char *key = str_printf("%s/%s", namespace, json_str_at(recorded, "name"));
	const json_t *nad = world_get(world, KIND_NAD, key);
	const char *text = json_str_at(nad, "spec", "config");
	json_auto_t *config = text ? json_parse(text, strlen(text), NULL) : NULL;
	int failed = 0;

	if (!nad)
		return complain(id, "NetworkAttachmentDefinition missing", NULL, recorded);
	if (!json_same(config, json_at(recorded, "config")))
		failed += complain(id, "config", config, json_at(recorded, "config"));
	if (!same_map(json_at(nad, "metadata", "annotations"), json_at(recorded, "annotations")))
		failed += complain(id, "annotations", json_at(nad, "metadata", "annotations"),
				   json_at(recorded, "annotations"));
	if (!same_map(json_at(nad, "metadata", "labels"), json_at(recorded, "labels")))
		failed += complain(id, "labels of the NetworkAttachmentDefinition",
				   json_at(nad, "metadata", "labels"), json_at(recorded, "labels"));
	return failed;
}

static int compare_config(const char *id, const json_t *world, const json_t *smc,
			  const json_t *recorded)
{
	const json_t *nads = json_at(recorded, "nads");
	json_t *nad;
	int failed = 0;
	size_t i;

	if (!same_map(json_at(smc, "metadata", "labels"), json_at(recorded, "labels")))
		failed += complain(id, "labels", json_at(smc, "metadata", "labels"),
				   json_at(recorded, "labels"));
	json_array_foreach (nads, i, nad)
		failed += compare_nad(id, world, json_namespace(smc), nad);
	return failed;
}

/* As the webhook decides it. What is accepted may lack what it takes to be Ready: an empty pool. */
static bool is_good(const json_t *world, const json_t *object, bool is_pool)
{
	auto_problems struct problems problems = {0};

	(is_pool ? ip_pool_check : multus_config_check)(world, object, &problems);
	return problems.total == 0;
}

/* One recorded case; `spec` replaces the object's own if given. */
static int replay(json_t *world, const json_t *recorded, const json_t *spec, size_t n)
{
	const char *id = json_str_at(recorded, "id");
	const json_t *object = json_at(recorded, "object");
	bool is_pool = str_eq(json_str_at(object, "kind"), "SpiderIPPool");
	const char *kind = is_pool ? KIND_IP_POOL : KIND_MULTUS_CONFIG;
	auto_free char *key = create(world, object, spec, n);
	const json_t *result = world_get(world, kind, key);
	const json_t *conditions = json_at(result, "status", "conditions");
	bool is_accepted = is_good(world, result, is_pool);
	bool was_accepted = json_is_true(json_at(recorded, "accepted"));
	int failed = 0;

	if (is_accepted != (difference(id) ? !was_accepted : was_accepted))
		failed += complain(id, "verdict", conditions, json_at(recorded, "error"));
	else if (is_accepted && was_accepted && is_pool)
		failed += compare_pool(id, result, recorded);
	else if (is_accepted && was_accepted)
		failed += compare_config(id, world, result, recorded);
	if (!is_accepted) /* it was never created in the recording */
		json_object_del((json_t *)world_kind(world, kind), key);
	return failed;
}

static int set_up(void **state)
{
	differences = recordings_differences(DIFFERENCES);
	return 0;
}

static int tear_down(void **state)
{
	json_decref(differences);
	return 0;
}

TEST(agrees_with_the_recorded_behaviour)
{
	json_auto_t *cases = recordings_need("spider.json");
	json_auto_t *world = world_new();
	json_t *recorded;
	int failed = 0;
	size_t i;

	json_array_foreach (cases, i, recorded)
		failed += replay(world, recorded, NULL, i);
	print_message("%zu cases, %zu of them differ on purpose\n", json_array_size(cases),
		      json_object_size(differences));
	assert_int_equal(failed, 0);
}

/* What the recorded webhook stored, defaults filled in, gives the same as what was sent. */
TEST(stored_defaults_change_nothing)
{
	json_auto_t *cases = recordings_need("spider.json");
	json_auto_t *world = world_new();
	json_t *recorded;
	int failed = 0;
	size_t i;

	json_array_foreach (cases, i, recorded)
		if (json_at(recorded, "stored_spec"))
			failed += replay(world, recorded, json_at(recorded, "stored_spec"), i);
	assert_int_equal(failed, 0);
}

TEST(accepts_the_configs_that_pods_were_recorded_with)
{
	json_auto_t *recording = recordings_need("pods.json");
	json_auto_t *world = world_new();
	json_t *recorded;
	int failed = 0;
	size_t i;

	json_array_foreach (json_at(recording, "configs"), i, recorded) {
		json_auto_t *entry = json_deep_copy(recorded);

		json_put(entry, "id", json_incref(json_at(recorded, "object", "metadata", "name")));
		json_put(entry, "labels",
			 json_incref(json_at(recorded, "object", "metadata", "annotations")));
		failed += replay(world, entry, NULL, i);
	}
	assert_int_equal(failed, 0);
}

TEST_GROUP(set_up, tear_down)
