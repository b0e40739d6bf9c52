// SPDX-License-Identifier: Apache-2.0
/*
 * The node itself: the mode of its RDMA subsystem, kernel modules, reboots.
 *
 * Whether RDMA devices belong to network namespaces is that mode, now and from the next boot on
 * (drivers/infiniband/core/device.c, rdma_compatdev_set()). The kernel changes it only while there
 * is no other network namespace, that is, no pod. So it is tried first; refused, our file for the
 * next boot is written and a reboot asked for. The file tells which boot wrote it: one that has had
 * its chance and did not bring the mode is a problem, never another reboot.
 *
 * A reboot that a plan wants ("reboot") is asked for in three steps, each seen to have worked
 * before the next: it is allowed for this very boot and cause, it is recorded on the host's disk,
 * and the record is in the NodeState's status. A record whose cause is no more is closed; one that
 * is open and of an earlier boot was in vain, and the same cause reboots no more until the cause
 * changes or a user wants to try again.
 */
#include "nodeagent/host_plan/planner_internal.h"

/* ---- records of reboots ---------------------------------------------------------------------- */

static const json_t *asked_boots(const struct planning *p)
{
	return json_at(p->in->observed, "boots", "asked");
}

static const char *this_boot(const struct planning *p)
{
	return json_str_or(json_at(p->in->observed, "boots", "id"), "");
}

static bool is_retried(const struct planning *p)
{
	return *this_boot(p) && str_eq(p->in->reboot_retry, this_boot(p));
}

static bool is_of_this_boot(const struct planning *p, const json_t *entry)
{
	return str_eq(json_str_at(entry, "bootID"), this_boot(p));
}

/* The record of p->boot_cause that is open; NULL: none. */
static const json_t *open_record(const struct planning *p)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (asked_boots(p), i, entry)
		if (str_eq(json_str_at(entry, "cause"), p->boot_cause) &&
		    !json_is_true(json_at(entry, "closed")))
			return entry;
	return NULL;
}

/* ---- mode of the RDMA subsystem -------------------------------------------------------------- */

struct modes {
	const char *wanted; /* NULL: none */
	const char *now;    /* NULL: the kernel does not say */
	const char *next;   /* at the next boot */
	const char *own;    /* what our file says; NULL: there is none */
	bool own_is_new;    /* since this boot */
	const json_t *next_boot;
};

static json_t *mode_step(const char *name, const char *mode)
{
	return json_pack("{s:s, s:s}", "step", name, "mode", mode);
}

/* Ours is written, and still something else decides. */
static void say_overruled(struct planning *p, const struct modes *m)
{
	const char *source = json_str_at(m->next_boot, "source");
	const char *cure = "remove the option netns_mode from that file";

	if (str_eq(source, "command-line"))
		cure = "take ib_core.netns_mode off the kernel's command line";
	planner_problem(p, NULL, "NextBootOverruled",
			"rdmaMode %s: /" HOST_NEXT_BOOT_FILE " says so, but " QUOTE " says " QUOTE
			" for the next boot: %s",
			m->wanted,
			json_str_or(json_at(m->next_boot, "file"), "the kernel's default"), m->next,
			cure);
}

static void say_not_taken(struct planning *p, const struct modes *m)
{
	planner_problem(p, NULL, "RdmaModeNotTaken",
			"rdmaMode is " QUOTE " after the reboot, although " QUOTE
			" says %s: something loads ib_core with another mode; see whether the "
			"initramfs does, make it anew (update-initramfs -u, dracut -f) and reboot",
			m->now, json_str_or(json_at(m->next_boot, "file"), HOST_NEXT_BOOT_FILE),
			m->wanted);
}

/* We rebooted for it. */
static void say_in_vain(struct planning *p, const struct modes *m, const json_t *boot)
{
	const char *file = json_str_or(json_at(m->next_boot, "file"), HOST_NEXT_BOOT_FILE);
	const char *command = json_str_at(m->next_boot, "command");
	auto_free char *cure =
		command ? str_printf(QUOTE " has a command of its own for loading ib_core "
					   "(install): remove it",
				     command)
			: str_printf(QUOTE " says %s, so something loads ib_core with another "
					   "mode: make the initramfs anew (update-initramfs -u, "
					   "dracut -f)",
				     file, m->wanted);
	auto_free char *text =
		str_printf("rdmaMode is still " QUOTE ", wanted %s; %s", m->now, m->wanted, cure);

	planner_problem(p, NULL, "RebootDidNotHelp",
			"rebooted at %.40s: %s; then reboot by hand, or orbweaver drain retry",
			json_str_or(json_at(boot, "at"), "an unknown time"), text);
	p->in_vain = json_object();
	json_put_str(p->in_vain, "cause", p->boot_cause);
	json_put_str(p->in_vain, "message", text);
}

static void say_reboot(struct planning *p, const struct modes *m)
{
	p->reboot = json_object();
	json_put_str(p->reboot, "reason", "RdmaModeNextBoot");
	json_put(p->reboot, "message",
		 json_fmt("rdmaMode is " QUOTE " and %s from the next boot on, for the kernel does "
			  "not change it while pods or other network namespaces exist: drain and "
			  "reboot the node",
			  m->now, m->wanted));
}

/* Not loaded, or a kernel before 5.2. */
static void plan_without_rdma(struct planning *p)
{
	if (!has_module(p, "ib_core"))
		(void)planner_add(
			p, NULL, NULL,
			json_pack("{s:s, s:s}", "step", "load-module", "module", "ib_core"),
			"rdmaMode is wanted, and the RDMA subsystem is not loaded");
	else
		planner_problem(
			p, NULL, "RdmaUnavailable",
			"rdmaMode is wanted, but this kernel does not tell the mode of its RDMA "
			"subsystem: Linux 5.2 or newer is needed");
}

static void plan_wanted_mode(struct planning *p, const struct modes *m)
{
	json_auto_t *set = mode_step("set-rdma-netns-mode", m->wanted);
	bool is_right = str_eq(m->now, m->wanted), is_own = str_eq(m->own, m->wanted);
	size_t before = json_array_size(p->steps);
	const json_t *boot;
	bool is_under_way, is_refused;

	if (!is_right)
		p->boot_cause =
			str_eq(m->wanted, "exclusive") ? "rdma-mode-exclusive" : "rdma-mode-shared";
	/* Of a reboot for this cause; one that is neither under way nor tried again was in vain. */
	boot = open_record(p);
	is_under_way = is_retried(p) || (boot && is_of_this_boot(p, boot));

	if (m->now && !is_right)
		(void)planner_add(p, NULL, NULL, json_incref(set),
				  "rdmaMode is " QUOTE ", wanted %s", m->now, m->wanted);
	/* The kernel did not change it while running. */
	is_refused = planner_is_refused(p, set);
	if (!is_own && (!str_eq(m->next, m->wanted) || (!is_right && is_refused)))
		(void)planner_add(p, NULL, NULL, mode_step("write-rdma-next-boot", m->wanted),
				  "rdmaMode at the next boot is " QUOTE ", wanted %s", m->next,
				  m->wanted);
	/* Loaded with the mode that was just written. */
	if (!m->now)
		plan_without_rdma(p);
	/* How it was before the first step is kept. */
	if (json_array_size(p->steps) > before && !json_at(p->found, "rdma"))
		json_put_str(json_need_object(p->found, "rdma"), "netnsMode", m->now);

	if (is_own && !str_eq(m->next, m->wanted))
		say_overruled(p, m);
	else if (!m->now || is_right || !is_own)
		return;
	else if (boot && !is_under_way && (m->own_is_new || is_refused))
		say_in_vain(p, m, boot);
	else if (m->own_is_new || is_under_way)
		say_reboot(p, m);
	else if (is_refused)
		say_not_taken(p, m);
}

/*
 * No mode is wanted: without our file the node decides by itself again. The running mode goes back
 * with it when the kernel lets it; when not, the next boot brings it, and no policy has to wait for
 * that. The file goes by its name: also when it is not known any more how the node was found.
 */
static void plan_unwanted_mode(struct planning *p, const struct modes *m)
{
	const char *found = json_str_at(p->found, "rdma", "netnsMode");
	bool back = m->own;

	if (found && m->now && !str_eq(found, m->now) &&
	    planner_add(p, NULL, NULL, mode_step("set-rdma-netns-mode", found),
			"nobody wants an rdmaMode any more, and it was " QUOTE, found))
		back = true;
	if (m->own)
		(void)planner_add(p, NULL, NULL,
				  json_pack("{s:s}", "step", "remove-rdma-next-boot"),
				  "nobody wants an rdmaMode any more");
	if (back)
		return;
	(void)json_object_del(p->found, "rdma");
	/*
	 * The node is not as its own files would have it, and no policy waits for that. It is
	 * announced, lest the next boot, whenever it comes, be a surprise for pods.
	 */
	if (!m->now || str_eq(m->now, m->next))
		return;
	p->next_boot = json_object();
	json_put_str(p->next_boot, "reason", "RdmaModeAtNextBoot");
	json_put(p->next_boot, "message",
		 json_fmt("rdmaMode is " QUOTE " and becomes " QUOTE
			  " at the next boot, since nobody "
			  "wants one any more: to keep it, set rdmaMode: %s in a "
			  "SriovNetworkPoolConfig",
			  m->now, m->next, m->now));
}

/* ---- modules --------------------------------------------------------------------------------- */

static void need_module(struct planning *p, const char *module, const char *loaded, const char *why)
{
	if (!has_module(p, loaded))
		(void)planner_add(p, NULL, NULL,
				  json_pack("{s:s, s:s}", "step", "load-module", "module", module),
				  "%s", why);
}

/* Those that PFs need, before any of them. */
static void plan_modules(struct planning *p)
{
	bool vfio = false, rdma = false, mlx5 = false;

	for (size_t i = 0; i < p->n_pfs; i++) {
		const struct pf *pf = &p->pfs[i];

		for (size_t g = 0; pf->now.entry && g < pf->wanted.n_groups; g++) {
			const struct vf_group *group = &pf->wanted.groups[g];

			vfio |= group->is_vfio;
			rdma |= group->is_rdma;
			mlx5 |= group->is_rdma && str_eq(pf->now.driver, "mlx5_core");
		}
	}
	if (mlx5)
		need_module(p, "mlx5_ib", "mlx5_ib", "RDMA devices of mlx5 come with it");
	if (rdma) {
		need_module(p, "ib_uverbs", "ib_uverbs", "pods reach RDMA devices through it");
		need_module(p, "rdma_ucm", "rdma_ucm", "pods reach the RDMA CM through it");
	}
	if (vfio && !json_is_false(json_at(p->in->observed, "node", "iommu")))
		need_module(p, "vfio-pci", "vfio_pci", "VFs are to be bound to it");
}

void plan_node(struct planning *p, const char *rdma_mode)
{
	const json_t *rdma = json_at(p->in->observed, "rdma");
	const json_t *next = json_at(rdma, "netnsModeNextBoot");
	const struct modes m = {
		.wanted = rdma_mode,
		.now = json_str_at(rdma, "netnsMode"),
		.next = json_str_or(json_at(next, "mode"), "shared"),
		.own = json_str_at(next, "own"),
		.own_is_new = json_is_true(json_at(next, "ownSinceBoot")),
		.next_boot = next,
	};

	assert(!p->boot_cause && json_array_size(p->steps) == 0);
	if (rdma_mode)
		plan_wanted_mode(p, &m);
	else
		plan_unwanted_mode(p, &m);
	plan_modules(p);
}

/* ---- reboots --------------------------------------------------------------------------------- */

/* Causes that are no more, and one that is tried again. */
static void close_records(struct planning *p)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (asked_boots(p), i, entry) {
		const char *cause = json_str_at(entry, "cause");
		bool is_over = !str_eq(cause, p->boot_cause);

		if (json_is_true(json_at(entry, "closed")) ||
		    (!is_over && (is_of_this_boot(p, entry) || !is_retried(p))))
			continue;
		(void)planner_add(p, NULL, NULL,
				  json_pack("{s:s, s:s}", "step", "close-reboot", "cause",
					    cause ? cause : ""),
				  is_over ? "no boot is needed for it any more"
					  : "somebody wants to try once more");
	}
}

/* The API server has it as well, so that who looks there knows what goes on. */
static bool is_reported(const struct planning *p, const char *cause)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(p->in->boots_reported, "asked"), i, entry)
		if (str_eq(json_str_at(entry, "cause"), cause) && is_of_this_boot(p, entry))
			return true;
	return false;
}

static json_t *boot_step(const struct planning *p, const char *name, const char *cause)
{
	return json_pack("{s:s, s:s, s:s}", "step", name, "cause", cause, "boot", this_boot(p));
}

static void plan_next_boot_step(struct planning *p)
{
	const char *cause = p->boot_cause;
	const json_t *entry = open_record(p);
	auto_free char *allowed = str_printf("%s %s", this_boot(p), cause);

	assert(p->reboot && cause);
	if (json_is_true(json_at(entry, "overdue")))
		planner_problem(
			p, NULL, "RebootDidNotStart",
			"a reboot was asked for at %.40s, and this boot still runs: see what "
			"keeps the host from going down (its journal), or reset it",
			json_str_or(json_at(entry, "at"), "an unknown time"));
	/* What can be done without comes first. */
	if (!*this_boot(p) || !str_eq(p->in->reboot_allowed, allowed) ||
	    json_array_size(p->steps) > 0)
		return;
	if (!entry)
		(void)planner_add(p, NULL, NULL, boot_step(p, "record-reboot", cause),
				  "the node was emptied for a reboot");
	else if (is_reported(p, cause) && json_is_true(json_at(entry, "due")))
		(void)planner_add(p, NULL, NULL, boot_step(p, "reboot", cause),
				  "the node was emptied for a reboot, and that is recorded");
}

void plan_boots(struct planning *p)
{
	const char *unreadable = json_str_at(p->in->observed, "boots", "problem");
	json_int_t today = json_integer_value(json_at(p->in->observed, "boots", "today"));

	assert(p->boot_cause || !p->reboot);
	close_records(p);
	if (!p->reboot)
		return;
	json_put_str(p->reboot, "cause", p->boot_cause);
	if (today >= HOST_BOOTS_A_DAY && !open_record(p)) {
		planner_problem(p, NULL, "RebootsTooOften",
				QUOTE "; but this node was rebooted %lld times within a day, which "
				      "is the most: see why, and reboot it by hand, or wait",
				json_str_or(json_at(p->reboot, "message"), "a boot is needed"),
				(long long)today);
	} else if (unreadable) {
		planner_problem(p, NULL, "BootsUnreadable", QUOTE, unreadable);
	} else {
		plan_next_boot_step(p);
		return;
	}
	json_decref(p->reboot);
	p->reboot = NULL;
}
