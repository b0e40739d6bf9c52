// SPDX-License-Identifier: Apache-2.0
/* The lock of the node: one has it, others wait, and what is neither is told. */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include "nodeagent/agent/node_lock.h"

static char root[64];

static int set_up(void **state)
{
	char path[80];

	(void)snprintf(root, sizeof(root), "/tmp/lock.XXXXXX");
	assert_non_null(mkdtemp(root));
	(void)snprintf(path, sizeof(path), "%s/run", root);
	assert_int_equal(mkdir(path, 0700), 0);
	return 0;
}

static int tear_down(void **state)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/" NODE_LOCK_FILE, root);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/run", root);
	(void)rmdir(path);
	(void)rmdir(root);
	return 0;
}

TEST_WITH(one_has_it_and_the_next_gets_it_when_that_one_ends, set_up, tear_down)
{
	struct err err = {0};
	int first = node_lock_open(root, &err), second = node_lock_open(root, &err);

	assert_true(first >= 0 && second >= 0);
	assert_int_equal(node_lock_try(first, &err), 1);
	assert_int_equal(node_lock_try(first, &err), 1);
	assert_int_equal(node_lock_try(second, &err), 0);
	assert_int_equal(err.class, ERR_NONE);
	(void)close(first);
	assert_int_equal(node_lock_try(second, &err), 1);
	(void)close(second);
}

TEST_WITH(the_lock_is_where_links_of_the_host_lead, set_up, tear_down)
{
	char path[128];
	struct err err = {0};
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/run", root);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/volatile", path), 0);
	(void)snprintf(path, sizeof(path), "%s/volatile", root);
	assert_int_equal(mkdir(path, 0700), 0);
	fd = node_lock_open(root, &err);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)snprintf(path, sizeof(path), "%s/volatile/orbweaver-agent.lock", root);
	assert_int_equal(stat(path, &st), 0);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/volatile", root);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/run", root);
	(void)unlink(path);
}

TEST_WITH(what_the_kernel_refuses_is_no_other_agent, set_up, tear_down)
{
	struct err err = {0};

	assert_int_equal(node_lock_try(-1, &err), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.reason, "LockRefused");
	assert_non_null(strstr(err.text, NODE_LOCK_FILE));
}

TEST_WITH(a_root_without_the_folder_is_told, set_up, tear_down)
{
	struct err err = {0};

	assert_int_equal(node_lock_open("/proc/self/none/", &err), -1);
	assert_string_equal(err.reason, "LockUnavailable");
	assert_non_null(strstr(err.text, "/" NODE_LOCK_FILE " below /proc/self/none/"));
}
