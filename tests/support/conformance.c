// SPDX-License-Identifier: Apache-2.0
/* Reading recordings. See the header. */
#include "tests/support/conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define FOLDER        "tests/conformance"
#define FILE_SIZE_MAX (64 << 20)

json_t *conformance_read(const char *name, struct err *err)
{
	const char *set = getenv("CONFORMANCE");
	const char *folder = set ? set : FOLDER;
	auto_free char *path = str_printf("%s/%s", folder, name);
	auto_strbuf struct strbuf text = {0};
	json_t *value = NULL;

	if (fs_read(AT_FDCWD, path, FILE_SIZE_MAX, &text, err) < 0) {
		if (err->sys == ENOENT)
			(void)err_set(err, ERR_INVALID, "NoRecording", "there is no %s; %s", path,
				      set ? "unset CONFORMANCE, or set it to a folder of recordings"
					  : "run from the top of the clone");
		return NULL;
	}
	value = json_parse(strbuf_str(&text), text.len, err);
	if (!value)
		(void)err_in(err, "%s", path);
	return value;
}

json_t *conformance_differences(const char *name, struct err *err)
{
	auto_free char *path = str_printf("%s/%s", FOLDER, name);
	auto_strbuf struct strbuf text = {0};
	json_t *differences = NULL;
	char *rest = NULL, *line = NULL;

	if (fs_read(AT_FDCWD, path, FILE_SIZE_MAX, &text, err) < 0)
		return NULL;
	differences = json_object();
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		const char *id = strsep(&line, " ");

		if (line && id[0] != '#')
			json_put_str(differences, id, line);
	}
	return differences;
}
