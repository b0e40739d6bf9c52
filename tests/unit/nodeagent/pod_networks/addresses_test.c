// SPDX-License-Identifier: Apache-2.0
/*
 * CNI calls that want addresses for pods which have ended, and for pods whose sandbox is made
 * again.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "nodeagent/pod_networks/addresses.h"
#include "tests/fakes/scripted.h"

#define ENDPOINT  "/apis/spiderpool.spidernet.io/v2beta1/namespaces/ml/spiderendpoints/p"
#define NO_OBJECT "{\"kind\": \"Status\", \"reason\": \"NotFound\", \"details\": {\"name\": \"p\"}}"
#define META(UID) "\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\", \"uid\": \"" UID "\"}"
#define STATUS(UID)                                                                                \
	"\"status\": {\"current\": {\"uid\": \"" UID                                               \
	"\", \"ips\": [{\"interface\": \"net1\", \"ipv4\": \"10.6.0.10/24\", \"ipv4Pool\": "       \
	"\"a\"}]}}"

#define ALIVE "{" META("u-1") ", \"spec\": {\"nodeName\": \"n1\"}}"
#define ENDED                                                                                      \
	"{" META("u-1") ", \"spec\": {\"restartPolicy\": \"OnFailure\"}, "                         \
			"\"status\": {\"phase\": \"Succeeded\"}}"
#define DOWN                                                                                       \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\", \"resourceVersion\": \"7\", "     \
	"\"annotations\": {\"orbweaver.io/down\": \"u-1\"}}, " STATUS("u-1") "}"
#define OF_POD_BEFORE "{" META("e") ", " STATUS("u-0") "}"
#define ANSWERS       "{" META("e") ", " STATUS("u-1") "}"

static struct scripted s;
static struct addresses *addresses;
static struct {
	int calls;
	json_t *status;
	struct err err;
} got;

static void open_with(bool (*holds)(void *arg, const char *uid))
{
	scripted_open(&s);
	memset(&got, 0, sizeof(got));
	addresses = addresses_new(&(struct addresses_config){
		.loop = s.loop,
		.client = s.client,
		.node = "n1",
		.ns = "orbweaver-system",
		.config_ns = "spiderpool",
		.holds = holds,
		.second_look_ms = 20,
	});
}

static int set_up(void **state)
{
	open_with(NULL);
	return 0;
}

static int tear_down(void **state)
{
	addresses_free(addresses);
	json_decref(got.status);
	scripted_close(&s);
	return 0;
}

static void reply(const char *start, int status, const char *body)
{
	http_script_add(s.http, start, &(struct http_reply){.status = status, .body = body});
}

static void on_got(void *arg, const json_t *status, const struct err *err)
{
	got.calls++;
	got.status = json_incref((json_t *)status);
	if (err)
		got.err = *err;
}

#define POOLS           "/apis/spiderpool.spidernet.io/v2beta1/spiderippools"
#define LEDGER(RECORDS) "{\"metadata\": {}, \"status\": {\"allocatedIPs\": \"{" RECORDS "}\"}}"
#define RECORD(ADDRESS, POD, UID)                                                                  \
	"\\\"" ADDRESS "\\\": {\\\"pod\\\": \\\"ml/" POD "\\\", \\\"podUid\\\": \\\"" UID "\\\"}"

/* What the pools' ledgers have, unless a test has said something else of them before. */
static void admit(void)
{
	http_script_add(s.http, "GET " POOLS "/a ",
			&(struct http_reply){.body = LEDGER(RECORD("10.6.0.10", "p", "u-1")),
					     .always = true});
	http_script_add(s.http, "GET " POOLS "/b ",
			&(struct http_reply){.body = LEDGER(RECORD("10.7.0.10", "p", "u-1")),
					     .always = true});
}

/* How many requests there were, besides those of ledgers. */
static size_t requests(void)
{
	return http_script_count(s.http, "") - http_script_count(s.http, "GET " POOLS "/");
}

/* Much later than scripted_until() waits: nothing here may wait for the deadline. */
static void want_for(const char *nic)
{
	json_auto_t *asks = json_pack("[{s:s}]", "nic", nic);

	admit();
	got.calls = 0;
	json_decref(take_ptr(got.status));
	(void)addresses_want(addresses,
			     &(struct addresses_request){
				     .ns = "ml",
				     .name = "p",
				     .uid = "u-1",
				     .asks = asks,
				     .deadline_ms = clock_ms() + 3600000,
			     },
			     on_got, NULL);
	assert_int_equal(got.calls, 0);
	scripted_until(&s, &got.calls, 1);
}

static void want(void)
{
	want_for("net1");
}

static void assert_pod_ended(void)
{
	assert_null(got.status);
	assert_int_equal(got.err.class, ERR_INVALID);
	assert_string_equal(got.err.reason, "PodEnded");
	assert_string_equal(got.err.text,
			    "pod ml/p has ended or is being deleted: it gets no addresses");
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(a_pod_that_has_ended_is_refused_at_once, set_up, tear_down)
{
	reply("GET " ENDPOINT, 404, NO_OBJECT);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ENDED);
	want();
	assert_pod_ended();
}

TEST_WITH(so_is_one_beside_the_addresses_of_the_pod_before, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, OF_POD_BEFORE);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ENDED);
	want();
	assert_pod_ended();
}

TEST_WITH(so_is_one_whose_addresses_are_being_given_back, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, DOWN);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ENDED);
	want();
	assert_pod_ended();
}

TEST_WITH(a_sandbox_that_is_made_again_takes_back_the_word_and_keeps_the_addresses, set_up,
	  tear_down)
{
	reply("GET " ENDPOINT, 200, DOWN);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ALIVE);
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	want();
	assert_int_equal(got.err.class, ERR_NONE);
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_non_null(strstr(http_script_request(s.http, 2), "\"orbweaver.io/down\":null"));
	assert_int_equal(http_script_unexpected(s.http), 0);
}

#define LIST "GET /apis/spiderpool.spidernet.io/v2beta1/namespaces/ml/spiderendpoints?"
#define LIST_OF(ITEMS)                                                                             \
	"{\"kind\": \"List\", \"metadata\": {\"resourceVersion\": \"9\"}, \"items\": [" ITEMS "]}"
#define MACHINES_POD                                                                               \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\", \"uid\": \"u-1\", "               \
	"\"ownerReferences\": [{\"apiVersion\": \"kubevirt.io/v1\", \"kind\": "                    \
	"\"VirtualMachineInstance\", \"name\": \"vm\", \"controller\": true}]}, "                  \
	"\"spec\": {\"nodeName\": \"n1\"}}"
#define MACHINES(UID)                                                                              \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"vm\", \"resourceVersion\": "           \
	"\"7\"}, " STATUS(UID) "}"
#define SWITCH(ON) "{\"data\": {\"conf.yml\": \"enableKubevirtStaticIP: " ON "\"}}"

/* It is watched a second time: nothing of the first is left (the sanitizer sees it). */
TEST_WITH(where_the_word_cannot_be_taken_back_the_endpoint_is_read_again, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, OF_POD_BEFORE);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ALIVE);
	reply(LIST, 200, LIST_OF(DOWN));
	/* The watch: it goes on until the endpoint is read again. */
	http_script_add(s.http, LIST, &(struct http_reply){.status = -1});
	reply("PATCH " ENDPOINT, 500, NO_OBJECT);
	reply("GET " ENDPOINT, 200, OF_POD_BEFORE);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ALIVE);
	reply(LIST, 200, LIST_OF(ANSWERS));
	want();
	assert_int_equal(got.err.class, ERR_NONE);
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(http_script_unused(s.http), 0);
}

TEST_WITH(addresses_that_are_there_need_no_look_at_the_pod, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, ANSWERS);
	want();
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(requests(), 1);
}

/* ---- endpoints that users write -------------------------------------------------------------- */

static void assert_not_admitted(const char *why)
{
	assert_null(got.status);
	assert_int_equal(got.err.class, ERR_INVALID);
	assert_string_equal(got.err.reason, "AddressNotAdmitted");
	assert_non_null(strstr(got.err.text, why));
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(an_address_that_no_ledger_has_for_the_pod_is_refused, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("GET " POOLS "/a", 200, LEDGER(RECORD("10.6.0.10", "victim", "u-2")));
	want();
	assert_not_admitted("SpiderEndpoint ml/p: address 10.6.0.10 is of pool \"a\", whose "
			    "ledger has it for pod ml/victim with UID u-2; ");
	/* Once the record is there again it is admitted: nothing was remembered. */
	memset(&got.err, 0, sizeof(got.err));
	reply("GET " ENDPOINT, 200, ANSWERS);
	want();
	assert_int_equal(got.err.class, ERR_NONE);
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
}

TEST_WITH(so_is_one_of_a_pool_that_does_not_exist, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("GET " POOLS "/a", 404, NO_OBJECT);
	want();
	assert_not_admitted("pool \"a\", which does not exist");
}

TEST_WITH(a_name_that_is_none_of_a_pool_is_not_asked_for, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200,
	      "{" META("e") ", \"status\": {\"current\": {\"uid\": \"u-1\", \"ips\": ["
			    "{\"interface\": \"net1\", \"ipv4\": \"10.6.0.10/24\", "
			    "\"ipv4Pool\": \"../../../../api/v1/nodes\"}]}}}");
	want();
	assert_not_admitted("which does not exist");
	assert_int_equal(http_script_count(s.http, ""), 1);
}

TEST_WITH(a_ledger_that_cannot_be_read_admits_nothing_until_it_can, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("GET " POOLS "/a", 403, "{\"kind\": \"Status\", \"reason\": \"Forbidden\"}");
	want();
	assert_int_equal(got.err.class, ERR_NONE);
	assert_int_equal(http_script_count(s.http, "GET " POOLS "/a"), 2);
}

/* ---- several NICs ---------------------------------------------------------------------------- */

#define TWO_NICS                                                                                   \
	"{" META("e") ", \"status\": {\"current\": {\"uid\": \"u-1\", \"ips\": ["                  \
		      "{\"interface\": \"net1\", \"ipv4\": \"10.6.0.10/24\", \"ipv4Pool\": "       \
		      "\"a\"}, {\"interface\": \"net2\", \"ipv4\": \"10.7.0.10/24\", "             \
		      "\"ipv4Pool\": \"b\"}]}}}"

static void on_released(void *arg, const struct err *err)
{
	got.calls++;
}

TEST_WITH(one_read_serves_the_nics_of_a_pod, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net1");
	want_for("net2");
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(requests(), 1);
	/* What it does not have is looked for. */
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ENDED);
	want_for("net3");
	assert_pod_ended();
}

static void foresee(const char *uid, size_t reads)
{
	addresses_foresee(addresses, "ml", "p", uid);
	while (requests() < reads)
		scripted_for(&s, 10);
	scripted_for(&s, 50);
}

TEST_WITH(a_read_before_the_first_nic_asks_serves_it, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, TWO_NICS);
	foresee("u-1", 1);
	want_for("net1");
	want_for("net2");
	assert_int_equal(requests(), 1);
}

TEST_WITH(nobody_is_served_by_a_read_that_began_before_a_release_ended, set_up, tear_down)
{
	http_script_add(s.http, "GET " ENDPOINT,
			&(struct http_reply){.status = 200, .body = TWO_NICS, .delay_ms = 300});
	reply("GET " ENDPOINT, 200, TWO_NICS);
	reply("PATCH " ENDPOINT, 200, TWO_NICS);
	addresses_foresee(addresses, "ml", "p", "u-1");
	while (requests() == 0)
		scripted_for(&s, 1);
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_int_equal(requests(), 3);
	scripted_for(&s, 500);
	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net1");
	assert_int_equal(requests(), 4);
	assert_int_equal(http_script_unused(s.http), 0);
}

/* Or the leader would take them away as soon as the pod ends, from interfaces that are there. */
TEST_WITH(addresses_that_are_being_given_back_serve_nobody_before_the_word_is_taken_back, set_up,
	  tear_down)
{
	reply("GET " ENDPOINT, 200, DOWN);
	foresee("u-1", 1);
	reply("GET " ENDPOINT, 200, DOWN);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ALIVE);
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	want_for("net1");
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(http_script_unused(s.http), 0);
}

TEST_WITH(a_read_serves_for_a_second, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net1");
	scripted_for(&s, 1500);
	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net2");
	assert_int_equal(requests(), 2);
}

TEST_WITH(a_read_is_of_no_use_once_something_was_said_of_the_pod, set_up, tear_down)
{
	json_auto_t *conflicts = json_pack("[{s:s}]", "ip", "10.9.0.1");

	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net1");
	reply("GET " ENDPOINT, 200, TWO_NICS);
	got.calls = 0;
	addresses_report_conflicts(addresses, "ml", "p", "u-1", conflicts, on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net2");
	reply("GET " ENDPOINT, 200, TWO_NICS);
	reply("PATCH " ENDPOINT, 200, TWO_NICS);
	got.calls = 0;
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net2");
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

/* ---- virtual machines ------------------------------------------------------------------------ */

#define ENDPOINTS "/apis/spiderpool.spidernet.io/v2beta1/namespaces/ml/spiderendpoints"
#define CONFIG    "GET /api/v1/namespaces/spiderpool/configmaps/spiderpool-conf"
TEST_WITH(the_addresses_of_a_machine_are_found_under_its_name, set_up, tear_down)
{
	reply("GET " ENDPOINTS "/p", 404, NO_OBJECT);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, MACHINES_POD);
	reply(CONFIG, 200, SWITCH("true"));
	reply("GET " ENDPOINTS "/vm", 200, MACHINES("u-1"));
	reply("GET " POOLS "/a", 200, LEDGER(RECORD("10.6.0.10", "vm", "u-1")));
	want();
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(http_script_unexpected(s.http), 0);
}

/* What the other pod of the machine has is asked for, without waiting for the leader to foresee. */
TEST_WITH(a_machine_that_migrates_is_asked_for_by_the_name_of_its_pod, set_up, tear_down)
{
	reply("GET " ENDPOINTS "/p", 404, NO_OBJECT);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, MACHINES_POD);
	reply(CONFIG, 404, NO_OBJECT);
	reply("GET " ENDPOINTS "/vm", 200, MACHINES("u-0"));
	reply("GET " ENDPOINTS "?", 200, LIST_OF(MACHINES("u-0")));
	reply("PATCH " ENDPOINTS "/vm", 200, MACHINES("u-0"));
	reply("GET " ENDPOINTS "?", 200,
	      "{\"type\": \"MODIFIED\", \"object\": {\"apiVersion\": "
	      "\"spiderpool.spidernet.io/v2beta1\", \"kind\": \"SpiderEndpoint\", \"metadata\": "
	      "{\"namespace\": \"ml\", \"name\": \"vm\", \"resourceVersion\": \"10\"}, " STATUS(
		      "u-1") "}}\n");
	reply("GET " POOLS "/a", 200, LEDGER(RECORD("10.6.0.10", "vm", "u-1")));
	want();
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(http_script_count(s.http, "PATCH " ENDPOINTS "/vm"), 1);
	for (int i = 0; i < 7; i++) {
		const char *request = http_script_request(s.http, i);

		if (str_starts(request, "PATCH"))
			assert_non_null(strstr(request, "\\\"pod\\\":\\\"p\\\""));
	}
}

TEST_WITH(a_machine_that_keeps_nothing_is_a_pod_like_others, set_up, tear_down)
{
	reply("GET " ENDPOINTS "/p", 200, OF_POD_BEFORE);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, MACHINES_POD);
	reply(CONFIG, 200, SWITCH("false"));
	reply("GET " ENDPOINTS "?", 200, LIST_OF(ANSWERS));
	want();
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(http_script_count(s.http, "GET " ENDPOINTS "/vm"), 0);
}

/* Spiderpool's agents write no label of the node, so the record has to tell the machine's name. */
TEST_WITH(the_word_about_a_machine_goes_where_its_record_says, set_up, tear_down)
{
	reply("GET " ENDPOINTS "/p", 404, NO_OBJECT);
	reply("GET " ENDPOINTS "?labelSelector", 200, LIST_OF(""));
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	reply("GET " POOLS, 200,
	      LIST_OF("{\"metadata\": {\"name\": \"a\"}, \"status\": {\"allocatedIPs\": "
		      "\"{\\\"10.6.0.10\\\": {\\\"pod\\\": \\\"ml/vm\\\", \\\"podUid\\\": "
		      "\\\"u-1\\\"}}\"}}"));
	reply("GET " ENDPOINTS "/vm", 200, MACHINES("u-1"));
	reply("PATCH " ENDPOINTS "/vm", 200, MACHINES("u-1"));
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_non_null(strstr(http_script_request(s.http, 5), "\"orbweaver.io/down\":\"u-1\""));
	assert_int_equal(http_script_unexpected(s.http), 0);
}

#define POOL_OF_P                                                                                  \
	"{\"metadata\": {\"name\": \"a\", \"resourceVersion\": \"7\"}, \"spec\": {\"subnet\": "    \
	"\"10.6.0.0/24\", \"ips\": [\"10.6.0.10\"]}, \"status\": {\"allocatedIPs\": "              \
	"\"{\\\"10.6.0.10\\\": {\\\"pod\\\": \\\"ml/p\\\", \\\"podUid\\\": "                       \
	"\\\"u-1\\\"}}\"}}"

#define POOL_STATUS "/apis/spiderpool.spidernet.io/v2beta1/spiderippools/a/status"

/* The number tells agents without a leader that all records are there. */
TEST_WITH(who_gives_back_does_not_vouch_for_the_other_records, set_up, tear_down)
{
	reply("GET " ENDPOINTS "/p", 404, NO_OBJECT);
	reply("GET " ENDPOINTS "?labelSelector", 200, LIST_OF(""));
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	reply("GET " POOLS, 200, LIST_OF(POOL_OF_P));
	reply("PUT " POOL_STATUS, 200, POOL_OF_P);
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_non_null(strstr(http_script_request(s.http, 4), "\"releasedIPs\""));
	assert_null(strstr(http_script_request(s.http, 4), "allocatedIPCount"));
}

#define POOL_OF(VERSION, RECORDS)                                                                  \
	"{\"metadata\": {\"name\": \"a\", \"resourceVersion\": \"" VERSION                         \
	"\"}, \"spec\": {\"subnet\": \"10.6.0.0/24\", \"ips\": [\"10.6.0.10-10.6.0.12\"]}, "       \
	"\"status\": {\"allocatedIPs\": \"{" RECORDS "}\"}}"

/* The pods of a namespace that is deleted: each waits until the one before has written. */
TEST_WITH(the_records_of_several_pods_are_given_back_one_after_the_other, set_up, tear_down)
{
	static const char *const pods[][2] = {{"p", "u-1"}, {"q", "u-2"}, {"r", "u-3"}};

	http_script_add(s.http, "GET " ENDPOINTS "?labelSelector",
			&(struct http_reply){.body = LIST_OF(""), .always = true});
	/* At once, so that one list of pools answers all. */
	http_script_add(s.http, "GET /api/v1/namespaces/ml/pods/",
			&(struct http_reply){
				.status = 404, .body = NO_OBJECT, .delay_ms = 50, .always = true});
	http_script_add(s.http, "GET " ENDPOINTS "/",
			&(struct http_reply){.status = 404, .body = NO_OBJECT, .always = true});
	reply("GET " POOLS, 200,
	      LIST_OF(POOL_OF(
		      "7", RECORD("10.6.0.10", "p", "u-1") "," RECORD(
				   "10.6.0.11", "q", "u-2") "," RECORD("10.6.0.12", "r", "u-3"))));
	/* Another program has taken out the second one. */
	reply("PUT " POOL_STATUS, 200,
	      POOL_OF("8", RECORD("10.6.0.10", "p", "u-1") "," RECORD("10.6.0.12", "r", "u-3")));
	http_script_add(s.http, "PUT " POOL_STATUS,
			&(struct http_reply){.body = POOL_OF("9", ""), .always = true});
	for (size_t i = 0; i < ARRAY_LEN(pods); i++)
		addresses_release(addresses, "ml", pods[i][0], pods[i][1], on_released, NULL);
	scripted_until(&s, &got.calls, 3);
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(a_pool_that_is_deleted_meanwhile_is_passed_over, set_up, tear_down)
{
	reply("GET " ENDPOINT, 404, NO_OBJECT);
	reply("GET " ENDPOINTS "?labelSelector", 200, LIST_OF(""));
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	reply("GET " POOLS, 200, LIST_OF(POOL_OF_P));
	reply("PUT " POOL_STATUS, 404, NO_OBJECT);
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_int_equal(http_script_count(s.http, "PUT"), 1);
}

/* A namespace that is deleted takes it away at any time. */
TEST_WITH(the_records_are_given_back_where_the_endpoint_goes_before_the_word, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("PATCH " ENDPOINT, 404, NO_OBJECT);
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	reply("GET " POOLS, 200, LIST_OF(POOL_OF_P));
	reply("PUT " POOL_STATUS, 200, POOL_OF("8", ""));
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

/* ---- one endpoint, two pods of its name ------------------------------------------------------ */

/* Of a StatefulSet: the pod before this one has ended, and this one ended before it had any. */
TEST_WITH(the_word_about_the_pod_before_is_not_replaced, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200,
	      "{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\", \"annotations\": "
	      "{\"orbweaver.io/down\": \"u-0\", \"orbweaver.io/asks\": \"{\\\"uid\\\": "
	      "\\\"u-1\\\", \\\"asks\\\": [{\\\"nic\\\": \\\"net1\\\"}]}\"}}, " STATUS("u-0") "}");
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_int_equal(http_script_count(s.http, "PATCH"), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

/* ---- conflicts ------------------------------------------------------------------------------- */

#define ANNOTATION(ADDRESS)                                                                        \
	"{\\\"uid\\\": \\\"u-1\\\", \\\"conflicts\\\": [{\\\"ip\\\": \\\"" ADDRESS                 \
	"\\\", \\\"mac\\\": \\\"02:00:00:00:00:01\\\"}]}"
#define IN_CONFLICT(ADDRESS)                                                                       \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\", \"resourceVersion\": \"7\", "     \
	"\"annotations\": {\"orbweaver.io/conflicts\": \"" ANNOTATION(ADDRESS) "\"}}, " STATUS(    \
		"u-1") "}"

static void report(const char *conflicts)
{
	json_auto_t *list = json_parse(conflicts, strlen(conflicts), NULL);

	addresses_report_conflicts(addresses, "ml", "p", "u-1", list, on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(an_address_that_somebody_else_has_is_said_where_it_stands, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("PATCH " ENDPOINT, 409, NO_OBJECT);
	reply("GET " ENDPOINT, 200, IN_CONFLICT("10.6.0.99"));
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	report("[{\"ip\": \"10.6.0.10\", \"mac\": \"02:00:00:00:00:02\"}, {\"ip\": \"10.9.0.1\"}]");
	/* Nobody else's address, and what was said before stays. */
	assert_null(strstr(http_script_request(s.http, 3), "10.9.0.1"));
	assert_non_null(strstr(http_script_request(s.http, 3), "10.6.0.99"));
	assert_non_null(strstr(http_script_request(s.http, 3), "02:00:00:00:00:02"));
}

TEST_WITH(what_is_said_already_and_what_is_not_ours_is_not_said, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, IN_CONFLICT("10.6.0.10"));
	report("[{\"ip\": \"10.6.0.10\", \"mac\": \"02:00:00:00:00:01\"}]");
	got.calls = 0;
	reply("GET " ENDPOINT, 404, NO_OBJECT);
	reply("GET " ENDPOINTS "?labelSelector", 200, LIST_OF(OF_POD_BEFORE));
	report("[{\"ip\": \"10.6.0.10\", \"mac\": \"02:00:00:00:00:01\"}]");
}

/* The endpoint has what is needed, and is no answer until the leader has heard of the conflict. */
TEST_WITH(addresses_that_somebody_else_has_are_no_answer, set_up, tear_down)
{
	reply("GET " ENDPOINT, 200, IN_CONFLICT("10.6.0.10"));
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ALIVE);
	reply("GET " ENDPOINTS "?", 200, LIST_OF(IN_CONFLICT("10.6.0.10")));
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	reply("GET " ENDPOINTS "?", 200,
	      "{\"type\": \"MODIFIED\", \"object\": {\"apiVersion\": "
	      "\"spiderpool.spidernet.io/v2beta1\", \"kind\": \"SpiderEndpoint\", \"metadata\": "
	      "{\"namespace\": \"ml\", \"name\": \"p\", \"resourceVersion\": \"10\"}, " STATUS(
		      "u-1") "}}\n");
	want();
	assert_int_equal(http_script_unexpected(s.http), 0);
	assert_int_equal(http_script_unused(s.http), 0);
}

/* ---- pods that are new on the node ----------------------------------------------------------- */

#define ALL_ENDPOINTS   "/apis/spiderpool.spidernet.io/v2beta1/spiderendpoints?labelSelector"
#define PODS            "GET /api/v1/pods?"
#define POD(UID, PHASE) POD_AT("8", UID, PHASE)
#define POD_AT(VERSION, UID, PHASE)                                                                \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\", \"uid\": \"" UID                  \
	"\", \"resourceVersion\": \"" VERSION                                                      \
	"\", \"annotations\": {\"k8s.v1.cni.cncf.io/networks\": "                                  \
	"\"ml/a\"}}, \"spec\": {\"nodeName\": \"n1\"}, \"status\": {\"phase\": \"" PHASE "\"}}"

static const char *held;

static bool is_held(void *arg, const char *uid)
{
	return held && strcmp(uid, held) == 0;
}

/* This pod is all that the node has. */
static void node_has(const char *pod)
{
	auto_free char *list = str_printf(LIST_OF("%s"), pod);

	open_with(is_held);
	reply(PODS, 200, list);
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	/* Of which nothing is left. */
	http_script_add(s.http, "GET " ALL_ENDPOINTS,
			&(struct http_reply){.body = LIST_OF(""), .always = true});
}

static void until_there_were(size_t times, const char *request)
{
	for (int tries = 0; http_script_count(s.http, request) < times; tries++) {
		assert_true(tries < 10000);
		scripted_for(&s, 10);
	}
	scripted_for(&s, 50);
}

static void until_endpoint_was_read(size_t times)
{
	until_there_were(times, "GET " ENDPOINT " ");
}

TEST_WITH(what_a_new_pod_gets_is_read_before_its_nics_ask, NULL, tear_down)
{
	node_has(POD("u-1", "Pending"));
	reply("GET " ENDPOINT, 200, TWO_NICS);
	until_endpoint_was_read(1);
	/* For longer than a read that served somebody is. */
	scripted_for(&s, 1500);
	want_for("net1");
	want_for("net2");
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(http_script_count(s.http, "GET " ENDPOINT " "), 1);
	/* Its NICs have asked. */
	scripted_for(&s, 1500);
	reply("GET " ENDPOINT, 200, TWO_NICS);
	want_for("net2");
	assert_int_equal(http_script_count(s.http, "GET " ENDPOINT " "), 2);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

/* CNI wants addresses on this node. */
static void want_for_another_pod(void)
{
	json_auto_t *asks = json_pack("[{s:s}]", "nic", "net1");

	reply("GET " ENDPOINTS "/other", 404, NO_OBJECT);
	addresses_want_cancel(addresses_want(addresses,
					     &(struct addresses_request){
						     .ns = "ml",
						     .name = "other",
						     .uid = "u-9",
						     .asks = asks,
						     .deadline_ms = clock_ms() + 60000,
					     },
					     on_got, NULL));
}

static void delete_pod(void)
{
	http_script_push(s.http, "{\"type\": \"DELETED\", \"object\": " POD_AT("10", "u-1",
									       "Pending") "}\n");
}

TEST_WITH(it_is_read_again_while_the_leader_is_at_it, NULL, tear_down)
{
	node_has(POD("u-1", "Pending"));
	want_for_another_pod();
	reply("GET " ENDPOINT, 404, NO_OBJECT);
	reply("GET " ENDPOINT, 200, OF_POD_BEFORE);
	reply("GET " ENDPOINT, 200, ANSWERS);
	until_endpoint_was_read(3);
	want();
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
	assert_int_equal(http_script_count(s.http, "GET " ENDPOINT " "), 3);
}

/* A pod whose kubelet was first, one that runs, and one that has ended. */
TEST_WITH(nothing_is_read_of_pods_that_have_what_they_need, NULL, tear_down)
{
	static const char *const phases[] = {POD("u-1", "Pending"), POD("u-2", "Running"),
					     POD("u-3", "Succeeded")};

	held = "u-1";
	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		node_has(phases[i]);
		scripted_for(&s, 500);
		assert_int_equal(http_script_count(s.http, "GET " ENDPOINT " "), 0);
		if (i + 1 < ARRAY_LEN(phases))
			(void)tear_down(NULL);
	}
	held = NULL;
}

/* Its addresses are the leader's to give to others then. */
TEST_WITH(nobody_is_served_by_what_was_read_of_a_pod_that_is_deleted, NULL, tear_down)
{
	node_has(POD("u-1", "Pending"));
	reply("GET " ENDPOINT, 200, TWO_NICS);
	until_endpoint_was_read(1);
	/* Read, and said in it, that nothing is left. */
	reply("GET " ENDPOINT, 200, TWO_NICS);
	reply("PATCH " ENDPOINT, 200, TWO_NICS);
	delete_pod();
	until_there_were(1, "PATCH");
	reply("GET " ENDPOINT, 404, NO_OBJECT);
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	want();
	assert_null(got.status);
	assert_string_equal(got.err.reason, "PodNotFound");
	assert_int_equal(http_script_unused(s.http), 0);
}

/* The watch is in the middle of receiving, and the read is a call of the same client. */
TEST_WITH(a_pod_may_be_deleted_while_its_endpoint_is_read, NULL, tear_down)
{
	node_has(POD("u-1", "Pending"));
	http_script_add(s.http, "GET " ENDPOINT,
			&(struct http_reply){.status = 200, .body = TWO_NICS, .delay_ms = 500});
	reply("GET " ENDPOINT, 200, TWO_NICS);
	reply("PATCH " ENDPOINT, 200, TWO_NICS);
	while (http_script_count(s.http, "GET " ENDPOINT " ") < 1)
		scripted_for(&s, 1);
	delete_pod();
	until_there_were(1, "PATCH");
	scripted_for(&s, 1000);
	reply("GET " ENDPOINT, 404, NO_OBJECT);
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	want();
	assert_string_equal(got.err.reason, "PodNotFound");
	assert_int_equal(http_script_unused(s.http), 0);
}

/* One that keeps its addresses (StatefulSet) has them on another node as soon as it is deleted. */
TEST_WITH(nor_where_its_sandbox_is_being_made, NULL, tear_down)
{
	node_has(POD("u-1", "Pending"));
	reply("GET " ENDPOINT, 200, TWO_NICS);
	until_endpoint_was_read(1);
	held = "u-1";
	delete_pod();
	scripted_for(&s, 50);
	reply("GET " ENDPOINT, 200, "{" META("e") ", " STATUS("u-2") "}");
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	want();
	held = NULL;
	assert_null(got.status);
	assert_string_equal(got.err.reason, "PodNotFound");
}

/* It is said once nothing of the pod is held, and not before. */
static void assert_word_waits_for_the_node(void)
{
	assert_int_equal(http_script_count(s.http, "PATCH"), 0);
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	held = NULL;
	until_there_were(1, "PATCH");
	assert_int_equal(http_script_unused(s.http), 0);
}

static void pod_becomes(const char *phase)
{
	auto_free char *event = str_printf(
		"{\"type\": \"MODIFIED\", \"object\": " POD_AT("10", "u-1", "%s") "}\n", phase);

	http_script_push(s.http, event);
}

/* The pod object may stay for long, and there is no DEL. */
TEST_WITH(the_word_is_said_of_a_pod_that_its_kubelet_rejects, NULL, tear_down)
{
	node_has(POD("u-1", "Pending"));
	reply("GET " ENDPOINT, 200, ANSWERS);
	until_endpoint_was_read(1);
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	pod_becomes("Failed");
	until_there_were(1, "PATCH");
	assert_int_equal(http_script_unused(s.http), 0);
}

/* The agent was away when it ended: the endpoint tells of it. */
TEST_WITH(so_is_it_of_one_that_has_ended_and_is_there, NULL, tear_down)
{
	held = "u-1";
	open_with(is_held);
	reply(PODS, 200, LIST_OF(POD("u-1", "Failed")));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	reply("GET " ALL_ENDPOINTS, 200, LIST_OF(ANSWERS));
	until_there_were(1, "GET " ALL_ENDPOINTS);
	assert_int_equal(http_script_count(s.http, "PATCH"), 0);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, POD("u-1", "Failed"));
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	held = NULL;
	until_there_were(1, "PATCH");
	assert_int_equal(http_script_unused(s.http), 0);
}

/* Its ADD ends without having asked for anything, and no DEL says the word. */
TEST_WITH(the_word_is_said_of_a_pod_that_was_held_when_it_went, NULL, tear_down)
{
	node_has(POD("u-1", "Running"));
	held = "u-1";
	scripted_for(&s, 100);
	delete_pod();
	scripted_for(&s, 200);
	assert_word_waits_for_the_node();
}

/* Before the agent has heard what is on the node, all may be. */
TEST_WITH(so_is_it_where_only_an_endpoint_tells_of_the_pod, NULL, tear_down)
{
	held = "u-1";
	open_with(is_held);
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	reply("GET " ALL_ENDPOINTS, 200, LIST_OF(ANSWERS));
	until_there_were(1, "GET " ALL_ENDPOINTS);
	assert_word_waits_for_the_node();
}

/* Lists of the endpoints of all namespaces. */
static void node_has_endpoints(const char *start, const char *items, const char *next)
{
	auto_free char *list = str_printf("{\"kind\": \"List\", \"metadata\": "
					  "{\"resourceVersion\": \"9\", \"continue\": \"%s\"}, "
					  "\"items\": [%s]}",
					  next, items);

	reply(start, 200, list);
}

#define PAGE_OF_ENDPOINTS                                                                          \
	"GET /apis/spiderpool.spidernet.io/v2beta1/spiderendpoints?"                               \
	"labelSelector=orbweaver.io%2Fnode%3Dn1&limit=100"

/* Users may write any number of endpoints with the label of the node, and of any size. */
TEST_WITH(endpoints_that_are_too_large_hide_no_other, NULL, tear_down)
{
	auto_strbuf struct strbuf items = {0};

	strbuf_adds(&items, "{\"metadata\": {\"namespace\": \"evil\", \"name\": \"g\", "
			    "\"resourceVersion\": \"7\"}, \"status\": {\"current\": {\"uid\": "
			    "\"u-9\", \"ips\": [{}");
	for (int i = 0; i < 30000; i++)
		strbuf_adds(&items, ",{}");
	strbuf_adds(&items, "]}}}");
	open_with(is_held);
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	node_has_endpoints(PAGE_OF_ENDPOINTS " ", strbuf_str(&items), "2/x");
	node_has_endpoints(PAGE_OF_ENDPOINTS "&continue=2%2Fx ", ANSWERS, "");
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	until_there_were(1, "PATCH");
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

/* Routes are left out while they arrive. */
TEST_WITH(an_endpoint_with_many_routes_is_read, NULL, tear_down)
{
	auto_strbuf struct strbuf items = {0};

	strbuf_adds(&items, "{" META("e") ", \"status\": {\"current\": {\"uid\": \"u-1\", "
					  "\"ips\": [{\"ipv4\": \"10.6.0.10/24\", \"routes\": [{}");
	for (int i = 0; i < 50000; i++)
		strbuf_adds(&items, ",{}");
	strbuf_adds(&items, "]}]}}}");
	open_with(is_held);
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	node_has_endpoints("GET " ALL_ENDPOINTS, strbuf_str(&items), "");
	reply("GET /api/v1/namespaces/ml/pods/p", 404, NO_OBJECT);
	reply("GET " ENDPOINT, 200, ANSWERS);
	reply("PATCH " ENDPOINT, 200, ANSWERS);
	until_there_were(1, "PATCH");
	assert_int_equal(http_script_unused(s.http), 0);
}

#define FORGED(NS, NAME)                                                                           \
	"{\"metadata\": {\"namespace\": \"" NS "\", \"name\": \"" NAME "\"}, " STATUS("u-1") "}"
#define NODES_POOL(RECORD)                                                                         \
	LIST_OF("{\"metadata\": {\"name\": \"a\", \"resourceVersion\": \"7\"}, \"spec\": "         \
		"{\"subnet\": \"10.6.0.0/24\", \"ips\": [\"10.6.0.10\"]}, \"status\": "            \
		"{\"allocatedIPs\": \"{\\\"10.6.0.10\\\": {\\\"podUid\\\": \\\"u-1\\\", " RECORD   \
		"}}\"}}")

/*
 * Users may write endpoints with the UID of any pod and the label of any node, and delete them
 * before they are read by name. Of the pod that they name nothing is there.
 */
static void forged_endpoint_takes_no_record(const char *forged, const char *pools)
{
	open_with(is_held);
	held = NULL;
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	node_has_endpoints("GET " ALL_ENDPOINTS, forged, "");
	http_script_add(s.http, "GET /apis/spiderpool.spidernet.io/v2beta1/namespaces/",
			&(struct http_reply){.status = 404, .body = NO_OBJECT, .always = true});
	for (size_t i = 0; i < 2; i++) {
		auto_free char *ns = str_dup(i ? "ml" : "evil");
		auto_free char *list = str_printf("GET /apis/spiderpool.spidernet.io/v2beta1/"
						  "namespaces/%s/spiderendpoints?",
						  ns);

		http_script_add(s.http, list,
				&(struct http_reply){.body = LIST_OF(""), .always = true});
	}
	http_script_add(s.http, "GET /api/v1/namespaces/",
			&(struct http_reply){.status = 404, .body = NO_OBJECT, .always = true});
	http_script_add(s.http, "GET /apis/spiderpool.spidernet.io/v2beta1/spiderippools",
			&(struct http_reply){.body = pools, .always = true});
	http_script_add(s.http, "PUT " POOL_STATUS,
			&(struct http_reply){.body = POOL_OF("9", ""), .always = true});
	until_there_were(1, "GET /apis/spiderpool.spidernet.io/v2beta1/spiderippools");
	/* And the second look. */
	until_there_were(2, "GET /apis/spiderpool.spidernet.io/v2beta1/spiderippools");
	scripted_for(&s, 20);
	assert_int_equal(http_script_count(s.http, "PUT"), 0);
}

TEST_WITH(a_forged_endpoint_takes_no_record_of_another_namespace, NULL, tear_down)
{
	forged_endpoint_takes_no_record(FORGED("evil", "g"),
					NODES_POOL("\\\"pod\\\": \\\"ml/p\\\""));
}

TEST_WITH(nor_of_another_pod_of_its_own, NULL, tear_down)
{
	forged_endpoint_takes_no_record(FORGED("ml", "g"), NODES_POOL("\\\"pod\\\": \\\"ml/p\\\""));
}

TEST_WITH(nor_of_another_node, NULL, tear_down)
{
	forged_endpoint_takes_no_record(FORGED("ml", "p"), NODES_POOL("\\\"pod\\\": \\\"ml/p\\\", "
								      "\\\"node\\\": \\\"n2\\\""));
}

/* Nor is the pod forgotten whose UID it has. */
TEST_WITH(it_hides_no_endpoint_of_the_pod, NULL, tear_down)
{
	held = "u-1";
	open_with(is_held);
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	node_has_endpoints("GET " ALL_ENDPOINTS, ANSWERS ", " FORGED("evil", "g"), "");
	until_there_were(1, "GET " ALL_ENDPOINTS);
	reply("GET /api/v1/namespaces/evil/pods/g", 200, FORGED("evil", "g"));
	assert_word_waits_for_the_node();
}

TEST_WITH(of_many_forged_endpoints_few_are_remembered, NULL, tear_down)
{
	auto_strbuf struct strbuf items = {0};

	held = "u-1";
	for (int i = 0; i < 2000; i++)
		strbuf_addf(&items, "%s" FORGED("evil", "g-%d"), i ? "," : "", i);
	open_with(is_held);
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	node_has_endpoints("GET " ALL_ENDPOINTS, strbuf_str(&items), "");
	http_script_add(s.http, "GET /api/v1/namespaces/evil/pods/",
			&(struct http_reply){.body = ALIVE, .always = true});
	until_there_were(1, "GET " ALL_ENDPOINTS);
	held = NULL;
	until_there_were(1000, "GET /api/v1/namespaces/evil/pods/");
	scripted_for(&s, 100);
	assert_in_range(http_script_count(s.http, "GET /api/v1/namespaces/evil/pods/"), 1000, 1024);
}

/* The endpoint of a machine may stand on a later page. */
TEST_WITH(the_word_and_conflicts_find_an_endpoint_on_a_later_page, set_up, tear_down)
{
	reply("GET " ENDPOINTS "/p", 404, NO_OBJECT);
	node_has_endpoints("GET " ENDPOINTS "?labelSelector=orbweaver.io%2Fnode%3Dn1&limit=100 ",
			   OF_POD_BEFORE, "2");
	node_has_endpoints("GET " ENDPOINTS
			   "?labelSelector=orbweaver.io%2Fnode%3Dn1&limit=100&continue=2 ",
			   MACHINES("u-1"), "");
	reply("PATCH " ENDPOINTS "/vm", 200, MACHINES("u-1"));
	addresses_release(addresses, "ml", "p", "u-1", on_released, NULL);
	scripted_until(&s, &got.calls, 1);
	assert_int_equal(http_script_unused(s.http), 0);
	got.calls = 0;
	reply("GET " ENDPOINTS "/p", 404, NO_OBJECT);
	node_has_endpoints("GET " ENDPOINTS "?", OF_POD_BEFORE, "2");
	node_has_endpoints("GET " ENDPOINTS "?", MACHINES("u-1"), "");
	reply("PATCH " ENDPOINTS "/vm", 200, MACHINES("u-1"));
	report("[{\"ip\": \"10.6.0.10\", \"mac\": \"02:00:00:00:00:02\"}]");
}

#define EVENT(TYPE, VERSION, UID)                                                                  \
	"{\"type\": \"" TYPE "\", \"object\": {\"apiVersion\": "                                   \
	"\"spiderpool.spidernet.io/v2beta1\", \"kind\": \"SpiderEndpoint\", \"metadata\": "        \
	"{\"namespace\": \"ml\", \"name\": \"p\", \"resourceVersion\": \"" VERSION                 \
	"\"}, " STATUS(UID) "}}\n"

/* It was the endpoint of the pod before, and the leader has given back what that had. */
TEST_WITH(a_pod_asks_again_when_the_endpoint_that_it_asked_in_is_deleted, NULL, tear_down)
{
	json_auto_t *asks = json_pack("[{s:s}]", "nic", "net1");

	open_with(NULL);
	admit();
	reply("GET " ENDPOINT, 200, OF_POD_BEFORE);
	reply("GET /api/v1/namespaces/ml/pods/p", 200, ALIVE);
	reply("GET " ENDPOINTS "?", 200, LIST_OF(OF_POD_BEFORE));
	http_script_add(s.http, "GET " ENDPOINTS "?",
			&(struct http_reply){.always = true, .after = HTTP_OPEN});
	reply("PATCH " ENDPOINT, 200, OF_POD_BEFORE);
	reply("POST " ENDPOINTS, 201, ANSWERS);
	(void)addresses_want(addresses,
			     &(struct addresses_request){
				     .ns = "ml",
				     .name = "p",
				     .uid = "u-1",
				     .asks = asks,
				     .deadline_ms = clock_ms() + 3600000,
			     },
			     on_got, NULL);
	until_there_were(1, "PATCH");
	until_there_were(2, "GET " ENDPOINTS "?");
	http_script_push(s.http, EVENT("DELETED", "10", "u-0"));
	until_there_were(1, "POST");
	http_script_push(s.http, EVENT("ADDED", "11", "u-1"));
	scripted_until(&s, &got.calls, 1);
	assert_string_equal(json_str_at(got.status, "current", "uid"), "u-1");
}

/* Who came and went meanwhile was not seen. */
TEST_WITH(endpoints_are_listed_each_time_the_watch_begins_anew, NULL, tear_down)
{
	open_with(is_held);
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS,
			&(struct http_reply){
				.body = "{\"type\": \"ERROR\", \"object\": {\"kind\": \"Status\", "
					"\"code\": 410, \"reason\": \"Expired\"}}\n",
				.after = HTTP_OPEN,
			});
	reply(PODS, 200, LIST_OF(""));
	http_script_add(s.http, PODS, &(struct http_reply){.after = HTTP_OPEN, .always = true});
	http_script_add(s.http, "GET " ALL_ENDPOINTS,
			&(struct http_reply){.body = LIST_OF(""), .always = true});
	until_there_were(2, "GET " ALL_ENDPOINTS);
	assert_int_equal(http_script_unused(s.http), 0);
}
