// SPDX-License-Identifier: Apache-2.0
/* A user's exec section: a command line and an environment, complete but for starting it. */
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/auth/config_internal.h"
#include "lib/kube/auth/exec_credential.h"
#include "lib/kube/auth/secret.h"

/* The cluster's extension that is passed on to plugins. */
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"
#define EXEC_INFO      "KUBERNETES_EXEC_INFO"

static void strings_free(char **list)
{
	for (char **p = list; p && *p; p++)
		secret_free(*p);
	mem_free(list);
}

void config_exec_done(struct kube_exec *exec)
{
	mem_free(exec->command);
	strings_free(exec->args);
	strings_free(exec->env);
	mem_free(exec->api_version);
	mem_free(exec->install_hint);
	*exec = (struct kube_exec){0};
}

static void strings_add(char ***list, size_t *len, char *take)
{
	*list = mem_realloc(*list, (*len + 2) * sizeof(**list));
	(*list)[(*len)++] = take;
	(*list)[*len] = NULL;
}

static int read_version(const struct kubeconfig_entry *exec, struct kube_exec *ret, struct err *err)
{
	const char *version = NULL;

	if (kubeconfig_str(exec, "apiVersion", &version, err) < 0)
		return -1;
	if (!version)
		return kubeconfig_bad(exec, err,
				      "exec.apiVersion is missing, must be " EXEC_CREDENTIAL_V1);
	if (!str_eq(version, EXEC_CREDENTIAL_V1) && !str_eq(version, EXEC_CREDENTIAL_V1BETA1))
		return kubeconfig_bad(
			exec, err,
			"exec.apiVersion \"%s\" is not known, must be " EXEC_CREDENTIAL_V1
			" or …/v1beta1",
			version);
	ret->api_version = str_dup(version);
	return 0;
}

/*
 * No user is at our terminal, so a plugin that needs one cannot work. v1beta1 has a default, v1 has
 * none.
 */
static int check_interactive_mode(const struct kubeconfig_entry *exec, const struct kube_exec *ret,
				  struct err *err)
{
	const char *mode = NULL;

	if (kubeconfig_str(exec, "interactiveMode", &mode, err) < 0)
		return -1;
	if (!mode && str_eq(ret->api_version, EXEC_CREDENTIAL_V1))
		return kubeconfig_bad(
			exec, err, "exec.interactiveMode is missing, must be Never or IfAvailable");
	if (!mode || str_eq(mode, "Never") || str_eq(mode, "IfAvailable"))
		return 0;
	if (str_eq(mode, "Always"))
		return kubeconfig_bad(
			exec, err,
			"exec.interactiveMode is Always, but a plugin has no terminal here; use a "
			"plugin that works without");
	return kubeconfig_bad(
		exec, err, "exec.interactiveMode \"%s\" is not known, must be Never or IfAvailable",
		mode);
}

static int read_command(const struct kubeconfig_entry *exec, struct kube_exec *ret, struct err *err)
{
	const char *command = NULL, *hint = NULL;
	const json_t *args = NULL, *arg;
	size_t i, len = 0;

	if (kubeconfig_str(exec, "command", &command, err) < 0 ||
	    kubeconfig_strings(exec, "args", &args, err) < 0)
		return -1;
	if (!command)
		return kubeconfig_bad(exec, err,
				      "exec.command is missing, must name the plugin's program");
	/* A bare name is looked up in $PATH, anything else is a file like those of other fields. */
	ret->command = strchr(command, '/') ? kubeconfig_path(exec, command) : str_dup(command);
	ret->args = mem_calloc(1, sizeof(*ret->args));
	json_array_foreach (args, i, arg)
		strings_add(&ret->args, &len, str_dup(json_string_value(arg)));

	/* Free text of several lines; err_set makes one of them. */
	hint = json_str_at(exec->body, "installHint");
	ret->install_hint = str_empty(hint) ? NULL : str_dup(hint);
	return 0;
}

static bool is_named(const char *pair, const char *name)
{
	size_t len = strlen(name);

	return strncmp(pair, name, len) == 0 && pair[len] == '=';
}

/* Is the variable set by the kubeconfig, or by us? */
static bool is_overridden(const char *pair, const json_t *env)
{
	const json_t *variable;
	size_t i;

	json_array_foreach (env, i, variable)
		if (is_named(pair, json_str_at(variable, "name")))
			return true;
	return is_named(pair, EXEC_INFO);
}

static int check_env(const struct kubeconfig_entry *exec, const json_t *env, struct err *err)
{
	const json_t *variable;
	size_t i;

	json_array_foreach (env, i, variable) {
		const json_t *value = json_at(variable, "value");
		const char *name = json_str_at(variable, "name");

		if (str_empty(name) || strchr(name, '='))
			return kubeconfig_bad(
				exec, err,
				"exec.env[%zu].name is %s, must be the name of a variable", i,
				str_empty(name) ? "missing" : "with a \"=\"");
		if (value && !json_is_string(value))
			return kubeconfig_bad(
				exec, err,
				"exec.env[%zu].value is %s, must be a string (put it in quotes)", i,
				json_type_words(value));
	}
	return 0;
}

/* The cluster as plugins see it: the kubeconfig's names, the CA always as data. */
static int describe_cluster(const struct kubeconfig_entry *cluster,
			    const struct kube_config *config, json_t *out, struct err *err)
{
	auto_strbuf struct strbuf ca = {0};
	const json_t *extensions = NULL, *extension;
	const char *proxy = NULL;
	size_t i;

	if (kubeconfig_objects(cluster, "extensions", &extensions, err) < 0 ||
	    kubeconfig_str(cluster, "proxy-url", &proxy, err) < 0)
		return -1;
	json_put_str(out, "server", config->server);
	json_put_str(out, "tls-server-name", config->tls_server_name);
	json_put_str(out, "proxy-url", proxy);
	if (config->insecure)
		json_put_bool(out, "insecure-skip-tls-verify", true);
	if (config->ca_pem) {
		base64_encode(config->ca_pem, strlen(config->ca_pem), &ca);
		json_put_str(out, "certificate-authority-data", strbuf_str(&ca));
	}
	json_array_foreach (extensions, i, extension)
		if (str_eq(json_str_at(extension, "name"), EXEC_EXTENSION))
			json_put(out, "config", json_deep_copy(json_at(extension, "extension")));
	return 0;
}

int config_read_exec(const struct kubeconfig_entry *exec, const struct kubeconfig_entry *cluster,
		     const char *const *envp, const struct kube_config *config,
		     struct kube_exec *ret, struct err *err)
{
	json_auto_t *about = json_object();
	auto_free char *info = NULL;
	bool tell = false;
	const json_t *env = NULL, *variable;
	size_t i, len = 0;

	if (read_version(exec, ret, err) < 0 || check_interactive_mode(exec, ret, err) < 0 ||
	    read_command(exec, ret, err) < 0 ||
	    kubeconfig_bool(exec, "provideClusterInfo", &tell, err) < 0)
		return -1;
	if (tell && describe_cluster(cluster, config, about, err) < 0)
		return -1;
	info = exec_credential_info(ret->api_version, tell ? about : NULL);
	if (kubeconfig_objects(exec, "env", &env, err) < 0 || check_env(exec, env, err) < 0)
		return -1;
	for (; envp && *envp; envp++)
		if (!is_overridden(*envp, env))
			strings_add(&ret->env, &len, str_dup(*envp));
	json_array_foreach (env, i, variable)
		strings_add(&ret->env, &len,
			    str_printf("%s=%s", json_str_at(variable, "name"),
				       json_str_or(json_at(variable, "value"), "")));
	strings_add(&ret->env, &len, str_printf(EXEC_INFO "=%s", info));
	return 0;
}
