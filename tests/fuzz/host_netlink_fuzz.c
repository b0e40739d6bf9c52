// SPDX-License-Identifier: Apache-2.0
/*
 * Answers about RDMA, devlink and ports, events of the kernel, configuration spaces. First byte:
 * which decoder. Whatever comes out has names that end and counts that the bytes can hold, and
 * comes out the same twice.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/devlink.h"
#include "nodeagent/host/ethtool.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/port_details.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/host/watch.h"
#include "nodeagent/netlink/netlink.h"

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* Names that a metric can have, and nothing that was not counted up. */
static void check_counted(const json_t *counters)
{
	const char *name;
	json_t *value;

	check(json_object_size(counters) <= COUNTED_MAX);
	json_each (counters, name, value)
		check(strlen(name) < COUNTED_NAME_SIZE && json_integer_value(value) >= 0);
}

static void rdma(const void *bytes, size_t len)
{
	auto_rdma_devices struct rdma_devices list = {0};
	json_auto_t *contexts = NULL, *counters = json_object();
	char name[RDMA_NAME_SIZE];
	const char *device;
	json_t *count;

	rdma_decode_devices(bytes, len, &list);
	for (size_t i = 0; i < list.n; i++) {
		check(strnlen(list.items[i].name, RDMA_NAME_SIZE) < RDMA_NAME_SIZE);
		rdma_decode_ports(bytes, len, &list.items[i]);
	}
	rdma_decode_counters(bytes, len, counters);
	check_counted(counters);
	contexts = json_object();
	rdma_decode_contexts(bytes, len, contexts);
	json_object_foreach (contexts, device, count)
		check(json_integer_value(count) >= 0);
	if (rdma_decode_kernel_user(bytes, len, name))
		check(strnlen(name, sizeof(name)) < sizeof(name));
	check(rdma_decode_mode(bytes, len) == rdma_decode_mode(bytes, len));
	if (rdma_decode_event(bytes, len, name))
		check(strnlen(name, sizeof(name)) < sizeof(name));
}

static void devlink(const void *bytes, size_t len)
{
	json_auto_t *list = devlink_decode_list(bytes, len), *counts = json_object(),
		    *errors = devlink_decode_errors(bytes, len, counts);
	struct devlink_setting setting;
	json_t *address, *names;
	const char *device;
	size_t i;

	json_array_foreach (list, i, address) {
		check(pci_address_is_valid(json_string_value(address)));
	}
	json_object_foreach (errors, device, names) {
		check(pci_address_is_valid(device));
		check(json_array_size(names) > 0);
	}
	json_object_foreach (counts, device, names) {
		check(pci_address_is_valid(device));
		check_counted(names);
	}
	(void)netlink_decode_family(bytes, len);
	(void)devlink_decode_mode(bytes, len);
	if (devlink_decode_setting(bytes, len, &setting))
		check(!setting.is_flag || setting.value <= 1);
}

/* Answers, and what stands in the memory of a transceiver: text that a terminal can show. */
static void ethtool(const void *bytes, size_t len)
{
	static const char *const settings[] = {"pauseFrames", "rings", "channels"};
	struct ethtool_pair pair;
	json_auto_t *counters = json_object(), *module = NULL;
	unsigned char half[ETHTOOL_EEPROM_SIZE];
	const char *key, *text;
	json_t *value;

	ethtool_decode_wire(bytes, len, counters);
	check_counted(counters);
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (!ethtool_decode_pair(bytes, len, settings[i], &pair))
			check(!pair.rx.is_there && !pair.tx.is_there && pair.rx.max == 0);
	(void)ethtool_decode_eeprom(bytes, len, half);
	module = transceiver_decode(bytes,
				    len < TRANSCEIVER_IMAGE_MAX ? len : TRANSCEIVER_IMAGE_MAX);
	json_each (module, key, value)
		for (text = json_str_or(value, ""); *text; text++)
			check(*text >= ' ' && *text <= '~');
}

static void hear(void *arg, const struct watch_event *event)
{
	check(!event->address || pci_address_is_valid(event->address));
	check(event->action && strlen(event->action) < 65536);
	if (event->name)
		(*(size_t *)arg) += strlen(event->name);
}

static void pci_config(const void *bytes, size_t len)
{
	struct pci_config config;

	pci_config_decode(bytes, len, &config);
	check(config.control_at == 0 || config.control_at + 2 <= len);
	check(config.max_payload <= 128 << 7 && config.max_read_request <= 128 << 7);
	check((config.max_payload == 0) == (config.max_payload_supported == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free void *bytes = NULL;
	size_t heard = 0;

	if (size < 1)
		return 0;
	/* Aligned as what malloc gives, and with an end that a sanitizer sees. */
	bytes = mem_dup(data + 1, size - 1);
	switch (data[0] % 7) {
	case 0:
		rdma(bytes, size - 1);
		break;
	case 1:
		devlink(bytes, size - 1);
		break;
	case 5:
		ethtool(bytes, size - 1);
		break;
	case 6:
		pci_config(bytes, size - 1);
		break;
	default:
		watch_decode((enum watch_source)(data[0] % 7 - 2), bytes, size - 1, hear, &heard);
	}
	return 0;
}
