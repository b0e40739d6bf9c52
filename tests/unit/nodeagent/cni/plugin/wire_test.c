// SPDX-License-Identifier: Apache-2.0
/* Messages between the plugin and the server of its node. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "lib/base/own.h"
#include "nodeagent/cni/plugin/wire.h"

static struct wire_buffer a_call(void)
{
	struct wire_buffer buffer = {0};
	size_t begun = wire_begin(&buffer, WIRE_CALL);

	wire_add_text(&buffer, WIRE_NAME, "sriov");
	wire_add_text(&buffer, WIRE_ENV, "CNI_COMMAND=ADD");
	wire_add(&buffer, WIRE_STDIN, NULL, 0);
	wire_add_number(&buffer, WIRE_NETNS_ERROR, 2);
	assert_int_equal(wire_end(&buffer, begun), 0);
	return buffer;
}

TEST(a_message_is_read_as_it_was_written)
{
	struct wire_buffer buffer = a_call();
	struct wire_message message;
	struct wire_field field;
	size_t at = 0;

	assert_int_equal(wire_read(buffer.data, buffer.len, &message), 1);
	assert_int_equal(message.kind, WIRE_CALL);
	assert_int_equal(message.bytes, buffer.len);
	assert_true(wire_next(&message, &at, &field));
	assert_int_equal(field.tag, WIRE_NAME);
	assert_memory_equal(field.data, "sriov", field.len);
	assert_true(wire_next(&message, &at, &field));
	assert_int_equal(field.tag, WIRE_ENV);
	assert_true(wire_next(&message, &at, &field));
	assert_int_equal(field.len, 0);
	assert_true(wire_next(&message, &at, &field));
	assert_int_equal(wire_number(&field, 7), 2);
	assert_false(wire_next(&message, &at, &field));
	free(buffer.data);
}

TEST(a_part_of_a_message_is_waited_for)
{
	struct wire_buffer buffer = a_call();
	struct wire_message message;

	for (size_t len = 0; len < buffer.len; len++)
		assert_int_equal(wire_read(buffer.data, len, &message), 0);
	free(buffer.data);
}

TEST(refuses_what_is_no_message)
{
	/* What is changed in a good one: at which byte, to what. */
	static const struct {
		size_t at;
		unsigned char to;
	} cases[] = {
		{0, 0xff},            /* longer than any message */
		{3, 0},               /* shorter than its head */
		{4, 9},               /* another version */
		{5, 0},               /* no kind */
		{5, 5},    {15, 200}, /* a field beyond the end */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wire_buffer buffer = a_call();
		struct wire_message message;

		buffer.data[cases[i].at] = cases[i].to;
		assert_int_equal(wire_read(buffer.data, buffer.len, &message), -1);
		free(buffer.data);
	}
}

TEST(a_message_that_is_too_large_is_taken_back)
{
	struct wire_buffer buffer = a_call();
	size_t before = buffer.len, begun = wire_begin(&buffer, WIRE_CALL);
	char *large = calloc(1, WIRE_MAX);

	wire_add(&buffer, WIRE_STDIN, large, WIRE_MAX);
	assert_int_equal(wire_end(&buffer, begun), -1);
	assert_int_equal(buffer.len, before);
	free(large);
	free(buffer.data);
}

TEST(what_is_no_number_is_the_other_value)
{
	const struct wire_field field = {.data = (const unsigned char *)"abc", .len = 3};

	assert_int_equal(wire_number(&field, 7), 7);
}
