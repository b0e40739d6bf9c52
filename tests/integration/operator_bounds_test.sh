#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What users may make the operator read, on a real API server with two replicas: annotations, networks and configurations
# that are too large, and many pods at the bound. The leader leads on, probes are answered, other pods have their addresses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/addresses.sh

o_begin bounds --no-controllers

# repeat N TEXT
repeat() {
	local i

	for ((i = 0; i < $1; i++)); do
		printf '%s' "$2"
	done
}

# add_pod NAMESPACE NAME ANNOTATIONS: a JSON object, in a file since it may be long.
add_pod() {
	printf '%s' "$3" >"$tmp/annotations"
	jq -nc --arg name "$2" --slurpfile annotations "$tmp/annotations" '
		{ apiVersion: "v1", kind: "Pod", metadata: { $name, annotations: $annotations[0] },
		  spec: { nodeName: "node-00000", automountServiceAccountToken: false, containers: [{ name: "c", image: "none" }] } }' \
		>"$tmp/pod"
	o_post "/api/v1/namespaces/$1/pods" "$tmp/pod"
}

# o_post PATH FILE: as o_curl, for bodies that are no argument of a program any more.
o_post() {
	k create --raw "$1" -f "$2" >/dev/null
}

# networks_of N NAME: the annotation, as a JSON object.
networks_of() {
	printf '{"k8s.v1.cni.cncf.io/networks": "%s%s"}' "$2" "$(repeat $(($1 - 1)) ",$2")"
}

has_addresses() { # NAMESPACE POD N
	(($(o_curl GET "$spider/namespaces/$1/spiderendpoints/$2" | jq '.status.current.ips | length') == $3))
}

has_none() {
	! o_curl GET "$spider/namespaces/hostile/spiderendpoints/$1" >/dev/null 2>&1
}

events_of() {
	o_curl GET /api/v1/namespaces/hostile/events |
		jq -r --arg pod "$1" '[.items[] | select(.involvedObject.name == $pod and .reason == "TooLarge")] | length'
}

has_event() {
	(($(events_of "$1") == 1))
}

config_says() { # NAME REASON
	o_condition "$spider/namespaces/hostile/spidermultusconfigs/$1" False "$2"
}

terms() {
	o_curl GET "/apis/coordination.k8s.io/v1/namespaces/$POD_NAMESPACE/leases/orbweaver-operator" | jq .spec.leaseTransitions
}

holder() {
	o_curl GET "/apis/coordination.k8s.io/v1/namespaces/$POD_NAMESPACE/leases/orbweaver-operator" | jq -r .spec.holderIdentity
}

t_say() {
	echo "# $*"
}

rss_kb() {
	awk '/^VmRSS/ { print $2 }' "/proc/${o_pids[$1]}/status"
}

# The longest of a hundred answers, in ms: said, not judged.
probe() {
	local port longest=0 ms i

	port=$(o_port "$1" health) || true
	for ((i = 0; i < 100; i++)); do
		ms=$(curl -s --noproxy '*' -m 60 -o /dev/null -w '%{time_total}' "http://127.0.0.1:$port/healthz" | awk '{ printf "%d", $1 * 1000 }')
		((ms <= longest)) || longest=$ms
		sleep 0.1
	done
	echo "$longest" >"$tmp/longest-$1"
}

k create namespace hostile >/dev/null
k create namespace quiet >/dev/null
k create -f - <<<'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-00000"}}' >/dev/null
pool big 10.128.0.0/9 10.128.0.10-10.255.255.200 | k create -f - >/dev/null
pool quiet 10.20.0.0/24 10.20.0.10-10.20.0.200 | k create -f - >/dev/null
for ((i = 0; i < 200; i++)); do
	pool "many-$i" "10.30.$i.0/24" "10.30.$i.10-10.30.$i.200"
done | k create -f - >/dev/null
network hostile net-0 big | k create -f - >/dev/null
network quiet quiet quiet | k create -f - >/dev/null
o_start first
o_wait_ready first
t_wait 30 "one replica leads" o_leads first
o_start second
o_wait_ready second
leader=$(holder) had=$(terms)
t_say "memory before: leader $(rss_kb first) KB, standby $(rss_kb second) KB"
probe first &
probing=$!

# --- beyond the bounds ---------------------------------------------------------------------------------------------------------

{ printf '{"cniVersion":"1.0.0","name":"b","type":"macvlan","a":[{}' && repeat 440000 ',{}' && printf ']}'; } >"$tmp/config"
jq -nc --rawfile config "$tmp/config" '{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition",
	metadata: { name: "b" }, spec: { $config } }' >"$tmp/nad"
t_ok "a network of 1.3 MB" o_post "$nads/namespaces/hostile/network-attachment-definitions" "$tmp/nad"
t_ok "a pod that names it 200 times, in 399 bytes" add_pod hostile nad-200 "$(networks_of 200 b)"
t_ok "a pod that names it once" add_pod hostile nad-1 "$(networks_of 1 b)"
t_ok "a pod with 12000 networks, in 72 KB" add_pod hostile networks-12000 "$(networks_of 12000 net-0)"
{ printf '{"ipv4": ["many-*"' && repeat 20000 ',"many-*"' && printf ']}'; } >"$tmp/list"
t_ok "a pod with 20000 patterns of pools" add_pod hostile patterns \
	"$(networks_of 20 net-0 | jq -c --rawfile list "$tmp/list" '. + { "ipam.spidernet.io/ippool": $list }')"
t_ok "a pod with one network more than a pod can have" add_pod hostile networks-65 "$(networks_of 65 net-0)"
for name in nad-200 nad-1 networks-12000 patterns networks-65; do
	t_wait 60 "pod $name is told, once" has_event "$name"
	t_ok "pod $name has no address" has_none "$name"
done
{ printf '{"type":"x","a":[{}' && repeat 320000 ',{}' && printf ']}'; } >"$tmp/config"
jq -nc --rawfile config "$tmp/config" '{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderMultusConfig",
	metadata: { name: "heavy" }, spec: { cniType: "custom", customCNI: $config } }' >"$tmp/config.json"
t_ok "a SpiderMultusConfig with 0.96 MB of JSON in a string" o_post "$spider/namespaces/hostile/spidermultusconfigs" "$tmp/config.json"
t_wait 30 "it says so" config_says heavy TooLarge

# --- at the bounds: as much as is read -----------------------------------------------------------------------------------------

for ((i = 0; i < 40; i++)); do
	add_pod hostile "at-bound-$i" "$(networks_of 64 net-0)"
done
t_ok "a pod of another namespace and pool" add_pod quiet one "$(networks_of 1 quiet)"
t_wait 60 "has its address" has_addresses quiet one 1
for ((i = 0; i < 40; i++)); do
	t_wait 60 "a pod with 64 networks has 64 addresses" has_addresses hostile "at-bound-$i" 64
done
printf '%s' "{\"k8s.v1.cni.cncf.io/networks\": \"net-0\", \"ipam.spidernet.io/whatever\": \"$(repeat 12500 'aaaaaaaaaaaaaaaaaaaa')\"}" >"$tmp/large"
for ((i = 0; i < 60; i++)); do
	add_pod hostile "large-$i" "$(<"$tmp/large")"
done
for ((i = 0; i < 60; i++)); do
	t_wait 60 "a pod with a large annotation of no concern has its address" has_addresses hostile "large-$i" 1
done

t_ok "the leader is ready" o_ready first
t_ok "so is the other replica" o_ready second
t_eq "the same leads" "$leader" "$(holder)"
t_eq "since the beginning" "$had" "$(terms)"
for name in nad-200 networks-12000 patterns; do
	t_eq "pod $name was told once" 1 "$(events_of "$name")"
done
wait "$probing"
t_say "longest of 100 answers of /healthz: $(<"$tmp/longest-first") ms"
t_say "memory after: leader $(rss_kb first) KB, standby $(rss_kb second) KB"
o_end second
o_end first
t_done
