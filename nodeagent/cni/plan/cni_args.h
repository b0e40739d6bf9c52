// SPDX-License-Identifier: Apache-2.0
/* CNI_ARGS: "K=V;K=V" (containernetworking/cni, SPEC.md, "Parameters"). Pure. */
#pragma once

/* The value of the first pair of this key, new; NULL: there is none. args may be NULL. */
char *cni_args_value(const char *args, const char *key);
