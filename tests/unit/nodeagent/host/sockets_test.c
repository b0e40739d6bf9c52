// SPDX-License-Identifier: Apache-2.0
/* Netlink sockets that the kernel refuses, and those that break. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "nodeagent/host/netlink.h"
#include "nodeagent/host/watch.h"

/* The list of interfaces changes while the kernel sends it. */
int __real_nl_recv(struct nl_sock *socket, struct sockaddr_nl *from, unsigned char **bytes,
		   struct ucred **credentials);
int __wrap_nl_recv(struct nl_sock *socket, struct sockaddr_nl *from, unsigned char **bytes,
		   struct ucred **credentials);
int __wrap_nl_recv(struct nl_sock *socket, struct sockaddr_nl *from, unsigned char **bytes,
		   struct ucred **credentials)
{
	int n = __real_nl_recv(socket, from, bytes, credentials);

	if (n >= (int)sizeof(struct nlmsghdr))
		((struct nlmsghdr *)*bytes)->nlmsg_flags |= NLM_F_DUMP_INTR;
	return n;
}

static int ask(int protocol, struct err *err)
{
	const struct ifinfomsg header = {.ifi_family = AF_UNSPEC};
	auto_nl_msg struct nl_msg *request =
		netlink_request(RTM_GETLINK, NLM_F_DUMP, &header, sizeof(header));
	struct netlink *netlink = netlink_new();
	auto_strbuf struct strbuf answer = {0};
	int rc = netlink_transact(netlink, protocol, nlmsg_hdr(request), &answer, err);

	assert_int_equal(answer.len, 0);
	netlink_free(netlink);
	return rc;
}

static void a_list_that_changed_on_the_way_is_no_answer(void **state)
{
	struct err err = {0};

	assert_int_equal(ask(NETLINK_ROUTE, &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "DumpInterrupted");
}

static void a_kernel_without_the_protocol_says_so(void **state)
{
	struct err err = {0};

	assert_int_equal(ask(MAX_LINKS - 1, &err), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.reason, "NetlinkUnavailable");
	assert_int_equal(err.sys, EPROTONOSUPPORT);
}

static void events_need_a_socket(void **state)
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

static void a_socket_that_breaks_is_named(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_that_changed_on_the_way_is_no_answer),
		cmocka_unit_test(a_kernel_without_the_protocol_says_so),
		cmocka_unit_test(events_need_a_socket),
		cmocka_unit_test(a_socket_that_breaks_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
