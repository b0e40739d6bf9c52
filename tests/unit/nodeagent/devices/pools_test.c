// SPDX-License-Identifier: Apache-2.0
/* Pools out of a host, VF groups and the users' own configurations. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/devices/pools.h"
#include "tests/unit/nodeagent/devices/pools.h"

/*
 * A PF with three VFs that do RDMA, one of which is on vfio-pci; a management NIC with a VF; a NIC
 * without driver; a software RDMA device on a bridge.
 */
static const char HOST[] =
	"interfaces:\n"
	"- {pciAddress: '0000:3b:00.0', vendor: 15b3, deviceID: '1017', driver: mlx5_core, name: "
	"ens1f0,\n"
	"   linkType: ETH, totalvfs: 8, numVfs: 3, host: {numaNode: 0, rdma: [mlx5_0]}, Vfs: [\n"
	"   {vfID: 0, pciAddress: '0000:3b:00.2', vendor: 15b3, deviceID: '1018', driver: "
	"mlx5_core,\n"
	"    name: ens1f0v0, host: {numaNode: 0, inUse: false, holder: {kind: host}, rdma: "
	"[mlx5_2]}},\n"
	"   {vfID: 1, pciAddress: '0000:3b:00.3', vendor: 15b3, deviceID: '1018', driver: "
	"mlx5_core,\n"
	"    name: ens1f0v1, host: {numaNode: 0, inUse: false, holder: {kind: host}, rdma: "
	"[mlx5_3]}},\n"
	"   {vfID: 2, pciAddress: '0000:3b:00.4', vendor: 15b3, deviceID: '1018', driver: "
	"vfio-pci,\n"
	"    host: {numaNode: 1, iommuGroup: 42, inUse: true, holder: {kind: vfio}, rdma: []}}]}\n"
	"- {pciAddress: '0000:5e:00.0', vendor: '8086', deviceID: '1572', driver: i40e, name: "
	"eno1,\n"
	"   linkType: ETH, totalvfs: 2, numVfs: 0,\n"
	"   host: {numaNode: 1, protected: carries the default route (eno1), rdma: []}, Vfs: []}\n"
	"- {pciAddress: '0000:86:00.0', vendor: 15b3, deviceID: '1017', driver: mlx5_core, name: "
	"ens2f0,\n"
	"   linkType: ETH, totalvfs: 8, numVfs: 1, host: {numaNode: 1, rdma: [mlx5_1]}, Vfs: [\n"
	"   {vfID: 0, pciAddress: '0000:86:00.2', vendor: 15b3, deviceID: '1018', driver: "
	"mlx5_core,\n"
	"    name: ens2f0v0, host: {numaNode: 1, inUse: false, holder: {kind: host}, rdma: []}}]}\n"
	"unusable:\n"
	"- {pciAddress: '0000:af:00.0', vendor: 15b3, deviceID: '1017', reason: NoDriver,\n"
	"   message: 'no driver is bound to it: load the driver of this NIC'}\n"
	"rdma:\n"
	"  netnsMode: shared\n"
	"  charDevices: [{type: rdma_cm, path: /dev/infiniband/rdma_cm}]\n"
	"  devices:\n"
	"  - {name: mlx5_0, pciAddress: '0000:3b:00.0', ports: [{port: 1, linkLayer: Ethernet, "
	"netdev: ens1f0}],\n"
	"     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs0}, {type: umad, path: "
	"/dev/infiniband/umad0}]}\n"
	"  - {name: mlx5_1, pciAddress: '0000:86:00.0', ports: [{port: 1, linkLayer: Ethernet, "
	"netdev: ens2f0}],\n"
	"     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs1}, {type: umad, path: "
	"/dev/infiniband/umad1}]}\n"
	"  - {name: mlx5_2, pciAddress: '0000:3b:00.2', ports: [{port: 1, linkLayer: Ethernet}],\n"
	"     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs2}, {type: umad, path: "
	"/dev/infiniband/umad2},\n"
	"                   {type: issm, path: /dev/infiniband/issm2}]}\n"
	"  - {name: mlx5_3, pciAddress: '0000:3b:00.3', ports: [{port: 1, linkLayer: Ethernet}],\n"
	"     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs3}]}\n"
	"  - {name: rxe0, ports: [{port: 1, linkLayer: Ethernet, netdev: br0}],\n"
	"     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs9}]}\n"
	"node: {protected: [{interface: eno1, pciAddress: '0000:5e:00.0', reason: carries the "
	"default route (eno1)}]}\n";

static json_t *host(void)
{
	return yaml(HOST);
}

static json_t *vf_of(const json_t *observed, size_t pf, size_t vf)
{
	return json_array_get(json_at(json_array_get(json_at(observed, "interfaces"), pf), "Vfs"),
			      vf);
}

/* Forget all RDMA devices of a function. */
static void hide_rdma(json_t *observed, const char *name)
{
	json_t *devices = json_at(observed, "rdma", "devices"), *device;
	size_t i;

	json_array_foreach (devices, i, device)
		if (str_eq(json_str_at(device, "name"), name)) {
			json_array_remove(devices, i);
			return;
		}
}

/* Groups of one PF, as NodeState.spec. */
static json_t *spec(const char *pf, const char *groups)
{
	return json_pack("{s:[{s:s,s:s,s:i,s:o}]}", "interfaces", "pciAddress", pf, "name",
			 "ens1f0", "numVfs", 3, "vfGroups", yaml(groups));
}

static json_t *compute(struct pools_input input)
{
	input.prefix = "spidernet.io";
	return pools_compute(&input);
}

static const json_t *device(const json_t *pools, const char *name, const char *id)
{
	return json_find(json_at(resource(pools, name), "devices"), "id", id);
}

static size_t count(const json_t *pools, const char *name)
{
	return json_array_size(json_at(resource(pools, name), "devices"));
}

#define SEED "spidernet.io/mellanoxrdma"

/* ---- what does no work ----------------------------------------------------------------------- */

/*
 * The PF's or the VF's member, and what becomes of the VFs of the seed's resource; "": they are
 * well.
 */
TEST(a_vf_that_can_do_no_work_is_unhealthy)
{
	static const struct {
		const char *pf, *vf, *cause;
		bool is_held, is_active;
	} cases[] = {
		{"{host: {carrier: true}, linkAdminState: up}", "{}", "", false, false},
		/* It may be back in a moment. */
		{"{host: {carrier: false}}", "{}", "", false, false},
		{"{host: {carrier: false, noLink: true}}", "{}",
		 "0000:3b:00.2: its port ens1f0 has no link; check cable and switch", false, false},
		{"{linkAdminState: down, host: {noLink: true}}", "{}",
		 "0000:3b:00.2: its port ens1f0 is down; ip link set ens1f0 up", false, false},
		/* A pod that has it can start again before the link is there. */
		{"{host: {carrier: false, noLink: true}}", "{}", "", true, false},
		{"{host: {healthErrors: [fw_fatal]}}", "{}",
		 "0000:3b:00.2: 0000:3b:00.0 reports an error of its fw_fatal; see devlink health "
		 "show pci/0000:3b:00.0",
		 true, false},
		{"{}", "{host: {healthErrors: [vnic]}}",
		 "0000:3b:00.2: 0000:3b:00.2 reports an error of its vnic; see devlink health show "
		 "pci/0000:3b:00.2",
		 false, false},
		{"{host: {brokenMs: 5}}", "{}",
		 "0000:3b:00.2: 0000:3b:00.0 had a fatal PCI Express error in the last ten "
		 "minutes; see dmesg, and its slot",
		 true, false},
		{"{linkType: IB, host: {carrier: true}}", "{}",
		 "0000:3b:00.2: its port ens1f0 is INIT; is a subnet manager running?", false,
		 false},
		/* IPoIB is not used. */
		{"{linkType: IB, linkAdminState: down, host: {carrier: false, noLink: true}}", "{}",
		 "", false, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = host(), *pf = yaml(cases[i].pf), *vf = yaml(cases[i].vf);
		json_auto_t *wanted =
			spec("0000:3b:00.0", "[{resourceName: mellanoxrdma, vfRange: 0-0, "
					     "deviceType: netdevice, isRdma: true}]");
		json_auto_t *allocated =
			cases[i].is_held ? yaml("{'" SEED "': {'0000:3b:00.2': ml/a/c}}") : NULL;
		json_auto_t *pools = NULL;

		json_merge_patch(json_array_get(json_at(observed, "interfaces"), 0), pf);
		json_merge_patch(vf_of(observed, 0, 0), vf);
		json_put_str(
			json_array_get(
				json_at(json_array_get(json_at(observed, "rdma", "devices"), 0),
					"ports"),
				0),
			"state", cases[i].is_active ? "ACTIVE" : "INIT");
		pools = compute((struct pools_input){
			.spec = wanted, .observed = observed, .allocated = allocated});
		assert_int_equal(
			json_is_true(json_at(device(pools, SEED, "0000:3b:00.2"), "healthy")),
			cases[i].cause[0] == '\0');
		assert_string_equal(
			json_str_or(json_array_get(json_at(resource(pools, SEED), "causes"), 0),
				    ""),
			cases[i].cause);
	}
}

/* ---- VF groups ------------------------------------------------------------------------------- */

TEST(an_rdma_vf_has_what_upstream_gives)
{
	json_auto_t *observed = host();
	json_auto_t *wanted = spec("0000:3b:00.0", "[{resourceName: mellanoxrdma, vfRange: 0-1, "
						   "deviceType: netdevice, isRdma: true}]");
	json_auto_t *pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	const json_t *vf = device(pools, SEED, "0000:3b:00.2");

	assert_string_equal(json_str_at(resource(pools, SEED), "kind"), "sriov");
	assert_string_equal(json_str_at(resource(pools, SEED), "policy"), "spread");
	assert_string_equal(json_str_at(resource(pools, SEED), "permissions"), "rw");
	assert_string_equal(json_str_at(resource(pools, SEED), "env"),
			    "PCIDEVICE_SPIDERNET_IO_MELLANOXRDMA");
	assert_int_equal(json_integer_value(json_at(resource(pools, SEED), "wanted")), 2);
	assert_text(json_at(resource(pools, SEED), "causes"), "[]");
	assert_text(
		vf,
		"{\"details\":{\"generic\":{\"deviceID\":\"0000:3b:00.2\"},"
		"\"rdma\":{\"issm\":\"/dev/infiniband/issm2\",\"rdma_cm\":\"/dev/infiniband/"
		"rdma_cm\","
		"\"rdma_dev\":\"mlx5_2\",\"umad\":\"/dev/infiniband/umad2\","
		"\"uverbs\":\"/dev/infiniband/uverbs2\"}},\"healthy\":true,\"id\":\"0000:3b:00.2\","
		"\"info\":{\"pci\":{\"pci-address\":\"0000:3b:00.2\",\"rdma-device\":\"mlx5_2\"},"
		"\"type\":\"pci\",\"version\":\"1.1.0\"},"
		"\"nodes\":[\"/dev/infiniband/uverbs2\",\"/dev/infiniband/umad2\","
		"\"/dev/infiniband/issm2\",\"/dev/infiniband/rdma_cm\"],"
		"\"numa\":0,\"pf\":\"0000:3b:00.0\"}");
	assert_int_equal(count(pools, SEED), 2);
	assert_text(json_at(pools, "problems"), "[]");
}

TEST(in_exclusive_mode_a_pod_gets_the_vfs_folder)
{
	json_auto_t *observed = host(), *pools = NULL, *later = NULL;
	json_auto_t *wanted = spec("0000:3b:00.0", "[{resourceName: mellanoxrdma, vfRange: 0-1, "
						   "deviceType: netdevice, isRdma: true}]");
	json_t *vf = vf_of(observed, 0, 0);
	const json_t *offered;

	json_put_str(json_at(observed, "rdma"), "netnsMode", "exclusive");
	pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	offered = device(pools, SEED, "0000:3b:00.2");
	assert_text(json_at(offered, "nodes"),
		    "[\"/dev/infiniband/rdma_cm\",{\"hostPath\":\"/run/orbweaver/rdma/"
		    "0000:3b:00.2\",\"path\":\"/dev/infiniband/0000:3b:00.2/..\"}]");
	assert_text(json_at(offered, "details", "rdma"),
		    "{\"rdma_cm\":\"/dev/infiniband/rdma_cm\",\"rdma_dev\":\"mlx5_2\"}");
	/* And while it is in a pod. */
	json_put_bool(json_at(vf, "host"), "inUse", true);
	hide_rdma(observed, "mlx5_2");
	later = compute(
		(struct pools_input){.spec = wanted, .observed = observed, .before = pools});
	assert_true(json_same(json_at(device(later, SEED, "0000:3b:00.2"), "nodes"),
			      json_at(offered, "nodes")));
}

TEST(a_vf_without_rdma_gets_no_rdma_files)
{
	json_auto_t *observed = host();
	json_auto_t *wanted =
		spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-0, excludeTopology: true}]");
	json_auto_t *pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	const json_t *vf = device(pools, "spidernet.io/x", "0000:3b:00.2");

	assert_text(json_at(vf, "nodes"), "[]");
	assert_text(json_at(vf, "details"), "{\"generic\":{\"deviceID\":\"0000:3b:00.2\"}}");
	assert_text(json_at(vf, "info", "pci"), "{\"pci-address\":\"0000:3b:00.2\"}");
	assert_null(json_at(vf, "numa"));
}

TEST(a_range_names_the_vfs)
{
	static const struct {
		const char *range;
		size_t there;
		int wanted;
	} rows[] = {{"0-2", 3, 3}, {"1-1", 1, 1}, {"1-7", 2, 7},
		    {"5-6", 0, 2}, {"2", 1, 1},   {"", 3, 3}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *groups =
			str_printf("[{resourceName: x, vfRange: '%s'}]", rows[i].range);
		json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", groups);
		json_auto_t *pools =
			compute((struct pools_input){.spec = wanted, .observed = observed});

		assert_int_equal(count(pools, "spidernet.io/x"), rows[i].there);
		assert_int_equal(
			json_integer_value(json_at(resource(pools, "spidernet.io/x"), "wanted")),
			rows[i].wanted);
		if ((int)rows[i].there < rows[i].wanted)
			assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"),
				    "0000:3b:00.0 (ens1f0): ");
	}
}

TEST(a_group_that_cannot_be_read_is_told)
{
	static const struct {
		const char *group, *part;
	} rows[] = {
		{"{resourceName: x, vfRange: 7-0}", "vfRange: \\\"7-0\\\""},
		{"{resourceName: x, vfRange: a-b}", "vfRange"},
		{"{resourceName: x, vfRange: 0-70000}", "vfRange"},
		{"{resourceName: x, vfRange: 0-1, deviceType: uio}", "deviceType: \\\"uio\\\""},
		{"{resourceName: x, vfRange: 0-1, isRdma: 'yes!'}", "isRdma"},
		{"{resourceName: [], vfRange: 0-1}", "resourceName"},
		{"{resourceName: _x, vfRange: 0-1}", "at both ends"},
		{"{resourceName: a/b, vfRange: 0-1}", "1 to 63 letters"},
		{"{resourceName: "
		 "a123456789a123456789a123456789a123456789a123456789a123456789a123, vfRange: 0-1}",
		 "1 to 63 letters"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *groups =
			str_printf("[%s, {resourceName: good, vfRange: 0-1}]", rows[i].group);
		json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", groups);
		json_auto_t *pools =
			compute((struct pools_input){.spec = wanted, .observed = observed});

		assert_int_equal(json_array_size(json_at(pools, "resources")), 1);
		assert_int_equal(count(pools, "spidernet.io/good"), 2);
		assert_says(json_at(pools, "problems"), rows[i].part);
	}
}

TEST(policies_with_one_name_share_a_pool)
{
	json_auto_t *observed = host();
	json_auto_t *wanted =
		yaml("interfaces:\n"
		     "- {pciAddress: '0000:86:00.0', vfGroups: [{resourceName: x, vfRange: 0-0}]}\n"
		     "- {pciAddress: '0000:3b:00.0', vfGroups: [{resourceName: x, vfRange: 1-1},\n"
		     "   {resourceName: x, vfRange: 0-0, isRdma: true}]}\n");
	json_auto_t *pools =
		compute((struct pools_input){.spec = wanted, .observed = observed, .packed = true});
	const json_t *devices = json_at(resource(pools, "spidernet.io/x"), "devices");

	assert_int_equal(json_array_size(json_at(pools, "resources")), 1);
	assert_string_equal(json_str_at(resource(pools, "spidernet.io/x"), "policy"), "packed");
	assert_int_equal(json_integer_value(json_at(resource(pools, "spidernet.io/x"), "wanted")),
			 3);
	assert_string_equal(json_str_at(json_array_get(devices, 0), "id"), "0000:3b:00.2");
	assert_non_null(json_at(json_array_get(devices, 0), "details", "rdma"));
	assert_string_equal(json_str_at(json_array_get(devices, 1), "id"), "0000:3b:00.3");
	assert_null(json_at(json_array_get(devices, 1), "details", "rdma"));
	assert_string_equal(json_str_at(json_array_get(devices, 2), "pf"), "0000:86:00.0");
}

TEST(gpus_matter_where_a_pool_has_vfs_of_several_nics)
{
	json_auto_t *observed = host();
	json_auto_t *wanted =
		yaml("interfaces:\n"
		     "- {pciAddress: '0000:86:00.0', vfGroups: [{resourceName: x, vfRange: 0-0}]}\n"
		     "- {pciAddress: '0000:3b:00.0', vfGroups: [{resourceName: x, vfRange: 0-0},\n"
		     "   {resourceName: z, vfRange: 1-1}]}\n");
	struct pools_input input = {.spec = wanted, .observed = observed};
	json_auto_t *without = compute(input), *with = NULL;

	assert_null(json_at(resource(without, "spidernet.io/x"), "gpus"));
	json_put(observed, "gpus", yaml("[{pciAddress: '0000:1b:00.0'}]"));
	with = compute(input);
	assert_true(json_is_true(json_at(resource(with, "spidernet.io/x"), "gpus")));
	assert_null(json_at(resource(with, "spidernet.io/z"), "gpus"));
}

TEST(a_vf_is_offered_once)
{
	json_auto_t *observed = host();
	json_auto_t *wanted =
		spec("0000:3b:00.0",
		     "[{resourceName: a, vfRange: 0-1}, {resourceName: b, vfRange: 1-2}]");
	json_auto_t *pools = compute((struct pools_input){.spec = wanted, .observed = observed});

	assert_int_equal(count(pools, "spidernet.io/a"), 2);
	assert_int_equal(count(pools, "spidernet.io/b"), 1);
	assert_says(json_at(resource(pools, "spidernet.io/b"), "causes"),
		    "0000:3b:00.3: it is offered as spidernet.io/a already");
}

TEST(vfio_comes_with_its_group)
{
	json_auto_t *observed = host();
	json_auto_t *wanted =
		spec("0000:3b:00.0", "[{resourceName: x, vfRange: 2-2, deviceType: vfio-pci}]");
	json_auto_t *names = json_pack("[s,s]", "vfio/noiommu-42", "vfio/vfio");
	json_auto_t *pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	json_auto_t *bare = compute(
		(struct pools_input){.spec = wanted, .observed = observed, .dev_names = names});
	const json_t *vf = device(pools, "spidernet.io/x", "0000:3b:00.4");

	assert_true(json_is_true(json_at(vf, "healthy")));
	assert_text(json_at(vf, "nodes"), "[\"/dev/vfio/vfio\",\"/dev/vfio/42\"]");
	assert_text(json_at(vf, "details", "vfio"),
		    "{\"dev-mount\":\"/dev/vfio/42\",\"mount\":\"/dev/vfio/vfio\"}");
	assert_int_equal(json_integer_value(json_at(vf, "numa")), 1);
	assert_text(json_at(device(bare, "spidernet.io/x", "0000:3b:00.4"), "nodes"),
		    "[\"/dev/vfio/vfio\",{\"hostPath\":\"/dev/vfio/noiommu-42\",\"path\":\"/dev/"
		    "vfio/42\"}]");
}

TEST(vhost_net_brings_its_files_or_is_missed)
{
	json_auto_t *observed = host();
	json_auto_t *wanted =
		spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-0, needVhostNet: true}]");
	json_auto_t *names = json_pack("[s,s]", "net", "net/tun");
	json_auto_t *pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	json_auto_t *without = compute(
		(struct pools_input){.spec = wanted, .observed = observed, .dev_names = names});
	const json_t *vf = device(pools, "spidernet.io/x", "0000:3b:00.2");

	assert_text(json_at(vf, "nodes"), "[\"/dev/vhost-net\",\"/dev/net/tun\"]");
	assert_text(json_at(vf, "details", "vhost"),
		    "{\"net-mount\":\"/dev/vhost-net\",\"tun-mount\":\"/dev/net/tun\"}");
	vf = device(without, "spidernet.io/x", "0000:3b:00.2");
	assert_true(json_is_false(json_at(vf, "healthy")));
	assert_says(vf, "/dev/vhost-net is missing");
}

/* What is there and cannot be used is unhealthy, and says why. */
TEST(a_vf_that_is_not_ready_is_unhealthy_with_a_cause)
{
	static const struct {
		const char *group, *set, *part;
	} rows[] = {
		{"isRdma: true", "{driver: }", "no driver is bound to it yet"},
		{"isRdma: true", "{driver: vfio-pci}",
		 "driver vfio-pci is bound to it, wanted the kernel's"},
		{"deviceType: vfio-pci", "{driver: mlx5_core}",
		 "driver mlx5_core is bound to it, wanted vfio-pci"},
		{"deviceType: vfio-pci", "{driver: vfio-pci}", "no IOMMU group"},
		{"isRdma: true", "{driver: mlx5_core}", "no RDMA device yet"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *groups =
			str_printf("[{resourceName: x, vfRange: 0-0, %s}]", rows[i].group);
		json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", groups);
		json_auto_t *set = yaml(rows[i].set), *pools = NULL;

		hide_rdma(observed, "mlx5_2");
		json_object_update(vf_of(observed, 0, 0), set);
		pools = compute((struct pools_input){.spec = wanted, .observed = observed});
		assert_int_equal(count(pools, "spidernet.io/x"), 1);
		assert_true(json_is_false(
			json_at(device(pools, "spidernet.io/x", "0000:3b:00.2"), "healthy")));
		assert_says(json_at(device(pools, "spidernet.io/x", "0000:3b:00.2"), "cause"),
			    rows[i].part);
		assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"), rows[i].part);
	}
}

TEST(an_rdma_device_without_verbs_is_unhealthy)
{
	json_auto_t *observed = host(), *pools = NULL;
	json_auto_t *wanted =
		spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-0, isRdma: true}]");

	json_array_clear(
		json_at(json_array_get(json_at(observed, "rdma", "devices"), 2), "charDevices"));
	pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	assert_says(json_at(device(pools, "spidernet.io/x", "0000:3b:00.2"), "cause"),
		    "mlx5_2 has no file uverbs*");
}

TEST(causes_are_bounded)
{
	json_auto_t *observed = host(), *pools = NULL;
	json_auto_t *wanted =
		spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-19, isRdma: true}]");
	json_t *vfs = json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs");

	for (int i = 3; i < 20; i++)
		json_array_append_new(vfs, json_pack("{s:i,s:o}", "vfID", i, "pciAddress",
						     json_fmt("0000:3b:01.%d", i)));
	pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	assert_int_equal(json_array_size(json_at(resource(pools, "spidernet.io/x"), "causes")), 9);
	assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"), "and 10 more");
}

TEST(a_pf_that_is_missing_leaves_an_empty_pool)
{
	static const struct {
		const char *pf, *part;
	} rows[] = {
		{"0000:99:00.0", "0000:99:00.0 (ens1f0): no such PF"},
		{"0000:af:00.0", "0000:af:00.0: no driver is bound to it: load"},
		{"0000:3b:00.2", "no such PF"},
		{"0000:5e:00.0", "0000:5e:00.0 (eno1): 4 of 4 VFs are not there yet"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *observed = host();
		json_auto_t *wanted = spec(rows[i].pf, "[{resourceName: x, vfRange: 0-3}]");
		json_auto_t *pools =
			compute((struct pools_input){.spec = wanted, .observed = observed});

		assert_int_equal(count(pools, "spidernet.io/x"), 0);
		assert_int_equal(
			json_integer_value(json_at(resource(pools, "spidernet.io/x"), "wanted")),
			4);
		assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"), rows[i].part);
	}
}

TEST(an_external_pf_is_offered_and_blamed_on_its_manager)
{
	json_auto_t *observed = host(), *pools = NULL;
	json_auto_t *wanted = spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-3}]");

	json_put_bool(json_array_get(json_at(wanted, "interfaces"), 0), "externallyManaged", true);
	pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	assert_int_equal(count(pools, "spidernet.io/x"), 3);
	assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"),
		    "whoever manages this PF");
}

TEST(vdpa_is_refused_by_name)
{
	json_auto_t *observed = host();
	json_auto_t *wanted =
		spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-1, vdpaType: vhost}]");
	json_auto_t *pools = compute((struct pools_input){.spec = wanted, .observed = observed});

	assert_int_equal(count(pools, "spidernet.io/x"), 0);
	assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"), "vdpaType vhost");
}

TEST(a_vf_that_carries_the_nodes_address_is_not_offered)
{
	json_auto_t *observed = host(), *pools = NULL;
	json_auto_t *wanted = spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-1}]");

	json_array_append_new(json_at(observed, "node", "protected"),
			      json_pack("{s:s,s:s}", "pciAddress", "0000:3b:00.3", "reason",
					"has the node's address"));
	pools = compute((struct pools_input){.spec = wanted, .observed = observed});
	assert_null(device(pools, "spidernet.io/x", "0000:3b:00.3"));
	assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"),
		    "0000:3b:00.3: not offered, it has the node's address");
}

/* The sriov plugin would refuse it. In use by a pod it stays as it is. */
TEST(a_vf_that_the_node_uses_is_not_for_pods)
{
	static const struct {
		const char *kind, *name, *pod, *cause;
		bool is_unknown;
	} cases[] = {
		{"host", "the node: ens1v0 has an address", NULL,
		 "it is used by the node: ens1v0 has an address; end that use", false},
		{"host", "br0, of which ens1v0 is a part", NULL, "it is used by br0", false},
		{"host", "the node: ens1v0 has an address", "ns/pod/c", NULL, false},
		{"host", "nobody knows whom (list routes)", NULL, NULL, true},
		{"netns", "/run/netns/cni-1", NULL, NULL, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = host(), *pools = NULL, *allocated = json_object();
		json_auto_t *wanted = spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-1}]");
		json_t *of_host = json_at(vf_of(observed, 0, 0), "host");
		const json_t *vf;

		json_put_bool(of_host, "inUse", true);
		json_put(of_host, "holder",
			 json_pack("{s:s, s:s, s:b}", "kind", cases[i].kind, "name", cases[i].name,
				   "unknown", cases[i].is_unknown));
		if (cases[i].pod)
			json_put(allocated, "spidernet.io/x",
				 json_pack("{s:s}", "0000:3b:00.2", cases[i].pod));
		pools = compute((struct pools_input){
			.spec = wanted, .observed = observed, .allocated = allocated});
		vf = device(pools, "spidernet.io/x", "0000:3b:00.2");
		if (json_is_true(json_at(vf, "healthy")) != !cases[i].cause)
			fail_msg("case %zu: %s", i, json_text(vf));
		if (cases[i].cause) {
			assert_says(json_at(vf, "cause"), cases[i].cause);
			assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"),
				    cases[i].cause);
		}
		assert_true(json_is_true(
			json_at(device(pools, "spidernet.io/x", "0000:3b:00.3"), "healthy")));
	}
}

/* ---- VFs that pods have ---------------------------------------------------------------------- */

static const char GROUP[] = "[{resourceName: mellanoxrdma, vfRange: 0-1, isRdma: true}]";

/* The first VF is in a pod, RDMA device included, as in mode exclusive. */
static void take_away(json_t *observed)
{
	json_t *vf = vf_of(observed, 0, 0);

	(void)json_object_del(vf, "name");
	json_put_bool(json_at(vf, "host"), "inUse", true);
	json_put(json_at(vf, "host"), "holder",
		 json_pack("{s:s,s:s}", "kind", "netns", "name", "/run/netns/cni-1"));
	hide_rdma(observed, "mlx5_2");
}

TEST(a_held_vf_out_of_sight_stays_what_it_was)
{
	json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", GROUP);
	json_auto_t *before = compute((struct pools_input){.spec = wanted, .observed = observed});
	json_auto_t *away = NULL, *later = NULL, *back = NULL, *host_again = host();

	take_away(observed);
	away = compute(
		(struct pools_input){.spec = wanted, .observed = observed, .before = before});
	assert_true(json_same(away, before));
	later = compute((struct pools_input){.spec = wanted, .observed = observed, .before = away});
	assert_true(json_same(later, before));
	back = compute(
		(struct pools_input){.spec = wanted, .observed = host_again, .before = later});
	assert_true(json_same(back, before));
}

TEST(a_held_vf_that_was_never_seen_is_healthy_and_cannot_be_had)
{
	json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", GROUP), *pools = NULL;
	json_auto_t *allocated = json_pack("{s:{s:s}}", SEED, "0000:3b:00.2", "ns/pod/c");
	const json_t *vf;

	take_away(observed);
	pools = compute(
		(struct pools_input){.spec = wanted, .observed = observed, .allocated = allocated});
	vf = device(pools, SEED, "0000:3b:00.2");
	assert_true(json_is_true(json_at(vf, "healthy")));
	assert_says(json_at(vf, "cause"), "ns/pod/c has it, its RDMA device is out of sight");
	assert_text(json_at(resource(pools, SEED), "causes"), "[]");
}

TEST(a_vf_is_held_when_only_the_kubelet_knows)
{
	json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", GROUP), *pools = NULL;
	json_auto_t *before = compute((struct pools_input){.spec = wanted, .observed = observed});
	json_auto_t *allocated = json_pack("{s:{s:s}}", SEED, "0000:3b:00.2", "ns/pod/c");

	hide_rdma(observed, "mlx5_2");
	pools = compute((struct pools_input){
		.spec = wanted, .observed = observed, .before = before, .allocated = allocated});
	assert_true(json_same(pools, before));
}

/* A policy's resource was renamed, or the VF moved to another one. */
TEST(what_a_pod_has_under_another_name_is_not_given_again)
{
	json_auto_t *observed = host(), *s = spec("0000:3b:00.0", GROUP);
	json_auto_t *other = yaml("{old/name: {'0000:3b:00.2': ns/pod/c, '0': ns/b/c}}");
	json_auto_t *own = yaml("{old/name: {'0000:3b:00.2': ns/pod/c},\n"
				" spidernet.io/mellanoxrdma: {'0000:3b:00.2': ns/new/c}}");
	json_auto_t *pools =
		compute((struct pools_input){.spec = s, .observed = observed, .allocated = other});
	json_auto_t *shared =
		compute((struct pools_input){.spec = s, .observed = observed, .allocated = own});
	const json_t *vf = device(pools, SEED, "0000:3b:00.2");

	assert_true(json_is_false(json_at(vf, "healthy")));
	assert_string_equal(json_str_at(vf, "cause"), "ns/pod/c has it as old/name");
	assert_true(json_is_true(json_at(device(pools, SEED, "0000:3b:00.3"), "healthy")));
	assert_true(json_is_true(json_at(device(shared, SEED, "0000:3b:00.2"), "healthy")));
}

TEST(what_a_pod_has_and_the_host_has_not_is_unhealthy)
{
	json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", GROUP), *pools = NULL;
	json_auto_t *before = compute((struct pools_input){.spec = wanted, .observed = observed});
	json_auto_t *allocated = json_pack("{s:{s:s}}", SEED, "0000:3b:00.3", "ns/pod/c");

	json_array_clear(json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs"));
	pools = compute((struct pools_input){
		.spec = wanted, .observed = observed, .before = before, .allocated = allocated});
	assert_int_equal(count(pools, SEED), 1);
	assert_true(json_is_false(json_at(device(pools, SEED, "0000:3b:00.3"), "healthy")));
	assert_says(json_at(resource(pools, SEED), "causes"), "ns/pod/c has it");
}

/* Its driver starts anew, say. */
TEST(vfs_of_a_pf_that_is_gone_for_a_moment_are_unhealthy)
{
	json_auto_t *observed = host(), *wanted = spec("0000:3b:00.0", GROUP), *pools = NULL;
	json_auto_t *before = compute((struct pools_input){.spec = wanted, .observed = observed});
	json_auto_t *allocated = json_pack("{s:{s:s}}", SEED, "0000:3b:00.3", "ns/pod/c");
	json_t *interfaces = json_at(observed, "interfaces");
	const json_t *vf;

	json_object_set_new(observed, "missing", json_pack("[O]", json_array_get(interfaces, 0)));
	json_array_remove(interfaces, 0);
	pools = compute((struct pools_input){
		.spec = wanted, .observed = observed, .before = before, .allocated = allocated});
	assert_int_equal(count(pools, SEED), count(before, SEED));
	assert_says(json_at(resource(pools, SEED), "causes"), "vanished and is waited for");
	vf = device(pools, SEED, "0000:3b:00.2");
	assert_true(json_is_false(json_at(vf, "healthy")));
	assert_text(json_at(vf, "cause"), "\"its PF has vanished and is waited for\"");
	assert_true(json_same(json_at(vf, "info"),
			      json_at(device(before, SEED, "0000:3b:00.2"), "info")));
	assert_true(json_is_false(json_at(device(pools, SEED, "0000:3b:00.3"), "healthy")));
}

/*
 * The agent has started meanwhile: it knows them from the status alone. A second group has those of
 * its own range.
 */
TEST(vfs_of_a_missing_pf_are_of_their_group_also_when_they_were_never_seen)
{
	json_auto_t *observed =
		yaml("missing: [{pciAddress: '0000:3b:00.0', Vfs: [{vfID: 0, "
		     "pciAddress: '0000:3b:00.2'}, {vfID: 1, pciAddress: "
		     "'0000:3b:00.3'}, {vfID: x, pciAddress: '0000:3b:00.4'}, 5]}]");
	json_auto_t *wanted = spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-0}, "
						   "{resourceName: z, vfRange: 1-2}]");
	json_auto_t *pools = compute((struct pools_input){.spec = wanted, .observed = observed});

	assert_int_equal(count(pools, "spidernet.io/x"), 1);
	assert_int_equal(count(pools, "spidernet.io/z"), 1);
	assert_true(
		json_is_false(json_at(device(pools, "spidernet.io/x", "0000:3b:00.2"), "healthy")));
	assert_non_null(device(pools, "spidernet.io/z", "0000:3b:00.3"));
}

/* ---- the upstream plugin's list -------------------------------------------------------------- */

static json_t *list(const char *text)
{
	struct err err = {0};
	json_t *doc = pools_read_resource_list(text, strlen(text), &err);

	if (!doc)
		fail_msg("%s: %s", text, err.text);
	return doc;
}

/* The ids that one selector object takes, as text. */
static char *selected_ids(const char *selectors)
{
	auto_free char *text = str_printf(
		"{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":%s}]}", selectors);
	json_auto_t *doc = list(text), *observed = host();
	json_auto_t *pools =
		compute((struct pools_input){.observed = observed, .resource_list = doc});
	struct strbuf ids = {0};
	json_t *item;
	size_t i;

	json_array_foreach (json_at(resource(pools, "spidernet.io/x"), "devices"), i, item)
		strbuf_addf(&ids, "%s%s", i ? " " : "", json_str_at(item, "id") + 5);
	assert_int_equal(json_integer_value(json_at(resource(pools, "spidernet.io/x"), "wanted")),
			 i);
	return strbuf_take(&ids);
}

TEST(selectors_pick_what_upstream_picks)
{
	static const struct {
		const char *selectors, *ids;
	} rows[] = {
		{"{}", "3b:00.2 3b:00.3 3b:00.4 86:00.2"},
		{"{\"vendors\":[\"8086\"]}", ""},
		{"{\"vendors\":[\"15b3\"],\"devices\":[\"1018\"],\"drivers\":[\"mlx5_core\"]}",
		 "3b:00.2 3b:00.3 86:00.2"},
		{"{\"drivers\":[\"vfio-pci\"]}", "3b:00.4"},
		{"{\"PfNames\":[\"ens1f0\"]}", "3b:00.2 3b:00.3 3b:00.4"},
		{"{\"pfNames\":[\"ENS1F0#0,2-5\",\"ens2f0\"]}", "3b:00.2 3b:00.4 86:00.2"},
		{"{\"pfNames\":[\"ens1f\"]}", ""},
		{"{\"rootDevices\":[\"0000:3b:00.0#1\"]}", "3b:00.3"},
		{"{\"pciAddresses\":[\"0000:86:00.2\"]}", "86:00.2"},
		{"{\"pciAddresses\":[\"86:00.2\"]}", ""},
		{"{\"linkTypes\":[\"infiniband\"]}", ""},
		{"{\"linkTypes\":[\"ether\"],\"IsRdma\":true}", "3b:00.2 3b:00.3"},
		{"[{\"pfNames\":[\"ens2f0\"]},{\"rootDevices\":[\"0000:3b:00.0#1\"]}]",
		 "3b:00.3 86:00.2"},
		{"{\"vendors\":null,\"pfNames\":[]}", "3b:00.2 3b:00.3 3b:00.4 86:00.2"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *ids = selected_ids(rows[i].selectors);

		if (!str_eq(ids, rows[i].ids))
			fail_msg("%s: %s, wanted %s", rows[i].selectors, ids, rows[i].ids);
	}
}

TEST(the_first_match_wins)
{
	json_auto_t *observed = host();
	json_auto_t *doc = list("{\"resourceList\":[{\"resourceName\":\"b\",\"selectors\":{"
				"\"pfNames\":[\"ens1f0#0\"]}},"
				"{\"resourceName\":\"a\",\"resourcePrefix\":\"intel.com\","
				"\"selectors\":{\"vendors\":[\"15b3\"]}}]}");
	json_auto_t *wanted = spec("0000:3b:00.0", "[{resourceName: mine, vfRange: 1-1}]");
	json_auto_t *pools = compute(
		(struct pools_input){.spec = wanted, .observed = observed, .resource_list = doc});

	assert_non_null(device(pools, "spidernet.io/mine", "0000:3b:00.3"));
	assert_non_null(device(pools, "spidernet.io/b", "0000:3b:00.2"));
	assert_null(device(pools, "intel.com/a", "0000:3b:00.2"));
	assert_null(device(pools, "intel.com/a", "0000:3b:00.3"));
	assert_int_equal(count(pools, "intel.com/a"), 2);
	assert_says(json_at(resource(pools, "intel.com/a"), "causes"),
		    "it is offered as spidernet.io/b already");
}

TEST(a_pf_without_vfs_is_offered_unless_the_node_needs_it)
{
	json_auto_t *observed = host(), *open = host();
	json_auto_t *doc = list("{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":{"
				"\"vendors\":[\"8086\"]}}]}");
	json_auto_t *pools =
		compute((struct pools_input){.observed = observed, .resource_list = doc});
	json_auto_t *free_pools = NULL;

	assert_int_equal(count(pools, "spidernet.io/x"), 0);
	assert_says(
		json_at(pools, "problems"),
		"0000:5e:00.0 (eno1) is selected, but not offered: it carries the default route");
	assert_says(json_at(pools, "problems"), "\"reason\":\"ProtectedNic\"");
	(void)json_object_del(json_at(json_array_get(json_at(open, "interfaces"), 1), "host"),
			      "protected");
	(void)json_object_del(json_at(open, "node"), "protected");
	free_pools = compute((struct pools_input){.observed = open, .resource_list = doc});
	assert_string_equal(json_str_at(device(free_pools, "spidernet.io/x", "0000:5e:00.0"), "pf"),
			    "0000:5e:00.0");
}

/* docs/device-plugins.md: "an entry that matches nothing on a node (`NothingSelected`)" */
TEST(an_entry_that_matches_nothing_names_each_selector_that_fails)
{
	json_auto_t *observed = host();
	json_auto_t *doc = list("{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":{"
				"\"devices\":[\"0000:24:00.2\"],\"drivers\":[\"mlx5_ib\"],"
				"\"pfNames\":[\"ens9\"]}}]}");
	json_auto_t *pools =
		compute((struct pools_input){.observed = observed, .resource_list = doc});

	assert_int_equal(count(pools, "spidernet.io/x"), 0);
	assert_says(json_at(pools, "problems"), "\"reason\":\"NothingSelected\"");
	assert_says(json_at(pools, "problems"), "wanted 0000:24:00.2; driver");
	assert_says(json_at(pools, "problems"), "wanted mlx5_ib; PF");
	assert_says(json_at(resource(pools, "spidernet.io/x"), "causes"), "wanted ens9");
}

TEST(an_rdma_vf_in_a_pod_still_counts_as_rdma)
{
	json_auto_t *observed = host(), *pools = NULL;
	json_auto_t *doc = list(
		"{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":{\"isRdma\":true}}]}");

	take_away(observed);
	pools = compute((struct pools_input){.observed = observed, .resource_list = doc});
	assert_int_equal(count(pools, "spidernet.io/x"), 2);
	assert_true(
		json_is_true(json_at(device(pools, "spidernet.io/x", "0000:3b:00.2"), "healthy")));
}

TEST(additional_info_is_overridden_by_address)
{
	json_auto_t *observed = host();
	json_auto_t *doc = list("{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":{"
				"\"pfNames\":[\"ens1f0#0-1\"]},"
				"\"additionalInfo\":{\"*\":{\"token\":\"all\",\"a\":\"b\"},\"0000:"
				"3b:00.3\":{\"token\":\"own\"}}}]}");
	json_auto_t *pools =
		compute((struct pools_input){.observed = observed, .resource_list = doc});

	assert_text(json_at(device(pools, "spidernet.io/x", "0000:3b:00.2"), "details", "extra"),
		    "{\"a\":\"b\",\"token\":\"all\"}");
	assert_text(json_at(device(pools, "spidernet.io/x", "0000:3b:00.3"), "details", "extra"),
		    "{\"a\":\"b\",\"token\":\"own\"}");
}

TEST(an_entry_that_cannot_be_had_names_its_field)
{
	static const struct {
		const char *entry, *part;
	} rows[] = {
		{"{\"resourceName\":\"x\"}", "resourceList[0].selectors: must be"},
		{"{\"resourceName\":\"x\",\"selectors\":[]}", "resourceList[0].selectors: must be"},
		{"{\"resourceName\":\"x\",\"selectors\":[null]}",
		 "resourceList[0].selectors[0]: is null"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"vendors\":\"15b3\"}}",
		 "selectors[0].vendors"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"ddpProfiles\":[\"p\"]}}",
		 "selectors[0].ddpProfiles: is not supported"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"pKeys\":[\"p\"]}}",
		 "selectors[0].pKeys: is not supported"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"acpiIndexes\":[\"1\"]}}",
		 "acpiIndexes: is not supported"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"vdpaType\":\"vhost\"}}",
		 "vdpaType: is not supported"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"pfNames\":[\"a#1-2-3\"]}}",
		 "pfNames: \\\"a#1-2-3\\\" is malformed"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"pfNames\":[\"a#\"]}}", "is malformed"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"pfNames\":[\"a#0\",\"a#5\"]}}",
		 "would not count"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"isRdma\":\"true\"}}",
		 "selectors[0].isRdma"},
		{"{\"resourceName\":\"x\",\"deviceType\":\"accelerator\",\"selectors\":{}}",
		 "deviceType: accelerator is not supported"},
		{"{\"resourceName\":\"x\",\"deviceType\":\"auxNetDevice\",\"selectors\":{}}",
		 "deviceType: auxNetDevice is not"},
		{"{\"resourceName\":\"x\",\"deviceType\":\"netdevice\",\"selectors\":{}}",
		 "must be netDevice"},
		{"{\"resourceName\":\"x\",\"selectors\":{},\"additionalInfo\":{\"*\":{\"a\":1}}}",
		 "additionalInfo.*.a: is an integer"},
		{"7", "resourceList[0]: is an integer"},
		{"{\"resourceName\":\"x-\",\"selectors\":{}}", "at both ends"},
		{"{\"resourceName\":\"x\",\"resourcePrefix\":\"Intel.com\",\"selectors\":{}}",
		 "no DNS name"},
		{"{\"resourceName\":\"x\",\"resourcePrefix\":\"a.kubernetes.io\",\"selectors\":{}}",
		 "reserved for Kubernetes"},
		{"{\"resourceName\":\"good\",\"selectors\":{}}",
		 "comes from another entry of it already"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"pciAddresses\":[\"0\"]},\"colour\":1}",
		 "colour: no such field"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text = str_printf(
			"{\"resourceList\":[%s,{\"resourceName\":\"good\",\"selectors\":{}}]}",
			rows[i].entry);
		json_auto_t *doc = list(text), *observed = host();
		json_auto_t *pools =
			compute((struct pools_input){.observed = observed, .resource_list = doc});

		assert_says(json_at(pools, "problems"), rows[i].part);
		assert_int_equal(count(pools, "spidernet.io/good"), 4);
	}
}

/* Without it the others would select more than was meant. */
TEST(a_selector_that_nobody_knows_changes_no_entry_that_was_good)
{
	json_auto_t *before = list("{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":"
				   "{\"vendors\":[\"15b3\"],\"pfNames\":[\"p\"]}}]}");
	json_auto_t *now = list("{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":"
				"{\"vendors\":[\"15b3\"],\"pfName\":[\"p\"]}}]}");

	pools_keep_good(now, before);
	assert_true(json_same(json_at(now, "resourceList"), json_at(before, "resourceList")));
	assert_says(json_at(now, "problems"),
		    "resourceList[0].selectors[0].pfName: no such field, the nearest is pfNames");
}

TEST(what_is_no_resource_list_is_refused)
{
	static const char *const rows[] = {"",
					   "{",
					   "[]",
					   "7",
					   "{}",
					   "{\"resourceList\":7}",
					   "{\"resources\":[]}",
					   "{\"resourceList\":[]} x"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		assert_null(pools_read_resource_list(rows[i], strlen(rows[i]), &err));
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadResourceList");
	}
}

/* What the SR-IOV operator writes for nodes without and with policies. */
TEST(the_operators_own_spelling_is_read)
{
	json_auto_t *none = list("{\"resourceList\":null}");
	json_auto_t *some = list("{\"resourceList\":[{\"resourceName\":\"mellanoxrdma\","
				 "\"selectors\":{\"vendors\":[\"15b3\"],"
				 "\"devices\":[\"1018\"],\"rootDevices\":[\"0000:3b:00.0\"],"
				 "\"IsRdma\":true,\"NeedVhostNet\":false},"
				 "\"SelectorObj\":null}]}");
	json_auto_t *observed = host();
	json_auto_t *pools =
		compute((struct pools_input){.observed = observed, .resource_list = some});

	assert_text(json_at(none, "resourceList"), "[]");
	assert_text(json_at(pools, "problems"), "[]");
	assert_int_equal(count(pools, SEED), 2);
}

/* ---- between the kinds ----------------------------------------------------------------------- */

TEST(two_kinds_cannot_have_one_name)
{
	static const char shared_text[] =
		"{\"configList\":[{\"resourceName\":\"x\",\"resourcePrefix\":\"spidernet.io\","
		"\"rdmaHcaMax\":3,\"selectors\":{\"vendors\":[\"15b3\"]}}]}";
	json_auto_t *observed = host(),
		    *wanted = spec("0000:3b:00.0", "[{resourceName: x, vfRange: 0-0}]");
	json_auto_t *shared = pools_read_shared(shared_text, strlen(shared_text), NULL);
	json_auto_t *doc = list("{\"resourceList\":[{\"resourceName\":\"x\",\"selectors\":{}}]}");
	json_auto_t *pools = compute((struct pools_input){
		.spec = wanted, .observed = observed, .shared = shared, .resource_list = doc});

	assert_int_equal(json_array_size(json_at(pools, "resources")), 1);
	assert_int_equal(count(pools, "spidernet.io/x"), 1);
	assert_says(json_at(pools, "problems"),
		    "configList of the shared device plugin: resource spidernet.io/x comes from "
		    "the SR-IOV policies already");
	assert_says(json_at(pools, "problems"),
		    "resourceList: resource spidernet.io/x comes from the SR-IOV policies already");
	assert_says(json_at(pools, "problems"), "\"reason\":\"DuplicateResource\"");
	/* Whose text is to be corrected. */
	assert_says(json_at(pools, "problems"), "\"source\":\"" POOLS_SOURCE_SHARED "\"");
	assert_says(json_at(pools, "problems"), "\"source\":\"" POOLS_SOURCE_LIST "\"");
}

TEST(nothing_configured_is_nothing_offered)
{
	json_auto_t *pools = compute((struct pools_input){0});

	assert_text(pools, "{\"problems\":[],\"resources\":[]}");
}

TEST(a_status_says_which_pod_has_what)
{
	json_auto_t *plugins = yaml("[{name: n/a, wanted: 3}, {name: n/b, wanted: 1}]");
	json_auto_t *allocated = yaml("{n/a: {'1': ns/p/c, '2': ns/q/c}, n/other: {x: ns/p/c}}");
	json_auto_t *status = pools_status(plugins, NULL, allocated, NULL);
	json_auto_t *unknown = pools_status(plugins, NULL, NULL, NULL);

	assert_text(status, "[{\"allocated\":2,\"name\":\"n/a\",\"pods\":["
			    "{\"device\":\"1\",\"pod\":\"ns/p/c\"},"
			    "{\"device\":\"2\",\"pod\":\"ns/q/c\"}],\"wanted\":3},"
			    "{\"allocated\":0,\"name\":\"n/b\",\"pods\":[],\"wanted\":1}]");
	assert_true(json_same(unknown, plugins));
}

TEST(what_is_being_changed_is_given_to_nobody)
{
	json_auto_t *pools = yaml("{resources: [{name: n/a, devices: [{id: v, healthy: true}, "
				  "{id: w, healthy: true}]}, {name: n/b, devices: []}]}"),
		    *before = json_deep_copy(pools), *devices = yaml("{w: true, z: true}");
	json_auto_t *withdrawn = pools_withdraw(pools, devices);
	json_auto_t *again = pools_withdraw(pools, NULL);

	assert_text(json_at(resource(withdrawn, "n/a"), "devices"),
		    "[{\"healthy\":true,\"id\":\"v\"},{\"cause\":\"it is being changed\","
		    "\"healthy\":false,\"id\":\"w\"}]");
	assert_true(json_same(pools, before));
	assert_true(json_same(again, before));
}

TEST(a_resource_that_nothing_asks_for_stays_while_pods_have_it)
{
	json_auto_t *plugins = yaml("[{name: n/a}]");
	json_auto_t *allocated = yaml("{n/old: {'0000:3b:00.2': ns/p/c}, gpu/x: {'1': ns/q/c}}");
	json_auto_t *before = yaml("[{name: n/a}, {name: n/old, kind: sriov, offered: 4}, "
				   "{name: n/gone, kind: sriov}]");
	json_auto_t *status = pools_status(plugins, NULL, allocated, before);
	const json_t *old = json_find(status, "name", "n/old");

	assert_int_equal(json_array_size(status), 2);
	assert_int_equal(json_integer_value(json_at(old, "offered")), 0);
	assert_int_equal(json_integer_value(json_at(old, "allocated")), 1);
	assert_text(json_at(old, "pods"), "[{\"device\":\"0000:3b:00.2\",\"pod\":\"ns/p/c\"}]");
}

TEST(what_claims_get_is_told_when_no_plugin_offers_it)
{
	json_auto_t *plugins = yaml("[{name: n/a, offered: 1}]");
	json_auto_t *given = yaml("[{name: n/a, offered: 2}, {name: n/b, offered: 2}]");
	json_auto_t *allocated = yaml("{n/b: {'1': ns/p/c}}"), *before = yaml("[{name: n/b}]");
	json_auto_t *status = pools_status(plugins, given, NULL, NULL);
	json_auto_t *late = pools_status(plugins, given, allocated, before);

	assert_text(status, "[{\"name\":\"n/a\",\"offered\":1},{\"name\":\"n/b\","
			    "\"offered\":2}]");
	assert_int_equal(json_array_size(late), 2);
	assert_int_equal(json_integer_value(json_at(json_find(late, "name", "n/b"), "offered")), 2);
	assert_int_equal(json_integer_value(json_at(json_find(late, "name", "n/b"), "allocated")),
			 1);
}

TEST(a_status_names_so_many_pods_and_no_more)
{
	json_auto_t *plugins = yaml("[{name: n/a}]"), *allocated = yaml("{n/a: {}}"),
		    *status = NULL;

	for (int i = 0; i < 200; i++) {
		auto_free char *id = str_printf("%d", i);

		json_put_str(json_at(allocated, "n/a"), id, "ns/p/c");
	}
	status = pools_status(plugins, NULL, allocated, NULL);
	assert_int_equal(json_array_size(json_at(json_array_get(status, 0), "pods")),
			 POOLS_STATUS_PODS_MAX);
	assert_int_equal(json_integer_value(json_at(json_array_get(status, 0), "allocated")), 200);
}
