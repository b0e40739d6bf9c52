/*
 * The device manager of a kubelet, on the test's own loop: serves Register, calls plugins back, counts what is allocatable.
 *
 * A real one cannot be told to hang, to refuse, to end a stream, or to be of another version; what the one of Debian's
 * sources does is tested in tests/integration/kubelet_test.sh. Behaviour by version: kubelet's pkg/kubelet/cm/devicemanager.
 */
#ifndef ORBWEAVER_TESTS_FAKES_KUBELET_H
#define ORBWEAVER_TESTS_FAKES_KUBELET_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "lib/loop/loop.h"

struct fake_kubelet;

enum fake_kubelet_kind {
	/* To 1.24: answers Register, then calls back; the end of a stream that was replaced is passed over. */
	FAKE_KUBELET_OLD,
	/*
	 * 1.25 to 1.35: calls back and asks for options before it answers; the end of any stream of a resource disconnects
	 * whoever is registered for it then (kubernetes#127803).
	 */
	FAKE_KUBELET_NEW,
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

/* Of all resources. */
size_t fake_kubelet_registrations(const struct fake_kubelet *kubelet);
size_t fake_kubelet_lists(const struct fake_kubelet *kubelet);
/* What was registered last: the endpoint, and the whole request as it would be on the wire, in hex. "" before. */
const char *fake_kubelet_endpoint(const struct fake_kubelet *kubelet);
const char *fake_kubelet_request(const struct fake_kubelet *kubelet);

/* Sockets of device plugins of ours that are in dir. */
size_t fake_kubelet_sockets(const char *dir);

#endif
