/*
 * The page of the report: cli/report.html with data.
 */
#ifndef ORBWEAVER_CLI_REPORT_PAGE_H
#define ORBWEAVER_CLI_REPORT_PAGE_H

#include <jansson.h>

#include "lib/base/str.h"

/* Append the page for a file; data as report_data() gives it. */
void report_page(struct strbuf *out, const json_t *data);

#endif
