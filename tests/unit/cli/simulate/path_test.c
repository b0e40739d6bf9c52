// SPDX-License-Identifier: Apache-2.0
/* What the parts of a path mean. */
#include "tests/support/test.h"

#include "cli/simulate/api/path.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

TEST(finds_the_parts_of_a_path)
{
	static const struct {
		const char *path;
		struct api_path want;
	} cases[] = {
		{"/api", {0}},
		{"/apis/", {0}},
		{"/api/v1", {.group = "", .version = "v1"}},
		{"/apis/apps", {.group = "apps"}},
		{"/apis/apps/v1", {.group = "apps", .version = "v1"}},
		{"/api/v1/nodes", {.group = "", .version = "v1", .resource = "nodes"}},
		{"/api/v1/nodes/a/status",
		 {.group = "",
		  .version = "v1",
		  .resource = "nodes",
		  .name = "a",
		  .subresource = "status"}},
		{"/api/v1/namespaces/a",
		 {.group = "", .version = "v1", .resource = "namespaces", .name = "a"}},
		{"/api/v1/namespaces/a/status",
		 {.group = "",
		  .version = "v1",
		  .resource = "namespaces",
		  .name = "a",
		  .subresource = "status"}},
		{"/api/v1/namespaces/a/pods",
		 {.group = "", .version = "v1", .ns = "a", .resource = "pods"}},
		{"/apis/apps/v1/namespaces/a/deployments/b/scale",
		 {.group = "apps",
		  .version = "v1",
		  .ns = "a",
		  .resource = "deployments",
		  .name = "b",
		  .subresource = "scale"}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct api_path *want = &cases[i].want;
		struct api_path got;

		if (!api_path_parse(cases[i].path, &got))
			fail_msg("refused: %s", cases[i].path);
		if (!str_eq(got.group, want->group) || !str_eq(got.version, want->version) ||
		    !str_eq(got.ns, want->ns) || !str_eq(got.resource, want->resource) ||
		    !str_eq(got.name, want->name) || !str_eq(got.subresource, want->subresource))
			fail_msg("misread: %s", cases[i].path);
		api_path_done(&got);
	}
}

TEST(refuses_paths_that_are_none)
{
	static const char *const paths[] = {
		"/",
		"//",
		"/metrics",
		"/api//v1",
		"/api/v1/pods//",
		"/apis/apps/v1/namespaces/a/deployments/b/scale/c",
	};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct api_path got;

		if (api_path_parse(paths[i], &got))
			fail_msg("taken: %s", paths[i]);
		api_path_done(&got);
	}
}
