// SPDX-License-Identifier: Apache-2.0
/*
 * Whether an agent listens is found by connecting: a dead agent's socket refuses, however it died.
 */
#include "nodeagent/kubelet/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/random.h"
#include "lib/base/str.h"

#define SUFFIX ".ow.sock"
/* Of the resource's name; the whole has to fit into a socket's path. */
#define LABEL_MAX 24
/* Digits of the instance that are its time in milliseconds: 34 years. */
#define TIME_DIGITS 10
#define TIME_MASK   0xffffffffffU

void endpoint_instance(char out[ENDPOINT_INSTANCE_LEN + 1])
{
	uint32_t noise;

	random_bytes(&noise, sizeof(noise));
	(void)snprintf(out, ENDPOINT_INSTANCE_LEN + 1, "%010llx%06x",
		       (unsigned long long)clock_ms() & TIME_MASK, noise & 0xffffffU);
}

static void hash_of(const char *resource, char out[ENDPOINT_HASH_LEN + 1])
{
	(void)snprintf(out, ENDPOINT_HASH_LEN + 1, "%08x",
		       (unsigned int)(str_hash(resource, strlen(resource)) & 0xffffffffU));
}

char *endpoint_name(const char *resource, const char *instance)
{
	char hash[ENDPOINT_HASH_LEN + 1];
	char label[LABEL_MAX + 1];

	(void)snprintf(label, sizeof(label), "%s", resource);
	for (char *p = label; *p; p++)
		if (*p == '/')
			*p = '_';
	hash_of(resource, hash);
	return str_printf("%s.%s.%s" SUFFIX, label, hash, instance);
}

static bool take_hex(const char *from, size_t len, char *out)
{
	if (strspn(from, "0123456789abcdef") < len)
		return false;
	memcpy(out, from, len);
	out[len] = '\0';
	return true;
}

bool endpoint_parse(const char *name, struct endpoint_parts *ret)
{
	const size_t tail = 1 + ENDPOINT_HASH_LEN + 1 + ENDPOINT_INSTANCE_LEN + strlen(SUFFIX);
	size_t len = strlen(name);
	const char *p = name + len - tail;
	struct endpoint_parts parts;

	/* A leading dot: lib/grpc's interim names. */
	if (len <= tail || name[0] == '.' || !str_ends(name, SUFFIX))
		return false;
	if (p[0] != '.' || !take_hex(p + 1, ENDPOINT_HASH_LEN, parts.hash))
		return false;
	p += 1 + ENDPOINT_HASH_LEN;
	if (p[0] != '.' || !take_hex(p + 1, ENDPOINT_INSTANCE_LEN, parts.instance))
		return false;
	*ret = parts;
	return true;
}

/* Doubt: a full backlog, no permission. */
bool endpoint_has_listener(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(name.sun_path))
		return true;
	memcpy(name.sun_path, path, strlen(path) + 1);
	return connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0 ||
	       (errno != ECONNREFUSED && errno != ENOENT);
}

int endpoint_scan(const char *dir, const char *instance, struct endpoint_others *others,
		  struct err *err)
{
	auto_closedir DIR *files = opendir(dir);
	const struct dirent *file;

	if (!files)
		return err_sys(err, "PluginDirUnreadable", "list %s", dir);
	endpoint_others_done(others);
	others->newest.free_value = mem_free;
	while ((file = readdir(files))) {
		struct endpoint_parts parts;
		auto_free char *path = NULL;
		const char *newest;

		if (!endpoint_parse(file->d_name, &parts) || str_eq(parts.instance, instance))
			continue;
		path = str_printf("%s/%s", dir, file->d_name);
		if (!endpoint_has_listener(path)) {
			(void)unlink(path);
			continue;
		}
		newest = map_get(&others->newest, parts.hash);
		if (!newest || strcmp(parts.instance, newest) > 0)
			map_set(&others->newest, parts.hash, str_dup(parts.instance));
	}
	return 0;
}

void endpoint_others_done(struct endpoint_others *others)
{
	map_done(&others->newest);
}

bool endpoint_has_successor(const struct endpoint_others *others, const char *resource,
			    const char *instance)
{
	char hash[ENDPOINT_HASH_LEN + 1];
	const char *newest;

	hash_of(resource, hash);
	newest = map_get(&others->newest, hash);
	return newest && strcmp(newest, instance) > 0;
}
