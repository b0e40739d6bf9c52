// SPDX-License-Identifier: Apache-2.0
/*
 * Netlink messages. libnl builds them; it is not asked to read them, because its parser stops a
 * whole message for one attribute of another size.
 */
#include "nodeagent/netlink/message.h"

#include <string.h>

#include "lib/base/mem.h"

/* ---- requests -------------------------------------------------------------------------------- */

struct nl_msg *netlink_request(uint16_t type, uint16_t flags, const void *header, size_t header_len)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, flags | NLM_F_REQUEST);

	if (!msg ||
	    (header_len > 0 && nlmsg_append(msg, (void *)header, header_len, NLMSG_ALIGNTO) < 0))
		mem_exhausted();
	return msg;
}

void netlink_put(struct nl_msg *msg, int type, const void *data, size_t len)
{
	if (nla_put(msg, type, (int)len, data) < 0)
		mem_exhausted();
}

void netlink_put_u8(struct nl_msg *msg, int type, uint8_t value)
{
	netlink_put(msg, type, &value, sizeof(value));
}

void netlink_put_u16(struct nl_msg *msg, int type, uint16_t value)
{
	netlink_put(msg, type, &value, sizeof(value));
}

void netlink_put_u32(struct nl_msg *msg, int type, uint32_t value)
{
	netlink_put(msg, type, &value, sizeof(value));
}

void netlink_put_str(struct nl_msg *msg, int type, const char *value)
{
	netlink_put(msg, type, value, strlen(value) + 1);
}

void netlink_add(struct strbuf *bytes, const struct nlmsghdr *message)
{
	strbuf_reserve(bytes, NLMSG_ALIGN(message->nlmsg_len));
	strbuf_add(bytes, message, message->nlmsg_len);
	while (bytes->len % NLMSG_ALIGNTO)
		strbuf_addc(bytes, '\0');
}

/* ---- answers --------------------------------------------------------------------------------- */

const struct nlmsghdr *netlink_next(const void *bytes, size_t len, size_t *at)
{
	const struct nlmsghdr *message;

	if (*at > len || len - *at < sizeof(*message))
		return NULL;
	message = (const void *)((const char *)bytes + *at);
	if (message->nlmsg_len < sizeof(*message) || message->nlmsg_len > len - *at)
		return NULL;
	*at += NLMSG_ALIGN(message->nlmsg_len);
	return message;
}

static void parse_attributes(const struct nlattr *attr, size_t left, struct nlattr **table, int max)
{
	memset(table, 0, sizeof(struct nlattr *) * ((size_t)max + 1));
	while (left >= sizeof(*attr) && attr->nla_len >= sizeof(*attr) && attr->nla_len <= left) {
		size_t step = NLA_ALIGN(attr->nla_len);

		if (nla_type(attr) <= max)
			table[nla_type(attr)] = (struct nlattr *)attr;
		if (step > left)
			break;
		left -= step;
		attr = (const void *)((const char *)attr + step);
	}
}

bool netlink_parse(const struct nlmsghdr *message, size_t header_len, struct nlattr **table,
		   int max)
{
	size_t skip = NLMSG_HDRLEN + NLMSG_ALIGN(header_len);

	memset(table, 0, sizeof(struct nlattr *) * ((size_t)max + 1));
	if (message->nlmsg_len < NLMSG_HDRLEN + header_len)
		return false;
	if (message->nlmsg_len > skip)
		parse_attributes((const void *)((const char *)message + skip),
				 message->nlmsg_len - skip, table, max);
	return true;
}

void netlink_parse_nested(const struct nlattr *nest, struct nlattr **table, int max)
{
	parse_attributes(nla_data(nest), (size_t)nla_len(nest), table, max);
}

static bool value_of(const struct nlattr *attr, void *ret, size_t size)
{
	if (!attr || (size_t)nla_len(attr) != size)
		return false;
	memcpy(ret, nla_data(attr), size);
	return true;
}

bool netlink_u8(const struct nlattr *attr, uint8_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_u16(const struct nlattr *attr, uint16_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_u32(const struct nlattr *attr, uint32_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_u64(const struct nlattr *attr, uint64_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_str(const struct nlattr *attr, char *ret, size_t size)
{
	size_t len;

	if (!attr || nla_len(attr) < 1)
		return false;
	len = strnlen(nla_data(attr), (size_t)nla_len(attr));
	if (len > size - 1)
		len = size - 1;
	memcpy(ret, nla_data(attr), len);
	ret[len] = '\0';
	return len > 0;
}

size_t netlink_count(const void *bytes, size_t len)
{
	size_t at = 0, n = 0;

	while (netlink_next(bytes, len, &at))
		n++;
	return n;
}
