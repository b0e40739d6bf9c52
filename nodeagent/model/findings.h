// SPDX-License-Identifier: Apache-2.0
/*
 * Findings: what is not as it should be on a host, in one line each. Pure.
 *
 *	{ "level": "error", "reason": "RdmaLinkDown", "node": "w1", "subject": "mlx5_0",
 *	  "seen": "DOWN", "expected": "ACTIVE", "remedy": "check cable, switch and …" }
 *
 * error: RDMA does not work. warning: it works worse, or not for all. info: good to know.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/str.h"

enum finding_level { FINDING_ERROR, FINDING_WARNING, FINDING_INFO };

/*
 * Append one. reason: as in docs/reasons.md. subject: device, file, module; NULL: the host.
 * expected: NULL: it says itself. The format says what was seen.
 */
void finding_add(json_t *findings, enum finding_level level, const char *reason,
		 const char *subject, const char *expected, const char *remedy, const char *seen,
		 ...) __attribute__((format(printf, 7, 8)));

/* Is one of that level, or of a worse one, among them? */
bool findings_have(const json_t *findings, enum finding_level level);

/* The worst first; else in the order of checks. */
void findings_sort(json_t *findings);
