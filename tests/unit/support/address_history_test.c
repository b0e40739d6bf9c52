// SPDX-License-Identifier: Apache-2.0
/* Histories with faults, each of which must be found; and what is no fault. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "tests/support/address_history.h"
#include "tests/support/yaml.h"

static struct history *history;
static int revision;

static int set_up(void **state)
{
	history = history_new();
	revision = 10;
	return 0;
}

static int tear_down(void **state)
{
	history_free(history);
	return 0;
}

/* The next event; `object` is YAML without its resourceVersion. */
static int add(const char *kind, const char *type, const char *object, struct err *err)
{
	json_auto_t *event = json_object();

	json_put_str(event, "type", type);
	json_put(event, "object", yaml(object));
	json_put(json_need_object(json_at(event, "object"), "metadata"), "resourceVersion",
		 json_fmt("%d", revision++));
	return history_add(history, kind, event, err);
}

static void see(const char *kind, const char *type, const char *object)
{
	assert_int_equal(add(kind, type, object, NULL), 0);
}

/* uid "u-NAME" */
static void pod(const char *type, const char *name, const char *more)
{
	auto_free char *object =
		str_printf("metadata: {namespace: ml, name: %s, uid: u-%s, annotations: "
			   "{orbweaver.test/nics: net1}}\n%s",
			   name, name, more);

	see("pods", type, object);
}

#define SPEC                                                                                       \
	"spec: {ipVersion: 4, subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.20], excludeIPs: "        \
	"[10.0.0.9], gateway: 10.0.0.5}\n"

/* records: JSON of {address: {"podUid"}}; NULL: none */
static void pool_of(const char *type, const char *uid, const char *records, int said)
{
	auto_free char *object =
		str_printf("metadata: {name: a, uid: %s}\n" SPEC
			   "status: {freeIPCount: 9, allocatedIPCount: %d%s%s%s}\n",
			   uid, said, records ? ", allocatedIPs: '" : "", records ? records : "",
			   records ? "'" : "");

	see("spiderippools", type, object);
}

static void pool(const char *type, const char *records)
{
	pool_of(type, "p", records, records ? 1 : 0);
}

#define RECORD(ADDRESS, UID) "{\"" ADDRESS "\": {\"podUid\": \"" UID "\"}}"

static void endpoint(const char *type, const char *name, const char *uid, const char *address,
		     const char *mark)
{
	auto_free char *object = str_printf(
		"metadata: {namespace: ml, name: %s, annotations: {orbweaver.test/forged: '%s'}}\n"
		"status: {current: {uid: %s, ips: [{interface: net1, ipv4: %s/24, ipv4Pool: "
		"a}]}}\n",
		name, mark, uid, address);

	see("spiderendpoints", type, object);
}

static void sandbox(const char *type, const char *name, const char *addresses)
{
	auto_free char *object = str_printf("metadata: {namespace: chaos, name: sandbox-u-%s}\n"
					    "data: {addresses: %s}\n",
					    name, addresses);

	see("configmaps", type, object);
}

/* "" is none. */
static void assert_found(const char *reasons)
{
	auto_strbuf struct strbuf found = {0};
	json_t *violation;
	size_t i;

	json_array_foreach (history_violations(history), i, violation) {
		const char *text = json_string_value(violation);

		strbuf_addf(&found, "%s%.*s", i ? " " : "", (int)strcspn(text, ":"), text);
	}
	assert_string_equal(strbuf_str(&found), reasons);
}

/* Pod a has 10.0.0.1 everywhere. */
static void pod_a_is_up(void)
{
	pool("ADDED", NULL);
	pod("ADDED", "a", "");
	pool("MODIFIED", RECORD("10.0.0.1", "u-a"));
	endpoint("ADDED", "a", "u-a", "10.0.0.1", "");
	sandbox("ADDED", "a", "10.0.0.1");
}

TEST_WITH(a_life_without_a_fault, set_up, tear_down)
{
	pod_a_is_up();
	history_settle(history, false);
	pod("DELETED", "a", "");
	sandbox("DELETED", "a", "10.0.0.1");
	pool("MODIFIED", NULL);
	endpoint("DELETED", "a", "u-a", "10.0.0.1", "");
	pod("ADDED", "b", "");
	pool("MODIFIED", RECORD("10.0.0.1", "u-b"));
	assert_found("");
	assert_int_equal(json_integer_value(json_at(history_counts(history), "records")), 2);
}

TEST_WITH(two_records_of_two_living_pods, set_up, tear_down)
{
	pod_a_is_up();
	pod("ADDED", "b", "");
	see("spiderippools", "ADDED",
	    "metadata: {name: b, uid: q}\n" SPEC
	    "status: {freeIPCount: 9, allocatedIPCount: 1, allocatedIPs: '" RECORD("10.0.0.1",
										   "u-b") "'}\n");
	assert_found("twice");
}

TEST_WITH(the_record_of_one_and_the_endpoint_of_another, set_up, tear_down)
{
	pod_a_is_up();
	pod("ADDED", "b", "");
	pool_of("MODIFIED", "p", NULL, 1);
	pool("MODIFIED", RECORD("10.0.0.1", "u-b"));
	assert_found("twice");
}

TEST_WITH(what_users_have_removed_everywhere_is_counted_alone, set_up, tear_down)
{
	pod_a_is_up();
	pod("ADDED", "b", "");
	pool_of("MODIFIED", "p", NULL, 1);
	endpoint("DELETED", "a", "u-a", "10.0.0.1", "");
	pool("MODIFIED", RECORD("10.0.0.1", "u-b"));
	assert_found("");
	assert_int_equal(json_integer_value(json_at(history_counts(history), "forgotten")), 1);
}

/* An edit took it out of the pool, then the ledger was wiped: the record cannot be made again. */
TEST_WITH(what_users_have_taken_out_of_the_pool_is_counted_alone, set_up, tear_down)
{
	pod_a_is_up();
	see("spiderippools", "MODIFIED",
	    "metadata: {name: a, uid: p}\nspec: {subnet: 10.0.0.0/24, ips: [10.0.0.2]}\nstatus: "
	    "{}\n");
	pod("ADDED", "b", "");
	see("spiderippools", "ADDED",
	    "metadata: {name: b, uid: q}\n" SPEC
	    "status: {freeIPCount: 9, allocatedIPCount: 1, allocatedIPs: '" RECORD("10.0.0.1",
										   "u-b") "'}\n");
	assert_found("");
	assert_int_equal(json_integer_value(json_at(history_counts(history), "abandoned")), 1);
	/* It stays of both when a pool has the address again. */
	see("spiderippools", "ADDED",
	    "metadata: {name: c, uid: r}\n" SPEC
	    "status: {freeIPCount: 9, allocatedIPCount: 1, allocatedIPs: '" RECORD("10.0.0.1",
										   "u-a") "'}\n");
	assert_found("");
}

TEST_WITH(network_status_is_not_forgotten, set_up, tear_down)
{
	pod_a_is_up();
	see("pods", "MODIFIED",
	    "metadata: {namespace: ml, name: a, uid: u-a, annotations: "
	    "{k8s.v1.cni.cncf.io/network-status: '[{\"ips\": [\"10.0.0.1\"]}]'}}\n");
	pod("ADDED", "b", "");
	pool_of("MODIFIED", "p", NULL, 1);
	endpoint("DELETED", "a", "u-a", "10.0.0.1", "");
	pool("MODIFIED", RECORD("10.0.0.1", "u-b"));
	assert_found("twice");
}

TEST_WITH(what_a_tenant_writes_is_no_evidence, set_up, tear_down)
{
	pod_a_is_up();
	pod("ADDED", "b", "");
	endpoint("ADDED", "b", "u-b", "10.0.0.1", "1");
	sandbox("ADDED", "b", "10.0.0.1");
	assert_found("");
	/* Until a ledger believes it. */
	pool("MODIFIED", RECORD("10.0.0.1", "u-b"));
	assert_found("taken twice");
}

TEST_WITH(what_a_tenant_wrote_before_the_pod_was_there_is_its_own_doing, set_up, tear_down)
{
	endpoint("ADDED", "a", "u-0", "10.0.0.9", "1");
	pod_a_is_up();
	pool("MODIFIED", NULL);
	assert_found("");
}

TEST_WITH(an_address_before_its_node_has_spoken, set_up, tear_down)
{
	pod_a_is_up();
	pod("MODIFIED", "a", "status: {phase: Failed}\n");
	pool("MODIFIED", NULL);
	pod("ADDED", "b", "");
	assert_found("");
	pool("MODIFIED", RECORD("10.0.0.1", "u-b"));
	assert_found("early");
}

TEST_WITH(a_record_that_a_living_pod_loses, set_up, tear_down)
{
	pod_a_is_up();
	pool("MODIFIED", NULL);
	assert_found("taken");
}

TEST_WITH(a_pod_that_is_being_deleted_loses_what_its_sandbox_has, set_up, tear_down)
{
	static const char ending[] = "metadata: {namespace: ml, name: %s, uid: u-%s, "
				     "deletionTimestamp: now}\n";
	auto_free char *a = str_printf(ending, "a", "a"), *b = str_printf(ending, "b", "b");

	pod_a_is_up();
	see("pods", "MODIFIED", a);
	see("pods", "ADDED", b);
	pool("MODIFIED",
	     "{\"10.0.0.1\": {\"podUid\": \"u-a\"}, \"10.0.0.2\": {\"podUid\": \"u-b\"}}");
	pool("MODIFIED", RECORD("10.0.0.1", "u-a"));
	assert_found("");
	pool("MODIFIED", NULL);
	assert_found("taken");
}

TEST_WITH(an_endpoint_that_loses_the_address_of_a_living_pod, set_up, tear_down)
{
	pod_a_is_up();
	endpoint("MODIFIED", "a", "u-a", "10.0.0.2", "");
	assert_found("taken");
}

TEST_WITH(a_ledger_that_is_wiped_is_not_the_operators, set_up, tear_down)
{
	pod_a_is_up();
	pool_of("MODIFIED", "p", NULL, 1);
	pool_of("ADDED", "another", NULL, 0);
	assert_found("");
}

TEST_WITH(addresses_that_are_not_to_be_given, set_up, tear_down)
{
	static const char *const records[] = {
		RECORD("10.0.0.5", "u-1"), RECORD("10.0.0.9", "u-2"), RECORD("10.0.0.21", "u-3"),
		RECORD("10.0.1.1", "u-4"), RECORD("10.0.0.0", "u-5"), RECORD("10.0.0.255", "u-6"),
	};

	pool("ADDED", NULL);
	for (size_t i = 0; i < ARRAY_LEN(records); i++)
		pool("MODIFIED", records[i]);
	assert_found("forbidden forbidden forbidden forbidden forbidden forbidden");
}

#define RESERVED                                                                                   \
	"metadata: {name: r, generation: 1}\nspec: {ips: [10.0.0.1-10.0.0.3]}\n"                   \
	"status: {conditions: [{type: Ready, observedGeneration: %d}]}\n"

static void reserved(int judged)
{
	auto_free char *object = str_printf(RESERVED, judged);

	see("spiderreservedips", "MODIFIED", object);
}

static void leader(const char *who)
{
	auto_free char *object = str_printf("metadata: {name: l}\nspec: {holderIdentity: %s}", who);

	see("leases", "MODIFIED", object);
}

TEST_WITH(reservations_count_once_the_leader_knows_them, set_up, tear_down)
{
	leader("one");
	pool("ADDED", NULL);
	reserved(0);
	pool("MODIFIED", RECORD("10.0.0.1", "u-1"));
	reserved(1);
	/* Decided on what was read before. */
	pool("MODIFIED", RECORD("10.0.0.2", "u-2"));
	assert_found("");
	pool("MODIFIED", RECORD("10.0.0.3", "u-3"));
	assert_found("forbidden");
}

TEST_WITH(another_leader_may_know_less, set_up, tear_down)
{
	leader("one");
	reserved(1);
	pool("ADDED", NULL);
	leader("two");
	pool("MODIFIED", RECORD("10.0.0.3", "u-3"));
	assert_found("");
}

TEST_WITH(a_living_pod_without_what_it_asked_for, set_up, tear_down)
{
	pool("ADDED", NULL);
	pod("ADDED", "a", "");
	history_settle(history, false);
	assert_found("lost");
}

TEST_WITH(an_endpoint_without_a_record_is_not_enough, set_up, tear_down)
{
	pool("ADDED", NULL);
	pod("ADDED", "a", "");
	endpoint("ADDED", "a", "u-a", "10.0.0.1", "");
	history_settle(history, false);
	assert_found("lost");
}

TEST_WITH(what_is_left_of_a_pod_that_has_ended, set_up, tear_down)
{
	pod_a_is_up();
	pod("MODIFIED", "a", "status: {phase: Failed, reason: OutOfcpu}\n");
	history_settle(history, false);
	assert_found("leaked leaked leaked");
}

TEST_WITH(pods_of_a_stateful_set_keep_theirs_until_it_is_gone, set_up, tear_down)
{
	pool("ADDED", NULL);
	see("pods", "ADDED",
	    "metadata: {namespace: ml, name: web-0, uid: u-1, ownerReferences: [{kind: "
	    "StatefulSet}]}\n");
	pool("MODIFIED", RECORD("10.0.0.1", "u-1"));
	see("pods", "DELETED", "metadata: {namespace: ml, name: web-0, uid: u-1}\n");
	history_settle(history, false);
	assert_found("");
	history_settle(history, true);
	assert_found("leaked");
}

TEST_WITH(gaps_and_disorder_are_errors, set_up, tear_down)
{
	struct err err = {0};

	pool("ADDED", NULL);
	assert_int_equal(add("pods", "ERROR", "{kind: Status, code: 410}", &err), -1);
	assert_string_equal(err.reason, "Gap");
	revision = 10;
	err = (struct err){0};
	assert_int_equal(add("pods", "ADDED", "metadata: {name: a, uid: u-a}", &err), -1);
	assert_string_equal(err.reason, "BadOrder");
}
