// SPDX-License-Identifier: Apache-2.0
/*
 * metadata.managedFields as a list of managers with their sets (fields.h).
 *
 * An entry is as in managedFields, but that "set" stands in place of "fieldsType" and "fieldsV1".
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define MANAGERS_APPLY  "Apply"
#define MANAGERS_UPDATE "Update"

/* Return new: the entries of an object. */
json_t *managers_read(const json_t *object);
/*
 * Set the object's managedFields, sorted as kube-apiserver does, without entries that own nothing;
 * takes entries.
 */
void managers_write(json_t *object, json_t *entries);

/* The entry of one manager; api_version counts for updates only. Borrowed, or NULL. */
json_t *managers_find(const json_t *entries, const char *manager, const char *operation,
		      const char *api_version, const char *subresource);
/* The same; made with the empty set when there is none. */
json_t *managers_need(json_t *entries, const char *manager, const char *operation,
		      const char *api_version, const char *subresource);
json_t *managers_set(const json_t *entry);
/* Takes set. */
void managers_put_set(json_t *entry, json_t *set);
void managers_put_time(json_t *entry, int64_t now_us);

/* "conflict with \"m\" using v1". Returns new; free(). */
char *managers_conflict(const json_t *entry);
