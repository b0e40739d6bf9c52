// SPDX-License-Identifier: Apache-2.0
/*
 * What drivers of PFs have when a host starts: DCB, rings and channels, the configuration space,
 * and the files of NVIDIA's own driver. Above host_tree_files.c; for host_tree_nics.c.
 */
#include <linux/pci_regs.h>

#include "cli/simulate/host/host_tree_internal.h"

/* mlx5: all buffers together (port_buffer.c). */
enum { BUFFERS_TOTAL = 262016 };

/*
 * Each priority in the class of its number, strictly; one class with a driver that has one. igb has
 * no DCB, bnx2x that of CEE alone (bnx2x_dcb.c), and mlx5 none where the function does not manage
 * the port (en_dcbnl.c, vport_group_manager).
 */
static void start_dcb(struct pf *pf)
{
	struct dcb *dcb = &pf->settings.dcb;
	int classes = pf->is.classes ? pf->is.classes : IEEE_8021QAZ_MAX_TCS;

	if (pf->is.is_ib || pf->is.eswitch == TREE_ESWITCH_ELSEWHERE ||
	    str_eq(pf->is.driver, "igb") || str_eq(pf->is.driver, "bnx2x"))
		return;
	pf->settings.has_dcb = dcb->has_ets = dcb->has_pfc = true;
	dcb->ets.ets_cap = dcb->pfc.pfc_cap = (uint8_t)classes;
	for (int i = 0; i < IEEE_8021QAZ_MAX_TCS; i++)
		dcb->ets.prio_tc[i] = (uint8_t)(i % classes);
	dcb->has_buffers = str_eq(pf->is.driver, "mlx5_core");
	dcb->buffers.buffer_size[0] = BUFFERS_TOTAL;
	dcb->buffers.total_size = BUFFERS_TOTAL;
}

void tree_start_settings(struct host_tree *tree, struct pf *pf)
{
	unsigned char config[PCI_CFG_SPACE_SIZE] = {
		[PCI_STATUS] = PCI_STATUS_CAP_LIST,
		[PCI_CAPABILITY_LIST] = TREE_EXPRESS_AT,
		[TREE_EXPRESS_AT] = PCI_CAP_ID_EXP,
		[TREE_EXPRESS_AT + PCI_EXP_DEVCAP] = 2,
		[TREE_EXPRESS_AT + PCI_EXP_DEVCTL] = PCI_EXP_DEVCTL_RELAX_EN | 2 << 5,
		[TREE_EXPRESS_AT + PCI_EXP_DEVCTL + 1] = PCI_EXP_DEVCTL_READRQ_4096B >> 8,
	};
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/config", pf->is.address);

	if (!pf->is.driver)
		return;
	start_dcb(pf);
	pf->settings.pauses = (struct ethtool_pair){.rx = {true, 0, 0}, .tx = {true, 0, 0}};
	pf->settings.rings =
		(struct ethtool_pair){.rx = {true, 1024, 8192}, .tx = {true, 1024, 8192}};
	pf->settings.channels = (struct ethtool_pair){.rx = {true, 63, 63}};
	host_tree_bytes(tree, path, config, sizeof(config));
}

void tree_show_traffic_class(struct host_tree *tree, const char *device)
{
	auto_free char *path = str_printf("sys/class/infiniband/%s/tc/1/traffic_class", device);

	host_tree_file(tree, path, "");
}

void tree_show_vendor_settings(struct host_tree *tree, const struct pf *pf)
{
	auto_free char *ecn = str_printf("sys/class/net/%s/ecn", pf->is.netdev);
	auto_free char *dscp = str_printf("%s/roce_np/cnp_dscp", ecn);
	auto_free char *priority = str_printf("%s/roce_np/cnp_802p_prio", ecn);

	for (int i = 0; i < 2 * IEEE_8021QAZ_MAX_TCS; i++) {
		auto_free char *path =
			str_printf("%s/roce_%s/enable/%d", ecn, i % 2 ? "rp" : "np", i / 2);

		host_tree_file(tree, path, "1\n");
	}
	host_tree_file(tree, dscp, "48\n");
	host_tree_file(tree, priority, "6\n");
	tree_show_traffic_class(tree, pf->is.rdma);
}
