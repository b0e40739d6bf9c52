// SPDX-License-Identifier: Apache-2.0
/* The simulated API server without sockets: requests as text go through an exchange of lib/http. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "cli/simulate/api/api.h"
#include "lib/base/str.h"
#include "lib/http/exchange.h"
#include "lib/json/json.h"
#include "lib/loop/loop.h"

#define SIMULATED_TOKEN "secret"

struct simulated_api {
	struct loop *loop;
	struct api *api;
	struct exchange_site site;
};

static inline void simulated_api_answered(struct exchange *x)
{
}

static inline void simulated_api_init(struct simulated_api *s)
{
	s->loop = loop_new();
	s->api = api_new(s->loop, SIMULATED_TOKEN);
	s->site = (struct exchange_site){.name = "test", .answered = simulated_api_answered};
	s->site.routes = api_routes(s->api, &s->site.n_routes);
}

static inline void simulated_api_done(struct simulated_api *s)
{
	api_free(s->api);
	loop_free(s->loop);
}

/* Append what an exchange has to send; it has then. Streams give what there is now. */
static inline void simulated_api_drain(struct exchange *x, struct strbuf *out)
{
	while (x->out.len > 0) {
		strbuf_add(out, x->out.data, x->out.len);
		exchange_sent(x);
	}
}
