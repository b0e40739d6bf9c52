// SPDX-License-Identifier: Apache-2.0
/*
 * The cache: versions only go forward, lists remove what is gone, indexes follow, and only real
 * changes are told.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "lib/kube/cache.h"

static void index_owner(const json_t *object, struct cache_values *values)
{
	const char *owner = json_str_at(object, "owner");

	if (owner)
		cache_index_value(values, owner);
}

static void index_tags(const json_t *object, struct cache_values *values)
{
	size_t i = 0;
	json_t *tag = NULL;

	json_array_foreach (json_at(object, "tags"), i, tag)
		cache_index_value(values, json_string_value(tag));
}

static void project(json_t *object)
{
	json_object_del(object, "unread");
}

static const struct cache_kind text_kind = {.project = project,
					    .indexes = {index_owner, index_tags}};
static const struct cache_kind live_kind = {
	.live = true, .project = project, .indexes = {index_owner, index_tags}};

static bool is_wanted(const json_t *object)
{
	return json_is_true(json_at(object, "unread_flag"));
}

/* Trimming would hide what the choice depends on: the choice comes first. */
static void project_flag(json_t *object)
{
	json_object_del(object, "unread_flag");
}

static const struct cache_kind choosy_kind = {.wanted = is_wanted, .project = project_flag};

/* What was told, one line each: "+lab/a", "~lab/a", "-lab/a", "?lab/a" with neither. */
static struct strbuf told;

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	strbuf_addf(&told, "%c%s ", !old && !now ? '?' : !old ? '+' : !now ? '-' : '~', key);
}

static void assert_told(const char *want)
{
	assert_string_equal(strbuf_str(&told), want);
	strbuf_reset(&told);
}

static struct cache *cache;

static int with_text(void **state)
{
	cache = cache_new(&text_kind, on_changed, NULL);
	cache_list_begin(cache);
	return 0;
}

static int with_values(void **state)
{
	cache = cache_new(&live_kind, on_changed, NULL);
	cache_list_begin(cache);
	return 0;
}

static int with_choice(void **state)
{
	cache = cache_new(&choosy_kind, on_changed, NULL);
	cache_list_begin(cache);
	return 0;
}

static int tear_down(void **state)
{
	cache_free(cache);
	strbuf_done(&told);
	return 0;
}

/* more: members, like `"owner":"x"`, or "". */
static json_t *object(const char *name, int version, const char *more)
{
	auto_free char *text = str_printf("{\"metadata\":{\"namespace\":\"lab\",\"name\":\"%s\","
					  "\"uid\":\"u-%s\",\"resourceVersion\":\"%d\","
					  "\"managedFields\":[{}]},\"unread\":%d%s%s}",
					  name, name, version, version, *more ? "," : "", more);
	json_t *value = json_parse(text, strlen(text), NULL);

	assert_non_null(value);
	return value;
}

static bool put(const char *name, int version, const char *more)
{
	return cache_put(cache, object(name, version, more));
}

static void add_key(void *arg, const char *key)
{
	strbuf_addf(arg, "%s ", key);
}

static void assert_found(size_t index, const char *value, const char *want)
{
	auto_strbuf struct strbuf got = {0};

	cache_find(cache, index, value, add_key, &got);
	assert_string_equal(strbuf_str(&got), want);
}

static void an_object_is_kept_trimmed(void **state)
{
	json_auto_t *got = NULL;

	assert_true(put("a", 5, "\"v\":1"));
	got = cache_get(cache, "lab/a");
	assert_null(json_at(got, "unread"));
	assert_null(json_at(got, "metadata", "managedFields"));
	assert_int_equal(json_integer_value(json_at(got, "v")), 1);
	assert_int_equal(cache_version(cache, "lab/a"), 5);
	assert_string_equal(cache_uid(cache, "lab/a"), "u-a");
	assert_true(cache_has(cache, "lab/a"));
	assert_int_equal(cache_len(cache), 1);
	assert_told("+lab/a ");
}

static void what_is_not_there_is_not_there(void **state)
{
	assert_null(cache_get(cache, "lab/a"));
	assert_false(cache_has(cache, "lab/a"));
	assert_int_equal(cache_version(cache, "lab/a"), 0);
	assert_null(cache_uid(cache, "lab/a"));
	assert_false(cache_remove(cache, "lab/a", 100));
	assert_found(0, "x", "");
	assert_told("");
}

static void versions_only_go_forward(void **state)
{
	assert_true(put("a", 5, "\"v\":1"));
	assert_false(put("a", 4, "\"v\":2"));
	assert_false(put("a", 5, "\"v\":3"));
	assert_true(put("a", 10, "\"v\":4"));
	assert_false(cache_remove(cache, "lab/a", 9));
	assert_true(cache_remove(cache, "lab/a", 10));
	assert_told("+lab/a ~lab/a -lab/a ");
}

static void only_real_changes_are_told(void **state)
{
	put("a", 5, "\"v\":1");
	put("a", 6, "\"v\":1");
	assert_int_equal(cache_version(cache, "lab/a"), 6);
	assert_told("+lab/a ");
	put("a", 7, "\"v\":null");
	put("a", 8, "");
	assert_told("~lab/a "); /* null and absent are the same */
}

/* More objects than stay parsed, some of them changed or gone meanwhile. */
static void what_somebody_holds_stays_as_it_was(void **state)
{
	json_t *held[100] = {0};
	char name[24];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		put(name, 1, "\"v\":1");
		snprintf(name, sizeof(name), "lab/n%d", i);
		held[i] = cache_get(cache, name);
	}
	put("n99", 2, "\"v\":2");
	put("n0", 2, "\"v\":2");
	cache_remove(cache, "lab/n98", 2);
	for (int i = 0; i < 100; i++) {
		json_auto_t *now = NULL;

		snprintf(name, sizeof(name), "lab/n%d", i);
		now = cache_get(cache, name);
		assert_int_equal(json_integer_value(json_at(held[i], "v")), 1);
		assert_int_equal(json_integer_value(json_at(now, "v")), i == 98               ? 0
									: (i == 0 || i == 99) ? 2
											      : 1);
		json_decref(held[i]);
	}
	strbuf_reset(&told);
}

static void the_end_of_a_list_removes_what_was_not_in_it(void **state)
{
	put("a", 1, "");
	put("b", 2, "\"owner\":\"x\"");
	put("c", 30, ""); /* newer than the next list: it cannot know */
	cache_list_end(cache, 2);
	cache_list_begin(cache);
	assert_false(put("a", 1, ""));
	cache_list_end(cache, 20);
	assert_told("+lab/a +lab/b +lab/c -lab/b ");
	assert_int_equal(cache_len(cache), 2);
	assert_found(0, "x", "");
}

static void what_was_learned_is_not_listed(void **state)
{
	put("a", 1, "");
	cache_list_end(cache, 2);
	cache_list_begin(cache);
	assert_true(cache_learn(cache, object("a", 3, "")));
	assert_true(cache_learn(cache, object("b", 4, "")));
	assert_true(cache_learn(cache, object("c", 11, "")));
	assert_true(cache_has(cache, "lab/b"));
	cache_list_end(cache, 10);
	assert_false(cache_has(cache, "lab/a"));
	assert_false(cache_has(cache, "lab/b"));
	assert_true(cache_has(cache, "lab/c"));
}

static void a_new_history_replaces_everything(void **state)
{
	put("a", 100, "\"v\":1");
	put("b", 200, "");
	cache_list_end(cache, 200);
	cache_forget_versions(cache);
	cache_list_begin(cache);
	assert_true(put("a", 7, "\"v\":1"));
	cache_list_end(cache, 10);
	assert_told("+lab/a +lab/b -lab/b ");
	assert_int_equal(cache_version(cache, "lab/a"), 7);
}

static void indexes_follow_the_objects(void **state)
{
	put("a", 1, "\"owner\":\"x\",\"tags\":[\"red\",\"blue\",\"red\"]");
	assert_found(0, "x", "lab/a ");
	assert_found(1, "red", "lab/a ");
	assert_found(1, "blue", "lab/a ");
	assert_found(0, "red", "");
	put("a", 2, "\"owner\":\"y\",\"tags\":[\"blue\"]");
	assert_found(0, "x", "");
	assert_found(0, "y", "lab/a ");
	assert_found(1, "red", "");
	put("a", 3, "");
	assert_found(0, "y", "");
	put("a", 4, "\"owner\":\"x\"");
	cache_remove(cache, "lab/a", 4);
	assert_found(0, "x", "");
}

static void count_key(void *arg, const char *key)
{
	(*(int *)arg)++;
}

static void one_value_may_have_thousands_of_keys(void **state)
{
	enum { N = 5000 };
	int found = 0;

	for (int i = 0; i < N; i++) {
		char name[24];

		snprintf(name, sizeof(name), "o%d", i);
		put(name, i + 1, "\"owner\":\"everyone\"");
	}
	cache_find(cache, 0, "everyone", count_key, &found);
	assert_int_equal(found, N);
	for (int i = 0; i < N; i += 2) {
		char name[24];

		snprintf(name, sizeof(name), "o%d", i);
		put(name, N + i, "\"owner\":\"nobody\"");
	}
	found = 0;
	cache_find(cache, 0, "everyone", count_key, &found);
	assert_int_equal(found, N / 2);
	cache_list_begin(cache);
	cache_list_end(cache, 10 * N);
	assert_int_equal(cache_len(cache), 0);
	assert_found(0, "everyone", "");
	assert_found(0, "nobody", "");
}

static void all_objects_can_be_had_at_once(void **state)
{
	json_auto_t *all = NULL;
	size_t iter = 0;
	int keys = 0;

	put("a", 1, "\"v\":1");
	put("b", 2, "");
	cache_remove(cache, "lab/b", 2);
	put("c", 3, "");
	all = cache_all(cache);
	assert_int_equal(json_object_size(all), 2);
	assert_int_equal(json_integer_value(json_at(all, "lab/a", "v")), 1);
	assert_non_null(json_at(all, "lab/c"));
	while (cache_next(cache, &iter))
		keys++;
	assert_int_equal(keys, 2);
}

/* `changed` that looks at the cache, and at others' keys, while a list ends. */
static void look_around(void *arg, const char *key, const json_t *old, const json_t *now)
{
	json_auto_t *all = cache_all(cache);

	assert_int_equal(json_object_size(all), cache_len(cache));
	assert_int_equal(cache_has(cache, key), now != NULL);
	if (!now)
		cache_put(cache, object("reborn", 1000, ""));
}

static void a_callback_may_look_at_the_cache_and_even_add_to_it(void **state)
{
	cache_free(cache);
	cache = cache_new(&text_kind, look_around, NULL);
	cache_list_begin(cache);
	for (int i = 0; i < 100; i++) {
		char name[24];

		snprintf(name, sizeof(name), "o%d", i);
		put(name, i + 1, "");
	}
	cache_list_begin(cache);
	cache_list_end(cache, 500);
	assert_int_equal(cache_len(cache), 1);
}

static void a_cluster_scoped_key_is_its_name(void **state)
{
	cache_put(cache,
		  json_pack("{s:{s:s, s:s}}", "metadata", "name", "w1", "resourceVersion", "3"));
	assert_int_equal(cache_version(cache, "w1"), 3);
}

#define both(test)                                                                                 \
	cmocka_unit_test_setup_teardown(test, with_text, tear_down),                               \
		cmocka_unit_test_setup_teardown(test, with_values, tear_down)

static void what_is_not_wanted_is_left_out(void **state)
{
	assert_true(put("a", 1, "\"unread_flag\":true"));
	assert_false(put("b", 2, "\"unread_flag\":false"));
	cache_list_end(cache, 2);
	assert_told("+lab/a ");
	assert_int_equal(cache_len(cache), 1);
	assert_false(cache_has(cache, "lab/b"));

	/* Comes to be wanted, ceases to be; an older word of it changes nothing. */
	assert_true(put("b", 3, "\"unread_flag\":true"));
	assert_false(put("a", 1, ""));
	assert_false(put("a", 4, ""));
	assert_told("+lab/b -lab/a ");
	assert_false(cache_remove(cache, "lab/a", 9));
	assert_int_equal(cache_len(cache), 1);
}

/* Controllers may wait for the key; of the object nothing can be said. */
static void the_end_of_what_could_never_be_read_is_told_without_an_object(void **state)
{
	assert_true(cache_put_unreadable(cache, "lab/a", 5));
	assert_false(cache_remove(cache, "lab/a", 4));
	assert_told("");
	assert_false(cache_remove(cache, "lab/a", 6));
	assert_told("?lab/a ");
	assert_false(cache_remove(cache, "lab/a", 7));
	assert_told("");
	/* By a list that it is not in, too. */
	assert_true(cache_put_unreadable(cache, "lab/a", 8));
	cache_list_begin(cache);
	cache_list_end(cache, 9);
	assert_told("?lab/a ");
}

/* As it was last. */
static void the_end_of_what_could_be_read_once_is_told_as_of_then(void **state)
{
	assert_true(put("a", 1, ""));
	assert_true(cache_put_unreadable(cache, "lab/a", 2));
	assert_true(cache_remove(cache, "lab/a", 3));
	assert_told("+lab/a -lab/a ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(an_object_is_kept_trimmed),
		both(what_is_not_there_is_not_there),
		both(versions_only_go_forward),
		both(only_real_changes_are_told),
		both(what_somebody_holds_stays_as_it_was),
		both(the_end_of_a_list_removes_what_was_not_in_it),
		both(what_was_learned_is_not_listed),
		both(a_new_history_replaces_everything),
		both(indexes_follow_the_objects),
		both(one_value_may_have_thousands_of_keys),
		both(all_objects_can_be_had_at_once),
		both(a_callback_may_look_at_the_cache_and_even_add_to_it),
		both(a_cluster_scoped_key_is_its_name),
		both(the_end_of_what_could_never_be_read_is_told_without_an_object),
		both(the_end_of_what_could_be_read_once_is_told_as_of_then),
		cmocka_unit_test_setup_teardown(what_is_not_wanted_is_left_out, with_choice,
						tear_down),
	};

	return cmocka_run_group_tests_name("lib/kube/cache", tests, NULL, NULL);
}
