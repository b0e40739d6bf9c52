// SPDX-License-Identifier: Apache-2.0
/*
 * Cuts the path into parts and gives them their meaning by place. The first step of each request.
 */
#include "cli/simulate/api/path.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

/* /apis, group, version, namespaces, NS, resource, name, subresource. */
enum { PARTS_MAX = 8 };

/* How many parts; PARTS_MAX + 1 for too many, or one that is empty. */
static size_t cut(char *text, const char *ret[PARTS_MAX])
{
	size_t len = strlen(text), n = 0;
	char *rest = text;

	if (len > 0 && text[len - 1] == '/')
		text[len - 1] = '\0';
	while (rest) {
		const char *part = strsep(&rest, "/");

		if (n == PARTS_MAX || !*part)
			return PARTS_MAX + 1;
		ret[n++] = part;
	}
	return n;
}

static bool place(const char *const *parts, size_t n, struct api_path *ret)
{
	/* What stands in "namespaces/NS/…" and is not a resource, but belongs to the namespace. */
	if (n >= 3 && str_eq(parts[0], "namespaces") && !str_eq(parts[2], "status") &&
	    !str_eq(parts[2], "finalize")) {
		ret->ns = parts[1];
		parts += 2;
		n -= 2;
	}
	if (n > 3)
		return false;
	if (n > 0)
		ret->resource = parts[0];
	if (n > 1)
		ret->name = parts[1];
	if (n > 2)
		ret->subresource = parts[2];
	return true;
}

bool api_path_parse(const char *path, struct api_path *ret)
{
	const char *parts[PARTS_MAX] = {NULL};
	size_t n, used = 1;

	*ret = (struct api_path){.text = str_dup(path + 1)};
	n = cut(ret->text, parts);
	if (n > PARTS_MAX)
		return false;
	if (str_eq(parts[0], "api")) {
		if (n > 1)
			ret->group = "";
	} else if (str_eq(parts[0], "apis")) {
		if (n > 1)
			ret->group = parts[used++];
	} else {
		return false;
	}
	if (n > used)
		ret->version = parts[used++];
	return place(parts + used, n > used ? n - used : 0, ret);
}

void api_path_done(struct api_path *path)
{
	mem_free(path->text);
	*path = (struct api_path){0};
}
