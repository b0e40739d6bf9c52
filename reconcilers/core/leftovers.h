// SPDX-License-Identifier: Apache-2.0
/*
 * What is left of the stack that we replace: programs that still run beside us, and objects that
 * no program reads any more.
 *
 * key: "ID KEY", an id of leftovers[] and the key of an object of it. World: <id>[key]; absent: it
 * is gone; "env": "namespace", ours, and "configNamespace", of the ConfigMap spiderpool-conf.
 * Plan: a finding (plan.h) on the object, or that there is none; nothing on the ConfigMap that
 * our agents read. Reasons: OldProgramRuns, NotRead.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

/* As upstream's charts and manifests name them. */
#define LEFTOVER_SRIOV_OPERATOR  "deployments/sriov-network-operator"
#define LEFTOVER_SPIDER_SRIOV    "deployments/spiderpool-sriov-operator"
#define LEFTOVER_SPIDER_OPERATOR "deployments/spiderpool-controller"
#define LEFTOVER_CONFIG_DAEMON   "daemonsets/sriov-network-config-daemon"
#define LEFTOVER_SRIOV_PLUGIN    "daemonsets/sriov-device-plugin"
#define LEFTOVER_SHARED_PLUGIN   "daemonsets/spiderpool-rdma-shared-device-plugin"
/* Of device plugins installed by themselves; that of SR-IOV had a DaemonSet for each CPU. */
#define LEFTOVER_LONE_SRIOV       "daemonsets/kube-sriov-device-plugin"
#define LEFTOVER_LONE_SRIOV_AMD64 "daemonsets/kube-sriov-device-plugin-amd64"
#define LEFTOVER_LONE_SHARED      "daemonsets/rdma-shared-dp-ds"
#define LEFTOVER_SHARED_CONFIG    "configmaps/spiderpool-rdma-shared-device-plugin"
#define LEFTOVER_RDMA_DEVICES     "configmaps/rdma-devices"
#define LEFTOVER_RESOURCE_LIST    "configmaps/sriovdp-config"
#define LEFTOVER_MADE_LIST        "configmaps/device-plugin-config"
#define LEFTOVER_DEVICE_FILES     "configmaps/smarter-device-manager"
#define LEFTOVER_SETTINGS         "configmaps/spiderpool-conf"
/* A guide of Spiderpool's calls its settings so. */
#define LEFTOVER_MISNAMED     "configmaps/spiderpool-config"
#define LEFTOVER_SRIOV_CONFIG "sriovoperatorconfigs"
#define LEFTOVER_SUBNET       "spidersubnets"

int leftover_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);
