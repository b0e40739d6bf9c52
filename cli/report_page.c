// SPDX-License-Identifier: Apache-2.0
/* Both files are in the program. Their marks, @NAME@, are replaced when the page is written. */
#include "cli/report_page.h"

#include <string.h>

#include "lib/json/json.h"

/* As they are when this program is built. */
__asm__(".pushsection .rodata\n"
	"report_html: .incbin \"cli/report.html\"\n"
	".byte 0\n"
	"report_live_js: .incbin \"cli/report_live.js\"\n"
	".byte 0\n"
	".popsection\n");
extern const char report_html[] __attribute__((visibility("hidden")));
extern const char report_live_js[] __attribute__((visibility("hidden")));

/* Of a page in a file. One that is served has a header. */
#define POLICY                                                                                     \
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "              \
	"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"

struct mark {
	const char *name, *text;
};

static void add_page(struct strbuf *out, const struct mark *marks, size_t n)
{
	const char *at = report_html, *next;

	for (; (next = strchr(at, '@')) != NULL; at = next) {
		size_t i = 0;

		strbuf_add(out, at, (size_t)(next - at));
		while (i < n && !str_starts(next, marks[i].name))
			i++;
		strbuf_adds(out, i < n ? marks[i].text : "@");
		next += i < n ? strlen(marks[i].name) : 1;
	}
	strbuf_adds(out, at);
}

/*
 * JSON that may stand in a script element: no byte of it ends or begins markup (HTML Standard,
 * 4.12.1.3), whatever names the cluster has.
 */
static void add_for_script(struct strbuf *out, const char *json)
{
	for (; *json; json++)
		if (*json == '<' || *json == '>' || *json == '&')
			strbuf_addf(out, "\\u%04x", *json);
		else
			strbuf_addc(out, *json);
}

void report_page(struct strbuf *out, const json_t *data)
{
	auto_strbuf struct strbuf json = {0}, script = {0};

	json_write(data, &json);
	strbuf_reserve(&script, json.len);
	add_for_script(&script, strbuf_str(&json));
	add_page(out,
		 (const struct mark[]){{"@POLICY@", POLICY},
				       {"@NONCE@", ""},
				       {"@DATA@", strbuf_str(&script)},
				       {"@LIVE@", ""}},
		 4);
}

void report_page_live(struct strbuf *out, const char *nonce)
{
	auto_free char *attribute = str_printf(" nonce=\"%s\"", nonce);

	add_page(out,
		 (const struct mark[]){{"@POLICY@", ""},
				       {"@NONCE@", attribute},
				       {"@DATA@", "null"},
				       {"@LIVE@", report_live_js}},
		 4);
}
