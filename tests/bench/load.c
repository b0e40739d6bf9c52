// SPDX-License-Identifier: Apache-2.0
/*
 * load: make, change or delete many objects with a bounded number of requests under way, and
 * measure until the cluster has come to where it should be.
 *
 * The same program makes the load for the operator (then others do the rest, and it watches them)
 * and the bare load that the figures are compared with (then it writes everything itself). Prints
 * one line of JSON.
 */
#include <fcntl.h>
#include <getopt.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "tests/support/connection.h"

#define FIELD_MANAGER "bench-load"

static const char help[] =
	"usage: load [OPTION...] create|apply|merge|update|delete|wait\n"
	"\n"
	"  --template FILE     an object as JSON; in its strings {n} is the object's number in "
	"five digits, {i} in as many as\n"
	"                      it takes, {hi} and {lo} are number / 256 and number % 256\n"
	"  --resource PLURAL   of a kind of the core group that Orbweaver does not know\n"
	"  --count N           objects to write, numbered from 0 (1)\n"
	"  --concurrency N     requests under way (4)\n"
	"  --field-manager NAME  of the writes (bench-load)\n"
	"  --until KIND=STATE  watch the objects of this kind (plural) and end when enough of them "
	"are in that state:\n"
	"                        exists        they are there\n"
	"                        ready         condition Ready is True for the current generation\n"
	"                        empty         a NodeState asks for nothing\n"
	"                        uses:NAME     all VF groups of a NodeState have this resource "
	"name, and there is one\n"
	"  --in NAMESPACE      watch only there\n"
	"  --named NAME        watch only the object of this name\n"
	"  --enough N          how many (what --count says)\n"
	"  --timeout SECONDS   give up (300)\n"
	"  --kubeconfig FILE   default: $KUBECONFIG\n"
	"\n"
	"Prints {\"objects\": N, \"written_ms\": from the first request to the last answer, "
	"\"settled_ms\": until --until holds, \"p50_ms\", \"p99_ms\": a request}.\n";

enum verb { VERB_CREATE, VERB_APPLY, VERB_MERGE, VERB_UPDATE, VERB_DELETE, VERB_WAIT };

enum state { STATE_NONE, STATE_EXISTS, STATE_READY, STATE_EMPTY, STATE_USES };

struct load {
	enum verb verb;
	json_t *template;
	const char *kubeconfig, *field_manager, *plural;
	int64_t count, concurrency, timeout_s;

	/* what to wait for */
	enum state until;
	const char *until_kind, *until_name, *until_ns;
	char *until_selector;
	int64_t enough; /* -1: count */

	struct connection connection;
	struct kube_resource kind, watched;
	struct cache *cache;
	struct informer *informer;
	struct timer *timeout;
	int64_t matching;
	int64_t next, answered, under_way;
	int64_t started_us, written_us, settled_us;
	struct written {
		struct load *load;
		int64_t began_us, took_us;
	} * writes; /* count of them */
	struct err err;
};

static void write_more(struct load *l);

static void stop_with(struct load *l, const struct err *err)
{
	if (l->err.class == ERR_NONE)
		l->err = *err;
	loop_stop(l->connection.loop);
}

static void check_settled(struct load *l)
{
	if (!l->written_us || l->settled_us || (l->until && l->matching != l->enough))
		return;
	l->settled_us = clock_us();
	loop_stop(l->connection.loop);
}

/* ---- what is waited for ---------------------------------------------------------------------- */

static bool uses_only(const json_t *object, const char *name)
{
	const json_t *pf, *group;
	size_t i, j, groups = 0;

	json_array_foreach (json_at(object, "spec", "interfaces"), i, pf) {
		json_array_foreach (json_at(pf, "vfGroups"), j, group) {
			if (!str_eq(json_str_at(group, "resourceName"), name))
				return false;
			groups++;
		}
	}
	return groups > 0;
}

static bool is_ready(const json_t *object)
{
	const json_t *ready = condition_find(json_at(object, "status", "conditions"), "Ready");

	return str_eq(json_str_at(ready, "status"), "True") &&
	       json_integer_value(json_at(ready, "observedGeneration")) == json_generation(object);
}

static bool matches(const struct load *l, const json_t *object)
{
	if (!object)
		return false;
	switch (l->until) {
	case STATE_NONE:
		return false;
	case STATE_EXISTS:
		return true;
	case STATE_READY:
		return is_ready(object);
	case STATE_EMPTY:
		return json_array_size(json_at(object, "spec", "interfaces")) == 0;
	case STATE_USES:
		return uses_only(object, l->until_name);
	}
	return false;
}

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct load *l = arg;

	l->matching += matches(l, now) - matches(l, old);
	check_settled(l);
}

static void begin(void *arg)
{
	struct load *l = arg;

	l->started_us = clock_us();
	write_more(l);
}

static void on_trouble(void *arg, const struct err *err)
{
	if (err)
		stop_with(arg, err);
}

static void on_timeout(void *arg)
{
	struct load *l = arg;
	struct err err = {0};

	err_set(&err, ERR_TRANSIENT, "Timeout",
		"not there after %lld s: %lld of %lld objects written, %lld of %lld %s as wanted",
		(long long)l->timeout_s, (long long)l->answered, (long long)l->count,
		(long long)l->matching, (long long)l->enough, l->until ? l->until_kind : "objects");
	stop_with(l, &err);
}

/* ---- writes ---------------------------------------------------------------------------------- */

static json_t *filled_string(const char *text, int64_t n)
{
	auto_strbuf struct strbuf out = {0};

	while (*text) {
		size_t plain = strcspn(text, "{");

		strbuf_add(&out, text, plain);
		text += plain;
		if (str_starts(text, "{n}")) {
			strbuf_addf(&out, "%05lld", (long long)n);
			text += 3;
		} else if (str_starts(text, "{i}")) {
			strbuf_addf(&out, "%lld", (long long)n);
			text += 3;
		} else if (str_starts(text, "{hi}")) {
			strbuf_addf(&out, "%lld", (long long)(n / 256));
			text += 4;
		} else if (str_starts(text, "{lo}")) {
			strbuf_addf(&out, "%lld", (long long)(n % 256));
			text += 4;
		} else if (*text) {
			strbuf_addc(&out, *text++);
		}
	}
	return json_string(strbuf_str(&out));
}

/* A copy of the template for object n. */
static json_t *filled(const json_t *value, int64_t n)
{
	json_t *copy = NULL, *element = NULL;
	const char *key = NULL;
	size_t i = 0;

	if (json_is_string(value))
		return filled_string(json_string_value(value), n);
	if (json_is_array(value)) {
		copy = json_array();
		json_array_foreach ((json_t *)value, i, element) {
			json_array_append_new(copy, filled(element, n));
		}
		return copy;
	}
	if (json_is_object(value)) {
		copy = json_object();
		json_each (value, key, element) {
			json_put(copy, key, filled(element, n));
		}
		return copy;
	}
	return json_deep_copy(value);
}

static void on_written(void *arg, json_t *object, const struct err *err)
{
	struct written *written = arg;
	struct load *l = written->load;

	written->took_us = clock_us() - written->began_us;
	l->under_way--;
	l->answered++;
	if (err)
		stop_with(l, err);
	else
		write_more(l);
}

/*
 * An update replaces the whole object, and only the version that is there: metadata as the watch
 * knows it.
 */
static void take_metadata(const struct load *l, json_t *object)
{
	auto_free char *key = json_key(object);
	json_auto_t *seen = cache_get(l->cache, key);

	if (json_at(seen, "metadata"))
		json_object_set(object, "metadata", json_at(seen, "metadata"));
}

static void write_one(struct load *l, int64_t n)
{
	json_auto_t *object = filled(l->template, n);
	struct kube_client *client = l->connection.client;
	const struct kube_write how = {.field_manager = l->field_manager};
	const struct kube_write force = {.field_manager = l->field_manager, .force = true};
	const char *ns = json_str_at(object, "metadata", "namespace");
	const char *name = json_name(object);
	struct written *written = &l->writes[n];

	*written = (struct written){.load = l, .began_us = clock_us()};
	switch (l->verb) {
	case VERB_CREATE:
		kube_create(client, &l->kind, object, &how, on_written, written);
		break;
	case VERB_APPLY:
		kube_patch(client, &l->kind, ns, name, KUBE_PATCH_APPLY, object, &force, on_written,
			   written);
		break;
	case VERB_MERGE:
		kube_patch(client, &l->kind, ns, name, KUBE_PATCH_MERGE, object, &how, on_written,
			   written);
		break;
	case VERB_UPDATE:
		take_metadata(l, object);
		kube_update(client, &l->kind, object, &how, on_written, written);
		break;
	case VERB_DELETE:
		kube_delete(client, &l->kind, ns, name, NULL, NULL, &how, on_written, written);
		break;
	case VERB_WAIT:
		break;
	}
}

static void write_more(struct load *l)
{
	while (l->next < l->count && l->under_way < l->concurrency) {
		l->under_way++;
		write_one(l, l->next++);
	}
	if (l->answered < l->count)
		return;
	l->written_us = clock_us();
	check_settled(l);
}

/* ---- arguments ------------------------------------------------------------------------------- */

enum {
	OPT_TEMPLATE = 1,
	OPT_RESOURCE,
	OPT_COUNT,
	OPT_CONCURRENCY,
	OPT_FIELD_MANAGER,
	OPT_UNTIL,
	OPT_IN,
	OPT_NAMED,
	OPT_ENOUGH,
	OPT_TIMEOUT,
	OPT_KUBECONFIG,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"template", required_argument, NULL, OPT_TEMPLATE},
	{"resource", required_argument, NULL, OPT_RESOURCE},
	{"count", required_argument, NULL, OPT_COUNT},
	{"concurrency", required_argument, NULL, OPT_CONCURRENCY},
	{"field-manager", required_argument, NULL, OPT_FIELD_MANAGER},
	{"until", required_argument, NULL, OPT_UNTIL},
	{"in", required_argument, NULL, OPT_IN},
	{"named", required_argument, NULL, OPT_NAMED},
	{"enough", required_argument, NULL, OPT_ENOUGH},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static int bad(struct err *err, const char *what, const char *value, const char *right)
{
	return err_set(err, ERR_INVALID, "BadOption", "%s \"%s\": must be %s", what, value, right);
}

static int set_number(const char *option, const char *text, int64_t min, int64_t *ret,
		      struct err *err)
{
	return str_to_int(text, min, 1000000, ret)
		       ? 0
		       : bad(err, option, text, "a number up to 1000000");
}

static int read_template(struct load *l, const char *path, struct err *err)
{
	auto_strbuf struct strbuf text = {0};

	if (fs_read(AT_FDCWD, path, 1024 * 1024, &text, err) < 0)
		return -1;
	json_decref(l->template);
	l->template = json_parse(strbuf_str(&text), text.len, err);
	return l->template ? 0 : err_in(err, "%s", path);
}

static int find_kind(struct load *l, struct err *err)
{
	const char *kind = json_str_or(json_at(l->template, "kind"), "");

	if (l->plural) {
		l->kind = (struct kube_resource){
			.group = "",
			.version = "v1",
			.plural = l->plural,
			.kind = kind,
			.namespaced = json_str_at(l->template, "metadata", "namespace") != NULL,
		};
		return 0;
	}
	for (const struct kind_info *k = kind_all(); k->id; k++)
		if (str_eq(k->kind, kind)) {
			l->kind = connection_resource(k->id);
			return 0;
		}
	return bad(err, "--template", kind, "an object of a kind that Orbweaver knows");
}

/* Cuts text up. */
static int parse_until(struct load *l, char *text, struct err *err)
{
	char *state = strchr(text, '=');

	if (!state)
		return bad(err, "--until", text, "KIND=STATE");
	*state++ = '\0';
	if (!kind_find(text))
		return bad(err, "--until", text, "the plural name of a kind that Orbweaver knows");
	l->until_kind = text;
	l->watched = connection_resource(text);
	if (str_eq(state, "exists"))
		l->until = STATE_EXISTS;
	else if (str_eq(state, "ready"))
		l->until = STATE_READY;
	else if (str_eq(state, "empty"))
		l->until = STATE_EMPTY;
	else if (str_starts(state, "uses:"))
		l->until = STATE_USES;
	else
		return bad(err, "--until", state, "exists, ready, empty or uses:NAME");
	l->until_name = l->until == STATE_USES ? state + strlen("uses:") : NULL;
	return 0;
}

static int set_option(struct load *l, int option, char *value, struct err *err)
{
	switch (option) {
	case OPT_TEMPLATE:
		return read_template(l, value, err);
	case OPT_RESOURCE:
		l->plural = value;
		return 0;
	case OPT_COUNT:
		return set_number("--count", value, 0, &l->count, err);
	case OPT_CONCURRENCY:
		return set_number("--concurrency", value, 1, &l->concurrency, err);
	case OPT_FIELD_MANAGER:
		l->field_manager = value;
		return 0;
	case OPT_UNTIL:
		return parse_until(l, value, err);
	case OPT_IN:
		l->until_ns = value;
		return 0;
	case OPT_NAMED:
		mem_free(l->until_selector);
		l->until_selector = str_printf("fieldSelector=metadata.name%%3D%s", value);
		return 0;
	case OPT_ENOUGH:
		return set_number("--enough", value, 0, &l->enough, err);
	case OPT_TIMEOUT:
		return set_number("--timeout", value, 1, &l->timeout_s, err);
	case OPT_KUBECONFIG:
		l->kubeconfig = value;
		return 0;
	case OPT_HELP:
		fputs(help, stdout);
		exit(0);
	default: /* getopt has said what is wrong */
		return err_set(err, ERR_INVALID, "BadOption", "see load --help");
	}
}

static int parse(struct load *l, int argc, char **argv, struct err *err)
{
	static const char *const verbs[] = {"create", "apply", "merge", "update", "delete", "wait"};
	const char *verb = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (set_option(l, option, optarg, err) < 0)
			return -1;
	verb = optind == argc - 1 ? argv[optind] : "";
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (str_eq(verb, verbs[i])) {
			l->verb = (enum verb)i;
			verb = NULL;
			break;
		}
	if (verb)
		return bad(err, "argument", verb,
			   "one of create, apply, merge, update, delete, wait");
	if (l->enough < 0)
		l->enough = l->count;
	if (l->verb == VERB_WAIT)
		l->count = 0;
	else if (!l->template)
		return err_set(err, ERR_INVALID, "BadOption", "--template is missing");
	else if (find_kind(l, err) < 0)
		return -1;
	l->writes = mem_calloc((size_t)l->count, sizeof(*l->writes));
	return 0;
}

static void run(struct load *l)
{
	/* Large, and no state looks there: never parsed. */
	static const splitter_path drops[] = {
		{"metadata", "managedFields", NULL},
		{"status", "interfaces", NULL},
	};
	const struct cache_kind kind = {0};

	l->timeout = timer_new(l->connection.loop, on_timeout, l);
	timer_start(l->timeout, l->timeout_s * 1000);
	l->cache = cache_new(&kind, on_changed, l);
	if (l->until)
		l->informer = informer_new(l->connection.loop, l->connection.client,
					   &(struct informer_config){
						   .resource = &l->watched,
						   .ns = l->until_ns,
						   .selector = l->until_selector,
						   .drops = drops,
						   .n_drops = ARRAY_LEN(drops),
						   .cache = l->cache,
						   .synced = begin,
						   .trouble = on_trouble,
						   .arg = l,
					   });
	else
		begin(l);
	loop_run(l->connection.loop);
	informer_free(l->informer);
	timer_free(l->timeout);
	connection_close(&l->connection);
	cache_free(l->cache);
}

static int by_time(const void *a, const void *b)
{
	int64_t x = ((const struct written *)a)->took_us, y = ((const struct written *)b)->took_us;

	return (x > y) - (x < y);
}

/* Of the writes, which are sorted. */
static double percentile_ms(const struct load *l, int64_t percent)
{
	int64_t rank = (l->count * percent + 99) / 100;

	return rank > 0 ? (double)l->writes[rank - 1].took_us / 1000 : 0;
}

static void print(const struct load *l)
{
	qsort(l->writes, (size_t)l->count, sizeof(*l->writes), by_time);
	printf("{\"objects\": %lld, \"written_ms\": %lld, \"settled_ms\": %lld, "
	       "\"p50_ms\": %.1f, \"p99_ms\": %.1f}\n",
	       (long long)l->count, (long long)((l->written_us - l->started_us) / 1000),
	       (long long)((l->settled_us - l->started_us) / 1000), percentile_ms(l, 50),
	       percentile_ms(l, 99));
}

static void done(struct load *l)
{
	json_decref(l->template);
	mem_free(l->until_selector);
	mem_free(l->writes);
}

int main(int argc, char **argv)
{
	struct load l = {
		.count = 1,
		.concurrency = 4,
		.timeout_s = 300,
		.enough = -1,
		.field_manager = FIELD_MANAGER,
	};
	struct err err = {0};

	mem_tune();
	json_init();
	if (parse(&l, argc, argv, &err) < 0 ||
	    connection_open(&l.connection, l.kubeconfig, &err) < 0) {
		fprintf(stderr, "load: %s\n", err.text);
		done(&l);
		return 2;
	}
	run(&l);
	if (l.err.class != ERR_NONE)
		fprintf(stderr, "load: %s\n", l.err.text);
	else
		print(&l);
	done(&l);
	return l.err.class != ERR_NONE;
}
