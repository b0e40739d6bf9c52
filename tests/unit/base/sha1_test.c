// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/base/sha1.h"
#include "lib/base/str.h"

static void gives_the_digests_of_the_standard(void **state)
{
	static const struct {
		const char *text;
		size_t times;
		const char *want;
	} rows[] = {
		{"", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		 "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
		/* RFC 3174, 7.3 */
		{"a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"},
		{"0123456701234567012345670123456701234567012345670123456701234567", 10,
		 "dea356a2cddd90c7a7ecedc5ebb563934f460452"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_strbuf struct strbuf text = {0}, hex = {0};
		uint8_t digest[SHA1_SIZE];

		for (size_t n = 0; n < rows[i].times; n++)
			strbuf_adds(&text, rows[i].text);
		sha1(strbuf_str(&text), text.len, digest);
		for (size_t n = 0; n < sizeof(digest); n++)
			strbuf_addf(&hex, "%02x", digest[n]);
		assert_string_equal(strbuf_str(&hex), rows[i].want);
	}
}

/* The length of the padding changes there; sanitizers watch what is read. */
static void every_length_around_a_block_has_a_digest_of_its_own(void **state)
{
	uint8_t last[SHA1_SIZE] = {0};

	for (size_t len = 50; len < 135; len++) {
		auto_free char *text = mem_zalloc(len);
		uint8_t digest[SHA1_SIZE];

		sha1(text, len, digest);
		assert_memory_not_equal(digest, last, sizeof(digest));
		memcpy(last, digest, sizeof(last));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_the_digests_of_the_standard),
		cmocka_unit_test(every_length_around_a_block_has_a_digest_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
