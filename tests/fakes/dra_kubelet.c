// SPDX-License-Identifier: Apache-2.0
/* See the header. */
#include "tests/fakes/dra_kubelet.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/grpc/client.h"
#include "lib/grpc/proto/dra.pb-c.h"
#include "lib/grpc/proto/plugin_registration.pb-c.h"
#include "lib/json/json.h"

/* A kubelet waits 45 s for a claim; nobody here is that slow. */
#define TIMEOUT_MS 8000

struct dra_kubelet {
	struct loop *loop;
	char *dir;
	char *endpoint; /* of the driver that was registered last; NULL: none */
	json_t *info;
	struct grpc_client *client; /* to it */
	json_t *health;             /* NULL: no list has come */
	size_t lists;
};

/* A call under way. */
struct asking {
	void (*read)(struct asking *asking, const struct ProtobufCMessage *message);
	json_t *answer;
	bool is_over;
};

static void on_message(void *arg, const struct ProtobufCMessage *message)
{
	struct asking *asking = arg;

	asking->read(asking, message);
}

static void on_done(void *arg, const struct grpc_status *status)
{
	struct asking *asking = arg;

	if (status->code != GRPC_OK)
		asking->answer = json_fmt("%s: %s", grpc_code_name(status->code), status->text);
	asking->is_over = true;
}

/* New; a string when it fails. */
static json_t *call(struct dra_kubelet *kubelet, struct grpc_client *client, const char *path,
		    const struct ProtobufCMessage *message,
		    const struct ProtobufCMessageDescriptor *response,
		    void (*read)(struct asking *asking, const struct ProtobufCMessage *message))
{
	struct asking asking = {.read = read};
	struct err err = {0};

	if (!client || !grpc_client_call(client,
					 &(struct grpc_request){
						 .path = path,
						 .message = message,
						 .response = response,
						 .timeout_ms = TIMEOUT_MS,
						 .message_fn = on_message,
						 .done = on_done,
						 .arg = &asking,
					 },
					 &err))
		return json_fmt("Unavailable: %s", err.text);
	while (!asking.is_over)
		loop_turn(kubelet->loop, true);
	return asking.answer;
}

/* ---- registration ---------------------------------------------------------------------------- */

static void read_info(struct asking *asking, const struct ProtobufCMessage *message)
{
	const PluginRegistration__PluginInfo *info = (const void *)message;
	json_t *versions = json_array();

	for (size_t i = 0; i < info->n_supported_versions; i++)
		json_array_append_new(versions, json_string(info->supported_versions[i]));
	asking->answer = json_pack("{s:s, s:s, s:s, s:o}", "type", info->type, "name", info->name,
				   "endpoint", info->endpoint, "versions", versions);
}

static void read_nothing(struct asking *asking, const struct ProtobufCMessage *message)
{
}

static void notify(struct dra_kubelet *kubelet, struct grpc_client *client, const char *error)
{
	PluginRegistration__RegistrationStatus status =
		PLUGIN_REGISTRATION__REGISTRATION_STATUS__INIT;

	status.plugin_registered = !error;
	status.error = (char *)(error ? error : "");
	json_decref(call(kubelet, client,
			 "/pluginregistration.Registration/NotifyRegistrationStatus", &status.base,
			 &plugin_registration__registration_status_response__descriptor,
			 read_nothing));
}

/* A driver without an endpoint of its own is called at the socket that was asked. */
static bool register_driver(struct dra_kubelet *kubelet, char *path)
{
	PluginRegistration__InfoRequest request = PLUGIN_REGISTRATION__INFO_REQUEST__INIT;
	auto_free char *owned = path;
	struct grpc_client *client =
		grpc_client_new(kubelet->loop, &(struct grpc_client_config){.path = path}, NULL);
	json_t *info;

	info = call(kubelet, client, "/pluginregistration.Registration/GetInfo", &request.base,
		    &plugin_registration__plugin_info__descriptor, read_info);
	if (!str_eq(json_str_at(info, "type"), "DRAPlugin") ||
	    (!json_list_has(json_at(info, "versions"), "v1.DRAPlugin") &&
	     !json_list_has(json_at(info, "versions"), "v1beta1.DRAPlugin"))) {
		json_decref(info);
		grpc_client_free(client);
		return false;
	}
	json_decref(kubelet->info);
	kubelet->info = info;
	notify(kubelet, client, NULL);
	grpc_client_free(client);
	grpc_client_free(kubelet->client);
	mem_free(kubelet->endpoint);
	kubelet->endpoint = str_empty(json_str_at(info, "endpoint"))
				    ? take_ptr(owned)
				    : str_dup(json_str_at(info, "endpoint"));
	kubelet->client = grpc_client_new(
		kubelet->loop, &(struct grpc_client_config){.path = kubelet->endpoint}, NULL);
	return true;
}

size_t dra_kubelet_look(struct dra_kubelet *kubelet)
{
	auto_closedir DIR *dir = opendir(kubelet->dir);
	const struct dirent *file;
	size_t n = 0;

	while (dir && (file = readdir(dir))) {
		struct stat st;

		if (file->d_name[0] != '.' &&
		    fstatat(dirfd(dir), file->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISSOCK(st.st_mode))
			n += register_driver(kubelet, str_below(kubelet->dir, file->d_name));
	}
	return n;
}

void dra_kubelet_refuse(struct dra_kubelet *kubelet, const char *error)
{
	notify(kubelet, kubelet->client, error);
}

const json_t *dra_kubelet_info(const struct dra_kubelet *kubelet)
{
	return kubelet->info;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static json_t *device_of(const Dra__Device *device)
{
	json_t *ids = json_array();

	for (size_t i = 0; i < device->n_cdi_device_ids; i++)
		json_array_append_new(ids, json_string(device->cdi_device_ids[i]));
	return json_pack("{s:s, s:s, s:s, s:o}", "request",
			 device->n_request_names == 1 ? device->request_names[0] : "?", "pool",
			 device->pool_name, "device", device->device_name, "cdi", ids);
}

static void read_prepared(struct asking *asking, const struct ProtobufCMessage *message)
{
	const Dra__NodePrepareResourcesResponse *response = (const void *)message;

	asking->answer = json_object();
	for (size_t i = 0; i < response->n_claims; i++) {
		const Dra__NodePrepareResourceResponse *claim = response->claims[i]->value;
		json_t *answer = json_object(), *devices = json_array();

		for (size_t k = 0; k < claim->n_devices; k++)
			json_array_append_new(devices, device_of(claim->devices[k]));
		if (claim->error[0])
			json_put_str(answer, "error", claim->error);
		else
			json_put(answer, "devices", json_incref(devices));
		json_decref(devices);
		json_put(asking->answer, response->claims[i]->key, answer);
	}
}

static void read_unprepared(struct asking *asking, const struct ProtobufCMessage *message)
{
	const Dra__NodeUnprepareResourcesResponse *response = (const void *)message;

	asking->answer = json_object();
	for (size_t i = 0; i < response->n_claims; i++) {
		const char *error = response->claims[i]->value->error;
		json_t *answer = json_object();

		if (error[0])
			json_put_str(answer, "error", error);
		json_put(asking->answer, response->claims[i]->key, answer);
	}
}

/* The messages of both requests are alike, by their descriptors they differ. */
static json_t *ask(struct dra_kubelet *kubelet, const char *version, const char *method,
		   const json_t *claims, struct ProtobufCMessage *message,
		   const struct ProtobufCMessageDescriptor *response,
		   void (*read)(struct asking *asking, const struct ProtobufCMessage *message))
{
	auto_free char *path =
		str_printf("/k8s.io.kubelet.pkg.apis.dra.%s.DRAPlugin/%s", version, method);
	size_t n = json_array_size(claims);
	auto_free Dra__Claim *list = mem_calloc(n + 1, sizeof(*list));
	auto_free Dra__Claim **pointers = mem_calloc(n + 1, sizeof(*pointers));
	Dra__NodePrepareResourcesRequest *request = (void *)message;

	for (size_t i = 0; i < n; i++) {
		const json_t *claim = json_array_get(claims, i);

		dra__claim__init(&list[i]);
		list[i].namespace_ = (char *)json_str_or(json_at(claim, "namespace"), "");
		list[i].name = (char *)json_str_or(json_at(claim, "name"), "");
		list[i].uid = (char *)json_str_or(json_at(claim, "uid"), "");
		pointers[i] = &list[i];
	}
	request->n_claims = n;
	request->claims = pointers;
	return call(kubelet, kubelet->client, path, message, response, read);
}

json_t *dra_kubelet_prepare(struct dra_kubelet *kubelet, const char *version, const json_t *claims)
{
	Dra__NodePrepareResourcesRequest request = DRA__NODE_PREPARE_RESOURCES_REQUEST__INIT;

	return ask(kubelet, version, "NodePrepareResources", claims, &request.base,
		   &dra__node_prepare_resources_response__descriptor, read_prepared);
}

json_t *dra_kubelet_unprepare(struct dra_kubelet *kubelet, const char *version,
			      const json_t *claims)
{
	Dra__NodeUnprepareResourcesRequest request = DRA__NODE_UNPREPARE_RESOURCES_REQUEST__INIT;

	return ask(kubelet, version, "NodeUnprepareResources", claims, &request.base,
		   &dra__node_unprepare_resources_response__descriptor, read_unprepared);
}

/* ---- health ---------------------------------------------------------------------------------- */

static void on_list(void *arg, const struct ProtobufCMessage *message)
{
	const Dra__NodeWatchResourcesResponse *list = (const void *)message;
	struct dra_kubelet *kubelet = arg;

	json_replace(&kubelet->health, json_array());
	kubelet->lists++;
	for (size_t i = 0; i < list->n_devices; i++) {
		const Dra__DeviceHealth *device = list->devices[i];

		json_array_append_new(kubelet->health,
				      json_pack("{s:s, s:s, s:i, s:s}", "pool",
						device->device->pool_name, "device",
						device->device->device_name, "health",
						(int)device->health, "message", device->message));
	}
}

static void on_watch_end(void *arg, const struct grpc_status *status)
{
}

void dra_kubelet_watch(struct dra_kubelet *kubelet, const char *version)
{
	Dra__NodeWatchResourcesRequest request = DRA__NODE_WATCH_RESOURCES_REQUEST__INIT;
	auto_free char *path = str_printf("/%s.DRAResourceHealth/NodeWatchResources", version);
	struct err err = {0};

	json_replace(&kubelet->health, NULL);
	kubelet->lists = 0;
	if (!grpc_client_call(kubelet->client,
			      &(struct grpc_request){
				      .path = path,
				      .message = &request.base,
				      .response = &dra__node_watch_resources_response__descriptor,
				      .is_streaming = true,
				      .message_fn = on_list,
				      .done = on_watch_end,
				      .arg = kubelet,
			      },
			      &err))
		abort();
}

const json_t *dra_kubelet_health(const struct dra_kubelet *kubelet, size_t *ret_lists)
{
	*ret_lists = kubelet->lists;
	return kubelet->health;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct dra_kubelet *dra_kubelet_new(struct loop *loop, const char *dir)
{
	struct dra_kubelet *kubelet = mem_new(struct dra_kubelet);

	kubelet->loop = loop;
	kubelet->dir = str_dup(dir);
	return kubelet;
}

void dra_kubelet_free(struct dra_kubelet *kubelet)
{
	if (!kubelet)
		return;
	grpc_client_free(kubelet->client);
	json_decref(kubelet->info);
	json_decref(kubelet->health);
	mem_free(kubelet->endpoint);
	mem_free(kubelet->dir);
	mem_free(kubelet);
}
