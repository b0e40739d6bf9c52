// SPDX-License-Identifier: Apache-2.0
/*
 * Plans for documents by hand: order, refusals, what is kept and put back. The cases are in
 * tests/golden-plans/documents, which README.md there explains; UPDATE=1 writes their plans. Whole
 * runs on a host: planner_host_test.c.
 */
#include "tests/support/test.h"

#include <string.h>

#include <fcntl.h>
#include <stdlib.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/model/step.h"
#include "tests/support/reasons.h"
#include "tests/support/yaml.h"

#define FOLDER    "tests/golden-plans/documents/"
#define FILE_MAX  (1 << 20)
#define CASES_MAX 256
#define P1        "0000:3b:00.0"

static const char *const files[] = {"order",     "impossible", "external", "holders",
				    "addresses", "refused",    "back",     "settings"};

static char *read_file(const char *name)
{
	auto_free char *path = str_printf(FOLDER "%s", name);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};

	if (fs_read(AT_FDCWD, path, FILE_MAX, &text, &err) < 0) {
		print_error("%s\n", err.text);
		exit(1);
	}
	return strbuf_take(&text);
}

/* ---- what a case wants ----------------------------------------------------------------------- */

/* VF n of P1, as an idle mlx5 VF that is all right; patched. */
static json_t *vf_new(size_t n, json_t *patch)
{
	auto_free char *text =
		str_printf("{'vfID': %zu, 'pciAddress': '0000:3c:00.%zu', 'driver': 'mlx5_core', "
			   "'name': 'v%zu', 'mac': '02:00:00:00:01:%02zx', 'mtu': 1500, "
			   "'guid': '02:00:00:ff:fe:00:01:%02zx', 'host': {'inUse': false, "
			   "'holder': {'kind': 'host'}, 'adminMac': '02:00:00:00:01:%02zx', "
			   "'rdma': ['mlx5_%zu'], 'maxMtu': 9978}}",
			   n, n, n, n, n, n, n + 2);
	json_t *vf = yaml(text);

	json_merge_patch(vf, patch);
	return vf;
}

static void change(json_t *object, json_t *patch)
{
	if (patch)
		json_merge_patch(object, patch);
}

/* base.yaml with the VFs and the patches (RFC 7386) of a case. New. */
static json_t *observed_of(const json_t *wish)
{
	auto_free char *base = read_file("base.yaml");
	json_t *observed = yaml(base), *pf = json_array_get(json_at(observed, "interfaces"), 0);
	json_t *patch;
	size_t i;

	json_array_foreach (json_at(wish, "vfs"), i, patch) {
		json_t *vf = vf_new(i, patch);

		json_array_append_new(json_at(pf, "Vfs"), vf);
		json_array_append_new(json_at(observed, "rdma", "devices"),
				      json_pack("{s:O}", "pciAddress", json_at(vf, "pciAddress")));
		json_object_set_new(pf, "numVfs", json_integer((json_int_t)i + 1));
	}
	change(pf, json_at(wish, "pf"));
	change(json_at(observed, "node"), json_at(wish, "node"));
	change(observed, json_at(wish, "host"));
	return observed;
}

/* NULL: nobody has said anything. New. */
static json_t *spec_of(const json_t *wish)
{
	json_t *want = json_at(wish, "want");

	if (!want)
		return json_incref(json_at(wish, "spec"));
	json_put_str(want, "pciAddress", P1);
	return json_pack("{s:[O]}", "interfaces", want);
}

/* ---- plans as text --------------------------------------------------------------------------- */

static void print_step(struct strbuf *out, const json_t *entry)
{
	json_auto_t *step = json_copy(json_at(entry, "step"));
	auto_free char *fields = NULL;
	struct err err = {0};

	if (!step_check(step, &err))
		fail_msg("%s", err.text);
	assert_false(str_empty(json_str_at(entry, "why")));
	strbuf_addf(out, "%s ", json_str_at(step, "step"));
	json_object_del(step, "step");
	fields = json_text(step);
	strbuf_addf(out, "%s impact %s: %s\n", fields, json_str_at(entry, "impact"),
		    json_str_at(entry, "why"));
}

/* sort: what a condition says of such a reason (docs/conditions.md). */
static void print_list(struct strbuf *out, const json_t *plan, const char *list, const char *sort)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(plan, list), i, entry) {
		const char *reason = json_str_at(entry, "reason"), *where = "node";

		if (!reason_is(reason, sort))
			fail_msg("%s among %s: docs/reasons.md does not say that", reason, list);
		where = json_str_or(json_at(entry, "pf"), where);
		where = json_str_or(json_at(entry, "vf"), where);
		strbuf_addf(out, "%s %s%s: %s: %s\n", list, where,
			    json_at(entry, "pod") ? ", a pod" : "", reason,
			    json_str_at(entry, "message"));
	}
}

static void print_reason(struct strbuf *out, const char *what, const json_t *value)
{
	if (value)
		strbuf_addf(out, "%s %s: %s\n", what, json_str_at(value, "reason"),
			    json_str_at(value, "message"));
}

static void print_plan(struct strbuf *out, const json_t *plan, const json_t *found_before)
{
	json_auto_t *nothing = json_object();
	const json_t *found = json_at(plan, "found"), *vfs = json_at(plan, "vfs");
	auto_free char *text = json_text(found);
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(plan, "steps"), i, entry)
		print_step(out, entry);
	print_list(out, plan, "problems", "fault");
	print_list(out, plan, "blocked", "waits");
	print_reason(out, "reboot", json_at(plan, "reboot"));
	print_reason(out, "nextBoot", json_at(plan, "nextBoot"));
	if (!json_same(found, found_before ? found_before : nothing))
		strbuf_addf(out, "found %s\n", text);
	if (!json_same(json_at(vfs, "wanted"), json_at(vfs, "present")))
		strbuf_addf(out, "VFs: %lld wanted, %lld present\n",
			    (long long)json_integer_value(json_at(vfs, "wanted")),
			    (long long)json_integer_value(json_at(vfs, "present")));
}

/* The plan for a line of a case. */
static void plan_line(struct strbuf *out, const char *line)
{
	auto_free char *text = str_printf("{%s}", line);
	json_auto_t *wish = yaml(text), *observed = observed_of(wish), *spec = spec_of(wish);
	json_auto_t *before = json_deep_copy(observed), *plan = NULL;
	struct planner_input in = {.spec = spec,
				   .observed = observed,
				   .found = json_at(wish, "found"),
				   .held = json_at(wish, "held"),
				   .refused = json_at(wish, "refused"),
				   .is_held_awaited = json_is_true(json_at(wish, "awaited"))};
	struct err err = {0};

	plan = planner_plan(&in, &err);
	assert_true(json_same(observed, before));
	if (plan)
		print_plan(out, plan, in.found);
	else
		strbuf_addf(out, "refuses %s: %s\n", err.reason, err.text);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* The case with the plans of now; what it says of them is left out. New. */
static char *replay(const char *text)
{
	auto_strbuf struct strbuf out = {0};

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");

		if (len == 0 || strchr("=#?", *line)) {
			strbuf_add(&out, line, len);
			strbuf_addc(&out, '\n');
		}
		if (*line == '?') {
			auto_free char *wish = str_ndup(line + 1, len - 1);

			plan_line(&out, wish);
		}
		line += len + (line[len] == '\n');
	}
	return strbuf_take(&out);
}

static void run_case(void **state)
{
	const char *want = *state;
	auto_free char *got = replay(want);

	if (!str_eq(got, want))
		fail_msg("%s\nUPDATE=1 build/asan/tests/unit/nodeagent/host_plan/planner_test "
			 "writes "
			 "it into " FOLDER,
			 got);
}

/* A file is its cases, each from "== NAME" on. Returns how many there are. */
static size_t add_cases(char *text, struct CMUnitTest *tests, size_t n)
{
	for (char *at = strstr(text, "== "); at && n < CASES_MAX;) {
		char *next = strstr(at, "\n\n== ");

		if (next) {
			next[1] = '\0';
			next += 2;
		}
		tests[n++] = (struct CMUnitTest){
			.name = str_ndup(at + 3, strcspn(at + 3, "\n")),
			.test_func = run_case,
			.initial_state = str_dup(at),
		};
		at = next;
	}
	return n;
}

static void update(const char *name, const char *text)
{
	auto_free char *path = str_printf(FOLDER "%s", name), *now = replay(text);
	struct err err = {0};

	if (fs_write_atomic(AT_FDCWD, path, now, strlen(now), 0644, &err) < 0)
		print_error("%s\n", err.text);
}

int main(void)
{
	struct CMUnitTest *tests = mem_calloc(CASES_MAX, sizeof(*tests));
	size_t n = 0;
	int failed;

	json_init();
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *name = str_printf("%s.txt", files[i]), *text = read_file(name);

		if (getenv("UPDATE"))
			update(name, text);
		else
			n = add_cases(text, tests, n);
	}
	failed = n ? _cmocka_run_group_tests("planner", tests, n, NULL, NULL) : 0;
	for (size_t i = 0; i < n; i++) {
		free((char *)tests[i].name);
		free(tests[i].initial_state);
	}
	mem_free(tests);
	return failed;
}
