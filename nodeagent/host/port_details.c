// SPDX-License-Identifier: Apache-2.0
/*
 * Asked by a worker for agent/link_health.c, one port at a time and rarely. A table says where each
 * kind of transceiver has what; halves of pages lie in one image, one behind the other.
 */
#include "nodeagent/host/port_details.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/host/devlink.h"
#include "nodeagent/host/pci.h"

enum { HALF = ETHTOOL_EEPROM_SIZE, LANES_MAX = 8 };

/*
 * Offsets in the image. Texts are of 16 octets, words of two, the higher one first: temperature and
 * the one above which it warns (HOT) in 1/256 °C with sign, voltage in 100 µV, by lane light that
 * comes in (RX) and goes out (TX) in 0.1 µW.
 */
enum { VENDOR, PART, SERIAL, TEMPERATURE, VOLTAGE, HOT, RX, TX, FIELDS };

static const struct kind {
	const char *ids;               /* SFF-8024, table 4-1 */
	struct ethtool_half halves[4]; /* behind the lower one */
	size_t at[FIELDS];
} kinds[] = {
	/* SFF-8472: its second address has what it measures. */
	{"\x02\x03\x0b",
	 {{0x51, 0, 0}},
	 {20, 40, 68, HALF + 96, HALF + 98, HALF + 4, HALF + 104, HALF + 102}},
	/* SFF-8636: upper page 0 names it, page 3 has its limits. */
	{"\x0c\x0d\x11",
	 {{0x50, 0, HALF}, {0x50, 3, HALF}},
	 {148, 168, 196, 22, 26, 2 * HALF + 4, 34, 50}},
	/* CMIS: page 0 names it, page 2 has limits, page 1 what it can, page 11h lanes. */
	{"\x18\x19\x1b\x1e\x1f\x20\x21",
	 {{0x50, 0, HALF}, {0x50, 2, HALF}, {0x50, 1, HALF}, {0x50, 0x11, HALF}},
	 {129, 148, 166, 14, 16, 2 * HALF + 4, 4 * HALF + 58, 4 * HALF + 26}},
};

static const struct kind *kind_of(unsigned char id)
{
	for (size_t i = 0; id && i < ARRAY_LEN(kinds); i++)
		if (strchr(kinds[i].ids, id))
			return &kinds[i];
	return NULL;
}

/* Whether it has more than its first upper half, by its lower half alone. */
static bool has_pages(const struct kind *kind, const unsigned char *image)
{
	if (kind == &kinds[0]) /* what it measures, in units that need no calibration */
		return (image[92] & 0x60) == 0x60;
	return kind == &kinds[1] ? !(image[2] & 0x04) : !(image[2] & 0x80);
}

/* How many lanes are measured: of light that comes in, and goes out. */
static void count_lanes(const struct kind *kind, const unsigned char *image, size_t len,
			size_t *ret_rx, size_t *ret_tx)
{
	size_t n = kind == &kinds[0] ? 1 : kind == &kinds[1] ? 4 : image[88] & 0xf;
	unsigned int monitors = kind == &kinds[2] && len >= 4 * HALF ? image[3 * HALF + 32] : 6;

	/* Copper has no light: its technology, of SFF-8636. */
	if (n > LANES_MAX || (kind == &kinds[1] && (len < 2 * HALF || image[147] >> 4 >= 0xa)))
		n = 0;
	if (kind == &kinds[1] && n > 0 && !(image[220] & 4))
		monitors = 4;
	*ret_rx = monitors & 4 ? n : 0;
	*ret_tx = monitors & 2 ? n : 0;
}

static void put_text(json_t *ret, const char *key, const unsigned char *octets)
{
	char text[17] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(text) - 1 && isprint(octets[i]); i++) {
		text[i] = (char)octets[i];
		if (octets[i] != ' ')
			n = i + 1;
	}
	text[n] = '\0';
	json_put_str(ret, key, n ? text : NULL);
}

static void put_lanes(json_t *ret, const char *key, const unsigned char *words, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list,
				      json_real((words[2 * i] << 8 | words[2 * i + 1]) * 1e-7));
	json_put(ret, key, list);
}

static void put_temperature(json_t *ret, const char *key, const unsigned char *word)
{
	json_put(ret, key, json_real((int16_t)(word[0] << 8 | word[1]) / 256.0));
}

json_t *transceiver_decode(const unsigned char *image, size_t len)
{
	const struct kind *kind = len >= HALF ? kind_of(image[0]) : NULL;
	size_t rx, tx, volts;
	json_t *ret;

	assert(len <= TRANSCEIVER_IMAGE_MAX);
	if (!kind || kind->at[SERIAL] + 16 > len)
		return NULL;
	ret = json_object();
	put_text(ret, "vendor", image + kind->at[VENDOR]);
	put_text(ret, "part", image + kind->at[PART]);
	put_text(ret, "serial", image + kind->at[SERIAL]);
	if (kind->at[VOLTAGE] + 2 > len)
		return ret;
	/* All have a voltage that measure anything. */
	volts = (size_t)image[kind->at[VOLTAGE]] << 8 | image[kind->at[VOLTAGE] + 1];
	if (volts == 0)
		return ret;
	json_put(ret, "voltage", json_real((double)volts * 1e-4));
	put_temperature(ret, "temperature", image + kind->at[TEMPERATURE]);
	if (kind->at[HOT] + 2 <= len && (image[kind->at[HOT]] || image[kind->at[HOT] + 1]))
		put_temperature(ret, "temperatureMax", image + kind->at[HOT]);
	count_lanes(kind, image, len, &rx, &tx);
	if (rx > 0 && kind->at[RX] + 2 * rx <= len)
		put_lanes(ret, "rxPower", image + kind->at[RX], rx);
	if (tx > 0 && kind->at[TX] + 2 * tx <= len)
		put_lanes(ret, "txPower", image + kind->at[TX], tx);
	return ret;
}

/* NULL: there is none, or of another kind. */
static json_t *transceiver_read(struct host *host, const char *interface)
{
	unsigned char image[TRANSCEIVER_IMAGE_MAX];
	const struct kind *kind;
	size_t len = HALF;

	if (!ethtool_read_eeprom(host, interface, (struct ethtool_half){0x50, 0, 0}, image))
		return NULL;
	kind = kind_of(image[0]);
	for (size_t i = 0; kind && i < ARRAY_LEN(kind->halves) && kind->halves[i].i2c_address;
	     i++) {
		bool is_first = i == 0 && kind != &kinds[0];

		if ((!is_first && !has_pages(kind, image)) ||
		    !ethtool_read_eeprom(host, interface, kind->halves[i], image + len))
			break;
		len += HALF;
	}
	return transceiver_decode(image, len);
}

/* "16.0 GT/s PCIe", "16" lanes; 0: not known. */
static double number_in(const struct host *host, const char *address, const char *file)
{
	struct sysfs_text text;

	return sysfs_read(host, pci_path(address, file).text, &text) ? strtod(text.text, NULL) : 0;
}

static json_t *read_pcie(const struct host *host, const char *address)
{
	static const struct {
		const char *key, *now, *most, *above;
	} links[] = {
		{"width", "current_link_width", "max_link_width", "../max_link_width"},
		{"speed", "current_link_speed", "max_link_speed", "../max_link_speed"},
	};
	json_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		double now = number_in(host, address, links[i].now),
		       most = number_in(host, address, links[i].most),
		       above = number_in(host, address, links[i].above);
		auto_free char *key_max = str_printf("%sMax", links[i].key);

		if (now <= 0 || most <= 0)
			continue;
		/* A card in a slot with fewer lanes does what it can there. */
		json_put(ret, links[i].key, json_real(now));
		json_put(ret, key_max, json_real(above > 0 && above < most ? above : most));
	}
	return ret;
}

json_t *port_details_read(struct host *host, const json_t *port, struct err *err)
{
	static const struct {
		const char *file, *key;
	} aer[] = {
		{"aer_dev_correctable", "correctable"},
		{"aer_dev_nonfatal", "nonfatal"},
		{"aer_dev_fatal", "fatal"},
	};
	const char *address = json_str_at(port, "pciAddress"),
		   *netdev = json_str_at(port, "netdev");
	json_auto_t *errors = NULL, *reporters = json_object(), *module = NULL;
	json_t *ret, *pcie_errors;
	struct err none = {0};
	int64_t n;

	assert(host);
	if (netdev && !address) {
		module = transceiver_read(host, netdev);
		return json_pack("{s:o}", "transceiver",
				 module ? json_incref(module) : json_object());
	}
	if (!address || !pci_address_is_valid(address)) {
		(void)err_set(err, ERR_BUG, "BadRequest", "a port has a PCI address");
		return NULL;
	}
	ret = json_object();
	pcie_errors = json_object();
	for (size_t i = 0; i < ARRAY_LEN(aer); i++)
		if (pci_errors(host, address, aer[i].file, &n))
			json_put_int(pcie_errors, aer[i].key, n);
	json_put(ret, "pcieErrors", pcie_errors);
	json_put(ret, "pcie", read_pcie(host, address));
	(void)devlink_list_errors(host, reporters, &errors, &none);
	if (!json_object_get(reporters, address))
		json_put(reporters, address, json_object());
	json_put(ret, "reporters", json_incref(json_object_get(reporters, address)));
	return ret;
}
