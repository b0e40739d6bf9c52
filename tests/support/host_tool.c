// SPDX-License-Identifier: Apache-2.0
/*
 * The host library from a shell, for tests on virtual nodes and for a developer who wants to see
 * what the agent sees.
 *
 *	host-tool [--host-root DIR] [--address IP]... observe [holders] [gids] [settings]
 *	host-tool [--host-root DIR] [--address IP]... step '{"step": "set-num-vfs", ...}'
 *	host-tool [--host-root DIR] counters
 *	host-tool watch SECONDS
 *
 * Prints JSON on stdout; an error goes to stderr as "reason: text", exit 1.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "nodeagent/host/counters.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/watch.h"
#include "nodeagent/model/step.h"
#include "nodeagent/worker/execute.h"

static int usage(void)
{
	(void)fputs("usage: host-tool [--host-root DIR] [--address IP]... "
		    "observe [holders] [gids] [settings] | step JSON | counters | watch SECONDS\n",
		    stderr);
	return 2;
}

static int failed(const struct err *err)
{
	(void)fprintf(stderr, "%s: %s\n", err->reason, err->text);
	return 1;
}

static void print(const json_t *value)
{
	(void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
	(void)putchar('\n');
}

static int observe(struct host *host, char **words)
{
	json_auto_t *observed = NULL;
	unsigned int flags = 0;
	struct err err = {0};

	for (; *words; words++) {
		if (str_eq(*words, "holders"))
			flags |= HOST_OBSERVE_HOLDERS;
		else if (str_eq(*words, "gids"))
			flags |= HOST_OBSERVE_GIDS;
		else if (str_eq(*words, "settings"))
			flags |= HOST_OBSERVE_SETTINGS;
		else
			return usage();
	}
	observed = host_observe(host, flags, &err);
	if (!observed)
		return failed(&err);
	print(observed);
	return 0;
}

static int step(struct host *host, const char *text)
{
	struct err err = {0};
	json_auto_t *parsed = json_parse(text, strlen(text), &err);
	json_auto_t *result = NULL;

	if (!parsed || host_execute(host, parsed, &result, &err) < 0)
		return failed(&err);
	print(result);
	return 0;
}

/* Each device with what it has counted. */
static int counters(struct host *host)
{
	struct err err = {0};
	json_auto_t *list = counters_list(host, NULL, &err);
	json_t *device;
	size_t i;

	if (!list)
		return failed(&err);
	json_array_foreach (json_at(list, "devices"), i, device) {
		json_t *counted = counters_read(host, device, &err);

		if (!counted)
			return failed(&err);
		json_put(device, "counted", counted);
	}
	print(list);
	return 0;
}

static void print_event(void *arg, const struct watch_event *event)
{
	static const char *const sources[] = {"uevent", "link", "rdma"};

	(void)printf("%s %s %s %s\n", sources[event->source], event->lost ? "lost" : event->action,
		     event->address ? event->address : "-", event->name ? event->name : "-");
	(void)fflush(stdout);
}

static int watch(const char *seconds)
{
	struct err err = {0};
	auto_watch struct watch *watch = watch_open(&err);
	int64_t number, until;

	if (!watch)
		return failed(&err);
	if (!str_to_int(seconds, 1, 3600, &number))
		return usage();
	until = clock_ms() + number * 1000;
	while (clock_ms() < until) {
		struct pollfd fds[WATCH_SOURCES];

		for (int i = 0; i < WATCH_SOURCES; i++)
			fds[i] = (struct pollfd){.fd = watch_fd(watch, (enum watch_source)i),
						 .events = POLLIN};
		(void)poll(fds, WATCH_SOURCES, (int)(until - clock_ms()));
		for (int i = 0; i < WATCH_SOURCES; i++)
			if (fds[i].revents &&
			    watch_read(watch, (enum watch_source)i, print_event, NULL, &err) < 0)
				return failed(&err);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *root = "/";
	json_auto_t *addresses = NULL, *nobody = NULL;
	auto_host struct host *host = NULL;
	struct err err = {0};

	json_init();
	addresses = json_array();
	nobody = json_object();
	for (argv++; argv[0] && argv[1] && str_starts(argv[0], "--"); argv += 2) {
		if (str_eq(argv[0], "--host-root"))
			root = argv[1];
		else if (str_eq(argv[0], "--address"))
			json_array_append_new(addresses, json_string(argv[1]));
		else
			return usage();
	}
	host = host_open(root, &err);
	if (!host)
		return failed(&err);
	host_set_node_addresses(host, addresses);
	/* Without a kubelet. */
	host_set_held(host, nobody);
	if (str_eq(argv[0], "observe"))
		return observe(host, argv + 1);
	if (str_eq(argv[0], "step") && argv[1])
		return step(host, argv[1]);
	if (str_eq(argv[0], "counters"))
		return counters(host);
	if (str_eq(argv[0], "watch") && argv[1])
		return watch(argv[1]);
	return usage();
}
