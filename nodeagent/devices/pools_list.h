// SPDX-License-Identifier: Apache-2.0
/*
 * The index syntax of pfNames and rootDevices: "ens1f0", "ens1f0#3", "0000:3b:00.0#0,4-7". Private
 * to pools_list*.c. Source: sriov-network-device-plugin, README.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of what is before the first '#', or of the whole text. */
size_t pools_list_name_len(const char *text);

/*
 * Is number in the rest of the text, "" or "#0,4-7"? "" holds all. -1 when it is malformed
 * anywhere.
 */
int pools_list_indexes(const char *rest, int64_t number, bool *ret_hit);
