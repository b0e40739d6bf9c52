// SPDX-License-Identifier: Apache-2.0
/*
 * Default network first, then those of all pods, then the annotation's. Mirror, foresight and
 * decisions on addresses all start here, so that they number interfaces alike.
 */
#include "reconcilers/ipam/pod_networks.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/networks.h"

/* Where a Multus without the key, and our meta plugin, look. */
#define MULTUS_NAMESPACE "kube-system"

static const char *multus_namespace(const struct ipam_settings *settings)
{
	return str_empty(settings->multus_ns) ? MULTUS_NAMESPACE : settings->multus_ns;
}

/* Is it one of these names, separated by commas? */
static bool is_listed(const char *names, const char *name)
{
	auto_free char *copy = str_dup(names);
	char *rest = copy, *item;

	while ((item = strsep(&rest, ",")))
		if (str_eq(str_trim(item), name))
			return true;
	return false;
}

/* A new reference; null: not known. */
static json_t *default_network(const json_t *pod, const struct ipam_settings *settings,
			       struct err *err)
{
	const char *text = json_str_at(pod, "metadata", "annotations", DEFAULT_NETWORK_ANNOTATION);
	bool is_asked = text != NULL;
	json_auto_t *list = NULL;
	json_t *network;

	if (!text)
		text = settings->cluster_network;
	if (!text)
		return json_null();
	list = networks_parse(text, is_asked ? "" : settings->ns, err);
	if (!list) {
		(void)err_in(err, "annotation " DEFAULT_NETWORK_ANNOTATION);
		return NULL;
	}
	network = json_array_get(list, 0);
	if (!network)
		return json_null();
	json_put_str(network, "interface", "eth0");
	if (str_empty(json_str_at(network, "namespace"))) {
		json_put_str(network, "namespace", multus_namespace(settings));
		if (str_empty(settings->multus_ns))
			json_put_str(network, "elsewhere", settings->ns);
	}
	return json_incref(network);
}

/* What every pod of other than the system's namespaces has besides. */
static void add_defaults(const json_t *pod, const struct ipam_settings *settings, json_t *list)
{
	const char *systems =
		settings->system_namespaces ? settings->system_namespaces : MULTUS_NAMESPACE;
	auto_free char *copy = str_dup(settings->default_networks);
	char *rest = copy, *name;

	if (is_listed(systems, json_namespace(pod)))
		return;
	while (rest && (name = strsep(&rest, ","))) {
		name = str_trim(name);
		if (*name)
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:o}", "name", name, "namespace",
						multus_namespace(settings), "interface",
						json_fmt("net%zu", json_array_size(list))));
	}
}

json_t *pod_networks(const json_t *pod, const struct ipam_settings *settings, struct err *err)
{
	const char *text = json_str_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION);
	json_t *first = default_network(pod, settings, err);
	json_auto_t *list = NULL, *more = NULL;

	assert(pod && settings);
	if (!first)
		return NULL;
	list = json_pack("[o]", first);
	add_defaults(pod, settings, list);
	more = networks_parse_from(text ? text : "", json_namespace(pod), json_array_size(list),
				   err);
	if (!more) {
		(void)err_in(err, "annotation " NETWORKS_ANNOTATION);
		return NULL;
	}
	json_array_extend(list, more);
	return json_incref(list);
}

char *pod_network_other_key(const json_t *network)
{
	const char *ns = json_str_at(network, "elsewhere");

	return ns ? str_printf("%s/%s", ns, json_str_at(network, "name")) : NULL;
}
