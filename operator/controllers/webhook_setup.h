// SPDX-License-Identifier: Apache-2.0
/*
 * What has to be in the cluster so that API servers call our webhooks, and trust them: the
 * certificate's Secret (certificates.h), then one ValidatingWebhookConfiguration and one
 * MutatingWebhookConfiguration. Without webhooks: that nothing of it is left over.
 *
 *	WEBHOOK_VALIDATING  /validate  creations and updates of the kinds that users write
 *	WEBHOOK_MUTATING    /default   the same, for the kinds with defaults
 *	                    /inject    creations of pods, if podResourceInject of spiderpool-conf is
 *                                     enabled
 *
 * What keeps the cluster safe from us: failurePolicy Ignore and a short timeout (defaults and rules
 * are with the reconcilers anyway, inject_check.h finds pods that were passed over), no deletes, no
 * status, never the pods of kube-system and of the operator itself. Pods are narrowed to those that
 * ask where the server can do that (matchConditions); a server from before 1.21 does not put the
 * label kubernetes.io/metadata.name on namespaces, so lists of namespaces narrow what it calls only
 * for namespaces that carry it, and the rest is decided when the call comes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "operator/controllers/controllers.h"

/* From flags and from what the server can do. Borrowed. */
struct webhook_settings {
	const char *listen;    /* NULL: no webhooks */
	const char *service;   /* in the operator's namespace, port 443 */
	const char *url;       /* "https://HOST:PORT", instead of the Service; NULL: none */
	int64_t lifetime_s;    /* of a certificate */
	bool match_conditions; /* servers from 1.28 on */
};

enum {
	/*
	 * An API server waits at most this long for us, then goes on without (failurePolicy
	 * Ignore).
	 */
	WEBHOOK_TIMEOUT_S = 5,
	WEBHOOK_POD_TIMEOUT_S = 2,
};

/*
 * "https://[::1]:8443" → "::1". NULL when it is not https://HOST or https://HOST:PORT. Returns new;
 * free().
 */
char *webhook_url_host(const char *url);

/* The key of the one thing to look at. */
#define WEBHOOK_SETUP_KEY WEBHOOK_VALIDATING

/*
 * World: MIRROR_CERTIFICATE, MIRROR_VALIDATING, MIRROR_MUTATING, MIRROR_SPIDERPOOL_CONF,
 * MIRROR_SWITCHES: what there is; KIND_NAMESPACE: those that podResourceInject includes, and those
 * that ask for injection; "env": "now", "namespace", and without webhooks nothing else, else
 * "webhook": {"service" or "url", "lifetimeSeconds", "matchConditions"}.
 *
 * Pure but for the keys of new certificates.
 */
reconcile_fn webhook_setup_reconcile;

/* The world of that; `self` and `key` are not looked at. */
void webhook_setup_gather(const struct controller_sources *from, const struct controller *self,
			  const char *key, json_t *world);

/* Wake it: something that its world holds has changed. */
void webhook_setup_changed(const struct change *c);
