// SPDX-License-Identifier: Apache-2.0
/* Walks the blocks of a PEM text: BEGIN line, base64, END line with the same label. */
#include "lib/kube/auth/pem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"
#include "lib/kube/auth/secret.h"

#define BEGIN "-----BEGIN "
#define END   "-----END "
#define TAIL  "-----"

/* Labels are short words; "ENCRYPTED PRIVATE KEY" is the longest that we know. */
#define LABEL_MAX 64

struct block {
	char label[LABEL_MAX];
	const char *body; /* what is between the two lines */
	size_t body_len;
};

struct tally {
	unsigned int certificates;
	unsigned int keys;
	unsigned int encrypted_keys;
};

static const char *find(const char *from, const char *end, const char *needle)
{
	return memmem(from, (size_t)(end - from), needle, strlen(needle));
}

/* 1: *ret is the next block and *pos stands behind it; 0: no more; -1: a block without its end. */
static int next_block(const char **pos, const char *end, struct block *ret, struct err *err)
{
	char end_line[LABEL_MAX + sizeof(END TAIL)];
	const char *begin = find(*pos, end, BEGIN);
	const char *label, *label_end, *stop;

	if (!begin)
		return 0;
	label = begin + strlen(BEGIN);
	label_end = find(label, end, TAIL);
	if (!label_end || label_end - label >= LABEL_MAX ||
	    memchr(label, '\n', (size_t)(label_end - label))) {
		err_set(err, ERR_INVALID, "BadPem", "has a damaged " BEGIN "line");
		return -1;
	}

	memcpy(ret->label, label, (size_t)(label_end - label));
	ret->label[label_end - label] = '\0';
	ret->body = label_end + strlen(TAIL);
	(void)snprintf(end_line, sizeof(end_line), END "%s" TAIL, ret->label);
	stop = find(ret->body, end, end_line);
	if (!stop) {
		err_set(err, ERR_INVALID, "BadPem",
			"is cut off: no end line follows one of its " BEGIN "lines");
		return -1;
	}
	ret->body_len = (size_t)(stop - ret->body);
	*pos = stop + strlen(end_line);
	return 1;
}

/* A DER SEQUENCE (X.690 section 8.1.3) that fills the buffer exactly. */
static bool is_der_sequence(const uint8_t *der, size_t len)
{
	size_t header = 2, content = 0;

	if (len < 2 || der[0] != 0x30)
		return false;
	if (der[1] < 0x80) {
		content = der[1];
	} else {
		unsigned int bytes = der[1] & 0x7f;

		if (bytes < 1 || bytes > 4 || len < 2 + (size_t)bytes)
			return false;
		for (unsigned int i = 0; i < bytes; i++)
			content = content << 8 | der[2 + i];
		header += bytes;
	}
	return content > 0 && len - header == content;
}

static int check_block(const struct block *block, unsigned int nth, struct err *err)
{
	auto_secret_buf struct strbuf text = {0};
	auto_secret_buf struct strbuf der = {0};

	/* Blanks at line ends are common after copying, and every TLS library passes over them. */
	for (size_t i = 0; i < block->body_len; i++)
		if (block->body[i] != ' ' && block->body[i] != '\t')
			strbuf_addc(&text, block->body[i]);
	if (base64_decode(strbuf_str(&text), text.len, &der, NULL) < 0 ||
	    !is_der_sequence((const uint8_t *)strbuf_str(&der), der.len))
		return err_set(err, ERR_INVALID, "BadPem",
			       "is damaged: what is inside \"%s\" block %u cannot be decoded",
			       block->label, nth);
	return 0;
}

/* RFC 1421 headers inside a block mean an old-style encrypted key. */
static bool block_is_encrypted(const struct block *block)
{
	return str_eq(block->label, "ENCRYPTED PRIVATE KEY") ||
	       memmem(block->body, block->body_len, "Proc-Type:", strlen("Proc-Type:"));
}

static int walk(const char *text, size_t len, enum pem_kind kind, struct tally *t, struct err *err)
{
	const char *pos = text, *end = text + len;
	struct block block = {0};
	int more;

	while ((more = next_block(&pos, end, &block, err)) > 0) {
		bool is_key = str_ends(block.label, "PRIVATE KEY");
		bool is_cert = str_eq(block.label, "CERTIFICATE");

		t->certificates += is_cert;
		if (is_key && block_is_encrypted(&block)) {
			t->encrypted_keys++;
			continue;
		}
		t->keys += is_key;
		if (is_cert && kind == PEM_CERTIFICATES &&
		    check_block(&block, t->certificates, err) < 0)
			return -1;
		if (is_key && kind == PEM_PRIVATE_KEY && check_block(&block, t->keys, err) < 0)
			return -1;
	}
	return more;
}

static int wrong_content(const char *text, size_t len, enum pem_kind kind, const struct tally *t,
			 struct err *err)
{
	const char *what = kind == PEM_CERTIFICATES ? "certificate" : "private key";

	if (len == 0)
		return err_set(err, ERR_INVALID, "BadPem", "is empty, must hold a PEM %s", what);
	if (kind == PEM_PRIVATE_KEY && t->encrypted_keys)
		return err_set(
			err, ERR_INVALID, "BadPem",
			"needs a passphrase; give a key without one (openssl pkey -in FILE)");
	if (kind == PEM_PRIVATE_KEY && t->keys > 1)
		return err_set(err, ERR_INVALID, "BadPem", "holds %u private keys, must hold one",
			       t->keys);
	if (kind == PEM_PRIVATE_KEY && t->certificates)
		return err_set(err, ERR_INVALID, "BadPem",
			       "holds a certificate but no private key");
	if (kind == PEM_CERTIFICATES && (t->keys || t->encrypted_keys))
		return err_set(err, ERR_INVALID, "BadPem",
			       "holds a private key but no certificate");
	if (is_der_sequence((const uint8_t *)text, len))
		return err_set(err, ERR_INVALID, "BadPem",
			       "is DER, must be PEM (openssl %s -inform DER)",
			       kind == PEM_CERTIFICATES ? "x509" : "pkey");
	if (memchr(text, '\0', len))
		return err_set(err, ERR_INVALID, "BadPem", "is not text, must be a PEM %s", what);
	return err_set(err, ERR_INVALID, "BadPem", "holds no %s (no \"" BEGIN "%s" TAIL "\" line)",
		       what, kind == PEM_CERTIFICATES ? "CERTIFICATE" : "PRIVATE KEY");
}

int pem_check(const char *text, size_t len, enum pem_kind kind, struct err *err)
{
	struct tally t = {0};

	assert(text || len == 0);
	/* From here on it is handled as a string. */
	if (memchr(text, '\0', len))
		return wrong_content(text, len, kind, &t, err);
	if (walk(text, len, kind, &t, err) < 0)
		return -1;
	if (kind == PEM_CERTIFICATES && t.certificates)
		return 0;
	if (kind == PEM_PRIVATE_KEY && t.keys == 1 && !t.encrypted_keys)
		return 0;
	return wrong_content(text, len, kind, &t, err);
}
