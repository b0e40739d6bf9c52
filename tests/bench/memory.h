// SPDX-License-Identifier: Apache-2.0
/* What the kernel says of a process's memory. */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

/* A field of /proc/PID/status ("VmRSS:     1234 kB"), in kB; -1: there is none. */
static inline long memory_kb(pid_t pid, const char *field)
{
	auto_free char *path = str_printf("/proc/%d/status", (int)pid);
	auto_free char *start = str_printf("\n%s:", field);
	auto_strbuf struct strbuf text = {0};
	const char *line = NULL;

	if (fs_read(AT_FDCWD, path, 65536, &text, NULL) == 0)
		line = strstr(strbuf_str(&text), start);
	return line ? strtol(line + strlen(start), NULL, 10) : -1;
}
