// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side of the process that serves the kubelet (kubeletd_server.h): what
 * device_plugins.h is within that process.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"

struct kubeletd;

struct kubeletd_config {
	struct loop *loop;
	int fd; /* connected to the server; the client's from now on */
	/*
	 * The server is there. pools, borrowed: what an agent before us had it offer, and it offers
	 * still; NULL: unknown. Before any other callback. All from the loop.
	 */
	void (*ready)(void *arg, const json_t *pools);
	/* As in device_plugins.h. */
	void (*changed)(void *arg);
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	void (*allocated)(void *arg);
	/*
	 * What is this claim, {"namespace", "name", "uid"}, borrowed? kubeletd_answer() is due. May
	 * be NULL where there is no driver of claims.
	 */
	void (*asked)(void *arg, const json_t *claim);
	/*
	 * Which GPUs will the pod have to which the kubelet gives devices of `resource` right now?
	 * kubeletd_answer_gpus() is due, within GPU_QUESTION_MS (kubelet/gpu_questions.h). NULL:
	 * the answer is that nothing is known.
	 */
	void (*asked_gpus)(void *arg, int64_t id, const char *resource);
	/* The server has ended, or does not speak as we do. The last callback. */
	void (*lost)(void *arg, const struct err *err);
	void *arg;
	struct metrics *metrics; /* the server's are shown with them; may be NULL */
};

struct kubeletd *kubeletd_new(const struct kubeletd_config *config);
/* What is offered stays offered. Not from a callback. Accepts NULL. */
void kubeletd_free(struct kubeletd *kubeletd);

/*
 * What is to be offered from now on, by device plugins and to claims ({"pools", "boot"}, NULL
 * where there is no driver of them), borrowed. Equal to the last: nothing happens. Not before
 * `ready`.
 */
void kubeletd_set(struct kubeletd *kubeletd, const json_t *pools, const json_t *claims);

/*
 * The answer to `asked`: `claim` is of dra_claim_read() (devices/dra_claims.h), borrowed, or NULL
 * with why.
 */
void kubeletd_answer(struct kubeletd *kubeletd, const char *uid, const json_t *claim,
		     const struct err *why);

/* The answer to `asked_gpus`: of affinity_near() (devices/affinity.h), borrowed; NULL: unknown. */
void kubeletd_answer_gpus(struct kubeletd *kubeletd, int64_t id, const json_t *near);

/*
 * What claims have, of dra_prepared(), as far as the server has said; borrowed until the next
 * callback. NULL: unknown, or there is no driver of claims.
 */
const json_t *kubeletd_prepared(const struct kubeletd *kubeletd);

/*
 * As device_plugins_status() and device_plugins_are_served(), as far as the server has said. The
 * status is new.
 */
json_t *kubeletd_status(const struct kubeletd *kubeletd);
bool kubeletd_are_served(const struct kubeletd *kubeletd);
/* The server has the pools that were set last, and has sent them to the kubelet if it is there. */
bool kubeletd_has_all(const struct kubeletd *kubeletd);
