// SPDX-License-Identifier: Apache-2.0
/* When a host's settings are read, and which findings a NodeState lists after it. */
#include "tests/support/test.h"

#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "lib/loop/loop.h"
#include "nodeagent/agent/host_checker.h"
#include "nodeagent/model/host_checks.h"
#include "tests/support/yaml.h"

#define OBSERVED                                                                                   \
	"{'interfaces': [{'pciAddress': '0000:3b:00.0', 'name': 'ens1f0', 'vendor': '15b3'}], "    \
	"'rdma': {'devices': [{'name': 'mlx5_0', 'charDevices': [{'type': 'uverbs'}]}]}}"
#define GOOD                                                                                       \
	"'kernel': '6.1.0', 'modules': {'ib_core': true, 'ib_uverbs': true, 'rdma_cm': true, "     \
	"'rdma_ucm': true, 'mlx5_ib': true}"
#define BALANCED "{" GOOD ", 'irqbalance': true}"

struct fixture {
	struct loop *loop;
	struct hostd *hostd;
	struct host_checker *checker;
	struct timer *pause;
	int asked, changed;
	bool is_over;
	const char *facts; /* what the worker says; NULL: an error */
};

static json_t *on_request(void *arg, const json_t *message)
{
	struct fixture *f = arg;
	json_t *facts = f->facts ? yaml(f->facts) : NULL; /* goes into the reply */
	struct err err = {0};

	assert_string_equal(json_str_at(message, "kind"), "inspect");
	f->asked++;
	(void)err_set(&err, ERR_HOST, "HostUnreadable", "x");
	return ask_reply_new(message, facts, &err);
}

static void on_changed(void *arg)
{
	((struct fixture *)arg)->changed++;
}

static void on_pause(void *arg)
{
	*(bool *)arg = true;
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;

	*f = (struct fixture){.loop = loop_new(), .facts = "{" GOOD "}"};
	f->hostd = hostd_new(f->loop, &(struct hostd_config){.answer = on_request, .arg = f});
	f->checker = host_checker_new(f->hostd, on_changed, f);
	f->pause = timer_new(f->loop, on_pause, &f->is_over);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	hostd_free(f->hostd);
	host_checker_free(f->checker);
	timer_free(f->pause);
	loop_free(f->loop);
	return 0;
}

/* Looks at the host that many milliseconds later; the reasons that are listed then. */
static void look(struct fixture *f, int64_t after_ms, const char *facts, const char *want)
{
	json_auto_t *observed = yaml(OBSERVED);
	auto_strbuf struct strbuf reasons = {0};
	json_t *finding;
	size_t i;

	f->facts = facts;
	for (int turn = 0; turn < 2; turn++) {
		f->is_over = false;
		timer_start(f->pause, turn == 0 ? after_ms : 1);
		while (!f->is_over)
			loop_turn(f->loop, true);
		if (turn == 0)
			host_checker_looked(f->checker, observed);
	}
	json_array_foreach (host_checker_findings(f->checker), i, finding)
		strbuf_addf(&reasons, "%s ", json_str_at(finding, "reason"));
	assert_string_equal(strbuf_str(&reasons), want);
}

TEST_WITH(a_finding_counts_when_it_was_read_twice, set_up, tear_down)
{
	struct fixture *f = *state;

	look(f, 1, BALANCED, "");
	assert_non_null(host_checker_findings(f->checker));
	look(f, HOST_CHECKER_CONFIRM_MS - 10, BALANCED, "");
	assert_int_equal(f->asked, 1);
	look(f, 10, BALANCED, "IrqBalance ");
	assert_int_equal(f->asked, 2);
	assert_int_equal(f->changed, 2);
	/* The same is no news, and not read before it is old. */
	look(f, HOST_CHECKER_FRESH_MS - 10, "{" GOOD "}", "IrqBalance ");
	assert_int_equal(f->asked, 2);
	look(f, 10, BALANCED, "IrqBalance ");
	assert_int_equal(f->asked, 3);
	assert_int_equal(f->changed, 2);
	look(f, HOST_CHECKER_FRESH_MS, "{" GOOD "}", "");
	/* One that comes and goes is not listed again. */
	look(f, HOST_CHECKER_FRESH_MS, BALANCED, "");
	look(f, HOST_CHECKER_CONFIRM_MS, "{" GOOD "}", "");
	assert_int_equal(f->changed, 3);
}

TEST_WITH(what_an_agent_before_has_listed_stays, set_up, tear_down)
{
	struct fixture *f = *state;
	json_auto_t *shown = yaml("[{'reason': 'IrqBalance', 'subject': 'irqbalance'}, "
				  "{'reason': 'CpuGovernor', 'subject': 'cpufreq'}]");

	host_checker_heard(f->checker, shown);
	/* Nothing was read, so that the NodeState keeps what it has. */
	look(f, 1, NULL, "");
	assert_null(host_checker_findings(f->checker));
	look(f, HOST_CHECKER_FRESH_MS, BALANCED, "IrqBalance ");
	assert_int_equal(f->changed, 1);
	host_checker_heard(f->checker, NULL);
	look(f, HOST_CHECKER_FRESH_MS, NULL, "IrqBalance ");
	look(f, HOST_CHECKER_FRESH_MS, BALANCED, "IrqBalance ");
	assert_int_equal(f->changed, 1);
}

/*
 * The schema in crds/ allows no more. Of a NIC two settings may be wrong: MaxPayload, MaxReadReq.
 */
TEST(the_list_is_bounded)
{
	json_auto_t *found = json_array(), *list = NULL, *one = NULL;
	json_auto_t *twice =
		yaml("[{'reason': 'A', 'subject': 'a'}, {'reason': 'A', 'subject': 'a'},"
		     " {'reason': 'A', 'subject': 'b'}, {'reason': 'A', 'subject': 'b', "
		     "'expected': '4096 bytes'}]");

	for (int i = 0; i < HOST_CHECKS_MAX + 8; i++)
		json_array_append_new(found, json_pack("{s:s, s:o}", "reason", "A", "subject",
						       json_fmt("s%d", i)));
	list = host_checks_settle(found, found, NULL);
	assert_int_equal(json_array_size(list), HOST_CHECKS_MAX);
	one = host_checks_settle(twice, twice, NULL);
	assert_int_equal(json_array_size(one), 3);
}
