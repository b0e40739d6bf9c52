// SPDX-License-Identifier: Apache-2.0
/*
 * The nodes of a large ledger's records, apart from them: SpiderIPPool.status.allocatedNodes,
 *
 *	"1f0c22ab gpu-1,gpu-2 6a…"
 *
 * a checksum of the text in status.allocatedIPs, names of nodes, "-" for an empty one, and for each
 * record, in the order of that text, the number of its node; 0 is none. All numbers have as many
 * bits as the largest needs, the most significant first; six bits are one character. 65,535 nodes
 * have numbers; a cluster has 5,000 at most. Spiderpool's programs write allocatedIPs and know
 * nothing of this; then the checksum does not fit, and no record has a node, as if they had written
 * all.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Bytes that so many records with so many nodes take, without the names themselves. */
size_t ledger_nodes_bytes(size_t records, size_t nodes);

/*
 * records: { address: { "node" } }, whose members other than "node" are, sorted by address, `text`.
 * Returns new; free().
 */
char *ledger_nodes_write(const json_t *records, const char *text);

/*
 * Set "node" in records as they were read from `text`, in that order. Nothing is set where `nodes`
 * is NULL or not about this text.
 */
void ledger_nodes_read(const char *nodes, const char *text, json_t *records);
