// SPDX-License-Identifier: Apache-2.0
/* The life of addresses between decisions: which message wakes which keys, and what passes take. */
#include "tests/unit/operator/mirrored.h"

#include "operator/controllers/ipam_book.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/books.h"
#include "reconcilers/ipam/allocate/lifecycle.h"
#include "reconcilers/ipam/ip_pool.h"

static void set(struct mirrored_test *t, enum ipam_entry entry, const char *key)
{
	json_auto_t *value = json_true();

	ipam_book_set(&t->sources, entry, key, value);
}

TEST_WITH(each_message_wakes_the_keys_that_see_it, mirrored_begin, mirrored_end)
{
	static const struct {
		const char *box, *key, *set, *removed;
	} cases[] = {
		{BOX_WAITING, "ml/a", "addresses all;", ""},
		{BOX_CLAIMANTS, "ml/a", "", ""},
		{BOX_LIVE, "ml/a", "endpoint ml/a;", ""},
		{BOX_ENDING, "ml/a", "addresses all;", ""},
		{BOX_ENDING, "ml/a u-1", "addresses all;", ""},
		{BOX_DECIDED, "ml/a", "endpoint ml/a;", ""},
		{BOX_STRAYS, "ml/a", "endpoint ml/a;", ""},
		{BOX_CLAIMED, "p ml/a", "", ""},
		{BOX_LEARNING, "p", "", ""},
		{BOX_LEARNED, "p", "addresses all;ip-pool p;", ""},
		{BOX_SHORT_POOL, "p", "ip-pool p;", "ip-pool p;"},
		{BOX_UNWRITTEN, "p", "ip-pool p;", "ip-pool p;"},
		{BOX_PACED, "p", "", ""},
		{BOX_PASSED, ADDRESSES_KEY, "", ""},
	};
	struct mirrored_test *t = *state;
	json_auto_t *value = json_object();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ipam_book_posted(&t->sources, cases[i].box, cases[i].key, value, UINT64_MAX);
		mirrored_wakes(t, cases[i].set);
		ipam_book_posted(&t->sources, cases[i].box, cases[i].key, NULL, UINT64_MAX);
		mirrored_wakes(t, cases[i].removed);
	}
}

/* A webhook that is away may take its whole time limit to be so, and all others wait for it. */
TEST_WITH(a_ledger_on_which_the_server_fails_is_tried_less_and_less, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	const struct err refused = {.class = ERR_INVALID, .reason = "Invalid"},
			 failed = {.class = ERR_TRANSIENT, .reason = "InternalError"},
			 busy = {.class = ERR_TRANSIENT, .reason = "TooManyRequests"},
			 lost = {.class = ERR_TRANSIENT, .reason = "ConnectionLost"};
	const struct {
		const struct err *err;
		int64_t again_ms;
	} writes[] = {{&failed, 30000},  {&failed, 60000},  {&failed, 120000}, {&failed, 240000},
		      {&failed, 480000}, {&failed, 480000}, {&refused, 30000}, {NULL, 0},
		      {&failed, 30000},  {&failed, 60000},  {&busy, 30000},    {&lost, 30000},
		      {&lost, 30000},    {&failed, 60000}};

	for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
		controllers[CONTROLLER_ADDRESSES].group_ended(&t->sources, KIND_IP_POOL, "p",
							      writes[i].err);
		assert_int_equal(json_integer_value(json_at(
					 ipam_book_get(t->sources.addresses, IPAM_UNWRITTEN, "p"),
					 "againMs")),
				 writes[i].again_ms);
	}
}

TEST_WITH(a_term_of_leadership_begins_without_the_pauses_of_an_earlier_one, mirrored_begin,
	  mirrored_end)
{
	struct mirrored_test *t = *state;
	const struct err failed = {.class = ERR_TRANSIENT, .reason = "InternalError"};

	ipam_book_lead(&t->sources);
	mirrored_wakes(t, "");
	for (size_t i = 0; i < 4; i++)
		controllers[CONTROLLER_ADDRESSES].group_ended(&t->sources, KIND_IP_POOL,
							      i % 2 ? "p" : "q", &failed);
	free(mirrored_woken(t));
	ipam_book_lead(&t->sources);
	mirrored_wakes(t, "addresses all;ip-pool p;ip-pool q;");
	assert_null(ipam_book_all(t->sources.addresses, IPAM_UNWRITTEN));
}

/* An agent asks while the pass that has served its pod writes: the next pass looks at the pod. */
TEST_WITH(a_plan_takes_out_what_it_has_seen_and_nothing_later, mirrored_begin, mirrored_end)
{
	static const struct {
		const char *box;
		enum ipam_entry entry;
	} kinds[] = {{BOX_WAITING, IPAM_WAITING},
		     {BOX_CLAIMANTS, IPAM_CLAIMANT},
		     {BOX_ENDING, IPAM_ENDING},
		     {BOX_DECIDED, IPAM_DECIDED},
		     {BOX_STRAYS, IPAM_STRAYS}};
	struct mirrored_test *t = *state;
	const struct ipam_book *book = t->sources.addresses;
	json_auto_t *value = json_object();

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		uint64_t seen;

		ipam_book_posted(&t->sources, kinds[i].box, "ml/a", value, 0);
		seen = ipam_book_revision(book);
		ipam_book_posted(&t->sources, kinds[i].box, "ml/a", value, 0);
		ipam_book_posted(&t->sources, kinds[i].box, "ml/a", NULL, seen);
		assert_ptr_equal(ipam_book_get(book, kinds[i].entry, "ml/a"), value);
		ipam_book_posted(&t->sources, kinds[i].box, "ml/a", NULL, seen + 1);
		assert_null(ipam_book_get(book, kinds[i].entry, "ml/a"));
	}
}

#define BOUND(name_, more_)                                                                        \
	"{metadata: {name: " name_ ", namespace: ml, uid: u-" name_                                \
	", annotations: {k8s.v1.cni.cncf.io/networks: net}" more_ "}, spec: {nodeName: w1}}"

static void post(struct mirrored_test *t, const char *box, const char *key, const char *value)
{
	json_auto_t *posted = mirrored_yaml(value);

	ipam_book_posted(&t->sources, box, key, posted, UINT64_MAX);
}

/* Another leader may have served these pods, ended them, and given their names to others. */
TEST_WITH(decisions_of_an_earlier_term_are_made_again, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	const struct ipam_book *book = t->sources.addresses;

	mirrored_put(t, KIND_BOUND_POD, BOUND("a", ""));
	mirrored_put(t, KIND_BOUND_POD,
		     BOUND("launcher", ", ownerReferences: [{apiVersion: kubevirt.io/v1, kind: "
				       "VirtualMachineInstance, name: vm, controller: true}]"));
	ipam_book_lead(&t->sources);
	ipam_book_posted(&t->sources, BOX_WAITING, "ml/a", NULL, UINT64_MAX);
	ipam_book_posted(&t->sources, BOX_WAITING, "ml/launcher", NULL, UINT64_MAX);
	/* Read in this term: by the next one a pod of its name may have asked in its place. */
	post(t, BOX_WAITING, "ml/f", "{metadata: {name: f, namespace: ml, uid: u-f}}");
	post(t, BOX_DECIDED, "ml/a",
	     "{endpoint: {status: {current: {uid: u-a, ips: [{ipv4: 10.0.0.2/24, ipv4Pool: "
	     "q}]}}}}");
	post(t, BOX_DECIDED, "ml/vm", "{endpoint: {status: {current: {uid: u-launcher}}}}");
	post(t, BOX_DECIDED, "ml/asks", "{endpoint: {status: {current: {uid: u-asks}}}}");
	post(t, BOX_DECIDED, "ml/b", "{unwritten: {status: {current: {uid: u-b}}}}");
	post(t, BOX_LIVE, "ml/c", "{pods: {ml/c: null}}");
	post(t, BOX_ENDING, "ml/d",
	     "{uid: u-d, status: {current: {ips: [{ipv6: fd00::2/64, ipv6Pool: r}]}}}");
	post(t, BOX_ENDING, "ml/e u-e", "{uid: u-e, records: [{pool: p, address: 10.0.0.1}]}");
	free(mirrored_woken(t));

	ipam_book_lead(&t->sources);
	mirrored_wakes(t,
		       "addresses all;endpoint ml/a;endpoint ml/asks;endpoint ml/c;endpoint ml/d;"
		       "endpoint ml/e;endpoint ml/f;endpoint ml/vm;strays p;strays q;strays r;");
	assert_int_equal(json_object_size(ipam_book_all(book, IPAM_WAITING)), 2);
	assert_non_null(ipam_book_get(book, IPAM_WAITING, "ml/a"));
	assert_non_null(ipam_book_get(book, IPAM_WAITING, "ml/launcher"));
	/* It is verified before anything comes of it. */
	assert_int_equal(json_object_size(ipam_book_all(book, IPAM_DECIDED)), 1);
	assert_non_null(ipam_book_get(book, IPAM_DECIDED, "ml/b"));
	assert_null(ipam_book_all(book, IPAM_LIVE));
	assert_null(ipam_book_all(book, IPAM_ENDING));
}

/* What came while it was carried out. */
TEST_WITH(an_endpoint_that_is_written_is_looked_at_when_something_waits_for_it, mirrored_begin,
	  mirrored_end)
{
	static const enum ipam_entry waits[] = {IPAM_LIVE, IPAM_STRAYS};
	struct mirrored_test *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		set(t, IPAM_DECIDED, "ml/a");
		set(t, waits[i], "ml/a");
		free(mirrored_woken(t));
		ipam_book_set(&t->sources, IPAM_DECIDED, "ml/a", NULL);
		mirrored_wakes(t, "endpoint ml/a;");
		/* What was read while the endpoint could not be written is old. */
		assert_null(ipam_book_get(t->sources.addresses, IPAM_LIVE, "ml/a"));
		ipam_book_set(&t->sources, waits[i], "ml/a", NULL);
	}
}

TEST_WITH(a_pool_sees_the_claims_on_it_and_no_others, mirrored_begin, mirrored_end)
{
	static const char *const claims[] = {"p ml/a", "p ml/b", "pq ml/a"};
	struct mirrored_test *t = *state;
	json_auto_t *world = json_object(), *after = json_object();

	for (size_t i = 0; i < ARRAY_LEN(claims); i++)
		set(t, IPAM_CLAIMED, claims[i]);
	ipam_book_add_claims(t->sources.addresses, world, "p");
	assert_int_equal(json_object_size(json_at(world, BOX_CLAIMED)), 2);
	assert_non_null(json_at(world, BOX_CLAIMED, "p ml/b"));
	for (size_t i = 0; i < ARRAY_LEN(claims); i++)
		ipam_book_set(&t->sources, IPAM_CLAIMED, claims[i], NULL);
	ipam_book_add_claims(t->sources.addresses, after, "p");
	assert_int_equal(json_object_size(after), 0);
}

TEST_WITH(the_first_pass_wakes_the_pools_that_say_that_pods_wait, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;

	mirrored_put(t, KIND_IP_POOL,
		     "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24}, status: "
		     "{waitingPodCount: 2}}");
	mirrored_put(t, KIND_IP_POOL, "{metadata: {name: q}, spec: {subnet: 10.1.0.0/24}}");
	free(mirrored_woken(t));
	set(t, IPAM_PASSED, ADDRESSES_KEY);
	mirrored_wakes(t, "ip-pool p;");
}

static json_t *gathered(const struct mirrored_test *t, enum controller_id id, const char *key)
{
	json_t *world = json_object();

	controllers[id].gather(&t->sources, &controllers[id], key, world);
	return world;
}

/* Whoever leads next has the last good ConfigMap, too: it is kept as it is mirrored. */
TEST_WITH(the_last_settings_that_could_be_read_stay, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	static const struct {
		const char *conf, *want, *fault;
	} changes[] = {
		{"enableIPv6: true", "enableIPv6: true", ""},
		{"enableIPv6: yep", "enableIPv6: true",
		 "ConfigMap spiderpool-conf: data[conf.yml]: enableIPv6: \"yep\" is a string, "
		 "must be true or false"},
		{"enableIPv6: false", "enableIPv6: false", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		auto_free char *text = str_printf("{metadata: {name: spiderpool-conf, namespace: "
						  "%s}, data: {conf.yml: '%s'}}",
						  t->sources.config_ns, changes[i].conf);
		auto_free char *key = str_printf("%s/spiderpool-conf", t->sources.config_ns);
		json_auto_t *world = NULL;

		mirrored_put(t, MIRROR_SPIDERPOOL_CONF, text);
		mirrored_wakes(t, "addresses all;webhook-setup orbweaver-validating;");
		world = gathered(t, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
		assert_string_equal(
			json_str_at(world, MIRROR_SPIDERPOOL_CONF, key, "data", "conf.yml"),
			changes[i].want);
		assert_string_equal(json_str_at(world, "env", "configFault"), changes[i].fault);
	}
}

TEST_WITH(what_was_read_is_good_for_one_decision, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *first = NULL, *again = NULL, *world = json_object(), *next = json_object();

	set(t, IPAM_LIVE, "ml/a");
	first = gathered(t, CONTROLLER_ENDPOINT, "ml/a");
	again = gathered(t, CONTROLLER_ENDPOINT, "ml/a");
	assert_true(json_same(first, again));
	controllers_gather(&t->sources, CONTROLLER_ENDPOINT, "ml/a", world);
	assert_non_null(json_at(world, BOX_LIVE, "ml/a"));
	controllers_gather(&t->sources, CONTROLLER_ENDPOINT, "ml/a", next);
	assert_null(json_at(next, BOX_LIVE, "ml/a"));
}

/* Pods that were put off stand before those of the pass. */
TEST_WITH(pods_of_a_pass_go_behind_the_others, mirrored_begin, mirrored_end)
{
	static const char *const pods[] = {"ml/a", "ml/b", "ml/c", "ml/d"};
	static const char *const want[] = {"ml/d", "ml/b", "ml/a", "ml/c"};
	struct mirrored_test *t = *state;
	json_auto_t *taken = json_pack("{s:b, s:b}", "ml/a", 1, "ml/c", 1);
	const char *key;
	json_t *value;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(pods); i++)
		ipam_book_wait(&t->sources, pods[i]);
	ipam_book_take_pass(t->sources.addresses, taken, 3);
	json_each (ipam_book_all(t->sources.addresses, IPAM_WAITING), key, value)
		assert_string_equal(key, want[n++]);
	assert_int_equal(n, ARRAY_LEN(want));
}

static int64_t no_time(void)
{
	return 5;
}

TEST_WITH(snapshots_of_passes_change_nothing, mirrored_begin, mirrored_end)
{
	struct mirrored_test *t = *state;
	json_auto_t *first = NULL, *again = NULL;

	t->sources.now_ms = no_time;
	for (size_t i = 0; i < ASSIGN_MAX + 5; i++) {
		auto_free char *key = str_printf("ml/p-%zu", i);

		ipam_book_wait(&t->sources, key);
	}
	set(t, IPAM_LEARNING, "p");
	first = gathered(t, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
	again = gathered(t, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
	assert_true(json_same(first, again));
	assert_true(json_is_true(json_at(first, "env", "isPart")));
}
