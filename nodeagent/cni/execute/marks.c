// SPDX-License-Identifier: Apache-2.0
/*
 * Packet marks with nf_tables, in its netlink language (linux/netfilter/nf_tables.h).
 *
 * Three rules without sets or names to keep: libnftnl would take as many lines, and be one more
 * library in the image.
 */
#include "nodeagent/cni/execute/marks.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/fs.h"
#include "nodeagent/netlink/message.h"

#define TABLE    "orbweaver"
#define PRIORITY (-150) /* "mangle" */
#define MARK     1

/* Messages of one transaction; nothing happens before its end. */
struct batch {
	struct nl_msg *messages[16];
	size_t n;
};

static void add_message(struct batch *batch, struct nl_msg *message)
{
	assert(batch->n < ARRAY_LEN(batch->messages));
	batch->messages[batch->n++] = message;
}

static struct nl_msg *nft_request(int type, int flags)
{
	struct nfgenmsg header = {.nfgen_family = NFPROTO_INET};

	return netlink_request((uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), (uint16_t)flags,
			       &header, sizeof(header));
}

static void add_edge(struct batch *batch, int type)
{
	struct nfgenmsg header = {.res_id = htons(NFNL_SUBSYS_NFTABLES)};

	add_message(batch, netlink_request((uint16_t)type, 0, &header, sizeof(header)));
}

static void put_be32(struct nl_msg *msg, int type, uint32_t value)
{
	netlink_put_u32(msg, type, htonl(value));
}

static void add_table(struct batch *batch, int type, int flags)
{
	struct nl_msg *msg = nft_request(type, flags);

	netlink_put_str(msg, NFTA_TABLE_NAME, TABLE);
	add_message(batch, msg);
}

static void add_chain(struct batch *batch, const char *name, const char *type, int hook)
{
	struct nl_msg *msg = nft_request(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	struct nlattr *nest;

	netlink_put_str(msg, NFTA_CHAIN_TABLE, TABLE);
	netlink_put_str(msg, NFTA_CHAIN_NAME, name);
	nest = nla_nest_start(msg, NFTA_CHAIN_HOOK | NLA_F_NESTED);
	put_be32(msg, NFTA_HOOK_HOOKNUM, (uint32_t)hook);
	put_be32(msg, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
	(void)nla_nest_end(msg, nest);
	netlink_put_str(msg, NFTA_CHAIN_TYPE, type);
	add_message(batch, msg);
}

/* ---- expressions: all work on register 1 ----------------------------------------------------- */

struct expression {
	struct nlattr *element, *data;
};

static struct expression begin_expression(struct nl_msg *msg, const char *name)
{
	struct expression e = {.element = nla_nest_start(msg, NFTA_LIST_ELEM | NLA_F_NESTED)};

	netlink_put_str(msg, NFTA_EXPR_NAME, name);
	e.data = nla_nest_start(msg, NFTA_EXPR_DATA | NLA_F_NESTED);
	return e;
}

static void end_expression(struct nl_msg *msg, struct expression e)
{
	(void)nla_nest_end(msg, e.data);
	(void)nla_nest_end(msg, e.element);
}

static void put_value(struct nl_msg *msg, int type, const void *value, size_t len)
{
	struct nlattr *nest = nla_nest_start(msg, type | NLA_F_NESTED);

	netlink_put(msg, NFTA_DATA_VALUE, value, len);
	(void)nla_nest_end(msg, nest);
}

/* "meta" and "ct": load a key into the register, or set it from there. */
static void load_register(struct nl_msg *msg, const char *name, int key_type, uint32_t key,
			  int dreg_type)
{
	struct expression e = begin_expression(msg, name);

	put_be32(msg, key_type, key);
	put_be32(msg, dreg_type, NFT_REG_1);
	end_expression(msg, e);
}

static void load_meta(struct nl_msg *msg, uint32_t key)
{
	load_register(msg, "meta", NFTA_META_KEY, key, NFTA_META_DREG);
}

static void load_ct(struct nl_msg *msg, uint32_t key)
{
	load_register(msg, "ct", NFTA_CT_KEY, key, NFTA_CT_DREG);
}

static void set_meta_mark(struct nl_msg *msg)
{
	load_register(msg, "meta", NFTA_META_KEY, NFT_META_MARK, NFTA_META_SREG);
}

static void compare_register(struct nl_msg *msg, uint32_t op, const void *value, size_t len)
{
	struct expression e = begin_expression(msg, "cmp");

	put_be32(msg, NFTA_CMP_SREG, NFT_REG_1);
	put_be32(msg, NFTA_CMP_OP, op);
	put_value(msg, NFTA_CMP_DATA, value, len);
	end_expression(msg, e);
}

static void mask_register(struct nl_msg *msg, uint32_t bits)
{
	struct expression e = begin_expression(msg, "bitwise");
	uint32_t zero = 0;

	put_be32(msg, NFTA_BITWISE_SREG, NFT_REG_1);
	put_be32(msg, NFTA_BITWISE_DREG, NFT_REG_1);
	put_be32(msg, NFTA_BITWISE_LEN, sizeof(bits));
	put_value(msg, NFTA_BITWISE_MASK, &bits, sizeof(bits));
	put_value(msg, NFTA_BITWISE_XOR, &zero, sizeof(zero));
	end_expression(msg, e);
}

static void load_immediate(struct nl_msg *msg, uint32_t value)
{
	struct expression e = begin_expression(msg, "immediate");

	put_be32(msg, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	put_value(msg, NFTA_IMMEDIATE_DATA, &value, sizeof(value));
	end_expression(msg, e);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static struct nl_msg *begin_rule(const char *chain, struct nlattr **ret_list)
{
	struct nl_msg *msg = nft_request(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);

	netlink_put_str(msg, NFTA_RULE_TABLE, TABLE);
	netlink_put_str(msg, NFTA_RULE_CHAIN, chain);
	*ret_list = nla_nest_start(msg, NFTA_RULE_EXPRESSIONS | NLA_F_NESTED);
	return msg;
}

static void end_rule(struct batch *batch, struct nl_msg *msg, struct nlattr *list)
{
	(void)nla_nest_end(msg, list);
	add_message(batch, msg);
}

static void add_rules(struct batch *batch, const char *dev)
{
	char name[IFNAMSIZ] = {0};
	uint32_t zero = 0, mark = MARK;
	struct nlattr *list;
	struct nl_msg *msg = begin_rule("prerouting", &list);

	memcpy(name, dev, strnlen(dev, sizeof(name) - 1));
	load_meta(msg, NFT_META_IIFNAME);
	compare_register(msg, NFT_CMP_EQ, name, sizeof(name));
	load_ct(msg, NFT_CT_STATE);
	mask_register(msg, NF_CT_STATE_BIT(IP_CT_NEW));
	compare_register(msg, NFT_CMP_NEQ, &zero, sizeof(zero));
	load_immediate(msg, MARK);
	set_meta_mark(msg);
	end_rule(batch, msg, list);

	msg = begin_rule("prerouting", &list);
	load_meta(msg, NFT_META_MARK);
	compare_register(msg, NFT_CMP_EQ, &mark, sizeof(mark));
	load_register(msg, "ct", NFTA_CT_KEY, NFT_CT_MARK, NFTA_CT_SREG);
	end_rule(batch, msg, list);

	/* Of other connections marks are others' (WireGuard, TPROXY): SO_MARK stays. */
	msg = begin_rule("output", &list);
	load_ct(msg, NFT_CT_MARK);
	compare_register(msg, NFT_CMP_EQ, &mark, sizeof(mark));
	set_meta_mark(msg);
	end_rule(batch, msg, list);
}

/* ---- the transaction ------------------------------------------------------------------------- */

static int commit_batch(struct netns *ns, struct batch *batch, struct err *err)
{
	struct err problem = {0};
	int code, fd;

	add_edge(batch, NFNL_MSG_BATCH_END);
	code = netns_open_socket(ns, NETLINK_NETFILTER, &problem);
	if (code == 0)
		code = netlink_commit(netns_netlink(ns), NETLINK_NETFILTER, batch->messages,
				      batch->n, &problem);
	/*
	 * The last close of a socket that changed rules waits until the kernel has freed what they
	 * replaced, a grace period of RCU: 10 ms and more (nft_rcv_nl_event() in
	 * net/netfilter/nf_tables_api.c). A child has the last one, so that no pod waits for that.
	 * Without a child we wait ourselves.
	 */
	fd = netlink_fd(netns_netlink(ns), NETLINK_NETFILTER);
	if (fd > 0 && child_fork(&(struct child_config){.skips_handlers = true}) == 0) {
		/* Locks and lines are not its own. */
		fs_close_between(0, (unsigned int)fd - 1);
		fs_close_between((unsigned int)fd + 1, ~0U);
		_exit(0);
	}
	netlink_close(netns_netlink(ns), NETLINK_NETFILTER);
	for (size_t i = 0; i < batch->n; i++)
		nlmsg_free(batch->messages[i]);
	if (code == 0)
		return 0;
	errno = problem.sys;
	return err_sys(err, "StepRefused",
		       "set packet marks with nf_tables; load nf_tables and nft_ct on the node");
}

/* Made, so that there is something to remove. */
static void begin_without_table(struct batch *batch)
{
	add_edge(batch, NFNL_MSG_BATCH_BEGIN);
	add_table(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	add_table(batch, NFT_MSG_DELTABLE, 0);
}

int marks_set(struct netns *ns, const char *dev, struct err *err)
{
	struct batch batch = {0};

	begin_without_table(&batch);
	add_table(&batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	add_chain(&batch, "prerouting", "filter", NF_INET_PRE_ROUTING);
	add_chain(&batch, "output", "route", NF_INET_LOCAL_OUT);
	add_rules(&batch, dev);
	return commit_batch(ns, &batch, err);
}

int marks_clear(struct netns *ns, struct err *err)
{
	struct batch batch = {0};

	begin_without_table(&batch);
	return commit_batch(ns, &batch, err);
}
