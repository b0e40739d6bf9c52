// SPDX-License-Identifier: Apache-2.0
/* Addresses that a pod asks for by name, as static and host-local look for them. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/*
 * *ret_network and *ret_runtime: lists of texts of args.cni.ips and runtimeConfig.ips, borrowed;
 * NULL: none. type: the plugin. ERR_INVALID "BadField".
 */
int ipam_wish_lists(const char *type, const json_t *config, const json_t **ret_network,
		    const json_t **ret_runtime, struct err *err);

/* Before 0.3.0 a result has one address of each family. ERR_INVALID "BadField". */
int ipam_wish_check_version(const char *type, const json_t *config, size_t n_v4, size_t n_v6,
			    struct err *err);
