// SPDX-License-Identifier: Apache-2.0
/*
 * Look, plan, do, and again, on simulated hosts, until nothing is left to do: the host is then as
 * wanted, and on the way there nothing was done to a protected PF or to a VF that someone holds.
 */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/model/step.h"
#include "nodeagent/worker/execute.h"

#define PF  TREE_MLX
#define VF0 "0000:3c:00.0"
#define VF1 "0000:3c:00.1"
#define IB  TREE_IB

#define ROUNDS_MAX 12

/* A node: its host, and what its agent keeps. */
struct node {
	struct host_tree *tree;
	json_t *found, *refused;
	json_t *plan;        /* the last one */
	int steps;           /* executed */
	int stop_after;      /* power cut after so many steps; 0: never */
	bool keeps_no_found; /* found is forgotten with the power */
};

static int set_up(void **state)
{
	struct node *node = calloc(1, sizeof(*node));
	json_auto_t *nobody = json_object();

	node->tree = host_tree_new();
	host_set_held(host_tree_host(node->tree), nobody);
	node->found = json_object();
	node->refused = json_array();
	host_tree_add_pf(node->tree, &tree_mlx);
	host_tree_file(node->tree, "sys/module/ib_uverbs/x", "");
	host_tree_file(node->tree, "sys/module/rdma_ucm/x", "");
	host_tree_file(node->tree, "sys/module/mlx5_ib/x", "");
	host_tree_file(node->tree, "sys/module/vfio_pci/x", "");
	*state = node;
	return 0;
}

static int tear_down(void **state)
{
	struct node *node = *state;

	host_tree_free(node->tree);
	json_decref(node->found);
	json_decref(node->refused);
	json_decref(node->plan);
	free(node);
	return 0;
}

static json_t *look(struct node *node)
{
	struct err err = {0};
	json_t *ret = host_observe(host_tree_host(node->tree), HOST_OBSERVE_HOLDERS, &err);

	if (!ret)
		fail_msg("observe: %s", err.text);
	return ret;
}

/* Plans twice: the same input gives the same bytes. */
static void plan(struct node *node, const json_t *spec)
{
	json_auto_t *observed = look(node);
	struct planner_input in = {
		.spec = spec, .observed = observed, .found = node->found, .refused = node->refused};
	struct err err = {0};
	json_auto_t *again = NULL;

	json_decref(node->plan);
	node->plan = planner_plan(&in, &err);
	if (!node->plan)
		fail_msg("plan: %s", err.text);
	again = planner_plan(&in, &err);
	assert_true(json_same(node->plan, again));
}

/* One step as hostd would do it; what fails is not tried at once again. */
static bool execute(struct node *node, const json_t *entry)
{
	const json_t *step = json_at(entry, "step");
	json_auto_t *result = NULL;
	struct err err = {0};

	assert_non_null(step_check(step, &err));
	if (host_execute(host_tree_host(node->tree), step, &result, &err) == 0)
		return true;
	assert_int_not_equal(err.class, ERR_BUG);
	json_array_append(node->refused, (json_t *)step);
	return false;
}

/*
 * The rest of a PF's steps depends on the one that failed; other PFs go on. False: the power is
 * gone.
 */
static bool execute_all(struct node *node)
{
	json_auto_t *failed = json_object();
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(node->plan, "steps"), i, entry) {
		const char *pf = json_str_or(json_at(entry, "pf"), "node");

		if (node->stop_after > 0 && node->steps == node->stop_after)
			return false;
		if (json_object_get(failed, pf))
			continue;
		node->steps++;
		if (!execute(node, entry))
			json_object_set_new(failed, pf, json_true());
	}
	return true;
}

static bool settle(struct node *node, const json_t *spec)
{
	for (int i = 0; i < ROUNDS_MAX; i++) {
		plan(node, spec);
		json_decref(node->found);
		node->found = json_incref(json_at(node->plan, "found"));
		if (json_array_size(json_at(node->plan, "steps")) == 0)
			return true;
		if (!execute_all(node))
			return false;
	}
	fail_msg("still planning after %d rounds: %s", ROUNDS_MAX, json_text(node->plan));
	return false;
}

static json_t *parse(const char *text)
{
	struct err err = {0};
	json_t *ret = json_parse(text, strlen(text), &err);

	if (!ret)
		fail_msg("%s: %s", text, err.text);
	return ret;
}

static void becomes(struct node *node, const char *spec_text)
{
	json_auto_t *spec = parse(spec_text);

	assert_true(settle(node, spec));
}

static size_t count_of(const struct node *node, const char *list)
{
	return json_array_size(json_at(node->plan, list));
}

static const char *first_reason(const struct node *node, const char *list)
{
	return json_str_or(json_at(json_array_get(json_at(node->plan, list), 0), "reason"), "none");
}

static void is_content(const struct node *node)
{
	if (count_of(node, "problems") + count_of(node, "blocked"))
		fail_msg("%s", json_text(node->plan));
}

static const json_t *pf_of(const json_t *observed, const char *address)
{
	const json_t *pf = json_find(json_at(observed, "interfaces"), "pciAddress", address);

	if (!pf)
		fail_msg("no PF %s", address);
	return pf;
}

static const json_t *vf_of(const json_t *observed, const char *pf, size_t number)
{
	return json_array_get(json_at(pf_of(observed, pf), "Vfs"), number);
}

/* To the byte: MAC addresses, GUIDs and names included. */
static void same_interfaces(const json_t *want, const json_t *got)
{
	auto_free char *a = json_text(json_at(want, "interfaces"));
	auto_free char *b = json_text(json_at(got, "interfaces"));

	assert_string_equal(a, b);
}

#define SPEC(count, groups)                                                                        \
	"{\"interfaces\": [{\"pciAddress\": \"" PF "\", \"numVfs\": " #count                       \
	", \"mtu\": 9000, \"vfGroups\": [" groups "]}]}"
#define GROUP(range)                                                                               \
	"{\"resourceName\": \"a\", \"policyName\": \"a\", \"vfRange\": \"" range                   \
	"\", \"deviceType\": \"netdevice\", \"isRdma\": true, \"mtu\": 9000}"
#define VFIO(range)                                                                                \
	"{\"resourceName\": \"b\", \"policyName\": \"b\", \"vfRange\": \"" range                   \
	"\", \"deviceType\": \"vfio-pci\"}"

/* ---- VFs ------------------------------------------------------------------------------------- */

TEST_WITH(makes_vfs_with_addresses_drivers_and_mtu, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL;

	becomes(node, SPEC(4, GROUP("0-3")));
	is_content(node);
	observed = look(node);
	assert_int_equal(json_integer_value(json_at(pf_of(observed, PF), "numVfs")), 4);
	assert_int_equal(json_integer_value(json_at(pf_of(observed, PF), "mtu")), 9000);
	assert_true(json_is_true(json_at(pf_of(observed, PF), "host", "driversAutoprobe")));
	for (size_t i = 0; i < 4; i++) {
		const json_t *vf = vf_of(observed, PF, i);

		assert_string_equal(json_str_at(vf, "driver"), "mlx5_core");
		assert_int_equal(json_integer_value(json_at(vf, "mtu")), 9000);
		assert_string_equal(json_str_at(vf, "host", "adminMac"), json_str_at(vf, "mac"));
		assert_int_equal(strlen(json_str_at(vf, "guid")), 23);
		assert_string_not_equal(json_str_at(vf, "guid"), "00:00:00:00:00:00:00:00");
	}
	assert_string_not_equal(json_str_at(vf_of(observed, PF, 0), "mac"),
				json_str_at(vf_of(observed, PF, 1), "mac"));
	assert_int_equal(json_integer_value(json_at(node->plan, "vfs", "wanted")), 4);
	assert_int_equal(json_integer_value(json_at(node->plan, "vfs", "present")), 4);
}

TEST_WITH(grows_shrinks_and_puts_back, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *before = look(node), *after = NULL;

	becomes(node, SPEC(4, GROUP("0-3")));
	becomes(node, SPEC(6, GROUP("0-5")));
	is_content(node);
	becomes(node, SPEC(2, GROUP("0-1")));
	is_content(node);
	becomes(node, SPEC(0, ""));
	is_content(node);
	becomes(node, SPEC(4, GROUP("0-3")));
	becomes(node, "{}");
	is_content(node);
	after = look(node);
	assert_int_equal(json_integer_value(json_at(pf_of(after, PF), "numVfs")), 0);
	assert_int_equal(json_object_size(json_at(node->found, "pfs")), 0);
	/* A link that was down stays up; all else is what it was. */
	json_object_set_new((json_t *)pf_of(before, PF), "linkAdminState", json_string("up"));
	same_interfaces(before, after);
}

TEST_WITH(splits_a_pf_between_two_drivers_and_back, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL, *later = NULL;

	becomes(node, SPEC(6, GROUP("0-3") "," VFIO("4-5")));
	is_content(node);
	observed = look(node);
	assert_string_equal(json_str_at(vf_of(observed, PF, 3), "driver"), "mlx5_core");
	assert_string_equal(json_str_at(vf_of(observed, PF, 4), "driver"), "vfio-pci");
	assert_string_equal(json_str_at(vf_of(observed, PF, 5), "host", "driverOverride"),
			    "vfio-pci");
	becomes(node, SPEC(6, GROUP("0-5")));
	is_content(node);
	later = look(node);
	assert_string_equal(json_str_at(vf_of(later, PF, 4), "driver"), "mlx5_core");
	assert_null(json_at(vf_of(later, PF, 4), "host", "driverOverride"));
}

TEST_WITH(gives_infiniband_vfs_their_guids, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL, *again = NULL;
	const char *spec =
		"{\"interfaces\": [{\"pciAddress\": \"" IB
		"\", \"numVfs\": 2, \"linkType\": \"IB\", \"vfGroups\": [" GROUP("0-1") "]}]}";

	host_tree_add_pf(node->tree, &tree_ib);
	becomes(node, spec);
	observed = look(node);
	is_content(node);
	assert_true(str_starts(json_str_at(vf_of(observed, IB, 0), "guid"), "02:"));
	assert_string_not_equal(json_str_at(vf_of(observed, IB, 0), "guid"),
				json_str_at(vf_of(observed, IB, 1), "guid"));
	becomes(node, "{}");
	becomes(node, spec);
	again = look(node);
	assert_string_equal(json_str_at(vf_of(observed, IB, 0), "guid"),
			    json_str_at(vf_of(again, IB, 0), "guid"));
}

TEST_WITH(changes_the_switch_on_the_way, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL, *later = NULL;

	host_tree_file(node->tree, "usr/sbin/NetworkManager", "");
	becomes(node, "{\"interfaces\": [{\"pciAddress\": \"" PF
		      "\", \"numVfs\": 2, \"eSwitchMode\": \"switchdev\"}]}");
	observed = look(node);
	assert_string_equal(json_str_at(pf_of(observed, PF), "eSwitchMode"), "switchdev");
	assert_int_equal(json_array_size(json_at(pf_of(observed, PF), "host", "udevRules")), 2);
	becomes(node, "{}");
	later = look(node);
	assert_string_equal(json_str_at(pf_of(later, PF), "eSwitchMode"), "legacy");
	assert_int_equal(json_array_size(json_at(pf_of(later, PF), "host", "udevRules")), 0);
	assert_int_equal(json_object_size(json_at(node->found, "pfs")), 0);
}

/* ---- who holds them -------------------------------------------------------------------------- */

TEST_WITH(leaves_a_held_vf_alone_and_goes_on_when_it_is_back, set_up, tear_down)
{
	struct node *node = *state;
	int changes;

	becomes(node, SPEC(2, GROUP("0-1")));
	host_tree_move_away(node->tree, VF0);
	changes = host_tree_changes(node->tree);
	becomes(node, SPEC(6, GROUP("0-5")));
	assert_int_equal(host_tree_changes(node->tree), changes);
	assert_int_equal(count_of(node, "blocked"), 1);
	assert_string_equal(first_reason(node, "blocked"), "VfInUse");
	becomes(node, "{}");
	assert_int_equal(host_tree_changes(node->tree), changes);
	assert_int_equal(count_of(node, "blocked"), 1);
	assert_int_equal(json_object_size(json_at(node->found, "pfs")), 1);
	host_tree_bring_back(node->tree, VF0);
	becomes(node, SPEC(6, GROUP("0-5")));
	is_content(node);
	becomes(node, "{}");
	is_content(node);
}

TEST_WITH(sets_up_the_free_vfs_beside_a_held_one, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL;

	becomes(node, SPEC(2, GROUP("0-1")));
	host_tree_move_away(node->tree, VF0);
	becomes(node, SPEC(2, VFIO("0-1")));
	observed = look(node);
	assert_string_equal(json_str_at(vf_of(observed, PF, 0), "driver"), "mlx5_core");
	assert_string_equal(json_str_at(vf_of(observed, PF, 1), "driver"), "vfio-pci");
	assert_int_equal(count_of(node, "blocked"), 1);
}

TEST_WITH(does_not_touch_a_protected_pf, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL;

	host_tree_add_default_route(node->tree, "ens1f0np0");
	host_tree_add_pf(node->tree, &tree_ib);
	becomes(node, "{\"interfaces\": [{\"pciAddress\": \"" PF
		      "\", \"numVfs\": 2}, {\"pciAddress\": \"" IB "\", \"numVfs\": 1}]}");
	assert_string_equal(first_reason(node, "problems"), "ProtectedPf");
	observed = look(node);
	assert_int_equal(json_integer_value(json_at(pf_of(observed, PF), "numVfs")), 0);
	assert_int_equal(json_integer_value(json_at(pf_of(observed, IB), "numVfs")), 1);
	assert_null(json_at(node->found, "pfs", PF));
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

/*
 * The n-th step is the last one before the power goes: for each n, the next run comes to the same
 * end.
 */
TEST_WITH(continues_after_a_cut_at_every_step, set_up, tear_down)
{
	static const char *const specs[] = {
		SPEC(3, GROUP("0-1") "," VFIO("2-2")),
		"{}",
	};
	struct node *model = *state;
	json_auto_t *want = NULL;
	int total;

	becomes(model, specs[0]);
	want = look(model);
	total = model->steps;
	assert_true(total > 10);
	for (int n = 1; n < total; n++) {
		json_auto_t *spec = parse(specs[0]), *got = NULL;
		void *other = NULL;
		struct node *node;

		(void)set_up(&other);
		node = other;
		node->stop_after = n;
		assert_false(settle(node, spec));
		node->stop_after = 0;
		assert_true(settle(node, spec));
		is_content(node);
		got = look(node);
		same_interfaces(want, got);
		becomes(node, specs[1]);
		is_content(node);
		assert_int_equal(json_object_size(json_at(node->found, "pfs")), 0);
		(void)tear_down(&other);
	}
}

/*
 * The n-th change is refused by the kernel, once: what failed is taken off the list, and the end is
 * the same.
 */
TEST_WITH(gets_there_when_any_one_change_fails, set_up, tear_down)
{
	struct node *model = *state;
	int total;

	becomes(model, SPEC(2, GROUP("0-1")));
	total = host_tree_changes(model->tree);
	for (int n = 1; n <= total; n++) {
		void *other = NULL;
		struct node *node;

		(void)set_up(&other);
		node = other;
		host_tree_fail_at(node->tree, n);
		becomes(node, SPEC(2, GROUP("0-1")));
		host_tree_fail_at(node->tree, 0);
		(void)json_array_clear(node->refused);
		becomes(node, SPEC(2, GROUP("0-1")));
		is_content(node);
		(void)tear_down(&other);
	}
}

TEST_WITH(repairs_what_was_changed_by_hand, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL;
	json_auto_t *wipe =
		parse("{\"step\": {\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": 0}}");
	json_auto_t *mtu = parse("{\"step\": {\"step\": \"set-mtu\", \"device\": \"" VF1
				 "\", \"mtu\": 1400}}");

	becomes(node, SPEC(2, GROUP("0-1")));
	assert_true(execute(node, wipe));
	becomes(node, SPEC(2, GROUP("0-1")));
	is_content(node);
	assert_true(execute(node, mtu));
	becomes(node, SPEC(2, GROUP("0-1")));
	observed = look(node);
	assert_int_equal(json_integer_value(json_at(vf_of(observed, PF, 1), "mtu")), 9000);
}

/* ---- RDMA mode ------------------------------------------------------------------------------- */

#define MODE(m) "{\"system\": {\"rdmaMode\": \"" m "\"}}"

TEST_WITH(switches_the_rdma_mode_at_run_time_and_for_the_next_boot, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *observed = NULL, *later = NULL;

	becomes(node, MODE("exclusive"));
	is_content(node);
	observed = look(node);
	assert_string_equal(json_str_at(observed, "rdma", "netnsMode"), "exclusive");
	assert_string_equal(json_str_at(observed, "rdma", "netnsModeNextBoot", "own"), "exclusive");
	assert_null(json_at(node->plan, "reboot"));
	becomes(node, "{}");
	later = look(node);
	assert_string_equal(json_str_at(later, "rdma", "netnsMode"), "shared");
	assert_null(json_at(later, "rdma", "netnsModeNextBoot", "own"));
	assert_null(json_at(node->found, "rdma"));
}

TEST_WITH(asks_for_a_reboot_when_there_are_pods, set_up, tear_down)
{
	json_auto_t *spec = parse(MODE("exclusive"));
	struct node *node = *state;

	host_tree_set_namespaces(node->tree, 1);
	becomes(node, MODE("exclusive"));
	assert_int_equal(node->steps, 2); /* tried once, written once */
	assert_string_equal(json_str_at(node->plan, "reboot", "reason"), "RdmaModeNextBoot");
	/*
	 * The agent starts anew and has forgotten: it may try again, and asks for the reboot all
	 * the time.
	 */
	(void)json_array_clear(node->refused);
	plan(node, spec);
	assert_non_null(json_at(node->plan, "reboot"));
}

TEST_WITH(does_not_ask_twice_when_the_reboot_did_not_help, set_up, tear_down)
{
	struct node *node = *state;

	host_tree_set_namespaces(node->tree, 1);
	becomes(node, MODE("exclusive"));
	host_tree_file(node->tree, "proc/sys/kernel/random/boot_id",
		       "11111111-2222-3333-4444-555555555555\n");
	(void)json_array_clear(node->refused);
	becomes(node, MODE("exclusive"));
	assert_null(json_at(node->plan, "reboot"));
	assert_string_equal(first_reason(node, "problems"), "RdmaModeNotTaken");
}

TEST_WITH(names_what_overrules_the_next_boot, set_up, tear_down)
{
	struct node *node = *state;

	host_tree_set_namespaces(node->tree, 1);
	host_tree_file(node->tree, "proc/cmdline", "quiet ib_core.netns_mode=1\n");
	becomes(node, MODE("exclusive"));
	assert_null(json_at(node->plan, "reboot"));
	assert_string_equal(first_reason(node, "problems"), "NextBootOverruled");
	assert_non_null(
		strstr(json_str_at(json_array_get(json_at(node->plan, "problems"), 0), "message"),
		       "/proc/cmdline"));
}
