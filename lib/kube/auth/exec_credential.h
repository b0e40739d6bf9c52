// SPDX-License-Identifier: Apache-2.0
/*
 * What goes into an exec plugin and what comes out: ExecCredential objects as JSON text. Pure.
 *
 * https://kubernetes.io/docs/reference/config-api/client-authentication.v1/ (v1beta1 has the same
 * fields).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define EXEC_CREDENTIAL_V1      "client.authentication.k8s.io/v1"
#define EXEC_CREDENTIAL_V1BETA1 "client.authentication.k8s.io/v1beta1"

struct exec_credential {
	char *token;    /* NULL: none */
	char *cert_pem; /* both or neither */
	char *key_pem;
	int64_t expires_us; /* wall clock, microseconds since the epoch; INT64_MAX: not said */
};

/*
 * What a plugin printed. On failure -1, ret untouched, ERR_INVALID "BadExecCredential" with a text
 * that continues after the plugin's name and quotes nothing of what may be secret.
 */
int exec_credential_parse(const char *text, size_t len, const char *api_version,
			  struct exec_credential *ret, struct err *err);
void exec_credential_done(struct exec_credential *credential);

#define auto_exec_credential auto_call(exec_credential_done)

/*
 * The value of KUBERNETES_EXEC_INFO. cluster (borrowed) is its spec.cluster, or NULL. We have no
 * terminal to offer, so spec.interactive is false. Returns new; free().
 */
char *exec_credential_info(const char *api_version, const json_t *cluster);
