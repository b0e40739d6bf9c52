// SPDX-License-Identifier: Apache-2.0
/*
 * What modprobe.d and the kernel's command line say of ib_core, read in the order in which modprobe
 * reads them: the last answer counts. The planner compares it with what a policy wants; steps then
 * write or remove our own file, which sorts behind all others.
 */
#include "nodeagent/host/nextboot.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/root.h"
#include "lib/json/json.h"
#include "lib/json/keys.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/model/step.h"

#define CONFIG_MAX (1 << 20)

/* ---- texts ----------------------------------------------------------------------------------- */

/* modprobe and the kernel take '-' for '_' in names of modules and parameters. */
static bool is_name(const char *text, size_t len, const char *name)
{
	if (len != strlen(name))
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] != name[i] && !(text[i] == '-' && name[i] == '_'))
			return false;
	return true;
}

/* The kernel's bool parameters: y, Y, t, T, 1, on; n, N, f, F, 0, off; a name alone is true. */
static enum rdma_mode mode_of_value(const char *value, size_t len)
{
	if (len == 0)
		return RDMA_MODE_UNKNOWN;
	if (strchr("yYtT1", value[0]))
		return RDMA_MODE_SHARED;
	if (strchr("nNfF0", value[0]))
		return RDMA_MODE_EXCLUSIVE;
	if (len >= 2 && (value[0] | 32) == 'o' && (value[1] | 32) == 'n')
		return RDMA_MODE_SHARED;
	if (len >= 2 && (value[0] | 32) == 'o' && (value[1] | 32) == 'f')
		return RDMA_MODE_EXCLUSIVE;
	return RDMA_MODE_UNKNOWN;
}

/* One word "name=value", or "name". Unknown when it is another parameter or says nothing. */
static enum rdma_mode mode_of_word(const char *word, size_t len, const char *parameter)
{
	const char *equals = memchr(word, '=', len);
	size_t name_len = equals ? (size_t)(equals - word) : len;

	if (!is_name(word, name_len, parameter))
		return RDMA_MODE_UNKNOWN;
	return equals ? mode_of_value(equals + 1, len - name_len - 1) : RDMA_MODE_SHARED;
}

/* The next word of a line, NULL at its end. */
static const char *next_word(const char **at, const char *end, size_t *ret_len)
{
	const char *word;

	while (*at < end && strchr(" \t\r", **at))
		(*at)++;
	word = *at;
	while (*at < end && !strchr(" \t\r", **at))
		(*at)++;
	*ret_len = (size_t)(*at - word);
	return *ret_len ? word : NULL;
}

static enum rdma_mode mode_of_line(const char *line, const char *end)
{
	enum rdma_mode mode = RDMA_MODE_UNKNOWN;
	const char *word;
	size_t len;

	word = next_word(&line, end, &len);
	if (!word || !is_name(word, len, "options"))
		return mode;
	word = next_word(&line, end, &len);
	if (!word || !is_name(word, len, "ib_core"))
		return mode;
	while ((word = next_word(&line, end, &len))) {
		enum rdma_mode answer = mode_of_word(word, len, "netns_mode");

		if (answer != RDMA_MODE_UNKNOWN)
			mode = answer;
	}
	return mode;
}

/* modprobe.d(5): a backslash before the line's end joins it with the next. New. */
static char *join_lines(const char *text)
{
	char *joined = str_dup(text);

	for (char *p = strstr(joined, "\\\n"); p; p = strstr(p, "\\\n"))
		p[0] = p[1] = ' ';
	return joined;
}

enum rdma_mode next_boot_parse_modprobe(const char *text)
{
	enum rdma_mode mode = RDMA_MODE_UNKNOWN;
	auto_free char *joined = join_lines(text);
	const char *line = joined;

	while (*line) {
		const char *end = line + strcspn(line, "\n");
		enum rdma_mode answer = mode_of_line(line, end);

		if (answer != RDMA_MODE_UNKNOWN)
			mode = answer;
		line = *end ? end + 1 : end;
	}
	return mode;
}

static bool is_command(const char *line, const char *end)
{
	const char *word;
	size_t len;

	word = next_word(&line, end, &len);
	if (!word || !is_name(word, len, "install"))
		return false;
	word = next_word(&line, end, &len);
	return word && is_name(word, len, "ib_core");
}

bool next_boot_parse_command(const char *text)
{
	auto_free char *joined = join_lines(text);
	const char *line = joined;

	while (*line) {
		const char *end = line + strcspn(line, "\n");

		if (is_command(line, end))
			return true;
		line = *end ? end + 1 : end;
	}
	return false;
}

enum rdma_mode next_boot_parse_command_line(const char *text)
{
	enum rdma_mode mode = RDMA_MODE_UNKNOWN;
	const char *end = text + strcspn(text, "\n"), *word;
	size_t len;

	while ((word = next_word(&text, end, &len))) {
		enum rdma_mode answer = mode_of_word(word, len, "ib_core.netns_mode");

		if (answer != RDMA_MODE_UNKNOWN)
			mode = answer;
	}
	return mode;
}

/* ---- sources --------------------------------------------------------------------------------- */

static void add_answer(json_t *answers, const char *source, const char *file, enum rdma_mode mode)
{
	json_t *answer = json_object();

	json_put_str(answer, "source", source);
	json_put_str(answer, "file", file);
	json_put_str(answer, "mode", rdma_mode_name(mode));
	json_array_append_new(answers, answer);
}

/*
 * modprobe.d(5): a file of the same name in an earlier folder takes its place; then all are read in
 * the order of names.
 */
static json_t *config_files(const struct host *host)
{
	static const char *const folders[] = {"etc/modprobe.d", "run/modprobe.d",
					      "usr/local/lib/modprobe.d", "usr/lib/modprobe.d",
					      "lib/modprobe.d"};
	json_t *files = json_object();

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		json_auto_t *names = sysfs_list(host, folders[i]);
		json_t *name;
		size_t at;

		json_array_foreach (names, at, name) {
			const char *text = json_string_value(name);

			if (str_ends(text, ".conf") && !json_object_get(files, text))
				json_put(files, text, json_fmt("%s/%s", folders[i], text));
		}
	}
	return files;
}

/*
 * All answers, each overruled by those behind it. *ret_command: the first file with a command of
 * its own for loading ib_core, new; NULL: none.
 */
static json_t *all_answers(const struct host *host, json_t **ret_command)
{
	json_auto_t *files = config_files(host);
	size_t n;
	auto_free const char **names = json_sorted_keys(files, &n);
	auto_strbuf struct strbuf command_line = {0};
	json_t *answers = json_array();
	enum rdma_mode mode;

	*ret_command = NULL;
	for (size_t i = 0; i < n; i++) {
		const char *path = json_str_at(files, names[i]);
		auto_free char *file = str_printf("/%s", path);
		auto_strbuf struct strbuf text = {0};

		if (!sysfs_read_file(host, path, CONFIG_MAX, &text))
			continue;
		if (!*ret_command && next_boot_parse_command(strbuf_str(&text)))
			*ret_command = json_string(file);
		mode = next_boot_parse_modprobe(strbuf_str(&text));
		if (mode != RDMA_MODE_UNKNOWN)
			add_answer(answers, "modprobe.d", file, mode);
	}
	if (sysfs_read_file(host, "proc/cmdline", CONFIG_MAX, &command_line)) {
		mode = next_boot_parse_command_line(strbuf_str(&command_line));
		if (mode != RDMA_MODE_UNKNOWN)
			add_answer(answers, "command-line", "/proc/cmdline", mode);
	}
	return answers;
}

void next_boot_id(const struct host *host, struct sysfs_text *ret)
{
	if (!sysfs_read(host, "proc/sys/kernel/random/boot_id", ret))
		ret->text[0] = '\0';
}

json_t *next_boot_observe(const struct host *host)
{
	json_t *command = NULL;
	json_auto_t *answers = all_answers(host, &command);
	json_t *ret = json_object(), *overruled = json_array();
	size_t n = json_array_size(answers);
	auto_strbuf struct strbuf own = {0};
	struct sysfs_text boot;

	if (n > 0)
		(void)json_object_update(ret, json_array_get(answers, n - 1));
	for (size_t i = 0; i + 1 < n; i++)
		json_array_append(overruled, json_array_get(answers, i));
	json_put(ret, "overruled", overruled);
	json_put(ret, "command", command);
	if (!sysfs_read_file(host, HOST_NEXT_BOOT_FILE, CONFIG_MAX, &own))
		return ret;
	next_boot_id(host, &boot);
	json_put_str(ret, "own", rdma_mode_name(next_boot_parse_modprobe(strbuf_str(&own))));
	json_put_bool(ret, "ownSinceBoot",
		      boot.text[0] && strstr(strbuf_str(&own), boot.text) != NULL);
	return ret;
}

/* ---- our own file ---------------------------------------------------------------------------- */

int next_boot_write(struct host *host, enum rdma_mode mode, bool *ret_changed, struct err *err)
{
	auto_strbuf struct strbuf text = {0}, before = {0};
	struct sysfs_text boot;

	assert(mode != RDMA_MODE_UNKNOWN);
	*ret_changed = false;
	if (sysfs_read_file(host, HOST_NEXT_BOOT_FILE, CONFIG_MAX, &before) &&
	    next_boot_parse_modprobe(strbuf_str(&before)) == mode)
		return 0;
	next_boot_id(host, &boot);
	strbuf_addf(&text,
		    "# Written by orbweaver-agent: system.rdmaMode of this node is \"%s\".\n"
		    "# Since boot %s; in force from the next one on.\n"
		    "options ib_core netns_mode=%d\n",
		    rdma_mode_name(mode), boot.text, (int)mode);
	if (root_make_dirs(host->root, "etc/modprobe.d", 0755) < 0)
		return err_sys(err, "FileNotWritten", "make /etc/modprobe.d");
	if (root_write_atomic(host->root, HOST_NEXT_BOOT_FILE, text.data, text.len, 0644, err) < 0)
		return -1;
	*ret_changed = true;
	return 0;
}

int next_boot_remove(struct host *host, bool *ret_changed, struct err *err)
{
	*ret_changed = false;
	if (root_remove(host->root, HOST_NEXT_BOOT_FILE) == 0) {
		*ret_changed = true;
		return 0;
	}
	if (errno == ENOENT)
		return 0;
	return err_sys(err, "FileNotWritten", "remove /%s", HOST_NEXT_BOOT_FILE);
}
