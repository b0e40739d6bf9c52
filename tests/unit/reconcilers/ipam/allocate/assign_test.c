// SPDX-License-Identifier: Apache-2.0
/*
 * The pass over all pods that wait and all that have ended, and the life of SpiderEndpoints around
 * it.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>

#include "cli/simulate/objects/schema.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/assign_slice.h"
#include "reconcilers/ipam/allocate/books.h"
#include "reconcilers/ipam/allocate/lifecycle.h"
#include "reconcilers/ipam/allocate/strays.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ledger.h"
#include "tests/support/yaml.h"

#define POD(name_, uid_, more_)                                                                    \
	"  ml/" name_ ": {metadata: {name: " name_ ", namespace: ml, uid: " uid_ more_             \
	", annotations: {k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1}}\n"
#define RUNNING(name_, uid_)                                                                       \
	"  ml/" name_ ": {metadata: {name: " name_ ", namespace: ml, uid: " uid_                   \
	", annotations: {k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1}, status: "       \
	"{phase: Running}}\n"
#define POOL(name_, range_, status_)                                                               \
	"  " name_ ": {metadata: {name: " name_                                                    \
	"}, spec: {ipVersion: 4, subnet: 10.0.0.0/24, ips: [" range_ "]}, status: {" status_       \
	"}}\n"
#define NETWORK                                                                                    \
	"network-attachment-definitions:\n"                                                        \
	"  ml/net: {spec: {config: '{\"ipam\": {\"type\": \"spiderpool\", "                        \
	"\"default_ipv4_ippool\": [\"p\"]}}'}}\n"
#define ENDPOINT(uid_, annotations_)                                                               \
	"spiderendpoints:\n"                                                                       \
	"  ml/a:\n"                                                                                \
	"    metadata: {name: a, namespace: ml, uid: e-1, annotations: {" annotations_ "}}\n"      \
	"    status: {ownerControllerType: Pod, ownerControllerName: a, current: {uid: " uid_      \
	", node: w1, ips: [{interface: net1, ipv4: 10.0.0.1/24, ipv4Pool: p, vlan: 0}]}}\n"

/* "op what;" of each operation, with what tells it apart. */
static char *decide(reconcile_fn *reconcile, const char *text, const char *key)
{
	json_auto_t *world = yaml(text);
	auto_plan struct plan plan = {0};
	auto_strbuf struct strbuf said = {0};
	struct err err = {0};
	json_t *op;
	size_t i;

	if (reconcile(world, key, &plan, &err) < 0)
		fail_msg("%s", err.text);
	json_array_foreach (plan.ops, i, op) {
		const char *box = json_str_at(op, "box"), *reason = json_str_at(op, "reason");
		const json_t *value = json_object_get(op, "value");

		strbuf_addf(&said, "%s%s%s %s", json_str_at(op, "op"), box ? " " : "",
			    box ? box : "", json_str_or(json_at(op, "key"), "-"));
		if (reason)
			strbuf_addf(&said, " %s", reason);
		if (box)
			strbuf_adds(&said, json_is_null(value) ? " out" : " in");
		strbuf_adds(&said, "; ");
	}
	return strbuf_take(&said);
}

static void expect(reconcile_fn *reconcile, const char *world, const char *key, const char *want)
{
	auto_free char *said = decide(reconcile, world, key);

	assert_string_equal(said, want);
}

#define NET(name_, pool_)                                                                          \
	"  ml/" name_ ": {spec: {config: '{\"ipam\": {\"type\": \"spiderpool\", "                  \
	"\"default_ipv4_ippool\": [\"" pool_ "\"]}}'}}\n"
#define POD_ON(name_, networks_)                                                                   \
	"  ml/" name_ ": {metadata: {name: " name_ ", namespace: ml, uid: u-" name_                \
	", annotations: {k8s.v1.cni.cncf.io/networks: '" networks_ "'}}, spec: {nodeName: w1}}\n"

TEST(posts_a_pod_as_soon_as_its_own_ledgers_are_written)
{
	expect(assign_reconcile,
	       "waiting: {ml/b: true, ml/ab: true, ml/a: true}\npods:\n" POD_ON("a", "a")
		       POD_ON("b", "b") POD_ON("ab", "b,a") "network-attachment-definitions:\n" NET(
			       "a", "a")
			       NET("b", "b") "spiderippools:\n" POOL("a", "10.0.0.1-10.0.0.9", "")
				       POOL("b", "10.0.0.11-10.0.0.19", ""),
	       "all",
	       "status a; post decided ml/a in; finding ml/a; post waiting ml/a out; "
	       "status b; post decided ml/b in; finding ml/b; post waiting ml/b out; "
	       "post decided ml/ab in; finding ml/ab; post waiting ml/ab out; ");
}

/* ---- large ledgers --------------------------------------------------------------------------- */

/* A cluster over time: what passes plan is done at once. */
struct paced_cluster {
	json_t *world;
	int64_t clock_ms;
	int writes;      /* of ledgers */
	int64_t longest; /* wait of a pod, in ms */
	json_t *since;   /* by pod that waits */
};

static void add_ledger(json_t *world, const char *name, int third, int n)
{
	json_t *pools = json_need_object(world, KIND_IP_POOL);
	json_auto_t *records = json_object();

	for (int i = 0; i < n; i++) {
		auto_free char *address = str_printf("10.%d.%d.%d", third, 100 + i / 250, i % 250);

		json_put(records, address,
			 json_pack("{s:s, s:o, s:o}", "node", "a-node-with-a-long-name.example.com",
				   "pod", json_fmt("a-namespace/a-pod-with-a-long-name-%d", i),
				   "podUid", json_fmt("3f8a2c1e-0000-4000-8000-%012d", i)));
	}
	json_put(pools, name,
		 json_pack("{s:{s:s}, s:{s:i, s:o, s:[o]}, s:{s:o}}", "metadata", "name", name,
			   "spec", "ipVersion", 4, "subnet", json_fmt("10.%d.0.0/16", third), "ips",
			   json_fmt("10.%d.1.0-10.%d.240.0", third, third), "status",
			   "allocatedIPs", json_fmt("%s", "")));
	{
		auto_free char *text = json_text(records);

		json_put_str(json_at(pools, name, "status"), "allocatedIPs", text);
	}
}

static void add_waiting(struct paced_cluster *c, const char *name, const char *networks)
{
	auto_free char *text =
		str_printf("{metadata: {name: %s, namespace: ml, uid: u-%s, annotations: "
			   "{k8s.v1.cni.cncf.io/networks: '%s'}}, spec: {nodeName: w1}}",
			   name, name, networks);
	auto_free char *key = str_printf("ml/%s", name);

	json_put(json_need_object(c->world, KIND_POD), key, yaml(text));
	json_put(json_need_object(c->world, BOX_WAITING), key, json_true());
	json_put_int(c->since, key, c->clock_ms);
}

/* Do what was planned. Returns when the next pass is due, -1: when something happens. */
static int64_t carry_out(struct paced_cluster *c, const struct plan *plan)
{
	int64_t again_ms = -1;
	json_t *op;
	size_t i;

	json_array_foreach (plan->ops, i, op) {
		const char *kind = json_str_at(op, "op"), *box = json_str_at(op, "box");
		const char *key = json_str_or(json_at(op, "key"), "");
		json_t *value = json_object_get(op, "value");

		if (str_eq(kind, "status")) {
			c->writes++;
			json_put(json_at(c->world, KIND_IP_POOL, key), "status",
				 json_incref(json_at(op, "status")));
		} else if (str_eq(kind, "requeue")) {
			again_ms = json_integer_value(json_at(op, "after_ms"));
		} else if (str_eq(box, BOX_WAITING) && json_is_null(value)) {
			int64_t wait = c->clock_ms - json_integer_value(json_at(c->since, key));

			c->longest = wait > c->longest ? wait : c->longest;
			json_object_del(json_at(c->world, BOX_WAITING), key);
			json_object_del(c->since, key);
		} else if (str_eq(box, BOX_ENDING) && json_is_null(value)) {
			json_object_del(json_at(c->world, BOX_ENDING), key);
		} else if (str_eq(box, BOX_PACED)) {
			json_object_set(json_need_object(c->world, BOX_PACED), key, value);
		}
	}
	return again_ms;
}

static int64_t pass_at(struct paced_cluster *c, int64_t clock_ms)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};

	c->clock_ms = clock_ms;
	json_put_int(json_need_object(c->world, "env"), "clockMs", clock_ms);
	assert_int_equal(assign_reconcile(c->world, "all", &plan, &err), 0);
	return carry_out(c, &plan);
}

static void open_cluster(struct paced_cluster *c)
{
	*c = (struct paced_cluster){.since = json_object()};
	c->world = yaml("network-attachment-definitions:\n" NET("large", "large")
				NET("other", "other") NET("small", "small") NET("gone", "gone"));
	add_ledger(c->world, "large", 1, 2000);
	add_ledger(c->world, "other", 2, 2000);
	add_ledger(c->world, "small", 3, 10);
}

static void close_cluster(struct paced_cluster *c)
{
	json_decref(c->world);
	json_decref(c->since);
}

/* docs/ipam.md: "the leader writes a ledger above 256 KiB once a second". */
TEST(a_large_ledger_is_written_once_a_second)
{
	struct paced_cluster c;
	int64_t again_ms = -1;

	open_cluster(&c);
	/* Each 100 ms one pod comes and one goes. Some need two such pools. */
	for (int i = 0; i < 40; i++) {
		auto_free char *name = str_printf("p-%d", i);
		auto_free char *ended = str_printf("a-namespace/a-pod-with-a-long-name-%d x", i);

		c.clock_ms = 700 + 100 * i;
		add_waiting(&c, name, i % 3 == 2 ? "large,other" : i % 3 ? "large" : "other");
		json_put(json_need_object(c.world, BOX_ENDING), ended,
			 json_pack("{s:o, s:[{s:s, s:o}]}", "uid",
				   json_fmt("3f8a2c1e-0000-4000-8000-%012d", i), "records", "pool",
				   "large", "address", json_fmt("10.1.100.%d", i)));
		again_ms = pass_at(&c, c.clock_ms);
	}
	assert_in_range(again_ms, 1, 1000);
	(void)pass_at(&c, c.clock_ms + again_ms);
	assert_int_equal(json_object_size(json_at(c.world, BOX_WAITING)), 0);
	assert_int_equal(json_object_size(json_at(c.world, BOX_ENDING)), 0);
	/* Two pools, at the first moment and at each of the seconds 1 to 5. */
	assert_in_range(c.writes, 2, 12);
	assert_in_range(c.longest, 1, 1000);
	close_cluster(&c);
}

TEST(who_needs_no_large_ledger_or_brings_much_does_not_wait)
{
	struct paced_cluster c;

	open_cluster(&c);
	add_waiting(&c, "first", "large");
	assert_int_equal(pass_at(&c, 100), -1);
	add_waiting(&c, "small", "small");
	add_waiting(&c, "large", "large");
	assert_int_equal(pass_at(&c, 150), 850);
	assert_int_equal(json_object_size(json_at(c.world, BOX_WAITING)), 1);
	assert_int_equal(c.writes, 2);
	assert_int_equal(pass_at(&c, 1000), -1);
	assert_int_equal(c.writes, 3);
	for (int i = 0; i < 256; i++) {
		auto_free char *name = str_printf("many-%d", i);

		add_waiting(&c, name, "large");
	}
	(void)pass_at(&c, 2000);
	add_waiting(&c, "next", "large");
	assert_int_equal(pass_at(&c, 2050), -1);
	assert_int_equal(c.writes, 5);
	assert_int_equal(json_object_size(json_at(c.world, BOX_WAITING)), 0);
	close_cluster(&c);
}

/* Its record may be lost: it is looked for when the ledger is open again. */
TEST(a_pod_that_has_an_address_of_a_ledger_that_rests_waits)
{
	struct paced_cluster c;
	struct books *books;
	struct err err = {0};

	open_cluster(&c);
	json_put(json_need_object(c.world, BOX_PACED), "large", json_integer(1000));
	books = books_new(c.world);
	assert_null(books_open(books, "large", &err));
	assert_string_equal(err.reason, "LedgerPaced");
	books_free(books);
	add_waiting(&c, "a", "large");
	json_put(json_need_object(c.world, KIND_ENDPOINT), "ml/a",
		 yaml("{metadata: {name: a, namespace: ml}, status: {current: {uid: u-a, node: w1, "
		      "ips: [{interface: net1, ipv4: 10.1.5.5/16, ipv4Pool: large, vlan: 0}]}}}"));
	assert_int_equal(pass_at(&c, 10), 990);
	assert_int_equal(c.writes, 0);
	assert_int_equal(json_object_size(json_at(c.world, BOX_WAITING)), 1);
	assert_int_equal(pass_at(&c, 1000), -1);
	assert_int_equal(c.writes, 1);
	assert_non_null(strstr(
		json_str_at(c.world, KIND_IP_POOL, "large", "status", "allocatedIPs"), "10.1.5.5"));
	close_cluster(&c);
}

/* Not once more for each pass: nothing would be written. */
TEST(a_large_ledger_that_stays_as_it_was_does_not_rest)
{
	struct paced_cluster c;

	open_cluster(&c);
	add_waiting(&c, "a", "large,gone");
	add_waiting(&c, "b", "small");
	(void)pass_at(&c, 10);
	assert_null(json_at(c.world, BOX_PACED));
	close_cluster(&c);
}

/* docs/api.md: "SpiderIPPool. Field: routes[].to, routes[].via. Meaning: dst, gw." */
TEST(routes_of_a_pool_count_in_the_form_in_which_guides_write_them)
{
	json_auto_t *world = yaml("waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK
				  "spiderippools:\n  p: {metadata: {name: p}, spec: {ipVersion: 4, "
				  "subnet: 10.0.0.0/24, "
				  "ips: [10.0.0.9], routes: [{to: 10.6.0.0/16, via: 10.0.0.2}, "
				  "{dst: 10.7.0.0/16, gw: 10.0.0.3}]}}\n");
	auto_plan struct plan plan = {0};
	struct err err = {0};
	auto_free char *text = NULL;
	json_t *op;
	size_t i;

	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	json_array_foreach (plan.ops, i, op) {
		const json_t *item = json_array_get(json_at(json_object_get(op, "value"),
							    "endpoint", "status", "current", "ips"),
						    0);

		if (str_eq(json_str_at(op, "box"), "decided"))
			text = json_text(json_at(item, "routes"));
	}
	assert_string_equal(text, "[{\"dst\":\"10.6.0.0/16\",\"gw\":\"10.0.0.2\"},"
				  "{\"dst\":\"10.7.0.0/16\",\"gw\":\"10.0.0.3\"}]");
}

/* One pod that wants pool p, among these pools. */
static char *decide_with(const char *pools)
{
	auto_free char *world = str_printf("waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
						   NETWORK "spiderippools:\n%s",
					   pools);

	return decide(assign_reconcile, world, "all");
}

#define POOL_OF(name_, made_, spec_)                                                               \
	"  " name_ ": {metadata: {name: " name_ ", creationTimestamp: '2026-01-0" made_            \
	"T00:00:00Z'}, spec: {ipVersion: 4, " spec_ "}}\n"

/* docs/conditions.md: Ready is "pods can get addresses". Without any webhook. */
TEST(a_pool_that_is_not_ready_gives_no_address)
{
	static const struct {
		const char *reason, *pools;
	} cases[] = {
		{"AddressOverlap",
		 POOL_OF("o", "1", "subnet: 10.0.0.0/24, ips: [10.0.0.7]")
			 POOL_OF("p", "2", "subnet: 10.0.0.0/24, ips: [10.0.0.7]")},
		{"SubnetOverlap", POOL_OF("o", "1", "subnet: 10.0.0.0/16, ips: [10.0.9.7]") POOL_OF(
					  "p", "2", "subnet: 10.0.0.0/24, ips: [10.0.0.7]")},
		{"BadGateway",
		 POOL_OF("p", "2", "subnet: 10.0.0.0/24, ips: [10.0.0.7], gateway: 192.168.9.9")},
		{"OutsideSubnet",
		 POOL_OF("p", "2", "subnet: 10.0.0.0/24, ips: [10.0.0.7, 10.0.1.7]")},
		{"BadRange", POOL_OF("p", "2", "subnet: 10.0.0.0/24, ips: [10.0.0.7, x]")},
		{"BadRoute",
		 POOL_OF("p", "2",
			 "subnet: 10.0.0.0/24, ips: [10.0.0.7], routes: [{dst: x, gw: y}]")},
		{"WrongIPVersion", "  p: {metadata: {name: p}, spec: {ipVersion: 4, subnet: "
				   "'fd00::/64', ips: ['fd00::7']}}\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *said = decide_with(cases[i].pools);

		if (strstr(said, "status") ||
		    (!strstr(said, cases[i].reason) && !strstr(said, "NoPool")))
			fail_msg("%s: %s", cases[i].reason, said);
	}
}

TEST(the_older_of_two_pools_that_overlap_serves)
{
	auto_free char *said =
		decide_with(POOL_OF("p", "1", "subnet: 10.0.0.0/24, ips: [10.0.0.7]")
				    POOL_OF("o", "2", "subnet: 10.0.0.0/24, ips: [10.0.0.7]"));

	assert_non_null(strstr(said, "status p"));
}

/* Both made within one second, and the one of the greater name was served before the other came. */
TEST(what_another_pool_gave_away_is_not_free)
{
	auto_free char *said = decide_with(POOL_OF(
		"p", "1",
		"subnet: 10.0.0.0/24, ips: [10.0.0.7]") "  q: {metadata: {name: q, "
							"creationTimestamp: "
							"'2026-01-01T00:00:00Z'}, spec: "
							"{ipVersion: 4, subnet: 10.0.0.0/24, ips: "
							"[10.0.0.7]}, status: {allocatedIPs: "
							"'{\"10.0.0.7\": {\"pod\": \"ml/z\", "
							"\"podUid\": \"u-z\"}}'}}\n");

	assert_non_null(strstr(said, "PoolExhausted"));
	assert_null(strstr(said, "status p"));
}

TEST(gateway_and_the_subnets_own_addresses_are_never_given)
{
	static const struct {
		const char *spec, *want;
	} cases[] = {
		{"subnet: 10.7.0.0/24, ips: [10.7.0.1-10.7.0.2], gateway: 10.7.0.1", "10.7.0.2"},
		{"subnet: 10.7.0.0/24, ips: [10.7.0.0-10.7.0.1]", "10.7.0.1"},
		{"subnet: 10.7.0.0/24, ips: [10.7.0.255, 10.7.0.254-10.7.0.254]", "10.7.0.254"},
		{"subnet: 10.7.0.0/31, ips: [10.7.0.0-10.7.0.1]", "10.7.0.0"},
		/* On its own, in so many words. */
		{"subnet: 10.7.0.0/16, ips: [10.7.0.0]", "10.7.0.0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_printf("{metadata: {name: p}, spec: {ipVersion: 4, %s}}",
						  cases[i].spec);
		json_auto_t *pool = yaml(text);
		auto_ledger struct ledger ledger = {0};
		char next[IP_TEXT_SIZE] = "";

		assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
		assert_true(ledger_next(&ledger, next));
		assert_string_equal(next, cases[i].want);
	}
}

TEST(a_ledger_that_was_refused_leaves_other_pools_alone)
{
	static const char world[] =
		"env: {now: '2026-01-31T10:00:00Z'}\n"
		"waiting: {ml/b: true, ml/a: true}\nending: {ml/z: {uid: u-z, status: {current: "
		"{uid: u-z, ips: [{interface: net1, ipv4: 10.0.0.9/24, ipv4Pool: a}]}}}}\n"
		"unwrittenledgers: {a: {reason: Invalid, text: 'too large', until: "
		"'2026-01-31T%sZ'}}\npods:\n" POD_ON("a", "a")
			POD_ON("b", "b") "network-attachment-definitions:\n" NET("a", "a")
				NET("b", "b") "spiderippools:\n" POOL("a", "10.0.0.1-10.0.0.9", "")
					POOL("b", "10.0.0.11-10.0.0.19", "");
	static const char all[] =
		"status a; post ending ml/z out; post decided ml/z in; post decided ml/a in; "
		"finding ml/a; post waiting ml/a out; status b; post decided ml/b in; finding "
		"ml/b; "
		"post waiting ml/b out; ";
	auto_free char *refused = str_printf(world, "10:00:20");
	auto_free char *again = str_printf(world, "10:00:00");
	auto_free char *put_back = str_printf(world, "10:08:01");

	expect(assign_reconcile, refused, "all",
	       "finding ml/a LedgerNotWritten; status b; post decided ml/b in; finding ml/b; "
	       "post waiting ml/b out; requeue -; ");
	expect(assign_reconcile, again, "all", all);
	/* The clock was put back meanwhile. */
	expect(assign_reconcile, put_back, "all", all);
}

#define VICTIM "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"victim/v\", \"podUid\": \"u-v\"}}'"

/*
 * docs/ipam.md: an endpoint is evidence about the pod of its own name only. A user who may write
 * endpoints of one namespace knows UIDs from the pools' status.
 */
TEST(a_forged_endpoint_frees_no_address_of_another_pod)
{
	expect(assign_reconcile,
	       "ending: {tenant/ghost: {uid: u-v, status: {current: {uid: u-v, ips: [{interface: "
	       "net1, ipv4: 10.0.0.1/24, ipv4Pool: p}]}}}}\n"
	       "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK
	       "spiderippools:\n" POOL("p", "10.0.0.1", VICTIM),
	       "all",
	       "finding ml/a PoolExhausted; post ending tenant/ghost out; "
	       "post decided tenant/ghost in; post shortpools p in; ");
}

TEST(a_lost_endpoint_counts_in_the_operators_namespace_only)
{
	json_auto_t *own = yaml("{metadata: {name: lost-u-v-1, namespace: ow}, status: "
				"{ownerControllerName: victim/v}}");
	json_auto_t *other = yaml("{metadata: {name: lost-u-v-1, namespace: tenant}, status: "
				  "{ownerControllerName: victim/v}}");
	auto_free char *key = endpoint_pod_key(other, "ow");

	assert_true(endpoint_is_lost(own, "ow"));
	assert_false(endpoint_is_lost(other, "ow"));
	assert_string_equal(key, "tenant/lost-u-v-1");
}

/* Addresses in an endpoint are admitted by the same rules as new ones. */
TEST(an_endpoint_claims_nothing_that_its_pod_would_not_get)
{
	static const struct {
		const char *address, *spec, *status, *want;
	} cases[] = {
		/* One that was lost is recorded again. */
		{"10.0.0.1", "ips: [10.0.0.1]", "", "status p; "},
		{"10.0.0.1", "ips: [10.0.0.1-10.0.0.9], gateway: 10.0.0.1", "",
		 "finding ml/a AddressNotAdmitted; "},
		{"10.0.0.99", "ips: [10.0.0.1]", "", "finding ml/a AddressNotAdmitted; "},
		{"10.0.0.1", "ips: [10.0.0.1], excludeIPs: [10.0.0.1]", "",
		 "finding ml/a AddressNotAdmitted; "},
		{"10.0.0.1", "ips: [10.0.0.1], namespaceName: [victim]", "",
		 "finding ml/a AddressNotAdmitted; "},
		{"10.0.0.1", "ips: [10.0.0.1], disable: true", "",
		 "finding ml/a AddressNotAdmitted; "},
		{"10.0.0.1", "ips: [10.0.0.1, x]", "", "finding ml/a BadRange; "},
		{"10.0.0.1", "ips: [10.0.0.1]", VICTIM, "finding ml/a AddressTwice; "},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *world = str_printf(
			"waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK
			"spiderendpoints:\n  ml/a:\n    metadata: {name: a, namespace: ml, uid: "
			"e}\n"
			"    status: {current: {uid: u-a, node: w1, ips: [{interface: net1, ipv4: "
			"%s/24, ipv4Pool: p, vlan: 0}]}}\nspiderippools:\n  p: {metadata: {name: "
			"p}, "
			"spec: {ipVersion: 4, subnet: 10.0.0.0/24, %s}, status: {%s}}\n",
			cases[i].address, cases[i].spec, cases[i].status);
		auto_free char *said = decide(assign_reconcile, world, "all");

		if (!str_starts(said, cases[i].want))
			fail_msg("%s %s: %s", cases[i].address, cases[i].spec, said);
	}
}

TEST(each_ledger_is_a_group_that_its_pods_need)
{
	json_auto_t *world =
		yaml("waiting: {ml/ab: true}\npods:\n" POD_ON(
			"ab", "b,a") "network-attachment-definitions:\n" NET("a", "a")
			     NET("b", "b") "spiderippools:\n" POOL("a", "10.0.0.1-10.0.0.9", "")
				     POOL("b", "10.0.0.11-10.0.0.19", ""));
	auto_plan struct plan plan = {0};
	json_t *op;
	size_t i;

	assert_int_equal(assign_reconcile(world, "all", &plan, NULL), 0);
	json_array_foreach (plan.ops, i, op) {
		bool is_ledger = str_eq(json_str_at(op, "op"), "status");

		assert_true(is_ledger ? str_eq(json_str_at(op, "group"), json_str_at(op, "key"))
				      : !json_at(op, "group"));
		if (!is_ledger) {
			assert_true(json_list_has(json_at(op, "needs"), "a"));
			assert_true(json_list_has(json_at(op, "needs"), "b"));
		}
	}
}

TEST(writes_each_ledger_once_for_all_that_wait)
{
	expect(assign_reconcile,
	       "waiting: {ml/a: true, ml/b: true}\npods:\n" POD("a", "u-a", "") POD("b", "u-b", "")
		       NETWORK "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", ""),
	       "all",
	       "status p; post decided ml/a in; finding ml/a; post waiting ml/a out; "
	       "post decided ml/b in; finding ml/b; post waiting ml/b out; ");
}

#define SHORT "{pods: 1, since: {u-b: '2026-01-31T09:59:00Z'}}"

TEST(a_pod_waits_for_what_another_gives_back_in_the_same_pass)
{
	const char *full = "waiting: {ml/b: true}\npods:\n" POD("b", "u-b", "") NETWORK
		"spiderippools:\n" POOL(
			"p", "10.0.0.1",
			"allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", \"podUid\": "
			"\"u-a\"}}'");
	auto_free char *ending = str_printf(
		"%sending: {ml/a: {uid: u-a, status: {current: {uid: u-a, ips: [{interface: net1, "
		"ipv4: 10.0.0.1/24, ipv4Pool: p}]}}}}\n",
		full);

	auto_free char *told = str_printf("%sshortpools: {p: " SHORT ", q: " SHORT "}\n", full);

	expect(assign_reconcile, full, "all", "finding ml/b PoolExhausted; post shortpools p in; ");
	expect(assign_reconcile, told, "all",
	       "finding ml/b PoolExhausted; post shortpools q out; ");
	expect(assign_reconcile, ending, "all",
	       "status p; post ending ml/a out; post decided ml/a in; post decided ml/b in; "
	       "finding ml/b; post waiting ml/b out; ");
}

/* Also when none waits: pools may say of an earlier operator's pods that they do. */
TEST(the_first_pass_that_sees_all_says_so)
{
	auto_strbuf struct strbuf many = {0};
	auto_free char *said = NULL;

	expect(assign_reconcile, "env: {waitingUnknown: true}\n", "all", "post passed all in; ");
	expect(assign_reconcile, "env: {}\n", "all", "");
	strbuf_adds(&many, "env: {waitingUnknown: true}\nwaiting:\n");
	for (int i = 0; i < ASSIGN_MAX; i++)
		strbuf_addf(&many, "  ml/p%d: true\n", i);
	said = decide(assign_reconcile, strbuf_str(&many), "all");
	assert_null(strstr(said, "passed"));
}

/* Whoever comes later does not change since when another waits, and who is served is forgotten. */
TEST(each_pod_waits_since_its_own_time)
{
	json_auto_t *world =
		yaml("env: {now: '2026-01-31T10:00:00Z'}\n"
		     "waiting: {ml/b: true, ml/c: true}\npods:\n" POD("b", "u-b", "")
			     POD("c", "u-c", "") NETWORK "spiderippools:\n" POOL(
				     "p", "10.0.0.1",
				     "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", "
				     "\"podUid\": \"u-a\"}}'") "shortpools: {p: {pods: 2, since: "
							       "{u-a: '2026-01-31T09:00:00Z', u-b: "
							       "'2026-01-31T09:59:00Z'}}}\n");
	json_auto_t *want = yaml("{pods: 2, since: {u-b: '2026-01-31T09:59:00Z', u-c: "
				 "'2026-01-31T10:00:00Z'}}");
	auto_plan struct plan plan = {0};

	assert_int_equal(assign_reconcile(world, "all", &plan, NULL), 0);
	assert_true(json_same(json_at(json_find(plan.ops, "box", "shortpools"), "value"), want));
}

TEST(a_pod_waits_for_its_network)
{
	expect(assign_reconcile,
	       "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") "spiderippools:\n" POOL(
		       "p", "10.0.0.1", ""),
	       "all", "");
}

TEST(a_pod_that_has_all_waits_no_more)
{
	expect(assign_reconcile,
	       "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK ENDPOINT(
		       "u-a", "") "spiderippools:\n" POOL("p", "10.0.0.1",
							  "allocatedIPs: '{\"10.0.0.1\": {\"pod\": "
							  "\"ml/a\", \"podUid\": \"u-a\"}}'"),
	       "all", "finding ml/a; post waiting ml/a out; ");
}

TEST(what_was_cut_off_between_two_writes_is_taken_up)
{
	json_auto_t *world = yaml("waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK
				  "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9",
							  "allocatedIPs: '{\"10.0.0.7\": {\"pod\": "
							  "\"ml/a\", \"podUid\": \"u-a\"}}'"));
	auto_plan struct plan plan = {0};
	struct err err = {0};
	const json_t *op;

	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	op = json_array_get(plan.ops, 0);
	assert_string_equal(json_str_at(op, "box"), BOX_DECIDED);
	op = json_array_get(json_at(op, "value", "endpoint", "status", "current", "ips"), 0);
	assert_string_equal(json_str_at(op, "ipv4"), "10.0.0.7/24");
}

TEST(a_pod_that_ends_waits_no_more)
{
	expect(assign_reconcile,
	       "waiting: {ml/a: true, ml/b: true}\npods:\n" POD(
		       "a", "u-a", ", deletionTimestamp: '2026-01-01T00:00:00Z'") NETWORK
	       "spiderippools:\n" POOL("p", "10.0.0.1", ""),
	       "all", "finding ml/a; post waiting ml/a out; finding ml/b; post waiting ml/b out; ");
}

TEST(the_agent_learns_why_its_ask_has_no_answer)
{
	expect(assign_reconcile,
	       "waiting: {ml/a: true}\npods:\n" POD(
		       "a", "u-a", "") "spiderippools: {}\nspiderendpoints: {ml/a: {metadata: "
				       "{name: a, namespace: ml, "
				       "annotations: {orbweaver.io/asks: '{\"uid\": \"u-a\", "
				       "\"asks\": [{\"nic\": "
				       "\"net1\"}]}'}}}}\n",
	       "all", "finding ml/a NoPool; meta ml/a; ");
}

#define CONF(text_)                                                                                \
	"spiderpool-conf: {ow/spiderpool-conf: {metadata: {name: spiderpool-conf, namespace: "     \
	"ow}, "                                                                                    \
	"data: {conf.yml: '" text_ "'}}}\n"

/* A typing error in the ConfigMap is seen where people look, and mended ones are forgotten. */
TEST(settings_that_cannot_be_read_are_a_finding)
{
	static const char rest[] = "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK
		"spiderippools:\n" POOL("p", "10.0.0.1", "");
	static const char served[] = "status p; post decided ml/a in; finding ml/a; "
				     "post waiting ml/a out; ";
	static const struct {
		const char *settings, *want, *then;
	} cases[] = {
		{"env: {configNamespace: ow}\n" CONF("enableIPv4: yep"),
		 "finding ow/spiderpool-conf BadConfig; finding ml/a BadConfig; ", ""},
		/* The last good one stands in its place. */
		{"env: {configNamespace: ow, configFault: 'is odd'}\n" CONF("enableIPv4: true"),
		 "finding ow/spiderpool-conf BadConfig; ", served},
		{"env: {configNamespace: ow, configFault: ''}\n" CONF("enableIPv4: true"),
		 "finding ow/spiderpool-conf; ", served},
		{"env: {configNamespace: ow, configFault: ''}\n", "finding ow/spiderpool-conf; ",
		 served},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *world = str_printf("%s%s", cases[i].settings, rest);
		auto_free char *want = str_printf("%s%s", cases[i].want, cases[i].then);

		expect(assign_reconcile, world, "all", want);
	}
}

static char *repeat(const char *item, size_t n)
{
	auto_strbuf struct strbuf text = {0};

	for (size_t i = 0; i < n; i++)
		strbuf_adds(&text, item);
	return strbuf_take(&text);
}

#define ROOM                                                                                       \
	"network-attachment-definitions:\n" NET("a", "p") "spiderippools:\n" POOL(                 \
		"p", "10.0.0.1-10.0.0.200", "")

/* A pod with annotations, as YAML, that waits beside another one. */
static char *decide_beside_another(const char *annotations, const char *more)
{
	auto_free char *world = str_printf(
		"waiting: {ml/a: true, ml/other: true}\npods:\n" POD_ON(
			"other",
			"a") "  ml/a: {metadata: {name: a, namespace: ml, uid: u-a, annotations: "
			     "{%s}}, spec: {nodeName: w1}}\n" ROOM "%s",
		annotations, more);

	return decide(assign_reconcile, world, "all");
}

TEST(a_pod_beyond_a_bound_is_named_and_nothing_is_computed)
{
	static const struct {
		const char *before, *item;
		size_t n;
		const char *after;
	} cases[] = {
		{"k8s.v1.cni.cncf.io/networks: 'a", ",a", LIMIT_NETWORKS, "'"},
		{"k8s.v1.cni.cncf.io/networks: 'a", ",a", 12000, "'"},
		{"k8s.v1.cni.cncf.io/networks: '[{\"name\": \"a\"}", ",{\"name\":\"a\"}",
		 LIMIT_NETWORKS, "]'"},
		{"k8s.v1.cni.cncf.io/networks: '[{\"name\": \"a\", \"x\": [{}", ",{}", 5000,
		 "]}]'"},
		/* As the door leaves it. */
		{"k8s.v1.cni.cncf.io/networks: 72000", "", 0, ""},
		{"v1.multus-cni.io/default-network: 'a", ",a", LIMIT_NETWORKS, "'"},
		{"k8s.v1.cni.cncf.io/networks: a, ipam.spidernet.io/ippool: '{\"ipv4\": [\"p\"",
		 ",\"*\"", 20000, "]}'"},
		{"k8s.v1.cni.cncf.io/networks: a, ipam.spidernet.io/ippool: '{\"ipv4\": [\"p\"",
		 ",\"p\"", LIMIT_POOL_NAMES, "]}'"},
		{"k8s.v1.cni.cncf.io/networks: a, ipam.spidernet.io/ippools: '[{\"ipv4\": [\"p\"]}",
		 ",{}", LIMIT_NETWORKS + 1, "]'"},
		{"k8s.v1.cni.cncf.io/networks: a, ipam.spidernet.io/ippool: 250000", "", 0, ""},
		{"k8s.v1.cni.cncf.io/networks: a, ipam.spidernet.io/routes: '[[]", ",[]", 5000,
		 "]'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *items = repeat(cases[i].item, cases[i].n);
		auto_free char *annotations =
			str_printf("%s%s%s", cases[i].before, items, cases[i].after);
		auto_free char *said = decide_beside_another(annotations, "");

		if (!str_eq(said, "status p; finding ml/a TooLarge; post decided ml/other in; "
				  "finding ml/other; post waiting ml/other out; ") &&
		    !str_eq(said, "finding ml/a TooLarge; status p; post decided ml/other in; "
				  "finding ml/other; post waiting ml/other out; "))
			fail_msg("case %zu: %s", i, said);
	}
}

static size_t work_of(const char *annotations, size_t pools)
{
	auto_free char *text = str_printf("metadata: {annotations: {%s}}", annotations);
	json_auto_t *pod = yaml(text);

	return assign_slice_work(pod, pools);
}

TEST(work_grows_with_what_users_choose)
{
	size_t small = work_of("k8s.v1.cni.cncf.io/networks: 'a,b'", 10);

	assert_in_range(small, 1, ASSIGN_LIGHT);
	assert_in_range(work_of("k8s.v1.cni.cncf.io/networks: 'a,b,c,d,a,b,c,d,a,b,c,d,e'", 10),
			ASSIGN_LIGHT + 1, ASSIGN_HEAVY_WORK);
	assert_in_range(work_of("k8s.v1.cni.cncf.io/networks: a, ipam.spidernet.io/ippool: "
				"'{\"ipv4\": [\"*\"]}'",
				5000),
			small + 1, ASSIGN_HEAVY_WORK);
	/* Nothing is computed for it. */
	assert_int_equal(work_of("k8s.v1.cni.cncf.io/networks: 100000", 10), 1);
}

/* Each spelling of a pattern is compared with each pool. */
TEST(every_pattern_is_work)
{
	static const struct {
		const char *name;
		bool is_pattern;
	} cases[] = {
		{"rail*", true},           {"rail?", true}, {"rail[0-9]", true},
		{"[r][a][i][l]", true},    {"rail", false}, {"rail.0-1", false},
		{"\\u005bx\\u005d", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text =
			str_printf("k8s.v1.cni.cncf.io/networks: a, ipam.spidernet.io/ippools: "
				   "'[{\"ipv4\": [\"%s\"]}]'",
				   cases[i].name);

		assert_int_equal(work_of(text, 5000) > ASSIGN_LIGHT, cases[i].is_pattern);
	}
}

/* NetworkAttachmentDefinitions are the users', too. */
TEST(patterns_of_networks_are_work)
{
	json_auto_t *pod = yaml("metadata: {annotations: {k8s.v1.cni.cncf.io/networks: a, "
				"ipam.spidernet.io/ippool: '{\"ipv4\": [\"p\"]}'}}");
	const struct candidate_names patterns = {.patterns = LIMIT_POOL_PATTERNS}, nothing = {0};
	struct assign_slice slice = {0};

	for (size_t i = 0; i < 100; i++) {
		assert_true(assign_slice_take(&slice, pod, NULL, 5000));
		/* One of them is in each pass, whatever it takes. */
		assert_int_equal(assign_slice_take_more(&slice, &patterns, 5000), i == 0);
	}
	assert_int_equal(slice.pods, 1);
	assert_true(assign_slice_take(&slice, pod, NULL, 5000));
	assert_true(assign_slice_take_more(&slice, &nothing, 5000));
	assert_int_equal(slice.pods, 2);
}

/* Users may write the endpoints of their pods: what agents ask for there, and what pods have. */
TEST(what_an_endpoint_says_is_work)
{
	json_auto_t *pod = yaml("metadata: {annotations: {k8s.v1.cni.cncf.io/networks: a, "
				"ipam.spidernet.io/ippool: '{\"ipv4\": [\"p\"]}'}}");
	json_auto_t *endpoint = yaml("metadata: {annotations: {orbweaver.io/asks: '{\"uid\": "
				     "\"u-1\", \"pod\": \"p\", \"asks\": [{\"nic\": \"net1\", "
				     "\"cleanGateway\": false}]}'}}");
	auto_free char *zeroes = repeat(",0", 4000), *text = str_printf("[0%s]", zeroes);
	const struct candidate_names one = {.names = 1},
				     all = {.names = 1, .open_asks = LIMIT_NETWORKS},
				     compared = {.names = 1, .open_asks = 1, .masters = 1300};
	const struct candidate_names *const meant[] = {&all, &compared};
	struct assign_slice slice = {0};

	/* What an agent asks for a pod of one NIC leaves it among the light ones. */
	assert_true(assign_slice_take(&slice, pod, endpoint, 5000));
	assert_true(assign_slice_take_more(&slice, &one, 5000));
	assert_int_equal(slice.heavy, 0);
	for (size_t i = 0; i < ARRAY_LEN(meant); i++) {
		assert_true(assign_slice_take(&slice, pod, endpoint, 5000));
		assert_true(assign_slice_take_more(&slice, meant[i], 5000));
		assert_in_range(slice.last, ASSIGN_LIGHT + 1, ASSIGN_HEAVY_WORK);
	}
	json_put_str(json_at(endpoint, "metadata", "annotations"), "orbweaver.io/asks", text);
	slice = (struct assign_slice){0};
	while (assign_slice_take(&slice, pod, endpoint, 5000))
		assert_in_range(slice.pods, 1, 10);
}

TEST(each_pass_releases_a_share_of_what_ended)
{
	auto_free char *items =
		repeat(", {interface: '', ipv4: 10.0.0.1/24, ipv4Pool: p}", LIMIT_NETWORKS);
	auto_free char *large =
		str_printf("{uid: u, status: {current: {uid: u, ips: [{ipv4: 10.0.0.1/24, "
			   "ipv4Pool: p}%s]}}}",
			   items);
	json_auto_t *forged = yaml(large);
	json_auto_t *small = yaml("{uid: u, status: {current: {uid: u, ips: [{ipv4: 10.0.0.1/24, "
				  "ipv4Pool: p}]}}}");
	struct assign_slice slice = {0}, honest = {0};

	while (assign_slice_take_ending(&slice, forged))
		assert_in_range(slice.endings, 1, 300);
	while (assign_slice_take_ending(&honest, small))
		assert_in_range(honest.endings, 1, ASSIGN_MAX);
	assert_int_equal(honest.endings, ASSIGN_MAX);
	/* Whatever has ended, pods that wait have their own share. */
	assert_int_equal(slice.work + slice.heavy, 0);
	expect(assign_reconcile, "env: {leavesEnding: true}\n", "all", "requeue -; ");
}

/* What is kept of many endpoints at a time has no more than this. */
TEST(an_ending_has_addresses_and_no_more)
{
	static const char world[] =
		"live: {ml/a: {pods: {ml/a: null}}}\nspiderendpoints:\n"
		"  ml/a:\n"
		"    metadata: {name: a, namespace: ml, annotations: "
		"{orbweaver.io/down: u-a}}\n"
		"    status: {ownerControllerType: Pod, ownerControllerName: a, "
		"current: {uid: u-a, node: w1, ips: [{interface: net1, vlan: 0, "
		"ipv4: 10.0.0.1/24, ipv4Pool: p, routes: [{dst: 10.0.0.0/8, "
		"gw: 10.0.0.9}]}]}}\n";
	json_auto_t *read = yaml(world);
	json_auto_t *want = yaml("{uid: u-a, status: {current: {uid: u-a, ips: [{ipv4: "
				 "10.0.0.1/24, ipv4Pool: p}]}}}");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(endpoint_reconcile(read, "ml/a", &plan, &err), 0);
	assert_string_equal(json_str_at(json_array_get(plan.ops, 0), "box"), BOX_ENDING);
	assert_true(json_same(json_at(json_array_get(plan.ops, 0), "value"), want));
}

/* No agent says more, and each is compared with each address. */
TEST(more_conflicts_than_addresses_are_not_heard)
{
	static const char item[] = ",{\"ip\":\"10.0.0.1\"}";

	for (size_t n = CONFLICTS_MAX; n <= CONFLICTS_MAX + 1; n++) {
		auto_free char *more = repeat(item, n - 1);
		auto_free char *text =
			str_printf("{\"uid\":\"u\",\"conflicts\":[%s%s]}", item + 1, more);
		json_auto_t *endpoint = json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
						  ENDPOINT_CONFLICTS_ANNOTATION, text);
		json_auto_t *said = conflicts_said(endpoint, "u");

		assert_int_equal(said != NULL, n == CONFLICTS_MAX);
	}
}

/* The operator would not read it again. */
TEST(a_pod_gets_no_more_routes_than_are_read)
{
	auto_strbuf struct strbuf routes = {0};

	for (int i = 0; i < LIMIT_LIST; i++)
		strbuf_addf(&routes, "{dst: 10.%d.%d.0/24, gw: 10.0.0.2}, ", 6 + i / 256, i % 256);
	for (int nics = 1; nics <= 2; nics++) {
		auto_free char *world = str_printf(
			"waiting: {ml/a: true}\npods:\n  ml/a: {metadata: {name: a, namespace: ml, "
			"uid: u-a, annotations: {k8s.v1.cni.cncf.io/networks: '%s'}}, spec: "
			"{nodeName: w1}}\n" NETWORK
			"spiderippools:\n  p: {metadata: {name: p}, spec: {ipVersion: 4, subnet: "
			"10.0.0.0/24, ips: [10.0.0.8-10.0.0.9], routes: [%s]}}\n",
			nics == 1 ? "net" : "net,net", strbuf_str(&routes));

		expect(assign_reconcile, world, "all",
		       nics == 1 ? "status p; post decided ml/a in; finding ml/a; "
				   "post waiting ml/a out; "
				 : "finding ml/a TooLarge; status p; ");
	}
}

TEST(a_part_of_those_that_wait_says_nothing_about_all)
{
	expect(assign_reconcile,
	       "env: {isPart: true}\nwaiting: {ml/a: true}\nshortpools: {q: " SHORT
	       "}\npods:\n" POD("a", "u-a", "") NETWORK
	       "spiderippools:\n" POOL("p", "10.0.0.1", ""),
	       "all",
	       "status p; post decided ml/a in; finding ml/a; post waiting ml/a out; requeue -; ");
}

TEST(a_forged_endpoint_has_a_bound)
{
	auto_free char *items = repeat(", {interface: x}", LIMIT_NETWORKS + 1);
	auto_free char *listed = str_printf("[{interface: y}%s]", items);
	const char *const ips[] = {listed, "5000"};

	for (size_t i = 0; i < ARRAY_LEN(ips); i++) {
		auto_free char *endpoint = str_printf(
			"spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml}, status: "
			"{current: {uid: u-a, ips: %s}}}}\n",
			ips[i]);
		auto_free char *said =
			decide_beside_another("k8s.v1.cni.cncf.io/networks: a", endpoint);

		assert_non_null(strstr(said, "finding ml/a TooLarge; "));
		assert_non_null(strstr(said, "post waiting ml/other out; "));
		assert_null(strstr(said, "post decided ml/a in"));
	}
}

TEST(a_pod_at_the_bound_has_all_its_addresses)
{
	auto_free char *items = repeat(",a", LIMIT_NETWORKS - 1);
	auto_free char *annotations = str_printf("k8s.v1.cni.cncf.io/networks: 'a%s'", items);
	auto_free char *said = decide_beside_another(annotations, "");

	assert_non_null(strstr(said, "post decided ml/a in; finding ml/a; post waiting ml/a out"));
}

TEST(what_is_mirrored_of_pods_has_a_bound)
{
	auto_free char *large = repeat("x", 250000);
	json_auto_t *pod = json_pack(
		"{s:{s:s, s:s, s:s, s:{s:s, s:s, s:s, s:s}, s:{s:s}, s:[{s:b, s:s, s:s}]}, "
		"s:{s:s}}",
		"metadata", "name", "a", "namespace", "ml", "uid", "u", "annotations",
		"ipam.spidernet.io/ippools", large, "ipam.spidernet.io/unknown", large,
		"k8s.v1.cni.cncf.io/networks", "net", "v1.multus-cni.io/default-network", large,
		"labels", "a", large, "ownerReferences", "controller", true, "kind", large, "x",
		large, "spec", "nodeName", "w1");
	auto_free char *text = NULL;

	assign_project(pod);
	text = json_text(pod);
	assert_in_range(strlen(text), 1, 400);
	assert_int_equal(json_integer_value(json_at(pod, "metadata", "annotations",
						    "ipam.spidernet.io/ippools")),
			 250000);
}

TEST(a_pool_says_what_was_put_right)
{
	json_auto_t *world =
		yaml("ending: {ml/a u-a: {uid: u-a, records: [{pool: p, address: 10.0.0.1}]}}\n"
		     "env: {now: '2026-01-01T00:00:00Z'}\n"
		     "spiderippools:\n" POOL("p", "10.0.0.1",
					     "conditions: [{type: Ready, status: 'True'}], "
					     "allocatedIPs: '{\"10.0.0.1\": "
					     "{\"pod\": \"ml/a\", \"podUid\": \"u-a\"}}'"));
	auto_plan struct plan plan = {0};
	const json_t *list, *repaired;
	struct err err = {0};

	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	list = json_at(json_array_get(plan.ops, 0), "status", "conditions");
	assert_non_null(json_find(list, "type", "Ready"));
	repaired = json_find(list, "type", "Repaired");
	assert_string_equal(json_str_at(repaired, "reason"), "RecordWithoutPod");
	assert_string_equal(json_str_at(repaired, "message"),
			    "gave back 10.0.0.1 of pod ml/a (UID u-a)");
	assert_string_equal(json_str_at(json_array_get(plan.ops, 1), "op"), "event");
}

TEST(a_pod_that_was_read_for_one_pass_is_not_served_by_the_next)
{
	expect(assign_reconcile,
	       "waiting: {ml/a: {metadata: {name: a, namespace: ml, uid: u-a, annotations: "
	       "{k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1}}}\n" NETWORK
	       "spiderippools:\n" POOL(
		       "p", "10.0.0.1",
		       "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/x\", \"podUid\": \"u-x\"}}'"),
	       "all", "post waiting ml/a out; finding ml/a PoolExhausted; post shortpools p in; ");
}

/* ---- the life of an endpoint ----------------------------------------------------------------- */

#define NODE_THERE "nodes: {w1: {metadata: {name: w1}}}\n"
#define DOWN       "orbweaver.io/down: u-a"

TEST(nothing_is_given_back_before_the_agent_has_said_so)
{
	expect(endpoint_reconcile, NODE_THERE ENDPOINT("u-a", ""), "ml/a", "");
	/* Of the pod before it. */
	expect(endpoint_reconcile, NODE_THERE ENDPOINT("u-a", "orbweaver.io/down: u-old"), "ml/a",
	       "");
}

TEST(what_looks_ended_is_read_before_it_is_given_back)
{
	expect(endpoint_reconcile, NODE_THERE ENDPOINT("u-a", DOWN), "ml/a", "post look ml/a in; ");
	expect(endpoint_reconcile,
	       NODE_THERE ENDPOINT("u-a", DOWN) "live: {ml/a: {pods: {ml/a: null}}}\n", "ml/a",
	       "post ending ml/a in; ");
	/* The cache had not seen it. */
	expect(endpoint_reconcile,
	       NODE_THERE ENDPOINT("u-a", DOWN) "live: {ml/a: {pods: {ml/a: {metadata: {name: a, "
						"uid: u-a}}}}}\n",
	       "ml/a", "requeue -; ");
}

/* Users may write a machine into any number of pods: one that was not looked at may live. */
TEST(of_pods_that_are_too_many_nothing_is_given_back)
{
	expect(endpoint_reconcile,
	       NODE_THERE ENDPOINT("u-a", DOWN) "crowded: {ml/a: true}\n"
						"live: {ml/a: {pods: {ml/a: null}}}\n",
	       "ml/a", "requeue -; ");
	expect(endpoint_reconcile,
	       "crowded: {ml/a: true}\nstrays: {ml/a: [{pool: p, address: 10.0.0.1, uid: u-a}]}\n"
	       "live: {ml/a: {pods: {ml/a: null}}}\n",
	       "ml/a", "post strays ml/a out; ");
}

/* docs/ipam.md: "when the pod has ended". Grace periods may be long, and users write endpoints. */
TEST(a_pod_that_is_deleted_and_still_runs_keeps_its_addresses)
{
#define ENDS(status_)                                                                              \
	NODE_THERE ENDPOINT("u-a", DOWN) "live: {ml/a: {pods: {ml/a: {metadata: {name: a, uid: "   \
					 "u-a, deletionTimestamp: x}, status: {" status_ "}}}, "   \
					 "nodes: {w1: {metadata: {name: w1}}}}}\n"
	static const char running[] = "requeue -; ", ended[] = "post ending ml/a in; ";

	expect(endpoint_reconcile,
	       ENDS("phase: Running, containerStatuses: [{state: {terminated: {}}}, {state: "
		    "{running: {}}}]"),
	       "ml/a", running);
	expect(endpoint_reconcile,
	       ENDS("phase: Pending, initContainerStatuses: [{state: {running: {}}}]"), "ml/a",
	       running);
	/* So many that they were not read: one may run. */
	expect(endpoint_reconcile, ENDS("phase: Running, containerStatuses: 70000"), "ml/a",
	       running);
	/* The kubelet has ended them, or never began. */
	expect(endpoint_reconcile,
	       ENDS("phase: Running, containerStatuses: [{state: {terminated: {}}}]"), "ml/a",
	       ended);
	expect(endpoint_reconcile, ENDS("phase: Pending"), "ml/a", ended);
	expect(endpoint_reconcile,
	       ENDS("phase: Failed, containerStatuses: [{state: {running: {}}}]"), "ml/a", ended);
	/* A record without an endpoint, whose node nobody knows. */
	expect(endpoint_reconcile,
	       "strays: {ml/a: [{pool: p, address: 10.0.0.1, uid: u-a}]}\nlive: {ml/a: {pods: "
	       "{ml/a: {metadata: {name: a, uid: u-a, deletionTimestamp: x}, status: "
	       "{containerStatuses: [{state: {running: {}}}]}}}}}\n",
	       "ml/a", "post strays ml/a out; ");
}

TEST(a_sandbox_that_is_made_again_ends_nothing)
{
	expect(endpoint_reconcile, NODE_THERE ENDPOINT("u-a", DOWN) "pods:\n" POD("a", "u-a", ""),
	       "ml/a", "");
}

TEST(a_node_that_is_gone_needs_no_word)
{
	const char *tainted = "nodes: {w1: {metadata: {name: w1}, spec: {taints: [{key: "
			      "node.kubernetes.io/out-of-service}]}}}\n" ENDPOINT("u-a", "");
	auto_free char *read =
		str_printf("%slive: {ml/a: {pods: {ml/a: null}, nodes: {w1: null}}}\n", tainted);
	auto_free char *there = str_printf(
		"%slive: {ml/a: {pods: {ml/a: null}, nodes: {w1: {metadata: {name: w1}}}}}\n",
		tainted);
	auto_free char *not_read = str_printf("%slive: {ml/a: {pods: {ml/a: null}}}\n", tainted);

	expect(endpoint_reconcile, ENDPOINT("u-a", ""), "ml/a", "post look ml/a in; ");
	expect(endpoint_reconcile, tainted, "ml/a", "post look ml/a in; ");
	expect(endpoint_reconcile, read, "ml/a", "post ending ml/a in; ");
	expect(endpoint_reconcile, there, "ml/a", "requeue -; ");
	expect(endpoint_reconcile, not_read, "ml/a", "requeue -; ");
}

TEST(a_stateful_set_keeps_what_its_pod_had)
{
	static const char endpoint[] =
		NODE_THERE "spiderendpoints: {ml/web-0: {metadata: {name: web-0, namespace: ml, "
			   "annotations: {orbweaver.io/down: u-a}}, status: {ownerControllerType: "
			   "StatefulSet, ownerControllerName: web, current: {uid: u-a, node: w1, "
			   "ips: []}}}}\n";
	auto_free char *kept = str_printf("%slive: {ml/web-0: {pods: {ml/web-0: null}, "
					  "statefulsets: {ml/web: {spec: {replicas: 1}}}}}\n",
					  endpoint);
	auto_free char *scaled = str_printf("%slive: {ml/web-0: {pods: {ml/web-0: null}, "
					    "statefulsets: {ml/web: {spec: {replicas: 0}}}}}\n",
					    endpoint);
	auto_free char *beyond = str_printf(
		"%slive: {ml/web-0: {pods: {ml/web-0: null}, statefulsets: {ml/web: {spec: "
		"{replicas: 9223372036854775807, ordinals: {start: -9223372036854775807}}}}}}\n",
		endpoint);

	expect(endpoint_reconcile, kept, "ml/web-0", "requeue -; ");
	expect(endpoint_reconcile, scaled, "ml/web-0", "post ending ml/web-0 in; ");
	/* As no server stores it: of a file. */
	expect(endpoint_reconcile, beyond, "ml/web-0", "post ending ml/web-0 in; ");
}

/* Any user can create pods of these names with an owner reference to the set. */
TEST(only_an_ordinal_as_its_controller_writes_it_is_of_a_stateful_set)
{
	static const char *const names[] = {"web-00", "web-000", "web-1", "web-+0", "web--0"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_free char *world = str_printf(
			NODE_THERE "spiderendpoints: {ml/%s: {metadata: {name: %s, namespace: ml, "
				   "annotations: {orbweaver.io/down: u-a}}, status: "
				   "{ownerControllerType: StatefulSet, ownerControllerName: web, "
				   "current: {uid: u-a, node: w1, ips: []}}}}\n"
				   "live: {ml/%s: {pods: {ml/%s: null}, statefulsets: "
				   "{ml/web: {spec: {replicas: 1}}}}}\n",
			names[i], names[i], names[i], names[i]);
		auto_free char *key = str_printf("ml/%s", names[i]);
		auto_free char *want = str_printf("post ending %s in; ", key);

		expect(endpoint_reconcile, world, key, want);
	}
}

/* docs/ipam.md: "for at most as many ended pods as its ResourceQuota allows pods". */
TEST(a_namespace_keeps_addresses_of_as_many_ended_pods_as_its_quota_allows)
{
	static const struct {
		const char *quota, *ended;
		bool keeps;
	} cases[] = {
		{"{metadata: {namespace: ml}, spec: {hard: {pods: '1'}}}", "1", true},
		{"{metadata: {namespace: ml}, spec: {hard: {pods: '1'}}}", "2", false},
		{"{metadata: {namespace: ml}, spec: {hard: {count/pods: '1', pods: '7'}}}", "2",
		 false},
		/* As the API server writes 5000. */
		{"{metadata: {namespace: ml}, spec: {hard: {pods: 5k}}}", "5000", true},
		{"{metadata: {namespace: ml}, spec: {hard: {pods: 5k}}}", "5001", false},
		/* Bounds none of them, or some, or is not understood. */
		{"{metadata: {namespace: ml}, spec: {hard: {cpu: '1'}}}", "2", true},
		{"{metadata: {namespace: ml}, spec: {hard: {pods: 1.5}}}", "2", true},
		{"{metadata: {namespace: other}, spec: {hard: {pods: '1'}}}", "2", true},
		{"{metadata: {namespace: ml}, spec: {hard: {pods: '1'}, scopes: [BestEffort]}}",
		 "2", true},
		{"{metadata: {namespace: ml}, spec: {hard: {pods: '1'}, scopeSelector: {}}}", "2",
		 true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *world = str_printf(
			"env: {endedSetPods: %s}\nresourcequotas: {ml/q: %s}\n" NODE_THERE
			"spiderendpoints: {ml/web-0: {metadata: {name: web-0, namespace: ml, "
			"annotations: {orbweaver.io/down: u-a}}, status: {ownerControllerType: "
			"StatefulSet, ownerControllerName: web, current: {uid: u-a, node: w1, "
			"ips: []}}}}\nlive: {ml/web-0: {pods: {ml/web-0: null}, "
			"statefulsets: {ml/web: {spec: {replicas: 100000}}}}}\n",
			cases[i].ended, cases[i].quota);

		expect(endpoint_reconcile, world, "ml/web-0",
		       cases[i].keeps ? "requeue -; "
				      : "event ml/web-0 AddressesNotKept; post ending ml/web-0 "
					"in; ");
	}
}

/* docs/ipam.md: "when the pod has terminated". The kubelet rejects pods of each restartPolicy. */
TEST(a_pod_that_the_kubelet_rejected_gets_and_keeps_no_address)
{
	static const char *const phases[] = {
		"{phase: Failed, reason: UnexpectedAdmissionError}",
		"{phase: Failed, reason: Terminated}",
		"{phase: Failed}",
		"{phase: Succeeded}",
	};

	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		auto_free char *pod = str_printf(
			"ml/a: {metadata: {name: a, namespace: ml, uid: u-a, annotations: "
			"{k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1, restartPolicy: "
			"Always}, status: %s}",
			phases[i]);
		auto_free char *waits = str_printf("waiting: {ml/a: true}\npods: {%s}\n" NETWORK
						   "spiderippools:\n" POOL("p", "10.0.0.1", ""),
						   pod);
		auto_free char *ends = str_printf(
			NODE_THERE ENDPOINT("u-a",
					    "orbweaver.io/down: u-a") "pods: {%s}\nlive: {ml/a: "
								      "{pods: {%s}}}\n",
			pod, pod);

		expect(assign_reconcile, waits, "all", "finding ml/a; post waiting ml/a out; ");
		expect(endpoint_reconcile, ends, "ml/a", "post ending ml/a in; ");
	}
}

#define DECIDED(what)                                                                              \
	"decided: {ml/a: {" what ": {metadata: {name: a, namespace: ml}, status: {current: "       \
	"{uid: u-a}}}}}\n"

TEST(what_was_decided_is_written_and_forgotten)
{
	expect(endpoint_reconcile,
	       "decided: {ml/a: {endpoint: {metadata: {name: a, namespace: ml}, status: {current: "
	       "{uid: u-a}}}}}\npods:\n" POD("a", "u-a", ""),
	       "ml/a", "apply ml/a; post decided ml/a out; ");
	/* The next pod of the name has the endpoint; this one is not there, or is beside it. */
	expect(endpoint_reconcile,
	       ENDPOINT("u-b", "") DECIDED("endpoint") "pods:\n" POD("a", "u-b", ""), "ml/a",
	       "post decided ml/a in; ");
	expect(endpoint_reconcile,
	       ENDPOINT("u-b", "") DECIDED("endpoint") "pods:\n" POD("a", "u-a", ""), "ml/a",
	       "apply ml/a; post decided ml/a out; ");
	/* It is not mirrored, and has asked. */
	expect(endpoint_reconcile,
	       ENDPOINT("u-b", "orbweaver.io/asks: '{\"uid\": \"u-a\", \"asks\": [{\"nic\": "
			       "\"net1\"}]}'") DECIDED("endpoint"),
	       "ml/a", "apply ml/a; post decided ml/a out; ");
	expect(endpoint_reconcile, ENDPOINT("u-a", "") "decided: {ml/a: {gone: u-a}}\n", "ml/a",
	       "delete ml/a; post decided ml/a out; ");
	/* Another pod of the name has it by now. */
	expect(endpoint_reconcile, ENDPOINT("u-b", "") "decided: {ml/a: {gone: u-a}}\n", "ml/a",
	       "post decided ml/a out; ");
}

#define HELD "finalizers: [spiderpool.spidernet.io]"

TEST(spiderpools_finalizer_keeps_no_endpoint_for_ever)
{
	static const char held[] =
		NODE_THERE "spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml, " HELD
			   ", deletionTimestamp: '2026-01-31T09:00:00Z'}, status: {current: "
			   "{uid: u-a, node: w1, ips: []}}}}\n";
	auto_free char *ended = str_printf("%sdecided: {ml/a: {gone: u-a}}\n", held);

	/* Nobody has said yet that its pod has ended. */
	expect(endpoint_reconcile, held, "ml/a", "");
	expect(endpoint_reconcile, ended, "ml/a",
	       "meta ml/a; delete ml/a; post decided ml/a out; ");
	/* Made, and never filled in: there is no pod whose end could be waited for. */
	expect(endpoint_reconcile,
	       "spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml, " HELD
	       ", deletionTimestamp: '2026-01-31T09:00:00Z'}}}\n",
	       "ml/a", "meta ml/a; ");
	expect(endpoint_reconcile,
	       "spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml, " HELD "}}}\n", "ml/a",
	       "");
}

/* No agent has seen the address, so none will say that it is free. */
TEST(what_was_decided_for_a_pod_that_has_ended_is_given_back)
{
	expect(endpoint_reconcile, DECIDED("endpoint"), "ml/a", "post decided ml/a in; ");
	expect(endpoint_reconcile, DECIDED("unwritten"), "ml/a", "post look ml/a in; ");
	expect(endpoint_reconcile, DECIDED("unwritten") "live: {ml/a: {pods: {ml/a: null}}}\n",
	       "ml/a", "post ending ml/a in; post decided ml/a out; ");
	/* Its node's agent has helped itself. */
	expect(endpoint_reconcile,
	       ENDPOINT("u-a", "") DECIDED("unwritten") "live: {ml/a: {pods: {ml/a: null}}}\n",
	       "ml/a", "post decided ml/a out; requeue -; ");
	/* The mirror was behind. */
	expect(endpoint_reconcile,
	       DECIDED("unwritten") "live: {ml/a: {pods: {ml/a: {metadata: {name: a, uid: "
				    "u-a}}}}}\n",
	       "ml/a", "post decided ml/a out; ");
}

/* Its first sandbox may still run on a node that cannot be reached: the set keeps the address. */
TEST(what_was_handed_on_to_a_pod_that_has_ended_is_written_and_kept)
{
	static const char handed_on[] =
		"decided: {ml/a: {endpoint: {metadata: {name: a, namespace: ml}, status: {current: "
		"{uid: u-2, ips: [{interface: net1, ipv4: 10.0.0.%s/24, ipv4Pool: p}]}}}}}\n";
	auto_free char *same = str_printf(handed_on, "1"), *other = str_printf(handed_on, "2");
	auto_free char *kept = str_printf("%s%s", ENDPOINT("u-1", ""), same);
	auto_free char *given_back = str_printf("%s%s", ENDPOINT("u-1", ""), other);

	expect(endpoint_reconcile, kept, "ml/a", "apply ml/a; post decided ml/a out; ");
	expect(endpoint_reconcile, given_back, "ml/a", "post decided ml/a in; ");
}

TEST(an_endpoint_that_asks_for_a_pod_that_is_not_mirrored_reads_it)
{
	static const char asks[] =
		"spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml, uid: e-1, "
		"annotations: "
		"{orbweaver.io/asks: '{\"uid\": \"u-a\", \"asks\": [{\"nic\": \"eth0\"}]}'}}}}\n";
	auto_free char *read = str_printf(
		"%slive: {ml/a: {pods: {ml/a: {metadata: {name: a, namespace: ml, uid: u-a}}}}}\n",
		asks);
	auto_free char *gone = str_printf("%slive: {ml/a: {pods: {ml/a: null}}}\n", asks);

	expect(endpoint_reconcile, asks, "ml/a", "post look ml/a in; ");
	expect(endpoint_reconcile, read, "ml/a", "post waiting ml/a in; requeue -; ");
	expect(endpoint_reconcile, gone, "ml/a", "delete ml/a; ");
}

static char *ledger_after(const char *text, const char *pool)
{
	json_auto_t *world = yaml(text);
	auto_plan struct plan plan = {0};
	json_t *op;
	size_t i;

	assert_int_equal(assign_reconcile(world, "all", &plan, NULL), 0);
	json_array_foreach (plan.ops, i, op)
		if (str_eq(json_str_at(op, "op"), "status") && str_eq(json_str_at(op, "key"), pool))
			return str_dup(json_str_or(json_at(op, "status", "allocatedIPs"), "{}"));
	return str_dup("");
}

/* ---- virtual machines ------------------------------------------------------------------------ */

/* A pod of the machine "vm". */
#define MACHINE(name_, more_)                                                                      \
	"  ml/" name_ ": {metadata: {name: " name_ ", namespace: ml, uid: u-" name_                \
	", ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, "          \
	"name: vm, uid: u-vmi, controller: true}], annotations: "                                  \
	"{k8s.v1.cni.cncf.io/networks: net}}, "                                                    \
	"spec: {nodeName: w1}" more_ "}\n"
#define ASKS(uid_, pod_)                                                                           \
	"orbweaver.io/asks: '{\"uid\": \"" uid_ "\", \"pod\": \"" pod_                             \
	"\", \"asks\": [{\"nic\": \"net1\"}]}'"
#define OF_MACHINE(annotations_)                                                                   \
	"spiderendpoints:\n"                                                                       \
	"  ml/vm:\n"                                                                               \
	"    metadata: {name: vm, namespace: ml, uid: e-1, annotations: {" annotations_ "}}\n"     \
	"    status: {ownerControllerType: VirtualMachineInstance, ownerControllerName: vm, "      \
	"current: {uid: u-a, node: w1, ips: [{interface: net1, ipv4: 10.0.0.1/24, "                \
	"ipv4Pool: p, vlan: 0}]}}\n"
#define OF_MACHINE_IN(pool_)                                                                       \
	POOL(pool_, "10.0.0.1-10.0.0.9",                                                           \
	     "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/vm\", \"podUid\": \"u-a\", "            \
	     "\"node\": \"w1\"}}'")

TEST(a_pod_that_asks_under_the_name_of_its_machine_is_read_by_its_own)
{
	static const char asks[] = "spiderendpoints: {ml/vm: {metadata: {name: vm, namespace: ml, "
				   "uid: e-1, annotations: {" ASKS("u-a", "a") "}}}}\n";
	auto_free char *mirrored = str_printf("%spods:\n" MACHINE("a", ""), asks);
	auto_free char *read = str_printf(
		"%slive: {ml/vm: {pods: {ml/vm: null,\n" MACHINE("a", "") "  }}}\n", asks);
	auto_free char *off =
		str_printf("%sspiderpool-conf: {spiderpool/spiderpool-conf: {data: {conf.yml: "
			   "'enableKubevirtStaticIP: false'}}}\nenv: {configNamespace: "
			   "spiderpool}\n",
			   read);
	json_auto_t *world = yaml(asks);
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(endpoint_reconcile(world, "ml/vm", &plan, &err), 0);
	assert_string_equal(
		json_str_at(json_array_get(json_at(json_array_get(plan.ops, 0), "value"), 1),
			    "key"),
		"ml/a");
	expect(endpoint_reconcile, mirrored, "ml/vm", "post waiting ml/a in; ");
	expect(endpoint_reconcile, read, "ml/vm", "post waiting ml/a in; requeue -; ");
	/* It gets them under its own name. */
	expect(endpoint_reconcile, off, "ml/vm", "delete ml/vm; ");
}

TEST(what_was_decided_for_a_machine_is_written_while_its_pod_lives)
{
	expect(endpoint_reconcile,
	       "decided: {ml/vm: {endpoint: {metadata: {name: vm, namespace: ml}, status: "
	       "{current: {uid: u-a}}}}}\npods:\n" MACHINE("a", ""),
	       "ml/vm", "apply ml/vm; post decided ml/vm out; ");
	expect(endpoint_reconcile,
	       "decided: {ml/vm: {endpoint: {metadata: {name: vm, namespace: ml}, status: "
	       "{current: {uid: u-a}}}}}\npods:\n" MACHINE("b", ""),
	       "ml/vm", "post decided ml/vm in; ");
}

TEST(a_machine_that_has_its_addresses_is_recorded_before_others_get_them)
{
	auto_free char *after = ledger_after(
		"waiting: {ml/b: true, ml/a: true}\npods:\n" POD("b", "u-b", "") MACHINE("a", "")
			NETWORK OF_MACHINE("") "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9",
								       ""),
		"p");

	assert_non_null(strstr(after, "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/vm\","
				      "\"podUid\":\"u-a\"}"));
	/* Read for a pass, and it cannot be recorded in this one: it waits on. */
	expect(assign_reconcile,
	       "waiting:\n" MACHINE("a", "")
		       NETWORK OF_MACHINE("") "spiderippools:\n" POOL("p", "10.0.0.2", ""),
	       "all", "finding ml/a AddressNotAdmitted; ");
}

#define PODS_OF_BOTH                                                                               \
	"pods:\n" MACHINE("a", "") MACHINE("b", "") NETWORK "spiderippools:\n" OF_MACHINE_IN("p")
#define BOTH    "waiting: {ml/b: true}\n" PODS_OF_BOTH
#define TAKES_B "waiting:\n" MACHINE("b", ", takesOver: true")

TEST(a_machine_that_migrates_hands_on_its_addresses_when_they_are_asked_for)
{
	auto_free char *foreseen = str_printf("%s" OF_MACHINE(""), BOTH);
	auto_free char *asked = str_printf("%s" OF_MACHINE(ASKS("u-b", "b")), BOTH);
	auto_free char *other = str_printf("%s" OF_MACHINE("orbweaver.io/down: u-b"), BOTH);
	auto_free char *alone = str_printf("%s" OF_MACHINE("orbweaver.io/down: u-a"), BOTH);
	json_auto_t *world = yaml(TAKES_B PODS_OF_BOTH OF_MACHINE(ASKS("u-b", "b")));
	auto_plan struct plan plan = {0};
	struct err err = {0};

	expect(assign_reconcile, foreseen, "all", "finding ml/b; post waiting ml/b out; ");
	expect(assign_reconcile, other, "all", "finding ml/b; post waiting ml/b out; ");
	/* An owner reference is what users write: it is looked at when the agent asks. */
	expect(assign_reconcile, alone, "all", "finding ml/b; post waiting ml/b out; ");
	expect(assign_reconcile, asked, "all", "finding ml/b; post waiting ml/b out; ");
	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	assert_string_equal(
		json_str_at(json_array_get(plan.ops, 0), "status", "allocatedIPs"),
		"{\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/vm\",\"podUid\":\"u-b\"}}");
}

TEST(a_forged_owner_takes_no_addresses_of_a_machine)
{
	static const char asks[] =
		NODE_THERE OF_MACHINE(ASKS("u-b", "b")) "pods:\n" MACHINE("b", "");
	static const struct {
		const char *instance, *want;
	} rows[] = {
		{"null", "meta ml/vm; finding ml/b NotPodOfMachine; requeue -; "},
		{"{metadata: {name: vm}, status: {activePods: {u-b: w1}}}",
		 "meta ml/vm; finding ml/b NotPodOfMachine; requeue -; "},
		{"{metadata: {name: vm, uid: u-other}, status: {activePods: {u-b: w1}}}",
		 "meta ml/vm; finding ml/b NotPodOfMachine; requeue -; "},
		{"{metadata: {name: vm, uid: u-vmi}, status: {activePods: {u-a: w1}}}",
		 "meta ml/vm; finding ml/b NotPodOfMachine; requeue -; "},
		{"{metadata: {name: vm, uid: u-vmi}, status: {activePods: {u-a: w1, u-b: w1}}}",
		 "post waiting ml/b in; requeue -; "},
	};

	json_auto_t *world = yaml(asks);
	auto_plan struct plan plan = {0};
	struct err err = {0};

	/* Also of a pod that is mirrored, whatever the endpoint says of its owner. */
	json_put_str(json_at(world, "spiderendpoints", "ml/vm", "status"), "ownerControllerType",
		     "Pod");
	assert_int_equal(endpoint_reconcile(world, "ml/vm", &plan, &err), 0);
	assert_int_equal(json_array_size(plan.ops), 1);
	assert_non_null(json_find(json_at(json_array_get(plan.ops, 0), "value"), "kind",
				  "virtualmachineinstances"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *read =
			str_printf("%slive: {ml/vm: {virtualmachineinstances: {ml/vm: %s}, "
				   "pods: {\n" MACHINE("b", "") "}}}\n",
				   asks, rows[i].instance);

		expect(endpoint_reconcile, read, "ml/vm", rows[i].want);
		if (strstr(rows[i].want, "finding")) {
			json_auto_t *looked = yaml(read);
			auto_plan struct plan refused = {0};
			const char *text;

			assert_int_equal(endpoint_reconcile(looked, "ml/vm", &refused, &err), 0);
			text = json_str_at(json_find(refused.ops, "op", "finding"), "message");
			/* It may be a KubeVirt of another version. */
			assert_int_equal(strstr(text, "kubevirt.io/v1") != NULL, i == 0);
		}
	}
}

/* The machine has stopped and starts again; the read about its end comes as the next pod asks. */
TEST(who_asks_is_read_once_whatever_was_read_before)
{
	static const char asks[] =
		NODE_THERE OF_MACHINE("orbweaver.io/down: u-a, " ASKS("u-b", "b"));
	auto_free char *read = str_printf(
		"%slive: {ml/vm: {virtualmachineinstances: {ml/vm: null}, virtualmachines: "
		"{ml/vm: {metadata: {name: vm}}}, pods: {ml/vm: null}}}\n",
		asks);
	auto_free char *gone = str_printf(
		"%slive: {ml/vm: {virtualmachineinstances: {ml/vm: null}, virtualmachines: "
		"{ml/vm: {metadata: {name: vm}}}, pods: {ml/b: null}}}\n",
		asks);

	expect(endpoint_reconcile, asks, "ml/vm", "post look ml/vm in; ");
	expect(endpoint_reconcile, read, "ml/vm", "requeue -; post look ml/vm in; ");
	expect(endpoint_reconcile, gone, "ml/vm", "requeue -; ");
}

/* The plain pod "vm" beside the machine "vm": one name of a SpiderEndpoint, two pods that run. */
TEST(pods_that_share_a_name_with_a_machine_share_no_address)
{
#define NAMESAKES "pods:\n" MACHINE("a", "") POD("vm", "u-vm", "") NETWORK
#define OF_PLAIN                                                                                   \
	"spiderendpoints:\n"                                                                       \
	"  ml/vm:\n"                                                                               \
	"    metadata: {name: vm, namespace: ml, uid: e-1, annotations: {" ASKS(                   \
		"u-a", "a") ", orbweaver.io/down: u-vm}}\n"                                        \
			    "    status: {ownerControllerType: Pod, ownerControllerName: vm, "     \
			    "current: {uid: u-vm, node: w1, ips: [{interface: net1, "              \
			    "ipv4: 10.0.0.1/24, ipv4Pool: p, vlan: 0}]}}\n"
	static const struct {
		const char *world, *keeps;
	} rows[] = {
		{"waiting: {ml/vm: true}\n" NAMESAKES OF_MACHINE(
			 "orbweaver.io/down: u-a") "spiderippools:\n" OF_MACHINE_IN("p"),
		 "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/vm\",\"podUid\":\"u-a\"}"},
		{"waiting:\n" MACHINE("a", ", takesOver: true") NAMESAKES OF_PLAIN
		 "spiderippools:\n" POOL(
			 "p", "10.0.0.1-10.0.0.9",
			 "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/vm\", \"podUid\": "
			 "\"u-vm\", \"node\": \"w1\"}}'"),
		 "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/vm\",\"podUid\":\"u-vm\"}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = yaml(rows[i].world);
		auto_plan struct plan plan = {0};
		struct err err = {0};

		assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
		if (!strstr(json_str_or(
				    json_at(json_array_get(plan.ops, 0), "status", "allocatedIPs"),
				    ""),
			    rows[i].keeps))
			fail_msg(
				"%zu: %s", i,
				json_str_at(json_array_get(plan.ops, 0), "status", "allocatedIPs"));
	}
}

TEST(a_machine_keeps_its_addresses_whatever_pools_were_chosen_since)
{
	json_auto_t *world = yaml(TAKES_B "pods:\n" MACHINE("b", "") NETWORK OF_MACHINE(
		ASKS("u-b", "b")) "spiderippools:\n" OF_MACHINE_IN("old")
					  POOL("p", "10.0.0.11-10.0.0.19", ""));
	json_t *item = json_at(world, "spiderendpoints", "ml/vm", "status", "current", "ips");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	json_put_str(json_array_get(item, 0), "ipv4Pool", "old");
	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	assert_int_equal(json_array_size(plan.ops), 5);
	assert_string_equal(json_str_at(json_array_get(plan.ops, 0), "key"), "old");
}

TEST(what_a_machine_had_stays_while_one_of_its_pods_may_use_it)
{
	static const char down[] = NODE_THERE OF_MACHINE("orbweaver.io/down: u-a");
	static const struct {
		const char *instance, *want;
	} rows[] = {
		{"{metadata: {name: vm}}", "requeue -; "},
		{"null", "post ending ml/vm in; "},
		{"{metadata: {name: vm, deletionTimestamp: now}}", "post ending ml/vm in; "},
		{"{metadata: {name: vm, deletionTimestamp: now}, status: {activePods: {u-a: w1}}}",
		 "post ending ml/vm in; "},
		{"{metadata: {name: vm, deletionTimestamp: now}, "
		 "status: {activePods: {u-a: w1, u-b: w2}}}",
		 "requeue -; "},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *world = str_printf("%slive: {ml/vm: {pods: {ml/vm: null}, "
						   "virtualmachineinstances: {ml/vm: %s}}}\n",
						   down, rows[i].instance);

		expect(endpoint_reconcile, world, "ml/vm", rows[i].want);
	}
}

TEST(the_record_of_a_machine_is_accounted_for_by_its_pod)
{
	expect(strays_reconcile, "spiderippools:\n" OF_MACHINE_IN("p") "pods:\n" MACHINE("a", ""),
	       "p", "post learnedpools p in; requeue -; ");
	expect(strays_reconcile, "spiderippools:\n" OF_MACHINE_IN("p") "pods:\n" MACHINE("b", ""),
	       "p", "post strays ml/vm in; post learnedpools p in; requeue -; ");
	expect(strays_reconcile,
	       "pods:\n" MACHINE("a", "")
		       OF_MACHINE("") "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", ""),
	       "p",
	       "event p EndpointWithoutRecord; post claimants ml/a in; post claimed p ml/vm in; "
	       "post waiting ml/a in; post learningpools p in; requeue -; ");
}

/* ---- conflicts ------------------------------------------------------------------------------- */

#define CONFLICT                                                                                   \
	"orbweaver.io/conflicts: '{\"uid\": \"u-a\", \"conflicts\": [{\"ip\": \"10.0.0.1\", "      \
	"\"mac\": \"02:00:00:00:00:01\"}]}'"
#define NOW_WITH(detection_)                                                                       \
	"env: {now: '2026-07-08T10:00:00Z', configNamespace: ow}\nspiderpool-conf: "               \
	"{ow/spiderpool-conf: {data: {conf.yml: '{enableIPv4: true, enableKubevirtStaticIP: true"  \
	", enableIPConflictDetection: " detection_ "}'}}}\n"
#define NOW NOW_WITH("true")
#define A_HAS_1                                                                                    \
	"allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", \"podUid\": \"u-a\", \"node\": "        \
	"\"w1\"}}'"
#define REMEMBERED_OF(pod_)                                                                        \
	"[{\"ip\":\"10.0.0.1\",\"mac\":\"02:00:00:00:00:01\",\"node\":\"w1\","                     \
	"\"pod\":\"" pod_ "\",\"seen\":\"2026-07-08T10:00:00Z\"}]"
#define REMEMBERED REMEMBERED_OF("ml/a")

/* The operation of a plan; its status as text, a member at a time. */
static void expect_status(const json_t *op, const char *member, const char *want)
{
	auto_free char *text = json_text(json_at(op, "status", member));

	assert_string_equal(json_str_at(op, "op"), "status");
	assert_string_equal(text, want);
}

TEST(a_pod_gets_another_address_for_one_that_somebody_else_has)
{
	json_auto_t *world = yaml(NOW "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
					  NETWORK ENDPOINT("u-a", CONFLICT) "spiderippools:\n" POOL(
						  "p", "10.0.0.1-10.0.0.9", A_HAS_1));
	auto_plan struct plan plan = {0};
	const json_t *decided;
	struct err err = {0};

	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	expect_status(json_array_get(plan.ops, 0), "conflictIPs", REMEMBERED);
	expect_status(json_array_get(plan.ops, 0), "allocatedIPs",
		      "\"{\\\"10.0.0.2\\\":{\\\"node\\\":\\\"w1\\\",\\\"pod\\\":\\\"ml/a\\\","
		      "\\\"podUid\\\":\\\"u-a\\\"}}\"");
	assert_null(json_at(json_array_get(plan.ops, 0), "status", "releasedIPs"));
	decided = json_at(json_array_get(plan.ops, 1), "value");
	assert_string_equal(
		json_str_at(
			json_array_get(json_at(decided, "endpoint", "status", "current", "ips"), 0),
			"ipv4"),
		"10.0.0.2/24");
	assert_non_null(json_str_at(decided, "heard"));
}

TEST(a_pod_that_keeps_its_addresses_keeps_one_that_somebody_else_has)
{
	json_auto_t *world = yaml(NOW "waiting: {ml/a: true}\npods:\n" MACHINE(
		"a", "") NETWORK OF_MACHINE(CONFLICT) "spiderippools:\n" OF_MACHINE_IN("p"));
	auto_plan struct plan plan = {0};
	const json_t *decided;
	struct err err = {0};

	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	expect_status(json_array_get(plan.ops, 0), "conflictIPs", REMEMBERED_OF("ml/vm"));
	expect_status(json_array_get(plan.ops, 0), "allocatedIPs",
		      "\"{\\\"10.0.0.1\\\":{\\\"node\\\":\\\"w1\\\",\\\"pod\\\":\\\"ml/vm\\\","
		      "\\\"podUid\\\":\\\"u-a\\\"}}\"");
	decided = json_at(json_array_get(plan.ops, 1), "value");
	assert_non_null(json_str_at(decided, "heard"));
	assert_null(json_at(decided, "endpoint"));
}

#define COORDINATED(detects_)                                                                      \
	"network-attachment-definitions:\n  ml/net: {spec: {config: '{\"plugins\": [{\"type\": "   \
	"\"macvlan\", \"ipam\": {\"type\": \"spiderpool\", \"default_ipv4_ippool\": [\"p\"]}}, "   \
	"{\"type\": \"coordinator\", \"detectIPConflict\": " detects_ "}]}'}}\n"

/* Users may write the annotation. Where detection is off, no agent does. */
TEST(a_conflict_counts_where_detection_is_on)
{
	static const struct {
		const char *settings, *network;
		bool counts;
	} rows[] = {
		{NOW_WITH("true"), COORDINATED("false"), true},
		{NOW_WITH("false"), COORDINATED("false"), false},
		{NOW_WITH("false"), COORDINATED("true"), true},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text =
			str_printf("%s%swaiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
					   ENDPOINT("u-a", CONFLICT) "spiderippools:\n" POOL(
						   "p", "10.0.0.1-10.0.0.9", A_HAS_1),
				   rows[i].settings, rows[i].network);
		json_auto_t *world = yaml(text);
		auto_plan struct plan plan = {0};
		bool is_remembered = false, is_heard = false, is_exchanged = false;
		json_t *op;
		size_t k;

		assert_int_equal(assign_reconcile(world, "all", &plan, NULL), 0);
		json_array_foreach (plan.ops, k, op) {
			is_remembered |= json_at(op, "status", "conflictIPs") != NULL;
			if (!str_eq(json_str_at(op, "box"), BOX_DECIDED))
				continue;
			is_heard |= json_at(op, "value", "heard") != NULL;
			is_exchanged |= json_at(op, "value", "endpoint") != NULL;
		}
		assert_true(is_heard);
		assert_int_equal(is_remembered, rows[i].counts);
		assert_int_equal(is_exchanged, rows[i].counts);
	}
}

/* It keeps what it has, waits, and says why. */
TEST(a_pod_has_its_address_exchanged_a_few_times_an_hour)
{
	json_auto_t *world = yaml(NOW "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
					  NETWORK ENDPOINT("u-a", CONFLICT) "spiderippools:\n" POOL(
						  "p", "10.0.0.1-10.0.0.250", A_HAS_1));
	json_t *status = json_at(world, "spiderippools", "p", "status");
	json_t *entries = json_array();

	for (int i = 0; i < IP_CONFLICTS_OF_POD; i++)
		json_array_append_new(entries, json_pack("{s:o, s:s, s:s}", "ip",
							 json_fmt("10.0.0.%d", i + 2), "pod",
							 "ml/a", "seen", "2026-07-08T09:30:00Z"));
	json_put(status, "conflictIPs", entries);
	for (int i = 0; i < 2; i++) {
		auto_plan struct plan plan = {0};
		size_t n = 0, k;
		json_t *op;

		assert_int_equal(assign_reconcile(world, "all", &plan, NULL), 0);
		json_array_foreach (plan.ops, k, op)
			n += i == 0 ? str_eq(json_str_at(op, "reason"), "TooManyConflicts")
				    : str_eq(json_str_at(op, "box"), BOX_DECIDED);
		assert_int_equal(n, 1);
		/* Of another pod. */
		json_array_foreach (entries, k, op)
			json_put_str(op, "pod", "other/a");
	}
}

TEST(a_conflict_is_remembered_when_there_is_no_other_address)
{
	json_auto_t *world =
		yaml(NOW "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK ENDPOINT(
			"u-a", CONFLICT) "spiderippools:\n" POOL("p", "10.0.0.1", A_HAS_1));
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(assign_reconcile(world, "all", &plan, &err), 0);
	expect_status(json_array_get(plan.ops, 0), "conflictIPs", REMEMBERED);
	expect_status(json_array_get(plan.ops, 0), "allocatedIPCount", "1");
	assert_string_equal(json_str_at(json_array_get(plan.ops, 1), "reason"), "PoolExhausted");
	assert_non_null(strstr(json_str_at(json_array_get(plan.ops, 1), "message"),
			       "pool p (of these 1 by others on the network)"));
}

TEST(a_conflict_of_a_pod_that_has_ended_is_remembered)
{
	static const char world[] = NOW NODE_THERE ENDPOINT(
		"u-a", DOWN ", " CONFLICT) "live: {ml/a: {pods: {ml/a: null}}}\n"
					   "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9",
								   A_HAS_1);
	json_auto_t *ended = yaml(world), *pass = yaml(world);
	auto_plan struct plan looked = {0}, plan = {0};
	struct err err = {0};

	assert_int_equal(endpoint_reconcile(ended, "ml/a", &looked, &err), 0);
	assert_string_equal(json_str_at(json_array_get(looked.ops, 0), "box"), BOX_ENDING);
	json_put(json_need_object(pass, BOX_ENDING), "ml/a",
		 json_incref(json_at(json_array_get(looked.ops, 0), "value")));
	assert_int_equal(assign_reconcile(pass, "all", &plan, &err), 0);
	expect_status(json_array_get(plan.ops, 0), "conflictIPs", REMEMBERED);
	expect_status(json_array_get(plan.ops, 0), "allocatedIPCount", "0");
	expect_status(json_array_get(plan.ops, 0), "freeIPCount", "8");
}

/* Has a pass over this world any pool remember a conflict? */
static bool remembers_a_conflict(const char *text)
{
	json_auto_t *world = yaml(text);
	auto_plan struct plan plan = {0};
	struct err err = {0};
	json_t *op;
	size_t i;

	if (assign_reconcile(world, "all", &plan, &err) < 0)
		fail_msg("%s", err.text);
	json_array_foreach (plan.ops, i, op)
		if (json_at(op, "status", "conflictIPs"))
			return true;
	return false;
}

#define SAID_OF(uid_)                                                                              \
	"status: {current: {uid: " uid_ ", node: w1, ips: [{interface: net1, ipv4: 10.0.0.1/24, "  \
	"ipv4Pool: p}]}}, conflicts: [{ip: 10.0.0.1, mac: '02:00:00:00:00:01'}]}}\n"

/* Users write endpoints of their namespaces; whose an address is, records say. */
TEST(a_forged_endpoint_keeps_no_address_from_other_pods)
{
	static const char *const worlds[] = {
		/* Of nobody. */
		NOW "ending: {tenant/ghost: {uid: x, " SAID_OF("x") "spiderippools:\n" POOL(
			"p", "10.0.0.1-10.0.0.9", ""),
		/* Of another pod, whose UID is not known, and is. */
		NOW "ending: {tenant/ghost: {uid: x, " SAID_OF("x") "spiderippools:\n" POOL(
			"p", "10.0.0.1-10.0.0.9", VICTIM),
		NOW "ending: {tenant/ghost: {uid: u-v, " SAID_OF("u-v") "spiderippools:\n" POOL(
			"p", "10.0.0.1-10.0.0.9", VICTIM),
		/* By a pod that lives. */
		NOW "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK ENDPOINT(
			"u-a", CONFLICT) "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", ""),
		NOW "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK ENDPOINT(
			"u-a", CONFLICT) "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", VICTIM),
	};

	assert_true(remembers_a_conflict(NOW "ending: {victim/v: {uid: u-v, " SAID_OF(
		"u-v") "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", VICTIM)));
	assert_false(
		remembers_a_conflict(NOW_WITH("false") "ending: {victim/v: {uid: u-v, " SAID_OF(
			"u-v") "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", VICTIM)));
	for (size_t i = 0; i < ARRAY_LEN(worlds); i++)
		if (remembers_a_conflict(worlds[i]))
			fail_msg("%s", worlds[i]);
}

/* The schema of the pools' status, as the API server checks it. */
static struct schema *pool_schema(void)
{
	static const char file[] = "crds/spiderippools.spiderpool.spidernet.io.yaml";
	auto_strbuf struct strbuf text = {0};
	json_auto_t *crd = NULL;

	assert_int_equal(fs_read(AT_FDCWD, file, 1 << 20, &text, NULL), 0);
	crd = yaml(strbuf_str(&text));
	return schema_new(json_at(json_array_get(json_at(crd, "spec", "versions"), 0), "schema",
				  "openAPIV3Schema"),
			  NULL);
}

/* A status that the API server refuses is refused at each try, and the pool serves no pod. */
TEST(what_users_write_of_a_conflict_fits_into_the_pool)
{
	static const char *const macs[] = {"02:00:00:00:00:01",
					   "aaaaaaaaaaaaaaaaaaaaaaaa",
					   "02:00:00:00:00:0",
					   "02:00:00:00:00:01:02",
					   "02-00-00-00-00-01",
					   "\xc3\xa9\xc3\xa9\xc3\xa9",
					   ""};
	auto_free char *node = repeat("n", 300);
	auto_schema struct schema *schema = pool_schema();

	for (size_t i = 0; i < ARRAY_LEN(macs); i++) {
		auto_free char *text = str_printf(
			NOW "ending: {victim/v: {uid: u-v, status: {current: {uid: u-v, node: %s, "
			    "ips: [{interface: net1, ipv4: 10.0.0.1/24, ipv4Pool: p}]}}, "
			    "conflicts: [{ip: 10.0.0.1, mac: '%s'}]}}\n"
			    "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", VICTIM),
			node, macs[i]);
		json_auto_t *world = yaml(text), *causes = json_array(), *pool = NULL;
		auto_plan struct plan plan = {0};
		const json_t *entry, *status;

		assert_int_equal(assign_reconcile(world, "all", &plan, NULL), 0);
		status = json_at(json_array_get(plan.ops, 0), "status");
		pool = json_pack("{s:O, s:O}", "spec", json_at(world, "spiderippools", "p", "spec"),
				 "status", status);
		schema_validate(schema, pool, causes);
		if (json_array_size(causes))
			fail_msg("%s: %s", macs[i], json_text(causes));
		entry = json_array_get(json_at(status, "conflictIPs"), 0);
		assert_string_equal(json_str_at(entry, "mac"), i == 0 ? macs[i] : "");
	}
}

TEST(what_an_agent_says_of_a_conflict_is_looked_at_and_taken_away)
{
	auto_free char *text = str_printf("%s", ENDPOINT("u-a", CONFLICT));
	json_auto_t *endpoint = yaml(text), *asks = yaml("[{nic: net1}]");
	static const char heard[] =
		"decided: {ml/a: {heard: '{\"uid\": \"u-a\", \"conflicts\": [{\"ip\": "
		"\"10.0.0.1\", \"mac\": \"02:00:00:00:00:01\"}]}', endpoint: {metadata: {name: a, "
		"namespace: ml}, status: {current: {uid: u-a}}}}}\n";
	auto_free char *now = str_printf("%s%s", heard, ENDPOINT("u-a", CONFLICT));
	auto_free char *more =
		str_printf("%s%s", heard, ENDPOINT("u-a", "orbweaver.io/conflicts: more"));

	assert_false(endpoint_answers(json_at(endpoint, "spiderendpoints", "ml/a"), "u-a", asks));
	expect(endpoint_reconcile,
	       NODE_THERE ENDPOINT("u-a", CONFLICT) "pods:\n" POD("a", "u-a", ""), "ml/a",
	       "post waiting ml/a in; ");
	expect(endpoint_reconcile, NODE_THERE ENDPOINT("u-a", CONFLICT), "ml/a",
	       "post look ml/a in; ");
	expect(endpoint_reconcile, now, "ml/a", "apply ml/a; meta ml/a; post decided ml/a out; ");
	expect(endpoint_reconcile, more, "ml/a", "apply ml/a; post decided ml/a out; ");
	/* Of the pod before it. */
	expect(endpoint_reconcile,
	       NODE_THERE ENDPOINT("u-b", CONFLICT) "pods:\n" POD("a", "u-b", ""), "ml/a", "");
}

/* ---- strays ---------------------------------------------------------------------------------- */

#define ENV           "env: {namespace: ow}\n"
#define LOST          "ow/lost-u-a-8602096f"
#define POD_GONE      "live: {ml/a: {pods: {ml/a: null}, nodes: {w1: {metadata: {name: w1}}}}}\n"
#define RECORD(node_) "strays: {ml/a: [{pool: p, address: 10.0.0.1, uid: u-a" node_ "}]}\n"

TEST(records_without_endpoint_are_verified)
{
	static const char pool[] = "spiderippools:\n" POOL(
		"p", "10.0.0.1",
		"allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", \"podUid\": \"u-a\", \"node\": "
		"\"w1\"}}'");
	auto_free char *known = str_printf("%s" ENDPOINT("u-a", ""), pool);
	auto_free char *alive = str_printf("%spods:\n" POD("a", "u-a", ""), pool);

	expect(strays_reconcile, pool, "p",
	       "post strays ml/a in; post learnedpools p in; requeue -; ");
	expect(strays_reconcile, known, "p", "post learnedpools p in; requeue -; ");
	expect(strays_reconcile, alive, "p", "post learnedpools p in; requeue -; ");
}

/* They stayed for ever: nothing was asked for, so no answer came. */
TEST(a_record_of_a_pod_that_cannot_exist_is_released)
{
	static const char stray[] =
		"strays: {ml/../x: [{pool: p, address: 10.0.0.1, uid: u-a}]}\n%s";
	auto_free char *unread = str_printf(stray, ""),
		       *read = str_printf(stray, "live: {ml/../x: {}}");

	expect(endpoint_reconcile, unread, "ml/../x", "post live ml/../x in; ");
	expect(endpoint_reconcile, read, "ml/../x",
	       "post ending ml/../x u-a in; post strays ml/../x out; ");
}

/* A pool that came back, or whose status was reset, is handed out over living pods otherwise. */
TEST(nothing_new_is_given_before_a_pool_was_learned)
{
	static const char world[] =
		"env: {learns: true}\nlearnedpools: {p: %s}\nwaiting: {ml/b: true, ml/a: "
		"true}\npods:\n" POD("b", "u-b", "") RUNNING("a", "u-a")
			NETWORK ENDPOINT("u-a", "") "spiderippools: {p: {metadata: {name: p, uid: "
						    "u-p}, spec: {ipVersion: 4, subnet: "
						    "10.0.0.0/24, ips: [10.0.0.1-10.0.0.2]}}}\n";
	auto_free char *unknown = str_printf(world, "u-before"), *known = str_printf(world, "u-p");
	json_auto_t *read = yaml(known);
	auto_plan struct plan plan = {0};

	/* The pod that has its address keeps it meanwhile. */
	expect(assign_reconcile, unknown, "all", "status p; finding ml/a; post waiting ml/a out; ");
	assert_int_equal(assign_reconcile(read, "all", &plan, NULL), 0);
	assert_string_equal(json_str_at(json_array_get(plan.ops, 0), "status", "allocatedIPs"),
			    "{\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\",\"podUid\":\"u-a\"},"
			    "\"10.0.0.2\":{\"node\":\"w1\",\"pod\":\"ml/b\",\"podUid\":\"u-b\"}}");
}

/* A user has written the address of a pod that runs into its endpoint, and the ledger is lost. */
TEST(who_waits_is_recorded_once_a_pool_was_learned)
{
	static const char world[] =
		"env: {learns: true}\nlearnedpools: {p: %s}\nwaiting: {ml/a: true}\npods: {ml/a: "
		"{metadata: {name: a, namespace: ml, uid: u-a}, spec: {nodeName: w1}, status: "
		"{phase: Pending%s}}}\n" ENDPOINT("u-a",
						  "") "spiderippools: {p: {metadata: {name: "
						      "p, uid: u-p}, spec: {ipVersion: 4, subnet: "
						      "10.0.0.0/24, ips: [10.0.0.1]}}}\n";
	auto_free char *unknown = str_printf(world, "u-before", "");
	auto_free char *has_sandbox = str_printf(world, "u-before", ", podIP: 192.0.2.7");
	auto_free char *known = str_printf(world, "u-p", "");
	auto_free char *none = ledger_after(unknown, "p"), *one = ledger_after(has_sandbox, "p");
	auto_free char *then = ledger_after(known, "p");

	assert_string_equal(none, "");
	assert_non_null(strstr(one, "ml/a"));
	assert_non_null(strstr(then, "ml/a"));
}

/* A tenant has written "down" for a pod that runs, and the ledger is lost. */
TEST(a_pod_that_runs_has_its_address_whatever_its_endpoint_says)
{
	static const char world[] = "waiting: {ml/a: true}\n%s" ENDPOINT(
		"u-a", "orbweaver.io/down: u-a") "spiderippools:\n" POOL("p", "10.0.0.1", "");
	auto_free char *runs = str_printf(world, "pods:\n" RUNNING("a", "u-a") NETWORK);
	auto_free char *waits = str_printf(world, "pods:\n" POD("a", "u-a", "") NETWORK);
	auto_free char *unknown = str_printf(world, "");
	auto_free char *after = ledger_after(runs, "p");

	expect(strays_reconcile, runs, "p",
	       "event p EndpointWithoutRecord; post claimants ml/a in; post claimed p ml/a in; "
	       "post waiting ml/a in; post learningpools p in; requeue -; ");
	assert_non_null(strstr(after, "u-a"));
	/* One that is not mirrored is read before anybody gets it. */
	expect(strays_reconcile, unknown, "p",
	       "post claimed p ml/a in; post strays ml/a in; post learningpools p in; requeue -; ");
	expect(strays_reconcile, waits, "p", "post learnedpools p in; ");
}

/* A tenant has written the address of another pod into the endpoint of its own. */
TEST(what_network_status_says_too_is_recorded_first)
{
	static const char world[] =
		"waiting: {ml/a: true, ml/b: true}\npods:\n"
		"  ml/a: {metadata: {name: a, namespace: ml, uid: u-a}, spec: {nodeName: w1}, "
		"status: {phase: Running}, addresses: {net1: [%s]}}\n"
		"  ml/b: {metadata: {name: b, namespace: ml, uid: u-b}, spec: {nodeName: w1}, "
		"status: {phase: Running}, addresses: {net1: [10.0.0.1]}}\n" ENDPOINT(
			"u-a", "") "  ml/b:\n    metadata: {name: b, namespace: ml, uid: e-2}\n"
				   "    status: {current: {uid: u-b, node: w1, ips: [{interface: "
				   "net1, ipv4: "
				   "10.0.0.1/24, ipv4Pool: p, vlan: 0}]}}\n"
				   "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "");
	auto_free char *forged = str_printf(world, "10.0.0.2");
	auto_free char *after = ledger_after(forged, "p");

	assert_non_null(strstr(after, "u-b"));
	assert_null(strstr(after, "u-a"));
}

/* A pool of the nodes' own subnet: the network would have the address twice. */
TEST(no_pod_gets_the_address_of_a_node)
{
	static const char nodes[] =
		"nodes: {w2: {status: {addresses: [{type: Hostname, address: w2}, {type: "
		"InternalIP, "
		"address: 10.0.0.1}]}}, w3: {status: {addresses: [{address: 10.9.0.1}]}}}\n";
	json_auto_t *world = yaml("spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.2", ""));
	json_auto_t *more = yaml(nodes);
	auto_books struct books *books = NULL;
	struct ledger *ledger;
	auto_plan struct plan plan = {0};
	const json_t *status;
	struct err err = {0};

	json_object_update(world, more);
	books = books_new(world);
	ledger = books_open(books, "p", &err);
	assert_int_equal(books_may_take(books, ledger, &err), 0);
	assert_int_equal(ip_set_count(&ledger->free), 1);
	assert_false(ip_set_has(&ledger->free, (ip_number)0x0a000001));
	/* The pool says so. */
	assert_int_equal(ip_pool_reconcile(world, "p", &plan, &err), 0);
	status = json_at(json_find(plan.ops, "op", "status"), "status");
	assert_int_equal(json_integer_value(json_at(status, "freeIPCount")), 1);
	assert_non_null(strstr(
		json_str_at(json_find(json_at(status, "conditions"), "type", "Ready"), "message"),
		"1 of them never allocated, as nodes have them"));
}

TEST(a_ledger_says_why_it_gives_nothing_yet)
{
	json_auto_t *world =
		yaml("env: {learns: true}\nspiderippools:\n" POOL("p", "10.0.0.1", ""));
	auto_books struct books *books = books_new(world);
	struct ledger *ledger = books_open(books, "p", NULL);
	struct err err = {0};

	assert_int_equal(books_may_take(books, ledger, &err), -1);
	assert_string_equal(err.reason, "PoolNotLearned");
}

/* Its network is the cluster's, or only the node knows it: it has no annotation of networks. */
TEST(a_pool_is_not_learned_before_pods_that_are_not_mirrored_were_read)
{
	static const char world[] = ENDPOINT(
		"u-a", "orbweaver.io/asks: '{\"uid\": \"u-a\", \"asks\": [{\"nic\": "
		       "\"net1\", \"ipv4\": [\"p\"]}]}'") "spiderippools:\n" POOL("p",
										  "10.0.0.1-"
										  "10.0.0.2",
										  "");
	static const char pod[] = "{metadata: {name: a, namespace: ml, uid: u-a}, spec: "
				  "{nodeName: w1}}";
	static const char claim[] =
		"strays: {ml/a: [{pool: p, address: 10.0.0.1, uid: u-a, claimed: true}]}\n";
	auto_free char *lives =
		str_printf(NODE_THERE "%s%slive: {ml/a: {pods: {ml/a: %s}}}\n", world, claim, pod);
	auto_free char *is_gone =
		str_printf(NODE_THERE "%s%slive: {ml/a: {pods: {ml/a: null}}}\n", world, claim);
	auto_free char *unread = str_printf(NODE_THERE "%s%s", world, claim);
	auto_free char *seen =
		str_printf("%slearningpools: {p: ''}\nclaimed: {p ml/a: ''}\n", world);
	auto_free char *waits = str_printf("%slearningpools: {p: ''}\nclaimed: {p ml/a: "
					   "ml/a}\nclaimants: {ml/a: true}\n",
					   world);
	auto_free char *of_other =
		str_printf("%slearningpools: {p: u-0}\nclaimed: {p ml/a: ''}\n", world);

	expect(strays_reconcile, world, "p",
	       "post claimed p ml/a in; post strays ml/a in; post learningpools p in; requeue -; ");
	expect(endpoint_reconcile, unread, "ml/a", "post look ml/a in; ");
	expect(endpoint_reconcile, lives, "ml/a",
	       "post claimants ml/a in; post waiting ml/a in; post claimed p ml/a in; post strays "
	       "ml/a out; ");
	expect(endpoint_reconcile, is_gone, "ml/a",
	       "post claimed p ml/a in; post strays ml/a out; ");
	expect(strays_reconcile, seen, "p",
	       "post learnedpools p in; post learningpools p out; post claimed p ml/a out; ");
	expect(strays_reconcile, waits, "p", "requeue -; ");
	expect(strays_reconcile, of_other, "p",
	       "post claimed p ml/a in; post strays ml/a in; post learningpools p in; requeue -; ");
}

/* Or a pod of another one gets it as soon as the pool serves again. */
TEST(a_pod_that_was_read_waits_while_its_address_cannot_be_recorded)
{
	static const char world[] =
		"waiting: {ml/a: {metadata: {name: a, namespace: ml, uid: u-a}, spec: {nodeName: "
		"w1}}}\n%sspiderippools:\n" POOL("p", "10.0.0.2", "");
#define UNFORESEEN(word)                                                                           \
	ENDPOINT("u-a", "orbweaver.io/asks: '{\"uid\": \"u-a\", \"asks\": [{\"nic\": "             \
			"\"net1\", \"ipv4\": [\"p\"]}]}'" word)
	auto_free char *refused = str_printf(world, UNFORESEEN(""));
	auto_free char *is_down = str_printf(world, UNFORESEEN(", orbweaver.io/down: u-a"));

	expect(assign_reconcile, refused, "all", "finding ml/a AddressNotAdmitted; meta ml/a; ");
	expect(assign_reconcile, is_down, "all",
	       "post waiting ml/a out; finding ml/a AddressNotAdmitted; meta ml/a; ");
}

TEST(an_agent_takes_nothing_of_a_pool_that_no_leader_has_looked_at)
{
	static const struct {
		const char *status;
		bool is_taken_from;
	} cases[] = {
		{"", false},
		{"allocatedIPs: '{\"10.0.0.9\": {\"podUid\": \"u-z\"}}'", false},
		{"allocatedIPCount: 3", false},
		{"allocatedIPCount: 0", true},
		{"allocatedIPCount: 1, allocatedIPs: '{\"10.0.0.9\": {\"podUid\": \"u-z\"}}'",
		 true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_printf(
			"env: {withoutLeader: true}\nspiderippools:\n  p: {metadata: {name: p}, "
			"spec: "
			"{ipVersion: 4, subnet: 10.0.0.0/24, ips: [10.0.0.1]}, status: {%s}}\n",
			cases[i].status);
		json_auto_t *world = yaml(text), *status = NULL;
		auto_books struct books *books = books_new(world);
		struct ledger *ledger = books_open(books, "p", NULL);
		struct err err = {0};

		assert_int_equal(books_may_take(books, ledger, &err),
				 cases[i].is_taken_from ? 0 : -1);
		assert_string_equal(err.reason, cases[i].is_taken_from ? "" : "PoolNotLearned");
		/* What it gives back does not make the ledger look complete. */
		status = ledger_status(ledger);
		assert_int_equal(json_at(status, "allocatedIPCount") != NULL,
				 cases[i].is_taken_from);
	}
}

/* After a new installation neither records nor endpoints are there, and the pods run. */
TEST(pods_that_run_keep_the_addresses_of_their_network_status)
{
	json_auto_t *world = yaml("waiting: {ml/b: true, ml/a: true}\npods:\n" POD(
		"b", "u-b",
		"") "  ml/a: {metadata: {name: a, namespace: ml, uid: u-a, annotations: "
		    "{k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1}, addresses: {net1: "
		    "['10.0.0.1']}}\n" NETWORK
		    "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.2", ""));
	auto_plan struct plan plan = {0};

	assert_int_equal(assign_reconcile(world, "all", &plan, NULL), 0);
	assert_string_equal(json_str_at(json_array_get(plan.ops, 0), "status", "allocatedIPs"),
			    "{\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\",\"podUid\":\"u-a\"},"
			    "\"10.0.0.2\":{\"node\":\"w1\",\"pod\":\"ml/b\",\"podUid\":\"u-b\"}}");
}

/* Its CNI call is over: an address that it does not have would be made up. */
TEST(pods_that_run_get_no_address_that_nothing_knows)
{
#define IS(status_, more_)                                                                         \
	"waiting: {ml/a: true}\npods:\n  ml/a: {metadata: {name: a, namespace: ml, uid: u-a, "     \
	"annotations: {k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1}, status: "         \
	"{phase: " status_ "}" more_ "}\n" NETWORK
#define RUNS(more_)   IS("Running", more_)
#define HAS(address_) ", addresses: {net1: ['" address_ "']}"
	static const char pool[] = "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.2", "");
	static const struct {
		const char *text, *said;
	} cases[] = {
		{RUNS(""), "finding ml/a AddressUnknown; "},
		/* Its init containers run. */
		{IS("Pending, podIP: 10.244.0.9", ""), "finding ml/a AddressUnknown; "},
		{IS("Pending", ""),
		 "status p; post decided ml/a in; finding ml/a; post waiting ml/a out; "},
		{RUNS(HAS("10.9.9.9")), "finding ml/a AddressUnknown; "},
		{RUNS(HAS("10.0.0.2")),
		 "status p; post decided ml/a in; finding ml/a; post waiting ml/a out; "},
		/* A sandbox that was made again: its node's agent asks. */
		{RUNS("") ENDPOINT("", "orbweaver.io/asks: '{\"uid\": \"u-a\", \"pod\": \"ml/a\", "
				       "\"asks\": [{\"nic\": \"net1\", \"ipv4\": [\"p\"]}]}'"),
		 "status p; post decided ml/a in; finding ml/a; post waiting ml/a out; "},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_printf("%s%s", cases[i].text, pool);

		expect(assign_reconcile, text, "all", cases[i].said);
	}
}

TEST(a_mirrored_pod_has_its_addresses_and_not_the_whole_status)
{
	json_auto_t *pod =
		yaml("{metadata: {name: a, annotations: {k8s.v1.cni.cncf.io/network-status: "
		     "'[{\"name\": \"c\", \"interface\": \"eth0\", \"ips\": [\"10.244.0.9\"]}, "
		     "{\"interface\": "
		     "\"net1\", \"ips\": [\"10.0.0.1\", 7], \"mac\": \"x\"}, {\"interface\": "
		     "\"net2\"}]'}}}");
	json_auto_t *odd = yaml("{metadata: {name: a, annotations: "
				"{k8s.v1.cni.cncf.io/network-status: '{'}}}");
	auto_free char *text = NULL;

	assign_project(pod);
	assign_project(odd);
	text = json_text(json_at(pod, "addresses"));
	assert_string_equal(text, "{\"eth0\":[\"10.244.0.9\"],\"net1\":[\"10.0.0.1\"]}");
	assert_null(json_at(pod, "metadata", "annotations", "k8s.v1.cni.cncf.io/network-status"));
	assert_null(json_at(odd, "addresses"));
}

/* Or a pool of which it claims an address would never be learned: reading it fails each time. */
TEST(a_node_that_cannot_be_is_not_read)
{
	static const char *const nodes[] = {"w1/proxy", "..", "a b"};

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		json_auto_t *world =
			yaml(ENDPOINT("u-a", "") "strays: {ml/a: [{pool: p, address: 10.0.0.1, "
						 "uid: u-a, claimed: true}]}\n");
		auto_plan struct plan plan = {0};
		struct err err = {0};
		const json_t *wanted;

		json_put_str(json_at(world, "spiderendpoints", "ml/a", "status", "current"), "node",
			     nodes[i]);
		assert_int_equal(endpoint_reconcile(world, "ml/a", &plan, &err), 0);
		wanted = json_at(json_array_get(plan.ops, 0), "value");
		assert_non_null(json_find(wanted, "key", "ml/a"));
		assert_null(json_find(wanted, "kind", "nodes"));
	}
}

TEST(one_address_on_two_living_pods_is_found)
{
	expect(strays_reconcile,
	       "pods:\n" POD("a", "u-a", "") POD("b", "u-b", "")
		       ENDPOINT("u-a", "") "spiderippools:\n" POOL(
			       "p", "10.0.0.1",
			       "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/b\", "
			       "\"podUid\": \"u-b\"}}'"),
	       "p", "finding ml/a AddressTwice; post learnedpools p in; requeue -; ");
}

#define A_RECORD "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", \"podUid\": \"u-a\"}}'"

/* Found by this pool, by another one, and by the pass over pods that wait. */
TEST(an_address_that_one_pod_alone_has_is_no_finding_any_more)
{
	expect(strays_reconcile,
	       "learnedpools: {p: u-p}\ntwice: {"
	       "ml/a: 'address 10.0.0.1 of pool p is also that of pod ml/b: delete one of the "
	       "two', "
	       "ml/b: 'address 10.0.0.1 of pool q is also that of pod ml/c: delete one of the "
	       "two', "
	       "ml/c: 'address 10.0.0.1 of pool p is recorded for pod ml/d: restart this pod'}\n"
	       "pods:\n" POD("a", "u-a", "")
		       ENDPOINT("u-a", "") "spiderippools: {p: {metadata: "
					   "{name: p, uid: u-p}, spec: {ipVersion: 4, subnet: "
					   "10.0.0.0/24, ips: [10.0.0.1]}, "
					   "status: {" A_RECORD "}}}\n",
	       "p", "finding ml/a; requeue -; ");
}

TEST(a_record_that_was_lost_is_made_again)
{
	static const char world[] = "pods:\n" POD("a", "u-a", "") ENDPOINT("u-a", "") NETWORK
		"spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "");
	auto_free char *waiting = str_printf("%swaiting: {ml/a: true}\n", world);
	auto_free char *seen =
		str_printf("%slearningpools: {p: ''}\nclaimed: {p ml/a: ml/a}\n", world);
	json_auto_t *read = yaml(waiting);
	auto_plan struct plan plan = {0};
	struct err err = {0};

	/* Before the pool is learned, its pods wait. */
	expect(strays_reconcile, world, "p",
	       "event p EndpointWithoutRecord; post claimants ml/a in; post claimed p ml/a in; "
	       "post waiting ml/a in; post learningpools p in; requeue -; ");
	expect(strays_reconcile, seen, "p",
	       "event p EndpointWithoutRecord; post waiting ml/a in; post learnedpools p in; "
	       "post learningpools p out; post claimed p ml/a out; ");
	assert_int_equal(assign_reconcile(read, "all", &plan, &err), 0);
	assert_non_null(strstr(json_str_at(json_array_get(plan.ops, 0), "status", "allocatedIPs"),
			       "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\""));
}

/* What a pass writes into the ledger of a pool; "" when it writes none. Returns new. */
/* Decide, and keep in the world what was posted and what ledgers say. */
static void go_on(reconcile_fn *reconcile, json_t *world, const char *key)
{
	auto_plan struct plan plan = {0};
	json_t *op;
	size_t i;

	assert_int_equal(reconcile(world, key, &plan, NULL), 0);
	json_array_foreach (plan.ops, i, op) {
		const char *box = json_str_at(op, "box"), *of = json_str_at(op, "key");

		if (str_eq(json_str_at(op, "op"), "status"))
			json_put(json_at(world, json_str_at(op, "kind"), of), "status",
				 json_incref(json_at(op, "status")));
		else if (str_eq(json_str_at(op, "op"), "post") && json_at(op, "value"))
			json_put(json_need_object(world, box), of,
				 json_incref(json_at(op, "value")));
		else if (str_eq(json_str_at(op, "op"), "post"))
			json_object_del(json_object_get(world, box), of);
	}
}

static bool is_learned(const json_t *world, const char *pool)
{
	return json_at(world, BOX_LEARNED, pool) != NULL;
}

/* Passes have a bound, so others may be served before it. */
TEST(a_pool_is_learned_once_a_pass_has_looked_at_who_has_its_addresses)
{
	json_auto_t *world =
		yaml("env: {learns: true, now: '2026-01-01T00:00:00Z'}\npods:\n" POD("a", "u-a", "")
			     ENDPOINT("u-a", "") NETWORK
		     "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", ""));

	for (int i = 0; i < 3; i++)
		go_on(strays_reconcile, world, "p");
	assert_false(is_learned(world, "p"));
	go_on(assign_reconcile, world, "all");
	go_on(strays_reconcile, world, "p");
	assert_true(is_learned(world, "p"));
	assert_int_equal(json_object_size(json_at(world, BOX_CLAIMED)), 0);
	assert_int_equal(json_object_size(json_at(world, BOX_CLAIMANTS)), 0);
	assert_int_equal(json_object_size(json_at(world, BOX_LEARNING)), 0);
}

#define FROM_OLD                                                                                   \
	"spiderendpoints:\n  ml/a: {metadata: {name: a, namespace: ml}, status: {current: {uid: "  \
	"u-a, node: w1, ips: [{interface: net1, ipv4: 10.0.0.1/24, ipv4Pool: old}]}}}\n"
#define A_HAS_ONE "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\",\"podUid\":\"u-a\"}"

/* Or it is handed out over living pods: they have addresses of a pool that is gone. */
TEST(a_pool_of_another_name_learns_what_pods_have_of_its_addresses)
{
	static const char *const olds[] = {
		"",
		"  old: {metadata: {name: old}, spec: {subnet: 10.9.0.0/24, ips: [10.9.0.1]}}\n",
		"  old: {metadata: {name: old}, spec: {subnet: nonsense}}\n",
		/* In the same subnet, made again or edited. */
		POOL("old", "10.0.0.20-10.0.0.29", ""),
		"  old: {metadata: {name: old}, spec: {subnet: 10.0.0.0/24, ips: "
		"[10.0.0.1-10.0.0.1, 10.0.0.20], excludeIPs: [10.0.0.1]}}\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(olds); i++) {
		auto_free char *text =
			str_printf("env: {learns: true, now: '2026-01-01T00:00:00Z'}\npods:\n" POD(
					   "a", "u-a", "") POD("b", "u-b", "") FROM_OLD NETWORK
				   "waiting: {ml/b: true}\nspiderippools:\n%s" POOL(
					   "p", "10.0.0.1-10.0.0.9", ""),
				   olds[i]);
		json_auto_t *world = yaml(text);
		const char *records;

		for (int k = 0; k < 3; k++) {
			go_on(strays_reconcile, world, "p");
			go_on(assign_reconcile, world, "all");
		}
		assert_true(is_learned(world, "p"));
		records = json_str_at(world, "spiderippools", "p", "status", "allocatedIPs");
		assert_string_equal(records, "{" A_HAS_ONE ",\"10.0.0.2\":{\"node\":\"w1\",\"pod\":"
					     "\"ml/b\",\"podUid\":\"u-b\"}}");
		/* Its endpoint says so from now on. */
		assert_string_equal(
			json_str_at(json_array_get(json_at(world, BOX_DECIDED, "ml/a", "endpoint",
							   "status", "current", "ips"),
						   0),
				    "ipv4Pool"),
			"p");
	}
}

TEST(a_pool_leaves_addresses_of_another_that_has_them_to_that_one)
{
	expect(strays_reconcile,
	       "pods:\n" POD("a", "u-a", "") FROM_OLD
	       "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "") POOL("old", "10.0.0.1", ""),
	       "p", "post learnedpools p in; ");
	/* Its ledger accounts for what its spec lacks by now. */
	expect(strays_reconcile,
	       "pods:\n" POD("a", "u-a", "") FROM_OLD
	       "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "")
		       POOL("old", "10.0.0.20", A_RECORD),
	       "p", "post learnedpools p in; ");
	/* And those that it does not have to nobody. */
	expect(strays_reconcile,
	       "pods:\n" POD("a", "u-a", "") FROM_OLD "spiderippools:\n" POOL("p", "10.0.0.2", ""),
	       "p", "post learnedpools p in; ");
}

/* Each pool has the addresses that pods have of the other. */
TEST(pools_that_change_their_ranges_for_each_others_learn_both)
{
	json_auto_t *world = yaml(
		"env: {learns: true, now: '2026-01-01T00:00:00Z'}\npods:\n" POD("a", "u-a", "")
			POD("b", "u-b", "") POD("c", "u-c", "") FROM_OLD
		"  ml/b: {metadata: {name: b, namespace: ml}, status: {current: {uid: u-b, node: "
		"w1, ips: [{interface: net1, ipv4: 10.0.0.20/24, ipv4Pool: p}]}}}\n" NETWORK
		"waiting: {ml/c: true}\nspiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "")
			POOL("old", "10.0.0.20-10.0.0.29", ""));

	for (int k = 0; k < 3; k++) {
		go_on(strays_reconcile, world, "p");
		go_on(strays_reconcile, world, "old");
		go_on(assign_reconcile, world, "all");
	}
	assert_true(is_learned(world, "p") && is_learned(world, "old"));
	assert_string_equal(json_str_at(world, "spiderippools", "p", "status", "allocatedIPs"),
			    "{" A_HAS_ONE ",\"10.0.0.2\":{\"node\":\"w1\",\"pod\":\"ml/c\","
			    "\"podUid\":\"u-c\"}}");
	assert_string_equal(json_str_at(world, "spiderippools", "old", "status", "allocatedIPs"),
			    "{\"10.0.0.20\":{\"node\":\"w1\",\"pod\":\"ml/b\",\"podUid\":"
			    "\"u-b\"}}");
}

/* Killed between the two writes, and an older pool has the address since. */
TEST(what_a_pool_has_recorded_stays_with_it_until_the_endpoint_says_so)
{
	static const char *const olds[] = {
		"",
		POOL("old", "10.0.0.20", ""),
		POOL("old", "10.0.0.1", ""),
	};

	for (size_t i = 0; i < ARRAY_LEN(olds); i++) {
		auto_free char *text = str_printf(
			"waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") FROM_OLD NETWORK
			"spiderippools:\n%s" POOL("older", "10.0.0.1", "")
				POOL("p", "10.0.0.1-10.0.0.9", A_RECORD),
			olds[i]);

		expect(assign_reconcile, text, "all",
		       "post decided ml/a in; finding ml/a; post waiting ml/a out; ");
	}
}

/* A pod that ends before its endpoint was written again. */
TEST(what_another_pool_had_goes_back_to_the_pool_that_recorded_it)
{
	auto_free char *after = ledger_after(
		"ending: {ml/a: {uid: u-a, status: {current: {uid: u-a, ips: [{interface: net1, "
		"ipv4: 10.0.0.1/24, ipv4Pool: old}]}}}}\nspiderippools:\n" POOL(
			"p", "10.0.0.1", "allocatedIPs: '{" A_HAS_ONE "}'"),
		"p");

	assert_string_equal(after, "{}");
}

static void count_visit(void *arg, const char *block)
{
	json_put_bool(arg, block, true);
}

TEST(endpoints_are_found_by_blocks_of_their_addresses)
{
	static const struct {
		const char *subnet, *range, *address;
	} cases[] = {
		{"10.0.0.0/8", "10.0.0.1-10.255.255.254", "10.7.8.9/8"},
		{"10.0.0.0/24", "10.0.0.9", "10.0.0.9"},
		{"fd00::/48", "fd00::1-fd00::ffff:ffff:ffff:ffff:fff0", "FD00:0:0:7::1/48"},
	};
	json_auto_t *wide = yaml("{spec: {subnet: '::/0', ips: ['1::1-2::1']}}");
	json_auto_t *none = json_object();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool v6 = strchr(cases[i].subnet, ':');
		json_auto_t *pool = json_pack("{s:{s:s, s:[s]}}", "spec", "subnet", cases[i].subnet,
					      "ips", cases[i].range);
		json_auto_t *endpoint = json_pack("{s:{s:{s:[{s:s}]}}}", "status", "current", "ips",
						  v6 ? "ipv6" : "ipv4", cases[i].address);
		json_auto_t *blocks = json_object(), *of_endpoint = json_object();

		assert_true(strays_visit_blocks(pool, count_visit, blocks));
		strays_visit_blocks_of_endpoint(endpoint, count_visit, of_endpoint);
		assert_int_equal(json_object_size(of_endpoint), 1);
		assert_non_null(json_object_get(
			blocks, json_object_iter_key(json_object_iter(of_endpoint))));
	}
	assert_false(strays_visit_blocks(wide, count_visit, none));
	assert_int_equal(json_object_size(none), 0);
}

/* One that looked at it cannot have recorded anything. */
TEST(a_pool_is_not_learned_while_the_server_refuses_its_ledger)
{
	json_auto_t *world =
		yaml("env: {learns: true, now: '2026-01-01T00:00:00Z'}\npods:\n" RUNNING("a", "u-a")
			     ENDPOINT("u-a", "") NETWORK "spiderippools:\n" POOL(
				     "p", "10.0.0.1-10.0.0.9", "") "unwrittenledgers: {p: {until: "
								   "'2026-01-01T00:00:30Z'}}\n");

	for (int i = 0; i < 3; i++) {
		go_on(strays_reconcile, world, "p");
		go_on(assign_reconcile, world, "all");
	}
	assert_false(is_learned(world, "p"));
	json_object_del(world, "unwrittenledgers");
	go_on(strays_reconcile, world, "p");
	go_on(assign_reconcile, world, "all");
	go_on(strays_reconcile, world, "p");
	assert_true(is_learned(world, "p"));
	assert_non_null(
		strstr(json_str_at(world, "spiderippools", "p", "status", "allocatedIPs"), "u-a"));
}

/* Or it is given to another pod, for want of an address that has nothing to do with it. */
TEST(what_a_pod_has_is_recorded_though_it_cannot_have_more)
{
	static const char world[] = "waiting: {ml/a: true}\npods:\n" POD_ON(
		"a", "net,net2") "network-attachment-definitions:\n" NET("net", "p")
		NET("net2", "q") "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "")
			POOL("q", "10.0.0.11",
			     "allocatedIPs: '{\"10.0.0.11\": {\"pod\": \"ml/x\", \"podUid\": "
			     "\"u-x\"}}'");
	static const char two[] =
		"spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml}, status: {current: "
		"{uid: "
		"u-a, ips: [{interface: net2, ipv4: 10.0.0.11/24, ipv4Pool: q}, {interface: net1, "
		"ipv4: 10.0.0.1/24, ipv4Pool: p}]}}}}\n";
	static const char record[] = "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\"";
	auto_free char *exhausted = str_printf("%s" ENDPOINT("u-a", ""), world);
	auto_free char *twice = str_printf("%s%s", world, two);
	auto_free char *after = ledger_after(exhausted, "p");
	auto_free char *after_twice = ledger_after(twice, "p");

	assert_non_null(strstr(after, record));
	assert_non_null(strstr(after_twice, record));
}

/* A ledger was lost, and a user has written another pod's address into an endpoint meanwhile. */
TEST(who_runs_is_recorded_before_who_waits)
{
	static const char world[] = "waiting: {ml/a: true, ml/web: true}\npods:\n" POD(
		"a", "u-a",
		"") "  ml/web: {metadata: {name: web, namespace: ml, uid: u-web}, spec: "
		    "{nodeName: w1}, status: {phase: Running, podIP: 192.0.2.7}}\n"
		    "spiderendpoints:\n"
		    "  ml/a: {metadata: {name: a, namespace: ml}, status: {current: {uid: u-a, "
		    "ips: [{interface: net1, ipv4: 10.0.0.1/24, ipv4Pool: p}]}}}\n"
		    "  ml/web: {metadata: {name: web, namespace: ml}, status: {current: {uid: "
		    "u-web, ips: [{interface: net1, ipv4: 10.0.0.1/24, ipv4Pool: p}]}}}\n"
		    "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "");
	auto_free char *after = ledger_after(world, "p");

	assert_non_null(strstr(after, "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/web\""));
	assert_null(strstr(after, "ml/a"));
}

/* Spiderpool's agents leave no asks behind, and a network may be gone. */
TEST(what_a_pod_has_is_recorded_though_nobody_knows_its_networks)
{
	static const char pools[] = "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "");
	auto_free char *unforeseen = str_printf(
		"waiting: {ml/a: {metadata: {name: a, namespace: ml, uid: u-a}, spec: {nodeName: "
		"w1}}}\n" ENDPOINT("u-a", "") "%s",
		pools);
	auto_free char *gone = str_printf("waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
						  ENDPOINT("u-a", "") "%s",
					  pools);
	auto_free char *down = str_printf("waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
						  ENDPOINT("u-a", "orbweaver.io/down: u-a") "%s",
					  pools);
	auto_free char *first = ledger_after(unforeseen, "p"), *second = ledger_after(gone, "p");
	auto_free char *third = ledger_after(down, "p");
	auto_free char *of_network = ledger_after(
		"waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
			ENDPOINT("u-a", "") "spiderippools: {p: {metadata: {name: p}, spec: "
					    "{ipVersion: 4, subnet: 10.0.0.0/24, ips: "
					    "[10.0.0.1], multusName: [ml/net]}}}\n",
		"p");

	assert_non_null(strstr(of_network, "\"pod\":\"ml/a\""));
	assert_non_null(strstr(first, "\"pod\":\"ml/a\""));
	assert_non_null(strstr(second, "\"pod\":\"ml/a\""));
	assert_string_equal(third, "");
}

/* Or another pod gets it as well: annotations of a pod that runs can be changed. */
TEST(what_a_pod_has_is_recorded_whatever_its_annotations_say_by_now)
{
	static const char *const annotations[] = {
		"ipam.spidernet.io/ippool: '{\"ipv4\": [\"gone\"]}'",
		"ipam.spidernet.io/ippool: '{\"ipv4\": [\"q\"]}'",
		"ipam.spidernet.io/ippool: 'no JSON'",
		"ipam.spidernet.io/ippool: '{\"ipv4\": [\"[\"]}'",
		"ipam.spidernet.io/ippools: '[]'",
		"ipam.spidernet.io/ippools: '[{\"interface\": \"eth9\", \"ipv4\": [\"p\"]}]'",
		"ipam.spidernet.io/routes: 'no JSON'",
		"ipam.spidernet.io/ippool: 20000",
		"k8s.v1.cni.cncf.io/networks: 'net net'",
		"k8s.v1.cni.cncf.io/networks: '[{\"name\": 7}]'",
		"v1.multus-cni.io/default-network: '['",
	};

	for (size_t i = 0; i < ARRAY_LEN(annotations); i++) {
		bool has_networks = strstr(annotations[i], "networks:");
		auto_free char *world = str_printf(
			"waiting: {ml/a: true}\npods: {ml/a: {metadata: {name: a, namespace: ml, "
			"uid: u-a, annotations: {%s%s}}, spec: {nodeName: w1}}}\n" NETWORK ENDPOINT(
				"u-a", "") "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", "")
				POOL("q", "10.0.0.11", ""),
			annotations[i], has_networks ? "" : ", k8s.v1.cni.cncf.io/networks: net");
		auto_free char *after = ledger_after(world, "p");

		if (!strstr(after, "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\""))
			fail_msg("%s: %s", annotations[i], after);
	}
}

/* Its record has the usual spelling: the endpoint of another program, or of a user, need not. */
TEST(an_address_in_another_spelling_is_the_same_address)
{
#define OF_SIX(address_, record_)                                                                  \
	"waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") NETWORK                               \
		"spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml}, status: "            \
		"{current: {uid: u-a, node: w1, ips: [{interface: net1, ipv6: '" address_          \
		"/64', ipv6Pool: p, vlan: 0}]}}}}\nspiderippools: {p: {metadata: {name: "          \
		"p}, spec: {ipVersion: 6, subnet: 'fd00::/64', ips: ['fd00::1-fd00::9']}"          \
		", status: {allocatedIPs: '{" record_ "}'}}}\n"
	static const char record[] =
		"{\"fd00::1\":{\"node\":\"w1\",\"pod\":\"ml/a\",\"podUid\":\"u-a\"}}";
	auto_free char *made = ledger_after(OF_SIX("FD00:0::1", ""), "p");

	assert_string_equal(made, record);
	expect(strays_reconcile,
	       OF_SIX("FD00:0::1", "\"fd00::1\": {\"pod\": \"ml/a\", \"podUid\": \"u-a\"}"), "p",
	       "post learnedpools p in; requeue -; ");
	expect(strays_reconcile,
	       OF_SIX("FD00:0::1",
		      "\"fd00::1\": {\"pod\": \"ml/b\", \"podUid\": \"u-b\"}") "env: {}\n",
	       "p", "post strays ml/b in; post learnedpools p in; requeue -; ");
}

/* Users write endpoints, as many and as often as they like. */
TEST(endpoints_that_come_later_do_not_keep_a_pool_from_being_learned)
{
	json_auto_t *world = yaml("env: {now: '2026-01-01T00:00:00Z'}\n" ENDPOINT(
		"u-0", "") "spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9", ""));
	json_t *endpoints = json_at(world, KIND_ENDPOINT);
	json_t *claim = json_at(endpoints, "ml/a", "status", "current");

	go_on(strays_reconcile, world, "p");
	assert_false(is_learned(world, "p"));
	json_put(world, BOX_LIVE, json_pack("{s:{s:{s:n}}}", "ml/a", KIND_POD, "ml/a"));
	go_on(endpoint_reconcile, world, "ml/a");
	for (int i = 1; i < 5 && !is_learned(world, "p"); i++) {
		auto_free char *name = str_printf("ml/x%d", i), *uid = str_printf("u-%d", i);

		json_put_str(claim, "uid", uid);
		json_put(endpoints, name, json_deep_copy(json_at(endpoints, "ml/a")));
		go_on(strays_reconcile, world, "p");
	}
	assert_true(is_learned(world, "p"));
}

#define OF_SET                                                                                     \
	"pods:\n  ml/a: {metadata: {name: a, namespace: ml, uid: u-b, annotations: "               \
	"{k8s.v1.cni.cncf.io/networks: net}, ownerReferences: [{apiVersion: apps/v1, kind: "       \
	"StatefulSet, name: web, controller: true}]}, spec: {nodeName: w1}}\nwaiting: {ml/a: "     \
	"true}\n"
#define OF_A "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", \"podUid\": \"u-a\"}}'"

/* Its annotation names another pool now, and its sandbox may be there on another node. */
TEST(what_a_pod_does_not_take_over_is_kept_until_its_node_has_spoken)
{
	static const char pools[] = "spiderippools:\n" POOL("p", "10.0.0.1", OF_A)
		POOL("q", "10.0.0.8", "") "network-attachment-definitions:\n" NET("net", "q");
	auto_free char *silent = str_printf(OF_SET "%s" ENDPOINT("u-a", ""), pools);
	auto_free char *down =
		str_printf(OF_SET "%s" ENDPOINT("u-a", "orbweaver.io/down: u-a"), pools);
	auto_free char *kept = ledger_after(silent, "p"), *back = ledger_after(down, "p");

	assert_string_equal(kept, "");
	assert_string_equal(back, "{}");
}

/* A living pod may have it by now: those are looked at first. */
TEST(a_lost_record_is_taken_over_once_the_pool_is_learned)
{
	static const char world[] =
		"env: {learns: true}\nlearnedpools: {p: %s}\n" OF_SET ENDPOINT("u-a", "") NETWORK
		"spiderippools: {p: {metadata: {name: p, uid: u-p}, spec: {ipVersion: 4, subnet: "
		"10.0.0.0/24, ips: [10.0.0.1-10.0.0.2]}}}\n";
	auto_free char *unknown = str_printf(world, "u-before"), *known = str_printf(world, "u-p");
	auto_free char *before = ledger_after(unknown, "p"), *after = ledger_after(known, "p");

	assert_string_equal(before, "");
	assert_non_null(strstr(after, "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\","
				      "\"podUid\":\"u-b\"}"));
}

/* It is being deleted, or was evicted, and its interfaces are up. */
TEST(a_lost_record_is_made_again_for_a_pod_that_has_ended)
{
	static const char world[] = "%spods:\n" POD("a", "u-a", ", deletionTimestamp: now") NETWORK
		"spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.2", "");
	auto_free char *silent = str_printf(world, "waiting: {ml/a: true}\n" ENDPOINT("u-a", ""));
	auto_free char *down = str_printf(
		world, "waiting: {ml/a: true}\n" ENDPOINT("u-a", "orbweaver.io/down: u-a"));
	auto_free char *found = str_printf(world, ENDPOINT("u-a", ""));
	auto_free char *over = str_printf(world, ENDPOINT("u-a", "orbweaver.io/down: u-a"));
	auto_free char *kept = ledger_after(silent, "p"), *back = ledger_after(down, "p");

	expect(strays_reconcile, found, "p",
	       "event p EndpointWithoutRecord; post claimants ml/a in; post claimed p ml/a in; "
	       "post waiting ml/a in; post learningpools p in; requeue -; ");
	expect(strays_reconcile, over, "p", "post learnedpools p in; ");
	assert_non_null(strstr(kept, "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\","
				     "\"podUid\":\"u-a\"}"));
	assert_string_equal(back, "");
}

/* Or the older one, which gives nothing meanwhile, gives it to another pod when it is put right. */
TEST(an_address_in_use_is_recorded_in_a_pool_that_overlaps)
{
	auto_free char *after = ledger_after("waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "")
						     ENDPOINT("u-a", "") NETWORK
					     "spiderippools:\n" POOL("b", "10.0.0.1-10.0.0.9", "")
						     POOL("p", "10.0.0.1-10.0.0.2", ""),
					     "p");

	assert_non_null(strstr(after, "\"10.0.0.1\":{\"node\":\"w1\",\"pod\":\"ml/a\""));
}

/* Its ledger was lost: pods may have all of its addresses, and an edit made this pool overlap. */
TEST(nothing_is_given_that_a_pool_without_its_ledger_may_have_given)
{
	static const char world[] =
		"env: {learns: true}\nlearnedpools: {p: u-p, z: %s}\nwaiting: {ml/a: "
		"true}\npods:\n" POD("a", "u-a", "") NETWORK
		"spiderippools: {p: {metadata: {name: p, uid: u-p}, spec: {ipVersion: 4, subnet: "
		"10.0.0.0/24, ips: [10.0.0.1-10.0.0.3]}}, z: {metadata: {name: z, uid: u-z}, spec: "
		"{ipVersion: 4, subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.2]}}}\n";
	auto_free char *unknown = str_printf(world, "u-before"), *known = str_printf(world, "u-z");
	auto_free char *before = ledger_after(unknown, "p"), *after = ledger_after(known, "p");

	assert_non_null(strstr(before, "\"10.0.0.3\""));
	assert_non_null(strstr(after, "\"10.0.0.1\""));
}

/* A pod of the same name is served before the end of the last one is looked at. */
TEST(what_a_pod_of_the_same_name_had_is_given_back_on_its_agents_word)
{
#define AFTER(word)                                                                                \
	"waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") ENDPOINT("u-0", word) NETWORK         \
		"spiderippools:\n" POOL("p", "10.0.0.1-10.0.0.9",                                  \
					"allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", "       \
					"\"podUid\": \"u-0\"}}'")
	json_auto_t *silent = yaml(AFTER("")), *down = yaml(AFTER("orbweaver.io/down: u-0"));
	auto_plan struct plan kept = {0}, back = {0};

	assert_int_equal(assign_reconcile(silent, "all", &kept, NULL), 0);
	assert_int_equal(assign_reconcile(down, "all", &back, NULL), 0);
	assert_non_null(
		strstr(json_str_at(json_array_get(kept.ops, 0), "status", "allocatedIPs"), "u-0"));
	assert_null(
		strstr(json_str_at(json_array_get(back.ops, 0), "status", "allocatedIPs"), "u-0"));
	assert_non_null(
		strstr(json_str_at(json_array_get(back.ops, 0), "status", "allocatedIPs"), "u-a"));
}

TEST(an_address_that_another_pod_has_is_no_answer)
{
	expect(assign_reconcile,
	       "waiting: {ml/a: true}\npods:\n" POD("a", "u-a", "") ENDPOINT("u-a", "") NETWORK
	       "spiderippools:\n" POOL(
		       "p", "10.0.0.1-10.0.0.9",
		       "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/b\", \"podUid\": \"u-b\"}}'"),
	       "all", "finding ml/a AddressTwice; ");
}

/* The next look at the pool finds those left. */
TEST(an_agent_is_asked_about_no_more_records_than_are_read)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *world = NULL;
	auto_plan struct plan plan = {0};
	struct err err = {0};

	strbuf_adds(&text, ENV POD_GONE "strays: {ml/a: [");
	for (int i = 0; i < 100; i++)
		strbuf_addf(&text, "{pool: p, address: 10.0.0.%d, uid: u-a, node: w1}, ", i);
	strbuf_adds(&text, "]}\n");
	world = yaml(strbuf_str(&text));
	assert_int_equal(endpoint_reconcile(world, "ml/a", &plan, &err), 0);
	assert_int_equal(json_array_size(json_at(json_find(plan.ops, "op", "apply"), "object",
						 "status", "current", "ips")),
			 LIMIT_NETWORKS + 1);
}

TEST(claims_on_a_pool_go_with_it)
{
	expect(strays_reconcile, "claimed: {p ml/a: true}\n", "p", "post claimed p ml/a out; ");
}

TEST(a_record_goes_when_pod_and_node_have_ended)
{
	expect(endpoint_reconcile, RECORD(", node: w1"), "ml/a", "post look ml/a in; ");
	expect(endpoint_reconcile,
	       RECORD(", node: w1") "live: {ml/a: {pods: {ml/a: null}, nodes: {w1: null}}}\n",
	       "ml/a", "post ending ml/a u-a in; post strays ml/a out; ");
	/* Its agent is asked. */
	expect(endpoint_reconcile, RECORD(", node: w1") ENV POD_GONE, "ml/a",
	       "apply " LOST "; post strays ml/a out; ");
	expect(endpoint_reconcile,
	       RECORD(", node: w1") ENV "live: {ml/a: {pods: {ml/a: {metadata: {name: a, uid: "
					"u-a}}}, nodes: {w1: {metadata: "
					"{name: w1}}}}}\n",
	       "ml/a", "post strays ml/a out; ");
	/* Spiderpool's agents write no node. */
	expect(endpoint_reconcile, RECORD("") "live: {ml/a: {pods: {ml/a: null}}}\n", "ml/a",
	       "post ending ml/a u-a in; post strays ml/a out; ");
	expect(endpoint_reconcile,
	       RECORD("") "live: {ml/a: {pods: {ml/a: {metadata: {name: a, uid: u-a}}}}}\n", "ml/a",
	       "post strays ml/a out; ");
}

/* The set keeps for its next pod what the endpoint says, and that pod has other addresses. */
TEST(a_record_that_the_next_pod_of_a_set_left_goes_with_its_node)
{
	static const struct {
		const char *uid, *want;
	} rows[] = {
		{"u-b", "post ending ml/web-0 u-a in; post strays ml/web-0 out; "},
		{"u-a", "post strays ml/web-0 out; "},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *world = str_printf(
			"strays: {ml/web-0: [{pool: p, address: 10.0.0.1, uid: u-a, node: "
			"w0}]}\n" NODE_THERE "spiderendpoints: {ml/web-0: {metadata: {name: web-0, "
			"namespace: ml}, status: {ownerControllerType: StatefulSet, "
			"ownerControllerName: web, current: {uid: %s, node: w1, ips: []}}}}\n"
			"live: {ml/web-0: {pods: {ml/web-0: {metadata: {name: web-0, uid: u-b}}}, "
			"statefulsets: {ml/web: {spec: {replicas: 1}}}, nodes: {w0: null}}}\n",
			rows[i].uid);

		expect(endpoint_reconcile, world, "ml/web-0", rows[i].want);
	}
}

/* No agent has heard of it: records were written, and the leader ended before the endpoint was. */
TEST(what_asks_about_a_lost_pod_names_its_node_and_its_addresses)
{
	json_auto_t *world = yaml(RECORD(", node: w1") ENV POD_GONE);
	auto_plan struct plan plan = {0};
	const json_t *object;

	assert_int_equal(endpoint_reconcile(world, "ml/a", &plan, NULL), 0);
	object = json_at(json_array_get(plan.ops, 0), "object");
	assert_string_equal(json_str_at(object, "metadata", "labels", ENDPOINT_NODE_LABEL), "w1");
	assert_string_equal(endpoint_uid(object), "u-a");
	assert_true(endpoint_has(object, "u-a", "p", "10.0.0.1"));
	/* A UID that is no name; a pod that ends and is there. */
	expect(endpoint_reconcile,
	       "strays: {ml/a: [{pool: p, address: 10.0.0.1, uid: 'a/../b', node: w1}]}\n" ENV
		       POD_GONE,
	       "ml/a", "post strays ml/a out; ");
	expect(endpoint_reconcile,
	       RECORD(", node: w1") ENV
	       "live: {ml/a: {pods: {ml/a: {metadata: {name: a, uid: u-a, deletionTimestamp: x}}}, "
	       "nodes: {w1: {metadata: {name: w1}}}}}\n",
	       "ml/a", "post strays ml/a out; ");
}

TEST(each_pool_of_a_lost_pod_has_an_endpoint_that_asks)
{
	json_auto_t *world =
		yaml("strays: {ml/a: [{pool: p, address: 10.0.0.1, uid: u-a, node: w1}, {pool: q, "
		     "address: 'fd00::1', uid: u-a, node: w1}]}\n" ENV POD_GONE);
	auto_plan struct plan plan = {0};

	assert_int_equal(endpoint_reconcile(world, "ml/a", &plan, NULL), 0);
	assert_int_equal(json_array_size(plan.ops), 3);
	assert_string_not_equal(json_str_at(json_array_get(plan.ops, 0), "key"),
				json_str_at(json_array_get(plan.ops, 1), "key"));
	assert_true(endpoint_has(json_at(json_array_get(plan.ops, 1), "object"), "u-a", "q",
				 "fd00::1") ||
		    endpoint_has(json_at(json_array_get(plan.ops, 0), "object"), "u-a", "q",
				 "fd00::1"));
	/* What is refused is found again. */
	for (size_t i = 0; i < 2; i++)
		assert_true(json_list_has(json_at(json_array_get(plan.ops, 2), "needs"),
					  json_str_at(json_array_get(plan.ops, i), "group")));
	assert_string_equal(json_str_at(json_array_get(plan.ops, 2), "box"), BOX_STRAYS);
}

/* Both pools are looked at before the pod is. */
TEST(what_one_pool_finds_of_a_pod_does_not_hide_what_another_did)
{
	json_auto_t *world =
		yaml("strays: {ml/a: [{pool: q, address: 10.0.1.1, uid: u-a}, {pool: p, address: "
		     "10.0.0.9, uid: u-0}]}\nspiderippools:\n" POOL(
			     "p", "10.0.0.1",
			     "allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", \"podUid\": "
			     "\"u-a\", \"node\": \"w1\"}}'"));
	auto_plan struct plan plan = {0};
	json_auto_t *want = yaml("[{pool: q, address: 10.0.1.1, uid: u-a}, {pool: p, address: "
				 "10.0.0.1, uid: u-a, node: w1}]");

	assert_int_equal(strays_reconcile(world, "p", &plan, NULL), 0);
	assert_true(json_same(json_at(json_array_get(plan.ops, 0), "value"), want));
}

/* The last read is of the pod in the records, not of one that has the endpoint's name. */
TEST(what_an_agent_says_of_a_lost_pod_gives_its_records_back)
{
#define ASKED                                                                                      \
	"env: {namespace: ow}\nspiderendpoints: {" LOST                                            \
	": {metadata: {name: lost-u-a-8602096f, namespace: ow, "                                   \
	"annotations: {orbweaver.io/down: u-a}}, status: {current: {uid: u-a, node: w1, ips: "     \
	"[{interface: '', ipv4: 10.0.0.1/32, ipv4Pool: p}]}, ownerControllerType: Pod, "           \
	"ownerControllerName: ml/a}}}\n"
#define READ(pod) "live: {" LOST ": {pods: {" LOST ": null, ml/a: " pod "}, nodes: {w1: {}}}}\n"
	json_auto_t *world = yaml(ASKED), *ended = NULL;
	auto_plan struct plan plan = {0}, end = {0}, back = {0};
	static const char ledger[] = "spiderippools:\n" POOL(
		"p", "10.0.0.1",
		"allocatedIPs: '{\"10.0.0.1\": {\"pod\": \"ml/a\", \"podUid\": \"u-a\"}}'");
	auto_free char *ending = NULL, *text = NULL;

	assert_int_equal(endpoint_reconcile(world, LOST, &plan, NULL), 0);
	assert_non_null(json_find(json_at(json_array_get(plan.ops, 0), "value"), "key", "ml/a"));
	expect(endpoint_reconcile, ASKED READ("{metadata: {name: a, uid: u-a}}"), LOST,
	       "requeue -; ");
	expect(endpoint_reconcile, ASKED READ("null"), LOST, "post ending " LOST " u-a in; ");
	ended = yaml(ASKED READ("null"));
	assert_int_equal(endpoint_reconcile(ended, LOST, &end, NULL), 0);
	text = json_text(json_at(json_array_get(end.ops, 0), "value"));
	ending = str_printf("ending: {\"" LOST " u-a\": %s}\n%s", text, ledger);
	expect(assign_reconcile, ending, "all",
	       "status p; event p RecordWithoutPod; post ending " LOST
	       " u-a out; post decided " LOST " in; ");
}

TEST(a_node_with_a_long_name_has_a_label_of_its_own)
{
	/* 70 characters that differ at the end. */
	auto_free char *a = endpoint_node_label(
		"worker-with-a-name.of-a-long.domain.in-a-data-center.somewhere.example.a");
	auto_free char *b = endpoint_node_label(
		"worker-with-a-name.of-a-long.domain.in-a-data-center.somewhere.example.b");
	auto_free char *short_name = endpoint_node_label("w1");

	assert_int_equal(strlen(a), 63);
	assert_string_not_equal(a, b);
	assert_true(str_starts(a, "worker-with-a-name.of-a-long.domain.in-a-data-"));
	assert_string_equal(short_name, "w1");
}

TEST(only_pods_that_can_need_addresses_are_kept_trimmed)
{
	json_auto_t *pod =
		yaml("metadata: {name: a, namespace: ml, uid: u, labels: {x: y}, "
		     "annotations: {k8s.v1.cni.cncf.io/networks: net, other: z}, "
		     "ownerReferences: [{kind: ReplicaSet, name: r, controller: true}]}\n"
		     "spec: {nodeName: w1, containers: [{name: c}]}\n"
		     "status: {phase: Running, podIP: 10.1.1.1, podIPs: [{ip: 10.1.1.1}]}\n");
	json_auto_t *want =
		yaml("metadata: {name: a, namespace: ml, uid: u, labels: {x: y}, "
		     "annotations: {k8s.v1.cni.cncf.io/networks: net}, "
		     "ownerReferences: [{kind: ReplicaSet, name: r, controller: true}]}\n"
		     "spec: {nodeName: w1}\nstatus: {phase: Running, podIP: 10.1.1.1}\n");
	json_auto_t *plain = yaml("metadata: {name: a}\nspec: {nodeName: w1}\n");
	json_auto_t *host = yaml("metadata: {annotations: {k8s.v1.cni.cncf.io/networks: net}}\n"
				 "spec: {nodeName: w1, hostNetwork: true}\n");
	json_auto_t *unbound =
		yaml("metadata: {annotations: {k8s.v1.cni.cncf.io/networks: net}}\n");

	assert_true(assign_wants(pod));
	assert_false(assign_wants(plain));
	assert_false(assign_wants(host));
	assert_false(assign_wants(unbound));
	assign_project(pod);
	assert_true(json_same(pod, want));
}
