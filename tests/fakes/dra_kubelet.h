// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of a kubelet that know drivers of claims, on the test's own loop: the plugin watcher,
 * which finds sockets in plugins_registry and asks who they are, and the calls that have claims
 * prepared.
 *
 * Debian has no kubelet that knows dynamic resource allocation (its one is of 1.20). This one is
 * played from the definitions of the API (k8s.io/kubelet, pkg/apis/pluginregistration/v1 and
 * pkg/apis/dra/v1) and of what is done with them (pkg/kubelet/pluginmanager, pkg/kubelet/cm/dra).
 */
#pragma once

#include <jansson.h>

#include "lib/loop/loop.h"

struct dra_kubelet;

/* dir: its plugins_registry. It looks there when it is asked to. */
struct dra_kubelet *dra_kubelet_new(struct loop *loop, const char *dir);
/* As when it is killed: connections end. */
void dra_kubelet_free(struct dra_kubelet *kubelet);

/*
 * Register every driver whose socket is there and answers; returns how many. A socket whose name
 * begins with a dot is passed over, as by the plugin watcher. Turns the loop.
 */
size_t dra_kubelet_look(struct dra_kubelet *kubelet);
/* Tell the driver that it was refused, with these words. Turns the loop. */
void dra_kubelet_refuse(struct dra_kubelet *kubelet, const char *error);

/* What the last one said of itself: {"type", "name", "endpoint", "versions": […]}; borrowed. */
const json_t *dra_kubelet_info(const struct dra_kubelet *kubelet);

/*
 * Have claims, [{"namespace", "name", "uid"}], prepared or unprepared by the driver that was
 * registered last, by that version of the API ("v1", "v1beta1"). New: {UID: {"devices":
 * [{"request", "pool", "device", "cdi": […]}]} or {"error": text} or {}}; a string when the call
 * itself failed. Turns the loop until then.
 */
json_t *dra_kubelet_prepare(struct dra_kubelet *kubelet, const char *version, const json_t *claims);
json_t *dra_kubelet_unprepare(struct dra_kubelet *kubelet, const char *version,
			      const json_t *claims);

/*
 * Watch the health of the driver's devices by that version of pkg/apis/dra-health ("v1",
 * "v1alpha1"), in place of what was watched before.
 */
void dra_kubelet_watch(struct dra_kubelet *kubelet, const char *version);
/*
 * The list that came last, borrowed: [{"pool", "device", "health": 0 (unknown), 1 (healthy) or 2,
 * "message"}]; NULL: none yet. *ret_lists: how many have come.
 */
const json_t *dra_kubelet_health(const struct dra_kubelet *kubelet, size_t *ret_lists);
