// SPDX-License-Identifier: Apache-2.0
/*
 * One shape for what users write in two: a single plugin becomes a list of one. Everything that
 * comes from a NetworkAttachmentDefinition, a file or a Multus passes here before delegates.c or
 * takeover.c look at its plugins.
 */
#include "nodeagent/cni/plan/network_config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/cni_rules.h"
#include "reconcilers/core/names.h"

#define BAD "BadNetworkConfig"

bool cni_version_at_least(const char *version, int major, int minor)
{
	int have_major = 0, have_minor = 1;

	if (!version || sscanf(version, "%3d.%3d", &have_major, &have_minor) != 2)
		have_major = 0, have_minor = 1;
	return have_major > major || (have_major == major && have_minor >= minor);
}

bool network_key_is(const char *key, const char *name)
{
	while (*key && *name) {
		if (*name == 's' && str_starts(key, "\xc5\xbf")) {
			key += 2;
			name++;
		} else if (*name == 'k' && str_starts(key, "\xe2\x84\xaa")) {
			key += 3;
			name++;
		} else if (strncasecmp(key, name, 1) == 0) {
			key++;
			name++;
		} else {
			return false;
		}
	}
	return *key == *name;
}

json_t *network_config_read(const json_t *config, const char *name, const char *version,
			    struct err *err)
{
	json_auto_t *list = NULL;
	bool single = !json_at(config, "plugins");

	assert(name && version);
	if (!json_is_object(config)) {
		err_set(err, ERR_INVALID, BAD,
			"network \"%.64s\": the configuration must be a JSON object with type or "
			"plugins",
			name);
		return NULL;
	}
	if (cni_rules_network(config, err) < 0) {
		err_in(err, "network \"%.64s\"", name);
		return NULL;
	}
	if (single) {
		list = json_pack("{s:b, s:[o]}", "single", true, "plugins", json_deep_copy(config));
		json_put_str(list, "cniVersion", json_str_or(json_at(config, "cniVersion"), ""));
		json_put_str(list, "name", json_str_at(config, "name"));
	} else {
		list = json_deep_copy(config);
		json_object_del(list, "single");
		if (!*json_str_or(json_at(list, "cniVersion"), ""))
			json_put_str(list, "cniVersion", version);
	}
	if (!*json_str_or(json_at(list, "name"), ""))
		json_put_str(list, "name", name);
	if (single)
		json_put_str(json_array_get(json_at(list, "plugins"), 0), "name",
			     json_str_at(list, "name"));
	if (!name_is_cni_network(json_str_at(list, "name"))) {
		err_set(err, ERR_INVALID, BAD,
			"network \"%.64s\": the name \"%.64s\" in its configuration must have "
			"letters, digits, '_', '.' and '-' only",
			name, json_str_at(list, "name"));
		return NULL;
	}
	return json_incref(list);
}
