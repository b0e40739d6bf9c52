// SPDX-License-Identifier: Apache-2.0
/*
 * What the networks need that a pod names itself, in k8s.v1.cni.cncf.io/networks and
 * v1.multus-cni.io/default-network: resources and node labels, from annotations of the
 * NetworkAttachmentDefinitions. pod_inject.h puts them into the pod.
 *
 * Source: README and pkg of github.com/k8snetworkplumbingwg/network-resources-injector, which these
 * rules replace; differences are in docs/injection.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/admission/pod_inject.h"

struct problems;

/* On a NetworkAttachmentDefinition: "LABEL=VALUE" or "LABEL" of the nodes that have the network. */
#define NODE_SELECTOR_ANNOTATION "k8s.v1.cni.cncf.io/nodeSelector"

/*
 * The pod with the annotations of the user-defined injections whose label it has with the value
 * "true"; they replace its own (`warnings`, may be NULL). Where two injections have the same
 * annotation, the first label in byte order counts. A new reference to the pod when there are none.
 */
json_t *network_resources_annotated(const struct inject_settings *settings, const json_t *pod,
				    struct problems *warnings);

/* Does the pod (annotated) name a network in either annotation? */
bool network_resources_asked(const json_t *pod);

/*
 * Visit the keys of the NetworkAttachmentDefinitions that network_resources_find looks for: the
 * world of its pod. None when an annotation cannot be read.
 */
void network_resources_visit(const json_t *pod, const char *ns,
			     void (*visit)(void *arg, const char *key), void *arg);

struct network_needs {
	json_t *resources; /* { resource: units }, one for each time that a network is named */
	json_t *labels;    /* { label: value } of nodes */
};

/*
 * What the pod's networks need. World: KIND_NAD. `except`: keys of definitions that do not count,
 * { key: … }, or NULL. Names in `pod` without a namespace are in `ns`; in default-network in
 * kube-system, where Multus looks, or else in `ns`.
 *
 * Problems of the pod, and *ret is empty then: an annotation that cannot be read or is too large, a
 * definition that does not exist, a resource that is not an extended one, a node selector that is
 * not a label, two networks that need different values of it.
 */
void network_resources_find(const json_t *world, const struct inject_settings *settings,
			    const json_t *pod, const char *ns, const json_t *except,
			    struct network_needs *ret, struct problems *problems);
void network_needs_done(struct network_needs *needs);
#define auto_network_needs auto_call(network_needs_done)
