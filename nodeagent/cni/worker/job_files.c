// SPDX-License-Identifier: Apache-2.0
/*
 * A folder is its sandbox's whose name is in the first line of nccl.env, which is written first. A
 * lock of JOB_FOLDER keeps the DEL of one sandbox and the ADD of the next apart. Beside
 * attachment.c; what is in the files is decided in nodeagent/cni/plan and nodeagent/model.
 */
#include "nodeagent/cni/worker/job_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/pci_address.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/execute/rdma_look.h"
#include "nodeagent/cni/plan/rdma_rows.h"
#include "nodeagent/cni/worker/allocated.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/model/job_folder.h"
#include "nodeagent/model/nccl_topology.h"

#define ENV_FILE      "nccl.env"
#define RAILS_FILE    "rails.json"
#define TOPOLOGY_FILE "nccl-topo.xml"

/* How long ADD waits for the agent, which knows rails and GPUs. */
enum { TOPOLOGY_MS = 1000, CPU_MAX = 4096 };

/* ---- folders --------------------------------------------------------------------------------- */

/* JOB_FOLDER, locked until it is closed; -1: there is none, or it cannot be had. */
static int open_all(int root)
{
	int dir = root_open(root, JOB_FOLDER, O_RDONLY | O_DIRECTORY, 0);

	if (dir >= 0 && flock(dir, LOCK_EX) < 0)
		own_close_p(&dir);
	return dir;
}

static int open_folder(int all, const char *name)
{
	return openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whose it is, new; NULL: nobody's. */
static char *owner_of(int folder)
{
	auto_strbuf struct strbuf text = {0};

	return fs_read(folder, ENV_FILE, JOB_FILE_MAX, &text, NULL) == 0
		       ? job_env_owner(strbuf_str(&text))
		       : NULL;
}

/* Names in a folder; new. */
static json_t *names_in(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
	json_t *names = json_array();
	const struct dirent *entry;

	if (!entries && copy >= 0)
		(void)close(copy);
	while (entries && (entry = readdir(entries)))
		if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
			json_array_append_new(names, json_string(entry->d_name));
	return names;
}

/* Drafts that a crash left included; the file with the owner's name last. */
static void empty_folder(int folder)
{
	json_auto_t *names = names_in(folder);
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		if (!str_eq(json_string_value(name), ENV_FILE))
			(void)unlinkat(folder, json_string_value(name), 0);
	(void)unlinkat(folder, ENV_FILE, 0);
}

/* of: whose folders; NULL: of all that have no record in `state`. */
static void remove_folders(int root, const char *of, struct sandboxes *state)
{
	auto_close int all = open_all(root);
	json_auto_t *names = all >= 0 ? names_in(all) : NULL;
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		auto_close int folder = open_folder(all, json_string_value(name));
		auto_free char *owner = folder >= 0 ? owner_of(folder) : NULL;
		json_auto_t *sandbox = NULL;
		struct err err = {0};

		if (!owner || (of && !str_eq(owner, of)))
			continue;
		/* What cannot be read may be there. */
		if (!of && ((sandbox = sandbox_read(state, owner, &err)) || err.class))
			continue;
		empty_folder(folder);
		(void)unlinkat(all, json_string_value(name), AT_REMOVEDIR);
	}
}

void job_files_remove(int root, const char *container)
{
	remove_folders(root, container, NULL);
}

void job_files_sweep(int root, struct sandboxes *state)
{
	remove_folders(root, NULL, state);
}

/* Names of the pod's folders, each once; new. */
static json_t *folders_of(const json_t *devices, const char *patterns)
{
	json_t *folders = json_array();
	const json_t *entry;
	size_t i, k;

	json_array_foreach ((json_t *)devices, i, entry) {
		const char *resource = json_str_at(entry, "resource");
		const json_t *ids = json_at(entry, "ids"), *id;
		const char *first[1] = {NULL};
		auto_free char *name = NULL;

		if (!job_folder_is_for(patterns, resource))
			continue;
		json_array_foreach ((json_t *)ids, k, id)
			if (json_is_string(id) &&
			    (!first[0] || strcmp(json_string_value(id), first[0]) < 0))
				first[0] = json_string_value(id);
		name = first[0] ? job_folder_name(resource, first, 1) : NULL;
		if (name && !json_list_has(folders, name) &&
		    json_array_size(folders) < JOB_FOLDERS_MAX)
			json_array_append_new(folders, json_string(name));
	}
	return folders;
}

/* ---- the topology ---------------------------------------------------------------------------- */

static void put_cpu_line(json_t *cpu, const char *text, const char *key, const char *name)
{
	auto_free char *start = str_printf("\n%s\t", key);
	const char *at = strstr(text, start), *colon = at ? strchr(at, ':') : NULL;
	auto_free char *value = NULL;
	int64_t number;

	if (!colon)
		return;
	colon += 1 + strspn(colon + 1, " ");
	value = str_ndup(colon, strcspn(colon, "\n\"<>&"));
	if (!str_to_int(value, 0, UINT16_MAX, &number))
		json_put_str(cpu, name, value);
	/* NCCL adds the extended family in its upper half byte. */
	else if (str_eq(name, "familyid") && number > 15)
		json_put_int(cpu, name, 15 + ((number - 15) << 4));
	else
		json_put_int(cpu, name, number);
}

static json_t *cpu_of(const struct host *host)
{
	json_t *cpu = json_object();
	struct utsname names;
	char part[CPU_MAX];
	auto_close int file = root_open(host->root, "proc/cpuinfo", O_RDONLY, 0);
	ssize_t n = file >= 0 ? read(file, part, sizeof(part) - 1) : 0;

	if (uname(&names) == 0)
		json_put_str(cpu, "arch",
			     str_eq(names.machine, "aarch64") ? "arm64" : names.machine);
	part[n > 0 ? n : 0] = '\0';
	put_cpu_line(cpu, part, "vendor_id", "vendor");
	put_cpu_line(cpu, part, "cpu family", "familyid");
	put_cpu_line(cpu, part, "model", "modelid");
	return cpu;
}

/* of: the function whose link it is, where that is not the one of the entry: a VF's PF. */
static void put_link(const struct host *host, json_t *links, const char *busid, const char *of)
{
	json_t *link = json_object();
	struct sysfs_text speed;
	int64_t width;

	if (sysfs_read(host, pci_path(of, "max_link_speed").text, &speed) &&
	    strcspn(speed.text, "\"<>&") == strlen(speed.text))
		json_put_str(link, "speed", speed.text);
	if (sysfs_read_int(host, pci_path(of, "max_link_width").text, &width))
		json_put_int(link, "width", width);
	json_put(links, busid, link);
}

static void add_function(const struct host *host, const json_t *seen, const char *busid,
			 const char *class, json_t *net, json_t *functions, json_t *links)
{
	json_auto_t *switches = nccl_topology_switches(json_str_at(seen, "path"));
	json_t *function = json_object();
	const json_t *bridge;
	size_t i;

	json_put_str(function, "busid", busid);
	json_put_str(function, "class", class);
	json_put(function, "numaNode", json_incref(json_at(seen, "numaNode")));
	json_put(function, "path", json_incref(json_at(seen, "path")));
	json_put(function, "net", net);
	json_array_append_new(functions, function);
	put_link(host, links, busid, json_str_at(seen, "pciAddress"));
	json_array_foreach (switches, i, bridge)
		put_link(host, links, json_string_value(bridge), json_string_value(bridge));
}

static void add_nic(const struct host *host, const json_t *nic, const json_t *row,
		    json_t *functions, json_t *links)
{
	const char *name = json_str_or(json_at(nic, "name"), "-");
	auto_free char *speed_path =
		str_printf("sys/class/net/%s/speed", strchr(name, '/') ? "-" : name);
	bool is_ib = json_is_true(json_at(row, "infiniband"));
	json_t *net = json_object();
	int64_t speed;

	json_put(net, "name", json_incref(json_at(row, "rdmaDevice")));
	if (sysfs_read_int(host, speed_path, &speed) && speed > 0)
		json_put_int(net, "speed", speed);
	json_put(net, "rail", json_incref(json_at(row, "rail")));
	add_function(host, nic, json_str_at(row, "function"), is_ib ? "0x020700" : "0x020000", net,
		     functions, links);
}

/* New; NULL: the node has no GPUs, or where the NICs are is not known. */
static char *topology_text(const struct host *host, const json_t *rows, const json_t *topology)
{
	json_auto_t *cpu = NULL, *functions = json_array(), *links = json_object(),
		    *names = json_array();
	const json_t *row, *gpu;
	size_t i;

	json_array_foreach ((json_t *)rows, i, row) {
		const char *pf = json_str_at(row, "pf"), *name = json_str_at(row, "rdmaDevice");
		const json_t *nic =
			pf ? json_find(json_at(topology, "nics"), "pciAddress", pf) : NULL;

		if (!nic || json_list_has(names, name))
			continue;
		json_array_append_new(names, json_string(name));
		add_nic(host, nic, row, functions, links);
	}
	if (json_array_size(functions) == 0 || json_array_size(json_at(topology, "gpus")) == 0)
		return NULL;
	/* The agent's word, which has no privileges: names of files are looked at twice. */
	json_array_foreach (json_at(topology, "gpus"), i, gpu)
		if (pci_address_is_valid(json_str_or(json_at(gpu, "pciAddress"), "")))
			add_function(host, gpu, json_str_at(gpu, "pciAddress"), "0x030200", NULL,
				     functions, links);
	cpu = cpu_of(host);
	return nccl_topology_text(cpu, functions, links);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* In this order; NULL: there is no such file. */
struct job_files {
	char *env, *rails, *topology;
};

static void job_files_done(struct job_files *files)
{
	free(files->env);
	free(files->rails);
	free(files->topology);
}

static int put_file(int folder, const char *name, const char *text, struct err *err)
{
	size_t len = text ? strlen(text) : 0;

	if (!text || len > JOB_FILE_MAX) {
		(void)unlinkat(folder, name, 0);
		return 0;
	}
	return fs_write_atomic(folder, name, text, len, 0444, err);
}

static int put_folder(int all, const char *name, const struct job_files *files, struct err *err)
{
	auto_close int folder = -1;

	if (mkdirat(all, name, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "FileNotWritten", "make " JOB_FOLDER "/%s", name);
	folder = open_folder(all, name);
	if (folder < 0)
		return err_sys(err, "FileNotWritten", "open " JOB_FOLDER "/%s", name);
	/* Of a pod that had the device before. */
	if (!files->env) {
		empty_folder(folder);
		return 0;
	}
	if (put_file(folder, ENV_FILE, files->env, err) < 0 ||
	    put_file(folder, RAILS_FILE, files->rails, err) < 0)
		return -1;
	return put_file(folder, TOPOLOGY_FILE, files->topology, err);
}

static int put_folders(const struct attachment *a, const json_t *folders,
		       const struct job_files *files, struct err *err)
{
	auto_close int all = -1;
	const json_t *name;
	size_t i;

	if (root_make_dirs(a->root, JOB_FOLDER, 0755) < 0 || (all = open_all(a->root)) < 0)
		return err_sys(err, "FileNotWritten", "open " JOB_FOLDER);
	json_array_foreach ((json_t *)folders, i, name)
		if (put_folder(all, json_string_value(name), files, err) < 0)
			return -1;
	return 0;
}

/* -1 with err: nothing is known; `ret` is empty then. */
static int compose(struct attachment *a, struct job_files *ret, struct err *err)
{
	auto_host struct host *host = device_host(a->root, err);
	json_auto_t *rows = NULL, *topology = NULL;
	struct err away = {0};

	if (!host || rdma_look(a->netns, host, &rows, err) < 0)
		return -1;
	topology = worker_channel_ask_within(a->line, worker_channel_request_new(a, "topology"),
					     TOPOLOGY_MS, &away);
	if (!topology)
		log_warn("an agent that is away does not say which rails a pod has", F_ERR(&away));
	rdma_rows_sort(rows, topology);
	ret->env = job_env_text(rows, a->container);
	if (!ret->env)
		return err_set(err, ERR_HOST, "NoRdmaDevice",
			       "no interface has an RDMA device that is known");
	ret->rails = json_text(rows);
	ret->topology = topology_text(host, rows, topology);
	return 0;
}

void job_files_write(struct attachment *a, const char *patterns)
{
	auto_call(job_files_done) struct job_files files = {0};
	json_auto_t *devices = NULL, *folders = NULL;
	struct err err = {0};

	if (!patterns)
		return;
	if (allocated_devices(a->kubelet_dir, json_str_at(a->pod, "uid"), &devices, &err) == 0) {
		folders = folders_of(devices, patterns);
		if (json_array_size(folders) == 0)
			return;
		(void)compose(a, &files, &err);
		if (put_folders(a, folders, &files, err.class ? NULL : &err) == 0 && !err.class)
			return;
	}
	log_warn("a pod has no variables for RDMA in " JOB_FOLDER_IN_POD,
		 F_STR("namespace", json_str_or(json_at(a->pod, "namespace"), "")),
		 F_STR("pod", json_str_or(json_at(a->pod, "name"), "")), F_ERR(&err));
}
