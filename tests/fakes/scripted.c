// SPDX-License-Identifier: Apache-2.0
/* Plain HTTP to a server on loopback, with a token where a test wants one. */
#include "tests/support/test.h"

#include "tests/fakes/scripted.h"

#include "lib/base/str.h"

const struct kube_resource scripted_widgets = {
	.group = "test.example",
	.version = "v1",
	.plural = "widgets",
	.kind = "Widget",
	.namespaced = true,
};

void scripted_open(struct scripted *s)
{
	*s = (struct scripted){0};
	s->loop = loop_new();
	s->http = http_script_new(s->loop);
	s->config = (struct kube_config){
		.origin = str_dup("a test"),
		.host = str_dup("127.0.0.1"),
		.port = http_script_port(s->http),
		.path = str_dup(""),
		.server = str_printf("http://127.0.0.1:%u", http_script_port(s->http)),
	};
	s->client = kube_client_new(s->loop, &s->config, NULL);
}

void scripted_close(struct scripted *s)
{
	kube_client_free(s->client);
	http_script_free(s->http);
	for (int i = 0; i < 3; i++)
		loop_turn(s->loop, false);
	loop_free(s->loop);
	kube_config_done(&s->config);
}

static void on_time(void *arg)
{
	*(bool *)arg = true;
}

void scripted_until(struct scripted *s, const int *n, int want)
{
	bool late = false;
	struct timer *timer = timer_new(s->loop, on_time, &late);

	timer_start(timer, 60000);
	while (*n < want && !late)
		loop_turn(s->loop, true);
	timer_free(timer);
	if (late)
		fail_msg("a minute went by: %d of %d", *n, want);
}

void scripted_for(struct scripted *s, int64_t ms)
{
	bool over = false;
	struct timer *timer = timer_new(s->loop, on_time, &over);

	timer_start(timer, ms);
	while (!over)
		loop_turn(s->loop, true);
	timer_free(timer);
}

void ending_of_object(void *arg, json_t *object, const struct err *err)
{
	struct ending *e = arg;

	e->calls++;
	e->err = err ? *err : (struct err){0};
	json_decref(e->object);
	e->object = json_incref(object);
}

void ending_of_call(void *arg, const struct kube_response *response, const struct err *err)
{
	struct ending *e = arg;

	e->calls++;
	e->status = response->status;
	e->err = err ? *err : (struct err){0};
	snprintf(e->body, sizeof(e->body), "%s", response->body);
}

void ending_done(struct ending *e)
{
	json_decref(e->object);
	*e = (struct ending){0};
}
