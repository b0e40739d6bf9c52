/*
 * One List at a time, each on a connection of its own: they are rare, and a kubelet that was restarted is met like any other.
 */
#include "nodeagent/kubelet/pod_resources.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/grpc/client.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/endpoint.h"
#include "nodeagent/kubelet/pod_resources_read.h"

/* As Multus allows it: a node full of pods with hundreds of devices each. */
#define ANSWER_MAX (16 * 1024 * 1024)
#define TIMEOUT_MS 10000
/* Between two questions, however often a refresh is wanted. Kubelets since 1.28 limit callers. */
#define GAP_MS 250

static const char *const paths[] = {
	"/v1.PodResourcesLister/List",
	/* The only one up to 1.19, and what some distributions of 1.20 serve. */
	"/v1alpha1.PodResourcesLister/List",
};

struct pod_resources {
	struct loop *loop;
	struct pod_resources_config config; /* socket is ours */
	struct timer *next;
	struct grpc_client *client; /* a call is under way */
	size_t version;             /* in paths */
	bool is_wanted;             /* again, after this one */
	bool is_told;               /* something was, an answer or that there is none */
	int64_t asked_ms, began_ms;
	json_t *answer;    /* of this call, while it is under way */
	json_t *allocated; /* what was told last; NULL: nothing, or that it cannot be had */
	json_t *lost;      /* {resource: {id: since when it is not named any more}}, of allocated */
	char *complained;  /* text that was told last */
};

static void schedule(struct pod_resources *resources)
{
	int64_t since = clock_ms() - resources->asked_ms, every = resources->config.every_ms;

	if ((!resources->is_told || json_object_size(resources->lost) > 0) &&
	    every > POD_RESOURCES_SOON_MS)
		every = POD_RESOURCES_SOON_MS;
	if (!resources->is_wanted)
		timer_start(resources->next, every);
	else
		timer_start(resources->next, since < GAP_MS ? GAP_MS - since : 0);
}

static void tell(struct pod_resources *resources, const struct err *err)
{
	resources->is_told = true;
	resources->config.changed(resources->config.arg, resources->allocated, err);
}

/* Put back what is not named any more, for a while. */
static void keep_lost(struct pod_resources *resources, json_t *answer)
{
	json_t *lost = json_object(), *devices, *who;
	int64_t now = clock_ms();
	const char *resource, *id;

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
	json_decref(resources->lost);
	resources->lost = lost;
}

static void succeeded(struct pod_resources *resources)
{
	json_t *answer = take_ptr(resources->answer);

	mem_free(take_ptr(resources->complained));
	keep_lost(resources, answer);
	if (resources->allocated && json_same(resources->allocated, answer)) {
		json_decref(answer);
		return;
	}
	json_decref(resources->allocated);
	resources->allocated = answer;
	tell(resources, NULL);
}

/* A kubelet makes the folder before it starts the first pod, and it stays. */
static bool was_ever_there(const char *socket)
{
	const char *slash = strrchr(socket, '/');
	auto_free char *dir = str_ndup(socket, slash ? (size_t)(slash - socket) : 0);

	return access(slash ? dir : ".", F_OK) == 0 || errno != ENOENT;
}

/* Until then pods that run may have any device. */
static bool may_still_tell(const struct pod_resources *resources)
{
	const char *socket = resources->config.socket;

	return endpoint_has_listener(socket) ||
	       (was_ever_there(socket) &&
		clock_ms() - resources->began_ms < resources->config.wait_ms);
}

/*
 * What we know stays true while the kubelet cannot be asked: it gives nothing away meanwhile. Only a kubelet that says that it
 * has no such service makes us forget it.
 */
static void failed(struct pod_resources *resources, const struct err *err, bool is_unserved)
{
	bool is_news = !str_eq(resources->complained, err->text);

	/* Counts anew once it answers again. */
	json_decref(take_ptr(resources->lost));
	mem_free(resources->complained);
	resources->complained = str_dup(err->text);
	if (!is_unserved &&
	    (resources->allocated || (!resources->is_told && may_still_tell(resources)))) {
		if (is_news)
			log_warn(resources->allocated
					 ? "which pods have devices is not known anew"
					 : "which pods have devices is not known yet, asking again",
				 F_ERR(err));
		return;
	}
	if (!is_news && resources->is_told)
		return;
	json_decref(take_ptr(resources->allocated));
	tell(resources, err);
}

static void on_list(void *arg, const struct ProtobufCMessage *message)
{
	struct pod_resources *resources = arg;

	json_decref(resources->answer);
	resources->answer = pod_resources_read((const void *)message);
}

static void on_done(void *arg, const struct grpc_status *status)
{
	struct pod_resources *resources = arg;
	struct err err = {0};

	grpc_client_free(take_ptr(resources->client));
	if (status->code == GRPC_OK) {
		succeeded(resources);
	} else if (status->code == GRPC_UNIMPLEMENTED &&
		   resources->version + 1 < ARRAY_LEN(paths)) {
		resources->version++;
		resources->is_wanted = true;
	} else {
		resources->version = 0;
		(void)err_set(&err, ERR_TRANSIENT, "PodResourcesUnavailable",
			      "the kubelet does not say which pods have devices: %s (%s)",
			      status->text, grpc_code_name(status->code));
		failed(resources, &err, status->code == GRPC_UNIMPLEMENTED);
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

	resources->is_wanted = false;
	resources->asked_ms = clock_ms();
	if (ask(resources, &cause) == 0)
		return;
	(void)err_set(&err, ERR_TRANSIENT, "PodResourcesUnavailable",
		      "the kubelet does not say which pods have devices: %s", cause.text);
	failed(resources, &err, false);
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
	json_decref(resources->allocated);
	json_decref(resources->lost);
	mem_free(resources->complained);
	mem_free((char *)resources->config.socket);
	mem_free(resources);
}

void pod_resources_refresh(struct pod_resources *resources)
{
	if (resources->is_wanted)
		return;
	resources->is_wanted = true;
	if (!resources->client)
		schedule(resources);
}
