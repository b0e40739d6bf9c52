// SPDX-License-Identifier: Apache-2.0
/*
 * The nodes of a large ledger's records, apart from them: SpiderIPPool.status.allocatedNodes,
 *
 *	"1f0c22ab gpu-1,gpu-2 010201…"
 *
 * a checksum of the text in status.allocatedIPs, names of nodes, "-" for an empty one, and for each
 * record, in the order of that text, the number of its node in two digits of base 88; 00 is none.
 * That is enough for 7,743 nodes; a cluster has 5,000 at most. Spiderpool's programs write
 * allocatedIPs and know nothing of this; then the checksum does not fit, and no record has a node,
 * as if they had written all.
 */
#ifndef ORBWEAVER_RECONCILERS_IPAM_LEDGER_NODES_H
#define ORBWEAVER_RECONCILERS_IPAM_LEDGER_NODES_H

#include <jansson.h>
#include <stddef.h>

/* Bytes for each record, and of each name beside the name itself. */
enum { LEDGER_NODES_PER_RECORD = 2, LEDGER_NODES_PER_NAME = 1, LEDGER_NODES_FRAME = 10 };

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

#endif
