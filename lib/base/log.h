// SPDX-License-Identifier: Apache-2.0
/*
 * One JSON line per event on stderr: a constant message, typed fields for all that varies.
 *
 *	log_info("VFs created", F_STR("pf", "0000:03:00.0"), F_INT("vfs", 8));
 *
 * error: someone has to act. warn: we coped. info: the world changed because of us. debug: per
 * module (the file's folder and name, for example "lib/kube/watch"), switchable at run time.
 * Tokens, keys and whole objects are not logged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARN,
	LOG_LEVEL_ERROR,
};

struct log_field {
	enum log_field_type {
		LOG_FIELD_STR,
		LOG_FIELD_INT,
		LOG_FIELD_BOOL,
		LOG_FIELD_ERR, /* reason and text, under "reason" and "error" */
		LOG_FIELD_END,
	} type;
	const char *name;
	union {
		const char *str;
		int64_t num;
		bool flag;
		const struct err *err;
	};
};

#define F_STR(name_, value_)  ((struct log_field){LOG_FIELD_STR, (name_), {.str = (value_)}})
#define F_INT(name_, value_)  ((struct log_field){LOG_FIELD_INT, (name_), {.num = (value_)}})
#define F_BOOL(name_, value_) ((struct log_field){LOG_FIELD_BOOL, (name_), {.flag = (value_)}})
#define F_ERR(err_)           ((struct log_field){LOG_FIELD_ERR, "error", {.err = (err_)}})

#define log_at(level_, msg_, ...)                                                                  \
	do {                                                                                       \
		if (log_enabled(level_, __FILE__))                                                 \
			log_write(level_, __FILE__, msg_,                                          \
				  (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, )(           \
					  struct log_field){LOG_FIELD_END, NULL, {0}}});           \
	} while (0)

#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)

/*
 * "info", or "info,lib/kube/watch=debug,operator=warn": a level ("info" when there is none), and
 * overrides for a file or a folder; the longest match wins. Replaces what was configured before. On
 * a bad spec nothing changes and err is ERR_INVALID "BadLogLevel" and says which part is wrong.
 */
int log_configure(const char *spec, struct err *err);

/* Where lines go; stderr (2) at the start. Borrowed. */
void log_set_fd(int fd);

/*
 * What the macros above call. A line has "time", "level", "module", "msg" and then the fields, in
 * their order; a string is cut at 2048 bytes, bytes that are not UTF-8 become U+FFFD. errno is left
 * alone.
 */
bool log_enabled(enum log_level level, const char *file);
void log_write(enum log_level level, const char *file, const char *msg,
	       const struct log_field *fields);
