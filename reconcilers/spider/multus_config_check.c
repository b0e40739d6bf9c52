// SPDX-License-Identifier: Apache-2.0
/*
 * What a SpiderMultusConfig may say: the rules, each with the remedy in its message.
 */
#include "reconcilers/spider/multus_config_check.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/cni_rules.h"
#include "reconcilers/core/fields.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/coordinator_settings.h"

#define VLAN_MAX           4094
#define CNI_VERSIONS       "0.3.0, 0.3.1, 0.4.0, 1.0.0"
#define DEFAULT_RULE_TABLE 500 /* what defaulting stores when nobody asked */

static const struct field spec_fields[] = {
	FIELD_TEXT("customCNI"),         FIELD_BOOL("enableCoordinator"),
	FIELD_BOOL("disableIPAM"),       FIELD_OBJECT("coordinator"),
	FIELD_TEXTS("chainCNIJsonData"), FIELD_OBJECT("ippools"),
	FIELD_TEXT("rdmaResourceName"),  FIELDS_END,
};

static const struct field pools_fields[] = {
	FIELD_TEXTS("ipv4"),
	FIELD_TEXTS("ipv6"),
	FIELD_BOOL("matchMasterSubnet"),
	FIELDS_END,
};

static const struct field bond_fields[] = {
	FIELD_TEXT("name"),
	FIELD_INT("mode", 0, 6),
	FIELD_TEXT("options"),
	FIELDS_END,
};

/* macvlan, ipvlan and vlan */
static const struct field parent_fields[] = {
	FIELD_TEXTS("master"),
	FIELD_INT("mtu", 0, INT32_MAX),
	FIELD_INT("vlanID", 0, VLAN_MAX),
	FIELD_WORD("vlanMode", "manual auto"),
	FIELD_OBJECT("bond"),
	FIELD_TEXT("rdmaResourceName"),
	FIELD_BOOL("enableRdma"),
	FIELD_OBJECT("ippools"),
	FIELDS_END,
};

static const struct field sriov_fields[] = {
	FIELD_TEXT("resourceName"),
	FIELD_INT("vlanID", 0, VLAN_MAX),
	FIELD_INT("mtu", 0, INT32_MAX),
	FIELD_INT("minTxRateMbps", 0, INT32_MAX),
	FIELD_INT("maxTxRateMbps", 0, INT32_MAX),
	FIELD_BOOL("rdmaIsolation"),
	FIELD_BOOL("enableRdma"),
	FIELD_BOOL("matchMasterSubnet"),
	FIELD_OBJECT("ippools"),
	FIELDS_END,
};

static const struct field ib_sriov_fields[] = {
	FIELD_TEXT("resourceName"),
	FIELD_TEXT("pkey"),
	FIELD_WORD("linkState", "auto enable disable"),
	FIELD_BOOL("rdmaIsolation"),
	FIELD_BOOL("enableIbKubernetes"),
	FIELD_BOOL("ibKubernetesEnabled"),
	FIELD_OBJECT("ippools"),
	FIELDS_END,
};

static const struct field ipoib_fields[] = {
	FIELD_TEXT("master"),
	FIELD_OBJECT("ippools"),
	FIELDS_END,
};

static const struct field ovs_fields[] = {
	FIELD_TEXT("bridge"),   FIELD_INT("vlan", 0, VLAN_MAX), FIELD_ARRAY("trunk"),
	FIELD_TEXT("deviceID"), FIELD_OBJECT("ippools"),        FIELDS_END,
};

static const struct field trunk_fields[] = {
	FIELD_INT("minID", 0, VLAN_MAX),
	FIELD_INT("maxID", 0, VLAN_MAX),
	FIELD_INT("id", 0, VLAN_MAX),
	FIELDS_END,
};

/* The block that belongs to the config's type. */
struct block {
	const struct cni_type *type;
	const json_t *json;
	const char *where; /* "spec.macvlan" */
	struct problems *problems;
};

static void complain(const struct block *block, const char *reason, const char *name,
		     const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* A problem with one field of the block. */
static void complain(const struct block *block, const char *reason, const char *name,
		     const char *fmt, ...)
{
	auto_free char *field = str_printf("%s.%s", block->where, name);
	auto_free char *message = NULL;
	va_list ap;

	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	problem_add(block->problems, reason, field, "%s", message);
}

static const char *text_of(const struct block *block, const char *name)
{
	return json_str_or(json_at(block->json, name), "");
}

/* Fields of the block and of ippools within. */
static bool check_fields(const struct block *block, const struct field *fields)
{
	auto_free char *pools = str_printf("%s.ippools", block->where);

	return fields_check(block->json, block->where, fields, block->problems) &&
	       fields_check(json_at(block->json, "ippools"), pools, pools_fields, block->problems);
}

static void check_interface(const struct block *block, const char *field, const char *name)
{
	const char *fault = name_interface_fault(name);

	if (fault)
		complain(block, "BadInterfaceName", field, "\"%.64s\" %s", name, fault);
}

static void check_bond(const struct block *block)
{
	const json_t *bond = json_at(block->json, "bond");

	if (!bond) {
		complain(block, "NoBond", "bond",
			 "is missing: several masters need a bond over them, with name and mode");
		return;
	}
	check_interface(block, "bond.name", json_str_or(json_at(bond, "name"), ""));
	if (!json_at(bond, "mode"))
		complain(block, "NoBond", "bond.mode",
			 "is missing: write a bonding mode from 0 to 6");
}

/* macvlan and ipvlan go on a VLAN device that is named after its parent. */
static void check_parent_name(const struct block *block)
{
	auto_free char *name = cni_parent_device(block->json);

	if (!str_eq(block->type->name, "vlan") && strlen(name) > INTERFACE_NAME_MAX)
		complain(block, "BadInterfaceName", "vlanID",
			 "the VLAN device %s would have a name of %zu bytes, a network device can "
			 "have %d: rename the parent interface on the hosts, or use a bond with a "
			 "shorter name",
			 name, strlen(name), INTERFACE_NAME_MAX);
}

static void check_vlan_mode(const struct block *block)
{
	if (str_eq(text_of(block, "vlanMode"), "auto") && json_at(block->json, "vlanID"))
		complain(block, "BadVlanMode", "vlanID",
			 "cannot be given with vlanMode auto, which finds the VLAN itself: remove "
			 "it, or set vlanMode to manual");
}

static void check_parent_block(const struct block *block)
{
	auto_free char *bond_where = str_printf("%s.bond", block->where);
	const json_t *masters = json_at(block->json, "master");
	size_t before = block->problems->total;
	json_t *master;
	size_t i;

	if (!check_fields(block, parent_fields) ||
	    !fields_check(json_at(block->json, "bond"), bond_where, bond_fields, block->problems))
		return;
	if (json_array_size(masters) == 0)
		complain(block, "NoMaster", "master",
			 "is empty: name the parent interface on the hosts, for example "
			 "[\"ens1f0\"]");
	json_array_foreach (masters, i, master) {
		auto_free char *field = str_printf("master[%zu]", i);

		check_interface(block, field, json_string_value(master));
	}
	if (json_array_size(masters) > 1)
		check_bond(block);
	if (block->problems->total == before)
		check_parent_name(block);
	if (json_is_true(json_at(block->json, "ippools", "matchMasterSubnet")))
		complain(block, "NotSupported", "ippools.matchMasterSubnet",
			 "is for cniType sriov only: remove it");
	if (str_eq(block->type->name, "vlan"))
		check_vlan_mode(block);
}

static void check_resource(const struct block *block)
{
	if (str_empty(text_of(block, "resourceName")))
		complain(block, "NoResource", "resourceName",
			 "is missing: write the resource that the device plugin offers for these "
			 "VFs, for example spidernet.io/mellanoxrdma");
}

static void check_sriov_block(const struct block *block)
{
	int64_t min, max;

	if (!check_fields(block, sriov_fields))
		return;
	check_resource(block);
	min = json_integer_value(json_at(block->json, "minTxRateMbps"));
	max = json_integer_value(json_at(block->json, "maxTxRateMbps"));
	if (min > max)
		complain(block, "BadTxRate", "minTxRateMbps",
			 "%lld is more than maxTxRateMbps, which is %lld: set maxTxRateMbps to at "
			 "least %lld",
			 (long long)min, (long long)max, (long long)min);
}

static void check_ib_sriov_block(const struct block *block)
{
	if (check_fields(block, ib_sriov_fields))
		check_resource(block);
}

static void check_ipoib_block(const struct block *block)
{
	if (!check_fields(block, ipoib_fields))
		return;
	if (str_empty(text_of(block, "master")))
		complain(block, "NoMaster", "master",
			 "is missing: name the InfiniBand interface on the hosts, for example "
			 "ibs5f0");
	else
		check_interface(block, "master", text_of(block, "master"));
}

static void check_trunk(const struct block *block, const json_t *trunk, const char *name)
{
	auto_free char *where = str_printf("%s.%s", block->where, name);
	const json_t *min = json_at(trunk, "minID"), *max = json_at(trunk, "maxID");

	if (!json_is_object(trunk)) {
		complain(block, "BadTrunk", name, "must be an object with minID and maxID, or id");
		return;
	}
	if (!fields_check(trunk, where, trunk_fields, block->problems))
		return;
	if (max && !min)
		complain(block, "BadTrunk", name, "has maxID without minID: add minID, or use id");
	else if (max && json_integer_value(max) < json_integer_value(min))
		complain(block, "BadTrunk", name, "minID %lld is more than maxID %lld: swap them",
			 (long long)json_integer_value(min), (long long)json_integer_value(max));
}

static void check_ovs_block(const struct block *block)
{
	json_t *trunk;
	size_t i;

	if (!check_fields(block, ovs_fields))
		return;
	if (!json_at(block->json, "bridge"))
		complain(block, "NoBridge", "bridge",
			 "is missing: name the Open vSwitch bridge on the hosts, for example br1");
	json_array_foreach (json_at(block->json, "trunk"), i, trunk) {
		auto_free char *name = str_printf("trunk[%zu]", i);

		check_trunk(block, trunk, name);
	}
}

/*
 * The webhook gives pods of the group this network, its resource and addresses: all have to be
 * there.
 */
static void check_injection(const json_t *smc, const struct block *block, bool rdma)
{
	bool has_resource = !str_empty(text_of(block, block->type->resource));

	if (rdma && !has_resource)
		complain(block, "NoResource", block->type->resource,
			 "is missing: the annotation " CNI_ANNOTATION_RDMA_INJECT
			 " needs the resource that pods shall request");
	if ((rdma || has_resource) && !cni_block_has_pools(block->json) &&
	    !json_is_true(json_at(smc, "spec", "disableIPAM")))
		complain(block, "NoPools", "ippools",
			 "has no pool: pods that get this network by annotation need ipv4 or ipv6 "
			 "pools here, or spec.disableIPAM");
}

void multus_config_check_injection(const json_t *object, bool rdma, struct problems *problems)
{
	const struct cni_type *type = cni_type_of(object);
	json_auto_t *json = type ? cni_block(object, type) : NULL;
	auto_free char *where = str_printf("spec.%s", type ? type->block : "cniType");
	struct block block = {type, json, where, problems};

	if (!type || !type->resource)
		problem_add(problems, "NotSupported", "spec.cniType",
			    "%s is not given to pods by annotation: use macvlan, ipvlan, vlan, "
			    "sriov, ib-sriov or ipoib",
			    type ? type->name : "of an unknown value");
	else if (!json_is_object(json))
		problem_add(problems, "NoSettings", where,
			    "is missing: spec.cniType %s needs its settings there", type->name);
	else
		check_injection(object, &block, rdma);
}

static void check_custom(const json_t *spec, struct problems *problems)
{
	const char *text = json_str_or(json_at(spec, "customCNI"), "");
	json_auto_t *config = NULL;
	struct err err = {0};

	if (!*text)
		return;
	config = limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, &err);
	if (!config)
		problem_add(problems, "BadCustomCNI", "spec.customCNI", "is not JSON: %s",
			    err.text);
	else if (!json_is_object(config))
		problem_add(problems, "BadCustomCNI", "spec.customCNI",
			    "is %s, must be the JSON object of a CNI configuration",
			    json_type_words(config));
}

static void check_type_block(const json_t *smc, const struct cni_type *type,
			     struct problems *problems)
{
	json_auto_t *json = cni_block(smc, type);
	auto_free char *where = str_printf("spec.%s", type->block);
	struct block block = {type, json, where, problems};

	if (str_eq(type->name, "custom")) {
		check_custom(json_at(smc, "spec"), problems);
		return;
	}
	if (!json) {
		problem_add(problems, "NoSettings", where,
			    "is missing: spec.cniType %s needs its settings there", type->name);
		return;
	}
	if (!json_is_object(json)) {
		problem_add(problems, "BadField", where, "is %s, must be an object",
			    json_type_words(json));
		return;
	}
	if (str_eq(type->name, "sriov"))
		check_sriov_block(&block);
	else if (str_eq(type->name, "ib-sriov"))
		check_ib_sriov_block(&block);
	else if (str_eq(type->name, "ipoib"))
		check_ipoib_block(&block);
	else if (str_eq(type->name, "ovs"))
		check_ovs_block(&block);
	else
		check_parent_block(&block);
	if (type->resource && (cni_annotation(smc, CNI_ANNOTATION_RDMA_INJECT) ||
			       cni_annotation(smc, CNI_ANNOTATION_NETWORK_INJECT)))
		check_injection(smc, &block,
				cni_annotation(smc, CNI_ANNOTATION_RDMA_INJECT) != NULL);
}

static void check_other_blocks(const json_t *spec, const struct cni_type *type,
			       struct problems *problems)
{
	for (const struct cni_type *other = cni_types; other->name; other++) {
		auto_free char *where = str_printf("spec.%s", other->block);

		if (other != type && json_at(spec, other->block))
			problem_add(problems, "OtherSettings", where,
				    "does not belong to cniType %s: remove it, or set spec.cniType "
				    "to %s",
				    type->name, other->name);
	}
}

static void check_chain(const json_t *spec, struct problems *problems)
{
	json_t *text;
	size_t i;

	json_array_foreach (json_at(spec, "chainCNIJsonData"), i, text) {
		auto_free char *field = str_printf("spec.chainCNIJsonData[%zu]", i);
		json_auto_t *plugin = NULL;
		struct err err = {0};

		plugin = limits_parse(json_string_value(text), json_string_length(text),
				      LIMIT_CONFIG_BYTES, &err);
		if (!plugin)
			problem_add(problems, "BadChain", field, "is not JSON: %s", err.text);
		else if (str_empty(json_str_at(plugin, "type")))
			problem_add(problems, "BadChain", field,
				    "is not a CNI plugin's configuration: write a JSON object with "
				    "a type, for example {\"type\":\"tuning\"}");
	}
}

static void check_size(const json_t *value, const char *field, struct problems *problems)
{
	struct err err = {0};

	if (limits_check_reduced(value, &err) < 0 ||
	    (json_is_string(value) &&
	     limits_check_text(json_string_value(value), json_string_length(value),
			       LIMIT_CONFIG_BYTES, &err) < 0))
		problem_add(problems, "TooLarge", field, "%s", err.text);
}

/* What is parsed later, before anything is. */
static bool check_sizes(const json_t *spec, struct problems *problems)
{
	const json_t *chain = json_at(spec, "chainCNIJsonData");
	auto_strbuf struct strbuf whole = {0};
	size_t before = problems->total, i;
	json_t *text;

	check_size(json_at(spec, "customCNI"), "spec.customCNI", problems);
	check_size(chain, "spec.chainCNIJsonData", problems);
	json_array_foreach (chain, i, text) {
		strbuf_adds(&whole, json_str_or(text, ""));
		if (whole.len > LIMIT_CONFIG_BYTES || i > LIMIT_LIST ||
		    json_weight(strbuf_str(&whole), whole.len, LIMIT_JSON_NODES) >
			    LIMIT_JSON_NODES) {
			problem_add(problems, "TooLarge", "spec.chainCNIJsonData",
				    "has more than %d bytes, %d elements, or %d commas, brackets "
				    "and braces: make it smaller",
				    LIMIT_CONFIG_BYTES, LIMIT_LIST, LIMIT_JSON_NODES);
			break;
		}
	}
	return problems->total == before;
}

static void check_spec(const json_t *smc, struct problems *problems)
{
	const json_t *spec = json_at(smc, "spec");
	const struct cni_type *type = cni_type_of(smc);

	if (!check_sizes(spec, problems))
		return;
	if (!type) {
		problem_add(problems, "BadCNIType", "spec.cniType",
			    "must be one of macvlan, ipvlan, vlan, sriov, ib-sriov, ipoib, ovs, "
			    "custom");
		return;
	}
	if (!fields_check(spec, "spec", spec_fields, problems) ||
	    !fields_check(json_at(spec, "ippools"), "spec.ippools", pools_fields, problems))
		return;
	check_type_block(smc, type, problems);
	check_other_blocks(spec, type, problems);
	check_chain(spec, problems);
	if (!str_eq(type->name, "custom"))
		coordinator_spec_check(json_at(spec, "coordinator"), "spec.coordinator", problems);
}

static void check_inject_annotation(const json_t *smc, const char *name, struct problems *problems)
{
	const char *value = cni_annotation(smc, name);
	const struct cni_type *type = cni_type_of(smc);
	auto_free char *field = str_printf("metadata.annotations[%s]", name);

	if (!value)
		return;
	if (type && !type->resource)
		problem_add(
			problems, "NotSupported", field,
			"cannot be used with cniType %s, whose networks are not given to pods by "
			"annotation: remove it",
			type->name);
	if (!name_is_label_value(value))
		problem_add(problems, "BadAnnotation", field,
			    "\"%.64s\" cannot name a group, it becomes a label: use up to 63 "
			    "letters, digits, '-', '_' and '.'",
			    value);
}

static void check_annotations(const json_t *smc, struct problems *problems)
{
	const char *nad_name = cni_annotation(smc, CNI_ANNOTATION_NAD_NAME);
	const char *version = cni_annotation(smc, CNI_ANNOTATION_VERSION);
	const char *config_name = cni_annotation(smc, CNI_ANNOTATION_CONFIG_NAME);

	if (nad_name && !name_is_dns_subdomain(nad_name))
		problem_add(problems, "BadAnnotation",
			    "metadata.annotations[" CNI_ANNOTATION_NAD_NAME "]",
			    "\"%.64s\" cannot name an object: use lower case letters, digits, '-' "
			    "and '.'",
			    nad_name);
	if (version && !str_eq(version, "0.3.0") && !str_eq(version, "0.3.1") &&
	    !str_eq(version, "0.4.0") && !str_eq(version, "1.0.0"))
		problem_add(problems, "BadAnnotation",
			    "metadata.annotations[" CNI_ANNOTATION_VERSION "]",
			    "\"%.64s\" must be one of " CNI_VERSIONS, version);
	if (!str_empty(config_name) && !name_is_cni_network(config_name))
		problem_add(
			problems, "BadAnnotation",
			"metadata.annotations[" CNI_ANNOTATION_CONFIG_NAME "]",
			"\"%.64s\" cannot name a CNI network: start with a letter or digit, then "
			"use letters, digits, '_', '.' and '-'",
			config_name);
	check_inject_annotation(smc, CNI_ANNOTATION_RDMA_INJECT, problems);
	check_inject_annotation(smc, CNI_ANNOTATION_NETWORK_INJECT, problems);
}

/* The oldest other config that claims this name; NULL when it is ours. */
static const json_t *find_older_claim(const json_t *world, const json_t *smc)
{
	const json_t *oldest = smc;
	const char *key;
	json_t *other;

	json_each (world_kind(world, KIND_MULTUS_CONFIG), key, other)
		if (str_eq(json_namespace(other), json_namespace(smc)) &&
		    !str_eq(json_name(other), json_name(smc)) && !object_is_terminating(other) &&
		    str_eq(cni_nad_name(other), cni_nad_name(smc)) &&
		    object_precedes(other, oldest))
			oldest = other;
	return oldest == smc ? NULL : oldest;
}

static bool is_config(const json_t *owner)
{
	return str_eq(json_str_at(owner, "kind"), "SpiderMultusConfig") &&
	       str_starts(json_str_or(json_at(owner, "apiVersion"), ""),
			  "spiderpool.spidernet.io/");
}

static bool has_config_as_owner(const json_t *nad)
{
	json_t *owner;
	size_t i;

	json_array_foreach (json_at(nad, "metadata", "ownerReferences"), i, owner)
		if (is_config(owner))
			return true;
	return false;
}

/* What the config would write is there already: nothing of anybody's is lost. */
static bool says_the_same(const json_t *smc, const json_t *nad)
{
	const char *present = json_str_or(json_at(nad, "spec", "config"), "");
	auto_free char *wanted = cni_config_text(smc, cni_nad_name(smc), present);
	json_auto_t *resource = cni_config_resource(smc);
	const char *ask = resource ? json_string_value(resource)
				   : cni_annotation(smc, CNI_ANNOTATION_RESOURCE);

	return str_eq(wanted ? wanted : "", present) &&
	       str_eq(ask, cni_annotation(nad, CNI_ANNOTATION_RESOURCE));
}

/*
 * Controlled by another kind's object, or without the mark that Spiderpool and we leave, a config
 * as owner: somebody else wrote it.
 */
static void check_owner(const json_t *smc, const json_t *nad, const char *key,
			struct problems *problems)
{
	const json_t *owner = owner_controller(nad);
	const char *custom = str_eq(cni_type_of(smc)->name, "custom")
				     ? "; or copy its configuration to spec.customCNI"
				     : "";

	if (owner && !is_config(owner))
		problem_add(problems, "OwnedByOther", "metadata.name",
			    "NetworkAttachmentDefinition %s belongs to %s %s: choose another name "
			    "with the annotation %s, or delete that owner",
			    key, json_str_or(json_at(owner, "kind"), "?"),
			    json_str_or(json_at(owner, "name"), "?"), CNI_ANNOTATION_NAD_NAME);
	else if (!has_config_as_owner(nad) && !says_the_same(smc, nad))
		problem_add(problems, "OwnedByOther", "metadata.name",
			    "NetworkAttachmentDefinition %s was made by somebody else, with "
			    "another content, and stays as it is: choose another name with the "
			    "annotation %s, or delete it, and this config makes its own%s",
			    key, CNI_ANNOTATION_NAD_NAME, custom);
}

static void check_nad(const json_t *world, const json_t *smc, struct problems *problems)
{
	const char *name = cni_nad_name(smc);
	auto_free char *key = str_printf("%s/%s", json_namespace(smc), name);
	const json_t *older = find_older_claim(world, smc);
	const json_t *nad = world_get(world, KIND_NAD, key);

	if (older)
		problem_add(problems, "NameConflict", "metadata.name",
			    "NetworkAttachmentDefinition %s is also claimed by SpiderMultusConfig "
			    "%s, which is older: choose another name with the annotation "
			    "%s",
			    key, json_name(older), CNI_ANNOTATION_NAD_NAME);
	else if (nad && !object_is_terminating(nad))
		check_owner(smc, nad, key, problems);
}

static bool check_rules_of(const json_t *plugin, const char *field, struct problems *problems)
{
	struct err err = {0};

	if (cni_rules_check(plugin, NULL, &err) == 0)
		return true;
	problem_add(problems, "BadField", field, "would be refused for each pod: %s", err.text);
	return false;
}

/* What our own plugins would refuse of the configuration that the object is rendered to. */
static void check_rules(const json_t *object, struct problems *problems)
{
	const struct cni_type *type = cni_type_of(object);
	auto_free char *text = cni_config_text(object, cni_nad_name(object), NULL);
	struct err err = {0};
	json_auto_t *config =
		text ? limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, &err) : NULL;
	auto_free char *field =
		str_printf("spec.%s", type && type->block ? type->block : "customCNI");
	json_t *plugin;
	size_t i;

	if (str_eq(err.reason, "TooLarge")) {
		problem_add(problems, "TooLarge", "spec", "makes a CNI configuration of %s",
			    err.text);
		return;
	}
	if ((json_at(config, "type") || json_at(config, "plugins")) &&
	    cni_rules_network(config, &err) < 0) {
		problem_add(problems, "BadField",
			    str_eq(field, "spec.customCNI") ? field : "spec.chainCNIJsonData",
			    "would be refused for each pod: %s", err.text);
		return;
	}
	if (!check_rules_of(config, field, problems))
		return;
	json_array_foreach (json_at(config, "plugins"), i, plugin)
		if (!check_rules_of(plugin, field, problems))
			return;
}

void multus_config_check(const json_t *world, const json_t *object, struct problems *problems)
{
	size_t before = problems->total;

	check_annotations(object, problems);
	check_spec(object, problems);
	if (problems->total == before)
		check_rules(object, problems);
	if (problems->total == before)
		check_nad(world, object, problems);
}

static void warn_of_twin_masters(const json_t *spec, const struct cni_type *type,
				 struct problems *warnings)
{
	auto_free char *field = str_printf("spec.%s.master", type->block);
	const json_t *masters = json_at(spec, type->block, "master");
	json_auto_t *seen = json_object();
	json_t *master;
	size_t i;

	json_array_foreach (masters, i, master) {
		const char *name = json_string_value(master);

		if (json_object_get(seen, name))
			problem_add(warnings, "TwinMaster", field,
				    "names %s twice: a port can be in a bond once", name);
		json_put_bool(seen, name, true);
	}
}

static void warn_of_custom(const json_t *spec, struct problems *warnings)
{
	const char *text = json_str_or(json_at(spec, "customCNI"), "");
	json_auto_t *config =
		*text ? limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, NULL) : NULL;

	if (config && str_empty(json_str_at(config, "type")) &&
	    json_array_size(json_at(config, "plugins")) == 0)
		problem_add(warnings, "NoPlugin", "spec.customCNI",
			    "has neither type nor plugins: no pod can use this network");
}

/* The plugin takes these from the SpiderCoordinator whatever stands here. */
static void warn_of_coordinator(const json_t *coordinator, struct problems *warnings)
{
	const json_t *table = json_at(coordinator, "hostRuleTable");

	if (json_integer_value(json_at(coordinator, "podRPFilter")) != 0 &&
	    !json_at(coordinator, "podCIDRType"))
		problem_add(warnings, "NoEffect", "spec.coordinator.podRPFilter",
			    "has no effect without podCIDRType next to it: set that too, or set "
			    "podRPFilter in the SpiderCoordinator");
	if (table && json_integer_value(table) != DEFAULT_RULE_TABLE)
		problem_add(warnings, "NoEffect", "spec.coordinator.hostRuleTable",
			    "has no effect here: set it in the SpiderCoordinator");
}

/* Misplaced settings are read when the right place is empty, and only then. */
static void warn_of_misplaced(const json_t *spec, const struct cni_type *type,
			      struct problems *warnings)
{
	const json_t *block = json_at(spec, type->block);
	const char *resource = json_str_or(json_at(spec, "rdmaResourceName"), "");
	const char *used = json_str_or(json_at(block, "rdmaResourceName"), "");
	bool shares = str_eq(type->resource, "rdmaResourceName");

	if (cni_block_has_pools(spec) && cni_block_has_pools(block))
		problem_add(warnings, "NoEffect", "spec.ippools",
			    "has no effect, spec.%s.ippools counts: remove one of them",
			    type->block);
	if (*resource && !shares)
		problem_add(warnings, "NoEffect", "spec.rdmaResourceName",
			    "%.64s has no effect with cniType %s: remove it", resource, type->name);
	else if (*resource && *used && !str_eq(used, resource))
		problem_add(warnings, "NoEffect", "spec.rdmaResourceName",
			    "%.64s has no effect, spec.%s.rdmaResourceName %.64s counts: remove "
			    "one of them",
			    resource, type->block, used);
}

void multus_config_warn(const json_t *object, struct problems *warnings)
{
	const json_t *spec = json_at(object, "spec");
	const struct cni_type *type = cni_type_of(object);

	if (str_eq(type->name, "custom"))
		warn_of_custom(spec, warnings);
	else
		warn_of_twin_masters(spec, type, warnings);
	if (json_is_true(json_at(spec, type->block, "ippools", "matchMasterSubnet")) &&
	    !str_eq(type->name, "sriov")) {
		auto_free char *field =
			str_printf("spec.%s.ippools.matchMasterSubnet", type->block);

		problem_add(warnings, "NoEffect", field, "has no effect with cniType %s: remove it",
			    type->name);
	}
	warn_of_misplaced(spec, type, warnings);
	if (!str_eq(type->name, "custom"))
		warn_of_coordinator(json_at(spec, "coordinator"), warnings);
}

static void visit_pools(const json_t *pools, const char *family,
			void (*visit)(void *arg, const char *pool), void *arg)
{
	json_t *pool;
	size_t i;

	/* IPAM expands wildcards to the pools that are there when a pod starts (its pkg/ipam). */
	json_array_foreach (json_at(pools, family), i, pool)
		if (json_is_string(pool) && !strpbrk(json_string_value(pool), "*?["))
			visit(arg, json_string_value(pool));
}

void multus_config_pools(const json_t *object, void (*visit)(void *arg, const char *pool),
			 void *arg)
{
	const struct cni_type *type = cni_type_of(object);
	json_auto_t *block = type ? cni_block(object, type) : NULL;

	if (json_is_true(json_at(object, "spec", "disableIPAM")))
		return;
	visit_pools(json_at(block, "ippools"), "ipv4", visit, arg);
	visit_pools(json_at(block, "ippools"), "ipv6", visit, arg);
}

void multus_config_masters(const json_t *object,
			   void (*visit)(void *arg, const char *field, const char *link), void *arg)
{
	const struct cni_type *type = cni_type_of(object);
	const json_t *master = type ? json_at(object, "spec", type->block, "master") : NULL, *link;
	size_t i;

	if (json_is_string(master))
		visit(arg, "master", json_string_value(master));
	json_array_foreach (master, i, link) {
		auto_free char *field = str_printf("master[%zu]", i);

		if (json_is_string(link))
			visit(arg, field, json_string_value(link));
	}
}

char *multus_config_resource(const json_t *object)
{
	const struct cni_type *type = cni_type_of(object);
	json_auto_t *block = type ? cni_block(object, type) : NULL;

	return str_dup(type ? cni_block_resource(type, block) : "");
}

struct missing {
	const json_t *world;
	const char *field;  /* in front of what is named */
	const char *family; /* "ipv4" or "ipv6": the list that names the pool */
	struct problems *warnings;
};

static void warn_of_pool(void *arg, const char *pool)
{
	const struct missing *missing = arg;
	const json_t *object = world_get(missing->world, KIND_IP_POOL, pool);
	const char *subnet = json_str_at(object, "spec", "subnet");
	const char *family = strchr(subnet ? subnet : "", ':') ? "ipv6" : "ipv4";

	if (subnet && !str_eq(family, missing->family))
		problem_add(missing->warnings, "PoolOfOtherFamily", missing->field,
			    "lists SpiderIPPool %.253s under %s, and its subnet is %.64s: list it "
			    "under %s, pods get no address from it here",
			    pool, missing->family, subnet, family);
	if (!object)
		problem_add(missing->warnings, "PoolMissing", missing->field,
			    "names SpiderIPPool %.253s, which does not exist: create it or correct "
			    "the name, pods get no address from it",
			    pool);
}

/* "ens1f0v3", "ens1f0np0v3": VFs have such names, and are in pods as often as not. */
static bool names_vf(const char *link)
{
	size_t len = strlen(link), digits = 0;

	while (digits < len && isdigit((unsigned char)link[len - digits - 1]))
		digits++;
	return digits > 0 && digits + 1 < len && link[len - digits - 1] == 'v';
}

static void warn_of_master(void *arg, const char *field, const char *link)
{
	const struct missing *missing = arg;
	auto_free char *where = str_printf("%s.%s", missing->field, field);

	if (!world_get(missing->world, KIND_NODE_LINK, link) && !names_vf(link))
		problem_add(missing->warnings, "MasterMissing", where,
			    "names %.15s, which no node has: correct the name, pods get no "
			    "interface over it; status.links of SriovNetworkNodeStates names those "
			    "there are",
			    link);
}

/* Interfaces of these cniTypes lie over a NIC of this sort; devices of them are of one. */
static const struct {
	const char *type, *link, *remedy;
} link_types[] = {
	{"macvlan", "ETH", "use cniType ipoib or ib-sriov"},
	{"ipvlan", "ETH", "use cniType ipoib or ib-sriov"},
	{"vlan", "ETH", "use cniType ipoib or ib-sriov, and partitions in place of VLANs"},
	{"sriov", "ETH", "use cniType ib-sriov"},
	{"ib-sriov", "IB", "use cniType sriov"},
	{"ipoib", "IB", "use cniType macvlan or ipvlan"},
};

static const char *link_words(const char *type)
{
	return str_eq(type, "IB") ? "InfiniBand" : "Ethernet";
}

/* what: of KIND_LINK_TYPE; name: as users call it. */
static void warn_of_link_type(const json_t *world, const char *cni_type, const char *where,
			      const char *what, const char *name, struct problems *warnings)
{
	const char *is = json_str_at(world, KIND_LINK_TYPE, what);

	for (size_t i = 0; is && i < ARRAY_LEN(link_types); i++)
		if (str_eq(cni_type, link_types[i].type) && !str_eq(is, link_types[i].link))
			problem_add(warnings, "WrongLinkType", where,
				    "%.253s is %s on every node that has it, and %s needs %s: no "
				    "pod gets the interface; %s, or name another one",
				    name, link_words(is), cni_type, link_words(link_types[i].link),
				    link_types[i].remedy);
}

struct typed {
	const json_t *world;
	const struct cni_type *type;
	struct problems *warnings;
};

static void warn_of_master_type(void *arg, const char *field, const char *link)
{
	const struct typed *typed = arg;
	auto_free char *where = str_printf("spec.%s.%s", typed->type->block, field);

	warn_of_link_type(typed->world, typed->type->name, where, link, link, typed->warnings);
}

/* The kernel, or the plugin, would refuse each pod. */
static void warn_of_link_types(const json_t *world, const json_t *object,
			       const struct cni_type *type, struct problems *warnings)
{
	struct typed typed = {world, type, warnings};
	auto_free char *resource = multus_config_resource(object);
	const char *slash = strrchr(resource, '/');
	auto_free char *what = str_printf("%s/", slash ? slash + 1 : resource);
	auto_free char *where = NULL;

	multus_config_masters(object, warn_of_master_type, &typed);
	if (!*resource || !type->resource)
		return;
	where = str_printf("spec.%s.%s", type->block, type->resource);
	warn_of_link_type(world, type->name, where, what, resource, warnings);
}

void multus_config_warn_missing(const json_t *world, const json_t *object,
				struct problems *warnings)
{
	const struct cni_type *type = cni_type_of(object);
	auto_free char *field = str_printf("spec.%s.ippools", type->block);
	auto_free char *resource = multus_config_resource(object);
	json_auto_t *block = cni_block(object, type);
	bool has_ipam = !json_is_true(json_at(object, "spec", "disableIPAM"));
	static const char *const families[] = {"ipv4", "ipv6"};

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		struct missing missing = {world, field, families[i], warnings};

		if (has_ipam && world_kind(world, KIND_IP_POOL))
			visit_pools(json_at(block, "ippools"), families[i], warn_of_pool, &missing);
	}
	warn_of_link_types(world, object, type, warnings);
	if (world_kind(world, KIND_NODE_LINK)) {
		auto_free char *parent = str_printf("spec.%s", type->block);
		struct missing missing = {world, parent, NULL, warnings};

		multus_config_masters(object, warn_of_master, &missing);
	}
	if (*resource && world_kind(world, KIND_NODE_RESOURCE) &&
	    !world_get(world, KIND_NODE_RESOURCE, resource)) {
		auto_free char *where = str_printf("spec.%s.%s", type->block, type->resource);

		problem_add(warnings, "ResourceMissing", where,
			    "%.253s is offered by no node: pods that request it stay Pending until "
			    "a SriovNetworkNodePolicy or a device plugin makes it, or the name is "
			    "corrected",
			    resource);
	}
}
