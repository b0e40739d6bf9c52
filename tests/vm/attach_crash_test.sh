#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real VFs, their RDMA devices, addresses, rules and routes, while everything is killed: each process, and the node's power, at
# the steps of ADD and DEL in turn; then pods that come and go while processes are killed at random. Nothing is leaked, the next
# pod starts, nobody has a stranger's VF or settings.
#
# A step is a message to the kernel or a change of the disk by the server of plugins or by a worker: tests/support/crash_agent.c.
# Two processes are killed, each at one step, and the power is cut once, as the seed chooses. LONG=1: each process, and the power,
# at every step, and PODS=200 pods at random, 0: none; hours, so it wants TEST_TIMEOUT. VICTIMS="ow-cnid power": these alone;
# MOST=10: each at so many steps. SEED=N: the same again. VARIANT=opt is faster, with the same steps.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
AGENT=${AGENT:-${BUILD:-build}/${VARIANT:-asan}/tests/crash-agent}
. tests/vm/attach.sh

a_need_exclusive "processes are killed while VFs and RDMA devices move"

seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
echo "# SEED=$seed"
n_pods=${PODS:-200}

# by_seed WHAT: the lines of the input in an order that the seed chooses for it.
by_seed() {
	sort -R --random-source=<(yes "$seed $1" | head -c 65536)
}

victims=(ow-cni-worker ow-cnid ow-agent ow-kubeletd ow-supervisor sriov rdma coordinator)
[[ -n ${LONG:-} ]] || mapfile -t victims < <(printf '%s\n' "${victims[@]}" | by_seed victims | head -n 2)
read -ra victims <<<"${VICTIMS:-${victims[*]} power}"

a_begin attach-crash --exclusive --roce --append ib_core.netns_mode=0
a_runtime

# A pod that the API server has keeps its address from sandbox to sandbox: these pods have one each at most.
addresses() {
	o_curl GET "$spider/spiderippools/rail" | jq -r '.status.allocatedIPs // "{}"'
}
no_pod_has_two_addresses() {
	addresses
	addresses | jq -e 'map(.podUid) | length == (unique | length)'
}
nothing_is_known_of_pods() {
	addresses
	[[ $(addresses) == "{}" && $(o_curl GET "$spider/spiderendpoints" | jq '.items | length') == 0 ]]
}
nothing_is_attached() {
	a_state '.status.attachments // [] | tojson'
	[[ $(a_state '.status.attachments // [] | length') == 0 ]]
}

node 'cat >>/root/runtime' <<'END'
# The pod's first interface: for it the coordinator makes the most, a veth pair and what belongs to it on the node.
export COORDINATED=1 IFNAME=eth0
vfs=(0000:01:10.0 0000:01:10.2 0000:01:10.4)

# --- what is there ------------------------------------------------------------------------------------------------------
# All that a pod may leave on its node, and in a namespace that its runtime keeps. Sorted: a boot may list it another way.
all_seen() {
	{
		seen
		ip -o addr | sed -E 's/^[0-9]+: (\S+) +\S+ (\S+) .*/\1 \2/'
		ip -4 route show table all
		ip -6 route show table all | sed 's/ expires [^ ]*//'
		ip neigh show nud permanent
		# A device that comes back takes the lowest free number. A VF's lock stays for ever.
		find /var/lib/orbweaver/cni /run/orbweaver ! -type d ! -name '*.lock' | sed -E 's/(uverbs|umad)[0-9]+$/\1/'
		ip netns exec a sh -c 'echo in the namespace: $(ls /sys/class/net /sys/class/infiniband)'
		ps -eo comm= | grep -xE 'ow-cni-worker|sriov|rdma|coordinator'
	} | sort
}
# The same but for the rule that all pods share, and the first one makes.
seen_but_rule() {
	all_seen | grep -v ' lookup 500'
}
# And but for the MACs that a boot gives to VFs; a pod's are told.
seen_in_any_boot() {
	seen_but_rule | sed -E '/02:00:00:00:77/! s/([0-9a-f]{2}:){5}[0-9a-f]{2}/MAC/g'
}
# as_before WHAT: soon WHAT prints what it did. What has to wait is tried again after a while.
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

# mac_of VLAN, settings_of VLAN: of one pod and no other.
mac_of() {
	printf '02:00:00:00:77:%02x' "$1"
}
settings_of() {
	printf '{"mac": "%s", "vlan": %d, "spoofchk": "off", "trust": "on", "ipam": {"type": "spiderpool", "default_ipv4_ippool": ["rail"]}}' \
		"$(mac_of "$1")" "$1"
}
# is_itself POD VLAN VF: the pod's own settings are on its VF, that and its RDMA device are in its namespace, and no other.
is_itself() {
	local got

	got=$(ip link show enp1s0 | grep "^ *vf $3 ")
	[[ $got == *" $(mac_of "$2") "*", vlan $2,"* ]] || { echo "$1: VF $3 has $got, not VLAN $2" && return 1; }
	got=$(ip netns exec "$1" sh -c 'echo $(ls /sys/class/net /sys/class/infiniband) $(cat /sys/class/net/eth0/address)
		ip -o -4 addr show eth0 | grep -c " 10.77.0."')
	[[ $got == "/sys/class/infiniband: rxe-enp1s0v$3 /sys/class/net: eth0 lo veth0 $(mac_of "$2")"$'\n'1 ]] ||
		{ echo "$1: has $got" && return 1; }
}

# --- pods ---------------------------------------------------------------------------------------------------------------
# As a DaemonSet does: an agent that has ended is started again.
start_again() {
	kill -0 "$(cat /root/agent.pid)" 2>/dev/null && return
	grep -v -e '^{' -e '^==[0-9]*==Unable to get registers from thread' /root/agent.log >>/root/no-log
	/etc/boot.d/agent
}
# comes POD DEVICE SETTINGS: as a kubelet does, a failed ADD is followed by DEL and another ADD.
comes() {
	local tries=0

	until add "$1" "$2" "$3"; do
		((++tries < 20)) || { echo "no ADD succeeds"; return 1; }
		start_again
		goes "$1" || return
		sleep 0.5
	done
}
goes() {
	local tries=0

	until take "$1"; do
		((++tries < 20)) || { echo "no DEL succeeds"; return 1; }
		start_again
		sleep 0.5
	done
	start_again
}
# life: pod a comes, has all that it should have, and goes.
life() {
	ip netns del a 2>/dev/null
	rm -f /root/a.{sriov,rdma,coordinator}
	ip netns add a && comes a "${vfs[0]}" "$(settings_of 5)" && is_itself a 5 0 && goes a
}

# --- steps --------------------------------------------------------------------------------------------------------------
crash=/run/orbweaver-crash
# arm STEP VICTIM: before the first of these steps from STEP on at which VICTIM runs, it is killed. /root/hit is which that was.
arm() {
	disarm
	rm -f /root/hit
	# In this order, since processes look all the time.
	head -c 8 /dev/zero | dd of=$crash conv=notrunc status=none
	strike "$2" </dev/null >/dev/null 2>&1 &
	striker=$!
	stop_from "$1"
}
stop_from() {
	printf "\\x$(printf %02x $(($1 & 255)))\\x$(printf %02x $(($1 >> 8)))" | dd of=$crash conv=notrunc status=none
}
strike() {
	until [[ -e /root/hit ]]; do
		: <$crash.reached
		if [[ $1 == power ]]; then
			pkill -STOP -x ow-cnid
			pkill -STOP -x ow-cni-worker
			steps >/root/hit
			return
		fi
		if pkill -KILL -x -r DRST "$1"; then steps >/root/hit; else stop_from 1; fi
		# Who stopped may have been ended meanwhile: this waits until disarm then.
		: >$crash.go-on
	done
}
disarm() {
	[[ -n ${striker:-} ]] || return 0
	kill "$striker" 2>/dev/null
	wait "$striker" 2>/dev/null
	striker=
}
steps() {
	od -An -tu4 -j4 -N4 $crash | tr -d ' '
}

# after_kills VICTIM COUNT: a process that ends again and again is started later and later. A supervisor that is new does not know.
after_kills() {
	[[ $1 == ow-* && $1 != ow-cni-worker ]] && (($2 % 4 == 0)) || return 0
	pkill -TERM -x ow-supervisor
	while kill -0 "$(cat /root/agent.pid)" 2>/dev/null; do
		sleep 0.1
	done
	start_again
}

# killed VICTIM MOST LAST STEP...: for each of these steps, LAST is the highest, a pod comes and goes and VICTIM is killed at it, or
# at the next at which it runs, until that was so MOST times. Once at least. What another step led to is not done again.
killed() {
	local step hit at=() done=()

	for step in "${@:4}"; do
		((${#at[@]} < $2)) || break
		[[ -z ${done[step]:-} ]] || continue
		arm "$step" "$1"
		{ life && as_before all_seen; } >/root/out 2>&1 || { echo "killed at step $step:" && tail -n 30 /root/out && return 1; }
		hit=$(cat /root/hit 2>/dev/null) && at+=("$hit") && after_kills "$1" ${#at[@]}
		for step in $(seq "$step" "${hit:-$3}"); do
			done[step]=1
		done
	done
	disarm
	echo "${#at[@]} of $3 steps: ${at[*]}" >/root/at
	((${#at[@]})) || { echo "it ran at none of them" && return 1; }
}

# stopped STEP: a pod comes and goes until everything stands still at this step, or to its end. Prints which.
stopped() {
	sync
	arm "$1" power
	life </dev/null >/root/out 2>&1 &
	wait -n "$striker" $! || tail -n 30 /root/out
	if [[ -e /root/hit ]]; then echo "stands still"; else disarm && echo "came and went"; fi
}

# --- pods that come and go at random ------------------------------------------------------------------------------------
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
	(($(cat /root/kills))) || { echo "nobody was killed" && failed=1; }
	return $failed
}
END

# --- the node -----------------------------------------------------------------------------------------------------------
a_pool
for name in a p1 p2 p3; do
	t_ok "pod $name" a_make_pod "$name"
done
# Before the agent, also after a power cut.
node 'cat >/etc/boot.d/0-first && chmod +x /etc/boot.d/0-first && /etc/boot.d/0-first' <<'END'
#!/bin/sh
ip link set enp1s0 up
head -c 8 /dev/zero >/run/orbweaver-crash
mkfifo /run/orbweaver-crash.reached /run/orbweaver-crash.go-on
END
a_install --log-level warn --cni-program "$PWD/$o_programs/orbweaver-cni"
a_policy roce "{\"numVfs\": 3, \"isRdma\": true, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
t_wait "$a_wait_s" "3 VFs" a_done 3

is_ready() {
	node 'test -x /opt/cni/bin/rdma -a -S /run/orbweaver/cni.sock -a "$(rdma -j dev show | jq "map(.ifname) | length")" = 4'
}
t_wait "$a_wait_s" "plugins are installed, VFs have their RDMA devices" is_ready
rt 'ip netns add a; udevadm settle; seen_but_rule >/root/before-seen_but_rule; seen_in_any_boot >/root/before-seen_in_any_boot'
t_ok "a pod comes and goes" rt life
t_ok "all is as before" rt as_before seen_but_rule
t_need
rt 'all_seen >/root/before-all_seen'
t_ok "another one" rt 'arm 0 nobody; life && steps >/root/steps && as_before all_seen && disarm'
t_need
n_steps=$(node cat /root/steps)
t_ok "steps of a pod are counted: $n_steps" test "$n_steps" -gt 40
# How often each victim is to be killed.
most=${MOST:-$(o_size "$n_steps" 1)}

# steps_for VICTIM: all of them, in an order by the seed.
steps_for() {
	seq "$n_steps" | by_seed "$1"
}

# --- every step ---------------------------------------------------------------------------------------------------------
kill_process() {
	t_ok "nothing leaks when $1 is killed" rt "killed $1 $most $n_steps $(steps_for "$1" | paste -sd' ')"
	echo "# $1 was killed at $(node cat /root/at)"
}

cut_power() {
	local cuts=0 step where

	for step in $(steps_for power); do
		((cuts < most)) || break
		where=$(rt "stopped $step")
		[[ $where != "came and went" ]] || continue
		cuts=$((cuts + 1))
		t_eq "all stands still at step $step" "stands still" "$where"
		hack/node cut "$a_node" >/dev/null
		t_ok "a power cut, and on again" hack/node boot "$a_node"
		t_wait "$a_wait_s" "the VFs are there" is_ready
		t_ok "the pod's DEL" rt 'GONE=1 goes a && ip netns add a'
		t_ok "all is as before" rt as_before seen_in_any_boot
		t_ok "the next pod comes and goes" rt life
		t_ok "all is as before" rt as_before seen_in_any_boot
		t_need
	done
	t_ok "the power was cut, $cuts times" test "$cuts" -gt 0
	rt 'all_seen >/root/before-all_seen'
}

for victim in "${victims[@]}"; do
	if [[ $victim == power ]]; then cut_power; else kill_process "$victim"; fi
	t_need
done

# --- at random ----------------------------------------------------------------------------------------------------------
if [[ -n ${LONG:-} ]] && ((n_pods > 0)); then
	t_ok "$n_pods pods come and go while processes are killed, each with its own VF" rt "random $n_pods $seed"
	echo "# $(node cat /root/kills) kills"
	t_ok "all is as before" rt as_before all_seen
	t_ok "the next pod comes and goes" rt life
	t_ok "all is as before" rt as_before all_seen
fi

t_wait 60 "no pod has two addresses" no_pod_has_two_addresses
t_wait 60 "the node's state says that nothing is attached" nothing_is_attached
for name in a p1 p2 p3; do
	o_curl DELETE "/api/v1/namespaces/default/pods/$name?gracePeriodSeconds=0" >/dev/null
done
t_wait 120 "without pods there are no addresses and no endpoints" nothing_is_known_of_pods
t_eq "agents that were killed said nothing but log lines" "" "$(node 'cat /root/no-log 2>/dev/null || true')"

a_end
t_done
