// SPDX-License-Identifier: Apache-2.0
/* Shared RDMA pools, and pools of device files. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools.h"
#include "tests/unit/nodeagent/devices/pools.h"

/*
 * Two HCAs, one with a VF; an ordinary NIC with Soft-RoCE on it; Soft-RoCE on a bridge; an ordinary
 * NIC.
 */
static const char HOST[] = "interfaces:\n"
			   "- {pciAddress: '0000:04:00.0', vendor: '8086', deviceID: '10c9', "
			   "driver: igb, name: enp4s0, linkType: ETH}\n"
			   "- {pciAddress: '0000:05:00.0', vendor: '8086', deviceID: '1533', "
			   "driver: igb, name: eno1, linkType: ETH}\n"
			   "- {pciAddress: '0000:0b:00.0', vendor: 15b3, deviceID: '1017', driver: "
			   "mlx5_core, name: enp11s0f0np0,\n"
			   "   linkType: ETH, Vfs: [{vfID: 0, pciAddress: '0000:0b:00.2', vendor: "
			   "15b3, deviceID: '1018',\n"
			   "   driver: mlx5_core, name: v0}]}\n"
			   "- {pciAddress: '0000:12:00.0', vendor: 15b3, deviceID: '1017', driver: "
			   "mlx5_core, name: ib0, linkType: IB}\n"
			   "rdma:\n"
			   "  netnsMode: shared\n"
			   "  charDevices: [{type: rdma_cm, path: /dev/infiniband/rdma_cm}]\n"
			   "  devices:\n"
			   "  - {name: mlx5_0, pciAddress: '0000:0b:00.0', ports: [{linkLayer: "
			   "Ethernet, netdev: enp11s0f0np0}],\n"
			   "     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs0}, "
			   "{type: umad, path: /dev/infiniband/umad0}]}\n"
			   "  - {name: mlx5_1, pciAddress: '0000:12:00.0', ports: [{linkLayer: "
			   "InfiniBand, netdev: ib0}],\n"
			   "     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs1}, "
			   "{type: umad, path: /dev/infiniband/umad1},\n"
			   "                   {type: issm, path: /dev/infiniband/issm1}]}\n"
			   "  - {name: mlx5_2, pciAddress: '0000:0b:00.2', ports: [{linkLayer: "
			   "Ethernet, netdev: v0}],\n"
			   "     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs2}, "
			   "{type: umad, path: /dev/infiniband/umad2}]}\n"
			   "  - {name: rxe0, netdevPciAddress: '0000:04:00.0', ports: [{linkLayer: "
			   "Ethernet, netdev: enp4s0}],\n"
			   "     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs3}, "
			   "{type: umad, path: /dev/infiniband/umad3}]}\n"
			   "  - {name: rxe1, ports: [{linkLayer: Ethernet, netdev: br0}],\n"
			   "     charDevices: [{type: uverbs, path: /dev/infiniband/uverbs4}, "
			   "{type: umad, path: /dev/infiniband/umad4}]}\n";

static json_t *shared(const char *text)
{
	struct err err = {0};
	json_t *doc = pools_read_shared(text, strlen(text), &err);

	if (!doc)
		fail_msg("%s: %s", text, err.text);
	return doc;
}

#define ENTRY(NAME, MAX, SELECTORS)                                                                \
	"{\"resourceName\":\"" NAME "\",\"rdmaHcaMax\":" #MAX ",\"selectors\":" SELECTORS "}"

static json_t *one(const char *selectors)
{
	auto_free char *text =
		str_printf("{\"configList\":[{\"resourceName\":\"x\",\"rdmaHcaMax\":2,"
			   "\"selectors\":%s}]}",
			   selectors);

	return shared(text);
}

static json_t *compute(const json_t *observed, const json_t *doc, const json_t *before)
{
	return pools_compute(&(struct pools_input){
		.prefix = "spidernet.io", .observed = observed, .shared = doc, .before = before});
}

static size_t healthy(const json_t *pools, const char *name)
{
	size_t n = 0, i;
	json_t *item;

	json_array_foreach (json_at(resource(pools, name), "devices"), i, item)
		n += json_is_true(json_at(item, "healthy"));
	return n;
}

static json_t *rdma_device(const json_t *observed, size_t i)
{
	return json_array_get(json_at(observed, "rdma", "devices"), i);
}

/* ---- shared ---------------------------------------------------------------------------------- */

TEST(tokens_bring_the_files_of_all_that_match)
{
	json_auto_t *observed = yaml(HOST), *doc = one("{\"vendors\":[\"15b3\"]}");
	json_auto_t *pools = compute(observed, doc, NULL);
	const json_t *pool = resource(pools, "rdma/x");

	assert_text(json_at(pool, "devices"),
		    "[{\"healthy\":true,\"id\":\"0\"},{\"healthy\":true,\"id\":\"1\"}]");
	assert_text(
		json_at(pool, "nodes"),
		"[\"/dev/infiniband/uverbs0\",\"/dev/infiniband/umad0\",\"/dev/infiniband/"
		"uverbs2\","
		"\"/dev/infiniband/umad2\",\"/dev/infiniband/uverbs1\",\"/dev/infiniband/umad1\","
		"\"/dev/infiniband/issm1\",\"/dev/infiniband/rdma_cm\"]");
	assert_string_equal(json_str_at(pool, "kind"), "shared");
	assert_string_equal(json_str_at(pool, "permissions"), "rwm");
	assert_null(json_at(pool, "env"));
	assert_int_equal(json_integer_value(json_at(pool, "wanted")), 2);
	assert_text(json_at(pools, "problems"), "[]");
}

/* One of the two that are selected works: a token still brings something. */
TEST(tokens_without_a_link_are_unhealthy_but_for_pods_that_have_them)
{
	json_auto_t *observed = yaml(HOST), *both = one("{\"ifNames\":[\"enp11s0f0np0\",\"ib0\"]}");
	json_auto_t *single = one("{\"ifNames\":[\"enp11s0f0np0\"]}");
	json_auto_t *lost = yaml("{linkAdminState: down, host: {noLink: true}}");
	json_auto_t *allocated = yaml("{rdma/x: {'1': ml/a/c}}");
	json_auto_t *lag = yaml("{host: {lag: {bond: bond0}}}");
	json_auto_t *some = NULL, *none = NULL, *held = NULL, *stale = NULL, *bond = NULL;

	json_merge_patch(json_array_get(json_at(observed, "interfaces"), 2), lost);
	some = compute(observed, both, NULL);
	assert_int_equal(healthy(some, "rdma/x"), 2);
	assert_says(json_at(resource(some, "rdma/x"), "causes"),
		    "mlx5_0 (0000:0b:00.0): its port enp11s0f0np0 is down");
	none = compute(observed, single, NULL);
	assert_int_equal(healthy(none, "rdma/x"), 0);
	held = pools_compute(&(struct pools_input){.prefix = "spidernet.io",
						   .observed = observed,
						   .shared = single,
						   .allocated = allocated});
	assert_text(json_at(resource(held, "rdma/x"), "devices"),
		    "[{\"healthy\":false,\"id\":\"0\"},{\"healthy\":true,\"id\":\"1\"}]");
	/* Looked at before its port lost the link; then of a bond, whose other port has one. */
	json_put_str(json_array_get(json_at(rdma_device(observed, 0), "ports"), 0), "state",
		     "ACTIVE");
	stale = compute(observed, single, NULL);
	assert_int_equal(healthy(stale, "rdma/x"), 0);
	json_merge_patch(json_array_get(json_at(observed, "interfaces"), 2), lag);
	bond = compute(observed, single, NULL);
	assert_int_equal(healthy(bond, "rdma/x"), 2);
}

/* An article's pod: "limits: tencent.com/rdma: 1 # requesting 1 RDMA device". */
TEST(a_resource_of_another_plugins_prefix_is_served)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *observed = yaml(HOST), *sample = NULL, *doc = NULL, *pools = NULL;
	const json_t *pool;

	assert_int_equal(
		fs_read(AT_FDCWD, "crds/samples/rdma-device-plugin.yaml", 4096, &text, NULL), 0);
	sample = yaml(strbuf_str(&text));
	doc = shared(json_str_at(sample, "data", "config.json"));
	pools = compute(observed, doc, NULL);
	pool = resource(pools, "tencent.com/rdma");
	assert_int_equal(healthy(pools, "tencent.com/rdma"), 100);
	assert_true(json_list_has(json_at(pool, "nodes"), "/dev/infiniband/uverbs0"));
	assert_true(json_list_has(json_at(pool, "nodes"), "/dev/infiniband/rdma_cm"));
	assert_text(json_at(pools, "problems"), "[]");
}

TEST(selectors_are_exact_and_all_have_to_hold)
{
	static const struct {
		const char *selectors, *selected;
	} rows[] = {
		{"{\"vendors\":[\"15b3\"],\"deviceIDs\":[\"1018\"]}", "[\"0000:0b:00.2\"]"},
		{"{\"deviceIDs\":[\"1017\"],\"linkTypes\":[\"infiniband\"]}", "[\"0000:12:00.0\"]"},
		{"{\"ifNames\":[\"enp11s0f0np0\"]}", "[\"0000:0b:00.0\"]"},
		{"{\"ifNames\":[\"enp11s0f0\"]}", "[]"},
		{"{\"vendors\":[\"15B3\"]}", "[]"},
		{"{\"ifNames\":[\"enp4s0\"]}", "[\"0000:04:00.0\"]"},
		{"{\"ifNames\":[\"br0\"]}", "[\"rxe1\"]"},
		{"{\"ifNames\":[\"br0\"],\"vendors\":[\"15b3\"]}", "[]"},
		{"{\"drivers\":[\"mlx5_core\"],\"linkTypes\":[\"ether\"]}",
		 "[\"0000:0b:00.0\",\"0000:0b:00.2\"]"},
		{"{\"linkTypes\":[\"ether\"],\"ifNames\":[\"br0\",\"ib0\"]}", "[\"rxe1\"]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *observed = yaml(HOST), *doc = one(rows[i].selectors);
		json_auto_t *pools = compute(observed, doc, NULL);

		assert_text(json_at(resource(pools, "rdma/x"), "selected"), rows[i].selected);
		assert_int_equal(healthy(pools, "rdma/x"), str_eq(rows[i].selected, "[]") ? 0 : 2);
	}
}

TEST(the_seeds_configuration_gives_what_its_reader_expects)
{
	json_auto_t *observed = yaml(HOST);
	json_auto_t *doc = shared(
		"{ \"periodicUpdateInterval\": 300, \"configList\": ["
		" { \"resourcePrefix\": \"spidernet.io\", \"resourceName\": \"shared_cx5_gpu1\", "
		"\"rdmaHcaMax\": 100,"
		"   \"selectors\": { \"ifNames\": [\"enp11s0f0np0\"] } },"
		" { \"resourcePrefix\": \"spidernet.io\", \"resourceName\": "
		"\"hca_shared_devices\", \"rdmaHcaMax\": 500,"
		"   \"selectors\": { \"vendors\": [\"15b3\"], \"deviceIDs\": [\"1017\"] } } ] }");
	json_auto_t *pools = compute(observed, doc, NULL);

	assert_int_equal(json_integer_value(json_at(doc, "periodicUpdateInterval")), 300);
	assert_int_equal(healthy(pools, "spidernet.io/shared_cx5_gpu1"), 100);
	assert_int_equal(healthy(pools, "spidernet.io/hca_shared_devices"), 500);
	assert_int_equal(
		json_array_size(json_at(resource(pools, "spidernet.io/shared_cx5_gpu1"), "nodes")),
		3);
	assert_text(json_at(pools, "problems"), "[]");
}

TEST(a_roce_device_needs_no_issm_and_misses_umad_aloud)
{
	json_auto_t *observed = yaml(HOST), *doc = one("{\"ifNames\":[\"enp11s0f0np0\",\"ib0\"]}");
	json_auto_t *pools = NULL;

	json_array_remove(json_at(rdma_device(observed, 0), "charDevices"), 1);
	json_array_remove(json_at(rdma_device(observed, 1), "charDevices"), 2);
	pools = compute(observed, doc, NULL);
	assert_int_equal(healthy(pools, "rdma/x"), 2);
	assert_int_equal(json_array_size(json_at(pools, "problems")), 2);
	assert_says(json_at(pools, "problems"), "mlx5_0 (0000:0b:00.0) has no file umad*");
	assert_says(json_at(pools, "problems"), "mlx5_1 (0000:12:00.0) has no file issm*");
}

TEST(a_device_without_verbs_is_not_shared_until_it_has_them)
{
	json_auto_t *observed = yaml(HOST), *whole = yaml(HOST),
		    *doc = one("{\"ifNames\":[\"enp11s0f0np0\"]}");
	json_auto_t *pools = NULL, *later = NULL;

	json_array_clear(json_at(rdma_device(observed, 0), "charDevices"));
	pools = compute(observed, doc, NULL);
	assert_int_equal(json_array_size(json_at(resource(pools, "rdma/x"), "devices")), 2);
	assert_int_equal(healthy(pools, "rdma/x"), 0);
	assert_says(json_at(resource(pools, "rdma/x"), "causes"),
		    "mlx5_0 (0000:0b:00.0): no file uverbs*");
	later = compute(whole, doc, pools);
	assert_int_equal(healthy(later, "rdma/x"), 2);
	assert_text(json_at(resource(later, "rdma/x"), "causes"), "[]");
}

TEST(a_missing_connection_manager_is_told)
{
	json_auto_t *observed = yaml(HOST), *doc = one("{\"vendors\":[\"15b3\"]}"), *pools = NULL;

	json_array_clear(json_at(observed, "rdma", "charDevices"));
	pools = compute(observed, doc, NULL);
	assert_int_equal(healthy(pools, "rdma/x"), 2);
	assert_says(json_at(pools, "problems"), "load the module rdma_ucm");
	assert_says(json_at(pools, "problems"), "\"reason\":\"RdmaFilesMissing\"");
}

TEST(in_mode_exclusive_nothing_is_wanted_and_why_is_said)
{
	json_auto_t *observed = yaml(HOST), *doc = one("{\"vendors\":[\"15b3\"]}");
	json_auto_t *held = json_pack("{s:{s:s}}", "rdma/x", "1", "ns/p/c"), *pools = NULL,
		    *later = NULL;

	json_put_str(json_at(observed, "rdma"), "netnsMode", "exclusive");
	pools = compute(observed, doc, NULL);
	assert_int_equal(json_array_size(json_at(resource(pools, "rdma/x"), "devices")), 0);
	assert_int_equal(json_integer_value(json_at(resource(pools, "rdma/x"), "wanted")), 0);
	assert_says(json_at(resource(pools, "rdma/x"), "causes"), "is in mode exclusive");
	assert_int_equal(json_array_size(json_at(pools, "problems")), 1);
	assert_says(json_at(pools, "problems"), "RdmaModeExclusive");
	/* The ConfigMap is for nodes in mode shared, too: this one is well. */
	assert_false(pools_is_fault("RdmaModeExclusive"));
	assert_true(pools_is_fault("DeviceFilesMoved"));
	/* A pod that has one keeps it. */
	later = pools_compute(&(struct pools_input){
		.prefix = "spidernet.io", .observed = observed, .shared = doc, .allocated = held});
	assert_int_equal(json_array_size(json_at(resource(later, "rdma/x"), "devices")), 1);
	assert_int_equal(healthy(later, "rdma/x"), 0);
}

TEST(an_empty_pool_is_there_with_nothing)
{
	json_auto_t *observed = yaml(HOST), *doc = one("{\"vendors\":[\"1af4\"]}");
	json_auto_t *no_rdma = one("{\"ifNames\":[\"eno1\"]}");
	json_auto_t *both = one("{\"vendors\":[\"1af4\"],\"linkTypes\":[\"infiniband\"]}");
	json_auto_t *many = compute(observed, both, NULL);
	json_auto_t *pools = compute(observed, doc, NULL),
		    *plain = compute(observed, no_rdma, NULL);

	assert_text(json_at(resource(pools, "rdma/x"), "devices"), "[]");
	assert_says(json_at(resource(pools, "rdma/x"), "causes"),
		    "no network device of this node matches");
	/* Each NIC, with every selector that fails. */
	assert_says(json_at(resource(many, "rdma/x"), "causes"),
		    "eno1: vendor 8086, wanted 1af4; link type ether, wanted infiniband");
	assert_says(json_at(many, "problems"), "NothingSelected");
	assert_int_equal(healthy(plain, "rdma/x"), 0);
	assert_says(json_at(resource(plain, "rdma/x"), "causes"),
		    "0000:05:00.0 (eno1): it has no RDMA device");
}

TEST(tokens_of_pods_stay_on_the_list)
{
	json_auto_t *doc = one("{\"vendors\":[\"15b3\"]}"),
		    *allocated = json_pack("{s:{s:s}}", "rdma/x", "1", "ns/p/c");
	json_auto_t *pools = pools_compute(&(struct pools_input){
		.prefix = "spidernet.io", .shared = doc, .allocated = allocated});

	assert_int_equal(json_array_size(json_at(resource(pools, "rdma/x"), "devices")), 2);
	assert_int_equal(healthy(pools, "rdma/x"), 0);
}

TEST(an_interface_that_moved_to_a_pod_is_remembered)
{
	json_auto_t *observed = yaml(HOST), *doc = one("{\"ifNames\":[\"v0\"]}");
	json_auto_t *before = compute(observed, doc, NULL), *with = NULL, *without = NULL;
	json_t *vfs = json_at(json_array_get(json_at(observed, "interfaces"), 2), "Vfs");

	(void)json_object_del(json_array_get(vfs, 0), "name");
	with = compute(observed, doc, before);
	without = compute(observed, doc, NULL);
	assert_int_equal(healthy(with, "rdma/x"), 2);
	assert_int_equal(healthy(without, "rdma/x"), 0);
}

TEST(the_older_list_of_devices_is_ifnames)
{
	json_auto_t *doc = shared("{\"CONFIGLIST\":[{\"resourcename\":\"x\",\"RdmaHcaMax\":1,"
				  "\"devices\":[\"ib0\"]}]}");
	json_auto_t *observed = yaml(HOST), *pools = compute(observed, doc, NULL);

	assert_text(json_at(json_array_get(json_at(doc, "configList"), 0), "selectors"),
		    "{\"ifNames\":[\"ib0\"]}");
	assert_int_equal(json_integer_value(json_at(doc, "periodicUpdateInterval")), 60);
	assert_text(json_at(resource(pools, "rdma/x"), "selected"), "[\"0000:12:00.0\"]");
}

TEST(an_entry_that_is_wrong_names_its_field_and_costs_no_other)
{
	static const struct {
		const char *entry, *part;
	} rows[] = {
		{"{\"resourceName\":\"x\",\"rdmaHcaMax\":1}",
		 "must have either selectors or devices, has none"},
		{"{\"resourceName\":\"x\",\"selectors\":{\"vendors\":[\"a\"]},\"devices\":[\"a\"]}",
		 "has both"},
		{ENTRY("x", -1, "{\"vendors\":[\"a\"]}"), "configList[0].rdmaHcaMax: -1"},
		{ENTRY("x", 200001, "{\"vendors\":[\"a\"]}"), "configList[0].rdmaHcaMax: 200001"},
		{ENTRY("x", 1.5, "{\"vendors\":[\"a\"]}"), "rdmaHcaMax: 1.5"},
		{ENTRY("x", 1, "{}"), "configList[0].selectors: selects nothing"},
		{ENTRY("x", 1, "{\"ifNames\":\"ib0\"}"), "selectors.ifNames"},
		{ENTRY("x", 1, "[]"), "selectors"},
		{ENTRY("x$", 1, "{\"vendors\":[\"a\"]}"), "at both ends"},
		{ENTRY("good", 1, "{\"vendors\":[\"a\"]}"),
		 "resource rdma/good comes from another entry"},
		{ENTRY("x", 1, "{\"vendors\":[\"a\"],\"vendorIDs\":[]}"),
		 "configList[0].selectors.vendorIDs: no such field, the nearest is vendors; there "
		 "are vendors, deviceIDs, drivers, ifNames, linkTypes"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text = str_printf("{\"configList\":[%s,%s]}", rows[i].entry,
						  ENTRY("good", 1, "{\"vendors\":[\"15b3\"]}"));
		json_auto_t *doc = shared(text), *observed = yaml(HOST);
		json_auto_t *pools = compute(observed, doc, NULL);

		assert_says(json_at(pools, "problems"), rows[i].part);
		assert_non_null(resource(pools, "rdma/good"));
	}
}

TEST(what_is_no_shared_configuration_is_refused)
{
	static const char *const rows[] = {"", "[]", "{}", "{\"configLists\":[]}",
					   "{\"configList\":{}}"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		assert_null(pools_read_shared(rows[i], strlen(rows[i]), &err));
		assert_string_equal(err.reason, "BadSharedConfig");
	}
}

/* docs/device-plugins.md: "`periodicUpdateInterval` is checked and not used." */
TEST(a_wrong_interval_is_reported_and_refuses_nothing)
{
	static const char *const values[] = {"-1", "\"300\"", "\"5m\"", "true", "1.5", "[]"};

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		auto_free char *text =
			str_printf("{\"periodicUpdateInterval\":%s,\"configList\":[%s]}", values[i],
				   ENTRY("good", 1, "{\"vendors\":[\"15b3\"]}"));
		json_auto_t *doc = shared(text), *observed = yaml(HOST);
		json_auto_t *pools = compute(observed, doc, NULL);

		assert_says(json_at(pools, "problems"), "periodicUpdateInterval");
		assert_non_null(resource(pools, "rdma/good"));
	}
}

TEST(an_entry_without_a_count_is_reported)
{
	json_auto_t *doc = shared("{\"configList\":[{\"resourceName\":\"a\",\"selectors\":"
				  "{\"vendors\":[\"15b3\"]}}]}");
	json_auto_t *observed = yaml(HOST), *pools = compute(observed, doc, NULL);

	assert_says(json_at(pools, "problems"),
		    "configList[0].rdmaHcaMax: is missing, so that 0 devices are offered");
}

/* Names of the entries, after what was good in `before` was kept: "a b". free() */
static char *kept(const char *before, const char *now)
{
	auto_free char *before_text = str_printf("{\"configList\":[%s]}", before);
	auto_free char *now_text = str_printf("{\"configList\":[%s]}", now);
	json_auto_t *old = shared(before_text), *doc = shared(now_text);
	struct strbuf names = {0};
	json_t *entry;
	size_t i;

	pools_keep_good(doc, old);
	json_array_foreach (json_at(doc, "configList"), i, entry)
		strbuf_addf(&names, "%s%s:%lld", i ? " " : "", json_str_at(entry, "resourceName"),
			    (long long)json_integer_value(json_at(entry, "rdmaHcaMax")));
	return names.len ? strbuf_take(&names) : str_dup("");
}

TEST(a_bad_edit_takes_no_resource_away)
{
#define GOOD(NAME, MAX) ENTRY(NAME, MAX, "{\"vendors\":[\"a\"]}")
#define BAD(NAME)       ENTRY(NAME, 7, "{}")
	static const struct {
		const char *before, *now, *want;
	} rows[] = {
		/* At its place, with what it was. */
		{GOOD("a", 1) "," GOOD("b", 2) "," GOOD("c", 3),
		 GOOD("a", 4) "," BAD("b") "," GOOD("c", 5), "a:4 b:2 c:5"},
		{GOOD("a", 1) "," GOOD("b", 2), BAD("a") "," BAD("b") "," GOOD("c", 5),
		 "a:1 b:2 c:5"},
		/* Another prefix is another resource; none given may be any. */
		{GOOD("a", 1), "{\"resourceName\":\"a\",\"resourcePrefix\":\"x.y\"}", ""},
		{GOOD("a", 1), "{\"RESOURCENAME\":\"a\",\"resourcePrefix\":\"rdma\"}", "a:1"},
		/* What it is called cannot be read: any that is missing. */
		{GOOD("a", 1) "," GOOD("b", 2) "," GOOD("c", 3), "7," GOOD("b", 4), "a:1 c:3 b:4"},
		{GOOD("a", 1), "{\"resourceName\":7}", "a:1"},
		/* A count below zero, a name that cannot be one, a selector that there is not. */
		{GOOD("a", 1), ENTRY("a", -5, "{\"vendors\":[\"a\"]}"), "a:1"},
		{GOOD("a", 1), ENTRY("a shared!", 1, "{\"vendors\":[\"a\"]}"), "a:1"},
		{GOOD("a", 1), ENTRY("a", 1, "{\"vendors\":[\"a\"],\"ifname\":[\"x\"]}"), "a:1"},
		/* What is taken out is gone, and what is new and bad has nothing to be. */
		{GOOD("a", 1) "," GOOD("b", 2), GOOD("b", 2), "b:2"},
		{GOOD("a", 1) "," GOOD("b", 2), GOOD("b", 2) "," BAD("d"), "b:2"},
		{GOOD("a", 1), "", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *names = kept(rows[i].before, rows[i].now);

		assert_string_equal(names, rows[i].want);
	}
}

#define MISSPELT(NAME, REST)                                                                       \
	"{\"resourceName\":\"" NAME "\"," REST ",\"selectors\":{\"vendors\":[\"a\"]}}"

/* What is read without the misspelt key means something else: a pool at 0, under another name. */
TEST(a_key_that_nobody_knows_takes_no_resource_away)
{
	static const struct {
		const char *before, *now, *want;
	} rows[] = {
		{GOOD("a", 500), MISSPELT("a", "\"rdmaHcaMaxx\":500"), "a:500"},
		{GOOD("a", 1) "," GOOD("b", 2) "," GOOD("c", 3),
		 BAD("a") "," MISSPELT("b", "\"rdmaHcMax\":4") "," GOOD("c", 5), "a:1 b:2 c:5"},
		{GOOD("a", 1), MISSPELT("a", "\"rdmaHcaMax\":2,\"note\":\"mine\""), "a:1"},
		{MISSPELT("a", "\"rdmaHcaMax\":1,\"resourcePrefix\":\"x.y\""),
		 MISSPELT("a", "\"rdmaHcaMax\":2,\"resourcePrefixx\":\"x.y\""), "a:1"},
		/* A key that was there all the time is a note of the user's. */
		{MISSPELT("a", "\"rdmaHcaMax\":1,\"note\":\"mine\""),
		 MISSPELT("a", "\"rdmaHcaMax\":2,\"note\":\"new\""), "a:2"},
		{MISSPELT("a", "\"rdmaHcaMax\":1,\"note\":\"mine\""),
		 MISSPELT("a", "\"rdmaHcaMaxx\":2,\"note\":\"new\""), "a:1"},
		/* Nothing was good before: it is read without the key. */
		{"", MISSPELT("a", "\"rdmaHcaMax\":2,\"note\":\"mine\""), "a:2"},
		{GOOD("b", 1), GOOD("b", 1) "," MISSPELT("a", "\"rdmaHcaMaxx\":2"), "b:1 a:0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *names = kept(rows[i].before, rows[i].now);

		assert_string_equal(names, rows[i].want);
	}
}

TEST(a_key_that_nobody_knows_is_told_with_the_nearest)
{
	static const char text[] = "{\"configList\":[" MISSPELT("a", "\"rdmaHcaMaxx\":500") "]}";
	static const char what[] =
		"configList[0].rdmaHcaMaxx: no such field, the nearest is "
		"rdmaHcaMax; there are resourceName, resourcePrefix, rdmaHcaMax, "
		"selectors, devices; ";
	auto_free char *ignored = str_printf("%sit is ignored", what);
	auto_free char *stays =
		str_printf("%suntil then what was good before stays in force", what);
	json_auto_t *good = shared("{\"configList\":[" GOOD("a", 500) "]}");
	json_auto_t *alone = shared(text), *doc = shared(text), *again = shared(text);
	json_auto_t *observed = yaml(HOST), *pools = NULL;

	pools_keep_good(alone, NULL);
	assert_says(json_at(alone, "problems"), ignored);
	pools_keep_good(doc, good);
	pools_keep_good(again, doc);
	assert_true(json_same(again, doc));
	pools = compute(observed, again, NULL);
	assert_says(json_at(pools, "problems"), stays);
	assert_says(json_at(pools, "problems"), "\"reason\":\"UnknownField\"");
}

TEST(what_is_kept_is_told_and_kept_on)
{
	json_auto_t *first = shared("{\"configList\":[" GOOD("a", 1) "]}");
	json_auto_t *second = shared("{\"configList\":[" BAD("a") "]}");
	json_auto_t *third = shared("{\"configList\":[" BAD("a") "]}");
	json_auto_t *alone = shared("{\"configList\":[" BAD("a") "]}");
	json_auto_t *observed = yaml(HOST), *pools = NULL;

	pools_keep_good(second, first);
	pools_keep_good(third, second);
	assert_true(json_same(second, third));
	pools = compute(observed, third, NULL);
	assert_non_null(resource(pools, "rdma/a"));
	assert_says(json_at(pools, "problems"), "what was good before stays in force");
	pools_keep_good(alone, NULL);
	assert_int_equal(json_array_size(json_at(alone, "configList")), 0);
}

TEST(more_tokens_than_the_kubelet_takes_are_not_made)
{
	json_auto_t *doc =
		shared("{\"configList\":[" ENTRY("a", 199999, "{\"vendors\":[\"15b3\"]}") "," ENTRY(
			"b", 2, "{\"vendors\":[\"15b3\"]}") "]}");
	json_auto_t *observed = yaml(HOST), *pools = compute(observed, doc, NULL);

	assert_int_equal(healthy(pools, "rdma/a"), 199999);
	assert_int_equal(healthy(pools, "rdma/b"), 0);
	assert_says(json_at(resource(pools, "rdma/b"), "causes"), "more than the 200000");
}

/* ---- device files ---------------------------------------------------------------------------- */

static json_t *device_files(const char *text)
{
	struct err err = {0};
	json_t *doc = pools_read_dev_files(text, strlen(text), &err);

	if (!doc)
		fail_msg("%s: %s", text, err.text);
	return doc;
}

/* Names of the resources and how many tokens each has, for a host with these files. */
static char *offered(const char *config, json_t **ret_problems)
{
	json_auto_t *names = yaml("[infiniband, infiniband/rdma_cm, infiniband/uverbs0, kvm, snd, "
				  "snd/timer, snd_timer,"
				  " ttyS0, ttyS1, ttyS10, video-0]");
	json_auto_t *doc = device_files(config);
	json_auto_t *pools = pools_compute(&(struct pools_input){
		.prefix = "spidernet.io", .dev_files = doc, .dev_names = names});
	struct strbuf text = {0};
	json_t *pool;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, pool)
		strbuf_addf(&text, "%s%s:%zu", i ? " " : "",
			    json_str_at(pool, "name") + strlen("smarter-devices/"),
			    json_array_size(json_at(pool, "devices")));
	if (ret_problems)
		*ret_problems = json_incref(json_at(pools, "problems"));
	return strbuf_take(&text);
}

TEST(patterns_match_as_in_go)
{
	static const struct {
		const char *pattern, *want;
	} rows[] = {
		{"^infiniband$", "infiniband:2"},
		{"infiniband", "infiniband:2 infiniband_rdma_cm:2 infiniband_uverbs0:2"},
		{"^ttyS\\d$", "ttyS0:2 ttyS1:2"},
		{"^ttyS[\\d]+?$", "ttyS0:2 ttyS1:2 ttyS10:2"},
		{"^ttyS[0-9]{2,}$", "ttyS10:2"},
		{"^(?:kvm|video-\\w)$", "kvm:2 video-0:2"},
		{"\\Asnd/\\S+\\z", "snd_timer:2"},
		{"^video[^a-z]\\d", "video-0:2"},
		{"^video[-^]0", "video-0:2"},
		{"^ttyS1(0)*$", "ttyS1:2 ttyS10:2"},
		{"^ttyS[[:digit:]]$", "ttyS0:2 ttyS1:2"},
		{"^ttyS{1}0", "ttyS0:2"},
		{"^k\\x", ""},
		{"ttyS{a", ""},
		{"^nothing$", ""},
		{"^video\\-0$", "video-0:2"},
		{"^[]v]ideo", "video-0:2"},
		{"^ttyS(|0)$", "ttyS0:2"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *config =
			str_printf("- devicematch: '%s'\n  nummaxdevices: 2\n", rows[i].pattern);
		auto_free char *text = offered(config, NULL);

		if (!str_eq(text, rows[i].want))
			fail_msg("%s: %s, wanted %s", rows[i].pattern, text, rows[i].want);
	}
}

TEST(a_token_of_a_device_brings_its_file)
{
	json_auto_t *names = yaml("[infiniband, snd/timer]");
	json_auto_t *doc = device_files("- devicematch: infiniband\n  nummaxdevices: 20    \n");
	json_auto_t *pools = pools_compute(&(struct pools_input){
		.prefix = "spidernet.io", .dev_files = doc, .dev_names = names});
	const json_t *pool = resource(pools, "smarter-devices/infiniband");

	assert_int_equal(json_array_size(json_at(pool, "devices")), 20);
	assert_text(json_at(pool, "nodes"), "[\"/dev/infiniband\"]");
	assert_string_equal(json_str_at(pool, "kind"), "devices");
	assert_string_equal(json_str_at(pool, "permissions"), "rw");
	assert_int_equal(json_integer_value(json_at(pool, "wanted")), 20);
}

TEST(the_first_pattern_counts_and_names_do_not_collide)
{
	json_auto_t *problems = NULL;
	auto_free char *text = offered("- {devicematch: '^ttyS0$', nummaxdevices: 1}\n"
				       "- {devicematch: '^ttyS', nummaxdevices: 3}\n"
				       "- {devicematch: timer, nummaxdevices: 1}\n",
				       &problems);

	assert_string_equal(text, "snd_timer:1 ttyS0:1 ttyS1:3 ttyS10:3");
	assert_says(problems, "resource smarter-devices/snd_timer comes from another entry");
}

TEST(a_pattern_that_matches_nothing_is_reported)
{
	json_auto_t *doc = device_files("- {devicematch: '^rdma$', nummaxdevices: 1}\n");
	json_auto_t *problems = NULL, *unknown = NULL;
	/* The second one's name is the first one's already, which is no mistake. */
	auto_free char *text = offered("- {devicematch: '^kvm$', nummaxdevices: 1}\n"
				       "- {devicematch: '^kv', nummaxdevices: 1}\n"
				       "- {devicematch: '^rdma$', nummaxdevices: 1}\n",
				       &problems);

	assert_string_equal(text, "kvm:1");
	assert_int_equal(json_array_size(problems), 1);
	assert_says(problems, "matches no name below /dev");
	assert_string_equal(json_str_at(json_array_get(problems, 0), "reason"), "NothingSelected");
	/* Nothing is said of a host whose names are not known. */
	unknown = pools_compute(&(struct pools_input){.prefix = "spidernet.io", .dev_files = doc});
	assert_int_equal(json_array_size(json_at(unknown, "problems")), 0);
}

TEST(a_pattern_that_cannot_be_had_says_why)
{
	static const struct {
		const char *entry, *part;
	} rows[] = {
		{"{nummaxdevices: 1}", "devices[0].devicematch: is empty"},
		{"{devicematch: nvidia-gpu, nummaxdevices: 1}", "nvidia-gpu is not supported"},
		{"{devicematch: 'a', nummaxdevices: -1}", "nummaxdevices: -1"},
		{"{devicematch: '(?i)a', nummaxdevices: 1}", "groups with flags"},
		{"{devicematch: '\\ba', nummaxdevices: 1}", "an escape is not known"},
		{"{devicematch: 'a\\', nummaxdevices: 1}", "an escape is not known"},
		{"{devicematch: '\\pL', nummaxdevices: 1}", "an escape is not known"},
		{"{devicematch: 'a)', nummaxdevices: 1}", "a ) without ("},
		{"{devicematch: '(a', nummaxdevices: 1}", "a ( without )"},
		{"{devicematch: '*a', nummaxdevices: 1}", "nothing to repeat"},
		{"{devicematch: 'a|*', nummaxdevices: 1}", "nothing to repeat"},
		{"{devicematch: '[a', nummaxdevices: 1}", "bracket"},
		{"{devicematch: '[z-a]', nummaxdevices: 1}", "not in order"},
		{"{devicematch: '[[:no:]]', nummaxdevices: 1}", "is not known"},
		{"{devicematch: '(a{1000}){1000}', nummaxdevices: 1}", "repeats too much"},
		{"{devicematch: '((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+', nummaxdevices: 1}",
		 "repeats too much"},
		{"{devicematch: 'a{99999999999999999999}', nummaxdevices: 1}", "repeats too much"},
		{"{devicematch: 'a{99999999999999999999,}', nummaxdevices: 1}", "repeats too much"},
		{"{devicematch: 'a{3,2}', nummaxdevices: 1}", "devices[0].devicematch"},
		{"{devicematch: 'é', nummaxdevices: 1}", "not ASCII"},
		{"7", "devices[0]: is an integer"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *config = str_printf(
			"- %s\n- {devicematch: '^kvm$', nummaxdevices: 1}\n", rows[i].entry);
		json_auto_t *problems = NULL;
		auto_free char *text = offered(config, &problems);

		assert_string_equal(text, "kvm:1");
		assert_says(problems, rows[i].part);
	}
}

TEST(a_pattern_that_matches_everything_is_bounded)
{
	json_auto_t *names = json_array(),
		    *doc = device_files("- {devicematch: '.', nummaxdevices: 1}\n");
	json_auto_t *pools = NULL;

	for (int i = 0; i < 300; i++)
		json_array_append_new(names, json_fmt("loop%03d", i));
	pools = pools_compute(
		&(struct pools_input){.prefix = "p", .dev_files = doc, .dev_names = names});
	assert_int_equal(json_array_size(json_at(pools, "resources")), POOLS_ENTRIES_MAX);
	assert_says(json_at(pools, "problems"), "\\\"loop256\\\" and what follows");
	assert_says(json_at(pools, "problems"), "\"reason\":\"TooManyDevices\"");
}

TEST(problems_beyond_the_bound_are_counted)
{
	auto_strbuf struct strbuf config = {0};
	json_auto_t *problems = NULL;
	auto_free char *text = NULL;

	for (int i = 0; i < 70; i++)
		strbuf_addf(&config, "- {devicematch: '(', nummaxdevices: 1}\n");
	text = offered(strbuf_str(&config), &problems);
	assert_string_equal(text, "");
	assert_says(problems, "\"reason\":\"MoreProblems\"");
	assert_says(problems, "and 6 more problems");
}

/* Which pattern a bad one was, nobody can tell. */
TEST(a_bad_pattern_takes_no_device_away)
{
	static const char before_text[] = "- {devicematch: '^a$', nummaxdevices: 1}\n"
					  "- {devicematch: '^b$', nummaxdevices: 1}\n";
	static const char text[] = "- {devicematch: '^a$(', nummaxdevices: 1}\n"
				   "- {devicematch: '^b$', nummaxdevices: 2}\n";
	struct err err = {0};
	json_auto_t *before = pools_read_dev_files(before_text, strlen(before_text), &err);
	json_auto_t *doc = pools_read_dev_files(text, strlen(text), &err);

	pools_keep_good(doc, before);
	assert_text(json_at(doc, "devices"), "[{\"devicematch\":\"^a$\",\"nummaxdevices\":1},"
					     "{\"devicematch\":\"^b$\",\"nummaxdevices\":2}]");
}

TEST(what_is_no_device_list_is_refused)
{
	static const char *const rows[] = {"", "a: b", "7", "- [", "'x'"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		assert_null(pools_read_dev_files(rows[i], strlen(rows[i]), &err));
		assert_string_equal(err.reason, "BadDeviceList");
	}
}
