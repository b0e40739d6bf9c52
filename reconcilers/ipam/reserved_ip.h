// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderReservedIP → status: are its ranges good, and how many addresses does it keep back.
 *
 * Key: the object's name. World: KIND_RESERVED_IP (the object). The effect, addresses that no pool
 * hands out, is IPAM's; pools tell about it in their own status (ip_pool.h). The plan: status with
 * the condition Ready.
 */
#pragma once

#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/ip_range.h"

reconcile_fn reserved_ip_reconcile;

/*
 * What spec.ipVersion says, else the spelling of the first entry; 0 when neither tells. May be no
 * family at all.
 */
int reserved_ip_family(const json_t *spec);

/* All rules for its spec. */
void reserved_ip_check(const json_t *object, struct problems *problems);

/*
 * Add what SpiderReservedIPs keep back of a family, { name: object } or NULL, to the set, and
 * settle it; of a network, which is no entry for it, all addresses. ERR_INVALID "BadReservedIP": an
 * entry cannot be read, of the first object by name that
 * has one; the others are in the set all the same.
 */
int reserved_ip_read(const json_t *reserved, enum ip_family family, struct ip_set *set,
		     struct err *err);
