// SPDX-License-Identifier: Apache-2.0
/*
 * The scheduler of simulated nodes: filters node by node, counts why nodes are out. The nodes
 * process asks for each pod that is bound to none.
 */
#include "cli/simulate/decide/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "cli/simulate/decide/quantity.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define UNSCHEDULABLE "node(s) were unschedulable"
#define TAINTED       "node(s) had untolerated taint"
#define NOT_SELECTED  "node(s) didn't match Pod's node affinity/selector"

/* ---- taints ---------------------------------------------------------------------------------- */

static bool tolerates(const json_t *toleration, const json_t *taint)
{
	const char *key = json_str_at(toleration, "key"),
		   *effect = json_str_at(toleration, "effect");

	if (!str_empty(effect) && !str_eq(effect, json_str_at(taint, "effect")))
		return false;
	if (str_eq(json_str_at(toleration, "operator"), "Exists"))
		return str_empty(key) || str_eq(key, json_str_at(taint, "key"));
	return str_eq(key, json_str_at(taint, "key")) &&
	       str_eq(json_str_or(json_at(toleration, "value"), ""),
		      json_str_or(json_at(taint, "value"), ""));
}

static bool is_tolerated(const json_t *pod, const json_t *taint)
{
	const json_t *toleration;
	size_t i;

	if (str_eq(json_str_at(taint, "effect"), "PreferNoSchedule"))
		return true;
	json_array_foreach (json_at(pod, "spec", "tolerations"), i, toleration)
		if (tolerates(toleration, taint))
			return true;
	return false;
}

static bool tolerates_all(const json_t *pod, const json_t *node)
{
	const json_t *taint;
	size_t i;

	json_array_foreach (json_at(node, "spec", "taints"), i, taint)
		if (!is_tolerated(pod, taint))
			return false;
	return true;
}

static bool is_unschedulable(const json_t *pod, const json_t *node)
{
	json_auto_t *taint = json_pack("{s:s, s:s}", "key", "node.kubernetes.io/unschedulable",
				       "effect", "NoSchedule");

	return json_is_true(json_at(node, "spec", "unschedulable")) && !is_tolerated(pod, taint);
}

/* ---- selectors and affinity ------------------------------------------------------------------ */

static bool is_beyond(const char *value, const json_t *values, bool greater)
{
	const char *than = json_string_value(json_array_get(values, 0));

	if (!value || !than)
		return false;
	return greater ? strtoll(value, NULL, 10) > strtoll(than, NULL, 10)
		       : strtoll(value, NULL, 10) < strtoll(than, NULL, 10);
}

/* A requirement of a term; value: of the label or field, NULL without. */
static bool meets(const json_t *requirement, const char *value)
{
	const char *verb = json_str_or(json_at(requirement, "operator"), "");
	const json_t *values = json_at(requirement, "values");

	if (str_eq(verb, "In"))
		return value && json_list_has(values, value);
	if (str_eq(verb, "NotIn"))
		return !value || !json_list_has(values, value);
	if (str_eq(verb, "Exists"))
		return value != NULL;
	if (str_eq(verb, "DoesNotExist"))
		return value == NULL;
	return is_beyond(value, values, str_eq(verb, "Gt"));
}

static bool matches_term(const json_t *term, const json_t *node)
{
	const json_t *labels = json_at(node, "metadata", "labels"), *one;
	size_t i;

	if (json_array_size(json_at(term, "matchExpressions")) == 0 &&
	    json_array_size(json_at(term, "matchFields")) == 0)
		return false;
	json_array_foreach (json_at(term, "matchExpressions"), i, one)
		if (!meets(one, json_string_value(json_object_get(
					labels, json_str_or(json_at(one, "key"), "")))))
			return false;
	json_array_foreach (json_at(term, "matchFields"), i, one)
		if (!str_eq(json_str_at(one, "key"), "metadata.name") ||
		    !meets(one, json_name(node)))
			return false;
	return true;
}

static bool is_selected(const json_t *pod, const json_t *node)
{
	const json_t *labels = json_at(node, "metadata", "labels");
	const json_t *terms =
		json_at(pod, "spec", "affinity", "nodeAffinity",
			"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms");
	json_t *value;
	const char *key;
	size_t i;

	json_each (json_at(pod, "spec", "nodeSelector"), key, value)
		if (!str_eq(json_string_value(json_object_get(labels, key)),
			    json_string_value(value)))
			return false;
	if (!terms)
		return true;
	json_array_foreach (terms, i, value)
		if (matches_term(value, node))
			return true;
	return false;
}

const char *scheduler_refusal(const json_t *pod, const json_t *node)
{
	if (is_unschedulable(pod, node))
		return UNSCHEDULABLE;
	if (!tolerates_all(pod, node))
		return TAINTED;
	return is_selected(pod, node) ? NULL : NOT_SELECTED;
}

/* ---- resources, and the choice --------------------------------------------------------------- */

/* The first resource that is too scarce, borrowed from `wanted`; NULL: none. */
static const char *scarce(const json_t *wanted, const json_t *entry)
{
	const json_t *allocatable = json_at(entry, "node", "status", "allocatable");
	const char *resource;
	json_t *amount;

	json_each (wanted, resource, amount) {
		double has = quantity_read(json_object_get(allocatable, resource));
		double used = json_number_value(json_at(entry, "used", resource));

		/* Amounts are sums of a few fractions. */
		if (json_number_value(amount) > has - used + 1e-6)
			return resource;
	}
	return NULL;
}

static void count(json_t *reasons, const char *reason)
{
	json_put_int(reasons, reason, json_integer_value(json_object_get(reasons, reason)) + 1);
}

static void refuse(size_t nodes, const json_t *reasons, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	const char *sorted[16], *reason;
	json_t *number;
	size_t n = 0;

	json_each (reasons, reason, number)
		if (n < ARRAY_LEN(sorted))
			sorted[n++] = reason;
	qsort(sorted, n, sizeof(sorted[0]), str_compare);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&text, "%s %lld %s", i ? "," : "",
			    (long long)json_integer_value(json_object_get(reasons, sorted[i])),
			    sorted[i]);
	(void)err_set(err, ERR_TRANSIENT, "FailedScheduling", "0/%zu nodes are available:%s.",
		      nodes, strbuf_str(&text));
}

const char *scheduler_choose(const json_t *pod, const json_t *nodes, struct err *err)
{
	json_auto_t *wanted = quantity_of_pod(pod), *reasons = json_object();
	const char *best = NULL, *name;
	double fewest = 0;
	json_t *entry;

	json_each (nodes, name, entry) {
		double pods = json_number_value(json_at(entry, "used", "pods"));
		const char *why = scheduler_refusal(pod, json_at(entry, "node"));
		const char *lacks = why ? NULL : scarce(wanted, entry);

		if (lacks) {
			auto_free char *text = str_printf("Insufficient %s", lacks);

			count(reasons, text);
		} else if (why) {
			count(reasons, why);
		} else if (!best || pods < fewest || (pods <= fewest && strcmp(name, best) < 0)) {
			best = name;
			fewest = pods;
		}
	}
	if (!best)
		refuse(json_object_size(nodes), reasons, err);
	return best;
}
