#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `orbweaver plan` says of a change is what comes of it. Policies change by chance on a node with a real kernel, operator and
# agent, while pods of a played kubelet (tests/support/kubelet_play.c) come, go and hold VFs. Before each change the plan is asked
# for; afterwards, when the node has come to rest, compared: the NodeState's spec, the class, the pods in the way, and of each PF
# how many VFs it has, whether they are new ones, their drivers and MTUs. Nothing else may have changed.
# LONG=1: 20 changes. Environment: CHANGES, how many; SEED, to have the same ones again.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

seed=${SEED:-$RANDOM$RANDOM}
changes=${CHANGES:-$(o_size 20 8)}
RANDOM=$seed
printf '# seed %s, %s changes\n' "$seed" "$changes"
play=$(realpath --relative-to=. "$o_programs/tests/kubelet-play")
names=(a b c d)
# Of each policy that is there.
declare -A pf=() vfs=() range=() type=() mtu=() priority=()
# VFs of each pod, by its name.
declare -A pods=()
declare -A classes=([none]=0 [evict]=0)
pods_made=0

# --- chance -------------------------------------------------------------------------------------------

# chance N: sets r to one of 0 to N-1. A subshell would draw the same number again and again.
chance() {
	r=$((RANDOM % $1))
}

# pick WORD...: sets picked.
pick() {
	chance $#
	shift "$r"
	picked=$1
}

# shuffle WORD...: sets shuffled.
shuffle() {
	local rest=("$@")

	shuffled=()
	while ((${#rest[@]})); do
		chance ${#rest[@]}
		shuffled+=("${rest[r]}")
		unset "rest[r]"
		rest=("${rest[@]}")
	done
}

# --- policies -----------------------------------------------------------------------------------------

# Of the VFs of a policy: all, or from one to another.
change_range() {
	local first

	range[$1]=
	chance 2
	if ((r)); then
		chance "${vfs[$1]}"
		first=$r
		chance $((vfs[$1] - first))
		range[$1]="#$first-$((first + r))"
	fi
}

# change_field NAME FIELD: another value.
change_field() {
	case $2 in
	vfs)
		chance 6
		vfs[$1]=$(((vfs[$1] + r) % 7 + 1))
		[[ -z ${range[$1]} ]] || ((${range[$1]#*-} < vfs[$1])) || range[$1]=
		;;
	type) if [[ ${type[$1]} == netdevice ]]; then type[$1]=vfio-pci; else type[$1]=netdevice; fi ;;
	mtu)
		chance 5
		mtu[$1]=$((1500 + (${mtu[$1]:-1400} - 1500 + 600 + 100 * (r + 1)) % 600))
		;;
	priority) chance 100 && priority[$1]=$r ;;
	range) change_range "$1" ;;
	esac
}

# make_policy NAME PF
make_policy() {
	pf[$1]=$2
	chance 7
	vfs[$1]=$((r + 1))
	change_range "$1"
	chance 4
	if ((r)); then type[$1]=netdevice; else type[$1]=vfio-pci; fi
	mtu[$1]=
	chance 3
	((r == 0)) || change_field "$1" mtu
	change_field "$1" priority
}

forget_policy() {
	unset "pf[$1]" "vfs[$1]" "range[$1]" "type[$1]" "mtu[$1]" "priority[$1]"
}

# object NAME: the policy as it is to be.
object() {
	a_policy_object "$1" "{\"numVfs\": ${vfs[$1]}, \"priority\": ${priority[$1]}, \"deviceType\": \"${type[$1]}\",
		${mtu[$1]:+\"mtu\": ${mtu[$1]},} \"nicSelector\": {\"pfNames\": [\"${pf[$1]}${range[$1]}\"]}}"
}

objects() {
	local name

	for name in "$@"; do object "$name"; done | jq -s '{apiVersion: "v1", kind: "List", items: .}'
}

words() {
	printf '%s: %s VFs of %s%s, %s, MTU %s, priority %s' "$1" "${vfs[$1]}" "${pf[$1]}" "${range[$1]}" "${type[$1]}" \
		"${mtu[$1]:-any}" "${priority[$1]}"
}

# Sets picked to the policy that asks for more VFs than an igb has.
pick_with_too_many() {
	for picked in "${!vfs[@]}"; do
		((vfs[$picked] <= 7)) || return 0
	done
}

# choose KIND: sets changed (policies that $tmp/change.yaml has), deleted (one, or nothing).
choose() {
	local name free=()

	changed=() deleted=''
	for name in "${names[@]}"; do
		[[ -n ${vfs[$name]:-} ]] || free+=("$name")
	done
	case $1 in
	new)
		if ((${#free[@]})); then pick "${free[@]}" && make_policy "$picked" "enp$((RANDOM % 2 + 1))s0"; else pick "${!vfs[@]}"; fi
		;;
	held) pick_with_pod ;;
	fewer) pick_with_too_many ;;
	*) pick "${!vfs[@]}" ;;
	esac
	if [[ $1 == delete && ${#vfs[@]} -gt 1 ]]; then
		deleted=$picked
		forget_policy "$picked"
		return
	fi
	changed=("$picked")
	case $1 in
	new | delete) ;;
	held | fewer) change_field "$picked" vfs ;;
	many) vfs[$picked]=8 ;;
	two)
		change_field "$picked" mtu
		pick "${!vfs[@]}"
		[[ $picked == "${changed[0]}" ]] || changed+=("$picked")
		change_field "$picked" vfs
		;;
	*) change_field "$picked" "$1" ;;
	esac
	objects "${changed[@]}" >"$tmp/change.yaml"
}

# --- pods ---------------------------------------------------------------------------------------------

# come POLICY N: a pod that asks for N VFs of that policy. The kubelet may turn it away.
come() {
	local name=play/p$((++pods_made)) said

	said=$(tell "come $name spidernet.io/$1 $2" "$name ")
	printf '# %s\n' "$said"
	[[ $said != "$name has "* ]] || pods[$name]=$2
}

go() {
	tell "go $1" "$1 has gone" >/dev/null
	unset "pods[$1]"
}

# tell LINE ANSWER: tell the kubelet that is played; print its answer.
tell() {
	node "echo '$1' >>/root/asked; for i in \$(seq 100); do grep '^$2' /root/play.log && exit; sleep 0.1; done"
}

# Policies of whose VFs the kubelet has some, and those of which it has free ones.
offered() {
	a_state ".status.resources // [] | map(select(.healthy > 0 and $1)) | map(.name | sub(\".*/\"; \"\")) | sort | join(\" \")"
}

# Sets picked to a policy of whose VFs a pod has one: one that came for it, if there was none.
pick_with_pod() {
	local all

	read -r -a all < <(offered '(.allocated // 0) > 0') || true
	if ((${#all[@]} == 0)); then
		read -r -a all < <(offered true) || true
		((${#all[@]})) || all=("${!vfs[@]}")
		pick "${all[@]}"
		come "$picked" 1
		t_wait "$a_wait_s" "the NodeState tells who has it" at_rest none
		all=("$picked")
	fi
	pick "${all[@]}"
	[[ -n ${vfs[$picked]:-} ]] || pick "${!vfs[@]}"
}

move_pods() {
	local all

	chance 3
	if ((${#pods[@]} >= 3 && r == 0)); then
		pick "${!pods[@]}"
		printf '# %s goes\n' "$picked"
		go "$picked"
		# What it kept the agent from (an MTU, say) is done before the plan is asked for.
		t_wait "$a_wait_s" "the NodeState tells that it has gone" at_rest none
		sleep 4
	elif ((${#pods[@]} < 4)); then
		read -r -a all < <(offered '.healthy > (.allocated // 0)') || true
		((${#all[@]})) || return 0
		pick "${all[@]}"
		chance 2
		come "$picked" $((r + 1))
	fi
}

# --- what is there ------------------------------------------------------------------------------------

# at_rest none|any: the agent has nothing to do for the present spec, knows the pods, and (none) nobody is in the way.
at_rest() {
	local name

	for name in "${!pods[@]}"; do echo "$name ${pods[$name]}"; done | sort >"$tmp/pods"
	o_curl GET "$a_path" | jq -e --arg which "$1" --rawfile pods "$tmp/pods" '.metadata.generation as $now | .status as $status |
		(.status.conditions | map(select(.type == "Progressing")) | first) as $progressing |
		[.status.resources // [] | .[].pods // [] | .[].pod | sub("/c$"; "")] | group_by(.) |
		map("\(.[0]) \(length)\n") | join("") as $has | ($has, $progressing, $status.impact | debug) |
		$has == $pods and $status.observedGeneration == $now and $progressing.observedGeneration == $now and
		$progressing.status == "False" and ($which == "any" or $status.impact.class == "none")'
}

# PFs and VFs as sysfs has them.
# shellcheck disable=SC2016 # the node expands it
look() {
	node 'cd /sys/bus/pci/devices; for pf in 0000:01:00.0 0000:02:00.0; do
		echo "$pf" "$(cat "$pf"/net/*/mtu)"
		for ((i = 0; i < $(cat "$pf/sriov_numvfs"); i++)); do
			vf=$(readlink -f "$pf/virtfn$i"); driver=$(readlink "$vf/driver" || echo none)
			echo "$pf" "${vf##*/}" "$(stat -c %i "$vf")" "${driver##*/}" "$(cat "$vf"/net/*/mtu 2>/dev/null || echo 0)"
		done
	done' | jq -Rn 'reduce (inputs / " ") as $line ({}; if $line | length == 2
		then .[$line[0]] = {mtu: $line[1] | tonumber, vfs: []}
		else .[$line[0]].vfs += [{address: $line[1], function: $line[2], driver: $line[3], mtu: $line[4] | tonumber}] end)'
}

policies_are() {
	local shown

	shown=$(o_curl GET "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodepolicies" |
		jq -L tests/vm -r 'include "plan"; policies_shown')
	printf 'said:  %s\nshown: %s\n' "$1" "$shown"
	[[ $shown == "$1" ]]
}

spec_is() {
	[[ $(a_state .spec | jq -cS .) == "$1" ]] || { echo "said: $1"$'\n'"is:   $(a_state .spec | jq -cS .)" && false; }
}

# From what the plan said (plan.jq).
said() {
	jq -L tests/vm -r "include \"plan\"; $1" "$tmp/plan.json"
}

# compare FUNCTION: what it makes of the plan, and of the node before and after.
compare() {
	jq -L tests/vm -nr --slurpfile plan "$tmp/plan.json" --slurpfile first "$tmp/first.json" --slurpfile was "$tmp/was.json" \
		--slurpfile is "$tmp/is.json" --slurpfile after "$tmp/after.json" "include \"plan\";
		{plan: \$plan[0], first: \$first[0], was: \$was[0], is: \$is[0],
			held: [\$after[0].status.resources // [] | .[].pods // [] | .[].device]} | $1"
}

# --- one change ---------------------------------------------------------------------------------------

# Sets plan_status, and $tmp/plan.json.
ask() {
	local argument=$tmp/change.yaml

	[[ -z $deleted ]] || argument=$POD_NAMESPACE/$deleted-
	plan_status=0
	"$o_programs/orbweaver" --kubeconfig "$(hack/cluster kubeconfig "$o_cluster")" plan "$argument" -o json >"$tmp/plan.json" || plan_status=$?
}

change_something() {
	local kind=$1 number=$2 name class what

	choose "$kind"
	what="$kind ${deleted:+$deleted}$(for name in "${changed[@]}"; do printf ' %s;' "$(words "$name")"; done)"
	look >"$tmp/was.json"
	ask
	class=$(said 'node | .class')
	t_eq "$number, $what: the exit status says whether pods have to end" "$class $([[ $class == evict ]] && echo 4)" \
		"$class $([[ $plan_status == 4 ]] && echo 4)"
	said 'node | .changes[] | "# \(.nic): \(.message)"'
	if [[ -n $deleted ]]; then a_no_policy "$deleted"; else k apply -f "$tmp/change.yaml" >/dev/null; fi

	t_wait "$a_wait_s" "$number: the NodeState's spec becomes what was said" spec_is "$(said 'node | .spec' | jq -cS .)"
	t_wait "$a_wait_s" "$number: the agent does what it can" at_rest any
	o_curl GET "$a_path" >"$tmp/after.json"
	t_eq "$number: the class and the pods in the way are those that were said" "$(said 'node | cost_words')" \
		"$(jq -L tests/vm -r 'include "plan"; .status.impact | cost_words' "$tmp/after.json")"
	if [[ $class == evict ]]; then
		look >"$tmp/is.json"
		t_eq "$number: while they are there no VF goes of those that are to go" "" "$(compare pfs_not_kept)"
		for name in $(said '[node | .pods[].pod] | unique[]'); do go "$name"; done
		t_wait "$a_wait_s" "$number: when they have ended it is done" at_rest none
		o_curl GET "$a_path" >"$tmp/after.json"
	fi
	look >"$tmp/is.json"
	t_eq "$number: VFs, drivers and MTUs are as was said, and nothing else" "$(compare pfs_said)" "$(compare pfs_shown)"
	t_eq "$number: so is the spec" "$(said 'node | .spec' | jq -cS .)" "$(a_state .spec | jq -cS .)"
	t_wait 30 "$number: policies that do not get what they ask for were told" policies_are "$(said policies_said)"
	classes[$class]=$((${classes[$class]:-0} + 1))
	# What follows would be about the consequences.
	((t_failed == 0)) || { jq -c '{nodes, policiesNotMet}' "$tmp/plan.json" && a_state '.status | tojson' && node 'tail -n 20 /root/play.log'; }
	t_need
}

# --- all of them --------------------------------------------------------------------------------------

a_begin plan --pfs 2
a_kubelet_flag=
t_ok "the programs are built" test -x "$play" -a -x "$o_programs/orbweaver"
t_need
node 'mkdir -p /var/lib/kubelet/device-plugins /var/lib/kubelet/pod-resources; touch /root/asked'
node "ASAN_OPTIONS='$ASAN_OPTIONS' nohup bash -c 'tail -f -n +1 /root/asked | $PWD/$play /var/lib/kubelet' >/root/play.log 2>&1 </dev/null &"
look >"$tmp/first.json"
a_start --log-level debug
t_wait "$a_wait_s" "the agent reports" at_rest none
make_policy a enp1s0
make_policy b enp2s0
objects a b | k apply -f - >/dev/null
begun() {
	policies_are "" && at_rest none
}
t_wait "$a_wait_s" "the first two policies are carried out" begun
t_need

deck=()
for ((i = 1; i <= changes; i++)); do
	if ((${#deck[@]} == 0)); then
		shuffle new delete type mtu priority range two many
		# With a policy on each PF it surely is of class evict.
		deck=(held "${shuffled[@]}")
	fi
	[[ ${deck[0]} != many ]] || deck=(many fewer "${deck[@]:1}")
	move_pods
	t_wait "$a_wait_s" "$i: the NodeState tells who has what" at_rest none
	change_something "${deck[0]}" "$i"
	deck=("${deck[@]:1}")
done

printf '# %s changes; %s of class none, %s of class evict; %s steps of the agent; %s s\n' "$changes" "${classes[none]}" \
	"${classes[evict]}" "$(a_metric orbweaver_agent_steps_total)" "$SECONDS"
t_ok "pods were in the way of some" test "${classes[evict]}" -gt 0
# shellcheck disable=SC2016 # the node expands it
node 'kill $(pgrep -xo tail)'
play_is_over() {
	node 'grep ^given /root/play.log'
}
t_wait 30 "the kubelet ends" play_is_over
t_eq "nothing was written to a VF that a pod had (seed $seed)" "" "$(node 'grep ^WRITTEN /root/play.log || true')"
a_end
o_end op
t_done
