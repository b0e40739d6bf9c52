// SPDX-License-Identifier: Apache-2.0
/* A kubeconfig's user: one way to prove who we are, perhaps with a client certificate besides. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/auth/config_internal.h"
#include "lib/kube/auth/file.h"
#include "lib/kube/auth/pem.h"
#include "lib/kube/auth/secret.h"

/* Half of what these ask for would be worse than nothing: say so. */
static int refuse_unsupported(const struct kubeconfig_entry *user, struct err *err)
{
	static const char *const impersonation[] = {"as", "as-uid", "as-groups", "as-user-extra"};

	for (size_t i = 0; i < ARRAY_LEN(impersonation); i++)
		if (json_at(user->body, impersonation[i]))
			return kubeconfig_bad(
				user, err,
				"%s: impersonation is not supported; use a user that needs none",
				impersonation[i]);
	if (json_at(user->body, "auth-provider"))
		return kubeconfig_bad(user, err,
				      "auth-provider is not supported; use an exec plugin");
	return 0;
}

static int read_certificate(const struct kubeconfig_entry *user, struct kube_auth *auth,
			    struct err *err)
{
	if (kubeconfig_pem(user, "client-certificate", PEM_CERTIFICATES, &auth->client_cert_pem,
			   &auth->client_cert_file, err) < 0 ||
	    kubeconfig_pem(user, "client-key", PEM_PRIVATE_KEY, &auth->client_key_pem,
			   &auth->client_key_file, err) < 0)
		return -1;
	if (!auth->client_cert_pem == !auth->client_key_pem)
		return 0;
	return kubeconfig_bad(user, err, "has a %s without a %s; give both or neither",
			      auth->client_cert_pem ? "client-certificate" : "client-key",
			      auth->client_cert_pem ? "client-key" : "client-certificate");
}

int config_trim_token(const char *path, const char *text, size_t len, char **ret, struct err *err)
{
	auto_secret char *token = NULL;

	assert(path && ret);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	while (len > 0 && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (!len)
		return err_set(err, ERR_INVALID, "BadToken", "%s is empty, must hold a token",
			       path);
	token = str_ndup(text, len);
	if (strlen(token) != len || !secret_is_token(token))
		return err_set(err, ERR_INVALID, "BadToken",
			       "%s holds blanks or control characters inside the token, must hold "
			       "a token only",
			       path);
	*ret = take_ptr(token);
	return 0;
}

int config_read_token(const char *path, char **ret, struct err *err)
{
	auto_secret_buf struct strbuf text = {0};

	if (file_read(path, KUBE_CONFIG_MAX_TOKEN, &text, NULL, err) < 0)
		return -1;
	return config_trim_token(path, strbuf_str(&text), text.len, ret, err);
}

static int read_token(const struct kubeconfig_entry *user, struct kube_auth *auth, struct err *err)
{
	const char *token = NULL, *path = NULL;

	if (kubeconfig_str(user, "token", &token, err) < 0 ||
	    kubeconfig_str(user, "tokenFile", &path, err) < 0)
		return -1;
	if (token && !secret_is_token(token))
		return kubeconfig_bad(
			user, err,
			"token holds characters that no token has (blanks or non-ASCII)");
	if (token) {
		auth->kind = KUBE_AUTH_TOKEN;
		auth->token = str_dup(token);
	}
	if (!path)
		return 0;
	auth->kind = KUBE_AUTH_TOKEN_FILE;
	auth->token_file = kubeconfig_path(user, path);
	/* With a token to start with, the file may come later. */
	if (!token && config_read_token(auth->token_file, &auth->token, err) < 0)
		return kubeconfig_in(user, "tokenFile", err);
	return 0;
}

static int read_basic(const struct kubeconfig_entry *user, struct kube_auth *auth, struct err *err)
{
	const char *name = NULL, *password = NULL;

	if (kubeconfig_str(user, "username", &name, err) < 0 ||
	    kubeconfig_str(user, "password", &password, err) < 0)
		return -1;
	if (!name && !password)
		return 0;
	if (!name)
		return kubeconfig_bad(user, err, "has a password without a username; give both");
	/* RFC 7617 section 2: the first colon ends the user name. */
	if (strchr(name, ':'))
		return kubeconfig_bad(
			user, err,
			"username holds a \":\", which HTTP basic authentication cannot carry");
	auth->username = str_dup(name);
	auth->password = str_dup(password ? password : "");
	return 0;
}

/* Exactly one way, so that users need not guess which of them the server saw. */
static int choose_kind(const struct kubeconfig_entry *user, const struct kubeconfig_entry *exec,
		       struct kube_auth *auth, struct err *err)
{
	const char *token = auth->token_file ? "tokenFile" : auth->token ? "token" : NULL;
	const char *basic = auth->username ? "username" : NULL;
	const char *plugin = exec->body ? "exec" : NULL;
	const char *first = token ? token : basic, *second = plugin ? plugin : basic;

	if (first && second && first != second)
		return kubeconfig_bad(user, err, "has both %s and %s, only one is allowed", first,
				      second);
	if (plugin && auth->client_cert_pem)
		return kubeconfig_bad(user, err,
				      "has both client-certificate and exec, only one is allowed");
	if (plugin)
		auth->kind = KUBE_AUTH_EXEC;
	else if (basic)
		auth->kind = KUBE_AUTH_BASIC;
	return 0;
}

int config_read_user(const struct kubeconfig_entry *user, const struct kubeconfig_entry *cluster,
		     const char *const *envp, struct kube_config *config, struct err *err)
{
	struct kube_auth *auth = &config->auth;
	struct kubeconfig_entry exec = {0};

	if (refuse_unsupported(user, err) < 0 || read_certificate(user, auth, err) < 0 ||
	    read_token(user, auth, err) < 0 || read_basic(user, auth, err) < 0 ||
	    kubeconfig_object(user, "exec", "exec.", &exec, err) < 0 ||
	    choose_kind(user, &exec, auth, err) < 0)
		return -1;
	if (auth->kind != KUBE_AUTH_EXEC)
		return 0;
	return config_read_exec(&exec, cluster, envp, config, &auth->exec, err);
}
