// SPDX-License-Identifier: Apache-2.0
/*
 * Read with its defaults, then matched field by field, so that it can be reported why a NIC is not
 * picked. node_decision.c applies what is parsed here; the checks at the end are those of
 * conditions and admission.
 */
#include "reconcilers/sriov/sriov_policy.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "lib/json/json.h"
#include "reconcilers/sriov/node_labels.h"

/* Names and values from objects, as far as messages quote them. */
#define QUOTE_MAX         64
#define RESOURCE_NAME_MAX 63

/* How much of a text a message quotes, for "%.*s". */
static int quote_len(const char *s)
{
	return (int)str_clip(s, strlen(s), QUOTE_MAX);
}

static bool is_infiniband(const char *link_type)
{
	return str_eq(link_type, "IB") || str_eq(link_type, "ib");
}

static bool is_vfio(const struct sriov_policy *policy)
{
	return str_eq(policy->device_type, "vfio-pci");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A string field that must be one of `allowed` (ends with NULL), or absent, or empty. */
static int get_choice(const json_t *spec, const char *key, const char *const *allowed,
		      const char **ret, struct err *err)
{
	auto_strbuf struct strbuf choices = {0};
	const char *value;

	if (json_get_str(spec, "spec", key, "", &value, err) < 0)
		return -1;
	*ret = value;
	if (str_empty(value))
		return 0;
	for (size_t i = 0; allowed[i]; i++) {
		if (str_eq(value, allowed[i]))
			return 0;
		strbuf_addf(&choices, "%s%s", i ? ", " : "", allowed[i]);
	}
	return err_set(err, ERR_INVALID, "BadField", "spec.%s: \"%.*s\" must be one of %s", key,
		       quote_len(value), value, strbuf_str(&choices));
}

static int get_int(const json_t *spec, const char *key, int max, int otherwise, int *ret,
		   struct err *err)
{
	int64_t value;

	if (json_get_int(spec, "spec", key, 0, max, otherwise, &value, err) < 0)
		return -1;
	*ret = (int)value;
	return 0;
}

static int read_values(const json_t *spec, struct sriov_policy *p, struct err *err)
{
	static const char *const device_types[] = {"netdevice", "vfio-pci", NULL};
	static const char *const link_types[] = {"eth", "ETH", "ib", "IB", NULL};
	static const char *const eswitch_modes[] = {"legacy", "switchdev", NULL};
	static const char *const vdpa_types[] = {"virtio", "vhost", NULL};

	if (json_get_str(spec, "spec", "resourceName", "", &p->resource_name, err) < 0 ||
	    get_int(spec, "priority", SRIOV_PRIORITY_WEAKEST, SRIOV_PRIORITY_WEAKEST, &p->priority,
		    err) < 0 ||
	    get_int(spec, "numVfs", SRIOV_VFS_MAX, 0, &p->num_vfs, err) < 0 ||
	    json_get_int(spec, "spec", "mtu", 0, INT32_MAX, 0, &p->mtu, err) < 0 ||
	    json_get_bool(spec, "spec", "isRdma", false, &p->is_rdma, err) < 0 ||
	    json_get_bool(spec, "spec", "needVhostNet", false, &p->need_vhost_net, err) < 0 ||
	    json_get_bool(spec, "spec", "excludeTopology", false, &p->exclude_topology, err) < 0 ||
	    json_get_bool(spec, "spec", "externallyManaged", false, &p->externally_managed, err) <
		    0)
		return -1;
	if (str_empty(p->resource_name))
		return err_set(err, ERR_INVALID, "NoResourceName",
			       "spec.resourceName: missing, name the resource that pods ask for");
	p->says_externally_managed = json_at(spec, "externallyManaged");

	if (get_choice(spec, "deviceType", device_types, &p->device_type, err) < 0 ||
	    get_choice(spec, "linkType", link_types, &p->link_type, err) < 0 ||
	    get_choice(spec, "eSwitchMode", eswitch_modes, &p->eswitch_mode, err) < 0 ||
	    get_choice(spec, "vdpaType", vdpa_types, &p->vdpa_type, err) < 0)
		return -1;
	if (str_empty(p->device_type))
		p->device_type = device_types[0];
	return 0;
}

int sriov_policy_nic_selector(const json_t *parent, const char *path, struct sriov_policy *p,
			      struct err *err)
{
	auto_free char *where = str_printf("%s.nicSelector", path);
	const json_t *nic, *text;
	struct pf_name name;
	size_t i;

	if (json_get_object(parent, path, "nicSelector", &nic, err) < 0)
		return -1;
	if (json_get_str(nic, where, "vendor", "", &p->vendor, err) < 0 ||
	    json_get_str(nic, where, "deviceID", "", &p->device_id, err) < 0 ||
	    json_get_str(nic, where, "netFilter", "", &p->net_filter, err) < 0 ||
	    json_get_strings(nic, where, "rootDevices", &p->root_devices, err) < 0 ||
	    json_get_strings(nic, where, "pfNames", &p->pf_names, err) < 0)
		return -1;
	json_array_foreach ((json_t *)p->pf_names, i, text) {
		if (pf_name_parse(json_string_value(text), &name, err) < 0)
			return err_in(err, "%s.pfNames[%zu]", where, i);
	}
	return 0;
}

static int read_spec(const json_t *object, struct sriov_policy *p, struct err *err)
{
	const json_t *spec;
	const json_t *pairs;
	const char *key;
	json_t *value;

	if (json_get_object(object, "", "spec", &spec, err) < 0)
		return -1;
	if (!spec)
		return err_set(err, ERR_INVALID, "BadField", "spec: missing, must be an object");

	if (json_get_object(spec, "spec", "nodeSelector", &pairs, err) < 0)
		return -1;
	json_each (pairs, key, value) {
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, "BadField",
				       "spec.nodeSelector: \"%.*s\" is %s, must be a string",
				       quote_len(key), key, json_type_words(value));
		if (node_label_is_ours(key))
			return err_set(err, ERR_INVALID, "BadSelector",
				       "spec.nodeSelector: \"%.*s\" is written by the operator and "
				       "follows from rails; select the nodes by another label",
				       quote_len(key), key);
	}
	if (read_values(spec, p, err) < 0 || sriov_policy_nic_selector(spec, "spec", p, err) < 0)
		return -1;
	/* Upstream's webhook does the same; an InfiniBand VF without RDMA has no use. */
	if (is_infiniband(p->link_type) && !is_vfio(p))
		p->is_rdma = true;
	return 0;
}

int sriov_policy_parse(const char *key, const json_t *object, struct sriov_policy *ret,
		       struct err *err)
{
	struct sriov_policy p = {
		.key = key,
		.name = json_name(object),
		.namespace = json_namespace(object),
	};
	const json_t *annotations = json_at(object, "metadata", "annotations");

	assert(key);
	p.allows_lag_loss = str_eq(json_str_at(annotations, SRIOV_ALLOW_LAG_LOSS), "true");
	p.allows_primary_nic = str_eq(json_str_at(annotations, SRIOV_ALLOW_PRIMARY_NIC), "true");
	p.allows_firmware = str_eq(json_str_at(annotations, SRIOV_ALLOW_FIRMWARE), "true");
	if (read_spec(object, &p, err) < 0)
		return -1;
	*ret = p;
	return 0;
}

/* ---- pfNames --------------------------------------------------------------------------------- */

static int bad_range(const char *text, const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID, "BadRange",
		       "\"%.*s\" %s; write NAME or NAME#FIRST-LAST, for example ens1f0#0-3",
		       quote_len(text), text, what);
}

int pf_name_parse(const char *text, struct pf_name *ret, struct err *err)
{
	size_t name_len = strcspn(text, "#");
	const char *range, *dash;
	int64_t first, last;

	if (name_len == 0)
		return bad_range(text, "names no PF", err);
	if (text[name_len] == '\0') {
		*ret = (struct pf_name){.name = text, .name_len = name_len};
		return 0;
	}

	range = text + name_len + 1;
	dash = strchr(range, '-');
	if (!dash)
		return bad_range(text, "has a range without '-'", err);

	auto_free char *before = str_ndup(range, (size_t)(dash - range));
	if (!str_to_int(before, 0, SRIOV_VFS_MAX, &first) ||
	    !str_to_int(dash + 1, 0, SRIOV_VFS_MAX, &last))
		return bad_range(text, "has a range whose ends are not numbers from 0 to 65535",
				 err);
	if (last < first)
		return bad_range(text, "has a range that ends before it starts", err);
	*ret = (struct pf_name){
		.name = text,
		.name_len = name_len,
		.has_range = true,
		.range = {.first = (int)first, .last = (int)last},
	};
	return 0;
}

static bool name_is(const struct pf_name *name, const char *other)
{
	return other && strlen(other) == name->name_len &&
	       memcmp(other, name->name, name->name_len) == 0;
}

static bool name_means(const struct pf_name *name, const json_t *pf)
{
	const json_t *alt_name;
	size_t i;

	if (name_is(name, json_str_at(pf, "name")))
		return true;
	json_array_foreach (json_at(pf, "altNames"), i, alt_name) {
		if (name_is(name, json_string_value(alt_name)))
			return true;
	}
	return false;
}

/* The next element of pfNames, from *iter on, that means the PF. */
static bool next_name(const struct sriov_policy *policy, const json_t *pf, size_t *iter,
		      struct pf_name *ret)
{
	const char *text;

	while ((text = json_string_value(json_array_get(policy->pf_names, *iter)))) {
		*ret = (struct pf_name){.name = text, .name_len = strcspn(text, "#")};
		++*iter;
		if (name_means(ret, pf) && pf_name_parse(text, ret, NULL) == 0)
			return true;
	}
	return false;
}

bool sriov_policy_range(const struct sriov_policy *policy, const json_t *pf, size_t *iter,
			struct vf_range *ret)
{
	size_t names = json_array_size(policy->pf_names);
	bool first_visit = *iter == 0;
	struct pf_name name;

	assert(*iter <= names + 1);
	if (policy->num_vfs == 0 || *iter > names)
		return false;
	*ret = (struct vf_range){.first = 0, .last = policy->num_vfs - 1};
	if (next_name(policy, pf, iter, &name)) {
		if (name.has_range)
			*ret = name.range;
		return true;
	}
	*iter = names + 1;
	/* When no element names it, other selectors picked it: all of it. */
	return first_visit;
}

bool vf_range_overlaps(struct vf_range a, struct vf_range b)
{
	assert(a.first <= a.last && b.first <= b.last);
	return a.first <= b.last && b.first <= a.last;
}

/* ---- matching -------------------------------------------------------------------------------- */

bool sriov_policy_is_upstreams_own(const json_t *object)
{
	const json_t *spec = json_at(object, "spec");

	return sriov_policy_is_reserved(object) &&
	       json_integer_value(json_at(spec, "numVfs")) == 0 &&
	       json_object_size(json_at(spec, "nicSelector")) == 0 &&
	       str_empty(json_str_at(spec, "resourceName"));
}

bool sriov_policy_is_reserved(const json_t *object)
{
	return str_eq(json_name(object), "default");
}

bool sriov_policy_selects(const json_t *object, const json_t *labels)
{
	const json_t *spec = json_object_get(object, "spec");
	const json_t *pairs = json_object_get(spec, "nodeSelector");
	const char *key;
	json_t *wanted;

	if (!json_is_object(spec))
		return false;
	if (!pairs || json_is_null(pairs))
		return true;
	json_each (pairs, key, wanted) {
		/* The policy is refused; it keeps the VFs that it has. */
		if (!node_label_is_ours(key) &&
		    !(json_is_string(wanted) && json_same(json_object_get(labels, key), wanted)))
			return false;
	}
	return json_is_object(pairs);
}

static void add_quote(struct strbuf *b, const char *s)
{
	size_t len = strlen(s), keep = str_clip(s, len, QUOTE_MAX);

	strbuf_add(b, s, keep);
	if (keep < len)
		strbuf_adds(b, "...");
}

static void fails(struct strbuf *why, size_t n, const char *selector, const char *is,
		  const char *wanted)
{
	if (!why)
		return;
	strbuf_addf(why, "%s%s ", n ? "; " : "", selector);
	add_quote(why, str_empty(is) ? "unknown" : is);
	strbuf_adds(why, ", wanted ");
	add_quote(why, wanted);
}

/* The same for a list: the first few of it. */
static void fails_list(struct strbuf *why, size_t n, const char *selector, const char *is,
		       const json_t *wanted)
{
	auto_strbuf struct strbuf list = {0};
	const size_t quoted = 2;
	const json_t *one;
	size_t i;

	if (!why)
		return;
	json_array_foreach ((json_t *)wanted, i, one) {
		if (i == quoted)
			break;
		if (i)
			strbuf_adds(&list, " or ");
		strbuf_adds(&list, json_str_or(one, ""));
	}
	fails(why, n, selector, is, strbuf_str(&list));
	if (json_array_size(wanted) > quoted)
		strbuf_addf(why, " or %zu more", json_array_size(wanted) - quoted);
}

/* People write the hex digits of addresses in either case. */
static bool has_address(const json_t *list, const char *address)
{
	const json_t *one;
	size_t i;

	json_array_foreach ((json_t *)list, i, one) {
		if (address && strcasecmp(json_str_or(one, ""), address) == 0)
			return true;
	}
	return false;
}

/* "openstack/NetworkID: 12ab" in two, without the blanks around. */
struct net_filter {
	const char *left, *right;
	size_t left_len, right_len;
};

static const char blanks[] = " \t\r\n\f";

/* In one run of non-blanks that starts at s: the colon is the last one with something behind it. */
static bool net_filter_split(const char *s, size_t run, struct net_filter *ret)
{
	for (size_t end = run; end > 0; end--) {
		const char *colon = s + end;

		/* Blanks may stand before the colon only where the run ends. */
		if (end == run)
			colon += strspn(colon, blanks);
		if (*colon != ':')
			continue;
		ret->right = colon + 1 + strspn(colon + 1, blanks);
		ret->right_len = strcspn(ret->right, blanks);
		ret->left = s;
		ret->left_len = end;
		if (ret->right_len > 0)
			return true;
	}
	return false;
}

static bool net_filter_parse(const char *s, struct net_filter *ret)
{
	size_t run;

	for (s += strspn(s, blanks); *s; s += run, s += strspn(s, blanks)) {
		run = strcspn(s, blanks);
		if (net_filter_split(s, run, ret))
			return true;
	}
	return false;
}

static bool net_filter_same(const char *a, const char *b)
{
	struct net_filter x, y;

	return a && b && net_filter_parse(a, &x) && net_filter_parse(b, &y) &&
	       x.left_len == y.left_len && memcmp(x.left, y.left, x.left_len) == 0 &&
	       x.right_len == y.right_len && memcmp(x.right, y.right, x.right_len) == 0;
}

static bool has_nic_selector(const struct sriov_policy *p)
{
	return !str_empty(p->vendor) || !str_empty(p->device_id) || !str_empty(p->net_filter) ||
	       json_array_size(p->root_devices) > 0 || json_array_size(p->pf_names) > 0;
}

void sriov_policy_why_not_selected(const json_t *object, const json_t *labels, struct strbuf *why)
{
	const json_t *pairs = json_at(object, "spec", "nodeSelector");
	const char *key;
	json_t *wanted;

	assert(why);
	json_each (pairs, key, wanted) {
		const json_t *is = json_object_get(labels, key);

		if (node_label_is_ours(key) || (json_is_string(wanted) && json_same(is, wanted)))
			continue;
		strbuf_adds(why, "label ");
		add_quote(why, key);
		strbuf_addc(why, ' ');
		add_quote(why, is ? json_str_or(is, "") : "missing");
		strbuf_adds(why, ", wanted ");
		add_quote(why, json_str_or(wanted, ""));
		return;
	}
	strbuf_adds(why, "spec.nodeSelector cannot be read");
}

size_t sriov_policy_fails(const struct sriov_policy *p, const json_t *pf, struct strbuf *why)
{
	const char *address = json_str_at(pf, "pciAddress");
	struct pf_name name;
	size_t i = 0, n = 0;

	if (!has_nic_selector(p)) {
		if (why)
			strbuf_adds(why, "nicSelector is empty and picks nothing");
		return 1;
	}
	if (!str_empty(p->vendor) && !str_eq(json_str_at(pf, "vendor"), p->vendor))
		fails(why, n++, "vendor", json_str_at(pf, "vendor"), p->vendor);
	if (!str_empty(p->device_id) && !str_eq(json_str_at(pf, "deviceID"), p->device_id))
		fails(why, n++, "deviceID", json_str_at(pf, "deviceID"), p->device_id);
	if (json_array_size(p->root_devices) > 0 && !has_address(p->root_devices, address))
		fails_list(why, n++, "pciAddress", address, p->root_devices);
	if (json_array_size(p->pf_names) > 0 && !next_name(p, pf, &i, &name))
		fails_list(why, n++, "name", json_str_at(pf, "name"), p->pf_names);
	if (!str_empty(p->net_filter) &&
	    !net_filter_same(json_str_at(pf, "netFilter"), p->net_filter))
		fails(why, n++, "netFilter", json_str_at(pf, "netFilter"), p->net_filter);
	return n;
}

bool sriov_policy_picks(const struct sriov_policy *p, const json_t *pf, struct strbuf *why)
{
	return sriov_policy_fails(p, pf, why) == 0;
}

int sriov_policy_order(const void *a, const void *b)
{
	const struct sriov_policy *x = a, *y = b;
	int by_name;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	by_name = strcmp(x->name, y->name);
	return by_name ? by_name : strcmp(x->namespace, y->namespace);
}

/* ---- judging --------------------------------------------------------------------------------- */

/*
 * What the kubelet takes behind the prefix, as upstream's webhook has it (pkg/webhook/validate.go).
 */
static bool resource_name_is_good(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > RESOURCE_NAME_MAX || !isalnum((unsigned char)s[0]) ||
	    !isalnum((unsigned char)s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
			return false;
	return true;
}

/* An element of pfNames with the range it means. */
static bool get_pf_name(const struct sriov_policy *p, size_t i, struct pf_name *ret)
{
	if (pf_name_parse(json_str_or(json_array_get(p->pf_names, i), ""), ret, NULL) < 0)
		return false;
	if (!ret->has_range)
		ret->range = (struct vf_range){.first = 0, .last = p->num_vfs - 1};
	return true;
}

/* The first of the earlier elements that claims a VF of the same PF too. */
static bool find_overlap(const struct sriov_policy *p, size_t i, const struct pf_name *name,
			 size_t *ret)
{
	struct pf_name earlier = {0};

	for (size_t k = 0; k < i; k++) {
		if (!get_pf_name(p, k, &earlier) || earlier.name_len != name->name_len ||
		    memcmp(earlier.name, name->name, name->name_len) != 0 ||
		    !vf_range_overlaps(earlier.range, name->range))
			continue;
		*ret = k;
		return true;
	}
	return false;
}

static void check_ranges(const struct sriov_policy *p, struct problems *problems)
{
	const size_t checked = 64; /* each against all before it; more than a node has PFs */
	struct pf_name name = {0};
	size_t other;

	for (size_t i = 0; i < json_array_size(p->pf_names) && i < checked; i++) {
		auto_free char *field = str_printf("spec.nicSelector.pfNames[%zu]", i);

		if (!get_pf_name(p, i, &name))
			continue;
		if (name.has_range && name.range.last >= p->num_vfs)
			problem_add(
				problems, "RangeBeyondNumVfs", field,
				"\"%.*s\" has VFs that numVfs %d does not make, raise numVfs to "
				"%d or more",
				quote_len(name.name), name.name, p->num_vfs, name.range.last + 1);
		if (find_overlap(p, i, &name, &other))
			problem_add(problems, "RangesOverlap", field,
				    "\"%.*s\" repeats VFs of pfNames[%zu] and is ignored, make the "
				    "ranges disjoint",
				    quote_len(name.name), name.name, other);
	}
}

static void check_values(const struct sriov_policy *p, const json_t *object,
			 struct problems *problems)
{
	if (!has_nic_selector(p))
		problem_add(problems, "NicSelectorEmpty", "spec.nicSelector",
			    "empty picks no NIC, give vendor, deviceID, rootDevices, pfNames or "
			    "netFilter");
	if (p->num_vfs == 0)
		problem_add(problems, "NumVfsZero", "spec.numVfs",
			    "0 makes no VFs, set it to 1 or more or delete the policy");
	if (!resource_name_is_good(p->resource_name))
		problem_add(problems, "BadResourceName", "spec.resourceName",
			    "\"%.*s\" is refused by kubelets, use at most 63 letters, digits, '-', "
			    "'_' or '.', with a letter or digit at both ends",
			    quote_len(p->resource_name), p->resource_name);
	if (json_object_size(json_at(object, "spec", "bridge", "ovs")) > 0)
		problem_add(problems, "BridgeNotManaged", "spec.bridge",
			    "stored, but nobody sets up OVS bridges; make the bridge by hand");
}

void sriov_policy_check(const json_t *object, struct problems *problems)
{
	struct sriov_policy p;
	struct err err = {0};
	bool switchdev;

	if (sriov_policy_is_upstreams_own(object))
		return;
	if (sriov_policy_is_reserved(object)) {
		problem_add(problems, "NameReserved", "metadata.name",
			    "\"default\" is reserved and never applied, create the policy under "
			    "another name");
		return;
	}
	if (sriov_policy_parse("", object, &p, &err) < 0) {
		/* The text starts with the field. */
		auto_free char *field = str_ndup(err.text, strcspn(err.text, ":"));

		problem_add_err(problems, field, &err);
		return;
	}
	check_values(&p, object, problems);
	check_ranges(&p, problems);
	switchdev = str_eq(p.eswitch_mode, "switchdev");
	if (is_vfio(&p) && p.is_rdma)
		problem_add(problems, "VfioWithRdma", "spec.isRdma",
			    "true does not go with deviceType vfio-pci, which has no RDMA device; "
			    "set deviceType netdevice or isRdma false");
	if (is_infiniband(p.link_type) && switchdev)
		problem_add(problems, "SwitchdevNeedsEthernet", "spec.eSwitchMode",
			    "switchdev does not go with linkType %s, set legacy or linkType eth",
			    p.link_type);
	if (!str_empty(p.vdpa_type) && is_vfio(&p))
		problem_add(problems, "VdpaNeedsNetdevice", "spec.vdpaType",
			    "%s does not go with deviceType vfio-pci, set deviceType netdevice or "
			    "remove vdpaType",
			    p.vdpa_type);
	if (!str_empty(p.vdpa_type) && !switchdev)
		problem_add(problems, "VdpaNeedsSwitchdev", "spec.vdpaType",
			    "%s needs eSwitchMode switchdev, set that or remove vdpaType",
			    p.vdpa_type);
}
