// SPDX-License-Identifier: Apache-2.0
#include "lib/base/sha1.h"

#include <string.h>

enum {
	BLOCK = 64,
	ROUNDS = 80,
	LENGTH_SIZE = 8, /* of the length in bits, at the end of the last block */
};

static uint32_t rotated(uint32_t word, unsigned int by)
{
	return word << by | word >> (32 - by);
}

static uint32_t word_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* RFC 3174, section 5: f and K of round t. */
static uint32_t mixed(unsigned int t, uint32_t b, uint32_t c, uint32_t d)
{
	if (t < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (t < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (t < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void take_block(uint32_t h[5], const uint8_t *block)
{
	uint32_t w[ROUNDS], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (size_t t = 0; t < 16; t++)
		w[t] = word_at(block + 4 * t);
	for (size_t t = 16; t < ROUNDS; t++)
		w[t] = rotated(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (unsigned int t = 0; t < ROUNDS; t++) {
		uint32_t next = rotated(a, 5) + mixed(t, b, c, d) + e + w[t];

		e = d;
		d = c;
		c = rotated(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void sha1(const void *data, size_t len, uint8_t ret[SHA1_SIZE])
{
	uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	const uint8_t *bytes = data;
	uint8_t last[2 * BLOCK] = {0};
	size_t rest = len % BLOCK, padded = rest < BLOCK - LENGTH_SIZE ? BLOCK : 2 * BLOCK;
	uint64_t bits = (uint64_t)len * 8;

	for (size_t at = 0; at + BLOCK <= len; at += BLOCK)
		take_block(h, bytes + at);
	if (rest > 0)
		memcpy(last, bytes + len - rest, rest);
	last[rest] = 0x80;
	for (size_t i = 0; i < LENGTH_SIZE; i++)
		last[padded - 1 - i] = (uint8_t)(bits >> (8 * i));
	for (size_t at = 0; at < padded; at += BLOCK)
		take_block(h, last + at);
	for (size_t i = 0; i < SHA1_SIZE; i++)
		ret[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
