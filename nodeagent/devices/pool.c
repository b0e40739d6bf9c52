// SPDX-License-Identifier: Apache-2.0
/*
 * A resource in the making: made once under its name, filled by the sources, with the problems and
 * causes that go with it.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"
#include "nodeagent/model/job_folder.h"

/* A node with every NIC misconfigured still has a status that can be read. */
#define CAUSES_MAX   8
#define PROBLEMS_MAX 64

/* ---- problems and causes --------------------------------------------------------------------- */

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

void pools_add_miss(struct strbuf *misses, const char *words, const char *value,
		    const json_t *wanted)
{
	json_t *text;
	size_t i;

	strbuf_addf(misses, "%s%s %s, wanted", misses->len ? "; " : "", words,
		    value ? value : "unknown");
	json_array_foreach ((json_t *)wanted, i, text)
		strbuf_addf(misses, "%s %.40s", i ? " or" : "", json_str_or(text, "?"));
}

void pools_nothing_selected(struct pools *pools, const struct pool *pool, const char *configuration)
{
	const char *name = json_str_at(pool->resource, "name");
	json_t *causes = json_at(pool->resource, "causes"), *cause;
	auto_strbuf struct strbuf text = {0};
	size_t i;

	assert(json_array_size(causes) > 0);
	json_array_foreach (causes, i, cause)
		strbuf_addf(&text, "%s%s", i ? "; " : "", json_string_value(cause));
	pools_problem(pools, name, "NothingSelected",
		      "%s: %.600s: correct the selectors in %s, or keep the resource off this node",
		      name, strbuf_str(&text), configuration);
}

/* ---- resources ------------------------------------------------------------------------------- */

void pool_free(void *arg)
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
	if (job_folder_is_for(pools->input->job_files, name))
		json_put_bool(pool->resource, "jobFiles", true);
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

	assert(prefix && name && source);
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
const json_t *pool_device_before(const struct pool *pool, const char *id)
{
	const json_t *devices = json_at(pool->before, "devices");
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

bool pool_gave(const struct pool *pool, const char *id)
{
	return json_at(pool->allocated, id) != NULL;
}

const char *pools_gave_elsewhere(const struct pools *pools, const struct pool *pool, const char *id)
{
	return pool_gave(pool, id) ? NULL : map_get(&pools->held, id);
}

void pools_add_tokens(struct pools *pools, struct pool *pool, int64_t n, bool healthy,
		      bool has_link)
{
	assert(n >= 0 && pools->tokens <= POOLS_TOKENS_MAX);
	if (n > POOLS_TOKENS_MAX - pools->tokens) {
		pool_cause(pool,
			   "%lld devices on top of the %lld of other resources are more than the "
			   "%d that a node can offer",
			   (long long)n, (long long)pools->tokens, POOLS_TOKENS_MAX);
		return;
	}
	pools->tokens += n;
	for (int64_t i = 0; i < n; i++) {
		json_t *id = json_fmt("%lld", (long long)i);
		bool is_usable = has_link || pool_gave(pool, json_string_value(id));

		json_array_append_new(pool->devices, json_pack("{s:o,s:b}", "id", id, "healthy",
							       healthy && is_usable));
	}
}

void pools_add_gone(struct pools *pools, struct pool *pool, const char *id, const char *cause)
{
	const json_t *before = pool_device_before(pool, id);
	json_t *device = before ? json_copy((json_t *)before) : json_object();

	assert(id && cause && !map_get(&pools->claimed, id));
	json_put_str(device, "id", id);
	json_put_bool(device, "healthy", false);
	json_put_str(device, "cause", cause);
	json_array_append_new(pool->devices, device);
	map_set(&pools->claimed, id, pool);
}

/* "-" stays, though no shell can read such a variable: applications ask for it by this name. */
void pool_add_env(struct pool *pool)
{
	const char *name = json_str_or(json_at(pool->resource, "name"), "");
	auto_strbuf struct strbuf env = {0};

	strbuf_adds(&env, "PCIDEVICE_");
	for (; *name; name++)
		strbuf_addc(
			&env,
			(char)(*name == '.' || *name == '/' ? '_' : toupper((unsigned char)*name)));
	json_put_str(pool->resource, "env", strbuf_str(&env));
}
