// SPDX-License-Identifier: Apache-2.0
/* Interfaces of a node that networks of pods lie over, and whether traffic passes them. Pure. */
#pragma once

#include <jansson.h>

/*
 * Of all NetworkAttachmentDefinitions, { key: object } (NULL: not known), to be parsed once for all
 * nodes: { master: key of the first that names it }. Returns new.
 */
json_t *links_networks(const json_t *nads);

/* The NIC of the NodeState with that name, or the one that "NAME.VLAN" lies on. Borrowed. */
const json_t *links_nic(const json_t *state, const char *name);

/*
 * "it is set down", "it has no link", of links_nic(). NULL: traffic passes, or it is unknown: a
 * bond, a NIC whose driver never reports its speed. Borrowed.
 */
const char *links_why_down(const json_t *state, const char *name);
