// SPDX-License-Identifier: Apache-2.0
/*
 * A writer for Go's indented JSON, and the rules of which interfaces of a result get an entry.
 * meta_call.c sends the text to the agent, which writes the annotation; nothing here is read again
 * by us.
 */
#include "nodeagent/cni/plan/network_status.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/network_config.h"

/* ---- JSON as Go writes it -------------------------------------------------------------------- */

/* encoding/json escapes what HTML would read, and the two line separators of JavaScript. */
static void add_go_string(struct strbuf *out, const char *text)
{
	strbuf_addc(out, '"');
	for (const char *c = text; *c; c++) {
		unsigned char byte = (unsigned char)*c;

		if (*c == '"' || *c == '\\')
			strbuf_addf(out, "\\%c", *c);
		else if (*c == '\n')
			strbuf_adds(out, "\\n");
		else if (*c == '\r')
			strbuf_adds(out, "\\r");
		else if (*c == '\t')
			strbuf_adds(out, "\\t");
		else if (*c == '\b')
			strbuf_adds(out, "\\b");
		else if (*c == '\f')
			strbuf_adds(out, "\\f");
		else if (byte < 0x20 || strchr("<>&", *c))
			strbuf_addf(out, "\\u%04x", byte);
		else if (str_starts(c, "\xe2\x80\xa8") || str_starts(c, "\xe2\x80\xa9")) {
			strbuf_adds(out, (unsigned char)c[2] == 0xa8 ? "\\u2028" : "\\u2029");
			c += 2;
		} else
			strbuf_addc(out, *c);
	}
	strbuf_addc(out, '"');
}

/* One object being written: each member on its own line. */
struct writer {
	struct strbuf *out;
	int depth;
	bool first;
};

static void add_line(struct writer *w, const char *key)
{
	strbuf_adds(w->out, w->first ? "\n" : ",\n");
	w->first = false;
	strbuf_addf(w->out, "%*s", 4 * w->depth, "");
	if (key) {
		add_go_string(w->out, key);
		strbuf_adds(w->out, ": ");
	}
}

static struct writer open_inner(struct writer *w, char bracket)
{
	strbuf_addc(w->out, bracket);
	return (struct writer){w->out, w->depth + 1, true};
}

/* An object without members stays on the line. */
static void close_inner(struct writer *inner, char bracket)
{
	if (!inner->first)
		strbuf_addf(inner->out, "\n%*s", 4 * (inner->depth - 1), "");
	strbuf_addc(inner->out, bracket);
}

static void add_text(struct writer *w, const char *key, const char *text)
{
	if (str_empty(text))
		return;
	add_line(w, key);
	add_go_string(w->out, text);
}

static void add_texts(struct writer *w, const char *key, const json_t *texts)
{
	struct writer inner;
	json_t *text;
	size_t i;

	if (json_array_size(texts) == 0)
		return;
	add_line(w, key);
	inner = open_inner(w, '[');
	json_array_foreach (texts, i, text) {
		add_line(&inner, NULL);
		add_go_string(w->out, json_str_or(text, ""));
	}
	close_inner(&inner, ']');
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void add_dns(struct writer *w, const json_t *dns)
{
	struct writer inner;

	add_line(w, "dns");
	inner = open_inner(w, '{');
	add_texts(&inner, "nameservers", json_at(dns, "nameservers"));
	add_text(&inner, "domain", json_str_at(dns, "domain"));
	add_texts(&inner, "search", json_at(dns, "search"));
	add_texts(&inner, "options", json_at(dns, "options"));
	close_inner(&inner, '}');
}

/*
 * The kinds of a device of the Device Information Specification 1.1.0, with their members in order.
 */
static const struct {
	const char *kind;
	const char *members[8];
} device_kinds[] = {
	{"pci",
	 {"pci-address", "vhost-net", "rdma-device", "pf-pci-address", "representor-device"}},
	{"vdpa",
	 {"parent-device", "driver", "path", "pci-address", "pf-pci-address",
	  "representor-device"}},
	{"vhost-user", {"mode", "path"}},
	{"memif", {"role", "path", "mode"}},
};

static void add_device_info(struct writer *w, const json_t *info)
{
	struct writer inner;

	if (!json_is_object(info))
		return;
	add_line(w, "device-info");
	inner = open_inner(w, '{');
	add_text(&inner, "type", json_str_at(info, "type"));
	add_text(&inner, "version", json_str_at(info, "version"));
	for (size_t i = 0; i < ARRAY_LEN(device_kinds); i++) {
		const json_t *device = json_at(info, device_kinds[i].kind);
		struct writer members;

		if (!json_is_object(device))
			continue;
		add_line(&inner, device_kinds[i].kind);
		members = open_inner(&inner, '{');
		for (const char *const *m = device_kinds[i].members; *m; m++)
			add_text(&members, *m, json_str_at(device, *m));
		close_inner(&members, '}');
	}
	close_inner(&inner, '}');
}

/* The address of "address/prefix" as a new string, in the spelling that everybody uses. */
static char *address_of(const json_t *ip)
{
	const char *text = json_str_or(json_at(ip, "address"), "");
	auto_free char *address = str_ndup(text, strcspn(text, "/"));
	char spelled[INET6_ADDRSTRLEN];
	unsigned char bytes[sizeof(struct in6_addr)];
	int family = strchr(address, ':') ? AF_INET6 : AF_INET;

	if (inet_pton(family, address, bytes) != 1 ||
	    !inet_ntop(family, bytes, spelled, sizeof(spelled)))
		return take_ptr(address);
	return str_dup(spelled);
}

/* Is the destination all zeros? The length of its prefix is not looked at. */
static bool is_default(const char *dst)
{
	return *dst && strspn(dst, "0.:") == strcspn(dst, "/");
}

static json_t *gateways_of(const json_t *result)
{
	json_t *gateways = json_array(), *route;
	size_t i;

	json_array_foreach (json_at(result, "routes"), i, route)
		if (is_default(json_str_or(json_at(route, "dst"), "")))
			/* A route without one is written so by Go, and recorded so. */
			json_array_append_new(
				gateways, json_string(json_str_or(json_at(route, "gw"), "<nil>")));
	return gateways;
}

static bool has_sandbox(const json_t *interface)
{
	return !str_empty(json_str_at(interface, "sandbox"));
}

/* ---- entries --------------------------------------------------------------------------------- */

/* What all entries of one delegate have in common. */
struct network {
	const char *name;
	bool is_first; /* the pod's default network */
	const json_t *result, *info;
	bool has_mtu; /* of an interface; came with 1.1.0 */
};

struct entry {
	const json_t *interface; /* NULL: none of the pod's */
	const json_t *ips;       /* texts */
	bool is_default;
};

static void add_entry(struct strbuf *out, const struct network *n, const struct entry *entry)
{
	json_auto_t *gateways = gateways_of(n->result);
	json_int_t mtu = json_integer_value(json_at(entry->interface, "mtu"));
	struct writer w = {out, 1, true};

	if (out->len > 1)
		strbuf_addc(out, ',');
	strbuf_addc(out, '{');
	add_line(&w, "name");
	add_go_string(out, n->name);
	add_text(&w, "interface", json_str_at(entry->interface, "name"));
	add_texts(&w, "ips", entry->ips);
	add_text(&w, "mac", json_str_at(entry->interface, "mac"));
	if (n->has_mtu && mtu) {
		add_line(&w, "mtu");
		strbuf_addf(out, "%" JSON_INTEGER_FORMAT, mtu);
	}
	if (entry->is_default) {
		add_line(&w, "default");
		strbuf_adds(out, "true");
	}
	add_dns(&w, json_at(n->result, "dns"));
	add_device_info(&w, n->info);
	add_texts(&w, "gateway", gateways);
	close_inner(&w, '}');
}

/* One interface: all addresses are its. */
static void add_single(struct strbuf *out, const struct network *n)
{
	const json_t *interface = json_array_get(json_at(n->result, "interfaces"), 0);
	json_auto_t *ips = json_array();
	json_t *ip;
	size_t i;

	json_array_foreach (json_at(n->result, "ips"), i, ip) {
		auto_free char *address = address_of(ip);

		json_array_append_new(ips, json_string(address));
	}
	add_entry(out, n,
		  &(struct entry){has_sandbox(interface) ? interface : NULL, ips, n->is_first});
}

/* The addresses of the interface at `index`; those without an interface belong to the last one. */
static json_t *ips_of(const struct network *n, size_t index, bool is_last)
{
	json_t *ips = json_array(), *ip;
	size_t i;

	json_array_foreach (json_at(n->result, "ips"), i, ip) {
		const json_t *of = json_at(ip, "interface");
		auto_free char *address = address_of(ip);

		if (of ? json_integer_value(of) == (json_int_t)index : is_last)
			json_array_append_new(ips, json_string(address));
	}
	return ips;
}

/* Of several interfaces, the default one is the one with a gateway, else the first. */
static size_t default_interface(const struct network *n)
{
	const json_t *interfaces = json_at(n->result, "interfaces");
	json_t *ip, *interface;
	size_t i;

	json_array_foreach (json_at(n->result, "ips"), i, ip) {
		json_int_t index = json_integer_value(json_at(ip, "interface"));

		if (json_at(ip, "interface") && !str_empty(json_str_at(ip, "gateway")) &&
		    index >= 0 && has_sandbox(json_array_get(interfaces, (size_t)index)))
			return (size_t)index;
	}
	json_array_foreach (interfaces, i, interface)
		if (has_sandbox(interface))
			break;
	return i;
}

static void add_several(struct strbuf *out, const struct network *n)
{
	const json_t *interfaces = json_at(n->result, "interfaces");
	size_t chosen = default_interface(n), last = 0, i;
	json_t *interface;

	json_array_foreach (interfaces, i, interface)
		if (has_sandbox(interface))
			last = i;
	json_array_foreach (interfaces, i, interface) {
		json_auto_t *ips = ips_of(n, i, i == last);

		if (has_sandbox(interface))
			add_entry(out, n,
				  &(struct entry){interface, ips, n->is_first && i == chosen});
	}
}

char *network_status_text(const json_t *delegates, const json_t *results, const json_t *infos)
{
	auto_strbuf struct strbuf out = {0};
	json_t *delegate;
	size_t i;

	strbuf_addc(&out, '[');
	json_array_foreach (delegates, i, delegate) {
		const json_t *result = json_array_get(results, i);
		struct network n = {
			.name = json_str_or(json_at(delegate, "name"), ""),
			.is_first = i == 0,
			.result = result,
			.info = json_array_get(infos, i),
			.has_mtu = cni_version_at_least(json_str_at(result, "cniVersion"), 1, 1),
		};
		size_t interfaces = json_array_size(json_at(result, "interfaces"));

		if (interfaces == 1)
			add_single(&out, &n);
		else if (interfaces > 1)
			add_several(&out, &n);
	}
	strbuf_addc(&out, ']');
	return strbuf_take(&out);
}

static void add_address(struct strbuf *ips, const char *address)
{
	if (address)
		strbuf_addf(ips, "%s%s", ips->len ? " " : "", address);
}

char *network_added_text(const json_t *delegate, const json_t *result)
{
	auto_strbuf struct strbuf ips = {0};
	json_t *ip;
	size_t i;

	json_array_foreach (json_at(result, "ips"), i, ip)
		add_address(&ips, json_str_at(ip, "address"));
	/* CNI 0.1.0 and 0.2.0. */
	add_address(&ips, json_str_at(result, "ip4", "ip"));
	add_address(&ips, json_str_at(result, "ip6", "ip"));
	if (json_array_size(json_at(result, "interfaces")) == 0 && ips.len == 0)
		return NULL;
	return str_printf("Add %s [%s] from %s", json_str_at(delegate, "interface"),
			  strbuf_str(&ips), json_str_at(delegate, "name"));
}

json_t *network_gone_result(const char *version, const char *ifname, const char *netns)
{
	return json_pack("{s:s, s:[{s:s, s:s}], s:[{s:s, s:s}]}", "cniVersion",
			 str_empty(version) ? "0.3.1" : version, "interfaces", "name", ifname,
			 "sandbox", netns, "ips", "address", "0.0.0.0/0", "gateway", "0.0.0.0");
}
