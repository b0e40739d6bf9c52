// SPDX-License-Identifier: Apache-2.0
/*
 * A kubeconfig from anywhere: read or refused with one line, the same each time, and what was read
 * holds together. Files that it names are looked up in an empty folder.
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/auth/config.h"
#include "tests/fuzz/fuzz.h"

/* Deep inside, so that ".." does not lead out of it at once. */
static char root[] = "/tmp/orbweaver-fuzz.XXXXXX/a/b/c/d/e/f/g/h";

static void remove_root(void)
{
	char *slash = root + strlen(root);

	while (slash && slash - root > (ptrdiff_t)strlen("/tmp")) {
		*slash = '\0';
		(void)rmdir(root);
		slash = strrchr(root, '/');
	}
}

static void make_root(void)
{
	char *end = strchr(root + strlen("/tmp/"), '/');

	*end = '\0';
	if (!mkdtemp(root))
		abort();
	*end = '/';
	(void)atexit(remove_root);
}

static void check(const struct kube_config *c)
{
	const struct kube_auth *auth = &c->auth;

	if (!c->origin || !c->server || !c->host || !c->port || !c->path)
		abort();
	if (!str_starts(c->server, c->tls ? "https://" : "http://"))
		abort();
	if ((c->insecure && c->ca_pem) || !auth->client_cert_pem != !auth->client_key_pem)
		abort();
	/* Nothing that would break a header or a log line. */
	for (const char *p = c->server; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			abort();
	switch (auth->kind) {
	case KUBE_AUTH_NONE:
		break;
	case KUBE_AUTH_TOKEN:
	case KUBE_AUTH_TOKEN_FILE:
		if (!auth->token || strpbrk(auth->token, " \r\n"))
			abort();
		break;
	case KUBE_AUTH_BASIC:
		if (!auth->username || !auth->password || strchr(auth->username, ':'))
			abort();
		break;
	case KUBE_AUTH_EXEC:
		if (!auth->exec.command || !auth->exec.args || !auth->exec.env ||
		    !auth->exec.api_version)
			abort();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const envp[] = {"PATH=/bin", "HOME=/root", NULL};
	struct kube_config_source src = {.kubeconfig = "/k/config", .envp = envp, .root = root};
	struct kube_config a = {0}, b = {0};
	struct err err_a = {0}, err_b = {0};
	int result;

	if (strstr(root, "XXXXXX")) {
		json_init();
		make_root();
	}
	result = kube_config_parse(&src, (const char *)data, size, &a, &err_a);
	if (result != kube_config_parse(&src, (const char *)data, size, &b, &err_b) ||
	    !str_eq(err_a.text, err_b.text) || !str_eq(a.server, b.server))
		abort();
	if (result == 0)
		check(&a);
	else if (!*err_a.text || strpbrk(err_a.text, "\r\n") || a.server)
		abort();
	kube_config_done(&a);
	kube_config_done(&b);
	return 0;
}
