/*
 * One List at a time, each on a connection of its own: they are rare, and a kubelet that was restarted is met like any other.
 */
#include "nodeagent/kubelet/pod_resources.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/grpc/client.h"
#include "lib/json/json.h"
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
	int64_t asked_ms;
	json_t *answer;    /* of this call, while it is under way */
	json_t *allocated; /* what was told last; NULL: nothing, or that it cannot be had */
	char *complained;  /* text that was told last */
};

static void schedule(struct pod_resources *resources)
{
	int64_t since = clock_ms() - resources->asked_ms;

	if (!resources->is_wanted)
		timer_start(resources->next, resources->config.every_ms);
	else
		timer_start(resources->next, since < GAP_MS ? GAP_MS - since : 0);
}

static void succeeded(struct pod_resources *resources)
{
	json_t *answer = take_ptr(resources->answer);

	mem_free(take_ptr(resources->complained));
	if (resources->allocated && json_same(resources->allocated, answer)) {
		json_decref(answer);
		return;
	}
	json_decref(resources->allocated);
	resources->allocated = answer;
	resources->config.changed(resources->config.arg, answer, NULL);
}

/*
 * What we know stays true while the kubelet cannot be asked: it gives nothing away meanwhile. Only a kubelet that says that it
 * has no such service makes us forget it.
 */
static void failed(struct pod_resources *resources, const struct err *err, bool is_unserved)
{
	if (str_eq(resources->complained, err->text))
		return;
	mem_free(resources->complained);
	resources->complained = str_dup(err->text);
	if (resources->allocated && !is_unserved) {
		log_warn("which pods have devices is not known anew", F_ERR(err));
		return;
	}
	json_decref(take_ptr(resources->allocated));
	resources->config.changed(resources->config.arg, NULL, err);
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
