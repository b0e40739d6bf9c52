// SPDX-License-Identifier: Apache-2.0
/* Admission: what is refused and how it is said, what is never refused, and defaults. */
#include "tests/support/test.h"

#include <string.h>

#include "reconcilers/admission/admission.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/problems.h"
#include "tests/fakes/json_patch.h"
#include "tests/fakes/review.h"
#include "tests/support/yaml.h"

/* What is said on the object or its change. */
static json_t *judge(const char *world_text, const char *kind, const char *operation,
		     const char *old_text, const char *text)
{
	json_auto_t *world = yaml(world_text), *old = yaml(old_text), *object = yaml(text);
	json_auto_t *review = review_new(kind, operation, object, old);
	json_auto_t *before = json_deep_copy(review);
	auto_admission_request struct admission_request request = {0};
	struct err err = {0};
	json_t *answer;

	assert_int_equal(admission_read(review, &request, &err), 0);
	answer = admission_validate(world, &request);
	assert_true(json_same(review, before));
	assert_string_equal(json_str_at(answer, "response", "uid"), "8f1a");
	return answer;
}

static bool is_allowed(const json_t *answer)
{
	return json_is_true(json_at(answer, "response", "allowed"));
}

static const char *message_of(const json_t *answer)
{
	return json_str_or(json_at(answer, "response", "status", "message"), "");
}

static char *warnings_of(const json_t *answer)
{
	auto_strbuf struct strbuf text = {0};
	json_t *warning;
	size_t i;

	json_array_foreach (json_at(answer, "response", "warnings"), i, warning)
		strbuf_addf(&text, "%s\n", json_string_value(warning));
	return strbuf_take(&text);
}

#define POOL(spec)   "{metadata: {name: p}, spec: " spec "}"
#define CONFIG(spec) "{metadata: {name: c, namespace: ml}, spec: " spec "}"

TEST(a_refusal_names_everything)
{
	json_auto_t *answer = judge(NULL, KIND_MULTUS_CONFIG, "CREATE", NULL,
				    CONFIG("{cniType: sriov, sriov: {minTxRateMbps: 9, vlanID: 1}, "
					   "ovs: {bridge: b}, chainCNIJsonData: [x]}"));
	const json_t *status = json_at(answer, "response", "status");
	const json_t *causes = json_at(status, "details", "causes");

	assert_false(is_allowed(answer));
	assert_int_equal(json_integer_value(json_at(status, "code")), 422);
	assert_string_equal(json_str_at(status, "reason"), "Invalid");
	assert_string_equal(json_str_at(status, "details", "kind"), "SpiderMultusConfig");
	assert_string_equal(json_str_at(status, "details", "group"), "spiderpool.spidernet.io");
	assert_string_equal(json_str_at(status, "details", "name"), "c");
	assert_int_equal(json_array_size(causes), 4);
	assert_string_equal(json_str_at(json_array_get(causes, 1), "field"),
			    "spec.sriov.minTxRateMbps");
	assert_string_equal(json_str_at(json_array_get(causes, 1), "reason"), "FieldValueInvalid");
	assert_non_null(strstr(message_of(answer), "SpiderMultusConfig ml/c is invalid: "
						   "spec.sriov.resourceName: is missing: "));
	assert_non_null(strstr(message_of(answer), "; spec.sriov.minTxRateMbps: 9 is more than "));
	assert_non_null(
		strstr(message_of(answer), "; spec.chainCNIJsonData[0]: \"x\" is not JSON: "));
}

TEST(a_refusal_says_the_value)
{
	json_auto_t *word =
		judge(NULL, KIND_MULTUS_CONFIG, "CREATE", NULL, CONFIG("{cniType: weird}"));
	json_auto_t *annotation =
		judge(NULL, KIND_MULTUS_CONFIG, "CREATE", NULL,
		      "{metadata: {name: c, namespace: ml, annotations: "
		      "{multus.spidernet.io/cni-version: '9'}}, spec: {cniType: custom}}");
	json_auto_t *number = judge(NULL, KIND_IP_POOL, "CREATE", NULL,
				    POOL("{subnet: 10.0.0.0/24, ipVersion: 6}"));

	assert_non_null(strstr(message_of(word), "spec.cniType: \"weird\" must be one of"));
	assert_non_null(
		strstr(message_of(annotation),
		       "metadata.annotations[multus.spidernet.io/cni-version]: \"9\" must"));
	assert_non_null(strstr(message_of(number), "spec.ipVersion: 6 does not fit"));
}

struct rule {
	const char *kind, *operation, *old, *object;
	bool allowed;
	const char *said; /* in the message, or in the warnings */
};

static void run(const char *world, const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = &rules[i];
		json_auto_t *answer = judge(world, r->kind, r->operation, r->old, r->object);
		auto_free char *warnings = warnings_of(answer);
		const char *said = r->allowed ? warnings : message_of(answer);

		if (is_allowed(answer) != r->allowed || (!r->said && *said) ||
		    (r->said && !strstr(said, r->said)))
			fail_msg("rule %zu: %s\n  %s: %s", i, r->object ? r->object : r->old,
				 is_allowed(answer) ? "allowed" : "refused", said);
	}
}

#define BAD_GATEWAY "{subnet: 10.0.0.0/24, ips: [10.0.0.5], gateway: 10.9.0.1}"

TEST(what_was_wrong_before_is_no_reason)
{
	static const struct rule rules[] = {
		{KIND_IP_POOL, "CREATE", NULL, POOL(BAD_GATEWAY), false, "spec.gateway: 10.9.0.1"},
		/* The same mistake stays, something else changes. */
		{KIND_IP_POOL, "UPDATE", POOL(BAD_GATEWAY),
		 POOL("{subnet: 10.0.0.0/24, ips: [10.0.0.6], gateway: 10.9.0.1}"), true,
		 "spec.gateway: 10.9.0.1 is not inside"},
		/* Another mistake in its place. */
		{KIND_IP_POOL, "UPDATE", POOL(BAD_GATEWAY),
		 POOL("{subnet: 10.0.0.0/24, ips: [10.0.0.5], gateway: 10.8.0.1}"), false,
		 "10.8.0.1"},
		/* A second mistake: only that is refused. */
		{KIND_IP_POOL, "UPDATE", POOL(BAD_GATEWAY),
		 POOL("{subnet: 10.0.0.0/24, ips: [10.1.0.5], gateway: 10.9.0.1}"), false,
		 "SpiderIPPool p is invalid: spec.ips[0]: 10.1.0.5"},
		/* It moved in its list. */
		{KIND_IP_POOL, "UPDATE", POOL("{subnet: 10.0.0.0/24, ips: [10.9.0.1]}"),
		 POOL("{subnet: 10.0.0.0/24, ips: [10.0.0.7, 10.9.0.1]}"), true,
		 "spec.ips[1]: 10.9.0.1"},
		/* It was written once more. */
		{KIND_IP_POOL, "UPDATE", POOL("{subnet: 10.0.0.0/24, ips: [10.9.0.1]}"),
		 POOL("{subnet: 10.0.0.0/24, ips: [10.9.0.1, 10.9.0.1]}"), false, "10.9.0.1"},
		{KIND_IP_POOL, "UPDATE", POOL(BAD_GATEWAY),
		 POOL("{subnet: 10.0.0.0/24, ips: [10.0.0.5], gateway: 10.0.0.1}"), true, NULL},
		{KIND_MULTUS_CONFIG, "UPDATE", CONFIG("{cniType: sriov, sriov: {}}"),
		 CONFIG("{cniType: sriov, sriov: {mtu: 9000}}"), true, "spec.sriov.resourceName"},
	};

	run(NULL, rules, ARRAY_LEN(rules));
}

TEST(some_things_are_never_refused)
{
	static const char status_review[] =
		"{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: u, "
		"operation: "
		"UPDATE, subResource: status, resource: {group: spiderpool.spidernet.io, resource: "
		"spiderippools}, object: {metadata: {name: p}, spec: {}}}}";
	static const struct rule rules[] = {
		{KIND_IP_POOL, "DELETE", POOL(BAD_GATEWAY), NULL, true, NULL},
		{KIND_IP_POOL, "UPDATE",
		 "{metadata: {name: p, finalizers: [x]}, spec: " BAD_GATEWAY "}", POOL(BAD_GATEWAY),
		 true, NULL},
		/* Going away: whatever it says. */
		{KIND_IP_POOL, "UPDATE", POOL("{subnet: 10.0.0.0/24}"),
		 "{metadata: {name: p, deletionTimestamp: '2026-07-08T10:00:00Z'}, spec: {}}", true,
		 NULL},
		/* Metadata alone may break something: that is told. */
		{KIND_MULTUS_CONFIG, "UPDATE", CONFIG("{cniType: custom}"),
		 "{metadata: {name: c, namespace: ml, annotations: "
		 "{multus.spidernet.io/cni-version: "
		 "'9'}}, spec: {cniType: custom}}",
		 true, "must be one of"},
		{KIND_NODE, "CREATE", NULL, "{metadata: {name: n}}", true, NULL},
	};
	json_auto_t *review = yaml(status_review);
	auto_admission_request struct admission_request request = {0};
	struct err err = {0};
	json_auto_t *answer = NULL;

	run(NULL, rules, ARRAY_LEN(rules));
	assert_int_equal(admission_read(review, &request, &err), 0);
	answer = admission_validate(NULL, &request);
	assert_true(is_allowed(answer));
}

#define USED                                                                                       \
	", status: {allocatedIPs: "                                                                \
	"'{\"10.0.0.5\":{\"pod\":\"ml/a\"},\"10.0.0.6\":{\"pod\":\"ml/b\"}}'}"

TEST(pools_change_with_care)
{
	static const char world[] =
		"{spiderippools: {other: {metadata: {name: other, creationTimestamp: "
		"'2026-01-01T00:00:00Z'}, spec: {subnet: 10.0.0.0/24, ips: "
		"[10.0.0.100-10.0.0.110]}}, "
		"young: {metadata: {name: young, creationTimestamp: '2026-03-01T00:00:00Z'}, spec: "
		"{subnet: 10.0.0.0/24, ips: [10.0.0.200]}}}}";
#define OF_FEBRUARY(spec)                                                                          \
	"{metadata: {name: p, creationTimestamp: '2026-02-01T00:00:00Z'}, spec: " spec "}"
	static const struct rule rules[] = {
		/* The server has stamped it, it is the youngest all the same. */
		{KIND_IP_POOL, "CREATE", NULL,
		 "{metadata: {name: a, creationTimestamp: '2026-01-01T00:00:00Z'}, spec: {subnet: "
		 "10.0.0.0/24, ips: [10.0.0.105]}}",
		 false, "10.0.0.105 also belongs to SpiderIPPool other"},
		{KIND_IP_POOL, "UPDATE",
		 OF_FEBRUARY("{subnet: 10.0.0.0/24, ips: [10.0.0.90-10.0.0.105]}"),
		 OF_FEBRUARY("{subnet: 10.0.0.0/24, ips: [10.0.0.90-10.0.0.101]}"), true,
		 "also belongs to SpiderIPPool other"},
		{KIND_IP_POOL, "UPDATE",
		 OF_FEBRUARY("{subnet: 10.0.0.0/24, ips: [10.0.0.90-10.0.0.105]}"),
		 OF_FEBRUARY("{subnet: 10.0.0.0/24, ips: [10.0.0.90-10.0.0.106]}"), false,
		 "10.0.0.106 also belongs to SpiderIPPool other"},
		/* What an older pool takes from a younger one is refused, too. */
		{KIND_IP_POOL, "UPDATE", OF_FEBRUARY("{subnet: 10.0.0.0/24, ips: [10.0.0.9]}"),
		 OF_FEBRUARY("{subnet: 10.0.0.0/24, ips: [10.0.0.9, 10.0.0.200]}"), false,
		 "10.0.0.200 also belongs to SpiderIPPool young"},
		{KIND_IP_POOL, "UPDATE", POOL("{subnet: 10.7.0.0/24}"),
		 POOL("{subnet: 10.8.0.0/24}"), false, "10.7.0.0/24 cannot become 10.8.0.0/24"},
		{KIND_IP_POOL, "UPDATE", POOL("{subnet: 10.7.0.0/24}"),
		 POOL("{subnet: 10.7.0.9/24}"), true, NULL},
		/* A network that was refused may be mended. */
		{KIND_IP_POOL, "UPDATE", POOL("{subnet: 10.7.0.0/33}"),
		 POOL("{subnet: 10.7.0.0/24}"), true, NULL},
		{KIND_IP_POOL, "UPDATE", OF_FEBRUARY("{subnet: 10.0.0.0/16}"),
		 OF_FEBRUARY("{subnet: 10.9.0.0/16}"), true, NULL},
		{KIND_IP_POOL, "UPDATE",
		 "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.5-10.0.0.9]}" USED
		 "}",
		 "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.7-10.0.0.9]}" USED
		 "}",
		 false,
		 "spec.ips: would lose 2 of the addresses in use, the first is 10.0.0.5 of "
		 "pod ml/a"},
		{KIND_IP_POOL, "UPDATE",
		 "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.7-10.0.0.9]}" USED
		 "}",
		 "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.7]}" USED "}",
		 true, NULL},
	};

	run(world, rules, ARRAY_LEN(rules));
}

TEST(other_kinds_have_their_rules)
{
	static const char world[] =
		"{env: {namespace: orbweaver-system}, network-attachment-definitions: {lab/taken: "
		"{metadata: {name: taken, namespace: lab, ownerReferences: [{apiVersion: v1, kind: "
		"Thing, name: t, controller: true}]}}}, spiderippools: {there: true}}";
	static const struct rule rules[] = {
		{KIND_RESERVED_IP, "CREATE", NULL, "{metadata: {name: r}, spec: {ips: [10.0.0.x]}}",
		 false, "10.0.0.x"},
		{KIND_COORDINATOR, "CREATE", NULL,
		 "{metadata: {name: default}, spec: {podMACPrefix: '01:00'}}", false, "multicast"},
		{KIND_COORDINATOR, "CREATE", NULL, "{metadata: {name: second}, spec: {}}", true,
		 "pods use the SpiderCoordinator named default only"},
		{KIND_POLICY, "CREATE", NULL,
		 "{metadata: {name: a, namespace: lab}, spec: {resourceName: r, numVfs: 4, "
		 "nodeSelector: {a: b}, nicSelector: {pfNames: ['p#0-4']}}}",
		 false, "spec.nicSelector.pfNames[0]: \"p#0-4\""},
		{KIND_POLICY, "CREATE", NULL,
		 "{metadata: {name: a, namespace: lab}, spec: {resourceName: r, numVfs: 0, "
		 "nodeSelector: {a: b}, nicSelector: {pfNames: [p]}}}",
		 true, "spec.numVfs: 0 makes no VFs"},
		{KIND_POOL_CONFIG, "CREATE", NULL,
		 "{metadata: {name: a, namespace: lab}, spec: {maxUnavailable: 0%}}", false,
		 "\"0%\" must be"},
		{KIND_SRIOV_NETWORK, "CREATE", NULL,
		 "{metadata: {name: a, namespace: lab}, spec: {resourceName: r, networkNamespace: "
		 "prod}}",
		 false, "spec.networkNamespace: \"prod\" may be another namespace only"},
		{KIND_SRIOV_NETWORK, "CREATE", NULL,
		 "{metadata: {name: a, namespace: orbweaver-system}, spec: {resourceName: r, "
		 "networkNamespace: prod}}",
		 true, NULL},
		{KIND_OVS_NETWORK, "CREATE", NULL,
		 "{metadata: {name: taken, namespace: lab}, spec: {resourceName: r}}", false,
		 "belongs to Thing t"},
		{KIND_SRIOV_IB_NETWORK, "CREATE", NULL,
		 "{metadata: {generateName: x-, namespace: lab}, spec: {}}", false,
		 "SriovIBNetwork lab/x-* is invalid: spec.resourceName"},
		{KIND_MULTUS_CONFIG, "CREATE", NULL,
		 CONFIG("{cniType: ipvlan, ipvlan: {master: [e0], ippools: {ipv4: [there, "
			"gone]}}}"),
		 true, "spec.ipvlan.ippools: names SpiderIPPool gone, which does not exist"},
	};

	run(world, rules, ARRAY_LEN(rules));
}

TEST(a_crowd_of_mistakes_may_shrink)
{
	auto_strbuf struct strbuf old = {0}, now = {0};
	json_auto_t *answer = NULL;

	strbuf_adds(&old, "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24, ips: [");
	for (int i = 0; i < PROBLEMS_MAX + 9; i++)
		strbuf_addf(&old, "10.9.0.%d, ", i);
	strbuf_adds(&now, "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24, ips: [");
	for (int i = 1; i < PROBLEMS_MAX + 9; i++)
		strbuf_addf(&now, "10.9.0.%d, ", i);
	strbuf_adds(&old, "]}}");
	strbuf_adds(&now, "]}}");
	answer = judge(NULL, KIND_IP_POOL, "UPDATE", old.data, now.data);
	assert_true(is_allowed(answer));
}

TEST(only_reviews_are_read)
{
	static const char *const bad[] = {
		"[]",
		"{apiVersion: admission.k8s.io/v1beta1, kind: AdmissionReview, request: {uid: u}}",
		"{apiVersion: admission.k8s.io/v1, kind: Pod, request: {uid: u}}",
		"{apiVersion: admission.k8s.io/v1, kind: AdmissionReview}",
		"{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: 5}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_auto_t *review = yaml(bad[i]);
		struct admission_request request;
		struct err err = {0};

		assert_int_equal(admission_read(review, &request, &err), -1);
		assert_string_equal(err.reason, "BadReview");
	}
}

/* The object with defaults; a second time changes nothing. */
static json_t *defaulted(const char *kind, const char *text)
{
	json_t *object = yaml(text);
	size_t rounds = 0;

	for (; rounds < 2; rounds++) {
		json_auto_t *review = review_new(kind, "CREATE", object, NULL);
		auto_admission_request struct admission_request request = {0};
		json_auto_t *answer = NULL, *patch = NULL;
		struct err err = {0};

		assert_int_equal(admission_read(review, &request, &err), 0);
		answer = admission_default(&request);
		assert_true(is_allowed(answer));
		patch = json_patch_of(answer);
		assert_true(json_patch_apply(object, patch));
		if (rounds)
			assert_null(patch);
	}
	return object;
}

TEST(defaults_are_filled_in_once)
{
	static const struct {
		const char *kind, *object, *want;
	} cases[] = {
		{KIND_POLICY, "{metadata: {name: a}, spec: {linkType: IB, isRdma: false}}",
		 "{metadata: {name: a}, spec: {linkType: IB, isRdma: true, priority: 99}}"},
		{KIND_POLICY,
		 "{metadata: {name: a}, spec: {linkType: ib, deviceType: vfio-pci, priority: 5}}",
		 "{metadata: {name: a}, spec: {linkType: ib, deviceType: vfio-pci, priority: 5, "
		 "isRdma: false}}"},
		{KIND_POLICY, "{metadata: {name: default}, spec: {}}",
		 "{metadata: {name: default}, spec: {}}"},
		{KIND_RESERVED_IP,
		 "{metadata: {name: r}, spec: {ips: ['fd00::3', 'fd00::1-fd00::2']}}",
		 "{metadata: {name: r}, spec: {ipVersion: 6, ips: ['fd00::1-fd00::3']}}"},
		{KIND_RESERVED_IP, "{metadata: {name: r}, spec: {ips: [x, 10.0.0.1]}}",
		 "{metadata: {name: r}, spec: {ipVersion: 4, ips: [x, 10.0.0.1]}}"},
		{KIND_COORDINATOR,
		 "{metadata: {name: default}, spec: {hijackCIDR: [169.254.0.1, 10.0.0.0/8, x], "
		 "policyRoutes: [{dst: 'fd00::1', gw: 'fd00::2'}]}}",
		 "{metadata: {name: default}, spec: {hijackCIDR: [169.254.0.1/32, 10.0.0.0/8, x], "
		 "policyRoutes: [{dst: 'fd00::1/128', gw: 'fd00::2'}], vethLinkAddress: '', "
		 "vethMTU: 1500}}"},
		/* As a guide has it. */
		{KIND_IP_POOL,
		 "{metadata: {name: p}, spec: {subnet: 172.16.1.9/27, ipVersion: ipv4, ips: "
		 "[172.16.1.2-172.16.1.32], routes: [{to: 10.0.0.0/8, via: 172.16.1.1}]}}",
		 "{metadata: {name: p, labels: {ipam.spidernet.io/ippool-cidr: 172-16-1-0-27}}, "
		 "spec: "
		 "{subnet: 172.16.1.9/27, ipVersion: 4, ips: [172.16.1.2-172.16.1.31], routes: "
		 "[{dst: 10.0.0.0/8, gw: 172.16.1.1}]}}"},
		{KIND_IP_POOL, "{metadata: {name: p}, spec: {subnet: '::/64', ipVersion: 4}}",
		 "{metadata: {name: p}, spec: {subnet: '::/64', ipVersion: 4}}"},
		{KIND_IP_POOL, "{metadata: {name: p}, spec: 5}", "{metadata: {name: p}, spec: 5}"},
		{KIND_MULTUS_CONFIG,
		 "{metadata: {name: c}, spec: {cniType: ib-sriov, enableCoordinator: false, "
		 "ibsriov: "
		 "{resourceName: a/b, pkey: 1000}, coordinator: 7}}",
		 "{metadata: {name: c}, spec: {cniType: ib-sriov, enableCoordinator: false, "
		 "chainCNIJsonData: [], ibsriov: {resourceName: a/b, pkey: '1000', ippools: "
		 "{matchMasterSubnet: false}}, coordinator: 7}}"},
		{KIND_MULTUS_CONFIG, "{metadata: {name: c}, spec: {cniType: weird}}",
		 "{metadata: {name: c}, spec: {cniType: weird}}"},
		{KIND_MULTUS_CONFIG,
		 "{metadata: {name: c}, spec: {enableCoordinator: true, coordinator: {mode: "
		 "auto}}}",
		 "{metadata: {name: c}, spec: {cniType: custom, customCNI: '', chainCNIJsonData: "
		 "[], enableCoordinator: false}}"},
		{KIND_POOL_CONFIG, "{metadata: {name: c}, spec: {}}",
		 "{metadata: {name: c}, spec: {}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *got = defaulted(cases[i].kind, cases[i].object);
		json_auto_t *want = yaml(cases[i].want);
		auto_free char *got_text = json_text(got), *want_text = json_text(want);

		assert_string_equal(got_text, want_text);
	}
}

TEST(patches_say_the_least)
{
	static const struct {
		const char *from, *to, *want;
	} cases[] = {
		{"{a: 1}", "{a: 1}", NULL},
		{"{a: {b/c: 1, d~e: 2}, f: [1]}", "{a: {b/c: 2, g: null}, f: [1, 2]}",
		 "[{op: remove, path: /a/d~0e}, {op: replace, path: /a/b~1c, value: 2}, {op: add, "
		 "path: /a/g, value: null}, {op: replace, path: /f, value: [1, 2]}]"},
		{"{a: 1}", "{a: {b: 1}}", "[{op: replace, path: /a, value: {b: 1}}]"},
		{"{a: [{b: 1, c: 2}, 3, []]}", "{a: [{b: 1, c: {d: 4}}, 5, {}]}",
		 "[{op: replace, path: /a/0/c, value: {d: 4}}, {op: replace, path: /a/1, value: "
		 "5}, {op: replace, path: /a/2, value: {}}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *from = yaml(cases[i].from), *to = yaml(cases[i].to);
		json_auto_t *want = yaml(cases[i].want), *patch = admission_patch(from, to);

		assert_true(json_same(patch, want));
		assert_true(json_patch_apply(from, patch));
		assert_true(json_same(from, to));
	}
}
