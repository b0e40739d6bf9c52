// SPDX-License-Identifier: Apache-2.0
/*
 * devlink of the tree: health reporters, eswitch modes, settings of the firmware and resets. From
 * the doors (host_tree.c).
 */
#include <errno.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "nodeagent/netlink/message.h"

#define DEVLINK_FAMILY 0x1c

static struct nl_msg *devlink_message(const struct pf *pf, uint8_t command)
{
	struct genlmsghdr header = {.cmd = command, .version = 1};
	struct nl_msg *msg = netlink_request(DEVLINK_FAMILY, 0, &header, sizeof(header));

	netlink_put_str(msg, DEVLINK_ATTR_BUS_NAME, "pci");
	netlink_put_str(msg, DEVLINK_ATTR_DEV_NAME, pf->is.address);
	return msg;
}

static void add_reporters(const struct pf *pf, struct strbuf *answer)
{
	const char *names[] = {"fw", pf->broken};

	for (size_t i = 0; i < ARRAY_LEN(names) && names[i]; i++) {
		struct nl_msg *msg = devlink_message(pf, DEVLINK_CMD_HEALTH_REPORTER_GET);
		struct nlattr *nest = nla_nest_start(msg, DEVLINK_ATTR_HEALTH_REPORTER);

		netlink_put_str(msg, DEVLINK_ATTR_HEALTH_REPORTER_NAME, names[i]);
		netlink_put_u8(msg, DEVLINK_ATTR_HEALTH_REPORTER_STATE, (uint8_t)i);
		netlink_put(msg, DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, &(uint64_t){i},
			    sizeof(uint64_t));
		nla_nest_end(msg, nest);
		tree_add_message(answer, msg);
	}
}

void host_tree_break(struct host_tree *tree, const char *address, const char *reporter)
{
	tree_pf_by(tree, address)->broken = reporter;
}

void host_tree_offer_firmware(struct host_tree *tree, const char *address,
			      const struct tree_firmware *firmware)
{
	tree_pf_by(tree, address)->firmware = *firmware;
}

int host_tree_resets(const struct host_tree *tree)
{
	return tree->counts.resets;
}

static int setting_request(struct host_tree *tree, struct pf *pf, bool set, struct nlattr **attrs,
			   struct strbuf *answer)
{
	char name[32] = "";
	bool is_switch;

	(void)netlink_str(attrs[DEVLINK_ATTR_PARAM_NAME], name, sizeof(name));
	is_switch = strcmp(name, "enable_sriov") == 0;
	if (is_switch ? !pf->firmware.has_switch
		      : strcmp(name, "total_vfs") != 0 || !pf->firmware.has_count)
		return -EINVAL;
	if (!set) {
		struct nl_msg *msg = devlink_message(pf, DEVLINK_CMD_PARAM_GET);
		struct nlattr *param = nla_nest_start(msg, DEVLINK_ATTR_PARAM), *list, *value;

		netlink_put_str(msg, DEVLINK_ATTR_PARAM_NAME, name);
		netlink_put_u8(msg, DEVLINK_ATTR_PARAM_TYPE, is_switch ? 6 : 3);
		list = nla_nest_start(msg, DEVLINK_ATTR_PARAM_VALUES_LIST);
		value = nla_nest_start(msg, DEVLINK_ATTR_PARAM_VALUE);
		if (!is_switch)
			netlink_put_u32(msg, DEVLINK_ATTR_PARAM_VALUE_DATA, pf->firmware.count);
		else if (pf->firmware.is_on)
			netlink_put(msg, DEVLINK_ATTR_PARAM_VALUE_DATA, NULL, 0);
		netlink_put_u8(msg, DEVLINK_ATTR_PARAM_VALUE_CMODE, DEVLINK_PARAM_CMODE_PERMANENT);
		nla_nest_end(msg, value);
		nla_nest_end(msg, list);
		nla_nest_end(msg, param);
		tree_add_message(answer, msg);
		return 0;
	}
	if (tree_fails_now(tree))
		return -EIO;
	if (is_switch)
		pf->firmware.is_on = attrs[DEVLINK_ATTR_PARAM_VALUE_DATA] != NULL;
	else
		(void)netlink_u32(attrs[DEVLINK_ATTR_PARAM_VALUE_DATA], &pf->firmware.count);
	return 0;
}

static int reset_card(struct host_tree *tree, struct pf *pf)
{
	auto_free char *path = NULL, *text = NULL;

	if (!pf->firmware.can_reset)
		return -EOPNOTSUPP;
	if (tree_fails_now(tree))
		return -EIO;
	tree->counts.resets++;
	if (pf->firmware.needs_scan)
		return 0;
	path = str_printf("sys/bus/pci/devices/%s/sriov_totalvfs", pf->is.address);
	text = str_printf("%u\n", pf->firmware.count);
	host_tree_file(tree, path, text);
	return 0;
}

/* Whether its driver answers a question about the switch, or sets its mode. */
static int eswitch_code(const struct pf *pf, bool set)
{
	switch (pf->is.eswitch) {
	case TREE_ESWITCH_ANY:
		return 0;
	case TREE_ESWITCH_WITHOUT_VFS:
		return set && pf->count ? -EOPNOTSUPP : 0;
	case TREE_ESWITCH_WITH_VFS:
		return pf->count ? 0 : -EOPNOTSUPP;
	case TREE_ESWITCH_ELSEWHERE:
		return -EPERM;
	case TREE_ESWITCH_NONE:
		return -EOPNOTSUPP;
	}
	return 0;
}

static int devlink_request(struct host_tree *tree, const struct nlmsghdr *request,
			   struct strbuf *answer)
{
	const struct genlmsghdr *header = nlmsg_data(request);
	struct nlattr *attrs[DEVLINK_ATTR_MAX + 1];
	char address[24] = "";
	struct nl_msg *msg;
	struct pf *pf;
	int code;

	(void)netlink_parse(request, GENL_HDRLEN, attrs, DEVLINK_ATTR_MAX);
	if (header->cmd == DEVLINK_CMD_GET) {
		for (size_t i = 0; i < tree->n_pfs; i++)
			if (tree->pfs[i]->is.has_devlink && tree_is_bound(tree->pfs[i]))
				tree_add_message(answer,
						 devlink_message(tree->pfs[i], DEVLINK_CMD_GET));
		return 0;
	}
	if (header->cmd == DEVLINK_CMD_HEALTH_REPORTER_GET) {
		for (size_t i = 0; i < tree->n_pfs; i++)
			if (tree->pfs[i]->is.has_devlink && tree_is_bound(tree->pfs[i]))
				add_reporters(tree->pfs[i], answer);
		return 0;
	}
	(void)netlink_str(attrs[DEVLINK_ATTR_DEV_NAME], address, sizeof(address));
	pf = tree_pf_by(tree, address);
	if (!pf || !pf->is.has_devlink || !tree_is_bound(pf))
		return -ENODEV;
	if (header->cmd == DEVLINK_CMD_ESWITCH_SET) {
		if (tree_fails_now(tree))
			return -EIO;
		code = eswitch_code(pf, true);
		if (code < 0)
			return code;
		(void)netlink_u16(attrs[DEVLINK_ATTR_ESWITCH_MODE], &pf->eswitch);
		return 0;
	}
	if (header->cmd == DEVLINK_CMD_PARAM_GET || header->cmd == DEVLINK_CMD_PARAM_SET)
		return setting_request(tree, pf, header->cmd == DEVLINK_CMD_PARAM_SET, attrs,
				       answer);
	if (header->cmd == DEVLINK_CMD_RELOAD)
		return reset_card(tree, pf);
	code = eswitch_code(pf, false);
	if (code < 0)
		return code;
	msg = devlink_message(pf, DEVLINK_CMD_ESWITCH_GET);
	netlink_put_u16(msg, DEVLINK_ATTR_ESWITCH_MODE, pf->eswitch);
	tree_add_message(answer, msg);
	return 0;
}

int tree_generic_request(struct host_tree *tree, const struct nlmsghdr *request,
			 struct strbuf *answer)
{
	struct genlmsghdr header = {.cmd = CTRL_CMD_NEWFAMILY};
	struct nlattr *attrs[CTRL_ATTR_MAX + 1];
	char name[16] = "";
	struct nl_msg *msg;

	if (request->nlmsg_type == DEVLINK_FAMILY)
		return devlink_request(tree, request, answer);
	if (request->nlmsg_type == TREE_ETHTOOL_FAMILY)
		return tree_ethtool_request(tree, request, answer);
	(void)netlink_parse(request, GENL_HDRLEN, attrs, CTRL_ATTR_MAX);
	(void)netlink_str(attrs[CTRL_ATTR_FAMILY_NAME], name, sizeof(name));
	msg = netlink_request(GENL_ID_CTRL, 0, &header, sizeof(header));
	netlink_put_u16(msg, CTRL_ATTR_FAMILY_ID,
			str_eq(name, "ethtool") ? TREE_ETHTOOL_FAMILY : DEVLINK_FAMILY);
	tree_add_message(answer, msg);
	return 0;
}
