// SPDX-License-Identifier: Apache-2.0
/*
 * Asking the host for a reboot, by what its first process understands.
 *
 * systemd: the host's own `systemctl reboot`, which asks logind (systemctl(1)), so that what has a
 * delay inhibitor, as the kubelet's graceful shutdown, is waited for; else SIGRTMIN+5 (systemd(1)).
 * busybox init: SIGTERM. Both end services and unmount. No capability is needed: the first process
 * is the same user's. Others are not asked, since it is unknown what they would do.
 */
#pragma once

#include "nodeagent/host/host.h"

/* What the host's first process is. */
enum init_system reboot_init(const struct host *host);

/*
 * The door (host.h): ask it, and do not wait. ERR_HOST "RebootRefused": it is not known, we are not
 * in its PID namespace, or it does not take it.
 */
int reboot_ask(const struct host *host, enum init_system init, struct err *err);
