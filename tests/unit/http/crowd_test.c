// SPDX-License-Identifier: Apache-2.0
/* Who may be connected, and who has to go. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/http/crowd.h"

#define MAX 16

struct fixture {
	struct crowd crowd;
	struct crowd_member members[MAX];
	struct in6_addr a, b, c;
};

static struct in6_addr peer_of(const char *text)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return crowd_peer((const struct sockaddr *)&v4);
	assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
	return crowd_peer((const struct sockaddr *)&v6);
}

static struct fixture fixture_with(size_t max)
{
	struct fixture f = {
		.a = peer_of("10.0.0.1"), .b = peer_of("10.0.0.2"), .c = peer_of("10.0.0.3")};

	crowd_limit(&f.crowd, max);
	for (int i = 0; i < CROWD_STATES; i++)
		f.crowd.lasts_ms[i] = 1000 * (i + 1);
	return f;
}

static void fill(struct fixture *f, size_t from, size_t to, const struct in6_addr *peer,
		 enum crowd_state state, int64_t since_ms)
{
	for (size_t i = from; i < to; i++) {
		crowd_add(&f->crowd, &f->members[i], peer, since_ms);
		if (state != CROWD_NEW)
			crowd_move(&f->crowd, &f->members[i], state, since_ms);
	}
}

TEST(a_host_is_one_peer_however_it_comes)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "::ffff:10.0.0.1", true},
		{"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
		{"2001:db8::1", "2001:db8::2", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"::1", "10.0.0.1", false},
	};
	struct sockaddr local = {.sa_family = AF_UNIX};
	struct in6_addr zero = {0}, peer = crowd_peer(&local);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct in6_addr a = peer_of(cases[i].a), b = peer_of(cases[i].b);

		if ((memcmp(&a, &b, sizeof(a)) == 0) != cases[i].same)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
	assert_memory_equal(&peer, &zero, sizeof(zero));
}

TEST(new_members_of_the_same_peer_give_way_first)
{
	struct fixture f = fixture_with(16);
	struct crowd_member *victim = NULL;

	fill(&f, 0, 1, &f.b, CROWD_NEW, 5);
	fill(&f, 1, 9, &f.a, CROWD_NEW, 10); /* half of all */
	assert_int_equal(crowd_ask(&f.crowd, &f.b, 10, &victim), CROWD_WELCOME);
	assert_int_equal(crowd_ask(&f.crowd, &f.a, 10, &victim), CROWD_INSTEAD);
	assert_ptr_equal(victim, &f.members[1]);
}

TEST(new_members_of_anybody_give_way_at_once)
{
	struct fixture f = fixture_with(16);
	struct crowd_member *victim = NULL;

	fill(&f, 0, 6, &f.a, CROWD_NEW, 10);
	fill(&f, 6, 12, &f.b, CROWD_NEW, 10);
	assert_int_equal(crowd_ask(&f.crowd, &f.c, 10, &victim), CROWD_INSTEAD);
	assert_ptr_equal(victim, &f.members[0]);
}

TEST(idle_and_slow_members_give_way_after_a_while)
{
	static const struct {
		enum crowd_state state;
		int64_t after_ms;
	} cases[] = {
		{CROWD_IDLE, CROWD_IDLE_MS},
		{CROWD_ASKING, CROWD_SLOW_MS},
		{CROWD_TAKING, CROWD_SLOW_MS},
		{CROWD_LEAVING, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f = fixture_with(16);
		struct crowd_member *victim = NULL;

		fill(&f, 0, 8, &f.a, cases[i].state, 10);
		fill(&f, 8, 16, &f.b, cases[i].state, 20);
		if (cases[i].after_ms)
			assert_int_equal(crowd_ask(&f.crowd, &f.c, 9 + cases[i].after_ms, &victim),
					 CROWD_FULL);
		assert_int_equal(crowd_ask(&f.crowd, &f.c, 10 + cases[i].after_ms, &victim),
				 CROWD_INSTEAD);
		assert_ptr_equal(victim, &f.members[0]);
	}
}

TEST(members_that_follow_a_stream_never_give_way)
{
	struct fixture f = fixture_with(16);
	struct crowd_member *victim = NULL;

	fill(&f, 0, 8, &f.a, CROWD_FOLLOWING, 10);
	fill(&f, 8, 16, &f.b, CROWD_FOLLOWING, 20);
	f.crowd.lasts_ms[CROWD_FOLLOWING] = CROWD_FOR_EVER;
	assert_int_equal(crowd_ask(&f.crowd, &f.c, INT64_MAX, &victim), CROWD_FULL);
	assert_null(crowd_overdue(&f.crowd, INT64_MAX));
	assert_int_equal(crowd_next_ms(&f.crowd), INT64_MAX);
}

TEST(a_peer_with_its_share_is_refused_and_others_are_not)
{
	struct fixture f = fixture_with(16);
	struct crowd_member *victim = NULL;

	fill(&f, 0, 12, &f.a, CROWD_ASKING, 10);
	assert_int_equal(crowd_ask(&f.crowd, &f.a, 10, &victim), CROWD_REFUSED);
	assert_int_equal(crowd_ask(&f.crowd, &f.b, 10, &victim), CROWD_WELCOME);
	/* Its own slow ones make room for it, nobody else's. */
	fill(&f, 12, 13, &f.b, CROWD_ASKING, 0);
	assert_int_equal(crowd_ask(&f.crowd, &f.a, 10 + CROWD_SLOW_MS, &victim), CROWD_INSTEAD);
	assert_ptr_equal(victim, &f.members[0]);
}

TEST(one_connection_is_enough_for_one_peer)
{
	struct fixture f = fixture_with(1);
	struct crowd_member *victim = NULL;

	assert_int_equal(crowd_ask(&f.crowd, &f.a, 0, &victim), CROWD_WELCOME);
	fill(&f, 0, 1, &f.a, CROWD_IDLE, 10);
	assert_int_equal(crowd_ask(&f.crowd, &f.a, 10, &victim), CROWD_FULL);
	assert_int_equal(crowd_ask(&f.crowd, &f.a, 10 + CROWD_IDLE_MS, &victim), CROWD_INSTEAD);
}

TEST(each_state_has_its_time)
{
	struct fixture f = fixture_with(16);

	assert_true(crowd_next_ms(&f.crowd) == INT64_MAX);
	assert_null(crowd_overdue(&f.crowd, INT64_MAX));
	for (int i = 0; i < CROWD_STATES; i++)
		fill(&f, (size_t)i, (size_t)i + 1, &f.a, (enum crowd_state)i, 500);
	for (int i = 0; i < CROWD_STATES; i++) {
		int64_t due_ms = 500 + 1000 * (i + 1);

		assert_true(crowd_next_ms(&f.crowd) == due_ms);
		assert_null(crowd_overdue(&f.crowd, due_ms - 1));
		assert_ptr_equal(crowd_overdue(&f.crowd, due_ms), &f.members[i]);
		crowd_remove(&f.crowd, &f.members[i]);
	}
	assert_null(crowd_any(&f.crowd));
}

TEST(a_list_stays_ordered_when_somebody_comes_late)
{
	struct fixture f = fixture_with(16);

	fill(&f, 0, 1, &f.a, CROWD_NEW, 0);
	fill(&f, 1, 2, &f.a, CROWD_ASKING, 20);
	fill(&f, 2, 3, &f.a, CROWD_ASKING, 40);
	crowd_move(&f.crowd, &f.members[0], CROWD_ASKING, 30);
	assert_ptr_equal(f.crowd.first[CROWD_ASKING], &f.members[1]);
	assert_ptr_equal(f.members[1].next, &f.members[0]);
	assert_ptr_equal(f.members[0].next, &f.members[2]);
	assert_ptr_equal(f.crowd.last[CROWD_ASKING], &f.members[2]);
	crowd_remove(&f.crowd, &f.members[0]);
	assert_ptr_equal(f.members[2].prev, &f.members[1]);
}
