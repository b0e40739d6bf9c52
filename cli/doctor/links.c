// SPDX-License-Identifier: Apache-2.0
/*
 * Pods' interfaces lie on a NIC of the node that NetworkAttachmentDefinitions call their master.
 * All definitions are parsed once; then each NIC that is named is looked up in the NodeState, VLANs
 * by the NIC below them, and its link state says whether traffic passes.
 */
#include "cli/doctor/links.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/networks.h"

json_t *links_networks(const json_t *nads)
{
	json_t *networks = json_object(), *nad, *master;
	const char *key;
	size_t i;

	json_each (nads, key, nad) {
		json_auto_t *masters = network_masters(nad);

		json_array_foreach (masters, i, master)
			if (!json_object_get(networks, json_string_value(master)))
				json_put_str(networks, json_string_value(master), key);
	}
	return networks;
}

const json_t *links_nic(const json_t *state, const char *name)
{
	const json_t *nics = json_at(state, "status", "interfaces");
	auto_free char *below = str_ndup(name, strcspn(name, "."));
	const json_t *nic = json_find(nics, "name", name);

	return nic ? nic : json_find(nics, "name", below);
}

const char *links_why_down(const json_t *state, const char *name)
{
	const json_t *nic = links_nic(state, name);
	const char *speed = json_str_or(json_at(nic, "linkSpeed"), "");

	if (str_eq(json_str_at(nic, "linkAdminState"), "down"))
		return "it is set down";
	/* Real NICs have a speed while they have a link; paravirtual ones may never report it. */
	if (json_integer_value(json_at(nic, "totalvfs")) > 0 &&
	    (str_empty(speed) || str_starts(speed, "-1")))
		return "it has no link";
	return NULL;
}
