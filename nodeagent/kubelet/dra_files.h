// SPDX-License-Identifier: Apache-2.0
/*
 * What claims leave on the disk: the state file, and a CDI file for each that runtimes read when
 * they make a container.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/*
 * The state of `dir` (nodeagent/model/dra_state.h), new; without claims when there is no file.
 * NULL with err: ERR_HOST "ClaimsDamaged", "FileUnreadable". Removes temporary files of writers
 * that were killed.
 */
json_t *dra_files_load(const char *dir, struct err *err);
/* Replace it; on the disk when this returns 0. -1 with err: ERR_HOST "FileNotWritten". */
int dra_files_save(const char *dir, const json_t *state, struct err *err);

/* Write the CDI file of a claim, unless it is there with that content. Errors as above. */
int dra_files_put_cdi(const char *dir, const char *uid, const json_t *cdi, struct err *err);
/* -1 with err ERR_HOST "FileNotRemoved". No file is good, too. */
int dra_files_remove_cdi(const char *dir, const char *uid, struct err *err);
/* Remove files of ours whose claim the state does not have. */
void dra_files_sweep_cdi(const char *dir, const json_t *state);
