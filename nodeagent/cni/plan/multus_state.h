// SPDX-License-Identifier: Apache-2.0
/*
 * What Multus keeps of a sandbox, /var/lib/cni/multus/<container>: read, so that pods which it set
 * up are taken down by us, and written, so that it can take ours down. Pure.
 *
 * A list with an object for each delegate: Name, Conf or ConfList, Bytes (base64 of the
 * configuration as it was run), and what the annotation asked for. Source:
 * k8snetworkplumbingwg/multus-cni pkg/types/types.go (DelegateNetConf), recorded in
 * tests/conformance/multus.json ("cache").
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

#define MULTUS_STATE_DIR "/var/lib/cni/multus"
/* Bytes of one file. */
#define MULTUS_STATE_MAX (4U << 20)

/*
 * The delegates (delegates.h) of a sandbox that Multus set up; args is CNI_ARGS of our call, pod
 * {"namespace", "name", "uid"}. A new array; NULL with err ERR_INVALID "BadMultusState". A network
 * that cannot be read is left out, so that the others are taken down.
 */
json_t *multus_state_read(const json_t *state, const char *container_id, const char *ifname,
			  const char *args, const json_t *pod, struct err *err);

/* The file's value for these delegates, new. */
json_t *multus_state_write(const json_t *delegates);
