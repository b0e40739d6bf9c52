// SPDX-License-Identifier: Apache-2.0
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

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

/* A member that is longer is no configuration. */
#define TEXT_MAX     65536
#define NAME_MAX_LEN 4096
/* Bytes of the kept answer; a longer one is not read again. */
#define ANSWER_MAX (1 << 20)

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

/*
 * Which file, in which state. Whoever replaces it changes the inode or the time of change; 1 is
 * what we look for in it.
 */
static char *identity(const struct stat *of)
{
	return str_printf("1 %llu:%llu %lld %lld.%09ld %lld.%09ld", (unsigned long long)of->st_dev,
			  (unsigned long long)of->st_ino, (long long)of->st_size,
			  (long long)of->st_mtim.tv_sec, of->st_mtim.tv_nsec,
			  (long long)of->st_ctim.tv_sec, of->st_ctim.tv_nsec);
}

/* What was read of this file; NULL: it was not. New. */
static json_t *kept_answer(const struct host *host, const char *of)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *kept = NULL;

	if (!sysfs_read_file(host, INITRAMFS_ANSWER, ANSWER_MAX, &text))
		return NULL;
	kept = json_parse(strbuf_str(&text), text.len, NULL);
	return str_eq(json_str_at(kept, "of"), of) ? json_incref(json_object_get(kept, "facts"))
						   : NULL;
}

/* Without it the next look takes longer: not worth an error. */
static void keep_answer(const struct host *host, const char *of, json_t *facts)
{
	json_auto_t *kept = json_pack("{s:s, s:O}", "of", of, "facts", facts);
	auto_free char *text = json_text(kept);
	auto_close int folder = host_state_folder(host);
	struct err err = {0};

	if (folder < 0)
		(void)err_sys(&err, "FileNotWritten", "make /" HOST_STATE_FOLDER);
	if (folder < 0 ||
	    root_write_atomic(host->root, INITRAMFS_ANSWER, text, strlen(text), 0600, &err) < 0)
		log_warn("cannot keep what the initramfs says, unpacking it again next time",
			 F_ERR(&err));
}

static json_t *read_facts(const struct host *host, int fd, const char *path)
{
	json_auto_t *facts = json_object();

	json_put(facts, "file", json_fmt("/%s", path));
	json_put_bool(facts, "carries", false);
	json_put_bool(facts, "lists", false);
	json_put(facts, "modprobe", json_object());
	return scan_file(host, fd, facts) ? take_ptr(facts) : NULL;
}

json_t *initramfs_look(struct host *host)
{
	auto_free char *path = NULL, *of = NULL;
	auto_close int fd = open_initramfs(host, &path);
	struct stat now;
	json_t *facts;

	if (fd < 0 || fstat(fd, &now) < 0)
		return NULL;
	of = identity(&now);
	facts = host->keeps_answers ? kept_answer(host, of) : NULL;
	if (facts)
		return facts;
	facts = read_facts(host, take_fd(&fd), path);
	/* What cannot be read may be so tomorrow: with a program that unpacks it. */
	if (facts && host->keeps_answers)
		keep_answer(host, of, facts);
	return facts;
}
