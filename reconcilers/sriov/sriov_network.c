// SPDX-License-Identifier: Apache-2.0
/*
 * One reconcile for three kinds: render (sriov_network_config.c), look for the NAD at the target,
 * and say whose it is. A NAD carries its network's name, so what is not where it should be is
 * found and goes.
 */
#include "reconcilers/sriov/sriov_network.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/edit.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/trust.h"

#define NAMESPACE_FIELD "spec.networkNamespace"

struct look {
	const json_t *world;
	const struct kind_info *kind;
	const char *key;
	char *home; /* the two parts of key */
	const char *name;
	const json_t *network; /* NULL: deleted */
	char *owner;           /* what SRIOV_NETWORK_OWNER says on its NADs */
	const char *target;    /* namespace */
	char *target_key;
	const json_t *nad; /* at the target key, or NULL */
};

static void look_done(struct look *l)
{
	free(l->home);
	free(l->owner);
	free(l->target_key);
}

static int look_at(const json_t *world, const char *kind, const char *key, const json_t *network,
		   struct look *ret, struct err *err)
{
	struct look l = {.world = world, .kind = kind_find(kind), .key = key, .network = network};
	const char *slash = strchr(key, '/');

	if (!slash || slash == key || slash[1] == '\0')
		return err_set(err, ERR_BUG, "BadKey", "%s \"%s\" is not NAMESPACE/NAME", kind,
			       key);
	l.home = str_ndup(key, (size_t)(slash - key));
	l.name = slash + 1;
	l.owner = str_printf("%s.%s/%s", l.kind->kind, l.kind->group, key);
	l.target = json_str_at(l.network, "spec", "networkNamespace");
	if (str_empty(l.target))
		l.target = l.home;
	l.target_key = str_printf("%s/%s", l.target, l.name);
	l.nad = world_get(world, KIND_NAD, l.target_key);
	*ret = l;
	return 0;
}

static bool is_at_home(const struct look *l)
{
	return str_eq(l->target, l->home);
}

static const char *owner_annotation(const json_t *nad)
{
	return json_str_or(json_at(nad, "metadata", "annotations", SRIOV_NETWORK_OWNER), "");
}

static bool carries_our_name(const struct look *l, const json_t *nad)
{
	return str_eq(owner_annotation(nad), l->owner);
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Users may write the annotation; the controller of another kind would make its NAD again. */
static bool has_other_controller(const struct look *l, const json_t *nad)
{
	const json_t *controller = owner_controller(nad);

	return controller && !owner_is(controller, l->kind->group, l->kind->kind,
				       json_str_at(controller, "name"));
}

/*
 * Delete the NADs that carry our name and have no other controller, except the one at `keep` (may
 * be NULL).
 */
static size_t plan_removal(struct plan *plan, const struct look *l, const char *keep)
{
	const char *key;
	json_t *nad;
	size_t found = 0;

	json_each (world_kind(l->world, KIND_NAD), key, nad) {
		if (!carries_our_name(l, nad) || has_other_controller(l, nad) || str_eq(key, keep))
			continue;
		plan_delete(plan, KIND_NAD, key, json_uid(nad));
		found++;
	}
	return found;
}

/* ---- what it says ---------------------------------------------------------------------------- */

/*
 * Text that means the same stays as it is: it may have come from upstream, or have been laid out by
 * hand.
 */
static char *config_text(const json_t *config, const json_t *nad)
{
	const char *present = json_str_or(json_at(nad, "spec", "config"), "");
	json_auto_t *parsed = limits_parse(present, strlen(present), LIMIT_CONFIG_BYTES, NULL);

	if (parsed && json_same(parsed, config))
		return str_dup(present);
	return json_dumps(config, JSON_INDENT(SRIOV_NETWORK_INDENT));
}

/* What pods have to request. Returns new. */
static json_t *full_resource(const struct look *l)
{
	const char *prefix = world_env(l->world, "resourcePrefix");

	return json_fmt("%s%s%s", prefix, *prefix ? "/" : "",
			json_str_at(l->network, "spec", "resourceName"));
}

/* ---- what stands in the way ------------------------------------------------------------------ */

/* Who else the NAD says that it belongs to; NULL when it is ours, or says nothing. Returns new. */
static char *other_owner(const struct look *l)
{
	const char *annotation = owner_annotation(l->nad);
	const json_t *controller = owner_controller(l->nad);

	if (!l->nad || carries_our_name(l, l->nad))
		return NULL;
	if (*annotation)
		return str_dup(annotation);
	if (!controller || owner_is(controller, l->kind->group, l->kind->kind, l->name))
		return NULL;
	return str_printf("%s %s", json_str_or(json_at(controller, "kind"), "?"),
			  json_str_or(json_at(controller, "name"), "?"));
}

/* An owner reference, and of operators before 2025 what the network remembers of its NAD. */
static bool has_older_mark(const struct look *l)
{
	json_t *owner;
	size_t i;

	json_array_foreach (json_at(l->nad, "metadata", "ownerReferences"), i, owner)
		if (owner_is(owner, l->kind->group, l->kind->kind, l->name))
			return true;
	return str_eq(
		json_str_at(l->network, "metadata", "annotations", SRIOV_NETWORK_LAST_NAMESPACE),
		l->target);
}

/* What the network would write is there already: nothing of another owner is lost. */
static bool says_the_same(const struct look *l, const json_t *config)
{
	auto_free char *wanted = config_text(config, l->nad);
	json_auto_t *resource = full_resource(l);

	return str_eq(wanted, json_str_at(l->nad, "spec", "config")) &&
	       json_same(resource, json_at(l->nad, "metadata", "annotations", NAD_RESOURCE_NAME));
}

/* The NAD is not for this network to write. `field` is what the user can change. */
static void check_claim(const struct look *l, const json_t *config, struct problems *problems)
{
	auto_free char *other = other_owner(l);

	/*
	 * Only from a namespace of administrators may a network write into another one. Otherwise
	 * users that may create networks in one namespace could do so in all.
	 */
	if (!is_at_home(l) && !namespace_is_trusted(l->world, l->home)) {
		auto_free char *trusted = trusted_namespaces(l->world);

		problem_add(problems, "NetworkAttachmentDefinitionInvalid", NAMESPACE_FIELD,
			    "\"%s\" may be another namespace only for a network in one of %s; "
			    "create the network there or in %s itself",
			    l->target, trusted, l->target);
	} else if (other) {
		problem_add(problems, "NetworkAttachmentDefinitionInvalid", "metadata.name",
			    "NetworkAttachmentDefinition %s belongs to %s, rename this network or "
			    "delete that owner",
			    l->target_key, other);
	} else if (l->nad && !object_is_terminating(l->nad) && !carries_our_name(l, l->nad) &&
		   !has_older_mark(l) && !says_the_same(l, config)) {
		problem_add(problems, "NetworkAttachmentDefinitionInvalid", "metadata.name",
			    "NetworkAttachmentDefinition %s was made by somebody else, with "
			    "another content, and stays as it is: rename this network, or delete "
			    "it, and the network makes its own",
			    l->target_key);
	}
}

/* A problem on the way to the NAD that is not in the configuration. */
static void check_target(const struct look *l, const json_t *config, struct problems *problems)
{
	size_t before = problems->total;

	check_claim(l, config, problems);
	if (problems->total == before) {
		const json_t *namespace = world_get(l->world, KIND_NAMESPACE, l->target);

		/* It cannot be written yet. */
		if (object_is_terminating(l->nad))
			problem_add(problems, "NetworkAttachmentDefinitionInvalid", "metadata.name",
				    "NetworkAttachmentDefinition %s is being deleted, it is made "
				    "again when "
				    "it is gone",
				    l->target_key);
		else if (!l->nad && !is_at_home(l) &&
			 (!namespace || object_is_terminating(namespace)))
			problem_add(problems, "NamespaceNotFound", NAMESPACE_FIELD,
				    "namespace %s %s, create it: the network is waiting for it",
				    l->target, namespace ? "is being deleted" : "does not exist");
	}
}

/* ---- the NAD --------------------------------------------------------------------------------- */

/*
 * The network, and owners that others entered. NULL when the NAD is in another namespace, which
 * references cannot reach.
 */
static json_t *owners_json(const struct look *l)
{
	json_t *owners, *ours, *other;
	size_t i;

	if (!is_at_home(l) || !*json_uid(l->network))
		return NULL;
	owners = json_array();
	json_array_foreach (json_at(l->nad, "metadata", "ownerReferences"), i, other) {
		if (!owner_is(other, l->kind->group, l->kind->kind, l->name))
			json_array_append(owners, other);
	}
	ours = json_object();
	json_put(ours, "apiVersion", kind_api_version(l->kind));
	json_put_str(ours, "kind", l->kind->kind);
	json_put_str(ours, "name", l->name);
	json_put_str(ours, "uid", json_uid(l->network));
	json_array_append_new(owners, ours);
	return owners;
}

static json_t *nad_new(const struct look *l, const json_t *config)
{
	json_t *nad = json_object(), *metadata = json_need_object(nad, "metadata");
	json_t *annotations = json_need_object(metadata, "annotations");
	auto_free char *text = config_text(config, l->nad);

	json_put_str(metadata, "name", l->name);
	json_put_str(metadata, "namespace", l->target);
	json_put(annotations, NAD_RESOURCE_NAME, full_resource(l));
	json_put_str(annotations, SRIOV_NETWORK_OWNER, l->owner);
	json_put(metadata, "ownerReferences", owners_json(l));
	json_put_str(json_need_object(nad, "spec"), "config", text);
	return nad;
}

/* What was read back has all that we want. */
static bool is_in_place(const json_t *nad, const json_t *wanted)
{
	const json_t *owners = json_at(wanted, "metadata", "ownerReferences");
	const char *name;
	json_t *value;

	if (!nad)
		return false;
	json_each (json_at(wanted, "metadata", "annotations"), name, value) {
		if (!json_same(json_at(nad, "metadata", "annotations", name), value))
			return false;
	}
	if (owners &&
	    !json_find(json_at(nad, "metadata", "ownerReferences"), "uid",
		       json_str_at(json_array_get(owners, json_array_size(owners) - 1), "uid")))
		return false;
	return json_same(json_at(nad, "spec"), json_at(wanted, "spec"));
}

/* ---- the status ------------------------------------------------------------------------------ */

static void plan_network_status(struct plan *plan, const struct look *l,
				const struct judgement *judgement)
{
	const json_t *previous = json_at(l->network, "status", "conditions");
	const char *now = world_env(l->world, "now");
	json_t *status = json_object(), *conditions = json_array();
	int64_t generation = json_generation(l->network);

	conditions_judge(conditions, previous, judgement, generation, now);
	conditions_emit(plan, l->kind->id, l->key, previous, conditions);
	json_put_int(status, "observedGeneration", generation);
	/* What pods can name, be it of an earlier generation. */
	if (carries_our_name(l, l->nad))
		json_put_str(status, "networkAttachmentDefinition", l->target_key);
	json_put(status, "conditions", conditions);
	plan_status(plan, l->kind->id, l->key, status);
}

/* Pods would wait for devices that no node has. A young network may have come before its policy. */
static void check_resource(struct plan *plan, const struct look *l, struct problems *warnings)
{
	json_auto_t *resource = full_resource(l);

	if (str_empty(json_str_at(l->network, "spec", "resourceName")) ||
	    !world_kind(l->world, KIND_NODE_RESOURCE) ||
	    world_get(l->world, KIND_NODE_RESOURCE, json_string_value(resource)))
		return;
	if (object_is_fresh(l->network, world_env(l->world, "now"))) {
		plan_requeue(plan, OBJECT_FRESH_MS);
		return;
	}
	problem_add(warnings, "ResourceMissing", "spec.resourceName",
		    "%.253s is offered by no node: pods that request it stay Pending until a "
		    "SriovNetworkNodePolicy or a device plugin makes it, or the name is corrected",
		    json_string_value(resource));
}

static void plan_nad(struct plan *plan, const struct look *l, const json_t *config)
{
	json_t *nad = nad_new(l, config);
	bool done = is_in_place(l->nad, nad);
	auto_free char *message = str_printf(
		"NetworkAttachmentDefinition %s is in place, a pod in namespace %s names it in its "
		"annotation k8s.v1.cni.cncf.io/networks",
		l->target_key, l->target);
	auto_free char *instead = str_printf("%s %s", l->kind->kind, l->key);
	auto_problems struct problems warnings = {0};
	const char *name;
	auto_free char *what = NULL;
	const char *is;
	bool is_ib;

	if (carries_our_name(l, l->nad))
		edit_tell_nad(plan, l->target_key, l->nad, nad, instead);
	plan_apply(plan, KIND_NAD, nad);
	plan_removal(plan, l, l->target_key);
	if (!done)
		return;
	check_resource(plan, l, &warnings);

	/* Its plugin would refuse each pod's VF. */
	name = json_str_or(json_at(l->network, "spec", "resourceName"), "");
	what = str_printf("%s/", name);
	is = json_str_at(l->world, KIND_LINK_TYPE, what);
	is_ib = str_eq(l->kind->id, KIND_SRIOV_IB_NETWORK);
	if (is && !str_eq(l->kind->id, KIND_OVS_NETWORK) && str_eq(is, "IB") != is_ib)
		problem_add(&warnings, "WrongLinkType", "spec.resourceName",
			    "%.128s is %s on every node that has it, and a %s needs %s: no pod "
			    "gets the "
			    "interface; use a %s, or name another resource",
			    name, is_ib ? "Ethernet" : "InfiniBand", l->kind->kind,
			    is_ib ? "InfiniBand" : "Ethernet",
			    is_ib ? "SriovNetwork" : "SriovIBNetwork");
	plan_network_status(plan, l,
			    &(struct judgement){.ready = CONDITION_TRUE,
						.reason = "NetworkReady",
						.message = message,
						.warnings = &warnings});
}

static void plan_network(struct plan *plan, const struct look *l)
{
	auto_problems struct problems problems = {0};
	json_auto_t *config = sriov_network_config(l->kind->id, l->name, l->network, &problems);

	/*
	 * A network that cannot be read says nothing about where its NAD should not be: all stays.
	 */
	if (config) {
		check_target(l, config, &problems);
		if (str_eq(problems_reason(&problems), "NamespaceNotFound"))
			plan_removal(plan, l, l->target_key);
	}
	if (problems.total > 0) {
		auto_free char *text = problems_text(&problems);
		auto_free char *message = str_printf("%s %s: %s", l->kind->kind, l->key, text);

		plan_network_status(plan, l,
				    &(struct judgement){.ready = CONDITION_FALSE,
							.reason = problems_reason(&problems),
							.message = message});
	} else {
		plan_nad(plan, l, config);
	}
}

void sriov_network_check(const json_t *world, const char *kind, const json_t *network,
			 struct problems *problems)
{
	json_auto_t *config = sriov_network_config(kind, json_name(network), network, problems);
	auto_call(look_done) struct look l = {0};
	auto_free char *key = json_key(network);

	assert(kind && network && problems);
	/* Without a name (it will be generated) it conflicts with no other. */
	if (config && look_at(world, kind, key, network, &l, NULL) == 0)
		check_claim(&l, config, problems);
}

static int reconcile(const json_t *world, const char *kind, const char *key, struct plan *plan,
		     struct err *err)
{
	auto_call(look_done) struct look l = {0};

	if (look_at(world, kind, key, world_get(world, kind, key), &l, err) < 0)
		return -1;
	if (!l.network || object_is_terminating(l.network)) {
		/* NADs first; the finalizer goes when the world has none of them left. */
		if (plan_removal(plan, &l, NULL) == 0 && l.network)
			plan_release(plan, l.kind->id, l.key, l.network, SRIOV_NETWORK_FINALIZER);
	} else {
		plan_network(plan, &l);
	}
	return 0;
}

int sriov_network_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err)
{
	return reconcile(world, KIND_SRIOV_NETWORK, key, plan, err);
}

int sriov_ib_network_reconcile(const json_t *world, const char *key, struct plan *plan,
			       struct err *err)
{
	return reconcile(world, KIND_SRIOV_IB_NETWORK, key, plan, err);
}

int ovs_network_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	return reconcile(world, KIND_OVS_NETWORK, key, plan, err);
}
