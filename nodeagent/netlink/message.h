// SPDX-License-Identifier: Apache-2.0
/*
 * Netlink messages: requests, built with libnl, and a bounds-checked walk over answers as bytes.
 *
 * Pure: recorded answers and broken ones can be tried without a kernel. Only this folder includes
 * libnl's headers; users get nla_*() and nlmsg_*() from here.
 */
#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/own.h"
#include "lib/base/str.h"

OWN_DEFINE(struct nl_msg, nlmsg_free)
#define auto_nl_msg auto_call(nlmsg_free_p)

/*
 * A message with a header structure of its family; attributes follow. Ends the process when out of
 * memory.
 */
struct nl_msg *netlink_request(uint16_t type, uint16_t flags, const void *header,
			       size_t header_len);
/*
 * Attributes; our messages are far smaller than a page, which libnl reserves, so none of these can
 * fail.
 */
void netlink_put(struct nl_msg *msg, int type, const void *data, size_t len);
void netlink_put_u8(struct nl_msg *msg, int type, uint8_t value);
void netlink_put_u16(struct nl_msg *msg, int type, uint16_t value);
void netlink_put_u32(struct nl_msg *msg, int type, uint32_t value);
void netlink_put_str(struct nl_msg *msg, int type, const char *value);

/* Append a message, padded to NLMSG_ALIGN. */
void netlink_add(struct strbuf *bytes, const struct nlmsghdr *message);

/*
 * The next whole message in the answer: `size_t at = 0; while ((m = netlink_next(bytes, len, &at)))
 * …`. Stops at the first bytes that are not a message.
 */
const struct nlmsghdr *netlink_next(const void *bytes, size_t len, size_t *at);

/*
 * Attributes of a message behind `header_len` bytes, or of a nested attribute, into table[0 … max];
 * type flags masked, unknown types dropped, a repeated type: the last. False when the message is
 * shorter than its header.
 */
bool netlink_parse(const struct nlmsghdr *message, size_t header_len, struct nlattr **table,
		   int max);
void netlink_parse_nested(const struct nlattr *nest, struct nlattr **table, int max);

/* Values of attributes; false when absent or of another size. */
bool netlink_u8(const struct nlattr *attr, uint8_t *ret);
bool netlink_u16(const struct nlattr *attr, uint16_t *ret);
bool netlink_u32(const struct nlattr *attr, uint32_t *ret);
bool netlink_u64(const struct nlattr *attr, uint64_t *ret);
/* Text up to a NUL or the attribute's end, cut to size. */
bool netlink_str(const struct nlattr *attr, char *ret, size_t size);

/* How many messages netlink_next finds in the bytes. */
size_t netlink_count(const void *bytes, size_t len);
