// SPDX-License-Identifier: Apache-2.0
/*
 * The document of prepared claims, asked: kubeletd, which keeps its file, checks that at the start
 * and lists which devices claims have; host/holders.c does both before a step takes a VF.
 * devices/dra_claims.c makes the entries.
 */
#include "nodeagent/model/dra_state.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

bool dra_uid_is_good(const char *uid)
{
	static const char letters[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
	size_t len = uid ? strlen(uid) : 0;

	return len > 0 && len <= DRA_UID_MAX && strspn(uid, letters) == len;
}

char *dra_holder(const json_t *entry)
{
	return str_printf("%s/%s/%s", json_str_or(json_at(entry, "namespace"), "?"),
			  json_str_or(json_at(entry, "pod"), "?"),
			  json_str_or(json_at(entry, "name"), "?"));
}

json_t *dra_prepared(const json_t *state)
{
	json_t *prepared = json_object();
	const json_t *entry, *device;
	const char *uid;
	size_t i;

	json_each (json_at(state, "claims"), uid, entry) {
		auto_free char *holder = dra_holder(entry);

		json_array_foreach (json_at(entry, "devices"), i, device) {
			const char *resource = json_str_at(device, "resource");
			const char *id = json_str_at(device, "id");

			if (resource && id)
				json_put_str(json_need_object(prepared, resource), id, holder);
		}
	}
	return prepared;
}

static bool is_device(const json_t *device)
{
	const json_t *id;
	size_t i;

	json_array_foreach (json_at(device, "cdi"), i, id)
		if (!json_is_string(id))
			return false;
	return json_str_at(device, "request") && json_str_at(device, "pool") &&
	       json_str_at(device, "device") && json_str_at(device, "resource") &&
	       json_is_array(json_at(device, "cdi"));
}

static bool is_entry(const json_t *entry)
{
	const json_t *devices = json_at(entry, "devices"), *device;
	size_t i;

	json_array_foreach (devices, i, device)
		if (!is_device(device))
			return false;
	return json_array_size(devices) > 0 && json_is_object(json_at(entry, "cdi"));
}

int dra_state_check(const json_t *state, struct err *err)
{
	const json_t *claims = json_at(state, "claims"), *entry;
	const char *uid;

	json_each (claims, uid, entry)
		if (!dra_uid_is_good(uid) || !is_entry(entry))
			return err_set(err, ERR_HOST, "ClaimsDamaged",
				       "its entry of claim \"%.80s\" is none of ours", uid);
	return json_is_object(claims)
		       ? 0
		       : err_set(err, ERR_HOST, "ClaimsDamaged", "it has no object \"claims\"");
}
