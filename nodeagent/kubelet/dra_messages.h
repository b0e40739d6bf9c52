// SPDX-License-Identifier: Apache-2.0
/* The kubelet's messages about claims, and our documents. Pure. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/grpc/proto/dra.pb-c.h"

/*
 * The claims of a NodePrepareResourcesRequest or NodeUnprepareResourcesRequest, which are alike:
 * [{"namespace", "name", "uid"}], new, each uid once.
 */
json_t *dra_message_claims(const struct ProtobufCMessage *request);

/*
 * Answers, {UID: {"devices": […] (nodeagent/model/dra_state.h)} or {"error": text} or {}}, as
 * messages. New: dra_message_free().
 */
struct ProtobufCMessage *dra_message_prepared(const json_t *answers);
struct ProtobufCMessage *dra_message_unprepared(const json_t *answers);
/*
 * How devices of claims are (dra_claims_health()), determined at `time_s` of the wall clock, for
 * the kubelet's pkg/apis/dra-health. New.
 */
struct ProtobufCMessage *dra_message_health(const json_t *health, int64_t time_s);
void dra_message_free(struct ProtobufCMessage *message);
