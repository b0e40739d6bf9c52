// SPDX-License-Identifier: Apache-2.0
/*
 * Ownership of what the kernel lends: descriptors, streams, open folders. For code that may touch
 * them; what decides includes lib/base/own.h alone.
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/own.h"

static inline void own_close_p(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void own_fclose_p(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

static inline void own_closedir_p(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

#define auto_close    auto_call(own_close_p)    /* int fd, -1 when empty */
#define auto_fclose   auto_call(own_fclose_p)   /* FILE * */
#define auto_closedir auto_call(own_closedir_p) /* DIR * */

/* Give the descriptor away: return it and leave -1 behind. */
static inline int take_fd(int *fd)
{
	int value = *fd;

	*fd = -1;
	return value;
}
