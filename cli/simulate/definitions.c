// SPDX-License-Identifier: Apache-2.0
/*
 * One YAML stream, made by module.mk, in the read-only data of the program. Read once, at the start
 * of a simulation.
 */
#include "cli/simulate/definitions.h"

#include <string.h>

#include "lib/json/yaml.h"

__asm__(".pushsection .rodata\n"
	"definitions_text: .incbin \"definitions.yaml\"\n"
	".byte 0\n"
	".popsection\n");
extern const char definitions_text[] __attribute__((visibility("hidden")));

json_t *definitions_read(struct err *err)
{
	return yaml_parse_all(definitions_text, strlen(definitions_text), err);
}
