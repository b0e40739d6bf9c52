// SPDX-License-Identifier: Apache-2.0
/* Who is away: what a Lease says, and a Node. */
#include "tests/support/test.h"

#include "cli/doctor/away.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define SINCE "no operator leads since 2026-01-31T10:00:00Z"

/* spec of a Lease that was renewed at 10:00. */
#define SPEC(holder, duration)                                                                     \
	"{\"spec\": {\"holderIdentity\": \"" holder "\", \"leaseDurationSeconds\": " duration      \
	", \"renewTime\": \"2026-01-31T10:00:00.500000Z\"}}"

TEST(a_lease_says_who_leads)
{
	static const struct {
		const char *lease, *now, *want;
	} rows[] = {
		{NULL, "2026-01-31T10:00:00Z", "no operator leads"},
		{SPEC("a", "15"), "2026-01-31T10:00:45Z", NULL},
		{SPEC("a", "15"), "2026-01-31T10:00:46Z", SINCE},
		/* Clocks differ. */
		{SPEC("a", "15"), "2026-01-31T09:00:00Z", NULL},
		/* The term is the operator's. */
		{SPEC("a", "60"), "2026-01-31T10:03:00Z", NULL},
		{SPEC("a", "60"), "2026-01-31T10:03:01Z", SINCE},
		/* What no operator writes. */
		{SPEC("a", "0"), "2026-01-31T10:00:46Z", SINCE},
		{SPEC("a", "9223372036854775807"), "2026-01-31T10:00:46Z", SINCE},
		{"{\"spec\": {\"holderIdentity\": \"a\", \"renewTime\": \"soon\"}}",
		 "2026-01-31T10:00:46Z", NULL},
		/* One that was given back. */
		{SPEC("", "1"), "2026-01-31T10:00:00Z", SINCE},
		{"{\"spec\": {}}", "2026-01-31T10:00:00Z", "no operator leads"},
		/* Nobody knows when it was read. */
		{SPEC("a", "15"), NULL, NULL},
		{SPEC("", "1"), NULL, SINCE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *lease = rows[i].lease ? json_loads(rows[i].lease, 0, NULL) : NULL;
		auto_free char *said = away_leader(lease, rows[i].now);

		assert_true(!rows[i].lease || lease);
		if (!str_eq(said ? said : "-", rows[i].want ? rows[i].want : "-"))
			fail_msg("row %zu: %s", i, said ? said : "-");
	}
}

#define NODE(conditions) "{\"status\": {\"conditions\": [" conditions "]}}"

TEST(a_node_says_that_it_is_not_ready)
{
	static const struct {
		const char *node, *want;
	} rows[] = {
		{NULL, NULL},
		{"{}", NULL},
		{NODE("{\"type\": \"DiskPressure\", \"status\": \"False\"}"), NULL},
		{NODE("{\"type\": \"Ready\", \"status\": \"True\", \"reason\": \"KubeletReady\"}"),
		 NULL},
		{NODE("{\"type\": \"Ready\", \"status\": \"False\"}"),
		 "its condition Ready is False"},
		{NODE("{\"type\": \"Ready\", \"status\": \"Unknown\", \"reason\": "
		      "\"NodeStatusUnknown\", "
		      "\"message\": \"m\", \"lastTransitionTime\": \"2026-01-31T10:00:00Z\"}"),
		 "its condition Ready is Unknown since 2026-01-31T10:00:00Z: NodeStatusUnknown: m"},
		{NODE("{\"type\": \"Ready\"}"), "its condition Ready is Unknown"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *node = rows[i].node ? json_loads(rows[i].node, 0, NULL) : NULL;
		auto_free char *said = away_node(node);

		assert_true(!rows[i].node || node);
		if (!str_eq(said ? said : "-", rows[i].want ? rows[i].want : "-"))
			fail_msg("row %zu: %s", i, said ? said : "-");
	}
}
