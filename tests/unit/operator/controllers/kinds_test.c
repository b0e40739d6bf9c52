// SPDX-License-Identifier: Apache-2.0
/*
 * The table of kinds: it agrees with itself, with the rules of admission, and with the rights in
 * manifests/.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "operator/cache/kinds.h"
#include "operator/controllers/controllers.h"
#include "reconcilers/admission/kind_rules.h"

/* Those of the default installation, and of the overlay for webhooks. */
static const char *const rbac[] = {
	"manifests/base/rbac.yaml",
	"manifests/base/drain-rbac.yaml",
	"manifests/base/node-labels-rbac.yaml",
	"manifests/overlays/webhook/rbac.yaml",
};

/*
 * Rights of the operator that no kind of the table stands for: "ROLE GROUP RESOURCE[/SUBRESOURCE]
 * VERB[ NAME]".
 */
static const char *const other_rights[] = {
	/* Events, and the lease (lib/kube). */
	"ClusterRole  events create",
	"ClusterRole  events patch",
	"Role coordination.k8s.io leases create",
	"Role coordination.k8s.io leases get orbweaver-operator",
	"Role coordination.k8s.io leases update orbweaver-operator",
	"Role coordination.k8s.io leases patch orbweaver-operator",
	/* The definition of NetworkAttachmentDefinition (nad_definition.h). */
	"ClusterRole apiextensions.k8s.io customresourcedefinitions create",
	/*
	 * What looks ended is read before anything is taken from it (operator/cache/live_reads.h).
	 */
	"ClusterRole  pods get",
	"ClusterRole  nodes get",
	"ClusterRole  pods/eviction create",
	"ClusterRole apps statefulsets get",
	"ClusterRole kubevirt.io virtualmachineinstances get",
	"ClusterRole kubevirt.io virtualmachines get",
	/* Owner references that block deletion. */
	"ClusterRole spiderpool.spidernet.io spidermultusconfigs/finalizers update",
};

/* What may be done in all namespaces needs no right in ours. */
static void drop_what_holds_everywhere(json_t *rights)
{
	const char *right = NULL;
	json_t *value = NULL;
	void *next = NULL;

	json_object_foreach_safe(rights, next, right, value)
	{
		auto_free char *everywhere = str_printf("Cluster%s", right);

		if (json_object_get(rights, everywhere))
			json_object_del(rights, right);
	}
}

/* { right: true } */
static json_t *rights_needed(void)
{
	static const struct {
		unsigned int bit;
		const char *verb, *subresource;
		bool by_name;
	} writes[] = {
		{KIND_CREATED, "create", "", false}, /* by name only if created_by_name */
		{KIND_PATCHED, "patch", "", true},
		{KIND_DELETED, "delete", "", true},
		{KIND_STATUS, "patch", "/status", true},
	};
	json_t *rights = json_object();

	for (const struct operator_kind *row = operator_kinds; row->kind; row++) {
		const struct kind_info *info = kind_find(row->kind);
		const char *group = info ? info->group : row->resource.group;
		const char *plural = info ? info->id : row->resource.plural;
		const char *role = row->in_own_namespace ? "Role" : "ClusterRole";
		static const char *const reads[] = {"list", "watch"};
		const char *name = row->name;

		for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
			auto_free char *right =
				str_printf("%s %s %s %s%s%s", role, group, plural, reads[i],
					   name ? " " : "", name ? name : "");

			json_put_bool(rights, right, true);
		}
		for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
			bool named = name && (writes[i].by_name || row->created_by_name);
			auto_free char *right = str_printf("%s %s %s%s %s%s%s", role, group, plural,
							   writes[i].subresource, writes[i].verb,
							   named ? " " : "", named ? name : "");

			if (row->writes & writes[i].bit)
				json_put_bool(rights, right, true);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(other_rights); i++)
		json_put_bool(rights, other_rights[i], true);
	drop_what_holds_everywhere(rights);
	return rights;
}

static void add_rule(json_t *rights, const char *role, const json_t *rule)
{
	const json_t *names = json_at(rule, "resourceNames"), *resource, *verb;
	const char *group = json_string_value(json_array_get(json_at(rule, "apiGroups"), 0));
	size_t n = json_array_size(names), i, j;

	assert_int_equal(json_array_size(json_at(rule, "apiGroups")), 1);
	json_array_foreach (json_at(rule, "resources"), i, resource)
		json_array_foreach (json_at(rule, "verbs"), j, verb)
			for (size_t k = 0; k < (n ? n : 1); k++) {
				const char *name = json_string_value(json_array_get(names, k));
				auto_free char *right = str_printf(
					"%s %s %s %s%s%s", role, group, json_string_value(resource),
					json_string_value(verb), name ? " " : "", name ? name : "");

				json_put_bool(rights, right, true);
			}
}

static void add_rights(json_t *rights, const char *file)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *documents = NULL;
	json_t *document, *rule;
	struct err err = {0};
	size_t i, j;

	if (fs_read(AT_FDCWD, file, 65536, &text, &err) < 0 ||
	    !(documents = yaml_parse_all(strbuf_str(&text), text.len, &err)))
		fail_msg("%s: %s", file, err.text);
	json_array_foreach (documents, i, document)
		if (str_starts(json_name(document), "orbweaver-operator"))
			json_array_foreach (json_at(document, "rules"), j, rule)
				add_rule(rights, json_str_at(document, "kind"), rule);
}

static json_t *rights_given(void)
{
	json_t *rights = json_object();

	for (size_t i = 0; i < ARRAY_LEN(rbac); i++)
		add_rights(rights, rbac[i]);
	assert_true(json_object_size(rights) > 0);
	return rights;
}

/* Of the default installation: nothing about other programs' objects can be made with it. */
TEST(webhooks_and_secrets_are_created_by_name_and_by_the_overlay_alone)
{
	static const char *const kinds[] = {MIRROR_VALIDATING, MIRROR_MUTATING, "secrets"};
	json_auto_t *rights = json_object(), *all = rights_given();
	const char *right;
	json_t *value;

	add_rights(rights, rbac[0]);
	add_rights(rights, rbac[1]);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_free char *create = str_printf(" %s create", kinds[i]);
		auto_free char *patch = str_printf(" %s patch", kinds[i]);

		json_each (rights, right, value)
			if (strstr(right, create) || strstr(right, patch))
				fail_msg("in the default installation: %s", right);
		json_each (all, right, value)
			if (strstr(right, create) && !strstr(right, " create "))
				fail_msg("not limited to a name: %s", right);
	}
}

static void expect_all_in(const json_t *wanted, const json_t *there, const char *complaint)
{
	const char *right;
	json_t *value;

	json_each (wanted, right, value)
		if (!json_object_get(there, right))
			fail_msg("%s: %s", complaint, right);
}

TEST(rights_are_those_that_the_table_calls_for)
{
	json_auto_t *needed = rights_needed(), *given = rights_given();

	expect_all_in(needed, given, "not in rbac.yaml");
	expect_all_in(given, needed, "in rbac.yaml, and no kind calls for it");
}

/* Each of the two features goes with its binding: no right of the one stands in for the other. */
TEST(drains_and_labels_of_nodes_need_different_rights)
{
	json_auto_t *drains = json_object(), *others = json_object();
	const char *right;
	json_t *value;

	for (size_t i = 0; i < ARRAY_LEN(rbac); i++)
		add_rights(str_eq(rbac[i], "manifests/base/drain-rbac.yaml") ? drains : others,
			   rbac[i]);
	assert_true(json_object_size(drains) > 0);
	json_each (drains, right, value)
		if (json_object_get(others, right))
			fail_msg("without the binding for drains: %s", right);
	assert_null(json_object_get(drains, "ClusterRole  nodes/status patch"));
	assert_non_null(json_object_get(others, "ClusterRole  nodes/status patch"));
}

TEST(a_kind_stands_in_it_once)
{
	for (const struct operator_kind *row = operator_kinds; row->kind; row++)
		assert_ptr_equal(operator_kind_find(row->kind), row);
	assert_null(operator_kind_find("widgets"));
	assert_null(operator_kind_find(NULL));
}

TEST(a_kind_that_users_write_is_watched_and_has_a_crd)
{
	for (const struct kind_rules *rules = kind_rules_all(); rules->kind; rules++) {
		assert_non_null(operator_kind_find(rules->kind));
		assert_non_null(kind_find(rules->kind)->crd_file);
		assert_non_null(rules->check);
		assert_int_equal(!rules->check_change, !rules->judged_by_change);
	}
}

TEST(what_a_controller_needs_is_watched)
{
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		assert_non_null(operator_kind_find(controllers[i].kind));
		assert_non_null(controllers[i].reconcile);
		for (size_t j = 0; j < CONTROLLER_MAX_NEEDS && controllers[i].needs[j]; j++)
			assert_non_null(operator_kind_find(controllers[i].needs[j]));
	}
}

/* Objects that do not come from an API server are selected here (mirror_show). */
TEST(what_a_server_selects_by_a_query_is_selected_here_alike)
{
	for (const struct operator_kind *row = operator_kinds; row->kind; row++)
		assert_int_equal(row->selector != NULL, row->selects != NULL);
}

/* As it came in a list: what the operator compares its own condition with, and orders taints by. */
static int on_listed(void *arg, const struct splitter_object *object, struct err *err)
{
	const struct operator_kind *row = operator_kind_find(KIND_NODE);
	json_t **ret = arg;

	if (!object->is_rest) {
		*ret = json_parse(object->text, object->len, err);
		row->cache.project(*ret);
	}
	return 0;
}

TEST(what_we_say_of_a_nodes_links_is_known_after_a_list)
{
	static const char list[] =
		"{\"items\": [{\"metadata\": {\"name\": \"n1\"}, \"status\": {\"conditions\": "
		"[{\"type\": \"RdmaNetworkReady\", \"status\": \"False\", \"reason\": "
		"\"LinkDown\", "
		"\"message\": \"no link\", \"lastTransitionTime\": \"2026-01-31T10:00:00Z\", "
		"\"lastHeartbeatTime\": \"2026-01-31T10:00:00Z\"}]}}]}";
	static const char *const kept[] = {"status", "reason", "message", "lastTransitionTime"};
	const struct operator_kind *row = operator_kind_find(KIND_NODE);
	json_t *node = NULL;
	struct splitter splitter;
	struct err err = {0};

	splitter_init(&splitter, SPLITTER_LIST, row->drops, row->n_drops, false, on_listed, &node);
	assert_int_equal(splitter_feed(&splitter, list, sizeof(list) - 1, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		assert_non_null(json_str_at(
			json_array_get(json_at(node, "status", "conditions"), 0), kept[i]));
	splitter_done(&splitter);
	json_decref(node);
}

TEST(every_change_wakes_somebody)
{
	for (const struct operator_kind *row = operator_kinds; row->kind; row++)
		assert_non_null(row->changed[0]);
}
