# SPDX-License-Identifier: Apache-2.0
# A cluster of any size as `kubectl get -o json` prints it: jq -n --argjson nodes 1000 -f tests/support/fleet.jq
#
# Each node has four 400G NICs with eight VFs, in one of four rails; about half of the VFs are in pods. Every fiftieth node waits for
# a pod, every seventieth has a NIC whose link is down, every ninetieth has no agent.

def digits($n; $width): ($n | tostring) | (($width - length) * "0") + .;
def hex($n): [48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102] as $h |
	[$h[($n / 16) | floor % 16], $h[$n % 16]] | implode;
def condition($type; $status; $reason; $message):
	{type: $type, status: $status, reason: $reason, message: $message, lastTransitionTime: "2026-01-01T00:00:00Z"};
def pf($rail): "0000:\(hex(16 + 16 * $rail)):00.0";
def vf($rail; $n): "0000:\(hex(16 + 16 * $rail)):00.\($n + 1)";
def rails: range(4);
def pod($node; $rail; $n): "train-\(digits($node; 5))-\($rail)-\($n)";

# How many of a rail's VFs pods have.
def given($node; $rail): (($node * 7 + $rail * 3 + ($node / 16 | floor) * 5) % 9);

def node_name: "gpu-\(digits(.; 5))";

def node: {
	apiVersion: "v1", kind: "Node",
	metadata: {name: node_name, labels: {"kubernetes.io/os": "linux", rack: "r\(. / 16 | floor)"}},
	status: {allocatable: ([rails | {key: "spidernet.io/rail\(.)", value: "8"}] | from_entries),
		conditions: [{type: "Ready", status: "True"}]}
};

def policy: {
	apiVersion: "sriovnetwork.openshift.io/v1", kind: "SriovNetworkNodePolicy",
	metadata: {name: "rail\(.)", namespace: "orbweaver-system", generation: 1},
	spec: {resourceName: "rail\(.)", numVfs: 8, priority: 10, deviceType: "netdevice", nodeSelector: {},
		nicSelector: {pfNames: ["ens\(. + 1)f0"]}}
};

def pool: {
	apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool",
	metadata: {name: "rail\(.)"},
	spec: {ipVersion: 4, subnet: "10.\(100 + .).0.0/16", ips: ["10.\(100 + .).0.10-10.\(100 + .).63.250"]},
	status: {allocatedIPCount: (. * 1000),
		allocatedIPs: ([range(. * 1000) as $i | {key: "10.\(100 + .).\(($i / 200) | floor).\(10 + $i % 200)",
			value: {pod: "ml/other-\($i)", podUid: "u\($i)"}}] | from_entries | tojson),
		conditions: [condition("Ready"; "True"; "Usable"; "")]}
};

def node_state: . as $node | (. % 50 == 49) as $waits | (. % 70 == 69) as $down | (. % 90 == 89) as $silent | {
	apiVersion: "sriovnetwork.openshift.io/v1", kind: "SriovNetworkNodeState",
	metadata: {name: node_name, namespace: "orbweaver-system", generation: 1},
	spec: {interfaces: [rails | {pciAddress: pf(.), name: "ens\(. + 1)f0", numVfs: 8,
		vfGroups: [{resourceName: "rail\(.)", deviceType: "netdevice", vfRange: "0-7", policyName: "rail\(.)",
			policyNamespace: "orbweaver-system"}]}], bridges: {}},
	status: (if $silent then {
		conditions: [condition("Ready"; "Unknown"; "NoAgent"; "the agent is away since 2026-01-31T09:00:00Z: look at the DaemonSet")]
	} else {
		syncStatus: (if $waits then "InProgress" else "Succeeded" end), observedGeneration: 1, wantedVfs: 32, presentVfs: 32,
		agentVersion: "test", system: {rdmaMode: "exclusive"},
		conditions: (if $waits then [
			condition("Ready"; "False"; "Blocked"; "VF \(vf(0; 0)) is in use"),
			condition("Blocked"; "True"; "VfInUse"; "VF \(vf(0; 0)) is in use by ml/\(pod($node; 0; 0)): end the pod")
		] elif $down then [
			condition("Ready"; "False"; "NoInterface"; "ens3f0 shows no link"),
			condition("Degraded"; "True"; "NoInterface"; "ens3f0 shows no link")
		] else [condition("Ready"; "True"; "Applied"; "")] end),
		interfaces: [rails | {
			pciAddress: pf(.), name: "ens\(. + 1)f0", vendor: "15b3", deviceID: "1021", driver: "mlx5_core", linkType: "ETH",
			linkSpeed: (if $down and . == 2 then "-1 Mb/s" else "400000 Mb/s" end),
			linkAdminState: (if $down and . == 2 then "down" else "up" end), mtu: 9000, numVfs: 8, totalvfs: 16,
			eSwitchMode: "legacy", mac: "0a:00:\(hex($node / 256 | floor)):\(hex($node % 256)):0\(.):00",
			Vfs: [range(8) as $n | {vfID: $n, pciAddress: vf(.; $n), driver: "mlx5_core", vendor: "15b3", deviceID: "101e",
				mtu: 9000, mac: "0a:00:\(hex($node / 256 | floor)):\(hex($node % 256)):0\(.):1\($n)"}]
		}],
		problems: (if $waits then [{type: "Blocked", pciAddress: pf(0), reason: "VfInUse",
			message: "VF \(vf(0; 0)) is in use by ml/\(pod($node; 0; 0)): end the pod"}] else [] end),
		resources: [rails | (if $down and . == 2 then 0 else 8 end) as $healthy | {name: "spidernet.io/rail\(.)", kind: "sriov", wanted: 8, registered: true, offered: 8, healthy: $healthy,
			allocated: given($node; .), cause: "its port has no link; check cable and switch",
			pods: [range(given($node; .)) as $n | {device: vf(.; $n), pod: "ml/\(pod($node; .; $n))/main"}]}]
	} end)
};

def pods: . as $node | rails as $rail | range(given($node; $rail)) as $n | {
	apiVersion: "v1", kind: "Pod",
	metadata: {name: pod($node; $rail; $n), namespace: "ml", uid: "\($node)-\($rail)-\($n)",
		annotations: {"k8s.v1.cni.cncf.io/network-status": ([{name: "ml/rail\($rail)", interface: "net1",
			ips: ["10.\(100 + $rail).\($node / 30 | floor).\($node % 30 * 8 + $n)"],
			"device-info": {type: "pci", pci: {"pci-address": vf($rail; $n), "rdma-device": "mlx5_\(4 + $n)"}}}] | tojson)}},
	spec: {nodeName: ($node | node_name), containers: [{name: "main", image: "train"}]}
};

{apiVersion: "v1", kind: "List", items: [(rails | policy, pool), (range($nodes) | node, node_state, pods)]}
