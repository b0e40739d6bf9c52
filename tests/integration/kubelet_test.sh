#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Device plugins against a real kubelet and containerd on this machine, in namespaces of their own: a pod gets what it asked
# for, and whatever dies (kubelet, its directory, the agent, all of our processes), no resource is lost, nothing is given away
# twice.
#
# ROUNDS=N: how often each thing dies (3; LONG=1: 50). STAGE=core: without these rounds, so without controllers and scheduler.
# Needs root. Figures are printed as "# " lines; nothing fails for a time unless it is many times what it should be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh

tool=$(realpath -m "${BUILD:-build}/${VARIANT:-asan}/tests/kubelet-tool")
rounds=${ROUNDS:-$((${LONG:-0} ? 50 : 3))}
# Short: sockets have to be reached below it.
tmp=$(mktemp -d /tmp/kubelet.XXXXXX)
export ORBWEAVER_RUN=$tmp/run
. tests/integration/real_kubelet.sh
plugins=/var/lib/kubelet/device-plugins
resource=spidernet.io/x
devices=6
watch_pid=""
# Times are compared with what a slow machine needs many times over.
bound_ms=10000

# --- a node ---------------------------------------------------------------------------------------------------------------

clean_up() {
	stop_watching || true
	# A kubelet that is still stopped has stopped its nsenter, which would not reap it.
	[[ ! -s $tmp/kubelet.pid ]] || kill -CONT "$(ps -o ppid= -p "$(<"$tmp/kubelet.pid")" | tr -d ' ')" 2>/dev/null || true
	end_node
	[[ ! -e $tmp/made-dev ]] || rmdir /dev/infiniband 2>/dev/null || true
	hack/cluster down c >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap clean_up EXIT

kubectl() {
	"$ORBWEAVER_RUN/c/kubectl" "$@"
}

# Character devices that exist everywhere, under the names that RDMA has.
make_devices() {
	local i

	inside mount -t tmpfs tmpfs /dev/infiniband && for ((i = 0; i < devices; i++)); do
		inside mknod "/dev/infiniband/uverbs$i" c 1 3 || return 1
	done
}

pools() {
	jq -n --argjson n "$1" --arg name "$resource" '{problems: [], resources: [{name: $name, kind: "sriov", policy: "spread",
		wanted: $n, env: "PCIDEVICE_SPIDERNET_IO_X", causes: [], jobFiles: true, devices: [range($n) | {id: "0000:3b:00.\(.)", healthy: true,
		numa: 0, pf: "0000:3a:00.0", nodes: ["/dev/infiniband/uverbs\(.)"], env: {}, info: {type: "pci", version: "1.1.0",
		pci: {"pci-address": "0000:3b:00.\(.)"}}}]}]}' >"$tmp/pools.json"
}

# start_tool NAME
start_tool() {
	start "$1" "$tool" serve --devinfo /var/lib/kubelet/devinfo \
		--pod-resources /var/lib/kubelet/pod-resources/kubelet.sock "$plugins" "$tmp/pools.json" \
		>"$tmp/$1.out" 2>>"$tmp/$1.log"
}

# The process of a tool that tells the other one what to offer: the agent's half (supervisor.h).
half() {
	pgrep -P "$(<"$tmp/$1.pid")" -x ow-agent
}

# nsenter reaps its child, unless both were stopped.
runs() {
	local state

	state=$(ps -o stat= -p "$1") && [[ $state != Z* ]]
}

# end NAME SIGNAL: and wait until it is gone.
end() {
	local pid deadline=$((SECONDS + 30))

	pid=$(<"$tmp/$1.pid")
	kill -"$2" "$pid"
	while runs "$pid"; do
		((SECONDS < deadline)) || return 1
		sleep 0.02
	done
}

# --- looking --------------------------------------------------------------------------------------------------------------

is_ready() {
	kubectl get node k -o json | jq -e '.status.conditions[] | select(.type == "Ready" and .status == "True")'
}

allocatable() {
	kubectl get node k -o json | jq -r --arg r "$resource" '.status.allocatable[$r] // "none"'
}

has_allocatable() {
	[[ $(allocatable) == "$1" ]]
}

# How many registrations the log of a tool has.
registrations() {
	grep -c '"msg":"resource registered with the kubelet"' "$tmp/$1.log" || true
}

has_registered() {
	(($(registrations "$1") > $2))
}

# Milliseconds from a time (seconds since the epoch, with fraction) to the last registration.
registered_after_ms() {
	local at

	at=$(grep '"msg":"resource registered with the kubelet"' "$tmp/$1.log" | tail -1 | jq -r .time)
	echo "$(date -d "$at" +%s.%N) $2" | awk '{ printf "%.0f\n", ($1 - $2) * 1000 }'
}

socket_time() {
	inside stat -c %.9Y "$plugins/kubelet.sock"
}

allocated_by_tool() {
	grep '^{"allocated"' "$tmp/$1.out" | tail -1
}

tool_knows() {
	[[ $(allocated_by_tool "$1") == "$2" ]]
}

# The kubelet's own state, ten times a second: each device at one container at most; what is allocatable, as the API has it.
start_watching() {
	local entries='.Data.PodDeviceEntries // [] | map(.DeviceIDs[] | .[]) | (length == (unique | length))'

	(
		trap 'exit 0' TERM
		while :; do
			inside cat "$plugins/kubelet_internal_checkpoint" 2>/dev/null | jq -e "$entries" >/dev/null 2>&1 ||
				inside cat "$plugins/kubelet_internal_checkpoint" 2>/dev/null |
				jq -c "select($entries | not)" >>"$tmp/twice" 2>/dev/null || true
			allocatable >>"$tmp/seen" 2>/dev/null || true
			sleep 0.1
		done
	) &
	watch_pid=$!
}

stop_watching() {
	[[ -n $watch_pid ]] || return 0
	kill "$watch_pid" 2>/dev/null || true
	wait "$watch_pid" 2>/dev/null || true
	watch_pid=""
}

# --- pods -----------------------------------------------------------------------------------------------------------------

# pod_spec COUNT COMMAND
pod_spec() {
	cat <<END
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  automountServiceAccountToken: false
  containers:
  - name: c
    image: localhost/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, "$2"]
    resources: { limits: { "$resource": "$1" } }
END
}

# pod NAME COUNT COMMAND
pod() {
	kubectl apply -f - <<END
apiVersion: v1
kind: Pod
metadata: { name: $1, labels: { test: "$1" } }
spec:
  nodeName: k
$(pod_spec "$2" "$3")
END
}

has_phase() {
	[[ $(kubectl get pod "$1" -o 'jsonpath={.status.phase}') == "$2" ]]
}

pod_log() {
	inside sh -c "cat /var/log/pods/default_$1_*/c/0.log" | cut -d' ' -f4-
}

sees_task() {
	pod_log task | grep -qxF "$1"
}

is_empty() {
	[[ -z $(kubectl get pods -o name) ]]
}

# Pods that come, work for a moment and go: a Job makes the next ones, the scheduler binds them to the node, whatever state the
# kubelet is in. A third as many at a time as there are devices: a kubelet that starts still counts devices of pods that have ended
# (it forgets them when it is asked for one, but not before it has seen the API server's pods).
start_churn() {
	kubectl apply -f - <<END
apiVersion: batch/v1
kind: Job
metadata: { name: churn }
spec:
  parallelism: 0
  completions: 100000
  backoffLimit: 100000
  template:
    spec:
$(pod_spec 1 "sleep 0.2" | sed 's/^/    /')
END
}

# pods_at_a_time COUNT
pods_at_a_time() {
	kubectl patch job churn -p "{\"spec\":{\"parallelism\":$1}}"
}

# Those that the kubelet turned away, with its words. Others fail too: a kubelet that is killed takes its calls to containerd
# along.
turned_away() {
	kubectl get pods -l job-name=churn -o json |
		jq -r '.items[].status | select(.phase == "Failed" and .reason) | "\(.reason): \(.message)"'
}

n_worked() {
	kubectl get pods -l job-name=churn -o json | jq '[.items[] | select(.status.phase == "Succeeded")] | length'
}

has_worked() {
	(($(n_worked) > $1))
}

# --- rounds ---------------------------------------------------------------------------------------------------------------

note_time() {
	echo "$2" >>"$tmp/times-$1"
}

in_time() {
	(($(sort -n "$tmp/times-$1" | tail -1) < bound_ms))
}

print_times() {
	sort -n "$tmp/times-$1" | awk -v what="$2" '{ t[NR] = $1 }
		END { printf "# %s: registered after %d ms (median), %d ms (longest of %d)\n", what, t[int((NR + 1) / 2)], t[NR], NR }'
}

# wait_registered TOOL COUNT_BEFORE
wait_registered() {
	local deadline=$((SECONDS + 30))

	until has_registered "$1" "$2"; do
		((SECONDS < deadline)) || return 1
		sleep 0.05
	done
}

# Every other time its whole directory goes too. The kubelet itself removes the sockets in it.
restart_kubelet() {
	local before

	before=$(registrations a)
	end kubelet KILL
	if (($1 % 2)); then
		inside sh -c "rm -rf $plugins"
	else
		inside sh -c "rm -f $plugins/*.sock"
	fi
	start_kubelet
	wait_registered a "$before" && note_time kubelet "$(registered_after_ms a "$(socket_time)")"
}

# The kubelet's streams stay open: no registration, no list, not a moment of 0. One that has just started is given its time, or
# it would be started again later and later.
kill_agent() {
	local before old deadline=$((SECONDS + 30))

	before=$(registrations a)
	old=$(half a)
	until (($(ps -o etimes= -p "$old") > 10)); do
		((SECONDS < deadline)) || return 1
		sleep 0.2
	done
	kill -KILL "$old"
	until [[ -n $(half a) && $(half a) != "$old" ]]; do
		((SECONDS < deadline)) || return 1
		sleep 0.05
	done
	(($(registrations a) == before))
}

is_settled() {
	! kubectl get pods --no-headers -o 'custom-columns=P:.status.phase' | grep -qxE 'Pending|Running'
}

# All of our processes. No pod comes in the moment in which nobody serves: no kubelet could give it anything.
kill_all() {
	local before started deadline=$((SECONDS + 60))

	before=$(registrations a)
	pods_at_a_time 0 || return 1
	until is_settled; do
		((SECONDS < deadline)) || return 1
		sleep 0.1
	done
	end a KILL
	started=$(date +%s.%N)
	start_tool a
	wait_registered a "$before" && note_time tool "$(registered_after_ms a "$started")" && pods_at_a_time $((devices / 3))
}

# round WHAT NUMBER: the next one comes when a pod has worked since.
round() {
	local deadline=$((SECONDS + 60)) worked

	worked=$(n_worked)
	"$1" "$2" || return 1
	until has_allocatable "$devices" && has_worked "$worked"; do
		((SECONDS < deadline)) || return 1
		sleep 0.1
	done
}

all_rounds() {
	local i

	for ((i = 1; i <= rounds; i++)); do
		round "$1" "$i" || return 1
	done
}

# --- the test -------------------------------------------------------------------------------------------------------------

((EUID == 0)) || {
	echo "kubelet_test: has to run as root: namespaces, cgroups and containerd" >&2
	exit 1
}
# nsenter --mount goes to the root of the mount namespace, which is not ours then.
[[ $(stat -c %d:%i /) == "$(nsenter --mount=/proc/self/ns/mnt stat -c %d:%i /)" ]] || {
	t_skip "device plugins against a real kubelet" "this is a chroot, which nsenter --mount would leave"
	t_done
}
hack/deps cluster kubelet
hack/k8s-build kubelet
t_ok "the tool is built" test -x "$tool"
t_need
# shellcheck disable=SC2046 # an option or none
t_ok "a control plane" hack/cluster up c $([[ ${STAGE:-} != core ]] || echo --no-controllers)
t_need
# Covered inside; the place has to be there outside.
[[ -d /dev/infiniband ]] || { mkdir /dev/infiniband && touch "$tmp/made-dev"; }
start_node
t_wait 30 "containerd serves" test -e "$tmp/ready"
t_need
init=$(child_of "$node_pid")
kubelet_kubeconfig=$(hack/cluster kubeconfig c)
kubelet_config
make_cgroups
t_ok "devices" make_devices
pools "$devices"
start_tool a # before there is a kubelet
start_kubelet
t_wait 60 "the node is Ready" is_ready
t_wait 30 "the pool is allocatable" has_allocatable "$devices"
t_need

# The CNI worker writes it; this pod has none. Folders of other devices do not exist, and the runtime makes them.
job=/run/orbweaver/jobs/spidernet.io_x_0000-3b-00.0
inside mkdir -p "$job"
inside sh -c "echo 'export NCCL_IB_HCA==mlx5_2:1' >$job/nccl.env"
# shellcheck disable=SC2016 # the pod expands it
t_ok "a pod that wants one" pod one 1 'env; ls -l /dev/infiniband; . /run/orbweaver/nccl.env; echo $NCCL_IB_HCA;
	touch /run/orbweaver/x || echo read-only; sleep 3600'
t_wait 60 "runs" has_phase one Running
t_wait 10 "it has its variable" grep -qx 'PCIDEVICE_SPIDERNET_IO_X=0000:3b:00.0' <(pod_log one)
t_eq "and its device, and no other" "1, 3 /dev/infiniband/uverbs0" \
	"$(pod_log one | awk '/uverbs/ { n++; line = $5 " " $6 " /dev/infiniband/" $NF } END { print n == 1 ? line : n }')"
t_eq "and the files of its allocation, which it cannot change" "=mlx5_2:1 read-only" \
	"$(pod_log one | grep -xF -e =mlx5_2:1 -e read-only | paste -sd ' ')"
t_wait 10 "the kubelet says whose it is" tool_knows a '{"allocated":{"spidernet.io/x":{"0000:3b:00.0":"default/one/c"}}}'
t_eq "and has written it down with the pod's UID, beside what is on offer, as nodeagent/cni/plan/checkpoint.h reads it" \
	"$(kubectl get pod one -o 'jsonpath={.metadata.uid}') 0000:3b:00.0 $devices" \
	"$(inside cat "$plugins/kubelet_internal_checkpoint" | jq -r --arg resource "$resource" '.Data | "\(.PodDeviceEntries[0].PodUID) \(
		.PodDeviceEntries[0].DeviceIDs[][]) \(.RegisteredDevices[$resource] | length)"')"
t_ok "device info is there for Multus" inside test -s /var/lib/kubelet/devinfo/spidernet.io-x-0000:3b:00.0-device.json
t_ok "the pod ends" kubectl delete pod one --timeout=60s
t_wait 30 "the kubelet has it back" tool_knows a '{"allocated":{}}'
# What `orbweaver test` counts on: an annotation that changes is another file in the pod, soon, not when the kubelet looks at all
# pods again.
t_ok "a pod that sees an annotation as a file" kubectl apply -f - <<END
apiVersion: v1
kind: Pod
metadata: { name: task, annotations: { orbweaver.io/test-task: "# 1" } }
spec:
  nodeName: k
$(pod_spec 1 "while :; do cat /run/orbweaver-test/task; echo; sleep 0.2; done")
    volumeMounts: [ { name: task, mountPath: /run/orbweaver-test, readOnly: true } ]
  volumes:
  - name: task
    downwardAPI:
      items: [ { path: task, fieldRef: { fieldPath: "metadata.annotations['orbweaver.io/test-task']" } } ]
END
t_wait 60 "runs" sees_task "# 1"
t_ok "another task" kubectl annotate pod task --overwrite "orbweaver.io/test-task=# 2"
annotated=$(date +%s%N)
t_wait 30 "comes to the pod" sees_task "# 2"
echo "# after $((($(date +%s%N) - annotated) / 1000000)) ms"
kubectl delete pod task --timeout=60s >/dev/null
t_ok "a pod that wants all" pod all "$devices" 'sleep 3600'
t_wait 60 "gets all" has_phase all Running
kubectl delete pod all --timeout=60s >/dev/null

pools $((devices - 1))
kill -HUP "$(half a)"
t_wait 10 "one device less is seen" has_allocatable $((devices - 1))
pools "$devices"
kill -HUP "$(half a)"
t_wait 10 "and its return" has_allocatable "$devices"
t_eq "without another registration" 1 "$(registrations a)"

start_watching
t_wait 10 "somebody watches" test -s "$tmp/seen"
: >"$tmp/seen"
start_tool b
t_wait 10 "a second agent beside the first registers" has_registered b 0
t_ok "the first ends" end a TERM
sleep 2
t_ok "a pod gets a device from the second" pod two 1 'sleep 3600'
t_wait 60 "and runs" has_phase two Running
t_ok "a third takes over again" start_tool a
t_wait 10 "and registers" has_registered a 1
t_ok "the second ends" end b TERM
sleep 2
t_eq "the count was never another" "$devices" "$(sort -u "$tmp/seen" | paste -sd' ')"
kubectl delete pod two --timeout=60s >/dev/null

kill -STOP "$(<"$tmp/kubelet.pid")"
t_ok "an agent is killed and comes back while the kubelet hangs" end a KILL
start_tool a
sleep 2
kill -CONT "$(<"$tmp/kubelet.pid")" "$(ps -o ppid= -p "$(<"$tmp/kubelet.pid")" | tr -d ' ')" # nsenter stops with it
t_wait 30 "the pool is there when it goes on" has_registered a 2
t_wait 30 "with all devices" has_allocatable "$devices"
t_need

if [[ ${STAGE:-} != core ]]; then
	t_ok "a job of pods that come and go" start_churn
	t_ok "a few at a time" pods_at_a_time $((devices / 3))
	t_wait 60 "they come and go" has_worked 0
	t_ok "kubelet restarted $rounds times, its directory wiped: the count is right each time" all_rounds restart_kubelet
	t_eq "no pod was turned away" "" "$(turned_away)"
	: >"$tmp/seen"
	t_ok "agent killed $rounds times: the kubelet does not notice" all_rounds kill_agent
	t_eq "the count was never another" "$devices" "$(sort -u "$tmp/seen" | paste -sd' ')"
	t_eq "no pod was turned away" "" "$(turned_away)"
	t_ok "all our processes killed $rounds times: the count is right each time" all_rounds kill_all
	t_ok "no more pods come" pods_at_a_time 0
	print_times kubelet "kubelet restarted"
	print_times tool "all killed and started"
	printf '# %d pods have worked meanwhile\n' "$(n_worked)"
	t_ok "registration came in time after each restart of the kubelet" in_time kubelet
	t_ok "and after each start of ours" in_time tool
	t_eq "no pod was turned away" "" "$(turned_away)"
fi
t_ok "what is left of the pods goes" kubectl delete pods --all --timeout=60s
t_wait 30 "nothing is allocated any more" tool_knows a '{"allocated":{}}'
stop_watching
t_eq "no device was given away twice" "" "$(cat "$tmp/twice" 2>/dev/null)"

t_ok "the agent ends" end a TERM
t_eq "its sockets are gone" "" "$(inside sh -c "cd $plugins && ls -d *.ow.sock 2>/dev/null")"
t_fails "no sanitizer complained" grep -l 'ERROR: \|runtime error' "$tmp/a.log" "$tmp/b.log"
t_done
