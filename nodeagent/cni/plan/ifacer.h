// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of ifacer: a bond of interfaces of the node, and a VLAN upon it or upon one of
 * them, which the plugin behind it takes as its master. Pure.
 *
 * Compatible with Spiderpool's plugin of this name
 * (github.com/spidernet-io/spiderpool, docs/reference/plugin-ifacer.md). The interfaces are the
 * node's: they stay when pods go.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Ports of a bond. */
#define IFACER_PORTS_MAX 32

struct ifacer_config {
	json_t *folded;           /* what the others are borrowed from */
	const json_t *interfaces; /* names */
	const char *bond;         /* its name; NULL: none is asked for */
	json_t *options;          /* of a new bond (bond_options.h), its mode included */
	json_t *ignored;          /* texts of options that have no effect */
	int64_t vlan;             /* 0: none */
};

/* ERR_INVALID "BadField" names the key and what it must be. */
int ifacer_config_read(const json_t *config, struct ifacer_config *ret, struct err *err);
void ifacer_config_done(struct ifacer_config *config);
#define auto_ifacer_config auto_call(ifacer_config_done)

/*
 * Append the steps (steps.h) that can be done now; what they make is looked at before the next
 * call. Nothing is appended where all is as asked for. host: links, addresses and routes of the
 * node (look.h).
 * ERR_INVALID "BadField"       an interface is missing, or one of the name is of another kind
 * ERR_INVALID "NodeInterface"  an interface for a bond is in use (host_device.h)
 */
int ifacer_plan(const struct ifacer_config *config, const json_t *host, json_t *steps,
		struct err *err);

/*
 * Append the steps after a failure: interfaces that were up before, and are down without being in a
 * bond, are set up again. before, now: links of the node (look.h).
 */
void ifacer_plan_back(const struct ifacer_config *config, const json_t *before, const json_t *now,
		      json_t *steps);
