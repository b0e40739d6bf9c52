// SPDX-License-Identifier: Apache-2.0
/* What the tests of lib/kube share: a loop, a scripted server, and a client that talks to it. */
#pragma once

#include "lib/kube/api.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/client.h"
#include "lib/loop/loop.h"
#include "tests/fakes/http_script.h"

struct scripted {
	struct loop *loop;
	struct http_script *http;
	struct kube_config config;
	struct kube_client *client;
};

void scripted_open(struct scripted *s);
void scripted_close(struct scripted *s);

/* Turn the loop until *n reaches `want`; fails the test when that takes more than a minute. */
void scripted_until(struct scripted *s, const int *n, int want);
/* Turn the loop for so long. */
void scripted_for(struct scripted *s, int64_t ms);

extern const struct kube_resource scripted_widgets; /* /apis/test.example/v1/namespaces/…/widgets */

/* How a call ended. */
struct ending {
	int calls; /* of the callback */
	int status;
	struct err err;
	json_t *object; /* of kube_object_fn */
	char body[256];
};

kube_object_fn ending_of_object;
kube_done_fn ending_of_call;
void ending_done(struct ending *e);
