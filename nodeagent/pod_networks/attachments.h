// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side of the process that serves CNI plugins (nodeagent/cni/server/cni_server.h):
 * answers what only the API server knows, says what happened to pods in events, and knows what is
 * attached to which pod.
 *
 * Objects are read when a pod needs them, or is about to. Nothing is watched: a node with ten
 * thousand others would else watch every pod's network.
 */
#pragma once

#include <jansson.h>

#include "lib/base/metrics.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"
#include "lib/loop/loop.h"
#include "nodeagent/cni/plan/profile.h"
#include "nodeagent/pod_networks/addresses.h"

enum {
	/* A line that is lost, or cannot be had, is asked for again. */
	ATTACHMENTS_CONNECT_MS = 1000,
	/* The server waits SERVER_AGENT_MS for an answer. */
	ATTACHMENTS_ANSWER_MS = 9500,
};

struct attachments;

/* All borrowed. */
struct attachments_config {
	struct loop *loop;
	struct kube_client *client;
	struct addresses *addresses;
	struct recorder *recorder;
	int (*connect)(void *arg); /* a line to the server, or -1 */
	/* attachments_list() or attachments_networks() is another; from the loop */
	void (*changed)(void *arg);
	/*
	 * Have the kubelet asked who has which device: attachments_devices() with the answer. NULL:
	 * it is unknown.
	 */
	void (*look_at_devices)(void *arg);
	/* Of topology_compose() (nodeagent/model), new; NULL: nothing is known of the host. */
	json_t *(*topology)(void *arg);
	void *arg;
	struct metrics *metrics; /* the server's are shown with them; may be NULL */
};

struct attachments *attachments_new(const struct attachments_config *config);
/* Before addresses, recorder and client. Accepts NULL. */
void attachments_free(struct attachments *attachments);

/* As networks_devices() (nodeagent/pod_networks/networks.h). */
void attachments_devices(struct attachments *attachments, const json_t *named,
			 const json_t *served);

/*
 * What is attached on this node (attachment_index_describe() of nodeagent/cni/state), borrowed
 * until the loop turns; NULL: the server has not said yet.
 */
const json_t *attachments_list(const struct attachments *attachments);

/*
 * The profile of this node, for the server, now and whenever its process restarts. Until the first
 * call nothing of CNI is installed or taken away.
 */
void attachments_set_profile(struct attachments *attachments, enum profile profile);

/*
 * What became of it, for the condition PodNetworks (struct profile_decision); NULL: not said yet.
 * Borrowed until the loop turns.
 */
const json_t *attachments_networks(const struct attachments *attachments);

/*
 * Is something of the pod with this UID attached, or asked about right now? Also true while the
 * server has not said what there is: its files may know more.
 */
bool attachments_hold(const struct attachments *attachments, const char *uid);
