// SPDX-License-Identifier: Apache-2.0
/*
 * Pods that asked for injection, and the configs that they should have got: what they look at, and
 * who is woken by what.
 */
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/controllers/controllers_internal.h"
#include "operator/controllers/gather.h"
#include "reconcilers/admission/inject_check.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/spider/multus_config.h"

void inject_gather_pod(const struct controller_sources *from, const struct controller *self,
		       const char *key, json_t *world)
{
	const json_t *pod = NULL;

	mirror_add(from->mirror, world, KIND_POD, key);
	pod = world_get(world, KIND_POD, key);
	if (!pod)
		return;
	gather_asked(from, world, pod, json_namespace(pod));
	gather_injection(from, world);
}

void inject_gather_config(const struct controller_sources *from, const struct controller *self,
			  const char *key, json_t *world)
{
	const json_t *config = NULL;

	mirror_add(from->mirror, world, KIND_MULTUS_CONFIG, key);
	config = world_get(world, KIND_MULTUS_CONFIG, key);
	gather_injection(from, world);
	if (config)
		gather_uninjected(from, world, config);
}

static void wake_asking(void *arg, const char *key)
{
	wake(arg, CONTROLLER_INJECT_POD, key);
}

static void wake_group(void *arg, const char *group)
{
	const struct change *c = arg;
	auto_free char *ns = str_ndup(c->key, strcspn(c->key, "/"));
	auto_free char *key = gather_group_value(group, ns);

	wake(c, CONTROLLER_INJECT_GROUP, key);
}

/* Groups of which it is remembered when their pods were looked at; beyond it of none. */
enum { GROUPS_MAX = 1024 };

/* One whose pods were not looked at lately. */
bool inject_group_is_urgent(const struct controller_sources *from, const char *key)
{
	const json_t *at_ms = json_at(from->notes, BOX_INJECT_GROUP, key);

	return !at_ms || from->now_ms() - json_integer_value(at_ms) >=
				 controllers[CONTROLLER_INJECT_GROUP].every_ms;
}

/* Its key is that of gather_group_value(): the configs of a namespace in one group. */
void inject_group_posted(const struct controller_sources *from, const char *box, const char *key,
			 json_t *value, uint64_t as_of)
{
	struct change c = {.from = from};
	auto_free char *ns = str_ndup(key, strcspn(key, " "));
	json_auto_t *at_ms = json_integer(from->now_ms());

	if (json_object_size(json_object_get(from->notes, box)) >= GROUPS_MAX)
		(void)json_object_del(from->notes, box);
	controllers_keep(from, box, key, at_ms);
	gather_visit_asking(from, key + strlen(ns) + 1, ns, wake_asking, &c);
}

static void wake_injected(void *arg, const char *key)
{
	wake(arg, CONTROLLER_INJECT_CONFIG, key);
}

/* The configs of the group that the pod asks for. */
static void wake_pod_configs(const struct change *c, const json_t *pod, const json_t *namespace)
{
	auto_free char *group = pod ? pod_inject_group(pod, namespace) : NULL;

	if (group)
		gather_visit_group(c->from, group, json_namespace(pod), wake_injected, (void *)c);
}

/* What was found on it before counts for its group of then no more. */
void inject_pod_changed(const struct change *c)
{
	json_auto_t *namespace = NULL;

	wake(c, CONTROLLER_INJECT_POD, c->key);
	if (!c->old || !findings_has(c->from->findings, KIND_POD, c->key))
		return;
	namespace =
		cache_get(mirror_cache(c->from->mirror, KIND_NAMESPACE), json_namespace(c->old));
	wake_pod_configs(c, c->old, namespace);
}

void inject_pod_found(const struct change *c, const char *reason)
{
	json_auto_t *pod = cache_get(mirror_cache(c->from->mirror, KIND_POD), c->key);
	json_auto_t *namespace =
		cache_get(mirror_cache(c->from->mirror, KIND_NAMESPACE), json_namespace(pod));

	wake_pod_configs(c, pod, namespace);
}

static void note_group(void *arg, const char *group)
{
	*(bool *)arg = true;
}

/* All that pods get from it. */
static bool same_for_pods(const json_t *old, const json_t *now)
{
	static const char *const parts[] = {"labels", "annotations", "deletionTimestamp"};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (!json_same(json_at(old, "metadata", parts[i]),
			       json_at(now, "metadata", parts[i])))
			return false;
	return json_same(json_at(old, "spec"), json_at(now, "spec"));
}

void inject_config_changed(const struct change *c)
{
	/* In a group, or still saying so. */
	bool is_about = condition_find(json_at(c->now, "status", "conditions"), INJECTED_CONDITION);

	pod_inject_groups(c->now, note_group, &is_about);
	if (is_about)
		wake(c, CONTROLLER_INJECT_CONFIG, c->key);
	if (same_for_pods(c->old, c->now))
		return;
	pod_inject_groups(c->old, wake_group, (void *)c);
	pod_inject_groups(c->now, wake_group, (void *)c);
}

struct namespace_change {
	const struct change *change;
	const struct cache *pods;
};

static void wake_namespace_pod(void *arg, const char *key)
{
	const struct namespace_change *n = arg;
	const struct change *c = n->change;
	json_auto_t *pod = NULL;

	wake(c, CONTROLLER_INJECT_POD, key);
	if (!findings_has(c->from->findings, KIND_POD, key))
		return;
	pod = cache_get(n->pods, key);
	wake_pod_configs(c, pod, c->old);
}

/* Its annotation can outdo that of its pods. */
void inject_namespace_changed(const struct change *c)
{
	struct namespace_change n = {c, mirror_cache(c->from->mirror, KIND_POD)};
	auto_free char *before = pod_inject_group(c->old, NULL);
	auto_free char *after = pod_inject_group(c->now, NULL);

	if (!str_eq(before, after))
		cache_find(n.pods, POD_BY_NAMESPACE, c->key, wake_namespace_pod, &n);
}

/* The remedy in the events of pods follows from the settings. */
void inject_settings_changed(const struct change *c)
{
	controllers_wake_all(c, KIND_POD, CONTROLLER_INJECT_POD);
}
