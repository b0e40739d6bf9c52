// SPDX-License-Identifier: Apache-2.0
/*
 * An absence is said by what is stale: a Lease that was not renewed for three of its terms, a Node
 * whose Ready condition is not True. Two pure functions of one object and the time; doctor and
 * status ask them before anything else, because what an absent program wrote last may not be so any
 * more.
 */
#include "cli/doctor/away.h"

#include <stdbool.h>

#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

enum {
	/* When the Lease says nothing that can be. */
	DURATION_DEFAULT_S = 15,
	DURATION_MAX_S = 86400,
};

static bool is_renewed(const json_t *lease, int64_t renewed_us, const char *now)
{
	int64_t duration_s = json_integer_value(json_at(lease, "spec", "leaseDurationSeconds"));
	int64_t now_us;

	if (!now || !rfc3339_read(now, &now_us))
		return true;
	if (duration_s <= 0 || duration_s > DURATION_MAX_S)
		duration_s = DURATION_DEFAULT_S;
	return now_us - renewed_us <= AWAY_TERMS * duration_s * 1000000;
}

char *away_leader(const json_t *lease, const char *now)
{
	bool is_held = !str_empty(json_str_at(lease, "spec", "holderIdentity"));
	char since[RFC3339_SIZE];
	int64_t renewed_us;

	if (!lease)
		return str_dup("no operator leads");
	if (!rfc3339_read(json_str_or(json_at(lease, "spec", "renewTime"), ""), &renewed_us))
		return is_held ? NULL : str_dup("no operator leads");
	if (is_held && is_renewed(lease, renewed_us, now))
		return NULL;
	rfc3339_write(renewed_us, since);
	return str_printf("no operator leads since %s", since);
}

char *away_node(const json_t *node)
{
	const json_t *ready = json_find(json_at(node, "status", "conditions"), "type", "Ready");
	const char *since = json_str_or(json_at(ready, "lastTransitionTime"), "");
	const char *reason = json_str_or(json_at(ready, "reason"), "");
	const char *message = json_str_or(json_at(ready, "message"), "");

	if (!ready || str_eq(json_str_at(ready, "status"), "True"))
		return NULL;
	return str_printf("its condition Ready is %s%s%s%s%s%s%s",
			  json_str_or(json_at(ready, "status"), "Unknown"), *since ? " since " : "",
			  since, *reason ? ": " : "", reason, *message ? ": " : "", message);
}
