// SPDX-License-Identifier: Apache-2.0
/*
 * NodeStates have the ports, their rails and verdicts; two scrapes of each agent, through the API
 * server's proxy, what went over them in between. An agent whose metrics are not reached leaves its
 * rates out.
 */
#include "cli/top.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/print.h"
#include "cli/session.h"
#include "cli/source.h"
#include "cli/support_programs.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/devices/exposition_read.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

enum {
	/* Agents read their devices every 5 s at most (docs/metrics.md). */
	INTERVAL_S = 10,
	SCRAPE_MS = 10000,
	/* Each is asked by itself. */
	AGENTS_MAX = 64,
	/* After so many that do not answer no further one is asked. */
	SILENT_MAX = 4,
};

const char *const top_kinds[] = {KIND_NODE_STATE, NULL};

#define RATES(list)                                                                                \
	{list "[].node", "string", "name of the Node"},                                            \
		{list "[].port", "string", "interface of the port"},                               \
		{list "[].rail", "integer", "absent: it has none"},                                \
		{list "[].received", "number", "Gbit/s of RDMA; absent: not known, as the next"},  \
		{list "[].sent", "number", "Gbit/s of RDMA"},                                      \
		{list "[].errors", "number", "of the wire, a second"},                             \
		{list "[].retransmits", "number", "a second"},                                     \
	{                                                                                          \
		list "[].pause", "number", "pause frames a second"                                 \
	}

const struct cli_field top_fields[] = {
	RATES("ports"),
	{"ports[].link", "string", "reason of the verdict; absent: it is not judged"},
	RATES("pods"),
	{"pods[].pod", "string", "NAMESPACE/NAME"},
	{0},
};

struct top {
	const struct cli *cli;
	struct session session;
	json_t *agents;       /* {node: pod} */
	json_t *world;        /* NodeStates */
	json_t *before, *now; /* {node: exposition_read(), always with "seconds"} */
	char *why_not;        /* why rates are left out, of the first such node */
	size_t n_left_out, n_silent;
};

/* ---- scrapes --------------------------------------------------------------------------------- */

static void on_agent(void *arg, json_t *pod)
{
	const struct top *top = arg;
	const char *node = json_str_at(pod, "spec", "nodeName");

	if (node)
		json_put(top->agents, node, json_incref(pod));
}

static bool is_wanted(const struct top *top, const char *node)
{
	for (size_t i = 0; i < top->cli->args_len; i++)
		if (str_eq(top->cli->args[i], node))
			return true;
	return top->cli->args_len == 0;
}

static void leave_out(struct top *top, char *why)
{
	auto_free char *reason = why;

	if (top->n_left_out++ == 0)
		str_replace(&top->why_not, take_ptr(reason));
}

static void scrape_agent(struct top *top, const char *node)
{
	const json_t *pod = json_object_get(top->agents, node);
	auto_free char *why = NULL, *path = NULL;
	auto_strbuf struct strbuf body = {0};
	struct err err = {0};
	json_t *sums;

	if (pod)
		path = program_page(pod, "--metrics-addr", "127.0.0.1:9810", "metrics", &why);
	if (!path) {
		leave_out(top, why ? take_ptr(why) : str_dup("no agent's pod is there"));
		return;
	}
	if (top->n_silent == SILENT_MAX) {
		leave_out(top, str_dup("agents before it did not answer"));
		return;
	}
	if (json_object_size(top->now) + top->n_silent >= AGENTS_MAX) {
		leave_out(top,
			  str_printf("more than %d nodes: name those that matter", AGENTS_MAX));
		return;
	}
	if (session_get(&top->session, path, SCRAPE_MS, &body, &err) < 0) {
		leave_out(top, str_printf("%s: %s", json_name(pod), err.text));
		top->n_silent++;
		return;
	}
	sums = exposition_read(strbuf_str(&body), body.len);
	/* An agent shows what it read for another scrape up to 5 s before. */
	if (!json_at(sums, "seconds"))
		json_put(sums, "seconds", json_real((double)clock_wall_us() / 1e6));
	json_put(top->now, node, sums);
}

static int scrape_all(struct top *top, struct err *err)
{
	const char *key;
	json_t *state;

	json_replace(&top->world, source_read(top->cli, top_kinds, err));
	if (!top->world)
		return -1;
	json_replace(&top->before, top->now);
	top->now = json_object();
	top->n_left_out = top->n_silent = 0;
	json_each (json_at(top->world, KIND_NODE_STATE), key, state)
		if (!top->cli->files && is_wanted(top, json_name(state)))
			scrape_agent(top, json_name(state));
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* What was counted a second; nothing without a scrape before, or after a reset. */
static void put_rates(const struct top *top, json_t *row, const json_t *before, const json_t *now,
		      double seconds)
{
	static const struct {
		const char *member;
		double scale;
	} rates[] = {{"received", 8e-9},
		     {"sent", 8e-9},
		     {"errors", 1},
		     {"retransmits", 1},
		     {"pause", 1}};

	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		const json_t *from = json_at(before, rates[i].member);
		const json_t *to = json_at(now, rates[i].member);
		double rate = (json_number_value(to) - json_number_value(from)) * rates[i].scale;

		if (!from || !to || rate < 0 || seconds <= 0)
			continue;
		json_put(row, rates[i].member,
			 top->cli->output == CLI_TABLE ? json_fmt("%.1f", rate / seconds)
						       : json_real(rate / seconds));
	}
}

static json_t *row_of(const struct top *top, const json_t *state, const char *port)
{
	json_t *row = json_object();

	json_put_str(row, "node", json_name(state));
	json_put_str(row, "port", port);
	json_put(row, "rail",
		 json_incref(json_at(
			 json_find(json_at(state, "status", "interfaces"), "name", port), "rail")));
	return row;
}

static void add_rows(const struct top *top, const json_t *state, json_t *ports, json_t *pods)
{
	const json_t *before = json_object_get(top->before, json_name(state)), *port, *of_pod;
	const json_t *now = json_object_get(top->now, json_name(state));
	double seconds = json_number_value(json_at(now, "seconds")) -
			 json_number_value(json_at(before, "seconds"));
	const char *pod, *name;
	json_t *row;
	size_t i;

	json_array_foreach (json_at(state, "status", "interfaces"), i, port) {
		name = json_str_or(json_at(port, "name"), "");
		row = row_of(top, state, name);
		json_put_str(row, "link",
			     json_str_at(json_find(json_at(state, "status", "linkHealth", "ports"),
						   "pciAddress",
						   json_str_or(json_at(port, "pciAddress"), "")),
					 "reason"));
		put_rates(top, row, json_at(before, "ports", name), json_at(now, "ports", name),
			  seconds);
		json_array_append_new(ports, row);
	}
	json_each (json_at(now, "pods"), pod, of_pod)
		json_each ((json_t *)of_pod, name, port) {
			row = row_of(top, state, name);
			json_put_str(row, "pod", pod);
			put_rates(top, row, json_at(before, "pods", pod, name), port, seconds);
			json_array_append_new(pods, row);
		}
}

static void print_rows(const struct top *top, struct strbuf *out)
{
#define RATE_COLUMNS                                                                               \
	{"PORT", "port"}, {"RAIL", "rail"}, {"RX GBIT/S", "received"}, {"TX GBIT/S", "sent"},      \
		{"ERRORS/S", "errors"}, {"RETRANSMITS/S", "retransmits"},                          \
	{                                                                                          \
		"PAUSES/S", "pause"                                                                \
	}
	static const struct column port_columns[] = {
		{"NODE", "node"}, RATE_COLUMNS, {"LINK", "link"}};
	static const struct column pod_columns[] = {{"POD", "pod"}, {"NODE", "node"}, RATE_COLUMNS};
	json_auto_t *ports = json_array(), *pods = json_array();
	json_auto_t *document = json_pack("{s:O, s:O}", "ports", ports, "pods", pods);
	const char *key;
	json_t *state;

	json_each (json_at(top->world, KIND_NODE_STATE), key, state)
		if (is_wanted(top, json_name(state)))
			add_rows(top, state, ports, pods);
	if (top->cli->output != CLI_TABLE) {
		print_document(top->cli, out, document);
		return;
	}
	table_print(out, port_columns, ARRAY_LEN(port_columns), ports);
	print_part(out, pod_columns, ARRAY_LEN(pod_columns), pods);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_nodes(const struct top *top, struct err *err)
{
	auto_free char *ns = source_operator_namespace(top->cli);

	for (size_t i = 0; i < top->cli->args_len; i++) {
		auto_free char *key = str_printf("%s/%s", ns, top->cli->args[i]);

		if (!json_at(top->cli->world, KIND_NODE_STATE, key))
			return err_set(err, ERR_INVALID, "NodeNotFound",
				       "there is no SriovNetworkNodeState %.128s: no agent runs on "
				       "the node, or it is misspelt",
				       key);
	}
	return 0;
}

static int look(struct top *top, struct strbuf *out, struct err *err)
{
	auto_free char *ns = source_operator_namespace(top->cli);
	bool is_once = top->cli->once || top->cli->files || top->cli->output != CLI_TABLE;
	bool is_terminal = isatty(STDOUT_FILENO);

	if (!top->cli->files && session_list(&top->session, &kube_pods, ns,
					     "labelSelector=app.kubernetes.io%2Fname%3D" AGENT_NAME,
					     on_agent, top, NULL, err) < 0)
		return -1;
	if (scrape_all(top, err) < 0)
		return -1;
	do {
		if (json_object_size(top->now) > 0) {
			(void)sleep(INTERVAL_S);
			if (scrape_all(top, err) < 0)
				return -1;
		}
		print_rows(top, out);
		if (top->n_left_out > 0)
			(void)fprintf(stderr, "orbweaver: left out: rates of %zu nodes: %s\n",
				      top->n_left_out, top->why_not);
		if (is_once || json_object_size(top->now) == 0)
			return 0;
		printf("%s%s\n", is_terminal ? "\033[H\033[J" : "", strbuf_str(out));
		(void)fflush(stdout);
		strbuf_reset(out);
	} while (!ferror(stdout));
	return 0;
}

int top_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status, struct err *err)
{
	struct top top = {.cli = cli, .agents = json_object(), .now = json_object()};
	int rc = check_nodes(&top, err);

	if (rc == 0 && !cli->files)
		rc = session_open(cli, &top.session, err);
	if (rc == 0)
		rc = look(&top, out, err);
	if (top.session.loop)
		session_close(&top.session);
	json_decref(top.agents);
	json_decref(top.world);
	json_decref(top.before);
	json_decref(top.now);
	mem_free(top.why_not);
	return rc;
}
