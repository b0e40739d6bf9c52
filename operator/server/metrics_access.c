// SPDX-License-Identifier: Apache-2.0
/*
 * One entry per token: what is known of it, or a review under way and the requests that wait for
 * it.
 */
#include "operator/server/metrics_access.h"

#include <assert.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"

enum {
	/* A scrape waits for two of them; Prometheus gives up after 10 s. */
	REVIEW_TIMEOUT_MS = 4000,
};

static const struct kube_resource token_reviews = {
	"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false,
};
static const struct kube_resource access_reviews = {
	"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", false,
};

struct entry {
	TAILQ_ENTRY(entry) link;
	struct metrics_access *access;
	char *token;
	char *path;
	int status; /* 0: nothing is known */
	int64_t until_ms;
	bool was_good;
	struct kube_call *call; /* NULL: no review is under way */
	struct http_asked *waiting[METRICS_ACCESS_WAITING_MAX];
	size_t n_waiting;
};

TAILQ_HEAD(entry_list, entry);

struct metrics_access {
	struct kube_client *client;
	struct http_gate gate;
	struct entry_list entries; /* the one that was asked for last goes first */
	size_t n_entries;
};

/* ---- entries --------------------------------------------------------------------------------- */

/* Answer all that wait. They may ask again at once. */
static void answer_waiting(struct entry *entry, int status)
{
	struct http_asked *waiting[METRICS_ACCESS_WAITING_MAX];
	size_t n = entry->n_waiting;

	memcpy(waiting, entry->waiting, sizeof(waiting));
	entry->n_waiting = 0;
	for (size_t i = 0; i < n; i++)
		http_asked_answer(waiting[i], status);
}

static void entry_free(struct entry *entry)
{
	struct metrics_access *access = entry->access;

	TAILQ_REMOVE(&access->entries, entry, link);
	access->n_entries--;
	kube_call_cancel(entry->call);
	answer_waiting(entry, 503);
	explicit_bzero(entry->token, strlen(entry->token));
	mem_free(entry->token);
	mem_free(entry->path);
	mem_free(entry);
}

/* Its length is not a secret; how much of it is right must not show in the time that this takes. */
static bool same_token(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned char difference = 0;

	if (len != strlen(b))
		return false;
	for (size_t i = 0; i < len; i++)
		difference |= (unsigned char)(a[i] ^ b[i]);
	return difference == 0;
}

static struct entry *find(struct metrics_access *access, const char *token, const char *path)
{
	struct entry *entry = NULL, *found = NULL;

	TAILQ_FOREACH(entry, &access->entries, link)
	if (same_token(entry->token, token) && str_eq(entry->path, path))
		found = entry;
	return found;
}

/*
 * The one that was asked for longest ago, not under review; those that were never good go first.
 * NULL: none.
 */
static struct entry *least_wanted(struct metrics_access *access)
{
	struct entry *entry = NULL, *good = NULL, *bad = NULL;

	TAILQ_FOREACH(entry, &access->entries, link)
	{
		if (entry->call)
			continue;
		if (entry->was_good)
			good = entry;
		else
			bad = entry;
	}
	return bad ? bad : good;
}

static struct entry *add(struct metrics_access *access, const char *token, const char *path)
{
	struct entry *entry = NULL;

	if (access->n_entries == METRICS_ACCESS_MAX) {
		entry = least_wanted(access);
		if (!entry)
			return NULL;
		entry_free(entry);
	}
	entry = mem_new(struct entry);
	entry->access = access;
	entry->token = str_dup(token);
	entry->path = str_dup(path);
	TAILQ_INSERT_HEAD(&access->entries, entry, link);
	access->n_entries++;
	return entry;
}

/* ---- reviews --------------------------------------------------------------------------------- */

static void settle(struct entry *entry, int status)
{
	entry->status = status;
	entry->was_good = entry->was_good || status == 200;
	entry->until_ms =
		clock_ms() + (status == 200 ? METRICS_ACCESS_GOOD_MS : METRICS_ACCESS_BAD_MS);
	answer_waiting(entry, status);
}

/* Nothing is known; the next request asks again. */
static void settle_unknown(struct entry *entry, const char *what, const struct err *err)
{
	log_warn("cannot ask the API server who wants metrics, answering with 503",
		 F_STR("review", what), F_ERR(err),
		 F_STR("remedy",
		       "grant the operator's account what manifests/overlays/metrics-secure has"));
	entry->status = 0;
	answer_waiting(entry, 503);
}

static json_t *new_review(const struct kube_resource *resource, json_t *spec)
{
	return json_pack("{s:o, s:s, s:o}", "apiVersion",
			 json_fmt("%s/%s", resource->group, resource->version), "kind",
			 resource->kind, "spec", spec);
}

static const struct kube_write how = {.timeout_ms = REVIEW_TIMEOUT_MS};

static void on_access_reviewed(void *arg, json_t *review, const struct err *err)
{
	struct entry *entry = arg;
	const json_t *status = json_at(review, "status");

	entry->call = NULL;
	if (err)
		settle_unknown(entry, access_reviews.kind, err);
	else
		settle(entry, json_is_true(json_at(status, "allowed")) &&
					      !json_is_true(json_at(status, "denied"))
				      ? 200
				      : 403);
}

static void on_token_reviewed(void *arg, json_t *review, const struct err *err)
{
	static const char *const members[][2] = {
		{"username", "user"}, {"uid", "uid"}, {"groups", "groups"}, {"extra", "extra"}};
	struct entry *entry = arg;
	const json_t *user = json_at(review, "status", "user");
	json_auto_t *request = NULL;
	json_t *spec = NULL;

	entry->call = NULL;
	if (err) {
		settle_unknown(entry, token_reviews.kind, err);
		return;
	}
	if (!json_is_true(json_at(review, "status", "authenticated")) ||
	    !json_str_at(user, "username")) {
		settle(entry, 401);
		return;
	}
	spec = json_pack("{s:{s:s, s:s}}", "nonResourceAttributes", "path", entry->path, "verb",
			 "get");
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		json_put(spec, members[i][1], json_deep_copy(json_at(user, members[i][0])));
	request = new_review(&access_reviews, spec);
	entry->call = kube_create(entry->access->client, &access_reviews, request, &how,
				  on_access_reviewed, entry);
}

static void review(struct entry *entry)
{
	json_auto_t *request =
		new_review(&token_reviews, json_pack("{s:s}", "token", entry->token));

	entry->call = kube_create(entry->access->client, &token_reviews, request, &how,
				  on_token_reviewed, entry);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static size_t strangers_under_review(const struct metrics_access *access)
{
	const struct entry *entry = NULL;
	size_t n = 0;

	TAILQ_FOREACH(entry, &access->entries, link)
	n += entry->call && !entry->was_good;
	return n;
}

/* What follows "Bearer" (RFC 6750, 2.1), or NULL. */
static const char *token_of(const char *authorization)
{
	static const char scheme[] = "Bearer ";
	size_t len = sizeof(scheme) - 1;

	if (strncasecmp(authorization, scheme, len) != 0)
		return NULL;
	authorization += len;
	authorization += strspn(authorization, " ");
	/* What is not UTF-8 is not a token, and would not get into a review. */
	for (const char *s = authorization; *s; s++)
		if (*s <= ' ' || *s > '~')
			return NULL;
	return *authorization ? authorization : NULL;
}

static void ask(const struct http_request *req, struct http_asked *asked, void *arg)
{
	struct metrics_access *access = arg;
	const char *token = token_of(req->authorization);
	struct entry *entry = token ? find(access, token, req->path) : NULL;

	if (!token) {
		http_asked_answer(asked, 401);
		return;
	}
	if (!entry && strangers_under_review(access) < METRICS_ACCESS_AT_ONCE)
		entry = add(access, token, req->path);
	if (!entry || entry->n_waiting == METRICS_ACCESS_WAITING_MAX) {
		http_asked_answer(asked, 503);
		return;
	}
	TAILQ_REMOVE(&access->entries, entry, link);
	TAILQ_INSERT_HEAD(&access->entries, entry, link);
	if (!entry->call && entry->status && clock_ms() < entry->until_ms) {
		http_asked_answer(asked, entry->status);
		return;
	}
	if (!entry->call && !entry->was_good &&
	    strangers_under_review(access) >= METRICS_ACCESS_AT_ONCE) {
		http_asked_answer(asked, 503);
		return;
	}
	entry->waiting[entry->n_waiting++] = asked;
	if (!entry->call)
		review(entry);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct metrics_access *metrics_access_new(struct kube_client *client)
{
	struct metrics_access *access = mem_new(struct metrics_access);

	assert(client);
	access->client = client;
	access->gate = (struct http_gate){ask, access};
	TAILQ_INIT(&access->entries);
	return access;
}

void metrics_access_free(struct metrics_access *access)
{
	if (!access)
		return;
	while (!TAILQ_EMPTY(&access->entries))
		entry_free(TAILQ_FIRST(&access->entries));
	mem_free(access);
}

const struct http_gate *metrics_access_gate(const struct metrics_access *access)
{
	return &access->gate;
}
