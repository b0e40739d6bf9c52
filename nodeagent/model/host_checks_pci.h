// SPDX-License-Identifier: Apache-2.0
/* Checks of what is on PCI Express: NICs, GPUs, the bridges between them. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/json/json.h"

#define VENDOR_MELLANOX "15b3"
#define VENDOR_NVIDIA   "10de"

/* Of host_checks_run(): what is known, and what was found so far. */
struct host_facts {
	const json_t *observed, *facts;
	const char *rdma_mode;
	json_t *findings;
};

static inline bool host_has_module(const struct host_facts *h, const char *name)
{
	return json_is_true(json_at(h->facts, "modules", name));
}

static inline const json_t *host_devices(const struct host_facts *h)
{
	return json_at(h->observed, "rdma", "devices");
}

static inline const json_t *host_pf(const struct host_facts *h, const char *address)
{
	return json_find(json_at(h->observed, "interfaces"), "pciAddress", address);
}

/* Does it have RDMA, or the promise of it? Others carry the node's own traffic. */
static inline bool host_is_rdma_nic(const json_t *pf)
{
	return json_array_size(json_at(pf, "host", "rdma")) > 0 ||
	       str_eq(json_str_at(pf, "vendor"), VENDOR_MELLANOX);
}

/* Each adds what it finds: of NICs by themselves, of NICs beside GPUs, of GPUs. */
void host_check_functions(struct host_facts *h);
void host_check_peers(struct host_facts *h);
void host_check_gpus(struct host_facts *h);
