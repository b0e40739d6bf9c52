// SPDX-License-Identifier: Apache-2.0
/*
 * Ages: the two largest units, and fewer of them the older something is. Rounded as kubectl does.
 */
#include <stdio.h>

#include "cli/simulate/objects/table.h"

/* Two numbers with units; the second is left out when it is 0. */
static void write_two(char out[TABLE_AGE_SIZE], int64_t a, char unit_a, int64_t b, char unit_b)
{
	if (b)
		(void)snprintf(out, TABLE_AGE_SIZE, "%lld%c%lld%c", (long long)a, unit_a,
			       (long long)b, unit_b);
	else
		(void)snprintf(out, TABLE_AGE_SIZE, "%lld%c", (long long)a, unit_a);
}

void table_age(int64_t span_us, char out[TABLE_AGE_SIZE])
{
	const int64_t minute = 60, hour = 60 * minute, day = 24 * hour, year = 365 * day;
	int64_t s = span_us / 1000000;

	if (s < -1)
		(void)snprintf(out, TABLE_AGE_SIZE, "<invalid>");
	else if (s < 2 * minute)
		write_two(out, s < 0 ? 0 : s, 's', 0, 's');
	else if (s < 10 * minute)
		write_two(out, s / minute, 'm', s % minute, 's');
	else if (s < 3 * hour)
		write_two(out, s / minute, 'm', 0, 's');
	else if (s < 8 * hour)
		write_two(out, s / hour, 'h', s % hour / minute, 'm');
	else if (s < 2 * day)
		write_two(out, s / hour, 'h', 0, 'm');
	else if (s < 8 * day)
		write_two(out, s / day, 'd', s % day / hour, 'h');
	else if (s < 2 * year)
		write_two(out, s / day, 'd', 0, 'h');
	else if (s < 8 * year)
		write_two(out, s / year, 'y', s % year / day, 'd');
	else
		write_two(out, s / year, 'y', 0, 'd');
}
