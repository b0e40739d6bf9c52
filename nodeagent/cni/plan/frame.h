// SPDX-License-Identifier: Apache-2.0
/*
 * ARP (RFC 826, RFC 5227) and neighbour discovery (RFC 4861) as Ethernet frames: written to ask who
 * has an address, read to learn who says so. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nodeagent/cni/plan/addr.h"

#define FRAME_MAX 128

/*
 * Ask for `target`. source: the asker's address, of the same family; family 0: it has none yet.
 * IPv4 asks all, as does the answer then; IPv6 asks the address's multicast group. Return the
 * length.
 */
size_t frame_ask(const uint8_t mac[6], const struct addr *source, const struct addr *target,
		 uint8_t ret[FRAME_MAX]);
/*
 * Tell all that `own` is at mac: an ARP request for itself, or an unsolicited advertisement that
 * overrides.
 */
size_t frame_announce(const uint8_t mac[6], const struct addr *own, uint8_t ret[FRAME_MAX]);

/* What a frame says. */
struct frame_claim {
	bool has; /* someone has `address`; else someone asks for it, having none yet */
	struct addr address;
	uint8_t mac[6];
};

/* False for frames that claim nothing. */
bool frame_read(const uint8_t *bytes, size_t len, struct frame_claim *ret);
