/*
 * The initramfs. See the header.
 */
#include "nodeagent/host/initramfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

/* A member that is longer is no configuration. */
#define TEXT_MAX     65536
#define NAME_MAX_LEN 4096

/* ---- archives -------------------------------------------------------------------------------- */

struct member {
	char name[NAME_MAX_LEN + 1];
	uint32_t mode;
	uint32_t size;
};

static bool hex_field(const char *header, int number, uint32_t *ret)
{
	uint32_t value = 0;

	for (const char *p = header + 6 + 8 * number, *end = p + 8; p < end; p++) {
		const char *digits = "0123456789abcdef";
		const char *digit =
			*p ? strchr(digits, *p >= 'A' && *p <= 'F' ? *p + 32 : *p) : NULL;

		if (!digit)
			return false;
		value = value << 4 | (uint32_t)(digit - digits);
	}
	*ret = value;
	return true;
}

static bool skip(FILE *in, size_t n)
{
	char chunk[8192];

	while (n > 0) {
		size_t part = n < sizeof(chunk) ? n : sizeof(chunk);

		if (fread(chunk, 1, part, in) != part)
			return false;
		n -= part;
	}
	return true;
}

static size_t padding(size_t n)
{
	return (4 - n % 4) % 4;
}

static bool read_member(FILE *in, struct member *ret)
{
	char header[110];
	uint32_t name_size;

	if (fread(header, 1, sizeof(header), in) != sizeof(header) ||
	    (memcmp(header, "070701", 6) != 0 && memcmp(header, "070702", 6) != 0) ||
	    !hex_field(header, 1, &ret->mode) || !hex_field(header, 6, &ret->size) ||
	    !hex_field(header, 11, &name_size) || name_size == 0 || name_size > NAME_MAX_LEN ||
	    fread(ret->name, 1, name_size, in) != name_size)
		return false;
	ret->name[name_size] = '\0';
	return skip(in, padding(sizeof(header) + name_size));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_below(const char *path, const char *folder)
{
	const char *at = strstr(path, folder);

	return at && (at == path || at[-1] == '/') && str_ends(path, ".conf");
}

static bool is_module_list(const char *name)
{
	return str_ends(name, "conf/modules") || str_ends(name, "etc/modules") ||
	       is_below(name, "modules-load.d/");
}

/* ib_core, or what cannot be loaded without it. */
static bool needs_ib_core(const char *line, size_t len)
{
	static const char *const prefixes[] = {"ib_",     "rdma_", "iw_cm",  "mlx5_ib",
					       "mlx4_ib", "irdma", "bnxt_re"};
	auto_free char *name = str_ndup(line, len);

	for (char *p = name; *p; p++)
		if (*p == '-')
			*p = '_';
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_starts(name, prefixes[i]))
			return true;
	return false;
}

static bool lists_ib_core(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		size_t blank = strspn(text, " \t");

		if (blank < len && needs_ib_core(text + blank, len - blank))
			return true;
		text += len + (text[len] == '\n');
	}
	return false;
}

static void take_text(const struct member *member, const char *text, json_t *facts)
{
	json_auto_t *name = NULL;

	if (is_module_list(member->name)) {
		if (lists_ib_core(text))
			json_put_bool(facts, "lists", true);
		return;
	}
	/* A file may be called anything, a key is UTF-8. */
	name = json_fmt("%s", base_name(member->name));
	json_put_str(json_need_object(facts, "modprobe"), json_string_value(name), text);
}

static bool take_member(FILE *in, const struct member *member, json_t *facts)
{
	auto_free char *text = NULL;

	if (str_starts(base_name(member->name), "ib_core.ko"))
		json_put_bool(facts, "carries", true);
	if ((member->mode & S_IFMT) != S_IFREG || member->size > TEXT_MAX ||
	    (!is_module_list(member->name) && !is_below(member->name, "modprobe.d/")))
		return skip(in, member->size + padding(member->size));
	text = mem_zalloc(member->size + 1);
	if (fread(text, 1, member->size, in) != member->size)
		return false;
	take_text(member, text, facts);
	return skip(in, padding(member->size));
}

/* Zeroes fill up to a block; then comes another archive, something compressed, or nothing. */
static bool next_archive(FILE *in)
{
	int c;

	do
		c = getc(in);
	while (c == 0);
	if (c == EOF)
		return false;
	(void)ungetc(c, in);
	return c == '0';
}

bool initramfs_scan(FILE *in, json_t *facts)
{
	struct member *member = mem_new(struct member);
	bool whole = true;

	while (whole && next_archive(in)) {
		do
			whole = read_member(in, member) && take_member(in, member, facts);
		while (whole && !str_eq(member->name, "TRAILER!!!"));
	}
	free(member);
	return whole;
}

/* ---- compressed ones ------------------------------------------------------------------------- */

/*
 * Whoever packed the initramfs has the program; the kernel knows a few more formats that no
 * distribution uses by default.
 */
static const char *unpacker(FILE *in)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *program;
	} formats[] = {
		{"\x28\xb5\x2f\xfd", 4, "zstd"},
		{"\x1f\x8b", 2, "gzip"},
		{"\xfd\x37zXZ", 5, "xz"},
		{"\x02\x21\x4c\x18", 4, "lz4"},
	};
	char start[5] = "";
	long at = ftell(in);
	size_t n;

	if (at < 0)
		return NULL;
	n = fread(start, 1, sizeof(start), in);
	if (fseek(in, at, SEEK_SET) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (n >= formats[i].len && memcmp(start, formats[i].magic, formats[i].len) == 0)
			return formats[i].program;
	return NULL;
}

/* The host's program, in the host's root; only async-signal-safe calls until exec. */
static _Noreturn void unpack(int root, const char *program, int from, int to)
{
	char *const arguments[] = {(char *)program, "-dc", NULL};
	char *const environment[] = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin", NULL};

	if (dup2(from, 0) >= 0 && dup2(to, 1) >= 0 && fchdir(root) == 0 && chroot(".") == 0)
		(void)execvpe(program, arguments, environment);
	_exit(127);
}

static bool scan_unpacked(const struct host *host, FILE *in, const char *program, json_t *facts)
{
	auto_fclose FILE *out = NULL;
	int pipe_fds[2], status;
	bool whole = false;
	pid_t child;

	/* The child goes on reading where we are. */
	if (lseek(fileno(in), ftell(in), SEEK_SET) < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return false;
	child = fork();
	if (child == 0)
		unpack(host->root, program, fileno(in), pipe_fds[1]);
	(void)close(pipe_fds[1]);
	out = fdopen(pipe_fds[0], "r");
	if (!out)
		(void)close(pipe_fds[0]);
	else if (child > 0)
		whole = initramfs_scan(out, facts);
	if (child < 0)
		return false;
	(void)kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return whole;
}

static bool scan_file(const struct host *host, int fd, json_t *facts)
{
	auto_fclose FILE *in = fdopen(fd, "r");
	const char *program;

	if (!in) {
		(void)close(fd);
		return false;
	}
	if (!initramfs_scan(in, facts))
		return false;
	/* All of it was archives; else the rest is compressed. */
	if (feof(in))
		return true;
	program = unpacker(in);
	return program && scan_unpacked(host, in, program, facts);
}

/* ---- finding it, and remembering ------------------------------------------------------------- */

struct initramfs_cache {
	struct stat of;
	json_t *facts; /* NULL: could not be read */
};

struct initramfs_cache *initramfs_cache_new(void)
{
	return mem_new(struct initramfs_cache);
}

void initramfs_cache_free(struct initramfs_cache *cache)
{
	if (!cache)
		return;
	json_decref(cache->facts);
	free(cache);
}

/* Debian and its children, Fedora and its, SUSE and Arch. */
static int open_initramfs(const struct host *host, char **ret_path)
{
	static const char *const names[] = {"boot/initrd.img-%s", "boot/initramfs-%s.img",
					    "boot/initrd-%s"};
	struct utsname system;

	if (uname(&system) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_free char *path = NULL;
		const char *percent = strchr(names[i], '%');
		int fd;

		path = str_printf("%.*s%s%s", (int)(percent - names[i]), names[i], system.release,
				  percent + 2);
		fd = root_open(host->root, path, O_RDONLY, 0);
		if (fd < 0)
			continue;
		*ret_path = take_ptr(path);
		return fd;
	}
	return -1;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

json_t *initramfs_look(struct host *host)
{
	struct initramfs_cache *cache = host->initramfs;
	auto_free char *path = NULL;
	auto_close int fd = open_initramfs(host, &path);
	struct stat now;

	if (fd < 0 || fstat(fd, &now) < 0)
		return NULL;
	if (is_same(&now, &cache->of))
		return json_deep_copy(cache->facts);

	json_decref(cache->facts);
	cache->of = now;
	cache->facts = json_object();
	json_put(cache->facts, "file", json_fmt("/%s", path));
	json_put_bool(cache->facts, "carries", false);
	json_put_bool(cache->facts, "lists", false);
	json_put(cache->facts, "modprobe", json_object());
	if (!scan_file(host, take_fd(&fd), cache->facts)) {
		json_decref(cache->facts);
		cache->facts = NULL;
	}
	return json_deep_copy(cache->facts);
}
