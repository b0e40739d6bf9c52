// SPDX-License-Identifier: Apache-2.0
/* Where to look, in which order, and what comes together from there. */
#include "lib/kube/auth/config.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/auth/config_internal.h"
#include "lib/kube/auth/endpoint.h"
#include "lib/kube/auth/file.h"
#include "lib/kube/auth/kubeconfig.h"
#include "lib/kube/auth/pem.h"
#include "lib/kube/auth/secret.h"

#define auto_config auto_call(kube_config_done)

void kube_config_done(struct kube_config *config)
{
	mem_free(config->origin);
	mem_free(config->server);
	mem_free(config->host);
	mem_free(config->path);
	mem_free(config->ca_pem);
	mem_free(config->ca_file);
	mem_free(config->tls_server_name);
	secret_free(config->proxy);
	mem_free(config->namespace);
	secret_free(config->auth.token);
	mem_free(config->auth.token_file);
	mem_free(config->auth.username);
	secret_free(config->auth.password);
	config_exec_done(&config->auth.exec);
	mem_free(config->auth.client_cert_pem);
	secret_free(config->auth.client_key_pem);
	mem_free(config->auth.client_cert_file);
	mem_free(config->auth.client_key_file);
	*config = (struct kube_config){0};
}

/* The value of an environment variable, or NULL. Borrowed. */
static const char *get_env(const char *const *envp, const char *name)
{
	size_t len = strlen(name);

	for (; envp && *envp; envp++)
		if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
			return *envp + len + 1;
	return NULL;
}

static const char *root_of(const struct kube_config_source *src)
{
	return src->root ? src->root : "";
}

/* ---- kubeconfig ------------------------------------------------------------------------------ */

/* RFC 1123 label: what the API server accepts as a namespace's name. */
static bool is_namespace(const char *s)
{
	size_t len = strlen(s);

	if (len < 1 || len > 63 || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (; *s; s++)
		if (!islower((unsigned char)*s) && !isdigit((unsigned char)*s) && *s != '-')
			return false;
	return true;
}

static int read_namespace(const struct kubeconfig_entry *context, struct kube_config *config,
			  struct err *err)
{
	const char *name = NULL;

	if (kubeconfig_str(context, "namespace", &name, err) < 0)
		return -1;
	if (name && !is_namespace(name))
		return kubeconfig_bad(
			context, err,
			"namespace \"%s\" is no name of a namespace, must be up to 63 of a-z, 0-9 "
			"and \"-\"",
			name);
	config->namespace = str_dup(name);
	return 0;
}

/*
 * Nothing that proves who we are goes over a wire in clear text. `kubectl proxy` on this machine is
 * fine.
 */
static int check_plain_text(const struct kubeconfig_entry *user, const struct kube_config *config,
			    struct err *err)
{
	struct endpoint server = {.host = config->host};

	if (config->tls)
		return 0;
	if (config->auth.client_cert_pem)
		return kubeconfig_bad(
			user, err,
			"has a client certificate, but %s is without TLS; use https:// or remove "
			"client-certificate",
			config->server);
	if (config->auth.kind != KUBE_AUTH_NONE && !endpoint_is_loopback(&server))
		return kubeconfig_bad(user, err,
				      "its credentials would go to %s in clear text; use https://",
				      config->server);
	return 0;
}

static int assemble(const struct kube_config_source *src, const struct kubeconfig *k,
		    struct kube_config *ret, struct err *err)
{
	struct kubeconfig_entry context = {0}, cluster = {0}, user = {0};
	auto_config struct kube_config config = {0};
	auto_free char *subject = kubeconfig_subject(k);

	if (kubeconfig_context(k, src->context, &context, err) < 0 ||
	    kubeconfig_follow(&context, KUBECONFIG_CLUSTERS, &cluster, err) < 0 ||
	    kubeconfig_follow(&context, KUBECONFIG_USERS, &user, err) < 0)
		return -1;
	config.origin = str_printf("%s, context \"%s\"", subject, context.name);
	if (read_namespace(&context, &config, err) < 0 ||
	    config_read_cluster(&cluster, &config, err) < 0 ||
	    config_read_user(&user, &cluster, src->envp, &config, err) < 0 ||
	    check_plain_text(&user, &config, err) < 0)
		return -1;
	*ret = config;
	config = (struct kube_config){0};
	return 0;
}

int kube_config_parse(const struct kube_config_source *src, const char *text, size_t len,
		      struct kube_config *ret, struct err *err)
{
	auto_kubeconfig struct kubeconfig k = {.root = root_of(src)};

	assert(src && ret);
	if (kubeconfig_add_text(&k, src->kubeconfig, text, len, err) < 0)
		return -1;
	return assemble(src, &k, ret, err);
}

/* ---- in-cluster ------------------------------------------------------------------------------ */

static char *service_account_file(const struct kube_config_source *src, const char *name)
{
	return str_printf("%s%s/%s", root_of(src), KUBE_SERVICE_ACCOUNT_DIR, name);
}

static bool file_exists(const struct kube_config_source *src, const char *path)
{
	auto_free char *real = str_printf("%s%s", root_of(src), path);
	struct stat st;

	return stat(real, &st) == 0;
}

/*
 * In a pod without a mounted token (automountServiceAccountToken: false) a kubeconfig gets its
 * chance.
 */
static bool in_cluster_is_possible(const struct kube_config_source *src)
{
	return !str_empty(get_env(src->envp, "KUBERNETES_SERVICE_HOST")) &&
	       !str_empty(get_env(src->envp, "KUBERNETES_SERVICE_PORT")) &&
	       file_exists(src, KUBE_SERVICE_ACCOUNT_DIR "/token");
}

static int in_cluster_ca(const struct kube_config_source *src, struct kube_config *config,
			 struct err *err)
{
	auto_free char *path = service_account_file(src, "ca.crt");
	auto_strbuf struct strbuf pem = {0};

	if (file_read(path, KUBE_CONFIG_MAX_PEM, &pem, NULL, err) < 0)
		return err_in(err, "%s", config->origin);
	if (pem_check(strbuf_str(&pem), pem.len, PEM_CERTIFICATES, err) < 0)
		return err_in(err, "%s: %s", config->origin, path);
	config->ca_pem = strbuf_take(&pem);
	config->ca_file = take_ptr(path);
	return 0;
}

static int load_in_cluster(const struct kube_config_source *src, struct kube_config *ret,
			   struct err *err)
{
	auto_config struct kube_config config = {0};
	const char *host;
	const char *port;
	bool v6;
	auto_free char *url = NULL;
	auto_endpoint struct endpoint server = {0};
	auto_free char *path = NULL;
	auto_strbuf struct strbuf text = {0};

	config.origin = str_dup("the pod's service account");
	config.auth.kind = KUBE_AUTH_TOKEN_FILE;
	config.auth.token_file = service_account_file(src, "token");
	if (config_read_token(config.auth.token_file, &config.auth.token, err) < 0)
		return err_in(err, "%s", config.origin);
	host = get_env(src->envp, "KUBERNETES_SERVICE_HOST");
	port = get_env(src->envp, "KUBERNETES_SERVICE_PORT");
	v6 = strchr(host, ':');
	url = str_printf(v6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
	if (endpoint_parse_server(url, &server, NULL) < 0 || *server.path)
		return err_set(err, ERR_INVALID, "BadKubeconfig",
			       "the environment's KUBERNETES_SERVICE_HOST \"%s\" and "
			       "KUBERNETES_SERVICE_PORT "
			       "\"%s\" are no address and port",
			       host, port);
	config_set_server(&config, &server);
	if (in_cluster_ca(src, &config, err) < 0)
		return -1;
	/* Not every mount has it, and who needs a namespace has an own flag. */
	path = service_account_file(src, "namespace");
	if (file_read(path, 256, &text, NULL, NULL) == 0 && is_namespace(strbuf_str(&text)))
		config.namespace = strbuf_take(&text);
	*ret = config;
	config = (struct kube_config){0};
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Files of a list like $KUBECONFIG's that exist; as for kubectl, the others do not count. */
static int add_listed(const struct kube_config_source *src, const char *list, struct kubeconfig *k,
		      struct err *err)
{
	size_t files = 0;

	for (const char *p = list; *p; p += *p == ':') {
		size_t len = strcspn(p, ":");
		auto_free char *path = str_ndup(p, len);

		p += len;
		if (!*path || !file_exists(src, path))
			continue;
		if (++files > KUBE_CONFIG_MAX_FILES)
			return err_set(err, ERR_INVALID, "BadKubeconfig",
				       "KUBECONFIG lists more than %d files",
				       KUBE_CONFIG_MAX_FILES);
		if (kubeconfig_add_file(k, path, err) < 0)
			return -1;
	}
	return 0;
}

static int load_from_environment(const struct kube_config_source *src, struct kube_config *ret,
				 struct err *err)
{
	const char *list = get_env(src->envp, "KUBECONFIG");
	const char *home_dir = get_env(src->envp, "HOME");
	auto_free char *home = str_empty(home_dir) ? NULL : str_printf("%s/.kube/config", home_dir);
	auto_kubeconfig struct kubeconfig k = {.root = root_of(src)};

	if (list && *list) {
		if (add_listed(src, list, &k, err) < 0)
			return -1;
	} else if (home && file_exists(src, home)) {
		if (kubeconfig_add_file(&k, home, err) < 0)
			return -1;
	}
	if (!k.len) {
		bool in_pod = !str_empty(get_env(src->envp, "KUBERNETES_SERVICE_HOST"));
		const char *pod = !str_empty(src->context) ? "a context was asked for"
				  : in_pod ? "no token is in " KUBE_SERVICE_ACCOUNT_DIR
					   : "this is no pod";
		auto_free char *file = NULL;

		if (!str_empty(list))
			file = str_printf("none of KUBECONFIG's files (%s) exists", list);
		else if (home)
			file = str_printf("KUBECONFIG is not set, %s does not exist", home);
		else
			file = str_dup("neither KUBECONFIG nor HOME is set");
		return err_set(
			err, ERR_INVALID, "NoKubeconfig",
			"nothing says where the API server is: %s, %s; use --kubeconfig FILE", pod,
			file);
	}
	return assemble(src, &k, ret, err);
}

int kube_config_load(const struct kube_config_source *src, struct kube_config *ret, struct err *err)
{
	assert(src && ret);
	if (!str_empty(src->kubeconfig)) {
		auto_kubeconfig struct kubeconfig k = {.root = root_of(src)};

		if (kubeconfig_add_file(&k, src->kubeconfig, err) < 0)
			return -1;
		return assemble(src, &k, ret, err);
	}
	/* A service account has no contexts: a user that names one means a kubeconfig. */
	if (str_empty(src->context) && in_cluster_is_possible(src))
		return load_in_cluster(src, ret, err);
	return load_from_environment(src, ret, err);
}
