/*
 * Node and policies → SriovNetworkNodeState. See the header.
 *
 * Policies that select the node are applied weakest first onto its PFs; each PF keeps the VF groups that survive. What a
 * policy got, and what it lost to whom, is noted on the way and becomes its report.
 */
#include "reconcilers/node_state.h"

#include <string.h>
#include <strings.h>

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/kinds.h"
#include "reconcilers/policy_report.h"
#include "reconcilers/pool_config.h"
#include "reconcilers/sriov_policy.h"

#define NAME_QUOTE_MAX 64
#define WHY_LINE_MAX   320

/* What one policy gets on this node. */
struct share {
	struct sriov_policy policy;
	bool picks; /* a PF */
	int64_t wanted;
	int64_t present;
	size_t groups; /* that survived */
	enum policy_standing standing;
	struct strbuf why;
	size_t why_lines;
};

struct group {
	struct share *share;
	struct vf_range range;
};

struct groups {
	struct group *items;
	size_t len;
};

struct pf {
	const json_t *seen;   /* element of status.interfaces */
	bool held;            /* its element of spec.interfaces has to stay as it is */
	struct groups groups; /* strongest first */
	int64_t num_vfs;
	int64_t mtu;
	int priority; /* of the policy applied last */
};

struct decision {
	const json_t *state;  /* the NodeState, or NULL */
	const json_t *spec;   /* its spec, or NULL */
	struct share *shares; /* weakest first */
	size_t shares_len;
	struct pf *pfs;
	size_t pfs_len;
	struct map by_address; /* of pfs; borrowed values */
	struct pf **touched;   /* in the order of first touch: the order of spec.interfaces */
	size_t touched_len;
	json_t *refused; /* names of policies that cannot be applied: { name: true } */
};

static void decision_done(struct decision *d)
{
	for (size_t i = 0; i < d->shares_len; i++)
		strbuf_done(&d->shares[i].why);
	for (size_t i = 0; i < d->pfs_len; i++)
		free(d->pfs[i].groups.items);
	free(d->shares);
	free(d->pfs);
	free(d->touched);
	map_done(&d->by_address);
	json_decref(d->refused);
}
#define auto_decision auto_call(decision_done)

static const char *pf_name(const json_t *seen)
{
	const char *name = json_str_at(seen, "name");

	return str_empty(name) ? json_str_or(json_at(seen, "pciAddress"), "?") : name;
}

static int64_t range_size(struct vf_range range)
{
	return (int64_t)range.last - range.first + 1;
}

/* ---- what to say about a policy ---- */

static void note(struct share *share, enum policy_standing standing, const char *subject,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Keeps the worst standing and the first lines. */
static void note(struct share *share, enum policy_standing standing, const char *subject,
		 const char *fmt, ...)
{
	auto_strbuf struct strbuf line = {0};
	va_list ap;

	if (standing > share->standing)
		share->standing = standing;
	if (share->why_lines == POLICY_WHY_LINES)
		return;
	strbuf_add(&line, subject, str_clip(subject, strlen(subject), NAME_QUOTE_MAX));
	strbuf_adds(&line, ": ");
	va_start(ap, fmt);
	strbuf_vaddf(&line, fmt, ap);
	va_end(ap);
	/* A line stays a line, whatever an object or an agent says. */
	for (size_t i = 0; i < line.len; i++)
		if (line.data[i] == '\n')
			line.data[i] = ' ';

	if (share->why_lines++ > 0)
		strbuf_addc(&share->why, '\n');
	strbuf_add(&share->why, line.data, str_clip(line.data, line.len, WHY_LINE_MAX));
}

static void note_overruled(const struct pf *pf, const struct group *loser,
			   const struct share *winner)
{
	note(loser->share, STANDING_OVERRULED, pf_name(pf->seen),
	     "VFs %d-%d went to policy %s, priority %d", loser->range.first, loser->range.last,
	     winner->policy.key, winner->policy.priority);
}

/* ---- applying policies ---- */

static void groups_add(struct groups *groups, struct group group)
{
	groups->items = mem_realloc(groups->items, (groups->len + 1) * sizeof(group));
	groups->items[groups->len++] = group;
}

static const struct group *groups_overlap(const struct groups *groups, struct vf_range range)
{
	for (size_t i = 0; i < groups->len; i++)
		if (vf_range_overlaps(groups->items[i].range, range))
			return &groups->items[i];
	return NULL;
}

/* The groups a policy means on a PF. Of overlapping ones the first counts; sriov_policy_check complains about the rest. */
static void claim(struct share *share, const struct pf *pf, struct groups *ret)
{
	struct vf_range range;
	size_t i = 0;

	while (sriov_policy_range(&share->policy, pf->seen, &i, &range)) {
		if (groups_overlap(ret, range))
			continue;
		groups_add(ret, (struct group){.share = share, .range = range});
		share->wanted += range_size(range);
	}
}

/*
 * The policy is the strongest so far: it takes what it claims, groups that overlap with it go, the others stay behind its own.
 * numVfs and mtu become the larger ones when something stays or the policy applied before had the same priority.
 */
static void merge(struct pf *pf, const struct share *share, struct groups *claimed)
{
	bool merged = pf->groups.len > 0 && pf->priority == share->policy.priority;
	int64_t num_vfs = share->policy.num_vfs, mtu = share->policy.mtu;

	for (size_t i = 0; i < pf->groups.len; i++) {
		if (groups_overlap(claimed, pf->groups.items[i].range)) {
			note_overruled(pf, &pf->groups.items[i], share);
			continue;
		}
		groups_add(claimed, pf->groups.items[i]);
		merged = true;
	}
	if (merged) {
		num_vfs = num_vfs > pf->num_vfs ? num_vfs : pf->num_vfs;
		mtu = mtu > pf->mtu ? mtu : pf->mtu;
	}

	free(pf->groups.items);
	pf->groups = *claimed;
	pf->num_vfs = num_vfs;
	pf->mtu = mtu;
	pf->priority = share->policy.priority;
}

static void apply_to_pf(struct decision *d, struct share *share, struct pf *pf)
{
	struct groups claimed = {0};

	if (!sriov_policy_picks(&share->policy, pf->seen, NULL))
		return;
	share->picks = true;
	claim(share, pf, &claimed);
	if (claimed.len == 0)
		return;
	if (pf->held) {
		note(share, STANDING_PF_HELD, pf_name(pf->seen),
		     "stays as it is, because a policy that it was set up for is refused now");
		free(claimed.items);
		return;
	}
	if (pf->groups.len == 0)
		d->touched[d->touched_len++] = pf;
	merge(pf, share, &claimed);
}

static void apply_policies(struct decision *d)
{
	for (size_t s = 0; s < d->shares_len; s++)
		for (size_t i = 0; i < d->pfs_len; i++)
			apply_to_pf(d, &d->shares[s], &d->pfs[i]);
}

/* ---- fields of a PF ---- */

/* Fields of which a PF has one: the strongest surviving policy that gives it decides, weaker ones that want another are told. */
struct pf_fields {
	const char *link_type;
	const char *eswitch_mode;
	const struct share *external; /* who says whether it is externally managed */
};

static void decide_text(const char **value, const struct share **by, const struct pf *pf,
			struct share *share, const char *field, const char *wanted)
{
	if (str_empty(wanted))
		return;
	if (!*by) {
		*value = wanted;
		*by = share;
		return;
	}
	/* "eth" and "ETH" are the same link. */
	if (strcasecmp(*value, wanted) != 0)
		note(share, STANDING_FIELD_OVERRULED, pf_name(pf->seen),
		     "%s %s is overruled by %s of policy %s", field, wanted, *value,
		     (*by)->policy.key);
}

static struct pf_fields decide_fields(const struct pf *pf)
{
	const struct share *link_by = NULL, *mode_by = NULL;
	struct pf_fields fields = {0};

	for (size_t i = 0; i < pf->groups.len; i++) {
		struct share *share = pf->groups.items[i].share;
		const struct sriov_policy *p = &share->policy;

		/* Groups of one policy follow each other. */
		if (i > 0 && pf->groups.items[i - 1].share == share)
			continue;
		decide_text(&fields.link_type, &link_by, pf, share, "linkType", p->link_type);
		decide_text(&fields.eswitch_mode, &mode_by, pf, share, "eSwitchMode",
			    p->eswitch_mode);
		if (!p->says_externally_managed)
			continue;
		if (!fields.external)
			fields.external = share;
		else if (fields.external->policy.externally_managed != p->externally_managed)
			note(share, STANDING_FIELD_OVERRULED, pf_name(pf->seen),
			     "externallyManaged %s is overruled by policy %s",
			     p->externally_managed ? "true" : "false", fields.external->policy.key);
	}
	return fields;
}

/* ---- the spec ---- */

/* As upstream encodes: a field without content is left out. */
static void put_text(json_t *obj, const char *key, const char *value)
{
	if (!str_empty(value))
		json_put_str(obj, key, value);
}

static void put_number(json_t *obj, const char *key, int64_t value)
{
	if (value)
		json_put_int(obj, key, value);
}

static void put_flag(json_t *obj, const char *key, bool value)
{
	if (value)
		json_put_bool(obj, key, true);
}

static json_t *group_json(const struct group *group)
{
	const struct sriov_policy *p = &group->share->policy;
	json_t *json = json_object();

	json_put_str(json, "resourceName", p->resource_name);
	json_put_str(json, "deviceType", p->device_type);
	json_put(json, "vfRange", json_fmt("%d-%d", group->range.first, group->range.last));
	json_put_str(json, "policyName", p->name);
	put_number(json, "mtu", p->mtu);
	put_flag(json, "isRdma", p->is_rdma);
	put_text(json, "vdpaType", p->vdpa_type);
	/* Ours: upstream keeps these two in the device plugin's configuration only. */
	put_flag(json, "needVhostNet", p->need_vhost_net);
	put_flag(json, "excludeTopology", p->exclude_topology);
	return json;
}

static json_t *pf_json(const struct pf *pf)
{
	struct pf_fields fields = decide_fields(pf);
	json_t *json = json_object(), *groups = json_array();

	for (size_t i = 0; i < pf->groups.len; i++)
		json_array_append_new(groups, group_json(&pf->groups.items[i]));

	json_put_str(json, "pciAddress", json_str_at(pf->seen, "pciAddress"));
	put_text(json, "name", json_str_at(pf->seen, "name"));
	put_number(json, "numVfs", pf->num_vfs);
	put_number(json, "mtu", pf->mtu);
	put_text(json, "linkType", fields.link_type);
	put_text(json, "eSwitchMode", fields.eswitch_mode);
	put_flag(json, "externallyManaged",
		 fields.external && fields.external->policy.externally_managed);
	json_put(json, "vfGroups", groups);
	return json;
}

static bool is_held(const struct decision *d, const json_t *entry)
{
	const json_t *group;
	size_t i;

	json_array_foreach (json_at(entry, "vfGroups"), i, group) {
		const char *policy = json_str_at(group, "policyName");

		if (policy && json_object_get(d->refused, policy))
			return true;
	}
	return false;
}

static json_t *interfaces_json(const struct decision *d)
{
	json_t *list = json_array(), *entry;
	size_t i;

	/* Without knowing the NICs nothing can be resolved: what was decided stays. */
	if (d->pfs_len == 0 && d->shares_len > 0) {
		json_array_extend(list, json_at(d->spec, "interfaces"));
		return list;
	}
	for (i = 0; i < d->touched_len; i++)
		json_array_append_new(list, pf_json(d->touched[i]));
	json_array_foreach (json_at(d->spec, "interfaces"), i, entry) {
		if (is_held(d, entry))
			json_array_append(list, entry);
	}
	return list;
}

static json_t *spec_json(const struct decision *d, const char *rdma_mode)
{
	json_auto_t *interfaces = interfaces_json(d);
	json_t *spec = json_object(), *bridges = json_at(d->spec, "bridges");

	if (json_array_size(interfaces) > 0)
		json_object_set(spec, "interfaces", interfaces);
	/* Nobody here manages bridges, so those that someone entered stay. */
	if (json_is_object(bridges))
		json_object_set(spec, "bridges", bridges);
	else
		json_put(spec, "bridges", json_object());
	if (!str_empty(rdma_mode))
		json_put_str(json_need_object(spec, "system"), "rdmaMode", rdma_mode);
	return spec;
}

static bool is_blank(const json_t *value)
{
	const char *key;
	json_t *field;

	if (!value)
		return true;
	switch (json_typeof(value)) {
	case JSON_NULL:
	case JSON_FALSE:
		return true;
	case JSON_INTEGER:
		return json_integer_value(value) == 0;
	case JSON_STRING:
		return json_string_length(value) == 0;
	case JSON_ARRAY:
		return json_array_size(value) == 0;
	case JSON_OBJECT:
		json_each (value, key, field) {
			if (!is_blank(field))
				return false;
		}
		return true;
	case JSON_TRUE:
	case JSON_REAL:
		return false;
	}
	return false;
}

/*
 * Do two specs mean the same? A field without content and an absent one do: releases of the upstream operator differ in
 * which of them they write.
 */
static bool means_same(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *field;

	if (is_blank(a) || is_blank(b))
		return is_blank(a) && is_blank(b);
	if (json_is_array(a) && json_is_array(b)) {
		if (json_array_size(a) != json_array_size(b))
			return false;
		for (size_t i = 0; i < json_array_size(a); i++)
			if (!means_same(json_array_get(a, i), json_array_get(b, i)))
				return false;
		return true;
	}
	if (!json_is_object(a) || !json_is_object(b))
		return json_same(a, b);
	json_each (a, key, field) {
		if (!means_same(field, json_object_get(b, key)))
			return false;
	}
	json_each (b, key, field) {
		if (!json_object_get(a, key) && !is_blank(field))
			return false;
	}
	return true;
}

/* ---- reports ---- */

static bool differ(const struct sriov_policy *a, const struct sriov_policy *b,
		   const char **ret_field)
{
	if (!str_eq(a->device_type, b->device_type))
		*ret_field = "deviceType";
	else if (a->is_rdma != b->is_rdma)
		*ret_field = "isRdma";
	else if (!str_eq(a->vdpa_type, b->vdpa_type))
		*ret_field = "vdpaType";
	else if (a->need_vhost_net != b->need_vhost_net)
		*ret_field = "needVhostNet";
	else if (a->exclude_topology != b->exclude_topology)
		*ret_field = "excludeTopology";
	else
		return false;
	return true;
}

/* A pod that asks for a resource gets any VF of it, so they should be of one sort. */
static void note_mixed_resources(struct decision *d)
{
	struct map by_resource = {0};
	const char *field;

	for (size_t i = d->shares_len; i-- > 0;) {
		struct share *share = &d->shares[i];
		const struct share *stronger = map_get(&by_resource, share->policy.resource_name);

		if (share->groups == 0)
			continue;
		if (!stronger)
			map_set(&by_resource, share->policy.resource_name, share);
		else if (differ(&share->policy, &stronger->policy, &field))
			note(share, STANDING_MIXED_RESOURCE, "agent",
			     "resource %.*s also has VFs of policy %s with another %s",
			     (int)str_clip(share->policy.resource_name,
					   strlen(share->policy.resource_name), NAME_QUOTE_MAX),
			     share->policy.resource_name, stronger->policy.key, field);
	}
	map_done(&by_resource);
}

/* Count VFs that are there; tell policies which ask for more than the device can have. */
static void count_vfs(struct pf *pf)
{
	int64_t there = json_integer_value(json_at(pf->seen, "numVfs"));
	const json_t *total = json_at(pf->seen, "totalvfs");

	for (size_t i = 0; i < pf->groups.len; i++) {
		struct group *group = &pf->groups.items[i];
		struct share *share = group->share;
		int64_t last = group->range.last < there ? group->range.last : there - 1;

		share->groups++;
		if (last >= group->range.first)
			share->present += last - group->range.first + 1;
		if (i > 0 && group[-1].share == share)
			continue;
		if (json_is_integer(total) && share->policy.num_vfs > json_integer_value(total))
			note(share, STANDING_TOO_MANY_VFS, pf_name(pf->seen),
			     "numVfs %d, the device has at most %lld", share->policy.num_vfs,
			     (long long)json_integer_value(total));
	}
}

static void note_no_nic(const struct decision *d, struct share *share)
{
	for (size_t i = 0; i < d->pfs_len && share->why_lines < POLICY_WHY_LINES; i++) {
		auto_strbuf struct strbuf why = {0};

		sriov_policy_picks(&share->policy, d->pfs[i].seen, &why);
		note(share, STANDING_NO_NIC, pf_name(d->pfs[i].seen), "%s", strbuf_str(&why));
	}
}

/*
 * An agent that says which generation it saw is held to it. Upstream's does not say: its "Succeeded" may be about the spec
 * before, and then missing VFs are not a failure yet.
 */
static void note_done(const struct decision *d, struct share *share)
{
	bool is_current = json_is_integer(json_at(d->state, "status", "observedGeneration"));

	/* Something worse says why they are missing. */
	if (share->present >= share->wanted || share->standing > STANDING_VFS_MISSING)
		return;
	note(share, is_current ? STANDING_VFS_MISSING : STANDING_SYNCING, "agent",
	     "%lld of %lld VFs are there", (long long)share->present, (long long)share->wanted);
}

static bool status_is_old(const json_t *state)
{
	const json_t *observed = json_at(state, "status", "observedGeneration");

	return json_is_integer(observed) && json_integer_value(observed) < json_generation(state);
}

static void note_agent(const struct decision *d, struct share *share, bool spec_is_written)
{
	const char *sync = json_str_or(json_at(d->state, "status", "syncStatus"), "");
	const char *error = json_str_or(json_at(d->state, "status", "lastSyncError"), "");

	if (!spec_is_written)
		note(share, STANDING_SPEC_PENDING, "agent", "its NodeState is being written");
	else if (status_is_old(d->state))
		note(share, STANDING_SYNCING, "agent", "has not seen the new NodeState yet");
	else if (str_eq(sync, "Failed"))
		note(share, STANDING_SYNC_FAILED, "agent", "syncStatus Failed%s%s",
		     *error ? ": " : "", error);
	else if (!str_eq(sync, "Succeeded"))
		note(share, STANDING_SYNCING, "agent", "syncStatus is %s%s%s",
		     *sync ? sync : "not reported", *error ? ", last error: " : "", error);
	else
		note_done(d, share);
}

static void note_progress(const struct decision *d, struct share *share, bool spec_is_written)
{
	if (d->pfs_len == 0)
		note(share, STANDING_NOT_REPORTED, "agent", "no NICs are reported yet");
	else if (!share->picks)
		note_no_nic(d, share);
	else if (share->groups > 0)
		note_agent(d, share, spec_is_written);
}

static json_t *report_json(const struct share *share)
{
	const struct policy_standing_info *info = policy_standing_info(share->standing);
	json_t *report = json_object();

	json_put_bool(report, "matched", share->picks);
	json_put_bool(report, "ready", info->ready);
	json_put_int(report, "wantedVfs", share->wanted);
	json_put_int(report, "presentVfs", share->present);
	if (share->standing != STANDING_READY)
		json_put_str(report, "reason", info->reason);
	if (share->why_lines > 0)
		json_put_str(report, "why", strbuf_str(&share->why));
	return report;
}

static json_t *reports_json(struct decision *d, bool spec_is_written)
{
	json_t *reports = json_object();

	for (size_t i = 0; i < d->touched_len; i++)
		count_vfs(d->touched[i]);
	note_mixed_resources(d);
	for (size_t i = 0; i < d->shares_len; i++) {
		note_progress(d, &d->shares[i], spec_is_written);
		json_put(reports, d->shares[i].policy.key, report_json(&d->shares[i]));
	}
	return reports;
}

/* ---- looking at the world ---- */

static void collect_policies(struct decision *d, const json_t *policies, const json_t *labels)
{
	const char *key;
	json_t *object;

	d->shares = mem_calloc(json_object_size(policies) + 1, sizeof(*d->shares));
	d->refused = json_object();
	json_each (policies, key, object) {
		struct share *share = &d->shares[d->shares_len];

		if (sriov_policy_is_reserved(object) || !sriov_policy_selects(object, labels))
			continue;
		/* policy_status.c tells its author. */
		if (sriov_policy_parse(key, object, &share->policy, NULL) < 0)
			json_put_bool(d->refused, json_name(object), true);
		else
			d->shares_len++;
	}
	/* VF groups do not say the policy's namespace: where a good one of that name selects the node too, they are its. */
	for (size_t i = 0; i < d->shares_len; i++)
		json_object_del(d->refused, d->shares[i].policy.name);
	/* The policy is the first member of a share. */
	qsort(d->shares, d->shares_len, sizeof(*d->shares), sriov_policy_order);
}

/* A PF that is listed twice counts once. */
static void collect_pf(struct decision *d, const json_t *seen)
{
	const char *address = json_str_at(seen, "pciAddress");
	struct pf *pf = &d->pfs[d->pfs_len];

	if (str_empty(address) || map_get(&d->by_address, address))
		return;
	pf->seen = seen;
	map_set(&d->by_address, address, pf);
	d->pfs_len++;
}

static void hold_pf(struct decision *d, const json_t *entry)
{
	const char *address = json_str_at(entry, "pciAddress");
	struct pf *pf = address ? map_get(&d->by_address, address) : NULL;

	if (pf && is_held(d, entry))
		pf->held = true;
}

static void collect_pfs(struct decision *d)
{
	const json_t *seen = json_at(d->state, "status", "interfaces"), *entry;
	size_t i;

	d->pfs = mem_calloc(json_array_size(seen) + 1, sizeof(*d->pfs));
	d->touched = mem_calloc(json_array_size(seen) + 1, sizeof(struct pf *));
	json_array_foreach ((json_t *)seen, i, entry)
		collect_pf(d, entry);
	if (json_object_size(d->refused) == 0)
		return;
	json_array_foreach (json_at(d->spec, "interfaces"), i, entry)
		hold_pf(d, entry);
}

/* ---- the node is gone ---- */

static int plan_stale(struct plan *plan, const json_t *world, const char *key, const json_t *state,
		      struct err *err)
{
	const char *annotation =
		json_str_or(json_at(state, "metadata", "annotations", NODE_STATE_KEEP_UNTIL), "");
	char text[CLOCK_RFC3339_SIZE];
	int64_t now, until;

	if (!clock_parse_rfc3339(world_env(world, "now"), &now))
		return err_set(err, ERR_BUG, "NoClock", "env.now \"%s\" is not a time",
			       world_env(world, "now"));
	if (!clock_parse_rfc3339(annotation, &until)) {
		json_t *metadata = json_object();

		until = now + NODE_STATE_KEEP_MINUTES * INT64_C(60000000);
		clock_rfc3339(until, text);
		json_put_str(json_need_object(metadata, "annotations"), NODE_STATE_KEEP_UNTIL,
			     text);
		plan_meta(plan, KIND_NODE_STATE, key, metadata);
	}
	if (until <= now)
		plan_delete(plan, KIND_NODE_STATE, key, json_uid(state));
	else
		plan_requeue(plan, (until - now) / 1000 + 1000);
	return 0;
}

static void plan_node_state(struct plan *plan, const char *namespace, const char *node,
			    const json_t *spec)
{
	json_t *object = json_object(), *metadata = json_need_object(object, "metadata");

	json_put_str(metadata, "name", node);
	json_put_str(metadata, "namespace", namespace);
	json_object_set(object, "spec", (json_t *)spec);
	plan_apply(plan, KIND_NODE_STATE, object);
}

/* The node came back while its NodeState was kept. */
static void plan_unmark(struct plan *plan, const char *key, const json_t *state)
{
	json_t *metadata;

	if (!json_at(state, "metadata", "annotations", NODE_STATE_KEEP_UNTIL))
		return;
	metadata = json_object();
	json_put(json_need_object(metadata, "annotations"), NODE_STATE_KEEP_UNTIL, json_null());
	plan_meta(plan, KIND_NODE_STATE, key, metadata);
}

static void decide(struct decision *d, const json_t *world, const json_t *labels)
{
	const json_t *spec = json_at(d->state, "spec");

	d->spec = json_is_object(spec) ? spec : NULL;
	collect_policies(d, world_kind(world, KIND_POLICY), labels);
	collect_pfs(d);
	apply_policies(d);
}

int node_state_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const char *namespace = world_env(world, "namespace");
	auto_free char *state_key = str_printf("%s/%s", namespace, key);
	const json_t *node = world_get(world, KIND_NODE, key);
	const json_t *labels = json_at(node, "metadata", "labels");
	auto_decision struct decision d = {.state = world_get(world, KIND_NODE_STATE, state_key)};
	json_auto_t *spec = NULL;
	bool is_written;

	if (str_empty(namespace) || str_empty(key))
		return err_set(err, ERR_BUG, "BadKey", "node \"%s\" in namespace \"%s\"", key,
			       namespace);
	if (!node && d.state && plan_stale(plan, world, state_key, d.state, err) < 0)
		return -1;
	if (!node) {
		plan_report(plan, key, json_object());
		return 0;
	}

	decide(&d, world, labels);
	if (!d.state && d.shares_len == 0 && json_object_size(d.refused) == 0) {
		plan_report(plan, key, json_object());
		return 0;
	}
	spec = spec_json(&d, pool_config_rdma_mode(world_kind(world, KIND_POOL_CONFIG), labels,
						   json_str_at(d.spec, "system", "rdmaMode")));
	is_written = json_object_size(d.spec) > 0 && means_same(spec, d.spec);
	plan_node_state(plan, namespace, key, is_written ? d.spec : spec);
	plan_unmark(plan, state_key, d.state);
	plan_report(plan, key, reports_json(&d, is_written));
	return 0;
}
