// SPDX-License-Identifier: Apache-2.0
/*
 * GUIDs of InfiniBand VFs: from a pool's range to the GUID of one VF, without a ledger.
 *
 * A GUID is "block octet, MAC address of the PF, number of the VF". MAC addresses are unique, so no
 * two VFs of a fabric get the same one however many nodes there are, a VF keeps its GUID across
 * reinstallations, and a GUID shows where it comes from. The block octet is what a pool chooses. It
 * marks the GUID as locally administered and unicast (IEEE EUI-64: two lowest bits 10), so no GUID
 * meets that of a device. The pool of ib-kubernetes, 02:00:00:00:00:00:00:00 to
 * 02:FF:FF:FF:FF:FF:FF:FF, is block 02.
 *
 * Source: the kernel's drivers/infiniband/hw/mlx5/ib_virt.c; github.com/Mellanox/ib-kubernetes,
 * pkg/guid.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "reconcilers/core/problems.h"

/* No block: GUIDs are left to the agent. */
#define GUID_BLOCK_NONE 0

/* VFs of one PF that have GUIDs: the last octet. */
#define GUID_VFS_MAX 256

#define GUID_TEXT_SIZE 24

/*
 * "02:00:…": eight octets of two hex digits, most significant first. False for anything else, NULL
 * included.
 */
bool guid_parse(const char *text, uint64_t *ret);

/* As guid_parse reads it, in lower case. */
void guid_text(uint64_t guid, char ret[GUID_TEXT_SIZE]);

/*
 * The block that {"rangeStart", "rangeEnd"} holds; the lowest when there are several. A range
 * without a whole block, and anything else that is wrong, is added to `problems` (may be NULL);
 * false then. NULL and JSON null: GUID_BLOCK_NONE, true.
 */
bool guid_pool_block(const json_t *guid_pool, int *ret, struct problems *problems);

/*
 * The GUID of a PF's VF 0; that of VF n is n more, n < GUID_VFS_MAX. `mac` is the PF's address as
 * status.interfaces has it: a MAC address of 6 octets, or an IPoIB address of 20, whose last 8 are
 * a GUID that was made from a MAC address (03:00 or ff:fe in the middle). False for anything else
 * and for an address of zeros.
 */
bool guid_first_of_pf(int block, const char *mac, uint64_t *ret);
