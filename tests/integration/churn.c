// SPDX-License-Identifier: Apache-2.0
/*
 * churn: a fast user. Makes a number of changes to what users write (SpiderMultusConfigs,
 * SpiderIPPools, policies, labels of nodes) and, by hand, to what the operator made of it
 * (NetworkAttachmentDefinitions), at a chosen pace.
 *
 * Which changes these are follows from the seed alone. Each carries its number in an annotation, so
 * that none of them is without effect: what the API server takes from here, watchers see. An object
 * changes once at a time. What an earlier run has left is taken over; what is left at the end
 * stays.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"
#include "tests/support/connection.h"

static const char help[] =
	"usage: churn [OPTION...]\n"
	"\n"
	"  --changes N        how many changes (1000)\n"
	"  --rate N           changes per second (50); 0: as fast as --concurrency allows\n"
	"  --concurrency N    changes under way (8)\n"
	"  --seed N           which changes (1)\n"
	"  --nodes N          label these, node-00000 and on; 0: none (0)\n"
	"  --configs N        SpiderMultusConfigs at most (40)\n"
	"  --policies N       policies at most (6)\n"
	"  --groups N         labels of nodes that policies select, up to 26 (2)\n"
	"  --pfs N            PFs of a node: ens1f0np0 and on (2)\n"
	"  --only SUBJECT[,…] change nothing else: configs, nads, pools, reserved, policies, "
	"nodes\n"
	"  --kubeconfig FILE  default: $KUBECONFIG\n";

#define CHANGE_MARK "orbweaver.test/change"
#define GROUP_LABEL "orbweaver.test/group"
#define NAD_NAME    "multus.spidernet.io/cr-name"
#define MANAGER     "churn"

enum {
	POOLS = 20,
	RESERVED = 4,
	NODES_MAX = 10000,
	POLICIES_MAX = 1000,
	PFS_MAX = 64,
	GROUPS_MAX = 26,
	CONFIGS_MAX = 10000,
};

enum subject {
	SUBJECT_CONFIG,
	SUBJECT_NAD,
	SUBJECT_POOL,
	SUBJECT_RESERVED, /* each change is one to the verdict on all pools */
	SUBJECT_POLICY,
	SUBJECT_NODE,
	SUBJECTS
};

/* How often each is chosen, in all 100. */
static const struct {
	const char *name;
	int64_t percent;
} subjects[SUBJECTS] = {{"configs", 50}, {"nads", 10},     {"pools", 18},
			{"reserved", 2}, {"policies", 10}, {"nodes", 10}};

struct churn {
	struct connection connection;
	const char *kubeconfig;
	int64_t changes, rate, concurrency, seed;
	int64_t n_nodes, n_configs, n_policies, n_groups, n_pfs;
	bool without[SUBJECTS];
	uint64_t random;
	struct slot {
		struct churn *churn;
		enum subject subject;
		bool exists, busy, renamed;
		bool deleting; /* the change under way takes it away */
	} * slots[SUBJECTS];
	struct kube_resource kinds[SUBJECTS];
	struct timer *pace;
	int64_t made, done, refused, under_way, listing;
	struct err err;
};

/* ---- chance ---------------------------------------------------------------------------------- */

/* xorshift64*: the same everywhere for the same seed. */
static int64_t below(struct churn *c, int64_t bound)
{
	c->random ^= c->random >> 12;
	c->random ^= c->random << 25;
	c->random ^= c->random >> 27;
	return (int64_t)((c->random * 0x2545F4914F6CDD1Dull >> 33) % (uint64_t)bound);
}

/* Of those that may change and exist at all. */
static enum subject some_subject(struct churn *c)
{
	for (;;) {
		int64_t percent = below(c, 100);
		enum subject s = 0;

		while (percent >= subjects[s].percent)
			percent -= subjects[s++].percent;
		if (!c->without[s])
			return s;
	}
}

static int64_t slots_of(const struct churn *c, enum subject subject)
{
	const int64_t slots[SUBJECTS] = {
		[SUBJECT_CONFIG] = c->n_configs,  [SUBJECT_NAD] = c->n_configs,
		[SUBJECT_POOL] = POOLS,           [SUBJECT_RESERVED] = RESERVED,
		[SUBJECT_POLICY] = c->n_policies, [SUBJECT_NODE] = c->n_nodes,
	};

	return slots[subject];
}

/* ---- objects --------------------------------------------------------------------------------- */

static json_t *new_object(const struct churn *c, enum subject subject, int64_t n)
{
	static const char *const names[SUBJECTS] = {"net",      "net",    "pool",
						    "reserved", "policy", "node"};
	json_t *object = json_object();
	json_t *metadata = json_need_object(object, "metadata");

	json_put(object, "apiVersion", kind_api_version(kind_find(c->kinds[subject].plural)));
	json_put_str(object, "kind", c->kinds[subject].kind);
	json_put(metadata, "name",
		 subject == SUBJECT_NODE ? json_fmt("node-%05" PRId64, n)
					 : json_fmt("%s-%02" PRId64, names[subject], n));
	if (c->kinds[subject].namespaced)
		json_put_str(metadata, "namespace", "default");
	/*
	 * No two changes are the same, not even those of two runs: the server would make no new
	 * version of it.
	 */
	json_put(json_need_object(metadata, "annotations"), CHANGE_MARK,
		 json_fmt("%" PRId64 ".%" PRId64, c->seed, c->made));
	return object;
}

static json_t *config_spec(struct churn *c, int64_t n)
{
	static const char *const types[] = {"macvlan", "ipvlan", "sriov"};
	const char *type = types[n % 3];
	json_t *spec = json_pack("{s:s}", "cniType", type);
	json_t *block = json_need_object(spec, type);

	json_put_int(block, "vlanID", below(c, 4095));
	json_put(block, "ippools",
		 json_pack("{s:[o]}", "ipv4", json_fmt("pool-%02" PRId64, n % POOLS)));
	if (n % 3 == 2)
		json_put_str(block, "resourceName", "spidernet.io/churn");
	else
		json_put(block, "master", json_pack("[o]", json_fmt("eth%" PRId64, below(c, 8))));
	return spec;
}

/* Now and then the name of the NetworkAttachmentDefinition changes, and back. */
static void rename_nad(struct churn *c, json_t *object, struct slot *slot, int64_t n)
{
	json_t *annotations = json_at(object, "metadata", "annotations");

	if (below(c, 8) == 0)
		slot->renamed = !slot->renamed;
	if (slot->renamed)
		json_put(annotations, NAD_NAME, json_fmt("net-%02" PRId64 "-renamed", n));
	else if (slot->exists)
		json_object_set_new(annotations, NAD_NAME, json_null());
}

/* Now and then in the subnet of a neighbour, with addresses that it may have too. */
static json_t *pool_spec(struct churn *c, int64_t n)
{
	int64_t net = below(c, 8) ? n : n ^ 1;

	return json_pack("{s:o, s:[o]}", "subnet", json_fmt("10.%" PRId64 ".0.0/16", net), "ips",
			 json_fmt("10.%" PRId64 ".0.1-10.%" PRId64 ".0.%" PRId64, net, net,
				  1 + below(c, 250)));
}

/* Addresses of two pools. */
static json_t *reserved_spec(struct churn *c, int64_t n)
{
	return json_pack("{s:[o,o]}", "ips",
			 json_fmt("10.%" PRId64 ".0.%" PRId64, n, 1 + below(c, 250)),
			 json_fmt("10.%" PRId64 ".0.%" PRId64, n + RESERVED, 1 + below(c, 250)));
}

static json_t *some_group(struct churn *c)
{
	return json_fmt("%c", (int)('a' + below(c, c->n_groups)));
}

/* A PF, or some of its VFs: two policies often want the same. */
static json_t *some_pf(struct churn *c, int64_t num_vfs)
{
	int64_t pf = 1 + below(c, c->n_pfs), first = 0;

	if (below(c, 2))
		return json_fmt("ens%" PRId64 "f0np0", pf);
	first = below(c, num_vfs);
	return json_fmt("ens%" PRId64 "f0np0#%" PRId64 "-%" PRId64, pf, first,
			first + below(c, num_vfs - first));
}

/* All fields each time: a merge patch must not keep what the version before had. */
static json_t *policy_spec(struct churn *c, int64_t n)
{
	int64_t num_vfs = 1 + below(c, 8);
	json_t *spec = json_object(), *pfs = json_array();

	json_put(spec, "resourceName", json_fmt("churn%" PRId64, n));
	json_put_int(spec, "priority", below(c, 100));
	json_put_int(spec, "numVfs", num_vfs);
	json_put_int(spec, "mtu", below(c, 2) ? 9000 : 1500);
	json_put(json_need_object(spec, "nodeSelector"), GROUP_LABEL, some_group(c));
	json_array_append_new(pfs, some_pf(c, num_vfs));
	if (below(c, 2))
		json_array_append_new(pfs, some_pf(c, num_vfs));
	json_put(json_need_object(spec, "nicSelector"), "pfNames", pfs);
	json_put_bool(spec, "isRdma", below(c, 2));
	json_put_bool(spec, "needVhostNet", below(c, 4) == 0);
	json_put_bool(spec, "excludeTopology", below(c, 4) == 0);
	json_put_str(spec, "eSwitchMode", below(c, 4) ? "legacy" : "switchdev");
	return spec;
}

static json_t *nad_spec(struct churn *c)
{
	return json_pack("{s:o}", "config", json_fmt("{\"byHand\":%" PRId64 "}", c->made));
}

static json_t *changed_object(struct churn *c, struct slot *slot, int64_t n)
{
	json_t *object = new_object(c, slot->subject, n);

	switch (slot->subject) {
	case SUBJECT_CONFIG:
		json_put(object, "spec", config_spec(c, n));
		rename_nad(c, object, slot, n);
		break;
	case SUBJECT_NAD:
		json_put(object, "spec", nad_spec(c));
		break;
	case SUBJECT_POOL:
		json_put(object, "spec", pool_spec(c, n));
		break;
	case SUBJECT_RESERVED:
		json_put(object, "spec", reserved_spec(c, n));
		break;
	case SUBJECT_POLICY:
		json_put(object, "spec", policy_spec(c, n));
		break;
	case SUBJECT_NODE:
		json_put(json_need_object(json_at(object, "metadata"), "labels"), GROUP_LABEL,
			 some_group(c));
		break;
	case SUBJECTS:
		break;
	}
	return object;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void go_on(struct churn *c);

/* By hand one may come too late. Nobody else touches what users write. */
static bool may_fail(const struct slot *slot, const struct err *err)
{
	return slot->subject == SUBJECT_NAD && kube_err_is(err, "NotFound");
}

static void on_changed(void *arg, json_t *object, const struct err *err)
{
	struct slot *slot = arg;
	struct churn *c = slot->churn;

	slot->busy = false;
	c->under_way--;
	c->done++;
	if (err && !may_fail(slot, err)) {
		c->err = *err;
		loop_stop(c->connection.loop);
		return;
	}
	c->refused += err != NULL;
	slot->exists = !slot->deleting;
	if (c->done == c->changes)
		loop_stop(c->connection.loop);
	else if (c->rate == 0)
		go_on(c);
}

/* Nodes are others' and only get labels; what the operator made may be there or not. */
static void change(struct churn *c, struct slot *slot, int64_t n)
{
	static const struct kube_write how = {.field_manager = MANAGER};
	const struct kube_resource *kind = &c->kinds[slot->subject];
	json_auto_t *object = changed_object(c, slot, n);
	const char *ns = json_str_at(object, "metadata", "namespace"), *name = json_name(object);
	bool is_ours = slot->subject != SUBJECT_NODE && slot->subject != SUBJECT_NAD;

	slot->busy = true;
	slot->deleting =
		slot->subject != SUBJECT_NODE && (slot->exists || !is_ours) && below(c, 4) == 0;
	c->made++;
	c->under_way++;
	if (slot->deleting) {
		slot->renamed = false;
		kube_delete(c->connection.client, kind, ns, name, NULL, NULL, &how, on_changed,
			    slot);
	} else if (is_ours && !slot->exists) {
		kube_create(c->connection.client, kind, object, &how, on_changed, slot);
	} else {
		kube_patch(c->connection.client, kind, ns, name, KUBE_PATCH_MERGE, object, &how,
			   on_changed, slot);
	}
}

static void change_something(struct churn *c)
{
	for (;;) {
		enum subject subject = some_subject(c);
		int64_t n = below(c, slots_of(c, subject));
		struct slot *slot = &c->slots[subject][n];

		if (!slot->busy) {
			change(c, slot, n);
			return;
		}
	}
}

static void go_on(struct churn *c)
{
	while (c->made < c->changes && c->under_way < c->concurrency) {
		change_something(c);
		if (c->rate)
			break;
	}
	if (c->rate && c->made < c->changes)
		timer_start(c->pace, 1000 / c->rate);
}

static void on_pace(void *arg)
{
	go_on(arg);
}

/* ---- what is there --------------------------------------------------------------------------- */

/* "net-07" is in slot 7. */
static void take_over(struct churn *c, enum subject subject, const json_t *object)
{
	const char *digits = strrchr(json_name(object), '-');
	int64_t n = 0;

	if (!digits || !str_to_int(digits + 1, 0, slots_of(c, subject) - 1, &n))
		return;
	c->slots[subject][n].exists = true;
	c->slots[subject][n].renamed = json_at(object, "metadata", "annotations", NAD_NAME);
}

static void on_listed(void *arg, json_t *list, const struct err *err)
{
	struct slot *slot = arg;
	struct churn *c = slot->churn;
	json_t *object = NULL;
	size_t i = 0;

	if (err) {
		c->err = *err;
		loop_stop(c->connection.loop);
		return;
	}
	json_array_foreach (json_at(list, "items"), i, object)
		take_over(c, slot->subject, object);
	if (--c->listing == 0)
		go_on(c);
}

static void look_around(struct churn *c)
{
	static const enum subject users[] = {SUBJECT_CONFIG, SUBJECT_POOL, SUBJECT_RESERVED,
					     SUBJECT_POLICY};

	c->listing = ARRAY_LEN(users);
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		const struct kube_resource *kind = &c->kinds[users[i]];

		kube_list(c->connection.client, kind, kind->namespaced ? "default" : NULL, NULL,
			  on_listed, c->slots[users[i]]);
	}
}

/* ---- the program ----------------------------------------------------------------------------- */

/* One of those that may change must always be at rest. */
static void bound_concurrency(struct churn *c)
{
	int64_t objects = 0;

	for (enum subject s = 0; s < SUBJECTS; s++)
		objects += c->without[s] ? 0 : slots_of(c, s);
	if (c->concurrency > objects)
		c->concurrency = objects;
}

static void run(struct churn *c)
{
	static const char *const kinds[SUBJECTS] = {KIND_MULTUS_CONFIG, KIND_NAD,    KIND_IP_POOL,
						    KIND_RESERVED_IP,   KIND_POLICY, KIND_NODE};

	for (enum subject s = 0; s < SUBJECTS; s++) {
		int64_t n = slots_of(c, s);

		c->kinds[s] = connection_resource(kinds[s]);
		c->slots[s] = mem_calloc((size_t)(n ? n : 1), sizeof(*c->slots[s]));
		for (int64_t i = 0; i < n; i++)
			c->slots[s][i] = (struct slot){.churn = c, .subject = s};
	}
	c->without[SUBJECT_NODE] |= c->n_nodes == 0;
	bound_concurrency(c);
	c->random = (uint64_t)c->seed * 0x9E3779B97F4A7C15ull + 1;
	c->pace = timer_new(c->connection.loop, on_pace, c);
	look_around(c);
	loop_run(c->connection.loop);
	timer_free(c->pace);
	for (enum subject s = 0; s < SUBJECTS; s++)
		mem_free(c->slots[s]);
}

static const struct option long_options[] = {
	{"changes", required_argument, NULL, 'n'},
	{"rate", required_argument, NULL, 'r'},
	{"concurrency", required_argument, NULL, 'c'},
	{"seed", required_argument, NULL, 's'},
	{"nodes", required_argument, NULL, 'w'},
	{"configs", required_argument, NULL, 'm'},
	{"policies", required_argument, NULL, 'p'},
	{"groups", required_argument, NULL, 'g'},
	{"pfs", required_argument, NULL, 'f'},
	{"only", required_argument, NULL, 'o'},
	{"kubeconfig", required_argument, NULL, 'k'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool set_only(struct churn *c, char *names)
{
	char *name = NULL;

	for (enum subject s = 0; s < SUBJECTS; s++)
		c->without[s] = true;
	while ((name = strsep(&names, ","))) {
		enum subject s = 0;

		while (s < SUBJECTS && !str_eq(subjects[s].name, name))
			s++;
		if (s == SUBJECTS)
			return false;
		c->without[s] = false;
	}
	return true;
}

static bool set_option(struct churn *c, int option)
{
	switch (option) {
	case 'n':
		return str_to_int(optarg, 1, 1000000, &c->changes);
	case 'r':
		return str_to_int(optarg, 0, 1000, &c->rate);
	case 'c':
		/* Fewer than objects, so that there is always one that rests. */
		return str_to_int(optarg, 1, 32, &c->concurrency);
	case 's':
		return str_to_int(optarg, 1, INT32_MAX, &c->seed);
	case 'w':
		return str_to_int(optarg, 0, NODES_MAX, &c->n_nodes);
	case 'm':
		return str_to_int(optarg, 40, CONFIGS_MAX, &c->n_configs);
	case 'p':
		return str_to_int(optarg, 1, POLICIES_MAX, &c->n_policies);
	case 'g':
		return str_to_int(optarg, 1, GROUPS_MAX, &c->n_groups);
	case 'f':
		return str_to_int(optarg, 1, PFS_MAX, &c->n_pfs);
	case 'o':
		return set_only(c, optarg);
	case 'k':
		c->kubeconfig = optarg;
		return true;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	struct churn c = {.changes = 1000,
			  .rate = 50,
			  .concurrency = 8,
			  .seed = 1,
			  .n_configs = 40,
			  .n_policies = 6,
			  .n_groups = 2,
			  .n_pfs = 2};
	int option;

	json_init();
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (!set_option(&c, option)) {
			fprintf(stderr, "churn: %s: bad option or value; see --help\n",
				argv[optind - 1]);
			return 2;
		}
	}
	if (connection_open(&c.connection, c.kubeconfig, &c.err) < 0) {
		fprintf(stderr, "churn: %s\n", c.err.text);
		return 2;
	}
	run(&c);
	connection_close(&c.connection);
	if (c.err.class != ERR_NONE) {
		fprintf(stderr, "churn: after %" PRId64 " changes: %s\n", c.done, c.err.text);
		return 1;
	}
	printf("%" PRId64 " changes, %" PRId64 " of them to what was gone\n", c.done, c.refused);
	return 0;
}
