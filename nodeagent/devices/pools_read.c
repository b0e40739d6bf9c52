// SPDX-License-Identifier: Apache-2.0
/*
 * Configurations as users bring them: keys as Go takes them, one bad entry that does not cost the
 * others, names as the kubelet wants them.
 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

/* The kubelet checks the prefix as part of a quota name, with "requests." in front. */
#define PREFIX_MAX  (253 - (sizeof("requests.") - 1))
#define STRINGS_MAX 1024

/* ---- names, problems ------------------------------------------------------------------------- */

const char *pools_name_fault(const char *prefix, const char *name)
{
	if (strlen(prefix) > PREFIX_MAX)
		return "has a prefix longer than 244 characters";
	if (str_ends(prefix, "kubernetes.io") || str_starts(prefix, "requests."))
		return "has a prefix that is reserved for Kubernetes";
	if (!name_is_dns_subdomain(prefix))
		return "has a prefix that is no DNS name of small letters, digits, '-' and '.'";
	if (str_empty(name) || !name_is_label_value(name))
		return "must have after the prefix 1 to 63 letters, digits, '-', '_' and '.', with "
		       "a letter or digit at both ends";
	return NULL;
}

void pools_note(json_t *problems, const char *resource, const char *reason, const char *message)
{
	json_t *entry = json_object();

	json_put_str(entry, "resource", resource);
	json_put_str(entry, "reason", reason);
	json_put_str(entry, "message", message);
	json_array_append_new(problems, entry);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static const char *known_key(const char *const *known, const char *key)
{
	for (; *known; known++)
		if (strcasecmp(*known, key) == 0)
			return *known;
	return NULL;
}

/* "configList[0].rdmaHcaMaxx: no such field, the nearest is rdmaHcaMax; there are …" */
static void note_unknown(json_t *problems, const char *where, const char *key,
			 const char *const *known)
{
	const char *nearest = str_nearest(known, key);
	auto_strbuf struct strbuf message = {0};
	json_t *problem;

	strbuf_addf(&message, "%s%s%.64s: no such field", where, *where ? "." : "", key);
	if (nearest)
		strbuf_addf(&message, ", the nearest is %s", nearest);
	for (size_t i = 0; known[i]; i++)
		strbuf_addf(&message, "%s%s", i ? ", " : "; there are ", known[i]);
	pools_note(problems, NULL, "UnknownField", strbuf_str(&message));
	problem = json_array_get(problems, json_array_size(problems) - 1);
	json_put_str(problem, "key", key);
}

json_t *pools_fold_keys(const json_t *obj, const char *const *known, const char *where,
			json_t *problems)
{
	json_t *folded = json_object(), *value;
	const char *key;

	json_each (obj, key, value) {
		const char *name = known_key(known, key);

		if (name && !json_is_null(value))
			json_object_set(folded, name, value);
		else if (!name && json_array_size(problems) < POOLS_ENTRIES_MAX)
			note_unknown(problems, where, key, known);
	}
	return folded;
}

int pools_check_strings(const json_t *obj, const char *where, const char *key, struct err *err)
{
	const json_t *list;

	if (json_get_strings(obj, where, key, &list, err) < 0)
		return -1;
	if (json_array_size(list) > STRINGS_MAX)
		return err_set(err, ERR_INVALID, "BadField", "%s.%s: has %zu values, at most %d",
			       where, key, json_array_size(list), STRINGS_MAX);
	return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Problems from the `first` on are of this entry, the `at`-th; for pools_keep_good(). */
static void name_entry(json_t *problems, size_t first, const json_t *entry, size_t at)
{
	static const char *const known[] = {"resourceName", "resourcePrefix", NULL};

	for (size_t i = first; i < json_array_size(problems); i++) {
		json_auto_t *ignored = json_array();
		json_t *problem = json_array_get(problems, i);
		json_t *names = pools_fold_keys(entry, known, "", ignored);
		const char *name = json_str_at(names, "resourceName");

		/* A name that cannot be one may be a slip of any that is missing. */
		if (name && pools_name_fault("x", name))
			json_object_del(names, "resourceName");
		json_put_str(problem, "resource", json_str_at(names, "resourceName"));
		json_put(problem, "entry", names);
		json_put_int(problem, "at", (int64_t)at);
	}
}

/* The keys that problems from the `first` on are about cost nothing but themselves. */
static void say_ignored(json_t *problems, size_t first)
{
	for (size_t i = first; i < json_array_size(problems); i++) {
		json_t *problem = json_array_get(problems, i);
		const char *fault = json_str_or(json_at(problem, "message"), "");

		json_put_str(problem, "fault", fault);
		json_put(problem, "message", json_fmt("%s; it is ignored", fault));
	}
}

static void read_one(const struct pools_format *format, const json_t *entry, const char *where,
		     json_t *entries, json_t *problems)
{
	size_t first = json_array_size(problems);
	struct err err = {0};
	json_t *good = NULL;

	if (json_is_object(entry))
		good = format->read(entry, where, problems, &err);
	else
		(void)err_set(&err, ERR_INVALID, "BadField", "%s: is %s, must be an object", where,
			      json_type_words(entry));
	if (good) {
		name_entry(problems, first, entry, json_array_size(entries));
		say_ignored(problems, first);
		json_array_append_new(entries, good);
	} else {
		first = json_array_size(problems);
		pools_note(problems, NULL, format->reason, err.text);
		name_entry(problems, first, entry, json_array_size(entries));
	}
}

static json_t *read_entries(const struct pools_format *format, const json_t *doc, json_t *problems,
			    struct err *err)
{
	json_t *entries, *entry;
	const json_t *list;
	size_t i;

	if (json_get_array(doc, "", format->list, &list, err) < 0)
		return NULL;
	if (json_array_size(list) > POOLS_ENTRIES_MAX) {
		(void)err_set(err, ERR_INVALID, "BadField", "%s: has %zu entries, at most %d",
			      format->list, json_array_size(list), POOLS_ENTRIES_MAX);
		return NULL;
	}
	entries = json_array();
	json_array_foreach ((json_t *)list, i, entry) {
		auto_free char *where = str_printf("%s[%zu]", format->list, i);

		read_one(format, entry, where, entries, problems);
	}
	return entries;
}

json_t *pools_read_document(const struct pools_format *format, const json_t *raw,
			    const struct err *inner, struct err *err)
{
	json_auto_t *problems = json_array();
	json_auto_t *doc = pools_fold_keys(raw, format->known, "", problems);
	struct err bad = *inner;
	json_t *entries = NULL, *value;
	bool has_list = false;
	const char *key;

	assert(raw || inner->text[0]);
	json_each (raw, key, value)
		has_list |= str_eq(known_key(format->known, key), format->list);
	say_ignored(problems, 0);
	if (raw && !json_is_object(raw))
		(void)err_set(&bad, ERR_INVALID, "BadField", "is %s, must be an object",
			      json_type_words(raw));
	/*
	 * null is an empty list, as the SR-IOV operator writes it; without its list it is a
	 * misspelt or unfinished text.
	 */
	else if (raw && !has_list)
		(void)err_set(&bad, ERR_INVALID, "BadField", "%s: is missing; [] is none",
			      format->list);
	else if (raw)
		entries = read_entries(format, doc, problems, &bad);
	if (!entries) {
		(void)err_set(err, ERR_INVALID, format->reason, "%s: %s", format->what, bad.text);
		return NULL;
	}
	json_put(doc, format->list, entries);
	json_object_set(doc, "problems", problems);
	return take_ptr(doc);
}
