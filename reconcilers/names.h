/*
 * Spellings that Kubernetes, CNI and the kernel accept.
 *
 * Sources: kubernetes/apimachinery pkg/util/validation (DNS-1123 subdomain, qualified name, label value) and
 * pkg/apis/meta/v1/validation (label selector); Linux net/core/dev.c dev_valid_name; the CNI specification, section
 * "Configuration format" (network name).
 */
#ifndef ORBWEAVER_RECONCILERS_NAMES_H
#define ORBWEAVER_RECONCILERS_NAMES_H

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/problems.h"

/* A device's name has at most 15 bytes (IFNAMSIZ counts the NUL). */
#define INTERFACE_NAME_MAX 15

bool name_is_dns_subdomain(const char *s);
/* "app" or "example.com/app". */
bool name_is_qualified(const char *s);
/* Empty, or up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends. */
bool name_is_label_value(const char *s);
/* A letter or digit, then letters, digits, '_', '.', '-'. */
bool name_is_cni_network(const char *s);

/* NULL when a device can have this name, else why not ("is longer than 15 bytes", …). */
const char *name_interface_fault(const char *s);

/* A metav1.LabelSelector; `where` is its path. Wrong types, keys, values and operators become problems. */
void label_selector_check(const json_t *selector, const char *where, struct problems *problems);

#endif
