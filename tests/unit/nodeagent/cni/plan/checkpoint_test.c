// SPDX-License-Identifier: Apache-2.0
/* Whose a device is by the kubelet's own record. */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "nodeagent/cni/plan/checkpoint.h"
#include "tests/support/yaml.h"

/* As kubelets from 1.20 write it; before, DeviceIDs was a list. */
#define NEW                                                                                        \
	"{Data: {PodDeviceEntries: [{PodUID: u1, ContainerName: c, ResourceName: x/y, DeviceIDs: " \
	"{'-1': ['0000:3b:00.2'], '0': ['0000:3b:00.3']}, AllocResp: CgA=}, {PodUID: u2, "         \
	"ContainerName: c, ResourceName: x/y, DeviceIDs: {'0': ['0000:3b:00.4', "                  \
	"'0000:3b:00.9']}, "                                                                       \
	"AllocResp: CgA=}], RegisteredDevices: {x/y: ['0000:3b:00.2', '0000:3b:00.3', "            \
	"'0000:3b:00.4', '0000:3b:00.5'], z/t: ['0', '1']}}, Checksum: 7}"
#define OLD                                                                                        \
	"{Data: {PodDeviceEntries: [{PodUID: u1, ContainerName: c, ResourceName: x/y, DeviceIDs: " \
	"['0000:3b:00.2']}], RegisteredDevices: {x/y: ['0000:3b:00.2', '0000:3b:00.5']}}}"

TEST(tells_whose_a_device_is)
{
	static const struct {
		const char *checkpoint, *device;
		enum checkpoint_holder holder;
	} rows[] = {
		{NEW, "0000:3b:00.2", CHECKPOINT_OF_POD},
		{NEW, "0000:3b:00.3", CHECKPOINT_OF_POD},
		{NEW, "0000:3b:00.4", CHECKPOINT_OTHER},
		{NEW, "0000:3b:00.5", CHECKPOINT_OTHER},
		{NEW, "0000:af:00.1", CHECKPOINT_UNMANAGED},
		/* Of a pod that may have ended, and offered no more: a claim may have it. */
		{NEW, "0000:3b:00.9", CHECKPOINT_UNMANAGED},
		{OLD, "0000:3b:00.2", CHECKPOINT_OF_POD},
		{OLD, "0000:3b:00.5", CHECKPOINT_OTHER},
		{"{Data: {PodDeviceEntries: null, RegisteredDevices: {x/y: [a]}}}", "a",
		 CHECKPOINT_OTHER},
		{"{Data: {PodDeviceEntries: null, RegisteredDevices: null}}", "a",
		 CHECKPOINT_UNMANAGED},
		{"{Data: {PodDeviceEntries: [7, {PodUID: u1, DeviceIDs: 7}, {PodUID: u1}], "
		 "RegisteredDevices: {x/y: 7, z: [7, a]}}}",
		 "a", CHECKPOINT_OTHER},
		{"{}", "a", CHECKPOINT_UNKNOWN},
		{"{Data: {}}", "a", CHECKPOINT_UNKNOWN},
		{"{Data: {PodDeviceEntries: {}, RegisteredDevices: {}}}", "a", CHECKPOINT_UNKNOWN},
		{"{Data: {PodDeviceEntries: [], RegisteredDevices: []}}", "a", CHECKPOINT_UNKNOWN},
		{"[]", "a", CHECKPOINT_UNKNOWN},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *checkpoint = yaml(rows[i].checkpoint);

		if (checkpoint_holder_of(checkpoint, rows[i].device, "u1") != rows[i].holder)
			fail_msg("row %zu", i);
	}
}

TEST(lists_what_a_pod_was_given)
{
	static const struct {
		const char *checkpoint, *devices;
	} rows[] = {
		{NEW, "[{resource: x/y, ids: ['0000:3b:00.2', '0000:3b:00.3']}]"},
		{OLD, "[{resource: x/y, ids: ['0000:3b:00.2']}]"},
		{"{Data: {PodDeviceEntries: [7, {PodUID: u1}, {PodUID: u1, ResourceName: a, "
		 "DeviceIDs: 7}]}}",
		 "[{resource: a, ids: []}]"},
		{"[]", "[]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *checkpoint = yaml(rows[i].checkpoint), *want = yaml(rows[i].devices);
		json_auto_t *got = checkpoint_devices_of(checkpoint, "u1");

		if (!json_same(got, want))
			fail_msg("row %zu", i);
	}
}
