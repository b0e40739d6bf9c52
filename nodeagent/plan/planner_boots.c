// SPDX-License-Identifier: Apache-2.0
/*
 * Reboots: what was recorded of them, and the next one.
 *
 * One that a plan wants ("reboot") is asked for in three steps, each seen to have worked before the
 * next: it is allowed for this very boot and cause, it is recorded on the host's disk, and the
 * record is in the NodeState's status. A record whose cause is no more is closed; one that is open
 * and of an earlier boot was in vain, and the same cause reboots no more until the cause changes or
 * somebody wants to try again.
 */
#include "nodeagent/plan/planner_internal.h"

#include <stdarg.h>

static const json_t *asked(const struct planning *p)
{
	return json_at(p->in->observed, "boots", "asked");
}

static const char *this_boot(const struct planning *p)
{
	return json_str_or(json_at(p->in->observed, "boots", "id"), "");
}

static bool is_retried(const struct planning *p)
{
	return *this_boot(p) && str_eq(p->in->reboot_retry, this_boot(p));
}

static bool is_of_this_boot(const struct planning *p, const json_t *entry)
{
	return str_eq(json_str_at(entry, "bootID"), this_boot(p));
}

/* The record of the cause that is open; NULL: none. */
static const json_t *open_record(const struct planning *p, const char *cause)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (asked(p), i, entry)
		if (str_eq(json_str_at(entry, "cause"), cause) &&
		    !json_is_true(json_at(entry, "closed")))
			return entry;
	return NULL;
}

const json_t *boots_in_vain(const struct planning *p)
{
	const json_t *entry = open_record(p, p->boot_cause);

	return entry && !is_of_this_boot(p, entry) && !is_retried(p) ? entry : NULL;
}

bool boots_again(const struct planning *p)
{
	const json_t *entry = open_record(p, p->boot_cause);

	return is_retried(p) || (entry && is_of_this_boot(p, entry));
}

void boots_say_in_vain(struct planning *p, const json_t *boot, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	steps_problem(p, NULL, "RebootDidNotHelp",
		      "rebooted at %.40s: %s; then reboot by hand, or orbweaver drain retry",
		      json_str_or(json_at(boot, "at"), "an unknown time"), text);
	p->in_vain = json_object();
	json_put_str(p->in_vain, "cause", p->boot_cause);
	json_put_str(p->in_vain, "message", text);
}

/* Causes that are no more, and one that is tried again. */
static void close_records(struct planning *p)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (asked(p), i, entry) {
		const char *cause = json_str_at(entry, "cause");
		bool is_over = !str_eq(cause, p->boot_cause);

		if (json_is_true(json_at(entry, "closed")) ||
		    (!is_over && (is_of_this_boot(p, entry) || !is_retried(p))))
			continue;
		(void)planner_add(p, NULL, NULL,
				  json_pack("{s:s, s:s}", "step", "close-reboot", "cause",
					    cause ? cause : ""),
				  is_over ? "no boot is needed for it any more"
					  : "somebody wants to try once more");
	}
}

/* The API server has it as well, so that who looks there knows what goes on. */
static bool is_reported(const struct planning *p, const char *cause)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(p->in->boots_reported, "asked"), i, entry)
		if (str_eq(json_str_at(entry, "cause"), cause) && is_of_this_boot(p, entry))
			return true;
	return false;
}

static bool is_allowed(const struct planning *p, const char *cause)
{
	auto_free char *wanted = str_printf("%s %s", this_boot(p), cause);

	return *this_boot(p) && str_eq(p->in->reboot_allowed, wanted);
}

static json_t *boot_step(const struct planning *p, const char *name, const char *cause)
{
	return json_pack("{s:s, s:s, s:s}", "step", name, "cause", cause, "boot", this_boot(p));
}

static void plan_next(struct planning *p)
{
	const char *cause = p->boot_cause;
	const json_t *entry = open_record(p, cause);

	if (json_is_true(json_at(entry, "overdue")))
		steps_problem(p, NULL, "RebootDidNotStart",
			      "a reboot was asked for at %.40s, and this boot still runs: see what "
			      "keeps the host from going down (its journal), or reset it",
			      json_str_or(json_at(entry, "at"), "an unknown time"));
	/* What can be done without comes first. */
	if (!is_allowed(p, cause) || json_array_size(p->steps) > 0)
		return;
	if (!entry)
		(void)planner_add(p, NULL, NULL, boot_step(p, "record-reboot", cause),
				  "the node was emptied for a reboot");
	else if (is_reported(p, cause) && json_is_true(json_at(entry, "due")))
		(void)planner_add(p, NULL, NULL, boot_step(p, "reboot", cause),
				  "the node was emptied for a reboot, and that is recorded");
}

static void forget_reboot(struct planning *p)
{
	json_decref(p->reboot);
	p->reboot = NULL;
}

void plan_boots(struct planning *p)
{
	const char *unreadable = json_str_at(p->in->observed, "boots", "problem");
	json_int_t today = json_integer_value(json_at(p->in->observed, "boots", "today"));

	close_records(p);
	if (!p->reboot)
		return;
	json_put_str(p->reboot, "cause", p->boot_cause);
	if (today >= HOST_BOOTS_A_DAY && !open_record(p, p->boot_cause)) {
		steps_problem(p, NULL, "RebootsTooOften",
			      QUOTE "; but this node was rebooted %lld times within a day, which "
				    "is the most: see why, and reboot it by hand, or wait",
			      json_str_or(json_at(p->reboot, "message"), "a boot is needed"),
			      (long long)today);
		forget_reboot(p);
	} else if (unreadable) {
		steps_problem(p, NULL, "BootsUnreadable", QUOTE, unreadable);
		forget_reboot(p);
	} else {
		plan_next(p);
	}
}
