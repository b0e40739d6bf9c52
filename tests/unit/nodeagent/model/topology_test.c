// SPDX-License-Identifier: Apache-2.0
/*
 * Distances between PCI functions, and machines that people have (tests/golden-topologies): from
 * files in sysfs to what the status says of rails and GPUs. UPDATE=1 writes the texts anew.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/model/rails.h"
#include "nodeagent/model/topology.h"
#include "tests/support/golden_machine.h"
#include "tests/support/yaml.h"

TEST(says_how_far_functions_are_apart)
{
	static const struct {
		const char *a, *b, *want;
	} cases[] = {
		/* Two functions of a device; two ports of a switch; a switch below a switch. */
		{"{path: 'pci0000:15/0000:15:01.0'}", "{path: 'pci0000:15/0000:15:01.0'}", "PIX"},
		{"{path: 'pci0000:15/r/u/d1'}", "{path: 'pci0000:15/r/u/d2'}", "PIX"},
		{"{path: 'pci0000:15/r/u/d1/v/e1'}", "{path: 'pci0000:15/r/u/d2'}", "PXB"},
		{"{path: 'pci0000:15/r/u/d1'}", "{path: 'pci0000:15/s/u/d2'}", "PHB"},
		/* Text that begins alike is not the same bridge. */
		{"{path: 'pci0000:15/r'}", "{path: 'pci0000:15/r2'}", "PHB"},
		{"{path: pci0000:15}", "{path: pci0000:15}", "PHB"},
		{"{path: pci0000:15/r, numaNode: 0}", "{path: pci0000:16/r, numaNode: 0}", "NODE"},
		{"{path: pci0000:15/r, numaNode: 0}", "{path: pci0000:16/r, numaNode: 1}", "SYS"},
		{"{path: pci0000:15/r, numaNode: 0}", "{path: pci0000:16/r}", "?"},
		{"{path: pci0000:15/r}", "{path: pci0000:15/s}", "PHB"},
		{"{numaNode: 0}", "{path: pci0000:16/r, numaNode: 0}", "?"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *a = yaml(cases[i].a), *b = yaml(cases[i].b);

		assert_string_equal(topology_distance_name(topology_between(a, b)), cases[i].want);
		assert_string_equal(topology_distance_name(topology_between(b, a)), cases[i].want);
	}
}

TEST(lists_indices_of_gpus_in_ranges)
{
	json_auto_t *observed = yaml(
		"{gpus: [{path: a/1, numaNode: 0}, {path: b/1, numaNode: 1}, {path: c/1, numaNode: "
		"0}, {path: d/1, numaNode: 0}, {path: e/1, numaNode: 0}, {path: f/1, numaNode: 1}, "
		"{path: g/1}], interfaces: [{pciAddress: p, name: eth, rail: 1, host: {path: z/1, "
		"numaNode: 0}}, {pciAddress: q, host: {}}, {pciAddress: r, rail: 0, host: {}}]}");
	json_auto_t *topology = topology_compose(observed);
	const json_t *nics = json_at(topology, "nics");
	json_auto_t *want = yaml("{NODE: '0,2-4', SYS: '1,5', '?': '6'}");

	assert_int_equal(json_array_size(nics), 3);
	assert_string_equal(json_str_at(json_array_get(nics, 0), "pciAddress"), "r");
	assert_string_equal(json_str_at(json_array_get(nics, 2), "pciAddress"), "q");
	assert_true(json_same(json_at(json_array_get(nics, 1), "gpus"), want));
	assert_string_equal(json_str_at(json_array_get(nics, 0), "gpus", "?"), "0-6");
}

TEST(nothing_is_said_where_sysfs_shows_nothing)
{
	json_auto_t *plain = yaml("{interfaces: [{pciAddress: x, host: {numaNode: 0}}], gpus: []}");
	json_auto_t *unread = yaml("{interfaces: [], gpus: [], gpusUnknown: 'cannot be read'}");
	json_auto_t *none = topology_compose(plain), *unknown = topology_compose(unread);

	assert_null(none);
	assert_string_equal(json_str_at(unknown, "gpusUnknown"), "cannot be read");
}

TEST(a_function_that_cannot_be_read_may_be_a_gpu)
{
	struct host_tree *tree = host_tree_new();
	json_auto_t *well = NULL, *unread = NULL;

	/* Boards have VGA of their own, and GPUs have VFs. */
	host_tree_add_gpu(tree, &(struct tree_gpu){"1a03", "2000", "030000"}, "0000:02:00.0", NULL,
			  0);
	host_tree_add_gpu(tree, &(struct tree_gpu){"8086", "56c0", "038000"}, "0000:03:00.0", NULL,
			  1);
	host_tree_add_gpu(tree, &(struct tree_gpu){"8086", "56c0", "038000"}, "0000:03:00.1", NULL,
			  1);
	host_tree_link(tree, "sys/bus/pci/devices/0000:03:00.1/physfn", "../0000:03:00.0");
	well = host_observe(host_tree_host(tree), 0, NULL);
	assert_null(json_at(well, "gpusUnknown"));
	assert_int_equal(json_array_size(json_at(well, "gpus")), 1);
	assert_int_equal(
		json_integer_value(json_at(json_array_get(json_at(well, "gpus"), 0), "numaNode")),
		1);
	host_tree_file(tree, "sys/bus/pci/devices/0000:04:00.0/vendor", "0x10de\n");
	unread = host_observe(host_tree_host(tree), 0, NULL);
	assert_string_equal(json_str_at(unread, "gpusUnknown"),
			    "the class of PCI function 0000:04:00.0 cannot be read");
	host_tree_free(tree);
}

TEST(a_path_that_no_status_takes_is_not_known)
{
	struct host_tree *tree = host_tree_new();
	auto_strbuf struct strbuf path = {0};
	json_auto_t *observed = NULL;

	strbuf_adds(&path, "pci0000:00");
	for (unsigned int bus = 0; path.len < 512; bus++)
		strbuf_addf(&path, "/0000:%02x:00.0", bus);
	host_tree_add_gpu(tree, &(struct tree_gpu){"10de", "2330", "030200"}, "0000:f0:00.0",
			  strbuf_str(&path), 0);
	observed = host_observe(host_tree_host(tree), 0, NULL);
	assert_int_equal(json_array_size(json_at(observed, "gpus")), 1);
	assert_null(json_at(json_array_get(json_at(observed, "gpus"), 0), "path"));
	host_tree_free(tree);
}

/* ---- machines -------------------------------------------------------------------------------- */

static void describe(const json_t *observed, const json_t *wanted, struct strbuf *out)
{
	json_auto_t *decided = rails_decide(observed, wanted, NULL);
	json_auto_t *topology = topology_compose(decided);
	const json_t *nic, *list;
	const char *distance;
	size_t i;

	assert_int_equal(json_array_size(json_at(decided, "rails", "problems")), 0);
	strbuf_addf(out, "== %s\n", json_str_at(decided, "rails", "from"));
	json_array_foreach (json_at(topology, "nics"), i, nic) {
		const json_t *rail = json_at(nic, "rail");

		if (rail)
			strbuf_addf(out, "rail %lld", (long long)json_integer_value(rail));
		else
			strbuf_adds(out, "no rail");
		strbuf_addf(out, "  %s  %s  NUMA %lld ", json_str_at(nic, "name"),
			    json_str_at(nic, "pciAddress"),
			    (long long)json_integer_value(json_at(nic, "numaNode")));
		json_each (json_at(nic, "gpus"), distance, list)
			strbuf_addf(out, " %s %s ", distance, json_string_value(list));
		strbuf_cut(out, out->len - 1);
		strbuf_addc(out, '\n');
	}
}

static void check_machine(const char *name)
{
	json_auto_t *machine = golden_machine_read(name), *observed = NULL, *wanted = NULL;
	auto_free char *path = str_printf(GOLDEN_MACHINES "/%s.txt", name);
	auto_strbuf struct strbuf is = {0}, want = {0};
	struct host_tree *tree = golden_machine_build(machine);

	observed = host_observe(host_tree_host(tree), 0, NULL);
	assert_non_null(observed);
	strbuf_addf(&is, "%s\n", json_str_at(machine, "name"));
	describe(observed, NULL, &is);
	if (json_at(machine, "rails")) {
		wanted = json_pack("{s:s, s:b, s:O}", "from", "the pool's list", "exact", 1,
				   "order", json_at(machine, "rails"));
		describe(observed, wanted, &is);
	}
	host_tree_free(tree);
	if (getenv("UPDATE")) {
		FILE *file = fopen(path, "we");

		assert_non_null(file);
		assert_int_equal(fwrite(is.data, 1, is.len, file), is.len);
		assert_int_equal(fclose(file), 0);
		return;
	}
	assert_int_equal(fs_read(AT_FDCWD, path, 1 << 20, &want, NULL), 0);
	assert_string_equal(strbuf_str(&is), strbuf_str(&want));
}

TEST(knows_the_machines_that_people_have)
{
	static const char *const machines[] = {"dgx-h100", "hgx-b200", "gb200", "mi300x",
					       "two-sockets"};

	for (size_t i = 0; i < ARRAY_LEN(machines); i++)
		check_machine(machines[i]);
}
