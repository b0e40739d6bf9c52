// SPDX-License-Identifier: Apache-2.0
/*
 * One end of lib/grpc as a program, for a foreign implementation at the other
 * (tests/integration/grpc_peer.go).
 *
 *	grpc-peer serve SOCKET       a device plugin; ends in an orderly way at SIGTERM
 *	grpc-peer call SOCKET CASE   one call to a kubelet's server, told on stdout in one line
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/client.h"
#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "lib/grpc/server.h"

/* A list beyond the windows of HTTP/2, as for shared devices. */
#define DEVICES 5000
/* The watch sends a new list so often. */
#define WATCH_MS 20

/* ---- serve ----------------------------------------------------------------------------------- */

struct watch {
	struct grpc_call *call;
	struct timer *timer;
	size_t n_devices;
};

struct plugin {
	struct loop *loop;
	struct grpc_server *server;
	struct signal_watch *sigterm;
};

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void handle_options(struct grpc_call *call, const struct ProtobufCMessage *request,
			   void *arg)
{
	DevicePlugin__DevicePluginOptions options = DEVICE_PLUGIN__DEVICE_PLUGIN_OPTIONS__INIT;

	options.get_preferred_allocation_available = true;
	grpc_call_reply(call, &options.base);
}

static void send_list(struct watch *watch)
{
	DevicePlugin__ListAndWatchResponse list = DEVICE_PLUGIN__LIST_AND_WATCH_RESPONSE__INIT;
	DevicePlugin__Device *devices = mem_calloc(watch->n_devices, sizeof(*devices));
	DevicePlugin__Device **pointers = mem_calloc(watch->n_devices, sizeof(*pointers));
	char(*ids)[32] = mem_calloc(watch->n_devices, sizeof(*ids));

	for (size_t i = 0; i < watch->n_devices; i++) {
		device_plugin__device__init(&devices[i]);
		snprintf(ids[i], sizeof(ids[i]), "device-%zu", i);
		devices[i].id = ids[i];
		devices[i].health = (char *)"Healthy";
		pointers[i] = &devices[i];
	}
	list.devices = pointers;
	list.n_devices = watch->n_devices;
	if (grpc_call_send_latest(watch->call, &list.base, NULL) < 0)
		abort();
	mem_free(devices);
	mem_free(pointers);
	mem_free(ids);
}

static void on_watch_tick(void *arg)
{
	struct watch *watch = arg;

	watch->n_devices++;
	send_list(watch);
	timer_start(watch->timer, WATCH_MS);
}

static void on_watch_end(void *arg, enum grpc_code why)
{
	struct watch *watch = arg;

	printf("ListAndWatch ended: %s\n", grpc_code_name(why));
	fflush(stdout);
	timer_free(watch->timer);
	mem_free(watch);
}

static void handle_watch(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	struct plugin *plugin = arg;
	struct watch *watch = mem_new(struct watch);

	watch->call = call;
	watch->n_devices = DEVICES;
	watch->timer = timer_new(plugin->loop, on_watch_tick, watch);
	grpc_call_on_end(call, on_watch_end, watch);
	send_list(watch);
	timer_start(watch->timer, WATCH_MS);
}

/* One variable that names all devices, and a device node for each of them. */
static void handle_allocate(struct grpc_call *call, const struct ProtobufCMessage *request,
			    void *arg)
{
	const DevicePlugin__AllocateRequest *req = (const void *)request;
	DevicePlugin__AllocateResponse response = DEVICE_PLUGIN__ALLOCATE_RESPONSE__INIT;
	DevicePlugin__ContainerAllocateResponse container =
		DEVICE_PLUGIN__CONTAINER_ALLOCATE_RESPONSE__INIT;
	DevicePlugin__ContainerAllocateResponse *containers[] = {&container};
	DevicePlugin__ContainerAllocateResponse__EnvsEntry env =
		DEVICE_PLUGIN__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
	DevicePlugin__ContainerAllocateResponse__EnvsEntry *envs[] = {&env};
	DevicePlugin__DeviceSpec node = DEVICE_PLUGIN__DEVICE_SPEC__INIT;
	DevicePlugin__DeviceSpec *nodes[] = {&node};
	auto_strbuf struct strbuf ids = {0};

	for (size_t i = 0; i < req->n_container_requests; i++)
		for (size_t j = 0; j < req->container_requests[i]->n_device_ids; j++)
			strbuf_addf(&ids, "%s%s", ids.len ? "," : "",
				    req->container_requests[i]->device_ids[j]);
	env.key = (char *)"DEVICES";
	env.value = (char *)strbuf_str(&ids);
	node.container_path = (char *)"/dev/infiniband/rdma_cm";
	node.host_path = node.container_path;
	node.permissions = (char *)"rw";
	container.envs = envs;
	container.n_envs = 1;
	container.devices = nodes;
	container.n_devices = 1;
	response.container_responses = containers;
	response.n_container_responses = 1;
	grpc_call_reply(call, &response.base);
}

static void handle_preferred(struct grpc_call *call, const struct ProtobufCMessage *request,
			     void *arg)
{
	grpc_call_fail(call, GRPC_FAILED_PRECONDITION, "100%% belegt:\nGer\xc3\xa4t fehlt");
}

static void on_held_end(void *arg, enum grpc_code why)
{
	printf("PreStartContainer ended: %s\n", grpc_code_name(why));
	fflush(stdout);
}

static void handle_hold(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	grpc_call_on_end(call, on_held_end, NULL);
	say("PreStartContainer is held");
}

static const struct grpc_method methods[] = {
	{"/v1beta1.DevicePlugin/GetDevicePluginOptions", &device_plugin__empty__descriptor,
	 handle_options},
	{"/v1beta1.DevicePlugin/ListAndWatch", &device_plugin__empty__descriptor, handle_watch},
	{"/v1beta1.DevicePlugin/Allocate", &device_plugin__allocate_request__descriptor,
	 handle_allocate},
	{"/v1beta1.DevicePlugin/GetPreferredAllocation",
	 &device_plugin__preferred_allocation_request__descriptor, handle_preferred},
	{"/v1beta1.DevicePlugin/PreStartContainer",
	 &device_plugin__pre_start_container_request__descriptor, handle_hold},
};

static void on_server_closed(void *arg)
{
	say("closed");
}

static void on_sigterm(void *arg)
{
	struct plugin *plugin = arg;

	signal_watch_free(plugin->sigterm);
	grpc_server_close(plugin->server, 100, on_server_closed, NULL);
}

static int serve(const char *path)
{
	struct plugin plugin = {.loop = loop_new()};
	const struct grpc_server_config config = {
		.path = path,
		.methods = methods,
		.n_methods = ARRAY_LEN(methods),
		.arg = &plugin,
	};
	struct err err = {0};

	plugin.server = grpc_server_new(plugin.loop, &config, &err);
	if (!plugin.server) {
		fprintf(stderr, "%s\n", err.text);
		loop_free(plugin.loop);
		return 1;
	}
	plugin.sigterm = signal_watch_new(plugin.loop, SIGTERM, on_sigterm, &plugin);
	say("serving");
	loop_run(plugin.loop);
	loop_free(plugin.loop);
	return 0;
}

/* ---- call ------------------------------------------------------------------------------------ */

struct caller {
	struct grpc_client *client;
	int messages;
	size_t devices;
};

static void on_list(void *arg, const struct ProtobufCMessage *message)
{
	struct caller *caller = arg;

	caller->messages++;
	caller->devices = ((const DevicePlugin__ListAndWatchResponse *)message)->n_devices;
}

static void on_empty(void *arg, const struct ProtobufCMessage *message)
{
	struct caller *caller = arg;

	caller->messages++;
}

static void on_done(void *arg, const struct grpc_status *status)
{
	struct caller *caller = arg;

	printf("%s, %d messages, %zu devices: %s\n", grpc_code_name(status->code), caller->messages,
	       caller->devices, status->text);
	grpc_client_free(caller->client);
}

static struct grpc_client_call *call_register(struct caller *caller, const char *resource,
					      int64_t timeout_ms, struct err *err)
{
	DevicePlugin__RegisterRequest request = DEVICE_PLUGIN__REGISTER_REQUEST__INIT;

	request.version = (char *)"v1beta1";
	request.endpoint = (char *)"x.sock";
	request.resource_name = (char *)resource;
	return grpc_client_call(caller->client,
				&(struct grpc_request){
					.path = "/v1beta1.Registration/Register",
					.message = &request.base,
					.response = &device_plugin__empty__descriptor,
					.timeout_ms = timeout_ms,
					.message_fn = on_empty,
					.done = on_done,
					.arg = caller,
				},
				err);
}

static struct grpc_client_call *call_watch(struct caller *caller, const char *path, struct err *err)
{
	DevicePlugin__Empty empty = DEVICE_PLUGIN__EMPTY__INIT;

	return grpc_client_call(
		caller->client,
		&(struct grpc_request){
			.path = path,
			.message = &empty.base,
			.response = &device_plugin__list_and_watch_response__descriptor,
			.is_streaming = true,
			.message_fn = on_list,
			.done = on_done,
			.arg = caller,
		},
		err);
}

static struct grpc_client_call *begin(struct caller *caller, const char *what, struct err *err)
{
	if (strcmp(what, "register") == 0)
		return call_register(caller, "rdma/hca_a", 15000, err);
	if (strcmp(what, "refused") == 0)
		return call_register(caller, "no-name", 15000, err);
	if (strcmp(what, "deadline") == 0)
		return call_register(caller, "slow/slow", 100, err);
	if (strcmp(what, "watch") == 0)
		return call_watch(caller, "/v1beta1.DevicePlugin/ListAndWatch", err);
	if (strcmp(what, "forever") == 0)
		return call_watch(caller, "/v1beta1.DevicePlugin/Forever", err);
	if (strcmp(what, "unknown") == 0)
		return call_watch(caller, "/v1beta1.DevicePlugin/Fly", err);
	if (strcmp(what, "huge") == 0)
		return call_watch(caller, "/v1beta1.DevicePlugin/Huge", err);
	err_set(err, ERR_INVALID, "UnknownCase", "unknown case \"%s\"", what);
	return NULL;
}

static int call(const char *path, const char *what)
{
	struct loop *loop = loop_new();
	struct caller caller = {0};
	struct err err = {0};

	caller.client = grpc_client_new(loop, &(struct grpc_client_config){.path = path}, &err);
	if (!caller.client || !begin(&caller, what, &err)) {
		printf("%s: %s\n", err.reason, err.text);
		grpc_client_free(caller.client);
	}
	loop_run(loop);
	loop_free(loop);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2]);
	if (argc == 4 && strcmp(argv[1], "call") == 0)
		return call(argv[2], argv[3]);
	fprintf(stderr, "usage: grpc-peer serve SOCKET | call SOCKET CASE\n");
	return 2;
}
