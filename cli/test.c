// SPDX-License-Identifier: Apache-2.0
/*
 * The order of things: pods are made on the nodes, paths between them are
 * looked at round by round and step by step, pods are removed. Which paths and steps, with which
 * commands, and what their output means is in pathtest/; pods and commands in them are in
 * test_pods.c, tables in test_output.c.
 *
 * All paths of a round do the same step at the same time.
 */
#include "cli/test.h"

#include <stdio.h>
#include <string.h>

#include "cli/pathtest/fabric.h"
#include "cli/pathtest/pods.h"
#include "cli/pathtest/results.h"
#include "cli/pathtest/rounds.h"
#include "cli/pathtest/steps.h"
#include "cli/print.h"
#include "cli/test_output.h"
#include "cli/test_pods.h"
#include "lib/base/mem.h"
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
};

const char *const test_kinds[] = {KIND_NAD, KIND_NODE, KIND_NODE_STATE, NULL};

const struct cli_field test_fields[] = {
	{"items[].from", "string", "node of the client"},
	{"items[].to", "string", "node of the server"},
	{"items[].network", "string", "of the client: NetworkAttachmentDefinition, NAMESPACE/NAME"},
	{"items[].toNetwork", "string", "of the server"},
	{"items[].fromRail", "integer", "rail of the client's NIC; absent: not known, or none"},
	{"items[].toRail", "integer", "rail of the server's NIC"},
	{"items[].round", "integer", "paths of one round are measured at the same time"},
	{"items[].interface", "string", "its name in the client's pod"},
	{"items[].fromAddress", "string", "address of the client in this network"},
	{"items[].toAddress", "string", "address of the server in this network"},
	{"items[].fromRdma", "string", "RDMA device of the client"},
	{"items[].toRdma", "string", "RDMA device of the server"},
	{"items[].checks[].check", "string",
	 "link, verbs, settings, mtu, ping, rping, ib_read_lat, ib_write_bw, fabric, tcp latency, "
	 "tcp bandwidth"},
	{"items[].checks[].state", "string", "ok; failed; skipped, what stands before it failed"},
	{"items[].checks[].seen", "string", "what was seen"},
	{"items[].counted.from", "object",
	 "what the client's RDMA device counted beside ib_write_bw: ecnMarked, cnpSent, "
	 "cnpHandled, lost; absent: not known"},
	{"items[].counted.to", "object", "the same of the server's"},
	{"items[].latency.rdma", "number",
	 "microseconds that an RDMA read of two bytes takes, typically"},
	{"items[].latency.tcp", "number",
	 "microseconds that two bytes take there and back, on average"},
	{"items[].bandwidth.rdma", "number", "Gbit/s of RDMA writes of 64 KiB, on average"},
	{"items[].bandwidth.tcp", "number", "Gbit/s of a TCP connection, both ways in turn"},
	{"suspects[].at", "string",
	 "what failed paths have in common: node, network, both; else the path"},
	{"suspects[].failed", "integer", "paths there on which a check failed"},
	{"suspects[].paths", "integer", "paths there"},
	{"ring.busGbps", "number",
	 "with --pattern ring: bus bandwidth of an all-reduce, all networks together"},
	{"ring.rails[].network", "string", "NetworkAttachmentDefinition"},
	{"ring.rails[].gbps", "number", "Gbit/s of its slowest link; 0: one is not known"},
	{"ring.rails[].from", "string", "client of this link"},
	{"ring.rails[].to", "string", "server of this link"},
	{0},
};

struct test {
	struct test_pods pods;
	const json_t *world, *networks;
	enum path_pattern pattern;
	/* Of each pod, for each network: as JSON of pathtest_interface(), kept for `ends`. */
	json_t **interfaces;
	struct path_end *ends;
	json_t *items;
	int next_port;
	int64_t check_s; /* a command has so long in its pod */
	struct path_limits limits;
};

/* A path of the round. */
struct run {
	struct path path;
	struct test_pod *from, *to;
	const json_t *from_nic, *to_nic;    /* of pathtest_pf() */
	json_t *item;                       /* borrowed */
	bool takes_part;                    /* in the step */
	struct test_command client, server; /* of the step */
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

/* What the client printed. */
static void take_output(const struct test *t, const struct step *step, const struct run *run)
{
	const struct test_command *client = &run->client, *server = &run->server;
	json_t *item = run->item;
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
	is_within = path_is_within(&t->limits, &run->path, step->measures, value, beyond,
				   sizeof(beyond));
	if (step->measures == STEP_RDMA_BANDWIDTH || step->measures == STEP_TCP_BANDWIDTH)
		seen = str_printf("%.*f Gb/s%s%s", test_digits(value), value, *beyond ? ", " : "",
				  beyond);
	else if (step->measures != STEP_NOTHING)
		seen = str_printf("%.1f us%s%s", value, *beyond ? ", " : "", beyond);
	add_check(item, step->name, is_within ? "ok" : "failed", seen);
}

static void add_end(struct test *t, const struct step *step, struct run *run, bool is_server)
{
	auto_free char *seconds = str_printf("%lld", (long long)t->check_s);
	struct step_words words = {0};

	words.words[words.n++] = seconds;
	step->words(&run->path, is_server, &words);
	test_command_add(is_server ? &run->server : &run->client, &t->pods,
			 is_server ? run->to : run->from,
			 step->has_server && !is_server ? path_until_script : path_once_script,
			 words.words, t->check_s * 1000 + ARRIVES_MS);
}

static void add_verdict(json_t *item, const char *check, enum fabric_verdict verdict,
			const char *seen)
{
	static const char *const states[] = {
		[FABRIC_UNKNOWN] = "skipped", [FABRIC_OK] = "ok", [FABRIC_FAILED] = "failed"};

	if (*seen)
		add_check(item, check, states[verdict], seen);
}

/* What both ends have counted during a load that worked; -1: the user interrupts. */
static int add_counted(const struct test *t, struct run *run, struct err *err)
{
	json_auto_t *sent = fabric_counted(run->client.output), *received = NULL;
	json_t *counted = json_object();
	char seen[PATHTEST_SEEN_MAX];
	enum fabric_verdict verdict;

	if (test_command_wait(&run->server, err) == 0)
		received = fabric_counted(run->server.output);
	else if (t->pods.interrupted)
		return -1;
	verdict = fabric_judge(run->from_nic, run->to_nic, sent, received, seen, sizeof(seen));
	add_verdict(run->item, "fabric", verdict, seen);
	json_put(counted, "from", json_incref(sent));
	json_put(counted, "to", json_incref(received));
	json_put(run->item, "counted", counted);
	return 0;
}

/* Add the checks of the client, from its answer; -1: the user interrupts. */
static int end_client(struct test *t, const struct step *step, struct run *run, struct err *err)
{
	if (test_command_wait(&run->client, err) < 0) {
		if (t->pods.interrupted)
			return -1;
		add_check(run->item, step->name, "failed", err->text);
		return 0;
	}
	/* What the server has printed helps to understand a failure. */
	if (step->has_server && run->client.exit_code != 0)
		(void)test_command_look(&run->server, NULL);
	take_output(t, step, run);
	return step->counts && run->client.exit_code == 0 ? add_counted(t, run, err) : 0;
}

/* How long the servers' tasks are on their way says nothing about the paths. */
static int start_servers(struct test *t, const struct step *step, struct run *runs, size_t n,
			 struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (runs[i].takes_part)
			add_end(t, step, &runs[i], true);
	test_commands_start(&t->pods);
	for (size_t i = 0; i < n; i++) {
		if (!runs[i].takes_part || test_command_wait_begin(&runs[i].server, err) == 0)
			continue;
		if (t->pods.interrupted)
			return -1;
		add_check(runs[i].item, step->name, "failed", err->text);
		runs[i].takes_part = false;
	}
	return 0;
}

/* -1: the user interrupts. What goes wrong otherwise is a line of the result. */
static int run_step(struct test *t, const struct step *step, struct run *runs, size_t n,
		    struct err *err)
{
	struct run *first = NULL;
	size_t others = 0;
	int result = 0;

	for (size_t i = 0; i < n; i++) {
		if (!runs[i].takes_part)
			continue;
		others += first != NULL;
		first = first ? first : &runs[i];
		snprintf(runs[i].path.port, sizeof(runs[i].path.port), "%d", t->next_port);
		t->next_port = t->next_port < LAST_PORT ? t->next_port + 1 : FIRST_PORT;
	}
	if (!first)
		return 0;
	(void)fprintf(stderr, "orbweaver: %s -> %s", first->from->node, first->to->node);
	if (others > 0)
		(void)fprintf(stderr, ", and %zu paths beside it", others);
	(void)fprintf(stderr, ": %s\n", step->name);
	if (step->has_server)
		result = start_servers(t, step, runs, n, err);
	for (size_t i = 0; i < n && result == 0; i++)
		if (runs[i].takes_part)
			add_end(t, step, &runs[i], false);
	test_commands_start(&t->pods);
	for (size_t i = 0; i < n && result == 0; i++)
		if (runs[i].takes_part)
			result = end_client(t, step, &runs[i], err);
	for (size_t i = 0; i < n; i++) {
		test_command_done(&runs[i].client);
		test_command_done(&runs[i].server);
	}
	return result;
}

/* What a trial has found is the result where a longer stream would take too long. */
static int run_stream(struct test *t, const struct step *step, struct run *runs, size_t n,
		      struct err *err)
{
	for (size_t i = 0; i < n; i++)
		runs[i].path.transfers = PATHTEST_TRIAL;
	if (run_step(t, step, runs, n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		json_t *rates = json_at(runs[i].item, "bandwidth");
		json_t *checks = json_at(runs[i].item, "checks");
		double rate = json_real_value(json_at(rates, "tcp"));

		runs[i].takes_part =
			runs[i].takes_part && rate > 0 && path_transfers(rate) > PATHTEST_TRIAL;
		if (!runs[i].takes_part)
			continue;
		runs[i].path.transfers = path_transfers(rate);
		json_object_del(rates, "tcp");
		json_array_remove(checks, json_array_size(checks) - 1);
	}
	return run_step(t, step, runs, n, err);
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

/* What each end is, asked in its pod. */
static int ask_ends(struct test *t, struct err *err)
{
	size_t networks = json_array_size(t->networks), n = t->pods.n * networks;
	auto_free struct test_command *commands = mem_calloc(n, sizeof(*commands));
	int result = 0;

	for (size_t i = 0; i < n; i++) {
		const json_t *network = json_array_get(t->networks, i % networks);
		struct test_pod *pod = &t->pods.pods[i / networks];
		json_t *interface = pathtest_interface(pod->object, json_str_at(network, "key"));

		t->interfaces[i] = interface;
		t->ends[i] = (struct path_end){
			.interface = json_str_at(interface, "interface"),
			.address = json_str_at(interface, "address"),
			.control = json_str_or(json_at(interface, "control"), ""),
		};
		test_command_add(&commands[i], &t->pods, pod, pathtest_facts_script,
				 (const char *const[]){t->ends[i].interface, NULL},
				 t->check_s * 1000 + ARRIVES_MS);
	}
	test_commands_start(&t->pods);
	for (size_t i = 0; i < n && result == 0; i++) {
		const json_t *network = json_array_get(t->networks, i % networks);

		result = test_command_wait(&commands[i], err);
		if (result == 0)
			facts_read(commands[i].output, t->interfaces[i],
				   json_str_at(network, "master"), &t->ends[i].facts);
		else
			(void)err_in(err, "run a command in pod %s/%s on node %s", t->pods.ns,
				     commands[i].pod->name, commands[i].pod->node);
	}
	for (size_t i = 0; i < n; i++)
		test_command_done(&commands[i]);
	return result;
}

/* Opens the RDMA devices of each pod there; what cannot be tried is unknown. -1: interrupted. */
static int try_verbs(struct test *t, struct err *err)
{
	size_t networks = json_array_size(t->networks);
	auto_free struct test_command *commands = mem_calloc(t->pods.n, sizeof(*commands));
	auto_free const char **words = mem_calloc(networks + 7, sizeof(*words));
	auto_free char *seconds = str_printf("%lld", (long long)t->check_s);
	int result = 0;

	for (size_t i = 0; i < t->pods.n; i++) {
		const struct path_end *ends = &t->ends[i * networks];
		size_t n = 0;

		for (const char *const *word = (const char *const[]){seconds, "orbweaver", "doctor",
								     "--verbs", "-o", "json", NULL};
		     *word; word++)
			words[n++] = *word;
		for (size_t k = 0; k < networks; k++)
			if (*ends[k].facts.rdma && !is_missing(&ends[k].facts, "orbweaver"))
				words[n++] = ends[k].facts.rdma;
		words[n] = NULL;
		if (n > 6)
			test_command_add(&commands[i], &t->pods, &t->pods.pods[i], path_once_script,
					 words, t->check_s * 1000 + ARRIVES_MS);
	}
	test_commands_start(&t->pods);
	for (size_t i = 0; i < t->pods.n && result == 0; i++) {
		if (!commands[i].pods)
			continue;
		if (test_command_wait(&commands[i], err) < 0)
			result = t->pods.interrupted ? -1 : 0;
		else
			for (size_t k = 0; k < networks; k++)
				facts_read_verbs(commands[i].output,
						 &t->ends[i * networks + k].facts);
	}
	for (size_t i = 0; i < t->pods.n; i++)
		test_command_done(&commands[i]);
	return result;
}

/* What the world knows of an end's NIC, or NULL. */
static const json_t *pf_of(const struct test *t, size_t pod, size_t network)
{
	size_t networks = json_array_size(t->networks);

	return pathtest_pf(t->world, t->pods.pods[pod].node,
			   t->interfaces[pod * networks + network],
			   json_str_at(json_array_get(t->networks, network), "master"));
}

static void begin_run(struct test *t, const struct round_path *at, struct run *run)
{
	size_t networks = json_array_size(t->networks);
	const struct path_end *client = &t->ends[at->from * networks + at->from_network];
	const struct path_end *server = &t->ends[at->to * networks + at->to_network];
	json_t *item = json_object();
	char seen[PATHTEST_SEEN_MAX + 32];
	enum fabric_verdict verdict;
	enum facts_verbs verbs;
	bool is_up;

	*run = (struct run){
		.path = {.client = *client,
			 .server = *server,
			 .margin_s = t->pattern == PATTERN_RING ? PATHTEST_RING_MARGIN_S
								: PATHTEST_MARGIN_S},
		.from = &t->pods.pods[at->from],
		.to = &t->pods.pods[at->to],
		.from_nic = pf_of(t, at->from, at->from_network),
		.to_nic = pf_of(t, at->to, at->to_network),
		.item = item,
	};
	json_array_append_new(t->items, item);
	json_put_str(item, "from", run->from->node);
	json_put_str(item, "to", run->to->node);
	json_put_str(item, "network",
		     json_str_at(json_array_get(t->networks, at->from_network), "key"));
	json_put_str(item, "toNetwork",
		     json_str_at(json_array_get(t->networks, at->to_network), "key"));
	json_put_int(item, "round", (int64_t)at->round);
	json_put(item, "fromRail", json_incref(json_at(run->from_nic, "rail")));
	json_put(item, "toRail", json_incref(json_at(run->to_nic, "rail")));
	json_put_str(item, "interface", client->interface);
	json_put_str(item, "fromAddress", client->address);
	json_put_str(item, "toAddress", server->address);
	if (*client->facts.rdma)
		json_put_str(item, "fromRdma", client->facts.rdma);
	if (*server->facts.rdma)
		json_put_str(item, "toRdma", server->facts.rdma);
	is_up = path_link_is_up(&run->path, seen, sizeof(seen));
	add_check(item, "link", is_up ? "ok" : "failed", seen);
	verbs = path_verbs(&run->path, seen, sizeof(seen));
	if (verbs != FACTS_VERBS_UNKNOWN)
		add_check(item, "verbs", verbs == FACTS_VERBS_WORK ? "ok" : "failed", seen);
	verdict = fabric_compare(run->from_nic, run->to_nic, seen, sizeof(seen));
	add_verdict(item, "settings", verdict, seen);
}

/* Does the path take the step? If not, why is in its item. */
static bool can_take(const struct step *step, struct run *run)
{
	const char *why = obstacle(step, &run->path);

	if (path_mtu(&run->path) == 0)
		add_check(run->item, step->name, "skipped", "there is no interface");
	else if (why)
		add_check(run->item, step->name, "failed", why);
	else if (step->needs_rdma && path_verbs(&run->path, NULL, 0) == FACTS_VERBS_BROKEN)
		add_check(run->item, step->name, "skipped", "an RDMA device cannot be used");
	else if (step->needs_cm && is_out_of_reach(&run->path))
		add_check(run->item, step->name, "skipped",
			  "Soft-RoCE below the pod's interface answers rdma_cm in the node's "
			  "network alone");
	else
		return true;
	return false;
}

static int run_round(struct test *t, struct run *runs, size_t n, struct err *err)
{
	for (const struct step *step = path_steps; step->name; step++) {
		if (!path_has_step(t->pattern, step))
			continue;
		for (size_t i = 0; i < n; i++)
			runs[i].takes_part = can_take(step, &runs[i]);
		if ((step->has_trial ? run_stream : run_step)(t, step, runs, n, err) < 0)
			return -1;
	}
	return 0;
}

static int run_rounds(struct test *t, const struct round_path *paths, size_t n, struct err *err)
{
	auto_free struct run *runs = mem_calloc(n, sizeof(*runs));
	size_t begun = 0;

	for (size_t i = 0; i < n; i++) {
		begin_run(t, &paths[i], &runs[i]);
		if (i + 1 < n && paths[i + 1].round == paths[i].round)
			continue;
		if (run_round(t, runs + begun, i + 1 - begun, err) < 0)
			return -1;
		begun = i + 1;
	}
	return 0;
}

/* Two ends of a pod share a NIC if they have one PF or one master, or if it is not known. */
static json_t *nics_of(const struct test *t)
{
	size_t networks = json_array_size(t->networks);
	json_t *nics = json_array();

	for (size_t i = 0; i < t->pods.n * networks; i++) {
		const json_t *pf = pf_of(t, i / networks, i % networks);
		const json_t *network = json_array_get(t->networks, i % networks);

		json_array_append_new(
			nics, json_string(pf ? json_str_or(json_at(pf, "pciAddress"), "")
					     : json_str_or(json_at(network, "master"), "")));
	}
	return nics;
}

static int run_all(struct test *t, struct err *err)
{
	size_t networks = json_array_size(t->networks), n = t->pods.n * networks, paths_n = 0;
	struct round_path *paths = NULL;
	json_auto_t *nics = NULL;
	int result;

	t->interfaces = mem_calloc(n, sizeof(json_t *));
	t->ends = mem_calloc(n, sizeof(*t->ends));
	result = ask_ends(t, err);
	if (result == 0)
		result = try_verbs(t, err);
	if (result == 0) {
		nics = nics_of(t);
		paths = rounds_plan(t->pattern, t->pods.n, networks, nics, &paths_n);
		result = run_rounds(t, paths, paths_n, err);
	}
	for (size_t i = 0; i < n; i++)
		json_decref(t->interfaces[i]);
	mem_free(t->interfaces);
	mem_free(t->ends);
	mem_free(paths);
	return result;
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
	json_auto_t *networks = NULL, *nodes = NULL, *items = json_array(), *members = NULL;
	struct test t = {.world = cli->world,
			 .items = items,
			 .next_port = FIRST_PORT,
			 .check_s = PATHTEST_STEP_S};
	int64_t ready_s = READY_TIMEOUT_S;
	int result;

	if (check_usage(cli, err) < 0 || read_seconds("timeout", cli->timeout, &ready_s, err) < 0 ||
	    read_seconds("check-timeout", cli->check_timeout, &t.check_s, err) < 0 ||
	    path_pattern_read(cli->pattern, &t.pattern, err) < 0 ||
	    path_limits_read(cli->min_gbps, cli->max_us, &t.limits, err) < 0)
		return -1;
	t.networks = networks =
		pathtest_networks(cli->world, cli->args[0], cli->ns, cli->resource, err);
	if (!networks)
		return -1;
	nodes = pathtest_nodes(cli->world, networks, cli->args + 1, cli->args_len - 1, cli->mesh,
			       err);
	if (!nodes ||
	    rounds_check(t.pattern, json_array_size(nodes), json_array_size(networks), err) < 0 ||
	    test_pods_open(&t.pods, cli, networks, nodes, err) < 0)
		return -1;
	result = test_pods_start(&t.pods, cli->image ? cli->image : PATHTEST_IMAGE, ready_s * 1000,
				 err);
	if (result == 0)
		result = run_all(&t, err);
	test_pods_close(&t.pods);
	if (result < 0) {
		/* What the API server does not like about a pod is not wrong usage of ours. */
		err->class = ERR_TRANSIENT;
		return -1;
	}
	members = json_pack("{s:O, s:o}", "items", items, "suspects", results_suspects(items));
	if (t.pattern == PATTERN_RING)
		json_put(members, "ring", results_ring(items));
	if (cli->output != CLI_TABLE)
		print_document(cli, out, members);
	else
		test_print(out, members);
	*ret_status = json_array_size(json_at(members, "suspects")) == 0 ? CLI_OK : CLI_FOUND;
	return 0;
}
