// SPDX-License-Identifier: Apache-2.0
/*
 * From the networks that a pod names to what they need: names, then definitions, then annotations
 * of these.
 */
#include "reconcilers/admission/network_resources.h"

#include <string.h>
#include <strings.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/admission/pod_edit.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"

/* Where Multus looks for a default network without a namespace. */
#define MULTUS_NAMESPACE "kube-system"

/* ---- user-defined injections ----------------------------------------------------------------- */

static void annotate(json_t *pod, const json_t *injected, struct problems *warnings)
{
	const char *name;
	json_t *value;

	json_each (injected, name, value) {
		const json_t *there = json_at(pod, "metadata", "annotations", name);
		auto_free char *field = str_printf("metadata.annotations[%s]", name);

		if (there && json_same(there, value))
			continue;
		if (there && warnings)
			problem_add(warnings, "NoEffect", field,
				    "\"%.64s\" is replaced: a label of the pod asks for \"%.64s\"",
				    json_str_or(there, ""), json_str_or(value, ""));
		json_put(pod_edit_object(pod_edit_object(pod, "metadata"), "annotations"), name,
			 json_incref(value));
	}
}

json_t *network_resources_annotated(const struct inject_settings *settings, const json_t *pod,
				    struct problems *warnings)
{
	const json_t *injections = json_at(settings->switches, "injections");
	json_auto_t *injected = json_object();
	json_t *annotations, *annotated;
	const char *label;

	json_each (settings->references ? injections : NULL, label, annotations) {
		const char *value = json_str_at(pod, "metadata", "labels", label);

		if (value && strcasecmp(value, "true") == 0)
			json_object_update_missing(injected, annotations);
	}
	if (!json_object_size(injected))
		return json_incref((json_t *)pod);
	annotated = json_copy((json_t *)pod);
	annotate(annotated, injected, warnings);
	return annotated;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *text_of(const json_t *pod, const char *annotation)
{
	return json_str_or(json_at(pod, "metadata", "annotations", annotation), "");
}

bool network_resources_asked(const json_t *pod)
{
	return *text_of(pod, NETWORKS_ANNOTATION) || *text_of(pod, DEFAULT_NETWORK_ANNOTATION);
}

/* The elements; NULL with a problem when they cannot be read. Returns new. */
static json_t *elements_of(const json_t *pod, const char *annotation, const char *ns,
			   struct problems *problems)
{
	struct err err = {0};
	json_t *list = networks_parse(text_of(pod, annotation), ns, &err);
	auto_free char *field = list ? NULL : str_printf("metadata.annotations[%s]", annotation);

	if (!list)
		problem_add(problems, str_eq(err.reason, "TooLarge") ? "TooLarge" : "BadAnnotation",
			    field, "%s", err.text);
	return list;
}

/* Takes keys. */
static void add_network(json_t *networks, const char *annotation, json_t *keys_new)
{
	json_array_append_new(networks,
			      json_pack("{s:s, s:o}", "annotation", annotation, "keys", keys_new));
}

/*
 * All networks, in order: { "annotation": …, "keys": [key] or, where the namespace is open, [key,
 * other key] }. Returns new.
 */
static json_t *networks_of(const json_t *pod, const char *ns, struct problems *problems)
{
	json_auto_t *defaults = elements_of(pod, DEFAULT_NETWORK_ANNOTATION, "", problems);
	json_auto_t *elements = elements_of(pod, NETWORKS_ANNOTATION, ns, problems);
	json_t *networks = json_array(), *element;
	size_t i;

	/* More than one default network is an error of the meta plugin; none counts. */
	if (json_array_size(defaults) == 1) {
		const json_t *first = json_array_get(defaults, 0);
		const char *in = json_str_or(json_at(first, "namespace"), "");
		const char *name = json_str_or(json_at(first, "name"), "");
		json_t *keys = json_array();

		json_array_append_new(keys, json_fmt("%s/%s", *in ? in : MULTUS_NAMESPACE, name));
		if (!*in)
			json_array_append_new(keys, json_fmt("%s/%s", ns, name));
		add_network(networks, DEFAULT_NETWORK_ANNOTATION, keys);
	}
	json_array_foreach (elements, i, element) {
		auto_free char *key = network_key(element);

		add_network(networks, NETWORKS_ANNOTATION, json_pack("[s]", key));
	}
	return networks;
}

void network_resources_visit(const json_t *pod, const char *ns,
			     void (*visit)(void *arg, const char *key), void *arg)
{
	auto_problems struct problems problems = {0};
	json_auto_t *networks = networks_of(pod, ns, &problems);
	json_t *network, *key;
	size_t i, k;

	if (problems.total)
		return;
	json_array_foreach (networks, i, network)
		json_array_foreach (json_at(network, "keys"), k, key)
			visit(arg, json_string_value(key));
}

/* ---- needs ----------------------------------------------------------------------------------- */

/* One network, while the annotations of its definition are read. */
struct reading {
	const char *annotation; /* that names it */
	const char *key;        /* of its NetworkAttachmentDefinition */
	const json_t *nad;
	struct network_needs *needs;
	struct problems *problems;
};

static void refuse(const struct reading *r, const char *annotation, const char *value,
		   const char *why)
{
	auto_free char *field = str_printf("metadata.annotations[%s]", r->annotation);

	problem_add(r->problems, "BadAnnotation", field,
		    "NetworkAttachmentDefinition %.320s, annotation %s: \"%.64s\" %s", r->key,
		    annotation, value, why);
}

static const char *value_of(const struct reading *r, const char *annotation)
{
	return json_str_or(json_at(r->nad, "metadata", "annotations", annotation), "");
}

/* A domain that is not Kubernetes' own, a slash, a name: what device plugins offer. */
static bool is_extended(const char *resource)
{
	const char *slash = strchr(resource, '/');
	auto_free char *domain = slash ? str_ndup(resource, (size_t)(slash - resource)) : NULL;

	return domain && name_is_qualified(resource) && !str_eq(domain, "kubernetes.io") &&
	       !str_ends(domain, ".kubernetes.io") && !str_starts(resource, "requests.");
}

static void add_label(const struct reading *r)
{
	const char *text = value_of(r, NODE_SELECTOR_ANNOTATION), *there = NULL;
	auto_free char *copy = str_dup(text);
	char *rest = copy, *label = str_trim(strsep(&rest, "="));
	const char *value = rest ? str_trim(rest) : "";

	if (!*text)
		return;
	there = json_str_at(r->needs->labels, label);
	if (!name_is_qualified(label) || !name_is_label_value(value))
		refuse(r, NODE_SELECTOR_ANNOTATION, text, "is not one label: write LABEL=VALUE");
	else if (there && !str_eq(there, value))
		refuse(r, NODE_SELECTOR_ANNOTATION, text,
		       "contradicts another network of the pod: no node has both");
	else
		json_put_str(r->needs->labels, label, value);
}

/* The first key that a definition of the world has; NULL: none has. Borrowed. */
static const char *present_key(const json_t *world, const json_t *keys)
{
	json_t *key;
	size_t i;

	json_array_foreach (keys, i, key)
		if (world_get(world, KIND_NAD, json_string_value(key)))
			return json_string_value(key);
	return NULL;
}

static void read_network(const json_t *world, const struct inject_settings *settings,
			 const json_t *network, struct network_needs *needs,
			 struct problems *problems)
{
	const json_t *keys = json_at(network, "keys");
	const char *key = present_key(world, keys);
	struct reading r = {
		.annotation = json_str_at(network, "annotation"),
		.key = key,
		.nad = key ? world_get(world, KIND_NAD, key) : NULL,
		.needs = needs,
		.problems = problems,
	};

	if (key) {
		json_t *resources = r.needs->resources, *annotation;
		size_t i;

		json_array_foreach (settings->resource_keys, i, annotation) {
			const char *resource = value_of(&r, json_string_value(annotation));

			if (!*resource)
				continue;
			if (is_extended(resource))
				json_put_int(resources, resource,
					     json_integer_value(json_at(resources, resource)) + 1);
			else
				refuse(&r, json_string_value(annotation), resource,
				       "is not an extended resource: write DOMAIN/NAME");
		}
		add_label(&r);
	} else {
		auto_free char *field = str_printf("metadata.annotations[%s]", r.annotation);

		problem_add(problems, "BadAnnotation", field,
			    "NetworkAttachmentDefinition %.320s does not exist: create it before "
			    "the pod, or correct the name",
			    json_string_value(json_array_get(keys, 0)));
	}
}

void network_resources_find(const json_t *world, const struct inject_settings *settings,
			    const json_t *pod, const char *ns, const json_t *except,
			    struct network_needs *ret, struct problems *problems)
{
	size_t before = problems->total, i;
	json_auto_t *networks = networks_of(pod, ns, problems);
	json_t *network;

	*ret = (struct network_needs){json_object(), json_object()};
	json_array_foreach (networks, i, network)
		if (!json_object_get(
			    except, json_string_value(json_array_get(json_at(network, "keys"), 0))))
			read_network(world, settings, network, ret, problems);
	if (problems->total == before)
		return;
	json_object_clear(ret->resources);
	json_object_clear(ret->labels);
}

void network_needs_done(struct network_needs *needs)
{
	json_decref(needs->resources);
	json_decref(needs->labels);
	*needs = (struct network_needs){0};
}
