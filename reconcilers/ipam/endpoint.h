// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderEndpoints: what a pod has, and how its node's agent asks for addresses and says that they
 * are not in use any more.
 *
 * They follow from ledgers, pods and the agents' words, so they carry no finalizer and no owner
 * reference: the garbage collector would remove them with the pod, before the agent has said that
 * the interfaces are down.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* The node of the pod: endpoint_node_label() of its name. */
#define ENDPOINT_NODE_LABEL "orbweaver.io/node"

/*
 * A node's name may be longer than a label's value: then its beginning and a hash of it. Returns
 * new; free().
 */
char *endpoint_node_label(const char *node);

/*
 * By the agent, JSON: {"uid": UID of the pod, "pod": its name, "asks": asks of NICs
 * (candidates.h)}. Asks for NICs that could not be foreseen without the node. Without "pod" the
 * pod's name is the endpoint's.
 */
#define ENDPOINT_ASKS_ANNOTATION "orbweaver.io/asks"

/* By the agent: nothing of the pod with this UID is left on the node. Holds for this UID alone. */
#define ENDPOINT_DOWN_ANNOTATION "orbweaver.io/down"

/* By the operator, an answer to asks: "UID Reason: what is in the way and what to do next". */
#define ENDPOINT_REFUSED_ANNOTATION "orbweaver.io/refused"

/*
 * Endpoints "lost-<UID>-<hash of the pool>" in the operator's namespace ask a node's agent about a
 * pod that has ended and has records in the pool, but no endpoint: its namespace may be gone, or
 * its name may be another pod's. Their status.ownerControllerName is "namespace/name" in the
 * records.
 */
#define ENDPOINT_LOST_PREFIX "lost-"

/*
 * Is it one of these? ns is the operator's namespace. Elsewhere an endpoint of such a name is that
 * of a pod: any user can create it.
 */
bool endpoint_is_lost(const json_t *endpoint, const char *ns);

/* "namespace/name" of the pod (or machine) whose addresses it says. Returns new; free(). */
char *endpoint_pod_key(const json_t *endpoint, const char *ns);

/* {"name", "namespace", "labels"} for the pod on this node. Returns new. */
json_t *endpoint_metadata(const char *ns, const char *name, const char *node);

/*
 * The object that says `status` (allocate.h) about the pod with the key "namespace/name". Returns
 * new.
 */
json_t *endpoint_object(const char *key, const json_t *status);

/* UID that status.current speaks about; "" while there is no status. Borrowed. */
const char *endpoint_uid(const json_t *endpoint);

/*
 * Of a status what is needed to give its addresses back: {"current": {"uid", "ips": [{"ipv4",
 * "ipv4Pool", "ipv6", "ipv6Pool"}]}}; without "ips" when they are more than a pod can have. Returns
 * new.
 */
json_t *endpoint_addresses(const json_t *status);

/* The item of a NIC in an endpoint's status; NULL when it has none. Borrowed. */
const json_t *endpoint_item(const json_t *status, const char *nic);

/* What the agent asks for the pod with this UID; NULL: nothing. Returns new. */
json_t *endpoint_asks(const json_t *endpoint, const char *uid);

/*
 * Key "namespace/name" of the pod that asks; the endpoint's own when none does. Returns new;
 * free().
 */
char *endpoint_asker(const json_t *endpoint);

/* The text of ENDPOINT_ASKS_ANNOTATION. Returns new; free(). */
char *endpoint_asks_text(const char *uid, const char *pod, const json_t *asks);

/* Has the agent said that nothing of this UID is left? */
bool endpoint_is_down(const json_t *endpoint, const char *uid);

/* Is it about the pod with this UID: what it has, or what is asked for it? */
bool endpoint_is_of(const json_t *endpoint, const char *uid);

/* Does it name this address of this pool, whoever has it? */
bool endpoint_names(const json_t *endpoint, const char *pool, const char *address);

/* Does it say that the pod with this UID has this address of this pool? */
bool endpoint_has(const json_t *endpoint, const char *uid, const char *pool, const char *address);

/*
 * Does the pod with this UID have an item for each NIC of `asks`, whose addresses nobody else was
 * found to have (conflict.h)?
 */
bool endpoint_answers(const json_t *endpoint, const char *uid, const json_t *asks);
