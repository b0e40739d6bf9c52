// SPDX-License-Identifier: Apache-2.0
/*
 * The caller of CNI plugins that a container runtime is, with a clock: networks of many pods, one
 * pod after the other or all at once.
 *
 *	bench-cni FILE
 *
 * FILE is {"ways": [{"name", "pods": [{"container", "netns", "args"}], "networks": [{"name",
 * "ifname", "plugins": [configuration, …]}, …], "path"}, …], "atOnce", "waits", "pauseMs"}: each
 * way has its own pods, as many as the others. Plugins are looked for in CNI_PATH, or in the way's
 * "path". Networks are set up in their order and taken down backwards.
 *
 * One after the other: the first pod of each way comes and goes, then the second of each, and so
 * on; pauseMs lie between. With atOnce all pods come, then all go; with waits, not before a line
 * comes in.
 *
 * Prints a line of JSON for each call: {"way", "command", "ms", "cpu_ms": of its processes,
 * "plugins": [{"type", "ms"}], "error"}; with atOnce also {"all": command, "ms"}. A call counts
 * from when it was due. Each pod has a process here, which is there before.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"

#define CNI_VERSION "1.0.0"
#define FILE_MAX    (16 << 20)
#define SAID_MAX    65536

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static double ms_since(int64_t us)
{
	return (double)(clock_us() - us) / 1e3;
}

/* ---- one plugin ------------------------------------------------------------------------------ */

/* As libcni looks for it; "" when there is none. */
static char *find_program(const char *type)
{
	auto_free char *path = str_dup(getenv("CNI_PATH"));
	char *rest = path, *folder;

	while ((folder = strsep(&rest, ":"))) {
		auto_free char *file = str_below(folder, type);

		if (access(file, X_OK) == 0)
			return take_ptr(file);
	}
	return str_dup("");
}

/* What the runtime adds to a plugin's part of the network: SPEC.md, "Deriving". */
static char *stdin_text(const json_t *network, const json_t *plugin, const json_t *previous)
{
	json_auto_t *config = json_deep_copy(plugin);

	json_put_str(config, "cniVersion", CNI_VERSION);
	json_put_str(config, "name", json_str_at(network, "name"));
	if (previous)
		json_put(config, "prevResult", json_incref((json_t *)previous));
	return json_text(config);
}

/* Its stdin and stdout are at `in` and `out` (ours of two pipes). */
static pid_t start(const char *type, char **env, int *ret_in, int *ret_out)
{
	auto_free char *program = find_program(type);
	char *argv[] = {program, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int in[2], out[2], failed;
	sigset_t set;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	/* We ignore it, a plugin does as it likes. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setsigdefault(&attr, &set);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	failed = posix_spawn(&pid, program, &actions, &attr, argv, env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(in[0]);
	(void)close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
	return failed ? -1 : pid;
}

/* Its result, new, {} when it has none; NULL: *ret_error, new, says why. */
static json_t *call(const char *type, char **env, const char *input, char **ret_error)
{
	int in, out, status = 0;
	auto_strbuf struct strbuf said = {0};
	pid_t pid = start(type, env, &in, &out);
	json_t *result = NULL;
	ssize_t n;

	/* One that does not read it has its reasons in what it says. */
	(void)fs_write_all(in, input, strlen(input));
	(void)close(in);
	do {
		strbuf_reserve(&said, 4096);
		n = read(out, said.data + said.len, 4096);
		said.len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	(void)close(out);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		status = 1;
	if (status == 0)
		result = said.len > 0 ? json_parse(said.data, said.len, NULL) : json_object();
	if (!result)
		*ret_error = str_printf("%s: status %d: %.*s", type, status, (int)said.len,
					said.data ? said.data : "");
	return result;
}

/* ---- one pod --------------------------------------------------------------------------------- */

struct pod {
	const json_t *way, *object; /* borrowed */
	json_t *results;            /* of ADD, one for each network */
	json_t *took;               /* of the call under way: [{"type", "ms"}] */
	pid_t pid;
	int line; /* between its process and ours: orders, and what came of them */
};

static json_t *call_in(struct pod *pod, const char *command, const json_t *network,
		       const json_t *plugin, const json_t *previous, char **ret_error)
{
	const char *type = json_str_or(json_at(plugin, "type"), "");
	auto_free char *input = stdin_text(network, plugin, previous);
	char *env[] = {
		str_printf("CNI_COMMAND=%s", command),
		str_printf("CNI_CONTAINERID=%s", json_str_at(pod->object, "container")),
		str_printf("CNI_NETNS=%s", json_str_at(pod->object, "netns")),
		str_printf("CNI_IFNAME=%s", json_str_at(network, "ifname")),
		str_printf("CNI_ARGS=%s", json_str_at(pod->object, "args")),
		str_printf("CNI_PATH=%s", getenv("CNI_PATH")),
		str_printf("PATH=%s", getenv("PATH")),
		NULL,
	};
	int64_t begun = clock_us();
	json_t *result = call(type, env, input, ret_error);

	json_array_append_new(pod->took,
			      json_pack("{s:s, s:f}", "type", type, "ms", ms_since(begun)));
	for (size_t i = 0; env[i]; i++)
		free(env[i]);
	return result;
}

static char *add(struct pod *pod)
{
	const json_t *network, *plugin;
	char *error = NULL;
	size_t i, k;

	json_array_foreach (json_at(pod->way, "networks"), i, network) {
		json_auto_t *result = NULL;

		json_array_foreach (json_at(network, "plugins"), k, plugin) {
			json_t *next = call_in(pod, "ADD", network, plugin, result, &error);

			json_decref(result);
			result = next;
			if (!result)
				return error;
		}
		json_array_append(pod->results, result);
	}
	return NULL;
}

/* All of them, like a runtime; what went wrong first is what is said. */
static char *take_down(struct pod *pod)
{
	const json_t *networks = json_at(pod->way, "networks");
	char *first = NULL;

	for (size_t i = json_array_size(networks); i > 0; i--) {
		const json_t *network = json_array_get(networks, i - 1);
		const json_t *plugins = json_at(network, "plugins");

		for (size_t k = json_array_size(plugins); k > 0; k--) {
			char *error = NULL;

			json_decref(call_in(pod, "DEL", network, json_array_get(plugins, k - 1),
					    json_array_get(pod->results, i - 1), &error));
			if (first)
				free(error);
			else
				first = error;
		}
	}
	return first;
}

static double cpu_ms(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

/* What a pod's process is to do. */
struct order {
	char command[8];
	int64_t since_us; /* when it was due */
};

static void carry_out(struct pod *pod, const struct order *order)
{
	const char *command = order->command;
	double cpu_before = cpu_ms();
	auto_free char *error = str_eq(command, "ADD") ? add(pod) : take_down(pod);
	double took_ms = ms_since(order->since_us);
	json_auto_t *said = json_pack(
		"{s:s, s:s, s:f, s:f, s:O}", "way", json_str_at(pod->way, "name"), "command",
		command, "ms", took_ms, "cpu_ms", cpu_ms() - cpu_before, "plugins", pod->took);
	auto_free char *text = NULL;

	json_put_str(said, "error", error);
	text = json_text(said);
	if (send(pod->line, text, strlen(text), 0) < 0)
		die("send");
	(void)json_array_clear(pod->took);
}

static _Noreturn void be_pod(struct pod *pod)
{
	struct order order;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (json_at(pod->way, "path"))
		(void)setenv("CNI_PATH", json_str_at(pod->way, "path"), 1);
	pod->results = json_array();
	pod->took = json_array();
	while (recv(pod->line, &order, sizeof(order), 0) == sizeof(order))
		carry_out(pod, &order);
	_exit(0);
}

static struct pod pod_start(const json_t *way, size_t i)
{
	struct pod pod = {.way = way, .object = json_array_get(json_at(way, "pods"), i)};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	pod.pid = fork();
	if (pod.pid < 0)
		die("fork");
	pod.line = pair[pod.pid == 0];
	if (pod.pid == 0)
		be_pod(&pod);
	(void)close(pair[1]);
	return pod;
}

static void pod_end(const struct pod *pod)
{
	/* Other pods' processes have our end of the line, too. */
	(void)kill(pod->pid, SIGKILL);
	(void)close(pod->line);
	(void)waitpid(pod->pid, NULL, 0);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void tell(const struct pod *pod, const char *command, int64_t since_us)
{
	struct order order = {.since_us = since_us};

	(void)snprintf(order.command, sizeof(order.command), "%s", command);
	if (send(pod->line, &order, sizeof(order), 0) < 0)
		die("send");
}

static void hear(const struct pod *pod)
{
	char said[SAID_MAX];
	ssize_t n = recv(pod->line, said, sizeof(said), 0);

	if (n <= 0)
		die("a pod's process has ended");
	(void)printf("%.*s\n", (int)n, said);
	(void)fflush(stdout);
}

static void one_by_one(const json_t *work, const json_t *ways)
{
	static const char *const commands[] = {"ADD", "DEL"};
	useconds_t pause_us = (useconds_t)json_integer_value(json_at(work, "pauseMs")) * 1000;
	size_t n = json_array_size(json_at(json_array_get(ways, 0), "pods")), w;
	const json_t *way;

	for (size_t i = 0; i < n; i++)
		json_array_foreach (ways, w, way) {
			struct pod pod = pod_start(way, i);

			for (size_t k = 0; k < ARRAY_LEN(commands); k++) {
				(void)usleep(pause_us);
				tell(&pod, commands[k], clock_us());
				hear(&pod);
			}
			pod_end(&pod);
		}
}

static void all_at_once(const struct pod *pods, size_t n, const char *command)
{
	int64_t begun = clock_us();

	for (size_t i = 0; i < n; i++)
		tell(&pods[i], command, begun);
	for (size_t i = 0; i < n; i++)
		hear(&pods[i]);
	(void)printf("{\"all\": \"%s\", \"ms\": %.3f}\n", command, ms_since(begun));
	(void)fflush(stdout);
}

static void at_once(const json_t *way, bool waits)
{
	size_t n = json_array_size(json_at(way, "pods"));
	struct pod *pods = mem_calloc(n, sizeof(*pods));
	char line[8];

	for (size_t i = 0; i < n; i++)
		pods[i] = pod_start(way, i);
	all_at_once(pods, n, "ADD");
	if (waits && !fgets(line, sizeof(line), stdin))
		die("nobody says when pods are to go");
	all_at_once(pods, n, "DEL");
	for (size_t i = 0; i < n; i++)
		pod_end(&pods[i]);
	mem_free(pods);
}

int main(int argc, char **argv)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *work = NULL;
	const json_t *ways, *way;
	size_t i;

	json_init();
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc != 2 || !getenv("CNI_PATH") || !getenv("PATH") ||
	    fs_read(AT_FDCWD, argv[1], FILE_MAX, &text, NULL) < 0 ||
	    !(work = json_parse(strbuf_str(&text), text.len, NULL))) {
		(void)fputs("usage: CNI_PATH=FOLDER... bench-cni FILE, which is JSON\n", stderr);
		return 2;
	}
	ways = json_at(work, "ways");
	if (!json_is_true(json_at(work, "atOnce"))) {
		one_by_one(work, ways);
		return 0;
	}
	json_array_foreach (ways, i, way)
		at_once(way, json_is_true(json_at(work, "waits")));
	return 0;
}
