/*
 * The frame of pools_compute(): index the host, let each configuration add its pools, put them in
 * order.
 */
#include "nodeagent/pools/pools.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/pools/pools_internal.h"

/* A node with every NIC misconfigured still has a status that can be read. */
#define CAUSES_MAX   8
#define PROBLEMS_MAX 64

/* ---- what is said ---------------------------------------------------------------------------- */

void pools_note(json_t *problems, const char *resource, const char *reason, const char *message)
{
	json_t *entry = json_object();

	json_put_str(entry, "resource", resource);
	json_put_str(entry, "reason", reason);
	json_put_str(entry, "message", message);
	json_array_append_new(problems, entry);
}

static bool has_room(const json_t *list, size_t max, size_t *dropped)
{
	if (json_array_size(list) < max)
		return true;
	(*dropped)++;
	return false;
}

/* A line stays a line, whatever a configuration or a kernel says. */
static char *one_line(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
static char *one_line(const char *fmt, va_list ap)
{
	char *line = str_vprintf(fmt, ap);

	for (char *c = line; *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	return line;
}

/* The entry; borrowed. NULL: there are too many already. */
static json_t *add_problem(struct pools *pools, const char *resource, const char *reason,
			   const char *fmt, va_list ap) __attribute__((format(printf, 4, 0)));
static json_t *add_problem(struct pools *pools, const char *resource, const char *reason,
			   const char *fmt, va_list ap)
{
	auto_free char *message = NULL;

	if (!has_room(pools->problems, PROBLEMS_MAX, &pools->problems_dropped))
		return NULL;
	message = one_line(fmt, ap);
	pools_note(pools->problems, resource, reason, message);
	return json_array_get(pools->problems, json_array_size(pools->problems) - 1);
}

void pools_problem(struct pools *pools, const char *resource, const char *reason, const char *fmt,
		   ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)add_problem(pools, resource, reason, fmt, ap);
	va_end(ap);
}

/* Of a name that a configuration gives: the same on all nodes that read it. */
static void name_problem(struct pools *pools, const char *source, const char *resource,
			 const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
static void name_problem(struct pools *pools, const char *source, const char *resource,
			 const char *reason, const char *fmt, ...)
{
	json_t *problem;
	va_list ap;

	va_start(ap, fmt);
	problem = add_problem(pools, resource, reason, fmt, ap);
	va_end(ap);
	if (problem)
		json_put_str(problem, "source", source);
}

void pool_cause(struct pool *pool, const char *fmt, ...)
{
	json_t *causes = json_object_get(pool->resource, "causes");
	auto_free char *cause = NULL;
	va_list ap;

	if (!has_room(causes, CAUSES_MAX, &pool->causes_dropped))
		return;
	va_start(ap, fmt);
	cause = one_line(fmt, ap);
	va_end(ap);
	json_array_append_new(causes, json_fmt("%s", cause));
}

/* ---- the host -------------------------------------------------------------------------------- */

static void add_function(struct pools *pools, const json_t *seen, const json_t *pf)
{
	const char *address = json_str_at(seen, "pciAddress");
	const json_t *number = json_at(seen, "vfID");

	if (!address)
		return;
	pools->functions[pools->n_functions++] = (struct pools_function){
		.address = address,
		.seen = seen,
		.pf = pf,
		.number = pf && json_is_integer(number) ? json_integer_value(number) : -1,
	};
}

static size_t count_functions(const json_t *list)
{
	size_t count = 0, i;
	json_t *pf;

	json_array_foreach ((json_t *)list, i, pf)
		count += 1 + json_array_size(json_at(pf, "Vfs"));
	return count;
}

static void index_functions(struct pools *pools)
{
	const json_t *lists[] = {json_at(pools->input->observed, "interfaces"),
				 json_at(pools->input->observed, "unusable")};
	json_t *pf, *vf;
	size_t i, j;

	pools->functions = mem_calloc(count_functions(lists[0]) + count_functions(lists[1]) + 1,
				      sizeof(*pools->functions));
	for (size_t l = 0; l < ARRAY_LEN(lists); l++)
		json_array_foreach ((json_t *)lists[l], i, pf) {
			add_function(pools, pf, NULL);
			json_array_foreach (json_at(pf, "Vfs"), j, vf)
				add_function(pools, vf, pf);
		}
	for (i = 0; i < pools->n_functions; i++)
		map_set(&pools->by_address, pools->functions[i].address, &pools->functions[i]);
}

static void index_rdma(struct pools *pools)
{
	json_t *device;
	size_t i;

	pools->rdma = json_object();
	json_array_foreach (json_at(pools->input->observed, "rdma", "devices"), i, device) {
		const char *address = json_str_or(json_at(device, "pciAddress"),
						  json_str_at(device, "netdevPciAddress"));
		json_t *list;

		if (!address)
			continue;
		list = json_object_get(pools->rdma, address);
		if (!list) {
			list = json_array();
			json_put(pools->rdma, address, list);
		}
		json_array_append(list, device);
	}
}

static void index_held(struct pools *pools)
{
	const char *resource, *id;
	json_t *devices, *who;

	json_each (pools->input->allocated, resource, devices)
		json_each (devices, id, who)
			if (map_get(&pools->by_address, id))
				map_set(&pools->held, id, (void *)resource);
}

static void index_dev_names(struct pools *pools)
{
	json_t *name;
	size_t i;

	json_array_foreach ((json_t *)pools->input->dev_names, i, name)
		if (json_is_string(name))
			map_set(&pools->dev_names, json_string_value(name), name);
}

/* ---- resources ------------------------------------------------------------------------------- */

static void pool_free(void *arg)
{
	struct pool *pool = arg;

	json_decref(pool->resource);
	free(pool);
}

static struct pool *pool_new(struct pools *pools, const char *name, const char *kind,
			     const char *source)
{
	struct pool *pool = mem_new(struct pool);

	pool->source = source;
	pool->before = json_find(json_at(pools->input->before, "resources"), "name", name);
	pool->allocated = json_at(pools->input->allocated, name);
	pool->resource = json_object();
	pool->devices = json_array();
	json_put_str(pool->resource, "name", name);
	json_put_str(pool->resource, "kind", kind);
	json_put_str(pool->resource, "policy", pools->input->packed ? "packed" : "spread");
	json_put_str(pool->resource, "permissions", "rw");
	json_put(pool->resource, "causes", json_array());
	json_put(pool->resource, "devices", pool->devices);
	map_set(&pools->pools, name, pool);
	return pool;
}

struct pool *pools_need(struct pools *pools, const char *prefix, const char *name, const char *kind,
			const char *source, bool merge)
{
	auto_free char *full = str_printf("%s/%s", prefix, name);
	const char *fault = pools_name_fault(prefix, name);
	struct pool *pool = map_get(&pools->pools, full);

	if (fault) {
		name_problem(pools, source, full, "BadResourceName",
			     "%s: resource name \"%.320s\" %s; the kubelet would refuse it", source,
			     full, fault);
		return NULL;
	}
	if (!pool)
		return pool_new(pools, full, kind, source);
	if (merge && pool->source == source)
		return pool;
	name_problem(pools, source, full, "DuplicateResource",
		     "%s: resource %s comes from %s already; give one of them another name", source,
		     full, pool->source == source ? "another entry of it" : pool->source);
	return NULL;
}

/* Devices are sorted by id. */
static const json_t *find_device(const json_t *devices, const char *id)
{
	size_t low = 0, high = json_array_size(devices);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const json_t *device = json_array_get(devices, middle);
		int order = strcmp(id, json_str_or(json_at(device, "id"), ""));

		if (order == 0)
			return device;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const json_t *pool_device_before(const struct pool *pool, const char *id)
{
	return find_device(json_at(pool->before, "devices"), id);
}

bool pool_gave(const struct pool *pool, const char *id)
{
	return json_at(pool->allocated, id) != NULL;
}

const char *pools_gave_elsewhere(const struct pools *pools, const struct pool *pool, const char *id)
{
	return pool_gave(pool, id) ? NULL : map_get(&pools->held, id);
}

void pools_add_tokens(struct pools *pools, struct pool *pool, int64_t n, bool healthy)
{
	if (n > POOLS_TOKENS_MAX - pools->tokens) {
		pool_cause(pool,
			   "%lld devices on top of the %lld of other resources are more than the "
			   "%d that a node can offer",
			   (long long)n, (long long)pools->tokens, POOLS_TOKENS_MAX);
		return;
	}
	pools->tokens += n;
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(pool->devices,
				      json_pack("{s:o,s:b}", "id", json_fmt("%lld", (long long)i),
						"healthy", healthy));
}

void pools_add_gone(struct pools *pools, struct pool *pool, const char *id, const char *cause)
{
	const json_t *before = pool_device_before(pool, id);
	json_t *device = before ? json_copy((json_t *)before) : json_object();

	json_put_str(device, "id", id);
	json_put_bool(device, "healthy", false);
	json_put_str(device, "cause", cause);
	json_array_append_new(pool->devices, device);
	map_set(&pools->claimed, id, pool);
}

/*
 * What a pod has and the host has no more: the kubelet is told that it is broken, not that it never
 * was.
 */
static void add_gone(struct pools *pools, struct pool *pool)
{
	const char *id;
	json_t *who;

	if (!str_eq(json_str_at(pool->resource, "kind"), "sriov"))
		return;
	json_each (pool->allocated, id, who) {
		if (map_get(&pools->by_address, id) || map_get(&pools->claimed, id))
			continue;
		pools_add_gone(pools, pool, id, "it is not there any more");
		pool_cause(pool, "%s: it is not there any more, and %s has it", id,
			   json_str_or(who, "a pod"));
	}
}

/* ---- the document ---------------------------------------------------------------------------- */

/* What a configuration's reader had to say. */
static void repeat_problems(struct pools *pools, const json_t *document)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(document, "problems"), i, entry)
		pools_problem(pools, json_str_at(entry, "resource"), json_str_at(entry, "reason"),
			      "%s", json_str_or(json_at(entry, "message"), ""));
}

struct keyed {
	const char *key;
	json_t *value; /* owned while it is not in a list */
};

static int compare_keyed(const void *a, const void *b)
{
	return strcmp(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

/* Elements are objects whose `key` is a string. */
static void sort_by(json_t *list, const char *key)
{
	size_t n = json_array_size(list);
	auto_free struct keyed *items = mem_calloc(n + 1, sizeof(*items));

	for (size_t i = 0; i < n; i++) {
		items[i].value = json_incref(json_array_get(list, i));
		items[i].key = json_str_or(json_at(items[i].value, key), "");
	}
	qsort(items, n, sizeof(*items), compare_keyed);
	for (size_t i = 0; i < n; i++)
		json_array_set_new(list, i, items[i].value);
}

static json_t *pool_finish(struct pool *pool)
{
	size_t dropped = pool->causes_dropped;

	/* Counted apart, so that this line finds room. */
	if (dropped > 0)
		json_array_append_new(json_object_get(pool->resource, "causes"),
				      json_fmt("and %zu more", dropped));
	json_put_int(pool->resource, "wanted", pool->wanted);
	sort_by(pool->devices, "id");
	return json_incref(pool->resource);
}

static json_t *finish(struct pools *pools)
{
	json_t *resources = json_array();
	const char *name;
	void *pool;
	size_t i = 0;

	while (map_next(&pools->pools, &i, &name, &pool)) {
		add_gone(pools, pool);
		json_array_append_new(resources, pool_finish(pool));
	}
	sort_by(resources, "name");
	if (pools->problems_dropped > 0) {
		auto_free char *more = str_printf("and %zu more problems", pools->problems_dropped);

		pools_note(pools->problems, NULL, "MoreProblems", more);
	}
	return json_pack("{s:o,s:O}", "resources", resources, "problems", pools->problems);
}

static void pools_done(struct pools *pools)
{
	free(pools->functions);
	map_done(&pools->by_address);
	map_done(&pools->dev_names);
	map_done(&pools->pools);
	map_done(&pools->held);
	map_done(&pools->claimed);
	json_decref(pools->rdma);
	json_decref(pools->problems);
}

json_t *pools_compute(const struct pools_input *input)
{
	auto_call(pools_done) struct pools pools = {
		.input = input,
		.pools.free_value = pool_free,
		.problems = json_array(),
	};

	index_functions(&pools);
	index_rdma(&pools);
	index_held(&pools);
	index_dev_names(&pools);
	pools_from_groups(&pools);
	pools_from_list(&pools);
	pools_from_shared(&pools);
	pools_from_dev_files(&pools);
	repeat_problems(&pools, input->resource_list);
	repeat_problems(&pools, input->shared);
	repeat_problems(&pools, input->dev_files);
	return finish(&pools);
}
