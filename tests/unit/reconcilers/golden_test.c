// SPDX-License-Identifier: Apache-2.0
/*
 * Golden cases of all reconcilers: tests/golden/<kind id>/<case>/in.json → want.json.
 *
 * in.json is {"key": …, "world": {…}}; want.json is the array of operations, or {"error": {"class":
 * …, "reason": …}}. For each case this also checks the promises of reconcilers/core/reconcile.h:
 * the world stays as it is, the same world gives the same bytes, and carrying out plans comes to
 * rest. And that of docs/conditions.md: which reason stands on which condition.
 *
 * GOLDEN=spiderippools in the environment runs the cases of one kind, GOLDEN=spiderippools/exclude
 * one case. UPDATE writes want.json anew for these, for review, and says which reasons are in it;
 * UPDATE=1 for all.
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "reconcilers/admission/inject_check.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/reserved_ip.h"
#include "reconcilers/spider/coordinator.h"
#include "reconcilers/spider/multus_config.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_status.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/sriov_network.h"
#include "tests/fakes/cluster.h"
#include "tests/support/reasons.h"

#define GOLDEN_DIR    "tests/golden"
#define CASE_SIZE_MAX (4 << 20)
#define CASES_MAX     1024

/* Bytes shown on either side of a difference; cmocka cuts messages at 1024. */
#define AROUND 200

#define HOW_TO_WRITE                                                                               \
	"UPDATE=%s build/asan/tests/unit/reconcilers/golden_test writes it anew; read what it "    \
	"wrote"

/* One line per kind that has cases. */
static const struct {
	const char *kind;
	reconcile_fn *reconcile;
} kinds[] = {
	{KIND_MULTUS_CONFIG, multus_config_reconcile},
	{KIND_IP_POOL, ip_pool_reconcile},
	{KIND_NODE_STATE, node_state_reconcile},
	{KIND_POLICY, policy_status_reconcile},
	{KIND_POOL_CONFIG, pool_config_reconcile},
	{KIND_SRIOV_NETWORK, sriov_network_reconcile},
	{KIND_SRIOV_IB_NETWORK, sriov_ib_network_reconcile},
	{KIND_OVS_NETWORK, ovs_network_reconcile},
	{KIND_RESERVED_IP, reserved_ip_reconcile},
	{KIND_COORDINATOR, coordinator_reconcile},
	{KIND_POD, inject_check_pod},
	{"injected", inject_check_config}, /* the condition of that name on SpiderMultusConfigs */
};

static reconcile_fn *reconciler_of(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].kind, kind))
			return kinds[i].reconcile;
	return NULL;
}

static json_t *load(const char *dir, const char *name)
{
	auto_free char *path = str_printf("%s/%s", dir, name);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	json_t *value = NULL;

	if (fs_read(AT_FDCWD, path, CASE_SIZE_MAX, &text, &err) == 0)
		value = json_parse(strbuf_str(&text), text.len, &err);
	if (!value)
		print_error("%s: %s\n", path, err.text);
	return value;
}

static json_t *result_of(reconcile_fn *reconcile, const json_t *world, const char *key)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};

	if (reconcile(world, key, &plan, &err)) {
		assert_true(plan_is_empty(&plan));
		return json_pack("{s:{s:s, s:s}}", "error", "class", err_class_name(err.class),
				 "reason", err.reason);
	}
	return plan.ops ? json_deep_copy(plan.ops) : json_array();
}

static char *pretty(const json_t *value)
{
	return json_dumps(value, JSON_INDENT(2) | JSON_SORT_KEYS);
}

/* The words of conditions, events and errors, once each. Returns new. */
static json_t *reasons_in(const json_t *value)
{
	json_t *found = json_object(), *inner;
	const char *name;
	size_t i;

	if (json_is_string(json_object_get(value, "reason")))
		json_put_bool(found, json_str_at(value, "reason"), true);
	json_each (value, name, inner) {
		json_auto_t *below = reasons_in(inner);

		json_object_update(found, below);
	}
	json_array_foreach (value, i, inner) {
		json_auto_t *below = reasons_in(inner);

		json_object_update(found, below);
	}
	return found;
}

/* A case that does not bring about what it is for would pass for ever. */
static void say_reasons(const char *path, const json_t *got)
{
	json_auto_t *reasons = reasons_in(got);
	const char *reason;
	json_t *value;

	print_message("wrote %s: %s", path,
		      json_object_size(reasons) ? "its reasons:" : "it has no reason");
	json_each (reasons, reason, value)
		print_message(" %s", reason);
	print_message("\n");
}

static void write_want(const char *dir, const json_t *got)
{
	auto_free char *path = str_printf("%s/want.json", dir);
	auto_free char *json = pretty(got);
	auto_free char *text = str_printf("%s\n", json);
	struct err err = {0};

	assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0644, &err), 0);
	say_reasons(path, got);
}

/*
 * Does a variable of the environment, if it is set, name the case or its kind? name:
 * "<kind>/<case>".
 */
static bool names(const char *variable, const char *name)
{
	const char *which = getenv(variable);
	size_t len = which ? strlen(which) : 0;

	return which && str_starts(name, which) && (name[len] == '/' || !name[len]);
}

static bool is_to_update(const char *name)
{
	const char *which = getenv("UPDATE");

	return which && (str_eq(which, "1") || names("UPDATE", name));
}

static bool is_to_run(const char *name)
{
	return getenv("UPDATE") ? is_to_update(name) : !getenv("GOLDEN") || names("GOLDEN", name);
}

/* Of the line that `at` is in: what is around it. */
static void print_around(const char *what, const char *text, size_t at)
{
	size_t start = at;

	while (start > 0 && at - start < AROUND && text[start - 1] != '\n')
		start--;
	print_error("%s\n%.*s\n", what,
		    (int)(at - start + str_clip(text + at, strcspn(text + at, "\n"), AROUND)),
		    text + start);
}

/* Where they differ first: in two whole documents nobody finds it. */
static void fail_difference(const char *dir, const char *got, const char *want)
{
	size_t same = 0;

	while (got[same] && got[same] == want[same])
		same++;
	print_around("the plan says", got, same);
	print_around("where want.json says", want, same);
	fail_msg(HOW_TO_WRITE, dir + sizeof(GOLDEN_DIR));
}

static void compare_with_want(const char *dir, const json_t *got)
{
	auto_free char *path = str_printf("%s/want.json", dir);
	auto_free char *got_text = pretty(got);
	auto_free char *want_text = NULL;
	json_auto_t *want = NULL;

	if (access(path, F_OK) < 0)
		fail_msg("no %s. " HOW_TO_WRITE, path, dir + sizeof(GOLDEN_DIR));
	want = load(dir, "want.json");
	assert_non_null(want);
	want_text = pretty(want);
	if (!str_eq(got_text, want_text))
		fail_difference(dir, got_text, want_text);
}

/* Of the objects that the plan writes. */
static void check_conditions(const json_t *plan)
{
	const json_t *op;
	size_t i;

	json_array_foreach ((json_t *)plan, i, op)
		conditions_keep_the_rule(json_at(op, "status", "conditions"));
}

static void run_case(void **state)
{
	const char *dir = *state;
	auto_free char *kind =
		str_ndup(dir + sizeof(GOLDEN_DIR), strcspn(dir + sizeof(GOLDEN_DIR), "/"));
	reconcile_fn *reconcile = reconciler_of(kind);
	json_auto_t *in = load(dir, "in.json");
	json_auto_t *before = json_deep_copy(in);
	json_auto_t *got = NULL, *again = NULL;
	const char *key = json_str_at(in, "key");
	json_t *world = json_at(in, "world");
	auto_free char *first = NULL, *second = NULL;

	assert_non_null(reconcile);
	assert_non_null(key);
	assert_non_null(world);

	got = result_of(reconcile, world, key);
	again = result_of(reconcile, world, key);
	first = pretty(got);
	second = pretty(again);
	assert_string_equal(first, second);
	assert_true(json_same(in, before));

	if (is_to_update(dir + sizeof(GOLDEN_DIR)))
		write_want(dir, got);
	else
		compare_with_want(dir, got);
	check_conditions(got);
	if (json_is_array(got))
		assert_true(cluster_settle(world, key, reconcile));
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* All cases of one kind, sorted by name. */
static size_t add_cases(const char *kind, struct CMUnitTest *tests, size_t count)
{
	auto_free char *dir = str_printf("%s/%s", GOLDEN_DIR, kind);
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_visible, alphasort);

	for (int i = 0; i < n; i++) {
		auto_free char *path = str_printf("%s/%s", dir, entries[i]->d_name);

		if (count < CASES_MAX && is_to_run(path + sizeof(GOLDEN_DIR))) {
			tests[count++] = (struct CMUnitTest){
				.name = path, .test_func = run_case, .initial_state = path};
			(void)take_ptr(path);
		}
		free(entries[i]);
	}
	free(entries);
	return count;
}

int main(void)
{
	struct CMUnitTest *tests = mem_calloc(CASES_MAX, sizeof(*tests));
	struct dirent **entries = NULL;
	size_t count = 0;
	int n, failed;

	json_init();
	n = scandir(GOLDEN_DIR, &entries, is_visible, alphasort);
	for (int i = 0; i < n; i++) {
		count = add_cases(entries[i]->d_name, tests, count);
		free(entries[i]);
	}
	free(entries);
	if (count == 0)
		print_error("no such cases in " GOLDEN_DIR ": run from the top of the clone\n");
	failed = count ? _cmocka_run_group_tests("golden", tests, count, NULL, NULL) : 1;
	for (size_t i = 0; i < count; i++)
		free((char *)tests[i].name);
	mem_free(tests);
	/*
	 * What failed was left before it freed anything: told as leaks, that would bury the reason.
	 */
	if (failed) {
		(void)fflush(NULL);
		_exit(1);
	}
	return 0;
}
