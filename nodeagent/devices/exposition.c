// SPDX-License-Identifier: Apache-2.0
/*
 * Series are gathered by metric, device by device; then written metric by metric, as the format
 * asks for. The labels of a device are the same in all its series, and made once.
 */
#include "nodeagent/devices/exposition.h"

#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/metrics_text.h"
#include "lib/base/pci_address.h"
#include "lib/json/json.h"
#include "nodeagent/devices/metric_families.h"

/* ---- which devices --------------------------------------------------------------------------- */

bool exposition_scope_read(const char *text, enum exposition_scope *ret)
{
	static const char *const names[] = {
		[EXPOSITION_OFF] = "off",
		[EXPOSITION_PFS] = "pf",
		[EXPOSITION_PODS] = "pods",
		[EXPOSITION_ALL] = "all",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!str_eq(text, names[i]))
			continue;
		*ret = (enum exposition_scope)i;
		return true;
	}
	return false;
}

json_t *exposition_vfs(enum exposition_scope scope, const json_t *pods)
{
	json_t *ret, *pod;
	const char *address;

	if (scope == EXPOSITION_ALL)
		return NULL;
	ret = json_array();
	if (scope == EXPOSITION_PODS)
		json_each (pods, address, pod)
			json_array_append_new(ret, json_string(address));
	return ret;
}

static bool matches_any_pattern(const char *patterns, const char *name)
{
	while (name && *patterns) {
		size_t len = strcspn(patterns, ",");
		auto_free char *pattern = str_ndup(patterns, len);

		if (fnmatch(pattern, name, 0) == 0)
			return true;
		patterns += len + (patterns[len] == ',');
	}
	return false;
}

bool exposition_is_excluded(const char *excluded, const json_t *device)
{
	static const char *const names[] = {"rdma", "netdev", "pciAddress"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (excluded && matches_any_pattern(excluded, json_str_at(device, names[i])))
			return true;
	return false;
}

/* ---- series by metric ------------------------------------------------------------------------ */

struct series {
	const struct family *family; /* NULL: not one of the documented */
	enum family_labels labels;
	char *name;
	struct strbuf lines;
	size_t device; /* that was added last, or VF, counted from 1 */
};

struct book {
	const struct exposition_input *input;
	struct map series;
	size_t n_unknown;
	size_t device;        /* that is being added */
	struct strbuf labels; /* of the device that is being added, without braces */
};

static void series_free(void *value)
{
	struct series *series = value;

	mem_free(series->name);
	strbuf_done(&series->lines);
	mem_free(series);
}

static struct series *open_series(struct book *book, const struct family *family, const char *name,
				  enum family_labels labels)
{
	struct series *series = mem_new(struct series);

	assert(!map_get(&book->series, name));
	series->family = family;
	series->name = str_dup(name);
	series->labels = labels;
	map_set(&book->series, name, series);
	return series;
}

/* NULL: one name too many, or one that has other labels. */
static struct series *series_of(struct book *book, const char *name, enum family_labels labels)
{
	struct series *series = map_get(&book->series, name);

	if (series)
		return series->labels == labels ? series : NULL;
	if (book->n_unknown == EXPOSITION_UNKNOWN_MAX)
		return NULL;
	book->n_unknown++;
	return open_series(book, NULL, name, labels);
}

/* One of families[] is always there. more: a label besides those of the device, or NULL. */
static void add_line(struct series *series, const char *labels, const char *more, int64_t value)
{
	assert(series);
	strbuf_addf(&series->lines, "%s{%s%s} %" PRId64 "\n", series->name, labels,
		    more ? more : "", value);
}

/* Two counters of a driver that would be one metric: the first. */
static void add_once(struct book *book, struct series *series, const char *labels,
		     const json_t *value)
{
	if (!series || series->device == book->device || !json_is_integer(value))
		return;
	series->device = book->device;
	add_line(series, labels, NULL, json_integer_value(value));
}

/* ---- an RDMA device -------------------------------------------------------------------------- */

static void add_label(struct strbuf *out, const char *name, const char *value)
{
	if (!str_empty(value))
		metrics_text_label(out, name, value);
}

/* A PF is its own parent: panels group by it. Ports of one card are PFs, each. */
static void label_device(struct book *book, const json_t *device)
{
	const struct exposition_input *input = book->input;
	bool is_vf = json_is_true(json_at(device, "isVf"));
	const char *pod = json_str_at(input->pods, json_str_or(json_at(device, "pciAddress"), ""));
	const char *slash = pod ? strchr(pod, '/') : NULL;
	struct strbuf *out = &book->labels;
	auto_free char *ns = NULL;
	const json_t *owner;

	strbuf_reset(out);
	add_label(out, "node_name", input->node);
	add_label(out, "ifname", json_str_at(device, "rdma"));
	add_label(out, "net_dev_name", json_str_at(device, "netdev"));
	add_label(out, "is_root", is_vf ? "false" : "true");
	add_label(out, "rdma_parent_name", json_str_at(device, is_vf ? "pfNetdev" : "netdev"));
	if (!slash)
		return;
	ns = str_ndup(pod, (size_t)(slash - pod));
	owner = json_at(input->owners, pod);
	add_label(out, "pod_namespace", ns);
	add_label(out, "pod_name", slash + 1);
	add_label(out, "owner_kind", json_str_at(owner, "kind"));
	add_label(out, "owner_namespace", json_str_at(owner, "namespace"));
	add_label(out, "owner_name", json_str_at(owner, "name"));
}

static void add_priority(struct book *book, const char *name, char priority, const json_t *value)
{
	const char more[] = {',', 'p', 'r', 'i', 'o',      'r', 'i',
			     't', 'y', '=', '"', priority, '"', '\0'};
	struct series *series = series_of(book, name, FAMILY_OF_PRIORITY);

	if (series && json_is_integer(value))
		add_line(series, strbuf_str(&book->labels), more, json_integer_value(value));
}

static void add_counter(struct book *book, const char *name, const json_t *value)
{
	add_once(book, series_of(book, name, FAMILY_OF_DEVICE), strbuf_str(&book->labels), value);
}

static void add_counters(struct book *book, const json_t *counted)
{
	char name[FAMILY_NAME_SIZE], priority;
	static const char *const parts[] = {"rdma", "port"};
	const char *counter;
	json_t *value;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		json_each (json_at(counted, parts[i]), counter, value)
			if (family_name_of_rdma(counter, name))
				add_counter(book, name, value);
	json_each (json_at(counted, "ethernet"), counter, value) {
		if (family_name_of_priority(counter, name, &priority))
			add_priority(book, name, priority, value);
		else if (family_name_of_rdma(counter, name))
			add_counter(book, name, value);
	}
	add_counter(book, "rdma_vport_speed_mbps_total", json_at(counted, "speedMbps"));
}

static void add_traffic_class(struct book *book, const json_t *device, const json_t *value)
{
	auto_strbuf struct strbuf labels = {0};

	if (!json_is_integer(value))
		return;
	add_label(&labels, "node_name", book->input->node);
	add_label(&labels, "ifname", json_str_at(device, "rdma"));
	add_label(&labels, "net_dev_name", json_str_at(device, "netdev"));
	add_line(series_of(book, "rdma_device_tos_total", FAMILY_OF_CLASS), strbuf_str(&labels),
		 NULL, json_integer_value(value));
}

/* Decimal, "" when there is none. */
struct number {
	char text[24];
};

static struct number number_of(const json_t *value)
{
	struct number ret = {""};

	if (json_is_integer(value))
		(void)snprintf(ret.text, sizeof(ret.text), "%" JSON_INTEGER_FORMAT,
			       json_integer_value(value));
	return ret;
}

/* Of a VF that of its PF. */
static struct number rail_of(const struct book *book, const json_t *device)
{
	const char *port = json_str_at(device, "pf");

	if (!port)
		port = json_str_at(device, "pciAddress");
	return number_of(port ? json_at(json_find(book->input->rails, "pciAddress", port), "rail")
			      : NULL);
}

/* ---- VFs, pods, failures --------------------------------------------------------------------- */

/* The exporter's labels are there, if empty. */
static void add_vf(struct book *book, const json_t *pf, const char *number, const json_t *counters)
{
	auto_strbuf struct strbuf labels = {0};
	char name[FAMILY_NAME_SIZE];
	const char *counter, *address;
	json_t *value;
	int64_t index;

	if (!str_to_int(number, 0, INT32_MAX, &index))
		return;
	address = json_string_value(json_array_get(json_at(pf, "vfs"), (size_t)index));
	metrics_text_label(&labels, "pf", json_str_or(json_at(pf, "netdev"), ""));
	metrics_text_label(&labels, "vf", number);
	metrics_text_label(&labels, "pciAddr", address ? address : "");
	metrics_text_label(&labels, "numa_node", number_of(json_at(pf, "numaNode")).text);
	book->device++;
	json_each (counters, counter, value)
		if (family_name_of_vf(counter, name))
			add_once(book, series_of(book, name, FAMILY_OF_VF), strbuf_str(&labels),
				 value);
}

static void add_failure(struct book *book, const json_t *device)
{
	auto_strbuf struct strbuf labels = {0};

	add_label(&labels, "node_name", book->input->node);
	add_label(&labels, "ifname", json_str_at(device, "rdma"));
	add_label(&labels, "net_dev_name", json_str_at(device, "netdev"));
	add_label(&labels, "pci_address", json_str_at(device, "pciAddress"));
	add_line(series_of(book, "orbweaver_rdma_scrape_failed", FAMILY_OF_FAILURE),
		 strbuf_str(&labels), NULL, 1);
}

static void add_device(struct book *book, const json_t *entry)
{
	const json_t *device = json_at(entry, "device"), *counted = json_at(entry, "counted");
	const char *number;
	json_t *counters;
	const char *protocol;
	auto_strbuf struct strbuf labels = {0};

	book->device++;
	if (json_str_at(device, "rdma")) {
		label_device(book, device);
		add_counters(book, counted);
		add_traffic_class(book, device, json_at(counted, "trafficClass"));
		protocol = json_str_at(device, "protocol");
		add_label(&labels, "node_name", book->input->node);
		add_label(&labels, "ifname", json_str_at(device, "rdma"));
		add_label(&labels, "net_dev_name", json_str_at(device, "netdev"));
		add_label(&labels, "pci_address", json_str_at(device, "pciAddress"));
		if (protocol)
			add_label(&labels, "link_layer",
				  str_eq(protocol, "ib") ? "InfiniBand" : "Ethernet");
		add_label(&labels, "state", json_str_at(device, "state"));
		add_label(&labels, "firmware", json_str_at(device, "firmware"));
		add_label(&labels, "driver", json_str_at(device, "driver"));
		add_label(&labels, "numa_node", number_of(json_at(device, "numaNode")).text);
		add_label(&labels, "guid", json_str_at(device, "nodeGuid"));
		add_label(&labels, "rail", rail_of(book, device).text);
		add_line(series_of(book, "orbweaver_rdma_device_info", FAMILY_OF_INFO),
			 strbuf_str(&labels), NULL, 1);
	}
	json_each (json_at(counted, "vfs"), number, counters)
		add_vf(book, device, number, counters);
	if (json_is_true(json_at(entry, "failed")) || json_at(counted, "problem"))
		add_failure(book, device);
}

/* "ns/pod/container". */
static void add_holder(struct book *book, const char *resource, const char *address,
		       const char *holder)
{
	const char *pod = strchr(holder, '/'), *container = pod ? strchr(pod + 1, '/') : NULL;
	auto_strbuf struct strbuf labels = {0};
	auto_free char *ns = NULL, *name = NULL;

	if (!container)
		return;
	ns = str_ndup(holder, (size_t)(pod - holder));
	name = str_ndup(pod + 1, (size_t)(container - pod - 1));
	metrics_text_label(&labels, "pciAddr", address);
	metrics_text_label(&labels, "dev_type", resource);
	metrics_text_label(&labels, "pod", name);
	metrics_text_label(&labels, "namespace", ns);
	metrics_text_label(&labels, "container", container + 1);
	add_line(series_of(book, "sriov_kubepoddevice", FAMILY_OF_HOLDER), strbuf_str(&labels),
		 NULL, 1);
}

static void add_holders(struct book *book)
{
	const char *resource, *address;
	json_t *devices, *holder;

	json_each (book->input->allocated, resource, devices)
		json_each (devices, address, holder)
			if (pci_address_is_valid(address))
				add_holder(book, resource, address, json_str_or(holder, ""));
}

/* ---- the text -------------------------------------------------------------------------------- */

static void write_series(const struct series *series, struct strbuf *out)
{
	static const char other[] = "As the driver calls and counts it.";

	metrics_text_head(out, series->name, series->family ? series->family->type : "counter",
			  series->family ? series->family->help : other,
			  family_label_names(series->labels));
	if (series->lines.len > 0)
		strbuf_add(out, series->lines.data, series->lines.len);
}

static int compare_series(const void *a, const void *b)
{
	const struct series *one = *(const struct series *const *)a;
	const struct series *other = *(const struct series *const *)b;

	return strcmp(one->name, other->name);
}

void exposition_write(const struct exposition_input *input, struct strbuf *out)
{
	struct book book = {.input = input, .series = {.free_value = series_free}};
	auto_free struct series **unknown = NULL;
	size_t i, at = 0, n = 0;
	const json_t *entry;
	const char *name;
	void *value;

	for (i = 0; i < n_families; i++)
		(void)open_series(&book, &families[i], families[i].name, families[i].labels);
	json_array_foreach (input->devices, i, entry)
		add_device(&book, entry);
	add_holders(&book);
	for (i = 0; i < n_families; i++)
		write_series(map_get(&book.series, families[i].name), out);
	assert(book.n_unknown <= EXPOSITION_UNKNOWN_MAX);
	unknown = mem_calloc(book.n_unknown + 1, sizeof(struct series *));
	while (map_next(&book.series, &at, &name, &value))
		if (!((struct series *)value)->family)
			unknown[n++] = value;
	qsort(unknown, n, sizeof(struct series *), compare_series);
	for (i = 0; i < n; i++)
		write_series(unknown[i], out);
	map_done(&book.series);
	strbuf_done(&book.labels);
}
