// SPDX-License-Identifier: Apache-2.0
/*
 * A JSON object of JSON objects. See the header.
 */
#include "operator/boxes.h"

#include "lib/base/mem.h"
#include "lib/json/json.h"

struct boxes {
	json_t *all;
};

struct boxes *boxes_new(void)
{
	struct boxes *boxes = mem_new(struct boxes);

	boxes->all = json_object();
	return boxes;
}

void boxes_free(struct boxes *boxes)
{
	if (!boxes)
		return;
	json_decref(boxes->all);
	mem_free(boxes);
}

void boxes_put(struct boxes *boxes, const char *box, const char *key, json_t *value)
{
	if (!value)
		json_object_del(json_object_get(boxes->all, box), key);
	else
		json_put(json_need_object(boxes->all, box), key, json_incref(value));
}

json_t *boxes_get(const struct boxes *boxes, const char *box, const char *key)
{
	return json_object_get(json_object_get(boxes->all, box), key);
}

const json_t *boxes_all(const struct boxes *boxes, const char *box)
{
	const json_t *all = json_object_get(boxes->all, box);

	return json_object_size(all) ? all : NULL;
}

void boxes_add(const struct boxes *boxes, json_t *world, const char *box, const char *key)
{
	json_t *value = boxes_get(boxes, box, key);

	if (value)
		json_put(json_need_object(world, box), key, json_incref(value));
}
