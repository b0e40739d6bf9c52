// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderMultusConfig → NetworkAttachmentDefinition.
 *
 * Key: "namespace/name" of the config. World:
 *
 *	KIND_MULTUS_CONFIG  the config, and those of the same namespace that claim the same
 *                          NetworkAttachmentDefinition
 *	KIND_NAD            those whose controller is this config (by name), and the one of the name
 *                          that it claims
 *	KIND_IP_POOL        those that multus_config_pools (multus_config_names.h) names and that
 *                          exist, whatever the values
 *	KIND_NODE_LINK      those that multus_config_masters names, if a node has them
 *	KIND_NODE_RESOURCE  the one that multus_config_resource names, if a node offers it, whatever
 *                          the value
 *
 * A world without one of the last three kinds at all knows nothing about pools, links or resources;
 * then none of these is said to be missing.
 *
 * Read of a config:
 * metadata.{name,namespace,uid,generation,creationTimestamp,deletionTimestamp,annotations,labels},
 * spec, status; of a NetworkAttachmentDefinition:
 * metadata.{name,namespace,uid,deletionTimestamp,annotations,ownerReferences}, spec.config.
 *
 * Who owns a name: a NetworkAttachmentDefinition that a config owns, of whatever uid, is ours; so
 * is one without an owner that says what we would write, which is adopted, and an event says so.
 * Any other, without an owner or controlled by another kind's object, is left alone. Among configs
 * that claim one name the oldest wins, the others say so in their status. A config that is gone or
 * going takes its NetworkAttachmentDefinitions with it (deleted by uid; no garbage collector is
 * needed), and a changed annotation multus.spidernet.io/cr-name takes away the one of the old name
 * once the new one is asked for.
 *
 * A config that cannot be rendered changes nothing: the NetworkAttachmentDefinition keeps the last
 * good content. Ready becomes True only when the world shows the NetworkAttachmentDefinition as it
 * should be, so a plan that has to write it leaves the status for the next turn, which the write
 * itself causes.
 *
 * Pools and resources that do not exist are no reason to wait: the NetworkAttachmentDefinition is
 * made, the config is Degraded. In the first seconds of a config that is not said: what it needs
 * may come with it, in the same file.
 *
 * The condition Injected is another reconciler's (inject_check.h) and stays as it is.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

/*
 * Type of the condition on pods without injection: written by admission/inject_check.h, kept here.
 */
#define INJECTED_CONDITION "Injected"

reconcile_fn multus_config_reconcile;
