// SPDX-License-Identifier: Apache-2.0
/*
 * Whose word counts beyond its own namespace.
 *
 * Policies and pools command nodes, which belong to everybody; a config of a group is put into pods
 * of others. So only namespaces of administrators may do that: the operator's own, kube-system,
 * spiderpool (where installations of Spiderpool keep theirs), and those of the operator's flag
 * --policy-namespaces.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/core/problems.h"

/* World: "env": "namespace", "policyNamespaces" (array of names; may be absent). */
bool namespace_is_trusted(const json_t *world, const char *ns);

/* namespace_is_trusted of the object's namespace. */
bool object_is_trusted(const json_t *world, const json_t *object);

/* Each of them once: where an object would count. */
void trusted_visit(const json_t *world, void (*visit)(void *arg, const char *ns), void *arg);

/* The same as "orbweaver-system, kube-system, spiderpool, …", for messages. Returns new; free(). */
char *trusted_namespaces(const json_t *world);

/* Add NamespaceNotTrusted, with the remedy, when the object's namespace is not trusted. */
void trust_check(const json_t *world, const json_t *object, struct problems *problems);
