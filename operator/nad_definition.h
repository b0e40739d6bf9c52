/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CustomResourceDefinition of NetworkAttachmentDefinition, which Orbweaver shares with Multus
 * and others: created where the API server serves no such kind, never changed and never deleted.
 *
 * A file that users apply cannot hold it: an apply changes the definition that Multus brought, and
 * a delete takes the networks of every team along.
 */
#pragma once

#include <jansson.h>

#include "lib/kube/client.h"

struct nad_definition;

/* client: borrowed, outlives it. */
struct nad_definition *nad_definition_new(struct kube_client *client);
/* Cancels a request in flight. NULL is fine. */
void nad_definition_free(struct nad_definition *definition);

/*
 * Request the creation, once the API server has reported that it does not serve the kind. Does
 * nothing while a request is in flight. Only the leader's request is sent (the client's fence).
 *
 * AlreadyExists: another client was faster, no error.
 * Forbidden: logged once with the command that an administrator can use instead.
 * All other errors are logged; the next leader calls again.
 */
void nad_definition_create(struct nad_definition *definition);

/* The definition as in crds/nad. Returns new. */
json_t *nad_definition_object(void);
