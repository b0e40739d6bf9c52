// SPDX-License-Identifier: Apache-2.0
/*
 * Every result passes here twice: read from an IPAM plugin or the runtime into the shape of 1.1.0,
 * which is all that planners know, and written in the version that the network asks for. Older
 * versions are cases at these two edges only.
 */
#include "nodeagent/cni/plan/result.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/addr.h"

const char *const result_versions[] = {"0.1.0", "0.2.0", "0.3.0", "0.3.1",
				       "0.4.0", "1.0.0", "1.1.0"};
const size_t result_n_versions = ARRAY_LEN(result_versions);

/* The index, -1 for what is not listed. */
static int version_rank(const char *version)
{
	for (size_t i = 0; i < result_n_versions; i++)
		if (str_eq(version, result_versions[i]))
			return (int)i;
	return -1;
}

const char *result_version_of(const json_t *config)
{
	const json_t *value = json_at(config, "cniVersion");
	const char *text = json_string_value(value);

	if (!value || json_is_null(value) || (text && !*text))
		return "0.1.0";
	return text ? text : "";
}

bool result_version_is_known(const char *version)
{
	return version_rank(version) >= 0;
}

bool result_version_is_at_least(const char *version, const char *than)
{
	assert(result_version_is_known(version) && result_version_is_known(than));
	return version_rank(version) >= version_rank(than);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Where a message points to: a list's entry. */
struct place {
	const char *list;
	size_t index;
};

static int refuse_member(struct err *err, struct place at, const char *key, const char *must)
{
	return err_set(err, ERR_INVALID, "BadResult", "result: %s[%zu].%s must be %s", at.list,
		       at.index, key, must);
}

static int copy_text(const json_t *from, json_t *to, struct place at, const char *key,
		     struct err *err)
{
	const json_t *value = json_at(from, key);

	if (value && !json_is_string(value))
		return refuse_member(err, at, key, "a string");
	if (!str_empty(json_string_value(value)))
		json_put_str(to, key, json_string_value(value));
	return 0;
}

/* A whole number; 1.0 too, which a trip through Go's floats makes of 1. */
static int copy_number(const json_t *from, json_t *to, struct place at, const char *key,
		       int64_t max, struct err *err)
{
	const json_t *value = json_at(from, key);
	double real = json_number_value(value);

	if (!value)
		return 0;
	if (!json_is_number(value) || real < 0 || real > (double)max || real != floor(real))
		return refuse_member(err, at, key, "a whole number");
	json_put_int(to, key, (int64_t)real);
	return 0;
}

static int copy_strings(const json_t *from, json_t *to, const char *key, struct err *err)
{
	const json_t *value = NULL;

	if (json_get_strings(from, "dns", key, &value, NULL) ||
	    json_array_size(value) > RESULT_LIST_MAX)
		return err_set(err, ERR_INVALID, "BadResult",
			       "result: dns.%s must be a list of at most %d strings", key,
			       RESULT_LIST_MAX);
	if (json_array_size(value))
		json_put(to, key, json_deep_copy(value));
	return 0;
}

/* An address, with prefix or without, as Go prints it. `required`: absent is an error. */
static int copy_address(const json_t *from, const char *from_key, json_t *to, const char *key,
			bool with_prefix, bool required, struct place at, struct err *err)
{
	const json_t *value = json_at(from, from_key);
	const char *text = json_string_value(value);
	char canonical[ADDR_TEXT_SIZE];
	struct addr address;

	if (str_empty(text) && !required && (!value || text))
		return 0;
	if (with_prefix ? !addr_parse_prefix(text, &address) : !addr_parse(text, &address))
		return refuse_member(err, at, from_key,
				     with_prefix ? "an address with a prefix length"
						 : "an IP address");
	if (with_prefix)
		addr_print_prefix(&address, canonical);
	else
		addr_print(&address, canonical);
	json_put_str(to, key, canonical);
	return 0;
}

static int read_interface(const json_t *from, json_t *to, struct place at, struct err *err)
{
	static const char *const texts[] = {"mac", "sandbox", "socketPath", "pciID"};

	if (copy_text(from, to, at, "name", err) ||
	    copy_number(from, to, at, "mtu", INT32_MAX, err))
		return -1;
	if (!json_at(to, "name"))
		json_put_str(to, "name", "");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (copy_text(from, to, at, texts[i], err))
			return -1;
	return 0;
}

static int read_ip(const json_t *from, json_t *to, struct place at, struct err *err)
{
	if (copy_address(from, "address", to, "address", true, true, at, err) ||
	    copy_address(from, "gateway", to, "gateway", false, false, at, err))
		return -1;
	/* Some plugins write -1 for none. */
	if (json_integer_value(json_at(from, "interface")) < 0)
		return 0;
	return copy_number(from, to, at, "interface", RESULT_LIST_MAX, err);
}

static int read_route(const json_t *from, json_t *to, struct place at, struct err *err)
{
	static const char *const numbers[] = {"mtu", "advmss", "priority", "table", "scope"};

	if (copy_address(from, "dst", to, "dst", true, true, at, err) ||
	    copy_address(from, "gw", to, "gw", false, false, at, err))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (copy_number(from, to, at, numbers[i], UINT32_MAX, err))
			return -1;
	return 0;
}

typedef int read_entry(const json_t *from, json_t *to, struct place at, struct err *err);

/* Append the entries of a list, read, to another. Absent and null: nothing. */
static int read_list(const json_t *list, json_t *ret, const char *name, read_entry *read,
		     struct err *err)
{
	size_t i;
	json_t *item;

	if (list && !json_is_null(list) && !json_is_array(list))
		return err_set(err, ERR_INVALID, "BadResult", "result: %s must be a list", name);
	if (json_array_size(list) + json_array_size(ret) > RESULT_LIST_MAX)
		return err_set(err, ERR_INVALID, "BadResult", "result: %s has more than %d entries",
			       name, RESULT_LIST_MAX);
	json_array_foreach (list, i, item) {
		json_auto_t *entry = json_object();

		if (!json_is_object(item))
			return err_set(err, ERR_INVALID, "BadResult",
				       "result: %s[%zu] must be an object", name, i);
		if (read(item, entry, (struct place){name, i}, err))
			return -1;
		json_array_append(ret, entry);
	}
	return 0;
}

/* 0.1.0 and 0.2.0 have "ip4" and "ip6" in place of lists. */
static bool is_of_two_addresses(const char *version)
{
	return !result_version_is_at_least(version, "0.3.0");
}

/* "ip4" or "ip6" of 0.2.0: one address with its gateway and routes. */
static int read_old_ip(const json_t *value, const char *key, json_t *result, struct err *err)
{
	const json_t *old = json_at(value, key);
	json_auto_t *entry = json_object();
	struct place at = {key, 0};

	if (!old)
		return 0;
	if (copy_address(old, "ip", entry, "address", true, true, at, err) ||
	    copy_address(old, "gateway", entry, "gateway", false, false, at, err))
		return -1;
	json_array_append(json_at(result, "ips"), entry);
	return read_list(json_at(old, "routes"), json_at(result, "routes"), "routes", read_route,
			 err);
}

static int read_dns(const json_t *value, json_t *ret, struct err *err)
{
	static const char *const lists[] = {"nameservers", "search", "options"};
	const json_t *dns = json_at(value, "dns"), *domain = json_at(dns, "domain");

	if (dns && !json_is_object(dns))
		return err_set(err, ERR_INVALID, "BadResult", "result: dns must be an object");
	if (domain && !json_is_string(domain))
		return err_set(err, ERR_INVALID, "BadResult",
			       "result: dns.domain must be a string");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (copy_strings(dns, ret, lists[i], err))
			return -1;
	if (!str_empty(json_string_value(domain)))
		json_put_str(ret, "domain", json_string_value(domain));
	return 0;
}

json_t *result_new(void)
{
	json_t *result = json_object();

	json_put(result, "interfaces", json_array());
	json_put(result, "ips", json_array());
	json_put(result, "routes", json_array());
	json_put(result, "dns", json_object());
	return result;
}

int result_read(const json_t *value, const char *version, json_t **ret, struct err *err)
{
	json_auto_t *result = result_new();
	const char *own = json_str_at(value, "cniVersion");
	bool old;

	assert(ret);
	if (value && !json_is_null(value) && !json_is_object(value))
		return err_set(err, ERR_INVALID, "BadResult",
			       "a result must be an object, this is %s", json_type_words(value));
	version = str_empty(own) ? version : own;
	if (str_empty(version))
		version = "0.1.0";
	if (!result_version_is_known(version))
		return err_set(
			err, ERR_INVALID, "BadCniVersion",
			"a result of cniVersion \"%.32s\" cannot be read: use 0.1.0 to 1.1.0",
			version);
	old = is_of_two_addresses(version);
	if (old &&
	    (read_old_ip(value, "ip4", result, err) || read_old_ip(value, "ip6", result, err)))
		return -1;
	if (!old &&
	    (read_list(json_at(value, "interfaces"), json_at(result, "interfaces"), "interfaces",
		       read_interface, err) ||
	     read_list(json_at(value, "ips"), json_at(result, "ips"), "ips", read_ip, err) ||
	     read_list(json_at(value, "routes"), json_at(result, "routes"), "routes", read_route,
		       err)))
		return -1;
	if (read_dns(value, json_at(result, "dns"), err))
		return -1;
	*ret = take_ptr(result);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void drop_from_each(json_t *list, const char *const *keys, size_t n)
{
	size_t i;
	json_t *item;

	json_array_foreach (list, i, item)
		for (size_t k = 0; k < n; k++)
			json_object_del(item, keys[k]);
}

static bool is_v6(const json_t *entry, const char *key)
{
	return strchr(json_str_or(json_at(entry, key), ""), ':') != NULL;
}

/* The first address of a family as the member of 0.2.0, with the family's routes; NULL: none. */
static json_t *old_ip_new(const json_t *result, bool v6)
{
	json_t *old = NULL, *routes = json_array(), *entry;
	size_t i;

	json_array_foreach (json_at(result, "ips"), i, entry)
		if (!old && is_v6(entry, "address") == v6) {
			old = json_object();
			json_put_str(old, "ip", json_str_at(entry, "address"));
			json_put_str(old, "gateway", json_str_at(entry, "gateway"));
		}
	json_array_foreach (json_at(result, "routes"), i, entry)
		if (is_v6(entry, "dst") == v6) {
			json_t *route = json_object();

			json_put_str(route, "dst", json_str_at(entry, "dst"));
			json_put_str(route, "gw", json_str_at(entry, "gw"));
			json_array_append_new(routes, route);
		}
	if (old && json_array_size(routes))
		json_put(old, "routes", json_incref(routes));
	json_decref(routes);
	return old;
}

static json_t *write_two_addresses(const json_t *result, const char *version)
{
	json_t *out = json_object();

	json_put_str(out, "cniVersion", version);
	json_put(out, "ip4", old_ip_new(result, false));
	json_put(out, "ip6", old_ip_new(result, true));
	json_put(out, "dns", json_deep_copy(json_at(result, "dns")));
	return out;
}

json_t *result_write(const json_t *result, const char *version)
{
	static const char *const interface_extras[] = {"mtu", "socketPath", "pciID"};
	static const char *const route_extras[] = {"mtu", "advmss", "priority", "table", "scope"};
	static const char *const lists[] = {"interfaces", "ips", "routes"};
	json_t *out, *ip;
	size_t i;

	assert(result_version_is_known(version));
	if (is_of_two_addresses(version))
		return write_two_addresses(result, version);
	out = json_deep_copy(result);
	if (!result_version_is_at_least(version, "1.0.0")) {
		drop_from_each(json_at(out, "interfaces"), interface_extras,
			       ARRAY_LEN(interface_extras));
		drop_from_each(json_at(out, "routes"), route_extras, ARRAY_LEN(route_extras));
		json_array_foreach (json_at(out, "ips"), i, ip)
			json_put_str(ip, "version", is_v6(ip, "address") ? "6" : "4");
	}
	for (i = 0; i < ARRAY_LEN(lists); i++)
		if (json_array_size(json_at(out, lists[i])) == 0)
			json_object_del(out, lists[i]);
	json_put_str(out, "cniVersion", version);
	return out;
}

void result_add_interface(json_t *result, const char *name, const char *mac, const char *sandbox,
			  int64_t mtu, const char *pci_id)
{
	json_t *entry = json_object();

	assert(json_is_array(json_at(result, "interfaces")));
	json_put_str(entry, "name", name);
	json_put_str(entry, "mac", mac);
	json_put_str(entry, "sandbox", sandbox);
	if (mtu > 0)
		json_put_int(entry, "mtu", mtu);
	json_put_str(entry, "pciID", pci_id);
	json_array_append_new(json_at(result, "interfaces"), entry);
}

void result_add_ip(json_t *result, const char *address, const char *gateway, int interface)
{
	json_t *entry = json_object();

	assert(interface >= -1 && interface < (int)json_array_size(json_at(result, "interfaces")));
	json_put_str(entry, "address", address);
	json_put_str(entry, "gateway", gateway);
	if (interface >= 0)
		json_put_int(entry, "interface", interface);
	json_array_append_new(json_at(result, "ips"), entry);
}
