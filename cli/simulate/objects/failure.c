// SPDX-License-Identifier: Apache-2.0
/*
 * Wording of refusals. Causes are collected while an object is looked at; the Status around them is
 * made once, at the end of a request.
 */
#include "cli/simulate/objects/failure.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/simulate/objects/limits.h"
#include "lib/json/json.h"

void cause_add(json_t *causes, const char *reason, const char *field, const char *fmt, ...)
{
	auto_free char *message = NULL;
	json_t *cause = NULL;
	va_list ap;

	assert(reason && field && fmt);
	if (json_array_size(causes) >= CAUSES_MAX)
		return;
	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	cause = json_object();
	json_put_str(cause, "reason", reason);
	json_put_str(cause, "message", message);
	json_put_str(cause, "field", field);
	json_array_append_new(causes, cause);
}

/* A fraction in as few digits as name it; integers without a point. */
static char *real_text(double value)
{
	char text[32];

	for (int digits = 1; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return str_dup(text);
}

char *cause_value(const json_t *value)
{
	if (!value)
		return str_dup("null");
	return json_is_real(value) ? real_text(json_real_value(value)) : json_text(value);
}

json_t *failure_status(int code, const char *reason, const char *message, const json_t *details)
{
	json_t *status = json_object();

	assert(code >= 200 && code <= 599);
	json_put_str(status, "kind", "Status");
	json_put_str(status, "apiVersion", "v1");
	json_put(status, "metadata", json_object());
	json_put_str(status, "status", "Failure");
	json_put_str(status, "message", message);
	json_put_str(status, "reason", reason);
	if (details)
		json_put(status, "details", json_deep_copy(details));
	json_put_int(status, "code", code);
	return status;
}

json_t *failure_invalid(const char *group, const char *kind, const char *name, const json_t *causes)
{
	auto_strbuf struct strbuf message = {0};
	json_auto_t *details = json_object();
	const json_t *cause = NULL;
	bool several = json_array_size(causes) > 1;
	size_t i = 0;

	strbuf_addf(&message, "%s%s%s \"%s\" is invalid", kind, *group ? "." : "", group, name);
	strbuf_adds(&message, json_array_size(causes) == 0 ? "" : several ? ": [" : ": ");
	json_array_foreach (causes, i, cause) {
		strbuf_adds(&message, i ? ", " : "");
		strbuf_addf(&message, "%s: %s", json_str_or(json_at(cause, "field"), ""),
			    json_str_or(json_at(cause, "message"), ""));
	}
	strbuf_adds(&message, several ? "]" : "");
	json_put_str(details, "name", name);
	if (*group)
		json_put_str(details, "group", group);
	json_put_str(details, "kind", kind);
	if (json_array_size(causes) > 0)
		json_put(details, "causes", json_deep_copy(causes));
	return failure_status(422, "Invalid", strbuf_str(&message), details);
}

json_t *failure_apply_conflict(const json_t *causes)
{
	auto_strbuf struct strbuf message = {0};
	json_auto_t *details = json_object();
	size_t n = json_array_size(causes), i = 0;
	const json_t *cause = NULL;
	const char *last = NULL;

	strbuf_addf(&message, "Apply failed with %zu conflict%s: ", n, n == 1 ? "" : "s");
	json_array_foreach (causes, i, cause) {
		const char *by = json_str_or(json_at(cause, "message"), "");
		const char *manager = str_starts(by, "conflict with ") ? by + 14 : by;
		const char *field = json_str_or(json_at(cause, "field"), "");

		if (n == 1) {
			strbuf_addf(&message, "%s: %s", by, field);
			continue;
		}
		if (!str_eq(last, by))
			strbuf_addf(&message, "%sconflicts with %s:", i ? "\n" : "", manager);
		strbuf_addf(&message, "\n- %s", field);
		last = by;
	}
	json_put(details, "causes", json_deep_copy(causes));
	return failure_status(409, "Conflict", strbuf_str(&message), details);
}

json_t *failure_of_err(const struct err *err)
{
	static const struct {
		const char *reason;
		int code;
	} codes[] = {
		{"BadRequest", 400}, {"NotFound", 404},
		{"Conflict", 409},   {"RequestEntityTooLarge", 413},
		{"Invalid", 422},    {"UnsupportedMediaType", 415},
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (str_eq(err->reason, codes[i].reason))
			return failure_status(codes[i].code, err->reason, err->text, NULL);
	return failure_status(500, "InternalError", err->text, NULL);
}
