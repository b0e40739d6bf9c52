// SPDX-License-Identifier: Apache-2.0
/*
 * Requests and answers. Seen on Kubernetes 1.20: 429 with the budget in details.causes, 500 for two
 * budgets, 400 for a version that is not there.
 */
#include "operator/writer/evictions.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"

struct kube_call *eviction_send(struct kube_client *client, bool is_old_version, const char *key,
				const char *uid, kube_done_fn *done, void *arg)
{
	const char *slash = key ? strchr(key, '/') : NULL, *name;
	auto_free char *ns = NULL, *path = NULL;
	json_auto_t *body = NULL;
	char *text;

	assert(client && key && uid && done);
	ns = str_ndup(key, slash ? (size_t)(slash - key) : 0);
	name = slash ? slash + 1 : key;
	path = kube_path(&kube_pods, ns, name, "eviction", NULL);
	body = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:s}}}", "apiVersion",
			 is_old_version ? "policy/v1beta1" : "policy/v1", "kind", "Eviction",
			 "metadata", "name", name, "namespace", ns, "deleteOptions",
			 "preconditions", "uid", uid);
	text = json_text(body);
	return kube_call(client, &(const struct kube_request){
					 .verb = "create",
					 .method = "POST",
					 .path = path,
					 .content_type = "application/json",
					 .body = text,
					 .body_len = strlen(text),
					 .once = true,
					 .fenced = true,
					 .done = done,
					 .arg = arg,
				 });
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
