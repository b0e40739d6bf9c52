// SPDX-License-Identifier: Apache-2.0
/*
 * What a support dump has of an object or a text: what our commands and decisions read, and nothing
 * that opens a door.
 *
 * Of kinds that others fill (pods, nodes, ConfigMaps, events …) only the fields listed in redact.c
 * are kept, so no environment, command, volume or mounted file is in a dump. Annotations are kept
 * if our programs read them; where all of an object's are copied to another one
 * (SpiderMultusConfig) the others keep their names. In all that is kept, what looks like a secret
 * is replaced (scrub.h).
 *
 * Pure. The same value becomes the same word throughout a dump, so decisions that compare come out
 * as they would have.
 */
#pragma once

#include <jansson.h>

#include "cli/support/scrub.h"

/*
 * kind: plural resource name. Returns new; NULL: the dump has nothing of it (Secrets, ConfigMaps
 * and events that our programs do not read). An object without a name is nothing, too.
 */
json_t *redact_object(struct scrub *scrub, const char *kind, const json_t *object);
