// SPDX-License-Identifier: Apache-2.0
/* The order in which plugins of ours are begun, called and undone; the test is the plugins. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/worker/plugin_calls.h"

static struct strbuf calls;
static const char *refused; /* "ADD net1" fails */

static int note_call(const struct attachment *a, const char *command, struct err *err)
{
	auto_free char *call = str_printf("%s %s", command, a->key.ifname);

	strbuf_addf(&calls, "%s%s", calls.len > 0 ? ", " : "", call);
	return str_eq(call, refused) ? err_set(err, ERR_HOST, "StepRefused", "no cable") : 0;
}

static bool is_ours(const struct attachment *a)
{
	return true;
}

static bool begins(const char *plugin)
{
	return str_eq(plugin, "ib-sriov");
}

static int begin(struct attachment *a, struct err *err)
{
	return note_call(a, "BEGIN", err);
}

static int call(struct attachment *a, const char *command, json_t **ret_result, struct err *err)
{
	return note_call(a, command, err);
}

/* The cluster's network, and three VFs. Returns what plugin_calls_run() did, with the error. */
static int add_all(const char *refuses, struct err *err)
{
	static const struct own_plugins own = {
		.is_ours = is_ours, .begins = begins, .begin = begin, .call = call};
	static const char *const ifnames[] = {"eth0", "net1", "net2", "net3"};
	json_auto_t *delegates = json_array(), *env = json_object();
	const struct attachment of = {.env = env, .netns = -1};
	struct meta_run *run;
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(ifnames); i++)
		json_array_append_new(delegates,
				      json_pack("{s:s, s:s, s:{s:s, s:s, s:[{s:s}]}}", "name",
						"lab/rail", "interface", ifnames[i], "config",
						"cniVersion", "1.0.0", "name", "rail", "plugins",
						"type", i == 0 ? "bridge" : "ib-sriov"));
	refused = refuses;
	strbuf_reset(&calls);
	run = meta_run_new("ADD", delegates, NULL);
	plugin_calls_run(&of, delegates, run, &own);
	rc = meta_run_outcome(run, NULL, err);
	meta_run_free(run);
	return rc;
}

static int tear_down(void **state)
{
	strbuf_done(&calls);
	calls = (struct strbuf){0};
	return 0;
}

TEST_WITH(all_begin_before_the_first_is_waited_for, NULL, tear_down)
{
	struct err err = {0};

	assert_int_equal(add_all(NULL, &err), 0);
	assert_string_equal(strbuf_str(&calls), "ADD eth0, BEGIN net1, BEGIN net2, BEGIN net3, "
						"ADD net1, ADD net2, ADD net3");
}

TEST_WITH(what_has_begun_is_undone_when_another_fails, NULL, tear_down)
{
	struct err err = {0};

	assert_int_equal(add_all("ADD net1", &err), -1);
	assert_non_null(strstr(err.text, "lab/rail (net1): ib-sriov: no cable"));
	assert_string_equal(strbuf_str(&calls),
			    "ADD eth0, BEGIN net1, BEGIN net2, BEGIN net3, ADD net1, DEL net3, "
			    "DEL net2, DEL net1, DEL eth0");
}

TEST_WITH(what_cannot_begin_fails_in_its_turn, NULL, tear_down)
{
	struct err err = {0};

	assert_int_equal(add_all("BEGIN net2", &err), -1);
	assert_non_null(strstr(err.text, "lab/rail (net2): ib-sriov: no cable"));
	assert_string_equal(strbuf_str(&calls),
			    "ADD eth0, BEGIN net1, BEGIN net2, ADD net1, DEL net2, DEL net1, "
			    "DEL eth0");
}
