// SPDX-License-Identifier: Apache-2.0
/*
 * Endpoints that are read before a NIC asks: of a pod whose NICs are about to, and of each that is
 * new on this node, while its kubelet begins with it. The leader is at that one at the same time,
 * so that it is read when it is likely to be done, and then again, less and less often.
 */
#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/ipam/endpoint.h"

/* Before each read of a new pod's. A request meanwhile reads for itself. */
static const int64_t pauses_ms[] = {200, 1000, 5000};

/* This long after CNI wanted an address the node's pods are taken to want more. */
enum { IN_USE_MS = 3600000 };

struct foresight {
	TAILQ_ENTRY(foresight) link;
	struct addresses *addresses;
	char *ns, *name, *uid; /* of the pod */
	bool is_of_new_pod;
	size_t reads;
	int64_t begun_ms; /* the read that is under way */
	struct kube_call *call;
	struct timer *due;
};

static void foresight_free(struct foresight *foresight)
{
	TAILQ_REMOVE(&foresight->addresses->foresights, foresight, link);
	kube_call_cancel(foresight->call);
	timer_free(foresight->due);
	mem_free(foresight->ns);
	mem_free(foresight->name);
	mem_free(foresight->uid);
	mem_free(foresight);
}

static bool is_worth_another(const struct foresight *foresight, const struct err *err)
{
	int64_t asked_ms = foresight->addresses->asked_ms;

	return foresight->is_of_new_pod && foresight->reads < ARRAY_LEN(pauses_ms) &&
	       (!err || kube_err_is(err, "NotFound")) &&
	       /* Other IPAM plugins' pods have no endpoint, and looking for it gains nothing. */
	       asked_ms && clock_ms() - asked_ms < IN_USE_MS;
}

/* Whether it has what is needed, the request finds out. */
static void on_read(void *arg, json_t *endpoint, const struct err *err)
{
	struct foresight *foresight = arg;
	json_auto_t *read = NULL;

	foresight->call = NULL;
	/* The leader's work is done: more than nothing was given, and to this pod. */
	if (str_eq(endpoint_uid(endpoint), foresight->uid) &&
	    json_array_size(json_at(endpoint, "status", "current", "ips")) > 0) {
		/* Without the half of it that the agent does not read. */
		read = json_pack("{s:{s:O*}, s:O*}", "metadata", "annotations",
				 json_at(endpoint, "metadata", "annotations"), "status",
				 json_at(endpoint, "status"));
		recent_keep(foresight->addresses, foresight->uid, read, foresight->begun_ms,
			    foresight->is_of_new_pod ? ADDRESSES_FORESEEN_MS : ADDRESSES_RECENT_MS);
	} else if (is_worth_another(foresight, err)) {
		timer_start(foresight->due, pauses_ms[foresight->reads]);
		return;
	}
	foresight_free(foresight);
}

static void begin_read(void *arg)
{
	struct foresight *foresight = arg;
	const struct addresses_config *config = &foresight->addresses->config;

	assert(!foresight->call);
	/* Its NICs did not wait for this. */
	if (foresight->is_of_new_pod && config->holds(config->arg, foresight->uid)) {
		foresight_free(foresight);
		return;
	}
	foresight->reads++;
	foresight->begun_ms = clock_ms();
	foresight->call = kube_get_within(config->client, &addresses_endpoint, foresight->ns,
					  foresight->name, on_read, foresight);
}

static struct foresight *foresight_new(struct addresses *addresses, const char *ns,
				       const char *name, const char *uid)
{
	struct foresight *foresight = mem_new(struct foresight);

	assert(ns && name && !str_empty(uid));
	foresight->addresses = addresses;
	foresight->ns = str_dup(ns);
	foresight->name = str_dup(name);
	foresight->uid = str_dup(uid);
	foresight->due = timer_new(addresses->config.loop, begin_read, foresight);
	TAILQ_INSERT_TAIL(&addresses->foresights, foresight, link);
	return foresight;
}

void addresses_foresee(struct addresses *addresses, const char *ns, const char *name,
		       const char *uid)
{
	if (!recent_find(addresses, uid, true))
		begin_read(foresight_new(addresses, ns, name, uid));
}

void foresight_of_new_pod(struct addresses *addresses, const char *ns, const char *name,
			  const char *uid)
{
	struct foresight *foresight = foresight_new(addresses, ns, name, uid);

	assert(addresses->config.holds);
	foresight->is_of_new_pod = true;
	timer_start(foresight->due, pauses_ms[0]);
}

void foresight_forget(struct addresses *addresses, const char *uid)
{
	struct foresight *foresight = TAILQ_FIRST(&addresses->foresights), *next;

	for (; foresight; foresight = next) {
		next = TAILQ_NEXT(foresight, link);
		if (str_eq(foresight->uid, uid))
			foresight_free(foresight);
	}
}

void foresight_free_all(struct addresses *addresses)
{
	while (!TAILQ_EMPTY(&addresses->foresights))
		foresight_free(TAILQ_FIRST(&addresses->foresights));
}
