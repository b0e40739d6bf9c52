/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds of what users write: looked at in bytes, before anything is built from them. Called at the
 * door of the caches and by all that parse.
 */
#include "reconcilers/core/limits.h"

#include <assert.h>
#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/networks.h"

#define REASON "TooLarge"

/* Those that decisions about a pod's networks and addresses read. */
static const char *const pod_annotations[] = {
	NETWORKS_ANNOTATION,
	DEFAULT_NETWORK_ANNOTATION,
	"ipam.spidernet.io/ippools",
	"ipam.spidernet.io/ippool",
	"ipam.spidernet.io/routes",
	"cni.spidernet.io/network-resource-inject",
	"cni.spidernet.io/rdma-resource-inject",
	NULL,
};

static int refuse_bytes(size_t len, size_t max_bytes, struct err *err)
{
	return err_set(err, ERR_INVALID, REASON, "%zu bytes, at most %zu are read: make it shorter",
		       len, max_bytes);
}

int limits_check_text(const char *text, size_t len, size_t max_bytes, struct err *err)
{
	assert((text || len == 0) && max_bytes > 0);
	if (len > max_bytes)
		return refuse_bytes(len, max_bytes, err);
	if (json_weight(text, len, LIMIT_JSON_NODES) > LIMIT_JSON_NODES)
		return err_set(err, ERR_INVALID, REASON,
			       "more than %d commas, brackets and braces, at most so many are "
			       "read: make it smaller",
			       LIMIT_JSON_NODES);
	return 0;
}

json_t *limits_parse(const char *text, size_t len, size_t max_bytes, struct err *err)
{
	return limits_check_text(text, len, max_bytes, err) < 0 ? NULL : json_parse(text, len, err);
}

int limits_check_reduced(const json_t *value, struct err *err)
{
	if (!json_is_integer(value))
		return 0;
	return err_set(err, ERR_INVALID, REASON,
		       "is too large (%" JSON_INTEGER_FORMAT
		       " bytes or elements), at most %d bytes and %d elements are read: make it "
		       "smaller",
		       json_integer_value(value), LIMIT_CONFIG_BYTES, LIMIT_LIST);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static size_t labels_size(const json_t *labels)
{
	size_t size = 0;
	const char *key;
	json_t *value;

	json_each (labels, key, value)
		size += strlen(key) + json_string_length(value);
	return size;
}

static size_t size_of(const json_t *annotation)
{
	return json_is_integer(annotation) ? (size_t)json_integer_value(annotation)
					   : json_string_length(annotation);
}

int limits_check_pod(const json_t *pod, struct err *err)
{
	const json_t *annotations = json_at(pod, "metadata", "annotations");
	const json_t *labels = json_at(pod, "metadata", "labels");
	size_t size =
		json_is_integer(labels) ? (size_t)json_integer_value(labels) : labels_size(labels);
	size_t together = 0;

	if (limits_check_reduced(annotations, err) < 0)
		return err_in(err, "metadata.annotations");
	for (size_t i = 0; pod_annotations[i]; i++) {
		const json_t *value = json_at(annotations, pod_annotations[i]);

		together += size_of(value);
		if (size_of(value) > LIMIT_ANNOTATION_BYTES) {
			(void)refuse_bytes(size_of(value), LIMIT_ANNOTATION_BYTES, err);
			return err_in(err, "annotation %s", pod_annotations[i]);
		}
		if (json_is_string(value) &&
		    limits_check_text(json_string_value(value), json_string_length(value),
				      LIMIT_ANNOTATION_BYTES, err) < 0)
			return err_in(err, "annotation %s", pod_annotations[i]);
	}
	if (together > LIMIT_ANNOTATIONS_BYTES) {
		(void)refuse_bytes(together, LIMIT_ANNOTATIONS_BYTES, err);
		return err_in(err, "annotations that name networks, pools and resources");
	}
	if (size <= LIMIT_ANNOTATION_BYTES)
		return 0;
	(void)refuse_bytes(size, LIMIT_ANNOTATION_BYTES, err);
	return err_in(err, "metadata.labels");
}

json_t *limits_pod_annotations(const json_t *annotations)
{
	return limits_annotations(annotations, pod_annotations);
}

json_t *limits_labels(const json_t *labels)
{
	size_t size = labels_size(labels);

	return size > LIMIT_ANNOTATION_BYTES ? json_integer((json_int_t)size)
					     : json_incref((json_t *)labels);
}

/* ---- any object ------------------------------------------------------------------------------ */

json_t *limits_annotations(const json_t *annotations, const char *const *names)
{
	size_t left = LIMIT_ANNOTATIONS_BYTES;
	json_t *kept = json_object();

	for (size_t i = 0; names[i]; i++) {
		json_t *value = json_at(annotations, names[i]);
		size_t len = json_string_length(value);

		if (len > LIMIT_ANNOTATION_BYTES || len > left) {
			json_put(kept, names[i], json_integer((json_int_t)len));
			continue;
		}
		json_put(kept, names[i], json_incref(value));
		left -= len;
	}
	return kept;
}

/* If it fits into what is left. */
static void keep_annotation(json_t *kept, const char *name, json_t *value, size_t *left)
{
	size_t size = strlen(name) + json_string_length(value);

	if (!value || json_object_get(kept, name) ||
	    json_string_length(value) > LIMIT_ANNOTATION_BYTES || size > *left)
		return;
	json_object_set(kept, name, value);
	*left -= size;
}

json_t *limits_all_annotations(const json_t *annotations, const json_t *first, size_t max_bytes)
{
	json_t *kept = json_object(), *value;
	const char *name;
	size_t i;

	json_array_foreach (first, i, value) {
		name = json_str_or(value, "");
		keep_annotation(kept, name, json_at(annotations, name), &max_bytes);
	}
	json_each (annotations, name, value)
		keep_annotation(kept, name, value, &max_bytes);
	return kept;
}

/* A list of strings is often one text in parts. */
static size_t strings_size(const json_t *list)
{
	size_t size = 0, i;
	json_t *value;

	json_array_foreach (list, i, value)
		size += json_string_length(value);
	return size;
}

static size_t owner_size(const json_t *reference)
{
	const char *key;
	json_t *value;
	size_t size = 0;

	json_each (reference, key, value)
		size += json_string_length(value);
	return size;
}

static json_t *reduced_owners(json_t *references)
{
	json_t *reference, *controller = NULL, *kept;
	size_t size = 0, i;

	json_array_foreach (references, i, reference) {
		size += owner_size(reference);
		if (!controller && json_is_true(json_at(reference, "controller")))
			controller = reference;
	}
	if (size <= LIMIT_ANNOTATION_BYTES)
		return json_incref(references);
	kept = json_array();
	if (controller && owner_size(controller) <= LIMIT_ANNOTATION_BYTES)
		json_array_append(kept, controller);
	return kept;
}

void limits_reduce_metadata(json_t *metadata)
{
	const json_t *labels = json_at(metadata, "labels");
	json_t *owners = json_at(metadata, "ownerReferences");

	if (labels)
		json_put(metadata, "labels", limits_labels(labels));
	if (owners)
		json_put(metadata, "ownerReferences", reduced_owners(owners));
	if (strings_size(json_at(metadata, "finalizers")) > LIMIT_ANNOTATION_BYTES)
		json_object_del(metadata, "finalizers");
}

/* A value with all that is within it. */
struct content {
	size_t values, bytes; /* bytes of strings */
};

static void add_content(struct content *sum, struct content part)
{
	sum->values += part.values;
	sum->bytes += part.bytes;
}

static struct content content_of(const json_t *value)
{
	struct content content = {1, json_string_length(value)};
	const char *key;
	json_t *part;
	size_t i;

	json_each (value, key, part)
		add_content(&content, content_of(part));
	json_array_foreach (value, i, part)
		add_content(&content, content_of(part));
	return content;
}

/* What stands in the place of a string or list; NULL when it fits. Returns new. */
static json_t *size_instead(const json_t *value, struct content content)
{
	if (!json_is_string(value) && !json_is_array(value))
		return NULL;
	if (content.bytes > LIMIT_CONFIG_BYTES)
		return json_integer((json_int_t)content.bytes);
	if (json_array_size(value) > LIMIT_LIST)
		return json_integer((json_int_t)json_array_size(value));
	if (content.values > LIMIT_JSON_NODES)
		return json_integer((json_int_t)content.values);
	return NULL;
}

int limits_check_list(const json_t *list, struct err *err)
{
	json_auto_t *size = size_instead(list, content_of(list));

	return limits_check_reduced(size, err);
}

static struct content reduce_within(json_t *value);

/* Reduce a part of a value, and count what is left. Returns what stands in its place, or NULL. */
static json_t *reduce_part(json_t *part, struct content *sum)
{
	struct content content = reduce_within(part);
	json_t *size = size_instead(part, content);

	add_content(sum, size ? (struct content){1, 0} : content);
	return size;
}

static struct content reduce_within(json_t *value)
{
	struct content content = {1, json_string_length(value)};
	json_t *part, *size;
	const char *key;
	size_t i;

	json_object_foreach (value, key, part) {
		size = reduce_part(part, &content);
		if (size)
			json_object_set_new(value, key, size);
	}
	json_array_foreach (value, i, part) {
		size = reduce_part(part, &content);
		if (size)
			json_array_set_new(value, i, size);
	}
	return content;
}

/* What a value takes beside its text. */
#define PART_BYTES 16

size_t limits_weight(const json_t *value)
{
	size_t bytes = PART_BYTES + json_string_length(value), i;
	const char *key;
	json_t *part;

	json_each (value, key, part)
		bytes += strlen(key) + limits_weight(part);
	json_array_foreach (value, i, part)
		bytes += limits_weight(part);
	return bytes;
}

void limits_reduce(json_t *value)
{
	size_t left = LIMIT_OBJECT_BYTES;
	const char *key;
	json_t *part;

	(void)reduce_within(value);
	json_object_foreach (value, key, part) {
		size_t bytes = strlen(key) + limits_weight(part);

		if (bytes <= left)
			left -= bytes;
		else
			json_object_set_new(value, key, json_integer((json_int_t)bytes));
	}
}
