// SPDX-License-Identifier: Apache-2.0
/* What is news about an object, and how many there are of each kind of trouble. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "operator/cache/findings.h"

static void note(void *arg, const char *kind, const char *reason, size_t count)
{
	strbuf_addf(arg, "%s %s %zu;", kind, reason, count);
}

static void expect_counts(const struct findings *findings, const char *want)
{
	auto_strbuf struct strbuf text = {0};

	findings_count(findings, note, &text);
	assert_string_equal(strbuf_str(&text), want);
}

TEST(tells_what_is_new_once)
{
	static const struct {
		const char *key, *uid, *reason, *message;
		bool news;
	} steps[] = {
		{"ml/a", "u1", "Lost", "x", true},  {"ml/a", "u1", "Lost", "x", false},
		{"ml/a", "u1", "Lost", "y", true},  /* another message */
		{"ml/a", "u1", "Found", "y", true}, /* another reason */
		{"ml/a", "u2", "Found", "y", true}, /* another object of the name */
		{"ml/b", "u2", "Found", "y", true}, /* another name */
		{"ml/a", "u2", NULL, NULL, true},   /* mended */
		{"ml/a", "u2", NULL, NULL, false},  /* still well */
		{"ml/c", "u3", NULL, NULL, false},  /* was never ill */
	};
	struct findings *findings = findings_new();

	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (findings_set(findings, "pods", steps[i].key, steps[i].uid, steps[i].reason,
				 steps[i].message) != steps[i].news)
			fail_msg("step %zu", i);
	assert_false(findings_has(findings, "pods", "ml/a"));
	assert_true(findings_has(findings, "pods", "ml/b"));
	assert_false(findings_has(findings, "nodes", "ml/b"));
	findings_free(findings);
}

TEST(counts_what_is_there)
{
	struct findings *findings = findings_new();

	expect_counts(findings, "");
	findings_set(findings, "pods", "a", "u", "Lost", "x");
	findings_set(findings, "pods", "b", "v", "Lost", "x");
	expect_counts(findings, "pods Lost 2;");
	findings_set(findings, "pods", "a", "u", "Lost", "other words");
	expect_counts(findings, "pods Lost 2;");
	findings_set(findings, "pods", "a", "u", NULL, NULL);
	expect_counts(findings, "pods Lost 1;");
	findings_set(findings, "pods", "b", "v", "Torn", "x");
	expect_counts(findings, "pods Torn 1;");
	findings_set(findings, "pods", "b", "v", NULL, NULL);
	expect_counts(findings, "");
	findings_free(findings);
}

static void note_said(void *arg, const char *key, const char *message)
{
	strbuf_addf(arg, "%s %zu;", key, strlen(message));
}

TEST(visits_what_was_said_within_a_bound)
{
	struct findings *findings = findings_new();
	auto_free char *longest = str_printf("%0*d", 2 * FINDINGS_MESSAGE_MAX, 0);
	auto_free char *want = str_printf("ml/a %d;", FINDINGS_MESSAGE_MAX);
	auto_strbuf struct strbuf said = {0};

	findings_set(findings, "pods", "ml/a", "u", "Lost", longest);
	findings_set(findings, "pods", "ml/b", "u", "Torn", "x y");
	findings_set(findings, "nodes", "c", "u", "Lost", "x");
	findings_visit(findings, "pods", "Lost", note_said, &said);
	assert_string_equal(strbuf_str(&said), want);
	findings_set(findings, "pods", "ml/a", "u", NULL, NULL);
	findings_visit(findings, "pods", "Lost", note_said, &said);
	findings_visit(findings, "pods", "None", note_said, &said);
	assert_string_equal(strbuf_str(&said), want);
	findings_free(findings);
}
