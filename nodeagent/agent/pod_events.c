// SPDX-License-Identifier: Apache-2.0
/*
 * An event about a pod needs its UID, which the reporter does not have: the pod is read for each
 * event, since they are rare, and the recorder emits what was found. A pod that is gone gets none.
 */
#include "nodeagent/agent/pod_events.h"

#include <assert.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"

struct waiting {
	struct pod_events *events;
	struct waiting *next;
	struct kube_call *call;
	char *ns, *name, *reason, *message;
	bool warning;
};

struct pod_events {
	struct kube_client *client;
	struct recorder *recorder;
	struct waiting *waiting;
	size_t n_waiting;
};

static void waiting_free(struct waiting *waiting)
{
	mem_free(waiting->ns);
	mem_free(waiting->name);
	mem_free(waiting->reason);
	mem_free(waiting->message);
	mem_free(waiting);
}

static void on_pod(void *arg, json_t *object, const struct err *err)
{
	struct waiting *waiting = arg, **place = &waiting->events->waiting;

	if (!err || !str_eq(err->reason, "NotFound"))
		recorder_emit(waiting->events->recorder,
			      &(struct event_object){
				      .resource = &kube_pods,
				      .ns = waiting->ns,
				      .name = waiting->name,
				      .uid = object ? json_uid(object) : NULL,
			      },
			      waiting->warning, waiting->reason, waiting->message);
	while (*place != waiting)
		place = &(*place)->next;
	*place = waiting->next;
	waiting->events->n_waiting--;
	waiting_free(waiting);
}

void pod_events_emit(struct pod_events *events, const char *pod, bool warning, const char *reason,
		     const char *message)
{
	const char *slash = strchr(pod, '/');
	struct waiting *waiting;

	assert(reason && message);
	if (!slash || events->n_waiting == POD_EVENTS_WAITING_MAX)
		return;
	events->n_waiting++;
	waiting = mem_new(struct waiting);
	waiting->warning = warning;
	waiting->events = events;
	waiting->ns = str_ndup(pod, (size_t)(slash - pod));
	waiting->name = str_ndup(slash + 1, strcspn(slash + 1, "/"));
	waiting->reason = str_dup(reason);
	waiting->message = str_dup(message);
	waiting->next = events->waiting;
	events->waiting = waiting;
	waiting->call = kube_get_within(events->client, &kube_pods, waiting->ns, waiting->name,
					on_pod, waiting);
}

void pod_events_emit_users(struct pod_events *events, const struct meter_port *port, bool warning,
			   const char *reason, const char *message)
{
	auto_free char *text = str_printf("of a port that the pod uses: %s", message);
	json_auto_t *pods = meter_pods_on_port(port);
	const char *pod;
	json_t *value;

	json_each (pods, pod, value)
		pod_events_emit(events, pod, warning, reason, text);
}

struct pod_events *pod_events_new(struct kube_client *client, struct recorder *recorder)
{
	struct pod_events *events = mem_new(struct pod_events);

	assert(client && recorder);
	events->client = client;
	events->recorder = recorder;
	return events;
}

void pod_events_free(struct pod_events *events)
{
	if (!events)
		return;
	while (events->waiting) {
		struct waiting *waiting = events->waiting;

		events->waiting = waiting->next;
		kube_call_cancel(waiting->call);
		waiting_free(waiting);
	}
	mem_free(events);
}
