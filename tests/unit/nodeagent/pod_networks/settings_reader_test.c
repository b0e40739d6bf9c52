// SPDX-License-Identifier: Apache-2.0
/* How often coordinators make the agent ask the API server, and what they hear. */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/pod_networks/settings_reader.h"
#include "tests/fakes/scripted.h"

#define POD    "GET /api/v1/namespaces/ml/pods/p"
#define LIST   "GET /apis/spiderpool.spidernet.io/v2beta1/spidercoordinators"
#define CONFIG "GET /api/v1/namespaces/spiderpool/configmaps/spiderpool-conf"

#define NO_OBJECT "{\"kind\": \"Status\", \"reason\": \"NotFound\", \"details\": {\"name\": \"x\"}}"
#define REFUSED   "{\"kind\": \"Status\", \"reason\": \"Forbidden\", \"message\": \"not you\"}"
#define SYNCED                                                                                     \
	"{\"items\": [{\"metadata\": {\"name\": \"default\"}, \"spec\": {\"mode\": "               \
	"\"underlay\"}, "                                                                          \
	"\"status\": {\"phase\": \"Synced\"}}]}"

struct heard {
	int calls;
	json_t *settings;
	struct err err;
};

static struct scripted s;
static struct addresses *addresses;
static struct settings_reader *reader;
static json_t *pod;

static int set_up(void **state)
{
	scripted_open(&s);
	addresses = addresses_new(&(struct addresses_config){
		.loop = s.loop,
		.client = s.client,
		.node = "n1",
		.ns = "orbweaver-system",
		.config_ns = "spiderpool",
	});
	reader = settings_reader_new(&(struct settings_reader_config){
		.loop = s.loop, .client = s.client, .addresses = addresses});
	pod = json_pack("{s:s, s:s}", "namespace", "ml", "name", "p");
	return 0;
}

static int tear_down(void **state)
{
	settings_reader_free(reader);
	addresses_free(addresses);
	json_decref(pod);
	scripted_close(&s);
	return 0;
}

static void reply(const char *start, int status, const char *body)
{
	http_script_add(s.http, start, &(struct http_reply){.status = status, .body = body});
}

static void reply_all(void)
{
	reply(POD, 404, NO_OBJECT);
	reply(LIST, 200, SYNCED);
	reply(CONFIG, 404, NO_OBJECT);
}

static void on_heard(void *arg, const json_t *settings, const struct err *err)
{
	struct heard *heard = arg;

	heard->calls++;
	json_decref(heard->settings);
	heard->settings = json_incref((json_t *)settings);
	heard->err = err ? *err : (struct err){0};
}

static void assert_underlay(struct heard *heard)
{
	assert_int_equal(heard->calls, 1);
	assert_string_equal(json_str_at(heard->settings, "mode"), "underlay");
	json_decref(take_ptr(heard->settings));
}

TEST_WITH(they_are_in_use_once_a_coordinator_has_asked, set_up, tear_down)
{
	struct heard first = {0};

	reply_all();
	settings_foresee(reader, "c1", pod);
	assert_false(settings_are_in_use(reader));
	(void)settings_ask(reader, "c1", pod, on_heard, &first);
	assert_true(settings_are_in_use(reader));
	scripted_until(&s, &first.calls, 1);
	assert_underlay(&first);
}

TEST_WITH(one_reading_serves_the_nics_of_a_sandbox, set_up, tear_down)
{
	struct heard first = {0}, second = {0}, third = {0};

	reply_all();
	assert_non_null(settings_ask(reader, "c1", pod, on_heard, &first));
	assert_non_null(settings_ask(reader, "c1", pod, on_heard, &second));
	scripted_until(&s, &second.calls, 1);
	assert_null(settings_ask(reader, "c1", pod, on_heard, &third));
	assert_underlay(&first);
	assert_underlay(&second);
	assert_underlay(&third);
	assert_int_equal(http_script_count(s.http, ""), 3);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(what_was_foreseen_needs_no_question, set_up, tear_down)
{
	struct heard first = {0}, next = {0};

	reply_all();
	(void)settings_ask(reader, "c1", pod, on_heard, &first);
	scripted_until(&s, &first.calls, 1);
	reply_all();
	settings_foresee(reader, "c2", pod);
	settings_foresee(reader, "c2", pod);
	/* Still on its way: the question waits for it. */
	assert_non_null(settings_ask(reader, "c2", pod, on_heard, &next));
	scripted_until(&s, &next.calls, 1);
	assert_underlay(&first);
	assert_underlay(&next);
	assert_int_equal(http_script_count(s.http, ""), 6);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

/* Nobody hears of what failed before anybody asked, and nobody is served with it. */
TEST_WITH(what_was_foreseen_in_vain_is_read_again, set_up, tear_down)
{
	struct heard first = {0}, next = {0}, last = {0};

	reply_all();
	(void)settings_ask(reader, "c1", pod, on_heard, &first);
	scripted_until(&s, &first.calls, 1);
	reply(POD, 404, NO_OBJECT);
	reply(LIST, 403, REFUSED);
	reply(CONFIG, 404, NO_OBJECT);
	settings_foresee(reader, "c2", pod);
	scripted_for(&s, 100);
	reply_all();
	(void)settings_ask(reader, "c2", pod, on_heard, &next);
	scripted_until(&s, &next.calls, 1);
	assert_underlay(&first);
	assert_underlay(&next);
	reply(POD, 404, NO_OBJECT);
	reply(LIST, 403, REFUSED);
	reply(CONFIG, 404, NO_OBJECT);
	(void)settings_ask(reader, "c3", pod, on_heard, &last);
	scripted_until(&s, &last.calls, 1);
	assert_null(last.settings);
	assert_string_equal(last.err.reason, "Forbidden");
}

TEST_WITH(a_reading_serves_for_five_seconds, set_up, tear_down)
{
	struct heard first = {0}, next = {0};

	reply_all();
	(void)settings_ask(reader, "c1", pod, on_heard, &first);
	scripted_until(&s, &first.calls, 1);
	scripted_for(&s, SETTINGS_FRESH_MS + 100);
	reply_all();
	(void)settings_ask(reader, "c1", pod, on_heard, &next);
	scripted_until(&s, &next.calls, 1);
	assert_underlay(&first);
	assert_underlay(&next);
	assert_int_equal(http_script_count(s.http, ""), 6);
}

TEST_WITH(one_that_takes_longer_is_waited_for, set_up, tear_down)
{
	struct heard heard = {0};

	reply(POD, 404, NO_OBJECT);
	reply(CONFIG, 404, NO_OBJECT);
	http_script_add(s.http, LIST,
			&(struct http_reply){
				.status = 200, .body = SYNCED, .delay_ms = 2 * SETTINGS_FRESH_MS});
	(void)settings_ask(reader, "c1", pod, on_heard, &heard);
	scripted_until(&s, &heard.calls, 1);
	assert_underlay(&heard);
	assert_int_equal(http_script_count(s.http, ""), 3);
}

TEST_WITH(a_question_that_is_given_up_is_not_answered, set_up, tear_down)
{
	struct heard given_up = {0}, other = {0};

	reply_all();
	settings_cancel(settings_ask(reader, "c1", pod, on_heard, &given_up));
	(void)settings_ask(reader, "c1", pod, on_heard, &other);
	scripted_until(&s, &other.calls, 1);
	assert_underlay(&other);
	assert_int_equal(given_up.calls, 0);
	settings_cancel(NULL);
}
