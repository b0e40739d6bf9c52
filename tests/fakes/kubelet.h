// SPDX-License-Identifier: Apache-2.0
/*
 * The device manager of a kubelet, on the test's own loop: serves Register, calls plugins back,
 * counts what is allocatable.
 *
 * A real one cannot be told to hang, to refuse, to end a stream, or to be of another version; what
 * the one of Debian's sources does is tested in tests/integration/kubelet_test.sh. Behaviour by
 * version: kubelet's pkg/kubelet/cm/devicemanager.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "lib/loop/loop.h"

struct fake_kubelet;

enum fake_kubelet_kind {
	/*
	 * To 1.24: answers Register, then calls back; the end of a stream that was replaced is
	 * passed over.
	 */
	FAKE_KUBELET_OLD,
	/*
	 * 1.25 to 1.35: calls back and asks for options before it answers; the end of any stream of
	 * a resource disconnects whoever is registered for it then (kubernetes#127803).
	 */
	FAKE_KUBELET_NEW,
	/*
	 * Since 1.36: as NEW, and the end of a stream concerns its own registration alone
	 * (kubernetes#135437).
	 */
	FAKE_KUBELET_NEWEST,
	/* What a kubelet might do: a new registration ends the stream of the one before. */
	FAKE_KUBELET_STRICT,
};

enum fake_kubelet_mood {
	FAKE_KUBELET_WELL,
	FAKE_KUBELET_REFUSES,  /* Register fails */
	FAKE_KUBELET_HANGS,    /* Register is never answered */
	FAKE_KUBELET_IGNORES,  /* Register is answered, and nothing follows */
	FAKE_KUBELET_RESTLESS, /* each stream is ended after its first list */
};

/* Removes the sockets in dir, as kubelets do when they start, and serves kubelet.sock. */
struct fake_kubelet *fake_kubelet_new(struct loop *loop, const char *dir,
				      enum fake_kubelet_kind kind);
/*
 * Plugins that register from now on are called with their socket's path as :authority, as kubelets
 * to 1.25 do (kubernetes#112597); else "localhost".
 */
void fake_kubelet_dial_by_path(struct fake_kubelet *kubelet);
/* Its streams and its socket are gone at once. Turns the loop. */
void fake_kubelet_free(struct fake_kubelet *kubelet);

void fake_kubelet_set_mood(struct fake_kubelet *kubelet, enum fake_kubelet_mood mood);
/* Cancel the stream of the resource. */
void fake_kubelet_end_stream(struct fake_kubelet *kubelet, const char *resource);

/* Healthy devices while the resource's current stream is open, else 0; and all devices. */
size_t fake_kubelet_allocatable(const struct fake_kubelet *kubelet, const char *resource);
size_t fake_kubelet_capacity(const struct fake_kubelet *kubelet, const char *resource);
/* The lowest allocatable of any resource at any event since it was last asked. */
size_t fake_kubelet_lowest(struct fake_kubelet *kubelet);

/* The last list of the resource; borrowed until the next. NULL: none, or its stream has ended. */
const DevicePlugin__ListAndWatchResponse *fake_kubelet_list(const struct fake_kubelet *kubelet,
							    const char *resource);
/* What it said about itself: in Register, and to kubelets since 1.25 when they asked. */
bool fake_kubelet_may_prefer(const struct fake_kubelet *kubelet, const char *resource);
/*
 * Call a method of the plugin that is registered. True when it answered well; *ret_answer is new
 * then, of the type `response`, for grpc_message_free(). Else *ret_why is its text. Turns the loop.
 */
bool fake_kubelet_call(struct fake_kubelet *kubelet, const char *resource, const char *method,
		       const struct ProtobufCMessage *message,
		       const struct ProtobufCMessageDescriptor *response,
		       struct ProtobufCMessage **ret_answer, char **ret_why);

/* Of all resources. */
size_t fake_kubelet_registrations(const struct fake_kubelet *kubelet);
size_t fake_kubelet_lists(const struct fake_kubelet *kubelet);
/*
 * What was registered last: the endpoint, and the whole request as it would be on the wire, in hex.
 * "" before.
 */
const char *fake_kubelet_endpoint(const struct fake_kubelet *kubelet);
const char *fake_kubelet_request(const struct fake_kubelet *kubelet);

/* Sockets of device plugins of ours that are in dir. */
size_t fake_kubelet_sockets(const char *dir);
