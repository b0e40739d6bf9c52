// SPDX-License-Identifier: Apache-2.0
/* What a container gets for its devices, and which devices are preferred. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/devices/allocate.h"
#include "tests/support/yaml.h"

static const char POOL[] =
	"name: spidernet.io/x\n"
	"env: PCIDEVICE_SPIDERNET_IO_X\n"
	"permissions: rw\n"
	"devices:\n"
	"- {id: a, healthy: true, details: {generic: {deviceID: a}}, nodes: "
	"[/dev/infiniband/uverbs1, /dev/infiniband/rdma_cm]}\n"
	"- {id: b, healthy: true, details: {extra: {k: '<&>'}}, nodes: [/dev/infiniband/rdma_cm, "
	"/dev/infiniband/uverbs0]}\n"
	"- {id: c, healthy: false, cause: no driver is bound to it yet}\n"
	"- {id: d, healthy: true, cause: 'ns/p/c has it, its RDMA device is out of sight'}\n"
	"- {id: e, healthy: true, nodes: [{path: /dev/vfio/4, hostPath: /dev/vfio/noiommu-4}]}\n";

/* ids: names of one letter, "ab" are two. */
static json_t *allocate(const json_t *pool, const char *letters, struct err *err)
{
	char names[16][2];
	const char *ids[16];
	size_t n = strlen(letters);

	for (size_t i = 0; i < n; i++) {
		names[i][0] = letters[i];
		names[i][1] = '\0';
		ids[i] = names[i];
	}
	return allocate_devices(pool, ids, n, err);
}

static void assert_text(const json_t *value, const char *want)
{
	auto_free char *text = json_text(value);

	assert_string_equal(text ? text : "nothing", want);
}

TEST(nodes_come_once_and_variables_in_the_order_of_the_request)
{
	json_auto_t *pool = yaml(POOL), *answer = allocate(pool, "ba", NULL);

	assert_text(json_at(answer, "nodes"),
		    "[{\"hostPath\":\"/dev/infiniband/rdma_cm\",\"path\":\"/dev/infiniband/"
		    "rdma_cm\",\"permissions\":\"rw\"},"
		    "{\"hostPath\":\"/dev/infiniband/uverbs0\",\"path\":\"/dev/infiniband/"
		    "uverbs0\",\"permissions\":\"rw\"},"
		    "{\"hostPath\":\"/dev/infiniband/uverbs1\",\"path\":\"/dev/infiniband/"
		    "uverbs1\",\"permissions\":\"rw\"}]");
	assert_string_equal(json_str_at(answer, "env", "PCIDEVICE_SPIDERNET_IO_X"), "b,a");
	assert_string_equal(json_str_at(answer, "env", "PCIDEVICE_SPIDERNET_IO_X_INFO"),
			    "{\"a\":{\"generic\":{\"deviceID\":\"a\"}},"
			    "\"b\":{\"extra\":{\"k\":\"\\u003c\\u0026\\u003e\"}}}");
}

TEST(a_node_may_have_another_name_on_the_host)
{
	json_auto_t *pool = yaml(POOL), *answer = allocate(pool, "e", NULL);

	assert_text(json_at(answer, "nodes"), "[{\"hostPath\":\"/dev/vfio/noiommu-4\",\"path\":\"/"
					      "dev/vfio/4\",\"permissions\":\"rw\"}]");
}

TEST(a_token_brings_what_all_bring)
{
	json_auto_t *pool = yaml("{name: r/x, permissions: rwm, nodes: [/dev/b, /dev/a, /dev/b],"
				 " devices: [{id: '0', healthy: true}, {id: '1', healthy: true}]}");
	const char *const ids[] = {"1", "0"};
	json_auto_t *answer = allocate_devices(pool, ids, 2, NULL);

	assert_text(answer,
		    "{\"env\":{},\"nodes\":[{\"hostPath\":\"/dev/a\",\"path\":\"/dev/"
		    "a\",\"permissions\":\"rwm\"},"
		    "{\"hostPath\":\"/dev/b\",\"path\":\"/dev/b\",\"permissions\":\"rwm\"}]}");
}

TEST(what_cannot_be_given_says_why)
{
	static const struct {
		const char *ids, *reason, *text;
	} rows[] = {
		{"az", "UnknownDevice", "spidernet.io/x: there is no device \"z\""},
		{"ac", "DeviceUnhealthy", "spidernet.io/x: device c: no driver is bound to it yet"},
		{"d", "DeviceUnhealthy",
		 "spidernet.io/x: device d: ns/p/c has it, its RDMA device is out of sight"},
		{"aa", "BadRequest", "spidernet.io/x: device a is asked for twice"},
		{"abcdea", "BadRequest", "spidernet.io/x: 6 devices are asked for, there are 5"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *pool = yaml(POOL);
		struct err err = {0};

		assert_null(allocate(pool, rows[i].ids, &err));
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, rows[i].reason);
		assert_string_equal(err.text, rows[i].text);
	}
}

TEST(devices_are_found_in_any_order)
{
	json_auto_t *pool = yaml(POOL), *answer = NULL;
	json_t *devices = json_at(pool, "devices"),
	       *first = json_incref(json_array_get(devices, 0));

	json_array_remove(devices, 0);
	json_array_append_new(devices, first);
	for (const char *id = "abe"; *id; id++) {
		char one[] = {*id, '\0'};

		json_decref(answer);
		answer = allocate(pool, one, NULL);
		assert_non_null(answer);
	}
}

TEST(nothing_asked_for_is_nothing_given)
{
	json_auto_t *pool = yaml(POOL), *answer = allocate(pool, "", NULL);

	assert_text(json_at(answer, "nodes"), "[]");
	assert_string_equal(json_str_at(answer, "env", "PCIDEVICE_SPIDERNET_IO_X"), "");
}

/* ---- preferences ----------------------------------------------------------------------------- */

/* a-d on PF p of node 0, e-h on PF q of node 0, i-l on PF r of node 1, m without any. */
static json_t *machine(const char *policy)
{
	json_t *pool = json_pack("{s:s,s:s,s:[]}", "name", "n/x", "policy", policy, "devices");
	json_t *devices = json_at(pool, "devices");

	for (char c = 'a'; c <= 'l'; c++)
		json_array_append_new(devices,
				      json_pack("{s:o,s:b,s:i,s:s}", "id", json_fmt("%c", c),
						"healthy", 1, "numa", c >= 'i', "pf",
						c < 'e'   ? "p"
						: c < 'i' ? "q"
							  : "r"));
	json_array_append_new(devices, json_pack("{s:s,s:b}", "id", "m", "healthy", 1));
	return pool;
}

static size_t split(const char *letters, char names[][2], const char **ids)
{
	size_t n = strlen(letters);

	for (size_t i = 0; i < n; i++) {
		names[i][0] = letters[i];
		names[i][1] = '\0';
		ids[i] = names[i];
	}
	return n;
}

/* What is chosen, as letters; "?" and the error when nothing is. */
static void prefer_near(const json_t *pool, const char *available, const char *must, size_t size,
			const json_t *near, char *ret)
{
	char names[2][32][2];
	const char *ids[32], *needed[32], *chosen[32];
	size_t n = split(available, names[0], ids), n_must = split(must, names[1], needed), i;
	struct err err = {0};

	if (allocate_prefer(pool, ids, n, needed, n_must, size, near, chosen, &err) < 0) {
		assert_string_equal(err.reason, "BadRequest");
		(void)snprintf(ret, 64, "?%.60s", err.text);
		return;
	}
	for (i = 0; i < size; i++)
		ret[i] = chosen[i][0];
	ret[i] = '\0';
}

static void prefer(const json_t *pool, const char *available, const char *must, size_t size,
		   char *ret)
{
	prefer_near(pool, available, must, size, NULL, ret);
}

TEST(preferences_keep_nodes_together_and_spread_or_pack)
{
	static const struct {
		const char *policy, *available, *must;
		size_t size;
		const char *want;
	} rows[] = {
		/* The smallest node that is large enough. */
		{"spread", "abcdefghijklm", "", 2, "ij"},
		{"spread", "mlkjihgfedcba", "", 2, "ij"},
		{"spread", "abcdefgh", "", 2, "ae"},
		{"spread", "abcdefgh", "", 4, "abef"},
		{"packed", "abcdefgh", "", 4, "abcd"},
		/* The PF that has given least, or most. */
		{"spread", "bcdefgh", "", 1, "e"},
		{"packed", "bcdefgh", "", 1, "b"},
		{"packed", "abcdfgh", "", 1, "f"},
		{"packed", "abcdfgh", "", 4, "afgh"},
		/* What must be included says where. */
		{"spread", "abcdefghijkl", "k", 2, "ik"},
		{"spread", "abcdefghijkl", "b", 2, "be"},
		{"packed", "abcdefghijkl", "f", 2, "ef"},
		{"spread", "abcdefghijkl", "al", 2, "al"},
		/* As many as PFs, or more: each in its turn, on all nodes. */
		{"spread", "abcdefghijklm", "", 3, "aei"},
		{"spread", "abcdefghijkl", "al", 3, "ael"},
		{"spread", "abcdefghijkl", "", 6, "abefij"},
		{"spread", "abcdefijkl", "", 8, "abcefijk"},
		{"spread", "abcdijkl", "", 4, "abij"},
		/* No node is enough: the largest, then the next. */
		{"packed", "abcdefijkl", "", 8, "abcdefij"},
		{"spread", "ijm", "", 3, "ijm"},
		{"spread", "am", "", 1, "a"},
		/* What is not known comes last. */
		{"spread", "zm", "", 1, "m"},
		{"spread", "za", "", 2, "az"},
		{"spread", "abc", "", 0, ""},
		{"spread", "", "", 0, ""},
		{"spread", "abc", "abc", 3, "abc"},
		{"spread", "abc", "", 4, "?n/x: 4 devices are wanted, 3 are available"},
		{"spread", "abc", "ab", 1,
		 "?n/x: 2 devices must be included, but only 1 are wanted"},
		{"spread", "abc", "d", 2, "?n/x: device d must be included and is not available"},
		{"spread", "abc", "aa", 2, "?n/x: device a must be included and is named twice"},
		{"spread", "aba", "", 2, "?n/x: device a is available twice"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *pool = machine(rows[i].policy);
		char got[64];

		prefer(pool, rows[i].available, rows[i].must, rows[i].size, got);
		if (!str_eq(got, rows[i].want))
			fail_msg("%zu: %s of %s with \"%s\": %s, wanted %s", i, rows[i].policy,
				 rows[i].available, rows[i].must, got, rows[i].want);
	}
}

TEST(an_unhealthy_device_comes_last)
{
	json_auto_t *pool = machine("spread");
	char got[64];

	json_put_bool(json_array_get(json_at(pool, "devices"), 0), "healthy", false);
	prefer(pool, "abm", "", 1, got);
	assert_string_equal(got, "b");
	prefer(pool, "am", "", 1, got);
	assert_string_equal(got, "m");
	prefer(pool, "am", "", 2, got);
	assert_string_equal(got, "am");
}

/*
 * 0 is PIX, 3 NODE, 4 SYS. The first GPU is on the switch of p, the second on that of q, the third
 * on that of r, on the other node.
 */
#define GPU_P "{p: 0, q: 3, r: 4}"
#define GPU_Q "{p: 3, q: 0, r: 4}"
#define GPU_R "{p: 4, q: 4, r: 0}"

TEST(devices_near_the_gpus_of_the_pod_are_preferred)
{
	static const struct {
		const char *policy, *near, *available, *must;
		size_t size;
		const char *want;
	} rows[] = {
		{"spread", GPU_P, "abcdefghijkl", "", 1, "a"},
		{"spread", GPU_Q, "abcdefghijkl", "", 1, "e"},
		{"spread", GPU_R, "abcdefghijkl", "", 1, "i"},
		/* The PF that has given least is of no account. */
		{"spread", GPU_P, "defghijkl", "", 1, "d"},
		/* Each GPU in its turn, on two nodes, whatever the policy. */
		{"spread", GPU_P ", " GPU_R, "abcdefghijkl", "", 2, "ai"},
		{"packed", GPU_P ", " GPU_R, "abcdefghijkl", "", 2, "ai"},
		{"spread", GPU_P ", " GPU_Q ", " GPU_R, "abcdefghijkl", "", 3, "aei"},
		/* Another PF of the node, then the same again, then the other node. */
		{"spread", GPU_P, "abcdefghijkl", "", 2, "ae"},
		{"spread", GPU_P, "abcdefghijkl", "", 4, "abef"},
		{"spread", GPU_P, "aeijkl", "", 3, "aei"},
		{"spread", GPU_P, "efghijkl", "", 1, "e"},
		{"spread", GPU_P, "ijkl", "", 1, "i"},
		/* What must be included counts. */
		{"spread", GPU_P ", " GPU_Q, "abcdefgh", "b", 2, "be"},
		/* What no GPU has a distance to comes last. */
		{"spread", GPU_R, "am", "", 1, "a"},
		/* Damage is no distance. */
		{"spread", "{p: 99, q: -1, r: PIX}", "ei", "", 1, "e"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *pool = machine(rows[i].policy), *near = NULL;
		auto_free char *text = str_printf("{gpus: [%s]}", rows[i].near);
		char got[64];

		near = yaml(text);
		prefer_near(pool, rows[i].available, rows[i].must, rows[i].size, near, got);
		if (!str_eq(got, rows[i].want))
			fail_msg("%zu: %s of %s near %s: %s, wanted %s", i, rows[i].policy,
				 rows[i].available, rows[i].near, got, rows[i].want);
	}
}

TEST(two_nics_of_a_switch_serve_two_gpus_of_others)
{
	/* p and q are PIX to the first GPU, r to the second: one of each, not p and q. */
	json_auto_t *pool = machine("spread"),
		    *near = yaml("{gpus: [{p: 0, q: 0, r: 3}, {p: 3, q: 3, r: 0}]}");
	char got[64];

	prefer_near(pool, "abcdefghijkl", "", 2, near, got);
	assert_string_equal(got, "ai");
}

TEST(devices_near_a_free_gpu_are_preferred_on_one_node)
{
	static const struct {
		const char *near, *available;
		size_t size;
		const char *want;
	} rows[] = {
		{GPU_Q, "abcdefghijkl", 1, "e"},
		{GPU_R, "abcdefghijkl", 2, "ij"},
		/* Two are on one node. */
		{GPU_P ", " GPU_Q ", " GPU_R, "abcdefghijkl", 2, "ij"},
		{GPU_P ", " GPU_Q ", " GPU_R, "abcdefghi", 2, "ae"},
		/* Not enough of them: the next nearest, also for as many as PFs. */
		{GPU_Q, "abcdefijkl", 3, "aef"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *pool = machine("spread"), *near = NULL;
		auto_free char *text = str_printf("{free: true, gpus: [%s]}", rows[i].near);
		char got[64];

		near = yaml(text);
		prefer_near(pool, rows[i].available, "", rows[i].size, near, got);
		if (!str_eq(got, rows[i].want))
			fail_msg("%zu: of %s near %s: %s, wanted %s", i, rows[i].available,
				 rows[i].near, got, rows[i].want);
	}
}

TEST(a_resource_with_files_for_jobs_brings_a_folder)
{
	json_auto_t *pool = yaml(POOL), *without = allocate(pool, "b", NULL), *answer = NULL;

	assert_null(json_at(without, "mounts"));
	json_put_bool(pool, "jobFiles", true);
	answer = allocate(pool, "ba", NULL);
	assert_text(json_at(answer, "mounts"),
		    "[{\"hostPath\":\"/run/orbweaver/jobs/spidernet.io_x_a\",\"path\":\"/run/"
		    "orbweaver\"}]");
}
