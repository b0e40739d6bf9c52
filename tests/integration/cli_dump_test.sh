#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver support dump and replay, on files: what is in a dump and what never is, that commands say the same about a dump
# as about its objects, what the operator would decide, and dumps of people who mean harm.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.."
. tests/integration/cli.sh

cli=${BUILD:-build}/${VARIANT:-asan}/orbweaver

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
{
	world
	echo ---
	endpoints
} >"$tmp/objects.yaml"
# What is in clusters and belongs to nobody else. Each secret has "hush" in it.
cat >"$tmp/secrets.yaml" <<'END'
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: ml}
stringData: {password: hush-1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: app, namespace: ml}
data: {config: hush-2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: spiderpool-conf, namespace: spiderpool}
data: {conf.yml: "enableIPv4: true\nenableIPv6: true\n", clusterNetwork: "", notes: hush-3}
---
apiVersion: v1
kind: Pod
metadata:
  name: noisy
  uid: u-noisy
  namespace: ml
  annotations: {vault.example/token: hush-4, kubectl.kubernetes.io/last-applied-configuration: '{"env":"hush-5"}',
    k8s.v1.cni.cncf.io/networks: rail1}
spec:
  nodeName: n1
  serviceAccountName: hush-6
  volumes: [{name: v, secret: {secretName: hush-7}}]
  containers:
  - name: c
    image: hush-8
    command: [sh, -c, hush-9]
    args: [--password=hush-10]
    env: [{name: PASSWORD, value: hush-11}, {name: PLAIN, value: hush-12}]
    resources: {limits: {spidernet.io/rail: 1}}
status: {phase: Pending}
---
apiVersion: v1
kind: Node
metadata: {name: n1, annotations: {csi.example/key: hush-13}}
status: {nodeInfo: {machineID: hush-14, kernelVersion: 6.1.0}, addresses: [{type: InternalIP, address: hush-15}]}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: {name: custom, namespace: ml, uid: c1, annotations: {own.example/note: hush-16}}
spec: {cniType: custom, customCNI: '{"cniVersion":"0.3.1","type":"wireguard","privateKey":"hush-17","peer":"10.0.0.2"}'}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: calico, namespace: kube-system}
spec: {config: '{"type":"calico","etcd_endpoints":"https://user:hush-18@etcd:2379","policy":{"k8s_auth_token":"hush-19"}}'}
---
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: ml}
involvedObject: {apiVersion: v1, kind: Pod, name: noisy, namespace: ml}
reason: FailedCreatePodSandBox
message: "plugin says: Authorization: Bearer hush-20aaaaaaaaaaaaaaaaaaa refused"
---
apiVersion: v1
kind: Event
metadata: {name: e2, namespace: ml}
involvedObject: {apiVersion: v1, kind: Pod, name: noisy, namespace: ml}
reason: Pulled
message: hush-21
END
files=(-f "$tmp/objects.yaml" -f "$tmp/secrets.yaml")
printf 'apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n' >"$tmp/empty.yaml"

echo "# dumps"
t_ok "a dump of files is a folder" says "$tmp/dir: 13 objects" 0 "$cli" support dump "${files[@]}" -o "$tmp/dir"
t_ok "or a file" says "parts, 0 of them missing" 0 "$cli" support dump "${files[@]}" -o "$tmp/dump.tar.gz"
t_eq "that tar(1) reads" "13" "$(tar -xzOf "$tmp/dump.tar.gz" --wildcards 'orbweaver-dump/objects/*' | grep -c '"metadata"')"
t_ok "its name has the time when none is given" bash -c "cd $tmp && $(realpath "$cli") support dump -f objects.yaml >/dev/null &&
	test -s orbweaver-dump-20*Z.tar.gz"
t_eq "nobody else may read them" "600 700 600" "$(stat -c %a "$tmp/dump.tar.gz" "$tmp/dir" "$tmp/dir/index.json" | xargs)"
t_eq "no secret that was planted is in the folder" "" "$(grep -rn hush "$tmp/dir" || true)"
t_eq "nor in the file" "" "$(tar -xzOf "$tmp/dump.tar.gz" | grep -n hush || true)"
t_eq "nor in a dump of the dump, which has all the same" "" \
	"$("$cli" support dump -f "$tmp/dump.tar.gz" -o "$tmp/again" >/dev/null && diff -r -x index.json "$tmp/dir" "$tmp/again")"
t_eq "what is read is: networks, resources, the kernel, what is told of addresses" "rail1 1 6.1.0 10.0.0.2" "$({
	jq -r '.items[] | select(.metadata.name == "noisy") | .metadata.annotations["k8s.v1.cni.cncf.io/networks"],
		.spec.containers[0].resources.limits["spidernet.io/rail"]' "$tmp/dir/objects/pods.json"
	jq -r '.items[].status.nodeInfo.kernelVersion' "$tmp/dir/objects/nodes.json"
	jq -r '.items[].spec.customCNI | fromjson.peer' "$tmp/dir/objects/spidermultusconfigs.spiderpool.spidernet.io.json"
} | xargs)"
t_eq "the index tells each part" "SupportDump pods 3" "$(jq -r '"\(.kind) \(.parts[] | select(.what == "pods") | "\(.what) \(.items)")"' \
	"$tmp/dir/index.json")"
t_ok "a folder that is in use is left alone (BundleExists)" says "no empty folder" 2 "$cli" support dump "${files[@]}" -o "$tmp/dir"
t_ok "a place that is not there is status 3" says "nosuch" 3 "$cli" support dump "${files[@]}" -o "$tmp/nosuch/x"
t_ok "no cluster is status 3" says "nothing says where the API server is" 3 env KUBECONFIG="$tmp/none" "$cli" support dump -o "$tmp/x"
t_ok "and leaves nothing behind" test ! -e "$tmp/x"

echo "# commands on a dump"
for each in "ipam show" "ipam check" "ipam explain ml/train-1" "ledger" "status" "explain pod ml/train-1"; do
	read -ra command <<<"$each"
	t_eq "$each says the same as about the objects" "$("$cli" "${command[@]}" "${files[@]}" 2>&1 || true)" \
		"$("$cli" "${command[@]}" -f "$tmp/dump.tar.gz" 2>&1 || true)"
done
t_ok "a folder is as good" says "10.6.0.10" 0 "$cli" ipam who ml/train-0 -f "$tmp/dir"

echo "# replay"
# A node with 2 VFs of a policy that asks for 4 now, and a pod that waits for an address.
cat >"$tmp/node.yaml" <<'END'
apiVersion: v1
kind: Node
metadata: {name: w1}
---
apiVersion: v1
kind: Namespace
metadata: {name: ml}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: {name: rail, namespace: orbweaver-system, generation: 2}
spec: {resourceName: rail, numVfs: 4, priority: 10, nicSelector: {pfNames: [ens1f0]}, nodeSelector: {}}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodeState
metadata: {name: w1, namespace: orbweaver-system, generation: 1}
spec:
  interfaces:
  - {pciAddress: "0000:3b:00.0", name: ens1f0, numVfs: 2,
     vfGroups: [{resourceName: rail, deviceType: netdevice, vfRange: 0-1, policyName: rail, policyNamespace: orbweaver-system}]}
status:
  syncStatus: Succeeded
  observedGeneration: 1
  interfaces: [{pciAddress: "0000:3b:00.0", name: ens1f0, vendor: 15b3, deviceID: "1017", driver: mlx5_core, linkType: ETH,
    mtu: 1500, numVfs: 2, totalvfs: 8, Vfs: [{vfID: 0, pciAddress: "0000:3b:00.2"}, {vfID: 1, pciAddress: "0000:3b:00.3"}]}]
END
t_ok "its dump" says "0 of them missing" 0 "$cli" support dump -f "$tmp/node.yaml" "${files[@]}" -o "$tmp/replay.tgz"
r() { "$cli" replay "$tmp/replay.tgz" "$@"; }
t_ok "a NodeState as it is, and as it would be: status 1" says "spec.interfaces[0000:3b:00.0].numVfs: 2 -> 4" 1 r
t_ok "one key alone" says "patch  SriovNetworkNodeState orbweaver-system/w1" 1 r w1
t_ok "a pod without an address would get one, from a ledger" says 'status.allocatedIPs: ' 1 r addresses
t_ok "and its endpoint" says "create  SpiderEndpoint ml/noisy" 1 r endpoint
t_eq "the plan is there as reconcilers make it" "apply sriovnetworknodestates 4" "$({ r w1 -o json || true; } |
	jq -r '.steps[].plan[] | select(.op == "apply") | "\(.op) \(.kind) \(.object.spec.interfaces[0].numVfs)"')"
t_eq "decided is at the time of the dump" "$(tar -xzOf "$tmp/replay.tgz" orbweaver-dump/index.json | jq -r .time)" \
	"$({ r -o json || true; } | jq -r .time)"
t_eq "the same again, byte by byte" "$({ r -o json || true; } | sha256sum)" "$({ r -o json || true; } | sha256sum)"
t_ok "what looks at Secrets is left out" says "looks at a Secret" 1 r
t_ok "-f puts other objects in the place of those of a dump" says "numVfs: 2 -> 3" 1 r w1 -f <(sed 's/numVfs: 4/numVfs: 3/' "$tmp/node.yaml")
t_ok "objects of files are as good as a dump" says "numVfs: 2 -> 4" 1 "$cli" replay "$tmp/node.yaml"
t_ok "nothing to do is status 0" says "0 of them about what is not so" 0 "$cli" replay "$tmp/empty.yaml"
t_ok "a key that is nobody's (DecisionNotFound)" says "nothing is decided about that key" 2 r nosuch
t_ok "a dump is missing" says "usage: orbweaver replay DUMP" 2 "$cli" replay
t_ok "a dump that is not there is status 3" says "nosuch.tgz" 3 "$cli" replay "$tmp/nosuch.tgz"
mkdir "$tmp/partial" && tar -xzf "$tmp/replay.tgz" -C "$tmp/partial"
jq '(.parts[] | select(.what == "nodes")) = {what: "nodes", failed: "nodes is forbidden"}' "$tmp/partial/orbweaver-dump/index.json" \
	>"$tmp/index.json" && mv "$tmp/index.json" "$tmp/partial/orbweaver-dump/index.json"
t_eq "what could not be read is not decided on" "nodes are not in the dump" \
	"$({ "$cli" replay "$tmp/partial/orbweaver-dump" -o json || true; } | jq -r '.leftOut[] | select(.controller == "node-state").why')"
t_eq "the rest is" 0 "$({ "$cli" replay "$tmp/partial/orbweaver-dump" -o json || true; } |
	jq '[.steps[] | select(.controller == "node-state")] | length')"

echo "# dumps of people who mean harm"
bad() {
	local name=$1 want=$2

	shift 2
	t_ok "$name" says "$want" 3 "$cli" status -f "$@"
	t_eq "in one line" 1 "$("$cli" status -f "$@" 2>&1 | wc -l)"
}
corpus=tests/fuzz/corpus/bundle
bad "an archive that leads out" "is no name of a file in a dump" "$corpus/leads-out.tgz"
bad "an archive with a link" "is a link; a dump has none" "$corpus/link.tgz"
bad "an archive that is cut short" "not all of it" "$corpus/cut.tgz"
bad "something else that is compressed" "not all of it" "$corpus/no-tar.gz"
bad "a part that says it is huge" "is larger than any part of a dump" "$corpus/sparse-huge.tgz"
mkdir "$tmp/empty"
bad "a folder that is none" "there is no index.json in it" "$tmp/empty"
# spoil NAME FILE TEXT WANT: the folder with another text in one of its files.
spoil() {
	rm -rf "$tmp/spoilt" && cp -r "$tmp/dir" "$tmp/spoilt"
	printf '%s' "$3" >"$tmp/spoilt/$2"
	bad "$1" "$4" "$tmp/spoilt"
}
spoil "an index of something else" index.json '{"kind":"Pod"}' "is not of kind SupportDump"
spoil "an index without a time" index.json '{"kind":"SupportDump","time":"soon"}' "time: is none"
spoil "an index with settings of other types" index.json \
	'{"kind":"SupportDump","time":"2026-01-31T10:00:00Z","operator":{"policyNamespaces":[1]}}' "policyNamespaces"
spoil "wrong JSON" objects/spiderippools.spiderpool.spidernet.io.json '{"items":[' "spiderippools.spiderpool.spidernet.io.json"
spoil "no list" objects/spiderippools.spiderpool.spidernet.io.json '[]' "is no list"
spoil "something else in a list" objects/spiderippools.spiderpool.spidernet.io.json \
	'{"items":[{"kind":"Secret","metadata":{"name":"x"}}]}' "items[0]: is no spiderippools"
spoil "too deep" objects/spiderippools.spiderpool.spidernet.io.json "$(printf '[%.0s' {1..5000})" "nested deeper than 64 levels"
rm -rf "$tmp/spoilt" && cp -r "$tmp/dir" "$tmp/spoilt" && ln -s /etc/passwd "$tmp/spoilt/objects/x.json"
bad "a link in a folder" "is a link" "$tmp/spoilt"
rm -f "$tmp/spoilt/objects/x.json" && mkfifo "$tmp/spoilt/objects/x.json"
bad "a pipe in a folder, without waiting for it" "is no plain file" "$tmp/spoilt"
# 600 MB of zeros behind a good index.
tar -C "$tmp" --transform 's,^dir,orbweaver-dump,' -cf "$tmp/bomb.tar" dir/index.json
truncate -s 600M "$tmp/pods.json"
tar -C "$tmp" --transform 's,^,orbweaver-dump/objects/,' -rf "$tmp/bomb.tar" pods.json
gzip -1 <"$tmp/bomb.tar" >"$tmp/bomb.tgz" && rm "$tmp/bomb.tar" "$tmp/pods.json"
bad "600 MB in some kilobytes" "is larger than any part of a dump" "$tmp/bomb.tgz"
t_done
