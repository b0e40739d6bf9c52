// SPDX-License-Identifier: Apache-2.0
/*
 * A host made of files with the NICs of a --node, in the slots that the guides' manifests name, so
 * that these can be applied as they are.
 */
#include "cli/simulate/nodes/sim_host.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/simulate/host/gpus.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

enum {
	FIRST_SLOT = 6, /* ens6…, the one of the RoCE guides */
	FIRST_BUS = 0xaf,
	OTHER_BUS = 11, /* enp11s0…, the first of the guide on AI clusters */
	FIRST_VF_BUS = 0xb0,
	OTHER_VF_BUS = 0x40,
	FIRST_GPU_BUS = 0xd0,
	/* Host bridges; above all devices, which real ones are not. */
	FIRST_BRIDGE = 0x80,
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

/* ---- PCIe ------------------------------------------------------------------------------------ */

/* How many switches there are: with GPUs below them, and a NIC each. */
static size_t switches_of(size_t n_nics, size_t n_gpus)
{
	return n_nics < n_gpus ? n_nics : n_gpus;
}

static int numa_of(size_t number, size_t switches)
{
	return switches > 1 && number >= (switches + 1) / 2;
}

/* What lies below port 3 of a switch is its NIC, GPUs are below those that follow. */
static void put_path(char *ret, size_t size, size_t number, unsigned int port)
{
	unsigned int bus = FIRST_BRIDGE + (unsigned int)number;

	(void)snprintf(ret, size, "pci0000:%02x/0000:%02x:01.0/0000:%02x:02.0/0000:%02x:%02x.0",
		       bus, bus, bus, bus, port);
}

static void connect_nic(struct sim_nic *nic, size_t i, size_t n_nics, size_t n_gpus)
{
	size_t switches = switches_of(n_nics, n_gpus);

	if (n_gpus == 0)
		return;
	if (i < n_nics - switches) {
		(void)snprintf(nic->path, sizeof(nic->path), "pci0000:00/0000:00:%02x.0",
			       (unsigned int)i + 1);
	} else {
		put_path(nic->path, sizeof(nic->path), i - (n_nics - switches), 3);
		nic->nic.pf.numa = numa_of(i - (n_nics - switches), switches);
	}
	nic->nic.pf.path = nic->path;
}

static void add_gpus(struct sim_host *host, const json_t *gpus)
{
	size_t n = json_array_size(gpus), switches = switches_of(host->n_nics, n), i;
	const json_t *name;

	json_array_foreach ((json_t *)gpus, i, name) {
		size_t number = i * switches / n;
		size_t first = (number * n + switches - 1) / switches;
		char path[96], address[24];

		put_path(path, sizeof(path), number, 4 + (unsigned int)(i - first));
		(void)snprintf(address, sizeof(address), "0000:%02x:00.0",
			       FIRST_GPU_BUS + (unsigned int)i);
		host_tree_add_gpu(host->tree, simulated_gpu(json_string_value(name)), address, path,
				  numa_of(number, switches));
	}
}

void sim_host_init(struct sim_host *host, const char *parent, struct tree_texts *texts,
		   const json_t *nics, const json_t *gpus, const char *ipv4)
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
		connect_nic(nic, i, host->n_nics, json_array_size(gpus));
		driver = str_printf("sys/bus/pci/drivers/%s/x", nic->nic.pf.vf_driver);
		host_tree_file(host->tree, driver, "");
		host_tree_add_pf(host->tree, &nic->nic.pf);
		host_tree_offer_firmware(host->tree, nic->address, &nic->nic.firmware);
	}
	add_gpus(host, gpus);
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
