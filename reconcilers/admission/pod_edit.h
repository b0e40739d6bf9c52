// SPDX-License-Identifier: Apache-2.0
/*
 * Changes of a pod under review. The pod is a copy of the request's object one level deep
 * (json_copy); these functions copy what they change, so the request stays as it came.
 *
 * Source of the quantities, the node selector and the volume: README and pkg/webhook of
 * github.com/k8snetworkplumbingwg/network-resources-injector; differences are in docs/injection.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct problems;

/*
 * What pod_edit_resources has added to existing quantities, as JSON text: { resource: units }. A
 * second review adds only what is not in it.
 */
#define INJECTED_RESOURCES_ANNOTATION "orbweaver.io/injected-resources"

/* The member as an object that the request does not share. Borrowed. */
json_t *pod_edit_object(json_t *parent, const char *key);

/* Add a variable to the i-th container, unless that has one of this name, or is not there. */
void pod_edit_variable(json_t *pod, size_t i, const char *name, const char *value);

/*
 * Does a container have a limit or a request for the resource? *ret_units: the sum of them, -1 when
 * a quantity is not a plain number.
 */
bool pod_edit_has(const json_t *pod, const char *resource, int64_t *ret_units);

/*
 * Give the first container resources: `group`, what the networks of its group need, as limits (the
 * API server copies them into requests), and `named`, what the networks need that the pod names
 * itself, as limits and requests. Both are { resource: units }.
 *
 * A resource that a container has already stays as it is; a quantity that is too small becomes a
 * warning. With `adds` the units of `named` are added to what the first container has.
 */
void pod_edit_resources(json_t *pod, const json_t *group, const json_t *named, bool adds,
			struct problems *warnings);

/* Add to the node selector; a label that the pod wants otherwise is replaced, with a warning. */
void pod_edit_selector(json_t *pod, const json_t *labels, struct problems *warnings);

/*
 * Mount /etc/podnetinfo into all containers: files `labels` and `annotations` of the pod and, with
 * `hugepages`, one for each hugepage request and limit, in MiB. The containers of the latter get
 * the variable CONTAINER_NAME. Nothing when the pod has a volume of that name.
 */
void pod_edit_net_info(json_t *pod, bool hugepages);
