// SPDX-License-Identifier: Apache-2.0
/* Quantities as numbers, and the requests of a pod. For the scheduler and the devices of a pod. */
#include "cli/simulate/decide/quantity.h"

#include <stdlib.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

double quantity_read(const json_t *value)
{
	static const struct {
		const char *suffix;
		double factor;
	} suffixes[] = {
		{"", 1},     {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},
		{"T", 1e12}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
	};
	const char *text = json_string_value(value);
	char *end;
	double number;

	if (!text)
		return json_is_number(value) ? json_number_value(value) : 0;
	number = strtod(text, &end);
	if (end == text)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		if (str_eq(end, suffixes[i].suffix))
			return number * suffixes[i].factor;
	return 0;
}

/* {resource: number} of one container, new. */
static json_t *of_container(const json_t *container)
{
	json_t *sum = json_object(), *value;
	const char *resource;

	json_each (json_at(container, "resources", "limits"), resource, value)
		json_put(sum, resource, json_real(quantity_read(value)));
	json_each (json_at(container, "resources", "requests"), resource, value)
		json_put(sum, resource, json_real(quantity_read(value)));
	return sum;
}

double quantity_of_container(const json_t *container, const char *resource)
{
	json_auto_t *all = of_container(container);

	return json_number_value(json_object_get(all, resource));
}

json_t *quantity_of_pod(const json_t *pod)
{
	json_t *sum = json_object(), *container, *value;
	const char *resource;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container) {
		json_auto_t *one = of_container(container);

		json_each (one, resource, value)
			json_put(sum, resource,
				 json_real(json_number_value(json_object_get(sum, resource)) +
					   json_number_value(value)));
	}
	json_array_foreach (json_at(pod, "spec", "initContainers"), i, container) {
		json_auto_t *one = of_container(container);

		json_each (one, resource, value)
			if (json_number_value(value) >
			    json_number_value(json_object_get(sum, resource)))
				json_put(sum, resource, json_incref(value));
	}
	json_put(sum, "pods", json_real(1));
	return sum;
}
