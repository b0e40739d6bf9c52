// SPDX-License-Identifier: Apache-2.0
/* The MAC address that a pod asks for, from where plugins look for it. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Six octets of one station's address, written as the kernel does; false for other text. */
bool wanted_mac_parse(const char *text, char ret[18]);

/*
 * The last text that is not NULL or empty; "": none. type: the plugin, for the message. ERR_INVALID
 * "BadField".
 */
int wanted_mac_last(const char *type, const char *const *texts, size_t n, char ret[18],
		    struct err *err);

/*
 * runtimeConfig.mac over MAC of CNI_ARGS over the key "mac"; "": none. type: the plugin, for the
 * message. ERR_INVALID "BadField".
 */
int wanted_mac_read(const char *type, const json_t *config, const char *args, char ret[18],
		    struct err *err);
