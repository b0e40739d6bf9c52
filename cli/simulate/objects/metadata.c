// SPDX-License-Identifier: Apache-2.0
/* What every object's metadata has to be like, whatever its kind: names, labels, owners. */
#include <ctype.h>
#include <string.h>

#include "cli/simulate/objects/failure.h"
#include "cli/simulate/objects/schema.h"
#include "lib/base/names.h"
#include "lib/json/json.h"

#define SUBDOMAIN                                                                                  \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
	"or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
	"regex used for validation is "                                                            \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define QUALIFIED                                                                                  \
	"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "  \
	"end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "  \
	"used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define LABEL_VALUE                                                                                \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
	"or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "      \
	"'my_value',  or '12345', regex used for validation is "                                   \
	"'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

static void invalid(json_t *causes, const char *field, const char *value, const char *why)
{
	json_auto_t *text = json_fmt("%s", value);
	auto_free char *quoted = cause_value(text);

	cause_add(causes, "FieldValueInvalid", field, "Invalid value: %s: %s", quoted, why);
}

static void check_annotations(const json_t *annotations, json_t *causes)
{
	const size_t most = 256U << 10;
	const char *key = NULL;
	json_t *value = NULL;
	size_t total = 0;

	json_each (annotations, key, value) {
		auto_free char *lower = str_dup(key);

		for (char *c = lower; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		if (!name_is_qualified(lower))
			invalid(causes, "metadata.annotations", key, QUALIFIED);
		total += strlen(key) + json_string_length(value);
	}
	if (total > most)
		cause_add(causes, "FieldValueTooLong", "metadata.annotations",
			  "Too long: may not be more than %zu bytes", most);
}

static void check_owners(const json_t *owners, json_t *causes)
{
	static const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
	const json_t *owner = NULL;
	size_t i = 0, controllers = 0;

	json_array_foreach (owners, i, owner) {
		for (size_t n = 0; n < ARRAY_LEN(needed); n++) {
			auto_free char *at =
				str_printf("metadata.ownerReferences[%zu].%s", i, needed[n]);

			if (str_empty(json_str_at(owner, needed[n])))
				invalid(causes, at, "", "must not be empty");
		}
		controllers += json_is_true(json_at(owner, "controller"));
	}
	if (controllers > 1)
		cause_add(causes, "FieldValueInvalid", "metadata.ownerReferences",
			  "Invalid value: %zu: Only one reference can have Controller set to true",
			  controllers);
}

void metadata_validate(const json_t *object, bool namespaced, json_t *causes)
{
	const json_t *metadata = json_at(object, "metadata"), *finalizer = NULL;
	size_t i = 0;
	const char *key = NULL;
	json_t *value = NULL;
	const char *name = json_str_or(json_at(metadata, "name"), "");
	const char *prefix = json_str_or(json_at(metadata, "generateName"), "");
	const char *ns = json_str_or(json_at(metadata, "namespace"), "");
	auto_free char *generated = str_printf("%sx", prefix);

	if (!*name && !*prefix)
		cause_add(causes, "FieldValueRequired", "metadata.name",
			  "Required value: name or generateName is required");
	if (*name && !name_is_dns_subdomain(name))
		invalid(causes, "metadata.name", name, SUBDOMAIN);
	if (!*name && *prefix && !name_is_dns_subdomain(generated))
		invalid(causes, "metadata.generateName", prefix, SUBDOMAIN);
	if (namespaced && !*ns)
		cause_add(causes, "FieldValueRequired", "metadata.namespace", "Required value");
	if (!namespaced && *ns)
		cause_add(causes, "FieldValueForbidden", "metadata.namespace",
			  "Forbidden: not allowed on this type");
	json_each (json_at(metadata, "labels"), key, value) {
		const char *text = json_str_or(value, "");

		if (!name_is_qualified(key))
			invalid(causes, "metadata.labels", key, QUALIFIED);
		if (!name_is_label_value(text))
			invalid(causes, "metadata.labels", text, LABEL_VALUE);
	}
	check_annotations(json_at(metadata, "annotations"), causes);
	check_owners(json_at(metadata, "ownerReferences"), causes);
	json_array_foreach (json_at(metadata, "finalizers"), i, finalizer) {
		const char *text = json_str_or(finalizer, "");

		if (!name_is_qualified(text))
			invalid(causes, "metadata.finalizers", text, QUALIFIED);
	}
}
