// SPDX-License-Identifier: Apache-2.0
/*
 * A chain is a JSON object to which the explaining functions append links in order; the first that
 * is broken is kept by name, and later ones do not replace it. Conditions of objects become links
 * here, too, so that all explanations read alike.
 */
#include "cli/explain/chain.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

static const char *const state_names[] = {
	[LINK_HOLDS] = "holds",
	[LINK_BROKEN] = "broken",
	[LINK_WAITS] = "waits",
	[LINK_UNKNOWN] = "unknown",
};

json_t *chain_new(const char *kind, const char *name)
{
	json_t *chain = json_object();

	assert(kind && name);
	json_put(chain, "of", json_fmt("%s %s", kind, name));
	json_put(chain, "links", json_array());
	return chain;
}

char *one_line(const char *lines)
{
	auto_strbuf struct strbuf text = {0};

	for (size_t len; *lines; lines += len + (lines[len] == '\n')) {
		len = strcspn(lines, "\n");
		if (len > 0)
			strbuf_addf(&text, "%s%.*s", text.len > 0 ? " | " : "", (int)len, lines);
	}
	return strbuf_take(&text);
}

void chain_add(json_t *chain, const char *link, enum link_state state, const char *reason,
	       const char *fmt, ...)
{
	auto_free char *text = NULL, *what = NULL;
	json_t *entry = json_object();
	va_list ap;

	assert(json_is_object(chain) && link && fmt);
	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	what = one_line(text);
	json_put_str(entry, "link", link);
	json_put_str(entry, "state", state_names[state]);
	json_put_str(entry, "reason", reason);
	json_put_str(entry, "what", what);
	json_array_append_new(json_at(chain, "links"), entry);
	if (state == LINK_BROKEN && !chain_is_broken(chain)) {
		json_put_str(chain, "broken", link);
		json_put_str(chain, "reason", reason);
	}
}

void chain_add_condition(json_t *chain, const char *link, const json_t *object, const char *type)
{
	const json_t *condition = json_find(json_at(object, "status", "conditions"), "type", type);
	const char *status = json_str_or(json_at(condition, "status"), "");
	const char *reason = json_str_at(condition, "reason");
	const char *message = json_str_or(json_at(condition, "message"), "");

	assert(json_is_object(chain) && link && type);
	if (!condition)
		return;
	chain_add(chain, link,
		  str_eq(status, "True")    ? LINK_HOLDS
		  : str_eq(status, "False") ? LINK_BROKEN
					    : LINK_UNKNOWN,
		  reason, "%s %s is %s%s%s", type, json_str_or(json_at(condition, "reason"), ""),
		  status, *message ? ": " : "", message);
}

bool chain_is_broken(const json_t *chain)
{
	return json_at(chain, "broken") != NULL;
}

const json_t *chain_broken_link(const json_t *chain)
{
	return json_find(json_at(chain, "links"), "state", state_names[LINK_BROKEN]);
}
