// SPDX-License-Identifier: Apache-2.0
/*
 * Reads what the cluster says to the coordinator plugin (settings.h), once for a sandbox.
 *
 * They may be read before a coordinator asks, so that it hardly waits for the API server. All NICs
 * of a sandbox that ask within SETTINGS_FRESH_MS share one reading; nothing is watched.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/kube/client.h"
#include "lib/loop/loop.h"
#include "nodeagent/pod_networks/addresses.h"

enum {
	/* This long a reading serves its sandbox. */
	SETTINGS_FRESH_MS = 5000,
	/* This long after a coordinator has asked those of other sandboxes will. */
	SETTINGS_IN_USE_MS = 3600000,
};

struct settings_reader;

/* All borrowed. */
struct settings_reader_config {
	struct loop *loop;
	struct kube_client *client;
	const struct addresses *addresses; /* knows where the ConfigMap spiderpool-conf is */
};

struct settings_reader *settings_reader_new(const struct settings_reader_config *config);
/* Questions end without a callback. Before the client. Accepts NULL. */
void settings_reader_free(struct settings_reader *reader);

/*
 * Exactly one is set, borrowed. err: those of settings_of() and of ipam_settings_read(), and those
 * of lib/kube/client.h when the API server does not answer.
 */
typedef void settings_done_fn(void *arg, const json_t *settings, const struct err *err);

struct settings_question;

/*
 * Ask for a sandbox of the pod {"namespace", "name"}, which is borrowed. done comes once; where the
 * settings are at hand, before this returns, and the result is NULL.
 */
struct settings_question *settings_ask(struct settings_reader *reader, const char *container,
				       const json_t *pod, settings_done_fn *done, void *arg);
/* No callback comes. NULL is fine. */
void settings_cancel(struct settings_question *question);

/* A coordinator of the sandbox will ask: its settings are read meanwhile. */
void settings_foresee(struct settings_reader *reader, const char *container, const json_t *pod);
/* Has a coordinator asked within SETTINGS_IN_USE_MS? */
bool settings_are_in_use(const struct settings_reader *reader);
