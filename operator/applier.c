/*
 * One struct run per plan at work; its operations are taken in order, each either done at once or after its answer.
 */
#include "operator/applier.h"

#include <sys/queue.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"

struct run {
	TAILQ_ENTRY(run) link;
	struct applier *applier;
	json_t *ops;
	size_t next;
	const json_t *op; /* the one in flight; borrowed from ops */
	const char *verb;
	struct kube_call *call;
	struct applier_result result;
	applier_done_fn *done;
	void *arg;
};

TAILQ_HEAD(run_list, run);

struct applier {
	struct applier_config config;
	struct run_list runs;
	struct metric *writes;
};

static void proceed(struct run *run);

struct applier *applier_new(const struct applier_config *config)
{
	struct applier *applier = mem_new(struct applier);

	applier->config = *config;
	TAILQ_INIT(&applier->runs);
	applier->writes = metric_counter(config->metrics, "orbweaver_writes_total",
					 "Writes to the API server, without leases and events.",
					 "kind,verb,outcome");
	return applier;
}

static void run_free(struct run *run)
{
	TAILQ_REMOVE(&run->applier->runs, run, link);
	kube_call_cancel(run->call);
	json_decref(run->ops);
	mem_free(run);
}

static void finish(struct run *run, const struct err *err)
{
	run->done(run->arg, &run->result, err);
	run_free(run);
}

void applier_free(struct applier *applier)
{
	struct err err = {0};

	if (!applier)
		return;
	err_set(&err, ERR_TRANSIENT, "ShuttingDown", "abandoned at shutdown");
	while (!TAILQ_EMPTY(&applier->runs))
		finish(TAILQ_FIRST(&applier->runs), &err);
	mem_free(applier);
}

static const char *op_str(const json_t *op, const char *name)
{
	return json_str_or(json_at(op, name), "");
}

/* ---- differences -------------------------------------------------------------------------------------------------- */

/* Labels or annotations: what we want, and null for what we once set and no longer want. */
static json_t *pairs_patch(const json_t *present, const json_t *wanted, const json_t *ours)
{
	json_t *patch = json_object();
	const char *key = NULL;
	json_t *value = NULL;
	size_t i = 0;

	json_each (wanted, key, value)
		if (!json_same(json_object_get(present, key), value))
			json_object_set(patch, key, value);
	json_array_foreach (ours, i, value) {
		key = json_string_value(value);
		if (json_object_get(present, key) && !json_object_get(wanted, key))
			json_object_set_new(patch, key, json_null());
	}
	return patch;
}

static void put_if_any(json_t *patch, const char *key, json_t *value)
{
	if (json_object_size(value) > 0)
		json_object_set(patch, key, value);
	json_decref(value);
}

static json_t *metadata_patch(const json_t *present, const json_t *wanted)
{
	static const char *const lists[] = {"ownerReferences", "finalizers"};
	static const char *const pairs[] = {"labels", "annotations"};
	json_t *patch = json_object();

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		put_if_any(patch, pairs[i],
			   pairs_patch(json_at(present, pairs[i]), json_at(wanted, pairs[i]),
				       json_at(present, "orbweaver", pairs[i])));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		json_t *list = json_at(wanted, lists[i]);

		if (list && !json_same(list, json_at(present, lists[i])))
			json_object_set(patch, lists[i], list);
	}
	return patch;
}

static bool is_ours_as_a_whole(const char *member)
{
	static const char *const others[] = {"apiVersion", "kind", "metadata", "status"};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_eq(member, others[i]))
			return false;
	return true;
}

/* What a merge patch says about one member; NULL when it is as wanted. Returns new. */
static json_t *member_difference(const json_t *present, const json_t *wanted)
{
	if (json_is_object(wanted) && (!present || json_is_object(present)))
		return json_merge_diff(present, wanted);
	return json_same(present, wanted) ? NULL : json_deep_copy(wanted);
}

/* The patch holds only if the object is still the one that was looked at. */
static json_t *conditional(json_t *patch, const json_t *present)
{
	json_put_str(json_need_object(patch, "metadata"), "resourceVersion",
		     json_str_at(present, "metadata", "resourceVersion"));
	return patch;
}

json_t *applier_patch(const json_t *present, const json_t *wanted)
{
	json_auto_t *patch = json_object();
	const char *member = NULL;
	json_t *value = NULL;

	put_if_any(patch, "metadata",
		   metadata_patch(json_at(present, "metadata"), json_at(wanted, "metadata")));
	json_each (wanted, member, value) {
		json_t *difference = NULL;

		if (!is_ours_as_a_whole(member))
			continue;
		difference = member_difference(json_object_get(present, member), value);
		if (difference)
			json_put(patch, member, difference);
	}
	if (json_object_size(patch) == 0)
		return NULL;
	return conditional(json_incref(patch), present);
}

/* ---- writes ------------------------------------------------------------------------------------------------------- */

static const struct kube_write write_main = {.field_manager = OPERATOR_NAME, .fenced = true};
static const struct kube_write write_status = {
	.field_manager = OPERATOR_NAME,
	.fenced = true,
	.subresource = "status",
};

/* The object that was to be deleted, or written to, is not there any more: nothing left to do. */
static bool is_fine(const struct run *run, const struct err *err)
{
	return kube_err_is(err, "NotFound") && !str_eq(run->verb, "create");
}

static void on_written(void *arg, json_t *object, const struct err *err)
{
	struct run *run = arg;
	struct applier *applier = run->applier;
	const struct applier_config *config = &applier->config;
	const char *kind = op_str(run->op, "kind");
	struct err told = {0};

	run->call = NULL;
	metric_add(applier->writes, 1, kind, run->verb, err ? err->reason : "ok");
	if (!err && !str_eq(run->verb, "delete")) {
		config->learning(config->arg, true);
		mirror_learn(config->mirror, kind, object);
		config->learning(config->arg, false);
	}
	if (err && !is_fine(run, err)) {
		told = *err;
		err_in(&told, "%s %s %s", run->verb, kind, op_str(run->op, "key"));
		finish(run, &told);
		return;
	}
	proceed(run);
}

static bool sent(struct run *run, const char *verb, struct kube_call *call)
{
	run->verb = verb;
	run->call = call;
	run->result.wrote = true;
	return true;
}

/* What the server wants at the top of every body; plans leave it out, their kind says it. Returns new. */
static json_t *with_type(const struct kube_resource *resource, const json_t *object)
{
	json_t *typed = json_copy((json_t *)object);

	json_put(typed, "apiVersion",
		 json_fmt("%s%s%s", resource->group, *resource->group ? "/" : "",
			  resource->version));
	json_put_str(typed, "kind", resource->kind);
	return typed;
}

/* The op_* functions return true when they sent something and the run has to wait for the answer. */
static bool op_apply(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	const json_t *wanted = json_at(run->op, "object");
	struct kube_client *client = run->applier->config.client;
	json_auto_t *patch = NULL;
	json_auto_t *typed = NULL;

	if (!present) {
		typed = with_type(resource, wanted);
		return sent(run, "create",
			    kube_create(client, resource, typed, &write_main, on_written, run));
	}
	patch = applier_patch(present, wanted);
	if (!patch)
		return false;
	return sent(run, "patch",
		    kube_patch(client, resource, json_namespace(wanted), json_name(wanted),
			       KUBE_PATCH_MERGE, patch, &write_main, on_written, run));
}

/*
 * PUT: the status is ours as a whole, the server takes nothing else from the body, and it costs the server a quarter less
 * than a patch.
 */
static bool op_status(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	json_t *wanted = json_at(run->op, "status");
	json_auto_t *bare = NULL;
	json_auto_t *body = NULL;

	if (!present || json_same(json_at(present, "status"), wanted))
		return false;
	bare = json_pack("{s:{s:s}, s:O}", "metadata", "name", json_name(present), "status",
			 wanted);
	if (resource->namespaced)
		json_put_str(json_at(bare, "metadata"), "namespace", json_namespace(present));
	body = with_type(resource, bare);
	return sent(run, "status",
		    kube_update(run->applier->config.client, resource, conditional(body, present),
				&write_status, on_written, run));
}

static bool op_meta(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	struct kube_client *client = run->applier->config.client;
	json_auto_t *after = NULL;
	json_auto_t *patch = NULL;

	if (!present)
		return false;
	after = json_deep_copy(json_at(present, "metadata"));
	json_merge_patch(after, json_at(run->op, "metadata"));
	if (json_same(after, json_at(present, "metadata")))
		return false;
	patch = json_pack("{s:o}", "metadata", json_deep_copy(json_at(run->op, "metadata")));
	conditional(patch, present);
	return sent(run, "meta",
		    kube_patch(client, resource, json_namespace(present), json_name(present),
			       KUBE_PATCH_MERGE, patch, &write_main, on_written, run));
}

static bool op_delete(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	if (!present || json_at(present, "metadata", "deletionTimestamp"))
		return false;
	return sent(run, "delete",
		    kube_delete(run->applier->config.client, resource, json_namespace(present),
				json_name(present), json_str_at(run->op, "uid"), NULL, &write_main,
				on_written, run));
}

static void tell(const struct run *run, const struct kube_resource *resource, const json_t *present,
		 bool warning)
{
	const struct event_object object = {
		.resource = resource,
		.ns = json_namespace(present),
		.name = json_name(present),
		.uid = json_uid(present),
	};

	recorder_tell(run->applier->config.recorder, &object, warning, op_str(run->op, "reason"),
		      op_str(run->op, "message"));
}

static bool op_event(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	if (present)
		tell(run, resource, present, str_eq(op_str(run->op, "type"), "Warning"));
	return false;
}

static bool op_finding(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	const struct applier_config *config = &run->applier->config;

	if (config->found(config->arg, run->op, present) && present && json_at(run->op, "reason"))
		tell(run, resource, present, true);
	return false;
}

static bool carry_out(struct run *run)
{
	static const struct {
		const char *op;
		bool (*run)(struct run *run, const struct kube_resource *resource,
			    const json_t *present);
	} ops[] = {
		{"apply", op_apply},   {"status", op_status}, {"meta", op_meta},
		{"delete", op_delete}, {"event", op_event},   {"finding", op_finding},
	};
	const struct applier_config *config = &run->applier->config;
	const char *op = op_str(run->op, "op");
	const char *kind = op_str(run->op, "kind");
	json_auto_t *present = NULL;

	if (str_eq(op, "requeue")) {
		run->result.again_ms = json_integer_value(json_at(run->op, "after_ms"));
		return false;
	}
	if (str_eq(op, "report")) {
		config->report(config->arg, op_str(run->op, "node"), json_at(run->op, "policies"));
		return false;
	}
	present = cache_get(mirror_cache(config->mirror, kind), op_str(run->op, "key"));
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (str_eq(op, ops[i].op))
			return ops[i].run(run, mirror_resource(config->mirror, kind), present);
	log_error("plan has an unknown operation", F_STR("op", op));
	return false;
}

static void proceed(struct run *run)
{
	while (run->next < json_array_size(run->ops)) {
		run->op = json_array_get(run->ops, run->next++);
		if (carry_out(run))
			return;
	}
	finish(run, NULL);
}

void applier_run(struct applier *applier, struct plan *plan, applier_done_fn *done, void *arg)
{
	struct run *run = mem_new(struct run);

	run->applier = applier;
	run->ops = take_ptr(plan->ops);
	run->result.again_ms = -1;
	run->done = done;
	run->arg = arg;
	TAILQ_INSERT_TAIL(&applier->runs, run, link);
	proceed(run);
}
