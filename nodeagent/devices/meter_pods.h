// SPDX-License-Identifier: Apache-2.0
/*
 * Which pod has which device, and who owns the pod. Pure.
 */
#ifndef ORBWEAVER_NODEAGENT_DEVICES_METER_PODS_H
#define ORBWEAVER_NODEAGENT_DEVICES_METER_PODS_H

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

/*
 * {"kind", "namespace", "name"} of the owner of a Pod, new; NULL: none. A ReplicaSet that has its
 * name from a Deployment, by the label pod-template-hash, stands for that one.
 */
json_t *meter_owner(const json_t *pod);

#endif
