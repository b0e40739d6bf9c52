// SPDX-License-Identifier: Apache-2.0
/*
 * The networks that a pod asks for, in both grammars of the annotation k8s.v1.cni.cncf.io/networks:
 *
 *	[NAMESPACE/]NAME[@INTERFACE], separated by commas
 *	[{"name": …, "namespace": …, "interface": …, "mac": …, "ips": […], "infiniband-guid": …, …}]
 *
 * The text is JSON when it contains one of the characters `[`, `{` and `"`. Keys are read in any
 * case, as Go's encoding/json does, which Multus reads them with; null counts as absent, and a
 * value of another type is refused.
 *
 * Source: Network Plumbing Working Group, "Kubernetes Network Custom Resource Definition De-facto
 * Standard", 4.1; how an element without an interface is named ("net1", "net2", … by its position)
 * is what Multus does.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

#define NETWORKS_ANNOTATION        "k8s.v1.cni.cncf.io/networks"
#define DEFAULT_NETWORK_ANNOTATION "v1.multus-cni.io/default-network"
/* What the runtime reports of them, a JSON array (Network Plumbing Working Group, section 4.1). */
#define NETWORK_STATUS_ANNOTATION "k8s.v1.cni.cncf.io/network-status"

/*
 * Read the text of either annotation. An element without a namespace is in `ns`.
 *
 * Returns a new array, in the order of the text: each element has "name", "namespace" and
 * "interface" (never empty: "netN" where the text names none), and whatever else a JSON element
 * has, under its usual spelling. Empty for empty text. NULL with err, ERR_INVALID: "BadNetworks",
 * naming the element and what would be right; "TooLarge" beyond LIMIT_NETWORKS or
 * LIMIT_ANNOTATION_BYTES (limits.h).
 */
json_t *networks_parse(const char *text, const char *ns, struct err *err);
/*
 * The same; the first element is called "net<first>" unless it says otherwise, as behind networks
 * that every pod has.
 */
json_t *networks_parse_from(const char *text, const char *ns, size_t first, struct err *err);

/* The key of the NetworkAttachmentDefinition that such an element names, "namespace/name", new. */
char *network_key(const json_t *network);

/*
 * The interfaces that plugins of a NetworkAttachmentDefinition (NULL: not known) name as "master"
 * (macvlan, ipvlan, vlan). Returns new: array of strings, each once; empty where it names none or
 * cannot be read.
 */
json_t *network_masters(const json_t *nad);
