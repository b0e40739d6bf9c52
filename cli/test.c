// SPDX-License-Identifier: Apache-2.0
/*
 * The order of things, and what is printed: pods are made on the nodes, each path between two is
 * looked at step by step, pods are removed. Which steps, with which commands, and what their output
 * means is in pathtest/; pods and commands in them are in test_pods.c.
 *
 * Paths are measured one after the other: two at a time would share a NIC.
 */
#include "cli/test.h"

#include <stdio.h>
#include <string.h>

#include "cli/pathtest/pods.h"
#include "cli/pathtest/steps.h"
#include "cli/print.h"
#include "cli/test_pods.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"

enum {
	READY_TIMEOUT_S = 120,
	TIMEOUT_MAX_S = PATHTEST_POD_S / 2,
	/*
	 * More than a command has in its pod: until the kubelet shows it to the pod, and its end to
	 * us.
	 */
	ARRIVES_MS = 60000,
	/* Below those that the kernel assigns. */
	FIRST_PORT = 18515,
	LAST_PORT = 28515,
	MATRIX_COLUMNS_MAX = 32,
};

const char *const test_kinds[] = {KIND_NAD, KIND_NODE, KIND_NODE_STATE, NULL};

const struct cli_field test_fields[] = {
	{"items[].from", "string", "node of the client"},
	{"items[].to", "string", "node of the server"},
	{"items[].network", "string", "NetworkAttachmentDefinition, NAMESPACE/NAME"},
	{"items[].interface", "string", "its name in the client's pod"},
	{"items[].fromAddress", "string", "address of the client in this network"},
	{"items[].toAddress", "string", "address of the server in this network"},
	{"items[].fromRdma", "string", "RDMA device of the client"},
	{"items[].toRdma", "string", "RDMA device of the server"},
	{"items[].checks[].check", "string",
	 "link, mtu, ping, rping, ib_read_lat, ib_write_bw, tcp latency, tcp bandwidth"},
	{"items[].checks[].state", "string", "ok; failed; skipped, what stands before it failed"},
	{"items[].checks[].seen", "string", "what was seen"},
	{"items[].latency.rdma", "number",
	 "microseconds that an RDMA read of two bytes takes, typically"},
	{"items[].latency.tcp", "number",
	 "microseconds that two bytes take there and back, on average"},
	{"items[].bandwidth.rdma", "number", "Gbit/s of RDMA writes of 64 KiB, on average"},
	{"items[].bandwidth.tcp", "number", "Gbit/s of a TCP connection, both ways in turn"},
	{0},
};

struct test {
	struct test_pods pods;
	json_t *items;
	int next_port;
	int64_t check_s; /* a command has so long in its pod */
	struct path_limits limits;
};

/* ---- a step ---------------------------------------------------------------------------------- */

static void add_check(json_t *item, const char *check, const char *state, const char *seen)
{
	json_t *row = json_object();

	json_put_str(row, "check", check);
	json_put_str(row, "state", state);
	json_put_str(row, "seen", seen);
	if (!json_at(item, "checks"))
		json_put(item, "checks", json_array());
	json_array_append_new(json_at(item, "checks"), row);
}

static void put_measure(json_t *item, enum step_measure measure, double value)
{
	static const struct {
		const char *of, *by;
	} places[] = {
		[STEP_RDMA_LATENCY] = {"latency", "rdma"},
		[STEP_TCP_LATENCY] = {"latency", "tcp"},
		[STEP_RDMA_BANDWIDTH] = {"bandwidth", "rdma"},
		[STEP_TCP_BANDWIDTH] = {"bandwidth", "tcp"},
	};

	if (measure == STEP_NOTHING || measure == STEP_ROUND_TRIP)
		return;
	json_put(json_need_object(item, places[measure].of), places[measure].by, json_real(value));
}

/* A step that failed: what its client says, and its server, if that failed as well. */
static void add_failure(json_t *item, const struct step *step, const char *how,
			const struct test_command *client, const struct test_command *server)
{
	auto_free char *last = path_last_lines(client->output);
	auto_free char *other = path_last_lines(server->output ? server->output : "");
	bool has_other = server->has_ended && server->exit_code != 0 && *other;
	auto_free char *seen =
		str_printf("%s %s: %s%s%s", step->tool, how, last,
			   has_other ? "; the other end: " : "", has_other ? other : "");

	add_check(item, step->name, "failed", seen);
}

/* Emulated NICs have thousandths of the rate that real ones have. */
static int digits_of(double value)
{
	return value < 0.1 ? 4 : 2;
}

/* What the client printed. */
static void take_output(const struct test *t, json_t *item, const struct step *step,
			const struct path *path, const struct test_command *client,
			const struct test_command *server)
{
	auto_free char *seen = NULL;
	char beyond[128];
	bool is_within;
	double value = 0;

	if (client->exit_code != 0) {
		seen = path_is_late(client->exit_code)
			       ? str_printf("did not end within %lld s", (long long)t->check_s)
			       : str_printf("ended with %d", client->exit_code);
		add_failure(item, step, seen, client, server);
		return;
	}
	if (step->read && !step->read(client->output, &value)) {
		add_failure(item, step, "says nothing that can be read", client, server);
		return;
	}
	put_measure(item, step->measures, value);
	is_within = path_is_within(&t->limits, path, step->measures, value, beyond, sizeof(beyond));
	if (step->measures == STEP_RDMA_BANDWIDTH || step->measures == STEP_TCP_BANDWIDTH)
		seen = str_printf("%.*f Gb/s%s%s", digits_of(value), value, *beyond ? ", " : "",
				  beyond);
	else if (step->measures != STEP_NOTHING)
		seen = str_printf("%.1f us%s%s", value, *beyond ? ", " : "", beyond);
	add_check(item, step->name, is_within ? "ok" : "failed", seen);
}

static void start_end(struct test *t, const struct step *step, const struct path *path,
		      bool is_server, const struct test_pod *pod, struct test_command *ret)
{
	auto_free char *seconds = str_printf("%lld", (long long)t->check_s);
	struct step_words words = {0};

	words.words[words.n++] = seconds;
	step->words(path, is_server, &words);
	test_command_start(ret, &t->pods, pod,
			   step->has_server && !is_server ? path_until_script : path_once_script,
			   words.words, t->check_s * 1000 + ARRIVES_MS);
}

/* -1: the user interrupts. What goes wrong otherwise is a line of the result. */
static int run_step(struct test *t, const struct step *step, struct path *path,
		    const struct test_pod *from, const struct test_pod *to, json_t *item,
		    struct err *err)
{
	struct test_command server = {0}, client = {0};

	snprintf(path->port, sizeof(path->port), "%d", t->next_port);
	t->next_port = t->next_port < LAST_PORT ? t->next_port + 1 : FIRST_PORT;
	(void)fprintf(stderr, "orbweaver: %s -> %s: %s\n", from->node, to->node, step->name);
	/* How long the server's task is on its way says nothing about the path. */
	if (step->has_server) {
		start_end(t, step, path, true, to, &server);
		if (test_command_wait_begin(&server, err) < 0) {
			if (!t->pods.interrupted)
				add_check(item, step->name, "failed", err->text);
			test_command_done(&server);
			return t->pods.interrupted ? -1 : 0;
		}
	}
	start_end(t, step, path, false, from, &client);
	if (test_command_wait(&client, err) == 0) {
		/* What the server has printed helps to understand a failure. */
		if (step->has_server && client.exit_code != 0)
			(void)test_command_look(&server, NULL);
		take_output(t, item, step, path, &client, &server);
	} else if (!t->pods.interrupted)
		add_check(item, step->name, "failed", err->text);
	test_command_done(&client);
	test_command_done(&server);
	return t->pods.interrupted ? -1 : 0;
}

/* What a trial has found is the result where a longer stream would take too long. */
static int run_stream(struct test *t, const struct step *step, struct path *path,
		      const struct test_pod *from, const struct test_pod *to, json_t *item,
		      struct err *err)
{
	json_auto_t *trial = json_object();
	double rate;

	path->transfers = PATHTEST_TRIAL;
	if (run_step(t, step, path, from, to, trial, err) < 0)
		return -1;
	rate = json_real_value(json_at(trial, "bandwidth", "tcp"));
	if (rate > 0 && path_transfers(rate) > PATHTEST_TRIAL) {
		path->transfers = path_transfers(rate);
		return run_step(t, step, path, from, to, item, err);
	}
	if (rate > 0)
		put_measure(item, step->measures, rate);
	json_array_append(json_at(item, "checks"), json_array_get(json_at(trial, "checks"), 0));
	return 0;
}

/* ---- a path ---------------------------------------------------------------------------------- */

/* Of "rping, rstream". */
static bool is_missing(const struct facts *facts, const char *tool)
{
	const char *list = facts->missing;

	for (size_t len = strcspn(list, ","); *list; len = strcspn(list, ",")) {
		if (len == strlen(tool) && strncmp(list, tool, len) == 0)
			return true;
		list += len + strspn(list + len, ", ");
	}
	return false;
}

/* What keeps the step from being made, or NULL. */
static const char *obstacle(const struct step *step, const struct path *path)
{
	const struct facts *ends[] = {&path->client.facts, &path->server.facts};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		if (is_missing(ends[i], step->tool) || is_missing(ends[i], "timeout") ||
		    (step->whose && is_missing(ends[i], step->whose)))
			return "the image does not have what it needs (sh, timeout, ping of "
			       "iputils, rping, rstream, perftest): choose another with --image";
		if (step->needs_rdma && !*ends[i]->rdma)
			return i == 0 ? "no RDMA device in the pod leads there: see --resource"
				      : "no RDMA device in the other pod: see --resource";
	}
	return NULL;
}

static bool is_out_of_reach(const struct path *path)
{
	return path->client.facts.is_soft_elsewhere || path->server.facts.is_soft_elsewhere;
}

/* What one end is, asked in its pod. interface is kept by the caller. */
static int ask_end(struct test *t, const struct test_pod *pod, const json_t *interface,
		   const char *master, struct path_end *ret, struct err *err)
{
	struct test_command command = {0};
	int result;

	*ret = (struct path_end){
		.interface = json_str_at(interface, "interface"),
		.address = json_str_at(interface, "address"),
		.control = json_str_or(json_at(interface, "control"), ""),
	};
	test_command_start(&command, &t->pods, pod, pathtest_facts_script,
			   (const char *const[]){ret->interface, NULL},
			   t->check_s * 1000 + ARRIVES_MS);
	result = test_command_wait(&command, err);
	if (result == 0)
		facts_read(command.output, interface, master, &ret->facts);
	else
		(void)err_in(err, "run a command in pod %s/%s on node %s", t->pods.ns, pod->name,
			     pod->node);
	test_command_done(&command);
	return result;
}

static int run_network(struct test *t, const json_t *network, const struct test_pod *from,
		       const struct test_pod *to, struct err *err)
{
	const char *key = json_str_at(network, "key"), *master = json_str_at(network, "master");
	json_auto_t *client = pathtest_interface(from->object, key);
	json_auto_t *server = pathtest_interface(to->object, key);
	struct path path = {0};
	json_t *item = json_object();
	char seen[160];
	bool is_up;

	json_array_append_new(t->items, item);
	json_put_str(item, "from", from->node);
	json_put_str(item, "to", to->node);
	json_put_str(item, "network", key);
	if (ask_end(t, from, client, master, &path.client, err) < 0 ||
	    ask_end(t, to, server, master, &path.server, err) < 0)
		return -1;
	is_up = path_link_is_up(&path, seen, sizeof(seen));
	json_put_str(item, "interface", path.client.interface);
	json_put_str(item, "fromAddress", path.client.address);
	json_put_str(item, "toAddress", path.server.address);
	if (*path.client.facts.rdma)
		json_put_str(item, "fromRdma", path.client.facts.rdma);
	if (*path.server.facts.rdma)
		json_put_str(item, "toRdma", path.server.facts.rdma);
	add_check(item, "link", is_up ? "ok" : "failed", seen);
	for (const struct step *step = path_steps; step->name; step++) {
		const char *why = obstacle(step, &path);

		if (path_mtu(&path) == 0)
			add_check(item, step->name, "skipped", "there is no interface");
		else if (why)
			add_check(item, step->name, "failed", why);
		else if (step->needs_cm && is_out_of_reach(&path))
			add_check(item, step->name, "skipped",
				  "Soft-RoCE below the pod's interface answers rdma_cm in the "
				  "node's network alone");
		else if ((step->has_trial ? run_stream : run_step)(t, step, &path, from, to, item,
								   err) < 0)
			return -1;
	}
	return 0;
}

/* Each pod with each that stands behind it. */
static int run_all(struct test *t, const json_t *networks, struct err *err)
{
	json_t *network;
	size_t n;

	for (size_t i = 0; i < t->pods.n; i++)
		for (size_t k = i + 1; k < t->pods.n; k++)
			json_array_foreach (networks, n, network)
				if (run_network(t, network, &t->pods.pods[i], &t->pods.pods[k],
						err) < 0)
					return -1;
	return 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void put_ends(json_t *row, const json_t *item)
{
	json_put_str(row, "from", json_str_at(item, "from"));
	json_put_str(row, "to", json_str_at(item, "to"));
	json_put_str(row, "network", json_str_at(item, "network"));
}

static void add_comparison(json_t *rows, const json_t *item, const char *measure, const char *unit)
{
	double rdma = json_real_value(json_at(item, measure, "rdma"));
	double tcp = json_real_value(json_at(item, measure, "tcp"));
	json_t *row;

	if (rdma <= 0 && tcp <= 0)
		return;
	row = json_object();
	put_ends(row, item);
	json_put_str(row, "measure", measure);
	if (rdma > 0)
		json_put(row, "rdma", json_fmt("%.*f %s", digits_of(rdma), rdma, unit));
	if (tcp > 0)
		json_put(row, "tcp", json_fmt("%.*f %s", digits_of(tcp), tcp, unit));
	if (rdma > 0 && tcp > 0)
		json_put(row, "ratio",
			 rdma >= tcp ? json_fmt("%.1f : 1", rdma / tcp)
				     : json_fmt("1 : %.1f", tcp / rdma));
	json_array_append_new(rows, row);
}

/* Bandwidth by RDMA of each pair of nodes (rows) in each network (columns), in Gb/s. */
static void print_matrix(struct strbuf *out, const json_t *items)
{
	json_auto_t *names = json_object(), *rows = json_object();
	struct column columns[2 + MATRIX_COLUMNS_MAX] = {{"FROM", "from"}, {"TO", "to"}};
	size_t n = 2, i;
	json_t *item;

	json_array_foreach (items, i, item) {
		const char *network = json_str_at(item, "network");
		auto_free char *pair =
			str_printf("%s %s", json_str_at(item, "from"), json_str_at(item, "to"));
		double rate = json_real_value(json_at(item, "bandwidth", "rdma"));
		json_t *row = json_need_object(rows, pair);

		put_ends(row, item);
		if (!json_object_get(names, network)) {
			if (n == ARRAY_LEN(columns))
				continue;
			json_put(names, network, json_fmt("network%zu", n));
			columns[n++] = (struct column){
				network, json_string_value(json_object_get(names, network))};
		}
		if (rate > 0)
			json_put(row, json_str_at(names, network),
				 json_fmt("%.*f", digits_of(rate), rate));
	}
	if (n > 3 || json_object_size(rows) > 1) {
		json_auto_t *list = json_array();
		const char *pair;

		json_each (rows, pair, item)
			json_array_append(list, item);
		print_part(out, columns, n, list);
	}
}

static void print_tables(struct strbuf *out, const json_t *items)
{
	static const struct column check_columns[] = {
		{"FROM", "from"},   {"TO", "to"},       {"NETWORK", "network"},
		{"CHECK", "check"}, {"STATE", "state"}, {"SEEN", "seen"},
	};
	static const struct column columns[] = {
		{"FROM", "from"}, {"TO", "to"},   {"NETWORK", "network"},  {"MEASURE", "measure"},
		{"RDMA", "rdma"}, {"TCP", "tcp"}, {"RDMA : TCP", "ratio"},
	};
	json_auto_t *checks = json_array(), *comparisons = json_array();
	json_t *item, *check;
	size_t i, k;

	json_array_foreach (items, i, item) {
		json_array_foreach (json_at(item, "checks"), k, check) {
			json_t *row = json_copy(check);

			put_ends(row, item);
			json_array_append_new(checks, row);
		}
		add_comparison(comparisons, item, "latency", "us");
		add_comparison(comparisons, item, "bandwidth", "Gb/s");
	}
	print_part(out, check_columns, ARRAY_LEN(check_columns), checks);
	print_part(out, columns, ARRAY_LEN(columns), comparisons);
	print_matrix(out, items);
}

/* What cannot be tested here, or follows from what failed, is "skipped". */
static bool nothing_failed(const json_t *items)
{
	json_t *item, *check;
	size_t i, k;

	json_array_foreach (items, i, item)
		json_array_foreach (json_at(item, "checks"), k, check)
			if (str_eq(json_str_at(check, "state"), "failed"))
				return false;
	return true;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_usage(const struct cli *cli, struct err *err)
{
	if (cli->files)
		return err_set(err, ERR_INVALID, "BadUsage",
			       "this makes pods in the cluster: leave out -f");
	if (!cli->mesh && cli->args_len != 1 && cli->args_len != 3)
		return err_set(err, ERR_INVALID, "BadUsage",
			       "two nodes make a path: name two or none, or add --mesh");
	return 0;
}

/* *ret_s stays as it is without the flag. */
static int read_seconds(const char *flag, const char *value, int64_t *ret_s, struct err *err)
{
	if (value && !str_to_int(value, 1, TIMEOUT_MAX_S, ret_s))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--%s %.32s: must be seconds, from 1 to %d", flag, value,
			       TIMEOUT_MAX_S);
	return 0;
}

int test_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	     struct err *err)
{
	json_auto_t *networks = NULL, *nodes = NULL, *items = json_array();
	struct test t = {.items = items, .next_port = FIRST_PORT, .check_s = PATHTEST_STEP_S};
	int64_t ready_s = READY_TIMEOUT_S;
	int result;

	if (check_usage(cli, err) < 0 || read_seconds("timeout", cli->timeout, &ready_s, err) < 0 ||
	    read_seconds("check-timeout", cli->check_timeout, &t.check_s, err) < 0 ||
	    path_limits_read(cli->min_gbps, cli->max_us, &t.limits, err) < 0)
		return -1;
	networks = pathtest_networks(cli->world, cli->args[0], cli->ns, cli->resource, err);
	if (!networks)
		return -1;
	nodes = pathtest_nodes(cli->world, networks, cli->args + 1, cli->args_len - 1, cli->mesh,
			       err);
	if (!nodes || test_pods_open(&t.pods, cli, networks, nodes, err) < 0)
		return -1;
	result = test_pods_start(&t.pods, cli->image ? cli->image : PATHTEST_IMAGE, ready_s * 1000,
				 err);
	if (result == 0)
		result = run_all(&t, networks, err);
	test_pods_close(&t.pods);
	if (result < 0) {
		/* What the API server does not like about a pod is not wrong usage of ours. */
		err->class = ERR_TRANSIENT;
		return -1;
	}
	if (cli->output != CLI_TABLE)
		print_items(cli, out, items);
	else
		print_tables(out, items);
	*ret_status = nothing_failed(items) ? CLI_OK : CLI_FOUND;
	return 0;
}
