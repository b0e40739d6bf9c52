// SPDX-License-Identifier: Apache-2.0
/*
 * What plugins that make or change the call's interface have in common: to find it, to refuse a
 * name that is taken.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/execute/plugins.h"

/* A link of the pod, appended to `look`; *ret NULL without an error: there is none. */
int interface_find(const struct plugin_call *call, const char *name, json_t *look,
		   const json_t **ret, struct err *err);

/* ERR_INVALID "InterfaceExists" where the pod has an interface of the call's name. */
int interface_refuse_taken(const struct plugin_call *call, struct err *err);

/* What the pod has, for CHECK (cni/plan/interface.h). *ret: new. */
int interface_look(const struct plugin_call *call, json_t **ret, struct err *err);
