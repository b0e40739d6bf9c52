#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver report --serve: access, and a browser in which a NIC breaks without a reload, first of files, then of a real API
# server that goes away and comes back. The pictures stay in build/report, to be looked at.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"
. "$(dirname "${BASH_SOURCE[0]}")/cli.sh"
. "$(dirname "${BASH_SOURCE[0]}")/browser.sh"

cli=$o_programs/orbweaver
pictures=${BUILD:-build}/report
mkdir -p "$pictures"
work=$(mktemp -d)
serving=
clean_up() {
	b_end
	[[ -z $serving ]] || kill "$serving" 2>/dev/null || true
	rm -rf "$work"
}
trap clean_up EXIT

# serve ARGUMENT...: start it; its URL is in $url.
serve() {
	: >"$work/url"
	"$cli" report --serve "$@" >"$work/url" 2>"$work/err" &
	serving=$!
	until [[ -s $work/url ]] || ! kill -0 "$serving" 2>/dev/null; do
		sleep 0.1
	done
	url=$(<"$work/url")
	host=$(cut -d/ -f3 <<<"$url")
}
# ends NAME SIGNAL: it does, with status 0.
ends() {
	local name=$1 status=0

	kill -s "$2" "$serving"
	wait "$serving" || status=$?
	serving=
	t_eq "$name" 0 "$status"
}
well='(.items[] | select(.kind == "SriovNetworkNodePolicy") | .status) =
	{conditions: [{type: "Ready", status: "True", reason: "NodesReady", message: "12 nodes ready, 96 VFs", observedGeneration: 1}]}'
# fleet EDIT: 12 nodes with 4 NICs each; written as a whole.
fleet() {
	jq -nc --argjson nodes 12 -f tests/support/fleet.jq | jq -c "$well | $1" >"$work/new.json"
	mv "$work/new.json" "$work/fleet.json"
}
broken='(.items[] | select(.kind == "SriovNetworkNodeState" and .metadata.name == "gpu-00003") | .status) |=
	(.interfaces[2].linkSpeed = "-1 Mb/s" | .interfaces[2].linkAdminState = "down" |
	.conditions = [{type: "Ready", status: "False", reason: "NicNotUsable", message: "ens3f0 has no link"},
		{type: "Degraded", status: "True", reason: "NicNotUsable", message: "ens3f0 has no link: check the cable"}] |
	.resources[2].healthy = 0)'

echo "# the door"
fleet .
serve -f "$work/fleet.json"
t_ok "one line says where" grep -qxE 'http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/' "$work/url"
# status CURL-ARGUMENT...: of the answer.
status() { curl -s --noproxy '*' --http1.1 --max-time 5 -o "$work/body" -D "$work/head" -w '%{http_code}' "$@" || true; }
t_eq "the page" 200 "$(status "$url")"
t_ok "allows nothing but itself" grep -q "Content-Security-Policy: default-src 'none'; script-src 'nonce-[0-9a-f]*';" "$work/head"
t_fails "and has nothing of the cluster in it" grep -q gpu-00003 "$work/body"
t_eq "another token" 404 "$(status "http://$host/00000000000000000000000000000000/")"
t_eq "no token" 404 "$(status "http://$host/")"
t_eq "another name that leads here" 403 "$(status -H "Host: rebound.example" "$url")"
t_eq "a page of another site" 403 "$(status -H "Origin: http://other.example" "$url")"
t_eq "another method" 405 "$(status -d x "$url")"
long=$(head -c 6000 /dev/zero | tr '\0' x)
t_eq "with cookies of others on this machine" 200 "$(status -H "Cookie: $long" "$url")"
t_eq "a head without an end" 431 "$(status -H "X: $long$long$long" "$url")"
socket=(-H "Connection: Upgrade" -H "Upgrade: websocket" -H "Sec-WebSocket-Version: 13" -H "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
	-H "Sec-WebSocket-Protocol: orbweaver-report" --max-time 1)
t_eq "a WebSocket" 101 "$(status "${socket[@]}" -H "Origin: http://$host" "${url}live")"
t_eq "with these cookies, too" 101 "$(status "${socket[@]}" -H "Cookie: $long" -H "Origin: http://$host" "${url}live")"
t_ok "begins with the whole document" grep -aq '{"whole":{.*gpu-00003' "$work/body"
t_eq "without an Origin" 403 "$(status "${socket[@]}" "${url}live")"
t_eq "with another Origin" 403 "$(status "${socket[@]}" -H "Origin: http://other.example" "${url}live")"
t_eq "of another port of this machine" 403 "$(status "${socket[@]}" -H "Origin: http://127.0.0.1:1" "${url}live")"
t_eq "with another token" 404 "$(status "${socket[@]}" -H "Origin: http://$host" "http://$host/00000000000000000000000000000000/live")"
t_eq "its path without an upgrade" 426 "$(status -H "Origin: http://$host" "${url}live")"
for _ in {1..40}; do
	exec {hold}<>"/dev/tcp/127.0.0.1/${host#*:}"
	held+=("$hold")
done
t_eq "silent connections give way to a new one" 200 "$(status "$url")"
for hold in "${held[@]}"; do
	exec {hold}>&-
done
t_ok "a port in use is one line that names it" says "cannot listen on $host: Address already in use" 2 \
	"$cli" report --serve "$host" -f "$work/fleet.json"
for address in 0.0.0.0:0 192.0.2.1:80 "[::]:0" :8080; do
	t_ok "not of the loopback: $address" says "\"$address\": must be of the loopback" 2 "$cli" report --serve "$address" -f "$work/fleet.json"
done
t_ok "no address" says "there is no port" 2 "$cli" report --serve localhost -f "$work/fleet.json"
t_ok "a document" says "--output does not go with --serve" 2 "$cli" report --serve -o json -f "$work/fleet.json"
t_ok "standard input" says "standard input is read once" 2 "$cli" report --serve -f - <"$work/fleet.json"
t_ok "another command" says "--serve does not go with status" 2 "$cli" status --serve -f "$work/fleet.json"

echo "# a file, in a browser"
if ! command -v chromium >/dev/null; then
	t_skip "a browser shows it" "chromium is not installed"
	ends "SIGTERM ends it" TERM
	t_done
fi
# shows TEXT [SELECTOR]: the page, or that part of it, has this text.
shows() { [[ $(b_eval "document.querySelector('${2:-body}').innerText") == *"$1"* ]]; }
lacks() { ! shows "$@"; }
b_begin "$work/browser"
b_go "$url"
t_wait 30 "the page is live" shows live "#live"
t_ok "all nodes are ready" shows "12 of 12 ready"
t_ok "there is nothing to do" shows "nothing to do"
b_picture "$pictures/live-before.png" 1280 2100
b_picture "$pictures/live-before-dark.png" 1280 2100 dark
b_eval 'window.stays = "as it was"; [...document.querySelectorAll("button.name")].find(b => b.textContent === "gpu-00005").click();
	document.getElementById("search").focus(); window.scrollTo({top: 300, behavior: "instant"}); 0' >/dev/null
fleet "$broken"
t_wait 30 "a NIC breaks, and the page says it in words" shows "NicNotUsable" "#findings"
t_ok "with the node" shows "11 of 12 ready"
t_eq "the broken node is the first, its state in words" "gpu-00003 broken" \
	"$(b_eval '[...document.querySelector("tr.opens").cells].slice(0, 2).map(cell => cell.innerText.trim()).join(" ")')"
t_eq "without a reload" "as it was" "$(b_eval window.stays)"
t_eq "what was opened is open" "gpu-00005" "$(b_eval 'document.querySelector("button.name[aria-expanded=true]").textContent')"
t_eq "the scroll position stays" 300 "$(b_eval window.scrollY)"
t_eq "and the focus" search "$(b_eval document.activeElement.id)"
t_ok "the tab says it, too" grep -qx '[0-9]* errors · Orbweaver' <(b_eval document.title)
b_eval '[...document.querySelectorAll("button.name")].forEach(b => (b.textContent === "gpu-00003") !== (b.ariaExpanded === "true") && b.click());
	window.scrollTo({top: 0, behavior: "instant"}); 0' >/dev/null
b_picture "$pictures/live-after.png" 1280 2100
b_picture "$pictures/live-after-dark.png" 1280 2100 dark
echo '{ "a": ' >"$work/fleet.json"
t_wait 30 "a file that cannot be read: since when the page is old" shows "Not up to date since" "#trouble"
t_ok "and what it showed is there" shows "gpu-00003"
b_picture "$pictures/live-old.png" 1280 2100
hostile='</script><img src=x onerror="document.title = 1">&lt;b&gt;'
fleet "(.items[] | select(.metadata.name == \"gpu-00001\") | .metadata.name) = $(jq -nc --arg name "$hostile" '$name') |
	(.items[] | select(.kind == \"SriovNetworkNodePolicy\") | .metadata.name) = \"__proto__\""
t_wait 30 "repaired, it goes on" shows "$hostile"
t_ok "what was there by another name is gone" lacks gpu-00001
t_eq "names of the cluster are no markup" 0 "$(b_eval 'document.querySelectorAll("img, main b").length')"
t_ok "nothing is old any more" shows live "#live"
t_eq "no other resource is loaded" "" "$(b_eval 'performance.getEntriesByType("resource").map(e => e.name).join(" ")')"
ends "SIGTERM ends it" TERM
t_wait 30 "the page says that it is cut off" shows "No connection since" "#trouble"
t_ok "and shows what it had" shows "gpu-00003"
t_eq "no script complained" "" "$(grep -v 'ERR_CONNECTION_REFUSED' "$work/browser/console" || true)"
t_eq "nor did the server" "" "$(<"$work/err")"

echo "# a cluster"
o_begin report --no-controllers
trap 'clean_up; o_clean_up' EXIT
objects=$(jq -nc --argjson nodes 3 -f tests/support/fleet.jq)
apply() { jq -c "$1" <<<"$objects" | k apply -f - >/dev/null; }
# What the agent would report.
report_node() {
	o_curl PATCH "/apis/sriovnetwork.openshift.io/v1/namespaces/orbweaver-system/sriovnetworknodestates/$1/status" \
		"$(jq -c --arg name "$1" ".items[] | select(.kind == \"SriovNetworkNodeState\" and .metadata.name == \$name) | {status} | $2" <<<"$objects")" >/dev/null
}
apply '.items |= map(select(.kind == "Node" or .kind == "SriovNetworkNodeState"))'
for node in gpu-00000 gpu-00001 gpu-00002; do
	report_node "$node" .
done
serve --kubeconfig "$kubeconfig"
b_go "$url"
t_wait 30 "the page is live" shows live "#live"
t_ok "with the nodes" shows "of 3 ready"
b_eval 'window.stays = "as it was"' >/dev/null
t_ok "and that no operator leads" shows NoLeader "#findings"
k apply -f - >/dev/null <<END
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: orbweaver-operator, namespace: orbweaver-system}
spec: {holderIdentity: op-0, leaseDurationSeconds: 10, renewTime: "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)"}
END
t_wait 30 "one comes" lacks NoLeader
t_wait 120 "and renews its Lease no more, which is no event" shows NoLeader "#findings"
report_node gpu-00001 '.status.conditions = [{type: "Degraded", status: "True", reason: "NicNotUsable", message: "no link",
	lastTransitionTime: "2026-01-01T00:00:00Z"}]'
t_wait 30 "a NIC breaks" shows NicNotUsable "#findings"
t_ok "the API server goes away" hack/cluster stop "$o_cluster" apiserver
t_wait 60 "the page says since when it is old" shows "Not up to date since" "#trouble"
t_ok "and shows what it had" shows gpu-00001
t_ok "the API server comes back" hack/cluster start "$o_cluster" apiserver
report_node gpu-00001 .
t_wait 60 "the page is live" shows live "#live"
t_wait 30 "with what happened meanwhile" lacks NicNotUsable
t_eq "without a reload" "as it was" "$(b_eval window.stays)"
ends "SIGINT ends it" INT
t_eq "no word of the server" "" "$(<"$work/err")"
t_done
