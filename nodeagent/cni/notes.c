/*
 * See the header.
 */
#include "nodeagent/cni/notes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cni/wire.h"
#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

static int is_note(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

void notes_each(int state, void (*note)(void *arg, const char *name, const void *data, size_t len),
		void *arg)
{
	struct dirent **list = NULL;
	int n = scandirat(state, WIRE_NOTES, &list, is_note, alphasort);

	for (int i = 0; i < n; i++) {
		auto_free char *path = str_printf(WIRE_NOTES "/%s", list[i]->d_name);
		auto_strbuf struct strbuf data = {0};

		if (fs_read(state, path, WIRE_MAX, &data, NULL) == 0)
			note(arg, list[i]->d_name, data.data, data.len);
		free(list[i]);
	}
	free(list);
}

void notes_remove(int state, const char *name)
{
	auto_free char *path = str_printf(WIRE_NOTES "/%s", name);

	(void)unlinkat(state, path, 0);
}
