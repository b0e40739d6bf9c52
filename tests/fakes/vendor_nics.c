/*
 * NICs of several vendors, read from files. See the header.
 */
#include "tests/fakes/vendor_nics.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"

#define FILE_MAX 65536

const char *const vendor_nic_names[] = {
	"connectx-5",
	"connectx-6-dx",
	"connectx-6-ib",
	"connectx-7",
	"bluefield-2-dpu",
	"bluefield-3-nic",
	"e810",
	"bcm57508",
	"bcm57810",
	"82576",
	NULL,
};

/* Where `word` is in a list of them, the enum's order; the first where the file has none. */
static int choice(const json_t *pf, const char *key, const char *const *words)
{
	const char *word = json_str_or(json_at(pf, key), words[0]);

	for (int i = 0; words[i]; i++)
		if (str_eq(words[i], word))
			return i;
	fail_msg("%s: %s", key, word);
	return 0;
}

static void read_pf(const json_t *file, struct tree_pf *ret)
{
	static const char *const switches[] = {"any",       "without-vfs", "with-vfs",
					       "elsewhere", "none",        NULL};
	static const char *const downs[] = {"makes", "ignores", "refuses", NULL};
	const json_t *pf = json_at(file, "pf"), *vfs = json_at(file, "vfs");

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
		.eswitch = (enum tree_eswitch)choice(pf, "eswitch", switches),
		.down = (enum tree_down)choice(pf, "down", downs),
	};
}

void vendor_nic_read(const char *name, struct vendor_nic *ret)
{
	auto_free char *path = str_printf("tests/fakes/nics/%s.json", name);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	const json_t *firmware;

	*ret = (struct vendor_nic){0};
	if (fs_read(AT_FDCWD, path, FILE_MAX, &text, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	ret->file = json_parse(text.data, text.len, &err);
	if (!ret->file || json_array_size(json_at(ret->file, "sources")) == 0)
		fail_msg("%s: %s", path, ret->file ? "it names no source" : err.text);
	ret->title = json_str_at(ret->file, "name");
	ret->kernel = json_str_at(ret->file, "kernel");
	read_pf(ret->file, &ret->pf);
	firmware = json_at(ret->file, "firmware");
	ret->firmware = (struct tree_firmware){
		.has_switch = json_at(firmware, "enableSriov"),
		.is_on = json_is_true(json_at(firmware, "enableSriov")),
		.has_count = json_at(firmware, "totalVfs"),
		.count = (uint32_t)json_integer_value(json_at(firmware, "totalVfs")),
		.can_reset = json_at(firmware, "reset"),
		.needs_scan = str_eq(json_str_at(firmware, "reset"), "needs-scan"),
	};
}

void vendor_nic_done(struct vendor_nic *nic)
{
	json_decref(nic->file);
}

struct host_tree *vendor_nic_tree(const struct vendor_nic *nic, const char *master, bool has_vfs)
{
	static const char *const modules[] = {"mlx5_ib", "ib_uverbs", "rdma_ucm"};
	struct host_tree *tree = host_tree_new();
	auto_free char *driver = str_printf("sys/bus/pci/drivers/%s/x", nic->pf.vf_driver);
	json_auto_t *nobody = json_object();
	struct tree_firmware firmware = nic->firmware;
	struct tree_pf pf = nic->pf;

	if (!has_vfs) {
		pf.total = 0;
		firmware.is_on = false;
	}
	if (master)
		host_tree_add_interface(tree, master, "bond");
	pf.master = master;
	host_tree_add_pf(tree, &pf);
	host_tree_offer_firmware(tree, TREE_MLX, &firmware);
	host_tree_file(tree, driver, "");
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		auto_free char *path = str_printf("sys/module/%s/x", modules[i]);

		host_tree_file(tree, path, "");
	}
	host_set_held(host_tree_host(tree), nobody);
	return tree;
}
