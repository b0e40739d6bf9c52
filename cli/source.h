// SPDX-License-Identifier: Apache-2.0
/*
 * Where a command's world comes from: files as `kubectl get -o yaml` writes them, or the API
 * server.
 */
#pragma once

#include "cli/command.h"
#include "lib/kube/api.h"
#include "reconcilers/core/plan.h"

/*
 * Gather all objects of these kinds, NULL: of those that a support dump has (by their plural
 * names): { "<kind id>": { "<key>": object } }, new. A kind that the server does not have is empty;
 * so is the one that is optional for the command and that the user may not list, which a line on
 * stderr reports. Files may be support dumps; then there is CLI_DUMP, too. What stands in other
 * files is under CLI_GIVEN, whatever its kind. NULL with err:
 *	ERR_INVALID	a file is not YAML or JSON of Kubernetes objects and no support dump, or
 *                      there is no usable kubeconfig
 *	ERR_HOST	a file cannot be read
 *	ERR_TRANSIENT	the API server cannot be reached, or refuses ("Forbidden": the right that is
 *                      missing is named)
 */
json_t *source_read(const struct cli *cli, const char *const *kinds, struct err *err);

/*
 * Put into a world that source_read() read what the operator mirrors besides, so that all its
 * controllers can decide. What the API server does not let be read is absent, and stands under
 * CLI_UNREAD: { "<plural>.<group>": why }. Returns 0, or -1 with err as source_read().
 */
int source_read_rest(const struct cli *cli, json_t *world, struct err *err);

/*
 * Read the operator's Lease in its namespace: from cli->world where it has CLI_LEASES, else from
 * where the world came from. *ret_lease is new; NULL: there is none. False: it is unknown: files
 * have none, or the user may not read it.
 */
bool source_read_lease(const struct cli *cli, const char *ns, json_t **ret_lease);

/* The resource of a kind id, of those that commands look at. False: it is not known. */
bool source_resource(const char *id, struct kube_resource *ret);

/* The namespace of the operator, as far as flags and the world show. Returns new. */
char *source_operator_namespace(const struct cli *cli);

/* Is this kind of the world under CLI_UNREAD? */
bool source_is_unread(const json_t *world, const char *kind);

/* Append all objects of a file, of whatever kind. Returns 0, or -1 with err as source_read(). */
int source_objects(json_t *objects, const char *path, struct err *err);

/*
 * The kind id under which a world has objects like this one; NULL: no command reads such. One
 * without the namespace that it needs gets cli->ns.
 */
const char *source_kind(const struct cli *cli, json_t *object);

/*
 * Carry out a plan on the objects of this world, one operation after the other, each on the
 * condition of the version that was read. What was done is appended to `out`, a line each. Stops at
 * the first refusal:
 *	ERR_CONFLICT	an object has changed since it was read; the rest of the plan was not
 *                      carried out
 *	ERR_TRANSIENT	the API server cannot be reached, or refuses
 */
int source_apply(const struct cli *cli, const struct plan *plan, struct strbuf *out,
		 struct err *err);

/*
 * The namespace of the ConfigMap spiderpool-conf: that of a dump, else the operator's
 * (source_operator_namespace). Returns new; free().
 */
char *source_config_namespace(const struct cli *cli);

/*
 * The world that was read, as a new one, with what the SR-IOV side decides on besides ("env": time,
 * the operator's namespace, those that may command nodes). Objects may be added and taken out; they
 * are those of cli->world, and stay as they are.
 */
json_t *source_world(const struct cli *cli);
