// SPDX-License-Identifier: Apache-2.0
/*
 * What a pod's end of a path looks like, from what a script in the pod prints. Pure.
 *
 * Nothing that comes out of a pod is trusted: numbers have bounds, text is cut and covered.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/* For `sh -c`; the interface's name is $0. */
extern const char pathtest_facts_script[];

enum {
	PATHTEST_NAME_MAX = 64,
	PATHTEST_SEEN_MAX = 256,
	/* Of GIDs, in lines of the script; one RDMA device has up to 256 for each port. */
	PATHTEST_GIDS_MAX = 65536,
};

struct facts {
	bool has_link;
	char operstate[16];
	int mtu;
	/* Tools that the image does not have, ", " between them; "iputils": its ping is another. */
	char missing[128];
	/* The RDMA device that leads to the interface; "": there is none. */
	char rdma[PATHTEST_NAME_MAX];
	int port;
	int rate_gbps; /* of that port; 0: not known, or no whole number */
	int gid; /* index of the GID to use; -1: of link layer InfiniBand, where it needs none */
	/* What its pod can do with the device: facts_read_verbs(). */
	enum facts_verbs { FACTS_VERBS_UNKNOWN, FACTS_VERBS_WORK, FACTS_VERBS_BROKEN } verbs;
	char verbs_seen[PATHTEST_SEEN_MAX]; /* "": nothing is said */
	/* Soft-RoCE on another interface than the pod's: rdma_cm does not find it from the pod. */
	bool is_soft_elsewhere;
};

/*
 * Read what the script printed. interface: of pathtest_interface(); master: the NIC below macvlan
 * and ipvlan, or NULL. The RDMA device is, in this order: one with a GID of the interface's
 * address; the one that network-status names; one on the interface; one on the master. Of Soft-RoCE
 * on another interface than the pod's only the GIDs of that interface count. What cannot be read is
 * left out.
 */
void facts_read(const char *text, const json_t *interface, const char *master, struct facts *ret);

/*
 * Read what `orbweaver doctor --verbs -o json` printed in the pod of its RDMA device. Broken is one
 * with which no program could work: that it reaches itself is not needed. What cannot be read is
 * unknown.
 */
void facts_read_verbs(const char *text, struct facts *ret);
