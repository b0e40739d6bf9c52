// SPDX-License-Identifier: Apache-2.0
/* Random bytes from the kernel. */
#include "lib/base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

void random_bytes(void *buf, size_t len)
{
	char *p = buf;

	assert(buf || len == 0);
	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			abort();
		p += n;
		len -= (size_t)n;
	}
}
