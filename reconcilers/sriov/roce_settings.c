// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles are a table of JSON; a pool's own settings are laid over one of them. pool_config.c
 * checks, node_state.c writes the result into the NodeState, whose agent does the rest
 * (nodeagent/host_plan/planner.c).
 */
#include "reconcilers/sriov/roce_settings.h"

#include <assert.h>
#include <string.h>

#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "nodeagent/model/nic_settings.h"

/*
 * DSCP 26 in priority 3 for RoCE, DSCP 48 in priority 6 for CNPs, ToS 106 = 26 << 2 | ECT(0), half
 * of the bandwidth: sources are in docs/fabric.md.
 */
#define ROCE_ECN                                                                                   \
	"\"trust\": \"dscp\", \"dscpToPriority\": {\"26\": 3, \"48\": 6}, \"trafficClasses\": ["   \
	"{\"priorities\": [0, 1, 2, 4, 5, 7], \"bandwidth\": 50}, "                                \
	"{\"priorities\": [3], \"bandwidth\": 50}, {\"priorities\": [6], \"strict\": true}], "     \
	"\"ecn\": [3], \"cnp\": {\"dscp\": 48, \"priority\": 6}, \"rdmaCmRoceMode\": \"v2\", "     \
	"\"rdmaCmTos\": 106, \"trafficClass\": 106"

static const struct profile {
	const char *name, *link, *settings;
} profiles[] = {
	{"roce-lossless-25g-400g", "ETH", "{" ROCE_ECN ", \"pfc\": [3], \"pauseFrames\": false}"},
	{"roce-lossy-ecn", "ETH", "{" ROCE_ECN ", \"pfc\": []}"},
	{"infiniband", "IB", "{\"maxReadRequest\": 4096, \"relaxedOrdering\": true}"},
};

/* NULL: there is none of that name. */
static const struct profile *find_profile(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
		if (str_eq(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

/* Settings of the profile with the pool's own over them; *ret_own: names of those. Both new. */
static json_t *merged(const json_t *roce, json_t **ret_own)
{
	const struct profile *profile = find_profile(json_str_at(roce, "profile"));
	json_t *settings = profile ? json_parse(profile->settings, strlen(profile->settings), NULL)
				   : json_object();
	const char *key;
	json_t *value;

	*ret_own = json_array();
	json_each (roce, key, value) {
		if (!nic_setting_find(key))
			continue;
		json_object_set(settings, key, value);
		json_array_append_new(*ret_own, json_string(key));
	}
	return settings;
}

/* ---- checking -------------------------------------------------------------------------------- */

/* How the first problem ends. */
static const char *kept(const struct problems *problems)
{
	return problems->total ? "" : "; until then the nodes keep the settings they have";
}

/* text: of an error about a field of spec.roce, `pfc: [9], must be …`. */
static void add_problem(struct problems *problems, const char *text)
{
	size_t len = strcspn(text, ":");
	auto_free char *field = str_printf("spec.roce.%.*s", (int)len, text);

	problem_add(problems, "BadRoceSetting", field, "%s%s",
		    text[len] ? text + len + 2 : "cannot be used", kept(problems));
}

static void check_selector(const json_t *roce, struct problems *problems)
{
	struct sriov_policy picks = {0};
	struct err err = {0};
	json_t *name;
	size_t i;

	if (sriov_policy_nic_selector(roce, "spec.roce", &picks, &err) < 0) {
		add_problem(problems, err.text + strlen("spec.roce."));
		return;
	}
	json_array_foreach ((json_t *)picks.pf_names, i, name)
		if (strchr(json_string_value(name), '#'))
			problem_add(
				problems, "BadRoceSetting", "spec.roce.nicSelector.pfNames",
				"\"%.64s\" names VFs, and settings are of a NIC: write its name "
				"alone%s",
				json_string_value(name), kept(problems));
}

static void check_fields(const json_t *roce, struct problems *problems)
{
	const char *key;
	json_t *value;

	json_each (roce, key, value) {
		auto_free char *field = str_printf("spec.roce.%.64s", key);
		struct err err = {0};

		if (str_eq(key, "profile") || str_eq(key, "nicSelector"))
			continue;
		if (!nic_setting_find(key))
			problem_add(problems, "BadRoceSetting", field,
				    "is not a setting, see docs/fabric.md%s", kept(problems));
		else if (nic_setting_check(key, value, &err) < 0)
			add_problem(problems, err.text);
	}
}

bool roce_settings_check(const json_t *roce, struct problems *problems)
{
	auto_problems struct problems all = {0};
	json_auto_t *own = NULL, *settings = NULL;
	const char *profile = json_str_at(roce, "profile");
	struct err err = {0};
	json_t *problem;
	size_t i;

	if (!roce)
		return true;
	if (!json_is_object(roce))
		problem_add(&all, "BadRoceSetting", "spec.roce", "%s, must be an object%s",
			    json_type_words(roce), kept(&all));
	if (json_at(roce, "profile") && !find_profile(profile)) {
		auto_strbuf struct strbuf names = {0};

		for (i = 0; i < ARRAY_LEN(profiles); i++)
			strbuf_addf(&names, "%s%s", i ? ", " : "", profiles[i].name);
		problem_add(&all, "BadRoceSetting", "spec.roce.profile",
			    "\"%.64s\" must be one of %s%s", profile ? profile : "",
			    strbuf_str(&names), kept(&all));
	}
	check_selector(roce, &all);
	check_fields(roce, &all);
	settings = merged(roce, &own);
	if (all.total == 0 && nic_settings_check(settings, &err) < 0)
		add_problem(&all, err.text);
	json_array_foreach (all.list, i, problem)
		if (problems)
			problem_copy(problems, problem);
	return all.total == 0;
}

/* ---- NICs ------------------------------------------------------------------------------------ */

static bool is_managed_by_others(const struct pf *pf)
{
	return pf->external && pf->external->policy.externally_managed;
}

static json_t *names_but(const json_t *settings, const json_t *own)
{
	json_t *names = json_array(), *value;
	const char *key;
	size_t n;
	const struct nic_setting *all = nic_settings(&n);

	/* In the order of the table. */
	for (size_t i = 0; i < n; i++) {
		key = all[i].name;
		value = json_object_get(settings, key);
		if (value && !json_list_has(own, key))
			json_array_append_new(names, json_string(key));
	}
	return names;
}

json_t *roce_settings_nics(const struct decision *d, const json_t *roce)
{
	const struct profile *profile = find_profile(json_str_at(roce, "profile"));
	const char *link = profile ? profile->link : "ETH";
	json_auto_t *own = NULL, *settings = merged(roce, &own);
	json_auto_t *soft = names_but(settings, own), *list = json_array();
	struct sriov_policy picks = {0};
	bool is_chosen = json_object_size(json_at(roce, "nicSelector")) > 0;

	assert(roce_settings_check(roce, NULL));
	(void)sriov_policy_nic_selector(roce, "spec.roce", &picks, NULL);
	for (size_t i = 0; i < d->pfs_len && json_object_size(settings) > 0; i++) {
		const struct pf *pf = &d->pfs[i];
		json_t *nic;

		if (is_chosen ? !sriov_policy_picks(&picks, pf->seen, NULL)
			      : !json_at(pf->seen, "rail") || is_managed_by_others(pf) ||
					!str_eq(json_str_at(pf->seen, "linkType"), link))
			continue;
		nic = json_object();
		json_put_str(nic, "pciAddress", json_str_at(pf->seen, "pciAddress"));
		json_put_str(nic, "name", json_str_at(pf->seen, "name"));
		json_object_set(nic, "settings", settings);
		if (json_array_size(soft) > 0)
			json_object_set(nic, "ifSupported", soft);
		if (!is_chosen)
			json_put_bool(nic, "unlessProtected", true);
		json_array_append_new(list, nic);
		if (json_array_size(list) == ROCE_NICS_MAX)
			break;
	}
	return json_array_size(list) > 0 ? json_incref(list) : NULL;
}

/* ---- what became of it ----------------------------------------------------------------------- */

json_t *roce_settings_unmet(const json_t *nic, const json_t *pf)
{
	json_t *names = json_array(), *wanted;
	const char *key;

	json_each (json_at(nic, "settings"), key, wanted) {
		const json_t *is = json_at(pf, "settings", key);

		if (nic_setting_find(key) && !nic_setting_is_met(key, wanted, is) &&
		    (is || !json_list_has(json_at(nic, "ifSupported"), key)))
			json_array_append_new(names, json_string(key));
	}
	return names;
}

bool roce_settings_are_met(const json_t *state)
{
	/* Whether a NIC is passed over, its agent alone knows, which is content then. */
	bool is_well = str_eq(condition_status_of(json_at(state, "status", "conditions"), "Ready"),
			      "True") &&
		       json_integer_value(json_at(state, "status", "observedGeneration")) ==
			       json_generation(state);
	json_t *nic;
	size_t i;

	json_array_foreach (json_at(state, "spec", "nicSettings"), i, nic) {
		const json_t *pf = json_find(json_at(state, "status", "interfaces"), "pciAddress",
					     json_str_or(json_at(nic, "pciAddress"), ""));
		json_auto_t *unmet = roce_settings_unmet(nic, pf);

		if (pf && json_array_size(unmet) > 0 &&
		    !(is_well && json_is_true(json_at(nic, "unlessProtected"))))
			return false;
	}
	return true;
}
