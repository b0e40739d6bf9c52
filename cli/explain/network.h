// SPDX-License-Identifier: Apache-2.0
/* Links that chains of networks, configs and pods share. */
#pragma once

#include <jansson.h>

/* The NetworkAttachmentDefinition of that key, or that there is none (NULL). */
void chain_add_definition(json_t *chain, const json_t *nad, const char *key);

/* Who offers the resource; nothing for "" and NULL. */
void chain_add_resource(json_t *chain, const json_t *world, const char *resource);
