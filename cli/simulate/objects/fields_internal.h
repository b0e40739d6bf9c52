// SPDX-License-Identifier: Apache-2.0
/* Shared by the two halves of fields.h: fields.c (sets) and walk.c (values). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Put the path itself into its set; is it in? */
void fields_mark(json_t *set);
bool fields_has(const json_t *set);
/* Put the set of a path below, unless it is empty; takes it. */
void fields_put(json_t *set, const char *element, json_t *below);
