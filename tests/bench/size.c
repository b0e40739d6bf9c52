// SPDX-License-Identifier: Apache-2.0
/*
 * bench-size: the operator's own work in clusters of growing size, in one process and without an
 * API server: CPU for each event, memory, and how long the loop is held at once.
 *
 *	bench-size [--nodes N] [--pfs N] [--pods N] [--pools N] [--configs N] [--steps N]
 *
 * What the server would send (pages of lists, watch events, answers to writes) is made here and fed
 * through the operator's own decoders and caches (lib/kube/feed), wake rules, worlds and
 * reconcilers; writes are carried out on texts kept outside of the heap, so that what the heap
 * holds is the operator's. HTTP and TLS are not in it.
 *
 * A cluster is brought to rest, left with events that lead to nothing, changed by one policy, has
 * its links reported, loses one of each tenth node, and is listed by a new operator, which must
 * find nothing to write. The largest size is halved --steps
 * times; each runs in a process of its own.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/feed.h"
#include "lib/kube/queue.h"
#include "operator/cache/object_counts.h"
#include "operator/controllers/controllers.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/webhook_setup.h"
#include "operator/writer/applier_patch.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/sriov/node_agent.h"
#include "reconcilers/sriov/pool_config.h"
#include "tests/bench/memory.h"
#include "tests/fakes/node_inventory.h"

#define NAMESPACE "orbweaver-system"
#define NOW       "2026-01-01T00:00:00Z"

enum {
	PAGE = 500,        /* objects in a page of a list */
	CHUNK = 16 * 1024, /* bytes that arrive at once: a TLS record */
	EVENTS = 2000,     /* of each sort that leads to nothing */
	METERS_MAX = 64,
	/* Keys are decided no more often in one phase: what does not come to rest is a bug. */
	ROUNDS_MAX = 20,
	ROOM = 1024, /* what a stored text may grow by in place */
};

/* ---- meters ---------------------------------------------------------------------------------- */

struct meter {
	const char *what;
	uint64_t n, allocations;
	int64_t ns, longest_ns;
};

struct meters {
	struct meter of[METERS_MAX];
	size_t n;
};

/* CPU of this thread: neighbours on the machine do not count. */
static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * Calls of lib/base/mem, from where jansson has its memory, too: the program is linked with
 * --wrap for each.
 */
static uint64_t allocations, allocations_before;

extern void *__real_mem_alloc(size_t size), *__real_mem_zalloc(size_t size);
extern void *__real_mem_calloc(size_t n, size_t size), *__real_mem_realloc(void *ptr, size_t size);
extern void *__real_mem_dup(const void *data, size_t len);
extern void *__wrap_mem_alloc(size_t size), *__wrap_mem_zalloc(size_t size);
extern void *__wrap_mem_calloc(size_t n, size_t size), *__wrap_mem_realloc(void *ptr, size_t size);
extern void *__wrap_mem_dup(const void *data, size_t len);

void *__wrap_mem_alloc(size_t size)
{
	allocations++;
	return __real_mem_alloc(size);
}

void *__wrap_mem_zalloc(size_t size)
{
	allocations++;
	return __real_mem_zalloc(size);
}

void *__wrap_mem_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_mem_calloc(n, size);
}

void *__wrap_mem_realloc(void *ptr, size_t size)
{
	allocations++;
	return __real_mem_realloc(ptr, size);
}

void *__wrap_mem_dup(const void *data, size_t len)
{
	allocations++;
	return __real_mem_dup(data, len);
}

/* What begins here is the operator's; valgrind --collect-atstart=no counts nothing else. */
static int64_t begin(void)
{
	CALLGRIND_TOGGLE_COLLECT;
	allocations_before = allocations;
	return now_ns();
}

static struct meter *meter_of(struct meters *meters, const char *what)
{
	for (size_t i = 0; i < meters->n; i++)
		if (str_eq(meters->of[i].what, what))
			return &meters->of[i];
	if (meters->n == METERS_MAX)
		abort();
	meters->of[meters->n] = (struct meter){.what = what};
	return &meters->of[meters->n++];
}

static void count(struct meters *meters, const char *what, uint64_t n, int64_t since_ns)
{
	int64_t took_ns = now_ns() - since_ns;
	uint64_t allocated = allocations - allocations_before;
	struct meter *meter = NULL;

	CALLGRIND_TOGGLE_COLLECT;
	meter = meter_of(meters, what);
	meter->n += n;
	meter->allocations += allocated;
	meter->ns += took_ns;
	if (took_ns > meter->longest_ns)
		meter->longest_ns = took_ns;
}

/* ---- what the server has --------------------------------------------------------------------- */

/* The objects of one kind, by the number at the end of their names; texts are not in the heap. */
struct shelf {
	const char *kind;
	size_t n;
	struct stored {
		char *text; /* NULL: there is none */
		size_t room;
		int64_t generation_seen; /* by the node's agent */
	} * stored;
};

static void *outside_of_the_heap(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

struct arena {
	char *at;
	size_t left;
};

static void store(struct arena *arena, struct stored *stored, const char *text)
{
	size_t size = strlen(text) + 1;

	if (size > stored->room) {
		stored->room = size + ROOM;
		if (arena->left < stored->room) {
			arena->left = (size_t)64 << 20;
			arena->at = outside_of_the_heap(arena->left);
		}
		stored->text = arena->at;
		arena->at += stored->room;
		arena->left -= stored->room;
	}
	memcpy(stored->text, text, size);
}

/* ---- a cluster ------------------------------------------------------------------------------- */

struct shape {
	int64_t nodes, pods, pools, configs, pfs;
};

struct cluster {
	struct shape shape;
	struct inventory_shape inventory;
	struct meters meters;
	struct arena arena;
	struct shelf shelves[11];
	size_t n_shelves;
	int64_t version;
	/* The operator. */
	struct loop *loop;
	struct mirror *mirror;
	struct feed *feeds; /* as operator_kinds */
	struct object_counts *counts;
	struct controller_sources sources;
	struct webhook_settings webhook;
	struct queue *queues[CONTROLLER_COUNT];
	uint64_t writes;
};

static struct shelf *shelf_of(struct cluster *c, const char *kind)
{
	for (size_t i = 0; i < c->n_shelves; i++)
		if (str_eq(c->shelves[i].kind, kind))
			return &c->shelves[i];
	return NULL;
}

static struct stored *stored_of(struct cluster *c, const char *kind, const char *key)
{
	struct shelf *shelf = shelf_of(c, kind);
	size_t digits = strlen(key), number = 0;

	while (digits > 0 && key[digits - 1] >= '0' && key[digits - 1] <= '9')
		digits--;
	number = strtoul(key + digits, NULL, 10);
	if (!shelf || number >= shelf->n) {
		fprintf(stderr, "bench-size: no room for %s %s\n", kind, key);
		exit(1);
	}
	return &shelf->stored[number];
}

static void add_shelf(struct cluster *c, const char *kind, int64_t n)
{
	struct shelf *shelf = &c->shelves[c->n_shelves++];

	*shelf = (struct shelf){.kind = kind, .n = (size_t)n};
	shelf->stored = outside_of_the_heap((size_t)(n + 1) * sizeof(*shelf->stored));
}

/* As the server keeps it: with a new version, and who wrote what. Borrows object. */
static void put(struct cluster *c, const char *kind, const char *key, json_t *object)
{
	json_t *metadata = json_need_object(object, "metadata");
	auto_free char *text = NULL;

	json_put(metadata, "resourceVersion", json_fmt("%" PRId64, ++c->version));
	if (!json_at(metadata, "uid"))
		json_put(metadata, "uid",
			 json_fmt("00000000-0000-4000-8000-%012" PRId64, c->version));
	if (!json_at(metadata, "creationTimestamp"))
		json_put_str(metadata, "creationTimestamp", NOW);
	text = json_text(object);
	store(&c->arena, stored_of(c, kind, key), text);
}

/* ---- objects --------------------------------------------------------------------------------- */

#define MANAGED                                                                                    \
	"\"managedFields\":[{\"manager\":\"kubectl\",\"operation\":\"Update\",\"apiVersion\":"     \
	"\"v1\","                                                                                  \
	"\"time\":\"" NOW                                                                          \
	"\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{"              \
	"\".\":{},\"f:app\":{}},\"f:annotations\":{\".\":{},\"f:a\":{}}},\"f:spec\":{\"f:a\":{},"  \
	"\"f:b\":{\"f:c\":{},\"f:d\":{}}},\"f:status\":{\"f:conditions\":{},\"f:phase\":{}}}}]"

#define CONDITION(type)                                                                            \
	"{\"type\":\"" type                                                                        \
	"\",\"status\":\"True\",\"lastHeartbeatTime\":\"2026-01-01T00:00:%02dZ\","                 \
	"\"lastTransitionTime\":\"" NOW "\",\"reason\":\"KubeletHasSufficient" type                \
	"\",\"message\":"                                                                          \
	"\"kubelet has sufficient " type " available\"}"

#define IMAGE                                                                                      \
	"{\"names\":[\"registry.example/team/application@sha256:0123456789abcdef0123456789abcdef"  \
	"0123456789abcdef0123456789abcdef\",\"registry.example/team/application:v1.2.3\"],"        \
	"\"sizeBytes\":123456789}"
#define IMAGES IMAGE "," IMAGE "," IMAGE "," IMAGE "," IMAGE

static json_t *parsed(struct strbuf *text)
{
	struct err err = {0};
	json_t *object = json_parse(strbuf_str(text), text->len, &err);

	if (!object) {
		fprintf(stderr, "bench-size: %s: %s\n", err.text, strbuf_str(text));
		exit(1);
	}
	strbuf_done(text);
	return object;
}

static json_t *node_object(const struct cluster *c, int64_t n, int second)
{
	struct strbuf text = {0};

	strbuf_addf(
		&text,
		"{\"metadata\":{\"name\":\"node-%06" PRId64 "\",\"uid\":"
		"\"11111111-0000-4000-8000-%012" PRId64 "\",\"labels\":{"
		"\"kubernetes.io/os\":\"linux\",\"kubernetes.io/arch\":\"amd64\","
		"\"kubernetes.io/hostname\":\"node-%06" PRId64 "\","
		"\"topology.kubernetes.io/region\":\"r1\",\"topology.kubernetes.io/zone\":\"z%d\","
		"\"node.kubernetes.io/instance-type\":\"gpu.8x\"},\"annotations\":{"
		"\"node.alpha.kubernetes.io/ttl\":\"0\","
		"\"volumes.kubernetes.io/controller-managed-attach-detach\":\"true\"}," MANAGED
		"},",
		n, n, n, (int)(n % 3));
	strbuf_addf(&text,
		    "\"spec\":{\"podCIDR\":\"10.%d.%d.0/24\",\"providerID\":\"x://%" PRId64 "\"},"
		    "\"status\":{\"capacity\":{\"cpu\":\"128\",\"memory\":\"2113412Ki\",\"pods\":"
		    "\"110\","
		    "\"ephemeral-storage\":\"936398358Ki\",\"spidernet.io/rdma\":\"16\"},"
		    "\"allocatable\":{\"cpu\":\"128\",\"memory\":\"2113412Ki\",\"pods\":\"110\","
		    "\"ephemeral-storage\":\"936398358Ki\",\"spidernet.io/rdma\":\"16\"},"
		    "\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.1.1.1\"},{\"type\":"
		    "\"Hostname\",\"address\":\"node\"}],"
		    "\"conditions\":[" CONDITION("Memory") "," CONDITION("Disk") ",",
		    (int)(n / 256 % 256), (int)(n % 256), n, second, second);
	strbuf_addf(&text,
		    CONDITION("PID") "," CONDITION(
			    "Ready") "],"
				     "\"nodeInfo\":{\"machineID\":\"0123456789abcdef\","
				     "\"kernelVersion\":\"6.1.0\","
				     "\"osImage\":\"Debian\",\"kubeletVersion\":\"v1.30.0\"},"
				     "\"images\":[" IMAGES "]}}",
		    second, second);
	return parsed(&text);
}

/* second: 0 while it waits for its network. */
static json_t *pod_object(const struct cluster *c, int64_t n, int second)
{
	struct strbuf text = {0};

	strbuf_addf(
		&text,
		"{\"metadata\":{\"name\":\"pod-%06" PRId64 "\",\"namespace\":\"bench\",\"uid\":"
		"\"22222222-0000-4000-8000-%012" PRId64 "\",\"labels\":{\"app\":\"train\","
		"\"pod-template-hash\":\"5d4f8c7b9\"},\"annotations\":{"
		"\"k8s.v1.cni.cncf.io/networks\":\"bench/net-%06" PRId64 "\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
		"\"train-5d4f8c7b9\",\"uid\":\"33333333-0000-4000-8000-000000000000\","
		"\"controller\":true,\"blockOwnerDeletion\":true}]," MANAGED "},",
		n, n, n % c->shape.pools);
	strbuf_addf(
		&text,
		"\"spec\":{\"nodeName\":\"node-%06" PRId64 "\",\"restartPolicy\":\"Always\","
		"\"volumes\":[{\"name\":\"token\",\"projected\":{\"sources\":[{"
		"\"serviceAccountToken\":{\"path\":\"token\",\"expirationSeconds\":3607}}]}}],"
		"\"containers\":[{\"name\":\"c\",\"image\":\"registry.example/team/"
		"application:v1\","
		"\"env\":[{\"name\":\"A\",\"value\":\"b\"}],\"resources\":{\"limits\":{"
		"\"spidernet.io/rdma\":\"1\"}},\"volumeMounts\":[{\"name\":\"token\",\"readOnly\":"
		"true,\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}]}],"
		"\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}]"
		"},"
		"\"status\":{\"phase\":\"%s\",\"podIP\":\"%s\",\"conditions\":"
		"[" CONDITION("Initialized") "," CONDITION(
			"Ready") "],\"containerStatuses\":[{"
				 "\"name\":\"c\",\"ready\":true,\"restartCount\":0,\"image\":\"i\","
				 "\"imageID\":\"i\"}]}}",
		n % c->shape.nodes, second ? "Running" : "Pending", second ? "10.2.2.2" : "",
		second, second);
	return parsed(&text);
}

static json_t *pool_object(const struct cluster *c, int64_t n)
{
	int64_t share = (c->shape.pods + c->shape.pools - 1) / c->shape.pools;
	struct strbuf text = {0};

	/* /22 networks from 10.0.0.0 on: room for 16,384 of them. */
	strbuf_addf(
		&text,
		"{\"metadata\":{\"name\":\"pool-%06" PRId64 "\",\"generation\":1," MANAGED
		"},\"spec\":{"
		"\"ipVersion\":4,\"subnet\":\"10.%d.%d.0/22\",\"gateway\":\"10.%d.%d.1\",\"ips\":["
		"\"10.%d.%d.2-10.%d.%d.%d\"]}}",
		n, (int)(n / 64), (int)(n % 64 * 4), (int)(n / 64), (int)(n % 64 * 4),
		(int)(n / 64), (int)(n % 64 * 4), (int)(n / 64),
		(int)(n % 64 * 4 + (share + 1) / 256), (int)((share + 1) % 256));
	return parsed(&text);
}

/* The network of a pool, which nobody's config made. */
static json_t *network_object(const struct cluster *c, int64_t n)
{
	struct strbuf text = {0};

	strbuf_addf(
		&text,
		"{\"metadata\":{\"name\":\"net-%06" PRId64 "\",\"namespace\":\"bench\"," MANAGED
		"},"
		"\"spec\":{\"config\":\"{\\\"cniVersion\\\":\\\"1.0.0\\\",\\\"name\\\":\\\"net\\\","
		"\\\"type\\\":\\\"macvlan\\\",\\\"ipam\\\":{\\\"type\\\":\\\"spiderpool\\\","
		"\\\"default_ipv4_ippool\\\":[\\\"pool-%06" PRId64 "\\\"]}}\"}}",
		n, n);
	return parsed(&text);
}

static json_t *config_object(const struct cluster *c, int64_t n)
{
	struct strbuf text = {0};

	strbuf_addf(&text,
		    "{\"metadata\":{\"name\":\"net-%06" PRId64 "\",\"namespace\":\"bench\","
		    "\"generation\":1," MANAGED "},\"spec\":{\"cniType\":\"macvlan\",\"macvlan\":{"
		    "\"master\":[\"ens%" PRId64 "f0np0\"],\"ippools\":{\"ipv4\":[\"pool-%06" PRId64
		    "\"]}}}}",
		    c->shape.pools + n, n % 8, n % c->shape.pools);
	return parsed(&text);
}

static json_t *policy_object(const struct cluster *c, const char *resource)
{
	struct strbuf text = {0};

	strbuf_addf(&text,
		    "{\"metadata\":{\"name\":\"policy-0\",\"namespace\":\"" NAMESPACE
		    "\",\"generation\":1},"
		    "\"spec\":{\"nodeSelector\":{\"kubernetes.io/"
		    "os\":\"linux\"},\"resourceName\":\"%s\","
		    "\"numVfs\":8,\"nicSelector\":{\"vendor\":\"15b3\",\"deviceID\":\"1017\"},"
		    "\"deviceType\":\"netdevice\",\"isRdma\":true}}",
		    resource);
	return parsed(&text);
}

static json_t *namespace_object(const struct cluster *c, int64_t n)
{
	return json_pack("{s:{s:s, s:s}}", "metadata", "name", n ? "bench" : NAMESPACE, "uid",
			 n ? "n1" : "n0");
}

/* ---- the wire -------------------------------------------------------------------------------- */

static struct feed *feed_for(struct cluster *c, const char *kind)
{
	return &c->feeds[operator_kind_find(kind) - operator_kinds];
}

/* Returns how many pieces it took. */
static void receive(struct cluster *c, struct feed *feed, const char *what, const char *text,
		    size_t len, uint64_t objects)
{
	struct err err = {0};

	for (size_t at = 0; at < len; at += CHUNK) {
		size_t n = len - at < CHUNK ? len - at : CHUNK;
		int64_t started_ns = begin();

		if (feed_bytes(feed, text + at, n, &err) < 0) {
			fprintf(stderr, "bench-size: %s\n", err.text);
			exit(1);
		}
		count(&c->meters, what, at == 0 ? objects : 0, started_ns);
	}
}

static void add_item(struct strbuf *page, size_t n, const char *text)
{
	strbuf_adds(page, n ? "," : "");
	strbuf_adds(page, text);
}

static void end_page(struct cluster *c, struct feed *feed, const char *what, struct strbuf *page,
		     size_t n, bool last)
{
	struct err err = {0};

	strbuf_addf(page, "],\"metadata\":{\"resourceVersion\":\"%" PRId64 "\"%s}}", c->version,
		    last ? "" : ",\"continue\":\"more\"");
	receive(c, feed, what, strbuf_str(page), page->len, n);
	if (feed_close(feed, &err) < 0) {
		fprintf(stderr, "bench-size: %s\n", err.text);
		exit(1);
	}
	strbuf_done(page);
}

/* All objects of a kind, page by page. */
static void list(struct cluster *c, const char *kind, const char *what)
{
	struct feed *feed = feed_for(c, kind);
	const struct shelf *shelf = shelf_of(c, kind);
	struct strbuf page = {0};
	size_t n = 0;

	feed_list(feed, false);
	feed_open(feed);
	strbuf_adds(&page, "{\"items\":[");
	for (size_t i = 0; shelf && i < shelf->n; i++) {
		if (!shelf->stored[i].text)
			continue;
		add_item(&page, n++, shelf->stored[i].text);
		if (n < PAGE)
			continue;
		end_page(c, feed, what, &page, n, false);
		feed_open(feed);
		strbuf_adds(&page, "{\"items\":[");
		n = 0;
	}
	end_page(c, feed, what, &page, n, true);
	feed_open(feed); /* the watch */
}

static void event(struct cluster *c, const char *kind, const char *what, const char *type,
		  const char *object)
{
	auto_free char *text = str_printf("{\"type\":\"%s\",\"object\":%s}\n", type, object);

	receive(c, feed_for(c, kind), what, text, strlen(text), 1);
}

/* The server has another version of an object, and says so. Takes object. */
static void changes(struct cluster *c, const char *kind, const char *key, const char *what,
		    json_t *object)
{
	struct stored *stored = stored_of(c, kind, key);
	bool is_new = !stored->text;

	put(c, kind, key, object);
	json_decref(object);
	event(c, kind, what, is_new ? "ADDED" : "MODIFIED", stored->text);
}

/* ---- the operator ---------------------------------------------------------------------------- */

static void wake(void *arg, enum controller_id id, const char *key, enum queue_lane lane)
{
	struct cluster *c = arg;

	queue_add(c->queues[id], key, QUEUE_MAIN);
}

static void on_changed(void *arg, const char *kind, const char *key, const json_t *old,
		       const json_t *now)
{
	struct cluster *c = arg;

	object_counts_update(c->counts, kind, old, now);
	controllers_map(&c->sources, kind, key, old, now);
}

static void on_synced(void *arg, const char *kind)
{
}

static void on_trouble(void *arg, const char *kind, const struct err *err)
{
}

static void on_complete(void *arg)
{
}

static void operator_open(struct cluster *c)
{
	size_t n = 0;

	c->loop = loop_new();
	c->counts = object_counts_new();
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		c->queues[i] = queue_new(c->loop, on_complete, c);
	c->sources = (struct controller_sources){
		.wake = wake,
		.wake_arg = c,
		.now_ms = clock_ms,
		.ns = NAMESPACE,
		.resource_prefix = "spidernet.io",
		.config_ns = NAMESPACE,
		.webhook = &c->webhook,
	};
	controller_sources_init(&c->sources, NULL);
	c->mirror = mirror_new(NULL, NULL,
			       &(struct mirror_config){
				       .ns = NAMESPACE,
				       .config_ns = NAMESPACE,
				       .changed = on_changed,
				       .synced = on_synced,
				       .trouble = on_trouble,
				       .arg = c,
			       });
	c->sources.mirror = c->mirror;
	while (operator_kinds[n].kind)
		n++;
	c->feeds = mem_calloc(n, sizeof(*c->feeds));
	for (size_t i = 0; i < n; i++)
		c->feeds[i] = (struct feed){
			.resource = operator_kinds[i].kind,
			.cache = mirror_cache(c->mirror, operator_kinds[i].kind),
			.drops = operator_kinds[i].drops,
			.n_drops = operator_kinds[i].n_drops,
			.understood = on_complete,
			.complete = on_complete,
		};
}

static void operator_close(struct cluster *c)
{
	for (size_t i = 0; operator_kinds[i].kind; i++)
		feed_done(&c->feeds[i]);
	mem_free(c->feeds);
	mirror_free(c->mirror);
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		queue_free(c->queues[i]);
	controller_sources_done(&c->sources);
	object_counts_free(c->counts);
	loop_free(c->loop);
}

/* ---- writes ---------------------------------------------------------------------------------- */

/* The body that the applier would send, new; NULL: the object is so already. */
static json_t *body_of(const json_t *op, const json_t *present)
{
	const char *what = json_str_or(json_at(op, "op"), "");
	json_t *status = json_at(op, "status"), *metadata = json_at(op, "metadata");

	if (str_eq(what, "apply"))
		return present ? applier_patch(present, json_at(op, "object"))
			       : json_incref(json_at(op, "object"));
	if (!present)
		return NULL;
	if (str_eq(what, "status"))
		return json_same(json_at(present, "status"), status)
			       ? NULL
			       : json_pack("{s:O}", "status", status);
	if (str_eq(what, "status-part"))
		return json_merge_changes(json_at(present, "status"), status)
			       ? json_pack("{s:O}", "status", status)
			       : NULL;
	if (str_eq(what, "meta"))
		return status || json_merge_changes(json_at(present, "metadata"), metadata)
			       ? json_pack("{s:O, s:O*}", "metadata", metadata, "status", status)
			       : NULL;
	if (str_eq(what, "cordon"))
		return json_pack("{s:O, s:O}", "metadata", metadata, "spec", json_at(op, "spec"));
	return NULL;
}

/* What the server does with it. Returns the text of the answer. */
static const char *serve(struct cluster *c, const char *kind, const char *key, const json_t *op,
			 const char *body, size_t len)
{
	struct stored *stored = stored_of(c, kind, key);
	bool is_new = !stored->text;
	json_auto_t *patch = json_parse(body, len, NULL);
	json_auto_t *object = is_new ? json_deep_copy(patch)
				     : json_parse(stored->text, strlen(stored->text), NULL);
	json_t *metadata = json_need_object(object, "metadata");
	bool is_spec = str_eq(json_str_at(op, "op"), "apply");

	if (str_eq(json_str_at(op, "op"), "status")) {
		json_put(object, "status", json_incref(json_at(patch, "status")));
	} else if (!is_new) {
		if (str_eq(json_str_at(op, "op"), "meta")) {
			plan_put_condition(object, op);
			(void)json_object_del(patch, "status");
		}
		json_merge_patch(object, patch);
	}
	if (is_spec)
		json_put_int(metadata, "generation", json_generation(object) + 1);
	if (is_spec)
		json_put(metadata, "managedFields",
			 json_pack("[{s:s, s:s, s:s, s:s, s:{s:{s:{}, s:{}}}}]", "manager",
				   OPERATOR_NAME, "operation", "Update", "time", NOW, "fieldsType",
				   "FieldsV1", "fieldsV1", "f:spec", "f:interfaces", "f:system"));
	put(c, kind, key, object);
	return stored->text;
}

static const char *const write_names[CONTROLLER_COUNT] = {
	[CONTROLLER_MULTUS_CONFIG] = "writes for a SpiderMultusConfig, each",
	[CONTROLLER_IP_POOL] = "writes for a SpiderIPPool, each",
	[CONTROLLER_NODE_STATE] = "writes for a node, each",
	[CONTROLLER_ADDRESSES] = "writes of ledgers, each",
	[CONTROLLER_ENDPOINT] = "writes of SpiderEndpoints, each",
};

/* One operation of a plan; everything but the server's part of it is counted. */
static void carry_out(struct cluster *c, enum controller_id id, const json_t *op)
{
	const char *what = write_names[id] ? write_names[id] : "other writes, each";
	const char *kind = json_str_or(json_at(op, "kind"), "");
	const char *key = json_str_or(json_at(op, "key"), "");
	struct cache *cache = mirror_cache(c->mirror, kind);
	int64_t started_ns = begin();
	json_auto_t *present = cache ? cache_get(cache, key) : NULL;
	json_auto_t *body = NULL, *answer = NULL;
	auto_strbuf struct strbuf sent = {0};
	const char *text = NULL;
	bool is_new = !present;

	(void)controllers_remember(&c->sources, id, op, present, UINT64_MAX);
	body = body_of(op, present);
	if (body)
		json_write(body, &sent);
	count(&c->meters, what, 0, started_ns);
	if (!body)
		return;
	c->writes++;
	text = serve(c, kind, key, op, sent.data, sent.len);
	started_ns = begin();
	answer = json_parse(text, strlen(text), NULL);
	cache_learn(cache, json_incref(answer));
	count(&c->meters, what, 0, started_ns);
	meter_of(&c->meters, what)->n++;
	event(c, kind, "event: echo of our own write", is_new ? "ADDED" : "MODIFIED", text);
}

/* ---- decisions ------------------------------------------------------------------------------- */

static void decide(struct cluster *c, enum controller_id id, const char *key)
{
	const struct controller *controller = &controllers[id];
	auto_plan struct plan plan = {0};
	struct err err = {0};
	int64_t started_ns = begin();
	json_t *world = json_object();
	const json_t *op = NULL;
	size_t i = 0;

	gather_env(&c->sources, world);
	controllers_gather(&c->sources, id, key, world);
	if (controller->reconcile(world, key, &plan, &err) < 0) {
		fprintf(stderr, "bench-size: %s %s: %s\n", controller->name, key, err.text);
		exit(1);
	}
	json_decref(world);
	count(&c->meters, controller->name, 1, started_ns);
	json_array_foreach (plan.ops, i, op) {
		/* Looks at the API server and time are for others to measure. */
		if (str_eq(json_str_at(op, "box"), BOX_LOOK))
			continue;
		if (str_eq(json_str_at(op, "op"), "requeue")) {
			if (json_integer_value(json_at(op, "after_ms")) == 0)
				queue_add(c->queues[id], key, QUEUE_MAIN);
			continue;
		}
		carry_out(c, id, op);
	}
}

/* One key of a controller; false when none waits. */
static bool decide_one(struct cluster *c, enum controller_id id)
{
	auto_free char *key = NULL;

	if (queue_waiting(c->queues[id], QUEUE_MAIN) == 0)
		return false;
	key = str_dup(queue_take_from(c->queues[id], QUEUE_MAIN));
	decide(c, id, key);
	queue_done(c->queues[id], key, NULL);
	return true;
}

static bool decide_some(struct cluster *c, bool summaries)
{
	bool any = false;

	/* Those of pools come before the pass that they wake, which waits for more (every_ms). */
	for (enum controller_id id = CONTROLLER_COUNT; id-- > 0;) {
		if ((controllers[id].every_ms > 0) != summaries)
			continue;
		while (decide_one(c, id)) {
			any = true;
			if (summaries)
				return true;
		}
	}
	return any;
}

static void decide_all(struct cluster *c)
{
	while (decide_some(c, false) || decide_some(c, true))
		;
}

/* Agents answer to specs that they have not seen; false when there is none. */
static bool agents_answer(struct cluster *c)
{
	struct shelf *shelf = shelf_of(c, KIND_NODE_STATE);
	bool any = false;

	for (size_t i = 0; i < shelf->n; i++) {
		struct stored *stored = &shelf->stored[i];
		json_auto_t *state =
			stored->text ? json_parse(stored->text, strlen(stored->text), NULL) : NULL;
		json_auto_t *inventory = NULL;
		auto_free char *key = NULL;

		if (!state || json_generation(state) == stored->generation_seen)
			continue;
		any = true;
		stored->generation_seen = json_generation(state);
		inventory = inventory_generate(&c->inventory, (int64_t)i);
		json_put(state, "status", inventory_status(inventory, state, true, NOW));
		key = json_key(state);
		changes(c, KIND_NODE_STATE, key, "event: an agent's report", take_ptr(state));
	}
	return any;
}

static void come_to_rest(struct cluster *c)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		decide_all(c);
		if (!agents_answer(c))
			return;
	}
	fprintf(stderr, "bench-size: it does not come to rest\n");
	exit(1);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void fill(struct cluster *c)
{
	json_auto_t *policy = policy_object(c, "first");
	json_auto_t *pool_config = json_pack(
		"{s:{s:s, s:s, s:{s:s}}, s:{s:{}}}", "metadata", "name", "pool-0", "namespace",
		NAMESPACE, "annotations", POOL_TAINT_DEGRADED, "10%", "spec", "nodeSelector");

	for (int64_t i = 0; i < 2; i++) {
		json_auto_t *ns = namespace_object(c, i);
		auto_free char *key = str_printf("%" PRId64, i);

		put(c, KIND_NAMESPACE, key, ns);
	}
	put(c, KIND_POLICY, "0", policy);
	put(c, KIND_POOL_CONFIG, "0", pool_config);
	for (int64_t i = 0; i < c->shape.nodes; i++) {
		json_auto_t *object = node_object(c, i, 0);

		put(c, KIND_NODE, json_name(object), object);
	}
	for (int64_t i = 0; i < c->shape.pools; i++) {
		json_auto_t *pool = pool_object(c, i), *network = network_object(c, i);

		put(c, KIND_IP_POOL, json_name(pool), pool);
		put(c, KIND_NAD, json_name(network), network);
	}
	for (int64_t i = 0; i < c->shape.configs; i++) {
		json_auto_t *object = config_object(c, i);

		put(c, KIND_MULTUS_CONFIG, json_name(object), object);
	}
	for (int64_t i = 0; i < c->shape.pods; i++) {
		json_auto_t *object = pod_object(c, i, 0);

		put(c, KIND_BOUND_POD, json_name(object), object);
	}
}

static void list_all(struct cluster *c)
{
	static const struct {
		const char *kind, *what;
	} listed[] = {
		{KIND_NAMESPACE, "listed: others"},
		{KIND_POLICY, "listed: others"},
		{KIND_POOL_CONFIG, "listed: others"},
		{KIND_IP_POOL, "listed: SpiderIPPool"},
		{KIND_NAD, "listed: NetworkAttachmentDefinition"},
		{KIND_MULTUS_CONFIG, "listed: SpiderMultusConfig"},
		{KIND_NODE, "listed: Node"},
		{KIND_NODE_STATE, "listed: NodeState"},
		{KIND_ENDPOINT, "listed: SpiderEndpoint"},
		{KIND_BOUND_POD, "listed: Pod"},
	};

	for (size_t i = 0; i < ARRAY_LEN(listed); i++)
		list(c, listed[i].kind, listed[i].what);
}

static void quiet_events(struct cluster *c)
{
	for (int64_t i = 0; i < EVENTS; i++) {
		json_t *node = node_object(c, i % c->shape.nodes, (int)(i % 60) + 1);
		json_t *pod = pod_object(c, i % c->shape.pods, (int)(i % 60) + 1);
		auto_free char *node_key = str_dup(json_name(node));
		auto_free char *pod_key = str_dup(json_name(pod));

		changes(c, KIND_NODE, node_key, "event: a node's heartbeat", node);
		changes(c, KIND_BOUND_POD, pod_key, "event: a pod's status", pod);
	}
}

/* Each port is a rail. With `bad` agents report the rail 3 of each tenth node as lost, else all. */
static void report_links(struct cluster *c, bool bad)
{
	for (int64_t i = 0; i < c->shape.nodes; i += bad ? 10 : 1) {
		struct stored *stored = &shelf_of(c, KIND_NODE_STATE)->stored[i];
		json_t *state = json_parse(stored->text, strlen(stored->text), NULL), *nic;
		json_t *ports = json_array(), *rails = json_array();
		auto_free char *key = json_key(state);
		size_t k;

		json_array_foreach (json_at(state, "status", "interfaces"), k, nic) {
			const char *name = json_str_or(json_at(nic, "name"), "");
			const char *address = json_str_or(json_at(nic, "pciAddress"), "");
			bool is_bad = bad && k == 3;

			json_array_append_new(rails, json_pack("{s:i, s:s}", "rail", (int)k,
							       "pciAddress", address));
			json_array_append_new(
				ports,
				json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:i, s:i, s:[]}",
					  "pciAddress", address, "name", name, "verdict",
					  is_bad ? "failed" : "healthy", "reason",
					  is_bad ? "LinkDown" : "LinkHealthy", "message",
					  json_fmt("%s has %s link", name, is_bad ? "no" : "a"),
					  "since", NOW, "flaps", 0, "carrierChanges", 2,
					  "changes"));
		}
		json_put(json_at(state, "status"), "rails", json_pack("{s:o}", "list", rails));
		json_put(json_at(state, "status"), "linkHealth",
			 json_pack("{s:s, s:o}", "bootID", "b", "ports", ports));
		changes(c, KIND_NODE_STATE, key,
			bad ? "event: a link is lost" : "event: links are reported", state);
	}
}

/* What is stored outside of the heap is shared memory, and does not count. */
static double mb_in_use(void)
{
	mem_trim();
	return (double)memory_kb(getpid(), "RssAnon") / 1e3;
}

static void cluster_open(struct cluster *c, const struct shape *shape)
{
	*c = (struct cluster){.shape = *shape};
	c->inventory = (struct inventory_shape){"node-", shape->nodes, shape->pfs, 8};
	add_shelf(c, KIND_NAMESPACE, 2);
	add_shelf(c, KIND_POLICY, 1);
	add_shelf(c, KIND_POOL_CONFIG, 1);
	add_shelf(c, KIND_NODE, shape->nodes);
	add_shelf(c, KIND_NODE_STATE, shape->nodes);
	add_shelf(c, KIND_IP_POOL, shape->pools);
	add_shelf(c, KIND_NAD, shape->pools + shape->configs);
	add_shelf(c, KIND_MULTUS_CONFIG, shape->pools + shape->configs);
	add_shelf(c, KIND_BOUND_POD, shape->pods);
	add_shelf(c, KIND_ENDPOINT, shape->pods);
	fill(c);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void print(const struct cluster *c, const char *phase)
{
	for (size_t i = 0; i < c->meters.n; i++) {
		const struct meter *m = &c->meters.of[i];

		if (m->n > 0)
			printf("%" PRId64 "|%s|%s|%" PRIu64 "|%.1f|%.2f|%.0f\n", c->shape.nodes,
			       phase, m->what, m->n, (double)m->ns / 1e3 / (double)m->n,
			       (double)m->longest_ns / 1e6, (double)m->allocations / (double)m->n);
	}
}

static void begin_phase(struct cluster *c)
{
	c->meters = (struct meters){0};
	c->writes = 0;
}

static void end_phase(const struct cluster *c, const char *phase, double mb_before)
{
	print(c, phase);
	printf("%" PRId64 "|%s|memory in use, MB|%" PRIu64 "|%.1f||\n", c->shape.nodes, phase,
	       (uint64_t)1, mb_in_use() - mb_before);
	fflush(stdout);
}

static int run(const struct shape *shape)
{
	struct cluster c;
	double mb_before = 0;
	json_t *policy = NULL;

	cluster_open(&c, shape);
	mb_before = mb_in_use();
	operator_open(&c);
	begin_phase(&c);
	list_all(&c);
	come_to_rest(&c);
	end_phase(&c, "new", mb_before);
	begin_phase(&c);
	quiet_events(&c);
	decide_all(&c);
	end_phase(&c, "quiet", mb_before);
	begin_phase(&c);
	policy = policy_object(&c, "second");
	changes(&c, KIND_POLICY, "0", "event: a policy changes", policy);
	come_to_rest(&c);
	end_phase(&c, "policy", mb_before);
	for (int i = 0; i < 2; i++) {
		begin_phase(&c);
		report_links(&c, i > 0);
		come_to_rest(&c);
		end_phase(&c, i > 0 ? "lost" : "links", mb_before);
	}
	operator_close(&c);
	operator_open(&c);
	begin_phase(&c);
	list_all(&c);
	come_to_rest(&c);
	end_phase(&c, "again", mb_before);
	printf("%" PRId64 "|again|writes|%" PRIu64 "|0||\n", shape->nodes, c.writes);
	operator_close(&c);
	return c.writes == 0 ? 0 : 1;
}

static const char help[] =
	"usage: bench-size [OPTION...]\n"
	"\n"
	"  --nodes N    nodes, each with a NodeState (65000)\n"
	"  --pfs N      PFs of each, with 8 VFs (2)\n"
	"  --pods N     pods with one address each (100000)\n"
	"  --pools N    SpiderIPPools, and a network for each (10000; 16384 at most)\n"
	"  --configs N  SpiderMultusConfigs (5000)\n"
	"  --steps N    run with half of all that first, and so on (2)\n"
	"\n"
	"Prints nodes|phase|what|how many|CPU for each in us, or MB|the longest at once in ms|"
	"allocations for each\n";

static const struct option long_options[] = {
	{"nodes", required_argument, NULL, 'n'},   {"pfs", required_argument, NULL, 'f'},
	{"pods", required_argument, NULL, 'p'},    {"pools", required_argument, NULL, 'l'},
	{"configs", required_argument, NULL, 'c'}, {"steps", required_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},          {0},
};

static int run_apart(const struct shape *shape)
{
	int status = 0;
	pid_t child = 0;

	fflush(stdout);
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0)
		exit(run(shape));
	if (waitpid(child, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	struct shape shape = {65000, 100000, 10000, 5000, 2};
	int64_t steps = 2;
	bool good = true;
	int option = 0, failed = 0;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case 'n':
			good = good && str_to_int(optarg, 1, 100000, &shape.nodes);
			break;
		case 'f':
			good = good && str_to_int(optarg, 1, INVENTORY_MAX_PFS, &shape.pfs);
			break;
		case 'p':
			good = good && str_to_int(optarg, 1, 1000000, &shape.pods);
			break;
		case 'l':
			good = good && str_to_int(optarg, 1, 16384, &shape.pools);
			break;
		case 'c':
			good = good && str_to_int(optarg, 1, 100000, &shape.configs);
			break;
		case 's':
			good = good && str_to_int(optarg, 0, 6, &steps);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			good = false;
		}
	}
	if (!good) {
		fputs(help, stderr);
		return 2;
	}
	mem_tune();
	json_init();
	for (int64_t i = steps; i >= 0 && !failed; i--)
		failed = run_apart(&(struct shape){
			(shape.nodes >> i) + !(shape.nodes >> i),
			(shape.pods >> i) + !(shape.pods >> i),
			(shape.pools >> i) + !(shape.pools >> i),
			(shape.configs >> i) + !(shape.configs >> i),
			shape.pfs,
		});
	return failed;
}
