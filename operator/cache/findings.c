// SPDX-License-Identifier: Apache-2.0
/* One map from objects to what was said about them, one from reasons to numbers. */
#include "operator/cache/findings.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* How many findings of one kind have one reason. */
struct tally {
	char *kind, *reason;
	size_t count;
};

struct finding {
	struct tally *tally;
	char said[]; /* uid and message */
};

struct findings {
	struct map objects; /* "kind key" → struct finding */
	struct map tallies; /* "kind reason" → struct tally */
};

static void tally_free(void *ptr)
{
	struct tally *tally = ptr;

	mem_free(tally->kind);
	mem_free(tally->reason);
	mem_free(tally);
}

struct findings *findings_new(void)
{
	struct findings *findings = mem_new(struct findings);

	findings->objects.free_value = mem_free;
	findings->tallies.free_value = tally_free;
	return findings;
}

void findings_free(struct findings *findings)
{
	if (!findings)
		return;
	map_done(&findings->objects);
	map_done(&findings->tallies);
	mem_free(findings);
}

/* A kind has no blank in its name. */
static char *path_of(const char *kind, const char *name)
{
	return str_printf("%s %s", kind, name);
}

static struct tally *need_tally(struct findings *findings, const char *kind, const char *reason)
{
	auto_free char *path = path_of(kind, reason);
	struct tally *tally = map_get(&findings->tallies, path);

	if (!tally) {
		tally = mem_new(struct tally);
		tally->kind = str_dup(kind);
		tally->reason = str_dup(reason);
		map_set(&findings->tallies, path, tally);
	}
	return tally;
}

static bool drop_finding(struct findings *findings, const char *path)
{
	struct finding *finding = map_get(&findings->objects, path);

	if (!finding)
		return false;
	assert(finding->tally->count > 0);
	finding->tally->count--;
	map_del(&findings->objects, path);
	return true;
}

bool findings_set(struct findings *findings, const char *kind, const char *key, const char *uid,
		  const char *reason, const char *message)
{
	auto_free char *path = path_of(kind, key);
	auto_free char *said =
		str_printf("%s %.*s", uid, FINDINGS_MESSAGE_MAX, message ? message : "");
	const struct finding *before = map_get(&findings->objects, path);
	struct finding *finding = NULL;
	size_t size = strlen(said) + 1;

	if (!reason)
		return drop_finding(findings, path);
	if (before && str_eq(before->tally->reason, reason) && str_eq(before->said, said))
		return false;
	drop_finding(findings, path);
	finding = mem_zalloc(sizeof(*finding) + size);
	finding->tally = need_tally(findings, kind, reason);
	finding->tally->count++;
	memcpy(finding->said, said, size);
	map_set(&findings->objects, path, finding);
	return true;
}

bool findings_has(const struct findings *findings, const char *kind, const char *key)
{
	auto_free char *path = path_of(kind, key);

	return map_get(&findings->objects, path) != NULL;
}

void findings_visit(const struct findings *findings, const char *kind, const char *reason,
		    void (*fn)(void *arg, const char *key, const char *message), void *arg)
{
	auto_free char *tally_path = path_of(kind, reason);
	const struct tally *tally = map_get(&findings->tallies, tally_path);
	const char *path = NULL;
	void *value = NULL;
	size_t iter = 0;

	assert(fn);
	while (tally && tally->count && map_next(&findings->objects, &iter, &path, &value)) {
		const struct finding *finding = value;

		if (finding->tally == tally)
			fn(arg, path + strlen(kind) + 1, strchr(finding->said, ' ') + 1);
	}
}

void findings_count(const struct findings *findings,
		    void (*fn)(void *arg, const char *kind, const char *reason, size_t count),
		    void *arg)
{
	const char *path = NULL;
	void *value = NULL;
	size_t iter = 0;

	assert(fn);
	while (map_next(&findings->tallies, &iter, &path, &value)) {
		const struct tally *tally = value;

		if (tally->count)
			fn(arg, tally->kind, tally->reason, tally->count);
	}
}
