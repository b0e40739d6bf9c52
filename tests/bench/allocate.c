// SPDX-License-Identifier: Apache-2.0
/*
 * How long an Allocate takes, as a kubelet would see it, and what the device plugins weigh: a
 * process with 16 pools of 8 VFs, and one that calls them, one call after the other, over their
 * sockets.
 *
 *	bench-allocate [CALLS]
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dirent.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/grpc/client.h"
#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/device_plugins.h"
#include "nodeagent/kubelet/endpoint.h"
#include "tests/bench/memory.h"

#define POOLS     16
#define DEVICES   8
#define CALLS     10000
#define CALLS_MAX 10000000
#define BUDGET_US 1000

/* ---- the plugins ----------------------------------------------------------------------------- */

static json_t *device(size_t pool, size_t i)
{
	return json_pack("{s:o, s:b, s:i, s:o, s:[s, o], s:{s:o}}", "id",
			 json_fmt("0000:%02zx:00.%zu", pool + 16, i), "healthy", 1, "numa",
			 (int)pool % 2, "pf", json_fmt("0000:%02zx:00.0", pool), "nodes",
			 "/dev/infiniband/rdma_cm",
			 json_fmt("/dev/infiniband/uverbs%zu", pool * DEVICES + i), "info", "type",
			 json_string("pci"));
}

static json_t *pools(void)
{
	json_t *resources = json_array();

	for (size_t pool = 0; pool < POOLS; pool++) {
		json_t *devices = json_array();

		for (size_t i = 0; i < DEVICES; i++)
			(void)json_array_append_new(devices, device(pool, i));
		(void)json_array_append_new(
			resources, json_pack("{s:o, s:s, s:s, s:i, s:o, s:o}", "name",
					     json_fmt("spidernet.io/pool%zu", pool), "kind",
					     "sriov", "policy", "spread", "wanted", DEVICES, "env",
					     json_fmt("PCIDEVICE_SPIDERNET_IO_POOL%zu", pool),
					     "devices", devices));
	}
	return json_pack("{s:o, s:[]}", "resources", resources, "problems");
}

static void serve(const char *dir)
{
	auto_free char *devinfo = str_printf("%s/devinfo", dir);
	struct loop *loop = loop_new();
	struct device_plugins *plugins = device_plugins_new(
		loop, &(struct device_plugins_config){.dir = dir, .devinfo_dir = devinfo});
	json_auto_t *offered = pools();

	log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC)); /* written, and of no interest here */
	device_plugins_set(plugins, offered);
	loop_run(loop); /* until we are killed */
}

/* ---- the caller ------------------------------------------------------------------------------ */

struct caller {
	struct loop *loop;
	struct grpc_client *clients[POOLS];
	struct err err;
	bool answered;
};

static void on_answer(void *arg, const struct grpc_status *status)
{
	struct caller *caller = arg;

	if (status->code != GRPC_OK)
		(void)err_set(&caller->err, ERR_TRANSIENT, grpc_code_name(status->code), "%s",
			      status->text);
	caller->answered = true;
}

static int allocate(struct caller *caller, size_t pool, size_t i, struct err *err)
{
	auto_free char *id = str_printf("0000:%02zx:00.%zu", pool + 16, i);
	DevicePlugin__ContainerAllocateRequest one =
		DEVICE_PLUGIN__CONTAINER_ALLOCATE_REQUEST__INIT;
	DevicePlugin__ContainerAllocateRequest *all[] = {&one};
	DevicePlugin__AllocateRequest request = DEVICE_PLUGIN__ALLOCATE_REQUEST__INIT;

	one.device_ids = &id;
	one.n_device_ids = 1;
	request.container_requests = all;
	request.n_container_requests = 1;
	caller->answered = false;
	caller->err = (struct err){0};
	if (!grpc_client_call(caller->clients[pool],
			      &(struct grpc_request){
				      .path = "/v1beta1.DevicePlugin/Allocate",
				      .message = &request.base,
				      .response = &device_plugin__allocate_response__descriptor,
				      .done = on_answer,
				      .arg = caller,
			      },
			      err))
		return -1;
	while (!caller->answered)
		loop_turn(caller->loop, true);
	if (caller->err.class == ERR_NONE)
		return 0;
	*err = caller->err;
	return -1;
}

/* The name of a pool's socket in the directory; new, or NULL when it is not there yet. */
static char *find_socket(const char *dir, size_t pool)
{
	auto_free char *label = str_printf("spidernet.io_pool%zu.", pool);
	auto_closedir DIR *files = opendir(dir);
	const struct dirent *file;
	struct endpoint_parts parts;

	while (files && (file = readdir(files)))
		if (str_starts(file->d_name, label) && endpoint_parse(file->d_name, &parts))
			return str_printf("%s/%s", dir, file->d_name);
	return NULL;
}

static int connect_to_all(struct caller *caller, const char *dir, struct err *err)
{
	int64_t give_up = clock_ms() + 10000;

	for (size_t pool = 0; pool < POOLS; pool++) {
		auto_free char *path = find_socket(dir, pool);

		while (!path) {
			if (clock_ms() > give_up)
				return err_set(err, ERR_TRANSIENT, "NoSocket",
					       "pool %zu is not served", pool);
			(void)usleep(10000);
			path = find_socket(dir, pool);
		}
		caller->clients[pool] = grpc_client_new(
			caller->loop, &(struct grpc_client_config){.path = path}, err);
		if (!caller->clients[pool])
			return -1;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int measure(struct caller *caller, int64_t *took_us, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int64_t begin = clock_us();

		if (allocate(caller, i % POOLS, i / POOLS % DEVICES, err) < 0)
			return -1;
		took_us[i] = clock_us() - begin;
	}
	qsort(took_us, n, sizeof(*took_us), compare);
	return 0;
}

static void print_memory(pid_t pid)
{
	long kb = memory_kb(pid, "VmRSS");

	if (kb >= 0)
		(void)printf("memory of the process that serves: %ld kB\n", kb);
}

static int run(const char *dir, pid_t server, size_t n, struct err *err)
{
	struct caller caller = {.loop = loop_new()};
	auto_free int64_t *took_us = mem_calloc(n, sizeof(*took_us));
	int result = connect_to_all(&caller, dir, err);

	if (result == 0)
		result = measure(&caller, took_us, n, err);
	for (size_t pool = 0; pool < POOLS; pool++)
		grpc_client_free(caller.clients[pool]);
	loop_free(caller.loop);
	if (result < 0)
		return -1;
	(void)printf("Allocate, %d pools of %d devices, %zu calls: p50 %lld us, p99 %lld us, "
		     "longest %lld us (budget: p99 %d us)\n",
		     POOLS, DEVICES, n, (long long)took_us[n / 2], (long long)took_us[n * 99 / 100],
		     (long long)took_us[n - 1], BUDGET_US);
	print_memory(server);
	return 0;
}

static void remove_files(const char *dir)
{
	auto_closedir DIR *files = opendir(dir);
	const struct dirent *file;

	while (files && (file = readdir(files)))
		(void)unlinkat(dirfd(files), file->d_name, 0);
	(void)rmdir(dir);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/allocate.XXXXXX";
	auto_free char *devinfo = NULL;
	int64_t n = CALLS;
	struct err err = {0};
	pid_t server;

	if (argc > 2 || (argc == 2 && !str_to_int(argv[1], 1, CALLS_MAX, &n))) {
		(void)fputs("usage: bench-allocate [CALLS]\n", stderr);
		return 2;
	}
	mem_tune();
	json_init();
	if (!mkdtemp(dir))
		return 1;
	server = fork();
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(dir);
		_exit(0);
	}
	if (server < 0)
		(void)err_sys(&err, "NoFork", "fork");
	else
		(void)run(dir, server, (size_t)n, &err);
	if (server > 0) {
		(void)kill(server, SIGKILL);
		(void)waitpid(server, NULL, 0);
	}
	devinfo = str_printf("%s/devinfo", dir);
	remove_files(devinfo);
	remove_files(dir);
	if (err.class != ERR_NONE)
		(void)fprintf(stderr, "bench-allocate: %s: %s\n", err.reason, err.text);
	return err.class == ERR_NONE ? 0 : 1;
}
