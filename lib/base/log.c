// SPDX-License-Identifier: Apache-2.0
/*
 * One JSON line per event, written with one write(2), so that lines of several processes do not
 * mix.
 */
#include "lib/base/log.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/own.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"

#define OVERRIDES_MAX 16
#define MODULE_SIZE   64
/* Bytes of one string field; the rest is cut. */
#define VALUE_MAX 2048

struct override {
	char module[MODULE_SIZE];
	size_t len;
	enum log_level level;
};

struct config {
	enum log_level level;
	struct override overrides[OVERRIDES_MAX];
	size_t n_overrides;
};

static struct config config = {.level = LOG_LEVEL_INFO};
static int log_fd = STDERR_FILENO;

static const char *const level_names[] = {
	[LOG_LEVEL_DEBUG] = "debug",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_ERROR] = "error",
};

static bool level_parse(const char *s, size_t len, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
		if (strlen(level_names[i]) == len && memcmp(level_names[i], s, len) == 0) {
			*ret = (enum log_level)i;
			return true;
		}
	}
	return false;
}

static int bad_level(const char *part, size_t len, const char *level, struct err *err)
{
	return err_set(err, ERR_INVALID, "BadLogLevel",
		       "log level \"%.*s\": \"%.*s\" must be debug, info, warn or error", (int)len,
		       part, (int)(len - (size_t)(level - part)), level);
}

/* One part of a spec: "LEVEL" or "MODULE=LEVEL". */
static int config_add(struct config *c, const char *part, size_t len, struct err *err)
{
	const char *equals = memchr(part, '=', len);
	size_t module_len = equals ? (size_t)(equals - part) : 0;
	struct override *o;

	if (!equals)
		return level_parse(part, len, &c->level) ? 0 : bad_level(part, len, part, err);

	if (module_len == 0 || module_len >= MODULE_SIZE)
		return err_set(err, ERR_INVALID, "BadLogLevel",
			       "log level \"%.*s\": the module must have 1 to %d characters",
			       (int)len, part, MODULE_SIZE - 1);
	if (c->n_overrides == OVERRIDES_MAX)
		return err_set(err, ERR_INVALID, "BadLogLevel",
			       "log level \"%.*s\": there can be at most %d modules", (int)len,
			       part, OVERRIDES_MAX);

	o = &c->overrides[c->n_overrides];
	if (!level_parse(equals + 1, len - module_len - 1, &o->level))
		return bad_level(part, len, equals + 1, err);
	memcpy(o->module, part, module_len);
	o->module[module_len] = '\0';
	o->len = module_len;
	c->n_overrides++;
	return 0;
}

int log_configure(const char *spec, struct err *err)
{
	struct config new = {.level = LOG_LEVEL_INFO};

	assert(spec);
	for (;;) {
		size_t len = strcspn(spec, ",");

		if (config_add(&new, spec, len < VALUE_MAX ? len : VALUE_MAX, err) < 0)
			return -1;
		if (!spec[len])
			break;
		spec += len + 1;
	}
	config = new;
	return 0;
}

void log_set_fd(int fd)
{
	log_fd = fd;
}

/* "lib/kube/lease.c" as "lib/kube/lease": the length that counts. */
static size_t module_len(const char *file)
{
	size_t len = strlen(file);

	return str_ends(file, ".c") ? len - 2 : len;
}

bool log_enabled(enum log_level level, const char *file)
{
	enum log_level wanted = config.level;
	size_t len = module_len(file);
	size_t longest = 0;

	for (size_t i = 0; i < config.n_overrides; i++) {
		const struct override *o = &config.overrides[i];

		if (o->len < longest || o->len > len || memcmp(o->module, file, o->len) != 0)
			continue;
		if (o->len < len && file[o->len] != '/')
			continue;
		wanted = o->level;
		longest = o->len;
	}
	return level >= wanted;
}

static void add_string(struct strbuf *b, const char *s, size_t len)
{
	size_t plain = 0;

	strbuf_addc(b, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		strbuf_add_utf8(b, s + plain, i - plain);
		plain = i + 1;
		if (c == '"' || c == '\\')
			strbuf_addf(b, "\\%c", c);
		else if (c == '\n')
			strbuf_adds(b, "\\n");
		else
			strbuf_addf(b, "\\u%04x", c);
	}
	strbuf_add_utf8(b, s + plain, len - plain);
	strbuf_addc(b, '"');
}

static void add_pair(struct strbuf *b, const char *name, const char *value)
{
	size_t len = value ? strnlen(value, VALUE_MAX + 1) : 0;

	strbuf_addc(b, b->len == 0 ? '{' : ',');
	add_string(b, name, strlen(name));
	strbuf_addc(b, ':');
	if (!value)
		strbuf_adds(b, "null");
	else
		add_string(b, value, str_clip(value, len, VALUE_MAX));
}

static void write_line(const struct strbuf *b)
{
	size_t done = 0;

	/*
	 * More than one round only for a pipe that is nearly full or a signal; a reader that went
	 * away loses lines.
	 */
	while (done < b->len) {
		ssize_t n = write(log_fd, b->data + done, b->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		done += (size_t)n;
	}
}

void log_write(enum log_level level, const char *file, const char *msg,
	       const struct log_field *fields)
{
	auto_strbuf struct strbuf b = {0};
	auto_free char *module = str_ndup(file, module_len(file));
	char now[RFC3339_SIZE];
	int saved_errno = errno;

	assert(level >= LOG_LEVEL_DEBUG && level <= LOG_LEVEL_ERROR && file && msg);
	rfc3339_write_micro(clock_wall_us(), now);
	add_pair(&b, "time", now);
	add_pair(&b, "level", level_names[level]);
	add_pair(&b, "module", module);
	add_pair(&b, "msg", msg);
	for (; fields->type != LOG_FIELD_END; fields++) {
		switch (fields->type) {
		case LOG_FIELD_STR:
			add_pair(&b, fields->name, fields->str);
			break;
		case LOG_FIELD_INT:
			strbuf_addc(&b, ',');
			add_string(&b, fields->name, strlen(fields->name));
			strbuf_addf(&b, ":%lld", (long long)fields->num);
			break;
		case LOG_FIELD_BOOL:
			strbuf_addc(&b, ',');
			add_string(&b, fields->name, strlen(fields->name));
			strbuf_adds(&b, fields->flag ? ":true" : ":false");
			break;
		case LOG_FIELD_ERR:
			add_pair(&b, "reason", fields->err->reason);
			add_pair(&b, "error", fields->err->text);
			break;
		case LOG_FIELD_END:
			break;
		}
	}
	strbuf_adds(&b, "}\n");
	write_line(&b);
	errno = saved_errno;
}
