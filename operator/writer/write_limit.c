// SPDX-License-Identifier: Apache-2.0
/*
 * schedule.c reports answers, refusals and users' changes, and asks for room. Answers are
 * collected in groups by kind and verb; each group's mean moves the window, and a crowd of changes
 * overrides it.
 */
#include "operator/writer/write_limit.h"

#include <assert.h>

#include "lib/base/str.h"

void write_limit_init(struct write_limit *pace, unsigned int max)
{
	assert(max > 0);
	*pace = (struct write_limit){.max = max,
				     .window = max < WRITE_LIMIT_FIRST ? max : WRITE_LIMIT_FIRST};
}

static struct write_limit_sort *sort_of(struct write_limit *pace, const char *kind,
					const char *verb)
{
	struct write_limit_sort *sort = NULL;

	for (size_t i = 0; i < pace->n_sorts; i++)
		if (str_eq(pace->sorts[i].kind, kind) && str_eq(pace->sorts[i].verb, verb))
			return &pace->sorts[i];
	if (pace->n_sorts == WRITE_LIMIT_SORTS_MAX)
		return NULL;
	sort = &pace->sorts[pace->n_sorts++];
	*sort = (struct write_limit_sort){.kind = kind, .verb = verb};
	return sort;
}

/* The least mean of lately, with this one. */
static int64_t remember_least(struct write_limit_sort *sort, int64_t mean_us, int64_t now_ms)
{
	if (now_ms - sort->period_ms >= WRITE_LIMIT_MEMORY_MS) {
		sort->least_us[1] = now_ms - sort->period_ms < 2 * WRITE_LIMIT_MEMORY_MS
					    ? sort->least_us[0]
					    : 0;
		sort->least_us[0] = 0;
		sort->period_ms = now_ms;
	}
	if (sort->least_us[0] == 0 || mean_us < sort->least_us[0])
		sort->least_us[0] = mean_us;
	if (sort->least_us[1] > 0 && sort->least_us[1] < sort->least_us[0])
		return sort->least_us[1];
	return sort->least_us[0];
}

static unsigned int size_of(unsigned int under_way)
{
	unsigned int size = 0;

	while (size < WRITE_LIMIT_SIZES - 1 && under_way >> (size + 1))
		size++;
	return size;
}

/*
 * What a group takes with so many under way while no other client loads the server, as far as is
 * known of the last minutes. With fewer it takes no longer.
 */
static double usual_us(const struct write_limit_sort *sort, unsigned int size, int64_t now_ms)
{
	for (; size < WRITE_LIMIT_SIZES; size++)
		if (sort->usual[size].us > 0 &&
		    now_ms - sort->usual[size].at_ms < WRITE_LIMIT_MEMORY_MS)
			return sort->usual[size].us;
	return 0;
}

/* Beyond this it is others who make it slow. */
static double loaded_us(double usual)
{
	return usual * WRITE_LIMIT_OTHERS + WRITE_LIMIT_SLACK_US;
}

/* Returns what was usual before this group; what it took, if nothing was. */
static double learn_usual(struct write_limit_sort *sort, unsigned int size, double mean_us,
			  int64_t now_ms)
{
	double usual = usual_us(sort, size, now_ms), now_us = mean_us;
	double elapsed_ms = (double)(now_ms - sort->usual[size].at_ms);

	if (elapsed_ms > WRITE_LIMIT_USUAL_MAX_MS)
		elapsed_ms = WRITE_LIMIT_USUAL_MAX_MS;
	if (usual == 0)
		usual = mean_us;
	else if (mean_us < usual)
		now_us = usual - (usual - mean_us) / 4;
	else if (mean_us <= loaded_us(usual))
		now_us = usual + (mean_us - usual) / 8;
	else
		/* Others; or a server that became slow, which looks like others who stay. */
		now_us = usual * (1 + 0.01 * elapsed_ms / WRITE_LIMIT_USUAL_MS);
	sort->usual[size].us = now_us;
	sort->usual[size].at_ms = now_ms;
	return usual;
}

static void shrink_window(struct write_limit *pace, double to, unsigned int under_way)
{
	pace->window *= to > 0.5 ? to : 0.5;
	if (pace->window < 1)
		pace->window = 1;
	pace->passed_over = under_way;
}

void write_limit_answered(struct write_limit *pace, const char *kind, const char *verb,
			  int64_t took_us, unsigned int under_way, int64_t now_ms)
{
	struct write_limit_sort *sort = sort_of(pace, kind, verb);
	int64_t mean_us = 0;
	double bearable_us = 0, others_us = 0;

	assert(pace->n_sorts <= WRITE_LIMIT_SORTS_MAX);
	if (pace->passed_over > 0) {
		pace->passed_over--;
		return;
	}
	/* What takes long while users write is not a sign; that they do is known. */
	if (!sort || write_limit_steps_aside(pace, now_ms))
		return;
	sort->sum_us += took_us;
	if (++sort->n < WRITE_LIMIT_GROUP)
		return;
	mean_us = sort->sum_us / WRITE_LIMIT_GROUP;
	sort->sum_us = 0;
	sort->n = 0;
	bearable_us = (double)remember_least(sort, mean_us, now_ms) * WRITE_LIMIT_QUEUE +
		      WRITE_LIMIT_SLACK_US;
	others_us = loaded_us(learn_usual(sort, size_of(under_way), (double)mean_us, now_ms));
	if (bearable_us > others_us)
		bearable_us = others_us;
	if ((double)mean_us > bearable_us) {
		/* With few of ours under way, it is others who make it slow. */
		if (pace->window < WRITE_LIMIT_FEW + 1)
			pace->pressed_until_ms = now_ms + WRITE_LIMIT_PRESSED_MS;
		shrink_window(pace, bearable_us / (double)mean_us, under_way);
		return;
	}
	/* A window that is not used says nothing about a wider one. */
	if (under_way >= write_limit_window(pace) && pace->window < pace->max)
		pace->window = pace->window + 1 < pace->max ? pace->window + 1 : pace->max;
}

void write_limit_refused(struct write_limit *pace, unsigned int under_way, int64_t now_ms)
{
	pace->pressed_until_ms = pace->refused_until_ms = now_ms + WRITE_LIMIT_PRESSED_MS;
	if (pace->passed_over > 0)
		pace->passed_over--;
	else
		shrink_window(pace, 0, under_way);
}

/* Of the last WRITE_LIMIT_CROWD_MS that are over or under way, one was crowded. */
static bool is_crowd(const struct write_limit *pace, int64_t now_ms)
{
	int64_t elapsed_ms = now_ms - pace->seen_from_ms;

	if (elapsed_ms >= 2 * WRITE_LIMIT_CROWD_MS)
		return false;
	return pace->seen[0] >= WRITE_LIMIT_CROWD ||
	       (elapsed_ms < WRITE_LIMIT_CROWD_MS && pace->seen[1] >= WRITE_LIMIT_CROWD);
}

void write_limit_seen(struct write_limit *pace, int64_t now_ms)
{
	int64_t elapsed_ms = now_ms - pace->seen_from_ms;

	if (!is_crowd(pace, now_ms))
		pace->aside_since_ms = now_ms;
	if (elapsed_ms >= WRITE_LIMIT_CROWD_MS) {
		pace->seen[1] = elapsed_ms < 2 * WRITE_LIMIT_CROWD_MS ? pace->seen[0] : 0;
		pace->seen[0] = 0;
		pace->seen_from_ms = now_ms;
	}
	pace->seen[0]++;
}

bool write_limit_steps_aside(const struct write_limit *pace, int64_t now_ms)
{
	return is_crowd(pace, now_ms) && now_ms - pace->aside_since_ms < WRITE_LIMIT_ASIDE_MAX_MS;
}

void write_limit_begun(struct write_limit *pace, int64_t now_ms)
{
	pace->begun_ms = now_ms;
}

void write_limit_rest(struct write_limit *pace, int64_t took_us, int64_t now_ms)
{
	int64_t rest_ms = took_us * WRITE_LIMIT_REST / 1000;

	pace->rest_until_ms =
		now_ms + (rest_ms < WRITE_LIMIT_REST_MAX_MS ? rest_ms : WRITE_LIMIT_REST_MAX_MS);
}

int64_t write_limit_rest_ms(const struct write_limit *pace, int64_t now_ms)
{
	if (!write_limit_steps_aside(pace, now_ms))
		return -1;
	return now_ms < pace->rest_until_ms ? pace->rest_until_ms - now_ms : WRITE_LIMIT_CROWD_MS;
}

unsigned int write_limit_window(const struct write_limit *pace)
{
	assert(pace->window >= 1 && pace->window <= pace->max);
	return (unsigned int)pace->window;
}

bool write_limit_has_room(const struct write_limit *pace, unsigned int awaited_under_way,
			  unsigned int others_under_way, bool awaited, int64_t now_ms)
{
	unsigned int under_way = awaited_under_way + others_under_way;

	if (under_way >= pace->max)
		return false;
	if (!awaited && write_limit_steps_aside(pace, now_ms))
		return now_ms >= pace->rest_until_ms &&
		       (others_under_way == 0 || (others_under_way < write_limit_window(pace) &&
						  now_ms - pace->begun_ms >= WRITE_LIMIT_HANGS_MS));
	if (!awaited)
		return others_under_way < write_limit_window(pace);
	return under_way < write_limit_window(pace) ||
	       (awaited_under_way < WRITE_LIMIT_AWAITED && now_ms >= pace->refused_until_ms);
}

bool write_limit_is_pressed(const struct write_limit *pace, int64_t now_ms)
{
	return now_ms < pace->pressed_until_ms || write_limit_steps_aside(pace, now_ms);
}
