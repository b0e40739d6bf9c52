// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/cni/notes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/wire.h"
#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

static int is_note(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* As strcmp() has it, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void notes_each(int state, const char *after, note_fn *note, void *arg)
{
	struct dirent **list = NULL;
	int n = scandirat(state, WIRE_NOTES, &list, is_note, by_name);
	bool goes_on = true;

	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		auto_free char *path = str_printf(WIRE_NOTES "/%s", name);
		auto_strbuf struct strbuf data = {0};

		if (goes_on && (!after || strcmp(name, after) > 0) &&
		    fs_read(state, path, WIRE_MAX, &data, NULL) == 0)
			goes_on = note(arg, name, data.data, data.len);
		free(list[i]);
	}
	free(list);
}

void notes_remove(int state, const char *name)
{
	auto_free char *path = str_printf(WIRE_NOTES "/%s", name);

	(void)unlinkat(state, path, 0);
}
