// SPDX-License-Identifier: Apache-2.0
/*
 * Messages are gathered until a step needs what only comes after them: another namespace, a sysctl,
 * a device's new number; then they go out together. Plugins call it with a planner's list; what was
 * done comes back for their way back.
 */
#include "nodeagent/cni/execute/netns_execute.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/marks.h"
#include "nodeagent/cni/execute/messages.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"

#define MAC_TRIES    20
#define MAC_PAUSE_MS 100

/* A run of steps in one namespace, gathered until something else has to come in between. */
struct run {
	const struct netns_pair *pair;
	bool all; /* go on after a failure */
	int failures;
	struct err *err; /* of the first */
	json_t *done;    /* may be NULL */

	struct netns *ns; /* where the messages below go; NULL while there are none */
	struct nl_msg **messages;
	const json_t **steps;
	size_t n;
	json_t *pod, *host; /* links whose numbers are known */
};

static void count_failure(struct run *run, const struct err *problem)
{
	if (run->failures++ == 0 && run->err)
		*run->err = *problem;
}

/* Is it no failure of the step: already so, or gone already? A name that is taken is one. */
static bool is_settled(const json_t *step, int code)
{
	const char *what = json_str_at(step, "do");

	if (str_eq(what, "move") || str_eq(what, "rename") || json_at(step, "exclusive") ||
	    (str_eq(what, "upper") && !json_at(step, "shared")))
		return false;

	if (str_starts(what, "un"))
		return code == ENOENT || code == ESRCH || code == ENODEV || code == EADDRNOTAVAIL ||
		       code == ENXIO;
	return code == EEXIST;
}

static void judge_answer(struct run *run, const json_t *step, const struct netlink_answer *answer)
{
	auto_free char *text = NULL;
	struct err problem = {0};

	if (answer->code == 0) {
		if (run->done)
			json_array_append(run->done, (json_t *)step);
		return;
	}
	if (is_settled(step, answer->code))
		return;
	text = step_text(step);
	errno = answer->code;
	(void)err_sys(&problem, "StepRefused", "%s%s%s", text, answer->words[0] ? ": " : "",
		      answer->words);
	count_failure(run, &problem);
}

static bool is_over(const struct run *run)
{
	return run->failures && !run->all;
}

/* What was gathered when a step failed is not sent. True: the next step may be done. */
static bool flush_messages(struct run *run)
{
	auto_free struct netlink_answer *answers = NULL;
	struct err problem = {0};
	bool is_dropped = is_over(run);

	assert(!run->ns == (run->n == 0));
	if (run->n == 0)
		return !is_dropped;
	answers = mem_calloc(run->n, sizeof(*answers));
	if (!is_dropped && netlink_send(netns_netlink(run->ns), NETLINK_ROUTE, run->messages,
					run->n, answers, &problem))
		count_failure(run, &problem);
	for (size_t i = 0; i < run->n; i++) {
		if (!is_dropped)
			judge_answer(run, run->steps[i], &answers[i]);
		nlmsg_free(run->messages[i]);
	}
	run->n = 0;
	run->ns = NULL;
	return !is_over(run);
}

/*
 * 1: the number is known; 0: there is no such device; -1 with err. dev: where the step has no
 * number of its own.
 */
static int index_of(struct run *run, struct netns *ns, const json_t *step, const char *dev,
		    int *ret, struct err *err)
{
	json_t *known = ns == run->pair->pod ? run->pod : run->host;
	const json_t *link = look_link(known, dev);

	*ret = (int)look_number(step, "index");
	if (*ret > 0)
		return 1;
	if (!link) {
		/* It may be what a gathered message makes. */
		(void)flush_messages(run);
		if (netns_observe_link(ns, dev, 0, known, &link, err))
			return -1;
	}
	*ret = (int)look_number(link, "index");
	return link != NULL;
}

static void do_sysctl(struct run *run, struct netns *ns, const json_t *step)
{
	struct err problem = {0};

	if (!flush_messages(run))
		return;
	if (netns_write_sysctl(ns, json_str_or(json_at(step, "path"), ""),
			       json_str_or(json_at(step, "value"), ""), &problem) == 0) {
		if (run->done)
			json_array_append(run->done, (json_t *)step);
		return;
	}
	if (!(problem.sys == ENOENT && json_is_true(json_at(step, "optional"))))
		count_failure(run, &problem);
}

static bool has_mac(struct netns *ns, int index, const char *mac)
{
	json_auto_t *look = netns_look_new();
	const json_t *link = NULL;

	(void)netns_observe_link(ns, NULL, index, look, &link, NULL);
	return str_eq(json_str_at(link, "mac"), mac);
}

static bool send_mac(struct netns *ns, const json_t *step, int index, struct netlink_answer *ret)
{
	auto_nl_msg struct nl_msg *msg = message_of_step(step, index, -1, NULL);

	return msg && netlink_send(netns_netlink(ns), NETLINK_ROUTE, &msg, 1, ret, NULL) == 0;
}

/* What the VF's PF says it is; zeros: nothing. */
static bool tell_pf(struct run *run, const json_t *step, const char *mac)
{
	const char *pf = json_str_at(step, "pf");
	json_auto_t *told =
		json_pack("{s:s, s:O, s:s}", "do", "vf", "vf", json_at(step, "vf"), "mac", mac);
	struct netlink_answer answer;
	int index = 0;

	return index_of(run, run->pair->host, NULL, pf, &index, NULL) == 1 &&
	       send_mac(run->pair->host, told, index, &answer) && answer.code == 0;
}

/*
 * igb refuses its VF any address while it has told it one, the same one too, which the VF's driver
 * knows only after it has reset itself (igb_set_vf_mac_addr(), drivers/net/ethernet/intel/igb). The
 * PF forgets it for a moment; the interface is down.
 */
static void set_mac_past_pf(struct run *run, struct netns *ns, const json_t *step, int index,
			    struct netlink_answer *ret)
{
	const char *mac = json_str_at(step, "mac");

	if (!json_at(step, "pf") || !tell_pf(run, step, "00:00:00:00:00:00"))
		return;
	(void)send_mac(ns, step, index, ret);
	(void)tell_pf(run, step, mac);
}

/*
 * Drivers of VFs ask their PF, which may be busy, or reset themselves and forget: look, and try
 * again.
 */
static void do_mac(struct run *run, struct netns *ns, const json_t *step, int index)
{
	const struct timespec pause = {.tv_nsec = MAC_PAUSE_MS * 1000000L};
	struct netlink_answer answer = {0};

	if (!flush_messages(run))
		return;
	for (int i = 0; i < MAC_TRIES; i++) {
		if (!send_mac(ns, step, index, &answer))
			break;
		if (answer.code == EADDRNOTAVAIL)
			set_mac_past_pf(run, ns, step, index, &answer);
		if (has_mac(ns, index, json_str_at(step, "mac"))) {
			answer.code = 0;
			break;
		}
		answer.code = answer.code ? answer.code : EAGAIN;
		(void)nanosleep(&pause, NULL);
	}
	judge_answer(run, step, &answer);
}

static void do_marks(struct run *run, struct netns *ns, const json_t *step)
{
	struct err problem = {0};
	const char *dev = json_str_or(json_at(step, "dev"), "");

	if (!flush_messages(run))
		return;
	if (str_eq(json_str_at(step, "do"), "marks") ? marks_set(ns, dev, &problem)
						     : marks_clear(ns, &problem))
		count_failure(run, &problem);
	else if (run->done)
		json_array_append(run->done, (json_t *)step);
}

/* Does the step speak of a device by number? */
static bool needs_index(const json_t *step)
{
	const char *what = json_str_at(step, "do");

	return json_at(step, "dev") && !str_eq(what, "veth") && !str_eq(what, "ipoib") &&
	       !str_eq(what, "upper") && !str_eq(what, "bridge") && !str_eq(what, "bond") &&
	       !str_ends(what, "rule");
}

/*
 * Do messages that are gathered have to be carried out before this step is? Those to another
 * namespace; and settings of a VF before it moves, for the kernel goes on behind one that its PF
 * refuses.
 */
static bool comes_after(const struct run *run, const struct netns *ns, const json_t *step)
{
	if (run->n == 0)
		return false;
	return run->ns != ns ||
	       (!run->all && str_eq(json_str_at(run->steps[run->n - 1], "do"), "vf") &&
		!str_eq(json_str_at(step, "do"), "vf"));
}

static void do_step(struct run *run, const json_t *step)
{
	bool in_pod = str_eq(json_str_at(step, "in"), "pod");
	struct netns *ns = in_pod ? run->pair->pod : run->pair->host;
	struct netns *other = in_pod ? run->pair->host : run->pair->pod;
	const char *what = json_str_at(step, "do");
	struct err problem = {0};
	struct nl_msg *msg;
	int index = 0;

	if (!ns || (comes_after(run, ns, step) && !flush_messages(run)))
		return;
	if (str_eq(what, "sysctl")) {
		do_sysctl(run, ns, step);
		return;
	}
	if (str_ends(what, "marks")) {
		do_marks(run, ns, step);
		return;
	}
	if (needs_index(step)) {
		int found = index_of(run, ns, step, json_str_at(step, "dev"), &index, &problem);

		if (is_over(run))
			return;
		if (found == 0) {
			struct netlink_answer gone = {.code = ENODEV};

			judge_answer(run, step, &gone);
			return;
		}
		if (found < 0) {
			count_failure(run, &problem);
			return;
		}
	}
	if (str_eq(what, "mac")) {
		do_mac(run, ns, step, index);
		return;
	}
	if (str_eq(what, "move") && !other)
		return;
	msg = message_of_step(step, index, other ? netns_fd(other) : -1, &problem);
	if (!msg) {
		count_failure(run, &problem);
		return;
	}
	run->ns = ns;
	run->messages[run->n] = msg;
	run->steps[run->n++] = step;
	/* Numbers and names are others afterwards. */
	if (str_eq(what, "unlink") || str_eq(what, "move") || str_eq(what, "rename")) {
		(void)flush_messages(run);
		json_array_clear(json_at(run->pod, "links"));
		json_array_clear(json_at(run->host, "links"));
	}
}

static int execute_steps(const struct netns_pair *pair, const json_t *steps, bool all, json_t *done,
			 struct err *err)
{
	size_t n = json_array_size(steps), i;
	auto_free struct nl_msg **messages = mem_calloc(n + 1, sizeof(*messages));
	auto_free const json_t **gathered = mem_calloc(n + 1, sizeof(*gathered));
	json_auto_t *pod = netns_look_new(), *host = netns_look_new();
	struct run run = {
		.pair = pair,
		.err = err,
		.done = done,
		.messages = messages,
		.steps = gathered,
		.pod = pod,
		.host = host,
	};
	json_t *step;

	json_array_foreach (steps, i, step) {
		if (is_over(&run))
			break;
		do_step(&run, step);
	}
	(void)flush_messages(&run);
	return run.failures;
}

int netns_execute(const struct netns_pair *pair, const json_t *steps, json_t *ret_done,
		  struct err *err)
{
	assert(!ret_done || json_is_array(ret_done));
	return execute_steps(pair, steps, false, ret_done, err) ? -1 : 0;
}

int netns_execute_all(const struct netns_pair *pair, const json_t *steps, struct err *err)
{
	return execute_steps(pair, steps, true, NULL, err);
}
