#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/dashboards on a copy of the tree: it accepts the copy, sees a dashboard that was changed by hand, and refuses descriptions that
# name what is not there, with the line. hack/screens.jq draws numbers of ours: what it writes of them.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
panels=$work/tree/manifests/overlays/dashboards/panels

fresh() {
	rm -rf "$work/tree"
	mkdir "$work/tree"
	tar c hack manifests/overlays/dashboards tests/golden-metrics | tar x -C "$work/tree"
}

# refused NAME TEXT [LINE...]: with these lines behind the description, hack/dashboards fails and says so.
refused() {
	local output

	[[ -z ${3:-} ]] || printf '%s\n' "${@:3}" >>"$panels"
	if output=$("$work/tree/hack/dashboards" 2>&1); then
		output="not refused: $output"
	fi
	t_ok "$1" grep -qF -- "$2" <<<"$output"
	fresh
}

# picture TYPE UNIT SERIES: a panel of 12 minutes from 0 on, a point each 12 s, with series as Prometheus answers them.
picture() {
	jq -n --arg type "$1" --arg unit "$2" --argjson series "$3" '{ title: "A <board>", about: "About & more.", minutes: 12, from: 0, to: 720,
		step: 12, choices: [{ name: "node", value: "n1" }], panels: [{ $type, title: "One & all", $unit, columns: ["node", "none", "Value"],
			at: { x: 0, y: 0, w: 8, h: 8 }, targets: [{ legend: "{{node}} {{none}}", $series }] }] }' | jq -rf hack/screens.jq
}

# numbers UNIT VALUE...: as they are written.
numbers() {
	picture bargauge "$1" "$(printf '%s\n' "${@:2}" | jq -n '[inputs | { metric: {}, value: [0, tostring] }]')" |
		grep -o 'class="value[^<]*' | cut -d '>' -f 2 | paste -sd ,
}

# line POINT...: the paths of a line through TIME,VALUE.
line() {
	picture timeseries short "$(printf '[%s]\n' "$@" | jq -cs '[{ metric: { node: "n1" }, values: map([.[0], (.[1] | tostring)]) }]')" |
		grep -o 'class="value [^/]*' | grep -o ' d="[^"]*' | cut -c5-
}

fresh
last=$(wc -l <"$panels")
panel='lines Planted | short | 12'
t_ok "the tree as it is" "$work/tree/hack/dashboards"
sed -i 's/"title": "Findings"/"title": "Found"/' "$work/tree/manifests/overlays/dashboards/cluster.json"
refused "a dashboard that was changed by hand" "run hack/dashboards write"
rm "$work/tree/manifests/overlays/dashboards/node.json"
refused "one that is missing" "run hack/dashboards write"
refused "one that is not written" "run hack/dashboards write" 'dashboard planted | Planted | About it.' "$panel" $'\tsum(orbweaver_leader{}) | n'
refused "a metric that is not ours" "line $((last + 2)): no metric of ours: planted_total" "$panel" $'\tsum(planted_total{}) | n'
refused "a histogram as if it were a number" "no metric of ours" "$panel" $'\trate(orbweaver_cni_call_seconds_max{}[5m]) | n'
refused "a metric without braces" "braces belong behind orbweaver_leader" "$panel" $'\torbweaver_kube_requests_total{} > orbweaver_leader | n'
refused "a label that the metric has not" "no label of orbweaver_leader: planted" "$panel" $'\tsum by (planted) (orbweaver_leader{}) | n'
refused "one in a matcher" "no label of orbweaver_leader: planted" "$panel" $'\torbweaver_leader{planted="x"} | n'
refused "one in a legend" "no label of orbweaver_leader: planted" "$panel" $'\torbweaver_leader{} | {{planted}}'
refused "one that is a column" "no label of orbweaver_leader: planted" 'table Planted | short | 12' $'\torbweaver_leader{} | instance, planted'
refused "one to choose by" "no label of orbweaver_leader: planted" 'choose it | orbweaver_leader{} | planted'
refused "a panel without a query" "Planted: no query" "$panel"
refused "a query without a legend" "line $((last + 2)): a query without a legend" "$panel" $'\torbweaver_leader{}'
refused "a query without a panel" "a query without a panel" 'row Planted' $'\torbweaver_leader{} | n'
refused "a width that does not fit" "WIDTH of 24" 'lines Planted | short | 25'
refused "a word that is none" 'what is "graph"?' 'graph Planted | short | 12'
refused "a name that is given twice" "two dashboards of one name" 'dashboard node | Planted | About it.' "$panel" $'\torbweaver_leader{} | n'
t_eq "queries are printed without Grafana's variables" "" "$(hack/dashboards queries | grep -F '$' || true)"

t_eq "numbers have three digits, and what is nearly a thousand is one" "0,7,1.5,999,1 k,12.3 k,2 M" "$(numbers short 0 7 1.5 999.4 999.6 12345 2e6)"
t_eq "times have a unit that fits" "0 s,25 µs,1.5 ms,3 s,2.5 min,364 d" "$(numbers s 0 0.000025 0.0015 3 150 31449600)"
t_eq "so have rates and sizes" "1.5 Gb/s|64 MiB|12.5 %|0.2 ops/s" \
	"$(numbers bps 1.5e9)|$(numbers bytes 67108864)|$(numbers percentunit 0.125)|$(numbers ops 0.2)"
t_eq "a flat line has two points, a gap parts it, a point of its own is a dot" "M53 80l24 0M752 80h1" "$(line 0,3 12,3 24,3 720,3)"
t_eq "what is no number is a gap" "M53 80h1M77 80h1" "$(line 0,3 '12,"NaN"' 24,3)"
t_eq "nothing is said to be nothing" "No data" "$(picture timeseries s '[]' | grep -o 'No data')"
t_eq "a table has the columns that a row has" "node Value n1 7" \
	"$(picture table short '[{"metric": {"node": "n1"}, "value": [0, "7"]}]' | grep -oE '"(head|value cell)">[^<]*' | cut -d '>' -f 2 | xargs)"
t_eq "texts are texts" "A &lt;board&gt; One &amp; all" \
	"$(picture stat s '[]' | grep -oE '"(board|title)">[^<]*' | cut -d '>' -f 2 | xargs)"
t_ok "names for which there is no room are counted" grep -q '>+ [0-9]* more<' \
	<<<"$(picture timeseries s "$(jq -nc '[range(60) | { metric: { node: "node-\(.)" }, values: [[0, "1"]] }]')")"
t_done
