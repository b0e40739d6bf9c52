// SPDX-License-Identifier: Apache-2.0
/*
 * From a SpiderMultusConfig to the CNI configuration that goes into spec.config of its
 * NetworkAttachmentDefinition.
 *
 * The configuration carries what the SpiderMultusConfig itself says. Coordinator settings that it
 * leaves empty are left out: the coordinator plugin fills them from the SpiderCoordinator "default"
 * when a pod starts, so changing that object needs no rewriting of all
 * NetworkAttachmentDefinitions.
 *
 * Absent fields and fields with their default give the same result. Plugin names, keys and their
 * order in the chain are those that Spiderpool renders (its plugins read them).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What spec.cniType may say. */
struct cni_type {
	const char *name;  /* "ib-sriov" */
	const char *block; /* member of spec with its settings: "ibsriov" */
	/* Member of the block that a pod needs (of ipoib: a device); NULL: no injection. */
	const char *resource;
};

/* All types; ends with a NULL name. */
extern const struct cni_type cni_types[];

/* The type of a config; absent means custom; NULL when there is no such type. */
const struct cni_type *cni_type_of(const json_t *smc);

/* Annotations of a SpiderMultusConfig that we read. */
#define CNI_ANNOTATION_NAD_NAME    "multus.spidernet.io/cr-name"
#define CNI_ANNOTATION_VERSION     "multus.spidernet.io/cni-version"
#define CNI_ANNOTATION_CONFIG_NAME "cni.spidernet.io/cniconfig-name"
/* The rail, an index, whose network this is: pods that name rails get networks of these. */
#define CNI_ANNOTATION_RAIL           "orbweaver.io/rail"
#define CNI_ANNOTATION_RDMA_INJECT    "cni.spidernet.io/rdma-resource-inject"
#define CNI_ANNOTATION_NETWORK_INJECT "cni.spidernet.io/network-resource-inject"

/* On the NetworkAttachmentDefinition: the resource that a pod has to request. */
#define CNI_ANNOTATION_RESOURCE "k8s.v1.cni.cncf.io/resourceName"

/* An annotation's value, NULL when absent. Borrowed. */
const char *cni_annotation(const json_t *smc, const char *name);

/* The rail of CNI_ANNOTATION_RAIL, as a bit; 0: absent, or not one rail (lib/base/rail_list.h). */
uint32_t cni_rail(const json_t *smc);

/*
 * The name of the NetworkAttachmentDefinition that the config claims: that annotation, or its own
 * name. Borrowed.
 */
const char *cni_nad_name(const json_t *smc);

/*
 * The block with the settings of a config of that type, NULL when there is none. Settings that
 * guides show in the wrong place or of the wrong type are in their right one, unless something else
 * is there: spec.ippools and spec.rdmaResourceName (macvlan, ipvlan, vlan) belong into the block,
 * sriov.matchMasterSubnet into its ippools, a number in ibsriov.pkey is the text of its digits.
 * Returns new.
 */
json_t *cni_block(const json_t *smc, const struct cni_type *type);

/* The resource that a pod of the network has to request; "" when there is none. Borrowed. */
const char *cni_block_resource(const struct cni_type *type, const json_t *block);

/*
 * Is a unit of that resource a VF, which one network uses up (sriov, ib-sriov)? Else it is a device
 * for all that share it.
 */
bool cni_type_has_vfs(const struct cni_type *type);

/* Does the block name a pool, of either family? */
bool cni_block_has_pools(const json_t *block);

/*
 * The name of the device that macvlan and ipvlan sit on: the only master, or the bond over several,
 * with ".VLAN" behind it if there is a VLAN. Returns new; free().
 */
char *cni_parent_device(const json_t *block);

/*
 * What the SpiderMultusConfig is rendered to, or NULL when that is nothing (custom with an empty
 * customCNI). Its spec must have passed multus_config_check. Returns new.
 */
json_t *cni_config_new(const json_t *smc);

/*
 * The text of it for spec.config; NULL for NULL. `present` (may be NULL) is the text found in the
 * NetworkAttachmentDefinition: when it says the same as ours in other words (order of keys, blanks)
 * it is returned as it is, so that nothing is rewritten for looks. Returns new; free().
 */
char *cni_config_text(const json_t *smc, const json_t *config, const char *present);

/* The value for CNI_ANNOTATION_RESOURCE; NULL: none. Returns new. */
json_t *cni_config_resource(const json_t *smc);
