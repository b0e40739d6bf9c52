// SPDX-License-Identifier: Apache-2.0
/*
 * The driver that a kubelet knows from its folder plugins_registry: it has claims prepared and
 * unprepared (dynamic resource allocation, Kubernetes 1.34 and later; KEP-4381).
 *
 * One socket, with a name of its own for each agent, serves registration and claims. It appears
 * once it is known which devices there are, so that a kubelet finds every CDI file that it
 * knows of. What was answered is on the disk before: who is asked again, after whatever end,
 * answers the same.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"

struct dra_driver;

struct dra_driver_config {
	const char *registry_dir; /* the kubelet's plugins_registry */
	const char *cdi_dir;      /* where runtimes look for CDI files: "/var/run/cdi" */
	const char *state_dir;    /* survives a boot */
	/*
	 * The agent has to read the claim, {"namespace", "name", "uid"}, borrowed:
	 * dra_driver_answer() is due. From the loop, as all of these.
	 */
	void (*ask)(void *arg, const json_t *claim);
	/* dra_driver_prepared() is another. */
	void (*changed)(void *arg);
	/* Emit an event: reason and message as for a condition. */
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	/* One of the folders was removed under us (device_plugins.h). Once. */
	void (*removed)(void *arg);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct dra_driver *dra_driver_new(struct loop *loop, const struct dra_driver_config *config);
/*
 * The socket is removed; done(arg) from a later turn. What is prepared stays so. Accepts NULL (done
 * is not called).
 */
void dra_driver_close(struct dra_driver *driver, void (*done)(void *arg), void *arg);

/*
 * Devices that claims may have from now on (dra_choice_claims()), borrowed, in the boot of that id.
 */
void dra_driver_set(struct dra_driver *driver, const json_t *pools, const char *boot);

/*
 * What config.ask asked: `claim` is of dra_claim_read(), borrowed, or NULL with why. A claim that
 * no call waits for any more is ignored. Not from `ask`.
 */
void dra_driver_answer(struct dra_driver *driver, const char *uid, const json_t *claim,
		       const struct err *why);
/* What was asked until now is not answered. Not from `ask` either. */
void dra_driver_forget(struct dra_driver *driver);

/*
 * Devices of claims, of dra_prepared(), borrowed; NULL: the state cannot be read. Accepts
 * NULL.
 */
const json_t *dra_driver_prepared(const struct dra_driver *driver);
