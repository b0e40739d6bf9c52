// SPDX-License-Identifier: Apache-2.0
/*
 * A client of lib/kube and a loop of its own. Each function begins a call and runs the loop until
 * the callback stops it, so that commands read top to bottom. Lists are read page by page, objects
 * handed over one at a time.
 */
#include "cli/session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/json/json.h"
#include "lib/kube/status.h"

#define PAGE "limit=500"

/* As kubectl does; what comes again, with another page, is said once. */
static void on_warned(void *arg, const char *lines)
{
	auto_free char *covered = NULL;
	struct strbuf *told = arg;

	if (strstr(strbuf_str(told), lines))
		return;
	strbuf_adds(told, lines);
	covered = str_dup(lines);
	str_cover_controls(covered, "\n", '?');
	for (const char *at = covered; *at; at += strcspn(at, "\n") + 1)
		(void)fprintf(stderr, "warning: %.*s\n", (int)strcspn(at, "\n"), at);
}

int session_open(const struct cli *cli, struct session *ret, struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = cli->kubeconfig,
		.context = cli->context,
		.envp = (const char *const *)environ,
	};

	*ret = (struct session){0};
	if (kube_config_load(&source, &ret->config, err) < 0)
		return -1;
	ret->loop = loop_new();
	ret->client = kube_client_new(ret->loop, &ret->config, NULL);
	kube_client_set_warned(ret->client, on_warned, &ret->warned);
	return 0;
}

void session_close(struct session *s)
{
	kube_client_free(s->client);
	loop_free(s->loop);
	kube_config_done(&s->config);
	strbuf_done(&s->warned);
}

/* ---- one answer ------------------------------------------------------------------------------ */

struct reading {
	struct loop *loop;
	struct strbuf *out;
	int status; /* of HTTP; 0: no response */
	struct err err;
	bool has_failed;
};

static void on_read(void *arg, const struct kube_response *response, const struct err *err)
{
	struct reading *reading = arg;

	reading->status = response->status;
	reading->has_failed = err != NULL;
	if (err)
		reading->err = *err;
	else
		strbuf_add(reading->out, response->body, response->body_len);
	loop_stop(reading->loop);
}

static void read_once(struct session *s, const char *path, int64_t timeout_ms,
		      struct reading *reading)
{
	reading->loop = s->loop;
	kube_call(s->client, &(struct kube_request){
				     .verb = "get",
				     .method = "GET",
				     .path = path,
				     .timeout_ms = timeout_ms,
				     .once = true,
				     .done = on_read,
				     .arg = reading,
			     });
	loop_run(s->loop);
}

int session_hello(struct session *s, json_t **ret_version, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	struct reading reading = {.out = &text};

	read_once(s, "/version", 0, &reading);
	if (reading.has_failed && reading.status == 0) {
		*err = reading.err;
		return -1;
	}
	if (ret_version)
		*ret_version =
			reading.has_failed ? NULL : json_parse(strbuf_str(&text), text.len, NULL);
	return 0;
}

int session_get(struct session *s, const char *path, int64_t timeout_ms, struct strbuf *out,
		struct err *err)
{
	struct reading reading = {.out = out};

	assert(path && timeout_ms >= 0 && out);
	read_once(s, path, timeout_ms, &reading);
	if (reading.has_failed)
		*err = reading.err;
	return reading.has_failed ? -1 : 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct listing {
	struct session *session;
	struct kube_resource resource;
	const char *ns, *selector;
	session_object_fn *fn;
	void *arg;
	bool is_absent;
	struct err err;
	bool has_failed;
};

static void list_page(struct listing *listing, const char *token);

static void on_page(void *arg, json_t *list, const struct err *err)
{
	struct listing *listing = arg;
	const char *token = json_str_or(json_at(list, "metadata", "continue"), "");
	bool is_absent = kube_err_is(err, "NotServed") || kube_err_is(err, "NotFound");
	json_t *object;
	size_t i;

	/* Servers before 1.21 have budgets in that version only. */
	if (is_absent && str_eq(listing->resource.group, "policy") &&
	    str_eq(listing->resource.version, "v1")) {
		listing->resource.version = "v1beta1";
		list_page(listing, NULL);
		return;
	}
	listing->is_absent = is_absent;
	listing->has_failed = err && !is_absent;
	if (listing->has_failed)
		listing->err = *err;
	json_array_foreach (json_at(list, "items"), i, object)
		listing->fn(listing->arg, object);
	if (*token)
		list_page(listing, token);
	else
		loop_stop(listing->session->loop);
}

static void list_page(struct listing *listing, const char *token)
{
	auto_strbuf struct strbuf query = {0};

	strbuf_adds(&query, PAGE);
	if (listing->selector)
		strbuf_addf(&query, "&%s", listing->selector);
	if (token) {
		strbuf_adds(&query, "&continue=");
		kube_path_encode(&query, token);
	}
	kube_list(listing->session->client, &listing->resource, listing->ns, strbuf_str(&query),
		  on_page, listing);
}

int session_list(struct session *s, const struct kube_resource *resource, const char *ns,
		 const char *selector, session_object_fn *fn, void *arg, bool *ret_served,
		 struct err *err)
{
	struct listing listing = {
		.session = s,
		.resource = *resource,
		.ns = ns,
		.selector = selector,
		.fn = fn,
		.arg = arg,
	};

	assert(resource && fn);
	list_page(&listing, NULL);
	loop_run(s->loop);
	if (listing.has_failed) {
		*err = listing.err;
		return -1;
	}
	if (ret_served)
		*ret_served = !listing.is_absent;
	return 0;
}
