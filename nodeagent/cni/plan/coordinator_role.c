// SPDX-License-Identifier: Apache-2.0
/*
 * What a NIC is, from how its pod looks now: underlay or overlay, the first one or not, which table
 * is its own. coordinator_run.c asks first, since what it looks up on the node depends on the
 * answer; coordinator.c plans with it.
 */
#include "nodeagent/cni/plan/coordinator_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/look.h"

#define LINK_BROADCAST 0x2
#define LINK_MULTICAST 0x1000

void coordinator_role_done(struct coordinator_role *role)
{
	json_decref(role->nic_addresses);
	json_decref(role->pod_addresses);
	*role = (struct coordinator_role){0};
}

static int compare_indices(const void *a, const void *b)
{
	const json_t *const *left = a, *const *right = b;
	int64_t difference = look_number(*left, "index") - look_number(*right, "index");

	return difference < 0 ? -1 : difference > 0;
}

const json_t **coordinator_links(const json_t *look, size_t *ret_n)
{
	const json_t *list = json_at(look, "links");
	const json_t **links;

	*ret_n = json_array_size(list);
	links = mem_calloc(*ret_n + 1, sizeof(json_t *));
	for (size_t i = 0; i < *ret_n; i++)
		links[i] = json_array_get(list, i);
	qsort(links, *ret_n, sizeof(json_t *), compare_indices);
	return links;
}

static unsigned int families_of(const json_t *addresses)
{
	unsigned int families = 0;
	size_t i;
	json_t *address;

	json_array_foreach (addresses, i, address)
		families |= look_family_of(json_string_value(address));
	return families;
}

/* Is it up, or about to be, and one that can have neighbours? */
static bool counts_as_nic(const json_t *link, const char *ifname)
{
	int64_t flags = look_number(link, "flags");

	if (str_eq(json_str_at(link, "name"), ifname))
		flags |= LINK_UP;
	return flags & LINK_UP && flags & LINK_BROADCAST && flags & LINK_MULTICAST;
}

bool coordinator_table_is_taken(const json_t *pod, int64_t table, const char *ifname,
				const char *first_nic)
{
	size_t i;
	json_t *route;

	json_array_foreach (json_at(pod, "routes"), i, route) {
		const char *dev = json_str_at(route, "dev");

		if (look_number(route, "table") == table && dev && !str_eq(dev, ifname) &&
		    !str_eq(dev, first_nic) && !str_eq(dev, COORDINATOR_VETH))
			return true;
	}
	return false;
}

static int decide_mode(const struct coordinator_config *config, const char *ifname,
		       struct coordinator_role *role, struct err *err)
{
	bool is_first_nic = str_eq(ifname, config->first_nic);

	role->underlay = config->mode == COORDINATOR_UNDERLAY ||
			 (config->mode == COORDINATOR_AUTO && (is_first_nic || role->has_veth));
	if (role->underlay && !is_first_nic && !role->has_veth)
		return err_set(
			err, ERR_INVALID, "BadMode",
			"coordinator: %s cannot be in underlay mode: the pod's first NIC has no "
			"coordinator; give it one, or set mode auto",
			ifname);
	if (!role->underlay && is_first_nic)
		return err_set(
			err, ERR_INVALID, "BadMode",
			"coordinator: %s is the pod's first NIC and cannot be in overlay mode; "
			"set mode auto or underlay",
			ifname);
	if (!role->underlay && role->has_veth)
		return err_set(
			err, ERR_INVALID, "BadMode",
			"coordinator: %s cannot be in overlay mode: the pod's first NIC is in "
			"underlay mode; set mode auto",
			ifname);
	return 0;
}

static void decide_table(const struct coordinator_config *config, const char *ifname,
			 const json_t *pod, struct coordinator_role *role)
{
	int64_t n = 0;
	size_t i;
	json_t *link;

	json_array_foreach (json_at(pod, "links"), i, link)
		n += counts_as_nic(link, ifname);
	role->first = role->underlay ? str_eq(ifname, config->first_nic) : n == 2;
	role->table = role->first ? TABLE_FIRST : n + (role->underlay ? 98 : 99);
	if (role->table < TABLE_FIRST)
		role->table = TABLE_FIRST;
	while (coordinator_table_is_taken(pod, role->table, ifname, config->first_nic))
		role->table++;
}

int coordinator_role_of(const struct coordinator_config *config, const char *ifname,
			const json_t *pod, struct coordinator_role *ret, struct err *err)
{
	auto_coordinator_role struct coordinator_role role = {
		.nic_addresses = json_array(),
		.pod_addresses = json_array(),
		.has_veth = look_link(pod, COORDINATOR_VETH) != NULL,
	};
	auto_free const json_t **links = NULL;
	size_t n = 0;

	assert(config->first_nic && config->mode != COORDINATOR_DISABLED);
	if (!look_link(pod, ifname))
		return err_set(
			err, ERR_INVALID, "NicMissing",
			"coordinator: the pod has no interface %s; chain the coordinator after "
			"the plugin that makes it",
			ifname);
	look_addresses(pod, ifname, LOOK_V4 | LOOK_V6, role.nic_addresses);
	role.families = families_of(role.nic_addresses);
	if (!role.families)
		return err_set(err, ERR_INVALID, "NoAddress",
			       "coordinator: %s has no address; give its network IPAM", ifname);
	if (decide_mode(config, ifname, &role, err))
		return -1;
	decide_table(config, ifname, pod, &role);
	role.via = role.underlay ? COORDINATOR_VETH : config->first_nic;
	links = coordinator_links(pod, &n);
	for (size_t i = 0; i < n; i++)
		if (!str_eq(json_str_at(links[i], "name"), "lo"))
			look_addresses(pod, json_str_at(links[i], "name"), role.families,
				       role.pod_addresses);
	*ret = role;
	role = (struct coordinator_role){0};
	return 0;
}
