// SPDX-License-Identifier: Apache-2.0
/*
 * The process that serves the kubelet. It has the device plugins, and nothing else: whatever
 * happens to the agent, the kubelet's streams stay open and Allocate is answered from what the last
 * agent said.
 *
 * With an agent it speaks over a channel, one agent at a time:
 *
 *	to the agent:	{"greeting": {"pools": {…}, "prepared": {…}}} first; the pools are null
 *			before any agent has named some
 *			{"state": {"of": 3, "status": […], "served": true, "metrics": "…",
 *			"prepared": {…}}}
 *			{"event": {"warning": true, "reason": "…", "message": "…"}}
 *			{"allocated": true}		a pod was given devices
 *			{"id": uid, "kind": "claim", "namespace", "name", "uid"}	a request
 *			(lib/json/ask.h): what is it? (kubelet/dra_driver.h)
 *			{"id": 7, "kind": "gpus", "resource"}	a request: which GPUs will the pod
 *			have to which the kubelet gives devices of it right now? The reply is of
 *			affinity_near() (devices/affinity.h), or {}
 *	to the server:	{"pools": {…}, "number": 3, "claims": {"pools": {…}, "boot": "…"}} what is
 *			to be offered from now on, by device plugins (pools.h) and to claims
 *			(devices/dra_choice.h); "claims" is absent where there is no driver
 *			the reply to a request
 *
 * `of` is the number of the last pools that are in the state. `metrics` is text as Prometheus reads
 * it. `prepared` is what claims have (model/dra_state.h); null: unknown; absent without a
 * driver.
 */
#pragma once

#include "lib/loop/loop.h"
#include "nodeagent/model/dra_state.h"

struct allocation_epoch;
struct kubeletd_server;

/* As in kubelet/dra_driver.h; state_dir is where the host has DRA_STATE_FOLDER. */
struct dra_folders {
	const char *registry_dir, *cdi_dir, *state_dir;
};

struct kubeletd_server_config {
	struct loop *loop;
	const char *plugins_dir; /* device_plugins.h */
	const char *devinfo_dir; /* or NULL */
	/* Of a driver of claims (kubelet/dra_driver.h); NULL: there is none. */
	const struct dra_folders *dra;
	/* Host paths that pods may get besides (devices/pools_paths.h), or NULL. */
	const char *device_paths;
	struct allocation_epoch
		*giving; /* process/allocation_epoch.h: notes each Allocate; may be NULL */
	/* There is something to offer, for the first time. */
	void (*offering)(void *arg);
	/* A folder was removed; nothing can be served any more (device_plugins.h). */
	void (*removed)(void *arg);
	void *arg;
};

struct kubeletd_server *kubeletd_server_new(const struct kubeletd_server_config *config);
/*
 * An agent is there, behind this connected stream socket, which is the server's from now on; the
 * one before is left.
 */
void kubeletd_server_attach(struct kubeletd_server *server, int fd);
/* Sockets are removed; done(arg) from a later turn. */
void kubeletd_server_close(struct kubeletd_server *server, void (*done)(void *arg), void *arg);
