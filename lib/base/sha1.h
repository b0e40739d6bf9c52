// SPDX-License-Identifier: Apache-2.0
/*
 * SHA-1 (RFC 3174): where a protocol asks for it. It keeps no secret and proves no origin.
 */
#ifndef ORBWEAVER_LIB_BASE_SHA1_H
#define ORBWEAVER_LIB_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_SIZE = 20 };

void sha1(const void *data, size_t len, uint8_t ret[SHA1_SIZE]);

#endif
