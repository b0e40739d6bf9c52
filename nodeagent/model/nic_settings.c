// SPDX-License-Identifier: Apache-2.0
/*
 * The table of settings, and a check for each form of value. Input is what users and profiles say,
 * and what steps carry; the same check serves both.
 */
#include "nodeagent/model/nic_settings.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define PRIORITIES "an array of priorities from 0 to 7, ascending"
#define RINGS_MAX  65535

static const struct nic_setting settings[] = {
	{.name = "pauseFrames",
	 .right = "true or false, or an object with rx and tx that differ",
	 .disturbs = DISTURBS_BUT_MLX5},
	{.name = "dscpToPriority",
	 .right = "an object with DSCPs from 0 to 63 as keys, each a priority from 0 to 7",
	 .disturbs = DISTURBS_BUT_MLX5},
	{.name = "trust", .right = "pcp or dscp", .disturbs = DISTURBS_BUT_MLX5},
	{.name = "trafficClasses",
	 .disturbs = DISTURBS_BUT_MLX5,
	 .right = "an array of 1 to 8 objects with priorities (ascending, each of 0 to 7 in one of "
		  "them), and either bandwidth (percent; 100 in all), or strict or vendor (true)"},
	{.name = "pfc", .right = PRIORITIES, .disturbs = DISTURBS},
	{.name = "buffers",
	 .right = "an object with sizes (8 of bytes), and priorities (8 of buffers from 0 to 7)",
	 .disturbs = DISTURBS},
	{.name = "ecn", .right = PRIORITIES},
	{.name = "cnp",
	 .right = "an object with dscp (0 to 63), priority (0 to 7), or both",
	 .in_part = true},
	{.name = "rdmaCmRoceMode", .right = "v1 or v2"},
	{.name = "rdmaCmTos", .right = "an integer from 0 to 255"},
	{.name = "trafficClass", .right = "an integer from 0 to 255, or -1: none"},
	{.name = "rings",
	 .right = "an object with rx, tx (1 to 65535), or both",
	 .disturbs = DISTURBS,
	 .in_part = true},
	{.name = "channels",
	 .right = "an object with combined (1 to 4096)",
	 .disturbs = DISTURBS,
	 .in_part = true},
	{.name = "maxReadRequest", .right = "one of 128, 256, 512, 1024, 2048, 4096"},
	{.name = "relaxedOrdering", .right = "true or false"},
};

const struct nic_setting *nic_settings(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(settings);
	return settings;
}

const struct nic_setting *nic_setting_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (str_eq(settings[i].name, name))
			return &settings[i];
	return NULL;
}

/* ---- forms of values ------------------------------------------------------------------------- */

static bool is_within(const json_t *value, json_int_t min, json_int_t max)
{
	return json_is_integer(value) && json_integer_value(value) >= min &&
	       json_integer_value(value) <= max;
}

static bool is_one_of(const json_t *value, const char *one, const char *other)
{
	return str_eq(json_string_value(value), one) || str_eq(json_string_value(value), other);
}

/* An integer for some of these members, and nothing else. */
static bool is_object_of(const json_t *value, const char *one, json_int_t one_max,
			 const char *other, json_int_t other_max, json_int_t min)
{
	const char *key;
	json_t *member;

	json_each (value, key, member)
		if (!(str_eq(key, one) && is_within(member, min, one_max)) &&
		    !(str_eq(key, other) && is_within(member, min, other_max)))
			return false;
	return json_object_size(value) > 0;
}

static bool are_priorities(const json_t *value)
{
	json_int_t least = 0;
	json_t *item;
	size_t i;

	json_array_foreach (value, i, item) {
		if (!is_within(item, least, NIC_SETTING_PRIORITIES - 1))
			return false;
		least = json_integer_value(item) + 1;
	}
	return json_is_array(value);
}

static bool are_eight(const json_t *value, json_int_t max)
{
	json_t *item;
	size_t i;

	json_array_foreach (value, i, item)
		if (!is_within(item, 0, max))
			return false;
	return json_array_size(value) == NIC_SETTING_PRIORITIES;
}

static bool are_dscps(const json_t *value)
{
	const char *key;
	json_t *member;
	int64_t dscp;

	json_each (value, key, member)
		/* A DSCP has one key: "08" is not a second one. */
		if (!str_to_int(key, 0, NIC_SETTING_DSCPS - 1, &dscp) || key[0] < '0' ||
		    (key[0] == '0' && key[1]) || !is_within(member, 0, NIC_SETTING_PRIORITIES - 1))
			return false;
	return json_is_object(value);
}

/* Of the bandwidth that strict classes leave, the others have all. */
static bool are_classes(const json_t *value)
{
	size_t i, j, given = 0;
	json_int_t percent = 0;
	bool is_shared = false, is_last_used = false;
	unsigned int seen = 0;
	json_t *class, *priority;

	json_array_foreach (value, i, class) {
		const json_t *priorities = json_at(class, "priorities");
		const json_t *bandwidth = json_at(class, "bandwidth");

		if (json_object_size(class) != 2 || !are_priorities(priorities) ||
		    !(bandwidth ? is_within(bandwidth, 0, 100)
				: json_is_true(json_at(class, "strict")) ||
					  json_is_true(json_at(class, "vendor"))))
			return false;
		json_array_foreach (priorities, j, priority)
			seen |= 1U << json_integer_value(priority);
		given += json_array_size(priorities);
		percent += json_integer_value(bandwidth);
		is_shared |= bandwidth != NULL;
		is_last_used = json_array_size(priorities) > 0 || json_integer_value(bandwidth) > 0;
	}
	return is_last_used && json_array_size(value) <= NIC_SETTING_PRIORITIES && seen == 0xff &&
	       given == NIC_SETTING_PRIORITIES && (!is_shared || percent == 100);
}

static bool value_is_right(const char *name, const json_t *value)
{
	if (str_eq(name, "pauseFrames") && json_object_size(value) == 2)
		return json_is_boolean(json_at(value, "rx")) &&
		       json_is_boolean(json_at(value, "tx")) &&
		       !json_same(json_at(value, "rx"), json_at(value, "tx"));
	if (str_eq(name, "pauseFrames") || str_eq(name, "relaxedOrdering"))
		return json_is_boolean(value);
	if (str_eq(name, "dscpToPriority"))
		return are_dscps(value);
	if (str_eq(name, "trust"))
		return is_one_of(value, "pcp", "dscp");
	if (str_eq(name, "trafficClasses"))
		return are_classes(value);
	if (str_eq(name, "pfc") || str_eq(name, "ecn"))
		return are_priorities(value);
	if (str_eq(name, "buffers"))
		return json_object_size(value) == 2 &&
		       are_eight(json_at(value, "sizes"), INT32_MAX) &&
		       are_eight(json_at(value, "priorities"), NIC_SETTING_PRIORITIES - 1);
	if (str_eq(name, "cnp"))
		return is_object_of(value, "dscp", NIC_SETTING_DSCPS - 1, "priority",
				    NIC_SETTING_PRIORITIES - 1, 0);
	if (str_eq(name, "rdmaCmRoceMode"))
		return is_one_of(value, "v1", "v2");
	if (str_eq(name, "rings"))
		return is_object_of(value, "rx", RINGS_MAX, "tx", RINGS_MAX, 1);
	if (str_eq(name, "channels"))
		return is_object_of(value, "combined", 4096, "", 0, 1);
	if (str_eq(name, "maxReadRequest"))
		return is_within(value, 128, 4096) &&
		       (json_integer_value(value) & (json_integer_value(value) - 1)) == 0;
	return is_within(value, str_eq(name, "trafficClass") ? -1 : 0, 255);
}

int nic_setting_check(const char *name, const json_t *value, struct err *err)
{
	const struct nic_setting *setting = nic_setting_find(name);
	auto_free char *text = value ? json_text(value) : NULL;

	if (!setting)
		return err_set(err, ERR_INVALID, "BadSetting", "there is no setting \"%.64s\"",
			       name ? name : "");
	if (value && value_is_right(name, value))
		return 0;
	return err_set(err, ERR_INVALID, "BadSetting", "%s: %.120s, must be %s", name,
		       text ? text : "is missing", setting->right);
}

int nic_settings_check(const json_t *all, struct err *err)
{
	const char *name;
	json_t *value;

	json_each (all, name, value)
		if (nic_setting_check(name, value, err) < 0)
			return -1;
	if (json_is_true(json_at(all, "pauseFrames")) && json_array_size(json_at(all, "pfc")) > 0)
		return err_set(err, ERR_INVALID, "BadSetting",
			       "pauseFrames: true, must be false or absent where pfc has "
			       "priorities: a link has one of both");
	value = json_at(all, "dscpToPriority");
	if (value && json_at(all, "trust") &&
	    (json_object_size(value) > 0) != str_eq(json_str_at(all, "trust"), "dscp"))
		return err_set(err, ERR_INVALID, "BadSetting",
			       "trust: %s, must be dscp where dscpToPriority has entries, and pcp "
			       "where it has none: drivers switch by these entries",
			       json_str_at(all, "trust"));
	return 0;
}

bool nic_setting_disturbs(const char *name, const char *driver)
{
	const struct nic_setting *setting = nic_setting_find(name);

	assert(setting);
	return setting->disturbs == DISTURBS ||
	       (setting->disturbs == DISTURBS_BUT_MLX5 && !str_eq(driver, "mlx5_core"));
}

bool nic_setting_is_met(const char *name, const json_t *wanted, const json_t *is)
{
	const struct nic_setting *setting = nic_setting_find(name);
	const char *key;
	json_t *member;

	assert(setting);
	if (!wanted || !is)
		return false;
	if (!setting->in_part)
		return json_same(wanted, is);
	json_each (wanted, key, member)
		if (!json_same(member, json_object_get(is, key)))
			return false;
	return json_is_object(is);
}

json_t *nic_settings_due(const json_t *wanted, json_t *found, const json_t *now, const char *driver,
			 struct err *err)
{
	json_t *due;

	assert(json_is_object(found));
	if (nic_settings_check(wanted, err) < 0)
		return NULL;
	due = json_array();
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		const char *name = settings[i].name;
		/* Trust follows from the table, which is what is put back. */
		const char *kept = str_eq(name, "trust") ? "dscpToPriority" : name;
		json_t *is = json_at(now, name), *want = json_at(wanted, name);
		json_t *was = json_object_get(found, name), *to = want ? want : was;
		json_t *before = json_at(now, kept);

		if (was && !want && str_eq(name, "dscpToPriority") && json_at(wanted, "trust"))
			continue;
		if (was && !want &&
		    (nic_setting_check(name, was, NULL) < 0 || nic_setting_is_met(name, was, is)))
			(void)json_object_del(found, name);
		else if (to && is && before && !nic_setting_is_met(name, to, is))
			json_array_append_new(due, json_pack("{s:s, s:O, s:O, s:b, s:b, s:{s:O}}",
							     "setting", name, "value", to, "is", is,
							     "wanted", want != NULL, "takesLink",
							     nic_setting_disturbs(name, driver),
							     "found", kept, before));
	}
	return due;
}
