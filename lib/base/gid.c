// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses to GIDs, for those who look for a pod's GIDs in sysfs: the agent on the node, the
 * command line in what a pod prints.
 */
#include "lib/base/gid.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

bool gid_of_address(const char *address, char ret[GID_TEXT_SIZE])
{
	uint8_t bytes[16] = {[10] = 0xff, [11] = 0xff};
	size_t at = 0;

	assert(address);
	ret[0] = '\0';
	if (inet_pton(AF_INET, address, bytes + 12) != 1 &&
	    inet_pton(AF_INET6, address, bytes) != 1)
		return false;
	for (size_t i = 0; i < sizeof(bytes); i += 2)
		at += (size_t)snprintf(ret + at, GID_TEXT_SIZE - at, "%s%02x%02x", i > 0 ? ":" : "",
				       bytes[i], bytes[i + 1]);
	return true;
}
