// SPDX-License-Identifier: Apache-2.0
/*
 * A finding is a JSON object, so the list can be printed as a table or as a document. Checks add
 * theirs in any order; findings_sort() then puts errors first, and leaves those of one level in the
 * order of the checks.
 */
#include "nodeagent/model/findings.h"

#include <assert.h>

#include "lib/json/json.h"

static const char *const level_names[] = {
	[FINDING_ERROR] = "error",
	[FINDING_WARNING] = "warning",
	[FINDING_INFO] = "info",
};

void finding_add(json_t *findings, enum finding_level level, const char *reason,
		 const char *subject, const char *expected, const char *remedy, const char *seen,
		 ...)
{
	auto_free char *text = NULL;
	json_t *entry = json_object();
	va_list ap;

	assert(json_is_array(findings) && level < ARRAY_LEN(level_names) && reason && seen);
	va_start(ap, seen);
	text = str_vprintf(seen, ap);
	va_end(ap);
	json_put_str(entry, "level", level_names[level]);
	json_put_str(entry, "reason", reason);
	json_put_str(entry, "subject", subject);
	json_put_str(entry, "seen", text);
	json_put_str(entry, "expected", expected);
	json_put_str(entry, "remedy", remedy);
	json_array_append_new(findings, entry);
}

bool findings_have(const json_t *findings, enum finding_level level)
{
	for (size_t i = 0; i <= level && i < ARRAY_LEN(level_names); i++)
		if (json_find(findings, "level", level_names[i]))
			return true;
	return false;
}

void findings_sort(json_t *findings)
{
	json_auto_t *sorted = json_array();
	json_t *finding;
	size_t i;

	for (size_t level = 0; level < ARRAY_LEN(level_names); level++)
		json_array_foreach (findings, i, finding)
			if (str_eq(json_str_at(finding, "level"), level_names[level]))
				json_array_append(sorted, finding);
	json_array_clear(findings);
	json_array_extend(findings, sorted);
}
