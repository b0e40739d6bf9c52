// SPDX-License-Identifier: Apache-2.0
/* SriovNetworkPoolConfig: see the header. */
#include "reconcilers/sriov/pool_config.h"

#include <assert.h>
#include <string.h>

#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/labels.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/sriov/node_labels.h"
#include "reconcilers/sriov/roce_settings.h"
#include "reconcilers/sriov/sriov_guid.h"

/* Conflicts that a message names, and bytes of a value that it quotes. */
#define NAMED_MAX 4
#define QUOTE_MAX 64

/* Of a drain-timeout, in its unit. */
#define DRAIN_TIMEOUT_MAX 1000000

/*
 * A pool with this name set is OpenShift's way to select hardware offload: not about nodes or RDMA
 * modes.
 */
static bool is_offload(const json_t *pool)
{
	return !str_empty(json_str_at(pool, "spec", "ovsHardwareOffloadConfig", "name"));
}

/* Rails follow from pools: a pool that selects by labels of rails would select itself away. */
static void check_label_key(const char *key, const char *field, struct problems *problems)
{
	if (node_label_is_ours(key))
		problem_add(
			problems, "BadSelector", field,
			"\"%.*s\" is written by the operator and follows from rails; select the "
			"nodes by another label",
			(int)str_clip(key, strlen(key), QUOTE_MAX), key);
}

static void check_selector(const json_t *pool, struct problems *problems)
{
	static const char field[] = "spec.nodeSelector";
	const json_t *selector = json_at(pool, "spec", "nodeSelector"), *expression;
	const char *key;
	json_t *value;
	size_t i;

	if (selector && !json_is_object(selector)) {
		problem_add(problems, "BadSelector", field, "%s, must be a label selector",
			    json_type_words(selector));
		return;
	}
	label_selector_check(selector, field, problems);
	json_each (json_at(selector, "matchLabels"), key, value)
		check_label_key(key, field, problems);
	json_array_foreach (json_at(selector, "matchExpressions"), i, expression)
		check_label_key(json_str_at(expression, "key"), field, problems);
}

static bool selector_is_readable(const json_t *pool)
{
	auto_problems struct problems problems = {0};
	const json_t *spec = json_object_get(pool, "spec");

	if (spec && !json_is_object(spec))
		return false;
	check_selector(pool, &problems);
	return problems.total == 0;
}

static bool selects(const json_t *pool, const json_t *labels)
{
	return label_selector_matches(json_at(pool, "spec", "nodeSelector"), labels);
}

static bool is_mode(const char *mode)
{
	return str_eq(mode, "shared") || str_eq(mode, "exclusive");
}

bool pool_config_selects(const json_t *pool, const json_t *labels)
{
	return pool && !is_offload(pool) && selector_is_readable(pool) && selects(pool, labels);
}

/* *ret: the node's pool, or NULL when it has none. False when there is no single answer. */
static bool find_pool(const json_t *world, const json_t *labels, const json_t **ret)
{
	const json_t *pools = world_kind(world, KIND_POOL_CONFIG);
	const json_t *mine = NULL;
	bool unreadable = false;
	const char *key;
	json_t *pool;

	json_each (pools, key, pool) {
		if (is_offload(pool) || !object_is_trusted(world, pool))
			continue;
		if (!selector_is_readable(pool)) {
			unreadable = true;
			continue;
		}
		if (!selects(pool, labels))
			continue;
		if (mine)
			return false;
		mine = pool;
	}
	*ret = mine;
	return mine || !unreadable;
}

const json_t *pool_config_of(const json_t *world, const json_t *labels)
{
	const json_t *pool = NULL;

	return find_pool(world, labels, &pool) ? pool : NULL;
}

static bool read_percent(const char *text, int64_t *ret)
{
	size_t len = strlen(text);
	auto_free char *number = str_ndup(text, len > 0 ? len - 1 : 0);

	return str_ends(text, "%") && str_to_int(number, 1, 100, ret);
}

static bool read_share(const char *text, size_t nodes, size_t *ret)
{
	int64_t percent;

	if (!read_percent(text, &percent))
		return false;
	*ret = nodes * (size_t)percent / 100;
	if (*ret == 0)
		*ret = 1;
	return true;
}

bool pool_config_max_unavailable(const json_t *pool, size_t nodes, size_t *ret)
{
	const json_t *max = json_at(pool, "spec", "maxUnavailable");
	int64_t number = json_integer_value(max);

	assert(ret);
	if (json_is_integer(max) && number >= 0) {
		*ret = (size_t)number;
		return true;
	}
	return read_share(json_str_or(max, ""), nodes, ret);
}

bool pool_config_taint_limit(const json_t *pool, const char *annotation, size_t nodes, size_t *ret)
{
	const char *text = json_str_at(pool, "metadata", "annotations", annotation);
	int64_t number;

	assert(ret);
	if (!text || !str_to_int(text, 0, INT32_MAX, &number))
		return text && read_share(text, nodes, ret);
	*ret = (size_t)number;
	return true;
}

bool pool_config_drain_timeout(const json_t *pool, int64_t *ret_s)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
	const char *text =
		json_str_or(json_at(pool, "metadata", "annotations", POOL_DRAIN_TIMEOUT), "");
	size_t len = strlen(text);
	auto_free char *number = str_ndup(text, len > 0 ? len - 1 : 0);

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (len == 0 || text[len - 1] != units[i].unit ||
		    !str_to_int(number, 1, DRAIN_TIMEOUT_MAX, ret_s))
			continue;
		*ret_s *= units[i].seconds;
		return true;
	}
	return false;
}

const char *pool_config_rdma_mode(const json_t *world, const json_t *labels, const char *current)
{
	const json_t *pool, *mode;

	current = is_mode(current) ? current : "";
	if (!find_pool(world, labels, &pool))
		return current;
	mode = json_at(pool, "spec", "rdmaMode");
	if (!mode || str_eq(json_string_value(mode), ""))
		return "";
	return is_mode(json_string_value(mode)) ? json_string_value(mode) : current;
}

int pool_config_guid_block(const json_t *world, const json_t *labels, int current)
{
	const json_t *pool;
	int block;

	assert(current >= 0 && current <= UINT8_MAX);
	if (!find_pool(world, labels, &pool) ||
	    !guid_pool_block(json_at(pool, "spec", "guidPool"), &block, NULL))
		return current;
	return block;
}

/* The same name, or the same PCI address in two spellings. */
static bool is_same_nic(const char *a, const char *b)
{
	auto_free char *left = pci_address_normalize(a), *right = pci_address_normalize(b);

	return str_eq(left ? left : a, right ? right : b);
}

/* False when it cannot be used; says why when problems is given. */
static bool rails_are_good(const json_t *rails, struct problems *problems)
{
	static const char field[] = "spec.rails";
	const json_t *item;
	size_t i, k;

	if (!rails)
		return true;
	if (!json_is_array(rails) || json_array_size(rails) > POOL_RAILS_MAX) {
		if (problems)
			problem_add(problems, "BadRails", field,
				    "%s, must be a list of at most %d NICs; the nodes keep the "
				    "rails they have",
				    json_is_array(rails) ? "too long" : json_type_words(rails),
				    POOL_RAILS_MAX);
		return false;
	}
	json_array_foreach ((json_t *)rails, i, item) {
		const char *name = json_str_or(item, "");

		for (k = 0; k < i && !is_same_nic(json_str_or(json_array_get(rails, k), ""), name);
		     k++)
			;
		if (k == i && *name && strlen(name) <= POOL_RAIL_NAME_MAX)
			continue;
		if (problems)
			problem_add(problems, "BadRails", field,
				    "entry %zu, \"%.*s\", %s; name each NIC once, by interface "
				    "name, alternative name or PCI address; until then the nodes "
				    "keep the rails they have",
				    i, (int)str_clip(name, strlen(name), QUOTE_MAX), name,
				    k < i ? "is listed before" : "is not the name of a NIC");
		return false;
	}
	return true;
}

bool pool_config_rails(const json_t *world, const json_t *labels, const json_t **ret_pool,
		       const json_t **ret_list)
{
	const json_t *pool, *list;

	if (!find_pool(world, labels, &pool))
		return false;
	list = json_at(pool, "spec", "rails");
	if (!rails_are_good(list, NULL))
		return false;
	*ret_pool = pool;
	*ret_list = json_array_size(list) > 0 ? list : NULL;
	return true;
}

bool pool_config_roce(const json_t *world, const json_t *labels, const json_t **ret)
{
	const json_t *pool;

	if (!find_pool(world, labels, &pool) ||
	    !roce_settings_check(json_at(pool, "spec", "roce"), NULL))
		return false;
	*ret = json_at(pool, "spec", "roce");
	return true;
}

/* ---- the status of a pool -------------------------------------------------------------------- */

/* Nodes that are in this pool and in another. */
struct conflicts {
	size_t total;
	size_t named;
	struct conflict {
		const char *node;
		const char *pool;
	} items[NAMED_MAX]; /* the first by name */
};

static void conflicts_add(struct conflicts *c, const char *node, const char *pool)
{
	size_t at = c->named;

	c->total++;
	while (at > 0 && strcmp(node, c->items[at - 1].node) < 0)
		at--;
	if (at == NAMED_MAX)
		return;
	if (c->named < NAMED_MAX)
		c->named++;
	memmove(&c->items[at + 1], &c->items[at], (c->named - at - 1) * sizeof(c->items[0]));
	c->items[at] = (struct conflict){.node = node, .pool = pool};
}

/* The other pools that can select nodes: { key: pool }. Returns new. */
static json_t *other_pools(const json_t *world, const char *key)
{
	const json_t *pools = world_kind(world, KIND_POOL_CONFIG);
	json_t *others = json_object(), *pool;
	const char *other;

	json_each (pools, other, pool) {
		if (!str_eq(other, key) && !is_offload(pool) && object_is_trusted(world, pool) &&
		    selector_is_readable(pool))
			json_object_set(others, other, pool);
	}
	return others;
}

/* The other pool of a node, the first by name; NULL when there is none. */
static const char *find_other_pool(const json_t *others, const json_t *labels)
{
	const char *key, *found = NULL;
	json_t *pool;

	json_each (others, key, pool) {
		if ((!found || strcmp(key, found) < 0) && selects(pool, labels))
			found = key;
	}
	return found;
}

static void find_conflicts(const json_t *world, const json_t *pool, const json_t *others,
			   struct conflicts *ret)
{
	const char *name, *other;
	json_t *node;

	if (json_object_size(others) == 0)
		return;
	json_each (world_kind(world, KIND_NODE), name, node) {
		const json_t *labels = json_at(node, "metadata", "labels");

		if (selects(pool, labels) && (other = find_other_pool(others, labels)))
			conflicts_add(ret, name, other);
	}
}

static void check_max_unavailable(const json_t *pool, struct problems *problems)
{
	static const char field[] = "spec.maxUnavailable";
	const json_t *max = json_at(pool, "spec", "maxUnavailable");
	const char *text = json_str_or(max, "");
	int64_t percent;

	if (!max || (json_is_integer(max) && json_integer_value(max) >= 0))
		return;
	if (json_is_integer(max))
		problem_add(problems, "BadMaxUnavailable", field,
			    "%lld is negative, must be 0 or more nodes",
			    (long long)json_integer_value(max));
	else if (!json_is_string(max))
		problem_add(problems, "BadMaxUnavailable", field,
			    "%s, must be a number of nodes or a percentage from \"1%%\" to "
			    "\"100%%\"",
			    json_type_words(max));
	else if (!read_percent(text, &percent))
		problem_add(problems, "BadMaxUnavailable", field,
			    "\"%.*s\" must be a number of nodes or a percentage from \"1%%\" to "
			    "\"100%%\"",
			    (int)str_clip(text, strlen(text), QUOTE_MAX), text);
}

void pool_config_check(const json_t *pool, struct problems *problems)
{
	static const char *const limits[] = {POOL_TAINT_DEGRADED, POOL_CORDON_DEGRADED};
	const json_t *spec = json_object_get(pool, "spec");
	int block;
	const json_t *value;
	const char *text;
	int64_t seconds;
	size_t limit;
	const json_t *mode;
	const char *mode_text;

	if (spec && !json_is_object(spec)) {
		problem_add(problems, "BadField", "spec", "%s, must be an object",
			    json_type_words(spec));
		return;
	}
	if (is_offload(pool)) {
		problem_add(problems, "OffloadNotSupported", "spec.ovsHardwareOffloadConfig",
			    "stored, but this pool groups no nodes; remove the field, and set "
			    "eSwitchMode switchdev in a SriovNetworkNodePolicy for offload");
		return;
	}
	check_selector(pool, problems);
	check_max_unavailable(pool, problems);

	value = json_at(pool, "metadata", "annotations", POOL_DRAIN_TIMEOUT);
	text = json_str_or(value, "");
	if (value && !pool_config_drain_timeout(pool, &seconds))
		problem_add(problems, "BadDrainTimeout",
			    "metadata.annotations[" POOL_DRAIN_TIMEOUT "]",
			    "\"%.*s\" must be a number with s, m or h, such as \"30m\"; until then "
			    "drains have no deadline",
			    (int)str_clip(text, strlen(text), QUOTE_MAX), text);

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		auto_free char *where = str_printf("metadata.annotations[%s]", limits[i]);

		text = json_str_at(pool, "metadata", "annotations", limits[i]);
		if (text && !pool_config_taint_limit(pool, limits[i], 0, &limit))
			problem_add(problems, "BadTaintLimit", where,
				    "\"%.*s\" must be a number of nodes, or a percentage such as "
				    "\"10%%\"; until then no node is tainted or cordoned",
				    (int)str_clip(text, strlen(text), QUOTE_MAX), text);
	}

	mode = json_at(pool, "spec", "rdmaMode");
	mode_text = json_str_or(mode, "");
	if (mode && !is_mode(mode_text) && (!json_is_string(mode) || *mode_text))
		problem_add(
			problems, "BadRdmaMode", "spec.rdmaMode",
			"\"%.*s\" must be shared or exclusive; the nodes keep the mode they have",
			(int)str_clip(mode_text, strlen(mode_text), QUOTE_MAX), mode_text);
	guid_pool_block(json_at(spec, "guidPool"), &block, problems);
	(void)rails_are_good(json_at(spec, "rails"), problems);
	(void)roce_settings_check(json_at(spec, "roce"), problems);
}

/* The nodes of the pool. */
struct crew {
	size_t nodes, following, booting;
	/* Of those that need a boot, else of those that wait; the first by name. */
	const char *example;
};

void pool_config_put_report(const json_t *world, const json_t *labels, const json_t *state,
			    json_t *reports)
{
	const json_t *pool, *conditions = json_at(state, "status", "conditions");
	auto_free char *key = NULL, *name = NULL;
	json_t *report;

	assert(json_is_object(reports));
	if (!find_pool(world, labels, &pool) || !pool)
		return;
	key = json_key(pool);
	name = str_printf(POOL_REPORT_PREFIX "%s", key);
	report = json_object();
	json_put_str(report, "mode",
		     json_str_or(json_at(state, "status", "system", "rdmaMode"), ""));
	json_put_bool(report, "reboot",
		      str_eq(condition_status_of(conditions, "RebootRequired"), "True"));
	if (!roce_settings_are_met(state))
		json_put_bool(report, "unmet", true);
	json_put(reports, name, report);
}

static struct crew count_crew(const json_t *pool, const json_t *reports)
{
	const char *wanted = json_str_or(json_at(pool, "spec", "rdmaMode"), ""), *node;
	struct crew crew = {.nodes = json_object_size(reports)};
	bool example_boots = false;
	json_t *report;

	json_each (reports, node, report) {
		bool boots = json_is_true(json_at(report, "reboot"));

		crew.booting += boots;
		if (!boots && !json_at(report, "unmet") &&
		    (!*wanted || str_eq(json_str_at(report, "mode"), wanted))) {
			crew.following++;
			continue;
		}
		/* One that needs a boot before one that does not, then by name. */
		if (crew.example && (example_boots > boots ||
				     (example_boots == boots && strcmp(crew.example, node) < 0)))
			continue;
		crew.example = node;
		example_boots = boots;
	}
	return crew;
}

struct pool_verdict {
	bool is_ready;
	const char *reason;
	char *message; /* the caller's */
};

/* Unless a node or the SriovOperatorConfig forbids it. */
static bool allows_reboots(const json_t *pool)
{
	return json_at(pool, "spec", "maxUnavailable") &&
	       !str_eq(json_str_at(pool, "metadata", "annotations", POOL_ALLOW_REBOOT), "false");
}

static struct pool_verdict judge_crew(const json_t *pool, const struct crew *crew)
{
	bool sets_nothing = str_empty(json_str_at(pool, "spec", "rdmaMode")) &&
			    !json_at(pool, "spec", "guidPool") && !json_at(pool, "spec", "roce") &&
			    !json_at(pool, "spec", "maxUnavailable") &&
			    !json_at(pool, "metadata", "annotations", POOL_TAINT_DEGRADED) &&
			    json_array_size(json_at(pool, "spec", "rails")) == 0;

	if (crew->nodes == 0)
		return (struct pool_verdict){
			false, "NoNode",
			str_dup("no node that a SriovNetworkNodePolicy selects is in the pool; "
				"label a node or correct nodeSelector")};
	if (crew->booting > 0)
		return (struct pool_verdict){
			false, "RebootRequired",
			str_printf("%zu of %zu nodes follow, %zu need a boot, %s first by name; %s",
				   crew->following, crew->nodes, crew->booting, crew->example,
				   allows_reboots(pool)
					   ? "they are drained and rebooted in turn (orbweaver "
					     "drain status)"
					   : "drain and reboot them when it suits you")};
	if (crew->following < crew->nodes)
		return (struct pool_verdict){
			false, "Syncing",
			str_printf("%zu of %zu nodes follow, %s does not yet; wait, and if this "
				   "lasts, see its SriovNetworkNodeState",
				   crew->following, crew->nodes, crew->example)};
	if (sets_nothing)
		return (struct pool_verdict){
			true, "NothingSet",
			str_dup("sets none of rdmaMode, guidPool, rails, roce and maxUnavailable, "
				"and changes nothing: set one, or delete it")};
	return (struct pool_verdict){
		true, "InEffect",
		str_printf("%zu of %zu nodes follow", crew->following, crew->nodes)};
}

static void plan_pool_status(struct plan *plan, const json_t *world, const char *key,
			     const json_t *pool, const struct problems *problems)
{
	const json_t *previous = json_at(pool, "status", "conditions");
	const struct crew crew = count_crew(pool, world_kind(world, KIND_POOL_REPORT));
	json_t *status = json_object(), *conditions = json_array();
	auto_free char *text = problems_text(problems);
	auto_free char *message = str_printf("pool %s: %s", key, text);
	struct pool_verdict v = judge_crew(pool, &crew);
	const char *now = world_env(world, "now");
	int64_t generation = json_generation(pool);
	bool good = problems->total == 0;
	/* For nodes that are there; that there is none does not pass. */
	bool waits = good && !v.is_ready && crew.nodes > 0;

	conditions_judge(conditions, previous,
			 &(struct judgement){
				 .ready = good && v.is_ready ? CONDITION_TRUE : CONDITION_FALSE,
				 .waits = waits,
				 .reason = good ? v.reason : problems_reason(problems),
				 .message = good ? v.message : message,
			 },
			 generation, now);
	condition_set(conditions, previous, "Progressing", waits ? CONDITION_TRUE : CONDITION_FALSE,
		      waits ? v.reason : "NothingToDo",
		      waits ? v.message : "there is nothing that passes by itself", generation,
		      now);
	free(v.message);
	conditions_emit(plan, KIND_POOL_CONFIG, key, previous, conditions);
	json_put_int(status, "observedGeneration", generation);
	json_put_int(status, "nodes", (int64_t)crew.nodes);
	json_put_int(status, "followingNodes", (int64_t)crew.following);
	json_put_int(status, "rebootNodes", (int64_t)crew.booting);
	json_put(status, "conditions", conditions);
	plan_status(plan, KIND_POOL_CONFIG, key, status);
}

int pool_config_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *pool = world_get(world, KIND_POOL_CONFIG, key);
	auto_problems struct problems problems = {0};
	struct conflicts conflicts = {0};
	json_auto_t *others = NULL;

	assert(key && plan);
	if (!pool)
		return 0;
	if (object_is_terminating(pool)) {
		/* No other program would release it once upstream's operator is gone. */
		plan_release(plan, KIND_POOL_CONFIG, key, pool, POOL_CONFIG_FINALIZER);
		return 0;
	}
	trust_check(world, pool, &problems);
	pool_config_check(pool, &problems);
	if (object_is_trusted(world, pool) && !is_offload(pool) && selector_is_readable(pool)) {
		others = other_pools(world, key);
		find_conflicts(world, pool, others, &conflicts);
	}

	if (conflicts.total != 0) {
		auto_strbuf struct strbuf text = {0};

		for (size_t i = 0; i < conflicts.named; i++)
			strbuf_addf(&text, "%snode %s is in pool %s too", i ? ", " : "",
				    conflicts.items[i].node, conflicts.items[i].pool);
		if (conflicts.total > conflicts.named)
			strbuf_addf(&text, " and %zu nodes more",
				    conflicts.total - conflicts.named);
		problem_add(&problems, "NodeInTwoPools", "spec.nodeSelector",
			    "%s; let one pool select each node, until then these nodes keep their "
			    "rdmaMode, GUIDs and RoCE settings",
			    strbuf_str(&text));
	}
	plan_pool_status(plan, world, key, pool, &problems);
	return 0;
}
