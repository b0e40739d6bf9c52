// SPDX-License-Identifier: Apache-2.0
/*
 * The end of objects: finalizers, owners and their dependents, namespaces.
 *
 * A real cluster does the latter two in kube-controller-manager, a moment later; here they are done
 * when the request that makes them due is answered. Other than there, an object whose owner never
 * existed stays.
 *
 * Sources: Kubernetes documentation, "Garbage Collection", "Finalizers", "Owners and Dependents".
 */
#pragma once

#include "cli/simulate/api/api_internal.h"

enum propagation {
	PROPAGATE_BACKGROUND,
	PROPAGATE_FOREGROUND,
	PROPAGATE_ORPHAN,
};

struct garbage *garbage_new(struct api *api);
void garbage_free(struct garbage *garbage);

/*
 * Store an object, new or changed. One that is being deleted and whose last finalizer has gone is
 * removed instead. Borrows object, which must not change afterwards.
 */
void garbage_put(struct garbage *garbage, struct collection *collection, json_t *object);

/*
 * Begin to delete an object, or go on. grace_s: seconds that a pod on a node gets, -1: what it asks
 * for; other objects have none. Returns its last state, new, with *ret_gone set when it is removed.
 */
json_t *garbage_delete(struct garbage *garbage, const struct resource *resource, const char *key,
		       enum propagation propagation, int64_t grace_s, bool *ret_gone);

/* Do all that follows from what was put and deleted. */
void garbage_settle(struct garbage *garbage);
