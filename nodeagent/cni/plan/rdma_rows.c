// SPDX-License-Identifier: Apache-2.0
/*
 * Rows are those of `orbweaver explain pod`, and so are the variables
 * (reconcilers/core/rdma_variables.h). Names come from the kernel, where a pod's owner may have set
 * them: what a shell would read has no row.
 */
#include "nodeagent/cni/plan/rdma_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/look.h"
#include "reconcilers/core/rdma_variables.h"

#define OWNER_LINE "# sandbox "

/* The link's type is ARPHRD_INFINIBAND of linux/if_arp.h. */
enum { ROCE_V2 = 2, LINK_INFINIBAND = 32 };

/* ---- rows ------------------------------------------------------------------------------------ */

/* One that a job may use; NULL: another one. */
static const char *interface_of(const json_t *link)
{
	const char *name = json_str_at(link, "name");

	return rdma_name_is_plain(name) && !str_eq(name, RDMA_CLUSTER_INTERFACE) &&
			       !(look_number(link, "flags") & LOOK_LOOPBACK)
		       ? name
		       : NULL;
}

/* Without prefix lengths; new. */
static json_t *addresses_of(const json_t *look, const char *interface)
{
	json_auto_t *list = json_array();
	json_t *ret = json_array();
	const json_t *item;
	size_t i;

	look_addresses(look, interface, LOOK_V4 | LOOK_V6, list);
	json_array_foreach (list, i, item) {
		const char *text = json_string_value(item);

		if (i < RDMA_ROW_ADDRESSES_MAX)
			json_array_append_new(ret, json_stringn(text, strcspn(text, "/")));
	}
	return ret;
}

static const char *function_of(const json_t *link)
{
	const char *parent = json_str_at(link, "parent");

	return parent && pci_address_is_valid(parent) ? parent : NULL;
}

json_t *rdma_rows_wanted(const json_t *look)
{
	json_t *addresses = json_array(), *functions = json_array(), *link;
	size_t i;

	json_array_foreach (json_at(look, "links"), i, link) {
		const char *name = interface_of(link), *function = function_of(link);
		json_auto_t *own = name ? addresses_of(look, name) : NULL;

		if (own && look_number(link, "type") != LINK_INFINIBAND)
			json_array_extend(addresses, own);
		if (own && function)
			json_array_append_new(functions, json_string(function));
	}
	return json_pack("{s:o, s:o}", "addresses", addresses, "functions", functions);
}

bool rdma_rows_are_complete(const json_t *wanted, const json_t *gids)
{
	const json_t *address;
	size_t i;

	json_array_foreach (json_at(wanted, "addresses"), i, address) {
		const json_t *list = json_at(gids, json_string_value(address)), *gid;
		bool has_v2 = false;
		size_t k;

		json_array_foreach ((json_t *)list, k, gid)
			has_v2 |= json_integer_value(json_at(gid, "version")) == ROCE_V2;
		if (!has_v2)
			return false;
	}
	return true;
}

/* The GIDs of the row's addresses on its device, which is the first one's unless it is known. */
static void put_gids(json_t *row, const json_t *gids)
{
	const json_t *address, *gid;
	json_t *own = json_array();
	size_t i, k;

	json_array_foreach (json_at(row, "addresses"), i, address)
		json_array_foreach (json_at(gids, json_string_value(address)), k, gid) {
			const char *device = json_str_at(gid, "device");
			json_t *copy;

			if (!rdma_name_is_plain(device))
				continue;
			if (!json_at(row, "rdmaDevice"))
				json_put_str(row, "rdmaDevice", device);
			if (!str_eq(json_str_at(row, "rdmaDevice"), device))
				continue;
			copy = json_copy((json_t *)gid);
			(void)json_object_del(copy, "device");
			json_put(copy, "address", json_incref((json_t *)address));
			json_array_append_new(own, copy);
		}
	if (json_array_size(own) > 0)
		json_put(row, "gids", own);
	else
		json_decref(own);
}

json_t *rdma_rows(const json_t *look, const json_t *ports, const json_t *gids, bool alone)
{
	json_t *rows = json_array();
	const json_t *link, *port;
	size_t i;

	json_array_foreach (json_at(look, "links"), i, link) {
		const char *name = interface_of(link);
		const char *device =
			name ? json_str_at(json_find(ports, "interface", name), "device") : NULL;
		json_auto_t *row = NULL;

		if (!name || json_array_size(rows) == RDMA_ROWS_MAX)
			continue;
		row = json_pack("{s:s, s:o}", "interface", name, "addresses",
				addresses_of(look, name));
		json_put_str(row, "function", function_of(link));
		if (rdma_name_is_plain(device))
			json_put_str(row, "rdmaDevice", device);
		if (look_number(link, "type") == LINK_INFINIBAND)
			json_put_bool(row, "infiniband", true);
		put_gids(row, gids);
		if (json_at(row, "rdmaDevice"))
			json_array_append(rows, row);
	}
	json_array_foreach ((json_t *)ports, i, port)
		if (alone && str_empty(json_str_at(port, "interface")) &&
		    rdma_name_is_plain(json_str_at(port, "device")) &&
		    json_array_size(rows) < RDMA_ROWS_MAX)
			json_array_append_new(rows, json_pack("{s:O, s:b, s:[]}", "rdmaDevice",
							      json_at(port, "device"), "infiniband",
							      1, "addresses"));
	return rows;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_by_interface(const void *a, const void *b)
{
	const char *x = json_str_or(json_at(*(json_t *const *)a, "interface"), "");
	const char *y = json_str_or(json_at(*(json_t *const *)b, "interface"), "");
	size_t x_len = strlen(x), y_len = strlen(y);

	return x_len != y_len ? (x_len > y_len) - (x_len < y_len) : strcmp(x, y);
}

/* Two VFs of one NIC are of one rail. */
static int compare_by_rail(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_at(*(json_t *const *)a, "rail"));
	json_int_t y = json_integer_value(json_at(*(json_t *const *)b, "rail"));

	return x != y ? (x > y) - (x < y) : compare_by_interface(a, b);
}

void rdma_rows_sort(json_t *rows, const json_t *topology)
{
	size_t n = json_array_size(rows), n_rails = 0;
	auto_free json_t **items = mem_calloc(n + 1, sizeof(*items));

	for (size_t i = 0; i < n; i++) {
		const char *pf = NULL;
		const json_t *rail;

		items[i] = json_incref(json_array_get(rows, i));
		pf = json_str_at(items[i], "pf");
		rail = pf ? json_at(json_find(json_at(topology, "nics"), "pciAddress", pf), "rail")
			  : NULL;
		if (rail)
			json_put(items[i], "rail", json_incref((json_t *)rail));
		n_rails += rail != NULL;
	}
	qsort(items, n, sizeof(json_t *), n_rails == n ? compare_by_rail : compare_by_interface);
	for (size_t i = 0; i < n; i++)
		json_array_set_new(rows, i, items[i]);
}

/* ---- the script ------------------------------------------------------------------------------ */

char *job_env_text(const json_t *rows, const char *owner)
{
	auto_call(rdma_summary_done) struct rdma_summary summary = {0};
	json_auto_t *variables = NULL;
	struct strbuf text = {0};
	const char *name;
	json_t *value;

	assert(owner);
	rdma_summarize(rows, &summary);
	if (summary.n == 0)
		return NULL;
	variables = rdma_variables(&summary, "");
	strbuf_addf(&text, OWNER_LINE "%s\n", owner);
	strbuf_adds(&text, "# Read by a shell: . /run/orbweaver/nccl.env. What is set stays.\n");
	if (rdma_summary_differs(&summary))
		strbuf_adds(&text, "# " RDMA_INDICES_DIFFER "\n");
	json_each (variables, name, value)
		strbuf_addf(&text, "export %s=\"${%s-%s}\"\n", name, name,
			    json_string_value(value));
	strbuf_adds(&text, "[ -z \"${" RDMA_TRAFFIC_CLASS "-}\" ] || "
			   "export UCX_IB_TRAFFIC_CLASS=\"${UCX_IB_TRAFFIC_CLASS-"
			   "$" RDMA_TRAFFIC_CLASS "}\"\n");
	return strbuf_take(&text);
}

char *job_env_owner(const char *text)
{
	assert(text);
	return str_starts(text, OWNER_LINE) ? str_ndup(text + strlen(OWNER_LINE),
						       strcspn(text + strlen(OWNER_LINE), "\n"))
					    : NULL;
}
