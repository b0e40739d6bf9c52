// SPDX-License-Identifier: Apache-2.0
/* Field by field; every message leaves values out. */
#include "lib/kube/auth/exec_credential.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/auth/pem.h"
#include "lib/kube/auth/secret.h"

void exec_credential_done(struct exec_credential *credential)
{
	secret_free(credential->token);
	mem_free(credential->cert_pem);
	secret_free(credential->key_pem);
	*credential = (struct exec_credential){0};
}

/* Is it the object we asked for? */
static int check_header(const json_t *json, const char *api_version, struct err *err)
{
	const char *kind = json_str_at(json, "kind"), *version = json_str_at(json, "apiVersion");

	if (!str_eq(kind, "ExecCredential"))
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed an object of another kind, must print kind ExecCredential");
	if (str_eq(version, api_version))
		return 0;
	if (str_eq(version, EXEC_CREDENTIAL_V1) || str_eq(version, EXEC_CREDENTIAL_V1BETA1))
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed an ExecCredential of apiVersion %s, but the kubeconfig "
			       "asks for %s; set "
			       "exec.apiVersion to what the plugin speaks",
			       version, api_version);
	return err_set(err, ERR_INVALID, "BadExecCredential",
		       "printed an ExecCredential of an unknown apiVersion, must be %s",
		       api_version);
}

/* "" counts as absent, as in Go's JSON. */
static int get(const json_t *status, const char *key, const char **ret, struct err *err)
{
	const json_t *value = json_at(status, key);
	const char *text = json_string_value(value);
	auto_free char *field = str_printf("status.%s", key);

	if (value && !text)
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed an ExecCredential whose %s is %s, must be a string", field,
			       json_type_words(value));
	*ret = str_empty(text) ? NULL : text;
	return 0;
}

static int get_pem(const json_t *status, const char *key, enum pem_kind kind, char **ret,
		   struct err *err)
{
	const char *pem = NULL;
	struct err bad = {0};

	if (get(status, key, &pem, err) < 0)
		return -1;
	if (pem && pem_check(pem, strlen(pem), kind, &bad) < 0)
		return err_set(err, ERR_INVALID, "BadExecCredential", "printed a status.%s that %s",
			       key, bad.text);
	*ret = str_dup(pem);
	return 0;
}

static int get_status(const json_t *json, struct exec_credential *c, struct err *err)
{
	const json_t *status = json_at(json, "status");
	const char *token = NULL;
	const char *text = NULL;

	if (!json_is_object(status))
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed an ExecCredential without a status");
	if (get(status, "token", &token, err) < 0)
		return -1;
	if (token && !secret_is_token(token))
		return err_set(
			err, ERR_INVALID, "BadExecCredential",
			"printed a status.token with blanks, control or non-ASCII characters");
	c->token = str_dup(token);
	if (get_pem(status, "clientCertificateData", PEM_CERTIFICATES, &c->cert_pem, err) < 0 ||
	    get_pem(status, "clientKeyData", PEM_PRIVATE_KEY, &c->key_pem, err) < 0)
		return -1;
	c->expires_us = INT64_MAX;
	if (get(status, "expirationTimestamp", &text, err) < 0)
		return -1;
	if (text && !rfc3339_read(text, &c->expires_us))
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed a status.expirationTimestamp that is no time, must be like "
			       "2026-01-31T10:00:00Z");
	if (!c->cert_pem != !c->key_pem)
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed status.clientCertificateData or status.clientKeyData "
			       "alone, must print "
			       "both or neither");
	if (!c->token && !c->cert_pem)
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed neither status.token nor status.clientCertificateData");
	return 0;
}

int exec_credential_parse(const char *text, size_t len, const char *api_version,
			  struct exec_credential *ret, struct err *err)
{
	auto_exec_credential struct exec_credential c = {0};
	/* The parser's own words may quote from the text. */
	json_auto_t *json = json_parse(text, len, NULL);

	assert(api_version && ret);
	if (!json)
		return err_set(
			err, ERR_INVALID, "BadExecCredential",
			len ? "printed something that is not JSON, must print an ExecCredential"
			    : "printed nothing, must print an ExecCredential");
	if (!json_is_object(json))
		return err_set(err, ERR_INVALID, "BadExecCredential",
			       "printed %s, must print an ExecCredential", json_type_words(json));
	if (check_header(json, api_version, err) < 0 || get_status(json, &c, err) < 0)
		return -1;
	*ret = c;
	c = (struct exec_credential){0};
	return 0;
}

char *exec_credential_info(const char *api_version, const json_t *cluster)
{
	json_auto_t *info = json_object();
	json_t *spec = json_need_object(info, "spec");

	json_put_str(info, "apiVersion", api_version);
	json_put_str(info, "kind", "ExecCredential");
	json_put_bool(spec, "interactive", false);
	if (cluster)
		json_put(spec, "cluster", json_deep_copy(cluster));
	return json_text(info);
}
