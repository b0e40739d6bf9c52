// SPDX-License-Identifier: Apache-2.0
/* host-local in a folder of the test's own: what power cuts leave, and what cannot be read. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/plugins.h"
#include "tests/support/scratch.h"

/* .1 is the gateway: five addresses. */
static const char config[] = "{\"cniVersion\": \"1.0.0\", \"name\": \"net\", \"ipam\": "
			     "{\"type\": \"host-local\", \"dataDir\": \"/data\", "
			     "\"subnet\": \"192.0.2.0/29\"}}";

static struct {
	char *folder;
	int root;
} node;

static int set_up(void **state)
{
	node.folder = scratch_new();
	node.root = open(node.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static int tear_down(void **state)
{
	own_close_p(&node.root);
	scratch_free(node.folder);
	return 0;
}

static int call(const char *container, enum attach_command command, struct err *err)
{
	json_auto_t *parsed = json_parse(config, strlen(config), NULL), *result = NULL;
	const struct attach_call outer = {.command = command,
					  .type = "host-local",
					  .container_id = container,
					  .ifname = "net1",
					  .root = node.root,
					  .config = parsed};
	const struct plugin_call inner = {.call = &outer};

	return command == ATTACH_ADD ? plugin_host_local.add(&inner, &result, err)
				     : plugin_host_local.del(&inner, err);
}

static bool has_file(const char *address)
{
	auto_free char *path = str_printf("%s/data/net/%s", node.folder, address);

	return access(path, F_OK) == 0;
}

static void put_empty(const char *address, bool is_old)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	auto_free char *folder = str_below(node.folder, "data/net");
	auto_free char *path = str_below(folder, address);

	assert_int_equal(fs_make_dirs(folder, 0755), 0);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	if (is_old)
		assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

/* Returns how many pods get an address. */
static int fill(void)
{
	for (int n = 0;; n++) {
		auto_free char *container = str_printf("c%d", n);
		struct err err = {0};

		if (call(container, ATTACH_ADD, &err) == 0)
			continue;
		assert_string_equal(err.reason, "NoAddress");
		return n;
	}
}

TEST_WITH(an_address_that_a_power_cut_left_without_an_owner_is_given_again, set_up, tear_down)
{
	put_empty("192.0.2.3", true);
	assert_int_equal(fill(), 5);
}

/* Another program may make its file and write to it apart. */
TEST_WITH(one_of_this_boot_is_left, set_up, tear_down)
{
	put_empty("192.0.2.3", false);
	assert_int_equal(fill(), 4);
}

/* With so many descriptors less than are needed, DEL says that it has failed. */
TEST_WITH(del_without_descriptors_does_not_lose_the_address, set_up, tear_down)
{
	struct rlimit before, limit;
	int failed = 0, rc = -1;

	assert_int_equal(call("c1", ATTACH_ADD, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int more = 0; rc < 0; more++) {
		int next = dup(node.root);
		struct err err = {0};

		(void)close(next);
		limit = (struct rlimit){(rlim_t)next + (rlim_t)more, before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		rc = call("c1", ATTACH_DEL, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(has_file("192.0.2.2"), rc < 0);
		failed += rc < 0;
	}
	assert_true(failed > 4);
}

/* It would have two addresses, of which one DEL is to give back. */
TEST_WITH(a_second_add_without_descriptors_is_refused_all_the_same, set_up, tear_down)
{
	struct rlimit before, limit;

	assert_int_equal(call("c1", ATTACH_ADD, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int more = 0; more < 12; more++) {
		int next = dup(node.root), rc;

		(void)close(next);
		limit = (struct rlimit){(rlim_t)next + (rlim_t)more, before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		rc = call("c1", ATTACH_ADD, NULL);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(rc, -1);
	}
}
