// SPDX-License-Identifier: Apache-2.0
/* Beginning and end of a test program that talks to an API server. */
#include "tests/support/connection.h"

#include <assert.h>
#include <unistd.h>

#include "reconcilers/core/kinds.h"

int connection_open(struct connection *s, const char *kubeconfig, struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = kubeconfig,
		.envp = (const char *const *)environ,
	};

	*s = (struct connection){0};
	if (kube_config_load(&source, &s->config, err) < 0)
		return -1;
	s->loop = loop_new();
	s->client = kube_client_new(s->loop, &s->config, NULL);
	return 0;
}

void connection_close(struct connection *s)
{
	kube_client_free(s->client);
	loop_free(s->loop);
	kube_config_done(&s->config);
}

struct kube_resource connection_resource(const char *kind_id)
{
	const struct kind_info *kind = kind_find(kind_id);

	assert(kind);
	return (struct kube_resource){
		.group = kind->group,
		.version = kind->version,
		.plural = kind->id,
		.kind = kind->kind,
		.namespaced = kind->namespaced,
	};
}
