// SPDX-License-Identifier: Apache-2.0
/* Whose word counts beyond its own namespace; see trust.h. */
#include "reconcilers/core/trust.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/reconcile.h"

static const char *const always_trusted[] = {"kube-system", "spiderpool"};

bool namespace_is_trusted(const json_t *world, const char *ns)
{
	const json_t *name;
	size_t i;

	if (str_empty(ns))
		return false;
	if (str_eq(ns, world_env(world, "namespace")))
		return true;
	for (i = 0; i < ARRAY_LEN(always_trusted); i++)
		if (str_eq(ns, always_trusted[i]))
			return true;
	json_array_foreach (json_at(world, "env", "policyNamespaces"), i, name)
		if (str_eq(ns, json_string_value(name)))
			return true;
	return false;
}

bool object_is_trusted(const json_t *world, const json_t *object)
{
	return namespace_is_trusted(world, json_namespace(object));
}

void trusted_visit(const json_t *world, void (*visit)(void *arg, const char *ns), void *arg)
{
	const char *own = world_env(world, "namespace");
	const json_t *name;
	size_t i;

	assert(visit);
	visit(arg, own);
	for (i = 0; i < ARRAY_LEN(always_trusted); i++)
		if (!str_eq(own, always_trusted[i]))
			visit(arg, always_trusted[i]);
	json_array_foreach (json_at(world, "env", "policyNamespaces"), i, name) {
		const char *ns = json_str_or(name, "");
		bool is_known = str_eq(ns, own);

		for (size_t k = 0; k < ARRAY_LEN(always_trusted); k++)
			is_known |= str_eq(ns, always_trusted[k]);
		if (!is_known)
			visit(arg, ns);
	}
}

static void add_name(void *arg, const char *ns)
{
	struct strbuf *text = arg;

	strbuf_addf(text, "%s%s", text->len ? ", " : "", ns);
}

char *trusted_namespaces(const json_t *world)
{
	auto_strbuf struct strbuf text = {0};

	trusted_visit(world, add_name, &text);
	return strbuf_take(&text);
}

void trust_check(const json_t *world, const json_t *object, struct problems *problems)
{
	auto_free char *trusted = NULL;

	if (object_is_trusted(world, object))
		return;
	trusted = trusted_namespaces(world);
	problem_add(problems, "NamespaceNotTrusted", "metadata.namespace",
		    "%s may not command nodes and this changes nothing; create it in one of %s, or "
		    "start the operator with --policy-namespaces %s",
		    json_namespace(object), trusted, json_namespace(object));
}
