// SPDX-License-Identifier: Apache-2.0
/*
 * The Prometheus text of metrics, piece by piece (exposition format 0.0.4): for metrics.h, and for
 * those who make it themselves, out of more series, or more labels, than a metric there has. Pure.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/str.h"

/* Longer label values are cut, in bytes. */
#define METRIC_VALUE_MAX 128

/*
 * Append the comments in front of a metric's series. type: "counter", "gauge", "histogram"; labels:
 * "verb,code", "" for none: then there is no comment "# LABELS name verb,code".
 */
void metrics_text_head(struct strbuf *out, const char *name, const char *type, const char *help,
		       const char *labels);

/*
 * Append one label of a series, name="value": cut, and without what would break the line. A comma
 * is put in front unless `out` ends with a brace.
 */
void metrics_text_label(struct strbuf *out, const char *name, const char *value);

/*
 * Append the value as shown: at most METRIC_VALUE_MAX bytes, whole characters, '?' for other bytes.
 */
void metrics_text_value(struct strbuf *out, const char *value);

/* Append a text on one line; quotes_too: as it stands between quotes. */
void metrics_text_escaped(struct strbuf *out, const char *s, bool quotes_too);

/* Append the shortest text that reads back as the same number. */
void metrics_text_number(struct strbuf *out, double value);
