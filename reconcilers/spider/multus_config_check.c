// SPDX-License-Identifier: Apache-2.0
/* What a SpiderMultusConfig may say: the rules, each with the remedy in its message. */
#include "reconcilers/spider/multus_config_check.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "lib/base/rail_list.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/plugin_rules.h"
#include "reconcilers/core/cni_rules.h"
#include "reconcilers/core/fields.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/coordinator_settings.h"

#define VLAN_MAX     4094
#define CNI_VERSIONS "0.3.0, 0.3.1, 0.4.0, 1.0.0"

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
	if (block->problems->total == before) {
		auto_free char *name = cni_parent_device(block->json);

		/* macvlan and ipvlan go on a VLAN device that is named after its parent. */
		if (!str_eq(block->type->name, "vlan") && strlen(name) > INTERFACE_NAME_MAX)
			complain(block, "BadInterfaceName", "vlanID",
				 "the VLAN device %s would have a name of %zu bytes, a network "
				 "device can "
				 "have %d: rename the parent interface on the hosts, or use a bond "
				 "with a "
				 "shorter name",
				 name, strlen(name), INTERFACE_NAME_MAX);
	}
	if (json_is_true(json_at(block->json, "ippools", "matchMasterSubnet")))
		complain(block, "NotSupported", "ippools.matchMasterSubnet",
			 "is for cniType sriov only: remove it");
	if (str_eq(block->type->name, "vlan") && str_eq(text_of(block, "vlanMode"), "auto") &&
	    json_at(block->json, "vlanID"))
		complain(block, "BadVlanMode", "vlanID",
			 "cannot be given with vlanMode auto, which finds the VLAN itself: remove "
			 "it, or set vlanMode to manual");
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
	if (cni_annotation(smc, CNI_ANNOTATION_RAIL) && !cni_rail(smc))
		problem_add(block->problems, "BadAnnotation",
			    "metadata.annotations[" CNI_ANNOTATION_RAIL "]",
			    "is not the index of a rail: write a number from 0 to %d",
			    RAIL_LIST_MAX - 1);
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
	if (str_eq(type->name, "sriov")) {
		check_sriov_block(&block);
	} else if (str_eq(type->name, "ib-sriov")) {
		if (check_fields(&block, ib_sriov_fields))
			check_resource(&block);
	} else if (str_eq(type->name, "ipoib")) {
		check_ipoib_block(&block);
	} else if (str_eq(type->name, "ovs")) {
		check_ovs_block(&block);
	} else {
		check_parent_block(&block);
	}
	if (type->resource && (cni_annotation(smc, CNI_ANNOTATION_RDMA_INJECT) ||
			       cni_annotation(smc, CNI_ANNOTATION_NETWORK_INJECT)))
		check_injection(smc, &block,
				cni_annotation(smc, CNI_ANNOTATION_RDMA_INJECT) != NULL);
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

	for (const struct cni_type *other = cni_types; other->name; other++) {
		auto_free char *where = NULL;

		if (other == type || !json_at(spec, other->block))
			continue;
		where = str_printf("spec.%s", other->block);
		problem_add(problems, "OtherSettings", where,
			    "does not belong to cniType %s: remove it, or set spec.cniType to %s",
			    type->name, other->name);
	}
	check_chain(spec, problems);
	if (!str_eq(type->name, "custom"))
		coordinator_spec_check(json_at(spec, "coordinator"), "spec.coordinator", problems);
}

static void check_inject_annotation(const json_t *smc, const char *name, struct problems *problems)
{
	const char *value = cni_annotation(smc, name);
	const struct cni_type *type = cni_type_of(smc);
	auto_free char *field = NULL;

	if (!value)
		return;
	field = str_printf("metadata.annotations[%s]", name);
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

/* What the config would write is there already: nothing of another owner is lost. */
static bool says_the_same(const json_t *smc, const json_t *config, const json_t *nad)
{
	const char *present = json_str_or(json_at(nad, "spec", "config"), "");
	auto_free char *wanted = cni_config_text(smc, config, present);
	json_auto_t *resource = cni_config_resource(smc);
	const char *ask = resource ? json_string_value(resource)
				   : cni_annotation(smc, CNI_ANNOTATION_RESOURCE);

	return str_eq(wanted ? wanted : "", present) &&
	       str_eq(ask, cni_annotation(nad, CNI_ANNOTATION_RESOURCE));
}

/*
 * Controlled by another kind's object, or without the mark that Spiderpool and we leave, a config
 * as owner: another client wrote it.
 */
static void check_owner(const json_t *smc, const json_t *config, const json_t *nad, const char *key,
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
	else if (!has_config_as_owner(nad) && !says_the_same(smc, config, nad))
		problem_add(problems, "OwnedByOther", "metadata.name",
			    "NetworkAttachmentDefinition %s was made by somebody else, with "
			    "another content, and stays as it is: choose another name with the "
			    "annotation %s, or delete it, and this config makes its own%s",
			    key, CNI_ANNOTATION_NAD_NAME, custom);
}

/* The field that a plugin of the configuration is from; `main`: that of those before the chain. */
static char *field_of_plugin(const json_t *object, const json_t *plugin, const char *main)
{
	json_t *text;
	size_t i;

	json_array_foreach (json_at(object, "spec", "chainCNIJsonData"), i, text) {
		json_auto_t *entry = limits_parse(json_string_value(text), json_string_length(text),
						  LIMIT_CONFIG_BYTES, NULL);

		if (plugin && json_equal(entry, plugin))
			return str_printf("spec.chainCNIJsonData[%zu]", i);
	}
	return str_dup(main);
}

/*
 * What our own plugins would refuse of the configuration that the object is rendered to. Returns
 * what ours cannot do, and another of the same name can: a warning.
 */
static struct err check_rules(const json_t *object, const json_t *config, struct problems *problems)
{
	auto_free char *field = str_printf("spec.%s", cni_type_of(object)->block);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	size_t position = 0;

	if (config)
		json_write(config, &text);
	if (limits_check_text(text.data, text.len, LIMIT_CONFIG_BYTES, &err) < 0) {
		problem_add(problems, "TooLarge", "spec", "makes a CNI configuration of %s",
			    err.text);
		return (struct err){0};
	}
	if ((json_at(config, "type") || json_at(config, "plugins")) &&
	    cni_rules_network(config, &err) < 0) {
		problem_add(problems, "BadField",
			    str_eq(field, "spec.customCNI") ? field : "spec.chainCNIJsonData",
			    "would be refused for each pod: %s", err.text);
		return (struct err){0};
	}
	if (config && plugin_rules_check(config, &position, &err) &&
	    !str_eq(err.reason, "NotSupported")) {
		auto_free char *from = field_of_plugin(
			object, json_array_get(json_at(config, "plugins"), position), field);

		problem_add(problems, "BadField", from, "would be refused for each pod: %s",
			    err.text);
	}
	return err;
}

void multus_rendering_done(struct multus_rendering *r)
{
	json_decref(r->config);
}

void multus_config_check(const json_t *world, const json_t *object, struct problems *problems)
{
	auto_multus_rendering struct multus_rendering rendering = {0};

	multus_config_render(world, object, &rendering, problems);
}

void multus_config_render(const json_t *world, const json_t *object, struct multus_rendering *ret,
			  struct problems *problems)
{
	size_t before = problems->total;
	json_auto_t *config = NULL;
	struct err unsupported = {0};

	assert(object && !ret->config);
	check_annotations(object, problems);
	check_spec(object, problems);
	if (problems->total == before) {
		config = cni_config_new(object);
		unsupported = check_rules(object, config, problems);
	}
	if (problems->total == before) {
		const char *name = cni_nad_name(object);
		auto_free char *key = str_printf("%s/%s", json_namespace(object), name);
		const json_t *older = find_older_claim(world, object);
		const json_t *nad = world_get(world, KIND_NAD, key);

		if (older)
			problem_add(problems, "NameConflict", "metadata.name",
				    "NetworkAttachmentDefinition %s is also claimed by "
				    "SpiderMultusConfig "
				    "%s, which is older: choose another name with the annotation "
				    "%s",
				    key, json_name(older), CNI_ANNOTATION_NAD_NAME);
		else if (nad && !object_is_terminating(nad))
			check_owner(object, config, nad, key, problems);
	}
	if (problems->total == before)
		*ret = (struct multus_rendering){take_ptr(config), unsupported};
}
