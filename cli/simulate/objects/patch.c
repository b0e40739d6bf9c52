// SPDX-License-Identifier: Apache-2.0
/*
 * Which patch is which, and JSON patch itself. Each works on a copy, so that a failed operation
 * leaves nothing behind. Strategic merge patches: strategic.c.
 */
#include "cli/simulate/objects/patch.h"

#include <string.h>

#include "cli/simulate/objects/limits.h"
#include "cli/simulate/objects/schema_internal.h"
#include "cli/simulate/objects/strategic.h"
#include "lib/json/json.h"

/* ---- JSON pointers (RFC 6901) ---------------------------------------------------------------- */

/* A pointer, read from left to right. */
struct pointer {
	const char *text;
	const char *at; /* "" at its end, else at a '/' */
	size_t depth;
};

/* Take the next token. Returns new; NULL at the end. */
static char *pointer_next(struct pointer *pointer)
{
	struct strbuf token = {0};

	if (*pointer->at != '/')
		return NULL;
	for (pointer->at++; *pointer->at && *pointer->at != '/'; pointer->at++) {
		char c = *pointer->at;

		if (c == '~' && (pointer->at[1] == '0' || pointer->at[1] == '1'))
			c = *++pointer->at == '0' ? '~' : '/';
		strbuf_addc(&token, c);
	}
	pointer->depth++;
	return strbuf_take(&token);
}

/* An index without leading zeros, up to `most`. */
static bool array_index(const char *token, size_t most, size_t *ret)
{
	int64_t index = 0;

	if ((token[0] == '0' && token[1]) || !str_to_int(token, 0, (int64_t)most, &index))
		return false;
	*ret = (size_t)index;
	return true;
}

static json_t *child(json_t *parent, const char *token)
{
	size_t index = 0;

	if (json_is_object(parent))
		return json_object_get(parent, token);
	if (json_is_array(parent) && array_index(token, json_array_size(parent), &index))
		return json_array_get(parent, index);
	return NULL;
}

static json_t *pointer_find(json_t *root, const char *text)
{
	struct pointer pointer = {.text = text, .at = text};
	json_t *value = root;

	while (value && *pointer.at) {
		auto_free char *token = pointer_next(&pointer);

		value = token ? child(value, token) : NULL;
	}
	return value;
}

/* ---- JSON patch (RFC 6902) ------------------------------------------------------------------- */

struct edit {
	json_t *root; /* ours */
	size_t count; /* values that root can have by now */
	size_t number;
	const char *op;
	struct err *err;
};

static int misfit(const struct edit *edit, const char *path, const char *what)
{
	return err_set(edit->err, ERR_INVALID, "Invalid", "operation %zu (%s) at \"%s\": %s",
		       edit->number, edit->op, path, what);
}

/* Find the parent of what `path` points to; *ret_token is its last token, new. */
static json_t *parent_of(const struct edit *edit, const char *path, char **ret_token,
			 size_t *ret_depth)
{
	struct pointer pointer = {.text = path, .at = path};
	json_t *parent = edit->root;
	char *token = pointer_next(&pointer);

	while (token && *pointer.at && parent) {
		parent = child(parent, token);
		free(token);
		token = pointer_next(&pointer);
	}
	*ret_token = token;
	*ret_depth = pointer.depth;
	return parent;
}

/* Takes value. */
static int put_at(struct edit *edit, const char *path, json_t *value, bool replaces)
{
	json_auto_t *owned = value;
	auto_free char *token = NULL;
	size_t depth = 0, index = 0, size = 0;
	json_t *parent = parent_of(edit, path, &token, &depth);

	if (object_count(value, depth, &edit->count, edit->err))
		return -1;
	if (!token) {
		json_replace(&edit->root, take_ptr(owned));
		return 0;
	}
	if (replaces && !child(parent, token))
		return misfit(edit, path, "does not exist");
	if (json_is_object(parent)) {
		json_put(parent, token, take_ptr(owned));
		return 0;
	}
	if (!json_is_array(parent))
		return misfit(edit, path, "its parent does not exist");
	size = json_array_size(parent);
	if (!replaces && str_eq(token, "-"))
		index = size;
	else if (!array_index(token, size, &index))
		return misfit(edit, path, "is not an index of the list");
	if (replaces)
		json_array_set_new(parent, index, take_ptr(owned));
	else
		json_array_insert_new(parent, index, take_ptr(owned));
	return 0;
}

static int remove_at(struct edit *edit, const char *path)
{
	auto_free char *token = NULL;
	size_t depth = 0, index = 0;
	json_t *parent = parent_of(edit, path, &token, &depth);

	if (!token)
		return misfit(edit, path, "the whole object cannot be removed");
	if (!child(parent, token))
		return misfit(edit, path, "does not exist");
	if (json_is_object(parent))
		json_object_del(parent, token);
	else if (array_index(token, json_array_size(parent), &index))
		json_array_remove(parent, index);
	return 0;
}

static int move_or_copy(struct edit *edit, const char *path, const char *from, bool moves)
{
	size_t from_len = strlen(from);
	json_t *value = pointer_find(edit->root, from);
	json_auto_t *kept = NULL;

	if (!value)
		return misfit(edit, from, "does not exist");
	if (!moves)
		return put_at(edit, path, json_deep_copy(value), false);
	if (str_starts(path, from) && path[from_len] == '/')
		return misfit(edit, path, "is within what is moved");
	if (str_eq(path, from))
		return 0;
	kept = json_incref(value);
	return remove_at(edit, from) ? -1 : put_at(edit, path, take_ptr(kept), false);
}

static int malformed(const struct edit *edit, const char *what)
{
	return err_set(edit->err, ERR_INVALID, "BadRequest", "operation %zu: %s", edit->number,
		       what);
}

static bool is_pointer(const char *text)
{
	return text && (*text == '\0' || *text == '/');
}

static int operate(struct edit *edit, const json_t *operation)
{
	static const char *const known[] = {"add", "remove", "replace", "move", "copy", "test"};
	const char *path = json_str_at(operation, "path"), *from = json_str_at(operation, "from");
	/* A null is a value here. */
	const json_t *value = json_object_get(operation, "value");
	bool is_known = false;

	edit->op = json_str_at(operation, "op");
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		is_known |= str_eq(edit->op, known[i]);
	if (!is_known)
		return malformed(edit, "op: must be one of add, remove, replace, move, copy, test");
	if (!is_pointer(path))
		return malformed(edit, "path: must be a JSON pointer: \"\" or \"/…\"");
	if (str_eq(edit->op, "remove"))
		return remove_at(edit, path);
	if (str_eq(edit->op, "move") || str_eq(edit->op, "copy")) {
		if (!is_pointer(from))
			return malformed(edit, "from: must be a JSON pointer: \"\" or \"/…\"");
		return move_or_copy(edit, path, from, str_eq(edit->op, "move"));
	}
	if (!value)
		return malformed(edit, "value: is missing");
	if (str_eq(edit->op, "test")) {
		const json_t *is = pointer_find(edit->root, path);

		return json_same(is, value) ? 0 : misfit(edit, path, "has another value");
	}
	return put_at(edit, path, json_deep_copy(value), str_eq(edit->op, "replace"));
}

static int patch_json(const json_t *object, const json_t *patch, json_t **ret, struct err *err)
{
	struct edit edit = {.err = err};
	const json_t *operation = NULL;
	size_t i = 0;
	int fault = 0;

	if (!json_is_array(patch))
		return err_set(err, ERR_INVALID, "BadRequest",
			       "a JSON patch must be an array of operations");
	if (json_array_size(patch) > PATCH_MAX_OPERATIONS)
		return err_set(err, ERR_INVALID, "RequestEntityTooLarge",
			       "The allowed maximum operations in a JSON patch is %d, got %zu",
			       PATCH_MAX_OPERATIONS, json_array_size(patch));
	if (object_count(object, 0, &edit.count, err))
		return -1;
	edit.root = json_deep_copy(object);
	json_array_foreach (patch, i, operation) {
		edit.number = i;
		fault = operate(&edit, operation);
		if (fault)
			break;
	}
	if (!fault && !json_is_object(edit.root))
		fault = err_set(err, ERR_INVALID, "Invalid", "the result is not an object");
	if (fault)
		json_decref(edit.root);
	else
		*ret = edit.root;
	return fault;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int patch_merge(const json_t *object, const json_t *patch, json_t **ret, struct err *err)
{
	size_t count = 0;

	if (!json_is_object(patch))
		return err_set(err, ERR_INVALID, "BadRequest", "a merge patch must be an object");
	/* Neither is deeper than the result may be, so this bounds the walk. */
	if (object_check_size(patch, err) || object_count(object, 0, &count, err))
		return -1;
	*ret = json_deep_copy(object);
	json_merge_patch(*ret, patch);
	return 0;
}

int patch_object(enum patch_type type, const struct schema *schema, const json_t *object,
		 const json_t *patch, json_t **ret, struct err *err)
{
	json_auto_t *result = NULL;
	int fault = -1;

	if (!json_is_object(object))
		return err_set(err, ERR_INVALID, "BadRequest", "the object is not an object");
	switch (type) {
	case PATCH_JSON:
		fault = patch_json(object, patch, &result, err);
		break;
	case PATCH_MERGE:
		fault = patch_merge(object, patch, &result, err);
		break;
	case PATCH_STRATEGIC:
		fault = patch_strategic(schema ? schema->root : NULL, object, patch, &result, err);
		break;
	}
	if (fault || object_check_size(result, err))
		return -1;
	*ret = take_ptr(result);
	return 0;
}
