// SPDX-License-Identifier: Apache-2.0
/* The handler of all requests. Internal to the API server; api.h says what it serves. */
#pragma once

#include "lib/http/server.h"

/* arg: struct api. */
void rest_handle(const struct http_request *req, struct http_response *resp, void *arg);
