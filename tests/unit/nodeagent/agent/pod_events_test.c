// SPDX-License-Identifier: Apache-2.0
/*
 * Events on pods: with the uid that `kubectl describe` looks for.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/agent/pod_events.h"
#include "tests/fakes/scripted.h"

#define POD   "GET /api/v1/namespaces/ml/pods/p"
#define EVENT "POST /api/v1/namespaces/ml/events"

static struct scripted s;
static struct metrics *metrics;
static struct recorder *recorder;
static struct pod_events *events;

static int set_up(void **state)
{
	scripted_open(&s);
	metrics = metrics_new();
	recorder = recorder_new(s.client, "orbweaver-agent", "n1", false, metrics);
	events = pod_events_new(s.client, recorder);
	return 0;
}

static int tear_down(void **state)
{
	pod_events_free(events);
	recorder_free(recorder);
	metrics_free(metrics);
	scripted_close(&s);
	return 0;
}

static void reply(const char *start, struct http_reply reply)
{
	http_script_add(s.http, start, &reply);
}

static void until_requests(size_t n)
{
	for (int i = 0; i < 200 && http_script_count(s.http, "") < n; i++)
		scripted_for(&s, 10);
	assert_int_equal(http_script_count(s.http, ""), n);
}

static json_t *event(void)
{
	const char *text = strstr(http_script_request(s.http, 1), "\r\n\r\n") + 4;
	json_t *body = json_parse(text, strlen(text), NULL);

	assert_non_null(body);
	return body;
}

TEST_WITH(an_event_has_the_uid_of_the_pod, set_up, tear_down)
{
	json_auto_t *told = NULL;

	reply(POD, (struct http_reply){.body = "{\"metadata\": {\"uid\": \"u-7\"}}"});
	reply(EVENT, (struct http_reply){.status = 201, .body = "{}"});
	pod_events_emit(events, "ml/p/c", true, "DeviceFilesMoved", "delete the pod");
	until_requests(2);
	told = event();
	assert_string_equal(json_str_at(told, "involvedObject", "kind"), "Pod");
	assert_string_equal(json_str_at(told, "involvedObject", "name"), "p");
	assert_string_equal(json_str_at(told, "involvedObject", "uid"), "u-7");
	assert_string_equal(json_str_at(told, "reason"), "DeviceFilesMoved");
	assert_string_equal(json_str_at(told, "message"), "delete the pod");
}

TEST_WITH(a_pod_that_cannot_be_read_has_an_event_all_the_same, set_up, tear_down)
{
	json_auto_t *told = NULL;

	reply(POD, (struct http_reply){.status = 403, .body = "{\"reason\": \"Forbidden\"}"});
	reply(EVENT, (struct http_reply){.status = 201, .body = "{}"});
	pod_events_emit(events, "ml/p/c", true, "DeviceFilesMoved", "delete the pod");
	until_requests(2);
	told = event();
	assert_null(json_str_at(told, "involvedObject", "uid"));
}

static const struct http_reply gone = {
	.status = 404,
	.body = "{\"kind\": \"Status\", \"reason\": \"NotFound\", \"details\": {\"name\": \"p\"}}",
};

TEST_WITH(a_pod_that_is_gone_has_none, set_up, tear_down)
{
	reply(POD, gone);
	pod_events_emit(events, "ml/p/c", true, "DeviceFilesMoved", "delete the pod");
	until_requests(1);
	scripted_for(&s, 100);
	until_requests(1);
}

TEST_WITH(what_is_under_way_is_dropped_at_the_end, set_up, tear_down)
{
	reply(POD, (struct http_reply){.body = "{}", .delay_ms = 1000});
	pod_events_emit(events, "ml/p/c", true, "DeviceFilesMoved", "delete the pod");
	until_requests(1);
	pod_events_free(events);
	events = NULL;
	scripted_for(&s, 50);
}

TEST_WITH(only_so_many_wait_at_a_time, set_up, tear_down)
{
	for (int i = 0; i <= POD_EVENTS_WAITING_MAX; i++)
		reply("GET ", gone);
	for (int i = 0; i < POD_EVENTS_WAITING_MAX; i++)
		pod_events_emit(events, "ml/p", false, "LinkHealthy", "it has a link");
	pod_events_emit(events, "ml/q", false, "LinkHealthy", "it has a link");
	until_requests(POD_EVENTS_WAITING_MAX);
	scripted_for(&s, 100);
	pod_events_emit(events, "ml/r", false, "LinkHealthy", "it has a link");
	until_requests(POD_EVENTS_WAITING_MAX + 1);
	assert_int_equal(http_script_count(s.http, "GET /api/v1/namespaces/ml/pods/q"), 0);
}
