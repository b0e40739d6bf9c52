// SPDX-License-Identifier: Apache-2.0
/*
 * A label selector becomes a metav1.LabelSelector, which label_selector_matches understands; a
 * field selector becomes a list of requirements on paths.
 */
#include "cli/simulate/objects/selector.h"

#include <ctype.h>
#include <string.h>

#include "cli/simulate/objects/limits.h"
#include "lib/base/mem.h"
#include "lib/base/names.h"
#include "lib/json/json.h"
#include "reconcilers/core/labels.h"

struct selector {
	json_t *labels; /* a LabelSelector; NULL: everything */
	json_t *fields; /* array of {path, value, equal, otherwise}; NULL: everything */
};

static int refuse(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct err *err, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	return err_set(err, ERR_INVALID, "BadRequest", "%s", text);
}

/* ---- labels ---------------------------------------------------------------------------------- */

#define PUNCTUATION "=!(),<>"

struct scanner {
	const char *at;
	char *token; /* ours; "" at the end */
	struct err *err;
};

static void scan(struct scanner *s)
{
	size_t len = 0;

	free(s->token);
	while (isspace((unsigned char)*s->at))
		s->at++;
	if (!*s->at)
		len = 0;
	else if (!strchr(PUNCTUATION, *s->at))
		len = strcspn(s->at, PUNCTUATION " \t\n\r\f\v");
	else
		len = (str_starts(s->at, "==") || str_starts(s->at, "!=")) ? 2 : 1;
	s->token = str_ndup(s->at, len);
	s->at += len;
}

static bool is_at(const struct scanner *s, const char *token)
{
	return str_eq(s->token, token);
}

static bool is_word(const struct scanner *s)
{
	return *s->token && !strchr(PUNCTUATION, *s->token);
}

static int expected(struct scanner *s, const char *what)
{
	return refuse(s->err, "unable to parse requirement: found '%s', expected: %s", s->token,
		      what);
}

static int take_value(struct scanner *s, json_t *values)
{
	const char *value = is_word(s) ? s->token : "";

	if (!is_word(s) && *s->token && !is_at(s, ",") && !is_at(s, ")"))
		return expected(s, "identifier");
	if (!name_is_label_value(value))
		return refuse(s->err,
			      "unable to parse requirement: \"%s\": a label's value has at most 63 "
			      "letters, digits, '-', '_', '.', with a letter or digit at both ends",
			      value);
	json_array_append_new(values, json_string(value));
	if (is_word(s))
		scan(s);
	return 0;
}

/* The relation and its values, after the key. */
static int take_operation(struct scanner *s, json_t *expression)
{
	json_t *values = json_array();
	const char *relation = NULL;

	json_put(expression, "values", values);
	if (!*s->token || is_at(s, ",")) {
		json_put_str(expression, "operator", "Exists");
		return 0;
	}
	if (is_at(s, "=") || is_at(s, "==") || is_at(s, "in"))
		relation = "In";
	else if (is_at(s, "!=") || is_at(s, "notin"))
		relation = "NotIn";
	else
		return expected(s, "'=', '!=', '==', 'in', 'notin'");
	json_put_str(expression, "operator", relation);
	if (is_at(s, "in") || is_at(s, "notin")) {
		scan(s);
		if (!is_at(s, "("))
			return expected(s, "'('");
		do {
			scan(s);
			if (take_value(s, values))
				return -1;
			if (json_array_size(values) > SELECTOR_MAX)
				return refuse(s->err,
					      "unable to parse requirement: more than %d values",
					      SELECTOR_MAX);
		} while (is_at(s, ","));
		if (!is_at(s, ")"))
			return expected(s, "',' or ')'");
		scan(s);
		return 0;
	}
	scan(s);
	return take_value(s, values);
}

static int take_requirement(struct scanner *s, json_t *expressions)
{
	json_t *expression = json_object();
	bool absent = is_at(s, "!");

	json_array_append_new(expressions, expression);
	if (absent)
		scan(s);
	if (!is_word(s))
		return expected(s, absent ? "identifier" : "!, identifier, or 'end of string'");
	if (!name_is_qualified(s->token))
		return refuse(
			s->err,
			"unable to parse requirement: invalid label key \"%s\": must be NAME or "
			"DOMAIN/NAME of letters, digits, '-', '_', '.', at most 63 in NAME",
			s->token);
	json_put_str(expression, "key", s->token);
	scan(s);
	if (!absent)
		return take_operation(s, expression);
	json_put_str(expression, "operator", "DoesNotExist");
	return 0;
}

/* Returns new, or NULL with err set. */
static json_t *parse_labels(const char *text, struct err *err)
{
	struct scanner s = {.at = text, .err = err};
	json_t *expressions = json_array();
	json_auto_t *selector = json_object();
	int fault = 0;

	json_put(selector, "matchExpressions", expressions);
	for (scan(&s); *s.token && !fault;) {
		fault = take_requirement(&s, expressions);
		if (!fault && json_array_size(expressions) > SELECTOR_MAX)
			fault = refuse(err, "more than %d requirements", SELECTOR_MAX);
		if (fault || !*s.token)
			break;
		if (!is_at(&s, ","))
			fault = expected(&s, "',' or 'end of string'");
		scan(&s);
		if (!fault && !*s.token)
			fault = expected(&s, "identifier after ','");
	}
	free(s.token);
	return fault ? NULL : take_ptr(selector);
}

/* ---- fields ---------------------------------------------------------------------------------- */

struct field {
	const char *kind;
	const char *path;
	const char *at;        /* NULL: path */
	const char *otherwise; /* where it is absent; NULL: "" */
};

static const struct field known_fields[] = {
	{"Pod", "spec.nodeName", NULL, NULL},
	{"Pod", "spec.restartPolicy", NULL, NULL},
	{"Pod", "spec.schedulerName", NULL, NULL},
	{"Pod", "spec.serviceAccountName", NULL, NULL},
	{"Pod", "spec.hostNetwork", NULL, "false"},
	{"Pod", "status.phase", NULL, NULL},
	{"Pod", "status.podIP", NULL, NULL},
	{"Pod", "status.nominatedNodeName", NULL, NULL},
	{"Event", "involvedObject.kind", NULL, NULL},
	{"Event", "involvedObject.namespace", NULL, NULL},
	{"Event", "involvedObject.name", NULL, NULL},
	{"Event", "involvedObject.uid", NULL, NULL},
	{"Event", "involvedObject.apiVersion", NULL, NULL},
	{"Event", "involvedObject.resourceVersion", NULL, NULL},
	{"Event", "involvedObject.fieldPath", NULL, NULL},
	{"Event", "reason", NULL, NULL},
	{"Event", "reportingComponent", NULL, NULL},
	{"Event", "source", "source.component", NULL},
	{"Event", "type", NULL, NULL},
	{"Node", "spec.unschedulable", NULL, "false"},
	{"Namespace", "status.phase", NULL, NULL},
	{"Secret", "type", NULL, NULL},
};

static bool is_selectable(const struct selector_kind *kind, const char *path)
{
	const json_t *field = NULL;
	size_t i = 0;

	json_array_foreach (kind->selectable, i, field) {
		const char *at = json_str_or(json_at(field, "jsonPath"), "");

		if (str_eq(*at == '.' ? at + 1 : at, path))
			return true;
	}
	return str_eq(path, "metadata.name") ||
	       (kind->namespaced && str_eq(path, "metadata.namespace"));
}

/* False when the kind cannot be selected by this field. */
static bool find_field(const struct selector_kind *kind, const char *path, struct field *ret)
{
	*ret = (struct field){.path = path, .at = path};
	if (is_selectable(kind, path))
		return true;
	if (*kind->group && !str_eq(kind->group, "events.k8s.io"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(known_fields); i++) {
		if (!str_eq(known_fields[i].kind, kind->kind) ||
		    !str_eq(known_fields[i].path, path))
			continue;
		ret->at = known_fields[i].at ? known_fields[i].at : path;
		ret->otherwise = known_fields[i].otherwise;
		return true;
	}
	return false;
}

/* Undo the escapes of a value: \\, \, and \=. Returns new, or NULL. */
static char *unescape(const char *text)
{
	struct strbuf out = {0};

	for (; *text; text++) {
		if (*text == '\\' && (!text[1] || !strchr("\\,=", *++text))) {
			strbuf_done(&out);
			return NULL;
		}
		strbuf_addc(&out, *text);
	}
	return strbuf_take(&out);
}

static int parse_field(const struct selector_kind *kind, const char *term, json_t *fields,
		       struct err *err)
{
	size_t path_len = strcspn(term, "=!");
	auto_free char *path = str_ndup(term, path_len);
	const char *relation = term + path_len;
	size_t skip = str_starts(relation, "==") || str_starts(relation, "!=") ? 2
		      : *relation == '='                                       ? 1
									       : 0;
	auto_free char *value = unescape(relation + skip);
	struct field field;
	json_t *requirement = NULL;

	if (skip == 0)
		return refuse(err, "invalid selector: '%s'; must be PATH=VALUE or PATH!=VALUE",
			      term);
	if (!value)
		return refuse(err, "invalid selector: '%s'; only \\\\, \\, and \\= are escapes",
			      term);
	if (!find_field(kind, path, &field))
		return refuse(err, "field label not supported: %s", path);
	if (json_array_size(fields) >= SELECTOR_MAX)
		return refuse(err, "more than %d requirements", SELECTOR_MAX);
	requirement = json_object();
	json_put_str(requirement, "path", field.at);
	json_put_str(requirement, "value", value);
	json_put_bool(requirement, "equal", *relation != '!');
	json_put_str(requirement, "otherwise", field.otherwise);
	json_array_append_new(fields, requirement);
	return 0;
}

/* Length of the term up to a comma that is not escaped. */
static size_t term_length(const char *text)
{
	size_t len = 0;

	while (text[len] && text[len] != ',')
		len += text[len] == '\\' && text[len + 1] ? 2 : 1;
	return len;
}

/* Returns new, or NULL with err set. */
static json_t *parse_fields(const struct selector_kind *kind, const char *text, struct err *err)
{
	json_auto_t *fields = json_array();

	while (*text) {
		size_t len = term_length(text);
		auto_free char *term = str_ndup(text, len);

		if (*term && parse_field(kind, term, fields, err))
			return NULL;
		text += len;
		text += *text == ',';
	}
	return take_ptr(fields);
}

static const json_t *value_at(const json_t *object, const char *path)
{
	const json_t *value = object;

	while (value && *path) {
		size_t len = strcspn(path, ".");
		auto_free char *key = str_ndup(path, len);

		value = json_at(value, key);
		path += len;
		path += *path == '.';
	}
	return value;
}

static bool field_matches(const json_t *requirement, const json_t *object)
{
	const json_t *value = value_at(object, json_str_at(requirement, "path"));
	auto_free char *text = NULL;

	if (!value)
		text = str_dup(json_str_or(json_at(requirement, "otherwise"), ""));
	else
		text = json_is_string(value) ? str_dup(json_string_value(value)) : json_text(value);
	return str_eq(text, json_str_at(requirement, "value")) ==
	       json_is_true(json_at(requirement, "equal"));
}

/* ---- both ------------------------------------------------------------------------------------ */

struct selector *selector_new(const struct selector_kind *kind, const char *labels,
			      const char *fields, struct err *err)
{
	auto_selector struct selector *selector = mem_new(struct selector);

	if (!str_empty(labels)) {
		selector->labels = parse_labels(labels, err);
		if (!selector->labels)
			return NULL;
	}
	if (!str_empty(fields)) {
		selector->fields = parse_fields(kind, fields, err);
		if (!selector->fields)
			return NULL;
	}
	return take_ptr(selector);
}

void selector_free(struct selector *selector)
{
	if (!selector)
		return;
	json_decref(selector->labels);
	json_decref(selector->fields);
	mem_free(selector);
}

bool selector_matches(const struct selector *selector, const json_t *object)
{
	const json_t *requirement = NULL;
	size_t i = 0;

	if (!selector)
		return true;
	if (selector->labels &&
	    !label_selector_matches(selector->labels, json_at(object, "metadata", "labels")))
		return false;
	json_array_foreach (selector->fields, i, requirement)
		if (!field_matches(requirement, object))
			return false;
	return true;
}
