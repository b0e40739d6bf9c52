// SPDX-License-Identifier: Apache-2.0
/*
 * Our udev rules on the host: one file per PF and purpose in /etc/udev/rules.d, under the names
 * that the SR-IOV network operator uses, so that an installation that is taken over has each once.
 * Where /etc is part of a read-only image they are in /run/udev/rules.d, and written again after
 * each boot.
 */
#pragma once

#include <stdbool.h>

#include "nodeagent/host/host.h"

/* Names of rules that are there for a PF ("pf-name", "nm-unmanaged"); an array, new. */
json_t *udev_rules_of(const struct host *host, const char *pf);

/*
 * pf-name: the PF's interface is called `name` whatever its driver does.
 * nm-unmanaged: NetworkManager leaves the interfaces of this PF's VFs alone.
 * udevd reads changed rules by itself before the next event (udev(7)).
 */
int udev_write_rule(struct host *host, const char *pf, const char *rule, const char *name,
		    bool *ret_changed, struct err *err);
int udev_remove_rule(struct host *host, const char *pf, const char *rule, bool *ret_changed,
		     struct err *err);
