// SPDX-License-Identifier: Apache-2.0
/*
 * Questions of kubeletd to the agent: which GPUs will the pod have for which the kubelet asks right
 * now? A pod waits for each answer, so there is one within GPU_QUESTION_MS, if only that nothing is
 * known.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/loop/loop.h"

enum {
	/* The agent asks the kubelet, and for some pods the API server: tens of milliseconds. */
	GPU_QUESTION_MS = 500,
};

struct gpu_questions;
struct gpu_question;

/* send: pass {"id", "kind": "gpus", "resource"}, borrowed, to the agent; false: none is there. */
struct gpu_questions *gpu_questions_new(struct loop *loop,
					bool (*send)(void *arg, const json_t *request), void *arg);
/* When no question is left. */
void gpu_questions_free(struct gpu_questions *questions);

/* near: of affinity_near() (devices/affinity.h), borrowed; NULL: nothing is known. */
typedef void gpu_question_done_fn(void *arg, const json_t *near);

/* done comes once, from the loop. NULL: no agent is there, and done does not come. */
struct gpu_question *gpu_question_new(struct gpu_questions *questions, const char *resource,
				      gpu_question_done_fn *done, void *arg);
/* Before done. It does not come any more. */
void gpu_question_cancel(struct gpu_question *question);

/* The agent's reply (lib/json/ask.h). One to no question is passed over: it came too late. */
void gpu_questions_reply(struct gpu_questions *questions, const json_t *reply);
/* The agent is gone: nothing is known. */
void gpu_questions_forget(struct gpu_questions *questions);
