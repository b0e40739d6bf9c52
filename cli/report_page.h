// SPDX-License-Identifier: Apache-2.0
/* The page of the report: cli/report.html with data and, where it is served, cli/report_live.js. */
#pragma once

#include <jansson.h>

#include "lib/base/str.h"

/* Append the page for a file; data as report_data() gives it. */
void report_page(struct strbuf *out, const json_t *data);

/*
 * Append the page to be served. It has no data: it asks for them by a WebSocket. Its scripts and
 * styles carry the nonce, so that the header Content-Security-Policy can allow them alone.
 */
void report_page_live(struct strbuf *out, const char *nonce);
