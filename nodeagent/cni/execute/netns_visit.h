// SPDX-License-Identifier: Apache-2.0
/*
 * One look at a pod's namespace, and steps in it, for those who keep none open.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_EXECUTE_NETNS_VISIT_H
#define ORBWEAVER_NODEAGENT_CNI_EXECUTE_NETNS_VISIT_H

#include <jansson.h>

#include "lib/base/err.h"

/*
 * Links and routes (nodeagent/cni/plan/look.h) of the namespace behind this descriptor; *ret is
 * new. Errors: netns.h.
 */
int netns_visit(int fd, json_t **ret, struct err *err);
/* Links alone. fd -1: of the namespace that we are in. */
int netns_visit_links(int fd, json_t **ret, struct err *err);

/* netns_execute() there (netns_execute.h) of steps that concern the pod alone. */
int netns_visit_execute(int fd, const json_t *steps, struct err *err);

/*
 * netns_announce() there (netns_detect.h), the last that a process does: the kernel ends it by
 * SIGALRM when that takes longer than NETNS_ANNOUNCE_S, as nobody waits for it.
 */
enum { NETNS_ANNOUNCE_S = 10 };
void netns_visit_announce(int fd, const json_t *announcements);

#endif
