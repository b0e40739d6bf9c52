// SPDX-License-Identifier: Apache-2.0
/*
 * The subresource scale: which members of an object it shows and sets, by the resource's paths.
 * Between objects as they are stored and the reads and writes of rest.c and write.c. Pure.
 */
#include "cli/simulate/api/scale.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* Which member a field of the Scale stands for: ".spec.replicas" of a CRD, or the same of apps. */
static const char *replicas_path(const struct resource *resource)
{
	return json_str_or(json_at(resource->scale, "specReplicasPath"), ".spec.replicas");
}

static json_t *at_path(const json_t *object, const char *path)
{
	auto_free char *copy = str_dup(path + 1);
	const json_t *value = object;
	char *rest = copy;

	while (rest && value)
		value = json_object_get(value, strsep(&rest, "."));
	return (json_t *)value;
}

static void put_at_path(json_t *object, const char *path, json_t *value)
{
	auto_free char *copy = str_dup(path + 1);
	char *rest = copy;

	for (;;) {
		const char *key = strsep(&rest, ".");

		if (!rest) {
			json_put(object, key, value);
			return;
		}
		object = json_need_object(object, key);
	}
}

/* {"matchLabels": {a: b}} as "a=b". */
static char *selector_text(const json_t *object)
{
	const json_t *labels = json_at(object, "spec", "selector", "matchLabels");
	auto_strbuf struct strbuf text = {0};
	const char *key;
	json_t *value;

	if (json_is_object(labels))
		json_each (labels, key, value)
			strbuf_addf(&text, "%s%s=%s", text.len ? "," : "", key,
				    json_str_or(value, ""));
	return strbuf_take(&text);
}

json_t *scale_of(const struct resource *resource, const json_t *object)
{
	const char *status =
		json_str_or(json_at(resource->scale, "statusReplicasPath"), ".status.replicas");
	auto_free char *selector = selector_text(object);
	json_t *scale = json_pack("{s:s, s:s, s:{}, s:{}, s:{}}", "kind", "Scale", "apiVersion",
				  "autoscaling/v1", "metadata", "spec", "status");
	json_t *metadata = json_object_get(scale, "metadata");

	json_put_str(metadata, "name", json_name(object));
	if (json_namespace(object)[0])
		json_put_str(metadata, "namespace", json_namespace(object));
	json_put_str(metadata, "uid", json_uid(object));
	json_put(metadata, "resourceVersion",
		 json_incref(json_at(object, "metadata", "resourceVersion")));
	json_put(metadata, "creationTimestamp",
		 json_incref(json_at(object, "metadata", "creationTimestamp")));
	json_put_int(json_object_get(scale, "spec"), "replicas",
		     json_integer_value(at_path(object, replicas_path(resource))));
	json_put_int(json_object_get(scale, "status"), "replicas",
		     json_integer_value(at_path(object, status)));
	if (selector[0])
		json_put_str(json_object_get(scale, "status"), "selector", selector);
	return scale;
}

void scale_put(const struct resource *resource, json_t *object, int64_t replicas)
{
	put_at_path(object, replicas_path(resource), json_integer(replicas));
}
