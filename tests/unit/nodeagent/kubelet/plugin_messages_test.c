// SPDX-License-Identifier: Apache-2.0
/* What goes over the wire, byte by byte, encoded by hand from the kubelet's .proto files. */
#include "tests/support/test.h"

#include "lib/grpc/frame.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/message.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/plugin_messages.h"
#include "tests/unit/grpc/hex.h"

/* Without the five bytes of gRPC. Frees the message. */
static char *wire(ProtobufCMessage *message)
{
	auto_strbuf struct strbuf frame = {0};
	struct grpc_status status;

	assert_int_equal(grpc_message_encode(message, GRPC_MESSAGE_MAX, &frame, &status), 0);
	grpc_message_free(message);
	return to_hex(frame.data + GRPC_FRAME_HEAD, frame.len - GRPC_FRAME_HEAD);
}

static void assert_wire(ProtobufCMessage *message, const char *want)
{
	auto_free char *got = wire(message);
	auto_strbuf struct strbuf bytes = from_hex(want);
	auto_free char *wanted = to_hex(bytes.data, bytes.len);

	assert_string_equal(got, wanted);
}

static json_t *parse(const char *text)
{
	json_t *value = json_parse(text, strlen(text), NULL);

	assert_non_null(value);
	return value;
}

TEST(lists_are_the_recorded_bytes)
{
	static const struct {
		const char *devices;
		const char *wire;
	} cases[] = {
		{"[]", ""},
		{"[{\"id\": \"0\", \"healthy\": true}, {\"id\": \"1\", \"healthy\": true}]",
		 "0a0c 0a0130 1207 4865616c746879 0a0c 0a0131 1207 4865616c746879"},
		/* Node 0 is an empty message that is there. */
		{"[{\"id\": \"0000:3b:02.1\", \"healthy\": true, \"numa\": 0},"
		 " {\"id\": \"0000:d8:00.2\", \"healthy\": true, \"numa\": 1},"
		 " {\"id\": \"0000:d8:00.3\", \"healthy\": false, \"numa\": 1}]",
		 "0a1b 0a0c 303030303a33623a30322e31 1207 4865616c746879 1a02 0a00"
		 "0a1d 0a0c 303030303a64383a30302e32 1207 4865616c746879 1a04 0a02 0801"
		 "0a1f 0a0c 303030303a64383a30302e33 1209 556e6865616c746879 1a04 0a02 0801"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *devices = parse(cases[i].devices);

		assert_wire(&plugin_message_list(devices)->base, cases[i].wire);
	}
}

TEST(an_allocation_is_the_recorded_bytes)
{
	json_auto_t *allocation =
		parse("{\"env\": {\"PCIDEVICE_INTEL_COM_NET\": \"0000:3b:02.1\"}, \"nodes\": ["
		      "{\"path\": \"/dev/infiniband/uverbs0\", \"hostPath\": "
		      "\"/dev/infiniband/uverbs0\", \"permissions\": \"rw\"},"
		      "{\"path\": \"/dev/infiniband/rdma_cm\", \"hostPath\": "
		      "\"/dev/infiniband/rdma_cm\", \"permissions\": \"rw\"}]}");
	DevicePlugin__AllocateResponse response = DEVICE_PLUGIN__ALLOCATE_RESPONSE__INIT;
	DevicePlugin__ContainerAllocateResponse *one;
	auto_strbuf struct strbuf frame = {0};
	auto_free char *got = NULL;
	struct grpc_status status;

	one = plugin_message_allocation(allocation);
	response.container_responses = &one;
	response.n_container_responses = 1;
	assert_int_equal(grpc_message_encode(&response.base, GRPC_MESSAGE_MAX, &frame, &status), 0);
	grpc_message_free(&one->base);
	got = to_hex(frame.data, frame.len);
	assert_string_equal(got, "000000009c"
				 "0a9901"
				 "0a270a17504349444556494345"
				 "5f494e54454c5f434f4d5f4e4554120c303030303a33623a30322e31"
				 "1a360a172f6465762f696e66696e6962616e642f75766572627330"
				 "12172f6465762f696e66696e6962616e642f757665726273301a027277"
				 "1a360a172f6465762f696e66696e6962616e642f72646d615f636d"
				 "12172f6465762f696e66696e6962616e642f72646d615f636d1a027277");
}

TEST(a_mount_is_read_only)
{
	json_auto_t *allocation =
		parse("{\"mounts\": [{\"path\": \"/run/orbweaver\", \"hostPath\": \"/h\"}]}");

	assert_wire(&plugin_message_allocation(allocation)->base,
		    "1216 0a0e 2f72756e2f6f7262776561766572 1202 2f68 1801");
}

TEST(a_preference_is_the_recorded_bytes)
{
	const char *ids[] = {"b", "a"};

	/* Without the frame of PreferredAllocationResponse around it: 0a06. */
	assert_wire(&plugin_message_preferred(ids, 2)->base, "0a0162 0a0161");
	assert_wire(&plugin_message_preferred(ids, 0)->base, "");
}
