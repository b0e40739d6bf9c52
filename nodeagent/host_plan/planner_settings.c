// SPDX-License-Identifier: Apache-2.0
/*
 * RoCE settings of a PF (nic_settings.h): set where they differ from what is wanted, put back where
 * nobody wants them any more. They come before its VFs are made, so that pods find them set.
 *
 * Some take the link of the PF down for a moment, and with it that of every VF: those wait until no
 * VF is held and nothing of a pod lies on the PF. No setting of a protected PF is ever touched.
 */
#include "nodeagent/host_plan/planner_internal.h"

struct settings {
	struct planning *p;
	const struct pf *pf;
	json_t *values;                    /* as they were before ours, by name */
	bool was_link_asked, is_link_free; /* for those that take it down */
	/* Names, for messages. */
	struct strbuf protected, unsupported, offered;
};

static void settings_done(struct settings *s)
{
	json_decref(s->values);
	strbuf_done(&s->protected);
	strbuf_done(&s->unsupported);
	strbuf_done(&s->offered);
}

static void add_name(struct strbuf *list, const char *name)
{
	strbuf_addf(list, "%s%s", list->len ? ", " : "", name);
}

/* The holders are named once for each PF. */
static bool may_take_link(struct settings *s, const char *why)
{
	if (s->was_link_asked)
		return s->is_link_free;
	s->was_link_asked = true;
	s->is_link_free = !s->pf->now.carries;
	if (s->pf->now.carries)
		planner_block(s->p, s->pf, NULL, false, why);
	if (plan_is_blocked(s->p, s->pf, false, why))
		s->is_link_free = false;
	return s->is_link_free;
}

/* wanted: false where it is put back. */
static void plan_setting(struct settings *s, const char *name, const json_t *is, const json_t *to,
			 bool wanted)
{
	bool takes_link = nic_setting_disturbs(name, s->pf->now.driver);
	auto_free char *was = json_text(is), *will = json_text(to);
	auto_free char *why =
		str_printf(wanted ? "%s is %.80s, wanted %.80s"
				  : "nobody wants %s any more; it is %.80s and was %.80s",
			   name, was, will);
	json_t *entry;

	if (takes_link && !may_take_link(s, why))
		return;
	entry = planner_add(s->p, s->pf, NULL,
			    json_pack("{s:s, s:s, s:s, s:O}", "step", "set-nic-setting", "pf",
				      s->pf->address, "setting", name, "value", to),
			    "%s", why);
	if (!entry)
		return;
	json_put_str(entry, "impact",
		     step_impact_name(takes_link ? STEP_IMPACT_PF : STEP_IMPACT_NONE));
	if (wanted && !json_object_get(s->values, name))
		json_put(s->values, name, json_deep_copy(is));
}

/* One that is neither read nor refused is not known now; why, the look itself says. */
static void look_at(struct settings *s, const char *name)
{
	const json_t *is = json_at(s->pf->now.entry, "settings", name);
	const json_t *wanted = json_at(s->pf->nic, "settings", name);
	const json_t *was = json_object_get(s->values, name);
	const char *words = json_str_at(s->pf->now.entry, "settingsUnsupported", name);

	/* Where the PF has just arrived, spec may lack it for its absence only. */
	if (!wanted && json_at(s->pf->now.entry, "host", "arrivedMs"))
		return;
	/* From a file: it may hold anything. */
	if (was && nic_setting_check(name, was, NULL) < 0) {
		(void)json_object_del(s->values, name);
		was = NULL;
	}
	if (is)
		add_name(&s->offered, name);
	if (!wanted && is && was && nic_setting_is_met(name, was, is))
		(void)json_object_del(s->values, name);
	else if (is && (wanted || was) && !nic_setting_is_met(name, wanted ? wanted : was, is)) {
		if (!s->pf->now.protected)
			plan_setting(s, name, is, wanted ? wanted : was, wanted);
		else if (wanted)
			add_name(&s->protected, name);
	} else if (wanted && !is && words &&
		   !json_list_has(json_at(s->pf->nic, "ifSupported"), name)) {
		strbuf_addf(&s->unsupported, "%s%s (%.80s)", s->unsupported.len ? ", " : "", name,
			    words);
	}
}

static void say_problems(struct settings *s)
{
	const struct pf_now *now = &s->pf->now;

	if (s->protected.len && !json_is_true(json_at(s->pf->nic, "unlessProtected")))
		planner_problem(s->p, s->pf, "ProtectedPf",
				QUOTE " " QUOTE ", so its settings stay as they are (%s): select "
				      "other NICs with roce.nicSelector of the "
				      "SriovNetworkPoolConfig",
				now->name ? now->name : s->pf->address, now->protected,
				strbuf_str(&s->protected));
	if (s->unsupported.len)
		planner_problem(s->p, s->pf, "RoceSettingUnsupported",
				"%s: not offered by driver " QUOTE ", which has %s: take the "
				"settings out of roce of the SriovNetworkPoolConfig, select other "
				"NICs, or install the driver of the vendor",
				strbuf_str(&s->unsupported), now->driver ? now->driver : "none",
				s->offered.len ? strbuf_str(&s->offered) : "no settings");
}

void plan_settings(struct planning *p, const struct pf *pf)
{
	auto_call(settings_done) struct settings s = {.p = p, .pf = pf};
	const json_t *entry = pf->now.entry, *values = json_at(pf->nic_found, "values");
	const struct nic_setting *all;
	json_t *found;
	size_t n;

	/* Of another card that was in the slot. */
	if (entry && !pf->nic_found)
		(void)json_object_del(json_object_get(p->found, "settings"), pf->address);
	/* Not there or not looked at, as while a pod has it: nothing is known. */
	if (pf->is_nic_bad || !json_is_object(json_at(entry, "settings")))
		return;
	s.values = json_is_object(values) ? json_deep_copy(values) : json_object();
	all = nic_settings(&n);
	for (size_t i = 0; i < n; i++)
		look_at(&s, all[i].name);
	say_problems(&s);
	(void)json_object_del(json_object_get(p->found, "settings"), pf->address);
	if (json_object_size(s.values) == 0)
		return;
	found = json_object();
	json_put(found, "vendor", json_incref(json_at(entry, "vendor")));
	json_put(found, "deviceID", json_incref(json_at(entry, "deviceID")));
	json_put(found, "permanentMac", json_incref(json_at(entry, "host", "permanentMac")));
	json_put(found, "values", json_incref(s.values));
	json_put(json_need_object(p->found, "settings"), pf->address, found);
}
