// SPDX-License-Identifier: Apache-2.0
/* Handlers, and the streams that get lists. */
#include "nodeagent/kubelet/plugin_service.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/grpc/message.h"
#include "lib/grpc/server.h"
#include "lib/json/json.h"
#include "nodeagent/devices/allocate.h"
#include "nodeagent/kubelet/devinfo.h"
#include "nodeagent/kubelet/plugin_messages.h"

/* Calls that are under way at the end; all of ours are answered at once. */
#define DRAIN_MS 100
/* IDs in a log line. */
#define LOGGED_IDS 16

struct stream {
	struct plugin_service *service;
	struct stream *next;
	struct grpc_call *call;
	int64_t since_ms;
};

/* GetPreferredAllocation that waits for the agent. */
struct preferring {
	struct plugin_service *service;
	struct grpc_call *call;
	struct gpu_question *question;
	json_t *available; /* ids */
	int32_t size;
};

struct plugin_service {
	struct plugin_service_config config; /* metrics are not kept */
	struct grpc_server *server;
	json_t *offer; /* NULL: nothing */
	DevicePlugin__ListAndWatchResponse *list;
	struct stream *streams;
	struct metric *allocations;
	struct deferred *gone; /* nothing was there to close */
	void (*done)(void *arg);
	void *arg;
};

/* ---- streams --------------------------------------------------------------------------------- */

static void send_list(struct plugin_service *service, struct stream *stream)
{
	struct err err = {0};

	if (grpc_call_send_latest(stream->call, &service->list->base, &err) < 0)
		service->config.ops->complain(service->config.arg, &err);
}

static void stream_free(struct stream *stream)
{
	struct stream **place = &stream->service->streams;

	while (*place != stream)
		place = &(*place)->next;
	*place = stream->next;
	mem_free(stream);
}

static void on_stream_end(void *arg, enum grpc_code why)
{
	struct stream *stream = arg;
	struct plugin_service *service = stream->service;
	int64_t lasted_ms = clock_ms() - stream->since_ms;

	log_debug("ListAndWatch has ended", F_STR("resource", service->config.resource),
		  F_STR("why", grpc_code_name(why)));
	stream_free(stream);
	if (!service->streams)
		service->config.ops->unwatched(service->config.arg, lasted_ms);
}

static void handle_watch(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	struct plugin_service *service = arg;
	struct stream *stream = mem_new(struct stream);

	stream->service = service;
	stream->call = call;
	stream->since_ms = clock_ms();
	stream->next = service->streams;
	service->streams = stream;
	grpc_call_on_end(call, on_stream_end, stream);
	send_list(service, stream);
	service->config.ops->watched(service->config.arg);
}

bool plugin_service_is_watched(const struct plugin_service *service)
{
	return service->streams != NULL;
}

void plugin_service_end_streams(struct plugin_service *service)
{
	while (service->streams) {
		struct stream *stream = service->streams;
		struct grpc_call *call = stream->call;

		stream_free(stream);
		grpc_call_finish(call);
	}
}

static bool same_devices(const json_t *a, const json_t *b)
{
	const json_t *of_a = json_at(a, "devices"), *of_b = json_at(b, "devices");
	size_t n = json_array_size(of_a);

	if (n != json_array_size(of_b))
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *x = json_array_get(of_a, i), *y = json_array_get(of_b, i);

		if (!json_same(json_at(x, "id"), json_at(y, "id")) ||
		    !json_same(json_at(x, "healthy"), json_at(y, "healthy")) ||
		    !json_same(json_at(x, "numa"), json_at(y, "numa")))
			return false;
	}
	return true;
}

void plugin_service_offer(struct plugin_service *service, const json_t *offer, bool push)
{
	bool is_news = !same_devices(service->offer, offer);

	json_replace(&service->offer, json_incref((json_t *)offer));
	if (!is_news && service->list)
		return;
	if (service->list)
		grpc_message_free(&service->list->base);
	service->list = plugin_message_list(json_at(offer, "devices"));
	for (struct stream *stream = service->streams; push && stream; stream = stream->next)
		send_list(service, stream);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum grpc_code code_of(const struct err *err)
{
	if (str_eq(err->reason, "UnknownDevice"))
		return GRPC_NOT_FOUND;
	if (str_eq(err->reason, "DeviceUnhealthy"))
		return GRPC_FAILED_PRECONDITION;
	return err->class == ERR_INVALID ? GRPC_INVALID_ARGUMENT : GRPC_INTERNAL;
}

static void handle_options(struct grpc_call *call, const struct ProtobufCMessage *request,
			   void *arg)
{
	DevicePlugin__DevicePluginOptions options = DEVICE_PLUGIN__DEVICE_PLUGIN_OPTIONS__INIT;

	options.get_preferred_allocation_available = true;
	grpc_call_reply(call, &options.base);
}

/* One line for each allocation: people look for it. */
static void log_allocation(const struct plugin_service *service,
			   const DevicePlugin__ContainerAllocateRequest *request,
			   const struct err *err)
{
	auto_strbuf struct strbuf ids = {0};

	for (size_t i = 0; i < request->n_device_ids && i < LOGGED_IDS; i++)
		strbuf_addf(&ids, "%s%s", i ? "," : "", request->device_ids[i]);
	if (err)
		log_warn("cannot give devices to a container",
			 F_STR("resource", service->config.resource),
			 F_STR("ids", strbuf_str(&ids)), F_ERR(err));
	else
		log_info("gave devices to a container", F_STR("resource", service->config.resource),
			 F_STR("ids", strbuf_str(&ids)),
			 F_INT("count", (int64_t)request->n_device_ids));
}

static DevicePlugin__ContainerAllocateResponse *
allocate_one(struct plugin_service *service, const DevicePlugin__ContainerAllocateRequest *request,
	     struct err *err)
{
	const char *const *ids = (const char *const *)request->device_ids;
	json_auto_t *allocation = NULL;
	struct err info = {0};

	if (!service->offer) {
		(void)err_set(err, ERR_INVALID, "UnknownDevice", "%s is not offered any more",
			      service->config.resource);
		return NULL;
	}
	allocation = allocate_devices(service->offer, ids, request->n_device_ids, err);
	if (!allocation)
		return NULL;
	/* The container works without its file, so this is reported and not refused. */
	if (devinfo_ensure(service->config.devinfo_dir, service->offer, ids, request->n_device_ids,
			   &info) < 0)
		service->config.ops->complain(service->config.arg, &info);
	return plugin_message_allocation(allocation);
}

static int allocate_all(struct plugin_service *service,
			const DevicePlugin__AllocateRequest *request,
			DevicePlugin__AllocateResponse *response, struct err *err)
{
	size_t n = request->n_container_requests;

	response->container_responses = mem_calloc(n ? n : 1, sizeof(void *));
	for (size_t i = 0; i < n; i++) {
		DevicePlugin__ContainerAllocateResponse *one =
			allocate_one(service, request->container_requests[i], err);

		log_allocation(service, request->container_requests[i], one ? NULL : err);
		if (!one)
			return -1;
		response->container_responses[response->n_container_responses++] = one;
	}
	return 0;
}

static void handle_allocate(struct grpc_call *call, const struct ProtobufCMessage *request,
			    void *arg)
{
	struct plugin_service *service = arg;
	DevicePlugin__AllocateResponse *response = mem_new(DevicePlugin__AllocateResponse);
	struct err err = {0};

	device_plugin__allocate_response__init(response);
	if (allocate_all(service, (const void *)request, response, &err) < 0) {
		metric_add(service->allocations, 1, service->config.resource, err.reason);
		grpc_call_fail(call, code_of(&err), "%s", err.text);
	} else {
		metric_add(service->allocations, 1, service->config.resource, "ok");
		service->config.ops->allocated(service->config.arg);
		grpc_call_reply(call, &response->base);
	}
	grpc_message_free(&response->base);
}

static DevicePlugin__ContainerPreferredAllocationResponse *
prefer_one(const struct plugin_service *service,
	   const DevicePlugin__ContainerPreferredAllocationRequest *request, const json_t *near,
	   struct err *err)
{
	size_t n = request->n_available_device_ids;
	auto_free const char **chosen = NULL;

	if (request->allocation_size < 0 || (size_t)request->allocation_size > n) {
		(void)err_set(err, ERR_INVALID, "BadRequest",
			      "%d devices are asked for, %zu are available",
			      request->allocation_size, n);
		return NULL;
	}
	chosen = mem_calloc(n ? n : 1, sizeof(*chosen));
	if (allocate_prefer(service->offer, (const char *const *)request->available_device_ids, n,
			    (const char *const *)request->must_include_device_ids,
			    request->n_must_include_device_ids, (size_t)request->allocation_size,
			    near, chosen, err) < 0)
		return NULL;
	return plugin_message_preferred(chosen, (size_t)request->allocation_size);
}

static void reply_preferred(struct plugin_service *service, struct grpc_call *call,
			    const DevicePlugin__PreferredAllocationRequest *all, const json_t *near)
{
	DevicePlugin__PreferredAllocationResponse *response =
		mem_new(DevicePlugin__PreferredAllocationResponse);
	size_t n = all->n_container_requests;
	struct err err = {0};
	bool is_good = true;

	device_plugin__preferred_allocation_response__init(response);
	response->container_responses = mem_calloc(n ? n : 1, sizeof(void *));
	for (size_t i = 0; i < n && is_good; i++) {
		DevicePlugin__ContainerPreferredAllocationResponse *one =
			prefer_one(service, all->container_requests[i], near, &err);

		if (one)
			response->container_responses[response->n_container_responses++] = one;
		else
			is_good = false;
	}
	if (is_good)
		grpc_call_reply(call, &response->base);
	else
		grpc_call_fail(call, code_of(&err), "%s", err.text);
	grpc_message_free(&response->base);
}

static void preferring_free(struct preferring *preferring)
{
	json_decref(preferring->available);
	mem_free(preferring);
}

static void on_gpus(void *arg, const json_t *near)
{
	struct preferring *preferring = arg;
	size_t n = json_array_size(preferring->available), i;
	DevicePlugin__ContainerPreferredAllocationRequest one =
		DEVICE_PLUGIN__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	DevicePlugin__ContainerPreferredAllocationRequest *all[] = {&one};
	DevicePlugin__PreferredAllocationRequest request =
		DEVICE_PLUGIN__PREFERRED_ALLOCATION_REQUEST__INIT;
	auto_free char **ids = mem_calloc(n + 1, sizeof(*ids));
	const json_t *id;

	json_array_foreach (preferring->available, i, id)
		ids[i] = (char *)json_string_value(id);
	one.available_device_ids = ids;
	one.n_available_device_ids = n;
	one.allocation_size = preferring->size;
	request.container_requests = all;
	request.n_container_requests = 1;
	reply_preferred(preferring->service, preferring->call, &request, near);
	preferring_free(preferring);
}

static void on_preferring_end(void *arg, enum grpc_code why)
{
	struct preferring *preferring = arg;

	gpu_question_cancel(preferring->question);
	preferring_free(preferring);
}

/*
 * A container of which some devices are chosen already is not asked about: a kubelet that is asked
 * for its List forgets these (pod_resources.h).
 */
static bool is_worth_asking(const struct plugin_service *service,
			    const DevicePlugin__PreferredAllocationRequest *all)
{
	const DevicePlugin__ContainerPreferredAllocationRequest *one;

	if (!service->config.questions || !json_is_true(json_at(service->offer, "gpus")) ||
	    all->n_container_requests != 1)
		return false;
	one = all->container_requests[0];
	return one->n_must_include_device_ids == 0 && one->allocation_size > 0 &&
	       (size_t)one->allocation_size < one->n_available_device_ids;
}

static void handle_preferred(struct grpc_call *call, const struct ProtobufCMessage *request,
			     void *arg)
{
	const DevicePlugin__PreferredAllocationRequest *all = (const void *)request;
	const DevicePlugin__ContainerPreferredAllocationRequest *one;
	struct plugin_service *service = arg;
	struct preferring *preferring;

	if (!is_worth_asking(service, all)) {
		reply_preferred(service, call, all, NULL);
		return;
	}
	preferring = mem_new(struct preferring);
	preferring->question = gpu_question_new(service->config.questions, service->config.resource,
						on_gpus, preferring);
	if (!preferring->question) {
		mem_free(preferring);
		reply_preferred(service, call, all, NULL);
		return;
	}
	one = all->container_requests[0];
	preferring->service = service;
	preferring->call = call;
	preferring->size = one->allocation_size;
	preferring->available = json_array();
	/* Ids that are not UTF-8 are none of ours. */
	for (size_t i = 0; i < one->n_available_device_ids; i++)
		json_array_append_new(preferring->available,
				      json_string(one->available_device_ids[i]));
	grpc_call_on_end(call, on_preferring_end, preferring);
}

/* Not asked for, so not called; kubelets are free to. */
static void handle_pre_start(struct grpc_call *call, const struct ProtobufCMessage *request,
			     void *arg)
{
	DevicePlugin__PreStartContainerResponse response =
		DEVICE_PLUGIN__PRE_START_CONTAINER_RESPONSE__INIT;

	grpc_call_reply(call, &response.base);
}

static const struct grpc_method methods[] = {
	{"/v1beta1.DevicePlugin/GetDevicePluginOptions", &device_plugin__empty__descriptor,
	 handle_options},
	{"/v1beta1.DevicePlugin/ListAndWatch", &device_plugin__empty__descriptor, handle_watch},
	{"/v1beta1.DevicePlugin/GetPreferredAllocation",
	 &device_plugin__preferred_allocation_request__descriptor, handle_preferred},
	{"/v1beta1.DevicePlugin/Allocate", &device_plugin__allocate_request__descriptor,
	 handle_allocate},
	{"/v1beta1.DevicePlugin/PreStartContainer",
	 &device_plugin__pre_start_container_request__descriptor, handle_pre_start},
};

/* ---- beginning and end ----------------------------------------------------------------------- */

struct plugin_service *
plugin_service_new(struct loop *loop, const struct plugin_service_config *config, struct err *err)
{
	struct plugin_service *service = mem_new(struct plugin_service);
	const struct grpc_server_config server_config = {
		.path = config->path,
		.methods = methods,
		.n_methods = ARRAY_LEN(methods),
		.arg = service,
		.metrics = config->metrics,
	};

	service->config = *config;
	service->config.metrics = NULL;
	service->server = grpc_server_new(loop, &server_config, err);
	if (!service->server) {
		mem_free(service);
		return NULL;
	}
	service->allocations = metric_counter(
		config->metrics, "orbweaver_kubelet_allocations_total",
		"Allocate calls answered; result is ok or what was wrong.", "resource,result");
	plugin_service_offer(service, NULL, false);
	return service;
}

/* The end has been ordered: no caller wants to know. */
static void hear_nothing(void *arg)
{
}

static void hear_no_end(void *arg, int64_t lasted_ms)
{
}

static void hear_no_complaint(void *arg, const struct err *err)
{
}

static const struct plugin_service_ops deaf_ops = {
	.watched = hear_nothing,
	.unwatched = hear_no_end,
	.allocated = hear_nothing,
	.complain = hear_no_complaint,
};

static void on_server_closed(void *arg)
{
	struct plugin_service *service = arg;
	void (*done)(void *arg) = service->done;
	void *done_arg = service->arg;

	deferred_free(service->gone);
	json_decref(service->offer);
	if (service->list)
		grpc_message_free(&service->list->base);
	mem_free(service);
	done(done_arg);
}

void plugin_service_close(struct plugin_service *service, struct loop *loop,
			  void (*done)(void *arg), void *arg)
{
	struct plugin_service *closing = service ? service : mem_new(struct plugin_service);

	closing->config.ops = &deaf_ops;
	closing->done = done;
	closing->arg = arg;
	if (service) {
		grpc_server_close(service->server, DRAIN_MS, on_server_closed, service);
	} else {
		closing->gone = deferred_new(loop, on_server_closed, closing);
		deferred_run(closing->gone);
	}
}

int plugin_service_keep_socket(struct plugin_service *service, struct err *err)
{
	return grpc_server_owns_path(service->server)
		       ? 0
		       : grpc_server_listen_again(service->server, err);
}
