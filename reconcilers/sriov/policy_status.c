// SPDX-License-Identifier: Apache-2.0
/*
 * Reports of nodes are tallied in one pass, which keeps the worst voices; conditions are judged
 * from the tally, the explanation lists problems and voices until its lines are used up.
 */
#include "reconcilers/sriov/policy_status.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/sriov/policy_report.h"
#include "reconcilers/sriov/sriov_policy.h"

/* Labels of nodeSelector that a message quotes. */
#define QUOTED_LABELS 4

/* A node with something to report. */
struct voice {
	const char *node;
	const char *why;
	enum policy_standing standing;
	const char *reason;
	int64_t failing; /* selectors; of a node without a PF to match */
	bool plain;      /* the PF that comes closest can have no VFs */
};

struct tally {
	int64_t selected;
	int64_t reported; /* of the selected: the agent has said which NICs there are */
	int64_t matched;
	int64_t ready;
	int64_t wanted;
	int64_t present;
	/* Worst first, then those that come closest to a match, then by name. */
	struct voice *voices;
	size_t voices_len;
};

static void tally_done(struct tally *t)
{
	free(t->voices);
}

struct verdict {
	bool is_true;
	const char *reason; /* borrowed */
	struct strbuf message;
};

static void verdict_done(struct verdict *v)
{
	strbuf_done(&v->message);
}
#define auto_verdict auto_call(verdict_done)

/* ---- adding up ------------------------------------------------------------------------------- */

static int voice_order(const void *a, const void *b)
{
	const struct voice *x = a, *y = b;

	if (x->standing != y->standing)
		return x->standing > y->standing ? -1 : 1;
	if (x->failing != y->failing)
		return x->failing < y->failing ? -1 : 1;
	if (x->plain != y->plain)
		return x->plain ? 1 : -1;
	return strcmp(x->node, y->node);
}

/* Counts go into int32 fields. */
static int64_t count_at(const json_t *report, const char *key)
{
	int64_t value = json_integer_value(json_object_get(report, key));

	return value < 0 ? 0 : value > INT32_MAX ? INT32_MAX : value;
}

static int64_t add(int64_t a, int64_t b)
{
	return a + b > INT32_MAX ? INT32_MAX : a + b;
}

static void tally_reports(struct tally *t, const json_t *reports)
{
	const char *node;
	json_t *report;

	t->voices = mem_calloc(json_object_size(reports) + 1, sizeof(*t->voices));
	json_each (reports, node, report) {
		bool matched = json_is_true(json_object_get(report, "matched"));
		const char *why = json_str_at(report, "why");

		t->selected++;
		t->reported += json_is_true(json_object_get(report, "reported"));
		t->matched += matched;
		t->ready += matched && json_is_true(json_object_get(report, "ready"));
		t->wanted = add(t->wanted, count_at(report, "wantedVfs"));
		t->present = add(t->present, count_at(report, "presentVfs"));
		if (str_empty(why))
			continue;
		t->voices[t->voices_len++] = (struct voice){
			.node = node,
			.why = why,
			.standing = policy_standing_find(json_str_at(report, "reason")),
			.reason = policy_report_reason(report),
			.failing = count_at(report, "failing"),
			.plain = json_is_true(json_object_get(report, "plain")),
		};
	}
	qsort(t->voices, t->voices_len, sizeof(*t->voices), voice_order);
}

/* The worst node that will get there by itself, or with time. */
static const struct voice *find_progressing(const struct tally *t)
{
	for (size_t i = 0; i < t->voices_len; i++)
		if (policy_standing_info(t->voices[i].standing)->progressing)
			return &t->voices[i];
	return NULL;
}

static const struct voice *find_degraded(const struct tally *t)
{
	for (size_t i = 0; i < t->voices_len; i++)
		if (policy_standing_info(t->voices[i].standing)->degraded)
			return &t->voices[i];
	return NULL;
}

/*
 * The worst node that keeps the policy from being ready. A node without a PF to match does not
 * while others have one.
 */
static const struct voice *find_obstacle(const struct tally *t)
{
	for (size_t i = 0; i < t->voices_len; i++) {
		enum policy_standing standing = t->voices[i].standing;

		if (policy_standing_info(standing)->ready)
			continue;
		if (t->matched > 0 && standing == STANDING_NO_NIC)
			continue;
		return &t->voices[i];
	}
	return NULL;
}

/* ---- judging --------------------------------------------------------------------------------- */

static void say_voice(struct verdict *v, const struct voice *voice)
{
	const struct policy_standing_info *info = policy_standing_info(voice->standing);

	v->reason = voice->reason;
	strbuf_addf(&v->message, "node %s ", voice->node);
	strbuf_add(&v->message, voice->why, strcspn(voice->why, "\n"));
	if (!str_empty(info->remedy))
		strbuf_addf(&v->message, "; %s", info->remedy);
}

static void say_text(struct verdict *v, const char *reason, const char *text)
{
	v->reason = reason;
	strbuf_adds(&v->message, text);
}

static void say_problems(struct verdict *v, const char *key, const struct problems *problems)
{
	auto_free char *text = problems_text(problems);

	v->reason = problems_reason(problems);
	strbuf_addf(&v->message, "policy %s: %s", key, text);
}

static void say_nobody_selected(struct verdict *v, const json_t *policy)
{
	const json_t *pairs = json_at(policy, "spec", "nodeSelector");
	const char *key;
	json_t *value;
	size_t n = 0;

	v->reason = "NoNodeSelected";
	if (json_object_size(pairs) == 0) {
		strbuf_adds(&v->message, "there is no node");
		return;
	}
	strbuf_adds(&v->message, "no node has all labels of spec.nodeSelector (");
	json_each (pairs, key, value) {
		if (n++ == QUOTED_LABELS)
			break;
		strbuf_addf(&v->message, "%s%s=%s", n > 1 ? ", " : "", key, json_str_or(value, ""));
	}
	strbuf_addf(&v->message, "%s); label a node or correct nodeSelector",
		    n > QUOTED_LABELS ? ", ..." : "");
}

static const char *plural(int64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* Problems with which a policy never does anything, whatever nodes report. */
static bool is_idle(const struct problems *problems)
{
	return str_eq(problems_reason(problems), "NicSelectorEmpty") ||
	       str_eq(problems_reason(problems), "NumVfsZero");
}

static void judge_ready(struct verdict *v, const char *key, const json_t *policy, bool refused,
			const struct problems *problems, const struct tally *t)
{
	const struct voice *obstacle = find_obstacle(t);

	if (problems->total == 0 && sriov_policy_is_upstreams_own(policy)) {
		v->is_true = true;
		say_text(v, "UpstreamDefault",
			 "the SR-IOV network operator made it, and it asks for nothing; delete it "
			 "once that operator is gone");
		return;
	}
	if (refused || is_idle(problems)) {
		say_problems(v, key, problems);
		return;
	}
	if (t->selected == 0) {
		say_nobody_selected(v, policy);
		return;
	}
	v->is_true = t->matched > 0 && t->ready == t->matched && t->reported == t->selected;
	if (v->is_true) {
		v->reason = "NodesReady";
		strbuf_addf(&v->message, "%lld %s ready, %lld %s", (long long)t->matched,
			    plural(t->matched, "node", "nodes"), (long long)t->present,
			    plural(t->present, "VF", "VFs"));
		return;
	}
	if (t->matched == 0)
		strbuf_addf(&v->message,
			    "nicSelector picks no PF on %lld selected %s: ", (long long)t->selected,
			    plural(t->selected, "node", "nodes"));
	else
		strbuf_addf(&v->message,
			    "%lld of %lld %s ready, %lld of %lld VFs: ", (long long)t->ready,
			    (long long)t->matched, plural(t->matched, "node", "nodes"),
			    (long long)t->present, (long long)t->wanted);
	if (t->matched > 0 && t->reported < t->selected)
		strbuf_addf(&v->message,
			    "%lld of %lld selected %s reported NICs: ", (long long)t->reported,
			    (long long)t->selected, plural(t->selected, "node has", "nodes have"));
	if (obstacle)
		say_voice(v, obstacle);
	else if (t->matched == 0)
		say_text(v, "NoNicMatches", "correct nicSelector");
	else
		say_text(v, "NodesNotReady",
			 "the others give no reason; wait, and if this lasts, see the "
			 "SriovNetworkNodeState of each");
}

static void judge_progressing(struct verdict *v, bool refused, const struct tally *t,
			      const struct verdict *ready)
{
	const struct voice *voice = refused ? NULL : find_progressing(t);

	if (voice)
		say_voice(v, voice);
	else if (str_eq(ready->reason, "NodesNotReady"))
		say_text(v, ready->reason, strbuf_str(&ready->message));
	v->is_true = v->reason;
	if (v->is_true)
		return;
	v->reason = "NothingToDo";
	strbuf_adds(&v->message, refused ? "the policy is not applied"
					 : "there is nothing that passes by itself");
}

static void judge_degraded(struct verdict *v, const char *key, const struct problems *problems,
			   const struct tally *t, const struct verdict *ready)
{
	const struct voice *voice = find_degraded(t);
	/* A silent node reports nothing. */
	bool is_in_vain = !ready->is_true && t->matched == 0 && t->reported == t->selected;

	v->is_true = problems->total > 0 || voice || is_in_vain;
	if (problems->total > 0)
		say_problems(v, key, problems);
	else if (voice)
		say_voice(v, voice);
	else if (is_in_vain)
		say_text(v, ready->reason, strbuf_str(&ready->message));
	else {
		v->reason = "AsExpected";
		strbuf_adds(&v->message, "nothing is wrong");
	}
}

/* ---- the status ------------------------------------------------------------------------------ */

struct explanation {
	json_t *lines;
	size_t max;
	size_t left_out;
};

/* The last line is kept for saying how many there is no room for. */
static bool has_room(const struct explanation *e)
{
	return json_array_size(e->lines) < e->max - 1;
}

static void explain(struct explanation *e, const char *text, size_t len)
{
	if (!has_room(e)) {
		e->left_out++;
		return;
	}
	json_array_append_new(e->lines,
			      json_stringn(text, str_clip(text, len, POLICY_EXPLANATION_LINE_MAX)));
}

static json_t *explanation_json(const struct problems *problems, const struct tally *t,
				size_t lines_max)
{
	struct explanation e = {.lines = json_array(), .max = lines_max};
	const json_t *problem;
	size_t k;

	json_array_foreach (problems->list, k, problem) {
		auto_free char *line = str_printf("%s: %s", json_str_at(problem, "field"),
						  json_str_at(problem, "message"));

		explain(&e, line, strlen(line));
	}
	for (size_t i = 0; i < t->voices_len; i++) {
		const char *line = t->voices[i].why;

		/* One line of the explanation for each line of the node. */
		while (*line) {
			auto_strbuf struct strbuf item = {0};
			size_t len = strcspn(line, "\n");

			if (has_room(&e)) {
				strbuf_addf(&item, "node %s ", t->voices[i].node);
				strbuf_add(&item, line, len);
			}
			explain(&e, strbuf_str(&item), item.len);
			line += len + (line[len] == '\n');
		}
	}
	if (e.left_out > 0)
		json_array_append_new(e.lines, json_fmt("and %zu lines more", e.left_out));
	return e.lines;
}

static void set_condition(json_t *conditions, const json_t *policy, const char *type,
			  const struct verdict *v, const char *now)
{
	condition_set(conditions, json_at(policy, "status", "conditions"), type,
		      v->is_true ? CONDITION_TRUE : CONDITION_FALSE, v->reason,
		      strbuf_str(&v->message), json_generation(policy), now);
}

json_t *policy_status_json(const json_t *world, const char *key, const json_t *reports,
			   size_t lines_max)
{
	const json_t *policy = world_get(world, KIND_POLICY, key);
	const char *now = world_env(world, "now");
	auto_verdict struct verdict ready = {0}, progressing = {0}, degraded = {0};
	auto_problems struct problems problems = {0};
	auto_call(tally_done) struct tally tally = {0};
	json_t *status, *conditions, *lines;
	struct sriov_policy parsed;
	bool refused;

	assert(key && lines_max > 0);
	trust_check(world, policy, &problems);
	sriov_policy_check(policy, &problems);
	refused = !object_is_trusted(world, policy) || sriov_policy_is_reserved(policy) ||
		  sriov_policy_parse(key, policy, &parsed, NULL) < 0;
	if (!refused)
		tally_reports(&tally, reports);

	judge_ready(&ready, key, policy, refused, &problems, &tally);
	judge_progressing(&progressing, refused, &tally, &ready);
	judge_degraded(&degraded, key, &problems, &tally, &ready);

	status = json_object();
	json_put_int(status, "observedGeneration", json_generation(policy));
	json_put_int(status, "selectedNodes", tally.selected);
	json_put_int(status, "reportingNodes", tally.reported);
	json_put_int(status, "matchedNodes", tally.matched);
	json_put_int(status, "readyNodes", tally.ready);
	json_put_int(status, "wantedVfs", tally.wanted);
	json_put_int(status, "presentVfs", tally.present);
	lines = explanation_json(&problems, &tally, lines_max);
	if (json_array_size(lines) > 0)
		json_object_set(status, "explanation", lines);
	json_decref(lines);
	conditions = json_array();
	json_put(status, "conditions", conditions);
	set_condition(conditions, policy, "Ready", &ready, now);
	set_condition(conditions, policy, "Progressing", &progressing, now);
	set_condition(conditions, policy, "Degraded", &degraded, now);
	return status;
}

int policy_status_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err)
{
	const json_t *policy = world_get(world, KIND_POLICY, key);
	json_t *status;

	assert(key && plan);
	if (!policy)
		return 0;
	status = policy_status_json(world, key, world_kind(world, KIND_POLICY_REPORT),
				    POLICY_EXPLANATION_MAX);
	conditions_emit(plan, KIND_POLICY, key, json_at(policy, "status", "conditions"),
			json_at(status, "conditions"));
	plan_status(plan, KIND_POLICY, key, status);
	return 0;
}
