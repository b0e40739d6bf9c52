// SPDX-License-Identifier: Apache-2.0
/*
 * One SriovNetworkNodePolicy: read, judged, matched against nodes and PFs.
 *
 * Everything here looks at one policy; how several share a PF is node_decision.c. An admission
 * webhook and a command line get the same answers from the same functions.
 *
 * Source: github.com/k8snetworkplumbingwg/sriov-network-operator, api/v1/helper.go and
 * pkg/webhook/validate.go; where we differ: docs/sriov.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "reconcilers/core/problems.h"

/* The weakest priority, and what an absent one means. 0 is the strongest. */
#define SRIOV_PRIORITY_WEAKEST 99

/* NumVFs and VF numbers are 16 bits wide (PCI Express Base Specification, SR-IOV capability). */
#define SRIOV_VFS_MAX 65535

/* VF numbers first..last, both included. */
struct vf_range {
	int first;
	int last;
};

/* Annotations of a policy that permit a risk. */
#define SRIOV_ALLOW_LAG_LOSS    "orbweaver.io/allow-lag-loss"
#define SRIOV_ALLOW_PRIMARY_NIC "orbweaver.io/allow-primary-nic"
#define SRIOV_ALLOW_FIRMWARE    "orbweaver.io/allow-firmware"

/* A policy with its defaults filled in. Strings and arrays are borrowed from the object. */
struct sriov_policy {
	const char *key; /* "namespace/name" */
	const char *name;
	const char *namespace;
	const char *resource_name;
	int priority;
	int num_vfs;
	int64_t mtu; /* 0: not set */
	const char *device_type;
	const char *link_type; /* "" when not set, as the next two */
	const char *eswitch_mode;
	const char *vdpa_type;
	bool is_rdma;
	bool need_vhost_net;
	bool exclude_topology;
	bool externally_managed;
	bool says_externally_managed; /* the field is present */
	/*
	 * Annotations of that value "true": what the agent refuses unless it is asked in so many
	 * words.
	 */
	bool allows_lag_loss;
	bool allows_primary_nic;
	bool allows_firmware;
	const char *vendor;
	const char *device_id;
	const char *net_filter;
	const json_t *root_devices;
	const json_t *pf_names;
};

/*
 * Fill *ret from the object; `key` is borrowed. Fails when the object does not say what it wants: a
 * field of a wrong type, a value outside its bounds, a range that cannot be read. Such a policy is
 * applied nowhere. Errors: ERR_INVALID, text like `spec.numVfs: …`.
 */
int sriov_policy_parse(const char *key, const json_t *object, struct sriov_policy *ret,
		       struct err *err);

/*
 * Fill what picks PFs from parent.nicSelector, of an object of any kind; path: of the parent, for
 * errors. Errors: as above.
 */
int sriov_policy_nic_selector(const json_t *parent, const char *path, struct sriov_policy *ret,
			      struct err *err);

/*
 * Everything that is wrong with the policy by itself. Of a policy that sriov_policy_parse refuses,
 * or whose name is reserved, it is the reason why it is applied nowhere; else the policy is applied
 * as written and will not do what its author meant.
 */
void sriov_policy_check(const json_t *object, struct problems *problems);

/* Policies of this name are remains of old releases of the upstream operator and never applied. */
bool sriov_policy_is_reserved(const json_t *object);
/*
 * Is it the one of that name which the SR-IOV network operator makes by itself? It asks for
 * nothing, and stays behind when that operator has gone: no action is needed.
 */
bool sriov_policy_is_upstreams_own(const json_t *object);

/*
 * Does spec.nodeSelector select a node with these labels? Works on any object; one without a
 * readable selector: false. Labels of rails (node_labels.h), for which a policy is refused, do not
 * count: it keeps its VFs while they change.
 */
bool sriov_policy_selects(const json_t *object, const json_t *labels);

/*
 * Of a policy that does not select these labels: append the first pair that they lack, `label gpu
 * no, wanted yes`.
 */
void sriov_policy_why_not_selected(const json_t *object, const json_t *labels, struct strbuf *why);

/*
 * How many selectors of nicSelector fail on this PF, an element of NodeState status.interfaces?
 * 0: it is picked. When `why` is given, each is appended: `vendor 8086, wanted 15b3; name p1,
 * wanted p0`.
 */
size_t sriov_policy_fails(const struct sriov_policy *policy, const json_t *pf, struct strbuf *why);

/* Does none fail? */
bool sriov_policy_picks(const struct sriov_policy *policy, const json_t *pf, struct strbuf *why);

/*
 * Visit the VF ranges that the policy means on a PF that it picks: `size_t i = 0; while
 * (sriov_policy_range(p, pf, &i, &r))`. One for each element of pfNames that names the PF, by its
 * name or an alternative name, in their order; the whole PF, 0..numVfs-1, for an element without
 * range and when none names the PF. Nothing when numVfs is 0.
 */
bool sriov_policy_range(const struct sriov_policy *policy, const json_t *pf, size_t *iter,
			struct vf_range *ret);

bool vf_range_overlaps(struct vf_range a, struct vf_range b);

/* One element of pfNames: "name" or "name#first-last". */
struct pf_name {
	const char *name; /* not terminated */
	size_t name_len;
	bool has_range;
	struct vf_range range;
};

/*
 * Errors: ERR_INVALID "BadRange", naming the text and what would be right. *ret borrows from text.
 */
int pf_name_parse(const char *text, struct pf_name *ret, struct err *err);

/*
 * Strongest last: the order in which policies are applied (priority down, then name, then namespace
 * up). For qsort.
 */
int sriov_policy_order(const void *a, const void *b);
