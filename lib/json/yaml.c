// SPDX-License-Identifier: Apache-2.0
/*
 * YAML in, JSON values out. libyaml's events are put together with a stack of our own, so nesting
 * costs no recursion and meets our limit first.
 */
#include "lib/json/yaml.h"

#include <assert.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/json/yaml_scalar.h"

/* Bytes of a key or name that a message quotes. */
#define QUOTE_MAX 64
#define MERGE_KEY "<<"
#define MERGE_TAG "tag:yaml.org,2002:merge"

/* An array or object that is being filled. */
struct frame {
	json_t *container; /* borrowed: its parent has it, or builder.root */
	char *key;         /* object: the key whose value comes next; NULL: a key comes next */
	char *anchor;      /* what to call it when it is complete; may be NULL */
	json_t *merged;    /* object: members of merge keys, which may be replaced; NULL: none */
	bool is_merging;   /* object: the value that comes next is that of a merge key */
	json_t *pending;   /* that value while it is being filled; NULL: none */
	yaml_mark_t mark;  /* of that merge key */
};

struct builder {
	json_t *documents;
	json_t *root; /* of the current document; NULL: not there yet */
	struct frame stack[JSON_MAX_DEPTH];
	size_t depth;
	struct map anchors; /* name → json_t, complete values of this document */
	size_t nodes;
	bool as_kubectl;  /* duplicate and merge keys are taken */
	json_t *warnings; /* may be NULL */
	struct err *err;
};

static void decref_value(void *value)
{
	json_decref(value);
}

static void frame_done(struct frame *f)
{
	mem_free(f->key);
	mem_free(f->anchor);
	json_decref(f->merged);
	json_decref(f->pending);
	*f = (struct frame){0};
}

static int fail_at(struct builder *b, const yaml_mark_t *mark, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail_at(struct builder *b, const yaml_mark_t *mark, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	return err_set(b->err, ERR_INVALID, "BadYaml", "line %zu, column %zu: %s", mark->line + 1,
		       mark->column + 1, text);
}

static int quote_len(const char *s)
{
	return (int)str_clip(s, strlen(s), QUOTE_MAX);
}

/* Count one more node, with len bytes of text. */
static int count(struct builder *b, size_t len, const yaml_mark_t *mark)
{
	size_t more = 1 + len / 32;

	if (more > YAML_MAX_NODES - b->nodes)
		return fail_at(b, mark, "more than %d values, aliases included", YAML_MAX_NODES);
	b->nodes += more;
	return 0;
}

/* Count a value that is about to be copied to the given depth, and all that is in it. */
static int count_copy(struct builder *b, const json_t *value, size_t depth, const yaml_mark_t *mark)
{
	const char *key;
	json_t *item;
	size_t i;

	if (count(b, json_string_length(value), mark) < 0)
		return -1;
	if (!json_is_object(value) && !json_is_array(value))
		return 0;
	if (depth == JSON_MAX_DEPTH)
		return fail_at(b, mark, "nested deeper than %d levels", JSON_MAX_DEPTH);

	json_each (value, key, item)
		if (count(b, strlen(key), mark) < 0 || count_copy(b, item, depth + 1, mark) < 0)
			return -1;
	json_array_foreach (value, i, item)
		if (count_copy(b, item, depth + 1, mark) < 0)
			return -1;
	return 0;
}

static struct frame *top(struct builder *b)
{
	return b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
}

static bool wants_key(struct builder *b)
{
	const struct frame *f = top(b);

	return f && json_is_object(f->container) && !f->key;
}

static int add_key(struct builder *b, const json_t *value, const yaml_mark_t *mark)
{
	struct frame *f = top(b);
	auto_free char *key = NULL;

	if (json_is_string(value))
		key = str_dup(json_string_value(value));
	else if (json_is_integer(value) || json_is_boolean(value))
		key = json_text(value);
	else
		return fail_at(b, mark, "%s cannot be a key; if it is text, quote it",
			       json_is_null(value) ? "null" : json_type_words(value));

	if (json_object_get(f->container, key) && json_object_del(f->merged, key) < 0) {
		if (!b->as_kubectl)
			return fail_at(b, mark, "duplicate key \"%.*s\"", quote_len(key), key);
		if (b->warnings)
			json_array_append_new(b->warnings,
					      json_fmt("line %zu, column %zu: duplicate key "
						       "\"%.*s\", the last one "
						       "counts",
						       mark->line + 1, mark->column + 1,
						       quote_len(key), key));
	}
	f->key = take_ptr(key);
	return 0;
}

/* ---- merge keys ------------------------------------------------------------------------------ */

static int merge_one(struct frame *f, const json_t *value)
{
	const char *key;
	json_t *member;

	if (!json_is_object(value))
		return -1;
	if (!f->merged)
		f->merged = json_object();
	json_each (value, key, member) {
		json_put(f->container, key, json_incref(member));
		json_put_bool(f->merged, key, true);
	}
	return 0;
}

/* The value of a merge key is complete. */
static int merge(struct builder *b, struct frame *f, const json_t *value)
{
	size_t n = json_array_size(value);
	int rc = json_is_array(value) ? 0 : merge_one(f, value);

	/* The first one counts, so it comes last. */
	while (rc == 0 && n-- > 0)
		rc = merge_one(f, json_array_get(value, n));
	f->is_merging = false;
	if (rc == 0)
		return 0;
	return fail_at(b, &f->mark,
		       "the value of a merge key (<<) must be a mapping or a list of them");
}

/*
 * Put a value where the next one belongs; takes it. is_begun: it is a collection whose members are
 * still to come.
 */
static int add_value(struct builder *b, json_t *value, bool is_begun, const yaml_mark_t *mark)
{
	json_auto_t *owned = value;
	struct frame *f = top(b);
	auto_free char *key = NULL;

	if (!f) {
		b->root = take_ptr(owned);
		return 0;
	}
	if (wants_key(b))
		return add_key(b, value, mark);

	if (json_is_array(f->container)) {
		(void)json_array_append_new(f->container, take_ptr(owned));
		return 0;
	}
	key = take_ptr(f->key);
	if (!f->is_merging)
		json_put(f->container, key, take_ptr(owned));
	else if (is_begun)
		f->pending = take_ptr(owned);
	else
		return merge(b, f, owned);
	return 0;
}

static void anchor_end(struct builder *b, const char *name, json_t *value)
{
	if (name)
		map_set(&b->anchors, name, json_incref(value));
}

/* A merge key, which Go's reader also knows by its tag. */
static bool is_merge_key(struct builder *b, const yaml_event_t *event)
{
	const char *tag = (const char *)event->data.scalar.tag;
	const char *text = (const char *)event->data.scalar.value;

	return wants_key(b) && strcmp(text, MERGE_KEY) == 0 &&
	       (tag ? str_eq(tag, MERGE_TAG) : event->data.scalar.plain_implicit);
}

static json_t *scalar_value(struct builder *b, const yaml_event_t *event, const char *text)
{
	const char *tag = (const char *)event->data.scalar.tag;

	if (tag)
		return yaml_scalar_tagged(tag, text, b->err);
	if (!event->data.scalar.plain_implicit)
		return json_string(text);
	if (is_merge_key(b, event)) {
		(void)err_set(b->err, ERR_INVALID, "BadYaml",
			      "merge keys (<<) are not supported, write the fields out");
		return NULL;
	}
	return yaml_scalar_plain(text, b->err);
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
	const yaml_mark_t *mark = &event->start_mark;
	const char *text = (const char *)event->data.scalar.value;
	const char *anchor = (const char *)event->data.scalar.anchor;
	size_t len = event->data.scalar.length;
	json_t *value;

	if (memchr(text, '\0', len))
		return fail_at(b, mark, "NUL characters are not supported");
	if (count(b, len, mark) < 0)
		return -1;
	if (b->as_kubectl && is_merge_key(b, event)) {
		struct frame *f = top(b);

		f->is_merging = true;
		f->mark = *mark;
		f->key = str_dup(MERGE_KEY);
		return 0;
	}
	value = scalar_value(b, event, text);
	if (!value)
		return err_in(b->err, "line %zu, column %zu", mark->line + 1, mark->column + 1);

	anchor_end(b, anchor, value);
	return add_value(b, value, false, mark);
}

static int on_alias(struct builder *b, const yaml_event_t *event)
{
	const yaml_mark_t *mark = &event->start_mark;
	const char *name = (const char *)event->data.alias.anchor;
	const json_t *value = map_get(&b->anchors, name);

	if (!value)
		return fail_at(b, mark, "alias *%.*s: no complete value has this anchor before",
			       quote_len(name), name);
	if (count_copy(b, value, b->depth, mark) < 0)
		return -1;
	return add_value(b, json_deep_copy(value), false, mark);
}

static int on_start(struct builder *b, json_t *container, const char *anchor, const char *tag,
		    const char *tag_known, const yaml_mark_t *mark)
{
	json_auto_t *owned = container;

	if (tag && !str_eq(tag, "!") && !str_eq(tag, tag_known))
		return fail_at(b, mark, "tag %.*s is not supported for %s", quote_len(tag), tag,
			       json_type_words(container));
	if (wants_key(b))
		return fail_at(b, mark, "%s cannot be a key", json_type_words(container));
	if (b->depth == JSON_MAX_DEPTH)
		return fail_at(b, mark, "nested deeper than %d levels", JSON_MAX_DEPTH);
	if (count(b, 0, mark) < 0 || add_value(b, take_ptr(owned), true, mark) < 0)
		return -1;

	/*
	 * From here on the name means the value that begins now, which has to be complete before it
	 * can be used.
	 */
	if (anchor)
		(void)map_del(&b->anchors, anchor);
	b->stack[b->depth++] = (struct frame){.container = container, .anchor = str_dup(anchor)};
	return 0;
}

static int on_end(struct builder *b)
{
	json_auto_t *pending = NULL;
	struct frame *f = top(b);

	anchor_end(b, f->anchor, f->container);
	frame_done(f);
	b->depth--;
	f = top(b);
	if (!f || !f->pending)
		return 0;
	pending = take_ptr(f->pending);
	return merge(b, f, pending);
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
		return 0;
	case YAML_DOCUMENT_END_EVENT:
		map_done(&b->anchors);
		if (!json_is_null(b->root))
			(void)json_array_append(b->documents, b->root);
		json_decref(take_ptr(b->root));
		return 0;
	case YAML_ALIAS_EVENT:
		return on_alias(b, event);
	case YAML_SCALAR_EVENT:
		return on_scalar(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(b, json_array(), (const char *)event->data.sequence_start.anchor,
				(const char *)event->data.sequence_start.tag, YAML_SEQ_TAG,
				&event->start_mark);
	case YAML_MAPPING_START_EVENT:
		return on_start(b, json_object(), (const char *)event->data.mapping_start.anchor,
				(const char *)event->data.mapping_start.tag, YAML_MAP_TAG,
				&event->start_mark);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_end(b);
	}
	return 0;
}

static int run(struct builder *b, yaml_parser_t *parser)
{
	for (;;) {
		yaml_event_t event;
		bool last;
		int rc;

		if (!yaml_parser_parse(parser, &event)) {
			if (parser->error == YAML_MEMORY_ERROR)
				mem_exhausted();
			/* The reader works on bytes and has no position in lines yet. */
			if (parser->error == YAML_READER_ERROR)
				return err_set(b->err, ERR_INVALID, "BadYaml", "byte %zu: %s",
					       parser->problem_offset + 1, parser->problem);
			return fail_at(b, &parser->problem_mark, "%s%s%s",
				       parser->context ? parser->context : "",
				       parser->context ? ": " : "", parser->problem);
		}
		last = event.type == YAML_STREAM_END_EVENT;
		rc = on_event(b, &event);
		yaml_event_delete(&event);
		if (rc < 0 || last)
			return rc;
	}
}

static json_t *parse_stream(const char *text, size_t len, bool as_kubectl, json_t *warnings,
			    struct err *err)
{
	struct builder b = {
		.documents = json_array(),
		.anchors = {.free_value = decref_value},
		.as_kubectl = as_kubectl,
		.warnings = warnings,
		.err = err,
	};
	yaml_parser_t parser;
	json_t *documents = NULL;

	if (!yaml_parser_initialize(&parser))
		mem_exhausted();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (run(&b, &parser) == 0)
		documents = take_ptr(b.documents);
	yaml_parser_delete(&parser);
	while (b.depth > 0)
		frame_done(&b.stack[--b.depth]);
	map_done(&b.anchors);
	json_decref(b.root);
	json_decref(b.documents);
	return documents;
}

/* NULL: not JSON, or not a document that begins like one. Returns new. */
static json_t *parse_as_json(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && strchr(" \t\r\n", text[i]) && text[i])
		i++;
	if (i == len || (text[i] != '{' && text[i] != '['))
		return NULL;
	return json_parse(text, len, NULL);
}

json_t *yaml_parse_all(const char *text, size_t len, struct err *err)
{
	json_t *value = parse_as_json(text, len);

	assert(text || len == 0);
	return value ? json_pack("[o]", value) : parse_stream(text, len, false, NULL, err);
}

json_t *yaml_parse_as_kubectl(const char *text, size_t len, json_t *ret_warnings, struct err *err)
{
	json_t *value = parse_as_json(text, len);

	return value ? json_pack("[o]", value) : parse_stream(text, len, true, ret_warnings, err);
}

json_t *yaml_parse(const char *text, size_t len, struct err *err)
{
	json_auto_t *documents = yaml_parse_all(text, len, err);
	size_t n = json_array_size(documents);

	if (!documents)
		return NULL;
	if (n != 1) {
		(void)err_set(err, ERR_INVALID, "BadYaml",
			      "there are %zu documents, there must be exactly one", n);
		return NULL;
	}
	return json_incref(json_array_get(documents, 0));
}
