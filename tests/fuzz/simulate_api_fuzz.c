// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes of one connection to the simulated API server, whose clients may do anything: each request
 * has an answer, and what is stored can be listed again. "TOKEN" is not in the input: every request
 * that has an Authorization header with "Bearer secret" counts.
 */
#include <stdint.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/simulated_api.h"

/* All objects of a kind that most inputs create. */
static void list_again(struct simulated_api *server)
{
	static const char request[] =
		"GET /api/v1/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: "
		"Bearer " SIMULATED_TOKEN "\r\n\r\n";
	auto_strbuf struct strbuf out = {0};
	struct in6_addr peer = {0};
	json_auto_t *list = NULL;
	struct exchange x;
	const char *body;

	exchange_init(&x, &server->site, &peer);
	exchange_received(&x, request, sizeof(request) - 1);
	simulated_api_drain(&x, &out);
	exchange_done(&x);
	body = strstr(strbuf_str(&out), "\r\n\r\n");
	if (!str_starts(strbuf_str(&out), "HTTP/1.1 200") || !body)
		abort();
	list = json_parse(body + 4, strlen(body + 4), NULL);
	if (!json_is_array(json_at(list, "items")))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct simulated_api server;
	auto_strbuf struct strbuf out = {0};
	struct in6_addr peer = {0};
	struct exchange x;

	simulated_api_init(&server);
	exchange_init(&x, &server.site, &peer);
	exchange_received(&x, data, size);
	simulated_api_drain(&x, &out);
	/* What watches have to say since, and what waits in the loop. */
	loop_turn(server.loop, false);
	simulated_api_drain(&x, &out);
	exchange_done(&x);
	if (server.site.large)
		abort();
	list_again(&server);
	simulated_api_done(&server);
	return 0;
}
