// SPDX-License-Identifier: Apache-2.0
/*
 * One List at a time, each on a connection of its own: they are rare, and a kubelet that was
 * restarted is met like any other.
 */
#include "nodeagent/kubelet/pod_resources.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/grpc/client.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/endpoint.h"
#include "nodeagent/kubelet/pod_resources_read.h"

/* As Multus allows it: a node full of pods with hundreds of devices each. */
#define ANSWER_MAX (16 * 1024 * 1024)
#define TIMEOUT_MS 10000
static const char *const paths[] = {
	"/v1.PodResourcesLister/List",
	/* The only one up to 1.19, and what some distributions of 1.20 serve. */
	"/v1alpha1.PodResourcesLister/List",
};

/* What pod_resources_check() has asked for. */
enum check {
	CHECK_NONE,
	CHECK_WANTED,
	CHECK_ASKED, /* by the call under way */
};

struct pod_resources {
	struct loop *loop;
	struct pod_resources_config config; /* socket is ours */
	struct timer *next;
	struct grpc_client *client; /* a call is under way */
	enum check check;
	size_t version; /* in paths */
	bool is_again;  /* at once, in the other version */
	bool is_given;  /* since the last question */
	bool is_told;   /* something was, an answer or that there is none */
	int64_t began_ms;
	int64_t given_ms, given_first_ms; /* the last Allocate, and the first since a question */
	json_t *answer;                   /* of this call, while it is under way */
	json_t *named;     /* the last answer as it came; NULL: none, or it cannot be had now */
	json_t *allocated; /* what was reported last; NULL: nothing, or that it cannot be had */
	json_t *lost;      /* {resource: {id: since when it is not named any more}}, of allocated */
	char *complained;  /* text that was reported last */
};

/* How long the kubelet is to be left in peace. */
static int64_t quiet_left(const struct pod_resources *resources)
{
	int64_t until = resources->given_ms + POD_RESOURCES_QUIET_MS;
	int64_t latest = resources->given_first_ms + POD_RESOURCES_QUIET_MAX_MS;
	int64_t left = (until < latest ? until : latest) - clock_ms();

	return resources->is_given && left > 0 ? left : 0;
}

static void schedule(struct pod_resources *resources)
{
	int64_t every = resources->config.every_ms, quiet = quiet_left(resources);

	if ((!resources->is_told || resources->check != CHECK_NONE ||
	     json_object_size(resources->lost) > 0) &&
	    every > POD_RESOURCES_SOON_MS)
		every = POD_RESOURCES_SOON_MS;
	if (resources->is_again || resources->is_given || resources->check == CHECK_WANTED)
		every = 0;
	timer_start(resources->next, every < quiet ? quiet : every);
}

static void tell(struct pod_resources *resources, const struct err *err)
{
	resources->is_told = true;
	resources->config.changed(resources->config.arg, resources->allocated, err);
}

static void succeeded(struct pod_resources *resources)
{
	json_t *answer = take_ptr(resources->answer);
	json_t *lost;
	json_t *devices;
	json_t *who;
	int64_t now;
	const char *resource;
	const char *id;

	mem_free(take_ptr(resources->complained));
	json_replace(&resources->named, json_deep_copy(answer));
	/* Put back what is not named any more, for a while. */
	lost = json_object();
	now = clock_ms();
	json_each (resources->allocated, resource, devices)
		json_each (devices, id, who) {
			const json_t *before = json_at(resources->lost, resource, id);
			int64_t since = before ? json_integer_value(before) : now;

			if (json_at(answer, resource, id) ||
			    now - since >= resources->config.lose_ms)
				continue;
			json_object_set(json_need_object(answer, resource), id, who);
			json_put_int(json_need_object(lost, resource), id, since);
		}
	json_replace(&resources->lost, lost);
	if (resources->allocated && json_same(resources->allocated, answer)) {
		json_decref(answer);
		return;
	}
	json_replace(&resources->allocated, answer);
	tell(resources, NULL);
}

/*
 * What we know stays true while the kubelet cannot be asked: it gives nothing away meanwhile. Only
 * a kubelet that says that it has no such service makes us forget it.
 */
static void failed(struct pod_resources *resources, const struct err *err, bool is_unserved)
{
	bool is_news = !str_eq(resources->complained, err->text);
	bool is_early = clock_ms() - resources->began_ms < resources->config.wait_ms;

	/* Counts again once it answers again. */
	json_decref(take_ptr(resources->lost));
	json_decref(take_ptr(resources->named));
	str_replace(&resources->complained, str_dup(err->text));
	if (!is_unserved && (resources->allocated || (!resources->is_told && is_early))) {
		if (is_news)
			log_warn(resources->allocated ? "cannot ask the kubelet which pods have "
							"devices, keeping its last answer"
						      : "cannot ask the kubelet which pods have "
							"devices yet, asking again",
				 F_ERR(err));
		return;
	}
	if (!is_news && resources->is_told)
		return;
	json_decref(take_ptr(resources->allocated));
	tell(resources, err);
}

/* Without a kubelet nothing is allocated meanwhile. */
static bool may_answer(const struct pod_resources *resources)
{
	const struct pod_resources_config *config = &resources->config;
	auto_close int fd = -1;

	if (!resources->allocated && resources->is_told)
		return false;
	if (!config->connect)
		return endpoint_has_listener(config->socket);
	fd = config->connect(config->arg);
	/* Another errno is doubt: a full backlog, a supervisor that is busy. */
	return fd >= 0 || (errno != ECONNREFUSED && errno != ENOENT);
}

/* The question that was under way has its answer, or is put again. */
static void end_check(struct pod_resources *resources, bool is_answered)
{
	if (resources->check != CHECK_ASKED)
		return;
	resources->check = CHECK_WANTED;
	if (!is_answered && may_answer(resources))
		return;
	resources->check = CHECK_NONE;
	if (resources->config.checked)
		resources->config.checked(resources->config.arg);
}

static void on_list(void *arg, const struct ProtobufCMessage *message)
{
	struct pod_resources *resources = arg;

	json_replace(&resources->answer, pod_resources_read((const void *)message));
}

static void on_done(void *arg, const struct grpc_status *status)
{
	struct pod_resources *resources = arg;
	struct err err = {0};

	grpc_client_free(take_ptr(resources->client));
	if (status->code == GRPC_OK) {
		succeeded(resources);
		end_check(resources, true);
	} else if (status->code == GRPC_UNIMPLEMENTED &&
		   resources->version + 1 < ARRAY_LEN(paths)) {
		resources->version++;
		resources->is_again = true;
		resources->check =
			resources->check == CHECK_ASKED ? CHECK_WANTED : resources->check;
	} else {
		resources->version = 0;
		(void)err_set(
			&err, ERR_TRANSIENT, "PodResourcesUnavailable",
			"the kubelet does not say which pods have devices, so VFs that exist are "
			"left alone: %s (%s)",
			status->text, grpc_code_name(status->code));
		failed(resources, &err, status->code == GRPC_UNIMPLEMENTED);
		end_check(resources, false);
	}
	schedule(resources);
}

static int ask(struct pod_resources *resources, struct err *err)
{
	PodResources__ListPodResourcesRequest request =
		POD_RESOURCES__LIST_POD_RESOURCES_REQUEST__INIT;

	resources->client = grpc_client_new(resources->loop,
					    &(struct grpc_client_config){
						    .path = resources->config.socket,
						    .connect = resources->config.connect,
						    .connect_arg = resources->config.arg,
						    .message_max = ANSWER_MAX,
					    },
					    err);
	if (!resources->client)
		return -1;
	if (grpc_client_call(
		    resources->client,
		    &(struct grpc_request){
			    .path = paths[resources->version],
			    .message = &request.base,
			    .response = &pod_resources__list_pod_resources_response__descriptor,
			    .timeout_ms = TIMEOUT_MS,
			    .message_fn = on_list,
			    .done = on_done,
			    .arg = resources,
		    },
		    err))
		return 0;
	grpc_client_free(take_ptr(resources->client));
	return -1;
}

static void on_next(void *arg)
{
	struct pod_resources *resources = arg;
	struct err err = {0}, cause = {0};

	resources->is_given = resources->is_again = false;
	if (resources->check == CHECK_WANTED)
		resources->check = CHECK_ASKED;
	if (ask(resources, &cause) == 0)
		return;
	(void)err_set(&err, ERR_TRANSIENT, "PodResourcesUnavailable",
		      "the kubelet does not say which pods have devices, so VFs that exist are "
		      "left alone: %s; is --kubelet-dir the folder of the kubelet? On a node "
		      "without kubelet set --no-kubelet",
		      cause.text);
	failed(resources, &err, false);
	end_check(resources, false);
	schedule(resources);
}

struct pod_resources *pod_resources_new(struct loop *loop,
					const struct pod_resources_config *config)
{
	struct pod_resources *resources = mem_new(struct pod_resources);

	resources->loop = loop;
	resources->config = *config;
	resources->config.socket = str_dup(config->socket);
	if (resources->config.every_ms == 0)
		resources->config.every_ms = POD_RESOURCES_EVERY_MS;
	if (resources->config.wait_ms == 0)
		resources->config.wait_ms = POD_RESOURCES_WAIT_MS;
	if (resources->config.lose_ms == 0)
		resources->config.lose_ms = POD_RESOURCES_LOSE_MS;
	resources->began_ms = clock_ms();
	resources->next = timer_new(loop, on_next, resources);
	timer_start(resources->next, 0);
	return resources;
}

void pod_resources_free(struct pod_resources *resources)
{
	if (!resources)
		return;
	grpc_client_free(resources->client);
	timer_free(resources->next);
	json_decref(resources->answer);
	json_decref(resources->named);
	json_decref(resources->allocated);
	json_decref(resources->lost);
	mem_free(resources->complained);
	mem_free((char *)resources->config.socket);
	mem_free(resources);
}

void pod_resources_check(struct pod_resources *resources)
{
	resources->check = CHECK_WANTED;
	if (!resources->client)
		timer_start(resources->next, quiet_left(resources));
}

void pod_resources_given(struct pod_resources *resources)
{
	resources->given_ms = clock_ms();
	if (!resources->is_given)
		resources->given_first_ms = resources->given_ms;
	resources->is_given = true;
	if (!resources->client)
		schedule(resources);
}

const json_t *pod_resources_named(const struct pod_resources *resources)
{
	return resources->named;
}
