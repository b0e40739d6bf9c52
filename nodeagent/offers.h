/*
 * What this node offers to its kubelet: pools from the NodeState and the users' configurations, as device plugins; and
 * what pods hold of it.
 */
#ifndef ORBWEAVER_NODEAGENT_OFFERS_H
#define ORBWEAVER_NODEAGENT_OFFERS_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/client.h"
#include "nodeagent/options.h"

struct offers;

struct offers_config {
	struct loop *loop;
	struct kube_client *client;
	const struct agent_options *options; /* borrowed */
	int plugind; /* connected to the process that serves the kubelet; taken */
	/* offers_status() or offers_failures() may be another. From the loop. */
	void (*changed)(void *arg);
	/* {"0000:3b:00.2": "ns/pod"}, borrowed; NULL: nobody can say. Not before one of both is sure (pod_resources.h). */
	void (*held)(void *arg, const json_t *held);
	/* A configuration changed: offers_set() is due. */
	void (*wanted)(void *arg);
	/* Worth an event. */
	void (*told)(void *arg, bool warning, const char *reason, const char *message);
	/* That process has ended: nothing can be offered any more. Called once. */
	void (*lost)(void *arg);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct offers *offers_new(const struct offers_config *config);
/* Before the client goes; not from a callback. What is offered stays offered. Accepts NULL. */
void offers_free(struct offers *offers);

/*
 * Offer what comes of this spec (NULL: none) on this host (NULL: not looked at yet). Borrowed. is_known: it is sure that it is
 * this spec, or none. What an agent before us offered is left as it is until that, the host and the configurations are known.
 */
void offers_set(struct offers *offers, const json_t *spec, const json_t *observed, bool is_known);

/*
 * NULL when the kubelet has all that is to be offered, so that an agent before us is not needed any more; else why not, in
 * words, borrowed. That nothing is offered before the first offers_set() with a host is for the caller to know.
 */
const char *offers_why_not_up(const struct offers *offers);

/* As device_plugins_status(): new. */
json_t *offers_status(const struct offers *offers);
/* Configurations that cannot be read, [{"reason", "message"}]: new. */
json_t *offers_failures(const struct offers *offers);

#endif
