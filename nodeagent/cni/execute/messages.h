// SPDX-License-Identifier: Apache-2.0
/* Steps as netlink messages. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "nodeagent/netlink/message.h"

/*
 * The message for a step in a namespace where its device has the number `index` (0: it needs none).
 * other: descriptor of the other namespace, for a pair of links. NULL with err ERR_BUG "BadStep"
 * for a step that cannot be one.
 */
struct nl_msg *message_of_step(const json_t *step, int index, int other, struct err *err);
