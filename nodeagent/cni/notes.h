/*
 * The notes that plugins left while nobody took their calls (cni/note.h), as the server reads them.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_NOTES_H
#define ORBWEAVER_NODEAGENT_CNI_NOTES_H

#include <stddef.h>

/* note(arg, …) for each, the oldest first. state: descriptor of the state's folder. */
void notes_each(int state, void (*note)(void *arg, const char *name, const void *data, size_t len),
		void *arg);
void notes_remove(int state, const char *name);

#endif
