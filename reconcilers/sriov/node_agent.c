// SPDX-License-Identifier: Apache-2.0
/*
 * node_state.c asks for each node. Pods of the node are looked at for the newest agent, its absence
 * is dated by what was remembered, and the message names what the pod waits for.
 */
#include "reconcilers/sriov/node_agent.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/core/reconcile.h"

#define GRACE_US (NODE_AGENT_GRACE_S * INT64_C(1000000))
/* Of names that a message has, so that the command at its end is never cut. */
#define QUOTE "%.63s"

/* What the pods on the node say together. */
struct pods {
	const json_t *newest; /* that may have an agent; NULL: there is none */
	int64_t newest_us;
	int64_t since_us; /* none of them has an agent since */
	int64_t turns_us; /* one that has started again counts from then on; 0: none has */
	bool have_agent;
	/*
	 * The Node's condition Ready is Unknown: the kubelet has been silent for 40 s, by default,
	 * and what it said of containers is as old.
	 */
	bool cut_off;
};

void node_agent_done(struct node_agent *agent)
{
	mem_free(agent->message);
}

static int64_t time_at(const json_t *text)
{
	int64_t us;

	return rfc3339_read(json_str_or(text, ""), &us) ? us : 0;
}

static const json_t *agent_container(const json_t *pod)
{
	return json_array_get(json_at(pod, "status", "containerStatuses"), 0);
}

/*
 * One that runs and is not ready says itself what it waits for. One that has ended before may do so
 * again: it counts once it has run for the grace time.
 */
static void look_at_pod(struct pods *pods, const json_t *pod, int64_t now)
{
	const json_t *conditions = json_at(pod, "status", "conditions");
	const json_t *container = agent_container(pod),
		     *going = json_at(pod, "metadata", "deletionTimestamp");
	const json_t *running = pods->cut_off ? NULL : json_at(container, "state", "running");
	int64_t created = time_at(json_at(pod, "metadata", "creationTimestamp"));
	int64_t since = time_at(json_at(condition_find(conditions, "Ready"), "lastTransitionTime"));
	int64_t steady = time_at(json_at(running, "startedAt")) + GRACE_US;
	bool again = json_integer_value(json_at(container, "restartCount")) > 0;

	if (!pods->newest || created >= pods->newest_us) {
		pods->newest = pod;
		pods->newest_us = created;
	}
	if (going)
		since = time_at(going);
	else if (str_eq(condition_status_of(conditions, "Ready"), "True") ||
		 (running && (!again || steady <= now)))
		pods->have_agent = true;
	else if (running && (!pods->turns_us || steady < pods->turns_us))
		pods->turns_us = steady;
	if (since < created)
		since = created;
	if (since > pods->since_us)
		pods->since_us = since;
}

static struct pods look_at_pods(const json_t *world, const char *node, int64_t now)
{
	const json_t *conditions =
		json_at(world_get(world, KIND_NODE, node), "status", "conditions");
	struct pods pods = {.cut_off = str_eq(condition_status_of(conditions, "Ready"), "Unknown")};
	const char *key;
	json_t *pod;

	json_each (world_kind(world, KIND_AGENT_POD), key, pod)
		if (str_eq(json_str_at(pod, "spec", "nodeName"), node) && !pod_has_terminated(pod))
			look_at_pod(&pods, pod, now);
	return pods;
}

/* No agent has ever written its status. */
static bool is_silent(const json_t *state)
{
	const json_t *status = json_at(state, "status");

	return str_empty(json_str_at(status, "syncStatus")) &&
	       !json_is_integer(json_at(status, "observedGeneration")) &&
	       json_array_size(json_at(status, "interfaces")) == 0;
}

/* When the operator said so the last time, and the agent has not written since. */
static const json_t *said_of(const json_t *state)
{
	const json_t *ready = condition_find(json_at(state, "status", "conditions"), "Ready");

	return str_eq(json_str_at(ready, "reason"), "NoAgent")
		       ? json_at(state, "status", "agentSilentSince")
		       : NULL;
}

/* What the container waits for, or how it ended: CrashLoopBackOff, ImagePullBackOff, Error. */
static const char *trouble_of(const json_t *pod)
{
	static const char *const states[] = {"waiting", "terminated"};
	const json_t *container = agent_container(pod);

	if (json_at(pod, "metadata", "deletionTimestamp"))
		return "Terminating";
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (json_str_at(container, "state", states[i], "reason"))
			return json_str_at(container, "state", states[i], "reason");
	return container ? "not Ready" : "Pending";
}

static char *message_of(const json_t *world, const char *node, const struct pods *pods,
			int64_t since_us)
{
	const char *ns = world_env(world, "namespace"), *pod = json_name(pods->newest);
	char since[RFC3339_SIZE];

	rfc3339_write(since_us, since);
	if (!pods->newest)
		return str_printf("away since %s: the DaemonSet " AGENT_NAME
				  " has no pod on the node; see which nodes it selects: kubectl "
				  "describe daemonset -n " QUOTE " " AGENT_NAME,
				  since, ns);
	if (pods->cut_off)
		return str_printf("out of reach since %s, as its Node is, whose kubelet is silent; "
				  "see why: kubectl describe node " QUOTE,
				  since, node);
	if (pods->have_agent)
		return str_printf("silent since %s although its pod runs; see its log: kubectl "
				  "logs -n " QUOTE " " QUOTE,
				  since, ns, pod);
	return str_printf("away since %s: its pod is %.32s; see why: kubectl describe pod -n " QUOTE
			  " " QUOTE,
			  since, trouble_of(pods->newest), ns, pod);
}

/* Pods are not watched, as on the command line. */
static void take_what_was_said(const json_t *state, struct node_agent *ret)
{
	const json_t *ready = condition_find(json_at(state, "status", "conditions"), "Ready");
	const char *message = json_str_or(json_at(ready, "message"), "");
	const json_t *said = said_of(state);

	if (!said)
		return;
	ret->is_gone = true;
	ret->since_us = time_at(said);
	ret->message = str_dup(
		str_starts(message, NODE_AGENT_SAID) ? message + strlen(NODE_AGENT_SAID) : message);
}

int node_agent_judge(const json_t *world, const char *node, const json_t *state,
		     struct node_agent *ret, struct err *err)
{
	const json_t *said = said_of(state), *box = json_at(world, BOX_NO_AGENT_POD, node);
	struct pods pods;
	int64_t now, seen;

	assert(node && !ret->message);
	*ret = (struct node_agent){0};
	if (!world_kind(world, KIND_AGENT_POD)) {
		take_what_was_said(state, ret);
		return 0;
	}
	if (!rfc3339_read(world_env(world, "now"), &now))
		return err_set(err, ERR_BUG, "NoClock", "env.now \"%s\" is not a time",
			       world_env(world, "now"));
	pods = look_at_pods(world, node, now);
	ret->has_no_pod = !pods.newest;
	seen = time_at(json_at(box, "since"));
	if (is_silent(state))
		ret->since_us = time_at(json_at(state, "metadata", "creationTimestamp"));
	else if (pods.have_agent || (!pods.newest && !json_str_at(state, "status", "agentPod")))
		return 0;
	else if (said)
		ret->since_us = time_at(said);
	else if (pods.newest)
		ret->since_us = pods.since_us;
	else {
		ret->since_us = seen ? seen : now;
		ret->remember = true;
	}
	if (ret->since_us == 0)
		return 0;
	if (pods.cut_off && pods.newest) {
		ret->remember = ret->cut_off = true;
		/* It has written over what was said: it lives, and the kubelet alone does not. */
		if (!said && json_is_true(json_at(box, "cutOff"))) {
			ret->since_us = seen;
			return 0;
		}
	}
	ret->is_gone = said || ret->cut_off || now - ret->since_us >= GRACE_US;
	if (ret->is_gone)
		ret->message = message_of(world, node, &pods, ret->since_us);
	else
		ret->look_again_ms = (ret->since_us + GRACE_US - now) / 1000 + 1000;
	if (ret->is_gone && pods.turns_us > now)
		ret->look_again_ms = (pods.turns_us - now) / 1000 + 1000;
	return 0;
}

/* ---- what is kept of a pod ------------------------------------------------------------------- */

static void take(json_t *to, const json_t *from, const char *member)
{
	json_put(to, member, json_incref(json_object_get(from, member)));
}

void node_agent_project(json_t *pod)
{
	static const char *const names[] = {"name",
					    "namespace",
					    "uid",
					    "resourceVersion",
					    "creationTimestamp",
					    "deletionTimestamp"};
	const json_t *ready = condition_find(json_at(pod, "status", "conditions"), "Ready");
	const json_t *container = agent_container(pod);
	json_t *metadata = json_object(), *spec = json_object(), *status = json_object();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		take(metadata, json_at(pod, "metadata"), names[i]);
	take(spec, json_at(pod, "spec"), "nodeName");
	if (pod_has_terminated(pod))
		take(status, json_at(pod, "status"), "phase");
	if (ready) {
		json_t *kept = json_object();

		take(kept, ready, "type");
		take(kept, ready, "status");
		take(kept, ready, "lastTransitionTime");
		json_put(status, "conditions", json_pack("[o]", kept));
	}
	if (container && !str_eq(json_str_at(ready, "status"), "True")) {
		json_t *kept = json_object();

		take(kept, container, "restartCount");
		take(kept, container, "state");
		json_put(status, "containerStatuses", json_pack("[o]", kept));
	}
	json_object_clear(pod);
	json_put(pod, "metadata", metadata);
	json_put(pod, "spec", spec);
	json_put(pod, "status", status);
}
