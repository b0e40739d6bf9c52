// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of the host that RDMA in pods suffers from, for NodeState.status.hostFindings: facts
 * asked of a worker (nodeagent/host/inspect.h) with looks at the host, judged here
 * (nodeagent/model/host_checks.h).
 *
 * A finding counts when two readings in a row have it, and is gone with the first that has not.
 * What an agent before us listed counts from the start.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/process/client.h"

enum {
	/* Between readings, and between the first and the second of something new. */
	HOST_CHECKER_FRESH_MS = 600000,
	HOST_CHECKER_CONFIRM_MS = 30000,
};

struct host_checker;

/* changed: host_checker_findings() is another; from the loop. */
struct host_checker *host_checker_new(struct hostd *hostd, void (*changed)(void *arg), void *arg);
/* After hostd_free(), which drops the answer that is out. Accepts NULL. */
void host_checker_free(struct host_checker *checker);

/* status.hostFindings of the NodeState, borrowed; NULL: none. Counts until something was read. */
void host_checker_heard(struct host_checker *checker, const json_t *shown);
/* A look, after host_checker_heard(); borrowed. */
void host_checker_looked(struct host_checker *checker, const json_t *observed);

/* An array; NULL: nothing was read yet. Borrowed until the loop turns. */
const json_t *host_checker_findings(const struct host_checker *checker);
