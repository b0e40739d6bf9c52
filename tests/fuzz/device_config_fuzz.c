// SPDX-License-Identifier: Apache-2.0
/*
 * Configurations of device plugins as users bring them: reading is pure, an error comes exactly
 * without a document, what was read is read again as the same, and pools made of it keep the
 * promises of pools.h.
 */
#include <stdint.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/devices/pools.h"
#include "tests/fuzz/fuzz.h"

static json_t *observed, *dev_names;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char host[] =
		"{\"interfaces\":[{\"pciAddress\":\"0000:3b:00.0\",\"vendor\":\"15b3\","
		"\"deviceID\":\"1017\","
		"\"driver\":\"mlx5_core\",\"name\":\"ens1f0\",\"linkType\":\"ETH\",\"numVfs\":1,"
		"\"Vfs\":[{\"vfID\":0,"
		"\"pciAddress\":\"0000:3b:00.2\",\"vendor\":\"15b3\",\"deviceID\":\"1018\","
		"\"driver\":\"mlx5_core\","
		"\"name\":\"v0\"}]}],\"rdma\":{\"devices\":[{\"name\":\"mlx5_0\",\"pciAddress\":"
		"\"0000:3b:00.0\","
		"\"ports\":[{\"netdev\":\"ens1f0\"}],\"charDevices\":[{\"type\":\"uverbs\","
		"\"path\":\"/dev/infiniband/uverbs0\"}]}],\"charDevices\":[]}}";
	static const char names[] =
		"[\"infiniband\",\"infiniband/uverbs0\",\"snd/timer\",\"snd_timer\"]";

	json_init();
	observed = json_parse(host, sizeof(host) - 1, NULL);
	dev_names = json_parse(names, sizeof(names) - 1, NULL);
	return 0;
}

static void check_pools(const json_t *pools)
{
	const char *before = "";
	json_t *item;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, item) {
		const char *name = json_str_or(json_at(item, "name"), "");

		fuzz_check(strcmp(before, name) < 0, "resources are sorted, each name once");
		fuzz_check(strlen(strchr(name, '/')) <= 64, "a name is one that the kubelet takes");
		before = name;
	}
	json_array_foreach (json_at(pools, "problems"), i, item) {
		const char *message = json_str_at(item, "message");

		fuzz_check(message && !strpbrk(message, "\r\n"), "a problem is one line");
	}
}

static void check_document(const json_t *doc, const json_t *again, const struct err *err,
			   const char *reason)
{
	fuzz_check(json_same(doc, again), "reading is pure");
	fuzz_check(doc || (err->class == ERR_INVALID && str_eq(err->reason, reason)),
		   "without a document there is an error");
	fuzz_check(!strpbrk(err->text, "\r\n"), "an error is one line");
}

/* What was read, without what was said about it, reads as the same. */
static void check_again(const json_t *doc, json_t *(*read)(const char *, size_t, struct err *))
{
	json_auto_t *plain = doc ? json_deep_copy(doc) : NULL, *again = NULL;
	auto_free char *text = NULL;

	if (!doc)
		return;
	(void)json_object_del(plain, "problems");
	text = json_text(plain);
	again = read(text, strlen(text), NULL);
	fuzz_check(again && json_array_size(json_at(again, "problems")) == 0,
		   "what was read is right");
	(void)json_object_del(again, "problems");
	fuzz_check(json_same(plain, again), "what was read reads as the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct err err[3] = {0};
	json_auto_t *list = pools_read_resource_list(text, size, &err[0]);
	json_auto_t *list_again = pools_read_resource_list(text, size, NULL);
	json_auto_t *shared = pools_read_shared(text, size, &err[1]);
	json_auto_t *shared_again = pools_read_shared(text, size, NULL);
	json_auto_t *files = pools_read_dev_files(text, size, &err[2]);
	json_auto_t *files_again = pools_read_dev_files(text, size, NULL);
	struct pools_input input = {
		.prefix = "spidernet.io",
		.observed = observed,
		.resource_list = list,
		.shared = shared,
		.dev_files = files,
		.dev_names = dev_names,
	};
	json_auto_t *pools = pools_compute(&input), *pools_again = NULL;

	check_document(list, list_again, &err[0], "BadResourceList");
	check_document(shared, shared_again, &err[1], "BadSharedConfig");
	check_document(files, files_again, &err[2], "BadDeviceList");
	pools_keep_good(list_again, list);
	pools_keep_good(shared_again, shared);
	pools_keep_good(files_again, files);
	fuzz_check(json_same(list, list_again) && json_same(shared, shared_again) &&
			   json_same(files, files_again),
		   "nothing is missing of what is all there");
	check_again(list, pools_read_resource_list);
	check_again(shared, pools_read_shared);
	check_pools(pools);
	input.before = pools;
	pools_again = pools_compute(&input);
	fuzz_check(json_same(pools, pools_again), "nothing changes when nothing has changed");
	return 0;
}
