// SPDX-License-Identifier: Apache-2.0
/*
 * Operator, agents and command line read the switches with this before they decide on addresses.
 * All or nothing: with one wrong field the caller goes on with what it had.
 */
#include "reconcilers/ipam/ipam_settings.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"

#define CONFIG_KEY "conf.yml"

static const struct {
	const char *key;
	size_t offset;
	bool is_on; /* without conf.yml */
} switches[] = {
	{"enableIPv4", offsetof(struct ipam_settings, ipv4), true},
	{"enableIPv6", offsetof(struct ipam_settings, ipv6), true},
	{"enableStatefulSet", offsetof(struct ipam_settings, keeps_stateful_sets), true},
	{"enableKubevirtStaticIP", offsetof(struct ipam_settings, keeps_virtual_machines), true},
	{"enableIPConflictDetection", offsetof(struct ipam_settings, detects_conflicts), false},
	{"enableGatewayDetection", offsetof(struct ipam_settings, detects_gateways), false},
};

int ipam_settings_read(const json_t *config_map, const char *ns, struct ipam_settings *ret,
		       struct err *err)
{
	const char *text = json_str_at(config_map, "data", CONFIG_KEY);
	const char *network = json_str_or(json_at(config_map, "data", "clusterNetwork"), "");
	json_auto_t *document = text ? yaml_parse(text, strlen(text), err) : NULL;
	struct ipam_settings settings = {
		.ns = ns,
		.cluster_network = *network ? network : NULL,
		.multus_ns = json_str_at(config_map, "data", "multusNamespace"),
		.default_networks = json_str_at(config_map, "data", "defaultNetworks"),
		.system_namespaces = json_str_at(config_map, "data", "systemNamespaces"),
	};

	if (text && !json_is_object(document))
		return err_set(err, ERR_INVALID, "BadConfig",
			       "ConfigMap " IPAM_CONFIG_MAP ": data[" CONFIG_KEY
			       "] must be a YAML object");
	for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
		bool *on = (bool *)((char *)&settings + switches[i].offset);
		struct err inner = {0};

		if (json_get_bool(document, "", switches[i].key, !text && switches[i].is_on, on,
				  &inner) < 0)
			return err_set(err, ERR_INVALID, "BadConfig",
				       "ConfigMap " IPAM_CONFIG_MAP ": data[" CONFIG_KEY "]: %s",
				       inner.text);
	}
	*ret = settings;
	return 0;
}
