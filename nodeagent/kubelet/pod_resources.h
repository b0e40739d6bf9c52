/*
 * Which pod has which device: the kubelet's PodResources API, asked on demand and every now and then.
 */
#ifndef ORBWEAVER_NODEAGENT_KUBELET_POD_RESOURCES_H
#define ORBWEAVER_NODEAGENT_KUBELET_POD_RESOURCES_H

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"

struct pod_resources;

struct pod_resources_config {
	const char *socket; /* "/var/lib/kubelet/pod-resources/kubelet.sock" */
	int64_t every_ms;   /* slow safety scan; 0 is POD_RESOURCES_EVERY_MS */
	int64_t wait_ms;    /* for a kubelet that is to start; 0 is POD_RESOURCES_WAIT_MS */
	/* Until a device that is not named any more is free; 0 is POD_RESOURCES_LOSE_MS. */
	int64_t lose_ms;
	/*
	 * {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}}, borrowed; called for the first answer and when it differs
	 * from the last; what is not named any more is in it for lose_ms. NULL, with why, once per different text, when nobody
	 * can say: the kubelet has no such API; no kubelet has ever been here (there is not even the socket's folder); or none
	 * has been there for wait_ms. One that listens and does not answer is waited for. A kubelet that is away for a while
	 * changes nothing: it gives nothing away meanwhile.
	 */
	void (*changed)(void *arg, const json_t *allocated, const struct err *err);
	void *arg;
};

enum {
	POD_RESOURCES_EVERY_MS = 10000,
	/* How often, before the first answer and while devices are not named any more. */
	POD_RESOURCES_SOON_MS = 500,
	/* A kubelet that has just started does not know its pods yet, and names none. */
	POD_RESOURCES_LOSE_MS = 5000,
	/* A kubelet that was started together with us has its sockets by then. */
	POD_RESOURCES_WAIT_MS = 30000,
};

struct pod_resources *pod_resources_new(struct loop *loop,
					const struct pod_resources_config *config);
/* Not from `changed`. Accepts NULL. */
void pod_resources_free(struct pod_resources *resources);

/* Ask again soon (an Allocate was answered, a VF came back). Asking often is asking a few times a second at most. */
void pod_resources_refresh(struct pod_resources *resources);

#endif
