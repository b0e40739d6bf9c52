// SPDX-License-Identifier: Apache-2.0
/* Gauges about objects, to alert on: findings, conditions, VFs, resources, drains. */
#pragma once

#include "lib/base/metrics.h"
#include "operator/controllers/controllers.h"

struct object_metrics {
	struct object_counts *counts; /* updated by the manager when objects change */
	struct metric *found, *conditions, *policy_vfs, *resource_nodes, *drains, *oldest_drain;
};

void object_metrics_init(struct object_metrics *m, struct metrics *metrics);
void object_metrics_done(struct object_metrics *m);

/* Set them; from NULL: to nothing, on a standby. A sum over the replicas counts nothing twice. */
void object_metrics_collect(struct object_metrics *m, const struct controller_sources *from);
