// SPDX-License-Identifier: Apache-2.0
/*
 * An informer fed by a server that may say anything: lists, pages, watch events, statuses, garbage,
 * cut anywhere.
 *
 * The input is a script: for each answer one byte for the HTTP status, two for the number of bytes,
 * then the bytes. Calls and timers are played here (these definitions take the place of client.c
 * and loop.c), so that nothing waits. Checked: no crash, no leak, never two calls at a time, and
 * always either a call under way or a pause before the next one.
 */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"
#include "lib/loop/loop.h"
#include "tests/fuzz/fuzz.h"

/* ---- the played client and timer ------------------------------------------------------------- */

struct kube_call {
	struct kube_request request;
};

struct timer {
	loop_fn *fn;
	void *arg;
	bool due;
};

static struct kube_call *call;
static struct timer *pause_before;
static bool may_stream;

bool kube_client_may_stream(const struct kube_client *client, const char *kind)
{
	return may_stream;
}

void kube_client_refused_stream(struct kube_client *client, const char *kind)
{
	may_stream = false;
}

struct kube_call *kube_call(struct kube_client *client, const struct kube_request *request)
{
	if (call)
		abort(); /* one at a time */
	call = mem_new(struct kube_call);
	call->request = *request;
	return call;
}

void kube_call_cancel(struct kube_call *cancelled)
{
	if (cancelled != call)
		abort();
	mem_free(call);
	call = NULL;
}

struct timer *timer_new(struct loop *loop, loop_fn *fn, void *arg)
{
	pause_before = mem_new(struct timer);
	pause_before->fn = fn;
	pause_before->arg = arg;
	return pause_before;
}

void timer_start(struct timer *timer, int64_t after_ms)
{
	if (after_ms < 0)
		abort();
	timer->due = true;
}

void timer_stop(struct timer *timer)
{
	timer->due = false;
}

void timer_free(struct timer *timer)
{
	mem_free(timer);
	pause_before = NULL;
}

/* ---- the script ------------------------------------------------------------------------------ */

static const int statuses[] = {200, 200, 200, 200, 410, 404, 403, 500, 0};

static void answer(const uint8_t *bytes, size_t len, int status)
{
	struct kube_call *playing = call;
	const struct kube_request request = playing->request;
	struct kube_response response = {.status = status, .body = "", .retry_after_ms = -1};
	struct err err = {0};
	size_t half = len / 2;
	int result = 0;

	if (status == 200 && request.on_bytes) {
		if (request.on_open)
			request.on_open(request.arg);
		result = request.on_bytes(request.arg, (const char *)bytes, half, &err);
		if (result == 0)
			result = request.on_bytes(request.arg, (const char *)bytes + half,
						  len - half, &err);
	} else if (status == 0) {
		err_set(&err, ERR_TRANSIENT, "ConnectionLost", "played");
		result = -1;
	} else {
		result = kube_status_err(status, (const char *)bytes, len, &err);
	}
	mem_free(playing);
	call = NULL;
	request.done(request.arg, &response, result < 0 ? &err : NULL);
}

static void let_pauses_pass(void)
{
	if (call || !pause_before)
		return;
	if (!pause_before->due)
		abort(); /* neither at work nor about to be */
	pause_before->due = false;
	pause_before->fn(pause_before->arg);
}

static void play(const uint8_t *data, size_t size)
{
	while (size >= 3) {
		int status = statuses[data[0] % ARRAY_LEN(statuses)];
		size_t len = (size_t)data[1] | (size_t)data[2] << 8;

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		let_pauses_pass();
		answer(data, len, status);
		data += len;
		size -= len;
	}
	let_pauses_pass();
}

static void index_by_label(const json_t *object, struct cache_values *values)
{
	const char *value = json_str_at(object, "metadata", "labels", "a");

	if (value)
		cache_index_value(values, value);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const splitter_path drops[] = {{"metadata", "managedFields"}};
	static const struct kube_resource resource = {"g", "v1", "things", "Thing", true};
	struct cache_kind kind = {.indexes = {index_by_label}};
	struct informer_config config = {.resource = &resource, .drops = drops, .n_drops = 1};
	struct informer *informer = NULL;

	if (size == 0)
		return 0;
	kind.live = data[0] & 1;
	may_stream = data[0] & 2;
	config.cache = cache_new(&kind, NULL, NULL);
	informer = informer_new(NULL, NULL, &config);
	play(data + 1, size - 1);
	informer_free(informer);
	cache_free(config.cache);
	return 0;
}
