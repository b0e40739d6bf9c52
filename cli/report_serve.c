// SPDX-License-Identifier: Apache-2.0
/*
 * The watched world becomes the report's data; the difference from the data before becomes a
 * message for the browsers. Each change costs a whole computation; pauses in between keep that
 * below a fifth of a processor.
 */
#include "cli/report_serve.h"

#include <signal.h>
#include <stdio.h>

#include "cli/live/door.h"
#include "cli/live/sockets.h"
#include "cli/live/ticket.h"
#include "cli/report_data.h"
#include "cli/report_page.h"
#include "cli/watching.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"

#define ADDRESS "127.0.0.1:0"

enum {
	/* Changes come in bursts. */
	PAUSE_MIN_MS = 200,
	PAUSE_FACTOR = 4,
};

struct serving {
	struct cli cli; /* its world is replaced */
	struct loop *loop;
	struct watching *watching;
	struct door *door;
	struct sockets *sockets;
	struct timer *render;
	int64_t pause_ms;
	json_t *document; /* that browsers have */
};

/* ---- the document ---------------------------------------------------------------------------- */

/* A list whose items have names becomes an object: a merge patch has only items that differ. */
static void key_by(json_t *document, const char *member, const char *name)
{
	json_auto_t *items = json_incref(json_object_get(document, member));
	json_t *keyed = json_object(), *item;
	size_t i;

	json_array_foreach (items, i, item)
		json_put(keyed, json_str_or(json_at(item, name), "?"), json_incref(item));
	json_put(document, member, keyed);
}

static json_t *document_of(const struct cli *cli)
{
	json_t *document = report_data(cli);

	key_by(document, "nodes", "name");
	key_by(document, "pools", "pool");
	key_by(document, "policies", "policy");
	return document;
}

/* Absent while the world is up to date. */
static void put_trouble(const struct watching *watching, json_t *document)
{
	int64_t since_us;
	const char *why = watching_trouble(watching, &since_us);
	char since[RFC3339_SIZE];
	json_t *trouble;

	json_object_del(document, "trouble");
	if (!why)
		return;
	rfc3339_write(since_us, since);
	trouble = json_need_object(document, "trouble");
	json_put_str(trouble, "since", since);
	json_put_str(trouble, "why", why);
}

/* Takes the document. */
static void publish(struct serving *s, json_t *document)
{
	const char *generated = json_str_at(s->document, "generated");
	auto_free char *now = str_dup(json_str_or(json_at(document, "generated"), ""));
	auto_strbuf struct strbuf whole = {0}, change = {0};
	json_auto_t *patch = NULL;

	/* That alone is not a change. */
	json_put_str(document, "generated", generated);
	patch = json_merge_diff(s->document, document);
	json_put_str(document, "generated", now);
	if (patch) {
		json_put_str(patch, "generated", now);
		json_write(document, &whole);
		json_write(patch, &change);
		sockets_publish(s->sockets, strbuf_str(&whole),
				s->document ? strbuf_str(&change) : NULL);
	}
	json_replace(&s->document, document);
}

static void on_render(void *arg)
{
	struct serving *s = arg;
	int64_t began_us = clock_us();
	json_t *world = watching_world(s->watching), *document;

	if (world) {
		json_replace(&s->cli.world, world);
		document = document_of(&s->cli);
	} else {
		document = json_copy(s->document);
	}
	put_trouble(s->watching, document);
	publish(s, document);
	s->pause_ms = PAUSE_FACTOR * (clock_us() - began_us) / 1000;
	if (s->pause_ms < PAUSE_MIN_MS)
		s->pause_ms = PAUSE_MIN_MS;
}

static void on_changed(void *arg)
{
	const struct serving *s = arg;

	if (!timer_is_active(s->render))
		timer_start(s->render, s->pause_ms);
}

/* ---- serving --------------------------------------------------------------------------------- */

static void random_word(char ret[TICKET_TOKEN_LEN + 1])
{
	unsigned char bytes[TICKET_TOKEN_LEN / 2];

	random_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static void on_socket(void *arg, int fd, const char *head, size_t len)
{
	const struct serving *s = arg;

	sockets_adopt(s->sockets, fd, head, len);
}

static int check_usage(const struct cli *cli, struct err *err)
{
	if (cli->output != CLI_TABLE)
		return err_set(err, ERR_INVALID, "BadUsage", "--output does not go with --serve");
	for (size_t i = 0; cli->files && cli->files[i]; i++)
		if (str_eq(cli->files[i], "-"))
			return err_set(err, ERR_INVALID, "BadUsage",
				       "--filename -: standard input is read once; --serve needs "
				       "the name of a file");
	return 0;
}

static void on_signal(void *arg)
{
	loop_stop(arg);
}

static void run(struct serving *s, const char *host, const char *token)
{
	struct signal_watch *term = signal_watch_new(s->loop, SIGTERM, on_signal, s->loop);
	struct signal_watch *interrupt = signal_watch_new(s->loop, SIGINT, on_signal, s->loop);

	printf("http://%s/%s/\n", host, token);
	(void)fflush(stdout);
	loop_run(s->loop);
	signal_watch_free(term);
	signal_watch_free(interrupt);
}

static int serve(const struct cli *cli, struct err *err)
{
	struct serving s = {.cli = *cli, .pause_ms = PAUSE_MIN_MS};
	char token[TICKET_TOKEN_LEN + 1], nonce[TICKET_TOKEN_LEN + 1];
	auto_strbuf struct strbuf page = {0};
	auto_free char *headers = NULL, *host = NULL;
	int result = -1;

	random_word(token);
	random_word(nonce);
	report_page_live(&page, nonce);
	headers = str_printf("Content-Security-Policy: default-src 'none'; script-src 'nonce-%s'; "
			     "style-src 'nonce-%s'; connect-src 'self'; base-uri 'none'; "
			     "form-action 'none'; frame-ancestors 'none'\r\n"
			     "Referrer-Policy: no-referrer\r\n",
			     nonce, nonce);

	(void)json_incref(s.cli.world);
	s.loop = loop_new();
	s.door = door_new(s.loop,
			  &(struct door_config){
				  .address = cli->args_len > 0 ? cli->args[0] : ADDRESS,
				  .token = token,
				  .headers = headers,
				  .page = page.data,
				  .page_len = page.len,
				  .socket = on_socket,
				  .arg = &s,
			  },
			  &host, err);
	if (s.door)
		s.watching = watching_new(s.loop, cli, cli->command->kinds, on_changed, &s, err);
	if (s.watching) {
		s.sockets = sockets_new(s.loop);
		s.render = timer_new(s.loop, on_render, &s);
		publish(&s, document_of(&s.cli));
		run(&s, host, token);
		result = 0;
	}
	timer_free(s.render);
	sockets_free(s.sockets);
	watching_free(s.watching);
	door_free(s.door);
	loop_free(s.loop);
	json_decref(s.document);
	json_decref(s.cli.world);
	return result;
}

int report_serve(const struct cli *cli, struct err *err)
{
	return check_usage(cli, err) < 0 ? -1 : serve(cli, err);
}
