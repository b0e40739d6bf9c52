// SPDX-License-Identifier: Apache-2.0
/*
 * The items of a pod's SpiderEndpoint: their addresses, places and routes, and what a CNI result
 * says of them. Lowest of the files of an allocation: it opens no ledger.
 */
#include "reconcilers/ipam/allocate/allocate_internal.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ip_pool.h"

const struct allocation_family allocation_families[ALLOCATION_FAMILIES] = {
	{IP_V4, "ipv4", "ipv4", "ipv4Pool", "ipv4Gateway", "0.0.0.0/0"},
	{IP_V6, "ipv6", "ipv6", "ipv6Pool", "ipv6Gateway", "::/0"},
};

bool allocation_address(const json_t *item, const struct allocation_family *family,
			char out[IP_TEXT_SIZE])
{
	return ip_print_bare(json_str_or(json_at(item, family->address), ""), family->family, out);
}

json_t *allocation_item(const json_t *items, const char *nic)
{
	return json_find(items, "interface", nic);
}

size_t allocation_place(const struct allocate_call *call, size_t i)
{
	assert(i < json_array_size(call->places));
	return (size_t)json_integer_value(json_array_get(call->places, i));
}

bool allocation_has_place(const struct allocate_call *call, size_t place)
{
	for (size_t i = 0; i < json_array_size(call->places); i++)
		if (allocation_place(call, i) == place)
			return true;
	return false;
}

void allocation_put_item(struct allocate_call *call, json_t *item, size_t place)
{
	size_t i = 0;

	assert(item && json_array_size(call->items) == json_array_size(call->places));
	while (i < json_array_size(call->items) && allocation_place(call, i) <= place)
		i++;
	json_array_insert_new(call->items, i, item);
	json_array_insert_new(call->places, i, json_integer((json_int_t)place));
}

/* ---- routes ---------------------------------------------------------------------------------- */

static int read_route(const json_t *route, size_t i, struct err *err)
{
	const char *dst = json_str_or(json_at(route, "dst"), ""),
		   *gw = json_str_or(json_at(route, "gw"), "");
	enum ip_family family;
	struct ip_subnet subnet;
	ip_number number;

	if (ip_subnet_parse(dst, &subnet, NULL) < 0)
		return err_set(err, ERR_INVALID, "WrongAnnotation",
			       "annotation " IPAM_ANNOTATION_ROUTES
			       ": dst \"%.64s\" of route %zu must be a network such as 10.0.0.0/16",
			       dst, i);
	if (ip_parse_any(gw, &family, &number, NULL) < 0 || family != subnet.family)
		return err_set(err, ERR_INVALID, "WrongAnnotation",
			       "annotation " IPAM_ANNOTATION_ROUTES
			       ": gw \"%.64s\" of route %zu must be an IPv%d address, as its dst",
			       gw, i, (int)subnet.family);
	return 0;
}

json_t *allocation_routes(const json_t *pod, struct err *err)
{
	const char *text = json_str_at(pod, "metadata", "annotations", IPAM_ANNOTATION_ROUTES);
	json_auto_t *routes =
		text ? limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, err) : json_array();
	json_t *route;
	size_t i;

	if (json_is_null(routes)) {
		json_decref(routes);
		routes = json_array();
	}
	if (text && !routes && err && str_eq(err->reason, "TooLarge")) {
		err_in(err, "annotation " IPAM_ANNOTATION_ROUTES);
		return NULL;
	}
	if (!json_is_array(routes)) {
		(void)candidates_refuse_text(text ? text : "", "list of {\"dst\", \"gw\"}", err);
		err_in(err, "annotation " IPAM_ANNOTATION_ROUTES);
		return NULL;
	}
	json_array_foreach (routes, i, route)
		if (read_route(route, i, err) < 0)
			return NULL;
	return json_incref(routes);
}

static bool reaches(const json_t *item, const char *gateway)
{
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
		struct ip_subnet subnet;
		ip_number number;

		if (ip_subnet_parse(json_str_or(json_at(item, allocation_families[f].address), ""),
				    &subnet, NULL) == 0 &&
		    ip_parse(gateway, subnet.family, &number, NULL) == 0 &&
		    ip_range_has(subnet.range, number))
			return true;
	}
	return false;
}

void allocation_add_route(json_t *item, const char *dst, const char *gw)
{
	json_t *routes = json_object_get(item, "routes");
	json_t *route = json_object();

	assert(json_is_object(item) && dst && gw);
	if (!routes) {
		routes = json_array();
		json_put(item, "routes", routes);
	}
	json_put_str(route, "dst", dst);
	json_put_str(route, "gw", gw);
	json_array_append_new(routes, route);
}

void allocation_spread_routes(const struct allocate_call *call, const json_t *routes)
{
	json_t *route, *item;
	size_t i, k;

	json_array_foreach (routes, i, route) {
		const char *gw = json_str_at(route, "gw");

		json_array_foreach (call->fresh, k, item) {
			if (reaches(item, gw)) {
				allocation_add_route(item, json_str_at(route, "dst"), gw);
				break;
			}
		}
	}
}

static bool is_reached(const json_t *items, const char *gateway)
{
	json_t *item;
	size_t i;

	json_array_foreach (items, i, item)
		if (reaches(item, gateway))
			return true;
	return false;
}

char *ipam_routes_left_out(const json_t *pod, const json_t *status)
{
	json_auto_t *routes = allocation_routes(pod, NULL);
	auto_strbuf struct strbuf left = {0};
	json_t *route;
	size_t i;

	json_array_foreach (routes, i, route) {
		const char *gw = json_str_at(route, "gw");

		if (!is_reached(json_at(status, "current", "ips"), gw))
			strbuf_addf(&left, "%s%s via %s", left.len ? ", " : "",
				    json_str_at(route, "dst"), gw);
	}
	if (left.len == 0)
		return NULL;
	return str_printf("annotation " IPAM_ANNOTATION_ROUTES
			  ": no NIC of the pod has a network with the gateway of %s, so the pod "
			  "does not get it: correct gw, or take the route out",
			  strbuf_str(&left));
}

/* ---- CNI ------------------------------------------------------------------------------------- */

static void result_route(json_t *routes, const char *dst, const char *gw)
{
	char network[IP_SUBNET_TEXT_SIZE];
	struct ip_subnet subnet;
	json_t *route;

	/* Earlier versions stored routes of a pool that had "to" and "via" as empty ones. */
	if (!*dst || !*gw)
		return;
	route = json_object();
	/* The destination is stored as people wrote it; the kernel wants the network. */
	if (ip_subnet_parse(dst, &subnet, NULL) == 0) {
		ip_subnet_print(&subnet, network);
		dst = network;
	}
	json_put_str(route, "dst", dst);
	json_put_str(route, "gw", gw);
	json_array_append_new(routes, route);
}

json_t *ipam_cni_result(const json_t *status, const char *nic, const char *cni_version)
{
	const json_t *item = endpoint_item(status, nic);
	bool has_version = str_starts(cni_version, "0.");
	json_t *result = json_object(), *ips = json_array(), *routes = json_array(), *route;
	size_t i;

	assert(nic && cni_version);
	json_put_str(result, "cniVersion", cni_version);
	json_array_foreach (json_at(item, "routes"), i, route)
		result_route(routes, json_str_or(json_at(route, "dst"), ""),
			     json_str_or(json_at(route, "gw"), ""));
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
		const char *address = json_str_at(item, allocation_families[f].address);
		const char *gateway = json_str_at(item, allocation_families[f].gateway);
		json_t *ip;

		if (!address)
			continue;
		ip = json_object();
		if (has_version)
			json_put_str(ip, "version",
				     allocation_families[f].family == IP_V4 ? "4" : "6");
		json_put_str(ip, "address", address);
		json_put_str(ip, "gateway", gateway);
		json_array_append_new(ips, ip);
		if (gateway && !json_is_true(json_at(item, "cleanGateway")))
			result_route(routes, allocation_families[f].default_route, gateway);
	}
	json_put(result, "ips", ips);
	if (json_array_size(routes))
		json_put(result, "routes", routes);
	else
		json_decref(routes);
	json_put(result, "dns", json_object());
	return result;
}
