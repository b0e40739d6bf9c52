// SPDX-License-Identifier: Apache-2.0
/* One Register call: "this socket serves this resource", with a deadline. */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"

struct registration;

/* Since 1.25 the kubelet answers when it has called us back, for which it takes 10 s at most. */
enum { REGISTRATION_TIMEOUT_MS = 15000 };

struct registration_config {
	const char *kubelet;  /* path of the kubelet's socket */
	const char *endpoint; /* name of ours, in the same directory */
	const char *resource;
	int64_t timeout_ms; /* 0 is REGISTRATION_TIMEOUT_MS */
	/*
	 * The end, from the loop, once; the registration may be freed here. why NULL: the kubelet
	 * has taken it. Else ERR_INVALID "RegisterRefused" with the kubelet's text, or
	 * ERR_TRANSIENT "KubeletSilent", "KubeletUnavailable".
	 */
	void (*done)(void *arg, const struct err *why);
	void *arg;
};

/*
 * Begin; strings are borrowed. NULL with err ERR_TRANSIENT "KubeletUnavailable" when no kubelet
 * listens.
 */
struct registration *registration_new(struct loop *loop, const struct registration_config *config,
				      struct err *err);
/* At any time; done is not called any more. Accepts NULL. */
void registration_free(struct registration *registration);
