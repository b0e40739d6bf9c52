// SPDX-License-Identifier: Apache-2.0
/*
 * Plans with several operations against a scripted API server: each write depends on the version
 * that was decided on.
 */
#include "tests/unit/operator/mirrored.h"

#include <time.h>

#include "lib/base/clock.h"
#include "operator/writer/applier.h"
#include "operator/writer/revert_backoff.h"

#define CONFIGS "/apis/spiderpool.spidernet.io/v2beta1/namespaces/net/spidermultusconfigs/a"
#define NADS    "/apis/k8s.cni.cncf.io/v1/namespaces/net/network-attachment-definitions"

/* The condition of another writer of the same status. */
#define STATUS(value)  "{conditions: [{type: Injected, status: '" value "'}]}"
#define CONFIG(status) "{metadata: {name: a, namespace: net}, spec: {}, status: " status "}"

static int64_t frozen_us; /* 0: time goes on */

/* Takes the place of lib/base's weak one. */
int64_t clock_us(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return frozen_us ? frozen_us : (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct fixture {
	struct mirrored_test t;
	struct recorder *recorder;
	struct applier *applier;
	struct plan plan;
	int ended;
	struct applier_result result;
	struct err err;
	bool statuses_wait;
	int answered;    /* writes that were told with their time */
	json_t *evicted; /* the answer to the last eviction */
	struct strbuf groups, posted;
} f;

static bool note_posted(void *arg, const json_t *op, const json_t *object)
{
	if (str_eq(json_str_at(op, "op"), "post"))
		strbuf_addf(&f.posted, "%s; ", json_str_at(op, "key"));
	return false;
}

static void note_group(void *arg, const char *group, const json_t *op, const struct err *err)
{
	strbuf_addf(&f.groups, "%s %s; ", group, err ? err->reason : "ok");
}

static void no_learning(void *arg, bool begins)
{
}

static void count_answered(void *arg, const char *kind, const char *verb, int64_t took_us,
			   const struct err *err)
{
	assert_true(took_us >= 0);
	f.answered++;
}

static void on_evicted(void *arg, const char *key, json_t *answer)
{
	assert_string_equal(key, "ml/train-0");
	json_decref(f.evicted);
	f.evicted = json_incref(answer);
}

static int set_up(void **state)
{
	f = (struct fixture){0};
	frozen_us = 0;
	mirrored_open(&f.t);
	mirrored_sync(&f.t);
	f.recorder = recorder_new(f.t.server.client, "test", "me", false, NULL);
	f.applier = applier_new(&(struct applier_config){
		.client = f.t.server.client,
		.mirror = f.t.mirror,
		.recorder = f.recorder,
		.remember = note_posted,
		.evicted = on_evicted,
		.group_ended = note_group,
		.answered = count_answered,
		.learning = no_learning,
	});
	mirrored_put(&f.t, KIND_MULTUS_CONFIG, CONFIG(STATUS("True")));
	return 0;
}

static int tear_down(void **state)
{
	plan_done(&f.plan);
	json_decref(f.evicted);
	strbuf_done(&f.groups);
	strbuf_done(&f.posted);
	applier_free(f.applier);
	recorder_free(f.recorder);
	mirrored_close(&f.t);
	return 0;
}

static void on_done(void *arg, const struct applier_result *result, const struct err *err)
{
	f.ended++;
	f.result = *result;
	if (err)
		f.err = *err;
}

static void carry_out(void)
{
	applier_run(f.applier, 1, &f.plan, f.statuses_wait, on_done, NULL);
	scripted_until(&f.t.server, &f.ended, 1);
}

static void reply(const char *start, const char *yaml, loop_fn *seen)
{
	json_auto_t *body = mirrored_yaml(yaml);
	auto_free char *text = json_text(body);

	http_script_add(f.t.server.http, start, &(struct http_reply){.body = text, .seen = seen});
}

static void plan_nad(void)
{
	plan_apply(&f.plan, KIND_NAD,
		   mirrored_yaml("{metadata: {name: nad, namespace: net}, spec: {config: '{}'}}"));
}

/*
 * What multus_config does: the status keeps the condition of the other writer as it was in its
 * world.
 */
static void plan_config_status(void)
{
	plan_status(&f.plan, KIND_MULTUS_CONFIG, "net/a", mirrored_yaml(STATUS("True")));
	json_put_str(json_at(json_array_get(f.plan.ops, json_array_size(f.plan.ops) - 1), "status"),
		     "nad", "n");
}

static void other_writer_is_faster(void *arg)
{
	mirrored_put(&f.t, KIND_MULTUS_CONFIG, CONFIG(STATUS("False")));
}

TEST_WITH(a_status_that_somebody_wrote_meanwhile_is_not_overwritten, set_up, tear_down)
{
	plan_nad();
	plan_config_status();
	reply("POST " NADS,
	      "{metadata: {name: nad, namespace: net, resourceVersion: '50'}, spec: {config: "
	      "'{}'}}",
	      other_writer_is_faster);
	carry_out();
	assert_int_equal(f.err.class, ERR_CONFLICT);
	assert_string_equal(f.err.reason, "Overtaken");
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " CONFIGS "/status"), 0);
}

static int known_as_own;

static void the_watch_is_faster(void *arg)
{
	json_auto_t *ours = mirrored_yaml(CONFIG(STATUS("True")));
	json_auto_t *others = mirrored_yaml(CONFIG(STATUS("False")));

	json_put_str(json_at(ours, "status"), "nad", "n");
	known_as_own = applier_is_writing(f.applier, KIND_MULTUS_CONFIG, ours) &&
		       !applier_is_writing(f.applier, KIND_NAD, ours) &&
		       !applier_is_writing(f.applier, KIND_MULTUS_CONFIG, others);
}

/* So that what a ledger gave back is not taken for what another program took out. */
TEST_WITH(a_write_that_the_watch_tells_before_its_answer_is_known_as_our_own, set_up, tear_down)
{
	json_auto_t *ours = mirrored_yaml(CONFIG(STATUS("True")));

	json_put_str(json_at(ours, "status"), "nad", "n");
	known_as_own = false;
	plan_config_status();
	reply("PATCH " CONFIGS "/status", CONFIG(STATUS("True")), the_watch_is_faster);
	carry_out();
	assert_true(known_as_own);
	assert_false(applier_is_writing(f.applier, KIND_MULTUS_CONFIG, ours));
}

TEST_WITH(statuses_and_their_events_are_left_out_when_they_have_to_wait, set_up, tear_down)
{
	plan_config_status();
	plan_event(&f.plan, KIND_MULTUS_CONFIG, "net/a", true, "Failed", "for this reason");
	plan_nad();
	reply("POST " NADS,
	      "{metadata: {name: nad, namespace: net, resourceVersion: '50'}, spec: {config: "
	      "'{}'}}",
	      NULL);
	f.statuses_wait = true;
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_true(f.result.left);
	assert_true(f.result.wrote);
	assert_int_equal(f.answered, 1);
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " CONFIGS "/status"), 0);
	assert_int_equal(http_script_count(f.t.server.http, "POST /api/v1/"), 0);
}

TEST_WITH(a_status_that_says_so_already_leaves_nothing_to_do, set_up, tear_down)
{
	plan_status(&f.plan, KIND_MULTUS_CONFIG, "net/a", mirrored_yaml(STATUS("True")));
	f.statuses_wait = true;
	carry_out();
	assert_false(f.result.left);
}

static void somebody_makes_the_nad(void *arg)
{
	mirrored_put(&f.t, KIND_NAD,
		     "{metadata: {name: nad, namespace: net}, spec: {config: 'of somebody'}}");
}

TEST_WITH(an_object_that_came_meanwhile_is_not_patched, set_up, tear_down)
{
	plan_config_status();
	plan_nad();
	reply("PATCH " CONFIGS "/status",
	      "{metadata: {name: a, namespace: net, resourceVersion: '50'}}",
	      somebody_makes_the_nad);
	carry_out();
	assert_int_equal(f.err.class, ERR_CONFLICT);
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " NADS), 0);
	assert_int_equal(http_script_count(f.t.server.http, "POST "), 0);
}

TEST_WITH(a_write_of_the_same_plan_moves_the_version_on, set_up, tear_down)
{
	const char *request = NULL;

	plan_meta(&f.plan, KIND_MULTUS_CONFIG, "net/a", mirrored_yaml("{labels: {x: '1'}}"));
	plan_config_status();
	reply("PATCH " CONFIGS,
	      "{metadata: {name: a, namespace: net, resourceVersion: '77', labels: {x: '1'}}, "
	      "spec: {}, "
	      "status: " STATUS("True") "}",
	      NULL);
	reply("PATCH " CONFIGS "/status",
	      "{metadata: {name: a, namespace: net, resourceVersion: '78'}}", NULL);
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	for (size_t i = 0; (request = http_script_request(f.t.server.http, i)); i++)
		if (str_starts(request, "PATCH " CONFIGS "/status"))
			break;
	assert_non_null(strstr(request, "\"resourceVersion\":\"77\""));
}

#define POOLS      "/apis/spiderpool.spidernet.io/v2beta1/spiderippools/"
#define POOL(name) "{metadata: {name: " name "}, spec: {}, status: {allocatedIPCount: 0}}"

/* The status of a pool as a group, and a message about a pod that needs the groups of `needs`. */
static void plan_ledger(const char *pool, const char *pod, const char *needs)
{
	json_auto_t *names = mirrored_yaml(needs);
	size_t first = json_array_size(f.plan.ops);

	plan_status(&f.plan, KIND_IP_POOL, pool, mirrored_yaml("{allocatedIPCount: 1}"));
	plan_group(&f.plan, first, pool, NULL);
	first = json_array_size(f.plan.ops);
	plan_post(&f.plan, "decided", pod, json_true());
	plan_group(&f.plan, first, NULL, names);
}

static void refuse(const char *pool, int status, const char *reason)
{
	auto_free char *start = str_printf("PATCH " POOLS "%s/status", pool);
	json_auto_t *object = json_pack("{s:s, s:s, s:s, s:s, s:{s:s}, s:i}", "kind", "Status",
					"status", "Failure", "reason", reason, "message", "no",
					"details", "name", pool, "code", status);
	auto_free char *body = json_text(object);

	http_script_add(f.t.server.http, start,
			&(struct http_reply){.status = status, .body = body});
}

static void accept(const char *pool)
{
	auto_free char *start = str_printf("PATCH " POOLS "%s/status", pool);
	auto_free char *object =
		str_printf("{metadata: {name: %s, resourceVersion: '90'}, spec: {}}", pool);

	reply(start, object, NULL);
}

static void plan_three_ledgers(void)
{
	mirrored_put(&f.t, KIND_IP_POOL, POOL("a"));
	mirrored_put(&f.t, KIND_IP_POOL, POOL("b"));
	mirrored_put(&f.t, KIND_IP_POOL, POOL("c"));
	plan_ledger("a", "ml/of-a", "[a]");
	plan_ledger("b", "ml/of-b", "[b]");
	plan_ledger("c", "ml/of-a-and-c", "[a, c]");
}

/* The rest of one object's part does not concern the others. */
TEST_WITH(a_refused_group_leaves_the_others_alone, set_up, tear_down)
{
	plan_three_ledgers();
	refuse("a", 422, "Invalid");
	accept("b");
	accept("c");
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_string_equal(strbuf_str(&f.groups), "a Invalid; b ok; c ok; ");
	assert_string_equal(strbuf_str(&f.posted), "ml/of-b; ");
	assert_true(f.result.again_ms > 0);
}

TEST_WITH(a_group_whose_object_moved_leaves_the_others_alone, set_up, tear_down)
{
	plan_three_ledgers();
	refuse("a", 409, "Conflict");
	accept("b");
	accept("c");
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_string_equal(strbuf_str(&f.groups), "a Conflict; b ok; c ok; ");
	assert_string_equal(strbuf_str(&f.posted), "ml/of-b; ");
}

/*
 * "failed calling webhook", for as long as the webhook is away. Each is sent once: the others wait.
 */
TEST_WITH(groups_whose_webhook_is_away_leave_the_others_alone, set_up, tear_down)
{
	plan_three_ledgers();
	refuse("a", 500, "InternalError");
	refuse("b", 500, "InternalError");
	accept("c");
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_string_equal(strbuf_str(&f.groups), "a InternalError; b InternalError; c ok; ");
	assert_string_equal(strbuf_str(&f.posted), "");
	assert_true(f.result.again_ms > 0);
}

/* What ends the run is said of its group, too: it is left out next time, and others are tried. */
TEST_WITH(a_server_that_fails_ends_the_run, set_up, tear_down)
{
	plan_three_ledgers();
	refuse("a", 501, "NotImplemented");
	refuse("b", 501, "NotImplemented");
	carry_out();
	assert_string_equal(f.err.reason, "NotImplemented");
	assert_string_equal(strbuf_str(&f.groups), "a NotImplemented; b NotImplemented; ");
	assert_string_equal(strbuf_str(&f.posted), "");
}

TEST_WITH(a_pool_that_is_gone_gives_nothing, set_up, tear_down)
{
	plan_three_ledgers();
	refuse("a", 404, "NotFound");
	accept("b");
	accept("c");
	carry_out();
	assert_string_equal(strbuf_str(&f.groups), "a NotFound; b ok; c ok; ");
	assert_string_equal(strbuf_str(&f.posted), "ml/of-b; ");
}

static void somebody_deletes_the_second_pool(void *arg)
{
	mirrored_remove(&f.t, KIND_IP_POOL, "b");
}

/* docs/ipam.md: a SpiderEndpoint "says what the ledgers say". */
TEST_WITH(a_pool_that_goes_while_another_is_written_gives_nothing, set_up, tear_down)
{
	plan_three_ledgers();
	reply("PATCH " POOLS "a/status", "{metadata: {name: a, resourceVersion: '90'}, spec: {}}",
	      somebody_deletes_the_second_pool);
	accept("c");
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_string_equal(strbuf_str(&f.groups), "a ok; b Overtaken; c ok; ");
	assert_string_equal(strbuf_str(&f.posted), "ml/of-a; ml/of-a-and-c; ");
}

TEST_WITH(who_leads_no_more_writes_no_other_group, set_up, tear_down)
{
	plan_three_ledgers();
	refuse("a", 403, "Forbidden");
	refuse("b", 403, "Forbidden");
	refuse("c", 403, "Forbidden");
	carry_out();
	/* That we may not write is said of each; nothing was made true. */
	assert_string_equal(strbuf_str(&f.posted), "");
}

TEST_WITH(a_deletion_depends_on_the_version_too, set_up, tear_down)
{
	const char *request = NULL;

	plan_delete(&f.plan, KIND_MULTUS_CONFIG, "net/a", "uid-of-a");
	reply("DELETE " CONFIGS, "{kind: Status, status: Success}", NULL);
	carry_out();
	for (size_t i = 0; (request = http_script_request(f.t.server.http, i)); i++)
		if (str_starts(request, "DELETE "))
			break;
	assert_non_null(strstr(request, "\"resourceVersion\":"));
	assert_non_null(strstr(request, "\"uid\":\"uid-of-a\""));
}

static void until_event_names(const char *who)
{
	auto_free char *text = str_printf("%s keeps undoing", who);

	while (http_script_count(f.t.server.http, "POST /api/v1/namespaces/") == 0)
		scripted_for(&f.t.server, 10);
	for (size_t i = 0; http_script_request(f.t.server.http, i); i++)
		if (strstr(http_script_request(f.t.server.http, i), text) &&
		    strstr(http_script_request(f.t.server.http, i), "\"WriteUndone\""))
			return;
	fail_msg("no event says who undoes it");
}

/* As an admission controller does that adds a field to each object that it sees. */
TEST_WITH(a_patch_that_is_undone_again_and_again_is_held_back, set_up, tear_down)
{
	static const char undone[] =
		"{metadata: {name: nad, namespace: net, resourceVersion: '%d', "
		"managedFields: [{manager: orbweaver-operator, time: '2026-01-01T00:00:02Z'}, "
		"{manager: enforcer, time: '2026-01-01T00:00:01Z'}]}, spec: {config: '{}'}}";
	int patches = 0;

	frozen_us = clock_us();
	http_script_add(f.t.server.http, "POST /api/v1/namespaces/net/events",
			&(struct http_reply){.body = "{}", .always = true});
	for (int i = 0; i < REVERT_BACKOFF_FREE + 3; i++) {
		auto_free char *answer = str_printf(undone, 1000 + 2 * i);

		f.t.version = (uint64_t)(1000 + 2 * i);
		mirrored_put(&f.t, KIND_NAD,
			     "{metadata: {name: nad, namespace: net}, spec: {config: theirs}}");
		reply("PATCH " NADS "/nad", answer, NULL);
		plan_nad();
		f.ended = 0;
		carry_out();
		assert_int_equal(f.err.class, ERR_NONE);
		mirrored_remove(&f.t, KIND_NAD, "net/nad");
	}
	patches = (int)http_script_count(f.t.server.http, "PATCH " NADS);
	assert_int_equal(patches, REVERT_BACKOFF_FREE);
	assert_true(f.result.again_ms > 0);
	until_event_names("enforcer");
}

/* As two controllers do, of which one takes what the other makes for its own. */
TEST_WITH(an_object_that_is_deleted_again_and_again_is_held_back, set_up, tear_down)
{
	frozen_us = clock_us();
	http_script_add(f.t.server.http, "POST /api/v1/namespaces/net/events",
			&(struct http_reply){.body = "{}", .always = true});
	for (int i = 0; i < REVERT_BACKOFF_FREE + 3; i++) {
		auto_free char *answer = str_printf("{metadata: {name: nad, namespace: net, "
						    "resourceVersion: '%d'}, spec: {config: '{}'}}",
						    1000 + 2 * i);

		reply("POST " NADS, answer, NULL);
		plan_nad();
		f.ended = 0;
		carry_out();
		assert_int_equal(f.err.class, ERR_NONE);
		if (i < REVERT_BACKOFF_FREE)
			mirrored_remove(&f.t, KIND_NAD, "net/nad");
	}
	assert_int_equal(http_script_count(f.t.server.http, "POST " NADS), REVERT_BACKOFF_FREE);
	assert_true(f.result.again_ms > 0);
}

#define NODES "/api/v1/nodes/"

static void label(const char *node)
{
	plan_node_labels(&f.plan, node, mirrored_yaml("{x: '1'}"));
	plan_group(&f.plan, 0, "labels", NULL);
	f.ended = 0;
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
}

static void answer_labels(const char *node, int status, const char *yaml)
{
	auto_free char *start = str_printf("PATCH " NODES "%s/status", node);
	json_auto_t *body = mirrored_yaml(yaml);
	auto_free char *text = json_text(body);

	http_script_add(f.t.server.http, start,
			&(struct http_reply){.status = status, .body = text});
}

/* So that the right to label Nodes gives none to cordon them: nodes/status, not nodes. */
TEST_WITH(labels_of_nodes_are_written_with_the_status, set_up, tear_down)
{
	mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w1}}");
	answer_labels("w1", 200, "{metadata: {name: w1, resourceVersion: '50', labels: {x: '1'}}}");
	label("w1");
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " NODES "w1/status"), 1);
	assert_string_equal(strbuf_str(&f.groups), "labels ok; ");
}

/* Conditions of the kubelet and of others stay: a merge patch would replace the list. */
TEST_WITH(a_condition_of_a_node_merges_with_those_of_others, set_up, tear_down)
{
	static const char type[] = "\r\nContent-Type: application/strategic-merge-patch+json\r\n";
	const char *request;
	int n = 0;

	mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w1}}");
	answer_labels("w1", 200, "{metadata: {name: w1, resourceVersion: '50'}}");
	plan_node_status(&f.plan, "w1", NULL,
			 mirrored_yaml("{type: RdmaNetworkReady, status: 'True'}"));
	plan_group(&f.plan, 0, "health", NULL);
	f.ended = 0;
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_string_equal(strbuf_str(&f.groups), "health ok; ");
	for (size_t i = 0; (request = http_script_request(f.t.server.http, i)); i++)
		n += strstr(request, "PATCH ") && strstr(request, type);
	assert_int_equal(n, 1);
}

#define NO_RIGHT "{kind: Status, status: Failure, reason: Forbidden, message: 'no', code: 403}"

TEST_WITH(one_refused_label_holds_back_those_of_all_nodes, set_up, tear_down)
{
	frozen_us = clock_us();
	mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w1}}");
	mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w2}}");
	answer_labels("w1", 403, NO_RIGHT);
	label("w1");
	assert_true(f.result.again_ms >= APPLIER_LABELS_PAUSE_MS);
	for (int i = 0; i < 3; i++) {
		label("w1");
		label("w2");
		assert_true(f.result.again_ms >= APPLIER_LABELS_PAUSE_MS);
	}
	assert_int_equal(http_script_count(f.t.server.http, "PATCH "), 1);
	assert_string_equal(strbuf_str(&f.groups), "labels Forbidden; ");

	/* Still: another pause. */
	frozen_us += (int64_t)APPLIER_LABELS_PAUSE_MS * 1000;
	answer_labels("w2", 403, NO_RIGHT);
	label("w2");
	label("w1");
	assert_true(f.result.again_ms >= APPLIER_LABELS_PAUSE_MS);
	assert_int_equal(http_script_count(f.t.server.http, "PATCH "), 2);
	assert_string_equal(strbuf_str(&f.groups), "labels Forbidden; labels Forbidden; ");

	/* The administrator has given the right. */
	frozen_us += (int64_t)APPLIER_LABELS_PAUSE_MS * 1000;
	answer_labels("w2", 200, "{metadata: {name: w2, resourceVersion: '90', labels: {x: '1'}}}");
	answer_labels("w1", 200, "{metadata: {name: w1, resourceVersion: '91', labels: {x: '1'}}}");
	label("w2");
	label("w1");
	assert_int_equal(http_script_count(f.t.server.http, "PATCH "), 4);
}

static void label_both_at_once(void)
{
	struct plan second = {0};

	plan_node_labels(&f.plan, "w1", mirrored_yaml("{x: '1'}"));
	plan_group(&f.plan, 0, "labels", NULL);
	plan_node_labels(&second, "w2", mirrored_yaml("{x: '1'}"));
	plan_group(&second, 0, "labels", NULL);
	f.ended = 0;
	applier_run(f.applier, 1, &f.plan, false, on_done, NULL);
	applier_run(f.applier, 2, &second, false, on_done, NULL);
	scripted_until(&f.t.server, &f.ended, 2);
}

TEST_WITH(labels_in_flight_are_told_once_and_one_alone_tries_again, set_up, tear_down)
{
	frozen_us = clock_us();
	mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w1}}");
	mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w2}}");
	answer_labels("w1", 403, NO_RIGHT);
	answer_labels("w2", 403, NO_RIGHT);
	label_both_at_once();
	assert_int_equal(http_script_count(f.t.server.http, "PATCH "), 2);
	assert_string_equal(strbuf_str(&f.groups), "labels Forbidden; ");

	/* An answer that says nothing of the right: the next one tries. */
	frozen_us += (int64_t)APPLIER_LABELS_PAUSE_MS * 1000;
	answer_labels("w1", 422, "{kind: Status, status: Failure, reason: Invalid, code: 422}");
	label_both_at_once();
	assert_int_equal(http_script_count(f.t.server.http, "PATCH "), 3);
	answer_labels("w2", 200, "{metadata: {name: w2, resourceVersion: '90'}}");
	label("w2");
	assert_string_equal(strbuf_str(&f.groups), "labels Forbidden; labels Invalid; labels ok; ");
}

TEST_WITH(plans_of_other_writes_go_on_while_labels_are_refused, set_up, tear_down)
{
	frozen_us = clock_us();
	mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w1}}");
	answer_labels("w1", 403, NO_RIGHT);
	label("w1");
	plan_meta(&f.plan, KIND_NODE, "w1", mirrored_yaml("{annotations: {a: b}}"));
	reply("PATCH " NODES "w1", "{metadata: {name: w1, resourceVersion: '50'}}", NULL);
	f.ended = 0;
	carry_out();
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " NODES "w1"), 2);
}

/* Another controller that removes labels it does not know. */
TEST_WITH(labels_that_are_removed_again_and_again_are_held_back, set_up, tear_down)
{
	frozen_us = clock_us();
	http_script_add(f.t.server.http, "POST /api/v1/namespaces/default/events",
			&(struct http_reply){.body = "{}", .always = true});
	for (int i = 0; i < REVERT_BACKOFF_FREE + 3; i++) {
		auto_free char *answer = str_printf(
			"{metadata: {name: w1, resourceVersion: '%d', labels: {x: '1'}}}",
			1001 + 2 * i);

		f.t.version = (uint64_t)(1000 + 2 * i);
		mirrored_put(&f.t, KIND_NODE, "{metadata: {name: w1}}");
		answer_labels("w1", 200, answer);
		label("w1");
		mirrored_remove(&f.t, KIND_NODE, "w1");
	}
	assert_int_equal(http_script_count(f.t.server.http, "PATCH "), REVERT_BACKOFF_FREE);
	assert_true(f.result.again_ms > 0);
}

/* As somebody does who wants none of ours, and sets another taint each time. */
TEST_WITH(taints_and_cordons_that_are_undone_again_and_again_are_held_back, set_up, tear_down)
{
	frozen_us = clock_us();
	http_script_add(f.t.server.http, "POST /api/v1/namespaces/default/events",
			&(struct http_reply){.body = "{}", .always = true});
	for (int i = 0; i < REVERT_BACKOFF_FREE + 3; i++) {
		auto_free char *node =
			str_printf("{metadata: {name: w1}, spec: {taints: [{key: other-%d}]}}", i);
		auto_free char *answer =
			str_printf("{metadata: {name: w1, resourceVersion: '%d', managedFields: "
				   "[{manager: enforcer, time: '2026-01-01T00:00:01Z'}]}}",
				   1001 + 2 * i);

		f.t.version = (uint64_t)(1000 + 2 * i);
		mirrored_put(&f.t, KIND_NODE, node);
		reply("PATCH " NODES "w1?", answer, NULL);
		reply("PATCH " NODES "w1?", answer, NULL);
		plan_cordon(&f.plan, "w1", true, mirrored_yaml("{annotations: {by: us}}"));
		plan_taints(
			&f.plan, "w1",
			json_pack("[{s:o}, {s:s}]", "key", json_fmt("other-%d", i), "key", "ours"));
		plan_group(&f.plan, 0, "w1", NULL);
		f.ended = 0;
		carry_out();
		/* Its labels are another matter. */
		answer_labels("w1", 200, answer);
		label("w1");
		mirrored_remove(&f.t, KIND_NODE, "w1");
	}
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " NODES "w1?"),
			 2 * REVERT_BACKOFF_FREE);
	until_event_names("enforcer");
}

#define EVICTION "POST /api/v1/namespaces/ml/pods/train-0/eviction"

static void answer_eviction(int status, const char *yaml)
{
	json_auto_t *body = mirrored_yaml(yaml);
	auto_free char *text = json_text(body);

	http_script_add(f.t.server.http, EVICTION,
			&(struct http_reply){.status = status, .body = text});
}

TEST_WITH(an_eviction_is_asked_in_the_version_that_the_server_knows, set_up, tear_down)
{
	plan_evict(&f.plan, "ml/train-0", "uid-1");
	answer_eviction(400, "{kind: Status, reason: BadRequest, message: 'no kind \"Eviction\" is "
			     "registered for version \"policy/v1\" in scheme'}");
	answer_eviction(201, "{kind: Status, status: Success}");
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_null(json_at(f.evicted, "reason"));
	assert_string_equal(json_str_at(f.evicted, "uid"), "uid-1");
	/* Known from now on. */
	plan_evict(&f.plan, "ml/train-0", "uid-1");
	answer_eviction(201, "{kind: Status, status: Success}");
	f.ended = 0;
	carry_out();
	assert_int_equal(http_script_count(f.t.server.http, EVICTION), 3);
}

TEST_WITH(a_refused_eviction_is_no_failure_of_the_plan, set_up, tear_down)
{
	static const struct {
		int status;
		const char *body, *reason, *message;
	} cases[] = {
		{429,
		 "{kind: Status, reason: TooManyRequests, message: 'Cannot evict pod', details: "
		 "{causes: [{reason: DisruptionBudget, message: 'The disruption budget web needs 2 "
		 "healthy pods and has 2 currently'}]}}",
		 "PdbRefuses",
		 "The disruption budget web needs 2 healthy pods and has 2 currently: scale the "
		 "workload up, or end the pod"},
		{500,
		 "{kind: Status, reason: InternalError, message: 'this pod has more than one "
		 "PodDisruptionBudget, which the eviction subresource does not support'}",
		 "TwoPdbs", NULL},
		{403, "{kind: Status, reason: Forbidden, message: no}", "EvictionFailed", NULL},
		{404, "{kind: Status, reason: NotFound, message: gone}", NULL, NULL},
		{409, "{kind: Status, reason: Conflict, message: another uid}", NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		plan_evict(&f.plan, "ml/train-0", "uid-1");
		answer_eviction(cases[i].status, cases[i].body);
		f.ended = 0;
		carry_out();
		assert_int_equal(f.err.class, ERR_NONE);
		assert_true(str_eq(json_str_at(f.evicted, "reason"), cases[i].reason));
		if (cases[i].message)
			assert_string_equal(json_str_at(f.evicted, "message"), cases[i].message);
	}
	/* Asked once each: a refusal is an answer. */
	assert_int_equal(http_script_count(f.t.server.http, EVICTION), ARRAY_LEN(cases));
}

TEST_WITH(a_part_of_a_status_leaves_the_rest, set_up, tear_down)
{
	plan_status_part(&f.plan, KIND_MULTUS_CONFIG, "net/a", mirrored_yaml("{nad: n}"));
	reply("PATCH " CONFIGS "/status",
	      "{metadata: {name: a, namespace: net, resourceVersion: '60'}, spec: {}, status: "
	      "{conditions: [{type: Injected, status: 'True'}], nad: n}}",
	      NULL);
	/* It is there already, and gone already. */
	plan_status_part(&f.plan, KIND_MULTUS_CONFIG, "net/a", mirrored_yaml("{nad: n}"));
	plan_status_part(&f.plan, KIND_MULTUS_CONFIG, "net/a", mirrored_yaml("{other: null}"));
	carry_out();
	assert_int_equal(f.err.class, ERR_NONE);
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " CONFIGS "/status"), 1);
}

TEST_WITH(a_part_of_a_status_that_moved_meanwhile_is_not_written, set_up, tear_down)
{
	plan_nad();
	plan_status_part(&f.plan, KIND_MULTUS_CONFIG, "net/a", mirrored_yaml("{nad: m}"));
	reply("POST " NADS,
	      "{metadata: {name: nad, namespace: net, resourceVersion: '70'}, spec: {config: "
	      "'{}'}}",
	      other_writer_is_faster);
	carry_out();
	assert_string_equal(f.err.reason, "Overtaken");
	assert_int_equal(http_script_count(f.t.server.http, "PATCH " CONFIGS "/status"), 0);
}

TEST_WITH(what_is_left_at_the_end_is_abandoned, set_up, tear_down)
{
	plan_nad();
	applier_run(f.applier, 1, &f.plan, false, on_done, NULL);
	applier_free(take_ptr(f.applier));
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.err.class, ERR_TRANSIENT);
	assert_string_equal(f.err.reason, "ShuttingDown");
}
