// SPDX-License-Identifier: Apache-2.0
/*
 * A call of the kubelet is answered when each of its claims is: those that are known at once,
 * others when the agent has read them. What to do with a claim is decided in nodeagent/devices.
 */
#include "nodeagent/kubelet/dra_driver.h"

#include <stddef.h>
#include <sys/stat.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/proto/dra.pb-c.h"
#include "lib/grpc/proto/plugin_registration.pb-c.h"
#include "lib/grpc/server.h"
#include "lib/json/json.h"
#include "nodeagent/devices/dra_claims.h"
#include "nodeagent/devices/dra_names.h"
#include "nodeagent/kubelet/dra_files.h"
#include "nodeagent/kubelet/dra_health.h"
#include "nodeagent/kubelet/dra_messages.h"
#include "nodeagent/kubelet/endpoint.h"
#include "nodeagent/model/dra_state.h"

enum {
	/* Between looks at our socket. */
	LOOK_MS = 1000,
	/* For calls that wait at the end. */
	DRAIN_MS = 100,
	/* Of one call; a pod has fewer. */
	CALL_CLAIMS_MAX = 256,
};

/* A claim of a call. */
struct item {
	json_t *claim; /* {"namespace", "name", "uid"} */
	bool is_waiting;
	json_t *answer; /* {"devices": […]} or {"error": text} */
};

/* A call that waits for claims. */
struct prepare {
	struct dra_driver *driver;
	struct prepare *next;
	struct grpc_call *call;
	struct item *items;
	size_t n;
};

struct dra_driver {
	struct loop *loop;
	struct dra_driver_config config; /* strings are ours */
	char *path;
	char instance[ENDPOINT_INSTANCE_LEN + 1];
	struct grpc_server *server; /* NULL: not yet */
	struct timer *look;
	struct prepare *prepares;
	struct dra_health *health;
	bool is_agent_away; /* devices may be otherwise by now */
	json_t *state;      /* NULL: it cannot be read */
	json_t *prepared;   /* of it */
	json_t *pools;      /* NULL: not set yet */
	char *boot;
	bool is_removed;     /* a folder was, and that was reported */
	char complained[32]; /* reason of the last warning */
	struct metric *claims;
	struct deferred *gone; /* nothing was there to close */
	void (*done)(void *arg);
	void *done_arg;
};

static void complain(struct dra_driver *driver, const struct err *err)
{
	if (str_eq(driver->complained, err->reason))
		return;
	(void)snprintf(driver->complained, sizeof(driver->complained), "%s", err->reason);
	log_warn("claims have trouble", F_ERR(err));
	driver->config.emit(driver->config.arg, true, err->reason, err->text);
}

static const json_t *entry_of(const struct dra_driver *driver, const char *uid)
{
	return json_object_get(json_at(driver->state, "claims"), uid);
}

/* Of devices, or of claims, something may be another. */
static void tell_health(struct dra_driver *driver)
{
	bool is_known = driver->state && driver->pools && !driver->is_agent_away;

	dra_health_set(driver->health,
		       is_known ? dra_claims_health(driver->state, driver->pools) : NULL);
}

/* ---- the state ------------------------------------------------------------------------------- */

/*
 * Put the entry, which is taken, into the state, or NULL: take the claim's off it; on the disk
 * first. On failure all is as it was.
 */
static int store(struct dra_driver *driver, const char *uid, json_t *entry, struct err *err)
{
	json_auto_t *claims = json_copy(json_at(driver->state, "claims"));
	json_auto_t *next = json_pack("{s:O}", "claims", claims);
	json_auto_t *prepared = NULL;

	if (entry)
		json_put(claims, uid, entry);
	else
		(void)json_object_del(claims, uid);
	if (dra_files_save(driver->config.state_dir, next, err) < 0)
		return -1;
	json_replace(&driver->state, json_incref(next));
	tell_health(driver);
	prepared = dra_prepared(next);
	if (json_same(prepared, driver->prepared))
		return 0;
	json_replace(&driver->prepared, take_ptr(prepared));
	driver->config.changed(driver->config.arg);
	return 0;
}

/* The CDI file of a claim that is prepared, as it has to be in this boot. */
static int freshen(struct dra_driver *driver, const char *uid, struct err *err)
{
	json_auto_t *entry = json_incref((json_t *)entry_of(driver, uid));
	json_t *renewed = dra_claim_renew(entry, uid, driver->pools, driver->boot);

	if (renewed) {
		json_replace(&entry, json_incref(renewed));
		if (store(driver, uid, renewed, err) < 0)
			return -1;
	}
	/* Numbers of another boot lead to other devices, or nowhere. */
	if (!str_eq(json_str_at(entry, "boot"), driver->boot)) {
		(void)dra_files_remove_cdi(driver->config.cdi_dir, uid, NULL);
		return err_set(err, ERR_TRANSIENT, "DevicesNotBack",
			       "its devices are not all back since the node has booted: wait, or "
			       "look what the NodeState says of them");
	}
	return dra_files_put_cdi(driver->config.cdi_dir, uid, json_at(entry, "cdi"), err);
}

/* ---- preparing ------------------------------------------------------------------------------- */

static const char *uid_of(const struct item *item)
{
	return json_str_or(json_at(item->claim, "uid"), "");
}

/* What the kubelet puts into the pod's event: people look the reason up. New. */
static json_t *refusal(const struct err *err)
{
	json_t *answer = json_object();

	json_put(answer, "error", json_fmt("%s: %s", err->reason, err->text));
	return answer;
}

static void fail(const struct dra_driver *driver, struct item *item, const struct err *err)
{
	item->is_waiting = false;
	item->answer = refusal(err);
	metric_add(driver->claims, 1, "prepare", err->reason);
	log_warn("cannot prepare a claim",
		 F_STR("namespace", json_str_at(item->claim, "namespace")),
		 F_STR("claim", json_str_at(item->claim, "name")), F_STR("uid", uid_of(item)),
		 F_ERR(err));
}

/* The claim is in the state. */
static void answer_known(struct dra_driver *driver, struct item *item)
{
	struct err err = {0};

	if (freshen(driver, uid_of(item), &err) < 0) {
		fail(driver, item, &err);
		return;
	}
	item->is_waiting = false;
	item->answer = json_object();
	json_put(item->answer, "devices",
		 json_incref(json_at(entry_of(driver, uid_of(item)), "devices")));
	metric_add(driver->claims, 1, "prepare", "ok");
}

static void prepare(struct dra_driver *driver, struct item *item, const json_t *claim)
{
	struct err err = {0};
	json_t *entry;

	if (entry_of(driver, uid_of(item))) {
		answer_known(driver, item);
		return;
	}
	entry = dra_claim_prepare(driver->state, claim, driver->pools, driver->boot, &err);
	if (!entry || store(driver, uid_of(item), entry, &err) < 0) {
		fail(driver, item, &err);
		return;
	}
	log_info("claim prepared", F_STR("namespace", json_str_at(claim, "namespace")),
		 F_STR("claim", json_str_at(claim, "name")), F_STR("uid", uid_of(item)),
		 F_INT("devices", (int64_t)json_array_size(json_at(claim, "results"))));
	answer_known(driver, item);
}

static void prepare_free(struct prepare *call)
{
	for (size_t i = 0; i < call->n; i++) {
		json_decref(call->items[i].claim);
		json_decref(call->items[i].answer);
	}
	mem_free(call->items);
	mem_free(call);
}

static void prepare_remove(struct prepare *call)
{
	struct prepare **place = &call->driver->prepares;

	while (*place != call)
		place = &(*place)->next;
	*place = call->next;
}

/* Answers when nothing is waited for; the call is gone then. */
static void reply_if_done(struct prepare *call)
{
	struct ProtobufCMessage *response;
	json_auto_t *answers = json_object();

	for (size_t i = 0; i < call->n; i++) {
		if (call->items[i].is_waiting)
			return;
		json_put(answers, uid_of(&call->items[i]), json_incref(call->items[i].answer));
	}
	response = dra_message_prepared(answers);
	grpc_call_reply(call->call, response);
	dra_message_free(response);
	prepare_remove(call);
	prepare_free(call);
}

/* The kubelet asks again. */
static void on_call_end(void *arg, enum grpc_code why)
{
	struct prepare *call = arg;

	prepare_remove(call);
	prepare_free(call);
}

static void start(struct dra_driver *driver, struct item *item)
{
	struct err err = {0};

	if (!driver->state) {
		(void)err_set(&err, ERR_HOST, "ClaimsDamaged",
			      "nobody knows which devices claims have: see the events of the "
			      "NodeState");
		fail(driver, item, &err);
	} else if (!dra_uid_is_good(uid_of(item))) {
		(void)err_set(&err, ERR_INVALID, "BadClaim",
			      "uid \"%.80s\" must be letters, digits and dashes, at most %d",
			      uid_of(item), DRA_UID_MAX);
		fail(driver, item, &err);
	} else if (entry_of(driver, uid_of(item))) {
		answer_known(driver, item);
	} else {
		driver->config.ask(driver->config.arg, item->claim);
	}
}

static void handle_prepare(struct grpc_call *grpc, const struct ProtobufCMessage *request,
			   void *arg)
{
	struct dra_driver *driver = arg;
	json_auto_t *claims = dra_message_claims(request);
	struct prepare *call;

	if (json_array_size(claims) > CALL_CLAIMS_MAX) {
		grpc_call_fail(grpc, GRPC_INVALID_ARGUMENT, "%zu claims in one call, at most %d",
			       json_array_size(claims), CALL_CLAIMS_MAX);
		return;
	}
	call = mem_new(struct prepare);
	call->driver = driver;
	call->call = grpc;
	call->n = json_array_size(claims);
	call->items = mem_calloc(call->n + 1, sizeof(*call->items));
	call->next = driver->prepares;
	driver->prepares = call;
	grpc_call_on_end(grpc, on_call_end, call);
	for (size_t i = 0; i < call->n; i++) {
		call->items[i].claim = json_incref(json_array_get(claims, i));
		call->items[i].is_waiting = true;
		start(driver, &call->items[i]);
	}
	reply_if_done(call);
}

void dra_driver_answer(struct dra_driver *driver, const char *uid, const json_t *claim,
		       const struct err *why)
{
	for (struct prepare *call = driver->prepares, *next; call; call = next) {
		next = call->next;
		for (size_t i = 0; i < call->n; i++) {
			struct item *item = &call->items[i];

			if (!item->is_waiting || !str_eq(uid_of(item), uid))
				continue;
			if (claim)
				prepare(driver, item, claim);
			else
				fail(driver, item, why);
		}
		reply_if_done(call);
	}
}

void dra_driver_forget(struct dra_driver *driver)
{
	struct err err = {0};

	driver->is_agent_away = true;
	tell_health(driver);
	(void)err_set(&err, ERR_TRANSIENT, "AgentAway",
		      "the agent, which reads claims, is away for a moment: ask again");
	for (struct prepare *call = driver->prepares, *next; call; call = next) {
		next = call->next;
		for (size_t i = 0; i < call->n; i++)
			if (call->items[i].is_waiting)
				fail(driver, &call->items[i], &err);
		reply_if_done(call);
	}
}

/* ---- unpreparing ----------------------------------------------------------------------------- */

/* 0 too for a claim that was never prepared: a kubelet cannot know. */
static int unprepare(struct dra_driver *driver, const char *uid, struct err *err)
{
	if (!driver->state)
		return err_set(err, ERR_HOST, "ClaimsDamaged",
			       "nobody knows which devices claims have: see the events of the "
			       "NodeState");
	if (!entry_of(driver, uid))
		return 0;
	if (dra_files_remove_cdi(driver->config.cdi_dir, uid, err) < 0)
		return -1;
	return store(driver, uid, NULL, err);
}

static void handle_unprepare(struct grpc_call *call, const struct ProtobufCMessage *request,
			     void *arg)
{
	struct dra_driver *driver = arg;
	json_auto_t *claims = dra_message_claims(request), *answers = json_object();
	struct ProtobufCMessage *response;
	json_t *claim;
	size_t i;

	json_array_foreach (claims, i, claim) {
		const char *uid = json_str_or(json_at(claim, "uid"), "");
		struct err err = {0};
		json_t *answer;

		if (unprepare(driver, uid, &err) < 0) {
			answer = refusal(&err);
			log_warn("cannot unprepare a claim", F_STR("uid", uid), F_ERR(&err));
		} else {
			answer = json_object();
			log_info("claim unprepared", F_STR("uid", uid));
		}
		metric_add(driver->claims, 1, "unprepare", err.class ? err.reason : "ok");
		json_put(answers, uid, answer);
	}
	response = dra_message_unprepared(answers);
	grpc_call_reply(call, response);
	dra_message_free(response);
}

static void handle_watch(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	const struct dra_driver *driver = arg;

	dra_health_watch(driver->health, call);
}

/* ---- registration ---------------------------------------------------------------------------- */

static void handle_info(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	static char *versions[] = {(char *)"v1.DRAPlugin", (char *)"v1beta1.DRAPlugin",
				   (char *)"v1.DRAResourceHealth",
				   (char *)"v1alpha1.DRAResourceHealth"};
	PluginRegistration__PluginInfo info = PLUGIN_REGISTRATION__PLUGIN_INFO__INIT;

	info.type = (char *)"DRAPlugin";
	info.name = (char *)DRA_DRIVER;
	info.supported_versions = versions;
	info.n_supported_versions = ARRAY_LEN(versions);
	grpc_call_reply(call, &info.base);
}

static void handle_status(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	const PluginRegistration__RegistrationStatus *status = (const void *)request;
	PluginRegistration__RegistrationStatusResponse response =
		PLUGIN_REGISTRATION__REGISTRATION_STATUS_RESPONSE__INIT;
	struct dra_driver *driver = arg;
	struct err err = {0};

	grpc_call_reply(call, &response.base);
	if (status->plugin_registered) {
		log_info("kubelet knows the driver of claims", F_STR("driver", DRA_DRIVER));
		driver->complained[0] = '\0';
		return;
	}
	(void)err_set(&err, ERR_INVALID, "RegisterRefused",
		      "the kubelet refuses the driver " DRA_DRIVER ": %s", status->error);
	complain(driver, &err);
}

#define DRA_METHODS(version)                                                                       \
	{"/k8s.io.kubelet.pkg.apis.dra." version ".DRAPlugin/NodePrepareResources",                \
	 &dra__node_prepare_resources_request__descriptor, handle_prepare},                        \
	{                                                                                          \
		"/k8s.io.kubelet.pkg.apis.dra." version ".DRAPlugin/NodeUnprepareResources",       \
			&dra__node_unprepare_resources_request__descriptor, handle_unprepare       \
	}

static const struct grpc_method methods[] = {
	{"/pluginregistration.Registration/GetInfo", &plugin_registration__info_request__descriptor,
	 handle_info},
	{"/pluginregistration.Registration/NotifyRegistrationStatus",
	 &plugin_registration__registration_status__descriptor, handle_status},
	DRA_METHODS("v1"),
	DRA_METHODS("v1beta1"),
	{"/v1.DRAResourceHealth/NodeWatchResources", &dra__node_watch_resources_request__descriptor,
	 handle_watch},
	{"/v1alpha1.DRAResourceHealth/NodeWatchResources",
	 &dra__node_watch_resources_request__descriptor, handle_watch},
};

/* ---- the socket ------------------------------------------------------------------------------ */

static int listen_up(struct dra_driver *driver, struct err *err)
{
	if (driver->server)
		return grpc_server_owns_path(driver->server)
			       ? 0
			       : grpc_server_listen_again(driver->server, err);
	driver->server = grpc_server_new(driver->loop,
					 &(struct grpc_server_config){
						 .path = driver->path,
						 .methods = methods,
						 .n_methods = ARRAY_LEN(methods),
						 .arg = driver,
						 .metrics = driver->config.metrics,
					 },
					 err);
	return driver->server ? 0 : -1;
}

/* Sockets of agents that were killed are removed, too: a kubelet tries them for ever. */
static void look(void *arg)
{
	struct dra_driver *driver = arg;
	struct endpoint_others others = {0};
	struct err err = {0};

	if (endpoint_scan(driver->config.registry_dir, driver->instance, &others, &err) < 0 ||
	    listen_up(driver, &err) < 0)
		complain(driver, &err);
	endpoint_others_done(&others);
	timer_start(driver->look, LOOK_MS);
	if (!driver->is_removed) {
		const char *const dirs[] = {driver->config.registry_dir, driver->config.cdi_dir,
					    driver->config.state_dir};
		struct stat st;

		/* A mount keeps what it shows, as with the folder of device plugins. */
		for (size_t i = 0; !driver->is_removed && i < ARRAY_LEN(dirs); i++)
			driver->is_removed = stat(dirs[i], &st) == 0 && st.st_nlink == 0;
		if (driver->is_removed)
			driver->config.removed(driver->config.arg);
	}
}

void dra_driver_set(struct dra_driver *driver, const json_t *pools, const char *boot)
{
	bool is_first = !driver->pools;

	driver->is_agent_away = false;
	if (json_same(pools, driver->pools) && str_eq(boot, driver->boot)) {
		tell_health(driver);
		return;
	}
	json_replace(&driver->pools, json_incref((json_t *)pools));
	str_replace(&driver->boot, str_dup(boot));
	tell_health(driver);
	if (driver->state) {
		json_auto_t *claims = json_incref(json_at(driver->state, "claims"));
		const char *uid;
		json_t *entry;

		dra_files_sweep_cdi(driver->config.cdi_dir, driver->state);
		json_each (claims, uid, entry) {
			struct err err = {0};

			if (freshen(driver, uid, &err) < 0 && err.class != ERR_TRANSIENT)
				complain(driver, &err);
		}
	}
	if (is_first)
		look(driver);
}

const json_t *dra_driver_prepared(const struct dra_driver *driver)
{
	return driver ? driver->prepared : NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct dra_driver *dra_driver_new(struct loop *loop, const struct dra_driver_config *config)
{
	struct dra_driver *driver = mem_new(struct dra_driver);
	auto_free char *name = NULL;
	struct err err = {0};

	driver->loop = loop;
	driver->config = *config;
	driver->config.registry_dir = str_dup(config->registry_dir);
	driver->config.cdi_dir = str_dup(config->cdi_dir);
	driver->config.state_dir = str_dup(config->state_dir);
	endpoint_instance(driver->instance);
	name = endpoint_name(DRA_DRIVER, driver->instance);
	driver->path = str_below(config->registry_dir, name);
	driver->look = timer_new(loop, look, driver);
	driver->health = dra_health_new(loop);
	driver->claims = metric_counter(config->metrics, "orbweaver_kubelet_claims_total",
					"Claims that the kubelet had prepared or unprepared; "
					"result is ok or what was wrong.",
					"what,result");
	driver->state = dra_files_load(config->state_dir, &err);
	if (driver->state)
		driver->prepared = dra_prepared(driver->state);
	else
		complain(driver, &err);
	return driver;
}

static void on_closed(void *arg)
{
	struct dra_driver *driver = arg;
	void (*done)(void *arg) = driver->done;
	void *done_arg = driver->done_arg;

	deferred_free(driver->gone);
	dra_health_free(driver->health);
	json_decref(driver->state);
	json_decref(driver->prepared);
	json_decref(driver->pools);
	mem_free(driver->boot);
	mem_free(driver->path);
	mem_free((char *)driver->config.registry_dir);
	mem_free((char *)driver->config.cdi_dir);
	mem_free((char *)driver->config.state_dir);
	mem_free(driver);
	done(done_arg);
}

void dra_driver_close(struct dra_driver *driver, void (*done)(void *arg), void *arg)
{
	if (!driver)
		return;
	driver->done = done;
	driver->done_arg = arg;
	timer_free(driver->look);
	dra_driver_forget(driver);
	if (driver->server) {
		grpc_server_close(driver->server, DRAIN_MS, on_closed, driver);
		return;
	}
	driver->gone = deferred_new(driver->loop, on_closed, driver);
	deferred_run(driver->gone);
}
