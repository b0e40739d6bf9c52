/*
 * Recordings of the SR-IOV operator that we replace (conformance/policies.json, networks.json), and how our results compare with
 * them: value by value. For the replay offline (tests/unit/reconcilers/sriov_conformance_test.c) and on a real API server
 * (tests/integration/operator_policies_test.sh).
 */
#ifndef ORBWEAVER_TESTS_SUPPORT_RECORDING_H
#define ORBWEAVER_TESTS_SUPPORT_RECORDING_H

#include <jansson.h>

#include "lib/base/err.h"

/* The folder of recordings: $CONFORMANCE, else this. */
#define RECORDING_FOLDER "../shared/conformance"
/* Cases where we differ on purpose. One per line: the case's id, a blank, the reason. */
#define RECORDING_DIFFERENCES "tests/conformance/sriov-differences.txt"

/* The cases of a file, an array. Returns new, or NULL with err: sys is ENOENT where there are no recordings. */
json_t *recording_read(const char *name, struct err *err);

/* RECORDING_DIFFERENCES as { id: reason }. Returns new, or NULL with err. */
json_t *recording_differences(struct err *err);

/*
 * What differs, in words for a reader, or NULL when every value agrees. Returns new.
 *
 * spec: of the NodeState; NULL when there is none. The flags that only our VF groups carry must be those of the recorded
 * configuration of the device plugin.
 */
char *recording_spec_difference(const json_t *recorded, const json_t *spec);

/* The same for the NetworkAttachmentDefinition that came of a network; NULL when none did. */
char *recording_nad_difference(const json_t *recorded, const json_t *nad);

#endif
