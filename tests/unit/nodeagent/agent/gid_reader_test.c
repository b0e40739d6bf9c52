// SPDX-License-Identifier: Apache-2.0
/* When GIDs of pods are asked for, and what is told of the answers. */
#include "tests/support/test.h"

#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "lib/loop/loop.h"
#include "nodeagent/agent/gid_reader.h"
#include "tests/support/yaml.h"

#define SHARED "{'netnsMode': 'shared', 'devices': [{'name': 'mlx5_0'}]}"
#define ONE                                                                                        \
	"[{'ifname': 'net1', 'phase': 'added', 'device': '0000:3c:00.1'}, "                        \
	"{'ifname': 'net1', 'phase': 'added', 'addresses': ['10.6.0.1/16']}, "                     \
	"{'ifname': 'net1', 'phase': 'adding', 'addresses': ['10.6.0.2/16']}]"
#define TWO   "[{'ifname': 'net1', 'phase': 'added', 'addresses': ['10.6.0.7/16', 'fd00::7/64']}]"
#define FOUND "{'10.6.0.1': [{'device': 'mlx5_0', 'port': 1, 'index': 12, 'version': 2}]}"

struct fixture {
	struct loop *loop;
	struct hostd *hostd;
	struct gid_reader *reader;
	struct timer *pause;
	int asked, changed;
	bool is_over;
	json_t *last;          /* that was asked */
	const char *found;     /* what the worker says; NULL: an error */
	const char *meanwhile; /* what is attached when it is asked */
};

static void set(struct fixture *f, const char *attachments, const char *rdma)
{
	json_auto_t *list = attachments ? yaml(attachments) : NULL;
	json_auto_t *document = rdma ? yaml(rdma) : NULL;

	gid_reader_set(f->reader, list, document);
}

static json_t *on_request(void *arg, const json_t *message)
{
	struct fixture *f = arg;
	json_t *found = f->found ? yaml(f->found) : NULL; /* goes into the reply */
	struct err err = {0};

	assert_string_equal(json_str_at(message, "kind"), "gids");
	f->asked++;
	json_decref(f->last);
	f->last = json_deep_copy(json_at(message, "of"));
	if (f->meanwhile)
		set(f, f->meanwhile, SHARED);
	f->meanwhile = NULL;
	(void)err_set(&err, ERR_HOST, "HostUnreadable", "x");
	return ask_reply_new(message, found, &err);
}

static void on_changed(void *arg)
{
	((struct fixture *)arg)->changed++;
}

static void on_pause(void *arg)
{
	*(bool *)arg = true;
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;

	*f = (struct fixture){.loop = loop_new(), .found = FOUND};
	f->hostd = hostd_new(f->loop, &(struct hostd_config){.answer = on_request, .arg = f});
	f->reader = gid_reader_new(&(struct gid_reader_config){
		.loop = f->loop, .hostd = f->hostd, .changed = on_changed, .arg = f});
	f->pause = timer_new(f->loop, on_pause, &f->is_over);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	hostd_free(f->hostd);
	gid_reader_free(f->reader);
	timer_free(f->pause);
	loop_free(f->loop);
	json_decref(f->last);
	return 0;
}

static void pass_ms(struct fixture *f, int64_t ms)
{
	f->is_over = false;
	timer_start(f->pause, ms);
	while (!f->is_over)
		loop_turn(f->loop, true);
}

static void is_json(const json_t *got, const char *want_text)
{
	json_auto_t *want = want_text ? yaml(want_text) : NULL;
	auto_free char *text = got ? json_text(got) : str_dup("nothing");

	if (!json_same(got, want))
		fail_msg("%s", text);
}

TEST_WITH(asks_once_when_addresses_have_settled, set_up, tear_down)
{
	struct fixture *f = *state;

	set(f, TWO, SHARED);
	pass_ms(f, GID_READER_SETTLE_MS - 1);
	set(f, ONE, SHARED);
	pass_ms(f, GID_READER_SETTLE_MS - 1);
	assert_int_equal(f->asked, 0);
	set(f, ONE, SHARED);
	pass_ms(f, GID_READER_SETTLE_MS);
	assert_int_equal(f->asked, 1);
	is_json(f->last, "{'addresses': ['10.6.0.1'], 'functions': ['0000:3c:00.1']}");
	is_json(gid_reader_found(f->reader), FOUND);
	assert_int_equal(f->changed, 1);
}

TEST_WITH(looks_read_again_what_is_old, set_up, tear_down)
{
	struct fixture *f = *state;

	set(f, ONE, SHARED);
	pass_ms(f, GID_READER_SETTLE_MS + 1);
	set(f, ONE, SHARED);
	pass_ms(f, GID_READER_FRESH_MS);
	assert_int_equal(f->asked, 1);
	set(f, ONE, SHARED);
	pass_ms(f, 1);
	assert_int_equal(f->asked, 2);
	/* The same is no news; another index is. */
	assert_int_equal(f->changed, 1);
	f->found = "{'10.6.0.1': [{'device': 'mlx5_0', 'port': 1, 'index': 14, 'version': 2}]}";
	pass_ms(f, GID_READER_FRESH_MS);
	set(f, ONE, SHARED);
	pass_ms(f, 1);
	assert_int_equal(f->changed, 2);
	is_json(gid_reader_found(f->reader), f->found);
}

TEST_WITH(what_changes_meanwhile_is_asked_afterwards, set_up, tear_down)
{
	struct fixture *f = *state;

	f->meanwhile = TWO;
	set(f, ONE, SHARED);
	pass_ms(f, GID_READER_SETTLE_MS + 1);
	assert_int_equal(f->asked, 1);
	pass_ms(f, GID_READER_SETTLE_MS + 1);
	assert_int_equal(f->asked, 2);
	is_json(f->last, "{'addresses': ['10.6.0.7', 'fd00::7'], 'functions': []}");
	/* Or not at all, when nothing is left of it. */
	f->meanwhile = "[]";
	set(f, ONE, SHARED);
	pass_ms(f, 3L * GID_READER_SETTLE_MS);
	assert_int_equal(f->asked, 3);
	is_json(gid_reader_found(f->reader), NULL);
}

TEST_WITH(an_error_drops_what_was_found, set_up, tear_down)
{
	struct fixture *f = *state;

	set(f, ONE, SHARED);
	pass_ms(f, GID_READER_SETTLE_MS + 1);
	f->found = NULL;
	pass_ms(f, GID_READER_FRESH_MS);
	set(f, ONE, SHARED);
	is_json(gid_reader_found(f->reader), FOUND);
	pass_ms(f, 1);
	assert_int_equal(f->asked, 2);
	is_json(gid_reader_found(f->reader), NULL);
	assert_int_equal(f->changed, 2);
}

#define OF(pod, container, ifname, device)                                                         \
	"{'pod': {'namespace': 'ml', 'name': '" pod "'}, 'container': '" container                 \
	"', 'ifname': '" ifname "', 'phase': 'added', 'device': '" device                          \
	"', 'addresses': ['10.6.0.1/16']}"
#define OTHER "{'ifname': 'net1', 'phase': 'added', 'addresses': ['10.6.0.9/16']}"

TEST_WITH(a_released_address_comes_without_its_gids, set_up, tear_down)
{
	static const struct {
		const char *attachments;
		bool is_same;
	} cases[] = {
		{"[" OTHER ", " OF("a", "c1", "net1", "0000:3c:00.1") "]", true},
		{"[" OF("b", "c2", "net1", "0000:3c:00.1") "]", false},
		{"[" OF("a", "c2", "net1", "0000:3c:00.1") "]", false},
		{"[" OF("a", "c1", "net2", "0000:3c:00.1") "]", false},
		{"[" OF("a", "c1", "net1", "0000:3c:00.2") "]", false},
		{"[" OTHER "]", false},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		f->found = FOUND;
		set(f, "[" OF("a", "c1", "net1", "0000:3c:00.1") "]", SHARED);
		pass_ms(f, GID_READER_SETTLE_MS + 1);
		is_json(gid_reader_found(f->reader), FOUND);
		set(f, cases[i].attachments, SHARED);
		is_json(gid_reader_found(f->reader), cases[i].is_same ? FOUND : NULL);
		f->found = NULL;
		pass_ms(f, GID_READER_SETTLE_MS + 1);
		is_json(gid_reader_found(f->reader), NULL);
	}
	/* Of an answer on its way neither. */
	f->found = FOUND;
	f->meanwhile = "[" OF("b", "c2", "net1", "0000:3c:00.1") "]";
	set(f, "[" OF("a", "c1", "net1", "0000:3c:00.1") "]", SHARED);
	pass_ms(f, GID_READER_SETTLE_MS + 1);
	assert_null(f->meanwhile);
	is_json(gid_reader_found(f->reader), NULL);
	pass_ms(f, GID_READER_SETTLE_MS + 1);
	is_json(gid_reader_found(f->reader), FOUND);
}

TEST_WITH(reads_in_spite_of_steady_changes_and_once_more_after_them, set_up, tear_down)
{
	struct fixture *f = *state;
	int64_t ms = 0;

	for (; ms < GID_READER_SETTLE_MAX_MS; ms += 1000) {
		assert_int_equal(f->asked, 0);
		set(f, ms % 2000 ? ONE : TWO, SHARED);
		pass_ms(f, 1000);
	}
	pass_ms(f, 1);
	assert_int_equal(f->asked, 1);
	pass_ms(f, GID_READER_SETTLE_MS);
	assert_int_equal(f->asked, 2);
	pass_ms(f, 2L * GID_READER_SETTLE_MAX_MS);
	assert_int_equal(f->asked, 2);
}

TEST_WITH(asks_nothing_where_nothing_can_be_seen, set_up, tear_down)
{
	static const struct {
		const char *attachments, *rdma;
	} cases[] = {
		{NULL, SHARED},
		{"[]", SHARED},
		{"[{'ifname': 'net1', 'phase': 'added', 'addresses': [5]}]", SHARED},
		{ONE, NULL},
		{ONE, "{'netnsMode': 'shared', 'devices': []}"},
		{ONE, "{'netnsMode': 'exclusive', 'devices': [{'name': 'mlx5_0'}]}"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		set(f, ONE, SHARED);
		set(f, cases[i].attachments, cases[i].rdma);
		pass_ms(f, 2L * GID_READER_SETTLE_MS);
		assert_int_equal(f->asked, 0);
		assert_null(gid_reader_found(f->reader));
	}
}
