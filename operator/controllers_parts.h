/*
 * What the controllers*.c files share. For them only; controllers.h is the contract.
 */
#ifndef ORBWEAVER_OPERATOR_CONTROLLERS_PARTS_H
#define ORBWEAVER_OPERATOR_CONTROLLERS_PARTS_H

#include "operator/controllers.h"

/* What all wake rules get. */
struct change {
	const struct controller_sources *from;
	const char *kind, *key;
	const json_t *old, *now;
	void (*wake)(void *arg, enum controller_id id, const char *key);
	void *arg;
};

static inline void wake(const struct change *c, enum controller_id id, const char *key)
{
	c->wake(c->arg, id, key);
}

/* ---- controllers_inject.c ----------------------------------------------------------------------------------------- */

void inject_look_pod(const struct controller_sources *from, const struct controller *self,
		     const char *key, json_t *world);
void inject_look_config(const struct controller_sources *from, const struct controller *self,
			const char *key, json_t *world);

void inject_pod_changed(const struct change *c);
void inject_config_changed(const struct change *c);
void inject_namespace_changed(const struct change *c);
/* Something else than before is found wrong with the pod. */
void inject_pod_found(const struct change *c);

#endif
