// SPDX-License-Identifier: Apache-2.0
/*
 * What another client wrote into the spec of an object that the operator makes, and where it
 * belongs.
 */
#pragma once

#include "reconcilers/core/plan.h"

/*
 * Plan an event EditUndone on an object whose spec is about to be written over, if another client
 * wrote to it (metadata.orbweaver.specWriter, operator/cache/projection.h): who and when, which
 * fields are put back, and that `instead` ("SriovNetworkNodePolicy kube-system/fast") is to be
 * changed. was, wanted: the spec as it is there and as it will be; nothing is said of what does not
 * differ. It stands beside the write, so it comes once.
 */
void edit_tell(struct plan *plan, const char *kind, const char *key, const json_t *object,
	       const json_t *was, const json_t *wanted, const char *instead);

/* The same of a NetworkAttachmentDefinition: its spec.config is JSON in a string. */
void edit_tell_nad(struct plan *plan, const char *key, const json_t *nad, const json_t *wanted,
		   const char *instead);
