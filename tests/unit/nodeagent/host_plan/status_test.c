// SPDX-License-Identifier: Apache-2.0
/*
 * NodeState.status: what is said in which situation, and that nothing is said anew when nothing
 * changed.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/status.h"
#include "tests/support/reasons.h"
#include "tests/support/yaml.h"

#define NOW   "2026-01-31T10:00:00Z"
#define LATER "2026-01-31T11:00:00Z"

static const char *const types[] = {"Ready", "Progressing", "Degraded", "Blocked",
				    "RebootRequired"};

/* The status, when its conditions are such as may be. */
static json_t *compose_kept(const struct status_input *input)
{
	json_t *status = status_compose(input);

	conditions_keep_the_rule(json_at(status, "conditions"));
	return status;
}

/* JSON with ' for "; NULL for NULL. */
static json_t *compose(const char *plan_text, const char *failures_text, const char *activity,
		       const json_t *before, const char *now)
{
	json_auto_t *plan = yaml(plan_text), *failures = yaml(failures_text);
	json_auto_t *observed = yaml("{'node': {'links': ['bond0', 'ens1']}, "
				     "'interfaces': [{'pciAddress': '0000:3b:00.0', 'Vfs': "
				     "[{'vfID': 0, 'host': {}}], 'host': {'ifindex': 2}}], "
				     "'rdma': {'netnsMode': 'shared'}, 'problems': []}");

	return compose_kept(&(struct status_input){.generation = 7,
						   .observed = plan ? observed : NULL,
						   .plan = plan,
						   .failures = failures,
						   .activity = activity,
						   .before = before,
						   .now = now});
}

#define NOTHING "'steps': [], 'blocked': [], 'problems': [], 'vfs': {'wanted': 4, 'present': 4}"
#define STEP(pf)                                                                                   \
	"{'step': {'step': 'set-num-vfs'}, 'pf': '" pf                                             \
	"', 'impact': 'none', 'why': 'numVfs is 0, wanted 4'}"
#define FAILURE(pf)                                                                                \
	"[{'pf': '" pf "', 'reason': 'VfCountRefused', 'message': 'the kernel said no'}]"

TEST(says_in_each_situation_what_is_the_case)
{
	static const struct {
		const char *plan, *failures, *activity;
		const char *sync, *states; /* of types[] */
		const char *ready, *error;
	} cases[] = {
		{NULL, NULL, NULL, "InProgress", "UTFFF", "NotLookedYet", NULL},
		{NULL, FAILURE("0000:3b:00.0"), NULL, "Failed", "FFTFF", "VfCountRefused",
		 "0000:3b:00.0: the kernel said no"},
		{"{" NOTHING "}", NULL, NULL, "Succeeded", "TFFFF", "AsWanted", NULL},
		{"{" NOTHING "}", "[]", "set-mtu", "InProgress", "FTFFF", "Working", NULL},
		{"{'steps': [" STEP("0000:3b:00.0") "]}", NULL, NULL, "InProgress", "FTFFF",
		 "Working", NULL},
		/* Tried again: still failed. */
		{"{'steps': [" STEP("0000:3b:00.0") "]}", FAILURE("0000:3b:00.0"), "set-num-vfs",
		 "Failed", "FFTFF", "VfCountRefused", "0000:3b:00.0: the kernel said no"},
		/* Another PF goes on. */
		{"{'steps': [" STEP("0000:5e:00.0") "]}", FAILURE("0000:3b:00.0"), NULL, "Failed",
		 "FTTFF", "VfCountRefused", "0000:3b:00.0: the kernel said no"},
		{"{'problems': [{'reason': 'NoSriov', 'message': 'it has no SR-IOV'}]}", NULL, NULL,
		 "Failed", "FFTFF", "NoSriov", "it has no SR-IOV"},
		{"{'blocked': [{'pf': '0000:3b:00.0', 'vf': '0000:3c:00.0', 'reason': 'VfInUse', "
		 "'holder': 'lab/a', 'message': 'VF 0000:3c:00.0 is held by lab/a'}]}",
		 NULL, NULL, "InProgress", "FFFTF", "VfInUse", NULL},
		{"{'reboot': {'reason': 'RdmaModeNextBoot', 'message': 'reboot the node'}}", NULL,
		 NULL, "InProgress", "FFFFT", "RdmaModeNextBoot", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *status =
			compose(cases[i].plan, cases[i].failures, cases[i].activity, NULL, NOW);
		const json_t *list = json_at(status, "conditions");
		char states[ARRAY_LEN(types) + 1] = "";

		for (size_t t = 0; t < ARRAY_LEN(types); t++) {
			const json_t *condition = condition_find(list, types[t]);

			assert_true(condition_is_whole(condition));
			assert_int_equal(
				json_integer_value(json_at(condition, "observedGeneration")), 7);
			assert_true(strlen(json_str_at(condition, "message")) > 0);
			states[t] = condition_status_of(list, types[t])[0];
		}
		assert_string_equal(states, cases[i].states);
		assert_string_equal(json_str_at(status, "syncStatus"), cases[i].sync);
		assert_string_equal(json_str_at(condition_find(list, "Ready"), "reason"),
				    cases[i].ready);
		if (!str_eq(json_str_at(status, "lastSyncError"), cases[i].error))
			fail_msg("case %zu: %s", i, json_text(status));
	}
}

TEST(says_whether_pods_get_networks)
{
	json_auto_t *plan = yaml("{" NOTHING "}"), *observed = yaml("{'interfaces': []}");
	json_auto_t *kept = yaml("{serves: true, fault: false, reason: PluginsKept, message: m}");
	json_auto_t *bad = yaml("{serves: false, fault: true, reason: BadProfile, message: m}");
	struct status_input in = {
		.generation = 7, .observed = observed, .plan = plan, .networks = kept, .now = NOW};
	json_auto_t *well = compose_kept(&in), *wrong = NULL, *later = NULL;
	const json_t *list = json_at(well, "conditions");

	assert_string_equal(condition_status_of(list, "PodNetworks"), "True");
	assert_string_equal(condition_status_of(list, "Degraded"), "False");
	in.networks = bad;
	wrong = compose_kept(&in);
	list = json_at(wrong, "conditions");
	assert_string_equal(condition_status_of(list, "PodNetworks"), "False");
	assert_string_equal(json_str_at(condition_find(list, "Degraded"), "reason"), "BadProfile");
	/* VFs and resources do not depend on it. */
	assert_string_equal(condition_status_of(list, "Ready"), "True");
	assert_string_equal(json_str_at(wrong, "syncStatus"), "Succeeded");
	/* Before the server has said anything the condition stays. */
	in.networks = NULL;
	in.before = wrong;
	later = compose_kept(&in);
	assert_string_equal(condition_status_of(json_at(later, "conditions"), "PodNetworks"),
			    "False");
}

TEST(says_how_the_links_are)
{
	json_auto_t *plan = yaml("{" NOTHING "}"), *observed = yaml("{'interfaces': []}");
	json_auto_t *well = yaml("{bootID: b, ports: [{pciAddress: '0000:3b:00.0', verdict: "
				 "healthy, reason: LinkHealthy, message: m}]}");
	json_auto_t *lost =
		yaml("{bootID: b, ports: [{pciAddress: '0000:3b:00.0', verdict: failed, "
		     "reason: LinkDown, message: ens1 has no link}]}");
	struct status_input in = {
		.generation = 7, .observed = observed, .plan = plan, .links = well, .now = NOW};
	json_auto_t *first = compose_kept(&in), *second = NULL, *third = NULL;
	const json_t *list = json_at(first, "conditions");

	assert_string_equal(condition_status_of(list, "LinksHealthy"), "True");
	assert_true(json_same(json_at(first, "linkHealth"), well));
	in.links = lost;
	in.before = first;
	second = compose_kept(&in);
	list = json_at(second, "conditions");
	assert_string_equal(condition_status_of(list, "LinksHealthy"), "False");
	assert_string_equal(json_str_at(condition_find(list, "LinksHealthy"), "reason"),
			    "LinkDown");
	assert_string_equal(json_str_at(condition_find(list, "LinksHealthy"), "message"),
			    "0000:3b:00.0: ens1 has no link");
	/* What the agent does is done all the same. */
	assert_string_equal(condition_status_of(list, "Ready"), "True");
	/* Nothing is wanted any more. */
	in.links = NULL;
	in.before = second;
	third = compose_kept(&in);
	assert_null(json_at(third, "linkHealth"));
	assert_null(condition_find(json_at(third, "conditions"), "LinksHealthy"));
}

TEST(host_findings_stay_until_the_host_was_read)
{
	json_auto_t *before = yaml("{hostFindings: [{level: info, reason: IrqBalance}]}");
	json_auto_t *none = json_array(), *one = yaml("[{level: warning, reason: MemlockLow}]");
	const struct {
		const json_t *found, *want;
	} rows[] = {{NULL, json_at(before, "hostFindings")}, {none, NULL}, {one, one}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *status = compose_kept(&(struct status_input){
			.before = before, .host_findings = rows[i].found, .now = NOW});

		assert_true(json_same(json_at(status, "hostFindings"), rows[i].want));
	}
}

TEST(lists_each_problem_with_the_nic_that_it_is_about)
{
	json_auto_t *plan = yaml(
		"{'problems': [{'pf': '0000:5e:00.0', 'reason': 'NoSriov', 'message': 'none'}], "
		"'blocked': [{'pf': '0000:3b:00.0', 'vf': '0000:3c:00.0', 'reason': 'VfInUse', "
		"'holder': 'lab/a', 'message': 'held'}], "
		"'reboot': {'reason': 'RdmaModeNextBoot', 'message': 'reboot the node'}}");
	json_auto_t *want =
		yaml("[{'type': 'Degraded', 'pciAddress': '0000:5e:00.0', 'reason': 'NoSriov', "
		     "'message': 'none'}, {'type': 'Blocked', 'pciAddress': "
		     "'0000:3b:00.0', 'reason': 'VfInUse', 'message': 'held'}, "
		     "{'type': 'RebootRequired', 'reason': 'RdmaModeNextBoot', 'message': "
		     "'reboot the node'}]");
	json_auto_t *status =
		compose_kept(&(struct status_input){.generation = 7, .plan = plan, .now = NOW});
	json_auto_t *well = compose("{" NOTHING "}", NULL, NULL, status, NOW);

	if (!json_same(json_at(status, "problems"), want))
		fail_msg("%s", json_text(json_at(status, "problems")));
	assert_null(json_at(well, "problems"));
}

TEST(many_held_vfs_of_one_nic_leave_room_for_the_others)
{
	json_t *blocked = json_array();
	json_auto_t *plan = json_pack("{s:o}", "blocked", blocked);

	for (int i = 0; i < 65; i++)
		json_array_append_new(blocked, json_pack("{s:s, s:s, s:s}", "pf",
							 i < 64 ? "0000:3b:00.0" : "0000:5e:00.0",
							 "reason", "VfInUse", "message", "held"));
	json_auto_t *status =
		compose_kept(&(struct status_input){.generation = 7, .plan = plan, .now = NOW});
	const json_t *problems = json_at(status, "problems");

	assert_int_equal(json_array_size(problems), 32);
	assert_non_null(json_find(problems, "pciAddress", "0000:5e:00.0"));
}

TEST(says_what_is_wrong_with_a_configuration_without_failing)
{
	json_auto_t *plan = yaml("{" NOTHING "}");
	json_auto_t *offers = yaml("[{'reason': 'BadField', 'message': 'rdmaHcaMax: -5'}]");
	json_auto_t *status = compose_kept(&(struct status_input){
		.generation = 7, .plan = plan, .offers = offers, .now = NOW});
	const json_t *list = json_at(status, "conditions");

	assert_string_equal(json_str_at(status, "syncStatus"), "Succeeded");
	assert_string_equal(condition_status_of(list, "Ready"), "True");
	assert_string_equal(condition_status_of(list, "Degraded"), "True");
	assert_string_equal(json_str_at(condition_find(list, "Degraded"), "reason"), "BadField");
	assert_null(json_at(status, "problems"));
}

TEST(says_what_the_container_lacks_without_failing)
{
	json_auto_t *plan = yaml("{" NOTHING "}");
	json_auto_t *unfit = yaml("[{'reason': 'MountPrivate', 'message': 'volumeMount /host'}]");
	json_auto_t *status = compose_kept(&(struct status_input){
		.generation = 7, .plan = plan, .container = unfit, .now = NOW});
	const json_t *list = json_at(status, "conditions");

	assert_string_equal(json_str_at(status, "syncStatus"), "Succeeded");
	assert_string_equal(condition_status_of(list, "Ready"), "True");
	assert_string_equal(condition_status_of(list, "Degraded"), "True");
	assert_string_equal(json_str_at(condition_find(list, "Degraded"), "reason"),
			    "MountPrivate");
	assert_string_equal(json_str_at(condition_find(list, "Degraded"), "message"),
			    "volumeMount /host");
}

TEST(shows_what_is_gone_for_a_moment_as_it_was)
{
	json_auto_t *observed = yaml(
		"{'interfaces': [{'pciAddress': '0000:3b:00.0', 'host': {}}, {'pciAddress': "
		"'0000:86:00.0', 'host': {}}], 'missing': [{'pciAddress': '0000:af:00.0', "
		"'host': {'missingMs': 2}}, {'pciAddress': '0000:5e:00.0', 'numVfs': 1, 'Vfs': "
		"[{'vfID': 0, 'host': {}}], 'host': {'missingMs': 1}}]}");
	json_auto_t *plan = yaml("{'problems': [{'pf': '0000:5e:00.0', 'reason': 'PfMissing', "
				 "'message': 'ens2 was there and has vanished'}]}");
	json_auto_t *want = yaml("[{'pciAddress': '0000:3b:00.0'}, {'pciAddress': '0000:5e:00.0', "
				 "'numVfs': 1, 'Vfs': [{'vfID': 0}]}, {'pciAddress': "
				 "'0000:86:00.0'}, {'pciAddress': '0000:af:00.0'}]");
	json_auto_t *status = compose_kept(&(struct status_input){
		.generation = 7, .observed = observed, .plan = plan, .now = NOW});
	const json_t *degraded = condition_find(json_at(status, "conditions"), "Degraded");

	assert_true(json_same(json_at(status, "interfaces"), want));
	assert_string_equal(json_str_at(degraded, "reason"), "PfMissing");
	assert_string_equal(json_str_at(degraded, "message"),
			    "0000:5e:00.0: ens2 was there and has vanished");
}

TEST(shows_what_was_observed_without_what_is_ours)
{
	json_auto_t *status = compose("{" NOTHING "}", NULL, NULL, NULL, NOW);
	json_auto_t *want = yaml("[{'pciAddress': '0000:3b:00.0', 'Vfs': [{'vfID': 0}]}]");

	assert_true(json_same(json_at(status, "interfaces"), want));
	assert_string_equal(json_str_at(status, "system", "rdmaMode"), "shared");
	assert_string_equal(json_string_value(json_array_get(json_at(status, "links"), 1)), "ens1");
	assert_int_equal(json_integer_value(json_at(status, "observedGeneration")), 7);
	assert_int_equal(json_integer_value(json_at(status, "wantedVfs")), 4);
	assert_int_equal(json_integer_value(json_at(status, "presentVfs")), 4);
}

TEST(is_the_same_when_nothing_changed)
{
	json_auto_t *first = compose("{" NOTHING "}", NULL, NULL, NULL, NOW);
	json_auto_t *again = compose("{" NOTHING "}", NULL, NULL, first, LATER);
	json_auto_t *failed = compose("{" NOTHING "}", FAILURE("x"), NULL, again, LATER);
	json_auto_t *well = compose("{" NOTHING "}", NULL, NULL, failed, LATER);

	assert_true(json_same(first, again));
	assert_string_equal(json_str_at(condition_find(json_at(failed, "conditions"), "Ready"),
					"lastTransitionTime"),
			    LATER);
	assert_string_equal(json_str_at(condition_find(json_at(failed, "conditions"), "Blocked"),
					"lastTransitionTime"),
			    NOW);
	assert_null(json_at(well, "lastSyncError"));
}

TEST(lists_what_is_attached_by_interface)
{
	json_auto_t *attached = yaml(
		"[{'pod': {'namespace': 'lab', 'name': 'a'}, 'ifname': 'net1', 'network': 'rail0',"
		"  'plugin': 'sriov', 'phase': 'added', 'device': '0000:3b:00.2', 'mac': '02:00'},"
		" {'pod': {'namespace': 'lab', 'name': 'a'}, 'ifname': 'net1', 'network': 'rail0',"
		"  'plugin': 'spiderpool', 'phase': 'added', 'addresses': ['10.0.0.1/8']},"
		" {'pod': {'namespace': 'lab', 'name': 'a'}, 'ifname': 'net1', 'network': 'rail0',"
		"  'plugin': 'rdma', 'phase': 'added', 'rdmaDevice': 'mlx5_4'},"
		" {'pod': {'namespace': 'lab', 'name': 'b'}, 'ifname': 'net1', 'phase': "
		"'adding'}]");
	json_auto_t *want =
		yaml("[{'pod': 'lab/a', 'interface': 'net1', 'network': 'rail0',"
		     "  'device': '0000:3b:00.2', 'rdmaDevice': 'mlx5_4', 'mac': '02:00',"
		     "  'addresses': ['10.0.0.1/8']}]");
	json_auto_t *none = yaml("[]");
	json_auto_t *some =
		compose_kept(&(struct status_input){.attachments = attached, .now = NOW});
	json_auto_t *unknown = compose_kept(&(struct status_input){.before = some, .now = NOW});
	json_auto_t *gone = status_compose(
		&(struct status_input){.attachments = none, .before = some, .now = NOW});

	assert_true(json_same(json_at(some, "attachments"), want));
	assert_true(json_same(json_at(unknown, "attachments"), want));
	assert_null(json_at(gone, "attachments"));
}

/* Those of its own interface, where an address is at two devices; and not without end. */
TEST(tells_the_gids_of_what_is_attached)
{
	json_auto_t *attached = yaml(
		"[{'pod': {'namespace': 'lab', 'name': 'a'}, 'ifname': 'net1', 'phase': 'added',"
		"  'addresses': ['10.0.0.1/8', 'fd00::1/64']},"
		" {'pod': {'namespace': 'lab', 'name': 'a'}, 'ifname': 'net2', 'phase': 'added',"
		"  'addresses': ['10.0.0.2/8']},"
		" {'pod': {'namespace': 'lab', 'name': 'a'}, 'ifname': 'net3', 'phase': 'added',"
		"  'addresses': ['10.0.0.3/8']}]");
	json_auto_t *gids = yaml(
		"{'10.0.0.1': ["
		"  {'device': 'mlx5_0', 'port': 1, 'index': 4, 'version': 2, 'netdev': 'net7'},"
		"  {'device': 'mlx5_1', 'port': 1, 'index': 12, 'version': 2, 'netdev': 'net1'}],"
		" '10.0.0.2': ["
		"  {'device': 'mlx5_0', 'port': 1, 'index': 6, 'version': 2, 'netdev': 'ens1'}],"
		" '10.0.0.3': ["
		"  {'device': 'a', 'port': 1, 'index': 1, 'version': 2}, {'device': 'b'},"
		"  {'device': 'c'}, {'device': 'd'}, {'device': 'e'}]}");
	json_auto_t *one = yaml("[{'device': 'mlx5_1', 'port': 1, 'index': 12, 'version': 2,"
				"  'address': '10.0.0.1'}]");
	json_auto_t *two = yaml("[{'device': 'mlx5_0', 'port': 1, 'index': 6, 'version': 2,"
				"  'address': '10.0.0.2'}]");
	json_auto_t *status = status_compose(
		&(struct status_input){.attachments = attached, .gids = gids, .now = NOW});
	json_auto_t *unknown =
		status_compose(&(struct status_input){.attachments = attached, .now = NOW});
	const json_t *list = json_at(status, "attachments");

	assert_true(json_same(json_at(json_array_get(list, 0), "gids"), one));
	assert_true(json_same(json_at(json_array_get(list, 1), "gids"), two));
	assert_int_equal(json_array_size(json_at(json_array_get(list, 2), "gids")), 4);
	assert_null(json_at(json_array_get(json_at(unknown, "attachments"), 0), "gids"));
}

TEST(keeps_what_it_does_not_know)
{
	json_auto_t *before = yaml("{'interfaces': [{'pciAddress': '0000:3b:00.0'}], "
				   "'presentVfs': 4, 'bridges': {'ovs': []}, 'newer': 1, "
				   "'resources': [], 'system': {'rdmaMode': 'shared', 'x': 1}, "
				   "'conditions': [{'type': 'Drained', 'status': 'True'}]}");
	json_auto_t *blind = compose(NULL, NULL, NULL, before, NOW);
	json_auto_t *status = compose("{" NOTHING "}", NULL, NULL, before, NOW);

	assert_true(json_same(json_at(blind, "interfaces"), json_at(before, "interfaces")));
	assert_int_equal(json_integer_value(json_at(blind, "presentVfs")), 4);
	assert_non_null(json_at(status, "bridges", "ovs"));
	assert_int_equal(json_integer_value(json_at(status, "newer")), 1);
	assert_int_equal(json_integer_value(json_at(status, "system", "x")), 1);
	assert_null(json_at(status, "resources"));
	assert_non_null(condition_find(json_at(status, "conditions"), "Drained"));
	assert_non_null(condition_find(json_at(status, "conditions"), "Ready"));
}

TEST(tells_the_first_troubles_and_counts_the_others)
{
	auto_strbuf struct strbuf plan = {0};
	json_auto_t *status = NULL;
	const char *error;

	strbuf_adds(&plan, "{'problems': [");
	for (int i = 0; i < 100; i++)
		strbuf_addf(&plan,
			    "%s{'pf': 'p%d', 'reason': 'NoSriov', 'message': \"line\\n%0900d\"}",
			    i ? ", " : "", i, 0);
	strbuf_adds(&plan, "]}");
	status = compose(strbuf_str(&plan), NULL, NULL, NULL, NOW);
	error = json_str_at(status, "lastSyncError");
	assert_true(strlen(error) <= CONDITION_MESSAGE_MAX);
	assert_true(str_starts(error, "p0: line 000"));
	assert_non_null(strstr(error, "; p2: "));
	assert_true(str_ends(error, "; and 97 more"));
}

TEST(takes_no_reason_that_the_api_server_would_refuse)
{
	static const char *const reasons[] = {"''", "'two words'", "7", "'7up'", "null"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		auto_free char *failures =
			str_printf("[{'reason': %s, 'message': 'm'}]", reasons[i]);
		json_auto_t *status = compose("{" NOTHING "}", failures, NULL, NULL, NOW);

		assert_string_equal(
			json_str_at(condition_find(json_at(status, "conditions"), "Ready"),
				    "reason"),
			"Unspecified");
	}
}

/* What could not be looked at is told, and is no reason to call the node wrong. */
TEST(tells_what_could_not_be_looked_at)
{
	json_auto_t *plan = yaml("{" NOTHING "}");
	json_auto_t *observed = yaml("{'interfaces': [], 'problems': [{'pciAddress': "
				     "'0000:3b:00.0', 'reason': 'NetlinkRefused', 'message': "
				     "'devlink says no'}]}");
	json_auto_t *status = status_compose(
		&(struct status_input){.observed = observed, .plan = plan, .now = NOW});
	const json_t *degraded = condition_find(json_at(status, "conditions"), "Degraded");

	assert_string_equal(json_str_at(status, "syncStatus"), "Succeeded");
	assert_string_equal(json_str_at(degraded, "status"), "True");
	assert_string_equal(json_str_at(degraded, "message"), "0000:3b:00.0: devlink says no");
	assert_null(json_at(status, "observedGeneration"));
}

TEST(says_that_nothing_is_in_the_way)
{
	json_auto_t *status = compose("{" NOTHING "}", NULL, NULL, NULL, NOW);
	const json_t *list = json_at(status, "conditions");

	assert_string_equal(json_str_at(condition_find(list, "Blocked"), "reason"),
			    "NothingBlocked");
	assert_string_equal(json_str_at(condition_find(list, "RebootRequired"), "reason"),
			    "NoRebootNeeded");
}

TEST(names_the_version_that_wrote_it)
{
	json_auto_t *before = yaml("{'agentVersion': '1.0'}");
	json_auto_t *status = status_compose(
		&(struct status_input){.before = before, .now = NOW, .version = "1.1"});

	assert_string_equal(json_str_at(status, "agentVersion"), "1.1");
}

TEST(names_the_pod_that_it_is_in_and_takes_back_that_it_was_away)
{
	json_auto_t *before = yaml("{'agentPod': 'a-1', 'agentSilentSince': 'then'}");
	json_auto_t *status =
		status_compose(&(struct status_input){.before = before, .now = NOW, .pod = "a-2"});
	json_auto_t *by_hand = status_compose(&(struct status_input){.before = before, .now = NOW});

	assert_string_equal(json_str_at(status, "agentPod"), "a-2");
	assert_null(json_at(status, "agentSilentSince"));
	assert_null(json_at(by_hand, "agentPod"));
}

TEST(what_the_next_boot_changes_is_no_fault)
{
	json_auto_t *status = compose(
		"{'nextBoot': {'reason': 'RdmaModeAtNextBoot', 'message': 'it becomes shared'}}",
		"[{'pf': 'rdma', 'reason': 'RdmaModeBusy', 'message': 'pods'}]", NULL, NULL, NOW);
	const json_t *condition = condition_find(json_at(status, "conditions"), "RebootRequired");

	assert_string_equal(json_str_at(status, "syncStatus"), "Succeeded");
	assert_string_equal(json_str_at(condition, "status"), "False");
	assert_string_equal(json_str_at(condition, "reason"), "RdmaModeAtNextBoot");
	assert_string_equal(json_str_at(condition, "message"), "it becomes shared");
	assert_null(json_at(status, "problems"));
}

TEST(why_no_boot_comes_is_said_before_that_one_is_needed)
{
	static const char *const reasons[] = {"RebootDidNotHelp", "RebootsTooOften",
					      "BootsUnreadable"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		auto_free char *plan = str_printf(
			"{'problems': [{'reason': '%s', 'message': 'see the file'}]}", reasons[i]);
		json_auto_t *status = compose(
			plan, "[{'reason': 'RdmaModeBusy', 'message': 'pods'}]", NULL, NULL, NOW);
		const json_t *degraded = condition_find(json_at(status, "conditions"), "Degraded");

		assert_string_equal(json_str_at(degraded, "reason"), reasons[i]);
		assert_string_equal(json_str_at(degraded, "message"), "see the file");
		assert_int_equal(json_array_size(json_at(status, "problems")), 1);
	}
}
