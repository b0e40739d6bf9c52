// SPDX-License-Identifier: Apache-2.0
/*
 * Each setting is looked up in the NAD, then in the SpiderCoordinator, then has its default. The
 * first call of coordinator_run.c for ADD; whatever passes here needs no check in coordinator.c.
 */
#include "nodeagent/cni/plan/coordinator_config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/coordinator.h"

#define LIST_MAX 256

void coordinator_config_done(struct coordinator_config *config)
{
	json_decref(config->folded);
	json_decref(config->cidrs);
	json_decref(config->services);
	json_decref(config->routes);
	*config = (struct coordinator_config){0};
}

/* Both sources of a value, the first wins. */
struct sources {
	const json_t *config, *settings;
};

static int bad_field(struct err *err, const char *key, const char *value, const char *must)
{
	return err_set(err, ERR_INVALID, "BadField", "coordinator: %s: \"%.64s\" must be %s", key,
		       value, must);
}

/* The text, without blanks around it in `copy`; "" when neither has one. */
static int get_text(struct sources from, const char *key, const char *settings_key,
		    const char **ret, struct err *err)
{
	const char *text = "";

	if (json_get_str(from.config, "coordinator", key, "", &text, err))
		return -1;
	if (str_empty(text) && settings_key &&
	    json_get_str(from.settings, "SpiderCoordinator", settings_key, "", &text, err))
		return -1;
	*ret = text;
	return 0;
}

/* Whole, also as 1.0, which a trip through Go's floats makes of 1. */
static int get_number(struct sources from, const char *key, int64_t min, int64_t max,
		      int64_t otherwise, int64_t *ret, struct err *err)
{
	const json_t *value = json_at(from.config, key);
	double real;

	value = value ? value : json_at(from.settings, key);
	real = json_number_value(value);
	if (!value) {
		*ret = otherwise;
		return 0;
	}
	if (!json_is_number(value) || real != floor(real) || real < (double)min ||
	    real > (double)max)
		return err_set(err, ERR_INVALID, "BadField",
			       "coordinator: %s must be a whole number from %lld to %lld", key,
			       (long long)min, (long long)max);
	*ret = (int64_t)real;
	return 0;
}

static int get_bool(struct sources from, const char *key, bool *ret, struct err *err)
{
	bool otherwise = false;

	return json_get_bool(from.settings, "SpiderCoordinator", key, false, &otherwise, err) ||
			       json_get_bool(from.config, "coordinator", key, otherwise, ret, err)
		       ? -1
		       : 0;
}

/* Blanks around a value are forgiven, as the webhooks do. */
static char *trimmed(const char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	return str_ndup(text, len);
}

static int read_mode(struct sources from, enum coordinator_mode *ret, struct err *err)
{
	static const struct {
		const char *name;
		enum coordinator_mode mode;
	} modes[] = {
		{"auto", COORDINATOR_AUTO},         {"underlay", COORDINATOR_UNDERLAY},
		{"overlay", COORDINATOR_OVERLAY},   {"disable", COORDINATOR_DISABLED},
		{"disabled", COORDINATOR_DISABLED}, /* as the SpiderCoordinator's schema has it */
	};
	const char *text = "";

	if (get_text(from, "mode", "mode", &text, err))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (str_eq(text, modes[i].name)) {
			*ret = modes[i].mode;
			return 0;
		}
	return bad_field(err, "mode", text, "auto, underlay, overlay or disable");
}

/* The list of the NAD, unless it is empty. */
static int get_list(struct sources from, const char *key, const json_t **ret, struct err *err)
{
	const json_t *list = NULL;

	if (json_get_array(from.config, "coordinator", key, &list, err))
		return -1;
	if (json_array_size(list) == 0 &&
	    json_get_array(from.settings, "SpiderCoordinator", key, &list, err))
		return -1;
	if (json_array_size(list) > LIST_MAX)
		return err_set(err, ERR_INVALID, "BadField",
			       "coordinator: %s has more than %d entries", key, LIST_MAX);
	*ret = list;
	return 0;
}

/*
 * A network, host bits cleared; with `or_address` also a single address. Appended unless it is
 * there.
 */
static bool read_network(const char *text, bool or_address, struct addr *ret)
{
	auto_free char *clean = text ? trimmed(text) : NULL;

	if (!addr_parse_prefix(clean, ret) && !(or_address && addr_parse(clean, ret)))
		return false;
	*ret = addr_network(ret);
	return true;
}

static int add_networks(struct sources from, const char *key, json_t *ret, struct err *err)
{
	const json_t *list = NULL;
	size_t i;
	json_t *item;

	if (get_list(from, key, &list, err))
		return -1;
	json_array_foreach (list, i, item) {
		const char *text = json_str_or(item, "");
		char canonical[ADDR_TEXT_SIZE];
		struct addr network;

		if (!read_network(text, false, &network))
			return bad_field(err, key, text, "a subnet like 10.233.0.0/18");
		addr_print_prefix(&network, canonical);
		if (!json_list_has(ret, canonical))
			json_array_append_new(ret, json_fmt("%s", canonical));
	}
	return 0;
}

static int read_policy_routes(struct sources from, json_t *ret, struct err *err)
{
	const json_t *list = NULL;
	size_t i;
	json_t *item;

	if (get_list(from, "policyRoutes", &list, err))
		return -1;
	json_array_foreach (list, i, item) {
		const char *dst = json_str_or(json_at(item, "dst"), "");
		const char *gw = json_str_or(json_at(item, "gw"), "");
		char dst_text[ADDR_TEXT_SIZE], gw_text[ADDR_TEXT_SIZE];
		struct addr network, gateway;
		json_t *route;

		if (!read_network(dst, true, &network))
			return bad_field(err, "policyRoutes.dst", dst, "an address or a subnet");
		if (!addr_parse(gw, &gateway))
			return bad_field(err, "policyRoutes.gw", gw, "an IP address");
		if (gateway.family != network.family)
			return bad_field(err, "policyRoutes.gw", gw,
					 "of the same IP family as the route's dst");
		addr_print_prefix(&network, dst_text);
		addr_print(&gateway, gw_text);
		route = json_object();
		json_put_str(route, "dst", dst_text);
		json_put_str(route, "gw", gw_text);
		json_array_append_new(ret, route);
	}
	return 0;
}

/* "0a:1b"; a dash in between is forgiven. A multicast address cannot be a NIC's. */
static int read_mac_prefix(const char *text, struct coordinator_config *ret, struct err *err)
{
	int digits[4];

	if (str_empty(text))
		return 0;
	for (int i = 0; i < 4; i++)
		digits[i] = strlen(text) == 5 ? str_hex_digit(text[i + i / 2]) : -1;
	if (digits[0] < 0 || digits[1] < 0 || digits[2] < 0 || digits[3] < 0 ||
	    (text[2] != ':' && text[2] != '-') || digits[1] & 1)
		return bad_field(
			err, "podMACPrefix", text,
			"two octets like 0a:1b, of a unicast address (the second digit even)");
	ret->mac_prefix[0] = (uint8_t)(digits[0] << 4 | digits[1]);
	ret->mac_prefix[1] = (uint8_t)(digits[2] << 4 | digits[3]);
	ret->has_mac_prefix = true;
	return 0;
}

static int read_veth_address(const char *text, struct addr *ret, struct err *err)
{
	auto_free char *clean = trimmed(text);

	if (str_empty(clean) || addr_parse(clean, ret))
		return 0;
	return bad_field(err, "vethLinkAddress", text, "an IP address like 169.254.100.1");
}

static int check_settings(const json_t *settings, struct err *err)
{
	static const char *const needed[] = {"mode", "tunePodRoutes", "overlayPodCIDR",
					     "serviceCIDR"};

	if (!settings)
		return err_set(err, ERR_TRANSIENT, "CoordinatorNotReady",
			       "the cluster's SpiderCoordinator is not known yet; see its status");
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (!json_at(settings, needed[i]))
			return err_set(err, ERR_TRANSIENT, "CoordinatorNotReady",
				       "the SpiderCoordinator says nothing about %s yet; see its "
				       "status",
				       needed[i]);
	return 0;
}

static int read_texts(struct sources from, struct coordinator_config *ret, struct err *err)
{
	const char *prefix = "", *veth = "";

	if (get_text(from, "podDefaultCniNic", NULL, &ret->first_nic, err) ||
	    get_text(from, "podDefaultRouteNic", "podDefaultRouteNIC", &ret->default_route_nic,
		     err) ||
	    get_text(from, "podMACPrefix", "podMACPrefix", &prefix, err) ||
	    get_text(from, "vethLinkAddress", "vethLinkAddress", &veth, err) ||
	    read_mac_prefix(prefix, ret, err) || read_veth_address(veth, &ret->veth_address, err))
		return -1;
	if (str_empty(ret->first_nic))
		ret->first_nic = "eth0";
	return 0;
}

static int read_numbers(struct sources from, struct coordinator_config *ret, struct err *err)
{
	char text[24];

	if (get_number(from, "vethMTU", 0, 65535, 0, &ret->veth_mtu, err) ||
	    get_number(from, "hostRuleTable", 0, UINT32_MAX, COORDINATOR_HOST_TABLE,
		       &ret->host_table, err) ||
	    get_number(from, "podRPFilter", INT32_MIN, 2, 0, &ret->rp_filter, err) ||
	    get_number(from, "txQueueLen", 0, INT32_MAX, 0, &ret->txqueuelen, err))
		return -1;
	if (ret->host_table == 0)
		ret->host_table = COORDINATOR_HOST_TABLE;
	/* The kernel's: default, main and local. */
	if (ret->host_table >= 253 && ret->host_table <= 255) {
		(void)snprintf(text, sizeof(text), "%lld", (long long)ret->host_table);
		return bad_field(err, "hostRuleTable", text, "a table of its own, not 253 to 255");
	}
	if (ret->rp_filter < 0)
		ret->rp_filter = -1;
	return 0;
}

int coordinator_config_read(const json_t *config, const json_t *settings,
			    struct coordinator_config *ret, struct err *err)
{
	auto_coordinator_config struct coordinator_config read = {
		.folded = config_keys_fold(config, "coordinator"),
		.cidrs = json_array(),
		.services = json_array(),
		.routes = json_array(),
	};
	struct sources from = {read.folded, settings};

	if (!(str_starts(json_str_at(read.folded, "mode"), "disable")) &&
	    check_settings(settings, err))
		return -1;
	if (read_mode(from, &read.mode, err) || read_texts(from, &read, err) ||
	    read_numbers(from, &read, err) ||
	    get_bool(from, "tunePodRoutes", &read.tune_pod_routes, err) ||
	    get_bool(from, "detectIPConflict", &read.detect_conflict, err) ||
	    get_bool(from, "detectGateway", &read.detect_gateway, err) ||
	    add_networks(from, "overlayPodCIDR", read.cidrs, err) ||
	    add_networks(from, "serviceCIDR", read.cidrs, err) ||
	    add_networks(from, "hijackCIDR", read.cidrs, err) ||
	    add_networks((struct sources){NULL, settings}, "serviceCIDR", read.services, err) ||
	    read_policy_routes(from, read.routes, err))
		return -1;
	/* The other pod of the machine has the addresses, too. */
	if (json_is_true(json_at(settings, "migrating")))
		read.detect_conflict = false;
	*ret = read;
	read = (struct coordinator_config){0};
	return 0;
}
