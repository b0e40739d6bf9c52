// SPDX-License-Identifier: Apache-2.0
/* Which steps run side by side, and which never do. */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/parallel_nics.h"

#define A  "0000:3b:00.0"
#define A2 "0000:3b:00.1"
#define B  "0000:af:00.0"

OWN_DEFINE(struct parallel_nics, parallel_nics_free)
#define auto_parallel_nics auto_call(parallel_nics_free_p)

/* pf NULL: of the node. */
static void add(json_t *steps, const char *pf, const char *name)
{
	json_t *entry = json_pack("{s:{s:s}}", "step", "step", name);

	json_put_str(entry, "pf", pf);
	json_array_append_new(steps, entry);
}

static bool any(const json_t *entry, void *arg)
{
	return true;
}

static bool not_of(const json_t *entry, void *arg)
{
	return !str_eq(json_str_at(entry, "pf"), arg);
}

/* What begins until nothing more may; its index, a digit each. */
static const char *begin_all(struct parallel_nics *lanes, bool (*may)(const json_t *, void *),
			     void *arg)
{
	static char text[16];
	size_t index, n = 0;

	while (n < sizeof(text) - 1 &&
	       (index = parallel_nics_next(lanes, may, arg)) != PARALLEL_NICS_NONE) {
		parallel_nics_begin(lanes, index);
		text[n++] = (char)('0' + index);
	}
	text[n] = '\0';
	return text;
}

TEST(cards_run_side_by_side_and_the_ports_of_one_do_not)
{
	json_auto_t *steps = json_array();
	auto_parallel_nics struct parallel_nics *lanes = NULL;

	add(steps, A, "set-num-vfs");
	add(steps, A, "wait-vfs");
	add(steps, A2, "set-num-vfs");
	add(steps, B, "set-num-vfs");
	lanes = parallel_nics_new(steps, true);
	assert_string_equal(begin_all(lanes, any, NULL), "03");
	assert_int_equal(parallel_nics_running(lanes), 2);
	parallel_nics_done(lanes, 0);
	assert_string_equal(begin_all(lanes, any, NULL), "1");
	parallel_nics_done(lanes, 3);
	assert_string_equal(begin_all(lanes, any, NULL), "");
	parallel_nics_done(lanes, 1);
	assert_string_equal(begin_all(lanes, any, NULL), "2");
	parallel_nics_done(lanes, 2);
	assert_string_equal(begin_all(lanes, any, NULL), "");
	assert_int_equal(parallel_nics_running(lanes), 0);
}

TEST(a_step_of_the_node_is_alone_and_in_its_place)
{
	json_auto_t *steps = json_array();
	auto_parallel_nics struct parallel_nics *lanes = NULL;

	add(steps, A, "set-mtu");
	add(steps, B, "set-mtu");
	add(steps, NULL, "load-module");
	add(steps, NULL, "load-module");
	add(steps, B, "link-up");
	lanes = parallel_nics_new(steps, false);
	assert_string_equal(begin_all(lanes, any, NULL), "01");
	parallel_nics_done(lanes, 1);
	assert_string_equal(begin_all(lanes, any, NULL), "");
	parallel_nics_done(lanes, 0);
	assert_string_equal(begin_all(lanes, any, NULL), "2");
	parallel_nics_done(lanes, 2);
	assert_string_equal(begin_all(lanes, any, NULL), "3");
	parallel_nics_done(lanes, 3);
	assert_string_equal(begin_all(lanes, any, NULL), "4");
	parallel_nics_done(lanes, 4);
}

/* The kernel numbers RDMA devices as they arrive, and pods are told the numbers. */
TEST(drivers_start_in_the_order_of_the_plan)
{
	json_auto_t *steps = json_array();
	auto_parallel_nics struct parallel_nics *lanes = NULL;

	add(steps, A, "set-vf-mac");
	add(steps, A, "probe-driver");
	add(steps, A, "wait-vf");
	add(steps, B, "probe-driver");
	add(steps, B, "wait-vf");
	lanes = parallel_nics_new(steps, true);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(parallel_nics_next(lanes, any, NULL), i);
		parallel_nics_begin(lanes, i);
		assert_int_equal(parallel_nics_next(lanes, any, NULL), PARALLEL_NICS_NONE);
		parallel_nics_done(lanes, i);
	}
	parallel_nics_free(lanes);
	/* Nobody is told numbers. */
	lanes = parallel_nics_new(steps, false);
	assert_string_equal(begin_all(lanes, any, NULL), "03");
	parallel_nics_done(lanes, 3);
	assert_string_equal(begin_all(lanes, any, NULL), "4");
	parallel_nics_done(lanes, 4);
	parallel_nics_done(lanes, 0);
}

TEST(a_userspace_driver_numbers_nothing)
{
	json_auto_t *steps = json_array();
	auto_parallel_nics struct parallel_nics *lanes = NULL;

	add(steps, A, "probe-driver");
	add(steps, B, "probe-driver");
	json_put_str(json_at(json_array_get(steps, 1), "step"), "driver", "vfio-pci");
	lanes = parallel_nics_new(steps, true);
	assert_string_equal(begin_all(lanes, any, NULL), "01");
}

/* A PF that failed, or hangs, keeps nobody waiting. */
TEST(what_is_passed_over_holds_nobody_up)
{
	json_auto_t *steps = json_array();
	auto_parallel_nics struct parallel_nics *lanes = NULL;

	add(steps, B, "probe-driver");
	add(steps, A, "probe-driver");
	add(steps, A, "wait-vf");
	add(steps, B, "probe-driver");
	add(steps, NULL, "load-module");
	add(steps, B, "link-up");
	lanes = parallel_nics_new(steps, true);
	assert_string_equal(begin_all(lanes, any, NULL), "0");
	/* Its card is at work: the rest is passed over when that is done. */
	assert_string_equal(begin_all(lanes, not_of, (void *)B), "");
	parallel_nics_done(lanes, 0);
	assert_string_equal(begin_all(lanes, not_of, (void *)B), "1");
	parallel_nics_done(lanes, 1);
	assert_string_equal(begin_all(lanes, any, NULL), "2");
	parallel_nics_done(lanes, 2);
	assert_string_equal(begin_all(lanes, any, NULL), "4");
	parallel_nics_done(lanes, 4);
	/* For good, also behind the step of the node. */
	assert_int_equal(parallel_nics_next(lanes, any, NULL), PARALLEL_NICS_NONE);
}

TEST(no_steps_are_no_steps)
{
	auto_parallel_nics struct parallel_nics *lanes = parallel_nics_new(NULL, true);

	assert_int_equal(parallel_nics_next(lanes, any, NULL), PARALLEL_NICS_NONE);
	assert_int_equal(parallel_nics_running(lanes), 0);
}

/* Whatever the order of ends: every step runs once, after those of its card before it. */
TEST(every_plan_comes_to_its_end)
{
	static const char *const names[] = {"set-num-vfs", "probe-driver", "wait-vf", "set-mtu"};
	static const char *const pfs[] = {NULL, A, A2, B, "0000:d8:00.0"};
	unsigned int chance = 1;

	for (int round = 0; round < 2000; round++) {
		json_auto_t *steps = json_array();
		auto_parallel_nics struct parallel_nics *lanes = NULL;
		size_t n = 1 + (size_t)(round % 40), done = 0, running[8], n_running = 0;
		bool seen[40] = {false};

		for (size_t i = 0; i < n; i++) {
			chance = chance * 1103515245 + 12345;
			/* Few are the node's. */
			add(steps, pfs[(chance >> 8) % 17 ? 1 + (chance >> 16) % 4 : 0],
			    names[(chance >> 20) % 4]);
		}
		lanes = parallel_nics_new(steps, round % 2);
		while (done < n) {
			size_t index = parallel_nics_next(lanes, any, NULL), at;

			if (index != PARALLEL_NICS_NONE && n_running < ARRAY_LEN(running)) {
				assert_false(seen[index]);
				seen[index] = true;
				parallel_nics_begin(lanes, index);
				running[n_running++] = index;
				continue;
			}
			assert_true(n_running > 0);
			chance = chance * 1103515245 + 12345;
			at = (chance >> 16) % n_running;
			parallel_nics_done(lanes, running[at]);
			running[at] = running[--n_running];
			done++;
		}
		assert_int_equal(parallel_nics_next(lanes, any, NULL), PARALLEL_NICS_NONE);
	}
}
