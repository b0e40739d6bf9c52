// SPDX-License-Identifier: Apache-2.0
/*
 * Fill in what an absent field means, per kind. `spec` is that of `object`, both are changed in
 * place. Filling in twice changes nothing. Spec fields of a wrong type stay as they are.
 *
 * For the table of kinds (kind_rules.c).
 */
#pragma once

#include <jansson.h>

void defaults_multus_config(json_t *object, json_t *spec);
void defaults_ip_pool(json_t *object, json_t *spec);
void defaults_reserved_ip(json_t *object, json_t *spec);
void defaults_coordinator(json_t *object, json_t *spec);
void defaults_policy(json_t *object, json_t *spec);
