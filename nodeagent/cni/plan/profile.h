// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles: what of CNI is installed on a node, decided in this one place. Pure.
 *
 *	auto      Multus is not configured on the node: our CNI plugins, and our meta plugin, which
 *	          does what Multus does. It is: our plugins are its delegates. Another program's
 *	          plugin that has a name of ours stays as it is.
 *	delegate  our CNI plugins under all of their names; another program's plugin is kept aside
 *	          (install.h) and comes back when the profile changes. No meta plugin.
 *	devices   no CNI.
 *
 * The result follows from what the node has, not from the profile before. What the profile does not
 * call for is taken away only while no pod of the node uses it: a pod is deleted by the plugin that
 * attached it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/plan/meta_conf.h"

/* On a Node: its profile in place of the agent's flag --profile. */
#define PROFILE_LABEL "orbweaver.io/profile"
#define PROFILE_WORDS "auto, delegate or devices"

enum profile {
	PROFILE_AUTO,
	PROFILE_DELEGATE,
	PROFILE_DEVICES,
};

/* False for other text, NULL and "" included; *ret is unchanged then. */
bool profile_read(const char *text, enum profile *ret);
const char *profile_name(enum profile profile);

/* Do pods of the node have networks that our plugins attached? Unknown counts as used. */
enum profile_use {
	PROFILE_UNUSED,
	PROFILE_USED,
	PROFILE_USE_UNKNOWN,
};

/* Borrowed. */
struct profile_input {
	enum profile profile;
	/*
	 * [{"name": "sriov", "owner": "nobody" | "ours" | "other", "saved": true, "common": true,
	 * "forAll": true}] (install.h): each name of ours in the folder of plugins; saved: another
	 * program's is kept aside; common: one of containernetworking-plugins, where another
	 * program's is usual; forAll: runtimes call it for each pod.
	 */
	const json_t *plugins;
	bool has_conf;      /* META_CONF_FILE is in the runtime's folder */
	const char *multus; /* the file that configures Multus; NULL: none does */
	/*
	 * Multus is installed, and its configuration has been missing for a short while: its pod is
	 * being replaced, or the node has just booted.
	 */
	bool is_multus_away;
	enum profile_use use;
	bool is_meta_used; /* by our meta plugin */
	const char *user;  /* "namespace/pod", one of them; NULL: not known */
};

/* All new. */
struct profile_decision {
	json_t *install; /* names that are to be ours; another program's is kept aside first */
	json_t *restore; /* names that are to be what they were before us */
	enum meta_mode meta;
	bool is_waiting; /* for pods to end, or for Multus: no change in the folders ends it */
	/*
	 * For the NodeState's condition PodNetworks: {"serves": bool, "fault": bool, "reason",
	 * "message"}. fault: an administrator has to act. Reasons: MetaPlugin, MultusDelegates,
	 * PluginsKept, MultusAway, PluginsOnly, DevicesOnly, PluginsInUse.
	 */
	json_t *networks;
};

void profile_decide(const struct profile_input *in, struct profile_decision *ret);
void profile_decision_done(struct profile_decision *decision);

/* The same for what kept a decision from coming about, new. */
json_t *profile_trouble(const struct err *err);
/* The same for a label's value that is not a profile, new: "BadProfile". */
json_t *profile_refused(const char *node, const char *value);
