// SPDX-License-Identifier: Apache-2.0
/*
 * Pages that operator and agents serve, as the API server reaches them.
 */
#ifndef ORBWEAVER_CLI_SUPPORT_PROGRAMS_H
#define ORBWEAVER_CLI_SUPPORT_PROGRAMS_H

#include <jansson.h>

/*
 * Path of a program's page through the API server's proxy, new; NULL: the server does not reach it,
 * with *ret_why, new. The address is what the flag says, else `otherwise`.
 */
char *program_page(const json_t *pod, const char *flag, const char *otherwise, const char *page,
		   char **ret_why);

#endif
