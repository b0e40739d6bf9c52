# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of the node agent share: a cluster with an operator, a virtual node in it, agents in that node. Source it first;
# it sources tests/integration/operator.sh and, with it, lib.sh.
#
#   a_begin NAME [OPTION...]   cluster, operator, node (OPTIONs of hack/node up); all is removed at exit
#   a_start [FLAG...]          an agent in the node; its log is the node's /root/agent.log
#   a_end                      (a check) SIGTERM: it exits with 0 and nothing but log came out of it
#   a_kill                     SIGKILL
#   node COMMAND...            in the node, as root, in the checkout's folder
#   a_state JQ                 what jq makes of the NodeState
#   a_done N                   the agent says Succeeded for the present spec, with N VFs
#   a_condition TYPE STATUS REASON [TEXT]   for the present spec, its message containing TEXT
#   a_policy NAME SPEC         apply a SriovNetworkNodePolicy; SPEC is JSON, merged over what all have
#   a_policy_object NAME SPEC  print it
#   a_event REASON TEXT        an event on the NodeState
#   a_log JQ                   the last line of the agent's log for which JQ holds
#   a_logged JQ                how many there are
#   a_metric NAME [LABELS]     the sum of a metric's series
#
# Environment: as for operator.sh; AGENT (the program itself, in the checkout); A_WAIT_S (how long a node may take for a change).

. tests/integration/operator.sh

# shellcheck disable=SC2034 # for the tests
pf1=0000:01:00.0 pf2=0000:02:00.0 a_wait_s=${A_WAIT_S:-120}
a_agent=$(realpath --relative-to=. "${AGENT:-$o_programs/orbweaver-agent}")

node() {
	hack/node exec "$a_node" "$@"
}

a_clean_up() {
	hack/node down "$a_node" >/dev/null 2>&1 || true
	o_clean_up
}

a_begin() {
	local name=$1 kubeconfig

	shift
	a_node=$name-$$
	o_begin "$name"
	trap a_clean_up EXIT
	t_ok "the agent is built" test -x "$a_agent"
	o_own_user
	kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
	k apply -f - >/dev/null <<-END
		{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "$a_node", "labels": {"kubernetes.io/hostname": "$a_node"}}}
	END
	o_start op
	o_wait_ready op
	t_ok "a node" hack/node up "$a_node" --cluster "$o_cluster" "$@"
	t_need
	node 'cat >/root/kubeconfig' <"$kubeconfig"
	a_path=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/$a_node
}

# --- agents -----------------------------------------------------------------------------------------

# Most tests run without a kubelet.
a_kubelet_flag=--no-kubelet

# The same at each boot, with /etc/boot.d. CNI plugins are there where a test names them, and are called by the test.
a_command() {
	local profile=devices

	[[ " $* " != *" --cni-program "* ]] || profile=delegate
	echo "mkdir -p /var/lib/kubelet/device-plugins; ASAN_OPTIONS='$ASAN_OPTIONS' UBSAN_OPTIONS='$UBSAN_OPTIONS' nohup" \
		"$PWD/$a_agent --node $a_node --kubeconfig /root/kubeconfig --namespace $POD_NAMESPACE" \
		"--metrics-addr 127.0.0.1:9810 --profile $profile $a_kubelet_flag $* >>/root/agent.out 2>>/root/agent.log </dev/null & echo \$! >/root/agent.pid"
}

a_start() {
	node "$(a_command "$@")"
}

# Now and at each boot, with a new log: a power cut leaves holes in the old one.
a_install() {
	node "cat >/etc/boot.d/agent && chmod +x /etc/boot.d/agent && sync" <<<"#!/bin/bash
rm -f /root/agent.log
$(a_command "$@")"
	a_start "$@"
}

# shellcheck disable=SC2016 # the node's shell expands it
a_runs() {
	node 'kill -0 $(cat /root/agent.pid) 2>/dev/null'
}

a_gone() {
	! a_runs
}

# All of its processes, by what they are called.
a_pids() {
	node 'pgrep -x "ow-(supervisor|agent|kubeletd|worker|meter)"'
}

a_others_gone() {
	! a_pids
}

# shellcheck disable=SC2016
a_kill() {
	node 'kill -KILL $(cat /root/agent.pid)'
}

# As o_log_is_clean (tests/integration/operator.sh).
a_log_is_clean() {
	node 'grep -v -e "^{" -e "^==[0-9]*==Unable to get registers from thread" /root/agent.log >/root/agent.unclean
		cat /root/agent.out /root/agent.unclean | head -60; test ! -s /root/agent.out -a ! -s /root/agent.unclean'
}

# shellcheck disable=SC2016
a_end() {
	node 'kill -TERM $(cat /root/agent.pid)'
	t_wait 30 "the agent ends after SIGTERM" a_gone
	t_ok "no crash, no leak, nothing but log lines from the agent" a_log_is_clean
	t_ok "none of its processes is left" a_others_gone
}

a_logged() {
	node cat /root/agent.log | jq -cR "fromjson? | select($1)" | wc -l
}

a_log() {
	node cat /root/agent.log | jq -cR "fromjson? | select($1)" | tail -n 1
}

# The sum of a metric's series that contain LABELS; in its place what is wrong, when there is no answer.
a_metric() {
	local text

	if ! text=$(node "curl -sSf --noproxy '*' --max-time 30 http://127.0.0.1:9810/metrics" 2>&1); then
		echo "no metrics: ${text:-no answer}"
		return
	fi
	awk -v name="$1" -v labels="${2:-}" \
		'($1 == name || index($1, name "{") == 1) && index($0, labels) { sum += $NF } END { print sum + 0 }' <<<"$text"
}

# --- what the cluster says ----------------------------------------------------------------------------

a_state() {
	o_curl GET "$a_path" | jq -r "$1"
}

a_done() {
	local now

	now=$(a_state '"\(.status.syncStatus) \(.status.observedGeneration == .metadata.generation) \(.status.presentVfs) of \(.status.wantedVfs)"')
	echo "$now, wanted $1: $(a_state '.status.lastSyncError // "no error"')"
	[[ $now == "Succeeded true $1 of $1" ]]
}

a_condition() {
	o_curl GET "$a_path" | jq -e --arg type "$1" --arg status "$2" --arg reason "$3" --arg text "${4:-}" '.metadata.generation as $now |
		.status.conditions // [] | map(select(.type == $type)) | first | . as $c |
		if .status == $status and .reason == $reason and .observedGeneration == $now and (.message | contains($text))
		then . else ($c | debug | false) end'
}

a_policy() {
	a_policy_object "$@" | k apply -f - >/dev/null
}

a_policy_object() {
	jq -n --arg name "$1" --arg node "$a_node" --arg ns "$POD_NAMESPACE" --argjson spec "$2" '{
		apiVersion: "sriovnetwork.openshift.io/v1", kind: "SriovNetworkNodePolicy", metadata: {name: $name, namespace: $ns},
		spec: ({nodeSelector: {"kubernetes.io/hostname": $node}, resourceName: ($name | gsub("-"; "_")), priority: 99,
			deviceType: "netdevice", isRdma: false} * $spec)}'
}

a_no_policy() {
	k delete -n "$POD_NAMESPACE" sriovnetworknodepolicy "$@" >/dev/null
}

a_event() {
	k get events -n "$POD_NAMESPACE" -o json | jq -e --arg reason "$1" --arg text "$2" --arg name "$a_node" '.items |
		map(select(.involvedObject.name == $name)) | (map("\(.reason): \(.message)") | debug) as $all |
		any(.reason == $reason and (.message | contains($text)))'
}
