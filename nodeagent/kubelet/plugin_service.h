// SPDX-License-Identifier: Apache-2.0
/*
 * The DevicePlugin service of one resource: what the kubelet calls. Everything is answered from
 * memory, at once; GetPreferredAllocation, where the node has GPUs and there is a choice, when the
 * agent has said which GPUs count (gpu_questions.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/kubelet/gpu_questions.h"

struct plugin_service;

/* From the loop; none comes after plugin_service_close. */
struct plugin_service_ops {
	void (*watched)(void *arg); /* a ListAndWatch has begun */
	/* The last one has been ended by the peer. */
	void (*unwatched)(void *arg, int64_t lasted_ms);
	void (*allocated)(void *arg); /* Allocate is about to be answered well */
	void (*complain)(void *arg, const struct err *err);
};

struct plugin_service_config {
	const char *path; /* of the socket */
	const char *resource;
	const char *devinfo_dir; /* or NULL */
	const struct plugin_service_ops *ops;
	void *arg;
	struct gpu_questions *questions; /* NULL: no agent is asked */
	struct metrics *metrics;
};

/* Listen; strings are borrowed as long as it lives. NULL with err as grpc_server_new. */
struct plugin_service *
plugin_service_new(struct loop *loop, const struct plugin_service_config *config, struct err *err);
/* Sockets are removed, streams end; done(arg) from a later turn, also for NULL. */
void plugin_service_close(struct plugin_service *service, struct loop *loop,
			  void (*done)(void *arg), void *arg);

/* Listen again if the socket has vanished; connections go on. */
int plugin_service_keep_socket(struct plugin_service *service, struct err *err);
/*
 * What is offered from now on (plugin_offer.h), borrowed; NULL: nothing. push: streams get it, if
 * devices changed.
 */
void plugin_service_offer(struct plugin_service *service, const json_t *offer, bool push);

bool plugin_service_is_watched(const struct plugin_service *service);
/* End all ListAndWatch; `unwatched` is not called. */
void plugin_service_end_streams(struct plugin_service *service);
