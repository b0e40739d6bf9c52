// SPDX-License-Identifier: Apache-2.0
/*
 * From the text of templates to variables of containers. Faults of a template are found when the
 * ConfigMap is read, so that a pod costs lookups only; pod_inject.c says which pods.
 */
#include "reconcilers/admission/pod_environment.h"

#include <string.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "reconcilers/admission/pod_edit.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/problems.h"

#define ANNOTATION_FIELD "metadata.annotations[" POD_ENVIRONMENT_NAME "]"
#define LABEL_FIELD      "metadata.namespace: its label " POD_ENVIRONMENT_NAME

/* What braces in a value can hold. */
static const char all_interfaces[] = "{interfaces}", first_interface[] = "{interface}";

enum { NAME_BYTES = 128 };

/* Letters, digits, and these others. */
static bool has_only(const char *text, const char *others)
{
	while (*text && (name_is_alnum(*text) || strchr(others, *text)))
		text++;
	return !*text;
}

/* ---- templates ------------------------------------------------------------------------------- */

/* The first brace of the value that belongs to no placeholder; NULL: there is none. */
static const char *stray_brace(const char *value)
{
	const char *at = value;

	while ((at = strpbrk(at, "{}"))) {
		if (str_starts(at, all_interfaces))
			at += strlen(all_interfaces);
		else if (str_starts(at, first_interface))
			at += strlen(first_interface);
		else
			return at;
	}
	return NULL;
}

/* Why the variable cannot be set, new; NULL with its text in *ret, new. */
static char *read_variable(const char *name, const json_t *value, char **ret)
{
	size_t len = strlen(name);
	auto_free char *text = NULL;

	if (json_is_integer(value))
		text = str_printf("%lld", (long long)json_integer_value(value));
	else
		text = str_dup(json_string_value(value));
	if (len == 0 || len > NAME_BYTES || (*name >= '0' && *name <= '9') || !has_only(name, "_"))
		return str_printf("\"%.64s\" is not the name of a variable: write letters, digits "
				  "and _, at most %d",
				  name, NAME_BYTES);
	if (!text)
		return str_printf("%s is %s, must be text: write it in quotes", name,
				  json_type_words(value));
	if (strlen(text) > POD_ENVIRONMENT_VALUE_BYTES)
		return str_printf("%s has %zu bytes, a value can have %d", name, strlen(text),
				  POD_ENVIRONMENT_VALUE_BYTES);
	if (stray_brace(text))
		return str_printf("%s: \"%.16s\" is not known: write {interfaces} or {interface}",
				  name, stray_brace(text));
	*ret = take_ptr(text);
	return NULL;
}

/* What is wrong with the template, new; NULL: nothing, and `variables` has them. */
static char *read_template(const char *name, const json_t *template, json_t *variables)
{
	const char *variable;
	json_t *value;

	if (!name_is_label_value(name) || str_eq(name, POD_ENVIRONMENT_NONE))
		return str_dup("its name must be one that a label can have as its value, and not "
			       "\"" POD_ENVIRONMENT_NONE "\"");
	if (!json_is_object(template))
		return str_printf("is %s, must be variables and their values",
				  json_type_words(template));
	if (json_object_size(template) > POD_ENVIRONMENT_VARIABLES)
		return str_printf("has %zu variables, can have %d", json_object_size(template),
				  POD_ENVIRONMENT_VARIABLES);
	json_each (template, variable, value) {
		auto_free char *text = NULL;
		char *problem = read_variable(variable, value, &text);

		if (problem)
			return problem;
		json_put_str(variables, variable, text);
	}
	return NULL;
}

/* One that stands for all. Returns new. */
static json_t *unreadable(const char *problem)
{
	return json_pack("{s:{s:s}}", "", "problem", problem);
}

json_t *pod_environment_templates(const json_t *config_map)
{
	const char *text = json_str_or(json_at(config_map, "data", POD_ENVIRONMENT_KEY), "");
	json_auto_t *documents = NULL, *templates = json_object();
	const json_t *document;
	struct err err = {0};
	const char *name;
	json_t *template;

	if (!*text)
		return NULL;
	if (strlen(text) > POD_ENVIRONMENT_BYTES) {
		auto_free char *problem = str_printf("has %zu bytes, can have %d", strlen(text),
						     POD_ENVIRONMENT_BYTES);

		return unreadable(problem);
	}
	documents = yaml_parse_all(text, strlen(text), &err);
	if (!documents)
		return unreadable(err.text);
	document = json_array_get(documents, 0);
	if (!document)
		return NULL;
	if (!json_is_object(document) || json_object_get(document, ""))
		return unreadable("must be templates by their names");
	if (json_object_size(document) > POD_ENVIRONMENT_TEMPLATES) {
		auto_free char *problem =
			str_printf("has %zu templates, can have %d", json_object_size(document),
				   POD_ENVIRONMENT_TEMPLATES);

		return unreadable(problem);
	}
	json_each (document, name, template) {
		json_auto_t *variables = json_object();
		auto_free char *problem = read_template(name, template, variables);
		json_t *entry = json_need_object(templates, name);

		if (problem)
			json_put_str(entry, "problem", problem);
		else
			json_put(entry, "variables", json_incref(variables));
	}
	return take_ptr(templates);
}

char *pod_environment_problem(const json_t *templates)
{
	const char *name;
	json_t *template;

	json_each (templates, name, template) {
		const char *problem = json_str_at(template, "problem");

		if (problem)
			return str_printf("data[" POD_ENVIRONMENT_KEY "]: %.64s%s%s", name,
					  *name ? ": " : "", problem);
	}
	return NULL;
}

/* ---- who asks -------------------------------------------------------------------------------- */

static const char *of_namespace(const json_t *namespace)
{
	const char *name = json_str_at(namespace, "metadata", "labels", POD_ENVIRONMENT_NAME);

	return str_empty(name) || str_eq(name, POD_ENVIRONMENT_NONE) ? NULL : name;
}

const char *pod_environment_asked(const json_t *pod, const json_t *namespace)
{
	const char *name = json_str_at(pod, "metadata", "annotations", POD_ENVIRONMENT_NAME);

	if (!name)
		return of_namespace(namespace);
	return *name && !str_eq(name, POD_ENVIRONMENT_NONE) ? name : NULL;
}

bool pod_environment_asks(const json_t *namespace)
{
	return of_namespace(namespace) != NULL;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

/* Names in order, new; NULL when the annotation cannot be read, which is refused elsewhere. */
static json_t *interfaces_of(const json_t *pod, const char *ns, const json_t *with_device)
{
	const char *text =
		json_str_or(json_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION), "");
	json_auto_t *networks = networks_parse(text, ns, NULL), *all = json_array();
	json_t *devices = json_array(), *network;
	size_t i;

	json_array_foreach (networks, i, network) {
		auto_free char *key = network_key(network);

		json_array_append(all, json_at(network, "interface"));
		if (json_object_get(with_device, key))
			json_array_append(devices, json_at(network, "interface"));
	}
	if (json_array_size(devices))
		return devices;
	json_decref(devices);
	return networks ? json_incref(all) : NULL;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* The value with the list of interfaces, or its first, for placeholders. Returns new; free(). */
static char *filled(const char *value, const char *list)
{
	auto_strbuf struct strbuf out = {0};

	while (*value) {
		size_t len = strcspn(value, "{");

		strbuf_add(&out, value, len);
		value += len;
		if (str_starts(value, all_interfaces)) {
			strbuf_adds(&out, list);
			value += strlen(all_interfaces);
		} else if (*value) {
			strbuf_add(&out, list, strcspn(list, ","));
			value += strlen(first_interface);
		}
	}
	return strbuf_take(&out);
}

static bool wants_interfaces(const json_t *variables)
{
	const char *name;
	json_t *value;

	json_each (variables, name, value)
		if (strchr(json_string_value(value), '{'))
			return true;
	return false;
}

/*
 * { NAME: VALUE } as this pod gets them, new; NULL with a warning, or, for a namespace's pod
 * without networks, without one.
 */
static json_t *variables_for(const json_t *pod, const char *field, const json_t *variables,
			     const json_t *interfaces, struct problems *warnings)
{
	auto_strbuf struct strbuf list = {0};
	json_auto_t *ret = json_object();
	const char *name;
	json_t *value;
	size_t i;

	if (json_array_size(interfaces) == 0 && wants_interfaces(variables)) {
		if (str_eq(field, ANNOTATION_FIELD))
			problem_add(warnings, "NoEffect", field,
				    "the template needs the pod's interfaces, and it asks for no "
				    "networks: name them in " NETWORKS_ANNOTATION);
		return NULL;
	}
	json_array_foreach (interfaces, i, value)
		/* A comma, a blank or a $(…) of a tenant would be taken for something else. */
		if (!has_only(json_string_value(value), "-_.") && wants_interfaces(variables)) {
			problem_add(warnings, "NoEffect", field,
				    "interface \"%.64s\" cannot stand in a list: use letters, "
				    "digits, -, _ and .",
				    json_string_value(value));
			return NULL;
		}
	json_array_foreach (interfaces, i, value)
		strbuf_addf(&list, "%s%s", i > 0 ? "," : "", json_string_value(value));
	json_each (variables, name, value) {
		auto_free char *text = filled(json_string_value(value), strbuf_str(&list));

		json_put_str(ret, name, text);
	}
	return take_ptr(ret);
}

/*
 * The variables that the container gets, new; their bytes are added to *size. The others are
 * counted, if an envFrom is why: a variable that its ConfigMap or Secret may have would be replaced
 * by ours (core/v1 Container: env takes precedence).
 */
static json_t *missing_in(const json_t *container, const json_t *variables, size_t *size,
			  size_t *ret_left)
{
	json_t *missing = json_object(), *value, *source;
	const char *name;
	bool may_be_set;
	size_t i;

	*ret_left = 0;
	json_each (variables, name, value) {
		if (json_find(json_at(container, "env"), "name", name))
			continue;
		may_be_set = false;
		json_array_foreach (json_at(container, "envFrom"), i, source)
			may_be_set |= str_starts(name, json_str_or(json_at(source, "prefix"), ""));
		if (may_be_set) {
			(*ret_left)++;
			continue;
		}
		json_put(missing, name, json_incref(value));
		*size += strlen(name) + json_string_length(value);
	}
	return missing;
}

static void add_to_containers(json_t *pod, const char *field, const json_t *variables,
			      struct problems *warnings)
{
	json_auto_t *plans = json_array();
	const json_t *container, *plan;
	size_t size = 0, left = 0, i;
	const char *name;
	json_t *value;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container) {
		json_array_append_new(plans, missing_in(container, variables, &size, &left));
		if (left)
			problem_add(warnings, "NoEffect", field,
				    "%zu variables are not set in container %.64s, whose envFrom "
				    "may have them: list them in its env",
				    left, json_str_or(json_at(container, "name"), "?"));
	}
	if (size > POD_ENVIRONMENT_POD_BYTES) {
		problem_add(warnings, "NoEffect", field,
			    "would add %zu bytes to the pod's containers, at most %d are possible: "
			    "use a smaller template, or fewer containers",
			    size, POD_ENVIRONMENT_POD_BYTES);
		return;
	}
	json_array_foreach (plans, i, plan)
		json_each (plan, name, value)
			pod_edit_variable(pod, i, name, json_string_value(value));
}

void pod_environment_add(json_t *pod, const char *name, const json_t *templates, const char *ns,
			 const json_t *with_device, struct problems *warnings)
{
	bool is_own = json_str_at(pod, "metadata", "annotations", POD_ENVIRONMENT_NAME) != NULL;
	const char *field = is_own ? ANNOTATION_FIELD : LABEL_FIELD;
	const json_t *whole = json_object_get(templates, "");
	const json_t *template = whole ? whole : json_object_get(templates, name);
	const char *problem = json_str_at(template, "problem");
	json_auto_t *interfaces = NULL, *variables = NULL;

	if (!template || problem) {
		problem_add(warnings, template ? "BadConfig" : "NoEffect", field,
			    "\"%.64s\" in ConfigMap " INJECT_CONFIG_MAP
			    ", data[" POD_ENVIRONMENT_KEY "], %s%s: the pod gets no variables",
			    name, problem ? "cannot be used: " : "does not exist",
			    problem ? problem : "");
		return;
	}
	if (json_is_true(json_at(pod, "spec", "hostNetwork"))) {
		if (is_own)
			problem_add(warnings, "NoEffect", field,
				    "the pod has the node's network: remove hostNetwork");
		return;
	}
	interfaces = interfaces_of(pod, ns, with_device);
	variables = variables_for(pod, field, json_at(template, "variables"), interfaces, warnings);
	if (variables)
		add_to_containers(pod, field, variables, warnings);
}
