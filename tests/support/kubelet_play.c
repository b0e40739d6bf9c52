// SPDX-License-Identifier: Apache-2.0
/*
 * A kubelet whose pods come and go, beside a real agent on a real kernel: while a pod has a VF,
 * nobody may write to it.
 *
 *	kubelet-play DIR SECONDS SEED RESOURCE...
 *	kubelet-play DIR
 *
 * DIR is the kubelet's folder. With the first form pods come by chance, ask for one to three
 * devices of a RESOURCE and have them for up to six seconds. With the second one they come and go
 * as lines of standard input say, until it ends: "come POD RESOURCE N", "go POD", POD as
 * NAMESPACE/NAME; "gpu POD ID": a device of nvidia.com/gpu, before it comes or afterwards. What a
 * VF is when it is given away (its function, its driver, its MTU) it has to be until its pod has
 * gone: sysfs makes each anew when a VF is removed or bound again, with another inode. Prints each
 * pod, each difference as "WRITTEN TO …", and at the end "given N, turned away M, written to K".
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "tests/fakes/kubelet_node.h"

enum { PODS_MAX = 8, VFS_MAX = 3, TICK_MS = 20, HOLD_MAX_MS = 6000, PAUSE_MAX_MS = 400 };

struct vf {
	const char *address; /* borrowed from the node */
	ino_t function, driver;
	int mtu; /* -1: no interface */
};

struct pod {
	char name[32];
	struct vf vfs[VFS_MAX];
	size_t n_vfs;
	int64_t until_ms; /* 0: there is none */
};

struct play {
	struct loop *loop;
	struct kubelet_node *node;
	struct pod pods[PODS_MAX];
	char **resources;
	size_t n_resources;
	int64_t end_ms, next_ms;
	unsigned int number, given, turned_away, written;
	struct timer *tick;
};

static int64_t chance(int64_t below)
{
	return random() % below;
}

static void on_tick(void *arg)
{
}

/* What was printed is there for whoever follows it. */
static void turn(struct play *play)
{
	(void)fflush(stdout);
	timer_start(play->tick, TICK_MS);
	loop_turn(play->loop, true);
}

/* ---- VFs ------------------------------------------------------------------------------------- */

static ino_t inode(const char *vf, const char *file, bool follow)
{
	auto_free char *path = str_printf("/sys/bus/pci/devices/%s%s", vf, file);
	struct stat st;

	return (follow ? stat(path, &st) : lstat(path, &st)) == 0 ? st.st_ino : 0;
}

static int mtu(const char *vf)
{
	auto_free char *folder = str_printf("/sys/bus/pci/devices/%s/net", vf);
	auto_closedir DIR *names = opendir(folder);
	const struct dirent *name;
	int ret = -1;

	while (names && (name = readdir(names))) {
		auto_free char *path = str_printf("%s/%s/mtu", folder, name->d_name);
		FILE *file = name->d_name[0] == '.' ? NULL : fopen(path, "re");
		char text[16] = "";

		if (!file)
			continue;
		if (fgets(text, sizeof(text), file))
			ret = (int)strtol(text, NULL, 10);
		(void)fclose(file);
	}
	return ret;
}

static struct vf look(const char *address)
{
	return (struct vf){
		.address = address,
		.function = inode(address, "", true),
		.driver = inode(address, "/driver", false),
		.mtu = mtu(address),
	};
}

/* Once for each pod. */
static void check(struct play *play, struct pod *pod)
{
	for (size_t i = 0; i < pod->n_vfs; i++) {
		const struct vf *then = &pod->vfs[i];
		struct vf now = look(then->address);

		if (now.function == then->function && now.driver == then->driver &&
		    now.mtu == then->mtu)
			continue;
		printf("WRITTEN TO %s of %s: function %lu, driver %lu, MTU %d were %lu, %lu, %d\n",
		       then->address, pod->name, (unsigned long)now.function,
		       (unsigned long)now.driver, now.mtu, (unsigned long)then->function,
		       (unsigned long)then->driver, then->mtu);
		play->written++;
		pod->vfs[i] = now;
	}
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* Takes a place, with a name that is set, until `until_ms` if it is admitted. */
static void come(struct play *play, struct pod *pod, const char *resource, size_t n,
		 int64_t until_ms)
{
	auto_free char *why = kubelet_node_admit(play->node, pod->name, resource, n);
	const json_t *ids, *id;
	size_t i;

	if (why) {
		printf("%s is turned away: %s\n", pod->name, why);
		play->turned_away++;
		return;
	}
	ids = json_at(kubelet_node_given(play->node, pod->name), "ids");
	pod->n_vfs = 0;
	json_array_foreach (ids, i, id)
		pod->vfs[pod->n_vfs++] = look(json_string_value(id));
	pod->until_ms = until_ms;
	play->given++;
	printf("%s has %zu of %s\n", pod->name, pod->n_vfs, resource);
}

static void go(struct play *play, struct pod *pod)
{
	kubelet_node_remove_pod(play->node, pod->name);
	pod->until_ms = 0;
	pod->n_vfs = 0;
}

/* ---- by chance ------------------------------------------------------------------------------- */

static void come_by_chance(struct play *play, struct pod *pod, int64_t now)
{
	const char *resource = play->resources[chance((int64_t)play->n_resources)];
	size_t n = 1 + (size_t)chance(VFS_MAX);

	(void)snprintf(pod->name, sizeof(pod->name), "play/p%u", play->number++);
	come(play, pod, resource, n, now + chance(HOLD_MAX_MS));
}

/* Not from the loop: admission turns it. */
static void play_on(struct play *play)
{
	int64_t now = clock_ms();
	struct pod *vacant = NULL;

	for (size_t i = 0; i < PODS_MAX; i++) {
		struct pod *pod = &play->pods[i];

		check(play, pod);
		if (pod->until_ms && (now >= pod->until_ms || now >= play->end_ms))
			go(play, pod);
		if (!pod->until_ms)
			vacant = pod;
	}
	if (vacant && now >= play->next_ms && now < play->end_ms) {
		come_by_chance(play, vacant, now);
		play->next_ms = now + chance(PAUSE_MAX_MS);
	}
}

static void play_by_chance(struct play *play, int argc, char **argv)
{
	srandom((unsigned int)strtoul(argv[3], NULL, 10));
	play->resources = argv + 4;
	play->n_resources = (size_t)argc - 4;
	play->end_ms = clock_ms() + 1000 * strtol(argv[2], NULL, 10);
	while (clock_ms() < play->end_ms) {
		turn(play);
		play_on(play);
	}
	play_on(play);
}

/* ---- as it is told --------------------------------------------------------------------------- */

/* By its name; NULL is a place that nobody has. */
static struct pod *find(struct play *play, const char *name)
{
	for (size_t i = 0; i < PODS_MAX; i++) {
		struct pod *pod = &play->pods[i];

		if (name ? pod->until_ms && str_eq(pod->name, name) : !pod->until_ms)
			return pod;
	}
	return NULL;
}

/* "come POD RESOURCE N", "go POD" or "gpu POD ID"; what cannot be done is printed. */
static void obey(struct play *play, const char *line)
{
	char word[8] = "", name[sizeof(play->pods[0].name)] = "", resource[64] = "";
	unsigned int n = 0;
	int words = sscanf(line, "%7s %31s %63s %u", word, name, resource, &n);
	struct pod *there = find(play, name), *vacant = find(play, NULL);

	if (str_eq(word, "come") && words == 4 && n >= 1 && n <= VFS_MAX && !there && vacant) {
		(void)snprintf(vacant->name, sizeof(vacant->name), "%s", name);
		come(play, vacant, resource, n, INT64_MAX);
	} else if (str_eq(word, "gpu") && words == 3) {
		kubelet_node_give_gpu(play->node, name, resource);
	} else if (str_eq(word, "go") && words == 2 && there) {
		go(play, there);
		printf("%s has gone\n", name);
	} else {
		printf("not understood, or no place: %s", line);
	}
}

/* A line is written at once, and read byte by byte: what poll() does not see is not there. */
static bool obey_next(struct play *play)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[128];

	while (poll(&input, 1, 0) > 0) {
		if (!fgets(line, sizeof(line), stdin))
			return false;
		obey(play, line);
	}
	return true;
}

static void play_as_told(struct play *play)
{
	(void)setvbuf(stdin, NULL, _IONBF, 0);
	while (obey_next(play)) {
		turn(play);
		for (size_t i = 0; i < PODS_MAX; i++)
			check(play, &play->pods[i]);
	}
}

int main(int argc, char **argv)
{
	struct play play = {0};

	if (argc != 2 && argc < 5) {
		(void)fputs("usage: kubelet-play DIR [SECONDS SEED RESOURCE...]\n", stderr);
		return 2;
	}
	json_init();
	play.loop = loop_new();
	play.node = kubelet_node_new(play.loop, argv[1], &kubelet_versions[n_kubelet_versions - 1]);
	play.tick = timer_new(play.loop, on_tick, NULL);
	if (argc == 2)
		play_as_told(&play);
	else
		play_by_chance(&play, argc, argv);
	timer_free(play.tick);
	kubelet_node_free(play.node);
	loop_free(play.loop);
	printf("given %u, turned away %u, written to %u\n", play.given, play.turned_away,
	       play.written);
	return 0;
}
