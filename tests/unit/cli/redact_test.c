// SPDX-License-Identifier: Apache-2.0
/*
 * What a support dump keeps: of each object here, all that says KEPT is in the dump and nothing
 * that says PLANTED.
 */
#include "tests/support/test.h"

#include <string.h>

#include "cli/support/redact.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "reconcilers/core/kinds.h"

static json_t *from_yaml(const char *text)
{
	struct err err = {0};
	json_t *value = yaml_parse(text, strlen(text), &err);

	if (!value)
		fail_msg("%s: %s", text, err.text);
	return value;
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	while ((text = strstr(text, word))) {
		n++;
		text += strlen(word);
	}
	return n;
}

static json_t *redacted(struct scrub *scrub, const char *kind, const char *yaml)
{
	json_auto_t *object = from_yaml(yaml), *before = json_deep_copy(object);
	json_t *result = redact_object(scrub, kind, object);

	assert_true(json_same(object, before));
	return result;
}

TEST(only_what_is_read_of_an_object_is_kept)
{
	static const struct {
		const char *kind, *yaml;
	} cases[] = {
		{KIND_POD,
		 "{apiVersion: v1, kind: Pod, metadata: {name: w-0, namespace: ml, uid: KEPT, "
		 "labels: {app: KEPT}, annotations: {k8s.v1.cni.cncf.io/networks: KEPT, "
		 "ipam.spidernet.io/ippools: KEPT, vault.io/secret: PLANTED, "
		 "kubectl.kubernetes.io/last-applied-configuration: PLANTED}, "
		 "ownerReferences: [{kind: KEPT, name: KEPT, controller: true}]}, "
		 "spec: {nodeName: KEPT, serviceAccountName: PLANTED, "
		 "imagePullSecrets: [{name: PLANTED}], volumes: [{secret: {secretName: PLANTED}}], "
		 "containers: [{name: KEPT, image: PLANTED, command: [PLANTED], args: [PLANTED], "
		 "env: [{name: A, value: PLANTED}], envFrom: [{secretRef: {name: PLANTED}}], "
		 "lifecycle: {preStop: {exec: {command: [PLANTED]}}}, "
		 "resources: {limits: {spidernet.io/KEPT: 1}}}]}, "
		 "status: {phase: KEPT, podIP: PLANTED, containerStatuses: [{name: KEPT, "
		 "lastState: {terminated: {reason: KEPT, message: PLANTED}}}]}}"},
		{KIND_POD,
		 "{metadata: {name: o, labels: {app.kubernetes.io/name: orbweaver-operator}}, "
		 "spec: "
		 "{containers: [{name: KEPT, image: KEPT, args: [--policy-namespaces=KEPT], "
		 "env: [{name: A, value: PLANTED}]}]}}"},
		{KIND_POD,
		 "{metadata: {name: m, labels: {component: kube-controller-manager}}, spec: "
		 "{containers: "
		 "[{command: [kube-controller-manager, --cluster-cidr=KEPT, --token=PLANTED], "
		 "args: [--service-cluster-ip-range=KEPT, --x=PLANTED]}]}}"},
		{KIND_POD,
		 "{metadata: {name: a, labels: {component: kube-apiserver}}, spec: {containers: "
		 "[{command: [kube-apiserver, --service-cluster-ip-range=KEPT, --x=PLANTED]}]}}"},
		{"services", "{metadata: {name: kubernetes}, spec: {clusterIP: KEPT, selector: "
			     "{app: PLANTED}}}"},
		{KIND_NODE,
		 "{metadata: {name: w1, labels: {a: KEPT}, annotations: {flannel.io/key: PLANTED, "
		 "sriovnetwork.openshift.io/state: KEPT, rdma.orbweaver.io/rail-health: KEPT}}, "
		 "spec: {taints: [{key: KEPT}], podCIDR: PLANTED}, status: {addresses: [{address: "
		 "PLANTED}], images: [{names: "
		 "[PLANTED]}], "
		 "nodeInfo: {kernelVersion: KEPT, machineID: PLANTED, systemUUID: PLANTED}, "
		 "allocatable: {x.io/KEPT: 2}, conditions: [{type: Ready, status: KEPT}]}}"},
		{KIND_NAMESPACE, "{metadata: {name: ml, labels: {a: KEPT}, annotations: "
				 "{cni.spidernet.io/rdma-resource-inject: KEPT, x/y: PLANTED}}}"},
		{"configmaps",
		 "{metadata: {name: kubeadm-config}, data: {ClusterConfiguration: "
		 "\"networking: {podSubnet: KEPT}\\netcd: {external: {keyFile: PLANTED}}\", "
		 "ClusterStatus: PLANTED}}"},
		{"configmaps",
		 "{metadata: {name: cilium-config}, data: {ipam: KEPT, kvstore-opt: PLANTED}}"},
		{"configmaps",
		 "{metadata: {name: spiderpool-conf}, data: {conf.yml: \"enableIPv4: KEPT\", "
		 "other: PLANTED}}"},
		{"configmaps", "{metadata: {name: rdma-devices, uid: KEPT}, data: {a: PLANTED}}"},
		{"events",
		 "{metadata: {name: e}, involvedObject: {kind: Pod, name: KEPT}, reason: "
		 "FailedScheduling, "
		 "message: 'KEPT, token=PLANTED', source: {component: default-scheduler}}"},
		{"events", "{metadata: {name: e}, involvedObject: {kind: Pod, fieldPath: PLANTED}, "
			   "reason: KEPT, "
			   "source: {component: orbweaver-agent}}"},
		{"customresourcedefinitions",
		 "{metadata: {name: c}, spec: {group: spiderpool.spidernet.io, versions: "
		 "[{name: KEPT, schema: {x: PLANTED}}]}, status: {storedVersions: "
		 "[KEPT]}}"},
		{"statefulsets",
		 "{metadata: {name: s}, spec: {replicas: 3, template: {spec: {x: PLANTED}}}}"},
		{"deployments", "{metadata: {name: s}, spec: {template: {spec: {x: PLANTED}}}, "
				"status: {a: KEPT}}"},
		{"virtualmachines",
		 "{metadata: {name: s}, spec: {cloudInit: PLANTED}, status: {phase: KEPT}}"},
		{"leases", "{metadata: {name: l}, spec: {holderIdentity: KEPT}}"},
		{"poddisruptionbudgets",
		 "{metadata: {name: b}, spec: {selector: {matchLabels: {token: KEPT}}}}"},
		{KIND_NAD,
		 "{metadata: {name: nad, annotations: {k8s.v1.cni.cncf.io/resourceName: KEPT, "
		 "own.io/a: PLANTED}, managedFields: [{manager: KEPT, fieldsV1: {'f:metadata': "
		 "{'f:labels': {'f:KEPT': {}, .: {}}, 'f:finalizers': {'v:PLANTED': {}}}, "
		 "'f:spec': {'f:KEPT': {'f:PLANTED': {}}}}}]}, spec: {config: "
		 "'{\"type\":\"KEPT\",\"apiKey\":\"PLANTED\",\"ipam\":{\"password\":\"PLANTED\"}}'}"
		 "}"},
		{KIND_MULTUS_CONFIG,
		 "{metadata: {name: c}, spec: {customCNI: '{\"a\":\"KEPT\",\"psk\":{\"secret\":"
		 "[\"PLANTED\"]},\"secretName\":\"KEPT\"}', attachment: {master: [KEPT]}}, "
		 "status: {conditions: [{message: KEPT}]}}"},
		{KIND_IP_POOL,
		 "{metadata: {name: p, annotations: {x/y: PLANTED}}, spec: {subnet: KEPT}, status: "
		 "{allocatedIPs: '{\"10.0.0.1\":{\"pod\":\"KEPT\"}}'}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scrub *scrub = scrub_new();
		json_auto_t *result = redacted(scrub, cases[i].kind, cases[i].yaml);
		auto_free char *text = result ? json_text(result) : str_dup("nothing");

		if (strstr(text, "PLANTED"))
			fail_msg("%s", text);
		if (count(text, "KEPT") != count(cases[i].yaml, "KEPT"))
			fail_msg("%s\nbecame %s", cases[i].yaml, text);
		scrub_free(scrub);
	}
}

TEST(some_objects_are_in_no_dump)
{
	static const struct {
		const char *kind, *yaml;
	} cases[] = {
		{"secrets", "{metadata: {name: s}, data: {a: PLANTED}}"},
		{"configmaps", "{metadata: {name: somebody-elses}, data: {a: PLANTED}}"},
		{"events", "{metadata: {name: e}, involvedObject: {kind: Pod}, reason: Pulled}"},
		{"events",
		 "{metadata: {name: e}, involvedObject: {kind: Node}, reason: FailedScheduling}"},
		{"customresourcedefinitions", "{metadata: {name: c}, spec: {group: other.io}}"},
		{KIND_POD, "{metadata: {}}"},
	};
	struct scrub *scrub = scrub_new();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_null(redacted(scrub, cases[i].kind, cases[i].yaml));
	assert_null(redact_object(scrub, KIND_POD, NULL));
	scrub_free(scrub);
}

TEST(what_is_equal_stays_equal)
{
	struct scrub *scrub = scrub_new();
	json_auto_t *config =
		redacted(scrub, KIND_MULTUS_CONFIG,
			 "{metadata: {name: a, annotations: {own.io/a: x, own.io/b: y}}, "
			 "spec: {customCNI: '{\"token\":\"t\",\"n\":1}'}}");
	json_auto_t *nad =
		redacted(scrub, KIND_NAD,
			 "{metadata: {name: a, annotations: {own.io/a: x, own.io/b: x}}, "
			 "spec: {config: '{\"token\":\"t\",\"n\":1}'}}");
	const json_t *one = json_at(config, "metadata", "annotations");
	const json_t *two = json_at(nad, "metadata", "annotations");

	assert_string_equal(json_str_at(one, "own.io/a"), json_str_at(two, "own.io/a"));
	assert_string_equal(json_str_at(two, "own.io/b"), json_str_at(two, "own.io/a"));
	assert_string_not_equal(json_str_at(one, "own.io/b"), json_str_at(two, "own.io/b"));
	assert_string_equal(json_str_at(config, "spec", "customCNI"),
			    json_str_at(nad, "spec", "config"));
	assert_int_equal(scrub_count(scrub), 3);
	scrub_free(scrub);
}

/* JSON in text keeps its bytes, for decisions compare them. */
TEST(text_without_secrets_keeps_its_bytes)
{
	static const char config[] = "{ \"b\" : 1.50, \"a\" : [ ] }";
	struct scrub *scrub = scrub_new();
	json_t *object =
		json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", "n", "spec", "config", config);
	json_auto_t *result = redact_object(scrub, KIND_NAD, object);

	assert_string_equal(json_str_at(result, "spec", "config"), config);
	json_decref(object);
	scrub_free(scrub);
}

TEST(texts_lose_what_opens_doors)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{"nothing here\n\nat all", "nothing here\n\nat all"},
		{"jwt eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2ln, and more",
		 "jwt REDACTED-1, and more"},
		{"Authorization: Bearer abcdefghijklmnopqrst\nAuthorization: Basic dXNlcjpwYXNz",
		 "Authorization: Bearer REDACTED-1\nAuthorization: Basic REDACTED-2"},
		{"password=hunter2 PASSWORD: hunter2", "password=REDACTED-1 PASSWORD: REDACTED-1"},
		{"{\"msg\":\"a\",\"apiToken\":\"x y\",\"n\":1}",
		 "{\"msg\":\"a\",\"apiToken\":\"REDACTED-1 y\",\"n\":1}"},
		{"at https://user:pass@host/path", "at https://user:REDACTED-1@host/path"},
		{"at https://host:8080/path", "at https://host:8080/path"},
		{"tokens: none; the secret is not there",
		 "tokens: REDACTED-1; the secret is not there"},
		{"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nAAAA\n-----END RSA PRIVATE KEY-----\nb",
		 "a\nREDACTED-KEY\n\nb"},
		{"-----BEGIN PRIVATE KEY-----MIIE-----END PRIVATE KEY----- -----BEGIN EC PRIVATE "
		 "KEY-----x",
		 "REDACTED-KEY REDACTED-KEY"},
		{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		 "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scrub *scrub = scrub_new();
		auto_strbuf struct strbuf out = {0}, again = {0};

		scrub_text(scrub, cases[i].text, strlen(cases[i].text), &out);
		assert_string_equal(strbuf_str(&out), cases[i].want);
		scrub_text(scrub, strbuf_str(&out), out.len, &again);
		assert_string_equal(strbuf_str(&again), strbuf_str(&out));
		scrub_free(scrub);
	}
}

TEST(a_nul_character_hides_nothing)
{
	static const char text[] = "a\0password=hunter2";
	struct scrub *scrub = scrub_new();
	auto_strbuf struct strbuf out = {0};

	scrub_text(scrub, text, sizeof(text) - 1, &out);
	assert_string_equal(strbuf_str(&out), "a password=REDACTED-1");
	scrub_free(scrub);
}
