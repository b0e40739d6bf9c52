/* SPDX-License-Identifier: Apache-2.0 */
/* What is read before anything is taken: little at a time, whatever users made of it. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/live_reads.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/ipam/allocate/release.h"
#include "tests/fakes/scripted.h"

#define LIST "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=5"

struct looking {
	struct scripted server;
	struct live_reads *looks;
	int answers;
	bool is_once;
	json_t *found; /* of the last one; NULL: it failed */
};

static void on_looked(void *arg, unsigned int of, const char *name, json_t *found,
		      const struct err *err)
{
	struct looking *l = arg;

	assert_int_equal(of, 7);
	l->answers++;
	json_decref(l->found);
	l->found = err ? NULL : json_incref(found);
}

static void open_looking(struct looking *l)
{
	*l = (struct looking){0};
	scripted_open(&l->server);
	l->looks = live_reads_new(l->server.client, on_looked, l);
}

static void close_looking(struct looking *l)
{
	json_decref(l->found);
	live_reads_free(l->looks);
	scripted_close(&l->server);
}

static void ask(struct looking *l, const char *name, const char *kind, const char *key)
{
	json_auto_t *wanted = json_pack("[{s:s, s:s}]", "kind", kind, "key", key);

	live_reads_begin(l->looks, 7, name, wanted, l->is_once);
}

static void reply_with(struct looking *l, const char *request, const char *body)
{
	http_script_add(l->server.http, request, &(struct http_reply){.body = body});
}

static void count_request(void *arg)
{
	++*(int *)arg;
}

/* Each may be 3 MiB: a user has a thousand of them end at once. */
TEST(many_objects_are_read_few_at_a_time)
{
	struct looking l;
	int asked = 0;

	open_looking(&l);
	http_script_add(
		l.server.http, "GET /api/v1/namespaces/ml/pods/",
		&(struct http_reply){
			.status = -1, .always = true, .seen = count_request, .arg = &asked});
	for (int i = 0; i < 80; i++) {
		auto_free char *key = str_printf("ml/p-%d", i);

		ask(&l, key, KIND_POD, key);
	}
	scripted_until(&l.server, &asked, 32);
	scripted_for(&l.server, 50);
	assert_int_equal(asked, 32);
	assert_int_equal(l.answers, 0);
	close_looking(&l);
}

TEST(all_that_wait_are_read_in_the_end)
{
	struct looking l;

	open_looking(&l);
	http_script_add(l.server.http, "GET /api/v1/namespaces/ml/pods/",
			&(struct http_reply){.body = "{}", .always = true});
	for (int i = 0; i < 80; i++) {
		auto_free char *key = str_printf("ml/p-%d", i);

		ask(&l, key, KIND_POD, key);
	}
	scripted_until(&l.server, &l.answers, 80);
	close_looking(&l);
}

TEST(pods_of_a_node_are_read_page_by_page)
{
	struct looking l;

	open_looking(&l);
	reply_with(&l, LIST "&continue=a%26b ",
		   "{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"b\",\"namespace\":"
		   "\"ml\"}}]}");
	reply_with(&l, LIST " ",
		   "{\"metadata\":{\"continue\":\"a&b\"},\"items\":[{\"metadata\":{\"name\":\"a\","
		   "\"namespace\":\"ml\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}]}");
	ask(&l, "drain", BOX_PODS_OF_NODE, "n1");
	scripted_until(&l.server, &l.answers, 1);
	assert_int_equal(json_object_size(json_at(l.found, BOX_PODS_OF_NODE, "n1")), 2);
	assert_null(json_at(l.found, BOX_PODS_OF_NODE, "n1", "ml/a", "spec", "containers"));
	close_looking(&l);
}

TEST(a_list_that_ends_in_its_midst_is_no_answer)
{
	struct looking l;

	open_looking(&l);
	reply_with(&l, LIST " ", "{\"metadata\":{\"continue\":\"c\"},\"items\":[]}");
	http_script_add(l.server.http, LIST "&continue=c ", &(struct http_reply){.status = 410});
	ask(&l, "drain", BOX_PODS_OF_NODE, "n1");
	scripted_until(&l.server, &l.answers, 1);
	assert_null(l.found);
	/* What comes then is read. */
	reply_with(&l, LIST " ", "{\"metadata\":{},\"items\":[]}");
	ask(&l, "drain", BOX_PODS_OF_NODE, "n1");
	scripted_until(&l.server, &l.answers, 2);
	assert_non_null(l.found);
	close_looking(&l);
}

/* A pod of the same name may have come since, and what was asked may be about that one. */
TEST(what_is_asked_for_meanwhile_is_read_once_more)
{
	struct looking l;

	open_looking(&l);
	reply_with(&l, "GET /api/v1/namespaces/ml/pods/p", "{\"metadata\": {\"uid\": \"before\"}}");
	reply_with(&l, "GET /api/v1/namespaces/ml/pods/p", "{\"metadata\": {\"uid\": \"now\"}}");
	reply_with(&l, "GET /api/v1/nodes/n1", "{}");
	ask(&l, "ml/p", KIND_POD, "ml/p");
	ask(&l, "ml/p", KIND_NODE, "n1");
	ask(&l, "ml/p", KIND_POD, "ml/p");
	scripted_until(&l.server, &l.answers, 1);
	scripted_for(&l.server, 50);
	assert_int_equal(l.answers, 1);
	assert_string_equal(json_str_at(l.found, KIND_POD, "ml/p", "metadata", "uid"), "now");
	assert_int_equal(http_script_count(l.server.http, "GET /api/v1/nodes"), 0);
	close_looking(&l);
}

static void ask_again(void *arg)
{
	ask(arg, "ml/p", KIND_POD, "ml/p");
}

/* A drain asks in each of its turns for the same nodes and pods. */
TEST(what_is_being_read_serves_who_asks_for_it_once)
{
	struct looking l;

	open_looking(&l);
	l.is_once = true;
	reply_with(&l, LIST " ", "{\"metadata\":{},\"items\":[]}");
	ask(&l, "drain", BOX_PODS_OF_NODE, "n1");
	ask(&l, "drain", BOX_PODS_OF_NODE, "n1");
	scripted_until(&l.server, &l.answers, 1);
	/* More than that is read, and has the answer. */
	reply_with(&l, "GET /api/v1/namespaces/ml/pods/p", "{}");
	reply_with(&l, "GET /api/v1/nodes/n1", "{}");
	ask(&l, "drain", KIND_POD, "ml/p");
	ask(&l, "drain", KIND_NODE, "n1");
	scripted_until(&l.server, &l.answers, 2);
	assert_non_null(json_at(l.found, KIND_NODE, "n1"));
	assert_int_equal(http_script_unexpected(l.server.http), 0);
	assert_int_equal(http_script_unused(l.server.http), 0);
	close_looking(&l);
}

/* Users may change their objects as often as they like. */
TEST(questions_without_end_have_an_answer)
{
	struct looking l;

	open_looking(&l);
	http_script_add(
		l.server.http, "GET /api/v1/namespaces/ml/pods/p",
		&(struct http_reply){.body = "{}", .always = true, .seen = ask_again, .arg = &l});
	ask(&l, "ml/p", KIND_POD, "ml/p");
	scripted_until(&l.server, &l.answers, 1);
	close_looking(&l);
}

TEST(what_no_decision_reads_is_dropped)
{
	static const struct {
		const char *kind, *path, *body, *kept;
	} cases[] = {
		{KIND_POD, "/api/v1/namespaces/ml/pods/x",
		 "{\"metadata\":{\"uid\":\"u\",\"managedFields\":[1]},\"spec\":{\"nodeName\":\"n\","
		 "\"containers\":[1],\"initContainers\":[1],\"volumes\":[1],"
		 "\"imagePullSecrets\":[{}],\"nodeSelector\":{\"a\":\"b\"}}}",
		 "{\"metadata\":{\"uid\":\"u\"},\"spec\":{\"nodeName\":\"n\"}}"},
		{KIND_STATEFUL_SET, "/apis/apps/v1/namespaces/ml/statefulsets/x",
		 "{\"metadata\":{\"annotations\":{\"a\":\"b\"}},\"spec\":{\"replicas\":2,"
		 "\"template\":{},\"volumeClaimTemplates\":[]}}",
		 "{\"metadata\":{},\"spec\":{\"replicas\":2}}"},
		{KIND_VIRTUAL_MACHINE, "/apis/kubevirt.io/v1/namespaces/ml/virtualmachines/x",
		 "{\"metadata\":{\"annotations\":{\"a\":\"b\"}},\"spec\":{}}", "{\"metadata\":{}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *request = str_printf("GET %s ", cases[i].path);
		auto_free char *text = NULL;
		struct looking l;

		open_looking(&l);
		reply_with(&l, request, cases[i].body);
		ask(&l, "ml/x", cases[i].kind, "ml/x");
		scripted_until(&l.server, &l.answers, 1);
		text = json_text(json_at(l.found, cases[i].kind, "ml/x"));
		assert_string_equal(text, cases[i].kept);
		close_looking(&l);
	}
}
