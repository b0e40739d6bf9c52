// SPDX-License-Identifier: Apache-2.0
/*
 * The upstream plugin's configuration as users bring it: every entry checked, and refused by the
 * name of the field where we could not do what it asks.
 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"
#include "nodeagent/devices/pools_list.h"

#define SELECTORS_MAX 64

/* ---- "#0,4-7" -------------------------------------------------------------------------------- */

size_t pools_list_name_len(const char *text)
{
	return strcspn(text, "#");
}

int pools_list_indexes(const char *rest, int64_t number, bool *ret_hit)
{
	bool hit = *rest == '\0';
	const char *part = rest + 1;

	assert(*rest == '\0' || *rest == '#');
	while (*rest) {
		size_t len = strcspn(part, ",");
		const char *dash = memchr(part, '-', len);
		auto_free char *from = str_ndup(part, dash ? (size_t)(dash - part) : len);
		auto_free char *to =
			dash ? str_ndup(dash + 1, (size_t)(part + len - dash - 1)) : str_dup(from);
		int64_t first, last;

		if (!str_to_int(from, 0, POOLS_VFS_MAX, &first) ||
		    !str_to_int(to, 0, POOLS_VFS_MAX, &last))
			return -1;
		hit = hit || (number >= first && number <= last);
		if (part[len] == '\0')
			break;
		part += len + 1;
	}
	*ret_hit = hit;
	return 0;
}

/* ---- selectors ------------------------------------------------------------------------------- */

/* Only the first item of a PF counts; a second one would silently select nothing. */
static int check_repeats(const json_t *list, size_t at, const char *where, const char *key,
			 struct err *err)
{
	const char *text = json_str_or(json_array_get(list, at), "");
	size_t len = pools_list_name_len(text);

	for (size_t i = 0; i < at; i++) {
		const char *other = json_str_or(json_array_get(list, i), "");

		if (pools_list_name_len(other) == len && strncasecmp(other, text, len) == 0)
			return err_set(
				err, ERR_INVALID, "BadField",
				"%s.%s: \"%.64s\" comes after \"%.64s\" and would not count; "
				"write one item, like \"%.*s#0,4-7\"",
				where, key, text, other, (int)(len > 64 ? 64 : len), text);
	}
	return 0;
}

static int check_indexed(const json_t *selector, const char *where, const char *key,
			 struct err *err)
{
	const json_t *list = json_at(selector, key);
	json_t *item;
	size_t i;

	if (pools_check_strings(selector, where, key, err) < 0)
		return -1;
	json_array_foreach ((json_t *)list, i, item) {
		const char *text = json_string_value(item);
		bool hit;

		if (pools_list_indexes(text + pools_list_name_len(text), 0, &hit) < 0)
			return err_set(err, ERR_INVALID, "BadField",
				       "%s.%s: \"%.128s\" is malformed, must be like \"ens1f0\" or "
				       "\"ens1f0#0,4-7\"",
				       where, key, text);
		if (check_repeats(list, i, where, key, err) < 0)
			return -1;
	}
	return 0;
}

/* What we know nothing of on the host: selecting without it would select too much. */
static int check_unsupported(const json_t *selector, const char *where, struct err *err)
{
	static const struct {
		const char *key, *instead;
	} rows[] = {
		{"ddpProfiles", "take it out, or select by pciAddresses"},
		{"pKeys", "take it out, or select by pfNames"},
		{"acpiIndexes", "select by pciAddresses"},
		{"vdpaType", "vDPA devices are not offered"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const json_t *value = json_at(selector, rows[i].key);

		if (!value || (json_is_array(value) && json_array_size(value) == 0) ||
		    str_eq(json_string_value(value), ""))
			continue;
		return err_set(err, ERR_INVALID, "BadField", "%s.%s: is not supported; %s", where,
			       rows[i].key, rows[i].instead);
	}
	return 0;
}

static json_t *read_selector(const json_t *value, const char *where, json_t *problems,
			     struct err *err)
{
	static const char *const known[] = {
		"vendors",     "devices",     "drivers",  "pciAddresses", "pfNames",
		"rootDevices", "linkTypes",   "isRdma",   "needVhostNet", "ddpProfiles",
		"pKeys",       "acpiIndexes", "vdpaType", "auxTypes",     NULL};
	static const char *const lists[] = {"vendors", "devices", "drivers", "pciAddresses",
					    "linkTypes"};
	json_auto_t *selector = pools_fold_keys(value, known, where, problems);
	bool flag;

	if (!json_is_object(value)) {
		(void)err_set(err, ERR_INVALID, "BadField", "%s: is %s, must be an object", where,
			      json_type_words(value));
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (pools_check_strings(selector, where, lists[i], err) < 0)
			return NULL;
	if (check_indexed(selector, where, "pfNames", err) < 0 ||
	    check_indexed(selector, where, "rootDevices", err) < 0 ||
	    json_get_bool(selector, where, "isRdma", false, &flag, err) < 0 ||
	    json_get_bool(selector, where, "needVhostNet", false, &flag, err) < 0 ||
	    check_unsupported(selector, where, err) < 0)
		return NULL;
	return take_ptr(selector);
}

static json_t *read_selectors(const json_t *entry, const char *where, json_t *problems,
			      struct err *err)
{
	json_auto_t *list = json_incref(json_at(entry, "selectors")), *ret = json_array();

	if (json_is_object(list)) {
		json_t *single = list;

		list = json_pack("[o]", single);
	}
	if (!json_is_array(list) || json_array_size(list) == 0 ||
	    json_array_size(list) > SELECTORS_MAX) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "%s.selectors: must be an object, or a list of 1 to %d objects; {} "
			      "selects all",
			      where, SELECTORS_MAX);
		return NULL;
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		auto_free char *at = str_printf("%s.selectors[%zu]", where, i);
		json_t *selector = read_selector(json_array_get(list, i), at, problems, err);

		if (!selector)
			return NULL;
		json_array_append_new(ret, selector);
	}
	return take_ptr(ret);
}

/* ---- entries --------------------------------------------------------------------------------- */

static int check_device_type(const json_t *entry, const char *where, struct err *err)
{
	const char *type;

	if (json_get_str(entry, where, "deviceType", "netDevice", &type, err) < 0)
		return -1;
	if (*type == '\0' || str_eq(type, "netDevice"))
		return 0;
	if (str_eq(type, "accelerator") || str_eq(type, "auxNetDevice"))
		return err_set(err, ERR_INVALID, "BadField",
			       "%s.deviceType: %s is not supported, only netDevice is", where,
			       type);
	return err_set(err, ERR_INVALID, "BadField",
		       "%s.deviceType: \"%.64s\" is unknown, must be netDevice", where, type);
}

static int check_additional_info(const json_t *entry, const char *where, struct err *err)
{
	const json_t *all;
	const char *device, *key;
	json_t *info, *value;

	if (json_get_object(entry, where, "additionalInfo", &all, err) < 0)
		return -1;
	json_each (all, device, info) {
		if (!json_is_object(info))
			return err_set(
				err, ERR_INVALID, "BadField",
				"%s.additionalInfo.%.64s: is %s, must be an object of strings",
				where, device, json_type_words(info));
		json_each (info, key, value)
			if (!json_is_string(value))
				return err_set(
					err, ERR_INVALID, "BadField",
					"%s.additionalInfo.%.64s.%.64s: is %s, must be a string",
					where, device, key, json_type_words(value));
	}
	return 0;
}

static json_t *read_entry(const json_t *value, const char *where, json_t *problems, struct err *err)
{
	/* The SR-IOV operator writes a "SelectorObj": null, which means nothing. */
	static const char *const known[] = {
		"resourceName", "resourcePrefix", "deviceType",  "excludeTopology",
		"selectors",    "additionalInfo", "SelectorObj", NULL};
	json_auto_t *entry = pools_fold_keys(value, known, where, problems);
	const char *name, *prefix;
	json_t *selectors;
	bool flag;

	if (json_get_str(entry, where, "resourceName", "", &name, err) < 0 ||
	    json_get_str(entry, where, "resourcePrefix", "", &prefix, err) < 0 ||
	    json_get_bool(entry, where, "excludeTopology", false, &flag, err) < 0 ||
	    check_device_type(entry, where, err) < 0 ||
	    check_additional_info(entry, where, err) < 0)
		return NULL;
	selectors = read_selectors(entry, where, problems, err);
	if (!selectors)
		return NULL;
	json_put(entry, "selectors", selectors);
	return take_ptr(entry);
}

json_t *pools_read_resource_list(const char *text, size_t len, struct err *err)
{
	static const char *const known[] = {"resourceList", NULL};
	static const struct pools_format format = {
		.what = "the SR-IOV device plugin's configuration",
		.reason = "BadResourceList",
		.known = known,
		.list = "resourceList",
		.read = read_entry,
	};
	struct err inner = {0};
	json_auto_t *raw = json_parse(text, len, &inner);

	return pools_read_document(&format, raw, &inner, err);
}
