// SPDX-License-Identifier: Apache-2.0
/* What agents ask an API server for while no operator leads: little, however many pods wait. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/pod_networks/addresses.h"
#include "tests/fakes/scripted.h"

#define SPIDER    "/apis/spiderpool.spidernet.io/v2beta1"
#define ENDPOINTS SPIDER "/namespaces/ml/spiderendpoints"
#define POOLS     SPIDER "/spiderippools"
#define LEASE                                                                                      \
	"GET /apis/coordination.k8s.io/v1/namespaces/orbweaver-system/leases/orbweaver-operator"
#define NO_OBJECT "{\"kind\": \"Status\", \"reason\": \"NotFound\", \"details\": {\"name\": \"p\"}}"
#define EMPTY     "{\"metadata\": {\"resourceVersion\": \"9\"}, \"items\": []}"

#define LEASE_OF(VERSION, TERM)                                                                    \
	"{\"metadata\": {\"name\": \"orbweaver-operator\", \"resourceVersion\": \"" VERSION        \
	"\", \"annotations\": {\"orbweaver.io/renew-deadline-seconds\": \"" TERM                   \
	"\", \"orbweaver.io/config-namespace\": \"elsewhere\"}}, "                                 \
	"\"spec\": {\"holderIdentity\": \"op\", \"leaseDurationSeconds\": 15}}"

/* One address, which another pod has. */
#define POOL(GENERATION)                                                                           \
	"{\"metadata\": {\"name\": \"a\", \"uid\": \"a\", \"resourceVersion\": \"5\", "            \
	"\"generation\": " GENERATION "}, \"spec\": {\"subnet\": \"10.6.0.0/24\", "                \
	"\"ips\": [\"10.6.0.10\"]}, \"status\": {\"conditions\": [{\"type\": \"Ready\", "          \
	"\"status\": \"True\", \"observedGeneration\": 1}], \"allocatedIPs\": "                    \
	"\"{\\\"10.6.0.10\\\": {\\\"pod\\\": \\\"ml/x\\\", \\\"podUid\\\": \\\"u-x\\\"}}\"}}"
#define LIST_OF(POOL_) "{\"metadata\": {\"resourceVersion\": \"9\"}, \"items\": [" POOL_ "]}"

enum { PODS = 3 };

static struct scripted s;
static struct addresses *addresses;
static int ended;
static struct err ended_by;

static void reply(const char *start, int status, const char *body)
{
	http_script_add(s.http, start,
			&(struct http_reply){.status = status, .body = body, .always = true});
}

static int set_up(void **state)
{
	scripted_open(&s);
	ended = 0;
	addresses = addresses_new(&(struct addresses_config){
		.loop = s.loop,
		.client = s.client,
		.node = "n1",
		.ns = "orbweaver-system",
		.config_ns = "orbweaver-system",
	});
	return 0;
}

static int tear_down(void **state)
{
	addresses_free(addresses);
	scripted_close(&s);
	return 0;
}

static void on_got(void *arg, const json_t *status, const struct err *err)
{
	ended_by = err ? *err : (struct err){0};
	ended++;
}

static void on_released(void *arg, const struct err *err)
{
	ended++;
}

/* Pods that have no addresses, and a cluster in which nothing else is of interest. */
static void script_pods(void)
{
	for (int i = 0; i < PODS; i++) {
		auto_free char *path = str_printf("GET /api/v1/namespaces/ml/pods/p-%d", i);
		auto_free char *pod = str_printf(
			"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p-%d\", \"uid\": "
			"\"u-%d\"}, \"spec\": {\"nodeName\": \"n1\"}}",
			i, i);

		reply(path, 200, pod);
		http_script_add(s.http, "GET " ENDPOINTS "?", &(struct http_reply){.body = EMPTY});
	}
	http_script_add(s.http, "GET " ENDPOINTS "?",
			&(struct http_reply){.always = true, .after = HTTP_OPEN});
	reply("GET " ENDPOINTS "/", 404, NO_OBJECT);
	reply("POST " ENDPOINTS, 201, "{}");
	reply("GET /api/v1/namespaces/elsewhere/configmaps/spiderpool-conf", 404, NO_OBJECT);
	reply("GET /api/v1/namespaces/ml ", 200, "{\"metadata\": {\"name\": \"ml\"}}");
	reply("GET /api/v1/nodes/n1", 200, "{\"metadata\": {\"name\": \"n1\"}}");
	reply("GET " SPIDER "/spiderreservedips", 200, EMPTY);
}

static void want_all(const char *pool)
{
	json_auto_t *asks = json_pack("[{s:s, s:[s]}]", "nic", "net1", "ipv4", pool);

	for (int i = 0; i < PODS; i++) {
		auto_free char *name = str_printf("p-%d", i), *uid = str_printf("u-%d", i);

		(void)addresses_want(addresses,
				     &(struct addresses_request){
					     .ns = "ml",
					     .name = name,
					     .uid = uid,
					     .asks = asks,
					     .deadline_ms = clock_ms() + 3600000,
				     },
				     on_got, NULL);
	}
}

static void until_requested(const char *start, size_t n)
{
	for (int i = 0; i < 6000 && http_script_count(s.http, start) < n; i++)
		scripted_for(&s, 10);
	assert_int_equal(http_script_count(s.http, start), n);
}

TEST_WITH(one_round_reads_the_pool_once_for_all_pods, set_up, tear_down)
{
	script_pods();
	reply(LEASE, 200, LEASE_OF("7", "1"));
	reply("GET " POOLS "/a", 200, POOL("1"));
	want_all("a");
	until_requested("GET " POOLS "/a", 1);
	until_requested("GET /api/v1/namespaces/ml/pods/", 2 * PODS);
	/* The second round looks whether the pool has changed, and at nothing else. */
	until_requested("GET " POOLS "/a", 2);
	scripted_for(&s, 50);
	assert_int_equal(http_script_count(s.http, "GET /api/v1/namespaces/ml/pods/"), 2 * PODS);
	assert_int_equal(http_script_count(s.http, "GET " POOLS "?"), 0);
	assert_int_equal(http_script_count(s.http, "GET " SPIDER "/spiderreservedips"), 1);
	assert_int_equal(http_script_count(s.http, "GET /api/v1/nodes/n1"), 1);
	/* Where the leader reads the settings. */
	assert_int_equal(http_script_count(s.http, "GET /api/v1/namespaces/elsewhere/configmaps"),
			 1);
	assert_string_equal(addresses_config_ns(addresses), "elsewhere");
	assert_int_equal(ended, 0);
}

TEST_WITH(pools_that_no_leader_has_compared_are_listed_once_for_all_pods, set_up, tear_down)
{
	script_pods();
	reply(LEASE, 200, LEASE_OF("7", "1"));
	reply("GET " POOLS "/a", 200, POOL("2"));
	reply("GET " POOLS "?", 200, LIST_OF(POOL("2")));
	want_all("a");
	until_requested("GET /api/v1/namespaces/ml/pods/", 2 * PODS);
	scripted_for(&s, 100);
	assert_int_equal(http_script_count(s.http, "GET " POOLS "/a"), 1);
	assert_int_equal(http_script_count(s.http, "GET " POOLS "?"), 1);
}

TEST_WITH(so_are_those_that_a_pattern_may_mean_page_by_page, set_up, tear_down)
{
	script_pods();
	reply(LEASE, 200, LEASE_OF("7", "1"));
	reply("GET " POOLS "?limit=500&continue=next", 200, LIST_OF(POOL("1")));
	reply("GET " POOLS "?limit=500 ", 200,
	      "{\"metadata\": {\"continue\": \"next\"}, \"items\": []}");
	want_all("a*");
	until_requested("GET " POOLS "?limit=500&continue=next", 1);
	scripted_for(&s, 100);
	assert_int_equal(http_script_count(s.http, "GET " POOLS), 2);
}

/* Whose owner reference users may write; the agent may not read virtual machines. */
TEST_WITH(what_another_pod_of_a_machine_has_waits_for_a_leader, set_up, tear_down)
{
	reply("GET /api/v1/namespaces/ml/pods/p-", 200,
	      "{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p-0\", \"uid\": \"u-0\", "
	      "\"ownerReferences\": [{\"apiVersion\": \"kubevirt.io/v1\", \"kind\": "
	      "\"VirtualMachineInstance\", \"name\": \"x\", \"controller\": true}]}, "
	      "\"spec\": {\"nodeName\": \"n1\"}}");
	reply("GET " ENDPOINTS "/x", 200,
	      "{\"metadata\": {\"namespace\": \"ml\", \"name\": \"x\", \"resourceVersion\": "
	      "\"7\"}, \"status\": {\"current\": {\"uid\": \"u-x\", \"node\": \"n1\", "
	      "\"ips\": [{\"interface\": \"net1\", \"ipv4\": \"10.6.0.10/24\", "
	      "\"ipv4Pool\": \"a\"}]}}}");
	reply("PATCH " ENDPOINTS "/x", 200, "{}");
	reply("GET /api/v1/namespaces/orbweaver-system/configmaps/spiderpool-conf", 404, NO_OBJECT);
	script_pods();
	reply(LEASE, 200, LEASE_OF("7", "1"));
	reply("GET " POOLS "/a", 200, POOL("1"));
	want_all("a");
	until_requested("GET " POOLS "/a", 2);
	scripted_for(&s, 50);
	assert_int_equal(http_script_count(s.http, "PATCH " POOLS), 0);
	assert_int_equal(http_script_count(s.http, "PUT " POOLS), 0);
	/* The other two have another UID by now. */
	assert_int_equal(ended, PODS - 1);
}

#define TWO_NICS                                                                                   \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p-0\", \"resourceVersion\": \"7\"}, "  \
	"\"status\": {\"current\": {\"uid\": \"u-0\", \"node\": \"n1\", \"ips\": ["                \
	"{\"interface\": \"net1\", \"ipv4\": \"10.6.0.11/24\", \"ipv4Pool\": \"a\"}, "             \
	"{\"interface\": \"net2\", \"ipv4\": \"10.9.0.1/24\", \"ipv4Pool\": \"gone\"}]}}}"
#define POOL_WITH(RECORDS, COUNT)                                                                  \
	"{\"metadata\": {\"name\": \"a\", \"uid\": \"a\", \"resourceVersion\": \"5\", "            \
	"\"generation\": 1}, \"spec\": {\"subnet\": \"10.6.0.0/24\", "                             \
	"\"ips\": [\"10.6.0.10-10.6.0.11\"]}, \"status\": {\"conditions\": [{\"type\": "           \
	"\"Ready\", \"status\": \"True\", \"observedGeneration\": 1}], "                           \
	"\"allocatedIPCount\": " COUNT ", \"allocatedIPs\": \"{" RECORDS "}\"}}"
#define RECORD(ADDRESS, POD, UID)                                                                  \
	"\\\"" ADDRESS "\\\": {\\\"pod\\\": \\\"ml/" POD "\\\", \\\"podUid\\\": \\\"" UID "\\\"}"

/* net1 gets an address; what a user wrote of net2 is of a pool that no ledger can speak for. */
TEST_WITH(what_an_endpoint_had_before_is_compared_as_well, set_up, tear_down)
{
	json_auto_t *asks = json_pack("[{s:s, s:[s]}, {s:s, s:[s]}]", "nic", "net1", "ipv4", "a",
				      "nic", "net2", "ipv4", "a");

	reply("GET " ENDPOINTS "/p-0", 200,
	      "{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p-0\", \"resourceVersion\": "
	      "\"6\"}, \"status\": {\"current\": {\"uid\": \"u-0\", \"node\": \"n1\", \"ips\": ["
	      "{\"interface\": \"net2\", \"ipv4\": \"10.9.0.1/24\", \"ipv4Pool\": "
	      "\"gone\"}]}}}");
	reply("PATCH " ENDPOINTS "/p-0", 200, TWO_NICS);
	reply(LEASE, 200, LEASE_OF("7", "1"));
	reply("GET " POOLS "/a", 200, POOL_WITH(RECORD("10.6.0.10", "x", "u-x"), "1"));
	reply("GET " POOLS "/gone", 404, NO_OBJECT);
	reply("PUT " POOLS "/a/status", 200,
	      POOL_WITH(RECORD("10.6.0.10", "x", "u-x") "," RECORD("10.6.0.11", "p-0", "u-0"),
			"2"));
	script_pods();
	(void)addresses_want(addresses,
			     &(struct addresses_request){
				     .ns = "ml",
				     .name = "p-0",
				     .uid = "u-0",
				     .asks = asks,
				     .deadline_ms = clock_ms() + 3600000,
			     },
			     on_got, NULL);
	scripted_until(&s, &ended, 1);
	assert_int_equal(http_script_count(s.http, "PUT " POOLS "/a/status"), 1);
	assert_string_equal(ended_by.reason, "AddressNotAdmitted");
	assert_non_null(strstr(ended_by.text, "10.9.0.1"));
}

TEST_WITH(a_leader_is_believed_as_long_as_its_lease_says, set_up, tear_down)
{
	script_pods();
	reply(LEASE, 200, LEASE_OF("7", "3600"));
	reply("GET " POOLS, 200, EMPTY);
	want_all("a");
	until_requested(LEASE, 3);
	assert_int_equal(http_script_count(s.http, "GET " POOLS), 0);
}

TEST_WITH(an_agent_without_an_answer_ends_the_round, set_up, tear_down)
{
	script_pods();
	reply(LEASE, 200, LEASE_OF("7", "1"));
	reply("GET " POOLS "/a", 403, "{\"kind\": \"Status\", \"reason\": \"Forbidden\"}");
	want_all("a");
	until_requested("GET " POOLS "/a", 1);
	scripted_for(&s, 200);
	assert_int_equal(http_script_count(s.http, "GET " POOLS), 1);
}

TEST_WITH(pods_that_end_together_list_the_pools_once, set_up, tear_down)
{
	static const char *const pods[] = {"p-0", "p-1", "p-2"}, *const uids[] = {"e0", "e1", "e2"};

	reply("GET " ENDPOINTS "/", 404, NO_OBJECT);
	reply("GET " ENDPOINTS "?", 200, EMPTY);
	reply("GET /api/v1/namespaces/ml/pods/", 404, NO_OBJECT);
	reply("GET " POOLS "?", 200, LIST_OF(POOL("1")));
	for (int i = 0; i < PODS; i++)
		addresses_release(addresses, "ml", pods[i], uids[i], on_released, NULL);
	scripted_until(&s, &ended, 1);
	scripted_for(&s, 100);
	assert_in_range(http_script_count(s.http, "GET " POOLS), 1, 2);
}
