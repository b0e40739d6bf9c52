// SPDX-License-Identifier: Apache-2.0
/*
 * A write goes through steps, in the order of the real server: the new object from the live one and
 * the body (compute), mutating webhooks, defaults and validation (finish), validating webhooks, and
 * the store (commit). Webhooks take their time, so commit compares versions.
 */
#include "cli/simulate/api/write.h"

#include <assert.h>

#include "cli/simulate/api/garbage.h"
#include "cli/simulate/api/prepare.h"
#include "cli/simulate/api/scale.h"
#include "cli/simulate/api/webhooks.h"
#include "cli/simulate/objects/apply.h"
#include "cli/simulate/objects/failure.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/random.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* How often an object that changes meanwhile is read again. */
#define ATTEMPTS_MAX 5

struct write {
	struct api *api;
	struct write_request request;
	char *group, *version, *plural; /* to find the resource again */
	char *ns, *name, *manager, *user;
	unsigned int attempts;
	json_t *live; /* NULL: none */
	uint64_t live_version;
	json_t *object; /* as it will be stored */
	write_done_fn *done;
	void *arg;
};

/* Takes the outcome's object. */
static void write_end(struct write *w, struct outcome outcome)
{
	write_done_fn *done = w->done;
	void *arg = w->arg;

	json_decref(w->request.body);
	json_decref(w->live);
	json_decref(w->object);
	mem_free(w->group);
	mem_free(w->version);
	mem_free(w->plural);
	mem_free(w->ns);
	mem_free(w->name);
	mem_free(w->manager);
	mem_free(w->user);
	mem_free(w);
	done(arg, outcome);
}

static const struct resource *resource_of(const struct write *w)
{
	return w->request.resource;
}

static bool has_flag(const struct write *w, enum resource_flags flag)
{
	return resource_of(w)->flags & flag;
}

static bool is_create(const struct write *w)
{
	return !w->live;
}

static struct outcome fine(void)
{
	return (struct outcome){0};
}

static struct outcome conflict(const struct write *w, const char *why)
{
	auto_free char *long_name = resource_long_name(resource_of(w));

	return outcome_refused(409, "Conflict", resource_of(w), w->name,
			       "Operation cannot be fulfilled on %s \"%s\": %s", long_name, w->name,
			       why);
}

#define MODIFIED                                                                                   \
	"the object has been modified; please apply your changes to the latest version and try "   \
	"again"

/* ---- the body -------------------------------------------------------------------------------- */

/* Five characters that make no words, as the real server takes them. */
static char *generated_name(const char *prefix)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	unsigned char bytes[5];
	char end[sizeof(bytes) + 1] = "";

	random_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		end[i] = letters[bytes[i] % (sizeof(letters) - 1)];
	return str_printf("%.58s%s", prefix, end);
}

/* It is of the kind and the namespace that the path says. */
static struct outcome check_body(struct write *w)
{
	const struct resource *resource = resource_of(w);
	auto_free char *version = resource_api_version(resource);
	const json_t *body = w->request.body;
	const char *kind = json_str_or(json_at(body, "kind"), resource->kind);
	const char *api_version = json_str_or(json_at(body, "apiVersion"), version);
	const char *ns = json_namespace(body);

	if (!json_is_object(body) ||
	    (json_at(body, "metadata") && !json_is_object(json_at(body, "metadata"))))
		return outcome_bad_request("the body of the request is not an object");
	if (!str_eq(kind, resource->kind) || !str_eq(api_version, version))
		return outcome_bad_request("%s in version \"%s\" cannot be handled as a %s: the "
					   "path is of %s in version \"%s\"",
					   kind, api_version, resource->kind, resource->kind,
					   version);
	if (ns[0] && !str_eq(ns, w->ns))
		return outcome_bad_request("the namespace of the provided object does not match "
					   "the namespace sent on the request");
	if (w->name && json_name(body)[0] && !str_eq(json_name(body), w->name))
		return outcome_bad_request("the name of the object (%s) does not match the name on "
					   "the URL (%s)",
					   json_name(body), w->name);
	return fine();
}

static struct outcome without_name(const struct write *w)
{
	json_auto_t *causes = json_array();

	cause_add(causes, "FieldValueRequired", "metadata.name",
		  "Required value: name or generateName is required");
	return outcome_of(failure_invalid(resource_of(w)->group, resource_of(w)->kind, "", causes));
}

static struct outcome take_name(struct write *w)
{
	const char *prefix = json_str_at(w->request.body, "metadata", "generateName");

	if (w->name)
		return fine();
	if (json_name(w->request.body)[0])
		w->name = str_dup(json_name(w->request.body));
	else if (!str_empty(prefix))
		w->name = generated_name(prefix);
	else
		return without_name(w);
	return fine();
}

/* ---- compute: the new object ----------------------------------------------------------------- */

static struct outcome check_versions(const struct write *w, const json_t *object)
{
	const char *asked = json_str_or(json_at(object, "metadata", "resourceVersion"), "");
	const char *live = json_str_or(json_at(w->live, "metadata", "resourceVersion"), "");
	const char *uid = json_uid(object);

	if (uid[0] && !str_eq(uid, json_uid(w->live))) {
		auto_free char *why =
			str_printf("Precondition failed: UID in precondition: %s, UID in object "
				   "meta: %s",
				   uid, json_uid(w->live));

		return conflict(w, why);
	}
	if (asked[0] && !str_eq(asked, "0") && !str_eq(asked, live))
		return conflict(w, MODIFIED);
	if (w->request.verb == WRITE_UPDATE && !asked[0] && has_flag(w, RESOURCE_CUSTOM)) {
		json_auto_t *causes = json_array();

		cause_add(causes, "FieldValueInvalid", "metadata.resourceVersion",
			  "Invalid value: 0: must be specified for an update");
		return outcome_of(failure_invalid(resource_of(w)->group, resource_of(w)->kind,
						  w->name, causes));
	}
	return fine();
}

static struct outcome compute_patch(struct write *w, const json_t *base, json_t **ret)
{
	struct err err = {0};

	if (w->request.patch_type == PATCH_STRATEGIC && has_flag(w, RESOURCE_CUSTOM))
		return outcome_of(failure_status(
			415, "UnsupportedMediaType",
			"the body of the request was in an unknown format - accepted media types "
			"include: application/json-patch+json, application/merge-patch+json, "
			"application/apply-patch+yaml",
			NULL));
	if (patch_object(w->request.patch_type, resource_of(w)->schema, base, w->request.body, ret,
			 &err) < 0)
		return outcome_of(failure_of_err(&err));
	if (!json_is_object(*ret))
		return outcome_bad_request("the patch does not leave an object");
	return fine();
}

static struct apply_write apply_write_of(const struct write *w, const char *api_version)
{
	return (struct apply_write){
		.schema = resource_of(w)->schema,
		.manager = w->manager,
		.api_version = api_version,
		.subresource = w->request.subresource,
		.now_us = clock_wall_us(),
		.force = w->request.force,
	};
}

static struct outcome prune(const struct write *w, json_t *object)
{
	json_auto_t *unknown = json_array();
	auto_strbuf struct strbuf text = {0};
	json_t *path;
	size_t i;

	if (!has_flag(w, RESOURCE_CUSTOM))
		return fine();
	schema_prune(resource_of(w)->schema, object, unknown);
	if (json_array_size(unknown) == 0 || w->request.fields == FIELDS_IGNORED)
		return fine();
	json_array_foreach (unknown, i, path)
		strbuf_addf(&text, "%sunknown field \"%s\"", i ? ", " : "", json_str_or(path, ""));
	return outcome_bad_request("strict decoding error: %s", strbuf_str(&text));
}

static struct outcome compute_apply(struct write *w, const json_t *base, json_t **ret)
{
	json_auto_t *applied = json_deep_copy(w->request.body), *causes = NULL;
	auto_free char *version = resource_api_version(resource_of(w));
	const struct apply_write how = apply_write_of(w, version);
	struct outcome outcome = prune(w, applied);
	struct err err = {0};

	if (outcome.status)
		return outcome;
	if (!w->request.subresource && has_flag(w, RESOURCE_STATUS))
		json_object_del(applied, "status");
	if (apply_object(&how, base, applied, ret, &causes, &err) == 0)
		return fine();
	return outcome_of(causes ? failure_apply_conflict(causes) : failure_of_err(&err));
}

/* The live object with the replicas that a Scale, or a patch of one, asks for. */
static struct outcome compute_scale(struct write *w, json_t **ret)
{
	json_auto_t *scale = scale_of(resource_of(w), w->live), *after = NULL;
	struct outcome outcome = fine();
	struct err err = {0};
	int64_t replicas;

	if (w->request.verb == WRITE_UPDATE)
		after = json_incref(w->request.body);
	else if (patch_object(w->request.patch_type, NULL, scale, w->request.body, &after, &err) <
		 0)
		return outcome_of(failure_of_err(&err));
	if (!json_is_object(after) || !json_is_object(json_at(after, "spec")) ||
	    json_get_int(json_at(after, "spec"), "spec", "replicas", 0, INT32_MAX, 0, &replicas,
			 &err) < 0)
		return outcome_bad_request("spec.replicas: must be a number that is not negative");
	outcome = check_versions(w, after);
	if (outcome.status)
		return outcome;
	*ret = json_deep_copy(w->live);
	scale_put(resource_of(w), *ret, replicas);
	return fine();
}

/*
 * Everything but `status`, and what the server itself keeps, is the live object's; of the core
 * group's kinds metadata may change along with it (pkg/registry/core/pod/strategy.go,
 * podStatusStrategy): CNI plugins write network-status so.
 */
static void keep_all_but_status(const struct write *w, json_t *object)
{
	json_t *status = json_incref(json_object_get(object, "status"));
	json_t *managed = json_incref(json_at(object, "metadata", "managedFields"));
	bool is_core = str_empty(resource_of(w)->group);
	json_auto_t *labels = json_incref(json_at(object, "metadata", "labels"));
	json_auto_t *annotations = json_incref(json_at(object, "metadata", "annotations"));

	json_object_clear(object);
	json_object_update(object, w->live);
	json_put(object, "metadata", json_copy(json_object_get(w->live, "metadata")));
	if (managed)
		json_put(json_object_get(object, "metadata"), "managedFields", managed);
	if (is_core && labels)
		json_object_set(json_object_get(object, "metadata"), "labels", labels);
	if (is_core && annotations)
		json_object_set(json_object_get(object, "metadata"), "annotations", annotations);
	if (status)
		json_put(object, "status", status);
	else
		json_object_del(object, "status");
}

/* What the server sets, and no client. */
static void keep_metadata(const struct write *w, json_t *object)
{
	static const char *const fields[] = {"uid",
					     "creationTimestamp",
					     "deletionTimestamp",
					     "deletionGracePeriodSeconds",
					     "generation",
					     "resourceVersion",
					     "selfLink"};
	const json_t *live = json_object_get(w->live, "metadata");
	json_t *metadata = json_copy(json_need_object(object, "metadata"));

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		json_t *value = json_object_get(live, fields[i]);

		if (value)
			json_object_set(metadata, fields[i], value);
		else
			json_object_del(metadata, fields[i]);
	}
	json_put_str(metadata, "name", w->name);
	if (w->ns[0])
		json_put_str(metadata, "namespace", w->ns);
	else
		json_object_del(metadata, "namespace");
	json_put(object, "metadata", metadata);
}

static void begin_metadata(json_t *object, bool has_generation)
{
	json_t *metadata = json_object_get(object, "metadata");
	unsigned char b[16];
	char now[RFC3339_SIZE];

	random_bytes(b, sizeof(b));
	rfc3339_write(clock_wall_us(), now);
	/* RFC 9562, version 4. */
	json_put(metadata, "uid",
		 json_fmt("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			  b[0], b[1], b[2], b[3], b[4], b[5], (b[6] & 0x0f) | 0x40, b[7],
			  (b[8] & 0x3f) | 0x80, b[9], b[10], b[11], b[12], b[13], b[14], b[15]));
	json_put_str(metadata, "creationTimestamp", now);
	if (has_generation)
		json_put_int(metadata, "generation", 1);
}

/* The body, a patched or a merged object, as the client's version has it. */
static struct outcome compute_from_request(struct write *w, json_t **ret)
{
	json_auto_t *base = w->live ? json_deep_copy(w->live) : NULL;
	struct outcome outcome = fine();

	if (w->live && str_eq(w->request.subresource, "scale"))
		return compute_scale(w, ret);
	if (base)
		view_to_client(resource_of(w), base);
	switch (w->request.verb) {
	case WRITE_CREATE:
	case WRITE_UPDATE:
		*ret = json_deep_copy(w->request.body);
		break;
	case WRITE_PATCH:
		outcome = compute_patch(w, base, ret);
		break;
	case WRITE_APPLY:
		outcome = compute_apply(w, base, ret);
		break;
	}
	if (outcome.status)
		return outcome;
	if (w->live && w->request.verb != WRITE_APPLY)
		outcome = check_versions(w, *ret);
	if (!outcome.status && w->live && json_name(*ret)[0] && !str_eq(json_name(*ret), w->name))
		outcome = outcome_bad_request("the name of the object (%s) does not match the name "
					      "on the URL (%s)",
					      json_name(*ret), w->name);
	if (!outcome.status && w->request.verb != WRITE_APPLY)
		outcome = prune(w, *ret);
	return outcome;
}

static struct outcome check_existence(const struct write *w)
{
	auto_free char *long_name = NULL;

	if (w->live && w->request.verb == WRITE_CREATE) {
		long_name = resource_long_name(resource_of(w));
		return outcome_refused(409, "AlreadyExists", resource_of(w), w->name,
				       "%s \"%s\" already exists", long_name, w->name);
	}
	if (!w->live && (w->request.verb == WRITE_UPDATE || w->request.verb == WRITE_PATCH ||
			 w->request.subresource))
		return outcome_not_found(resource_of(w), w->name);
	if (!w->live) {
		const struct resource *namespaces =
			resources_find(&w->api->resources, "", "v1", "namespaces");
		json_auto_t *ns = NULL;

		if (!has_flag(w, RESOURCE_NAMESPACED))
			return fine();
		ns = collection_object(namespaces->collection, w->ns);
		if (!ns)
			return outcome_not_found(namespaces, w->ns);
		if (json_at(ns, "metadata", "deletionTimestamp"))
			return outcome_refused(
				403, "Forbidden", resource_of(w), w->name,
				"%s \"%s\" is forbidden: unable to create new content in "
				"namespace %s because it is being terminated",
				resource_of(w)->plural, w->name, w->ns);
		return fine();
	}
	return fine();
}

static struct outcome compute(struct write *w)
{
	auto_free char *key = api_key(w->ns, w->name);
	const struct store_entry *entry = collection_get(resource_of(w)->collection, key);
	struct outcome outcome;
	json_t *object = NULL;

	json_decref(w->live);
	json_decref(w->object);
	w->object = NULL;
	w->live = entry ? collection_object(resource_of(w)->collection, key) : NULL;
	w->live_version = entry ? entry->version : 0;
	outcome = check_existence(w);
	if (!outcome.status)
		outcome = compute_from_request(w, &object);
	w->object = object;
	if (outcome.status)
		return outcome;
	view_from_client(resource_of(w), object);
	json_put_str(object, "kind", resource_of(w)->kind);
	keep_metadata(w, object);
	if (is_create(w)) {
		begin_metadata(object, has_flag(w, RESOURCE_GENERATION));
		prepare_new(resource_of(w), object);
	} else if (str_eq(w->request.subresource, "status")) {
		keep_all_but_status(w, object);
	} else if (has_flag(w, RESOURCE_STATUS)) {
		json_t *status = json_object_get(w->live, "status");

		/* A status that the client sent, and the write is not of it. */
		if (status)
			json_object_set(object, "status", status);
		else
			json_object_del(object, "status");
	}
	return fine();
}

/* ---- finish: defaults, validation, what the server counts ------------------------------------ */

static struct outcome validate(const struct write *w)
{
	const struct resource *resource = resource_of(w);
	json_auto_t *causes = json_array();

	metadata_validate(w->object, resource->flags & RESOURCE_NAMESPACED, causes);
	if (resource->flags & RESOURCE_FREE_NAMES) {
		size_t i = json_array_size(causes);

		/* The name's form is of no matter for kinds of RBAC. */
		while (i-- > 0)
			if (str_eq(json_str_at(json_array_get(causes, i), "field"),
				   "metadata.name"))
				json_array_remove(causes, i);
	}
	if (resource->flags & RESOURCE_CUSTOM)
		schema_validate(resource->schema, w->object, causes);
	prepare_validate(resource, w->object, causes);
	if (w->live && !str_eq(w->request.subresource, "binding"))
		prepare_validate_update(resource, w->live, w->object, causes);
	if (json_array_size(causes) == 0)
		return fine();
	return outcome_of(failure_invalid(resource->group, resource->kind, w->name, causes));
}

/* Whether two objects differ in what a generation counts. */
static bool is_other_generation(const struct write *w)
{
	json_auto_t *before = json_copy(w->live), *after = json_copy(w->object);

	json_object_del(before, "metadata");
	json_object_del(after, "metadata");
	if (has_flag(w, RESOURCE_STATUS)) {
		json_object_del(before, "status");
		json_object_del(after, "status");
	}
	return !json_same(before, after);
}

static bool is_definition(const struct write *w)
{
	return str_eq(resource_of(w)->plural, "customresourcedefinitions");
}

static struct outcome finish(struct write *w)
{
	auto_free char *version = resource_api_version(resource_of(w));
	const struct apply_write how = apply_write_of(w, version);
	struct outcome outcome;
	struct err err = {0};

	if (has_flag(w, RESOURCE_CUSTOM))
		schema_default(resource_of(w)->schema, w->object);
	prepare_defaults(resource_of(w), w->object);
	if (is_definition(w) && !w->request.subresource)
		prepare_established(w->object);
	outcome = validate(w);
	if (outcome.status)
		return outcome;
	if (w->live && has_flag(w, RESOURCE_GENERATION) && is_other_generation(w))
		json_put_int(json_object_get(w->object, "metadata"), "generation",
			     json_generation(w->live) + 1);
	if (w->request.verb != WRITE_APPLY &&
	    apply_track_update(&how, w->live, w->object, &err) < 0)
		return outcome_of(failure_of_err(&err));
	return fine();
}

/* ---- commit ---------------------------------------------------------------------------------- */

static struct outcome answer_of(const struct write *w, int status)
{
	json_t *answer = json_deep_copy(w->object);

	view_to_client(resource_of(w), answer);
	if (str_eq(w->request.subresource, "scale")) {
		json_t *scale = scale_of(resource_of(w), w->object);

		json_replace(&answer, scale);
	}
	return (struct outcome){status, answer};
}

static struct outcome commit(struct write *w)
{
	int status = is_create(w) ? 201 : 200;
	struct err err = {0};

	if (w->live && json_same(w->live, w->object))
		return answer_of(w, 200);
	if (w->request.dry_run)
		return answer_of(w, status);
	if (is_definition(w) && resources_define(&w->api->resources, w->object, &err) < 0)
		return outcome_of(failure_of_err(&err));
	garbage_put(w->api->garbage, resource_of(w)->collection, w->object);
	garbage_settle(w->api->garbage);
	return answer_of(w, status);
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void write_step(struct write *w);

static struct admission admission_of(const struct write *w)
{
	return (struct admission){
		.resource = resource_of(w),
		.subresource = w->request.subresource,
		.operation = is_create(w) ? "CREATE" : "UPDATE",
		.ns = w->ns[0] ? w->ns : NULL,
		.name = w->name,
		.user = w->user,
		.is_dry_run = w->request.dry_run,
		.object = w->object,
		.old = w->live,
	};
}

/* It is as it was when the new object was made from it. False: the write has ended, or is anew. */
static bool is_current(struct write *w)
{
	auto_free char *key = api_key(w->ns, w->name);
	const struct store_entry *entry;

	w->request.resource = resources_find(&w->api->resources, w->group, w->version, w->plural);
	if (!w->request.resource) {
		write_end(w, outcome_of(failure_status(
				     404, "NotFound",
				     "the server could not find the requested resource", NULL)));
		return false;
	}
	entry = collection_get(resource_of(w)->collection, key);
	if ((entry ? entry->version : 0) == w->live_version)
		return true;
	if (++w->attempts < ATTEMPTS_MAX)
		write_step(w);
	else
		write_end(w, conflict(w, MODIFIED));
	return false;
}

static void on_validated(void *arg, struct outcome refusal, json_t *object)
{
	struct write *w = arg;

	json_decref(object);
	if (refusal.status)
		write_end(w, refusal);
	else if (is_current(w))
		write_end(w, commit(w));
}

static void on_mutated(void *arg, struct outcome refusal, json_t *object)
{
	struct write *w = arg;
	struct admission admission;
	struct outcome outcome;

	if (refusal.status) {
		write_end(w, refusal);
		return;
	}
	json_replace(&w->object, object);
	if (!is_current(w))
		return;
	outcome = finish(w);
	if (outcome.status) {
		write_end(w, outcome);
		return;
	}
	admission = admission_of(w);
	webhooks_ask(w->api->webhooks, false, &admission, on_validated, w);
}

static void write_step(struct write *w)
{
	struct outcome outcome = compute(w);
	struct admission admission;

	if (outcome.status) {
		write_end(w, outcome);
		return;
	}
	admission = admission_of(w);
	webhooks_ask(w->api->webhooks, true, &admission, on_mutated, w);
}

void write_begin(struct api *api, const struct write_request *request, write_done_fn *done,
		 void *arg)
{
	struct write *w = mem_new(struct write);
	struct outcome outcome = fine();

	assert(api && request->resource && done);
	w->api = api;
	w->request = *request;
	w->group = str_dup(request->resource->group);
	w->version = str_dup(request->resource->version);
	w->plural = str_dup(request->resource->plural);
	w->ns = str_dup(request->ns);
	w->name = str_dup(request->name);
	w->manager = str_dup(request->manager);
	w->user = str_dup(request->user);
	w->done = done;
	w->arg = arg;
	if (request->verb != WRITE_PATCH && !str_eq(request->subresource, "scale"))
		outcome = check_body(w);
	if (!outcome.status)
		outcome = take_name(w);
	if (outcome.status)
		write_end(w, outcome);
	else
		write_step(w);
}
