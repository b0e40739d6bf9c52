// SPDX-License-Identifier: Apache-2.0
/*
 * The kubelet's answer about pods, made a document: of any bytes, valid JSON with owners in it;
 * equal bytes give equal documents.
 */
#include <stdint.h>

#include "lib/grpc/message.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/pod_resources_read.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check(const json_t *allocated)
{
	const char *resource, *id;
	json_t *ids, *owner;

	json_each (allocated, resource, ids) {
		if (json_object_size(ids) == 0)
			abort();
		json_each (ids, id, owner) {
			if (!json_is_string(owner) || !strchr(json_string_value(owner), '/'))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct grpc_status status;
	struct ProtobufCMessage *list = grpc_message_decode(
		&pod_resources__list_pod_resources_response__descriptor, data, size, size, &status);
	json_auto_t *first = NULL, *second = NULL, *parsed = NULL;
	auto_free char *text = NULL;

	if (!list)
		return 0;
	first = pod_resources_read((const void *)list);
	second = pod_resources_read((const void *)list);
	grpc_message_free(list);
	check(first);
	text = json_text(first);
	parsed = json_parse(text, strlen(text), NULL);
	if (!json_same(first, second) || !parsed || !json_same(first, parsed))
		abort();
	return 0;
}
