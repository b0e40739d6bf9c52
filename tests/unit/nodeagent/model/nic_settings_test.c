// SPDX-License-Identifier: Apache-2.0
/* Settings of NICs: which values are right, what a wrong one is told, and when a wish is met. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/model/nic_settings.h"
#include "tests/support/yaml.h"

#define EIGHT "[{priorities: [0, 1, 2, 4, 5, 6, 7], "

static const struct {
	const char *name, *value;
	const char *error; /* begins so; NULL: it is right */
} values[] = {
	{"pauseFrames", "true", NULL},
	{"pauseFrames", "{rx: true, tx: false}", NULL},
	{"pauseFrames", "{rx: true, tx: true}", "pauseFrames: "},
	{"pauseFrames", "1", "pauseFrames: 1, must be true or false"},
	{"pauseFrames", NULL, "pauseFrames: is missing, must be true or false"},
	{"trust", "dscp", NULL},
	{"trust", "DSCP", "trust: \"DSCP\", must be pcp or dscp"},
	{"pfc", "[]", NULL},
	{"pfc", "[0, 3, 7]", NULL},
	{"pfc", "[3, 0]", "pfc: [3,0], must be an array of priorities from 0 to 7, ascending"},
	{"pfc", "[3, 3]", "pfc: [3,3], must"},
	{"pfc", "[8]", "pfc: [8], must"},
	{"pfc", "{}", "pfc: {}, must"},
	{"ecn", "[3]", NULL},
	{"ecn", "[-1]", "ecn: [-1], must"},
	{"dscpToPriority", "{}", NULL},
	{"dscpToPriority", "{'0': 7, '26': 3, '63': 0}", NULL},
	{"dscpToPriority", "{'64': 3}", "dscpToPriority: {\"64\":3}, must be an object with DSCPs"},
	{"dscpToPriority", "{'06': 3}", "dscpToPriority: "},
	{"dscpToPriority", "{'-0': 3}", "dscpToPriority: "},
	{"dscpToPriority", "{'26': 8}", "dscpToPriority: "},
	{"dscpToPriority", "[3]", "dscpToPriority: "},
	{"trafficClasses", EIGHT "bandwidth: 50}, {priorities: [3], bandwidth: 50}]", NULL},
	{"trafficClasses", EIGHT "bandwidth: 100}, {priorities: [3], strict: true}]", NULL},
	{"trafficClasses", "[{priorities: [0, 1, 2, 3, 4, 5, 6, 7], vendor: true}]", NULL},
	{"trafficClasses",
	 EIGHT "strict: true}, {priorities: [], strict: true}, {priorities: [3], strict: true}]",
	 NULL},
	{"trafficClasses", EIGHT "bandwidth: 50}, {priorities: [3], bandwidth: 40}]",
	 "trafficClasses: [{\"bandwidth\":50,"},
	{"trafficClasses", EIGHT "bandwidth: 0}, {priorities: [3], strict: true}]",
	 "trafficClasses: "},
	{"trafficClasses", EIGHT "strict: true}]", "trafficClasses: "},
	{"trafficClasses", EIGHT "strict: true}, {priorities: [2, 3], strict: true}]",
	 "trafficClasses: "},
	{"trafficClasses", EIGHT "strict: false}, {priorities: [3], strict: true}]",
	 "trafficClasses: "},
	{"trafficClasses", EIGHT "strict: true, x: 1}, {priorities: [3], strict: true}]",
	 "trafficClasses: "},
	{"trafficClasses", "[]", "trafficClasses: "},
	{"trafficClasses",
	 EIGHT "strict: true}, {priorities: [3], strict: true}, {priorities: [], strict: true}]",
	 "trafficClasses: "},
	{"buffers", "{sizes: [16384, 1, 2, 3, 4, 5, 6, 7], priorities: [0, 1, 2, 3, 4, 5, 6, 7]}",
	 NULL},
	{"buffers", "{sizes: [16384], priorities: [0, 1, 2, 3, 4, 5, 6, 7]}", "buffers: "},
	{"buffers", "{sizes: [0, 1, 2, 3, 4, 5, 6, 7], priorities: [0, 1, 2, 3, 4, 5, 6, 8]}",
	 "buffers: "},
	{"cnp", "{dscp: 48}", NULL},
	{"cnp", "{dscp: 48, priority: 6}", NULL},
	{"cnp", "{priority: 8}", "cnp: {\"priority\":8}, must be an object with dscp (0 to 63)"},
	{"cnp", "{}", "cnp: {}, must"},
	{"cnp", "{dscp: 48, other: 1}", "cnp: "},
	{"rdmaCmRoceMode", "v2", NULL},
	{"rdmaCmRoceMode", "v3", "rdmaCmRoceMode: \"v3\", must be v1 or v2"},
	{"rdmaCmTos", "106", NULL},
	{"rdmaCmTos", "-1", "rdmaCmTos: -1, must be an integer from 0 to 255"},
	{"trafficClass", "-1", NULL},
	{"trafficClass", "256", "trafficClass: 256, must be"},
	{"rings", "{rx: 8192}", NULL},
	{"rings", "{rx: 0}", "rings: {\"rx\":0}, must be"},
	{"channels", "{combined: 63}", NULL},
	{"channels", "{rx: 4}", "channels: {\"rx\":4}, must be"},
	{"maxReadRequest", "4096", NULL},
	{"maxReadRequest", "1000", "maxReadRequest: 1000, must be one of 128, 256"},
	{"maxReadRequest", "8192", "maxReadRequest: 8192, must be"},
	{"relaxedOrdering", "false", NULL},
	{"relaxed", "false", "there is no setting \"relaxed\""},
};

TEST(a_value_is_right_or_told_what_is)
{
	size_t n, known = 0;
	const struct nic_setting *all = nic_settings(&n);

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		auto_free char *text = str_printf("v: %s", values[i].value ? values[i].value : "");
		json_auto_t *doc = yaml(text);
		struct err err = {0};
		int code = nic_setting_check(values[i].name, json_at(doc, "v"), &err);

		if ((code == 0) != !values[i].error ||
		    (code < 0 &&
		     (!str_starts(err.text, values[i].error) || !str_eq(err.reason, "BadSetting"))))
			fail_msg("%s: %s: %s", values[i].name, values[i].value, err.text);
	}
	/* Each has a row that is right. */
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < ARRAY_LEN(values); i++)
			if (str_eq(all[k].name, values[i].name) && !values[i].error) {
				known++;
				break;
			}
	assert_int_equal(known, n);
	assert_null(nic_setting_find(NULL));
}

TEST(settings_that_exclude_each_other_are_refused)
{
	static const struct {
		const char *settings, *error;
	} rows[] = {
		{"{}", NULL},
		{"{pfc: [3], pauseFrames: false, trust: dscp, dscpToPriority: {'26': 3}}", NULL},
		{"{pfc: [], pauseFrames: true, trust: pcp, dscpToPriority: {}}", NULL},
		{"{pfc: [3], pauseFrames: true}", "pauseFrames: true, must be false or absent"},
		{"{trust: pcp, dscpToPriority: {'26': 3}}", "trust: pcp, must be dscp where"},
		{"{trust: dscp, dscpToPriority: {}}", "trust: dscp, must be dscp where"},
		{"{ecn: [9]}", "ecn: [9], must be"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *settings = yaml(rows[i].settings);
		struct err err = {0};
		int code = nic_settings_check(settings, &err);

		if ((code == 0) != !rows[i].error ||
		    (code < 0 && !str_starts(err.text, rows[i].error)))
			fail_msg("%s: %s", rows[i].settings, err.text);
	}
}

TEST(a_wish_is_met_by_what_it_names)
{
	json_auto_t *is = yaml("{rings: {rx: 8192, tx: 512}, dscpToPriority: {'26': 3, '48': 6}}");
	json_auto_t *want = yaml("{rings: {rx: 8192}, dscpToPriority: {'26': 3}, more: {rx: 1}}");

	assert_true(nic_setting_is_met("rings", json_at(want, "rings"), json_at(is, "rings")));
	assert_false(nic_setting_is_met("rings", json_at(want, "more"), json_at(is, "rings")));
	/* Of DSCPs those that are not named have no entry. */
	assert_false(nic_setting_is_met("dscpToPriority", json_at(want, "dscpToPriority"),
					json_at(is, "dscpToPriority")));
	assert_true(nic_setting_is_met("dscpToPriority", json_at(is, "dscpToPriority"),
				       json_at(is, "dscpToPriority")));
	assert_false(nic_setting_is_met("rings", NULL, json_at(is, "rings")));
	assert_false(nic_setting_is_met("rings", json_at(want, "rings"), NULL));
}

TEST(which_changes_take_the_link_down_depends_on_the_driver)
{
	assert_true(nic_setting_disturbs("pfc", "mlx5_core"));
	assert_true(nic_setting_disturbs("rings", "mlx5_core"));
	assert_false(nic_setting_disturbs("trust", "mlx5_core"));
	assert_true(nic_setting_disturbs("trust", "ice"));
	/* Unknown takes the safe side. */
	assert_true(nic_setting_disturbs("trafficClasses", NULL));
	assert_false(nic_setting_disturbs("rdmaCmTos", NULL));
}

/* Sets what is due, as the planner and the kernel do; how often until nothing is. */
static int settle_dscps(const json_t *wanted, json_t *found, json_t *now)
{
	for (int n = 0; n < 5; n++) {
		json_auto_t *due = nic_settings_due(wanted, found, now, "mlx5_core", NULL);
		json_t *one;
		size_t i;

		if (json_array_size(due) == 0)
			return n;
		json_array_foreach (due, i, one) {
			json_auto_t *table = json_incref(json_at(now, "dscpToPriority"));
			json_t *value = json_at(one, "value");

			if (json_is_true(json_at(one, "wanted")))
				json_object_update_missing(found, json_at(one, "found"));
			if (json_is_object(value))
				json_replace(&table, json_incref(value));
			else if (str_eq(json_string_value(value), "pcp"))
				json_replace(&table, json_object());
			else if (json_object_size(table) == 0)
				json_replace(&table, yaml("{'0': 0, '26': 3}"));
			json_object_set(now, "dscpToPriority", table);
			json_put_str(now, "trust", json_object_size(table) ? "dscp" : "pcp");
		}
	}
	return -1;
}

TEST(trust_and_priorities_of_dscps_do_not_undo_each_other)
{
	static const char *const before[] = {"{trust: pcp, dscpToPriority: {}}",
					     "{trust: dscp, dscpToPriority: {'10': 2}}"};
	static const char *const wishes[] = {"{trust: dscp, dscpToPriority: {'26': 3}}",
					     "{trust: dscp}", "{dscpToPriority: {'48': 6}}",
					     "{trust: pcp}", "{dscpToPriority: {}}"};

	for (size_t i = 0; i < ARRAY_LEN(before) * ARRAY_LEN(wishes) * ARRAY_LEN(wishes); i++) {
		json_auto_t *first = yaml(before[i % 2]), *now = json_copy(first);
		json_auto_t *found = json_object(), *none = json_object();
		json_auto_t *one = yaml(wishes[i / 2 % 5]), *other = yaml(wishes[i / 10]);
		const json_t *in_turn[] = {one, other, none};

		for (size_t k = 0; k < ARRAY_LEN(in_turn); k++)
			if (settle_dscps(in_turn[k], found, now) < 0)
				fail_msg("%s, %s, %s: endless", before[i % 2], wishes[i / 2 % 5],
					 wishes[i / 10]);
		/* What was found is there again. */
		assert_true(json_same(now, first));
		assert_int_equal(json_object_size(found), 0);
	}
}
