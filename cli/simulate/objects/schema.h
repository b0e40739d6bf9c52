// SPDX-License-Identifier: Apache-2.0
/*
 * Structural schemas of custom resources (apiextensions.k8s.io/v1): default, prune, validate.
 *
 * Understood: type, properties, items, additionalProperties, required, enum, minimum, maximum,
 * exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, pattern, minItems,
 * maxItems, minProperties, maxProperties, format, nullable, default, allOf, anyOf, oneOf, not, and
 * x-kubernetes-int-or-string, -preserve-unknown-fields, -embedded-resource, -list-type,
 * -list-map-keys, -map-type, -patch-strategy, -patch-merge-key.
 *
 * Formats checked: int32, int64, date-time, date, ipv4, ipv6, cidr, mac, uuid, byte. Other formats
 * are accepted, as by kube-apiserver.
 *
 * Ignored: description, title, example, externalDocs, and every other keyword.
 * Not evaluated: x-kubernetes-validations (CEL). A rule never refuses anything here; tests of rules
 * need a real API server.
 *
 * Patterns are RE2 for kube-apiserver and what lib/base/pattern.h makes of it here; schema_new
 * refuses what that does not know.
 *
 * Sources: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions";
 * kube-openapi pkg/validation (wording).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

struct schema;

/*
 * Compile the openAPIV3Schema of one version of a CustomResourceDefinition. Keeps a reference to
 * it; it must not change afterwards. apiVersion, kind and metadata need not be among its
 * properties. Returns new, or NULL with
 *
 *   ERR_INVALID "Invalid"  a keyword of a wrong type, a pattern that cannot be compiled, a $ref, a
 *                          list of type map without keys, deeper or larger than limits.h allows;
 *                          the text names the path within the schema.
 */
struct schema *schema_new(const json_t *openapi, struct err *err);

/*
 * Return the schema of a built-in kind: lists with keys, merge keys of strategic patches and
 * atomic maps, as far as a small table knows them; nothing is required and nothing is pruned. A
 * kind that is not in the table has metadata alone. Returns new; never fails. group: "" for core.
 */
struct schema *schema_builtin(const char *group, const char *kind);

void schema_free(struct schema *schema);
OWN_DEFINE(struct schema, schema_free)
#define auto_schema auto_call(schema_free_p)

/* The schema as JSON, metadata included, for /openapi. Borrowed. */
const json_t *schema_json(const struct schema *schema);

/*
 * Set absent members to their defaults, also members that are null but not nullable; in place.
 * Defaults within an absent parent count only when the parent has a default. Twice is once.
 */
void schema_default(const struct schema *schema, json_t *object);

/*
 * Remove members that the schema does not know, in place. apiVersion, kind and metadata stay, at
 * the top and in embedded resources; metadata is pruned to the fields of ObjectMeta. Twice is once.
 * ret_unknown: NULL, or an array to which the path of each removed member is appended, as in the
 * warning `unknown field "spec.x"`; at most CAUSES_MAX.
 */
void schema_prune(const struct schema *schema, json_t *object, json_t *ret_unknown);

/*
 * Append one cause (failure.h) for each fault of the object to `causes`. Required members come
 * first, then members in the object's order. Without faults nothing is appended. Strings longer
 * than 64 KiB are not compared with patterns and count as matching.
 */
void schema_validate(const struct schema *schema, const json_t *object, json_t *causes);

/*
 * Append causes for metadata: name or generateName, namespace, labels, annotations, finalizers,
 * ownerReferences. namespaced: the kind has namespaces. A DNS subdomain is demanded of the name.
 */
void metadata_validate(const json_t *object, bool namespaced, json_t *causes);
