#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A CNI plugin that writes its call down and answers as its configuration says: recResult (IFNAME, NETNS replaced), else
# recIP and recMore; the result of its ipam's plugin where it has one; the previous plugin's result where there is one. recFail and recDie name commands to refuse, recCreate
# has commands to run in the pod. METALOG names the file.
set -euo pipefail

input=$(cat)
type=$(basename "$0")
(
	flock 9
	jq -nc --arg plugin "$type" --argjson stdin "$input" '{plugin: $plugin, command: env.CNI_COMMAND,
		interface: (env.CNI_IFNAME // ""), args: (env.CNI_ARGS // ""), stdin: $stdin}' >>"$METALOG"
) 9>>"$METALOG.lock"

if jq -e '.recDie // [] | any(. == env.CNI_COMMAND)' <<<"$input" >/dev/null; then
	echo "no word on stdout" >&2
	exit 3
fi
if jq -e '.recFail // [] | any(. == env.CNI_COMMAND)' <<<"$input" >/dev/null; then
	jq -nc --arg type "$type" '{code: 100, msg: (env.CNI_COMMAND + " refused by " + $type), details: "as configured"}'
	exit 1
fi
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
	elif .recResult then .recResult | if .interfaces then .interfaces |= map(
		.name |= (if . == "IFNAME" then env.CNI_IFNAME elif . == "IFNAME-b" then env.CNI_IFNAME + "-b" else . end) |
		if .sandbox == "NETNS" then .sandbox = env.CNI_NETNS else . end) else . end
	else (.recIP // "10.9.0.5/24") as $ip | {
		cniVersion: .cniVersion, dns: {},
		interfaces: [{name: env.CNI_IFNAME, mac: "02:00:00:00:00:05", sandbox: env.CNI_NETNS}],
		ips: [{address: $ip, interface: 0} +
			if $old then {version: (if $ip | test(":") then "6" else "4" end)} else {} end]
	} + (.recMore // {}) end' <<<"$input"
