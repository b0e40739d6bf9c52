// SPDX-License-Identifier: Apache-2.0
/* One SriovNetworkNodePolicy: reading, judging, matching. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/sriov/sriov_policy.h"
#include "tests/support/yaml.h"

/* A policy object whose spec is the given one, completed with what every policy needs. */
static json_t *policy_with(const char *spec)
{
	json_auto_t *fields = yaml(spec);
	json_t *policy = yaml("{metadata: {name: a, namespace: lab}, spec: {resourceName: r,"
			      " nodeSelector: {}, numVfs: 8, nicSelector: {vendor: '15b3'}}}");

	json_object_update(json_at(policy, "spec"), fields);
	return policy;
}

TEST(a_pf_name_may_carry_a_range)
{
	static const struct {
		const char *text;
		size_t name_len;
		bool has_range;
		int first, last;
	} rows[] = {
		{"ens1f0", 6, false, 0, 0},    {"ens1f0#0-3", 6, true, 0, 3},
		{"ens1f0#5-5", 6, true, 5, 5}, {"enp134s0f0np0#12-127", 13, true, 12, 127},
		{"p#007-0009", 1, true, 7, 9}, {"p#0-65535", 1, true, 0, 65535},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pf_name name;

		assert_int_equal(pf_name_parse(rows[i].text, &name, NULL), 0);
		assert_int_equal(name.name_len, rows[i].name_len);
		assert_int_equal(name.has_range, rows[i].has_range);
		assert_int_equal(name.range.first, rows[i].first);
		assert_int_equal(name.range.last, rows[i].last);
	}
}

TEST(an_unreadable_range_is_refused_with_the_remedy)
{
	static const char *const bad[] = {
		"",       "#0-3",   "p#",        "p#5",
		"p#-",    "p#1-",   "p#-1",      "p#a-b",
		"p#1-x",  "p#3-1",  "p#0-1#2-3", "p#1-2-3",
		"p# 0-1", "p#0--1", "p#0-65536", "p#99999999999999999999-1",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct pf_name name = {.name_len = 77};
		struct err err = {0};

		assert_int_equal(pf_name_parse(bad[i], &name, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadRange");
		assert_non_null(strstr(err.text, "NAME#FIRST-LAST"));
		assert_int_equal(name.name_len, 77);
	}
}

TEST(absent_fields_have_defaults_without_a_webhook)
{
	json_auto_t *object = policy_with("{}");
	struct sriov_policy p;

	assert_int_equal(sriov_policy_parse("lab/a", object, &p, NULL), 0);
	assert_int_equal(p.priority, 99);
	assert_string_equal(p.device_type, "netdevice");
	assert_false(p.is_rdma);
	assert_false(p.says_externally_managed);
}

TEST(infiniband_means_rdma_unless_the_driver_is_vfio)
{
	json_auto_t *ib = policy_with("{linkType: IB, isRdma: false}");
	json_auto_t *vfio = policy_with("{linkType: ib, deviceType: vfio-pci}");
	struct sriov_policy p;

	assert_int_equal(sriov_policy_parse("lab/a", ib, &p, NULL), 0);
	assert_true(p.is_rdma);
	assert_int_equal(sriov_policy_parse("lab/a", vfio, &p, NULL), 0);
	assert_false(p.is_rdma);
}

TEST(a_policy_that_cannot_be_read_names_field_and_remedy)
{
	static const struct {
		const char *spec, *reason, *text;
	} rows[] = {
		{"{numVfs: '8'}", "BadField", "spec.numVfs"},
		{"{numVfs: 65536}", "BadField", "spec.numVfs"},
		{"{priority: 100}", "BadField", "spec.priority"},
		{"{deviceType: dpdk}", "BadField", "netdevice, vfio-pci"},
		{"{linkType: Ethernet}", "BadField", "eth, ETH, ib, IB"},
		{"{resourceName: ''}", "NoResourceName", "spec.resourceName"},
		{"{nodeSelector: {gpu: true}}", "BadField", "\"gpu\" is a boolean"},
		{"{nodeSelector: {rdma.orbweaver.io/rail.count: '8'}}", "BadSelector",
		 "\"rdma.orbweaver.io/rail.count\" is written by the operator"},
		{"{nicSelector: {pfNames: [p0, 'p1#7']}}", "BadRange", "pfNames[1]: \"p1#7\""},
		{"{nicSelector: {rootDevices: [1]}}", "BadField", "rootDevices"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *object = policy_with(rows[i].spec);
		auto_problems struct problems problems = {0};
		struct sriov_policy p = {.num_vfs = 77};
		struct err err = {0};

		assert_int_equal(sriov_policy_parse("lab/a", object, &p, &err), -1);
		assert_string_equal(err.reason, rows[i].reason);
		if (!strstr(err.text, rows[i].text))
			fail_msg("%s: %s", rows[i].spec, err.text);
		assert_int_equal(p.num_vfs, 77);

		sriov_policy_check(object, &problems);
		assert_int_equal(problems.total, 1);
		assert_string_equal(problems_reason(&problems), rows[i].reason);
	}
}

TEST(a_policy_that_means_something_else_is_told)
{
	static const struct {
		const char *spec, *reason;
	} rows[] = {
		{"{numVfs: 0}", "NumVfsZero"},
		{"{nicSelector: {}}", "NicSelectorEmpty"},
		{"{nicSelector: {pfNames: ['p#4-8']}}", "RangeBeyondNumVfs"},
		{"{nicSelector: {pfNames: ['p#0-3', 'p#3-5']}}", "RangesOverlap"},
		{"{nicSelector: {pfNames: ['p#0-3', p]}}", "RangesOverlap"},
		{"{deviceType: vfio-pci, isRdma: true}", "VfioWithRdma"},
		{"{linkType: IB, eSwitchMode: switchdev}", "SwitchdevNeedsEthernet"},
		{"{vdpaType: virtio}", "VdpaNeedsSwitchdev"},
		{"{vdpaType: vhost, eSwitchMode: switchdev, deviceType: vfio-pci}",
		 "VdpaNeedsNetdevice"},
		{"{resourceName: -r}", "BadResourceName"},
		{"{resourceName: example.com/r}", "BadResourceName"},
		{"{bridge: {ovs: {bridge: {}}}}", "BridgeNotManaged"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *object = policy_with(rows[i].spec);
		auto_problems struct problems problems = {0};
		struct sriov_policy p;

		sriov_policy_check(object, &problems);
		if (problems.total != 1)
			fail_msg("%s: %zu problems", rows[i].spec, problems.total);
		assert_string_equal(problems_reason(&problems), rows[i].reason);
		assert_int_equal(sriov_policy_parse("lab/a", object, &p, NULL), 0);
	}
}

TEST(a_policy_named_default_is_refused_by_name)
{
	json_auto_t *object = policy_with("{}");
	auto_problems struct problems problems = {0};

	json_put_str(json_at(object, "metadata"), "name", "default");
	sriov_policy_check(object, &problems);
	assert_string_equal(problems_reason(&problems), "NameReserved");
}

#define PF                                                                                         \
	"{pciAddress: '0000:3b:00.0', name: ens1f0, altNames: [enp59s0f0, rail0], "                \
	"vendor: '8086', deviceID: 158b, netFilter: 'openstack/NetworkID:12-ab', numVfs: 0}"

TEST(says_every_selector_that_failed)
{
	static const struct {
		const char *nic, *why; /* NULL: picked */
	} rows[] = {
		{"{vendor: '8086'}", NULL},
		{"{vendor: '8086', deviceID: 158b, rootDevices: ['0000:3b:00.0']}", NULL},
		{"{pfNames: [ens1f0]}", NULL},
		{"{pfNames: [rail0]}", NULL},
		{"{pfNames: [ens9, 'rail0#0-1']}", NULL},
		{"{netFilter: 'openstack/NetworkID : 12-ab'}", NULL},
		{"{}", "nicSelector is empty and picks nothing"},
		{"{vendor: 15b3}", "vendor 8086, wanted 15b3"},
		{"{vendor: 15b3, deviceID: '1017', rootDevices: ['0000:af:00.0']}",
		 "vendor 8086, wanted 15b3; deviceID 158b, wanted 1017; pciAddress 0000:3b:00.0, "
		 "wanted 0000:af:00.0"},
		{"{vendor: '8086', deviceID: '1017'}", "deviceID 158b, wanted 1017"},
		{"{deviceID: 158B}", "deviceID 158b, wanted 158B"},
		{"{rootDevices: ['0000:af:00.0']}", "pciAddress 0000:3b:00.0, wanted 0000:af:00.0"},
		{"{pfNames: [a, b, c, d]}", "name ens1f0, wanted a or b or 2 more"},
		{"{pfNames: [ens1]}", "name ens1f0, wanted ens1"},
		{"{netFilter: 'openstack/NetworkID:12-ac'}",
		 "netFilter openstack/NetworkID:12-ab, wanted openstack/NetworkID:12-ac"},
		{"{netFilter: 12-ab}", "netFilter openstack/NetworkID:12-ab, wanted 12-ab"},
	};
	json_auto_t *pf = yaml(PF);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *object = policy_with("{}");
		auto_strbuf struct strbuf why = {0};
		struct sriov_policy p;

		json_put(json_at(object, "spec"), "nicSelector", yaml(rows[i].nic));
		assert_int_equal(sriov_policy_parse("lab/a", object, &p, NULL), 0);
		assert_int_equal(sriov_policy_picks(&p, pf, &why), !rows[i].why);
		assert_string_equal(strbuf_str(&why), rows[i].why ? rows[i].why : "");
	}
}

TEST(a_net_filter_splits_at_the_last_colon_with_something_behind)
{
	static const struct {
		const char *wanted, *is;
		bool same;
	} rows[] = {
		{"a:b", "  a  :  b ", true}, {"a:b:c", "a:b : c", true}, {"a:b:", "a : b:", true},
		{"a:b", "a:c", false},       {"a:b", "ab", false},       {"a:", "a:", false},
		{":b", ":b", false},         {"a b:c", "x b:c", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *object = policy_with("{}");
		json_auto_t *pf = json_pack("{s:s}", "netFilter", rows[i].is);
		struct sriov_policy p;

		json_put(json_at(object, "spec"), "nicSelector",
			 json_pack("{s:s}", "netFilter", rows[i].wanted));
		assert_int_equal(sriov_policy_parse("lab/a", object, &p, NULL), 0);
		if (sriov_policy_picks(&p, pf, NULL) != rows[i].same)
			fail_msg("\"%s\" against \"%s\"", rows[i].wanted, rows[i].is);
	}
}

TEST(ranges_follow_the_names_of_the_pf)
{
	static const struct {
		const char *nic, *ranges;
	} rows[] = {
		{"{vendor: '8086'}", "0-7"},
		{"{pfNames: [ens1f0]}", "0-7"},
		{"{pfNames: ['ens1f0#2-3']}", "2-3"},
		{"{pfNames: [other, 'ens1f0#2-3']}", "2-3"},
		{"{pfNames: ['rail0#4-5']}", "4-5"},
		{"{pfNames: ['ens1f0#0-1', 'ens1f0#4-5']}", "0-1 4-5"},
		{"{pfNames: ['enp59s0f0#6-7', 'other#0-0', 'ens1f0#0-1']}", "6-7 0-1"},
	};
	json_auto_t *pf = yaml(PF);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *object = policy_with("{}");
		auto_strbuf struct strbuf ranges = {0};
		struct sriov_policy p;
		struct vf_range range;
		size_t iter = 0;

		json_put(json_at(object, "spec"), "nicSelector", yaml(rows[i].nic));
		assert_int_equal(sriov_policy_parse("lab/a", object, &p, NULL), 0);
		while (sriov_policy_range(&p, pf, &iter, &range))
			strbuf_addf(&ranges, "%s%d-%d", ranges.len ? " " : "", range.first,
				    range.last);
		assert_string_equal(strbuf_str(&ranges), rows[i].ranges);
	}
}

TEST(no_vfs_mean_no_ranges)
{
	json_auto_t *object = policy_with("{numVfs: 0}");
	json_auto_t *pf = yaml(PF);
	struct sriov_policy p;
	struct vf_range range;
	size_t iter = 0;

	assert_int_equal(sriov_policy_parse("lab/a", object, &p, NULL), 0);
	assert_false(sriov_policy_range(&p, pf, &iter, &range));
}

TEST(a_node_needs_every_label)
{
	json_auto_t *object = policy_with("{nodeSelector: {gpu: 'yes', zone: ''}}");
	json_auto_t *everywhere = policy_with("{}");
	json_auto_t *unreadable = policy_with("{nodeSelector: all}");
	json_auto_t *labels = yaml("{gpu: 'yes', zone: '', more: x}");
	json_auto_t *some = yaml("{gpu: 'yes'}");

	assert_true(sriov_policy_selects(object, labels));
	assert_false(sriov_policy_selects(object, some));
	assert_false(sriov_policy_selects(object, NULL));
	assert_true(sriov_policy_selects(everywhere, NULL));
	assert_false(sriov_policy_selects(unreadable, labels));
}

TEST(the_strongest_policy_is_applied_last)
{
	struct sriov_policy p[] = {
		{.key = "1", .priority = 0, .name = "a", .namespace = "x"},
		{.key = "2", .priority = 99, .name = "b", .namespace = "x"},
		{.key = "3", .priority = 99, .name = "a", .namespace = "y"},
		{.key = "4", .priority = 99, .name = "a", .namespace = "x"},
	};
	static const char *const order[] = {"4", "3", "2", "1"};

	qsort(p, ARRAY_LEN(p), sizeof(p[0]), sriov_policy_order);
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		assert_string_equal(p[i].key, order[i]);
}
