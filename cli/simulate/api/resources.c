// SPDX-License-Identifier: Apache-2.0
/*
 * The table, and what definitions make of it. Between the path of a request and the collection that
 * it is about.
 */
#include "cli/simulate/api/resources.h"

#include <string.h>

#include "cli/simulate/objects/table.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define NS RESOURCE_NAMESPACED
#define ST RESOURCE_STATUS
#define SC RESOURCE_SCALE
#define GE RESOURCE_GENERATION

#define KIND(group_, plural_, singular_, kind_, short_names_, categories_, flags_)                 \
	{                                                                                          \
		.group = (group_), .version = "v1", .plural = (plural_), .singular = (singular_),  \
		.kind = (kind_), .short_names = (short_names_), .categories = (categories_),       \
		.flags = (flags_)                                                                  \
	}
#define REVIEW(group_, plural_, kind_, flags_)                                                     \
	{                                                                                          \
		.group = (group_), .version = "v1", .plural = (plural_), .singular = "",           \
		.kind = (kind_), .short_names = "", .categories = "",                              \
		.flags = RESOURCE_REVIEW | (flags_)                                                \
	}

static const struct resource built_in[] = {
	KIND("", "configmaps", "configmap", "ConfigMap", "cm", "", NS),
	KIND("", "endpoints", "endpoints", "Endpoints", "ep", "", NS),
	KIND("", "events", "event", "Event", "ev", "", NS),
	KIND("", "limitranges", "limitrange", "LimitRange", "limits", "", NS),
	KIND("", "namespaces", "namespace", "Namespace", "ns", "", ST),
	KIND("", "nodes", "node", "Node", "no", "", ST),
	KIND("", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", "pvc",
	     "", NS | ST),
	KIND("", "pods", "pod", "Pod", "po", "all", NS | ST),
	KIND("", "resourcequotas", "resourcequota", "ResourceQuota", "quota", "", NS | ST),
	KIND("", "secrets", "secret", "Secret", "", "", NS),
	KIND("", "serviceaccounts", "serviceaccount", "ServiceAccount", "sa", "", NS),
	KIND("", "services", "service", "Service", "svc", "all", NS | ST),
	KIND("admissionregistration.k8s.io", "mutatingwebhookconfigurations",
	     "mutatingwebhookconfiguration", "MutatingWebhookConfiguration", "", "api-extensions",
	     GE),
	KIND("admissionregistration.k8s.io", "validatingwebhookconfigurations",
	     "validatingwebhookconfiguration", "ValidatingWebhookConfiguration", "",
	     "api-extensions", GE),
	KIND("apiextensions.k8s.io", "customresourcedefinitions", "customresourcedefinition",
	     "CustomResourceDefinition", "crd,crds", "api-extensions", ST | GE),
	KIND("apps", "controllerrevisions", "controllerrevision", "ControllerRevision", "", "", NS),
	KIND("apps", "daemonsets", "daemonset", "DaemonSet", "ds", "all", NS | ST | GE),
	KIND("apps", "deployments", "deployment", "Deployment", "deploy", "all", NS | ST | SC | GE),
	KIND("apps", "replicasets", "replicaset", "ReplicaSet", "rs", "all", NS | ST | SC | GE),
	KIND("apps", "statefulsets", "statefulset", "StatefulSet", "sts", "all", NS | ST | SC | GE),
	REVIEW("authentication.k8s.io", "tokenreviews", "TokenReview", 0),
	REVIEW("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", NS),
	REVIEW("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", 0),
	REVIEW("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", 0),
	KIND("batch", "cronjobs", "cronjob", "CronJob", "cj", "all", NS | ST | GE),
	KIND("batch", "jobs", "job", "Job", "", "all", NS | ST | GE),
	KIND("coordination.k8s.io", "leases", "lease", "Lease", "", "", NS),
	KIND("discovery.k8s.io", "endpointslices", "endpointslice", "EndpointSlice", "", "", NS),
	KIND("events.k8s.io", "events", "event", "Event", "ev", "", NS),
	KIND("networking.k8s.io", "networkpolicies", "networkpolicy", "NetworkPolicy", "netpol", "",
	     NS | GE),
	KIND("networking.k8s.io", "servicecidrs", "servicecidr", "ServiceCIDR", "", "", ST | GE),
	KIND("policy", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", "pdb",
	     "", NS | ST | GE),
	KIND("rbac.authorization.k8s.io", "clusterrolebindings", "clusterrolebinding",
	     "ClusterRoleBinding", "", "", RESOURCE_FREE_NAMES),
	KIND("rbac.authorization.k8s.io", "clusterroles", "clusterrole", "ClusterRole", "", "",
	     RESOURCE_FREE_NAMES),
	KIND("rbac.authorization.k8s.io", "rolebindings", "rolebinding", "RoleBinding", "", "",
	     NS | RESOURCE_FREE_NAMES),
	KIND("rbac.authorization.k8s.io", "roles", "role", "Role", "", "",
	     NS | RESOURCE_FREE_NAMES),
	KIND("scheduling.k8s.io", "priorityclasses", "priorityclass", "PriorityClass", "pc", "",
	     GE),
};

/* What selector.h can select built-in kinds by. */
static const struct {
	const char *plural;
	const char *const fields[9];
} fields_of[] = {
	{"pods",
	 {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
	  "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"}},
	{"events", {"involvedObject", "reason", "reportingComponent", "source", "type"}},
	{"nodes", {"spec.unschedulable"}},
	{"namespaces", {"status.phase"}},
	{"secrets", {"type"}},
};

char *resource_api_version(const struct resource *resource)
{
	return resource->group[0] ? str_printf("%s/%s", resource->group, resource->version)
				  : str_dup(resource->version);
}

static char *long_name(const char *group, const char *plural)
{
	return group[0] ? str_printf("%s.%s", plural, group) : str_dup(plural);
}

char *resource_long_name(const struct resource *resource)
{
	return long_name(resource->group, resource->plural);
}

/* ---- the list -------------------------------------------------------------------------------- */

static struct resource *add(struct resources *resources, const struct resource *resource)
{
	struct resource *copy = mem_dup(resource, sizeof(*resource));

	resources->list =
		mem_realloc(resources->list, (resources->len + 1) * sizeof(struct resource *));
	resources->list[resources->len++] = copy;
	return copy;
}

static const char *const *built_in_fields(const char *plural)
{
	for (size_t i = 0; i < ARRAY_LEN(fields_of); i++)
		if (str_eq(fields_of[i].plural, plural))
			return fields_of[i].fields;
	return NULL;
}

void resources_init(struct resources *resources, struct store *store,
		    void (*leaving)(void *arg, struct collection *collection), void *arg)
{
	*resources = (struct resources){.store = store, .leaving = leaving, .arg = arg};
	for (size_t i = 0; i < ARRAY_LEN(built_in); i++) {
		struct resource *resource = add(resources, &built_in[i]);
		auto_free char *name = resource_long_name(resource);

		resource->schema = schema_builtin(resource->group, resource->kind);
		resource->stored_version = resource->version;
		if (resource->flags & RESOURCE_REVIEW)
			continue;
		/* Events are the same in both groups. */
		resource->collection =
			str_eq(resource->group, "events.k8s.io")
				? resources_find(resources, "", "v1", "events")->collection
				: collection_new(store, name, built_in_fields(resource->plural));
	}
}

static void resource_free(struct resource *resource)
{
	schema_free(resource->schema);
	json_decref(resource->definition);
	mem_free(resource);
}

void resources_done(struct resources *resources)
{
	for (size_t i = 0; i < resources->len; i++)
		resource_free(resources->list[i]);
	mem_free(resources->list);
	*resources = (struct resources){0};
}

struct resource *resources_find(const struct resources *resources, const char *group,
				const char *version, const char *plural)
{
	for (size_t i = 0; i < resources->len; i++) {
		struct resource *resource = resources->list[i];

		if (str_eq(resource->plural, plural) && str_eq(resource->group, group) &&
		    str_eq(resource->version, version))
			return resource;
	}
	return NULL;
}

struct resource *resources_of_path(const struct resources *resources, const struct api_path *path)
{
	return resources_find(resources, path->group, path->version, path->resource);
}

struct resource *resources_find_kind(const struct resources *resources, const char *group,
				     const char *kind)
{
	for (size_t i = 0; i < resources->len; i++)
		if (str_eq(resources->list[i]->kind, kind) &&
		    str_eq(resources->list[i]->group, group))
			return resources->list[i];
	return NULL;
}

/* ---- definitions ----------------------------------------------------------------------------- */

static int bad(struct err *err, const char *field, const char *problem)
{
	return err_set(err, ERR_INVALID, "Invalid", "%s: %s", field, problem);
}

/* "a,b" from a list of strings, a new string of the definition's own life. */
static const char *joined(json_t *definition, const json_t *names, const char *key)
{
	auto_strbuf struct strbuf text = {0};
	json_t *kept = json_need_object(definition, "joined");
	json_t *item;
	size_t i;

	json_array_foreach (json_object_get(names, key), i, item)
		strbuf_addf(&text, "%s%s", i ? "," : "", json_str_or(item, ""));
	json_put_str(kept, key, strbuf_str(&text));
	return json_str_at(kept, key);
}

/* The resource that one version of a definition is; its strings are the definition's. */
static int read_version(json_t *definition, const json_t *version, struct resource *ret,
			struct err *err)
{
	const json_t *spec = json_at(definition, "spec"), *names = json_at(spec, "names");
	const char *scope = json_str_at(spec, "scope");
	json_t *subresources = json_at(version, "subresources");
	json_t *column;
	size_t i;

	*ret = (struct resource){
		.group = json_str_or(json_at(spec, "group"), ""),
		.version = json_str_or(json_at(version, "name"), ""),
		.plural = json_str_or(json_at(names, "plural"), ""),
		.singular = json_str_or(json_at(names, "singular"), ""),
		.kind = json_str_or(json_at(names, "kind"), ""),
		.short_names = joined(definition, names, "shortNames"),
		.categories = joined(definition, names, "categories"),
		.flags = RESOURCE_CUSTOM | RESOURCE_GENERATION,
		.columns = json_at(version, "additionalPrinterColumns"),
		.selectable = json_at(version, "selectableFields"),
		.scale = json_at(subresources, "scale"),
	};
	if (!ret->group[0] || !ret->version[0] || !ret->plural[0] || !ret->kind[0])
		return bad(err, "spec",
			   "group, names.plural, names.kind and versions[*].name are "
			   "required");
	if (str_eq(scope, "Namespaced"))
		ret->flags |= RESOURCE_NAMESPACED;
	else if (!str_eq(scope, "Cluster"))
		return bad(err, "spec.scope", "must be Cluster or Namespaced");
	if (json_at(subresources, "status"))
		ret->flags |= RESOURCE_STATUS;
	if (ret->scale)
		ret->flags |= RESOURCE_SCALE;
	json_array_foreach (json_at(version, "additionalPrinterColumns"), i, column)
		if (table_path_check(json_str_or(json_at(column, "jsonPath"), ""), err) < 0)
			return err_in(err,
				      "spec.versions[*].additionalPrinterColumns[%zu].jsonPath", i);
	ret->schema = schema_new(json_at(version, "schema", "openAPIV3Schema"), err);
	return ret->schema ? 0 : err_in(err, "spec.versions[*].schema.openAPIV3Schema");
}

/* Paths of selectableFields, without their first dot. */
static struct collection *new_collection(struct resources *resources, const json_t *definition,
					 const char *name)
{
	const char *fields[64] = {NULL};
	json_t *version, *field;
	size_t n = 0, i, j;

	json_array_foreach (json_at(definition, "spec", "versions"), i, version)
		json_array_foreach (json_at(version, "selectableFields"), j, field) {
			const char *path = json_str_or(json_at(field, "jsonPath"), "");

			if (path[0] == '.' && n < ARRAY_LEN(fields) - 1)
				fields[n++] = path + 1;
		}
	return collection_new(resources->store, name, fields);
}

static bool is_of(const struct resource *resource, const json_t *definition)
{
	return resource->definition &&
	       str_eq(json_name(resource->definition), json_name(definition));
}

static int check_names(const struct resources *resources, const json_t *definition, struct err *err)
{
	const char *group = json_str_or(json_at(definition, "spec", "group"), "");
	const json_t *names = json_at(definition, "spec", "names");
	const char *plural = json_str_or(json_at(names, "plural"), "");
	const char *kind = json_str_or(json_at(names, "kind"), "");
	auto_free char *name = long_name(group, plural);

	if (!str_eq(name, json_name(definition)))
		return err_set(err, ERR_INVALID, "Invalid",
			       "metadata.name: must be spec.names.plural+\".\"+spec.group, %s",
			       name);
	for (size_t i = 0; i < resources->len; i++) {
		const struct resource *other = resources->list[i];

		if (!is_of(other, definition) && str_eq(other->group, group) &&
		    (str_eq(other->plural, plural) || str_eq(other->kind, kind)))
			return bad(err, "spec.names",
				   "another resource has the plural or the kind");
	}
	return 0;
}

/* It is served as it is. */
static bool is_served(const struct resources *resources, const json_t *definition)
{
	for (size_t i = 0; i < resources->len; i++)
		if (is_of(resources->list[i], definition))
			return json_same(json_at(resources->list[i]->definition, "spec"),
					 json_at(definition, "spec"));
	return false;
}

int resources_define(struct resources *resources, const json_t *definition, struct err *err)
{
	json_auto_t *copy = json_deep_copy(definition);
	struct resource versions[16];
	struct collection *collection = NULL;
	const char *stored = NULL;
	json_t *version;
	size_t n = 0, i;
	int result = 0;

	if (is_served(resources, definition))
		return 0;
	if (check_names(resources, definition, err) < 0)
		return -1;
	json_array_foreach (json_at(copy, "spec", "versions"), i, version) {
		if (json_is_true(json_at(version, "storage")))
			stored = json_str_or(json_at(version, "name"), "");
		if (result < 0 || !json_is_true(json_at(version, "served")))
			continue;
		if (n == ARRAY_LEN(versions))
			result = bad(err, "spec.versions", "at most 16 are served");
		else
			result = read_version(copy, version, &versions[n], err);
		n += result == 0;
	}
	if (result == 0 && (n == 0 || !stored))
		result = bad(err, "spec.versions", "one must have served true, one storage true");
	if (result < 0) {
		while (n > 0)
			schema_free(versions[--n].schema);
		return -1;
	}
	for (i = 0; i < resources->len; i++)
		if (is_of(resources->list[i], definition))
			collection = resources->list[i]->collection;
	if (collection && resources->leaving)
		resources->leaving(resources->arg, collection);
	for (i = resources->len; i-- > 0;)
		if (is_of(resources->list[i], definition)) {
			resource_free(resources->list[i]);
			memmove(&resources->list[i], &resources->list[i + 1],
				(--resources->len - i) * sizeof(struct resource *));
		}
	if (!collection)
		collection = new_collection(resources, copy, json_name(copy));
	for (i = 0; i < n; i++) {
		versions[i].definition = json_incref(copy);
		versions[i].collection = collection;
		versions[i].stored_version = stored;
		add(resources, &versions[i]);
	}
	return 0;
}

void resources_undefine(struct resources *resources, const json_t *definition)
{
	struct collection *collection = NULL;

	for (size_t i = resources->len; i-- > 0;)
		if (is_of(resources->list[i], definition)) {
			collection = resources->list[i]->collection;
			resource_free(resources->list[i]);
			memmove(&resources->list[i], &resources->list[i + 1],
				(--resources->len - i) * sizeof(struct resource *));
		}
	if (!collection)
		return;
	if (resources->leaving)
		resources->leaving(resources->arg, collection);
	collection_free(collection);
}
