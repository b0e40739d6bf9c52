// SPDX-License-Identifier: Apache-2.0
/*
 * The sriov plugin's decisions: what a VF becomes for a pod, and how it becomes again what it was.
 * Pure.
 *
 * Compatible with sriov-cni (github.com/k8snetworkplumbingwg/sriov-cni): its keys, its result.
 * Different on purpose: the VF's state is read first, and only what differs is written, so that
 * "vlan": 0 works on NICs that know no VLAN; DEL puts back what ADD changed and nothing else.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/*
 * A VF as its PF knows it, and as it is asked for: {"vlan", "qos", "proto" (0x8100 or 0x88a8),
 * "mac", "minRate", "maxRate", "spoofchk", "trust" (bool), "linkState" (0 auto, 1 enable, 2
 * disable), "nodeGuid", "portGuid"}. What is absent is not known, or not asked for.
 */
struct sriov_config {
	json_t *folded;     /* what the texts are borrowed from */
	const char *device; /* PCI address */
	char mac[18];       /* "": none is asked for */
	json_t *wanted;
};

/* args: CNI_ARGS, or NULL. ERR_INVALID "BadField" names the key and what it must be. */
int sriov_config_read(const json_t *config, const char *args, struct sriov_config *ret,
		      struct err *err);
void sriov_config_done(struct sriov_config *config);
#define auto_sriov_config auto_call(sriov_config_done)

/* The VF as the node sees it. */
struct sriov_facts {
	const char *pf, *netdev; /* names; netdev NULL for a VF of user space */
	int64_t vf;
	const json_t *state; /* as above, of now */
	const json_t *link;  /* netdev as of look.h; NULL without one */
	const char *ifname;
};

/*
 * Append the steps of ADD up to an interface that is up in the pod: settings of the VF, one by one,
 * since the kernel stops at the first that it refuses (net/core/rtnetlink.c, do_setvfinfo()); then
 * the move, with its new name, in one message.
 */
void sriov_plan(const struct sriov_config *config, const struct sriov_facts *facts, json_t *steps);

/*
 * Check that a VF still has what ADD was asked to give it: VLAN, QoS, spoof check and trust. state
 * is the VF's of now; what it lacks, its driver does not report, and counts as right. The rest is
 * left out: drivers round rates, and a trusted pod may take another MAC.
 * ERR_HOST "NotAsAdded" names the setting, what it is and what was set.
 */
int sriov_check_settings(const struct sriov_config *config, const json_t *state, struct err *err);

/*
 * A VF that is on the node again, by us or by the kernel, whose namespace ended: what DEL has of it
 * (sriov_run.c), and how it looks now.
 */
struct sriov_return {
	const json_t *saved; /* {"name", "mac", "mtu", "txqlen", "settings"} */
	const char *pf;      /* its name now */
	int64_t vf;
	const json_t *link; /* NULL: it has no interface, or none yet */
	bool name_is_free;  /* nobody else has its old name */
};

/*
 * Append steps that take away what a pod did to its VF, and what the kernel keeps when the VF goes
 * to another namespace: alternative names that it did not have (saved.altNames; without that all
 * stay), alias, XDP programs, promiscuous and all-multicast mode. in: "pod" or "host", where it is.
 */
void sriov_plan_fresh(const char *in, const json_t *link, const json_t *saved, json_t *steps);

/* Append what makes it again what it was. */
void sriov_plan_return(const struct sriov_return *facts, json_t *steps);

/*
 * Append steps that give an interface its old name back; udev may have made that an alternative
 * name of it meanwhile. Nothing where it has the name. Borrows the name that it has afterwards.
 */
const char *sriov_plan_name(const json_t *link, const char *name, json_t *steps);

/* Only the settings: from one state to another. */
void sriov_plan_settings(const char *pf, int64_t vf, const json_t *from, const json_t *to,
			 json_t *steps);
