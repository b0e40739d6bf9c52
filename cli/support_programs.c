// SPDX-License-Identifier: Apache-2.0
/*
 * Pods of operator and agents were noted while objects were gathered. Of each: its metrics page
 * through the API server's proxy where it can be reached, its log, the log before a restart.
 * Settings are read from its arguments and environment, because rehearsals need them.
 */
#include "cli/support_programs.h"

#include <assert.h>
#include <string.h>

#include "cli/support_internal.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"

enum {
	PAGE_TIMEOUT_MS = 5000,
	LOG_TIMEOUT_MS = 20000,
	LOG_SECONDS = 3600,
	LOG_BYTES_MAX = 1 << 20,
	/* Agents whose pages and logs are read: those in trouble first. */
	AGENTS_MAX = 32,
	/* So many in a row that do not answer are enough. */
	UNANSWERED_MAX = 3,
};

/* ---- how a program is called ----------------------------------------------------------------- */

static const json_t *main_container(const json_t *pod)
{
	return json_array_get(json_at(pod, "spec", "containers"), 0);
}

/* The value of "--flag=value" or "--flag value"; NULL: it is not given. Borrowed. */
static const char *argument(const json_t *pod, const char *flag)
{
	const json_t *arguments = json_at(main_container(pod), "args");
	size_t len = strlen(flag), i;
	json_t *item;

	json_array_foreach (arguments, i, item) {
		const char *text = json_str_or(item, "");

		if (!str_starts(text, flag))
			continue;
		if (text[len] == '=')
			return text + len + 1;
		if (text[len] == '\0')
			return json_str_or(json_array_get(arguments, i + 1), "");
	}
	return NULL;
}

/* Of the environment; from a ConfigMap of the manifest, if the pod takes it from there. */
static const char *environment(const struct dump *dump, const json_t *pod, const char *name)
{
	const json_t *variable = json_find(json_at(main_container(pod), "env"), "name", name);
	const json_t *from = json_at(variable, "valueFrom", "configMapKeyRef");

	if (from)
		return json_str_at(dump->settings, json_str_or(json_at(from, "name"), ""),
				   json_str_or(json_at(from, "key"), ""));
	return json_str_at(variable, "value");
}

static bool runs(const json_t *pod)
{
	return str_eq(json_str_at(pod, "status", "phase"), "Running");
}

/* One that runs, if there is any. */
static const json_t *find_operator(const struct dump *dump)
{
	const json_t *found = NULL;
	json_t *pod;
	size_t i;

	json_array_foreach (dump->programs, i, pod)
		if (str_eq(json_str_at(pod, "metadata", "labels", "app.kubernetes.io/name"),
			   OPERATOR_NAME) &&
		    (!found || (runs(pod) && !runs(found))))
			found = pod;
	return found;
}

/* "a,b" */
static json_t *list_of(const char *text)
{
	json_t *list = json_array();

	for (const char *at = text; at && *at; at += strspn(at, ",")) {
		size_t len = strcspn(at, ",");

		json_array_append_new(list, json_stringn(at, len));
		at += len;
	}
	return list;
}

static const char *first_of(const char *a, const char *b, const char *otherwise)
{
	return !str_empty(a) ? a : !str_empty(b) ? b : otherwise;
}

json_t *dump_settings(const struct dump *dump)
{
	const struct cli *cli = dump->cli;
	const json_t *pod = find_operator(dump);
	const char *ns = first_of(cli->operator_ns, argument(pod, "--namespace"),
				  pod ? json_namespace(pod) : NULL);
	const char *trusted = first_of(cli->policy_ns, argument(pod, "--policy-namespaces"),
				       environment(dump, pod, "POLICY_NAMESPACES"));
	const char *webhook = first_of(argument(pod, "--webhook-addr"),
				       environment(dump, pod, "WEBHOOK_ADDR"), NULL);
	json_t *settings = json_object();

	json_put_bool(settings, "found", pod != NULL);
	json_put_str(settings, "namespace", ns);
	/* Without an operator as its manifests have it. */
	json_put_str(
		settings, "configNamespace",
		first_of(argument(pod, "--config-namespace"), pod ? ns : NULL, cli->config_ns));
	json_put_str(settings, "resourcePrefix",
		     first_of(argument(pod, "--resource-prefix"), NULL, "spidernet.io"));
	json_put_str(settings, "ciliumConfigMap",
		     first_of(argument(pod, "--cilium-config-map"),
			      environment(dump, pod, "CILIUM_CONFIG_MAP"), NULL));
	json_put(settings, "policyNamespaces", list_of(trusted));
	json_put_bool(settings, "webhooks", webhook != NULL);
	return settings;
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* What a program serves, at the address that a flag names. */
static const struct page {
	const char *program, *flag, *otherwise, *path, *file;
} pages[] = {
	{OPERATOR_NAME, "--metrics-addr", ":8080", "metrics", "metrics.txt"},
	{OPERATOR_NAME, "--health-addr", ":8081", "readyz?verbose", "readyz.txt"},
	{OPERATOR_NAME, "--debug-addr", "0", "debug/queues", "queues.json"},
	{OPERATOR_NAME, "--debug-addr", "0", "debug/caches", "caches.json"},
	{OPERATOR_NAME, "--debug-addr", "0", "debug/connections", "connections.json"},
	{OPERATOR_NAME, "--debug-addr", "0", "debug/errors", "errors.json"},
	{AGENT_NAME, "--metrics-addr", "127.0.0.1:9810", "metrics", "metrics.txt"},
	{AGENT_NAME, "--metrics-addr", "127.0.0.1:9810", "readyz?verbose", "readyz.txt"},
};

static bool is_loopback(const char *address)
{
	return str_starts(address, "127.") || str_starts(address, "[::1]:") ||
	       str_starts(address, "localhost:");
}

/* Are its metrics for those alone who have a token? */
static bool is_secure(const struct dump *dump, const json_t *pod)
{
	const char *flag = argument(pod, "--metrics-secure");

	if (flag)
		return !str_eq(flag, "false");
	return str_eq(environment(dump, pod, "METRICS_SECURE"), "true");
}

char *program_page(const json_t *pod, const char *flag, const char *otherwise, const char *page,
		   char **ret_why)
{
	const char *given = argument(pod, flag), *address = given ? given : otherwise;
	const char *colon = strrchr(address, ':');
	auto_strbuf struct strbuf path = {0};

	assert(pod && ret_why);
	if (str_eq(address, "0"))
		*ret_why = str_printf("%s: nothing is served", flag);
	else if (!colon)
		*ret_why = str_dup("its address has no port");
	else if (is_loopback(address))
		*ret_why = str_printf("%s: %s is reached from the pod alone: start it with "
				      "%s=:%s (docs/metrics.md), or kubectl port-forward -n %s "
				      "pod/%s %s, then curl localhost:%s/%s",
				      flag, address, flag, colon + 1, json_namespace(pod),
				      json_name(pod), colon + 1, colon + 1, page);
	else if (!runs(pod))
		*ret_why = str_dup("the pod does not run");
	else {
		strbuf_adds(&path, "/api/v1/namespaces/");
		kube_path_encode(&path, json_namespace(pod));
		strbuf_adds(&path, "/pods/");
		kube_path_encode(&path, json_name(pod));
		strbuf_addf(&path, ":%s/proxy/%s", colon + 1, page);
		return str_dup(strbuf_str(&path));
	}
	return NULL;
}

/*
 * One page of one pod. *unanswered counts those in a row that did not answer. -1: nothing more can
 * be written.
 */
static int dump_page(struct dump *dump, const json_t *pod, const struct page *page,
		     size_t *unanswered, struct err *err)
{
	auto_free char *what = str_printf("%s /%s", json_name(pod), page->path), *why = NULL;
	auto_free char *path = program_page(pod, page->flag, page->otherwise, page->path, &why);
	auto_strbuf struct strbuf body = {0}, text = {0};
	auto_free char *file = str_printf("programs/%s/%s", json_name(pod), page->file);
	struct err failure = {0};

	if (path && str_eq(page->path, "metrics") && is_secure(dump, pod))
		why = str_dup("--metrics-secure: the API server's proxy has no token for it");
	if (why) {
		dump_skipped(dump, what, why);
		return 0;
	}
	dump_progress(dump, what);
	if (session_get(dump->session, path, PAGE_TIMEOUT_MS, &body, &failure) < 0) {
		(*unanswered)++;
		dump_failed(dump, what, &failure);
		return 0;
	}
	*unanswered = 0;
	scrub_text(dump->scrub, strbuf_str(&body), body.len, &text);
	return dump_add(dump, what, file, &text, -1, err);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static int dump_log(struct dump *dump, const json_t *pod, bool previous, struct err *err)
{
	auto_free char *what = str_printf("%s %slog", json_name(pod), previous ? "previous " : "");
	auto_free char *file =
		str_printf("programs/%s/%slog.txt", json_name(pod), previous ? "previous-" : "");
	auto_strbuf struct strbuf path = {0}, body = {0}, text = {0};
	struct err failure = {0};

	strbuf_adds(&path, "/api/v1/namespaces/");
	kube_path_encode(&path, json_namespace(pod));
	strbuf_adds(&path, "/pods/");
	kube_path_encode(&path, json_name(pod));
	strbuf_adds(&path, "/log?container=");
	kube_path_encode(&path, json_str_or(json_at(main_container(pod), "name"), ""));
	strbuf_addf(&path, "&sinceSeconds=%d&limitBytes=%d%s", LOG_SECONDS, LOG_BYTES_MAX,
		    previous ? "&previous=true" : "");
	dump_progress(dump, what);
	if (session_get(dump->session, strbuf_str(&path), LOG_TIMEOUT_MS, &body, &failure) < 0) {
		dump_failed(dump, what, &failure);
		return 0;
	}
	scrub_text(dump->scrub, strbuf_str(&body), body.len, &text);
	return dump_add(dump, what, file, &text, -1, err);
}

static bool has_restarted(const json_t *pod)
{
	const json_t *status = json_array_get(json_at(pod, "status", "containerStatuses"), 0);

	return json_integer_value(json_at(status, "restartCount")) > 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int dump_program(struct dump *dump, const json_t *pod, const char *program,
			size_t *unanswered, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (str_eq(pages[i].program, program) &&
		    dump_page(dump, pod, &pages[i], unanswered, err) < 0)
			return -1;
	if (dump_log(dump, pod, false, err) < 0)
		return -1;
	return has_restarted(pod) ? dump_log(dump, pod, true, err) : 0;
}

/* Its node, or the pod itself, is not as it should be. */
static bool is_in_trouble(const struct dump *dump, const json_t *pod)
{
	const json_t *ready = json_find(json_at(pod, "status", "conditions"), "type", "Ready");
	const char *node = json_str_or(json_at(pod, "spec", "nodeName"), "");

	return !str_eq(json_str_at(ready, "status"), "True") ||
	       json_object_get(dump->troubled, node);
}

/* Pods of a program: those in trouble, or the others. */
static int dump_pods(struct dump *dump, const char *program, bool in_trouble, size_t *left,
		     size_t *unanswered, struct err *err)
{
	json_t *pod;
	size_t i;

	json_array_foreach (dump->programs, i, pod) {
		if (!str_eq(json_str_at(pod, "metadata", "labels", "app.kubernetes.io/name"),
			    program) ||
		    is_in_trouble(dump, pod) != in_trouble)
			continue;
		if (*left == 0 || *unanswered >= UNANSWERED_MAX) {
			dump_skipped(dump, json_name(pod),
				     *left == 0 ? "pages and logs: those of other pods are there"
						: "pages and logs: the others did not answer");
			continue;
		}
		(*left)--;
		if (dump_program(dump, pod, program, unanswered, err) < 0)
			return -1;
	}
	return 0;
}

int dump_programs(struct dump *dump, struct err *err)
{
	static const char *const programs[] = {OPERATOR_NAME, AGENT_NAME};

	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		size_t left = AGENTS_MAX, unanswered = 0;

		if (dump_pods(dump, programs[i], true, &left, &unanswered, err) < 0 ||
		    dump_pods(dump, programs[i], false, &left, &unanswered, err) < 0)
			return -1;
	}
	return 0;
}
