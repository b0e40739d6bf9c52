// SPDX-License-Identifier: Apache-2.0
/* Which namespaces get injection, and what of it; see pod_inject.h. */
#include "reconcilers/admission/pod_inject.h"

#include <string.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "reconcilers/admission/pod_edit.h"
#include "reconcilers/admission/pod_environment.h"
#include "reconcilers/spider/cni_config.h"

#define CONFIG_KEY      "conf.yml"
#define SWITCHES_KEY    "config.json"
#define NAMESPACE_LABEL "kubernetes.io/metadata.name"

void inject_settings_done(struct inject_settings *settings)
{
	json_decref(settings->include);
	json_decref(settings->exclude);
	json_decref(settings->resource_keys);
	json_decref(settings->switches);
	json_decref(settings->environment);
	*settings = (struct inject_settings){0};
}

/* The one document of the key's text; NULL when there is none. Returns new. */
static int read_document(const json_t *config_map, json_t **ret, struct err *err)
{
	const char *text = json_str_or(json_at(config_map, "data", CONFIG_KEY), "");
	json_auto_t *documents = yaml_parse_all(text, strlen(text), err);

	if (!documents)
		return err_in(err, "ConfigMap %s: data[%s]", INJECT_CONFIG_MAP, CONFIG_KEY);
	*ret = json_incref(json_array_get(documents, 0));
	return 0;
}

/* The list holds keys of annotations or labels. */
static int check_keys(const json_t *list, const char *where, struct err *err)
{
	json_t *key;
	size_t i;

	json_array_foreach (list, i, key)
		if (!name_is_qualified(json_string_value(key)))
			return err_set(err, ERR_INVALID, "BadConfig",
				       "%s[%zu]: \"%.64s\" is not the key of an annotation", where,
				       i, json_string_value(key));
	return 0;
}

/* networkResources of the block. ret->resource_keys is new. */
static int read_references(const json_t *block, struct inject_settings *ret, struct err *err)
{
	static const char where[] = "podResourceInject.networkResources";
	const json_t *references = NULL, *keys = NULL;

	if (json_get_object(block, "podResourceInject", "networkResources", &references, err) ||
	    json_get_bool(references, where, "enabled", false, &ret->references, err) ||
	    json_get_bool(references, where, "honorExistingResources", false, &ret->adds, err) ||
	    json_get_bool(references, where, "hugePageDownApi", false, &ret->hugepages, err) ||
	    json_get_strings(references, where, "resourceNameKeys", &keys, err) ||
	    check_keys(keys, "podResourceInject.networkResources.resourceNameKeys", err))
		return -1;
	ret->resource_keys =
		keys ? json_incref((json_t *)keys) : json_pack("[s]", CNI_ANNOTATION_RESOURCE);
	return 0;
}

int inject_settings_read(const json_t *config_map, struct inject_settings *ret, struct err *err)
{
	static const char where[] = "podResourceInject";
	const json_t *block = NULL, *include = NULL, *exclude = NULL;
	struct inject_settings settings = {0};
	json_auto_t *document = NULL;
	struct err inner = {0};

	if (read_document(config_map, &document, err))
		return -1;
	if ((document && !json_is_object(document)) ||
	    json_get_object(document, "", where, &block, &inner) ||
	    json_get_bool(block, where, "enabled", false, &settings.enabled, &inner) ||
	    json_get_strings(block, where, "namespacesInclude", &include, &inner) ||
	    json_get_strings(block, where, "namespacesExclude", &exclude, &inner) ||
	    read_references(block, &settings, &inner))
		return err_set(err, ERR_INVALID, "BadConfig", "ConfigMap %s: data[%s]: %s",
			       INJECT_CONFIG_MAP, CONFIG_KEY,
			       *inner.text ? inner.text : "must be an object");
	settings.include = include ? json_incref((json_t *)include) : json_array();
	settings.exclude = exclude ? json_incref((json_t *)exclude)
				   : json_pack("[ssss]", "kube-system", "spiderpool",
					       "metallb-system", "istio-system");
	settings.environment = pod_environment_templates(config_map);
	*ret = settings;
	return 0;
}

/* ---- switches -------------------------------------------------------------------------------- */

static const char adds_feature[] = "enableHonorExistingResources";
static const char hugepages_feature[] = "enableHugePageDownApi";

/* The known features that the text has. */
static int read_features(const json_t *document, json_t *features, struct err *err)
{
	static const char *const names[] = {adds_feature, hugepages_feature};
	const json_t *block = NULL;
	bool on = false;

	if (json_get_object(document, "", "features", &block, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (json_get_bool(block, "features", names[i], false, &on, err) < 0)
			return -1;
		if (json_at(block, names[i]))
			json_put_bool(features, names[i], on);
	}
	return 0;
}

/* Annotations of one injection: { annotation: value }, borrowed. */
static int read_injection(const json_t *injection, const char *where, const json_t **ret,
			  struct err *err)
{
	const char *op = NULL, *path = NULL, *annotation;
	json_t *value;

	if (json_get_str(injection, where, "op", "add", &op, err) ||
	    json_get_str(injection, where, "path", "", &path, err) ||
	    json_get_object(injection, where, "value", ret, err))
		return -1;
	if (!str_eq(op, "add") || !str_eq(path, "/metadata/annotations"))
		return err_set(err, ERR_INVALID, "BadConfig",
			       "%s: op \"%.16s\" of path \"%.64s\" is not possible, only \"add\" "
			       "of \"/metadata/annotations\" is",
			       where, op, path);
	json_each (*ret, annotation, value)
		if (!name_is_qualified(annotation) || !json_is_string(value) ||
		    str_eq(annotation, INJECTED_RESOURCES_ANNOTATION))
			return err_set(err, ERR_INVALID, "BadConfig",
				       "%s.value[%.64s]: must be an annotation of the pod's own "
				       "and its text",
				       where, annotation);
	return 0;
}

static int read_injections(const json_t *document, json_t *injections, struct err *err)
{
	static const char key[] = "user-defined-injections";
	const json_t *block = NULL, *annotations = NULL;
	json_t *injection;
	const char *label;

	if (json_get_object(document, "", key, &block, err) < 0)
		return -1;
	if (json_object_size(block) > INJECT_INJECTIONS_MAX)
		return err_set(err, ERR_INVALID, "BadConfig",
			       "%s: has %zu, at most %d are possible", key, json_object_size(block),
			       INJECT_INJECTIONS_MAX);
	json_each (block, label, injection) {
		auto_free char *where = str_printf("%s[%.128s]", key, label);

		if (!name_is_qualified(label) || !json_is_object(injection))
			return err_set(err, ERR_INVALID, "BadConfig",
				       "%s: must be a label and its injection", where);
		if (read_injection(injection, where, &annotations, err) < 0)
			return -1;
		json_put(injections, label,
			 annotations ? json_incref((json_t *)annotations) : json_object());
	}
	return 0;
}

int inject_switches_read(const json_t *config_map, json_t **ret, struct err *err)
{
	const char *text = json_str_or(json_at(config_map, "data", SWITCHES_KEY), "");
	json_auto_t *document = NULL, *features = json_object(), *injections = json_object();
	struct err inner = {0};

	if (*text) {
		document = json_parse(text, strlen(text), &inner);
		if (document && !json_is_object(document))
			err_set(&inner, ERR_INVALID, "BadConfig", "must be an object");
		if (!json_is_object(document) || read_features(document, features, &inner) < 0 ||
		    read_injections(document, injections, &inner) < 0)
			return err_set(err, ERR_INVALID, "BadConfig", "ConfigMap %s: data[%s]: %s",
				       INJECT_SWITCHES_CONFIG_MAP, SWITCHES_KEY, inner.text);
	}
	*ret = config_map ? json_pack("{s:O, s:O}", "features", features, "injections", injections)
			  : NULL;
	return 0;
}

static bool feature(const struct inject_settings *settings, const char *name, bool otherwise)
{
	const json_t *on = json_at(settings->switches, "features", name);

	return on ? json_is_true(on) : otherwise;
}

bool inject_settings_add(const struct inject_settings *settings)
{
	return feature(settings, adds_feature, settings->adds);
}

bool inject_settings_hugepages(const struct inject_settings *settings)
{
	return feature(settings, hugepages_feature, settings->hugepages);
}

/* ---- namespaces ------------------------------------------------------------------------------ */

/* All that are left out, those that always are included. Returns new. */
static json_t *excluded_new(const struct inject_settings *settings, const char *own_ns)
{
	const char *const always[] = {"kube-system", own_ns};
	json_t *list = settings->exclude ? json_copy(settings->exclude) : json_array();

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		if (*always[i] && !json_list_has(list, always[i]))
			json_array_append_new(list, json_string(always[i]));
	return list;
}

bool inject_settings_cover(const struct inject_settings *settings, const char *own_ns,
			   const char *ns)
{
	json_auto_t *excluded = excluded_new(settings, own_ns);

	return !json_list_has(excluded, ns) &&
	       (json_array_size(settings->include) == 0 || json_list_has(settings->include, ns));
}

static json_t *requirement(const char *operator, json_t * values)
{
	json_t *requirement = json_object();

	json_put_str(requirement, "key", NAMESPACE_LABEL);
	json_put_str(requirement, "operator", operator);
	json_put(requirement, "values", values);
	return requirement;
}

json_t *inject_settings_selector(const struct inject_settings *settings, const char *own_ns)
{
	json_t *selector = json_object(), *list = json_array();

	json_array_append_new(list, requirement("NotIn", excluded_new(settings, own_ns)));
	if (json_array_size(settings->include))
		json_array_append_new(list, requirement("In", json_incref(settings->include)));
	json_put(selector, "matchExpressions", list);
	return selector;
}
