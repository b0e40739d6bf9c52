// SPDX-License-Identifier: Apache-2.0
/*
 * A DEL that nobody could take: the whole call in a file of its own, on the disk before the plugin
 * says that it is done.
 */
#pragma once

#include <stddef.h>

enum { NOTE_NAME_MAX = 64 };

/*
 * Write a file below `state`/WIRE_NOTES (folders are made, of mode 0700), synced with its folder.
 * Names sort by time. -1 with errno set.
 */
int note_write(const char *state, const void *call, size_t len, char ret_name[NOTE_NAME_MAX]);

/* Remove it again: the call was taken after all. */
void note_remove(const char *state, const char *name);
