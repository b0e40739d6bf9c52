// SPDX-License-Identifier: Apache-2.0
/*
 * The catalogue of NICs: one JSON file each, in the program's own data, read into what a host tree
 * makes PFs of. `orbweaver simulate` and the golden plans take NICs from here.
 */
#include "cli/simulate/host/vendor_nics.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* nics/<name>.json, as it is when this program is built. */
#define NICS(nic)                                                                                  \
	nic(cx5, "connectx-5") nic(cx6dx, "connectx-6-dx") nic(cx6ib, "connectx-6-ib")             \
		nic(cx7, "connectx-7") nic(bf2, "bluefield-2-dpu") nic(bf3, "bluefield-3-nic")     \
			nic(e810, "e810") nic(bcm57508, "bcm57508") nic(bcm57810, "bcm57810")      \
				nic(igb, "82576")

#define EMBED(id, name)                                                                            \
	__asm__(".section .rodata\n"                                                               \
		"vendor_nic_" #id ": .incbin \"cli/simulate/host/nics/" name ".json\"\n"           \
		".byte 0\n"                                                                        \
		".previous\n");                                                                    \
	extern const char vendor_nic_##id[] __attribute__((visibility("hidden")));
NICS(EMBED)

#define NAME(id, name) name,
const char *const vendor_nic_names[] = {NICS(NAME) NULL};

static const char *text_of(size_t i)
{
#define TEXT(id, name) vendor_nic_##id,
	const char *const texts[] = {NICS(TEXT)};

	return texts[i];
}

/* Where `word` is in a list of them, the enum's order; the first where the file has none. */
static int choice(const json_t *pf, const char *key, const char *const *words, int *ret,
		  struct err *err)
{
	const char *word = json_str_or(json_at(pf, key), words[0]);

	for (int i = 0; words[i]; i++) {
		if (!str_eq(words[i], word))
			continue;
		*ret = i;
		return 0;
	}
	return err_set(err, ERR_BUG, "BadNicFile", "pf.%s \"%s\": unknown word", key, word);
}

static int read_pf(const json_t *file, struct tree_pf *ret, struct err *err)
{
	static const char *const switches[] = {"any",       "without-vfs", "with-vfs",
					       "elsewhere", "none",        NULL};
	static const char *const downs[] = {"makes", "ignores", "refuses", NULL};
	const json_t *pf = json_at(file, "pf"), *vfs = json_at(file, "vfs");
	int eswitch, down;

	if (choice(pf, "eswitch", switches, &eswitch, err) < 0 ||
	    choice(pf, "down", downs, &down, err) < 0)
		return -1;
	*ret = (struct tree_pf){
		.address = TREE_MLX,
		.driver = json_str_at(pf, "driver"),
		.netdev = json_str_at(pf, "netdev"),
		.rdma = json_str_at(pf, "rdma"),
		.vendor = json_str_at(pf, "vendor"),
		.device = json_str_at(pf, "device"),
		.vf_device = json_str_at(vfs, "device"),
		.vf_driver = json_str_at(vfs, "driver"),
		.vf_bus = 0x3c,
		.total = (int)json_integer_value(json_at(pf, "totalVfs")),
		.max_mtu = (int)json_integer_value(json_at(pf, "maxMtu")),
		.is_ib = str_eq(json_str_at(pf, "port"), "IB"),
		.has_devlink = json_is_true(json_at(pf, "devlink")),
		.vfs_lack_rdma = !json_is_true(json_at(vfs, "rdma")),
		.eswitch = (enum tree_eswitch)eswitch,
		.down = (enum tree_down)down,
	};
	return 0;
}

static int unknown(const char *name, struct err *err)
{
	auto_strbuf struct strbuf names = {0};

	for (size_t i = 0; vendor_nic_names[i]; i++)
		strbuf_addf(&names, "%s%s", i ? ", " : "", vendor_nic_names[i]);
	return err_set(err, ERR_INVALID, "UnknownNic", "\"%s\": unknown NIC; there are %s", name,
		       strbuf_str(&names));
}

static json_t *parse(const char *name, const char *text, struct err *err)
{
	json_t *file = json_parse(text, strlen(text), err);

	if (file && json_array_size(json_at(file, "sources")) > 0)
		return file;
	if (file)
		(void)err_set(err, ERR_BUG, "BadNicFile", "sources: none are named");
	json_decref(file);
	(void)err_in(err, "nics/%s.json", name);
	return NULL;
}

int vendor_nic_read(const char *name, struct vendor_nic *ret, struct err *err)
{
	struct vendor_nic nic = {0};
	const json_t *firmware;
	size_t i = 0;

	while (vendor_nic_names[i] && !str_eq(vendor_nic_names[i], name))
		i++;
	if (!vendor_nic_names[i])
		return unknown(name, err);
	nic.file = parse(name, text_of(i), err);
	if (!nic.file)
		return -1;
	if (read_pf(nic.file, &nic.pf, err) < 0) {
		vendor_nic_done(&nic);
		return err_in(err, "nics/%s.json", name);
	}
	nic.title = json_str_at(nic.file, "name");
	nic.kernel = json_str_at(nic.file, "kernel");
	firmware = json_at(nic.file, "firmware");
	nic.firmware = (struct tree_firmware){
		.has_switch = json_at(firmware, "enableSriov"),
		.is_on = json_is_true(json_at(firmware, "enableSriov")),
		.has_count = json_at(firmware, "totalVfs"),
		.count = (uint32_t)json_integer_value(json_at(firmware, "totalVfs")),
		.can_reset = json_at(firmware, "reset"),
		.needs_scan = str_eq(json_str_at(firmware, "reset"), "needs-scan"),
	};
	*ret = nic;
	return 0;
}

void vendor_nic_done(struct vendor_nic *nic)
{
	json_decref(nic->file);
}
