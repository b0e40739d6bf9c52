// SPDX-License-Identifier: Apache-2.0
/*
 * The CNI configuration of SriovNetwork, SriovIBNetwork and OVSNetwork. See sriov_network.h.
 *
 * Upstream pastes text into a template; here ipam, capabilities and metaPlugins are parsed, so that
 * a mistake in them is reported and blanks within strings survive.
 */
#include "reconcilers/sriov/sriov_network.h"

#include <assert.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/plugin_rules.h"
#include "reconcilers/core/cni_rules.h"
#include "reconcilers/core/fields.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"

#define CNI_VERSION "1.0.0"

#define FIELDS_OF_ALL                                                                              \
	FIELD_TEXT("resourceName"), FIELD_TEXT("networkNamespace"), FIELD_TEXT("capabilities"),    \
		FIELD_TEXT("ipam"), FIELD_TEXT("metaPlugins")

static const struct field sriov_fields[] = {
	FIELDS_OF_ALL,
	FIELD_INT("vlan", 0, 4094),
	FIELD_INT("vlanQoS", 0, 7),
	FIELD_TEXT("vlanProto"),
	FIELD_TEXT("spoofChk"),
	FIELD_TEXT("trust"),
	FIELD_TEXT("linkState"),
	FIELD_INT("minTxRate", 0, INT32_MAX),
	FIELD_INT("maxTxRate", 0, INT32_MAX),
	FIELD_TEXT("logLevel"),
	FIELD_TEXT("logFile"),
	FIELDS_END,
};

static const struct field ib_fields[] = {
	FIELDS_OF_ALL,
	FIELD_TEXT("linkState"),
	FIELDS_END,
};

static const struct field ovs_fields[] = {
	FIELDS_OF_ALL,
	FIELD_TEXT("bridge"),
	FIELD_TEXT("interfaceType"),
	FIELD_INT("vlan", 0, 4095),
	FIELD_INT("mtu", 0, INT32_MAX),
	FIELD_ARRAY("trunk"),
	FIELDS_END,
};

static const struct field trunk_fields[] = {
	FIELD_INT("minID", 0, 4095),
	FIELD_INT("maxID", 0, 4095),
	FIELD_INT("id", 0, 4095),
	FIELDS_END,
};

/* ---- fields with JSON inside ----------------------------------------------------------------- */

/* "TooLarge" is reported here; the caller reports the rest. */
static json_t *parse_text(const char *text, const char *field, struct problems *problems,
			  struct err *err)
{
	json_t *value = limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, err);

	if (!value && str_eq(err->reason, "TooLarge"))
		problem_add(problems, "TooLarge", field, "%s", err->text);
	return value;
}

/* What the door has left of a field that is too large is a number. */
static bool check_sizes(const json_t *spec, struct problems *problems)
{
	static const char *const names[] = {"capabilities", "ipam", "metaPlugins"};
	size_t before = problems->total;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_free char *field = str_printf("spec.%s", names[i]);
		struct err err = {0};

		if (limits_check_reduced(json_at(spec, names[i]), &err) < 0)
			problem_add(problems, "TooLarge", field, "%s", err.text);
	}
	return problems->total == before;
}

/* A field whose text is a JSON object: new, or NULL when it is empty or wrong. */
static json_t *get_object_text(const json_t *spec, const char *name, struct problems *problems)
{
	const char *text = json_str_or(json_object_get(spec, name), "");
	auto_free char *field = str_printf("spec.%s", name);
	struct err err = {0};
	json_t *value;

	if (!*text)
		return NULL;
	value = parse_text(text, field, problems, &err);
	if (json_is_object(value) || str_eq(err.reason, "TooLarge"))
		return value;
	if (value)
		problem_add(problems, "BadJson", field, "holds %s, must hold a JSON object",
			    json_type_words(value));
	else
		problem_add(problems, "BadJson", field, "must hold a JSON object: %s", err.text);
	json_decref(value);
	return NULL;
}

/* metaPlugins is the inside of an array: objects with commas between. */
static json_t *get_meta_plugins(const json_t *spec, struct problems *problems)
{
	static const char field[] = "spec.metaPlugins";
	const char *text = json_str_or(json_object_get(spec, "metaPlugins"), "");
	auto_free char *array = str_printf("[%s]", text);
	json_auto_t *plugins = NULL;
	struct err err = {0};
	const json_t *plugin;
	size_t i;

	if (!*text)
		return NULL;
	plugins = parse_text(array, field, problems, &err);
	if (!plugins && str_eq(err.reason, "TooLarge"))
		return NULL;
	if (!plugins) {
		problem_add(problems, "BadJson", field,
			    "must hold JSON objects with commas between: %s", err.text);
		return NULL;
	}
	json_array_foreach (plugins, i, plugin) {
		if (json_is_object(plugin))
			continue;
		problem_add(problems, "BadJson", field, "element %zu is %s, must be a JSON object",
			    i, json_type_words(plugin));
		return NULL;
	}
	return json_incref(plugins);
}

/* ---- plain fields ---------------------------------------------------------------------------- */

static void put_text(json_t *config, const char *key, const json_t *spec, const char *field)
{
	const char *value = json_string_value(json_object_get(spec, field));

	if (!str_empty(value))
		json_put_str(config, key, value);
}

/* Only one of the words the CNI plugin knows; `words` with blanks around each. */
static void put_word(json_t *config, const char *key, const json_t *spec, const char *field,
		     const char *words)
{
	const char *value = json_string_value(json_object_get(spec, field));
	auto_free char *word = str_printf(" %s ", value ? value : "");

	if (!str_empty(value) && strstr(words, word))
		json_put_str(config, key, value);
}

static void put_int_if_given(json_t *config, const char *key, const json_t *spec, const char *field)
{
	const json_t *value = json_at(spec, field);

	if (value)
		json_put_int(config, key, json_integer_value(value));
}

static void put_int_if_set(json_t *config, const char *key, const json_t *spec, const char *field)
{
	int64_t value = json_integer_value(json_object_get(spec, field));

	if (value)
		json_put_int(config, key, value);
}

static void put_link_state(json_t *plugin, const json_t *spec)
{
	put_word(plugin, "link_state", spec, "linkState", " auto enable disable ");
}

/* ---- the three plugins ----------------------------------------------------------------------- */

static void put_sriov(json_t *plugin, const json_t *spec, json_t *capabilities)
{
	json_put_str(plugin, "type", "sriov");
	json_put_int(plugin, "vlan", json_integer_value(json_object_get(spec, "vlan")));
	put_word(plugin, "spoofchk", spec, "spoofChk", " on off ");
	put_word(plugin, "trust", spec, "trust", " on off ");
	json_put_int(plugin, "vlanQoS", json_integer_value(json_object_get(spec, "vlanQoS")));
	put_text(plugin, "vlanProto", spec, "vlanProto");
	put_int_if_given(plugin, "min_tx_rate", spec, "minTxRate");
	put_int_if_given(plugin, "max_tx_rate", spec, "maxTxRate");
	json_put(plugin, "capabilities", capabilities);
	put_link_state(plugin, spec);
	/* The schema's default; an empty text is a wish for none. */
	if (json_at(spec, "logLevel"))
		put_text(plugin, "logLevel", spec, "logLevel");
	else
		json_put_str(plugin, "logLevel", "info");
	put_text(plugin, "logFile", spec, "logFile");
}

static void put_ib(json_t *plugin, const json_t *spec, json_t *capabilities)
{
	json_put_str(plugin, "type", "ib-sriov");
	json_put(plugin, "capabilities", capabilities);
	put_link_state(plugin, spec);
}

static void put_ovs(json_t *plugin, const json_t *spec, json_t *capabilities)
{
	const json_t *range;
	json_t *list;
	size_t i;

	json_put_str(plugin, "type", "ovs");
	json_put(plugin, "capabilities", capabilities);
	put_text(plugin, "bridge", spec, "bridge");
	put_int_if_set(plugin, "vlan", spec, "vlan");
	put_int_if_set(plugin, "mtu", spec, "mtu");
	list = json_array();
	json_array_foreach (json_object_get(spec, "trunk"), i, range) {
		json_t *one = json_object();

		put_int_if_given(one, "minID", range, "minID");
		put_int_if_given(one, "maxID", range, "maxID");
		put_int_if_given(one, "id", range, "id");
		json_array_append_new(list, one);
	}
	if (json_array_size(list) > 0)
		json_put(plugin, "trunk", list);
	else
		json_decref(list);
	put_text(plugin, "interface_type", spec, "interfaceType");
}

static const struct plugin {
	const char *kind;
	const struct field *fields;
	/* Takes capabilities, which may be NULL. */
	void (*put)(json_t *plugin, const json_t *spec, json_t *capabilities);
} plugins_known[] = {
	{KIND_SRIOV_NETWORK, sriov_fields, put_sriov},
	{KIND_SRIOV_IB_NETWORK, ib_fields, put_ib},
	{KIND_OVS_NETWORK, ovs_fields, put_ovs},
};

static bool check_trunk(const json_t *spec, struct problems *problems)
{
	const json_t *range;
	size_t before = problems->total, i;

	json_array_foreach (json_object_get(spec, "trunk"), i, range) {
		auto_free char *where = str_printf("spec.trunk[%zu]", i);

		if (json_is_object(range))
			fields_check(range, where, trunk_fields, problems);
		else
			problem_add(problems, "BadField", where, "%s, must be an object",
				    json_type_words(range));
	}
	return problems->total == before;
}

static bool check_spec(const struct plugin *plugin, const json_t *spec, struct problems *problems)
{
	if (!json_is_object(spec)) {
		problem_add(problems, "BadField", "spec", "missing, must be an object");
		return false;
	}
	if (!fields_check(spec, "spec", plugin->fields, problems) || !check_trunk(spec, problems))
		return false;
	if (!str_empty(json_str_at(spec, "resourceName")))
		return true;
	problem_add(problems, "NoResourceName", "spec.resourceName",
		    "missing, name the resource of the SriovNetworkNodePolicy");
	return false;
}

/* The field that a key of the plugin's configuration is rendered from. */
static const char *field_of(const char *key)
{
	static const struct {
		const char *key, *field;
	} fields[] = {
		{"vlan", "spec.vlan"},
		{"vlanQoS", "spec.vlanQoS"},
		{"vlanProto", "spec.vlanProto"},
		{"min_tx_rate", "spec.minTxRate"},
		{"max_tx_rate", "spec.maxTxRate"},
		{"link_state", "spec.linkState"},
		{"ipam.type", "spec.ipam"},
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (str_eq(fields[i].key, key))
			return fields[i].field;
	return "spec";
}

/* What the plugin would refuse for each pod. */
static bool check_rules(const json_t *plugin, struct problems *problems)
{
	const char *key = NULL;
	struct err err = {0};

	if (cni_rules_check(plugin, &key, &err) == 0)
		return true;
	problem_add(problems, "BadField", field_of(key), "would be refused for each pod: %s",
		    err.text);
	return false;
}

/* The plugin itself, or the first of a chain with the meta plugins behind it. Takes plugin. */
static json_t *config_new(const char *name, json_t *plugin, const json_t *meta_plugins)
{
	json_t *config = json_object(), *chain;

	json_put_str(config, "cniVersion", CNI_VERSION);
	json_put_str(config, "name", name);
	if (!meta_plugins) {
		json_object_update(config, plugin);
		json_decref(plugin);
		return config;
	}
	chain = json_array();
	json_array_append_new(chain, plugin);
	json_array_extend(chain, (json_t *)meta_plugins);
	json_put(config, "plugins", chain);
	return config;
}

/* May pods read what is made of the fields? Takes config. */
static json_t *check_whole(json_t *config, struct problems *problems)
{
	auto_free char *text = json_dumps(config, JSON_INDENT(SRIOV_NETWORK_INDENT));
	struct err err = {0};
	size_t position = 0;

	if (cni_rules_network(config, &err) < 0) {
		problem_add(problems, "BadField", "spec.metaPlugins",
			    "would be refused for each pod: %s", err.text);
		json_decref(config);
		return NULL;
	}
	if (limits_check_text(text, strlen(text), LIMIT_CONFIG_BYTES, &err) < 0) {
		problem_add(problems, "TooLarge", "spec", "makes a CNI configuration of %s",
			    err.text);
		json_decref(config);
		return NULL;
	}
	/* What ours cannot do may be done by another plugin of the same name. */
	if (plugin_rules_check(config, &position, &err) && !str_eq(err.reason, "NotSupported")) {
		problem_add(problems, "BadField", position ? "spec.metaPlugins" : "spec.ipam",
			    "would be refused for each pod: %s", err.text);
		json_decref(config);
		return NULL;
	}
	return config;
}

json_t *sriov_network_config(const char *kind, const char *name, const json_t *network,
			     struct problems *problems)
{
	const struct plugin *known = plugins_known;
	const json_t *spec = json_object_get(network, "spec");
	json_auto_t *capabilities = NULL, *ipam = NULL, *meta_plugins = NULL, *plugin = NULL;
	size_t before = problems->total;

	assert(kind && name && problems);
	while (!str_eq(kind, known->kind)) {
		known++;
		assert(known < plugins_known + ARRAY_LEN(plugins_known));
	}
	if (!check_sizes(spec, problems) || !check_spec(known, spec, problems))
		return NULL;
	capabilities = get_object_text(spec, "capabilities", problems);
	ipam = get_object_text(spec, "ipam", problems);
	meta_plugins = get_meta_plugins(spec, problems);
	if (problems->total > before)
		return NULL;

	plugin = json_object();
	known->put(plugin, spec, json_incref(capabilities));
	json_put(plugin, "ipam", ipam ? json_incref(ipam) : json_object());
	if (!check_rules(plugin, problems))
		return NULL;
	return check_whole(config_new(name, take_ptr(plugin), meta_plugins), problems);
}
