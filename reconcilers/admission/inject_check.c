// SPDX-License-Identifier: Apache-2.0
/* Pods that asked for injection and run without it; see inject_check.h. */
#include "reconcilers/admission/inject_check.h"

#include <string.h>

#include "lib/base/rail_list.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/multus_config.h"

/* Pods named in a condition; the rest are counted. */
#define EXAMPLES 3

static bool is_over(const json_t *pod)
{
	return pod_has_terminated(pod) || object_is_terminating(pod);
}

static bool is_running(const json_t *pod)
{
	return str_eq(json_str_at(pod, "status", "phase"), "Running") && !is_over(pod);
}

bool inject_check_wants(const json_t *pod)
{
	return pod_inject_asks(pod) && !is_over(pod);
}

/* ---- projection ------------------------------------------------------------------------------ */

/* Of the first containers, as long as theirs have LIMIT_CONFIG_BYTES together. Returns new. */
static json_t *limits_of(const json_t *containers)
{
	json_t *list = json_array(), *container;
	size_t left = LIMIT_CONFIG_BYTES, i;

	json_array_foreach (containers, i, container) {
		json_t *limits = json_at(container, "resources", "limits");
		size_t bytes = limits_weight(limits);
		json_t *kept;

		if (bytes > left)
			break;
		left -= bytes;
		kept = json_object();

		json_put(json_need_object(kept, "resources"), "limits", json_incref(limits));
		json_array_append_new(list, kept);
	}
	return list;
}

void inject_check_project(json_t *pod)
{
	static const char *const metadata_kept[] = {
		"name",
		"namespace",
		"uid",
		"resourceVersion",
		"creationTimestamp",
		"deletionTimestamp",
		NULL,
	};
	static const char *const annotations_kept[] = {
		CNI_ANNOTATION_RDMA_INJECT,
		CNI_ANNOTATION_NETWORK_INJECT,
		"k8s.v1.cni.cncf.io/networks",
		NULL,
	};
	static const char *const labels_kept[] = {RAILS_LABEL, NULL};
	json_t *metadata = json_pick(json_at(pod, "metadata"), metadata_kept);
	json_t *labels = json_pick(json_at(pod, "metadata", "labels"), labels_kept);
	json_t *annotations =
		limits_annotations(json_at(pod, "metadata", "annotations"), annotations_kept);
	json_t *limits = limits_of(json_at(pod, "spec", "containers"));
	json_t *phase = json_incref(json_at(pod, "status", "phase"));

	json_put(metadata, "annotations", annotations);
	json_put(metadata, "labels", labels);
	json_object_clear(pod);
	json_put(pod, "metadata", metadata);
	json_put(json_need_object(pod, "spec"), "containers", limits);
	json_put(json_need_object(pod, "status"), "phase", phase);
}

/* ---- the pod --------------------------------------------------------------------------------- */

/*
 * Why the webhook would pass the pod over today, and what to do; NULL when it would not. Returns
 * new; free().
 */
static char *obstacle_text(const json_t *world, const char *ns)
{
	const char *config_ns = json_str_at(world, "env", "webhook", "configNamespace");
	auto_free char *conf = config_ns ? str_printf("%s/" INJECT_CONFIG_MAP, config_ns) : NULL;
	auto_inject_settings struct inject_settings settings = {0};
	struct err err = {0};

	if (!conf)
		return str_dup("the operator runs without webhooks: start it with --webhook-addr");
	if (inject_settings_read(world_get(world, INJECT_CONFIG_MAP, conf), &settings, &err) < 0)
		return str_printf("%s in namespace %s", err.text, config_ns);
	if (!settings.enabled)
		return str_printf("podResourceInject in ConfigMap %s is not enabled: enable it",
				  conf);
	if (!inject_settings_cover(&settings, world_env(world, "namespace"), ns))
		return str_printf("podResourceInject in ConfigMap %s leaves out namespace %s: let "
				  "it in, or move the pod",
				  conf, ns);
	return NULL;
}

/* What is wrong with a pod that runs, and what to do; NULL: nothing. Returns new; free(). */
static char *not_injected_text(const json_t *world, const json_t *pod)
{
	auto_free char *lacks = pod_inject_lacks(world, pod, NULL);
	bool came_later = false;
	auto_free char *unknown = lacks ? NULL : pod_inject_no_configs(world, pod, &came_later);
	auto_free char *obstacle = NULL;

	if (!lacks && !unknown)
		return NULL;
	obstacle = obstacle_text(world, json_namespace(pod));
	if (unknown)
		return str_printf("asked for injection and runs without networks: %s%s%s; %sdelete "
				  "the pod to have it made again",
				  unknown, obstacle ? "; " : "", obstacle ? obstacle : "",
				  obstacle || !came_later ? "then " : "");
	return str_printf("asked for injection and runs without %s: %s; then delete the pod to "
			  "have it made again",
			  lacks,
			  obstacle ? obstacle
				   : "the webhook was off, out of reach, or passed over this "
				     "namespace when the pod was created, see that it is at "
				     "work");
}

int inject_check_pod(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *pod = world_get(world, KIND_POD, key);
	auto_free char *message = pod && is_running(pod) ? not_injected_text(world, pod) : NULL;

	plan_finding(plan, KIND_POD, key, message ? "NotInjected" : NULL, message);
	return 0;
}

int inject_check_group(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	plan_post(plan, BOX_INJECT_GROUP, key, NULL);
	return 0;
}

/* ---- the config ------------------------------------------------------------------------------ */

static void visit_group(void *arg, const char *group)
{
	*(bool *)arg = true;
}

static bool is_in_group(const json_t *config)
{
	bool found = false;

	pod_inject_groups(config, visit_group, &found);
	return found;
}

/* The pods without this config: how many, and the first few by name. */
struct without {
	size_t count;
	const char *examples[EXAMPLES];
};

static void keep_example(struct without *without, const char *key)
{
	for (size_t i = 0; i < EXAMPLES; i++) {
		const char *moved = without->examples[i];

		if (moved && strcmp(moved, key) <= 0)
			continue;
		without->examples[i] = key;
		if (!moved)
			return;
		key = moved;
	}
}

static struct without find_without(const json_t *world, const char *config)
{
	struct without without = {0};
	const char *key;
	json_t *pod;

	json_each (world_kind(world, KIND_POD), key, pod) {
		auto_free char *lacks =
			is_running(pod) ? pod_inject_lacks(world, pod, config) : NULL;

		if (!lacks)
			continue;
		without.count++;
		keep_example(&without, key);
	}
	return without;
}

static char *without_text(const struct without *without)
{
	auto_strbuf struct strbuf text = {0};

	strbuf_addf(&text,
		    "%zu running pod%s asked for this network and did not get it: ", without->count,
		    without->count == 1 ? "" : "s");
	for (size_t i = 0; i < EXAMPLES && without->examples[i]; i++)
		strbuf_addf(&text, "%s%s", i ? ", " : "", without->examples[i]);
	if (without->count > EXAMPLES)
		strbuf_adds(&text, ", …");
	strbuf_adds(&text, "; see that the webhook serves their namespace and delete them to have "
			   "them made again");
	return strbuf_take(&text);
}

/* The conditions that are there, without ours. */
static json_t *other_conditions(const json_t *previous)
{
	json_t *list = json_array(), *condition;
	size_t i;

	json_array_foreach (previous, i, condition)
		if (!str_eq(json_str_at(condition, "type"), INJECTED_CONDITION))
			json_array_append(list, condition);
	return list;
}

int inject_check_config(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *config = world_get(world, KIND_MULTUS_CONFIG, key);
	const json_t *old = json_at(config, "status");
	const json_t *previous = json_at(old, "conditions");
	bool is_told = condition_find(previous, INJECTED_CONDITION) != NULL;
	bool is_served = json_str_at(world, "env", "webhook", "configNamespace") != NULL;
	struct without without = {0};
	auto_free char *text = NULL;
	json_t *status, *list;

	/*
	 * Before the other reconciler has said its part there is no status to add to; its write
	 * brings us back.
	 */
	if (!config || object_is_terminating(config) || !json_array_size(previous))
		return 0;
	if (!is_in_group(config) && !is_told)
		return 0;
	status = json_copy((json_t *)old);
	list = other_conditions(previous);
	if (is_in_group(config)) {
		without = find_without(world, key);
		text = without.count ? without_text(&without)
		       : is_served   ? str_dup("no running pod asked for this network in vain")
				     : str_dup("no webhook serves, so pods that ask are not "
						 "injected: kubectl apply -k "
						 "manifests/overlays/webhook");
		condition_set(list, previous, INJECTED_CONDITION,
			      without.count ? CONDITION_FALSE
			      : is_served   ? CONDITION_TRUE
					    : CONDITION_UNKNOWN,
			      without.count ? "PodsWithout"
			      : is_served   ? "AsAsked"
					    : "NoWebhook",
			      text, json_generation(config), world_env(world, "now"));
	}
	json_put(status, "conditions", list);
	conditions_emit(plan, KIND_MULTUS_CONFIG, key, previous, list);
	plan_status(plan, KIND_MULTUS_CONFIG, key, status);
	return 0;
}
