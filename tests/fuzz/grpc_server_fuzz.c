// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes of HTTP/2 into a server's calls, without sockets. First byte: the size of the pieces, and
 * what the handlers do. The preface is sent for the fuzzer. Every call that a handler was given
 * ends, by its answer or by being told.
 */
#include <stdint.h>

#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/grpc_wire.h"

#define MESSAGE_MAX 4096
#define HELD_MAX    8

struct handlers {
	struct held {
		struct grpc_call *call;
		struct handlers *handlers;
	} held[HELD_MAX];
	int open; /* calls that are neither answered nor ended */
};

static void on_end(void *arg, enum grpc_code why)
{
	struct held *held = arg;

	if (!held->call || why == GRPC_OK)
		abort();
	held->call = NULL;
	held->handlers->open--;
}

static void handle_now(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	grpc_call_reply(call, request);
}

static void handle_later(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	struct handlers *handlers = arg;

	for (size_t i = 0; i < HELD_MAX; i++) {
		if (handlers->held[i].call)
			continue;
		handlers->held[i] = (struct held){call, handlers};
		handlers->open++;
		grpc_call_on_end(call, on_end, &handlers->held[i]);
		return;
	}
	grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "%d calls are enough", HELD_MAX);
}

static void handle_stream(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	handle_later(call, request, arg);
	for (size_t i = 0; i < HELD_MAX; i++) {
		if (((struct handlers *)arg)->held[i].call != call)
			continue;
		(void)grpc_call_send_latest(call, request, NULL);
	}
}

static const struct grpc_method methods[] = {
	{"/v1beta1.DevicePlugin/Allocate", &device_plugin__allocate_request__descriptor,
	 handle_now},
	{"/v1beta1.DevicePlugin/GetDevicePluginOptions", &device_plugin__empty__descriptor,
	 handle_now},
	{"/v1beta1.DevicePlugin/PreStartContainer",
	 &device_plugin__pre_start_container_request__descriptor, handle_later},
	{"/v1beta1.DevicePlugin/ListAndWatch", &device_plugin__empty__descriptor, handle_stream},
	{"/v1beta1.Registration/Register", &device_plugin__register_request__descriptor,
	 handle_stream},
};

static void answer_held(struct handlers *handlers)
{
	for (size_t i = 0; i < HELD_MAX; i++) {
		struct grpc_call *call = handlers->held[i].call;

		if (!call)
			continue;
		handlers->held[i].call = NULL;
		handlers->open--;
		grpc_call_fail(call, GRPC_ABORTED, "the device%zu is \xff busy", i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	struct handlers handlers = {0};
	struct wire wire;
	bool go_on;
	size_t step;

	if (size < 1)
		return 0;
	step = (size_t)(data[0] & 0x3f) * 8 + 1;
	wire_open(&wire, methods, ARRAY_LEN(methods), MESSAGE_MAX, &handlers);
	go_on = wire_push(&wire, preface, sizeof(preface));
	for (size_t at = 1; at < size && go_on; at += step) {
		go_on = wire_push(&wire, data + at, size - at < step ? size - at : step);
		if (data[0] & 0x40)
			answer_held(&handlers);
	}
	if (go_on && data[0] & 0x80) {
		grpc_dispatch_close(&wire.dispatch);
		(void)wire_pull(&wire);
	}
	if (go_on && grpc_session_n_streams(wire.session) > 0)
		grpc_session_end(wire.session);
	(void)wire_pull(&wire);
	wire_close(&wire);
	if (handlers.open != 0)
		abort();
	return 0;
}
