#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Metrics that others document (tests/golden-metrics/others.txt) are ours by name and labels, or named there with the reason why not.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

# What is not as the list $1 says, by the lists of ours.
differences() {
	awk '
		FILENAME != list { labels[$1] = "," $3 ","; next }
		/^#/ || /^$/ { next }
		$1 == "!" && NF < 4 { print $2 ": no reason" }
		$1 == "!" && $2 ~ /^\{/ { name = substr($2, 2, length($2) - 2); without[name] = 1
			for (m in labels) if (index(labels[m], "," name ",")) print m " has the label " name ": the reason is out of date"
			next }
		$1 == "!" { if ($2 in labels) print $2 " is ours: the reason is out of date"; next }
		!($1 in labels) { print $1 " is not ours"; next }
		{ asked[$1] = $2 }
		END { for (m in asked) { n = split(asked[m], of, ",")
			for (i = 1; i <= n; i++) if (of[i] != "-" && !(of[i] in without) && !index(labels[m], "," of[i] ","))
				print m " has no label " of[i] } }
	' list="$1" tests/golden-metrics/agent.txt tests/golden-metrics/operator.txt "$1"
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# said LINE...: of the list with these lines behind it.
said() {
	printf '%s\n' "$@" | cat tests/golden-metrics/others.txt - >"$tmp/list"
	differences "$tmp/list"
}
t_eq "names and labels of others are ours, or have a reason" "" "$(said)"
t_eq "a name that is not ours is seen" "rdma_planted_total is not ours" "$(said 'rdma_planted_total -')"
t_eq "a label that is not ours is seen" "sriov_vf_tx_bytes has no label planted" "$(said 'sriov_vf_tx_bytes pf,planted')"
t_eq "a reason for a name that is ours is seen" "sriov_vf_tx_bytes is ours: the reason is out of date" "$(said '! sriov_vf_tx_bytes for no reason')"
t_eq "a name without a reason is seen" "planted_total: no reason" "$(said '! planted_total -')"
t_done
