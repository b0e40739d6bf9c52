/*
 * NICs of several vendors, from observing to the last step: each plan is complete, and comes to
 * rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host/execute.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/plan/planner.h"
#include "tests/fakes/vendor_nics.h"

#define VFS        4
#define ROUNDS_MAX 3

static const char spec_text[] =
	"{\"interfaces\": [{\"pciAddress\": \"" TREE_MLX "\", \"numVfs\": 4, \"mtu\": 9000, "
	"\"vfGroups\": [{\"vfRange\": \"0-3\", \"resourceName\": \"fast\", \"deviceType\": "
	"\"netdevice\", \"isRdma\": true, \"mtu\": 9000}]}]}";

static json_t *plan_of(struct host *host, const json_t *found)
{
	json_auto_t *observed = host_observe(host, HOST_OBSERVE_HOLDERS, NULL);
	json_auto_t *spec = json_parse(spec_text, strlen(spec_text), NULL);
	json_auto_t *nobody = json_object();
	struct err err = {0};
	json_t *plan = planner_plan(
		&(struct planner_input){
			.spec = spec, .observed = observed, .found = found, .held = nobody},
		&err);

	if (!plan)
		fail_msg("%s: %s", err.reason, err.text);
	return plan;
}

static struct host_tree *tree_with(const struct vendor_nic *nic)
{
	static const char *const modules[] = {"mlx5_ib", "ib_uverbs", "rdma_ucm"};
	struct host_tree *tree = host_tree_new();
	auto_free char *driver = str_printf("sys/bus/pci/drivers/%s/x", nic->pf.vf_driver);
	json_auto_t *nobody = json_object();

	host_tree_add_pf(tree, &nic->pf);
	host_tree_file(tree, driver, "");
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		auto_free char *path = str_printf("sys/module/%s/x", modules[i]);

		host_tree_file(tree, path, "");
	}
	host_set_held(host_tree_host(tree), nobody);
	return tree;
}

/* Where a step comes first in a plan. */
static size_t place_of(const json_t *plan, const char *name)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(plan, "steps"), i, entry)
		if (str_eq(json_str_at(entry, "step", "step"), name))
			return i;
	fail_msg("no step %s", name);
	return 0;
}

static void execute(const char *name, struct host *host, const json_t *step)
{
	json_auto_t *result = NULL;
	struct err err = {0};

	if (host_execute(host, step, &result, &err) < 0)
		fail_msg("%s: %s: %s", name, err.reason, err.text);
}

/* "1 set-num-vfs count=4 pf=0000:3b:00.0 (impact none): numVfs is 0, wanted 4" */
static void print_step(int round, const json_t *entry, struct strbuf *ret)
{
	json_auto_t *step = json_copy(json_at(entry, "step"));
	auto_free char *fields = NULL;

	strbuf_addf(ret, "%d %s ", round + 1, json_str_at(step, "step"));
	(void)json_object_del(step, "step");
	fields = json_text(step);
	strbuf_addf(ret, "%s impact %s: %s\n", fields, json_str_at(entry, "impact"),
		    json_str_at(entry, "why"));
}

/* The plan as people read it, one file for each NIC. UPDATE=1 writes it. */
static void compare(const char *name, const struct strbuf *plan)
{
	auto_free char *path = str_printf("tests/golden-plans/%s.txt", name);
	auto_strbuf struct strbuf want = {0};
	struct err err = {0};

	if (getenv("UPDATE")) {
		assert_int_equal(fs_write_atomic(AT_FDCWD, path, plan->data, plan->len, 0644, &err),
				 0);
		return;
	}
	if (fs_read(AT_FDCWD, path, 1 << 20, &want, &err) < 0)
		fail_msg("%s", err.text);
	if (!str_eq(strbuf_str(&want), strbuf_str(plan)))
		fail_msg("the plan for %s is not %s (UPDATE=1 %s writes it):\n%s", name, path,
			 "build/asan/tests/unit/nodeagent/plan/vendor_test", strbuf_str(plan));
}

static void steps_of_every_vendor_come_to_rest(void **state)
{
	for (size_t n = 0; n < ARRAY_LEN(vendor_nics); n++) {
		struct host_tree *tree = tree_with(&vendor_nics[n]);
		struct host *host = host_tree_host(tree);
		json_auto_t *observed = NULL, *plan = plan_of(host, NULL);
		json_auto_t *found = json_incref(json_at(plan, "found"));
		auto_strbuf struct strbuf text = {0};
		json_t *entry, *vfs;
		size_t i;

		/* What VFs are like is known once they are there: a second plan. */
		for (int round = 0; round < ROUNDS_MAX; round++) {
			json_array_foreach (json_at(plan, "steps"), i, entry) {
				print_step(round, entry, &text);
				execute(vendor_nics[n].name, host, json_at(entry, "step"));
			}
			json_decref(plan);
			plan = plan_of(host, found);
		}
		if (json_array_size(json_at(plan, "steps")) ||
		    json_array_size(json_at(plan, "blocked")) ||
		    json_array_size(json_at(plan, "problems")))
			fail_msg("%s: %s", vendor_nics[n].name, json_text(plan));
		observed = host_observe(host, HOST_OBSERVE_HOLDERS, NULL);
		vfs = json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs");
		assert_int_equal(json_array_size(vfs), VFS);
		json_array_foreach (vfs, i, entry) {
			assert_string_equal(json_str_at(entry, "driver"),
					    vendor_nics[n].pf.vf_driver);
			assert_int_equal(json_integer_value(json_at(entry, "mtu")), 9000);
			assert_int_equal(json_array_size(json_at(entry, "host", "rdma")), 1);
		}
		compare(vendor_nics[n].name, &text);
		host_tree_free(tree);
	}
}

/* bnxt_sriov_configure() makes none on a PF that is down, and reports success. */
static void mtu_of_the_pf_comes_before_its_vfs(void **state)
{
	for (size_t n = 0; n < ARRAY_LEN(vendor_nics); n++) {
		struct host_tree *tree = tree_with(&vendor_nics[n]);
		json_auto_t *plan = plan_of(host_tree_host(tree), NULL);

		assert_true(place_of(plan, "set-mtu") < place_of(plan, "set-num-vfs"));
		host_tree_free(tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_of_every_vendor_come_to_rest),
		cmocka_unit_test(mtu_of_the_pf_comes_before_its_vfs),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
