// SPDX-License-Identifier: Apache-2.0
/*
 * Whatever an exec plugin prints: credentials that can be used, or one line that shows nothing of
 * it.
 */
#include <stdint.h>
#include <stdlib.h>

#include "lib/json/json.h"
#include "lib/kube/auth/exec_credential.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct exec_credential *c)
{
	if (!c->token && !c->cert_pem)
		abort();
	if (!c->cert_pem != !c->key_pem)
		abort();
	for (const char *p = c->token; p && *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	struct exec_credential c = {0};
	struct err err = {0};

	if (!ready)
		json_init();
	ready = true;
	if (exec_credential_parse((const char *)data, size, EXEC_CREDENTIAL_V1, &c, &err) == 0)
		check(&c);
	else if (!*err.text || c.token || c.cert_pem || c.key_pem)
		abort();
	exec_credential_done(&c);
	return 0;
}
