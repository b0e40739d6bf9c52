// SPDX-License-Identifier: Apache-2.0
/*
 * Shape first: after kubeconfig_add_* every list is an array of objects with unique names, so that
 * lookups need no checks. Field checks happen only for the entries that are used; a broken
 * neighbour does not matter.
 */
#include "lib/kube/auth/kubeconfig.h"

#include <assert.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "lib/kube/auth/file.h"
#include "lib/kube/auth/secret.h"

/* Names listed in a message before "and N more". */
#define NAMES_SHOWN 8

static const struct list_words {
	const char *list, *entry;
} words[] = {
	[KUBECONFIG_CLUSTERS] = {"clusters", "cluster"},
	[KUBECONFIG_CONTEXTS] = {"contexts", "context"},
	[KUBECONFIG_USERS] = {"users", "user"},
};

/* ---- files ----------------------------------------------------------------------------------- */

static bool has_control_characters(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return true;
	return false;
}

static int check_header(const json_t *json, const char *path, const char *field, const char *want,
			struct err *err)
{
	const json_t *value = json_at(json, field);

	if (!value || str_eq(json_string_value(value), want))
		return 0;
	if (json_is_string(value))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: %s is \"%s\", must be %s", path, field,
			       json_string_value(value), want);
	return err_set(err, ERR_INVALID, "BadKubeconfig", "kubeconfig %s: %s is %s, must be %s",
		       path, field, json_type_words(value), want);
}

/* One element of clusters, contexts or users: { name: …, cluster: { … } }. */
static int check_element(const json_t *element, const char *path, const struct list_words *w,
			 size_t i, json_t *seen, struct err *err)
{
	const json_t *name = json_at(element, "name"), *body = json_at(element, w->entry);
	const char *text = json_string_value(name);

	if (!json_is_object(element))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: %s[%zu] is %s, must be an object with name and %s",
			       path, w->list, i, json_type_words(element), w->entry);
	if (str_empty(text))
		return err_set(
			err, ERR_INVALID, "BadKubeconfig",
			"kubeconfig %s: %s[%zu].name is %s, must be a string that is not empty",
			path, w->list, i,
			!name  ? "missing"
			: text ? "empty"
			       : json_type_words(name));
	if (has_control_characters(text))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: %s[%zu].name holds a line break or another control "
			       "character",
			       path, w->list, i);
	if (json_object_get(seen, text))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: two %s are named \"%s\"; remove one", path, w->list,
			       text);
	if (body && !json_is_object(body))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: %s \"%s\": %s is %s, must be an object", path,
			       w->entry, text, w->entry, json_type_words(body));
	json_object_set_new(seen, text, json_true());
	return 0;
}

static int check_list(const json_t *json, const char *path, const struct list_words *w,
		      struct err *err)
{
	json_auto_t *seen = json_object();
	const json_t *list = json_at(json, w->list), *element;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: %s is %s, must be a list", path, w->list,
			       json_type_words(list));
	json_array_foreach (list, i, element)
		if (check_element(element, path, w, i, seen, err) < 0)
			return -1;
	return 0;
}

static int check_shape(const json_t *json, const char *path, struct err *err)
{
	const json_t *current = json_at(json, "current-context");

	if (!json_is_object(json))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: the file is %s, must be an object with clusters, "
			       "contexts, users",
			       path, json_type_words(json));
	if (check_header(json, path, "kind", "Config", err) < 0 ||
	    check_header(json, path, "apiVersion", "v1", err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (check_list(json, path, &words[i], err) < 0)
			return -1;
	if (current && !json_is_string(current))
		return err_set(
			err, ERR_INVALID, "BadKubeconfig",
			"kubeconfig %s: current-context is %s, must be a string (put it in quotes)",
			path, json_type_words(current));
	if (current && has_control_characters(json_string_value(current)))
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: current-context holds a line break or another "
			       "control character",
			       path);
	return 0;
}

/*
 * The parser says "line 5, column 12: …" and may go on to quote what is there, which can be half a
 * password. The place is enough to find it.
 */
static int bad_yaml(const char *path, const struct err *parser, struct err *err)
{
	bool placed = str_starts(parser->text, "line ");
	size_t len = placed ? strcspn(parser->text, ":") : 0;

	return err_set(err, ERR_INVALID, "BadYaml",
		       "kubeconfig %s: %s%.*s is not valid YAML; quote values that hold special "
		       "characters",
		       path, placed ? "" : "it", (int)len, parser->text);
}

int kubeconfig_add_text(struct kubeconfig *k, const char *path, const char *text, size_t len,
			struct err *err)
{
	struct err parser = {0};
	json_auto_t *documents = yaml_parse_all(text, len, &parser);
	json_auto_t *json = NULL;

	if (!documents)
		return bad_yaml(path, &parser, err);
	if (json_array_size(documents) > 1)
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "kubeconfig %s: holds %zu YAML documents, must hold one", path,
			       json_array_size(documents));

	/* As for kubectl, an empty file is a kubeconfig with nothing in it. */
	json = json_array_size(documents) ? json_incref(json_array_get(documents, 0))
					  : json_object();
	if (check_shape(json, path, err) < 0)
		return -1;
	k->files = mem_realloc(k->files, (k->len + 1) * sizeof(*k->files));
	k->files[k->len++] =
		(struct kubeconfig_file){.path = str_dup(path), .json = take_ptr(json)};
	return 0;
}

/* Paths of the tree that stands for "/", if there is one. */
static char *rooted(const struct kubeconfig *k, const char *path)
{
	return str_printf("%s%s%s", k->root, *k->root && *path != '/' ? "/" : "", path);
}

int kubeconfig_add_file(struct kubeconfig *k, const char *path, struct err *err)
{
	auto_secret_buf struct strbuf text = {0};
	auto_free char *real = rooted(k, path);

	/*
	 * Not file_read: `--kubeconfig <(command)` is a pipe, and waiting for it at the start is
	 * right.
	 */
	if (fs_read(AT_FDCWD, real, KUBE_CONFIG_MAX_FILE, &text, err) < 0)
		return err_in(err, "kubeconfig");
	return kubeconfig_add_text(k, path, strbuf_str(&text), text.len, err);
}

void kubeconfig_done(struct kubeconfig *k)
{
	for (size_t i = 0; i < k->len; i++) {
		mem_free(k->files[i].path);
		json_decref(k->files[i].json);
	}
	mem_free(k->files);
	*k = (struct kubeconfig){0};
}

char *kubeconfig_subject(const struct kubeconfig *k)
{
	auto_strbuf struct strbuf b = {0};

	for (size_t i = 0; i < k->len; i++)
		strbuf_addf(&b, "%s%s", i ? ":" : "kubeconfig ", k->files[i].path);
	return strbuf_take(&b);
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool find(const struct kubeconfig *k, enum kubeconfig_list list, const char *name,
		 struct kubeconfig_entry *ret)
{
	for (const struct kubeconfig_file *f = k->files; f < k->files + k->len; f++) {
		const json_t *element = json_find(json_at(f->json, words[list].list), "name", name);

		if (!element)
			continue;
		*ret = (struct kubeconfig_entry){
			.of = k,
			.file = f,
			.list = list,
			.name = json_str_at(element, "name"),
			.body = json_at(element, words[list].entry),
			.prefix = "",
		};
		return true;
	}
	return false;
}

/* "alice, bob", "alice, … and 3 more", "none": for messages. */
static char *names_of(const struct kubeconfig *k, enum kubeconfig_list list)
{
	auto_strbuf struct strbuf b = {0};
	const json_t *element;
	size_t i, n = 0;

	for (const struct kubeconfig_file *f = k->files; f < k->files + k->len; f++)
		json_array_foreach (json_at(f->json, words[list].list), i, element) {
			if (n < NAMES_SHOWN)
				strbuf_addf(&b, "%s%s", n ? ", " : "",
					    json_str_at(element, "name"));
			n++;
		}
	if (n > NAMES_SHOWN)
		strbuf_addf(&b, " and %zu more", n - NAMES_SHOWN);
	return n ? strbuf_take(&b) : str_dup("none");
}

static const char *current_context(const struct kubeconfig *k)
{
	for (size_t i = 0; i < k->len; i++) {
		const char *name = json_str_at(k->files[i].json, "current-context");

		if (!str_empty(name))
			return name;
	}
	return NULL;
}

int kubeconfig_context(const struct kubeconfig *k, const char *wanted, struct kubeconfig_entry *ret,
		       struct err *err)
{
	auto_free char *subject = kubeconfig_subject(k);
	auto_free char *names = names_of(k, KUBECONFIG_CONTEXTS);
	const char *name = str_empty(wanted) ? current_context(k) : wanted;

	assert(ret);
	if (!name)
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "%s: has no current-context; choose one of its contexts (%s) with "
			       "--context",
			       subject, names);
	if (find(k, KUBECONFIG_CONTEXTS, name, ret))
		return 0;
	return err_set(err, ERR_INVALID, "BadKubeconfig",
		       "%s: %s \"%s\" is not among its contexts (%s)", subject,
		       str_empty(wanted) ? "current-context" : "context", name, names);
}

int kubeconfig_follow(const struct kubeconfig_entry *context, enum kubeconfig_list list,
		      struct kubeconfig_entry *ret, struct err *err)
{
	auto_free char *subject = kubeconfig_subject(context->of);
	auto_free char *names = names_of(context->of, list);
	const char *name = NULL;

	assert(ret);
	if (kubeconfig_str(context, words[list].entry, &name, err) < 0)
		return -1;
	if (!name)
		return kubeconfig_bad(context, err, "names no %s; choose one of %s (%s)",
				      words[list].entry, words[list].list, names);
	if (find(context->of, list, name, ret))
		return 0;
	return err_set(err, ERR_INVALID, "BadKubeconfig",
		       "%s: context \"%s\" names %s \"%s\", which is not among its %s (%s)",
		       subject, context->name, words[list].entry, name, words[list].list, names);
}

int kubeconfig_bad(const struct kubeconfig_entry *e, struct err *err, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	return err_set(err, ERR_INVALID, "BadKubeconfig", "kubeconfig %s: %s \"%s\": %s",
		       e->file->path, words[e->list].entry, e->name, text);
}

int kubeconfig_in(const struct kubeconfig_entry *e, const char *field, struct err *err)
{
	return err_in(err, "kubeconfig %s: %s \"%s\": %s%s", e->file->path, words[e->list].entry,
		      e->name, e->prefix, field);
}

/* ---- fields ---------------------------------------------------------------------------------- */

int kubeconfig_str(const struct kubeconfig_entry *e, const char *field, const char **ret,
		   struct err *err)
{
	const json_t *value = json_at(e->body, field);
	const char *text = json_string_value(value);

	assert(field && ret);
	if (value && !text)
		return kubeconfig_bad(e, err, "%s%s is %s, must be a string (put it in quotes)",
				      e->prefix, field, json_type_words(value));
	if (text && has_control_characters(text))
		return kubeconfig_bad(e, err,
				      "%s%s holds a line break or another control character",
				      e->prefix, field);
	*ret = str_empty(text) ? NULL : text;
	return 0;
}

int kubeconfig_bool(const struct kubeconfig_entry *e, const char *field, bool *ret, struct err *err)
{
	const json_t *value = json_at(e->body, field);

	assert(field && ret);
	if (value && !json_is_boolean(value))
		return kubeconfig_bad(e, err, "%s%s is %s, must be true or false", e->prefix, field,
				      json_type_words(value));
	*ret = json_is_true(value);
	return 0;
}

int kubeconfig_object(const struct kubeconfig_entry *e, const char *field, const char *prefix,
		      struct kubeconfig_entry *ret, struct err *err)
{
	const json_t *value = json_at(e->body, field);

	if (value && !json_is_object(value))
		return kubeconfig_bad(e, err, "%s%s is %s, must be an object", e->prefix, field,
				      json_type_words(value));
	*ret = *e;
	ret->body = value;
	ret->prefix = prefix;
	return 0;
}

static int get_list(const struct kubeconfig_entry *e, const char *field, json_type type,
		    const char *of, const json_t **ret, struct err *err)
{
	const json_t *list = json_at(e->body, field), *element;
	size_t i;

	if (list && !json_is_array(list))
		return kubeconfig_bad(e, err, "%s%s is %s, must be a list of %s", e->prefix, field,
				      json_type_words(list), of);
	json_array_foreach (list, i, element)
		if (json_typeof(element) != type)
			return kubeconfig_bad(e, err, "%s%s[%zu] is %s, must be a list of %s",
					      e->prefix, field, i, json_type_words(element), of);
	*ret = list;
	return 0;
}

int kubeconfig_objects(const struct kubeconfig_entry *e, const char *field, const json_t **ret,
		       struct err *err)
{
	return get_list(e, field, JSON_OBJECT, "objects", ret, err);
}

int kubeconfig_strings(const struct kubeconfig_entry *e, const char *field, const json_t **ret,
		       struct err *err)
{
	assert(field && ret);
	return get_list(e, field, JSON_STRING, "strings", ret, err);
}

char *kubeconfig_path(const struct kubeconfig_entry *e, const char *path)
{
	const char *slash = strrchr(e->file->path, '/');
	auto_free char *full = NULL;

	if (*path != '/' && slash)
		full = str_printf("%.*s/%s", (int)(slash - e->file->path), e->file->path, path);
	return rooted(e->of, full ? full : path);
}

/* ---- PEM ------------------------------------------------------------------------------------- */

static int pem_from_data(const struct kubeconfig_entry *e, const char *field, const char *data,
			 enum pem_kind kind, struct strbuf *out, struct err *err)
{
	if (base64_decode(data, strlen(data), out, err) < 0 ||
	    pem_check(strbuf_str(out), out->len, kind, err) < 0)
		return kubeconfig_in(e, field, err);
	return 0;
}

static int pem_from_file(const struct kubeconfig_entry *e, const char *field, const char *path,
			 enum pem_kind kind, struct strbuf *out, struct err *err)
{
	if (file_read(path, KUBE_CONFIG_MAX_PEM, out, NULL, err) < 0)
		return kubeconfig_in(e, field, err);
	if (pem_check(strbuf_str(out), out->len, kind, err) < 0) {
		err_in(err, "%s", path);
		return kubeconfig_in(e, field, err);
	}
	return 0;
}

/* base64 may be folded over lines, so line breaks are fine here and the decoder judges the rest. */
static int get_data(const struct kubeconfig_entry *e, const char *field, const char **ret,
		    struct err *err)
{
	const json_t *value = json_at(e->body, field);
	const char *text = json_string_value(value);

	if (value && !text)
		return kubeconfig_bad(e, err, "%s%s is %s, must be a base64 string", e->prefix,
				      field, json_type_words(value));
	*ret = str_empty(text) ? NULL : text;
	return 0;
}

int kubeconfig_pem(const struct kubeconfig_entry *e, const char *field, enum pem_kind kind,
		   char **ret_pem, char **ret_file, struct err *err)
{
	auto_free char *data_field = str_printf("%s-data", field);
	auto_secret_buf struct strbuf pem = {0};
	const char *path = NULL, *data = NULL;
	auto_free char *full = NULL;

	assert(field && ret_pem && ret_file);
	if (kubeconfig_str(e, field, &path, err) < 0 || get_data(e, data_field, &data, err) < 0)
		return -1;
	if (path && data)
		return kubeconfig_bad(e, err, "%s%s and %s%s are both given; remove one", e->prefix,
				      field, e->prefix, data_field);
	if (!path && !data)
		return 0;
	if (data && pem_from_data(e, data_field, data, kind, &pem, err) < 0)
		return -1;
	full = path ? kubeconfig_path(e, path) : NULL;
	if (full && pem_from_file(e, field, full, kind, &pem, err) < 0)
		return -1;
	*ret_pem = strbuf_take(&pem);
	if (ret_file)
		*ret_file = take_ptr(full);
	return 0;
}
