// SPDX-License-Identifier: Apache-2.0
/*
 * One CNI call of a plugin from a shell, for tests on virtual nodes.
 *
 *	attach-tool ADD|CHECK|DEL TYPE IFNAME NETNS STATE CONFIG [IPAM]
 *
 * NETNS: a path, "" for one that is gone. STATE: the file that save() writes and DEL reads. CONFIG:
 * stdin of the plugin. IPAM: the result that IPAM gives. ATTACH_DIE=N in the environment: be killed
 * before the N-th message to the kernel, those of children aside. ATTACH_FOREIGN: the device is
 * another pod's. ATTACH_ROOT: where /sys is read. ATTACH_SETTINGS: the cluster's, for the
 * coordinator. CNI_ARGS, CNI_CONTAINERID: as a runtime has them. Prints the result, or the error;
 * exit 1 then.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/server/cni_error.h"

static const char *state_path;
static json_t *ipam_result;
static int messages_left = -1;
static pid_t own_pid;

ssize_t __real_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);

ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	if (messages_left == 0 && getpid() == own_pid)
		(void)raise(SIGKILL);
	if (messages_left > 0)
		messages_left--;
	return __real_sendto(fd, data, len, flags, to, to_len);
}

static int save(void *context, const json_t *state, struct err *err)
{
	auto_free char *text = state ? json_text(state) : str_dup("null");

	return fs_write_atomic(AT_FDCWD, state_path, text, strlen(text), 0600, err);
}

static void keep(void *context, const json_t *state)
{
	(void)save(context, state, NULL);
}

static int ipam(void *context, const char *command, const json_t *config, json_t **ret_result,
		struct err *err)
{
	if (str_eq(command, "ADD") && !ipam_result)
		return err_set(err, ERR_TRANSIENT, "NoAddress", "IPAM has no address");
	if (str_eq(command, "ADD"))
		*ret_result = json_deep_copy(ipam_result);
	return 0;
}

static int owns(void *context, const char *pci_address, struct err *err)
{
	return !getenv("ATTACH_FOREIGN");
}

static int is_given(void *context, const char *pci_address, struct err *err)
{
	return 1;
}

static void report(void *context, const json_t *conflicts)
{
	auto_free char *text = json_text(conflicts);

	fprintf(stderr, "in use by somebody else: %s\n", text);
}

static void took(void *context, int64_t kernel_us)
{
}

static json_t *read_state(void)
{
	auto_strbuf struct strbuf text = {0};

	if (fs_read(AT_FDCWD, state_path, 1 << 20, &text, NULL) || str_eq(text.data, "null"))
		return NULL;
	return json_parse(text.data, text.len, NULL);
}

int main(int argc, char **argv)
{
	static const struct attach_services services = {.save = save,
							.keep = keep,
							.ipam = ipam,
							.owns = owns,
							.is_given = is_given,
							.report = report,
							.took = took};
	struct attach_call call = {.container_id = "0123456789abcdef", .host_netns = -1};
	json_auto_t *config = NULL, *saved = NULL, *result = NULL, *error = NULL, *settings = NULL;
	auto_close int netns = -1, root = -1;
	struct err err = {0};

	json_init();
	own_pid = getpid();
	if (argc < 7) {
		fprintf(stderr,
			"usage: attach-tool COMMAND TYPE IFNAME NETNS STATE CONFIG [IPAM]\n");
		return 2;
	}
	if (getenv("ATTACH_DIE"))
		messages_left = (int)strtol(getenv("ATTACH_DIE"), NULL, 10);
	state_path = argv[5];
	netns = open(argv[4], O_RDONLY | O_CLOEXEC);
	root = open(getenv("ATTACH_ROOT") ? getenv("ATTACH_ROOT") : "/", O_PATH | O_CLOEXEC);
	config = json_parse(argv[6], strlen(argv[6]), &err);
	if (argc > 7)
		ipam_result = json_parse(argv[7], strlen(argv[7]), &err);
	saved = str_eq(argv[1], "ADD") ? NULL : read_state();
	call.command = str_eq(argv[1], "ADD")   ? ATTACH_ADD
		       : str_eq(argv[1], "DEL") ? ATTACH_DEL
						: ATTACH_CHECK;
	call.type = argv[2];
	call.ifname = argv[3];
	call.netns_path = argv[4];
	call.args = getenv("CNI_ARGS");
	if (getenv("CNI_CONTAINERID"))
		call.container_id = getenv("CNI_CONTAINERID");
	call.netns = netns;
	call.root = root;
	call.config = config;
	if (getenv("ATTACH_SETTINGS"))
		settings = json_parse(getenv("ATTACH_SETTINGS"), strlen(getenv("ATTACH_SETTINGS")),
				      &err);
	call.settings = settings;
	call.saved = saved;
	call.services = &services;
	if (!config || attach_run(&call, &result, &err)) {
		error = cni_error(NULL, &err);
		(void)json_dumpf(error, stdout, JSON_SORT_KEYS);
		(void)putchar('\n');
		json_decref(ipam_result);
		return 1;
	}
	(void)json_dumpf(result ? result : json_null(), stdout, JSON_SORT_KEYS | JSON_ENCODE_ANY);
	(void)putchar('\n');
	json_decref(ipam_result);
	return 0;
}
