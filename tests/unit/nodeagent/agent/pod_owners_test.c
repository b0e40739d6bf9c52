// SPDX-License-Identifier: Apache-2.0
/*
 * Owners of pods: each pod is read once, one after the other, as long as it has a device.
 */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "nodeagent/agent/pod_owners.h"
#include "tests/fakes/scripted.h"

#define POD(name) "GET /api/v1/namespaces/ml/pods/" name
#define OWNED                                                                                      \
	"{\"metadata\": {\"namespace\": \"ml\", \"ownerReferences\": [{\"kind\": \"Job\", "        \
	"\"name\": \"train\", \"controller\": true}]}}"

#define GONE "{\"kind\": \"Status\", \"reason\": \"NotFound\", \"details\": {\"name\": \"a\"}}"

static struct scripted s;
static struct pod_owners *owners;

static int set_up(void **state)
{
	scripted_open(&s);
	owners = pod_owners_new(s.client);
	return 0;
}

static int tear_down(void **state)
{
	pod_owners_free(owners);
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
	/* And what comes of the last one. */
	scripted_for(&s, 20);
	assert_int_equal(http_script_count(s.http, ""), n);
}

static const json_t *of(const char *first, const char *second)
{
	json_auto_t *pods = json_object();

	json_put_str(pods, "0000:3b:00.2", first);
	json_put_str(pods, "0000:3b:00.3", second);
	return pod_owners_of(owners, pods);
}

TEST_WITH(each_pod_is_read_once, set_up, tear_down)
{
	const json_t *known;

	reply(POD("a"), (struct http_reply){.body = OWNED});
	reply(POD("b"), (struct http_reply){.body = "{\"metadata\": {\"namespace\": \"ml\"}}"});
	assert_int_equal(json_object_size(of("ml/a", "ml/b")), 0);
	until_requests(2);
	known = of("ml/a", "ml/b");
	assert_string_equal(json_str_at(known, "ml/a", "kind"), "Job");
	assert_string_equal(json_str_at(known, "ml/a", "namespace"), "ml");
	assert_string_equal(json_str_at(known, "ml/a", "name"), "train");
	/* One that nobody owns is known, too. */
	assert_null(json_at(known, "ml/b"));
	until_requests(2);
}

TEST_WITH(who_has_no_device_any_more_is_forgotten, set_up, tear_down)
{
	reply(POD("a"), (struct http_reply){.body = OWNED});
	(void)of("ml/a", NULL);
	until_requests(1);
	assert_int_equal(json_object_size(of("ml/a", NULL)), 1);
	assert_int_equal(json_object_size(of(NULL, NULL)), 0);
	reply(POD("a"), (struct http_reply){.body = OWNED});
	assert_int_equal(json_object_size(of("ml/a", NULL)), 0);
	until_requests(2);
}

TEST_WITH(what_cannot_be_read_is_asked_for_after_the_others, set_up, tear_down)
{
	for (int i = 0; i < 2; i++)
		reply(POD("a"),
		      (struct http_reply){.status = 403, .body = "{\"reason\": \"Forbidden\"}"});
	(void)of("ml/a", "ml/b");
	until_requests(1);
	reply(POD("b"), (struct http_reply){.body = OWNED});
	(void)of("ml/a", "ml/b");
	until_requests(3);
	reply(POD("a"), (struct http_reply){.status = 404, .body = GONE});
	assert_string_equal(json_str_at(of("ml/a", "ml/b"), "ml/b", "kind"), "Job");
	until_requests(4);
	(void)of("ml/a", "ml/b");
	until_requests(4);
}

TEST_WITH(an_answer_for_who_is_gone_meanwhile_is_dropped, set_up, tear_down)
{
	reply(POD("a"), (struct http_reply){.body = OWNED});
	(void)of("ml/a", NULL);
	assert_int_equal(json_object_size(of(NULL, NULL)), 0);
	until_requests(1);
	assert_int_equal(json_object_size(of(NULL, NULL)), 0);
}
