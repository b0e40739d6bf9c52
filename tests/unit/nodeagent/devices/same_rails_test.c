// SPDX-License-Identifier: Apache-2.0
/* The same rails for pods of a job: which ones, which devices are chosen, which pods lack one. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/allocate.h"
#include "nodeagent/devices/same_rails.h"
#include "tests/support/yaml.h"

#define R "spidernet.io/x"

/* n rails, NIC i at bus i with VFs 1 and 2; the first at the highest address. Returns new. */
static json_t *host(size_t n)
{
	json_t *ports = json_array(), *list = json_array();

	for (size_t i = 0; i < n; i++) {
		size_t bus = n - i;

		json_array_append_new(list, json_pack("{s:i}", "rail", (int)i));
		json_array_insert_new(ports, 0,
				      json_pack("{s:o, s:i, s:[{s:o}, {s:o}]}", "pciAddress",
						json_fmt("0000:%02zx:00.0", bus), "rail", (int)i,
						"Vfs", "pciAddress",
						json_fmt("0000:%02zx:00.1", bus), "pciAddress",
						json_fmt("0000:%02zx:00.2", bus)));
	}
	return json_pack("{s:o, s:{s:o}}", "interfaces", ports, "rails", "list", list);
}

static json_t *pod_of(const char *ns, const char *label, const char *n)
{
	return json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:[{s:s, s:{s:{s:s}}}]}}", "metadata", "name",
			 "w", "namespace", ns, "labels", "orbweaver.io/rails", label, "spec",
			 "containers", "name", "c", "resources", "limits", R, n);
}

static uint32_t wanted(const char *ns, const char *label, const char *n, size_t rails,
		       const char *held)
{
	json_auto_t *observed = host(rails), *pod = pod_of(ns, label, n), *allocated = yaml(held);

	return same_rails_wanted(observed, pod, allocated, R);
}

TEST(a_list_names_the_rails)
{
	assert_int_equal(wanted("ml", "1.3", "2", 8, "{}"), 0xa);
	/* As many as the pod asks for: the same ones on each node. */
	assert_int_equal(wanted("ml", "2-5", "2", 8, "{}"), 0xc);
	assert_int_equal(wanted("ml", "1.3", "4", 8, "{}"), 0xa);
	assert_int_equal(wanted("ml", "0-40", "2", 8, "{}"), 0);
	assert_int_equal(wanted("ml", "", "2", 8, "{}"), 0);
	/* It has what it asks for, or asks for none. */
	assert_int_equal(wanted("ml", "1.3", "1", 8, R ": {'0000:01:00.1': ml/w/c}"), 0);
	assert_int_equal(wanted("ml", "1.3", "0", 8, "{}"), 0);
}

TEST(a_group_has_a_block_of_neighbours)
{
	uint32_t first = wanted("ml", "train", "2", 8, "{}");

	/* The name decides, and nothing else: other agents come to the same. */
	assert_int_equal(first, 0x30);
	assert_int_equal(wanted("ml", "train", "8", 8, "{}"), 0xff);
	assert_int_equal(wanted("ml", "train", "9", 8, "{}"), 0xff);
	assert_int_equal(wanted("ml", "train", "1", 32, "{}") & 0xffffffff,
			 wanted("ml", "train", "1", 32, "{}"));
	assert_int_equal(wanted("ml", "train", "1", 0, "{}"), 0);
}

/* A pod of two containers, as its kubelet gives devices to the second one. */
static uint32_t wanted_next(const char *label, const char *n, size_t rails, const char *held)
{
	json_auto_t *observed = host(rails), *pod = pod_of("ml", label, n), *allocated = yaml(held);

	json_array_append_new(
		json_at(pod, "spec", "containers"),
		json_pack("{s:s, s:{s:{s:s}}}", "name", "d", "resources", "limits", R, n));
	return same_rails_wanted(observed, pod, allocated, R);
}

TEST(the_next_container_gets_rails_that_the_pod_lacks)
{
	/* Of eight rails, rail 0 is bus 8. */
	static const char two[] = R ": {'0000:08:00.1': ml/w/c, '0000:07:00.1': ml/w/c}";
	static const char group[] = R ": {'0000:04:00.1': ml/w/c, '0000:03:00.1': ml/w/c}";
	static const char last[] =
		R ": {'0000:04:00.1': ml/w/c, '0000:03:00.1': ml/w/c, '0000:02:00.1': ml/w/c, "
		  "'0000:01:00.1': ml/w/c}";

	assert_int_equal(wanted_next("0-3", "2", 8, two), 0xc);
	/* The list has no more: from the first again. */
	assert_int_equal(wanted_next("0-2", "2", 8, two), 0x5);
	assert_int_equal(wanted_next("0-1", "2", 8, two), 0x3);
	/* Rails 4 and 5 are the group's; around behind the last. */
	assert_int_equal(wanted_next("train", "2", 8, group), 0xc0);
	assert_int_equal(wanted_next("train", "2", 8, last), 0x3);
	/* What others have, and what the pod has of another resource, does not count. */
	assert_int_equal(wanted_next("0-3", "1", 8,
				     R ": {'0000:08:00.1': ml/w/c, '0000:07:00.1': ml/x/c}\n"
				       "spidernet.io/y: {'0000:06:00.1': ml/w/c}"),
			 0x2);
}

/* Of 64 groups of these names, with numbers behind, each block of two rails has its share. */
static void assert_spread(const char *ns_prefix, const char *group_prefix)
{
	size_t by_block[4] = {0};

	for (int i = 0; i < 64; i++) {
		auto_free char *ns = str_printf("%s%d", ns_prefix, i);
		auto_free char *group = str_printf("%s%d", group_prefix, i);
		uint32_t rails = wanted(ns, group, "2", 8, "{}");

		for (size_t k = 0; k < ARRAY_LEN(by_block); k++)
			by_block[k] += rails == UINT32_C(3) << 2 * k;
	}
	for (size_t k = 0; k < ARRAY_LEN(by_block); k++)
		assert_in_range(by_block[k], 8, 24);
}

TEST(groups_are_spread_over_all_rails)
{
	assert_spread("ml", "job-");
	/* A namespace for each team, and its job has the team's name as well. */
	assert_spread("team-", "team-");
	assert_spread("team-", "team-train-");
}

/* What is preferred of these devices, joined by blanks. Returns new. */
static char *preferred(const char *policy, const char *available_text, size_t size, uint32_t rails)
{
	json_auto_t *observed = host(4), *near = same_rails_near(observed, rails);
	json_auto_t *resource =
		json_pack("{s:s, s:s, s:[]}", "name", R, "policy", policy, "devices");
	json_auto_t *available = yaml(available_text);
	const char *ids[8] = {0}, *chosen[8] = {0};
	struct strbuf text = {0};
	struct err err = {0};
	const json_t *port, *vf, *id;
	size_t n = 0, i, k;

	json_array_foreach (json_at(observed, "interfaces"), i, port)
		json_array_foreach (json_at(port, "Vfs"), k, vf)
			json_array_append_new(json_at(resource, "devices"),
					      json_pack("{s:O, s:b, s:i, s:O}", "id",
							json_at(vf, "pciAddress"), "healthy", 1,
							"numa", i > 1, "pf",
							json_at(port, "pciAddress")));
	json_array_foreach (available, i, id)
		ids[n++] = json_string_value(id);
	assert_int_equal(allocate_prefer(resource, ids, n, NULL, 0, size, near, chosen, &err), 0);
	for (i = 0; i < size; i++)
		strbuf_addf(&text, "%s%s", i ? " " : "", chosen[i]);
	return strbuf_take(&text);
}

/* Rail 0 is bus 4, rail 3 bus 1. */
TEST(devices_are_of_the_rails)
{
	static const char all[] =
		"['0000:01:00.1', '0000:01:00.2', '0000:02:00.1', '0000:02:00.2', "
		"'0000:03:00.1', '0000:03:00.2', '0000:04:00.1', '0000:04:00.2']";
	static const struct {
		const char *policy, *available;
		size_t size;
		uint32_t rails;
		const char *want;
	} cases[] = {
		{"spread", all, 2, 0x9, "0000:01:00.1 0000:04:00.1"},
		{"packed", all, 2, 0x9, "0000:01:00.1 0000:04:00.1"},
		{"packed", all, 1, 0x2, "0000:03:00.1"},
		{"spread", all, 4, 0x9, "0000:01:00.1 0000:01:00.2 0000:04:00.1 0000:04:00.2"},
		/* Rail 0 is given away: as near as can be. */
		{"spread", "['0000:01:00.2', '0000:02:00.1', '0000:03:00.1']", 2, 0x9,
		 "0000:01:00.2 0000:02:00.1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got = preferred(cases[i].policy, cases[i].available, cases[i].size,
						cases[i].rails);

		assert_string_equal(got, cases[i].want);
	}
}

TEST(a_pod_that_lacks_a_rail_is_named)
{
	json_auto_t *observed = host(4);
	json_auto_t *wanted = yaml("{ml/right: 3, ml/other: 3, ml/beyond: 33, ml/waits: 3}");
	json_auto_t *allocated =
		yaml(R ": {'0000:04:00.1': ml/right/c, '0000:03:00.1': ml/right/d, "
		       "'0000:04:00.2': ml/other/c, '0000:01:00.1': ml/other/c, "
		       "'0000:03:00.2': ml/beyond/c, 'GPU-0': ml/waits/c, "
		       "'0000:02:00.1': ml/waits-not/c}");
	json_auto_t *missed = same_rails_missed(observed, allocated, wanted);
	json_auto_t *again = same_rails_missed(observed, allocated, wanted);
	json_auto_t *want =
		yaml("- {pod: ml/other/c, message: 'label orbweaver.io/rails: the pod has rails "
		     "0.3 and not 0-1: rail 1 had no free device, or the kubelet asked for other "
		     "devices first; to try again, delete the pod'}\n"
		     "- {pod: ml/beyond/c, message: 'label orbweaver.io/rails: the pod has rails 1 "
		     "and not 0.5: rail 0 had no free device, or the kubelet asked for other "
		     "devices first; to try again, delete the pod'}\n");
	json_auto_t *left = yaml("{ml/waits: 3}");

	assert_true(json_same(missed, want));
	assert_int_equal(json_array_size(again), 0);
	assert_true(json_same(wanted, left));
}

TEST(a_rail_that_is_not_there_is_said)
{
	json_auto_t *observed = host(2), *wanted = yaml("{ml/w: 8}");
	json_auto_t *allocated = yaml(R ": {'0000:01:00.1': ml/w/c}");
	json_auto_t *missed = same_rails_missed(observed, allocated, wanted);

	assert_non_null(strstr(json_str_at(json_array_get(missed, 0), "message"),
			       "rail 3 has no NIC on this node"));
}
