// SPDX-License-Identifier: Apache-2.0
/* Other ends of the node's connections, as proc_pid_net(5) has them. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/connections.h"
#include "tests/support/scratch.h"

#define HEAD                                                                                       \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "      \
	"timeout inode\n"
#define REST " 00000000:00000000 02:00000A5F 00000000     0        0 1234 2 0 20 4 30 10 -1\n"

static bool is_not_ten(const void *arg, const char *address)
{
	return strncmp(address, "10.", 3) != 0;
}

TEST(peers_are_those_of_connections_that_are_established)
{
	/* Established, waiting for its end, loopback, not wanted, the first once more. */
	static const char tcp[] = HEAD "   0: 050200C0:D2A6 076433C6:192B 01" REST
				       "   1: 050200C0:D2A7 086433C6:192B 06" REST
				       "   2: 0100007F:D2A8 0100007F:192B 01" REST
				       "   3: 050200C0:D2A9 0100000A:192B 01" REST
				       "   4: 050200C0:D2AA 076433C6:192B 01" REST;
	static const char tcp6[] = HEAD "   0: 0000000000000000FFFF0000050200C0:D2A6 "
					"0000000000000000FFFF0000096433C6:192B 01" REST;
	char *folder = scratch_new();
	auto_close int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int net = -1;
	json_auto_t *peers = NULL, *none = NULL;
	struct err err = {0};

	none = connections_peers(root, is_not_ten, NULL, &err);
	assert_null(none);
	assert_string_equal(err.reason, "HostUnreadable");
	assert_int_equal(root_make_dirs(root, "proc/thread-self/net", 0755), 0);
	net = root_open(root, "proc/thread-self/net", O_PATH | O_DIRECTORY, 0);
	assert_int_equal(fs_write_atomic(net, "tcp", tcp, strlen(tcp), 0600, NULL), 0);
	assert_int_equal(fs_write_atomic(net, "tcp6", tcp6, strlen(tcp6), 0600, NULL), 0);
	peers = connections_peers(root, is_not_ten, NULL, NULL);
	assert_int_equal(json_array_size(peers), 2);
	assert_true(json_list_has(peers, "198.51.100.7"));
	assert_true(json_list_has(peers, "198.51.100.9"));
	scratch_free(folder);
}

/* To the API server; from it, and to a pod of another process: not the kubelet's own. */
TEST(a_process_reaches_what_it_connected_to_itself)
{
	static const char tcp[] = HEAD "   0: 00000000:280A 00000000:0000 0A" REST
				       "   1: 050200C0:D2A6 076433C6:192B 01" REST
				       "   2: 050200C0:280A 086433C6:D2A7 01" REST
				       "   3: 050200C0:D2A8 0100000A:192B 01" REST
				       "   4: 050200C0:D2A9 096433C6:192B 01 00000000:00000000 "
				       "02:00000A5F 00000000     0        0 77 2 0 20 4 30 10 -1\n";
	char *folder = scratch_new();
	auto_close int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int net = -1, fds = -1;
	json_auto_t *reached = NULL, *none = connections_reached(root, 42, is_not_ten, NULL);

	assert_int_equal(json_array_size(none), 0);
	assert_int_equal(root_make_dirs(root, "proc/42/net", 0755), 0);
	assert_int_equal(root_make_dirs(root, "proc/42/fd", 0755), 0);
	net = root_open(root, "proc/42/net", O_PATH | O_DIRECTORY, 0);
	fds = root_open(root, "proc/42/fd", O_PATH | O_DIRECTORY, 0);
	assert_int_equal(fs_write_atomic(net, "tcp", tcp, strlen(tcp), 0600, NULL), 0);
	assert_int_equal(symlinkat("socket:[1234]", fds, "7"), 0);
	reached = connections_reached(root, 42, is_not_ten, NULL);
	assert_int_equal(json_array_size(reached), 1);
	assert_true(json_list_has(reached, "198.51.100.7"));
	scratch_free(folder);
}
