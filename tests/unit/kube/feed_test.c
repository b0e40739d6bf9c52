// SPDX-License-Identifier: Apache-2.0
/*
 * The feed: an event about nothing that is kept is not read, and leaves the cache as if it had
 * been.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/feed.h"

static int reads, changes;

/* Asked for each object that is read. */
static void project(json_t *object)
{
	reads++;
}

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	changes++;
}

static void on_fed(void *arg)
{
}

static const struct cache_kind kind = {.project = project};
static const splitter_path drops[] = {{"status", "conditions", "lastHeartbeatTime"}};

static struct cache *cache;
static struct feed feed;

static void receive(const char *text)
{
	struct err err = {0};

	assert_int_equal(feed_bytes(&feed, text, strlen(text), &err), 0);
}

static int set_up(void **state)
{
	struct err err = {0};

	reads = changes = 0;
	cache = cache_new(&kind, on_changed, NULL);
	feed = (struct feed){
		.resource = "nodes",
		.cache = cache,
		.drops = drops,
		.n_drops = ARRAY_LEN(drops),
		.understood = on_fed,
		.complete = on_fed,
	};
	feed_list(&feed, false);
	feed_open(&feed);
	receive("{\"items\":[],\"metadata\":{\"resourceVersion\":\"5\"}}");
	assert_int_equal(feed_close(&feed, &err), 0);
	feed_open(&feed);
	return 0;
}

static int tear_down(void **state)
{
	feed_done(&feed);
	cache_free(cache);
	return 0;
}

/* An event of the node, in this version, after so many heartbeats. */
static void node_says(const char *type, const char *version, int beats, const char *ready)
{
	auto_free char *text = str_printf(
		"{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"n\",\"uid\":\"u\","
		"\"resourceVersion\":\"%s\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
		"\"status\":\"%s\",\"lastHeartbeatTime\":\"%d\"}]}}}\n",
		type, version, ready, beats);

	receive(text);
}

static void assert_kept(const char *version, const char *ready)
{
	json_auto_t *node = cache_get(cache, "n");
	const json_t *condition = json_find(json_at(node, "status", "conditions"), "type", "Ready");

	assert_string_equal(json_str_at(node, "metadata", "resourceVersion"), version);
	assert_int_equal(cache_version(cache, "n"), kube_resource_version(node));
	assert_int_equal(feed.version, kube_resource_version(node));
	assert_string_equal(json_str_at(condition, "status"), ready);
}

TEST_WITH(a_heartbeat_is_not_read, set_up, tear_down)
{
	node_says("ADDED", "8", 1, "True");
	assert_kept("8", "True");
	node_says("MODIFIED", "9", 2, "True");
	assert_kept("9", "True");
	/* One digit more, and the same number of them. */
	node_says("MODIFIED", "10", 3, "True");
	assert_kept("10", "True");
	node_says("MODIFIED", "11", 4, "True");
	assert_kept("11", "True");
	assert_int_equal(reads, 1);
	assert_int_equal(changes, 1);
}

TEST_WITH(what_changes_is_read, set_up, tear_down)
{
	node_says("ADDED", "8", 1, "True");
	node_says("MODIFIED", "9", 2, "False");
	assert_kept("9", "False");
	node_says("MODIFIED", "10", 3, "True");
	assert_kept("10", "True");
	assert_int_equal(reads, 3);
	assert_int_equal(changes, 3);
}

TEST_WITH(an_answer_that_was_learned_makes_the_next_event_worth_reading, set_up, tear_down)
{
	json_auto_t *before = NULL;
	json_t *answer = NULL;

	node_says("ADDED", "8", 1, "True");
	before = cache_get(cache, "n");
	answer = json_deep_copy(before);
	json_put_str(json_at(answer, "metadata"), "resourceVersion", "9");
	json_put_bool(answer, "ours", true);
	cache_learn(cache, answer);
	/* Its text is the one of version 8. */
	node_says("MODIFIED", "10", 1, "True");
	answer = cache_get(cache, "n");
	assert_null(json_at(answer, "ours"));
	json_decref(answer);
	assert_kept("10", "True");
}

TEST_WITH(a_list_that_says_the_same_keeps_all_that_it_names, set_up, tear_down)
{
	struct err err = {0};

	node_says("ADDED", "8", 1, "True");
	feed_list(&feed, false);
	feed_open(&feed);
	receive("{\"items\":[{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"8\"}"
		","
		"\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
		"\"lastHeartbeatTime\":\"2\"}]}}],\"metadata\":{\"resourceVersion\":\"9\"}}");
	assert_int_equal(feed_close(&feed, &err), 0);
	assert_true(cache_has(cache, "n"));
	assert_int_equal(reads, 1);
	assert_int_equal(changes, 1);
}

TEST_WITH(a_bookmark_before_the_end_of_a_stream_is_no_stream, set_up, tear_down)
{
	const char *bookmark = "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
			       "\"resourceVersion\":\"9\"}}}\n";
	struct err err = {0};

	feed_list(&feed, true);
	feed_open(&feed);
	assert_int_equal(feed_bytes(&feed, bookmark, strlen(bookmark), &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "NotStreamed");
}
