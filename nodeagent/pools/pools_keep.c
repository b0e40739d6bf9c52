/*
 * A configuration that was edited badly: entries that cannot be read any more go on as they were,
 * at the place where they are.
 *
 * Which entry of before a bad one is, its name tells. One whose name cannot be read may be any that
 * is missing, so that all of those stay: nothing is taken from a running cluster on a guess.
 */
#include "nodeagent/pools/pools.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/pools/pools_internal.h"

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

/* Is it in the list, right or wrong in the rest? */
static bool is_there(const json_t *entries, const json_t *old)
{
	json_t *entry;
	size_t i;

	json_array_foreach ((json_t *)entries, i, entry)
		if (is_same_text(entry, old, "resourceName") &&
		    is_same_text(entry, old, "resourcePrefix") &&
		    is_same_text(entry, old, "devicematch"))
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

void pools_keep_good(json_t *document, const json_t *before)
{
	json_t *entries = entries_of(document), *problem;
	size_t kept = 0, i;

	json_array_foreach (json_at(document, "problems"), i, problem) {
		const json_t *bad = json_at(problem, "entry");
		size_t at = (size_t)json_integer_value(json_at(problem, "at"));
		size_t n = bad ? put_back(entries, at + kept, bad, entries_of(before)) : 0;

		kept += n;
		if (n > 0)
			json_put(problem, "message",
				 json_fmt("%s; until then what was good before stays in force",
					  json_str_or(json_at(problem, "message"), "")));
	}
}
