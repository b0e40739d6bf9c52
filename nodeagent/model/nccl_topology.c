// SPDX-License-Identifier: Apache-2.0
/*
 * Each function is a chain of names, from its NUMA node down. Sorted, chains that share a switch
 * stand together: what differs from the last is closed and opened.
 */
#include "nodeagent/model/nccl_topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* Of PCIe: 8 bits of bus numbers, of which few are below each other. */
enum { DEPTH_MAX = 16 };

#define BRIDGE_CLASS "0x060400"

struct chain {
	char *text; /* "0/0000:16:00.0/0000:3b:00.2" */
	const json_t *function;
};

json_t *nccl_topology_switches(const char *path)
{
	auto_free char *copy = str_dup(path ? path : "");
	json_t *all = json_array(), *ret = json_array();
	char *rest = copy, *part;

	while ((part = strsep(&rest, "/")))
		if (pci_address_is_valid(part) && json_array_size(all) < DEPTH_MAX)
			json_array_append_new(all, json_string(part));
	for (size_t i = json_array_size(all) % 2; i + 1 < json_array_size(all); i += 2)
		json_array_append(ret, json_array_get(all, i));
	json_decref(all);
	return ret;
}

static int compare_chains(const void *a, const void *b)
{
	return strcmp(((const struct chain *)a)->text, ((const struct chain *)b)->text);
}

static char *chain_of(const json_t *function)
{
	json_auto_t *switches = nccl_topology_switches(json_str_at(function, "path"));
	const json_t *numa = json_at(function, "numaNode"), *bridge;
	struct strbuf text = {0};
	size_t i;

	strbuf_addf(&text, "%lld",
		    json_is_integer(numa) ? (long long)json_integer_value(numa) : -1);
	json_array_foreach (switches, i, bridge)
		strbuf_addf(&text, "/%s", json_string_value(bridge));
	strbuf_addf(&text, "/%s", json_str_at(function, "busid"));
	return strbuf_take(&text);
}

static void indent(struct strbuf *out, size_t depth)
{
	strbuf_addf(out, "%*s", (int)depth * 2, "");
}

static void open_cpu(struct strbuf *out, const char *numa, const json_t *cpu)
{
	const char *key;
	json_t *value;

	strbuf_addf(out, "  <cpu numaid=\"%s\"", numa);
	json_each (cpu, key, value) {
		if (json_is_integer(value))
			strbuf_addf(out, " %s=\"%lld\"", key, (long long)json_integer_value(value));
		else
			strbuf_addf(out, " %s=\"%s\"", key, json_str_or(value, ""));
	}
	strbuf_adds(out, ">\n");
}

static void open_pci(struct strbuf *out, const char *busid, const char *class, const json_t *link)
{
	strbuf_addf(out, "<pci busid=\"%s\" class=\"%s\" link_speed=\"%s\" link_width=\"%lld\">\n",
		    busid, class, json_str_or(json_at(link, "speed"), ""),
		    (long long)json_integer_value(json_at(link, "width")));
}

static void add_number(struct strbuf *out, const char *name, const json_t *value)
{
	if (json_is_integer(value))
		strbuf_addf(out, " %s=\"%lld\"", name, (long long)json_integer_value(value));
}

static void add_net(struct strbuf *out, size_t depth, const json_t *net)
{
	indent(out, depth);
	strbuf_addf(out, "<nic><net name=\"%s\"", json_str_at(net, "name"));
	add_number(out, "speed", json_at(net, "speed"));
	add_number(out, "rail", json_at(net, "rail"));
	strbuf_adds(out, "/></nic>\n");
}

/* Close what is open from `depth` on; the names themselves are the open elements. */
static void close_to(struct strbuf *out, size_t *n_open, size_t depth)
{
	while (*n_open > depth) {
		indent(out, *n_open);
		strbuf_adds(out, --*n_open == 0 ? "</cpu>\n" : "</pci>\n");
	}
}

char *nccl_topology_text(const json_t *cpu, const json_t *functions, const json_t *links)
{
	size_t n = json_array_size(functions), n_open = 0, i;
	auto_free struct chain *chains = mem_calloc(n + 1, sizeof(*chains));
	json_auto_t *open = json_array();
	struct strbuf out = {0};

	for (i = 0; i < n; i++)
		chains[i] = (struct chain){chain_of(json_array_get(functions, i)),
					   json_array_get(functions, i)};
	qsort(chains, n, sizeof(*chains), compare_chains);
	strbuf_adds(&out, "<system version=\"1\">\n");
	for (i = 0; i < n; i++) {
		char *rest = chains[i].text, *part;
		bool is_same = true;

		for (size_t depth = 0; (part = strsep(&rest, "/")); depth++) {
			is_same = is_same && depth < n_open &&
				  str_eq(json_string_value(json_array_get(open, depth)), part);
			if (is_same)
				continue;
			close_to(&out, &n_open, depth);
			while (json_array_size(open) > depth)
				json_array_remove(open, depth);
			json_array_append_new(open, json_string(part));
			n_open = depth + 1;
			if (depth == 0) {
				open_cpu(&out, part, cpu);
				continue;
			}
			indent(&out, depth + 1);
			open_pci(&out, part,
				 rest ? BRIDGE_CLASS
				      : json_str_or(json_at(chains[i].function, "class"), ""),
				 json_at(links, part));
		}
		if (json_at(chains[i].function, "net"))
			add_net(&out, n_open + 1, json_at(chains[i].function, "net"));
		free(chains[i].text);
	}
	close_to(&out, &n_open, 0);
	strbuf_adds(&out, "</system>\n");
	return strbuf_take(&out);
}
