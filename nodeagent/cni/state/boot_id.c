// SPDX-License-Identifier: Apache-2.0
/*
 * Read from /proc once: sandboxes.c and devices.c note it in what they write, and compare when they
 * read. Not from the host's root: the kernel has one for all containers.
 */
#include "nodeagent/cni/state/boot_id.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"

char *boot_id(void)
{
	static char known[64];
	auto_strbuf struct strbuf text = {0};

	if (!known[0] && fs_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", sizeof(known) - 1,
				 &text, NULL) == 0)
		(void)snprintf(known, sizeof(known), "%.*s", (int)strcspn(strbuf_str(&text), "\n"),
			       strbuf_str(&text));
	return str_dup(known);
}
