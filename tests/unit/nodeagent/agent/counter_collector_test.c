// SPDX-License-Identifier: Apache-2.0
/*
 * What devices have counted, from a scrape to the text: with real workers, on hosts made of files.
 * A device that does not answer is one with a FIFO where a file should be.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/agent/counter_collector.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/process/client.h"
#include "nodeagent/worker/worker.h"
#include "tests/support/workers_stand.h"

#define STANDS_MAX 8
#define VF1        "0000:3c:00.1"

/* The machine's clock, with leaps: nobody waits for what is an hour away. */
static int64_t leap_us;

int64_t clock_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + leap_us;
}

int64_t clock_wall_us(void)
{
	return INT64_C(1767225600000000) + clock_us();
}

/* Forked before the first loop there is, one for each test. */
static struct prepared {
	struct host_tree *tree;
	int socket;
	pid_t pid;
} stands[STANDS_MAX];
static size_t n_stands, n_used;

struct fixture {
	struct prepared *stand;
	struct loop *loop;
	struct metrics *metrics;
	struct counter_collector *counting;
	json_t *allocated, *owners;
	int gathered, lost;
	size_t n_devices; /* of the last gathering */
	size_t size;
};

static const json_t *on_allocated(void *arg)
{
	return ((struct fixture *)arg)->allocated;
}

static const json_t *on_attachments(void *arg)
{
	return NULL;
}

static const json_t *on_rails(void *arg)
{
	return NULL;
}

static const json_t *on_owners(void *arg, const json_t *pods)
{
	return ((struct fixture *)arg)->owners;
}

static void on_gathered(void *arg, size_t size, const json_t *devices)
{
	struct fixture *f = arg;

	f->gathered++;
	f->n_devices = json_array_size(devices);
	f->size = size;
}

static void on_lost(void *arg)
{
	((struct fixture *)arg)->lost++;
}

static int set_up(void **state)
{
	struct fixture *f = mem_new(struct fixture);

	assert_true(n_used < n_stands);
	f->stand = &stands[n_used++];
	f->loop = loop_new();
	f->metrics = metrics_new();
	f->allocated = json_pack("{s:{s:s}}", "spidernet.io/fast", VF1, "ml/train-0/main");
	f->owners = json_pack("{s:{s:s, s:s, s:s}}", "ml/train-0", "kind", "Job", "namespace", "ml",
			      "name", "train");
	f->counting = counter_collector_new(&(struct counter_collector_config){
		.loop = f->loop,
		.meters = f->stand->socket,
		.node = "n1",
		.scope = EXPOSITION_PODS,
		.excluded = "0000:af:*",
		.allocated = on_allocated,
		.attachments = on_attachments,
		.owners = on_owners,
		.rails = on_rails,
		.gathered = on_gathered,
		.lost = on_lost,
		.arg = f,
		.metrics = f->metrics,
	});
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	counter_collector_free(f->counting);
	loop_free(f->loop);
	metrics_free(f->metrics);
	json_decref(f->allocated);
	json_decref(f->owners);
	/* It ends by itself, if it has not already. */
	while (waitpid(f->stand->pid, NULL, 0) < 0 && errno == EINTR)
		;
	mem_free(f);
	return 0;
}

static void gather(struct fixture *f)
{
	int before = f->gathered;

	assert_false(counter_collector_refresh(f->counting));
	assert_false(counter_collector_refresh(f->counting));
	while (f->gathered == before)
		loop_turn(f->loop, true);
}

/* What is shown of it, up to the line's end; the buffer lives until the next call. */
static const char *line_of(struct fixture *f, const char *start)
{
	static struct strbuf text;
	char *at;

	strbuf_reset(&text);
	strbuf_addc(&text, '\n');
	metrics_render(f->metrics, &text);
	at = strstr(text.data, start);
	while (at && at > text.data && at[-1] != '\n')
		at = strstr(at + 1, start);
	if (!at)
		return "";
	at[strcspn(at, "\n")] = '\0';
	return at;
}

static double requests(struct fixture *f, const char *kind, const char *outcome)
{
	return metric_get(metric_counter(f->metrics, "orbweaver_hostd_requests_total",
					 "Requests to hostd, by step or kind.", "request,outcome"),
			  kind, outcome);
}

static double gatherings(struct fixture *f, const char *outcome)
{
	auto_free char *start =
		str_printf("orbweaver_counters_gatherings_total{outcome=\"%s\"} ", outcome);
	const char *line = line_of(f, start);

	return *line ? strtod(line + strlen(start), NULL) : 0;
}

static double timestamp(struct fixture *f)
{
	static const char start[] = "orbweaver_counters_timestamp_seconds ";
	const char *line = line_of(f, start);

	return *line ? strtod(line + sizeof(start) - 1, NULL) : 0;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static void be_host(int fd, void *arg)
{
	struct host_tree *tree = arg;
	struct host *host = host_open(host_tree_folder(tree), NULL);

	host_tree_reopen(tree);
	host_set_doors(host, host_tree_doors(), tree);
	worker_serve(fd, host);
}

static void make_vfs(struct host_tree *tree, const char *pf, const char *count)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/sriov_numvfs", pf);

	assert_int_equal(host_tree_doors()->write(tree, -1, path, count, strlen(count), NULL), 0);
}

/* Opening it waits for somebody who writes. */
static void hang(struct host_tree *tree, const char *rdma)
{
	auto_free char *file = str_printf("sys/class/infiniband/%s/tc/1/traffic_class", rdma);
	auto_free char *path = str_printf("%s/%s", host_tree_folder(tree), file);

	host_tree_file(tree, file, "");
	host_tree_remove(tree, file);
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void prepare(struct host_tree *tree)
{
	struct prepared *stand = &stands[n_stands++];

	stand->tree = tree;
	stand->socket = workers_stand_fork_as(WORKERS_HOST, be_host, tree, &stand->pid);
	assert_true(stand->socket >= 0);
}

/* An mlx5 NIC with a VF in a pod, beside one that is excluded. */
static struct host_tree *usual(void)
{
	struct host_tree *tree = host_tree_new();

	host_tree_add_pf(tree, &tree_mlx);
	host_tree_add_pf(tree, &tree_ib);
	make_vfs(tree, TREE_MLX, "3");
	assert_int_equal(rdma_set_mode(host_tree_host(tree), RDMA_MODE_EXCLUSIVE, NULL), 0);
	host_tree_move_to(tree, VF1, "cni-1", "net1");
	return tree;
}

#define SICK 6

/* All of which would take longer than a gathering may. */
static struct host_tree *sick(void)
{
	static char names[SICK][3][24];
	struct host_tree *tree = host_tree_new();

	for (int i = 0; i < SICK; i++) {
		struct tree_pf pf = tree_mlx;

		(void)snprintf(names[i][0], 24, "0000:%02x:00.0", 16 * i + 16);
		(void)snprintf(names[i][1], 24, "ens%d", i);
		(void)snprintf(names[i][2], 24, "mlx5_%d", i);
		pf.address = names[i][0];
		pf.netdev = names[i][1];
		pf.rdma = names[i][2];
		pf.total = 0;
		host_tree_add_pf(tree, &pf);
		if (i > 0)
			hang(tree, pf.rdma);
	}
	return tree;
}

/* ---- tests, in the order of their hosts ------------------------------------------------------ */

static void what_is_there_is_shown_with_the_pod_that_has_it(void **state)
{
	struct fixture *f = *state;
	double read_s;

	assert_string_equal(line_of(f, "# TYPE rdma_out_of_sequence_total"),
			    "# TYPE rdma_out_of_sequence_total counter");
	gather(f);
	assert_string_equal(
		line_of(f, "rdma_out_of_sequence_total{"),
		"rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0\",net_dev_name="
		"\"ens1f0np0\",is_root=\"true\",rdma_parent_name=\"ens1f0np0\"} 1005");
	assert_string_equal(
		line_of(f, "rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0v1\""),
		"rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0v1\",net_dev_name="
		"\"net1\",is_root=\"false\",rdma_parent_name=\"ens1f0np0\",pod_namespace=\"ml\","
		"pod_name=\"train-0\",owner_kind=\"Job\",owner_namespace=\"ml\",owner_name="
		"\"train\"} 3005");
	assert_string_equal(line_of(f, "sriov_vf_rx_bytes{pf=\"ens1f0np0\",vf=\"2\""),
			    "sriov_vf_rx_bytes{pf=\"ens1f0np0\",vf=\"2\",pciAddr=\"0000:3c:00.2\","
			    "numa_node=\"0\"} 202");
	assert_string_equal(line_of(f, "sriov_kubepoddevice{"),
			    "sriov_kubepoddevice{pciAddr=\"" VF1
			    "\",dev_type=\"spidernet.io/fast\","
			    "pod=\"train-0\",namespace=\"ml\",container=\"main\"} 1");
	/* A VF that nobody has, and a NIC that is not to be touched. */
	assert_string_equal(
		line_of(f, "rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0v0"), "");
	assert_string_equal(
		line_of(f, "orbweaver_rdma_device_info{node_name=\"n1\",ifname=\"mlx5_7"), "");
	assert_true(gatherings(f, "complete") == 1);
	assert_true(f->size > 1000);
	/* Who comes now, has it, and when it was read; who comes later, has it read again. */
	read_s = timestamp(f);
	assert_true(read_s > 1e9);
	leap_us += (COUNTER_COLLECTOR_FRESH_MS - 1000) * INT64_C(1000);
	assert_true(counter_collector_refresh(f->counting));
	assert_true(timestamp(f) == read_s);
	leap_us += COUNTER_COLLECTOR_FRESH_MS * INT64_C(1000);
	json_object_clear(f->allocated);
	gather(f);
	assert_true(timestamp(f) - read_s >= 2 * COUNTER_COLLECTOR_FRESH_MS / 1e3 - 1);
	assert_string_equal(
		line_of(f, "rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0v1\""), "");
	assert_string_equal(line_of(f, "sriov_kubepoddevice{"), "");
	assert_true(requests(f, "devices", "OK") == 2);
}

static void a_device_that_does_not_answer_costs_its_own_counters(void **state)
{
	struct fixture *f = *state;

	gather(f);
	assert_string_equal(
		line_of(f, "rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0\""), "");
	assert_string_equal(line_of(f, "orbweaver_rdma_scrape_failed{"),
			    "orbweaver_rdma_scrape_failed{node_name=\"n1\",ifname=\"mlx5_0\","
			    "net_dev_name=\"ens1f0np0\",pci_address=\"" TREE_MLX "\"} 1");
	assert_string_not_equal(
		line_of(f, "rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0v1\""), "");
	assert_true(gatherings(f, "partial") == 1);
	assert_true(requests(f, "counters", "HostHung") == 1);
	/* It is left alone, and failed all the same. */
	leap_us += COUNTER_COLLECTOR_FRESH_MS * INT64_C(1000);
	gather(f);
	assert_true(requests(f, "counters", "HostHung") == 1);
	assert_string_not_equal(line_of(f, "orbweaver_rdma_scrape_failed{"), "");
	leap_us += COUNTER_COLLECTOR_ALONE_MS * INT64_C(1000);
	gather(f);
	assert_true(requests(f, "counters", "HostHung") == 2);
	/* Twice as long now. */
	leap_us += COUNTER_COLLECTOR_ALONE_MS * INT64_C(1000);
	gather(f);
	assert_true(requests(f, "counters", "HostHung") == 2);
}

static void a_scrape_does_not_wait_for_all_who_are_sick(void **state)
{
	struct fixture *f = *state;

	gather(f);
	assert_string_not_equal(
		line_of(f, "rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0\""), "");
	assert_string_not_equal(
		line_of(f, "orbweaver_rdma_scrape_failed{node_name=\"n1\",ifname=\"mlx5_5"), "");
	assert_true(requests(f, "counters", "HostHung") < SICK - 1);
	/* The next one waits for what is still out, and goes on with those that were not asked. */
	while (requests(f, "counters", "HostHung") < SICK - 1) {
		leap_us += COUNTER_COLLECTOR_FRESH_MS * INT64_C(1000);
		gather(f);
	}
	leap_us += COUNTER_COLLECTOR_FRESH_MS * INT64_C(1000);
	gather(f);
	assert_true(requests(f, "counters", "HostHung") == SICK - 1);
	assert_string_not_equal(
		line_of(f, "rdma_out_of_sequence_total{node_name=\"n1\",ifname=\"mlx5_0\""), "");
}

static void a_host_that_cannot_be_read_has_no_series(void **state)
{
	struct fixture *f = *state;

	gather(f);
	assert_true(gatherings(f, "HostUnreadable") == 1);
	assert_string_equal(line_of(f, "rdma_out_of_sequence_total{"), "");
	assert_string_not_equal(line_of(f, "# TYPE rdma_out_of_sequence_total"), "");
	/* What the kubelet says is known all the same. */
	assert_string_not_equal(line_of(f, "sriov_kubepoddevice{"), "");
}

static void the_end_of_the_supervisor_is_told_and_who_waits_is_answered(void **state)
{
	struct fixture *f = *state;
	siginfo_t ended;

	assert_int_equal(kill(f->stand->pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)f->stand->pid, &ended, WEXITED | WNOWAIT), 0);
	gather(f);
	assert_true(gatherings(f, "HostdDied") == 1);
	assert_int_equal(f->lost, 1);
}

static void freeing_in_the_middle_is_fine(void **state)
{
	struct fixture *f = *state;

	assert_false(counter_collector_refresh(f->counting));
	loop_turn(f->loop, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		CASE(what_is_there_is_shown_with_the_pod_that_has_it),
		CASE(a_device_that_does_not_answer_costs_its_own_counters),
		CASE(a_scrape_does_not_wait_for_all_who_are_sick),
		CASE(a_host_that_cannot_be_read_has_no_series),
		CASE(the_end_of_the_supervisor_is_told_and_who_waits_is_answered),
		CASE(freeing_in_the_middle_is_fine),
	};
	struct host_tree *hung, *broken;
	int failed;

	json_init();
	prepare(usual());
	hung = usual();
	hang(hung, "mlx5_0");
	prepare(hung);
	prepare(sick());
	broken = usual();
	host_tree_remove(broken, "sys/bus/pci/devices");
	prepare(broken);
	prepare(usual());
	prepare(usual());
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < n_stands; i++)
		host_tree_free(stands[i].tree);
	return failed;
}
