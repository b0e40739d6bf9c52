// SPDX-License-Identifier: Apache-2.0
/*
 * What the annotation k8s.v1.cni.cncf.io/network-status says of a pod's networks, and the events
 * about them. Pure.
 *
 * Other programs compare the annotation as text, so it is written as Multus writes it, byte for
 * byte: objects as Go's encoding/json indents them by four blanks, joined without a blank.
 *
 * Source: Network Plumbing Working Group, "Kubernetes Network Custom Resource Definition De-facto
 * Standard" 1.3, section 5; k8snetworkplumbingwg/network-attachment-definition-client
 * pkg/utils/net-attach-def.go.
 */
#pragma once

#include <jansson.h>

#include "lib/base/str.h"
#include "reconcilers/core/networks.h"

/*
 * The text of the annotation. results: one for each delegate (delegates.h), in their order; null
 * where there is none. infos: the content of device-info files, the same way; may be NULL. A new
 * string.
 */
char *network_status_text(const json_t *delegates, const json_t *results, const json_t *infos);

/*
 * "Add net1 [10.1.0.5/24] from default/net-a", as a new string; NULL when the result (of any CNI
 * version) has neither interface nor address.
 */
char *network_added_text(const json_t *delegate, const json_t *result);

/*
 * What a runtime gets for a pod that is gone, so that it goes on to remove the sandbox: an address
 * that is none. New.
 */
json_t *network_gone_result(const char *version, const char *ifname, const char *netns);
