// SPDX-License-Identifier: Apache-2.0
/*
 * RFC 6902, as far as our webhooks use it (add, remove, replace in objects and by index in arrays):
 * what an API server does with the patch in our answer. A header of inline functions, so that any
 * test can include it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* One step of a pointer, unescaped. Returns new; free(). */
static inline char *json_patch_step(const char **pointer)
{
	auto_strbuf struct strbuf step = {0};
	const char *p = *pointer + 1;

	for (; *p && *p != '/'; p++)
		if (*p == '~')
			strbuf_addc(&step, *++p == '1' ? '/' : '~');
		else
			strbuf_addc(&step, *p);
	*pointer = p;
	return strbuf_take(&step);
}

static inline json_t *json_patch_child(json_t *parent, const char *step)
{
	return json_is_array(parent) ? json_array_get(parent, strtoul(step, NULL, 10))
				     : json_object_get(parent, step);
}

static inline bool json_patch_carry_out(json_t *parent, const char *op, const char *step,
					json_t *value)
{
	bool is_there = json_patch_child(parent, step) != NULL;

	if (json_is_array(parent))
		return str_eq(op, "replace") && is_there &&
		       json_array_set(parent, strtoul(step, NULL, 10), value) == 0;
	if (!json_is_object(parent) || (!str_eq(op, "add") && !is_there))
		return false;
	return str_eq(op, "remove") ? json_object_del(parent, step) == 0
				    : json_object_set(parent, step, value) == 0;
}

/*
 * False when an operation does not fit: a server would answer with an error. The object is changed
 * in place.
 */
static inline bool json_patch_apply(json_t *object, const json_t *patch)
{
	json_t *entry;
	size_t i;

	json_array_foreach (patch, i, entry) {
		json_auto_t *value = json_deep_copy(json_object_get(entry, "value"));
		const char *pointer = json_str_or(json_at(entry, "path"), "");
		json_t *parent = object;

		while (*pointer == '/') {
			auto_free char *step = json_patch_step(&pointer);

			if (*pointer == '/')
				parent = json_patch_child(parent, step);
			else if (!json_patch_carry_out(parent, json_str_at(entry, "op"), step,
						       value))
				return false;
		}
	}
	return true;
}

/* The patch of an AdmissionReview's response; NULL when there is none. Returns new. */
static inline json_t *json_patch_of(const json_t *review)
{
	const char *text = json_str_at(review, "response", "patch");
	auto_strbuf struct strbuf decoded = {0};

	if (!text || base64_decode(text, strlen(text), &decoded, NULL))
		return NULL;
	return json_parse(strbuf_str(&decoded), decoded.len, NULL);
}
