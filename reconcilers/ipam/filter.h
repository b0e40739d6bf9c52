// SPDX-License-Identifier: Apache-2.0
/* Which of a NIC's candidate pools may serve this pod, and in which order. */
#pragma once

#include "lib/base/err.h"
#include "reconcilers/ipam/candidates.h"
#include "reconcilers/ipam/ip_range.h"

/*
 * Why a pool may not serve the NIC: the first rule that fails, for people; new; free(). NULL when
 * it may.
 *
 * The rules, in this order: it is being deleted; spec.disable; spec.ipVersion is another;
 * spec.nodeName, else spec.nodeAffinity; spec.namespaceName, else spec.namespaceAffinity;
 * spec.podAffinity (pools made for an application: the pod must be of that application, and then no
 * further rule is asked); spec.multusName must have the NIC's network (and then no further rule is
 * asked); match_master_subnet: an address of the NIC's PF lies in spec.subnet.
 *
 * World: KIND_NODE and KIND_NAMESPACE of the pod. `want`: of candidates_find().
 */
char *filter_why_not(const json_t *world, const json_t *pod, const json_t *pool,
		     enum ip_family family, const json_t *want,
		     const struct ipam_settings *settings);

/*
 * The pools of one family of `want` that may serve, as names, best first: the more specific
 * (podAffinity, then nodeName, nodeAffinity, namespaceName, namespaceAffinity, multusName), then as
 * they stand in the list. Returns a new array, or NULL with err: ERR_INVALID "NoPool" when none
 * may, with the reason of each.
 */
json_t *filter_pools(const json_t *world, const json_t *pod, enum ip_family family,
		     const json_t *want, const struct ipam_settings *settings, struct err *err);
