// SPDX-License-Identifier: Apache-2.0
/*
 * Pairs that runtimes and Multus send along with a call: static and host-local read addresses from
 * them, macvlan its MAC. Read in one pass at each question; nothing is kept.
 */
#include "nodeagent/cni/plan/cni_args.h"

#include <string.h>

#include "lib/base/str.h"

char *cni_args_value(const char *args, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = args; at && *at; at = *at ? at + 1 : at) {
		size_t size = strcspn(at, ";");

		if (size > len && strncmp(at, key, len) == 0 && at[len] == '=')
			return str_ndup(at + len + 1, size - len - 1);
		at += size;
		if (!*at)
			break;
	}
	return NULL;
}
