// SPDX-License-Identifier: Apache-2.0
/*
 * One look at a namespace, and steps in it, between plugins. `namespaces` is the list that the
 * worker's plugins share (attach_call.namespaces): NULL at first, each is opened once.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "nodeagent/cni/execute/netns_observe.h"

/* netns_observe() of the namespace behind this descriptor. *ret is new. Errors: netns.h. */
int netns_visit(struct netns **namespaces, int fd, unsigned int parts, json_t **ret,
		struct err *err);
/* Links of the namespace that we are in, which is not kept open. */
int netns_visit_links(json_t **ret, struct err *err);

/* netns_execute() there (netns_execute.h) of steps that concern the pod alone. */
int netns_visit_execute(struct netns **namespaces, int fd, const json_t *steps, struct err *err);

/*
 * netns_announce() there (netns_detect.h), the last that a process does: the kernel ends it by
 * SIGALRM when that takes longer than NETNS_ANNOUNCE_S, as nobody waits for it.
 */
enum { NETNS_ANNOUNCE_S = 10 };
void netns_visit_announce(struct netns **namespaces, int fd, const json_t *announcements);

/* Close them all. */
void netns_visit_end(struct netns **namespaces);
