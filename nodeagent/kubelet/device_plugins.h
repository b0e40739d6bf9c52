// SPDX-License-Identifier: Apache-2.0
/*
 * Device plugins for all resources of the node: one gRPC server and one registration each, kept up
 * by itself.
 *
 * Given what is to be offered (pools.h), it reports it to the kubelet, and keeps it so: registers
 * again on a new kubelet socket, an ended stream, an error; listens again when its sockets vanish;
 * never restarts to change a list. At a rolling update the successor's sockets have other names: it
 * registers while we still serve, and the kubelet changes over without a moment of 0.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/kubelet/gpu_questions.h"

struct device_plugins;

struct device_plugins_config {
	const char *dir; /* "/var/lib/kubelet/device-plugins"; kubelet.sock is in it */
	/*
	 * Where device-info files go: "/var/run/k8s.cni.cncf.io/devinfo/dp"; NULL: none are
	 * written.
	 */
	const char *devinfo_dir;
	/* Something in device_plugins_status() changed. From the loop. Callbacks may be NULL. */
	void (*changed)(void *arg);
	/* Emit an event: reason and message as for a condition. */
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	/* A pod was given devices: for pod_resources_given(). */
	void (*allocated)(void *arg);
	/*
	 * The directory was removed under us, as when a kubelet is installed again: with a root of
	 * our own (nodeagent/process/sandbox.h) we cannot see the one in its place. Once.
	 */
	void (*removed)(void *arg);
	void *arg;
	struct gpu_questions *questions; /* NULL: no agent is asked */
	struct metrics *metrics;         /* may be NULL */
};

struct device_plugins *device_plugins_new(struct loop *loop,
					  const struct device_plugins_config *config);
/*
 * Sockets are removed; done(arg) from a later turn. What pods have stays theirs. Accepts NULL (done
 * is not called).
 */
void device_plugins_close(struct device_plugins *plugins, void (*done)(void *arg), void *arg);

/*
 * What is to be offered from now on: the document of pools_compute(), borrowed. Equal to the last:
 * nothing happens.
 */
void device_plugins_set(struct device_plugins *plugins, const json_t *pools);

/*
 * New: [{"name", "kind", "wanted", "registered": bool, "offered": n, "healthy": n, "cause": "…"}],
 * sorted by name. `cause` when not registered or fewer healthy than wanted, absent else.
 */
json_t *device_plugins_status(const struct device_plugins *plugins);

/*
 * The kubelet has every resource, from us or from a successor. What changes this changes the
 * status, too.
 */
bool device_plugins_are_served(const struct device_plugins *plugins);
