// SPDX-License-Identifier: Apache-2.0
/*
 * Capabilities (capabilities(7)): a table for each kind of process, and one function that keeps
 * what is in it and has the kernel confirm that. Called in children, by workers.c and sandbox.c.
 */
#include "nodeagent/process/privileges.h"

#include <cap-ng.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "lib/base/own.h"

/*
 * Not CAP_DAC_OVERRIDE: all that is written belongs to root. Not CAP_SYS_RAWIO: no step touches the
 * registers of a device.
 */
static const unsigned int hostd_needs[] = {
	CAP_NET_ADMIN,  /* rtnetlink, devlink and NETLINK_RDMA requests that change something */
	CAP_SYS_ADMIN,  /* setns(2) into network namespaces, to see which VFs are there */
	CAP_SYS_CHROOT, /* the host's own modprobe runs in the host's root */
	CAP_SYS_MODULE, /* load-module */
	CAP_SYS_PTRACE, /* /proc/PID/ns and /proc/PID/fd of others: who holds a VF */
	CAP_DAC_READ_SEARCH, /* the same of processes that are not root's, such as QEMU */
};

static const unsigned int meter_needs[] = {
	CAP_SYS_ADMIN,       /* setns(2) into pods */
	CAP_SYS_PTRACE,      /* /proc/PID/ns of others: where namespaces are that have no mount */
	CAP_DAC_READ_SEARCH, /* the same of processes that are not root's */
};

static const unsigned int cni_needs[] = {
	CAP_NET_ADMIN,       /* links, addresses, routes, rules, in pods and on the node */
	CAP_NET_RAW,         /* ARP and neighbour discovery: is the address another host's? */
	CAP_SYS_ADMIN,       /* setns(2) into pods */
	CAP_SYS_CHROOT,      /* other IPAM plugins run in the host's root */
	CAP_SYS_PTRACE,      /* the host's own view of its mounts, below /proc/1/root */
	CAP_DAC_READ_SEARCH, /* files of plugins that are not root's */
	CAP_MKNOD,           /* files of RDMA devices, for containers */
};

/* The supervisor hands those of workers on, and starts processes of another user. */
static const unsigned int supervisor_needs[] = {
	CAP_NET_ADMIN,  CAP_SYS_ADMIN,  CAP_SYS_CHROOT,
	CAP_SYS_MODULE, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH,
	CAP_NET_RAW,    CAP_MKNOD,      CAP_SETUID, /* agent and kubeletd become another user */
	CAP_SETGID,                                 /* and leave root's groups */
	CAP_SETPCAP, /* what they, and workers, can never have again */
	CAP_KILL,    /* they are another user's: to end them, also by PR_SET_PDEATHSIG */
};

static bool is_among(unsigned int capability, const unsigned int *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == capability)
			return true;
	return false;
}

/* What the kernel says now, against what may be left. */
static int confirm(const unsigned int *keep, size_t n, struct err *err)
{
	if (capng_get_caps_process() < 0)
		return err_set(err, ERR_HOST, "PrivilegesNotDropped", "cannot read capabilities");
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++)
		if (!is_among(i, keep, n) && (capng_have_capability(CAPNG_PERMITTED, i) ||
					      capng_have_capability(CAPNG_INHERITABLE, i)))
			return err_set(err, ERR_HOST, "PrivilegesNotDropped",
				       "capability %s is still there", capng_capability_to_name(i));
	return 0;
}

static int limit(const unsigned int *keep, size_t n, struct err *err)
{
	unsigned int have[ARRAY_LEN(supervisor_needs)];
	size_t n_have = 0;

	if (capng_get_caps_process() < 0)
		return err_set(err, ERR_HOST, "PrivilegesNotDropped", "cannot read capabilities");
	for (size_t i = 0; i < n; i++)
		if (capng_have_capability(CAPNG_PERMITTED, keep[i]))
			have[n_have++] = keep[i];
	capng_clear(CAPNG_SELECT_ALL);
	for (size_t i = 0; i < n_have; i++)
		(void)capng_update(CAPNG_ADD,
				   CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, have[i]);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "PrivilegesNotDropped", "set no_new_privs");
	/*
	 * Without CAP_SETPCAP, in a container that has little to begin with, the bounding set stays
	 * as it is: with no_new_privs no program can draw from it.
	 */
	(void)capng_apply(CAPNG_SELECT_BOUNDS);
	if (capng_apply(CAPNG_SELECT_CAPS) < 0 || capng_apply(CAPNG_SELECT_AMBIENT) < 0)
		return err_set(err, ERR_HOST, "PrivilegesNotDropped",
			       "the kernel refuses to drop capabilities");
	return confirm(keep, n, err);
}

int privileges_limit_hostd(struct err *err)
{
	return limit(hostd_needs, ARRAY_LEN(hostd_needs), err);
}

int privileges_limit_meter(struct err *err)
{
	return limit(meter_needs, ARRAY_LEN(meter_needs), err);
}

int privileges_limit_cni_worker(struct err *err)
{
	return limit(cni_needs, ARRAY_LEN(cni_needs), err);
}

int privileges_limit_supervisor(struct err *err)
{
	return limit(supervisor_needs, ARRAY_LEN(supervisor_needs), err);
}

int privileges_drop_bounds(struct err *err)
{
	capng_clear(CAPNG_SELECT_BOUNDS);
	/* Without CAP_SETPCAP it stays: see limit(). */
	(void)capng_apply(CAPNG_SELECT_BOUNDS);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
		       ? err_sys(err, "PrivilegesNotDropped", "set no_new_privs")
		       : 0;
}

int privileges_raise_users(struct err *err)
{
	if (capng_get_caps_process() < 0 ||
	    capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_SETUID, CAP_SETGID, -1) < 0 ||
	    capng_apply(CAPNG_SELECT_CAPS) < 0)
		return err_set(err, ERR_HOST, "PrivilegesNotDropped",
			       "the kernel refuses to change users");
	return 0;
}

int privileges_drop_all(struct err *err)
{
	return limit(NULL, 0, err);
}
