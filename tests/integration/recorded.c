// SPDX-License-Identifier: Apache-2.0
/*
 * recorded: does an object of a cluster hold what was recorded?
 *
 * 	recorded FILE ID <spec of a NodeState, or NetworkAttachmentDefinition; nothing: there is
 * 	none
 *
 * FILE is policies.json or networks.json. Prints what differs. Exit status: 0 agrees (or the case
 * is listed as different on purpose), 1 differs, 2 bad input.
 */
#include <fcntl.h>
#include <stdio.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "tests/support/conformance.h"
#include "tests/support/recording.h"

#define OBJECT_SIZE_MAX (4 << 20)

/* NULL when stdin is empty. */
static int read_object(json_t **ret, struct err *err)
{
	auto_strbuf struct strbuf text = {0};

	if (fs_read(AT_FDCWD, "/dev/stdin", OBJECT_SIZE_MAX, &text, err) < 0)
		return -1;
	if (text.len == 0)
		return 0;
	*ret = json_parse(text.data, text.len, err);
	return *ret ? 0 : err_in(err, "standard input");
}

static int compare(const char *file, const char *id, char **ret, struct err *err)
{
	json_auto_t *cases = conformance_read(file, err), *differences = NULL, *object = NULL;
	const json_t *recorded = json_find(cases, "id", id);

	if (!cases)
		return -1;
	if (!recorded)
		return err_set(err, ERR_INVALID, "BadCase", "%s: has no case \"%s\"", file, id);
	differences = conformance_differences("sriov-differences.txt", err);
	if (!differences || read_object(&object, err) < 0)
		return -1;
	if (!json_at(differences, id))
		*ret = str_eq(file, "networks.json") ? recording_nad_difference(recorded, object)
						     : recording_spec_difference(recorded, object);
	return 0;
}

int main(int argc, char **argv)
{
	auto_free char *difference = NULL;
	struct err err = {0};

	json_init();
	if (argc != 3) {
		fprintf(stderr, "usage: recorded FILE ID <OBJECT\n");
		return 2;
	}
	if (compare(argv[1], argv[2], &difference, &err) < 0) {
		fprintf(stderr, "recorded: %s\n", err.text);
		return 2;
	}
	if (difference)
		printf("%s", difference);
	return difference ? 1 : 0;
}
