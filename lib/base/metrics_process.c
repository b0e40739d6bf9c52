// SPDX-License-Identifier: Apache-2.0
/*
 * The process about itself, from /proc/self (proc(5)), under the names that Prometheus' own clients
 * use.
 */
#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/clock.h"
#include "lib/base/metrics.h"
#include "lib/base/own_fd.h"

static struct metric *gauge(struct metrics *r, const char *name, const char *help)
{
	return metric_gauge(r, name, help, "");
}

static struct metric *resident_bytes(struct metrics *r)
{
	return gauge(r, "process_resident_memory_bytes", "Resident memory size in bytes.");
}

static struct metric *virtual_bytes(struct metrics *r)
{
	return gauge(r, "process_virtual_memory_bytes", "Virtual memory size in bytes.");
}

static struct metric *cpu_seconds(struct metrics *r)
{
	return metric_counter(r, "process_cpu_seconds_total",
			      "User and system CPU time spent in seconds.", "");
}

static struct metric *open_fds(struct metrics *r)
{
	return gauge(r, "process_open_fds", "Number of open file descriptors.");
}

static struct metric *max_fds(struct metrics *r)
{
	return gauge(r, "process_max_fds", "Maximum number of open file descriptors.");
}

static struct metric *start_time(struct metrics *r)
{
	return gauge(r, "process_start_time_seconds",
		     "Start time of the process since the Unix epoch in seconds.");
}

/* Read a small file of /proc whole, NUL-terminated; false when it cannot be read. */
static bool read_proc(const char *path, char *buf, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, buf, size - 1);
	if (len <= 0)
		return false;
	buf[len] = '\0';
	return true;
}

static void collect_stat(struct metrics *r)
{
	double ticks = (double)sysconf(_SC_CLK_TCK), up_s;
	unsigned long long utime, stime, start;
	char buf[1024];
	const char *rest;

	if (!read_proc("/proc/self/stat", buf, sizeof(buf)))
		return;
	rest = strrchr(buf, ')'); /* the name before it may hold anything */
	if (!rest || sscanf(rest + 1,
			    " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d "
			    "%*d %*d %*d %llu",
			    &utime, &stime, &start) != 3)
		return;
	metric_set(cpu_seconds(r), (double)(utime + stime) / ticks);
	if (metric_get(start_time(r)) > 0)
		return; /* taken once, so that corrections of the clock do not show */
	up_s = (double)clock_ms() / 1e3 - (double)start / ticks; /* both since boot */
	metric_set(start_time(r), (double)clock_wall_us() / 1e6 - up_s);
}

static void collect_process(void *arg)
{
	double page;
	unsigned long long total;
	unsigned long long resident;
	char buf[256];

	collect_stat(arg);
	page = (double)sysconf(_SC_PAGESIZE);
	if (read_proc("/proc/self/statm", buf, sizeof(buf)) &&
	    sscanf(buf, "%llu %llu", &total, &resident) == 2) {
		metric_set(virtual_bytes(arg), (double)total * page);
		metric_set(resident_bytes(arg), (double)resident * page);
	}
	auto_closedir DIR *dir = opendir("/proc/self/fd");
	struct rlimit limit;
	size_t n = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metric_set(max_fds(arg),
			   limit.rlim_cur == RLIM_INFINITY ? INFINITY : (double)limit.rlim_cur);
	if (!dir)
		return;
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
		if (isdigit((unsigned char)e->d_name[0]))
			n++;
	metric_set(open_fds(arg), (double)(n - 1)); /* without the one we read the directory with */
}

void metrics_add_process(struct metrics *r)
{
	/* Registered now, for their place in the output. */
	resident_bytes(r);
	virtual_bytes(r);
	cpu_seconds(r);
	open_fds(r);
	max_fds(r);
	start_time(r);
	metrics_on_collect(r, collect_process, r);
}
