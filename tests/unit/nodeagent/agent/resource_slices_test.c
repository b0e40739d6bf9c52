// SPDX-License-Identifier: Apache-2.0
/*
 * ResourceSlices against an API server that is made up here: one that drops fields, refuses, and is
 * written to by others. What a real one says: tests/integration/dra_test.sh.
 */
#include "tests/support/test.h"

#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "nodeagent/agent/resource_slices.h"
#include "tests/support/until.h"
#include "tests/support/yaml.h"

#define POOLS                                                                                      \
	"resources: [{name: spidernet.io/hca, kind: shared, offered: true, devices: [{id: '0', "   \
	"healthy: true}]}, {name: spidernet.io/x, kind: sriov, offered: true, devices: [{id: "     \
	"'0000:3b:00.2', healthy: true}, {id: '0000:3b:00.3', healthy: false}]}]"

/* Time that tests let pass at once; timers keep their own. */
static int64_t leapt_us;

int64_t clock_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000 + leapt_us;
}

/* ---- the server ------------------------------------------------------------------------------ */

struct kube_call {
	kube_object_fn *done;
	void *arg;
	json_t *answer; /* NULL: it fails */
};

struct informer {
	struct informer_config config;
};

static struct server {
	struct informer informer;
	struct deferred *answer;
	struct kube_call call;
	uint64_t version;
	int writes, deletes;
	bool drops_taints, drops_sharing, refuses;
} server;

struct informer *informer_new(struct loop *loop, struct kube_client *client,
			      const struct informer_config *config)
{
	server.informer.config = *config;
	return &server.informer;
}

void informer_free(struct informer *informer)
{
}

bool informer_is_synced(const struct informer *informer)
{
	return true;
}

void informer_learn(struct informer *informer, json_t *object)
{
	(void)cache_learn(informer->config.cache, json_deep_copy(object));
}

/* The cache asks for it; the file that has it makes calls, too. */
uint64_t kube_resource_version(const json_t *object)
{
	int64_t version = 0;

	(void)str_to_int(json_str_at(object, "metadata", "resourceVersion"), 0, INT64_MAX,
			 &version);
	return (uint64_t)version;
}

static void answer(void *arg)
{
	struct kube_call call = server.call;
	struct err err = {0};

	server.call = (struct kube_call){0};
	if (!call.answer)
		(void)err_set(&err, ERR_INVALID, "Forbidden", "no rights");
	call.done(call.arg, call.answer, call.answer ? NULL : &err);
	json_decref(call.answer);
}

static struct kube_call *begin(kube_object_fn *done, void *arg, json_t *object)
{
	assert_null(server.call.done); /* one at a time */
	server.call = (struct kube_call){done, arg, object};
	deferred_run(server.answer);
	return &server.call;
}

struct kube_call *kube_patch(struct kube_client *client, const struct kube_resource *resource,
			     const char *ns, const char *name, enum kube_patch type,
			     const json_t *patch, const struct kube_write *how,
			     kube_object_fn *done, void *arg)
{
	json_t *stored = json_deep_copy(patch), *device;
	size_t i;

	assert_int_equal(type, KUBE_PATCH_APPLY);
	assert_true(how->force);
	server.writes++;
	if (server.refuses) {
		json_decref(stored);
		return begin(done, arg, NULL);
	}
	json_put(json_at(stored, "metadata"), "resourceVersion",
		 json_fmt("%d", (int)++server.version));
	json_array_foreach (json_at(stored, "spec", "devices"), i, device) {
		if (server.drops_taints)
			(void)json_object_del(device, "taints");
		if (server.drops_sharing)
			(void)json_object_del(device, "allowMultipleAllocations");
	}
	return begin(done, arg, stored);
}

struct kube_call *kube_delete(struct kube_client *client, const struct kube_resource *resource,
			      const char *ns, const char *name, const char *uid,
			      const char *resource_version, const struct kube_write *how,
			      kube_object_fn *done, void *arg)
{
	server.deletes++;
	(void)cache_remove(server.informer.config.cache, name, ++server.version);
	return begin(done, arg, json_object());
}

void kube_call_cancel(struct kube_call *call)
{
	if (!call)
		return;
	json_decref(call->answer);
	*call = (struct kube_call){0};
}

/* ---- the stand ------------------------------------------------------------------------------- */

struct stand {
	struct loop *loop;
	struct resource_slices *slices;
	struct strbuf told;
};

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	strbuf_addf(&((struct stand *)arg)->told, "%s;", reason);
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	s->loop = loop_new();
	server = (struct server){.answer = deferred_new(s->loop, answer, NULL)};
	s->slices = resource_slices_new(&(struct resource_slices_config){
		.loop = s->loop,
		.node = "n1",
		.emit = on_told,
		.arg = s,
	});
	resource_slices_set_owner(s->slices, "u1");
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	resource_slices_free(s->slices);
	deferred_free(server.answer);
	loop_free(s->loop);
	strbuf_done(&s->told);
	mem_free(s);
	return 0;
}

/* All that is due within a minute has happened. */
static void settle(struct stand *s)
{
	for (int i = 0; i < 4; i++) {
		leapt_us += 90 * 1000000LL;
		resource_slices_may_write(s->slices, true);
		pass(s->loop, 20);
	}
}

static void publish(struct stand *s, const char *text)
{
	json_auto_t *pools = yaml(text);

	resource_slices_set(s->slices, pools, NULL);
}

/* Names of devices in slice 0, those with a taint with "!"; "none" when there is no slice. */
static void assert_devices(const char *want)
{
	json_auto_t *slice = cache_get(server.informer.config.cache, "n1-dra.orbweaver.io-0");
	auto_strbuf struct strbuf text = {0};
	const json_t *device;
	size_t i;

	json_array_foreach (json_at(slice, "spec", "devices"), i, device)
		strbuf_addf(&text, "%s%s%s", i ? " " : "", json_str_at(device, "name"),
			    json_at(device, "taints") ? "!" : "");
	assert_string_equal(slice ? strbuf_str(&text) : "none", want);
}

static size_t n_devices(void)
{
	json_auto_t *slice = cache_get(server.informer.config.cache, "n1-dra.orbweaver.io-0");

	return json_array_size(json_at(slice, "spec", "devices"));
}

TEST_WITH(only_the_agent_that_executes_writes_and_once, set_up, tear_down)
{
	struct stand *s = *state;

	publish(s, POOLS);
	pass(s->loop, 20);
	assert_int_equal(server.writes, 0);
	settle(s);
	assert_int_equal(server.writes, 1);
	settle(s);
	assert_int_equal(server.writes, 1);
	publish(s, "resources: []");
	settle(s);
	assert_int_equal(server.deletes, 1);
	assert_devices("none");
	assert_string_equal(strbuf_str(&s->told), "");
}

TEST_WITH(what_others_change_is_put_right, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *kept = NULL;
	json_t *slice;

	publish(s, POOLS);
	settle(s);
	kept = cache_get(server.informer.config.cache, "n1-dra.orbweaver.io-0");
	slice = json_deep_copy(kept);
	json_put(json_at(slice, "spec"), "devices", json_array());
	json_put(json_at(slice, "metadata"), "resourceVersion",
		 json_fmt("%d", (int)++server.version));
	(void)cache_put(server.informer.config.cache, slice);
	settle(s);
	assert_int_equal(server.writes, 2);
	(void)cache_remove(server.informer.config.cache, "n1-dra.orbweaver.io-0", ++server.version);
	settle(s);
	assert_int_equal(server.writes, 3);
}

/* Without taints nothing tells a scheduler that the device is not well. */
TEST_WITH(a_server_without_taints_has_only_what_is_well, set_up, tear_down)
{
	struct stand *s = *state;

	server.drops_taints = true;
	publish(s, POOLS);
	settle(s);
	assert_int_equal(server.writes, 2);
	assert_int_equal(n_devices(), 2);
	settle(s);
	assert_int_equal(server.writes, 2);
}

TEST_WITH(a_server_without_sharing_has_no_shared_device_and_that_is_told, set_up, tear_down)
{
	struct stand *s = *state;

	server.drops_sharing = true;
	publish(s, POOLS);
	settle(s);
	assert_devices("0000-3b-00-2 0000-3b-00-3!");
	assert_string_equal(strbuf_str(&s->told), "SharingMissing;");
	settle(s);
	assert_int_equal(server.writes, 2);
}

TEST_WITH(a_server_that_refuses_is_told_once_and_asked_again, set_up, tear_down)
{
	struct stand *s = *state;

	server.refuses = true;
	publish(s, POOLS);
	settle(s);
	assert_true(server.writes > 1);
	assert_string_equal(strbuf_str(&s->told), "SlicesNotWritten;");
	server.refuses = false;
	settle(s);
	assert_int_equal(n_devices(), 3);
}

TEST_WITH(a_server_without_the_kind_is_told_once, set_up, tear_down)
{
	struct stand *s = *state;
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "NotServed", "404");
	server.informer.config.trouble(server.informer.config.arg, &err);
	server.informer.config.trouble(server.informer.config.arg, &err);
	assert_string_equal(strbuf_str(&s->told), "SlicesNotServed;");
}
