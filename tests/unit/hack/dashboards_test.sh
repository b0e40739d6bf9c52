#!/bin/bash
# hack/dashboards on a copy of the tree: it accepts the copy, sees a dashboard that was changed by hand, and refuses descriptions that
# name what is not there, with the line.
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
t_done
