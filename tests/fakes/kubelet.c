// SPDX-License-Identifier: Apache-2.0
/*
 * See the header. Clients of plugins are freed in a later turn where their own callbacks ask for
 * it.
 */
#include "tests/fakes/kubelet.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/grpc/client.h"
#include "lib/grpc/frame.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/message.h"
#include "lib/grpc/server.h"
#include "nodeagent/kubelet/endpoint.h"

struct endpoint {
	struct fake_kubelet *kubelet;
	struct endpoint *next;
	char *resource;
	char *path;
	struct grpc_client *client; /* NULL: ended */
	struct grpc_call *pending;  /* Register, while options are asked for */
	size_t healthy, devices;
	DevicePlugin__ListAndWatchResponse *list; /* the last one; NULL: none */
	bool may_prefer;
	bool is_current;
};

struct fake_kubelet {
	struct loop *loop;
	char *dir;
	enum fake_kubelet_kind kind;
	enum fake_kubelet_mood mood;
	bool dials_by_path;
	struct grpc_server *server;
	struct endpoint *endpoints; /* the newest first; ended ones stay */
	size_t registrations, lists, lowest;
	char *endpoint, *request;
	bool is_closed;
};

/* ---- counting -------------------------------------------------------------------------------- */

static const struct endpoint *current(const struct fake_kubelet *kubelet, const char *resource)
{
	for (const struct endpoint *e = kubelet->endpoints; e; e = e->next)
		if (e->is_current && str_eq(e->resource, resource))
			return e;
	return NULL;
}

/* Lists are kept by resource, whichever stream they came from, until the current one ends. */
static const struct endpoint *last_told(const struct fake_kubelet *kubelet, const char *resource)
{
	for (const struct endpoint *e = kubelet->endpoints; e; e = e->next)
		if (e->list && str_eq(e->resource, resource))
			return e;
	return NULL;
}

size_t fake_kubelet_allocatable(const struct fake_kubelet *kubelet, const char *resource)
{
	const struct endpoint *e = current(kubelet, resource);
	const struct endpoint *told = last_told(kubelet, resource);

	return e && e->client && told ? told->healthy : 0;
}

size_t fake_kubelet_capacity(const struct fake_kubelet *kubelet, const char *resource)
{
	const struct endpoint *told = last_told(kubelet, resource);

	return told ? told->devices : 0;
}

static void note(struct fake_kubelet *kubelet, const char *resource)
{
	size_t now = fake_kubelet_allocatable(kubelet, resource);

	if (now < kubelet->lowest)
		kubelet->lowest = now;
}

size_t fake_kubelet_lowest(struct fake_kubelet *kubelet)
{
	size_t lowest = kubelet->lowest;

	kubelet->lowest = SIZE_MAX;
	return lowest;
}

size_t fake_kubelet_registrations(const struct fake_kubelet *kubelet)
{
	return kubelet->registrations;
}

size_t fake_kubelet_lists(const struct fake_kubelet *kubelet)
{
	return kubelet->lists;
}

const char *fake_kubelet_endpoint(const struct fake_kubelet *kubelet)
{
	return kubelet->endpoint ? kubelet->endpoint : "";
}

const char *fake_kubelet_request(const struct fake_kubelet *kubelet)
{
	return kubelet->request ? kubelet->request : "";
}

/* ---- streams --------------------------------------------------------------------------------- */

static void disconnect(struct endpoint *e)
{
	if (!e->client)
		return;
	grpc_client_free(take_ptr(e->client));
	note(e->kubelet, e->resource);
}

/* Messages are borrowed; a copy is made by way of the wire. */
static struct ProtobufCMessage *copy_of(const struct ProtobufCMessage *message)
{
	auto_strbuf struct strbuf bytes = {0};
	struct grpc_status status;

	if (grpc_message_encode(message, GRPC_MESSAGE_MAX, &bytes, &status) < 0)
		abort();
	return grpc_message_decode(message->descriptor, bytes.data + GRPC_FRAME_HEAD,
				   bytes.len - GRPC_FRAME_HEAD, GRPC_MESSAGE_MAX, &status);
}

static void keep_list(struct endpoint *e, const struct ProtobufCMessage *message)
{
	if (e->list)
		grpc_message_free(&e->list->base);
	e->list = (void *)copy_of(message);
	assert(e->list);
}

static void on_list(void *arg, const struct ProtobufCMessage *message)
{
	struct endpoint *e = arg;
	const DevicePlugin__ListAndWatchResponse *list = (const void *)message;

	e->kubelet->lists++;
	e->devices = list->n_devices;
	e->healthy = 0;
	keep_list(e, message);
	for (size_t i = 0; i < list->n_devices; i++)
		e->healthy += str_eq(list->devices[i]->health, "Healthy");
	if (e->kubelet->mood == FAKE_KUBELET_RESTLESS)
		disconnect(e);
}

static void on_stream_end(void *arg, const struct grpc_status *status)
{
	struct endpoint *e = arg;
	struct fake_kubelet *kubelet = e->kubelet;
	struct endpoint *other = (struct endpoint *)current(kubelet, e->resource);

	disconnect(e);
	if (kubelet->kind == FAKE_KUBELET_NEW && other && other != e)
		disconnect(other);
}

static void watch(struct endpoint *e)
{
	DevicePlugin__Empty empty = DEVICE_PLUGIN__EMPTY__INIT;

	if (!grpc_client_call(
		    e->client,
		    &(struct grpc_request){
			    .path = "/v1beta1.DevicePlugin/ListAndWatch",
			    .message = &empty.base,
			    .response = &device_plugin__list_and_watch_response__descriptor,
			    .is_streaming = true,
			    .message_fn = on_list,
			    .done = on_stream_end,
			    .arg = e,
		    },
		    NULL))
		disconnect(e);
}

void fake_kubelet_end_stream(struct fake_kubelet *kubelet, const char *resource)
{
	disconnect((struct endpoint *)current(kubelet, resource));
}

/* ---- Register -------------------------------------------------------------------------------- */

static void answer(struct grpc_call *call)
{
	DevicePlugin__Empty empty = DEVICE_PLUGIN__EMPTY__INIT;

	grpc_call_reply(call, &empty.base);
}

static void on_options_read(void *arg, const struct ProtobufCMessage *message)
{
	struct endpoint *e = arg;
	const DevicePlugin__DevicePluginOptions *options = (const void *)message;

	e->may_prefer = options->get_preferred_allocation_available;
}

/* From here on it is the one. */
static void take_over(struct endpoint *e)
{
	struct fake_kubelet *kubelet = e->kubelet;
	struct endpoint *before = (struct endpoint *)current(kubelet, e->resource);

	if (before)
		before->is_current = false;
	e->is_current = true;
	if (before && kubelet->kind == FAKE_KUBELET_STRICT)
		disconnect(before);
	watch(e);
}

static void on_options(void *arg, const struct grpc_status *status)
{
	struct endpoint *e = arg;

	if (status->code == GRPC_OK) {
		if (e->pending)
			answer(take_ptr(e->pending));
		take_over(e);
	} else {
		if (e->pending)
			grpc_call_fail(take_ptr(e->pending), GRPC_UNKNOWN, "no options: %s",
				       status->text);
		grpc_client_free(take_ptr(e->client));
	}
}

static void ask_options(struct endpoint *e)
{
	DevicePlugin__Empty empty = DEVICE_PLUGIN__EMPTY__INIT;
	struct grpc_client_call *call = grpc_client_call(
		e->client,
		&(struct grpc_request){
			.path = "/v1beta1.DevicePlugin/GetDevicePluginOptions",
			.message = &empty.base,
			.response = &device_plugin__device_plugin_options__descriptor,
			.message_fn = on_options_read,
			.done = on_options,
			.arg = e,
		},
		NULL);

	assert(call);
}

static void on_register_end(void *arg, enum grpc_code why)
{
	struct endpoint *e = arg;

	e->pending = NULL;
}

static void on_held_end(void *arg, enum grpc_code why)
{
}

static struct endpoint *endpoint_of(struct fake_kubelet *kubelet,
				    const DevicePlugin__RegisterRequest *request)
{
	struct endpoint *e = mem_new(struct endpoint);

	e->kubelet = kubelet;
	e->resource = str_dup(request->resource_name);
	e->path = str_printf("%s/%s", kubelet->dir, request->endpoint);
	e->next = kubelet->endpoints;
	kubelet->endpoints = e;
	e->client = grpc_client_new(
		kubelet->loop,
		&(struct grpc_client_config){.path = e->path,
					     .authority = kubelet->dials_by_path ? e->path : NULL},
		NULL);
	return e;
}

static bool calls_back_first(const struct fake_kubelet *kubelet)
{
	return kubelet->kind == FAKE_KUBELET_NEW || kubelet->kind == FAKE_KUBELET_NEWEST;
}

static void call_back(struct fake_kubelet *kubelet, struct grpc_call *call,
		      const DevicePlugin__RegisterRequest *request)
{
	struct endpoint *e = endpoint_of(kubelet, request);

	if (!e->client) {
		grpc_call_fail(call, GRPC_UNKNOWN, "failed to dial device plugin");
	} else if (calls_back_first(kubelet)) {
		e->pending = call;
		grpc_call_on_end(call, on_register_end, e);
		ask_options(e);
	} else {
		e->may_prefer =
			request->options && request->options->get_preferred_allocation_available;
		answer(call);
		take_over(e);
	}
}

static void remember(struct fake_kubelet *kubelet, const DevicePlugin__RegisterRequest *request)
{
	auto_strbuf struct strbuf bytes = {0}, hex = {0};
	struct grpc_status status;

	if (grpc_message_encode(&request->base, GRPC_MESSAGE_MAX, &bytes, &status) < 0)
		abort();
	for (size_t i = GRPC_FRAME_HEAD; i < bytes.len; i++)
		strbuf_addf(&hex, "%02x", (unsigned char)bytes.data[i]);
	mem_free(kubelet->request);
	mem_free(kubelet->endpoint);
	kubelet->request = strbuf_take(&hex);
	kubelet->endpoint = str_dup(request->endpoint);
	kubelet->registrations++;
}

static void handle_register(struct grpc_call *call, const struct ProtobufCMessage *message,
			    void *arg)
{
	struct fake_kubelet *kubelet = arg;
	const DevicePlugin__RegisterRequest *request = (const void *)message;

	remember(kubelet, request);
	switch (kubelet->mood) {
	case FAKE_KUBELET_REFUSES:
		grpc_call_fail(call, GRPC_UNKNOWN, "the ResourceName \"%s\" is invalid",
			       request->resource_name);
		return;
	case FAKE_KUBELET_HANGS:
		grpc_call_on_end(call, on_held_end, NULL);
		return;
	case FAKE_KUBELET_IGNORES:
		answer(call);
		return;
	case FAKE_KUBELET_WELL:
	case FAKE_KUBELET_RESTLESS:
		call_back(kubelet, call, request);
	}
}

static const struct grpc_method methods[] = {
	{"/v1beta1.Registration/Register", &device_plugin__register_request__descriptor,
	 handle_register},
};

/* ---- beginning and end ----------------------------------------------------------------------- */

static void wipe(const char *dir)
{
	auto_closedir DIR *files = opendir(dir);
	const struct dirent *file;
	struct stat st;

	assert(files);
	while ((file = readdir(files)))
		if (fstatat(dirfd(files), file->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISSOCK(st.st_mode))
			(void)unlinkat(dirfd(files), file->d_name, 0);
}

struct fake_kubelet *fake_kubelet_new(struct loop *loop, const char *dir,
				      enum fake_kubelet_kind kind)
{
	struct fake_kubelet *kubelet = mem_new(struct fake_kubelet);
	auto_free char *path = str_printf("%s/kubelet.sock", dir);

	kubelet->loop = loop;
	kubelet->dir = str_dup(dir);
	kubelet->kind = kind;
	kubelet->lowest = SIZE_MAX;
	wipe(dir);
	kubelet->server = grpc_server_new(loop,
					  &(struct grpc_server_config){
						  .path = path,
						  .methods = methods,
						  .n_methods = ARRAY_LEN(methods),
						  .arg = kubelet,
					  },
					  NULL);
	assert(kubelet->server);
	return kubelet;
}

static void on_closed(void *arg)
{
	struct fake_kubelet *kubelet = arg;

	kubelet->is_closed = true;
}

void fake_kubelet_free(struct fake_kubelet *kubelet)
{
	if (!kubelet)
		return;
	for (struct endpoint *e = kubelet->endpoints; e; e = e->next)
		grpc_client_free(take_ptr(e->client));
	grpc_server_close(kubelet->server, 0, on_closed, kubelet);
	while (!kubelet->is_closed)
		loop_turn(kubelet->loop, true);
	while (kubelet->endpoints) {
		struct endpoint *e = kubelet->endpoints;

		kubelet->endpoints = e->next;
		if (e->list)
			grpc_message_free(&e->list->base);
		mem_free(e->resource);
		mem_free(e->path);
		mem_free(e);
	}
	mem_free(kubelet->dir);
	mem_free(kubelet->endpoint);
	mem_free(kubelet->request);
	mem_free(kubelet);
}

void fake_kubelet_dial_by_path(struct fake_kubelet *kubelet)
{
	kubelet->dials_by_path = true;
}

const DevicePlugin__ListAndWatchResponse *fake_kubelet_list(const struct fake_kubelet *kubelet,
							    const char *resource)
{
	const struct endpoint *e = current(kubelet, resource);

	return e && e->client ? e->list : NULL;
}

bool fake_kubelet_may_prefer(const struct fake_kubelet *kubelet, const char *resource)
{
	const struct endpoint *e = current(kubelet, resource);

	return e && e->may_prefer;
}

struct asked {
	struct ProtobufCMessage *answer;
	char *why;
	bool is_over, is_well;
};

static void on_answer(void *arg, const struct ProtobufCMessage *message)
{
	struct asked *asked = arg;

	asked->answer = copy_of(message);
}

static void on_answered(void *arg, const struct grpc_status *status)
{
	struct asked *asked = arg;

	asked->is_over = true;
	asked->is_well = status->code == GRPC_OK && asked->answer;
	asked->why = str_dup(status->text);
}

bool fake_kubelet_call(struct fake_kubelet *kubelet, const char *resource, const char *method,
		       const struct ProtobufCMessage *message,
		       const struct ProtobufCMessageDescriptor *response,
		       struct ProtobufCMessage **ret_answer, char **ret_why)
{
	const struct endpoint *e = current(kubelet, resource);
	auto_free char *path = str_printf("/v1beta1.DevicePlugin/%s", method);
	struct asked asked = {0};

	if (!e || !e->client ||
	    !grpc_client_call(e->client,
			      &(struct grpc_request){
				      .path = path,
				      .message = message,
				      .response = response,
				      .message_fn = on_answer,
				      .done = on_answered,
				      .arg = &asked,
			      },
			      NULL)) {
		*ret_why = str_dup("the plugin is not connected");
		return false;
	}
	while (!asked.is_over)
		loop_turn(kubelet->loop, true);
	if (asked.is_well)
		*ret_answer = asked.answer;
	else
		*ret_why = take_ptr(asked.why);
	mem_free(asked.why);
	return asked.is_well;
}

void fake_kubelet_set_mood(struct fake_kubelet *kubelet, enum fake_kubelet_mood mood)
{
	kubelet->mood = mood;
}

size_t fake_kubelet_sockets(const char *dir)
{
	auto_closedir DIR *files = opendir(dir);
	const struct dirent *file;
	struct endpoint_parts parts;
	size_t n = 0;

	while (files && (file = readdir(files)))
		n += endpoint_parse(file->d_name, &parts);
	return n;
}
