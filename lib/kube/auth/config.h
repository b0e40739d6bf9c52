// SPDX-License-Identifier: Apache-2.0
/*
 * Where the API server is and how to prove who we are: kubeconfigs and service accounts, read once
 * into plain data.
 *
 * The transport takes the address and the trust from here, and what it proves itself with from
 * credentials.h. Nothing here opens a connection; environment and file system come in as arguments.
 *
 * Facts: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ (fields),
 * https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/ (merging),
 * https://kubernetes.io/docs/reference/config-api/client-authentication.v1/ (exec plugins).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Larger files are refused. */
#define KUBE_CONFIG_MAX_FILE  (4 * 1024 * 1024)
#define KUBE_CONFIG_MAX_PEM   (1024 * 1024)
#define KUBE_CONFIG_MAX_TOKEN (64 * 1024)
/* Files that $KUBECONFIG may list. */
#define KUBE_CONFIG_MAX_FILES 64

#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* Where to look; all borrowed. Usually `struct kube_config_source src = {.envp = environ};`. */
struct kube_config_source {
	/* --kubeconfig: this file and nothing else. NULL or "": look around. */
	const char *kubeconfig;
	/* --context: this one in place of current-context. NULL or "": none. */
	const char *context;
	/* "NAME=value", NULL at the end; NULL: empty. Exec plugins get it as well. */
	const char *const *envp;
	/* A folder that stands for "/", for tests. NULL or "": the real one. */
	const char *root;
};

/*
 * How each request proves who sends it. Besides that, a client certificate may be given with all
 * but KUBE_AUTH_EXEC.
 */
enum kube_auth_kind {
	KUBE_AUTH_NONE,       /* anonymous, or by client certificate alone */
	KUBE_AUTH_TOKEN,      /* token */
	KUBE_AUTH_TOKEN_FILE, /* token_file; token serves while it cannot be read */
	KUBE_AUTH_BASIC,      /* username and password */
	KUBE_AUTH_EXEC,       /* exec: a program prints a token, or a certificate and key */
};

struct kube_exec {
	char *command;      /* a path, or a name to look up in $PATH */
	char **args;        /* NULL at the end, without the command itself; never NULL */
	char **env;         /* "NAME=value", NULL at the end: ours, the kubeconfig's, EXEC_INFO */
	char *api_version;  /* client.authentication.k8s.io/v1 or …/v1beta1, also of the answer */
	char *install_hint; /* what to do when the command is missing; NULL: not said */
};

struct kube_auth {
	enum kube_auth_kind kind;
	char *token;
	char *token_file;
	char *username;
	char *password;
	struct kube_exec exec;
	/*
	 * Both or neither. PEM text, checked; the files, when they come from files, are read again
	 * as they change.
	 */
	char *client_cert_pem;
	char *client_key_pem;
	char *client_cert_file;
	char *client_key_file;
};

/*
 * Strings are owned; NULL where a thing is not said. File names are as open(2) wants them, `root`
 * included.
 */
struct kube_config {
	/* for messages: `kubeconfig /x, context "prod"`, "the pod's service account" */
	char *origin;

	char *server; /* "https://host:port/path": always a port, never a slash at the end */
	char *host;   /* without the brackets of an IPv6 address */
	uint16_t port;
	char *path; /* "" or "/prefix" */
	bool tls;   /* false: http:// was asked for in so many words */

	char *ca_pem;          /* trust these only; NULL: the system's */
	char *ca_file;         /* where they come from, to be read again as it changes; or NULL */
	char *tls_server_name; /* name to ask for and to verify in place of host */
	bool insecure;         /* do not verify the server; never true together with ca_pem */
	char *proxy; /* as libcurl takes it; NULL: what the environment ($HTTPS_PROXY, …) says */

	char *namespace;
	struct kube_auth auth;
};

/*
 * Find and read the configuration. In this order: src->kubeconfig; the pod's service account (when
 * $KUBERNETES_SERVICE_HOST and …_PORT are set, a token is mounted, and no context is asked for by
 * name); the files of $KUBECONFIG, merged; $HOME/.kube/config.
 *
 * ret is filled; give it to kube_config_done. On failure: -1, ret untouched, err ERR_INVALID with
 * one of
 *	"NoKubeconfig"	nothing found in any place
 *	"BadKubeconfig"	a field is missing, contradicts another or cannot be understood
 *	"BadYaml"	the file is not YAML
 *	"BadUrl"	of a server or a proxy
 *	"BadBase64", "BadPem", "BadToken"	a certificate, key or token is not one
 * or, for files, what fs_read says. The text names file, entry and field, never a secret.
 *
 * Refused although kubectl takes them, because half-doing them would surprise: impersonation (as,
 * as-groups, …), auth-provider, an exec plugin with interactiveMode Always, a server without a
 * scheme, and credentials for an http:// server that is not on this machine.
 */
int kube_config_load(const struct kube_config_source *src, struct kube_config *ret,
		     struct err *err);

/*
 * The same for one kubeconfig given as text (root and envp as in src; src->kubeconfig names it in
 * messages, and relative paths in it start at that name's folder).
 */
int kube_config_parse(const struct kube_config_source *src, const char *text, size_t len,
		      struct kube_config *ret, struct err *err);

/* Wipes secrets and frees what config owns; config is empty afterwards. An empty one is fine. */
void kube_config_done(struct kube_config *config);
