// SPDX-License-Identifier: Apache-2.0
/* Machines that people have (tests/golden-topologies), as hosts made of files. */
#pragma once

#include <fcntl.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "tests/support/test.h"

#define GOLDEN_MACHINES "tests/golden-topologies"

static inline json_t *golden_machine_read(const char *name)
{
	auto_free char *path = str_printf(GOLDEN_MACHINES "/%s.json", name);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	json_t *machine;

	if (fs_read(AT_FDCWD, path, 1 << 20, &text, &err) < 0)
		fail_msg("%s", err.text);
	machine = json_parse(strbuf_str(&text), text.len, &err);
	if (!machine)
		fail_msg("%s: %s", path, err.text);
	assert_true(json_array_size(json_at(machine, "sources")) > 0);
	return machine;
}

static inline struct host_tree *golden_machine_build(const json_t *machine)
{
	struct host_tree *tree = host_tree_new();
	const struct tree_gpu gpu = {
		json_str_at(machine, "gpu", "vendor"),
		json_str_at(machine, "gpu", "device"),
		json_str_at(machine, "gpu", "class"),
	};
	const json_t *item;
	size_t i;

	json_array_foreach (json_at(machine, "gpus"), i, item)
		host_tree_add_gpu(tree, &gpu, json_str_at(item, "address"),
				  json_str_at(item, "path"),
				  (int)json_integer_value(json_at(item, "numa")));
	json_array_foreach (json_at(machine, "nics"), i, item)
		host_tree_add_pf(tree,
				 &(struct tree_pf){
					 .address = json_str_at(item, "address"),
					 .path = json_str_at(item, "path"),
					 .numa = (int)json_integer_value(json_at(item, "numa")),
					 .netdev = json_str_at(item, "netdev"),
					 .rdma = json_str_at(item, "rdma"),
					 .driver = json_str_at(machine, "nic", "driver"),
					 .vendor = json_str_at(machine, "nic", "vendor"),
					 .device = json_str_at(machine, "nic", "device"),
				 });
	return tree;
}
