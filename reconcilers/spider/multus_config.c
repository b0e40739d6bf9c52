// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderMultusConfig → NetworkAttachmentDefinition, status and events; the rules are in
 * multus_config.h, the checks in multus_config_check.c, the rendering in cni_config.c.
 */
#include "reconcilers/spider/multus_config.h"
#include "reconcilers/spider/multus_config_check.h"
#include "reconcilers/spider/multus_config_warn.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/edit.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/spider/cni_config.h"

#define GROUP "spiderpool.spidernet.io"
#define KIND  "SpiderMultusConfig"

/*
 * Controlled by a config of this key, whatever its uid: an earlier object of the name may have made
 * it.
 */
static bool is_ours(const json_t *nad, const char *key)
{
	const json_t *owner = owner_controller(nad);
	const char *slash = strchr(key, '/');
	const char *namespace = json_namespace(nad);
	size_t len = strlen(namespace);

	return owner && slash && (size_t)(slash - key) == len && str_starts(key, namespace) &&
	       owner_is(owner, GROUP, KIND, slash + 1);
}

/* Delete what the config controls, except the one of this name (NULL: none is spared). */
static void plan_cleanup(const json_t *world, const char *key, const char *spared,
			 struct plan *plan)
{
	const char *nad_key;
	json_t *nad;

	json_each (world_kind(world, KIND_NAD), nad_key, nad)
		if (is_ours(nad, key) && !str_eq(json_name(nad), spared) &&
		    !object_is_terminating(nad))
			plan_delete(plan, KIND_NAD, nad_key, json_uid(nad));
}

static json_t *owner_new(const json_t *smc)
{
	json_t *owner = json_object();

	json_put_str(owner, "apiVersion", GROUP "/v2beta1");
	json_put_str(owner, "kind", KIND);
	json_put_str(owner, "name", json_name(smc));
	json_put_str(owner, "uid", json_uid(smc));
	json_put_bool(owner, "controller", true);
	json_put_bool(owner, "blockOwnerDeletion", true);
	return owner;
}

/*
 * The config as the only controller; other owners stay, and the order too, so that nothing changes
 * for its sake.
 */
static json_t *owners_new(const json_t *smc, const json_t *nad)
{
	json_t *owners = json_array();
	bool is_listed = false;
	json_t *other;
	size_t i;

	json_array_foreach (json_at(nad, "metadata", "ownerReferences"), i, other) {
		if (str_eq(json_str_at(other, "uid"), json_uid(smc)) && !is_listed) {
			json_array_append_new(owners, owner_new(smc));
			is_listed = true;
		} else if (!json_is_true(json_at(other, "controller")) &&
			   !owner_is(other, GROUP, KIND, json_name(smc))) {
			json_array_append(owners, other);
		}
	}
	if (!is_listed)
		json_array_append_new(owners, owner_new(smc));
	return owners;
}

static json_t *nad_new(const json_t *smc, const json_t *rendered, const json_t *present)
{
	auto_free char *config =
		cni_config_text(smc, rendered, json_str_at(present, "spec", "config"));
	json_t *nad = json_object();
	json_t *metadata = json_need_object(nad, "metadata");
	json_t *annotations;
	const char *note;
	json_t *value;

	json_put_str(metadata, "name", cni_nad_name(smc));
	json_put_str(metadata, "namespace", json_namespace(smc));

	annotations = json_object();
	json_each (json_at(smc, "metadata", "annotations"), note, value)
		/*
		 * kubectl's notes are about the config, not about what we make of it; the owner's
		 * name is for SR-IOV networks to write.
		 */
		if (json_is_string(value) && !str_starts(note, "kubectl.kubernetes.io/") &&
		    !str_eq(note, SRIOV_NETWORK_OWNER))
			json_put(annotations, note, json_incref(value));
	json_put(annotations, CNI_ANNOTATION_RESOURCE, cni_config_resource(smc));
	json_put(metadata, "annotations", annotations);
	json_put(metadata, "ownerReferences", owners_new(smc, present));
	json_put_str(json_need_object(nad, "spec"), "config", config);
	return nad;
}

/*
 * The world shows what we want: us as the controller, at least our annotations, and exactly our
 * configuration.
 */
static bool is_in_place(const json_t *present, const json_t *wanted, const json_t *smc)
{
	const json_t *annotations = json_at(present, "metadata", "annotations");
	const char *name;
	json_t *value;

	json_each (json_at(wanted, "metadata", "annotations"), name, value)
		if (!json_same(json_at(annotations, name), value))
			return false;
	return json_same(json_at(present, "spec", "config"), json_at(wanted, "spec", "config")) &&
	       str_eq(json_str_at(owner_controller(present), "uid"), json_uid(smc));
}

static void sync_label(const json_t *smc, const json_t *nad, const char *name, json_t *labels)
{
	const char *wanted = cni_annotation(smc, name);
	const char *label = json_str_at(smc, "metadata", "labels", name);
	const char *before = json_str_at(nad, "metadata", "annotations", name);

	if (wanted && !str_eq(wanted, label))
		json_put_str(labels, name, wanted);
	/*
	 * The annotation is gone. A label of the same value as the copy on our
	 * NetworkAttachmentDefinition, which is from last time, came from it; any other label is
	 * the user's own.
	 */
	else if (!wanted && label && str_eq(label, before))
		json_put(labels, name, json_null());
}

/* The pod webhook finds the configs of a group by label. */
static void plan_labels(const json_t *smc, const char *key, const json_t *nad, struct plan *plan)
{
	json_t *metadata = json_object();
	json_t *labels = json_need_object(metadata, "labels");

	sync_label(smc, nad, CNI_ANNOTATION_RDMA_INJECT, labels);
	sync_label(smc, nad, CNI_ANNOTATION_NETWORK_INJECT, labels);
	if (json_object_size(labels))
		plan_meta(plan, KIND_MULTUS_CONFIG, key, metadata);
	else
		json_decref(metadata);
}

/* nad_key: for pods to name; NULL: there is none. */
static void plan_smc_status(const json_t *world, const json_t *smc, const char *key,
			    const struct judgement *judgement, const char *nad_key,
			    struct plan *plan)
{
	const json_t *previous = json_at(smc, "status", "conditions");
	const json_t *injected = condition_find(previous, INJECTED_CONDITION);
	const char *now = world_env(world, "now");
	int64_t generation = json_generation(smc);
	json_t *conditions = json_array();
	json_t *status = json_object();

	conditions_judge(conditions, previous, judgement, generation, now);
	/* It is inject_check.c's; kept if it is one that the schema lets pass again. */
	if (condition_is_whole(injected))
		json_array_append(conditions, (json_t *)injected);
	conditions_emit(plan, KIND_MULTUS_CONFIG, key, previous, conditions);
	json_put_int(status, "observedGeneration", generation);
	json_put_str(status, "networkAttachmentDefinition", nad_key);
	json_put(status, "conditions", conditions);
	plan_status(plan, KIND_MULTUS_CONFIG, key, status);
}

/*
 * The NetworkAttachmentDefinition that pods can still use: of this key, or what the config made
 * under another name.
 */
static const char *find_last_good(const json_t *world, const char *key, const char *nad_key)
{
	const char *other_key, *found = NULL;
	json_t *nad;

	if (is_ours(world_get(world, KIND_NAD, nad_key), key))
		return nad_key;
	json_each (world_kind(world, KIND_NAD), other_key, nad)
		if (is_ours(nad, key) && (!found || strcmp(other_key, found) < 0))
			found = other_key;
	return found;
}

static void plan_refusal(const json_t *world, const json_t *smc, const char *key,
			 const char *nad_key, const struct problems *problems, struct plan *plan)
{
	auto_free char *message = problems_text(problems);
	struct judgement judgement = {
		.ready = CONDITION_FALSE,
		.waits = str_eq(problems_reason(problems), "NadTerminating"),
		.reason = problems_reason(problems),
		.message = message,
	};

	plan_smc_status(world, smc, key, &judgement, find_last_good(world, key, nad_key), plan);
}

static void find_missing(const json_t *world, const json_t *smc, struct problems *warnings,
			 struct plan *plan)
{
	auto_problems struct problems missing = {0};
	json_t *problem;
	size_t i;

	multus_config_warn_missing(world, smc, &missing);
	if (missing.total && object_is_fresh(smc, world_env(world, "now"))) {
		plan_requeue(plan, OBJECT_FRESH_MS);
		return;
	}
	json_array_foreach (missing.list, i, problem)
		problem_copy(warnings, problem);
}

static void plan_ready(const json_t *world, const json_t *smc, const char *key, const char *nad_key,
		       const struct multus_rendering *rendering, struct plan *plan)
{
	auto_problems struct problems warnings = {0};
	auto_free char *message =
		str_printf("NetworkAttachmentDefinition %s is in place, pods ask for it with the "
			   "annotation k8s.v1.cni.cncf.io/networks: %s",
			   nad_key, nad_key);
	struct judgement judgement = {
		.ready = CONDITION_TRUE,
		.reason = "Rendered",
		.message = message,
		.warnings = &warnings,
	};

	multus_config_warn(smc, rendering, &warnings);
	find_missing(world, smc, &warnings, plan);
	plan_smc_status(world, smc, key, &judgement, nad_key, plan);
}

static void tell_of_adoption(const char *key, const char *nad_key, const json_t *nad,
			     struct plan *plan)
{
	const json_t *owner = owner_controller(nad);
	auto_free char *message = NULL;

	if (!nad || is_ours(nad, key))
		return;
	message =
		owner ? str_printf("NetworkAttachmentDefinition %s is taken over from "
				   "SpiderMultusConfig %s, which is younger, gone or uses another "
				   "name now",
				   nad_key, json_str_or(json_at(owner, "name"), "?"))
		      : str_printf("NetworkAttachmentDefinition %s existed and nobody controlled "
				   "it: it is managed by this config now",
				   nad_key);
	plan_event(plan, KIND_MULTUS_CONFIG, key, false, "Adopted", message);
}

int multus_config_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err)
{
	const json_t *smc = world_get(world, KIND_MULTUS_CONFIG, key);
	auto_multus_rendering struct multus_rendering rendering = {0};
	auto_problems struct problems problems = {0};
	auto_free char *own_key = NULL, *nad_key = NULL;
	const json_t *nad;
	json_t *wanted;
	bool is_done;

	if (!smc || object_is_terminating(smc)) {
		plan_cleanup(world, key, NULL, plan);
		return 0;
	}
	own_key = json_key(smc);
	if (!str_eq(own_key, key) || !*json_uid(smc))
		return err_set(err, ERR_BUG, "BadWorld",
			       "SpiderMultusConfig %s is in the world without uid or as %s", key,
			       own_key);
	nad_key = str_printf("%s/%s", json_namespace(smc), cni_nad_name(smc));
	nad = world_get(world, KIND_NAD, nad_key);
	multus_config_render(world, smc, &rendering, &problems);
	if (!problems.total && object_is_terminating(nad))
		problem_add(&problems, "NadTerminating", "metadata.name",
			    "NetworkAttachmentDefinition %s is being deleted and waits for its "
			    "finalizers: it is made again when it is gone",
			    nad_key);
	if (problems.total) {
		plan_refusal(world, smc, key, nad_key, &problems, plan);
		return 0;
	}
	plan_labels(smc, key, nad, plan);
	tell_of_adoption(key, nad_key, nad, plan);
	wanted = nad_new(smc, rendering.config, nad);
	if (is_ours(nad, key)) {
		auto_free char *instead = str_printf(KIND " %s", key);

		edit_tell_nad(plan, nad_key, nad, wanted, instead);
	}
	is_done = is_in_place(nad, wanted, smc);
	plan_apply(plan, KIND_NAD, wanted);
	plan_cleanup(world, key, cni_nad_name(smc), plan);
	if (is_done)
		plan_ready(world, smc, key, nad_key, &rendering, plan);
	return 0;
}
