// SPDX-License-Identifier: Apache-2.0
/*
 * Owners of pods for the labels of metrics, remembered while pods have devices. A gathering names
 * the pods; those that are not known are read one after the other behind it, so that a scrape never
 * waits for the API server and the next one has them.
 */
#include "nodeagent/agent/pod_owners.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/status.h"
#include "nodeagent/devices/meter_pods.h"

struct pod_owners {
	struct kube_client *client;
	json_t *known;  /* { "ns/pod": owner, or null: it has none } */
	json_t *wanted; /* { "ns/pod": true }, those that are not known, in the order of reads */
	struct kube_call *call;
	char *asked; /* the pod that `call` is about */
};

static void ask_next(struct pod_owners *owners);

static void on_pod(void *arg, json_t *object, const struct err *err)
{
	struct pod_owners *owners = arg;
	auto_free char *pod = take_ptr(owners->asked);
	json_t *owner;
	bool is_wanted;

	assert(pod);
	owners->call = NULL;
	is_wanted = json_object_del(owners->wanted, pod) == 0;
	/*
	 * The next scrape asks again, the others first; not now, when the API server may be in
	 * trouble.
	 */
	if (err && !kube_err_is(err, "NotFound")) {
		if (is_wanted)
			json_put_bool(owners->wanted, pod, true);
		return;
	}
	if (is_wanted) {
		owner = err ? NULL : meter_owner(object);
		(void)json_object_set_new(owners->known, pod, owner ? owner : json_null());
	}
	ask_next(owners);
}

static void ask_next(struct pod_owners *owners)
{
	void *first = json_object_iter(owners->wanted);
	const char *pod = first ? json_object_iter_key(first) : NULL, *slash;
	auto_free char *ns = NULL;

	if (!pod || owners->call)
		return;
	slash = strchr(pod, '/');
	assert(slash && !owners->asked);
	ns = str_ndup(pod, (size_t)(slash - pod));
	owners->asked = str_dup(pod);
	owners->call = kube_get_within(owners->client, &kube_pods, ns, slash + 1, on_pod, owners);
}

const json_t *pod_owners_of(struct pod_owners *owners, const json_t *pods)
{
	json_t *known = json_object(), *wanted = json_object(), *pod;
	json_auto_t *unknown = json_object();
	const char *key;

	json_each (pods, key, pod) {
		const char *name = json_string_value(pod);
		json_t *owner = name ? json_object_get(owners->known, name) : NULL;

		if (owner)
			json_put(known, name, json_incref(owner));
		else if (name && strchr(name, '/'))
			json_put_bool(unknown, name, true);
	}
	json_each (owners->wanted, key, pod)
		if (json_object_get(unknown, key))
			json_put_bool(wanted, key, true);
	(void)json_object_update(wanted, unknown);
	json_decref(owners->known);
	json_decref(owners->wanted);
	owners->known = known;
	owners->wanted = wanted;
	ask_next(owners);
	return owners->known;
}

struct pod_owners *pod_owners_new(struct kube_client *client)
{
	struct pod_owners *owners = mem_new(struct pod_owners);

	assert(client);
	owners->client = client;
	owners->known = json_object();
	owners->wanted = json_object();
	return owners;
}

void pod_owners_free(struct pod_owners *owners)
{
	if (!owners)
		return;
	if (owners->call)
		kube_call_cancel(owners->call);
	json_decref(owners->known);
	json_decref(owners->wanted);
	mem_free(owners->asked);
	mem_free(owners);
}
