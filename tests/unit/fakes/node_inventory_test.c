// SPDX-License-Identifier: Apache-2.0
/* The stand-in's promises: what it says follows from the spec, and it comes to rest. */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "tests/fakes/node_inventory.h"

#define NOW   "2026-01-31T10:00:00Z"
#define LATER "2026-01-31T11:00:00Z"

static json_t *inventory(void)
{
	const struct inventory_shape shape = {.prefix = "n", .nodes = 1, .pfs = 2, .vfs = 8};

	return inventory_generate(&shape, 0);
}

/* A NodeState that wants so many VFs of the PF at `address`. */
static json_t *state_with(const char *address, int vfs)
{
	return json_pack("{s:{s:i}, s:{s:[{s:s, s:i, s:i, s:[{s:s, s:s, s:s}]}]}}", "metadata",
			 "generation", 3, "spec", "interfaces", "pciAddress", address, "numVfs",
			 vfs, "mtu", 9000, "vfGroups", "vfRange", "0-1", "deviceType", "vfio-pci",
			 "resourceName", "fast");
}

static void carry_out(const json_t *node, json_t *state, bool done, const char *now)
{
	json_object_set_new(state, "status", inventory_status(node, state, done, now));
}

static const json_t *pf_of(const json_t *state, size_t i)
{
	return json_array_get(json_at(state, "status", "interfaces"), i);
}

static const char *ready_of(const json_t *state)
{
	return condition_status_of(json_at(state, "status", "conditions"), "Ready");
}

static void makes_the_vfs_that_the_spec_asks_for(void **unused)
{
	json_auto_t *node = inventory(), *state = state_with("0000:10:00.0", 4);
	const json_t *vfs = NULL;

	carry_out(node, state, true, NOW);
	vfs = json_at(pf_of(state, 0), "Vfs");
	assert_string_equal(json_str_at(state, "status", "syncStatus"), "Succeeded");
	assert_string_equal(ready_of(state), "True");
	assert_int_equal(json_integer_value(json_at(state, "status", "observedGeneration")), 3);
	assert_int_equal(json_integer_value(json_at(state, "status", "presentVfs")), 4);
	assert_int_equal(json_integer_value(json_at(pf_of(state, 0), "mtu")), 9000);
	assert_int_equal(json_array_size(vfs), 4);
	assert_string_equal(json_str_at(json_array_get(vfs, 1), "driver"), "vfio-pci");
	assert_string_equal(json_str_at(json_array_get(vfs, 2), "driver"), "mlx5_core");
	assert_string_equal(json_str_at(json_array_get(vfs, 3), "pciAddress"), "0000:10:01.3");
	assert_null(json_at(pf_of(state, 1), "numVfs"));
}

static void leaves_everything_as_it_was_while_it_works(void **unused)
{
	json_auto_t *node = inventory(), *state = state_with("0000:10:00.0", 4), *before = NULL;

	carry_out(node, state, true, NOW);
	before = json_deep_copy(json_at(state, "status", "interfaces"));
	json_object_set_new(json_array_get(json_at(state, "spec", "interfaces"), 0), "numVfs",
			    json_integer(2));
	carry_out(node, state, false, LATER);
	assert_string_equal(json_str_at(state, "status", "syncStatus"), "InProgress");
	assert_string_equal(ready_of(state), "False");
	assert_true(json_same(json_at(state, "status", "interfaces"), before));
	assert_int_equal(json_integer_value(json_at(state, "status", "wantedVfs")), 2);
	assert_int_equal(json_integer_value(json_at(state, "status", "presentVfs")), 4);
}

static void fails_where_the_device_cannot(void **unused)
{
	json_auto_t *node = inventory(), *many = state_with("0000:10:00.0", 9);
	json_auto_t *absent = state_with("0000:ff:00.0", 1);

	carry_out(node, many, true, NOW);
	assert_string_equal(json_str_at(many, "status", "syncStatus"), "Failed");
	assert_string_equal(json_str_at(many, "status", "lastSyncError"),
			    "ens1f0np0: numVfs is 9, the device has at most 8");
	assert_string_equal(ready_of(many), "False");
	carry_out(node, absent, true, NOW);
	assert_string_equal(json_str_at(absent, "status", "lastSyncError"),
			    "0000:ff:00.0: there is no such PF");
}

static void comes_to_rest(void **unused)
{
	static const int vfs[] = {0, 4, 8, 9};
	json_auto_t *node = inventory();

	for (size_t i = 0; i < ARRAY_LEN(vfs); i++)
		for (int done = 0; done <= 1; done++) {
			json_auto_t *state = state_with("0000:12:00.0", vfs[i]), *first = NULL;

			carry_out(node, state, done, NOW);
			first = json_deep_copy(state);
			carry_out(node, state, done, LATER);
			assert_true(json_same(first, state));
		}
}

static void reads_shapes(void **unused)
{
	struct inventory_shape shape;
	struct err err = {0};
	char good[] = "vfs=16,nodes=1000,prefix=w", bad[] = "nodes=0", odd[] = "cpus=2";

	assert_int_equal(inventory_shape_parse(good, &shape, &err), 0);
	assert_int_equal(shape.nodes, 1000);
	assert_int_equal(shape.pfs, 2);
	assert_int_equal(shape.vfs, 16);
	assert_string_equal(shape.prefix, "w");
	assert_int_equal(inventory_shape_parse(bad, &shape, &err), -1);
	assert_string_equal(err.text, "nodes=\"0\": must be a number from 1 to 20000");
	assert_int_equal(inventory_shape_parse(odd, &shape, &err), -1);
	assert_int_equal(shape.nodes, 1000);
}

static void reads_the_demo_nodes(void **unused)
{
	struct err err = {0};
	json_auto_t *node = inventory_read("tests/fakes/nodes/worker-1.json", &err);

	assert_non_null(node);
	assert_null(inventory_read("tests/fakes/nodes/no-such.json", &err));
	assert_non_null(strstr(err.text, "no-such.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_the_vfs_that_the_spec_asks_for),
		cmocka_unit_test(leaves_everything_as_it_was_while_it_works),
		cmocka_unit_test(fails_where_the_device_cannot),
		cmocka_unit_test(comes_to_rest),
		cmocka_unit_test(reads_shapes),
		cmocka_unit_test(reads_the_demo_nodes),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
