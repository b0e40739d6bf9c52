// SPDX-License-Identifier: Apache-2.0
/*
 * Three places that show a module, cheapest first: its folder in sysfs, what it makes there, and
 * the list of what is built in. The observed document lists the modules that pods need with this,
 * and hostd asks before and after it loads one.
 */
#include "nodeagent/host/module.h"

#include <string.h>
#include <sys/utsname.h>

#include "nodeagent/host/sysfs.h"

/* 10 to 20 KiB usually. */
#define LIST_MAX (1 << 20)

/* What is in sysfs once the module has started. */
static const struct {
	const char *module, *path;
} effects[] = {
	{"ib_core", "sys/class/infiniband"},
	{"ib_umad", "sys/class/infiniband_mad"},
	{"ib_uverbs", "sys/class/infiniband_verbs"},
	{"mlx5_ib", "sys/bus/auxiliary/drivers/mlx5_ib.rdma"},
	{"rdma_ucm", "sys/class/misc/rdma_cm"},
	{"vfio_pci", "sys/bus/pci/drivers/vfio-pci"},
};

static char *with_underscores(const char *name)
{
	char *copy = str_dup(name);

	for (char *p = copy; *p; p++)
		if (*p == '-')
			*p = '_';
	return copy;
}

/* A line is "kernel/drivers/infiniband/core/ib_core.ko". */
static bool is_listed(const char *list, const char *name)
{
	auto_free char *same = with_underscores(list), *file = str_printf("/%s.ko", name);

	for (const char *at = strstr(same, file); at; at = strstr(at + 1, file))
		if (at[strlen(file)] == '\n' || at[strlen(file)] == '\0')
			return true;
	return false;
}

bool module_is_there(const struct host *host, const char *module)
{
	auto_free char *name = with_underscores(module);
	auto_free char *path = str_printf("sys/module/%s", name), *list_path = NULL;
	auto_strbuf struct strbuf list = {0};
	struct utsname system;

	if (sysfs_exists(host, path))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(effects); i++)
		if (str_eq(effects[i].module, name) && sysfs_exists(host, effects[i].path))
			return true;
	if (uname(&system) < 0)
		return false;
	list_path = str_printf("lib/modules/%s/modules.builtin", system.release);
	return sysfs_read_file(host, list_path, LIST_MAX, &list) &&
	       is_listed(strbuf_str(&list), name);
}
