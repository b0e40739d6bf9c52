// SPDX-License-Identifier: Apache-2.0
/*
 * wants: what the CNI server of an agent does about addresses, for many pods at once: ask for those
 * of one NIC each, or say that nothing of them is left. Prints how many got them, and how long they
 * waited. Or only reads what the first of these requests reads, to compare with.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/pod_networks/addresses.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/endpoint.h"
#include "tests/support/connection.h"

static const char help[] =
	"usage: wants get|release|read|look-after [OPTION...]\n"
	"\n"
	"  get         addresses for each pod\n"
	"  release     nothing of the pods is left\n"
	"  read        one GET of each pod's SpiderEndpoint\n"
	"  look-after  runs until it is killed: an agent whose node has nothing of any pod\n"
	"\n"
	"  --namespace NS     (default)\n"
	"  --node NAME        the agent's (node-00000)\n"
	"  --nic NAME         (net1)\n"
	"  --pool NAME        what the network's configuration names; none: the cluster's default\n"
	"  --master ADDRESS   the NIC wants pools of its PF's subnet\n"
	"  --deadline-ms N    (30000)\n"
	"  --at-once N        so many pods under way; none: all of them\n"
	"  --uids FILE        the pods: lines of NAME UID\n"
	"  --kubeconfig FILE  default: $KUBECONFIG\n";

struct wants {
	struct connection connection;
	struct addresses *addresses;
	const char *kubeconfig, *ns, *node, *nic, *pool, *master, *uids;
	int64_t deadline_ms, at_once;
	struct kube_resource endpoint;
	void (*begin)(struct wants *wants, const char *name, const char *uid);
	bool looks_after;
	FILE *listed;
	size_t n, under_way, failed;
	double *waited_ms;
	struct err err;
};

struct one {
	struct wants *wants;
	int64_t begun_us;
};

static void go_on(struct wants *wants)
{
	char name[256], uid[64];

	while ((int64_t)wants->under_way < wants->at_once &&
	       fscanf(wants->listed, "%255s %63s", name, uid) == 2)
		wants->begin(wants, name, uid);
	if (wants->under_way == 0)
		loop_stop(wants->connection.loop);
}

static void finish_one(struct one *one, const struct err *err)
{
	struct wants *wants = one->wants;

	if (err) {
		wants->err = *err;
		wants->failed++;
	} else {
		wants->waited_ms[wants->n++] = (double)(clock_us() - one->begun_us) / 1e3;
	}
	mem_free(one);
	wants->under_way--;
	go_on(wants);
}

static void on_got(void *arg, const json_t *status, const struct err *err)
{
	struct one *one = arg;
	struct err missing = {0};

	if (!err && !endpoint_item(status, one->wants->nic)) {
		err_set(&missing, ERR_BUG, "NoItem", "an answer without %s", one->wants->nic);
		err = &missing;
	}
	finish_one(one, err);
}

static void on_released(void *arg, const struct err *err)
{
	finish_one(arg, err);
}

static void on_read(void *arg, json_t *object, const struct err *err)
{
	finish_one(arg, err);
}

static struct one *one_new(struct wants *wants)
{
	struct one *one = mem_new(struct one);

	one->wants = wants;
	one->begun_us = clock_us();
	wants->under_way++;
	wants->waited_ms =
		mem_realloc(wants->waited_ms, (wants->under_way + wants->n) * sizeof(double));
	return one;
}

static json_t *asks_of(const struct wants *wants)
{
	json_t *ask = json_object();

	json_put_str(ask, "nic", wants->nic);
	if (wants->pool)
		json_put(ask, "ipv4", json_pack("[s]", wants->pool));
	if (wants->master)
		json_put(ask, "masterAddresses", json_pack("[s]", wants->master));
	return json_pack("[o]", ask);
}

static void begin_get(struct wants *wants, const char *name, const char *uid)
{
	json_auto_t *asks = asks_of(wants);

	addresses_want(wants->addresses,
		       &(struct addresses_request){
			       .ns = wants->ns,
			       .name = name,
			       .uid = uid,
			       .asks = asks,
			       .deadline_ms = clock_ms() + wants->deadline_ms,
		       },
		       on_got, one_new(wants));
}

static void begin_release(struct wants *wants, const char *name, const char *uid)
{
	addresses_release(wants->addresses, wants->ns, name, uid, on_released, one_new(wants));
}

static void begin_read(struct wants *wants, const char *name, const char *uid)
{
	kube_get(wants->connection.client, &wants->endpoint, wants->ns, name, NULL, on_read,
		 one_new(wants));
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool set_option(struct wants *wants, int option)
{
	switch (option) {
	case 's':
		wants->ns = optarg;
		return true;
	case 'w':
		wants->node = optarg;
		return true;
	case 'i':
		wants->nic = optarg;
		return true;
	case 'p':
		wants->pool = optarg;
		return true;
	case 'm':
		wants->master = optarg;
		return true;
	case 'd':
		return str_to_int(optarg, 1, 600000, &wants->deadline_ms);
	case 'a':
		return str_to_int(optarg, 1, 1000000, &wants->at_once);
	case 'u':
		wants->uids = optarg;
		return true;
	case 'k':
		wants->kubeconfig = optarg;
		return true;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		return false;
	}
}

/* False for bad usage. */
static bool set_command(struct wants *wants, const char *command)
{
	wants->looks_after = str_eq(command, "look-after");
	if (str_eq(command, "get"))
		wants->begin = begin_get;
	else if (str_eq(command, "release"))
		wants->begin = begin_release;
	else if (str_eq(command, "read"))
		wants->begin = begin_read;
	return wants->looks_after || (wants->begin && wants->uids);
}

static bool holds_nothing(void *arg, const char *uid)
{
	return false;
}

static void run(struct wants *wants)
{
	wants->addresses = addresses_new(&(struct addresses_config){
		.loop = wants->connection.loop,
		.client = wants->connection.client,
		.node = wants->node,
		.ns = "orbweaver-system",
		.config_ns = "orbweaver-system",
		.holds = wants->looks_after ? holds_nothing : NULL,
		.look_ms = 20000,
	});
	if (wants->listed)
		go_on(wants);
	if (wants->under_way > 0 || wants->looks_after)
		loop_run(wants->connection.loop);
	addresses_free(wants->addresses);
	connection_close(&wants->connection);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"namespace", required_argument, NULL, 's'},
		{"node", required_argument, NULL, 'w'},
		{"nic", required_argument, NULL, 'i'},
		{"pool", required_argument, NULL, 'p'},
		{"master", required_argument, NULL, 'm'},
		{"deadline-ms", required_argument, NULL, 'd'},
		{"at-once", required_argument, NULL, 'a'},
		{"uids", required_argument, NULL, 'u'},
		{"kubeconfig", required_argument, NULL, 'k'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct wants wants = {
		.ns = "default",
		.node = "node-00000",
		.nic = "net1",
		.deadline_ms = 30000,
		.at_once = INT64_MAX,
	};
	int option;

	json_init();
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!set_option(&wants, option))
			return 2;
	if (optind + 1 != argc || !set_command(&wants, argv[optind])) {
		fputs(help, stderr);
		return 2;
	}
	wants.endpoint = connection_resource(KIND_ENDPOINT);
	if (wants.begin && !(wants.listed = fopen(wants.uids, "r"))) {
		fprintf(stderr, "wants: %s: %s\n", wants.uids, strerror(errno));
		return 2;
	}
	if (connection_open(&wants.connection, wants.kubeconfig, &wants.err) < 0) {
		fprintf(stderr, "wants: %s\n", wants.err.text);
		return 2;
	}
	run(&wants);
	if (wants.listed)
		(void)fclose(wants.listed);
	if (wants.n)
		qsort(wants.waited_ms, wants.n, sizeof(double), by_size);
	printf("%zu done, %zu failed", wants.n, wants.failed);
	if (wants.n)
		printf(", p50 %.1f ms, p99 %.1f ms", wants.waited_ms[wants.n / 2],
		       wants.waited_ms[wants.n * 99 / 100]);
	printf("\n");
	mem_free(wants.waited_ms);
	if (wants.err.class != ERR_NONE)
		fprintf(stderr, "wants: %s: %s\n", wants.err.reason, wants.err.text);
	return wants.err.class == ERR_NONE ? 0 : 1;
}
