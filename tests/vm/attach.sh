# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of pods' networks on a virtual node share: a runtime there, in shell. Source it first; it sources agent.sh.
#
#   a_need_exclusive NAME      the stage on which RDMA devices move can be had; else NAME is skipped and the test ends
#   a_runtime                  put the runtime's functions into the node, with a_begin before
#   rt COMMAND...              in the node, with these functions: add, check, take, seen
#   in_pod NAME COMMAND...     in the pod's network namespace
#   is_as_before               what `seen` shows is what the test has in $before
#   a_pool                     (checks) an IP pool "rail", and what coordinators do
#   a_make_pod NAME            in the API server, its UID in the node
#   a_cni_gone                 no process of the agent is left
#
# shellcheck disable=SC2016 # the node expands what is quoted

. tests/vm/agent.sh

a_need_exclusive() {
	local status=0

	hack/node-build --exclusive || status=$?
	((status == 77)) || return "$status"
	t_skip "$1" "hack/node-build --exclusive has nothing to build from"
	t_done
}

# attach COMMAND PLUGIN POD [JSON]: net1, or IFNAME, of POD; JSON is merged into the configuration. GONE=1: without the namespace;
# NETNS: its path, if it is not the pod's in /run/netns.
# The UID of the pod is in /root/POD.uid, if the API server has it.
# add POD DEVICE [JSON [ID]]: sriov, then rdma (its deviceID is ID, else DEVICE) with what that said, then the coordinator with
# COORDINATED=1; the result of the second is in /root/POD.json. check POD: the first two. take POD: all, backwards.
a_runtime() {
	node 'cat >/root/runtime' <<'END'
attach() {
	local netns=${NETNS:-/run/netns/$3} uid

	[[ -z ${GONE:-} ]] || netns=
	uid=$(cat "/root/$3.uid" 2>/dev/null || echo "uid-$3")
	merged "{\"cniVersion\": \"1.0.0\", \"name\": \"rail\", \"type\": \"$2\"}" "${4:-{\}}" |
		CNI_COMMAND=$1 CNI_CONTAINERID=$3 CNI_NETNS=$netns CNI_IFNAME=${IFNAME:-net1} CNI_PATH=/opt/cni/bin \
			CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$3;K8S_POD_UID=$uid" /opt/cni/bin/"$2"
}
add() {
	config "$2" "${3:-{\}}" >"/root/$1.sriov"
	attach ADD sriov "$1" "$(<"/root/$1.sriov")" >"/root/$1.first" || { cat "/root/$1.first" && return 1; }
	config "${4-$2}" "{\"prevResult\": $(<"/root/$1.first")}" >"/root/$1.rdma"
	attach ADD rdma "$1" "$(<"/root/$1.rdma")" >"/root/$1.json" || { cat "/root/$1.json" && return 1; }
	[[ -n ${COORDINATED:-} ]] || return 0
	echo "{\"prevResult\": $(<"/root/$1.json"), \"mode\": \"underlay\"}" >"/root/$1.coordinator"
	attach ADD coordinator "$1" "$(<"/root/$1.coordinator")" >"/root/$1.last" || { cat "/root/$1.last" && return 1; }
}
config() {
	merged "${1:+{\"deviceID\": \"$1\"\}}" "$2"
}
# merged OBJECT...: a JSON object with the members of all these. As text, since jq takes a quarter of a second to start here.
merged() {
	local members='' one

	for one; do
		one=${one#\{}
		one=${one%\}}
		members+=${members:+${one:+, }}$one
	done
	echo "{$members}"
}
check() {
	attach CHECK rdma "$1" "$(<"/root/$1.rdma")" && attach CHECK sriov "$1" "$(<"/root/$1.sriov")"
}
# What did not come so far has no configuration: a runtime calls its DEL all the same.
take() {
	[[ -z ${COORDINATED:-} ]] || attach DEL coordinator "$1" "$(cat "/root/$1.coordinator" 2>/dev/null || echo '{}')" || return
	attach DEL rdma "$1" "$(<"/root/$1.rdma")" && attach DEL sriov "$1" "$(<"/root/$1.sriov")"
}
# What must be on the host again afterwards.
seen() {
	{ ip -j link show; ip -d -j link show enp1s0; rdma -j dev show; } | jq -cs '
		(.[0][] | select(.ifname | test("^(enp1s0v|net|vf|dev|veth)")) | [.ifname, .address, .mtu, .altnames]),
		(.[1][0].vfinfo_list[] | [.vf, .address, (.vlan_list // .vlan), .spoofchk, .trust, .rate]),
		(.[2] | map(.ifname) | sort)'
	ip rule; ip -6 rule; ip route show table 500 2>/dev/null; ip -6 route show table 500 2>/dev/null
	find /var/lib/orbweaver/cni -name "*.json" -o -path "*/notes/*"
}
END
}

rt() {
	node ". /root/runtime; $*"
}

# As $before, which is of before all pods. Names that udev gives come a moment later.
is_as_before() {
	# shellcheck disable=SC2154 # the test's
	diff <(echo "$before") <(rt "udevadm settle; seen")
}

in_pod() {
	node ip netns exec "$1" "${@:2}"
}

a_pool() {
	t_ok "a pool" o_curl POST "$spider/spiderippools" '{"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool",
		"metadata": {"name": "rail"}, "spec": {"ipVersion": 4, "subnet": "10.77.0.0/16", "gateway": "10.77.0.1",
		"ips": ["10.77.0.10-10.77.0.40"]}}'
	t_ok "that an operator has seen" o_pool_is_learned rail
	t_ok "what coordinators do" o_coordinator '{"mode": "underlay", "podCIDRType": "none", "tunePodRoutes": true}'
}

# Nobody evicts it from a node without a kubelet.
a_make_pod() {
	o_curl POST /api/v1/namespaces/default/pods "$(jq -nc --arg name "$1" --arg node "$a_node" '{metadata: {$name}, spec: {nodeName: $node,
		tolerations: [{operator: "Exists"}], automountServiceAccountToken: false, containers: [{name: "c", image: "none"}]}}')" |
		jq -re .metadata.uid | node "cat >/root/$1.uid"
}

a_cni_gone() {
	! node 'pgrep -x "ow-(supervisor|agent|kubeletd|worker|meter|cnid|cni-worker)"'
}
