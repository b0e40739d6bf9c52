// SPDX-License-Identifier: Apache-2.0
/*
 * What ports of an RDMA device have counted since their adapter was reset: traffic and errors,
 * InfiniBand's too. There is no netlink for it.
 */
#pragma once

#include "nodeagent/host/host.h"

/*
 * Put "port" into ret (counters_read()), unless none of `ports` (an array of numbers) of the device
 * `rdma` has such files: a driver that does not count, or a device of another network namespace in
 * mode exclusive, which the host's sysfs does not show. rdma NULL: nothing.
 */
void port_counters_put(struct host *host, const char *rdma, const json_t *ports, json_t *ret);
