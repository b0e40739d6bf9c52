#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Policies change by chance while pods get VFs and give them back by chance: nothing is written to a VF that a pod has. What a VF
# is made of is compared while a pod has it (tests/support/kubelet_play.c), and so is the agent's journal. LONG=1: ten minutes.
# Environment: SEED, to have the same choices again; what comes of them depends on time, too.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

seed=${SEED:-$RANDOM$RANDOM}
seconds=$(o_size 600 110)
RANDOM=$seed
printf '# seed %s, %s s\n' "$seed" "$seconds"
play=$(realpath --relative-to=. "$o_programs/tests/kubelet-play")

a_begin random --pfs 2
a_kubelet_flag=
t_ok "the program is built" test -x "$play"

# policies PF: two resources, of the kernel's driver and of vfio-pci, that share the VFs of a PF.
policies() {
	local vfs=$((2 + RANDOM % 5)) split mtu=$((1500 + 100 * (RANDOM % 3)))

	split=$((RANDOM % vfs))
	printf '# %s: %s VFs, kernel 0-%s, MTU %s\n' "$1" "$vfs" "$split" "$mtu"
	a_policy "net-$1" "{\"numVfs\": $vfs, \"mtu\": $mtu, \"nicSelector\": {\"pfNames\": [\"$1#0-$split\"]}}"
	if ((split + 1 < vfs)); then
		a_policy "vfio-$1" "{\"numVfs\": $vfs, \"deviceType\": \"vfio-pci\", \"nicSelector\": {\"pfNames\": [\"$1#$((split + 1))-$((vfs - 1))\"]}}"
	else
		k delete -n "$POD_NAMESPACE" sriovnetworknodepolicy "vfio-$1" --ignore-not-found >/dev/null
	fi
}

play_is_over() {
	node 'grep -q ^given /root/play.log'
}

node 'mkdir -p /var/lib/kubelet/device-plugins /var/lib/kubelet/pod-resources'
policies enp1s0
policies enp2s0
node "ASAN_OPTIONS='$ASAN_OPTIONS' nohup $PWD/$play /var/lib/kubelet $seconds $seed spidernet.io/net_enp1s0 spidernet.io/vfio_enp1s0 \
	spidernet.io/net_enp2s0 spidernet.io/vfio_enp2s0 >/root/play.log 2>&1 </dev/null &"
a_start --log-level debug
changes=0
until play_is_over; do
	# Under emulation a plan takes seconds; between two there has to be time for pods.
	sleep $((6 + RANDOM % 12))
	policies "enp$((1 + RANDOM % 2))s0"
	changes=$((changes + 1))
done

summary=$(node 'grep ^given /root/play.log')
printf '# %s policies; %s; %s steps, %s of them refused\n' "$changes" "$summary" "$(a_metric orbweaver_agent_steps_total)" \
	"$(a_metric orbweaver_agent_steps_total 'result="failed"')"
t_eq "nothing was written to a VF that a pod had (seed $seed)" "" "$(node 'grep ^WRITTEN /root/play.log || true')"
node 'sed -n "s/.* is turned away: //p" /root/play.log | sort | uniq -c | sort -rn | head -n 5' | sed 's/^/# turned away: /'
t_ok "pods got VFs" test "$(awk '{ print $2 + 0 }' <<<"$summary")" -gt 0
t_eq "by the agent that was started, none that followed it" 0 "$(a_logged '.msg | IN("agent ended, starting it again", "process no longer turns, killing it")')"
t_ok "and plans were carried out" test "$(a_logged '.msg == "step"')" -gt 20
a_end
t_done
