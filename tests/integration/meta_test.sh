#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The meta plugin, with everything real but the cluster's networks: the plugin's binary, the server of the node, the agent, an
# API server, namespaces. Plugins behind it are a recorder. tests/unit/nodeagent/cni/plan replays the recorded cases of Multus.
set -euo pipefail

# What is mounted is of a mount namespace of our own, so that it goes with us.
if ((EUID == 0)) && [[ ${1-} != --inside ]]; then
	exec unshare --mount --propagation private "$0" --inside
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

if ((EUID)); then
	t_skip "the meta plugin" "network namespaces need root"
	t_done
fi
o_begin meta --no-controllers
recorder=$PWD/tests/integration/meta_recorder.sh
plugin=$PWD/$o_programs/orbweaver-cni
netns=ow-meta-$$
host=$tmp/host
conf=$host/etc/cni/net.d

clean_up() {
	ip netns delete "$netns" 2>/dev/null || true
	umount --lazy "$host/usr" 2>/dev/null || true
	o_clean_up
}
trap clean_up EXIT

o_host
mkdir "$tmp/bin"
for type in recdef macvlan; do
	ln -s "$recorder" "$tmp/bin/$type"
	ln -s "$recorder" "$host/opt/cni/bin/$type"
done
ln -s "$plugin" "$tmp/bin/orbweaver"
ln -s "$plugin" "$tmp/bin/spiderpool"
export METALOG=$tmp/calls ORBWEAVER_CNI_SOCKET=$host/run/orbweaver/cni.sock ORBWEAVER_CNI_STATE=$host/var/lib/orbweaver/cni

o_agent_user

# --- the configuration ----------------------------------------------------------------------------------------------------

ours() {
	jq -e '.name == "cluster" and .plugins[0].type == "orbweaver" and .plugins[0].delegates[0].type == "recdef"' \
		"$conf/00-orbweaver.conflist"
}

spawn_agent() {
	o_spawn a "$o_programs/orbweaver-agent" --node n1 --kubeconfig "$agent_kubeconfig" --host-root "$host" \
		--kubelet-dir "$tmp/kubelet" --no-kubelet --metrics-addr 127.0.0.1:0 --cni-program "$plugin" --cni-plugin-types 'rec*,first,second'
}
spawn_agent
t_wait 60 "plugins can ask the node's server" test -S "$ORBWEAVER_CNI_SOCKET"
t_need
t_fails "without a network there is no configuration" test -e "$conf/00-orbweaver.conflist"
echo '{"cniVersion": "0.3.1", "name": "cluster", "type": "recdef"}' >"$conf/10-cluster.conf"
t_wait 20 "the configuration carries the cluster's network" ours
rm "$conf/00-orbweaver.conflist"
t_wait 20 "and is put back when somebody removes it" ours

# --- calls ----------------------------------------------------------------------------------------------------------------

# A namespace like a new sandbox's.
new_sandbox() {
	ip netns delete "$netns" 2>/dev/null || true
	ip netns add "$netns"
	ip -n "$netns" link set lo up
}

create() {
	local kind namespace name path=/apis/k8s.cni.cncf.io/v1 plural=network-attachment-definitions

	read -r kind namespace name < <(jq -r '[.kind, .metadata.namespace, .metadata.name] | join(" ")' <<<"$1")
	if [[ $kind == Pod ]]; then
		path=/api/v1 plural=pods
		pod=$path/namespaces/$namespace/pods/$name
	fi
	o_curl POST "$path/namespaces/$namespace/$plural" "$1" >"$tmp/created"
	[[ $kind != Pod ]] || uid=$(jq -r .metadata.uid "$tmp/created")
}

# call COMMAND CONFIG ENV: a runtime's call. Sets status, printed; the plugins called are in $METALOG.
call() {
	: >"$METALOG"
	status=0
	printed=$(env "CNI_COMMAND=$1" "CNI_PATH=$tmp/bin" "${@:3}" "$tmp/bin/orbweaver" <<<"$2") || status=$?
}

# --- a pod's networks ------------------------------------------------------------------------------------------------------

cluster='{"cniVersion": "0.3.1", "name": "cluster", "type": "orbweaver", "delegates": [{"cniVersion": "0.3.1",
	"name": "cluster", "type": "recdef", "recIP": "10.244.0.5/24",
	"recMore": {"routes": [{"dst": "0.0.0.0/0", "gw": "10.244.0.1"}]},
	"recCreate": ["ip link add IF type veth peer name pIF", "ip link set IF up", "ip link set pIF up",
		"ip addr add 10.244.0.5/24 dev IF", "ip route add default via 10.244.0.1 dev IF"]}]}'

# definition NAME CONFIG
definition() {
	create "$(jq -nc --arg name "$1" --arg config "$2" '{apiVersion: "k8s.cni.cncf.io/v1",
		kind: "NetworkAttachmentDefinition", metadata: {name: $name, namespace: "default"}, spec: {config: $config}}')"
}

# new_pod NAME NETWORKS
new_pod() {
	new_sandbox
	create "$(jq -nc --arg name "$1" --arg networks "$2" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name,
		namespace: "default", annotations: {"k8s.v1.cni.cncf.io/networks": $networks}},
		spec: {nodeName: "n1", automountServiceAccountToken: false, containers: [{name: "c", image: "x"}]}}')"
	sandbox=("CNI_CONTAINERID=$1" CNI_IFNAME=eth0 "CNI_NETNS=/run/netns/$netns"
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$1;K8S_POD_UID=$uid")
}

event() {
	o_curl GET /api/v1/namespaces/default/events | jq -e --arg pod "$1" --arg reason "$2" --arg word "$3" \
		'.items | any(.involvedObject.name == $pod and .reason == $reason and (.message | contains($word)))'
}

definition rail '{"cniVersion": "0.3.1", "name": "rail", "type": "macvlan"}'
new_pod rails rail,rail
call ADD "$cluster" "${sandbox[@]}"
t_eq "networks are set up behind the cluster's" "0 recdef 3" "$status $(jq -rs '.[0].plugin, length' "$METALOG" | paste -sd' ')"
t_eq "the result is the cluster's" '["10.244.0.5/24"]' "$(jq -c '[.ips[].address]' <<<"$printed")"
t_eq "network-status names all" '["eth0","net1","net2"]' "$(o_curl GET "$pod" |
	jq -c '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"] | fromjson | map(.interface)')"
t_wait 10 "the pod's events name each" event rails AddedInterface 'Add net2'
call DEL "$cluster" "${sandbox[@]}"
t_eq "they are taken down, the cluster's last" "0 3 recdef" "$status $(jq -rs 'length, .[-1].plugin' "$METALOG" | paste -sd' ')"

new_pod eight rail,rail,rail,rail,rail,rail,rail,rail
call ADD "$cluster" "${sandbox[@]}"
t_eq "eight networks are set up side by side" "0 recdef 9" "$status $(jq -rs '.[0].plugin, length' "$METALOG" | paste -sd' ')"
call DEL "$cluster" "${sandbox[@]}"
t_eq "and taken down" "0 9 recdef" "$status $(jq -rs 'length, .[-1].plugin' "$METALOG" | paste -sd' ')"

# A plugin of others that asks us for its address while we wait for it; the pool is written as in guides, without ipVersion.
# Nobody leads here, so the agent takes the address itself.
o_curl POST /apis/spiderpool.spidernet.io/v2beta1/spiderippools '{"apiVersion": "spiderpool.spidernet.io/v2beta1",
	"kind": "SpiderIPPool", "metadata": {"name": "v4-81"}, "spec": {"subnet": "172.81.0.0/16", "gateway": "172.81.0.1",
	"ips": ["172.81.0.100-172.81.0.101"]}}' >/dev/null
o_pool_is_learned v4-81 >/dev/null
definition pooled '{"cniVersion": "0.3.1", "name": "pooled", "type": "macvlan",
	"ipam": {"type": "spiderpool", "default_ipv4_ippool": ["v4-81"]}}'
new_pod pooled pooled
call ADD "$cluster" "${sandbox[@]}"
t_eq "a network's plugin gets its address from us meanwhile" '0 ["172.81.0.100"]' "$status $(o_curl GET "$pod" |
	jq -c '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"] // "[]" | fromjson | .[1].ips')"
call DEL "$cluster" "${sandbox[@]}"
t_eq "and gives it back" 0 "$status"

definition routed '{"cniVersion": "0.3.1", "name": "routed", "type": "macvlan", "recIP": "10.1.0.5/24",
	"recMore": {"routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]},
	"recCreate": ["ip link add IF type veth peer name pIF", "ip link set IF up", "ip link set pIF up",
		"ip addr add 10.1.0.5/24 dev IF", "ip route add default via 10.1.0.1 dev IF metric 50"]}'
new_pod route '[{"name": "routed", "default-route": ["10.1.0.254"]}]'
call ADD "$cluster" "${sandbox[@]}"
t_eq "default-route replaces the pod's default routes" "default via 10.1.0.254 dev net1" \
	"$(ip -n "$netns" route show default | sed 's/ *$//')"
t_ok "and the status says so" jq -e '.[1].gateway == ["10.1.0.254"] and (.[0] | has("gateway") | not)' \
	<(o_curl GET "$pod" | jq -r '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"]')
call DEL "$cluster" "${sandbox[@]}"

new_pod lost nope
call ADD "$cluster" "${sandbox[@]}"
t_ok "a network that is not there is an error in one sentence" jq -e '.msg | contains("(nope)") and contains("create it")' \
	<<<"$printed"
t_eq "before any plugin is called" "" "$(cat "$METALOG")"
t_wait 10 "the pod's event says what to do" event lost NoNetworkFound 'create it'

# --- the agent is away when the sandbox goes --------------------------------------------------------------------------------

# The call's own process has ended long since: plugins of others run below the node's root then, where a shell is needed.
mkdir "$host/usr"
mount -o bind,ro /usr "$host/usr"
ln -s usr/bin usr/lib usr/lib64 "$host"
for type in first second; do
	tee "$tmp/bin/$type" "$host/opt/cni/bin/$type" >/dev/null <<-'END'
		#!/bin/bash
		input=$(cat)
		type=$(jq -er .type <<<"$input") || exit 1
		[[ $CNI_COMMAND == ADD ]] || { echo "$type $CNI_COMMAND" >>/var/lib/calls && exit 0; }
		jq -c '.prevResult // {cniVersion, ips: [{version: "4", address: "10.244.0.6/24"}]}' <<<"$input"
	END
	chmod +x "$tmp/bin/$type" "$host/opt/cni/bin/$type"
done
pair='{"cniVersion": "0.3.1", "name": "cluster", "type": "orbweaver", "delegates": [{"cniVersion": "0.3.1", "name": "cluster",
	"plugins": [{"type": "first"}, {"type": "second"}]}]}'
new_pod away '[]'
sandbox+=("CNI_PATH=/opt/cni/bin:$tmp/bin")
call ADD "$pair" "${sandbox[@]}"
t_eq "two plugins of others set a sandbox up" 0 "$status"
o_end a
call DEL "$pair" "${sandbox[@]}"
t_eq "without an agent DEL succeeds, and is noted" "0 1" "$status $(find "$host/var/lib/orbweaver/cni/notes" -type f | wc -l)"
spawn_agent
# Once more when what talks to the API server was not there yet: a DEL is repeated until all of it succeeds.
t_wait 30 "an agent that comes calls them, the last one first" \
	eval "[[ \$(paste -sd, '$host/var/lib/calls') =~ ^(second\ DEL,first\ DEL,?)+$ ]]"
t_wait 10 "and the note is gone" eval "[[ -z \$(find '$host/var/lib/orbweaver/cni/notes' -type f) ]]"

t_eq "nothing is left on the node" "" "$(ls "$host/var/lib/orbweaver/cni/sandboxes")"
o_end a
t_ok "the configuration stays when the agent ends" ours
t_done
