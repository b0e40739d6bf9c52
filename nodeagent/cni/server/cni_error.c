// SPDX-License-Identifier: Apache-2.0
/*
 * The last stop of an error on its way to the runtime: cni_tasks.c answers the plugin with the
 * object made here. Reasons that CNI has a code for come first, then the class decides.
 */
#include "nodeagent/cni/server/cni_error.h"

#include <string.h>
#include <strings.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

enum cni_code cni_error_code(const struct err *err)
{
	static const struct {
		const char *reason;
		enum cni_code code;
	} known[] = {
		{"BadCniVersion", CNI_INCOMPATIBLE_VERSION},
		{"UnsupportedField", CNI_UNSUPPORTED_FIELD},
		{"BadEnvironment", CNI_BAD_ENVIRONMENT},
		{"BadJson", CNI_DECODE},
		{"BadResult", CNI_DECODE},
		{"BadNetns", CNI_BAD_NETNS},
		{"DeviceBusy", CNI_DEVICE_BUSY},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(err->reason, known[i].reason))
			return known[i].code;
	switch (err->class) {
	case ERR_INVALID:
		return CNI_BAD_CONFIG;
	case ERR_CONFLICT:
	case ERR_TRANSIENT:
		return CNI_TRY_LATER;
	case ERR_HOST:
		return CNI_IO;
	case ERR_NONE:
	case ERR_BUG:
		break;
	}
	return CNI_BUG;
}

json_t *cni_error(const char *version, const struct err *err)
{
	static const struct {
		const char *words, *instead;
	} swallowed[] = {
		{"not found", "missing"},
		{"no such file or directory", "missing path"},
	};
	auto_strbuf struct strbuf msg = {0};
	const char *at = err->text;
	json_t *object = json_object();

	while (*at) {
		size_t i;

		for (i = 0; i < ARRAY_LEN(swallowed); i++) {
			if (strncasecmp(at, swallowed[i].words, strlen(swallowed[i].words)) != 0)
				continue;
			strbuf_adds(&msg, swallowed[i].instead);
			at += strlen(swallowed[i].words);
			break;
		}
		if (i == ARRAY_LEN(swallowed))
			strbuf_addc(&msg, *at++);
	}
	if (!str_empty(version))
		json_put_str(object, "cniVersion", version);
	json_put_int(object, "code", cni_error_code(err));
	json_put_str(object, "msg", strbuf_str(&msg));
	if (!str_empty(err->reason))
		json_put_str(object, "details", err->reason);
	return object;
}
