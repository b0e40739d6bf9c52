// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses of IP pools, asked of the agent: of one NIC, or of all NICs of a pod in one request, so
 * that a pod with many waits once. In a worker: blocks.
 *
 * Requests to the agent: {"kind": "addresses", "wish": {…} (spiderpool.h), "version"} for a CNI
 * result, or with {"wishes": [wish], "versions": {interface: version}} for {"results": {interface:
 * result}}. All get what they need, or none: then, and for an interface that is not among the
 * results, each asks alone, and its error is its own.
 */
#pragma once

#include "nodeagent/cni/worker/attachment.h"

/*
 * What plugins of these delegates (nodeagent/cni/plan/delegates.h) will ask for, for
 * attachment_shared; new. NULL: fewer than two do. Left out: what only a plugin before it in its
 * network makes known, and what cannot be read.
 */
json_t *pod_addresses_wishes(const struct attachment *attachment, const json_t *delegates);

/*
 * The CNI result of the attachment's interface, in its network's version; new. NULL with err: of
 * spiderpool_wish(), which was not asked for then, and the agent's; *ret_asked says which.
 */
json_t *pod_addresses_ask(struct attachment *attachment, bool *ret_asked, struct err *err);
