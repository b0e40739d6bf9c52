// SPDX-License-Identifier: Apache-2.0
/*
 * A host made of files with the NICs of a --node, in the slots that the guides' manifests name, so
 * that these can be applied as they are.
 */
#include "cli/simulate/nodes/sim_host.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

enum {
	FIRST_SLOT = 6, /* ens6…, the one of the RoCE guides */
	FIRST_BUS = 0xaf,
	OTHER_BUS = 11, /* enp11s0…, the first of the guide on AI clusters */
	FIRST_VF_BUS = 0xb0,
	OTHER_VF_BUS = 0x40,
	SPEED_MBPS = 200000,
	/* Where it is a setting of the firmware. */
	VFS = 16,
};

/* What follows "ens1" in the catalogue: "f0np0" of mlx5, "f0" of others. */
static const char *suffix_of(const char *netdev)
{
	const char *at = netdev + strlen("ens");

	return at + strspn(at, "0123456789");
}

static void place(struct sim_nic *nic, size_t i)
{
	struct tree_pf *pf = &nic->nic.pf;
	const char *kind = pf->is_ib ? "ib" : "en";
	const char *suffix = suffix_of(pf->netdev);

	if (i == 0)
		(void)snprintf(nic->netdev, sizeof(nic->netdev), "%ss%u%s", kind, FIRST_SLOT,
			       suffix);
	else
		(void)snprintf(nic->netdev, sizeof(nic->netdev), "%sp%us0%s", kind,
			       (unsigned int)(OTHER_BUS + i - 1), suffix);
	(void)snprintf(nic->address, sizeof(nic->address), "0000:%02x:00.0",
		       i == 0 ? FIRST_BUS : (unsigned int)(OTHER_BUS + i - 1));
	pf->vf_bus = i == 0 ? FIRST_VF_BUS : (unsigned int)(OTHER_VF_BUS + i);
	if (pf->rdma) {
		size_t len = strcspn(pf->rdma, "0123456789");

		/* "mlx5_0" has a digit in its name. */
		while (pf->rdma[len] &&
		       strspn(pf->rdma + len, "0123456789") != strlen(pf->rdma + len))
			len++;
		(void)snprintf(nic->rdma, sizeof(nic->rdma), "%.*s%zu", (int)len, pf->rdma, i);
		pf->rdma = nic->rdma;
	}
	pf->address = nic->address;
	pf->netdev = nic->netdev;
	pf->is_up = true;
	pf->speed_mbps = SPEED_MBPS;
	/* NUM_OF_VFS of mlxconfig. */
	if (str_eq(pf->driver, "mlx5_core") && pf->total < VFS) {
		pf->total = VFS;
		nic->nic.firmware.count = VFS;
	}
}

void sim_host_init(struct sim_host *host, const char *parent, struct tree_texts *texts,
		   const json_t *nics, const char *ipv4)
{
	const json_t *model;
	size_t i;
	static const char *const modules[] = {"ib_core",  "ib_uverbs", "mlx5_ib",
					      "rdma_ucm", "bnxt_re",   "irdma"};

	assert(parent && json_is_array(nics));
	host->tree = host_tree_new_in(parent, texts);
	host->n_nics = json_array_size(nics);
	host->nics = mem_calloc(host->n_nics + 1, sizeof(*host->nics));
	for (i = 0; i < ARRAY_LEN(modules); i++) {
		auto_free char *path = str_printf("sys/module/%s/x", modules[i]);

		host_tree_file(host->tree, path, "");
	}
	host_tree_serve_verbs(host->tree);
	host_tree_add_interface(host->tree, "eno1", NULL);
	host_tree_add_address(host->tree, "eno1", ipv4);
	host_tree_add_default_route(host->tree, "eno1");
	json_array_foreach ((json_t *)nics, i, model) {
		struct sim_nic *nic = &host->nics[i];
		struct err err = {0};
		int code = vendor_nic_read(json_string_value(model), &nic->nic, &err);
		auto_free char *driver = NULL;

		assert(code == 0);
		place(nic, i);
		driver = str_printf("sys/bus/pci/drivers/%s/x", nic->nic.pf.vf_driver);
		host_tree_file(host->tree, driver, "");
		host_tree_add_pf(host->tree, &nic->nic.pf);
		host_tree_offer_firmware(host->tree, nic->address, &nic->nic.firmware);
	}
}

void sim_host_done(struct sim_host *host)
{
	host_tree_free(host->tree);
	for (size_t i = 0; i < host->n_nics; i++)
		vendor_nic_done(&host->nics[i].nic);
	mem_free(host->nics);
}

const struct sim_nic *sim_host_find(const struct sim_host *host, const char *nic)
{
	for (size_t i = 0; i < host->n_nics; i++)
		if (str_eq(host->nics[i].netdev, nic) || str_eq(host->nics[i].address, nic))
			return &host->nics[i];
	return NULL;
}
