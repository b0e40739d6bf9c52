// SPDX-License-Identifier: Apache-2.0
/* Looks come once a minute at least, so no timer is needed; one reading at a time. */
#include "nodeagent/agent/host_checker.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/model/host_checks.h"

struct host_checker {
	struct hostd *hostd;
	void (*changed)(void *arg);
	void *arg;
	json_t *observed; /* of the reading that is out; NULL: none is */
	json_t *before;   /* what the last reading found; NULL: there was none */
	json_t *shown;    /* what is listed */
	int64_t due_ms;
};

static void on_answer(void *arg, const json_t *facts, const struct err *err)
{
	struct host_checker *checker = arg;
	json_auto_t *observed = take_ptr(checker->observed), *found = NULL, *settled = NULL,
		    *all = NULL, *was = NULL;
	bool is_first = !checker->before;

	assert(observed);
	checker->due_ms = clock_ms() + HOST_CHECKER_FRESH_MS;
	if (err) {
		log_warn("settings of the host cannot be read", F_ERR(err));
		return;
	}
	found = host_checks_of_settings(observed, facts);
	settled = host_checks_settle(found, checker->before, checker->shown);
	all = host_checks_settle(found, found, NULL);
	if (!json_same(settled, all))
		checker->due_ms = clock_ms() + HOST_CHECKER_CONFIRM_MS;
	json_replace(&checker->before, json_incref(found));
	was = checker->shown;
	checker->shown = json_incref(settled);
	if (is_first || !json_same(was, settled))
		checker->changed(checker->arg);
}

void host_checker_heard(struct host_checker *checker, const json_t *shown)
{
	if (!checker->before)
		json_replace(&checker->shown, json_incref((json_t *)shown));
}

void host_checker_looked(struct host_checker *checker, const json_t *observed)
{
	assert(observed);
	if (checker->observed || clock_ms() < checker->due_ms ||
	    hostd_stuck(checker->hostd, NULL) > 0)
		return;
	checker->observed = json_incref((json_t *)observed);
	hostd_inspect(checker->hostd, on_answer, checker);
}

const json_t *host_checker_findings(const struct host_checker *checker)
{
	return checker->before ? checker->shown : NULL;
}

struct host_checker *host_checker_new(struct hostd *hostd, void (*changed)(void *arg), void *arg)
{
	struct host_checker *checker = mem_new(struct host_checker);

	assert(hostd && changed);
	checker->hostd = hostd;
	checker->changed = changed;
	checker->arg = arg;
	return checker;
}

void host_checker_free(struct host_checker *checker)
{
	if (!checker)
		return;
	json_decref(checker->observed);
	json_decref(checker->before);
	json_decref(checker->shown);
	mem_free(checker);
}
