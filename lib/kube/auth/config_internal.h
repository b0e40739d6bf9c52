// SPDX-License-Identifier: Apache-2.0
/* The pieces that config.c puts together; private to config*.c. They call nothing of config.c. */
#pragma once

#include "lib/kube/auth/config.h"
#include "lib/kube/auth/endpoint.h"
#include "lib/kube/auth/kubeconfig.h"

/* Fill in server, host, port, path, tls. */
void config_set_server(struct kube_config *config, const struct endpoint *server);

/* What a kubeconfig's cluster says: server, trust, proxy. */
int config_read_cluster(const struct kubeconfig_entry *cluster, struct kube_config *config,
			struct err *err);

/* Read the user: its credentials. Exec plugins that ask for the cluster get it. */
int config_read_user(const struct kubeconfig_entry *user, const struct kubeconfig_entry *cluster,
		     const char *const *envp, struct kube_config *config, struct err *err);

/* The user's exec section; config is complete but for this. */
int config_read_exec(const struct kubeconfig_entry *exec, const struct kubeconfig_entry *cluster,
		     const char *const *envp, const struct kube_config *config,
		     struct kube_exec *ret, struct err *err);
void config_exec_done(struct kube_exec *exec);

/* The token in a file: without the blanks around it. *ret is new. Errors start with the path. */
int config_read_token(const char *path, char **ret, struct err *err);

/* The same from what a file held. */
int config_trim_token(const char *path, const char *text, size_t len, char **ret, struct err *err);
