// SPDX-License-Identifier: Apache-2.0
/*
 * Files for jobs, from the runtime's ADD to its DEL, with real workers: whose folder it is, and
 * what is in it. What the kernel says of RDMA devices is the test's own.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/rdma_look.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/worker/job_files.h"
#include "tests/support/cni_stand.h"
#include "tests/support/yaml.h"

#define FOLDER  "run/orbweaver/jobs/spidernet.io_rails_0000-03-00.2"
#define CONFIG  "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", \"deviceID\": \"0000:03:00.2\"}"
#define WAIT_US 5000

static struct cni_stand stand;
static bool is_unknown; /* the kernel does not say */

/* ---- the node -------------------------------------------------------------------------------- */

bool attach_knows(const char *type)
{
	return str_eq(type, "sriov");
}

bool attach_is_common(const char *type)
{
	return false;
}

int attach_run(const struct attach_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *s = call->services;
	json_auto_t *state = json_pack("{s:s}", "was", "eth7");

	if (call->command == ATTACH_DEL)
		return s->save(s->context, NULL, err);
	if (call->command == ATTACH_ADD)
		*ret_result = json_object();
	return call->command == ATTACH_ADD ? s->save(s->context, state, err) : 0;
}

int rdma_look(int netns, struct host *host, json_t **ret_rows, struct err *err)
{
	assert_true(netns >= 0);
	if (is_unknown)
		return err_set(err, ERR_HOST, "NetlinkUnavailable", "no socket");
	*ret_rows = yaml("[{interface: net1, rdmaDevice: mlx5_2, function: '0000:03:00.2', pf: "
			 "'0000:03:00.0', addresses: [10.6.0.1], gids: [{port: 1, index: 3, "
			 "version: 2, address: 10.6.0.1}]}]");
	return 0;
}

static json_t *answer(const json_t *question, struct err *err)
{
	return str_eq(json_str_at(question, "kind"), "topology")
		       ? yaml("{nics: [{pciAddress: '0000:03:00.0', name: ens1, rail: 4, numaNode: "
			      "0, path: pci0000:00/0000:00:01.0}], gpus: [{pciAddress: "
			      "'0000:04:00.0', numaNode: 0, path: pci0000:00/0000:00:02.0}, "
			      "{pciAddress: ../../proc}]}")
		       : json_object();
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
	auto_free char *path = str_below(stand.folder, name);
	auto_free char *folder = str_ndup(path, (size_t)(strrchr(path, '/') - path));

	assert_int_equal(fs_make_dirs(folder, 0755), 0);
	assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0644, NULL), 0);
}

/* New; NULL: it is not there. */
static char *text_of(const char *name)
{
	auto_free char *path = str_below(stand.folder, name);
	auto_strbuf struct strbuf text = {0};

	return fs_read(AT_FDCWD, path, JOB_FILE_MAX, &text, NULL) == 0 ? strbuf_take(&text) : NULL;
}

static bool is_there(const char *name)
{
	auto_free char *path = str_below(stand.folder, name);

	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int set_up(void **state)
{
	cni_stand_prepare(&stand);
	stand.answer = answer;
	stand.job_files = "spidernet.io/*";
	is_unknown = false;
	write_file("device-plugins/kubelet_internal_checkpoint",
		   "{\"Data\": {\"PodDeviceEntries\": [{\"PodUID\": \"u1\", \"ContainerName\": "
		   "\"c\", \"ResourceName\": \"spidernet.io/rails\", \"DeviceIDs\": {\"1\": "
		   "[\"0000:03:00.3\"], \"0\": [\"0000:03:00.2\"]}}, {\"PodUID\": \"u1\", "
		   "\"ContainerName\": \"c\", \"ResourceName\": \"other.io/x\", \"DeviceIDs\": "
		   "{\"0\": [\"7\"]}}], \"RegisteredDevices\": {\"spidernet.io/rails\": "
		   "[\"0000:03:00.2\"]}}}");
	return 0;
}

/* Workers are forked by the server's supervisor: what they are to know has to be known before. */
static void start(void)
{
	cni_stand_start_server(&stand, true);
}

static int tear_down(void **state)
{
	cni_stand_close(&stand);
	return 0;
}

static void call(const char *command)
{
	assert_int_equal(cni_stand_call(&stand, "sriov", command, "c1", CONFIG), 0);
}

/* ---- the tests ------------------------------------------------------------------------------- */

TEST_WITH(a_pod_has_its_files_from_add_to_del, set_up, tear_down)
{
	auto_free char *env = NULL, *rails = NULL, *topology = NULL, *path = NULL;
	struct stat st;

	start();
	call("ADD");
	env = text_of(FOLDER "/nccl.env");
	rails = text_of(FOLDER "/rails.json");
	topology = text_of(FOLDER "/nccl-topo.xml");
	assert_non_null(strstr(env, "# sandbox c1\n"));
	assert_non_null(strstr(env, "export NCCL_IB_HCA=\"${NCCL_IB_HCA-=mlx5_2:1}\"\n"));
	assert_non_null(strstr(env, "export NCCL_IB_GID_INDEX=\"${NCCL_IB_GID_INDEX-3}\"\n"));
	assert_non_null(strstr(rails, "\"rail\":4"));
	assert_non_null(strstr(topology, "<pci busid=\"0000:03:00.2\" class=\"0x020000\""));
	assert_non_null(strstr(topology, "<net name=\"mlx5_2\" rail=\"4\"/>"));
	assert_non_null(strstr(topology, "<pci busid=\"0000:04:00.0\" class=\"0x030200\""));
	assert_non_null(strstr(topology, "<cpu numaid=\"0\" arch="));
	assert_null(strstr(topology, "proc"));
	path = str_below(stand.folder, FOLDER "/nccl.env");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	assert_false(is_there("run/orbweaver/jobs/other.io_x_7"));
	call("CHECK");
	assert_true(is_there(FOLDER "/nccl.env"));
	call("DEL");
	assert_false(is_there(FOLDER));
}

TEST_WITH(nobody_gets_files_who_has_no_such_resource, set_up, tear_down)
{
	stand.job_files = "other.io/y";
	start();
	call("ADD");
	assert_false(is_there("run/orbweaver/jobs"));
}

TEST_WITH(what_is_not_known_is_no_file_and_no_failure, set_up, tear_down)
{
	write_file(FOLDER "/nccl.env", "# sandbox earlier\n");
	write_file(FOLDER "/rails.json", "[]");
	is_unknown = true;
	start();
	call("ADD");
	assert_true(is_there(FOLDER));
	assert_false(is_there(FOLDER "/nccl.env"));
	assert_false(is_there(FOLDER "/rails.json"));
}

TEST_WITH(the_next_pods_files_stay_at_a_late_del, set_up, tear_down)
{
	start();
	call("ADD");
	write_file(FOLDER "/nccl.env", "# sandbox c2\n");
	call("DEL");
	assert_true(is_there(FOLDER "/nccl.env"));
}

TEST_WITH(files_of_sandboxes_that_are_gone_go_when_the_server_starts, set_up, tear_down)
{
	write_file("run/orbweaver/jobs/spidernet.io_rails_1/nccl.env", "# sandbox gone\n");
	write_file("run/orbweaver/jobs/spidernet.io_rails_1/.nccl.env.draft", "");
	start();
	while (is_there("run/orbweaver/jobs/spidernet.io_rails_1")) {
		cni_stand_turn(&stand);
		(void)usleep(WAIT_US);
	}
}

TEST_WITH(files_of_other_sandboxes_and_of_nobody_stay, set_up, tear_down)
{
	auto_free char *folder = str_below(stand.folder, "var/lib/orbweaver/cni");
	auto_close int root = open(stand.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_sandboxes struct sandboxes records = {.dir = -1};

	start();
	call("ADD");
	write_file("run/orbweaver/jobs/spidernet.io_rails_1/nccl.env", "# sandbox gone\n");
	write_file("run/orbweaver/jobs/spidernet.io_rails_2/else", "");
	records.dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	job_files_sweep(root, &records);
	assert_false(is_there("run/orbweaver/jobs/spidernet.io_rails_1"));
	assert_true(is_there("run/orbweaver/jobs/spidernet.io_rails_2"));
	assert_true(is_there(FOLDER "/nccl.env"));
}

TEST_WITH(a_link_in_a_folders_place_is_not_followed, set_up, tear_down)
{
	auto_free char *path = str_below(stand.folder, FOLDER);

	write_file("run/orbweaver/jobs/x/keep", "");
	write_file("away/keep", "");
	assert_int_equal(symlink("../../../away", path), 0);
	start();
	call("ADD");
	assert_false(is_there("away/nccl.env"));
	call("DEL");
	assert_true(is_there("away/keep"));
}
