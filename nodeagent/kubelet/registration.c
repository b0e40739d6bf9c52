// SPDX-License-Identifier: Apache-2.0
/* A connection for one call: the kubelet expects nothing else of it. */
#include "nodeagent/kubelet/registration.h"

#include "lib/base/mem.h"
#include "lib/grpc/client.h"
#include "lib/grpc/proto/device_plugin.pb-c.h"

struct registration {
	struct grpc_client *client;
	int64_t timeout_ms;
	void (*done)(void *arg, const struct err *why);
	void *arg;
};

static void on_done(void *arg, const struct grpc_status *status)
{
	struct registration *registration = arg;
	struct err err = {0};

	if (status->code == GRPC_OK) {
		registration->done(registration->arg, NULL);
		return;
	}
	/*
	 * A Go server says Unknown to whatever its handler did not like, with the reason as text.
	 * What gRPC says by itself is about the connection.
	 */
	switch (status->code) {
	case GRPC_DEADLINE_EXCEEDED:
		(void)err_set(&err, ERR_TRANSIENT, "KubeletSilent",
			      "the kubelet has not answered Register within %lld s",
			      (long long)registration->timeout_ms / 1000);
		break;
	case GRPC_UNAVAILABLE:
	case GRPC_CANCELLED:
	case GRPC_INTERNAL:
		(void)err_set(&err, ERR_TRANSIENT, "KubeletUnavailable",
			      "the kubelet was lost during Register: %s", status->text);
		break;
	default:
		(void)err_set(&err, ERR_INVALID, "RegisterRefused",
			      "the kubelet refuses the resource: %s (%s)", status->text,
			      grpc_code_name(status->code));
	}
	registration->done(registration->arg, &err);
}

static int call(struct registration *registration, const struct registration_config *config,
		struct err *err)
{
	DevicePlugin__RegisterRequest request = DEVICE_PLUGIN__REGISTER_REQUEST__INIT;
	DevicePlugin__DevicePluginOptions options = DEVICE_PLUGIN__DEVICE_PLUGIN_OPTIONS__INIT;

	/* Up to 1.24 these count, later ones ask GetDevicePluginOptions. */
	options.get_preferred_allocation_available = true;
	request.version = (char *)"v1beta1";
	request.endpoint = (char *)config->endpoint;
	request.resource_name = (char *)config->resource;
	request.options = &options;
	return grpc_client_call(registration->client,
				&(struct grpc_request){
					.path = "/v1beta1.Registration/Register",
					.message = &request.base,
					.response = &device_plugin__empty__descriptor,
					.timeout_ms = registration->timeout_ms,
					.done = on_done,
					.arg = registration,
				},
				err)
		       ? 0
		       : -1;
}

struct registration *registration_new(struct loop *loop, const struct registration_config *config,
				      struct err *err)
{
	struct registration *registration = mem_new(struct registration);
	struct err cause = {0};

	registration->timeout_ms =
		config->timeout_ms ? config->timeout_ms : REGISTRATION_TIMEOUT_MS;
	registration->done = config->done;
	registration->arg = config->arg;
	registration->client = grpc_client_new(
		loop, &(struct grpc_client_config){.path = config->kubelet}, &cause);
	if (registration->client && call(registration, config, &cause) == 0)
		return registration;
	(void)err_set(err, ERR_TRANSIENT, "KubeletUnavailable", "%s", cause.text);
	registration_free(registration);
	return NULL;
}

void registration_free(struct registration *registration)
{
	if (!registration)
		return;
	grpc_client_free(registration->client);
	mem_free(registration);
}
