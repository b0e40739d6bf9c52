// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests of pools share: a host and a configuration as YAML, and looking at what became of
 * them.
 */
#pragma once

#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "tests/support/yaml.h"

static const json_t *resource(const json_t *pools, const char *name)
{
	const json_t *resource = json_find(json_at(pools, "resources"), "name", name);

	if (!resource)
		fail_msg("no resource %s", name);
	return resource;
}

static void assert_text(const json_t *value, const char *want)
{
	auto_free char *text = json_text(value);

	assert_string_equal(text ? text : "nothing", want);
}

static void assert_says(const json_t *list, const char *part)
{
	auto_free char *text = json_text(list);

	if (!strstr(text, part))
		fail_msg("%s does not say: %s", text, part);
}
