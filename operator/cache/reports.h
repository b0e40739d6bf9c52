// SPDX-License-Identifier: Apache-2.0
/*
 * What nodes contribute to the status of policies, kept between the two reconcilers that write and
 * read it.
 *
 * Everything here follows from nodes, NodeStates and policies and is built anew after a start
 * (plan.h, plan_report). Stored as text: with 10,000 nodes a megabyte per policy.
 */
#ifndef ORBWEAVER_OPERATOR_CACHE_REPORTS_H
#define ORBWEAVER_OPERATOR_CACHE_REPORTS_H

#include <jansson.h>

struct reports;

struct reports *reports_new(void);
void reports_free(struct reports *reports);

/*
 * All that the node says from now on: { policy key: report }. changed(arg, policy key) is called
 * for each policy for which the node now says something else than before, or nothing any more.
 */
void reports_set(struct reports *reports, const char *node, const json_t *policies,
		 void (*changed)(void *arg, const char *policy), void *arg);

/* { node: report } of one policy; an empty object when there is none. Returns new. */
json_t *reports_of(const struct reports *reports, const char *policy);

#endif
