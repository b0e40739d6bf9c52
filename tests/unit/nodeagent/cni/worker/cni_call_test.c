// SPDX-License-Identifier: Apache-2.0
/* Calls of runtimes, right and wrong. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/worker/cni_call.h"

#define GOOD_ENV                                                                                   \
	"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_IFNAME=net1", "CNI_NETNS=/run/netns/x",      \
		"CNI_PATH=/opt/cni/bin"
#define GOOD_CONFIG "{\"cniVersion\": \"0.3.1\", \"name\": \"rail0\", \"other\": [1]}"

/*
 * The call with these variables (later ones count) and stdin. netns: does a namespace come along?
 */
static int read_call(const char *const *env, const char *config, bool netns, struct cni_call *ret,
		     struct err *err)
{
	struct wire_buffer buffer = {0};
	struct wire_message message;
	size_t begun = wire_begin(&buffer, WIRE_CALL);
	int rc, fd = netns ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

	wire_add_text(&buffer, WIRE_NAME, "sriov");
	for (; *env; env++)
		wire_add_text(&buffer, WIRE_ENV, *env);
	wire_add_text(&buffer, WIRE_STDIN, config);
	assert_int_equal(wire_end(&buffer, begun), 0);
	assert_int_equal(wire_read(buffer.data, buffer.len, &message), 1);
	rc = cni_call_read(&message, fd, ret, err);
	free(buffer.data);
	return rc;
}

TEST(a_call_is_read_with_its_pod)
{
	const char *const env[] = {
		GOOD_ENV,
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=a;K8S_POD_NAMESPACE=old;nonsense;"
		"K8S_POD_NAMESPACE=lab;K8S_POD_UID=u1",
		NULL};
	struct cni_call call;
	struct err err = {0};

	assert_int_equal(read_call(env, GOOD_CONFIG, true, &call, &err), 0);
	assert_int_equal(call.command, CALL_ADD);
	assert_string_equal(call.plugin, "sriov");
	assert_string_equal(call.container, "c1");
	assert_string_equal(call.ifname, "net1");
	assert_string_equal(call.network, "rail0");
	assert_string_equal(call.version, "0.3.1");
	assert_string_equal(call.pod_namespace, "lab");
	assert_string_equal(call.pod_name, "a");
	assert_string_equal(call.pod_uid, "u1");
	cni_call_done(&call);
}

TEST(del_needs_no_namespace)
{
	const char *const env[] = {GOOD_ENV, "CNI_COMMAND=DEL", "CNI_NETNS=", NULL};
	struct cni_call call;

	assert_int_equal(read_call(env, GOOD_CONFIG, false, &call, NULL), 0);
	assert_int_equal(call.netns, -1);
	cni_call_done(&call);
}

#define GC_CONFIG(more) "{\"cniVersion\": \"1.1.0\", \"name\": \"x\", " more "}"

TEST(a_wrong_call_says_what_is_wrong)
{
	static const struct {
		const char *change, *config;
		bool no_netns;
		const char *reason, *words;
	} cases[] = {
		{"CNI_COMMAND=FOO", GOOD_CONFIG, false, "BadEnvironment", "CNI_COMMAND: FOO"},
		{"CNI_CONTAINERID=", GOOD_CONFIG, false, "BadEnvironment", "CNI_CONTAINERID"},
		{"CNI_CONTAINERID=../x", GOOD_CONFIG, false, "BadEnvironment", "../x"},
		{"CNI_IFNAME=a/b", GOOD_CONFIG, false, "BadEnvironment", "a/b"},
		{"CNI_IFNAME=much-too-long-a-name", GOOD_CONFIG, false, "BadEnvironment", "much"},
		{"CNI_IFNAME=..", GOOD_CONFIG, false, "BadEnvironment", ".."},
		{"A=B", "[", false, "BadJson", "no JSON object"},
		{"A=B", "[]", false, "BadJson", "no JSON object"},
		{"CNI_COMMAND=CHECK", "{\"name\": \"x\"}", false, "BadCniVersion", "0.1.0"},
		{"A=B", "{\"cniVersion\": 1, \"name\": \"x\"}", false, "BadCniVersion", "\"\""},
		{"A=B", "{\"cniVersion\": \"2.0.0\", \"name\": \"x\"}", false, "BadCniVersion",
		 "2.0.0"},
		{"CNI_COMMAND=CHECK", GOOD_CONFIG, false, "BadCniVersion", "0.4.0"},
		{"CNI_COMMAND=GC", GOOD_CONFIG, false, "BadCniVersion", "1.1.0"},
		{"CNI_COMMAND=GC", GC_CONFIG("\"a\": 1"), false, "BadField",
		 "valid-attachments is missing"},
		{"CNI_COMMAND=GC", GC_CONFIG("\"cni.dev/valid-attachments\": null"), false,
		 "BadField", "valid-attachments is no list"},
		{"CNI_COMMAND=GC", GC_CONFIG("\"cni.dev/valid-attachments\": {}"), false,
		 "BadField", "valid-attachments is no list"},
		{"CNI_COMMAND=GC",
		 GC_CONFIG("\"cni.dev/valid-attachments\": [], \"cni.dev/attachments\": null"),
		 false, "BadField", "cni.dev/attachments is no list"},
		{"CNI_COMMAND=GC", GC_CONFIG("\"cni.dev/attachments\": [{\"containerID\": \"a\"}]"),
		 false, "BadField", "attachments[0]"},
		{"CNI_COMMAND=GC", GC_CONFIG("\"cni.dev/valid-attachments\": [\"a\"]"), false,
		 "BadField", "attachments[0]"},
		{"A=B", "{\"cniVersion\": \"1.0.0\"}", false, "BadNetworkName", "name"},
		{"A=B", "{\"cniVersion\": \"1.0.0\", \"name\": \"a b\"}", false, "BadNetworkName",
		 "a b"},
		{"A=B", GOOD_CONFIG, true, "BadNetns", "/run/netns/x"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *const env[] = {GOOD_ENV, cases[i].change, NULL};
		struct cni_call call;
		struct err err = {0};

		assert_int_equal(read_call(env, cases[i].config, !cases[i].no_netns, &call, &err),
				 -1);
		assert_string_equal(err.reason, cases[i].reason);
		assert_int_equal(err.class, ERR_INVALID);
		assert_non_null(strstr(err.text, cases[i].words));
		cni_call_done(&call);
	}
}

TEST(all_that_is_missing_is_in_one_message)
{
	const char *const env[] = {"CNI_COMMAND=ADD", NULL};
	struct cni_call call;
	struct err err = {0};

	assert_int_equal(read_call(env, GOOD_CONFIG, true, &call, &err), -1);
	assert_string_equal(err.text, "required environment variables missing: CNI_CONTAINERID, "
				      "CNI_NETNS, CNI_IFNAME");
	cni_call_done(&call);
}

TEST(gc_takes_both_lists_together)
{
	const char *config = GC_CONFIG("\"cni.dev/valid-attachments\": [{\"containerID\": \"c1\", "
				       "\"ifname\": \"net1\"}], \"cni.dev/attachments\": "
				       "[{\"containerID\": \"c2\", \"ifname\": \"net2\"}]");
	const char *const env[] = {GOOD_ENV, "CNI_COMMAND=GC", NULL};
	struct cni_call call;

	assert_int_equal(read_call(env, config, false, &call, NULL), 0);
	assert_true(cni_call_is_valid(&call, "c1", "net1"));
	assert_true(cni_call_is_valid(&call, "c2", "net2"));
	assert_false(cni_call_is_valid(&call, "c1", "net2"));
	cni_call_done(&call);
}
