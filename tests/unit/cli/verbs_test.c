// SPDX-License-Identifier: Apache-2.0
/*
 * The calls on an RDMA device, with functions in the place of libibverbs' of which one fails, and
 * what is said about it. Real ones, on Soft-RoCE: tests/vm/agent_rdma_test.sh.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/verbs_findings.h"
#include "cli/verbs/verbs_library.h"
#include "lib/json/json.h"

/* What happens in one of the calls; the rest go well. GID 0 belongs to another namespace. */
static struct {
	enum verbs_call call;
	int sys;    /* errno of it */
	int signal; /* or: the process gets this */
	bool hangs;
	int file; /* errno of opening its file */
	bool is_down, is_ib, needs_grh, lacks_gids, has_gpu;
} plan;

static bool fails(enum verbs_call call)
{
	if (plan.call != call)
		return false;
	if (plan.hangs)
		(void)pause();
	if (plan.signal)
		(void)raise(plan.signal);
	errno = plan.sys;
	return plan.sys;
}

static struct ibv_device device = {.dev_name = "uverbs0"}, *devices[] = {&device, NULL};
static struct ibv_context context;
static struct ibv_pd pd;
static struct ibv_mr mr = {.pd = &pd};
static struct ibv_cq cq = {.context = &context};
static struct ibv_qp qp = {.context = &context};
static int gid_in_use, completions;
static char *to;

static struct ibv_device **get_device_list(int *n)
{
	*n = !fails(VERBS_LIST);
	return devices;
}

static const char *get_device_name(struct ibv_device *of)
{
	return "mlx5_0";
}

static struct ibv_context *open_device(struct ibv_device *of)
{
	return fails(VERBS_OPEN) ? NULL : &context;
}

static int query_device(struct ibv_context *of, struct ibv_device_attr *ret)
{
	ret->phys_port_cnt = 2;
	return fails(VERBS_PORT) ? plan.sys : 0;
}

static int query_port(struct ibv_context *of, uint8_t port, struct _compat_ibv_port_attr *ret)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)ret;

	attr->state = port == 2 && !plan.is_down ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->link_layer = plan.is_ib ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	attr->gid_tbl_len = 4;
	attr->flags = plan.needs_grh ? IBV_QPF_GRH_REQUIRED : 0;
	return 0;
}

static int query_gid(struct ibv_context *of, uint8_t port, int index, union ibv_gid *ret)
{
	*ret = (union ibv_gid){.raw = {plan.lacks_gids || index == 1 ? 0 : 0xfe}};
	return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *of)
{
	return fails(VERBS_PD) ? NULL : &pd;
}

static struct ibv_mr *reg_mr(struct ibv_pd *of, void *memory, size_t size, int access)
{
	bool is_small = size == 4096;

	if (is_small)
		mr.addr = memory;
	return fails(is_small ? VERBS_REG_SMALL : VERBS_REG_LARGE) ? NULL : &mr;
}

static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *of, uint64_t offset, size_t size, uint64_t iova,
				    int fd, int access)
{
	return fails(VERBS_REG_DMABUF) ? NULL : &mr;
}

static int why_not_file(const char *name)
{
	assert_string_equal(name, "uverbs0");
	return plan.file;
}

static int gpu_memory(size_t size)
{
	return plan.has_gpu ? 0 : -1;
}

static struct ibv_cq *create_cq(struct ibv_context *of, int n, void *arg,
				struct ibv_comp_channel *channel, int vector)
{
	return fails(VERBS_CQ) ? NULL : &cq;
}

static struct ibv_qp *create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	return fails(VERBS_QP) ? NULL : &qp;
}

static int modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & IBV_QP_AV))
		return 0;
	gid_in_use = attr->ah_attr.grh.sgid_index;
	return fails(VERBS_CONNECT)                         ? plan.sys
	       : attr->ah_attr.is_global && gid_in_use == 0 ? ENODEV
							    : 0;
}

static int post_recv(struct ibv_qp *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	to = (char *)(uintptr_t)wr->sg_list->addr; // NOLINT(performance-no-int-to-ptr)
	return 0;
}

static int post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	memcpy(to, mr.addr, wr->sg_list->length);
	completions = 2;
	return fails(VERBS_SEND) ? plan.sys : 0;
}

static int poll_cq(struct ibv_cq *of, int n, struct ibv_wc *ret)
{
	if (completions == 0)
		return 0;
	completions--;
	ret->status = fails(VERBS_POLL) ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
	return 1;
}

static const char *wc_status_str(enum ibv_wc_status status)
{
	return "transport retry counter exceeded";
}

static struct ibv_context context = {
	.ops = {.poll_cq = poll_cq, .post_send = post_send, .post_recv = post_recv},
};

static const struct verbs_library library = {
#define FAKE(name) .name = name,
	VERBS_FUNCTIONS(FAKE).gpu_memory = gpu_memory,
	.why_not_file = why_not_file,
};

static const struct verbs_place pod = {
	.memlock = -1, .rdma_mode = "exclusive", .has_devices = true, .has_files = true};

/* "error Reason ERRNO; warning …" of the device as things are planned. */
static void finds(const struct verbs_place *place, bool has_file, const char *want)
{
	json_auto_t *findings = json_array(), *finding;
	auto_strbuf struct strbuf got = {0};
	struct verbs_report report;
	size_t i;

	/* Only what hangs waits for the deadline. */
	verbs_try(&library, "mlx5_0", plan.hangs ? 300 : 60000, &report);
	verbs_findings_add(findings, place, "mlx5_0", has_file, &report);
	json_array_foreach (findings, i, finding) {
		strbuf_addf(&got, "%s%s %s %s", i ? "; " : "", json_str_at(finding, "level"),
			    json_str_at(finding, "reason"),
			    json_str_or(json_at(finding, "errno"), "-"));
		assert_string_equal(json_str_at(finding, "subject"), "mlx5_0");
		assert_non_null(json_str_at(finding, "remedy"));
	}
	finding = NULL;
	assert_string_equal(strbuf_str(&got), want);
}

TEST(a_message_comes_back_by_the_second_gid)
{
	struct verbs_report report;

	plan = (typeof(plan)){.call = VERBS_CALLS, .has_gpu = true};
	verbs_try(&library, "mlx5_0", 60000, &report);
	assert_int_equal(report.port, 2);
	assert_int_equal(report.gid_index, 2);
	assert_int_equal(report.calls[VERBS_REG_DMABUF].outcome, VERBS_DONE);
	finds(&pod, true, "info VerbsWork -");
	/* InfiniBand needs none, unless the port requires a global route. */
	plan = (typeof(plan)){.call = VERBS_CALLS, .is_ib = true};
	verbs_try(&library, "mlx5_0", 60000, &report);
	assert_int_equal(report.gid_index, -1);
	plan.needs_grh = true;
	verbs_try(&library, "mlx5_0", 60000, &report);
	assert_int_equal(report.gid_index, 2);
	plan.lacks_gids = true;
	finds(&pod, true, "error GidTableEmpty ENODATA");
}

TEST(huge_pages_of_the_container)
{
	static const struct {
		struct verbs_result result;
		const char *want, *seen;
	} rows[] = {
		{{.outcome = VERBS_NOT_TRIED}, "VerbsWork", "64 MiB, no huge page is free;"},
		{{.outcome = VERBS_DONE}, "VerbsWork", "64 MiB, a huge page;"},
		{{VERBS_FAILED, EFAULT}, "NoHugePages", "a huge page fails: Bad address"},
		{{VERBS_FAILED, EIO}, "VerbsFailed", "a huge page fails: Input/output error"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *findings = json_array();
		struct verbs_report report = {.calls = {[VERBS_REG_LARGE] = {.outcome = VERBS_DONE},
							[VERBS_REG_HUGE] = rows[i].result,
							[VERBS_POLL] = {.outcome = VERBS_DONE}}};
		const json_t *first = NULL;

		verbs_findings_add(findings, &pod, "mlx5_0", true, &report);
		first = json_array_get(findings, 0);
		assert_string_equal(json_str_at(first, "reason"), rows[i].want);
		assert_non_null(strstr(json_str_at(first, "seen"), rows[i].seen));
	}
}

TEST(each_failure_has_its_cause)
{
	static const struct verbs_place small = {.memlock = 65536, .has_devices = true},
					may_lock = {.memlock = 65536, .may_lock = true};
	static const struct {
		typeof(plan) plan;
		const struct verbs_place *place;
		bool lacks_file;
		const char *want;
	} rows[] = {
		{{.call = VERBS_LIST, .sys = ENODEV}, &pod, true, "error RdmaFilesMissing ENODEV"},
		{{.call = VERBS_LIST, .sys = ENODEV},
		 &pod,
		 false,
		 "error VerbsProviderMissing ENODEV"},
		{{.call = VERBS_OPEN, .sys = EPERM}, &pod, false, "error VerbsNotAllowed EPERM"},
		/* In a container, which has no /dev/char. */
		{{.call = VERBS_OPEN, .sys = ENOENT, .file = EPERM},
		 &pod,
		 false,
		 "error VerbsNotAllowed EPERM"},
		{{.call = VERBS_OPEN, .sys = EACCES}, &pod, false, "error VerbsNotAllowed EACCES"},
		{{.call = VERBS_OPEN, .sys = EAGAIN}, &pod, false, "error VerbsFailed EAGAIN"},
		{{.call = VERBS_PORT, .sys = EIO}, &pod, false, "error VerbsFailed EIO"},
		{{.call = VERBS_PD, .sys = ENOSPC}, &pod, false, "error VerbsFailed ENOSPC"},
		{{.call = VERBS_REG_SMALL, .sys = ENOMEM},
		 &small,
		 false,
		 "error MemlockLow ENOMEM"},
		{{.call = VERBS_REG_LARGE, .sys = ENOMEM},
		 &small,
		 false,
		 "error MemlockLow ENOMEM"},
		{{.call = VERBS_REG_LARGE, .sys = ENOMEM},
		 &may_lock,
		 false,
		 "error VerbsFailed ENOMEM"},
		{{.call = VERBS_REG_LARGE, .signal = SIGKILL}, &pod, false, "error VerbsFailed -"},
		{{.call = VERBS_REG_DMABUF, .sys = EOPNOTSUPP, .has_gpu = true},
		 &pod,
		 false,
		 "warning DmaBufMissing EOPNOTSUPP; info VerbsWork -"},
		{{.call = VERBS_CQ, .sys = ENOMEM}, &small, false, "error MemlockLow ENOMEM"},
		{{.call = VERBS_QP, .sys = EOPNOTSUPP},
		 &pod,
		 false,
		 "warning VerbsFailed EOPNOTSUPP"},
		{{.call = VERBS_CALLS, .is_ib = true, .lacks_gids = true},
		 &pod,
		 false,
		 "info VerbsWork -"},
		{{.call = VERBS_CALLS, .is_down = true},
		 &pod,
		 false,
		 "error RdmaLinkDown ENETDOWN"},
		{{.call = VERBS_CALLS, .lacks_gids = true},
		 &pod,
		 false,
		 "error GidTableEmpty ENODATA"},
		{{.call = VERBS_CONNECT, .sys = ENODEV}, &pod, false, "error GidNotUsable ENODEV"},
		{{.call = VERBS_POLL, .sys = EIO}, &pod, false, "error GidNotUsable EIO"},
		{{.call = VERBS_OPEN, .signal = SIGSEGV}, &pod, false, "error VerbsFailed -"},
		{{.call = VERBS_OPEN, .hangs = true}, &pod, false, "error VerbsHung -"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		plan = rows[i].plan;
		finds(rows[i].place, !rows[i].lacks_file, rows[i].want);
	}
}

TEST(what_is_not_here_has_its_cause)
{
	static const struct verbs_place empty = {0},
					away = {.rdma_mode = "exclusive", .has_files = true};
	static const struct {
		const struct verbs_place *place;
		const char *device, *want;
	} rows[] = {
		{&empty, NULL, "RdmaFilesMissing"}, {&empty, "mlx5_0", "RdmaFilesMissing"},
		{&away, NULL, "RdmaModeDiffers"},   {&pod, "mlx5_9", "RdmaModeDiffers"},
		{&pod, NULL, "RdmaFilesMissing"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *findings = json_array();

		verbs_findings_none(findings, rows[i].place, rows[i].device);
		assert_int_equal(json_array_size(findings), 1);
		assert_string_equal(json_str_at(json_array_get(findings, 0), "reason"),
				    rows[i].want);
	}
}

TEST(a_library_that_is_not_there)
{
	struct verbs_library found;
	struct err err = {0};

	assert_int_equal(verbs_library_load("libnone.so.1", &found, &err), -1);
	assert_string_equal(err.reason, "VerbsLibraryMissing");
	assert_int_equal(verbs_library_load("libc.so.6", &found, &err), -1);
	assert_string_equal(err.reason, "VerbsLibraryMissing");
}
