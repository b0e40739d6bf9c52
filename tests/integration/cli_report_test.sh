#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver report: one file that asks nobody for anything, drawn by a browser in light and dark, small and with 1,000 nodes;
# names of the cluster stay text. The pictures stay in build/report, to be looked at.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.."
. tests/integration/cli.sh

cli=${BUILD:-build}/${VARIANT:-asan}/orbweaver
pictures=${BUILD:-build}/report
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$pictures"

list='{apiVersion: "v1", kind: "List", items: [.[]]}'
jq "$list" tests/integration/cli_explain.json >"$tmp/small.json"
jq -nc --argjson nodes 1000 -f tests/support/fleet.jq >"$tmp/fleet.json"
# What a stranger may call things, as far as some server would store it.
hostile='</script><script>document.title = "owned"</script><img src=x onerror="document.title = 1">&lt;b&gt;"'"'"'<!--'
jq --arg name "$hostile" '.pod.metadata.annotations["k8s.v1.cni.cncf.io/network-status"] =
	([{name: $name, interface: $name, ips: [$name], "device-info": {type: "pci", pci: {"pci-address": "0000:3b:00.3", "rdma-device": $name}}}] | tojson) |
	.state.metadata.name = $name | .node.metadata.name = $name | .pool.metadata.name = $name | .pool.spec.subnet = $name |
	.policy.metadata.name = $name | .state.status.interfaces[0].name = $name |
	.state.status.problems = [{type: "Degraded", reason: $name, message: $name}] |
	.state.status.linkHealth.ports = [{pciAddress: .state.status.interfaces[0].pciAddress, reason: $name, changes: [{time: $name}]}] |
	.state.status.resources[0].name = $name | .config.status.conditions = [{type: "Ready", status: "False", reason: $name, message: $name}] |
	'"$list" tests/integration/cli_explain.json >"$tmp/hostile.json"

echo "# the file"
t_ok "is written" says "1 nodes" 0 "$cli" report -f "$tmp/small.json" "$tmp/small.html"
t_ok "or printed" bash -c "$cli report -f $tmp/small.json | grep -q '</html>'"
t_ok "with 1,000 nodes" says "1000 nodes" 0 "$cli" report -f "$tmp/fleet.json" "$tmp/fleet.html"
t_ok "with hostile names" says "1 nodes" 0 "$cli" report -f "$tmp/hostile.json" "$tmp/hostile.html"
t_ok "where it cannot be written: status 3" says "no/such" 3 "$cli" report -f "$tmp/small.json" /no/such/folder/report.html
t_eq "two scripts, whatever the names: the data and what draws it" 2 "$(grep -o '<script' "$tmp/hostile.html" | wc -l)"
t_eq "the data is JSON" "$hostile" \
	"$(sed -n 's|^<script type="application/json" id="data">\(.*\)</script>$|\1|p' "$tmp/hostile.html" | jq -r '.nodes[0].name')"
t_fails "nothing in the page names another place" grep -nE '(src|href|action|poster)=|url\(|@import|fetch\(|XMLHttp|WebSocket|https?://' cli/report.html
t_ok "and none would be asked" grep -q "default-src 'none'" "$tmp/small.html"

jq '.items |= map(if .kind == "SriovNetworkNodeState" then .status.linkHealth.ports = [{pciAddress: .status.interfaces[0].pciAddress,
	verdict: "degraded", reason: "LinkFlapping", since: "t", flaps: 4, changes: [{time: "a", up: false, times: 3}, {time: "b", up: true, own: true}]}]
	else . end)' "$tmp/small.json" >"$tmp/link.json"
t_eq "the history of a link" '{"reason":"LinkFlapping","since":"t","flaps":4,"changes":[["a",false,3,false],["b",true,1,true]]}' \
	"$("$cli" report -f "$tmp/link.json" -o json | jq -c '.nodes[0].nics[0].link | {reason, since, flaps, changes}')"

jq '.items |= map(if .kind == "SriovNetworkNodeState" then .status.hostFindings = [
	{level: "warning", reason: "AcsRedirects", subject: "0000:17:00.0", seen: "s", expected: "e", remedy: "setpci"},
	{level: "info", reason: "IrqBalance", subject: "irqbalance", seen: "s", remedy: "ban"}] else . end)' "$tmp/small.json" >"$tmp/host.json"
t_eq "what the agent found on its host, with the remedy" 'warning w1: 0000:17:00.0 s; setpci, info w1: irqbalance s; ban' \
	"$("$cli" report -f "$tmp/host.json" -o json |
		jq -r '[.findings[] | select(.reason | test("AcsRedirects|IrqBalance")) | "\(.level) \(.object) \(.text)"] | join(", ")')"
doctors() {
	{ "$cli" doctor "$@" -f "$tmp/host.json" -o json || true; } | jq -r '[.items[].reason | select(test("AcsR|IrqB"))] | join(" ")'
}
t_eq "doctor of a node that is named" "AcsRedirects IrqBalance" "$(doctors w1)"
t_eq "of all nodes without what is only good to know" "AcsRedirects" "$(doctors)"

t_eq "top has its verdict beside the port, without rates" LinkFlapping \
	"$("$cli" top -f "$tmp/link.json" -o json | jq -r '.ports[0] | select(has("received") | not).link')"
t_fails "a node that is not there" "$cli" top -f "$tmp/link.json" nobody

echo "# what status finds"
# every CONDITIONS: an object of each kind in crds/ and of those of other projects that a report reads, with these conditions.
every() {
	{
		sed -s '/^  versions:/,$!{/^  group:/p; /^    kind:/p; d}; /^  - name:/!d' crds/*.yaml | awk '
			/group:/ { group = $2 }
			/kind:/ { kind = $2 }
			/name:/ { print group "/" $3, kind }'
		echo "k8s.cni.cncf.io/v1 NetworkAttachmentDefinition"
		echo "v1 Pod"
	} | jq -R --argjson conditions "$1" 'split(" ") | {apiVersion: .[0], kind: .[1],
		metadata: {name: "a", namespace: "orbweaver-system", generation: 2}, status: {conditions: $conditions}}' |
		jq -s '{apiVersion: "v1", kind: "List", items: .}'
}
# Doctor says of a node what status says of its Node and NodeState.
of_status() {
	{ "$cli" status -f "$1" -o json || true; } | jq -r '.findings[] | (.name | split("/") | last) as $node |
		"\(.reason) \(if .kind == "Node" or .kind == "SriovNetworkNodeState" then $node else "\(.kind) \(.name)" end)"' | sort
}
of_report() {
	"$cli" report -f "$1" -o json |
		jq -r '.findings[] | "\(.reason) \(.object | sub("^(Node|SriovNetworkNodeState) (.*/)?"; "") | sub(": .*"; ""))"' | sort -u
}
ready='{type: "Ready", status: "True", reason: "Good", observedGeneration: 2}'
bad='{type: "Ready", status: "False", reason: "Bad", message: "m", observedGeneration: 2}'
degraded='{type: "Degraded", status: "True", reason: "Worse", message: "m"}'
stale='{type: "Ready", status: "True", reason: "Good", observedGeneration: 1}'
for each in "no condition:[]" "Ready:[$ready]" "not Ready:[$bad]" "Degraded:[$ready, $degraded]" "an older generation:[$stale]"; do
	every "$(jq -nc "${each#*:}")" >"$tmp/every.json"
	[[ ${each%%:*} != Ready ]] || cp "$tmp/every.json" "$tmp/well.json"
	[[ ${each%%:*} != "no condition" ]] || cp "$tmp/every.json" "$tmp/bare.json"
	t_eq "${each%%:*}: the report has each of them" "" "$(comm -23 <(of_status "$tmp/every.json") <(of_report "$tmp/every.json"))"
	t_eq "${each%%:*}: of other kinds than nodes it has no more" "" \
		"$(comm -13 <(of_status "$tmp/every.json") <(of_report "$tmp/every.json") | grep -v ' a$')"
done
t_eq "nothing where all is well" "" "$(of_status "$tmp/well.json")"
t_eq "each kind was there" "$(sed -n 's/^    kind: //p' crds/*.yaml | grep -vE 'Endpoint|NodeState' | sort)" \
	"$(of_report "$tmp/bare.json" | sed -n 's/^OperatorSilent \([A-Za-z]*\) .*/\1/p' | sort)"
t_fails "the operator is not silent about what has no status of its own" grep -E "OperatorSilent (Network|Pod|Node)" <(of_report "$tmp/bare.json")
cat >"$tmp/lease.json" <<'END'
{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "orbweaver-operator", "namespace": "orbweaver-system"},
	"spec": {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": "2026-01-31T10:00:00.000000Z"}}
END
t_ok "who leads is in both" grep -q NoLeader <("$cli" report -f "$tmp/well.json" -f "$tmp/lease.json" -o json)

echo "# results of orbweaver test"
jq -n --arg name "$hostile" '{kind: "PathTest", ring: {busGbps: 181.5}, items: [
	{from: "w1", to: "w2", network: "ml/one", toNetwork: "ml/one", bandwidth: {rdma: 97.25}, latency: {rdma: 7}, checks: []},
	{from: "w1", to: "w2", network: $name, toNetwork: $name, fromRail: 1, bandwidth: {rdma: 12}, checks: [{check: "ib_write_bw", state: "failed"}]}]}' \
	>"$tmp/test.json"
t_ok "are in the file" says "1 nodes" 0 "$cli" report -f "$tmp/small.json" --test "$tmp/test.json" "$tmp/test.html"
t_eq "as a matrix, with what failed" '[[{"value":97.25},{"failed":true,"value":12}],181.5,"w1 -> w2, network NAME (rail 1)"]' \
	"$("$cli" report -f "$tmp/small.json" --test "$tmp/test.json" -o json |
		jq -cS --arg name "$hostile" '.test | [.bandwidth.rows[0].cells, .ring, (.suspects[0].at | split($name) | join("NAME"))]')"
t_ok "a file of another kind is refused" says "must be what orbweaver test -o json prints" 2 \
	"$cli" report -f "$tmp/small.json" --test "$tmp/small.json"
jq '.items = [range(2049) | {}]' "$tmp/test.json" >"$tmp/long.json"
t_ok "so is one with more paths than a test has" says "must be what" 2 "$cli" report -f "$tmp/small.json" --test "$tmp/long.json"
t_ok "one that is not there: status 3" says "/no/such" 3 "$cli" report -f "$tmp/small.json" --test /no/such
t_ok "a served page does not show them" says "--test does not go with --serve" 2 "$cli" report -f "$tmp/small.json" --serve --test "$tmp/test.json"

echo "# in a browser"
if ! command -v chromium >/dev/null; then
	t_skip "a browser draws it" "chromium is not installed"
	t_done
fi
# browser FLAG... URL: its output; what the page complained about is in $tmp/console.
browser() {
	timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$tmp/browser" \
		--disable-background-networking --enable-logging=stderr --virtual-time-budget=5000 "$@" 2>"$tmp/log"
	grep CONSOLE "$tmp/log" >>"$tmp/console" || true
}
: >"$tmp/console"
for page in small fleet hostile test; do
	browser --dump-dom "file://$tmp/$page.html#dark" >"$tmp/$page.dom"
done
sections() { grep -o '<section id="[a-z]*"' "$1" | cut -d'"' -f2 | xargs; }
t_eq "all parts of a small cluster" "findings resources pools policies nodes" "$(sections "$tmp/small.dom")"
t_eq "of a large one, too" "findings overview resources pools policies nodes" "$(sections "$tmp/fleet.dom")"
t_eq "a square for each node" 1000 "$(grep -o '<i class="[a-z]*" title="gpu-[0-9]*: [A-Z]' "$tmp/fleet.dom" | wc -l)"
t_eq "but only the first rows" 15 "$(grep -o '<tr class="opens"' "$tmp/fleet.dom" | wc -l)"
t_ok "who has a VF" grep -q "ml/w-0" "$tmp/small.dom"
t_ok "hostile names did nothing" grep -q "<title>Orbweaver</title>" "$tmp/hostile.dom"
t_fails "and made no element" grep -qE '<img|<b>' "$tmp/hostile.dom"
t_ok "but are shown" grep -qF '&lt;/script&gt;&lt;script&gt;document.title' "$tmp/hostile.dom"
t_eq "paths are a table with words" "Bandwidth by RDMA, Gb/s 12.0 failed" \
	"$(grep -oE '<caption>Bandwidth[^<]*|12\.0<span class="badge bad"> failed' "$tmp/test.dom" | sed 's/<[^>]*>//g' | xargs)"
t_eq "no script complained, nothing was refused" "" "$(cat "$tmp/console")"
for page in small fleet; do
	for theme in light dark; do
		browser --window-size=1280,2300 --screenshot="$pictures/$page-$theme.png" "file://$tmp/$page.html#$theme" >/dev/null
		t_ok "a picture: $page, $theme" test "$(stat -c %s "$pictures/$page-$theme.png")" -gt 40000
	done
	t_fails "light and dark differ: $page" cmp -s "$pictures/$page-light.png" "$pictures/$page-dark.png"
done
browser --print-to-pdf="$pictures/small.pdf" "file://$tmp/small.html" >/dev/null
t_ok "it can be printed" grep -q '%%EOF' "$pictures/small.pdf"
t_done
