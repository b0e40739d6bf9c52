#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A CNI plugin that writes its call down and answers as its configuration says: the previous plugin's result where there is one,
# the result of its ipam's plugin where it has one, else recIP and recMore. recCreate has commands to run in the pod (IF is
# replaced). METALOG names the file.
set -euo pipefail

input=$(cat)
type=$(basename "$0")
(
	flock 9
	jq -nc --arg plugin "$type" --argjson stdin "$input" '{plugin: $plugin, command: env.CNI_COMMAND,
		interface: (env.CNI_IFNAME // ""), args: (env.CNI_ARGS // ""), stdin: $stdin}' >>"$METALOG"
) 9>>"$METALOG.lock"

if jq -e '.ipam.type? // empty' <<<"$input" >/dev/null; then
	addresses=$("$(dirname "$0")/$(jq -r .ipam.type <<<"$input")" <<<"$input") || { printf '%s\n' "$addresses" && exit 1; }
fi
[[ $CNI_COMMAND == ADD ]] || exit 0

while read -r command; do
	nsenter --net="$CNI_NETNS" bash -c "${command//IF/$CNI_IFNAME}" >&2
done < <(jq -r '.recCreate // [] | .[]' <<<"$input")
jq -c --argjson addresses "${addresses:-null}" '
	def old: .cniVersion as $v | ["0.3.0", "0.3.1", "0.4.0"] | any(. == $v);
	old as $old |
	if .prevResult then .prevResult
	elif $addresses then $addresses + {interfaces: [{name: env.CNI_IFNAME, sandbox: env.CNI_NETNS}]} |
		.ips |= map(.interface = 0)
	else (.recIP // "10.9.0.5/24") as $ip | {
		cniVersion: .cniVersion, dns: {},
		interfaces: [{name: env.CNI_IFNAME, mac: "02:00:00:00:00:05", sandbox: env.CNI_NETNS}],
		ips: [{address: $ip, interface: 0} +
			if $old then {version: (if $ip | test(":") then "6" else "4" end)} else {} end]
	} + (.recMore // {}) end' <<<"$input"
