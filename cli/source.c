// SPDX-License-Identifier: Apache-2.0
/*
 * Three ways to one world: objects of files, parts of a support dump, lists of the API server for
 * the kinds that the command's row names. A kind that cannot be read is noted in the world, so that
 * nothing is concluded from its absence. What the operator was started with comes along as env.
 */
#include "cli/source.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/session.h"
#include "cli/support/bundle.h"
#include "cli/support_list.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "lib/kube/status.h"
#include "operator/cache/kinds.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/audit.h"
#include "reconcilers/ipam/allocate/release.h"

#define FILE_SIZE_MAX (512 << 20)
#define PAGE          "limit=500"

/* Kinds that the operator does not cache, but commands read. */
static const struct kube_resource more[] = {
	{"", "v1", "configmaps", "ConfigMap", true},
	{"apps", "v1", KIND_STATEFUL_SET, "StatefulSet", true},
	{"coordination.k8s.io", "v1", CLI_LEASES, "Lease", true},
	{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true},
	{"kubevirt.io", "v1", KIND_VIRTUAL_MACHINE_INSTANCE, "VirtualMachineInstance", true},
	{"kubevirt.io", "v1", KIND_VIRTUAL_MACHINE, "VirtualMachine", true},
};

bool source_resource(const char *id, struct kube_resource *ret)
{
	const struct kind_info *kind = kind_find(id);

	assert(id && ret);
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		if (str_eq(more[i].plural, id)) {
			*ret = more[i];
			return true;
		}
	}
	if (!kind) {
		/* Of other projects, which the operator looks at. */
		for (const struct operator_kind *row = operator_kinds; row->kind; row++)
			if (str_eq(row->resource.plural, id)) {
				*ret = row->resource;
				return true;
			}
		return false;
	}
	*ret = (struct kube_resource){kind->group, kind->version, kind->id, kind->kind,
				      kind->namespaced};
	return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Of which of the kinds it is; NULL: of none. */
static const char *kind_of(const char *const *kinds, const json_t *object,
			   struct kube_resource *ret)
{
	const char *version = json_str_or(json_at(object, "apiVersion"), "");
	const char *slash = strchr(version, '/');
	auto_free char *group = str_ndup(version, slash ? (size_t)(slash - version) : 0);

	for (size_t i = 0; kinds[i]; i++)
		if (source_resource(kinds[i], ret) && str_eq(ret->group, group) &&
		    str_eq(ret->kind, json_str_at(object, "kind")))
			return kinds[i];
	return NULL;
}

/* True when it is of one of the kinds. */
static bool add_object(json_t *world, const char *const *kinds, const json_t *object)
{
	struct kube_resource resource;
	const char *kind = kind_of(kinds, object, &resource);
	auto_free char *key = json_key(object);

	if (kind)
		json_object_set(json_need_object(world, kind), key, (json_t *)object);
	return kind != NULL;
}

/* "-" is standard input. */
static int read_text(const char *path, struct strbuf *ret, struct err *err)
{
	char piece[65536];
	ssize_t n;

	if (!str_eq(path, "-"))
		return fs_read(AT_FDCWD, path, FILE_SIZE_MAX, ret, err);
	while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0) {
		strbuf_add(ret, piece, (size_t)n);
		if (ret->len > FILE_SIZE_MAX)
			return err_set(err, ERR_INVALID, "FileTooLarge",
				       "standard input has more than %d bytes", FILE_SIZE_MAX);
	}
	return n < 0 ? err_sys(err, "FileUnreadable", "standard input") : 0;
}

/* Append the objects of a file; those of a list one by one. */
static int read_objects(json_t *objects, const char *path, struct err *err)
{
	json_auto_t *documents = NULL, *warnings = json_array();
	auto_strbuf struct strbuf text = {0};
	json_t *document;
	size_t i;

	if (read_text(path, &text, err) < 0)
		return -1;
	documents = yaml_parse_as_kubectl(strbuf_str(&text), text.len, warnings, err);
	json_array_foreach (warnings, i, document) {
		auto_free char *line = str_dup(json_string_value(document));

		str_cover_controls(line, "", '?');
		fprintf(stderr, "warning: %s: %s\n", path, line);
	}
	if (!documents)
		return err_in(err, "%s", path);
	json_array_foreach (documents, i, document) {
		json_t *items = json_at(document, "items");

		if (!json_is_object(document))
			return err_set(err, ERR_INVALID, "BadFile",
				       "%s: document %zu is no Kubernetes object: write what "
				       "kubectl get -o yaml "
				       "prints",
				       path, i + 1);
		if (json_is_array(items))
			json_array_extend(objects, items);
		else
			json_array_append(objects, document);
	}
	return 0;
}

static void add_objects(json_t *world, const char *const *kinds, const json_t *objects)
{
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object)
		(void)add_object(world, kinds, object);
}

/* ---- support dumps --------------------------------------------------------------------------- */

struct unpacking {
	json_t *world;
	const char *const *kinds;
};

static const char *kind_of_part(const struct unpacking *u, const char *name)
{
	for (size_t i = 0; u->kinds[i]; i++) {
		struct kube_resource resource;
		auto_free char *file = NULL;

		if (source_resource(u->kinds[i], &resource))
			file = support_file_name(&resource);
		if (str_eq(file, name))
			return u->kinds[i];
	}
	return NULL;
}

static bool wants_part(void *arg, const char *name)
{
	return str_eq(name, SUPPORT_INDEX) || kind_of_part(arg, name);
}

/* What decisions take from it is as it should be. */
static int check_index(const json_t *index, struct err *err)
{
	const json_t *settings = json_at(index, "operator"), *list;
	const char *text;
	int64_t time;

	if (!str_eq(json_str_at(index, "kind"), SUPPORT_KIND))
		return err_set(err, ERR_INVALID, "BadDump",
			       SUPPORT_INDEX ": is not of kind " SUPPORT_KIND);
	if (!rfc3339_read(json_str_or(json_at(index, "time"), ""), &time))
		return err_set(err, ERR_INVALID, "BadDump", SUPPORT_INDEX ": time: is none");
	if (json_get_str(settings, "operator", "namespace", "", &text, err) < 0 ||
	    json_get_str(settings, "operator", "configNamespace", "", &text, err) < 0 ||
	    json_get_str(settings, "operator", "resourcePrefix", "", &text, err) < 0 ||
	    json_get_strings(settings, "operator", "policyNamespaces", &list, err) < 0)
		return err_in(err, SUPPORT_INDEX);
	return 0;
}

static int take_part(void *arg, const char *name, const char *text, size_t len, struct err *err)
{
	struct unpacking *u = arg;
	json_auto_t *value = json_parse(text, len, err);
	json_t *object;
	size_t i;

	if (!value)
		return err_in(err, "%s", name);
	if (str_eq(name, SUPPORT_INDEX)) {
		json_object_set(u->world, CLI_DUMP, value);
		return check_index(value, err);
	}
	if (!json_is_array(json_at(value, "items")))
		return err_set(err, ERR_INVALID, "BadDump", "%s: is no list", name);
	json_array_foreach (json_at(value, "items"), i, object)
		if (!*json_name(object) || !add_object(u->world, u->kinds, object))
			return err_set(err, ERR_INVALID, "BadDump", "%s: items[%zu]: is no %s",
				       name, i, kind_of_part(u, name));
	return 0;
}

static int read_dump(json_t *world, const char *const *kinds, const char *path, struct err *err)
{
	struct unpacking unpacking = {world, kinds};
	const struct bundle_reader reader = {wants_part, take_part, &unpacking};

	if (bundle_read(path, &reader, err) < 0)
		return -1;
	if (!json_at(world, CLI_DUMP))
		return err_set(err, ERR_INVALID, "BadDump",
			       "%s: no support dump: there is no " SUPPORT_INDEX " in it", path);
	return 0;
}

/* ---- the API server -------------------------------------------------------------------------- */

static void add_listed(void *arg, json_t *object)
{
	auto_free char *key = json_key(object);

	json_object_set(arg, key, object);
}

static int list_kinds(const struct cli *cli, struct session *session, json_t *world,
		      const char *const *kinds, struct err *err)
{
	const char *optional = cli->command ? cli->command->optional : NULL;
	struct kube_resource resource;

	for (; *kinds; kinds++) {
		struct err why = {0};

		if (!source_resource(*kinds, &resource) ||
		    session_list(session, &resource, NULL, NULL, add_listed,
				 json_need_object(world, *kinds), NULL, &why) == 0)
			continue;
		if (str_eq(*kinds, optional) && str_eq(why.reason, "Forbidden")) {
			fprintf(stderr, "orbweaver: left out: %s: %s\n", resource.plural, why.text);
			continue;
		}
		*err = why;
		return err_in(err, "list %s", resource.plural);
	}
	return 0;
}

static int read_server(const struct cli *cli, json_t *world, const char *const *kinds,
		       struct err *err)
{
	struct session session;
	int result;

	if (session_open(cli, &session, err) < 0)
		return -1;
	result = session_hello(&session, NULL, err);
	if (result == 0)
		result = list_kinds(cli, &session, world, kinds, err);
	session_close(&session);
	return result;
}

/* ---- writes ---------------------------------------------------------------------------------- */

struct answer {
	struct loop *loop;
	struct err err;
	bool has_failed;
};

static void on_answer(void *arg, json_t *object, const struct err *err)
{
	struct answer *answer = arg;

	answer->has_failed = err != NULL;
	if (err)
		answer->err = *err;
	loop_stop(answer->loop);
}

/* Begin the write of one operation; false when there is nothing to write. */
static bool begin(const struct cli *cli, const struct session *s, const json_t *op,
		  const struct kube_resource *resource, struct answer *answer, const char **ret_did)
{
	const char *kind = json_str_at(op, "op");
	const json_t *object = world_get(cli->world, resource->plural, json_str_at(op, "key"));
	const char *version = json_str_at(object, "metadata", "resourceVersion");
	const struct kube_write how = {.subresource = "status"}, plain = {0};

	if (str_eq(kind, "status")) {
		json_auto_t *changed = json_copy((json_t *)object);

		json_put(changed, "status", json_incref(json_at(op, "status")));
		kube_update(s->client, resource, changed, &how, on_answer, answer);
		*ret_did = "ledger written";
	} else if (str_eq(kind, "meta")) {
		json_auto_t *metadata = json_copy(json_at(op, "metadata"));
		json_auto_t *patch = json_pack("{s:O}", "metadata", metadata);

		json_put_str(metadata, "resourceVersion", version);
		kube_patch(s->client, resource, json_namespace(object), json_name(object),
			   KUBE_PATCH_MERGE, patch, &plain, on_answer, answer);
		*ret_did = json_at(metadata, "finalizers") ? "finalizer removed" : "annotated";
	} else if (str_eq(kind, "delete")) {
		kube_delete(s->client, resource, json_namespace(object), json_name(object),
			    json_str_at(op, "uid"), NULL, &plain, on_answer, answer);
		*ret_did = "deleted";
	} else {
		return false;
	}
	return true;
}

static int apply_one(const struct cli *cli, const struct session *s, const json_t *op,
		     struct strbuf *out, struct err *err)
{
	struct answer answer = {.loop = s->loop};
	struct kube_resource resource;
	const char *did = NULL;

	if (!source_resource(json_str_at(op, "kind"), &resource) ||
	    !begin(cli, s, op, &resource, &answer, &did))
		return 0;
	loop_run(s->loop);
	/* Without its finalizer an object that was being deleted is gone already. */
	if (answer.has_failed &&
	    !(str_eq(did, "deleted") && str_eq(answer.err.reason, "NotFound"))) {
		*err = answer.err;
		return err_in(err, "%s %s", resource.kind, json_str_at(op, "key"));
	}
	strbuf_addf(out, "%s %s: %s\n", resource.kind, json_str_at(op, "key"), did);
	return 0;
}

int source_apply(const struct cli *cli, const struct plan *plan, struct strbuf *out,
		 struct err *err)
{
	struct session session;
	int status = 0;
	json_t *op;
	size_t i;

	if (session_open(cli, &session, err) < 0)
		return -1;
	json_array_foreach (plan->ops, i, op) {
		status = apply_one(cli, &session, op, out, err);
		if (status < 0)
			break;
	}
	session_close(&session);
	return status;
}

/* Kinds of a dump, each once. */
static void list_kinds_of_dump(const char *ret[SUPPORT_SELECTIONS_MAX + 1])
{
	struct support_selection list[SUPPORT_SELECTIONS_MAX];
	size_t n = support_list(list);

	for (size_t i = 0; i < n; i++)
		if (i == 0 || !support_same_resource(&list[i].resource, &list[i - 1].resource))
			*ret++ = list[i].resource.plural;
	*ret = NULL;
}

json_t *source_read(const struct cli *cli, const char *const *kinds, struct err *err)
{
	const char *of_dump[SUPPORT_SELECTIONS_MAX + 1];
	json_auto_t *world = json_object();

	if (!kinds) {
		list_kinds_of_dump(of_dump);
		kinds = of_dump;
	}

	for (size_t i = 0; kinds[i]; i++)
		json_need_object(world, kinds[i]);
	if (!kinds[0])
		return json_incref(world);
	if (!cli->files)
		return read_server(cli, world, kinds, err) < 0 ? NULL : json_incref(world);
	json_put(world, CLI_GIVEN, json_array());
	for (size_t i = 0; cli->files[i]; i++) {
		const char *path = cli->files[i];

		if ((bundle_is(path) ? read_dump(world, kinds, path, err)
				     : read_objects(json_at(world, CLI_GIVEN), path, err)) < 0)
			return NULL;
	}
	add_objects(world, kinds, json_at(world, CLI_GIVEN));
	return json_incref(world);
}

/* ---- all that decisions may look at ---------------------------------------------------------- */

static void read_rest(struct session *session, const struct support_selection *selection,
		      json_t *world)
{
	const struct kube_resource *resource = &selection->resource;
	auto_free char *name = support_resource_name(resource), *selector = NULL;
	struct err err = {0};

	if (selection->name)
		selector = str_printf("fieldSelector=metadata.name%%3D%s", selection->name);
	if (session_list(session, resource, NULL, selector, add_listed,
			 json_need_object(world, resource->plural), NULL, &err) < 0)
		json_put_str(json_need_object(world, CLI_UNREAD), name, err.text);
}

int source_read_rest(const struct cli *cli, json_t *world, struct err *err)
{
	const char *kinds[SUPPORT_SELECTIONS_MAX + 1];

	if (!cli->files) {
		struct support_selection list[SUPPORT_SELECTIONS_MAX];
		size_t n = support_list_mirrored(list);
		struct session session;

		if (session_open(cli, &session, err) < 0)
			return -1;
		for (size_t i = 0; i < n; i++)
			if (list[i].name || !json_at(world, list[i].resource.plural))
				read_rest(&session, &list[i], world);
		session_close(&session);
		return 0;
	}
	list_kinds_of_dump(kinds);
	for (size_t i = 0; cli->files[i]; i++)
		if (bundle_is(cli->files[i]) && read_dump(world, kinds, cli->files[i], err) < 0)
			return -1;
	add_objects(world, kinds, json_at(world, CLI_GIVEN));
	return 0;
}

/* By its name, so that the right to get this one is enough. */
static bool read_lease_of_server(const struct cli *cli, const char *ns, json_t **ret_lease)
{
	auto_strbuf struct strbuf path = {0}, text = {0};
	struct session session;
	struct err err = {0};
	bool is_read;

	strbuf_adds(&path, "/apis/coordination.k8s.io/v1/namespaces/");
	kube_path_encode(&path, ns);
	strbuf_adds(&path, "/" CLI_LEASES "/" OPERATOR_NAME);
	if (session_open(cli, &session, &err) < 0)
		return false;
	is_read = session_get(&session, strbuf_str(&path), 0, &text, &err) == 0;
	session_close(&session);
	if (!is_read)
		return kube_err_is(&err, "NotFound");
	*ret_lease = json_parse(strbuf_str(&text), text.len, &err);
	return *ret_lease != NULL;
}

bool source_read_lease(const struct cli *cli, const char *ns, json_t **ret_lease)
{
	static const char *const kinds[] = {CLI_LEASES, NULL};
	auto_free char *key = str_printf("%s/%s", ns, OPERATOR_NAME);
	json_auto_t *found = json_object();
	struct err err = {0};

	*ret_lease = json_incref((json_t *)world_get(cli->world, CLI_LEASES, key));
	if (json_at(cli->world, CLI_LEASES))
		return json_is_object(json_at(cli->world, CLI_LEASES));
	if (!cli->files)
		return read_lease_of_server(cli, ns, ret_lease);
	for (size_t i = 0; cli->files[i]; i++)
		if (bundle_is(cli->files[i]) && read_dump(found, kinds, cli->files[i], &err) < 0)
			return false;
	add_objects(found, kinds, json_at(cli->world, CLI_GIVEN));
	*ret_lease = json_incref((json_t *)world_get(found, CLI_LEASES, key));
	return *ret_lease != NULL;
}

bool source_is_unread(const json_t *world, const char *kind)
{
	struct kube_resource resource;
	auto_free char *name =
		source_resource(kind, &resource) ? support_resource_name(&resource) : NULL;

	return name && json_at(world, CLI_UNREAD, name);
}

int source_objects(json_t *objects, const char *path, struct err *err)
{
	assert(json_is_array(objects) && path);
	return read_objects(objects, path, err);
}

const char *source_kind(const struct cli *cli, json_t *object)
{
	struct support_selection list[SUPPORT_SELECTIONS_MAX];
	const char *kinds[SUPPORT_SELECTIONS_MAX + 1] = {NULL}, *kind;
	size_t n = support_list_mirrored(list);
	struct kube_resource resource;

	for (size_t i = 0; i < n; i++)
		kinds[i] = list[i].resource.plural;
	kind = kind_of(kinds, object, &resource);
	if (!kind)
		kind = kind_of(cli->command->kinds, object, &resource);
	/* As kubectl takes them. */
	if (kind && resource.namespaced && !*json_namespace(object))
		json_put_str(json_need_object(object, "metadata"), "namespace", cli->ns);
	return kind;
}

/* ---- what the SR-IOV side decides on --------------------------------------------------------- */

/* What a dump knows of the operator; NULL: it is none. */
static const json_t *dumped(const json_t *world)
{
	return json_at(world, CLI_DUMP, "operator");
}

/* The NodeStates' namespace is the operator's. */
char *source_operator_namespace(const struct cli *cli)
{
	const char *told = json_str_at(dumped(cli->world), "namespace");
	json_t *state;
	const char *key;

	if (cli->operator_ns || told)
		return str_dup(cli->operator_ns ? cli->operator_ns : told);
	json_each (world_kind(cli->world, KIND_NODE_STATE), key, state)
		return str_dup(json_str_or(json_at(state, "metadata", "namespace"), ""));
	return str_dup("orbweaver-system");
}

/* That of a dump, else what the operator's own flag has as a default: its namespace. */
char *source_config_namespace(const struct cli *cli)
{
	const char *told = json_str_at(dumped(cli->world), "configNamespace");

	return told ? str_dup(told) : source_operator_namespace(cli);
}

/* Which namespaces besides its own may command nodes. */
static json_t *trusted_namespaces(const struct cli *cli)
{
	const json_t *told = json_at(dumped(cli->world), "policyNamespaces");
	json_t *trusted = json_array();

	if (!cli->policy_ns && told)
		json_array_extend(trusted, (json_t *)told);
	for (const char *at = cli->policy_ns; at && *at; at += strspn(at, ",")) {
		size_t len = strcspn(at, ",");

		json_array_append_new(trusted, json_stringn(at, len));
		at += len;
	}
	return trusted;
}

json_t *source_world(const struct cli *cli)
{
	json_t *world = json_object(), *objects;
	const char *kind;
	json_t *env;
	auto_free char *ns = NULL;
	char now[RFC3339_SIZE];

	json_each (cli->world, kind, objects)
		json_put(world, kind, json_copy(objects));
	env = json_need_object(world, "env");
	ns = source_operator_namespace(cli);
	rfc3339_write(clock_wall_us(), now);
	/* What stands in a dump is as old as the dump. */
	json_put_str(env, "now", json_str_or(json_at(cli->world, CLI_DUMP, "time"), now));
	json_put_str(env, "namespace", ns);
	/* What is not there is not in the cluster either. */
	json_put_bool(env, "readsCluster", !cli->files);
	json_put_str(env, "resourcePrefix",
		     json_str_or(json_at(dumped(cli->world), "resourcePrefix"), "spidernet.io"));
	json_put(env, "policyNamespaces", trusted_namespaces(cli));
	return world;
}
