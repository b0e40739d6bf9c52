// SPDX-License-Identifier: Apache-2.0
/*
 * An address becomes one number, in which domain, bus, device and function have their places: valid
 * text is what has such a number, and the order of addresses is that of the numbers.
 */
#include "lib/base/pci_address.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"

/* The next `min` to `max` lower-case hex digits. Returns what follows, or NULL. */
static const char *hex_part(const char *text, int min, int max, uint64_t *ret)
{
	uint64_t value = 0;
	int n = 0;

	for (; n < max; n++) {
		if (text[n] >= '0' && text[n] <= '9')
			value = value << 4 | (uint64_t)(text[n] - '0');
		else if (text[n] >= 'a' && text[n] <= 'f')
			value = value << 4 | (uint64_t)(text[n] - 'a' + 10);
		else
			break;
	}
	*ret = value;
	return n < min ? NULL : text + n;
}

/*
 * One number that sorts as addresses do. Domains have up to 32 bits (hosts with VMD, 0x10000 and
 * up).
 */
static bool address_to_number(const char *text, uint64_t *ret)
{
	uint64_t domain, bus, device, function;
	const char *p = hex_part(text, 4, 8, &domain);

	if (!p || *p != ':')
		return false;
	p = hex_part(p + 1, 2, 2, &bus);
	if (!p || *p != ':')
		return false;
	p = hex_part(p + 1, 2, 2, &device);
	if (!p || *p != '.' || device > 0x1f)
		return false;
	p = hex_part(p + 1, 1, 1, &function);
	if (!p || *p != '\0' || function > 7)
		return false;
	*ret = domain << 16 | bus << 8 | device << 3 | function;
	return true;
}

bool pci_address_is_valid(const char *text)
{
	uint64_t value;

	return address_to_number(text, &value);
}

char *pci_address_normalize(const char *text)
{
	auto_free char *lower = str_dup(text);
	uint64_t value;

	for (char *p = lower; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (!address_to_number(lower, &value))
		return NULL;
	return str_printf("%04x:%02x:%02x.%x", (unsigned int)(value >> 16),
			  (unsigned int)(value >> 8 & 0xff), (unsigned int)(value >> 3 & 0x1f),
			  (unsigned int)(value & 7));
}

int pci_address_compare(const char *a, const char *b)
{
	uint64_t left = UINT64_MAX, right = UINT64_MAX;

	(void)address_to_number(a, &left);
	(void)address_to_number(b, &right);
	if (left != right)
		return left < right ? -1 : 1;
	return strcmp(a, b);
}
