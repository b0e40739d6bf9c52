// SPDX-License-Identifier: Apache-2.0
/*
 * Reconcilers of NodeStates and networks call this just before they plan the write: the
 * differences become one event, the write itself is left to them.
 */
#include "reconcilers/core/edit.h"

#include <assert.h>
#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/differences.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"

enum {
	/* An event's message has 1024 bytes. */
	FIELDS_MAX = 3,
};

void edit_tell(struct plan *plan, const char *kind, const char *key, const json_t *object,
	       const json_t *was, const json_t *wanted, const char *instead)
{
	const json_t *writer = json_at(object, "metadata", "orbweaver", "specWriter");
	json_auto_t *list = writer ? differences(was, wanted) : NULL;
	auto_strbuf struct strbuf text = {0};
	size_t n;

	assert(kind && key && instead);
	if (json_array_size(list) == 0)
		return;
	strbuf_addf(&text, "%.63s wrote to spec at %.40s; put back: ",
		    json_str_or(json_at(writer, "manager"), "somebody"),
		    json_str_or(json_at(writer, "time"), "?"));

	/* "numVfs: 4 -> 2, mtu: 9000 -> nothing, and 2 more" */
	n = json_array_size(list);
	for (size_t i = 0; i < n && i < FIELDS_MAX; i++) {
		json_auto_t *line = differences_text(json_array_get(list, i));

		strbuf_addf(&text, "%s%s", i > 0 ? ", " : "", json_string_value(line));
	}
	if (n > FIELDS_MAX)
		strbuf_addf(&text, " and %zu more", n - FIELDS_MAX);
	strbuf_addf(&text,
		    "; change %s instead; if an operator did it, stop that one "
		    "(manifests/README.md)",
		    instead);
	plan_event(plan, kind, key, true, "EditUndone", strbuf_str(&text));
}

/* The spec with its config as a value; a string when it is not JSON. Returns new. */
static json_t *readable(const json_t *nad)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	json_t *config = limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, NULL);
	json_t *spec = json_object();

	json_put(spec, "config", config ? config : json_string(text));
	return spec;
}

void edit_tell_nad(struct plan *plan, const char *key, const json_t *nad, const json_t *wanted,
		   const char *instead)
{
	json_auto_t *was = readable(nad), *will = readable(wanted);

	edit_tell(plan, KIND_NAD, key, nad, was, will, instead);
}
