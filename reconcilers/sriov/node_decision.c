// SPDX-License-Identifier: Apache-2.0
/*
 * Policies that select the node are applied weakest first onto its PFs; each PF keeps the VF groups
 * that survive. What a policy lost to whom is noted on the way.
 */
#include "reconcilers/sriov/node_decision.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/sriov_guid.h"

#define NAME_QUOTE_MAX 64
#define WHY_LINE_MAX   320

void decision_done(struct decision *d)
{
	for (size_t i = 0; i < d->shares_len; i++)
		strbuf_done(&d->shares[i].why);
	for (size_t i = 0; i < d->pfs_len; i++) {
		free(d->pfs[i].groups.items);
		free(d->pfs[i].lost.items);
	}
	free(d->shares);
	free(d->pfs);
	free(d->touched);
	map_done(&d->by_address);
	json_decref(d->refused);
}

const char *pf_name(const struct pf *pf)
{
	const char *name = json_str_at(pf->seen, "name");

	assert(pf->seen);
	return str_empty(name) ? json_str_or(json_at(pf->seen, "pciAddress"), "?") : name;
}

bool decision_has_report(const struct decision *d)
{
	assert(d->touched_len <= d->pfs_len);
	return d->pfs_len > 0 || str_eq(json_str_at(d->state, "status", "syncStatus"), "Succeeded");
}

void share_note(struct share *share, enum policy_standing standing, const char *subject,
		const char *fmt, ...)
{
	bool is_worse = standing > share->standing;
	auto_strbuf struct strbuf line = {0};
	va_list ap;

	assert(subject && share->why_lines <= share->why_lines_max);
	if (is_worse)
		share->standing = standing;
	if (share->why_lines == share->why_lines_max && !is_worse)
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
	strbuf_cut(&line, str_clip(line.data, line.len, WHY_LINE_MAX));

	if (share->why_lines == share->why_lines_max) {
		const char *last = strrchr(share->why.data, '\n');

		/* Make room for a line: the last one goes. */
		strbuf_cut(&share->why, last ? (size_t)(last - share->why.data) : 0);
		share->why_lines--;
	}
	if (is_worse) {
		const struct strbuf others = share->why;

		share->why = line;
		line = others;
	}
	if (share->why_lines++ > 0)
		strbuf_addc(&share->why, '\n');
	strbuf_add(&share->why, line.data, line.len);
}

/* ---- looking at the world -------------------------------------------------------------------- */

/* Upstream's condition too. A kubelet always sets the label: a node without it was made by hand. */
bool node_runs_agent(const json_t *labels)
{
	const char *os = json_str_at(labels, "kubernetes.io/os");

	return !os || str_eq(os, "linux");
}

static void collect_policies(struct decision *d, const json_t *world, const json_t *labels,
			     size_t why_lines_max)
{
	const json_t *policies = world_kind(world, KIND_POLICY);
	const char *key;
	json_t *object;

	d->shares = mem_calloc(json_object_size(policies) + 1, sizeof(*d->shares));
	d->refused = json_object();
	if (!node_runs_agent(labels))
		return;
	json_each (policies, key, object) {
		struct share *share = &d->shares[d->shares_len];

		/* policy_status.c reports each of these to its author. */
		if (sriov_policy_is_reserved(object) || !object_is_trusted(world, object) ||
		    !sriov_policy_selects(object, labels))
			continue;
		share->why_lines_max = why_lines_max;
		if (sriov_policy_parse(key, object, &share->policy, NULL) < 0)
			json_put_str(d->refused, key, json_name(object));
		else
			d->shares_len++;
	}
	qsort(d->shares, d->shares_len, sizeof(*d->shares), sriov_policy_order);
}

/*
 * Upstream's groups have no namespace: where a good policy of that name selects the node too, they
 * are its.
 */
static bool is_refused_name(const struct decision *d, const char *name)
{
	const char *key;
	json_t *refused;

	for (size_t i = 0; i < d->shares_len; i++)
		if (str_eq(d->shares[i].policy.name, name))
			return false;
	json_each (d->refused, key, refused)
		if (str_eq(json_string_value(refused), name))
			return true;
	return false;
}

static bool group_is_held(const struct decision *d, const json_t *group)
{
	const char *name = json_str_at(group, "policyName");
	const char *namespace = json_str_at(group, "policyNamespace");
	auto_free char *key = NULL;

	if (str_empty(name))
		return false;
	if (str_empty(namespace))
		return is_refused_name(d, name);
	key = str_printf("%s/%s", namespace, name);
	return json_object_get(d->refused, key) != NULL;
}

bool decision_holds(const struct decision *d, const json_t *entry)
{
	const json_t *group;
	size_t i;

	json_array_foreach (json_at(entry, "vfGroups"), i, group)
		if (group_is_held(d, group))
			return true;
	return false;
}

static void collect_pfs(struct decision *d)
{
	const json_t *seen = json_at(d->state, "status", "interfaces"), *entry;
	size_t i;

	d->pfs = mem_calloc(json_array_size(seen) + 1, sizeof(*d->pfs));
	d->touched = mem_calloc(json_array_size(seen) + 1, sizeof(struct pf *));
	json_array_foreach ((json_t *)seen, i, entry) {
		const char *address = json_str_at(entry, "pciAddress");

		/* A PF that is listed twice counts once. */
		if (!str_empty(address) && !map_get(&d->by_address, address)) {
			struct pf *pf = &d->pfs[d->pfs_len];

			pf->seen = entry;
			map_set(&d->by_address, address, pf);
			d->pfs_len++;
		}
	}
	if (json_object_size(d->refused) == 0)
		return;
	json_array_foreach (json_at(d->spec, "interfaces"), i, entry) {
		const char *address = json_str_at(entry, "pciAddress");
		struct pf *pf = address ? map_get(&d->by_address, address) : NULL;

		if (pf && decision_holds(d, entry))
			pf->held = true;
	}
}

/* ---- applying policies ----------------------------------------------------------------------- */

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

/*
 * The groups a policy means on a PF. Of overlapping ones the first counts; sriov_policy_check
 * complains about the rest.
 */
static void claim(struct share *share, const struct pf *pf, struct groups *ret)
{
	struct vf_range range;
	size_t i = 0;

	while (sriov_policy_range(&share->policy, pf->seen, &i, &range)) {
		if (groups_overlap(ret, range))
			continue;
		groups_add(ret, (struct group){.share = share, .range = range});
		share->wanted += (int64_t)range.last - range.first + 1;
	}
}

static void lose(struct pf *pf, struct group group, const struct group *to)
{
	const struct sriov_policy *winner = &to->share->policy;

	group.winner = to->share;
	groups_add(&pf->lost, group);
	share_note(group.share, STANDING_OVERRULED, pf_name(pf),
		   "VFs %d-%d lost to VFs %d-%d of policy %s, priority %d", group.range.first,
		   group.range.last, to->range.first, to->range.last, winner->key,
		   winner->priority);
}

static struct pf_number larger(struct pf_number a, struct pf_number b)
{
	return a.value > b.value ? a : b;
}

/*
 * The policy is the strongest so far: it takes what it claims, groups that overlap with it go, the
 * others stay behind its own. numVfs and mtu become the larger ones when something stays or the
 * policy applied before had the same priority.
 */
static void merge(struct pf *pf, const struct share *share, struct groups *claimed)
{
	bool merged = pf->groups.len > 0 && pf->priority == share->policy.priority;
	struct pf_number num_vfs = {share->policy.num_vfs, share};
	struct pf_number mtu = {share->policy.mtu, share};

	for (size_t i = 0; i < pf->groups.len; i++) {
		const struct group *winner = groups_overlap(claimed, pf->groups.items[i].range);

		if (winner) {
			lose(pf, pf->groups.items[i], winner);
			continue;
		}
		groups_add(claimed, pf->groups.items[i]);
		merged = true;
	}

	free(pf->groups.items);
	pf->groups = *claimed;
	pf->num_vfs = merged ? larger(pf->num_vfs, num_vfs) : num_vfs;
	pf->mtu = merged ? larger(pf->mtu, mtu) : mtu;
	pf->priority = share->policy.priority;
}

static void apply_to_pf(struct decision *d, struct share *share, struct pf *pf)
{
	struct groups claimed = {0};

	if (!sriov_policy_picks(&share->policy, pf->seen, NULL))
		return;
	claim(share, pf, &claimed);
	if (claimed.len == 0)
		return;
	if (pf->held) {
		share_note(share, STANDING_PF_HELD, pf_name(pf),
			   "stays as it is, because a policy that it was set up for is refused "
			   "now");
		free(claimed.items);
		return;
	}
	if (pf->groups.len == 0) {
		assert(d->touched_len < d->pfs_len);
		d->touched[d->touched_len++] = pf;
	}
	merge(pf, share, &claimed);
}

/* ---- resources ------------------------------------------------------------------------------- */

static bool picks_some(const struct decision *d, const struct share *share)
{
	for (size_t i = 0; i < d->pfs_len; i++)
		if (sriov_policy_picks(&share->policy, d->pfs[i].seen, NULL))
			return true;
	return false;
}

/*
 * A resource of the node belongs to one namespace, that of the strongest policy that fills it: pods
 * cannot choose between VFs of one resource, and administrators of two namespaces do not know of
 * each other.
 */
static void settle_resources(struct decision *d)
{
	struct map winners = {0};

	for (size_t i = d->shares_len; i-- > 0;) {
		struct share *share = &d->shares[i];
		const struct share *winner = map_get(&winners, share->policy.resource_name);

		share->picks = picks_some(d, share);
		if (!share->picks)
			continue;
		if (!winner)
			map_set(&winners, share->policy.resource_name, share);
		else if (!str_eq(winner->policy.namespace, share->policy.namespace))
			share->resource_winner = winner;
	}
	map_done(&winners);
}

/* It gets nothing on this node. */
static void lose_resource(const struct decision *d, struct share *share)
{
	const struct sriov_policy *winner = &share->resource_winner->policy;
	const char *resource = share->policy.resource_name;

	for (size_t i = 0; i < d->pfs_len; i++) {
		struct groups claimed = {0};

		if (sriov_policy_picks(&share->policy, d->pfs[i].seen, NULL))
			claim(share, &d->pfs[i], &claimed);
		free(claimed.items);
	}
	share_note(share, STANDING_RESOURCE_TAKEN, "agent",
		   "resource %.*s is filled by policy %s, priority %d, of another namespace",
		   (int)str_clip(resource, strlen(resource), NAME_QUOTE_MAX), resource, winner->key,
		   winner->priority);
}

/*
 * ---- fields of a PF: the strongest surviving policy that gives one decides, weaker ones that want
 * another get a report
 */

static void decide_text(struct pf_text *field, const struct pf *pf, struct share *share,
			const char *name, const char *wanted)
{
	if (str_empty(wanted))
		return;
	/* "eth" and "ETH" are the same link. */
	if (!field->value)
		*field = (struct pf_text){wanted, share};
	else if (strcasecmp(field->value, wanted) != 0)
		share_note(share, STANDING_FIELD_OVERRULED, pf_name(pf),
			   "%s %s is overruled by %s of policy %s", name, wanted, field->value,
			   field->by->policy.key);
}

static void decide_fields(struct pf *pf)
{
	for (size_t i = 0; i < pf->groups.len; i++) {
		struct share *share = pf->groups.items[i].share;
		const struct sriov_policy *p;

		if (i > 0 && pf->groups.items[i - 1].share == share)
			continue;
		decide_text(&pf->link_type, pf, share, "linkType", share->policy.link_type);
		decide_text(&pf->eswitch_mode, pf, share, "eSwitchMode",
			    share->policy.eswitch_mode);

		p = &share->policy;
		if (p->says_externally_managed) {
			if (!pf->external)
				pf->external = share;
			else if (pf->external->policy.externally_managed != p->externally_managed)
				share_note(share, STANDING_FIELD_OVERRULED, pf_name(pf),
					   "externallyManaged %s is overruled by policy %s",
					   p->externally_managed ? "true" : "false",
					   pf->external->policy.key);
		}
	}
}

/* ---- GUIDs ----------------------------------------------------------------------------------- */

static bool is_infiniband(const struct pf *pf)
{
	const char *type = pf->link_type.value ? pf->link_type.value
					       : json_str_or(json_at(pf->seen, "linkType"), "");

	return strcasecmp(type, "IB") == 0;
}

/* The block of the GUIDs that the spec carries now. */
static int current_block(const json_t *spec)
{
	const json_t *entry, *group;
	uint64_t guid;
	size_t i, k;

	json_array_foreach (json_at(spec, "interfaces"), i, entry) {
		json_array_foreach (json_at(entry, "vfGroups"), k, group) {
			if (guid_parse(json_str_at(group, "guidStart"), &guid))
				return (int)(guid >> 56);
		}
	}
	return GUID_BLOCK_NONE;
}

static void decide_guids(struct pf *pf, int block)
{
	if (block == GUID_BLOCK_NONE || !is_infiniband(pf))
		return;
	pf->has_guids = guid_first_of_pf(block, json_str_at(pf->seen, "mac"), &pf->guid);
	for (size_t i = 0; i < pf->groups.len; i++) {
		const struct group *group = &pf->groups.items[i];
		const char *mac = json_str_or(json_at(pf->seen, "mac"), "");

		if (!pf->has_guids)
			share_note(group->share, STANDING_NO_GUIDS, pf_name(pf),
				   "no GUIDs from the pool, they are made of a MAC address and its "
				   "mac is "
				   "\"%.*s\"",
				   (int)str_clip(mac, strlen(mac), NAME_QUOTE_MAX), mac);
		else if (group->range.last >= GUID_VFS_MAX)
			share_note(group->share, STANDING_NO_GUIDS, pf_name(pf),
				   "no GUIDs from the pool for VFs %d-%d, it has %d for each PF",
				   group->range.first, group->range.last, GUID_VFS_MAX);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

void node_decide(struct decision *d, const json_t *world, const char *key, const json_t *state,
		 size_t why_lines_max)
{
	const json_t *labels = json_at(world_get(world, KIND_NODE, key), "metadata", "labels");
	const json_t *spec = json_at(state, "spec");
	int block;

	assert(d->shares_len == 0 && d->pfs_len == 0);
	d->state = state;
	d->spec = json_is_object(spec) ? spec : NULL;
	collect_policies(d, world, labels, why_lines_max);
	collect_pfs(d);
	settle_resources(d);
	for (size_t s = 0; s < d->shares_len; s++) {
		if (d->shares[s].resource_winner) {
			lose_resource(d, &d->shares[s]);
			continue;
		}
		for (size_t i = 0; i < d->pfs_len; i++)
			apply_to_pf(d, &d->shares[s], &d->pfs[i]);
	}
	block = pool_config_guid_block(world, labels, current_block(d->spec));
	for (size_t i = 0; i < d->touched_len; i++) {
		decide_fields(d->touched[i]);
		decide_guids(d->touched[i], block);
	}
}
