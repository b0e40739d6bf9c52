#!/bin/bash
# Dashboards (manifests/overlays/dashboards): each query of each of them, run by a Prometheus that scrapes an operator and agents at
# work, has data; so have the queries of dashboards of others, under the names that those know. What cannot occur here is listed with
# the reason, and has none. Two of the agents have NICs made of files, in pods, whose counters grow; the third gives real pods
# addresses, so what lies on the host is of a mount namespace of our own.
#
# MINUTES=15 SCREENS=DIR: let it go on for so long, and draw what the dashboards would show.
# shellcheck disable=SC2317 # functions that run as COMMAND of a check look unreachable
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
# shellcheck source=tests/integration/operator.sh
. tests/integration/operator.sh

policies=$sriov/namespaces/kube-system/sriovnetworknodepolicies
pods=/api/v1/namespaces/ml/pods
netns=ow-dash-$$
nic=owd$$

# Parts of queries, and why nothing of them is there.
cannot_occur() {
	cat <<-'END'
		orbweaver_informer_broken_seconds{	is there only while a kind cannot be watched: operator_alerts_test.sh
		orbweaver_kubelet_allocations_total{	no container starts here: tests/vm/resources_test.sh
	END
}

clean_up() {
	ip netns del "$netns" 2>/dev/null || true
	ip link del "$nic" 2>/dev/null || true
	o_clean_up
}

# --- the stage ----------------------------------------------------------------------------------------------------

# pod NAME KIND OWNER NODE
pod() {
	o_curl POST "$pods" "$(jq -nc --arg name "$1" --arg kind "$2" --arg owner "$3" --arg node "$4" '{ metadata: { $name,
		labels: { "pod-template-hash": "6d4cf" }, ownerReferences: [{ apiVersion: "apps/v1", $kind, name: $owner, uid: "7", controller: true }] },
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

# cni COMMAND PLUGIN [PREVRESULT]
cni() {
	local dir=/opt/cni/bin

	[[ $2 != macvlan ]] || dir=/usr/lib/cni
	config "$2" "${3:-}" | env -i PATH="$PATH" CNI_COMMAND="$1" CNI_CONTAINERID="c0ffee$$" CNI_NETNS="/run/netns/$netns" \
		CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin:/usr/lib/cni \
		CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=ml;K8S_POD_NAME=web-0;K8S_POD_UID=$uid" "$dir/$2"
}

comes_and_goes() {
	local status=0

	cni ADD macvlan >"$tmp/result" && cni ADD coordinator "$(<"$tmp/result")" >/dev/null || status=1
	cni DEL coordinator && cni DEL macvlan && return $status
}

is_asked() {
	o_curl GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations | jq -e '.items != []'
}

installed() {
	[[ -x /opt/cni/bin/coordinator && -S /run/orbweaver/cni.sock ]]
}

# target ID NODE: as the PodMonitor labels it.
target() {
	echo "{ targets: [\"127.0.0.1:$(o_port "$1" metrics)\"], labels: { cluster: lab, namespace: $POD_NAMESPACE, pod: orbweaver-$1, container: main, node: $2 } }"
}

watch() {
	cat >"$tmp/prometheus.yml" <<-END
		global: { scrape_interval: 5s, scrape_timeout: 4500ms, evaluation_interval: 5s }
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

all_have_data() {
	hack/dashboards queries | excused -v >"$tmp/queries"
	without_data "$tmp/queries" >"$tmp/empty"
	cat "$tmp/empty"
	[[ -s $tmp/queries && ! -s $tmp/empty ]]
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

# --- the run ------------------------------------------------------------------------------------------------------

t_ok "Prometheus is installed" command -v prometheus promtool
t_need
o_begin dashboards --no-controllers
trap clean_up EXIT
o_own_user
agent_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
k create namespace ml >/dev/null
for node in n1:fast n2:fast n3:web; do
	o_curl POST /api/v1/nodes "{\"metadata\": {\"name\": \"${node%:*}\", \"labels\": {\"role\": \"${node#*:}\"}}}" >/dev/null
done
for ((i = 0; i < 4; i++)); do
	pod "train-$i" Job train n1
done
pod infer-0 ReplicaSet infer-6d4cf n2
pod infer-1 ReplicaSet infer-6d4cf n2
pod web-0 ReplicaSet web-6d4cf n3
uid=$(o_curl GET "$pods/web-0" | jq -r .metadata.uid)
o_curl POST "$spider/spidercoordinators" '{"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderCoordinator",
	"metadata": {"name": "default"}, "spec": {"mode": "underlay", "podCIDRType": "none", "tunePodRoutes": true}}' >/dev/null
o_curl PATCH "$spider/spidercoordinators/default/status" \
	'{"status": {"phase": "Synced", "overlayPodCIDR": [], "serviceCIDR": []}}' >/dev/null
pool rail 10.77.0.10-10.77.0.20
pool storage 10.78.0.10-10.78.0.10

# Before somebody could refuse it.
policy wrong 0

webhooks=$(o_free_port)
o_start op --webhook-addr "127.0.0.1:$webhooks" --webhook-url "https://127.0.0.1:$webhooks"
o_wait_ready op
t_wait 30 "it leads" o_leads op
o_spawn train "$o_programs/tests/counters-node" --traffic train 2 3 4 --node n1 --kubeconfig "$agent_kubeconfig" --metrics-addr 127.0.0.1:0 \
	--cni-bin-dir=
o_spawn infer "$o_programs/tests/counters-node" --traffic infer 2 3 2 --node n2 --kubeconfig "$agent_kubeconfig" --metrics-addr 127.0.0.1:0 \
	--cni-bin-dir=
mkdir -p "$tmp/kubelet/device-plugins"
o_spawn web "$o_programs/orbweaver-agent" --node n3 --kubeconfig "$agent_kubeconfig" --host-root / --kubelet-dir "$tmp/kubelet" --no-kubelet \
	--metrics-addr 127.0.0.1:0 --cni-program "$PWD/$o_programs/orbweaver-cni"
for id in train infer web; do
	t_wait 30 "the agent $id serves metrics" o_http "$id" /metrics
done
t_need
watch

# A traffic class, and a device that does not answer.
read -r _ root <"$tmp/train.out"
mkdir -p "$root/sys/class/infiniband/mlx5_0/tc/1"
echo 'Global tclass=106' >"$root/sys/class/infiniband/mlx5_0/tc/1/traffic_class"
read -r _ root <"$tmp/infer.out"
mkdir -p "$root/sys/class/infiniband/mlx5_1/tc/1"
mkfifo "$root/sys/class/infiniband/mlx5_1/tc/1/traffic_class"
t_wait 30 "the API server asks the operator" is_asked
policy fast 4
ip netns add "$netns"
ip -n "$netns" link set lo up
ip link add "$nic" type veth peer name "p$nic"
ip link set "$nic" up
t_wait 30 "the plugins are installed" installed
t_wait 60 "a real pod comes and goes" comes_and_goes

end=$((SECONDS + 60 * ${MINUTES:-0}))
while ((SECONDS < end)); do
	sleep 20
	comes_and_goes >/dev/null 2>&1 || true
done
t_wait 90 "each query of each dashboard has data" all_have_data
t_ok "but those that cannot, and they do not" excuses_hold
t_ok "queries of others' dashboards have data" others_have_data
[[ -z ${SCREENS:-} ]] || t_ok "pictures of the dashboards" hack/dashboards screens "http://127.0.0.1:$port" "$SCREENS" "${MINUTES:-2}"
: >"$tmp/train.out"
: >"$tmp/infer.out"
for id in train infer web op; do
	o_end "$id"
done
o_kill prometheus KILL
t_done
