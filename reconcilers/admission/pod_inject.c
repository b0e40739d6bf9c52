// SPDX-License-Identifier: Apache-2.0
/*
 * Networks and resources for pods that ask for a group of SpiderMultusConfigs; see pod_inject.h.
 * Which namespaces: inject_settings.c.
 */
#include "reconcilers/admission/pod_inject.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rail_list.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/admission/network_resources.h"
#include "reconcilers/admission/pod_edit.h"
#include "reconcilers/admission/pod_environment.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/multus_config_check.h"

/* In the order in which they are looked for. */
static const char *const group_keys[] = {
	CNI_ANNOTATION_RDMA_INJECT,
	CNI_ANNOTATION_NETWORK_INJECT,
};

/* ---- groups ---------------------------------------------------------------------------------- */

struct group {
	const char *key;   /* one of group_keys */
	const char *value; /* borrowed from the pod or the namespace */
	uint32_t rails;    /* of the pod's label, a bit each; 0: all */
};

static const char *rails_label(const json_t *pod)
{
	return json_str_at(pod, "metadata", "labels", RAILS_LABEL);
}

/* The name of a group of pods says nothing about networks: the agent chooses devices by it. */
static uint32_t rails_named(const json_t *pod)
{
	const char *label = rails_label(pod);

	return rail_list_is(label) ? rail_list_parse(label) : 0;
}

static bool find_group(const json_t *pod, const json_t *namespace, struct group *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(group_keys); i++) {
		const char *value = cni_annotation(pod, group_keys[i]);

		if (!value)
			value = cni_annotation(namespace, group_keys[i]);
		if (!value)
			continue;
		*ret = (struct group){group_keys[i], value, rails_named(pod)};
		return true;
	}
	return false;
}

static char *group_text(const struct group *group)
{
	return str_printf("%s=%s", group->key, group->value);
}

char *pod_inject_group(const json_t *pod, const json_t *namespace)
{
	struct group group;

	return find_group(pod, namespace, &group) ? group_text(&group) : NULL;
}

bool pod_inject_asks(const json_t *pod)
{
	struct group group;

	return find_group(pod, NULL, &group);
}

bool pod_inject_asks_for_pods(const json_t *namespace)
{
	return pod_inject_asks(namespace) || pod_environment_asks(namespace);
}

/* The label is the annotation's copy, or was set by hand. */
static const char *group_of_config(const json_t *config, const char *key)
{
	const char *value = cni_annotation(config, key);

	return value ? value : json_str_at(config, "metadata", "labels", key);
}

void pod_inject_groups(const json_t *config, void (*visit)(void *arg, const char *group), void *arg)
{
	for (size_t i = 0; i < ARRAY_LEN(group_keys); i++) {
		struct group group = {group_keys[i], group_of_config(config, group_keys[i]), 0};
		auto_free char *text = group.value ? group_text(&group) : NULL;

		if (text)
			visit(arg, text);
	}
}

/* ---- the configs of a group, in order -------------------------------------------------------- */

struct match {
	const json_t *config; /* borrowed */
	const struct cni_type *type;
	json_t *block;
	const char *order; /* borrowed from block */
	char *key;         /* of the config */
	char *nad;
};

struct matches {
	struct match *items;
	size_t len;
	uint32_t rails; /* of all configs of the group, whatever the pod's label says */
};

static void matches_done(struct matches *matches)
{
	for (size_t i = 0; i < matches->len; i++) {
		json_decref(matches->items[i].block);
		free(matches->items[i].key);
		free(matches->items[i].nad);
	}
	free(matches->items);
	*matches = (struct matches){0};
}

static const char *order_of(const struct cni_type *type, const json_t *block)
{
	const json_t *master = json_at(block, "master");

	if (str_eq(type->resource, "rdmaResourceName")) {
		if (json_array_size(master) > 1 && json_at(block, "bond"))
			return json_str_or(json_at(block, "bond", "name"), "");
		return json_str_or(json_array_get(master, 0), "");
	}
	return str_eq(type->name, "sriov") ? cni_block_resource(type, block) : "";
}

static struct match match_new(const json_t *config)
{
	const struct cni_type *type = cni_type_of(config);
	json_t *block = cni_block(config, type);

	return (struct match){
		.config = config,
		.type = type,
		.block = block,
		.order = order_of(type, block),
		.key = json_key(config),
		.nad = str_printf("%s/%s", json_namespace(config), cni_nad_name(config)),
	};
}

static int compare_matches(const void *a, const void *b)
{
	const struct match *x = a, *y = b;
	int by_order = strcmp(x->order, y->order);

	return by_order ? by_order : strcmp(x->key, y->key);
}

/* Why the config cannot be given to the pod, as a problem of the pod's annotation. */
static bool check_config(const json_t *config, const struct group *group, struct problems *problems)
{
	auto_free char *field = str_printf("metadata.annotations[%s]", group->key);
	auto_free char *key = json_key(config);
	auto_problems struct problems found = {0};
	json_t *problem;
	size_t i;

	multus_config_check_injection(config, str_eq(group->key, CNI_ANNOTATION_RDMA_INJECT),
				      &found);
	if (!name_is_dns_subdomain(cni_nad_name(config)))
		problem_add(&found, "BadAnnotation",
			    "metadata.annotations[" CNI_ANNOTATION_NAD_NAME "]",
			    "\"%.64s\" cannot name an object", cni_nad_name(config));
	json_array_foreach (problems ? found.list : NULL, i, problem)
		problem_add(problems, json_str_at(problem, "reason"), field,
			    "\"%.64s\" has SpiderMultusConfig %s in it, whose %s %s", group->value,
			    key, json_str_at(problem, "field"), json_str_at(problem, "message"));
	return found.total == 0;
}

/* A config that came after the pod is none that it could have got. */
static bool is_younger(const json_t *config, const json_t *pod)
{
	const char *config_time = json_str_or(json_at(config, "metadata", "creationTimestamp"), "");
	const char *pod_time = json_str_or(json_at(pod, "metadata", "creationTimestamp"), "");

	/* RFC 3339 in UTC to the second, as the server writes it. */
	return *pod_time && strcmp(config_time, pod_time) > 0;
}

/* A namespace's users choose how many of its configs are in a group; the world has one too many. */
static bool are_readable(const json_t *world, const char *ns, const struct group *group,
			 struct problems *problems)
{
	auto_free char *field = str_printf("metadata.annotations[%s]", group->key);
	json_auto_t *counts = json_object();
	const char *key;
	json_t *config;

	json_each (world_kind(world, KIND_MULTUS_CONFIG), key, config) {
		const char *of = json_namespace(config);
		int64_t n = json_integer_value(json_object_get(counts, of));

		if (!str_eq(group_of_config(config, group->key), group->value) ||
		    (!str_eq(of, ns) && !object_is_trusted(world, config)))
			continue;
		if (n < LIMIT_CONFIGS) {
			json_put_int(counts, of, n + 1);
			continue;
		}
		if (problems)
			problem_add(problems, "TooLarge", field,
				    "\"%.64s\" has more than %d SpiderMultusConfigs of namespace "
				    "%s, at most so many are read: make several groups",
				    group->value, LIMIT_CONFIGS, of);
		return false;
	}
	return true;
}

/*
 * The configs of the group that pods of the namespace can get, or could when `pod` came (NULL: does
 * not matter); those that cannot be injected go into problems, which may be NULL. A config brings
 * any CNI configuration with it, so it reaches its own namespace only, unless that is trusted. A
 * pod that names rails gets networks of these rails, and those that are of none.
 */
static struct matches find_matches(const json_t *world, const char *ns, const struct group *group,
				   const json_t *pod, struct problems *problems)
{
	const json_t *configs = world_kind(world, KIND_MULTUS_CONFIG);
	struct matches matches = {0};
	const char *key;
	json_t *config;

	if (!are_readable(world, ns, group, problems))
		return matches;
	matches.items = mem_calloc(json_object_size(configs) + 1, sizeof(*matches.items));
	json_each (configs, key, config)
		if (str_eq(group_of_config(config, group->key), group->value) &&
		    (str_eq(json_namespace(config), ns) || object_is_trusted(world, config)) &&
		    !object_is_terminating(config) && !is_younger(config, pod) &&
		    check_config(config, group, problems)) {
			uint32_t rail = cni_rail(config);

			matches.rails |= rail;
			if (!rail || !group->rails || (rail & group->rails))
				matches.items[matches.len++] = match_new(config);
		}
	qsort(matches.items, matches.len, sizeof(*matches.items), compare_matches);
	return matches;
}

/* ---- the annotation of networks -------------------------------------------------------------- */

/*
 * What the user wrote, in either of the two ways that Multus reads (reconcilers/core/networks.h).
 */
struct networks {
	const char *text; /* "" when there is none; borrowed */
	json_t *json;     /* NULL for the first way */
	json_t *keys;     /* "NAMESPACE/NAME": true */
};

static void networks_done(struct networks *networks)
{
	json_decref(networks->json);
	json_decref(networks->keys);
}

/* False with err when Multus could not or should not read it. */
static bool networks_read(const json_t *pod, const char *ns, struct networks *ret, struct err *err)
{
	const char *text =
		json_str_or(json_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION), "");
	json_auto_t *list = networks_parse(text, ns, err);
	json_t *network;
	size_t i;

	ret->text = list && json_array_size(list) == 0 ? "" : text;
	ret->keys = json_object();
	json_array_foreach (list, i, network) {
		auto_free char *key =
			str_printf("%s/%s", json_str_or(json_at(network, "namespace"), ""),
				   json_str_or(json_at(network, "name"), ""));

		json_put_bool(ret->keys, key, true);
	}
	/* What else the user wrote in it stays. */
	if (strpbrk(text, "[{\""))
		ret->json = list ? json_parse(text, strlen(text), NULL) : NULL;
	return list && (!ret->json || json_is_array(ret->json));
}

static json_t *network_json(const struct match *match)
{
	json_t *network = json_object();

	json_put_str(network, "name", cni_nad_name(match->config));
	json_put_str(network, "namespace", json_namespace(match->config));
	return network;
}

/*
 * The annotation with those of the group that are not in it yet behind the rest; NULL when all are.
 * Returns new; free().
 */
static char *networks_with(const struct networks *networks, const struct matches *matches)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *list = networks->json ? json_copy(networks->json) : NULL;
	size_t len = strlen(networks->text), added = 0;

	while (len && strchr(" \t\r\n", networks->text[len - 1]))
		len--;
	strbuf_add(&text, networks->text, len);
	for (size_t i = 0; i < matches->len; i++) {
		const struct match *match = &matches->items[i];

		if (json_object_get(networks->keys, match->nad))
			continue;
		added++;
		if (list)
			json_array_append_new(list, network_json(match));
		else
			strbuf_addf(&text, "%s%s", text.len ? "," : "", match->nad);
	}
	if (!added)
		return NULL;
	return list ? json_text(list) : strbuf_take(&text);
}

/* ---- resources ------------------------------------------------------------------------------- */

/*
 * { resource: units } that the networks need. A VF serves one network; shared devices serve all
 * networks on them, and one unit has them all. Returns new.
 */
static json_t *needed_resources(const struct matches *matches)
{
	json_auto_t *vfs = json_object();
	json_t *needed = json_object();

	for (size_t i = 0; i < matches->len; i++) {
		const struct match *match = &matches->items[i];
		const char *resource = cni_block_resource(match->type, match->block);
		json_int_t used = json_integer_value(json_object_get(vfs, resource));

		if (!*resource)
			continue;
		if (cni_type_has_vfs(match->type))
			json_put_int(vfs, resource, ++used);
		json_put_int(needed, resource, used > 0 ? used : 1);
	}
	return needed;
}

/* ---- the review ------------------------------------------------------------------------------ */

/* A pod's own word that its namespace's, or the stronger annotation, overrules. */
static void warn_of_ignored(const json_t *pod, const struct group *group, struct problems *warnings)
{
	const char *other = cni_annotation(pod, CNI_ANNOTATION_NETWORK_INJECT);

	if (other && str_eq(group->key, CNI_ANNOTATION_RDMA_INJECT) && !str_eq(other, group->value))
		problem_add(warnings, "NoEffect",
			    "metadata.annotations[" CNI_ANNOTATION_NETWORK_INJECT "]",
			    "\"%.64s\" is ignored: %s %.64s, of the pod or its namespace, counts",
			    other, group->key, group->value);
}

/* That the group has no configs, and what to do. Returns new; free(). */
static char *no_configs_text(const json_t *world, const char *ns, const struct group *group)
{
	auto_free char *trusted = trusted_namespaces(world);

	return str_printf("\"%.64s\" names no SpiderMultusConfig that this pod may have: correct "
			  "it, or give a SpiderMultusConfig in namespace %s or one of %s the "
			  "annotation %s: \"%.64s\"",
			  group->value, ns, trusted, group->key, group->value);
}

static void refuse_group(const json_t *world, const char *ns, const struct group *group,
			 struct problems *problems)
{
	auto_free char *field = str_printf("metadata.annotations[%s]", group->key);
	auto_free char *text = no_configs_text(world, ns, group);

	problem_add(problems, "BadField", field, "%s", text);
}

/* Rails that the pod names in its label, and the group does not have. */
static void check_rails(const json_t *pod, const struct group *group, const struct matches *matches,
			struct problems *problems)
{
	const char *label = rails_label(pod);
	uint32_t lacking = matches->rails ? group->rails & ~matches->rails : 0;
	auto_free char *which = rail_list_text(lacking), *has = rail_list_text(matches->rails);

	if (rail_list_is(label) && !group->rails)
		problem_add(problems, "BadField", "metadata.labels[" RAILS_LABEL "]",
			    "\"%.64s\" is not a list of rails from 0 to %d: write it as 0-3 or "
			    "0.2.5, or the name of a group, which begins with a letter",
			    label, RAIL_LIST_MAX - 1);
	if (lacking)
		problem_add(problems, "BadField", "metadata.labels[" RAILS_LABEL "]",
			    "\"%.64s\": \"%.64s\" has networks of rails %s and not of %s: correct "
			    "the label, or give a SpiderMultusConfig the "
			    "annotation " CNI_ANNOTATION_RAIL,
			    label, group->value, has, which);
}

/* With those of the group a pod may have more networks than it can. */
static bool are_few(const char *text, const char *ns, struct problems *problems)
{
	struct err err = {0};

	json_decref(networks_parse(text, ns, &err));
	if (!str_eq(err.reason, "TooLarge"))
		return true;
	problem_add(problems, "TooLarge", "metadata.annotations[" NETWORKS_ANNOTATION "]",
		    "would have, with those of the group, %s", err.text);
	return false;
}

/* The networks of the group, and what the pod has of them; false with problems. */
static bool add_networks(const json_t *world, const struct group *group, const char *ns,
			 json_t *pod, const struct matches *matches, struct problems *problems)
{
	auto_call(networks_done) struct networks networks = {0};
	auto_free char *text = NULL;
	struct err err = {0};

	if (!matches->len && !problems->total)
		refuse_group(world, ns, group, problems);
	if (!networks_read(pod, ns, &networks, &err) && str_eq(err.reason, "TooLarge"))
		problem_add(problems, "TooLarge", "metadata.annotations[" NETWORKS_ANNOTATION "]",
			    "%s", err.text);
	else if (*err.reason)
		problem_add(
			problems, "BadAnnotation", "metadata.annotations[" NETWORKS_ANNOTATION "]",
			"\"%.128s\" is not a list of networks: write NAMESPACE/NAME with commas "
			"between, or a JSON list of objects with name and namespace",
			networks.text);
	if (problems->total)
		return false;
	text = networks_with(&networks, matches);
	if (text && !are_few(text, ns, problems))
		return false;
	if (text)
		json_put_str(pod_edit_object(pod_edit_object(pod, "metadata"), "annotations"),
			     NETWORKS_ANNOTATION, text);
	return true;
}

/* The keys of the group's definitions, whose needs the group's rule counts. Returns new. */
static json_t *nads_of(const struct matches *matches)
{
	json_t *keys = json_object();

	for (size_t i = 0; i < matches->len; i++)
		json_put_bool(keys, matches->items[i].nad, true);
	return keys;
}

/*
 * The variables that the pod asks for, when it has all of its networks. Definitions that need a
 * device: those of the group that have a resource, and those of the world that name one.
 */
static void add_environment(const json_t *world, const struct inject_settings *settings,
			    const char *ns, json_t *pod, const struct matches *matches,
			    struct problems *warnings)
{
	const char *name = pod_environment_asked(pod, world_get(world, KIND_NAMESPACE, ns));
	json_auto_t *with_device = json_object();
	json_t *nad, *annotation;
	const char *key;
	size_t i;

	if (!name)
		return;
	for (i = 0; i < matches->len; i++)
		if (*cni_block_resource(matches->items[i].type, matches->items[i].block))
			json_put_bool(with_device, matches->items[i].nad, true);
	json_each (world_kind(world, KIND_NAD), key, nad)
		json_array_foreach (settings->resource_keys, i, annotation)
			if (!str_empty(json_str_at(nad, "metadata", "annotations",
						   json_string_value(annotation))))
				json_put_bool(with_device, key, true);
	pod_environment_add(pod, name, settings->environment, ns, with_device, warnings);
}

/* group: NULL: the pod asks for none. Takes pod, annotated, with the warnings of that. */
static json_t *inject(const json_t *world, const struct inject_settings *settings,
		      const struct group *group, const struct admission_request *r, json_t *pod_new,
		      struct problems *warnings)
{
	json_auto_t *pod = json_copy(pod_new), *given = pod_new;
	auto_problems struct problems problems = {0};
	auto_call(matches_done) struct matches matches = {0};
	auto_network_needs struct network_needs needs = {0};
	json_auto_t *of_group = NULL, *needed = NULL, *patch = NULL;

	if (group) {
		matches = find_matches(world, r->ns, group, NULL, &problems);
		check_rails(pod, group, &matches, &problems);
		if (!add_networks(world, group, r->ns, pod, &matches, &problems))
			return admission_refuse(r, &problems, NULL);
		warn_of_ignored(given, group, warnings);
	}
	of_group = nads_of(&matches);
	needed = needed_resources(&matches);
	if (settings->references)
		network_resources_find(world, settings, pod, r->ns, of_group, &needs, &problems);
	if (problems.total)
		return admission_refuse(r, &problems, NULL);
	pod_edit_resources(pod, needed, needs.resources, inject_settings_add(settings), warnings);
	pod_edit_selector(pod, needs.labels, warnings);
	if (json_object_size(needs.resources))
		pod_edit_net_info(pod, inject_settings_hugepages(settings));
	add_environment(world, settings, r->ns, pod, &matches, warnings);
	patch = admission_patch(r->object, pod);
	return admission_allow(r, patch, warnings);
}

json_t *pod_inject(const json_t *world, const struct inject_settings *settings,
		   const struct admission_request *r)
{
	auto_problems struct problems warnings = {0};
	json_auto_t *pod = NULL;
	struct group group;
	const json_t *namespace = world_get(world, KIND_NAMESPACE, r->ns);
	bool in_group = false;

	if (!str_eq(r->kind, KIND_POD) || !str_eq(r->operation, "CREATE") || *r->subresource)
		return admission_allow(r, NULL, NULL);
	if (!settings->enabled ||
	    !inject_settings_cover(settings, world_env(world, "namespace"), r->ns)) {
		if (pod_inject_asks(r->object) || pod_environment_asked(r->object, NULL))
			problem_add(&warnings, "NotInjected", "metadata.annotations",
				    "ask for injection, but it is off for namespace %s: see "
				    "podResourceInject in ConfigMap " INJECT_CONFIG_MAP,
				    r->ns);
		return admission_allow(r, NULL, &warnings);
	}
	pod = network_resources_annotated(settings, r->object, &warnings);
	in_group = find_group(pod, namespace, &group);
	if (!in_group && pod == r->object && !pod_environment_asked(pod, namespace) &&
	    !(settings->references && network_resources_asked(pod)))
		return admission_allow(r, NULL, NULL);
	return inject(world, settings, in_group ? &group : NULL, r, take_ptr(pod), &warnings);
}

bool pod_inject_looks_at_networks(const struct inject_settings *settings, const json_t *pod,
				  const json_t *namespace)
{
	return settings->references || pod_environment_asked(pod, namespace);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

char *pod_inject_lacks(const json_t *world, const json_t *pod, const char *config)
{
	auto_strbuf struct strbuf text = {0};
	auto_call(matches_done) struct matches matches = {0};
	auto_call(networks_done) struct networks networks = {0};
	struct group group;

	if (!find_group(pod, world_get(world, KIND_NAMESPACE, json_namespace(pod)), &group))
		return NULL;
	matches = find_matches(world, json_namespace(pod), &group, pod, NULL);
	(void)networks_read(pod, json_namespace(pod), &networks, NULL);
	for (size_t i = 0; i < matches.len; i++) {
		const struct match *match = &matches.items[i];

		if (!config || str_eq(match->key, config)) {
			const char *resource = cni_block_resource(match->type, match->block);
			int64_t units;

			if (!json_object_get(networks.keys, match->nad))
				strbuf_addf(&text, "%snetwork %s", text.len ? ", " : "",
					    match->nad);
			if (*resource && !pod_edit_has(pod, resource, &units) &&
			    !strstr(strbuf_str(&text), resource))
				strbuf_addf(&text, "%sresource %s", text.len ? ", " : "", resource);
		}
	}
	return text.len ? strbuf_take(&text) : NULL;
}

/* Nothing is to be mended any more. Returns new; free(). */
static char *came_later_text(const struct group *group)
{
	return str_printf(
		"all SpiderMultusConfigs of \"%.64s\" that this pod may have came after it",
		group->value);
}

char *pod_inject_no_configs(const json_t *world, const json_t *pod, bool *ret_came_later)
{
	const char *ns = json_namespace(pod);
	auto_call(matches_done) struct matches matches = {0}, later = {0};
	auto_problems struct problems problems = {0};
	auto_free char *text = NULL;
	struct group group;

	if (!find_group(pod, world_get(world, KIND_NAMESPACE, ns), &group) ||
	    !str_empty(json_str_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION)))
		return NULL;
	matches = find_matches(world, ns, &group, pod, &problems);
	if (matches.len || problems.total)
		return NULL;
	later = find_matches(world, ns, &group, NULL, NULL);
	*ret_came_later = later.len > 0;
	text = later.len ? came_later_text(&group) : no_configs_text(world, ns, &group);
	return str_printf("metadata.annotations[%s]: %s", group.key, text);
}
