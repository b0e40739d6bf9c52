// SPDX-License-Identifier: Apache-2.0
/* Base64, four characters to three bytes and back. */
#include "lib/base/base64.h"

#include <assert.h>
#include <stdint.h>

/* The padding stands behind the 64 characters. */
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

enum { PAD = 64 };

/* The six bits that a character stands for, or -1. */
static int bits_of(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

struct decoder {
	uint32_t bits;      /* of the group so far */
	unsigned int chars; /* in the group so far, 0 to 3 */
	unsigned int pads;  /* '=' seen */
};

static int feed_digit(struct decoder *d, unsigned char c, size_t pos, struct strbuf *out,
		      struct err *err)
{
	int value = bits_of(c);

	if (c == '=') {
		if (d->chars + d->pads < 2 || d->chars + d->pads > 3)
			return err_set(err, ERR_INVALID, "BadBase64",
				       "not base64: padding at byte %zu is out of place", pos);
		d->pads++;
		return 0;
	}
	if (value < 0)
		return err_set(err, ERR_INVALID, "BadBase64",
			       "not base64: byte %zu is outside the alphabet", pos);
	if (d->pads)
		return err_set(err, ERR_INVALID, "BadBase64",
			       "not base64: byte %zu comes after the padding", pos);
	d->bits = d->bits << 6 | (uint32_t)value;
	if (++d->chars < 4)
		return 0;
	strbuf_add(out,
		   (const uint8_t[]){d->bits >> 16 & 0xff, d->bits >> 8 & 0xff, d->bits & 0xff}, 3);
	*d = (struct decoder){0};
	return 0;
}

static int decode_digits(const char *text, size_t len, struct strbuf *out, struct err *err)
{
	struct decoder d = {0};
	unsigned int spare;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			continue;
		if (feed_digit(&d, (unsigned char)text[i], i + 1, out, err) < 0)
			return -1;
	}
	/* The last group: nothing, or two or three characters with their padding. */
	spare = d.chars == 2 ? 4 : 2;
	if (!d.chars && !d.pads)
		return 0;
	if (d.chars + d.pads != 4)
		return err_set(err, ERR_INVALID, "BadBase64",
			       "not base64: it ends in the middle of a group of four");
	if (d.bits & ((1U << spare) - 1))
		return err_set(err, ERR_INVALID, "BadBase64",
			       "not base64: bits behind the last byte are set");
	if (d.chars == 2)
		strbuf_addc(out, (char)(d.bits >> 4 & 0xff));
	else
		strbuf_add(out, (const uint8_t[]){d.bits >> 10 & 0xff, d.bits >> 2 & 0xff}, 2);
	return 0;
}

int base64_decode(const char *text, size_t len, struct strbuf *ret, struct err *err)
{
	size_t before = ret->len;

	assert(ret && (text || len == 0));
	if (decode_digits(text, len, ret, err) == 0)
		return 0;
	strbuf_cut(ret, before);
	return -1;
}

void base64_encode(const void *data, size_t len, struct strbuf *ret)
{
	const uint8_t *in = data;

	assert(ret && (data || len == 0));
	for (size_t i = 0; i < len; i += 3) {
		size_t have = len - i < 3 ? len - i : 3;
		uint32_t bits = (uint32_t)in[i] << 16 | (have > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
				(have > 2 ? in[i + 2] : 0);

		strbuf_addc(ret, alphabet[bits >> 18]);
		strbuf_addc(ret, alphabet[bits >> 12 & 63]);
		strbuf_addc(ret, alphabet[have > 1 ? bits >> 6 & 63 : PAD]);
		strbuf_addc(ret, alphabet[have > 2 ? bits & 63 : PAD]);
	}
}
