// SPDX-License-Identifier: Apache-2.0
/*
 * Results of CNI plugins without calling them: an interface with a MAC address made from the pod's
 * UID, and the addresses that the real agent would get from the same endpoint. pods.c of
 * cli/simulate/nodes writes network-status from them.
 */
#include "cli/simulate/decide/pod_networks.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/interface.h"
#include "nodeagent/cni/plan/result.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/endpoint.h"

json_t *pod_networks_config(void)
{
	return json_pack("{s:s, s:s, s:s, s:[{s:s, s:s, s:[{s:s, s:{s:s}}]}]}", "cniVersion",
			 "1.0.0", "name", "orbweaver", "type", "orbweaver", "delegates",
			 "cniVersion", "1.0.0", "name", "cluster-network", "plugins", "type", "ptp",
			 "ipam", "type", "host-local");
}

const json_t *pod_networks_plugin(const json_t *delegate)
{
	const json_t *plugin;
	size_t i;

	json_array_foreach (json_at(delegate, "config", "plugins"), i, plugin)
		if (str_eq(json_str_at(plugin, "ipam", "type"), "spiderpool"))
			return plugin;
	return NULL;
}

/* Locally administered, the same for a pod and an interface. */
static char *mac_for(const char *seed, const char *interface)
{
	auto_free char *text = str_printf("%s/%s", seed, interface);
	uint64_t hash = str_hash(text, strlen(text));

	return str_printf("02:%02x:%02x:%02x:%02x:%02x", (unsigned int)(hash & 0xff),
			  (unsigned int)(hash >> 8 & 0xff), (unsigned int)(hash >> 16 & 0xff),
			  (unsigned int)(hash >> 24 & 0xff), (unsigned int)(hash >> 32 & 0xff));
}

static const char *version_of(const json_t *delegate)
{
	const char *version = json_str_at(delegate, "config", "cniVersion");

	return version && result_version_is_known(version) ? version : "1.0.0";
}

/* What IPAM answers; NULL: the plugin asks no IPAM. */
static int ask_ipam(const json_t *delegate, const json_t *status, json_t **ret, struct err *err)
{
	const char *nic = json_str_at(delegate, "interface");

	*ret = NULL;
	if (!pod_networks_plugin(delegate))
		return 0;
	if (endpoint_item(status, nic))
		*ret = ipam_cni_result(status, nic, version_of(delegate));
	if (json_array_size(json_at(*ret, "ips")) > 0)
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return err_set(err, ERR_INVALID, "NoAddressForNic",
		       "no address was given to interface %s: name it in the pod's annotation "
		       "ipam.spidernet.io/ippools, or give its network a pool",
		       nic);
}

static int result_of(const json_t *delegate, const json_t *status, const char *ip, const char *seed,
		     json_t **ret, struct err *err)
{
	const char *interface = json_str_at(delegate, "interface");
	auto_free char *mac = mac_for(seed, interface);
	auto_free char *sandbox = str_printf("/var/run/netns/%s", seed);
	json_auto_t *result = result_new(), *printed = NULL, *read = NULL;

	result_add_interface(result, interface, mac, sandbox, 0, json_str_at(delegate, "deviceID"));
	if (ask_ipam(delegate, status, &printed, err) < 0)
		return -1;
	if (printed && (result_read(printed, version_of(delegate), &read, err) < 0 ||
			interface_adopt(result, read, err) < 0))
		return err_in(err, "addresses for %s", interface);
	if (ip)
		result_add_ip(result, ip, NULL, 0);
	*ret = result_write(result, version_of(delegate));
	return 0;
}

json_t *pod_networks_results(const json_t *delegates, const json_t *status, const char *ip,
			     const char *seed, struct err *err)
{
	json_auto_t *results = json_array();
	const json_t *delegate;
	size_t i;

	json_array_foreach ((json_t *)delegates, i, delegate) {
		bool is_cluster = i == 0 && !pod_networks_plugin(delegate);
		json_t *result = NULL;

		if (result_of(delegate, status, is_cluster ? ip : NULL, seed, &result, err) < 0)
			return NULL;
		json_array_append_new(results, result);
	}
	return json_incref(results);
}

static json_t *addresses_of(const json_t *result)
{
	json_t *list = json_array(), *ip;
	size_t i;

	json_array_foreach (json_at(result, "ips"), i, ip)
		json_array_append(list, json_at(ip, "address"));
	return list;
}

json_t *pod_networks_attachments(const json_t *pod, const json_t *delegates, const json_t *results)
{
	json_t *list = json_array(), *delegate;
	size_t i;

	json_array_foreach ((json_t *)delegates, i, delegate) {
		const json_t *result = json_array_get(results, i);
		const json_t *plugin = json_array_get(json_at(delegate, "config", "plugins"), 0);
		json_t *entry;

		if (i == 0)
			continue;
		entry = json_pack("{s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:o}", "pod", "namespace",
				  json_str_or(json_at(pod, "namespace"), ""), "name",
				  json_str_or(json_at(pod, "name"), ""), "ifname",
				  json_str_at(delegate, "interface"), "network",
				  json_str_at(delegate, "name"), "plugin",
				  json_str_or(json_at(plugin, "type"), ""), "phase", "added",
				  "addresses", addresses_of(result));
		json_put_str(entry, "device", json_str_at(delegate, "deviceID"));
		json_put_str(entry, "mac",
			     json_str_at(json_array_get(json_at(result, "interfaces"), 0), "mac"));
		json_array_append_new(list, entry);
	}
	return list;
}
