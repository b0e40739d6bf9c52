// SPDX-License-Identifier: Apache-2.0
/*
 * Each function appends one piece of a line, so a scrape is one pass without copies. Values of
 * labels may come from anywhere: what is not UTF-8 becomes "?", and long ones are cut on a
 * character.
 */
#include "lib/base/metrics_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void metrics_text_value(struct strbuf *out, const char *value)
{
	const char *s = value;
	size_t left = strlen(value), room = METRIC_VALUE_MAX;

	while (left > 0 && room > 0) {
		size_t len = str_utf8_len(s, left), step = len > 0 ? len : 1;

		if (len > room)
			return;
		if (len > 0)
			strbuf_add(out, s, len);
		else
			strbuf_addc(out, '?');
		s += step;
		left -= step;
		room -= step;
	}
}

void metrics_text_escaped(struct strbuf *out, const char *s, bool quotes_too)
{
	for (; *s; s++) {
		if (*s == '\\')
			strbuf_adds(out, "\\\\");
		else if (*s == '\n')
			strbuf_adds(out, "\\n");
		else if (*s == '"' && quotes_too)
			strbuf_adds(out, "\\\"");
		else
			strbuf_addc(out, *s);
	}
}

void metrics_text_number(struct strbuf *out, double value)
{
	char buf[32];

	if (isnan(value)) {
		strbuf_adds(out, "NaN");
		return;
	}
	if (isinf(value)) {
		strbuf_adds(out, value > 0 ? "+Inf" : "-Inf");
		return;
	}
	if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value) {
		strbuf_addf(out, "%" PRId64, (int64_t)value);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, sizeof(buf), "%.*g", digits, value);
		if (strtod(buf, NULL) == value)
			break;
	}
	strbuf_adds(out, buf);
}

void metrics_text_head(struct strbuf *out, const char *name, const char *type, const char *help,
		       const char *labels)
{
	strbuf_addf(out, "# HELP %s ", name);
	metrics_text_escaped(out, help, false);
	strbuf_addf(out, "\n# TYPE %s %s\n", name, type);
	/*
	 * A comment to Prometheus. A list of metrics can be made from any scrape with it, also of
	 * those that have no series yet.
	 */
	if (*labels)
		strbuf_addf(out, "# LABELS %s %s\n", name, labels);
}

void metrics_text_label(struct strbuf *out, const char *name, const char *value)
{
	auto_strbuf struct strbuf clean = {0};

	metrics_text_value(&clean, value);
	strbuf_addf(out, "%s%s=\"", out->len > 0 && out->data[out->len - 1] != '{' ? "," : "",
		    name);
	metrics_text_escaped(out, strbuf_str(&clean), true);
	strbuf_addc(out, '"');
}
