// SPDX-License-Identifier: Apache-2.0
/*
 * '_' is in no prefix and in no device's name, so that two allocations never have one folder.
 * Between nodeagent/devices, which mounts it, and nodeagent/cni/worker, which writes into it.
 */
#include "nodeagent/model/job_folder.h"

#include <assert.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

/* With two '_' a name that a folder can have; a kubelet takes names of 63. */
enum { DOMAIN_MAX = 158, RESOURCE_MAX = 63, ID_MAX = 32 };

_Static_assert(DOMAIN_MAX + RESOURCE_MAX + ID_MAX + 2 <= NAME_MAX, "no folder has a longer name");

static bool is_of(const char *text, size_t len, const char *more, size_t max)
{
	for (size_t i = 0; i < len; i++)
		if (!name_is_alnum(text[i]) && !strchr(more, text[i]))
			return false;
	return len > 0 && len <= max && *text != '.';
}

bool job_folder_is_for(const char *patterns, const char *resource)
{
	auto_free char *list = str_dup(patterns);
	char *rest = list, *pattern;

	assert(resource);
	while ((pattern = strsep(&rest, ",")))
		if (fnmatch(str_trim(pattern), resource, FNM_NOESCAPE) == 0)
			return true;
	return false;
}

int job_folder_check(const char *patterns, struct err *err)
{
	auto_free char *list = str_dup(patterns ? patterns : "*");
	char *rest = list, *pattern;

	while ((pattern = strsep(&rest, ","))) {
		pattern = str_trim(pattern);
		if (!is_of(pattern, strlen(pattern), "-_./*?[]", DOMAIN_MAX + RESOURCE_MAX))
			return err_set(err, ERR_INVALID, "BadFlag",
				       "--job-files \"%s\": \"%s\" must be the name of a resource, "
				       "such as spidernet.io/rails, which may have *, ? and [a-z]",
				       patterns, pattern);
	}
	return 0;
}

char *job_folder_name(const char *resource, const char *const *ids, size_t n)
{
	const char *first = NULL, *slash = resource ? strchr(resource, '/') : NULL;
	char *name;

	assert(ids || n == 0);
	for (size_t i = 0; i < n; i++)
		if (!first || strcmp(ids[i], first) < 0)
			first = ids[i];
	if (!first || !slash || !is_of(first, strlen(first), ":.-", ID_MAX) ||
	    !is_of(resource, (size_t)(slash - resource), ".-", DOMAIN_MAX) ||
	    !is_of(slash + 1, strlen(slash + 1), "._-", RESOURCE_MAX))
		return NULL;
	name = str_printf("%.*s_%s_%s", (int)(slash - resource), resource, slash + 1, first);
	for (char *p = name; *p; p++)
		if (*p == ':')
			*p = '-';
	return name;
}
