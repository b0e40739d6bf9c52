// SPDX-License-Identifier: Apache-2.0
/*
 * Spellings that CNI and the kernel accept, and label selectors. Those of Kubernetes' names:
 * lib/base/names.h.
 *
 * Sources: kubernetes/apimachinery pkg/apis/meta/v1/validation (label selector); Linux
 * net/core/dev.c dev_valid_name; the CNI specification, section "Configuration format" (network
 * name).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/names.h"
#include "reconcilers/core/problems.h"

/* A device's name has at most 15 bytes (IFNAMSIZ counts the NUL). */
#define INTERFACE_NAME_MAX 15

/* A letter or digit, then letters, digits, '_', '.', '-'. */
bool name_is_cni_network(const char *s);

/* NULL when a device can have this name, else why not ("is longer than 15 bytes", …). */
const char *name_interface_fault(const char *s);

/*
 * A metav1.LabelSelector; `where` is its path. Wrong types, keys, values and operators become
 * problems.
 */
void label_selector_check(const json_t *selector, const char *where, struct problems *problems);
