// SPDX-License-Identifier: Apache-2.0
/*
 * Which addresses a pod gets when its NICs ask one by one, as where networks cannot be foreseen or
 * nobody leads: lists that name no NICs, pods that come back, the networks that a node numbers.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/allocate/books.h"
#include "reconcilers/ipam/foresight.h"
#include "reconcilers/ipam/ledger.h"
#include "reconcilers/ipam/pod_controller.h"
#include "reconcilers/ipam/pod_networks.h"
#include "tests/support/yaml.h"

#define POOLS                                                                                      \
	"spiderippools:\n"                                                                         \
	"  a: {metadata: {name: a}, spec: {subnet: 10.1.0.0/24, ips: [10.1.0.1-10.1.0.9]}}\n"      \
	"  b: {metadata: {name: b}, spec: {subnet: 10.2.0.0/24, ips: [10.2.0.1-10.2.0.9]}}\n"      \
	"  c: {metadata: {name: c}, spec: {subnet: 10.3.0.0/24, ips: [10.3.0.1-10.3.0.9]}}\n"

static const struct ipam_settings settings = {
	.ipv4 = true, .ipv6 = true, .keeps_stateful_sets = true, .ns = "spiderpool"};

/* A cluster, a pod, and the endpoint as the last call left it. */
struct stand {
	json_t *world, *pod, *endpoint;
};

static struct stand stand(const char *annotations, const char *uid)
{
	auto_free char *text = str_printf(
		"{metadata: {name: web-0, namespace: ml, uid: %s, annotations: {%s}, "
		"ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: w, "
		"controller: true}]}, spec: {nodeName: w1}}",
		uid, annotations);

	return (struct stand){.world = yaml(POOLS), .pod = yaml(text)};
}

static void stand_done(struct stand *s)
{
	json_decref(s->world);
	json_decref(s->pod);
	json_decref(s->endpoint);
}

/* Write what was decided, as the leader does. */
static void keep(struct stand *s, struct books *books, json_t *status)
{
	auto_plan struct plan plan = {0};
	json_t *op;
	size_t i;

	books_plan(books, &plan);
	json_array_foreach (plan.ops, i, op) {
		json_t *pool =
			(json_t *)world_get(s->world, "spiderippools", json_str_at(op, "key"));

		json_put(pool, "status", json_deep_copy(json_at(op, "status")));
	}
	json_decref(s->endpoint);
	s->endpoint = json_pack("{s:o}", "status", status);
}

/* One NIC asks: "net1=10.1.0.1/24 …" of all that the pod has then, or the reason. New. */
static char *ask(struct stand *s, const char *nic, const char *pool)
{
	json_auto_t *asks = json_pack("[{s:s, s:[s]}]", "nic", nic, "ipv4", pool);
	auto_books struct books *books = books_new(s->world);
	auto_strbuf struct strbuf said = {0};
	json_t *status = NULL, *item;
	struct err err = {0};
	size_t i;

	if (ipam_allocate(books, s->pod, s->endpoint, asks, &settings, &status, &err) < 0)
		return str_printf("(%s)", err.reason);
	json_array_foreach (json_at(status, "current", "ips"), i, item)
		strbuf_addf(&said, "%s%s=%s", i ? " " : "", json_str_at(item, "interface"),
			    json_str_at(item, "ipv4"));
	keep(s, books, status);
	return strbuf_take(&said);
}

static void expect_asked(struct stand *s, const char *nic, const char *pool, const char *want)
{
	auto_free char *got = ask(s, nic, pool);

	if (!str_eq(got, want))
		fail_msg("%s: %s, wanted %s", nic, got, want);
}

static size_t records_of(const struct stand *s, const char *pool)
{
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(
		ledger_open(world_get(s->world, "spiderippools", pool), NULL, NULL, &ledger, NULL),
		0);
	return json_object_size(ledger.records);
}

#define UNNAMED                                                                                    \
	"ipam.spidernet.io/ippools: '[{\"ipv4\": [\"a\"]}, {\"ipv4\": [\"b\"]}, {\"ipv4\": "       \
	"[\"c\"]}]'"

TEST(a_nic_for_which_the_list_has_no_item_gets_no_address)
{
	struct stand s = stand(UNNAMED, "u-1");

	expect_asked(&s, "eth0", "a", "eth0=10.1.0.1/24 =10.2.0.1/24 =10.3.0.1/24");
	expect_asked(&s, "net1", "a", "eth0=10.1.0.1/24 net1=10.2.0.1/24 =10.3.0.1/24");
	expect_asked(&s, "net2", "a", "eth0=10.1.0.1/24 net1=10.2.0.1/24 net2=10.3.0.1/24");
	expect_asked(&s, "net3", "a", "(NoAddressForNic)");
	assert_int_equal(records_of(&s, "a") + records_of(&s, "b") + records_of(&s, "c"), 3);
	/* Whoever has one keeps it. */
	expect_asked(&s, "net2", "a", "eth0=10.1.0.1/24 net1=10.2.0.1/24 net2=10.3.0.1/24");
	stand_done(&s);
}

/* The pod of before had other pools for its second NIC. */
TEST(an_item_that_was_dropped_is_made_anew_in_its_place)
{
	struct stand s = stand(UNNAMED, "u-1"), next;

	expect_asked(&s, "eth0", "a", "eth0=10.1.0.1/24 =10.2.0.1/24 =10.3.0.1/24");
	expect_asked(&s, "net1", "a", "eth0=10.1.0.1/24 net1=10.2.0.1/24 =10.3.0.1/24");
	expect_asked(&s, "net2", "a", "eth0=10.1.0.1/24 net1=10.2.0.1/24 net2=10.3.0.1/24");
	next = stand("ipam.spidernet.io/ippools: '[{\"ipv4\": [\"a\"]}, {\"ipv4\": [\"c\"]}, "
		     "{\"ipv4\": [\"c\"]}]'",
		     "u-2");
	json_decref(next.world);
	next.world = json_incref(s.world);
	next.endpoint = json_incref(s.endpoint);
	expect_asked(&next, "eth0", "a", "eth0=10.1.0.1/24 =10.3.0.2/24 net2=10.3.0.1/24");
	expect_asked(&next, "net1", "a", "eth0=10.1.0.1/24 net1=10.3.0.2/24 net2=10.3.0.1/24");
	expect_asked(&next, "net2", "a", "eth0=10.1.0.1/24 net1=10.3.0.2/24 net2=10.3.0.1/24");
	/* The node of the pod before has not said that nothing is left. */
	assert_int_equal(records_of(&next, "b"), 1);
	assert_int_equal(records_of(&next, "c"), 2);
	stand_done(&next);
	stand_done(&s);
}

/* A StatefulSet's pod of which the second NIC's pool was changed. */
TEST(what_came_back_unseen_is_judged_when_its_nic_asks)
{
	struct stand s = stand("k8s.v1.cni.cncf.io/networks: 'x,y'", "u-1"), next;

	expect_asked(&s, "net1", "a", "net1=10.1.0.1/24");
	expect_asked(&s, "net2", "b", "net1=10.1.0.1/24 net2=10.2.0.1/24");
	next = stand("k8s.v1.cni.cncf.io/networks: 'x,y'", "u-2");
	json_decref(next.world);
	next.world = json_incref(s.world);
	next.endpoint = json_incref(s.endpoint);
	expect_asked(&next, "net1", "a", "net1=10.1.0.1/24 net2=10.2.0.1/24");
	expect_asked(&next, "net2", "c", "net1=10.1.0.1/24 net2=10.3.0.1/24");
	/* Until this pod ends: the one before may have used it. */
	assert_int_equal(records_of(&next, "b"), 1);
	/* Once: the pod runs with it now. */
	expect_asked(&next, "net2", "a", "net1=10.1.0.1/24 net2=10.3.0.1/24");
	stand_done(&next);
	stand_done(&s);
}

TEST(what_may_stay_is_not_judged_twice)
{
	struct stand s = stand("k8s.v1.cni.cncf.io/networks: 'x,y'", "u-1"), next;

	expect_asked(&s, "net1", "a", "net1=10.1.0.1/24");
	expect_asked(&s, "net2", "b", "net1=10.1.0.1/24 net2=10.2.0.1/24");
	next = stand("k8s.v1.cni.cncf.io/networks: 'x,y'", "u-2");
	json_decref(next.world);
	next.world = json_incref(s.world);
	next.endpoint = json_incref(s.endpoint);
	expect_asked(&next, "net1", "a", "net1=10.1.0.1/24 net2=10.2.0.1/24");
	expect_asked(&next, "net2", "b", "net1=10.1.0.1/24 net2=10.2.0.1/24");
	expect_asked(&next, "net2", "c", "net1=10.1.0.1/24 net2=10.2.0.1/24");
	stand_done(&next);
	stand_done(&s);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* "namespace/name@interface …"; "-" for one that is not known; the reason in parentheses. New. */
static char *networks_of(const char *annotations, const char *data)
{
	auto_free char *text =
		str_printf("{metadata: {name: p, namespace: ml, annotations: {%s}}}", annotations);
	auto_free char *config = str_printf("{%s}", data);
	json_auto_t *pod = yaml(text), *list = NULL, *settled = yaml(config);
	struct ipam_settings these = {
		.ns = "spiderpool",
		.cluster_network = json_str_at(settled, "clusterNetwork"),
		.multus_ns = json_str_at(settled, "multusNamespace"),
		.default_networks = json_str_at(settled, "defaultNetworks"),
		.system_namespaces = json_str_at(settled, "systemNamespaces"),
	};
	auto_strbuf struct strbuf said = {0};
	struct err err = {0};
	json_t *network;
	size_t i;

	list = pod_networks(pod, &these, &err);
	if (!list)
		return str_printf("(%s)", err.reason);
	json_array_foreach (list, i, network) {
		auto_free char *key = json_is_object(network) ? network_key(network) : NULL;
		auto_free char *other = pod_network_other_key(network);

		strbuf_addf(&said, "%s%s", i ? " " : "", key ? key : "-");
		if (other)
			strbuf_addf(&said, "|%s", other);
		if (key)
			strbuf_addf(&said, "@%s", json_str_at(network, "interface"));
	}
	return strbuf_take(&said);
}

TEST(networks_are_numbered_as_on_the_node)
{
#define DEFAULT "v1.multus-cni.io/default-network: d"
#define MORE    "k8s.v1.cni.cncf.io/networks: 'x,y@roce0'"
	static const struct {
		const char *annotations, *data, *want;
	} cases[] = {
		{"", "", "-"},
		{MORE, "", "- ml/x@net1 ml/y@roce0"},
		{"", "clusterNetwork: c", "spiderpool/c@eth0"},
		{DEFAULT, "clusterNetwork: c", "kube-system/d|spiderpool/d@eth0"},
		{DEFAULT, "multusNamespace: other", "other/d@eth0"},
		{"v1.multus-cni.io/default-network: ml/d@net0", "multusNamespace: other",
		 "ml/d@eth0"},
		{MORE, "'defaultNetworks': 'm, n'",
		 "- kube-system/m@net1 kube-system/n@net2 ml/x@net3 ml/y@roce0"},
		{MORE, "'defaultNetworks': m, systemNamespaces: 'a, ml'", "- ml/x@net1 ml/y@roce0"},
		{MORE, "'defaultNetworks': m, multusNamespace: other",
		 "- other/m@net1 ml/x@net2 ml/y@roce0"},
		{"v1.multus-cni.io/default-network: '[{'", "", "(BadNetworks)"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got = networks_of(cases[i].annotations, cases[i].data);

		if (!str_eq(got, cases[i].want))
			fail_msg("case %zu: %s, wanted %s", i, got, cases[i].want);
	}
}

TEST(nothing_is_foreseen_of_two_networks_with_one_interface)
{
	static const char *const networks[] = {"x,y@net1", "x@eth0", "x@roce0,y@roce0"};

	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		json_auto_t *world = json_object(), *unknown = NULL, *asks = NULL;
		json_auto_t *pod =
			json_pack("{s:{s:s, s:s, s:{s:s}}}", "metadata", "name", "p", "namespace",
				  "ml", "annotations", "k8s.v1.cni.cncf.io/networks", networks[i]);
		struct err err = {0};

		asks = foresee(world, pod, &settings, &unknown, &err);
		assert_null(asks);
		assert_string_equal(err.reason, "InterfaceTwice");
	}
}

TEST(a_route_that_no_nic_reaches_is_named)
{
	struct stand s = stand("ipam.spidernet.io/routes: '[{\"dst\": \"10.9.0.0/16\", \"gw\": "
			       "\"10.1.0.254\"}, {\"dst\": \"192.168.0.101/24\", \"gw\": "
			       "\"10.16.0.254\"}]'",
			       "u-1");
	auto_free char *left = NULL, *none = NULL;

	expect_asked(&s, "net1", "a", "net1=10.1.0.1/24");
	left = ipam_routes_left_out(s.pod, json_at(s.endpoint, "status"));
	assert_non_null(strstr(left, "192.168.0.101/24 via 10.16.0.254"));
	assert_null(strstr(left, "10.9.0.0/16"));
	(void)json_object_del(json_at(s.pod, "metadata", "annotations"),
			      "ipam.spidernet.io/routes");
	none = ipam_routes_left_out(s.pod, json_at(s.endpoint, "status"));
	assert_null(none);
	stand_done(&s);
}

/* Users write owner references; the API server takes any text as the name. */
TEST(a_machine_has_the_name_of_an_object)
{
	static const char *const names[] = {"vm1", "VM", "a/b", "..", "", NULL};

	for (size_t i = 0; names[i]; i++) {
		json_auto_t *pod = json_pack(
			"{s:{s:s, s:s, s:[{s:s, s:s, s:s, s:b}]}}", "metadata", "name", "p",
			"namespace", "ml", "ownerReferences", "apiVersion", "kubevirt.io/v1",
			"kind", "VirtualMachineInstance", "name", names[i], "controller", 1);
		const struct ipam_settings keeping = {.keeps_virtual_machines = true};

		assert_string_equal(pod_endpoint_name(pod, &keeping), i ? "p" : "vm1");
		assert_int_equal(pod_keeps_addresses(pod, &keeping), !i);
	}
}

/* A node that is cut off says nothing: its pod may run. */
TEST(a_sandbox_is_made_not_made_or_unknown)
{
	static const struct {
		const char *status;
		enum pod_sandbox want;
	} cases[] = {
		{"{}", POD_SANDBOX_NONE},
		{"{phase: Pending}", POD_SANDBOX_NONE},
		{"{phase: Pending, podIP: ''}", POD_SANDBOX_NONE},
		{"{phase: Pending, podIP: 192.0.2.7}", POD_SANDBOX_MADE},
		{"{phase: Running}", POD_SANDBOX_MADE},
		{"{phase: Unknown}", POD_SANDBOX_UNKNOWN},
		{"{phase: Unknown, podIP: 192.0.2.7}", POD_SANDBOX_MADE},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = json_object();

		json_put(pod, "status", yaml(cases[i].status));
		assert_int_equal(pod_sandbox(pod), cases[i].want);
	}
}
