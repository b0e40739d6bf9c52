// SPDX-License-Identifier: Apache-2.0
/*
 * CNI results in all versions that we speak: read into one shape, written in the version that was
 * asked for. Pure.
 *
 * The shape is that of 1.1.0, with all lists there:
 *
 *   {"interfaces": [{"name", "mac", "mtu", "sandbox", "socketPath", "pciID"}],
 *    "ips": [{"address", "gateway", "interface"}],
 *    "routes": [{"dst", "gw", "mtu", "advmss", "priority", "table", "scope"}],
 *    "dns": {"nameservers", "domain", "search", "options"}}
 *
 * Members that say nothing are absent. Source: github.com/containernetworking/cni, SPEC.md of 0.2.0
 * to 1.1.0, and pkg/types, whose conversions others rely on: address text as Go prints it, the
 * members of 1.1.0 dropped on the way to a version below 1.0.0.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Entries of one list that we read. */
#define RESULT_LIST_MAX 1024

/* Versions of results: "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0". */
extern const char *const result_versions[];
extern const size_t result_n_versions;

/*
 * The cniVersion of a network configuration; "0.1.0" where it is missing or empty, as libcni reads
 * it. Borrowed; what is not a text is "", which is not known.
 */
const char *result_version_of(const json_t *config);
/* Is it one of these? */
bool result_version_is_known(const char *version);
/* Is `version`, one of these, at least `than`, one of these? */
bool result_version_is_at_least(const char *version, const char *than);

/*
 * Read a result. It is of its own cniVersion or, where it has none, of `version` (NULL or "":
 * 0.1.0); of 0.1.0 and 0.2.0 ("ip4", "ip6") too, which foreign IPAM plugins still print. *ret is
 * new. NULL and null read as an empty result.
 *
 * ERR_INVALID "BadCniVersion"  no version of this list
 * ERR_INVALID "BadResult"      not a result; the text names the member
 */
int result_read(const json_t *value, const char *version, json_t **ret, struct err *err);

/*
 * Return new: the result in the format of `version`, one of result_versions. 0.1.0 and 0.2.0 hold
 * one address of each family with its routes; further addresses and all interfaces stay out.
 */
json_t *result_write(const json_t *result, const char *version);

/*
 * Append to a result; what is NULL stays out. Addresses are texts; interface is an index into
 * "interfaces", -1: none.
 */
json_t *result_new(void);
void result_add_interface(json_t *result, const char *name, const char *mac, const char *sandbox,
			  int64_t mtu, const char *pci_id);
void result_add_ip(json_t *result, const char *address, const char *gateway, int interface);
