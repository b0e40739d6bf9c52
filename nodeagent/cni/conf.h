/*
 * Our file in the runtime's CNI folder (nodeagent/meta/conf.h), kept as it should be: written when
 * the server of plugins can be asked, anew when the cluster's network changes, put back when
 * somebody removes it. It stays when we end: a node that boots finds its networks as they were.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_CONF_H
#define ORBWEAVER_NODEAGENT_CNI_CONF_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"
#include "nodeagent/meta/conf.h"

enum {
	/* The folder is small: looking costs less than a watch that has to be renewed. */
	CONF_LOOK_MS = 3000,
	/* How often it is put back before it is left to who removes it. */
	CONF_FIGHTS_MAX = 3,
	/* So many looks in a row that find it end a fight: ten minutes. */
	CONF_PEACE_LOOKS = 200,
};

struct conf_config {
	struct loop *loop;
	int root;            /* descriptor of the host's root */
	const char *dir;     /* folder on the host: "/etc/cni/net.d" */
	const char *bin_dir; /* where our plugins are: "/opt/cni/bin" */
	enum meta_mode mode;
	bool isolates;      /* as in struct meta_conf_input */
	const char *shared; /* the same */
};

struct conf;

/*
 * What the folder has for a runtime, as struct meta_conf_input wants it, new. A file that cannot be
 * read has no "text".
 */
json_t *conf_files(int root, const char *dir);

/* Borrowed, all of it. The first look is made at once. */
struct conf *conf_new(const struct conf_config *config);
/* The file stays. Accepts NULL. */
void conf_free(struct conf *conf);

/* Look now, and do what is to be done. What should be known is logged once. */
void conf_look(struct conf *conf);

/* Take the file away, for who removes all that is ours. ERR_HOST "ConfNotWritten". */
int conf_remove(int root, const char *dir, struct err *err);

#endif
