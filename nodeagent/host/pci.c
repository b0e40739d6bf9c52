// SPDX-License-Identifier: Apache-2.0
/*
 * Questions about one PCI function, each answered from its folder in sysfs and nothing else. All of
 * host/ and the steps build on it; what an answer means for a plan or for a pod is theirs to say.
 */
#include "nodeagent/host/pci.h"

#include <assert.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/root.h"
#include "lib/json/json.h"

struct pci_path pci_path(const char *address, const char *name)
{
	struct pci_path path;

	(void)snprintf(path.text, sizeof(path.text), "sys/bus/pci/devices/%s%s%s", address,
		       name ? "/" : "", name ? name : "");
	return path;
}

bool pci_exists(const struct host *host, const char *address)
{
	return sysfs_exists(host, pci_path(address, NULL).text);
}

bool pci_is_vf(const struct host *host, const char *address)
{
	return sysfs_exists(host, pci_path(address, "physfn").text);
}

bool pci_is_network(const struct host *host, const char *address)
{
	int64_t class;

	return sysfs_read_int(host, pci_path(address, "class").text, &class) && class >> 16 == 0x02;
}

bool pci_has_sriov(const struct host *host, const char *address)
{
	return sysfs_exists(host, pci_path(address, "sriov_totalvfs").text);
}

/* "pci0000:3a", up to a slash: a host bridge, DOMAIN:BUS (drivers/pci/probe.c). */
static bool is_host_bridge(const char *name)
{
	static const char hex[] = "0123456789abcdef";
	size_t domain;

	if (!str_starts(name, "pci"))
		return false;
	name += strlen("pci");
	domain = strspn(name, hex);
	return domain >= 4 && name[domain] == ':' && strspn(name + domain + 1, hex) == 2 &&
	       name[domain + 3] == '/';
}

char *pci_bridges(const struct host *host, const char *address)
{
	auto_free char *target = root_read_link(host->root, pci_path(address, NULL).text);
	const char *path = target ? strstr(target, "/devices/") : NULL, *last;

	/* ACPI (Hyper-V) and the device tree (Arm) may have it below devices of their own. */
	path = path ? path + strlen("/devices/") : NULL;
	while (path && !is_host_bridge(path)) {
		path = strchr(path, '/');
		path = path ? path + 1 : NULL;
	}
	if (!path)
		return NULL;
	last = strrchr(path, '/');
	return last && last - path <= PCI_BRIDGES_MAX ? str_ndup(path, (size_t)(last - path))
						      : NULL;
}

bool pci_driver(const struct host *host, const char *address, struct sysfs_text *ret)
{
	return sysfs_link(host, pci_path(address, "driver").text, ret);
}

bool pci_physfn(const struct host *host, const char *vf, struct sysfs_text *ret)
{
	return sysfs_link(host, pci_path(vf, "physfn").text, ret) &&
	       pci_address_is_valid(ret->text);
}

bool pci_virtfn(const struct host *host, const char *pf, int number, struct sysfs_text *ret)
{
	char name[32];

	assert(number >= 0);
	(void)snprintf(name, sizeof(name), "virtfn%d", number);
	return sysfs_link(host, pci_path(pf, name).text, ret) && pci_address_is_valid(ret->text);
}

int pci_count_vfs(const struct host *host, const char *pf)
{
	struct sysfs_text vf;
	int n = 0;

	while (n < PCI_VFS_MAX && pci_virtfn(host, pf, n, &vf))
		n++;
	return n;
}

int pci_vf_number(const struct host *host, const char *vf)
{
	struct sysfs_text pf, other;

	if (!pci_physfn(host, vf, &pf))
		return -1;
	for (int i = 0; i < PCI_VFS_MAX && pci_virtfn(host, pf.text, i, &other); i++)
		if (str_eq(other.text, vf))
			return i;
	return -1;
}

/* ---- network interfaces ---------------------------------------------------------------------- */

json_t *pci_netdevs(const struct host *host, const char *address)
{
	json_t *names = sysfs_list(host, pci_path(address, "net").text), *name;
	json_auto_t *children = NULL;
	struct sysfs_text driver;
	size_t i;

	if (names || !pci_driver(host, address, &driver) || !str_eq(driver.text, "virtio-pci"))
		return names;
	children = sysfs_list(host, pci_path(address, NULL).text);
	json_array_foreach (children, i, name) {
		char below[64];

		if (!str_starts(json_string_value(name), "virtio") ||
		    strlen(json_string_value(name)) > 16)
			continue;
		(void)snprintf(below, sizeof(below), "%s/net", json_string_value(name));
		return sysfs_list(host, pci_path(address, below).text);
	}
	return NULL;
}

/* False: it is not a port of a switch. */
static bool port_name(const struct host *host, const char *name, struct sysfs_text *ret)
{
	struct sysfs_text text;
	char path[128];

	(void)snprintf(path, sizeof(path), "sys/class/net/%.32s/phys_switch_id", name);
	if (!sysfs_read(host, path, &text))
		return false;
	(void)snprintf(path, sizeof(path), "sys/class/net/%.32s/phys_port_name", name);
	if (!sysfs_read(host, path, ret))
		ret->text[0] = '\0';
	return true;
}

/* "p0", "p12": a physical port. Representors are called pf0vf3, c1pf0vf3, pf0sf88. */
static bool is_physical_port(const char *name)
{
	return name[0] == 'p' && name[1] != '\0' &&
	       strspn(name + 1, "0123456789") == strlen(name + 1);
}

static bool is_uplink(const struct host *host, const char *name)
{
	struct sysfs_text port;

	return port_name(host, name, &port) && (!port.text[0] || is_physical_port(port.text));
}

bool pci_is_representor(const struct host *host, const char *name)
{
	struct sysfs_text port;

	return port_name(host, name, &port) && port.text[0] && !is_physical_port(port.text);
}

bool pci_netdev(const struct host *host, const char *address, struct sysfs_text *ret)
{
	json_auto_t *names = pci_netdevs(host, address);
	json_t *name;
	const char *chosen = json_string_value(json_array_get(names, 0));
	size_t i;

	if (!chosen)
		return false;
	json_array_foreach (names, i, name) {
		if (json_array_size(names) > 1 && is_uplink(host, json_string_value(name))) {
			chosen = json_string_value(name);
			break;
		}
	}
	(void)snprintf(ret->text, sizeof(ret->text), "%s", chosen);
	return true;
}

static bool is_empty_folder(const struct host *host, const char *path)
{
	json_auto_t *names = sysfs_list(host, path);

	return names && json_array_size(names) == 0;
}

bool pci_is_away(const struct host *host, const char *address, const char *driver)
{
	if (!driver)
		return false;
	if (is_empty_folder(host, pci_path(address, "net").text))
		return true;
	/*
	 * In exclusive mode; the verbs folder shows devices of all namespaces
	 * (drivers/infiniband/core/uverbs_main.c).
	 */
	return is_empty_folder(host, pci_path(address, "infiniband").text) &&
	       sysfs_exists(host, pci_path(address, "infiniband_verbs").text) &&
	       !is_empty_folder(host, pci_path(address, "infiniband_verbs").text);
}

bool pci_errors(const struct host *host, const char *address, const char *file, int64_t *ret)
{
	auto_strbuf struct strbuf text = {0};
	const char *total;

	if (!sysfs_read_file(host, pci_path(address, file).text, 4096, &text))
		return false;
	if (text.len > 0 && text.data[text.len - 1] == '\n')
		strbuf_cut(&text, text.len - 1);
	total = strstr(strbuf_str(&text), "TOTAL_ERR_");
	total = total ? strchr(total, ' ') : NULL;
	return total && str_to_int(total + 1, 0, INT64_MAX, ret);
}

/* ---- configuration space -------------------------------------------------------------------- */

#define CONFIG_MAX 4096
/* VF BARs of 64 bits: bits 2 and 1 are 10, bit 3 says whether it is prefetchable. */
#define BAR_IS_64(bar) (((bar)&PCI_BASE_ADDRESS_MEM_TYPE_MASK) == PCI_BASE_ADDRESS_MEM_TYPE_64)

struct bytes {
	const uint8_t *data;
	size_t len;
};

/* Little endian; 0 beyond the end. */
static uint32_t number(struct bytes bytes, size_t at, size_t size)
{
	uint32_t ret = 0;

	for (size_t i = size; i > 0 && at + size <= bytes.len; i--)
		ret = ret << 8 | bytes.data[at + i - 1];
	return ret;
}

static void decode_express(struct bytes bytes, size_t at, struct pci_config *ret)
{
	uint32_t control = number(bytes, at + PCI_EXP_DEVCTL, 2);

	ret->control = (uint16_t)control;
	ret->control_at = at + PCI_EXP_DEVCTL;
	ret->max_payload_supported =
		128 << (number(bytes, at + PCI_EXP_DEVCAP, 4) & PCI_EXP_DEVCAP_PAYLOAD);
	ret->max_payload = 128 << ((control & PCI_EXP_DEVCTL_PAYLOAD) >> 5);
	ret->max_read_request = 128 << ((control & PCI_EXP_DEVCTL_READRQ) >> 12);
}

static void decode_extended(struct bytes bytes, size_t at, uint32_t id, struct pci_config *ret)
{
	uint32_t bar = number(bytes, at + PCI_SRIOV_BAR, 4);

	if (id == PCI_EXT_CAP_ID_ACS)
		ret->redirects = number(bytes, at + PCI_ACS_CTRL, 2) & (PCI_ACS_RR | PCI_ACS_CR);
	else if (id == PCI_EXT_CAP_ID_ATS)
		ret->has_ats = number(bytes, at + PCI_ATS_CTRL, 2) & PCI_ATS_CTRL_ENABLE;
	else if (id == PCI_EXT_CAP_ID_SRIOV)
		ret->lacks_vf_bars = BAR_IS_64(bar) &&
				     !(bar & (uint32_t)PCI_BASE_ADDRESS_MEM_MASK) &&
				     !number(bytes, at + PCI_SRIOV_BAR + 4, 4);
}

void pci_config_decode(const void *data, size_t len, struct pci_config *ret)
{
	struct bytes bytes = {data, len < CONFIG_MAX ? len : CONFIG_MAX};
	size_t at = number(bytes, PCI_CAPABILITY_LIST, 1) & ~3u;

	*ret = (struct pci_config){0};
	for (int n = 0; n < 48 && at >= PCI_STD_HEADER_SIZEOF; n++) {
		if (number(bytes, at, 1) == PCI_CAP_ID_EXP && at + 16 <= bytes.len)
			decode_express(bytes, at, ret);
		at = number(bytes, at + PCI_CAP_LIST_NEXT, 1) & ~3u;
	}
	at = PCI_CFG_SPACE_SIZE;
	for (int n = 0; n < CONFIG_MAX / 8 && at >= PCI_CFG_SPACE_SIZE && at < bytes.len; n++) {
		uint32_t header = number(bytes, at, 4);

		decode_extended(bytes, at, PCI_EXT_CAP_ID(header), ret);
		at = PCI_EXT_CAP_NEXT(header);
	}
}

bool pci_config_read(const struct host *host, const char *address, struct pci_config *ret)
{
	auto_strbuf struct strbuf bytes = {0};

	if (!sysfs_read_file(host, pci_path(address, "config").text, CONFIG_MAX, &bytes))
		return false;
	pci_config_decode(bytes.data, bytes.len, ret);
	return true;
}

int pci_config_control(struct host *host, const char *address, const struct pci_config *config,
		       uint16_t mask, uint16_t value, struct err *err)
{
	uint16_t control = (uint16_t)((config->control & ~mask) | (value & mask));
	const uint8_t bytes[] = {control & 0xff, control >> 8};

	assert(config->control_at >= PCI_STD_HEADER_SIZEOF);
	return host->doors->write_at(host->doors_ctx, host->root, pci_path(address, "config").text,
				     config->control_at, bytes, sizeof(bytes), err);
}
