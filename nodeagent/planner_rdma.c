/*
 * Whether RDMA devices belong to network namespaces: the mode of the RDMA subsystem, now and from the next boot on
 * (node-kernel 3.6).
 *
 * The kernel changes it only while there is no other network namespace, that is, no pod. So it is tried first; refused, our
 * file for the next boot is written and a reboot asked for. The file tells which boot wrote it: one that has had its
 * chance and did not bring the mode is a problem, never another reboot.
 */
#include "nodeagent/planner_parts.h"

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

static void read_modes(const struct planning *p, const char *wanted, struct modes *ret)
{
	const json_t *rdma = json_at(p->in->observed, "rdma");
	const json_t *next = json_at(rdma, "netnsModeNextBoot");
	json_auto_t *step = mode_step("set-rdma-netns-mode", wanted);

	*ret = (struct modes){
		.wanted = wanted,
		.now = json_str_at(rdma, "netnsMode"),
		.next = json_str_or(json_at(next, "mode"), "shared"),
		.own = json_str_at(next, "own"),
		.own_is_new = json_is_true(json_at(next, "ownSinceBoot")),
		.is_refused = plan_is_refused(p, step),
		.next_boot = next,
	};
}

static const char *cure_of(const char *source)
{
	if (str_eq(source, "command-line"))
		return "take ib_core.netns_mode off the kernel's command line";
	if (str_eq(source, "initramfs"))
		return "make the initramfs anew (update-initramfs -u, dracut -f)";
	return "remove the option netns_mode from that file";
}

/* Ours is written, and still something else decides. */
static void say_overruled(struct planning *p, const struct modes *m)
{
	plan_problem(p, NULL, "NextBootOverruled",
		     "rdmaMode %s: /" HOST_NEXT_BOOT_FILE " says so, but " QUOTE " says " QUOTE
		     " for the next boot: %s",
		     m->wanted, json_str_or(json_at(m->next_boot, "file"), "the kernel's default"),
		     m->next, cure_of(json_str_at(m->next_boot, "source")));
}

static void say_not_taken(struct planning *p, const struct modes *m)
{
	plan_problem(p, NULL, "RdmaModeNotTaken",
		     "rdmaMode is " QUOTE " after the reboot, although " QUOTE
		     " says %s: something loads ib_core with another mode; see whether the "
		     "initramfs does, make it anew (update-initramfs -u, dracut -f) and reboot",
		     m->now, json_str_or(json_at(m->next_boot, "file"), HOST_NEXT_BOOT_FILE),
		     m->wanted);
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

static void remember(struct planning *p, const struct modes *m)
{
	json_t *rdma = json_object_get(p->found, "rdma");

	if (json_is_object(rdma))
		return;
	rdma = json_object();
	json_put_str(rdma, "netnsMode", m->now);
	json_put(p->found, "rdma", rdma);
}

/* Not loaded, or a kernel before 5.2. */
static void plan_without_rdma(struct planning *p)
{
	if (!plan_has_module(p, "ib_core"))
		(void)plan_step(p, NULL, NULL,
				json_pack("{s:s, s:s}", "step", "load-module", "module", "ib_core"),
				"rdmaMode is wanted, and the RDMA subsystem is not loaded");
	else
		plan_problem(
			p, NULL, "RdmaUnavailable",
			"rdmaMode is wanted, but this kernel does not tell the mode of its RDMA "
			"subsystem: Linux 5.2 or newer is needed");
}

static void plan_wanted(struct planning *p, const struct modes *m)
{
	bool is_right = str_eq(m->now, m->wanted), is_own = str_eq(m->own, m->wanted);
	size_t before = json_array_size(p->steps);

	if (m->now && !is_right)
		(void)plan_step(p, NULL, NULL, mode_step("set-rdma-netns-mode", m->wanted),
				"rdmaMode is " QUOTE ", wanted %s", m->now, m->wanted);
	if (!is_own && (!str_eq(m->next, m->wanted) || (!is_right && m->is_refused)))
		(void)plan_step(p, NULL, NULL, mode_step("write-rdma-next-boot", m->wanted),
				"rdmaMode at the next boot is " QUOTE ", wanted %s", m->next,
				m->wanted);
	/* Loaded with the mode that was just written. */
	if (!m->now)
		plan_without_rdma(p);
	if (json_array_size(p->steps) > before)
		remember(p, m);

	if (is_own && !str_eq(m->next, m->wanted))
		say_overruled(p, m);
	else if (m->now && !is_right && is_own && m->own_is_new)
		say_reboot(p, m);
	else if (m->now && !is_right && is_own && m->is_refused)
		say_not_taken(p, m);
}

/*
 * Nobody wants a mode: without our file the node decides by itself again. The running mode goes back with it when the
 * kernel lets it; when not, the next boot brings it, and nobody has to wait for that. The file goes by its name: also when
 * it is not known any more how the node was found.
 */
static void plan_unwanted(struct planning *p)
{
	const char *found = json_str_at(p->found, "rdma", "netnsMode");
	const char *now = json_str_at(p->in->observed, "rdma", "netnsMode");
	bool own = json_at(p->in->observed, "rdma", "netnsModeNextBoot", "own"), back = own;

	if (found && now && !str_eq(found, now))
		back |= plan_step(p, NULL, NULL, mode_step("set-rdma-netns-mode", found),
				  "nobody wants an rdmaMode any more, and it was " QUOTE, found);
	if (own)
		(void)plan_step(p, NULL, NULL, json_pack("{s:s}", "step", "remove-rdma-next-boot"),
				"nobody wants an rdmaMode any more");
	if (!back)
		(void)json_object_del(p->found, "rdma");
}

void plan_rdma_mode(struct planning *p, const char *mode)
{
	struct modes m;

	if (!mode) {
		plan_unwanted(p);
		return;
	}
	read_modes(p, mode, &m);
	plan_wanted(p, &m);
}
