// SPDX-License-Identifier: Apache-2.0
/*
 * Do ledgers, endpoints and pods agree? What does not is named, with what it means for users and
 * what mends it.
 */
#pragma once

#include "reconcilers/core/plan.h"
#include "reconcilers/ipam/candidates.h"

/*
 * All findings, those of endpoints first, then by pool and address: {"reason", "pool", "address",
 * "pod", "message"}; what does not apply is absent.
 *
 *	a reason of ledger_open	a pool's ledger cannot be read, so nothing can be handed out of it
 *	RecordWithoutPod	an address is kept for a pod that is gone
 *	RecordWithoutEndpoint	an address is kept for a pod whose SpiderEndpoint does not have it
 *	EndpointWithoutRecord	a pod has an address that its pool may hand out again
 *	AddressTwice		two pods have one address
 *	AddressOutsidePool	a pod has an address that its pool no longer has
 *	WrongCount		status.allocatedIPCount is not the number of records
 *	StaleEndpoint		a SpiderEndpoint whose pod is gone is still there
 *
 * World: KIND_IP_POOL, KIND_RESERVED_IP, KIND_ENDPOINT, KIND_POD, and KIND_STATEFUL_SET,
 * KIND_VIRTUAL_MACHINE_INSTANCE, KIND_VIRTUAL_MACHINE (release.h), each as a whole. Returns new.
 */
json_t *ipam_audit(const json_t *world, const struct ipam_settings *settings);

/*
 * Mend what no pod can miss: give back addresses of RecordWithoutPod and StaleEndpoint, take the
 * finalizer off these endpoints and delete them, take a WrongCount out (the leader puts the right
 * one there once it knows that no record is missing). Appended to `plan`: the status of pools, then
 * metadata and deletion of endpoints. What is left (AddressTwice, EndpointWithoutRecord, …) needs a
 * person.
 *
 * Writes must carry the resourceVersion of the objects in the world: a pod that came after it was
 * read has then moved the pool, and the write is refused.
 */
void ipam_repair(const json_t *world, const struct ipam_settings *settings, struct plan *plan);
