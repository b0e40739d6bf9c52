// SPDX-License-Identifier: Apache-2.0
/*
 * Where the facts of the checks come from: for nodes the NodeStates and Leases of the command's
 * world, for --local this host by the agent's own nodeagent/host. The checks themselves are pure,
 * in doctor/; print.c prints their findings.
 */
#include "cli/doctor.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/links.h"
#include "cli/doctor/verbs_findings.h"
#include "cli/leader.h"
#include "cli/print.h"
#include "cli/source.h"
#include "cli/verbs/verbs_library.h"
#include "lib/json/json.h"
#include "nodeagent/host/inspect.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/model/findings.h"
#include "nodeagent/model/host_checks.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

const char *const doctor_kinds[] = {KIND_NODE, KIND_NODE_STATE, KIND_NAD, NULL};

const struct cli_field doctor_fields[] = {
	{"items[].level", "string",
	 "error: RDMA does not work; warning: worse than it could; info"},
	{"items[].reason", "string", "the one word for it; see explain reason"},
	{"items[].node", "string", "name of the Node; absent: this host, or all nodes"},
	{"items[].subject", "string", "device, file or module that it is about"},
	{"items[].seen", "string", "what is the case"},
	{"items[].expected", "string", "what should be"},
	{"items[].remedy", "string", "what to do"},
	{"items[].call", "string", "--verbs: what failed"},
	{"items[].errno", "string", "--verbs: with which errno, ENOMEM"},
	{0},
};

/* Each device has so long. */
enum { VERBS_DEADLINE_MS = 60000 };

static void see_place(struct host *host, struct verbs_place *ret)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	enum rdma_mode mode = RDMA_MODE_UNKNOWN;
	struct err unknown = {0};

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	ret->memlock = limit.rlim_cur > INT64_MAX ? -1 : (int64_t)limit.rlim_cur;
	ret->may_lock =
		syscall(SYS_capget, &header, caps) == 0 && caps[0].effective & 1u << CAP_IPC_LOCK;
	(void)rdma_get_mode(host->netlink, &mode, &unknown);
	ret->rdma_mode = rdma_mode_name(mode);
}

/* Is a file of a device in /dev/infiniband? Of any device, if its name is NULL. */
static bool has_verbs_file(const struct host *host, const char *device)
{
	json_auto_t *files = sysfs_list(host, "dev/infiniband");
	json_t *file;
	size_t i;

	json_array_foreach (files, i, file) {
		const char *name = json_string_value(file);
		auto_free char *ibdev = str_printf("sys/class/infiniband_verbs/%s/ibdev", name);
		struct sysfs_text text;

		if (device ? sysfs_read(host, ibdev, &text) && str_eq(text.text, device)
			   : str_starts(name, "uverbs"))
			return true;
	}
	return false;
}

/* What programs here can do with RDMA devices: those that are named, else those with a file. */
static json_t *check_verbs(const struct cli *cli, struct err *err)
{
	auto_host struct host *host = host_open("/", err);
	json_auto_t *devices = NULL, *findings = json_array();
	struct verbs_library library;
	struct verbs_place place = {0};
	size_t tried = 0;

	if (!host || verbs_library_load(VERBS_LIBRARY, &library, err) < 0)
		return NULL;
	devices = sysfs_list(host, "sys/class/infiniband");
	see_place(host, &place);
	place.has_devices = json_array_size(devices) > 0;
	place.has_files = has_verbs_file(host, NULL);
	for (size_t i = 0; i < (cli->args_len ? cli->args_len : json_array_size(devices)); i++) {
		const char *name = cli->args_len ? cli->args[i]
						 : json_string_value(json_array_get(devices, i));
		bool has_file = has_verbs_file(host, name);
		struct verbs_report report;

		if (!has_file && !cli->args_len)
			continue;
		tried++;
		if (!json_list_has(devices, name)) {
			verbs_findings_none(findings, &place, name);
			continue;
		}
		verbs_try(&library, name, VERBS_DEADLINE_MS, &report);
		verbs_findings_add(findings, &place, name, has_file, &report);
	}
	if (tried == 0)
		verbs_findings_none(findings, &place, NULL);
	findings_sort(findings);
	return json_incref(findings);
}

/* What this host looks like, as the agent would see it. */
static json_t *check_this_host(const struct cli *cli, struct err *err)
{
	const char *mode = cli->args_len > 0 ? cli->args[0] : NULL;
	auto_host struct host *host = NULL;
	json_auto_t *observed = NULL, *facts = NULL;

	if (cli->args_len > 1 || (mode && !str_eq(mode, "shared") && !str_eq(mode, "exclusive"))) {
		(void)err_set(err, ERR_INVALID, "BadUsage",
			      "usage: orbweaver doctor --local [shared|exclusive]");
		return NULL;
	}
	host = host_open(cli->host_root, err);
	if (!host)
		return NULL;
	observed = host_observe(host, HOST_OBSERVE_HOLDERS | HOST_OBSERVE_GIDS, err);
	if (!observed)
		return NULL;
	facts = host_inspect(host, observed);
	return host_checks_run(observed, facts, mode);
}

static void check_leader(const struct cli *cli, json_t *findings)
{
	auto_leader_finding struct leader_finding leader;
	auto_free char *subject = NULL;

	leader_look(cli, &leader);
	if (!leader.seen)
		return;
	subject = str_printf("Lease %s", leader.lease);
	finding_add(findings, FINDING_ERROR, "NoLeader", subject, "an operator that renews it",
		    leader.remedy, "%s", leader.seen);
}

static json_t *check_nodes(const struct cli *cli, struct err *err)
{
	json_auto_t *findings = json_array(), *world = source_world(cli), *differences = NULL;
	json_auto_t *networks = links_networks(world_kind(world, KIND_NAD));
	const char *key;
	json_t *state, *finding;
	size_t i;

	if (!cli->compare)
		check_leader(cli, findings);
	for (i = 0; i < cli->args_len; i++) {
		auto_free char *named =
			str_printf("%s/%s", world_env(world, "namespace"), cli->args[i]);
		json_auto_t *of_node = NULL;

		state = (json_t *)world_get(world, KIND_NODE_STATE, named);
		if (!state) {
			(void)err_set(err, ERR_INVALID, "NodeNotFound",
				      "there is no SriovNetworkNodeState %.128s: no policy selects "
				      "the node, or it is misspelt",
				      named);
			return NULL;
		}
		of_node = doctor_check_node(world_get(world, KIND_NODE, cli->args[i]), state,
					    networks);
		json_array_extend(findings, of_node);
	}
	if (cli->args_len > 0)
		return json_incref(findings);
	if (!cli->compare)
		json_each (world_kind(world, KIND_NODE_STATE), key, state) {
			json_auto_t *of_node = doctor_check_node(
				world_get(world, KIND_NODE, json_name(state)), state, networks);

			/* Of many nodes alike: those that are named say it. */
			json_array_foreach (of_node, i, finding)
				if (!str_eq(json_str_at(finding, "level"), "info"))
					json_array_append(findings, finding);
		}
	differences = doctor_compare(world);
	json_array_extend(findings, differences);
	findings_sort(findings);
	return json_incref(findings);
}

int doctor_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	static const struct column columns[] = {
		{"LEVEL", "level"},   {"REASON", "reason"}, {"NODE", "node"},
		{"WHAT", "subject"},  {"SEEN", "seen"},     {"EXPECTED", "expected"},
		{"REMEDY", "remedy"},
	};
	json_auto_t *findings = cli->verbs   ? check_verbs(cli, err)
				: cli->local ? check_this_host(cli, err)
					     : check_nodes(cli, err);

	if (!findings)
		return -1;
	if (findings_have(findings, FINDING_ERROR))
		*ret_status = CLI_FOUND;
	if (cli->output != CLI_TABLE) {
		print_items(cli, out, findings);
		return 0;
	}
	print_part(out, columns, ARRAY_LEN(columns), findings);
	if (out->len == 0)
		strbuf_adds(out, "nothing found\n");
	return 0;
}
