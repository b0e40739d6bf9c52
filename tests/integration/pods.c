// SPDX-License-Identifier: Apache-2.0
/*
 * pods: a fast scheduler, kubelet and node agent in one. Makes pods that are bound already and name
 * a network, deletes them at once, and says of SpiderEndpoints that nothing of their pods is left,
 * or writes bare ones, to compare with.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/ipam/endpoint.h"
#include "tests/support/connection.h"

static const char help[] =
	"usage: pods create|delete|down|bare [OPTION...]\n"
	"\n"
	"  create  pods p-0, p-1, …, bound to node-00000 and on; each asks for network net-I\n"
	"  delete  all pods of the namespace, at once\n"
	"  down    SpiderEndpoints of the namespace: nothing of their pods is left\n"
	"  bare    SpiderEndpoints p-0 and on, as large as the operator's\n"
	"\n"
	"  --count N          how many (1000)\n"
	"  --nodes N          on so many nodes (100)\n"
	"  --networks N       pod I asks for net-(I modulo N) (1); 0: for none\n"
	"  --namespace NS     (default)\n"
	"  --pod PREFIX       of names of pods (p-)\n"
	"  --node PREFIX      of names of nodes (node-)\n"
	"  --concurrency N    requests under way (64)\n"
	"  --kubeconfig FILE  default: $KUBECONFIG\n";

struct pods {
	struct connection connection;
	struct kube_resource pod, endpoint;
	const char *kubeconfig, *ns, *pod_prefix, *node_prefix;
	int64_t count, nodes, networks, concurrency;
	void (*begin)(struct pods *pods, int64_t i);
	const struct kube_resource *listed; /* NULL: nothing is listed first */
	json_t *items;
	int64_t begun, under_way;
	struct err err;
};

static void go_on(struct pods *pods)
{
	while (pods->err.class == ERR_NONE && pods->under_way < pods->concurrency &&
	       pods->begun < pods->count) {
		pods->under_way++;
		pods->begin(pods, pods->begun++);
	}
	if (pods->under_way == 0)
		loop_stop(pods->connection.loop);
}

static void on_done(void *arg, json_t *object, const struct err *err)
{
	struct pods *pods = arg;

	pods->under_way--;
	if (err && !kube_err_is(err, "NotFound"))
		pods->err = *err;
	go_on(pods);
}

static json_t *metadata(const struct pods *pods, int64_t i)
{
	return json_pack("{s:o, s:s}", "name", json_fmt("%s%" PRId64, pods->pod_prefix, i),
			 "namespace", pods->ns);
}

static json_t *node_of(const struct pods *pods, int64_t i)
{
	return json_fmt("%s%05" PRId64, pods->node_prefix, i % pods->nodes);
}

static void begin_create(struct pods *pods, int64_t i)
{
	json_auto_t *pod = json_pack(
		"{s:s, s:s, s:o, s:{s:o, s:i, s:b, s:[{s:s, s:s}]}}", "apiVersion", "v1", "kind",
		"Pod", "metadata", metadata(pods, i), "spec", "nodeName", node_of(pods, i),
		"terminationGracePeriodSeconds", 0, "automountServiceAccountToken", 0, "containers",
		"name", "c", "image", "none");

	if (pods->networks > 0)
		json_put(json_need_object(json_at(pod, "metadata"), "annotations"),
			 NETWORKS_ANNOTATION, json_fmt("net-%" PRId64, i % pods->networks));
	kube_create(pods->connection.client, &pods->pod, pod, &(struct kube_write){0}, on_done,
		    pods);
}

static void begin_delete(struct pods *pods, int64_t i)
{
	const json_t *pod = json_array_get(pods->items, (size_t)i);

	kube_delete(pods->connection.client, &pods->pod, pods->ns, json_name(pod), NULL, NULL,
		    &(struct kube_write){0}, on_done, pods);
}

static void begin_down(struct pods *pods, int64_t i)
{
	const json_t *endpoint = json_array_get(pods->items, (size_t)i);
	json_auto_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
				       ENDPOINT_DOWN_ANNOTATION, endpoint_uid(endpoint));

	kube_patch(pods->connection.client, &pods->endpoint, pods->ns, json_name(endpoint),
		   KUBE_PATCH_MERGE, patch, &(struct kube_write){.field_manager = AGENT_NAME},
		   on_done, pods);
}

static void begin_bare(struct pods *pods, int64_t i)
{
	auto_free char *key = str_printf("%s/p-%" PRId64, pods->ns, i);
	json_auto_t *node = node_of(pods, i);
	json_auto_t *status =
		json_pack("{s:{s:s, s:O, s:[{s:s, s:s, s:s, s:s, s:b, s:i}]}, s:s, s:s}", "current",
			  "uid", "00000000-0000-0000-0000-000000000000", "node", node, "ips",
			  "interface", "net1", "ipv4", "10.100.100.100/16", "ipv4Pool", "pool-0",
			  "ipv4Gateway", "10.100.0.1", "cleanGateway", 0, "vlan", 0,
			  "ownerControllerType", "Pod", "ownerControllerName", "pod-00000");
	json_auto_t *object = endpoint_object(key, status);

	json_put_str(object, "apiVersion", "spiderpool.spidernet.io/v2beta1");
	json_put_str(object, "kind", "SpiderEndpoint");
	kube_create(pods->connection.client, &pods->endpoint, object, &(struct kube_write){0},
		    on_done, pods);
}

static void on_listed(void *arg, json_t *list, const struct err *err)
{
	struct pods *pods = arg;

	if (err)
		pods->err = *err;
	pods->items = json_incref(json_at(list, "items"));
	pods->count = (int64_t)json_array_size(pods->items);
	go_on(pods);
}

static const struct option long_options[] = {
	{"count", required_argument, NULL, 'n'},
	{"nodes", required_argument, NULL, 'w'},
	{"networks", required_argument, NULL, 'p'},
	{"namespace", required_argument, NULL, 's'},
	{"concurrency", required_argument, NULL, 'c'},
	{"pod", required_argument, NULL, 'o'},
	{"node", required_argument, NULL, 'd'},
	{"kubeconfig", required_argument, NULL, 'k'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool set_option(struct pods *pods, int option)
{
	switch (option) {
	case 'n':
		return str_to_int(optarg, 1, 100000, &pods->count);
	case 'w':
		return str_to_int(optarg, 1, 10000, &pods->nodes);
	case 'p':
		return str_to_int(optarg, 0, 10000, &pods->networks);
	case 'c':
		return str_to_int(optarg, 1, 256, &pods->concurrency);
	case 's':
		pods->ns = optarg;
		return true;
	case 'o':
		pods->pod_prefix = optarg;
		return true;
	case 'd':
		pods->node_prefix = optarg;
		return true;
	case 'k':
		pods->kubeconfig = optarg;
		return true;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		return false;
	}
}

static bool set_command(struct pods *pods, const char *command)
{
	pods->pod = (struct kube_resource){"", "v1", "pods", "Pod", true};
	pods->endpoint = connection_resource(KIND_ENDPOINT);
	if (str_eq(command, "create")) {
		pods->begin = begin_create;
	} else if (str_eq(command, "bare")) {
		pods->begin = begin_bare;
	} else if (str_eq(command, "delete")) {
		pods->begin = begin_delete;
		pods->listed = &pods->pod;
	} else if (str_eq(command, "down")) {
		pods->begin = begin_down;
		pods->listed = &pods->endpoint;
	}
	return pods->begin != NULL;
}

int main(int argc, char **argv)
{
	struct pods pods = {
		.ns = "default",
		.pod_prefix = "p-",
		.node_prefix = "node-",
		.count = 1000,
		.nodes = 100,
		.networks = 1,
		.concurrency = 64,
	};
	int64_t started_ms;
	int option;

	json_init();
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (!set_option(&pods, option)) {
			fprintf(stderr, "pods: %s: bad option or value; see --help\n",
				argv[optind - 1]);
			return 2;
		}
	}
	if (optind + 1 != argc || !set_command(&pods, argv[optind])) {
		fputs(help, stderr);
		return 2;
	}
	if (connection_open(&pods.connection, pods.kubeconfig, &pods.err) < 0) {
		fprintf(stderr, "pods: %s\n", pods.err.text);
		return 2;
	}
	started_ms = clock_ms();
	if (pods.listed)
		kube_list(pods.connection.client, pods.listed, pods.ns, NULL, on_listed, &pods);
	else
		go_on(&pods);
	loop_run(pods.connection.loop);
	json_decref(pods.items);
	connection_close(&pods.connection);
	if (pods.err.class != ERR_NONE) {
		fprintf(stderr, "pods: %s\n", pods.err.text);
		return 1;
	}
	printf("%" PRId64 " in %" PRId64 " ms\n", pods.begun, clock_ms() - started_ms);
	return 0;
}
