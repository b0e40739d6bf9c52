// SPDX-License-Identifier: Apache-2.0
/* Each of them is answered at once, from what is stored. Called by the dispatch of requests. */
#include "cli/simulate/api/subresources.h"

#include <string.h>

#include "cli/simulate/api/garbage.h"
#include "cli/simulate/objects/failure.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/labels.h"

static struct outcome success(int code)
{
	return (struct outcome){code, json_pack("{s:s, s:s, s:{}, s:s, s:i}", "kind", "Status",
						"apiVersion", "v1", "metadata", "status", "Success",
						"code", code)};
}

/* ---- binding --------------------------------------------------------------------------------- */

static void set_scheduled(json_t *pod)
{
	json_t *status = json_need_object(pod, "status"), *left = json_array(), *condition;
	char now[RFC3339_SIZE];
	size_t i;

	rfc3339_write(clock_wall_us(), now);
	json_array_foreach (json_object_get(status, "conditions"), i, condition)
		if (!str_eq(json_str_at(condition, "type"), "PodScheduled"))
			json_array_append(left, condition);
	json_array_append_new(left,
			      json_pack("{s:s, s:s, s:n, s:s}", "type", "PodScheduled", "status",
					"True", "lastProbeTime", "lastTransitionTime", now));
	json_put(status, "conditions", left);
}

struct outcome subresource_bind(struct api *api, const struct resource *pods, const char *ns,
				const char *name, const json_t *body)
{
	auto_free char *key = api_key(ns, name);
	json_auto_t *pod = collection_object(pods->collection, key);
	const char *node = json_str_at(body, "target", "name");
	const char *uid = json_uid(body);

	if (!pod)
		return outcome_not_found(pods, name);
	if (str_empty(node))
		return outcome_bad_request("target.name: must be the name of a node");
	if (uid[0] && !str_eq(uid, json_uid(pod)))
		return outcome_refused(
			409, "Conflict", pods, name,
			"Operation cannot be fulfilled on pods/binding \"%s\": "
			"Precondition failed: UID in precondition: %s, UID in object "
			"meta: %s",
			name, uid, json_uid(pod));
	if (json_at(pod, "metadata", "deletionTimestamp"))
		return outcome_refused(
			409, "Conflict", pods, name,
			"Operation cannot be fulfilled on pods/binding \"%s\": pod %s "
			"is being deleted, cannot be assigned to a host",
			name, name);
	if (json_str_at(pod, "spec", "nodeName"))
		return outcome_refused(
			409, "Conflict", pods, name,
			"Operation cannot be fulfilled on pods/binding \"%s\": pod %s "
			"is already assigned to node \"%s\"",
			name, name, json_str_at(pod, "spec", "nodeName"));
	json_put_str(json_need_object(pod, "spec"), "nodeName", node);
	set_scheduled(pod);
	garbage_put(api->garbage, pods->collection, pod);
	garbage_settle(api->garbage);
	return success(201);
}

/* ---- eviction -------------------------------------------------------------------------------- */

/* Of a number or a percentage of `total`, rounded up; -1: neither. */
static int64_t share(const json_t *value, int64_t total)
{
	const char *text = json_string_value(value);
	size_t len = text ? strlen(text) : 0;
	auto_free char *number = NULL;
	int64_t percent;

	if (json_is_integer(value))
		return json_integer_value(value);
	if (len < 2 || text[len - 1] != '%')
		return -1;
	number = str_ndup(text, len - 1);
	return str_to_int(number, 0, 100, &percent) ? (percent * total + 99) / 100 : -1;
}

static bool is_healthy(const json_t *outline, const char *going)
{
	return str_eq(json_str_at(outline, "status", "phase"), "Running") &&
	       !str_eq(json_name(outline), going);
}

/* May one more of the pods that the budget selects go? */
static bool budget_allows(const struct resource *pods, const char *ns, const json_t *budget,
			  const char *name)
{
	const json_t *selector = json_at(budget, "spec", "selector");
	const json_t *min = json_at(budget, "spec", "minAvailable");
	const json_t *max = json_at(budget, "spec", "maxUnavailable");
	int64_t total = 0, healthy = 0;

	for (size_t i = 0; i < pods->collection->len; i++) {
		const json_t *outline = pods->collection->entries[i]->outline;

		if (!str_eq(json_namespace(outline), ns) ||
		    !label_selector_matches(selector, json_at(outline, "metadata", "labels")))
			continue;
		total++;
		healthy += is_healthy(outline, name);
	}
	if (min)
		return healthy >= share(min, total);
	return !max || total - healthy <= share(max, total);
}

static const json_t *budget_in_the_way(const struct resource *pods, const struct resource *budgets,
				       const char *ns, const json_t *pod, json_t **owned)
{
	for (size_t i = 0; i < budgets->collection->len; i++) {
		json_t *budget = collection_object(budgets->collection,
						   budgets->collection->entries[i]->key);

		if (str_eq(json_namespace(budget), ns) && json_at(budget, "spec", "selector") &&
		    label_selector_matches(json_at(budget, "spec", "selector"),
					   json_at(pod, "metadata", "labels")) &&
		    !budget_allows(pods, ns, budget, json_name(pod))) {
			*owned = budget;
			return budget;
		}
		json_decref(budget);
	}
	return NULL;
}

struct outcome subresource_evict(struct api *api, const struct resource *pods, const char *ns,
				 const char *name, const json_t *body, bool dry_run)
{
	const struct resource *budgets =
		resources_find(&api->resources, "policy", "v1", "poddisruptionbudgets");
	auto_free char *key = api_key(ns, name);
	json_auto_t *pod = collection_object(pods->collection, key), *budget = NULL;
	const json_t *grace = json_at(body, "deleteOptions", "gracePeriodSeconds");
	const char *phase, *uid = json_str_at(body, "deleteOptions", "preconditions", "uid");
	bool is_gone = false;

	if (!pod)
		return outcome_not_found(pods, name);
	if (uid && !str_eq(uid, json_uid(pod)))
		return outcome_refused(
			409, "Conflict", pods, name,
			"Precondition failed: UID in precondition: %s, UID in object "
			"meta: %s",
			uid, json_uid(pod));
	phase = json_str_or(json_at(pod, "status", "phase"), "");
	if (!str_eq(phase, "Succeeded") && !str_eq(phase, "Failed") && !str_eq(phase, "Pending") &&
	    budget_in_the_way(pods, budgets, ns, pod, &budget)) {
		json_auto_t *causes = json_array(), *details = NULL;

		cause_add(causes, "DisruptionBudget", "",
			  "The disruption budget %s does not let another pod go now",
			  json_name(budget));
		details = json_pack("{s:O}", "causes", causes);
		return outcome_of(failure_status(429, "TooManyRequests",
						 "Cannot evict pod as it would violate the pod's "
						 "disruption budget.",
						 details));
	}
	if (dry_run || json_list_has(json_at(body, "deleteOptions", "dryRun"), "All"))
		return success(201);
	json_decref(garbage_delete(api->garbage, pods, key, PROPAGATE_BACKGROUND,
				   json_is_integer(grace) ? json_integer_value(grace) : -1,
				   &is_gone));
	garbage_settle(api->garbage);
	return success(201);
}

/* ---- tokens and reviews ---------------------------------------------------------------------- */

struct outcome subresource_token(struct api *api, const struct resource *accounts, const char *ns,
				 const char *name, const json_t *body)
{
	auto_free char *key = api_key(ns, name);
	int64_t seconds = json_integer_value(json_at(body, "spec", "expirationSeconds"));
	auto_strbuf struct strbuf token = {0};
	char expires[RFC3339_SIZE];
	unsigned char bytes[24];
	json_t *answer;

	if (!collection_get(accounts->collection, key))
		return outcome_not_found(accounts, name);
	random_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		strbuf_addf(&token, "%02x", bytes[i]);
	map_set(&api->tokens, strbuf_str(&token),
		str_printf("system:serviceaccount:%s:%s", ns, name));
	rfc3339_write(clock_wall_us() +
			      (seconds > 0 && seconds < INT32_MAX ? seconds : 3600) * 1000000,
		      expires);
	answer = json_is_object(body) ? json_deep_copy(body) : json_object();
	json_put_str(answer, "kind", "TokenRequest");
	json_put_str(answer, "apiVersion", "authentication.k8s.io/v1");
	json_put(answer, "status",
		 json_pack("{s:s, s:s}", "token", strbuf_str(&token), "expirationTimestamp",
			   expires));
	return (struct outcome){201, answer};
}

struct outcome subresource_review(struct api *api, const struct resource *resource,
				  const json_t *body)
{
	auto_free char *version = resource_api_version(resource);
	const char *token = json_str_or(json_at(body, "spec", "token"), "");
	const char *user = map_get(&api->tokens, token);
	json_t *answer = json_is_object(body) ? json_deep_copy(body) : json_object();

	json_put_str(answer, "kind", resource->kind);
	json_put_str(answer, "apiVersion", version);
	if (!str_eq(resource->plural, "tokenreviews"))
		json_put(answer, "status", json_pack("{s:b}", "allowed", true));
	else if (user)
		json_put(answer, "status",
			 json_pack("{s:b, s:o}", "authenticated", true, "user",
				   json_pack("{s:s, s:s, s:[s, s]}", "username", user, "uid", user,
					     "groups",
					     str_eq(user, API_ADMIN) ? "system:masters"
								     : "system:serviceaccounts",
					     "system:authenticated")));
	else
		json_put(answer, "status", json_pack("{s:b}", "authenticated", false));
	return (struct outcome){201, answer};
}
