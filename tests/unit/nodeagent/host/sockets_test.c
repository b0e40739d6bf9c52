// SPDX-License-Identifier: Apache-2.0
/* Sockets for events that the kernel refuses, and those that break. */
#include "tests/support/test.h"

#include <errno.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "nodeagent/host/watch.h"

TEST(events_need_a_socket)
{
	struct rlimit before, none;
	struct watch *watch;
	struct err err = {0};

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	watch = watch_open(&err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(watch);
	assert_string_equal(err.reason, "WatchUnavailable");
	assert_int_equal(err.sys, EMFILE);
}

static void on_event(void *arg, const struct watch_event *event)
{
	fail_msg("there is no event");
}

TEST(a_socket_that_breaks_is_named)
{
	auto_watch struct watch *watch = watch_open(NULL);
	auto_close int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct err err = {0};

	assert_non_null(watch);
	assert_true(dup2(other, watch_fd(watch, WATCH_LINK)) >= 0);
	assert_int_equal(watch_read(watch, WATCH_LINK, on_event, NULL, &err), -1);
	assert_string_equal(err.reason, "WatchBroken");
	assert_int_equal(err.sys, ENOTSOCK);
}
