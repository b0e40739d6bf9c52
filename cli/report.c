// SPDX-License-Identifier: Apache-2.0
/* The command `orbweaver report`: one HTML file, or a page that is served and stays up to date. */
#include "cli/report.h"

#include <fcntl.h>

#include "cli/pathtest/results.h"
#include "cli/pathtest/rounds.h"
#include "cli/print.h"
#include "cli/report_data.h"
#include "cli/report_page.h"
#include "cli/report_serve.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"

#define FILE_MODE     0644
#define TEST_SIZE_MAX (16u << 20)

/* Put what the file of --test says, if there is one, into the report's data. */
static int add_test(const char *path, json_t *data, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *document = NULL, *test = NULL;
	const json_t *items;

	if (!path)
		return 0;
	if (fs_read(AT_FDCWD, path, TEST_SIZE_MAX, &text, err) < 0)
		return -1;
	document = json_parse(strbuf_str(&text), text.len, err);
	if (!document)
		return err_in(err, "%s", path);
	items = json_at(document, "items");
	if (!str_eq(json_str_at(document, "kind"), "PathTest") || !json_is_array(items) ||
	    json_array_size(items) > PATHTEST_PATHS_MAX)
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--test %s: must be what orbweaver test -o json prints", path);
	test = results_picture(items);
	json_put(test, "ring", json_incref(json_at(document, "ring", "busGbps")));
	json_put(data, "test", json_incref(test));
	return 0;
}

int report_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	auto_strbuf struct strbuf page = {0};
	json_auto_t *data = NULL;

	if (cli->serve && cli->test)
		return err_set(err, ERR_INVALID, "BadUsage", "--test does not go with --serve");
	if (cli->serve)
		return report_serve(cli, err);
	data = report_data(cli);
	if (add_test(cli->test, data, err) < 0)
		return -1;
	if (cli->output != CLI_TABLE) {
		print_document(cli, out, data);
		return 0;
	}
	report_page(&page, data);
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
