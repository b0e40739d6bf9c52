// SPDX-License-Identifier: Apache-2.0
/*
 * Texts of sysfs and modprobe.d: numbers, PCI addresses, MAC addresses, GUIDs, options. What is
 * read can be written and read again.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/str.h"
#include "nodeagent/host/nextboot.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/model/text.h"

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_octets(const char *text)
{
	char mac_text[TEXT_MAC_SIZE], guid_text[TEXT_GUID_SIZE];
	unsigned char mac[6], mac_again[6];
	uint64_t guid, guid_again;

	if (text_to_mac(text, mac)) {
		text_from_octets(mac, sizeof(mac), mac_text);
		check(text_to_mac(mac_text, mac_again) && memcmp(mac, mac_again, 6) == 0);
	}
	if (text_to_guid(text, &guid)) {
		text_from_guid(guid, guid_text);
		check(text_to_guid(guid_text, &guid_again) && guid == guid_again);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = str_ndup((const char *)data, size);
	int64_t number = 0;

	check(strlen(text) <= size);
	if (pci_address_is_valid(text)) {
		check(strlen(text) < PCI_ADDRESS_SIZE && !strchr(text, '/'));
		check(pci_address_compare(text, text) == 0);
		check(pci_address_compare(text, "x") < 0);
	}
	if (sysfs_parse_int(text, &number) && !str_starts(text, "0x")) {
		auto_free char *again = str_printf("%lld", (long long)number);
		int64_t same = 0;

		check(sysfs_parse_int(again, &same) && same == number);
	}
	check_octets(text);
	check(next_boot_parse_modprobe(text) == next_boot_parse_modprobe(text));
	(void)next_boot_parse_command_line(text);
	return 0;
}
