// SPDX-License-Identifier: Apache-2.0
/*
 * Shared RDMA pools: tokens, each of which brings the device files of all RDMA devices that the
 * entry selects.
 */

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

#define DEFAULT_PREFIX   "rdma"
#define DEFAULT_INTERVAL 60
#define INTERVAL_MAX     (365 * 24 * 3600)

static const char SOURCE[] = POOLS_SOURCE_SHARED;

/* ---- reading --------------------------------------------------------------------------------- */

static const char *const selector_lists[] = {"vendors", "deviceIDs", "drivers",
					     "ifNames", "linkTypes", NULL};

/* The older `devices` is `selectors.ifNames` by another name. Returns new. */
static json_t *read_selectors(const json_t *entry, const char *where, json_t *problems,
			      struct err *err)
{
	auto_free char *at = str_printf("%s.selectors", where);
	const json_t *selectors;
	json_auto_t *ret = NULL, *unknown = json_array();
	size_t values = 0;

	if (json_get_object(entry, where, "selectors", &selectors, err) < 0 ||
	    pools_check_strings(entry, where, "devices", err) < 0)
		return NULL;
	if (!selectors == !json_array_size(json_at(entry, "devices"))) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "%s: must have either selectors or devices, has %s", where,
			      selectors ? "both" : "none");
		return NULL;
	}
	ret = selectors ? pools_fold_keys(selectors, selector_lists, at, unknown)
			: json_pack("{s:O}", "ifNames", json_at(entry, "devices"));
	/* Without a misspelt one the others would select more than was meant. */
	if (json_array_size(unknown) > 0) {
		(void)err_set(err, ERR_INVALID, "BadField", "%.250s",
			      json_str_or(json_at(json_array_get(unknown, 0), "message"), ""));
		return NULL;
	}
	for (const char *const *key = selector_lists; *key; key++) {
		if (pools_check_strings(ret, at, *key, err) < 0)
			return NULL;
		values += json_array_size(json_at(ret, *key));
	}
	if (values > 0)
		return take_ptr(ret);
	(void)err_set(err, ERR_INVALID, "BadField",
		      "%s: selects nothing; give vendors, deviceIDs, drivers, ifNames or linkTypes",
		      at);
	return NULL;
}

static json_t *read_entry(const json_t *value, const char *where, json_t *problems, struct err *err)
{
	static const char *const known[] = {"resourceName", "resourcePrefix", "rdmaHcaMax",
					    "selectors",    "devices",        NULL};
	json_auto_t *entry = pools_fold_keys(value, known, where, problems);
	const char *name, *prefix, *fault;
	json_t *selectors;
	int64_t max;

	if (!json_at(entry, "rdmaHcaMax")) {
		auto_free char *missing = str_printf(
			"%s.rdmaHcaMax: is missing, so that 0 devices are offered; write how many "
			"pods may share the NIC, as in 500",
			where);

		pools_note(problems, json_str_at(entry, "resourceName"), "BadSharedConfig",
			   missing);
	}
	if (json_get_str(entry, where, "resourceName", "", &name, err) < 0 ||
	    json_get_str(entry, where, "resourcePrefix", DEFAULT_PREFIX, &prefix, err) < 0 ||
	    json_get_int(entry, where, "rdmaHcaMax", 0, POOLS_TOKENS_MAX, 0, &max, err) < 0)
		return NULL;
	fault = pools_name_fault(*prefix ? prefix : DEFAULT_PREFIX, name);
	if (fault) {
		(void)err_set(err, ERR_INVALID, "BadResourceName",
			      "%s: resource name \"%.200s\" %s; the kubelet would refuse it", where,
			      name, fault);
		return NULL;
	}
	selectors = read_selectors(entry, where, problems, err);
	if (!selectors)
		return NULL;
	return json_pack("{s:s,s:s,s:I,s:o}", "resourceName", name, "resourcePrefix",
			 *prefix ? prefix : DEFAULT_PREFIX, "rdmaHcaMax", (json_int_t)max,
			 "selectors", selectors);
}

json_t *pools_read_shared(const char *text, size_t len, struct err *err)
{
	static const char *const known[] = {"periodicUpdateInterval", "configList", NULL};
	static const struct pools_format format = {
		.what = "the shared device plugin's configuration",
		.reason = "BadSharedConfig",
		.known = known,
		.list = "configList",
		.read = read_entry,
	};
	struct err inner = {0};
	json_auto_t *raw = json_parse(text, len, &inner);
	json_auto_t *doc = pools_read_document(&format, raw, &inner, err);
	int64_t interval;

	if (!doc)
		return NULL;
	/* The value is not used, so a wrong one costs nothing but its report. */
	if (json_get_int(doc, "", "periodicUpdateInterval", 0, INTERVAL_MAX, DEFAULT_INTERVAL,
			 &interval, &inner) < 0) {
		pools_note(json_at(doc, "problems"), NULL, format.reason, inner.text);
		interval = DEFAULT_INTERVAL;
	}
	json_put_int(doc, "periodicUpdateInterval", interval);
	return take_ptr(doc);
}

/* ---- selecting ------------------------------------------------------------------------------- */

/*
 * What an entry selects among: a network function, or an RDMA device on an interface without one.
 */
struct candidate {
	const char *id; /* PCI address or name */
	const char *vendor, *device, *driver, *netdev;
	const char *link_type;
	const json_t *rdma;                    /* its RDMA devices */
	const struct pools_function *function; /* NULL: none is behind it */
};

static bool is_listed(const json_t *list, const char *value)
{
	return json_array_size(list) == 0 || (value && json_list_has(list, value));
}

/*
 * An interface that has moved to a pod is out of sight; what it was selected by last time counts.
 */
static bool is_named(const struct pool *pool, const json_t *names, const struct candidate *c)
{
	const json_t *selected = json_at(pool->before, "selected");

	return is_listed(names, c->netdev) || (!c->netdev && json_list_has(selected, c->id));
}

/* Does the entry select it? misses: NULL, or where to say which selectors do not. */
static bool selects(const struct pool *pool, const json_t *selectors, const struct candidate *c,
		    struct strbuf *misses)
{
	const struct {
		const char *key, *words, *value;
		bool fits;
	} rows[] = {
		{"vendors", "vendor", c->vendor,
		 is_listed(json_at(selectors, "vendors"), c->vendor)},
		{"deviceIDs", "device", c->device,
		 is_listed(json_at(selectors, "deviceIDs"), c->device)},
		{"drivers", "driver", c->driver,
		 is_listed(json_at(selectors, "drivers"), c->driver)},
		{"ifNames", "interface", c->netdev,
		 is_named(pool, json_at(selectors, "ifNames"), c)},
		{"linkTypes", "link type", c->link_type,
		 is_listed(json_at(selectors, "linkTypes"), c->link_type)},
	};
	bool all = true;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		all &= rows[i].fits;
		if (!rows[i].fits && misses)
			pools_add_miss(misses, rows[i].words, rows[i].value,
				       json_at(selectors, rows[i].key));
	}
	return all;
}

/* ---- device files ---------------------------------------------------------------------------- */

/* What one pool gathers. */
struct gathering {
	struct pools *pools;
	struct pool *pool;
	const json_t *selectors;
	json_t *selected; /* ids of candidates */
	json_t *nodes;
	size_t usable;  /* RDMA devices that have their uverbs */
	size_t working; /* of these, those whose port has a link */
};

static const char *name_of(const struct gathering *g)
{
	return json_str_at(g->pool->resource, "name");
}

static bool add_files(struct gathering *g, const json_t *files, const char *needed)
{
	bool found = false;
	json_t *file;
	size_t i;

	json_array_foreach ((json_t *)files, i, file) {
		const char *path = json_str_at(file, "path");

		if (!path)
			continue;
		found = found || str_eq(json_str_at(file, "type"), needed);
		json_array_append_new(g->nodes, json_string(path));
	}
	return found;
}

/*
 * Only uverbs is indispensable. umad is for management programs. issm is for subnet managers, which
 * only InfiniBand has: a RoCE device never had one, whatever older releases of the shared device
 * plugin asked for (k8s-rdma-shared-dev-plugin, pkg/resources).
 */
static void add_device(struct gathering *g, const struct candidate *c, const json_t *device)
{
	const json_t *files = json_at(device, "charDevices");
	const json_t *port = json_array_get(json_at(device, "ports"), 0);
	const char *name = json_str_or(json_at(device, "name"), "?");
	bool is_ib = str_eq(json_str_at(port, "linkLayer"), "InfiniBand");
	auto_free char *unwell = NULL;

	if (!add_files(g, files, "uverbs")) {
		pool_cause(g->pool,
			   "%s (%s): no file uverbs* in /dev/infiniband; load the module ib_uverbs",
			   name, c->id);
		return;
	}
	g->usable++;
	/*
	 * Of a bond the kernel says ACTIVE while one of its ports has a link. Of others the port
	 * is known sooner.
	 */
	if (c->function)
		unwell = pools_unwell(g->pools, c->function,
				      json_at(c->function->seen, "host", "lag") &&
					      str_eq(json_str_at(port, "state"), "ACTIVE"),
				      true);
	if (unwell)
		pool_cause(g->pool, "%s (%s): %s", name, c->id, unwell);
	else
		g->working++;
	if (!json_find(files, "type", "umad") || (is_ib && !json_find(files, "type", "issm")))
		pools_problem(g->pools, name_of(g), "RdmaFilesMissing",
			      "%s: %s (%s) has no file %s in /dev/infiniband; pods get it without; "
			      "load the module ib_umad",
			      name_of(g), name, c->id,
			      json_find(files, "type", "umad") ? "issm*" : "umad*");
}

static void add_candidate(struct gathering *g, const struct candidate *c)
{
	json_t *device;
	size_t i;

	if (!selects(g->pool, g->selectors, c, NULL))
		return;
	json_array_append_new(g->selected, json_string(c->id));
	if (json_array_size(c->rdma) == 0)
		pool_cause(g->pool, "%s (%s): it has no RDMA device", c->id,
			   c->netdev ? c->netdev : "no interface");
	json_array_foreach ((json_t *)c->rdma, i, device)
		add_device(g, c, device);
}

static const char *link_type_of(const char *type)
{
	if (str_eq(type, "ETH") || str_eq(type, "Ethernet"))
		return "ether";
	return str_eq(type, "IB") || str_eq(type, "InfiniBand") ? "infiniband" : NULL;
}

static struct candidate candidate_of(const struct pools *pools, const struct pools_function *f)
{
	return (struct candidate){
		.id = f->address,
		.vendor = json_str_at(f->seen, "vendor"),
		.device = json_str_at(f->seen, "deviceID"),
		.driver = json_str_at(f->seen, "driver"),
		.netdev = json_str_at(f->seen, "name"),
		.link_type = link_type_of(json_str_at(f->pf ? f->pf : f->seen, "linkType")),
		.rdma = pools_rdma_of(pools, f->address),
		.function = f,
	};
}

/* Soft-RoCE on an interface that no function is behind: a bridge, a veth. */
static void add_software_devices(struct gathering *g)
{
	json_t *device;
	size_t i;

	json_array_foreach (json_at(g->pools->input->observed, "rdma", "devices"), i, device) {
		const json_t *port = json_array_get(json_at(device, "ports"), 0);
		json_auto_t *single = json_pack("[O]", device);
		struct candidate c = {
			.id = json_str_or(json_at(device, "name"), "?"),
			.netdev = json_str_at(port, "netdev"),
			.link_type = link_type_of(json_str_at(port, "linkLayer")),
			.rdma = single,
		};

		if (!json_at(device, "pciAddress") && !json_at(device, "netdevPciAddress"))
			add_candidate(g, &c);
	}
}

/*
 * As upstream, whose plugin does not start in this mode: a pod that got a token could not open the
 * device. One ConfigMap serves nodes of both modes, so nothing is wanted here, and nothing wrong.
 */
static bool withhold_in_exclusive_mode(struct gathering *g)
{
	static const char why[] = "the RDMA subsystem is in mode exclusive, in which pods cannot "
				  "open a shared device: none is offered on this node";
	const char *id;
	json_t *who;

	if (!str_eq(json_str_at(g->pools->input->observed, "rdma", "netnsMode"), "exclusive"))
		return false;
	g->pool->wanted = 0;
	/* What a pod of the host's network has it can open, and keeps. */
	json_each (g->pool->allocated, id, who)
		json_array_append_new(g->pool->devices,
				      json_pack("{s:s, s:b}", "id", id, "healthy", 0));
	pool_cause(g->pool, "%s", why);
	pools_problem(g->pools, name_of(g), "RdmaModeExclusive",
		      "%s: %s; if it is meant for this node, set its rdmaMode to shared",
		      name_of(g), why);
	return true;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void offer_tokens(struct gathering *g, int64_t max)
{
	if (json_array_size(g->selected) == 0) {
		/*
		 * A resource at 0: each NIC with all that is wrong with it. VFs differ from their
		 * PF in little.
		 */
		pool_cause(g->pool, "no network device of this node matches the selectors");
		for (size_t i = 0; i < g->pools->n_functions; i++) {
			const struct pools_function *f = &g->pools->functions[i];
			struct candidate c = candidate_of(g->pools, f);
			auto_strbuf struct strbuf misses = {0};

			if (f->pf || !c.driver)
				continue;
			(void)selects(g->pool, g->selectors, &c, &misses);
			pool_cause(g->pool, "%s: %s", c.netdev ? c.netdev : c.id,
				   strbuf_str(&misses));
		}
		pools_nothing_selected(g->pools, g->pool, "the ConfigMap");
	}
	if (g->usable > 0 &&
	    !add_files(g, json_at(g->pools->input->observed, "rdma", "charDevices"), "rdma_cm"))
		pools_problem(g->pools, name_of(g), "RdmaFilesMissing",
			      "%s: /dev/infiniband/rdma_cm is missing, so that pods cannot use the "
			      "RDMA connection manager; load the module rdma_ucm",
			      name_of(g));
	/*
	 * Tokens that pods have stay on the list, and so do those of a device that lacks its files
	 * for now. A token brings all devices: one that works is enough.
	 */
	if (json_array_size(g->selected) > 0 || json_object_size(g->pool->allocated) > 0)
		pools_add_tokens(g->pools, g->pool, max, g->usable > 0, g->working > 0);
}

void pools_from_shared(struct pools *pools)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(pools->input->shared, "configList"), i, entry) {
		struct pool *pool = pools_need(
			pools, json_str_or(json_at(entry, "resourcePrefix"), DEFAULT_PREFIX),
			json_str_or(json_at(entry, "resourceName"), ""), "shared", SOURCE, false);
		struct gathering g = {
			.pools = pools, .pool = pool, .selectors = json_at(entry, "selectors")};

		if (!pool)
			continue;
		g.selected = json_array();
		g.nodes = json_array();
		json_put(pool->resource, "selected", g.selected);
		json_put(pool->resource, "nodes", g.nodes);
		/* As upstream: pods may also make the nodes themselves. */
		json_put_str(pool->resource, "permissions", "rwm");
		if (withhold_in_exclusive_mode(&g))
			continue;
		pool->wanted = json_integer_value(json_at(entry, "rdmaHcaMax"));
		for (size_t k = 0; k < pools->n_functions; k++) {
			struct candidate c = candidate_of(pools, &pools->functions[k]);

			if (c.driver)
				add_candidate(&g, &c);
		}
		add_software_devices(&g);
		offer_tokens(&g, pool->wanted);
	}
}
