// SPDX-License-Identifier: Apache-2.0
/*
 * Read from /proc at each question: sandboxes.c and devices.c note it in what they write, and
 * compare when they read. Not from the host's root: the kernel has one for all containers.
 */
#include "nodeagent/cni/state/boot_id.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"

char *boot_id(void)
{
	auto_strbuf struct strbuf text = {0};

	if (fs_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &text, NULL) < 0)
		strbuf_reset(&text);
	else
		strbuf_cut(&text, strcspn(text.data, "\n"));
	return strbuf_take(&text);
}
