// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies and answers. Seen on Kubernetes 1.20: 429 with the budget in details.causes, 500 for two
 * budgets, 400 for a version that is not there.
 */
#include "operator/writer/evictions.h"

#include <assert.h>
#include <string.h>

#include "lib/json/json.h"

json_t *eviction_body(bool is_old_version, const char *ns, const char *pod, const char *uid)
{
	assert(ns && pod && uid);
	return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:s}}}", "apiVersion",
			 is_old_version ? "policy/v1beta1" : "policy/v1", "kind", "Eviction",
			 "metadata", "name", pod, "namespace", ns, "deleteOptions", "preconditions",
			 "uid", uid);
}

bool eviction_is_version_unknown(const struct kube_response *response)
{
	return response && response->status == 400 && response->body &&
	       strstr(response->body, "no kind \\\"Eviction\\\" is registered");
}

static json_t *refusal(const char *reason, const char *message, const char *remedy)
{
	return json_pack("{s:s, s:o}", "reason", reason, "message",
			 json_fmt("%.400s%s", message, remedy));
}

json_t *eviction_answer(const struct kube_response *response, const struct err *err)
{
	int status = response ? response->status : 0;

	assert(response || err);
	if (!err || status == 404 || status == 409)
		return json_object();
	if (status == 429) {
		json_auto_t *body = json_parse(response->body, response->body_len, NULL);
		const json_t *cause = json_array_get(json_at(body, "details", "causes"), 0);
		const char *message = json_str_at(cause, "message");

		/*
		 * The budget says so itself: "The disruption budget web needs 2 healthy pods and
		 * has 2 currently".
		 */
		return refusal("PdbRefuses", message ? message : err->text,
			       ": scale the workload up, or end the pod");
	}
	if (status == 500 && strstr(response->body, "more than one PodDisruptionBudget"))
		return refusal("TwoPdbs", "two PodDisruptionBudgets select it",
			       ", so the API server evicts it never: leave it to one of them, or "
			       "end the pod");
	return refusal("EvictionFailed", err->text, "");
}
