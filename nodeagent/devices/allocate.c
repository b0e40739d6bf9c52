// SPDX-License-Identifier: Apache-2.0
/*
 * Answers to the kubelet's Allocate and GetPreferredAllocation from one resource of pools.h: from
 * memory, and quickly, since some kubelets start no other pod meanwhile (kubernetes,
 * pkg/kubelet/cm/devicemanager/manager.go).
 */
#include "nodeagent/devices/allocate.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/job_folder.h"
#include "nodeagent/model/topology.h"

/* ---- the devices of a resource, by id -------------------------------------------------------- */

struct device {
	const char *id;
	const json_t *json;
};

struct devices {
	struct device *items; /* sorted by id */
	size_t n;
};

static int compare_devices(const void *a, const void *b)
{
	return strcmp(((const struct device *)a)->id, ((const struct device *)b)->id);
}

static struct devices devices_of(const json_t *resource)
{
	const json_t *list = json_at(resource, "devices");
	struct devices devices = {.n = json_array_size(list)};
	bool sorted = true;

	devices.items = mem_calloc(devices.n + 1, sizeof(*devices.items));
	for (size_t i = 0; i < devices.n; i++) {
		devices.items[i].json = json_array_get(list, i);
		devices.items[i].id = json_str_or(json_at(devices.items[i].json, "id"), "");
		sorted = sorted &&
			 (i == 0 || strcmp(devices.items[i - 1].id, devices.items[i].id) <= 0);
	}
	if (!sorted)
		qsort(devices.items, devices.n, sizeof(*devices.items), compare_devices);
	return devices;
}

static void devices_done(struct devices *devices)
{
	free(devices->items);
}

static const json_t *devices_find(const struct devices *devices, const char *id)
{
	struct device key = {.id = id};
	const struct device *found =
		bsearch(&key, devices->items, devices->n, sizeof(key), compare_devices);

	return found ? found->json : NULL;
}

/* ---- Allocate -------------------------------------------------------------------------------- */

static const char *name_of(const json_t *resource)
{
	return json_str_or(json_at(resource, "name"), "?");
}

/* The devices asked for, in that order. */
static int find_devices(const json_t *resource, const char *const *ids, size_t n,
			const json_t **ret_found, struct err *err)
{
	auto_call(devices_done) struct devices devices = devices_of(resource);
	auto_call(map_done) struct map seen = {0};

	for (size_t i = 0; i < n; i++) {
		const json_t *device = devices_find(&devices, ids[i]);
		const char *cause = json_str_at(device, "cause");

		if (!device)
			return err_set(err, ERR_INVALID, "UnknownDevice",
				       "%s: there is no device \"%.64s\"", name_of(resource),
				       ids[i]);
		if (!json_is_true(json_at(device, "healthy")) || cause)
			return err_set(err, ERR_INVALID, "DeviceUnhealthy", "%s: device %.64s: %s",
				       name_of(resource), ids[i], cause ? cause : "it has gone");
		if (map_get(&seen, ids[i]))
			return err_set(err, ERR_INVALID, "BadRequest",
				       "%s: device %.64s is asked for twice", name_of(resource),
				       ids[i]);
		map_set(&seen, ids[i], (void *)device);
		ret_found[i] = device;
	}
	return 0;
}

struct node {
	const char *path;
	const char *host_path;
};

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->path, ((const struct node *)b)->path);
}

static size_t add_nodes(const json_t *list, struct node *nodes)
{
	size_t n = 0, i;
	json_t *item;

	json_array_foreach ((json_t *)list, i, item) {
		const char *path = json_str_or(item, json_str_at(item, "path"));

		if (path)
			nodes[n++] = (struct node){
				.path = path,
				.host_path = json_str_or(json_at(item, "hostPath"), path),
			};
	}
	return n;
}

static json_t *nodes_of(const json_t *resource, const json_t **found, size_t n)
{
	const json_t *common = json_at(resource, "nodes");
	const char *permissions = json_str_or(json_at(resource, "permissions"), "rw");
	size_t max = json_array_size(common), len;
	json_t *list = json_array();
	auto_free struct node *nodes = NULL;

	for (size_t i = 0; i < n; i++)
		max += json_array_size(json_at(found[i], "nodes"));
	nodes = mem_calloc(max + 1, sizeof(*nodes));
	len = add_nodes(common, nodes);
	for (size_t i = 0; i < n; i++)
		len += add_nodes(json_at(found[i], "nodes"), nodes + len);
	assert(len <= max);
	qsort(nodes, len, sizeof(*nodes), compare_nodes);
	for (size_t i = 0; i < len; i++)
		if (i == 0 || !str_eq(nodes[i - 1].path, nodes[i].path))
			json_array_append_new(
				list, json_pack("{s:s,s:s,s:s}", "path", nodes[i].path, "hostPath",
						nodes[i].host_path, "permissions", permissions));
	return list;
}

/* As Go writes JSON; outside of strings there are no such characters. */
static char *escape_html(const char *text)
{
	struct strbuf out = {0};

	for (; *text; text++) {
		if (strchr("<>&", *text))
			strbuf_addf(&out, "\\u%04x", (unsigned char)*text);
		else
			strbuf_addc(&out, *text);
	}
	return strbuf_take(&out);
}

/*
 * PCIDEVICE_X: the ids in the order of the request; PCIDEVICE_X_INFO: what is known of each
 * (sriov-network-device-plugin, pkg/netdevice).
 */
static void put_env(json_t *env, const char *name, const json_t **found, size_t n)
{
	auto_free char *info_name = str_printf("%s_INFO", name);
	auto_free char *info_text = NULL, *escaped = NULL;
	auto_strbuf struct strbuf ids = {0};
	json_auto_t *info = json_object();

	for (size_t i = 0; i < n; i++) {
		const char *id = json_str_or(json_at(found[i], "id"), "");
		json_t *details = json_at(found[i], "details");

		strbuf_adds(&ids, i > 0 ? "," : "");
		strbuf_adds(&ids, id);
		json_object_set(info, id, details);
	}
	info_text = json_text(info);
	escaped = escape_html(info_text);
	json_put_str(env, name, strbuf_str(&ids));
	json_put_str(env, info_name, escaped);
}

/* The runtime makes a folder that is not there; the CNI worker writes into it. */
static void put_job_folder(json_t *allocation, const json_t *resource, const char *const *ids,
			   size_t n)
{
	auto_free char *name = json_is_true(json_at(resource, "jobFiles"))
				       ? job_folder_name(name_of(resource), ids, n)
				       : NULL;

	if (name)
		json_put(allocation, "mounts",
			 json_pack("[{s:s, s:o}]", "path", JOB_FOLDER_IN_POD, "hostPath",
				   json_fmt(JOB_FOLDER "/%s", name)));
}

json_t *allocate_devices(const json_t *resource, const char *const *ids, size_t n, struct err *err)
{
	auto_free const json_t **found = NULL;
	const char *name = json_str_at(resource, "env");
	json_t *env, *allocation;

	assert(ids || n == 0);
	/* Before anything is made for them. */
	if (n > json_array_size(json_at(resource, "devices"))) {
		(void)err_set(err, ERR_INVALID, "BadRequest",
			      "%s: %zu devices are asked for, there are %zu", name_of(resource), n,
			      json_array_size(json_at(resource, "devices")));
		return NULL;
	}
	found = mem_calloc(n + 1, sizeof(*found));
	if (find_devices(resource, ids, n, found, err) < 0)
		return NULL;
	env = json_object();
	if (name)
		put_env(env, name, found, n);
	allocation = json_pack("{s:o,s:o}", "env", env, "nodes", nodes_of(resource, found, n));
	put_job_folder(allocation, resource, ids, n);
	return allocation;
}

/* ---- GetPreferredAllocation ------------------------------------------------------------------ */

#define NUMA_UNKNOWN INT64_MAX

/* A PF: how many devices it has, how many of them are available, how many this request gets. */
struct pf {
	size_t total, free, chosen;
	struct candidate *head, *tail; /* its queue, while a group is gone through */
	/* To the nearest GPU, and which GPUs are as near, a bit each. */
	enum topology_distance distance;
	uint32_t gpus;
};

struct candidate {
	const char *id;
	enum topology_distance rank; /* the same for all unless free GPUs count */
	int64_t numa;                /* NUMA_UNKNOWN sorts last */
	struct pf *pf;
	bool healthy;
	bool chosen;
	struct candidate *next;
};

struct choice {
	struct candidate *items; /* sorted: healthy first, then by rank, NUMA node, id */
	size_t n;
	size_t wanted;
	bool packed;
	const json_t *gpus;               /* "gpus" of `near`; NULL: none */
	bool has_gpus;                    /* they are the pod's, and not those that are free */
	bool on_any_node;                 /* NUMA nodes do not count */
	size_t served[TOPOLOGY_GPUS_MAX]; /* devices that each of them got */
	struct map pfs;
};

static void choice_done(struct choice *choice)
{
	free(choice->items);
	map_done(&choice->pfs);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->healthy != y->healthy)
		return x->healthy ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->numa != y->numa)
		return x->numa < y->numa ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* How near the PF of this name is. */
static void measure(const struct choice *choice, struct pf *pf, const char *name)
{
	const json_t *distances;
	size_t i;

	pf->distance = TOPOLOGY_UNKNOWN;
	json_array_foreach ((json_t *)choice->gpus, i, distances) {
		const json_t *value = json_at(distances, name);
		int64_t distance = json_is_integer(value) ? json_integer_value(value) : -1;

		if (i == TOPOLOGY_GPUS_MAX)
			break;
		if (distance < 0 || distance > pf->distance)
			continue;
		if (distance < pf->distance)
			pf->gpus = 0;
		pf->distance = (enum topology_distance)distance;
		pf->gpus |= UINT32_C(1) << i;
	}
}

static struct pf *pf_of(struct choice *choice, const json_t *device)
{
	/* Devices without a PF are alike. */
	const char *name = json_str_or(json_at(device, "pf"), "");
	struct pf *pf = map_get(&choice->pfs, name);

	if (!pf) {
		pf = mem_new(struct pf);
		measure(choice, pf, name);
		map_set(&choice->pfs, name, pf);
	}
	return pf;
}

/*
 * The nearest NIC of each GPU, wherever the GPUs are; and all NICs for a pod that asks for as many,
 * since it has all GPUs then. Two may be one of each processor: a pod is better off with those of
 * one.
 */
static bool is_on_any_node(const struct choice *choice)
{
	size_t n = choice->pfs.len - (map_get(&choice->pfs, "") != NULL);

	return choice->has_gpus ||
	       (!choice->gpus && !choice->packed && n > 2 && choice->wanted >= n);
}

static struct candidate candidate_of(struct choice *choice, const struct devices *devices,
				     const char *id)
{
	const json_t *device = devices_find(devices, id), *numa = json_at(device, "numa");
	struct pf *pf = pf_of(choice, device);

	pf->free++;
	return (struct candidate){
		.id = id,
		.rank = choice->has_gpus ? TOPOLOGY_PIX : pf->distance,
		.numa = choice->on_any_node     ? 0
			: json_is_integer(numa) ? json_integer_value(numa)
						: NUMA_UNKNOWN,
		.pf = pf,
		.healthy = json_is_true(json_at(device, "healthy")) && !json_at(device, "cause"),
	};
}

static void choose_candidate(struct choice *choice, struct candidate *candidate)
{
	candidate->chosen = true;
	candidate->pf->chosen++;
	choice->wanted--;
	for (size_t i = 0; i < TOPOLOGY_GPUS_MAX; i++)
		choice->served[i] += candidate->pf->gpus >> i & 1;
}

/* Marks those that must be; -1 unless each is available, once. */
static int choose_must(struct choice *choice, const char *const *must, size_t n_must,
		       struct err *err)
{
	auto_call(map_done) struct map by_id = {0};

	for (size_t i = 0; i < choice->n; i++) {
		if (map_get(&by_id, choice->items[i].id))
			return err_set(err, ERR_INVALID, "BadRequest",
				       "device %.64s is available twice", choice->items[i].id);
		map_set(&by_id, choice->items[i].id, &choice->items[i]);
	}
	for (size_t i = 0; i < n_must; i++) {
		struct candidate *candidate = map_get(&by_id, must[i]);

		if (!candidate || candidate->chosen)
			return err_set(err, ERR_INVALID, "BadRequest",
				       "device %.64s must be included and %s", must[i],
				       candidate ? "is named twice" : "is not available");
		choose_candidate(choice, candidate);
	}
	return 0;
}

/* Candidates of one rank and NUMA node, healthy or not, stand together. */
struct group {
	size_t first, end;
	size_t chosen, open;
};

static struct group group_at(const struct choice *choice, size_t first)
{
	struct group group = {.first = first, .end = first};
	const struct candidate *items = choice->items;

	while (group.end < choice->n && items[group.end].rank == items[first].rank &&
	       items[group.end].numa == items[first].numa &&
	       items[group.end].healthy == items[first].healthy) {
		group.chosen += items[group.end].chosen;
		group.open += !items[group.end].chosen;
		group.end++;
	}
	return group;
}

/*
 * The node with most of what must be included, then the smallest into which the rest fits (larger
 * ones stay whole for larger requests), then the largest. Healthy ones before all others, then what
 * is nearest to a free GPU, known nodes before the unknown.
 */
static bool is_better(const struct choice *choice, const struct group *a, const struct group *b)
{
	const struct candidate *x = &choice->items[a->first], *y = &choice->items[b->first];
	bool a_fits = a->open >= choice->wanted, b_fits = b->open >= choice->wanted;

	if (x->healthy != y->healthy)
		return x->healthy;
	if (x->rank != y->rank)
		return x->rank < y->rank;
	if (a->chosen != b->chosen)
		return a->chosen > b->chosen;
	if ((x->numa == NUMA_UNKNOWN) != (y->numa == NUMA_UNKNOWN))
		return x->numa != NUMA_UNKNOWN;
	if (a_fits != b_fits)
		return a_fits;
	if (a->open != b->open)
		return a_fits ? a->open < b->open : a->open > b->open;
	return x->numa < y->numa;
}

/* False when nothing is left. */
static bool best_group(const struct choice *choice, struct group *ret)
{
	bool found = false;

	for (size_t i = 0; i < choice->n;) {
		struct group group = group_at(choice, i);

		i = group.end;
		if (group.open == 0 || (found && !is_better(choice, &group, ret)))
			continue;
		*ret = group;
		found = true;
	}
	return found;
}

/* How many of a PF's devices others have. */
static size_t used_by_others(const struct pf *pf)
{
	return pf->total > pf->free ? pf->total - pf->free : 0;
}

/* Devices of that one of its GPUs which has the fewest. */
static size_t least_served(const struct choice *choice, const struct pf *pf)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < TOPOLOGY_GPUS_MAX; i++)
		if ((pf->gpus >> i & 1) && choice->served[i] < least)
			least = choice->served[i];
	return least;
}

/* For GPUs of the pod: 0 when both are as good. */
static int compare_nearness(const struct choice *choice, const struct pf *a, const struct pf *b)
{
	bool a_is_far = a->distance >= TOPOLOGY_SYS, b_is_far = b->distance >= TOPOLOGY_SYS;
	size_t a_served = least_served(choice, a), b_served = least_served(choice, b);

	if (a_is_far != b_is_far)
		return a_is_far ? 1 : -1;
	if (a->chosen != b->chosen)
		return a->chosen < b->chosen ? -1 : 1;
	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	return (a_served > b_served) - (a_served < b_served);
}

static bool is_better_pf(const struct choice *choice, const struct pf *a, const struct pf *b)
{
	int nearness = choice->has_gpus ? compare_nearness(choice, a, b) : 0;

	if (nearness != 0)
		return nearness < 0;
	if (a->chosen != b->chosen)
		return choice->packed ? a->chosen > b->chosen : a->chosen < b->chosen;
	return choice->packed ? used_by_others(a) > used_by_others(b)
			      : used_by_others(a) < used_by_others(b);
}

/*
 * Queue the group's open candidates by PF; returns the PFs that have some, in the order of their
 * first.
 */
static struct pf **queue_by_pf(const struct choice *choice, const struct group *group,
			       size_t *ret_n)
{
	struct pf **pfs = mem_calloc(group->open + 1, sizeof(*pfs));
	size_t n = 0;

	for (size_t i = group->first; i < group->end; i++) {
		struct candidate *candidate = &choice->items[i];
		struct pf *pf = candidate->pf;

		if (candidate->chosen)
			continue;
		candidate->next = NULL;
		if (pf->head) {
			pf->tail->next = candidate;
		} else {
			pf->head = candidate;
			pfs[n++] = pf;
		}
		pf->tail = candidate;
	}
	*ret_n = n;
	return pfs;
}

static void take_from(struct choice *choice, const struct group *group)
{
	size_t n, take = group->open < choice->wanted ? group->open : choice->wanted;
	auto_free struct pf **pfs = queue_by_pf(choice, group, &n);

	for (; take > 0; take--) {
		struct pf *best = NULL;

		for (size_t i = 0; i < n; i++)
			if (pfs[i]->head && (!best || is_better_pf(choice, pfs[i], best)))
				best = pfs[i];
		/* open counts what queue_by_pf queues. */
		assert(best);
		choose_candidate(choice, best->head);
		best->head = best->head->next;
	}
	/* The queues are of this group only. */
	for (size_t i = 0; i < n; i++)
		pfs[i]->head = NULL;
}

int allocate_prefer(const json_t *resource, const char *const *available, size_t n_available,
		    const char *const *must, size_t n_must, size_t size, const json_t *near,
		    const char **ret_chosen, struct err *err)
{
	size_t n = 0;

	auto_call(choice_done) struct choice choice = {
		.n = n_available,
		.wanted = size,
		.packed = str_eq(json_str_at(resource, "policy"), "packed"),
		.gpus = json_at(near, "gpus"),
		.has_gpus = json_array_size(json_at(near, "gpus")) > 0 &&
			    !json_is_true(json_at(near, "free")),
		.pfs.free_value = free,
	};
	auto_call(devices_done) struct devices devices = {0};
	struct group group = {0};

	assert((available || n_available == 0) && (must || n_must == 0));
	if (size > n_available)
		return err_set(err, ERR_INVALID, "BadRequest",
			       "%s: %zu devices are wanted, %zu are available", name_of(resource),
			       size, n_available);
	if (n_must > size)
		return err_set(err, ERR_INVALID, "BadRequest",
			       "%s: %zu devices must be included, but only %zu are wanted",
			       name_of(resource), n_must, size);
	devices = devices_of(resource);
	choice.items = mem_calloc(n_available + 1, sizeof(*choice.items));
	for (size_t i = 0; i < devices.n; i++)
		pf_of(&choice, devices.items[i].json)->total++;
	choice.on_any_node = is_on_any_node(&choice);
	for (size_t i = 0; i < n_available; i++)
		choice.items[i] = candidate_of(&choice, &devices, available[i]);
	qsort(choice.items, choice.n, sizeof(*choice.items), compare_candidates);
	if (choose_must(&choice, must, n_must, err) < 0)
		return err_in(err, "%s", name_of(resource));
	while (choice.wanted > 0 && best_group(&choice, &group))
		take_from(&choice, &group);
	for (size_t i = 0; i < choice.n; i++)
		if (choice.items[i].chosen)
			ret_chosen[n++] = choice.items[i].id;
	assert(n == size);
	if (size > 0)
		qsort(ret_chosen, size, sizeof(*ret_chosen), str_compare);
	return 0;
}
