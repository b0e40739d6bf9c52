// SPDX-License-Identifier: Apache-2.0
/*
 * Judges what an API server has stored about addresses, revision by revision, in the order of the
 * revisions. It trusts no status and no code of the operator: it compares ledgers, SpiderEndpoints,
 * pods and what nodes really had.
 *
 * A pod is living from its creation until it is deleted or its phase is Failed or Succeeded; while
 * it is being deleted only what its sandbox has counts. What is told, each once:
 *
 *	"twice"		an address is of two living pods: by a ledger, by a SpiderEndpoint that no
 *			tenant wrote, or by the sandbox on the node
 *	"early"		an address was recorded for a pod while a sandbox of an ended pod had it;
 *			pods of a StatefulSet may take over those of their name
 *	"taken"		the record, or the item of the endpoint, of a living pod was removed, and
 *			not by a user; of a pod that is being deleted only once its sandbox has it
 *	"forbidden"	an address was recorded that is outside of spec.ips, excluded, the gateway,
 *			the subnet's first or last one, or reserved, by the pool as it was at that
 *			revision. Reservations count once the leader has written their status and
 *			read the pool after that.
 *	"lost"		when all is quiet: a living pod lacks an address that it asked for
 *	"leaked"	when all is quiet: a record or endpoint of a pod that has ended
 *
 * Not told, but counted: records that users have removed ("wiped"), whose pods may end before they
 * are made again; addresses that they have removed from all that the API has of a pod
 * ("forgotten"), or from the pool beside its record ("abandoned"); and pods of tenants who forge
 * their own endpoints ("forged").
 *
 * Conventions of the test (chaos.c): a user who forges an endpoint changes its annotation
 * HISTORY_FORGED; who wipes a ledger does not correct allocatedIPCount; pods say in HISTORY_NICS
 * which NICs ask for addresses. ConfigMaps "sandbox-UID" have in "addresses", by blanks, what the
 * pod's interfaces have on its node.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

#define HISTORY_FORGED "orbweaver.test/forged"
#define HISTORY_NICS   "orbweaver.test/nics"

/* The collections that are read, by their plural; NULL ends the list. */
extern const char *const history_kinds[];

struct history;

struct history *history_new(void);
/* Accepts NULL. */
void history_free(struct history *history);
OWN_DEFINE(struct history, history_free)
#define auto_history auto_call(history_free_p)

/*
 * The next event of a watch, {"type", "object"}, of this collection. Errors, all ERR_INVALID:
 * "Gap" when the watch could not go on where it was, "BadOrder" when its revision is not higher
 * than the one before.
 */
int history_add(struct history *history, const char *kind, const json_t *event, struct err *err);

/*
 * Nothing changes any more: judge what is "lost" and "leaked" now. is_empty: no pod is left either,
 * and no StatefulSet keeps addresses.
 */
void history_settle(struct history *history, bool is_empty);

/* Sentences that begin with a reason from above and a colon. Borrowed. */
const json_t *history_violations(const struct history *history);

/*
 * How many there were: "revisions", "pods", "records" that were made, and what is not told.
 * Borrowed.
 */
const json_t *history_counts(const struct history *history);
