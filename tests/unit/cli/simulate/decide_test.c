// SPDX-License-Identifier: Apache-2.0
/*
 * What simulated nodes and controllers decide: --node, the scheduler, workloads, devices, networks.
 */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/decide/devices.h"
#include "cli/simulate/decide/node_spec.h"
#include "cli/simulate/decide/pod_networks.h"
#include "cli/simulate/decide/pod_status.h"
#include "cli/simulate/decide/quantity.h"
#include "cli/simulate/decide/scheduler.h"
#include "cli/simulate/decide/workloads.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define NOW "2026-01-01T00:00:00Z"

static json_t *parse(const char *text)
{
	struct err err = {0};
	json_t *value = json_parse(text, strlen(text), &err);

	if (!value)
		fail_msg("%s: %s", text, err.text);
	return value;
}

/* ---- --node ---------------------------------------------------------------------------------- */

static const char *const nics[] = {"connectx-5", "connectx-7", NULL};
static const char *const gpus[] = {"h100", NULL};
static const struct node_models models = {nics, gpus};

TEST(reads_ranges_counts_and_models)
{
	json_auto_t *nodes = json_array();
	struct err err = {0};

	assert_int_equal(
		node_spec_add(nodes, "gpu-[09-11]:1xconnectx-5,8xconnectx-7", &models, &err), 0);
	assert_int_equal(node_spec_add(nodes, "login:2xconnectx-5,4xh100", &models, &err), 0);
	assert_int_equal(json_array_size(nodes), 4);
	assert_string_equal(json_str_at(json_array_get(nodes, 0), "name"), "gpu-09");
	assert_string_equal(json_str_at(json_array_get(nodes, 2), "name"), "gpu-11");
	assert_string_equal(json_str_at(json_array_get(nodes, 3), "name"), "login");
	assert_int_equal(json_array_size(json_at(json_array_get(nodes, 0), "nics")), 9);
	assert_int_equal(json_array_size(json_at(json_array_get(nodes, 3), "nics")), 2);
	assert_int_equal(json_array_size(json_at(json_array_get(nodes, 3), "gpus")), 4);
	assert_int_equal(json_array_size(json_at(json_array_get(nodes, 0), "gpus")), 0);
}

TEST(names_what_is_wrong_with_a_node)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"gpu", "must be NAME:COUNTxMODEL"},
		{"gpu-[2-1]:1xconnectx-7", "must go from a number"},
		{"gpu-[1]:1xconnectx-7", "the range must be"},
		{"gpu-[a-b]:1xconnectx-7", "must go from a number"},
		{"gpu-[1-2:1xconnectx-7", "the range must be"},
		{"GPU:1xconnectx-7", "lower-case"},
		{"-:1xconnectx-7", "lower-case"},
		{"gpu:0xconnectx-7", "count from 1 to 32"},
		{"gpu:33xconnectx-7", "count from 1 to 32"},
		{"gpu:20xconnectx-7,13xconnectx-7", "at most 32"},
		{"gpu:1xconnectx-7,17xh100", "at most 16 GPUs"},
		{"gpu:8xh100", "needs a NIC"},
		{"gpu:8", "must be COUNTxMODEL"},
		{"gpu:", "must be COUNTxMODEL"},
		{"gpu:8xconnectx-9", "\"connectx-9\": unknown NIC or GPU; there are connectx-5, "
				     "connectx-7; and GPUs h100"},
		{"gpu-[1-9999]:1xconnectx-7", "at most 5000"},
		{"old:1xconnectx-7", "already"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *nodes = parse("[{\"name\": \"old\"}]");
		struct err err = {0};

		assert_int_equal(node_spec_add(nodes, cases[i].text, &models, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		if (!strstr(err.text, cases[i].says) || strchr(err.text, '\n'))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(json_array_size(nodes), 1);
	}
}

/* ---- quantities and the scheduler ------------------------------------------------------------ */

TEST(adds_what_containers_ask_for)
{
	json_auto_t *pod = parse(
		"{\"spec\": {\"initContainers\": [{\"resources\": {\"requests\": {\"cpu\": "
		"\"3\"}}}],"
		"\"containers\": [{\"resources\": {\"requests\": {\"cpu\": \"500m\"}, \"limits\": "
		"{\"cpu\": \"9\", \"x/y\": 2}}}, {\"resources\": {\"limits\": {\"memory\": "
		"\"1Gi\"}}}]}}");
	json_auto_t *sum = quantity_of_pod(pod);

	assert_true(json_number_value(json_object_get(sum, "cpu")) == 3);
	assert_true(json_number_value(json_object_get(sum, "x/y")) == 2);
	assert_true(json_number_value(json_object_get(sum, "memory")) == 0x1p30);
	assert_true(json_number_value(json_object_get(sum, "pods")) == 1);
}

static json_t *two_nodes(void)
{
	return parse(
		"{\"b\": {\"node\": {\"metadata\": {\"name\": \"b\", \"labels\": {\"zone\": "
		"\"2\"}},"
		"\"status\": {\"allocatable\": {\"pods\": \"110\", \"x/y\": \"4\"}}},"
		"\"used\": {\"x/y\": 3, \"pods\": 1}},"
		"\"a\": {\"node\": {\"metadata\": {\"name\": \"a\", \"labels\": {\"zone\": \"1\"}},"
		"\"status\": {\"allocatable\": {\"pods\": \"110\", \"x/y\": \"4\"}}},"
		"\"used\": {\"x/y\": 1, \"pods\": 2}}}");
}

TEST(binds_where_the_pod_fits_and_fewest_are)
{
	static const struct {
		const char *spec, *node; /* node NULL: none */
		const char *says;
	} cases[] = {
		{"{\"containers\": []}", "b", NULL},
		{"{\"containers\": [{\"resources\": {\"limits\": {\"x/y\": \"2\"}}}]}", "a", NULL},
		{"{\"containers\": [{\"resources\": {\"limits\": {\"x/y\": \"4\"}}}]}", NULL,
		 "0/2 nodes are available: 2 Insufficient x/y."},
		{"{\"containers\": [{\"resources\": {\"limits\": {\"x/z\": \"1\"}}}]}", NULL,
		 "0/2 nodes are available: 2 Insufficient x/z."},
		{"{\"nodeSelector\": {\"zone\": \"1\"}, \"containers\": []}", "a", NULL},
		{"{\"nodeSelector\": {\"zone\": \"3\"}, \"containers\": []}", NULL,
		 "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."},
		{"{\"affinity\": {\"nodeAffinity\": "
		 "{\"requiredDuringSchedulingIgnoredDuringExecution\": {\"nodeSelectorTerms\": "
		 "[{\"matchExpressions\": [{\"key\": \"zone\", \"operator\": \"Gt\", \"values\": "
		 "[\"1\"]}]}]}}}, \"containers\": []}",
		 "b", NULL},
		{"{\"affinity\": {\"nodeAffinity\": "
		 "{\"requiredDuringSchedulingIgnoredDuringExecution\": {\"nodeSelectorTerms\": "
		 "[{\"matchFields\": [{\"key\": \"metadata.name\", \"operator\": \"In\", "
		 "\"values\": [\"a\"]}]}]}}}, \"containers\": []}",
		 "a", NULL},
	};
	json_auto_t *nodes = two_nodes();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = json_pack("{s:o}", "spec", parse(cases[i].spec));
		struct err err = {0};
		const char *node = scheduler_choose(pod, nodes, &err);

		if (!str_eq(node, cases[i].node) ||
		    (cases[i].says && !str_eq(err.text, cases[i].says)))
			fail_msg("case %zu: %s, %s", i, node ? node : "none", err.text);
	}
}

TEST(leaves_cordoned_and_tainted_nodes_alone)
{
	json_auto_t *nodes = two_nodes(), *pod = parse("{\"spec\": {\"containers\": []}}");
	struct err err = {0};

	json_put_bool(json_need_object(json_at(nodes, "a", "node"), "spec"), "unschedulable", true);
	json_put(json_need_object(json_at(nodes, "b", "node"), "spec"), "taints",
		 parse("[{\"key\": \"k\", \"effect\": \"NoSchedule\"}]"));
	assert_null(scheduler_choose(pod, nodes, &err));
	assert_string_equal(err.text, "0/2 nodes are available: 1 node(s) had untolerated taint, 1 "
				      "node(s) were unschedulable.");
	json_put(json_at(pod, "spec"), "tolerations",
		 parse("[{\"key\": \"k\", \"operator\": \"Exists\"}]"));
	assert_string_equal(scheduler_choose(pod, nodes, &err), "b");
}

/* ---- workloads ------------------------------------------------------------------------------- */

/* Created objects become owned, with a uid, ready when `ready`. */
static void carry_out(const json_t *plan, json_t *owned, bool ready)
{
	json_t *made, *name;
	size_t i, k;

	json_array_foreach (json_at(plan, "delete"), i, name)
		json_array_foreach (owned, k, made)
			if (str_eq(json_name(made), json_string_value(name)))
				json_array_remove(owned, k--);
	json_array_foreach (json_at(plan, "create"), i, made) {
		json_t *object = json_deep_copy(made);

		if (!json_at(object, "metadata", "name"))
			json_put(json_at(object, "metadata"), "name",
				 json_fmt("%s%zu", json_str_at(object, "metadata", "generateName"),
					  json_array_size(owned)));
		if (ready)
			json_put(object, "status",
				 parse("{\"phase\": \"Running\", \"conditions\": [{\"type\": "
				       "\"Ready\", \"status\": \"True\"}]}"));
		json_array_append_new(owned, object);
	}
}

static json_t *workload(int replicas)
{
	return json_pack(
		"{s:{s:s, s:s, s:s, s:i}, s:{s:i, s:{s:{s:s}}, s:{s:{s:{s:s}}, s:{s:[]}}}}",
		"metadata", "name", "w", "namespace", "ns", "uid", "u", "generation", 3, "spec",
		"replicas", replicas, "selector", "matchLabels", "app", "w", "template", "metadata",
		"labels", "app", "w", "spec", "containers");
}

TEST(makes_missing_pods_and_removes_those_too_many)
{
	static const char *const kinds[] = {"ReplicaSet", "StatefulSet", "DaemonSet"};
	json_auto_t *nodes = parse("[{\"metadata\": {\"name\": \"a\"}}, {\"metadata\": {\"name\": "
				   "\"b\"}}, {\"metadata\": {\"name\": \"c\"}}]");
	json_auto_t *one_node = parse("[{\"metadata\": {\"name\": \"b\"}}]");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		json_auto_t *three = workload(3), *one = workload(1), *owned = json_array();
		json_auto_t *plan = NULL, *rest = NULL, *again = NULL;
		const json_t *pod;

		/* A StatefulSet makes them one after the other. */
		for (int n = 0; n < 3; n++) {
			json_auto_t *step = workload_plan(kinds[i], three, owned, nodes, NOW);

			carry_out(step, owned, true);
		}
		assert_int_equal(json_array_size(owned), 3);
		pod = json_array_get(owned, 0);
		assert_string_equal(json_str_at(pod, "metadata", "labels", "app"), "w");
		assert_string_equal(
			json_str_at(json_array_get(json_at(pod, "metadata", "ownerReferences"), 0),
				    "kind"),
			kinds[i]);
		plan = workload_plan(kinds[i], three, owned, nodes, NOW);
		assert_int_equal(json_array_size(json_at(plan, "create")), 0);
		assert_int_equal(json_array_size(json_at(plan, "delete")), 0);
		assert_int_equal(json_integer_value(json_at(plan, "status", "observedGeneration")),
				 3);
		assert_int_equal(json_integer_value(json_at(
					 plan, "status", i == 2 ? "numberReady" : "readyReplicas")),
				 3);
		rest = workload_plan(kinds[i], one, owned, one_node, NOW);
		assert_int_equal(json_array_size(json_at(rest, "delete")), 2);
		carry_out(rest, owned, true);
		again = workload_plan(kinds[i], one, owned, one_node, NOW);
		assert_int_equal(json_array_size(json_at(again, "create")) +
					 json_array_size(json_at(again, "delete")),
				 0);
	}
}

TEST(replaces_the_replica_set_when_the_template_changes)
{
	json_auto_t *object = workload(2), *owned = json_array(), *first = NULL, *second = NULL;

	first = workload_plan("Deployment", object, owned, NULL, NOW);
	carry_out(first, owned, false);
	assert_int_equal(json_array_size(owned), 1);
	json_put_str(json_at(object, "spec", "template", "metadata", "labels"), "v", "2");
	second = workload_plan("Deployment", object, owned, NULL, NOW);
	assert_int_equal(json_array_size(json_at(second, "create")), 1);
	assert_int_equal(json_array_size(json_at(second, "scale")), 1);
	assert_int_equal(json_integer_value(
				 json_at(json_array_get(json_at(second, "scale"), 0), "replicas")),
			 0);
}

TEST(leaves_what_is_being_deleted_alone)
{
	json_auto_t *object = workload(2), *owned = json_array(), *plan = NULL;

	json_put_str(json_at(object, "metadata"), "deletionTimestamp", NOW);
	plan = workload_plan("ReplicaSet", object, owned, NULL, NOW);
	assert_int_equal(json_array_size(json_at(plan, "create")), 0);
	assert_null(json_at(plan, "status"));
}

/* ---- devices and networks -------------------------------------------------------------------- */

static json_t *three_devices(void)
{
	return parse(
		"{\"resources\": [{\"name\": \"x/y\", \"kind\": \"sriov\", \"wanted\": 3, "
		"\"policy\": \"spread\", \"devices\": [{\"id\": \"0000:3b:00.2\", \"healthy\": "
		"true, \"pf\": \"0000:3b:00.0\"}, {\"id\": \"0000:3b:00.3\", \"healthy\": "
		"false, \"pf\": \"0000:3b:00.0\"}, {\"id\": \"0000:3b:00.4\", \"healthy\": "
		"true, \"pf\": \"0000:3b:00.0\"}]}]}");
}

static json_t *pod_with(const char *name, const char *count)
{
	return json_pack("{s:{s:s, s:s}, s:{s:[{s:s, s:{s:{s:s}}}]}}", "metadata", "namespace",
			 "ns", "name", name, "spec", "containers", "name", "main", "resources",
			 "limits", "x/y", count);
}

TEST(gives_each_healthy_device_to_one_pod)
{
	json_auto_t *pools = three_devices(), *allocated = json_object();
	json_auto_t *one = pod_with("one", "1"), *two = pod_with("two", "2");
	json_auto_t *chosen = NULL, *node = NULL, *again = NULL;
	struct err err = {0};

	chosen = devices_choose(pools, NULL, allocated, one, &err);
	assert_string_equal(json_str_at(chosen, "x/y", "0000:3b:00.2"), "ns/one/main");
	devices_add(allocated, chosen);
	assert_null(devices_choose(pools, NULL, allocated, two, &err));
	assert_string_equal(err.reason, "UnexpectedAdmissionError");
	devices_release(allocated, "ns/on");
	assert_int_equal(json_object_size(json_at(allocated, "x/y")), 1);
	devices_release(allocated, "ns/one");
	again = devices_choose(pools, NULL, allocated, two, &err);
	assert_int_equal(json_object_size(json_at(again, "x/y")), 2);
	node = devices_node_status(pools, NULL);
	assert_string_equal(json_str_at(node, "capacity", "x/y"), "3");
	assert_string_equal(json_str_at(node, "allocatable", "x/y"), "2");
}

TEST(gives_gpus_and_the_nics_near_them)
{
	static const struct {
		const char *vendor, *resource, *id;
	} rows[] = {
		{"10de", "nvidia.com/gpu", "GPU-b"},
		{"1002", "amd.com/gpu", "0000:8a:00.0"},
		{"8086", "gpu.intel.com/i915", "card1-0"},
	};
	json_auto_t *pools = parse(
		"{\"resources\": [{\"name\": \"x/y\", \"kind\": \"sriov\", \"gpus\": true, "
		"\"policy\": \"spread\", \"devices\": [{\"id\": \"0000:0b:00.1\", \"healthy\": "
		"true, \"pf\": \"0000:0b:00.0\"}, {\"id\": \"0000:8b:00.1\", \"healthy\": true, "
		"\"pf\": \"0000:8b:00.0\"}]}]}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *host = parse(
			"{\"gpus\": [{\"pciAddress\": \"0000:0a:00.0\", \"uuid\": \"GPU-a\", "
			"\"card\": \"card0\", \"path\": \"a/r/u/1\"}, {\"pciAddress\": "
			"\"0000:8a:00.0\", \"uuid\": \"GPU-b\", \"card\": \"card1\", \"path\": "
			"\"b/r/u/1\"}], \"interfaces\": [{\"pciAddress\": \"0000:0b:00.0\", "
			"\"host\": {\"path\": \"a/r/u/2\"}}, {\"pciAddress\": \"0000:8b:00.0\", "
			"\"host\": {\"path\": \"b/r/u/2\"}}]}");
		json_auto_t *pod = pod_with("a", "1"), *all = NULL, *chosen = NULL;
		json_auto_t *allocated = NULL, *node = NULL;
		struct err err = {0};

		for (size_t k = 0; k < 2; k++)
			json_put_str(json_array_get(json_at(host, "gpus"), k), "vendor",
				     rows[i].vendor);
		json_put_str(json_at(json_array_get(json_at(pod, "spec", "containers"), 0),
				     "resources", "limits"),
			     rows[i].resource, "1");
		all = devices_with_gpus(pools, host);
		node = devices_node_status(all, NULL);
		assert_string_equal(json_str_at(node, "capacity", rows[i].resource), "2");
		/* The first GPU is another pod's. */
		allocated = json_pack("{s:{s:s}}", rows[i].resource,
				      i == 0   ? "GPU-a"
				      : i == 1 ? "0000:0a:00.0"
					       : "card0-0",
				      "ns/other/main");
		chosen = devices_choose(all, host, allocated, pod, &err);
		assert_string_equal(json_str_at(chosen, rows[i].resource, rows[i].id), "ns/a/main");
		assert_string_equal(json_str_at(chosen, "x/y", "0000:8b:00.1"), "ns/a/main");
	}
}

TEST(offers_zero_of_what_is_gone)
{
	json_auto_t *pools = parse("{\"resources\": []}"), *ours = parse("{\"x/y\": \"3\"}");
	json_auto_t *node = devices_node_status(pools, ours);

	assert_string_equal(json_str_at(node, "allocatable", "x/y"), "0");
}

TEST(takes_results_from_the_endpoint)
{
	json_auto_t *delegates = parse(
		"[{\"name\": \"cluster\", \"interface\": \"eth0\", \"config\": {\"cniVersion\": "
		"\"1.0.0\", \"plugins\": [{\"type\": \"ptp\"}]}}, {\"name\": \"ns/rail\", "
		"\"interface\": \"net1\", \"config\": {\"cniVersion\": \"0.3.1\", \"plugins\": "
		"[{\"type\": \"macvlan\", \"ipam\": {\"type\": \"spiderpool\"}}]}}]");
	json_auto_t *status =
		parse("{\"current\": {\"uid\": \"u\", \"ips\": [{\"interface\": "
		      "\"net1\", \"ipv4\": \"172.16.11.1/24\", \"ipv4Pool\": \"p\"}]}}");
	json_auto_t *nothing = parse("{\"current\": {\"uid\": \"u\", \"ips\": []}}");
	json_auto_t *results = NULL;
	struct err err = {0};

	results = pod_networks_results(delegates, status, "10.128.0.2/24", "u", &err);
	assert_string_equal(
		json_str_at(json_array_get(json_at(json_array_get(results, 0), "ips"), 0),
			    "address"),
		"10.128.0.2/24");
	assert_string_equal(
		json_str_at(json_array_get(json_at(json_array_get(results, 1), "ips"), 0),
			    "address"),
		"172.16.11.1/24");
	assert_null(pod_networks_results(delegates, nothing, "10.128.0.2/24", "u", &err));
	assert_string_equal(err.reason, "NoAddressForNic");
}

TEST(says_that_a_pod_is_ready)
{
	json_auto_t *pod = pod_with("one", "1");
	json_auto_t *status = pod_status_running(pod, "192.168.0.1", "10.128.0.2", NOW);

	assert_string_equal(json_str_at(status, "phase"), "Running");
	assert_string_equal(
		json_str_at(json_find(json_at(status, "conditions"), "type", "Ready"), "status"),
		"True");
	assert_int_equal(json_array_size(json_at(status, "containerStatuses")), 1);
}
