// SPDX-License-Identifier: Apache-2.0
/*
 * What this node found out about a pod's addresses: that another host has them. It goes to the
 * pod's SpiderEndpoint. See addresses.h.
 *
 *	READING_NAMED	the endpoint of the pod's name: it is this UID's, mostly
 *	LISTING		else one of this node in the namespace: that of a virtual machine
 *	SAYING		a patch; begun again when another client wrote at the same time
 */
#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"

enum { ATTEMPTS_MAX = 4 };

enum report_state { REPORT_READING_NAMED, REPORT_LISTING, REPORT_SAYING };

struct report {
	TAILQ_ENTRY(report) link;
	struct addresses *addresses;
	char *ns, *name, *uid;
	json_t *conflicts;
	void (*done)(void *arg, const struct err *err);
	void *arg;
	enum report_state state;
	struct kube_call *call;
	struct endpoints_list *list;
	int attempts;
};

static void on_answer(void *arg, json_t *object, const struct err *err);

static void report_free(struct report *report)
{
	TAILQ_REMOVE(&report->addresses->reports, report, link);
	kube_call_cancel(report->call);
	endpoints_list_free(report->list);
	recent_forget(report->addresses, report->uid);
	json_decref(report->conflicts);
	mem_free(report->ns);
	mem_free(report->name);
	mem_free(report->uid);
	mem_free(report);
}

static void finish_report(struct report *report, const struct err *err)
{
	report->done(report->arg, err);
	report_free(report);
}

static void begin_report(struct report *report)
{
	assert(!report->call);
	report->state = REPORT_READING_NAMED;
	report->call = kube_get_within(report->addresses->config.client, &addresses_endpoint,
				       report->ns, report->name, on_answer, report);
}

/* Addresses of other IPAM plugins are in no endpoint. */
static void say_conflicts(struct report *report, const json_t *endpoint)
{
	json_auto_t *known = conflicts_said(endpoint, report->uid), *patch = NULL;
	json_auto_t *all = known ? json_copy(known) : json_array();
	json_auto_t *added = conflicts_of(json_at(endpoint, "status"), report->conflicts, known);
	auto_free char *text = NULL;

	if (json_array_size(added) == 0) {
		finish_report(report, NULL);
		return;
	}
	json_array_extend(all, added);
	text = conflicts_text(report->uid, all);
	log_warn("addresses are in use by somebody else on the network",
		 F_STR("namespace", report->ns), F_STR("pod", report->name),
		 F_STR("conflicts", text));
	patch = json_pack("{s:{s:s, s:{s:s}}}", "metadata", "resourceVersion",
			  json_str_or(json_at(endpoint, "metadata", "resourceVersion"), ""),
			  "annotations", ENDPOINT_CONFLICTS_ANNOTATION, text);
	report->state = REPORT_SAYING;
	report->call =
		kube_patch(report->addresses->config.client, &addresses_endpoint, report->ns,
			   json_name(endpoint), KUBE_PATCH_MERGE, patch,
			   &(struct kube_write){.field_manager = AGENT_NAME}, on_answer, report);
}

static void on_endpoints(void *arg, json_t *endpoints, bool is_last, const struct err *err)
{
	struct report *report = arg;
	json_auto_t *found = NULL;
	json_t *endpoint;
	size_t i;

	json_array_foreach (endpoints, i, endpoint)
		if (!found && str_eq(endpoint_uid(endpoint), report->uid))
			found = json_incref(endpoint);
	if (!err && !found && !is_last) {
		endpoints_list_next(report->list);
		return;
	}
	endpoints_list_free(take_ptr(report->list));
	on_answer(report, found, err);
}

static void on_answer(void *arg, json_t *object, const struct err *err)
{
	struct report *report = arg;

	report->call = NULL;
	if (err && err->class == ERR_CONFLICT && ++report->attempts < ATTEMPTS_MAX) {
		begin_report(report);
		return;
	}
	if (err && !kube_err_is(err, "NotFound")) {
		finish_report(report, err);
		return;
	}
	switch (report->state) {
	case REPORT_READING_NAMED:
		if (str_eq(endpoint_uid(object), report->uid)) {
			say_conflicts(report, object);
			break;
		}
		report->state = REPORT_LISTING;
		report->list =
			endpoints_list_new(report->addresses, report->ns, on_endpoints, report);
		break;
	case REPORT_LISTING:
		if (object)
			say_conflicts(report, object);
		else
			finish_report(report, NULL);
		break;
	case REPORT_SAYING:
		finish_report(report, NULL);
		break;
	}
}

void addresses_report_conflicts(struct addresses *addresses, const char *ns, const char *name,
				const char *uid, const json_t *conflicts,
				void (*done)(void *arg, const struct err *err), void *arg)
{
	struct report *report = mem_new(struct report);

	assert(ns && name && uid && done);
	report->addresses = addresses;
	report->ns = str_dup(ns);
	report->name = str_dup(name);
	report->uid = str_dup(uid);
	report->conflicts = json_incref((json_t *)conflicts);
	report->done = done;
	report->arg = arg;
	TAILQ_INSERT_TAIL(&addresses->reports, report, link);
	recent_forget(addresses, uid);
	begin_report(report);
}

void report_free_all(struct addresses *addresses)
{
	while (!TAILQ_EMPTY(&addresses->reports))
		report_free(TAILQ_FIRST(&addresses->reports));
}
