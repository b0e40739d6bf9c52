// SPDX-License-Identifier: Apache-2.0
/*
 * What this node offers to its kubelet: pools from the NodeState and the users' configurations, as
 * device plugins; and what pods hold of it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"

struct offers;

/* What users say of it. */
struct offers_options {
	const char *resource_prefix; /* of resource names that have none of their own */
	/*
	 * Users' configurations: "/absolute/path" is a file, "NAME" a ConfigMap in our namespace,
	 * "NAMESPACE/NAME" one elsewhere, "" none.
	 */
	const char *shared_config; /* shared RDMA devices: config.json */
	const char *device_config; /* the SR-IOV device plugin's resourceList: config.json */
	const char *dev_files;     /* smarter-device-manager's list: conf.yaml */
	bool packed; /* preferred allocations fill one PF after the other instead of spreading */
	const char *job_files; /* resources whose pods get a folder (model/job_folder.h), or NULL */
};

struct offers_config {
	struct loop *loop;
	struct kube_client *client;
	/* Strings are borrowed for the life of the offers. */
	const char *node; /* its name */
	const char *ns;   /* where ConfigMaps named without a namespace are */
	int host_root;    /* the host's root, of which we need /dev; the caller's. -1: none */
	const char *kubelet_dir; /* the kubelet's /var/lib/kubelet, as we see it */
	bool no_kubelet;         /* no kubelet allocates devices here */
	struct offers_options options;
	bool dra;     /* devices may be given by claims (nodeagent/devices) */
	int kubeletd; /* connected to the process that serves the kubelet; taken */
	/* A connection to PodResources (pod_resources.h, `connect`); `arg` is ours. */
	int (*connect)(void *arg);
	/* offers_status() or offers_failures() may be another. From the loop. */
	void (*changed)(void *arg);
	/*
	 * {"0000:3b:00.2": "ns/pod"}, borrowed; NULL: it is unknown. Not before one of both is sure
	 * (pod_resources.h).
	 */
	void (*held)(void *arg, const json_t *held);
	/* What offers_withdraw() was called for last has happened. */
	void (*withdrawn)(void *arg);
	/*
	 * The answer to offers_look_at_devices(): named is NULL when the kubelet cannot say; served
	 * has the names of all resources that are offered. Both are borrowed. May be NULL.
	 */
	void (*devices)(void *arg, const json_t *named, const json_t *served);
	/* A configuration changed: offers_set() is due. */
	void (*wanted)(void *arg);
	/* Emit an event. */
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	/* The same about a pod, "ns/pod/container". */
	void (*emit_pod)(void *arg, const char *pod, const char *reason, const char *message);
	/*
	 * What pods were given is another (pools_given()); borrowed: the `given` of offers_set()
	 * from now on.
	 */
	void (*given)(void *arg, const json_t *given);
	/*
	 * Of these pools (dra_choice_claims()) ResourceSlices are to be published; what was said
	 * before stays until then. Borrowed. With `dra`, as the next.
	 */
	void (*publish)(void *arg, const json_t *pools);
	/* What is this claim (kubelet/kubeletd_client.h, `asked`)? offers_answer() is due. */
	void (*asked)(void *arg, const json_t *claim);
	/* Worth an event on a ConfigMap (pool_sources.h). */
	void (*wrong)(void *arg, const struct event_object *config_map, const char *reason,
		      const char *message);
	/* That process has ended: nothing can be offered any more. Called once. */
	void (*lost)(void *arg);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct offers *offers_new(const struct offers_config *config);
/* Before the client goes; not from a callback. What is offered stays offered. Accepts NULL. */
void offers_free(struct offers *offers);

/*
 * Offer what comes of this spec (NULL: none) on this host (NULL: not looked at yet). Borrowed.
 * is_known: it is sure that it is this spec, or none. given: what pods were given, as `given` has
 * reported it or an agent before us; NULL: not known. What an agent before us offered is left as it
 * is until that, the host and the configurations are known.
 */
void offers_set(struct offers *offers, const json_t *spec, const json_t *observed, bool is_known,
		const json_t *given);

/* "resources" of pools_compute(), borrowed until the loop turns; NULL: not computed yet. */
const json_t *offers_resources(const struct offers *offers);

/*
 * Resources that the Node gives by claims (dra_choice_read()), borrowed. With `dra` nothing is
 * offered before: it is unknown by which of both ways.
 */
void offers_choose(struct offers *offers, const json_t *chosen);
/* The answer to `asked`, as kubeletd_answer(). */
void offers_answer(struct offers *offers, const char *uid, const json_t *claim,
		   const struct err *why);

/*
 * These functions, {"0000:3b:00.2": …} (NULL: none any more), are about to be changed: make the
 * kubelet give none of them away, read what pods hold once more, report it with `held`, then call
 * `withdrawn`; not for NULL. Borrowed. What pods have stays theirs.
 */
void offers_withdraw(struct offers *offers, const json_t *devices);

/*
 * Ask the kubelet now who has which device, and call `devices` with an answer to that question
 * (pod_resources_named()).
 */
void offers_look_at_devices(struct offers *offers);

/*
 * What containers have, {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}} as the kubelet
 * said last (pod_resources.h), and what claims have, borrowed until the loop turns; NULL: not
 * known.
 */
const json_t *offers_allocated(const struct offers *offers);

/*
 * NULL when the kubelet has all that is to be offered, so that an agent before us is not needed any
 * more; else why not, in words, borrowed. That nothing is offered before the first offers_set()
 * with a host is for the caller to know.
 */
const char *offers_why_not_up(const struct offers *offers);

/* As pools_status(), `before` being the last one: new. */
json_t *offers_status(const struct offers *offers, const json_t *before);
/*
 * What is wrong with users' configurations, [{"reason", "message"}]: those that cannot be read, and
 * entries that do not do what they say. New.
 */
json_t *offers_failures(const struct offers *offers);
