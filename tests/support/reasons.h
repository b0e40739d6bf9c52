// SPDX-License-Identifier: Apache-2.0
/*
 * The rule of docs/conditions.md, for whatever a test brings about: which reason may stand on which
 * condition says docs/reasons.md, in parentheses.
 */
#pragma once

#include <fcntl.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"

#define REASONS_PAGE     "docs/reasons.md"
#define REASONS_SIZE_MAX (1 << 20)

/* Is the reason of this sort? "fault" of "- `BadField` (fault, warns): ...". Read from the page. */
static inline bool reason_is(const char *reason, const char *sort)
{
	static char page[REASONS_SIZE_MAX];
	auto_free char *head = str_printf("\n- `%s` (", reason);
	auto_free char *sorts = NULL;
	const char *entry;

	if (!*page) {
		auto_strbuf struct strbuf text = {0};
		struct err err = {0};

		if (fs_read(AT_FDCWD, REASONS_PAGE, sizeof(page) - 1, &text, &err) < 0)
			fail_msg("%s", err.text);
		memcpy(page, text.data, text.len);
	}
	entry = strstr(page, head);
	if (!entry)
		return false;
	entry += strlen(head);
	sorts = str_ndup(entry, strcspn(entry, ")"));
	for (char *rest = sorts, *word; (word = strsep(&rest, ", "));)
		if (str_eq(word, sort))
			return true;
	return false;
}

/* Fails unless the page lets the reason stand there. Conditions of others may say anything. */
static inline void reason_may_stand(const char *reason, const char *type, const char *status)
{
	static const struct {
		const char *type, *status, *sorts[2];
	} rows[] = {
		{"Ready", "True", {"well"}},
		{"Ready", "False", {"fault", "waits"}},
		{"Ready", "Unknown", {"waits"}},
		{"Progressing", "True", {"waits"}},
		{"Progressing", "False", {"quiet"}},
		{"Degraded", "True", {"fault", "warns"}},
		{"Degraded", "False", {"quiet"}},
		{"Blocked", "True", {"waits"}},
		{"Blocked", "False", {"quiet"}},
		{"RebootRequired", "True", {"waits"}},
		{"RebootRequired", "False", {"quiet"}},
		{"Injected", "True", {"injected"}},
		{"Injected", "False", {"injected"}},
		{"Injected", "Unknown", {"injected"}},
		{"Draining", "True", {"draining"}},
		{"Draining", "False", {"draining"}},
		{"PodNetworks", "True", {"networks"}},
		{"PodNetworks", "False", {"networks"}},
		{"LinksHealthy", "True", {"links"}},
		{"LinksHealthy", "False", {"links"}},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!str_eq(rows[i].type, type) || !str_eq(rows[i].status, status))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(rows[i].sorts); k++)
			if (rows[i].sorts[k] && reason_is(reason, rows[i].sorts[k]))
				return;
		fail_msg("%s=%s with reason %s: " REASONS_PAGE " does not let it", type, status,
			 reason);
	}
}

/* Fails unless the conditions of one object keep the rule. NULL: there are none. */
static inline void conditions_keep_the_rule(const json_t *conditions)
{
	const char *ready = json_str_at(condition_find(conditions, "Ready"), "reason");
	const json_t *condition;
	size_t i;

	json_array_foreach ((json_t *)conditions, i, condition)
		reason_may_stand(json_str_or(json_at(condition, "reason"), ""),
				 json_str_or(json_at(condition, "type"), ""),
				 json_str_or(json_at(condition, "status"), ""));
	if (str_eq(condition_status_of(conditions, "Ready"), "False") &&
	    !reason_is(ready, "waits") &&
	    !str_eq(condition_status_of(conditions, "Degraded"), "True") &&
	    !str_eq(condition_status_of(conditions, "Progressing"), "True"))
		fail_msg("Ready=False %s: neither Degraded nor Progressing is True", ready);
}
