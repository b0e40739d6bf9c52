// SPDX-License-Identifier: Apache-2.0
/*
 * In order: the folder and its lock, certificate and API server, kubeconfig, children, the loop;
 * and all of it back. The top of `orbweaver simulate`.
 */
#include "cli/simulate/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/simulate/api/api.h"
#include "cli/simulate/children.h"
#include "cli/simulate/definitions.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/random.h"
#include "lib/base/str.h"
#include "lib/http/certificate.h"
#include "lib/http/server.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "lib/loop/loop.h"

/* Of cluster, context and user in the kubeconfig; by it we know our own. */
#define KUBECONFIG_NAME "orbweaver-simulate"

#define OPERATOR_NAMESPACE "orbweaver-system"
#define CONFIG_NAMESPACE   "spiderpool"

/* Of the process that plays nodes. */
#define NODES_ARGUMENTS_MAX 128

enum {
	CERTIFICATE_S = 365 * 24 * 3600,
	/* Clocks differ, those of one machine too after it slept. */
	BACKDATED_S = 300,
	/* An operator, nodes with their agents' watches, kubectl, tests. */
	CONNECTIONS_MAX = 4096,
	KUBECONFIG_MAX = 1024 * 1024,
	/* Children that have not ended by then are killed. */
	PATIENCE_MS = 10000,
};

struct child {
	const char *name; /* for people */
	pid_t pid;        /* 0: not started, or its end was seen */
	char *log;
};

enum {
	OPERATOR,
	NODES,
	CHILDREN,
};

struct cluster {
	const struct cluster_options *options;
	char *folder, *kubeconfig;
	int lock;
	char token[65];
	struct loop *loop;
	struct api *api;
	struct http_server *server;
	struct child children[CHILDREN];
	struct signal_watch *signals[4];
	struct timer *patience;
	bool is_ending, has_kubeconfig;
	struct err *err; /* why it ends, where it is a failure */
};

char *cluster_folder(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	return str_empty(runtime) ? str_printf("/tmp/orbweaver-simulate-%u", (unsigned int)getuid())
				  : str_below(runtime, "orbweaver-simulate");
}

char *cluster_socket(const char *folder)
{
	return str_below(folder, "nodes.sock");
}

/* ---- checks and files ------------------------------------------------------------------------ */

/* A kubeconfig of another cluster is not overwritten. */
static int check_kubeconfig(const struct cluster *c, struct err *err)
{
	auto_strbuf struct strbuf text = {0};

	if (access(c->kubeconfig, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (fs_read(AT_FDCWD, c->kubeconfig, KUBECONFIG_MAX, &text, err) < 0)
		return err_in(err, "--kubeconfig");
	if (text.len > 0 && !strstr(text.data, "current-context: " KUBECONFIG_NAME))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--kubeconfig %s: is there and not of a simulation; name another "
			       "file",
			       c->kubeconfig);
	return 0;
}

static int write_kubeconfig(struct cluster *c, const char *authority_pem, struct err *err)
{
	bool is_v6 = str_starts(c->options->listen, "[");
	auto_strbuf struct strbuf authority = {0}, text = {0};
	auto_free char *server = str_printf("https://%s:%u", is_v6 ? "[::1]" : "127.0.0.1",
					    http_server_port(c->server));
	json_auto_t *config = NULL;

	base64_encode(authority_pem, strlen(authority_pem), &authority);
	config = json_pack(
		"{s:s, s:s, s:s, s:[{s:s, s:{s:s, s:s}}], s:[{s:s, s:{s:s, s:s}}], s:[{s:s, "
		"s:{s:s}}]}",
		"apiVersion", "v1", "kind", "Config", "current-context", KUBECONFIG_NAME,
		"clusters", "name", KUBECONFIG_NAME, "cluster", "server", server,
		"certificate-authority-data", strbuf_str(&authority), "contexts", "name",
		KUBECONFIG_NAME, "context", "cluster", KUBECONFIG_NAME, "user", KUBECONFIG_NAME,
		"users", "name", KUBECONFIG_NAME, "user", "token", c->token);
	yaml_write(config, &text);
	if (fs_write_atomic(AT_FDCWD, c->kubeconfig, text.data, text.len, 0600, err) < 0)
		return err_in(err, "--kubeconfig");
	c->has_kubeconfig = true;
	return 0;
}

/* ---- the API server -------------------------------------------------------------------------- */

static int seed(const struct cluster *c, struct err *err)
{
	static const char *const namespaces[] = {OPERATOR_NAMESPACE, "spiderpool"};
	json_auto_t *definitions = definitions_read(err);
	json_t *object;
	size_t i;

	if (!definitions)
		return -1;
	json_array_foreach (definitions, i, object)
		if (api_create(c->api, object, err) < 0)
			return err_in(err, "definition %s", json_name(object));
	for (i = 0; i < ARRAY_LEN(namespaces); i++) {
		json_auto_t *namespace =
			json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace",
				  "metadata", "name", namespaces[i]);

		if (api_create(c->api, namespace, err) < 0)
			return -1;
	}
	return 0;
}

static int start_api(struct cluster *c, struct err *err)
{
	static const char *const names[] = {"127.0.0.1", "::1", "localhost"};
	const struct certificate_order order = {
		.common_name = KUBECONFIG_NAME,
		.names = names,
		.n_names = ARRAY_LEN(names),
		.not_before_s = clock_wall_us() / 1000000 - BACKDATED_S,
		.not_after_s = clock_wall_us() / 1000000 + CERTIFICATE_S,
	};
	auto_certificate_set struct certificate_set set = {0};
	struct http_server_config config = {
		.name = "simulate",
		.listen = c->options->listen,
		.connections_max = CONNECTIONS_MAX,
	};
	unsigned char bytes[(sizeof(c->token) - 1) / 2];

	if (certificate_issue(&order, &set, err) < 0)
		return -1;
	random_bytes(bytes, sizeof(bytes));
	/* Letters alone: no reader of YAML takes it for a number, so it stands without quotes. */
	for (size_t i = 0; i < sizeof(bytes); i++) {
		c->token[2 * i] = (char)('a' + (bytes[i] >> 4));
		c->token[2 * i + 1] = (char)('a' + (bytes[i] & 0x0f));
	}
	c->api = api_new(c->loop, c->token);
	if (!c->options->api_only && seed(c, err) < 0)
		return -1;
	config.routes = api_routes(c->api, &config.n_routes);
	config.certificate_pem = set.certificate_pem;
	config.key_pem = set.key_pem;
	c->server = http_server_new(c->loop, &config, err);
	if (!c->server) {
		struct err why = *err;

		return err_set(err, ERR_INVALID, "BadFlag",
			       "--listen %s: %s; name another port, or 0 for a free one",
			       c->options->listen, why.text);
	}
	return write_kubeconfig(c, set.authority_pem, err);
}

/* ---- children -------------------------------------------------------------------------------- */

/* A port that is free now; 0 with err: none. */
static unsigned int free_port(struct err *err)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
	} name = {.in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(name.in);

	if (fd < 0 || bind(fd, &name.sa, len) < 0 || getsockname(fd, &name.sa, &len) < 0) {
		(void)err_sys(err, "ChildFailed", "no free port on 127.0.0.1");
		return 0;
	}
	return ntohs(name.in.sin_port);
}

static int start_child(struct cluster *c, int which, const char *name, const char *const *argv,
		       struct err *err)
{
	struct child *child = &c->children[which];
	auto_free char *file = str_printf("%s.log", name);
	pid_t pid;

	child->name = name;
	child->log = str_below(c->folder, file);
	pid = child_start(argv, child->log, err);
	if (pid < 0)
		return -1;
	child->pid = pid;
	return 0;
}

static int start_operator(struct cluster *c, struct err *err)
{
	unsigned int port = free_port(err);
	auto_free char *address = str_printf("127.0.0.1:%u", port);
	auto_free char *url = str_printf("https://127.0.0.1:%u", port);
	const char *const argv[] = {CHILD_OPERATOR,
				    "--kubeconfig",
				    c->kubeconfig,
				    "--namespace",
				    OPERATOR_NAMESPACE,
				    "--metrics-addr",
				    "127.0.0.1:0",
				    "--health-addr",
				    "127.0.0.1:0",
				    "--policy-namespaces",
				    "default",
				    "--config-namespace",
				    CONFIG_NAMESPACE,
				    "--webhook-addr",
				    address,
				    "--webhook-url",
				    url,
				    NULL};

	if (port == 0)
		return -1;
	return start_child(c, OPERATOR, "operator", argv, err);
}

static int start_nodes(struct cluster *c, struct err *err)
{
	auto_free char *socket = cluster_socket(c->folder);
	const char *argv[NODES_ARGUMENTS_MAX] = {CHILD_NODES, c->kubeconfig,      c->folder,
						 socket,      OPERATOR_NAMESPACE, CONFIG_NAMESPACE};
	size_t n = 6;

	for (size_t i = 0; c->options->nodes[i] && n < NODES_ARGUMENTS_MAX - 1; i++)
		argv[n++] = c->options->nodes[i];
	return start_child(c, NODES, "nodes", argv, err);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void on_closed(void *arg)
{
	struct cluster *c = arg;

	loop_stop(c->loop);
}

/* The server outlives its clients, so that they can say their last words. */
static void end_server(struct cluster *c)
{
	for (int i = 0; i < CHILDREN; i++)
		if (c->children[i].pid)
			return;
	timer_stop(c->patience);
	if (c->server)
		http_server_close(take_ptr(c->server), on_closed, c);
}

static void signal_children(const struct cluster *c, int signum)
{
	for (int i = 0; i < CHILDREN; i++)
		if (c->children[i].pid)
			(void)kill(c->children[i].pid, signum);
}

static void end(struct cluster *c)
{
	if (c->is_ending)
		return;
	c->is_ending = true;
	signal_children(c, SIGTERM);
	timer_start(c->patience, PATIENCE_MS);
	end_server(c);
}

static void on_terminate(void *arg)
{
	end(arg);
}

static void on_impatient(void *arg)
{
	struct cluster *c = arg;

	signal_children(c, SIGKILL);
}

static void see_end(struct cluster *c, struct child *child, int status)
{
	child->pid = 0;
	if (!c->is_ending) {
		(void)err_set(c->err, ERR_HOST, "ChildEnded", "the %s ended %s %d; see %s",
			      child->name, WIFSIGNALED(status) ? "by signal" : "with status",
			      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			      child->log);
		end(c);
	}
	end_server(c);
}

static void on_child(void *arg)
{
	struct cluster *c = arg;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < CHILDREN; i++)
			if (pid == c->children[i].pid)
				see_end(c, &c->children[i], status);
}

/* ---- the start ------------------------------------------------------------------------------- */

static void watch_signals(struct cluster *c)
{
	(void)signal(SIGPIPE, SIG_IGN);
	c->signals[0] = signal_watch_new(c->loop, SIGINT, on_terminate, c);
	c->signals[1] = signal_watch_new(c->loop, SIGTERM, on_terminate, c);
	c->signals[2] = signal_watch_new(c->loop, SIGHUP, on_terminate, c);
	c->signals[3] = signal_watch_new(c->loop, SIGCHLD, on_child, c);
	c->patience = timer_new(c->loop, on_impatient, c);
}

static int start(struct cluster *c, struct err *err)
{
	const char *port = NULL;
	int64_t number;
	auto_free char *path = NULL;
	struct stat st;

	if (str_starts(c->options->listen, "127.0.0.1:"))
		port = c->options->listen + strlen("127.0.0.1:");
	else if (str_starts(c->options->listen, "[::1]:"))
		port = c->options->listen + strlen("[::1]:");
	if (!port || !str_to_int(port, 0, 65535, &number))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--listen %s: must be 127.0.0.1:PORT or [::1]:PORT, a simulated "
			       "cluster is for this machine only",
			       c->options->listen);
	/* The folder is ours alone, and so is the simulation in it. */
	path = str_below(c->folder, "lock");
	if (fs_make_dirs(c->folder, 0700) < 0 || lstat(c->folder, &st) < 0)
		return err_sys(err, "BadFlag", "--state %s", c->folder);
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || st.st_mode & 0077)
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--state %s: must be a folder of yours with mode 0700", c->folder);
	c->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (c->lock < 0)
		return err_sys(err, "BadFlag", "--state %s: open lock", c->folder);
	if (flock(c->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--state %s: another simulation runs there; end it, or name another "
			       "folder",
			       c->folder);
	if (check_kubeconfig(c, err) < 0)
		return -1;
	c->loop = loop_new();
	watch_signals(c);
	if (start_api(c, err) < 0)
		return -1;
	printf("export KUBECONFIG=%s\n", c->kubeconfig);
	(void)fflush(stdout);
	if (c->options->api_only)
		return 0;
	return start_operator(c, err) < 0 ? -1 : start_nodes(c, err);
}

int cluster_run(const struct cluster_options *options, struct err *err)
{
	struct cluster c = {.options = options, .lock = -1, .err = err};
	struct err why = {0};
	int result;

	c.err = &why;
	c.folder = options->folder ? str_dup(options->folder) : cluster_folder();
	c.kubeconfig = options->kubeconfig ? str_dup(options->kubeconfig)
					   : str_below(c.folder, "kubeconfig");
	result = start(&c, &why);
	if (result < 0 && c.server)
		end(&c);
	if (c.server || c.is_ending)
		loop_run(c.loop);
	for (size_t i = 0; i < ARRAY_LEN(c.signals); i++)
		signal_watch_free(c.signals[i]);
	timer_free(c.patience);
	api_free(c.api);
	loop_free(c.loop);
	if (c.has_kubeconfig)
		(void)unlink(c.kubeconfig);
	if (c.lock >= 0)
		(void)close(c.lock);
	for (int i = 0; i < CHILDREN; i++)
		mem_free(c.children[i].log);
	mem_free(c.folder);
	mem_free(c.kubeconfig);
	if (why.class != ERR_NONE)
		*err = why;
	return why.class == ERR_NONE ? 0 : -1;
}
