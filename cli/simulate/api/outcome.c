// SPDX-License-Identifier: Apache-2.0
/*
 * Refusals that name a resource, in the words of kube-apiserver. Used by all that answer requests.
 */
#include "cli/simulate/api/api_internal.h"

#include <assert.h>

#include "cli/simulate/objects/failure.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

static json_t *details_of(const struct resource *resource, const char *name)
{
	json_t *details = json_object();

	json_put_str(details, "name", name);
	if (resource->group[0])
		json_put_str(details, "group", resource->group);
	json_put_str(details, "kind", resource->plural);
	return details;
}

struct outcome outcome_not_found(const struct resource *resource, const char *name)
{
	auto_free char *long_name = resource_long_name(resource);

	return outcome_refused(404, "NotFound", resource, name, "%s \"%s\" not found", long_name,
			       name);
}

struct outcome outcome_bad_request(const char *fmt, ...)
{
	auto_free char *message = NULL;
	va_list ap;

	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	return outcome_of(failure_status(400, "BadRequest", message, NULL));
}

struct outcome outcome_refused(int code, const char *reason, const struct resource *resource,
			       const char *name, const char *fmt, ...)
{
	json_auto_t *details = details_of(resource, name);
	auto_free char *message = NULL;
	va_list ap;

	assert(code >= 400 && code <= 599 && reason);
	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	return outcome_of(failure_status(code, reason, message, details));
}

char *api_key(const char *ns, const char *name)
{
	assert(name);
	return str_empty(ns) ? str_dup(name) : str_printf("%s/%s", ns, name);
}
