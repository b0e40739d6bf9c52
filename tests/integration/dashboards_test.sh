#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Dashboards (manifests/overlays/dashboards): each query of each of them, run by a Prometheus that scrapes an operator and agents at
# work, has data; so have the queries of dashboards of others, under the names that those know. What cannot occur here is listed with
# the reason, and has none. Two of the agents have NICs made of files, in pods, whose counters grow; the third gives real pods
# addresses, so what lies on the host is of a mount namespace of our own. Pictures of what the dashboards show are drawn, and have a
# value for each panel.
#
# SCREENS=DIR: keep the pictures there. MINUTES=4: first let things happen for so long: pods come until there are no addresses left,
# and go; policies change. docs/screens is made so.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
	((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
	exec unshare --mount --propagation private "$0" --inside
fi
mkdir -p /opt/cni /var/lib/orbweaver
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/orbweaver
mount -t tmpfs tmpfs /opt/cni

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

policies=$sriov/namespaces/kube-system/sriovnetworknodepolicies
pods=/api/v1/namespaces/ml/pods
netns=ow-dash-$$
nic=owd$$
# What the pictures are of, where a dashboard has something to choose.
chosen=(node=n1 namespace=ml pod=train-0 workload=train)

# Parts of queries, and why nothing of them is there.
cannot_occur() {
	cat <<-'END'
		orbweaver_informer_broken_seconds{	is there only while a kind cannot be watched: operator_alerts_test.sh
		orbweaver_agent_failures_total{	no look and no step fails here: unit/nodeagent/agent/agent_test.c
		orbweaver_kubelet_allocations_total{	no container starts here: tests/vm/resources_test.sh
	END
}

clean_up() {
	local name

	for name in $(ip netns list 2>/dev/null | grep -o "^$netns-[0-9]*"); do
		ip netns del "$name" 2>/dev/null || true
	done
	ip link del "$nic" 2>/dev/null || true
	o_clean_up
}

# --- the stage ----------------------------------------------------------------------------------------------------

# pod NAME KIND OWNER NODE [ANNOTATIONS]
pod() {
	o_curl POST "$pods" "$(jq -nc --arg name "$1" --arg kind "$2" --arg owner "$3" --arg node "$4" --argjson annotations "${5:-null}" '{
		metadata: { $name, $annotations, labels: { "pod-template-hash": "6d4cf" },
			ownerReferences: [{ apiVersion: "apps/v1", $kind, name: $owner, uid: "7", controller: true }] },
		spec: { nodeName: $node, containers: [{ name: "main", image: "none" }] } }')" >/dev/null
}

policy() {
	o_curl POST "$policies" "$(jq -nc --arg name "$1" --argjson vfs "$2" '{ apiVersion: "sriovnetwork.openshift.io/v1",
		kind: "SriovNetworkNodePolicy", metadata: { $name }, spec: { resourceName: $name, numVfs: $vfs,
			nodeSelector: { role: $name }, nicSelector: { vendor: "15b3" } } }')" >/dev/null
}

# pool NAME ADDRESSES
pool() {
	o_curl POST "$spider/spiderippools" "$(jq -nc --arg name "$1" --arg ips "$2" '{ apiVersion: "spiderpool.spidernet.io/v2beta1",
		kind: "SpiderIPPool", metadata: { $name }, spec: { ipVersion: 4, gateway: ($ips | split(".")[:3] | join(".") + ".1"),
			subnet: ($ips | split(".")[:3] | join(".") + ".0/24"), ips: [$ips] } }')" >/dev/null
}

# config PLUGIN [PREVRESULT]: what a runtime gives to the plugin.
config() {
	jq -nc --arg type "$1" --arg master "$nic" --argjson prev "${2:-null}" '{ cniVersion: "0.3.1", name: "rail", $type, mode: "bridge" } +
		if $type == "coordinator" then { mode: "underlay" } else { $master, ipam: { type: "spiderpool", default_ipv4_ippool: ["rail"] } } end +
		if $prev then { prevResult: $prev } else {} end'
}

# cni COMMAND PLUGIN N [PREVRESULT]: for pod web-N.
cni() {
	local dir=/opt/cni/bin

	[[ $2 != macvlan ]] || dir=/usr/lib/cni
	config "$2" "${4:-}" | env -i PATH="$PATH" CNI_COMMAND="$1" CNI_CONTAINERID="$3-c0ffee$$" CNI_NETNS="/run/netns/$netns-$3" \
		CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin:/usr/lib/cni \
		CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=ml;K8S_POD_NAME=web-$3;K8S_POD_UID=$(<"$tmp/uid-$3")" "$dir/$2"
}

# comes N: pod web-N gets its network; it is made if it is not there.
comes() {
	[[ -e /run/netns/$netns-$1 ]] || { ip netns add "$netns-$1" && ip -n "$netns-$1" link set lo up; }
	o_curl GET "$pods/web-$1" >/dev/null || pod "web-$1" ReplicaSet web-6d4cf n3 \
		'{"v1.multus-cni.io/default-network": "ml/rail"}'
	# A runtime knows it also when the pod is gone.
	o_curl GET "$pods/web-$1" | jq -r .metadata.uid >"$tmp/uid-$1"
	cni ADD macvlan "$1" >"$tmp/result" && cni ADD coordinator "$1" "$(<"$tmp/result")" >/dev/null
}

goes() {
	cni DEL coordinator "$1" && cni DEL macvlan "$1"
}

leaves() {
	goes "$1" || true
	o_curl DELETE "$pods/web-$1?gracePeriodSeconds=0" || true
}

comes_and_goes() {
	local status=0

	comes 0 || status=1
	goes 0 && return $status
}

is_asked() {
	o_curl GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations | jq -e '.items != []'
}

installed() {
	[[ -x /opt/cni/bin/coordinator && -S /run/orbweaver/cni.sock ]]
}

# target ID NODE: as the PodMonitor labels it.
target() {
	echo "{ targets: [\"127.0.0.1:$(o_port "$1" metrics)\"], labels: { instance: $2, cluster: lab, namespace: $POD_NAMESPACE," \
		"pod: orbweaver-$1, container: main, node: $2 } }"
}

watch() {
	cat >"$tmp/prometheus.yml" <<-END
		# An agent reads counters not twice within 5 s.
		global: { scrape_interval: 6s, scrape_timeout: 5s, evaluation_interval: 6s }
		scrape_configs:
		- job_name: orbweaver
		  honor_labels: true
		  static_configs:
		  - $(target op n0)
		  - $(target train n1)
		  - $(target infer n2)
		  - $(target web n3)
	END
	port=$(o_free_port)
	o_spawn prometheus prometheus --config.file "$tmp/prometheus.yml" --storage.tsdb.path "$tmp/tsdb" \
		--web.listen-address "127.0.0.1:$port" --log.level error
}

# Pods come until the pool is empty, and go; one is gone without having said so. Policies ask for more, and for what cannot be.
life() {
	local wanted=(1 3 4 6 8 9 7 5 4 6 8 10 11 12 9 5) there=0 phase begun=$SECONDS

	for phase in "${!wanted[@]}"; do
		case $phase in
		3) o_curl PATCH "$policies/fast" '{"spec": {"numVfs": 6}}' ;;
		4) policy wide 0 ;;
		6) o_curl DELETE "$pods/web-7?gracePeriodSeconds=0" ;;
		9) o_curl PATCH "$policies/fast" '{"spec": {"numVfs": 3}}' ;;
		10) pool more 10.79.0.10-10.79.0.29 ;;
		12) o_curl DELETE "$policies/wide" ;;
		13) o_curl PATCH "$policies/fast" '{"spec": {"numVfs": 4}}' ;;
		esac >/dev/null
		while ((SECONDS - begun < MINUTES * 60 * (phase + 1) / ${#wanted[@]})); do
			while ((there < wanted[phase])); do
				comes $((++there)) || break
			done
			while ((there > wanted[phase])); do
				leaves $((there--))
			done
			comes_and_goes || true
			sleep 5
		done >/dev/null 2>&1
	done
}

# --- questions ----------------------------------------------------------------------------------------------------

ask() {
	curl -sf --noproxy '*' --max-time 10 --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query" | jq -e '.data.result'
}

# Queries of ours without data, and those that Prometheus does not take; $1 is a file of DASHBOARD, PANEL, QUERY.
without_data() {
	local board panel query got

	while IFS=$'\t' read -r board panel query; do
		got=$(ask "$query") || got='"refused"'
		[[ $got != '[]' && $got != '"refused"' ]] || echo "$board, $panel: ${got//\[\]/nothing}: $query"
	done <"$1"
}

# Lines of queries that are excused; with -v the others.
excused() {
	cannot_occur | cut -f 1 >"$tmp/excused"
	grep "$@" -F -f "$tmp/excused"
}

# Prometheus has nothing new before it scrapes again: questions and pictures until then would only take the processor from it.
until_next_scrape() {
	sleep 6
	return 1
}

all_have_data() {
	hack/dashboards queries | excused -v >"$tmp/queries"
	without_data "$tmp/queries" >"$tmp/empty"
	cat "$tmp/empty"
	[[ -s $tmp/queries && ! -s $tmp/empty ]] || until_next_scrape
}

excuses_hold() {
	hack/dashboards queries | excused >"$tmp/queries"
	[[ $(without_data "$tmp/queries" | grep -c ': nothing: ') == "$(wc -l <"$tmp/queries")" ]] &&
		[[ $(wc -l <"$tmp/queries") -ge $(wc -l <"$tmp/excused") ]]
}

# What dashboards of Spiderpool and of the SR-IOV exporter ask for: forms, names and labels; see tests/golden-metrics/others.txt.
of_others() {
	sed '/^#/d; /^$/d; s/[$]__rate_interval/20s/g; s/^/others\t-\t/' tests/golden-metrics/others-queries.txt
}

others_have_data() {
	of_others >"$tmp/queries"
	without_data "$tmp/queries" >"$tmp/empty"
	cat "$tmp/empty"
	[[ -s $tmp/queries && ! -s $tmp/empty ]]
}

# What is wrong with the pictures in $1: no XML, a panel without its title, without a value although it has data, or with one that
# cannot be.
lacks() {
	local board

	for board in manifests/overlays/dashboards/*.json; do
		jq -r --rawfile excused "$tmp/excused" --rawfile picture "$1/$(basename "$board" .json).svg" '.title as $board |
			([$picture | scan("<(/?)([a-z]+)[^>]*?(/?)>")] | reduce .[] as [$ends, $name, $empty] ([];
				if $empty == "/" then . elif $ends == "" then . + [$name] elif .[-1] == $name then .[:-1] else error("\($board): </\($name)>") end) |
				if . != [] then "\($board): no end of \(.)" else empty end),
			($picture | split("<g class=\"panel\"")[1:]) as $drawn | [.panels[] | select(.type != "row")] as $panels |
			if ($drawn | length) != ($panels | length) then "\($board): \($drawn | length) panels of \($panels | length)" else empty end,
			($panels | to_entries[] | .value.title as $title | .value.targets as $targets | ($drawn[.key] // "") |
				if contains(">\($title | @html)</text>") | not then "\($board): no \($title)" else empty end,
				([$excused | scan("[^\n]+")] | any(. as $part | $targets | all(.expr | contains($part)))) as $none |
				if contains("class=\"value") == $none or contains(">No data<") != $none then "\($board), \($title): \(.)" else empty end)' "$board"
	done
}

drawn() {
	hack/dashboards screens "http://127.0.0.1:$port" "$1" "${MINUTES:-$((SECONDS / 60 + 2))}" "${chosen[@]}" && lacks "$1" >"$tmp/lacks"
	head -c 2000 "$tmp/lacks"
	[[ ! -s $tmp/lacks ]] || until_next_scrape
}

# shown FILE TITLE: texts of the values of a panel.
shown() {
	jq -rRs --arg title ">$2</text>" 'split("<g class=\"panel\"")[] | select(contains($title)) |
		[scan("class=\"value[^>]*>([^<]+)</text>")[0]] | join(" ")' "$1"
}

# --- the run ------------------------------------------------------------------------------------------------------

t_ok "Prometheus is installed" command -v prometheus promtool
t_need
o_begin dashboards --no-controllers
trap clean_up EXIT
o_own_user webhook
agent_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
k create namespace ml >/dev/null
for node in n1:fast n2:fast n3:web; do
	o_curl POST /api/v1/nodes "{\"metadata\": {\"name\": \"${node%:*}\", \"labels\": {\"role\": \"${node#*:}\"}}}" >/dev/null
done
for ((i = 0; i < 6; i++)); do
	pod "train-$i" Job train n1
done
pod infer-0 ReplicaSet infer-6d4cf n2
pod infer-1 ReplicaSet infer-6d4cf n2
pod web-0 ReplicaSet web-6d4cf n3
o_coordinator_ready '{"mode": "underlay", "podCIDRType": "none", "tunePodRoutes": true}' >/dev/null
pool rail 10.77.0.10-10.77.0.20
pool storage 10.78.0.10-10.78.0.10
o_curl POST "$nads/namespaces/ml/network-attachment-definitions" "$(jq -nc --arg config "$(config macvlan)" '{ metadata: { name: "rail" },
	apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", spec: { $config } }')" >/dev/null

# Before somebody could refuse it.
policy wrong 0

webhooks=$(o_free_port)
o_start op --webhook-addr "127.0.0.1:$webhooks" --webhook-url "https://127.0.0.1:$webhooks"
o_wait_ready op
t_wait 30 "it leads" o_leads op
o_spawn train "$o_programs/tests/counters-node" --traffic train 3 2 6 --node n1 --kubeconfig "$agent_kubeconfig" --metrics-addr 127.0.0.1:0 \
	--profile devices
o_spawn infer "$o_programs/tests/counters-node" --traffic infer 2 3 2 --node n2 --kubeconfig "$agent_kubeconfig" --metrics-addr 127.0.0.1:0 \
	--profile devices
mkdir -p "$tmp/kubelet/device-plugins"
o_spawn web "$o_programs/orbweaver-agent" --node n3 --kubeconfig "$agent_kubeconfig" --host-root / --kubelet-dir "$tmp/kubelet" --no-kubelet \
	--metrics-addr 127.0.0.1:0 --cni-program "$PWD/$o_programs/orbweaver-cni"
for id in train infer web; do
	t_wait 30 "the agent $id serves metrics" o_http "$id" /metrics
done
t_need
watch

# Counters of a port, its speed and lanes of PCI Express, a traffic class, and a device that does not answer.
read -r _ root <"$tmp/train.out"
mkdir -p "$root/sys/class/infiniband/mlx5_0/ports/1/counters"
for counter in port_{rcv,xmit}_data port_rcv_errors symbol_error link_error_recovery port_xmit_wait; do
	echo 4096 >"$root/sys/class/infiniband/mlx5_0/ports/1/counters/$counter"
done
for file in {current,max}_link_width=16 {current,max}_link_speed="32.0 GT/s PCIe" aer_dev_correctable="TOTAL_ERR_COR 3"; do
	echo "${file#*=}" >"$root/sys/bus/pci/devices/0000:10:00.0/${file%%=*}"
done
mkdir -p "$root/sys/class/infiniband/mlx5_0/tc/1" "$root/sys/class/net/ens0f0np0"
echo 100000 >"$root/sys/class/net/ens0f0np0/speed"
echo 'Global tclass=106' >"$root/sys/class/infiniband/mlx5_0/tc/1/traffic_class"
mkdir -p "$root/sys/class/infiniband/mlx5_2/tc/1"
mkfifo "$root/sys/class/infiniband/mlx5_2/tc/1/traffic_class"
t_wait 30 "the API server asks the operator" is_asked
policy fast 4
ip link add "$nic" type veth peer name "p$nic"
ip link set "$nic" up
t_wait 30 "the plugins are installed" installed
t_wait 60 "a real pod comes and goes" comes_and_goes

[[ -z ${MINUTES:-} ]] || life
t_wait 90 "each query of each dashboard has data" all_have_data
t_ok "but those that cannot, and they do not" excuses_hold
t_ok "queries of others' dashboards have data" others_have_data
# What comes for the first time is no increase yet: rates need it once more, after Prometheus has seen it.
o_curl PATCH "$policies/fast" '{"spec": {"numVfs": 3}}' >/dev/null
t_wait 60 "a pod comes and goes again" comes_and_goes
screens=${SCREENS:-$tmp/screens}
t_wait 90 "a picture of each dashboard has a value for each panel" drawn "$screens"
t_eq "that of the cluster says how many pods have devices" 8 "$(shown "$screens/cluster.svg" "Pods with RDMA")"
t_eq "that of a workload has a row for each of its pods" "train-0 train-1 train-2 train-3 train-4 train-5" \
	"$(shown "$screens/workload.svg" "Where its pods are" | grep -o 'train-[0-9]' | sort | xargs)"
: >"$tmp/train.out"
: >"$tmp/infer.out"
for id in train infer web op; do
	o_end "$id"
done
o_kill prometheus KILL
t_done
