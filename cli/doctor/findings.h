// SPDX-License-Identifier: Apache-2.0
/*
 * Findings: what is not as it should be on a host, in one line each. Pure.
 *
 *	{ "level": "error", "reason": "RdmaLinkDown", "node": "w1", "subject": "mlx5_0",
 *	  "seen": "DOWN", "expected": "ACTIVE", "remedy": "check cable, switch and …" }
 *
 * error: RDMA does not work. warning: it works worse, or not for all. info: good to know.
 */
#ifndef ORBWEAVER_CLI_DOCTOR_FINDINGS_H
#define ORBWEAVER_CLI_DOCTOR_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/str.h"

enum finding_level { FINDING_ERROR, FINDING_WARNING, FINDING_INFO };

struct finding {
	enum finding_level level;
	const char *reason;   /* as in docs/reasons.md */
	const char *subject;  /* device, file, module; NULL: the host */
	const char *expected; /* NULL: it says itself */
	const char *remedy;
};

/* Append it; the format says what was seen. */
void finding_add(json_t *findings, const struct finding *finding, const char *seen, ...)
	__attribute__((format(printf, 3, 4)));

/* Is one of that level, or of a worse one, among them? */
bool findings_have(const json_t *findings, enum finding_level level);

/* The worst first; else in the order of checks. */
void findings_sort(json_t *findings);

#endif
