#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A node with a real kubelet and containerd. Its agent is updated while 20 pods run, and one whose namespace is that of a process,
# as cri-dockerd names it: nothing of them changes. Two more pods come before each update and go after it. Then the agent is
# away for a minute, with all of its processes, while pods with VFs and pods on a macvlan rail are deleted and created again. Those
# that are deleted go; the new ones wait, and an event says for what; all start once the agent is back; nothing of the others is
# left: no VF, no RDMA device, no address, no rule, no file. Then jobs: each has two VFs and the files of `--job-files`, and
# ib_write_bw runs in it by each device of the NCCL_IB_HCA that these give it.
# AWAY=N: for so many seconds (60). PREVIOUS=FILE: an image of an earlier version, with which the 20 pods start; the agent is then
# updated from it, taken back to it, and updated once more.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/attach.sh

a_need_exclusive "pods come and go while the agent is away"

away_s=${AWAY:-60}
a_wait_s=${A_WAIT_S:-300}
vfs=4
# Of "vf" and "rail", Deployments, and "named" and "kept", StatefulSets, whose pods keep name and addresses. First with many on the
# rail.
few=6 many=20 pods=$many

# --- objects --------------------------------------------------------------------------------------------------------

# network NAME NUMBER KIND SETTINGS: a pool 172.NUMBER.0.0/24 and a configuration that takes addresses from it.
network() {
	cat <<-END
		apiVersion: spiderpool.spidernet.io/v2beta1
		kind: SpiderIPPool
		metadata: { name: $1 }
		spec: { subnet: 172.$2.0.0/24, gateway: 172.$2.0.1, ips: [172.$2.0.10-172.$2.0.40] }
		---
		apiVersion: spiderpool.spidernet.io/v2beta1
		kind: SpiderMultusConfig
		metadata: { name: $1, namespace: default }
		spec: { cniType: $3, $3: { $4, ippools: { ipv4: [$1] } } }
		---
	END
}

networks() {
	network rail 82 macvlan "master: [enp2s0]"
	network vf 83 sriov "resourceName: spidernet.io/roce, enableRdma: true"
	network second 84 sriov "resourceName: spidernet.io/roce, enableRdma: true"
	cat <<-END
		apiVersion: spiderpool.spidernet.io/v2beta1
		kind: SpiderCoordinator
		metadata: { name: default }
		spec: { mode: auto, podCIDRType: none, tunePodRoutes: true, hijackCIDR: [10.96.0.0/16] }
	END
}

networks_are_ready() {
	k get spidermultusconfigs,spiderippools,spidercoordinators -A -o json | jq -e '.items | length == 7 and
		all(any(.status.conditions[]?; .type == "Ready" and .status == "True"))' && k get net-attach-def rail vf second
}

# app KIND NAME REPLICAS NETWORKS [LIMITS [IMAGE]]
app() {
	k apply -f - >/dev/null <<-END
		apiVersion: apps/v1
		kind: $1
		metadata: { name: $2 }
		spec:
		  replicas: $3
		  $([[ $1 != StatefulSet ]] || echo "serviceName: $2")
		  selector: { matchLabels: { app: $2 } }
		  template:
		    metadata: { labels: { app: $2 }, annotations: { k8s.v1.cni.cncf.io/networks: "$4" } }
		    spec:
		      terminationGracePeriodSeconds: 1
		      containers:
		      - { name: c, image: "localhost/${6:-busybox:1}", imagePullPolicy: Never, command: [sh, -c, sleep 100000],
		          resources: { limits: { ${5:-} } }, securityContext: { capabilities: { add: [IPC_LOCK] } } }
	END
}

install() {
	k apply -n "$POD_NAMESPACE" -f manifests/base/agent.yaml
}

change_agent() {
	k patch daemonset orbweaver-agent -n "$POD_NAMESPACE" --type "$1" -p "$2"
}

# --- what is said ---------------------------------------------------------------------------------------------------

agent_is_away() {
	k get pods -n "$POD_NAMESPACE" -o wide
	[[ -z $(k get pods -n "$POD_NAMESPACE" -l app.kubernetes.io/name=orbweaver-agent -o name) ]] && a_cni_gone
}

agent_is_back() {
	k rollout status -n "$POD_NAMESPACE" daemonset/orbweaver-agent --timeout=1s &&
		k get pods -n "$POD_NAMESPACE" -o json | jq -e '.items | length == 1 and all(any(.status.conditions[]?;
			.type == "Ready" and .status == "True"))'
}

agent_uid() {
	k get pods -n "$POD_NAMESPACE" -l app.kubernetes.io/name=orbweaver-agent -o 'jsonpath={.items[*].metadata.uid}'
}

# And has reported what it found on the node.
agent_is_another() {
	[[ $(agent_uid) != "$1" ]] && agent_is_back && a_state .status.agentPod &&
		[[ $(a_state .status.agentPod) == $(k get pods -n "$POD_NAMESPACE" -l app.kubernetes.io/name=orbweaver-agent -o 'jsonpath={.items[*].metadata.name}') ]]
}

# Its container, after it was killed; the kubelet, which refused pods meanwhile, has devices for the next ones.
agent_has_restarted() {
	agent_is_back && [[ $(k get pods -n "$POD_NAMESPACE" -l app.kubernetes.io/name=orbweaver-agent \
		-o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}') == 1 ]] &&
		node "jq -e '.Data.RegisteredDevices[\"spidernet.io/roce\"] | length == $vfs' \
			/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
}

offered() {
	[[ $(k get node "$a_node" -o json | jq -r '.status.allocatable["spidernet.io/roce"]') == "$1" ]]
}

all_run() {
	k get pods -o wide
	k get pods -o json | jq -e --argjson n "$pods" '.items | length == $n and all(.metadata.deletionTimestamp == null and
		any(.status.conditions[]?; .type == "Ready" and .status == "True"))'
}

# Name and UID of the first pod of each app.
first_pods() {
	k get pods -o json | jq -r '[.items[] | select(.metadata.labels.app)] | sort_by(.metadata.name) | group_by(.metadata.labels.app)[][0] |
		"\(.metadata.name) \(.metadata.uid)"'
}

# are_gone UID...
are_gone() {
	k get pods
	k get pods -o json | jq -e '[.items[].metadata.uid] | any(IN($ARGS.positional[])) | not' --args "$@"
}

# Name and UID of the pod of an app that is not on its way yet.
new_pod() {
	k get pods -l "app=$1" -o json | jq -r '.items[] | select(.metadata.deletionTimestamp == null and
		(any(.status.conditions[]?; .type == "Ready" and .status == "True") | not)).metadata | "\(.name) \(.uid)"'
}

# waits APP REASON TEXT: its new pod does, and an event says so.
waits() {
	local name uid

	read -r name uid < <(new_pod "$1")
	k get events -o json | jq -e --arg uid "$uid" --arg reason "$2" --arg text "$3" '[.items[] | select(.involvedObject.uid == $uid)] |
		(map("\(.reason): \(.message)") | debug) as $all | any(.reason == $reason and (.message | contains($text)))'
}

# "POD ADDRESS" of all rails, as network-status says, and as the pools have it.
addresses() {
	k get pods -o json | jq -r '.items[] | .metadata.name as $pod | .metadata.annotations["k8s.v1.cni.cncf.io/network-status"] // "[]" |
		fromjson | .[] | select(.interface == "net1") | "\($pod) \(.ips[0])"' | sort
}

# addresses_of POD INTERFACE
addresses_of() {
	k get pod "$1" -o json | jq -r --arg nic "$2" '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"] | fromjson[] |
		select(.interface == $nic).ips[0]'
}

records() {
	k get spiderippools -o json | jq -r '.items[] | .status.allocatedIPs // "{}" | fromjson | to_entries[] |
		"\(.value.pod | sub(".*/"; "")) \(.key)"' | sort
}

records_are_addresses() {
	diff <(addresses) <(records)
}

nothing_is_recorded() {
	records
	[[ -z $(records) && $(k get spiderendpoints -A -o json | jq '.items | length') == 0 ]]
}

# --- what the node has ----------------------------------------------------------------------------------------------

notes() {
	node 'find /var/lib/orbweaver/cni/notes -type f 2>/dev/null'
}

# Sandboxes that they are about.
noted() {
	node 'cat /var/lib/orbweaver/cni/notes/* 2>/dev/null | grep -ao "CNI_CONTAINERID=[0-9a-f]*" | sort -u | wc -l'
}

no_notes() {
	notes
	[[ -z $(notes) ]]
}

sandboxes_known() {
	[[ $(node 'ls /var/lib/orbweaver/cni/sandboxes | grep -c "json$"') == "$pods" ]]
}

# All that a pod may leave, of the cluster's network, too; but for the rule that all pods share and the first one makes, for copies
# of the node's plugins, which the next pod runs, and for what the bridge plugin masquerades with: it takes that down only with the
# interface, in a namespace that is gone by then.
seen() {
	node '{
		udevadm settle
		ip -j link show | jq -c ".[] | select(.ifname != \"cni0\") | [.ifname, .address, .mtu, .altnames]"
		ip -d -j link show enp1s0 | jq -c ".[0].vfinfo_list[] | [.vf, .address, .vlan_list // .vlan, .spoofchk, .trust]"
		rdma -j dev show | jq -c "map(.ifname) | sort"
		ip rule | grep -v " lookup 500"
		ls /run/netns
		find /run/orbweaver/jobs -mindepth 1
		find /var/lib/cni/networks /var/lib/cni/results -type f ! -name "last_reserved_ip*" ! -name lock
		find /var/lib/orbweaver/cni -type f ! -name "*.lock" ! -path "*/programs/*"
	} 2>/dev/null' | sort
}

# The pod whose namespace is that of a process, and where that is.
unnamed_netns() {
	echo "/proc/$(node cat /root/unnamed.pid)/ns/net"
}

# unnamed COMMAND: its interface, as a runtime has it made that knows no names of namespaces.
unnamed() {
	local attach macvlan coordinator

	attach="NETNS=$(unnamed_netns) IFNAME=eth0 attach $1"
	macvlan="$attach macvlan unnamed '{\"master\": \"enp2s0\", \"ipam\": {\"type\": \"spiderpool\", \"default_ipv4_ippool\": [\"rail\"]}}'"
	coordinator="$attach coordinator unnamed '{\"mode\": \"underlay\", \"prevResult\": '\"\$(cat /root/unnamed.json)\"'}'"
	if [[ $1 == ADD ]]; then
		rt "$macvlan | tee /root/unnamed.json && $coordinator"
	else
		rt "$coordinator && $macvlan"
	fi
}

# What pods have, and their objects; without our own programs where versions differ.
running() {
	node bash tests/vm/seen.sh "$(unnamed_netns)" | grep -v ${PREVIOUS:+-e '^/opt/cni/bin/[^ ]* 755 '} -e '^$'
	k get pods -o json | jq -cS '.items[] | [.metadata.name, .metadata.uid, .metadata.annotations, .spec, .status]'
	addresses
	records
}

# update WHAT [IMAGE]: to another pod, of the image where one is named; the pods that run notice nothing. Two that the agent before
# set up are taken down by the next one.
update() {
	local uid

	app Deployment visitor 1 rail
	app Deployment visitor-vf 1 vf "spidernet.io/roce: 1"
	pods=$((pods + 2))
	t_wait "$a_wait_s" "$1: two more pods before" all_run
	running >"$tmp/with-visitors"
	uid=$(agent_uid)
	[[ -z ${2:-} ]] || t_ok "$1: its image" hack/node image "$a_node" "$2"
	t_ok "$1" k rollout restart -n "$POD_NAMESPACE" daemonset/orbweaver-agent
	t_wait "$a_wait_s" "another one is there" agent_is_another "$uid"
	t_wait 60 "and offers the VFs" offered "$vfs"
	t_wait "$a_wait_s" "which are as they should be" a_done "$vfs"
	t_ok "no interface, address, route, rule, VF, RDMA device or file of a pod has changed" nothing_has_changed with-visitors
	k delete deployments visitor visitor-vf >/dev/null
	pods=$((pods - 2))
	t_wait 120 "the two go" all_run
	t_wait 60 "and nothing of the others" nothing_has_changed running
}

# nothing_has_changed SINCE
nothing_has_changed() {
	running >"$tmp/now"
	diff "$tmp/$1" "$tmp/now"
}

is_as_before() {
	diff <(echo "$before") <(seen)
}

# in_container POD COMMAND...
in_container() {
	local container

	container=$(k get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}')
	node ctr -n k8s.io tasks exec --exec-id "x$RANDOM$RANDOM" "${container##*/}" "${@:2}"
}

# has_devices POD...: each has its VF, one RDMA device, and nobody else's.
has_devices() {
	local pod got=''

	for pod; do
		got+=$(in_container "$pod" sh -c 'echo $(ls /sys/class/net /sys/class/infiniband)')$'\n'
	done
	echo "$got"
	[[ $(grep -cE '^/sys/class/infiniband: rxe-enp1s0v[0-9] /sys/class/net: eth0 lo net1$' <<<"$got") == "$#" &&
		-z $(sort <<<"$got" | uniq -d) ]]
}

vf_pods() {
	k get pods -l 'app in (vf, named)' -o 'jsonpath={.items[*].metadata.name}'
}

# What the environment of the job's container says of devices, and what the kernel has there.
job_environment() {
	in_container "$1" sh -c '. /run/orbweaver/nccl.env; echo "$NCCL_IB_HCA $UCX_NET_DEVICES $NCCL_IB_ADDR_FAMILY $NCCL_IB_ROCE_VERSION_NUM"'
}
job_has() {
	in_container "$1" sh -c 'for n in net1 net2; do for d in /sys/class/infiniband/*; do
		! grep -qx $n $d/ports/1/gid_attrs/ndevs/1 || printf "%s:1," ${d##*/}; done; done' | sed 's/,$//'
}

# writes N: from job to job, by the device at this place of each one's own variables. The client tries again until the server listens.
writes() {
	local script='. /run/orbweaver/nccl.env; IFS=,; set -- ${NCCL_IB_HCA#=}; shift $0; unset IFS
		ib_write_bw -d ${1%:*} -i ${1#*:} -F -n 50 -s 4096' server status=0

	in_container job-0 timeout "$(slowly 90)" sh -c "$script" "$(($1 - 1))" &
	server=$!
	in_container job-1 sh -c "for n in 1 2 3 4 5 6 7 8 9; do sleep 3; timeout $(slowly 90) sh -c '$script $2' $(($1 - 1)) && exit; done; exit 1" || status=$?
	wait "$server" && return "$status"
}

# --- the test -------------------------------------------------------------------------------------------------------

a_begin away --pfs 2 --roce --exclusive --append ib_core.netns_mode=0 --memory 1280
# kubelet 1.20 does not get over a Node without status; it makes one of its own.
k delete node "$a_node" >/dev/null
t_ok "kubelet and containerd" hack/node kubelet "$a_node"
image=${BUILD:-build}/images/orbweaver-agent.tar
t_ok "the agent's image" hack/node image "$a_node" "${PREVIOUS:-$image}"
t_ok "the jobs' image" hack/node image "$a_node" "${image/agent/tools}"
t_need
node 'ip link set enp2s0 up'
t_ok "the agent, which sets up all networks" install
a_policy roce "{\"numVfs\": $vfs, \"isRdma\": true, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
k apply -f <(networks) >/dev/null
t_wait "$a_wait_s" "VFs" a_done "$vfs"
t_wait "$a_wait_s" "they are offered" offered "$vfs"
t_wait "$a_wait_s" "networks" networks_are_ready
t_wait 30 "the runtime calls the agent" node test -s /etc/cni/net.d/00-orbweaver.conflist
t_need
before=$(seen)

app Deployment vf 2 vf "spidernet.io/roce: 1"
app StatefulSet named 1 vf "spidernet.io/roce: 1"
app Deployment rail $((many - few + 2)) rail
app StatefulSet kept 1 rail
t_wait "$a_wait_s" "pods with VFs and pods on a rail" all_run
# shellcheck disable=SC2046 # names
t_ok "each has its own VF and RDMA device" has_devices $(vf_pods)
t_ok "and the pools have their addresses" records_are_addresses
t_need
kept=$(addresses | grep -E '^(named|kept)-0 ')
a_runtime
k run unnamed --image localhost/busybox:1 --image-pull-policy Never -- sleep 100000 >/dev/null
pods=$((many + 1))
t_wait "$a_wait_s" "a pod more" all_run
k get pod unnamed -o 'jsonpath={.metadata.uid}' | node 'cat >/root/unnamed.uid
	setsid unshare --net sleep 100000 </dev/null >/dev/null 2>&1 & echo $! >/root/unnamed.pid'
t_ok "with an interface in the namespace of a process" unnamed ADD
t_need

# --- an update ------------------------------------------------------------------------------------------------------

running >"$tmp/running"
echo "# $(wc -l <"$tmp/running") lines of $pods pods and their node are compared"
if [[ -n ${PREVIOUS:-} ]]; then
	update "the agent is updated from the version before" "$image"
	update "it is taken back to that" "$PREVIOUS"
fi
update "the agent is updated" ${PREVIOUS:+"$image"}
t_ok "it is killed" node 'pkill -KILL -x ow-supervisor'
t_wait "$a_wait_s" "and starts again" agent_has_restarted
update "it is updated once more"
t_ok "the namespace of a process loses its interface" unnamed DEL
t_eq "lo alone is left" 1 "$(node "nsenter --net=$(unnamed_netns) ip -o link | wc -l; kill \$(cat /root/unnamed.pid)")"
k delete pod unnamed >/dev/null
k scale deployment rail --replicas=2 >/dev/null
pods=$few
t_wait 120 "most pods go" all_run
t_wait 60 "and the pools have the addresses of the others" records_are_addresses
t_need

# --- away -----------------------------------------------------------------------------------------------------------

t_ok "the agent's pod is taken off the node" change_agent merge \
	'{"spec": {"template": {"spec": {"nodeSelector": {"orbweaver.test/agent": "none"}}}}}'
t_wait 60 "none of its processes is left" agent_is_away
gone_since=$SECONDS
t_wait 60 "the kubelet has seen it: no VF is offered" offered 0
t_need
mapfile -t first < <(first_pods)
t_eq "a pod of each is deleted" 4 "${#first[@]}"
k delete pod "${first[@]% *}" --wait=false >/dev/null
t_wait 120 "they are gone" are_gone "${first[@]#* }"
t_ok "what is to be taken down of them is noted" test "$(noted)" -ge 4
for app in rail kept; do
	t_wait 120 "a new pod of $app waits for the agent" waits "$app" FailedCreatePodSandBox \
		"the agent of this node does not answer: see whether the pod orbweaver-agent runs on it"
done
for app in vf named; do
	t_wait 120 "a new pod of $app waits for a VF" waits "$app" FailedScheduling "Insufficient spidernet.io/roce"
done
read -r name uid < <(new_pod rail)
k delete pod "$name" --wait=false >/dev/null
t_wait 120 "a pod that waits can be deleted" are_gone "$uid"
t_eq "who was not deleted runs" 2 "$(k get pods -o json | jq '[.items[] | select(any(.status.conditions[]?;
	.type == "Ready" and .status == "True"))] | length')"
((SECONDS - gone_since >= away_s)) || sleep $((away_s - SECONDS + gone_since))
t_ok "the agent was away until now" agent_is_away
echo "# away for $((SECONDS - gone_since)) s; notes: $(notes | wc -l), of $(noted) sandboxes"

# --- back -----------------------------------------------------------------------------------------------------------

t_ok "the agent may come back, with a flag more" change_agent json \
	'[{"op": "remove", "path": "/spec/template/spec/nodeSelector/orbweaver.test~1agent"},
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--job-files=spidernet.io/*"}]'
came_at=$SECONDS
t_wait "$a_wait_s" "it is there" agent_is_back
t_wait "$a_wait_s" "every pod runs, and none is on its way out" all_run
echo "# all run $((SECONDS - came_at)) s after it was allowed back"
t_wait 60 "no note is left" no_notes
t_wait 60 "all VFs are offered" offered "$vfs"
t_wait "$a_wait_s" "and as they should be" a_done "$vfs"
# shellcheck disable=SC2046 # names
t_ok "each pod has its own VF and RDMA device" has_devices $(vf_pods)
t_wait 60 "the pools have the addresses of pods that run, and no others" records_are_addresses
t_eq "the pods of StatefulSets have kept theirs" "$kept" "$(addresses | grep -E '^(named|kept)-0 ')"
t_ok "the agent knows of these pods' sandboxes alone" sandboxes_known

# --- jobs -----------------------------------------------------------------------------------------------------------

k delete deployment/vf statefulset/named >/dev/null
app StatefulSet job 2 vf,second "spidernet.io/roce: 2" orbweaver-tools:latest
pods=$((few - 1))
t_wait "$a_wait_s" "two jobs with two VFs each" all_run
t_need
for job in job-0 job-1; do
	has=$(job_has "$job")
	t_ok "$job has two RDMA devices ($has)" test "${has//[^,]/}" = ,
	t_eq "its variables name both, in the order of interfaces" "=$has $has AF_INET 2" "$(job_environment "$job")"
	t_fails "it cannot write its files" in_container "$job" sh -c ': >/run/orbweaver/nccl.env'
done
for n in 1 2; do
	t_ok "ib_write_bw from job to job by device $n" writes "$n" "$(addresses_of job-0 "net$n")"
done

k delete deployments,statefulsets --all >/dev/null
t_wait 120 "without pods there is no address of any" nothing_is_recorded
t_wait 120 "and the node is as before" is_as_before
o_end op
t_done
