#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whoever of the node agent's processes is killed, at whichever step, and if the power goes: the next one ends in the desired
# state, the PF stays what it is, and the one that serves the kubelet lives on.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

a_begin crash --pfs 1

# How to find each process in the node.
declare -A victim=(
	[supervisor]='cat /root/agent.pid'
	[agent]='pgrep -x ow-agent'
	[worker]='pgrep -x ow-worker'
)

# at_step NUMBER COMMAND: wipe the VFs, and run COMMAND when the agent begins that step of the repair. Prints "none" when the
# repair has fewer.
at_step() {
	node "mkfifo /tmp/log; exec 3<>/tmp/log; rm /tmp/log; n=0
		tail -n 0 -f /root/agent.log >&3 & tail=\$!
		sleep 1; echo 0 >/sys/bus/pci/devices/$pf1/sriov_numvfs
		while read -r -t $a_wait_s line <&3; do
			case \$line in
			*'\"msg\":\"step\"'*) n=\$((n + 1)); [[ \$n -lt $1 ]] || { $2; break; } ;;
			*'host is as wanted'*) echo none; break ;;
			esac
		done
		kill \$tail"
}

vf_is_right() {
	a_done 2 && [[ $(node "cd /sys/bus/pci/devices/$pf1; cat sriov_numvfs virtfn0/net/*/mtu virtfn1/net/*/mtu | tr '\n' ' '
		basename \$(readlink driver)") == "2 1600 1600 igb" ]]
}

a_start --log-level info,nodeagent=debug
t_wait "$a_wait_s" "the agent reports" a_done 0
a_policy roce "{\"numVfs\": 2, \"mtu\": 1600, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
t_wait "$a_wait_s" "2 VFs" vf_is_right
t_need
pf_index=$(node cat /sys/class/net/enp1s0/ifindex)
kubeletd=$(node pgrep -x ow-kubeletd)

for who in agent worker supervisor; do
	number=1
	while :; do
		output=$(at_step "$number" "kill -KILL \$(${victim[$who]})")
		[[ $output != *none* ]] || break
		if [[ $who == supervisor ]]; then
			t_wait 30 "$who killed at step $number: it has ended" a_gone
			t_wait 10 "and all others with it" a_others_gone
			a_start --log-level info,nodeagent=debug
		fi
		t_wait "$a_wait_s" "$who killed at step $number: the VFs are as wanted" vf_is_right
		t_eq "and the PF was not touched" "$pf_index" "$(node cat /sys/class/net/enp1s0/ifindex)"
		number=$((number + $(o_size 1 4)))
	done
	t_ok "$who was killed at some step" test "$number" -gt 1
	[[ $who == supervisor ]] ||
		t_eq "the kubelet is served by the same process as before" "$kubeletd" "$(node pgrep -x ow-kubeletd)"
	t_wait "$a_wait_s" "nothing is left to do" vf_is_right
done

# --- power -------------------------------------------------------------------------------------------------------------
a_end
a_install --log-level info,nodeagent=debug
t_wait "$a_wait_s" "an agent that also starts at boot" vf_is_right
for number in $(o_size "1 3 5 7 9 11" 3); do
	node 'sync'
	at_step "$number" true >/dev/null
	hack/node cut "$a_node" >/dev/null
	t_ok "power cut at step $number, and on again" hack/node boot "$a_node"
	t_wait "$a_wait_s" "the node has its VFs by itself" vf_is_right
done
a_no_policy roce
t_wait "$a_wait_s" "policy removed: none" a_done 0
t_eq "the PF is as it was found before all that" "0 1500" \
	"$(node "cd /sys/bus/pci/devices/$pf1; echo \$(cat sriov_numvfs net/enp1s0/mtu)")"
a_end
o_end op
t_done
