// SPDX-License-Identifier: Apache-2.0
/*
 * Label and field selectors in the form of query strings, as functions of an object.
 *
 * Labels: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, joined by commas; blanks
 * are free. Numeric comparisons (`a>1`) are refused. An empty selector selects everything.
 *
 * Fields: `path=value`, `path==value`, `path!=value`, joined by commas; `\\`, `\,` and `\=` in
 * values. Every kind has metadata.name and, if namespaced, metadata.namespace; besides these
 *
 *   pods         spec.nodeName, spec.restartPolicy, spec.schedulerName, spec.serviceAccountName,
 *                spec.hostNetwork, status.phase, status.podIP, status.nominatedNodeName
 *   events       involvedObject.{kind,namespace,name,uid,apiVersion,resourceVersion,fieldPath},
 *                reason, reportingComponent, source, type
 *   nodes        spec.unschedulable
 *   namespaces   status.phase
 *   secrets      type
 *
 * and the selectableFields of a custom resource.
 *
 * Sources: Kubernetes documentation, "Labels and Selectors", "Field Selectors".
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

struct selector;

/* Which fields can be selected. */
struct selector_kind {
	const char *group; /* "" for core */
	const char *kind;  /* "Pod" */
	bool namespaced;
	const json_t *selectable; /* selectableFields of the version of the CRD, or NULL */
};

/*
 * Parse the values of the query parameters labelSelector and fieldSelector, decoded; NULL or "":
 * everything. Borrows. Returns new, or NULL with
 *
 *   ERR_INVALID "BadRequest"  syntax, a key or value that no label can have, a field that this kind
 *                             cannot be selected by (`field label not supported: spec.x`), more
 *                             than SELECTOR_MAX requirements; the text names the requirement.
 */
struct selector *selector_new(const struct selector_kind *kind, const char *labels,
			      const char *fields, struct err *err);
void selector_free(struct selector *selector);
OWN_DEFINE(struct selector, selector_free)
#define auto_selector auto_call(selector_free_p)

/* Does it select this object? NULL selects everything. An absent field is "". */
bool selector_matches(const struct selector *selector, const json_t *object);
