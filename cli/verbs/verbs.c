// SPDX-License-Identifier: Apache-2.0
/*
 * The calls on one device, in a child that writes what became of each into memory that it shares
 * with its parent: nothing has to be parsed, and of a call that never returns it is known which one
 * it was. The child frees nothing: the kernel does at its end.
 */
#include "cli/verbs/verbs.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/verbs/verbs_library.h"
#include "lib/base/child.h"
#include "lib/base/clock.h"
#include "lib/base/own.h"

enum {
	SMALL = 4096,
	HUGE = 2 << 20,
	MESSAGE = 64,
	/* GIDs of a port that are tried: a pod's own may be behind those of the host. */
	GIDS_TRIED = 16,
	/* ibv_modify_qp(3): 4.096 us * 2^14 for each of seven tries, four times as long at most. */
	TIMEOUT = 14,
	RETRIES = 7,
	/* For each, within the deadline. */
	POLL_MS = 3000,
	LOOK_MS = 10,
};

struct attempt {
	const struct verbs_library *lib;
	struct verbs_report *report;
	struct ibv_context *context;
	struct ibv_port_attr port;
	struct ibv_mr *memory;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void begin(struct attempt *a, enum verbs_call call)
{
	a->report->calls[call].outcome = VERBS_RUNS;
	errno = 0;
}

static bool end(struct attempt *a, enum verbs_call call, bool is_done)
{
	a->report->calls[call] =
		(struct verbs_result){is_done ? VERBS_DONE : VERBS_FAILED, is_done ? 0 : errno};
	return is_done;
}

/* One whose expression says whether it worked. */
#define TRY(a, call, expression) (begin(a, call), end(a, call, (expression)))

static void pause_ms(int ms)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* ---- device, port ---------------------------------------------------------------------------- */

static bool open_device(struct attempt *a, const char *name)
{
	struct ibv_device **list, *found = NULL;
	int n = 0;

	begin(a, VERBS_LIST);
	list = a->lib->get_device_list(&n);
	for (int i = 0; list && i < n; i++)
		if (strcmp(a->lib->get_device_name(list[i]), name) == 0)
			found = list[i];
	errno = list ? ENODEV : errno;
	if (!end(a, VERBS_LIST, found))
		return false;
	begin(a, VERBS_OPEN);
	a->context = a->lib->open_device(found);
	/*
	 * After a file that may not be opened the library looks for it in /dev/char, and says so.
	 */
	if (!a->context && errno == ENOENT)
		errno = a->lib->why_not_file(found->dev_name);
	return end(a, VERBS_OPEN, a->context);
}

/* The first that is active, else the first. */
static bool find_port(struct attempt *a)
{
	struct ibv_device_attr device = {0};
	struct verbs_report *r = a->report;

	begin(a, VERBS_PORT);
	errno = a->lib->query_device(a->context, &device);
	for (int i = 1; !errno && i <= device.phys_port_cnt && a->port.state != IBV_PORT_ACTIVE;
	     i++) {
		struct ibv_port_attr port = {0};

		/* What the library exports fills the beginning of the structure. */
		errno = a->lib->query_port(a->context, (uint8_t)i,
					   (struct _compat_ibv_port_attr *)&port);
		if (errno || (r->port && port.state != IBV_PORT_ACTIVE))
			continue;
		a->port = port;
		r->port = i;
	}
	errno = errno ? errno : ENETDOWN;
	return end(a, VERBS_PORT, a->port.state == IBV_PORT_ACTIVE);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct ibv_mr *register_memory(struct attempt *a, enum verbs_call call, struct ibv_pd *pd,
				      size_t size, int flags)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			    -1, 0);
	struct ibv_mr *ret = NULL;

	/* No huge page is free. */
	if (memory == MAP_FAILED && flags)
		return NULL;
	begin(a, call);
	if (memory != MAP_FAILED)
		ret = a->lib->reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE);
	(void)end(a, call, ret);
	return ret;
}

static bool register_all(struct attempt *a)
{
	struct ibv_pd *pd;
	int gpu;

	if (!TRY(a, VERBS_PD, pd = a->lib->alloc_pd(a->context)))
		return false;
	a->memory = register_memory(a, VERBS_REG_SMALL, pd, SMALL, 0);
	(void)register_memory(a, VERBS_REG_LARGE, pd, VERBS_LARGE, 0);
	(void)register_memory(a, VERBS_REG_HUGE, pd, HUGE, MAP_HUGETLB);
	/* CUDA takes memory of its own. */
	begin(a, VERBS_REG_DMABUF);
	gpu = a->lib->gpu_memory(HUGE);
	if (gpu < 0) {
		a->report->calls[VERBS_REG_DMABUF].outcome = VERBS_NOT_TRIED;
	} else {
		errno = EOPNOTSUPP;
		(void)end(a, VERBS_REG_DMABUF,
			  a->lib->reg_dmabuf_mr && a->lib->reg_dmabuf_mr(pd, 0, HUGE, 0, gpu,
									 IBV_ACCESS_LOCAL_WRITE));
	}
	return a->memory;
}

/* ---- a message to itself --------------------------------------------------------------------- */

static bool make_queues(struct attempt *a)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	if (!TRY(a, VERBS_CQ, a->cq = a->lib->create_cq(a->context, 4, NULL, NULL, 0)))
		return false;
	init.send_cq = init.recv_cq = a->cq;
	return TRY(a, VERBS_QP, a->qp = a->lib->create_qp(a->memory->pd, &init));
}

/* From any state to one in which it sends to itself; the mask says which attributes count. */
static bool connect_to_itself(struct attempt *a, const union ibv_gid *gid, int index)
{
	static const struct {
		enum ibv_qp_state state;
		int mask;
	} steps[] = {
		{IBV_QPS_RESET, 0},
		{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC},
	};
	struct ibv_qp_attr attr = {
		.port_num = (uint8_t)a->report->port,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = a->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES - 1,
		.ah_attr = {.dlid = a->port.lid, .port_num = (uint8_t)a->report->port},
	};

	if (gid) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh = (struct ibv_global_route){
			.dgid = *gid, .sgid_index = (uint8_t)index, .hop_limit = 64};
	}
	begin(a, VERBS_CONNECT);
	for (size_t i = 0; !errno && i < ARRAY_LEN(steps); i++) {
		attr.qp_state = steps[i].state;
		errno = a->lib->modify_qp(a->qp, &attr, IBV_QP_STATE | steps[i].mask);
	}
	return end(a, VERBS_CONNECT, !errno);
}

static bool send_to_itself(struct attempt *a)
{
	struct ibv_sge to = {(uintptr_t)a->memory->addr + SMALL / 2, MESSAGE, a->memory->lkey};
	struct ibv_sge from = {(uintptr_t)a->memory->addr, MESSAGE, a->memory->lkey};
	struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &from,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	char *memory = a->memory->addr;
	int64_t until = clock_ms() + POLL_MS;
	struct ibv_wc wc;

	/* What an attempt before this one left. */
	while (ibv_poll_cq(a->cq, 1, &wc) > 0)
		;
	memset(memory, 'r', SMALL);
	memset(memory, 's', MESSAGE);
	begin(a, VERBS_SEND);
	errno = ibv_post_recv(a->qp, &recv, &bad_recv);
	if (!errno)
		errno = ibv_post_send(a->qp, &send, &bad_send);
	if (!end(a, VERBS_SEND, !errno))
		return false;
	begin(a, VERBS_POLL);
	/* One completion for each end. */
	for (int n = 0; n < 2 && clock_ms() < until;) {
		int got = ibv_poll_cq(a->cq, 1, &wc);

		if (got > 0 && wc.status != IBV_WC_SUCCESS) {
			(void)snprintf(a->report->text, sizeof(a->report->text), "%s",
				       a->lib->wc_status_str(wc.status));
			return end(a, VERBS_POLL, false);
		}
		n += got > 0;
		if (got <= 0)
			pause_ms(1);
	}
	errno = ETIMEDOUT;
	return end(a, VERBS_POLL, memcmp(memory, memory + SMALL / 2, MESSAGE) == 0);
}

/* Is it an address of this network namespace? IPv4 is ::ffff:10.6.0.1. */
static bool is_ours(const struct ifaddrs *addresses, const union ibv_gid *gid)
{
	for (const struct ifaddrs *i = addresses; i; i = i->ifa_next) {
		struct in6_addr address = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

		if (!i->ifa_addr)
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			memcpy(&address.s6_addr[12],
			       &((const struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
		else if (i->ifa_addr->sa_family == AF_INET6)
			address = ((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
		else
			continue;
		if (memcmp(&address, gid, sizeof(address)) == 0)
			return true;
	}
	return false;
}

/* By the first GID by which it comes back: our own, then others, if this namespace has none. */
static void loop_back(struct attempt *a)
{
	static const union ibv_gid none;
	struct verbs_report *r = a->report;
	struct ifaddrs *addresses = NULL;
	int gids = 0;

	if (a->port.link_layer == IBV_LINK_LAYER_INFINIBAND &&
	    !(a->port.flags & IBV_QPF_GRH_REQUIRED)) {
		if (connect_to_itself(a, NULL, 0))
			(void)send_to_itself(a);
		return;
	}
	(void)getifaddrs(&addresses);
	for (int i = 0, n = a->port.gid_tbl_len; i < 2 * n && gids < GIDS_TRIED; i++) {
		union ibv_gid gid;

		if (i % n > UINT8_MAX ||
		    a->lib->query_gid(a->context, (uint8_t)r->port, i % n, &gid) ||
		    memcmp(&gid, &none, sizeof(gid)) == 0 || is_ours(addresses, &gid) != (i < n))
			continue;
		gids++;
		if (!connect_to_itself(a, &gid, i % n) || !send_to_itself(a))
			continue;
		r->gid_index = i % n;
		break;
	}
	begin(a, VERBS_GID);
	errno = ENODATA;
	(void)end(a, VERBS_GID, gids > 0);
}

static void try_all(struct attempt *a, const char *device)
{
	bool is_active;

	if (!open_device(a, device))
		return;
	is_active = find_port(a);
	if (register_all(a) && make_queues(a) && is_active)
		loop_back(a);
}

/* ---- the child ------------------------------------------------------------------------------- */

void verbs_try(const struct verbs_library *library, const char *device, int deadline_ms,
	       struct verbs_report *ret)
{
	static const int keep_none[1];
	struct verbs_report *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t until;
	int status = 0;
	pid_t pid = -1, ended = 0;

	assert(library && device && deadline_ms > 0);
	until = clock_ms() + deadline_ms;
	*ret = (struct verbs_report){
		.calls[VERBS_LIST] = {VERBS_FAILED, ECHILD},
		.gid_index = -1,
	};
	if (shared != MAP_FAILED) {
		*shared = *ret;
		/* Near a limit of memory it goes before the job that runs there. */
		pid = child_fork(&(struct child_config){.name = "verbs",
							.dies_by = SIGKILL,
							.oom_more = 1000,
							.resets_handlers = true,
							.keep = keep_none});
	}
	if (pid == 0) {
		try_all(&(struct attempt){.lib = library, .report = shared}, device);
		_exit(0);
	}
	if (pid < 0) {
		ret->calls[VERBS_LIST].sys = errno;
		return;
	}
	while (ended == 0 && clock_ms() < until) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == 0)
			pause_ms(LOOK_MS);
	}
	if (ended == 0) {
		(void)kill(pid, SIGKILL);
		pause_ms(LOOK_MS);
		(void)waitpid(pid, NULL, WNOHANG);
	}
	*ret = *shared;
	ret->is_late = ended == 0;
	ret->signal = ended > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	(void)munmap(shared, sizeof(*shared));
}
