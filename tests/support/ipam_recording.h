// SPDX-License-Identifier: Apache-2.0
/*
 * Recordings of the address management that we replace (conformance/ipam.json), and how our results
 * compare with them (tests/unit/reconcilers/ipam/ipam_conformance_test.c).
 *
 * Compared are verdict, class of error, result, ledgers and endpoints; not texts.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/* Is the case about one of these features? */
bool ipam_recording_is_about(const json_t *recorded, const char *const *features);

/*
 * An object as the API server has it: what the recording calls a controller is an owner reference.
 * Returns new.
 */
json_t *ipam_recording_object(const json_t *object);

/* The value of a key in a call's CNI_ARGS. Returns new; NULL when it is not there. */
char *ipam_recording_argument(const json_t *call, const char *key);

/* What the call's NIC asks with. Returns new. */
json_t *ipam_recording_ask(const json_t *call);

/* Append what differs to `out`, in words for a reader. */

/* reason: of the error, NULL for a result. */
void ipam_recording_compare_result(struct strbuf *out, const json_t *call, const json_t *result,
				   const char *reason);

/*
 * after: of a step. pools, endpoints, pods: {key: object}. Endpoints of pods that are gone are not
 * compared, nor is one missed whose addresses were given back: ours go with the pod or with the
 * release, theirs stay until somebody collects them.
 */
void ipam_recording_compare_after(struct strbuf *out, const json_t *after, const json_t *pools,
				  const json_t *endpoints, const json_t *pods);
