// SPDX-License-Identifier: Apache-2.0
/*
 * The record of reboots that were asked for, in HOST_BOOTS_FILE: written before one is asked for,
 * so that the same cause never reboots twice without effect, and no cause more than
 * HOST_BOOTS_A_DAY times a day, whatever comes between: a power cut, another agent, a spec that
 * changes to and fro.
 *
 * {"asked": [{"cause", "bootID": the boot that it was to end, "at": RFC 3339, "requests": how often
 * the first process was asked, "requestedAt": last, "closed": the cause is no more}]}, oldest
 * first.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/host/host.h"

/*
 * What there is, as part "boots" of the observed document, new: {"id": of this boot, "today": boots
 * of the last 24 hours that were asked for, "asked": [{"cause", "bootID", "at", "requested": true
 * when the first process was asked, "closed", of one that is to end this boot "due": it has to be
 * asked (again), "overdue": it was asked long ago}]}. "problem" instead of the last two: the file
 * cannot be read.
 */
json_t *boots_observe(const struct host *host);

/*
 * Write down that `boot` is to end because of `cause`. Not when it is another boot than this
 * (ERR_CONFLICT "BootChanged"), was rebooted for this cause before and that is not closed (ERR_HOST
 * "RebootDidNotHelp"), or there were too many today ("RebootsTooOften"). ERR_HOST
 * "BootsUnreadable", "BootsNotWritten".
 */
int boots_record(const struct host *host, const char *cause, const char *boot, bool *ret_changed,
		 struct err *err);

/* The cause is no more: what was recorded for it is closed. */
int boots_close(const struct host *host, const char *cause, bool *ret_changed, struct err *err);

/*
 * Ask the first process for a reboot. Not unless it is recorded for this boot and cause (ERR_BUG
 * "RebootNotRecorded"), nor again within HOST_BOOT_PATIENCE_S. ERR_HOST "RebootRefused".
 */
int boots_ask(struct host *host, const char *cause, const char *boot, bool *ret_changed,
	      struct err *err);
