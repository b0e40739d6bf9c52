// SPDX-License-Identifier: Apache-2.0
/*
 * The length is checked before anything is parsed or reserved, on both sides. Pure: bytes in a
 * buffer; frame_io.c reads and writes them on blocking sockets, channels of the agent on a loop.
 */
#include "lib/json/frame.h"

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "lib/json/json.h"

#define HEADER_SIZE 4

int json_frame_write(const json_t *message, struct strbuf *out, struct err *err)
{
	size_t before = out->len, len;
	uint32_t header = 0;

	assert(message && out);
	strbuf_add(out, &header, sizeof(header));
	json_write(message, out);
	len = out->len - before - HEADER_SIZE;
	if (len > JSON_FRAME_MAX) {
		strbuf_cut(out, before);
		return err_set(
			err, ERR_BUG, "MessageTooLarge",
			"a message of %zu bytes between two processes of ours, %u is the most", len,
			JSON_FRAME_MAX);
	}
	header = htobe32((uint32_t)len);
	memcpy(out->data + before, &header, sizeof(header));
	return 0;
}

int json_frame_read(struct strbuf *in, json_t **ret, struct err *err)
{
	json_auto_t *message = NULL;
	struct err why = {0};
	uint32_t len;

	assert(in && ret);
	*ret = NULL;
	if (in->len < HEADER_SIZE)
		return 0;
	memcpy(&len, in->data, sizeof(len));
	len = be32toh(len);
	if (len > JSON_FRAME_MAX)
		return err_set(err, ERR_BUG, "BadFrame", "a frame of %u bytes, %u is the most", len,
			       JSON_FRAME_MAX);
	if (in->len - HEADER_SIZE < len)
		return 0;
	message = json_parse(in->data + HEADER_SIZE, len, &why);
	if (!message)
		return err_set(err, ERR_BUG, "BadFrame", "a frame that is not JSON: %s", why.text);
	if (!json_is_object(message))
		return err_set(err, ERR_BUG, "BadFrame", "a frame that is %s, not an object",
			       json_type_words(message));
	strbuf_consume(in, HEADER_SIZE + len);
	*ret = take_ptr(message);
	return 0;
}
