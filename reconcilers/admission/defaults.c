// SPDX-License-Identifier: Apache-2.0
/*
 * Defaults that admission fills in. Each is what the reconciler takes for an absent field:
 * `stored_defaults_change_nothing` in tests/unit/reconcilers/spider/spider_conformance_test.c holds
 * them to it.
 *
 * What the schema gives (crds/) is not repeated, unless the block that it would go into is made
 * here.
 *
 * Source: github.com/spidernet-io/spiderpool, the mutating webhooks below pkg;
 * github.com/k8snetworkplumbingwg/sriov-network-operator, pkg/webhook/mutate.go.
 */
#include "reconcilers/admission/defaults.h"

#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/names.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/reserved_ip.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/sriov/sriov_policy.h"

/* Put value there, unless something is there already (null counts as absent). Takes value. */
static void fill(json_t *object, const char *key, json_t *value)
{
	if (json_at(object, key))
		json_decref(value);
	else
		json_put(object, key, value);
}

static void fill_text(json_t *object, const char *key, const char *value)
{
	fill(object, key, json_string(value));
}

static void fill_int(json_t *object, const char *key, int64_t value)
{
	fill(object, key, json_integer(value));
}

/* ---- SpiderMultusConfig ---------------------------------------------------------------------- */

static void fill_pools(json_t *block)
{
	json_t *pools = json_at(block, "ippools");

	if (pools && !json_is_object(pools))
		return;
	fill(json_need_object(block, "ippools"), "matchMasterSubnet", json_false());
}

static void fill_parent_block(json_t *block, bool is_vlan)
{
	json_t *bond = json_at(block, "bond");

	if (is_vlan)
		fill_text(block, "vlanMode", "manual");
	if (!is_vlan || str_eq(json_str_at(block, "vlanMode"), "manual"))
		fill_int(block, "vlanID", 0);
	if (json_is_object(bond))
		fill_text(bond, "options", "");
	fill_text(block, "rdmaResourceName", "");
	fill_pools(block);
}

static void fill_sriov_block(json_t *block)
{
	fill_text(block, "resourceName", "");
	fill_int(block, "vlanID", 0);
	fill_int(block, "minTxRateMbps", 0);
	fill_int(block, "maxTxRateMbps", 0);
	fill_pools(block);
}

static void fill_ib_sriov_block(json_t *block)
{
	const json_t *pkey = json_at(block, "pkey");

	fill_text(block, "resourceName", "");
	if (json_is_integer(pkey))
		json_put(block, "pkey",
			 json_fmt("%" JSON_INTEGER_FORMAT, json_integer_value(pkey)));
	fill_text(block, "pkey", "");
	fill_pools(block);
}

static void fill_ovs_block(json_t *block)
{
	fill_int(block, "vlan", 0);
	fill_text(block, "deviceID", "");
	fill_pools(block);
}

static void fill_block(json_t *block, const char *type)
{
	if (!json_is_object(block))
		return;
	if (str_eq(type, "sriov"))
		fill_sriov_block(block);
	else if (str_eq(type, "ib-sriov"))
		fill_ib_sriov_block(block);
	else if (str_eq(type, "ovs"))
		fill_ovs_block(block);
	else if (str_eq(type, "ipoib"))
		fill_pools(block);
	else
		fill_parent_block(block, str_eq(type, "vlan"));
}

static void put_label(json_t *object, const char *name)
{
	const char *value = cni_annotation(object, name);

	if (value && name_is_label_value(value))
		json_put_str(json_need_object(json_need_object(object, "metadata"), "labels"), name,
			     value);
}

void defaults_multus_config(json_t *object, json_t *spec)
{
	const struct cni_type *type = cni_type_of(object);
	json_t *coordinator;

	put_label(object, CNI_ANNOTATION_RDMA_INJECT);
	put_label(object, CNI_ANNOTATION_NETWORK_INJECT);
	if (!type)
		return;
	fill_text(spec, "cniType", type->name);
	fill(spec, "chainCNIJsonData", json_array());
	if (str_eq(type->name, "custom")) {
		fill_text(spec, "customCNI", "");
		json_put_bool(spec, "enableCoordinator", false);
		json_object_del(spec, "coordinator"); /* it has none */
		return;
	}
	fill_block(json_at(spec, type->block), type->name);
	coordinator = json_at(spec, "coordinator");
	if (!coordinator) {
		coordinator = json_need_object(spec, "coordinator");
		fill_text(coordinator, "vethLinkAddress", "");
		fill_int(coordinator, "hostRuleTable", 500);
	}
	if (!json_is_object(coordinator))
		return;
	fill_text(coordinator, "mode", "auto");
	fill_text(coordinator, "podMACPrefix", "");
	fill_text(coordinator, "podDefaultRouteNIC", "");
	fill_int(coordinator, "podRPFilter", 0);
	fill_int(coordinator, "txQueueLen", 0);
	fill(coordinator, "tunePodRoutes", json_true());
}

/* ---- SpiderIPPool, SpiderReservedIP ---------------------------------------------------------- */

/*
 * Several entries in order, joined where they touch; one entry, and lists with one that cannot be
 * read, stay as they were written.
 */
static void merge_ranges(json_t *spec, const char *key, enum ip_family family,
			 const struct ip_subnet *subnet)
{
	const json_t *entries = json_at(spec, key);
	auto_ip_set struct ip_set set = {0};
	bool is_clipped = false;
	json_t *entry;
	size_t i;
	json_t *list;

	json_array_foreach (entries, i, entry) {
		struct ip_range range;
		bool clipped = false;

		if (ip_pool_read_entry(json_str_or(entry, ""), family, subnet, &range, &clipped,
				       NULL))
			return;
		is_clipped |= clipped;
		ip_set_add(&set, range);
	}
	if (json_array_size(entries) < 2 && !is_clipped)
		return;
	ip_set_settle(&set);

	list = json_array();
	for (i = 0; i < set.len; i++) {
		auto_free char *text = ip_range_text(family, set.items[i]);

		json_array_append_new(list, json_string(text));
	}
	json_put(spec, key, list);
}

/* `to` and `via` of a guide are dst and gw. */
static void rename_member(json_t *object, const char *from, const char *to)
{
	json_t *value = json_at(object, from);

	if (!value || json_at(object, to))
		return;
	json_object_set(object, to, value);
	json_object_del(object, from);
}

void defaults_ip_pool(json_t *object, json_t *spec)
{
	const char *text = json_str_at(spec, "subnet");
	auto_free char *label = NULL;
	struct ip_subnet subnet;
	json_t *route;
	size_t i;

	if (!text || ip_subnet_parse(text, &subnet, NULL))
		return;
	if (ip_pool_version(json_at(spec, "ipVersion")) == (int)subnet.family)
		json_put_int(spec, "ipVersion", subnet.family);
	fill_int(spec, "ipVersion", subnet.family);
	label = ip_pool_cidr_label(&subnet);
	if (label)
		json_put_str(json_need_object(json_need_object(object, "metadata"), "labels"),
			     IP_POOL_CIDR_LABEL, label);
	merge_ranges(spec, "ips", subnet.family, &subnet);
	merge_ranges(spec, "excludeIPs", subnet.family, &subnet);
	json_array_foreach (json_at(spec, "routes"), i, route) {
		if (!json_is_object(route))
			continue;
		rename_member(route, "to", "dst");
		rename_member(route, "via", "gw");
	}
}

void defaults_reserved_ip(json_t *object, json_t *spec)
{
	int family = reserved_ip_family(spec);

	if (family != IP_V4 && family != IP_V6)
		return;
	fill_int(spec, "ipVersion", family);
	merge_ranges(spec, "ips", (enum ip_family)family, NULL);
}

/* ---- SpiderCoordinator ----------------------------------------------------------------------- */

/* An address as the network of that address alone; all else stays. Returns new. */
static json_t *network_of(const json_t *value)
{
	enum ip_family family;
	ip_number address;

	if (!json_is_string(value) ||
	    ip_parse_any(json_string_value(value), &family, &address, NULL))
		return json_incref((json_t *)value);
	return json_fmt("%s/%d", json_string_value(value), family == IP_V4 ? 32 : 128);
}

void defaults_coordinator(json_t *object, json_t *spec)
{
	json_t *value;
	size_t i;

	fill_text(spec, "vethLinkAddress", "");
	fill_int(spec, "vethMTU", 1500);
	json_array_foreach (json_at(spec, "hijackCIDR"), i, value)
		json_array_set_new(json_at(spec, "hijackCIDR"), i, network_of(value));
	json_array_foreach (json_at(spec, "policyRoutes"), i, value)
		if (json_is_object(value) && json_at(value, "dst"))
			json_put(value, "dst", network_of(json_at(value, "dst")));
}

/* ---- SriovNetworkNodePolicy ------------------------------------------------------------------ */

void defaults_policy(json_t *object, json_t *spec)
{
	if (sriov_policy_is_reserved(object))
		return;
	fill_int(spec, "priority", SRIOV_PRIORITY_WEAKEST);
	fill(spec, "isRdma", json_false());
	if (strcasecmp(json_str_or(json_at(spec, "linkType"), ""), "ib") == 0 &&
	    !str_eq(json_str_at(spec, "deviceType"), "vfio-pci"))
		json_put_bool(spec, "isRdma", true);
}
