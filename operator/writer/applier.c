// SPDX-License-Identifier: Apache-2.0
/*
 * One struct run per plan at work; its operations are taken in order, each either done at once or
 * after its answer.
 *
 * A plan is a decision about objects in certain versions. Those are noted when the plan comes in,
 * for every operation, since the later ones leave only after answers to the earlier ones: an object
 * that moved meanwhile, other than by a write of this plan, was not decided on.
 */
#include "operator/writer/applier.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "operator/cache/kinds.h"
#include "operator/writer/applier_patch.h"
#include "operator/writer/evictions.h"
#include "operator/writer/revert_backoff.h"

enum {
	DID_MAX = 400, /* what a line of the log says of a decision's writes */
	/* After a group was refused, or its object moved, the plan is made again. */
	AGAIN_REFUSED_MS = 30000,
	AGAIN_MOVED_MS = 50,
	/* The decisions that the pause of labels has held back are made again within this time. */
	LABELS_SPREAD_MS = 60000,
	/* Groups that fail for the server's sake: then it is not about them, and the run ends. */
	SERVER_FAILURES_MAX = 2,
};

struct run {
	TAILQ_ENTRY(run) link;
	struct applier *applier;
	uint64_t id; /* in log lines */
	json_t *ops;
	uint64_t *versions; /* of the object of each op, as decided on; 0: absent */
	size_t next;
	const json_t *op; /* the one in flight; borrowed from ops */
	const char *verb;
	bool is_trial; /* the op in flight finds out whether labels are still refused */
	struct kube_call *call;
	int64_t sent_us;
	bool statuses_wait;
	json_t *failed;      /* {group: true}; NULL: none */
	int server_failures; /* one after the other */
	struct applier_result result;
	struct strbuf did; /* of result */
	applier_done_fn *done;
	void *arg;
};

TAILQ_HEAD(run_list, run);

struct applier {
	struct applier_config config;
	struct run_list runs;
	struct revert_backoff *rewrites;
	struct metric *writes;
	bool evicts_old; /* the server knows no policy/v1 */
	/*
	 * Since the server refused a label for want of the right: when one write tries again, for
	 * all Nodes. 0: not refused.
	 */
	int64_t labels_again_ms;
};

static void proceed_run(struct run *run);

struct applier *applier_new(const struct applier_config *config)
{
	struct applier *applier = mem_new(struct applier);

	assert(config->client && config->mirror && config->learning);
	applier->config = *config;
	TAILQ_INIT(&applier->runs);
	applier->rewrites = revert_backoff_new();
	applier->writes = metric_counter(config->metrics, "orbweaver_writes_total",
					 "Writes to the API server, without leases and events.",
					 "kind,verb,outcome");
	return applier;
}

static void finish_run(struct run *run, const struct err *err)
{
	run->result.did = strbuf_str(&run->did);
	run->done(run->arg, &run->result, err);
	TAILQ_REMOVE(&run->applier->runs, run, link);
	kube_call_cancel(run->call);
	json_decref(run->ops);
	json_decref(run->failed);
	mem_free(run->versions);
	strbuf_done(&run->did);
	mem_free(run);
}

void applier_free(struct applier *applier)
{
	struct err err = {0};

	if (!applier)
		return;
	err_set(&err, ERR_TRANSIENT, "ShuttingDown", "abandoned at shutdown");
	while (!TAILQ_EMPTY(&applier->runs))
		finish_run(TAILQ_FIRST(&applier->runs), &err);
	revert_backoff_free(applier->rewrites);
	mem_free(applier);
}

/* The earliest of several times counts. */
static void again_after(struct run *run, int64_t after_ms)
{
	if (run->result.again_ms < 0 || after_ms < run->result.again_ms)
		run->result.again_ms = after_ms;
}

static const char *op_str(const json_t *op, const char *name)
{
	return json_str_or(json_at(op, name), "");
}

static uint64_t version_now(const struct run *run, const json_t *op)
{
	const struct cache *cache = mirror_cache(run->applier->config.mirror, op_str(op, "kind"));

	return cache ? cache_version(cache, op_str(op, "key")) : 0;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static const char *group_of(const struct run *run)
{
	return json_str_at(run->op, "group");
}

/*
 * Is this failure one of the operation's group alone? Not when we lead no more, and not when the
 * server gives one group after the other no answer. HTTP 500 is an answer: the server says so of an
 * object whose admission webhook is away, for as long as that is.
 */
static bool is_of_group(struct run *run, const struct err *err)
{
	if (!group_of(run) || kube_err_is(err, "NotLeader"))
		return false;
	/* Admission policies and webhooks refuse with 403. */
	if (err->class == ERR_INVALID || err->class == ERR_CONFLICT ||
	    kube_err_is(err, "Forbidden") || kube_err_is(err, "NotFound") ||
	    kube_err_is(err, "InternalError")) {
		run->server_failures = 0;
		return true;
	}
	return ++run->server_failures < SERVER_FAILURES_MAX;
}

static void tell_group(const struct run *run, const struct err *err)
{
	const struct applier_config *config = &run->applier->config;

	if (group_of(run) && config->group_ended)
		config->group_ended(run->arg, group_of(run), run->op, err);
}

static void fail_group(struct run *run, const struct err *err)
{
	if (!run->failed)
		run->failed = json_object();
	json_put_bool(run->failed, group_of(run), true);
	again_after(run, err->class == ERR_CONFLICT ? AGAIN_MOVED_MS : AGAIN_REFUSED_MS);
	tell_group(run, err);
}

static bool is_left_out(const struct run *run)
{
	json_t *name;
	size_t i;

	json_array_foreach (run->failed ? json_at(run->op, "needs") : NULL, i, name)
		if (json_object_get(run->failed, json_string_value(name)))
			return true;
	return false;
}

/* ---- labels of Nodes ------------------------------------------------------------------------- */

static bool is_labels(const struct run *run)
{
	return str_eq(op_str(run->op, "op"), "meta") && json_at(run->op, "subresource");
}

/*
 * The right to label is there for all Nodes or for none: a refusal holds back the labels of all. At
 * its end one write tries, and the others wait for its answer.
 */
static bool labels_wait(struct run *run)
{
	struct applier *applier = run->applier;
	const char *key = op_str(run->op, "key");
	int64_t now_ms = clock_ms();

	run->is_trial = applier->labels_again_ms > 0 && now_ms >= applier->labels_again_ms;
	if (applier->labels_again_ms == 0 || run->is_trial)
		return false;
	again_after(run, applier->labels_again_ms - now_ms +
				 (int64_t)(str_hash(key, strlen(key)) % LABELS_SPREAD_MS));
	metric_add(applier->writes, 1, KIND_NODE, "meta", "held back");
	return true;
}

/*
 * The refusal of the first write of a pause is reported; of those in flight meanwhile it is known.
 */
static void labels_refused(struct run *run, const struct err *err)
{
	struct applier *applier = run->applier;
	bool is_known = applier->labels_again_ms > 0 && !run->is_trial;

	if (!is_known)
		applier->labels_again_ms = clock_ms() + APPLIER_LABELS_PAUSE_MS;
	/* After the others: a policy may refuse this Node alone. */
	again_after(run, APPLIER_LABELS_PAUSE_MS + LABELS_SPREAD_MS);
	if (!is_known)
		tell_group(run, err);
}

static void labels_answered(struct run *run, const struct err *err)
{
	if (!err)
		run->applier->labels_again_ms = 0;
	else if (run->is_trial && !kube_err_is(err, "Forbidden"))
		run->applier->labels_again_ms = clock_ms();
}

/* ---- writes ---------------------------------------------------------------------------------- */

/* subresource: NULL for the object. */
static struct kube_write write_of(const struct run *run, const char *subresource)
{
	return (struct kube_write){
		.field_manager = OPERATOR_NAME,
		.fenced = true,
		.subresource = subresource,
		/* The other groups of the plan wait meanwhile. */
		.faults_once = group_of(run) != NULL,
	};
}

/* Statuses only say what holds. */
static void note_done(struct run *run)
{
	if (str_eq(run->verb, "status") || run->did.len >= DID_MAX)
		return;
	strbuf_addf(&run->did, "%s%s %s %s", run->did.len ? ", " : "", run->verb,
		    op_str(run->op, "kind"), op_str(run->op, "key"));
}

/* What another client undoes: labels of a Node, its taints and its cordon are three. */
static const char *fought_over(const struct run *run)
{
	const json_t *spec = json_at(run->op, "spec");

	return !spec ? op_str(run->op, "kind") : json_at(spec, "taints") ? "taints" : "cordon";
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
	if (config->answered)
		config->answered(config->arg, mirror_resource(config->mirror, kind)->plural,
				 run->verb, clock_us() - run->sent_us, err);
	if (is_labels(run))
		labels_answered(run, err);
	if (err && !str_eq(run->verb, "status"))
		revert_backoff_refused(applier->rewrites, fought_over(run), op_str(run->op, "key"));
	if (!err)
		note_done(run);
	if (!err && !str_eq(run->verb, "delete")) {
		/*
		 * Our own write made this version of the object: what else the plan does with it
		 * builds on that.
		 */
		for (size_t i = run->next; i < json_array_size(run->ops); i++) {
			const json_t *op = json_array_get(run->ops, i);

			if (str_eq(op_str(op, "kind"), op_str(run->op, "kind")) &&
			    str_eq(op_str(op, "key"), op_str(run->op, "key")))
				run->versions[i] = kube_resource_version(object);
		}
		if (!str_eq(run->verb, "status"))
			revert_backoff_answered(applier->rewrites, fought_over(run),
						op_str(run->op, "key"), object);
		config->learning(config->arg, true);
		mirror_learn(config->mirror, kind, object);
		config->learning(config->arg, false);
	}
	/*
	 * The object is not there any more: nothing left to do. What needs the group of this write
	 * would build on it, so there it is a failure.
	 */
	if (err &&
	    !(kube_err_is(err, "NotFound") && !str_eq(run->verb, "create") && !group_of(run))) {
		told = *err;
		err_in(&told, "%s %s %s", run->verb, kind, op_str(run->op, "key"));
		if (!is_of_group(run, err)) {
			/* So that the next run does not wait for the same group. */
			if (!kube_err_is(err, "NotLeader"))
				tell_group(run, &told);
			finish_run(run, &told);
			return;
		}
		if (is_labels(run) && kube_err_is(err, "Forbidden"))
			labels_refused(run, &told);
		else
			fail_group(run, &told);
	} else {
		run->server_failures = 0;
		tell_group(run, NULL);
	}
	proceed_run(run);
}

enum overtaken {
	OVERTAKEN_NOT,
	OVERTAKEN_GROUP, /* this operation is not carried out, the run goes on */
	OVERTAKEN_RUN,   /* the run has ended, with ERR_CONFLICT */
};

/* Is the object still the one that was decided on? To be asked before anything is sent. */
static enum overtaken is_overtaken(struct run *run)
{
	uint64_t decided = run->versions[run->next - 1];
	uint64_t now = version_now(run, run->op);
	struct err err = {0};

	assert(run->next > 0 && run->next <= json_array_size(run->ops) && !run->call);
	if (now == decided)
		return OVERTAKEN_NOT;
	err_set(&err, ERR_CONFLICT, "Overtaken",
		"%s %s was changed by somebody else (version %llu, now %llu), deciding again",
		op_str(run->op, "kind"), op_str(run->op, "key"), (unsigned long long)decided,
		(unsigned long long)now);
	if (is_of_group(run, &err)) {
		fail_group(run, &err);
		return OVERTAKEN_GROUP;
	}
	finish_run(run, &err);
	return OVERTAKEN_RUN;
}

static void emit_event(const struct run *run, const struct kube_resource *resource,
		       const json_t *present, bool warning, const char *reason, const char *message)
{
	const struct event_object object = {.resource = resource,
					    .ns = json_namespace(present),
					    .name = json_name(present),
					    .uid = json_uid(present)};

	recorder_emit(run->applier->config.recorder, &object, warning, reason, message);
}

/*
 * True when another client keeps undoing this patch, or deletes what the same patch makes: later,
 * then, and the rest of the plan goes on. present: what the event is about.
 */
static bool is_held_back(struct run *run, const struct kube_resource *resource,
			 const json_t *present, const json_t *patch)
{
	struct applier *applier = run->applier;
	const char *kind = op_str(run->op, "kind"), *key = op_str(run->op, "key");
	const char *what = fought_over(run);
	int64_t pause_ms = revert_backoff_pause_ms(applier->rewrites, what, key, patch, clock_ms());
	auto_free char *message = NULL;
	const char *who = revert_backoff_other(applier->rewrites, what, key);

	if (pause_ms == 0)
		return false;
	again_after(run, pause_ms);
	metric_add(applier->writes, 1, kind, "patch", "held back");
	message = str_printf("%s keeps undoing what the operator writes here, so it pauses between "
			     "attempts: exempt this object there, or stop one of the two",
			     *who ? who : "somebody else");
	log_warn("somebody keeps undoing a write, pausing", F_INT("id", (int64_t)run->id),
		 F_STR("kind", kind), F_STR("key", key), F_STR("by", who),
		 F_INT("pause_ms", pause_ms));
	emit_event(run, resource, present, true, "WriteUndone", message);
	return true;
}

static bool note_sent(struct run *run, const char *verb, struct kube_call *call)
{
	assert(call && !run->call);
	run->verb = verb;
	run->call = call;
	run->sent_us = clock_us();
	run->result.wrote = true;
	log_debug("writing", F_INT("id", (int64_t)run->id), F_STR("verb", verb),
		  F_STR("kind", op_str(run->op, "kind")), F_STR("key", op_str(run->op, "key")));
	return true;
}

/* Create an object of the plan. Without force: one that a user has made meanwhile stays. */
static struct kube_call *send_create(struct run *run, const struct kube_resource *resource,
				     const json_t *wanted)
{
	const struct operator_kind *kind = operator_kind_find(op_str(run->op, "kind"));
	const struct kube_write how = write_of(run, NULL);
	struct kube_client *client = run->applier->config.client;
	json_auto_t *typed = json_copy((json_t *)wanted);

	/* Plans leave it out, their kind says it. */
	json_put(typed, "apiVersion",
		 json_fmt("%s%s%s", resource->group, *resource->group ? "/" : "",
			  resource->version));
	json_put_str(typed, "kind", resource->kind);
	if (kind && kind->created_by_name)
		return kube_patch(client, resource, json_namespace(wanted), json_name(wanted),
				  KUBE_PATCH_APPLY, typed, &how, on_written, run);
	return kube_create(client, resource, typed, &how, on_written, run);
}

/*
 * The op_* functions return true when they sent something and the run has to wait for the answer,
 * or when the run has ended.
 */
static bool op_apply(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	enum overtaken overtaken;
	const json_t *wanted = json_at(run->op, "object");
	const struct kube_write how = write_of(run, NULL);
	struct kube_client *client = run->applier->config.client;
	json_auto_t *patch = NULL;

	patch = present ? applier_patch(present, wanted) : NULL;
	if (present && !patch)
		return false;
	overtaken = is_overtaken(run);
	if (overtaken != OVERTAKEN_NOT)
		return overtaken == OVERTAKEN_RUN;
	/* Definitions follow from objects of users. Names of most other kinds are made once. */
	if (!present && str_eq(op_str(run->op, "kind"), KIND_NAD) &&
	    is_held_back(run, resource, wanted, wanted))
		return false;
	if (!present)
		return note_sent(run, "create", send_create(run, resource, wanted));
	if (is_held_back(run, resource, present, patch))
		return false;
	return note_sent(run, "patch",
			 kube_patch(client, resource, json_namespace(wanted), json_name(wanted),
				    KUBE_PATCH_MERGE, patch, &how, on_written, run));
}

/* True when this run leaves statuses, and what repeats them, to a later one. */
static bool status_waits(struct run *run)
{
	run->result.left |= run->statuses_wait;
	return run->statuses_wait;
}

/* A merge patch on the version that we know, unless that was overtaken. Takes patch. */
static bool send_patch(struct run *run, const struct kube_resource *resource, const json_t *present,
		       const char *verb, const char *subresource, json_t *patch)
{
	const struct kube_write how = write_of(run, subresource);
	json_auto_t *body = applier_patch_conditional(patch, present);
	enum overtaken overtaken = is_overtaken(run);

	if (overtaken != OVERTAKEN_NOT)
		return overtaken == OVERTAKEN_RUN;
	return note_sent(run, verb,
			 kube_patch(run->applier->config.client, resource, json_namespace(present),
				    json_name(present), applier_patch_type(resource, body), body,
				    &how, on_written, run));
}

static bool patch_status(struct run *run, const struct kube_resource *resource,
			 const json_t *present, json_t *difference)
{
	return !status_waits(run) && send_patch(run, resource, present, "status", "status",
						json_pack("{s:O}", "status", difference));
}

/*
 * The status is ours as a whole: what it has and we do not want goes. A PUT of it would cost the
 * server a quarter less, but to servers before 1.22 a body without spec and labels says that those
 * who wrote them, users by server-side apply or we, have given them up.
 */
static bool op_status(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	json_auto_t *difference =
		applier_patch_difference(json_at(present, "status"), json_at(run->op, "status"));

	return present && difference && patch_status(run, resource, present, difference);
}

/* Another client writes to the status as well: our members alone. */
static bool op_status_part(struct run *run, const struct kube_resource *resource,
			   const json_t *present)
{
	json_t *part = json_at(run->op, "status");

	return present && json_merge_changes(json_at(present, "status"), part) &&
	       patch_status(run, resource, present, part);
}

/* What the object is not any more is not an attempt; send_patch() decides again. */
static bool has_moved(const struct run *run)
{
	return version_now(run, run->op) != run->versions[run->next - 1];
}

/* True when the labels cannot go now: the Node moved, another client removes them, or no right. */
static bool labels_are_held_back(struct run *run, const struct kube_resource *resource,
				 const json_t *present, const json_t *patch)
{
	if (has_moved(run))
		return false;
	if (labels_wait(run) || is_held_back(run, resource, present, patch))
		return true;
	if (run->is_trial)
		run->applier->labels_again_ms = clock_ms() + APPLIER_LABELS_PAUSE_MS;
	return false;
}

static bool op_meta(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	const json_t *wanted = json_at(run->op, "metadata"), *status = json_at(run->op, "status");
	json_auto_t *patch = NULL;

	if (!present || (!status && !json_merge_changes(json_at(present, "metadata"), wanted)))
		return false;
	patch = json_pack("{s:o, s:O*}", "metadata", json_deep_copy(wanted), "status", status);
	if (is_labels(run) && labels_are_held_back(run, resource, present, patch))
		return false;
	return send_patch(run, resource, present, "meta", json_str_at(run->op, "subresource"),
			  json_incref(patch));
}

/* Of taints those that come count: whoever removes ours may add others, each time another one. */
static bool cordon_is_held_back(struct run *run, const struct kube_resource *resource,
				const json_t *present)
{
	json_auto_t *change = json_pack("{s:o, s:O}", "spec", json_copy(json_at(run->op, "spec")),
					"metadata", json_at(run->op, "metadata"));
	json_auto_t *added = json_array();
	const json_t *taint;
	size_t i;

	json_array_foreach (json_at(change, "spec", "taints"), i, taint)
		if (!json_find(json_at(present, "spec", "taints"), "key",
			       json_str_at(taint, "key")))
			json_array_append(added, (json_t *)taint);
	if (json_at(change, "spec", "taints"))
		json_put(json_at(change, "spec"), "taints", json_incref(added));
	return !has_moved(run) && is_held_back(run, resource, present, change);
}

static bool op_cordon(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	const json_t *spec = json_at(run->op, "spec"), *metadata = json_at(run->op, "metadata");

	if (!present ||
	    (!json_merge_changes(json_at(present, "spec"), spec) &&
	     !json_merge_changes(json_at(present, "metadata"), metadata)) ||
	    cordon_is_held_back(run, resource, present))
		return false;
	return send_patch(run, resource, present, "cordon", NULL,
			  json_pack("{s:o, s:o}", "spec", json_deep_copy(spec), "metadata",
				    json_deep_copy(metadata)));
}

static bool op_delete(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	const struct kube_write how = write_of(run, NULL);
	enum overtaken overtaken;

	if (!present || json_at(present, "metadata", "deletionTimestamp"))
		return false;
	overtaken = is_overtaken(run);
	if (overtaken != OVERTAKEN_NOT)
		return overtaken == OVERTAKEN_RUN;
	return note_sent(run, "delete",
			 kube_delete(run->applier->config.client, resource, json_namespace(present),
				     json_name(present), json_str_at(run->op, "uid"),
				     json_str_at(present, "metadata", "resourceVersion"), &how,
				     on_written, run));
}

static void on_evicted(void *arg, const struct kube_response *response, const struct err *err)
{
	struct run *run = arg;
	struct applier *applier = run->applier;
	const char *key = op_str(run->op, "key");
	json_auto_t *answer = NULL;

	run->call = NULL;
	if (!applier->evicts_old && eviction_is_version_unknown(response)) {
		applier->evicts_old = true;
		run->call = eviction_send(applier->config.client, true, key, op_str(run->op, "uid"),
					  on_evicted, run);
		return;
	}
	if (kube_err_is(err, "NotLeader")) {
		finish_run(run, err);
		return;
	}
	answer = eviction_answer(response, err);
	metric_add(applier->writes, 1, KIND_POD, "evict",
		   json_str_or(json_at(answer, "reason"), "ok"));
	if (!json_at(answer, "reason"))
		note_done(run);
	json_put_str(answer, "uid", op_str(run->op, "uid"));
	applier->config.evicted(run->arg, key, answer);
	proceed_run(run);
}

static bool op_evict(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	return note_sent(run, "evict",
			 eviction_send(run->applier->config.client, run->applier->evicts_old,
				       op_str(run->op, "key"), op_str(run->op, "uid"), on_evicted,
				       run));
}

static bool op_event(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	/* It says what the status says, and would be planned with it again. */
	if (!status_waits(run) && present)
		emit_event(run, resource, present, str_eq(op_str(run->op, "type"), "Warning"),
			   op_str(run->op, "reason"), op_str(run->op, "message"));
	return false;
}

static bool op_finding(struct run *run, const struct kube_resource *resource, const json_t *present)
{
	const struct applier_config *config = &run->applier->config;

	if (config->remember(run->arg, run->op, present) && present && json_at(run->op, "reason"))
		emit_event(run, resource, present, true, op_str(run->op, "reason"),
			   op_str(run->op, "message"));
	return false;
}

static bool carry_out_op(struct run *run)
{
	static const struct {
		const char *op;
		bool (*run)(struct run *run, const struct kube_resource *resource,
			    const json_t *present);
	} ops[] = {
		{"apply", op_apply},     {"status", op_status},           {"meta", op_meta},
		{"cordon", op_cordon},   {"delete", op_delete},           {"event", op_event},
		{"finding", op_finding}, {"status-part", op_status_part}, {"evict", op_evict},
	};
	const struct applier_config *config = &run->applier->config;
	const char *op = op_str(run->op, "op"), *kind = op_str(run->op, "kind");
	json_auto_t *present = NULL;

	if (str_eq(op, "requeue")) {
		again_after(run, json_integer_value(json_at(run->op, "after_ms")));
		return false;
	}
	if (str_eq(op, "post") && str_eq(op_str(run->op, "box"), BOX_LOOK)) {
		config->look(run->arg, op_str(run->op, "key"), json_at(run->op, "value"));
		return false;
	}
	if (str_eq(op, "report") || str_eq(op, "post")) {
		(void)config->remember(run->arg, run->op, NULL);
		return false;
	}
	present = cache_get(mirror_cache(config->mirror, kind), op_str(run->op, "key"));
	/* As an answer of 404 (on_written()): the rest of the plan may build on this write. */
	if (!present && group_of(run) && !str_eq(op, "delete") && is_overtaken(run))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (str_eq(op, ops[i].op))
			return ops[i].run(run, mirror_resource(config->mirror, kind), present);
	log_error("plan has an unknown operation", F_STR("op", op));
	return false;
}

static void proceed_run(struct run *run)
{
	while (run->next < json_array_size(run->ops)) {
		run->op = json_array_get(run->ops, run->next++);
		if (!is_left_out(run) && carry_out_op(run))
			return;
	}
	finish_run(run, NULL);
}

bool applier_is_writing(const struct applier *applier, const char *kind, const json_t *object)
{
	auto_free char *key = json_key(object);
	const struct run *run;

	TAILQ_FOREACH(run, &applier->runs, link)
	if (run->call && str_eq(run->verb, "status") && str_eq(op_str(run->op, "kind"), kind) &&
	    str_eq(op_str(run->op, "key"), key) && str_eq(op_str(run->op, "op"), "status") &&
	    json_same(json_at(run->op, "status"), json_at(object, "status")))
		return true;
	return false;
}

void applier_run(struct applier *applier, uint64_t id, struct plan *plan, bool statuses_wait,
		 applier_done_fn *done, void *arg)
{
	struct run *run = mem_new(struct run);

	assert(plan && done);
	run->applier = applier;
	run->id = id;
	run->statuses_wait = statuses_wait;
	run->ops = take_ptr(plan->ops);
	run->versions = mem_calloc(json_array_size(run->ops) + 1, sizeof(*run->versions));
	for (size_t i = 0; i < json_array_size(run->ops); i++)
		run->versions[i] = version_now(run, json_array_get(run->ops, i));
	run->result.again_ms = -1;
	run->done = done;
	run->arg = arg;
	TAILQ_INSERT_TAIL(&applier->runs, run, link);
	proceed_run(run);
}
