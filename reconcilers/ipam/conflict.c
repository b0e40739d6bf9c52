// SPDX-License-Identifier: Apache-2.0
/*
 * The agent writes the annotation, lifecycle.c and allocate.c read it. Addresses are compared
 * without their prefix length, which endpoints have and reports do not.
 */
#include "reconcilers/ipam/conflict.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"

json_t *conflicts_said(const json_t *endpoint, const char *uid)
{
	const char *text =
		json_str_at(endpoint, "metadata", "annotations", ENDPOINT_CONFLICTS_ANNOTATION);
	json_auto_t *said =
		text ? limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, NULL) : NULL;
	json_t *conflicts = json_at(said, "conflicts");

	if (str_empty(uid) || !str_eq(json_str_at(said, "uid"), uid) ||
	    json_array_size(conflicts) == 0 || json_array_size(conflicts) > CONFLICTS_MAX)
		return NULL;
	return json_incref(conflicts);
}

char *conflicts_text(const char *uid, const json_t *conflicts)
{
	json_auto_t *said = json_object();

	assert(uid && json_is_array(conflicts));
	json_put_str(said, "uid", uid);
	json_put(said, "conflicts", json_incref((json_t *)conflicts));
	return json_text(said);
}

/* Is the address of a conflict this one, "address/length"? */
static bool is_of_address(const json_t *conflict, const char *has)
{
	const char *address = json_str_or(json_at(conflict, "ip"), "");
	size_t len = strlen(address);

	return has && len > 0 && strncmp(has, address, len) == 0 &&
	       (has[len] == '/' || has[len] == '\0');
}

bool conflicts_touch(const json_t *item, const json_t *conflicts)
{
	json_t *conflict;
	size_t i;

	json_array_foreach (conflicts, i, conflict)
		if (is_of_address(conflict, json_str_at(item, "ipv4")) ||
		    is_of_address(conflict, json_str_at(item, "ipv6")))
			return true;
	return false;
}

bool conflicts_touch_status(const json_t *status, const json_t *conflicts)
{
	json_t *item;
	size_t i;

	json_array_foreach (json_at(status, "current", "ips"), i, item)
		if (conflicts_touch(item, conflicts))
			return true;
	return false;
}

json_t *conflicts_of(const json_t *status, const json_t *reported, const json_t *known)
{
	json_t *added = json_array(), *conflict;
	size_t i;

	json_array_foreach (reported, i, conflict) {
		json_auto_t *alone = json_pack("[O]", conflict);

		if (conflicts_touch_status(status, alone) &&
		    !json_find(known, "ip", json_str_at(conflict, "ip")))
			json_array_append(added, conflict);
	}
	return added;
}
