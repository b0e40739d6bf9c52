// SPDX-License-Identifier: Apache-2.0
/*
 * Whose word counts beyond its own namespace; see trust.h.
 */
#include "reconcilers/core/trust.h"

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

char *trusted_namespaces(const json_t *world)
{
	auto_strbuf struct strbuf text = {0};
	const json_t *name;
	size_t i;

	strbuf_adds(&text, world_env(world, "namespace"));
	for (i = 0; i < ARRAY_LEN(always_trusted); i++)
		if (!str_eq(world_env(world, "namespace"), always_trusted[i]))
			strbuf_addf(&text, ", %s", always_trusted[i]);
	json_array_foreach (json_at(world, "env", "policyNamespaces"), i, name)
		strbuf_addf(&text, ", %s", json_str_or(name, ""));
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
