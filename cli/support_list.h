// SPDX-License-Identifier: Apache-2.0
/*
 * What a support dump asks the API server for: what the operator mirrors (operator/cache/kinds.h),
 * what the agents and our commands read besides, and what shows whether all of it is installed.
 * Never Secrets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/kube/api.h"

/* The file that lists what is in a dump, and its kind. */
#define SUPPORT_INDEX "index.json"
#define SUPPORT_KIND  "SupportDump"

/* Objects of one kind that are listed at once. */
struct support_selection {
	struct kube_resource resource;
	const char *name; /* only objects of this name, in any namespace; NULL: all */
};

enum { SUPPORT_SELECTIONS_MAX = 96 };

/*
 * Fill at most SUPPORT_SELECTIONS_MAX of them; those of one resource stand side by side, and a
 * resource of which all objects are asked for stands there once. Returns how many.
 */
size_t support_list(struct support_selection *ret);

/* Those of them that the operator mirrors. */
size_t support_list_mirrored(struct support_selection *ret);

bool support_same_resource(const struct kube_resource *a, const struct kube_resource *b);

/* "nodes", "leases.coordination.k8s.io". Returns new. */
char *support_resource_name(const struct kube_resource *resource);

/* The name of its file in a dump: "objects/nodes.json". Returns new. */
char *support_file_name(const struct kube_resource *resource);
