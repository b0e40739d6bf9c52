// SPDX-License-Identifier: Apache-2.0
/* Collections, their versions, and the history that watches stand on. */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/api/store.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

struct fixture {
	struct store *store;
	struct collection *pods;
	int changes;
};

static void on_changed(void *arg, struct collection *collection)
{
	(*(int *)arg)++;
}

static int setup(void **state)
{
	static const char *const fields[] = {"spec.nodeName", NULL};
	static struct fixture f;

	f.changes = 0;
	f.store = store_new(on_changed, &f.changes);
	f.pods = collection_new(f.store, "pods", fields);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_free(f->store);
	return 0;
}

static const struct store_entry *put(struct fixture *f, const char *name, const char *node)
{
	json_auto_t *pod = json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:s, s:s}}", "metadata", "name",
				     name, "namespace", "a", "labels", "app", name, "spec",
				     "nodeName", node, "other", "x");

	return collection_put(f->pods, pod);
}

static void drop(struct fixture *f, const char *name)
{
	auto_free char *key = str_printf("a/%s", name);
	json_auto_t *pod = collection_object(f->pods, key);

	collection_remove(f->pods, pod);
}

TEST_WITH(gives_each_change_a_version, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(store_version(f->store), 1);
	assert_int_equal(put(f, "x", "n1")->version, 2);
	assert_int_equal(put(f, "x", "n2")->version, 3);
	drop(f, "x");
	assert_int_equal(store_version(f->store), 4);
	assert_int_equal(f->changes, 3);
	assert_null(collection_get(f->pods, "a/x"));
}

TEST_WITH(keeps_the_text_with_its_version, setup, teardown)
{
	struct fixture *f = *state;
	json_auto_t *pod = NULL;

	(void)put(f, "x", "n1");
	pod = collection_object(f->pods, "a/x");
	assert_string_equal(json_str_at(pod, "metadata", "resourceVersion"), "2");
	assert_string_equal(json_str_at(pod, "spec", "other"), "x");
}

TEST_WITH(outlines_what_can_be_selected, setup, teardown)
{
	struct fixture *f = *state;
	const json_t *outline = put(f, "x", "n1")->outline;

	assert_string_equal(json_str_at(outline, "spec", "nodeName"), "n1");
	assert_string_equal(json_str_at(outline, "metadata", "labels", "app"), "x");
	assert_null(json_at(outline, "spec", "other"));
}

TEST_WITH(orders_objects_by_their_keys, setup, teardown)
{
	struct fixture *f = *state;

	(void)put(f, "m", "n");
	(void)put(f, "z", "n");
	(void)put(f, "b", "n");
	assert_string_equal(f->pods->entries[0]->key, "a/b");
	assert_string_equal(f->pods->entries[2]->key, "a/z");
	assert_int_equal(collection_after(f->pods, ""), 0);
	assert_int_equal(collection_after(f->pods, "a/b"), 1);
	assert_int_equal(collection_after(f->pods, "a/c"), 1);
	assert_int_equal(collection_after(f->pods, "a/z"), 3);
}

TEST_WITH(tells_events_after_a_version, setup, teardown)
{
	struct fixture *f = *state;
	const struct store_event *event;
	uint64_t number;

	(void)put(f, "x", "n1"); /* 2 */
	(void)put(f, "y", "n1"); /* 3 */
	(void)put(f, "x", "n2"); /* 4 */
	drop(f, "y");            /* 5 */
	assert_true(collection_events_after(f->pods, 3, &number));
	event = collection_event(f->pods, number);
	assert_int_equal(event->type, STORE_MODIFIED);
	assert_string_equal(json_str_at(event->before, "spec", "nodeName"), "n1");
	assert_string_equal(json_str_at(event->outline, "spec", "nodeName"), "n2");
	event = collection_event(f->pods, number + 1);
	assert_int_equal(event->type, STORE_DELETED);
	assert_int_equal(event->version, 5);
	assert_non_null(strstr(event->text->text, "\"resourceVersion\":\"5\""));
	assert_null(collection_event(f->pods, number + 2));
	assert_true(collection_events_after(f->pods, 5, &number));
	assert_int_equal(number, f->pods->next);
}

TEST_WITH(knows_no_version_that_has_not_been, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t number;

	(void)put(f, "x", "n1");
	assert_true(collection_events_after(f->pods, 2, &number));
	assert_false(collection_events_after(f->pods, 3, &number));
}

TEST_WITH(forgets_the_oldest_events, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t number;

	for (int i = 0; i < STORE_EVENTS_MAX + 10; i++)
		(void)put(f, "x", i % 2 ? "n1" : "n2");
	assert_int_equal(f->pods->next - f->pods->first, STORE_EVENTS_MAX);
	assert_false(collection_events_after(f->pods, 1, &number));
	assert_false(collection_events_after(f->pods, 10, &number));
	assert_true(collection_events_after(f->pods, 11, &number));
	assert_int_equal(number, f->pods->first);
}

TEST_WITH(bounds_the_bytes_of_the_history, setup, teardown)
{
	struct fixture *f = *state;
	auto_strbuf struct strbuf large = {0};

	for (int i = 0; i < 1024 * 1024; i++)
		strbuf_addc(&large, 'x');
	for (int i = 0; i < 40; i++) {
		json_auto_t *pod = json_pack("{s:{s:s, s:s}, s:s, s:i}", "metadata", "name", "x",
					     "namespace", "a", "data", large.data, "n", i);

		(void)collection_put(f->pods, pod);
		assert_true(f->pods->event_bytes <= STORE_EVENT_BYTES_MAX);
	}
	assert_true(f->pods->next - f->pods->first > 10);
}

TEST_WITH(knows_nothing_of_a_collection_of_the_same_name, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t number;

	(void)put(f, "x", "n1");
	collection_free(f->pods);
	f->pods = collection_new(f->store, "pods", NULL);
	assert_false(collection_events_after(f->pods, 1, &number));
	assert_true(collection_events_after(f->pods, 2, &number));
}
