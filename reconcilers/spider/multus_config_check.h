// SPDX-License-Identifier: Apache-2.0
/*
 * What is wrong with a SpiderMultusConfig. The same answers for the reconciler, for admission and
 * for injection. What it refers to: multus_config_names.h; what is only odd: multus_config_warn.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "reconcilers/core/problems.h"

/* What a config without problems is rendered to. */
struct multus_rendering {
	json_t *config;         /* NULL: spec.customCNI is empty */
	struct err unsupported; /* what our own plugins cannot do of it; no reason: nothing */
};

void multus_rendering_done(struct multus_rendering *r);
#define auto_multus_rendering auto_call(multus_rendering_done)

/*
 * All that keeps a config from being rendered and written: its annotations and spec, and conflicts
 * with others in the world. An object without creationTimestamp (it is being admitted) is younger
 * than all.
 */
void multus_config_check(const json_t *world, const json_t *object, struct problems *problems);

/* The same, and what the config is rendered to; ret is zeroed, and stays so if it has problems. */
void multus_config_render(const json_t *world, const json_t *object, struct multus_rendering *ret,
			  struct problems *problems);

/*
 * What keeps the config from being given to pods by annotation: its type, and what its block has to
 * name. `rdma`: by CNI_ANNOTATION_RDMA_INJECT, which needs an RDMA resource. Part of
 * multus_config_check for configs with the annotation; a label set by hand brings one here that was
 * never checked.
 */
void multus_config_check_injection(const json_t *object, bool rdma, struct problems *problems);
