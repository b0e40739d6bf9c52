/*
 * NodeState.status. See the header.
 */
#include "nodeagent/status.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "nodeagent/host/observed.h"

/* Troubles that a message spells out; the others are counted. */
#define TOLD_MAX 3
/* What of each is quoted. */
#define TOLD_TEXT "%.300s"

/* Why a condition is as it is, in the making. */
struct verdict {
	enum condition_status status; /* Progressing only */
	char reason[64];
	struct strbuf message;
	size_t told; /* troubles in the message */
	size_t left; /* more of them */
};

static void verdict_done(struct verdict *v)
{
	strbuf_done(&v->message);
}
#define auto_verdict auto_call(verdict_done)

/* ---- troubles ------------------------------------------------------------------------------------------------------------------- */

/* A reason that the API server would refuse is none. */
static void take_reason(struct verdict *v, const char *reason)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789";
	size_t len = reason ? strspn(reason, letters) : 0;

	if (len == 0 || reason[len] || len >= sizeof(v->reason) || strchr("0123456789", *reason))
		reason = "Unspecified";
	(void)snprintf(v->reason, sizeof(v->reason), "%s", reason);
}

static void add_trouble(struct verdict *v, const json_t *trouble)
{
	const char *where = json_str_at(trouble, "pf");
	const char *text = json_str_or(json_at(trouble, "message"), "");

	if (!where)
		where = json_str_at(trouble, "pciAddress");
	if (v->told == 0)
		take_reason(v, json_str_at(trouble, "reason"));
	if (v->told == TOLD_MAX) {
		v->left++;
		return;
	}
	v->told++;
	if (v->message.len)
		strbuf_adds(&v->message, "; ");
	if (where)
		strbuf_addf(&v->message, "%.40s: ", where);
	strbuf_addf(&v->message, TOLD_TEXT, text);
}

static void add_troubles(struct verdict *v, const json_t *list)
{
	json_t *trouble;
	size_t i;

	json_array_foreach ((json_t *)list, i, trouble)
		add_trouble(v, trouble);
}

static void finish_troubles(struct verdict *v)
{
	if (v->left)
		strbuf_addf(&v->message, "; and %zu more", v->left);
}

/* That the kernel does not change the RDMA mode now is no failure once a reboot is asked for instead. */
static void add_failures(struct verdict *v, const struct status_input *in)
{
	json_t *failure;
	size_t i;

	json_array_foreach ((json_t *)in->failures, i, failure) {
		if (!json_at(in->plan, "reboot") ||
		    !str_eq(json_str_at(failure, "reason"), "RdmaModeBusy"))
			add_trouble(v, failure);
	}
}

/* All that keeps the node from being as wanted, worst first. */
static void judge_trouble(const struct status_input *in, struct verdict *v)
{
	const json_t *reboot = json_at(in->plan, "reboot");

	add_failures(v, in);
	add_troubles(v, json_at(in->plan, "problems"));
	add_troubles(v, json_at(in->plan, "blocked"));
	if (reboot)
		add_trouble(v, reboot);
	finish_troubles(v);
}

/* ---- work ----------------------------------------------------------------------------------------------------------------------- */

/* What is tried again is no progress: a status that goes to and fro with every attempt helps nobody. */
static bool has_failed(const struct status_input *in, const json_t *step)
{
	json_t *failure;
	size_t i;

	json_array_foreach ((json_t *)in->failures, i, failure) {
		if (str_eq(json_str_at(failure, "pf"), json_str_at(step, "pf")))
			return true;
	}
	return false;
}

/* How many steps are left that were not tried in vain; the first of them in *ret. */
static size_t steps_left(const struct status_input *in, const json_t **ret)
{
	json_t *step;
	size_t i, n = 0;

	json_array_foreach (json_at(in->plan, "steps"), i, step) {
		if (!has_failed(in, step) && n++ == 0)
			*ret = step;
	}
	return n;
}

static void judge_progressing(const struct status_input *in, struct verdict *v)
{
	const json_t *first = NULL;
	size_t n = steps_left(in, &first);
	const char *pf = json_str_at(first, "pf");

	v->status = CONDITION_TRUE;
	if (n > 0) {
		take_reason(v, "Working");
		strbuf_addf(&v->message, "%zu step%s left%s%.40s, first %s: " TOLD_TEXT "; wait", n,
			    n == 1 ? "" : "s", pf ? ", " : "", pf ? pf : "",
			    json_str_or(json_at(first, "step", "step"), "one"),
			    json_str_or(json_at(first, "why"), ""));
		return;
	}
	if (in->activity && json_array_size(in->failures) == 0) {
		take_reason(v, "Working");
		strbuf_adds(&v->message, "the agent is at work; wait");
		return;
	}
	if (!in->plan && json_array_size(in->failures) == 0) {
		take_reason(v, "NotLookedYet");
		strbuf_adds(&v->message, "the agent has just started and looks at the host; wait");
		return;
	}
	v->status = CONDITION_FALSE;
	take_reason(v, "NothingToDo");
	strbuf_adds(&v->message, "there is nothing that the agent could do now");
}

/* ---- conditions --------------------------------------------------------------------------------------------------------------------- */

static void put(json_t *list, const struct status_input *in, const char *type,
		enum condition_status status, const struct verdict *why)
{
	condition_set(list, json_at(in->before, "conditions"), type, status, why->reason,
		      strbuf_str(&why->message), in->generation, in->now);
}

static void put_ready(json_t *list, const struct status_input *in, const struct verdict *trouble,
		      const struct verdict *progressing)
{
	auto_verdict struct verdict well = {0};
	long long wanted = json_integer_value(json_at(in->plan, "vfs", "wanted"));

	if (trouble->told) {
		put(list, in, "Ready", CONDITION_FALSE, trouble);
		return;
	}
	if (progressing->status == CONDITION_TRUE) {
		put(list, in, "Ready", in->plan ? CONDITION_FALSE : CONDITION_UNKNOWN, progressing);
		return;
	}
	take_reason(&well, "AsWanted");
	strbuf_addf(&well.message, "the node was read back as wanted, with %lld VF%s", wanted,
		    wanted == 1 ? "" : "s");
	put(list, in, "Ready", CONDITION_TRUE, &well);
}

/* True when there are such troubles. */
static void put_troubles(json_t *list, const struct status_input *in, const char *type,
			 struct verdict *v, const char *reason, const char *message)
{
	bool any = v->told > 0;

	finish_troubles(v);
	if (!any) {
		take_reason(v, reason);
		strbuf_adds(&v->message, message);
	}
	put(list, in, type, any ? CONDITION_TRUE : CONDITION_FALSE, v);
}

/* What could not be looked at is told, but the node may be as wanted all the same. */
static void put_degraded(json_t *list, const struct status_input *in)
{
	auto_verdict struct verdict v = {0};

	add_failures(&v, in);
	add_troubles(&v, json_at(in->plan, "problems"));
	add_troubles(&v, json_at(in->observed, "problems"));
	put_troubles(list, in, "Degraded", &v, "NothingWrong", "nothing has failed");
}

static void put_blocked(json_t *list, const struct status_input *in)
{
	auto_verdict struct verdict v = {0};

	add_troubles(&v, json_at(in->plan, "blocked"));
	put_troubles(list, in, "Blocked", &v, "NothingBlocked", "nothing waits for a pod to end");
}

static void put_reboot(json_t *list, const struct status_input *in)
{
	auto_verdict struct verdict v = {0};
	const json_t *reboot = json_at(in->plan, "reboot");

	if (reboot)
		add_trouble(&v, reboot);
	put_troubles(list, in, "RebootRequired", &v, "NoRebootNeeded",
		     "nothing waits for a reboot");
}

/* Conditions of others stay. */
static json_t *conditions_of(const struct status_input *in, const struct verdict *trouble,
			     const struct verdict *progressing)
{
	const json_t *before = json_at(in->before, "conditions");
	json_t *list = json_is_array(before) ? json_deep_copy(before) : json_array();

	put_ready(list, in, trouble, progressing);
	put(list, in, "Progressing", progressing->status, progressing);
	put_degraded(list, in);
	put_blocked(list, in);
	put_reboot(list, in);
	return list;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------- */

static void put_sync(json_t *status, const struct verdict *trouble,
		     const struct verdict *progressing)
{
	json_put_str(status, "syncStatus",
		     trouble->told                           ? "Failed"
		     : progressing->status == CONDITION_TRUE ? "InProgress"
							     : "Succeeded");
	(void)json_object_del(status, "lastSyncError");
	if (trouble->told)
		json_put(status, "lastSyncError", condition_message(strbuf_str(&trouble->message)));
}

static void put_observed(json_t *status, const struct status_input *in)
{
	const char *mode = json_str_at(in->observed, "rdma", "netnsMode");

	if (!in->observed)
		return;
	json_put(status, "interfaces", observed_status_interfaces(in->observed));
	(void)json_object_del(json_need_object(status, "system"), "rdmaMode");
	json_put_str(json_need_object(status, "system"), "rdmaMode", mode);
}

static void put_vfs(json_t *status, const json_t *plan)
{
	const json_t *wanted = json_at(plan, "vfs", "wanted");
	const json_t *present = json_at(plan, "vfs", "present");

	if (wanted)
		json_put_int(status, "wantedVfs", json_integer_value(wanted));
	if (present)
		json_put_int(status, "presentVfs", json_integer_value(present));
}

json_t *status_compose(const struct status_input *input)
{
	json_t *ret = json_is_object(input->before) ? json_deep_copy(input->before) : json_object();
	auto_verdict struct verdict trouble = {0}, progressing = {0};

	judge_trouble(input, &trouble);
	judge_progressing(input, &progressing);
	(void)json_object_del(ret, "observedGeneration");
	if (input->generation > 0)
		json_put_int(ret, "observedGeneration", input->generation);
	json_put(ret, "conditions", conditions_of(input, &trouble, &progressing));
	put_sync(ret, &trouble, &progressing);
	put_observed(ret, input);
	put_vfs(ret, input->plan);
	(void)json_object_del(ret, "resources");
	if (input->resources)
		json_put(ret, "resources", json_deep_copy(input->resources));
	return ret;
}
