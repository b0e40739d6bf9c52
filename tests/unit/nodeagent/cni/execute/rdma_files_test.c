// SPDX-License-Identifier: Apache-2.0
/* Folders with the device files of RDMA devices, on a host made of files. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "nodeagent/cni/execute/rdma_files.h"
#include "tests/support/scratch.h"

#define VF "0000:3b:00.2"

struct fixture {
	char *folder;
	struct host *host;
};

static char *below(const struct fixture *f, const char *path)
{
	return str_printf("%s/%s", f->folder, path);
}

/* As sysfs has it: the file of a function, and the class's link to that. */
static void arrives(const struct fixture *f, const char *name, const char *number)
{
	auto_free char *line =
		str_printf("cd %s && mkdir -p sys/bus/pci/devices/" VF "/infiniband_verbs/%s "
			   "sys/class/infiniband_verbs/%s && echo %s "
			   ">sys/bus/pci/devices/" VF
			   "/infiniband_verbs/%s/dev && ln -sfn ../../../bus/pci/devices/" VF
			   " sys/class/infiniband_verbs/%s/device",
			   f->folder, name, name, number, name, name);

	assert_int_equal(system(line), 0); /* NOLINT(cert-env33-c): a test */
}

static void leaves(const struct fixture *f, const char *name)
{
	auto_free char *line =
		str_printf("cd %s && rm -r sys/bus/pci/devices/" VF "/infiniband_verbs/%s "
			   "sys/class/infiniband_verbs/%s",
			   f->folder, name, name);

	assert_int_equal(system(line), 0); /* NOLINT(cert-env33-c): a test */
}

/* The file's number; 0: there is none. */
static dev_t number_of(const struct fixture *f, const char *name)
{
	auto_free char *path = str_printf("%s/run/orbweaver/rdma/" VF "/%s", f->folder, name);
	struct stat st;

	return stat(path, &st) == 0 ? st.st_rdev : 0;
}

static int set_up(void **state)
{
	static struct fixture f;

	f.folder = scratch_new();
	f.host = host_open(f.folder, NULL);
	assert_non_null(f.host);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	host_close(f->host);
	scratch_free(f->folder);
	return 0;
}

TEST_WITH(a_folder_follows_its_device, set_up, tear_down)
{
	const struct fixture *f = *state;
	auto_free char *folder = below(f, "run/orbweaver/rdma/" VF);

	if (geteuid() != 0)
		skip();
	arrives(f, "uverbs2", "231:194");
	assert_int_equal(rdma_files_keep_all(f->host, NULL), 0);
	assert_true(number_of(f, "uverbs2") == makedev(231, 194));
	/* It moves, and has the lowest number that is free. */
	leaves(f, "uverbs2");
	arrives(f, "uverbs1", "231:193");
	assert_int_equal(rdma_files_keep(f->host, VF, NULL), 0);
	assert_true(number_of(f, "uverbs1") == makedev(231, 193));
	assert_true(number_of(f, "uverbs2") == 0);
	/* The same name, another number: a module was loaded again. */
	arrives(f, "uverbs1", "241:1");
	assert_int_equal(rdma_files_keep_all(f->host, NULL), 0);
	assert_true(number_of(f, "uverbs1") == makedev(241, 1));
	leaves(f, "uverbs1");
	assert_int_equal(rdma_files_keep_all(f->host, NULL), 0);
	assert_int_equal(access(folder, F_OK), -1);
}

/* Removes the files, so that there is something to do, and has them made, many times. */
static bool keeps_on(const struct fixture *f)
{
	static const char *const names[] = {"uverbs2", "uverbs3"};
	bool is_well = true;

	for (int i = 0; i < 300; i++) {
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			auto_free char *path =
				str_printf("%s/run/orbweaver/rdma/" VF "/%s", f->folder, names[k]);

			(void)unlink(path);
		}
		is_well &= rdma_files_keep(f->host, VF, NULL) == 0;
	}
	return is_well;
}

/* As a worker and the keeper do. */
TEST_WITH(two_that_come_at_once_get_along, set_up, tear_down)
{
	const struct fixture *f = *state;
	int status = 0;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	arrives(f, "uverbs2", "231:194");
	arrives(f, "uverbs3", "231:195");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(keeps_on(f) ? 0 : 1);
	assert_true(keeps_on(f));
	assert_true(waitpid(pid, &status, 0) == pid && status == 0);
	assert_int_equal(rdma_files_keep_all(f->host, NULL), 0);
	assert_true(number_of(f, "uverbs2") == makedev(231, 194));
	assert_true(number_of(f, "uverbs3") == makedev(231, 195));
}

/* A runtime hands all that is in the folder to the container. */
TEST_WITH(a_draft_is_never_in_a_folder_that_containers_get, set_up, tear_down)
{
	const struct fixture *f = *state;
	auto_free char *in_the_way = below(f, "run/orbweaver/rdma/" VF "/uverbs2/x");
	auto_free char *inside = below(f, "run/orbweaver/rdma/" VF "/.draft");
	auto_free char *beside = below(f, "run/orbweaver/rdma/." VF ".draft");

	if (geteuid() != 0)
		skip();
	/* What should become the name is cut off before it has it. */
	assert_int_equal(fs_make_dirs(in_the_way, 0700), 0);
	arrives(f, "uverbs2", "231:194");
	assert_int_equal(rdma_files_keep(f->host, VF, NULL), -1);
	assert_int_equal(access(inside, F_OK), -1);
	assert_int_equal(access(beside, F_OK), 0);
	assert_int_equal(rmdir(in_the_way), 0);
	*strrchr(in_the_way, '/') = '\0';
	assert_int_equal(rmdir(in_the_way), 0);
	assert_int_equal(rdma_files_keep_all(f->host, NULL), 0);
	assert_true(number_of(f, "uverbs2") == makedev(231, 194));
	assert_int_equal(access(beside, F_OK), -1);
}

TEST_WITH(a_folder_that_cannot_be_made_is_an_error, set_up, tear_down)
{
	const struct fixture *f = *state;
	auto_free char *run = below(f, "run");
	struct err err = {0};

	assert_int_equal(fs_write_atomic(AT_FDCWD, run, "", 0, 0600, NULL), 0);
	arrives(f, "uverbs2", "231:194");
	assert_int_equal(rdma_files_keep_all(f->host, &err), -1);
	assert_string_equal(err.reason, "RdmaFilesStale");
}
