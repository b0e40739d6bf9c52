// SPDX-License-Identifier: Apache-2.0
/*
 * Admission: reading a review, comparing what is wrong now with what was wrong before, writing the
 * answer. Rules and defaults are in the table of kinds (kind_rules.h).
 */
#include "reconcilers/admission/admission.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/admission/kind_rules.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/problems.h"

#define API_VERSION "admission.k8s.io/v1"

/*
 * A server cuts a warning at 256 characters and all of them at 4096 (apiserver,
 * endpoints/handlers/responsewriters).
 */
#define WARNINGS_MAX 16

/* ---- reading --------------------------------------------------------------------------------- */

static const char *kind_of(const json_t *request)
{
	const char *group = json_str_or(json_at(request, "resource", "group"), "");
	const char *resource = json_str_at(request, "resource", "resource");
	const struct kind_info *kind = kind_find(resource);

	return kind && str_eq(kind->group, group) ? kind->id : NULL;
}

/*
 * The object with its namespace; servers before 1.21 send a pod without it. One that is being
 * created is younger than all that exist, also in the second in which the server stamped it.
 * Returns new.
 */
static json_t *object_of(const json_t *request, const char *member, bool is_new)
{
	const json_t *sent = json_at(request, member);
	const char *ns = json_str_or(json_at(request, "namespace"), "");
	json_t *object, *metadata;

	if (!json_is_object(sent))
		return NULL;
	object = json_copy((json_t *)sent);
	metadata = json_object_get(sent, "metadata");
	metadata = json_is_object(metadata) ? json_copy(metadata) : json_object();
	json_object_set_new(object, "metadata", metadata);
	if (*ns && !*json_namespace(object))
		json_put_str(metadata, "namespace", ns);
	if (is_new)
		json_object_del(metadata, "creationTimestamp");
	return object;
}

int admission_read(const json_t *review, struct admission_request *ret, struct err *err)
{
	const json_t *request = json_at(review, "request");
	struct admission_request r = {0};

	if (!str_eq(json_str_at(review, "apiVersion"), API_VERSION) ||
	    !str_eq(json_str_at(review, "kind"), "AdmissionReview"))
		return err_set(err, ERR_INVALID, "BadReview",
			       "kind: must be an AdmissionReview of " API_VERSION);
	r.uid = json_str_or(json_at(request, "uid"), "");
	if (!*r.uid)
		return err_set(err, ERR_INVALID, "BadReview",
			       "request.uid: missing, must be a string");
	r.operation = json_str_or(json_at(request, "operation"), "");
	r.subresource = json_str_or(json_at(request, "subResource"), "");
	r.kind = kind_of(request);
	r.ns = json_str_or(json_at(request, "namespace"), "");
	r.object = object_of(request, "object", str_eq(r.operation, "CREATE"));
	r.old = object_of(request, "oldObject", false);
	r.name = json_str_or(json_at(request, "name"), "");
	if (!*r.name)
		r.name = json_str_or(json_at(request, "object", "metadata", "name"), "");
	*ret = r;
	return 0;
}

void admission_request_done(struct admission_request *request)
{
	json_decref(request->object);
	json_decref(request->old);
	*request = (struct admission_request){0};
}

/* ---- answering ------------------------------------------------------------------------------- */

static json_t *answer(json_t *response)
{
	json_t *review = json_object();

	json_put_str(review, "apiVersion", API_VERSION);
	json_put_str(review, "kind", "AdmissionReview");
	json_put(review, "response", response);
	return review;
}

static json_t *response_new(const struct admission_request *request, bool allowed,
			    const struct problems *warnings)
{
	json_t *response = json_object(), *list = json_array(), *entry;
	size_t i;

	json_put_str(response, "uid", request->uid);
	json_put_bool(response, "allowed", allowed);
	json_array_foreach (warnings ? warnings->list : NULL, i, entry)
		if (i < WARNINGS_MAX)
			json_array_append_new(list, json_fmt("%s: %s", json_str_at(entry, "field"),
							     json_str_at(entry, "message")));
	json_put(response, "warnings", json_array_size(list) ? json_incref(list) : NULL);
	json_decref(list);
	return response;
}

json_t *admission_allow(const struct admission_request *request, const json_t *patch,
			const struct problems *warnings)
{
	json_t *response = response_new(request, true, warnings);

	if (json_array_size(patch)) {
		auto_free char *text = json_text(patch);
		auto_strbuf struct strbuf encoded = {0};

		base64_encode(text, strlen(text), &encoded);
		json_put_str(response, "patchType", "JSONPatch");
		json_put_str(response, "patch", strbuf_str(&encoded));
	}
	return answer(response);
}

static json_t *details_new(const struct admission_request *request, const struct kind_info *kind,
			   const struct problems *problems)
{
	json_t *details = json_object(), *causes = json_array(), *entry;
	size_t i;

	json_put_str(details, "name", request->name);
	json_put_str(details, "group", kind ? kind->group : "");
	json_put_str(details, "kind", kind ? kind->kind : "");
	json_array_foreach (problems->list, i, entry) {
		json_t *cause = json_object();

		json_put_str(cause, "reason", "FieldValueInvalid");
		json_put_str(cause, "field", json_str_at(entry, "field"));
		json_put_str(cause, "message", json_str_at(entry, "message"));
		json_array_append_new(causes, cause);
	}
	json_put(details, "causes", causes);
	return details;
}

json_t *admission_refuse(const struct admission_request *request, const struct problems *problems,
			 const struct problems *warnings)
{
	const struct kind_info *kind = kind_find(request->kind);
	json_t *response = response_new(request, false, warnings);
	json_t *status = json_need_object(response, "status");
	auto_free char *text = problems_text(problems);
	bool has_name = *request->name;
	const char *generated =
		json_str_or(json_at(request->object, "metadata", "generateName"), "");

	assert(problems->total > 0);
	json_put_str(status, "status", "Failure");
	json_put_int(status, "code", 422);
	json_put_str(status, "reason", "Invalid");
	json_put(status, "message",
		 json_fmt("%s %s%s%s%s is invalid: %s", kind ? kind->kind : "object", request->ns,
			  *request->ns ? "/" : "", has_name ? request->name : generated,
			  has_name ? "" : "*", text));
	json_put(status, "details", details_new(request, kind, problems));
	return answer(response);
}

/* ---- patches --------------------------------------------------------------------------------- */

/* RFC 6901: ~ and / in a member's name. */
static char *pointer_to(const char *parent, const char *key)
{
	auto_strbuf struct strbuf out = {0};

	strbuf_addf(&out, "%s/", parent);
	for (; *key; key++) {
		if (*key == '~')
			strbuf_adds(&out, "~0");
		else if (*key == '/')
			strbuf_adds(&out, "~1");
		else
			strbuf_addc(&out, *key);
	}
	return strbuf_take(&out);
}

static void add_step(json_t *patch, const char *op, const char *path, const json_t *value)
{
	json_t *step = json_object();

	json_put_str(step, "op", op);
	json_put_str(step, "path", path);
	if (value)
		json_object_set(step, "value", (json_t *)value);
	json_array_append_new(patch, step);
}

static void add_steps(json_t *patch, const char *path, const json_t *from, const json_t *to);

static void add_member_steps(json_t *patch, const char *path, const json_t *from, const json_t *to)
{
	const char *key;
	json_t *value;

	json_each (from, key, value) {
		auto_free char *at = json_object_get(to, key) ? NULL : pointer_to(path, key);

		if (at)
			add_step(patch, "remove", at, NULL);
	}
	json_each (to, key, value) {
		const json_t *before = json_object_get(from, key);
		auto_free char *at = before == value ? NULL : pointer_to(path, key);

		if (!before)
			add_step(patch, "add", at, value);
		else if (at)
			add_steps(patch, at, before, value);
	}
}

static void add_element_steps(json_t *patch, const char *path, const json_t *from, const json_t *to)
{
	json_t *value;
	size_t i;

	json_array_foreach (to, i, value) {
		auto_free char *at = str_printf("%s/%zu", path, i);

		add_steps(patch, at, json_array_get(from, i), value);
	}
}

/* What both share needs no look: injection copies only what it changes. */
static void add_steps(json_t *patch, const char *path, const json_t *from, const json_t *to)
{
	if (from == to)
		return;
	if (json_is_object(from) && json_is_object(to))
		add_member_steps(patch, path, from, to);
	else if (json_is_array(from) && json_is_array(to) &&
		 json_array_size(from) == json_array_size(to))
		add_element_steps(patch, path, from, to);
	else if (!json_same(from, to))
		add_step(patch, "replace", path, to);
}

json_t *admission_patch(const json_t *from, const json_t *to)
{
	json_t *patch = json_array();

	add_steps(patch, "", from, to);
	if (json_array_size(patch))
		return patch;
	json_decref(patch);
	return NULL;
}

/* ---- now and before -------------------------------------------------------------------------- */

/* The same mistake, be it in another place of a list. */
static char *identity_new(const json_t *problem)
{
	auto_strbuf struct strbuf text = {0};
	const char *field = json_str_at(problem, "field");

	strbuf_addf(&text, "%s ", json_str_at(problem, "reason"));
	for (; *field; field++)
		if (*field == '[' && strspn(field + 1, "0123456789") > 0)
			field += strspn(field + 1, "0123456789");
		else
			strbuf_addc(&text, *field);
	strbuf_addf(&text, " %s", json_str_at(problem, "message"));
	return strbuf_take(&text);
}

/* Each mistake of before excuses one of now. */
static json_t *excuses_new(const struct problems *before)
{
	json_t *excuses = json_object(), *problem;
	size_t i;

	json_array_foreach (before->list, i, problem) {
		auto_free char *identity = identity_new(problem);

		json_put_int(excuses, identity,
			     json_integer_value(json_object_get(excuses, identity)) + 1);
	}
	return excuses;
}

static bool excuse(json_t *excuses, const json_t *problem)
{
	auto_free char *identity = identity_new(problem);
	json_int_t left = json_integer_value(json_object_get(excuses, identity));

	if (left == 0)
		return false;
	json_put_int(excuses, identity, left - 1);
	return true;
}

/* Sort what is wrong now into what is new and what was there before. */
static void compare(const struct kind_rules *rules, const struct problems *before,
		    const struct problems *now, struct problems *fresh, struct problems *known)
{
	json_auto_t *excuses = excuses_new(before);
	/* Beyond what is kept it is unknown which is which. */
	bool is_crowded = before->total > PROBLEMS_MAX && now->total <= before->total;
	json_t *problem;
	size_t i;

	json_array_foreach (now->list, i, problem) {
		bool is_known = excuse(excuses, problem) || is_crowded ||
				(rules->judged_by_change &&
				 str_eq(json_str_at(problem, "reason"), rules->judged_by_change));

		problem_copy(is_known ? known : fresh, problem);
	}
}

/* ---- values in messages ---------------------------------------------------------------------- */

/*
 * The next step of a path such as `spec.ips[3]` or `metadata.annotations[a.b/c]`; NULL at the end.
 * Returns new.
 */
static char *next_step(const char **path, bool *ret_bracket)
{
	const char *p = *path;
	size_t len;

	*ret_bracket = *p == '[';
	if (*p == '[' || *p == '.')
		p++;
	len = strcspn(p, *ret_bracket ? "]" : ".[");
	if (len == 0)
		return NULL;
	*path = p + len + (*ret_bracket && p[len] == ']');
	return str_ndup(p, len);
}

static const json_t *value_at(const json_t *object, const char *path)
{
	const json_t *value = object;

	while (value && *path) {
		bool bracket = false;
		auto_free char *step = next_step(&path, &bracket);
		int64_t i = 0;

		if (!step)
			return NULL;
		if (json_is_array(value) && bracket && str_to_int(step, 0, INT32_MAX, &i))
			value = json_array_get(value, (size_t)i);
		else
			value = json_object_get(value, step);
	}
	return value;
}

/* Is the text in the message, and not just as a part of a word? */
static bool has_word(const char *message, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = strstr(message, text); len && at; at = strstr(at + 1, text))
		if ((at == message || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[len]))
			return true;
	return false;
}

static void name_values(const json_t *object, struct problems *problems)
{
	json_t *problem;
	size_t i;

	json_array_foreach (problems->list, i, problem) {
		const json_t *value = value_at(object, json_str_at(problem, "field"));
		const char *message = json_str_at(problem, "message");
		auto_free char *text = NULL;
		size_t clip;

		/*
		 * Put the value in front of a message that does not have it: the reader of a
		 * refusal does not see the object.
		 */
		if (!value || json_is_object(value) || json_is_array(value) || json_is_null(value))
			continue;
		text = json_is_string(value) ? str_dup(json_string_value(value)) : json_text(value);
		clip = str_clip(text, strlen(text), 64);
		text[clip] = '\0';
		if (!has_word(message, text))
			json_put(problem, "message",
				 json_fmt(json_is_string(value) ? "\"%s\" %s" : "%s %s", text,
					  message));
	}
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static bool is_judged(const struct admission_request *r)
{
	return !*r->subresource && r->object && !object_is_terminating(r->object) &&
	       (str_eq(r->operation, "CREATE") || str_eq(r->operation, "UPDATE"));
}

static json_t *judge_new(const json_t *world, const struct admission_request *r,
			 const struct kind_rules *rules)
{
	auto_problems struct problems problems = {0}, warnings = {0};

	rules->check(world, r->object, &problems);
	if (problems.total) {
		name_values(r->object, &problems);
		return admission_refuse(r, &problems, NULL);
	}
	if (rules->warn)
		rules->warn(world, r->object, &warnings);
	return admission_allow(r, NULL, &warnings);
}

static json_t *judge_change(const json_t *world, const struct admission_request *r,
			    const struct kind_rules *rules)
{
	auto_problems struct problems before = {0}, now = {0}, fresh = {0}, known = {0};
	bool same_spec = json_same(json_at(r->old, "spec"), json_at(r->object, "spec"));

	rules->check(world, r->old, &before);
	rules->check(world, r->object, &now);
	compare(rules, &before, &now, &fresh, &known);
	if (rules->check_change && !same_spec)
		rules->check_change(world, r->old, r->object, &fresh);
	name_values(r->object, &fresh);
	/*
	 * Labels, annotations, finalizers, owners: the client that sets them gets a warning about
	 * what breaks, once, and is not stopped.
	 */
	if (same_spec)
		return admission_allow(r, NULL, &fresh);
	if (fresh.total)
		return admission_refuse(r, &fresh, &known);
	name_values(r->object, &known);
	if (rules->warn && !now.total)
		rules->warn(world, r->object, &known);
	return admission_allow(r, NULL, &known);
}

json_t *admission_validate(const json_t *world, const struct admission_request *request)
{
	const struct kind_rules *rules = kind_rules_find(request->kind);

	if (!rules || !is_judged(request))
		return admission_allow(request, NULL, NULL);
	return request->old ? judge_change(world, request, rules)
			    : judge_new(world, request, rules);
}

json_t *admission_default(const struct admission_request *r)
{
	const struct kind_rules *rules = kind_rules_find(r->kind);
	json_auto_t *filled = NULL, *patch = NULL;
	json_t *spec;

	if (!rules || !rules->fill || !is_judged(r))
		return admission_allow(r, NULL, NULL);
	filled = json_deep_copy(r->object);
	spec = json_at(filled, "spec");
	if (json_is_object(spec))
		rules->fill(filled, spec);
	patch = admission_patch(r->object, filled);
	return admission_allow(r, patch, NULL);
}
