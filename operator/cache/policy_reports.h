// SPDX-License-Identifier: Apache-2.0
/*
 * What nodes contribute to the status of policies, kept between the two reconcilers that write and
 * read it.
 *
 * Everything here follows from nodes, NodeStates and policies and is built anew after a start
 * (plan.h, plan_report). Stored as text: with 10,000 nodes a megabyte per policy.
 */
#pragma once

#include <jansson.h>

struct policy_reports;

struct policy_reports *policy_reports_new(void);
void policy_reports_free(struct policy_reports *reports);

/*
 * All that the node says from now on: { policy key: report }. changed(arg, policy key) is called
 * for each policy for which the node now says something else than before, or nothing any more.
 */
void policy_reports_set(struct policy_reports *reports, const char *node, const json_t *policies,
			void (*changed)(void *arg, const char *policy), void *arg);

/* { node: report } of one policy; an empty object when there is none. Returns new. */
json_t *policy_reports_of(const struct policy_reports *reports, const char *policy);
