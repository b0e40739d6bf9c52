// SPDX-License-Identifier: Apache-2.0
/*
 * watches: be as many node agents as wanted, as far as an API server sees them: each a client of
 * its own with a watch of its own SriovNetworkNodeState. What a restart of the server costs under
 * them is measured by tests/bench/watch_storm.
 *
 * For each line on stdin, a value, says when every agent has its object with that value of the
 * label bench/round: one line of JSON.
 */
#include <getopt.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "tests/support/connection.h"

static const char help[] =
	"usage: watches [OPTION...]\n"
	"\n"
	"  --count N           agents (1000)\n"
	"  --in NAMESPACE      where their NodeStates are (orbweaver-system); the names are "
	"bench-00000 and on\n"
	"  --pages             ask for lists in pages, not as streams\n"
	"  --kubeconfig FILE   default: $KUBECONFIG\n"
	"\n"
	"Reads values from stdin, one a line, and prints for each, once every agent has its object "
	"with the label\n"
	"bench/round=VALUE, {\"ms\": since the line came, \"bytes\": received on all connections "
	"since the last line of output,\n"
	"\"lists\": begun since then}. Ends with stdin.\n";

struct storm;

struct agent {
	struct storm *storm;
	struct kube_client *client;
	struct cache *cache;
	struct informer *informer;
	char *key, *selector;
	bool there; /* it has the value that is waited for */
};

/* A connection, as it was seen last. */
struct socket {
	uint64_t cookie; /* SO_COOKIE: no other socket has it */
	uint64_t received;
};

enum { FDS_MAX = 20000, LOOK_MS = 200 };

struct storm {
	int64_t count;
	const char *kubeconfig, *ns;
	bool pages;

	struct connection connection;
	struct kube_resource kind;
	struct metrics *metrics;
	struct metric *lists; /* that informers have begun */
	struct agent *agents;
	struct poller *input;
	struct timer *look;
	struct socket *sockets; /* by descriptor */
	uint64_t received;

	struct strbuf pending; /* of stdin, without a whole line */
	char *wanted;          /* NULL: nothing is waited for */
	int64_t n_there, asked_ms;
	uint64_t told_bytes, told_lists; /* in the last line of output */
};

/* ---- figures --------------------------------------------------------------------------------- */

/*
 * What all TCP connections of this process have received so far. A connection that ends takes with
 * it what it received since the last look.
 */
static uint64_t bytes_received(struct storm *s)
{
	for (int fd = 0; fd < FDS_MAX; fd++) {
		struct socket *socket = &s->sockets[fd];
		struct tcp_info info = {0};
		uint64_t cookie = 0;
		socklen_t len = sizeof(info), cookie_len = sizeof(cookie);

		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
		    getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &cookie_len) < 0)
			continue;
		if (socket->cookie != cookie)
			*socket = (struct socket){.cookie = cookie};
		s->received += info.tcpi_bytes_received - socket->received;
		socket->received = info.tcpi_bytes_received;
	}
	return s->received;
}

static void on_look(void *arg)
{
	struct storm *s = arg;

	bytes_received(s);
	timer_start(s->look, LOOK_MS);
}

static uint64_t lists_begun(const struct storm *s)
{
	return (uint64_t)metric_get(s->lists, s->kind.plural);
}

static void tell(struct storm *s)
{
	uint64_t bytes = bytes_received(s), lists = lists_begun(s);

	printf("{\"ms\": %lld, \"bytes\": %lld, \"lists\": %llu}\n",
	       (long long)(clock_ms() - s->asked_ms), (long long)(bytes - s->told_bytes),
	       (unsigned long long)(lists - s->told_lists));
	fflush(stdout);
	s->told_bytes = bytes;
	s->told_lists = lists;
	mem_free(s->wanted);
	s->wanted = NULL;
}

/* ---- agents ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct storm *s, const json_t *object)
{
	return s->wanted &&
	       str_eq(json_str_at(object, "metadata", "labels", "bench/round"), s->wanted);
}

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct agent *agent = arg;
	struct storm *s = agent->storm;
	bool there = is_wanted(s, now);

	s->n_there += there - agent->there;
	agent->there = there;
	if (s->wanted && s->n_there == s->count)
		tell(s);
}

static void agent_start(struct storm *s, struct agent *agent, int64_t number)
{
	static const struct cache_kind kind = {0};
	static const splitter_path drops[] = {{"metadata", "managedFields"}};

	agent->storm = s;
	agent->client = kube_client_new(s->connection.loop, &s->connection.config, NULL);
	if (s->pages) {
		auto_free char *name = str_printf("%s/%s", s->kind.group, s->kind.plural);

		kube_client_refused_stream(agent->client, name);
	}
	agent->cache = cache_new(&kind, on_changed, agent);
	agent->key = str_printf("%s/bench-%05lld", s->ns, (long long)number);
	agent->selector =
		str_printf("fieldSelector=metadata.name%%3Dbench-%05lld", (long long)number);
	agent->informer = informer_new(s->connection.loop, agent->client,
				       &(struct informer_config){
					       .resource = &s->kind,
					       .ns = s->ns,
					       .selector = agent->selector,
					       .drops = drops,
					       .n_drops = ARRAY_LEN(drops),
					       .cache = agent->cache,
					       .metrics = s->metrics,
				       });
}

static void agent_stop(struct agent *agent)
{
	informer_free(agent->informer);
	kube_client_free(agent->client);
	cache_free(agent->cache);
	mem_free(agent->key);
	mem_free(agent->selector);
}

/* ---- what is asked --------------------------------------------------------------------------- */

static bool agent_has_it(const struct agent *agent)
{
	json_auto_t *object = cache_get(agent->cache, agent->key);

	return is_wanted(agent->storm, object);
}

static void ask(struct storm *s, const char *value)
{
	mem_free(s->wanted);
	s->wanted = str_dup(value);
	s->asked_ms = clock_ms();
	s->n_there = 0;
	for (int64_t i = 0; i < s->count; i++) {
		s->agents[i].there = agent_has_it(&s->agents[i]);
		s->n_there += s->agents[i].there;
	}
	if (s->n_there == s->count)
		tell(s);
}

static void on_input(void *arg, int events)
{
	struct storm *s = arg;
	char bytes[256];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
	char *end = NULL;

	if (n <= 0) {
		loop_stop(s->connection.loop);
		return;
	}
	strbuf_add(&s->pending, bytes, (size_t)n);
	while ((end = strchr(strbuf_str(&s->pending), '\n'))) {
		auto_free char *rest = str_dup(end + 1);

		*end = '\0';
		ask(s, strbuf_str(&s->pending));
		strbuf_reset(&s->pending);
		strbuf_adds(&s->pending, rest);
	}
}

/* ---- arguments ------------------------------------------------------------------------------- */

enum { OPT_COUNT = 1, OPT_IN, OPT_PAGES, OPT_KUBECONFIG, OPT_HELP };

static const struct option long_options[] = {
	{"count", required_argument, NULL, OPT_COUNT},
	{"in", required_argument, NULL, OPT_IN},
	{"pages", no_argument, NULL, OPT_PAGES},
	{"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static int set_option(struct storm *s, int option, const char *value, struct err *err)
{
	switch (option) {
	case OPT_COUNT:
		if (!str_to_int(value, 1, 100000, &s->count))
			return err_set(err, ERR_INVALID, "BadOption",
				       "--count \"%s\": must be a number from 1 to 100000", value);
		return 0;
	case OPT_IN:
		s->ns = value;
		return 0;
	case OPT_PAGES:
		s->pages = true;
		return 0;
	case OPT_KUBECONFIG:
		s->kubeconfig = value;
		return 0;
	case OPT_HELP:
		fputs(help, stdout);
		exit(0);
	default: /* getopt has said what is wrong */
		return err_set(err, ERR_INVALID, "BadOption", "see watches --help");
	}
}

static int parse(struct storm *s, int argc, char **argv, struct err *err)
{
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (set_option(s, option, optarg, err) < 0)
			return -1;
	if (optind < argc)
		return err_set(err, ERR_INVALID, "BadOption",
			       "unknown argument \"%s\"; see watches --help", argv[optind]);
	return 0;
}

static void run(struct storm *s)
{
	s->kind = connection_resource("sriovnetworknodestates");
	s->metrics = metrics_new();
	s->lists = metric_counter(s->metrics, "orbweaver_informer_lists_total",
				  "Complete lists begun.", "resource");
	s->agents = mem_calloc((size_t)s->count, sizeof(*s->agents));
	s->input = poller_new(s->connection.loop, STDIN_FILENO, on_input, s);
	poller_want(s->input, POLL_READ);
	s->sockets = mem_calloc(FDS_MAX, sizeof(*s->sockets));
	s->look = timer_new(s->connection.loop, on_look, s);
	on_look(s);
	for (int64_t i = 0; i < s->count; i++)
		agent_start(s, &s->agents[i], i);
	loop_run(s->connection.loop);
	for (int64_t i = 0; i < s->count; i++)
		agent_stop(&s->agents[i]);
	poller_free(s->input);
	timer_free(s->look);
	connection_close(&s->connection);
	metrics_free(s->metrics);
	mem_free(s->agents);
	mem_free(s->sockets);
	mem_free(s->wanted);
	strbuf_done(&s->pending);
}

int main(int argc, char **argv)
{
	struct storm s = {.count = 1000, .ns = "orbweaver-system"};
	struct err err = {0};

	mem_tune();
	json_init();
	log_configure("error", &err);
	if (parse(&s, argc, argv, &err) < 0 ||
	    connection_open(&s.connection, s.kubeconfig, &err) < 0) {
		fprintf(stderr, "watches: %s\n", err.text);
		return 2;
	}
	run(&s);
	return 0;
}
