// SPDX-License-Identifier: Apache-2.0
/*
 * Decisions on a cluster that stands still: those of a fresh one, none on one that is as it should
 * be, and what decisions tell each other.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "operator/rehearsal.h"

#define NODE                                                                                       \
	"nodes: {w1: {metadata: {name: w1, uid: u1}, status: {allocatable: {spidernet.io/rail: "   \
	"'2'}}}}\n"
#define POLICY                                                                                     \
	"sriovnetworknodepolicies: {orbweaver-system/rail: {metadata: {name: rail, namespace: "    \
	"orbweaver-system, uid: u2, generation: 1}, spec: {resourceName: rail, numVfs: 2, "        \
	"nicSelector: {pfNames: [ens1f0]}, nodeSelector: {}}}}\n"
#define STATE                                                                                      \
	"sriovnetworknodestates: {orbweaver-system/w1: {metadata: {name: w1, namespace: "          \
	"orbweaver-system, uid: u3, generation: 1}, spec: {}, status: {syncStatus: Succeeded, "    \
	"observedGeneration: 1, interfaces: [{pciAddress: '0000:3b:00.0', name: ens1f0, vendor: "  \
	"15b3, deviceID: '1017', driver: mlx5_core, linkType: ETH, totalvfs: 8, numVfs: 0, Vfs: "  \
	"[{vfID: 0}]}], hostFindings: [{reason: AtsOn}]}}}\n"
#define POOL                                                                                       \
	"spiderippools: {p: {metadata: {name: p, uid: u4, generation: 1}, spec: {ipVersion: 4, "   \
	"subnet: 10.6.0.0/24, ips: [10.6.0.10-10.6.0.20]}}}\n"                                     \
	"network-attachment-definitions: {ml/net: {metadata: {name: net, namespace: ml, uid: "     \
	"u5}, "                                                                                    \
	"spec: {config: "                                                                          \
	"'{\"cniVersion\":\"0.3.1\",\"name\":\"net\",\"type\":\"macvlan\",\"ipam\":"               \
	"{\"type\":\"spiderpool\",\"default_ipv4_ippool\":[\"p\"]}}'}}}\n"                         \
	"namespaces: {ml: {metadata: {name: ml}}}\n"
#define POD                                                                                        \
	"pods: {ml/a: {metadata: {name: a, namespace: ml, uid: u6, annotations: "                  \
	"{k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1, containers: [{}]}, status: "    \
	"{phase: Pending}}}\n"

struct rehearsed {
	json_t *objects;
	struct strbuf did;     /* "controller key: does kind key; " of what changes something */
	struct strbuf skipped; /* "controller kind;" */
	const char *unknown;   /* this kind could not be read; NULL: all could */
	json_t *last;          /* the last object that would be created or patched */
};

static bool has(void *arg, const struct operator_kind *kind)
{
	const struct rehearsed *r = arg;

	return !str_eq(kind->kind, r->unknown);
}

static void left_out(void *arg, const char *controller, const struct operator_kind *kind)
{
	struct rehearsed *r = arg;

	strbuf_addf(&r->skipped, "%s %s;", controller, kind->kind);
}

static void decided(void *arg, const struct rehearsal_step *step)
{
	struct rehearsed *r = arg;

	if (step->err)
		strbuf_addf(&r->did, "%s %s: %s; ", step->controller, step->key, step->err->reason);
	for (size_t i = 0; i < step->n; i++) {
		const struct rehearsal_op *op = &step->ops[i];

		if (!op->does)
			continue;
		strbuf_addf(&r->did, "%s %s: %s %s %s; ", step->controller, step->key, op->does,
			    json_str_at(op->op, "kind"), json_str_at(op->op, "key"));
		if (op->after && !str_eq(op->does, "status")) {
			json_decref(r->last);
			r->last = json_deep_copy(op->after);
		}
	}
}

static struct rehearsed rehearsed(const char *yaml, const char *unknown, bool webhooks)
{
	struct rehearsed r = {.unknown = unknown};
	struct err err = {0};
	json_auto_t *before = NULL;

	r.objects = yaml_parse(yaml, strlen(yaml), &err);
	if (!r.objects)
		fail_msg("%s", err.text);
	before = json_deep_copy(r.objects);
	rehearse(&(struct rehearsal_config){
		.objects = r.objects,
		.ns = "orbweaver-system",
		.resource_prefix = "spidernet.io",
		.config_ns = "spiderpool",
		.now = "2026-01-31T10:00:00Z",
		.webhooks = webhooks,
		.has = has,
		.decided = decided,
		.left_out = left_out,
		.arg = &r,
	});
	assert_true(json_same(before, r.objects));
	return r;
}

static void rehearsed_done(struct rehearsed *r)
{
	json_decref(r->objects);
	json_decref(r->last);
	strbuf_done(&r->did);
	strbuf_done(&r->skipped);
}

static void expect(const char *yaml, const char *want)
{
	struct rehearsed r = rehearsed(yaml, NULL, false);

	assert_string_equal(strbuf_str(&r.did), want);
	rehearsed_done(&r);
}

TEST(nothing_is_decided_on_an_empty_cluster)
{
	struct rehearsed r = rehearsed("{}", NULL, false);

	assert_string_equal(strbuf_str(&r.did), "");
	assert_string_equal(strbuf_str(&r.skipped), "webhook-setup orbweaver-webhook-certificate;");
	rehearsed_done(&r);
}

TEST(a_node_gets_its_state_and_the_policy_hears_of_it)
{
	struct rehearsed r = rehearsed(NODE POLICY STATE, NULL, false);
	const json_t *nic;

	assert_string_equal(strbuf_str(&r.did),
			    "node-state w1: patch sriovnetworknodestates orbweaver-system/w1; "
			    "policy-status orbweaver-system/rail: event sriovnetworknodepolicies "
			    "orbweaver-system/rail; policy-status orbweaver-system/rail: status "
			    "sriovnetworknodepolicies orbweaver-system/rail; ");
	assert_int_equal(
		json_integer_value(json_at(json_array_get(json_at(r.last, "spec", "interfaces"), 0),
					   "numVfs")),
		2);
	/* Trimmed as what comes from the API server is. */
	nic = json_array_get(json_at(r.last, "status", "interfaces"), 0);
	assert_non_null(json_at(nic, "totalvfs"));
	assert_null(json_at(nic, "Vfs"));
	assert_null(json_at(r.last, "status", "hostFindings"));
	rehearsed_done(&r);
}

TEST(a_waiting_pod_gets_an_address_and_then_its_endpoint)
{
	struct rehearsed r = rehearsed(NODE POOL POD, NULL, false);

	assert_non_null(strstr(strbuf_str(&r.did), "addresses all: status spiderippools p; "));
	assert_non_null(strstr(strbuf_str(&r.did), "endpoint ml/a: create spiderendpoints ml/a; "));
	assert_non_null(json_at(r.last, "status", "current"));
	rehearsed_done(&r);
}

TEST(a_pod_without_a_pool_is_a_finding_once)
{
	struct rehearsed r = rehearsed(
		NODE
		"spiderippools: {q: {metadata: {name: q, uid: u7}, spec: {ipVersion: 4, subnet: "
		"10.7.0.0/24, disable: true}}}\n"
		"network-attachment-definitions: {ml/net: {metadata: {name: net, namespace: "
		"ml}, spec: {config: '{\"cniVersion\":\"0.3.1\",\"name\":\"net\",\"type\":"
		"\"macvlan\",\"ipam\":{\"type\":\"spiderpool\",\"default_ipv4_ippool\":[\"q\"]}}'"
		"}}}\nnamespaces: {ml: {metadata: {name: ml}}}\n" POD,
		NULL, false);
	const char *first = strstr(strbuf_str(&r.did), "finding boundpods ml/a");

	assert_non_null(first);
	assert_null(strstr(first + 1, "finding boundpods ml/a"));
	rehearsed_done(&r);
}

#define EXHAUSTED(records)                                                                         \
	"spiderippools: {p: {metadata: {name: p, uid: u4, generation: 1}, spec: {ipVersion: 4, "   \
	"subnet: 10.6.0.0/24, ips: [10.6.0.10]}, status: {allocatedIPs: '{" records                \
	"}', waitingPodCount: 1, conditions: [{type: "                                             \
	"Ready, status: 'True', reason: Usable, message: m, lastTransitionTime: "                  \
	"'2026-01-31T09:00:00Z'}, {type: Degraded, status: 'True', reason: PoolExhausted, "        \
	"message: 'no address, since 2026-01-31T09:58:00Z (m)', lastTransitionTime: "              \
	"'2026-01-31T09:59:00Z'}]}}}\n"                                                            \
	"network-attachment-definitions: {ml/net: {metadata: {name: net, namespace: ml}, spec: "   \
	"{config: '{\"type\":\"macvlan\",\"ipam\":{\"type\":\"spiderpool\","                       \
	"\"default_ipv4_ippool\":[\"p\"]}}'}}}\nnamespaces: {ml: {metadata: {name: ml}}}\n"
#define OF_HOLDER "\"10.6.0.10\": {\"pod\": \"ml/z\", \"podUid\": \"u9\"}"
#define HOLDER                                                                                     \
	"  ml/z: {metadata: {name: z, namespace: ml, uid: u9, annotations: "                       \
	"{k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1, containers: [{}]}, status: "    \
	"{phase: Running}}\n"
#define WAITER                                                                                     \
	"  ml/a: {metadata: {name: a, namespace: ml, uid: u6, annotations: "                       \
	"{k8s.v1.cni.cncf.io/networks: net}}, spec: {nodeName: w1, containers: [{}]}, status: "    \
	"{phase: Pending}}\n"

/* Writes are not carried out here, so each pass over the pool repeats its event. */
static void expect_pool_event(const char *yaml, bool want)
{
	struct rehearsed r = rehearsed(yaml, NULL, false);

	assert_int_equal(strstr(strbuf_str(&r.did), "ip-pool p: event") != NULL, want);
	rehearsed_done(&r);
}

/* An operator that begins to lead knows of no pod at first. */
TEST(a_pool_that_is_exhausted_stays_so_while_pods_wait)
{
	expect_pool_event(NODE EXHAUSTED(OF_HOLDER) "pods:\n" HOLDER WAITER, false);
	expect_pool_event(NODE EXHAUSTED(OF_HOLDER) "pods:\n" HOLDER, true);
	expect_pool_event(NODE EXHAUSTED(""), true);
}

TEST(what_is_not_known_is_not_decided_on)
{
	struct rehearsed r = rehearsed(NODE POLICY STATE, "sriovnetworkpoolconfigs", false);

	assert_string_equal(strbuf_str(&r.did), "");
	assert_non_null(strstr(strbuf_str(&r.skipped), "node-state sriovnetworkpoolconfigs;"));
	assert_non_null(strstr(strbuf_str(&r.skipped), "drain sriovnetworkpoolconfigs;"));
	rehearsed_done(&r);
}

TEST(without_its_namespace_the_operator_releases_finalizers_alone)
{
	expect("namespaces: {orbweaver-system: {metadata: {name: orbweaver-system, "
	       "deletionTimestamp: '2026-01-31T09:00:00Z'}}}\n"
	       "spiderippools: {p: {metadata: {name: p, finalizers: [spiderpool.spidernet.io]}, "
	       "spec: {subnet: 10.6.0.0/24}}}\n"
	       "spidercoordinators: {default: {metadata: {name: default, finalizers: "
	       "[spiderpool.spidernet.io]}, spec: {}}}\n"
	       "spiderendpoints: {ml/a: {metadata: {name: a, namespace: ml, finalizers: "
	       "[spiderpool.spidernet.io]}, status: {current: {uid: u6, node: w1, ips: []}}}, "
	       "ml/b: {metadata: {name: b, namespace: ml}, status: {current: {uid: u7, node: w1, "
	       "ips: []}}}}\n" NODE POLICY STATE,
	       "ip-pool p: patch spiderippools p; "
	       "coordinator default: patch spidercoordinators default; "
	       "endpoint ml/a: patch spiderendpoints ml/a; ");
}

TEST(pods_that_missed_injection_are_found_where_there_are_webhooks)
{
	static const char yaml[] =
		"spidermultusconfigs: {ml/c: {metadata: {name: c, namespace: ml, uid: c1, "
		"creationTimestamp: '2026-01-01T00:00:00Z', "
		"annotations: {cni.spidernet.io/rdma-resource-inject: g}}, spec: {cniType: "
		"macvlan, macvlan: {master: [eth1], rdmaResourceName: x.io/r, ippools: {ipv4: "
		"[p]}}}}}\n"
		"namespaces: {ml: {metadata: {name: ml}}}\n"
		"pods: {ml/a: {metadata: {name: a, namespace: ml, uid: u6, "
		"creationTimestamp: '2026-01-02T00:00:00Z', annotations: "
		"{cni.spidernet.io/rdma-resource-inject: g}}, spec: {containers: [{}]}, status: "
		"{phase: Running}}}\n";
	struct rehearsed r = rehearsed(yaml, NULL, true);

	assert_non_null(strstr(strbuf_str(&r.did), "inject-pod ml/a: finding pods ml/a; "));
	rehearsed_done(&r);
}
