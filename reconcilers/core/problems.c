// SPDX-License-Identifier: Apache-2.0
/* The list of problems behind a condition or a refusal; see problems.h. */
#include "reconcilers/core/problems.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

void problems_done(struct problems *p)
{
	assert(p->total >= json_array_size(p->list));
	json_decref(p->list);
	*p = (struct problems){0};
}

static void append(struct problems *p, const char *reason, const char *field, const char *message)
{
	json_t *entry;

	if (p->total++ >= PROBLEMS_MAX)
		return;
	if (!p->list)
		p->list = json_array();
	entry = json_object();
	json_put_str(entry, "reason", reason);
	json_put_str(entry, "field", field);
	json_put_str(entry, "message", message);
	json_array_append_new(p->list, entry);
}

void problem_add(struct problems *p, const char *reason, const char *field, const char *fmt, ...)
{
	auto_free char *message = NULL;
	va_list ap;

	assert(*reason && field);
	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	append(p, reason, field, message);
}

void problem_add_err(struct problems *p, const char *field, const struct err *err)
{
	const char *text = err->text;
	size_t len = strlen(field);

	assert(err->class != ERR_NONE);
	if (str_starts(text, field) && text[len] == ':' && text[len + 1] == ' ')
		text += len + 2;
	append(p, err->reason, field, text);
}

void problem_copy(struct problems *p, const json_t *problem)
{
	assert(problem && json_str_at(problem, "reason") && json_str_at(problem, "field"));
	append(p, json_str_at(problem, "reason"), json_str_at(problem, "field"),
	       json_str_at(problem, "message"));
}

const char *problems_reason(const struct problems *p)
{
	assert(p->total > 0 || !p->list);
	return json_str_or(json_object_get(json_array_get(p->list, 0), "reason"), "");
}

char *problems_text(const struct problems *p)
{
	auto_strbuf struct strbuf text = {0};
	size_t kept = json_array_size(p->list);
	json_t *entry;
	size_t i;

	assert(p->total >= kept);
	json_array_foreach (p->list, i, entry)
		strbuf_addf(&text, "%s%s: %s", i ? "; " : "", json_str_at(entry, "field"),
			    json_str_at(entry, "message"));
	if (p->total > kept)
		strbuf_addf(&text, "; and %zu more", p->total - kept);
	return strbuf_take(&text);
}
