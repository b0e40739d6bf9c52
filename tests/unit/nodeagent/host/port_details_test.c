// SPDX-License-Identifier: Apache-2.0
/*
 * What is behind a link: transceivers by their memory as SFF-8472, SFF-8636 and CMIS lay it out,
 * PCI Express and reporters of the host made of files.
 */
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/json/json.h"
#include "nodeagent/host/port_details.h"

static unsigned char image[TRANSCEIVER_IMAGE_MAX];

static void put_word(size_t at, unsigned int value)
{
	image[at] = (unsigned char)(value >> 8);
	image[at + 1] = (unsigned char)value;
}

/* What is told of the first octets: "VENDOR PART SERIAL 41.5/70 3.30 rx 1.0,0.5 tx -", mW. */
static void assert_told(size_t len, const char *want)
{
	json_auto_t *got = transceiver_decode(image, len);
	static const char *const lanes[] = {"rxPower", "txPower"};
	auto_strbuf struct strbuf text = {0};
	const json_t *lane;
	size_t i, k;

	strbuf_addf(&text, "%s %s %s %.1f/%.0f %.2f", json_str_or(json_at(got, "vendor"), "-"),
		    json_str_or(json_at(got, "part"), "-"),
		    json_str_or(json_at(got, "serial"), "-"),
		    json_number_value(json_at(got, "temperature")),
		    json_number_value(json_at(got, "temperatureMax")),
		    json_number_value(json_at(got, "voltage")));
	for (k = 0; k < ARRAY_LEN(lanes); k++)
		json_array_foreach (json_at(got, lanes[k]), i, lane)
			strbuf_addf(&text, "%s%.1f",
				    i   ? ","
				    : k ? " tx "
					: " rx ",
				    json_number_value(lane) * 1000);
	assert_string_equal(strbuf_str(&text), want);
}

TEST(reads_a_module_of_sff_8472)
{
	memset(image, 0, sizeof(image));
	image[0] = 3;
	memcpy(image + 20, "FINISAR CORP.   ", 16);
	memcpy(image + 40, "FTLX8571D3BCL\x01  ", 16);
	memcpy(image + 68, "                ", 16);
	image[92] = 0x68;
	put_word(128 + 4, 75 << 8);
	put_word(128 + 96, 0xf680); /* below zero */
	put_word(128 + 98, 33000);
	put_word(128 + 102, 5000);
	put_word(128 + 104, 0);
	assert_told(256, "FINISAR CORP. FTLX8571D3BCL - -9.5/75 3.30 rx 0.0 tx 0.5");
	assert_told(128, "FINISAR CORP. FTLX8571D3BCL - 0.0/0 0.00");
	image[0] = 1;
	assert_null(transceiver_decode(image, 256));
	image[0] = 0;
	assert_null(transceiver_decode(image, 256));
}

TEST(reads_a_module_and_a_cable_of_sff_8636)
{
	memset(image, 0, sizeof(image));
	image[0] = 0x11;
	memcpy(image + 148, "Mellanox        ", 16);
	memcpy(image + 168, "MCP1600-C003    ", 16);
	memcpy(image + 196, "MT1907VS00001   ", 16);
	image[147] = 0xa0; /* copper */
	assert_told(256, "Mellanox MCP1600-C003 MT1907VS00001 0.0/0 0.00");
	put_word(22, 30 << 8);
	put_word(26, 32800);
	assert_told(256, "Mellanox MCP1600-C003 MT1907VS00001 30.0/0 3.28");
	image[147] = 0;
	for (size_t i = 0; i < 8; i += 2)
		put_word(34 + i, 10000);
	assert_told(256, "Mellanox MCP1600-C003 MT1907VS00001 30.0/0 3.28 rx 1.0,1.0,1.0,1.0");
	image[220] = 4;
	put_word(2 * 128 + 4, 70 << 8);
	assert_told(384, "Mellanox MCP1600-C003 MT1907VS00001 30.0/70 3.28 rx 1.0,1.0,1.0,1.0 tx "
			 "0.0,0.0,0.0,0.0");
	/* Without its upper half nobody knows whose it is. */
	assert_null(transceiver_decode(image, 128));
}

TEST(reads_a_module_of_cmis)
{
	memset(image, 0, sizeof(image));
	image[0] = 0x19;
	memcpy(image + 129, "NVIDIA          ", 16);
	memcpy(image + 148, "MMS4X00-NM      ", 16);
	memcpy(image + 166, "MT2244FT00001   ", 16);
	put_word(14, 55 << 8);
	put_word(16, 33000);
	image[88] = 0x22;
	put_word(2 * 128 + 4, 72 << 8);
	image[3 * 128 + 32] = 4; /* light that comes in, only */
	put_word(4 * 128 + 58, 20000);
	put_word(4 * 128 + 60, 10);
	assert_told(640, "NVIDIA MMS4X00-NM MT2244FT00001 55.0/72 3.30 rx 2.0,0.0");
	image[3 * 128 + 32] = 7;
	assert_told(640, "NVIDIA MMS4X00-NM MT2244FT00001 55.0/72 3.30 rx 2.0,0.0 tx 0.0,0.0");
	assert_told(256, "NVIDIA MMS4X00-NM MT2244FT00001 55.0/0 3.30");
	/* More lanes than a bank has. */
	image[88] = 0x2f;
	assert_told(640, "NVIDIA MMS4X00-NM MT2244FT00001 55.0/72 3.30");
}

TEST(reads_what_is_behind_a_link)
{
	struct host_tree *tree = host_tree_new();
	json_auto_t *port = json_pack("{s:s}", "pciAddress", TREE_MLX);
	json_auto_t *module = json_pack("{s:s}", "netdev", "ens1f0np0");
	json_auto_t *card = NULL, *plain = NULL, *of_module = NULL, *none = NULL;
	const json_t *got;
	struct err err = {0};

	host_tree_add_pf(tree, &tree_mlx);
	host_tree_break(tree, TREE_MLX, "fw_fatal");
#define FILE_OF_PCI(name, text)                                                                    \
	host_tree_file(tree, "sys/bus/pci/devices/" TREE_MLX "/" name, text "\n")
	FILE_OF_PCI("current_link_width", "8");
	FILE_OF_PCI("max_link_width", "16");
	FILE_OF_PCI("current_link_speed", "16.0 GT/s PCIe");
	FILE_OF_PCI("max_link_speed", "32.0 GT/s PCIe");
	FILE_OF_PCI("aer_dev_correctable", "RxErr 2\nBadTLP 1\nTOTAL_ERR_COR 3");
	of_module = port_details_read(host_tree_host(tree), module, &err);
	got = json_at(of_module, "transceiver");
	assert_string_equal(json_str_at(got, "serial"), "MT0000VS00001");
	assert_true(fabs(json_number_value(json_at(got, "temperature")) - 41.5) < 0.01);
	assert_int_equal(json_number_value(json_at(got, "temperatureMax")), 70);
	assert_int_equal(json_array_size(json_at(got, "txPower")), 4);
	/* One hangs without the other. */
	assert_int_equal(json_object_size(of_module), 1);
	got = card = port_details_read(host_tree_host(tree), port, &err);
	assert_null(json_at(got, "transceiver"));
	assert_int_equal(json_number_value(json_at(got, "pcie", "width")), 8);
	assert_int_equal(json_number_value(json_at(got, "pcie", "widthMax")), 16);
	assert_int_equal(json_number_value(json_at(got, "pcie", "speedMax")), 32);
	assert_int_equal(json_integer_value(json_at(got, "pcieErrors", "correctable")), 3);
	assert_null(json_at(got, "pcieErrors", "fatal"));
	assert_int_equal(json_integer_value(json_at(got, "reporters", "fw_fatal")), 1);
	/* The slot has no more. */
	host_tree_file(tree, "sys/bus/pci/devices/max_link_width", "8\n");
	plain = port_details_read(host_tree_host(tree), port, &err);
	assert_int_equal(json_number_value(json_at(plain, "pcie", "widthMax")), 8);
	/* Nothing is known any more. */
	json_put_str(module, "netdev", "no-such-interface");
	none = port_details_read(host_tree_host(tree), module, &err);
	assert_int_equal(json_object_size(json_at(none, "transceiver")), 0);
	assert_int_equal(json_object_size(none), 1);
	json_put_str(port, "pciAddress", "../..");
	assert_null(port_details_read(host_tree_host(tree), port, &err));
	assert_string_equal(err.reason, "BadRequest");
	host_tree_free(tree);
}
