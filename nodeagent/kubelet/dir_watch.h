// SPDX-License-Identifier: Apache-2.0
/*
 * Something in a directory has changed: inotify(7) on the loop, for one directory that may vanish
 * and come back.
 */
#pragma once

#include <stdbool.h>

#include "lib/loop/loop.h"

struct dir_watch;

/*
 * fn(arg) after names have come, gone, or the directory itself has; from the loop, once for many.
 * Where inotify cannot be had (too many instances), it is never called: callers look by themselves
 * every now and then, which they need anyhow.
 */
struct dir_watch *dir_watch_new(struct loop *loop, const char *path, loop_fn *fn, void *arg);
void dir_watch_free(struct dir_watch *watch);

/*
 * Watch what is at the path now, if that is another directory than before. Returns whether there is
 * one. To be called whenever one looks: no event shows that a directory has come back.
 */
bool dir_watch_renew(struct dir_watch *watch);
