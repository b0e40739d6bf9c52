/*
 * Golden cases of all reconcilers: tests/golden/<kind id>/<case>/in.json → want.json.
 *
 * in.json is {"key": …, "world": {…}}; want.json is the array of operations, or {"error": {"class": …, "reason": …}}. For each
 * case this also checks the promises of reconcilers/reconcile.h: the world stays as it is, the same world gives the same
 * bytes, and carrying out plans comes to rest. UPDATE in the environment writes want.json anew, for review:
 * UPDATE=spiderippools those of one kind, UPDATE=spiderippools/exclude one case, UPDATE=1 all.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "reconcilers/coordinator.h"
#include "reconcilers/inject_check.h"
#include "reconcilers/ip_pool.h"
#include "reconcilers/multus_config.h"
#include "reconcilers/node_state.h"
#include "reconcilers/policy_status.h"
#include "reconcilers/pool_config.h"
#include "reconcilers/reserved_ip.h"
#include "reconcilers/sriov_network.h"
#include "tests/fakes/cluster.h"

#define GOLDEN_DIR    "tests/golden"
#define CASE_SIZE_MAX (4 << 20)
#define CASES_MAX     1024

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

static void write_want(const char *dir, const json_t *got)
{
	auto_free char *path = str_printf("%s/want.json", dir);
	auto_free char *json = pretty(got);
	auto_free char *text = str_printf("%s\n", json);
	struct err err = {0};

	assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0644, &err), 0);
}

/* name: "<kind>/<case>" */
static bool is_to_update(const char *name)
{
	const char *which = getenv("UPDATE");
	size_t len = which ? strlen(which) : 0;

	if (len == 0 || str_eq(which, "1"))
		return len > 0;
	return str_starts(name, which) && (name[len] == '/' || !name[len]);
}

static void compare_with_want(const char *dir, const json_t *got)
{
	json_auto_t *want = load(dir, "want.json");
	auto_free char *got_text = pretty(got);
	auto_free char *want_text = pretty(want);

	assert_non_null(want);
	assert_string_equal(got_text, want_text);
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
		if (count < CASES_MAX) {
			char *path = str_printf("%s/%s", dir, entries[i]->d_name);

			tests[count++] = (struct CMUnitTest){
				.name = path, .test_func = run_case, .initial_state = path};
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
		print_error("no cases in " GOLDEN_DIR ": run from the top of the repository\n");
	failed = count ? _cmocka_run_group_tests("golden", tests, count, NULL, NULL) : 1;
	for (size_t i = 0; i < count; i++)
		free((char *)tests[i].name);
	mem_free(tests);
	return failed;
}
