// SPDX-License-Identifier: Apache-2.0
/* Which pod has which device or uses which port, and who owns the pod. Pure. */
#pragma once

#include <jansson.h>

/*
 * { "0000:3b:00.2": "namespace/pod" }, new.
 *
 * allocated: what the kubelet names, {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}};
 * devices that are not PCI functions are shared ones, and no pod's. attachments: what CNI plugins
 * have attached (attachment_index_describe()), for devices that the kubelet has not allocated. Both
 * may be NULL. The kubelet's allocation counts.
 */
json_t *meter_pods(const json_t *allocated, const json_t *attachments);

/* A port of the host, and what is known of pods; all but address may be NULL. */
struct meter_port {
	const char *address;    /* its PCI address */
	const json_t *observed; /* the observed document */
	/* Of pools_compute(): which NICs come with a token of a shared resource. */
	const json_t *resources;
	const json_t *allocated, *attachments; /* as for meter_pods() */
};

/*
 * Pods that use the port, {"namespace/pod": true}, new: they have its function or one of its VFs, a
 * token of a shared resource that selects it, or an interface on top of the port's.
 */
json_t *meter_pods_on_port(const struct meter_port *port);

/*
 * {"kind", "namespace", "name"} of the owner of a Pod, new; NULL: none. A ReplicaSet that has its
 * name from a Deployment, by the label pod-template-hash, stands for that one.
 */
json_t *meter_owner(const json_t *pod);
