// SPDX-License-Identifier: Apache-2.0
/*
 * Is this PEM text what it should be? Caught here, with words that help, before TLS answers with a
 * number.
 *
 * Format: RFC 7468. Structure is checked (labels, base64, an outer DER sequence of the right
 * length), not cryptography.
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

enum pem_kind {
	/* one or more certificates; other blocks and text between are passed over */
	PEM_CERTIFICATES,
	PEM_PRIVATE_KEY, /* one private key that needs no passphrase */
};

/*
 * 0 when text holds what kind says and every block of that kind is sound; else -1 and ERR_INVALID
 * "BadPem", with a text that continues after the name of the thing: "holds a private key but no
 * certificate".
 */
int pem_check(const char *text, size_t len, enum pem_kind kind, struct err *err);
