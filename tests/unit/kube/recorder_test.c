// SPDX-License-Identifier: Apache-2.0
/*
 * Events: one object per thing told, counted when it repeats, held back when there is too much.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/recorder.h"
#include "tests/fakes/scripted.h"
#include "tests/support/until.h"

#define NEW  "POST /api/v1/namespaces/lab/events?"
#define MORE "PATCH /api/v1/namespaces/lab/events/w."

static struct scripted s;
static struct metrics *metrics;
static struct recorder *recorder;

static int set_up(void **state)
{
	scripted_open(&s);
	metrics = metrics_new();
	recorder = recorder_new(s.client, "orbweaver-test", "pod-1", false, metrics);
	return 0;
}

static int tear_down(void **state)
{
	recorder_free(recorder);
	metrics_free(metrics);
	scripted_close(&s);
	return 0;
}

static void reply(const char *start, struct http_reply reply)
{
	http_script_add(s.http, start, &reply);
}

static void tell_about(const char *name, const char *message)
{
	const struct event_object object = {&scripted_widgets, "lab", name, "u-1", NULL};

	recorder_emit(recorder, &object, true, "Broken", message);
}

static void until_requests(size_t n)
{
	until(s.loop, http_script_count(s.http, "") >= n);
	assert_int_equal(http_script_count(s.http, ""), n);
}

static json_t *body_of(size_t request)
{
	const char *text = strstr(http_script_request(s.http, request), "\r\n\r\n") + 4;
	json_t *body = json_parse(text, strlen(text), NULL);

	assert_non_null(body);
	return body;
}

TEST_WITH(an_event_says_what_happened_to_what, set_up, tear_down)
{
	json_auto_t *event = NULL;

	reply(NEW, (struct http_reply){.status = 201, .body = "{}"});
	tell_about("w", "no such NIC");
	until_requests(1);
	event = body_of(0);
	assert_string_equal(json_str_at(event, "involvedObject", "kind"), "Widget");
	assert_string_equal(json_str_at(event, "involvedObject", "apiVersion"), "test.example/v1");
	assert_string_equal(json_str_at(event, "involvedObject", "uid"), "u-1");
	assert_string_equal(json_str_at(event, "type"), "Warning");
	assert_string_equal(json_str_at(event, "reason"), "Broken");
	assert_string_equal(json_str_at(event, "message"), "no such NIC");
	assert_string_equal(json_str_at(event, "source", "component"), "orbweaver-test");
	assert_true(str_starts(json_name(event), "w."));
}

TEST_WITH(the_same_again_is_a_higher_count_of_the_first, set_up, tear_down)
{
	json_auto_t *patch = NULL;

	reply(NEW, (struct http_reply){.status = 201, .body = "{}", .delay_ms = 50});
	reply(MORE, (struct http_reply){.body = "{}", .always = true});
	tell_about("w", "m");
	tell_about("w", "m"); /* while the first is on its way: no patch may overtake it */
	tell_about("w", "m");
	until_requests(1);
	until_requests(2);
	patch = body_of(1);
	assert_int_equal(json_integer_value(json_at(patch, "count")), 3);
	scripted_for(&s, 100);
	assert_int_equal(http_script_count(s.http, ""), 2);
	tell_about("w", "another");
	until_requests(3);
	assert_int_equal(http_script_count(s.http, NEW), 2);
}

TEST_WITH(an_event_that_is_gone_is_made_anew, set_up, tear_down)
{
	reply(NEW, (struct http_reply){.status = 201, .body = "{}", .always = true});
	reply(MORE, (struct http_reply){.status = 404});
	tell_about("w", "m");
	until_requests(1);
	scripted_for(&s, 20);
	tell_about("w", "m");
	until_requests(2);
	scripted_for(&s, 20);
	tell_about("w", "m");
	until_requests(3);
	assert_int_equal(http_script_count(s.http, NEW), 2);
}

TEST_WITH(who_talks_too_much_is_held_back, set_up, tear_down)
{
	reply(NEW, (struct http_reply){.status = 201, .body = "{}", .always = true});
	for (int i = 0; i < EVENT_BURST + 10; i++) {
		auto_free char *message = str_printf("number %d", i);

		tell_about("w", message);
	}
	until_requests(EVENT_BURST);
	scripted_for(&s, 50);
	assert_int_equal(http_script_count(s.http, ""), EVENT_BURST);
	assert_true(metric_get(metric_counter(metrics, "orbweaver_events_total", "", "outcome"),
			       "held back") == 10);
}

TEST_WITH(a_crowd_of_events_is_written_a_few_at_a_time, set_up, tear_down)
{
	const int crowd = EVENT_IN_FLIGHT + 4;

	assert_true(crowd < (int)EVENT_BURST);
	for (int i = 0; i < EVENT_IN_FLIGHT; i++)
		reply(NEW, (struct http_reply){.status = 201, .body = "{}", .delay_ms = 2000});
	reply(NEW, (struct http_reply){.status = 201, .body = "{}", .always = true});
	for (int i = 0; i < crowd; i++) {
		auto_free char *message = str_printf("number %d", i);

		tell_about("w", message);
	}
	tell_about("w", "number 19"); /* while it waits: told with its first write */
	until_requests(EVENT_IN_FLIGHT);
	/* What could go as well would have gone together with them. */
	for (int i = 0; i < 50; i++)
		loop_turn(s.loop, false);
	assert_int_equal(http_script_count(s.http, ""), EVENT_IN_FLIGHT);
	until_requests(crowd);
	scripted_for(&s, 50);
	assert_int_equal(http_script_count(s.http, ""), crowd);
}

TEST_WITH(a_long_message_is_cut_between_characters, set_up, tear_down)
{
	json_auto_t *event = NULL;
	auto_strbuf struct strbuf message = {0};
	const char *got = NULL;

	reply(NEW, (struct http_reply){.status = 201, .body = "{}", .always = true});
	strbuf_addc(&message, 'x');
	for (int i = 0; i < 600; i++)
		strbuf_adds(&message, "\xc3\xa9");
	tell_about("w", message.data);
	until_requests(1);
	event = body_of(0);
	got = json_str_at(event, "message");
	assert_int_equal(strlen(got),
			 EVENT_MESSAGE_MAX - 1); /* x and 511 characters of two bytes */
	assert_memory_equal(got, message.data, strlen(got));
}

TEST_WITH(bytes_that_are_no_text_do_not_make_it_too_long, set_up, tear_down)
{
	json_auto_t *event = NULL;
	char message[1001];

	reply(NEW, (struct http_reply){.status = 201, .body = "{}", .always = true});
	memset(message, 0xff, sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	tell_about("w", message);
	until_requests(1);
	event = body_of(0);
	assert_in_range(strlen(json_str_at(event, "message")), EVENT_MESSAGE_MAX - 3,
			EVENT_MESSAGE_MAX);
}

TEST_WITH(a_long_name_is_cut_where_a_name_may_end, set_up, tear_down)
{
	json_auto_t *event = NULL;
	char name[254];

	reply(NEW, (struct http_reply){.status = 201, .body = "{}", .always = true});
	memset(name, 'n', sizeof(name) - 1);
	memset(name + 220, '-', 20);
	name[sizeof(name) - 1] = '\0';
	tell_about(name, "m");
	until_requests(1);
	event = body_of(0);
	assert_int_equal(strlen(json_name(event)), 220 + 17);
	assert_int_equal(json_name(event)[219], 'n');
	assert_int_equal(json_name(event)[220], '.');
}

TEST_WITH(cluster_scoped_objects_have_their_events_in_default, set_up, tear_down)
{
	static const struct kube_resource node = {"", "v1", "nodes", "Node", false};
	const struct event_object object = {&node, NULL, "w1", NULL, NULL};
	json_auto_t *event = NULL;

	reply("POST /api/v1/namespaces/default/events?",
	      (struct http_reply){.status = 201, .body = "{}"});
	recorder_emit(recorder, &object, false, "Fine", "m");
	until_requests(1);
	event = body_of(0);
	assert_null(json_at(event, "involvedObject", "namespace"));
	assert_string_equal(json_str_at(event, "involvedObject", "apiVersion"), "v1");
	assert_string_equal(json_str_at(event, "type"), "Normal");
}

TEST_WITH(what_many_processes_say_once_has_one_name, set_up, tear_down)
{
	struct event_object object = {&scripted_widgets, "lab", "w", "u-1", .once = "17"};
	struct recorder *other = recorder_new(s.client, "orbweaver-test", "pod-2", false, NULL);
	json_auto_t *first = NULL, *second = NULL, *later = NULL;

	for (int i = 0; i < 3; i++)
		reply(NEW, (struct http_reply){.status = 201, .body = "{}"});
	recorder_emit(recorder, &object, true, "Broken", "entry 3");
	until_requests(1);
	recorder_emit(other, &object, true, "Broken", "entry 3");
	until_requests(2);
	object.once = "18";
	recorder_emit(recorder, &object, true, "Broken", "entry 3");
	until_requests(3);
	first = body_of(0);
	second = body_of(1);
	later = body_of(2);
	assert_string_equal(json_name(first), json_name(second));
	assert_string_not_equal(json_name(first), json_name(later));
	recorder_free(other);
}

TEST_WITH(a_recorder_goes_while_events_are_on_their_way, set_up, tear_down)
{
	reply(NEW,
	      (struct http_reply){.status = 201, .body = "{}", .delay_ms = 20, .always = true});
	tell_about("w", "one");
	tell_about("w", "two");
	scripted_for(&s, 10);
	tell_about("w", "three");
	recorder_free(recorder);
	recorder = NULL;
	scripted_for(&s, 50);
}
