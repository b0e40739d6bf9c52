// SPDX-License-Identifier: Apache-2.0
/*
 * What plugins that make interfaces have in common: addresses of IPAM, set on an interface of the
 * pod.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/execute/plugins.h"

/* Does the configuration name an IPAM plugin? */
bool ipam_is_wanted(const struct plugin_call *call);

/*
 * Ask for addresses, put them into result (whose last interface is the call's), and, with
 * `configure`, set and announce them (ipam_announce()). done: steps that were done are appended.
 * After a failure the addresses are given back.
 */
int ipam_add(const struct plugin_call *call, bool configure, json_t *result, json_t *done,
	     struct err *err);

/* Set the addresses and routes of a result on the call's interface, and announce them. */
int ipam_configure(const struct plugin_call *call, const json_t *result, json_t *done,
		   struct err *err);

/*
 * The same with the addresses and routes of another result, in our shape, which stay whose they
 * are.
 */
int ipam_inherit(const struct plugin_call *call, const json_t *from, json_t *result, json_t *done,
		 struct err *err);

/* Have the caller tell the network of these addresses of the call's interface. */
void ipam_announce(const struct plugin_call *call, const json_t *addresses);

/* Give the addresses back. */
int ipam_del(const struct plugin_call *call, struct err *err);

/*
 * DEL of which no ADD is known: there may be addresses all the same. What the IPAM plugin cannot do
 * now is saved as {"ipam": true}, what it refuses is left. -1 with err when it cannot be saved.
 */
int ipam_del_unrecorded(const struct plugin_call *call, struct err *err);

/* In DEL: has the call addresses to give back? As ADD saved it, else by the configuration. */
bool ipam_is_owed(const struct plugin_call *call);

/*
 * The end of DEL of an interface with addresses. They go back only if the interface is `gone`,
 * since the next pod may have them at once. What is left is saved as { "ipam", key: value }, value
 * may be NULL; nothing is, if all is done. -1 with err when that cannot be saved.
 */
int ipam_finish_del(const struct plugin_call *call, bool gone, const char *key, const char *value,
		    struct err *err);
