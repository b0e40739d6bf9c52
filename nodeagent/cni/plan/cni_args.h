// SPDX-License-Identifier: Apache-2.0
/*
 * CNI_ARGS: "K=V;K=V" (containernetworking/cni, SPEC.md, "Parameters"). Pure.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_PLAN_CNI_ARGS_H
#define ORBWEAVER_NODEAGENT_CNI_PLAN_CNI_ARGS_H

/* The value of the first pair of this key, new; NULL: there is none. args may be NULL. */
char *cni_args_value(const char *args, const char *key);

#endif
