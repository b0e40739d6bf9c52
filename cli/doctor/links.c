/*
 * Is what pods' networks lie over up? See the header.
 */
#include "cli/doctor/links.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

static void add_master(json_t *masters, const json_t *plugin)
{
	const char *master = json_str_at(plugin, "master");

	if (!str_empty(master) && !json_list_has(masters, master))
		json_array_append_new(masters, json_string(master));
}

json_t *links_masters(const json_t *nad)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	json_auto_t *config = json_parse(text, strlen(text), NULL);
	json_t *masters = json_array(), *plugin;
	size_t i;

	add_master(masters, config);
	json_array_foreach (json_at(config, "plugins"), i, plugin)
		add_master(masters, plugin);
	return masters;
}

json_t *links_networks(const json_t *nads)
{
	json_t *networks = json_object(), *nad, *master;
	const char *key;
	size_t i;

	json_each (nads, key, nad) {
		json_auto_t *masters = links_masters(nad);

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
	/* Real NICs have a speed while they have a link; paravirtual ones may never tell it. */
	if (json_integer_value(json_at(nic, "totalvfs")) > 0 &&
	    (str_empty(speed) || str_starts(speed, "-1")))
		return "it has no link";
	return NULL;
}
