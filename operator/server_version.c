// SPDX-License-Identifier: Apache-2.0
/*
 * program.c asks GET /version before it starts anything else, and acts on this: try again, go on,
 * or look for a proof first. What needs a certain version of the server is decided by the caller.
 */
#include "operator/server_version.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* It does not know us, or not now: others may be answered differently in a moment. */
static bool passes(int status)
{
	return status == 401 || status == 407 || status == 408 || status == 429;
}

struct server_version server_version_read(const struct kube_response *response,
					  const struct err *err)
{
	struct server_version ret = {.text = "?"};
	json_auto_t *version = NULL;
	const char *text;
	auto_free char *digits = NULL;
	int64_t minor = 0;

	if (err) {
		ret.is_there = response && response->status >= 400 && response->status < 500 &&
			       !passes(response->status);
		ret.needs_proof = ret.is_there && response->status != 403;
		return ret;
	}
	version = json_parse(response->body, response->body_len, NULL);
	ret.is_there = true;
	/* "20", "32+"; 0 when it is unknown. */
	text = json_str_or(json_at(version, "minor"), "");
	digits = str_ndup(text, strspn(text, "0123456789"));
	str_to_int(digits, 0, 10000, &minor);
	ret.minor = minor;
	snprintf(ret.text, sizeof(ret.text), "%s",
		 json_str_or(json_at(version, "gitVersion"), "?"));
	return ret;
}
