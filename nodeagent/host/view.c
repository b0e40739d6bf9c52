// SPDX-License-Identifier: Apache-2.0
/*
 * One look at a host: what is gathered before anything is written down, and what was wrong with it.
 */
#include "nodeagent/host/view.h"

#include <assert.h>

void view_problem(struct view *view, const char *address, const struct err *err)
{
	json_t *problem = json_object();

	assert(view->problems && err->reason[0]);
	json_put_str(problem, "pciAddress", address);
	json_put_str(problem, "reason", err->reason);
	json_put_str(problem, "message", err->text);
	json_array_append_new(view->problems, problem);
}

static int compare_addresses(const void *a, const void *b)
{
	return pci_address_compare(*(const char *const *)a, *(const char *const *)b);
}

/* Is a function of this PCI class a GPU, of a vendor that makes them for computing? */
static bool is_gpu(const struct view *view, const char *address, int64_t class)
{
	/* Classes of linux/pci_ids.h. Boards' own VGA is of other vendors. */
	static const struct {
		int64_t vendor;
		int64_t classes[3]; /* 0: none */
	} vendors[] = {
		{0x10de, {0x0300, 0x0302}},         /* NVIDIA: VGA, 3D controller */
		{0x1002, {0x0380, 0x1200}},         /* AMD: display, processing accelerator */
		{0x8086, {0x0300, 0x0302, 0x0380}}, /* Intel */
	};
	int64_t vendor;

	/* Display controllers and accelerators; of a GPU with SR-IOV the PF stands for all. */
	if ((class >> 16 != 0x03 && class >> 16 != 0x12) ||
	    !sysfs_read_int(view->host, pci_path(address, "vendor").text, &vendor) ||
	    pci_is_vf(view->host, address))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(vendors); i++)
		for (size_t k = 0; k < ARRAY_LEN(vendors[i].classes); k++)
			if (vendors[i].vendor == vendor && vendors[i].classes[k] == class >> 8)
				return true;
	return false;
}

static void sort_function(struct view *view, const char *address)
{
	int64_t class;

	if (!sysfs_read_int(view->host, pci_path(address, "class").text, &class)) {
		/* One that has just gone is not one that cannot be read. */
		if (!view->gpus_unknown && pci_exists(view->host, address))
			view->gpus_unknown =
				str_printf("the class of PCI function %s cannot be read", address);
		return;
	}
	if (class >> 16 == 0x02)
		json_array_append_new(view->addresses, json_string(address));
	else if (is_gpu(view, address, class))
		json_array_append_new(view->gpus, json_string(address));
}

static int read_functions(struct view *view, struct err *err)
{
	json_auto_t *names = sysfs_list(view->host, "sys/bus/pci/devices");
	auto_free const char **sorted = NULL;
	json_t *name;
	size_t i, n = 0;

	if (!names)
		return err_sys(err, "HostUnreadable", "list /sys/bus/pci/devices");
	sorted = mem_calloc(json_array_size(names) + 1, sizeof(*sorted));
	json_array_foreach (names, i, name) {
		const char *address = json_string_value(name);

		if (pci_address_is_valid(address))
			sorted[n++] = address;
	}
	qsort(sorted, n, sizeof(*sorted), compare_addresses);
	for (i = 0; i < n; i++)
		sort_function(view, sorted[i]);
	return 0;
}

int view_read_interfaces(struct view *view, struct err *err)
{
	json_t *address, *name;
	size_t i, k;

	assert(!view->addresses);
	view->addresses = json_array();
	view->gpus = json_array();
	view->functions = json_object();
	view->protected = json_array();
	view->carriers = json_array();
	view->problems = json_array();
	view->char_devices = json_object();
	view->rdma_mode = RDMA_MODE_UNKNOWN;
	if (read_functions(view, err) < 0)
		return -1;
	if (rtnl_list(view->host->netlink, &view->interfaces, err) < 0)
		return err_in(err, "observe");
	json_array_foreach (view->addresses, i, address) {
		json_auto_t *names = pci_netdevs(view->host, json_string_value(address));

		json_array_foreach (names, k, name)
			json_object_set(view->functions, json_string_value(name), address);
	}
	return 0;
}

void view_done(struct view *view)
{
	rtnl_interfaces_done(&view->interfaces);
	rdma_devices_done(&view->rdma);
	json_decref(view->addresses);
	json_decref(view->gpus);
	mem_free(view->gpus_unknown);
	json_decref(view->functions);
	json_decref(view->devlink);
	json_decref(view->health);
	json_decref(view->namespaces);
	evidence_free(view->evidence);
	json_decref(view->protected);
	json_decref(view->carriers);
	json_decref(view->problems);
	json_decref(view->char_devices);
}
