// SPDX-License-Identifier: Apache-2.0
/*
 * Admission webhooks: which configurations match a write, the calls, what their answers mean.
 *
 * Rules, scope, namespaceSelector, objectSelector, failurePolicy, timeoutSeconds and sideEffects
 * count. matchConditions are CEL and do not: a webhook is called for all that its rules match.
 * clientConfig.service leads nowhere, since there is no pod network: such a webhook fails, and its
 * failurePolicy says what that means; clientConfig.url is called.
 *
 * Source: Kubernetes documentation, "Dynamic Admission Control".
 */
#pragma once

#include "cli/simulate/api/api_internal.h"

struct webhooks *webhooks_new(struct api *api);
/* Calls in flight are refused. */
void webhooks_free(struct webhooks *webhooks);

/* What is to be admitted; all borrowed until the callback. */
struct admission {
	const struct resource *resource;
	const char *subresource; /* or NULL */
	const char *operation;   /* "CREATE", "UPDATE", "DELETE", "CONNECT" */
	const char *ns, *name;   /* NULL: none */
	const char *user;
	bool is_dry_run;
	const json_t *object, *old; /* NULL: none */
};

/*
 * refusal.status 0: admitted, and object is the object, new, as mutating webhooks have made it.
 * Else the callee takes the refusal's object. May be called before the function returns.
 */
typedef void webhooks_done_fn(void *arg, struct outcome refusal, json_t *object);

/* Ask all mutating webhooks that match, one after the other; or all validating ones. */
void webhooks_ask(struct webhooks *webhooks, bool is_mutating, const struct admission *admission,
		  webhooks_done_fn *done, void *arg);

/* Whether rules of a webhook match: pure, for tests. labels of the namespace, or NULL. */
bool webhooks_match(const json_t *webhook, const struct admission *admission,
		    const json_t *namespace_object);
