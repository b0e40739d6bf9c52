// SPDX-License-Identifier: Apache-2.0
/*
 * A list of questions, each with its time. plugin_service.c puts them, kubeletd_server.c carries
 * them to the agent and its replies back.
 */
#include "nodeagent/kubelet/gpu_questions.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"

struct gpu_question {
	struct gpu_questions *questions;
	struct gpu_question *next;
	int64_t id;
	struct timer *late;
	gpu_question_done_fn *done;
	void *arg;
};

struct gpu_questions {
	struct loop *loop;
	bool (*send)(void *arg, const json_t *request);
	void *arg;
	struct gpu_question *first;
	int64_t last_id;
};

void gpu_question_cancel(struct gpu_question *question)
{
	struct gpu_question **place = &question->questions->first;

	while (*place != question)
		place = &(*place)->next;
	*place = question->next;
	timer_free(question->late);
	mem_free(question);
}

static void finish(struct gpu_question *question, const json_t *near)
{
	gpu_question_done_fn *done = question->done;
	void *arg = question->arg;

	gpu_question_cancel(question);
	done(arg, near);
}

static void on_late(void *arg)
{
	finish(arg, NULL);
}

struct gpu_question *gpu_question_new(struct gpu_questions *questions, const char *resource,
				      gpu_question_done_fn *done, void *arg)
{
	json_auto_t *request = ask_new(++questions->last_id, "gpus");
	struct gpu_question *question;

	assert(resource && done);
	json_put_str(request, "resource", resource);
	if (!questions->send(questions->arg, request))
		return NULL;
	question = mem_new(struct gpu_question);
	question->questions = questions;
	question->id = questions->last_id;
	question->done = done;
	question->arg = arg;
	question->late = timer_new(questions->loop, on_late, question);
	timer_start(question->late, GPU_QUESTION_MS);
	question->next = questions->first;
	questions->first = question;
	return question;
}

void gpu_questions_reply(struct gpu_questions *questions, const json_t *reply)
{
	int64_t id = json_integer_value(json_at(reply, "id"));
	struct gpu_question *question = questions->first;
	struct err err = {0}, bad = {0};
	const json_t *near = NULL;

	while (question && question->id != id)
		question = question->next;
	if (!question)
		return;
	if (ask_reply_read(reply, &near, &err, &bad) < 0)
		near = NULL;
	finish(question, near);
}

void gpu_questions_forget(struct gpu_questions *questions)
{
	while (questions->first)
		finish(questions->first, NULL);
}

struct gpu_questions *gpu_questions_new(struct loop *loop,
					bool (*send)(void *arg, const json_t *request), void *arg)
{
	struct gpu_questions *questions = mem_new(struct gpu_questions);

	assert(loop && send);
	questions->loop = loop;
	questions->send = send;
	questions->arg = arg;
	return questions;
}

void gpu_questions_free(struct gpu_questions *questions)
{
	assert(!questions->first);
	mem_free(questions);
}
