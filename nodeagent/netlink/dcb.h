// SPDX-License-Identifier: Apache-2.0
/*
 * Data center bridging of an interface by rtnetlink: IEEE 802.1Qaz ETS, PFC and priorities of
 * DSCPs, and receive buffers. Layouts: linux/dcbnl.h; behaviour: net/dcb/dcbnl.c. Decoding is pure.
 */
#pragma once

#include <linux/dcbnl.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/netlink/netlink.h"

enum { DCB_DSCPS = 64 };

struct dcb {
	/* What the driver does not answer is not there. */
	bool has_ets, has_pfc, has_buffers;
	bool is_by_firmware; /* DCB_CAP_DCBX_LLD_MANAGED: an agent for LLDP on the NIC sets it */
	struct ieee_ets ets;
	struct ieee_pfc pfc;
	struct dcbnl_buffer buffers;
	uint8_t dscps[DCB_DSCPS]; /* the priorities of each, a bit for each; 0: it has none */
};

/*
 * All of an interface. ERR_HOST "NetlinkRefused" with errno as of netlink_ask(); EOPNOTSUPP: its
 * driver, or the kernel, has no DCB.
 */
int dcb_get(struct netlink *netlink, const char *interface, struct dcb *ret, struct err *err);
/* False, and ret empty: there is no such answer in it. */
bool dcb_decode(const void *bytes, size_t len, struct dcb *ret);

/*
 * Set one attribute, DCB_ATTR_IEEE_ETS, DCB_ATTR_IEEE_PFC or DCB_ATTR_DCB_BUFFER. A driver that
 * does not have it takes it without a word: read it back.
 */
int dcb_set(struct netlink *netlink, const char *interface, int attribute, const void *value,
	    size_t size, struct err *err);
/*
 * Add, or remove, all these pairs of DSCP and priority; there may be none. The kernel stops at the
 * first that it refuses.
 */
int dcb_change_dscps(struct netlink *netlink, const char *interface, bool add,
		     const uint8_t dscps[DCB_DSCPS], struct err *err);
/* What the answer to a change says besides its acknowledgement: errno, 0: done. */
int dcb_decode_refusal(const void *bytes, size_t len);
