// SPDX-License-Identifier: Apache-2.0
/* Who is away: the operator that leads, the kubelet of a node. Pure. */
#pragma once

#include <jansson.h>

/* A holder that has not renewed its Lease for so many times leaseDurationSeconds is away. */
enum { AWAY_TERMS = 3 };

/*
 * "no operator leads since 2026-01-31T10:00:00Z"; NULL: one does. Returns new.
 *
 * lease: the operator's (coordination.k8s.io/v1, LeaseSpec), NULL: there is none.
 * now: RFC 3339; NULL: not known, so a holder is believed.
 */
char *away_leader(const json_t *lease, const char *now);

/*
 * "its condition Ready is Unknown since 2026-01-31T10:00:00Z: NodeStatusUnknown: Kubelet stopped
 * posting node status."; NULL: the Node is Ready, or nothing is known of it (node may be NULL).
 * Returns new.
 */
char *away_node(const json_t *node);
