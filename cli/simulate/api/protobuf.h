// SPDX-License-Identifier: Apache-2.0
/*
 * Objects as Kubernetes' protobuf, for clients that send nothing else: kubectl from 1.32 on creates
 * namespaces, ConfigMaps, Secrets and a few others so. Into JSON only; answers are always JSON.
 *
 * A table has the kinds and fields that such commands fill in; another kind, or a field that is not
 * in the table, is refused rather than lost. Pure.
 *
 * Source: generated.proto of k8s.io/api and k8s.io/apimachinery (numbers of fields, and
 * runtime.Unknown, the envelope).
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/*
 * Returns new, or NULL with
 *
 *   ERR_INVALID "BadProtobuf"           not a message, or not of this kind
 *   ERR_INVALID "UnsupportedMediaType"  a kind or a field that is not in the table; the text names
 *                                       it
 */
json_t *protobuf_object(const void *data, size_t len, struct err *err);
