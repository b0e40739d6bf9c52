// SPDX-License-Identifier: Apache-2.0
/*
 * The verdicts in the status of a NodeState become one condition of its Node. node_state.c calls
 * this beside node_labels_plan(): both are written by the same right.
 */
#include "reconcilers/sriov/node_health.h"

#include "lib/json/condition.h"
#include "lib/json/json.h"

/* Ports whose message is quoted; the others are counted. */
#define NAMED_MAX 3

/* Status, reason and message of the condition; NULL: there is to be none. New. */
static json_t *judge(const json_t *ports, bool is_away)
{
	auto_strbuf struct strbuf message = {0};
	const char *reason = "LinkHealthy", *status = "True";
	const json_t *port;
	size_t i, n = 0;

	if (is_away)
		return json_pack("{s:s, s:s, s:s, s:s}", "type", NODE_HEALTH_CONDITION, "status",
				 "Unknown", "reason", "NoAgent", "message",
				 "no agent of the node reports how its links are");
	if (json_array_size(ports) == 0)
		return NULL;
	json_array_foreach (ports, i, port) {
		if (str_eq(json_str_at(port, "verdict"), "healthy"))
			continue;
		/* One that has failed gives the reason. */
		if (n == 0 ||
		    (str_eq(json_str_at(port, "verdict"), "failed") && !str_eq(reason, "LinkDown")))
			reason = json_str_or(json_at(port, "reason"), "Unknown");
		if (n++ < NAMED_MAX)
			strbuf_addf(&message, "%s%.200s", n > 1 ? "; " : "",
				    json_str_or(json_at(port, "message"), ""));
		status = "False";
	}
	if (n > NAMED_MAX)
		strbuf_addf(&message, "; and %zu more", n - NAMED_MAX);
	if (n == 0)
		strbuf_addf(&message, "the links of all %zu ports are healthy",
			    json_array_size(ports));
	return json_pack("{s:s, s:s, s:s, s:o}", "type", NODE_HEALTH_CONDITION, "status", status,
			 "reason", condition_reason_is_good(reason) ? reason : "Unknown", "message",
			 condition_message(strbuf_str(&message)));
}

static json_t *rails_text(const json_t *state, const json_t *ports)
{
	auto_strbuf struct strbuf text = {0};
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(state, "status", "rails", "list"), i, entry) {
		const char *address = json_str_at(entry, "pciAddress");
		const json_t *port = address ? json_find(ports, "pciAddress", address) : NULL;

		if (port)
			strbuf_addf(&text, "%s%lld=%.64s", text.len ? "," : "",
				    (long long)json_integer_value(json_at(entry, "rail")),
				    json_str_or(json_at(port, "reason"), ""));
	}
	return text.len ? json_string(strbuf_str(&text)) : NULL;
}

static bool is_same(const json_t *before, const json_t *condition)
{
	static const char *const members[] = {"status", "reason", "message"};

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (!str_eq(json_str_at(before, members[i]), json_str_at(condition, members[i])))
			return false;
	return true;
}

void node_health_plan(struct plan *plan, const json_t *node, const json_t *state, bool is_away,
		      const char *now)
{
	const json_t *ports = json_at(state, "status", "linkHealth", "ports");
	const json_t *before =
		json_find(json_at(node, "status", "conditions"), "type", NODE_HEALTH_CONDITION);
	const json_t *had = json_at(node, "metadata", "annotations", NODE_HEALTH_ANNOTATION);
	bool stays = state && is_away;
	json_auto_t *condition = stays && !before ? NULL : judge(ports, stays);
	json_auto_t *rails = stays ? json_incref((json_t *)had) : rails_text(state, ports);
	json_t *annotations = NULL, *written = NULL;
	size_t first = json_array_size(plan->ops);

	if (condition && !is_same(before, condition)) {
		bool is_turn =
			!str_eq(json_str_at(before, "status"), json_str_at(condition, "status"));

		written = json_copy(condition);
		json_put_str(written, "lastTransitionTime",
			     is_turn ? now : json_str_at(before, "lastTransitionTime"));
		json_put_str(written, "lastHeartbeatTime", now);
	} else if (!condition && before) {
		written =
			json_pack("{s:s, s:s}", "$patch", "delete", "type", NODE_HEALTH_CONDITION);
	}
	if (!json_same(rails, had)) {
		annotations = json_object();
		json_object_set_new(annotations, NODE_HEALTH_ANNOTATION,
				    rails ? json_incref(rails) : json_null());
	}
	if (!written && !annotations)
		return;
	plan_node_status(plan, json_name(node), annotations, written);
	plan_group(plan, first, "health", NULL);
}
