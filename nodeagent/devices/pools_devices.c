// SPDX-License-Identifier: Apache-2.0
/*
 * Character device pools, as smarter-device-manager has them: each name below /dev that a pattern
 * matches becomes a resource with a number of interchangeable tokens.
 */
#include <ctype.h>
#include <string.h>

#include "lib/base/pattern.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "nodeagent/devices/pools_internal.h"

#define PREFIX "smarter-devices"

static const char SOURCE[] = POOLS_SOURCE_DEV_FILES;

/* ---- reading --------------------------------------------------------------------------------- */

static int check_pattern(const char *text, const char *where, struct err *err)
{
	struct pattern *pattern;
	struct err why = {0};

	/* There it is not a pattern, but a search for platform devices in sysfs. */
	if (str_eq(text, "nvidia-gpu"))
		return err_set(err, ERR_INVALID, "BadField",
			       "%s.devicematch: nvidia-gpu is not supported; GPUs have a device "
			       "plugin of their own",
			       where);
	pattern = pattern_new(text, &why);
	if (!pattern)
		return err_set(err, ERR_INVALID, "BadDeviceList", "%s.devicematch: \"%s\": %s",
			       where, text, why.text);
	pattern_free(pattern);
	return 0;
}

static json_t *read_entry(const json_t *value, const char *where, json_t *problems, struct err *err)
{
	static const char *const known[] = {"devicematch", "nummaxdevices", NULL};
	json_auto_t *entry = pools_fold_keys(value, known, where, problems);
	const char *pattern;
	int64_t count;

	if (json_get_str(entry, where, "devicematch", "", &pattern, err) < 0 ||
	    json_get_int(entry, where, "nummaxdevices", 0, POOLS_TOKENS_MAX, 0, &count, err) < 0)
		return NULL;
	if (!*pattern) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "%s.devicematch: is empty, must be a regular expression over names "
			      "below /dev",
			      where);
		return NULL;
	}
	if (check_pattern(pattern, where, err) < 0)
		return NULL;
	return json_pack("{s:s,s:I}", "devicematch", pattern, "nummaxdevices", (json_int_t)count);
}

json_t *pools_read_dev_files(const char *text, size_t len, struct err *err)
{
	static const char *const known[] = {"devices", NULL};
	static const struct pools_format format = {
		.what = "the list of device files",
		.reason = "BadDeviceList",
		.known = known,
		.list = "devices",
		.read = read_entry,
	};
	struct err inner = {0};
	/* As smarter-device-manager reads it. */
	json_auto_t *documents = yaml_parse_as_kubectl(text, len, NULL, &inner);
	size_t n = json_array_size(documents);
	json_auto_t *raw =
		n == 1 ? json_pack("{s:O}", "devices", json_array_get(documents, 0)) : NULL;

	if (documents && n != 1)
		(void)err_set(&inner, ERR_INVALID, "BadYaml",
			      "there are %zu documents, there must be exactly one", n);
	return pools_read_document(&format, raw, &inner, err);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void offer_device(struct pools *pools, const char *device, int64_t count)
{
	auto_free char *name = str_dup(device);
	struct pool *pool;

	/* "snd/timer" → "snd_timer" */
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
			*c = '_';
	pool = pools_need(pools, PREFIX, name, "devices", SOURCE, false);
	if (!pool)
		return;
	pool->wanted = count;
	json_put(pool->resource, "nodes", json_pack("[o]", json_fmt("/dev/%s", device)));
	pools_add_tokens(pools, pool, count, true, true);
}

/* The first entry that matches a name counts. */
static void add_entry(struct pools *pools, const json_t *entry, struct map *taken)
{
	int64_t count = json_integer_value(json_at(entry, "nummaxdevices"));
	const char *match = json_str_or(json_at(entry, "devicematch"), "");
	struct pattern *pattern = pattern_new(match, NULL);
	bool is_known = json_is_array(pools->input->dev_names), matches = false;
	json_t *item;
	size_t i;

	if (!pattern)
		return;
	json_array_foreach ((json_t *)pools->input->dev_names, i, item) {
		const char *device = json_string_value(item);

		if (str_empty(device) || *device == '/' || strstr(device, "..") ||
		    !pattern_matches(pattern, device))
			continue;
		matches = true;
		if (map_get(taken, device))
			continue;
		if (taken->len == POOLS_ENTRIES_MAX) {
			pools_problem(pools, NULL, "TooManyDevices",
				      "%s: matches more than %d names below /dev; \"%s\" and what "
				      "follows is left out; anchor the patterns with ^ and $",
				      SOURCE, POOLS_ENTRIES_MAX, device);
			break;
		}
		map_set(taken, device, item);
		offer_device(pools, device, count);
	}
	pattern_free(pattern);
	if (is_known && !matches)
		pools_problem(pools, NULL, "NothingSelected",
			      "%s: devicematch \"%.200s\" matches no name below /dev: correct it, "
			      "or keep the entry off this node",
			      SOURCE, match);
}

void pools_from_dev_files(struct pools *pools)
{
	auto_call(map_done) struct map taken = {0};
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(pools->input->dev_files, "devices"), i, entry)
		add_entry(pools, entry, &taken);
}
