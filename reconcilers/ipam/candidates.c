// SPDX-License-Identifier: Apache-2.0
/*
 * allocate.c calls this for each NIC that asks. Names are checked and patterns expanded once for
 * each pod (memo); which of the pools may serve is left to filter.c.
 */
#include "reconcilers/ipam/candidates.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/pod_networks.h"
#include "reconcilers/ipam/pool_pattern.h"

#define WRONG "WrongAnnotation"

static const char *const family_keys[] = {"ipv4", "ipv6"};

/* Annotations were read by a decoder that takes keys in any case. Borrowed. */
static const json_t *member(const json_t *object, const char *name)
{
	const char *key;
	json_t *value;

	json_each (object, key, value)
		if (strcasecmp(key, name) == 0 && !json_is_null(value))
			return value;
	return NULL;
}

static bool is_list_of_names(const json_t *list)
{
	json_t *name;
	size_t i;

	if (list && !json_is_array(list))
		return false;
	json_array_foreach (list, i, name)
		if (!json_is_string(name))
			return false;
	return true;
}

/* ---- patterns -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the pools of a family that `wanted` says yes to, sorted. Returns a new array. */
static json_t *pools_that(const json_t *world, int version,
			  bool (*wanted)(const struct pool_pattern *pattern, const json_t *pool),
			  const struct pool_pattern *pattern)
{
	const json_t *pools = world_kind(world, KIND_IP_POOL);
	const char **names = calloc(json_object_size(pools) + 1, sizeof(*names));
	json_t *list = json_array(), *pool;
	const char *name;
	size_t n = 0;

	json_each (pools, name, pool)
		if (ip_pool_family(json_at(pool, "spec")) == version && wanted(pattern, pool))
			names[n++] = name;
	qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(names[i]));
	free(names);
	return list;
}

static bool pool_matches(const struct pool_pattern *pattern, const json_t *pool)
{
	return pool_pattern_matches(pattern, json_name(pool));
}

static bool pool_is_default(const struct pool_pattern *pattern, const json_t *pool)
{
	return json_is_true(json_at(pool, "spec", "default"));
}

/* The pools that a pattern matches, of one pod each pattern once. Borrowed, or NULL with err. */
static const json_t *find_matches(const json_t *world, int version, const char *text, json_t *memo,
				  struct err *err)
{
	json_t *known = json_need_object(memo, "patterns");
	auto_free char *key = str_printf("%d %s", version, text);

	if (!json_object_get(known, key)) {
		auto_call(pool_pattern_done) struct pool_pattern pattern = {0};

		if (!pool_pattern_read(text, &pattern)) {
			err_set(err, ERR_INVALID, WRONG, "pattern \"%.64s\" has a [ without its ]",
				text);
			return NULL;
		}
		if (json_object_size(known) >= LIMIT_POOL_PATTERNS) {
			err_set(err, ERR_INVALID, "TooLarge",
				"more than %d different patterns of names of pools, at most so "
				"many "
				"are read: write names",
				LIMIT_POOL_PATTERNS);
			return NULL;
		}
		json_put(known, key, pools_that(world, version, pool_matches, &pattern));
	}
	return json_object_get(known, key);
}

/* Names with patterns replaced by the pools that they match. Returns new, or NULL with err. */
static json_t *expand_patterns(const json_t *world, int version, const json_t *names, json_t *memo,
			       struct err *err)
{
	json_auto_t *list = json_array();
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		const char *text = json_string_value(name);
		const json_t *found;

		if (!pool_name_is_pattern(text)) {
			json_array_append(list, name);
			continue;
		}
		found = find_matches(world, version, text, memo, err);
		if (!found)
			return NULL;
		json_array_extend(list, (json_t *)found);
	}
	return json_incref(list);
}

/* The pools of all NICs of a pod together, each list counted once. */
static int count_candidates(size_t n, json_t *memo, struct err *err)
{
	json_int_t before = json_integer_value(json_at(memo, "candidates"));

	json_put_int(memo, "candidates", before + (json_int_t)n);
	if (before + (json_int_t)n <= LIMIT_CANDIDATES)
		return 0;
	return err_set(
		err, ERR_INVALID, "TooLarge",
		"more than %d pools to choose from for all NICs together, at most so many are "
		"read: name fewer pools",
		LIMIT_CANDIDATES);
}

static int refuse_twins(const json_t *names, const char *nic, struct err *err)
{
	json_auto_t *seen = json_object();
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		if (json_object_get(seen, json_string_value(name)))
			return err_set(err, ERR_INVALID, WRONG,
				       "pool %.64s is named twice for NIC %s, perhaps by a pattern "
				       "and by its "
				       "name: name it once",
				       json_string_value(name), nic);
		json_object_set_new(seen, json_string_value(name), json_true());
	}
	return 0;
}

/* ---- wants ----------------------------------------------------------------------------------- */

static int check_pools_exist(const json_t *world, const json_t *pools, const char *nic,
			     struct err *err)
{
	json_t *name;
	size_t i;

	json_array_foreach (pools, i, name)
		if (!world_get(world, KIND_IP_POOL, json_string_value(name)))
			return err_set(
				err, ERR_INVALID, "PoolNotFound",
				"pool %.64s, named for NIC %s, does not exist: create it, or "
				"correct the name",
				json_string_value(name), nic);
	return 0;
}

/* The pools of a family for a NIC, found once for each pod. Borrowed, or NULL with err. */
static json_t *resolve_pools(const json_t *world, size_t family, const json_t *names,
			     const char *nic, json_t *memo, struct err *err)
{
	json_t *known = json_need_object(memo, family_keys[family]);
	json_auto_t *pools = NULL;

	if (json_object_get(known, nic))
		return json_object_get(known, nic);
	pools = expand_patterns(world, family == 0 ? 4 : 6, names, memo, err);
	if (!pools || count_candidates(json_array_size(pools), memo, err) < 0 ||
	    refuse_twins(pools, nic, err) < 0 || check_pools_exist(world, pools, nic, err) < 0)
		return NULL;
	json_put(known, nic, json_incref(pools));
	return json_object_get(known, nic);
}

static int check_names(const json_t *from, const char *nic, struct err *err)
{
	for (size_t f = 0; f < ARRAY_LEN(family_keys); f++) {
		const json_t *names = member(from, family_keys[f]);

		if (!is_list_of_names(names))
			return err_set(err, ERR_INVALID, WRONG,
				       "%s must be a list of names of pools", family_keys[f]);
		if (json_array_size(names) > LIMIT_POOL_NAMES)
			return err_set(err, ERR_INVALID, "TooLarge",
				       "%zu names of pools in %s for NIC %s, at most %d are read: "
				       "name fewer pools",
				       json_array_size(names), family_keys[f], nic,
				       LIMIT_POOL_NAMES);
	}
	return 0;
}

/* What asks of one pod share. Borrowed. */
struct finding {
	const json_t *world, *pod;
	const struct ipam_settings *settings;
	json_t *memo;
};

/*
 * Add what the lists of `from` mean for a NIC. Members are found in any case: `from` may be an
 * annotation.
 */
static int add_want(const struct finding *in, const json_t *from, const char *nic,
		    const json_t *clean, const json_t *ask, json_t *wants, struct err *err)
{
	json_auto_t *want = json_object();

	json_put_str(want, "nic", nic);
	json_put_bool(want, "cleanGateway", json_is_true(clean));
	json_put(want, "masterAddresses", json_incref((json_t *)json_at(ask, "masterAddresses")));
	json_put(want, "isKnownOnly", json_incref((json_t *)json_at(ask, "isKnownOnly")));
	for (size_t f = 0; f < ARRAY_LEN(family_keys); f++) {
		const json_t *names = member(from, family_keys[f]);
		json_t *pools;

		if (!(f == 0 ? in->settings->ipv4 : in->settings->ipv6) ||
		    json_array_size(names) == 0)
			continue;
		pools = resolve_pools(in->world, f, names, nic, in->memo, err);
		if (!pools)
			return -1;
		if (json_array_size(pools))
			json_put(want, family_keys[f], json_incref(pools));
	}
	json_array_append(wants, want);
	return 0;
}

int candidates_refuse_text(const char *text, const char *must_be, struct err *err)
{
	const struct err why = err ? *err : (struct err){0};
	bool has_place = str_eq(why.reason, "BadJson");

	return err_set(err, ERR_INVALID, WRONG, "\"%.64s%s\" must be a JSON %s%s%s%s", text,
		       strlen(text) > 64 ? "…" : "", must_be, has_place ? " (" : "",
		       has_place ? why.text : "", has_place ? ")" : "");
}

/* As json_parse() of an annotation, of one pod each once. Returns a reference, or NULL with err. */
static json_t *parse_once(json_t *memo, const char *key, const char *text, struct err *err)
{
	json_t *known = json_need_object(memo, "parsed");

	if (!json_object_get(known, key))
		json_put(known, key, limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, err));
	return json_incref(json_object_get(known, key));
}

static bool selects_something(const json_t *wants)
{
	json_t *want;
	size_t i;

	json_array_foreach (wants, i, want)
		if (json_at(want, "ipv4") || json_at(want, "ipv6"))
			return true;
	return false;
}

/* networks: as of pod_networks(); NULL: not known. */
static bool may_come(const json_t *networks, const char *nic)
{
	return str_eq(nic, "eth0") || !networks || json_find(networks, "interface", nic) != NULL;
}

bool pod_may_have_nic(const json_t *pod, const struct ipam_settings *settings, const char *nic)
{
	const char *text = json_str_at(pod, "metadata", "annotations", NETWORKS_ANNOTATION);
	json_auto_t *networks = text ? pod_networks(pod, settings, NULL) : NULL;

	return may_come(networks, nic);
}

/* ---- source 1 -------------------------------------------------------------------------------- */

/* The rules of a list that names interfaces, or names none. */
static int check_interfaces(const json_t *items, const char *nic, bool *ret_named, struct err *err)
{
	json_auto_t *seen = json_object();
	json_t *item;
	size_t i, named = 0;

	if (json_array_size(items) == 0)
		return err_set(err, ERR_INVALID, WRONG,
			       "the list is empty: name a pool for each NIC");
	json_array_foreach (items, i, item) {
		const json_t *interface = member(item, "interface");

		if (!json_is_object(item) || (interface && !json_is_string(interface)))
			return err_set(
				err, ERR_INVALID, WRONG,
				"item %zu must be an object with \"interface\", \"ipv4\", \"ipv6\"",
				i);
		if (!*json_str_or(interface, ""))
			continue;
		named++;
		if (json_object_get(seen, json_string_value(interface)))
			return err_set(err, ERR_INVALID, WRONG,
				       "interface %.32s stands there twice",
				       json_string_value(interface));
		json_object_set_new(seen, json_string_value(interface), json_true());
	}
	if (named && named < json_array_size(items))
		return err_set(err, ERR_INVALID, WRONG,
			       "%zu of %zu items name an interface: all must, or none", named,
			       json_array_size(items));
	if (named && !json_object_get(seen, nic))
		return err_set(err, ERR_INVALID, WRONG,
			       "there is no item for NIC %s, which takes its addresses from pools, "
			       "too: add one",
			       nic);
	*ret_named = named > 0;
	return 0;
}

/* An address for a NIC that never comes would be lost to all others. */
static int check_nics_come(const struct finding *in, const json_t *items, const char *asking,
			   struct err *err)
{
	const char *text = json_str_at(in->pod, "metadata", "annotations", NETWORKS_ANNOTATION);
	json_auto_t *networks = text ? pod_networks(in->pod, in->settings, NULL) : NULL;
	json_t *item;
	size_t i;

	json_array_foreach (items, i, item) {
		const char *nic = json_string_value(member(item, "interface"));

		if (!str_eq(nic, asking) && !may_come(networks, nic))
			return err_set(
				err, ERR_INVALID, "NoPool",
				"item %zu is for NIC %.32s, and annotation " NETWORKS_ANNOTATION
				" asks for no such NIC: add the network, or take the item out",
				i, nic);
	}
	return 0;
}

static int from_pools(const struct finding *in, const char *text, const json_t *ask, json_t *wants,
		      struct err *err)
{
	json_auto_t *items = parse_once(in->memo, IPAM_ANNOTATION_POOLS, text, err);
	bool is_named = false;
	json_t *item;
	size_t i;

	if (!items && str_eq(err->reason, "TooLarge"))
		return -1;
	if (!json_is_array(items))
		return candidates_refuse_text(text, "list of {\"interface\", \"ipv4\", \"ipv6\"}",
					      err);
	if (json_array_size(items) > LIMIT_NETWORKS + 1)
		return err_set(err, ERR_INVALID, "TooLarge",
			       "%zu items, at most %d are read: a pod has no more NICs",
			       json_array_size(items), LIMIT_NETWORKS + 1);
	if (check_interfaces(items, json_str_at(ask, "nic"), &is_named, err) < 0 ||
	    (is_named && check_nics_come(in, items, json_str_at(ask, "nic"), err) < 0))
		return -1;
	json_array_foreach (items, i, item) {
		auto_free char *number = str_printf("%zu", i);
		const char *nic = is_named ? json_string_value(member(item, "interface")) : number;

		if (check_names(item, nic, err) < 0 ||
		    add_want(in, item, nic, member(item, "cleangateway"), ask, wants, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the other sources ----------------------------------------------------------------------- */

static int from_pool(const struct finding *in, const char *text, const json_t *ask, json_t *wants,
		     struct err *err)
{
	json_auto_t *lists = parse_once(in->memo, IPAM_ANNOTATION_POOL, text, err);
	const char *nic = json_str_at(ask, "nic");

	if (!lists && str_eq(err->reason, "TooLarge"))
		return -1;
	if (!json_is_object(lists) && !json_is_null(lists))
		return candidates_refuse_text(text, "object {\"ipv4\": […], \"ipv6\": […]}", err);
	if (check_names(lists, nic, err) < 0)
		return -1;
	return add_want(in, lists, nic, json_at(ask, "cleanGateway"), ask, wants, err);
}

/* The lists of a namespace's annotations; *ret stays NULL when both are absent or empty. */
static int read_namespace(const json_t *namespace, json_t *memo, json_t **ret, struct err *err)
{
	static const char *const keys[] = {IPAM_ANNOTATION_NS_IPV4, IPAM_ANNOTATION_NS_IPV6};
	json_auto_t *lists = json_object();

	for (size_t f = 0; f < ARRAY_LEN(keys); f++) {
		const json_t *value = json_at(namespace, "metadata", "annotations", keys[f]);
		const char *text = json_string_value(value);
		json_auto_t *list = text ? parse_once(memo, keys[f], text, err) : NULL;

		if (limits_check_reduced(value, err) < 0 ||
		    (text && !list && str_eq(err->reason, "TooLarge")))
			return err_in(err, "namespace %s, annotation %s", json_name(namespace),
				      keys[f]);
		if (text && !json_is_null(list) && (!list || !is_list_of_names(list))) {
			(void)candidates_refuse_text(text, "list of names of pools", err);
			return err_in(err, "namespace %s, annotation %s", json_name(namespace),
				      keys[f]);
		}
		if (json_array_size(list))
			json_put(lists, family_keys[f], json_incref(list));
	}
	if (json_object_size(lists))
		*ret = json_incref(lists);
	return 0;
}

static json_t *default_pools(const json_t *world)
{
	json_t *lists = json_object();

	for (size_t f = 0; f < ARRAY_LEN(family_keys); f++) {
		json_auto_t *pools = pools_that(world, f == 0 ? 4 : 6, pool_is_default, NULL);

		if (json_array_size(pools))
			json_put(lists, family_keys[f], json_incref(pools));
	}
	return lists;
}

static int from_below(const struct finding *in, const json_t *ask, json_t *wants, struct err *err)
{
	const json_t *namespace = world_get(in->world, KIND_NAMESPACE, json_namespace(in->pod));
	const char *nic = json_str_at(ask, "nic");
	json_auto_t *lists = NULL;

	if (read_namespace(namespace, in->memo, &lists, err) < 0)
		return -1;
	if (!lists &&
	    (json_array_size(json_at(ask, "ipv4")) || json_array_size(json_at(ask, "ipv6"))))
		lists = json_incref((json_t *)ask);
	if (lists && check_names(lists, nic, err) < 0)
		return -1;
	if (!lists) {
		if (!json_at(in->memo, "default"))
			json_put(in->memo, "default", default_pools(in->world));
		lists = json_incref(json_at(in->memo, "default"));
	}
	if (json_object_size(lists) == 0)
		return err_set(err, ERR_INVALID, "NoPool",
			       "no pool is named for NIC %s: not by an annotation of the pod or "
			       "its namespace, "
			       "not by its network, and no pool has spec.default: true",
			       nic);
	return add_want(in, lists, nic, json_at(ask, "cleanGateway"), ask, wants, err);
}

static json_t *find_wants(const struct finding *in, const json_t *ask, struct err *err)
{
	const json_t *annotations = json_at(in->pod, "metadata", "annotations");
	const char *pools = json_str_at(annotations, IPAM_ANNOTATION_POOLS);
	const char *pool = json_str_at(annotations, IPAM_ANNOTATION_POOL);
	json_auto_t *wants = json_array();
	struct err own = {0}; /* NULL is no error that can be read */

	if (!err)
		err = &own;
	if (pools) {
		if (from_pools(in, pools, ask, wants, err) < 0) {
			err_in(err, "annotation " IPAM_ANNOTATION_POOLS);
			return NULL;
		}
	} else if (pool) {
		if (from_pool(in, pool, ask, wants, err) < 0) {
			err_in(err, "annotation " IPAM_ANNOTATION_POOL);
			return NULL;
		}
	} else if (from_below(in, ask, wants, err) < 0) {
		return NULL;
	}
	if (!selects_something(wants)) {
		err_set(err, ERR_INVALID, "NoAddressForNic",
			"NIC %s gets no address: what names its pools selects none, or only those "
			"of a family "
			"that is switched off",
			json_str_at(ask, "nic"));
		return NULL;
	}
	return json_incref(wants);
}

json_t *candidates_find(const json_t *world, const json_t *pod, const json_t *ask,
			const struct ipam_settings *settings, json_t *memo, struct err *err)
{
	json_auto_t *own = memo ? NULL : json_object();
	const struct finding in = {world, pod, settings, memo ? memo : own};
	const char *nic = json_str_or(json_at(ask, "nic"), "");
	size_t masters = json_array_size(json_at(ask, "masterAddresses"));
	json_t *known = json_need_object(in.memo, "wants");
	json_t *wants = json_object_get(known, nic);

	assert(pod && ask && settings);
	if (wants)
		return json_incref(wants);
	if (limits_check_pod(pod, err) < 0)
		return NULL;
	if (masters > LIMIT_MASTER_ADDRESSES) {
		err_set(err, ERR_INVALID, "TooLarge",
			"%zu masterAddresses for NIC %s, at most %d are read", masters, nic,
			LIMIT_MASTER_ADDRESSES);
		return NULL;
	}
	wants = find_wants(&in, ask, err);
	if (wants)
		json_put(known, nic, json_incref(wants));
	return wants;
}

/* ---- names ----------------------------------------------------------------------------------- */

static size_t at_most_patterns(size_t n)
{
	return n < LIMIT_POOL_PATTERNS ? n : LIMIT_POOL_PATTERNS;
}

size_t candidates_count_patterns(const char *text)
{
	bool is_string = false, has_sign = false;
	size_t n = 0;

	/* Brackets of lists stand outside of strings. An escape may be any character. */
	for (; *text; text++) {
		if (*text == '"') {
			n += is_string && has_sign;
			is_string = !is_string;
			has_sign = false;
		} else if (is_string && strchr("*?[\\", *text)) {
			has_sign = true;
			if (*text == '\\' && text[1])
				text++;
		}
	}
	return at_most_patterns(n);
}

struct visit {
	void (*fn)(void *arg, const char *pool);
	void *arg;
	size_t names, patterns;
};

static void visit_strings(struct visit *visit, const json_t *value)
{
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_string(value)) {
		visit->names++;
		visit->patterns += pool_name_is_pattern(json_string_value(value));
		visit->fn(visit->arg, json_string_value(value));
	}
	json_array_foreach (value, i, part)
		visit_strings(visit, part);
	json_each (value, key, part)
		visit_strings(visit, part);
}

static void visit_annotation(struct visit *visit, const json_t *object, const char *key)
{
	const char *text = json_str_at(object, "metadata", "annotations", key);
	json_auto_t *value =
		text ? limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, NULL) : NULL;

	visit_strings(visit, value);
}

/* What a network's configuration names for one NIC. */
static void visit_ask(struct visit *visit, const json_t *ask)
{
	for (size_t f = 0; f < ARRAY_LEN(family_keys); f++) {
		const json_t *names = json_at(ask, family_keys[f]);

		/* More are refused before one is looked at. */
		if (json_array_size(names) > LIMIT_POOL_NAMES)
			visit->names++;
		else
			visit_strings(visit, names);
	}
}

struct candidate_names candidates_visit_names(const json_t *pod, const json_t *namespace,
					      const json_t *asks,
					      void (*visit_fn)(void *arg, const char *pool),
					      void *arg)
{
	struct visit visit = {.fn = visit_fn, .arg = arg};
	struct candidate_names found = {0};
	size_t of_pod, annotated, patterns, i;
	json_t *ask;

	assert(visit_fn);
	visit_annotation(&visit, pod, IPAM_ANNOTATION_POOLS);
	visit_annotation(&visit, pod, IPAM_ANNOTATION_POOL);
	of_pod = visit.names;
	patterns = visit.patterns;
	visit_annotation(&visit, namespace, IPAM_ANNOTATION_NS_IPV4);
	visit_annotation(&visit, namespace, IPAM_ANNOTATION_NS_IPV6);
	annotated = visit.names;
	if (!of_pod)
		patterns = visit.patterns;
	json_array_foreach (asks, i, ask) {
		const struct visit before = visit;
		bool is_open;

		visit_ask(&visit, ask);
		is_open = annotated
				  ? patterns > 0
				  : visit.names == before.names || visit.patterns > before.patterns;
		found.is_open |= annotated == 0 && is_open;
		found.open_asks += is_open;
		if (annotated)
			found.names += of_pod ? of_pod : annotated;
		else
			found.names += visit.names - before.names;
		if (json_array_size(json_at(ask, "masterAddresses")) > found.masters)
			found.masters = json_array_size(json_at(ask, "masterAddresses"));
	}
	found.is_open |= visit.patterns > 0;
	found.patterns = of_pod ? 0 : at_most_patterns(visit.patterns);
	return found;
}
