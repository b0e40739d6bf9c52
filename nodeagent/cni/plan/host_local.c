// SPDX-License-Identifier: Apache-2.0
/* Ranges of addresses: read, checked, walked through. */
#include "nodeagent/cni/plan/host_local.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/cni_args.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/ipam_wish.h"

#define DATA_DIR "/var/lib/cni/networks"

void host_local_config_done(struct host_local_config *config)
{
	assert(config->n_sets <= HOST_LOCAL_MAX && config->n_wanted <= HOST_LOCAL_MAX);
	json_decref(config->folded);
	mem_free(config->sets);
	*config = (struct host_local_config){0};
}

static int bad_field(struct err *err, const char *key, const char *must)
{
	return err_set(err, ERR_INVALID, "BadField", "host-local: %s must be %s", key, must);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static struct addr next_of(const struct addr *address)
{
	struct addr next = *address;

	for (unsigned int i = addr_len(address); i-- > 0 && ++next.octets[i] == 0;)
		;
	return next;
}

/* The last one that a host may have: IPv4 keeps the broadcast address. */
static struct addr last_of(const struct addr *subnet)
{
	struct addr last = addr_single(subnet);
	unsigned int bits = addr_len(subnet) * 8;

	for (unsigned int bit = subnet->prefix; bit < bits; bit++)
		last.octets[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	if (last.family == 4)
		last.octets[3]--;
	return last;
}

static bool is_below(const struct addr *a, const struct addr *b)
{
	return memcmp(a->octets, b->octets, sizeof(a->octets)) < 0;
}

static bool range_has(const struct host_local_range *range, const struct addr *address)
{
	return address->family == range->subnet.family && addr_contains(&range->subnet, address) &&
	       !(range->start.family && is_below(address, &range->start)) &&
	       !(range->end.family && is_below(&range->end, address));
}

static bool ranges_overlap(const struct host_local_range *a, const struct host_local_range *b)
{
	return range_has(a, &b->start) || range_has(a, &b->end) || range_has(b, &a->start) ||
	       range_has(b, &a->end);
}

/* ---- configuration --------------------------------------------------------------------------- */

static int read_bound(const json_t *object, const char *key, const struct addr *subnet,
		      struct addr *ret, struct err *err)
{
	const char *text = json_str_at(object, key);

	if (str_empty(text))
		return 0;
	if (!addr_parse(text, ret) || ret->family != subnet->family)
		return err_set(err, ERR_INVALID, "BadField",
			       "host-local: %s \"%.64s\" must be an address of the family of "
			       "subnet",
			       key, text);
	return 0;
}

static int read_subnet(const json_t *object, struct addr *ret, struct err *err)
{
	const char *text = json_str_at(object, "subnet");
	struct addr network;

	if (!addr_parse_prefix(text, ret))
		return bad_field(err, "subnet",
				 "a network with its prefix length: \"10.1.2.0/24\"");
	if (ret->prefix + 2u > addr_len(ret) * 8)
		return err_set(err, ERR_INVALID, "BadField",
			       "host-local: subnet %.64s must have room for two hosts", text);
	network = addr_network(ret);
	if (!addr_same(&network, ret)) {
		char right[ADDR_TEXT_SIZE];

		addr_print_prefix(&network, right);
		return err_set(err, ERR_INVALID, "BadField",
			       "host-local: subnet %.64s has host bits, the network is %s", text,
			       right);
	}
	return 0;
}

static int read_range(const json_t *object, struct host_local_range *ret, struct err *err)
{
	json_auto_t *folded = NULL;

	if (config_keys_read(object, "host-local.range", &folded, err))
		return -1;
	if (read_subnet(folded, &ret->subnet, err) ||
	    read_bound(folded, "gateway", &ret->subnet, &ret->gateway, err) ||
	    read_bound(folded, "rangeStart", &ret->subnet, &ret->start, err))
		return -1;
	if (ret->start.family && !range_has(ret, &ret->start))
		return bad_field(err, "rangeStart", "an address of subnet");
	if (!ret->start.family) {
		struct addr network = addr_single(&ret->subnet);

		ret->start = next_of(&network);
	}
	if (read_bound(folded, "rangeEnd", &ret->subnet, &ret->end, err))
		return -1;
	if (!ret->end.family)
		ret->end = last_of(&ret->subnet);
	if (!addr_contains(&ret->subnet, &ret->end) || is_below(&ret->end, &ret->start))
		return bad_field(err, "rangeEnd", "an address of subnet, not before rangeStart");
	if (!ret->gateway.family) {
		struct addr network = addr_single(&ret->subnet);

		ret->gateway = next_of(&network);
	}
	return 0;
}

static int read_set(const json_t *list, struct host_local_set *ret, struct err *err)
{
	size_t i, k;
	json_t *item;

	if (json_array_size(list) == 0 || json_array_size(list) > HOST_LOCAL_MAX)
		return err_set(err, ERR_INVALID, "BadField",
			       "host-local: ranges must be lists of 1 to %d ranges each",
			       HOST_LOCAL_MAX);
	json_array_foreach (list, i, item) {
		struct host_local_range *range = &ret->ranges[i];

		if (read_range(item, range, err))
			return -1;
		for (k = 0; k < i; k++) {
			if (ret->ranges[k].subnet.family != range->subnet.family)
				return bad_field(err, "ranges", "of one IP family in each list");
			if (ranges_overlap(&ret->ranges[k], range))
				return bad_field(err, "ranges", "without overlaps");
		}
		ret->n = i + 1;
	}
	return 0;
}

static int add_sets(const json_t *lists, struct host_local_config *ret, struct err *err)
{
	size_t i;
	json_t *list;

	if (lists && !json_is_array(lists))
		return bad_field(err, "ranges", "a list of lists of ranges");
	json_array_foreach (lists, i, list) {
		if (ret->n_sets == HOST_LOCAL_MAX)
			return err_set(err, ERR_INVALID, "BadField",
				       "host-local: ranges must be at most %d lists",
				       HOST_LOCAL_MAX);
		if (read_set(list, &ret->sets[ret->n_sets], err))
			return -1;
		ret->n_sets++;
	}
	return 0;
}

static bool sets_overlap(const struct host_local_set *a, const struct host_local_set *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (ranges_overlap(&a->ranges[i], &b->ranges[k]))
				return true;
	return false;
}

/* The runtime's ranges come first, then subnet, then ranges. */
static int read_sets(const json_t *config, const json_t *ipam, struct host_local_config *ret,
		     struct err *err)
{
	size_t n[2] = {0};

	ret->sets = mem_calloc(HOST_LOCAL_MAX, sizeof(*ret->sets));
	if (add_sets(json_at(config, "runtimeConfig", "ipRanges"), ret, err))
		return -1;
	if (json_at(ipam, "subnet")) {
		json_auto_t *alone = json_pack("[[O]]", ipam);

		if (add_sets(alone, ret, err))
			return -1;
	}
	if (add_sets(json_at(ipam, "ranges"), ret, err))
		return -1;
	if (ret->n_sets == 0)
		return bad_field(err, "ranges",
				 "lists of ranges, or subnet a network: there is no address");
	for (size_t i = 0; i < ret->n_sets; i++) {
		n[ret->sets[i].ranges[0].subnet.family == 6]++;
		for (size_t k = 0; k < i; k++)
			if (sets_overlap(&ret->sets[i], &ret->sets[k]))
				return bad_field(err, "ranges", "without overlaps");
	}
	return ipam_wish_check_version("host-local", config, n[0], n[1], err);
}

static int add_wanted(const char *text, struct host_local_config *ret, struct err *err)
{
	struct addr wanted;

	if (ret->n_wanted == HOST_LOCAL_MAX)
		return err_set(err, ERR_INVALID, "BadField",
			       "host-local: ips must be at most %d addresses", HOST_LOCAL_MAX);
	if (!addr_parse(text, &wanted) && !addr_parse_prefix(text, &wanted))
		return err_set(err, ERR_INVALID, "BadField",
			       "host-local: ips \"%.64s\" must be an address", text);
	for (size_t i = 0; i < ret->n_wanted; i++)
		if (addr_same(&ret->wanted[i], &wanted))
			return 0;
	ret->wanted[ret->n_wanted++] = addr_single(&wanted);
	return 0;
}

/* IP of CNI_ARGS, which has one, and the lists. */
static int read_wanted(const json_t *config, const char *args, struct host_local_config *ret,
		       struct err *err)
{
	auto_free char *of_args = cni_args_value(args, "IP");
	const json_t *lists[2], *item;
	size_t i;

	if (ipam_wish_lists("host-local", config, &lists[0], &lists[1], err) ||
	    (!str_empty(of_args) && add_wanted(of_args, ret, err)))
		return -1;
	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		json_array_foreach ((json_t *)lists[k], i, item)
			if (add_wanted(json_string_value(item), ret, err))
				return -1;
	return 0;
}

/* It becomes a folder of data_dir. */
static bool is_folder_name(const char *name)
{
	return !str_empty(name) && !strchr(name, '/') && !str_eq(name, ".") && !str_eq(name, "..");
}

int host_local_config_read(const json_t *config, const char *args, bool only_place,
			   struct host_local_config *ret, struct err *err)
{
	auto_host_local_config struct host_local_config read = {0};
	const json_t *ipam;
	const char *dir;
	json_t *folded;

	if (!json_is_object(json_at(config, "ipam")))
		return bad_field(err, "ipam", "an object");
	if (config_keys_read(json_at(config, "ipam"), "host-local.ipam", &folded, err))
		return -1;
	read.folded = json_copy((json_t *)config);
	json_put(read.folded, "ipam", folded);
	ipam = folded;
	read.network = json_str_at(config, "name");
	if (!is_folder_name(read.network))
		return bad_field(err, "name", "the network's, without a slash");
	dir = json_str_at(ipam, "dataDir");
	read.data_dir = str_empty(dir) ? DATA_DIR : dir;
	if (!only_place) {
		if (!str_empty(json_str_at(ipam, "resolvConf")))
			read.resolv_conf = json_str_at(ipam, "resolvConf");
		read.routes = json_at(ipam, "routes");
		if (read_sets(config, ipam, &read, err) || read_wanted(config, args, &read, err))
			return -1;
	}
	*ret = read;
	read = (struct host_local_config){0};
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

const struct host_local_range *host_local_range_of(const struct host_local_set *set,
						   const struct addr *address)
{
	assert(set->n <= HOST_LOCAL_MAX);
	for (size_t i = 0; i < set->n; i++)
		if (range_has(&set->ranges[i], address))
			return &set->ranges[i];
	return NULL;
}

void host_local_walk_init(struct host_local_walk *walk, const struct host_local_set *set,
			  const struct addr *last)
{
	const struct host_local_range *range = host_local_range_of(set, last);

	assert(set->n > 0);
	*walk = (struct host_local_walk){.set = set};
	if (!range)
		return;
	walk->range = (size_t)(range - set->ranges);
	walk->at = addr_single(last);
}

/* One step on; false: that was all. */
static bool walk_advance(struct host_local_walk *walk)
{
	const struct host_local_range *range = &walk->set->ranges[walk->range];

	if (!walk->at.family) {
		walk->at = walk->begun = range->start;
		return true;
	}
	if (addr_same(&walk->at, &range->end)) {
		walk->range = (walk->range + 1) % walk->set->n;
		walk->at = walk->set->ranges[walk->range].start;
	} else {
		walk->at = next_of(&walk->at);
	}
	if (!walk->begun.family)
		walk->begun = walk->at;
	else if (addr_same(&walk->at, &walk->begun))
		return false;
	return true;
}

const struct host_local_range *host_local_walk_next(struct host_local_walk *walk, struct addr *ret)
{
	assert(walk->range < walk->set->n);
	while (walk_advance(walk)) {
		const struct host_local_range *range = &walk->set->ranges[walk->range];

		if (addr_same(&walk->at, &range->gateway))
			continue;
		*ret = walk->at;
		return range;
	}
	return NULL;
}

/* ---- DNS ------------------------------------------------------------------------------------- */

static void add_fields(json_t *dns, const char *key, char *fields, bool all)
{
	json_t *list = json_at(dns, key);
	char *field;

	if (!list) {
		list = json_array();
		json_put(dns, key, list);
	}
	while ((field = strsep(&fields, " \t\r"))) {
		if (!*field)
			continue;
		json_array_append_new(list, json_fmt("%s", field));
		if (!all)
			return;
	}
}

json_t *host_local_dns(const char *text)
{
	auto_free char *copy = str_dup(text);
	char *rest = copy, *line;
	json_t *dns = json_object();

	while ((line = strsep(&rest, "\n"))) {
		char *key;

		line += strspn(line, " \t\r");
		if (*line == '#' || *line == ';')
			continue;
		key = strsep(&line, " \t\r");
		if (!line || line[strspn(line, " \t\r")] == '\0')
			continue;
		line += strspn(line, " \t\r");
		if (str_eq(key, "nameserver"))
			add_fields(dns, "nameservers", line, false);
		else if (str_eq(key, "search") || str_eq(key, "options"))
			add_fields(dns, key, line, true);
		else if (str_eq(key, "domain")) {
			char *domain = strsep(&line, " \t\r");

			json_put(dns, "domain", json_fmt("%s", domain));
		}
	}
	return dns;
}
