// SPDX-License-Identifier: Apache-2.0
/* RFC 3339 in the two forms of Kubernetes' metav1.Time and metav1.MicroTime. */
#include "lib/base/rfc3339.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define US_PER_S 1000000

/* Fill tm and return the microseconds that remain. */
static int split(int64_t wall_us, struct tm *tm)
{
	int64_t us = wall_us % US_PER_S;
	time_t s = wall_us / US_PER_S;

	if (us < 0) {
		us += US_PER_S;
		s--;
	}
	(void)gmtime_r(&s, tm);
	return (int)us;
}

void rfc3339_write(int64_t wall_us, char out[RFC3339_SIZE])
{
	struct tm tm;

	assert(out);
	(void)split(wall_us, &tm);
	(void)strftime(out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void rfc3339_write_micro(int64_t wall_us, char out[RFC3339_SIZE])
{
	struct tm tm;
	size_t len;
	int us;

	assert(out);
	us = split(wall_us, &tm);
	len = strftime(out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + len, RFC3339_SIZE - len, ".%06dZ", us);
}

/* Read exactly `digits` digits at *s, a value in [min, max], and move *s behind them. */
static bool take_number(const char **s, int digits, int min, int max, int *ret)
{
	int n = 0;

	for (int i = 0; i < digits; i++, (*s)++) {
		if (**s < '0' || **s > '9')
			return false;
		n = n * 10 + (**s - '0');
	}
	*ret = n;
	return n >= min && n <= max;
}

static bool take_char(const char **s, const char *any_of)
{
	if (**s == '\0' || !strchr(any_of, **s))
		return false;
	(*s)++;
	return true;
}

/* Read ".5" and longer, or nothing; digits beyond the microsecond are dropped. */
static bool take_fraction(const char **s, int *ret_us)
{
	int unit = US_PER_S / 10;

	*ret_us = 0;
	if (!take_char(s, "."))
		return true;
	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
		*ret_us += (**s - '0') * unit;
	return true;
}

static bool take_offset(const char **s, int *ret_s)
{
	int sign = **s == '-' ? -1 : 1;
	int hours, minutes;

	*ret_s = 0;
	if (take_char(s, "Zz"))
		return true;
	if (!take_char(s, "+-") || !take_number(s, 2, 0, 23, &hours) || !take_char(s, ":") ||
	    !take_number(s, 2, 0, 59, &minutes))
		return false;
	*ret_s = sign * (hours * 3600 + minutes * 60);
	return true;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (leap && month == 2);
}

bool rfc3339_read(const char *s, int64_t *ret_wall_us)
{
	struct tm tm = {0};
	int year, month, day, us, offset;

	assert(s && ret_wall_us);
	/* Second 60 is a leap second; it counts as the first of the next minute. */
	if (!take_number(&s, 4, 0, 9999, &year) || !take_char(&s, "-") ||
	    !take_number(&s, 2, 1, 12, &month) || !take_char(&s, "-") ||
	    !take_number(&s, 2, 1, days_in_month(year, month), &day) || !take_char(&s, "Tt") ||
	    !take_number(&s, 2, 0, 23, &tm.tm_hour) || !take_char(&s, ":") ||
	    !take_number(&s, 2, 0, 59, &tm.tm_min) || !take_char(&s, ":") ||
	    !take_number(&s, 2, 0, 60, &tm.tm_sec) || !take_fraction(&s, &us) ||
	    !take_offset(&s, &offset) || *s)
		return false;

	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	*ret_wall_us = ((int64_t)timegm(&tm) - offset) * US_PER_S + us;
	return true;
}
