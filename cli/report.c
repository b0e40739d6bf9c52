/*
 * The report as one HTML file. See the header.
 *
 * The page is cli/report.html, with the data of the cluster as JSON in it: what draws it is a
 * script in the page, which puts every text of the cluster into text nodes.
 */
#include "cli/report.h"

#include <fcntl.h>
#include <string.h>

#include "cli/print.h"
#include "cli/report_data.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"

#define FILE_MODE 0644

/* ---- the page -------------------------------------------------------------------------------- */

/* cli/report.html, as it is when this program is built. */
__asm__(".pushsection .rodata\n"
	"report_page: .incbin \"cli/report.html\"\n"
	".byte 0\n"
	".popsection\n");
extern const char report_page[] __attribute__((visibility("hidden")));

#define DATA_MARK "@DATA@"

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

static void add_page(struct strbuf *out, const json_t *data)
{
	const char *mark = strstr(report_page, DATA_MARK);
	auto_strbuf struct strbuf json = {0};

	json_write(data, &json);
	strbuf_add(out, report_page, (size_t)(mark - report_page));
	strbuf_reserve(out, json.len);
	add_for_script(out, strbuf_str(&json));
	strbuf_adds(out, mark + strlen(DATA_MARK));
}

int report_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	json_auto_t *data = report_data(cli);
	auto_strbuf struct strbuf page = {0};

	if (cli->output != CLI_TABLE) {
		print_document(cli, out, data);
		return 0;
	}
	add_page(&page, data);
	if (cli->args_len == 0) {
		strbuf_add(out, page.data, page.len);
		return 0;
	}
	if (fs_write_atomic(AT_FDCWD, cli->args[0], page.data, page.len, FILE_MODE, err) < 0)
		return -1;
	strbuf_addf(out, "%s: %zu nodes, %zu findings, %zu KiB\n", cli->args[0],
		    json_array_size(json_at(data, "nodes")),
		    json_array_size(json_at(data, "findings")), page.len / 1024);
	return 0;
}
