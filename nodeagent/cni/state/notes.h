// SPDX-License-Identifier: Apache-2.0
/*
 * The notes that plugins left while nobody took their calls (nodeagent/cni/plugin/note.h), as the
 * server reads them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* As many are worked off side by side: a caller besides them waits for no more. */
enum { NOTES_AT_ONCE = 64 };

/*
 * note(arg, …) for each that comes after the one of name `after`, the oldest first, until it says
 * false. after: NULL: for all. state: descriptor of the state's folder. False: there may be more,
 * which cannot be read now.
 */
typedef bool note_fn(void *arg, const char *name, const void *data, size_t len);
bool notes_each(int state, const char *after, note_fn *note, void *arg);
void notes_remove(int state, const char *name);

/*
 * Is it a whole message of another WIRE_VERSION? A plugin of an agent that was newer, or older, has
 * written it; only such a one can read it.
 */
bool notes_is_of_other_version(const void *data, size_t len);

/* Remove what plugins began to write and left, more than NOTES_DRAFT_S seconds ago. */
enum { NOTES_DRAFT_S = 3600 };
void notes_clean(int state);
