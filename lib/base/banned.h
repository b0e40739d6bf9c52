// SPDX-License-Identifier: Apache-2.0
/*
 * Functions that we do not call, turned into compile errors. Force-included for all our C files.
 * The headers that declare them come first: poison would break them.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets strtok atoi atol     \
	atoll atof asctime ctime
