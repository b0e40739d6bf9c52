// SPDX-License-Identifier: Apache-2.0
/*
 * The command `orbweaver report`: one HTML file, or a page that is served and stays up to date.
 */
#include "cli/report.h"

#include <fcntl.h>

#include "cli/print.h"
#include "cli/report_data.h"
#include "cli/report_page.h"
#include "cli/report_serve.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"

#define FILE_MODE 0644

int report_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	auto_strbuf struct strbuf page = {0};
	json_auto_t *data = NULL;

	if (cli->serve)
		return report_serve(cli, err);
	data = report_data(cli);
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
