// SPDX-License-Identifier: Apache-2.0
/*
 * When do a pod's addresses come back? When it has ended, as far as that can be known, never
 * because time has passed.
 */
#pragma once

#include "reconcilers/ipam/allocate/books.h"
#include "reconcilers/ipam/candidates.h"

/*
 * Owners whose pods keep their addresses, as worlds name them. Not mirrored: read when one of their
 * pods is gone.
 */
#define KIND_STATEFUL_SET             "statefulsets"
#define KIND_VIRTUAL_MACHINE_INSTANCE "virtualmachineinstances"
#define KIND_VIRTUAL_MACHINE          "virtualmachines"

/* What bounds the pods of a namespace, as worlds name it. */
#define KIND_RESOURCE_QUOTA "resourcequotas"

/*
 * May others have what the pod `uid` had?
 *
 * key:	"namespace/name" of the record or endpoint: the pod's, or the virtual machine instance's.
 * pod:	the object of the pod's name as it is now, NULL: there is none.
 * endpoint: the SpiderEndpoint of that name, NULL: there is none.
 * is_down: its interfaces were taken down, or its node's agent says that nothing of it is left, or
 * its node is gone for good.
 *
 * Not while a pod with this UID is alive or its interfaces may be up; not while a StatefulSet or a
 * virtual machine that the endpoint names is there and has a place for it.
 * World: KIND_STATEFUL_SET, KIND_VIRTUAL_MACHINE_INSTANCE, KIND_VIRTUAL_MACHINE: what the endpoint
 * names.
 */
bool release_is_due(const json_t *world, const char *key, const char *uid, const json_t *pod,
		    const json_t *endpoint, bool is_down, const struct ipam_settings *settings);

/*
 * For how many ended pods of StatefulSets may the namespace keep addresses? As many as the
 * smallest "pods" or "count/pods" of its ResourceQuotas without a scope; -1: any number. Name,
 * owner and spec.replicas are the user's; the quota is the administrator's.
 * World: KIND_RESOURCE_QUOTA of this namespace; others are passed over.
 */
int64_t release_ended_max(const json_t *world, const char *ns);

/* Of a ResourceQuota what that reads; in place. */
void release_project_quota(json_t *quota);
/* Does it bound the number of pods? */
bool release_wants_quota(const json_t *quota);
