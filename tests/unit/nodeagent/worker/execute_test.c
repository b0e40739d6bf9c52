// SPDX-License-Identifier: Apache-2.0
/* Steps on simulated hosts. */
#include "tests/support/test.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/udev.h"
#include "nodeagent/model/step.h"
#include "nodeagent/worker/execute.h"

#define PF TREE_MLX
#define VF "0000:3c:00.0"
#define IB TREE_IB

/* Each look at the clock takes a second: who waits for what never comes waits some moments. */
int64_t clock_us(void)
{
	static int64_t now_us;

	return now_us += 1000000;
}

static int set_up(void **state)
{
	json_auto_t *nobody = json_object();

	*state = host_tree_new();
	host_tree_add_pf(*state, &tree_mlx);
	host_set_held(host_tree_host(*state), nobody);
	return 0;
}

static int tear_down(void **state)
{
	host_tree_free(*state);
	return 0;
}

static int run(struct host_tree *tree, const char *text, json_t **ret, struct err *err)
{
	json_auto_t *step = json_parse(text, strlen(text), err);

	*err = (struct err){0};
	return host_execute(host_tree_host(tree), step, ret, err);
}

/* It succeeds, and says whether it changed anything. */
static bool does(struct host_tree *tree, const char *text)
{
	json_auto_t *result = NULL;
	struct err err = {0};

	if (run(tree, text, &result, &err) < 0)
		fail_msg("%s: %s: %s", text, err.reason, err.text);
	return json_is_true(json_at(result, "changed"));
}

static void refuses(struct host_tree *tree, const char *text, enum err_class class,
		    const char *reason)
{
	json_t *result = NULL;
	struct err err = {0};

	assert_int_equal(run(tree, text, &result, &err), -1);
	assert_null(result);
	if (err.class != class || !str_eq(err.reason, reason))
		fail_msg("%s: got %s %s: %s", text, err_class_name(err.class), err.reason,
			 err.text);
}

#define SET_VFS(n) "{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": " #n "}"

TEST_WITH(makes_vfs_once_and_changes_nothing_the_second_time, set_up, tear_down)
{
	assert_true(does(*state, SET_VFS(4)));
	assert_false(does(*state, SET_VFS(4)));
	assert_int_equal(host_tree_changes(*state), 1);
	assert_true(does(*state, SET_VFS(0)));
}

TEST_WITH(goes_from_one_count_to_another_only_through_zero, set_up, tear_down)
{
	does(*state, SET_VFS(4));
	refuses(*state, SET_VFS(6), ERR_BUG, "VfCountNeedsZero");
	refuses(*state,
		"{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": 0, \"from\": 3}",
		ERR_CONFLICT, "VfCountChanged");
	assert_int_equal(host_tree_changes(*state), 1);
}

TEST_WITH(says_what_the_hardware_can_have, set_up, tear_down)
{
	json_t *result = NULL;
	struct err err = {0};

	assert_int_equal(run(*state, SET_VFS(200), &result, &err), -1);
	assert_int_equal(err.class, ERR_INVALID);
	assert_string_equal(err.text, "set-num-vfs: 0000:3b:00.0: 200 VFs asked for, it can have "
				      "128 at most");
}

TEST_WITH(does_not_take_fewer_vfs_for_success, set_up, tear_down)
{
	static const struct tree_pf weak = {.address = "0000:05:00.0",
					    .driver = "mlx5_core",
					    .netdev = "weak0",
					    .vendor = "15b3",
					    .device = "101b",
					    .vf_device = "101c",
					    .vf_driver = "mlx5_core",
					    .vf_bus = 6,
					    .total = 8,
					    .makes = 2};

	host_tree_add_pf(*state, &weak);
	refuses(*state, "{\"step\": \"set-num-vfs\", \"pf\": \"0000:05:00.0\", \"count\": 4}",
		ERR_HOST, "NotAsAsked");
}

TEST_WITH(leaves_alone_what_the_kubelet_has_given_away_though_the_host_shows_nothing, set_up,
	  tear_down)
{
	json_auto_t *held = json_pack("{s:s}", VF, "ml/trainer");
	struct err err = {0};
	json_t *result = NULL;
	int changes;

	does(*state, SET_VFS(2));
	does(*state, "{\"step\": \"link-up\", \"device\": \"" VF "\"}");
	host_set_held(host_tree_host(*state), held);
	changes = host_tree_changes(*state);
	refuses(*state, SET_VFS(0), ERR_HOST, "VfInUse");
	refuses(*state, "{\"step\": \"set-eswitch\", \"pf\": \"" PF "\", \"mode\": \"switchdev\"}",
		ERR_HOST, "VfInUse");
	refuses(*state, "{\"step\": \"set-mtu\", \"device\": \"" VF "\", \"mtu\": 9000}", ERR_HOST,
		"VfInUse");
	refuses(*state,
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		"\", \"vfs\": {\"0\": \"02:00:00:00:00:01\"}}",
		ERR_HOST, "VfInUse");
	assert_int_equal(
		run(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}", &result, &err),
		-1);
	assert_string_equal(err.text, "unbind-driver: the kubelet has given VF " VF
				      " to pod ml/trainer: delete the pod, also when it has "
				      "finished");
	assert_int_equal(host_tree_changes(*state), changes);
	/* The other VF is nobody's. */
	assert_true(does(*state, "{\"step\": \"unbind-driver\", \"vf\": \"0000:3c:00.1\"}"));
}

/* After a boot: the kubelet names the pod that had it, and nothing of that pod can be in it. */
TEST_WITH(starts_the_driver_of_a_vf_that_was_a_pods_before_the_boot, set_up, tear_down)
{
	static const char mac[] = "{\"step\": \"set-vf-mac\", \"pf\": \"" PF
				  "\", \"vfs\": {\"0\": \"02:00:00:00:00:01\"}}";
	json_auto_t *held = json_pack("{s:s}", VF, "ml/trainer");

	does(*state, "{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": false}");
	does(*state, SET_VFS(2));
	host_set_held(host_tree_host(*state), held);
	assert_true(does(*state, mac));
	/* Its number is the pod's all the same. */
	refuses(*state, SET_VFS(0), ERR_HOST, "VfInUse");
	does(*state, "{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": true}");
	assert_true(does(*state, "{\"step\": \"probe-driver\", \"vf\": \"" VF "\"}"));
	does(*state, "{\"step\": \"wait-vf\", \"vf\": \"" VF "\", \"for\": \"netdev\"}");
	assert_true(does(*state, "{\"step\": \"set-mtu\", \"device\": \"" VF "\", \"mtu\": 9000}"));
	/* From now on it is in use. */
	refuses(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}", ERR_HOST, "VfInUse");
}

TEST_WITH(leaves_every_vf_alone_while_nobody_knows_what_pods_have, set_up, tear_down)
{
	host_set_held(host_tree_host(*state), NULL);
	/* What no pod can have is made. */
	assert_true(does(*state, SET_VFS(2)));
	refuses(*state, SET_VFS(0), ERR_HOST, "VfInUse");
	refuses(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}", ERR_HOST, "VfInUse");
	refuses(*state, "{\"step\": \"set-eswitch\", \"pf\": \"" PF "\", \"mode\": \"switchdev\"}",
		ERR_HOST, "VfInUse");
	assert_int_equal(host_tree_changes(*state), 1);
}

TEST_WITH(never_resets_a_vf_that_a_pod_holds, set_up, tear_down)
{
	does(*state, SET_VFS(2));
	host_tree_move_away(*state, VF);
	refuses(*state, SET_VFS(0), ERR_HOST, "VfInUse");
	refuses(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}", ERR_HOST, "VfInUse");
	refuses(*state,
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		"\", \"vfs\": {\"0\": \"02:00:00:00:00:01\"}}",
		ERR_HOST, "VfInUse");
	refuses(*state, "{\"step\": \"set-eswitch\", \"pf\": \"" PF "\", \"mode\": \"switchdev\"}",
		ERR_HOST, "VfInUse");
	assert_int_equal(host_tree_changes(*state), 1);

	host_tree_bring_back(*state, VF);
	assert_true(does(*state, SET_VFS(0)));
}

TEST_WITH(never_touches_the_driver_of_a_pf, set_up, tear_down)
{
	refuses(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" PF "\"}", ERR_BUG, "NotAVf");
	refuses(*state, "{\"step\": \"probe-driver\", \"vf\": \"" PF "\"}", ERR_BUG, "NotAVf");
	refuses(*state, "{\"step\": \"set-driver-override\", \"vf\": \"" PF "\"}", ERR_BUG,
		"NotAVf");
	assert_int_equal(host_tree_changes(*state), 0);
}

TEST_WITH(makes_no_vfs_of_a_vf, set_up, tear_down)
{
	does(*state, SET_VFS(4));
	refuses(*state, "{\"step\": \"set-num-vfs\", \"pf\": \"" VF "\", \"count\": 1}", ERR_BUG,
		"NotAPf");
	assert_int_equal(host_tree_changes(*state), 1);
}

TEST_WITH(leaves_the_nic_of_the_default_route_alone_unless_told_twice, set_up, tear_down)
{
	host_tree_add_default_route(*state, "ens1f0np0");
	refuses(*state, SET_VFS(4), ERR_BUG, "ProtectedPf");
	refuses(*state, "{\"step\": \"set-mtu\", \"device\": \"" PF "\", \"mtu\": 9000}", ERR_BUG,
		"ProtectedPf");
	refuses(*state,
		"{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": 4, \"force\": true}",
		ERR_BUG, "ProtectedPf");
	assert_int_equal(host_tree_changes(*state), 0);
	host_allow_primary_nic(host_tree_host(*state));
	assert_true(does(*state, "{\"step\": \"set-num-vfs\", \"pf\": \"" PF
				 "\", \"count\": 4, \"force\": true}"));
}

/* The driver starts with the MAC address already given, and the GUID follows from it. */
TEST_WITH(prepares_a_vf_before_its_driver_starts, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	const json_t *vf;
	struct err err = {0};

	assert_true(
		does(*state, "{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": false}"));
	assert_true(does(*state, SET_VFS(2)));
	does(*state, "{\"step\": \"wait-vfs\", \"pf\": \"" PF "\", \"count\": 2}");
	refuses(*state, "{\"step\": \"probe-driver\", \"vf\": \"" VF "\"}", ERR_BUG,
		"AutoprobeOff");
	assert_true(does(*state, "{\"step\": \"set-vf-mac\", \"pf\": \"" PF
				 "\", \"vfs\": {\"0\": \"02:aa:bb:cc:dd:ee\"}}"));
	assert_true(
		does(*state, "{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": true}"));
	assert_true(does(*state, "{\"step\": \"probe-driver\", \"vf\": \"" VF
				 "\", \"driver\": \"mlx5_core\"}"));
	does(*state, "{\"step\": \"wait-vf\", \"vf\": \"" VF "\", \"for\": \"rdma\"}");
	assert_true(does(*state, "{\"step\": \"set-mtu\", \"device\": \"" VF "\", \"mtu\": 9000}"));
	assert_true(does(*state, "{\"step\": \"link-up\", \"device\": \"" VF "\"}"));

	observed = host_observe(host_tree_host(*state), 0, &err);
	vf = json_array_get(json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs"), 0);
	assert_string_equal(json_str_at(vf, "mac"), "02:aa:bb:cc:dd:ee");
	assert_string_equal(json_str_at(vf, "guid"), "02:aa:bb:ff:fe:cc:dd:ee");
	assert_int_equal(json_integer_value(json_at(vf, "mtu")), 9000);
}

TEST_WITH(gives_guids_to_infiniband_vfs_and_never_zero, set_up, tear_down)
{
	const char *node = "{\"step\": \"set-vf-guid\", \"pf\": \"" IB "\", \"which\": \"node\", "
			   "\"vfs\": {\"1\": \"02:00:00:00:00:00:00:21\"}}";

	host_tree_add_pf(*state, &tree_ib);
	does(*state, "{\"step\": \"set-num-vfs\", \"pf\": \"" IB "\", \"count\": 2}");
	assert_true(does(*state, node));
	assert_false(does(*state, node));
	assert_true(does(*state, "{\"step\": \"set-vf-link-state\", \"pf\": \"" IB "\", "
				 "\"vfs\": {\"1\": \"enable\"}}"));
	refuses(*state,
		"{\"step\": \"set-vf-guid\", \"pf\": \"" IB "\", \"which\": \"node\", "
		"\"vfs\": {\"1\": \"00:00:00:00:00:00:00:00\"}}",
		ERR_BUG, "BadStep");
	does(*state, SET_VFS(1));
	refuses(*state,
		"{\"step\": \"set-vf-guid\", \"pf\": \"" PF "\", \"which\": \"node\", "
		"\"vfs\": {\"0\": \"02:00:00:00:00:00:00:21\"}}",
		ERR_HOST, "VfGuidRefused");
}

#define FIRMWARE "{\"step\": \"set-firmware\", \"pf\": \"" PF "\", \"count\": 200}"

/* A card whose firmware lets it have 128 VFs, of which 200 are wanted. */
TEST_WITH(sets_the_firmware_where_it_may_and_resets_the_card_once, set_up, tear_down)
{
	static const struct tree_firmware offer = {.has_switch = true,
						   .is_on = true,
						   .has_count = true,
						   .can_reset = true,
						   .count = 128};
	struct host *host = host_tree_host(*state);

	refuses(*state, FIRMWARE, ERR_INVALID, "FirmwareRefused");
	host_allow_firmware(host);
	/* Its driver offers nothing. */
	refuses(*state, FIRMWARE, ERR_HOST, "FirmwareUnsupported");
	assert_int_equal(host_tree_changes(*state), 0);
	host_tree_offer_firmware(*state, PF, &offer);
	assert_true(does(*state, FIRMWARE));
	assert_false(does(*state, FIRMWARE));
	assert_int_equal(host_tree_resets(*state), 1);
}

/* What cannot be reset, or must not, waits for the boot; it is not tried again and again. */
TEST_WITH(firmware_that_waits_for_a_boot_is_said, set_up, tear_down)
{
	static const struct tree_firmware no_reset = {.has_count = true, .count = 128},
					  off = {.has_switch = true,
						 .can_reset = true,
						 .count = 128};
	json_auto_t *result = NULL;
	struct err err = {0};

	host_allow_firmware(host_tree_host(*state));
	host_tree_offer_firmware(*state, PF, &no_reset);
	refuses(*state, FIRMWARE, ERR_HOST, "FirmwareNeedsBoot");
	refuses(*state, FIRMWARE, ERR_HOST, "FirmwareNeedsBoot");
	assert_int_equal(host_tree_changes(*state), 1);
	/* Somebody works with the card: written, and not reset. */
	host_tree_free(*state);
	(void)set_up(state);
	host_allow_firmware(host_tree_host(*state));
	host_tree_offer_firmware(
		*state, PF,
		&(struct tree_firmware){.has_count = true, .can_reset = true, .count = 128});
	host_tree_open_verbs(*state, "mlx5_0", 1);
	assert_int_equal(run(*state, FIRMWARE, &result, &err), -1);
	assert_string_equal(err.reason, "FirmwareNeedsBoot");
	assert_non_null(strstr(err.text, "reboot the node ("));
	assert_non_null(strstr(err.text, "is used by"));
	assert_int_equal(host_tree_resets(*state), 0);
	/* With SR-IOV on the switch alone gives no more VFs. */
	host_tree_offer_firmware(*state, PF, &off);
	refuses(*state, FIRMWARE, ERR_HOST, "FirmwareUnsupported");
	/* The node's own NIC. */
	host_tree_free(*state);
	(void)set_up(state);
	host_allow_firmware(host_tree_host(*state));
	host_tree_offer_firmware(*state, PF, &no_reset);
	host_tree_add_default_route(*state, "ens1f0np0");
	refuses(*state, FIRMWARE, ERR_BUG, "ProtectedPf");
	assert_int_equal(host_tree_changes(*state), 0);
}

/* Drivers ask the firmware about every VF that they list. */
/* A reset takes all functions of the card along. */
TEST_WITH(a_card_with_a_disk_is_not_reset, set_up, tear_down)
{
	json_auto_t *result = NULL;
	struct err err = {0};

	host_allow_firmware(host_tree_host(*state));
	host_tree_offer_firmware(
		*state, PF,
		&(struct tree_firmware){.has_count = true, .can_reset = true, .count = 128});
	host_tree_file(*state, "sys/bus/pci/devices/0000:3b:00.2/class", "0x010802\n");
	host_tree_link(*state, "sys/bus/pci/devices/0000:3b:00.2/driver", "../../drivers/nvme");
	assert_int_equal(run(*state, FIRMWARE, &result, &err), -1);
	assert_string_equal(err.reason, "FirmwareNeedsBoot");
	assert_non_null(strstr(err.text, "0000:3b:00.2 of the card may be in use (driver nvme)"));
	assert_int_equal(host_tree_resets(*state), 0);
}

TEST_WITH(lists_the_vfs_of_a_pf_twice_however_many_get_an_address, set_up, tear_down)
{
	auto_strbuf struct strbuf step = {0};
	int before;

	does(*state, "{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": false}");
	does(*state, SET_VFS(128));
	strbuf_adds(&step, "{\"step\": \"set-vf-mac\", \"pf\": \"" PF "\", \"vfs\": {");
	for (int i = 0; i < 128; i++)
		strbuf_addf(&step, "%s\"%d\": \"02:00:00:00:01:%02x\"", i ? ", " : "", i, i);
	strbuf_adds(&step, "}}");
	before = host_tree_vf_lists(*state);
	assert_true(does(*state, strbuf_str(&step)));
	assert_int_equal(host_tree_vf_lists(*state) - before, 2);
	assert_false(does(*state, strbuf_str(&step)));
	assert_int_equal(host_tree_vf_lists(*state) - before, 3);
}

TEST_WITH(a_vf_that_takes_no_address_keeps_none_from_the_others, set_up, tear_down)
{
	static const char step[] =
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		"\", \"vfs\": {\"0\": \"02:00:00:00:01:00\", \"1\": \"02:00:00:00:01:01\", "
		"\"2\": \"02:00:00:00:01:02\"}}";
	json_auto_t *result = NULL;
	struct err err = {0};

	does(*state, SET_VFS(3));
	host_tree_move_away(*state, VF);
	assert_int_equal(run(*state, step, &result, &err), -1);
	assert_string_equal(err.reason, "VfInUse");
	assert_non_null(strstr(err.text, "set-vf-mac: 1 of 3 VFs: VF " VF " is in another"));
	assert_int_equal(host_tree_changes(*state), 3);
	host_tree_bring_back(*state, VF);
	assert_true(does(*state, step));
	assert_int_equal(host_tree_changes(*state), 4);
	/* The kernel refuses the second of two. */
	host_tree_free(*state);
	(void)set_up(state);
	does(*state, SET_VFS(3));
	host_tree_fail_at(*state, 2);
	assert_int_equal(run(*state, step, &result, &err), -1);
	assert_string_equal(err.reason, "VfMacRefused");
	assert_int_equal(host_tree_changes(*state), 3);
}

TEST_WITH(binds_a_userspace_driver_and_goes_back, set_up, tear_down)
{
	const char *override =
		"{\"step\": \"set-driver-override\", \"vf\": \"" VF "\", \"driver\": \"vfio-pci\"}";

	does(*state, SET_VFS(1));
	assert_true(does(*state, override));
	assert_false(does(*state, override));
	assert_true(does(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}"));
	assert_true(does(*state, "{\"step\": \"probe-driver\", \"vf\": \"" VF
				 "\", \"driver\": \"vfio-pci\"}"));
	refuses(*state,
		"{\"step\": \"probe-driver\", \"vf\": \"" VF "\", \"driver\": \"mlx5_core\"}",
		ERR_HOST, "NotAsAsked");
	refuses(*state,
		"{\"step\": \"set-driver-override\", \"vf\": \"" VF
		"\", \"driver\": \"uio_pci_generic\"}",
		ERR_HOST, "DriverMissing");

	assert_true(does(*state, "{\"step\": \"set-driver-override\", \"vf\": \"" VF "\"}"));
	assert_true(does(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}"));
	assert_true(does(*state, "{\"step\": \"probe-driver\", \"vf\": \"" VF
				 "\", \"driver\": \"mlx5_core\"}"));
}

TEST_WITH(sets_the_mode_of_the_embedded_switch, set_up, tear_down)
{
	assert_true(does(*state, "{\"step\": \"set-eswitch\", \"pf\": \"" PF
				 "\", \"mode\": \"switchdev\"}"));
	assert_false(does(*state, "{\"step\": \"set-eswitch\", \"pf\": \"" PF
				  "\", \"mode\": \"switchdev\"}"));
}

TEST_WITH(switches_the_rdma_mode_only_without_other_namespaces, set_up, tear_down)
{
	const char *exclusive = "{\"step\": \"set-rdma-netns-mode\", \"mode\": \"exclusive\"}";
	json_t *result = NULL;
	struct err err = {0};

	host_tree_set_namespaces(*state, 1);
	assert_int_equal(run(*state, exclusive, &result, &err), -1);
	assert_string_equal(err.reason, "RdmaModeBusy");
	assert_int_equal(err.sys, EBUSY);
	host_tree_set_namespaces(*state, 0);
	assert_true(does(*state, exclusive));
	assert_false(does(*state, exclusive));
}

TEST_WITH(writes_the_mode_of_the_next_boot_once, set_up, tear_down)
{
	const char *exclusive = "{\"step\": \"write-rdma-next-boot\", \"mode\": \"exclusive\"}";
	auto_free char *text = NULL;

	assert_true(does(*state, exclusive));
	assert_false(does(*state, exclusive));
	text = host_tree_read(*state, HOST_NEXT_BOOT_FILE);
	assert_non_null(strstr(text, "\noptions ib_core netns_mode=0\n"));
	assert_non_null(strstr(text, "boot-one"));

	host_tree_file(*state, "proc/cmdline", "ib_core.netns_mode=1\n");
	refuses(*state, exclusive, ERR_HOST, "NextBootOverruled");
	assert_true(does(*state, "{\"step\": \"remove-rdma-next-boot\"}"));
	assert_false(does(*state, "{\"step\": \"remove-rdma-next-boot\"}"));
}

TEST_WITH(writes_and_removes_udev_rules, set_up, tear_down)
{
	const char *rule = "{\"step\": \"write-udev-rule\", \"pf\": \"" PF
			   "\", \"rule\": \"pf-name\", \"name\": \"ens1f0\"}";
	auto_free char *text = NULL;

	assert_true(does(*state, rule));
	assert_false(does(*state, rule));
	text = host_tree_read(*state, "etc/udev/rules.d/10-pf-name-" PF ".rules");
	assert_string_equal(text, "SUBSYSTEM==\"net\", ACTION==\"add\", DRIVERS==\"?*\", "
				  "KERNELS==\"" PF "\", NAME=\"ens1f0\"\n");
	assert_true(does(*state, "{\"step\": \"remove-udev-rule\", \"pf\": \"" PF
				 "\", \"rule\": \"pf-name\"}"));
}

/* As on nodes whose /etc is part of an image: the rules are for this boot. */
TEST_WITH(writes_rules_elsewhere_when_etc_is_read_only, set_up, tear_down)
{
	const char *name = "run/udev/rules.d/10-pf-name-" PF ".rules";
	const char *rule = "{\"step\": \"write-udev-rule\", \"pf\": \"" PF
			   "\", \"rule\": \"pf-name\", \"name\": \"ens1f0\"}";
	const char *remove =
		"{\"step\": \"remove-udev-rule\", \"pf\": \"" PF "\", \"rule\": \"pf-name\"}";
	auto_free char *etc = NULL, *text = NULL, *after = NULL;
	json_auto_t *there = NULL, *gone = NULL;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	/* A tree that knows of the namespace. */
	(void)tear_down(state);
	(void)set_up(state);
	host_tree_file(*state, "etc/hostname", "worker-1");
	etc = str_printf("%s/etc", host_tree_folder(*state));
	assert_int_equal(mount(etc, etc, NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount("none", etc, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_true(does(*state, rule));
	assert_false(does(*state, rule));
	text = host_tree_read(*state, name);
	assert_non_null(strstr(text, "NAME=\"ens1f0\""));
	there = udev_rules_of(host_tree_host(*state), PF);
	assert_int_equal(json_array_size(there), 1);
	assert_true(does(*state, remove));
	assert_false(does(*state, remove));
	gone = udev_rules_of(host_tree_host(*state), PF);
	assert_int_equal(json_array_size(gone), 0);
	after = host_tree_read(*state, name);
	assert_string_equal(after, "");
	assert_int_equal(umount2(etc, MNT_DETACH), 0);
}

TEST_WITH(refuses_what_is_no_step, set_up, tear_down)
{
	static const char *const bad[] = {
		"[]",
		"{\"step\": \"reboot\"}",
		"{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\"}",
		"{\"step\": \"set-num-vfs\", \"pf\": \"../../etc\", \"count\": 1}",
		"{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": -1}",
		"{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": 1, \"more\": 1}",
		"{\"step\": \"set-driver-override\", \"vf\": \"" VF "\", \"driver\": \"../x\"}",
		"{\"step\": \"load-module\", \"module\": \"evil\"}",
		"{\"step\": \"write-udev-rule\", \"pf\": \"" PF "\", \"rule\": \"pf-name\"}",
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		"\", \"vfs\": {\"0\": \"01:00:00:00:00:01\"}}",
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF "\", \"vfs\": {}}",
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		"\", \"vfs\": {\"00\": \"02:00:00:00:00:01\"}}",
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		"\", \"vfs\": {\"4096\": \"02:00:00:00:00:01\"}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refuses(*state, bad[i], ERR_BUG, "BadStep");
	assert_int_equal(host_tree_changes(*state), 0);
}

/*
 * Each change of a whole sequence fails in turn: a clear error, and the sequence run again ends
 * well.
 */
TEST_WITH(recovers_from_every_failing_change, set_up, tear_down)
{
	static const char *const steps[] = {
		"{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": false}",
		SET_VFS(0),
		SET_VFS(2),
		"{\"step\": \"set-mtu\", \"device\": \"" PF "\", \"mtu\": 4000}",
		"{\"step\": \"link-up\", \"device\": \"" PF "\"}",
		"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		"\", \"vfs\": {\"0\": \"02:00:00:00:00:09\"}}",
		"{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": true}",
		"{\"step\": \"set-driver-override\", \"vf\": \"" VF "\", \"driver\": \"vfio-pci\"}",
		"{\"step\": \"probe-driver\", \"vf\": \"" VF "\"}",
		"{\"step\": \"set-rdma-netns-mode\", \"mode\": \"exclusive\"}",
	};
	int failed = 0;

	for (int n = 1; n <= 9; n++) {
		host_tree_free(*state);
		(void)set_up(state);
		host_tree_fail_at(*state, n);
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			json_auto_t *result = NULL;
			struct err err = {0};

			if (run(*state, steps[i], &result, &err) == 0)
				continue;
			assert_int_equal(err.class, ERR_HOST);
			assert_int_equal(err.sys, EIO);
			assert_null(result);
			failed++;
			break;
		}
		host_tree_fail_at(*state, 0);
		for (size_t i = 0; i < ARRAY_LEN(steps); i++)
			if (i != 1)
				does(*state, steps[i]);
	}
	assert_int_equal(failed, 9);
}

/* The kernel refuses the change; VFs are there, with their drivers. */
TEST_WITH(a_refused_change_says_what_was_refused, set_up, tear_down)
{
	static const struct {
		const char *step, *reason;
	} rows[] = {
		{"{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": false}",
		 "AutoprobeRefused"},
		{SET_VFS(0), "VfCountRefused"},
		{"{\"step\": \"set-mtu\", \"device\": \"" PF "\", \"mtu\": 4000}", "MtuRefused"},
		{"{\"step\": \"link-up\", \"device\": \"" VF "\"}", "LinkRefused"},
		{"{\"step\": \"set-vf-mac\", \"pf\": \"" PF
		 "\", \"vfs\": {\"0\": \"02:00:00:00:00:09\"}}",
		 "VfMacRefused"},
		{"{\"step\": \"set-vf-link-state\", \"pf\": \"" PF
		 "\", \"vfs\": {\"0\": \"enable\"}}",
		 "VfLinkRefused"},
		{"{\"step\": \"set-eswitch\", \"pf\": \"" PF "\", \"mode\": \"switchdev\"}",
		 "ESwitchRefused"},
		{"{\"step\": \"set-driver-override\", \"vf\": \"" VF
		 "\", \"driver\": \"vfio-pci\"}",
		 "DriverRefused"},
		{"{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}", "DriverRefused"},
		{"{\"step\": \"set-rdma-netns-mode\", \"mode\": \"exclusive\"}", "RdmaModeRefused"},
	};

	does(*state, SET_VFS(2));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		host_tree_fail_at(*state, 1);
		refuses(*state, rows[i].step, ERR_HOST, rows[i].reason);
	}
}

TEST_WITH(waiting_ends_when_nothing_comes, set_up, tear_down)
{
	refuses(*state, "{\"step\": \"wait-vfs\", \"pf\": \"" PF "\", \"count\": 2}", ERR_TRANSIENT,
		"NotYet");
	does(*state, "{\"step\": \"set-autoprobe\", \"pf\": \"" PF "\", \"on\": false}");
	does(*state, SET_VFS(1));
	refuses(*state, "{\"step\": \"wait-vf\", \"vf\": \"" VF "\", \"for\": \"netdev\"}",
		ERR_TRANSIENT, "NotYet");
}

TEST_WITH(an_interface_that_goes_meanwhile_is_tried_again, set_up, tear_down)
{
	host_tree_remove(*state, "sys/class/net/ens1f0np0/ifindex");
	refuses(*state, "{\"step\": \"link-up\", \"device\": \"" PF "\"}", ERR_TRANSIENT,
		"InterfaceGone");
}

TEST_WITH(tells_deadlines_by_the_number_of_vfs, set_up, tear_down)
{
	json_auto_t *up = json_pack("{s:s, s:i}", "step", "set-num-vfs", "count", 128);
	json_auto_t *down =
		json_pack("{s:s, s:i, s:i}", "step", "set-num-vfs", "count", 0, "from", 128);

	assert_int_equal(step_deadline_ms(up), 30000 + 128 * 2000);
	assert_int_equal(step_deadline_ms(down), step_deadline_ms(up));
}
