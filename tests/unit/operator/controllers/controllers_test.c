// SPDX-License-Identifier: Apache-2.0
/*
 * Who is woken by what, and what decisions look at, where several kinds meet: pools and resources
 * that configs name, pods that ask for injection.
 */
#include "tests/unit/operator/mirrored.h"

#include "operator/controllers/ipam_book.h"
#include "reconcilers/admission/inject_check.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/assign_slice.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/multus_config.h"
#include "reconcilers/sriov/node_agent.h"
#include "reconcilers/sriov/shared_offers.h"

#define RDMA    "cni.spidernet.io/rdma-resource-inject"
#define NETWORK "cni.spidernet.io/network-resource-inject"

#define CONFIG(name, annotations, block)                                                           \
	"{metadata: {name: " name ", namespace: net, annotations: {" annotations                   \
	"}}, spec: {cniType: macvlan, macvlan: {master: [eth1], " block "}}}"
#define OVER(name, masters)                                                                        \
	"{metadata: {name: " name ", namespace: net}, spec: {cniType: macvlan, macvlan: "          \
	"{master: [" masters "]}}}"
#define POD(name, ns, annotations)                                                                 \
	"{metadata: {name: " name ", namespace: " ns ", annotations: {" annotations                \
	"}}, spec: {containers: [{}]}, status: {phase: Running}}"
#define NODE(name, labels) "{metadata: {name: " name ", labels: {" labels "}}}"
#define POOL(name, spec)   "{metadata: {name: " name ", namespace: sys}, spec: {" spec "}}"
#define AGENT_POD(name, node)                                                                      \
	"{metadata: {name: " name ", namespace: sys}, spec: {nodeName: " node "}}"
#define NAMESPACE(name, annotations) "{metadata: {name: " name ", annotations: {" annotations "}}}"

static json_t *world_of(const struct mirrored_test *t, enum controller_id id, const char *key)
{
	json_t *world = json_object();

	controllers_gather(&t->sources, id, key, world);
	return world;
}

static void found(struct mirrored_test *t, const char *pod, const char *reason)
{
	json_auto_t *object = mirrored_yaml("{metadata: {uid: u}}");
	json_auto_t *op = json_pack("{s:s, s:s, s:s, s:s*, s:s}", "op", "finding", "kind", KIND_POD,
				    "key", pod, "reason", reason, "message", "x");

	(void)controllers_remember(&t->sources, CONTROLLER_INJECT_POD, op, object, UINT64_MAX);
}

TEST_WITH(a_pool_wakes_the_configs_that_name_it_when_it_comes_or_goes, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", "", "ippools: {ipv4: [p, q]}"));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("b", "", "ippools: {ipv6: [q]}"));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("c", "", "ippools: {ipv4: ['*']}"));
	free(mirrored_woken(t));
	mirrored_put(t, KIND_IP_POOL, "{metadata: {name: q}, spec: {subnet: 10.0.0.0/24}}");
	/* One that was not learned yet is compared with what pods have. */
	mirrored_wakes(t, "ip-pool q;multus-config net/a;multus-config net/b;strays q;");
	mirrored_put(t, KIND_IP_POOL, "{metadata: {name: q}, spec: {subnet: 10.0.1.0/24}}");
	mirrored_wakes(t, "ip-pool q;strays q;");
	mirrored_remove(t, KIND_IP_POOL, "q");
	mirrored_wakes(t, "ip-pool q;multus-config net/a;multus-config net/b;");
}

#define LEDGER(records)                                                                            \
	"{metadata: {name: q, uid: q-1}, spec: {subnet: 10.0.0.0/24}, status: {allocatedIPs: "     \
	"'{" records "}'}}"
#define RECORD(address, pod) "\"" address "\": {\"pod\": \"ml/" pod "\", \"podUid\": \"u-" pod "\"}"

/* Until then nothing of it was compared with what pods have. */
TEST_WITH(a_pool_that_can_be_read_again_is_learned_again, mirrored_begin, mirrored_end)
{
	static const char *const unreadable[] = {
		"subnet: 10.0.0.0/33",
		"subnet: 10.0.0.0/24, excludeIPs: [x]",
		"subnet: 'fd00::/64', ips: ['fd00::1']",
	};
	struct mirrored_test *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(unreadable); i++) {
		auto_free char *before =
			str_printf("{metadata: {name: q, uid: q-1, generation: 1}, spec: {%s}, "
				   "status: {allocatedIPs: '{" RECORD("10.0.0.1", "a") "}'}}",
				   unreadable[i]);
		json_auto_t *uid = json_string("q-1");

		mirrored_put(t, KIND_IP_POOL, before);
		ipam_book_set(&t->sources, IPAM_LEARNED, "q", uid);
		mirrored_put(
			t, KIND_IP_POOL,
			"{metadata: {name: q, uid: q-1, generation: 2}, spec: {subnet: "
			"10.0.0.0/24, ips: [10.0.0.1-10.0.0.9]}, status: {allocatedIPs: '{" RECORD(
				"10.0.0.1", "a") "}'}}");
		if (ipam_book_get(t->sources.addresses, IPAM_LEARNED, "q"))
			fail_msg("case %zu", i);
		mirrored_remove(t, KIND_IP_POOL, "q");
	}
}

#define IS_LEARNED(t_, pool_) (ipam_book_get((t_)->sources.addresses, IPAM_LEARNED, pool_) != NULL)

/* Pods have its addresses still, by endpoints that name a pool which is not there any more. */
TEST_WITH(a_pool_is_learned_again_when_another_leaves_it_its_addresses, mirrored_begin,
	  mirrored_end)
{
	static const char young[] = "{metadata: {name: young, uid: q-2, generation: 1}, spec: "
				    "{subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.9]}}";
	static const char other[] = "{metadata: {name: other, uid: q-3, generation: 1}, spec: "
				    "{subnet: 10.0.0.0/24, ips: [10.0.0.20]}}";
#define OLD(uid_, generation_, spec_, records_)                                                    \
	"{metadata: {name: old, uid: " uid_ ", generation: " generation_ "}, spec: {" spec_        \
	"}, status: {allocatedIPs: '{" records_ "}'}}"
#define IN_ONE     "subnet: 10.0.0.0/24, ips: [10.0.0.1]"
#define IN_ANOTHER "subnet: 10.0.0.0/24, ips: [10.0.0.30]"
	static const char old[] = OLD("q-1", "1", IN_ONE, "");
	static const char edited[] = OLD("q-1", "1", IN_ANOTHER, RECORD("10.0.0.1", "a"));
	static const struct {
		const char *before, *after; /* NULL: it is deleted */
	} cases[] = {
		{old, NULL},
		{old, OLD("q-1", "2", "subnet: 10.9.0.0/24, ips: [10.9.0.1]", "")},
		{old, OLD("q-1", "2", IN_ANOTHER, "")},
		{old, OLD("q-1", "2", IN_ONE ", excludeIPs: [10.0.0.1]", "")},
		{old, OLD("q-4", "1", IN_ANOTHER, "")},
		{edited, NULL},
		{edited, OLD("q-1", "1", IN_ANOTHER, "")},
		{edited, OLD("q-4", "1", IN_ANOTHER, "")},
	};
	struct mirrored_test *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *uid = json_string("q-2"), *of_other = json_string("q-3");

		mirrored_put(t, KIND_IP_POOL, cases[i].before);
		mirrored_put(t, KIND_IP_POOL, young);
		mirrored_put(t, KIND_IP_POOL, other);
		ipam_book_set(&t->sources, IPAM_LEARNED, "young", uid);
		ipam_book_set(&t->sources, IPAM_LEARNED, "other", of_other);
		free(mirrored_woken(t));
		if (cases[i].after)
			mirrored_put(t, KIND_IP_POOL, cases[i].after);
		else
			mirrored_remove(t, KIND_IP_POOL, "old");
		if (IS_LEARNED(t, "young") || !IS_LEARNED(t, "other") ||
		    !json_at(t->woken, "strays young"))
			fail_msg("case %zu", i);
		mirrored_remove(t, KIND_IP_POOL, "young");
		mirrored_remove(t, KIND_IP_POOL, "other");
		if (cases[i].after)
			mirrored_remove(t, KIND_IP_POOL, "old");
	}
}

TEST_WITH(a_pool_that_is_not_learned_sees_endpoints_with_its_addresses, mirrored_begin,
	  mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *uid = json_string("q-2");

	mirrored_put(t, KIND_IP_POOL,
		     "{metadata: {name: p, uid: q-2}, spec: {subnet: 10.0.0.0/24, "
		     "ips: [10.0.0.1-10.0.0.9]}}");
	mirrored_put(t, KIND_IP_POOL, "{metadata: {name: there}, spec: {subnet: 10.0.0.0/24}}");
	mirrored_put(t, KIND_ENDPOINT,
		     "{metadata: {name: a, namespace: ml}, status: {current: {uid: u-a, ips: "
		     "[{interface: net1, ipv4: 10.0.0.5/24, ipv4Pool: gone}, {interface: net2, "
		     "ipv4: 10.0.0.6/24, ipv4Pool: there}]}}}");
	mirrored_put(t, KIND_IP_POOL, "{metadata: {name: also}, spec: {subnet: 10.0.0.0/24}}");
	mirrored_put(t, KIND_ENDPOINT,
		     "{metadata: {name: b, namespace: ml}, status: {current: {uid: u-b, ips: "
		     "[{interface: net1, ipv4: 10.9.0.5/24, ipv4Pool: p}, {interface: net2, "
		     "ipv4: 10.0.0.7/24, ipv4Pool: also}]}}}");
	for (int learned = 0; learned < 2; learned++) {
		json_auto_t *world = NULL;

		ipam_book_set(&t->sources, IPAM_LEARNED, "p", learned ? uid : NULL);
		world = world_of(t, CONTROLLER_STRAYS, "p");
		assert_int_equal(json_at(world, KIND_ENDPOINT, "ml/a") != NULL, !learned);
		/* Else it would be taken for one that is gone. */
		assert_int_equal(json_at(world, KIND_IP_POOL, "there") != NULL, !learned);
		assert_non_null(json_at(world, KIND_IP_POOL, "also"));
	}
	mirrored_remove(t, KIND_ENDPOINT, "ml/a");
	mirrored_remove(t, KIND_ENDPOINT, "ml/b");
	mirrored_remove(t, KIND_IP_POOL, "also");
	mirrored_remove(t, KIND_IP_POOL, "p");
	mirrored_remove(t, KIND_IP_POOL, "there");
}

static void count_hit(void *ctx, const char *name)
{
	++*(int *)ctx;
}

/* As that of a backup: the spec does not have the address any more. */
TEST_WITH(a_pool_is_found_by_records_that_a_person_puts_back, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *neighbour =
		mirrored_yaml("{metadata: {name: n}, spec: {subnet: 10.0.0.0/24, ips: "
			      "[10.0.0.7]}}");
	int hits = 0;

	mirrored_put(t, KIND_IP_POOL, LEDGER(RECORD("10.0.0.1", "a")));
	mirrored_put(t, KIND_IP_POOL, LEDGER(RECORD("10.0.0.7", "a")));
	ip_pool_index_find(t->sources.pools, neighbour, count_hit, &hits);
	assert_int_equal(hits, 1);
	mirrored_remove(t, KIND_IP_POOL, "q");
}

/* A living pod may have the address: it is looked at before another one gets it. */
TEST_WITH(a_pool_that_lost_a_record_is_learned_again, mirrored_begin, mirrored_end)
{
	static const struct {
		const char *before, *after;
		bool own_write, is_learned;
	} cases[] = {
		{LEDGER(RECORD("10.0.0.1", "a") "," RECORD("10.0.0.2", "b")),
		 LEDGER(RECORD("10.0.0.2", "b")), false, false},
		{LEDGER(RECORD("10.0.0.1", "a") "," RECORD("10.0.0.2", "b")),
		 LEDGER(RECORD("10.0.0.2", "b")), true, true},
		{LEDGER(RECORD("10.0.0.1", "a")),
		 LEDGER(RECORD("10.0.0.1", "a") "," RECORD("10.0.0.2", "b")), false, true},
		{LEDGER(RECORD("10.0.0.1", "a")),
		 "{metadata: {name: q, uid: q-1}, spec: {subnet: 10.0.0.0/24}}", false, false},
	};
	struct mirrored_test *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *uid = json_string("q-1");
		bool is_woken;

		t->sources.own_write = &cases[i].own_write;
		mirrored_put(t, KIND_IP_POOL, cases[i].before);
		ipam_book_set(&t->sources, IPAM_LEARNED, "q", uid);
		free(mirrored_woken(t));
		mirrored_put(t, KIND_IP_POOL, cases[i].after);
		is_woken = json_at(t->woken, "strays q") != NULL;
		if (!is_woken || (ipam_book_get(t->sources.addresses, IPAM_LEARNED, "q") != NULL) !=
					 cases[i].is_learned)
			fail_msg("case %zu", i);
		mirrored_remove(t, KIND_IP_POOL, "q");
	}
}

#define STATED(version, generation, label, status)                                                 \
	"{metadata: {name: c, namespace: ml, uid: u, resourceVersion: '" version                   \
	"', generation: " generation ", labels: {l: " label "}}, spec: {}, status: " status "}"

TEST_WITH(a_config_is_not_looked_at_for_a_status_of_our_own, mirrored_begin, mirrored_end)
{
	static const struct {
		const char *after;
		bool own_write, is_woken;
	} cases[] = {
		{STATED("2", "1", "a", "{observedGeneration: 1}"), true, false},
		{STATED("2", "1", "a", "{observedGeneration: 1}"), false, true},
		{STATED("2", "2", "a", "{observedGeneration: 1}"), true, true},
		{STATED("2", "1", "b", "{observedGeneration: 1}"), true, true},
	};
	struct mirrored_test *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		t->sources.own_write = &cases[i].own_write;
		mirrored_put(t, KIND_MULTUS_CONFIG, STATED("1", "1", "a", "{}"));
		free(mirrored_woken(t));
		mirrored_put(t, KIND_MULTUS_CONFIG, cases[i].after);
		if ((json_at(t->woken, "multus-config ml/c") != NULL) != cases[i].is_woken)
			fail_msg("case %zu", i);
		mirrored_remove(t, KIND_MULTUS_CONFIG, "ml/c");
	}
}

#define SET_POD(name, phase)                                                                       \
	"{metadata: {name: " name ", namespace: ml, annotations: {k8s.v1.cni.cncf.io/networks: "   \
	"net}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: s, "     \
	"controller: true}]}, spec: {nodeName: w}, status: {phase: " phase "}}"
#define ENDPOINT_OF(name, ns, type)                                                                \
	"{metadata: {name: " name ", namespace: " ns                                               \
	"}, status: {current: {uid: u, ips: []}, ownerControllerType: " type "}}"

static void expect_ended(struct mirrored_test *t, json_int_t want)
{
	json_auto_t *live = json_object(), *world = NULL;

	ipam_book_set(&t->sources, IPAM_LIVE, "ml/web-0", live);
	world = world_of(t, CONTROLLER_ENDPOINT, "ml/web-0");
	assert_int_equal(json_integer_value(json_at(world, "env", "endedSetPods")), want);
	assert_int_equal(json_at(world, "env", "endedSetPods") != NULL, want > 0);
}

TEST_WITH(an_endpoint_sees_how_many_ended_pods_its_namespace_keeps_addresses_of, mirrored_begin,
	  mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *ending = json_object();

	mirrored_put(t, KIND_ENDPOINT, ENDPOINT_OF("web-0", "ml", "StatefulSet"));
	mirrored_put(t, KIND_ENDPOINT, ENDPOINT_OF("web-1", "ml", "StatefulSet"));
	mirrored_put(t, KIND_ENDPOINT, ENDPOINT_OF("web-2", "ml", "StatefulSet"));
	mirrored_put(t, KIND_ENDPOINT, ENDPOINT_OF("web-3", "other", "StatefulSet"));
	mirrored_put(t, KIND_ENDPOINT, ENDPOINT_OF("web-4", "ml", "Deployment"));
	mirrored_put(t, KIND_BOUND_POD, SET_POD("web-1", "Running"));
	mirrored_put(t, KIND_BOUND_POD, SET_POD("web-2", "Succeeded"));
	mirrored_put(t, KIND_BOUND_POD, SET_POD("web-5", "Pending"));
	expect_ended(t, 0);
	free(mirrored_woken(t));
	mirrored_put(t, KIND_RESOURCE_QUOTA,
		     "{metadata: {name: q, namespace: ml}, spec: {hard: {pods: '1'}}}");
	mirrored_wakes(t, "endpoint ml/web-0;endpoint ml/web-1;endpoint ml/web-2;");
	expect_ended(t, 2);
	/* What is being released makes room at once. */
	ipam_book_set(&t->sources, IPAM_ENDING, "ml/web-2", ending);
	expect_ended(t, 1);
	mirrored_put(t, KIND_RESOURCE_QUOTA,
		     "{metadata: {name: q, namespace: ml}, spec: {hard: {cpu: '1'}}}");
	expect_ended(t, 0);
}

/* Of pods that name no network themselves their agents say that they have ended. */
TEST_WITH(pods_that_are_not_mirrored_count_as_ended_once_their_agents_say_so, mirrored_begin,
	  mirrored_end)
{
	struct mirrored_test *t = *state;

	for (int i = 0; i < 6; i++) {
		auto_free char *endpoint = str_printf(
			"{metadata: {name: web-%d, namespace: ml, annotations: {%s}}, status: "
			"{current: {uid: u, ips: []}, ownerControllerType: StatefulSet}}",
			i, i < 2 ? "orbweaver.io/down: u" : "");

		mirrored_put(t, KIND_ENDPOINT, endpoint);
	}
	mirrored_put(t, KIND_BOUND_POD, SET_POD("web-2", "Running"));
	mirrored_put(t, KIND_RESOURCE_QUOTA,
		     "{metadata: {name: q, namespace: ml}, spec: {hard: {pods: '4'}}}");
	expect_ended(t, 2);
	/* No more pods than the quota allows can live, whatever users write into endpoints. */
	mirrored_put(t, KIND_RESOURCE_QUOTA,
		     "{metadata: {name: q, namespace: ml}, spec: {hard: {pods: '3'}}}");
	expect_ended(t, 3);
	/* The pod before this one was taken down, and this one lives. */
	mirrored_put(t, KIND_BOUND_POD, SET_POD("web-0", "Running"));
	mirrored_put(t, KIND_RESOURCE_QUOTA,
		     "{metadata: {name: q, namespace: ml}, spec: {hard: {pods: '6'}}}");
	expect_ended(t, 1);
}

static void count_one(void *arg, const char *key, const char *message)
{
	assert_string_equal(message, "virtualmachines.kubevirt.io is forbidden");
	++*(int *)arg;
}

/* Its pods would keep their addresses, and nothing but a debug line would say why. */
TEST_WITH(an_owner_that_may_not_be_read_is_found, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	const struct controller *endpoint = &controllers[CONTROLLER_ENDPOINT];
	json_auto_t *found = json_object();
	struct err err = {0};
	int n = 0;

	(void)err_set(&err, ERR_INVALID, "Forbidden", "virtualmachines.kubevirt.io is forbidden");
	endpoint->read(&t->sources, "ml/vm", NULL, &err);
	findings_visit(t->sources.findings, KIND_ENDPOINT, "OwnerUnreadable", count_one, &n);
	assert_int_equal(n, 1);
	/* A failure that passes says nothing about it. */
	(void)err_set(&err, ERR_TRANSIENT, "ServerUnreachable", "no answer");
	endpoint->read(&t->sources, "ml/vm", NULL, &err);
	endpoint->read(&t->sources, "ml/other", NULL, &err);
	assert_true(findings_has(t->sources.findings, KIND_ENDPOINT, "ml/vm"));
	assert_false(findings_has(t->sources.findings, KIND_ENDPOINT, "ml/other"));
	endpoint->read(&t->sources, "ml/vm", found, NULL);
	assert_false(findings_has(t->sources.findings, KIND_ENDPOINT, "ml/vm"));
}

TEST_WITH(a_pool_sees_the_nodes_that_have_addresses_of_it, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *world = NULL;

	mirrored_put(t, KIND_IP_POOL,
		     "{metadata: {name: p, uid: p-1}, spec: {subnet: 10.1.0.0/16, ips: "
		     "[10.1.0.9-10.1.2.3]}}");
	free(mirrored_woken(t));
	mirrored_put(t, KIND_NODE,
		     "{metadata: {name: w1}, status: {addresses: [{address: 10.1.2.1}]}}");
	assert_non_null(json_at(t->woken, "ip-pool p"));
	mirrored_put(t, KIND_NODE,
		     "{metadata: {name: w2}, status: {addresses: [{address: 10.2.2.1}]}}");
	world = world_of(t, CONTROLLER_IP_POOL, "p");
	assert_int_equal(json_object_size(json_at(world, KIND_NODE)), 1);
	assert_string_equal(
		json_str_at(
			json_array_get(json_at(world, KIND_NODE, "w1", "status", "addresses"), 0),
			"address"),
		"10.1.2.1");
}

/* The pod before had the same name, and was read: its successor waited for a minute. */
TEST_WITH(what_was_read_before_a_pod_asked_is_read_again, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *live = json_object();

	mirrored_put(t, KIND_ENDPOINT, ENDPOINT_OF("a", "ml", "Deployment"));
	ipam_book_set(&t->sources, IPAM_LIVE, "ml/a", live);
	mirrored_put(t, KIND_ENDPOINT, ENDPOINT_OF("a", "ml", "ReplicaSet"));
	assert_non_null(ipam_book_get(t->sources.addresses, IPAM_LIVE, "ml/a"));
	free(mirrored_woken(t));
	mirrored_put(t, KIND_ENDPOINT,
		     "{metadata: {name: a, namespace: ml, annotations: {orbweaver.io/asks: "
		     "'{\"uid\": \"next\", \"asks\": [{\"nic\": \"net1\"}]}'}}}");
	assert_null(ipam_book_get(t->sources.addresses, IPAM_LIVE, "ml/a"));
	mirrored_wakes(t, "endpoint ml/a;");
}

TEST_WITH(an_endpoint_that_somebody_deletes_is_looked_at, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_ENDPOINT, "{metadata: {name: a, namespace: ml, finalizers: [f]}}");
	free(mirrored_woken(t));
	mirrored_put(t, KIND_ENDPOINT,
		     "{metadata: {name: a, namespace: ml, finalizers: [f], deletionTimestamp: "
		     "'2026-01-31T09:00:00Z'}}");
	mirrored_wakes(t, "endpoint ml/a;");
	mirrored_put(t, KIND_ENDPOINT,
		     "{metadata: {name: a, namespace: ml, finalizers: [f], deletionTimestamp: "
		     "'2026-01-31T09:00:00Z'}, status: {current: {uid: u, node: w1, ips: []}}}");
	mirrored_wakes(t, "");
}

TEST_WITH(a_config_sees_the_pools_and_the_resource_that_it_names, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *before = NULL, *after = NULL;

	mirrored_put(t, KIND_MULTUS_CONFIG,
		     CONFIG("a", "", "rdmaResourceName: x.io/a, ippools: {ipv4: [p, q]}"));
	mirrored_put(t, KIND_IP_POOL, "{metadata: {name: q}, spec: {subnet: 10.0.0.0/24}}");
	mirrored_put(t, KIND_IP_POOL, "{metadata: {name: r}, spec: {subnet: 10.1.0.0/24}}");
	before = world_of(t, CONTROLLER_MULTUS_CONFIG, "net/a");
	assert_int_equal(json_object_size(json_at(before, KIND_IP_POOL)), 1);
	assert_non_null(json_at(before, KIND_IP_POOL, "q"));
	assert_non_null(json_at(before, KIND_NODE_RESOURCE));
	assert_null(json_at(before, KIND_NODE_RESOURCE, "x.io/a"));
	mirrored_put(t, KIND_NODE,
		     "{metadata: {name: w1}, status: {allocatable: {x.io/a: '4', cpu: '8'}}}");
	after = world_of(t, CONTROLLER_MULTUS_CONFIG, "net/a");
	assert_non_null(json_at(after, KIND_NODE_RESOURCE, "x.io/a"));
}

TEST_WITH(the_first_and_the_last_node_with_a_resource_wake_the_configs_that_need_it, mirrored_begin,
	  mirrored_end)
{
	static const char with[] = "{metadata: {name: w1}, status: {allocatable: {x.io/a: '4'}}}";
	static const char more[] = "{metadata: {name: w1}, status: {allocatable: {x.io/a: '8'}}}";
	static const char none[] = "{metadata: {name: w1}, status: {allocatable: {x.io/a: '0'}}}";
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", "", "rdmaResourceName: x.io/a"));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("b", "", "rdmaResourceName: x.io/b"));
	free(mirrored_woken(t));
	mirrored_put(t, KIND_NODE, with);
	mirrored_wakes(t, "multus-config net/a;node-state w1;");
	mirrored_put(t, KIND_NODE, more);
	mirrored_wakes(t, ""); /* quantities are nobody's business */
	mirrored_put(t, KIND_NODE, "{metadata: {name: w2}, status: {allocatable: {x.io/a: '4'}}}");
	mirrored_wakes(t, "node-state w2;");
	mirrored_put(t, KIND_NODE, none);
	mirrored_wakes(t, "node-state w1;");
	mirrored_remove(t, KIND_NODE, "w2");
	mirrored_wakes(t, "multus-config net/a;node-state w2;");
}

TEST_WITH(a_pod_of_an_agent_wakes_its_node_which_sees_no_other, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *none = world_of(t, CONTROLLER_NODE_STATE, "w1"), *one = NULL;

	assert_int_equal(json_object_size(json_at(none, KIND_AGENT_POD)), 0);
	assert_non_null(json_at(none, KIND_AGENT_POD));
	mirrored_put(t, KIND_AGENT_POD, AGENT_POD("a-1", "w1"));
	mirrored_wakes(t, "node-state w1;");
	mirrored_put(t, KIND_AGENT_POD, AGENT_POD("a-2", "w2"));
	mirrored_wakes(t, "node-state w2;");
	one = world_of(t, CONTROLLER_NODE_STATE, "w1");
	assert_int_equal(json_object_size(json_at(one, KIND_AGENT_POD)), 1);
	assert_non_null(json_at(one, KIND_AGENT_POD, "sys/a-1", "spec", "nodeName"));
	mirrored_remove(t, KIND_AGENT_POD, "sys/a-1");
	mirrored_wakes(t, "node-state w1;");
}

TEST_WITH(a_config_sees_its_masters_once_every_node_reports_links, mirrored_begin, mirrored_end)
{
	static const char w1[] = "{metadata: {name: w1, namespace: orbweaver-system}, "
				 "status: {links: [ens1, bond0]}}";
	struct mirrored_test *t = *state;
	json_auto_t *before = NULL, *after = NULL, *unknown = NULL;

	mirrored_put(t, KIND_MULTUS_CONFIG, OVER("a", "ens1, ens2"));
	mirrored_put(t, KIND_MULTUS_CONFIG, OVER("b", "ens3"));
	free(mirrored_woken(t));
	before = world_of(t, CONTROLLER_MULTUS_CONFIG, "net/a");
	assert_null(json_at(before, KIND_NODE_LINK));
	mirrored_put(t, KIND_NODE_STATE, w1);
	mirrored_wakes(t, "multus-config net/a;multus-config net/b;node-state w1;");
	after = world_of(t, CONTROLLER_MULTUS_CONFIG, "net/a");
	assert_non_null(json_at(after, KIND_NODE_LINK, "ens1"));
	assert_null(json_at(after, KIND_NODE_LINK, "ens2"));
	assert_int_equal(json_object_size(json_at(after, KIND_NODE_LINK)), 1);
	mirrored_put(t, KIND_NODE_STATE,
		     "{metadata: {name: w2, namespace: orbweaver-system}, status: {}}");
	mirrored_wakes(t, "multus-config net/a;multus-config net/b;node-state w2;");
	unknown = world_of(t, CONTROLLER_MULTUS_CONFIG, "net/a");
	assert_null(json_at(unknown, KIND_NODE_LINK));
	mirrored_put(
		t, KIND_NODE_STATE,
		"{metadata: {name: w2, namespace: orbweaver-system}, status: {links: [ens3]}}");
	mirrored_wakes(t, "multus-config net/a;multus-config net/b;node-state w2;");
	mirrored_remove(t, KIND_NODE_STATE, "orbweaver-system/w2");
	mirrored_wakes(t, "multus-config net/b;node-state w2;shared-offers "
			  "orbweaver-system/" SHARED_CONFIG_NAME ";");
}

TEST_WITH(a_network_looks_for_its_resource_when_it_comes_and_goes, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *before = NULL, *after = NULL;

	mirrored_put(t, KIND_SRIOV_IB_NETWORK,
		     "{metadata: {name: ib, namespace: net}, spec: {resourceName: a}}");
	mirrored_put(t, KIND_SRIOV_NETWORK,
		     "{metadata: {name: eth, namespace: net}, spec: {resourceName: b}}");
	free(mirrored_woken(t));
	before = world_of(t, CONTROLLER_SRIOV_IB_NETWORK, "net/ib");
	assert_int_equal(json_object_size(json_at(before, KIND_NODE_RESOURCE)), 0);
	assert_non_null(json_at(before, KIND_NODE_RESOURCE));
	mirrored_put(t, KIND_NODE,
		     "{metadata: {name: w1}, status: {allocatable: {spidernet.io/a: '4'}}}");
	mirrored_wakes(t, "node-state w1;sriov-ib-network net/ib;");
	after = world_of(t, CONTROLLER_SRIOV_IB_NETWORK, "net/ib");
	assert_non_null(json_at(after, KIND_NODE_RESOURCE, "spidernet.io/a"));
	mirrored_remove(t, KIND_NODE, "w1");
	mirrored_wakes(t, "node-state w1;sriov-ib-network net/ib;");
}

TEST_WITH(what_is_said_of_links_and_who_wants_taints_wakes_their_decision, mirrored_begin,
	  mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *world = NULL;

	mirrored_put(t, KIND_NODE, "{metadata: {name: w1}}");
	mirrored_wakes(t, "node-state w1;");
	mirrored_put(t, KIND_NODE,
		     "{metadata: {name: w1}, status: {conditions: [{type: RdmaNetworkReady, "
		     "status: 'False'}]}}");
	mirrored_wakes(t, "health-taint health-taint;node-state w1;");
	mirrored_put(t, KIND_NODE,
		     "{metadata: {name: w2}, spec: {taints: [{key: orbweaver.io/rdma-degraded}]}}");
	mirrored_wakes(t, "health-taint health-taint;node-state w2;");
	mirrored_put(t, KIND_POOL_CONFIG,
		     "{metadata: {name: p, namespace: orbweaver-system, annotations: "
		     "{orbweaver.io/taint-degraded: '1'}}}");
	assert_non_null(json_at(t->woken, "health-taint health-taint"));
	/* Of nodes in both no pool decides. */
	mirrored_remove(t, KIND_POOL_CONFIG, "orbweaver-system/p");
	free(mirrored_woken(t));
	mirrored_put(t, KIND_POOL_CONFIG, "{metadata: {name: p, namespace: orbweaver-system}}");
	assert_non_null(json_at(t->woken, "health-taint health-taint"));
	world = world_of(t, CONTROLLER_HEALTH_TAINT, "health-taint");
	assert_int_equal(json_object_size(json_at(world, KIND_NODE)), 2);
	assert_int_equal(json_object_size(json_at(world, KIND_POOL_CONFIG)), 1);
}

TEST_WITH(the_rest_of_an_old_stack_is_looked_at, mirrored_begin, mirrored_end)
{
	static const char key[] = "daemonsets/sriov-network-config-daemon net/d";
	struct mirrored_test *t = *state;
	json_auto_t *world = NULL;

	mirrored_put(t, "daemonsets/sriov-network-config-daemon",
		     "{metadata: {name: d, namespace: net}, spec: {x: y}, "
		     "status: {desiredNumberScheduled: 3, numberReady: 2}}");
	mirrored_wakes(t, "leftover daemonsets/sriov-network-config-daemon net/d;");
	world = world_of(t, CONTROLLER_LEFTOVER, key);
	assert_int_equal(json_integer_value(json_at(world, "daemonsets/sriov-network-config-daemon",
						    "net/d", "status", "replicas")),
			 3);
}

TEST_WITH(a_node_that_has_a_shared_resource_concerns_its_config_map, mirrored_begin, mirrored_end)
{
#define SHARED(node, offered, more)                                                                \
	"{metadata: {name: " node ", namespace: orbweaver-system}, status: {syncStatus: "          \
	"Succeeded, " more "resources: [{name: x/a, kind: shared, wanted: 5, offered: " offered    \
	"}]}}"
#define OF_SHARED(ns) "configmaps/" SHARED_CONFIG_NAME " " ns "/" SHARED_CONFIG_NAME
	static const char key[] = "orbweaver-system/" SHARED_CONFIG_NAME;
	struct mirrored_test *t = *state;
	json_auto_t *world = NULL;

	mirrored_put(t, KIND_NODE_STATE, SHARED("w1", "0", ""));
	mirrored_wakes(t, "node-state w1;shared-offers orbweaver-system/" SHARED_CONFIG_NAME ";");
	mirrored_put(t, KIND_NODE_STATE, SHARED("w1", "0", "presentVfs: 1, "));
	mirrored_wakes(t, "node-state w1;");
	mirrored_put(t, KIND_NODE_STATE, SHARED("w1", "5", ""));
	mirrored_wakes(t, "node-state w1;shared-offers orbweaver-system/" SHARED_CONFIG_NAME ";");
	mirrored_put(t, LEFTOVER_SHARED_CONFIG,
		     "{metadata: {name: " SHARED_CONFIG_NAME ", namespace: orbweaver-system}}");
	mirrored_wakes(t, "leftover " OF_SHARED(
				  "orbweaver-system") ";shared-offers "
						      "orbweaver-system/" SHARED_CONFIG_NAME ";");
	/* Enough of the nodes: who has not reported, the first that lacks it, one that has it. */
	mirrored_put(t, KIND_NODE_STATE, SHARED("w3", "0", ""));
	mirrored_put(t, KIND_NODE_STATE, SHARED("w2", "0", ""));
	mirrored_put(t, KIND_NODE_STATE, SHARED("w4", "5", ""));
	mirrored_put(t, KIND_NODE_STATE,
		     "{metadata: {name: w5, namespace: orbweaver-system}, status: {}}");
	free(mirrored_woken(t));
	world = world_of(t, CONTROLLER_SHARED_OFFERS, key);
	assert_non_null(json_at(world, LEFTOVER_SHARED_CONFIG, key));
	assert_int_equal(json_object_size(json_at(world, KIND_NODE_STATE)), 3);
	assert_non_null(json_at(world, KIND_NODE_STATE, "orbweaver-system/w1"));
	assert_non_null(json_at(world, KIND_NODE_STATE, "orbweaver-system/w2"));
	assert_non_null(json_at(world, KIND_NODE_STATE, "orbweaver-system/w5"));
	mirrored_put(t, LEFTOVER_SHARED_CONFIG,
		     "{metadata: {name: " SHARED_CONFIG_NAME ", namespace: other}}");
	mirrored_wakes(t, "leftover " OF_SHARED("other") ";");
#undef SHARED
#undef OF_SHARED
}

TEST_WITH(pods_that_do_not_ask_are_not_kept, mirrored_begin, mirrored_end)
{
	static const char *const others[] = {
		POD("x", "ml", ""),
		"{metadata: {name: y, namespace: ml, annotations: {" RDMA ": g}}, "
		"status: {phase: Succeeded}}",
		"{metadata: {name: z, namespace: ml, deletionTimestamp: '2026-01-01T00:00:00Z', "
		"annotations: {" RDMA ": g}}, status: {phase: Running}}",
	};
	struct mirrored_test *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		mirrored_put(t, KIND_POD, others[i]);
	assert_int_equal(cache_len(mirror_cache(t->mirror, KIND_POD)), 0);
	mirrored_wakes(t, "");
}

TEST_WITH(a_pod_sees_its_namespace_and_the_configs_of_its_group, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *off = NULL, *on = NULL;

	mirrored_put(t, KIND_NAMESPACE, NAMESPACE("ml", RDMA ": g"));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", RDMA ": g", ""));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("b", NETWORK ": net", ""));
	mirrored_put(t, KIND_POD, POD("x", "ml", NETWORK ": net"));
	mirrored_put(t, MIRROR_SPIDERPOOL_CONF,
		     "{metadata: {name: spiderpool-conf, namespace: spiderpool}}");
	off = world_of(t, CONTROLLER_INJECT_POD, "ml/x");
	assert_non_null(json_at(off, KIND_NAMESPACE, "ml"));
	/* The namespace's word is the stronger one. */
	assert_non_null(json_at(off, KIND_MULTUS_CONFIG, "net/a"));
	assert_null(json_at(off, KIND_MULTUS_CONFIG, "net/b"));
	assert_null(json_at(off, "env", "webhook"));
	t->webhook.listen = ":8443";
	on = world_of(t, CONTROLLER_INJECT_POD, "ml/x");
	assert_string_equal(json_str_at(on, "env", "webhook", "configNamespace"), "spiderpool");
	assert_non_null(json_at(on, INJECT_CONFIG_MAP, "spiderpool/spiderpool-conf"));
}

TEST_WITH(what_is_found_on_a_pod_wakes_its_configs, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", RDMA ": g", ""));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("b", RDMA ": h", ""));
	mirrored_put(t, KIND_POD, POD("x", "ml", RDMA ": g"));
	free(mirrored_woken(t));
	found(t, "ml/x", "NotInjected");
	mirrored_wakes(t, "inject-config net/a;");
	found(t, "ml/x", "NotInjected");
	mirrored_wakes(t, "");
	/*
	 * It moves to another group: both have to be looked at, the second once something is found
	 * there.
	 */
	mirrored_put(t, KIND_POD, POD("x", "ml", RDMA ": h"));
	mirrored_wakes(t, "inject-config net/a;inject-pod ml/x;");
	mirrored_remove(t, KIND_POD, "ml/x");
	mirrored_wakes(t, "inject-config net/b;inject-pod ml/x;");
	found(t, "ml/x", NULL);
	mirrored_wakes(t, "");
}

static void put_bound(struct mirrored_test *t, const char *name, const char *more)
{
	auto_free char *text = str_printf(
		"{metadata: {name: %s, namespace: ml, annotations: {k8s.v1.cni.cncf.io/networks: "
		"net}%s}, spec: {nodeName: w1}}",
		name, more);

	mirrored_put(t, KIND_BOUND_POD, text);
}

/* Nothing looks at a pod that is gone, unless it waits for addresses. */
TEST_WITH(what_was_found_on_a_pod_goes_with_it, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *object = mirrored_yaml("{metadata: {uid: u}}"), *world = NULL, *later = NULL;
	json_auto_t *op =
		json_pack("{s:s, s:s, s:s, s:s, s:s}", "op", "finding", "kind", KIND_BOUND_POD,
			  "key", "ml/x", "reason", "AddressTwice", "message", "twice");

	put_bound(t, "x", "");
	ipam_book_posted(&t->sources, BOX_WAITING, "ml/x", NULL, UINT64_MAX);
	assert_true(controllers_remember(&t->sources, CONTROLLER_STRAYS, op, object, UINT64_MAX));
	world = world_of(t, CONTROLLER_STRAYS, "p");
	assert_string_equal(json_str_at(world, "twice", "ml/x"), "twice");
	mirrored_remove(t, KIND_BOUND_POD, "ml/x");
	assert_false(findings_has(t->sources.findings, KIND_BOUND_POD, "ml/x"));
	later = world_of(t, CONTROLLER_STRAYS, "p");
	assert_null(json_at(later, "twice"));
}

/* A virtual machine may have the name of a pod: they share a SpiderEndpoint. */
TEST_WITH(a_pod_that_waits_sees_who_shares_its_endpoint, mirrored_begin, mirrored_end)
{
#define OF_VM                                                                                      \
	", ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, "          \
	"name: vm, controller: true}]"
	static const char *const pods[] = {"launcher", "vm"};
	struct mirrored_test *t = *state;

	put_bound(t, "launcher", OF_VM);
	put_bound(t, "vm", "");
	for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
		auto_free char *key = str_printf("ml/%s", pods[i]);
		json_auto_t *world = NULL;

		ipam_book_posted(&t->sources, BOX_WAITING, "ml/launcher", NULL, UINT64_MAX);
		ipam_book_posted(&t->sources, BOX_WAITING, "ml/vm", NULL, UINT64_MAX);
		ipam_book_wait(&t->sources, key);
		world = world_of(t, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
		assert_int_equal(json_object_size(json_at(world, KIND_POD)), 2);
	}
}

/* Each of them would be read for each of them, and asked of the API server. */
TEST_WITH(of_many_pods_of_one_machine_few_are_looked_at, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *few = NULL, *many = NULL;

	for (int i = 0; i <= LIMIT_MACHINE_PODS; i++) {
		auto_free char *name = str_printf("p%d", i);

		few = few                       ? few
		      : i == LIMIT_MACHINE_PODS ? world_of(t, CONTROLLER_ENDPOINT, "ml/vm")
						: NULL;
		put_bound(t, name, OF_VM);
	}
	many = world_of(t, CONTROLLER_ENDPOINT, "ml/vm");
	assert_int_equal(json_object_size(json_at(few, KIND_POD)), LIMIT_MACHINE_PODS);
	assert_null(json_at(few, BOX_CROWDED, "ml/vm"));
	assert_int_equal(json_object_size(json_at(many, KIND_POD)), LIMIT_MACHINE_PODS);
	assert_true(json_is_true(json_at(many, BOX_CROWDED, "ml/vm")));
}

TEST_WITH(a_pod_without_findings_is_no_work_for_configs, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", RDMA ": g", ""));
	free(mirrored_woken(t));
	mirrored_put(t, KIND_POD, POD("x", "ml", RDMA ": g"));
	mirrored_wakes(t, "inject-pod ml/x;");
	mirrored_remove(t, KIND_POD, "ml/x");
	mirrored_wakes(t, "inject-pod ml/x;");
}

static void group_looked_at(struct mirrored_test *t, const char *group)
{
	auto_plan struct plan plan = {0};

	assert_int_equal(inject_check_group(NULL, group, &plan, NULL), 0);
	(void)controllers_remember(&t->sources, CONTROLLER_INJECT_GROUP,
				   json_array_get(plan.ops, 0), NULL, UINT64_MAX);
}

/* As often as it changes they are one key, and looked at once in a while. */
TEST_WITH(a_config_wakes_the_pods_of_its_groups, mirrored_begin, mirrored_end)
{
	bool (*urgent)(const struct controller_sources *from, const char *key) =
		controllers[CONTROLLER_INJECT_GROUP].is_urgent;
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_NAMESPACE, NAMESPACE("all", RDMA ": g"));
	mirrored_put(t, KIND_POD, POD("x", "ml", RDMA ": g"));
	mirrored_put(t, KIND_POD, POD("w", "ml", RDMA ": h"));
	mirrored_put(t, KIND_POD, POD("z", "all", NETWORK ": net"));
	free(mirrored_woken(t));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", RDMA ": g", ""));
	mirrored_wakes(t, "inject-config net/a;inject-group net " RDMA "=g;multus-config net/a;");
	assert_true(urgent(&t->sources, "net " RDMA "=g"));
	group_looked_at(t, "net " RDMA "=g");
	mirrored_wakes(t, "inject-pod all/z;inject-pod ml/x;");
	assert_false(urgent(&t->sources, "net " RDMA "=g"));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", RDMA ": h", ""));
	mirrored_wakes(t, "inject-config net/a;inject-group net " RDMA "=g;inject-group net " RDMA
			  "=h;multus-config net/a;");
	mirrored_put(t, KIND_MULTUS_CONFIG,
		     "{metadata: {name: a, namespace: net, annotations: {" RDMA ": h}}, "
		     "spec: {cniType: macvlan, macvlan: {master: [eth1]}}, "
		     "status: {conditions: [{type: Ready}]}}");
	mirrored_wakes(t, "inject-config net/a;multus-config net/a;"); /* status alone: no pods */
	mirrored_remove(t, KIND_MULTUS_CONFIG, "net/a");
	mirrored_wakes(t, "inject-group net " RDMA "=h;multus-config net/a;");
	group_looked_at(t, "net " RDMA "=h");
	mirrored_wakes(t, "inject-pod ml/w;");
}

#define MANY 300

/* Of one tenant, with these annotations. */
static void put_many_configs(struct mirrored_test *t, const char *ns, const char *annotations)
{
	for (int i = 0; i < MANY; i++) {
		auto_free char *text = str_printf("{metadata: {name: c%d, namespace: %s, "
						  "annotations: {%s}}, spec: {cniType: macvlan, "
						  "macvlan: {master: [eth1]}}}",
						  i, ns, annotations);

		mirrored_put(t, KIND_MULTUS_CONFIG, text);
	}
}

static size_t count_configs(struct mirrored_test *t, enum controller_id id, const char *key)
{
	json_auto_t *world = world_of(t, id, key);

	return json_object_size(json_at(world, KIND_MULTUS_CONFIG));
}

/* Groups have one name for all: what a tenant has in one costs others nothing. */
TEST_WITH(a_pod_sees_no_configs_of_other_tenants, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	put_many_configs(t, "evil", RDMA ": g");
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", RDMA ": g", ""));
	mirrored_put(t, KIND_POD, POD("x", "ml", RDMA ": g"));
	mirrored_put(t, KIND_POD, POD("z", "evil", RDMA ": g"));
	assert_int_equal(count_configs(t, CONTROLLER_INJECT_POD, "ml/x"), 1);
	assert_int_equal(count_configs(t, CONTROLLER_INJECT_POD, "evil/z"), 2 + LIMIT_CONFIGS);
	free(mirrored_woken(t));
	mirrored_remove(t, KIND_MULTUS_CONFIG, "evil/c1");
	mirrored_wakes(t, "inject-group evil " RDMA "=g;multus-config evil/c1;");
	group_looked_at(t, "evil " RDMA "=g");
	mirrored_wakes(t, "inject-pod evil/z;");
	found(t, "ml/x", "NotInjected");
	mirrored_wakes(t, "inject-config net/a;");
}

/* Each looks at the others: so at a few, and only when one has come, gone, or has another name. */
TEST_WITH(configs_that_claim_one_name_are_few_for_each_other, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	put_many_configs(t, "evil", CNI_ANNOTATION_NAD_NAME ": a");
	assert_int_equal(count_configs(t, CONTROLLER_MULTUS_CONFIG, "evil/c1"), 1 + LIMIT_CONFIGS);
	free(mirrored_woken(t));
	mirrored_put(t, KIND_MULTUS_CONFIG,
		     "{metadata: {name: c1, namespace: evil, annotations: "
		     "{" CNI_ANNOTATION_NAD_NAME ": a}}, spec: {cniType: ovs}}");
	mirrored_wakes(t, "multus-config evil/c1;");
	mirrored_remove(t, KIND_MULTUS_CONFIG, "evil/c1");
	assert_int_equal(json_object_size(t->woken), 1 + LIMIT_CONFIGS);
}

TEST_WITH(a_config_out_of_all_groups_is_not_looked_at_for_pods, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", "", ""));
	mirrored_wakes(t, "multus-config net/a;");
	/* It says something that is not true any more. */
	mirrored_put(t, KIND_MULTUS_CONFIG,
		     "{metadata: {name: a, namespace: net}, spec: {cniType: custom}, "
		     "status: {conditions: [{type: " INJECTED_CONDITION ", status: 'True'}]}}");
	mirrored_wakes(t, "inject-config net/a;multus-config net/a;");
}

TEST_WITH(a_config_sees_the_pods_of_its_groups_that_lack_something, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *world = NULL;

	mirrored_put(t, KIND_NAMESPACE, NAMESPACE("all", RDMA ": g"));
	mirrored_put(t, KIND_NAMESPACE, NAMESPACE("ml", ""));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", RDMA ": g", ""));
	mirrored_put(t, KIND_POD, POD("well", "ml", RDMA ": g"));
	mirrored_put(t, KIND_POD, POD("ill", "ml", RDMA ": g"));
	mirrored_put(t, KIND_POD, POD("other", "ml", RDMA ": h"));
	mirrored_put(t, KIND_POD, POD("by-namespace", "all", NETWORK ": net"));
	found(t, "ml/ill", "NotInjected");
	found(t, "ml/other", "NotInjected");
	found(t, "all/by-namespace", "NotInjected");
	world = world_of(t, CONTROLLER_INJECT_CONFIG, "net/a");
	assert_int_equal(json_object_size(json_at(world, KIND_POD)), 2);
	assert_non_null(json_at(world, KIND_POD, "ml/ill"));
	assert_non_null(json_at(world, KIND_POD, "all/by-namespace"));
	assert_int_equal(json_object_size(json_at(world, KIND_NAMESPACE)), 2);
}

TEST_WITH(a_namespace_that_asks_for_something_else_wakes_its_pods, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_NAMESPACE, NAMESPACE("ml", ""));
	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("a", NETWORK ": net", ""));
	mirrored_put(t, KIND_POD, POD("x", "ml", NETWORK ": net"));
	found(t, "ml/x", "NotInjected");
	free(mirrored_woken(t));
	/* It is not kept. */
	mirrored_put(t, KIND_NAMESPACE, NAMESPACE("ml", "other: annotation"));
	mirrored_wakes(t, "");
	mirrored_put(t, KIND_NAMESPACE, NAMESPACE("ml", RDMA ": g"));
	mirrored_wakes(t,
		       "inject-config net/a;inject-pod ml/x;webhook-setup orbweaver-validating;");
}

TEST_WITH(settings_of_injection_wake_all_pods_that_ask, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_POD, POD("x", "ml", RDMA ": g"));
	mirrored_put(t, KIND_POD, POD("w", "ml", NETWORK ": net"));
	free(mirrored_woken(t));
	mirrored_put(t, MIRROR_SPIDERPOOL_CONF,
		     "{metadata: {name: spiderpool-conf, namespace: spiderpool}}");
	mirrored_wakes(t, "addresses all;inject-pod ml/w;inject-pod ml/x;"
			  "webhook-setup orbweaver-validating;");
}

TEST_WITH(a_node_wakes_the_pools_that_it_is_a_conflict_between, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_POOL_CONFIG, POOL("a", "nodeSelector: {matchLabels: {a: x}}"));
	mirrored_put(t, KIND_POOL_CONFIG, POOL("b", "nodeSelector: {matchLabels: {b: x}}"));
	mirrored_put(t, KIND_POOL_CONFIG, POOL("c", "nodeSelector: {matchLabels: {c: x}}"));
	mirrored_put(t, KIND_POOL_CONFIG, POOL("bad", "nodeSelector: {matchLabels: 5}"));
	free(mirrored_woken(t));
	mirrored_put(t, KIND_NODE, NODE("n1", "a: x"));
	mirrored_wakes(t, "node-state n1;");
	mirrored_put(t, KIND_NODE, NODE("n1", "b: x"));
	mirrored_wakes(t, "node-state n1;");
	mirrored_put(t, KIND_NODE, NODE("n1", "a: x, b: x"));
	mirrored_wakes(t, "node-state n1;pool-config sys/a;pool-config sys/b;");
	mirrored_put(t, KIND_NODE, NODE("n1", "a: x, b: x, other: x"));
	mirrored_wakes(t, "node-state n1;");
	mirrored_put(t, KIND_NODE, NODE("n1", "a: x, c: x"));
	mirrored_wakes(t, "node-state n1;pool-config sys/a;pool-config sys/b;pool-config sys/c;");
	mirrored_remove(t, KIND_NODE, "n1");
	mirrored_wakes(t, "node-state n1;pool-config sys/a;pool-config sys/c;");
}

/* The pods of one pass, as gathered, leave the book as if they had been served. */
static json_t *pass_over(struct mirrored_test *t)
{
	json_auto_t *world = world_of(t, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
	json_t *taken = json_copy(json_at(world, BOX_WAITING)), *value;
	const char *key;

	json_each (taken, key, value)
		ipam_book_set(&t->sources, IPAM_WAITING, key, NULL);
	assert_int_equal(json_is_true(json_at(world, "env", "isPart")),
			 ipam_book_all(t->sources.addresses, IPAM_WAITING) != NULL);
	return taken;
}

static void put_waiting(struct mirrored_test *t, const char *name, const char *networks)
{
	auto_free char *key = str_printf("ml/%s", name);
	auto_free char *text =
		str_printf("{metadata: {name: %s, namespace: ml, uid: u-%s, annotations: "
			   "{k8s.v1.cni.cncf.io/networks: '%s'}}, spec: {nodeName: w1}}",
			   name, name, networks);
	json_auto_t *mirrored = json_true();

	mirrored_put(t, KIND_BOUND_POD, text);
	ipam_book_set(&t->sources, IPAM_WAITING, key, mirrored);
}

/* Whatever pool its endpoint names. */
TEST_WITH(a_pod_that_waits_sees_the_pools_that_have_its_addresses, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *world = NULL;

	mirrored_put(t, KIND_IP_POOL,
		     "{metadata: {name: named}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.20]}}");
	mirrored_put(t, KIND_IP_POOL,
		     "{metadata: {name: has}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.5]}}");
	mirrored_put(t, KIND_IP_POOL,
		     "{metadata: {name: lacks}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.6]}}");
	mirrored_put(t, KIND_ENDPOINT,
		     "{metadata: {name: a, namespace: ml}, status: {current: {uid: u-a, ips: "
		     "[{interface: net1, ipv4: 10.0.0.5/24, ipv4Pool: named}]}}}");
	put_waiting(t, "a", "net");
	world = world_of(t, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
	assert_non_null(json_at(world, KIND_IP_POOL, "named"));
	assert_non_null(json_at(world, KIND_IP_POOL, "has"));
	assert_null(json_at(world, KIND_IP_POOL, "lacks"));
}

TEST_WITH(large_pods_keep_no_small_one_waiting, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	auto_strbuf struct strbuf networks = {0};
	size_t passes = 0, left = 3 * ASSIGN_MAX;

	for (int i = 0; i < 60; i++)
		strbuf_adds(&networks, i ? ",a" : "a");
	for (size_t i = 0; i < left; i++) {
		auto_free char *name = str_printf("large-%zu", i);

		put_waiting(t, name, strbuf_str(&networks));
	}
	put_waiting(t, "small", "a");
	while (ipam_book_get(t->sources.addresses, IPAM_WAITING, "ml/small")) {
		json_auto_t *taken = pass_over(t);

		/* Each pass has some of the large ones, and not too many. */
		assert_in_range(json_object_size(taken), 1, ASSIGN_HEAVY_WORK / 60 + 1);
		passes++;
	}
	assert_in_range(passes, 1, 4);
	while (ipam_book_all(t->sources.addresses, IPAM_WAITING)) {
		json_auto_t *taken = pass_over(t);

		assert_in_range(json_object_size(taken), 1, ASSIGN_HEAVY_WORK / 60 + 1);
	}
}

TEST_WITH(a_pod_of_many_small_ones_is_in_the_next_pass, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *first = NULL, *second = NULL;

	for (size_t i = 0; i < ASSIGN_MAX + 5; i++) {
		auto_free char *name = str_printf("p-%zu", i);

		put_waiting(t, name, "a,a");
	}
	first = pass_over(t);
	second = pass_over(t);
	assert_int_equal(json_object_size(first), ASSIGN_MAX);
	assert_int_equal(json_object_size(second), 5);
}

/* Endings of endpoints that users wrote: as many as a pod may have, of pools that do not exist. */
TEST_WITH(endings_come_in_turns, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *ips = json_array(), *seen = json_object();
	size_t passes = 0;

	for (size_t i = 0; i < 65; i++)
		json_array_append_new(
			ips, json_pack("{s:s, s:s}", "ipv4", "10.0.0.1/24", "ipv4Pool", "none"));
	for (size_t i = 0; i < ASSIGN_MAX; i++) {
		auto_free char *key = str_printf("ml/g-%zu", i);
		json_auto_t *ending = json_pack("{s:s, s:{s:{s:s, s:O}}}", "uid", "u", "status",
						"current", "uid", "u", "ips", ips);

		ipam_book_set(&t->sources, IPAM_ENDING, key, ending);
	}
	/* None is served, as where a ledger cannot be written. */
	while (json_object_size(seen) < ASSIGN_MAX) {
		json_auto_t *world = world_of(t, CONTROLLER_ADDRESSES, ADDRESSES_KEY);

		assert_in_range(json_object_size(json_at(world, BOX_ENDING)), 1,
				ASSIGN_ENDING_WORK / 9 + 1);
		assert_true(json_is_true(json_at(world, "env", "leavesEnding")));
		json_object_update(seen, json_at(world, BOX_ENDING));
		assert_true(++passes < 10);
	}
}

/* A world may have all endpoints of a namespace. */
TEST_WITH(a_pool_sees_addresses_of_endpoints_and_no_more, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *world = NULL;
	json_auto_t *want = mirrored_yaml(
		"{metadata: {name: a, namespace: ml, annotations: {orbweaver.io/down: u-a}}, "
		"status: {ownerControllerName: a, current: {uid: u-a, ips: [{ipv4: 10.0.0.5/24, "
		"ipv4Pool: p}]}}}");

	mirrored_put(t, KIND_ENDPOINT,
		     "{metadata: {name: a, namespace: ml, annotations: {orbweaver.io/down: u-a, "
		     "orbweaver.io/asks: x}}, status: {ownerControllerName: a, current: {uid: u-a, "
		     "node: w1, ips: [{interface: net1, ipv4: 10.0.0.5/24, ipv4Pool: p, routes: "
		     "[{dst: 10.0.0.0/8, gw: 10.0.0.1}]}]}}}");
	world = world_of(t, CONTROLLER_STRAYS, "p");
	assert_true(json_same(json_at(world, KIND_ENDPOINT, "ml/a"), want));
}

/* By its key alone; no kind looks at an object that is not there. */
TEST_WITH(the_end_of_what_could_never_be_read_wakes_by_its_key, mirrored_begin, mirrored_end)
{
	static const struct {
		const char *kind, *key, *woken;
	} cases[] = {
		{KIND_NODE_STATE, "orbweaver-system/n1", "node-state n1;"},
		{KIND_BOUND_POD, "ml/p", "endpoint ml/p;"},
		{KIND_MULTUS_CONFIG, "net/a", "multus-config net/a;multus-config net/b;"},
		{LEFTOVER_SHARED_CONFIG, "else/" SHARED_CONFIG_NAME,
		 "leftover configmaps/" SHARED_CONFIG_NAME " else/" SHARED_CONFIG_NAME ";"},
	};
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_MULTUS_CONFIG, CONFIG("b", "multus.spidernet.io/cr-name: a", ""));
	for (size_t i = 0; operator_kinds[i].kind; i++) {
		struct cache *cache = mirror_cache(t->mirror, operator_kinds[i].kind);

		assert_true(cache_put_unreadable(cache, "ns/gone", 9));
		assert_false(cache_remove(cache, "ns/gone", UINT64_MAX));
	}
	free(mirrored_woken(t));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cache *cache = mirror_cache(t->mirror, cases[i].kind);

		assert_true(cache_put_unreadable(cache, cases[i].key, 9));
		assert_false(cache_remove(cache, cases[i].key, UINT64_MAX));
		mirrored_wakes(t, cases[i].woken);
	}
}
