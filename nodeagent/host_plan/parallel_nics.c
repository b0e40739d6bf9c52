// SPDX-License-Identifier: Apache-2.0
/*
 * The steps of a lane are a list through `next`; a step of the node is a lane of its own. `open`
 * ends what may run now: the first step of the node that is not done. agent_reconcile.c makes one
 * for each plan and asks it for the next step whenever one has ended.
 */
#include "nodeagent/host_plan/parallel_nics.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/observed.h"

struct step {
	size_t lane, next; /* next: PARALLEL_NICS_NONE behind the last one of the lane */
	bool is_numbering; /* RDMA devices arrive with it */
	bool is_done;
};

struct lane {
	const char *card; /* the address of its first function that was met; NULL: the node */
	size_t first,
		last; /* first: the one that runs or comes next; PARALLEL_NICS_NONE: all are done */
	bool is_running;
};

struct parallel_nics {
	const json_t *entries;
	bool in_order;
	struct step *steps;
	size_t n_steps;
	struct lane *lanes;
	size_t n_lanes;
	size_t running;
	size_t done;      /* all before this one are done */
	size_t numbering; /* no step before this one is left with which RDMA devices arrive */
	size_t open;
};

static const char *pf_of(const struct parallel_nics *lanes, size_t index)
{
	return json_str_at(json_array_get(lanes->entries, index), "pf");
}

/* What is behind the dot is the port. */
static bool is_card(const char *card, const char *pf)
{
	return card && strcspn(card, ".") == strcspn(pf, ".") &&
	       strncmp(card, pf, strcspn(pf, ".")) == 0;
}

static size_t lane_for(struct parallel_nics *lanes, const char *pf)
{
	size_t i = 0;

	while (i < lanes->n_lanes && !(pf && is_card(lanes->lanes[i].card, pf)))
		i++;
	if (i == lanes->n_lanes)
		lanes->lanes[lanes->n_lanes++] = (struct lane){
			.card = pf, .first = PARALLEL_NICS_NONE, .last = PARALLEL_NICS_NONE};
	return i;
}

/* A driver of the kernel that starts, until what it brings is there; and a PF that starts again. */
static bool is_numbering(const json_t *step)
{
	const char *name = json_str_at(step, "step"), *driver = json_str_at(step, "driver");

	if (str_eq(name, "probe-driver"))
		return !driver || !observed_is_userspace_driver(driver);
	return str_eq(name, "wait-vf") || str_eq(name, "set-eswitch");
}

/* After a step was done. */
static void look_ahead(struct parallel_nics *lanes)
{
	while (lanes->done < lanes->n_steps && lanes->steps[lanes->done].is_done)
		lanes->done++;
	while (lanes->numbering < lanes->n_steps && (lanes->steps[lanes->numbering].is_done ||
						     !lanes->steps[lanes->numbering].is_numbering))
		lanes->numbering++;
	while (lanes->open < lanes->n_steps &&
	       (pf_of(lanes, lanes->open) || lanes->steps[lanes->open].is_done))
		lanes->open++;
}

struct parallel_nics *parallel_nics_new(const json_t *steps, bool in_order)
{
	struct parallel_nics *lanes = mem_new(struct parallel_nics);

	lanes->entries = steps;
	lanes->in_order = in_order;
	lanes->n_steps = json_array_size(steps);
	lanes->steps = mem_calloc(lanes->n_steps + 1, sizeof(*lanes->steps));
	lanes->lanes = mem_calloc(lanes->n_steps + 1, sizeof(*lanes->lanes));
	for (size_t i = 0; i < lanes->n_steps; i++) {
		const json_t *step = json_at(json_array_get(steps, i), "step");
		size_t number = lane_for(lanes, pf_of(lanes, i));
		struct lane *lane = &lanes->lanes[number];

		lanes->steps[i] = (struct step){.lane = number,
						.next = PARALLEL_NICS_NONE,
						.is_numbering = is_numbering(step)};
		if (lane->last == PARALLEL_NICS_NONE)
			lane->first = i;
		else
			lanes->steps[lane->last].next = i;
		lane->last = i;
	}
	look_ahead(lanes);
	return lanes;
}

void parallel_nics_free(struct parallel_nics *lanes)
{
	if (!lanes)
		return;
	mem_free(lanes->steps);
	mem_free(lanes->lanes);
	mem_free(lanes);
}

static void end_step(struct parallel_nics *lanes, size_t index)
{
	struct step *step = &lanes->steps[index];

	assert(!step->is_done);
	step->is_done = true;
	lanes->lanes[step->lane].first = step->next;
	look_ahead(lanes);
}

static bool may_begin(const struct parallel_nics *lanes, size_t index)
{
	if (!pf_of(lanes, index))
		return index == lanes->done;
	return index < lanes->open &&
	       !(lanes->in_order && lanes->steps[index].is_numbering && index != lanes->numbering);
}

size_t parallel_nics_next(struct parallel_nics *lanes, bool (*may)(const json_t *entry, void *arg),
			  void *arg)
{
	assert(may);
	/* First of all: what is passed over may be what another lane waits for. */
	for (size_t i = 0; i < lanes->n_lanes; i++) {
		const struct lane *lane = &lanes->lanes[i];

		while (!lane->is_running && lane->first != PARALLEL_NICS_NONE &&
		       !may(json_array_get(lanes->entries, lane->first), arg))
			end_step(lanes, lane->first);
	}
	for (size_t i = 0; i < lanes->n_lanes; i++) {
		const struct lane *lane = &lanes->lanes[i];

		if (!lane->is_running && lane->first != PARALLEL_NICS_NONE &&
		    may_begin(lanes, lane->first))
			return lane->first;
	}
	return PARALLEL_NICS_NONE;
}

void parallel_nics_begin(struct parallel_nics *lanes, size_t index)
{
	struct lane *lane;

	assert(index < lanes->n_steps);
	lane = &lanes->lanes[lanes->steps[index].lane];
	assert(!lane->is_running && lane->first == index);
	lane->is_running = true;
	lanes->running++;
}

void parallel_nics_done(struct parallel_nics *lanes, size_t index)
{
	struct lane *lane;

	assert(index < lanes->n_steps);
	lane = &lanes->lanes[lanes->steps[index].lane];
	assert(lane->is_running && lane->first == index);
	assert(lanes->running > 0);
	lane->is_running = false;
	lanes->running--;
	end_step(lanes, index);
}

size_t parallel_nics_running(const struct parallel_nics *lanes)
{
	return lanes->running;
}
