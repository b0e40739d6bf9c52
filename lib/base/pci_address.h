// SPDX-License-Identifier: Apache-2.0
/* PCI addresses as text. Pure. */
#pragma once

#include <stdbool.h>

/*
 * The SR-IOV capability has 16 bits for the number of VFs; no NIC that we know has more than 1024.
 */
#define PCI_VFS_MAX 4096

/*
 * "0000:3b:00.0": domain of 4 to 8 hex digits, bus, device up to 1f, function up to 7; lower case,
 * as sysfs has it.
 */
#define PCI_ADDRESS_SIZE 20
bool pci_address_is_valid(const char *text);
/*
 * The same as sysfs has it, of text that people and tools write: also upper case, and a domain with
 * more zeros ("00000000:3B:00.0", as nvidia-smi has it). Returns new; NULL: not an address.
 */
char *pci_address_normalize(const char *text);
/* By domain, bus, device, function; other text sorts after all addresses, as text. */
int pci_address_compare(const char *a, const char *b);
