// SPDX-License-Identifier: Apache-2.0
/*
 * A configuration that was edited badly: entries that cannot be read any more go on as they were,
 * at the place where they are. So do those that could be read only without a key that is unknown:
 * a misspelt one leaves its field at the default, and the count of a pool at 0.
 *
 * The name of a bad entry shows which one it was before. One whose name cannot be read may be any
 * that is missing, so that all of those stay: nothing is taken from a running cluster on a guess.
 */
#include "nodeagent/devices/pools.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

static json_t *entries_of(const json_t *document)
{
	static const char *const lists[] = {"resourceList", "configList", "devices"};
	json_t *entries = NULL;

	for (size_t i = 0; i < ARRAY_LEN(lists) && !entries; i++)
		entries = json_at(document, lists[i]);
	return entries;
}

static bool is_same_text(const json_t *a, const json_t *b, const char *key)
{
	return str_eq(json_str_or(json_at(a, key), ""), json_str_or(json_at(b, key), ""));
}

/* Of the same name, right or wrong in the rest. */
static bool is_same_entry(const json_t *entry, const json_t *old)
{
	return is_same_text(entry, old, "resourceName") &&
	       is_same_text(entry, old, "resourcePrefix") &&
	       is_same_text(entry, old, "devicematch");
}

static bool is_there(const json_t *entries, const json_t *old)
{
	json_t *entry;
	size_t i;

	json_array_foreach ((json_t *)entries, i, entry)
		if (is_same_entry(entry, old))
			return true;
	return false;
}

/* A prefix that is not given is the default, which `old` may spell out. */
static bool may_be(const json_t *bad, const json_t *old)
{
	const char *prefix = json_str_at(bad, "resourcePrefix");

	if (!json_str_at(bad, "resourceName"))
		return true;
	return is_same_text(bad, old, "resourceName") &&
	       (str_empty(prefix) || is_same_text(bad, old, "resourcePrefix"));
}

/* Returns how many were put in, from `at` on. */
static size_t put_back(json_t *entries, size_t at, const json_t *bad, const json_t *before)
{
	size_t n = 0, i;
	json_t *old;

	json_array_foreach ((json_t *)before, i, old)
		if (json_array_size(entries) < POOLS_ENTRIES_MAX && may_be(bad, old) &&
		    !is_there(entries, old))
			json_array_insert(entries, at + n++, old);
	return n;
}

/* What was in force had been read without the same key: a note of the user's, not a slip. */
static bool was_ignored(const json_t *before, const json_t *problem)
{
	json_t *old;
	size_t i;

	json_array_foreach (json_at(before, "problems"), i, old)
		if (!json_is_true(json_at(old, "kept")) &&
		    json_same(json_at(old, "key"), json_at(problem, "key")) &&
		    json_same(json_at(old, "entry"), json_at(problem, "entry")))
			return true;
	return false;
}

/* The entry at `at` as it was; the misspelt key may be its prefix, so that it now has another. */
static json_t *find_old(const json_t *entries, size_t at, const json_t *names, const json_t *before)
{
	json_t *old;
	size_t i;

	json_array_foreach ((json_t *)before, i, old)
		if (is_same_entry(json_array_get(entries, at), old))
			return old;
	json_array_foreach ((json_t *)before, i, old)
		if (json_str_at(names, "resourceName") && may_be(names, old) &&
		    !is_there(entries, old))
			return old;
	return NULL;
}

static bool exchange_entry(json_t *entries, size_t at, const json_t *problem, const json_t *before)
{
	json_t *old = find_old(entries, at, json_at(problem, "entry"), entries_of(before));

	if (!old || was_ignored(before, problem))
		return false;
	json_array_set(entries, at, old);
	return true;
}

void pools_keep_good(json_t *document, const json_t *before)
{
	json_t *entries = entries_of(document), *problem;
	size_t added = 0, i;

	json_array_foreach (json_at(document, "problems"), i, problem) {
		size_t at = added + (size_t)json_integer_value(json_at(problem, "at"));
		const json_t *bad = json_at(problem, "entry"), *fault = json_at(problem, "fault");
		size_t n = bad && !fault ? put_back(entries, at, bad, entries_of(before)) : 0;

		assert(!bad || at <= json_array_size(entries));
		added += n;
		if (n == 0 && !(bad && fault && exchange_entry(entries, at, problem, before)))
			continue;
		json_put_bool(problem, "kept", true);
		json_put(problem, "message",
			 json_fmt("%s; until then what was good before stays in force",
				  json_str_or(fault ? fault : json_at(problem, "message"), "")));
	}
}
