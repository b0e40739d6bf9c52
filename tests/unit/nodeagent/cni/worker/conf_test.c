// SPDX-License-Identifier: Apache-2.0
/* Our file in the runtime's folder: written, followed, put back, left. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/worker/conf.h"

#define DIR     "etc/cni/net.d"
#define OURS    DIR "/" META_CONF_FILE
#define NETWORK "{\"cniVersion\":\"0.4.0\",\"name\":\"%s\",\"plugins\":[{\"type\":\"bridge\"}]}"

struct node {
	char path[64];
	int root;
	struct conf *conf;
	struct err note; /* of the last look */
};

static int setup(void **state)
{
	static struct node node;

	node = (struct node){.path = "/tmp/conf-XXXXXX"};
	assert_non_null(mkdtemp(node.path));
	node.root = open(node.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(node.root, "etc", 0755), 0);
	assert_int_equal(mkdirat(node.root, "etc/cni", 0755), 0);
	assert_int_equal(mkdirat(node.root, DIR, 0755), 0);
	assert_int_equal(mkdirat(node.root, "bin", 0755), 0);
	assert_int_equal(symlinkat("x", node.root, "bin/orbweaver"), 0);
	assert_int_equal(symlinkat("x", node.root, "bin/bridge"), 0);
	*state = &node;
	return 0;
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct node *node = *state;

	conf_free(node->conf);
	(void)close(node->root);
	return nftw(node->path, forget, 16, FTW_DEPTH | FTW_PHYS);
}

static void look_in(struct node *node, enum meta_mode mode)
{
	json_auto_t *files = conf_files(node->root, "/" DIR, NULL);

	conf_look(node->conf, mode, files, &node->note);
}

static void look(struct node *node)
{
	look_in(node, META_AUTO);
}

static void begin(struct node *node)
{
	node->conf = conf_new(
		&(struct conf_config){.root = node->root, .dir = "/" DIR, .bin_dir = "/bin"});
	look(node);
}

static void put_network(const struct node *node, const char *file, const char *name)
{
	auto_free char *path = str_printf(DIR "/%s", file), *text = str_printf(NETWORK, name);

	assert_int_equal(fs_write_atomic(node->root, path, text, strlen(text), 0644, NULL), 0);
}

/* The name of the network that our file carries, new; "" when it is not there. */
static char *carried(const struct node *node)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *conf = NULL;

	if (fs_read(node->root, OURS, 65536, &text, NULL) < 0)
		return str_dup("");
	conf = json_parse(strbuf_str(&text), text.len, NULL);
	return str_dup(json_str_or(json_at(conf, "name"), "broken"));
}

static void expect_carried(const struct node *node, const char *want)
{
	auto_free char *name = carried(node);

	assert_string_equal(name, want);
}

/* A Multus that is not seen would be taken for none. */
TEST_WITH(without_descriptors_it_is_not_known_what_is_there, setup, teardown)
{
	const struct node *node = *state;
	json_auto_t *none = NULL;
	struct rlimit before, limit;
	size_t n = 0;

	put_network(node, "10-a.conflist", "a");
	put_network(node, "20-b.conflist", "b");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int more = 0; n == 0; more++) {
		json_auto_t *files = NULL;
		int next = dup(node->root);
		struct err err = {0};

		(void)close(next);
		limit = (struct rlimit){(rlim_t)next + (rlim_t)more, before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		files = conf_files(node->root, "/" DIR, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		n = json_array_size(files);
		if (!files)
			assert_string_equal(err.reason, "ConfUnreadable");
		else
			assert_int_equal(n, 2);
	}
	none = conf_files(node->root, "/nowhere", NULL);
	assert_true(json_is_array(none));
}

TEST_WITH(follows_the_clusters_network, setup, teardown)
{
	struct node *node = *state;

	begin(node);
	expect_carried(node, "");
	put_network(node, "10-a.conflist", "first");
	look(node);
	expect_carried(node, "first");
	put_network(node, "10-a.conflist", "second");
	look(node);
	expect_carried(node, "second");
	/* While the plugin is updated its file may be away. */
	assert_int_equal(unlinkat(node->root, DIR "/10-a.conflist", 0), 0);
	look(node);
	expect_carried(node, "second");
}

TEST_WITH(stays_when_we_end_and_is_not_written_again, setup, teardown)
{
	struct node *node = *state;
	struct stat before, after;

	put_network(node, "10-a.conflist", "n");
	begin(node);
	assert_int_equal(fstatat(node->root, OURS, &before, 0), 0);
	conf_free(node->conf);
	begin(node);
	assert_int_equal(fstatat(node->root, OURS, &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

TEST_WITH(puts_it_back_three_times_and_then_says_so, setup, teardown)
{
	struct node *node = *state;

	put_network(node, "10-a.conflist", "n");
	begin(node);
	for (int i = 0; i < CONF_FIGHTS_MAX; i++) {
		assert_int_equal(unlinkat(node->root, OURS, 0), 0);
		look(node);
		expect_carried(node, "n");
	}
	assert_int_equal(unlinkat(node->root, OURS, 0), 0);
	look(node);
	assert_string_equal(node->note.reason, "ConfRemoved");
	expect_carried(node, "");
	look(node);
	expect_carried(node, "");
}

static void change_ours(const struct node *node)
{
	assert_int_equal(fs_write_atomic(node->root, OURS, "{}", 2, 0644, NULL), 0);
}

TEST_WITH(a_file_that_another_program_changes_is_put_back_as_often, setup, teardown)
{
	struct node *node = *state;

	put_network(node, "10-a.conflist", "n");
	begin(node);
	for (int i = 0; i < CONF_FIGHTS_MAX; i++) {
		change_ours(node);
		look(node);
		expect_carried(node, "n");
	}
	change_ours(node);
	look(node);
	assert_string_equal(node->note.reason, "ConfRemoved");
	expect_carried(node, "broken");
}

/* Looks are not changes, nor are changes of the cluster's network. */
TEST_WITH(only_changes_of_other_programs_are_counted, setup, teardown)
{
	struct node *node = *state;

	begin(node);
	for (int i = 0; i <= 2 * CONF_FIGHTS_MAX; i++) {
		put_network(node, "10-a.conflist", i % 2 ? "n" : "m");
		look(node);
		look(node);
		expect_carried(node, i % 2 ? "n" : "m");
	}
	assert_int_equal(node->note.class, ERR_NONE);
}

static void remember_a_fight_before(struct node *node, int64_t ago_ms)
{
	json_auto_t *memory = conf_memory(node->conf);

	json_put_int(memory, "foughtMs", clock_ms() - ago_ms);
	conf_free(node->conf);
	node->conf = conf_new(&(struct conf_config){
		.root = node->root, .dir = "/" DIR, .bin_dir = "/bin", .memory = memory});
}

TEST_WITH(removals_are_counted_anew_after_ten_minutes_of_peace, setup, teardown)
{
	struct node *node = *state;

	put_network(node, "10-a.conflist", "n");
	begin(node);
	for (int i = 0; i <= CONF_FIGHTS_MAX; i++) {
		assert_int_equal(unlinkat(node->root, OURS, 0), 0);
		look(node);
	}
	assert_string_equal(node->note.reason, "ConfRemoved");
	/* Absent, it is not at peace. */
	remember_a_fight_before(node, CONF_PEACE_MS);
	look(node);
	expect_carried(node, "");
	/* The administrator has put it there; many looks make no peace, time does. */
	conf_free(node->conf);
	begin(node);
	expect_carried(node, "n");
	for (int i = 0; i <= CONF_FIGHTS_MAX; i++) {
		assert_int_equal(unlinkat(node->root, OURS, 0), 0);
		look(node);
		remember_a_fight_before(node, CONF_PEACE_MS);
		look(node);
		expect_carried(node, "n");
	}
}

TEST_WITH(gives_way_to_a_multus_and_comes_back, setup, teardown)
{
	struct node *node = *state;
	static const char multus[] = "{\"name\":\"m\",\"type\":\"multus\"}";

	put_network(node, "10-a.conflist", "n");
	begin(node);
	assert_int_equal(fs_write_atomic(node->root, DIR "/00-multus.conf", multus, strlen(multus),
					 0644, NULL),
			 0);
	look(node);
	expect_carried(node, "");
	assert_int_equal(unlinkat(node->root, DIR "/00-multus.conf", 0), 0);
	look(node);
	expect_carried(node, "n");
}

TEST_WITH(is_not_written_where_the_runtime_has_its_plugins_elsewhere, setup, teardown)
{
	struct node *node = *state;

	put_network(node, "10-a.conflist", "n");
	assert_int_equal(unlinkat(node->root, "bin/bridge", 0), 0);
	begin(node);
	assert_string_equal(node->note.reason, "PluginsElsewhere");
	expect_carried(node, "");
	assert_int_equal(symlinkat("x", node->root, "bin/bridge"), 0);
	look(node);
	expect_carried(node, "n");
}

TEST_WITH(is_not_there_where_it_is_off, setup, teardown)
{
	struct node *node = *state;
	struct err err = {0};

	put_network(node, "10-a.conflist", "n");
	begin(node);
	look_in(node, META_OFF);
	expect_carried(node, "");
	assert_int_equal(conf_remove(node->root, "/" DIR, &err), 0);
	/* "ConfNotWritten": the folder is no folder. */
	put_network(node, "x", "n");
	assert_int_equal(conf_remove(node->root, "/" DIR "/x", &err), -1);
	assert_string_equal(err.reason, "ConfNotWritten");
}
