/*
 * SpiderMultusConfig → NetworkAttachmentDefinition.
 *
 * Key: "namespace/name" of the config. World:
 *
 *	KIND_MULTUS_CONFIG  the config, and those of the same namespace that claim the same NetworkAttachmentDefinition
 *	KIND_NAD            those whose controller is this config (by name), and the one of the name that it claims
 *	KIND_IP_POOL        those that multus_config_pools names and that exist, whatever the values
 *	KIND_NODE_RESOURCE  the one that multus_config_resource names, if a node offers it, whatever the value
 *
 * A world without the last two kinds at all knows nothing about pools or resources; then nothing is said to be missing.
 *
 * Read of a config: metadata.{name,namespace,uid,generation,creationTimestamp,deletionTimestamp,annotations,labels}, spec,
 * status; of a NetworkAttachmentDefinition: metadata.{name,namespace,uid,deletionTimestamp,annotations,ownerReferences},
 * spec.config.
 *
 * Who owns a name: one that nobody controls is adopted, and an event says so. One controlled by a live object of another
 * kind is left alone. Among configs that claim one name the oldest wins, the others say so in their status. A config that
 * is gone or going takes its NetworkAttachmentDefinitions with it (deleted by uid; no garbage collector is needed), and a
 * changed annotation multus.spidernet.io/cr-name takes away the one of the old name once the new one is asked for.
 *
 * A config that cannot be rendered changes nothing: the NetworkAttachmentDefinition keeps the last good content. Ready
 * becomes True only when the world shows the NetworkAttachmentDefinition as it should be, so a plan that has to write it
 * leaves the status for the next turn, which the write itself causes.
 *
 * Pools and resources that do not exist are no reason to wait: the NetworkAttachmentDefinition is made, the config is Degraded. In
 * the first seconds of a config that is not said: what it needs may come with it, in the same file.
 *
 * The condition Injected is another reconciler's (inject_check.h) and stays as it is.
 */
#ifndef ORBWEAVER_RECONCILERS_MULTUS_CONFIG_H
#define ORBWEAVER_RECONCILERS_MULTUS_CONFIG_H

#include "reconcilers/problems.h"
#include "reconcilers/reconcile.h"

reconcile_fn multus_config_reconcile;

/*
 * All that keeps a config from being rendered and written: its annotations and spec, and conflicts with others in the
 * world. An object without creationTimestamp (it is being admitted) is younger than all.
 */
void multus_config_check(const json_t *world, const json_t *object, struct problems *problems);

/*
 * What is accepted but will not do what it seems to say (a bond with the same port twice, a custom configuration without a
 * plugin, contradicting old and new fields). For a config without problems.
 */
void multus_config_warn(const json_t *object, struct problems *warnings);

/*
 * What keeps the config from being given to pods by annotation: its type, and what its block has to name. `rdma`: by
 * CNI_ANNOTATION_RDMA_INJECT, which needs an RDMA resource. Part of multus_config_check for configs with the annotation; a label
 * set by hand brings one here that was never checked.
 */
void multus_config_check_injection(const json_t *object, bool rdma, struct problems *problems);

/*
 * Named pools, and the resource, that do not exist: PoolMissing, ResourceMissing. For a config without problems; world as above.
 */
void multus_config_warn_missing(const json_t *world, const json_t *object,
				struct problems *warnings);

/* Visit the pools that the config names, without those with wildcards. For indexes of the cache, too. */
void multus_config_pools(const json_t *object, void (*visit)(void *arg, const char *pool),
			 void *arg);

/* The resource that pods need for the config's network, "" when there is none. Returns new; free(). */
char *multus_config_resource(const json_t *object);

/* The name of the NetworkAttachmentDefinition that the config claims. Borrowed. */
const char *multus_config_nad_name(const json_t *smc);

#endif
