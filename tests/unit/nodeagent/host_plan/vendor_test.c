// SPDX-License-Identifier: Apache-2.0
/*
 * NICs of several vendors, from observing to the last step: what is done for the same policies, as
 * text that people can compare (tests/golden-plans). The kernel that plays each NIC refuses what
 * that NIC's driver refuses, so steps in a wrong order fail.
 */
#include "tests/support/test.h"

#include <string.h>

#include <fcntl.h>
#include <stdlib.h>

#include "cli/simulate/host/vendor_nics.h"
#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host_plan/attempts.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/worker/execute.h"

#define ROUNDS_MAX 8

#define SPEC(members) "{\"interfaces\": [{\"pciAddress\": \"" TREE_MLX "\", " members "}]}"
#define GROUP         "\"vfRange\": \"0-1\", \"resourceName\": \"fast\", \"deviceType\": \"netdevice\""

/* All that a profile has, and what a user may add. */
#define SETTINGS(more)                                                                             \
	"{\"nicSettings\": [{\"pciAddress\": \"" TREE_MLX                                          \
	"\", \"settings\": {\"trust\": \"dscp\", "                                                 \
	"\"dscpToPriority\": {\"26\": 3, \"48\": 6}, \"pfc\": [3], \"pauseFrames\": false, "       \
	"\"trafficClasses\": [{\"priorities\": [0, 1, 2, 4, 5, 7], \"bandwidth\": 50}, "           \
	"{\"priorities\": [3], \"bandwidth\": 50}, {\"priorities\": [6], \"strict\": true}], "     \
	"\"ecn\": [3], \"cnp\": {\"dscp\": 46}, \"rdmaCmTos\": 106, \"trafficClass\": 106, "       \
	"\"rings\": {\"rx\": 8192}, \"maxReadRequest\": 2048}" more "}]}"

static const struct policy {
	const char *title, *spec, *master;
	enum { PLAIN, SRIOV_OFF, OWN_DRIVER } nic; /* in the firmware; of mlx5: NVIDIA's own */
} policies[] = {
	{"two VFs for RDMA, MTU 9000",
	 SPEC("\"numVfs\": 2, \"mtu\": 9000, \"vfGroups\": [{" GROUP
	      ", \"isRdma\": true, \"mtu\": 9000}]"),
	 NULL, PLAIN},
	{"two VFs, eSwitchMode switchdev",
	 SPEC("\"numVfs\": 2, \"eSwitchMode\": \"switchdev\", \"vfGroups\": [{" GROUP "}]"), NULL,
	 PLAIN},
	{"200 VFs, orbweaver.io/allow-firmware",
	 SPEC("\"numVfs\": 200, \"allowFirmware\": true, \"vfGroups\": [{" GROUP "}]"), NULL,
	 PLAIN},
	{"SR-IOV is off, two VFs", SPEC("\"numVfs\": 2, \"vfGroups\": [{" GROUP "}]"), NULL,
	 SRIOV_OFF},
	{"SR-IOV is off, orbweaver.io/allow-firmware",
	 SPEC("\"numVfs\": 2, \"allowFirmware\": true, \"vfGroups\": [{" GROUP "}]"), NULL,
	 SRIOV_OFF},
	{"linkType ETH", SPEC("\"numVfs\": 2, \"linkType\": \"ETH\", \"vfGroups\": [{" GROUP "}]"),
	 NULL, PLAIN},
	{"linkType IB", SPEC("\"numVfs\": 2, \"linkType\": \"IB\", \"vfGroups\": [{" GROUP "}]"),
	 NULL, PLAIN},
	{"two VFs of a port of bond0", SPEC("\"numVfs\": 2, \"vfGroups\": [{" GROUP "}]"), "bond0",
	 PLAIN},
	{"the same, orbweaver.io/allow-lag-loss",
	 SPEC("\"numVfs\": 2, \"allowLagLoss\": true, \"vfGroups\": [{" GROUP "}]"), "bond0",
	 PLAIN},
	{"RoCE settings", SETTINGS(""), NULL, PLAIN},
	{"RoCE settings, the driver of the vendor", SETTINGS(""), NULL, OWN_DRIVER},
};

static json_t *plan_of(struct host *host, const char *text, const json_t *found,
		       const json_t *refused)
{
	json_auto_t *observed =
		host_observe(host, HOST_OBSERVE_HOLDERS | HOST_OBSERVE_SETTINGS, NULL);
	json_auto_t *spec = json_parse(text, strlen(text), NULL);
	json_auto_t *nobody = json_object();
	struct err err = {0};
	json_t *plan = planner_plan(&(struct planner_input){.spec = spec,
							    .observed = observed,
							    .found = found,
							    .held = nobody,
							    .refused = refused},
				    &err);

	if (!plan)
		fail_msg("%s: %s", err.reason, err.text);
	if (json_array_size(json_at(observed, "problems")))
		fail_msg("looking has problems: %s", json_text(json_at(observed, "problems")));
	return plan;
}

/* ---- a host with one NIC --------------------------------------------------------------------- */

static void read_nic(const char *name, struct vendor_nic *ret)
{
	struct err err = {0};

	if (vendor_nic_read(name, ret, &err) < 0)
		fail_msg("%s", err.text);
}

/*
 * With this NIC at TREE_MLX, its drivers and the modules of RDMA loaded, and no pod.
 *
 * master:   NULL, or the name of a bond that its interface is a port of
 * has_vfs:  false: its firmware has SR-IOV off
 * has_own_driver: NVIDIA's, with files for ECN and traffic classes
 */
static struct host_tree *nic_tree(const struct vendor_nic *nic, const char *master, bool has_vfs,
				  bool has_own_driver)
{
	static const char *const modules[] = {"mlx5_ib", "ib_uverbs", "rdma_ucm"};
	struct host_tree *tree = host_tree_new();
	auto_free char *driver = str_printf("sys/bus/pci/drivers/%s/x", nic->pf.vf_driver);
	json_auto_t *nobody = json_object();
	struct tree_firmware firmware = nic->firmware;
	struct tree_pf pf = nic->pf;

	if (!has_vfs) {
		pf.total = 0;
		firmware.is_on = false;
	}
	if (master)
		host_tree_add_interface(tree, master, "bond");
	pf.master = master;
	pf.has_vendor_files = has_own_driver;
	host_tree_add_pf(tree, &pf);
	host_tree_offer_firmware(tree, TREE_MLX, &firmware);
	host_tree_file(tree, driver, "");
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		auto_free char *path = str_printf("sys/module/%s/x", modules[i]);

		host_tree_file(tree, path, "");
	}
	host_set_held(host_tree_host(tree), nobody);
	return tree;
}

/* ---- as text --------------------------------------------------------------------------------- */

/* "1 set-num-vfs count=4 pf=0000:3b:00.0 (impact none): numVfs is 0, wanted 4" */
static void print_step(int round, const json_t *entry, struct strbuf *ret)
{
	json_auto_t *step = json_copy(json_at(entry, "step"));
	auto_free char *fields = NULL;

	strbuf_addf(ret, "%d %s ", round, json_str_at(step, "step"));
	(void)json_object_del(step, "step");
	fields = json_text(step);
	strbuf_addf(ret, "%s impact %s: %s\n", fields, json_str_at(entry, "impact"),
		    json_str_at(entry, "why"));
}

static void print_said(const json_t *plan, const char *list, struct strbuf *ret)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(plan, list), i, entry)
		strbuf_addf(ret, "%s %s: %s\n", list, json_str_at(entry, "reason"),
			    json_str_at(entry, "message"));
}

/* What became of it, for those who have the policy. */
static void print_end(struct host *host, struct strbuf *ret)
{
	json_auto_t *observed = host_observe(host, HOST_OBSERVE_HOLDERS, NULL);
	const json_t *pf = json_array_get(json_at(observed, "interfaces"), 0), *vf;
	size_t i;

	strbuf_addf(ret, "= eSwitchMode %s, %d VFs",
		    json_str_or(json_at(pf, "eSwitchMode"), "none"),
		    (int)json_integer_value(json_at(pf, "numVfs")));
	json_array_foreach (json_at(pf, "Vfs"), i, vf) {
		const json_t *mtu = json_at(vf, "mtu");

		if (i < 2)
			strbuf_addf(ret, "; %s: %s, MTU %d, %s", json_str_at(vf, "pciAddress"),
				    json_str_or(json_at(vf, "driver"), "no driver"),
				    (int)json_integer_value(mtu),
				    json_array_size(json_at(vf, "host", "rdma")) ? "RDMA"
										 : "no RDMA");
	}
	strbuf_adds(ret, "\n");
}

/* ---- the way of the agent -------------------------------------------------------------------- */

/* Until one is refused: what is behind it waits for the next plan. False: that was so. */
static bool execute_all(struct host *host, const json_t *plan, int round, json_t *refused,
			struct strbuf *text)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(plan, "steps"), i, entry) {
		json_t *step = json_at(entry, "step");
		json_auto_t *result = NULL;
		struct err err = {0};

		print_step(round, entry, text);
		if (host_execute(host, step, &result, &err) == 0)
			continue;
		strbuf_addf(text, "! %s: %s\n", err.reason, err.text);
		json_array_append(refused, step);
		return false;
	}
	return true;
}

static void follow(const struct vendor_nic *nic, const struct policy *policy, struct strbuf *text)
{
	struct host_tree *tree =
		nic_tree(nic, policy->master, policy->nic != SRIOV_OFF, policy->nic == OWN_DRIVER);
	struct host *host = host_tree_host(tree);
	json_auto_t *refused = json_array(), *found = NULL;
	json_t *plan = plan_of(host, policy->spec, NULL, refused);
	int round = 0;

	host_allow_firmware(host);
	found = json_incref(json_at(plan, "found"));
	strbuf_addf(text, "\n== %s\n", policy->title);
	/* What VFs are like is known once they are there: a second plan. */
	while (json_array_size(json_at(plan, "steps")) > 0) {
		if (++round > ROUNDS_MAX)
			fail_msg("%s, %s: no end: %s", nic->title, policy->title, strbuf_str(text));
		(void)execute_all(host, plan, round, refused, text);
		json_decref(plan);
		plan = plan_of(host, policy->spec, found, refused);
	}
	print_said(plan, "problems", text);
	print_said(plan, "blocked", text);
	print_end(host, text);
	json_decref(plan);
	host_tree_free(tree);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* The plans as people read them, one file for each NIC. UPDATE=1 writes it. */
static void compare(const char *name, const struct strbuf *plans)
{
	auto_free char *path = str_printf("tests/golden-plans/%s.txt", name);
	auto_strbuf struct strbuf want = {0};
	struct err err = {0};

	if (getenv("UPDATE")) {
		assert_int_equal(
			fs_write_atomic(AT_FDCWD, path, plans->data, plans->len, 0644, &err), 0);
		return;
	}
	if (fs_read(AT_FDCWD, path, 1 << 20, &want, &err) < 0)
		fail_msg("%s", err.text);
	if (!str_eq(strbuf_str(&want), strbuf_str(plans)))
		fail_msg("the plans for %s are not %s (UPDATE=1 %s writes it):\n%s", name, path,
			 "build/asan/tests/unit/nodeagent/host_plan/vendor_test",
			 strbuf_str(plans));
}

TEST(steps_of_every_vendor_come_to_rest)
{
	for (size_t n = 0; vendor_nic_names[n]; n++) {
		auto_strbuf struct strbuf text = {0};
		struct vendor_nic nic;

		read_nic(vendor_nic_names[n], &nic);
		strbuf_addf(&text, "%s (%s:%s, %s), Linux %s: cli/simulate/host/nics/%s.json\n",
			    nic.title, nic.pf.vendor, nic.pf.device, nic.pf.driver, nic.kernel,
			    vendor_nic_names[n]);
		for (size_t i = 0; i < ARRAY_LEN(policies); i++)
			if (policies[i].nic != OWN_DRIVER ||
			    (str_eq(nic.pf.driver, "mlx5_core") && !nic.pf.is_ib))
				follow(&nic, &policies[i], &text);
		compare(vendor_nic_names[n], &text);
		vendor_nic_done(&nic);
	}
}

/* ---- a mode that is refused for good --------------------------------------------------------- */

#define MINUTE_MS 60000

/* How often there was something to do, VFs were made, and a VF got a driver. */
struct done {
	int rounds, made, drivers;
};

static void has_vfs_with_drivers(struct host *host, size_t vfs, size_t drivers)
{
	json_auto_t *observed = host_observe(host, HOST_OBSERVE_HOLDERS, NULL);
	const json_t *pf = json_array_get(json_at(observed, "interfaces"), 0), *vf;
	size_t i, n = 0;

	json_array_foreach (json_at(pf, "Vfs"), i, vf)
		n += json_at(vf, "driver") != NULL;
	if (json_array_size(json_at(pf, "Vfs")) != vfs || n != drivers)
		fail_msg("not %zu VFs, %zu with drivers: %s", vfs, drivers, json_text(pf));
}

static bool is_told(const struct attempts *attempts, const char *reason)
{
	json_auto_t *failures = attempts_failures(attempts);
	const json_t *failure;
	size_t i;

	json_array_foreach (failures, i, failure)
		if (str_eq(json_str_at(failure, "reason"), reason))
			return true;
	return false;
}

/* Until one fails. */
static void attempt_all(struct host *host, const json_t *plan, struct attempts *attempts,
			int64_t now_ms, struct done *done)
{
	const json_t *entry;
	size_t i;

	done->rounds++;
	json_array_foreach (json_at(plan, "steps"), i, entry) {
		json_t *step = json_at(entry, "step");
		json_auto_t *result = NULL;
		struct err err = {0};

		if (host_execute(host, step, &result, &err) < 0 ||
		    attempts_step_succeeded(attempts, entry, now_ms, &err) < 0) {
			(void)attempts_step_failed(attempts, entry, &err, now_ms,
						   (int)(now_ms % 1000));
			return;
		}
		done->made += str_eq(json_str_at(step, "step"), "set-num-vfs") &&
			      json_integer_value(json_at(step, "count")) > 0;
		done->drivers += str_eq(json_str_at(step, "step"), "probe-driver");
	}
}

/* As the agent does it: what is no longer needed is forgotten first, what waits is left out. */
static json_t *plan_after(struct host *host, const char *spec, const json_t *found,
			  struct attempts *attempts, int64_t now_ms)
{
	json_auto_t *all = plan_of(host, spec, found, NULL), *refused = NULL;

	attempts_keep_steps(attempts, json_at(all, "steps"), now_ms);
	refused = attempts_refused(attempts, now_ms);
	return plan_of(host, spec, found, refused);
}

/* Until then, or until nothing waits and nothing is to be done. */
static struct done run_until(struct host *host, const char *spec, struct attempts *attempts,
			     int64_t end_ms)
{
	struct done done = {0};
	json_auto_t *first = plan_of(host, spec, NULL, NULL);
	int64_t now = 0;

	while (now < end_ms) {
		json_auto_t *plan = plan_after(host, spec, json_at(first, "found"), attempts, now);

		if (json_array_size(json_at(plan, "steps")) > 0)
			attempt_all(host, plan, attempts, now, &done);
		else
			now = attempts_next_ms(attempts, now);
	}
	return done;
}

/* Neither before its VFs nor after them. They are not made again and again for it. */
TEST(vfs_are_left_alone_where_no_order_sets_the_switch)
{
	struct attempts *attempts = attempts_new();
	struct vendor_nic nic;
	struct host_tree *tree;
	struct done done;

	read_nic("e810", &nic);
	nic.pf.eswitch = TREE_ESWITCH_NONE;
	tree = nic_tree(&nic, NULL, true, false);
	done = run_until(host_tree_host(tree), policies[1].spec, attempts, (int64_t)20 * MINUTE_MS);
	assert_in_range(done.made, 1, 2);
	assert_int_equal(done.drivers, 0);
	/* It was tried all the time, with pauses that grow. */
	assert_in_range(done.rounds, 8, 30);
	assert_true(is_told(attempts, "ESwitchRefused"));
	assert_false(is_told(attempts, "StepDoesNotLast"));
	attempts_free(attempts);
	host_tree_free(tree);
	vendor_nic_done(&nic);
}

/* ice takes no mode in the other order, which is tried then: the first one gets its turn again. */
TEST(a_switch_that_refused_once_is_set_a_little_later)
{
	bool is_over = false;

	for (int n = 1; !is_over; n++) {
		struct attempts *attempts = attempts_new();
		struct vendor_nic nic;
		struct host_tree *tree;

		read_nic("e810", &nic);
		tree = nic_tree(&nic, NULL, true, false);
		host_tree_fail_at(tree, n);
		(void)run_until(host_tree_host(tree), policies[1].spec, attempts,
				(int64_t)2 * MINUTE_MS);
		has_vfs_with_drivers(host_tree_host(tree), 2, 2);
		is_over = host_tree_changes(tree) < n;
		attempts_free(attempts);
		host_tree_free(tree);
		vendor_nic_done(&nic);
	}
}

/* bnxt_en says that it did, and the look afterwards that it did not; bnx2x refuses. */
TEST(no_vfs_of_broadcom_while_the_link_is_down)
{
	static const struct {
		const char *nic, *reason;
	} cases[] = {{"bcm57508", "NotAsAsked"}, {"bcm57810", "VfCountRefused"}};
	json_auto_t *step =
		json_pack("{s:s, s:s, s:i}", "step", "set-num-vfs", "pf", TREE_MLX, "count", 2);
	json_auto_t *up = json_pack("{s:s, s:s}", "step", "link-up", "device", TREE_MLX);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *failed = NULL, *is_up = NULL, *done = NULL;
		struct vendor_nic nic;
		struct host_tree *tree;
		struct err err = {0};

		read_nic(cases[i].nic, &nic);
		tree = nic_tree(&nic, NULL, true, false);
		assert_int_equal(host_execute(host_tree_host(tree), step, &failed, &err), -1);
		assert_string_equal(err.reason, cases[i].reason);
		assert_int_equal(host_execute(host_tree_host(tree), up, &is_up, &err), 0);
		assert_int_equal(host_execute(host_tree_host(tree), step, &done, &err), 0);
		host_tree_free(tree);
		vendor_nic_done(&nic);
	}
}
