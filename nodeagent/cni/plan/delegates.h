// SPDX-License-Identifier: Apache-2.0
/*
 * Which networks a pod gets: what the meta plugin decides before it calls the first plugin. Pure.
 *
 * A delegate is one network of one pod, the cluster's first, then those of the pod's annotation in
 * their order. It is a JSON object, kept on the disk as it is, so that DEL needs nothing else:
 *
 *	name          "namespace/name" of the NetworkAttachmentDefinition, or the configuration's
 *                    own name
 *	interface     "eth0", "net1", …
 *	config        network_config.h, with everything in its plugins that is the pod's (devices,
 *                    cni-args)
 *	args          CNI_ARGS for its plugins
 *	capabilities  what plugins get in runtimeConfig when they declare it
 *	resourceName, deviceID   where a device of the kubelet belongs to the network
 *	deviceInfo    its device-info file: made of the device plugin's, and for the plugins to
 *                    write (capabilities.CNIDeviceInfoFile)
 *	requests      {"mac", "ips", "infinibandGUID"} of the annotation; "interface" where the
 *                    first one's is not the runtime's
 *	defaultRoute  the annotation's list of gateways, which may be empty
 *
 * Sources: Network Plumbing Working Group, "Kubernetes Network Custom Resource Definition De-facto
 * Standard" 1.3; what it leaves open is as Multus does it (recorded:
 * tests/conformance/multus.json), except for what tests/conformance/multus-differences.txt lists.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "reconcilers/core/limits.h"

#define META_RESOURCE_ANNOTATION "k8s.v1.cni.cncf.io/resourceName"
/* Where default-network's NetworkAttachmentDefinition is, unless it or the configuration says. */
#define META_DEFAULT_NAMESPACE "kube-system"
/* Networks of one pod. */
#define META_NETWORKS_MAX LIMIT_NETWORKS

/* What the call brought and what the agent knows. All borrowed. */
struct meta_input {
	const char *container_id; /* CNI_CONTAINERID */
	const char *ifname;       /* CNI_IFNAME; NULL: none, as with GC and STATUS */
	const char *args;         /* CNI_ARGS; NULL: none */
	/*
	 * The meta plugin's own: "delegates": [configuration, …], the first one is the cluster's
	 * network; "cniVersion"; "runtimeConfig"; "namespaceIsolation": true refuses other
	 * namespaces' networks but those of "globalNamespaces" ("default" or a list of names with
	 * commas).
	 *
	 * What is taken over from a Multus (takeover.h): "multusNamespace" is where names of the
	 * configuration and of default-network are looked up that have no namespace
	 * (META_DEFAULT_NAMESPACE); "clusterNetwork" a definition that counts in place of the first
	 * of "delegates", where there is one, or that one's name; "defaultNetworks" names of
	 * networks that every pod has besides, but for those in "systemNamespaces" (absent:
	 * META_DEFAULT_NAMESPACE); "multusConfDir" where configurations of the node are looked for
	 * first.
	 */
	const json_t *config;
	const json_t *pod;
	/*
	 * "namespace/name" -> NetworkAttachmentDefinition: those of meta_wanted(). NULL: the call
	 * is about the cluster's network alone, as the node has it.
	 */
	const json_t *nads;
	/*
	 * [{"container", "resource", "ids": [text]}]: the pod's devices, as the kubelet names them
	 */
	const json_t *devices;
	const json_t *served; /* names of the resources that our device plugins offer; NULL: none */
	/* Configurations of the node, for definitions without spec.config and default networks. */
	const json_t *files;
	const json_t *links; /* names of the interfaces that the pod has already */
};

/*
 * The NetworkAttachmentDefinitions that a pod needs: a new array of "namespace/name", each once, in
 * order. NULL with err:
 *
 *   ERR_INVALID "BadNetworks"         an annotation cannot be read
 *   ERR_INVALID "TooLarge"            an annotation is beyond a bound (reconcilers/core/limits.h)
 *   ERR_INVALID "NamespaceIsolated"   another namespace's network, which the configuration forbids
 */
json_t *meta_wanted(const json_t *config, const json_t *pod, struct err *err);

/*
 * The delegates: a new array. NULL with err:
 *
 *   as meta_wanted(), and
 *   ERR_INVALID "NoNetworkFound"      a NetworkAttachmentDefinition is not there
 *   ERR_INVALID "BadNetworkConfig"    a configuration cannot be used
 *   ERR_INVALID "InterfaceTwice"      two networks want one interface
 *   ERR_INVALID "InterfaceExists"     the pod has the interface already
 *   ERR_INVALID "TooFewDevices"       the pod has fewer devices of a resource than networks that
 *                                     need one. A pod without any device of a resource that we do
 *                                     not serve starts without deviceID, unless the network's
 *                                     plugin needs one (ovs-cni and KubeVirt annotate resources
 *                                     that no device plugin serves)
 *   ERR_TRANSIENT "AmbiguousDevices"  more devices than a container asks for: some are another
 *                                     pod's (devices.h)
 *   ERR_INVALID "BadDefaultRoute"     gateways of default-route that are no addresses, or two of
 *                                     one family
 *   ERR_TRANSIENT "PodReplaced"       the pod has another UID than the sandbox is made for
 */
json_t *meta_delegates(const struct meta_input *in, struct err *err);

/*
 * Device-info files (Device Information Specification 1.1.0): where that of an attachment is kept,
 * and the name of the one that the device plugin writes. New strings.
 */
char *meta_device_info_path(const char *network, const char *container_id, const char *ifname);
char *meta_device_info_source(const char *resource, const char *device);
