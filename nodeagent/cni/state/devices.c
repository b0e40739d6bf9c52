// SPDX-License-Identifier: Apache-2.0
/*
 * One small file per device, replaced as a whole under its lock. A worker claims the device before
 * ADD changes anything, asks on the way, and releases it at the end of DEL; the owner before comes
 * back when its own DEL is still to come.
 */
#include "nodeagent/cni/state/devices.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/state/atomic_file.h"
#include "nodeagent/cni/state/boot_id.h"
#include "nodeagent/cni/state/sandboxes.h"

#define FOLDER DEVICES_FOLDER

enum {
	OWNER_MAX = 65536,
	LOOK_MS = 10, /* is the lock free? */
};

const char *device_of(const json_t *config)
{
	const char *const names[] = {json_str_at(config, "deviceID"),
				     json_str_at(config, "runtimeConfig", "deviceID"),
				     json_str_at(config, "pciBusID")};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i] && pci_address_is_valid(names[i]))
			return names[i];
	return NULL;
}

int device_lock(struct sandboxes *state, const char *address, int64_t wait_ms, struct err *err)
{
	static const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	auto_free char *path = str_printf(FOLDER "/%s.lock", address);
	int64_t until = clock_ms() + wait_ms;
	auto_close int fd = -1;

	assert(state && address);
	(void)mkdirat(state->dir, FOLDER, 0700);
	/* The file stays, so that nobody locks one that is not there any more. */
	fd = openat(state->dir, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, "DeviceNotLocked", "open %s", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, "DeviceNotLocked", "lock %s", path);
		if (clock_ms() >= until)
			return err_set(err, ERR_TRANSIENT, "DeviceNotLocked",
				       "another call has worked on the device %s for %lld s: see "
				       "whether its driver hangs (dmesg); it is tried again",
				       address, (long long)(wait_ms / 1000));
		(void)nanosleep(&pause, NULL);
	}
	return take_fd(&fd);
}

static bool is_of_this_boot(const json_t *owner)
{
	const char *boot = json_str_at(owner, "boot");
	auto_free char *now = boot_id();

	return !boot || !*now || str_eq(boot, now);
}

/*
 * How much the sandbox's records speak for it: 0, nothing; it has something to put back on the
 * device and is being taken down; or is not.
 */
static int claim_of(const json_t *sandbox, const char *address)
{
	const json_t *record;
	int claim = 0;
	size_t i;

	if (!is_of_this_boot(sandbox))
		return 0;
	json_array_foreach (json_at(sandbox, "attachments"), i, record) {
		if (!str_eq(json_str_at(record, "saved", "device"), address))
			continue;
		if (!str_eq(json_str_at(record, "phase"), "deleting"))
			return 2;
		claim = 1;
	}
	return claim;
}

/*
 * The sandbox that has something to put back on the device; as read_owner(). Of two the one that is
 * not being taken down, for its pod may live: the other one's DEL leaves the device alone.
 */
static int owner_by_records(struct sandboxes *state, const char *address, json_t **ret,
			    struct err *err)
{
	json_auto_t *names = sandboxes_list(state, err), *owner = NULL;
	const json_t *name;
	int most = 0;
	size_t i;

	if (!names)
		return -1;
	json_array_foreach (names, i, name) {
		json_auto_t *sandbox = NULL;
		int claim;

		if (sandbox_load(state, json_string_value(name), &sandbox, err) < 0)
			return -1;
		claim = claim_of(sandbox, address);
		if (claim <= most)
			continue;
		most = claim;
		json_replace(&owner, json_pack("{s:O, s:s*}", "container", name, "boot",
					       json_str_at(sandbox, "boot")));
	}
	log_warn("the file of a device's owner is no JSON, records of sandboxes are believed",
		 F_STR("device", address),
		 F_STR("container", json_str_or(json_at(owner, "container"), "none")));
	*ret = take_ptr(owner);
	return 0;
}

/* New; NULL: nobody's. -1: it cannot be known. A file that is no JSON says nothing; records do. */
static int read_owner(struct sandboxes *state, const char *address, json_t **ret, struct err *err)
{
	auto_free char *path = str_printf(FOLDER "/%s.json", address);
	auto_strbuf struct strbuf text = {0};
	struct err why = {0};

	*ret = NULL;
	if (fs_read(state->dir, path, OWNER_MAX, &text, &why) < 0 && why.class != ERR_INVALID) {
		*err = why;
		return why.sys == ENOENT ? 0 : -1;
	}
	*ret = json_parse(strbuf_str(&text), text.len, NULL);
	return *ret ? 0 : owner_by_records(state, address, ret, err);
}

static int write_owner(struct sandboxes *state, const char *name, const json_t *owner)
{
	auto_free char *text = json_text(owner);

	return atomic_file_write(state->dir, FOLDER, name, text, strlen(text), true, NULL);
}

int device_claim(struct sandboxes *state, const char *address, const char *container,
		 const char *ifname, struct err *err)
{
	auto_free char *name = str_printf("%s.json", address), *boot = boot_id();
	json_auto_t *before = NULL, *owner = json_object();
	struct err why = {0};

	assert(state && address && container);
	if (read_owner(state, address, &before, &why) < 0)
		return err_set(err, ERR_HOST, "DeviceNotClaimed", "who has %s: %s", address,
			       why.text);
	if (str_eq(json_str_at(before, "container"), container) && is_of_this_boot(before))
		return 0;
	json_put_str(owner, "container", container);
	json_put_str(owner, "ifname", ifname);
	json_put_str(owner, "boot", *boot ? boot : NULL);
	/* Of a chain of owners that were never deleted the last one counts, unless a boot did. */
	if (before && is_of_this_boot(before)) {
		(void)json_object_del(before, "before");
		json_put(owner, "before", json_incref(before));
	}
	return write_owner(state, name, owner) < 0
		       ? err_sys(err, "DeviceNotClaimed", "claim %s", address)
		       : 0;
}

int device_owner(struct sandboxes *state, const char *address, char **ret, struct err *err)
{
	json_auto_t *owner = NULL;
	struct err why = {0};

	assert(state && ret);
	*ret = NULL;
	if (read_owner(state, address, &owner, &why) < 0)
		return err_set(err, ERR_HOST, "DeviceNotClaimed", "who has %s: %s", address,
			       why.text);
	*ret = str_dup(json_str_at(owner, "container"));
	return 0;
}

int device_is_owned(struct sandboxes *state, const char *address, const char *container,
		    struct err *err)
{
	json_auto_t *owner = NULL;
	struct err why = {0};

	if (read_owner(state, address, &owner, &why) < 0)
		return err_set(err, ERR_TRANSIENT, "DeviceNotClaimed",
			       "who has %s cannot be known now: %s; the runtime tries again",
			       address, why.text);
	return !owner ||
	       (str_eq(json_str_at(owner, "container"), container) && is_of_this_boot(owner));
}

void device_release(struct sandboxes *state, const char *address, const char *container)
{
	auto_free char *name = str_printf("%s.json", address), *file = NULL;
	json_auto_t *owner = NULL;
	const json_t *before;
	struct err why = {0};
	struct stat st;

	assert(state && container);
	if (read_owner(state, address, &owner, &why) < 0 ||
	    (owner && !str_eq(json_str_at(owner, "container"), container)))
		return;
	before = json_at(owner, "before");
	file = str_printf("sandboxes/%s.json", json_str_or(json_at(before, "container"), ""));
	if (before &&
	    (fstatat(state->dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) &&
	    write_owner(state, name, before) == 0)
		return;
	(void)atomic_file_remove(state->dir, FOLDER, name, false);
}
