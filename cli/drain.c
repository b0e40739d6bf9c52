// SPDX-License-Identifier: Apache-2.0
/*
 * Messages come from the NodeStates: their conditions and annotations say which pods are in the way
 * and how far a drain is. `stop` and `retry` change one annotation of a NodeState, which the
 * operator's controller of drains follows; nothing is drained from here.
 */
#include "cli/drain.h"

#include "cli/print.h"
#include "cli/source.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/maintenance/drain.h"

const char *const drain_kinds[] = {KIND_NODE_STATE, NULL};

const struct cli_field drain_fields[] = {
	{"items[].node", "string", "name of the Node"},
	{"items[].impact", "string", "what the change that is wanted costs: none, evict, reboot"},
	{"items[].devices", "integer", "what pods have to give back"},
	{"items[].state", "string", "how far its drain is, as status.maintenance.state"},
	{"items[].since", "string", "since when, RFC 3339"},
	{"items[].message", "string", "what keeps it, and what to do"},
	{0},
};

static bool is_stopped(const json_t *state)
{
	return str_eq(json_str_at(state, "metadata", "annotations", DRAIN_STOP_ANNOTATION), "stop");
}

/* The boot in which what was rebooted for in vain may be tried again; NULL: nothing was. */
static const char *boot_in_vain(const json_t *state)
{
	const json_t *boots = json_at(state, "status", "boots");

	return json_str_at(boots, "inVain") ? json_str_at(boots, "id") : NULL;
}

/* Why nothing goes on there, in words. */
static const char *message_of(const json_t *state)
{
	const json_t *status = json_at(state, "status");

	if (is_stopped(state))
		return "kept out of it: orbweaver drain retry";
	if (json_at(status, "maintenance"))
		return json_str_at(condition_find(json_at(status, "conditions"), "Draining"),
				   "message");
	if (boot_in_vain(state))
		return json_str_at(condition_find(json_at(status, "conditions"), "Degraded"),
				   "message");
	if (str_eq(json_str_at(status, "impact", "class"), "reboot"))
		return json_str_at(status, "impact", "message");
	if (json_at(status, "impact", "pods"))
		return "nobody allows it: a SriovNetworkPoolConfig with maxUnavailable does";
	return NULL;
}

static json_t *row_of(const json_t *state)
{
	const json_t *status = json_at(state, "status");
	json_int_t devices = (json_int_t)json_array_size(json_at(status, "impact", "pods")) +
			     json_integer_value(json_at(status, "impact", "morePods"));
	json_t *row = json_object();

	json_put_str(row, "node", json_name(state));
	json_put_str(row, "impact", json_str_at(status, "impact", "class"));
	json_put_int(row, "devices", devices);
	json_put_str(row, "state",
		     is_stopped(state) ? "Stopped" : json_str_at(status, "maintenance", "state"));
	json_put_str(row, "since", json_str_at(status, "maintenance", "since"));
	json_put_str(row, "message", message_of(state));
	return row;
}

int drain_status(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		 struct err *err)
{
	static const struct column columns[] = {
		{"NODE", "node"},   {"IMPACT", "impact"}, {"DEVICES", "devices"},
		{"STATE", "state"}, {"SINCE", "since"},   {"MESSAGE", "message"},
	};
	json_auto_t *rows = json_array();
	const char *key;
	json_t *state;

	json_each (world_kind(cli->world, KIND_NODE_STATE), key, state)
		if (message_of(state))
			json_array_append_new(rows, row_of(state));
	*ret_status = json_array_size(rows) > 0 ? CLI_FOUND : CLI_OK;
	if (cli->output != CLI_TABLE)
		print_items(cli, out, rows);
	else if (json_array_size(rows) > 0)
		table_print(out, columns, ARRAY_LEN(columns), rows);
	else
		strbuf_adds(out,
			    "no pod is in the way of a change, and no node waits for a boot\n");
	return 0;
}

static const json_t *find_state(const struct cli *cli, const char *node, struct err *err)
{
	const char *key;
	json_t *state;

	json_each (world_kind(cli->world, KIND_NODE_STATE), key, state)
		if (str_eq(json_name(state), node))
			return state;
	(void)err_set(err, ERR_INVALID, "NoNodeState", "node \"%s\" has no SriovNetworkNodeState",
		      node);
	return NULL;
}

static void put_or_drop(json_t *annotations, const char *name, const char *value)
{
	json_put(annotations, name, value ? json_string(value) : json_null());
}

/* What "stop" and "retry" make of a NodeState, new; empty: it is so already. */
static json_t *wanted_annotations(const json_t *state, bool stops)
{
	json_t *ret = json_object();
	const char *now = json_str_at(state, "metadata", "annotations", DRAIN_STOP_ANNOTATION);
	const char *tried = json_str_at(state, "metadata", "annotations", DRAIN_RETRY_ANNOTATION);

	if (stops) {
		if (!is_stopped(state))
			put_or_drop(ret, DRAIN_STOP_ANNOTATION, "stop");
		return ret;
	}
	if (now)
		put_or_drop(ret, DRAIN_STOP_ANNOTATION, NULL);
	if (boot_in_vain(state) && !str_eq(tried, boot_in_vain(state)))
		put_or_drop(ret, DRAIN_RETRY_ANNOTATION, boot_in_vain(state));
	return ret;
}

static int annotate(const struct cli *cli, bool stops, struct strbuf *out, struct err *err)
{
	auto_plan struct plan plan = {0};

	if (cli->files && find_state(cli, cli->args[0], err))
		return err_set(err, ERR_INVALID, "BadUsage",
			       "this writes to the cluster: leave out -f");
	for (size_t i = 0; i < cli->args_len; i++) {
		const json_t *state = find_state(cli, cli->args[i], err);
		json_auto_t *annotations = NULL;
		auto_free char *key = NULL;

		if (!state)
			return -1;
		annotations = wanted_annotations(state, stops);
		if (json_object_size(annotations) == 0) {
			strbuf_addf(out, "node %s: is so already\n", cli->args[i]);
			continue;
		}
		key = json_key(state);
		plan_meta(&plan, KIND_NODE_STATE, key,
			  json_pack("{s:O}", "annotations", annotations));
	}
	return plan_is_empty(&plan) ? 0 : source_apply(cli, &plan, out, err);
}

int drain_stop(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	return annotate(cli, true, out, err);
}

int drain_retry(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		struct err *err)
{
	return annotate(cli, false, out, err);
}
