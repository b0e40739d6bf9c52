// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs of pods by the IDs of three vendors' device plugins, the pod that the kubelet asks for,
 * distances of what pods have got; and the devices that are preferred on machines that people have.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/mem.h"
#include "nodeagent/devices/affinity.h"
#include "nodeagent/devices/allocate.h"
#include "nodeagent/host/observe.h"
#include "tests/support/golden_machine.h"
#include "tests/support/yaml.h"

#define R "spidernet.io/x"

/* Two GPUs and two NICs of a VF each, on a switch of either socket. */
static const char HOST[] =
	"gpus:\n"
	"- {pciAddress: '0000:0a:00.0', path: a/r/u/1, numaNode: 0, uuid: GPU-aa, card: card0}\n"
	"- {pciAddress: '0000:8a:00.0', path: b/r/u/1, numaNode: 1, uuid: GPU-bb, card: card1}\n"
	"interfaces:\n"
	"- {pciAddress: '0000:0b:00.0', name: ens1, host: {path: a/r/u/2, numaNode: 0},\n"
	"   Vfs: [{pciAddress: '0000:0b:00.1'}, {pciAddress: '0000:0b:00.2'}]}\n"
	"- {pciAddress: '0000:8b:00.0', name: ens9, host: {path: b/r/u/2, numaNode: 1},\n"
	"   Vfs: [{pciAddress: '0000:8b:00.1'}, {pciAddress: '0000:8b:00.2'}]}\n";

static void assert_yaml(const json_t *value, const char *want)
{
	json_auto_t *wanted = yaml(want);
	auto_free char *text = json_text(value);

	if (!json_same(value, wanted))
		fail_msg("%s, wanted %s", text ? text : "nothing", want);
}

TEST(gpus_are_known_by_the_ids_of_device_plugins)
{
	json_auto_t *host = yaml(HOST), *none = yaml("{gpus: []}");
	json_auto_t *allocated =
		yaml("nvidia.com/gpu: {GPU-aa: ml/n/c, 'GPU-bb::3': ml/t/c, 'GPU-bb::4': ml/t/c, "
		     "MIG-aa: ml/m/c, GPU-cc: ml/o/c}\n"
		     "amd.com/gpu: {'0000:0a:00.0': ml/a/c, '0000:8a:00.0': ml/a/c}\n"
		     "gpu.intel.com/i915: {card1-0: ml/i/c, card1-1: ml/i/d, card10-0: ml/o/c}\n" R
		     ": {'0000:0b:00.1': ml/n/c}\n");
	json_auto_t *holders = affinity_holders(host, allocated);
	json_auto_t *of_none = affinity_holders(none, allocated);
	json_auto_t *unknown = affinity_holders(host, NULL);

	assert_yaml(holders, "{ml/n/c: ['0000:0a:00.0'], ml/t/c: ['0000:8a:00.0'], "
			     "ml/a/c: ['0000:0a:00.0', '0000:8a:00.0'], "
			     "ml/i/c: ['0000:8a:00.0'], ml/i/d: ['0000:8a:00.0']}");
	assert_yaml(of_none, "{}");
	assert_yaml(unknown, "{}");
}

TEST(an_id_longer_than_any_is_not_a_gpu)
{
	json_auto_t *host = yaml(HOST), *allocated = json_object(), *holders = NULL;
	char id[300];

	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	json_put_str(json_need_object(allocated, "nvidia.com/gpu"), id, "ml/a/c");
	holders = affinity_holders(host, allocated);
	assert_yaml(holders, "{}");
}

/* A container that asks for one device. */
#define ASKS(name) "{name: " name ", resources: {limits: {" R ": '1'}}}"

TEST(the_pod_is_the_one_that_has_gpus_and_lacks_devices)
{
	/* spec: of ml/a */
	static const struct {
		const char *holders, *devices, *suspects, *spec, *wanted;
	} rows[] = {
		/* The kubelet gave it a GPU a moment ago. */
		{"{ml/a/c: [g0]}", "{}", "[ml/a]", "containers: [" ASKS("c") "]", "[g0]"},
		{"{ml/a/c: [g0]}", "{}", "[ml/a]",
		 "containers: [{name: c, resources: {limits: {" R ": 2}}}]", "[g0]"},
		/* It has all that it asks for; it does not ask. */
		{"{ml/a/c: [g0]}", "{v1: ml/a/c}", "[]", "containers: [" ASKS("c") "]", NULL},
		{"{ml/a/c: [g0]}", "{}", "[ml/a]", "containers: [{name: c}]", NULL},
		{"{ml/a/c: [g0]}", "{}", "[ml/a]",
		 "containers: [{name: c, resources: {limits: {" R ": '-1'}}}]", NULL},
		/* GPUs in one container, devices in another. */
		{"{ml/a/c: [g0], ml/a/e: [g1]}", "{}", "[ml/a]",
		 "containers: [{name: c}, " ASKS("d") "]", "[g0, g1]"},
		{"{ml/a/c: [g0]}", "{v1: ml/a/d}", "[ml/a]",
		 "containers: [{name: c}, " ASKS("d") "]", NULL},
		/* The second container's turn. */
		{"{ml/a/c: [g0], ml/a/d: [g1]}", "{v1: ml/a/c}", "[ml/a]",
		 "containers: [" ASKS("c") ", " ASKS("d") "]", "[g1]"},
		/* A sidecar comes before; other init containers are not in PodResources. */
		{"{ml/a/s: [g1], ml/a/c: [g0]}", "{}", "[ml/a]",
		 "initContainers: [" ASKS("i") ", {name: s, restartPolicy: Always, resources: "
					       "{limits: {" R ": '1'}}}], containers: "
					       "[" ASKS("c") "]",
		 "[g1]"},
		/* A pod whose name begins alike is another. */
		{"{ml/ab/c: [g0]}", "{}", "[ml/ab]", "containers: [" ASKS("c") "]", NULL},
		{"{ml/a/c: [g0], ml/b/c: [g1]}", "{v1: ml/b/c}", "[ml/a]",
		 "containers: [" ASKS("c") "]", "[g0]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text = str_printf(
			"{metadata: {namespace: ml, name: a}, spec: {%s}}", rows[i].spec);
		json_auto_t *holders = yaml(rows[i].holders), *pod = yaml(text);
		json_auto_t *allocated = json_pack("{s:o}", R, yaml(rows[i].devices));
		json_auto_t *suspects = affinity_suspects(holders, allocated, R);
		json_auto_t *gpus = affinity_wanted(pod, holders, allocated, R);

		assert_yaml(suspects, rows[i].suspects);
		if (rows[i].wanted)
			assert_yaml(gpus, rows[i].wanted);
		else
			assert_null(gpus);
	}
}

TEST(free_gpus_count_where_the_pod_is_not_known)
{
	json_auto_t *host = yaml(HOST), *nobody = json_object();
	json_auto_t *one = yaml("{ml/a/c: ['0000:0a:00.0']}");
	json_auto_t *both = yaml("{ml/a/c: ['0000:0a:00.0'], ml/b/c: ['0000:8a:00.0']}");
	json_auto_t *wanted = yaml("['0000:0a:00.0']");
	json_auto_t *of_pod = affinity_near(host, one, wanted), *of_free = NULL;

	assert_yaml(of_pod, "{gpus: [{'0000:0b:00.0': 0, '0000:8b:00.0': 4}]}");
	of_free = affinity_near(host, one, NULL);
	assert_yaml(of_free, "{free: true, gpus: [{'0000:0b:00.0': 4, '0000:8b:00.0': 0}]}");
	assert_null(affinity_near(host, nobody, NULL));
	assert_null(affinity_near(host, both, NULL));
}

TEST(distances_stand_beside_the_pods_of_a_resource)
{
	json_auto_t *host = yaml(HOST);
	json_auto_t *allocated = yaml(
		"nvidia.com/gpu: {GPU-aa: ml/a/c, GPU-bb: ml/b/c}\n" R
		": {'0000:0b:00.1': ml/a/other, '0000:8b:00.1': ml/a/c, '0000:8b:00.0': ml/b/c, "
		"'0000:0b:00.2': ml/plain/c, '7': ml/a/c}\n");
	json_auto_t *distances = affinity_distances(host, allocated), *counts = NULL;
	json_auto_t *status = yaml("[{name: " R ", pods: [{device: '0000:0b:00.1', pod: p}, "
				   "{device: '0000:0b:00.2', pod: p}]}, {name: other}]");

	assert_yaml(distances, "{" R ": {'0000:0b:00.1': PIX, '0000:8b:00.1': SYS, "
			       "'0000:8b:00.0': PIX}}");
	counts = affinity_counts(distances);
	assert_yaml(counts, "{PIX: 2, PXB: 0, PHB: 0, NODE: 0, SYS: 1, '?': 0}");
	affinity_show(status, distances);
	assert_yaml(status, "[{name: " R ", pods: [{device: '0000:0b:00.1', pod: p, gpuDistance: "
			    "PIX}, {device: '0000:0b:00.2', pod: p}]}, {name: other}]");
}

TEST(a_nearer_device_that_was_free_is_told_once_a_pod)
{
	json_auto_t *host = yaml(HOST);
	json_auto_t *pools = yaml("resources: [{name: " R ", devices: ["
				  "{id: '0000:0b:00.1', healthy: true}, "
				  "{id: '0000:0b:00.2', healthy: true}, "
				  "{id: '0000:8b:00.1', healthy: true}, "
				  "{id: '0000:8b:00.2', healthy: true}]}]");
	json_auto_t *far = yaml("nvidia.com/gpu: {GPU-aa: ml/a/c}\n" R
				": {'0000:8b:00.1': ml/a/c, '0000:8b:00.2': ml/a/c}");
	json_auto_t *nothing = json_object(), *first = affinity_missed(host, pools, far, nothing);
	json_auto_t *again = affinity_missed(host, pools, far, far);
	/* The nearer PF serves the pod as well, or another pod has all of it. */
	json_auto_t *spread = yaml("nvidia.com/gpu: {GPU-aa: ml/a/c}\n" R
				   ": {'0000:8b:00.1': ml/a/c, '0000:0b:00.2': ml/a/c}");
	json_auto_t *full = yaml("nvidia.com/gpu: {GPU-aa: ml/a/c}\n" R
				 ": {'0000:8b:00.1': ml/a/c, '0000:0b:00.1': ml/b/c, "
				 "'0000:0b:00.2': ml/b/c}");
	json_auto_t *of_spread = affinity_missed(host, pools, spread, nothing);
	json_auto_t *of_full = affinity_missed(host, pools, full, nothing);

	assert_yaml(first, "[{pod: ml/a/c, message: '" R ": 0000:8b:00.1 of ens9 is SYS from the "
			   "pod''s GPUs, and 0000:0b:00.1 of ens1 (PIX) was free; to try again, "
			   "delete the pod'}]");
	assert_yaml(again, "[]");
	assert_yaml(of_spread, "[]");
	assert_yaml(of_full, "[]");
}

/* ---- machines -------------------------------------------------------------------------------- */

/* A VF of each NIC, named after it. */
static json_t *pool_of(const json_t *observed, const char ***ret_ids)
{
	const json_t *ports = json_at(observed, "interfaces"), *port;
	json_t *devices = json_array();
	size_t i;

	*ret_ids = mem_calloc(json_array_size(ports) + 1, sizeof(**ret_ids));
	json_array_foreach ((json_t *)ports, i, port) {
		const char *address = json_str_at(port, "pciAddress");

		(*ret_ids)[i] = address;
		json_array_append_new(devices,
				      json_pack("{s:s, s:b, s:O, s:s}", "id", address, "healthy", 1,
						"numa", json_at(port, "host", "numaNode"), "pf",
						address));
	}
	return json_pack("{s:s, s:s, s:o}", "name", R, "policy", "spread", "devices", devices);
}

static json_t *addresses_of(const json_t *observed, const char *digits)
{
	json_t *ret = json_array();

	for (; *digits; digits++)
		json_array_append(ret, json_at(json_array_get(json_at(observed, "gpus"),
							      (size_t)(*digits - '0')),
					       "pciAddress"));
	return ret;
}

TEST(machines_that_people_have_give_the_nearest_nics)
{
	/* gpus: a digit each, of the pod; a second text: of other pods, while the pod has none. */
	static const struct {
		const char *machine, *gpus, *others;
		size_t n;
		const char *want;
	} rows[] = {
		{"dgx-h100", "0", NULL, 1, "0000:18:00.0"},
		{"dgx-h100", "3", NULL, 1, "0000:5e:00.0"},
		{"dgx-h100", "67", NULL, 2, "0000:ce:00.0 0000:dc:00.0"},
		{"dgx-h100", "04", NULL, 2, "0000:18:00.0 0000:9a:00.0"},
		{"dgx-h100", "0", NULL, 2, "0000:18:00.0 0000:29:00.0"},
		{"dgx-h100", NULL, "0123", 2, "0000:9a:00.0 0000:c0:00.0"},
		{"dgx-h100", NULL, "01245", 2, "0000:ce:00.0 0000:dc:00.0"},
		{"hgx-b200", "12", NULL, 2, "0000:40:00.0 0000:4f:00.0"},
		/* Without GPUs of others the smallest NUMA node, with the fewest given. */
		{"hgx-b200", NULL, "", 1, "0000:9a:00.0"},
		{"gb200", "0", NULL, 1, "0000:03:00.0"},
		{"gb200", "2", NULL, 1, "0010:03:00.0"},
		{"gb200", "02", NULL, 2, "0000:03:00.0 0010:03:00.0"},
		{"gb200", "01", NULL, 2, "0000:03:00.0 0002:03:00.0"},
		{"mi300x", "2", NULL, 1, "0000:4b:00.0"},
		{"mi300x", "15", NULL, 2, "0000:1b:00.0 0000:9b:00.0"},
		{"mi300x", NULL, "0123456", 1, "0000:e3:00.0"},
		{"two-sockets", NULL, "", 2, "0000:17:00.0 0000:17:00.1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *machine = golden_machine_read(rows[i].machine), *near = NULL;
		struct host_tree *tree = golden_machine_build(machine);
		json_auto_t *observed = host_observe(host_tree_host(tree), 0, NULL);
		json_auto_t *wanted = rows[i].gpus ? addresses_of(observed, rows[i].gpus) : NULL;
		json_auto_t *holders = json_object(), *pool = NULL;
		auto_free const char **ids = NULL;
		const char *chosen[8];
		auto_strbuf struct strbuf got = {0};

		pool = pool_of(observed, &ids);
		if (rows[i].others && *rows[i].others)
			json_put(holders, "ml/other/c", addresses_of(observed, rows[i].others));
		near = affinity_near(observed, holders, wanted);
		assert_int_equal(near != NULL, rows[i].gpus || *rows[i].others);
		assert_int_equal(allocate_prefer(pool, ids,
						 json_array_size(json_at(observed, "interfaces")),
						 NULL, 0, rows[i].n, near, chosen, NULL),
				 0);
		for (size_t k = 0; k < rows[i].n; k++)
			strbuf_addf(&got, "%s%s", k ? " " : "", chosen[k]);
		if (!str_eq(strbuf_str(&got), rows[i].want))
			fail_msg("%zu: %s: %s, wanted %s", i, rows[i].machine, strbuf_str(&got),
				 rows[i].want);
		host_tree_free(tree);
	}
}

/* The names by which device plugins call GPUs are on the host. */
TEST(a_host_names_its_gpus)
{
	struct host_tree *tree = host_tree_new();
	json_auto_t *observed = NULL;

	host_tree_add_gpu(tree, &(struct tree_gpu){"10de", "2330", "030200"}, "0000:1b:00.0", NULL,
			  0);
	host_tree_add_gpu(tree, &(struct tree_gpu){"8086", "0bd5", "038000"}, "0000:2b:00.0", NULL,
			  0);
	observed = host_observe(host_tree_host(tree), 0, NULL);
	assert_yaml(json_at(observed, "gpus"),
		    "[{pciAddress: '0000:1b:00.0', vendor: '10de', deviceID: '2330', numaNode: 0, "
		    "uuid: 'GPU-5eed-0000:1b:00.0', card: card0}, {pciAddress: '0000:2b:00.0', "
		    "vendor: '8086', deviceID: 0bd5, numaNode: 0, card: card1}]");
	/* Before its driver has looked at the GPU. */
	host_tree_file(tree, "proc/driver/nvidia/gpus/0000:1b:00.0/information", "Model: x\n");
	json_decref(observed);
	observed = host_observe(host_tree_host(tree), 0, NULL);
	assert_null(json_at(json_array_get(json_at(observed, "gpus"), 0), "uuid"));
	host_tree_free(tree);
}
