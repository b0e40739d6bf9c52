// SPDX-License-Identifier: Apache-2.0
/* Which of the node's files pods may get, whatever the agent says. */
#include "nodeagent/devices/pools_paths.h"
#include "tests/unit/nodeagent/devices/pools.h"

#define X "spidernet.io/x"

TEST(allows_device_files_of_our_resources_and_what_is_listed)
{
	static const struct {
		const char *path, *more;
		bool is_allowed;
	} rows[] = {
		{"/dev/infiniband", NULL, true},
		{"/dev/infiniband/uverbs0", NULL, true},
		{"/dev/infiniband/rdma_cm", NULL, true},
		{"/dev/vfio/vfio", NULL, true},
		{"/dev/vfio/noiommu-3", NULL, true},
		{"/dev/vhost-net", NULL, true},
		{"/dev/net/tun", NULL, true},
		{"/run/orbweaver/rdma/0000:3b:00.2", NULL, true},
		{"/dev/sda", NULL, false},
		{"/dev", NULL, false},
		{"/", NULL, false},
		{"", NULL, false},
		{"dev/infiniband/uverbs0", NULL, false},
		{"/dev/infiniband/../sda", NULL, false},
		{"/dev/infiniband/./uverbs0", NULL, false},
		{"/dev/infiniband//uverbs0", NULL, false},
		{"/dev/infiniband/", NULL, false},
		{"/dev/infiniband/..", NULL, false},
		{"/dev/infinibandage", NULL, false},
		{"/dev/vhost-net2", NULL, false},
		{"/run/orbweaver/rdma", NULL, false},
		{"/run/orbweaver/rdma/../../../dev/sda", NULL, false},
		{"/run/orbweaver/cni.sock", NULL, false},
		{"/dev/video0", "/dev/snd, /dev/video*", true},
		{"/dev/snd", "/dev/snd, /dev/video*", true},
		{"/dev/snd/timer", "/dev/snd, /dev/video*", false},
		{"/dev/snd/timer", "/dev/snd*", true},
		{"/dev/kvm", "/dev/snd", false},
		{"/dev/../etc/shadow", "/dev/*", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (pools_path_is_allowed(rows[i].path, rows[i].more) != rows[i].is_allowed)
			fail_msg("%s with %s", rows[i].path, rows[i].more ? rows[i].more : "none");
}

TEST(takes_paths_below_dev_only)
{
	static const char *const bad[] = {"",    "/dev/",       "/etc/shadow",    "/dev/a,",
					  "kvm", "/dev/../sda", "/dev/a,/proc/*", "/dev/a/"};

	assert_int_equal(pools_paths_check(NULL, NULL), 0);
	assert_int_equal(pools_paths_check("/dev/kvm, /dev/video[0-9]*", NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};

		if (pools_paths_check(bad[i], &err) == 0)
			fail_msg("took %s", bad[i]);
		assert_string_equal(err.reason, "BadFlag");
		assert_non_null(strstr(err.text, "--device-paths"));
	}
}

/* Two devices of one resource, the second with these nodes; `rest` are members of the resource. */
static json_t *pools_with(const char *nodes, const char *rest)
{
	auto_free char *text = str_printf(
		"{resources: [{name: '" X "', causes: [], %s devices: [{id: a, healthy: true, "
		"nodes: [/dev/infiniband/uverbs1]}, {id: b, healthy: true, nodes: %s}]}, {name: y, "
		"causes: [], devices: [{id: c, healthy: true}]}], problems: []}",
		rest, nodes);

	return yaml(text);
}

/* Healthy devices as "abc"; the cause begins so. */
static void expect(const char *nodes, const char *rest, const char *healthy, const char *cause)
{
	json_auto_t *pools = pools_with(nodes, rest), *kept = json_deep_copy(pools);
	auto_free char *told = NULL;
	json_auto_t *allowed = pools_keep_allowed(pools, "/dev/kvm", &told);
	auto_strbuf struct strbuf ids = {0};
	json_t *entry, *device;
	size_t i, k;

	json_array_foreach (json_at(allowed, "resources"), i, entry)
		json_array_foreach (json_at(entry, "devices"), k, device)
			if (json_is_true(json_at(device, "healthy")))
				strbuf_adds(&ids, json_str_at(device, "id"));
	assert_string_equal(strbuf_str(&ids), healthy);
	/* What the agent said stays as it is: the next one is greeted with it. */
	assert_true(json_equal(pools, kept));
	if (!cause) {
		assert_null(told);
		assert_true(json_equal(pools, allowed));
		assert_text(json_at(resource(allowed, X), "causes"), "[]");
		return;
	}
	assert_true(str_starts(told, X ": "));
	assert_true(str_starts(told + strlen(X ": "), cause));
	assert_says(json_at(resource(allowed, X), "causes"), cause);
}

TEST(refuses_what_a_container_may_not_get_and_nothing_else)
{
	expect("[/dev/infiniband/uverbs2]", "env: PCIDEVICE_X, permissions: rwm,", "abc", NULL);
	expect("[/dev/kvm]", "", "abc", NULL);
	expect("[]", "", "abc", NULL);
	expect("[{path: /dev/vfio/3, hostPath: /dev/vfio/noiommu-3}]", "", "abc", NULL);
	expect("[{path: /dev/infiniband/0000:3b:00.2/.., hostPath: "
	       "/run/orbweaver/rdma/0000:3b:00.2}]",
	       "", "abc", NULL);
	expect("[/dev/sda]", "", "ac", "/dev/sda is not among");
	expect("[/dev/infiniband/uverbs2, {path: /dev/kvm, hostPath: /dev/mem}]", "", "ac",
	       "/dev/mem is not among");
	expect("[{path: /etc/passwd, hostPath: /dev/kvm}]", "", "ac",
	       "/etc/passwd is not below the container's /dev");
	expect("[{path: /dev/../etc/passwd, hostPath: /dev/kvm}]", "", "ac",
	       "/dev/../etc/passwd is not below the container's /dev");
	expect("[{path: /dev/a/b/../../../etc, hostPath: /dev/kvm}]", "", "ac", "/dev/a/b/");
	expect("[{path: /dev/a/.., hostPath: /dev/kvm}]", "", "ac", "/dev/a/..");
	expect("[{hostPath: /dev/kvm}]", "", "ac", " is not below");
	expect("[7]", "", "ac", " is not below");
	/* Of all devices of the resource. */
	expect("[]", "nodes: [/dev/sda],", "c", "/dev/sda is not among");
	expect("[]", "env: LD_PRELOAD,", "c", "its variable LD_PRELOAD");
	expect("[]", "permissions: rwx,", "c", "its permissions rwx");
}
