// SPDX-License-Identifier: Apache-2.0
/*
 * One pass per name, character by character, without regular expressions. Names pass here before
 * they become a path, a key or a label: of pods in cni_call.c, of resources in pools_read.c, of
 * flags in options.c.
 */
#include "lib/base/names.h"

#include <string.h>

#include "lib/base/str.h"

#define DNS_SUBDOMAIN_MAX 253
#define LABEL_MAX         63

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool name_is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

bool name_is_dns_subdomain(const char *s)
{
	size_t len = s ? strlen(s) : 0;

	if (len == 0 || len > DNS_SUBDOMAIN_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool at_edge = i == 0 || i == len - 1 || s[i - 1] == '.' || s[i + 1] == '.';

		if (is_lower_alnum(s[i]))
			continue;
		if (at_edge || (s[i] != '-' && s[i] != '.'))
			return false;
	}
	return true;
}

/* The part that label values and the names of label keys share. */
static bool is_label_text(const char *s, size_t len)
{
	if (len == 0 || len > LABEL_MAX || !name_is_alnum(s[0]) || !name_is_alnum(s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!name_is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
			return false;
	return true;
}

bool name_is_label_value(const char *s)
{
	return s && (!s[0] || is_label_text(s, strlen(s)));
}

bool name_is_qualified(const char *s)
{
	auto_free char *prefix = NULL;
	const char *slash = s ? strchr(s, '/') : NULL;

	if (!s)
		return false;
	if (!slash)
		return is_label_text(s, strlen(s));
	prefix = str_ndup(s, (size_t)(slash - s));
	return name_is_dns_subdomain(prefix) && is_label_text(slash + 1, strlen(slash + 1));
}
