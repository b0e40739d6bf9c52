// SPDX-License-Identifier: Apache-2.0
/*
 * Paths of two functions are compared from the host bridge down: the last bridge that they share
 * says how near they are. The agent puts the result into its status, and `orbweaver topo` asks for
 * distances that the status does not spell out.
 */
#include "nodeagent/model/topology.h"

#include <assert.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

static const char *const names[TOPOLOGY_DISTANCES] = {
	[TOPOLOGY_PIX] = "PIX",   [TOPOLOGY_PXB] = "PXB", [TOPOLOGY_PHB] = "PHB",
	[TOPOLOGY_NODE] = "NODE", [TOPOLOGY_SYS] = "SYS", [TOPOLOGY_UNKNOWN] = "?",
};

const char *topology_distance_name(enum topology_distance distance)
{
	assert(distance < TOPOLOGY_DISTANCES);
	return names[distance];
}

/* ---- distances ------------------------------------------------------------------------------- */

/* Parts of a path from `path` on. */
static size_t parts_of(const char *path)
{
	size_t n = *path != '\0';

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* Parts that both begin with; where the rest of each begins. */
static size_t shared_parts(const char **a, const char **b)
{
	size_t n = 0;

	for (;;) {
		size_t len = strcspn(*a, "/");

		if (len == 0 || len != strcspn(*b, "/") || strncmp(*a, *b, len) != 0)
			return n;
		n++;
		*a += len;
		*b += len;
		*a += **a == '/';
		*b += **b == '/';
	}
}

enum topology_distance topology_between(const json_t *a, const json_t *b)
{
	const char *path_a = json_str_at(a, "path"), *path_b = json_str_at(b, "path");
	const json_t *numa_a = json_at(a, "numaNode"), *numa_b = json_at(b, "numaNode");
	size_t shared;

	if (str_empty(path_a) || str_empty(path_b))
		return TOPOLOGY_UNKNOWN;
	shared = shared_parts(&path_a, &path_b);
	if (shared > 1)
		/* A switch is two bridges: the port above is shared, and one below for each. */
		return parts_of(path_a) <= 1 && parts_of(path_b) <= 1 ? TOPOLOGY_PIX : TOPOLOGY_PXB;
	if (shared == 1)
		return TOPOLOGY_PHB;
	if (!json_is_integer(numa_a) || !json_is_integer(numa_b))
		return TOPOLOGY_UNKNOWN;
	return json_same(numa_a, numa_b) ? TOPOLOGY_NODE : TOPOLOGY_SYS;
}

/* ---- the status ------------------------------------------------------------------------------ */

static void copy_members(json_t *to, const json_t *from, const char *const *members)
{
	for (; *members; members++)
		json_put(to, *members, json_incref(json_at(from, *members)));
}

/* "0,2-4" */
static void add_index(struct strbuf *text, size_t *last, size_t index)
{
	if (text->len == 0) {
		strbuf_addf(text, "%zu", index);
	} else if (index == *last + 1) {
		char *dash = strrchr(strbuf_str(text), '-'), *comma = strrchr(text->data, ',');

		/* A range that grows loses its end. */
		if (dash && (!comma || dash > comma))
			strbuf_cut(text, (size_t)(dash - text->data));
		strbuf_addf(text, "-%zu", index);
	} else {
		strbuf_addf(text, ",%zu", index);
	}
	*last = index;
}

static json_t *near_gpus(const json_t *nic, const json_t *gpus)
{
	json_t *ret = json_object();

	for (int d = 0; d < TOPOLOGY_DISTANCES; d++) {
		auto_strbuf struct strbuf text = {0};
		const json_t *gpu;
		size_t i, last = 0;

		json_array_foreach ((json_t *)gpus, i, gpu)
			if (topology_between(nic, gpu) == (enum topology_distance)d)
				add_index(&text, &last, i);
		if (text.len > 0)
			json_put_str(ret, names[d], strbuf_str(&text));
	}
	return ret;
}

static json_t *gpus_of(const json_t *observed)
{
	static const char *const members[] = {"pciAddress", "vendor", "deviceID",
					      "numaNode",   "path",   NULL};
	json_t *ret = json_array();
	const json_t *seen;
	size_t i;

	json_array_foreach (json_at(observed, "gpus"), i, seen) {
		json_t *gpu = json_object();

		copy_members(gpu, seen, members);
		json_array_append_new(ret, gpu);
		if (i + 1 == TOPOLOGY_GPUS_MAX)
			break;
	}
	return ret;
}

static json_t *nic_of(const json_t *port, const json_t *gpus)
{
	static const char *const members[] = {"pciAddress", "name", "rail", NULL};
	json_t *nic = json_object();

	copy_members(nic, port, members);
	json_put(nic, "numaNode", json_incref(json_at(port, "host", "numaNode")));
	json_put(nic, "path", json_incref(json_at(port, "host", "path")));
	if (json_array_size(gpus) > 0)
		json_put(nic, "gpus", near_gpus(nic, gpus));
	return nic;
}

/* By rail; the order of the document, which is by PCI address, where there is none. */
static void insert_nic(json_t *nics, json_t *nic)
{
	const json_t *rail = json_at(nic, "rail");
	size_t at = json_array_size(nics);

	for (; rail && at > 0; at--) {
		const json_t *other = json_at(json_array_get(nics, at - 1), "rail");

		if (other && json_integer_value(other) <= json_integer_value(rail))
			break;
	}
	(void)json_array_insert_new(nics, at, nic);
	if (json_array_size(nics) > TOPOLOGY_NICS_MAX)
		(void)json_array_remove(nics, TOPOLOGY_NICS_MAX);
}

json_t *topology_compose(const json_t *observed)
{
	const char *unknown = json_str_at(observed, "gpusUnknown");
	json_t *gpus = gpus_of(observed), *nics = json_array(), *ret;
	bool is_known = unknown || json_array_size(gpus) > 0;
	const json_t *port;
	size_t i;

	json_array_foreach (json_at(observed, "interfaces"), i, port) {
		is_known |= json_at(port, "host", "path") != NULL;
		insert_nic(nics, nic_of(port, gpus));
	}
	if (!is_known) {
		json_decref(gpus);
		json_decref(nics);
		return NULL;
	}
	ret = json_object();
	json_put(ret, "gpus", gpus);
	json_put(ret, "nics", nics);
	json_put_str(ret, "gpusUnknown", unknown);
	return ret;
}
