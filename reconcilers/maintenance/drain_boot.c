// SPDX-License-Identifier: Apache-2.0
/* Reboots: who wants one and may, and what became of it. */
#include <assert.h>
#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/maintenance/drain_internal.h"
#include "reconcilers/sriov/pool_config.h"

#define MODE_CAUSE "rdma-mode-"

static bool forbids(const json_t *object)
{
	return str_eq(json_str_at(object, "metadata", "annotations", POOL_ALLOW_REBOOT), "false");
}

const char *boot_wanted(const json_t *state, const json_t *pool, const json_t *node)
{
	const json_t *impact = json_at(state, "status", "impact");
	const char *cause = json_str_at(impact, "cause");

	if (!pool || !cause || !str_eq(json_str_at(impact, "class"), "reboot") ||
	    !json_str_at(state, "status", "boots", "id") || forbids(pool) || forbids(node))
		return NULL;
	/* Who wants a drain need not want a reboot: what asks for it is in the same pool. */
	return str_starts(cause, MODE_CAUSE) && str_eq(cause + strlen(MODE_CAUSE),
						       json_str_at(pool, "spec", "rdmaMode"))
		       ? cause
		       : NULL;
}

char *boot_permission(const json_t *state, const char *cause)
{
	assert(cause);
	return str_printf("%s %s", json_str_or(json_at(state, "status", "boots", "id"), ""), cause);
}

bool boot_is_permitted(const json_t *state, const char *cause)
{
	auto_free char *wanted = boot_permission(state, cause);

	return str_eq(json_str_at(state, "metadata", "annotations", DRAIN_REBOOT_ANNOTATION),
		      wanted);
}

const char *boot_trouble(const json_t *state)
{
	static const char *const reasons[] = {"RebootDidNotStart", "RebootRefused",
					      "BootsUnreadable", "BootsNotWritten"};
	const json_t *problems = json_at(state, "status", "problems"), *problem;

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		problem = json_find(problems, "reason", reasons[i]);
		if (problem)
			return json_str_or(json_at(problem, "message"), reasons[i]);
	}
	return NULL;
}

bool boot_was_in_vain(const json_t *state)
{
	return json_str_at(state, "status", "boots", "inVain") != NULL;
}

bool boot_is_back(const json_t *state, const json_t *looked)
{
	const char *theirs = json_str_at(looked, "status", "nodeInfo", "bootID");
	const char *ours = json_str_at(state, "status", "boots", "id");

	return looked && !str_eq(budget_down(looked), "not Ready") &&
	       (!theirs || !*theirs || str_eq(theirs, ours));
}
