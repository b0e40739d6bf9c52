// SPDX-License-Identifier: Apache-2.0
/*
 * What the coordinator plugin is to do: the NAD's object over the cluster's settings
 * (SpiderCoordinator). Pure.
 *
 * Keys and defaults are those of Spiderpool's coordinator. Unknown keys are accepted, also those
 * that older versions had (hostRPFilter, multusNicPrefix, logOptions); detectIPConflict,
 * detectGateway and detectOptions are heeded.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "nodeagent/cni/plan/addr.h"

enum coordinator_mode {
	COORDINATOR_AUTO,
	COORDINATOR_UNDERLAY,
	COORDINATOR_OVERLAY,
	COORDINATOR_DISABLED,
};

struct coordinator_config {
	json_t *folded; /* the NAD's object, which texts are borrowed from */
	enum coordinator_mode mode;
	bool tune_pod_routes;
	bool detect_conflict, detect_gateway;
	const char *first_nic;         /* podDefaultCniNic, "eth0"; borrowed */
	const char *default_route_nic; /* "": whoever has the default route; borrowed */
	struct addr veth_address;      /* family 0: none */
	int64_t veth_mtu;              /* 0: the kernel's */
	int64_t host_table;            /* hostRuleTable, 500 */
	int64_t rp_filter;             /* -1: leave it */
	int64_t txqueuelen;            /* 0: leave it */
	bool has_mac_prefix;
	uint8_t mac_prefix[2];
	/* networks to go by the host: pods', services', hijackCIDR; canonical texts */
	json_t *cidrs;
	json_t *services; /* of settings alone: no NetworkAttachmentDefinition changes them */
	json_t *routes;   /* policyRoutes: [{"dst", "gw"}], canonical */
};

/*
 * `settings` (nodeagent/pod_networks/settings.h) may be NULL with a mode of "disable" in the NAD.
 * The texts are borrowed from both, and live as long as *ret and settings.
 *
 * ERR_INVALID "BadField"                 a value of the NAD or the SpiderCoordinator cannot be
 * ERR_TRANSIENT "CoordinatorNotReady"    the cluster's settings are not known, or not complete yet
 */
int coordinator_config_read(const json_t *config, const json_t *settings,
			    struct coordinator_config *ret, struct err *err);
void coordinator_config_done(struct coordinator_config *config);
#define auto_coordinator_config auto_call(coordinator_config_done)
