// SPDX-License-Identifier: Apache-2.0
/*
 * Subresources and kinds that are questions or commands: binding, eviction, token requests, reviews
 * of tokens and access.
 */
#pragma once

#include "cli/simulate/api/api_internal.h"

/* POST …/pods/NAME/binding: the pod gets its node. Borrows body. */
struct outcome subresource_bind(struct api *api, const struct resource *pods, const char *ns,
				const char *name, const json_t *body);

/*
 * POST …/pods/NAME/eviction: delete it, unless a PodDisruptionBudget is in the way (429). Budgets
 * count running pods that they select; there is no controller that keeps their status.
 */
struct outcome subresource_evict(struct api *api, const struct resource *pods, const char *ns,
				 const char *name, const json_t *body, bool dry_run);

/* POST …/serviceaccounts/NAME/token: a token that this server knows until it ends. */
struct outcome subresource_token(struct api *api, const struct resource *accounts, const char *ns,
				 const char *name, const json_t *body);

/*
 * A TokenReview is answered by the tokens of this server; reviews of access say yes: there are no
 * rights here.
 */
struct outcome subresource_review(struct api *api, const struct resource *resource,
				  const json_t *body);
