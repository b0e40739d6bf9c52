// SPDX-License-Identifier: Apache-2.0
/*
 * Spellings that Kubernetes accepts.
 *
 * Source: kubernetes/apimachinery pkg/util/validation (DNS-1123 subdomain, qualified name, label
 * value).
 */
#pragma once

#include <stdbool.h>

/* A letter or digit of ASCII, whatever the locale. */
bool name_is_alnum(char c);

/* All return false for NULL. */
bool name_is_dns_subdomain(const char *s);
/* "app" or "example.com/app". */
bool name_is_qualified(const char *s);
/* Empty, or up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends. */
bool name_is_label_value(const char *s);
