// SPDX-License-Identifier: Apache-2.0
/* The step for settings of PFs on simulated hosts: each of them set, kept, and refused. */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/model/nic_settings.h"
#include "nodeagent/worker/execute.h"
#include "tests/support/yaml.h"

#define IGB "0000:01:00.0"

static const struct tree_pf igb = {.address = IGB,
				   .driver = "igb",
				   .netdev = "enp1s0",
				   .vendor = "8086",
				   .device = "10c9",
				   .vf_device = "10ca",
				   .vf_driver = "igbvf",
				   .vf_bus = 2,
				   .total = 7};

/* mlx5 of NVIDIA's own driver, igb without RDMA and DCB, and an InfiniBand port. */
static int set_up(void **state)
{
	json_auto_t *nobody = json_object();
	struct tree_pf pf = tree_mlx;

	pf.has_vendor_files = true;
	*state = host_tree_new();
	host_tree_add_pf(*state, &pf);
	host_tree_add_pf(*state, &igb);
	host_tree_add_pf(*state, &tree_ib);
	host_set_held(host_tree_host(*state), nobody);
	return 0;
}

static int tear_down(void **state)
{
	host_tree_free(*state);
	return 0;
}

static int set(struct host_tree *tree, const char *pf, const char *name, const char *value,
	       json_t **ret, struct err *err)
{
	auto_free char *text = str_printf(
		"{step: set-nic-setting, pf: '%s', setting: %s, value: %s}", pf, name, value);
	json_auto_t *step = yaml(text);

	*err = (struct err){0};
	return host_execute(host_tree_host(tree), step, ret, err);
}

/* It succeeds; whether it changed anything. */
static bool does(struct host_tree *tree, const char *name, const char *value)
{
	json_auto_t *result = NULL;
	struct err err = {0};

	if (set(tree, TREE_MLX, name, value, &result, &err) < 0)
		fail_msg("%s %s: %s: %s", name, value, err.reason, err.text);
	return json_is_true(json_at(result, "changed"));
}

static void refuses(struct host_tree *tree, const char *pf, const char *name, const char *value,
		    const char *reason, const char *part)
{
	json_t *result = NULL;
	struct err err = {0};

	assert_int_equal(set(tree, pf, name, value, &result, &err), -1);
	if (!str_eq(err.reason, reason) || !strstr(err.text, part))
		fail_msg("%s %s: %s: %s", name, value, err.reason, err.text);
}

/* New: "settings" or "settingsUnsupported" of a PF. */
static json_t *seen(struct host_tree *tree, const char *pf, const char *part)
{
	struct err err = {0};
	json_auto_t *observed = host_observe(host_tree_host(tree), HOST_OBSERVE_SETTINGS, &err);

	assert_non_null(observed);
	assert_int_equal(json_array_size(json_at(observed, "problems")), 0);
	return json_incref(
		json_at(json_find(json_at(observed, "interfaces"), "pciAddress", pf), part));
}

#define FOUR "{priorities: [0, 1, 2, 4, 5, 6, 7], bandwidth: 30}, "
static const struct {
	const char *name, *first, *wanted;
} settings[] = {
	{"pauseFrames", "false", "true"},
	{"dscpToPriority", "{}", "{'26': 3, '48': 6}"},
	{"trafficClasses",
	 "[{priorities: [0], strict: true}, {priorities: [1], strict: true}, {priorities: [2], "
	 "strict: true}, {priorities: [3], strict: true}, {priorities: [4], strict: true}, "
	 "{priorities: [5], strict: true}, {priorities: [6], strict: true}, {priorities: [7], "
	 "strict: true}]",
	 "[" FOUR "{priorities: [3], bandwidth: 70}]"},
	{"pfc", "[]", "[3]"},
	{"buffers", "{sizes: [262016, 0, 0, 0, 0, 0, 0, 0], priorities: [0, 0, 0, 0, 0, 0, 0, 0]}",
	 "{sizes: [131072, 65536, 0, 0, 0, 0, 0, 0], priorities: [0, 0, 0, 1, 0, 0, 0, 0]}"},
	{"ecn", "[0, 1, 2, 3, 4, 5, 6, 7]", "[3]"},
	{"cnp", "{dscp: 48, priority: 6}", "{dscp: 50, priority: 6}"},
	{"rdmaCmRoceMode", "v2", "v1"},
	{"rdmaCmTos", "0", "106"},
	{"trafficClass", "-1", "106"},
	{"rings", "{rx: 1024, tx: 1024}", "{rx: 8192, tx: 2048}"},
	{"channels", "{combined: 63}", "{combined: 16}"},
	{"maxReadRequest", "4096", "512"},
	{"relaxedOrdering", "true", "false"},
};

/* Set, found set, put back: what is seen is what was asked for, and at last what was there. */
TEST_WITH(each_setting_is_set_once_and_can_be_put_back, set_up, tear_down)
{
	json_auto_t *before = seen(*state, TREE_MLX, "settings"), *after = NULL;
	size_t n;

	(void)nic_settings(&n);
	/* But trust, which follows from priorities of DSCPs. */
	assert_int_equal(n, ARRAY_LEN(settings) + 1);
	assert_int_equal(json_object_size(before), n);
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		const char *name = settings[i].name;
		json_auto_t *first = yaml(settings[i].first), *want = yaml(settings[i].wanted);
		json_auto_t *is = NULL;

		assert_true(json_same(json_at(before, name), first));
		assert_true(does(*state, name, settings[i].wanted));
		assert_false(does(*state, name, settings[i].wanted));
		is = seen(*state, TREE_MLX, "settings");
		assert_true(json_same(json_at(is, name), want));
		assert_true(does(*state, name, settings[i].first));
	}
	after = seen(*state, TREE_MLX, "settings");
	assert_true(json_same(before, after));
}

TEST_WITH(trust_follows_from_priorities_of_dscps, set_up, tear_down)
{
	json_auto_t *all = NULL, *none = NULL;

	assert_false(does(*state, "trust", "pcp"));
	assert_true(does(*state, "dscpToPriority", "{'26': 3}"));
	assert_false(does(*state, "trust", "dscp"));
	/* The entry is another one, of the same DSCP. */
	assert_true(does(*state, "dscpToPriority", "{'26': 4, '0': 1}"));
	assert_true(does(*state, "trust", "pcp"));
	none = seen(*state, TREE_MLX, "settings");
	assert_int_equal(json_object_size(json_at(none, "dscpToPriority")), 0);
	assert_true(does(*state, "trust", "dscp"));
	all = seen(*state, TREE_MLX, "settings");
	assert_int_equal(json_object_size(json_at(all, "dscpToPriority")), 64);
	assert_int_equal(json_integer_value(json_at(all, "dscpToPriority", "26")), 3);
}

/* Each RDMA device has such a setting of its own, and a VF that is made has the driver's. */
TEST_WITH(vfs_get_what_rdma_devices_have, set_up, tear_down)
{
	json_auto_t *vfs = yaml("{step: set-num-vfs, pf: '" TREE_MLX "', count: 2}");
	json_auto_t *result = NULL, *before = NULL, *after = NULL;
	auto_free char *tos = NULL, *class = NULL;
	json_auto_t *folders = NULL;
	struct err err = {0};

	assert_true(does(*state, "rdmaCmTos", "106"));
	assert_true(does(*state, "trafficClass", "106"));
	assert_int_equal(host_execute(host_tree_host(*state), vfs, &result, &err), 0);
	before = seen(*state, TREE_MLX, "settings");
	assert_int_equal(json_integer_value(json_at(before, "rdmaCmTos")), 0);
	assert_int_equal(json_integer_value(json_at(before, "trafficClass")), -1);
	assert_true(does(*state, "rdmaCmTos", "106"));
	assert_true(does(*state, "trafficClass", "106"));
	after = seen(*state, TREE_MLX, "settings");
	assert_int_equal(json_integer_value(json_at(after, "rdmaCmTos")), 106);
	tos = host_tree_read(*state, "sys/kernel/rdma_cm-mlx5_0v1/ports/1/default_roce_tos");
	class = host_tree_read(*state, "sys/class/infiniband/mlx5_0v1/tc/1/traffic_class");
	assert_string_equal(tos, "106\n");
	assert_string_equal(class, "Global tclass=106\n");
	/* No folder of ours keeps the module; one of others stays. */
	folders = sysfs_list(host_tree_host(*state), "sys/kernel/config/rdma_cm");
	assert_int_equal(json_array_size(folders), 1);
	host_tree_file(*state, "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "7\n");
	assert_true(does(*state, "rdmaCmTos", "0"));
	json_decref(folders);
	folders = sysfs_list(host_tree_host(*state), "sys/kernel/config/rdma_cm");
	assert_int_equal(json_array_size(folders), 2);
}

/* The driver and the kernel say no, in different ways; or say yes, and do something else. */
TEST_WITH(a_refusal_says_what_the_driver_offers, set_up, tear_down)
{
	static const struct tree_pf one_class = {.address = "0000:05:00.0",
						 .driver = "bnxt_en",
						 .netdev = "ens5",
						 .vendor = "14e4",
						 .device = "1750",
						 .classes = 1};

	host_tree_add_pf(*state, &one_class);
	refuses(*state, one_class.address, "trafficClasses",
		"[" FOUR "{priorities: [3], bandwidth: 70}]", "SettingOutOfRange",
		"0000:05:00.0: trafficClasses: ETS of 2 traffic classes wanted, the driver has 1");
	refuses(*state, one_class.address, "pfc", "[3, 4]", "SettingOutOfRange",
		"PFC of 2 priorities wanted, the driver has 1");
	refuses(*state, TREE_MLX, "rings", "{rx: 16384}", "SettingOutOfRange",
		"rings: 16384 receive descriptors wanted, the driver has 8192");
	refuses(*state, TREE_MLX, "channels", "{combined: 64}", "SettingOutOfRange",
		"64 combined channels wanted, the driver has 63");
	refuses(*state, TREE_MLX, "buffers",
		"{sizes: [262016, 1, 0, 0, 0, 0, 0, 0], priorities: [0, 0, 0, 0, 0, 0, 0, 0]}",
		"SettingOutOfRange", "buffers of 262017 bytes wanted, the driver has 262016");
	assert_int_equal(host_tree_changes(*state), 0);
	/* Rounded. */
	refuses(*state, TREE_MLX, "rings", "{rx: 1000, tx: 500}", "NotAsAsked",
		"rings is {\"rx\":1024,\"tx\":512}, not {\"rx\":1000,\"tx\":500}");
	refuses(*state, TREE_MLX, "buffers",
		"{sizes: [1000, 0, 0, 0, 0, 0, 0, 0], priorities: [0, 0, 0, 0, 0, 0, 0, 0]}",
		"NotAsAsked", "\"sizes\":[896,0,");
}

/* Each kind of interface fails: in its own words, and nothing is set. */
TEST_WITH(a_change_that_fails_is_not_taken_for_done, set_up, tear_down)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		host_tree_fail_at(*state, 1);
		refuses(*state, TREE_MLX, settings[i].name, settings[i].wanted, "SettingRefused",
			"0000:3b:00.0: set ");
		assert_true(does(*state, settings[i].name, settings[i].wanted));
		host_tree_fail_at(*state, 0);
	}
}

TEST_WITH(what_driver_or_kernel_do_not_have_is_unsupported, set_up, tear_down)
{
	json_auto_t *igb_has = seen(*state, IGB, "settings"),
		    *igb_lacks = seen(*state, IGB, "settingsUnsupported"), *mlx_lacks = NULL,
		    *ib_lacks = seen(*state, TREE_IB, "settingsUnsupported");

	assert_int_equal(json_object_size(igb_has), 5);
	assert_string_equal(json_str_at(igb_lacks, "pfc"), "the driver has no DCB");
	assert_string_equal(json_str_at(igb_lacks, "rdmaCmTos"), "it has no RDMA device");
	assert_int_equal(json_object_size(igb_lacks), 10);
	assert_non_null(json_at(ib_lacks, "trafficClasses"));
	refuses(*state, IGB, "pfc", "[3]", "SettingUnsupported",
		IGB ": pfc: the driver has no DCB");
	/* No configfs, and no file of NVIDIA's. */
	host_tree_remove(*state, "sys/kernel/config");
	host_tree_remove(*state, "sys/class/net/ens1f0np0/ecn");
	host_tree_remove(*state, "sys/class/infiniband/mlx5_0/tc");
	mlx_lacks = seen(*state, TREE_MLX, "settingsUnsupported");
	assert_int_equal(json_object_size(mlx_lacks), 5);
	refuses(*state, TREE_MLX, "rdmaCmTos", "106", "SettingUnsupported",
		"there is no /sys/kernel/config/rdma_cm: load the module rdma_cm, and mount "
		"configfs");
	assert_int_equal(host_tree_changes(*state), 0);
}

/* An error is no answer: neither a value, nor unsupported. */
TEST_WITH(what_cannot_be_read_is_not_known, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	const json_t *pf;
	struct err err = {0};

	host_tree_file(*state, "sys/class/net/ens1f0np0/ecn/roce_rp/enable/5", "?\n");
	observed = host_observe(host_tree_host(*state), HOST_OBSERVE_SETTINGS, &err);
	pf = json_find(json_at(observed, "interfaces"), "pciAddress", TREE_MLX);
	assert_null(json_at(pf, "settings", "ecn"));
	assert_null(json_at(pf, "settingsUnsupported", "ecn"));
	assert_non_null(json_at(pf, "settings", "pfc"));
	/* No problem where nobody asks for it: the planner knows. */
	assert_int_equal(json_array_size(json_at(observed, "problems")), 0);
	assert_string_equal(json_str_at(pf, "settingsUnreadable", "ecn"),
			    "cannot read /sys/class/net/ens1f0np0/ecn/roce_rp/enable/5");
	refuses(*state, TREE_MLX, "ecn", "[3]", "SettingUnreadable",
		"cannot read /sys/class/net/ens1f0np0/ecn/roce_rp/enable/5");
	/* Without a look at settings there are none. */
	json_decref(observed);
	observed = host_observe(host_tree_host(*state), 0, &err);
	pf = json_find(json_at(observed, "interfaces"), "pciAddress", TREE_MLX);
	assert_null(json_at(pf, "settings"));
}

TEST_WITH(pods_and_the_node_s_own_nic_keep_theirs, set_up, tear_down)
{
	json_auto_t *held = json_pack("{s:s}", "0000:3c:00.0", "ml/trainer"), *result = NULL;
	json_auto_t *vfs = yaml("{step: set-num-vfs, pf: '" TREE_MLX "', count: 2}");
	struct err err = {0};

	assert_int_equal(host_execute(host_tree_host(*state), vfs, &result, &err), 0);
	host_set_held(host_tree_host(*state), held);
	/* Rings disturb the link; what rdma_cm gives new connections does not. */
	refuses(*state, TREE_MLX, "rings", "{rx: 8192}", "VfInUse", "ml/trainer");
	assert_true(does(*state, "rdmaCmTos", "106"));
	host_tree_add_default_route(*state, "ens1f0np0");
	refuses(*state, TREE_MLX, "rdmaCmTos", "0", "ProtectedPf", "it is not touched");
	refuses(*state, TREE_MLX, "rdmaCmTos", "0, force: true", "BadStep", "force");
	assert_false(does(*state, "rdmaCmTos", "106"));
	refuses(*state, TREE_MLX, "pfc", "[9]", "BadStep", "pfc: [9], must be");
}
