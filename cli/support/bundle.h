// SPDX-License-Identifier: Apache-2.0
/*
 * Named texts in a folder, or in a tar archive that is compressed: what a support dump is on disk.
 * The only user of libarchive and zlib.
 *
 * In an archive all names are below BUNDLE_TOP. Names are paths of letters, digits and "._-" whose
 * steps do not begin with a dot. Nothing is ever unpacked to disk: what is read comes from
 * strangers. An archive or a folder that has anything but plain files and folders in it, a path
 * that leads out of it, or more than the limits below is refused as a whole.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define BUNDLE_TOP "orbweaver-dump"

enum {
	BUNDLE_NAME_MAX = 84,        /* with BUNDLE_TOP it fits the header of a file */
	BUNDLE_PART_MAX = 512 << 20, /* bytes of one text */
	BUNDLE_TOTAL_MAX = 1 << 30,  /* of all, and of the compressed file */
	BUNDLE_PARTS_MAX = 10000,
};

/* ---- writing --------------------------------------------------------------------------------- */

struct bundle;

/*
 * A name that ends in .tar.gz or .tgz becomes a file, any other one a folder, which may be there if
 * it is empty. Only the user who runs the program may read them. Errors: ERR_INVALID
 * "BundleExists"; ERR_HOST "FileNotWritten".
 */
int bundle_create(const char *path, int64_t now_us, struct bundle **ret, struct err *err);

/* Errors: ERR_INVALID "BadName", "PartTooLarge"; ERR_HOST "FileNotWritten". */
int bundle_add(struct bundle *bundle, const char *name, const void *text, size_t len,
	       struct err *err);

/*
 * All is there. A file appears under its name only now. *ret_size, which may be NULL: bytes on
 * disk. Errors: ERR_HOST "FileNotWritten".
 */
int bundle_finish(struct bundle *bundle, size_t *ret_size, struct err *err);
void bundle_free(struct bundle *bundle);

/* ---- reading --------------------------------------------------------------------------------- */

struct bundle_reader {
	/* Is this one to be read? */
	bool (*wants)(void *arg, const char *name);
	/* Its text, borrowed and NUL-terminated. -1 with err ends reading. */
	int (*part)(void *arg, const char *name, const char *text, size_t len, struct err *err);
	void *arg;
};

/* A folder, or a file that begins as gzip does; what cannot be opened is none. */
bool bundle_is(const char *path);

/*
 * Visit the texts: in a file in the order in which they stand there, in a folder by name. Errors:
 * ERR_INVALID "BadDump", naming what is wrong; ERR_HOST "FileUnreadable"; those of reader->part.
 */
int bundle_read(const char *path, const struct bundle_reader *reader, struct err *err);

/* The same for the bytes of a file. */
int bundle_unpack(const void *bytes, size_t len, const struct bundle_reader *reader,
		  struct err *err);
