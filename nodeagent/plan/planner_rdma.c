// SPDX-License-Identifier: Apache-2.0
/*
 * Whether RDMA devices belong to network namespaces: the mode of the RDMA subsystem, now and from
 * the next boot on (drivers/infiniband/core/device.c, rdma_compatdev_set()).
 *
 * The kernel changes it only while there is no other network namespace, that is, no pod. So it is
 * tried first; refused, our file for the next boot is written and a reboot asked for. The file
 * tells which boot wrote it: one that has had its chance and did not bring the mode is a problem,
 * never another reboot. Who reboots, and how often, is in planner_boots.c.
 */
#include "nodeagent/plan/planner_internal.h"

struct modes {
	const char *wanted;
	const char *now;  /* NULL: the kernel does not say */
	const char *next; /* at the next boot */
	const char *own;  /* what our file says; NULL: there is none */
	bool own_is_new;  /* since this boot */
	bool is_refused;  /* the kernel did not change it while running */
	const json_t *next_boot;
};

static json_t *mode_step(const char *name, const char *mode)
{
	return json_pack("{s:s, s:s}", "step", name, "mode", mode);
}

/* wanted: NULL when nobody wants one. */
static void read_modes(const struct planning *p, const char *wanted, struct modes *ret)
{
	const json_t *rdma = json_at(p->in->observed, "rdma");
	const json_t *next = json_at(rdma, "netnsModeNextBoot");
	json_auto_t *step = wanted ? mode_step("set-rdma-netns-mode", wanted) : NULL;

	*ret = (struct modes){
		.wanted = wanted,
		.now = json_str_at(rdma, "netnsMode"),
		.next = json_str_or(json_at(next, "mode"), "shared"),
		.own = json_str_at(next, "own"),
		.own_is_new = json_is_true(json_at(next, "ownSinceBoot")),
		.is_refused = step && steps_is_refused(p, step),
		.next_boot = next,
	};
}

/* Ours is written, and still something else decides. */
static void say_overruled(struct planning *p, const struct modes *m)
{
	const char *source = json_str_at(m->next_boot, "source");
	const char *cure = "remove the option netns_mode from that file";

	if (str_eq(source, "command-line"))
		cure = "take ib_core.netns_mode off the kernel's command line";
	steps_problem(p, NULL, "NextBootOverruled",
		      "rdmaMode %s: /" HOST_NEXT_BOOT_FILE " says so, but " QUOTE " says " QUOTE
		      " for the next boot: %s",
		      m->wanted, json_str_or(json_at(m->next_boot, "file"), "the kernel's default"),
		      m->next, cure);
}

static void say_not_taken(struct planning *p, const struct modes *m)
{
	steps_problem(p, NULL, "RdmaModeNotTaken",
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
	auto_free char *what =
		command ? str_printf(QUOTE " has a command of its own for loading ib_core "
					   "(install): remove it",
				     command)
			: str_printf(QUOTE " says %s, so something loads ib_core with another "
					   "mode: make the initramfs anew (update-initramfs -u, "
					   "dracut -f)",
				     file, m->wanted);

	boots_say_in_vain(p, boot, "rdmaMode is still " QUOTE ", wanted %s; %s", m->now, m->wanted,
			  what);
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
		steps_problem(
			p, NULL, "RdmaUnavailable",
			"rdmaMode is wanted, but this kernel does not tell the mode of its RDMA "
			"subsystem: Linux 5.2 or newer is needed");
}

static void plan_wanted(struct planning *p, const struct modes *m)
{
	bool is_right = str_eq(m->now, m->wanted), is_own = str_eq(m->own, m->wanted);
	size_t before = json_array_size(p->steps);
	const json_t *in_vain;

	if (!is_right)
		p->boot_cause =
			str_eq(m->wanted, "exclusive") ? "rdma-mode-exclusive" : "rdma-mode-shared";
	in_vain = boots_in_vain(p);

	if (m->now && !is_right)
		(void)planner_add(p, NULL, NULL, mode_step("set-rdma-netns-mode", m->wanted),
				  "rdmaMode is " QUOTE ", wanted %s", m->now, m->wanted);
	if (!is_own && (!str_eq(m->next, m->wanted) || (!is_right && m->is_refused)))
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
	else if (m->now && !is_right && is_own && in_vain && (m->own_is_new || m->is_refused))
		say_in_vain(p, m, in_vain);
	else if (m->now && !is_right && is_own && (m->own_is_new || boots_again(p)))
		say_reboot(p, m);
	else if (m->now && !is_right && is_own && m->is_refused)
		say_not_taken(p, m);
}

/*
 * The node is not as its own files would have it, and nobody waits for that. It is announced, lest
 * the next boot, whenever it comes, be a surprise for pods.
 */
static void announce_next_boot(struct planning *p, const struct modes *m)
{
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

/*
 * Nobody wants a mode: without our file the node decides by itself again. The running mode goes
 * back with it when the kernel lets it; when not, the next boot brings it, and nobody has to wait
 * for that. The file goes by its name: also when it is not known any more how the node was found.
 */
static void plan_unwanted(struct planning *p, const struct modes *m)
{
	const char *found = json_str_at(p->found, "rdma", "netnsMode");
	bool back = m->own;

	if (found && m->now && !str_eq(found, m->now))
		back |= planner_add(p, NULL, NULL, mode_step("set-rdma-netns-mode", found),
				    "nobody wants an rdmaMode any more, and it was " QUOTE, found);
	if (m->own)
		(void)planner_add(p, NULL, NULL,
				  json_pack("{s:s}", "step", "remove-rdma-next-boot"),
				  "nobody wants an rdmaMode any more");
	if (back)
		return;
	(void)json_object_del(p->found, "rdma");
	announce_next_boot(p, m);
}

void plan_rdma_mode(struct planning *p, const char *mode)
{
	struct modes m;

	read_modes(p, mode, &m);
	if (mode)
		plan_wanted(p, &m);
	else
		plan_unwanted(p, &m);
}
