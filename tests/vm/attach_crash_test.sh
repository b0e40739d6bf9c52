#!/bin/bash
# Real VFs, their RDMA devices, addresses, rules and routes, while everything is killed: each process, and the node's power, at
# the steps of ADD and DEL in turn; then pods that come and go while processes are killed at random. Nothing is leaked, the next
# pod starts, nobody has a stranger's VF or settings.
#
# A step is a message to the kernel or a change of the disk by the server of plugins or by a worker; tests/crash-agent, the agent
# with these calls wrapped, counts them. LONG=1: all steps, then PODS=200 pods; else a sample. SEED=N: the same sample, the same
# pods again.
# shellcheck disable=SC2317,SC2016 # functions that run as COMMAND of a check look unreachable; the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
AGENT=${AGENT:-${BUILD:-build}/${VARIANT:-asan}/tests/crash-agent}
# shellcheck source=tests/vm/attach.sh
. tests/vm/attach.sh

status=0
hack/node-build --exclusive || status=$?
if ((status == 77)); then
	t_skip "processes are killed while VFs and RDMA devices move" "hack/node-build --exclusive has nothing to build from"
	t_done
fi

seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
n_pods=${PODS:-200}
victims=(ow-cni-worker ow-cnid ow-agent ow-supervisor sriov rdma coordinator)

# chance WHAT COUNT: a number from 0 to COUNT - 1, by the seed.
chance() {
	echo $((16#$(md5sum <<<"$seed $1" | head -c 8) % $2))
}

# The sample: two of them, at a step each; a power cut.
if [[ -z ${LONG:-} ]]; then
	first=$(chance victim ${#victims[@]})
	victims=("${victims[first]}" "${victims[(first + 1 + $(chance second 6)) % ${#victims[@]}]}")
fi

a_begin crash --exclusive --roce --append ib_core.netns_mode=0
a_runtime

# make_pod NAME: in the API server, its UID in the node.
make_pod() {
	o_curl POST /api/v1/namespaces/default/pods "$(jq -nc --arg name "$1" --arg node "$a_node" '{metadata: {$name}, spec: {
		nodeName: $node, automountServiceAccountToken: false, containers: [{name: "c", image: "none"}]}}')" | jq -r .metadata.uid |
		node "cat >/root/$1.uid"
}

# A pod that the API server has keeps its address from sandbox to sandbox: these pods have one each at most.
addresses() {
	o_curl GET "$spider/spiderippools/rail" | jq -r '.status.allocatedIPs // "{}"'
}
no_pod_has_two_addresses() {
	addresses
	addresses | jq -e 'map(.podUid) | length == (unique | length)'
}
no_address_is_taken() {
	addresses
	[[ $(addresses) == "{}" ]]
}

node 'cat >>/root/runtime' <<'END'
# The pod's first interface: for it the coordinator makes the most, a veth pair and what belongs to it on the node.
export COORDINATED=1 IFNAME=eth0
vfs=(0000:01:10.0 0000:01:10.2 0000:01:10.4)

# settings_of VLAN: of one pod and no other.
settings_of() {
	printf '{"mac": "02:00:00:00:77:%02x", "vlan": %d, "spoofchk": "off", "trust": "on", "ipam": {"type": "spiderpool",
		"default_ipv4_ippool": ["rail"]}}' "$1" "$1"
}

# arm STEP VICTIM: the next of these steps kills. In this order, since processes look all the time.
crash=/var/lib/orbweaver-crash
arm() {
	head -c 24 /dev/zero | dd of=$crash conv=notrunc status=none
	printf %s "$2" | dd of=$crash bs=1 seek=8 conv=notrunc status=none
	printf "\\x$(printf %02x $(($1 & 255)))\\x$(printf %02x $(($1 >> 8)))" | dd of=$crash conv=notrunc status=none
}
steps() {
	od -An -tu4 -j4 -N4 $crash | tr -d ' '
}

# All that a pod may leave on its node.
all_seen() {
	seen
	ip -j addr | jq -c '.[] | [.ifname, .addr_info[].local]'
	ip -4 route show table all
	ip -6 route show table all | sed 's/ expires [^ ]*//'
	ip neigh show nud permanent
	# A device that comes back takes the lowest free number.
	find /var/lib/orbweaver/cni /run/orbweaver ! -type d | sed -E 's/(uverbs|umad)[0-9]+$/\1/' | sort
}
# The same but for the MACs that a boot gives to VFs; a pod's are told.
seen_in_any_boot() {
	all_seen | sed -E '/02:00:00:00:77/! s/([0-9a-f]{2}:){5}[0-9a-f]{2}/MAC/g'
}

# as_before WHAT: within a minute, or two, WHAT prints what it did.
as_before() {
	local end=$((SECONDS + 100))

	while ((SECONDS < end)); do
		udevadm settle
		"$1" >/root/now
		diff "/root/before-$1" /root/now >/root/differs && return
		sleep 0.5
	done
	cat /root/differs
	return 1
}

# As a DaemonSet does: an agent that has ended is started again.
start_again() {
	kill -0 "$(cat /root/agent.pid)" 2>/dev/null || /etc/boot.d/agent
}
# comes POD DEVICE SETTINGS: as a kubelet does, a failed ADD is followed by DEL and another ADD.
comes() {
	local tries=0

	until add "$1" "$2" "$3"; do
		((++tries < 20)) || return 1
		start_again
		goes "$1" || return
		sleep 0.5
	done
}
goes() {
	local tries=0

	until take "$1"; do
		((++tries < 20)) || return 1
		start_again
		sleep 0.5
	done
	start_again
}
# life: a pod comes and goes.
life() {
	rm -f /root/a.{sriov,rdma,coordinator}
	comes a "${vfs[0]}" "$(settings_of 5)" >/root/out 2>&1 || { cat /root/out && echo "no ADD succeeds" && return 1; }
	goes a >/root/out 2>&1 || { cat /root/out && echo "no DEL succeeds" && return 1; }
}

# killed VICTIM STEP...: a pod comes and goes while VICTIM is killed at one of the steps, for each of them.
killed() {
	local step

	for step in "${@:2}"; do
		arm "$step" "$1"
		{ life && as_before all_seen; } >/root/said || { echo "killed at step $step" && cat /root/said && return 1; }
	done
}

# stopped STEP: a pod comes and goes until everything stands still at this step, or to its end. Prints which.
stopped() {
	sync
	arm "$1" power
	life </dev/null >/dev/null 2>&1 &
	while [[ -n $(jobs -r) ]] && (($(steps) < $1)); do
		sleep 0.02
	done
	if (($(steps) < $1)); then echo "came and went"; else echo "stands still"; fi
}

# --- pods that come and go at random ------------------------------------------------------------------------------------
# The pod's own settings are on its VF, its device in its namespace, and no other.
is_itself() {
	local vf=$3 got

	got=$(ip -d -j link show enp1s0 | jq -c ".[0].vfinfo_list[$vf] | [.address, .vlan_list[0].vlan // .vlan]")
	[[ $got == "[\"$(printf '02:00:00:00:77:%02x' "$2")\",$2]" ]] || { echo "$1: VF $vf has $got, not VLAN $2" && return 1; }
	got=$(ip netns exec "$1" sh -c 'echo $(cat /sys/class/net/eth0/address) $(ls /sys/class/infiniband)')
	[[ $got == "$(printf '02:00:00:00:77:%02x' "$2") rxe-enp1s0v$vf" ]] || { echo "$1: has $got" && return 1; }
}

# pods RUNTIME COUNT SEED: one after the other, each on a VF that nobody has.
pods() {
	local k=$1 i vf name vlan

	RANDOM=$3
	for i in $(seq "$2"); do
		vf=$((RANDOM % 3))
		while ! mkdir "/root/vf$vf" 2>/dev/null; do
			vf=$((RANDOM % 3))
			sleep 0.1
		done
		name=p$k vlan=$((k * 60 + i % 60))
		ip netns add "$name"
		rm -f /root/"$name".{sriov,rdma,coordinator}
		comes "$name" "${vfs[vf]}" "$(settings_of "$vlan")" >"/root/out$k" 2>&1 || { cat "/root/out$k"; return 1; }
		is_itself "$name" "$vlan" "$vf" || return
		# One in four ends without a DEL before its namespace does.
		((RANDOM % 4)) || ip netns del "$name"
		if [[ -e /run/netns/$name ]]; then
			goes "$name" >"/root/out$k" 2>&1 || { cat "/root/out$k"; return 1; }
			ip netns del "$name"
		else
			GONE=1 goes "$name" >"/root/out$k" 2>&1 || { cat "/root/out$k"; return 1; }
		fi
		rmdir "/root/vf$vf"
	done
}

# kills SEED: until /root/killing is gone; prints how many.
kills() {
	local names=(ow-agent ow-cnid ow-cni-worker sriov rdma coordinator spiderpool) n=0

	RANDOM=$1
	while [[ -e /root/killing ]]; do
		sleep "$((RANDOM % 3)).$((RANDOM % 10))"
		pkill -KILL -x "${names[RANDOM % ${#names[@]}]}" && n=$((n + 1))
	done
	echo $n
}

# random COUNT SEED
random() {
	local k pids=() failed=0 killer

	touch /root/killing
	kills "$2" >/root/kills &
	killer=$!
	for k in 1 2 3; do
		pods "$k" $((($1 + 2) / 3)) $(($2 % 32000 + k)) &
		pids+=($!)
	done
	for k in "${pids[@]}"; do
		wait "$k" || failed=1
	done
	rm /root/killing
	wait "$killer"
	return $failed
}
END

# --- the node -----------------------------------------------------------------------------------------------------------
o_curl POST "$spider/spiderippools" '{"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool",
	"metadata": {"name": "rail"}, "spec": {"ipVersion": 4, "subnet": "10.77.0.0/16", "gateway": "10.77.0.1",
	"ips": ["10.77.0.10-10.77.0.40"]}}' >/dev/null
o_curl POST "$spider/spidercoordinators" '{"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderCoordinator",
	"metadata": {"name": "default"}, "spec": {"mode": "underlay", "podCIDRType": "none", "tunePodRoutes": true}}' >/dev/null
for name in a p1 p2 p3; do
	make_pod "$name"
done
# Before the agent, also after a power cut.
node 'cat >/etc/boot.d/0-first && chmod +x /etc/boot.d/0-first && /etc/boot.d/0-first' <<'END'
#!/bin/sh
head -c 24 /dev/zero >/var/lib/orbweaver-crash
ip link set enp1s0 up
END
a_install --log-level warn --cni-program "$PWD/$o_programs/orbweaver-cni"
a_policy roce "{\"numVfs\": 3, \"isRdma\": true, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
t_wait "$a_wait_s" "3 VFs" a_done 3

is_ready() {
	node 'test -x /opt/cni/bin/rdma -a -S /run/orbweaver/cni.sock -a "$(rdma -j dev show | jq "map(.ifname) | length")" = 4'
}
t_wait "$a_wait_s" "plugins are installed, VFs have their RDMA devices" is_ready
t_need
node 'udevadm settle; ip netns add a'

t_ok "a pod comes and goes" rt 'arm 0 none; life'
t_need
rt 'all_seen >/root/before-all_seen; seen_in_any_boot >/root/before-seen_in_any_boot'
t_ok "another one" rt 'arm 0 none; life && steps >/root/steps && as_before all_seen'
n_steps=$(node cat /root/steps)
echo "# SEED=$seed, $n_steps steps"

# --- every step ---------------------------------------------------------------------------------------------------------
# steps_of WHO: all, or one.
steps_of() {
	if [[ -n ${LONG:-} ]]; then
		seq "$n_steps"
	else
		echo $((1 + $(chance "$1" "$n_steps")))
	fi
}

for victim in "${victims[@]}"; do
	mapfile -t steps < <(steps_of "$victim")
	t_ok "nothing leaks when $victim is killed at a step, of ${steps[*]}" rt "killed $victim ${steps[*]}"
done
t_wait 60 "no pod has two addresses" no_pod_has_two_addresses

# --- power --------------------------------------------------------------------------------------------------------------
mapfile -t steps < <(steps_of power)
for step in "${steps[@]}"; do
	t_eq "before step $step" "stands still" "$(rt "stopped $step")"
	hack/node cut "$a_node" >/dev/null
	t_ok "a power cut, and on again" hack/node boot "$a_node"
	t_wait "$a_wait_s" "the VFs are there" is_ready
	t_ok "the pod's DEL" rt GONE=1 goes a
	t_ok "all is as before" rt as_before seen_in_any_boot
	t_ok "the next pod comes and goes" rt 'ip netns add a; arm 0 none; life'
	t_ok "all is as before" rt as_before seen_in_any_boot
	t_need
done
# --- at random ----------------------------------------------------------------------------------------------------------
if [[ -n ${LONG:-} ]]; then
	rt 'all_seen >/root/before-all_seen'
	t_ok "$n_pods pods come and go while processes are killed, each with its own VF" rt "arm 0 none; random $n_pods $seed"
	echo "# $(node cat /root/kills) kills"
	t_ok "all is as before" rt as_before all_seen
	t_ok "a pod comes and goes" rt 'comes a "${vfs[1]}" "$(settings_of 7)" && is_itself a 7 1 && goes a'
	t_ok "all is as before" rt as_before all_seen
fi
t_wait 60 "no pod has two addresses" no_pod_has_two_addresses
for name in a p1 p2 p3; do
	o_curl DELETE "/api/v1/namespaces/default/pods/$name?gracePeriodSeconds=0" >/dev/null
done
t_wait 120 "without pods no address is taken" no_address_is_taken

a_end
t_done
