// SPDX-License-Identifier: Apache-2.0
/*
 * Rails as the label orbweaver.io/rails of a pod lists them: "0-3.6" is 0, 1, 2, 3 and 6. Values of
 * labels cannot have commas. A text that does not begin with a digit is the name of a group.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RAILS_LABEL "orbweaver.io/rails"

enum {
	/* Rails of a list; nodes have no more (nodeagent/model/rails.h). */
	RAIL_LIST_MAX = 32,
};

/* Does the text begin with a digit, so that it lists rails? False for NULL. */
bool rail_list_is(const char *text);

/* Bit i for rail i; 0: not a list of rails below RAIL_LIST_MAX. */
uint32_t rail_list_parse(const char *text);

/* "0-3.6", "none" for 0. Returns new; free(). */
char *rail_list_text(uint32_t rails);
