// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin tuning: look, have it decided (nodeagent/cni/plan/tuning.h), act. Kept for DEL:
 * {"undo": steps that set all as it was}, for all tunings of the interface in its list. DEL after
 * the end of the namespace needs none of it: sysctls ended with that, and what a NIC of the node
 * kept sriov and host-device put back.
 */
#include <errno.h>
#include <fcntl.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/interface_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/tuning.h"

enum { VALUE_MAX = 4096 };

/* The administrator's word on sysctls. */
static int check_allowed(const struct plugin_call *call, const struct tuning_config *config,
			 struct err *err)
{
	auto_close int fd = root_open(call->call->root, TUNING_ALLOW_LIST,
				      O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	auto_strbuf struct strbuf text = {0};
	char path[32];

	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : err_sys(err, "StoreUnusable", "tuning: open /" TUNING_ALLOW_LIST);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fs_read(AT_FDCWD, path, TUNING_ALLOW_LIST_MAX, &text, err))
		return err_in(err, "tuning: /" TUNING_ALLOW_LIST);
	return tuning_check_allowed(config, strbuf_str(&text), err);
}

/* As they are; some can only be written. *ret: new. */
static int read_sysctls(const struct plugin_call *call, const struct tuning_config *config,
			json_t **ret, struct err *err)
{
	json_auto_t *values = json_object();
	char text[VALUE_MAX];
	const char *path;
	json_t *value;

	json_each (config->sysctls, path, value) {
		struct err problem = {0};

		if (netns_read_sysctl(call->pair.pod, path, text, sizeof(text), &problem) == 0)
			json_put_str(values, path, text);
		else if (problem.sys != EACCES)
			return err_set(err, ERR_INVALID, "BadField",
				       "tuning: sysctl %.64s is not one of the pod's namespace: %s",
				       json_str_or(json_object_get(config->names, path), path),
				       problem.text);
	}
	*ret = take_ptr(values);
	return 0;
}

/* The interface, and the sysctls that the configuration names. */
static int look(const struct plugin_call *call, const struct tuning_config *config, json_t *links,
		const json_t **ret_link, json_t **ret_sysctls, struct err *err)
{
	const char *ifname = call->call->ifname;

	if (interface_find(call, ifname, links, ret_link, err) ||
	    read_sysctls(call, config, ret_sysctls, err))
		return -1;
	return *ret_link ? 0
			 : err_set(err, ERR_HOST, "InterfaceGone",
				   "tuning: the pod has no interface %s: it goes behind the plugin "
				   "that makes it",
				   ifname);
}

static int tuning_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	const char *ifname = call->call->ifname;
	auto_tuning_config struct tuning_config config = {0};
	json_auto_t *links = netns_look_new(), *sysctls = NULL, *steps = json_array();
	json_auto_t *state = json_object(), *result = json_deep_copy(call->previous), *undo = NULL;
	const json_t *link = NULL;

	if (tuning_config_read(call->call->config, call->call->args, ifname, &config, err) ||
	    check_allowed(call, &config, err) || look(call, &config, links, &link, &sysctls, err))
		return -1;
	tuning_plan(&config, link, sysctls, steps);
	json_put(state, "undo", tuning_undo(steps, json_at(call->call->saved, "undo")));
	if (services->save(services->context, state, err))
		return -1;
	if (netns_execute(&call->pair, steps, NULL, err)) {
		/* What was not done yet is set to what it is; an earlier tuning stays. */
		undo = steps_undo(steps);
		if (netns_execute_all(&call->pair, undo, NULL) == 0)
			(void)services->save(services->context, call->call->saved, NULL);
		return -1;
	}
	tuning_put_mac(&config, ifname, result);
	*ret_result = take_ptr(result);
	return 0;
}

static int tuning_check_run(const struct plugin_call *call, struct err *err)
{
	auto_tuning_config struct tuning_config config = {0};
	json_auto_t *links = netns_look_new(), *sysctls = NULL;
	const json_t *link = NULL;

	if (!call->previous)
		return err_set(err, ERR_INVALID, "BadField",
			       "tuning: prevResult is missing: it goes behind the plugin that "
			       "makes the interface");
	return tuning_config_read(call->call->config, call->call->args, call->call->ifname, &config,
				  err) ||
			       look(call, &config, links, &link, &sysctls, err) ||
			       tuning_check(&config, link, sysctls, err)
		       ? -1
		       : 0;
}

/*
 * A virtual interface that has gone has taken its settings along; those of a NIC of the node, which
 * has left the pod, sriov or host-device puts back. All tunings of a list are undone by the first.
 */
static int tuning_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	const json_t *undo = json_at(call->call->saved, "undo"), *link = NULL;
	json_auto_t *links = netns_look_new();
	bool done = true;

	if (call->pair.pod && json_array_size(undo) > 0)
		done = interface_find(call, call->call->ifname, links, &link, NULL) == 0 &&
		       (!link || netns_execute_all(&call->pair, undo, NULL) == 0);
	return services->save(services->context, done ? NULL : call->call->saved,
			      done ? NULL : err);
}

const struct plugin plugin_tuning = {
	.type = "tuning",
	.chained = true,
	.is_common = true,
	.add = tuning_add,
	.check = tuning_check_run,
	.del = tuning_del,
};
