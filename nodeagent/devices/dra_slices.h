// SPDX-License-Identifier: Apache-2.0
/*
 * The ResourceSlices of a node (k8s.io/api, resource/v1/types.go): what a scheduler knows of the
 * devices that claims may have. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Bounds of the API; the smaller one where a device of the slice has taints or is shared. */
enum {
	DRA_SLICE_DEVICES = 128,
	DRA_SLICE_DEVICES_TAINTED = 64,
};

/* The name of a device in slices and claims, a DNS label, new: "0000-3b-00-2". */
char *dra_device_name(const char *address);
/* That of a shared device: of its resource, made short and unique by its hash. New. */
char *dra_shared_name(const char *resource);
/* The value of the label DRA_NODE_LABEL of our slices: the node, made short if need be. New. */
char *dra_node_label(const char *node);

/* What a server makes of slices; it drops the fields of features that it does not have. */
struct dra_features {
	bool no_taints;  /* KEP-5055 */
	bool no_sharing; /* KEP-5075 */
};

struct dra_slices_input {
	const char *node;
	const char *node_uid;   /* NULL: not known, the slices have no owner */
	const json_t *pools;    /* dra_choice_claims() */
	const json_t *observed; /* the observed document, for attributes */
	const json_t *links;    /* "ports" of link_history_status(); NULL: none is judged */
	bool taints_degraded;   /* devices of ports that are not healthy */
	struct dra_features features;
};

/*
 * The slices of all offered devices as they should be, but for the pool's generation, which is 0;
 * [ResourceSlice], new, sorted by name; empty when nothing is offered. Devices that are not healthy
 * have a taint, or are left out where there are none. Those of a port whose link is bad may have
 * another taint. A shared device is one that many claims may have, or is left out.
 */
json_t *dra_slices(const struct dra_slices_input *input);

/*
 * What makes `existing`, all slices of our driver and node as the server has them, equal to
 * `wanted`: {"write": [ResourceSlice], "delete": [ResourceSlice]}, new. All that are written, by
 * server-side apply, have one new generation; both lists are empty when nothing differs. Fields
 * that a user added are left.
 */
json_t *dra_slices_diff(const json_t *wanted, const json_t *existing);

/* `stored` is what the server made of `sent`, a slice: add what it dropped to *features. */
void dra_slices_learn(const json_t *sent, const json_t *stored, struct dra_features *features);
