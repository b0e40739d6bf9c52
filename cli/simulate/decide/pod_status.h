// SPDX-License-Identifier: Apache-2.0
/* What a kubelet says of a pod whose containers have nothing to do but run. Pure. */
#pragma once

#include <jansson.h>

/* The status of a pod that runs and is ready, new. now: RFC 3339; addresses without prefix. */
json_t *pod_status_running(const json_t *pod, const char *host_ip, const char *pod_ip,
			   const char *now);

/* What a scheduler says of one that it finds no node for: conditions, to be merged. New. */
json_t *pod_status_unschedulable(const json_t *pod, const char *message, const char *now);
