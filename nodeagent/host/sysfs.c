// SPDX-License-Identifier: Apache-2.0
/*
 * Files below the host's root, through root.h, so that no link leads out of it. Nearly all that
 * host/ reads comes through here, and each read opens, reads and closes; writes go through the
 * host's door, where tests stand for the kernel.
 */
#include "nodeagent/host/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"

bool sysfs_read_file(const struct host *host, const char *path, size_t max, struct strbuf *ret)
{
	auto_close int fd = root_open(host->root, path, O_RDONLY, 0);
	size_t before = ret->len;
	char chunk[4096];
	ssize_t n = 0;

	if (fd < 0)
		return false;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		if ((size_t)n > max - (ret->len - before))
			break;
		strbuf_add(ret, chunk, (size_t)n);
	}
	if (n == 0)
		return true;
	strbuf_cut(ret, before);
	return false;
}

bool sysfs_read(const struct host *host, const char *path, struct sysfs_text *ret)
{
	auto_close int fd = root_open(host->root, path, O_RDONLY, 0);
	char text[sizeof(ret->text)];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\0'))
		n--;
	if (n <= 0 || (size_t)n == sizeof(text) || memchr(text, '\n', (size_t)n) ||
	    memchr(text, '\0', (size_t)n))
		return false;
	memcpy(ret->text, text, (size_t)n);
	ret->text[n] = '\0';
	return true;
}

bool sysfs_parse_int(const char *text, int64_t *ret)
{
	int64_t value = 0;

	if (!str_starts(text, "0x"))
		return str_to_int(text, INT64_MIN, INT64_MAX, ret);
	if (strlen(text) > 2 + 15 || text[2] == '\0')
		return false;
	for (const char *p = text + 2; *p; p++) {
		const char *digits = "0123456789abcdef";
		const char *digit = strchr(digits, *p >= 'A' && *p <= 'F' ? *p + 32 : *p);

		if (!digit)
			return false;
		value = value * 16 + (digit - digits);
	}
	*ret = value;
	return true;
}

bool sysfs_read_int(const struct host *host, const char *path, int64_t *ret)
{
	struct sysfs_text text;

	return sysfs_read(host, path, &text) && sysfs_parse_int(text.text, ret);
}

bool sysfs_link(const struct host *host, const char *path, struct sysfs_text *ret)
{
	auto_free char *target = root_read_link(host->root, path);
	const char *slash = target ? strrchr(target, '/') : NULL;
	const char *last = slash ? slash + 1 : target;

	if (!last || !*last || strlen(last) >= sizeof(ret->text))
		return false;
	memcpy(ret->text, last, strlen(last) + 1);
	return true;
}

bool sysfs_exists(const struct host *host, const char *path)
{
	struct stat st;

	return root_stat(host->root, path, &st) == 0;
}

json_t *sysfs_list(const struct host *host, const char *path)
{
	auto_close int fd = root_open(host->root, path, O_RDONLY | O_DIRECTORY, 0);
	auto_closedir DIR *dir = NULL;
	auto_free const char **sorted = NULL;
	json_auto_t *names = json_array();
	json_t *ret, *name;
	struct dirent *entry;
	size_t i;

	if (fd < 0)
		return NULL;
	dir = fdopendir(fd);
	if (!dir)
		return NULL;
	(void)take_fd(&fd);
	while ((entry = readdir(dir)))
		if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
			json_array_append_new(names, json_fmt("%s", entry->d_name));

	sorted = mem_calloc(json_array_size(names) + 1, sizeof(*sorted));
	json_array_foreach (names, i, name) {
		sorted[i] = json_string_value(name);
	}
	qsort(sorted, json_array_size(names), sizeof(*sorted), str_compare);
	ret = json_array();
	for (i = 0; i < json_array_size(names); i++)
		json_array_append_new(ret, json_string(sorted[i]));
	return ret;
}

int sysfs_write(struct host *host, const char *path, const char *text, struct err *err)
{
	return host->doors->write(host->doors_ctx, host->root, path, text, strlen(text), err);
}
