// SPDX-License-Identifier: Apache-2.0
/* Carry out one step of nodeagent/model/step.h on a real host. */
#pragma once

#include "nodeagent/host/host.h"

/*
 * Execute one step and read back what it did. Blocks, possibly for ever
 * (Documentation/filesystems/sysfs.rst: writers wait in the kernel for the holder of a VF); the
 * caller is a process that can be given up.
 *
 * ret_result: new, {"step": name, "changed": bool, "tookMs": int} plus "was" and "now" where there
 * is a value. Set only on success; it is success only when the state was read back as asked for.
 *
 * Errors: ERR_BUG "BadStep", "NotAVf", "NotAPf", "VfCountNeedsZero", "ProtectedPf"; ERR_HOST with
 * errno and what would help, the reason says what refused ("VfCountRefused", "DriverRefused",
 * "MtuRefused", …) or that it did not become as asked ("NotAsAsked"); "VfInUse" with the holder;
 * ERR_TRANSIENT "NotYet" when waiting ended without result. The README has them per step.
 */
int host_execute(struct host *host, const json_t *step, json_t **ret_result, struct err *err);
