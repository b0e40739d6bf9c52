// SPDX-License-Identifier: Apache-2.0
/* A handful of checks in the order in which they were first set. */
#include "lib/http/health.h"

#include <assert.h>

#include "lib/base/mem.h"

struct check {
	char *name;
	char *text;
	bool ok;
};

struct health {
	struct check *checks;
	size_t n;
};

struct health *health_new(void)
{
	return mem_new(struct health);
}

void health_free(struct health *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++) {
		mem_free(h->checks[i].name);
		mem_free(h->checks[i].text);
	}
	mem_free(h->checks);
	mem_free(h);
}

bool health_set(struct health *h, const char *name, bool ok, const char *text)
{
	struct check *check = NULL;
	bool changed;

	assert(h && name);
	for (size_t i = 0; i < h->n && !check; i++)
		if (str_eq(h->checks[i].name, name))
			check = &h->checks[i];
	changed = !check || check->ok != ok;
	if (!check) {
		h->checks = mem_realloc(h->checks, (h->n + 1) * sizeof(*h->checks));
		check = &h->checks[h->n++];
		*check = (struct check){.name = str_dup(name)};
	}
	check->ok = ok;
	if (!str_eq(check->text, text)) {
		str_replace(&check->text, str_dup(text));
	}
	return changed;
}

bool health_is_ok(const struct health *h)
{
	assert(h);
	for (size_t i = 0; i < h->n; i++)
		if (!h->checks[i].ok)
			return false;
	return true;
}

static bool is_excluded(const struct http_request *req, const char *name)
{
	for (size_t i = 0; i < req->n_query; i++)
		if (str_starts(req->query[i], "exclude=") &&
		    str_eq(req->query[i] + strlen("exclude="), name))
			return true;
	return false;
}

void health_handle(const struct http_request *req, struct http_response *resp, void *arg)
{
	const struct health *h = arg;
	bool ok = true;

	for (size_t i = 0; i < h->n; i++) {
		if (is_excluded(req, h->checks[i].name)) {
			strbuf_addf(&resp->body, "[+]%s excluded: ok\n", h->checks[i].name);
			continue;
		}
		if (h->checks[i].ok)
			strbuf_addf(&resp->body, "[+]%s ok\n", h->checks[i].name);
		else if (str_empty(h->checks[i].text))
			strbuf_addf(&resp->body, "[-]%s failed\n", h->checks[i].name);
		else
			strbuf_addf(&resp->body, "[-]%s failed: %s\n", h->checks[i].name,
				    h->checks[i].text);
		ok = ok && h->checks[i].ok;
	}
	if (ok && !http_query_get(req, "verbose")) {
		strbuf_reset(&resp->body);
		strbuf_adds(&resp->body, "ok");
		return;
	}
	resp->status = ok ? 200 : 500;
	strbuf_addf(&resp->body, "%s check %s\n", req->path + 1, ok ? "passed" : "failed");
}
