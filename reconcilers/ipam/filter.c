// SPDX-License-Identifier: Apache-2.0
/*
 * allocate_take.c calls this with the candidates of a NIC, by name. Each rule answers with a
 * sentence, so that the message to a pod without a pool has the reason of each; the order is
 * settled after all rules.
 */
#include "reconcilers/ipam/filter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/labels.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/pod_controller.h"
#include "reconcilers/ipam/pod_networks.h"

/* Pools that Spiderpool makes for an application say so with these. */
#define APP_LABEL  "ipam.spidernet.io/owner-application-name"
#define APP_PREFIX "ipam.spidernet.io/app-"

/* A list of names counts before a selector of labels; neither means everybody. */
static bool meets_selection(const json_t *names, const json_t *selector, const char *name,
			    const json_t *object)
{
	if (json_array_size(names))
		return json_list_has(names, name);
	if (!selector)
		return true;
	return object && label_selector_matches(selector, json_at(object, "metadata", "labels"));
}

/* The five labels that name the application are those of the pod's controller. */
static bool is_of_application(const json_t *pool, const json_t *pod)
{
	const json_t *labels = json_at(pool, "spec", "podAffinity", "matchLabels");
	struct pod_controller top = pod_controller(pod);
	const char *slash = strchr(top.api_version, '/');
	auto_free char *group =
		slash ? str_ndup(top.api_version, (size_t)(slash - top.api_version)) : str_dup("");

	return str_eq(json_str_at(labels, APP_PREFIX "api-group"), group) &&
	       str_eq(json_str_at(labels, APP_PREFIX "api-version"),
		      slash ? slash + 1 : top.api_version) &&
	       str_eq(json_str_at(labels, APP_PREFIX "kind"), top.kind) &&
	       str_eq(json_str_at(labels, APP_PREFIX "namespace"), json_namespace(pod)) &&
	       str_eq(json_str_at(labels, APP_PREFIX "name"), top.name);
}

/* ---- the network of a NIC -------------------------------------------------------------------- */

/*
 * "namespace/name" of the NetworkAttachmentDefinition behind a NIC; NULL with err when it cannot be
 * told. *ret_other: another one that it may be, or NULL.
 */
static char *network_of(const json_t *pod, const char *nic, const struct ipam_settings *settings,
			char **ret_other, struct err *err)
{
	json_auto_t *list = pod_networks(pod, settings, err);
	const json_t *network;
	int64_t number;

	if (!list)
		return NULL;
	network = str_to_int(nic, 0, INT32_MAX, &number) ? json_array_get(list, (size_t)number)
							 : NULL;
	if (!network)
		network = json_find(list, "interface", nic);
	if (json_is_object(network)) {
		*ret_other = pod_network_other_key(network);
		return network_key(network);
	}
	if (str_eq(nic, "eth0") || str_eq(nic, "0") || json_array_size(list) == 1) {
		err_set(err, ERR_INVALID, "NoPool", "the network of NIC %s is not known", nic);
		return NULL;
	}
	err_set(err, ERR_INVALID, "NoPool",
		"annotation " NETWORKS_ANNOTATION " has no network for NIC %s", nic);
	return NULL;
}

/* The network behind a NIC, read when a pool asks for it the first time. */
struct behind {
	char *network; /* NULL: see err */
	char *other;   /* or this one; NULL: none */
	struct err err;
	bool is_read;
};

static void behind_done(struct behind *behind)
{
	free(behind->network);
	free(behind->other);
}

/* Is the NIC's network one of spec.multusName? */
static char *why_other_network(const json_t *pool, const json_t *pod, const json_t *want,
			       const struct ipam_settings *settings, struct behind *behind)
{
	const char *network;
	json_t *name;
	size_t i;

	if (!behind->is_read)
		behind->network = network_of(pod, json_str_at(want, "nic"), settings,
					     &behind->other, &behind->err);
	behind->is_read = true;
	network = behind->network;
	if (!network)
		return str_printf("spec.multusName is set, and %s", behind->err.text);
	json_array_foreach (json_at(pool, "spec", "multusName"), i, name) {
		const char *text = json_str_or(name, "");
		auto_free char *key =
			strchr(text, '/') ? str_dup(text) : str_printf("%s/%s", settings->ns, text);

		if (str_eq(key, network) || str_eq(key, behind->other))
			return NULL;
	}
	return str_printf("spec.multusName does not have %s, the network of NIC %s", network,
			  json_str_at(want, "nic"));
}

static bool has_address_in(const json_t *addresses, const json_t *pool)
{
	struct ip_subnet subnet;
	json_t *address;
	size_t i;

	if (ip_subnet_parse(json_str_or(json_at(pool, "spec", "subnet"), ""), &subnet, NULL) < 0)
		return false;
	json_array_foreach (addresses, i, address) {
		ip_number number;

		if (ip_parse(json_str_or(address, ""), subnet.family, &number, NULL) == 0 &&
		    ip_range_has(subnet.range, number))
			return true;
	}
	return false;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static char *why_not(const json_t *world, const json_t *pod, const json_t *pool,
		     enum ip_family family, const json_t *want,
		     const struct ipam_settings *settings, struct behind *behind)
{
	const json_t *spec = json_at(pool, "spec");
	const char *node = json_str_or(json_at(pod, "spec", "nodeName"), "");
	const char *ns = json_namespace(pod);

	if (object_is_terminating(pool))
		return str_dup("it is being deleted");
	if (json_is_true(json_at(spec, "disable")))
		return str_dup("spec.disable is true");
	if (ip_pool_family(spec) != (int)family)
		return str_printf("it is not an IPv%d pool", (int)family);
	if (!meets_selection(json_at(spec, "nodeName"), json_at(spec, "nodeAffinity"), node,
			     world_get(world, KIND_NODE, node)))
		return str_printf("spec.%s does not select node %s",
				  json_array_size(json_at(spec, "nodeName")) ? "nodeName"
									     : "nodeAffinity",
				  node);
	if (!meets_selection(json_at(spec, "namespaceName"), json_at(spec, "namespaceAffinity"), ns,
			     world_get(world, KIND_NAMESPACE, ns)))
		return str_printf("spec.%s does not select namespace %s",
				  json_array_size(json_at(spec, "namespaceName"))
					  ? "namespaceName"
					  : "namespaceAffinity",
				  ns);
	if (json_at(spec, "podAffinity")) {
		if (json_str_at(pool, "metadata", "labels", APP_LABEL))
			return is_of_application(pool, pod)
				       ? NULL
				       : str_dup("it was made for another application");
		if (!label_selector_matches(json_at(spec, "podAffinity"),
					    json_at(pod, "metadata", "labels")))
			return str_dup("spec.podAffinity does not select the pod");
	}
	if (json_array_size(json_at(spec, "multusName")))
		return why_other_network(pool, pod, want, settings, behind);
	if (json_at(want, "masterAddresses") &&
	    !has_address_in(json_at(want, "masterAddresses"), pool))
		return str_printf(
			"match_master_subnet is set, and the PF of NIC %s has no address in %s",
			json_str_at(want, "nic"), json_str_or(json_at(spec, "subnet"), "?"));
	return NULL;
}

char *filter_why_not(const json_t *world, const json_t *pod, const json_t *pool,
		     enum ip_family family, const json_t *want,
		     const struct ipam_settings *settings)
{
	auto_call(behind_done) struct behind behind = {0};

	assert(pod && want && (family == IP_V4 || family == IP_V6));
	return why_not(world, pod, pool, family, want, settings, &behind);
}

/* ---- the order ------------------------------------------------------------------------------- */

struct survivor {
	json_t *name; /* borrowed */
	int rank;     /* the higher, the earlier */
	size_t place; /* in the list */
};

static int rank_of(const json_t *pool)
{
	static const char *const criteria[] = {"podAffinity",   "nodeName",          "nodeAffinity",
					       "namespaceName", "namespaceAffinity", "multusName"};
	int rank = 0;

	for (size_t i = 0; i < ARRAY_LEN(criteria); i++) {
		const json_t *value = json_at(pool, "spec", criteria[i]);

		rank = rank << 1 | (json_is_object(value) || json_array_size(value) > 0);
	}
	return rank;
}

static int by_rank(const void *a, const void *b)
{
	const struct survivor *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank > right->rank ? -1 : 1;
	return left->place < right->place ? -1 : 1;
}

json_t *filter_pools(const json_t *world, const json_t *pod, enum ip_family family,
		     const json_t *want, const struct ipam_settings *settings, struct err *err)
{
	const json_t *names = json_at(want, family == IP_V4 ? "ipv4" : "ipv6");
	auto_free struct survivor *survivors =
		mem_calloc(json_array_size(names) + 1, sizeof(*survivors));
	auto_call(behind_done) struct behind behind = {0};
	auto_strbuf struct strbuf reasons = {0};
	json_t *list, *name;
	size_t i, n = 0;

	assert(pod && want && (family == IP_V4 || family == IP_V6));
	json_array_foreach (names, i, name) {
		const json_t *pool = world_get(world, KIND_IP_POOL, json_string_value(name));
		auto_free char *why = why_not(world, pod, pool, family, want, settings, &behind);

		if (why)
			strbuf_addf(&reasons, "%s%s: %s", reasons.len ? "; " : "",
				    json_string_value(name), why);
		else
			survivors[n++] =
				(struct survivor){.name = name, .rank = rank_of(pool), .place = i};
	}
	if (n == 0) {
		err_set(err, ERR_INVALID, "NoPool", "no IPv%d pool may serve NIC %s: %s",
			(int)family, json_str_at(want, "nic"), strbuf_str(&reasons));
		return NULL;
	}
	qsort(survivors, n, sizeof(*survivors), by_rank);
	list = json_array();
	for (i = 0; i < n; i++)
		json_array_append(list, survivors[i].name);
	return list;
}
