// SPDX-License-Identifier: Apache-2.0
/*
 * Look, then take, renew or wait. Every write carries the resourceVersion that was read, so two
 * candidates cannot both succeed. The argument why that is enough is in the header.
 *
 * Facts: k8s.io/api/coordination/v1 LeaseSpec; the rules of k8s.io/client-go/tools/leaderelection
 * on observed time.
 */
#include "lib/kube/lease.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/status.h"

const struct lease_timing lease_default_timing = {
	.duration_s = LEASE_DURATION_S,
	.hold_ms = LEASE_HOLD_MS,
	.renew_ms = LEASE_RENEW_MS,
};

struct lease {
	struct lease_config config;
	struct kube_client *client;
	struct timer *timer;  /* the next look */
	struct timer *expiry; /* when we stop being the holder unless renewed */
	struct kube_call *call;
	json_t *object;        /* as last read or written; NULL: not there, or not known */
	int64_t seen_ms;       /* when its holder or renewTime last changed, on our clock */
	int64_t sent_ms;       /* when the write in flight left */
	int64_t held_until_ms; /* 0: not held */
	int64_t looked_ms;     /* when a call last ended */
	bool object_is_old;    /* a write failed: read before the next one */
	bool writing;          /* the call in flight may make us the holder */
	bool leading;          /* as last reported */
	bool releasing;
	bool reported; /* `trouble` was called */
	void (*released)(void *arg);
	void *released_arg;
	char last_trouble[sizeof(((struct err *)0)->text)];
};

static void look(void *arg);

static const char *holder_of(const json_t *object)
{
	const char *holder = json_str_at(object, "spec", "holderIdentity");

	return holder ? holder : "";
}

static void report_leading(struct lease *lease)
{
	bool leading = lease_is_held(lease);

	if (leading == lease->leading)
		return;
	lease->leading = leading;
	lease->config.changed(lease->config.arg, leading);
}

static void report_trouble(struct lease *lease, const struct err *err)
{
	const char *text = err ? err->text : "";

	if (lease->reported && str_eq(text, lease->last_trouble))
		return;
	lease->reported = true;
	snprintf(lease->last_trouble, sizeof(lease->last_trouble), "%s", text);
	if (lease->config.trouble)
		lease->config.trouble(lease->config.arg, err);
}

bool lease_is_held(const struct lease *lease)
{
	return !lease->releasing && (lease->config.is_alone || clock_ms() < lease->held_until_ms);
}

const char *lease_holder(const struct lease *lease)
{
	return holder_of(lease->object);
}

static void look_after(struct lease *lease, int64_t pause)
{
	assert(pause > 0);
	timer_start(lease->timer, pause - pause / 10 + (int64_t)clock_jitter((uint64_t)pause / 5));
}

static void look_again(struct lease *lease)
{
	look_after(lease, lease_is_held(lease) ? lease->config.timing.renew_ms : LEASE_LOOK_MS);
}

static bool same_term(const json_t *a, const json_t *b)
{
	return str_eq(holder_of(a), holder_of(b)) &&
	       str_eq(json_str_at(a, "spec", "renewTime"), json_str_at(b, "spec", "renewTime"));
}

static void remember_object(struct lease *lease, json_t *object)
{
	if (!lease->object || !same_term(lease->object, object))
		lease->seen_ms = clock_ms();
	json_replace(&lease->object, json_incref(object));
}

/*
 * Free to take: without a holder, or not renewed for its whole duration as we watched. A duration
 * shorter than ours is a mistake, perhaps about a holder like us; a long one may be an
 * administrator who wants things to hold still.
 */
static bool is_free(const struct lease *lease)
{
	json_int_t seconds =
		json_integer_value(json_at(lease->object, "spec", "leaseDurationSeconds"));

	if (seconds < lease->config.timing.duration_s)
		seconds = lease->config.timing.duration_s;
	if (seconds > LEASE_FOREIGN_MAX_S)
		seconds = LEASE_FOREIGN_MAX_S;
	return str_empty(holder_of(lease->object)) || clock_ms() - lease->seen_ms >= seconds * 1000;
}

static void on_written(void *arg, json_t *object, const struct err *err)
{
	struct lease *lease = arg;

	assert(lease->writing && !lease->releasing);
	lease->call = NULL;
	lease->looked_ms = clock_ms();
	lease->writing = false;
	if (err) {
		/*
		 * Another was faster, or an answer to our own write was lost, or it was deleted:
		 * what is there now?
		 */
		bool outdated = err->class == ERR_CONFLICT ||
				(kube_err_is(err, "NotFound") && lease->object);

		if (!outdated)
			report_trouble(lease, err);
		lease->object_is_old = true;
		report_leading(lease);
		if (lease_is_held(lease) || outdated)
			look_after(lease, LEASE_RETRY_MS);
		else
			look_again(lease);
		return;
	}
	remember_object(lease, object);
	lease->object_is_old = false;
	if (!lease->config.is_alone) {
		lease->held_until_ms = lease->sent_ms + lease->config.timing.hold_ms;
		kube_client_writes_end_at(lease->client, lease->held_until_ms);
		timer_start(lease->expiry, lease->held_until_ms - clock_ms());
	}
	report_trouble(lease, NULL);
	report_leading(lease);
	look_again(lease);
}

static json_t *new_spec(const struct lease *lease)
{
	char now[RFC3339_SIZE];
	const json_t *old = json_at(lease->object, "spec");
	bool same_holder = str_eq(holder_of(lease->object), lease->config.identity);
	json_int_t transitions = json_integer_value(json_at(old, "leaseTransitions"));
	const char *acquired = json_str_at(old, "acquireTime");
	json_t *spec = json_object();

	rfc3339_write_micro(clock_wall_us(), now);
	json_put_str(spec, "holderIdentity", lease->config.identity);
	json_put_int(spec, "leaseDurationSeconds", lease->config.timing.duration_s);
	json_put_str(spec, "acquireTime", same_holder && acquired ? acquired : now);
	json_put_str(spec, "renewTime", now);
	json_put_int(spec, "leaseTransitions", transitions + (lease->object && !same_holder));
	return spec;
}

/* As it was, labels and all, with our spec and annotations; or a new one. */
static json_t *new_object(const struct lease *lease)
{
	json_t *object = lease->object ? json_deep_copy(lease->object)
				       : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion",
						   "coordination.k8s.io/v1", "kind", "Lease",
						   "metadata", "name", lease->config.name,
						   "namespace", lease->config.ns);
	json_t *annotations;

	json_object_del(json_at(object, "metadata"), "managedFields");
	annotations = json_need_object(json_at(object, "metadata"), "annotations");
	json_object_update(annotations, (json_t *)lease->config.annotations);
	json_put(annotations, LEASE_TERM_ANNOTATION,
		 json_fmt("%lld", (long long)lease->config.timing.hold_ms / 1000));
	json_put(object, "spec", new_spec(lease));
	return object;
}

/* Three attempts fit into a term. */
static int64_t call_timeout_ms(const struct lease *lease)
{
	int64_t quarter = lease->config.timing.hold_ms / 4;

	return quarter < LEASE_CALL_TIMEOUT_MS ? quarter : LEASE_CALL_TIMEOUT_MS;
}

static void take_or_renew(struct lease *lease)
{
	const struct kube_write how = {
		.field_manager = lease->config.field_manager,
		.timeout_ms = call_timeout_ms(lease),
	};
	json_auto_t *object = new_object(lease);

	assert(!lease->call && !lease->releasing);
	lease->sent_ms = clock_ms();
	lease->writing = true;
	lease->call =
		lease->object
			? kube_update(lease->client, &kube_leases, object, &how, on_written, lease)
			: kube_create(lease->client, &kube_leases, object, &how, on_written, lease);
}

static bool may_take(const struct lease *lease)
{
	return lease->config.is_alone || is_free(lease);
}

static bool is_ours(const json_t *object, const struct lease *lease)
{
	return str_eq(holder_of(object), lease->config.identity);
}

static void on_read(void *arg, json_t *object, const struct err *err)
{
	struct lease *lease = arg;

	assert(!lease->writing && !lease->releasing);
	lease->call = NULL;
	lease->looked_ms = clock_ms();
	if (err && !kube_err_is(err, "NotFound")) {
		report_trouble(lease, err);
		look_after(lease, lease_is_held(lease) ? LEASE_RETRY_MS : LEASE_LOOK_MS);
		return;
	}
	if (err && lease->object && !is_ours(lease->object, lease) && !may_take(lease)) {
		/* Deleted under a holder who writes until it notices. */
		look_again(lease);
		return;
	}
	if (err) {
		json_decref(lease->object);
		lease->object = NULL;
		take_or_renew(lease);
		return;
	}
	report_trouble(lease, NULL);
	remember_object(lease, object);
	lease->object_is_old = false;
	if (is_ours(object, lease) || may_take(lease)) {
		take_or_renew(lease);
		return;
	}
	lease->held_until_ms = 0; /* another holder's, whatever we believed */
	report_leading(lease);
	look_again(lease);
}

/*
 * A holder renews what it wrote last, without reading first; everybody else reads, as does a holder
 * whose last write failed: it may have been stored all the same.
 */
static void look(void *arg)
{
	struct lease *lease = arg;

	if (lease->call || lease->releasing)
		return;
	/* after a suspend the timer of the expiry is late: libuv's clock stood still */
	report_leading(lease);
	if (lease_is_held(lease) && lease->object && !lease->object_is_old)
		take_or_renew(lease);
	else
		lease->call = kube_get(lease->client, &kube_leases, lease->config.ns,
				       lease->config.name, NULL, on_read, lease);
}

static void on_expiry(void *arg)
{
	struct lease *lease = arg;

	if (lease_is_held(lease)) /* renewed meanwhile */
		timer_start(lease->expiry, lease->held_until_ms - clock_ms());
	else
		report_leading(lease);
}

int lease_check_timing(const struct lease_timing *timing, struct err *err)
{
	long long duration_ms = (long long)timing->duration_s * 1000;

	if (timing->duration_s < 1 || timing->duration_s > 3600)
		return err_set(err, ERR_INVALID, "BadLeaseTiming",
			       "a lease duration of %lld s: must be from 1 to 3600 s",
			       (long long)timing->duration_s);
	if (timing->hold_ms + KUBE_DELIVERY_MS >= duration_ms)
		return err_set(
			err, ERR_INVALID, "BadLeaseTiming",
			"a renew deadline of %lld ms: must be at least %d ms shorter than the "
			"lease duration of %lld ms, so that what was sent last has arrived",
			(long long)timing->hold_ms, KUBE_DELIVERY_MS + 1, duration_ms);
	if (timing->renew_ms < 500 || timing->renew_ms * 2 > timing->hold_ms)
		return err_set(
			err, ERR_INVALID, "BadLeaseTiming",
			"a retry period of %lld ms: must be from 500 ms to half of the renew "
			"deadline of %lld ms",
			(long long)timing->renew_ms, (long long)timing->hold_ms);
	return 0;
}

int64_t lease_term_ms(const json_t *object)
{
	const char *text = json_str_at(object, "metadata", "annotations", LEASE_TERM_ANNOTATION);
	int64_t seconds = json_integer_value(json_at(object, "spec", "leaseDurationSeconds"));

	if (text && str_to_int(text, 1, LEASE_FOREIGN_MAX_S, &seconds))
		return seconds * 1000;
	if (seconds < 1)
		seconds = LEASE_DURATION_S;
	return (seconds < LEASE_FOREIGN_MAX_S ? seconds : LEASE_FOREIGN_MAX_S) * 1000;
}

int64_t lease_looked_ms(const struct lease *lease)
{
	return lease->looked_ms;
}

struct lease *lease_new(struct loop *loop, struct kube_client *client,
			const struct lease_config *config)
{
	struct lease *lease = mem_new(struct lease);

	assert(loop && client && config->name && config->identity && config->changed);
	lease->config = *config;
	if (config->timing.duration_s == 0)
		lease->config.timing = lease_default_timing;
	assert(lease_check_timing(&lease->config.timing, NULL) == 0);
	lease->looked_ms = clock_ms();
	lease->client = client;
	lease->timer = timer_new(loop, look, lease);
	lease->expiry = timer_new(loop, on_expiry, lease);
	timer_start(lease->timer, 0);
	return lease;
}

/* ---- release --------------------------------------------------------------------------------- */

static void on_released(void *arg, json_t *object, const struct err *err)
{
	struct lease *lease = arg;

	assert(lease->releasing);
	lease->call = NULL;
	if (err)
		log_warn("cannot release the lease", F_STR("lease", lease->config.name),
			 F_ERR(err));
	if (lease->released)
		lease->released(lease->released_arg);
}

void lease_release(struct lease *lease, void (*done)(void *arg), void *arg)
{
	bool held = lease->writing || (lease_is_held(lease) && is_ours(lease->object, lease));
	const struct kube_write how = {
		.field_manager = lease->config.field_manager,
		.timeout_ms = call_timeout_ms(lease),
	};
	json_auto_t *patch = NULL;

	assert(!lease->releasing);
	lease->releasing = true;
	lease->released = done;
	lease->released_arg = arg;
	timer_stop(lease->timer);
	timer_stop(lease->expiry);
	kube_call_cancel(take_ptr(lease->call));
	if (!held) {
		if (done)
			done(arg);
		return;
	}
	/*
	 * Gives the Lease back if it is ours; the server checks that and writes in one step. No
	 * resourceVersion: a renewal that was cancelled just now may have been stored.
	 */
	patch = json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:i}]", "op", "test",
			  "path", "/spec/holderIdentity", "value", lease->config.identity, "op",
			  "replace", "path", "/spec/holderIdentity", "value", "", "op", "replace",
			  "path", "/spec/leaseDurationSeconds", "value", 1);
	lease->call = kube_patch(lease->client, &kube_leases, lease->config.ns, lease->config.name,
				 KUBE_PATCH_JSON, patch, &how, on_released, lease);
}

void lease_free(struct lease *lease)
{
	if (!lease)
		return;
	if (lease->held_until_ms > clock_ms())
		kube_client_writes_end_at(lease->client, clock_ms());
	kube_call_cancel(lease->call);
	timer_free(lease->timer);
	timer_free(lease->expiry);
	json_decref(lease->object);
	mem_free(lease);
}
