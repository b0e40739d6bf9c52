// SPDX-License-Identifier: Apache-2.0
/*
 * Each function begins calls to the API server and turns the loop until they are answered, or until
 * a signal stops it. A command in a pod is an annotation that is written and a log that is read
 * again and again, so nothing needs to reach the pod itself.
 */
#include "cli/test_pods.h"

#include <signal.h>
#include <stdio.h>

#include "cli/pathtest/pods.h"
#include "cli/pathtest/tasks.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"

enum {
	POLL_MS = 500,
	/* A pod may be stuck because a device is still being released. */
	STUCK_MS = 20000,
	REMOVE_MS = 10000,
};

/* ---- waiting --------------------------------------------------------------------------------- */

static int interrupted(struct err *err)
{
	return err_set(err, ERR_TRANSIENT, "Interrupted", "interrupted");
}

static void on_signal(void *arg)
{
	struct test_pods *t = arg;

	t->interrupted = true;
	loop_stop(t->session.loop);
}

struct answer {
	struct loop *loop;
	bool is_there;
	json_t *object;
	struct err err;
};

static void on_object(void *arg, json_t *object, const struct err *err)
{
	struct answer *answer = arg;

	answer->is_there = true;
	if (err)
		answer->err = *err;
	else
		answer->object = json_incref(object);
	loop_stop(answer->loop);
}

/* The object that is answered, new; NULL with err. */
static json_t *await(struct test_pods *t, struct kube_call *call, struct answer *answer,
		     struct err *err)
{
	while (!answer->is_there && !t->interrupted)
		loop_run(t->session.loop);
	if (!answer->is_there) {
		kube_call_cancel(call);
		(void)interrupted(err);
	} else if (!answer->object) {
		*err = answer->err;
	}
	return answer->object;
}

static void on_paused(void *arg)
{
	loop_stop(arg);
}

static void pause_ms(struct test_pods *t, int64_t ms)
{
	struct timer *timer = timer_new(t->session.loop, on_paused, t->session.loop);

	timer_start(timer, ms);
	while (timer_is_active(timer) && !t->interrupted)
		loop_run(t->session.loop);
	timer_free(timer);
}

/* ---- life ------------------------------------------------------------------------------------ */

int test_pods_open(struct test_pods *t, const struct cli *cli, const json_t *networks,
		   const json_t *nodes, struct err *err)
{
	static const int signums[] = {SIGINT, SIGTERM, SIGHUP};
	unsigned int id = (unsigned int)clock_jitter(1u << 24);
	json_t *node;
	size_t i;

	*t = (struct test_pods){.ns = cli->ns, .networks = networks};
	if (session_open(cli, &t->session, err) < 0)
		return -1;
	for (i = 0; i < ARRAY_LEN(signums); i++)
		t->signals[i] = signal_watch_new(t->session.loop, signums[i], on_signal, t);
	t->n = json_array_size(nodes);
	t->pods = mem_calloc(t->n, sizeof(*t->pods));
	json_array_foreach (nodes, i, node)
		t->pods[i] = (struct test_pod){
			.name = str_printf("orbweaver-test-%06x-%zu", id, i),
			.node = json_string_value(node),
		};
	return 0;
}

static void remove_pod(struct test_pods *t, struct test_pod *pod)
{
	const struct kube_write how = {.timeout_ms = REMOVE_MS};
	struct answer answer = {.loop = t->session.loop};
	json_auto_t *gone = NULL;
	struct err err = {0};
	struct kube_call *call;

	if (!pod->asked_for)
		return;
	call = kube_delete(t->session.client, &kube_pods, t->ns, pod->name, NULL, NULL, &how,
			   on_object, &answer);
	gone = await(t, call, &answer, &err);
	if (!gone && !kube_err_is(&err, "NotFound"))
		(void)fprintf(stderr,
			      "orbweaver: pod %s/%s is not removed: %s: kubectl delete pod -n %s "
			      "%s\n",
			      t->ns, pod->name, err.text, t->ns, pod->name);
}

void test_pods_close(struct test_pods *t)
{
	size_t i;

	/* A second interrupt waits for this, too. */
	for (i = 0; i < t->n; i++) {
		t->interrupted = false;
		remove_pod(t, &t->pods[i]);
		json_decref(t->pods[i].object);
		strbuf_done(&t->pods[i].tasks);
		mem_free(t->pods[i].name);
	}
	mem_free(t->pods);
	for (i = 0; i < ARRAY_LEN(t->signals); i++)
		signal_watch_free(t->signals[i]);
	session_close(&t->session);
}

/* ---- start ----------------------------------------------------------------------------------- */

static int create(struct test_pods *t, struct test_pod *pod, const char *image, struct err *err)
{
	json_auto_t *object = pathtest_pod(&(struct pathtest_pod){
		.name = pod->name,
		.ns = t->ns,
		.node = pod->node,
		.image = image,
		.networks = t->networks,
	});
	const struct kube_write how = {0};
	struct answer answer = {.loop = t->session.loop};
	struct kube_call *call;

	pod->asked_for = true;
	call = kube_create(t->session.client, &kube_pods, object, &how, on_object, &answer);
	pod->object = await(t, call, &answer, err);
	return pod->object ? 0 : err_in(err, "create pod %s/%s", t->ns, pod->name);
}

/* Look again; what the API server cannot say just now leaves what was seen last. */
static int look(struct test_pods *t, struct test_pod *pod, struct err *err)
{
	struct answer answer = {.loop = t->session.loop};
	struct kube_call *call =
		kube_get(t->session.client, &kube_pods, t->ns, pod->name, NULL, on_object, &answer);
	json_t *object = await(t, call, &answer, err);

	if (!object)
		return err_in(err, "get pod %s/%s", t->ns, pod->name);
	json_replace(&pod->object, object);
	return 0;
}

static int say_why(const struct test_pods *t, const struct test_pod *pod, struct err *err)
{
	return err_in(err, "pod %s/%s for node %s", t->ns, pod->name, pod->node);
}

static int wait_for(struct test_pods *t, struct test_pod *pod, int64_t until_ms, struct err *err)
{
	int64_t stuck_ms = 0;

	for (;;) {
		enum pod_state state = pathtest_pod_state(pod->object, t->networks, err);
		int64_t now = clock_ms();

		if (state == POD_READY)
			return 0;
		stuck_ms = state != POD_STUCK ? 0 : stuck_ms ? stuck_ms : now;
		if (state == POD_FAILED || (stuck_ms && now - stuck_ms >= STUCK_MS))
			return say_why(t, pod, err);
		if (now >= until_ms) {
			auto_free char *query =
				str_printf("fieldSelector=involvedObject.name%%3D%s", pod->name);
			struct answer answer = {.loop = t->session.loop};
			struct kube_call *call = kube_list(t->session.client, &kube_events, t->ns,
							   query, on_object, &answer);
			struct err none = {0};
			json_auto_t *events = await(t, call, &answer, &none);
			const char *complaint = pathtest_complaint(events);
			auto_free char *before = str_dup(err->text);

			/* What events say on top; nothing for users that may not read them. */
			if (complaint)
				(void)err_set(err, err->class, "PodFailed", "%s: %s", before,
					      complaint);
			return say_why(t, pod, err);
		}
		pause_ms(t, POLL_MS);
		if (t->interrupted)
			return interrupted(err);
		if (look(t, pod, err) < 0)
			return -1;
	}
}

int test_pods_start(struct test_pods *t, const char *image, int64_t timeout_ms, struct err *err)
{
	int64_t until_ms = clock_ms() + timeout_ms;

	for (size_t i = 0; i < t->n; i++)
		if (create(t, &t->pods[i], image, err) < 0)
			return -1;
	for (size_t i = 0; i < t->n; i++) {
		(void)fprintf(stderr, "orbweaver: waiting for pod %s/%s on node %s\n", t->ns,
			      t->pods[i].name, t->pods[i].node);
		if (wait_for(t, &t->pods[i], until_ms, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

void test_command_add(struct test_command *command, struct test_pods *t, struct test_pod *pod,
		      const char *script, const char *const *words, int64_t timeout_ms)
{
	*command = (struct test_command){
		.pods = t, .pod = pod, .number = ++t->tasks, .until_ms = clock_ms() + timeout_ms};
	task_add(&pod->tasks, command->number, script, words);
}

void test_commands_start(struct test_pods *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct kube_write how = {0};
		struct test_pod *pod = &t->pods[i];
		struct answer answer = {.loop = t->session.loop};
		json_auto_t *patch = json_object(), *object = NULL;

		if (pod->tasks.len == 0)
			continue;
		pod->tasks_err = (struct err){0};
		json_put_str(json_need_object(json_need_object(patch, "metadata"), "annotations"),
			     TASK_ANNOTATION, strbuf_str(&pod->tasks));
		strbuf_done(&pod->tasks);
		object = await(t,
			       kube_patch(t->session.client, &kube_pods, t->ns, pod->name,
					  KUBE_PATCH_MERGE, patch, &how, on_object, &answer),
			       &answer, &pod->tasks_err);
	}
}

struct log_answer {
	struct loop *loop;
	bool is_there;
	struct strbuf text;
	struct err err;
};

static void on_log(void *arg, const struct kube_response *response, const struct err *err)
{
	struct log_answer *answer = arg;

	answer->is_there = true;
	if (err)
		answer->err = *err;
	else
		strbuf_add(&answer->text, response->body, response->body_len);
	loop_stop(answer->loop);
}

int test_command_look(struct test_command *command, struct err *err)
{
	struct test_pods *t = command->pods;
	auto_free char *path = kube_path(&kube_pods, t->ns, command->pod->name, "log",
					 "container=" PATHTEST_CONTAINER);
	struct log_answer answer = {.loop = t->session.loop};
	struct kube_call *call = kube_call(t->session.client, &(struct kube_request){
								      .verb = "get",
								      .method = "GET",
								      .path = path,
								      .once = true,
								      .done = on_log,
								      .arg = &answer,
							      });
	struct task_report report = {0};

	while (!answer.is_there && !t->interrupted)
		loop_run(t->session.loop);
	if (!answer.is_there) {
		kube_call_cancel(call);
		return interrupted(err);
	}
	if (answer.err.class != ERR_NONE) {
		if (err)
			*err = answer.err;
		return -1;
	}
	task_read(strbuf_str(&answer.text), command->number, &report);
	strbuf_done(&answer.text);
	mem_free(command->output);
	command->output = report.output;
	command->has_begun = report.has_begun;
	command->has_ended = report.has_ended;
	command->exit_code = report.exit_code;
	return 0;
}

static int wait_until(struct test_command *command, const bool *is_so, const char *what,
		      struct err *err)
{
	struct test_pods *t = command->pods;

	if (command->pod->tasks_err.class != ERR_NONE) {
		*err = command->pod->tasks_err;
		return -1;
	}
	for (;;) {
		bool has_failed = test_command_look(command, err) < 0;

		/* Kubelets are away when they restart, and late where the machine is busy. */
		if (has_failed && (t->interrupted || err->class == ERR_INVALID))
			return -1;
		if (!has_failed && (*is_so || command->has_ended))
			return 0;
		if (clock_ms() >= command->until_ms)
			return has_failed ? err_in(err, "did not end in time, and its log")
					  : err_set(err, ERR_TRANSIENT, "PodFailed",
						    "did not end in time: its log does not say %s",
						    what);
		pause_ms(t, POLL_MS);
		if (t->interrupted)
			return interrupted(err);
	}
}

int test_command_wait_begin(struct test_command *command, struct err *err)
{
	return wait_until(command, &command->has_begun, "that the command began", err);
}

int test_command_wait(struct test_command *command, struct err *err)
{
	return wait_until(command, &command->has_ended, "how the command ended", err);
}

void test_command_done(struct test_command *command)
{
	mem_free(command->output);
	*command = (struct test_command){0};
}
