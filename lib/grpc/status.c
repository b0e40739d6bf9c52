// SPDX-License-Identifier: Apache-2.0
/* Codes, texts and time limits of calls, to and from header values. */
#include "lib/grpc/status.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>

#define TIMEOUT_DIGITS    8
#define TIMEOUT_COUNT_MAX 99999999

static const char *const code_names[] = {
	[GRPC_OK] = "OK",
	[GRPC_CANCELLED] = "Canceled", /* as Go spells it, and so all Kubernetes logs */
	[GRPC_UNKNOWN] = "Unknown",
	[GRPC_INVALID_ARGUMENT] = "InvalidArgument",
	[GRPC_DEADLINE_EXCEEDED] = "DeadlineExceeded",
	[GRPC_NOT_FOUND] = "NotFound",
	[GRPC_ALREADY_EXISTS] = "AlreadyExists",
	[GRPC_PERMISSION_DENIED] = "PermissionDenied",
	[GRPC_RESOURCE_EXHAUSTED] = "ResourceExhausted",
	[GRPC_FAILED_PRECONDITION] = "FailedPrecondition",
	[GRPC_ABORTED] = "Aborted",
	[GRPC_OUT_OF_RANGE] = "OutOfRange",
	[GRPC_UNIMPLEMENTED] = "Unimplemented",
	[GRPC_INTERNAL] = "Internal",
	[GRPC_UNAVAILABLE] = "Unavailable",
	[GRPC_DATA_LOSS] = "DataLoss",
	[GRPC_UNAUTHENTICATED] = "Unauthenticated",
};

const char *grpc_code_name(enum grpc_code code)
{
	assert((size_t)code < ARRAY_LEN(code_names));
	return code_names[code];
}

int grpc_status_vset(struct grpc_status *status, enum grpc_code code, const char *fmt, va_list ap)
{
	auto_free char *raw = str_vprintf(fmt, ap);
	auto_strbuf struct strbuf text = {0};
	size_t kept;

	strbuf_add_utf8(&text, raw, strlen(raw));
	kept = str_clip(strbuf_str(&text), text.len, sizeof(status->text) - 1);
	memcpy(status->text, strbuf_str(&text), kept);
	status->text[kept] = '\0';
	status->code = code;
	return code == GRPC_OK ? 0 : -1;
}

int grpc_status_set(struct grpc_status *status, enum grpc_code code, const char *fmt, ...)
{
	va_list ap;
	int result;

	va_start(ap, fmt);
	result = grpc_status_vset(status, code, fmt, ap);
	va_end(ap);
	return result;
}

void grpc_status_parse(const char *code, const char *message, struct grpc_status *ret)
{
	auto_strbuf struct strbuf text = {0};
	int64_t number = GRPC_UNKNOWN;

	assert(ret);
	if (message)
		grpc_text_decode(message, &text);
	if (!str_to_int(code, 0, ARRAY_LEN(code_names) - 1, &number) && text.len == 0)
		strbuf_addf(&text, "the peer sent grpc-status \"%.32s\"", code);
	(void)grpc_status_set(ret, (enum grpc_code)number, "%s", strbuf_str(&text));
}

enum grpc_code grpc_code_from_http(const char *http_status)
{
	int64_t code = 0;

	(void)str_to_int(http_status, 100, 999, &code);
	switch (code) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

enum grpc_code grpc_code_from_h2(uint32_t h2_error)
{
	switch (h2_error) {
	case NGHTTP2_REFUSED_STREAM:
		return GRPC_UNAVAILABLE;
	case NGHTTP2_CANCEL:
		return GRPC_CANCELLED;
	case NGHTTP2_ENHANCE_YOUR_CALM:
		return GRPC_RESOURCE_EXHAUSTED;
	case NGHTTP2_INADEQUATE_SECURITY:
		return GRPC_PERMISSION_DENIED;
	default:
		return GRPC_INTERNAL;
	}
}

void grpc_text_encode(const char *text, struct strbuf *ret)
{
	size_t len = strlen(text);

	assert(text && ret);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		/* HTTP/2 forbids blanks at the ends of a value (RFC 9113 section 8.2.1). */
		bool is_edge = i == 0 || i == len - 1;

		if (c < 0x20 || c > 0x7e || c == '%' || (c == ' ' && is_edge))
			strbuf_addf(ret, "%%%02X", c);
		else
			strbuf_addc(ret, (char)c);
	}
}

void grpc_text_decode(const char *value, struct strbuf *ret)
{
	auto_strbuf struct strbuf bytes = {0};

	assert(value && ret);
	while (*value) {
		int high = value[0] == '%' ? str_hex_digit(value[1]) : -1;
		int low = high >= 0 ? str_hex_digit(value[2]) : -1;
		uint8_t byte = low >= 0 ? (uint8_t)(high << 4 | low) : 0;

		/* "%00" is left as text: what is decoded stays a C string. */
		strbuf_add(&bytes, byte ? (const void *)&byte : value, 1);
		value += byte ? 3 : 1;
	}
	strbuf_add_utf8(ret, strbuf_str(&bytes), bytes.len);
}

bool grpc_timeout_parse(const char *value, int64_t *ret_ms)
{
	char digits[TIMEOUT_DIGITS + 1] = "";
	size_t len = value ? strspn(value, "0123456789") : 0;
	int64_t count = 0;

	assert(ret_ms);
	if (len == 0 || len > TIMEOUT_DIGITS || value[len] == '\0' || value[len + 1] != '\0')
		return false;
	memcpy(digits, value, len);
	if (!str_to_int(digits, 0, TIMEOUT_COUNT_MAX, &count))
		return false;
	switch (value[len]) {
	case 'H':
		*ret_ms = count * 3600 * 1000;
		return true;
	case 'M':
		*ret_ms = count * 60 * 1000;
		return true;
	case 'S':
		*ret_ms = count * 1000;
		return true;
	case 'm':
		*ret_ms = count;
		return true;
	case 'u':
		*ret_ms = (count + 999) / 1000;
		return true;
	case 'n':
		*ret_ms = (count + 999999) / 1000000;
		return true;
	default:
		return false;
	}
}

void grpc_timeout_format(int64_t timeout_ms, char out[GRPC_TIMEOUT_SIZE])
{
	static const struct {
		char unit;
		int64_t ms;
	} units[] = {{'m', 1}, {'S', 1000}, {'M', 60 * 1000}, {'H', 3600 * 1000}};
	int64_t count = TIMEOUT_COUNT_MAX;
	char unit = 'H';

	assert(timeout_ms > 0);
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		int64_t n = timeout_ms / units[i].ms + (timeout_ms % units[i].ms != 0);

		if (n > TIMEOUT_COUNT_MAX)
			continue;
		count = n;
		unit = units[i].unit;
		break;
	}
	snprintf(out, GRPC_TIMEOUT_SIZE, "%lld%c", (long long)count, unit);
}
