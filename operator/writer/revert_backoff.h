// SPDX-License-Identifier: Apache-2.0
/*
 * Patches that had to be sent again word for word: another client keeps undoing what we write, or
 * deletes what we create, which counts as a patch.
 *
 * An admission controller or another operator that insists on its own version of an object never
 * gets tired, so neither side may win by speed. The first repeats go out at once, since people edit
 * by mistake. Then each waits longer, until another patch is called for or nothing had to be
 * repeated for an hour.
 *
 * Pure: time is an argument.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

enum {
	REVERT_BACKOFF_FREE = 5, /* the same patch in a row, without a pause */
	REVERT_BACKOFF_PAUSE_FIRST_MS = 5000,
	REVERT_BACKOFF_PAUSE_MAX_MS = 600000,
	REVERT_BACKOFF_FORGET_MS = 3600000,
	/* Objects remembered, labels of each Node among them; beyond it all are forgotten. */
	REVERT_BACKOFF_MAX = 16384,
};

struct revert_backoff;

struct revert_backoff *revert_backoff_new(void);
/* Accepts NULL. */
void revert_backoff_free(struct revert_backoff *rewrites);

/*
 * The patch, a merge patch or a new object, is about to be sent. Return 0 if it may go now; it is
 * remembered then. Else return the milliseconds to wait, and ask again. metadata.resourceVersion
 * and the times of conditions do not count.
 */
int64_t revert_backoff_pause_ms(struct revert_backoff *rewrites, const char *kind, const char *key,
				const json_t *patch, int64_t now_ms);

/*
 * The API server's answer to it. Its managedFields say who else writes the object, its status left
 * out, and when last (metav1.ManagedFieldsEntry).
 */
void revert_backoff_answered(struct revert_backoff *rewrites, const char *kind, const char *key,
			     const json_t *answer);

/* It was refused, so no other client has undone it: it does not count. */
void revert_backoff_refused(struct revert_backoff *rewrites, const char *kind, const char *key);

/*
 * The field manager that wrote the object last besides us, as far as known; "" else. Borrowed until
 * the next call.
 */
const char *revert_backoff_other(const struct revert_backoff *rewrites, const char *kind,
				 const char *key);
