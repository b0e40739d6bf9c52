// SPDX-License-Identifier: Apache-2.0
/*
 * A question is one read of the pod, then one of each definition that it names, then, where one of
 * those has a resource, one look of the kubelet at devices; or one patch of network-status. The
 * meta plugin's worker decides from the answer; only what it reads of the objects is passed on.
 */
#include "nodeagent/pod_networks/networks.h"

#include <assert.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "nodeagent/cni/plan/delegates.h"
#include "reconcilers/core/networks.h"

static const struct kube_resource definitions = {
	"k8s.cni.cncf.io",
	"v1",
	"network-attachment-definitions",
	"NetworkAttachmentDefinition",
	true,
};

/* One definition that is being read. */
struct reading {
	struct networks_question *question;
	char *key; /* "namespace/name" */
	struct kube_call *call;
};

struct networks_question {
	struct networks *networks;
	struct networks_question *next;
	json_t *asked;
	json_t *answer;
	struct kube_call *call; /* for the pod */
	struct reading *readings;
	size_t n_readings, n_open;
	enum {
		DEVICES_NOT,
		DEVICES_NEXT,
		DEVICES_ASKED
	} devices;                 /* of which look they will come */
	struct deferred *deferred; /* when the answer is there at once */
	struct err failure;
	networks_done_fn *done;
	void *arg;
};

struct networks {
	struct networks_config config;
	struct networks_question *questions;
	bool is_looking; /* at devices: an answer is due */
};

struct networks *networks_new(const struct networks_config *config)
{
	struct networks *networks = mem_new(struct networks);

	networks->config = *config;
	return networks;
}

static void question_free(struct networks_question *q)
{
	struct networks_question **at = &q->networks->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	kube_call_cancel(q->call);
	for (size_t i = 0; i < q->n_readings; i++) {
		kube_call_cancel(q->readings[i].call);
		free(q->readings[i].key);
	}
	mem_free(q->readings);
	deferred_free(q->deferred);
	json_decref(q->asked);
	json_decref(q->answer);
	mem_free(q);
}

void networks_free(struct networks *networks)
{
	if (!networks)
		return;
	while (networks->questions)
		question_free(networks->questions);
	mem_free(networks);
}

void networks_cancel(struct networks_question *question)
{
	if (question)
		question_free(question);
}

static void end_question(struct networks_question *q, const struct err *err)
{
	assert(!q->call && q->n_open == 0);
	q->done(q->arg, err ? NULL : q->answer, err);
	question_free(q);
}

static const char *pod_ns(const struct networks_question *q)
{
	return json_str_or(json_at(q->asked, "pod", "namespace"), "");
}

static const char *pod_name(const struct networks_question *q)
{
	return json_str_or(json_at(q->asked, "pod", "name"), "");
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Those of the pod: [{"container", "resource", "ids"}], new. */
static json_t *devices_of_pod(const struct networks_question *q, const json_t *allocated)
{
	auto_free char *prefix = str_printf("%s/%s/", pod_ns(q), pod_name(q));
	json_t *found = json_array(), *devices, *owner;
	const char *resource, *id;

	json_each (allocated, resource, devices)
		json_each (devices, id, owner) {
			const char *text = json_str_or(owner, "");

			if (str_starts(text, prefix))
				json_array_append_new(found,
						      json_pack("{s:s, s:s, s:[s]}", "container",
								text + strlen(prefix), "resource",
								resource, "ids", id));
		}
	return found;
}

/*
 * Answers are due to questions that were put before the look began; the others have one of their
 * own.
 */
static void start_look(struct networks *networks)
{
	bool any = false;

	if (networks->is_looking)
		return;
	for (struct networks_question *q = networks->questions; q; q = q->next) {
		if (q->devices == DEVICES_NEXT)
			q->devices = DEVICES_ASKED;
		any |= q->devices == DEVICES_ASKED;
	}
	networks->is_looking = any;
	if (!any)
		return;
	if (networks->config.look_at_devices)
		networks->config.look_at_devices(networks->config.arg);
	else
		networks_devices(networks, NULL, NULL);
}

void networks_devices(struct networks *networks, const json_t *named, const json_t *served)
{
	struct networks_question *q, *next;
	struct err why = {0};

	networks->is_looking = false;
	for (q = networks->questions; q; q = next) {
		next = q->next;
		if (q->devices != DEVICES_ASKED)
			continue;
		if (named) {
			json_put(q->answer, "devices", devices_of_pod(q, named));
			json_put(q->answer, "served", served ? json_deep_copy(served) : NULL);
			end_question(q, NULL);
			continue;
		}
		(void)err_set(
			&why, ERR_TRANSIENT, "PodResourcesUnavailable",
			"the kubelet does not say which devices the pod has; the runtime tries "
			"again");
		end_question(q, &why);
	}
	start_look(networks);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void look_at_devices(struct networks_question *q)
{
	bool is_needed = false;
	const char *key;
	json_t *nad;

	json_each (json_at(q->answer, "nads"), key, nad)
		is_needed |= !str_empty(
			json_str_at(nad, "metadata", "annotations", META_RESOURCE_ANNOTATION));
	if (!is_needed) {
		end_question(q, NULL);
		return;
	}
	q->devices = DEVICES_NEXT;
	start_look(q->networks);
}

/* What the meta plugin reads of it: definitions may carry anything. */
static json_t *trim_definition(const json_t *object)
{
	json_t *nad = json_object(), *metadata = json_need_object(nad, "metadata");

	json_put_str(metadata, "name", json_name(object));
	json_put_str(metadata, "namespace", json_namespace(object));
	json_put_str(json_need_object(metadata, "annotations"), META_RESOURCE_ANNOTATION,
		     json_str_at(object, "metadata", "annotations", META_RESOURCE_ANNOTATION));
	json_put_str(json_need_object(nad, "spec"), "config",
		     json_str_at(object, "spec", "config"));
	return nad;
}

/* One that does not exist is left out: the meta plugin says so, in its words. */
static void on_definition(void *arg, json_t *object, const struct err *err)
{
	struct reading *reading = arg;
	struct networks_question *q = reading->question;

	reading->call = NULL;
	assert(q->n_open > 0);
	q->n_open--;
	if (object)
		json_object_set_new(json_at(q->answer, "nads"), reading->key,
				    trim_definition(object));
	else if (!str_eq(err->reason, "NotFound") && !q->failure.reason[0])
		q->failure = *err;
	if (q->n_open > 0)
		return;
	if (q->failure.reason[0])
		end_question(q, &q->failure);
	else
		look_at_devices(q);
}

static void read_definitions(struct networks_question *q, const json_t *wanted)
{
	json_t *item;
	size_t i;

	q->n_readings = q->n_open = json_array_size(wanted);
	q->readings = mem_calloc(q->n_readings, sizeof(*q->readings));
	json_array_foreach (wanted, i, item) {
		struct reading *reading = &q->readings[i];
		const char *key = json_string_value(item), *slash = strchr(key, '/');
		auto_free char *ns = str_ndup(key, (size_t)(slash - key));

		reading->question = q;
		reading->key = str_dup(key);
		reading->call = kube_get_within(q->networks->config.client, &definitions, ns,
						slash + 1, on_definition, reading);
	}
}

/* ---- the pod --------------------------------------------------------------------------------- */

static json_t *trim_containers(const json_t *containers)
{
	json_t *kept = json_array(), *container, *value;
	const char *resource;
	size_t i;

	json_array_foreach (containers, i, container) {
		json_t *limits = json_object();

		/* Extended resources have a domain; others are not devices. */
		json_each (json_at(container, "resources", "limits"), resource, value)
			if (strchr(resource, '/'))
				json_object_set(limits, resource, value);
		json_array_append_new(kept, json_pack("{s:O?, s:{s:o}}", "name",
						      json_object_get(container, "name"),
						      "resources", "limits", limits));
	}
	return kept;
}

static json_t *trim_pod(const json_t *object)
{
	static const char *const annotations[] = {NETWORKS_ANNOTATION, DEFAULT_NETWORK_ANNOTATION,
						  "kubernetes.io/config.source"};
	json_t *pod = json_object(), *metadata = json_need_object(pod, "metadata");
	json_t *kept = json_need_object(metadata, "annotations");
	json_t *spec = json_need_object(pod, "spec");

	json_put_str(metadata, "name", json_name(object));
	json_put_str(metadata, "namespace", json_namespace(object));
	json_put_str(metadata, "uid", json_uid(object));
	for (size_t i = 0; i < ARRAY_LEN(annotations); i++)
		json_put_str(kept, annotations[i],
			     json_str_at(object, "metadata", "annotations", annotations[i]));
	json_put(spec, "containers", trim_containers(json_at(object, "spec", "containers")));
	json_put(spec, "initContainers",
		 trim_containers(json_at(object, "spec", "initContainers")));
	return pod;
}

static void on_pod(void *arg, json_t *object, const struct err *err)
{
	struct networks_question *q = arg;
	json_auto_t *wanted = NULL;
	struct err why = {0};

	q->call = NULL;
	if (!object) {
		end_question(q, str_eq(err->reason, "NotFound") ? NULL : err);
		return;
	}
	json_put(q->answer, "pod", trim_pod(object));
	json_put(q->answer, "nads", json_object());
	wanted = meta_wanted(json_at(q->asked, "config"), json_at(q->answer, "pod"), &why);
	if (!wanted)
		end_question(q, &why);
	else if (json_array_size(wanted) == 0)
		end_question(q, NULL);
	else
		read_definitions(q, wanted);
}

/* ---- status ---------------------------------------------------------------------------------- */

/* A pod that is gone needs none. */
static void on_status(void *arg, json_t *object, const struct err *err)
{
	struct networks_question *q = arg;

	q->call = NULL;
	if (err && !str_eq(err->reason, "NotFound")) {
		log_warn("network-status of a pod cannot be written", F_STR("namespace", pod_ns(q)),
			 F_STR("pod", pod_name(q)), F_ERR(err));
		end_question(q, err);
		return;
	}
	end_question(q, NULL);
}

/* The UID is a precondition: another pod of that name has other networks. */
static void write_status(struct networks_question *q)
{
	const struct event_object object = {
		.resource = &kube_pods,
		.ns = pod_ns(q),
		.name = pod_name(q),
		.uid = json_str_at(q->asked, "pod", "uid"),
	};
	json_auto_t *patch = json_object();
	json_t *metadata = json_need_object(patch, "metadata"), *text;
	size_t i;

	json_put_str(metadata, "uid", object.uid);
	json_put_str(json_need_object(metadata, "annotations"), NETWORK_STATUS_ANNOTATION,
		     json_str_at(q->asked, "text"));
	q->call = kube_patch(
		q->networks->config.client, &kube_pods, pod_ns(q), pod_name(q), KUBE_PATCH_MERGE,
		patch,
		&(struct kube_write){.subresource = "status", .field_manager = "orbweaver-agent"},
		on_status, q);
	json_array_foreach (json_at(q->asked, "added"), i, text)
		recorder_emit(q->networks->config.recorder, &object, false, "AddedInterface",
			      json_str_or(text, ""));
}

/* ---- questions ------------------------------------------------------------------------------- */

bool networks_knows(const char *what)
{
	return str_eq(what, "networks") || str_eq(what, "status");
}

static void on_refused(void *arg)
{
	struct networks_question *q = arg;

	end_question(q, &q->failure);
}

struct networks_question *networks_ask(struct networks *networks, const json_t *question,
				       networks_done_fn *done, void *arg)
{
	struct networks_question *q = mem_new(struct networks_question);

	assert(done && networks_knows(json_str_at(question, "kind")));
	q->networks = networks;
	q->asked = json_deep_copy(question);
	q->answer = json_object();
	q->done = done;
	q->arg = arg;
	q->next = networks->questions;
	networks->questions = q;
	if (!*pod_ns(q) || !*pod_name(q)) {
		(void)err_set(
			&q->failure, ERR_INVALID, "BadEnvironment",
			"CNI_ARGS has no K8S_POD_NAMESPACE and K8S_POD_NAME: the runtime has to "
			"send them");
		q->deferred = deferred_new(networks->config.loop, on_refused, q);
		deferred_run(q->deferred);
	} else if (str_eq(json_str_at(question, "kind"), "status")) {
		write_status(q);
	} else {
		q->call = kube_get_within(networks->config.client, &kube_pods, pod_ns(q),
					  pod_name(q), on_pod, q);
	}
	return q;
}
