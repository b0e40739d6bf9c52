// SPDX-License-Identifier: Apache-2.0
/*
 * The kubelet's messages, byte for byte as Go writes them: examples of the API reference, made
 * with protoc and read by Go.
 */
#include "tests/support/test.h"

#include "lib/grpc/message.h"

#include "lib/grpc/frame.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "lib/grpc/proto/plugin_registration.pb-c.h"
#include "lib/grpc/proto/pod_resources.pb-c.h"
#include "tests/unit/grpc/hex.h"

static const struct {
	const char *name;
	const ProtobufCMessageDescriptor *type;
	const char *hex;
} examples[] = {
	{"RegisterRequest", &device_plugin__register_request__descriptor,
	 "0a07 76316265746131 120a 6863615f612e736f636b 1a0a 72646d612f6863615f61"},
	{"RegisterRequest with an option", &device_plugin__register_request__descriptor,
	 "0a07 76316265746131 120a 6863615f612e736f636b 1a0a 72646d612f6863615f61 2202 0801"},
	{"RegisterRequest with options that are false",
	 &device_plugin__register_request__descriptor,
	 "0a07 76316265746131 120a 6863615f612e736f636b 1a0a 72646d612f6863615f61 2200"},
	{"DevicePluginOptions", &device_plugin__device_plugin_options__descriptor, "0801 1001"},
	{"Empty", &device_plugin__empty__descriptor, ""},
	{"two tokens", &device_plugin__list_and_watch_response__descriptor,
	 "0a0c 0a01 30 1207 4865616c746879 0a0c 0a01 31 1207 4865616c746879"},
	{"three PCI functions", &device_plugin__list_and_watch_response__descriptor,
	 "0a1b 0a0c 303030303a33623a30322e31 1207 4865616c746879 1a02 0a00"
	 "0a1d 0a0c 303030303a64383a30302e32 1207 4865616c746879 1a04 0a02 0801"
	 "0a1f 0a0c 303030303a64383a30302e33 1209 556e6865616c746879 1a04 0a02 0801"},
	{"AllocateRequest", &device_plugin__allocate_request__descriptor,
	 "0a1c 0a0c 303030303a33623a30322e31 0a0c 303030303a33623a30322e33"},
	{"AllocateResponse", &device_plugin__allocate_response__descriptor,
	 "0a9901 0a27 0a17 504349444556494345 5f494e54454c5f434f4d5f4e4554 120c "
	 "303030303a33623a30322e31"
	 "1a36 0a17 2f6465762f696e66696e6962616e642f757665726273 30 1217 "
	 "2f6465762f696e66696e6962616e642f757665726273 30 1a02 7277"
	 "1a36 0a17 2f6465762f696e66696e6962616e642f72646d615f636d 1217 "
	 "2f6465762f696e66696e6962616e642f72646d615f636d 1a02 7277"},
	{"AllocateResponse with CDI", &device_plugin__allocate_response__descriptor,
	 "0a68 2242 0a1e 6364692e6b38732e696f2f6e76696469612e636f6d5f6e65742d72646d61"
	 "1220 6e76696469612e636f6d2f6e65742d72646d613d303030303a33623a30302e30"
	 "2a22 0a20 6e76696469612e636f6d2f6e65742d72646d613d303030303a33623a30302e30"},
	{"PreferredAllocationRequest", &device_plugin__preferred_allocation_request__descriptor,
	 "0a0e 0a0161 0a0162 0a0163 120162 1802"},
	{"PreferredAllocationResponse", &device_plugin__preferred_allocation_response__descriptor,
	 "0a06 0a0162 0a0161"},
	{"PreStartContainerRequest", &device_plugin__pre_start_container_request__descriptor,
	 "0a01 37"},
	{"PluginInfo", &plugin_registration__plugin_info__descriptor,
	 "0a0c 446576696365506c7567696e 120a 72646d612f6863615f61"
	 "1a2c "
	 "2f7661722f6c69622f6b7562656c65742f706c7567696e735f72656769737472792f6863615f612e736f636b"
	 "2208 7631616c70686131 2207 76316265746131"},
	{"RegistrationStatus registered", &plugin_registration__registration_status__descriptor,
	 "0801"},
	{"RegistrationStatus error", &plugin_registration__registration_status__descriptor,
	 "1204 626f6f6d"},
	{"ListPodResourcesResponse", &pod_resources__list_pod_resources_response__descriptor,
	 "0a1d 0a0170 12026e73 1a14 0a0163 120f 0a0a 72646d612f6863615f61 120137"},
};

TEST(reads_and_writes_the_examples_of_the_reference)
{
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		auto_strbuf struct strbuf bytes = from_hex(examples[i].hex);
		auto_strbuf struct strbuf frame = {0};
		uint8_t head[GRPC_FRAME_HEAD];
		struct grpc_status status = {0};
		struct ProtobufCMessage *message;

		message = grpc_message_decode(examples[i].type, bytes.data, bytes.len,
					      GRPC_MESSAGE_MAX, &status);
		if (!message)
			fail_msg("%s: %s", examples[i].name, status.text);
		assert_int_equal(grpc_message_encode(message, GRPC_MESSAGE_MAX, &frame, &status),
				 0);
		grpc_frame_head(head, (uint32_t)bytes.len);
		assert_int_equal(frame.len, GRPC_FRAME_HEAD + bytes.len);
		assert_memory_equal(frame.data, head, GRPC_FRAME_HEAD);
		if (bytes.len)
			assert_memory_equal(frame.data + GRPC_FRAME_HEAD, bytes.data, bytes.len);
		grpc_message_free(message);
	}
}

TEST(builds_the_bytes_that_the_kubelet_expects)
{
	DevicePlugin__NumaNode node = DEVICE_PLUGIN__NUMA_NODE__INIT;
	DevicePlugin__NumaNode *nodes[] = {&node};
	DevicePlugin__TopologyInfo topology = DEVICE_PLUGIN__TOPOLOGY_INFO__INIT;
	DevicePlugin__Device device = DEVICE_PLUGIN__DEVICE__INIT;
	DevicePlugin__Device *devices[] = {&device};
	DevicePlugin__ListAndWatchResponse response = DEVICE_PLUGIN__LIST_AND_WATCH_RESPONSE__INIT;
	auto_strbuf struct strbuf frame = {0};
	auto_free char *hex = NULL;
	struct grpc_status status;

	topology.nodes = nodes;
	topology.n_nodes = 1;
	device.id = (char *)"0000:3b:02.1";
	device.health = (char *)"Healthy";
	device.topology = &topology;
	response.devices = devices;
	response.n_devices = 1;
	assert_int_equal(grpc_message_encode(&response.base, GRPC_MESSAGE_MAX, &frame, &status), 0);
	hex = to_hex(frame.data, frame.len);
	/* NUMA node 0 is an empty message, but it is there. */
	assert_string_equal(hex,
			    "000000001d0a1b0a0c303030303a33623a30322e3112074865616c7468791a020a00");
}

TEST(passes_over_fields_that_it_does_not_know)
{
	/*
	 * 15: a varint, 16: bytes, 17: 32 bits, 18: 64 bits; then a known field twice, the last
	 * one counts.
	 */
	auto_strbuf struct strbuf bytes =
		from_hex("7805 820103616263 8d0101020304 91010102030405060708 120161 120162 0801");
	struct grpc_status status;
	PluginRegistration__RegistrationStatus *got =
		(void *)grpc_message_decode(&plugin_registration__registration_status__descriptor,
					    bytes.data, bytes.len, GRPC_MESSAGE_MAX, &status);

	assert_non_null(got);
	assert_true(got->plugin_registered);
	assert_string_equal(got->error, "b");
	grpc_message_free(&got->base);
}

TEST(reads_what_newer_kubelets_say_of_a_container)
{
	/* name, devices, cpu_ids (packed), memory, dynamic resources */
	auto_strbuf struct strbuf frame = {0};
	auto_free char *hex = NULL;
	auto_strbuf struct strbuf bytes =
		from_hex("0a0163 1206 0a0172 120137 1a020103 2203 0a016d 2a03 120164");
	struct grpc_status status;
	PodResources__ContainerResources *got =
		(void *)grpc_message_decode(&pod_resources__container_resources__descriptor,
					    bytes.data, bytes.len, GRPC_MESSAGE_MAX, &status);

	assert_non_null(got);
	assert_int_equal(got->n_devices, 1);
	assert_string_equal(got->devices[0]->device_ids[0], "7");
	/* Sent again, it is what we know of it. */
	assert_int_equal(grpc_message_encode(&got->base, GRPC_MESSAGE_MAX, &frame, &status), 0);
	hex = to_hex(frame.data, frame.len);
	assert_string_equal(hex, "000000000b0a016312060a0172120137");
	grpc_message_free(&got->base);
}

TEST(refuses_bytes_that_are_no_message)
{
	static const char *const table[] = {
		"0a",                     /* no length */
		"0a05 6162",              /* too short */
		"08",                     /* no number */
		"0affffffffffffffffff01", /* a length beyond all bounds */
		"0f",                     /* a wire type that does not exist */
		"00",                     /* field 0 */
		"2202 0a05",              /* broken within */
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		auto_strbuf struct strbuf bytes = from_hex(table[i]);
		struct grpc_status status = {0};

		assert_null(grpc_message_decode(&device_plugin__register_request__descriptor,
						bytes.data, bytes.len, GRPC_MESSAGE_MAX, &status));
		assert_int_equal(status.code, GRPC_INTERNAL);
		assert_non_null(strstr(status.text, "RegisterRequest"));
	}
}

TEST(bounds_the_memory_of_many_empty_messages)
{
	auto_strbuf struct strbuf bytes = {0};
	struct grpc_status status = {0};

	for (int i = 0; i < 32 * 1024; i++)
		strbuf_add(&bytes, "\x0a\0", 2);
	assert_null(grpc_message_decode(&device_plugin__list_and_watch_response__descriptor,
					bytes.data, bytes.len, bytes.len, &status));
	assert_int_equal(status.code, GRPC_RESOURCE_EXHAUSTED);
	assert_string_equal(status.text, "a message of 65536 bytes takes too much memory");
}

TEST(sends_no_message_above_the_limit)
{
	PluginRegistration__RegistrationStatus message =
		PLUGIN_REGISTRATION__REGISTRATION_STATUS__INIT;
	auto_strbuf struct strbuf frame = {0};
	struct grpc_status status;

	message.error = (char *)"12345678";
	assert_int_equal(grpc_message_encode(&message.base, 9, &frame, &status), -1);
	assert_int_equal(status.code, GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(frame.len, 0);
	assert_int_equal(grpc_message_encode(&message.base, 10, &frame, &status), 0);
}
