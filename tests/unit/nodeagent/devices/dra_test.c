// SPDX-License-Identifier: Apache-2.0
/* Which way devices are offered, the slices of a node, and claims: what containers get of them. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "nodeagent/devices/allocate.h"
#include "nodeagent/devices/dra_choice.h"
#include "nodeagent/devices/dra_claims.h"
#include "nodeagent/devices/dra_slices.h"
#include "nodeagent/model/dra_state.h"
#include "tests/support/yaml.h"

#define X          "spidernet.io/x"
#define SHARED     "spidernet.io/hca_shared_devices"
#define UID        "1d3c7a4e-0b2a-4f55-9d58-1f0e0c4b9a10"
#define SLICE_FILE "tests/unit/nodeagent/devices/slice.json"
#define BOOT       "00000000-0000-0000-0000-000000000001"

/* Two VFs that are well, one that is not; a shared device; files; RDMA in mode exclusive. */
static const char POOLS[] =
	"resources:\n"
	"- {name: spidernet.io/files, kind: devices, devices: [{id: '0', healthy: true}]}\n"
	"- name: spidernet.io/hca_shared_devices\n"
	"  kind: shared\n"
	"  permissions: rwm\n"
	"  nodes: [/dev/infiniband/rdma_cm, /dev/infiniband/uverbs0]\n"
	"  devices: [{id: '0', healthy: true}, {id: '1', healthy: true}]\n"
	"- name: spidernet.io/own\n"
	"  kind: sriov\n"
	"  devices: [{id: '0000:86:00.2', healthy: true, nodes: [{path: "
	"'/dev/infiniband/0000:86:00.2/..', hostPath: '/run/orbweaver/rdma/0000:86:00.2'}]}]\n"
	"- name: spidernet.io/x\n"
	"  kind: sriov\n"
	"  env: PCIDEVICE_SPIDERNET_IO_X\n"
	"  permissions: rw\n"
	"  devices:\n"
	"  - {id: '0000:3b:00.2', healthy: true, numa: 0, pf: '0000:3b:00.0', nodes: "
	"[/dev/infiniband/rdma_cm, /dev/infiniband/uverbs2], details: {rdma: {rdma_dev: mlx5_2}}}\n"
	"  - {id: '0000:3b:00.3', healthy: true, numa: 0, pf: '0000:3b:00.0', nodes: "
	"[/dev/vfio/vfio, {path: /dev/vfio/4, hostPath: /dev/vfio/noiommu-4}]}\n"
	"  - {id: '0000:3b:00.4', healthy: false, cause: no driver is bound to it yet}\n";

static const char HOST[] =
	"interfaces:\n"
	"- {pciAddress: '0000:3b:00.0', vendor: 15b3, deviceID: '1017', name: ens1f0, linkType: "
	"ETH, eSwitchMode: legacy, rail: 3, host: {pcieRoot: 'pci0000:3a'}, Vfs: [\n"
	"   {vfID: 0, pciAddress: '0000:3b:00.2', vendor: 15b3, deviceID: '1018', driver: "
	"mlx5_core, name: ens1f0v0, host: {numaNode: 0, pcieRoot: 'pci0000:3a'}}]}\n";

static void assert_text(const json_t *value, const char *want)
{
	auto_free char *text = json_text(value);

	assert_string_equal(text ? text : "nothing", want);
}

/* Names and their devices, healthy ones first with "+". */
static void assert_pools(const json_t *pools, const char *want)
{
	auto_strbuf struct strbuf text = {0};
	const json_t *resource, *device;
	size_t i, k;

	json_array_foreach (json_at(pools, "resources"), i, resource) {
		strbuf_addf(&text, "%s%s:", i ? " " : "",
			    strchr(json_str_at(resource, "name"), '/') + 1);
		json_array_foreach (json_at(resource, "devices"), k, device)
			strbuf_addf(&text, "%s%s",
				    json_is_true(json_at(device, "healthy")) ? "+" : "-",
				    json_str_at(device, "id") +
					    (strlen(json_str_at(device, "id")) > 4 ? 8 : 0));
	}
	assert_string_equal(strbuf_str(&text), want);
}

/* ---- the choice ------------------------------------------------------------------------------ */

TEST(an_annotation_names_resources)
{
	json_auto_t *none = dra_choice_read(NULL), *two = dra_choice_read(" a/b, ,c/d\n");

	assert_text(none, "{}");
	assert_text(two, "{\"a/b\":true,\"c/d\":true}");
}

TEST(files_and_mode_exclusive_stay_with_device_plugins)
{
	json_auto_t *pools = yaml(POOLS), *all = dra_choice_read("*");
	json_auto_t *named = dra_choice_read("spidernet.io/own,spidernet.io/files," X);
	json_t *refused;
	json_auto_t *names = dra_choice_names(pools, all, &refused);
	json_auto_t *fewer = NULL;

	assert_text(names, "[\"" SHARED "\",\"" X "\"]");
	assert_text(refused, "[]");
	json_decref(refused);
	fewer = dra_choice_names(pools, named, &refused);
	assert_text(fewer, "[\"" X "\"]");
	assert_text(refused, "[\"spidernet.io/files\",\"spidernet.io/own\"]");
	json_decref(refused);
}

/* The steps of docs/dra.md from a device plugin to claims, and back. */
TEST(no_device_is_offered_both_ways)
{
	json_auto_t *pools = yaml(POOLS), *chosen = dra_choice_read(X);
	json_auto_t *settled = yaml("{" X ": true}"), *nothing = json_object();
	json_auto_t *pods = yaml("{" X ": {'0000:3b:00.2': ns/p/c}}");
	const struct {
		const json_t *chosen, *settled, *allocated, *prepared;
		const char *plugins, *claims;
	} steps[] = {
		{nothing, nothing, pods, nothing, "x:+00.2+00.3-00.4", ""},
		/* Chosen: the kubelet gives nothing more away; what pods have stays listed. */
		{chosen, nothing, pods, nothing, "x:-00.2-00.3-00.4", ""},
		{chosen, nothing, NULL, nothing, "x:-00.2-00.3-00.4", ""},
		{chosen, settled, pods, nothing, "x:-00.2-00.3-00.4", "x:+00.3-00.4"},
		{chosen, settled, nothing, nothing, "", "x:+00.2+00.3-00.4"},
		/* And back: a claim keeps its device. */
		{chosen, settled, nothing, pods, "", "x:+00.2+00.3-00.4"},
		{nothing, nothing, nothing, pods, "x:-00.2+00.3-00.4", "x:+00.2"},
		{nothing, nothing, nothing, nothing, "x:+00.2+00.3-00.4", ""},
	};
	json_t *resources = json_at(pools, "resources");

	while (json_array_size(resources) > 1)
		json_array_remove(resources, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct dra_choice_input input = {
			.pools = pools,
			.chosen = steps[i].chosen,
			.settled = steps[i].settled,
			.allocated = steps[i].allocated,
			.prepared = steps[i].prepared,
		};
		json_auto_t *plugins = dra_choice_plugins(&input);
		json_auto_t *claims = dra_choice_claims(&input);

		assert_pools(plugins, steps[i].plugins);
		assert_pools(claims, steps[i].claims);
	}
}

/* Else the node would count as one that lacks what claims get there. */
TEST(what_claims_get_is_told_as_wanted_of_no_plugin)
{
	json_auto_t *pools = yaml(POOLS), *chosen = dra_choice_read("*"), *nothing = json_object();
	json_auto_t *pods = yaml("{" SHARED ": {'0': ns/p/c}}");
	json_auto_t *status = dra_choice_status(pools, chosen);
	json_auto_t *none = dra_choice_status(pools, nothing);
	json_auto_t *unknown = dra_choice_status(NULL, NULL);
	json_auto_t *plugins = dra_choice_plugins(&(struct dra_choice_input){
		.pools = pools, .chosen = chosen, .settled = nothing, .allocated = pods});

	assert_text(status, "[{\"cause\":\"the annotation orbweaver.io/dra of the Node gives it to "
			    "claims\",\"healthy\":0,\"kind\":\"shared\",\"name\":\"" SHARED "\","
			    "\"offered\":2,\"registered\":false,\"wanted\":0},"
			    "{\"cause\":\"the annotation orbweaver.io/dra of the Node gives it to "
			    "claims\",\"healthy\":0,\"kind\":\"sriov\",\"name\":\"" X "\","
			    "\"offered\":3,\"registered\":false,\"wanted\":0}]");
	assert_text(none, "[]");
	assert_text(unknown, "[]");
	/* Nor is anything wanted while pods still have some of it. */
	assert_text(json_at(json_find(json_at(plugins, "resources"), "name", SHARED), "wanted"),
		    "0");
}

TEST(a_resource_without_devices_is_not_told)
{
	json_auto_t *pools = yaml("{resources: [{name: " X ", kind: sriov, devices: []}]}");
	json_auto_t *chosen = dra_choice_read("*"), *status = dra_choice_status(pools, chosen);

	assert_text(status, "[]");
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* What is offered of POOLS to claims, new. */
static json_t *offered(void)
{
	json_auto_t *pools = yaml(POOLS), *chosen = dra_choice_read("*");
	json_auto_t *settled = yaml("{" X ": true, " SHARED ": true}"), *nothing = json_object();

	return dra_choice_claims(&(struct dra_choice_input){
		.pools = pools, .chosen = chosen, .settled = settled, .allocated = nothing});
}

static json_t *slices_of(const json_t *pools, struct dra_features features)
{
	json_auto_t *host = yaml(HOST);

	return dra_slices(&(struct dra_slices_input){.node = "n1",
						     .node_uid = "u1",
						     .pools = pools,
						     .observed = host,
						     .features = features});
}

TEST(a_slice_says_what_schedulers_ask_for)
{
	json_auto_t *pools = offered(), *slices = slices_of(pools, (struct dra_features){0});
	const json_t *slice = json_array_get(slices, 0), *device;

	assert_int_equal(json_array_size(slices), 1);
	assert_text(
		json_at(slice, "metadata"),
		"{\"labels\":{\"orbweaver.io/node\":\"n1\"},\"name\":\"n1-dra.orbweaver.io-0\","
		"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"controller\":true,\"kind\":\"Node\","
		"\"name\":\"n1\",\"uid\":\"u1\"}]}");
	assert_text(json_at(slice, "spec", "pool"),
		    "{\"generation\":0,\"name\":\"n1\",\"resourceSliceCount\":1}");
	device = json_find(json_at(slice, "spec", "devices"), "name", "0000-3b-00-2");
	assert_text(json_at(device, "attributes"),
		    "{\"EswitchMode\":{\"string\":\"legacy\"},"
		    "\"PFName\":{\"string\":\"ens1f0\"},"
		    "\"deviceID\":{\"string\":\"1018\"},"
		    "\"dra.net/ifName\":{\"string\":\"ens1f0v0\"},"
		    "\"dra.net/numaNode\":{\"int\":0},"
		    "\"dra.net/rdma\":{\"bool\":true},"
		    "\"dra.net/rdmaDevice\":{\"string\":\"mlx5_2\"},"
		    "\"driver\":{\"string\":\"mlx5_core\"},"
		    "\"interfaceName\":{\"string\":\"ens1f0v0\"},"
		    "\"k8s.cni.cncf.io/deviceID\":{\"string\":\"0000:3b:00.2\"},"
		    "\"k8s.cni.cncf.io/resourceName\":{\"string\":\"" X "\"},"
		    "\"linkType\":{\"string\":\"ether\"},"
		    "\"pciAddress\":{\"string\":\"0000:3b:00.2\"},"
		    "\"pfDeviceID\":{\"string\":\"1017\"},"
		    "\"pfPciAddress\":{\"string\":\"0000:3b:00.0\"},"
		    "\"rail\":{\"int\":3},"
		    "\"rdmaCapable\":{\"bool\":true},"
		    "\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:3b:00.2\"},"
		    "\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:3a\"},"
		    "\"resourceName\":{\"string\":\"" X "\"},"
		    "\"vendor\":{\"string\":\"15b3\"},"
		    "\"vfID\":{\"int\":0}}");
	assert_null(json_at(device, "taints"));
}

/* tests/integration/newer_api_test.sh asks Kubernetes' own code about the file. */
TEST(a_slice_is_as_the_file_has_it)
{
	json_auto_t *pools = offered(), *slices = slices_of(pools, (struct dra_features){0});
	auto_strbuf struct strbuf text = {0};
	json_auto_t *want = NULL;

	if (getenv("UPDATE"))
		assert_int_equal(json_dump_file(json_array_get(slices, 0), SLICE_FILE,
						JSON_INDENT(2) | JSON_SORT_KEYS),
				 0);
	assert_int_equal(fs_read(AT_FDCWD, SLICE_FILE, 65536, &text, NULL), 0);
	want = json_parse(strbuf_str(&text), text.len, NULL);
	assert_true(json_same(json_array_get(slices, 0), want));
}

TEST(what_is_not_well_is_tainted_or_left_out)
{
	json_auto_t *pools = offered();
	json_auto_t *tainted = slices_of(pools, (struct dra_features){0});
	json_auto_t *without = slices_of(pools, (struct dra_features){.no_taints = true});
	const json_t *devices = json_at(json_array_get(tainted, 0), "spec", "devices");

	assert_text(json_at(json_find(devices, "name", "0000-3b-00-4"), "taints"),
		    "[{\"effect\":\"NoSchedule\",\"key\":\"dra.orbweaver.io/unhealthy\"}]");
	devices = json_at(json_array_get(without, 0), "spec", "devices");
	assert_null(json_find(devices, "name", "0000-3b-00-4"));
	assert_non_null(json_find(devices, "name", "0000-3b-00-3"));
}

/* By the verdict about its port, where the pool asks for it and the server keeps taints. */
TEST(a_device_behind_a_bad_link_is_tainted_where_asked_for)
{
	static const struct {
		bool is_asked_for, no_taints;
		const char *taints;
	} rows[] = {
		{true, false,
		 "[{\"effect\":\"NoSchedule\",\"key\":\"dra.orbweaver.io/degraded\"}]"},
		{true, true, "null"},
		{false, false, "null"},
	};
	json_auto_t *links = yaml("[{pciAddress: '0000:3b:00.0', verdict: degraded}]");
	json_auto_t *pools = offered(), *host = yaml(HOST);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *slices = dra_slices(
			&(struct dra_slices_input){.node = "n1",
						   .pools = pools,
						   .observed = host,
						   .links = links,
						   .taints_degraded = rows[i].is_asked_for,
						   .features = {.no_taints = rows[i].no_taints}});
		const json_t *device =
			json_find(json_at(json_array_get(slices, 0), "spec", "devices"), "name",
				  "0000-3b-00-2");

		if (str_eq(rows[i].taints, "null"))
			assert_null(json_at(device, "taints"));
		else
			assert_text(json_at(device, "taints"), rows[i].taints);
		assert_string_equal(json_str_at(device, "attributes", "linkVerdict", "string"),
				    "degraded");
	}
}

TEST(a_shared_device_has_slots)
{
	json_auto_t *pools = offered();
	json_auto_t *slices = slices_of(pools, (struct dra_features){0});
	json_auto_t *without = slices_of(pools, (struct dra_features){.no_sharing = true});
	auto_free char *name = dra_shared_name(SHARED);
	const json_t *device =
		json_find(json_at(json_array_get(slices, 0), "spec", "devices"), "name", name);

	assert_true(json_is_true(json_at(device, "allowMultipleAllocations")));
	assert_text(json_at(device, "capacity"),
		    "{\"slots\":{\"requestPolicy\":{\"default\":\"1\",\"validValues\":[\"1\"]},"
		    "\"value\":\"2\"}}");
	assert_null(
		json_find(json_at(json_array_get(without, 0), "spec", "devices"), "name", name));
}

/* Names as the API server takes them: DNS labels. */
TEST(names_of_devices_are_labels)
{
	auto_free char *vf = dra_device_name("0000:3B:00.2"), *shared = dra_shared_name(SHARED);
	auto_free char *alike = dra_shared_name("spidernet.io/hca-shared-devices");
	auto_free char *longest = dra_shared_name(
		"a.domain.that.is.long.example.com/"
		"and_a_name_with_sixty_three_characters_which_is_the_most_there_is");

	assert_string_equal(vf, "0000-3b-00-2");
	assert_true(strspn(longest, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(longest));
	assert_true(strlen(longest) <= 63);
	assert_string_not_equal(shared, alike);
}

/* n VFs of one resource as dra_choice_claims() gives them, the last with that health. */
static json_t *many(size_t n, bool last_is_healthy)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(devices, json_pack("{s:o, s:b}", "id",
							 json_fmt("0000:%02zx:%02zx.%zu", i / 256,
								  i / 8 % 32, i % 8),
							 "healthy", i + 1 < n || last_is_healthy));
	return json_pack("{s:[{s:s, s:s, s:b, s:o}]}", "resources", "name", X, "kind", "sriov",
			 "offered", 1, "devices", devices);
}

TEST(slices_keep_to_the_bounds)
{
	static const struct {
		size_t n;
		bool is_healthy;
		size_t slices, last;
	} cases[] = {{0, true, 0, 0},     {128, true, 1, 128}, {129, true, 2, 1},
		     {128, false, 2, 64}, {64, false, 1, 64},  {300, true, 3, 44}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_auto_t *pools = many(cases[i].n, cases[i].is_healthy);
		json_auto_t *slices = slices_of(pools, (struct dra_features){0});
		const json_t *slice;
		size_t k;

		assert_int_equal(json_array_size(slices), cases[i].slices);
		json_array_foreach (slices, k, slice) {
			assert_int_equal(json_integer_value(json_at(slice, "spec", "pool",
								    "resourceSliceCount")),
					 cases[i].slices);
			if (k + 1 == cases[i].slices)
				assert_int_equal(json_array_size(json_at(slice, "spec", "devices")),
						 cases[i].last);
		}
	}
}

/* The server as it is after a change was carried out: all slices are written. `server` is taken. */
static json_t *carried_out(json_t *server, const json_t *diff)
{
	json_decref(server);
	return json_deep_copy(json_at(diff, "write"));
}

static void assert_change(const json_t *diff, size_t n_write, int64_t generation, size_t n_delete)
{
	const json_t *slice;
	size_t i;

	assert_int_equal(json_array_size(json_at(diff, "write")), n_write);
	assert_int_equal(json_array_size(json_at(diff, "delete")), n_delete);
	json_array_foreach (json_at(diff, "write"), i, slice)
		assert_int_equal(json_integer_value(json_at(slice, "spec", "pool", "generation")),
				 generation);
}

TEST(a_change_makes_one_new_generation_of_all_slices)
{
	json_auto_t *two = many(129, true), *one = many(1, true);
	json_auto_t *wanted = slices_of(two, (struct dra_features){0});
	json_auto_t *fewer = slices_of(one, (struct dra_features){0});
	json_t *server = json_array();
	json_auto_t *first = dra_slices_diff(wanted, server), *again = NULL, *edited = NULL,
		    *last = NULL, *none = json_array(), *gone = NULL;
	json_t *devices;

	assert_change(first, 2, 1, 0);
	server = carried_out(server, first);
	again = dra_slices_diff(wanted, server);
	assert_change(again, 0, 0, 0);
	/* What the server adds is no difference; what somebody takes away is. */
	devices = json_at(json_array_get(server, 1), "spec", "devices");
	json_put_bool(json_array_get(devices, 0), "added", true);
	json_decref(again);
	again = dra_slices_diff(wanted, server);
	assert_change(again, 0, 0, 0);
	json_array_clear(devices);
	edited = dra_slices_diff(wanted, server);
	assert_change(edited, 2, 2, 0);
	server = carried_out(server, edited);
	last = dra_slices_diff(fewer, server);
	assert_change(last, 1, 3, 1);
	gone = dra_slices_diff(none, server);
	assert_change(gone, 0, 0, 2);
	json_decref(server);
}

/* After a crash between two writes generations differ. */
TEST(a_change_that_was_cut_off_is_made_anew)
{
	json_auto_t *two = many(129, true), *wanted = slices_of(two, (struct dra_features){0});
	json_auto_t *server = json_array(), *first = dra_slices_diff(wanted, server), *next = NULL;

	json_array_append_new(server, json_deep_copy(json_array_get(json_at(first, "write"), 0)));
	next = dra_slices_diff(wanted, server);
	assert_change(next, 2, 2, 0);
}

TEST(what_a_server_drops_is_learnt)
{
	json_auto_t *pools = offered(), *slices = slices_of(pools, (struct dra_features){0});
	json_t *sent = json_array_get(slices, 0);
	json_auto_t *stored = json_deep_copy(sent);
	struct dra_features features = {0};
	json_t *device;
	size_t i;

	dra_slices_learn(sent, stored, &features);
	assert_false(features.no_taints || features.no_sharing);
	json_array_foreach (json_at(stored, "spec", "devices"), i, device)
		json_object_del(device, "taints");
	dra_slices_learn(sent, stored, &features);
	assert_true(features.no_taints && !features.no_sharing);
	json_array_foreach (json_at(stored, "spec", "devices"), i, device)
		json_object_del(device, "allowMultipleAllocations");
	dra_slices_learn(sent, stored, &features);
	assert_true(features.no_taints && features.no_sharing);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* A ResourceClaim with these results, new. */
static json_t *object(const char *results)
{
	auto_free char *text = str_printf(
		"metadata: {namespace: ns, name: c, uid: " UID "}\n"
		"status: {reservedFor: [{resource: pods, name: p, uid: u}], allocation: {devices: "
		"{results: [%s]}}}\n",
		results);

	return yaml(text);
}

#define RESULT(request, device)                                                                    \
	"{driver: dra.orbweaver.io, request: " request ", pool: n1, device: " device "}"

static json_t *claim(const char *results, struct err *err)
{
	json_auto_t *all = object(results);

	return dra_claim_read(all, "n1", UID, err);
}

TEST(ours_of_a_claim_is_read)
{
	json_auto_t *read =
		claim("{driver: gpu.example.com, request: g, pool: other, device: gpu-0}, " RESULT(
			      "vf", "0000-3b-00-2"),
		      NULL);

	assert_text(read, "{\"name\":\"c\",\"namespace\":\"ns\",\"pod\":\"p\",\"results\":[{"
			  "\"device\":\"0000-3b-00-2\",\"pool\":\"n1\",\"request\":\"vf\"}],"
			  "\"uid\":\"" UID "\"}");
}

TEST(claims_that_are_not_for_us_are_refused)
{
	static const struct {
		const char *results, *uid, *says;
	} cases[] = {
		{"", UID, "0 devices of dra.orbweaver.io are allocated to it"},
		{"{driver: dra.orbweaver.io, request: a, pool: n2, device: d}", UID,
		 "device d is of pool n2, ours is n1"},
		{"{driver: dra.orbweaver.io, request: a, pool: n1}", UID, "lacks request, pool"},
		{"{driver: dra.orbweaver.io, request: a, pool: n1, device: d, adminAccess: true}",
		 UID, "adminAccess"},
		{RESULT("a", "d"), "another", "is another one now, with uid " UID},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_auto_t *all = object(cases[i].results);
		struct err err = {0};

		assert_null(dra_claim_read(all, "n1", cases[i].uid, &err));
		assert_string_equal(err.reason, "BadClaim");
		assert_non_null(strstr(err.text, cases[i].says));
	}
}

static json_t *prepared(const json_t *state, const char *results, struct err *err)
{
	json_auto_t *pools = offered(), *read = claim(results, NULL);

	return dra_claim_prepare(state, read, pools, BOOT, err);
}

/* Variables and device nodes of a CDI device are Allocate's for the same devices. */
static void assert_edits(const json_t *entry, size_t number, const char *resource,
			 const char *const *ids, size_t n)
{
	json_auto_t *pools = offered();
	json_auto_t *want = allocate_devices(
		json_find(json_at(pools, "resources"), "name", resource), ids, n, NULL);
	const json_t *edits =
		json_at(json_array_get(json_at(entry, "cdi", "devices"), number), "containerEdits");
	const char *name;
	json_t *value;

	assert_true(json_same(json_at(edits, "deviceNodes"), json_at(want, "nodes")));
	assert_int_equal(json_array_size(json_at(edits, "env")),
			 json_object_size(json_at(want, "env")));
	json_each (json_at(want, "env"), name, value) {
		auto_free char *pair = str_printf("%s=%s", name, json_string_value(value));

		assert_true(json_list_has(json_at(edits, "env"), pair));
	}
}

TEST(a_claim_gets_what_a_device_plugin_gives)
{
	static const char *const both[] = {"0000:3b:00.3", "0000:3b:00.2"}, *const token[] = {"0"};
	auto_free char *shared = dra_shared_name(SHARED);
	auto_free char *results =
		str_printf("%s, %s, {driver: dra.orbweaver.io, request: hca, pool: n1, device: %s}",
			   RESULT("vf", "0000-3b-00-3"), RESULT("vf", "0000-3b-00-2"), shared);
	json_auto_t *nothing = json_pack("{s:{}}", "claims");
	json_auto_t *entry = prepared(nothing, results, NULL);
	const json_t *devices = json_at(entry, "devices");

	assert_edits(entry, 0, X, both, 2);
	assert_edits(entry, 1, SHARED, token, 1);
	assert_text(json_at(entry, "cdi", "cdiVersion"), "\"0.6.0\"");
	assert_text(json_at(entry, "cdi", "kind"), "\"dra.orbweaver.io/claim\"");
	/* The first of a request has the edits of all. */
	assert_text(json_at(json_array_get(devices, 0), "cdi"),
		    "[\"dra.orbweaver.io/claim=" UID "-0\"]");
	assert_text(json_at(json_array_get(devices, 1), "cdi"), "[]");
	assert_text(json_at(json_array_get(devices, 2), "cdi"),
		    "[\"dra.orbweaver.io/claim=" UID "-2\"]");
}

TEST(requests_have_edits_of_their_own)
{
	static const char *const first[] = {"0000:3b:00.2"}, *const second[] = {"0000:3b:00.3"};
	json_auto_t *nothing = json_pack("{s:{}}", "claims");
	json_auto_t *entry = prepared(
		nothing, RESULT("a", "0000-3b-00-2") ", " RESULT("b", "0000-3b-00-3"), NULL);

	assert_edits(entry, 0, X, first, 1);
	assert_edits(entry, 1, X, second, 1);
}

TEST(devices_that_cannot_be_had_are_named)
{
	static const struct {
		const char *results, *reason, *says;
	} cases[] = {
		{RESULT("a", "0000-99-00-2"), "UnknownDevice", "no device 0000-99-00-2"},
		{RESULT("a", "0000-86-00-2"), "UnknownDevice", "no device 0000-86-00-2"},
		{RESULT("a", "0000-3b-00-4"), "DeviceUnhealthy", "no driver is bound to it yet"},
		{RESULT("a", "0000-3b-00-2"), "DeviceTaken", "prepared for claim ns/q/other"},
	};
	json_auto_t *taken =
		yaml("claims: {other: {namespace: ns, pod: q, name: other, devices: [{id: "
		     "'0000:3b:00.2', resource: " X "}]}}");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		assert_null(prepared(taken, cases[i].results, &err));
		assert_string_equal(err.reason, cases[i].reason);
		assert_non_null(strstr(err.text, cases[i].says));
	}
}

TEST(claims_have_a_bound_and_uids_name_files)
{
	json_auto_t *full = json_pack("{s:{}}", "claims"), *read = claim(RESULT("a", "b"), NULL);
	struct err err = {0};

	for (int i = 0; i < DRA_CLAIMS_MAX; i++) {
		char uid[16];

		(void)snprintf(uid, sizeof(uid), "%d", i);
		json_put(json_at(full, "claims"), uid, json_object());
	}
	assert_null(dra_claim_prepare(full, read, NULL, BOOT, &err));
	assert_string_equal(err.reason, "TooManyClaims");
	json_put_str(read, "uid", "../../etc/passwd");
	assert_null(dra_claim_prepare(NULL, read, NULL, BOOT, &err));
	assert_string_equal(err.reason, "BadClaim");
	assert_false(dra_uid_is_good(NULL) || dra_uid_is_good("") || dra_uid_is_good("a/b"));
	assert_true(dra_uid_is_good(UID));
}

/* Numbers change with a boot, ids do not. */
TEST(edits_are_renewed_when_the_devices_are_well)
{
	json_auto_t *pools = offered(), *nothing = json_pack("{s:{}}", "claims");
	json_auto_t *entry = prepared(nothing, RESULT("a", "0000-3b-00-2"), NULL), *next = NULL;
	json_t *device =
		json_find(json_at(json_find(json_at(pools, "resources"), "name", X), "devices"),
			  "id", "0000:3b:00.2");

	assert_null(dra_claim_renew(entry, UID, pools, BOOT));
	json_put(device, "nodes", yaml("[/dev/infiniband/rdma_cm, /dev/infiniband/uverbs7]"));
	/* A pod has it, its parts are out of sight: nobody knows better. */
	json_put_str(device, "cause", "ns/p/c has it, its RDMA device is out of sight");
	assert_null(dra_claim_renew(entry, UID, pools, "another boot"));
	json_object_del(device, "cause");
	next = dra_claim_renew(entry, UID, pools, "another boot");
	assert_non_null(next);
	assert_true(json_same(json_at(json_array_get(json_at(next, "devices"), 0), "cdi"),
			      json_at(json_array_get(json_at(entry, "devices"), 0), "cdi")));
	assert_text(json_at(next, "boot"), "\"another boot\"");
	assert_text(
		json_at(json_array_get(json_at(json_array_get(json_at(next, "cdi", "devices"), 0),
					       "containerEdits", "deviceNodes"),
				       1),
			"path"),
		"\"/dev/infiniband/uverbs7\"");
}

TEST(devices_of_claims_are_evidence_of_use)
{
	json_auto_t *nothing = json_pack("{s:{}}", "claims");
	json_auto_t *entry = prepared(nothing, RESULT("a", "0000-3b-00-2"), NULL), *held = NULL;

	json_object_set(json_at(nothing, "claims"), UID, entry);
	held = dra_prepared(nothing);
	assert_text(held, "{\"" X "\":{\"0000:3b:00.2\":\"ns/p/c\"}}");
	assert_int_equal(dra_state_check(nothing, NULL), 0);
}

TEST(a_state_that_is_not_ours_is_refused)
{
	static const char *const texts[] = {"[]",
					    "{}",
					    "{claims: []}",
					    "{claims: {a/b: {}}}",
					    "{claims: {a: {devices: [], cdi: {}}}}",
					    "{claims: {a: {devices: [{}], cdi: {}}}}",
					    "{claims: {a: {devices: [{request: a, pool: b, device: "
					    "c, resource: d, cdi: [1]}], cdi: {}}}}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_auto_t *value = yaml(texts[i]);
		struct err err = {0};

		assert_int_equal(dra_state_check(value, &err), -1);
		assert_string_equal(err.reason, "ClaimsDamaged");
	}
}
