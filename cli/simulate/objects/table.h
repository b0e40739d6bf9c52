// SPDX-License-Identifier: Apache-2.0
/*
 * meta.k8s.io/v1 Table: what `kubectl get` prints.
 *
 * Columns of custom resources come from additionalPrinterColumns (types integer, number, string,
 * boolean, date); those of built-in kinds from a table: Node, Pod, Namespace, Event, ConfigMap,
 * Secret, ServiceAccount, Deployment, DaemonSet, StatefulSet, ReplicaSet, Lease, Service,
 * CustomResourceDefinition. Other kinds have Name and Age (custom resources) or Name and Created At
 * (built-in).
 *
 * JSONPath: members (.a.b, .a\.b, ['a.b']), indexes ([0], [-1]), all items ([*], .*), and one
 * comparison of a member with a string ([?(@.type=="Ready")]). The first result counts. A path that
 * finds nothing gives an empty cell.
 *
 * Sources: Kubernetes API reference, "Table"; documentation of "Additional printer columns";
 * kubernetes pkg/printers/internalversion (columns of built-in kinds).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* includeObject of the request. */
enum table_objects {
	TABLE_METADATA, /* PartialObjectMetadata; the default */
	TABLE_NONE,
	TABLE_WHOLE,
};

struct table_kind {
	const char *group; /* "" for core */
	const char *kind;
	/* additionalPrinterColumns of a custom resource, or NULL */
	const json_t *columns;
	bool is_custom;
};

/*
 * Return a Table of the objects in the array `items`, in their order. list_metadata: metadata of
 * the Table (resourceVersion, continue, …), or NULL. now_us: wall time in microseconds, for ages.
 * with_columns false leaves columnDefinitions empty (later events of a watch). Borrows all; the
 * rows' objects are shared with items, so neither may be changed. Returns new.
 */
json_t *table_new(const struct table_kind *kind, const json_t *items, const json_t *list_metadata,
		  enum table_objects objects, bool with_columns, int64_t now_us);

/* Check the jsonPath of additionalPrinterColumns: 0, or -1 with ERR_INVALID "Invalid". */
int table_path_check(const char *path, struct err *err);

/*
 * A time span as kubectl prints it: "59s", "2m3s", "5h10m", "3d4h", "2y15d"; "<invalid>" for less
 * than -1 s. Writes to out.
 */
#define TABLE_AGE_SIZE 32
void table_age(int64_t span_us, char out[TABLE_AGE_SIZE]);
