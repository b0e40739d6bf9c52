// SPDX-License-Identifier: Apache-2.0
/*
 * Plays recorded calls of the coordinator plugin against attach_run() in real network namespaces,
 * made anew for each case, and compares the kernel's whole state.
 *
 *	coordinator-replay [--time] [ID...]
 *
 * tests/conformance/coordinator.json has the cases; coordinator-differences.txt those in which we
 * differ on purpose, with the very lines that differ. Prints a line per case as tests/lib.sh does;
 * exit 1 when one differs otherwise.
 *
 * Needs root, ip(8), and veth and macvlan in the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "nodeagent/cni/execute/netns_detect.h"
#include "nodeagent/cni/plan/attach.h"
#include "tests/support/conformance.h"

#define DIFFERENCES "tests/conformance/coordinator-differences.txt"

static const char *const namespaces[] = {"host", "pod", "fabric"};

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "coordinator-replay: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- namespaces ------------------------------------------------------------------------------ */

static char *run_text(const char *command)
{
	FILE *pipe = popen(command, "r");
	struct strbuf text = {0};
	char bytes[4096];
	size_t n;

	if (!pipe)
		die("popen");
	while ((n = fread(bytes, 1, sizeof(bytes), pipe)) > 0)
		strbuf_add(&text, bytes, n);
	if (pclose(pipe) != 0) {
		fprintf(stderr, "coordinator-replay: failed: %s\n", command);
		exit(2);
	}
	return strbuf_take(&text);
}

static void run_in(const char *ns, const char *command)
{
	auto_free char *line = NULL;

	if (str_starts(command, "ip "))
		line = str_printf("ip -n %s %s", ns, command + 3);
	else
		line = str_printf("ip netns exec %s %s", ns, command);
	free(run_text(line));
}

static struct netns *enter(const char *ns)
{
	auto_free char *path = str_printf("/run/netns/%s", ns);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct netns *opened = fd < 0 ? NULL : netns_open(fd, NULL);

	if (!opened)
		die(path);
	return opened;
}

/*
 * A mount namespace with our own /run/netns, so that cases may run beside each other and leave
 * nothing.
 */
static void make_namespaces(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("mount namespace");
	(void)mkdir("/run/netns", 0755);
	if (mount("tmpfs", "/run/netns", "tmpfs", 0, NULL) < 0)
		die("mount /run/netns");
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
		auto_free char *path = str_printf("/run/netns/%s", namespaces[i]);
		auto_close int fd = open(path, O_CREAT | O_WRONLY, 0644);
		auto_netns struct netns *ns = NULL;

		if (fd < 0 || unshare(CLONE_NEWNET) < 0 ||
		    mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL) < 0)
			die(path);
		run_in(namespaces[i], "ip link set lo up");
		ns = enter(namespaces[i]);
		if (netns_write_sysctl(ns, "net/ipv6/conf/all/accept_dad", "0", NULL) ||
		    netns_write_sysctl(ns, "net/ipv6/conf/default/accept_dad", "0", NULL))
			die("accept_dad");
	}
}

/* Does ip(8) take it from a batch? Options before the object it does not. */
static bool is_for_batch(const json_t *pair, const char *ns)
{
	const char *command = json_string_value(json_array_get(pair, 1));

	return str_eq(json_string_value(json_array_get(pair, 0)), ns) &&
	       str_starts(command, "ip ") && !str_starts(command, "ip -");
}

/* Commands that follow each other in one namespace go to one process. */
static void run_all(const json_t *commands)
{
	size_t i = 0, n = json_array_size(commands);

	while (i < n) {
		const json_t *pair = json_array_get(commands, i);
		const char *ns = json_string_value(json_array_get(pair, 0));
		auto_strbuf struct strbuf batch = {0};

		if (!is_for_batch(pair, ns)) {
			run_in(ns, json_string_value(json_array_get(pair, 1)));
			i++;
			continue;
		}
		strbuf_addf(&batch, "ip -n %s -batch - <<'END'\n", ns);
		for (; i < n && is_for_batch(pair, ns); pair = json_array_get(commands, ++i))
			strbuf_addf(&batch, "%s\n", json_string_value(json_array_get(pair, 1)) + 3);
		strbuf_adds(&batch, "END\n");
		free(run_text(batch.data));
	}
}

/* ---- the state, as recorded ------------------------------------------------------------------ */

static json_t *ask_ip(const char *ns, const char *what)
{
	auto_free char *line = str_printf("ip -n %s -j -d -N %s", ns, what);
	auto_free char *text = run_text(line);
	json_t *value = str_empty(text) ? json_array() : json_parse(text, strlen(text), NULL);

	if (!value)
		die(line);
	return value;
}

static const char *named(const char *const names[][2], size_t n, const char *number)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i][0], number))
			return names[i][1];
	return number;
}

static const char *const scopes[][2] = {{"0", "global"}, {"253", "link"}, {"254", "host"}};
static const char *const protocols[][2] = {{"0", "unspec"}, {"2", "kernel"}, {"3", "boot"}};
static const char *const tables[][2] = {{"253", "default"}, {"254", "main"}, {"255", "local"}};
static const char *const types[][2] = {{"1", "unicast"},
				       {"2", "local"},
				       {"3", "broadcast"},
				       {"5", "multicast"},
				       {"6", "blackhole"}};

#define NAMED(table, value) named(table, ARRAY_LEN(table), value)

static const char *text_at(const json_t *object, const char *key, const char *otherwise)
{
	return json_str_or(json_at(object, key), otherwise);
}

static int by_text(const void *a, const void *b)
{
	const json_t *const *left = a, *const *right = b;
	auto_free char *x = json_text(*left), *y = json_text(*right);

	return strcmp(x, y);
}

static json_t *sorted(json_t *list)
{
	size_t n = json_array_size(list), i;
	json_t **items = calloc(n + 1, sizeof(*items)), *out = json_array();

	for (i = 0; i < n; i++)
		items[i] = json_array_get(list, i);
	qsort(items, n, sizeof(*items), by_text);
	for (i = 0; i < n; i++)
		json_array_append(out, items[i]);
	free(items);
	json_decref(list);
	return out;
}

static json_t *links_of(const char *ns)
{
	json_auto_t *all = ask_ip(ns, "link show");
	json_t *links = json_array(), *item, *flag;
	size_t i, k;

	json_array_foreach (all, i, item) {
		json_t *link = json_object(), *flags = json_array();
		const char *kind = json_str_at(item, "linkinfo", "info_kind");

		json_put_str(link, "name", text_at(item, "ifname", ""));
		json_put_str(link, "kind", kind ? kind : "loopback");
		if (kind)
			json_put_str(link, "mac", text_at(item, "address", ""));
		json_put(link, "mtu", json_deep_copy(json_at(item, "mtu")));
		json_put_int(link, "txqlen", json_integer_value(json_at(item, "txqlen")));
		json_put_bool(link, "up", json_list_has(json_at(item, "flags"), "UP"));
		json_array_foreach (json_at(item, "flags"), k, flag)
			if (str_eq(json_string_value(flag), "BROADCAST") ||
			    str_eq(json_string_value(flag), "MULTICAST") ||
			    str_eq(json_string_value(flag), "LOOPBACK") ||
			    str_eq(json_string_value(flag), "NOARP"))
				json_array_append(flags, flag);
		json_put(link, "flags", sorted(flags));
		json_array_append_new(links, link);
	}
	return sorted(links);
}

static json_t *addresses_of(const char *ns)
{
	json_auto_t *all = ask_ip(ns, "addr show");
	json_t *addresses = json_object(), *item, *info;
	size_t i, k;

	json_array_foreach (all, i, item) {
		json_t *list = json_array();

		json_array_foreach (json_at(item, "addr_info"), k, info) {
			json_t *address = json_object();

			json_put(address, "address",
				 json_fmt("%s/%lld", text_at(info, "local", ""),
					  (long long)json_integer_value(
						  json_at(info, "prefixlen"))));
			json_put_str(address, "scope", NAMED(scopes, text_at(info, "scope", "0")));
			if (str_starts(text_at(info, "local", ""), "fe80:"))
				json_decref(address);
			else
				json_array_append_new(list, address);
		}
		if (json_array_size(list))
			json_put(addresses, text_at(item, "ifname", ""), sorted(list));
		else
			json_decref(list);
	}
	return addresses;
}

/* What the kernel makes by itself for each link. */
static bool is_link_local(const json_t *route)
{
	return str_eq(text_at(route, "dst", ""), "fe80::/64") ||
	       (str_starts(text_at(route, "dst", ""), "fe80:") &&
		str_eq(text_at(route, "table", ""), "255")) ||
	       str_starts(text_at(route, "dst", ""), "ff00::") ||
	       str_eq(text_at(route, "type", ""), "5");
}

static json_t *route_of(const json_t *item, int family)
{
	json_t *route = json_object(), *hop;
	size_t i;

	json_put_int(route, "family", family);
	json_put_str(route, "dst", text_at(item, "dst", ""));
	if (json_at(item, "dev") && !json_at(item, "nexthops") &&
	    !str_eq(text_at(item, "type", "1"), "6"))
		json_put_str(route, "dev", text_at(item, "dev", ""));
	json_put_str(route, "gateway", json_str_at(item, "gateway"));
	json_put_str(route, "prefsrc", json_str_at(item, "prefsrc"));
	if (json_at(item, "metric"))
		json_put(route, "metric", json_deep_copy(json_at(item, "metric")));
	json_put_str(route, "protocol", NAMED(protocols, text_at(item, "protocol", "0")));
	json_put_str(route, "scope", NAMED(scopes, text_at(item, "scope", "0")));
	json_put_str(route, "table", NAMED(tables, text_at(item, "table", "254")));
	json_put_str(route, "type", NAMED(types, text_at(item, "type", "1")));
	if (json_at(item, "nexthops")) {
		json_t *hops = json_array();

		json_array_foreach (json_at(item, "nexthops"), i, hop) {
			json_t *one = json_object();

			json_put_str(one, "dev", json_str_at(hop, "dev"));
			json_put_str(one, "gateway", json_str_at(hop, "gateway"));
			json_array_append_new(hops, one);
		}
		json_put(route, "nexthops", sorted(hops));
	}
	return route;
}

static json_t *routes_of(const char *ns)
{
	json_t *routes = json_array(), *item;
	size_t i;

	for (int family = 4; family <= 6; family += 2) {
		auto_free char *what = str_printf("-%d route show table all", family);
		json_auto_t *all = ask_ip(ns, what);

		json_array_foreach (all, i, item)
			if (!is_link_local(item))
				json_array_append_new(routes, route_of(item, family));
	}
	return sorted(routes);
}

static void put_prefixed(json_t *rule, const char *key, const json_t *item, const char *from,
			 const char *len)
{
	const char *address = json_str_at(item, from);

	if (!address || str_eq(address, "all"))
		return;
	if (json_at(item, len) && json_integer_value(json_at(item, len)) != 32 &&
	    json_integer_value(json_at(item, len)) != 128)
		json_put(rule, key,
			 json_fmt("%s/%lld", address,
				  (long long)json_integer_value(json_at(item, len))));
	else
		json_put_str(rule, key, address);
}

static json_t *rules_of(const char *ns)
{
	json_t *rules = json_array(), *item;
	size_t i;

	for (int family = 4; family <= 6; family += 2) {
		auto_free char *what = str_printf("-%d rule show", family);
		json_auto_t *all = ask_ip(ns, what);

		json_array_foreach (all, i, item) {
			json_int_t priority = json_integer_value(json_at(item, "priority"));
			json_t *rule;

			if (priority == 0 || priority == 32766 || priority == 32767)
				continue;
			rule = json_object();
			json_put_int(rule, "family", family);
			json_put_int(rule, "priority", priority);
			json_put_str(rule, "table", NAMED(tables, text_at(item, "table", "")));
			json_put_str(rule, "protocol",
				     NAMED(protocols, text_at(item, "protocol", "0")));
			put_prefixed(rule, "from", item, "src", "srclen");
			put_prefixed(rule, "to", item, "dst", "dstlen");
			json_put_str(rule, "fwmark", json_str_at(item, "fwmark"));
			json_array_append_new(rules, rule);
		}
	}
	return sorted(rules);
}

static json_t *neighbours_of(const char *ns)
{
	json_auto_t *all = ask_ip(ns, "neigh show nud permanent");
	json_t *neighbours = json_array(), *item;
	size_t i;

	json_array_foreach (all, i, item) {
		json_t *one = json_object();

		json_put_str(one, "address", text_at(item, "dst", ""));
		json_put_str(one, "dev", text_at(item, "dev", ""));
		json_put_str(one, "mac", json_str_at(item, "lladdr"));
		json_array_append_new(neighbours, one);
	}
	return sorted(neighbours);
}

static json_t *sysctls_of(const char *ns)
{
	static const char *const names[] = {
		"net/ipv4/conf/all/rp_filter",
		"net/ipv4/ip_forward",
		"net/ipv6/conf/all/disable_ipv6",
		"net/ipv6/conf/all/forwarding",
	};
	auto_netns struct netns *inside = enter(ns);
	json_t *sysctls = json_object();

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char text[32];

		if (netns_read_sysctl(inside, names[i], text, sizeof(text), NULL))
			die(names[i]);
		json_put_str(sysctls, names[i], text);
	}
	return sysctls;
}

static json_t *state_of(const char *ns)
{
	json_t *state = json_object();

	json_put(state, "links", links_of(ns));
	json_put(state, "addresses", addresses_of(ns));
	json_put(state, "routes", routes_of(ns));
	json_put(state, "rules", rules_of(ns));
	json_put(state, "neighbours", neighbours_of(ns));
	json_put(state, "sysctls", sysctls_of(ns));
	return state;
}

/* MACs of links that neither the recorder nor a plugin's configuration gave one. */
static void collect_macs(const json_t *state, const char *ns, json_t *names)
{
	static const char *const given[] = {"eth", "net", "ens", "cali", "lo"};
	size_t i, k;
	json_t *link;

	json_array_foreach (json_at(state, ns, "links"), i, link) {
		const char *name = text_at(link, "name", "");

		for (k = 0; k < ARRAY_LEN(given) && !str_starts(name, given[k]); k++)
			;
		if (k == ARRAY_LEN(given))
			json_put(names, text_at(link, "mac", ""), json_fmt("<%s/%s>", ns, name));
	}
}

static void replace_macs(json_t *value, const json_t *names)
{
	const char *key;
	json_t *item;
	void *next;
	size_t i;

	if (json_is_array(value))
		json_array_foreach (value, i, item)
			replace_macs(item, names);
	if (!json_is_object(value))
		return;
	json_object_foreach_safe(value, next, key, item)
	{
		const char *name =
			str_eq(key, "mac") ? json_str_at(names, json_str_or(item, "")) : NULL;

		if (name)
			json_put_str(value, "mac", name);
		else
			replace_macs(item, names);
	}
}

/* Both namespaces, with the MACs that are ours by chance under their names. */
static json_t *whole_state(void)
{
	json_t *state = json_object();
	json_auto_t *names = json_object();

	json_put(state, "host", state_of("host"));
	json_put(state, "pod", state_of("pod"));
	collect_macs(state, "pod", names);
	collect_macs(state, "host", names);
	replace_macs(state, names);
	return state;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool list_has(const json_t *list, const json_t *value)
{
	size_t i;
	json_t *item;

	json_array_foreach (list, i, item)
		if (json_same(item, value))
			return true;
	return false;
}

static void say(struct strbuf *out, char sign, const char *where, const json_t *value)
{
	auto_free char *text = value ? json_text(value) : str_dup("nothing");

	strbuf_addf(out, "\t%c %s %s\n", sign, where, text);
}

static void compare(const json_t *want, const json_t *got, const char *where, struct strbuf *out)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_array(want) && json_is_array(got)) {
		json_array_foreach (want, i, item)
			if (!list_has(got, item))
				say(out, '-', where, item);
		json_array_foreach (got, i, item)
			if (!list_has(want, item))
				say(out, '+', where, item);
		if (json_array_size(want) != json_array_size(got) && out->len == 0)
			strbuf_addf(out, "\t? %s: %zu entries, not %zu\n", where,
				    json_array_size(got), json_array_size(want));
		return;
	}
	if (!json_is_object(want) || !json_is_object(got)) {
		if (!json_same(want, got)) {
			say(out, '-', where, want);
			say(out, '+', where, got);
		}
		return;
	}
	json_each (want, key, item) {
		auto_free char *inner = str_printf("%s/%s", where, key);

		compare(item, json_at(got, key), inner, out);
	}
	json_each (got, key, item) {
		auto_free char *inner = str_printf("%s/%s", where, key);

		if (!json_at(want, key))
			say(out, '+', inner, item);
	}
}

/* Order of recorded lists is the recorder's. */
static json_t *canonical(const json_t *recorded)
{
	json_t *state = json_deep_copy(recorded), *inner, *list;
	const char *ns, *key;

	json_each (state, ns, inner) {
		json_object_del(inner, "mangle"); /* ours are in nf_tables' own table */
		json_each (inner, key, list)
			if (json_is_array(list)) {
				size_t i;
				json_t *item;

				json_array_foreach (list, i, item)
					if (json_at(item, "nexthops"))
						json_put(item, "nexthops",
							 sorted(json_deep_copy(
								 json_at(item, "nexthops"))));
				json_put(inner, key, sorted(json_deep_copy(list)));
			}
	}
	return state;
}

/* ---- calling --------------------------------------------------------------------------------- */

static json_t *kept; /* what the last save() left */

static int save(void *context, const json_t *state, struct err *err)
{
	json_decref(kept);
	kept = state ? json_deep_copy(state) : NULL;
	return 0;
}

static void keep(void *context, const json_t *state)
{
	(void)save(context, state, NULL);
}

static int no_ipam(void *context, const char *command, const json_t *config, json_t **ret_result,
		   struct err *err)
{
	return err_set(err, ERR_BUG, "Bug", "the coordinator has no IPAM");
}

static int owns(void *context, const char *pci_address, struct err *err)
{
	return true;
}

static int is_given(void *context, const char *pci_address, struct err *err)
{
	return 1;
}

static void report(void *context, const json_t *conflicts)
{
}

/* The IPAM plugin's part that looks for conflicts and gateways. */
static int call_detect(const json_t *recorded, int netns, struct err *err)
{
	auto_netns struct netns *pod = netns_open(netns, err);
	json_auto_t *all = json_array(), *own = json_array(), *gateways = json_array();
	json_auto_t *announcements = NULL;
	const char *ifname = json_str_at(recorded, "env", "CNI_IFNAME");
	struct detect_request request;
	size_t i;
	json_t *ip;
	int code;

	json_array_foreach (json_at(recorded, "agent", "ips"), i, ip) {
		if (!str_eq(json_str_at(ip, "nic"), ifname))
			continue;
		json_array_append(own, json_at(ip, "address"));
		if (json_is_true(json_at(ip, "enableIPConflictDetection")))
			json_array_append(all, json_at(ip, "address"));
		if (json_is_true(json_at(ip, "enableGatewayDetection")))
			json_array_append(gateways, json_at(ip, "gateway"));
	}
	request = (struct detect_request){
		.ifname = ifname,
		.addresses = all,
		.own = own,
		.gateways = gateways,
	};
	netns_detect(pod, &request, 1);
	*err = request.err;
	code = err->class == ERR_NONE ? 0 : -1;
	announcements = json_pack("[{s:s, s:O}]", "ifname", ifname, "addresses", own);
	if (code == 0 && json_array_size(all))
		netns_announce(pod, announcements);
	return code;
}

static void took(void *context, int64_t kernel_us)
{
}

static int call_plugin(const json_t *recorded, json_t **ret_result, struct err *err)
{
	static const struct attach_services services = {.save = save,
							.keep = keep,
							.ipam = no_ipam,
							.owns = owns,
							.is_given = is_given,
							.report = report,
							.took = took};
	const json_t *env = json_at(recorded, "env");
	const char *command = text_at(env, "CNI_COMMAND", "");
	const char *path = text_at(env, "CNI_NETNS", "");
	auto_close int netns = open(path, O_RDONLY | O_CLOEXEC);
	auto_close int host = open("/run/netns/host", O_RDONLY | O_CLOEXEC);
	auto_close int root = open("/", O_PATH | O_CLOEXEC);
	json_auto_t *saved = kept ? json_deep_copy(kept) : NULL;
	struct attach_call call = {
		.command = str_eq(command, "ADD")   ? ATTACH_ADD
			   : str_eq(command, "DEL") ? ATTACH_DEL
						    : ATTACH_CHECK,
		.type = "coordinator",
		.container_id = text_at(env, "CNI_CONTAINERID", ""),
		.ifname = text_at(env, "CNI_IFNAME", ""),
		.netns_path = path,
		.args = json_str_at(env, "CNI_ARGS"),
		.netns = netns,
		.host_netns = host,
		.root = root,
		.config = json_at(recorded, "config"),
		.settings = json_at(recorded, "agent"),
		.saved = saved,
		.services = &services,
	};

	if (str_eq(json_str_at(recorded, "plugin"), "spiderpool"))
		return call_detect(recorded, netns, err);
	return attach_run(&call, ret_result, err);
}

static int64_t cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* Calls of our own name it. */
static const char *expected_reason(const json_t *call)
{
	return json_str_at(call, "reason");
}

static void play_call(const json_t *recorded, json_t **state, bool timed, struct strbuf *out)
{
	bool wants_failure = json_integer_value(json_at(recorded, "exit")) != 0;
	json_auto_t *after = NULL, *result = NULL, *want = NULL;
	const char *command = text_at(json_at(recorded, "env"), "CNI_COMMAND", "");
	struct err err = {0};
	int64_t wall, cpu;
	int code;

	if (str_eq(command, "VERSION"))
		return; /* the binary's own */
	if (json_array_size(json_at(recorded, "before"))) {
		run_all(json_at(recorded, "before"));
		json_decref(*state);
		*state = whole_state();
	}
	wall = now_us();
	cpu = cpu_us();
	code = call_plugin(recorded, &result, &err);
	if (timed)
		printf("#   %s %s: %lld us, CPU %lld us\n", command,
		       text_at(json_at(recorded, "env"), "CNI_IFNAME", ""),
		       (long long)(now_us() - wall), (long long)(cpu_us() - cpu));
	if (code && expected_reason(recorded) && !str_eq(err.reason, expected_reason(recorded)))
		strbuf_addf(out, "\t+ reason %s: %s\n", err.reason, err.text);
	if ((code != 0) != wants_failure)
		strbuf_addf(out, "\t%c exit %s\n", code ? '+' : '-', code ? err.text : "an error");
	after = whole_state();
	/*
	 * What fails leaves things as they were; but that the interface is up, to look for
	 * conflicts.
	 */
	want = canonical((wants_failure && code && !json_at(recorded, "plugin")) ||
					 str_eq(command, "CHECK")
				 ? *state
				 : json_at(recorded, "after"));
	compare(want, after, "", out);
	if (json_at(recorded, "result") && result)
		compare(json_at(recorded, "result"), result, "result", out);
	json_decref(*state);
	*state = take_ptr(after);
}

/*
 * What the recordings do not show, in the state that one of them begins with: a refused step takes
 * everything back, CHECK finds what is missing, and what cannot be listened on is an error.
 */
static json_t *own_cases(const json_t *cases)
{
	static const struct {
		const char *id, *like, *about, *more;
	} own[] = {
		{"own-refused", "overlay-calico-net1-default", "a refused step takes all back",
		 "[{config: {policyRoutes: [{dst: 172.20.0.0/16, gw: 9.9.9.9}]}, exit: 1, reason: "
		 "StepRefused}]"},
		{"own-refused-underlay", "underlay-eth0", "the same with a pair of links",
		 "[{config: {policyRoutes: [{dst: 172.20.0.0/16, gw: 9.9.9.9}]}, exit: 1, reason: "
		 "StepRefused}]"},
		{"own-check", "overlay-calico-net1-default", "CHECK finds a route that is missing",
		 "[{}, {env: {CNI_COMMAND: CHECK}, config: {cniVersion: 0.4.0}}, "
		 "{env: {CNI_COMMAND: CHECK}, config: {cniVersion: 0.4.0}, exit: 1, reason: "
		 "NotAsAdded, before: [[pod, ip route del default table 101]]}]"},
		{"own-conflict", "v089-conflict", "who has the address is told",
		 "[{reason: AddressInUse}]"},
		{"own-gateway", "v089-gateway-unreachable", "a gateway is missing",
		 "[{reason: GatewayUnreachable}]"},
		{"own-no-nic", "detect-off", "conflicts cannot be looked for without a NIC",
		 "[{env: {CNI_IFNAME: net7}, agent: {ips: [{address: 10.7.0.51/24, nic: net7, "
		 "enableIPConflictDetection: true}]}, exit: 1, reason: DetectFailed}]"},
	};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		json_t *one = json_deep_copy(json_find(cases, "id", own[i].like));
		json_t *call = json_deep_copy(json_array_get(json_at(one, "calls"), 0)), *change;
		json_auto_t *changes = yaml_parse(own[i].more, strlen(own[i].more), NULL);
		json_t *calls = json_array();
		size_t k;

		json_array_foreach (changes, k, change) {
			json_t *another = json_deep_copy(call);

			json_merge_patch(another, change);
			json_array_append_new(calls, another);
		}
		json_put(one, "calls", calls);
		json_put_str(one, "id", own[i].id);
		json_put_str(one, "about", own[i].about);
		json_array_append_new(list, one);
		json_decref(call);
	}
	return list;
}

static void play(const json_t *one, bool timed, struct strbuf *out)
{
	json_auto_t *state = NULL, *want = canonical(json_at(one, "initial"));
	size_t i;
	json_t *recorded;

	make_namespaces();
	run_all(json_at(one, "setup"));
	state = whole_state();
	compare(want, state, "initial", out);
	json_array_foreach (json_at(one, "calls"), i, recorded)
		play_call(recorded, &state, timed, out);
	json_decref(kept);
	kept = NULL;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* "" for a case that is not listed. Returns new. */
static char *listed_difference(const char *differences, const char *id)
{
	auto_free char *head = str_printf("\n%s ", id);
	const char *at = strstr(differences, head);
	struct strbuf text = {0};

	at = at ? strchr(at + 1, '\n') : NULL;
	while (at && at[1] == '\t') {
		const char *end = strchr(at + 1, '\n');

		strbuf_add(&text, at + 1, (size_t)(end - at));
		at = end;
	}
	return strbuf_take(&text);
}

/* A case in a process of its own: namespaces end with it. */
struct running {
	const json_t *one; /* NULL: no case */
	pid_t pid;
	int from;
};

static struct running start(const json_t *one, bool timed)
{
	struct running running = {.one = one};
	struct strbuf out = {0};
	int ends[2];

	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("pipe");
	running.pid = fork();
	if (running.pid < 0)
		die("fork");
	running.from = ends[0];
	if (running.pid > 0) {
		close(ends[1]);
		return running;
	}
	play(one, timed, &out);
	fflush(stdout);
	if (out.len && write(ends[1], out.data, out.len) < 0)
		die("write");
	strbuf_done(&out);
	exit(0);
}

/* What differs. Returns new. */
static char *finish(struct running *running)
{
	struct strbuf text = {0};
	char bytes[4096];
	int status = 0;
	ssize_t n;

	while ((n = read(running->from, bytes, sizeof(bytes))) > 0)
		strbuf_add(&text, bytes, (size_t)n);
	close(running->from);
	if (waitpid(running->pid, &status, 0) < 0 || status != 0)
		strbuf_addf(&text, "\t? the case ended with status %d\n", status);
	running->one = NULL;
	return strbuf_take(&text);
}

/* Compare with what is listed. True: as it should be. */
static bool judge(struct running *running, const char *differences)
{
	const char *id = text_at(running->one, "id", "");
	const char *about = text_at(running->one, "about", "");
	auto_free char *listed = listed_difference(differences, id), *got = finish(running);

	if (str_eq(got, listed)) {
		printf("ok - %s: %s\n", id, about);
		return true;
	}
	printf("not ok - %s: %s\n%s%s%s", id, about, got, str_empty(listed) ? "" : "# listed is:\n",
	       listed);
	return false;
}

static bool is_wanted(const char *id, int argc, char **argv)
{
	if (argc == 0)
		return true;
	for (int i = 0; i < argc; i++)
		if (str_eq(argv[i], id))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	bool timed = argc > 1 && str_eq(argv[1], "--time");
	json_auto_t *cases = NULL;
	auto_strbuf struct strbuf differences = {0};
	struct err err = {0};
	struct running slots[8] = {0};
	size_t i, started = 0;
	bool good = true;
	json_t *one;

	json_init();
	cases = conformance_read("coordinator.json", &err);
	if (cases) {
		json_auto_t *own = own_cases(cases);

		json_array_extend(cases, own);
	}
	strbuf_addc(&differences, '\n');
	if (!cases || fs_read(AT_FDCWD, DIFFERENCES, 1 << 20, &differences, &err)) {
		fprintf(stderr, "coordinator-replay: %s\n", err.text);
		return 2;
	}
	/*
	 * The kernel waits much while it makes and ends namespaces: several at once, unless they
	 * are timed.
	 */
	json_array_foreach (cases, i, one) {
		struct running *slot = &slots[timed ? 0 : started % ARRAY_LEN(slots)];

		if (!is_wanted(text_at(one, "id", ""), argc - 1 - timed, argv + 1 + timed))
			continue;
		if (slot->one)
			good &= judge(slot, differences.data);
		*slot = start(one, timed);
		started++;
	}
	for (i = 0; i < ARRAY_LEN(slots); i++, started++) {
		struct running *slot = &slots[started % ARRAY_LEN(slots)];

		if (slot->one)
			good &= judge(slot, differences.data);
	}
	return !good;
}
