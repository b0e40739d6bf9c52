// SPDX-License-Identifier: Apache-2.0
/*
 * Which plugins of a pod's networks may run side by side. Pure.
 *
 * Names are given before the first one runs (delegates.h), so networks depend on each other in
 * three ways only: the cluster's network comes first and alone; a plugin that is not known to look
 * at its own interface alone (bond, vlan in the pod, anything foreign) sees what the networks
 * before it have made, and none after it; and what a pod has one of, tables, priorities of rules
 * and the effective default route, is given out in the order of the annotation.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * May the next plugin of delegate i (delegates.h) be called on ADD? done[k] is how many plugins of
 * delegate k have ended well. True again for a plugin that runs: whoever calls knows which do.
 * False for a delegate that is complete.
 */
bool plugin_order_may_add(const json_t *delegates, const size_t *done, size_t i);

/*
 * May delegate i be taken down by DEL? there[k] is whether delegate k still has plugins to be
 * called, or one that runs. The order of ADD backwards: a bond goes before the networks it is made
 * of, the cluster's network is the last.
 */
bool plugin_order_may_delete(const json_t *delegates, const bool *there, size_t i);

/*
 * Before DEL: steps (nodeagent/cni/plan/steps.h), new, that remove the pod's interfaces at once
 * which the DELs of our plugins would remove one by one; for each the kernel would wait until no
 * processor uses it any more. Networks with a plugin that has no record, or has more to do with its
 * interface than to remove it, are left out; so are all where one needs others' interfaces. No
 * steps for fewer than two.
 * records: of the sandbox (nodeagent/cni/state/sandboxes.h); look: links of the pod (look.h);
 * group: a number that no link of the pod has for its group.
 */
json_t *plugin_order_unlink(const json_t *delegates, const json_t *records, const json_t *look,
			    uint32_t group);
