// SPDX-License-Identifier: Apache-2.0
/* Nothing is allocated: what is asked for is the result. */
#include "nodeagent/cni/plan/static_ipam.h"

#include <assert.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/addr.h"
#include "nodeagent/cni/plan/cni_args.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/ipam_wish.h"
#include "nodeagent/cni/plan/result.h"

static int add_address(json_t *ips, const char *text, const char *gateway, struct err *err)
{
	char printed[ADDR_TEXT_SIZE], gateway_printed[ADDR_TEXT_SIZE];
	struct addr address, via;
	json_t *entry;

	if (!addr_parse_prefix(text, &address))
		return err_set(
			err, ERR_INVALID, "BadField",
			"static: address \"%.64s\" must have a prefix length: \"10.1.2.3/24\"",
			text ? text : "");
	if (!str_empty(gateway) && !addr_parse(gateway, &via))
		return err_set(err, ERR_INVALID, "BadField",
			       "static: gateway \"%.64s\" must be an address", gateway);
	if (json_array_size(ips) == RESULT_LIST_MAX)
		return err_set(err, ERR_INVALID, "BadField", "static: addresses must be at most %d",
			       RESULT_LIST_MAX);
	entry = json_object();
	addr_print_prefix(&address, printed);
	json_put_str(entry, "address", printed);
	if (!str_empty(gateway)) {
		addr_print(&via, gateway_printed);
		json_put_str(entry, "gateway", gateway_printed);
	}
	json_array_append_new(ips, entry);
	return 0;
}

static int add_of_network(json_t *ips, const json_t *addresses, struct err *err)
{
	const json_t *item;
	size_t i;

	if (addresses && !json_is_array(addresses))
		return err_set(err, ERR_INVALID, "BadField",
			       "static: addresses must be a list of objects");
	json_array_foreach ((json_t *)addresses, i, item) {
		json_auto_t *folded = NULL;

		if (config_keys_read(item, "static.address", &folded, err) ||
		    add_address(ips, json_str_at(folded, "address"), json_str_at(folded, "gateway"),
				err))
			return -1;
	}
	return 0;
}

/* A gateway is that of each address, from this one on, whose network has it. */
static int put_gateway(json_t *ips, size_t from, const char *text, struct err *err)
{
	char printed[ADDR_TEXT_SIZE];
	struct addr gateway, address;

	if (!addr_parse(text, &gateway))
		return err_set(err, ERR_INVALID, "BadField",
			       "static: GATEWAY \"%.64s\" of CNI_ARGS must be an address", text);
	addr_print(&gateway, printed);
	for (size_t i = from; i < json_array_size(ips); i++) {
		json_t *ip = json_array_get(ips, i);

		if (addr_parse_prefix(json_str_at(ip, "address"), &address) &&
		    addr_contains(&address, &gateway))
			json_put_str(ip, "gateway", printed);
	}
	return 0;
}

/* The next of "A, B", cut out of *rest; NULL at the end. */
static char *next_text(char **rest)
{
	char *text = strsep(rest, ",");

	if (!text)
		return NULL;
	text += strspn(text, " \t");
	text[strcspn(text, " \t")] = '\0';
	return text;
}

/* IP and GATEWAY belong together: those of the configuration have their own. */
static int add_of_args(json_t *ips, const char *args, struct err *err)
{
	auto_free char *addresses = cni_args_value(args, "IP");
	auto_free char *gateways = cni_args_value(args, "GATEWAY");
	char *rest = str_empty(addresses) ? NULL : addresses, *text;
	size_t from = json_array_size(ips);

	while ((text = next_text(&rest)))
		if (add_address(ips, text, NULL, err))
			return -1;
	rest = str_empty(gateways) ? NULL : gateways;
	while ((text = next_text(&rest)))
		if (put_gateway(ips, from, text, err))
			return -1;
	return 0;
}

static int replace_addresses(json_t *ips, const json_t *texts, struct err *err)
{
	const json_t *item;
	size_t i;

	if (!texts)
		return 0;
	json_array_clear(ips);
	json_array_foreach ((json_t *)texts, i, item)
		if (add_address(ips, json_string_value(item), NULL, err))
			return -1;
	return 0;
}

static int check_count(const json_t *config, const json_t *ips, struct err *err)
{
	size_t n[2] = {0}, i;
	json_t *ip;

	json_array_foreach ((json_t *)ips, i, ip)
		n[strchr(json_str_or(json_at(ip, "address"), ""), ':') != NULL]++;
	return ipam_wish_check_version("static", config, n[0], n[1], err);
}

int static_ipam_result(const json_t *config, const char *args, json_t **ret, struct err *err)
{
	json_auto_t *ipam = NULL, *printed = json_object(), *ips = json_array(), *result = NULL;
	const json_t *network, *runtime;

	assert(ret);
	if (!json_is_object(json_at(config, "ipam")))
		return err_set(err, ERR_INVALID, "BadField", "static: ipam must be an object");
	if (config_keys_read(json_at(config, "ipam"), "static.ipam", &ipam, err) ||
	    ipam_wish_lists("static", config, &network, &runtime, err) ||
	    add_of_network(ips, json_at(ipam, "addresses"), err) || add_of_args(ips, args, err) ||
	    replace_addresses(ips, network, err) || replace_addresses(ips, runtime, err) ||
	    check_count(config, ips, err))
		return -1;
	json_put(printed, "routes", json_incref(json_at(ipam, "routes")));
	json_put(printed, "dns", json_incref(json_at(ipam, "dns")));
	if (result_read(printed, "1.1.0", &result, err))
		return err_in(err, "static");
	json_put(result, "ips", json_incref(ips));
	*ret = take_ptr(result);
	return 0;
}

/* The entry of a list that has the address, whatever its prefix length; NULL: there is none. */
static const json_t *entry_of(const json_t *ips, const json_t *address)
{
	struct addr want, has;
	size_t i;
	json_t *ip;

	if (!addr_parse_prefix(json_string_value(address), &want))
		return NULL;
	json_array_foreach ((json_t *)ips, i, ip)
		if (addr_parse_prefix(json_str_at(ip, "address"), &has) && addr_same(&want, &has))
			return ip;
	return NULL;
}

int static_ipam_check(const json_t *wanted, const json_t *previous, struct err *err)
{
	const json_t *ip;
	size_t i;

	if (!previous)
		return err_set(err, ERR_INVALID, "BadField",
			       "static: prevResult is missing: CHECK compares with it");
	json_array_foreach (json_at(wanted, "ips"), i, ip) {
		const char *gateway = json_str_at(ip, "gateway");
		const json_t *is = entry_of(json_at(previous, "ips"), json_at(ip, "address"));

		if (is && gateway && !str_eq(gateway, json_str_at(is, "gateway")))
			return err_set(err, ERR_HOST, "NotAsAdded",
				       "static: %s has gateway %s, the network says %s",
				       json_str_at(ip, "address"),
				       json_str_or(json_at(is, "gateway"), "none"), gateway);
	}
	return 0;
}
