/*
 * Time. clock_us and clock_wall_us are weak, so that a test can link its own.
 */
#include "lib/base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/random.h"

#define US_PER_S 1000000

static int64_t read_us(clockid_t id)
{
	struct timespec ts = {0};

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

__attribute__((weak)) int64_t clock_us(void)
{
	return read_us(CLOCK_BOOTTIME);
}

__attribute__((weak)) int64_t clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

int64_t clock_ms(void)
{
	return clock_us() / 1000;
}

/* Fills tm and returns the microseconds that remain. */
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

void clock_rfc3339(int64_t wall_us, char out[CLOCK_RFC3339_SIZE])
{
	struct tm tm;

	(void)split(wall_us, &tm);
	(void)strftime(out, CLOCK_RFC3339_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void clock_rfc3339_micro(int64_t wall_us, char out[CLOCK_RFC3339_SIZE])
{
	struct tm tm;
	int us = split(wall_us, &tm);
	size_t len = strftime(out, CLOCK_RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);

	(void)snprintf(out + len, CLOCK_RFC3339_SIZE - len, ".%06dZ", us);
}

/* Exactly `digits` digits at *s with a value in [min, max]; moves *s behind them. */
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

/* ".5" and longer, or nothing; digits beyond the microsecond are dropped. */
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

bool clock_parse_rfc3339(const char *s, int64_t *ret_wall_us)
{
	struct tm tm = {0};
	int year, month, day, us, offset;

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

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next_random(void)
{
	static uint64_t state;
	static bool seeded;
	uint64_t z;

	if (!seeded) {
		random_bytes(&state, sizeof(state));
		seeded = true;
	}
	z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t clock_jitter(uint64_t bound)
{
	/* The high half of the product: no division, and a bias of bound / 2^64. */
	return (uint64_t)((unsigned __int128)next_random() * bound >> 64);
}
