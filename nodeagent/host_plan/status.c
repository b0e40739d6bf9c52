// SPDX-License-Identifier: Apache-2.0
/*
 * First what is wrong is judged, worst first, then what is under way; conditions, syncStatus and
 * the list of problems are worded from these two verdicts, so that they agree. The agent composes a
 * status whenever it may write one (agent_wiring.c).
 */
#include "nodeagent/host_plan/status.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/impact.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/model/topology.h"

/* Troubles that a message spells out; the others are counted. */
#define NAMED_MAX 3
/* What of each is quoted. */
#define TOLD_TEXT "%.300s"

/* Why a condition is as it is, in the making. */
struct verdict {
	enum condition_status status; /* Progressing only */
	char reason[CONDITION_REASON_MAX + 1];
	struct strbuf message;
	size_t named; /* troubles in the message */
	size_t left;  /* more of them */
};

static void verdict_done(struct verdict *v)
{
	strbuf_done(&v->message);
}
#define auto_verdict auto_call(verdict_done)

/* ---- troubles -------------------------------------------------------------------------------- */

/* A reason that the API server would refuse is none. */
static void take_reason(struct verdict *v, const char *reason)
{
	if (!condition_reason_is_good(reason))
		reason = "Unspecified";
	(void)snprintf(v->reason, sizeof(v->reason), "%s", reason);
}

static void add_trouble(struct verdict *v, const json_t *trouble)
{
	const char *where = json_str_at(trouble, "pf");
	const char *text = json_str_or(json_at(trouble, "message"), "");

	if (!where)
		where = json_str_at(trouble, "pciAddress");
	if (v->named == 0)
		take_reason(v, json_str_at(trouble, "reason"));
	if (v->named == NAMED_MAX) {
		v->left++;
		return;
	}
	v->named++;
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
	assert(v->named <= NAMED_MAX && (v->named == NAMED_MAX || v->left == 0));
	if (v->left)
		strbuf_addf(&v->message, "; and %zu more", v->left);
}

bool status_is_answered(const json_t *plan, const json_t *failure)
{
	static const char *const answers[] = {"RebootDidNotHelp", "RebootsTooOften",
					      "BootsUnreadable"};
	bool is = json_at(plan, "reboot") || json_at(plan, "nextBoot");

	for (size_t i = 0; i < ARRAY_LEN(answers) && !is; i++)
		is = json_find(json_at(plan, "problems"), "reason", answers[i]) != NULL;
	return is && str_eq(json_str_at(failure, "reason"), "RdmaModeBusy");
}

static void add_failures(struct verdict *v, const struct status_input *in)
{
	json_t *failure;
	size_t i;

	json_array_foreach ((json_t *)in->failures, i, failure) {
		if (!status_is_answered(in->plan, failure))
			add_trouble(v, failure);
	}
}

/* All that keeps the node from being as wanted, worst first. Returns how many of it are faults. */
static size_t judge_trouble(const struct status_input *in, struct verdict *v)
{
	const json_t *reboot = json_at(in->plan, "reboot");
	size_t faults;

	add_failures(v, in);
	add_troubles(v, json_at(in->plan, "problems"));
	faults = v->named + v->left;
	add_troubles(v, json_at(in->plan, "blocked"));
	if (reboot)
		add_trouble(v, reboot);
	finish_troubles(v);
	return faults;
}

/* ---- work ------------------------------------------------------------------------------------ */

/*
 * How many steps are left that were not tried in vain; the first of them in *ret. What is tried
 * again is not progress: a status that goes to and fro with every attempt helps nobody.
 */
static size_t steps_left(const struct status_input *in, const json_t **ret)
{
	json_t *step, *failure;
	size_t i, k, n = 0;

	json_array_foreach (json_at(in->plan, "steps"), i, step) {
		bool has_failed = false;

		json_array_foreach ((json_t *)in->failures, k, failure)
			has_failed |= str_eq(json_str_at(failure, "pf"), json_str_at(step, "pf"));
		if (!has_failed && n++ == 0)
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

/* ---- conditions ------------------------------------------------------------------------------ */

static void put_condition(json_t *list, const struct status_input *in, const char *type,
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

	if (trouble->named) {
		put_condition(list, in, "Ready", CONDITION_FALSE, trouble);
		return;
	}
	if (progressing->status == CONDITION_TRUE) {
		put_condition(list, in, "Ready", in->plan ? CONDITION_FALSE : CONDITION_UNKNOWN,
			      progressing);
		return;
	}
	take_reason(&well, "AsWanted");
	strbuf_addf(&well.message, "the node was read back as wanted, with %lld VF%s", wanted,
		    wanted == 1 ? "" : "s");
	put_condition(list, in, "Ready", CONDITION_TRUE, &well);
}

/* True when there are such troubles. */
static void put_troubles(json_t *list, const struct status_input *in, const char *type,
			 struct verdict *v, const char *reason, const char *message)
{
	bool any = v->named > 0;

	finish_troubles(v);
	if (!any) {
		take_reason(v, reason);
		strbuf_adds(&v->message, message);
	}
	put_condition(list, in, type, any ? CONDITION_TRUE : CONDITION_FALSE, v);
}

static void put_reboot(json_t *list, const struct status_input *in)
{
	auto_verdict struct verdict v = {0};
	const json_t *reboot = json_at(in->plan, "reboot");
	const json_t *coming = json_at(in->plan, "nextBoot");

	if (reboot)
		add_trouble(&v, reboot);
	put_troubles(list, in, "RebootRequired", &v,
		     json_str_or(json_at(coming, "reason"), "NoRebootNeeded"),
		     json_str_or(json_at(coming, "message"), "nothing waits for a reboot"));
}

/* Do pods get networks by our plugins? Its own fact: VFs and resources do not depend on it. */
static void put_networks(json_t *list, const struct status_input *in)
{
	auto_verdict struct verdict v = {0};

	if (!in->networks)
		return;
	add_trouble(&v, in->networks);
	put_condition(list, in, "PodNetworks",
		      json_is_true(json_at(in->networks, "serves")) ? CONDITION_TRUE
								    : CONDITION_FALSE,
		      &v);
}

/*
 * Ports that are wanted, and whether all of them are healthy: not part of Ready, which is about
 * what the agent can do.
 */
static void put_links(json_t *list, const struct status_input *in)
{
	const json_t *ports = json_at(in->links, "ports"), *port;
	auto_verdict struct verdict v = {0};
	bool is_bad;
	size_t i;

	if (!in->links) {
		/* Nothing is judged any more. */
		for (i = json_array_size(list); in->observed && i-- > 0;)
			if (str_eq(json_str_at(json_array_get(list, i), "type"), "LinksHealthy"))
				json_array_remove(list, i);
		return;
	}
	json_array_foreach (ports, i, port)
		if (!str_eq(json_str_at(port, "verdict"), "healthy"))
			add_trouble(&v, port);
	finish_troubles(&v);
	is_bad = v.named > 0;
	if (!is_bad) {
		take_reason(&v, "LinkHealthy");
		strbuf_addf(&v.message, "all %zu ports are healthy", json_array_size(ports));
	}
	put_condition(list, in, "LinksHealthy", is_bad ? CONDITION_FALSE : CONDITION_TRUE, &v);
}

/* Conditions of others stay. */
static json_t *conditions_of(const struct status_input *in, const struct verdict *trouble,
			     const struct verdict *progressing)
{
	const json_t *before = json_at(in->before, "conditions");
	json_t *list = json_is_array(before) ? json_deep_copy(before) : json_array();
	auto_verdict struct verdict blocked = {0};
	auto_verdict struct verdict v = {0};

	put_ready(list, in, trouble, progressing);
	put_condition(list, in, "Progressing", progressing->status, progressing);
	/*
	 * What could not be looked at or offered is reported; the node may be as wanted all the
	 * same.
	 */
	add_failures(&v, in);
	add_troubles(&v, json_at(in->plan, "problems"));
	add_troubles(&v, json_at(in->observed, "problems"));
	add_troubles(&v, json_at(in->observed, "rails", "problems"));
	add_troubles(&v, in->container);
	add_troubles(&v, in->offers);
	if (json_is_true(json_at(in->networks, "fault")))
		add_trouble(&v, in->networks);
	put_troubles(list, in, "Degraded", &v, "NothingWrong", "nothing has failed");
	add_troubles(&blocked, json_at(in->plan, "blocked"));
	put_troubles(list, in, "Blocked", &blocked, "NothingBlocked",
		     "nothing waits for a pod to end");
	put_reboot(list, in);
	put_networks(list, in);
	put_links(list, in);
	return list;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* At most so many, as the schema in crds/ has it. */
#define PROBLEMS_MAX 32
#define BOOTS_MAX    8

static json_t *problem_json(const char *type, const json_t *trouble)
{
	struct verdict why = {0};
	json_t *problem = json_object();

	take_reason(&why, json_str_at(trouble, "reason"));
	json_put_str(problem, "type", type);
	json_put_str(problem, "pciAddress", json_str_at(trouble, "pf"));
	json_put_str(problem, "reason", why.reason);
	json_put(problem, "message",
		 condition_message(json_str_or(json_at(trouble, "message"), "")));
	return problem;
}

/* Has the list one of that type about that NIC, or about the node? */
static bool has_alike(const json_t *list, const json_t *problem)
{
	json_t *other;
	size_t i;

	json_array_foreach ((json_t *)list, i, other)
		if (json_same(json_at(other, "type"), json_at(problem, "type")) &&
		    json_same(json_at(other, "pciAddress"), json_at(problem, "pciAddress")))
			return true;
	return false;
}

/*
 * One by one, so that a policy can be told what concerns its own NICs. The first of a type and NIC
 * comes before the second of any, so that the 64 held VFs of one NIC leave room for the others.
 */
static void put_problems(json_t *status, const struct status_input *in)
{
	const struct {
		const char *type;
		const json_t *list;
	} kinds[] = {
		{"Degraded", in->failures},
		{"Degraded", json_at(in->plan, "problems")},
		{"Blocked", json_at(in->plan, "blocked")},
	};
	const json_t *reboot = json_at(in->plan, "reboot"), *trouble;
	json_auto_t *list = json_array(), *more = json_array();
	size_t i;

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		json_array_foreach (kinds[k].list, i, trouble)
			if (!status_is_answered(in->plan, trouble)) {
				json_t *problem = problem_json(kinds[k].type, trouble);

				json_array_append_new(has_alike(list, problem) ? more : list,
						      problem);
			}
	if (reboot)
		json_array_append_new(list, problem_json("RebootRequired", reboot));
	json_array_extend(list, more);
	while (json_array_size(list) > PROBLEMS_MAX)
		(void)json_array_remove(list, PROBLEMS_MAX);
	(void)json_object_del(status, "problems");
	if (json_array_size(list) > 0)
		json_object_set(status, "problems", list);
}

static void put_sync(json_t *status, const struct verdict *trouble, size_t faults,
		     const struct verdict *progressing)
{
	const char *sync = "Succeeded";

	if (faults > 0)
		sync = "Failed";
	else if (trouble->named > 0 || progressing->status == CONDITION_TRUE)
		sync = "InProgress";
	json_put_str(status, "syncStatus", sync);
	(void)json_object_del(status, "lastSyncError");
	if (faults > 0)
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
	(void)json_object_del(status, "links");
	json_put(status, "links", json_incref(json_at(in->observed, "node", "links")));
}

/* Which port is which rail; what is wrong with it is in the condition Degraded. */
static void put_rails(json_t *status, const json_t *observed)
{
	json_t *rails;

	if (!observed)
		return;
	(void)json_object_del(status, "rails");
	if (json_array_size(json_at(observed, "rails", "list")) == 0)
		return;
	rails = json_copy(json_at(observed, "rails"));
	(void)json_object_del(rails, "problems");
	json_put(status, "rails", rails);
}

static void put_topology(json_t *status, const json_t *observed)
{
	if (!observed)
		return;
	(void)json_object_del(status, "topology");
	json_put(status, "topology", topology_compose(observed));
}

/* Which boot this is, the last reboots that we asked for, and for what in vain. */
static void put_boots(json_t *status, const struct status_input *in)
{
	const json_t *boots = json_at(in->observed, "boots"), *asked = json_at(boots, "asked");
	size_t n = json_array_size(asked), i = n > BOOTS_MAX ? n - BOOTS_MAX : 0;
	json_t *ret, *list;

	if (!in->observed)
		return;
	(void)json_object_del(status, "boots");
	if (!json_str_at(boots, "id"))
		return;
	ret = json_object();
	json_put_str(ret, "id", json_str_at(boots, "id"));
	list = json_array();
	for (; i < n; i++) {
		json_t *entry = json_copy(json_array_get(asked, i));

		/* The host's own business. */
		(void)json_object_del(entry, "due");
		(void)json_object_del(entry, "overdue");
		json_array_append_new(list, entry);
	}
	if (n > 0)
		json_object_set(ret, "asked", list);
	json_decref(list);
	json_put_str(ret, "inVain", json_str_at(in->plan, "inVain", "cause"));
	json_put(status, "boots", ret);
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

/* GIDs that are told of one interface: both versions of an IPv4 and an IPv6 address. */
enum { ATTACHED_GIDS_MAX = 4 };

/*
 * GIDs of the interface's addresses, new; NULL: none is known. An address may be at several
 * devices, where networks overlap: then those of the interface's own name count, as the kernel
 * names it.
 */
static json_t *attached_gids(const json_t *entry, const json_t *gids)
{
	const char *interface = json_str_at(entry, "interface");
	json_auto_t *own = json_array(), *all = json_array();
	json_t *address, *gid;
	size_t i, k;

	json_array_foreach (json_at(entry, "addresses"), i, address) {
		const char *text = json_str_or(address, "");
		auto_free char *plain = str_ndup(text, strcspn(text, "/"));

		json_array_foreach (json_object_get(gids, plain), k, gid) {
			bool is_own = str_eq(json_str_at(gid, "netdev"), interface);
			json_t *told = json_copy(gid);

			(void)json_object_del(told, "netdev");
			json_put_str(told, "address", plain);
			json_array_append(all, told);
			if (is_own)
				json_array_append(own, told);
			json_decref(told);
		}
	}
	if (json_array_size(own)) {
		json_replace(&all, json_incref(own));
	}
	while (json_array_size(all) > ATTACHED_GIDS_MAX)
		json_array_remove(all, ATTACHED_GIDS_MAX);
	return json_array_size(all) ? json_incref(all) : NULL;
}

/*
 * One entry for each interface of a pod: what its plugins have, together; those that are on their
 * way are left out.
 */
static json_t *attachments_of(const json_t *attached, const json_t *gids)
{
	static const char *const members[] = {"device", "rdmaDevice", "guid", "mac", "addresses"};
	json_t *list = json_array();
	json_auto_t *by_interface = json_object();
	const json_t *item;
	size_t i;

	json_array_foreach ((json_t *)attached, i, item) {
		auto_free char *pod =
			str_printf("%s/%s", json_str_or(json_at(item, "pod", "namespace"), ""),
				   json_str_or(json_at(item, "pod", "name"), ""));
		const char *interface = json_str_or(json_at(item, "ifname"), "");
		auto_free char *key = str_printf("%s %s", pod, interface);
		json_t *entry = json_object_get(by_interface, key);

		if (!str_eq(json_str_at(item, "phase"), "added"))
			continue;
		if (!entry) {
			entry = json_object();
			json_put_str(entry, "pod", pod);
			json_put_str(entry, "interface", interface);
			json_put_str(entry, "network", json_str_at(item, "network"));
			json_array_append_new(list, entry);
			json_put(by_interface, key, json_incref(entry));
		}
		for (size_t m = 0; m < ARRAY_LEN(members); m++)
			json_put(entry, members[m], json_incref(json_at(item, members[m])));
	}
	json_array_foreach (list, i, item)
		json_put((json_t *)item, "gids", attached_gids(item, gids));
	return list;
}

json_t *status_compose(const struct status_input *input)
{
	json_t *ret = json_is_object(input->before) ? json_deep_copy(input->before) : json_object();
	auto_verdict struct verdict trouble = {0}, progressing = {0};

	assert(input->now);
	size_t faults = judge_trouble(input, &trouble);

	judge_progressing(input, &progressing);
	(void)json_object_del(ret, "observedGeneration");
	if (input->generation > 0)
		json_put_int(ret, "observedGeneration", input->generation);
	json_put(ret, "conditions", conditions_of(input, &trouble, &progressing));
	put_sync(ret, &trouble, faults, &progressing);
	put_problems(ret, input);
	put_observed(ret, input);
	put_rails(ret, input->observed);
	put_topology(ret, input->observed);
	if (input->observed)
		(void)json_object_del(ret, "linkHealth");
	json_put(ret, "linkHealth", json_incref((json_t *)input->links));
	if (input->host_findings)
		(void)json_object_del(ret, "hostFindings");
	if (json_array_size(input->host_findings) > 0)
		json_put(ret, "hostFindings", json_deep_copy(input->host_findings));
	put_vfs(ret, input->plan);
	/* It is of this plan or of none: what an earlier one cost is nothing to act upon. */
	(void)json_object_del(ret, "impact");
	if (input->plan)
		json_put(ret, "impact", plan_impact(input->plan, input->withdrawn));
	put_boots(ret, input);
	if (input->version)
		json_put_str(ret, "agentVersion", input->version);
	(void)json_object_del(ret, "agentPod");
	json_put_str(ret, "agentPod", input->pod);
	/* The operator's word on an agent that was away. */
	(void)json_object_del(ret, "agentSilentSince");
	(void)json_object_del(ret, "resources");
	if (input->resources)
		json_put(ret, "resources", json_deep_copy(input->resources));
	if (input->attachments) {
		json_auto_t *attachments = attachments_of(input->attachments, input->gids);

		(void)json_object_del(ret, "attachments");
		if (json_array_size(attachments) > 0)
			json_put(ret, "attachments", json_incref(attachments));
	}
	return ret;
}
