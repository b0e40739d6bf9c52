// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of macvlan, ipvlan and vlan: an interface of the pod upon one that exists, its
 * master; and of dummy, which has none. Pure.
 *
 * Compatible with the plugins of these names of containernetworking-plugins 1.x
 * (github.com/containernetworking/plugins, plugins/main): their keys, their result. docs/cni.md
 * lists what is different on purpose.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "nodeagent/cni/plan/interface.h"

struct upper_config {
	json_t *folded;     /* what the texts are borrowed from */
	const char *type;   /* "macvlan", "ipvlan", "vlan", "dummy": the interface's kind, too */
	bool is_alone;      /* it has no master */
	const char *master; /* NULL: the interface of the default route */
	bool is_in_pod;     /* linkInContainer: the master is one of the pod's */
	bool has_ipam;      /* addresses are asked for */
	const json_t *inherited; /* ipvlan without IPAM: a result that has its addresses, or NULL */
	int64_t mode, vlan;      /* enum macvlan_mode, IPVLAN_MODE_… (linux/if_link.h); 802.1Q */
	int64_t mtu, queue;      /* 0: the kernel's own */
	char mac[18];            /* "": the kernel's own */
};

/*
 * previous: the result of the plugin before (result.h), or NULL; args: CNI_ARGS, or NULL; both are
 * borrowed by *ret. ERR_INVALID "BadField" names the key and what it must be.
 */
int upper_config_read(const char *type, const json_t *config, const char *args,
		      const json_t *previous, struct upper_config *ret, struct err *err);
void upper_config_done(struct upper_config *config);
#define auto_upper_config auto_call(upper_config_done)

/* The name of the interface of the first default route of a namespace (look.h); NULL: none. */
const char *upper_default_master(const json_t *look);

/*
 * Append the steps up to an interface of this name in the pod, which is down. It is made in the
 * pod, under the name `spare`: the kernel looks for a new name in the node's namespace, too
 * (net/core/rtnetlink.c, before Linux 6.14). master: a link as of look.h, NULL: there is none.
 * ERR_INVALID "BadField" for master and MTU.
 */
int upper_plan(const struct upper_config *config, const json_t *master, const char *spare,
	       const char *ifname, json_t *steps, struct err *err);

/*
 * Is the interface as ADD made it? As interface_check(), and what its kind has. master: a link;
 * NULL: gone.
 */
int upper_check(const struct upper_config *config, const struct interface_facts *facts,
		const json_t *master, struct err *err);
