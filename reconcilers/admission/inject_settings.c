// SPDX-License-Identifier: Apache-2.0
/*
 * Which namespaces get injection; see pod_inject.h.
 */
#include "reconcilers/admission/pod_inject.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"

#define CONFIG_KEY      "conf.yml"
#define NAMESPACE_LABEL "kubernetes.io/metadata.name"

void inject_settings_done(struct inject_settings *settings)
{
	json_decref(settings->include);
	json_decref(settings->exclude);
	*settings = (struct inject_settings){0};
}

static json_t *default_exclude(void)
{
	return json_pack("[ssss]", "kube-system", "spiderpool", "metallb-system", "istio-system");
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

int inject_settings_read(const json_t *config_map, struct inject_settings *ret, struct err *err)
{
	static const char where[] = "podResourceInject";
	const json_t *block = NULL, *include = NULL, *exclude = NULL;
	json_auto_t *document = NULL;
	struct err inner = {0};
	bool enabled = false;

	if (read_document(config_map, &document, err))
		return -1;
	if ((document && !json_is_object(document)) ||
	    json_get_object(document, "", where, &block, &inner) ||
	    json_get_bool(block, where, "enabled", false, &enabled, &inner) ||
	    json_get_strings(block, where, "namespacesInclude", &include, &inner) ||
	    json_get_strings(block, where, "namespacesExclude", &exclude, &inner))
		return err_set(err, ERR_INVALID, "BadConfig", "ConfigMap %s: data[%s]: %s",
			       INJECT_CONFIG_MAP, CONFIG_KEY,
			       *inner.text ? inner.text : "must be an object");
	*ret = (struct inject_settings){
		.enabled = enabled,
		.include = include ? json_incref((json_t *)include) : json_array(),
		.exclude = exclude ? json_incref((json_t *)exclude) : default_exclude(),
	};
	return 0;
}

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
