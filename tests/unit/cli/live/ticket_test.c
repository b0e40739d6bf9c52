// SPDX-License-Identifier: Apache-2.0
/*
 * Which requests get the live report. The same ones come over a connection in
 * tests/integration/cli_report_live_test.sh.
 */
#include "tests/support/test.h"

#include <string.h>

#include "cli/live/ticket.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

#define TOKEN "00112233445566778899aabbccddeeff"
#define HOST  "Host: 127.0.0.1:8080\r\n"
#define OWN   "Origin: http://127.0.0.1:8080\r\n"
#define WS    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define LIVE  "GET /" TOKEN "/live HTTP/1.1\r\n"
#define PAGE  "GET /" TOKEN "/ HTTP/1.1\r\n"

enum { IS_PAGE = 200, IS_SOCKET = 101 };

/* The status that answers it. */
static int ask(const char *text)
{
	auto_free char *head = str_dup(text);
	int status = 0;

	switch (ticket_check(head, strlen(head), TOKEN, &status)) {
	case TICKET_PAGE:
		return IS_PAGE;
	case TICKET_SOCKET:
		return IS_SOCKET;
	case TICKET_REFUSED:
		break;
	}
	return status;
}

struct request_case {
	const char *about, *text;
	int status;
};

static void check(const struct request_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ask(cases[i].text) != cases[i].status)
			fail_msg("%s: %d, not %d", cases[i].about, ask(cases[i].text),
				 cases[i].status);
}

TEST(the_token_and_a_host_of_the_loopback_get_the_page)
{
	static const struct request_case cases[] = {
		{"IPv4", PAGE HOST "\r\n", IS_PAGE},
		{"a name", PAGE "Host: LocalHost:1\r\n\r\n", IS_PAGE},
		{"IPv6", PAGE "Host: [::1]:65535\r\n\r\n", IS_PAGE},
		{"port 80", PAGE "Host: 127.0.0.1\r\n\r\n", IS_PAGE},
		{"its own origin", PAGE HOST OWN "\r\n", IS_PAGE},
		{"a query", "GET /" TOKEN "/?x HTTP/1.1\r\n" HOST "\r\n", IS_PAGE},
	};

	check(cases, ARRAY_LEN(cases));
}

TEST(an_upgrade_of_the_same_origin_gets_the_socket)
{
	static const struct request_case cases[] = {
		{"as a browser sends it", LIVE HOST OWN WS "\r\n", IS_SOCKET},
		{"in other letters", LIVE HOST OWN "Upgrade: WebSocket\r\n\r\n", IS_SOCKET},
		{"IPv6", LIVE "Host: [::1]:8080\r\nOrigin: http://[::1]:8080\r\n" WS "\r\n",
		 IS_SOCKET},
	};

	check(cases, ARRAY_LEN(cases));
}

TEST(a_host_of_another_site_is_refused_whatever_it_begins_with)
{
	static const struct request_case cases[] = {
		{"a name", PAGE "Host: rebound.example\r\n\r\n", 403},
		{"of the network", PAGE "Host: 192.168.0.1:8080\r\n\r\n", 403},
		{"longer", PAGE "Host: 127.0.0.1.example:8080\r\n\r\n", 403},
		{"longer name", PAGE "Host: localhost.example\r\n\r\n", 403},
		{"with a user", PAGE "Host: 127.0.0.1@example\r\n\r\n", 403},
		{"no port behind the colon", PAGE "Host: 127.0.0.1:\r\n\r\n", 403},
		{"a port that is a name", PAGE "Host: 127.0.0.1:x\r\n\r\n", 403},
		{"port 0", PAGE "Host: 127.0.0.1:0\r\n\r\n", 403},
		{"none", "GET /" TOKEN "/ HTTP/1.0\r\n\r\n", 403},
		{"an empty one", PAGE "Host:\r\n\r\n", 403},
		{"two", PAGE HOST HOST "\r\n", 400},
		{"without the token it is the same", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 403},
	};

	check(cases, ARRAY_LEN(cases));
}

TEST(an_origin_that_differs_from_the_host_is_refused)
{
	static const struct request_case cases[] = {
		{"another site", LIVE HOST "Origin: http://example\r\n" WS "\r\n", 403},
		{"another port", LIVE HOST "Origin: http://127.0.0.1:8081\r\n" WS "\r\n", 403},
		{"another name", LIVE HOST "Origin: http://localhost:8080\r\n" WS "\r\n", 403},
		{"another scheme", LIVE HOST "Origin: https://127.0.0.1:8080\r\n" WS "\r\n", 403},
		{"longer", LIVE HOST "Origin: http://127.0.0.1:8080.x\r\n" WS "\r\n", 403},
		{"shorter", LIVE HOST "Origin: http://127.0.0.1:808\r\n" WS "\r\n", 403},
		{"of a file", LIVE HOST "Origin: null\r\n" WS "\r\n", 403},
		{"none", LIVE HOST WS "\r\n", 403},
		{"two", LIVE HOST OWN OWN WS "\r\n", 400},
		{"of the page", PAGE HOST "Origin: http://example\r\n\r\n", 403},
	};

	check(cases, ARRAY_LEN(cases));
}

TEST(each_digit_of_the_token_counts)
{
	for (size_t i = 0; i < TICKET_TOKEN_LEN; i++) {
		char text[] = PAGE HOST "\r\n";

		text[strlen("GET /") + i] ^= 1;
		assert_int_equal(ask(text), 404);
	}
}

TEST(other_paths_are_not_found)
{
	static const struct request_case cases[] = {
		{"the root", "GET / HTTP/1.1\r\n" HOST "\r\n", 404},
		{"half of the token", "GET /00112233445566 HTTP/1.1\r\n" HOST "\r\n", 404},
		{"no slash behind it", "GET /" TOKEN " HTTP/1.1\r\n" HOST "\r\n", 404},
		{"more behind it", "GET /" TOKEN "/x HTTP/1.1\r\n" HOST "\r\n", 404},
		{"longer", "GET /" TOKEN "0/ HTTP/1.1\r\n" HOST "\r\n", 404},
		{"below the socket", "GET /" TOKEN "/live/ HTTP/1.1\r\n" HOST OWN WS "\r\n", 404},
		{"as a query", "GET /?/" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", 404},
	};

	check(cases, ARRAY_LEN(cases));
}

TEST(other_requests_are_refused)
{
	static const struct request_case cases[] = {
		{"POST", "POST /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", 405},
		{"HEAD", "HEAD /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", 405},
		{"a body", PAGE HOST "Content-Length: 1\r\n\r\n", 413},
		{"a body in pieces", PAGE HOST "Transfer-Encoding: chunked\r\n\r\n", 411},
		{"the socket without an upgrade", LIVE HOST OWN "\r\n", 426},
		{"another upgrade", LIVE HOST OWN "Upgrade: h2c\r\n\r\n", 426},
		{"no HTTP", "hello\r\n\r\n", 400},
	};

	check(cases, ARRAY_LEN(cases));
}

TEST(an_upgrade_goes_on_without_token_and_cookies)
{
	static const char head[] = LIVE HOST OWN WS "Cookie: a=b\r\nSec-WebSocket-Key: k\r\n"
						    "Sec-WebSocket-Extensions: x\r\n"
						    "sec-websocket-version: 13\r\n\r\n";
	auto_strbuf struct strbuf out = {0};

	ticket_upgrade(head, strlen(head), &out);
	assert_string_equal(strbuf_str(&out),
			    "GET /live HTTP/1.1\r\n" HOST OWN WS "Sec-WebSocket-Key: k\r\n"
			    "sec-websocket-version: 13\r\n\r\n");
}
