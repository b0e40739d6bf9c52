// SPDX-License-Identifier: Apache-2.0
/*
 * spec.roce of a SriovNetworkPoolConfig: a profile, settings, and the NICs that get them;
 * docs/fabric.md.
 *
 * Names and values of settings are those of nodeagent/model/nic_settings.h.
 */
#pragma once

#include "reconcilers/core/problems.h"
#include "reconcilers/sriov/node_decision.h"

/* Entries of spec.nicSettings, as the schema in crds/ has it. */
enum { ROCE_NICS_MAX = 64 };

/* Can it be used? NULL can. problems: NULL, or says all that is wrong. */
bool roce_settings_check(const json_t *roce, struct problems *problems);

/*
 * NodeState.spec.nicSettings of a node with this decision, for a `roce` that can be used. New:
 *
 *	[{"pciAddress", "name", "settings": {"pfc": [3]}, "ifSupported": ["ecn"],
 *	  "unlessProtected": true}]
 *
 * What is written in the pool wins over its profile; what only the profile has is in ifSupported.
 * Without a nicSelector the NICs are the ports with a rail, of the link that the profile is for and
 * not externallyManaged; those are passed over where they carry the node's own traffic. By PCI
 * address; NULL: no NIC gets any.
 */
json_t *roce_settings_nics(const struct decision *d, const json_t *roce);

/*
 * Names of the settings of an entry that the PF, an element of status.interfaces, does not have as
 * wanted. Those in ifSupported count only where the PF has another value. New.
 */
json_t *roce_settings_unmet(const json_t *nic, const json_t *pf);

/* Is all that spec.nicSettings of a NodeState wants so, as far as its NICs are there to have it? */
bool roce_settings_are_met(const json_t *state);
