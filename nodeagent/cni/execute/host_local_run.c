// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin host-local: addresses that are files of the host, one for each that is given, with the
 * sandbox and the interface that have it. Which are tried is decided in
 * nodeagent/cni/plan/host_local.h.
 *
 * The files are those of containernetworking-plugins' host-local, of the same folder, below the
 * same lock: both may be at work, one may take over from the other. They are what is known; nothing
 * else is kept for DEL. A file has its name and its content at once, so that none is left that is
 * nobody's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/host_local.h"
#include "nodeagent/cni/plan/result.h"

#define DRAFT      ".orbweaver.draft"
#define LAST       "last_reserved_ip."
#define LAST_DRAFT ".orbweaver.last"
#define OWNER_MAX  512 /* of a file; a longer one has no owner */

enum { RESOLV_CONF_MAX = 64 << 10, LOCK_MS = 10000, LOCK_EVERY_US = 5000 };

/* A network's folder, locked. */
struct store {
	int dir, lock;
	char owner[OWNER_MAX]; /* what its files say of this call's interface */
};

static void store_done(struct store *store)
{
	own_close_p(&store->dir);
	own_close_p(&store->lock);
}
#define auto_store auto_call(store_done)

/* ---- files ----------------------------------------------------------------------------------- */

static int refused(struct err *err, const char *what, const char *name)
{
	return err_sys(err, "StoreUnusable", "host-local: %s %s", what, name);
}

/*
 * What this descriptor of O_PATH names, opened. A network's author names the folders, and may write
 * to them: a FIFO would keep us, a device do more than be read, so that they are not opened.
 */
static int open_regular(int found, int flags)
{
	char link[32];
	struct stat st;

	if (found < 0 || fstat(found, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
		return -1;
	}
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	return open(link, flags | O_CLOEXEC);
}

static int open_file(int dir, const char *name, int flags)
{
	auto_close int found = openat(dir, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);

	return open_regular(found, flags);
}

/* At most `max` bytes. */
static int read_open(int fd, size_t max, struct strbuf *ret, struct err *err)
{
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return fs_read(AT_FDCWD, link, max, ret, err);
}

/* 1: read. 0: it is away, no file, or longer than `max`. -1 with err: it cannot be read now. */
static int read_file(int dir, const char *name, size_t max, struct strbuf *ret, struct err *err)
{
	auto_close int fd = open_file(dir, name, O_RDONLY);
	struct err why = {0};

	if (fd < 0)
		return err_is_unknown(errno) ? refused(err, "read", name) : 0;
	if (read_open(fd, max, ret, &why) == 0)
		return 1;
	if (why.class == ERR_INVALID)
		return 0;
	errno = why.sys;
	return refused(err, "read", name);
}

static int open_lock(int dir)
{
	int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 && errno == EEXIST ? open_file(dir, "lock", O_RDWR) : fd;
}

/* Who may write to the folder may hold its lock for ever: a worker does not wait for that. */
static int take_lock(int fd)
{
	int64_t end = clock_ms() + LOCK_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -1;
		if (clock_ms() >= end) {
			errno = ETIMEDOUT;
			return -1;
		}
		(void)usleep(LOCK_EVERY_US);
	}
	return 0;
}

/* must_make: the folder is made where it is missing; else ret->dir stays -1 then. */
static int store_open(const struct plugin_call *call, const struct host_local_config *config,
		      bool must_make, struct store *ret, struct err *err)
{
	auto_free char *path = str_printf("%s/%s", config->data_dir, config->network);
	int n = snprintf(ret->owner, sizeof(ret->owner), "%s\r\n%s", call->call->container_id,
			 call->call->ifname);

	if (n >= (int)sizeof(ret->owner))
		return err_set(err, ERR_INVALID, "BadEnvironment",
			       "host-local: CNI_CONTAINERID is longer than %d bytes", OWNER_MAX);
	if (must_make && root_make_dirs(call->call->root, path, 0755) < 0)
		return refused(err, "make", path);
	ret->dir = root_open(call->call->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (ret->dir < 0)
		return errno == ENOENT && !must_make ? 0 : refused(err, "open", path);
	ret->lock = open_lock(ret->dir);
	if (ret->lock < 0)
		return refused(err, "open the lock of", path);
	return take_lock(ret->lock) < 0 ? refused(err, "lock", path) : 0;
}

/* *ret: what a file says, new; "" for one that is no address's. */
static int read_owner(const struct store *store, const char *name, char **ret, struct err *err)
{
	auto_strbuf struct strbuf text = {0};

	if (name[0] != '.' && read_file(store->dir, name, OWNER_MAX, &text, err) < 0)
		return -1;
	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		strbuf_cut(&text, text.len - 1);
	*ret = strbuf_take(&text);
	return 0;
}

/*
 * Names of the files of this interface, new. Files of versions before 0.7 say the container alone:
 * they count where there is no other. NULL with err: a file that cannot be read may be one.
 */
static json_t *names_of_owner(const struct store *store, struct err *err)
{
	auto_free char *container = str_ndup(store->owner, strcspn(store->owner, "\r"));
	auto_close int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	json_auto_t *names = json_array(), *old = json_array();
	const struct dirent *entry;

	if (dir)
		(void)take_fd(&fd);
	while (errno = 0, dir && (entry = readdir(dir))) {
		auto_free char *owner = NULL;

		if (read_owner(store, entry->d_name, &owner, err))
			return NULL;
		if (str_eq(owner, store->owner))
			json_array_append_new(names, json_fmt("%s", entry->d_name));
		else if (str_eq(owner, container))
			json_array_append_new(old, json_fmt("%s", entry->d_name));
	}
	if (!dir || errno) {
		(void)refused(err, "list", "dataDir");
		return NULL;
	}
	return json_incref(json_array_size(names) ? names : old);
}

static int release_addresses(const struct store *store, struct err *err)
{
	json_auto_t *names = names_of_owner(store, err);
	size_t i;
	json_t *name;

	if (!names)
		return -1;
	json_array_foreach (names, i, name)
		if (unlinkat(store->dir, json_string_value(name), 0) < 0 && errno != ENOENT)
			return refused(err, "remove", json_string_value(name));
	return 0;
}

/* A new file each time: the one of an ADD that was killed may be an address's by now. */
static int write_new(const struct store *store, const char *name, const char *text, struct err *err)
{
	auto_close int fd = -1;

	(void)unlinkat(store->dir, name, 0);
	fd = openat(store->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fs_write_all(fd, text, strlen(text)) < 0)
		return refused(err, "write", name);
	return 0;
}

static int write_last(const struct store *store, size_t set, const char *address, struct err *err)
{
	auto_free char *name = str_printf(LAST "%zu", set);

	if (write_new(store, LAST_DRAFT, address, err) == 0 &&
	    (renameat(store->dir, LAST_DRAFT, store->dir, name) == 0 ||
	     refused(err, "write", name) == 0))
		return 0;
	(void)unlinkat(store->dir, LAST_DRAFT, 0);
	return -1;
}

/*
 * Is it an address that a power cut took the owner from: written before the boot, and empty? The
 * lock is ours, so that nobody is at it. DEL does not find it.
 */
static bool is_left_empty(const struct store *store, const char *name)
{
	int64_t booted_s = clock_wall_us() / 1000000 - clock_ms() / 1000;
	struct stat st;

	return fstatat(store->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size == 0 && st.st_mtim.tv_sec < booted_s;
}

/* 1: it is this interface's now; 0: it is given already; -1 with err. */
static int reserve(const struct store *store, const struct addr *address, size_t set,
		   struct err *err)
{
	char name[ADDR_TEXT_SIZE];
	int rc;

	addr_print(address, name);
	rc = linkat(store->dir, DRAFT, store->dir, name, 0);
	if (rc < 0 && errno == EEXIST && is_left_empty(store, name) &&
	    unlinkat(store->dir, name, 0) == 0)
		rc = linkat(store->dir, DRAFT, store->dir, name, 0);
	if (rc < 0)
		return errno == EEXIST ? 0 : refused(err, "write", name);
	if (write_last(store, set, name, err) == 0)
		return 1;
	(void)unlinkat(store->dir, name, 0);
	return -1;
}

static struct addr last_given(const struct store *store, size_t set)
{
	auto_free char *name = str_printf(LAST "%zu", set);
	auto_strbuf struct strbuf text = {0};
	struct addr address = {0};

	if (read_file(store->dir, name, ADDR_TEXT_SIZE, &text, NULL) == 1)
		(void)addr_parse(strbuf_str(&text), &address);
	return address;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

/* An address that is asked for, and is of this set, is taken off the list. */
static bool take_wanted(struct host_local_config *config, const struct host_local_set *set,
			struct addr *ret)
{
	for (size_t i = 0; i < config->n_wanted; i++) {
		if (!host_local_range_of(set, &config->wanted[i]))
			continue;
		*ret = config->wanted[i];
		config->n_wanted--;
		memmove(&config->wanted[i], &config->wanted[i + 1],
			(config->n_wanted - i) * sizeof(config->wanted[0]));
		return true;
	}
	return false;
}

static int give_wanted(const struct store *store, const struct host_local_set *set, size_t number,
		       const struct addr *wanted, const struct host_local_range **ret,
		       struct err *err)
{
	char text[ADDR_TEXT_SIZE];
	int rc;

	addr_print(wanted, text);
	*ret = host_local_range_of(set, wanted);
	if (addr_same(wanted, &(*ret)->gateway))
		return err_set(err, ERR_INVALID, "BadField",
			       "host-local: %s is the gateway, a pod cannot have it", text);
	rc = reserve(store, wanted, number, err);
	return rc == 0 ? err_set(err, ERR_CONFLICT, "AddressInUse",
				 "host-local: %s is another pod's: see its file in dataDir", text)
		       : rc;
}

/* A second ADD without a DEL, which the specification rules out, is refused. */
static int check_first(const struct store *store, const struct host_local_set *set, struct err *err)
{
	json_auto_t *names = names_of_owner(store, err);
	size_t i;
	json_t *name;

	if (!names)
		return -1;
	json_array_foreach (names, i, name) {
		struct addr address;

		if (addr_parse(json_string_value(name), &address) &&
		    host_local_range_of(set, &address))
			return err_set(err, ERR_CONFLICT, "AddressInUse",
				       "host-local: the interface has %s already: DEL comes before "
				       "a second ADD",
				       json_string_value(name));
	}
	return 0;
}

static int give_any(const struct store *store, const struct host_local_set *set, size_t number,
		    struct addr *ret_address, const struct host_local_range **ret, struct err *err)
{
	struct addr last = last_given(store, number);
	struct host_local_walk walk;
	int rc;

	if (check_first(store, set, err))
		return -1;
	host_local_walk_init(&walk, set, &last);
	while ((*ret = host_local_walk_next(&walk, ret_address))) {
		rc = reserve(store, ret_address, number, err);
		if (rc != 0)
			return rc;
	}
	return err_set(err, ERR_TRANSIENT, "NoAddress",
		       "host-local: all addresses of ranges[%zu] are in use", number);
}

static int give_address(const struct store *store, struct host_local_config *config, size_t number,
			json_t *result, struct err *err)
{
	const struct host_local_set *set = &config->sets[number];
	const struct host_local_range *range = NULL;
	char text[ADDR_TEXT_SIZE], gateway[ADDR_TEXT_SIZE];
	struct addr address;
	int rc;

	if (take_wanted(config, set, &address))
		rc = give_wanted(store, set, number, &address, &range, err);
	else
		rc = give_any(store, set, number, &address, &range, err);
	if (rc < 0)
		return -1;
	address.prefix = range->subnet.prefix;
	addr_print_prefix(&address, text);
	addr_print(&range->gateway, gateway);
	result_add_ip(result, text, gateway, -1);
	return 0;
}

static int give_all(const struct store *store, struct host_local_config *config, json_t *result,
		    struct err *err)
{
	char text[ADDR_TEXT_SIZE];

	for (size_t i = 0; i < config->n_sets; i++)
		if (give_address(store, config, i, result, err)) {
			/* Before the first one there is nothing of this call. */
			if (i > 0)
				(void)release_addresses(store, NULL);
			return -1;
		}
	if (config->n_wanted == 0)
		return 0;
	(void)release_addresses(store, NULL);
	addr_print(&config->wanted[0], text);
	return err_set(err, ERR_INVALID, "BadField",
		       "host-local: %s is asked for, and of none of the ranges", text);
}

static int read_dns(const struct plugin_call *call, const struct host_local_config *config,
		    json_t *result, struct err *err)
{
	auto_close int found = -1, fd = -1;
	auto_strbuf struct strbuf text = {0};

	if (!config->resolv_conf)
		return 0;
	found = root_open(call->call->root, config->resolv_conf, O_PATH | O_CLOEXEC, 0);
	fd = open_regular(found, O_RDONLY);
	if (fd < 0)
		return refused(err, "open", config->resolv_conf);
	if (read_open(fd, RESOLV_CONF_MAX, &text, err))
		return err_in(err, "host-local: resolvConf %s", config->resolv_conf);
	json_put(result, "dns", host_local_dns(strbuf_str(&text)));
	return 0;
}

static int host_local_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	auto_host_local_config struct host_local_config config = {0};
	auto_store struct store store = {-1, -1, ""};
	json_auto_t *result = NULL, *printed = json_object();

	if (host_local_config_read(call->call->config, call->call->args, false, &config, err))
		return -1;
	json_put(printed, "routes", json_incref((json_t *)config.routes));
	if (result_read(printed, "1.1.0", &result, err))
		return err_in(err, "host-local");
	if (read_dns(call, &config, result, err) || store_open(call, &config, true, &store, err) ||
	    write_new(&store, DRAFT, store.owner, err))
		return -1;
	if (give_all(&store, &config, result, err)) {
		(void)unlinkat(store.dir, DRAFT, 0);
		return -1;
	}
	(void)unlinkat(store.dir, DRAFT, 0);
	*ret_result = take_ptr(result);
	return 0;
}

/* ---- CHECK, DEL ------------------------------------------------------------------------------ */

static int host_local_check(const struct plugin_call *call, struct err *err)
{
	auto_host_local_config struct host_local_config config = {0};
	auto_store struct store store = {-1, -1, ""};
	json_auto_t *names = NULL;

	if (host_local_config_read(call->call->config, call->call->args, false, &config, err) ||
	    store_open(call, &config, false, &store, err))
		return -1;
	names = store.dir < 0 ? json_array() : names_of_owner(&store, err);
	if (!names)
		return -1;
	if (json_array_size(names) == 0)
		return err_set(err, ERR_HOST, "NotAsAdded",
			       "host-local: the interface has no address in %s/%s", config.data_dir,
			       config.network);
	return 0;
}

/* What is wrong with ranges does not keep an address. */
static int host_local_del(const struct plugin_call *call, struct err *err)
{
	auto_host_local_config struct host_local_config config = {0};
	auto_store struct store store = {-1, -1, ""};

	if (host_local_config_read(call->call->config, NULL, true, &config, err) ||
	    store_open(call, &config, false, &store, err))
		return -1;
	return store.dir < 0 ? 0 : release_addresses(&store, err);
}

const struct plugin plugin_host_local = {
	.type = "host-local",
	.is_common = true,
	.add = host_local_add,
	.check = host_local_check,
	.del = host_local_del,
};
