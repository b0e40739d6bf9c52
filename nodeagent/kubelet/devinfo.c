// SPDX-License-Identifier: Apache-2.0
/*
 * The names of files show whose they are. Names are not unique ("a/b" and "a/b-c" both begin with
 * "a-b-"), so only those whose rest is exactly a PCI address are ever removed.
 */
#include "nodeagent/kubelet/devinfo.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/map.h"
#include "lib/base/own_fd.h"
#include "lib/base/pci_address.h"
#include "lib/json/json.h"

#define TAIL     "-device.json"
#define FILE_MAX 65536
/* The specification's readers run as others than root too. */
#define FILE_MODE 0444
#define DIR_MODE  0755

/* "<prefix>-<name>-"; returns new. */
static char *head_of(const char *resource)
{
	char *head = str_printf("%s-", resource);

	for (char *p = head; *p; p++)
		if (*p == '/')
			*p = '-';
	return head;
}

static bool is_right(const char *path, const char *text)
{
	auto_strbuf struct strbuf now = {0};

	return fs_read(AT_FDCWD, path, FILE_MAX, &now, NULL) == 0 && str_eq(strbuf_str(&now), text);
}

static int write_one(const char *dir, const char *head, const json_t *device, struct err *err)
{
	const json_t *info = json_at(device, "info");
	const char *id = json_str_or(json_at(device, "id"), "");
	auto_free char *path = NULL, *text = NULL;
	struct err cause = {0};

	if (!info)
		return 0;
	if (str_empty(id) || strchr(id, '/'))
		return err_set(err, ERR_HOST, "DevinfoNotWritten",
			       "device \"%s\": no file can have that name", id);
	path = str_printf("%s/%s%s" TAIL, dir, head, id);
	text = json_text(info);
	if (is_right(path, text))
		return 0;
	if (fs_make_dirs(dir, DIR_MODE) < 0)
		return err_sys(err, "DevinfoNotWritten", "make %s", dir);
	if (fs_write_atomic(AT_FDCWD, path, text, strlen(text), FILE_MODE, &cause) < 0)
		return err_set(err, ERR_HOST, "DevinfoNotWritten", "%s", cause.text);
	return 0;
}

/* The id in a file's name, new, or NULL. */
static char *id_in(const char *name, const char *head)
{
	size_t head_len = strlen(head), len = strlen(name);
	auto_free char *id = NULL;

	if (!str_starts(name, head) || !str_ends(name, TAIL) || len < head_len + strlen(TAIL))
		return NULL;
	id = str_ndup(name + head_len, len - head_len - strlen(TAIL));
	return pci_address_is_valid(id) ? take_ptr(id) : NULL;
}

static void sweep(const char *dir, const char *head, const json_t *devices)
{
	auto_call(map_done) struct map ids = {0};
	auto_closedir DIR *files = opendir(dir);
	const struct dirent *file;
	json_t *device;
	size_t i;

	json_array_foreach ((json_t *)devices, i, device)
		if (json_at(device, "info"))
			map_set(&ids, json_str_or(json_at(device, "id"), ""), device);
	while (files && (file = readdir(files))) {
		auto_free char *id = id_in(file->d_name, head);

		if (id && !map_get(&ids, id))
			(void)unlinkat(dirfd(files), file->d_name, 0);
	}
}

int devinfo_write(const char *dir, const json_t *resource, struct err *err)
{
	const json_t *devices = json_at(resource, "devices"), *device;
	auto_free char *head = NULL;
	int result = 0;
	size_t i;

	if (!dir)
		return 0;
	head = head_of(json_str_or(json_at(resource, "name"), ""));
	sweep(dir, head, devices);
	json_array_foreach ((json_t *)devices, i, device)
		if (write_one(dir, head, device, err) < 0)
			result = -1;
	return result;
}

int devinfo_ensure(const char *dir, const json_t *resource, const char *const *ids, size_t n,
		   struct err *err)
{
	auto_call(map_done) struct map wanted = {0};
	auto_free char *head = NULL;
	const json_t *device;
	int result = 0;
	size_t i;

	if (!dir)
		return 0;
	/* A pod may ask for as many tokens as there are. */
	for (i = 0; i < n; i++)
		map_set(&wanted, ids[i], (void *)ids[i]);
	head = head_of(json_str_or(json_at(resource, "name"), ""));
	json_array_foreach (json_at(resource, "devices"), i, device)
		if (map_get(&wanted, json_str_or(json_at(device, "id"), "")) &&
		    write_one(dir, head, device, err) < 0)
			result = -1;
	return result;
}

void devinfo_remove(const char *dir, const char *resource)
{
	auto_free char *head = head_of(resource);

	if (dir)
		sweep(dir, head, NULL);
}
