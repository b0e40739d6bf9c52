// SPDX-License-Identifier: Apache-2.0
/*
 * The mirror's callbacks say what works and what does not; a leader repeats it, since its
 * predecessor's events may be old.
 */
#include "operator/informer_reports.h"

#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/kube/status.h"
#include "operator/cache/kinds.h"

void informer_reports_init(struct informer_reports *r, struct kube_client *client,
			   struct dependency_health *troubles, struct recorder *recorder,
			   const struct event_object *self)
{
	assert(troubles);
	*r = (struct informer_reports){.troubles = troubles, .recorder = recorder, .self = self};
	r->nad_definition = nad_definition_new(client);
	for (size_t i = 0; operator_kinds[i].kind; i++)
		dependency_health_add(troubles, operator_kinds[i].kind,
				      operator_kinds[i].optional || operator_kinds[i].on_demand);
}

void informer_reports_done(struct informer_reports *r)
{
	nad_definition_free(r->nad_definition);
}

void informer_reports_synced(struct informer_reports *r, const struct mirror *mirror,
			     const char *kind)
{
	(void)dependency_health_end(r->troubles, kind);
	log_info("mirrored", F_STR("kind", kind),
		 F_INT("objects", (int64_t)cache_len(mirror_cache(mirror, kind))));
}

static void emit(const struct informer_reports *r, bool warning, const char *reason,
		 const char *message)
{
	if (r->leading)
		recorder_emit(r->recorder, r->self, warning, reason, message);
}

static void emit_trouble(void *arg, const char *kind, const char *reason, const char *text)
{
	auto_free char *message = str_printf("cannot watch %s: %s", kind, text);

	emit(arg, true, "WatchFailed", message);
}

/* The list may say so before we lead, and says it once. */
static void define_nads(struct informer_reports *r)
{
	if (r->lacks_nads && r->leading && !r->removed)
		nad_definition_create(r->nad_definition);
}

void informer_reports_trouble(struct informer_reports *r, const struct mirror *mirror,
			      const char *kind, const struct err *err)
{
	const struct kind_info *info = kind_find(kind);
	auto_free char *remedy = NULL;

	assert(kind);
	if (str_eq(kind, KIND_NAD)) {
		r->lacks_nads = err && kube_err_is(err, "NotServed");
		define_nads(r);
	}
	if (!err) {
		auto_free char *message = str_printf("watching %s again", kind);

		r->last[0] = '\0';
		/* A first list that is still to come ends it, too. */
		if (mirror_is_synced(mirror, kind) && dependency_health_end(r->troubles, kind)) {
			log_info("watching again", F_STR("kind", kind));
			emit(r, false, "WatchResumed", message);
		}
		return;
	}
	if (kube_err_is(err, "NotServed") && info && info->crd_file)
		remedy = str_printf("%s.%s is not installed: kubectl apply -f %s", info->id,
				    info->group, info->crd_file);
	else if (kube_err_is(err, "Forbidden"))
		remedy = str_printf("grant the operator's service account the verbs list and watch "
				    "on %s (manifests/base/rbac.yaml)",
				    mirror_resource(mirror, kind)->plural);
	dependency_health_begin(r->troubles, kind, err->reason, remedy ? remedy : err->text);
	/* What ails all kinds alike (the API server does not answer) is logged for the first. */
	log_at(str_eq(r->last, err->text) ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR,
	       "cannot watch, will retry", F_STR("kind", kind), F_ERR(err),
	       F_STR("remedy", remedy ? remedy : "none needed once the API server answers"));
	snprintf(r->last, sizeof(r->last), "%s", err->text);
	emit_trouble(r, kind, err->reason, remedy ? remedy : err->text);
}

void informer_reports_lead(struct informer_reports *r)
{
	define_nads(r);
	dependency_health_visit(r->troubles, emit_trouble, r);
}
