// SPDX-License-Identifier: Apache-2.0
/*
 * Paths of requests: "/apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUBRESOURCE" and its shorter
 * forms. Pure.
 *
 * Source: Kubernetes documentation, "Kubernetes API Concepts", Resource URIs.
 */
#pragma once

#include <stdbool.h>

/* NULL: not in the path. Strings live in `text`. */
struct api_path {
	char *text;
	const char *group;   /* "" for /api; NULL: /api or /apis alone */
	const char *version; /* NULL: /apis/GROUP alone */
	const char *ns;
	const char *resource; /* NULL: the resources of a version */
	const char *name;
	const char *subresource;
};

/*
 * path: decoded, begins with '/'. False: not a path of the API; *ret can be given to api_path_done
 * either way. A slash at the end does not count; an empty part is refused.
 */
bool api_path_parse(const char *path, struct api_path *ret);
void api_path_done(struct api_path *path);
