// SPDX-License-Identifier: Apache-2.0
/*
 * Writing: headers of ustar and deflate of zlib by hand, because the writers of the static
 * libarchive bring all its formats along. Reading: libarchive's tar and gzip alone, into memory,
 * each name and size checked before it is taken. Folders are walked by descriptors, so no link
 * leads out.
 */
#include "cli/support/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

enum {
	FILE_MODE = 0600,
	FOLDER_MODE = 0700,
	PIECE = 65536,
	/* Folders below the top one. */
	DEPTH_MAX = 4,
};

#define TOP BUNDLE_TOP "/"

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	bool begins = true;
	size_t len = strlen(name);

	if (len == 0 || len > BUNDLE_NAME_MAX || name[len - 1] == '/')
		return false;
	for (; *name; name++) {
		if (begins && (*name == '.' || *name == '/'))
			return false;
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/",
			    *name))
			return false;
		begins = *name == '/';
	}
	return true;
}

/* What file managers leave behind: no name of ours, and nothing that leads elsewhere. */
static bool is_hidden(const char *name)
{
	bool found = false;

	for (const char *step = name; *step; step += strspn(step, "/")) {
		size_t len = strcspn(step, "/");

		if (len == 2 && strncmp(step, "..", 2) == 0)
			return false;
		found = found || step[0] == '.';
		step += len;
	}
	return found && name[0] != '/';
}

/* ---- writing --------------------------------------------------------------------------------- */

struct bundle {
	char *path;
	int64_t now_us;
	bool is_file;
	z_stream zip; /* of a file */
	struct strbuf packed;
	size_t size;
};

/*
 * The header of a file in a ustar archive (POSIX.1-2008, pax, "ustar Interchange Format"): numbers
 * are octal text. Owner and group are 0.
 */
struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155],
		unused[12];
};
_Static_assert(sizeof(struct ustar) == 512, "a block");

/* how: of deflate(). */
static void compress_bytes(struct bundle *bundle, const void *bytes, size_t len, int how)
{
	z_stream *zip = &bundle->zip;

	zip->next_in = (Bytef *)bytes;
	zip->avail_in = (uInt)len;
	do {
		strbuf_reserve(&bundle->packed, PIECE);
		zip->next_out = (Bytef *)bundle->packed.data + bundle->packed.len;
		zip->avail_out = PIECE;
		if (deflate(zip, how) == Z_STREAM_ERROR)
			abort(); /* only our own misuse leads here (zlib.h) */
		bundle->packed.len += PIECE - zip->avail_out;
	} while (zip->avail_out == 0);
}

static bool folder_is_empty(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool is_empty = dir != NULL;

	while (is_empty && (entry = readdir(dir)))
		is_empty = str_eq(entry->d_name, ".") || str_eq(entry->d_name, "..");
	if (dir)
		closedir(dir);
	return is_empty;
}

static int create_folder(const char *path, struct err *err)
{
	if (mkdir(path, FOLDER_MODE) == 0 || (errno == EEXIST && folder_is_empty(path)))
		return 0;
	if (errno == EEXIST || errno == ENOTDIR)
		return err_set(err, ERR_INVALID, "BundleExists",
			       "%s: is there already, and no empty folder; a file's name ends in "
			       ".tar.gz",
			       path);
	return err_sys(err, "FileNotWritten", "%s", path);
}

int bundle_create(const char *path, int64_t now_us, struct bundle **ret, struct err *err)
{
	bool is_file = str_ends(path, ".tar.gz") || str_ends(path, ".tgz");
	struct bundle *bundle = NULL;

	assert(path && ret);
	if (!is_file && create_folder(path, err) < 0)
		return -1;
	bundle = mem_new(struct bundle);
	bundle->path = str_dup(path);
	bundle->now_us = now_us;
	bundle->is_file = is_file;
	/* 15 is the largest window, 16 more asks for gzip's frame (zlib.h). */
	if (is_file && deflateInit2(&bundle->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
				    Z_DEFAULT_STRATEGY) != Z_OK)
		mem_exhausted();
	*ret = bundle;
	return 0;
}

static int add_to_folder(struct bundle *bundle, const char *name, const void *text, size_t len,
			 struct err *err)
{
	auto_free char *path = str_below(bundle->path, name), *folder = str_dup(path);

	*strrchr(folder, '/') = '\0';
	if (fs_make_dirs(folder, FOLDER_MODE) < 0)
		return err_sys(err, "FileNotWritten", "%s", folder);
	bundle->size += len;
	return fs_write_atomic(AT_FDCWD, path, text, len, FILE_MODE, err);
}

int bundle_add(struct bundle *bundle, const char *name, const void *text, size_t len,
	       struct err *err)
{
	static const char zeros[sizeof(struct ustar)];
	auto_free char *path = NULL;
	struct ustar header;
	unsigned int sum = 0;

	assert(name && (text || len == 0));
	if (!is_name(name) || strlen(name) > BUNDLE_NAME_MAX)
		return err_set(err, ERR_INVALID, "BadName", "%.64s: no name for a file", name);
	if (len > BUNDLE_PART_MAX)
		return err_set(err, ERR_INVALID, "PartTooLarge", "%s: more than %d bytes", name,
			       BUNDLE_PART_MAX);
	if (!bundle->is_file)
		return add_to_folder(bundle, name, text, len, err);
	path = str_printf(TOP "%s", name);
	/* The checksum counts itself as blanks. */
	header = (struct ustar){.type = '0', .magic = "ustar", .version = {'0', '0'}};
	snprintf(header.name, sizeof(header.name), "%s", path);
	snprintf(header.mode, sizeof(header.mode), "%07o", FILE_MODE);
	snprintf(header.uid, sizeof(header.uid), "%07o", 0);
	snprintf(header.gid, sizeof(header.gid), "%07o", 0);
	snprintf(header.size, sizeof(header.size), "%011zo", len);
	snprintf(header.mtime, sizeof(header.mtime), "%011llo",
		 (unsigned long long)(bundle->now_us / 1000000));
	memset(header.sum, ' ', sizeof(header.sum));
	for (size_t i = 0; i < sizeof(header); i++)
		sum += ((const unsigned char *)&header)[i];
	snprintf(header.sum, sizeof(header.sum) - 1, "%06o", sum);
	compress_bytes(bundle, &header, sizeof(header), Z_NO_FLUSH);
	compress_bytes(bundle, text, len, Z_NO_FLUSH);
	compress_bytes(bundle, zeros, -len % sizeof(header), Z_NO_FLUSH);
	return 0;
}

int bundle_finish(struct bundle *bundle, size_t *ret_size, struct err *err)
{
	static const char end[2 * sizeof(struct ustar)];

	if (bundle->is_file) {
		compress_bytes(bundle, end, sizeof(end), Z_FINISH);
		bundle->size = bundle->packed.len;
		if (fs_write_atomic(AT_FDCWD, bundle->path, bundle->packed.data, bundle->packed.len,
				    FILE_MODE, err) < 0)
			return -1;
	}
	if (ret_size)
		*ret_size = bundle->size;
	return 0;
}

void bundle_free(struct bundle *bundle)
{
	if (!bundle)
		return;
	if (bundle->is_file)
		deflateEnd(&bundle->zip);
	strbuf_done(&bundle->packed);
	mem_free(bundle->path);
	mem_free(bundle);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int bad_dump(struct err *err, const char *name, const char *why)
{
	return err_set(err, ERR_INVALID, "BadDump", "%.200s: %s", name, why);
}

/* What may still come. */
struct budget {
	size_t bytes, parts;
};

static int take(struct budget *budget, const char *name, int64_t len, struct err *err)
{
	if (budget->parts == 0)
		return err_set(err, ERR_INVALID, "BadDump", "more than %d files in it",
			       BUNDLE_PARTS_MAX);
	budget->parts--;
	if (len < 0 || len > BUNDLE_PART_MAX || (size_t)len > budget->bytes)
		return bad_dump(err, name, "is larger than any part of a dump");
	budget->bytes -= (size_t)len;
	return 0;
}

/* The name below the top folder. The text before it may be any that tar(1) writes. */
static const char *below_top(const char *path)
{
	while (str_starts(path, "./"))
		path += 2;
	return str_starts(path, TOP) ? path + strlen(TOP) : path;
}

static int unpack_entry(struct archive *archive, struct archive_entry *entry, struct budget *budget,
			const struct bundle_reader *reader, struct err *err)
{
	const char *path = archive_entry_pathname(entry);
	const char *name = path ? below_top(path) : "?";
	int64_t len = archive_entry_size(entry);
	auto_strbuf struct strbuf text = {0};
	la_ssize_t n = 0;

	if (archive_entry_symlink(entry) || archive_entry_hardlink(entry))
		return bad_dump(err, name, "is a link; a dump has none");
	if (archive_entry_filetype(entry) == AE_IFDIR)
		return take(budget, name, 0, err);
	if (archive_entry_filetype(entry) != AE_IFREG)
		return bad_dump(err, name, "is no plain file");
	if (!is_name(name) && !is_hidden(name))
		return bad_dump(err, name, "is no name of a file in a dump");
	if (take(budget, name, len, err) < 0)
		return -1;
	if (!is_name(name) || !reader->wants(reader->arg, name))
		return 0;
	do {
		strbuf_reserve(&text, PIECE);
		n = archive_read_data(archive, text.data + text.len, PIECE);
		if (n > 0)
			text.len += (size_t)n;
	} while (n > 0 && (int64_t)text.len <= len);
	if (n != 0 || (int64_t)text.len != len)
		return bad_dump(err, name,
				n < 0 ? "cannot be read to its end"
				      : "has another size than it says");
	text.data[text.len] = '\0';
	return reader->part(reader->arg, name, text.data, text.len, err);
}

static int unpack_all(struct archive *archive, const struct bundle_reader *reader, struct err *err)
{
	struct budget budget = {BUNDLE_TOTAL_MAX, BUNDLE_PARTS_MAX};
	struct archive_entry *entry = NULL;
	int status;

	while ((status = archive_read_next_header(archive, &entry)) == ARCHIVE_OK ||
	       status == ARCHIVE_WARN)
		if (unpack_entry(archive, entry, &budget, reader, err) < 0)
			return -1;
	if (status != ARCHIVE_EOF)
		return err_set(err, ERR_INVALID, "BadDump",
			       "no archive of a dump, or not all of it: %s",
			       archive_error_string(archive) ?: "?");
	return 0;
}

int bundle_unpack(const void *bytes, size_t len, const struct bundle_reader *reader,
		  struct err *err)
{
	struct archive *archive = archive_read_new();
	int result;

	assert((bytes || len == 0) && reader);
	if (!archive)
		mem_exhausted();
	if (archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
	    archive_read_support_format_tar(archive) != ARCHIVE_OK ||
	    archive_read_open_memory(archive, bytes, len) != ARCHIVE_OK)
		result = err_set(err, ERR_INVALID, "BadDump",
				 "no archive of a dump, or not all of it: %s",
				 archive_error_string(archive) ?: "?");
	else
		result = unpack_all(archive, reader, err);
	archive_read_free(archive);
	return result;
}

/* ---- folders --------------------------------------------------------------------------------- */

struct walk {
	const struct bundle_reader *reader;
	struct budget budget;
};

static int walk_folder(struct walk *walk, int fd, const char *above, int depth, struct err *err);

static int read_file(struct walk *walk, int fd, const char *name, struct err *err)
{
	const struct bundle_reader *reader = walk->reader;
	auto_strbuf struct strbuf text = {0};
	ssize_t n;

	if (!reader->wants(reader->arg, name))
		return 0;
	do {
		strbuf_reserve(&text, PIECE);
		n = read(fd, text.data + text.len, PIECE);
		if (n > 0)
			text.len += (size_t)n;
	} while ((n > 0 && text.len <= BUNDLE_PART_MAX) || (n < 0 && errno == EINTR));
	if (n < 0)
		return err_sys(err, "FileUnreadable", "%s", name);
	if (take(&walk->budget, name, (int64_t)text.len, err) < 0)
		return -1;
	text.data[text.len] = '\0';
	return reader->part(reader->arg, name, text.data, text.len, err);
}

/* fd: the folder; it is opened by its name only here, so no link is followed. */
static int walk_one(struct walk *walk, int folder, const char *entry, const char *above, int depth,
		    struct err *err)
{
	auto_free char *name = *above ? str_below(above, entry) : str_dup(entry);
	auto_close int fd =
		openat(folder, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (!is_name(name))
		return 0; /* a user's notes, a file manager's */
	if (fd < 0 && errno == ELOOP)
		return bad_dump(err, name, "is a link; a dump has none");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "FileUnreadable", "%s", name);
	if (S_ISREG(st.st_mode))
		return read_file(walk, fd, name, err);
	if (!S_ISDIR(st.st_mode))
		return bad_dump(err, name, "is no plain file");
	if (depth == DEPTH_MAX)
		return bad_dump(err, name, "is deeper than any part of a dump");
	return walk_folder(walk, fd, name, depth + 1, err);
}

struct names {
	char **items;
	size_t n;
};

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		mem_free(names->items[i]);
	mem_free(names->items);
}

static int list_names(struct walk *walk, int fd, struct names *ret, struct err *err)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!dir) {
		int result = err_sys(err, "FileUnreadable", "folder of a dump");

		if (copy >= 0)
			close(copy);
		return result;
	}
	while ((entry = readdir(dir)) && ret->n <= walk->budget.parts) {
		if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
			continue;
		ret->items = mem_realloc(ret->items, (ret->n + 1) * sizeof(*ret->items));
		ret->items[ret->n++] = str_dup(entry->d_name);
	}
	closedir(dir);
	if (ret->n > 1)
		qsort(ret->items, ret->n, sizeof(*ret->items), str_compare);
	return 0;
}

static int walk_folder(struct walk *walk, int fd, const char *above, int depth, struct err *err)
{
	auto_call(names_done) struct names names = {0};

	if (list_names(walk, fd, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++)
		if (walk_one(walk, fd, names.items[i], above, depth, err) < 0)
			return -1;
	return 0;
}

bool bundle_is(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	unsigned char magic[2] = {0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (S_ISDIR(st.st_mode))
		return true;
	/* RFC 1952, 2.3.1. Pipes are read once, by one reader. */
	return S_ISREG(st.st_mode) && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
	       magic[0] == 0x1f && magic[1] == 0x8b;
}

int bundle_read(const char *path, const struct bundle_reader *reader, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
	auto_strbuf struct strbuf bytes = {0};
	int result;

	if (fd >= 0) {
		struct walk walk = {reader, {BUNDLE_TOTAL_MAX, BUNDLE_PARTS_MAX}};

		result = walk_folder(&walk, fd, "", 0, err);
	} else {
		if (fs_read(AT_FDCWD, path, BUNDLE_TOTAL_MAX, &bytes, err) < 0)
			return -1;
		result = bundle_unpack(strbuf_str(&bytes), bytes.len, reader, err);
	}
	return result < 0 ? err_in(err, "%s", path) : 0;
}
