// SPDX-License-Identifier: Apache-2.0
/*
 * The rules for SpiderMultusConfigs and SpiderIPPools, one by one: a specification and the reason
 * for which it is refused, NULL when it is accepted.
 */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/names.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/spider/multus_config.h"
#include "reconcilers/spider/multus_config_check.h"
#include "reconcilers/spider/multus_config_warn.h"

struct rule {
	const char *spec; /* YAML; a line "---" parts annotations (in front) from the spec */
	const char *reason;
};

static json_t *yaml(const char *text)
{
	struct err err = {0};
	json_t *value = yaml_parse_all(text, strlen(text), &err);

	if (!value)
		fail_msg("%s: %s", text, err.text);
	return value;
}

static json_t *object_new(const char *text)
{
	json_auto_t *documents = yaml(text);
	bool is_annotated = json_array_size(documents) == 2;
	json_t *object = json_pack("{s:{s:s, s:s}}", "metadata", "name", "x", "namespace", "ml");

	if (is_annotated)
		json_put(json_need_object(object, "metadata"), "annotations",
			 json_incref(json_array_get(documents, 0)));
	json_put(object, "spec", json_incref(json_array_get(documents, is_annotated)));
	return object;
}

static void expect(const struct rule *rule, const struct problems *problems)
{
	auto_free char *text = problems_text(problems);

	if (!str_eq(problems_reason(problems), rule->reason ? rule->reason : ""))
		fail_msg("%s\n  expected %s, got: %s", rule->spec,
			 rule->reason ? rule->reason : "acceptance", text);
	/* One mistake, one problem. */
	if (problems->total > 1)
		fail_msg("%s\n  more than one problem: %s", rule->spec, text);
}

TEST(configs_follow_the_rules)
{
	static const struct rule rules[] = {
		{"{cniType: macvlan, macvlan: {master: [e0]}}", NULL},
		{"{cniType: weird}", "BadCNIType"},
		{"{cniType: 5}", "BadCNIType"},
		{"{cniType: macvlan}", "NoSettings"},
		{"{cniType: macvlan, macvlan: []}", "BadField"},
		{"{cniType: macvlan, macvlan: {}}", "NoMaster"},
		{"{cniType: macvlan, macvlan: {master: []}}", "NoMaster"},
		{"{cniType: macvlan, macvlan: {master: e0}}", "BadField"},
		{"{cniType: macvlan, macvlan: {master: [7]}}", "BadField"},
		{"{cniType: macvlan, macvlan: {master: ['']}}", "BadInterfaceName"},
		{"{cniType: macvlan, macvlan: {master: [a/b]}}", "BadInterfaceName"},
		{"{cniType: macvlan, macvlan: {master: [abcdefghijklmnop]}}", "BadInterfaceName"},
		{"{cniType: macvlan, macvlan: {master: [abcdefghijklmno]}}", NULL},
		{"{cniType: macvlan, macvlan: {master: [abcdefghijk], vlanID: 120}}", NULL},
		{"{cniType: macvlan, macvlan: {master: [abcdefghijkl], vlanID: 120}}",
		 "BadInterfaceName"},
		{"{cniType: vlan, vlan: {master: [abcdefghijkl], vlanID: 120}}", NULL},
		{"{cniType: macvlan, macvlan: {master: [e0], vlanID: 4094}}", NULL},
		{"{cniType: macvlan, macvlan: {master: [e0], vlanID: 4095}}", "BadField"},
		{"{cniType: macvlan, macvlan: {master: [e0], vlanID: -1}}", "BadField"},
		{"{cniType: macvlan, macvlan: {master: [e0], mtu: -1}}", "BadField"},
		{"{cniType: macvlan, macvlan: {master: [e0, e1]}}", "NoBond"},
		{"{cniType: macvlan, macvlan: {master: [e0, e1], bond: {name: b, mode: 0}}}", NULL},
		{"{cniType: macvlan, macvlan: {master: [e0, e1], bond: {name: b, mode: 7}}}",
		 "BadField"},
		{"{cniType: macvlan, macvlan: {master: [e0, e1], bond: {name: b}}}", "NoBond"},
		{"{cniType: macvlan, macvlan: {master: [e0, e1], bond: {name: '', mode: 1}}}",
		 "BadInterfaceName"},
		{"{cniType: macvlan, macvlan: {master: [e0], ippools: {matchMasterSubnet: true}}}",
		 "NotSupported"},
		{"{cniType: macvlan, macvlan: {master: [e0], ippools: {ipv4: p}}}", "BadField"},
		{"{cniType: macvlan, macvlan: {master: [e0], enableRdma: true}}", NULL},
		{"{cniType: macvlan, macvlan: {master: [e0]}, ipvlan: {master: [e0]}}",
		 "OtherSettings"},
		{"{cniType: macvlan, macvlan: {master: [e0]}, customCNI: ''}", "OtherSettings"},
		{"{macvlan: {master: [e0]}}", "OtherSettings"},
		{"{cniType: vlan, vlan: {master: [e0], vlanMode: auto}}", NULL},
		{"{cniType: vlan, vlan: {master: [e0], vlanMode: auto, vlanID: 0}}", "BadVlanMode"},
		{"{cniType: vlan, vlan: {master: [e0], vlanMode: manuall}}", "BadField"},
		{"{cniType: vlan, vlan: {master: [e0], vlanMode: ''}}", "BadField"},
		{"{cniType: sriov, sriov: {}}", "NoResource"},
		{"{cniType: sriov, sriov: {resourceName: ''}}", "NoResource"},
		{"{cniType: sriov, sriov: {resourceName: a/b, maxTxRateMbps: 9}}", NULL},
		{"{cniType: sriov, sriov: {resourceName: a/b, minTxRateMbps: 9}}", "BadTxRate"},
		{"{cniType: sriov, sriov: {resourceName: a/b, minTxRateMbps: 9, maxTxRateMbps: 9}}",
		 NULL},
		{"{cniType: sriov, sriov: {resourceName: a/b, rdmaIsolation: 'yes'}}", "BadField"},
		{"{cniType: sriov, sriov: {resourceName: a/b, ippools: {matchMasterSubnet: true}}}",
		 NULL},
		{"{cniType: ib-sriov, ibsriov: {pkey: '1'}}", "NoResource"},
		{"{cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: 1000}}", NULL},
		{"{cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: true}}", "BadField"},
		{"{cniType: macvlan, rdmaResourceName: a/b, macvlan: {master: [e0]}}", NULL},
		{"{cniType: macvlan, rdmaResourceName: 5, macvlan: {master: [e0]}}", "BadField"},
		{"{cniType: macvlan, ippools: {ipv4: [p]}, macvlan: {master: [e0]}}", NULL},
		{"{cniType: macvlan, ippools: [p], macvlan: {master: [e0]}}", "BadField"},
		{"{cniType: macvlan, ippools: {ipv4: p}, macvlan: {master: [e0]}}", "BadField"},
		{"{cniType: macvlan, ippools: {ipv4: [p]}, macvlan: {master: [e0], ippools: p}}",
		 "BadField"},
		{"{cniType: sriov, sriov: {resourceName: a/b, matchMasterSubnet: true}}", NULL},
		{"{cniType: sriov, sriov: {resourceName: a/b, matchMasterSubnet: 1}}", "BadField"},
		{"{cni.spidernet.io/rdma-resource-inject: g}\n---\n{cniType: macvlan, "
		 "rdmaResourceName: a/b, ippools: {ipv4: [p]}, macvlan: {master: [e0]}}",
		 NULL},
		{"{cniType: ib-sriov, ibsriov: {resourceName: a/b, linkState: up}}", "BadField"},
		{"{cniType: ib-sriov}", "NoSettings"},
		{"{cniType: ipoib, ipoib: {master: ''}}", "NoMaster"},
		{"{cniType: ipoib, ipoib: {master: [ib0]}}", "BadField"},
		{"{cniType: ipoib, ipoib: {master: ib0}}", NULL},
		{"{cniType: ovs, ovs: {}}", "NoBridge"},
		{"{cniType: ovs, ovs: {bridge: br1, vlan: 4095}}", "BadField"},
		{"{cniType: ovs, ovs: {bridge: br1, trunk: [{minID: 10, maxID: 10}, {id: 4094}, "
		 "{minID: 5}]}}",
		 NULL},
		{"{cniType: ovs, ovs: {bridge: br1, trunk: [{minID: 11, maxID: 10}]}}", "BadTrunk"},
		{"{cniType: ovs, ovs: {bridge: br1, trunk: [{maxID: 10}]}}", "BadTrunk"},
		{"{cniType: ovs, ovs: {bridge: br1, trunk: [5]}}", "BadTrunk"},
		{"{cniType: ovs, ovs: {bridge: br1, trunk: [{id: 4095}]}}", "BadField"},
		{"{}", NULL},
		{"{customCNI: '{\"type\":\"bridge\"}'}", NULL},
		{"{customCNI: '{}'}", NULL},
		{"{customCNI: '{\"type\":'}", "BadCustomCNI"},
		{"{customCNI: '5'}", "BadCustomCNI"},
		{"{coordinator: {mode: nonsense}}",
		 NULL}, /* custom has no coordinator: nobody reads it */
		{"{chainCNIJsonData: ['{\"type\":\"\"}']}", "BadChain"},
		{"{chainCNIJsonData: ['[]']}", "BadChain"},
		{"{chainCNIJsonData: ['x']}", "BadChain"},
		{"{chainCNIJsonData: [5]}", "BadField"},
		{"{enableCoordinator: 'no'}", "BadField"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		json_auto_t *object = object_new(rules[i].spec);
		auto_problems struct problems problems = {0};

		multus_config_check(NULL, object, &problems);
		expect(&rules[i], &problems);
	}
}

/* `n` times `item` between `before` and `after`. */
static char *much(const char *before, const char *item, size_t n, const char *after)
{
	auto_strbuf struct strbuf text = {0};

	strbuf_adds(&text, before);
	for (size_t i = 0; i < n; i++)
		strbuf_adds(&text, item);
	strbuf_adds(&text, after);
	return strbuf_take(&text);
}

TEST(json_within_a_config_has_a_bound)
{
	static const struct {
		const char *before, *item;
		size_t n;
		const char *after, *field;
	} cases[] = {
		{"{customCNI: '{\"type\":\"x\",\"a\":[{}", ",{}", LIMIT_JSON_NODES / 3 - 4, "]}'}",
		 NULL},
		{"{customCNI: '{\"type\":\"x\",\"a\":[{}", ",{}", LIMIT_JSON_NODES, "]}'}",
		 "spec.customCNI"},
		{"{customCNI: '{\"type\":\"", "x", LIMIT_CONFIG_BYTES, "\"}'}", "spec.customCNI"},
		/* As the door leaves them. */
		{"{customCNI: 990000}", "", 0, "", "spec.customCNI"},
		{"{chainCNIJsonData: 990000}", "", 0, "", "spec.chainCNIJsonData"},
		{"{chainCNIJsonData: ['{\"type\":\"x\",\"a\":[0", ",[]", LIMIT_JSON_NODES, "]}']}",
		 "spec.chainCNIJsonData"},
		/* Each small, all together not. */
		{"{customCNI: '{\"type\":\"x\"}', chainCNIJsonData: ['{\"type\":\"x\"}'",
		 ", '{\"type\":\"x\",\"a\":[0,0,0,0,0,0,0,0,0,0]}'", 600, "]}",
		 "spec.chainCNIJsonData"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *spec =
			much(cases[i].before, cases[i].item, cases[i].n, cases[i].after);
		json_auto_t *object = object_new(spec);
		auto_problems struct problems problems = {0};
		const json_t *first;

		multus_config_check(NULL, object, &problems);
		first = json_array_get(problems.list, 0);
		if (!str_eq(json_str_at(first, "field"), cases[i].field) ||
		    (first && !str_eq(json_str_at(first, "reason"), "TooLarge")))
			fail_msg("case %zu: %s %s", i, json_str_or(json_at(first, "field"), "-"),
				 json_str_or(json_at(first, "message"), "-"));
	}
}

TEST(coordinator_settings_follow_the_rules)
{
	static const struct rule rules[] = {
		{"{}", NULL},
		{"{mode: disabled, podCIDRType: none, podRPFilter: -1, txQueueLen: 0}", NULL},
		{"{mode: disable}", "BadField"},
		{"{podCIDRType: flannel}", "BadField"},
		{"{podRPFilter: 3}", "BadField"},
		{"{txQueueLen: -1}", "BadField"},
		{"{vethMTU: 0}", "BadField"},
		{"{vethMTU: 1}", NULL},
		{"{hijackCIDR: [10.0.0.0/8, 'fd00::/8']}", NULL},
		/* The plugin takes subnets only, as Spiderpool's. */
		{"{hijackCIDR: [10.0.0.1]}", "BadField"},
		{"{hijackCIDR: ['fd00::1']}", "BadField"},
		{"{hijackCIDR: [10.0.0.0/40]}", "BadNetwork"},
		{"{hijackCIDR: [ten]}", "BadNetwork"},
		{"{policyRoutes: [{dst: 10.1.0.0/16, gw: 10.0.0.1}, {dst: 10.2.0.9, gw: "
		 "10.0.0.1}]}",
		 NULL},
		{"{policyRoutes: [{dst: 10.1.0.0/16, gateway: 10.0.0.1}]}", "BadRoute"},
		{"{policyRoutes: [{gw: 10.0.0.1}]}", "BadRoute"},
		{"{policyRoutes: [{dst: 'fd00::/8', gw: 10.0.0.1}]}", "BadRoute"},
		{"{policyRoutes: [x]}", "BadRoute"},
		{"{podMACPrefix: ''}", NULL},
		{"{podMACPrefix: '0a:1b'}", NULL},
		{"{podMACPrefix: 'FE:ff'}", NULL},
		{"{podMACPrefix: '0a-1b'}", "BadMACPrefix"},
		{"{podMACPrefix: '0a:1'}", "BadMACPrefix"},
		{"{podMACPrefix: '0b:1b'}", "BadMACPrefix"},
		{"{podMACPrefix: '01:1b'}", "BadMACPrefix"},
		{"{vethLinkAddress: 169.254.100.1}", NULL},
		{"{vethLinkAddress: ''}", NULL},
		{"{vethLinkAddress: 169.254.100.1/24}", "BadAddress"},
		{"{hostRuleTable: 600, detectGateway: true}", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		auto_free char *spec =
			str_printf("{cniType: macvlan, macvlan: {master: [e0]}, coordinator: %s}",
				   rules[i].spec);
		json_auto_t *object = object_new(spec);
		auto_problems struct problems problems = {0};

		multus_config_check(NULL, object, &problems);
		expect(&rules[i], &problems);
	}
}

#define MACVLAN_WITH_ALL                                                                           \
	"{cniType: macvlan, macvlan: {master: [e0], rdmaResourceName: a/b, ippools: {ipv4: [p]}}}"
#define MACVLAN_WITHOUT_RESOURCE "{cniType: macvlan, macvlan: {master: [e0], ippools: {ipv6: [p]}}}"
#define MACVLAN_WITHOUT_POOL     "{cniType: macvlan, macvlan: {master: [e0], rdmaResourceName: a/b}}"
#define RDMA                     "cni.spidernet.io/rdma-resource-inject"
#define NETWORK                  "cni.spidernet.io/network-resource-inject"

TEST(annotations_follow_the_rules)
{
	static const struct rule rules[] = {
		{"{multus.spidernet.io/cr-name: other.name}\n---\n{}", NULL},
		{"{multus.spidernet.io/cr-name: Bad_Name}\n---\n{}", "BadAnnotation"},
		{"{multus.spidernet.io/cr-name: ''}\n---\n{}", "BadAnnotation"},
		{"{multus.spidernet.io/cni-version: 1.0.0}\n---\n{}", NULL},
		{"{multus.spidernet.io/cni-version: 1.1.0}\n---\n{}", "BadAnnotation"},
		{"{multus.spidernet.io/cni-version: ''}\n---\n{}", "BadAnnotation"},
		{"{cni.spidernet.io/cniconfig-name: ''}\n---\n{}", NULL},
		{"{cni.spidernet.io/cniconfig-name: a_B.c-1}\n---\n{}", NULL},
		{"{cni.spidernet.io/cniconfig-name: a/b}\n---\n{}", "BadAnnotation"},
		{"{" RDMA ": g}\n---\n" MACVLAN_WITH_ALL, NULL},
		{"{" RDMA ": ''}\n---\n" MACVLAN_WITH_ALL, NULL},
		{"{" RDMA ": 'a b'}\n---\n" MACVLAN_WITH_ALL, "BadAnnotation"},
		{"{" RDMA ": g, orbweaver.io/rail: '31'}\n---\n" MACVLAN_WITH_ALL, NULL},
		{"{" RDMA ": g, orbweaver.io/rail: '32'}\n---\n" MACVLAN_WITH_ALL, "BadAnnotation"},
		{"{" RDMA ": g, orbweaver.io/rail: 0-1}\n---\n" MACVLAN_WITH_ALL, "BadAnnotation"},
		{"{" RDMA ": g}\n---\n" MACVLAN_WITHOUT_RESOURCE, "NoResource"},
		{"{" RDMA ": g}\n---\n" MACVLAN_WITHOUT_POOL, "NoPools"},
		{"{" NETWORK ": g}\n---\n" MACVLAN_WITH_ALL, NULL},
		{"{" NETWORK ": g}\n---\n" MACVLAN_WITHOUT_RESOURCE, NULL},
		{"{" NETWORK ": g}\n---\n" MACVLAN_WITHOUT_POOL, "NoPools"},
		{"{" RDMA
		 ": g}\n---\n{disableIPAM: true, cniType: ib-sriov, ibsriov: {resourceName: a/b}}",
		 NULL},
		{"{" RDMA ": g}\n---\n{cniType: ipoib, ipoib: {master: ib0}}", "NoPools"},
		{"{" RDMA ": g}\n---\n{cniType: vlan, vlan: {master: [e], rdmaResourceName: a/b, "
		 "ippools: {ipv4: [p]}}}",
		 NULL},
		{"{" NETWORK ": g}\n---\n{cniType: ovs, ovs: {bridge: b}}", "NotSupported"},
		{"{" RDMA ": g}\n---\n{}", "NotSupported"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		json_auto_t *object = object_new(rules[i].spec);
		auto_problems struct problems problems = {0};

		multus_config_check(NULL, object, &problems);
		expect(&rules[i], &problems);
	}
}

TEST(pools_follow_the_rules)
{
	static const struct rule rules[] = {
		{"{subnet: 10.6.0.0/24, ips: [10.6.0.1]}", NULL},
		{"{subnet: 10.6.0.9/24, ips: [10.6.0.1]}", NULL},
		{"{subnet: 'FD00:0::/64', ips: ['fd00::1']}", NULL},
		{"{}", "NoSubnet"},
		{"{subnet: 10.6.0.0/33}", "BadSubnet"},
		{"{subnet: 10.6.0.0/24, ipVersion: 4}", NULL},
		{"{subnet: 10.6.0.0/24, ipVersion: 6}", "WrongIPVersion"},
		{"{subnet: 10.6.0.0/24, ipVersion: ipv4}", NULL},
		{"{subnet: 10.6.0.0/24, ipVersion: IPv6}", "WrongIPVersion"},
		{"{subnet: 10.6.0.0/24, ipVersion: four}", "WrongIPVersion"},
		{"{subnet: 10.6.0.0/27, ips: [10.6.0.1-10.6.0.32]}", NULL},
		{"{subnet: 10.6.0.0/27, ips: [10.6.0.1-10.6.0.33]}", "OutsideSubnet"},
		{"{subnet: 10.6.0.0/27, ips: [10.6.0.32]}", "OutsideSubnet"},
		{"{subnet: 10.6.0.224/27, ips: [10.6.0.225-10.6.0.256]}", NULL},
		{"{subnet: 10.6.0.224/27, ips: [10.6.0.225-10.6.0.257]}", "BadRange"},
		{"{subnet: 10.6.0.224/27, ips: [10.6.0.200-10.6.0.256]}", "BadRange"},
		{"{subnet: 10.6.0.224/27, ips: [10.6.0.256]}", "BadRange"},
		{"{subnet: 10.6.0.0/24, ips: []}", NULL},
		{"{subnet: 10.6.0.0/24, ips: 10.6.0.1}", "BadField"},
		{"{subnet: 10.6.0.0/24, ips: [5]}", "BadField"},
		{"{subnet: 10.6.0.0/24, ips: [10.6.0.0-10.6.0.255]}", NULL},
		{"{subnet: 10.6.0.0/24, ips: [10.6.0.1-10.6.0.9, 10.6.0.5-10.6.0.20]}", NULL},
		{"{subnet: 10.6.0.0/24, ips: [10.6.0.9-10.6.0.1]}", "BadRange"},
		{"{subnet: 10.6.0.0/24, ips: ['10.6.0.1 - 10.6.0.9']}", "BadRange"},
		{"{subnet: 10.6.0.0/24, ips: [10.6.0.1-10.6.1.0]}", "OutsideSubnet"},
		{"{subnet: 10.6.0.0/24, excludeIPs: [10.6.1.0]}", "OutsideSubnet"},
		{"{subnet: 10.6.0.0/24, excludeIPs: [10.6.0.9]}", NULL},
		{"{subnet: 10.6.0.0/24, gateway: 10.6.0.1}", NULL},
		{"{subnet: 10.6.0.0/24, gateway: 10.7.0.1}", "BadGateway"},
		{"{subnet: 10.6.0.0/24, gateway: 'fd00::1'}", "BadGateway"},
		{"{subnet: 10.6.0.0/24, ips: [10.6.0.1-10.6.0.9], gateway: 10.6.0.1}",
		 "GatewayInRange"},
		{"{subnet: 10.6.0.0/24, ips: [10.6.0.1-10.6.0.9], gateway: 10.6.0.1, excludeIPs: "
		 "[10.6.0.1]}",
		 NULL},
		{"{subnet: 'fd00::/64', ips: ['fd00:0::1'], gateway: 'fd00::1'}", "GatewayInRange"},
		{"{subnet: 10.6.0.0/24, routes: []}", NULL},
		{"{subnet: 10.6.0.0/24, routes: {}}", "BadField"},
		{"{subnet: 10.6.0.0/24, routes: [{dst: 10.99.0.1/16, gw: 10.6.0.1}]}", NULL},
		{"{subnet: 10.6.0.0/24, routes: [{to: 10.99.0.0/16, via: 10.6.0.1}]}", NULL},
		{"{subnet: 10.6.0.0/24, routes: [{to: 10.99.0.0/16, via: 10.7.0.1}]}", "BadRoute"},
		{"{subnet: 10.6.0.0/24, routes: [{dst: 0.0.0.0/0, gw: 10.6.0.1}]}", "BadRoute"},
		{"{subnet: 10.6.0.0/24, routes: [{dst: 10.99.0.0, gw: 10.6.0.1}]}", "BadRoute"},
		{"{subnet: 10.6.0.0/24, routes: [{dst: 'fd00::/8', gw: 10.6.0.1}]}", "BadRoute"},
		{"{subnet: 10.6.0.0/24, routes: [{dst: 10.99.0.0/16, gw: 10.7.0.1}]}", "BadRoute"},
		{"{subnet: 10.6.0.0/24, routes: [{dst: 10.99.0.0/16}]}", "BadRoute"},
		{"{subnet: 10.6.0.0/24, routes: [{dst: 10.99.0.0/16, gw: 10.6.0.1}, {dst: "
		 "10.99.0.0/16, gw: 10.6.0.2}]}",
		 "BadRoute"},
		{"{subnet: 10.6.0.0/24, podAffinity: {}}", "BadSelector"},
		{"{subnet: 10.6.0.0/24, podAffinity: {matchLabels: {app: x}}}", NULL},
		{"{subnet: 10.6.0.0/24, podAffinity: {matchLabels: {app: 'a b'}}}", "BadSelector"},
		{"{subnet: 10.6.0.0/24, podAffinity: {matchExpressions: [{key: app, operator: In, "
		 "values: [a]}]}}",
		 NULL},
		{"{subnet: 10.6.0.0/24, podAffinity: {matchExpressions: [{key: app, operator: "
		 "In}]}}",
		 "BadSelector"},
		{"{subnet: 10.6.0.0/24, podAffinity: {matchExpressions: [{key: app, operator: "
		 "Exists, values: [a]}]}}",
		 "BadSelector"},
		{"{subnet: 10.6.0.0/24, podAffinity: {matchExpressions: [{key: app, operator: "
		 "Near}]}}",
		 "BadSelector"},
		{"{subnet: 10.6.0.0/24, nodeName: [n], multusName: [a/b], vlan: 5}", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		json_auto_t *object = object_new(rules[i].spec);
		auto_problems struct problems problems = {0};

		ip_pool_check(NULL, object, &problems);
		expect(&rules[i], &problems);
	}
}

TEST(an_admitted_pool_is_younger_than_all_others)
{
	json_auto_t *world =
		json_pack("{s:{s:{s:{s:s, s:s}, s:{s:s, s:[s]}}}}", KIND_IP_POOL, "old", "metadata",
			  "name", "old", "creationTimestamp", "2026-07-01T08:00:00Z", "spec",
			  "subnet", "10.6.0.0/24", "ips", "10.6.0.1-10.6.0.9");
	json_auto_t *object = object_new("{subnet: 10.6.0.0/24, ips: [10.6.0.9]}");
	auto_problems struct problems problems = {0};

	ip_pool_check(world, object, &problems);
	assert_string_equal(problems_reason(&problems), "AddressOverlap");
}

TEST(many_problems_are_counted_not_kept)
{
	json_auto_t *object = object_new("{subnet: 10.6.0.0/24}");
	json_t *ips = json_array();
	auto_problems struct problems problems = {0};
	auto_free char *text = NULL;

	for (int i = 0; i < 1000; i++)
		json_array_append_new(ips, json_string("x"));
	json_put(json_need_object(object, "spec"), "ips", ips);
	ip_pool_check(NULL, object, &problems);
	assert_int_equal(problems.total, 1000);
	assert_int_equal(json_array_size(problems.list), PROBLEMS_MAX);
	text = problems_text(&problems);
	assert_true(str_ends(text, "; and 968 more"));
}

TEST(a_pool_keeps_its_network)
{
	json_auto_t *old = object_new("subnet: 10.7.0.0/24"),
		    *now = object_new("subnet: 10.8.0.0/24");
	auto_problems struct problems problems = {0}, none = {0};

	ip_pool_check_change(NULL, old, now, &problems);
	assert_string_equal(problems_reason(&problems), "SubnetChanged");
	ip_pool_check_change(NULL, old, old, &none);
	assert_int_equal(none.total, 0);
}

/* Nobody else could tell whose NetworkAttachmentDefinition it is. */
TEST(a_config_without_uid_is_a_bug)
{
	json_auto_t *config = object_new("cniType: macvlan");
	json_auto_t *world = json_pack("{s:{s:O}}", KIND_MULTUS_CONFIG, "ml/x", config);
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(multus_config_reconcile(world, "ml/x", &plan, &err), -1);
	assert_int_equal(err.class, ERR_BUG);
	assert_string_equal(err.reason, "BadWorld");
	assert_int_equal(json_array_size(plan.ops), 0);
}

TEST(names_are_judged_as_kubernetes_does)
{
	assert_true(name_is_dns_subdomain("a"));
	assert_true(name_is_dns_subdomain("a-b.c1"));
	assert_false(name_is_dns_subdomain(""));
	assert_false(name_is_dns_subdomain("a..b"));
	assert_false(name_is_dns_subdomain("a-.b"));
	assert_false(name_is_dns_subdomain("-a"));
	assert_false(name_is_dns_subdomain("a."));
	assert_false(name_is_dns_subdomain("A"));
	assert_true(name_is_qualified("example.com/App_1"));
	assert_false(name_is_qualified("/app"));
	assert_false(name_is_qualified("example.com/"));
	assert_false(name_is_qualified("a/b/c"));
	assert_true(name_is_label_value(""));
	assert_false(name_is_label_value("-"));
	assert_false(name_is_label_value(NULL));
}

/* What a cniType does not have is not checked: a webhook gets it all the same. */
TEST(fields_of_another_type_are_no_masters)
{
	json_auto_t *object =
		object_new("{cniType: sriov, sriov: {resourceName: a/b, master: [5, null, e0]}}");
	struct problems warnings = {0};

	multus_config_warn(object, &(struct multus_rendering){0}, &warnings);
	assert_int_equal(warnings.total, 0);
	problems_done(&warnings);
}
