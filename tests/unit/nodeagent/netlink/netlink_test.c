// SPDX-License-Identifier: Apache-2.0
/*
 * The transport on sockets of the kernel: refusals, dumps that are interrupted, and several
 * messages at once. Nothing is changed: what it asks to remove is not there.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>

#include "nodeagent/netlink/dcb.h"
#include "nodeagent/netlink/message.h"
#include "nodeagent/netlink/netlink.h"

/* The list of interfaces changes while the kernel sends it. */
static bool changes;

int __real_nl_recv(struct nl_sock *socket, struct sockaddr_nl *from, unsigned char **bytes,
		   struct ucred **credentials);
int __wrap_nl_recv(struct nl_sock *socket, struct sockaddr_nl *from, unsigned char **bytes,
		   struct ucred **credentials);
int __wrap_nl_recv(struct nl_sock *socket, struct sockaddr_nl *from, unsigned char **bytes,
		   struct ucred **credentials)
{
	int n = __real_nl_recv(socket, from, bytes, credentials);

	if (changes && n >= (int)sizeof(struct nlmsghdr))
		((struct nlmsghdr *)*bytes)->nlmsg_flags |= NLM_F_DUMP_INTR;
	return n;
}

static int ask(int protocol, struct err *err)
{
	const struct ifinfomsg header = {.ifi_family = AF_UNSPEC};
	auto_nl_msg struct nl_msg *request =
		netlink_request(RTM_GETLINK, NLM_F_DUMP, &header, sizeof(header));
	auto_netlink struct netlink *netlink = netlink_new();
	auto_strbuf struct strbuf answer = {0};
	int rc = netlink_ask(netlink, protocol, request, &answer, err);

	assert_int_equal(answer.len, 0);
	return rc;
}

TEST(a_list_that_changed_on_the_way_is_no_answer)
{
	struct err err = {0};

	changes = true;
	assert_int_equal(ask(NETLINK_ROUTE, &err), -1);
	changes = false;
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "DumpInterrupted");
}

TEST(a_kernel_without_the_protocol_says_so)
{
	struct err err = {0};

	assert_int_equal(ask(MAX_LINKS - 1, &err), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.reason, "NetlinkUnavailable");
	assert_int_equal(err.sys, EPROTONOSUPPORT);
}

/* More than go into one system call; each has its own answer. */
/* Loopback's driver has none, nor has a kernel that was built without it. */
TEST(an_interface_without_dcb_says_so)
{
	auto_netlink struct netlink *netlink = netlink_new();
	const struct ieee_pfc pfc = {.pfc_en = 1 << 3};
	struct err asked = {0}, set = {0};
	struct dcb dcb;

	assert_int_equal(dcb_get(netlink, "lo", &dcb, &asked), -1);
	assert_int_equal(asked.sys, EOPNOTSUPP);
	/* Without CAP_NET_ADMIN it is not looked at. */
	assert_int_equal(dcb_set(netlink, "lo", DCB_ATTR_IEEE_PFC, &pfc, sizeof(pfc), &set), -1);
	assert_true(set.sys == EOPNOTSUPP || set.sys == EPERM);
}

TEST(each_message_has_its_answer_in_whatever_batch_it_was_sent)
{
	enum { N = 150 };
	auto_netlink struct netlink *netlink = netlink_new();
	struct netlink_answer answers[N];
	struct nl_msg *messages[N];
	struct err err = {0};

	for (size_t i = 0; i < N; i++) {
		/* The first is there; the others are not, nor will be. */
		const struct ifinfomsg header = {.ifi_index = i ? INT32_MAX - (int)i : 1};

		messages[i] = netlink_request(RTM_GETLINK, 0, &header, sizeof(header));
	}
	assert_int_equal(netlink_send(netlink, NETLINK_ROUTE, messages, N, answers, &err), 0);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(answers[i].code, i ? ENODEV : 0);
		nlmsg_free(messages[i]);
	}
}

/* nfnetlink refuses a transaction at its first message, which wants no answer. */
TEST(a_transaction_that_is_refused_at_its_edge_is_not_waited_for)
{
	const struct nfgenmsg edge = {.res_id = htons(NFNL_SUBSYS_COUNT)};
	const uint16_t types[] = {NFNL_MSG_BATCH_BEGIN, NFNL_SUBSYS_COUNT << 8, NFNL_MSG_BATCH_END};
	auto_netlink struct netlink *netlink = netlink_new();
	struct nl_msg *messages[ARRAY_LEN(types)];
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		messages[i] = netlink_request(types[i], 0, &edge, sizeof(edge));
	assert_int_equal(
		netlink_commit(netlink, NETLINK_NETFILTER, messages, ARRAY_LEN(types), &err), -1);
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		nlmsg_free(messages[i]);
	if (err.sys == EPROTONOSUPPORT)
		skip(); /* a kernel without nfnetlink */
	assert_string_equal(err.reason, "NetlinkRefused");
}
