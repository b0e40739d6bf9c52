// SPDX-License-Identifier: Apache-2.0
/*
 * Parts are gathered one after the other: objects by support_list.c, programs by
 * support_programs.c. A part that fails becomes a line of the index and the rest goes on: a dump is
 * wanted when a cluster is in trouble. All goes through support/redact.c into support/bundle.c.
 */
#include "cli/support_dump.h"

#include <stdio.h>

#include "cli/source.h"
#include "cli/support_internal.h"
#include "cli/support_list.h"
#include "lib/base/clock.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

/* ---- objects --------------------------------------------------------------------------------- */

/* One file of objects, while it is filled. */
struct gathering {
	struct dump *dump;
	const struct support_selection *selection;
	struct strbuf text;
	int64_t items;
};

/* Lists of the API server leave the type out where the list says it. */
static json_t *with_type(const struct kube_resource *resource, json_t *object)
{
	json_t *typed = json_copy(object);

	json_put(typed, "apiVersion",
		 json_fmt("%s%s%s", resource->group, *resource->group ? "/" : "",
			  resource->version));
	json_put_str(typed, "kind", resource->kind);
	return typed;
}

static void gather_object(void *arg, json_t *object)
{
	struct gathering *g = arg;
	const struct kube_resource *resource = &g->selection->resource;
	json_auto_t *typed = with_type(resource, object), *kept = NULL;
	const char *program =
		json_str_or(json_at(object, "metadata", "labels", "app.kubernetes.io/name"), "");

	/* What other parts of the dump go by. */
	if (str_eq(resource->plural, KIND_POD) &&
	    (str_eq(program, OPERATOR_NAME) || str_eq(program, AGENT_NAME)))
		json_array_append(g->dump->programs, object);
	if (str_eq(resource->plural, "configmaps") && str_starts(json_name(object), OPERATOR_NAME))
		json_put(g->dump->settings, json_name(object),
			 json_incref(json_at(object, "data")));
	if (str_eq(resource->plural, KIND_NODE_STATE) &&
	    !str_eq(json_str_at(object, "status", "syncStatus"), "Succeeded"))
		json_put_bool(g->dump->troubled, json_name(object), true);
	kept = redact_object(g->dump->scrub, resource->plural, typed);
	if (!kept)
		return;
	strbuf_adds(&g->text, g->items ? ",\n" : "\n");
	json_write(kept, &g->text);
	g->items++;
}

/* ret_served: whether the API server has the kind. */
static int gather_selection(struct gathering *g, bool *ret_served, struct err *err)
{
	auto_free char *selector = NULL;
	const char *kind, *key;
	json_t *object;

	if (!g->dump->session) {
		/* -f: objects of files. */
		kind = g->selection->resource.plural;
		json_each (world_kind(g->dump->cli->world, kind), key, object)
			if (!g->selection->name || str_eq(g->selection->name, json_name(object)))
				gather_object(g, object);
		*ret_served = true;
		return 0;
	}
	if (g->selection->name)
		selector = str_printf("fieldSelector=metadata.name%%3D%s", g->selection->name);
	return session_list(g->dump->session, &g->selection->resource, NULL, selector,
			    gather_object, g, ret_served, err);
}

/* All selections of one resource, n of them, become one file. */
static int dump_objects(struct dump *dump, const struct support_selection *selections, size_t n,
			struct err *err)
{
	const struct kube_resource *resource = &selections[0].resource;
	auto_free char *name = support_resource_name(resource), *file = support_file_name(resource);
	struct gathering g = {.dump = dump};
	size_t succeeded = 0;
	bool served = true;
	int result = 0;

	dump_progress(dump, name);
	strbuf_addf(&g.text, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
	for (size_t i = 0; i < n && served; i++) {
		auto_free char *what = selections[i].name
					       ? str_printf("%s %s", name, selections[i].name)
					       : str_dup(name);
		struct err failure = {0};

		g.selection = &selections[i];
		if (gather_selection(&g, &served, &failure) == 0)
			succeeded++;
		else
			dump_failed(dump, what, &failure);
	}
	strbuf_adds(&g.text, "\n]}\n");
	dump->objects += (size_t)g.items;
	if (!served)
		dump_skipped(dump, name, "the API server does not have this kind");
	else if (succeeded > 0)
		result = dump_add(dump, name, file, &g.text, g.items, err);
	strbuf_done(&g.text);
	return result;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int fill(struct dump *dump, struct err *err)
{
	struct support_selection list[SUPPORT_SELECTIONS_MAX];
	size_t n, end;
	auto_strbuf struct strbuf text = {0};
	char *pretty;

	n = support_list(list);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n; end++)
			if (!support_same_resource(&list[i].resource, &list[end].resource))
				break;
		if (dump_objects(dump, &list[i], end - i, err) < 0)
			return -1;
	}
	if ((dump->session && dump_programs(dump, err) < 0))
		return -1;
	json_put(dump->index, "operator", dump_settings(dump));
	json_put_int(dump->index, "replaced", (int64_t)scrub_count(dump->scrub));
	pretty = json_dumps(dump->index, JSON_INDENT(1));
	strbuf_adds(&text, pretty);
	strbuf_addc(&text, '\n');
	free(pretty);
	if (bundle_add(dump->bundle, SUPPORT_INDEX, text.data, text.len, err) < 0)
		return -1;
	dump_progress(dump, NULL);
	return 0;
}

/* "orbweaver-dump-20260131T100000Z.tar.gz" */
static char *default_name(const char *now)
{
	auto_strbuf struct strbuf name = {0};

	strbuf_adds(&name, BUNDLE_TOP "-");
	for (; *now; now++)
		if (*now != '-' && *now != ':')
			strbuf_addc(&name, *now);
	strbuf_adds(&name, ".tar.gz");
	return strbuf_take(&name);
}

static int write_dump(const struct cli *cli, struct session *session, json_t *version,
		      struct strbuf *out, enum cli_status *ret_status, struct err *err)
{
	int64_t now_us = clock_wall_us();
	struct dump dump = {.cli = cli, .session = session};
	auto_free char *path = NULL;
	char now[RFC3339_SIZE];
	size_t size = 0;
	int result;

	rfc3339_write(now_us, now);
	path = cli->to ? str_dup(cli->to) : default_name(now);
	if (bundle_create(path, now_us, &dump.bundle, err) < 0)
		return -1;
	dump.scrub = scrub_new();
	dump.programs = json_array();
	dump.settings = json_object();
	dump.troubled = json_object();
	dump.index = json_pack("{s:s, s:s, s:s, s:s}", "apiVersion", CLI_API_VERSION, "kind",
			       SUPPORT_KIND, "time", now, "version", ORBWEAVER_VERSION);
	json_put(dump.index, "server", json_incref(version));
	json_put(dump.index, "parts", json_array());
	result = fill(&dump, err);
	if (result == 0)
		result = bundle_finish(dump.bundle, &size, err);
	if (result == 0)
		strbuf_addf(out, "%s: %zu objects, %zu parts, %zu of them missing, %zu KiB\n", path,
			    dump.objects, json_array_size(json_at(dump.index, "parts")),
			    dump.failed, (size + 1023) / 1024);
	*ret_status = dump.failed > 0 ? CLI_FOUND : CLI_OK;
	bundle_free(dump.bundle);
	scrub_free(dump.scrub);
	json_decref(dump.programs);
	json_decref(dump.settings);
	json_decref(dump.troubled);
	json_decref(dump.index);
	return result;
}

/* No argument is wrong: what it names cannot be read. */
static int unreadable(struct err *err)
{
	err->class = ERR_HOST;
	return -1;
}

int support_dump_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		     struct err *err)
{
	json_auto_t *version = NULL;
	struct session session;
	int result;

	if (cli->files) {
		json_auto_t *world = source_read(cli, NULL, err);
		struct cli filled = *cli;

		/* With -f: what is in the files. */
		if (!world)
			return unreadable(err);
		filled.world = world;
		return write_dump(&filled, NULL, NULL, out, ret_status, err);
	}
	if (session_open(cli, &session, err) < 0)
		return unreadable(err);
	result = session_hello(&session, &version, err);
	if (result == 0)
		result = write_dump(cli, &session, version, out, ret_status, err);
	session_close(&session);
	return result;
}
