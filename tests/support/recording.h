// SPDX-License-Identifier: Apache-2.0
/*
 * Recordings of the SR-IOV operator that we replace (conformance/policies.json, networks.json), and
 * how our results compare with them: value by value. For
 * tests/unit/reconcilers/sriov/sriov_conformance_test.c.
 */
#pragma once

#include <jansson.h>

/*
 * What differs, in words for a reader, or NULL when every value agrees. Returns new.
 *
 * spec: of the NodeState; NULL when there is none. The flags that only our VF groups carry must be
 * those of the recorded configuration of the device plugin.
 */
char *recording_spec_difference(const json_t *recorded, const json_t *spec);

/* The same for the NetworkAttachmentDefinition that came of a network; NULL when none did. */
char *recording_nad_difference(const json_t *recorded, const json_t *nad);
