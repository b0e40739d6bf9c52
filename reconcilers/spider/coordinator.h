// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderCoordinator → status: which networks are the cluster's own, so that the coordinator plugin
 * sends them through eth0.
 *
 * Key: the object's name; only COORDINATOR_DEFAULT is used by pods. World:
 *
 *	KIND_COORDINATOR       the object
 *	"configmaps"           kube-system/kubeadm-config, kube-flannel/kube-flannel-cfg, and
 *                             the one that "ciliumConfigMap" of "env" names, else
 *                             COORDINATOR_CILIUM_CONFIG
 *	"pods"                 those whose label `component` is one of COMPONENT_*
 *	"services"             default/kubernetes
 *	"servicecidrs"         of networking.k8s.io, where the server has them
 *	"ippools"              of crd.projectcalico.org
 *	"ciliumpodippools"     of cilium.io
 *
 * Kinds that the cluster does not have are just absent.
 *
 * The plan: status.phase Synced or NotReady, reason, overlayPodCIDR and serviceCIDR as the
 * coordinator plugin reads them, the conditions Ready and Degraded; and no finalizer: nothing has
 * to be undone when the object goes.
 *
 * Pods need the object COORDINATOR_DEFAULT. Where there is none for COORDINATOR_ABSENT_MS, the plan
 * makes it with Spiderpool's defaults; the time is for installers that bring their own. More of the
 * world for that:
 *
 *	"env"                  nowMs
 *	COORDINATOR_BOX_ABSENT what the reconciler posted to itself: since when there is none
 *
 * Where no network of services is to be found, spec.hijackCIDR may have it: it does when the
 * address of the Service default/kubernetes is in there.
 *
 * spec.podCIDRType auto looks at what the API server shows of the cluster's network (Cilium's
 * ConfigMap, Calico's pools, flannel's ConfigMap), not at files of the node on which the operator
 * happens to run. Where it finds none of them it means none, and a warning says so.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

#define COORDINATOR_DEFAULT    "default"
#define COORDINATOR_BOX_ABSENT "coordinatorabsent"
#define COORDINATOR_ABSENT_MS  30000
/* "namespace/name" */
#define COORDINATOR_CILIUM_CONFIG "kube-system/cilium-config"

reconcile_fn coordinator_reconcile;
