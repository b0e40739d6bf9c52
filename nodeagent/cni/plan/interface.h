// SPDX-License-Identifier: Apache-2.0
/* An interface gets what IPAM said: addresses and routes; CHECK compares them. Pure. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * Append steps (steps.h) for a result of result_read(), whose addresses are all for this interface
 * of the pod, which is up afterwards. Routes without a gateway take that of the first address of
 * their family; where there is none they are on link.
 */
void interface_plan(const char *ifname, const json_t *result, json_t *steps);

/*
 * Put an IPAM result into the plugin's own, whose last interface is the one: addresses, routes,
 * DNS.
 * ERR_INVALID "BadResult" when there is no address in it.
 */
int interface_adopt(json_t *result, const json_t *from_ipam, struct err *err);

/*
 * The DNS of the network's configuration, none if it has none, as containernetworking-plugins
 * have it: not what IPAM said.
 */
void interface_put_dns(json_t *result, const json_t *config);

/* What CHECK compares. */
struct interface_facts {
	const char *type; /* the plugin, for messages */
	const char *ifname, *netns_path;
	const json_t *previous; /* result.h; NULL: none came */
	const json_t *pod;      /* look.h: links, addresses, routes */
};

/*
 * Is the pod's interface as `previous` says? MAC, addresses and routes count, the routes in
 * whatever table: a coordinator moves them. kind: of the interface; NULL: any. *ret_link: the
 * interface, of `pod`.
 * ERR_INVALID "BadField"  prevResult is missing
 * ERR_HOST "NotAsAdded"   the text has what is different
 */
int interface_check(const struct interface_facts *facts, const char *kind, const json_t **ret_link,
		    struct err *err);

/* The same error, for what a plugin compares besides. */
#define interface_not_as_added(err, ...) err_set(err, ERR_HOST, "NotAsAdded", __VA_ARGS__)
